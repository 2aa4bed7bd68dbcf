//! The records of a collection, or the elements of an array, as columns: what analytics read.
//!
//! *Rows* are records or elements; they come in *parts*, each of at most 4,096 rows that stand near
//! each other. A column is read for the rows of a part at once, without JSON and without a look at
//! each node. Arrays within rows lead to rows of their own, their elements, so that
//! nested data is columns all the way down.
//!
//! Invariants:
//! - all of it is as of one revision, whatever is committed meanwhile;
//! - the lock of the tree is held for one column of one row group at a time.

use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::collection::{CollectionSnapshot, KeyKind};
use crate::error::{Error, ErrorKind, Result};
use crate::label_path::LabelPath;
use crate::limits::ROW_GROUP_SLOTS;
use crate::node::PathId;
use crate::order::OrderCursor;
use crate::revision::{Micros, Revision};
use crate::snapshot::Snapshot;
pub use crate::state::ColumnKinds;
use crate::state::{ApartKind, Datum, Sequence};
use crate::tree::Tree;
use crate::tree::conditions::GroupScan;
use crate::tree::data::{TreeData, node};
use crate::tree::group::{ColumnId, Fault, GroupId, locate};
use crate::tree::history::short;
use crate::tree::records::{VERSION_FIELD, version_of};
use crate::tree::scan::{ColumnScan, Visitor};
use crate::tree::schema::{Label, ROOT, Schema, SpaceId, index_u32};
use crate::tree::serialize::Format;

mod aggregate;
mod chunk;
mod field;
mod lives;
mod outgrown;
mod past;
mod sought;
#[cfg(test)]
mod tests;

use aggregate::ViewCache;
pub use aggregate::{
    AggregateColumn, AggregatePlan, AggregateValue, AggregateWork, Aggregates, Comparison,
    FloatSum, Measure, Measured, RangeOfInt, RowFilter, Sum, ValueKind, ValueTest,
};
pub use chunk::{ColumnChunk, ColumnValue};
pub use field::ColumnField;
use past::Past;

/// Rows below which a part takes in what stands elsewhere.
const PART_ROWS_MIN: u64 = 1_024;

/// The records of a collection, or the elements of the arrays at a path of a document, at a
/// revision, by column.
///
/// ```
/// use duramen::{ColumnValue, CommitOptions, Database, KeyKind};
///
/// let db = Database::memory()?;
/// let players = db.create_collection("players", KeyKind::Text)?;
/// players.put("ann", r#"{"name":"Ann","score":3}"#, &CommitOptions::default())?;
/// players.put("bob", r#"{"name":"Bob"}"#, &CommitOptions::default())?;
/// let columns = players.head()?.columns()?;
/// let score = &columns.root()?.fields[1];
/// let rows = columns.rows(0)?;
/// let chunk = columns.read(&rows, score.path)?;
/// assert_eq!((score.name.as_str(), chunk.len()), ("score", 2));
/// assert_eq!((chunk.get(0), chunk.get(1)), (ColumnValue::Int(3), ColumnValue::Missing));
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Columns {
    tree: Arc<Tree>,
    revision: u32,
    keys: Option<KeyKind>,
    /// None if there never was a row.
    path: Option<PathId>,
    parts: Arc<[Vec<Range<u64>>]>,
    /// If rows are the versions of records, and not records.
    past: Option<Past>,
    /// Whether the revision is one that a transaction is making.
    is_staged: bool,
    views: Arc<ViewCache>,
    read_bytes: Arc<AtomicU64>,
    /// The kinds of the rows, once they are known.
    row_kinds: Arc<OnceLock<ColumnKinds>>,
    /// What the rows are of, if they are records or their versions.
    collection: Option<Arc<CollectionSnapshot>>,
}

/// Slots of the row group of a number.
type Part = (u64, Range<u16>);

/// Some rows, in their order.
#[derive(Debug, Clone, Default)]
pub struct ColumnRows {
    ordinals: Vec<u64>,
    /// As of when each row is; none if all are as of the revision of the columns.
    moments: Vec<u32>,
    /// The revision that each row came with; none if rows are no versions.
    firsts: Vec<u32>,
    /// The revision that ended each row, 0 for what still stands; none if rows are no versions.
    ends: Vec<u32>,
}

