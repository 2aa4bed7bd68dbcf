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

    /// Encodes its columns, which otherwise is left to [`Gathered::add`].
    pub(super) fn encode(&mut self) {
        self.columns.iter_mut().for_each(Filled::encode);
    }
}

/// First states of consecutive slots of a column.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) column: (GroupId, PathId, GroupCell),
    pub(super) first_slot: u32,
    /// Once they are encoded those only whose numbers and names are still asked for.
    pub(super) states: ColumnBuilder,
    /// Their encoding, from when it is made.
    cell: Option<Vec<u8>>,
}

impl Filled {
    pub(super) fn new(
        column: (GroupId, PathId, GroupCell),
        first_slot: u32,
        states: ColumnBuilder,
    ) -> Self {
        Self { column, first_slot, states, cell: None }
    }

    fn encode(&mut self) {
        if self.cell.is_some() {
            return;
        }
        let (.., kind) = self.column;
        self.cell = Some(match kind {
            GroupCell::Key => {
                if let Some(unmixed) = unmixed_keys(&self.states) {
                    self.states = unmixed;
                }
                encode_keys(&self.states)
            }
            GroupCell::Parent => self.states.encoded(),
            _ => std::mem::take(&mut self.states).encoded(),
        });
    }
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
        let mut before: Option<Filled> = None;
        for mut filled in later.columns {
            filled.encode();
            let (group, path, kind) = filled.column;
            let key = cell_key::group_cell(tree, group, path, (kind, filled.first_slot));
            self.cells.push((key, filled.cell.take().unwrap_or_default()));
            // The maps of the entries were gathered with their keys.
            if let (GroupCell::Key, Some(maps)) = (kind, &before) {
                self.add_names(&filled, maps.states.numbers());
            }
            before = Some(filled);
        }
        let added = self.cells[cells..].iter().map(|(key, cell)| key.len() + cell.len());
        added.map(|bytes| bytes + CELL_BYTES).sum::<usize>() + self.names.held_bytes() - names
    }

    /// Adds the names of entries that are in these maps.
    fn add_names(&mut self, names: &Filled, maps: &[i64]) {
        let (Filled { first_slot, states, .. }, (group, path, _)) = (names, names.column);
        let first = u64::from(group.group) * ROW_GROUP_SLOTS + u64::from(*first_slot);
        assert_eq!(maps.len(), states.len(), "each entry has a map and a name");
        if let Some(keys) = states.all_numbers() {
            return self.names.push_integers((path, first), maps, keys);
        }
        let maps = maps.iter().map(|map| map.cast_unsigned());
        self.names.push((path, first), maps.zip(states.texts()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::builder::Builder;
    use crate::state::Datum;
    use crate::tree::schema::ROOT;

    const TREE: TreeId = TreeId(1);

    /// Entries of a map under keys of each kind that columns of keys have.
    fn batch(kind: usize) -> Batch {
        let mut builder = Builder::new(TREE, None);
        builder.bear(ROOT, 0).unwrap();
        let path = builder.data.entry_or_add(ROOT).unwrap();
        for number in 0..5_000_i64 {
            let text = format!("key {number:04}");
            let name = match kind {
                0 => Datum::Int(number),
                1 => Datum::Text { bytes: text.as_bytes(), plain: true },
                _ if number % 3 == 0 => Datum::Text { bytes: &[b'1'; 20], plain: true },
                _ => Datum::Int(-number),
            };
            let entry = builder.bear_entry(path, 0, name).unwrap();
            builder.set(entry, Datum::Int(number * number));
        }
        builder.columns.gather_groups(&builder.data.schema);
        builder.columns.take_gathered()
    }

    #[test]
    fn columns_that_were_encoded_before_are_added_as_others_are() {
        for kind in 0..3 {
            let mut encoded = batch(kind);
            encoded.encode();
            let (mut early, mut late) = (Gathered::default(), Gathered::default());
            assert_eq!(early.add(TREE, encoded), late.add(TREE, batch(kind)));
            assert_eq!(early.cells, late.cells);
            assert_eq!(format!("{:?}", early.names), format!("{:?}", late.names));
        }
    }
}
