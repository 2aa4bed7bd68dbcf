//! Prints items of an array or a map one after the other, by their columns.
//!
//! Items that were made together stand side by side: their states are read from strips. What an
//! item needs more for (order blocks, a value that stands apart, much room) is left to the
//! serializer, which prints that one item.

use crate::json::escape;
use crate::limits::ORDINALS_MAX;
use crate::node::PathId;
use crate::state::{Datum, Extent, Sequence, ShapeId};
use crate::tree::data::TreeData;
use crate::tree::group::Fault;
use crate::tree::serialize::{Items, print_scalar};
use crate::tree::strips::Strips;

/// Levels of one item that are printed: the printer calls itself for each.
const LEVELS_MAX: usize = 16;
/// Bytes of one item that are printed beyond what there is room for.
const ITEM_BYTES_MAX: usize = 16 << 10;

/// Prints items as of one revision.
pub(crate) struct ItemPrinter<'a> {
    data: &'a TreeData,
    strips: Strips<'a>,
    /// Why a state could not be read.
    fault: Option<Fault>,
}

/// Where an item goes, and how many bytes there may be in the end.
type Out<'o> = (&'o mut Vec<u8>, usize);

impl<'a> ItemPrinter<'a> {
    pub(crate) fn new(data: &'a TreeData, revision: u32) -> Self {
        Self { data, strips: Strips::new(data, revision), fault: None }
    }

    /// Prints the next item. False, with nothing printed, if that takes more than columns.
    pub(super) fn print(
        &mut self,
        items: &Items,
        is_first: bool,
        (out, limit): (&mut Vec<u8>, usize),
    ) -> Result<bool, Fault> {
        let before = out.len();
        let is_printed = self.item(items, is_first, (out, limit.saturating_add(ITEM_BYTES_MAX)));
        if !is_printed {
            out.truncate(before);
        }
        self.fault.take().map_or(Ok(is_printed), Err)
    }

    /// Prints the elements of an array that are consecutive ordinals, with so many levels at most.
    /// False if they cannot be printed, or because of a [fault](Self::take_fault).
    pub(crate) fn print_elements(
        &mut self,
        elements: (PathId, Extent),
        levels: usize,
        out: Out<'_>,
    ) -> bool {
        self.elements(elements, levels, out)
    }

    /// Why a state could not be read.
    pub(crate) fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    fn item(&mut self, items: &Items, is_first: bool, (out, most): Out<'_>) -> bool {
        let (path, ordinal) = items.next();
        if !self.data.schema.has_path(path) || ordinal >= ORDINALS_MAX {
            return false;
        }
        if !is_first {
            out.push(b',');
        }
        if items.is_map {
            let space = self.data.schema.path(path).space;
            match self.strips.key(space, ordinal) {
                Ok(Datum::Text { bytes, plain }) => escape::write_text(bytes, plain, out),
                Ok(_) => return false,
                Err(fault) => return self.fail(fault),
            }
            out.push(b':');
        }
        self.value((path, ordinal), LEVELS_MAX, (out, most))
    }

    #[cold]
    fn fail(&mut self, fault: Fault) -> bool {
        self.fault = Some(fault);
        false
    }

    /// Prints a value with so many levels at most. False if it cannot be printed.
    #[inline]
    fn value(
        &mut self,
        (path, ordinal): (PathId, u64),
        levels: usize,
        (out, most): Out<'_>,
    ) -> bool {
        let state = match self.strips.at_hand(path, ordinal) {
            Some(state) => *state,
            None => match self.strips.find(path, ordinal) {
                Ok(state) => state,
                Err(fault) => return self.fail(fault),
            },
        };
        if print_scalar(state, out) {
            return out.len() <= most;
        }
        match state {
            Datum::Object(shape) => self.fields((shape, ordinal), levels, (out, most)),
            Datum::Array(Sequence::Extent(extent)) => {
                self.elements((path, extent), levels, (out, most))
            }
            _ => false,
        }
    }

    fn fields(
        &mut self,
        (shape, ordinal): (ShapeId, u64),
        levels: usize,
        (out, most): Out<'_>,
    ) -> bool {
        let Some(below) = levels.checked_sub(1) else { return false };
        let schema = &self.data.schema;
        let mut before = b'{';
        for field in schema.shape(shape) {
            out.push(before);
            before = b',';
            out.extend_from_slice(schema.rendered(field));
            if !self.value((field.path, ordinal), below, (out, most)) {
                return false;
            }
        }
        out.extend_from_slice(if before == b'{' { b"{}" } else { b"}" });
        true
    }

    fn elements(
        &mut self,
        (array, extent): (PathId, Extent),
        levels: usize,
        (out, most): Out<'_>,
    ) -> bool {
        let Some(below) = levels.checked_sub(1) else { return false };
        let end = extent.first.saturating_add(extent.count.into());
        let path = self.data.schema.path(array).element;
        let mut before = b'[';
        if let Some(path) = path.filter(|_| end <= ORDINALS_MAX) {
            for ordinal in extent.first..end {
                out.push(before);
                before = b',';
                if !self.value((path, ordinal), below, (out, most)) {
                    return false;
                }
            }
        } else if extent.count > 0 {
            return false;
        }
        out.extend_from_slice(if before == b'[' { b"[]" } else { b"]" });
        true
    }
}
