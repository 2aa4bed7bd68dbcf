//! Entries put in order, and runs of them combined.

use std::sync::Arc;

use super::cell::Entries;
use crate::lexical;

impl Entries {
    /// The same in order.
    pub(super) fn sorted(self) -> Self {
        if self.iter().is_sorted_by(|(a, _), (b, _)| a <= b) {
            return self;
        }
        let indexes: Vec<usize> = (0..self.len()).collect();
        let order =
            lexical::in_order(&indexes, |index| self.get(index).map_or(&[], |(entry, _)| entry));
        let mut sorted = Self::with_capacity(self.len(), self.bytes());
        order.iter().filter_map(|&index| self.get(index)).for_each(|entry| sorted.push(entry));
        sorted
    }

    /// All entries of several runs, the newest of those last: of entries that are the same it
    /// counts.
    pub(super) fn merged(runs: &[Arc<Self>]) -> Self {
        let count = runs.iter().map(|run| run.len()).sum();
        let bytes = runs.iter().map(|run| run.bytes()).sum();
        let mut merged = Self::with_capacity(count, bytes);
        let mut heads: Vec<_> = runs.iter().rev().map(|run| (run.get(0), 0, run)).collect();
        while let Some(least) =
            heads.iter().filter_map(|(head, ..)| *head).min_by_key(|head| head.0)
        {
            merged.push(least);
            for (head, index, run) in &mut heads {
                if head.is_some_and(|(entry, _)| entry == least.0) {
                    *index += 1;
                    *head = run.get(*index);
                }
            }
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same entry, with another meaning in each.
    fn runs(parts: &[(&[u64], bool)]) -> Vec<Arc<Entries>> {
        let run = |&(ordinals, begins): &(&[u64], bool)| {
            let mut run = Entries::default();
            for &ordinal in ordinals {
                run.add((b"key", ordinal), 1, begins);
            }
            Arc::new(run.sorted())
        };
        parts.iter().map(run).collect()
    }

    fn ordinals(entries: &Entries) -> Vec<(u64, bool)> {
        let split = |entry| super::super::cell::split(super::super::cell::group(entry)).1;
        entries.iter().map(|(entry, begins)| (split(entry), begins)).collect()
    }

    #[test]
    fn entries_are_sorted_whatever_they_begin_with() {
        let mut entries = Entries::default();
        let keys: [&[u8]; 6] = [b"beta", b"alphabet", b"", b"alpha", b"alphabet soup", b"beta"];
        for (ordinal, key) in (0..).zip(keys) {
            entries.add((key, ordinal), 7, ordinal % 2 == 0);
        }
        let mut expected: Vec<_> = entries.iter().collect();
        expected.sort_unstable();
        let sorted = entries.clone().sorted();
        assert_eq!(sorted.iter().collect::<Vec<_>>(), expected);
        assert_eq!(Entries::default().sorted(), Entries::default());
    }

    #[test]
    fn of_the_same_entry_in_several_runs_the_newest_counts() {
        let runs = runs(&[(&[9, 1, 4], true), (&[], true), (&[4, 5], false)]);
        let merged = Entries::merged(&runs);
        assert_eq!(ordinals(&merged), [(1, true), (4, false), (5, false), (9, true)]);
    }
}
