//! Changes of one place of a tree, named by a JSON Pointer.

use crate::error::{Error, ErrorKind, Result};
use crate::json::{ArrayIndex, Item, JsonPointer, ParseOptions, Tape, TapeIndex, escape};
use crate::node::{NodeId, Ordinal, PathId};
use crate::order;
use crate::state::{ApartKind, Datum, Extent, Sequence, ShapeId};
use crate::tree::compare::{check_member_name, name_of};
use crate::tree::data::node;
use crate::tree::locate::{Place, not_found};
use crate::tree::writer::{Prior, Writer};

/// What happens at a place inside a subtree stored whole.
enum Change<'a> {
    Set(&'a Tape<'a>),
    Remove,
}

impl Writer {
    /// Sets what a pointer names: replaces the value there, adds a field to an object, or adds
    /// an element at the end of an array (`-`, or the index after the last).
    pub(crate) fn set(&self, pointer: &JsonPointer, value: &Tape<'_>) -> Result<()> {
        let Some((parent, token)) = split_last(pointer) else { return self.put_root(value) };
        check_member_name(token.as_bytes())?;
        match self.tree.locate(&parent, self.revision)? {
            Place::Missing(_, depth) => Err(not_found(pointer, depth)),
            Place::Inside(at, depth) => self.edit_opaque(at, (pointer, depth), &Change::Set(value)),
            Place::Node(parent) if !self.has_room(parent, token)? => {
                self.store_whole(parent)?;
                let depth = pointer.tokens().len() - 1;
                self.edit_opaque(parent, (pointer, depth), &Change::Set(value))
            }
            Place::Node(parent) => match self.prior(parent)?.0 {
                Prior::Object(shape) => self.set_field((parent, shape), token, value),
                Prior::Map(sequence) => self.set_entry((parent, sequence), token, value),
                Prior::Array(sequence) => {
                    self.set_element((parent, sequence), (pointer, token), value)
                }
                Prior::Never | Prior::Scalar => {
                    let depth = pointer.tokens().count() - 1;
                    if self.is_opaque(parent)? {
                        return self.edit_opaque(parent, (pointer, depth), &Change::Set(value));
                    }
                    Err(not_found(pointer, depth))
                }
            },
        }
    }

