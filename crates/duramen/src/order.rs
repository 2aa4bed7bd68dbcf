//! The order of the elements of an array, or of the entries of a map: a sequence of extents of
//! ordinals, versioned.
//!
//! A sequence is one inline extent while that suffices, else the root of a copy-on-write B+-tree of
//! order blocks. A change adds blocks along one path; no block ever changes, so every older root
//! reads as it did.
//!
//! Invariants:
//! - all leaves are at the same depth; every block but the root has at least [`FILL_MIN`] entries;
//! - an inner entry counts exactly the items below it, none is empty;
//! - within a leaf, neighbouring extents of consecutive ordinals are one extent;
//! - an ordinal, or a field item, occurs once in a sequence.

use std::sync::Arc;

use crate::limits::{EXTENT_ITEMS_MAX, ORDER_BLOCK_EXTENTS_MAX, ORDINALS_MAX};
use crate::state::{Extent, OrderId, Sequence};
use crate::{Error, ErrorKind, Ordinal, PathId, Result};

mod cursor;
mod difference;
mod places;
mod splice;

pub(crate) use cursor::OrderCursor;
pub(crate) use difference::{Edit, alike_items, difference, same_items};
pub(crate) use places::Places;
pub(crate) use splice::splice;

/// Entries of every block but the root: a block with fewer is merged with a neighbour.
const FILL_MIN: usize = ORDER_BLOCK_EXTENTS_MAX / 4;

/// Levels of a tree of blocks: more than 2^40 items need at [`FILL_MIN`] entries a block. More of
/// them mean a cycle.
const DEPTH_MAX: usize = 8;

/// A node of the tree of blocks. Never changed once added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OrderBlock {
    /// Extents in order.
    Leaf(Box<[Extent]>),
    /// Child blocks in order, each with the number of items below it.
    Inner(Box<[(OrderId, u64)]>),
}

impl OrderBlock {
    /// Extents or child blocks in it.
    pub(crate) fn parts(&self) -> usize {
        match self {
            Self::Leaf(extents) => extents.len(),
            Self::Inner(children) => children.len(),
        }
    }
}

/// Where order blocks are read from. What it returns has passed [`OrderBlock::check`].
pub(crate) trait OrderBlocks {
    /// The block with this number.
    fn block(&self, id: OrderId) -> Result<Arc<OrderBlock>>;
}

/// Where a change adds order blocks.
pub(crate) trait OrderBlocksMut: OrderBlocks {
    /// Takes a new block and gives it a number that no other block has.
    fn add(&mut self, block: OrderBlock) -> OrderId;
}

/// One member of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Item {
    /// An array element or a map entry.
    Ordinal(Ordinal),
    /// A field of an object that outgrew its shape.
    Field(PathId),
}

impl Extent {
    /// The extent that stands for a field of an object that outgrew its shape.
    pub(crate) fn field(path: PathId) -> Self {
        Self { first: u64::from(path.0), count: 0 }
    }

    /// How many members of a sequence of blocks the extent is: a field item is one.
    pub(crate) fn items(self) -> u64 {
        u64::from(self.count.max(1))
    }

    /// The member at `index`, which is below [`Self::items`].
    pub(crate) fn item(self, index: u64) -> Item {
        if self.count == 0 {
            Item::Field(PathId(u32::try_from(self.first).unwrap_or(u32::MAX)))
        } else {
            Item::Ordinal(Ordinal(self.first + index))
        }
    }

    /// Where `item` stands in the extent.
    pub(crate) fn position(self, item: Item) -> Option<u64> {
        match item {
            Item::Ordinal(Ordinal(ordinal)) => {
                let at = ordinal.checked_sub(self.first)?;
                (at < u64::from(self.count)).then_some(at)
            }
            Item::Field(_) => (self.count == 0 && self.item(0) == item).then_some(0),
        }
    }

    /// The first `index` items, if there are any.
    fn head(self, index: u64) -> Option<Self> {
        match u32::try_from(index) {
            Ok(0) => None,
            Ok(count) if count < self.count => Some(Self { count, ..self }),
            _ => Some(self),
        }
    }

    /// The items from `index` on, if there are any.
    fn tail(self, index: u64) -> Option<Self> {
        match u32::try_from(index) {
            Ok(0) => Some(self),
            Ok(head) if head < self.count => {
                Some(Self { first: self.first + index, count: self.count - head })
            }
            _ => None,
        }
    }

    /// Whether the ordinals and the count are within the limits of an extent in a block.
    pub(crate) fn is_valid(self) -> bool {
        self.first < ORDINALS_MAX
            && self.count <= EXTENT_ITEMS_MAX
            && self.first + u64::from(self.count) <= ORDINALS_MAX
    }
}