/// What is in the arrays of some rows.
#[derive(Debug, Clone, Default)]
pub struct ElementRows {
    /// How many elements the array of each row has; 0 where there is no array.
    pub lens: Vec<u32>,
    /// The elements of all of them.
    pub rows: ColumnRows,
}

impl ColumnRows {
    /// How many rows.
    pub fn len(&self) -> usize {
        self.ordinals.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ordinals.is_empty()
    }
}

impl CollectionSnapshot {
    /// The records by column.
    pub fn columns(&self) -> Result<Columns> {
        let tree = Arc::clone(self.document().parts().1);
        let revision = short(self.revision());
        let mut columns = Columns::new(tree, revision, Some(self.key_kind()));
        columns.collection = Some(Arc::new(self.clone()));
        let path = columns.tree.data.read().schema.path(ROOT).entry;
        if let Some(path) = path.filter(|_| revision > 0) {
            let end = columns.tree.born_until(path, 0, revision)?;
            columns.path = Some(path);
            columns.parts = parts(std::iter::once(0..end)).into();
        }
        Ok(columns)
    }
}

impl Snapshot {
    /// The elements of the arrays at a path, such as `$.data[*]`, by column; `NotFound` if the
    /// document never had any there, `Invalid` if the path does not end with `[*]`.
    pub fn columns(&self, path: &LabelPath) -> Result<Columns> {
        let mut columns = Columns::new(Arc::clone(&self.tree), short(self.revision), None);
        let arrays = {
            let data = self.tree.data.read();
            let found = path.find(&data.schema);
            let found = found.ok_or_else(|| missing(path))?;
            columns.path = Some(found);
            arrays_above(&data.schema, found).ok_or_else(|| no_elements(path))?
        };
        columns.parts = parts(columns.extents_of(&arrays)?.into_iter()).into();
        Ok(columns)
    }
}

impl Snapshot {
    /// The paths of the elements that are objects, or were at some revision, in arrays that
    /// [`Snapshot::columns`] reads.
    pub fn arrays(&self) -> Vec<LabelPath> {
        let data = self.tree.data.read();
        let schema = &data.schema;
        let spaces = schema.spaces().iter();
        let objects = spaces.filter(|space| space.columns.len() > 1).map(|space| space.path);
        let arrays = objects.filter(|path| arrays_above(schema, *path).is_some());
        arrays.map(|path| LabelPath::of(schema, path)).collect()
    }
}

impl Columns {
    fn new(tree: Arc<Tree>, revision: u32, keys: Option<KeyKind>) -> Self {
        let views = ViewCache::new(tree.cells.memory());
        Self {
            tree,
            revision,
            keys,
            path: None,
            parts: Arc::default(),
            past: None,
            is_staged: false,
            views,
            read_bytes: Arc::default(),
            row_kinds: Arc::default(),
            collection: None,
        }
    }

    /// What columns the records of a tree have in the revision that a transaction is making.
    pub(crate) fn staged_root(
        tree: Arc<Tree>,
        revision: u32,
        keys: KeyKind,
    ) -> Result<ColumnField> {
        let path = tree.data.read().schema.path(ROOT).entry;
        let columns = Self { path, is_staged: true, ..Self::new(tree, revision, Some(keys)) };
        columns.root()
    }

    /// The revision they show; 0 before the first.
    pub fn revision(&self) -> Revision {
        Revision(self.revision.into())
    }

    /// The path of the rows; none if there never was one.
    pub fn path(&self) -> Option<PathId> {
        self.path
    }

    /// The type of the keys, if rows are records.
    pub fn key_kind(&self) -> Option<KeyKind> {
        self.keys
    }

    /// The same columns, which count anew what is [read](Self::bytes_read).
    pub fn counting(&self) -> Self {
        Self { read_bytes: Arc::default(), ..self.clone() }
    }

