//! A large row group: a directory of its cells, each read and decoded once, on first use.
//!
//! First states are bounded by what is in the row group and listed; run pieces, of which a long
//! history has any number, are looked up by key ([`KnownRuns`]).

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use smallvec::SmallVec;

use crate::encoding::{Column, RunPiece};
use crate::error::Result;
use crate::memory::Resident;
use crate::node::PathId;
use crate::segment::CellHandle;
use crate::state::Datum;
use crate::store::{LiveSegments, Scan};
use crate::tree::cell_key::{self, GroupCell, TreeId};
use crate::tree::disk::runs::{FoundRun, KnownRuns, Wanted};
use crate::tree::disk::{Load, Place, TreeCells, corrupt, of_its_own, revision_of_birth};
use crate::tree::group::{ColumnId, Fault, GroupId};
use crate::tree::schema::{Schema, SchemaExtent};
use crate::tree::serialize::print_scalar;

/// About as many bytes as a cell that is kept with its block has of its key.
const KEY_BYTES: usize = 40;

/// Changes of a column in run pieces that are read together, but for the last piece: more would
/// have most slots changed, and what is behind them would be read in vain.
const CHANGES_TOGETHER: usize = 1_024;

/// The same of all columns of a row group.
const CHANGES_OF_GROUP: usize = 64 * CHANGES_TOGETHER;

mod keys;
mod pick;
mod strip;

pub(crate) use strip::Gathered;

/// The part of a large row group that is on disk, with the run pieces that were looked up.
#[derive(Debug)]
pub(crate) struct LargeGroup {
    disk: Arc<Directory>,
    /// By column.
    runs: Vec<KnownRuns>,
}

/// The cells of a large row group, as of one list of segments.
#[derive(Debug)]
pub(crate) struct Directory {
    tree: TreeId,
    pub(crate) id: GroupId,
    /// What it was read from, whatever is added meanwhile.
    live: Arc<LiveSegments>,
    /// Counts what is decoded.
    resident: Arc<Resident>,
    known: SchemaExtent,
    cells: Vec<BaseCell>,
    /// By column.
    values: Vec<ColumnCells>,
    parent: Vec<Base>,
    born: Vec<Base>,
    key: Vec<Base>,
}

/// The cells of a row group, some of which were seen already.
pub(super) struct Listing<'l> {
    pub(super) live: &'l Arc<LiveSegments>,
    pub(super) seen: &'l mut Vec<(Place, CellHandle)>,
    /// Those that follow.
    pub(super) scan: &'l mut Scan,
}

/// A cell of first states.
#[derive(Debug)]
struct BaseCell {
    place: Place,
    content: Content,
    decoded: OnceLock<Box<Column>>,
}

/// What a cell of first states is decoded from.
#[derive(Debug)]
enum Content {
    /// It was read with the block that it shares with others.
    Read(Bytes),
    Apart(CellHandle),
}

/// First states of consecutive slots.
#[derive(Debug, Clone, Copy)]
struct Base {
    first_slot: u16,
    cell: u32,
}

/// The cells of one column.
#[derive(Debug, Default)]
struct ColumnCells {
    path: PathId,
    /// Rising.
    bases: SmallVec<[Base; 4]>,
    /// The first revision of the oldest run piece.
    oldest_run: Option<u32>,
}

