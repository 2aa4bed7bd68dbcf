//! What was read of a load and is to be written: cells, and names of entries.

use crate::bulk::Subject;
use crate::bulk::names::Names;
use crate::encoding::{ColumnBuilder, encode_keys, unmixed_keys};
use crate::error::Result;
use crate::limits::ROW_GROUP_SLOTS;
use crate::node::PathId;
use crate::segment::SegmentWriter;
use crate::tree::cell_key::{self, GroupCell, TreeId};
use crate::tree::group::GroupId;
use crate::tree::persist::Cells;

/// Bytes that a cell takes beside its key and content.
const CELL_BYTES: usize = 64;

/// What is handed over to be encoded: columns that are filled, and cells that were complete as they
/// came.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) columns: Vec<Filled>,
    pub(super) cells: Cells,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty() && self.cells.is_empty()
    }
}

/// First states of consecutive slots of a column.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) column: (GroupId, PathId, GroupCell),
    pub(super) first_slot: u32,
    pub(super) states: ColumnBuilder,
}

/// What is to be written.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) names: Names,
    cells: Cells,
}

impl Gathered {
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.cells.is_empty()
    }

    /// Adds what came later, encoded, and tells by how many bytes that is more.
    pub(super) fn add(&mut self, tree: TreeId, later: Batch) -> usize {
        let (cells, names) = (self.cells.len(), self.names.held_bytes());
        self.cells.extend(later.cells);
        let mut before: Option<&Filled> = None;
        for filled in &later.columns {
            let Filled { column: (group, path, kind), first_slot, states } = filled;
            let unmixed = (*kind == GroupCell::Key).then(|| unmixed_keys(states)).flatten();
            let states = unmixed.as_ref().unwrap_or(states);
            let cell = match kind {
                GroupCell::Key => encode_keys(states),
                _ => states.encoded(),
            };
            self.cells
                .push((cell_key::group_cell(tree, *group, *path, (*kind, *first_slot)), cell));
            // The maps of the entries were gathered with their keys.
            if let (GroupCell::Key, Some(maps)) = (kind, before) {
                let first = u64::from(group.group) * ROW_GROUP_SLOTS + u64::from(*first_slot);
                assert_eq!(maps.states.len(), states.len(), "each entry has a map and a name");
                let (at, maps) = ((*path, first), maps.states.numbers());
                match states.all_numbers() {
                    Some(keys) => self.names.push_integers(at, maps, keys),
                    None => {
                        let maps = maps.iter().map(|map| map.cast_unsigned());
                        self.names.push(at, maps.zip(states.texts()));
                    }
                }
            }
            before = Some(filled);
        }
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
