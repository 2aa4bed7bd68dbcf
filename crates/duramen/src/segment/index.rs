//! The index of a segment: for each block of cells its address, its fence and its count of cells.
//!
//! It is searched as it was read: a table of fixed entries, then the fences one after the other,
//! then the last key of the segment.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use bytes::Bytes;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::MAGIC;
use super::block::{Block, BlockAddress, HEADER_BYTES, Origin};
use super::footer::Footer;
use crate::damage::corrupt;
use crate::limits::BLOCK_BYTES_MAX;
use crate::{Error, Result};

const _: () = assert!(size_of::<IndexEntry>() == 24);

/// One block of cells. Its fence is `fence_len` bytes at `fence_at` after the table.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct IndexEntry {
    pub(crate) block: BlockAddress,
    pub(crate) fence_at: U32,
    pub(crate) fence_len: U16,
    pub(crate) cells: U16,
}

impl IndexEntry {
    /// Whether the block has a single cell, whose key is the fence.
    pub(crate) fn is_single(&self) -> bool {
        self.cells.get() == 1
    }

    fn fence<'a>(&self, keys: &'a [u8]) -> &'a [u8] {
        keys.get(self.fence_at.get() as usize..self.fence_end()).unwrap_or_default()
    }

    fn fence_end(&self) -> usize {
        (self.fence_at.get() as usize).saturating_add(self.fence_len.get().into())
    }
}

/// An index as read from its block.
#[derive(Debug)]
pub(crate) struct Index {
    body: Bytes,
    blocks: usize,
}

impl Index {
    /// Takes a verified block as the index of the segment with `footer`, if its blocks fill the
    /// file from the magic to the filter and its fences rise.
    pub(crate) fn decode(block: Block, origin: Origin<'_>, footer: &Footer) -> Result<Self> {
        let damage = |what: &str, expected: u64, found: u64| -> Error {
            corrupt(origin.path, footer.index.offset.get(), what, expected, found)
        };
        let blocks = block.items as usize;
        let table = <[IndexEntry]>::ref_from_prefix_with_elems(&block.body, blocks);
        let Ok((entries, keys)) = table else {
            let expected = blocks.saturating_mul(size_of::<IndexEntry>()) as u64;
            return Err(damage("bytes of the index", expected, block.body.len() as u64));
        };
        let mut next_block = MAGIC.len() as u64;
        let mut next_fence = 0;
        let mut cells: u64 = 0;
        let mut last_fence: &[u8] = &[];
        for entry in entries {
            if entry.block.offset.get() != next_block {
                return Err(damage("offset of a block", next_block, entry.block.offset.get()));
            }
            let length = entry.block.length.get() as usize;
            let most = if entry.is_single() { usize::MAX } else { BLOCK_BYTES_MAX };
            if !(HEADER_BYTES..=most).contains(&length) {
                return Err(damage("length of a block", most as u64, length as u64));
            }
            if entry.fence_at.get() != next_fence || entry.fence_end() > keys.len() {
                let found = entry.fence_at.get().into();
                return Err(damage("place of a fence", next_fence.into(), found));
            }
            let fence = entry.fence(keys);
            if fence <= last_fence {
                return Err(corrupt(
                    origin.path,
                    footer.index.offset.get(),
                    "fence",
                    format!("one above {last_fence:02x?}"),
                    format!("{fence:02x?}"),
                ));
            }
            last_fence = fence;
            next_block = entry.block.end().unwrap_or(u64::MAX);
            next_fence = next_fence.saturating_add(entry.fence_len.get().into());
            cells = cells.saturating_add(entry.cells.get().into());
        }
        if next_block != footer.filter.offset.get() {
            return Err(damage("end of the cells", footer.filter.offset.get(), next_block));
        }
        if cells != footer.cells.get() || cells == 0 {
            return Err(damage("cells in the index", footer.cells.get(), cells));
        }
        Ok(Self { body: block.body, blocks })
    }

    /// Blocks of cells in the segment.
    pub(crate) fn len(&self) -> usize {
        self.blocks
    }

    /// The entry of a block, and its fence.
    pub(crate) fn get(&self, block: usize) -> Option<(IndexEntry, Bytes)> {
        let (entries, keys) = self.parts();
        let entry = entries.get(block)?;
        Some((*entry, self.body.slice_ref(entry.fence(keys))))
    }

    /// The one block that may have `key`: the last whose fence is not above it.
    pub(crate) fn block_for(&self, key: &[u8]) -> Option<usize> {
        let (entries, keys) = self.parts();
        entries.partition_point(|entry| entry.fence(keys) <= key).checked_sub(1)
    }

    /// The greatest key of the segment.
    pub(crate) fn last_key(&self) -> &[u8] {
        let (entries, keys) = self.parts();
        entries.last().and_then(|entry| keys.get(entry.fence_end()..)).unwrap_or_default()
    }

    fn parts(&self) -> (&[IndexEntry], &[u8]) {
        // `decode` found the table inside the body, so there is no other case.
        <[IndexEntry]>::ref_from_prefix_with_elems(&self.body, self.blocks).unwrap_or_default()
    }
}