impl Directory {
    /// Lists the first states of a row group and which columns have run pieces.
    fn read(
        (cells, listing): (&TreeCells, Listing<'_>),
        (id, schema): (GroupId, &Schema),
        resident: Arc<Resident>,
    ) -> Result<Self> {
        let Listing { live, seen, scan } = listing;
        while let Some(found) = scan.next() {
            let (key, handle) = found?;
            let place = Place::parse(&key, id, schema)?;
            seen.push((place, handle));
            if place.kind == GroupCell::Run {
                scan.seek(&cell_key::group_path(cells.tree, id, PathId(place.path.0 + 1)))?;
            }
        }
        let mut directory = Self {
            tree: cells.tree,
            id,
            live: Arc::clone(live),
            resident,
            known: schema.extent(),
            cells: Vec::with_capacity(seen.len()),
            values: Vec::new(),
            parent: Vec::new(),
            born: Vec::new(),
            key: Vec::new(),
        };
        directory.list(seen)?;
        let columns = directory.values.len() * size_of::<(ColumnCells, KnownRuns)>();
        directory.resident.add(columns + directory.cells.len() * size_of::<BaseCell>());
        Ok(directory)
    }

    /// Puts cells in key order into the directory: all first states, and of run pieces where the
    /// oldest begins. Those that share blocks with what is not in the directory were read with
    /// that, and are copied together: nothing else of the blocks is to be kept.
    fn list(&mut self, found: &mut Vec<(Place, CellHandle)>) -> Result<()> {
        let has_runs = found.iter().any(|(place, _)| place.kind == GroupCell::Run);
        let is_kept = |handle: &CellHandle| !has_runs && handle.is_among_its_own();
        let is_copied = |(place, handle): &&(Place, CellHandle)| {
            place.kind != GroupCell::Run && handle.is_read() && !is_kept(handle)
        };
        let read = found.iter().filter(is_copied).map(|(_, handle)| handle.bytes());
        let mut copy = Vec::with_capacity(read.sum::<Result<usize>>()?);
        for (_, handle) in found.iter().filter(is_copied) {
            handle.look(|cell| {
                copy.extend_from_slice(cell);
                Ok(())
            })?;
        }
        let mut copies = Bytes::from(copy);
        let columns = found.iter().map(|(place, _)| place.column as usize + 1).max();
        self.values.resize_with(columns.unwrap_or(0), ColumnCells::default);
        for (place, handle) in found.drain(..) {
            if place.kind == GroupCell::Run {
                self.column_mut(place).oldest_run.get_or_insert(place.number);
                continue;
            }
            let content = match () {
                () if !handle.is_read() => Content::Apart(handle),
                () if is_kept(&handle) => Content::Read(handle.into_content()?),
                () => Content::Read(copies.split_to(handle.bytes()?)),
            };
            self.add(place, content)?;
        }
        Ok(())
    }

    fn column_mut(&mut self, place: Place) -> &mut ColumnCells {
        let column = &mut self.values[place.column as usize];
        column.path = place.path;
        column
    }

    fn add(&mut self, place: Place, content: Content) -> Result<()> {
        if let Content::Read(cell) = &content {
            place.slots_of(Column::count(cell)?)?;
            self.resident.add(cell.len() + KEY_BYTES + size_of::<Column>());
        }
        let cell = u32::try_from(self.cells.len()).unwrap_or(u32::MAX);
        let base = Base { first_slot: place.first_slot()?, cell };
        match place.kind {
            GroupCell::Base => self.column_mut(place).bases.push(base),
            GroupCell::Parent => self.parent.push(base),
            GroupCell::Born => self.born.push(base),
            GroupCell::Key => self.key.push(base),
            GroupCell::Run => unreachable!("runs are not listed"),
        }
        self.cells.push(BaseCell { place, content, decoded: OnceLock::new() });
        Ok(())
    }

    /// The first states of a cell; none if they have to be [loaded](Self::load) first.
    #[inline]
    fn column(&self, cell: u32) -> Result<Option<&Column>> {
        let cell = &self.cells[cell as usize];
        if let Some(column) = cell.decoded.get() {
            return Ok(Some(column));
        }
        // Keys of records may be a hundred times as long decoded: not under the tree's lock.
        match cell.content {
            Content::Read(_) if cell.place.kind != GroupCell::Key => self.decode(cell).map(Some),
            _ => Ok(None),
        }
    }

    #[cold]
    fn decode<'c>(&self, cell: &'c BaseCell) -> Result<&'c Column> {
        let content = match &cell.content {
            Content::Read(content) => content.clone(),
            Content::Apart(handle) => handle.load()?,
        };
        let column = Box::new(Column::parse(content)?);
        cell.place.slots_of(column.len())?;
        let bytes = match (&cell.content, column.cell_bytes()) {
            (Content::Apart(_), bytes) => bytes + size_of::<Column>(),
            (Content::Read(content), bytes) if bytes == content.len() => 0,
            // What was packed is there as it was read too.
            (Content::Read(_), bytes) => bytes,
        };
        // Another reader may have been first; both decoded the same.
        Ok(cell.decoded.get_or_init(|| {
            self.resident.add(bytes);
            column
        }))
    }

    /// Reads and decodes a cell, once.
    pub(crate) fn load(&self, cell: u32) -> Result<()> {
        let cell = &self.cells[cell as usize];
        if cell.decoded.get().is_none() {
            self.decode(cell)?;
        }
        Ok(())
    }

    /// Reads a run piece of a column.
    pub(crate) fn find_run(&self, column: u32, wanted: Wanted) -> Result<Option<RunPiece>> {
        let path = self.values[column as usize].path;
        let key =
            |first: u32| cell_key::group_cell(self.tree, self.id, path, (GroupCell::Run, first));
        let all = cell_key::runs(self.tree, self.id, path);
        let found = match wanted {
            Wanted::AtOrBefore(revision) => self.live.last_before(&all, &key(revision))?,
            Wanted::After(revision) => {
                let mut scan = self.live.scan(&all)?;
                scan.seek(&key(revision.saturating_add(1)))?;
                let found = scan.next().transpose()?;
                found.map(|(key, handle)| handle.load().map(|cell| (key, cell))).transpose()?
            }
        };
        let Some((key, cell)) = found else { return Ok(None) };
        let cell = of_its_own(cell);
        self.resident.add(cell.len() + size_of::<RunPiece>());
        let piece = RunPiece::parse(cell)?;
        let first = key.last_chunk::<4>().map(|first| u32::from_be_bytes(*first));
        if first != Some(piece.first_revision()) || first == Some(0) {
            let found = piece.first_revision();
            return Err(corrupt(format!("the run piece {key:02x?} begins at revision {found}")));
        }
        Ok(Some(piece))
    }

    /// Reads the run pieces of a column that say its states at a revision, newest first: back to a
    /// complete one, the oldest, or those up to `known`, but only few changes. A piece behind the
    /// first that does not verify is left to who needs it.
    pub(crate) fn find_runs(
        &self,
        column: u32,
        (revision, known): (u32, u32),
    ) -> Result<Vec<FoundRun>> {
        let oldest = self.values[column as usize].oldest_run.unwrap_or(u32::MAX);
        let (mut found, mut next, mut changes) = (Vec::new(), Some(revision), 0);
        let is_left = |next: u32, changes: usize| {
            next >= oldest && next > known && changes < CHANGES_TOGETHER
        };
        while let Some(revision) = next.filter(|next| is_left(*next, changes)) {
            let wanted = Wanted::AtOrBefore(revision);
            let piece = match self.find_run(column, wanted) {
                Err(error) if found.is_empty() => return Err(error),
                Err(_) => break,
                Ok(piece) => piece,
            };
            changes += piece.as_ref().map_or(0, RunPiece::len);
            let before = piece.as_ref().filter(|piece| !piece.is_complete());
            next = before.and_then(|piece| piece.first_revision().checked_sub(1));
            found.push((wanted, piece));
        }
        Ok(found)
    }

    /// Takes a change, unless it cannot be.
    #[inline]
    fn vet<'a>(&self, set: u32, state: Datum<'a>) -> Result<Datum<'a>> {
        if set == 0 {
            return Err(corrupt(format!("a change of row group {:?} is of revision 0", self.id)));
        }
        self.known.vet(state)
    }

    fn bases(&self, column: ColumnId) -> &[Base] {
        match column {
            ColumnId::Value(index) => {
                self.values.get(index as usize).map_or(&[], |cells| &cells.bases)
            }
            ColumnId::Parent => &self.parent,
            ColumnId::Key => &self.key,
        }
    }

    /// The first state of a slot.
    fn first_state(self: &Arc<Self>, bases: &[Base], slot: u16) -> Result<Datum<'_>, Fault> {
        let after = bases.partition_point(|base| base.first_slot <= slot);
        let Some(base) = bases[..after].last() else { return Ok(Datum::Absent) };
        let Some(column) = self.column(base.cell)? else {
            return Err(Fault::load(Load::Base(Arc::clone(self), base.cell)));
        };
        let index = usize::from(slot - base.first_slot);
        if index >= column.len() {
            return Ok(Datum::Absent);
        }
        Ok(self.known.vet(column.get(index)?)?)
    }
}

