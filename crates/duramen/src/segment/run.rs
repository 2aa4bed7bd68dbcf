//! Blocks that follow each other, read at once and past the cache: for who looks through much of
//! which little is of use. To read it costs a fraction of what keeping it does, as memory that
//! nobody used before has to be cleared (benchmark TM).
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Range;

use bytes::Bytes;

use super::block::{BlockKind, CellBlock, KeptBlock};
use super::index::IndexEntry;
use super::reader::Segment;
use crate::Result;
use crate::io;

/// About as many bytes are read at once at most, unless one block has more: they stay in the caches
/// of the processor.
const RUN_BYTES: u64 = 256 << 10;

impl Segment {
    /// Calls `visit` with each of some blocks in order. They are read into `room`, which is for the
    /// next ones again, unless something of them is kept.
    pub(super) fn visit_run(
        &self,
        blocks: Range<usize>,
        room: &mut Vec<u8>,
        visit: &mut dyn FnMut(&CellBlock) -> Result<()>,
    ) -> Result<()> {
        let entries = blocks.map(|block| self.entry_of(block)).collect::<Result<Vec<_>>>()?;
        let lengths = entries.iter().map(|entry| u64::from(entry.block.length.get()));
        let bytes = lengths.fold(0, u64::saturating_add);
        // In parts alike, as a read may fill all the room that there is.
        let each = bytes.div_ceil(bytes.div_ceil(RUN_BYTES).max(1));
        let mut rest = entries.as_slice();
        while let Some(first) = rest.first() {
            let end = first.block.offset.get().saturating_add(each);
            let is_near = |entry: &IndexEntry| entry.block.offset.get() < end;
            let (run, after) = rest.split_at(rest.partition_point(is_near).clamp(1, rest.len()));
            self.visit_at_once(run, room, visit)?;
            rest = after;
        }
        Ok(())
    }

    fn visit_at_once(
        &self,
        run: &[IndexEntry],
        room: &mut Vec<u8>,
        visit: &mut dyn FnMut(&CellBlock) -> Result<()>,
    ) -> Result<()> {
        let Some(start) = run.first().map(|first| first.block.offset.get()) else { return Ok(()) };
        let end = run.last().and_then(|last| last.block.end()).unwrap_or(start);
        let length = usize::try_from(end.saturating_sub(start)).unwrap_or_default();
        // What is wrong is told of the block that it is wrong of, when that is read by itself.
        let _ = io::read_into_at(self.file(), room, length, start);
        let bytes = Bytes::from(std::mem::take(room));
        for entry in run {
            let cells = match self.block_in((&bytes, start), entry) {
                Some(kept) => self.cells_of(kept, entry)?,
                None => self.read_cells(entry)?,
            };
            visit(&cells)?;
        }
        *room = bytes.into();
        Ok(())
    }

    /// A block in bytes that were read from an offset on, if it verifies.
    fn block_in(&self, (bytes, start): (&Bytes, u64), entry: &IndexEntry) -> Option<KeptBlock> {
        let at = usize::try_from(entry.block.offset.get().checked_sub(start)?).ok()?;
        let end = at.checked_add(entry.block.length.get() as usize)?;
        let block = bytes.slice_ref(bytes.get(at..end)?);
        KeptBlock::verify(&block, self.origin(), &entry.block, BlockKind::Cells).ok()
    }
}
