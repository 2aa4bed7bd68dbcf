//! What a tree reads from cells: its facts, rows, keys, and its row groups.
//!
//! A row group on disk is a directory of cells, each decoded once, on first use. Decoding reads
//! the disk, so it never happens under the tree's lock: a read that needs a cell reports it as a
//! [`Load`] and runs again.

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::encoding::{Column, RevisionRowsBlock, RunPiece};
use crate::error::{Error, ErrorKind, Result};
use crate::node::{NodeId, PathId};
use crate::revision::Revision;
use crate::segment::CellHandle;
use crate::state::Datum;
use crate::store::Store;
use crate::tree::cell_key::{self, GroupCell, TreeId};
use crate::tree::group::{ColumnId, Fault, GroupId, RowGroup};
use crate::tree::rows::Row;
use crate::tree::schema::Schema;
use crate::tree::serialize::write_scalar;

/// Something that has to be loaded without the tree's lock.
#[derive(Debug)]
pub(crate) enum Load {
    Group(GroupId),
    Cell(Arc<DiskGroup>, usize),
}

/// The cells of one tree.
#[derive(Debug, Clone)]
pub(crate) struct TreeCells {
    tree: TreeId,
    store: Arc<Store>,
    /// The block of revision rows read last, with its first revision: rows are read in order.
    rows: Arc<Mutex<Option<LastRows>>>,
}

/// A block of revision rows with its first revision.
type LastRows = (u64, Arc<RevisionRowsBlock>);

/// A row group as of the last checkpoint.
#[derive(Debug, Default)]
pub(crate) struct DiskGroup {
    cells: Vec<GroupCells>,
    /// By column.
    values: Vec<ColumnCells>,
    parent: Vec<Base>,
    born: Vec<Base>,
    key: Vec<Base>,
}

/// One cell of a row group.
#[derive(Debug)]
struct GroupCells {
    handle: CellHandle,
    is_run: bool,
    decoded: OnceLock<Decoded>,
}

#[derive(Debug)]
enum Decoded {
    Base(Box<Column>),
    Run(Box<RunPiece>),
}

/// What was read of a row group.
#[derive(Debug)]
pub(crate) enum Loaded {
    Small(RowGroup),
    Large(DiskGroup),
}

/// Bytes of cells up to which a row group is read whole.
const SMALL_GROUP_BYTES: usize = 64 << 10;

/// First states of consecutive slots.
#[derive(Debug, Clone, Copy)]
struct Base {
    first_slot: u16,
    cell: usize,
}

/// The cells of one column, each list rising.
#[derive(Debug, Default)]
struct ColumnCells {
    bases: Vec<Base>,
    /// First revision and cell of each run piece.
    runs: Vec<(u32, usize)>,
}

impl TreeCells {
    pub(crate) fn new(tree: TreeId, store: Arc<Store>) -> Self {
        Self { tree, store, rows: Arc::default() }
    }

    pub(crate) fn tree(&self) -> TreeId {
        self.tree
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.store.get(key)
    }

    /// The ordinal of a map's entry by its key.
    pub(crate) fn entry(&self, path: PathId, map: u64, key: &[u8]) -> Result<Option<u64>> {
        let Some(cell) = self.get(&cell_key::entry(self.tree, path, map, key))? else {
            return Ok(None);
        };
        let ordinal = (&*cell).try_into().map(u64::from_le_bytes).map_err(|_| {
            let message =
                format!("an index entry of tree {} has {} bytes", self.tree.0, cell.len());
            Error::new(ErrorKind::Corrupt, message)
        })?;
        Ok(Some(ordinal))
    }

