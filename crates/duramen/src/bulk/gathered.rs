//! What was read of a load and is to be written: columns that are filled, names of entries, and
//! cells that were complete as they came.

use crate::bulk::Subject;
use crate::encoding::{ColumnBuilder, pack_keys};
use crate::error::{Error, ErrorKind, Result};
use crate::lexical;
use crate::node::PathId;
use crate::segment::SegmentWriter;
use crate::tree::cell_key::{self, GroupCell, TreeId};
use crate::tree::group::GroupId;
use crate::tree::persist::Cells;

/// Bytes that a cell takes beside its key and content.
const CELL_BYTES: usize = 64;

/// What is to be written.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) columns: Vec<Filled>,
    pub(super) names: Names,
    pub(super) cells: Cells,
}

/// First states of consecutive slots of a column.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) column: (GroupId, PathId, GroupCell),
    pub(super) first_slot: u32,
    pub(super) states: ColumnBuilder,
}

/// Names of entries.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// As they stand in keys of cells, one behind the other.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// An entry of a map, whose name begins where that of the one before it ends.
#[derive(Debug, Clone, Copy)]
struct Entry {
    path: PathId,
    /// The ordinal of its map.
    map: u64,
    ordinal: u64,
    end: usize,
}

impl Gathered {
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty() && self.names.entries.is_empty() && self.cells.is_empty()
    }

    /// Adds what came later, its columns encoded, and tells by how many bytes that is more.
    pub(super) fn add(&mut self, tree: TreeId, later: Self) -> usize {
        let (cells, names) = (self.cells.len(), self.names.held_bytes());
        self.cells.extend(later.cells);
        for Filled { column: (group, path, kind), first_slot, states } in later.columns {
            let mut cell = Vec::new();
            states.encode(&mut cell);
            if kind == GroupCell::Key {
                cell = pack_keys(cell);
            }
            self.cells.push((cell_key::group_cell(tree, group, path, (kind, first_slot)), cell));
        }
        self.names.append(later.names);
        let added = self.cells[cells..].iter().map(|(key, cell)| key.len() + cell.len());
        added.map(|bytes| bytes + CELL_BYTES).sum::<usize>() + self.names.held_bytes() - names
    }

    /// Writes everything in the order of keys.
    pub(super) fn write(
        mut self,
        (tree, subject): (TreeId, Subject),
        writer: &mut SegmentWriter,
    ) -> Result<()> {
        self.cells.sort_unstable();
        let entries = cell_key::entries(tree);
        let before = self.cells.partition_point(|(key, _)| *key < entries);
        let (before, behind) = self.cells.split_at(before);
        before.iter().try_for_each(|(key, cell)| writer.push(key, cell))?;
        self.names.write((tree, subject), writer)?;
        behind.iter().try_for_each(|(key, cell)| writer.push(key, cell))
    }
}

impl Names {
    /// Adds the name of an entry.
    pub(super) fn push(&mut self, (path, map): (PathId, u64), ordinal: u64, name: &[u8]) {
        cell_key::put_entry_name(&mut self.bytes, name);
        self.entries.push(Entry { path, map, ordinal, end: self.bytes.len() });
    }

    fn append(&mut self, later: Self) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&later.bytes);
        let moved = |entry: Entry| Entry { end: before + entry.end, ..entry };
        self.entries.extend(later.entries.into_iter().map(moved));
    }

    fn held_bytes(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }

    fn get(&self, at: usize) -> (PathId, u64, &[u8]) {
        let Entry { path, map, end, .. } = self.entries[at];
        let start = at.checked_sub(1).map_or(0, |before| self.entries[before].end);
        (path, map, &self.bytes[start..end])
    }

    /// Which entries come after each other by their keys.
    fn in_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        if order.is_sorted_by(|&a, &b| self.get(a) <= self.get(b)) {
            return order;
        }
        let map = |&at: &usize| (self.entries[at].path, self.entries[at].map);
        order.sort_by_key(map);
        let maps = order.chunk_by(|a, b| map(a) == map(b));
        maps.flat_map(|map| lexical::in_order(map, |at| self.get(at).2)).collect()
    }

    fn write(&self, (tree, subject): (TreeId, Subject), writer: &mut SegmentWriter) -> Result<()> {
        let mut before = None;
        let (mut key, mut prefix_bytes) = (Vec::new(), 0);
        for at in self.in_order() {
            let (path, map, name) = self.get(at);
            if before.is_none_or(|(other, other_map, _)| (other, other_map) != (path, map)) {
                key = cell_key::entry(tree, path, map, b"");
                prefix_bytes = key.len();
            }
            key.truncate(prefix_bytes);
            key.extend_from_slice(name);
            if before.replace((path, map, name)) == Some((path, map, name)) {
                return Err(repeated(subject, &key));
            }
            writer.push(&key, &self.entries[at].ordinal.to_le_bytes())?;
        }
        Ok(())
    }
}

/// That the name in a key came twice.
pub(super) fn repeated(subject: Subject, key: &[u8]) -> Error {
    let name = String::from_utf8_lossy(cell_key::entry_name(key)).into_owned();
    match subject {
        Subject::Value => {
            let message = format!(
                "JSON is invalid: an object too long to be held in memory has the name {name:?} \
                 twice"
            );
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
