//! Entries of an index that no segment has: of each slab some sorted runs, none of which changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cell::{self, Entries};
use super::run;
use crate::error::Result;
use crate::tree::cell_key::{self, TreeId};
use crate::tree::persist::PutCell;

/// Approximate bytes that an entry takes beside its own.
const ENTRY_BYTES: usize = 16;

/// A run is merged with those that came after it once they have more than one entry for so many of
/// its own: so there are few runs, and an entry is copied a few times for each time that the slab
/// became so many times as long.
const RUN_RATIO: usize = 4;

/// The same of long runs, and how many entries make one: what is merged is there twice meanwhile,
/// and some more runs of which each is as long as that cost a look-up little.
const LONG_RUN_RATIO: usize = 2;
const LONG_RUN: usize = 32_768;

/// Entries by the first revision of their slab.
#[derive(Debug, Clone, Default)]
pub(crate) struct Young {
    /// Of each slab the oldest run first.
    slabs: BTreeMap<u32, Vec<Arc<Entries>>>,
}

/// Runs of a slab, the last ones, that are to be one.
pub(super) struct Merge {
    slab: u32,
    first: usize,
    runs: Vec<Arc<Entries>>,
}

impl Merge {
    /// All entries of them.
    pub(super) fn merged(&self) -> Arc<Entries> {
        Entries::merged(&self.runs)
    }
}

impl Young {
    pub(crate) fn is_empty(&self) -> bool {
        self.slabs.is_empty()
    }

    /// Adds a sorted run; approximate bytes that it takes.
    pub(crate) fn add(&mut self, slab: u32, run: Entries) -> usize {
        if run.len() == 0 {
            return 0;
        }
        let bytes = ENTRY_BYTES * run.len() + run.bytes();
        self.slabs.entry(slab).or_default().push(Arc::new(run));
        bytes
    }

    /// The runs of a slab, the oldest first.
    pub(super) fn runs(&self, slab: u32) -> &[Arc<Entries>] {
        self.slabs.get(&slab).map_or(&[], Vec::as_slice)
    }

    /// The runs that should become one, if there are any.
    pub(super) fn merge_due(&self, slab: u32) -> Option<Merge> {
        let runs = self.runs(slab);
        let mut first = runs.len().checked_sub(1)?;
        let mut behind = runs[first].len();
        while let Some(before) = first.checked_sub(1)
            && is_short(runs[before].len(), behind)
        {
            behind += runs[before].len();
            first = before;
        }
        let runs = &runs[first..];
        (runs.len() > 1).then(|| Merge { slab, first, runs: runs.to_vec() })
    }

    /// Puts what runs were merged into in their place, unless they went elsewhere meanwhile.
    pub(super) fn replace(&mut self, merge: &Merge, merged: Arc<Entries>) {
        let Some(runs) = self.slabs.get_mut(&merge.slab) else { return };
        let are_there = runs.get(merge.first..).is_some_and(|last| {
            last.len() == merge.runs.len()
                && last.iter().zip(&merge.runs).all(|(a, b)| Arc::ptr_eq(a, b))
        });
        if are_there {
            runs.truncate(merge.first);
            runs.push(merged);
        }
    }

    /// Adds all entries of others, which are newer.
    pub(crate) fn extend(&mut self, others: Self) {
        for (slab, runs) in others.slabs {
            self.slabs.entry(slab).or_default().extend(runs);
        }
    }

    /// Hands over the cells of all entries, in the order of their keys.
    pub(crate) fn cells(&self, (tree, index): (TreeId, u32), push: &mut PutCell<'_>) -> Result<()> {
        for (&slab, runs) in &self.slabs {
            let prefix = cell_key::index_slab(tree, index, slab);
            let (mut gathered, mut bytes) = (Vec::new(), 0);
            let mut put = |entries: &[(&[u8], bool)]| match entries.first() {
                Some((first, _)) => {
                    push(&[prefix.as_slice(), first].concat(), &cell::encode(entries))
                }
                None => Ok(()),
            };
            run::for_each_merged(runs, |entry| {
                if cell::is_cell(gathered.len(), bytes) {
                    put(&gathered)?;
                    gathered.clear();
                    bytes = 0;
                }
                bytes += entry.0.len();
                gathered.push(entry);
                Ok(())
            })?;
            put(&gathered)?;
        }
        Ok(())
    }
}

/// Whether a run should be merged with so many entries behind it.
fn is_short(run: usize, behind: usize) -> bool {
    let ratio = if run < LONG_RUN { RUN_RATIO } else { LONG_RUN_RATIO };
    run < ratio * behind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_stay_few_and_have_all_that_came() {
        let mut young = Young::default();
        for ordinal in 0..1_000 {
            let mut run = Entries::default();
            run.add((b"k", ordinal * 7 % 1_000), 1, true);
            young.add(3, run);
            if let Some(merge) = young.merge_due(3) {
                let merged = merge.merged();
                young.replace(&merge, merged);
            }
            assert!(young.runs(3).len() <= 6, "{} runs", young.runs(3).len());
        }
        assert_eq!(Entries::merged(young.runs(3)).len(), 1_000);
    }

    #[test]
    fn long_runs_are_merged_once_as_much_is_behind_them_as_half_of_them() {
        assert!(is_short(30_000, 8_000) && !is_short(30_000, 7_500));
        assert!(is_short(40_000, 21_000) && !is_short(40_000, 20_000));
    }

    #[test]
    fn runs_that_went_elsewhere_are_not_replaced() {
        let mut young = Young::default();
        let run = |ordinal| {
            let mut run = Entries::default();
            run.add((b"k", ordinal), 1, true);
            run
        };
        young.add(3, run(1));
        young.add(3, run(2));
        let merge = young.merge_due(3).unwrap();
        let older = std::mem::take(&mut young);
        young.add(3, run(3));
        young.replace(&merge, merge.merged());
        assert_eq!(*Entries::merged(young.runs(3)), run(3));
        let mut all = older;
        all.extend(young);
        assert_eq!(Entries::merged(all.runs(3)).len(), 3);
    }
}
