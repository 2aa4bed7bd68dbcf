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
    ///
    /// Halves of them are merged first, so that no entry is copied once for each run: while a slab
    /// is copied there are many of one size.
    pub(super) fn merged(runs: &[Arc<Self>]) -> Arc<Self> {
        let [oldest, others @ ..] = runs else { return Arc::default() };
        if others.is_empty() {
            return Arc::clone(oldest);
        }
        let all: usize = runs.iter().map(|run| run.len()).sum();
        let mut before = 0;
        let half = runs.iter().position(|run| {
            before += run.len();
            2 * before >= all
        });
        let half = half.map_or(1, |last| last + 1).min(others.len());
        let (older, newer) = runs.split_at(half);
        Arc::new(Self::merged(newer).merged_into(&Self::merged(older)))
    }

    /// These and older ones: stretches that no entry of the other run is in are copied as they
    /// are, since what came one after the other often stays together.
    fn merged_into(&self, older: &Self) -> Self {
        let mut merged =
            Self::with_capacity(self.len() + older.len(), self.bytes() + older.bytes());
        let (mut own, mut old) = (0, 0);
        while let Some((entry, _)) = self.get(own) {
            let end = older.at_or_after(entry, old);
            merged.append(older, old..end);
            old = end;
            while older.get(old).is_some_and(|(same, _)| same == entry) {
                old += 1;
            }
            let next = older.get(old).map(|(next, _)| self.at_or_after(next, own));
            let next = next.unwrap_or(self.len());
            merged.append(self, own..next);
            own = next;
        }
        merged.append(older, old..older.len());
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

    #[test]
    fn runs_have_the_same_entries_merged_however_they_lie_between_each_other() {
        let parts: [&[u64]; 5] =
            [&[0, 1, 2, 3, 4, 5, 6, 7], &[2, 3, 8, 9], &[], &[1, 3, 5, 7, 9, 11], &[12, 13]];
        for picked in 0..1 << parts.len() {
            let is_picked = |index: &usize| picked >> index & 1 == 1;
            let picked: Vec<usize> = (0..parts.len()).filter(is_picked).collect();
            // Every other run says that records lost the key.
            let runs = runs(&picked.iter().map(|&at| (parts[at], at % 2 == 0)).collect::<Vec<_>>());
            let mut expected = std::collections::BTreeMap::new();
            for &at in &picked {
                expected.extend(parts[at].iter().map(|&ordinal| (ordinal, at % 2 == 0)));
            }
            assert_eq!(ordinals(&Entries::merged(&runs)), expected.into_iter().collect::<Vec<_>>());
        }
    }
}