impl Sequence {
    /// Nothing in it.
    pub(crate) const EMPTY: Self = Self::Extent(Extent { first: 0, count: 0 });
}

impl OrderBlock {
    /// Refuses what no splice can have made; for blocks that come from a file.
    pub(crate) fn check(&self) -> Result<()> {
        let valid = match self {
            Self::Leaf(extents) => {
                (1..=ORDER_BLOCK_EXTENTS_MAX).contains(&extents.len())
                    && extents.iter().all(|extent| extent.is_valid())
            }
            Self::Inner(children) => {
                (1..=ORDER_BLOCK_EXTENTS_MAX).contains(&children.len())
                    && children.iter().all(|&(_, items)| (1..=ORDINALS_MAX).contains(&items))
            }
        };
        if valid { Ok(()) } else { Err(corrupt("an order block is not well formed")) }
    }

    /// How many items are below the block.
    pub(crate) fn items(&self) -> u64 {
        match self {
            Self::Leaf(extents) => extents.iter().map(|extent| extent.items()).sum(),
            Self::Inner(children) => children.iter().map(|&(_, items)| items).sum(),
        }
    }

    /// The entry that holds item `index`, and the number of items before that entry.
    fn place(&self, index: u64) -> Option<(usize, u64)> {
        match self {
            Self::Leaf(extents) => place(extents.iter().map(|extent| extent.items()), index),
            Self::Inner(children) => place(children.iter().map(|&(_, items)| items), index),
        }
    }
}

/// How many items a sequence has.
pub(crate) fn len(blocks: &impl OrderBlocks, sequence: Sequence) -> Result<u64> {
    match sequence {
        Sequence::Extent(extent) => Ok(u64::from(extent.count)),
        Sequence::Blocks(root) => Ok(blocks.block(root)?.items()),
    }
}

/// The item at `index`, or nothing beyond the end. O(log n).
pub(crate) fn get(
    blocks: &impl OrderBlocks,
    sequence: Sequence,
    mut index: u64,
) -> Result<Option<Item>> {
    let mut id = match sequence {
        Sequence::Extent(extent) => {
            return Ok((index < u64::from(extent.count)).then(|| extent.item(index)));
        }
        Sequence::Blocks(root) => root,
    };
    for depth in 0..DEPTH_MAX {
        let block = blocks.block(id)?;
        let Some((entry, before)) = block.place(index) else {
            return if depth == 0 { Ok(None) } else { Err(miscounted()) };
        };
        index -= before;
        match &*block {
            OrderBlock::Leaf(extents) => return Ok(Some(extents[entry].item(index))),
            OrderBlock::Inner(children) => id = children[entry].0,
        }
    }
    Err(corrupt("order blocks are nested too deeply"))
}

/// Where `item` stands in a sequence, if it does. O(extents).
pub(crate) fn position(
    blocks: &impl OrderBlocks,
    sequence: Sequence,
    item: Item,
) -> Result<Option<u64>> {
    let mut cursor = OrderCursor::new(sequence);
    let mut before = 0;
    while let Some(extent) = cursor.next(blocks)? {
        if let Some(at) = extent.position(item) {
            return Ok(Some(before + at));
        }
        before += extent.items();
    }
    Ok(None)
}

/// Where those of some items stand that a sequence has: by rising places, each with the number of
/// its item among those given. O(extents) for all of them together.
pub(crate) fn positions(
    blocks: &impl OrderBlocks,
    sequence: Sequence,
    items: &[Item],
) -> Result<Vec<(u64, usize)>> {
    let mut numbers: Vec<usize> = (0..items.len()).collect();
    numbers.sort_unstable_by_key(|&number| items[number]);
    let mut found = Vec::with_capacity(items.len());
    let mut cursor = OrderCursor::new(sequence);
    let mut before = 0;
    while found.len() < items.len()
        && let Some(extent) = cursor.next(blocks)?
    {
        let first = extent.item(0);
        let start = numbers.partition_point(|&number| items[number] < first);
        for &number in &numbers[start..] {
            let Some(at) = extent.position(items[number]) else { break };
            found.push((before + at, number));
        }
        before += extent.items();
    }
    Ok(found)
}

fn place(counts: impl Iterator<Item = u64>, index: u64) -> Option<(usize, u64)> {
    let mut before = 0;
    for (entry, items) in counts.enumerate() {
        if index - before < items {
            return Some((entry, before));
        }
        before += items;
    }
    None
}

fn miscounted() -> Error {
    corrupt("an order block has fewer items than its parent counts")
}

fn corrupt(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, what)
}

#[cfg(test)]
mod tests;
