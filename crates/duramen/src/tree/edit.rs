//! Changes of single places of a tree.
//!
//! All of them come down to three: a value is put where one is, members of an array or object make
//! way for new ones (`splice`), and a member goes to another place among them (`shift`). Each
//! knows the forms that members are kept in: a shape, the order of a map or array, and the text of
//! a subtree stored whole.
//!
//! Invariant: what is not there or not allowed is found out before anything is staged.

use crate::error::{Error, ErrorKind, Result};
use crate::json::{ArrayIndex, JsonPointer, Tape, TapeIndex};
use crate::limits::JSON_DEPTH_MAX;
use crate::tree::compare::check_member_name;
use crate::tree::locate::Place;
use crate::tree::serialize::Format;
use crate::tree::writer::Writer;

mod ahead;
mod holder;
mod inside;
mod members;
mod moves;
mod place;
mod relocate;
mod undo;

pub(crate) use ahead::Ahead;
use holder::{Form, Holder};

/// A value of a text that was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'t> {
    pub(crate) tape: &'t Tape<'t>,
    pub(crate) at: TapeIndex,
}

/// A new member: an element, or with a name a field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct New<'t> {
    pub(crate) name: Option<&'t str>,
    pub(crate) value: Given<'t>,
}

/// A range of members: the first one, and how many.
type Range = (u64, u64);

impl<'t> Given<'t> {
    /// All of a text.
    pub(crate) fn whole(tape: &'t Tape<'t>) -> Self {
        Self { tape, at: tape.root() }
    }
}

impl Writer {
    /// Sets what a pointer names: replaces the value there, adds a field to an object, or adds
    /// an element at the end of an array (`-`, or the index after the last).
    pub(crate) fn set(&self, pointer: &JsonPointer, value: Given<'_>) -> Result<()> {
        check_depth(pointer, value)?;
        if self.put_at(pointer, value)? {
            return Ok(());
        }
        let Some((container, token)) = split_last(pointer) else {
            return self.put(self.root()?, value.tape, value.at);
        };
        let holder = self.holder_of(pointer, &container)?;
        if holder.is_object {
            let new = New { name: Some(token), value };
            return self.splice((&container, holder), (holder.len, 0), &[new]);
        }
        if token != "-" && index_of(token) != Some(holder.len) {
            return Err(no_element(pointer, holder.len));
        }
        self.splice((&container, holder), (holder.len, 0), &[New { name: None, value }])
    }

    /// Sets what a pointer names, which has to be there.
    pub(crate) fn replace(&self, pointer: &JsonPointer, value: Given<'_>) -> Result<()> {
        check_depth(pointer, value)?;
        if self.put_at(pointer, value)? {
            return Ok(());
        }
        Err(self.missing(pointer))
    }

    /// Adds a value as JSON Patch does: a field is set, an element moves those behind it up.
    pub(crate) fn add(&self, pointer: &JsonPointer, value: Given<'_>) -> Result<()> {
        let Some((container, token)) = split_last(pointer) else { return self.set(pointer, value) };
        let holder = self.holder_of(pointer, &container)?;
        if holder.is_object {
            return self.set(pointer, value);
        }
        check_depth(pointer, value)?;
        let index = if token == "-" { Some(holder.len) } else { index_of(token) };
        let index = index.filter(|&index| index <= holder.len);
        let index = index.ok_or_else(|| no_element(pointer, holder.len))?;
        self.splice((&container, holder), (index, 0), &[New { name: None, value }])
    }

