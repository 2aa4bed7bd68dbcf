//! The keys of records, looked up and read in their order.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::error::Result;
use crate::node::{NodeId, PathId};
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::schema::ROOT;

/// Bytes that a page has room for at first, for each of its keys.
const KEY_BYTES: usize = 36;

/// A range of keys, read in pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) low: Bound<Vec<u8>>,
    pub(crate) high: Bound<Vec<u8>>,
}

/// Keys that follow each other, with the ordinals of their records.
#[derive(Debug, Default)]
pub(crate) struct KeyPage {
    names: Vec<u8>,
    /// Where each ends among the names, and its ordinal.
    entries: Vec<(usize, u64)>,
}

impl KeyRange {
    /// Goes on behind a key, or before it if the range is read from its end.
    pub(crate) fn pass(&mut self, key: &[u8], is_reverse: bool) {
        let bound = Bound::Excluded(key.to_vec());
        if is_reverse {
            self.high = bound;
        } else {
            self.low = bound;
        }
    }
}

impl KeyPage {
    /// The first of some keys, or the last.
    fn of<K: AsRef<[u8]>>(
        keys: impl DoubleEndedIterator<Item = (K, u64)>,
        is_reverse: bool,
        limit: usize,
    ) -> Self {
        let mut page = Self::with_capacity(keys.size_hint().0.min(limit));
        let mut take = |(name, ordinal): (K, u64)| page.push(name.as_ref(), ordinal);
        if is_reverse {
            keys.rev().take(limit).for_each(&mut take);
        } else {
            keys.take(limit).for_each(&mut take);
        }
        page
    }

    /// None yet, with room for some.
    pub(crate) fn with_capacity(keys: usize) -> Self {
        let names = Vec::with_capacity(KEY_BYTES * keys);
        Self { names, entries: Vec::with_capacity(keys) }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn push(&mut self, name: &[u8], ordinal: u64) {
        self.names.extend_from_slice(name);
        self.entries.push((self.names.len(), ordinal));
    }

    /// A key and its ordinal; none behind the last.
    pub(crate) fn get(&self, index: usize) -> Option<(&[u8], u64)> {
        let &(end, ordinal) = self.entries.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.entries[before].0);
        Some((&self.names[start..end], ordinal))
    }

    /// The last key.
    pub(crate) fn last(&self) -> Option<(&[u8], u64)> {
        self.get(self.len().checked_sub(1)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    pub(crate) fn ordinals(&self) -> Vec<u64> {
        self.entries.iter().map(|&(_, ordinal)| ordinal).collect()
    }

    /// The first keys of two pages in the same order; of a key that both have one.
    fn merge(self, other: Self, is_reverse: bool, limit: usize) -> Self {
        if other.is_empty() {
            return self;
        }
        if self.is_empty() {
            return other;
        }
        let mut merged = Self::default();
        let (mut a, mut b) = (0, 0);
        while merged.len() < limit {
            let (one, two) = (self.get(a), other.get(b));
            let order = match (one, two) {
                (Some(one), Some(two)) if is_reverse => two.0.cmp(one.0),
                (Some(one), Some(two)) => one.0.cmp(two.0),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            // What a checkpoint moves to the disk meanwhile is found in both.
            a += usize::from(order.is_le());
            b += usize::from(order.is_ge());
            let next = if order.is_le() { one } else { two };
            if let Some((name, ordinal)) = next {
                merged.push(name, ordinal);
            }
        }
        merged
    }
}

impl Tree {
    /// The next keys of a range in their order, with their ordinals, whether their records are
    /// there or not; fewer than `limit` only at its end.
    pub(crate) fn record_keys(
        &self,
        range: &KeyRange,
        is_reverse: bool,
        limit: usize,
    ) -> Result<KeyPage> {
        self.entry_keys(ROOT, range, is_reverse, limit)
    }

    /// The same of the entries of another map, of which there is one.
    pub(crate) fn entry_keys(
        &self,
        map: PathId,
        range: &KeyRange,
        is_reverse: bool,
        limit: usize,
    ) -> Result<KeyPage> {
        let Some(path) = self.data.read().schema.path(map).entry else {
            return Ok(KeyPage::default());
        };
        let young = self.young_keys(path, range, is_reverse, limit);
        let on_disk = self.cells.entries(path, range, is_reverse, limit)?;
        Ok(young.merge(on_disk, is_reverse, limit))
    }

    fn young_keys(
        &self,
        path: PathId,
        range: &KeyRange,
        is_reverse: bool,
        limit: usize,
    ) -> KeyPage {
        let data = loop {
            let data = self.data.read();
            let space = data.schema.path(path).space.0 as usize;
            if data.spaces[space].keys.is_sorted() {
                break data;
            }
            drop(data);
            // A checkpoint that comes to its end in between leaves them unsorted again.
            self.data.write().spaces[space].keys.sort();
        };
        let keys = &data.spaces[data.schema.path(path).space.0 as usize].keys;
        let bounds =
            (range.low.as_ref().map(Vec::as_slice), range.high.as_ref().map(Vec::as_slice));
        let settled = KeyPage::of(keys.settled(bounds), is_reverse, limit);
        let recent = KeyPage::of(keys.recent(bounds), is_reverse, limit);
        settled.merge(recent, is_reverse, limit)
    }

    /// The record that had a key, there or not.
    pub(crate) fn record_ever(&self, key: &[u8]) -> Result<Option<NodeId>> {
        let (path, found) = self.record_ordinals(&[key])?;
        Ok(path.zip(found[0]).map(|(path, ordinal)| node(path, ordinal)))
    }

    /// The path of records, and the ordinals of those that had some keys, there or not.
    pub(crate) fn record_ordinals(
        &self,
        keys: &[impl AsRef<[u8]>],
    ) -> Result<(Option<PathId>, Vec<Option<u64>>)> {
        let mut found = vec![None; keys.len()];
        let (path, disk) = {
            let data = self.data.read();
            let Some(path) = data.schema.path(ROOT).entry else { return Ok((None, found)) };
            let space = data.schema.path(path).space;
            for (found, key) in found.iter_mut().zip(keys) {
                *found = data.young_entry(space, 0, key.as_ref());
            }
            (path, data.disk_state())
        };
        for (found, key) in found.iter_mut().zip(keys) {
            if found.is_none() {
                *found = self.record_on_disk((path, key.as_ref()), disk)?;
            }
        }
        Ok((Some(path), found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(names: &[&str]) -> KeyPage {
        let mut page = KeyPage::default();
        for (ordinal, name) in (0..).zip(names) {
            page.push(name.as_bytes(), ordinal);
        }
        page
    }

    fn names(page: &KeyPage) -> Vec<&str> {
        page.iter().map(|(name, _)| std::str::from_utf8(name).unwrap()).collect()
    }

    #[test]
    fn pages_merge_in_their_order_and_have_a_key_of_both_once() {
        let merged = page(&["a", "c", "d"]).merge(page(&["b", "c", "e", "f"]), false, 5);
        assert_eq!(names(&merged), ["a", "b", "c", "d", "e"]);
        let merged = page(&["d", "c", "a"]).merge(page(&["f", "c", "b"]), true, 9);
        assert_eq!(names(&merged), ["f", "d", "c", "b", "a"]);
        for (one, other) in [(page(&["a"]), page(&[])), (page(&[]), page(&["a"]))] {
            let merged = one.merge(other, false, 9);
            assert_eq!(merged.last(), Some((b"a".as_slice(), 0)));
        }
        assert!(page(&[]).merge(page(&[]), false, 9).last().is_none());
    }
}