    /// The row of a revision on disk.
    pub(crate) fn row(&self, revision: Revision) -> Result<Row> {
        let (block, index) = self.rows_of(revision)?;
        let text = |bytes: Option<&[u8]>| {
            bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned().into_boxed_str())
        };
        Ok(Row {
            revision,
            timestamp: block.timestamp(index)?,
            committed: block.committed(index)?,
            sequence: block.sequence(index)?,
            author: text(block.author(index)?),
            message: text(block.message(index)?),
        })
    }

    /// The nodes that a revision on disk changed; births left out.
    pub(crate) fn changed(&self, revision: Revision) -> Result<Vec<NodeId>> {
        let (block, index) = self.rows_of(revision)?;
        block.changed(index)?.collect()
    }

    /// Appends the timestamps of all revisions on disk.
    pub(crate) fn timestamps_into(&self, out: &mut Vec<i64>) -> Result<()> {
        for found in self.store.live().scan(&cell_key::all_rows(self.tree))? {
            RevisionRowsBlock::parse(found?.1.load()?)?.timestamps_into(out);
        }
        Ok(())
    }

    fn rows_of(&self, revision: Revision) -> Result<(Arc<RevisionRowsBlock>, usize)> {
        let within = |first: u64, block: &RevisionRowsBlock| {
            let index = usize::try_from(revision.0.checked_sub(first)?).ok()?;
            (index < block.len()).then_some(index)
        };
        if let Some((first, block)) = &*self.rows.lock()
            && let Some(index) = within(*first, block)
        {
            return Ok((Arc::clone(block), index));
        }
        let prefix = cell_key::all_rows(self.tree);
        let key = cell_key::rows(self.tree, revision.0);
        let missing = || {
            let message =
                format!("the row of revision {revision} of tree {} is missing", self.tree.0);
            Error::new(ErrorKind::Corrupt, message)
        };
        let (key, cell) = self.store.live().last_before(&prefix, &key)?.ok_or_else(missing)?;
        let first = key.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes));
        let first = first.ok_or_else(missing)?;
        let block = Arc::new(RevisionRowsBlock::parse(cell)?);
        let index = within(first, &block).ok_or_else(missing)?;
        *self.rows.lock() = Some((first, Arc::clone(&block)));
        Ok((block, index))
    }

    /// A row group: whole if it is small, else the directory of its cells.
    pub(crate) fn load_group(&self, id: GroupId, schema: &Schema) -> Result<Loaded> {
        let mut group = DiskGroup::default();
        let mut bytes = 0;
        for found in self.store.live().scan(&cell_key::group(self.tree, id))? {
            let (key, handle) = found?;
            let place = cell_key::parse_group_cell(&key);
            let place = place.filter(|(path, ..)| schema.has_path(*path));
            let (path, kind, number) = place
                .ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("cell key {key:02x?}")))?;
            bytes += handle.bytes()?;
            group.add((schema.path(path).column as usize, kind, number), handle);
        }
        let cells = 0..group.cells.len();
        if bytes <= SMALL_GROUP_BYTES {
            cells.into_iter().try_for_each(|cell| group.load(cell))?;
            return group.unpack().map(Loaded::Small);
        }
        for cell in cells {
            // What shares a block with the keys has been read with them.
            if group.cells[cell].handle.is_read() {
                group.load(cell)?;
            }
        }
        Ok(Loaded::Large(group))
    }
}

#[inline]
fn print_state(state: Datum<'_>, out: &mut Vec<u8>) -> bool {
    if state.is_container() || matches!(state, Datum::Absent | Datum::Apart { .. }) {
        return false;
    }
    write_scalar(state, out);
    true
}

impl DiskGroup {
    /// Puts a cell, the next in key order, into the directory.
    fn add(&mut self, (column, kind, number): (usize, GroupCell, u32), handle: CellHandle) {
        let cell = self.cells.len();
        let is_run = kind == GroupCell::Run;
        self.cells.push(GroupCells { handle, is_run, decoded: OnceLock::new() });
        if column >= self.values.len() {
            self.values.resize_with(column + 1, ColumnCells::default);
        }
        let base = Base { first_slot: u16::try_from(number).unwrap_or(u16::MAX), cell };
        match kind {
            GroupCell::Base => self.values[column].bases.push(base),
            GroupCell::Run => self.values[column].runs.push((number, cell)),
            GroupCell::Parent => self.parent.push(base),
            GroupCell::Born => self.born.push(base),
            GroupCell::Key => self.key.push(base),
        }
    }

