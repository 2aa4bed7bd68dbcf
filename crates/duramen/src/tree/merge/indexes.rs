//! Entries of one slab of an index.
//!
//! Cells of several segments overlap: what is at hand are the entries that a cell which is still to
//! come may stand between, never more than one cell of each segment.

use crate::error::Result;
use crate::index::cell::{self, Entries, Entry};
use crate::tree::merge::Cell;

/// Bytes of tree, class, index and slab at the beginning of a key.
const PREFIX_BYTES: usize = 8 + 1 + 4 + 4;

/// Entries that are combined into as few cells as there may be.
#[derive(Debug)]
pub(crate) struct Slabs {
    prefix: Vec<u8>,
    /// In order, those that make no full cell yet.
    entries: Vec<Entry>,
}

impl Slabs {
    /// Begins with nothing of the slab that a cell with this key is of.
    pub(crate) fn new(key: &[u8]) -> Self {
        let prefix = key.get(..PREFIX_BYTES).unwrap_or(key).to_vec();
        Self { prefix, entries: Vec::new() }
    }

    /// What the keys of the slab's cells begin with.
    pub(crate) fn column(&self) -> &[u8] {
        &self.prefix
    }

    pub(crate) fn push(&mut self, (key, cell): Cell, out: &mut Vec<Cell>) -> Result<()> {
        let low = key.get(PREFIX_BYTES..).unwrap_or_default();
        let complete = self.entries.partition_point(|(entry, _)| **entry < *low);
        self.put(complete, false, out);
        let added = Entries::decode(&cell)?;
        self.entries.extend(added.iter().map(|(entry, begins)| (entry.into(), begins)));
        self.entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        // What was written again after a checkpoint that came to nothing is the same.
        self.entries.dedup_by(|(a, _), (b, _)| a == b);
        Ok(())
    }

    pub(crate) fn finish(mut self, out: &mut Vec<Cell>) {
        let all = self.entries.len();
        self.put(all, true, out);
    }

    /// Appends cells of the first entries to `out`: full ones, or at the end all.
    fn put(&mut self, complete: usize, is_end: bool, out: &mut Vec<Cell>) {
        let entries = self.entries[..complete].iter();
        let entries: Vec<_> = entries.map(|(entry, begins)| (&**entry, *begins)).collect();
        let mut rest = entries.as_slice();
        while let Some((first, _)) = rest.first() {
            let (now, later) = rest.split_at(cell::cell_len(rest));
            if later.is_empty() && !is_end {
                break;
            }
            let key = [self.prefix.as_slice(), first].concat();
            out.push((key.into(), cell::encode(now).into()));
            rest = later;
        }
        let done = complete - rest.len();
        self.entries.drain(..done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::cell_key::{self, TreeId};

    /// The cells that a level with entries of these ordinals has.
    fn cells(ordinals: impl Iterator<Item = u64>) -> Vec<Cell> {
        let prefix = cell_key::index_slab(TreeId(1), 2, 3);
        let mut entries = Entries::default();
        ordinals.for_each(|at| entries.add((b"k", at), 9, at.is_multiple_of(2)));
        let entries: Vec<_> = entries.iter().collect();
        let mut cells = Vec::new();
        let mut rest = entries.as_slice();
        while let Some((first, _)) = rest.first() {
            let (now, later) = rest.split_at(cell::cell_len(rest));
            cells.push(([&prefix[..], first].concat().into(), cell::encode(now).into()));
            rest = later;
        }
        cells
    }

    #[test]
    fn cells_of_several_segments_become_one_run_of_full_cells() {
        let parts = [cells((0..3_000).step_by(3)), cells((1..3_000).step_by(3)), cells(500..600)];
        let mut came = parts.concat();
        came.sort_unstable();
        let mut slabs = Slabs::new(&came[0].0);
        let mut out = Vec::new();
        for cell in came {
            slabs.push(cell, &mut out).unwrap();
            assert!(slabs.entries.len() < 800, "{}", slabs.entries.len());
        }
        slabs.finish(&mut out);
        let all = (0..3_000).filter(|n| n % 3 < 2 || (500..600).contains(n));
        assert_eq!(out, cells(all));
    }
}
