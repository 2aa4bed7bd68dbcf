//! Makes many nodes the values of a parsed text, place by place.
//!
//! What differs in columns is found under one lock, which readers share, and staged under another:
//! value by value both take several times as long (benchmark V7p). What needs more than a column,
//! such as an array whose elements may have moved, a long text, or an object with other members, is
//! put by itself, and so is what a large value has behind so many nodes.

use std::sync::Arc;

use super::{Sameness, Side};
use crate::error::Result;
use crate::json::equality::are_equal;
use crate::json::{Item, ParseOptions, Tape, TapeIndex};
use crate::node::{NodeId, PathId};
use crate::state::{Datum, Extent, Sequence};
use crate::tree::compare::inline;
use crate::tree::data::node;
use crate::tree::group::Fault;
use crate::tree::schema::{Label, ShapeField};
use crate::tree::serialize::Format;
use crate::tree::writer::Writer;

/// Nodes that are compared, and then staged, under one lock.
const NODES_AT_A_TIME: usize = 128;
/// Elements of arrays up to which each is compared with each, to know that none has moved.
const FEW_ELEMENTS: u32 = 8;

/// What differs of some values.
#[derive(Default)]
struct Differences<'t> {
    /// The states that nodes are to have instead of theirs.
    states: Vec<(NodeId, Datum<'t>)>,
    /// Values to be put by themselves.
    rest: Vec<(NodeId, TapeIndex)>,
}

impl Differences<'_> {
    fn len(&self) -> (usize, usize) {
        (self.states.len(), self.rest.len())
    }

    fn truncate(&mut self, (states, rest): (usize, usize)) {
        self.states.truncate(states);
        self.rest.truncate(rest);
    }
}

impl Writer {
    /// Makes each of some nodes the value that stands at the same place in `new`; what is equal
    /// already stays.
    pub(crate) fn put_each(
        &self,
        nodes: &[NodeId],
        tape: &Tape<'_>,
        new: &[TapeIndex],
    ) -> Result<()> {
        let mut found = Differences::default();
        for (nodes, new) in nodes.chunks(NODES_AT_A_TIME).zip(new.chunks(NODES_AT_A_TIME)) {
            found.truncate((0, 0));
            self.find_differences((nodes, new), tape, &mut found)?;
            self.put_found(&found, tape)?;
        }
        Ok(())
    }

    /// Makes an object the value at `at`, if it has members of the same names in the same order;
    /// whether it has.
    pub(crate) fn put_members(
        &self,
        object: NodeId,
        tape: &Tape<'_>,
        at: TapeIndex,
    ) -> Result<bool> {
        let mut found = Differences::default();
        self.find_differences((&[object], &[at]), tape, &mut found)?;
        if found.rest.first() == Some(&(object, at)) {
            return Ok(false);
        }
        self.put_found(&found, tape)?;
        Ok(true)
    }

    /// Makes an object the value at `at`, unless the two differ in the order of members alone.
    pub(crate) fn put_unordered(
        &self,
        object: NodeId,
        tape: &Tape<'_>,
        at: TapeIndex,
    ) -> Result<()> {
        let mut found = Differences::default();
        self.find_differences((&[object], &[at]), tape, &mut found)?;
        // Where members come in another order, an object is to be put by itself. Most often none
        // is, and the whole value need not be read.
        if found.rest.is_empty() {
            return self.put_found(&found, tape);
        }
        if self.is_reordered(object, tape, at)? { Ok(()) } else { self.put(object, tape, at) }
    }

    /// Whether a value that is there and another one differ in the order of members at most.
    fn is_reordered(&self, object: NodeId, tape: &Tape<'_>, at: TapeIndex) -> Result<bool> {
        let (mut stored, mut given) = (Vec::new(), Vec::new());
        self.tree.append_json((object, self.revision), &Format::default(), &mut stored)?;
        tape.write(at, &mut given);
        // What is the same in another order is as long.
        if stored.len() != given.len() {
            return Ok(false);
        }
        let stored = Tape::parse(&stored, ParseOptions::default())?;
        Ok(are_equal((&stored, stored.root()), (tape, at)))
    }

    fn put_found(&self, found: &Differences<'_>, tape: &Tape<'_>) -> Result<()> {
        if !found.states.is_empty() {
            self.tree.data.write().stage_changed(&found.states)?;
        }
        for &(node, at) in &found.rest {
            self.put(node, tape, at)?;
        }
        Ok(())
    }

