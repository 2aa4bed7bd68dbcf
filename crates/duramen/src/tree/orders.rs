//! The order blocks of a tree: immutable, numbered in order of creation.
//!
//! They have a lock of their own, so that a long walk over the order of an array holds nothing
//! else. Invariants:
//! - numbers below `first` are on disk, the rest are in memory;
//! - what was staged and is named by no state when the transaction ends is let go: it keeps its
//!   number, and is written as the shortest block there is.

use std::sync::Arc;

use crate::encoding::decode_order_block;
use crate::error::{Error, ErrorKind, Result};
use crate::order::{OrderBlock, OrderBlocks, OrderBlocksMut};
use crate::state::{Extent, OrderId};
use crate::sync::RwLock;
use crate::tree::cell_key;
use crate::tree::disk::TreeCells;

/// Bytes of a block in memory beside its extents or children, which take as much as each other.
const BLOCK_BYTES: usize = 64;

/// The order blocks of one tree.
#[derive(Debug)]
pub(crate) struct Orders {
    cells: TreeCells,
    blocks: RwLock<Blocks>,
}

#[derive(Debug, Default)]
struct Blocks {
    first: u64,
    /// None where the block was let go.
    young: Vec<Option<Arc<OrderBlock>>>,
    /// How many of the young ones belong to commits.
    committed: usize,
}

impl Orders {
    /// The order blocks of a tree of which the first `first` are on disk.
    pub(crate) fn new(cells: TreeCells, first: u64) -> Self {
        Self { cells, blocks: RwLock::new(Blocks { first, ..Blocks::default() }) }
    }

    /// Takes a new block.
    pub(crate) fn add(&self, block: OrderBlock) -> OrderId {
        let mut blocks = self.blocks.write();
        blocks.young.push(Some(Arc::new(block)));
        OrderId(blocks.first + blocks.young.len() as u64 - 1)
    }

    /// The blocks of the staged transaction.
    pub(crate) fn staged(&self) -> Vec<Arc<OrderBlock>> {
        let blocks = self.blocks.read();
        written(&blocks.young[blocks.committed..])
    }

    /// How many blocks the staged transaction has added.
    pub(crate) fn staged_len(&self) -> usize {
        let blocks = self.blocks.read();
        blocks.young.len() - blocks.committed
    }

    /// Approximate bytes in memory of the blocks of the staged transaction.
    pub(crate) fn staged_bytes(&self) -> usize {
        let blocks = self.blocks.read();
        bytes_of(&blocks.young[blocks.committed..])
    }

    /// Approximate bytes in memory of the young blocks.
    pub(crate) fn young_bytes(&self) -> usize {
        bytes_of(&self.blocks.read().young)
    }

    /// Lets go the blocks of the staged transaction that are in none of the trees with these
    /// roots; how many are left.
    pub(crate) fn keep_staged(&self, mut roots: Vec<OrderId>) -> usize {
        let mut blocks = self.blocks.write();
        let Blocks { first, young, committed } = &mut *blocks;
        let start = *first + *committed as u64;
        let staged = &mut young[*committed..];
        let mut is_named = vec![false; staged.len()];
        while let Some(id) = roots.pop() {
            let index = id.0.checked_sub(start).and_then(|index| usize::try_from(index).ok());
            let Some(index) = index.filter(|&index| index < staged.len()) else { continue };
            if !std::mem::replace(&mut is_named[index], true)
                && let Some(OrderBlock::Inner(children)) = staged[index].as_deref()
            {
                roots.extend(children.iter().map(|(child, _)| *child));
            }
        }
        for (block, is_named) in staged.iter_mut().zip(&is_named) {
            if !is_named {
                *block = None;
            }
        }
        is_named.into_iter().filter(|is_named| *is_named).count()
    }

    /// The staged blocks belong to a commit from now on.
    pub(crate) fn commit_staged(&self) {
        let mut blocks = self.blocks.write();
        blocks.committed = blocks.young.len();
    }

    /// Takes the staged blocks back.
    pub(crate) fn rollback(&self) {
        let mut blocks = self.blocks.write();
        let committed = blocks.committed;
        blocks.young.truncate(committed);
    }

    /// How many blocks belong to commits; the numbers of all these are below it.
    pub(crate) fn committed(&self) -> u64 {
        let blocks = self.blocks.read();
        blocks.first + blocks.committed as u64
    }

    /// The young blocks with numbers below `end`, with the number of the first.
    pub(crate) fn young(&self, end: u64) -> (u64, Vec<Arc<OrderBlock>>) {
        let blocks = self.blocks.read();
        let count = usize::try_from(end.saturating_sub(blocks.first)).unwrap_or(usize::MAX);
        (blocks.first, written(&blocks.young[..count.min(blocks.committed)]))
    }

    /// The first `first` order blocks are on disk, where there were none before.
    pub(crate) fn begin_at(&self, first: u64) {
        *self.blocks.write() = Blocks { first, ..Blocks::default() };
    }

    /// Drops the blocks below `first`, which a checkpoint has written.
    pub(crate) fn prune(&self, first: u64) {
        let mut blocks = self.blocks.write();
        let written = usize::try_from(first.saturating_sub(blocks.first)).unwrap_or(usize::MAX);
        let written = written.min(blocks.committed);
        blocks.young.drain(..written);
        blocks.committed -= written;
        blocks.first += written as u64;
    }
}

impl OrderBlocks for &Orders {
    fn block(&self, id: OrderId) -> Result<Arc<OrderBlock>> {
        {
            let blocks = self.blocks.read();
            let young =
                id.0.checked_sub(blocks.first).and_then(|index| usize::try_from(index).ok());
            if let Some(index) = young {
                return blocks.young.get(index).cloned().flatten().ok_or_else(|| missing(id));
            }
        }
        let (tree, memory) = (self.cells.tree(), self.cells.memory());
        if let Some(block) = memory.order(tree, id) {
            return Ok(block);
        }
        let cell = self.cells.get(&cell_key::order(tree, id))?;
        let block = Arc::new(decode_order_block(&cell.ok_or_else(|| missing(id))?)?);
        memory.keep_order(tree, id, &block);
        Ok(block)
    }
}

impl OrderBlocksMut for &Orders {
    fn add(&mut self, block: OrderBlock) -> OrderId {
        Orders::add(self, block)
    }
}

/// Blocks as they are written.
fn written(blocks: &[Option<Arc<OrderBlock>>]) -> Vec<Arc<OrderBlock>> {
    let extent = Extent { first: 0, count: 1 };
    let gone = Arc::new(OrderBlock::Leaf([extent].into()));
    blocks.iter().map(|block| Arc::clone(block.as_ref().unwrap_or(&gone))).collect()
}

fn bytes_of(blocks: &[Option<Arc<OrderBlock>>]) -> usize {
    let bytes = |block: &Arc<OrderBlock>| BLOCK_BYTES + block.parts() * size_of::<Extent>();
    blocks.iter().flatten().map(bytes).sum()
}

fn missing(id: OrderId) -> Error {
    Error::new(ErrorKind::Corrupt, format!("order block {} is not there", id.0))
}
