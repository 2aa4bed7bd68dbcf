//! What a tree reads from cells: its facts, rows, keys, and its row groups.
//!
//! Reading the disk never happens under the tree's lock: a read that needs a cell reports it as a
//! [`Load`] and runs again. A small row group is read whole, a large one cell by cell.

use std::ops::{Bound, Range};
use std::sync::{Arc, Weak};

use bytes::Bytes;

use crate::encoding::{Column, RevisionRowsBlock};
use crate::error::{Error, ErrorKind, Result};
use crate::io::Device;
use crate::limits::{BLOCK_BYTES_MAX, ORDINALS_MAX, ROW_GROUP_SLOTS};
use crate::memory::{Evict, Memory, Resident};
use crate::node::{Move, NodeId, PathId};
use crate::revision::Revision;
use crate::state::Datum;
use crate::store::{LiveSegments, Scan, Store};
use crate::sync::Mutex;
use crate::tree::cell_key::{self, GroupCell, TreeId};
use crate::tree::group::{ColumnId, GroupId, RowGroup};
use crate::tree::record_keys::{KeyPage, KeyRange};
use crate::tree::rows::Row;
use crate::tree::schema::{Schema, SpaceId};

mod large;
mod runs;
#[cfg(test)]
mod tests;
mod whole;

use large::Listing;
pub(crate) use large::{Directory, Gathered, LargeGroup};
pub(crate) use runs::{FoundRun, Wanted};
use whole::GroupSize;

/// Cells that there is room for at once where those of a row group are gathered.
const CELLS_USUAL: usize = 128;

/// Something that has to be loaded without the tree's lock.
#[derive(Debug)]
pub(crate) enum Load {
    Group(GroupId),
    /// The same, of a large one with run pieces that say the states of all columns at a revision.
    Whole(GroupId, u32),
    /// The directory of a row group, whatever its size.
    Directory(GroupId),
    /// A cell of first states.
    Base(Arc<Directory>, u32),
    /// A run piece of a column.
    Run(Arc<Directory>, u32, Wanted),
    /// The run pieces of a column that say its states at a revision, or the newest of them, behind
    /// those up to another one, which are known.
    Runs(Arc<Directory>, u32, (u32, u32)),
}

/// The cells of one tree.
#[derive(Debug, Clone)]
pub(crate) struct TreeCells {
    tree: TreeId,
    store: Arc<Store>,
    /// The block of revision rows read last, with its first revision: rows are read in order.
    rows: Arc<Mutex<Option<LastRows>>>,
}

/// A block of revision rows.
#[derive(Debug)]
struct LastRows {
    first: u64,
    block: Arc<RevisionRowsBlock>,
    /// Whether it was read since it was last asked to go.
    used: bool,
    /// Counts it.
    _resident: Arc<Resident>,
}

impl Evict for Mutex<Option<LastRows>> {
    fn evict(&self, _: GroupId) -> bool {
        let mut rows = self.lock();
        let is_used = rows.as_mut().is_some_and(|rows| std::mem::take(&mut rows.used));
        if !is_used {
            *rows = None;
        }
        !is_used
    }
}

/// What was read of a row group.
#[derive(Debug)]
pub(crate) enum Loaded {
    Small(Box<RowGroup>, Arc<Resident>),
    Large(LargeGroup),
}

/// What the key of a row group's cell says.
#[derive(Debug, Clone, Copy)]
struct Place {
    path: PathId,
    column: u32,
    kind: GroupCell,
    number: u32,
}

impl TreeCells {
    pub(crate) fn new(tree: TreeId, store: Arc<Store>) -> Self {
        Self { tree, store, rows: Arc::default() }
    }

    pub(crate) fn tree(&self) -> TreeId {
        self.tree
    }

    /// Where the database is.
    pub(crate) fn device(&self) -> &Arc<dyn Device> {
        self.store.device()
    }