impl LargeGroup {
    /// The row group of which the disk has the revisions up to `newest`.
    pub(super) fn read(
        cells: (&TreeCells, Listing<'_>),
        of: (GroupId, &Schema),
        newest: u32,
        resident: Arc<Resident>,
    ) -> Result<Self> {
        let disk = Arc::new(Directory::read(cells, of, resident)?);
        let runs = disk.values.iter().map(|column| KnownRuns::new(column.oldest_run, newest));
        Ok(Self { runs: runs.collect(), disk })
    }

    /// Takes run pieces that were looked up for `disk`, if that is this row group still.
    pub(crate) fn add_runs(
        &mut self,
        (disk, column): (&Arc<Directory>, u32),
        found: Vec<FoundRun>,
    ) {
        if Arc::ptr_eq(&self.disk, disk) {
            self.runs[column as usize].add_all(found);
        }
    }

    /// Reads run pieces of all columns that say their states at a revision, as long as they are
    /// few. What is missing then, or does not verify, is left to who needs it.
    pub(crate) fn load_runs(&mut self, revision: u32) {
        let mut changes = 0;
        for (column, runs) in (0..).zip(&mut self.runs) {
            if changes >= CHANGES_OF_GROUP {
                break;
            }
            let Ok(found) = self.disk.find_runs(column, (revision, 0)) else { continue };
            let pieces = found.iter().filter_map(|(_, piece)| piece.as_ref());
            changes += pieces.map(RunPiece::len).sum::<usize>();
            runs.add_all(found);
        }
    }

    /// Its cells, to be read without the tree's lock.
    pub(crate) fn directory(&self) -> &Arc<Directory> {
        &self.disk
    }

    /// Counts what is decoded.
    pub(crate) fn resident(&self) -> &Arc<Resident> {
        &self.disk.resident
    }

    fn runs(&self, column: ColumnId) -> Option<(u32, &KnownRuns)> {
        let ColumnId::Value(index) = column else { return None };
        self.runs.get(index as usize).map(|runs| (index, runs))
    }

    #[cold]
    fn missing(&self, column: u32, wanted: Wanted) -> Fault {
        Fault::load(Load::Run(Arc::clone(&self.disk), column, wanted))
    }

    /// The last run piece that begins at or before a revision is missing.
    #[cold]
    fn missing_run(&self, column: u32, revision: u32) -> Fault {
        self.missing(column, Wanted::AtOrBefore(revision))
    }

    /// The same where those before it will be missed too, so that they are read together: what is
    /// read is put in place while nobody else reads the tree (benchmark V7p).
    #[cold]
    fn missing_runs(&self, column: u32, revision: u32) -> Fault {
        let known = self.runs[column as usize].known_before(revision);
        Fault::load(Load::Runs(Arc::clone(&self.disk), column, (revision, known)))
    }

    /// The newest change of a slot at or before a revision.
    fn change(
        &self,
        column: ColumnId,
        slot: u16,
        revision: u32,
    ) -> Result<Option<(u32, Datum<'_>)>, Fault> {
        let Some((index, runs)) = self.runs(column) else { return Ok(None) };
        for piece in runs.back_from(revision) {
            let piece = piece.map_err(|revision| self.missing_run(index, revision))?;
            if let Some((set, state)) = piece.at(slot, revision)? {
                return Ok(Some((set, self.disk.vet(set, state)?)));
            }
            if piece.is_complete() {
                return Ok(None);
            }
        }
        Ok(None)
    }

    fn first_state(&self, column: ColumnId, slot: u16) -> Result<Datum<'_>, Fault> {
        self.disk.first_state(self.disk.bases(column), slot)
    }

