//! Writing a segment with interruptions: what was pushed is made durable now and then, and whoever
//! comes later goes on behind it.
//!
//! Invariants:
//! - everything that is gone on behind verifies, block by block, and ends where it was told to;
//! - what stands behind that is cut off before anything is written in its place.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::sync::Arc;

use super::{MAGIC, Output, SegmentMeta, SegmentWriter, TREE_PREFIX_BYTES, path, shared_bytes};
use crate::damage::corrupt;
use crate::io::{Access, Device};
use crate::segment::block::{BlockAddress, CellBlock};
use crate::segment::salvage::DamagedSegment;
use crate::{Error, Result};

impl SegmentWriter {
    /// Makes durable what was pushed so far, and tells how many bytes of the file that is. The
    /// file's name is not made so.
    pub(crate) fn cut(&mut self) -> Result<u64> {
        self.write_cells(self.records.len())?;
        self.is_large = false;
        self.out.flush()?;
        self.out.sync()?;
        Ok(self.out.flushed)
    }

    /// Whether nothing was pushed.
    pub(crate) fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// Gives the segment up, but leaves its file to be gone on with.
    pub(crate) fn leave(mut self) {
        self.finished = true;
    }

    /// Goes on behind the first so many bytes of the file of segment `number`, which were
    /// [cut](Self::cut). They are read, which is little beside what it took to make them.
    ///
    /// `Corrupt` if they do not verify. After an error the file is gone.
    pub(crate) fn resume(
        device: &Arc<dyn Device>,
        (number, meta): (u64, SegmentMeta),
        bytes: u64,
    ) -> Result<Self> {
        let path = path(number);
        let failed = |error| Error::io(format!("cannot go on with {path}"), error);
        let file = device.open(&path, Access::Write).map_err(failed)?;
        let out = Output::new(file, path.clone(), (Vec::new(), bytes));
        let mut writer = Self::without_cells(device, (number, meta), out);
        let found = writer.out.file.len().map_err(failed)?;
        if found < bytes {
            return Err(corrupt(&path, found, "bytes of the file", bytes, found));
        }
        let written = DamagedSegment::begun((number, &path), Arc::clone(&writer.out.file), bytes);
        let mut at = MAGIC.len() as u64;
        while at != bytes {
            let Some((address, cells)) = written.cells_at(at)? else {
                return Err(corrupt(&path, at, "block", "one of cells", "something else"));
            };
            writer.note(address, &cells)?;
            at = address.end().unwrap_or(u64::MAX);
        }
        writer.out.file.set_len(bytes).map_err(failed)?;
        Ok(writer)
    }

    /// Remembers a block of the file and its cells.
    fn note(&mut self, block: BlockAddress, cells: &CellBlock) -> Result<()> {
        let Some(last) = cells.len().checked_sub(1) else { return Ok(()) };
        for slot in 0..cells.len() {
            let key = cells.key(slot);
            if *key <= *self.last_key {
                let at = block.offset.get();
                return Err(corrupt(&self.out.path, at, "keys", "rising ones", "others"));
            }
            let is_same_tree = shared_bytes(&key, &self.last_key) >= TREE_PREFIX_BYTES;
            self.note_key(&key, is_same_tree);
        }
        self.note_block(block, (&cells.key(0), &cells.key(last)), cells.len());
        Ok(())
    }
}
