//! The keys of young map entries of one space: looked up by hash, and in order once somebody asks
//! for a range of them.
//!
//! Invariant: `sorted`, where it is there, has the same keys as `ordinals`.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A key as the index has it: the ordinal of the map, big-endian, and the entry's name.
pub(crate) type MapKey = Arc<[u8]>;

/// Keys of young entries.
#[derive(Debug, Default)]
pub(crate) struct YoungKeys {
    ordinals: FxHashMap<MapKey, u64>,
    /// Most maps are never read in the order of their keys.
    sorted: Option<BTreeMap<KeyBytes, u64>>,
}

/// A key that lies where it is, unless it is long: so going through keys in order goes through
/// memory in order (benchmark B).
type KeyBytes = SmallVec<[u8; 64]>;

/// The key of an entry of a map.
pub(crate) fn key_of(map: u64, name: &[u8]) -> KeyBytes {
    let mut bytes = KeyBytes::with_capacity(8 + name.len());
    bytes.extend_from_slice(&map.to_be_bytes());
    bytes.extend_from_slice(name);
    bytes
}

impl YoungKeys {
    pub(crate) fn get(&self, map: u64, name: &[u8]) -> Option<u64> {
        self.ordinals.get(key_of(map, name).as_slice()).copied()
    }

    pub(crate) fn insert(&mut self, key: MapKey, ordinal: u64) {
        if let Some(sorted) = &mut self.sorted {
            sorted.insert(KeyBytes::from_slice(&key), ordinal);
        }
        self.ordinals.insert(key, ordinal);
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        self.ordinals.remove(key);
        if let Some(sorted) = &mut self.sorted {
            sorted.remove(key);
        }
    }

    /// Keeps the keys of ordinals from `first` on.
    pub(crate) fn retain_from(&mut self, first: u64) {
        self.ordinals.retain(|_, ordinal| *ordinal >= first);
        self.ordinals.shrink_to_fit();
        self.sorted = None;
    }

    pub(crate) fn is_sorted(&self) -> bool {
        self.sorted.is_some() || self.ordinals.is_empty()
    }

    pub(crate) fn sort(&mut self) {
        self.sorted.get_or_insert_with(|| {
            let pairs = self.ordinals.iter();
            let pairs = pairs.map(|(key, ordinal)| (KeyBytes::from_slice(key), *ordinal));
            let mut pairs: Vec<(KeyBytes, u64)> = pairs.collect();
            pairs.sort_unstable();
            pairs.into_iter().collect()
        });
    }

    /// The keys between two bounds in order; none if they were not sorted.
    pub(crate) fn range(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> impl DoubleEndedIterator<Item = (&[u8], u64)> {
        let range = self.sorted.iter().flat_map(move |sorted| sorted.range::<[u8], _>(bounds));
        range.map(|(key, ordinal)| (key.as_slice(), *ordinal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(keys: &YoungKeys, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Vec<(Vec<u8>, u64)> {
        keys.range(bounds).map(|(key, ordinal)| (key[8..].to_vec(), ordinal)).collect()
    }

    #[test]
    fn sorted_keys_follow_what_is_inserted_removed_and_dropped() {
        let mut keys = YoungKeys::default();
        for (name, ordinal) in [("b", 0), ("a", 1), ("c", 2)] {
            keys.insert(key_of(0, name.as_bytes()).as_slice().into(), ordinal);
        }
        keys.insert(key_of(1, b"a").as_slice().into(), 3);
        assert!(!keys.is_sorted());
        keys.sort();
        let (low, high) = (key_of(0, b""), key_of(1, b""));
        let of_map = (Bound::Included(low.as_slice()), Bound::Excluded(high.as_slice()));
        let pair = |name: &str, ordinal| (name.as_bytes().to_vec(), ordinal);
        assert_eq!(names(&keys, of_map), [pair("a", 1), pair("b", 0), pair("c", 2)]);
        keys.insert(key_of(0, b"bb").as_slice().into(), 4);
        keys.remove(key_of(0, b"a").as_slice());
        assert_eq!(names(&keys, of_map), [pair("b", 0), pair("bb", 4), pair("c", 2)]);
        assert_eq!((keys.get(0, b"bb"), keys.get(0, b"a")), (Some(4), None));
        keys.retain_from(2);
        keys.sort();
        assert_eq!(names(&keys, of_map), [pair("bb", 4), pair("c", 2)]);
    }
}