    /// The first slot and the first states of each cell of a column.
    pub(crate) fn bases(&self, column: ColumnId) -> Result<SmallVec<[(u16, &Column); 1]>, Fault> {
        let bases = self.disk.bases(column).iter();
        bases.map(|base| Ok((base.first_slot, self.decoded(*base)?))).collect()
    }

    fn decoded(&self, base: Base) -> Result<&Column, Fault> {
        let missing = || Fault::load(Load::Base(Arc::clone(&self.disk), base.cell));
        self.disk.column(base.cell)?.ok_or_else(missing)
    }

    /// The run pieces of a column that say its states at a revision, newest first: back to a
    /// complete one, or to the first.
    pub(crate) fn pieces(&self, column: ColumnId, revision: u32) -> Result<Vec<&RunPiece>, Fault> {
        let mut pieces = Vec::new();
        let Some((index, runs)) = self.runs(column) else { return Ok(pieces) };
        for piece in runs.back_from(revision) {
            let piece = piece.map_err(|revision| self.missing_runs(index, revision))?;
            pieces.push(piece);
            if piece.is_complete() {
                break;
            }
        }
        Ok(pieces)
    }

    /// Bytes of the cells of a column that a read of what stood in some revisions went through:
    /// of those that were looked up.
    pub(crate) fn cell_bytes(
        &self,
        column: ColumnId,
        revisions: &RangeInclusive<u32>,
    ) -> Result<usize> {
        let mut bytes = 0;
        for base in self.disk.bases(column) {
            bytes += self.disk.column(base.cell)?.map_or(0, Column::cell_bytes);
        }
        let pieces = self.runs(column).into_iter().flat_map(|(_, runs)| runs.known());
        let is_within = |piece: &&RunPiece| {
            piece.first_revision() <= *revisions.end()
                && piece.last_revision() >= *revisions.start()
        };
        Ok(bytes + pieces.filter(is_within).map(RunPiece::cell_bytes).sum::<usize>())
    }

