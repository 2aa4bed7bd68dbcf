//! Changes of one place of a tree, named by a JSON Pointer.

use crate::error::{Error, ErrorKind, Result};
use crate::json::{ArrayIndex, JsonPointer, ParseOptions, Tape, TapeIndex};
use crate::node::{NodeId, Ordinal, PathId};
use crate::order::{self, Item};
use crate::state::{ApartKind, Datum, Extent, Sequence, ShapeId};
use crate::tree::data::node;
use crate::tree::locate::{Place, not_found};
use crate::tree::compare::name_of;
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
        match self.tree.locate(&parent, self.revision)? {
            Place::Missing(_, depth) => Err(not_found(pointer, depth)),
            Place::Inside(at, depth) => {
                self.edit_opaque(at, (pointer, depth), &Change::Set(value))
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
                let index = index_of(token)
                    .ok_or_else(|| not_found(pointer, depth - 1))?;
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
        let path = self.tree.change(|data| {
            Ok(data.with_schema(|schema| schema.field_or_add(object.path(), name.as_bytes())))
        })?;
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
        let path = self.tree.change(|data| {
            Ok(data.with_schema(|schema| schema.entry_or_add(map.path())))
        })?;
        let path = path.ok_or_else(out_of_paths)?;
        let plain = crate::json::escape::is_plain(name.as_bytes());
        let item = self.item_or_bear((map, path), name.as_bytes(), plain)?;
        let child = self.item_node(map, true, item)?;
        let is_there = self.tree.read(|data| Ok(!data.state(child, self.revision)?.is_absent()))?;
        self.put(child, value, value.root())?;
        if is_there {
            return self.stage(map, Datum::Map(sequence));
        }
        let extent = match item {
            Item::Field(path) => Extent::field(path),
            Item::Ordinal(ordinal) => Extent { first: ordinal.0, count: 1 },
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
            let Some(Item::Ordinal(ordinal)) = order::get(&&self.tree.orders, sequence, index)?
            else {
                return Err(not_found(pointer, 0));
            };
            let element = self.item_node(array, false, Item::Ordinal(ordinal))?;
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
        let path = self.tree.change(|data| {
            Ok(data.with_schema(|schema| schema.element_or_add(array.path())))
        })?;
        path.ok_or_else(out_of_paths)
    }

    /// The item of a map that a child of it is.
    fn item_of(&self, map: NodeId, child: NodeId) -> Item {
        let entry = self.tree.data.read().schema.path(map.path()).entry;
        if entry == Some(child.path()) {
            Item::Ordinal(Ordinal(child.ordinal().0))
        } else {
            Item::Field(child.path())
        }
    }

    // ---- subtrees stored whole -----------------------------------------------------------

    fn is_opaque(&self, at: NodeId) -> Result<bool> {
        self.tree.read(|data| {
            let state = data.state(at, self.revision)?;
            Ok(matches!(state, Datum::Opaque(_) | Datum::Apart { kind: ApartKind::Opaque, .. }))
        })
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
    let is_removed = rest.is_empty() && matches!(change, Change::Remove);
    let mut found = false;
    let mut first = true;
    let mut separate = |out: &mut Vec<u8>| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
    };
    match tape.item(at) {
        crate::json::Item::Object { .. } => {
            out.push(b'{');
            for (name, value) in tape.fields(at) {
                let (name, plain) = name_of(name);
                let is_it = name == token.as_bytes();
                found |= is_it;
                if is_it && is_removed {
                    continue;
                }
                separate(out);
                crate::json::escape::write_text(name, plain, out);
                out.push(b':');
                if is_it {
                    write_changed(tape, value, (rest, change), out)?;
                } else {
                    tape.write(value, out);
                }
            }
            if let (false, [], Change::Set(value)) = (found, rest, change) {
                separate(out);
                let plain = crate::json::escape::is_plain(token.as_bytes());
                crate::json::escape::write_text(token.as_bytes(), plain, out);
                out.push(b':');
                value.write(value.root(), out);
                found = true;
            }
            out.push(b'}');
        }
        crate::json::Item::Array { len } => {
            let len = u64::from(len);
            let index =
                if token == "-" { Some(len) } else { index_of(token) }?;
            out.push(b'[');
            for (number, value) in (0..).zip(tape.elements(at)) {
                let is_it = number == index;
                found |= is_it;
                if is_it && is_removed {
                    continue;
                }
                separate(out);
                if is_it {
                    write_changed(tape, value, (rest, change), out)?;
                } else {
                    tape.write(value, out);
                }
            }
            if let (true, [], Change::Set(value)) = (index == len, rest, change) {
                separate(out);
                value.write(value.root(), out);
                found = true;
            }
            out.push(b']');
        }
        _ => return None,
    }
    found.then_some(())
}

fn out_of_paths() -> Error {
    let message = "the document has 65,536 paths: nothing new can be named in this object or array; \
                   put the object or array as a whole";
    Error::new(ErrorKind::Full, message)
}
