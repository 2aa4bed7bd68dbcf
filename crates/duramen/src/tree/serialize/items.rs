//! Prints items of an array or a map one after the other, by their columns.
//!
//! Items that were made together stand side by side: their states are read from strips. What an
//! item needs more for (order blocks, a value that stands apart, much room) is left to the
//! serializer, which prints that one item.

use crate::json::escape;
use crate::limits::ORDINALS_MAX;
use crate::state::Datum;
use crate::tree::data::TreeData;
use crate::tree::group::Fault;
use crate::tree::serialize::{Items, print_value};
use crate::tree::strips::Strips;

/// Bytes of one item that are printed beyond what there is room for.
const ITEM_BYTES_MAX: usize = 16 << 10;

/// Prints items as of one revision.
pub(super) struct ItemPrinter<'a> {
    data: &'a TreeData,
    strips: Strips<'a>,
}

impl<'a> ItemPrinter<'a> {
    pub(super) fn new(data: &'a TreeData, revision: u32) -> Self {
        Self { data, strips: Strips::new(data, revision) }
    }

    /// Prints the next item. False, with nothing printed, if that takes more than columns.
    pub(super) fn print(
        &mut self,
        items: &Items,
        is_first: bool,
        (out, limit): (&mut Vec<u8>, usize),
    ) -> Result<bool, Fault> {
        let before = out.len();
        let printed = self.item(items, is_first, (out, limit.saturating_add(ITEM_BYTES_MAX)));
        if !matches!(printed, Ok(true)) {
            out.truncate(before);
        }
        printed
    }

    fn item(
        &mut self,
        items: &Items,
        is_first: bool,
        (out, most): (&mut Vec<u8>, usize),
    ) -> Result<bool, Fault> {
        let (path, ordinal) = items.next();
        if !self.data.schema.has_path(path) || ordinal >= ORDINALS_MAX {
            return Ok(false);
        }
        if !is_first {
            out.push(b',');
        }
        if items.is_map {
            let space = self.data.schema.path(path).space;
            let Datum::Text { bytes, plain } = self.strips.key(space, ordinal)? else {
                return Ok(false);
            };
            escape::write_text(bytes, plain, out);
            out.push(b':');
        }
        print_value(&self.data.schema, &mut self.strips, (path, ordinal), (out, most))
    }
}
