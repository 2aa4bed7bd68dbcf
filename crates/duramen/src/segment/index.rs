//! The index of a segment: for each block of cells its address, its fence and its count of cells.
//!
//! It is searched as it was read: a table of fixed entries, then the fences one after the other,
//! then the last key of the segment. Beside it stand the beginnings of some fences, which are
//! little enough to stay in the processor's caches: they lead to the few entries that are looked
//! at (benchmark K).
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

/// Blocks from one landmark, the beginning of a fence, to the next.
const LANDMARK_BLOCKS: usize = 16;

/// The first 48 bytes of a fence, with zeros behind a shorter one, as numbers that compare as they
/// do. The keys of records differ within them: 21 bytes say which tree and what, numbers have 20.
type Beginning = [u64; 6];

/// An index as read from its block.
#[derive(Debug)]
pub(crate) struct Index {
    body: Bytes,
    blocks: usize,
    landmarks: Vec<Beginning>,
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
        let mut landmarks = Vec::with_capacity(blocks.div_ceil(LANDMARK_BLOCKS));
        for (number, entry) in entries.iter().enumerate() {
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
            if number.is_multiple_of(LANDMARK_BLOCKS) {
                landmarks.push(beginning(fence));
            }
            last_fence = fence;
            next_block = entry.block.end().unwrap_or(u64::MAX);
            next_fence = next_fence.saturating_add(entry.fence_len.get().into());
            if entry.cells.get() == 0 {
                return Err(damage("cells of a block", 1, 0));
            }
            cells = cells.saturating_add(entry.cells.get().into());
        }
        if next_block != footer.filter.offset.get() {
            return Err(damage("end of the cells", footer.filter.offset.get(), next_block));
        }
        if cells != footer.cells.get() || cells == 0 {
            return Err(damage("cells in the index", footer.cells.get(), cells));
        }
        Ok(Self { body: block.body, blocks, landmarks })
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
        let wanted = beginning(key);
        // A fence with a lesser beginning is below the key, one with a greater beginning above it.
        let below = self.landmarks.partition_point(|landmark| *landmark < wanted);
        let above = self.landmarks.partition_point(|landmark| *landmark <= wanted);
        let first = below.saturating_sub(1).saturating_mul(LANDMARK_BLOCKS);
        let end = above.saturating_mul(LANDMARK_BLOCKS).min(entries.len());
        let near = entries.get(first..end).unwrap_or_default();
        let passed = near.partition_point(|entry| entry.fence(keys) <= key);
        first.saturating_add(passed).checked_sub(1)
    }

    /// Whether a key that begins so may be among those of the segment, from the first fence to the
    /// last key.
    pub(crate) fn is_among_keys(&self, begin: &[u8]) -> bool {
        let (entries, keys) = self.parts();
        let first = entries.first().map(|entry| entry.fence(keys)).unwrap_or_default();
        (first <= begin || first.starts_with(begin)) && begin <= self.last_key()
    }

    /// Whether a fence begins so: then a key does.
    pub(crate) fn has_fence(&self, begin: &[u8]) -> bool {
        let (entries, keys) = self.parts();
        let near = self.block_for(begin).unwrap_or(0);
        let near = entries.get(near..).unwrap_or_default().iter().take(2);
        near.map(|entry| entry.fence(keys)).any(|fence| fence.starts_with(begin))
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

/// The beginning of a key or a fence.
fn beginning(key: &[u8]) -> Beginning {
    let mut bytes = [0; size_of::<Beginning>()];
    for (byte, of_key) in bytes.iter_mut().zip(key) {
        *byte = *of_key;
    }
    let (numbers, _) = bytes.as_chunks();
    let mut numbers = numbers.iter().copied().map(u64::from_be_bytes);
    std::array::from_fn(|_| numbers.next().unwrap_or_default())
}

#[cfg(test)]
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail by panicking"
)]
mod tests {
    use zerocopy::FromZeros;

    use super::super::tests::Random;
    use super::*;

    /// An index of blocks with these fences, which rise.
    fn index(fences: &[Vec<u8>]) -> Index {
        let (mut table, mut keys) = (Vec::new(), Vec::new());
        let mut offset = MAGIC.len() as u64;
        for fence in fences {
            let block =
                BlockAddress { offset: offset.into(), length: 64.into(), checksum: 0.into() };
            let fence_at = u32::try_from(keys.len()).unwrap().into();
            let fence_len = u16::try_from(fence.len()).unwrap().into();
            table.push(IndexEntry { block, fence_at, fence_len, cells: 2.into() });
            keys.extend_from_slice(fence);
            offset += 64;
        }
        let mut footer = Footer::new_zeroed();
        footer.filter.offset = offset.into();
        footer.cells = (2 * fences.len() as u64).into();
        let items = u32::try_from(fences.len()).unwrap();
        let body = [table.as_bytes(), &keys].concat().into();
        Index::decode(Block { items, body }, Origin { path: "segment", segment: 1 }, &footer)
            .unwrap()
    }

    #[test]
    fn the_block_that_may_have_a_key_is_found_whatever_fences_begin_with() {
        let mut random = Random(7);
        for _ in 0..200 {
            let like = vec![1; random.below(64)];
            let mut fence = || {
                let length = 1 + random.below(3);
                [like[..random.below(like.len() as u64 + 1)].to_vec(), random.bytes(length)]
                    .concat()
            };
            let mut fences: Vec<_> = (0..200).map(|_| fence()).collect();
            fences.sort_unstable();
            fences.dedup();
            fences.truncate(1 + random.below(fences.len() as u64));
            let index = index(&fences);
            let zeros = fences.iter().map(|fence| [fence.as_slice(), &[0, 0]].concat());
            let shorter = fences.iter().map(|fence| fence[..fence.len() - 1].to_vec());
            let keys: Vec<_> = zeros.chain(shorter).chain(fences.clone()).collect();
            for key in &keys {
                let expected = fences.iter().rposition(|fence| fence <= key);
                assert_eq!(index.block_for(key), expected, "{key:?}");
            }
        }
    }
}
