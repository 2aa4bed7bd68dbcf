//! The keys of young map entries of one space: looked up by hash, and those of the root in order
//! once somebody asks for a range of them.
//!
//! Invariants:
//! - entries that are settled stand first, in the order of their names: who reads a range of them
//!   goes through memory in its order, where the names of entries that follow each other would lie
//!   apart (benchmark B);
//! - behind them entries stand in the order in which they came, those of the staged transaction
//!   last;
//! - each entry of the root before `covered` is either settled or recent.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::ops::Bound;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use crate::key_text::{UUID_LEN, text_of_uuid, uuid_of};
use crate::lexical;
use crate::limits::ORDINALS_MAX;
use crate::tree::schema::index_u32;
use crate::tree::young::low_half;

/// The ordinal of the root where it is a map.
const ROOT_MAP: u64 = 0;

/// Recent entries are settled once there is more than one for so many that are.
const SETTLED_RATIO: usize = 4;

/// Keys of young entries.
#[derive(Debug, Default)]
pub(crate) struct YoungKeys {
    form: Form,
    /// One behind the other.
    names: Vec<u8>,
    entries: Vec<Entry>,
    /// The maps of the entries; none while all of them are of the root.
    maps: Vec<u64>,
    /// Where they are, by map and name.
    places: HashTable<Place>,
    /// How many of the first entries are settled: of the root, in the order of their names.
    settled: usize,
    /// Entries from here on are not in any order yet. Most maps are never read in theirs.
    covered: usize,
    /// No entry that may stand elsewhere than where it came has this ordinal or a later one.
    moved_end: u64,
    /// What came since entries were settled, which is much less.
    recent: BTreeMap<Name, usize>,
}

/// How names are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Form {
    /// All of them are UUIDs, as most keys of large collections: these are kept in their 16 bytes,
    /// whose order is that of the texts.
    #[default]
    Uuids,
    Texts,
}

/// The text of a name.
pub(crate) enum NameText<'n> {
    Uuid([u8; UUID_LEN]),
    Text(&'n [u8]),
}

impl AsRef<[u8]> for NameText<'_> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Uuid(text) => text,
            Self::Text(text) => text,
        }
    }
}

/// Which entry it is, and a part of what its map and name hash to: names lie apart, and are looked
/// at only where that is the same.
#[derive(Debug, Clone, Copy)]
struct Place {
    hash: u32,
    at: u32,
}

/// A key, which begins where the one before it ends: there may be millions, so its two numbers are
/// as long as they can get and no longer.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The lower halves of its ordinal and of where its name ends.
    ordinal: u32,
    end: u32,
    /// What is above: of the ordinal, and of the end from [`END_BIT`] on.
    above: u32,
}

const END_BIT: u32 = 8;

const _: () = assert!(ORDINALS_MAX <= 1 << (u32::BITS + END_BIT));

/// A name that lies where it is, unless it is long.
type Name = SmallVec<[u8; 64]>;

/// Where a range of names begins and ends.
pub(crate) type NameBounds<'n> = (Bound<&'n [u8]>, Bound<&'n [u8]>);

impl Entry {
    fn new(ordinal: u64, end: usize) -> Self {
        let end = end as u64;
        let above = ordinal >> u32::BITS | end >> u32::BITS << END_BIT;
        let above = u32::try_from(above).expect("names take less than 2^56 bytes");
        Self { ordinal: low_half(ordinal), end: low_half(end), above }
    }

    #[inline]
    fn ordinal(self) -> u64 {
        u64::from(self.ordinal) | u64::from(self.above & ((1 << END_BIT) - 1)) << u32::BITS
    }

    #[inline]
    fn end(self) -> usize {
        let end = u64::from(self.end) | u64::from(self.above >> END_BIT) << u32::BITS;
        usize::try_from(end).expect("it was one")
    }
}

impl Place {
    /// What the table has it by.
    #[inline]
    fn hash(self) -> u64 {
        spread(self.hash)
    }
}

/// A part of a hash of the map and the name of an entry.
#[inline]
fn hash(map: u64, name: &[u8]) -> u32 {
    let hash = FxBuildHasher.hash_one((map, name));
    low_half(hash ^ hash >> u32::BITS)
}

/// A hash of 64 bits from one of 32.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash) << u32::BITS | u64::from(hash)
}

