//! Entries of an index that no segment has, slab by slab.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::cell::{self, Entry};
use crate::tree::cell_key::{self, TreeId};
use crate::tree::persist::Cells;

/// Approximate bytes that an entry takes beside its own.
const ENTRY_BYTES: usize = 48;

/// Entries by the first revision of their slab.
#[derive(Debug, Clone, Default)]
pub(crate) struct Young {
    slabs: BTreeMap<u32, BTreeMap<Box<[u8]>, bool>>,
}

impl Young {
    pub(crate) fn is_empty(&self) -> bool {
        self.slabs.is_empty()
    }

    /// Adds an entry; approximate bytes that it takes.
    pub(crate) fn insert(&mut self, slab: u32, (entry, begins): Entry) -> usize {
        let bytes = ENTRY_BYTES + entry.len();
        self.slabs.entry(slab).or_default().insert(entry, begins);
        bytes
    }

    /// The first entry of a slab at or after a place.
    pub(crate) fn at_or_after(&self, slab: u32, place: &[u8]) -> Option<(&[u8], bool)> {
        let from = (Bound::Included(place), Bound::Unbounded);
        let (entry, begins) = self.slabs.get(&slab)?.range::<[u8], _>(from).next()?;
        Some((entry, *begins))
    }

    /// The last entry of a slab before a place.
    pub(crate) fn before(&self, slab: u32, place: &[u8]) -> Option<(&[u8], bool)> {
        let until = (Bound::Unbounded, Bound::Excluded(place));
        let (entry, begins) = self.slabs.get(&slab)?.range::<[u8], _>(until).next_back()?;
        Some((entry, *begins))
    }

    /// Adds all entries of others.
    pub(crate) fn extend(&mut self, others: Self) {
        for (slab, mut entries) in others.slabs {
            self.slabs.entry(slab).or_default().append(&mut entries);
        }
    }

    /// The cells of all entries.
    pub(crate) fn cells(&self, tree: TreeId, index: u32) -> Cells {
        let mut cells = Cells::new();
        for (&slab, entries) in &self.slabs {
            let prefix = cell_key::index_slab(tree, index, slab);
            let entries: Vec<Entry> =
                entries.iter().map(|(entry, begins)| (entry.clone(), *begins)).collect();
            let mut rest = entries.as_slice();
            while let Some((first, _)) = rest.first() {
                let (now, later) = rest.split_at(cell::cell_len(rest.iter()));
                cells.push(([prefix.as_slice(), first].concat(), cell::encode(now)));
                rest = later;
            }
        }
        cells
    }
}
