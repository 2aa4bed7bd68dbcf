//! Verifies a segment part by part, so that whoever does it can rest in between.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use bytes::Bytes;

use super::reader::{Segment, read_footer};
use crate::{Error, Result};

impl Segment {
    /// Reads what leads to the blocks from the device, past everything held in memory; what of it
    /// does not verify.
    pub(crate) fn scrub_guide(&self) -> Vec<Error> {
        let footer = read_footer(self.file(), self.origin().path, self.info()).err();
        let begin = [self.check_magic().err(), self.check_length().err()];
        let found = begin.into_iter().chain([footer, self.read_guide().err()]);
        self.unless_overwritten(found.flatten().collect())
    }

    /// Reads a block of cells from the device and verifies it: its bytes; none if there is no such
    /// block.
    pub(crate) fn scrub_block(&self, block: usize) -> Result<Option<u64>> {
        let Some((entry, _)) = self.entry(block)? else { return Ok(None) };
        self.read_cells(&entry)?;
        Ok(Some(entry.block.length.get().into()))
    }

    /// The least key that can be in a block, and the least that is in none up to it.
    pub(crate) fn keys_of_block(&self, block: usize) -> (Bytes, Option<Bytes>) {
        let fence = |block| self.entry(block).ok().flatten().map(|(_, fence)| fence);
        (fence(block).unwrap_or_default(), fence(block.saturating_add(1)))
    }
}
