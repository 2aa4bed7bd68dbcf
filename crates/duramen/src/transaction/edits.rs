//! Changes of single places of a document in a transaction.

use crate::engine::catalogue::no_document;
use crate::error::Result;
use crate::json::{ArrayIndex, JsonPointer, ParseOptions, Tape};
use crate::jsonpath::{self, JsonPath};
use crate::patch;
use crate::position::Position;
use crate::revision::Revision;
use crate::snapshot::Snapshot;
use crate::target::Target;
use crate::transaction::Transaction;
use crate::tree::edit::{Ahead, Given};
use crate::tree::writer::Writer;

/// # Changing single places
///
/// Each change takes the document's name first and sees what the transaction did before. One that
/// fails before it has changed anything leaves the transaction as it was; one that fails half
/// done, such as a patch in its third operation, makes `commit` refuse. Values are copied and
/// moved through their JSON text, so that takes memory for it.
impl Transaction {
    /// Sets what a target names: replaces the value there, adds a field, or adds an element at the
    /// end of an array (`/list/-`).
    pub fn set<'t, T>(&mut self, name: &str, target: &'t T, json: &[u8]) -> Result<()>
    where
        &'t T: Into<Target>,
    {
        let target = target.into();
        self.edit(name, json, |writer, value| writer.set(&*writer.resolve(&target)?, value))
    }

    /// Replaces what a target names; `NotFound` if it is not there.
    pub fn replace<'t, T>(&mut self, name: &str, target: &'t T, json: &[u8]) -> Result<()>
    where
        &'t T: Into<Target>,
    {
        let target = target.into();
        self.edit(name, json, |writer, value| writer.replace(&*writer.resolve(&target)?, value))
    }

    /// Removes what a target names; elements behind it move up.
    pub fn remove<'t, T>(&mut self, name: &str, target: &'t T) -> Result<()>
    where
        &'t T: Into<Target>,
    {
        let target = target.into();
        self.change_document(name, |writer| writer.remove(&*writer.resolve(&target)?))
    }

    /// Replaces everything that a path finds by a value; how many places that was. What is found
    /// in something else that is found goes with it.
    pub fn set_all(&mut self, name: &str, path: &JsonPath, json: &[u8]) -> Result<u64> {
        self.edit(name, json, |writer, value| {
            let places = places(writer, path)?;
            for place in &places {
                writer.replace(place, value)?;
                writer.let_go_much()?;
            }
            Ok(places.len() as u64)
        })
    }

    /// Removes everything that a path finds; how many places that was.
    pub fn remove_all(&mut self, name: &str, path: &JsonPath) -> Result<u64> {
        self.change_document(name, |writer| {
            let places = places(writer, path)?;
            for place in &places {
                writer.remove(place)?;
                writer.let_go_much()?;
            }
            Ok(places.len() as u64)
        })
    }

    /// Adds an element to an array, or with a `member` name a field to an object; `Conflict` if
    /// there is a field of that name.
    pub fn insert(
        &mut self,
        name: &str,
        position: &Position,
        member: Option<&str>,
        json: &[u8],
    ) -> Result<()> {
        self.edit(name, json, |writer, value| writer.insert(position, member, value))
    }

    /// Adds an element at the end of an array.
    pub fn append<'t, T>(&mut self, name: &str, array: &'t T, json: &[u8]) -> Result<()>
    where
        &'t T: Into<Target>,
    {
        let array = array.into();
        self.edit(name, json, |writer, value| writer.append(&array, value))
    }

    /// Replaces `remove` elements of an array from `index` on by those of a JSON array.
    pub fn splice<'t, T>(
        &mut self,
        name: &str,
        array: &'t T,
        (index, remove): (u64, u64),
        json: &[u8],
    ) -> Result<()>
    where
        &'t T: Into<Target>,
    {
        let array = array.into();
        self.edit(name, json, |writer, values| {
            writer.splice_elements(&array, (index, remove), values)
        })
    }

    /// Moves a value to another place, in an object under the name `member` (none keeps its name).
    ///
    /// Within one array, or under its name within one object, it goes on as the same node; else
    /// its nodes end, and new ones begin that are known to have been moved from there.
    pub fn move_to<'t, T>(
        &mut self,
        name: &str,
        from: &'t T,
        position: &Position,
        member: Option<&str>,
    ) -> Result<()>
    where
        &'t T: Into<Target>,
    {
        let from = from.into();
        self.change_document(name, |writer| writer.move_to(&from, position, member))
    }

    /// Copies a value to another place, in an object under the name `member` (none keeps its name).
    pub fn copy<'t, T>(
        &mut self,
        name: &str,
        from: &'t T,
        position: &Position,
        member: Option<&str>,
    ) -> Result<()>
    where
        &'t T: Into<Target>,
    {
        let from = from.into();
        self.change_document(name, |writer| writer.copy(&from, position, member))
    }

    /// Copies a value of another document, or of another revision, to a place in this document; in
    /// an object under the name `member` (none keeps its name).
    pub fn copy_from<'t, T>(
        &mut self,
        name: &str,
        (other, from): (&Snapshot, &'t T),
        position: &Position,
        member: Option<&str>,
    ) -> Result<()>
    where
        &'t T: Into<Target>,
    {
        let from = other.resolve(&from.into())?;
        let mut text = Vec::new();
        other.append_json(&from, &crate::Format::default(), &mut text)?;
        let is_field = match from.parent() {
            Some(parent) => other.is_object(&parent)?,
            None => false,
        };
        let own_name = from.last().filter(|_| is_field);
        self.edit(name, &text, |writer, value| {
            writer.insert_copy((value, own_name), position, member)
        })
    }

    /// Gives a field another name, in its place; `Conflict` if there is a field of that name.
    ///
    /// Its nodes end, and new ones begin that are known to have been moved from there.
    pub fn rename_field<'t, T>(&mut self, name: &str, field: &'t T, new_name: &str) -> Result<()>
    where
        &'t T: Into<Target>,
    {
        let field = field.into();
        self.change_document(name, |writer| writer.rename_field(&field, new_name))
    }

    /// Applies a JSON Patch (RFC 6902). An error says which operation failed, counted from 1, and
    /// why; a `test` that finds another value is a `Conflict`.
    pub fn patch(&mut self, name: &str, json_patch: &[u8]) -> Result<()> {
        self.change_document(name, |writer| patch::apply(writer, &JsonPointer::root(), json_patch))
    }

    /// Applies a JSON Merge Patch (RFC 7396): members that are `null` in it are removed, objects
    /// are merged, everything else is set.
    pub fn merge_patch(&mut self, name: &str, json: &[u8]) -> Result<()> {
        let patch = patch::merge::read(json)?;
        self.change_document(name, |writer| {
            patch::merge::apply(writer, &JsonPointer::root(), &patch)
        })
    }

    /// Takes back what one revision changed. `Conflict` if any of it has changed since: it names
    /// the first ten such values. What was removed comes back as the nodes it was.
    pub fn undo(&mut self, name: &str, revision: Revision) -> Result<()> {
        let before = Revision(revision.0.saturating_sub(1));
        let ahead = self.read_ahead(name, |_| (before, revision))?;
        self.change_document(name, |writer| writer.undo(revision, ahead))
    }

    /// Makes the document what it was at a revision. What was removed since comes back as the
    /// nodes it was. A deleted document lives again.
    pub fn revert_to(&mut self, name: &str, revision: Revision) -> Result<()> {
        let ahead = self.read_ahead(name, |newest| (revision, newest))?;
        self.any_writer(name)?;
        let id = self.find(name)?.ok_or_else(|| no_document(name))?;
        self.change(id, |writer| writer.revert_to(revision, ahead))
    }

    /// Reads what differs between two revisions before others have to wait for the document.
    fn read_ahead(
        &mut self,
        name: &str,
        between: impl FnOnce(Revision) -> (Revision, Revision),
    ) -> Result<Option<Ahead>> {
        let tree = self.not_yet_taken(name)?;
        Ok(tree.and_then(|tree| tree.read_ahead(between(tree.newest()))))
    }

    fn edit<T>(
        &mut self,
        name: &str,
        json: &[u8],
        edit: impl FnOnce(&Writer, Given<'_>) -> Result<T>,
    ) -> Result<T> {
        let tape = Tape::parse(json, ParseOptions::default())?;
        self.change_document(name, |writer| edit(writer, Given::whole(&tape)))
    }

    /// Changes a document that exists.
    fn change_document<T>(
        &mut self,
        name: &str,
        change: impl FnOnce(&Writer) -> Result<T>,
    ) -> Result<T> {
        self.writer(name)?;
        let id = self.find(name)?.ok_or_else(|| no_document(name))?;
        self.change(id, change)
    }
}

/// The places that a path finds and that are in no other one of them; the last comes first, so
/// that removing it moves none of the others.
fn places(writer: &Writer, path: &JsonPath) -> Result<Vec<JsonPointer>> {
    let mut found = jsonpath::pointers(&writer.tree, writer.revision, path)?;
    found.sort_by_cached_key(|place| place.tokens().map(in_order).collect::<Vec<_>>());
    let mut places: Vec<JsonPointer> = Vec::with_capacity(found.len());
    for place in found {
        if places.last().is_none_or(|last| place.tokens_from(last).is_none()) {
            places.push(place);
        }
    }
    places.reverse();
    Ok(places)
}

/// A key that sorts tokens so that indexes rise.
fn in_order(token: &str) -> (Option<usize>, String) {
    let index = match ArrayIndex::parse(token) {
        Some(ArrayIndex::At(index)) => Some(index),
        _ => None,
    };
    (index, token.to_owned())
}