    /// Bytes of what these and their clones read, as it is encoded, from disk or from memory: the
    /// cells of first states, of changes and of keys that a read goes through, each time it does,
    /// and values stored apart. Of what is read as [JSON](Self::json) the text is counted; what is
    /// in no cell yet is not, nor is where the elements of arrays are.
    pub fn bytes_read(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// How many parts the rows come in.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// How many rows of a part there may be, of which some may have been deleted; of versions, how
    /// many records have them. Nothing is read for it.
    pub fn rows_max(&self, part: usize) -> usize {
        let ranges = self.parts.get(part).map_or(&[][..], Vec::as_slice);
        let rows = ranges.iter().map(|range| range.end - range.start).sum::<u64>();
        usize::try_from(rows).unwrap_or(usize::MAX)
    }

    /// The rows of a part that are there.
    pub fn rows(&self, part: usize) -> Result<ColumnRows> {
        let ranges = self.parts.get(part).map_or(&[][..], Vec::as_slice);
        let mut rows = if let (Some(versions), Some(path)) = (&self.past, self.path) {
            self.versions_of(versions, path, ranges)?
        } else {
            let ordinals = ranges.iter().cloned().flatten().collect();
            ColumnRows { ordinals, ..ColumnRows::default() }
        };
        // The elements of an array are there; a record may have been deleted.
        if let (Some(path), Some(_)) = (self.path, self.keys) {
            let states = self.read(&rows, path)?;
            rows.retain(|row| !matches!(states.get(row), ColumnValue::Missing | ColumnValue::Null));
        }
        Ok(rows)
    }

    /// The values of a column at some rows.
    pub fn read(&self, rows: &ColumnRows, path: PathId) -> Result<ColumnChunk> {
        let mut chunk = self.read_columns(rows, path)?;
        let outgrown = self.outgrown_at(rows, path)?;
        if let Some((name, outgrown)) = &outgrown {
            let before = chunk.read_bytes;
            self.set_outgrown((rows, outgrown), name, &mut chunk)?;
            self.count_read(chunk.read_bytes - before);
            return chunk.checked();
        }
        Ok(chunk)
    }

    /// The same without what is in no column.
    fn read_columns(&self, rows: &ColumnRows, path: PathId) -> Result<ColumnChunk> {
        if !rows.moments.is_empty() {
            return self.gather_moments(rows, path, |data, chunk, moments| {
                let (there, bytes) = data.presence_at(path, moments, chunk.len())?;
                chunk.read_bytes += bytes;
                let gone = there.iter().enumerate().filter(|(_, there)| !**there);
                gone.for_each(|(row, _)| chunk.clear(row));
                Ok(())
            });
        }
        self.gather(rows, path, |data, chunk, (group, slots)| {
            let space = data.schema.space(data.schema.path(path).space).path;
            if path == space {
                return Ok(());
            }
            let mut levels = GroupScan::new(data, space, group, slots.clone(), self.revision);
            let there = levels.presence(path)?;
            chunk.read_bytes += levels.read_bytes;
            for slot in slots.filter(|slot| !there.has(*slot)) {
                chunk.clear(slot.into());
            }
            Ok(())
        })
    }

    /// The states of a column at some rows, a row group at a time, each after it was looked over.
    fn gather(
        &self,
        rows: &ColumnRows,
        path: PathId,
        look: impl Fn(&TreeData, &mut ColumnChunk, Part) -> Result<(), Fault>,
    ) -> Result<ColumnChunk> {
        let mut chunk = ColumnChunk::missing(rows.len());
        let mut at = 0;
        let together = |a: &u64, b: &u64| locate(*a).0 == locate(*b).0;
        for ordinals in rows.ordinals.chunk_by(together) {
            let least = ordinals.iter().min().copied().unwrap_or(0);
            let most = ordinals.iter().max().copied().unwrap_or(0);
            let (group, slots) = group_of(&(least..most + 1));
            let found = self.tree.read(|data| {
                let mut found = ColumnChunk::missing(usize::from(slots.end));
                data.scan(&self.scan(data, path, group, slots.clone()), &mut found)?;
                look(data, &mut found, (group, slots.clone()))?;
                Ok(found)
            })?;
            chunk.copy(at, &found, ordinals.iter().map(|ordinal| locate(*ordinal).1.into()));
            at += ordinals.len();
        }
        self.finish(chunk)
    }

    /// Reads what is stored apart, and counts what was read.
    fn finish(&self, mut chunk: ColumnChunk) -> Result<ColumnChunk> {
        self.fetch(&mut chunk)?;
        self.count_read(chunk.read_bytes);
        chunk.checked()
    }

    fn count_read(&self, bytes: usize) {
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Reads what is stored apart.
    fn fetch(&self, chunk: &mut ColumnChunk) -> Result<()> {
        for row in 0..chunk.len() {
            if let Some((blob, kind)) = chunk.apart(row) {
                let value = self.tree.blobs.get(blob)?;
                chunk.set(row, kind.inline(&value));
                chunk.read_bytes += value.len();
            }
        }
        Ok(())
    }

    fn scan(&self, data: &TreeData, path: PathId, group: u64, slots: Range<u16>) -> ColumnScan {
        let info = data.schema.path(path);
        let group = GroupId { space: info.space, group: number_of(group) };
        ColumnScan { group, column: info.column, slots, revision: self.revision }
    }

    /// The values of a column at some rows as JSON text: missing and `null` stay what they are.
    pub fn json(&self, rows: &ColumnRows, path: PathId) -> Result<ColumnChunk> {
        self.json_of(rows, path, |_| true)
    }

    /// Some rows as JSON text, those left out that are objects with their fields in columns.
    pub fn json_beside_columns(&self, rows: &ColumnRows) -> Result<ColumnChunk> {
        match self.path {
            Some(path) => self.json_of(rows, path, |value| value != ColumnValue::Object),
            None => Ok(ColumnChunk::missing(rows.len())),
        }
    }

    fn json_of(
        &self,
        rows: &ColumnRows,
        path: PathId,
        is_wanted: impl Fn(ColumnValue<'_>) -> bool,
    ) -> Result<ColumnChunk> {
        let values = self.read_columns(rows, path)?;
        let mut chunk = ColumnChunk::missing(rows.len());
        let mut text = Vec::new();
        for (row, &ordinal) in rows.ordinals.iter().enumerate() {
            match values.get(row) {
                ColumnValue::Missing => continue,
                ColumnValue::Null => {
                    chunk.set(row, Datum::Null);
                    continue;
                }
                value if !is_wanted(value) => continue,
                _ => {}
            }
            text.clear();
            let place = (node(path, ordinal), self.moment(rows, row));
            self.tree.append_json(place, &Format::default(), &mut text)?;
            self.count_read(text.len());
            chunk.set(row, ApartKind::Opaque.inline(&text));
        }
        if let Some((name, outgrown)) = &self.outgrown_at(rows, path)? {
            self.set_outgrown_json((rows, outgrown), name, &mut chunk)?;
        }
        chunk.checked()
    }

    /// The elements of the arrays in a chunk of some rows.
    pub fn elements(&self, rows: &ColumnRows, chunk: &ColumnChunk) -> Result<ElementRows> {
        let mut elements = ElementRows::default();
        for row in 0..chunk.len() {
            let before = elements.rows.ordinals.len();
            if let Some(sequence) = chunk.sequence(row) {
                self.extents(sequence, |extent| elements.rows.ordinals.extend(extent))?;
            }
            let len = elements.rows.ordinals.len() - before;
            if let Some(&moment) = rows.moments.get(row) {
                elements.rows.moments.extend(std::iter::repeat_n(moment, len));
            }
            elements.lens.push(u32::try_from(len).unwrap_or(u32::MAX));
        }
        Ok(elements)
    }

    /// The elements of the last of some arrays, each in the elements of the one before.
    fn extents_of(&self, arrays: &[PathId]) -> Result<Vec<Range<u64>>> {
        let mut rows = ColumnRows { ordinals: vec![0], ..ColumnRows::default() };
        let mut ranges = Vec::new();
        let Some((last, above)) = arrays.split_last() else { return Ok(ranges) };
        for &array in above {
            rows = self.elements(&rows, &self.read(&rows, array)?)?.rows;
        }
        let chunk = self.read(&rows, *last)?;
        for sequence in (0..chunk.len()).filter_map(|row| chunk.sequence(row)) {
            self.extents(sequence, |extent| ranges.push(extent))?;
        }
        Ok(ranges)
    }

    fn extents(&self, sequence: Sequence, mut visit: impl FnMut(Range<u64>)) -> Result<()> {
        let mut cursor = OrderCursor::new(sequence);
        while let Some(extent) = cursor.next(&&self.tree.orders)? {
            visit(extent.first..extent.first + u64::from(extent.count));
        }
        Ok(())
    }

    /// The keys of some rows that are records: integers as such (those without a sign in two's
    /// complement), others as text.
    pub fn keys(&self, rows: &ColumnRows) -> Result<ColumnChunk> {
        let (Some(path), Some(keys)) = (self.path, self.keys) else {
            return Ok(ColumnChunk::missing(rows.len()));
        };
        let names = self.tree.read(|data| {
            let space = data.schema.path(path).space;
            let mut names = ColumnChunk::missing(rows.len());
            for (row, &ordinal) in rows.ordinals.iter().enumerate() {
                names.set(row, data.key(space, ordinal)?);
            }
            names.read_bytes = cell_bytes(data, (space, ColumnId::Key), rows, 0..=u32::MAX)?;
            Ok(names)
        })?;
        self.count_read(names.read_bytes);
        let names = names.checked()?;
        if keys == KeyKind::Text {
            return Ok(names);
        }
        let mut chunk = ColumnChunk::missing(rows.len());
        for row in 0..names.len() {
            let ColumnValue::Text(name) = names.get(row) else { continue };
            match keys.key_of(name.as_bytes())? {
                crate::Key::I64(key) => chunk.set(row, Datum::Int(key)),
                crate::Key::U64(key) => chunk.set(row, Datum::Int(key.cast_signed())),
                other => {
                    let text = other.to_string();
                    chunk.set(row, Datum::Text { bytes: text.as_bytes(), plain: true });
                }
            }
        }
        chunk.checked()
    }

    /// The versions of some rows that are records.
    pub fn versions(&self, rows: &ColumnRows) -> Result<Vec<u64>> {
        let Some(path) = self.version_path() else { return Ok(vec![1; rows.len()]) };
        let chunk = if rows.moments.is_empty() {
            self.gather(rows, path, |_, _, _| Ok(()))?
        } else {
            self.gather_moments(rows, path, |_, _, _| Ok(()))?
        };
        let version = |row| match chunk.get(row) {
            ColumnValue::Int(version) => version_of(Datum::Int(version)),
            _ => Ok(1),
        };
        (0..chunk.len()).map(version).collect()
    }

    /// The revisions that last changed some rows that are records or versions.
    pub fn changed(&self, rows: &ColumnRows) -> Result<Vec<Revision>> {
        if !rows.firsts.is_empty() {
            let kept = self.tree.data.read().kept.first();
            let firsts = rows.firsts.iter().map(|first| Revision((*first).max(kept).into()));
            return Ok(firsts.collect());
        }
        let (Some(path), versions) = (self.path, self.version_path()) else {
            return Ok(Vec::new());
        };
        let (changed, bytes) = self.tree.read(|data| {
            let (space, first) = (data.schema.path(path).space, data.kept.first());
            let (mut changed, mut since) = (Vec::with_capacity(rows.len()), self.revision);
            for &ordinal in &rows.ordinals {
                let counted = match versions {
                    Some(versions) => data.version(node(versions, ordinal), self.revision)?,
                    None => None,
                };
                let set = match counted {
                    Some((set, Datum::Int(_))) => set,
                    _ => data.born(space, ordinal)?.unwrap_or(first),
                };
                since = since.min(set);
                changed.push(Revision(data.kept.told(set, self.revision).into()));
            }
            let Some(versions) = versions else { return Ok((changed, 0)) };
            let column = ColumnId::Value(data.schema.path(versions).column);
            let bytes = cell_bytes(data, (space, column), rows, since..=self.revision)?;
            Ok((changed, bytes))
        })?;
        self.count_read(bytes);
        Ok(changed)
    }

    /// The timestamp of a revision.
    pub fn timestamp(&self, revision: Revision) -> Result<Micros> {
        Ok(self.tree.row(revision)?.timestamp)
    }

    fn version_path(&self) -> Option<PathId> {
        self.tree.data.read().schema.field(self.path?, VERSION_FIELD)
    }

    /// Whether what is known of the numbers of a part, without reading them, says that no value of
    /// a column there is an integer in a range, nor any other number. False says nothing.
    pub fn is_ruled_out(
        &self,
        part: usize,
        path: PathId,
        range: &RangeInclusive<i64>,
    ) -> Result<bool> {
        if self.has_outgrown()? {
            return Ok(false);
        }
        let ranges = self.parts.get(part).map_or(&[][..], Vec::as_slice);
        for ordinals in ranges {
            let (group, slots) = group_of(ordinals);
            let is_out = self.tree.read(|data| {
                data.is_ruled_out(&self.scan(data, path, group, slots.clone()), range)
            })?;
            if !is_out {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Bytes of the cells of a column that a read of what stood in some revisions went through.
fn cell_bytes(
    data: &TreeData,
    (space, column): (SpaceId, ColumnId),
    rows: &ColumnRows,
    revisions: RangeInclusive<u32>,
) -> Result<usize, Fault> {
    let mut bytes = 0;
    for ordinals in rows.ordinals.chunk_by(|a, b| locate(*a).0 == locate(*b).0) {
        let group = ordinals.first().map_or(0, |&ordinal| locate(ordinal).0);
        if let Some(found) = data.group(space, group)? {
            bytes += found.cell_bytes(column, &revisions)?;
        }
    }
    Ok(bytes)
}

/// Takes all states as they are.
impl Visitor for ColumnChunk {
    fn state(&mut self, slot: u16, state: Datum<'_>) {
        self.set(slot.into(), state);
    }

    fn reads(&mut self, bytes: usize) {
        self.read_bytes += bytes;
    }

    fn same(&mut self, slots: Range<u16>, state: Datum<'_>) {
        self.fill(slots.start.into()..slots.end.into(), state);
    }

    fn integers(&mut self, first: u16, values: &[i64]) {
        self.set_integers(first.into(), values);
    }

    fn coded(&mut self, first: u16, codes: &[i64], states: &[Datum<'_>]) {
        self.set_coded(first.into(), codes, states);
    }
}

/// Cuts ranges of ordinals at row groups; short ones share a part.
fn parts(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Vec<Range<u64>>> {
    let mut parts: Vec<Vec<Range<u64>>> = Vec::new();
    let mut rows = ROW_GROUP_SLOTS;
    for mut range in ranges {
        while !range.is_empty() {
            let border = (range.start / ROW_GROUP_SLOTS + 1) * ROW_GROUP_SLOTS;
            let cut = range.start..range.end.min(border);
            let len = cut.end - cut.start;
            range.start = cut.end;
            let group = |at: &Range<u64>| at.start / ROW_GROUP_SLOTS;
            let last = parts.last_mut().filter(|last| {
                let is_near = last.last().is_some_and(|before| group(before) == group(&cut));
                rows + len <= ROW_GROUP_SLOTS && (is_near || rows < PART_ROWS_MIN)
            });
            if let Some(last) = last {
                last.push(cut);
                rows += len;
            } else {
                parts.push(vec![cut]);
                rows = len;
            }
        }
    }
    parts
}

fn number_of(group: u64) -> u32 {
    index_u32(usize::try_from(group).unwrap_or(usize::MAX))
}

/// The row group of ordinals that are in one, and their slots there.
fn group_of(ordinals: &Range<u64>) -> (u64, Range<u16>) {
    let group = ordinals.start / ROW_GROUP_SLOTS;
    let slot = |ordinal: u64| u16::try_from(ordinal - group * ROW_GROUP_SLOTS);
    (group, slot(ordinals.start).unwrap_or(0)..slot(ordinals.end).unwrap_or(0))
}

/// The paths of the arrays that lead from the root to elements, outermost first; none if there is
/// a map among them, or if the path is not one of elements.
fn arrays_above(schema: &Schema, elements: PathId) -> Option<Vec<PathId>> {
    let mut arrays = Vec::new();
    let mut at = elements;
    if schema.label(at) != Label::Element {
        return None;
    }
    while at != ROOT {
        let parent = schema.path(at).parent;
        match schema.label(at) {
            Label::Element => arrays.push(parent),
            Label::Field(_) => {}
            Label::Entry | Label::Root => return None,
        }
        at = parent;
    }
    arrays.reverse();
    Some(arrays)
}

fn missing(path: &LabelPath) -> Error {
    Error::new(ErrorKind::NotFound, format!("the document never had anything at {path}"))
}

fn no_elements(path: &LabelPath) -> Error {
    let message = format!(
        "{path} does not name the elements of arrays in objects and arrays: give a path such as \
         $.data[*]"
    );
    Error::new(ErrorKind::Invalid, message)
}