    /// Removes what a pointer names; elements behind it move up.
    pub(crate) fn remove(&self, pointer: &JsonPointer) -> Result<()> {
        let Some((container, token)) = split_last(pointer) else {
            let message = "the root cannot be removed: remove a member of it, or put a new value";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let holder = self.holder_of(pointer, &container)?;
        let index = self.index((&container, holder), token)?;
        let index = index.ok_or_else(|| self.missing(pointer))?;
        self.splice((&container, holder), (index, 1), &[])
    }

    /// Whether a pointer names anything.
    pub(crate) fn is_there(&self, pointer: &JsonPointer) -> Result<bool> {
        Ok(match self.tree.locate(pointer, self.revision)? {
            Place::Node(_) => true,
            Place::Missing(..) => false,
            Place::Inside(node, depth) => self.read_inside(node, |tape| {
                let mut at = Some(tape.root());
                for token in pointer.tokens().skip(depth) {
                    at = at.and_then(|at| tape.child(at, token));
                }
                Ok(at.is_some())
            })?,
        })
    }

    /// Whether a pointer names an object.
    pub(crate) fn is_object(&self, pointer: &JsonPointer) -> Result<bool> {
        match self.holder(pointer) {
            Ok(holder) => Ok(holder.is_object),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What a pointer names, as compact JSON.
    pub(crate) fn text(&self, pointer: &JsonPointer) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        match self.tree.locate(pointer, self.revision)? {
            Place::Node(node) => {
                self.tree.append_json((node, self.revision), &Format::default(), &mut text)?;
            }
            Place::Inside(node, depth) => {
                let root = (node, self.revision);
                let format = Format::default();
                self.tree.append_inside(root, (pointer, depth), &format, &mut text)?;
            }
            Place::Missing(node, depth) => {
                return Err(self.tree.missing(pointer, (node, depth), self.revision));
            }
        }
        Ok(text)
    }

    /// Puts a value where one is; whether there is one.
    fn put_at(&self, pointer: &JsonPointer, value: Given<'_>) -> Result<bool> {
        match self.tree.locate(pointer, self.revision)? {
            Place::Missing(..) => Ok(false),
            Place::Node(node) => self.put(node, value.tape, value.at).map(|()| true),
            Place::Inside(node, depth) => {
                let Some((container, token)) = split_last(pointer) else { return Ok(false) };
                let holder = self.holder_inside((node, depth), &container)?;
                let Some(index) = self.index((&container, holder), token)? else {
                    return Ok(false);
                };
                let change = inside::Change::Put(index, value);
                self.edit_inside((node, depth), &container, change).map(|()| true)
            }
        }
    }

    /// The error for a pointer that names nothing.
    fn missing(&self, pointer: &JsonPointer) -> Error {
        match self.text(pointer) {
            Err(error) => error,
            Ok(_) => Error::new(ErrorKind::Internal, format!("\"{pointer}\" was not found")),
        }
    }

    /// Replaces members of an array or object by new ones.
    fn splice(
        &self,
        (container, holder): (&JsonPointer, Holder),
        range: Range,
        new: &[New<'_>],
    ) -> Result<()> {
        new.iter().filter_map(|new| new.name).try_for_each(|n| check_member_name(n.as_bytes()))?;
        let is_done = match holder.form {
            Form::Array(sequence) => self.splice_array((holder.node, sequence), range, new)?,
            Form::Object(shape) => self.splice_object((holder.node, shape), range, new)?,
            Form::Map(sequence) => self.splice_map((holder.node, sequence), range, new)?,
            Form::Inside { .. } => false,
        };
        if is_done {
            return Ok(());
        }
        self.change_inside((container, holder), inside::Change::Splice(range, new))
    }

    /// Moves one member of an array or object to another place among them: `to` counts without it.
    fn shift(&self, (container, holder): (&JsonPointer, Holder), from: u64, to: u64) -> Result<()> {
        let is_done = match holder.form {
            Form::Array(sequence) | Form::Map(sequence) => {
                let is_map = matches!(holder.form, Form::Map(_));
                self.shift_item((holder.node, sequence), is_map, (from, to))?
            }
            Form::Object(shape) => self.shift_field((holder.node, shape), (from, to))?,
            Form::Inside { .. } => false,
        };
        if is_done {
            return Ok(());
        }
        self.change_inside((container, holder), inside::Change::Shift(from, to))
    }

    /// Changes the members of what is, or for want of paths becomes, a part of a subtree stored
    /// whole.
    fn change_inside(
        &self,
        (container, holder): (&JsonPointer, Holder),
        change: inside::Change<'_>,
    ) -> Result<()> {
        let depth = if let Form::Inside { depth } = holder.form {
            depth
        } else {
            self.store_whole(holder.node)?;
            container.tokens().len()
        };
        self.edit_inside((holder.node, depth), container, change)
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

fn no_element(pointer: &JsonPointer, len: u64) -> Error {
    let message = format!(
        "\"{pointer}\" is not there: the array has {len} elements; use an index up to {len}, or \
         \"-\" to add one at the end"
    );
    Error::new(ErrorKind::NotFound, message)
}

/// Refuses to nest a value so deep in a document that the document could not be read back.
fn check_depth(pointer: &JsonPointer, value: Given<'_>) -> Result<()> {
    let depth = pointer.tokens().len() + value.tape.depth(value.at);
    if depth <= JSON_DEPTH_MAX {
        return Ok(());
    }
    let message =
        format!("the document would be {depth} levels deep: at most {JSON_DEPTH_MAX} are kept");
    Err(Error::new(ErrorKind::Invalid, message))
}
