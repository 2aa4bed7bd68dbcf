//! The keys of young map entries of one space: looked up by hash, and those of the root in order
//! once somebody asks for a range of them.
//!
//! Invariants:
//! - entries stand in the order in which they came, those of the staged transaction last;
//! - each entry of the root before `Order::covered` is either among those settled, or recent.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::ops::Bound;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use crate::lexical;

/// The ordinal of the root where it is a map.
const ROOT_MAP: u64 = 0;

/// Recent entries are settled once there is more than one for so many that are.
const SETTLED_RATIO: usize = 4;

/// Keys of young entries.
#[derive(Debug, Default)]
pub(crate) struct YoungKeys {
    /// One behind the other.
    names: Vec<u8>,
    entries: Vec<Entry>,
    /// Where they are, by map and name.
    places: HashTable<Place>,
    order: Order,
}

/// Which entry it is, and what its map and name hash to: names lie apart, and are looked at only
/// where that is the same.
#[derive(Debug, Clone, Copy)]
struct Place {
    hash: u64,
    at: usize,
}

/// A key, which begins where the one before it ends.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The ordinal of its map.
    map: u64,
    ordinal: u64,
    /// Where its name ends.
    end: usize,
}

/// The root's entries in the order of their names. Most maps are never read so.
#[derive(Debug, Default)]
struct Order {
    /// Entries from here on are not in it yet.
    covered: usize,
    settled: Settled,
    /// No settled entry is behind this one.
    settled_end: usize,
    /// What came since, which is much less.
    recent: BTreeMap<Name, usize>,
}

/// Entries in the order of their names, with these: who reads a range of them goes through memory
/// in its order, where the names of entries that follow each other lie apart (benchmark B).
#[derive(Debug, Default)]
struct Settled {
    /// One behind the other.
    names: Vec<u8>,
    places: Vec<SettledPlace>,
}

#[derive(Debug, Clone, Copy)]
struct SettledPlace {
    /// Where its name ends.
    end: usize,
    ordinal: u64,
    /// Which entry it is.
    at: usize,
}

/// A name that lies where it is, unless it is long.
type Name = SmallVec<[u8; 64]>;

/// Where a range of names begins and ends.
pub(crate) type NameBounds<'n> = (Bound<&'n [u8]>, Bound<&'n [u8]>);

fn hash(map: u64, name: &[u8]) -> u64 {
    FxBuildHasher.hash_one((map, name))
}

impl YoungKeys {
    pub(crate) fn get(&self, map: u64, name: &[u8]) -> Option<u64> {
        let hash = hash(map, name);
        let found = self.places.find(hash, |place| self.is(place, hash, (map, name)))?;
        Some(self.entries[found.at].ordinal)
    }

    pub(crate) fn insert(&mut self, map: u64, name: &[u8], ordinal: u64) {
        let hash = hash(map, name);
        let known = self.places.find(hash, |place| self.is(place, hash, (map, name)));
        if let Some(&Place { at, .. }) = known {
            let before = std::mem::replace(&mut self.entries[at].ordinal, ordinal);
            if map == ROOT_MAP && before != ordinal {
                // Those that are settled have their ordinals with them.
                self.order = Order::default();
            }
            return;
        }
        self.names.extend_from_slice(name);
        self.entries.push(Entry { map, ordinal, end: self.names.len() });
        let place = Place { hash, at: self.entries.len() - 1 };
        self.places.insert_unique(hash, place, |place| place.hash);
    }

    /// Takes back the keys of ordinals from `first` on, which came last.
    pub(crate) fn truncate(&mut self, first: u64) {
        let before = self.entries.len();
        while let Some(last) = self.entries.last().filter(|last| last.ordinal >= first) {
            let (map, at) = (last.map, self.entries.len() - 1);
            let name = name_of(&self.names, &self.entries, at);
            let (start, hash) = (self.names.len() - name.len(), hash(map, name));
            if at < self.order.covered && map == ROOT_MAP {
                self.order.recent.remove(name);
            }
            if let Ok(place) = self.places.find_entry(hash, |place| place.at == at) {
                place.remove();
            }
            self.names.truncate(start);
            self.entries.pop();
        }
        if self.entries.len() < before {
            self.order.truncate(self.entries.len());
        }
    }

    /// Keeps the keys of ordinals from `first` on.
    pub(crate) fn retain_from(&mut self, first: u64) {
        let old = std::mem::take(self);
        for (at, entry) in old.entries.iter().enumerate() {
            if entry.ordinal >= first {
                self.insert(entry.map, old.name(at), entry.ordinal);
            }
        }
    }