impl YoungKeys {
    pub(crate) fn get(&self, map: u64, name: &[u8]) -> Option<u64> {
        let uuid = self.packed(name);
        if uuid.is_none() && self.form == Form::Uuids {
            return None;
        }
        let name = uuid.as_ref().map_or(name, <[u8; 16]>::as_slice);
        Some(self.entries[self.find(hash(map, name), (map, name))?].ordinal())
    }

    /// The bytes of a name, if it is kept so.
    #[inline]
    fn packed(&self, name: &[u8]) -> Option<[u8; 16]> {
        if self.form == Form::Uuids { uuid_of(name).map(u128::to_be_bytes) } else { None }
    }

    /// Which entry has a map, a name as it is kept, and what both hash to.
    #[inline]
    fn find(&self, hash: u32, (map, name): (u64, &[u8])) -> Option<usize> {
        let is = |place: &Place| {
            let at = place.at as usize;
            place.hash == hash && self.map(at) == map && self.name(at) == name
        };
        self.places.find(spread(hash), is).map(|place| place.at as usize)
    }

    pub(crate) fn insert(&mut self, map: u64, name: &[u8], ordinal: u64) {
        let uuid = self.packed(name);
        if uuid.is_none() && self.form == Form::Uuids {
            self.keep(Form::Texts, |_| true);
        }
        let name = uuid.as_ref().map_or(name, <[u8; 16]>::as_slice);
        let hash = hash(map, name);
        if let Some(at) = self.find(hash, (map, name)) {
            self.entries[at] = Entry::new(ordinal, self.entries[at].end());
            self.moved_end = self.moved_end.max(ordinal + 1);
            return;
        }
        if map != ROOT_MAP && self.maps.is_empty() {
            self.maps.resize(self.entries.len(), ROOT_MAP);
        }
        if map != ROOT_MAP || !self.maps.is_empty() {
            self.maps.push(map);
        }
        let place = Place { hash, at: index_u32(self.entries.len()) };
        self.names.extend_from_slice(name);
        self.entries.push(Entry::new(ordinal, self.names.len()));
        self.places.insert_unique(spread(hash), place, |place| place.hash());
    }

    /// Takes back the keys of ordinals from `first` on, which came last.
    pub(crate) fn truncate(&mut self, first: u64) {
        while self.entries.len() > self.settled
            && let Some(last) = self.entries.last().filter(|last| last.ordinal() >= first)
        {
            let (at, end) = (self.entries.len() - 1, last.end());
            let (map, name) = (self.map(at), self.name(at));
            let (start, hash) = (end - name.len(), hash(map, name));
            if at < self.covered && map == ROOT_MAP {
                let text = text_of(self.form, name_of(&self.names, &self.entries, at));
                self.recent.remove(text.as_ref());
            }
            let is = |place: &Place| place.at as usize == at;
            if let Ok(place) = self.places.find_entry(spread(hash), is) {
                place.remove();
            }
            self.names.truncate(start);
            self.entries.pop();
            self.maps.truncate(at);
        }
        self.covered = self.covered.min(self.entries.len());
        if self.moved_end > first {
            // Some were settled while the transaction was staged.
            self.keep(Form::Uuids, |ordinal| ordinal < first);
            self.moved_end = first;
        }
    }

    /// Keeps the keys of ordinals from `first` on.
    pub(crate) fn retain_from(&mut self, first: u64) {
        self.keep(Form::Uuids, |ordinal| ordinal >= first);
    }

    /// Keeps the keys of some ordinals, in no order yet, and in a form if they can be.
    fn keep(&mut self, form: Form, is_kept: impl Fn(u64) -> bool) {
        let old = std::mem::replace(self, Self { form, ..Self::default() });
        for (at, entry) in old.entries.iter().enumerate() {
            if is_kept(entry.ordinal()) {
                self.insert(old.map(at), old.text(at).as_ref(), entry.ordinal());
            }
        }
        self.moved_end = old.moved_end;
    }

    pub(crate) fn is_sorted(&self) -> bool {
        self.covered == self.entries.len()
    }

    /// Puts the root's entries that came since the last time in their order.
    pub(crate) fn sort(&mut self) {
        let is_of_root = |&at: &usize| self.map(at) == ROOT_MAP;
        let mut new: Vec<usize> = (self.covered..self.entries.len()).filter(is_of_root).collect();
        self.covered = self.entries.len();
        if SETTLED_RATIO * (self.recent.len() + new.len()) < self.settled {
            for at in new {
                let text = text_of(self.form, name_of(&self.names, &self.entries, at));
                self.recent.insert(Name::from_slice(text.as_ref()), at);
            }
            return;
        }
        new.extend(std::mem::take(&mut self.recent).into_values());
        if !new.is_empty() {
            let new = lexical::in_order(new, |at| self.name(at));
            self.settle(new);
        }
    }

