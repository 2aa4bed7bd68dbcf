//! Elements that a transaction took from an array and replaced by others of the same values.
//!
//! New elements are new nodes, so an array that ends as it began would count as changed, and the
//! record that it is in would get a version that has nothing new. At the end of the transaction
//! such an array gets back the elements that it had.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Result;
use crate::node::NodeId;
use crate::order::{self, Item};
use crate::state::{Datum, Sequence};
use crate::tree::data::{Address, TreeData};
use crate::tree::serialize::Format;
use crate::tree::writer::Writer;

#[cfg(test)]
mod tests;

/// An element that was at a place before the transaction, and the one that is there now.
#[derive(Debug, Clone, Copy)]
struct Pair {
    old: NodeId,
    new: NodeId,
}

impl Writer {
    /// Gives each of some arrays the elements that it had before the transaction, if those that it
    /// has now have the same values and some of them are new; whether one got any.
    pub(crate) fn regain_elements(&self, arrays: &[NodeId]) -> Result<bool> {
        let mut is_any = false;
        for &array in arrays {
            let Some((before, now)) = self.orders_with_births(array)? else { continue };
            if let Some(pairs) = self.equal_pairs(array, (before, now))? {
                self.put_back(array, before, &pairs)?;
                is_any = true;
            }
        }
        Ok(is_any)
    }

    /// The order of an array before the transaction, and the one that it has now, if elements were
    /// born at its path: without them nothing but the places of elements may differ.
    fn orders_with_births(&self, array: NodeId) -> Result<Option<(Sequence, Sequence)>> {
        self.tree.read(|data| {
            let Some(path) = data.schema.path(array.path()).element else { return Ok(None) };
            let space = data.spaces.get(data.schema.path(path).space.0 as usize);
            if space.is_none_or(|space| space.next == space.committed) {
                return Ok(None);
            }
            let before = data.state(array, self.revision - 1)?;
            let now = data.state(array, self.revision)?;
            Ok(match (before, now) {
                (Datum::Array(before), Datum::Array(now)) => Some((before, now)),
                _ => None,
            })
        })
    }

    /// The elements that are others than before, if their values are those of before; looked at up
    /// to the first whose value is not.
    fn equal_pairs(
        &self,
        array: NodeId,
        orders: (Sequence, Sequence),
    ) -> Result<Option<Vec<Pair>>> {
        let (mut pairs, mut texts) = (Vec::new(), (Vec::new(), Vec::new()));
        let are_alike = |old: Item, new: Item| -> Result<bool> {
            let old = self.item_node(array, false, old)?;
            let new = self.item_node(array, false, new)?;
            pairs.push(Pair { old, new });
            texts.0.clear();
            texts.1.clear();
            self.tree.append_json((old, self.revision - 1), &Format::default(), &mut texts.0)?;
            self.tree.append_json((new, self.revision), &Format::default(), &mut texts.1)?;
            Ok(texts.0 == texts.1)
        };
        let are_equal = order::alike_items(&&self.tree.orders, orders, are_alike)?;
        let data = self.tree.data.read();
        let is_regained = are_equal
            && pairs.iter().any(|pair| is_born(&data, pair.new))
            && !is_moved(&data, &pairs);
        Ok(is_regained.then_some(pairs))
    }

    fn put_back(&self, array: NodeId, order: Sequence, pairs: &[Pair]) -> Result<()> {
        let olds: FxHashSet<NodeId> = pairs.iter().map(|pair| pair.old).collect();
        let mut others = pairs.iter().map(|pair| pair.new).filter(|new| !olds.contains(new));
        others.try_for_each(|new| self.erase(new))?;
        pairs.iter().try_for_each(|pair| self.restore(pair.old, self.revision - 1))?;
        self.stage(array, Datum::Array(order))
    }
}

/// Whether a node is of the staged transaction.
fn is_born(data: &TreeData, of: NodeId) -> bool {
    let Address { space, ordinal, .. } = data.address(of);
    data.spaces.get(space.0 as usize).is_some_and(|space| ordinal >= space.committed)
}

/// Whether moves tell of elements that they came from elsewhere, or went there: these are others,
/// though their values are the same.
fn is_moved(data: &TreeData, pairs: &[Pair]) -> bool {
    if data.moves.is_empty() {
        return false;
    }
    let olds: FxHashMap<NodeId, NodeId> = pairs.iter().map(|pair| (pair.new, pair.old)).collect();
    let news: FxHashMap<NodeId, NodeId> = pairs.iter().map(|pair| (pair.old, pair.new)).collect();
    data.moves.iter().any(|moved| {
        olds.get(&moved.to).is_some_and(|&old| old != moved.from)
            || news.get(&moved.from).is_some_and(|&new| new != moved.to)
    })
}
