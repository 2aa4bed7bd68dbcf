//! The names of the entries of maps, which are to be cells in the order of their keys.

use std::ops::Range;

use crate::bulk::Subject;
use crate::error::{Error, ErrorKind, Result};
use crate::lexical;
use crate::node::PathId;
use crate::segment::SegmentWriter;
use crate::tree::cell_key::{self, TreeId};

/// Bytes that sorting takes of each name.
const SORTING_BYTES: usize = size_of::<(u64, usize)>() + size_of::<usize>();

/// Names of entries.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// As they stand in keys of cells, one behind the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
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

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
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
        key.extend_from_slice(self.get(first.start));
        is_in_order.then_some(key)
    }

    /// Whether the names of a map are in order.
    fn are_sorted(&self, runs: &[Run]) -> bool {
        let go_on =
            |run: &Run, next: &Run| self.get(run.start + run.len - 1) <= self.get(next.start);
        runs.iter().all(|run| run.is_sorted)
            && runs.array_windows().all(|[run, next]| go_on(run, next))
    }

    /// Bytes that they take, and those that sorting them will.
    pub(super) fn held_bytes(&self) -> usize {
        let sorting = self.ends.len() * SORTING_BYTES;
        self.bytes.len() + size_of_val(&*self.ends) + size_of_val(&*self.runs) + sorting
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
            let mut push = |(at, ordinal): (usize, u64)| {
                let (key, is_new) = keys.next(self.get(at));
                if !is_new {
                    return Err(repeated(subject, key));
                }
                writer.push(key, &ordinal.to_le_bytes())
            };
            if self.are_sorted(runs) {
                entries().try_for_each(&mut push)?;
                continue;
            }
            let places: Vec<usize> = entries().map(|(at, _)| at).collect();
            let order = lexical::in_order(&places, |at| self.get(at));
            drop(places);
            order.into_iter().try_for_each(|at| push((at, ordinal_of(runs, at))))?;
        }
        Ok(())
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

    /// The key of the entry of a name, and whether it is another one than the last.
    fn next(&mut self, name: &[u8]) -> (&[u8], bool) {
        let is_new = std::mem::take(&mut self.is_first) || self.key[self.prefix_bytes..] != *name;
        self.key.truncate(self.prefix_bytes);
        self.key.extend_from_slice(name);
        (&self.key, is_new)
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