    /// All states, in the form that young ones have; every cell is decoded.
    fn unpack(&self) -> Result<RowGroup> {
        let mut group = RowGroup::default();
        for base in &self.born {
            let Some(Decoded::Base(born)) = self.cells[base.cell].decoded.get() else { continue };
            for slot in (base.first_slot..).take(born.len()) {
                // An element or entry that its own commit removed was born as well.
                let born = (Datum::Absent, self.decoded_born(slot)?);
                group.set_birth(ColumnId::Value(0), slot, born.0, born.1)?;
            }
        }
        let values = (0..).map(ColumnId::Value).zip(self.values.iter().map(|cells| &cells.bases));
        let special = [(ColumnId::Parent, &self.parent), (ColumnId::Key, &self.key)];
        for (column, bases) in values.chain(special) {
            for base in bases {
                let Some(Decoded::Base(states)) = self.cells[base.cell].decoded.get() else {
                    continue;
                };
                for (slot, index) in (base.first_slot..).zip(0..states.len()) {
                    let state = states.get(index)?;
                    if !state.is_absent() {
                        group.set_birth(column, slot, state, self.decoded_born(slot)?)?;
                    }
                }
            }
        }
        for (column, cells) in (0..).map(ColumnId::Value).zip(&self.values) {
            for &(_, cell) in &cells.runs {
                let Some(Decoded::Run(piece)) = self.cells[cell].decoded.get() else { continue };
                for index in 0..piece.len() {
                    let (slot, revision, state) = piece.entry(index)?;
                    group.add_newer(column, slot, state, revision)?;
                }
            }
        }
        Ok(group)
    }

    fn decoded_born(&self, slot: u16) -> Result<u32> {
        let after = self.born.partition_point(|base| base.first_slot <= slot);
        let base = self.born[..after].last();
        let column = base.and_then(|base| self.cells[base.cell].decoded.get());
        if let (Some(base), Some(Decoded::Base(column))) = (base, column)
            && usize::from(slot - base.first_slot) < column.len()
            && let Datum::Int(born) = column.get(usize::from(slot - base.first_slot))?
            && let Ok(born) = u32::try_from(born)
        {
            return Ok(born);
        }
        Err(Error::new(ErrorKind::Corrupt, format!("slot {slot} has no revision of birth")))
    }

    /// Reads and decodes a cell, once.
    pub(crate) fn load(&self, cell: usize) -> Result<()> {
        let cell = &self.cells[cell];
        let bytes = cell.handle.load()?;
        let decoded = if cell.is_run {
            Decoded::Run(Box::new(RunPiece::parse(bytes)?))
        } else {
            Decoded::Base(Box::new(Column::parse(bytes)?))
        };
        // Another reader may have been first; both decoded the same.
        let _ = cell.decoded.set(decoded);
        Ok(())
    }

    fn decoded(self: &Arc<Self>, cell: usize) -> Result<&Decoded, Fault> {
        let decoded = self.cells[cell].decoded.get();
        decoded.ok_or_else(|| Fault::load(Load::Cell(Arc::clone(self), cell)))
    }

    fn run(self: &Arc<Self>, cell: usize) -> Result<&RunPiece, Fault> {
        match self.decoded(cell)? {
            Decoded::Run(piece) => Ok(piece),
            Decoded::Base(_) => unreachable!("kinds are set with the keys"),
        }
    }