    /// Puts entries, which are in the order of their names, between those that are settled.
    fn settle(&mut self, new: Vec<usize>) {
        let mut order = if self.settled == 0 { new } else { self.between_settled(&new) };
        let settled = order.len();
        if settled < self.entries.len() {
            // The map of none of these is the root.
            let rest = self.settled..self.entries.len();
            order.extend(rest.filter(|&at| self.map(at) != ROOT_MAP));
        }
        self.put_in_order(&order);
        self.settled = settled;
        let ends = self.entries[..settled].iter().map(|entry| entry.ordinal() + 1);
        self.moved_end = ends.max().unwrap_or(0).max(self.moved_end);
    }

    /// The order of entries and of all that are settled.
    fn between_settled(&self, new: &[usize]) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.entries.len());
        let mut before = 0;
        for &at in new {
            let name = self.name(at);
            while before < self.settled && self.name(before) < name {
                order.push(before);
                before += 1;
            }
            order.push(at);
        }
        order.extend(before..self.settled);
        order
    }

    /// Moves all entries: first their names, so that few things are there twice at a time.
    fn put_in_order(&mut self, order: &[usize]) {
        let mut names = Vec::with_capacity(self.names.len());
        for &at in order {
            names.extend_from_slice(self.name(at));
        }
        self.names = names;
        let mut entries = Vec::with_capacity(order.len());
        let mut moved = vec![0; order.len()];
        let mut end = 0;
        for (&at, to) in order.iter().zip(0..) {
            let start = at.checked_sub(1).map_or(0, |before| self.entries[before].end());
            end += self.entries[at].end() - start;
            entries.push(Entry::new(self.entries[at].ordinal(), end));
            moved[at] = to;
        }
        self.entries = entries;
        if !self.maps.is_empty() {
            self.maps = order.iter().map(|&at| self.maps[at]).collect();
        }
        self.places.iter_mut().for_each(|place| place.at = moved[place.at as usize]);
    }

    /// The root's entries between two bounds that are settled, in order, if they were sorted.
    pub(crate) fn settled(
        &self,
        (low, high): NameBounds<'_>,
    ) -> impl DoubleEndedIterator<Item = (NameText<'_>, u64)> {
        let start = self.settled_before(|name| match low {
            Bound::Included(low) => name < low,
            Bound::Excluded(low) => name <= low,
            Bound::Unbounded => false,
        });
        let end = self.settled_before(|name| match high {
            Bound::Included(high) => name <= high,
            Bound::Excluded(high) => name < high,
            Bound::Unbounded => true,
        });
        (start..end.max(start)).map(|at| (self.text(at), self.entries[at].ordinal()))
    }

    /// How many settled entries there are before the first of whose name something is not true.
    fn settled_before(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.settled);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.text(middle).as_ref()) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The same of those that came since then.
    pub(crate) fn recent(
        &self,
        bounds: NameBounds<'_>,
    ) -> impl DoubleEndedIterator<Item = (&[u8], u64)> {
        let recent = Some(&self.recent).filter(|_| !is_empty(bounds));
        let range = recent.into_iter().flat_map(move |recent| recent.range::<[u8], _>(bounds));
        range.map(|(name, &at)| (name.as_slice(), self.entries[at].ordinal()))
    }

    /// A name as it is kept.
    #[inline]
    fn name(&self, at: usize) -> &[u8] {
        name_of(&self.names, &self.entries, at)
    }

    #[inline]
    fn text(&self, at: usize) -> NameText<'_> {
        text_of(self.form, self.name(at))
    }

    #[inline]
    fn map(&self, at: usize) -> u64 {
        self.maps.get(at).copied().unwrap_or(ROOT_MAP)
    }
}

#[inline]
fn name_of<'n>(names: &'n [u8], entries: &[Entry], at: usize) -> &'n [u8] {
    let start = at.checked_sub(1).map_or(0, |before| entries[before].end());
    &names[start..entries[at].end()]
}

#[inline]
fn text_of(form: Form, name: &[u8]) -> NameText<'_> {
    match name.first_chunk().filter(|_| form == Form::Uuids) {
        Some(uuid) => NameText::Uuid(text_of_uuid(u128::from_be_bytes(*uuid))),
        None => NameText::Text(name),
    }
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
mod tests;