    pub(crate) fn is_sorted(&self) -> bool {
        self.order.covered == self.entries.len()
    }

    /// Puts the root's entries that came since the last time in their order.
    pub(crate) fn sort(&mut self) {
        let is_of_root = |&at: &usize| self.entries[at].map == ROOT_MAP;
        let mut new: Vec<usize> =
            (self.order.covered..self.entries.len()).filter(is_of_root).collect();
        self.order.covered = self.entries.len();
        if SETTLED_RATIO * (self.order.recent.len() + new.len()) < self.order.settled.places.len() {
            for at in new {
                let name = Name::from_slice(name_of(&self.names, &self.entries, at));
                self.order.recent.insert(name, at);
            }
            return;
        }
        new.extend(std::mem::take(&mut self.order.recent).into_values());
        let new = lexical::in_order(&new, |at| self.name(at));
        self.order.settled = self.merged(&self.order.settled, new);
        self.order.settled_end = self.entries.len();
    }

    /// The entries of two orders in one.
    fn merged(&self, settled: &Settled, new: Vec<usize>) -> Settled {
        let mut merged = Settled {
            names: Vec::with_capacity(self.names.len()),
            places: Vec::with_capacity(settled.places.len() + new.len()),
        };
        let mut settled = settled.iter().peekable();
        for at in new {
            let name = self.name(at);
            while let Some((name, place)) = settled.next_if(|&(other, _)| other < name) {
                merged.push(name, place.ordinal, place.at);
            }
            merged.push(name, self.entries[at].ordinal, at);
        }
        settled.for_each(|(name, place)| merged.push(name, place.ordinal, place.at));
        merged
    }

    /// The root's entries between two bounds that are settled, in order, if they were sorted.
    pub(crate) fn settled(
        &self,
        (low, high): NameBounds<'_>,
    ) -> impl DoubleEndedIterator<Item = (&[u8], u64)> {
        let settled = &self.order.settled;
        let start = settled.partition_point(|name| match low {
            Bound::Included(low) => name < low,
            Bound::Excluded(low) => name <= low,
            Bound::Unbounded => false,
        });
        let end = settled.partition_point(|name| match high {
            Bound::Included(high) => name <= high,
            Bound::Excluded(high) => name < high,
            Bound::Unbounded => true,
        });
        (start..end.max(start)).map(|index| (settled.name(index), settled.places[index].ordinal))
    }

    /// The same of those that came since then.
    pub(crate) fn recent(
        &self,
        bounds: NameBounds<'_>,
    ) -> impl DoubleEndedIterator<Item = (&[u8], u64)> {
        let recent = Some(&self.order.recent).filter(|_| !is_empty(bounds));
        let range = recent.into_iter().flat_map(move |recent| recent.range::<[u8], _>(bounds));
        range.map(|(name, &at)| (name.as_slice(), self.entries[at].ordinal))
    }

    fn name(&self, at: usize) -> &[u8] {
        name_of(&self.names, &self.entries, at)
    }

    fn is(&self, place: &Place, hash: u64, (map, name): (u64, &[u8])) -> bool {
        place.hash == hash && self.entries[place.at].map == map && self.name(place.at) == name
    }
}

impl Order {
    /// Forgets all entries from one on; those that are recent are gone already.
    fn truncate(&mut self, entries: usize) {
        self.covered = self.covered.min(entries);
        if self.settled_end > entries {
            self.settled = self.settled.before(entries);
            self.settled_end = entries;
        }
    }
}

impl Settled {
    fn push(&mut self, name: &[u8], ordinal: u64, at: usize) {
        self.names.extend_from_slice(name);
        self.places.push(SettledPlace { end: self.names.len(), ordinal, at });
    }

    fn name(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.places[before].end);
        &self.names[start..self.places[index].end]
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], SettledPlace)> {
        self.places.iter().enumerate().map(|(index, &place)| (self.name(index), place))
    }

    /// How many names there are before the first of which something is not true.
    fn partition_point(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.places.len());
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.name(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Those of the entries before one.
    fn before(&self, entries: usize) -> Self {
        let mut kept = Self::default();
        for (name, place) in self.iter().filter(|(_, place)| place.at < entries) {
            kept.push(name, place.ordinal, place.at);
        }
        kept
    }
}

fn name_of<'n>(names: &'n [u8], entries: &[Entry], at: usize) -> &'n [u8] {
    let start = at.checked_sub(1).map_or(0, |before| entries[before].end);
    &names[start..entries[at].end]
}

