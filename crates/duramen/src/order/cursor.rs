//! Walks the extents of a sequence without borrowing the blocks, so that it can be put aside and
//! taken up again.

use std::sync::Arc;

use super::{DEPTH_MAX, OrderBlock, OrderBlocks, corrupt, miscounted};
use crate::Result;
use crate::state::{Extent, OrderId, Sequence};

/// A place in a sequence. Reads each block once, when the walk comes to it.
#[derive(Debug, Clone)]
pub(crate) struct OrderCursor {
    root: Sequence,
    /// What comes next, before what is in the stack.
    ahead: Option<Slot>,
    /// The blocks above, each with the index of its next entry.
    stack: Vec<(Arc<OrderBlock>, usize)>,
}

#[derive(Debug, Clone, Copy)]
enum Slot {
    Block(OrderId),
    Extent(Extent),
}

impl OrderCursor {
    /// Stands before the first item.
    pub(crate) fn new(sequence: Sequence) -> Self {
        let ahead = match sequence {
            Sequence::Extent(Extent { count: 0, .. }) => None,
            Sequence::Extent(extent) => Some(Slot::Extent(extent)),
            Sequence::Blocks(root) => Some(Slot::Block(root)),
        };
        Self { root: sequence, ahead, stack: Vec::new() }
    }

    /// The next extent, or nothing at the end. After an error the same call can be tried again.
    pub(crate) fn next(&mut self, blocks: &impl OrderBlocks) -> Result<Option<Extent>> {
        loop {
            match self.ahead {
                Some(Slot::Extent(extent)) => {
                    self.ahead = None;
                    return Ok(Some(extent));
                }
                Some(Slot::Block(id)) => self.enter(blocks, id)?,
                None if self.stack.is_empty() => return Ok(None),
                None => self.advance(),
            }
        }
    }

    /// Goes to item `index`: the next extent begins with it; at or beyond the end there is none.
    /// O(log n).
    pub(crate) fn seek(&mut self, blocks: &impl OrderBlocks, mut index: u64) -> Result<()> {
        *self = Self::new(self.root);
        while let Some(Slot::Block(id)) = self.ahead {
            self.enter(blocks, id)?;
            let depth = self.stack.len();
            let Some((block, next)) = self.stack.last_mut() else { break };
            let Some((entry, before)) = block.place(index) else {
                self.stack.clear();
                return if depth == 1 { Ok(()) } else { Err(miscounted()) };
            };
            *next = entry;
            index -= before;
            self.advance();
        }
        if let Some(Slot::Extent(extent)) = self.ahead {
            self.ahead = extent.tail(index).map(Slot::Extent);
        }
        Ok(())
    }

    fn enter(&mut self, blocks: &impl OrderBlocks, id: OrderId) -> Result<()> {
        if self.stack.len() == DEPTH_MAX {
            return Err(corrupt("order blocks are nested too deeply"));
        }
        self.stack.push((blocks.block(id)?, 0));
        self.ahead = None;
        Ok(())
    }

    /// Takes the next entry of the lowest block, or leaves that block.
    fn advance(&mut self) {
        let Some((block, next)) = self.stack.last_mut() else { return };
        self.ahead = match &**block {
            OrderBlock::Leaf(extents) => extents.get(*next).copied().map(Slot::Extent),
            OrderBlock::Inner(children) => children.get(*next).map(|&(id, _)| Slot::Block(id)),
        };
        *next += 1;
        if self.ahead.is_none() {
            self.stack.pop();
        }
    }
}
