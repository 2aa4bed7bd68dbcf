//! Prints items of an array or a map one after the other, by their columns.
//!
//! Items that were made together stand side by side: their states are read from strips, and most
//! are printed flat ([`FlatLines`]). What an item needs more for (order blocks, a value that stands
//! apart, much room) is left to the serializer, which prints that one item.

use crate::json::escape;
use crate::limits::ORDINALS_MAX;
use crate::node::PathId;
use crate::state::Datum;
use crate::tree::data::TreeData;
use crate::tree::group::Fault;
use crate::tree::record_rows::flat::{FlatLines, Stretch};
use crate::tree::serialize::{Items, print_value};
use crate::tree::strips::Strips;

/// Bytes of one item that are printed beyond what there is room for.
const ITEM_BYTES_MAX: usize = 16 << 10;

/// Prints items as of one revision.
pub(super) struct ItemPrinter<'a> {
    data: &'a TreeData,
    strips: Strips<'a>,
    /// By ordinals of items of a path, if there are any.
    lines: FlatLines,
    lines_path: Option<PathId>,
}

impl<'a> ItemPrinter<'a> {
    pub(super) fn new(data: &'a TreeData, revision: u32) -> Self {
        let (strips, lines) = (Strips::new(data, revision), FlatLines::new());
        Self { data, strips, lines, lines_path: None }
    }

    /// Prints the next item, or some of them; how many. None, with nothing printed, if that takes
    /// more than columns.
    pub(super) fn print(
        &mut self,
        items: &Items,
        is_first: bool,
        (out, limit): (&mut Vec<u8>, usize),
    ) -> Result<u32, Fault> {
        let before = out.len();
        let printed = self.next(items, is_first, (out, limit.saturating_add(ITEM_BYTES_MAX)));
        if !matches!(printed, Ok(1..)) {
            out.truncate(before);
        }
        printed
    }

    fn next(
        &mut self,
        items: &Items,
        is_first: bool,
        (out, most): (&mut Vec<u8>, usize),
    ) -> Result<u32, Fault> {
        let (path, ordinal) = items.next();
        if !self.data.schema.has_path(path) || ordinal >= ORDINALS_MAX {
            return Ok(0);
        }
        if !is_first {
            out.push(b',');
        }
        let mut wanted = items.extent.count;
        self.strips.expect(wanted);
        if items.is_map {
            let space = self.data.schema.path(path).space;
            let Datum::Text { bytes, plain } = self.strips.key(space, ordinal)? else {
                return Ok(0);
            };
            escape::write_text(bytes, plain, out);
            out.push(b':');
            wanted = 1;
        }
        let printed = self.print_flat((path, ordinal), wanted, out)?;
        if printed > 0 {
            return Ok(printed);
        }
        let is_printed =
            print_value(&self.data.schema, &mut self.strips, (path, ordinal), (out, most))?;
        Ok(u32::from(is_printed))
    }

    /// Prints items from one on as far as they are flat, but no more than so many; how many.
    fn print_flat(
        &mut self,
        (path, ordinal): (PathId, u64),
        wanted: u32,
        out: &mut Vec<u8>,
    ) -> Result<u32, Fault> {
        let row = usize::try_from(ordinal).unwrap_or(usize::MAX);
        if self.lines_path != Some(path) || !self.lines.has(row) {
            self.print_lines(path, (ordinal, row))?;
        }
        let flat = if self.lines_path.is_some() { self.lines.from(row) } else { 0 };
        let count = wanted.min(u32::try_from(flat).unwrap_or(u32::MAX));
        for (index, row) in (0..count).zip(row..) {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(self.lines.get(row).unwrap_or_default());
        }
        Ok(count)
    }

    /// Prints an item, and those behind it that have its shape, as far as they are flat.
    fn print_lines(&mut self, path: PathId, (ordinal, row): (u64, usize)) -> Result<(), Fault> {
        self.lines_path = None;
        let Datum::Object(shape) = self.strips.state(path, ordinal)? else { return Ok(()) };
        let alike = Stretch::Unpacked(self.strips.rest_from(path, ordinal)).alike(shape);
        self.lines.begin((&self.data.schema, shape), row..row + alike);
        for member in 0.. {
            let Some(path) = self.lines.member(member) else { break };
            self.strips.state(path, ordinal)?;
            if !self.lines.print(member, Stretch::Unpacked(self.strips.rest_from(path, ordinal))) {
                break;
            }
        }
        self.lines.finish();
        self.lines_path = Some(path);
        Ok(())
    }
}