    /// Removes what a pointer names; elements behind it move up.
    pub(crate) fn remove(&self, pointer: &JsonPointer) -> Result<()> {
        let Some((parent, token)) = split_last(pointer) else {
            let message = "the root cannot be removed: remove a member of it, or put a new value";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let depth = pointer.tokens().count();
        let at = match self.tree.locate(pointer, self.revision)? {
            Place::Missing(_, depth) => return Err(not_found(pointer, depth)),
            Place::Inside(at, depth) => {
                return self.edit_opaque(at, (pointer, depth), &Change::Remove);
            }
            Place::Node(at) => at,
        };
        let Place::Node(parent) = self.tree.locate(&parent, self.revision)? else {
            return Err(not_found(pointer, depth - 1));
        };
        match self.prior(parent)?.0 {
            Prior::Object(shape) => {
                let mut paths = self.shape_paths(shape)?;
                paths.retain(|&path| path != at.path());
                let shape = self.shape(&paths)?;
                self.stage(parent, Datum::Object(shape))?;
            }
            Prior::Map(sequence) => {
                let item = self.item_of(parent, at);
                let index = self.items(sequence)?.iter().position(|&other| other == item);
                let index = index.ok_or_else(|| not_found(pointer, depth - 1))? as u64;
                let sequence = self.splice(sequence, (index, 1), &[])?;
                self.stage(parent, Datum::Map(sequence))?;
            }
            Prior::Array(sequence) => {
                let index = index_of(token).ok_or_else(|| not_found(pointer, depth - 1))?;
                let sequence = self.splice(sequence, (index, 1), &[])?;
                self.stage(parent, Datum::Array(sequence))?;
            }
            Prior::Never | Prior::Scalar => return Err(not_found(pointer, depth - 1)),
        }
        self.erase(at)
    }

    fn set_field(
        &self,
        (object, shape): (NodeId, ShapeId),
        name: &str,
        value: &Tape<'_>,
    ) -> Result<()> {
        let path = self.field_path(object.path(), name.as_bytes())?;
        let mut paths = self.shape_paths(shape)?;
        let Some(path) = path else {
            let items: Vec<Extent> = paths.into_iter().map(Extent::field).collect();
            let sequence = self.splice(Sequence::EMPTY, (0, 0), &items)?;
            return self.set_entry((object, sequence), name, value);
        };
        self.put(node(path, object.ordinal().0), value, value.root())?;
        if !paths.contains(&path) {
            paths.push(path);
            let shape = self.shape(&paths)?;
            self.stage(object, Datum::Object(shape))?;
        }
        Ok(())
    }

    fn set_entry(
        &self,
        (map, sequence): (NodeId, Sequence),
        name: &str,
        value: &Tape<'_>,
    ) -> Result<()> {
        let path = self.tree.change(|data| Ok(data.entry_or_add(map.path())))?;
        let path = path.ok_or_else(|| no_room(map))?;
        let plain = escape::is_plain(name.as_bytes());
        let item = self.item_or_bear((map, path), name.as_bytes(), plain)?;
        let child = self.item_node(map, true, item)?;
        let is_there = self.tree.read(|data| Ok(!data.state(child, self.revision)?.is_absent()))?;
        self.put(child, value, value.root())?;
        if is_there {
            return self.stage(map, Datum::Map(sequence));
        }
        let extent = match item {
            order::Item::Field(path) => Extent::field(path),
            order::Item::Ordinal(ordinal) => Extent { first: ordinal.0, count: 1 },
        };
        let end = order::len(&&self.tree.orders, sequence)?;
        let sequence = self.splice(sequence, (end, 0), &[extent])?;
        self.stage(map, Datum::Map(sequence))
    }

    fn set_element(
        &self,
        (array, sequence): (NodeId, Sequence),
        (pointer, token): (&JsonPointer, &str),
        value: &Tape<'_>,
    ) -> Result<()> {
        let len = order::len(&&self.tree.orders, sequence)?;
        let index = if token == "-" { Some(len) } else { index_of(token) };
        let Some(index) = index.filter(|&index| index <= len) else {
            let message = format!(
                "\"{pointer}\" is not there: the array has {len} elements; use an index up to \
                 {len}, or \"-\" to add one at the end"
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        if index < len {
            let Some(order::Item::Ordinal(ordinal)) =
                order::get(&&self.tree.orders, sequence, index)?
            else {
                return Err(not_found(pointer, 0));
            };
            let element = self.item_node(array, false, order::Item::Ordinal(ordinal))?;
            return self.put(element, value, value.root());
        }
        let path = self.element_path(array)?;
        let ordinal = self.tree.change(|data| {
            let space = data.schema.path(path).space;
            data.bear(space, array.ordinal().0, None)
        })?;
        self.put(node(path, ordinal), value, value.root())?;
        let extent = Extent { first: ordinal, count: 1 };
        let sequence = self.splice(sequence, (len, 0), &[extent])?;
        self.stage(array, Datum::Array(sequence))
    }

    fn element_path(&self, array: NodeId) -> Result<PathId> {
        let path = self.tree.change(|data| Ok(data.element_or_add(array.path())))?;
        path.ok_or_else(|| no_room(array))
    }

    /// The item of a map that a child of it is.
    fn item_of(&self, map: NodeId, child: NodeId) -> order::Item {
        let entry = self.tree.data.read().schema.path(map.path()).entry;
        if entry == Some(child.path()) {
            order::Item::Ordinal(Ordinal(child.ordinal().0))
        } else {
            order::Item::Field(child.path())
        }
    }

    fn is_opaque(&self, at: NodeId) -> Result<bool> {
        self.tree.read(|data| {
            let state = data.state(at, self.revision)?;
            Ok(matches!(state, Datum::Opaque(_) | Datum::Apart { kind: ApartKind::Opaque, .. }))
        })
    }

    /// Whether an array or object can get a member of this name, now that paths are numbered.
    fn has_room(&self, container: NodeId, token: &str) -> Result<bool> {
        self.tree.read(|data| {
            let (schema, path) = (&data.schema, container.path());
            let info = schema.path(path);
            Ok(!schema.is_full()
                || match data.state(container, self.revision)? {
                    Datum::Array(_) => info.element.is_some(),
                    Datum::Object(_) | Datum::Map(_) => {
                        info.entry.is_some() || schema.field(path, token.as_bytes()).is_some()
                    }
                    _ => true,
                })
        })
    }

    /// Makes an array or object a subtree stored whole, for want of paths.
    fn store_whole(&self, container: NodeId) -> Result<()> {
        let mut text = Vec::new();
        let root = (container, self.revision);
        self.tree.append_json(root, &crate::Format::default(), &mut text)?;
        self.erase_children(container)?;
        self.stage_bytes(container, ApartKind::Opaque, &text)
    }

    fn edit_opaque(
        &self,
        at: NodeId,
        (pointer, depth): (&JsonPointer, usize),
        change: &Change<'_>,
    ) -> Result<()> {
        let mut text = Vec::new();
        self.tree.append_json((at, self.revision), &crate::Format::default(), &mut text)?;
        let tape = Tape::parse(&text, ParseOptions::default())?;
        let tokens: Vec<&str> = pointer.tokens().skip(depth).collect();
        let mut edited = Vec::with_capacity(text.len());
        write_changed(&tape, tape.root(), (&tokens, change), &mut edited)
            .ok_or_else(|| not_found(pointer, depth))?;
        self.stage_bytes(at, ApartKind::Opaque, &edited)
    }
}

/// The pointer to the container and the last token; none for the root.
fn split_last(pointer: &JsonPointer) -> Option<(JsonPointer, &str)> {
    Some((pointer.parent()?, pointer.last()?))
}

/// The index of an element that is there.
fn index_of(token: &str) -> Option<u64> {
    match ArrayIndex::parse(token)? {
        ArrayIndex::At(index) => Some(index as u64),
        ArrayIndex::End => None,
    }
}

/// Prints a value with one place in it changed; none if the place is not there.
fn write_changed(
    tape: &Tape<'_>,
    at: TapeIndex,
    (tokens, change): (&[&str], &Change<'_>),
    out: &mut Vec<u8>,
) -> Option<()> {
    let Some((&token, rest)) = tokens.split_first() else {
        let Change::Set(value) = change else { return None };
        value.write(value.root(), out);
        return Some(());
    };
    let mut members = Members { tape, rest, change, found: false, is_first: true };
    match tape.item(at) {
        Item::Object { .. } => {
            out.push(b'{');
            for (name, value) in tape.fields(at) {
                let (name, plain) = name_of(name);
                let is_it = name == token.as_bytes();
                members.write(is_it, value, out, |out| write_name(name, plain, out))?;
            }
            members.write_new(true, out, |out| {
                let name = token.as_bytes();
                write_name(name, escape::is_plain(name), out);
            });
            out.push(b'}');
        }
        Item::Array { len } => {
            let len = u64::from(len);
            let index = if token == "-" { len } else { index_of(token)? };
            out.push(b'[');
            for (number, value) in (0..).zip(tape.elements(at)) {
                members.write(number == index, value, out, |_| {})?;
            }
            members.write_new(index == len, out, |_| {});
            out.push(b']');
        }
        _ => return None,
    }
    members.found.then_some(())
}

fn write_name(name: &[u8], plain: bool, out: &mut Vec<u8>) {
    escape::write_text(name, plain, out);
    out.push(b':');
}

/// The members of one array or object while it is printed with a change below it.
struct Members<'a> {
    tape: &'a Tape<'a>,
    /// The tokens below the member that the change is at or in.
    rest: &'a [&'a str],
    change: &'a Change<'a>,
    found: bool,
    is_first: bool,
}

impl Members<'_> {
    /// Prints a member, changed if it is the one; none if the place is not in it.
    fn write(
        &mut self,
        is_it: bool,
        value: TapeIndex,
        out: &mut Vec<u8>,
        name: impl FnOnce(&mut Vec<u8>),
    ) -> Option<()> {
        self.found |= is_it;
        if is_it && self.rest.is_empty() && matches!(self.change, Change::Remove) {
            return Some(());
        }
        self.separate(out);
        name(out);
        if is_it {
            return write_changed(self.tape, value, (self.rest, self.change), out);
        }
        self.tape.write(value, out);
        Some(())
    }

    /// Prints the new member at the end, if the change is one and it has its place there.
    fn write_new(&mut self, is_at_end: bool, out: &mut Vec<u8>, name: impl FnOnce(&mut Vec<u8>)) {
        let ([], Change::Set(value), false, true) = (self.rest, self.change, self.found, is_at_end)
        else {
            return;
        };
        self.separate(out);
        name(out);
        value.write(value.root(), out);
        self.found = true;
    }

    fn separate(&mut self, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.is_first) {
            out.push(b',');
        }
    }
}

/// Whether there is room has been asked before.
fn no_room(container: NodeId) -> Error {
    Error::new(ErrorKind::Internal, format!("{container} has no path for what it is to hold"))
}
