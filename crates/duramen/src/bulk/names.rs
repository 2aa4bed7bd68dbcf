//! The names of the entries of maps, which are to be cells in the order of their keys.
//!
//! Integers are kept as such as long as all names are: they are compared and sorted by one
//! comparison each, and the text of one is mostly that of the one before but for a digit.

use std::ops::Range;

use crate::bulk::Subject;
use crate::error::{Error, ErrorKind, Result};
use crate::key_text::{DIGITS, text_of_integer};
use crate::lexical;
use crate::node::PathId;
use crate::segment::SegmentWriter;
use crate::tree::cell_key::{self, TreeId};

#[cfg(test)]
mod tests;

/// Bytes that sorting takes of each name.
const SORTING_BYTES: usize = size_of::<(u64, usize)>() + size_of::<usize>();

/// Names of entries.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// As they stand in keys of cells, one behind the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The integers whose texts they are, if all of them are such; then the others are empty.
    integers: Vec<i64>,
    runs: Vec<Run>,
}

/// Entries of one map, of consecutive ordinals.
#[derive(Debug, Clone, Copy)]
struct Run {
    path: PathId,
    /// The ordinal of the map.
    map: u64,
    /// The first of the names, and the ordinal of its entry.
    start: usize,
    ordinal: u64,
    len: usize,
    /// Whether the names are in order.
    is_sorted: bool,
}

impl Run {
    fn map(&self) -> (PathId, u64) {
        (self.path, self.map)
    }

    /// Whether another run goes on where this one ends.
    fn goes_on(&self, next: &Self) -> bool {
        self.map() == next.map() && self.ordinal + self.len as u64 == next.ordinal
    }

    /// Which names, and the ordinals of their entries.
    fn entries(self) -> impl Iterator<Item = (usize, u64)> {
        (self.start..self.start + self.len).zip(self.ordinal..)
    }
}

impl Names {
    /// Adds the names of the entries of consecutive ordinals of a space, each with the ordinal of
    /// its map.
    pub(super) fn push<N: AsRef<[u8]>>(
        &mut self,
        (path, first): (PathId, u64),
        entries: impl Iterator<Item = (u64, N)>,
    ) {
        self.spell();
        let mut before = self.ends.len().checked_sub(1).map_or(0..0, |last| self.span(last));
        for (ordinal, (map, name)) in (first..).zip(entries) {
            cell_key::put_entry_name(&mut self.bytes, name.as_ref());
            let name = before.end..self.bytes.len();
            let run = Run { path, map, start: self.ends.len(), ordinal, len: 1, is_sorted: true };
            match self.runs.last_mut() {
                Some(last) if last.goes_on(&run) => {
                    last.len += 1;
                    last.is_sorted &= self.bytes[before] <= self.bytes[name.clone()];
                }
                _ => self.runs.push(run),
            }
            self.ends.push(name.end);
            before = name;
        }
    }

    /// The same of names that are the texts of integers, and the maps of the entries.
    pub(super) fn push_integers(
        &mut self,
        (path, mut ordinal): (PathId, u64),
        maps: &[i64],
        mut integers: &[i64],
    ) {
        if !self.ends.is_empty() {
            let names = integers.iter().map(|integer| text_of_integer((*integer).into()));
            let maps = maps.iter().map(|map| map.cast_unsigned());
            return self.push((path, ordinal), maps.zip(names));
        }
        for alike in maps.chunk_by(|map, other| map == other) {
            let (own, rest) = integers.split_at(alike.len());
            let (map, start, len) = (alike[0].cast_unsigned(), self.integers.len(), own.len());
            let run = Run { path, map, start, ordinal, len, is_sorted: own.is_sorted() };
            match self.runs.last_mut() {
                Some(last) if last.goes_on(&run) => {
                    last.len += len;
                    last.is_sorted &= run.is_sorted && self.integers.last() <= own.first();
                }
                _ => self.runs.push(run),
            }
            self.integers.extend_from_slice(own);
            (integers, ordinal) = (rest, ordinal + len as u64);
        }
    }