/// Whether nothing can be between two bounds.
fn is_empty((low, high): NameBounds<'_>) -> bool {
    let (Bound::Included(first) | Bound::Excluded(first)) = low else { return false };
    let (Bound::Included(last) | Bound::Excluded(last)) = high else { return false };
    match first.cmp(last) {
        Ordering::Less => false,
        Ordering::Equal => !matches!((low, high), (Bound::Included(_), Bound::Included(_))),
        Ordering::Greater => true,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::btree_map::Entry;

    use super::*;

    fn names(keys: &YoungKeys, bounds: NameBounds<'_>) -> Vec<(String, u64)> {
        let all = keys.settled(bounds).chain(keys.recent(bounds));
        let text = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
        let mut all: Vec<_> = all.map(|(name, ordinal)| (text(name), ordinal)).collect();
        all.sort();
        all
    }

    #[test]
    fn sorted_keys_follow_what_is_inserted_taken_back_and_dropped() {
        let mut keys = YoungKeys::default();
        let mut model: BTreeMap<String, u64> = BTreeMap::new();
        let (mut random, mut first, mut next) = (5_u64, 0, 0);
        for step in 0..3_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = random >> 40;
            match (random >> 33) % 50 {
                0..40 => {
                    let name = format!("key/{:03}", place % 900);
                    if let Entry::Vacant(place) = model.entry(name.clone()) {
                        assert_eq!(keys.get(0, name.as_bytes()), None);
                        keys.insert(0, name.as_bytes(), next);
                        keys.insert(next + 1, name.as_bytes(), next + 1);
                        place.insert(next);
                        next += 2;
                    }
                }
                40..44 => keys.sort(),
                44..46 => {
                    next = next.saturating_sub(2 * (place % 4)).max(first);
                    keys.truncate(next);
                    model.retain(|_, ordinal| *ordinal < next);
                }
                46 if step % 9 == 0 => {
                    first = u64::midpoint(first, next) / 2 * 2;
                    keys.retain_from(first);
                    model.retain(|_, ordinal| *ordinal >= first);
                }
                _ => {}
            }
            for (name, ordinal) in model.iter().take(20) {
                assert_eq!(keys.get(0, name.as_bytes()), Some(*ordinal), "in step {step}");
                assert_eq!(keys.get(ordinal + 1, name.as_bytes()), Some(ordinal + 1));
            }
            if keys.is_sorted() {
                let low = format!("key/{:03}", place % 900);
                let bounds = (Bound::Excluded(low.as_bytes()), Bound::Included(&b"key/7"[..]));
                let expected =
                    model.iter().filter(|(name, _)| **name > low && name.as_str() <= "key/7");
                let expected: Vec<_> =
                    expected.map(|(name, ordinal)| (name.clone(), *ordinal)).collect();
                assert_eq!(names(&keys, bounds), expected, "in step {step}");
                let settled: Vec<_> = keys.settled((Bound::Unbounded, Bound::Unbounded)).collect();
                assert!(
                    settled.is_sorted() && settled.len() + keys.order.recent.len() == model.len()
                );
            }
        }
    }

    #[test]
    fn a_key_that_gets_another_ordinal_is_read_with_that_one() {
        let mut keys = YoungKeys::default();
        keys.insert(0, b"b", 0);
        keys.sort();
        keys.insert(0, b"b", 7);
        keys.sort();
        assert_eq!(names(&keys, (Bound::Unbounded, Bound::Unbounded)), [("b".into(), 7)]);
    }

    #[test]
    fn few_keys_that_come_are_not_sorted_in_with_all() {
        let mut keys = YoungKeys::default();
        let name = |ordinal: u64| format!("{:05}", ordinal * 7_919 % 100_000);
        (0..1_000).for_each(|ordinal| keys.insert(0, name(ordinal).as_bytes(), ordinal));
        keys.sort();
        assert_eq!((keys.order.settled.places.len(), keys.order.recent.len()), (1_000, 0));
        for ordinal in 1_000..1_200 {
            keys.insert(0, name(ordinal).as_bytes(), ordinal);
            assert!(!keys.is_sorted());
            keys.sort();
        }
        assert_eq!((keys.order.settled.places.len(), keys.order.recent.len()), (1_000, 200));
        keys.truncate(1_100);
        assert_eq!(names(&keys, (Bound::Unbounded, Bound::Unbounded)).len(), 1_100);
        for bounds in [
            (Bound::Included(&b"5"[..]), Bound::Included(&b"4"[..])),
            (Bound::Excluded(&b"5"[..]), Bound::Excluded(&b"5"[..])),
        ] {
            assert_eq!(names(&keys, bounds), []);
        }
    }
}
