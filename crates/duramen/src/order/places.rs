//! Where the items of sequences stand, for who asks for many of them one after the other.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::{Item, OrderBlocks, OrderCursor};
use crate::Result;
use crate::state::{Extent, Sequence};

/// The places that were found out. A sequence is walked once, however many of its items are asked
/// for: by a change of each element of an array, its walks together would be quadratic.
#[derive(Debug, Default)]
pub(crate) struct Places(FxHashMap<Sequence, Walked>);

/// The extents of a sequence by their first items, each with how many items are before it.
type Walked = Vec<(Extent, u64)>;

impl Places {
    /// Where `item` stands in a sequence, if it does. O(log extents), but for the first one of the
    /// sequence.
    pub(crate) fn position(
        &mut self,
        blocks: &impl OrderBlocks,
        sequence: Sequence,
        item: Item,
    ) -> Result<Option<u64>> {
        let extents = match self.0.entry(sequence) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(walk(blocks, sequence)?),
        };
        let after = extents.partition_point(|(extent, _)| extent.item(0) <= item);
        let found = after.checked_sub(1).and_then(|last| extents.get(last));
        Ok(found.and_then(|(extent, before)| Some(before + extent.position(item)?)))
    }
}

fn walk(blocks: &impl OrderBlocks, sequence: Sequence) -> Result<Walked> {
    let (mut cursor, mut before, mut extents) = (OrderCursor::new(sequence), 0, Vec::new());
    while let Some(extent) = cursor.next(blocks)? {
        extents.push((extent, before));
        before += extent.items();
    }
    extents.sort_unstable_by_key(|(extent, _)| extent.item(0));
    Ok(extents)
}