    /// The first state of a slot.
    fn first_state(self: &Arc<Self>, bases: &[Base], slot: u16) -> Result<Datum<'_>, Fault> {
        let after = bases.partition_point(|base| base.first_slot <= slot);
        let Some(base) = bases[..after].last() else { return Ok(Datum::Absent) };
        let Decoded::Base(column) = self.decoded(base.cell)? else {
            unreachable!("kinds are set with the keys")
        };
        let index = usize::from(slot - base.first_slot);
        if index >= column.len() {
            return Ok(Datum::Absent);
        }
        Ok(column.get(index)?)
    }

    fn column(&self, index: u32) -> Option<&ColumnCells> {
        self.values.get(index as usize)
    }

    fn bases(&self, column: ColumnId) -> &[Base] {
        match column {
            ColumnId::Value(index) => self.column(index).map_or(&[], |cells| &cells.bases),
            ColumnId::Parent => &self.parent,
            ColumnId::Key => &self.key,
        }
    }

    fn runs(&self, column: ColumnId) -> &[(u32, usize)] {
        match column {
            ColumnId::Value(index) => self.column(index).map_or(&[], |cells| &cells.runs),
            ColumnId::Parent | ColumnId::Key => &[],
        }
    }

    /// The newest change of a slot at or before a revision.
    fn change(
        self: &Arc<Self>,
        column: ColumnId,
        slot: u16,
        revision: u32,
    ) -> Result<Option<(u32, Datum<'_>)>, Fault> {
        let runs = self.runs(column);
        let begun = runs.partition_point(|&(first, _)| first <= revision);
        for &(_, cell) in runs[..begun].iter().rev() {
            if let Some(found) = self.run(cell)?.at(slot, revision)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The state of a slot at a revision.
    pub(crate) fn state(
        self: &Arc<Self>,
        column: ColumnId,
        slot: u16,
        revision: u32,
    ) -> Result<Datum<'_>, Fault> {
        match self.change(column, slot, revision)? {
            Some((_, state)) => Ok(state),
            None => self.first_state(self.bases(column), slot),
        }
    }

    /// Prints the state of a slot at a revision. False if it has children or stands apart, is not
    /// there, or is not decoded yet.
    #[inline]
    pub(crate) fn print(&self, column: u32, slot: u16, revision: u32, out: &mut Vec<u8>) -> bool {
        let Some(cells) = self.column(column) else { return false };
        let begun = cells.runs.partition_point(|&(first, _)| first <= revision);
        for &(_, cell) in cells.runs[..begun].iter().rev() {
            let Some(Decoded::Run(piece)) = self.cells[cell].decoded.get() else { return false };
            match piece.at(slot, revision) {
                Ok(Some((_, state))) => return print_state(state, out),
                Ok(None) => {}
                Err(_) => return false,
            }
        }
        let after = cells.bases.partition_point(|base| base.first_slot <= slot);
        let Some(base) = cells.bases[..after].last() else { return false };
        let Some(Decoded::Base(column)) = self.cells[base.cell].decoded.get() else { return false };
        let index = usize::from(slot - base.first_slot);
        match column.get(index) {
            Ok(state) => print_state(state, out),
            Err(_) => false,
        }
    }

    /// The state of a slot at a revision and the revision that set it; none if never set.
    pub(crate) fn version(
        self: &Arc<Self>,
        column: ColumnId,
        slot: u16,
        revision: u32,
    ) -> Result<Option<(u32, Datum<'_>)>, Fault> {
        if let Some(found) = self.change(column, slot, revision)? {
            return Ok(Some(found));
        }
        let state = self.first_state(self.bases(column), slot)?;
        let born = if state.is_absent() { None } else { self.born(slot)? };
        Ok(born.filter(|&born| born <= revision).map(|born| (born, state)))
    }

    /// Visits the states of a slot up to a revision, newest first, until told to stop.
    pub(crate) fn versions(
        self: &Arc<Self>,
        column: ColumnId,
        slot: u16,
        revision: u32,
        visit: &mut impl FnMut(u32, Datum<'_>) -> ControlFlow<()>,
    ) -> Result<(), Fault> {
        let runs = self.runs(column);
        let begun = runs.partition_point(|&(first, _)| first <= revision);
        for &(_, cell) in runs[..begun].iter().rev() {
            let piece = self.run(cell)?;
            for index in piece.run(slot)?.rev() {
                let (set, state) = piece.change(index)?;
                if set <= revision && visit(set, state).is_break() {
                    return Ok(());
                }
            }
        }
        let state = self.first_state(self.bases(column), slot)?;
        if !state.is_absent()
            && let Some(born) = self.born(slot)?.filter(|&born| born <= revision)
        {
            let _ = visit(born, state);
        }
        Ok(())
    }

    /// The revision in which a node first had a value, as far as the disk knows.
    pub(crate) fn created(
        self: &Arc<Self>,
        column: ColumnId,
        slot: u16,
    ) -> Result<Option<u32>, Fault> {
        if !self.first_state(self.bases(column), slot)?.is_absent() {
            return self.born(slot);
        }
        for &(_, cell) in self.runs(column) {
            let piece = self.run(cell)?;
            if let Some(first) = piece.run(slot)?.next() {
                return Ok(Some(piece.change(first)?.0));
            }
        }
        Ok(None)
    }

    /// The revision in which the element or entry of a slot was born.
    pub(crate) fn born(self: &Arc<Self>, slot: u16) -> Result<Option<u32>, Fault> {
        match self.first_state(&self.born, slot)? {
            Datum::Int(born) => Ok(u32::try_from(born).ok()),
            _ => Ok(None),
        }
    }
}