    fn find_differences<'t>(
        &self,
        (nodes, new): (&[NodeId], &[TapeIndex]),
        tape: &'t Tape<'_>,
        found: &mut Differences<'t>,
    ) -> Result<()> {
        let options = self.options.as_deref();
        // What was found before something had to be loaded stays found.
        let mut done = 0;
        self.tree.read(|data| {
            data.kept.check(self.revision)?;
            let schema = Arc::clone(&data.schema);
            let has_ids =
                |path| options.is_some_and(|options| options.id_field(&schema, path).is_some());
            let side = match nodes {
                [_] => Side::of_one(data, self.revision, tape),
                _ => Side::new(data, self.revision, tape),
            };
            let mut updates = Updates { side, has_ids: &has_ids, found: &mut *found };
            while let (Some(&node), Some(&at)) = (nodes.get(done), new.get(done)) {
                let before = updates.found.len();
                let place = (node.path(), node.ordinal().0);
                updates.side.begin_value();
                if let Err(fault) = updates.compare(place, at) {
                    updates.found.truncate(before);
                    return Err(fault);
                }
                done += 1;
            }
            Ok(())
        })
    }
}

/// Finds what differs.
struct Updates<'a, 'f, 't> {
    side: Side<'a, 't>,
    /// Whether the elements of arrays at a path are told apart by a field.
    has_ids: &'f dyn Fn(PathId) -> bool,
    found: &'f mut Differences<'t>,
}

impl Updates<'_, '_, '_> {
    fn compare(&mut self, (path, ordinal): (PathId, u64), at: TapeIndex) -> Result<(), Fault> {
        if !self.side.has_room() {
            self.found.rest.push((node(path, ordinal), at));
            return Ok(());
        }
        let state = self.side.state(path, ordinal)?;
        let given = self.side.tape.item(at);
        if let Some(new) = inline(&given) {
            match state {
                // What is not there may have been an array or object before.
                Datum::Absent | Datum::Object(_) | Datum::Array(_) | Datum::Map(_) => {}
                state if state == new => return Ok(()),
                _ => {
                    self.found.states.push((node(path, ordinal), new));
                    return Ok(());
                }
            }
        }
        match (state, given) {
            (Datum::Object(shape), Item::Object { .. }) => {
                let fields = self.side.data.schema.shape(shape);
                if self.has_names(fields, at) {
                    let tape = self.side.tape;
                    let mut pairs = fields.iter().zip(tape.fields(at));
                    return pairs.try_for_each(|(field, (_, value))| {
                        self.compare((field.path, ordinal), value)
                    });
                }
            }
            (Datum::Array(Sequence::Extent(extent)), Item::Array { len })
                if extent.count == len && self.compare_elements(path, extent, at)? =>
            {
                return Ok(());
            }
            _ => {}
        }
        self.found.rest.push((node(path, ordinal), at));
        Ok(())
    }

    /// Whether an object has members of the names, and in the order, that fields have.
    fn has_names(&self, fields: &[ShapeField], at: TapeIndex) -> bool {
        let (schema, given) = (&self.side.data.schema, self.side.tape.fields(at));
        fields.len() == given.len()
            && fields.iter().zip(given).all(|(field, (name, _))| {
                let Item::Text { bytes, .. } = name else { return false };
                schema.label(field.path) == Label::Field(bytes)
            })
    }

    /// Compares the elements of an array with as many others; false, with nothing found, if one may
    /// have moved.
    fn compare_elements(
        &mut self,
        array: PathId,
        extent: Extent,
        at: TapeIndex,
    ) -> Result<bool, Fault> {
        let Some(path) = self.side.data.schema.path(array).element else { return Ok(false) };
        let tape = self.side.tape;
        if extent.count > FEW_ELEMENTS || (self.has_ids)(array) {
            let same = self.side.compare_elements((array, extent), at, extent.count)?;
            return Ok(same == Sameness::Same);
        }
        for (old, ordinal) in (extent.first..).take(extent.count as usize).enumerate() {
            let others = tape.elements(at).enumerate().filter(|(new, _)| *new != old);
            for (_, value) in others {
                if self.side.compare((path, ordinal), value)? != Sameness::Different {
                    return Ok(false);
                }
            }
        }
        let mut pairs = (extent.first..).zip(tape.elements(at));
        pairs.try_for_each(|(ordinal, value)| self.compare((path, ordinal), value))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
