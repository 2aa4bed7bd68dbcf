//! Order blocks: the elements of a long array or map in order, as the leaves and inner blocks
//! of a tree.

use bytes::Bytes;

use super::column::tag;
use super::integers::Integers;
use super::reader::{Reader, corrupt, unreadable};
use crate::error::Result;
use crate::limits::ORDER_BLOCK_EXTENTS_MAX;
use crate::state::{Extent, OrderId};

const LEAF: u8 = 0;
const INNER: u8 = 1;

/// A view of an encoded order block.
#[derive(Debug, Clone)]
pub(crate) struct OrderBlock {
    cell: Bytes,
    is_leaf: bool,
    /// First ordinals in a leaf, order blocks in an inner block.
    values: Integers,
    /// How many elements each value stands for, as the writer gave it.
    counts: Integers,
}

/// Appends the encoding of a block of extents.
///
/// # Panics
/// If there are more than [`ORDER_BLOCK_EXTENTS_MAX`].
pub(crate) fn encode_leaf(extents: &[Extent], out: &mut Vec<u8>) {
    let firsts = extents.iter().map(|extent| extent.first.cast_signed());
    let counts = extents.iter().map(|extent| i64::from(extent.count));
    encode(LEAF, &firsts.collect::<Vec<_>>(), &counts.collect::<Vec<_>>(), out);
}

/// Appends the encoding of a block of blocks, each with the number of elements below it.
///
/// # Panics
/// If there are more than [`ORDER_BLOCK_EXTENTS_MAX`].
pub(crate) fn encode_inner(children: &[(OrderId, u64)], out: &mut Vec<u8>) {
    let orders = children.iter().map(|(order, _)| order.0.cast_signed());
    let counts = children.iter().map(|(_, count)| count.cast_signed());
    encode(INNER, &orders.collect::<Vec<_>>(), &counts.collect::<Vec<_>>(), out);
}

fn encode(head: u8, values: &[i64], counts: &[i64], out: &mut Vec<u8>) {
    let len = u16::try_from(values.len()).unwrap_or(u16::MAX);
    assert!(usize::from(len) <= ORDER_BLOCK_EXTENTS_MAX, "an order block of {}", values.len());
    out.push(head);
    out.extend(len.to_le_bytes());
    Integers::encode(values, out);
    Integers::encode(counts, out);
}

impl OrderBlock {
    /// Reads the headers of an encoded order block, which fills `cell`.
    pub(crate) fn parse(cell: Bytes) -> Result<Self> {
        let mut reader = Reader::new(&cell)?;
        let is_leaf = match reader.u8()? {
            LEAF => true,
            INNER => false,
            _ => return Err(corrupt(0, "no such kind of order block").into()),
        };
        let len = usize::from(reader.u16()?);
        if len > ORDER_BLOCK_EXTENTS_MAX {
            return Err(corrupt(1, "too many extents in an order block").into());
        }
        let values = Integers::parse(&mut reader, len)?;
        let counts = Integers::parse(&mut reader, len)?;
        reader.finish()?;
        Ok(Self { cell, is_leaf, values, counts })
    }

    /// How many extents or children.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it holds extents; else it holds blocks.
    pub(crate) fn is_leaf(&self) -> bool {
        self.is_leaf
    }

    /// Extent `index` of a leaf.
    pub(crate) fn extent(&self, index: usize) -> Result<Extent> {
        let pair = self.pair(index).filter(|_| self.is_leaf);
        let extent = pair.and_then(|(first, count)| tag::extent(first, count));
        extent.ok_or_else(|| unreadable(index, self.len(), "extent"))
    }

    /// Child `index` of an inner block and the number of elements below it.
    pub(crate) fn child(&self, index: usize) -> Result<(OrderId, u64)> {
        let pair = self.pair(index).filter(|_| !self.is_leaf);
        let child =
            pair.map(|(order, count)| (OrderId(order.cast_unsigned()), count.cast_unsigned()));
        child.ok_or_else(|| unreadable(index, self.len(), "order block"))
    }

    /// All extents of a leaf.
    pub(crate) fn extents(&self) -> Result<Vec<Extent>> {
        (0..self.len()).map(|index| self.extent(index)).collect()
    }

    /// All children of an inner block.
    pub(crate) fn children(&self) -> Result<Vec<(OrderId, u64)>> {
        (0..self.len()).map(|index| self.child(index)).collect()
    }

    fn pair(&self, index: usize) -> Option<(i64, i64)> {
        Some((self.values.get(&self.cell, index)?, self.counts.get(&self.cell, index)?))
    }
}