    /// The memory for what is read.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        self.store.memory()
    }

    /// The segments that are live now.
    pub(crate) fn live(&self) -> Arc<LiveSegments> {
        self.store.live()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.store.get(key)
    }

    /// The ordinal of a map's entry by its key.
    pub(crate) fn entry(&self, path: PathId, map: u64, key: &[u8]) -> Result<Option<u64>> {
        let Some(cell) = self.get(&cell_key::entry(self.tree, path, map, key))? else {
            return Ok(None);
        };
        self.ordinal(&cell).map(Some)
    }

    /// The ordinal that a cell of the index of entries says.
    fn ordinal(&self, cell: &[u8]) -> Result<u64> {
        let ordinal = cell.try_into().map(u64::from_le_bytes).ok();
        ordinal.filter(|&ordinal| ordinal < ORDINALS_MAX).ok_or_else(|| {
            corrupt(format!("an entry of the index of tree {} is {cell:02x?}", self.tree.0))
        })
    }

    /// The next names of a range of the root's entries in their order, with their ordinals.
    pub(crate) fn entries(
        &self,
        path: PathId,
        range: &KeyRange,
        is_reverse: bool,
        limit: usize,
    ) -> Result<KeyPage> {
        let prefix = cell_key::entry(self.tree, path, 0, b"");
        let live = self.store.live();
        let mut names = KeyPage::default();
        if is_reverse {
            let mut end = match &range.high {
                Bound::Included(name) => Some([prefix.as_slice(), name.as_slice()].concat()),
                Bound::Excluded(name) => cell_key::before(&prefix, name),
                Bound::Unbounded => Some(cell_key::last(&prefix)),
            };
            while names.len() < limit
                && let Some(last) = &end
                && let Some((key, cell)) = live.last_before(&prefix, last)?
            {
                let name = cell_key::entry_name(&key);
                if is_below(name, &range.low) {
                    break;
                }
                end = cell_key::before(&prefix, name);
                names.push(name, self.ordinal(&cell)?);
            }
            return Ok(names);
        }
        let mut scan = live.scan(&prefix)?;
        if let Bound::Included(name) | Bound::Excluded(name) = &range.low {
            scan.seek(&[prefix.as_slice(), name.as_slice()].concat())?;
        }
        for found in scan {
            let (key, handle) = found?;
            let name = cell_key::entry_name(&key);
            if matches!(&range.low, Bound::Excluded(low) if name == low.as_slice()) {
                continue;
            }
            if names.len() >= limit || is_above(name, &range.high) {
                break;
            }
            names.push(name, self.ordinal(&handle.load()?)?);
        }
        Ok(names)
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

    /// How many nodes a revision on disk changed; births left out.
    pub(crate) fn changed_count(&self, revision: Revision) -> Result<usize> {
        let (block, index) = self.rows_of(revision)?;
        Ok(block.changed(index)?.len())
    }

    /// The subtrees that a revision on disk moved to other paths.
    pub(crate) fn moves(&self, revision: Revision) -> Result<Vec<Move>> {
        let (block, index) = self.rows_of(revision)?;
        block.moves(index)?.collect()
    }

    /// Appends the timestamps of all revisions on disk from `first` on.
    pub(crate) fn timestamps_into(&self, first: u64, out: &mut Vec<i64>) -> Result<()> {
        for found in self.store.live().scan(&cell_key::all_rows(self.tree))? {
            let (key, handle) = found?;
            let begin = key.last_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
            let block = RevisionRowsBlock::parse(handle.load()?)?;
            let skipped = usize::try_from(first.saturating_sub(begin)).unwrap_or(usize::MAX);
            if skipped < block.len() {
                let start = out.len();
                block.timestamps_into(out);
                out.drain(start..start + skipped);
            }
        }
        Ok(())
    }

    /// The cells whose keys begin with `prefix`, in key order.
    pub(crate) fn scan(&self, prefix: &[u8]) -> Result<Scan> {
        self.store.live().scan(prefix)
    }

    fn rows_of(&self, revision: Revision) -> Result<(Arc<RevisionRowsBlock>, usize)> {
        let within = |first: u64, block: &RevisionRowsBlock| {
            let index = usize::try_from(revision.0.checked_sub(first)?).ok()?;
            (index < block.len()).then_some(index)
        };
        if let Some(last) = &mut *self.rows.lock()
            && let Some(index) = within(last.first, &last.block)
        {
            last.used = true;
            return Ok((Arc::clone(&last.block), index));
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
        let rows: Weak<Mutex<Option<LastRows>>> = Arc::downgrade(&self.rows);
        let part = GroupId { space: SpaceId(0), group: 0 };
        let resident = Resident::new(self.memory(), rows, part);
        resident.add(cell.len() + size_of::<RevisionRowsBlock>());
        resident.settle_in();
        let block = Arc::new(RevisionRowsBlock::parse(of_its_own(cell))?);
        let index = within(first, &block).ok_or_else(missing)?;
        let last = LastRows { first, block: Arc::clone(&block), used: true, _resident: resident };
        *self.rows.lock() = Some(last);
        Ok((block, index))
    }

    /// A row group, of which the disk has the revisions up to `newest`: whole if it is small, else
    /// the directory of its cells.
    pub(crate) fn load_group(
        &self,
        id: GroupId,
        schema: &Schema,
        newest: u32,
        resident: Arc<Resident>,
    ) -> Result<Loaded> {
        let live = self.store.live();
        let mut scan = live.scan(&cell_key::group(self.tree, id))?;
        let (mut size, mut seen) = (GroupSize::default(), Vec::with_capacity(CELLS_USUAL));
        while let Some(found) = scan.next() {
            let (key, handle) = found?;
            let place = Place::parse(&key, id, schema)?;
            let is_small = size.add(place, &handle)?;
            seen.push((place, handle));
            if !is_small {
                // What was seen is not read again: its blocks may not have stayed in the cache.
                let listing = Listing { live: &live, seen: &mut seen, scan: &mut scan };
                let large = LargeGroup::read((self, listing), (id, schema), newest, resident);
                return large.map(Loaded::Large);
            }
        }
        let group = Box::new(size.unpack(seen, schema.extent())?);
        resident.add(group.bytes());
        Ok(Loaded::Small(group, resident))
    }

    /// The directory of the cells of a row group, whatever its size.
    pub(crate) fn load_directory(
        &self,
        id: GroupId,
        schema: &Schema,
        newest: u32,
        resident: Arc<Resident>,
    ) -> Result<LargeGroup> {
        let live = self.store.live();
        let mut scan = live.scan(&cell_key::group(self.tree, id))?;
        let listing = Listing { live: &live, seen: &mut Vec::new(), scan: &mut scan };
        LargeGroup::read((self, listing), (id, schema), newest, resident)
    }

    /// The directories of row groups that follow each other, found by one scan.
    pub(crate) fn load_directories(
        &self,
        ids: &[GroupId],
        schema: &Schema,
        newest: u32,
        resident: impl Fn(GroupId) -> Arc<Resident>,
    ) -> Result<Vec<(GroupId, LargeGroup)>> {
        let Some(first) = ids.first() else { return Ok(Vec::new()) };
        let live = self.store.live();
        let all = cell_key::space(self.tree, first.space);
        let mut scan = live.scan_in_turn(&all, &cell_key::group(self.tree, *first))?;
        let (mut seen, mut found) = (Vec::new(), Vec::with_capacity(ids.len()));
        for id in ids {
            if id != first {
                scan.turn_to(&cell_key::group(self.tree, *id))?;
            }
            let listing = Listing { live: &live, seen: &mut seen, scan: &mut scan };
            let of = (*id, schema);
            let directory = LargeGroup::read((self, listing), of, newest, resident(*id))?;
            found.push((*id, directory));
        }
        Ok(found)
    }
}

impl Place {
    fn parse(key: &[u8], id: GroupId, schema: &Schema) -> Result<Self> {
        let place = cell_key::parse_group_cell(key).and_then(|(path, kind, number)| {
            let info = schema.has_path(path).then(|| schema.path(path))?;
            let column = (info.space == id.space).then_some(info.column)?;
            Some(Self { path, column, kind, number })
        });
        place.ok_or_else(|| corrupt(format!("a row group has a cell with the key {key:02x?}")))
    }

    fn column_id(&self) -> ColumnId {
        match self.kind {
            GroupCell::Base | GroupCell::Born | GroupCell::Run => ColumnId::Value(self.column),
            GroupCell::Parent => ColumnId::Parent,
            GroupCell::Key => ColumnId::Key,
        }
    }

    /// The first slot of a cell of first states.
    fn first_slot(&self) -> Result<u16> {
        let slot = u16::try_from(self.number).ok();
        let slot = slot.filter(|&slot| u64::from(slot) < ROW_GROUP_SLOTS);
        slot.ok_or_else(|| corrupt(format!("first states begin at slot {}", self.number)))
    }

    /// The slots of a cell of first states.
    fn slots(&self, column: &Column) -> Result<Range<u16>> {
        self.slots_of(column.len())
    }

    /// The slots of a cell of so many first states.
    fn slots_of(&self, states: usize) -> Result<Range<u16>> {
        let first = self.first_slot()?;
        let end = u16::try_from(usize::from(first) + states).ok();
        let end = end.filter(|&end| u64::from(end) <= ROW_GROUP_SLOTS);
        let end =
            end.ok_or_else(|| corrupt(format!("{states} first states begin at slot {first}")))?;
        Ok(first..end)
    }
}

fn is_below(name: &[u8], low: &Bound<Vec<u8>>) -> bool {
    match low {
        Bound::Included(low) => name < low.as_slice(),
        Bound::Excluded(low) => name <= low.as_slice(),
        Bound::Unbounded => false,
    }
}

fn is_above(name: &[u8], high: &Bound<Vec<u8>>) -> bool {
    match high {
        Bound::Included(high) => name > high.as_slice(),
        Bound::Excluded(high) => name >= high.as_slice(),
        Bound::Unbounded => false,
    }
}

/// A cell to be kept: one that shares its block with others would keep all of them.
fn of_its_own(cell: Bytes) -> Bytes {
    if cell.len() < BLOCK_BYTES_MAX { Bytes::copy_from_slice(&cell) } else { cell }
}

/// The revision that a state of a cell of births says.
fn revision_of_birth(state: Datum<'_>) -> Result<u32> {
    let revision = match state {
        Datum::Int(revision) => u32::try_from(revision).ok().filter(|&revision| revision > 0),
        _ => None,
    };
    revision.ok_or_else(|| corrupt(format!("a slot was born in revision {state:?}")))
}

/// The error for a cell that verifies and says what cannot be.
#[cold]
pub(crate) fn corrupt(what: String) -> Error {
    Error::new(ErrorKind::Corrupt, what)
}
