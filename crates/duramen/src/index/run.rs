//! Entries put in order, and runs of them combined.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use super::cell::Entries;
use crate::error::Result;
use crate::lexical;

impl Entries {
    /// The same in order.
    pub(super) fn sorted(self) -> Self {
        if self.iter().is_sorted_by(|(a, _), (b, _)| a <= b) {
            return self;
        }
        let indexes: Vec<usize> = (0..self.len()).collect();
        let order =
            lexical::in_order(indexes, |index| self.get(index).map_or(&[], |(entry, _)| entry));
        let mut sorted = Self::with_capacity(self.len(), self.bytes());
        order.iter().filter_map(|&index| self.get(index)).for_each(|entry| sorted.push(entry));
        sorted
    }

    /// All entries of several runs, the newest of those last: of entries that are the same it
    /// counts.
    ///
    /// Runs are few, and stretches of one that no entry of the others is in are copied as they are,
    /// since what came one after the other often stays together. Nothing but what comes of it is
    /// made for that: a large index would else take as much again.
    pub(super) fn merged(runs: &[Arc<Self>]) -> Arc<Self> {
        match runs {
            [] => return Arc::default(),
            [only] => return Arc::clone(only),
            _ => {}
        }
        let count = runs.iter().map(|run| run.len()).sum();
        let bytes = runs.iter().map(|run| run.bytes()).sum();
        let mut merged = Self::with_capacity(count, bytes);
        let mut heads: Vec<_> = runs.iter().map(|run| (run.as_ref(), 0)).collect();
        while let Some(Stretch { of, range }) = next_stretch(&mut heads) {
            merged.append(heads[of].0, range.clone());
            heads[of].1 = range.end;
        }
        Arc::new(merged)
    }
}

/// Calls `visit` with all entries of several runs, as [`Entries::merged`] has them.
pub(super) fn for_each_merged<'e>(
    runs: &'e [Arc<Entries>],
    mut visit: impl FnMut((&'e [u8], bool)) -> Result<()>,
) -> Result<()> {
    let mut heads: Vec<_> = runs.iter().map(|run| (run.as_ref(), 0)).collect();
    while let Some(Stretch { of, range }) = next_stretch(&mut heads) {
        let (run, at) = &mut heads[of];
        *at = range.end;
        range.filter_map(|index| run.get(index)).try_for_each(&mut visit)?;
    }
    Ok(())
}

/// Entries of a run.
struct Stretch {
    of: usize,
    range: Range<usize>,
}

/// The next entries of several runs, each from a place on, that follow each other in one of them;
/// older ones that are the same as a newer one are gone past.
fn next_stretch(heads: &mut [(&Entries, usize)]) -> Option<Stretch> {
    let mut least: Option<(usize, &[u8])> = None;
    let mut second: Option<&[u8]> = None;
    let mut of = 0;
    while of < heads.len() {
        let (run, at) = heads[of];
        if let Some((entry, _)) = run.get(at) {
            match least.map(|(before, least)| (before, least, entry.cmp(least))) {
                None => least = Some((of, entry)),
                Some((_, before, Ordering::Less)) => {
                    (least, second) = (Some((of, entry)), Some(before));
                }
                Some((older, _, Ordering::Equal)) => {
                    heads[older].1 += 1;
                    return next_stretch(heads);
                }
                Some((_, _, Ordering::Greater)) => {
                    second = Some(second.map_or(entry, |second| second.min(entry)));
                }
            }
        }
        of += 1;
    }
    let (of, _) = least?;
    let (run, at) = heads[of];
    let end = second.map_or(run.len(), |second| run.at_or_after(second, at));
    Some(Stretch { of, range: at..end })
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
