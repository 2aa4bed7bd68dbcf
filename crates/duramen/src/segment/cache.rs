//! The cache of verified blocks, by bytes.

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::block::CellBlock;
use super::shortening::ShortCells;
use crate::Result;
use crate::limits::BLOCK_BYTES_MAX;

/// Names a block of cells for as long as the database lives, as segment numbers are not reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    pub(crate) segment: u64,
    pub(crate) block: usize,
}

/// A block of cells in memory.
#[derive(Debug, Clone)]
pub(super) enum CachedBlock {
    Cells(CellBlock),
    /// As it is in the file: one key was looked up in it, and nothing read in order.
    Short(ShortCells),
}

/// Blocks of cells of all segments of a database, within a budget of bytes.
#[derive(Debug)]
pub(crate) struct BlockCache {
    blocks: Cache<BlockKey, CachedBlock, BlockBytes>,
}

#[derive(Debug, Clone, Copy)]
struct BlockBytes;

impl Weighter<BlockKey, CachedBlock> for BlockBytes {
    fn weight(&self, _: &BlockKey, block: &CachedBlock) -> u64 {
        let bytes = match block {
            CachedBlock::Cells(cells) => cells.bytes(),
            CachedBlock::Short(cells) => cells.bytes(),
        };
        bytes as u64
    }
}

impl BlockCache {
    /// A cache of at most `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        let blocks = usize::try_from(bytes).unwrap_or(usize::MAX) / BLOCK_BYTES_MAX;
        Self { blocks: Cache::with_weighter(blocks + 1, bytes, BlockBytes) }
    }

    /// Has at most `bytes` from now on.
    pub(crate) fn set_capacity(&self, bytes: u64) {
        self.blocks.set_capacity(bytes);
    }

    /// The block, read with `read` if it is not here. Of several that ask for a missing block at
    /// once one reads and the others wait for it.
    pub(super) fn get_or_insert_with(
        &self,
        key: &BlockKey,
        read: impl FnOnce() -> Result<CachedBlock>,
    ) -> Result<CachedBlock> {
        self.blocks.get_or_insert_with(key, read)
    }

    /// The block, if it is here.
    pub(super) fn get(&self, key: &BlockKey) -> Option<CachedBlock> {
        self.blocks.get(key)
    }

    /// Puts a block in the place of what is here of it.
    pub(super) fn replace(&self, key: BlockKey, cells: &CellBlock) {
        self.blocks.insert(key, CachedBlock::Cells(cells.clone()));
    }
}
