//! A row group: 4,096 consecutive ordinals of a space with all their columns, aligned.
//!
//! A small row group is read from disk as a whole and kept like a young one; of a large one the
//! cells are read one by one, and what is young stands before them.
//!
//! Invariant: a slot's states are, oldest first, its birth, its changes on disk, its young
//! changes; a slot is born either on disk or young, never both.

use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::limits::ROW_GROUP_SLOTS;
use crate::memory::Resident;
use crate::state::Datum;
use crate::tree::disk::{LargeGroup, Load};
use crate::tree::schema::SpaceId;
use crate::tree::young::{Heap, Packed, Run, YoungColumn};

/// Slots of a row group.
pub(crate) const SLOTS: u16 = 4_096;

const _: () = assert!(SLOTS as u64 == ROW_GROUP_SLOTS);

/// Why a state could not be read under the tree's lock.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Something has to be loaded first, without the lock.
    Load(Box<Load>),
    Error(Error),
}

impl Fault {
    #[cold]
    pub(crate) fn load(load: Load) -> Self {
        Self::Load(Box::new(load))
    }

    /// The same of who reads all columns at a revision.
    #[cold]
    pub(crate) fn for_all(self, revision: u32) -> Self {
        match self {
            Self::Load(load) => match *load {
                Load::Group(id) => Self::load(Load::Whole(id, revision)),
                load => Self::load(load),
            },
            Self::Error(error) => Self::Error(error),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Which row group of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupId {
    pub(crate) space: SpaceId,
    pub(crate) group: u32,
}

/// A column of a row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnId {
    /// The element or entry itself (0), or one of its fields: the index in its space.
    Value(u32),
    /// The ordinal of the array or map that an element or entry is in.
    Parent,
    /// The key of an entry.
    Key,
}

/// Where the part of a row group is that was there at the last checkpoint.
#[derive(Debug, Default)]
pub(crate) enum DiskPart {
    /// There was none.
    #[default]
    None,
    NotLoaded(GroupId),
    /// It was small, and stands among the young states.
    Unpacked(Arc<Resident>),
    Loaded(Box<LargeGroup>),
}

/// A row group.
#[derive(Debug, Default)]
pub(crate) struct RowGroup {
    heap: Heap,
    columns: Vec<YoungColumn>,
    parent: YoungColumn,
    key: YoungColumn,
    pub(crate) disk: DiskPart,
    /// Whether it was read since it was last asked to go.
    used: AtomicBool,
}

/// The row group and the slot of an ordinal.
#[inline]
pub(crate) fn locate(ordinal: u64) -> (usize, u16) {
    let group = usize::try_from(ordinal / ROW_GROUP_SLOTS).expect("40-bit ordinals");
    let slot = u16::try_from(ordinal % ROW_GROUP_SLOTS).expect("below 4,096");
    (group, slot)
}

impl RowGroup {
    /// Notes that it is in use.
    #[inline]
    pub(crate) fn touch(&self) {
        // Storing what is there already would take the line from other readers.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// What was loaded is kept, and can be asked to go.
    pub(crate) fn settle_in(&self) {
        self.touch();
        match &self.disk {
            DiskPart::None | DiskPart::NotLoaded(_) => {}
            DiskPart::Unpacked(resident) => resident.settle_in(),
            DiskPart::Loaded(disk) => disk.resident().settle_in(),
        }
    }

    /// Whether it was in use since it was last asked.
    pub(crate) fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// Approximate bytes in memory, the part on disk left out.
    pub(crate) fn bytes(&self) -> usize {
        let columns = self.columns.iter().chain([&self.parent, &self.key]);
        size_of::<Self>() + self.heap.bytes() + columns.map(YoungColumn::bytes).sum::<usize>()
    }

    #[inline]
    fn column(&self, column: ColumnId) -> Option<&YoungColumn> {
        match column {
            ColumnId::Value(index) => self.columns.get(index as usize),
            ColumnId::Parent => Some(&self.parent),
            ColumnId::Key => Some(&self.key),
        }
    }

    fn column_mut(&mut self, column: ColumnId) -> (&mut YoungColumn, &mut Heap) {
        let young = match column {
            ColumnId::Value(index) => {
                let index = index as usize;
                if index >= self.columns.len() {
                    self.columns.resize_with(index + 1, YoungColumn::default);
                }
                &mut self.columns[index]
            }
            ColumnId::Parent => &mut self.parent,
            ColumnId::Key => &mut self.key,
        };
        (young, &mut self.heap)
    }

    /// The state of a slot at a revision.
    #[inline]
    pub(crate) fn state(
        &self,
        column: ColumnId,
        slot: u16,
        revision: u32,
    ) -> Result<Datum<'_>, Fault> {
        if let Some(packed) = self.column(column).and_then(|young| young.at(slot, revision)) {
            return Ok(self.heap.unpack(packed));
        }
        match self.disk_group()? {
            Some(disk) => disk.state(column, slot, revision),
            None => Ok(Datum::Absent),
        }
    }

    /// Whether a young slot surely has one scalar value at two revisions. False says nothing.
    #[inline]
    pub(crate) fn is_same_scalar(&self, column: u32, slot: u16, before: u32, after: u32) -> bool {
        let Some(young) = self.columns.get(column as usize) else { return false };
        match (young.at(slot, before), young.at(slot, after)) {
            (Some(a), Some(b)) => a.revision == b.revision && !a.is_container(),
            _ => false,
        }
    }

    /// Prints a name and the state of a slot at a revision. False, with nothing printed, if the
    /// state has children or stands apart, is not there, or has to be loaded.
    #[inline]
    pub(crate) fn print(
        &self,
        column: u32,
        (slot, revision): (u16, u32),
        name: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        let young = self.columns.get(column as usize).and_then(|young| young.at(slot, revision));
        let before = out.len();
        out.extend_from_slice(name);
        let is_printed = match (young, &self.disk) {
            (Some(packed), _) => self.heap.print(packed, out),
            (None, DiskPart::Loaded(disk)) => disk.print(column, slot, revision, out),
            (None, _) => false,
        };
        if !is_printed {
            out.truncate(before);
        }
        is_printed
    }

    /// The state of a slot at a revision and the revision that set it; none if never set.
    pub(crate) fn version(
        &self,
        column: ColumnId,
        slot: u16,
        revision: u32,
    ) -> Result<Option<(u32, Datum<'_>)>, Fault> {
        if let Some(packed) = self.column(column).and_then(|young| young.at(slot, revision)) {
            let set = packed.revision != 0;
            return Ok(set.then(|| (packed.revision, self.heap.unpack(packed))));
        }
        match self.disk_group()? {
            Some(disk) => disk.version(column, slot, revision),
            None => Ok(None),
        }
    }

    /// The revision in which the element or entry of a slot was born.
    pub(crate) fn born(&self, slot: u16) -> Result<Option<u32>, Fault> {
        // It has a parent from its birth on, but no value if the same commit removed it.
        let value = || self.columns.first().and_then(|column| column.birth(slot));
        if let Some(packed) = self.parent.birth(slot).or_else(value) {
            return Ok(Some(packed.revision));
        }
        match self.disk_group()? {
            Some(disk) => disk.born(slot),
            None => Ok(None),
        }
    }

    /// Visits the states of a slot up to a revision, newest first, until told to stop. After a
    /// fault, what was visited has been visited: go on below it.
    #[inline]
    pub(crate) fn versions(
        &self,
        column: ColumnId,
        slot: u16,
        revision: u32,
        visit: &mut impl FnMut(u32, Datum<'_>) -> ControlFlow<()>,
    ) -> Result<(), Fault> {
        let young = self.column(column);
        let run = young.and_then(|young| young.run(slot)).map_or(&[][..], |run| run);
        let newer = run.partition_point(|change| change.revision <= revision);
        for &change in run[..newer].iter().rev() {
            if visit(change.revision, self.heap.unpack(change)).is_break() {
                return Ok(());
            }
        }
        if let Some(birth) = young.and_then(|young| young.birth(slot)) {
            if birth.revision != 0 && birth.revision <= revision && !birth.is_absent() {
                let _ = visit(birth.revision, self.heap.unpack(birth));
            }
            return Ok(());
        }
        // While a checkpoint comes to its end, the disk has young changes too.
        let before = run.first().map_or(revision, |first| revision.min(first.revision - 1));
        match self.disk_group()? {
            Some(disk) => disk.versions(column, slot, before, visit),
            None => Ok(()),
        }
    }

    /// The revision in which a node first had a value.
    pub(crate) fn created(&self, column: ColumnId, slot: u16) -> Result<Option<u32>, Fault> {
        let young = self.column(column);
        match young.and_then(|young| young.birth(slot)) {
            Some(birth) if !birth.is_absent() => return Ok(Some(birth.revision)),
            Some(_) => {}
            None => {
                if let Some(disk) = self.disk_group()?
                    && let Some(created) = disk.created(column, slot)?
                {
                    return Ok(Some(created));
                }
            }
        }
        let first = young.and_then(|young| young.run(slot)).and_then(|run| run.first());
        Ok(first.map(|change| change.revision))
    }

    /// The part on disk that is read cell by cell, if it is.
    pub(crate) fn disk_group(&self) -> Result<Option<&LargeGroup>, Fault> {
        match &self.disk {
            DiskPart::None | DiskPart::Unpacked(_) => Ok(None),
            DiskPart::Loaded(disk) => Ok(Some(disk)),
            DiskPart::NotLoaded(id) => Err(Fault::load(Load::Group(*id))),
        }
    }

    /// Bytes of the cells of a column that a read of what stood in some revisions went through.
    pub(crate) fn cell_bytes(
        &self,
        column: ColumnId,
        revisions: &RangeInclusive<u32>,
    ) -> Result<usize> {
        match &self.disk {
            DiskPart::Loaded(disk) => disk.cell_bytes(column, revisions),
            DiskPart::None | DiskPart::Unpacked(_) | DiskPart::NotLoaded(_) => Ok(0),
        }
    }

    /// Sets the first state of a slot born in `revision`.
    pub(crate) fn set_birth(
        &mut self,
        column: ColumnId,
        slot: u16,
        datum: Datum<'_>,
        revision: u32,
    ) -> Result<()> {
        let (young, heap) = self.column_mut(column);
        let packed = heap.pack(datum, revision)?;
        young.set_birth(slot, packed);
        Ok(())
    }

    /// Sets the state of a slot from `revision` on, replacing what that revision set before.
    /// Returns whether this revision had not changed the slot yet.
    pub(crate) fn set_change(
        &mut self,
        column: ColumnId,
        slot: u16,
        datum: Datum<'_>,
        revision: u32,
    ) -> Result<bool> {
        let (young, heap) = self.column_mut(column);
        let packed = heap.pack(datum, revision)?;
        let run = young.run_mut(slot);
        match run.last_mut() {
            Some(last) if last.revision == revision => {
                *last = packed;
                Ok(false)
            }
            last => {
                assert!(last.is_none_or(|last| last.revision < revision), "revisions rise");
                run.push(packed);
                Ok(true)
            }
        }
    }

    /// The first states of consecutive slots, to be set; they are absent where they were not.
    pub(crate) fn births_mut(
        &mut self,
        column: ColumnId,
        slots: Range<u16>,
    ) -> (&mut [Packed], &mut Heap) {
        let (young, heap) = self.column_mut(column);
        (young.births_mut(slots), heap)
    }

    /// The changes of a slot, to be added to.
    pub(crate) fn run_mut(&mut self, column: ColumnId, slot: u16) -> (&mut Run, &mut Heap) {
        let (young, heap) = self.column_mut(column);
        (young.run_mut(slot), heap)
    }

    /// Makes room for so many columns of values and bytes of text.
    pub(crate) fn reserve(&mut self, columns: usize, bytes: usize) {
        self.columns.reserve(columns);
        self.heap.reserve(bytes);
    }

    /// Adds a change that is newer than those there; one that is not is there already.
    fn add_newer(
        &mut self,
        column: ColumnId,
        slot: u16,
        datum: Datum<'_>,
        revision: u32,
    ) -> Result<()> {
        let (run, heap) = self.run_mut(column, slot);
        if run.last().is_none_or(|last| last.revision < revision) {
            run.push(heap.pack(datum, revision)?);
        }
        Ok(())
    }

    /// Takes over the births and changes that another row group has of revisions after `after`.
    pub(crate) fn add_after(&mut self, after: u32, other: &Self) -> Result<()> {
        let values = (0..).map(ColumnId::Value).zip(&other.columns);
        let special = [(ColumnId::Parent, &other.parent), (ColumnId::Key, &other.key)];
        for (id, column) in values.chain(special) {
            let (first, births) = column.births();
            for (slot, &birth) in (first..).zip(births.as_ref()) {
                if birth.revision > after {
                    self.set_birth(id, slot, other.heap.unpack(birth), birth.revision)?;
                }
            }
            for (slot, run) in column.changed() {
                for &change in run.iter().filter(|change| change.revision > after) {
                    self.add_newer(id, slot, other.heap.unpack(change), change.revision)?;
                }
            }
        }
        Ok(())
    }

    /// Takes back the change that `revision` made to a slot.
    pub(crate) fn pop_change(&mut self, column: ColumnId, slot: u16, revision: u32) {
        self.column_mut(column).0.pop_change(slot, revision);
    }

    /// Takes back the births of `slot` and all after it.
    pub(crate) fn truncate_births(&mut self, slot: u16) {
        for column in &mut self.columns {
            column.truncate_births(slot);
        }
        self.parent.truncate_births(slot);
        self.key.truncate_births(slot);
        if self.is_young_empty() {
            self.heap = Heap::default();
        }
    }

    /// All slots are born and committed.
    pub(crate) fn end_births(&mut self) {
        let columns = self.columns.iter_mut().chain([&mut self.parent, &mut self.key]);
        columns.for_each(YoungColumn::end_births);
        self.heap.shrink();
    }

    /// Cuts columns of paths that were taken back.
    pub(crate) fn truncate_columns(&mut self, columns: usize) {
        self.columns.truncate(columns);
    }

    /// The young changes of a slot.
    pub(crate) fn young_run(&self, column: ColumnId, slot: u16) -> Option<&Run> {
        self.column(column)?.run(slot)
    }

    pub(crate) fn young_column(&self, column: ColumnId) -> Option<&YoungColumn> {
        self.column(column)
    }

    pub(crate) fn value_columns(&self) -> usize {
        self.columns.len()
    }

    #[inline]
    pub(crate) fn unpack(&self, packed: Packed) -> Datum<'_> {
        self.heap.unpack(packed)
    }

    /// Where the text of young states is.
    #[inline]
    pub(crate) fn heap(&self) -> &Heap {
        &self.heap
    }

    pub(crate) fn is_young_empty(&self) -> bool {
        self.columns.iter().all(YoungColumn::is_empty)
            && self.parent.is_empty()
            && self.key.is_empty()
    }

    /// Drops what a checkpoint of `revision` has written; younger changes and births stay.
    pub(crate) fn prune(&mut self, id: GroupId, revision: u32) -> Result<()> {
        let old = std::mem::take(self);
        self.disk = DiskPart::NotLoaded(id);
        self.add_after(revision, &old)
    }
}
