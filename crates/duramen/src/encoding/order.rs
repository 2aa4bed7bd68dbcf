//! Order blocks: the elements of a long array or map in order, as the leaves and inner blocks
//! of a tree.

use super::column::tag;
use super::integers::Integers;
use super::reader::{Reader, corrupt, unreadable};
use crate::error::Result;
use crate::limits::ORDER_BLOCK_EXTENTS_MAX;
use crate::order::OrderBlock;
use crate::state::{Extent, OrderId};

const LEAF: u8 = 0;
const INNER: u8 = 1;

/// Appends the encoding of an order block.
///
/// # Panics
/// If it has more than [`ORDER_BLOCK_EXTENTS_MAX`] extents or children.
pub(crate) fn encode_order_block(block: &OrderBlock, out: &mut Vec<u8>) {
    let (head, (values, counts)): (u8, (Vec<i64>, Vec<i64>)) = match block {
        OrderBlock::Leaf(extents) => {
            let pair = |extent: &Extent| (extent.first.cast_signed(), i64::from(extent.count));
            (LEAF, extents.iter().map(pair).unzip())
        }
        OrderBlock::Inner(children) => {
            let pair =
                |(order, count): &(OrderId, u64)| (order.0.cast_signed(), count.cast_signed());
            (INNER, children.iter().map(pair).unzip())
        }
    };
    let len = u16::try_from(values.len()).unwrap_or(u16::MAX);
    assert!(usize::from(len) <= ORDER_BLOCK_EXTENTS_MAX, "an order block of {}", values.len());
    out.push(head);
    out.extend(len.to_le_bytes());
    Integers::encode(&values, out);
    Integers::encode(&counts, out);
}

/// The vectors of the order block that fills `cell`.
pub(super) fn order_vectors(cell: &[u8]) -> Result<[Integers; 2]> {
    let mut reader = Reader::new(cell)?;
    reader.u8()?;
    let len = usize::from(reader.u16()?);
    let vectors = [Integers::parse(&mut reader, len)?, Integers::parse(&mut reader, len)?];
    reader.finish()?;
    Ok(vectors)
}

/// The order block that fills `cell`, checked.
pub(crate) fn decode_order_block(cell: &[u8]) -> Result<OrderBlock> {
    let mut reader = Reader::new(cell)?;
    let head = reader.u8()?;
    let len = usize::from(reader.u16()?);
    if len > ORDER_BLOCK_EXTENTS_MAX {
        return Err(corrupt(1, "too many extents in an order block").into());
    }
    let values = Integers::parse(&mut reader, len)?;
    let counts = Integers::parse(&mut reader, len)?;
    reader.finish()?;
    let pairs = (0..len).map(|index| Some((values.get(cell, index)?, counts.get(cell, index)?)));
    let block = match head {
        LEAF => pairs
            .map(|pair| pair.and_then(|(first, count)| tag::extent(first, count)))
            .collect::<Option<_>>()
            .map(OrderBlock::Leaf),
        INNER => pairs
            .map(|pair| {
                pair.map(|(order, count)| (OrderId(order.cast_unsigned()), count.cast_unsigned()))
            })
            .collect::<Option<_>>()
            .map(OrderBlock::Inner),
        _ => return Err(corrupt(0, "no such kind of order block").into()),
    };
    let block = block.ok_or_else(|| unreadable(0, len, "extent"))?;
    block.check()?;
    Ok(block)
}