    /// Writes out the integers, if there are some: not all names are.
    fn spell(&mut self) {
        for integer in std::mem::take(&mut self.integers) {
            self.bytes.extend_from_slice(&text_of_integer(integer.into()));
            self.ends.push(self.bytes.len());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The key of the first one, if their keys come in order.
    pub(super) fn first_in_order(&self, tree: TreeId) -> Option<Vec<u8>> {
        let first = self.runs.first()?;
        let is_in_order = self.runs.is_sorted_by_key(Run::map)
            && self
                .runs
                .chunk_by(|run, other| run.map() == other.map())
                .all(|runs| self.are_sorted(runs));
        let mut key = cell_key::entry(tree, first.path, first.map, b"");
        match self.integers.get(first.start) {
            Some(first) => key.extend_from_slice(&text_of_integer((*first).into())),
            None => key.extend_from_slice(self.get(first.start)),
        }
        is_in_order.then_some(key)
    }

    /// Whether the names of a map are in order.
    fn are_sorted(&self, runs: &[Run]) -> bool {
        let go_on = |run: &Run, next: &Run| {
            let (last, first) = (run.start + run.len - 1, next.start);
            match (self.integers.get(last), self.integers.get(first)) {
                (Some(last), Some(first)) => last <= first,
                _ => self.get(last) <= self.get(first),
            }
        };
        runs.iter().all(|run| run.is_sorted)
            && runs.array_windows().all(|[run, next]| go_on(run, next))
    }

    /// Bytes that they take, and those that sorting them will.
    pub(super) fn held_bytes(&self) -> usize {
        let sorting = (self.ends.len() + self.integers.len()) * SORTING_BYTES;
        let ends = size_of_val(&*self.ends) + size_of_val(&*self.integers);
        self.bytes.len() + ends + size_of_val(&*self.runs) + sorting
    }

    fn get(&self, at: usize) -> &[u8] {
        &self.bytes[self.span(at)]
    }

    /// Where a name stands.
    fn span(&self, at: usize) -> Range<usize> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[at]
    }

    /// Writes all of them in the order of their keys.
    pub(super) fn write(
        mut self,
        (tree, subject): (TreeId, Subject),
        writer: &mut SegmentWriter,
    ) -> Result<()> {
        self.runs.sort_by_key(Run::map);
        for runs in self.runs.chunk_by(|run, other| run.map() == other.map()) {
            let entries = || runs.iter().flat_map(|run| run.entries());
            let mut keys = MapKeys::new(cell_key::entry(tree, runs[0].path, runs[0].map, b""));
            if !self.integers.is_empty() {
                self.write_integers(runs, (keys, subject), writer)?;
                continue;
            }
            let mut push =
                |(at, ordinal): (usize, u64)| keys.push(self.get(at), (ordinal, subject), writer);
            if self.are_sorted(runs) {
                entries().try_for_each(&mut push)?;
                continue;
            }
            let places = entries().map(|(at, _)| at).collect();
            let order = lexical::in_order(places, |at| self.get(at));
            order.into_iter().try_for_each(|at| push((at, ordinal_of(runs, at))))?;
        }
        Ok(())
    }

    /// Writes those of a map that are integers.
    fn write_integers(
        &self,
        runs: &[Run],
        (mut keys, subject): (MapKeys, Subject),
        writer: &mut SegmentWriter,
    ) -> Result<()> {
        let mut text = IntegerText::default();
        let mut push = |(integer, ordinal): (i64, u64)| {
            keys.push(text.of(integer), (ordinal, subject), writer)
        };
        let entries = || {
            let entries = runs.iter().flat_map(|run| run.entries());
            entries.map(|(at, ordinal)| (self.integers[at], ordinal))
        };
        if self.are_sorted(runs) {
            return entries().try_for_each(push);
        }
        let mut sorted: Vec<(i64, u64)> = entries().collect();
        sorted.sort_unstable();
        sorted.into_iter().try_for_each(&mut push)
    }
}

/// The text of the integer that was written last.
struct IntegerText {
    integer: i64,
    text: [u8; DIGITS],
}

impl Default for IntegerText {
    fn default() -> Self {
        Self { integer: 0, text: text_of_integer(0) }
    }
}

impl IntegerText {
    /// The text of an integer.
    #[inline]
    fn of(&mut self, integer: i64) -> &[u8] {
        let [.., digit] = &mut self.text;
        // Most often the next one is, of a digit more.
        if self.integer.checked_add(1) == Some(integer) && *digit < b'9' && integer != 0 {
            *digit += 1;
        } else {
            self.text = text_of_integer(integer.into());
        }
        self.integer = integer;
        &self.text
    }
}

/// The ordinal of the entry of one of the names of some runs, which follow each other.
fn ordinal_of(runs: &[Run], at: usize) -> u64 {
    let behind = runs.partition_point(|run| run.start <= at);
    let run = runs[behind - 1];
    run.ordinal + (at - run.start) as u64
}

/// The keys of the entries of a map, one after the other.
struct MapKeys {
    key: Vec<u8>,
    prefix_bytes: usize,
    is_first: bool,
}

impl MapKeys {
    fn new(prefix: Vec<u8>) -> Self {
        Self { prefix_bytes: prefix.len(), key: prefix, is_first: true }
    }

    /// Writes the entry of a name, which is another one than the last, and not before it.
    fn push(
        &mut self,
        name: &[u8],
        (ordinal, subject): (u64, Subject),
        writer: &mut SegmentWriter,
    ) -> Result<()> {
        let is_first = std::mem::take(&mut self.is_first);
        if !is_first && self.key[self.prefix_bytes..] == *name {
            return Err(repeated(subject, &self.key));
        }
        self.key.truncate(self.prefix_bytes);
        self.key.extend_from_slice(name);
        let alike = if is_first { 0 } else { self.prefix_bytes };
        writer.push_behind(alike, &self.key, &ordinal.to_le_bytes())
    }
}

/// That the name in a key came twice.
pub(super) fn repeated(subject: Subject, key: &[u8]) -> Error {
    let name = String::from_utf8_lossy(cell_key::entry_name(key)).into_owned();
    match subject {
        Subject::Value | Subject::Lines => {
            let message = format!(
                "JSON is invalid: an object too long to be held in memory has the name {name:?} \
                 twice"
            );
            Error::new(ErrorKind::Invalid, message)
        }
        Subject::Departed => {
            let message = format!("the key {name} is told to have departed twice");
            Error::new(ErrorKind::Invalid, message)
        }
        Subject::Records => {
            let message = format!(
                "two records have the key {name}: put them in batches, where the last one counts"
            );
            Error::new(ErrorKind::Conflict, message)
        }
    }
}