    /// Refuses a state that names what the schema does not have.
    #[inline]
    pub(crate) fn vet<'a>(&self, state: Datum<'a>) -> Result<Datum<'a>> {
        self.disk.known.vet(state)
    }

    /// The state of a slot at a revision.
    pub(crate) fn state(
        &self,
        column: ColumnId,
        slot: u16,
        revision: u32,
    ) -> Result<Datum<'_>, Fault> {
        match self.change(column, slot, revision)? {
            Some((_, state)) => Ok(state),
            None => self.first_state(column, slot),
        }
    }

    /// Prints the state of a slot at a revision. False if it has children or stands apart, is not
    /// there, or is not decoded yet.
    #[inline]
    pub(crate) fn print(&self, column: u32, slot: u16, revision: u32, out: &mut Vec<u8>) -> bool {
        let index = column as usize;
        let (Some(cells), Some(runs)) = (self.disk.values.get(index), self.runs.get(index)) else {
            return false;
        };
        for piece in runs.back_from(revision) {
            let Ok(piece) = piece else { return false };
            match piece.state(slot, revision) {
                Ok(Some(state)) => return print_scalar(state, out),
                Ok(None) if piece.is_complete() => break,
                Ok(None) => {}
                Err(_) => return false,
            }
        }
        let after = cells.bases.partition_point(|base| base.first_slot <= slot);
        let Some(base) = cells.bases[..after].last() else { return false };
        let Ok(Some(column)) = self.disk.column(base.cell) else { return false };
        let index = usize::from(slot - base.first_slot);
        column.get(index).is_ok_and(|state| print_scalar(state, out))
    }

    /// The state of a slot at a revision and the revision that set it; none if never set.
    pub(crate) fn version(
        &self,
        column: ColumnId,
        slot: u16,
        revision: u32,
    ) -> Result<Option<(u32, Datum<'_>)>, Fault> {
        if let Some(found) = self.change(column, slot, revision)? {
            return Ok(Some(found));
        }
        let state = self.first_state(column, slot)?;
        let born = if state.is_absent() { None } else { self.born(slot)? };
        Ok(born.filter(|&born| born <= revision).map(|born| (born, state)))
    }

    /// Visits the states of a slot up to a revision, newest first, until told to stop.
    pub(crate) fn versions(
        &self,
        column: ColumnId,
        slot: u16,
        revision: u32,
        visit: &mut impl FnMut(u32, Datum<'_>) -> ControlFlow<()>,
    ) -> Result<(), Fault> {
        if self.changes(column, slot, revision, visit)?.is_break() {
            return Ok(());
        }
        let state = self.first_state(column, slot)?;
        if !state.is_absent()
            && let Some(born) = self.born(slot)?.filter(|&born| born <= revision)
        {
            let _ = visit(born, state);
        }
        Ok(())
    }

    /// Visits the changes of a slot up to a revision, newest first, until told to stop.
    fn changes(
        &self,
        column: ColumnId,
        slot: u16,
        revision: u32,
        visit: &mut impl FnMut(u32, Datum<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Fault> {
        let Some((column, runs)) = self.runs(column) else { return Ok(ControlFlow::Continue(())) };
        let mut up_to = revision;
        let mut back = runs.back_from(up_to);
        while let Some(piece) = back.next() {
            let piece = piece.map_err(|revision| self.missing_run(column, revision))?;
            for index in piece.run(slot)?.rev() {
                let (set, state) = piece.change(index)?;
                if set > up_to {
                    continue;
                }
                if visit(set, self.disk.vet(set, state)?).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                up_to = set.saturating_sub(1);
            }
            if piece.is_complete() {
                if up_to >= piece.first_revision().saturating_sub(1) {
                    // It repeats no change of the slot, so there was none before.
                    break;
                }
                back = runs.back_from(up_to);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The revision in which a node first had a value, as far as the disk knows.
    pub(crate) fn created(&self, column: ColumnId, slot: u16) -> Result<Option<u32>, Fault> {
        if !self.first_state(column, slot)?.is_absent() {
            return self.born(slot);
        }
        let Some((index, runs)) = self.runs(column) else { return Ok(None) };
        for piece in runs.pieces() {
            let piece = piece.map_err(|wanted| self.missing(index, wanted))?;
            if let Some(first) = piece.run(slot)?.next() {
                return Ok(Some(piece.change(first)?.0));
            }
        }
        Ok(None)
    }

    /// The revision in which the element or entry of a slot was born.
    pub(crate) fn born(&self, slot: u16) -> Result<Option<u32>, Fault> {
        match self.disk.first_state(&self.disk.born, slot)? {
            Datum::Absent => Ok(None),
            state => Ok(Some(revision_of_birth(state)?)),
        }
    }
}
