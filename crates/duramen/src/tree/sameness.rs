//! Finds what of a new value is there already, by looking at both side by side.
//!
//! Comparing a stored value with a parsed one member by member takes a fraction of what printing
//! and hashing both takes, which aligning needs (benchmark V7p). So a long array that a put changed
//! here and there is compared place by place first, and only what differs is aligned.

use std::cell::Cell;

use crate::error::Result;
use crate::json::{Item, Tape, TapeIndex, number};
use crate::node::{NodeId, PathId};
use crate::state::{Datum, Extent, Sequence};
use crate::tree::compare::Elements;
use crate::tree::data::{TreeData, node};
use crate::tree::group::Fault;
use crate::tree::schema::Label;
use crate::tree::writer::Writer;

/// Elements compared while the tree's lock is held.
const ELEMENTS_AT_A_TIME: usize = 256;
/// Elements of an array from which on it is compared place by place.
const LONG_ELEMENTS: usize = 512;
/// One in so many elements may differ for their places to count.
const DIFFERENT_PART: usize = 8;

/// Whether values are the same, as far as looking at them tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sameness {
    Same,
    Different,
    /// Order blocks, or values stored apart or whole, would have to be read.
    Unknown,
}

impl Writer {
    /// Compares elements with those of the new value, place by place, until one is not the same;
    /// how many are.
    pub(crate) fn same_elements(
        &self,
        olds: &[NodeId],
        tape: &Tape<'_>,
        new: &[TapeIndex],
    ) -> Result<usize> {
        let mut from = 0;
        while let (Some(olds), Some(new)) = (olds.get(from..), new.get(from..)) {
            let many = olds.len().min(new.len()).min(ELEMENTS_AT_A_TIME);
            let same = self.sameness((&olds[..many], &new[..many]), tape, |sameness| {
                sameness == Sameness::Same
            })?;
            from += same;
            if same < many || many == 0 {
                break;
            }
        }
        Ok(from)
    }

    /// Makes elements those of the new value as [`Writer::put_aligned`] does, but keeps those that
    /// are the same at their places, if nearly all of many are; else nothing is done.
    pub(crate) fn put_in_place(
        &self,
        elements: Elements<'_>,
        olds: &[NodeId],
        new: &[TapeIndex],
    ) -> Result<Option<Vec<u64>>> {
        if olds.len() != new.len() || olds.len() < LONG_ELEMENTS {
            return Ok(None);
        }
        let mut is_same = Vec::with_capacity(olds.len());
        let mut different = 0;
        for (olds, new) in olds.chunks(ELEMENTS_AT_A_TIME).zip(new.chunks(ELEMENTS_AT_A_TIME)) {
            let found = Cell::new(Vec::with_capacity(olds.len()));
            self.sameness((olds, new), elements.tape, |sameness| {
                let mut all = found.take();
                all.push(sameness == Sameness::Same);
                found.set(all);
                true
            })?;
            let found = found.into_inner();
            different += found.iter().filter(|is_same| !**is_same).count();
            is_same.extend(found);
            if different > olds.len().max(is_same.len()) / DIFFERENT_PART + ELEMENTS_AT_A_TIME {
                return Ok(None);
            }
        }
        if different > olds.len() / DIFFERENT_PART {
            return Ok(None);
        }
        let mut ordinals = Vec::with_capacity(new.len());
        let mut at = 0;
        for run in is_same.chunk_by(|a, b| a == b) {
            let places = at..at + run.len();
            at = places.end;
            if run[0] {
                ordinals.extend(olds[places].iter().map(|old| old.ordinal().0));
            } else {
                ordinals.extend(self.put_aligned(elements, &olds[places.clone()], &new[places])?);
            }
        }
        Ok(Some(ordinals))
    }

    /// Tells of each pair whether it is the same, while `go_on` says so; of how many it did.
    fn sameness(
        &self,
        (olds, new): (&[NodeId], &[TapeIndex]),
        tape: &Tape<'_>,
        go_on: impl Fn(Sameness) -> bool,
    ) -> Result<usize> {
        // What was told before something had to be loaded stays told.
        let told = Cell::new(0);
        self.tree.read(|data| {
            while let (Some(&old), Some(&at)) = (olds.get(told.get()), new.get(told.get())) {
                let place = (old.path(), old.ordinal().0);
                let sameness = (Side { data, revision: self.revision, tape }).compare(place, at)?;
                if !go_on(sameness) {
                    break;
                }
                told.set(told.get() + 1);
            }
            Ok(told.get())
        })
    }
}

/// A stored state of a tree, and a parsed value to compare it with.
struct Side<'a> {
    data: &'a TreeData,
    revision: u32,
    tape: &'a Tape<'a>,
}

impl Side<'_> {
    fn compare(&self, (path, ordinal): (PathId, u64), at: TapeIndex) -> Result<Sameness, Fault> {
        let state = self.data.state(node(path, ordinal), self.revision)?;
        let is_same = match (state, self.tape.item(at)) {
            (Datum::Object(shape), Item::Object { len }) => {
                let fields = self.data.schema.shape(shape);
                if fields.len() != len as usize {
                    return Ok(Sameness::Different);
                }
                for (field, (name, value)) in fields.iter().zip(self.tape.fields(at)) {
                    let Item::Text { bytes, .. } = name else { return Ok(Sameness::Unknown) };
                    if self.data.schema.label(field.path) != Label::Field(bytes) {
                        return Ok(Sameness::Different);
                    }
                    let found = self.compare((field.path, ordinal), value)?;
                    if found != Sameness::Same {
                        return Ok(found);
                    }
                }
                true
            }
            (Datum::Array(Sequence::Extent(extent)), Item::Array { len }) => {
                return self.compare_elements((path, extent), at, len);
            }
            (Datum::Text { bytes, .. }, Item::Text { bytes: given, .. }) => bytes == given,
            (Datum::Bool(value), Item::Bool(given)) => value == given,
            (Datum::Null, Item::Null) => true,
            (Datum::Array(_) | Datum::Map(_) | Datum::Opaque(_) | Datum::Apart { .. }, _) => {
                return Ok(Sameness::Unknown);
            }
            (number, Item::Number(text)) => number::classify(text) == number,
            _ => false,
        };
        Ok(if is_same { Sameness::Same } else { Sameness::Different })
    }

    fn compare_elements(
        &self,
        (array, extent): (PathId, Extent),
        at: TapeIndex,
        len: u32,
    ) -> Result<Sameness, Fault> {
        if extent.count != len {
            return Ok(Sameness::Different);
        }
        let Some(path) = self.data.schema.path(array).element else {
            return Ok(Sameness::Unknown);
        };
        for (ordinal, at) in (extent.first..).zip(self.tape.elements(at)) {
            let found = self.compare((path, ordinal), at)?;
            if found != Sameness::Same {
                return Ok(found);
            }
        }
        Ok(Sameness::Same)
    }
}
