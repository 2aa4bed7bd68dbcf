//! A tree into cells at a checkpoint, and back when it is opened.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::encoding::{RevisionRows, encode_order_block, encode_run};
use crate::error::{Error, ErrorKind, Result};
use crate::lexical;
use crate::limits::{
    ORDINALS_MAX, REVISION_ROWS_MAX, REVISIONS_MAX, ROW_GROUP_SLOTS, RUN_PIECE_CHANGES_MAX,
};
use crate::node::PathId;
use crate::revision::Revision;
use crate::segment::{SegmentInfo, SegmentWriter};
use crate::series;
use crate::state::{BlobId, ColumnKinds, Datum, OrderId, SpaceKinds};
use crate::store::Store;
use crate::tree::Tree;
use crate::tree::cell_key::{self, GroupCell, TreeId};
use crate::tree::data::TreeData;
use crate::tree::delta::{decode_paths, decode_shapes, encode_paths, encode_shapes};
use crate::tree::disk::TreeCells;
use crate::tree::first_states;
use crate::tree::group::{ColumnId, GroupId, RowGroup};
use crate::tree::history::short;
use crate::tree::kept::Kept;
use crate::tree::schema::{Schema, SchemaExtent, index_u32};
use crate::tree::young::Packed;
use crate::wire::{Reader, put_varint};

/// Changed nodes from which on a block of revision rows ends early.
pub(crate) const ROWS_CHANGED_MAX: usize = 1 << 20;

/// A cell with its key.
pub(crate) type Cell = (Vec<u8>, Vec<u8>);

/// Cells with their keys.
pub(crate) type Cells = Vec<Cell>;

/// Takes a cell with its key.
pub(crate) type PutCell<'p> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'p;

/// Where the cells of a checkpoint go, tree by tree, in the order of their keys.
#[derive(Debug)]
pub(crate) struct CellSink {
    segment: SegmentWriter,
    /// Schemas stand after all trees, and several trees may bring the same one.
    schemas: BTreeMap<Vec<u8>, Vec<u8>>,
    /// What is gathered to be sorted, never more than a row group.
    gathered: Cells,
}

impl CellSink {
    pub(crate) fn new(segment: SegmentWriter) -> Self {
        Self { segment, schemas: BTreeMap::new(), gathered: Cells::new() }
    }

    /// Writes points, which stand behind all trees, and the rows of their windows.
    pub(crate) fn put_series(
        &mut self,
        series: &series::young::Frozen,
        rolling: &mut series::rollup::Rolling,
    ) -> Result<()> {
        series::checkpoint::write(series, rolling, &mut self.segment)
    }

    /// Completes the segment.
    pub(crate) fn finish(mut self) -> Result<SegmentInfo> {
        for (key, cell) in &self.schemas {
            self.segment.push(key, cell)?;
        }
        self.segment.finish()
    }

    /// Writes what was gathered, in order.
    fn push_gathered(&mut self) -> Result<()> {
        self.gathered.sort_unstable();
        self.gathered.drain(..).try_for_each(|(key, cell)| self.segment.push(&key, &cell))
    }
}

/// How much of a tree a checkpoint writes: what was committed when it began. Commits go on above.
#[derive(Debug)]
pub(crate) struct Frozen {
    /// The newest revision in it.
    pub(crate) revision: u32,
    high_waters: Vec<u64>,
    orders: u64,
    blobs: u64,
    schema: SchemaExtent,
    kinds: Option<Vec<SpaceKinds>>,
}

impl Frozen {
    /// The facts of the tree, whose shared schema has this number.
    fn meta(&self, schema: u128) -> Meta {
        Meta {
            revisions: u64::from(self.revision),
            schema,
            orders: self.orders,
            blobs: self.blobs,
            high_waters: self.high_waters.clone(),
            kinds: self.kinds.clone(),
        }
    }
}

/// The facts of a tree as of its last checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) revisions: u64,
    /// The schema it shares, by content, and how much that is.
    pub(crate) schema: u128,
    pub(crate) orders: u64,
    pub(crate) blobs: u64,
    pub(crate) high_waters: Vec<u64>,
    /// The kinds of what columns have had, by space; none where that is not known.
    pub(crate) kinds: Option<Vec<SpaceKinds>>,
}

impl Meta {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.schema.to_le_bytes().to_vec();
        for number in [self.revisions, self.orders, self.blobs, self.high_waters.len() as u64] {
            put_varint(&mut out, number);
        }
        self.high_waters.iter().for_each(|&next| put_varint(&mut out, next));
        for space in self.kinds.iter().flatten().map(SpaceKinds::all) {
            put_varint(&mut out, space.len() as u64);
            for kinds in space {
                put_varint(&mut out, kinds.bits().into());
            }
        }
        out
    }

    pub(crate) fn decode(cell: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(cell);
        let schema = reader.take(16)?.try_into().map(u128::from_le_bytes);
        let schema = schema.map_err(|_| reader.corrupt("expected 16 bytes"))?;
        let (revisions, orders, blobs) = (reader.varint()?, reader.varint()?, reader.varint()?);
        let spaces = reader.count()?;
        let high_waters = (0..spaces).map(|_| reader.varint()).collect::<Result<Vec<_>>>()?;
        if revisions > REVISIONS_MAX || high_waters.iter().any(|&next| next > ORDINALS_MAX) {
            return Err(reader.corrupt("more revisions or ordinals than a tree has"));
        }
        // A tree has a space at least, of its root.
        let kinds = if reader.is_at_end() {
            None
        } else {
            Some((0..spaces).map(|_| decode_kinds(&mut reader)).collect::<Result<_>>()?)
        };
        reader.end()?;
        Ok(Self { revisions, schema, orders, blobs, high_waters, kinds })
    }
}

fn decode_kinds(reader: &mut Reader<'_>) -> Result<SpaceKinds> {
    let columns = reader.count()?;
    let mut kinds = || -> Result<ColumnKinds> {
        let found = u16::try_from(reader.varint()?).ok().and_then(ColumnKinds::from_bits);
        found.ok_or_else(|| reader.corrupt("expected a set of kinds of values"))
    };
    (0..columns).map(|_| kinds()).collect()
}

impl Tree {
    /// Whether there is something that no checkpoint has written.
    pub(crate) fn is_dirty(&self) -> bool {
        let is_new = {
            let data = self.data.read();
            data.rows.last() > data.rows.before()
        };
        is_new || self.indexes.is_dirty()
    }

    /// What is committed and not on disk; none if there is nothing. No commit may happen meanwhile.
    pub(crate) fn freeze(&self) -> Option<Frozen> {
        if !self.is_dirty() {
            return None;
        }
        for index in self.indexes.in_use() {
            index.freeze(self);
        }
        let data = self.data.read();
        let schema = data.committed_schema();
        let spaces = spaces_of(&data, schema);
        Some(Frozen {
            revision: short(Revision(data.rows.last())),
            high_waters: data.spaces.iter().take(spaces).map(|space| space.committed).collect(),
            kinds: data.kinds_of_spaces(spaces),
            orders: self.orders.committed(),
            blobs: self.blobs.committed(),
            schema,
        })
    }

    /// Writes what was frozen, while commits go on: of what they add nothing is below the bounds.
    /// The tree's lock is held for a column of a row group at a time. `hash` is the cell of the
    /// newest content hash, if it is kept. Returns the number of the schema that it shares.
    pub(crate) fn write_frozen(
        &self,
        frozen: &Frozen,
        hash: Option<Cell>,
        out: &mut CellSink,
    ) -> Result<u128> {
        let tree = self.id();
        let shared_schema = put_schema(&self.data.read(), tree, frozen.schema, out);
        let meta = frozen.meta(shared_schema);
        out.gathered.push((cell_key::meta(tree), meta.encode()));
        out.push_gathered()?;
        self.put_rows(frozen, out)?;
        let groups = self.frozen_groups(frozen);
        for &id in &groups {
            self.put_group(id, frozen, out)?;
        }
        let (first, orders) = self.orders.young(frozen.orders);
        for (id, block) in (first..).map(OrderId).zip(&orders) {
            let mut cell = Vec::new();
            encode_order_block(block, &mut cell);
            out.segment.push(&cell_key::order(tree, id), &cell)?;
        }
        let mut keys = EntryKeys::default();
        for &id in &groups {
            keys.gather(&self.data.read(), (tree, id), frozen);
        }
        keys.push(&mut out.segment)?;
        let (first, blobs) = self.blobs.young(frozen.blobs);
        for (id, blob) in (first..).map(BlobId).zip(&blobs) {
            out.segment.push(&cell_key::blob(tree, id), blob)?;
        }
        out.gathered.extend(hash);
        out.push_gathered()?;
        for index in self.indexes.in_use() {
            index.put_frozen(self, &mut |key, cell| out.segment.push(key, cell))?;
        }
        Ok(shared_schema)
    }

    /// Becomes, for a tree without revisions, what a load has written of it.
    pub(crate) fn attach_loaded(&self, schema: Arc<Schema>, frozen: &Frozen, shared_schema: u128) {
        let mut data = self.data.write();
        assert_eq!(data.rows.last(), 0, "what is loaded is a first revision");
        let kinds = frozen.kinds.as_deref();
        *data = TreeData::from_disk(schema, u64::from(frozen.revision), &frozen.high_waters, kinds);
        data.disk_schema = Some(frozen.schema);
        data.shared_schema = shared_schema;
        self.orders.begin_at(frozen.orders);
        self.blobs.begin_at(frozen.blobs);
    }

    /// Drops from memory what a checkpoint wrote, now that it can be read from disk.
    pub(crate) fn checkpointed(&self, frozen: &Frozen, shared_schema: u128) -> Result<()> {
        {
            let mut data = self.data.write();
            data.prune(frozen.revision, &frozen.high_waters)?;
            data.disk_schema = Some(frozen.schema);
            data.shared_schema = shared_schema;
        }
        self.orders.prune(frozen.orders);
        self.blobs.prune(frozen.blobs);
        self.indexes.in_use().iter().for_each(|index| index.checkpointed());
        Ok(())
    }

    /// The row groups of spaces that were there when the checkpoint began.
    fn frozen_groups(&self, frozen: &Frozen) -> Vec<GroupId> {
        let data = self.data.read();
        let ids = data.groups().map(|(id, _)| id);
        ids.filter(|id| (id.space.0 as usize) < frozen.high_waters.len()).collect()
    }

    /// Writes the revision rows, a block under the lock at a time.
    fn put_rows(&self, frozen: &Frozen, out: &mut CellSink) -> Result<()> {
        let mut first = self.data.read().rows.before() + 1;
        while first <= u64::from(frozen.revision) {
            let mut cell = Vec::new();
            let last = encode_rows(&self.data.read(), (first, frozen.revision.into()), &mut cell);
            out.segment.push(&cell_key::rows(self.id(), first), &cell)?;
            first = last + 1;
        }
        Ok(())
    }

    /// Writes the young part of a row group, a column under the lock at a time.
    fn put_group(&self, id: GroupId, frozen: &Frozen, out: &mut CellSink) -> Result<()> {
        let columns = self.data.read().schema.space(id.space).columns.len();
        let values = (0..).take(columns).map(ColumnId::Value);
        for column in values.chain([ColumnId::Parent, ColumnId::Key]) {
            let data = self.data.read();
            let Some(group) = data.young_group(id) else { break };
            let (data, tree) = (&*data, self.id());
            GroupWriter { data, tree, id, group, frozen }.put(column, &mut out.gathered);
        }
        out.push_gathered()
    }

    /// Drops from memory what holds segments open: their files may be gone.
    pub(crate) fn release_decoded(&self) -> Result<()> {
        self.data.write().release_decoded()
    }
}

/// The cells of what there is of a tree beside its states, for one whose states are cells already,
/// and the number of its schema.
pub(crate) fn loaded_cells(data: &TreeData, tree: TreeId, counts: (u64, u64)) -> LoadedCells {
    let (orders, blobs) = counts;
    let schema = data.committed_schema();
    let mut shared = vec![u8::from(data.schema.path(PathId(0)).always_map)];
    encode_paths(data, 1..schema.paths, &mut shared);
    encode_shapes(data, 0..schema.shapes, &mut shared);
    let number = cell_key::schema_number(&shared);
    let high_waters: Vec<u64> = data.spaces.iter().map(|space| space.committed).collect();
    let revisions = data.rows.last();
    let kinds = data.kinds_of_spaces(high_waters.len());
    let frozen =
        Frozen { revision: short(Revision(revisions)), high_waters, orders, blobs, schema, kinds };
    let meta = frozen.meta(number);
    let mut rows = Vec::new();
    encode_rows(data, (1, revisions), &mut rows);
    let cells = vec![
        (cell_key::meta(tree), meta.encode()),
        (cell_key::rows(tree, 1), rows),
        (cell_key::schema(number), shared),
    ];
    LoadedCells { cells, frozen, schema: number }
}

/// What [`loaded_cells`] gives.
#[derive(Debug)]
pub(crate) struct LoadedCells {
    pub(crate) cells: Cells,
    pub(crate) frozen: Frozen,
    pub(crate) schema: u128,
}

/// How many spaces a part of the schema has.
fn spaces_of(data: &TreeData, extent: SchemaExtent) -> usize {
    let spaces = data.schema.spaces();
    spaces.partition_point(|space| space.path.0 < extent.paths)
}

/// Writes what the schema has beyond the last checkpoint; the shared part's content hash.
fn put_schema(data: &TreeData, tree: TreeId, extent: SchemaExtent, out: &mut CellSink) -> u128 {
    let Some(before) = data.disk_schema else {
        let mut cell = vec![u8::from(data.schema.path(PathId(0)).always_map)];
        encode_paths(data, 1..extent.paths, &mut cell);
        encode_shapes(data, 0..extent.shapes, &mut cell);
        let content = cell_key::schema_number(&cell);
        out.schemas.insert(cell_key::schema(content), cell);
        return content;
    };
    if before != extent {
        let mut cell = Vec::new();
        encode_paths(data, before.paths..extent.paths, &mut cell);
        encode_shapes(data, before.shapes..extent.shapes, &mut cell);
        let key = cell_key::schema_piece(tree, before.paths, before.shapes);
        out.gathered.push((key, cell));
    }
    data.shared_schema
}

/// Encodes a block of young revision rows from `first` on; the last row in it.
fn encode_rows(data: &TreeData, (first, end): (u64, u64), cell: &mut Vec<u8>) -> u64 {
    let rows = &data.rows;
    let most = end.min(first + REVISION_ROWS_MAX as u64 - 1);
    let mut last = first;
    let mut block = RevisionRows::default();
    let mut numbers: FxHashMap<Box<str>, u32> = FxHashMap::default();
    let mut intern = |text: Option<Box<str>>, strings: &mut Vec<Vec<u8>>| {
        let Some(text) = text else { return 0 };
        *numbers.entry(text).or_insert_with_key(|text| {
            strings.push(text.as_bytes().to_vec());
            index_u32(strings.len())
        })
    };
    for revision in (first..=most).map(Revision) {
        if block.changed.len() > ROWS_CHANGED_MAX {
            break;
        }
        last = revision.0;
        let row = (rows.get(revision), rows.changed(revision), rows.moves(revision));
        let (Some(row), Some(changed), Some(moves)) = row else { continue };
        block.timestamps.push(row.timestamp);
        block.committed.push(row.committed);
        block.sequences.push(row.sequence);
        block.authors.push(intern(row.author, &mut block.strings));
        block.messages.push(intern(row.message, &mut block.strings));
        block.changed.extend_from_slice(changed);
        block.changed_ends.push(index_u32(block.changed.len()));
        block.moves.extend_from_slice(moves);
        block.moves_ends.push(index_u32(block.moves.len()));
    }
    block.encode(cell);
    last
}

/// The cells of the keys of entries, which lie in one piece of memory until they are in order:
/// there may be millions.
#[derive(Debug, Default)]
struct EntryKeys {
    keys: Vec<u8>,
    /// Where the key of each ends, and its ordinal.
    entries: Vec<(usize, u64)>,
}

impl EntryKeys {
    /// Adds the entries that were born in a row group.
    fn gather(&mut self, data: &TreeData, (tree, id): (TreeId, GroupId), frozen: &Frozen) {
        let Some(group) = data.young_group(id) else { return };
        let path = data.schema.space(id.space).path;
        let writer = GroupWriter { data, tree, id, group, frozen };
        let Some((first, keys)) = writer.births(ColumnId::Key) else { return };
        let start = u64::from(id.group) * ROW_GROUP_SLOTS;
        for (slot, &key) in (first..).zip(keys.as_ref()) {
            let map = group.young_column(ColumnId::Parent).and_then(|parents| parents.birth(slot));
            if let (Datum::Text { bytes, .. }, Some(map)) =
                (group.unpack(key), map.and_then(Packed::integer))
            {
                self.keys.extend(cell_key::entry(tree, path, map.cast_unsigned(), bytes));
                self.entries.push((self.keys.len(), start + u64::from(slot)));
            }
        }
    }

    /// Writes them in order.
    fn push(self, segment: &mut SegmentWriter) -> Result<()> {
        let key = |at: usize| {
            let start = at.checked_sub(1).map_or(0, |before| self.entries[before].0);
            &self.keys[start..self.entries[at].0]
        };
        for at in lexical::in_order((0..self.entries.len()).collect(), key) {
            segment.push(key(at), &self.entries[at].1.to_le_bytes())?;
        }
        Ok(())
    }
}

/// Writes the young part of one row group.
struct GroupWriter<'a> {
    data: &'a TreeData,
    tree: TreeId,
    id: GroupId,
    group: &'a RowGroup,
    frozen: &'a Frozen,
}

impl GroupWriter<'_> {
    fn put(&self, column: ColumnId, cells: &mut Cells) {
        let space = self.data.schema.space(self.id.space);
        match column {
            ColumnId::Value(index) => {
                let Some(&path) = space.columns.get(index as usize) else { return };
                self.put_births(column, (path, GroupCell::Base), cells);
                self.put_changes(column, path, cells);
            }
            ColumnId::Parent => {
                self.put_births(column, (space.path, GroupCell::Parent), cells);
                self.put_born(space.path, cells);
            }
            ColumnId::Key => self.put_births(column, (space.path, GroupCell::Key), cells),
        }
    }

    /// The committed births of a column that are not on disk: the first slot and the states.
    fn births(&self, column: ColumnId) -> Option<(u16, Cow<'_, [Packed]>)> {
        let (first, births) = self.group.young_column(column)?.births();
        let space = &self.data.spaces[self.id.space.0 as usize];
        let start = u64::from(self.id.group) * ROW_GROUP_SLOTS + u64::from(first);
        let index = |ordinal: u64| {
            let index = usize::try_from(ordinal.saturating_sub(start)).unwrap_or(usize::MAX);
            index.min(births.len())
        };
        let committed = self.frozen.high_waters.get(self.id.space.0 as usize);
        let (from, to) = (index(space.on_disk), index(committed.copied().unwrap_or(0)));
        let births = match births {
            Cow::Borrowed(births) => births.get(from..to)?.into(),
            Cow::Owned(births) => births.get(from..to)?.to_vec().into(),
        };
        (from < to).then_some((first + u16::try_from(from).ok()?, births))
    }

    fn put_births(&self, column: ColumnId, (path, kind): (PathId, GroupCell), cells: &mut Cells) {
        let Some((first, births)) = self.births(column) else { return };
        if births.iter().all(|birth| birth.is_absent()) {
            return;
        }
        let states: Vec<Datum<'_>> = births.iter().map(|&birth| self.group.unpack(birth)).collect();
        self.put_states((path, kind), (first, &states), cells);
    }

    fn put_states(
        &self,
        (path, kind): (PathId, GroupCell),
        (first, states): (u16, &[Datum<'_>]),
        cells: &mut Cells,
    ) {
        for (first, cell) in first_states::encode_cells(kind, first.into(), states) {
            let key = cell_key::group_cell(self.tree, self.id, path, (kind, first));
            cells.push((key, cell));
        }
    }

    fn put_born(&self, path: PathId, cells: &mut Cells) {
        // Every element and entry has a parent from its birth on; one that was removed by the
        // commit that made it never had a value. The root has a value only.
        let births = self.births(ColumnId::Parent).or_else(|| self.births(ColumnId::Value(0)));
        let Some((first, births)) = births else { return };
        let states: Vec<Datum<'_>> =
            births.iter().map(|birth| Datum::Int(i64::from(birth.revision))).collect();
        self.put_states((path, GroupCell::Born), (first, &states), cells);
    }

    /// Writes the committed changes of a column in pieces, each of whole revisions.
    fn put_changes(&self, column: ColumnId, path: PathId, cells: &mut Cells) {
        let Some(young) = self.group.young_column(column) else { return };
        let before = u32::try_from(self.data.rows.before()).unwrap_or(u32::MAX);
        let mut changes: Vec<(u16, u32, Datum<'_>)> = Vec::new();
        for (slot, run) in young.changed() {
            let new = before + 1..=self.frozen.revision;
            let committed = run.iter().filter(|change| new.contains(&change.revision));
            changes.extend(
                committed.map(|&change| (slot, change.revision, self.group.unpack(change))),
            );
        }
        changes.sort_by_key(|&(slot, revision, _)| (revision, slot));
        let mut rest = changes.as_mut_slice();
        while let Some(&(_, first, _)) = rest.first() {
            let most = rest.len().min(RUN_PIECE_CHANGES_MAX);
            let end = match rest.get(most) {
                None => most,
                Some(&(_, next, _)) => rest[..most].partition_point(|&(_, r, _)| r < next),
            };
            assert!(end > 0, "a revision changes a slot once");
            let (piece, later) = rest.split_at_mut(end);
            piece.sort_by_key(|&(slot, revision, _)| (slot, revision));
            let mut cell = Vec::new();
            encode_run(piece, &mut cell);
            let kind = (GroupCell::Run, first);
            cells.push((cell_key::group_cell(self.tree, self.id, path, kind), cell));
            rest = later;
        }
    }
}

/// A schema that trees share, with its number on disk.
pub(crate) type SharedSchema = (u128, Arc<Schema>);

/// Opens a tree as of the last checkpoint; none if there was none of it then. The schema that it
/// shares is one that is `known`, or read.
pub(crate) fn open(
    tree: TreeId,
    store: &Arc<Store>,
    known: impl FnOnce(u128) -> Option<Arc<Schema>>,
) -> Result<Option<(Tree, SharedSchema)>> {
    let cells = TreeCells::new(tree, Arc::clone(store));
    let Some(cell) = cells.get(&cell_key::meta(tree))? else { return Ok(None) };
    let meta = Meta::decode(&cell)?;
    let schema = match known(meta.schema) {
        Some(schema) => schema,
        None => read_schema(&cells, meta.schema)?,
    };
    let mut whole = TreeData::new(Arc::clone(&schema));
    for found in store.live().scan(&cell_key::schema_pieces(tree))? {
        let cell = found?.1.load()?;
        let mut reader = Reader::new(&cell);
        decode_paths(&mut whole, &mut reader)?;
        decode_shapes(&mut whole, &mut reader)?;
        reader.end()?;
    }
    let kinds = meta.kinds.as_deref();
    let mut data = TreeData::from_disk(whole.schema, meta.revisions, &meta.high_waters, kinds);
    data.disk_schema = Some(data.schema.extent());
    data.shared_schema = meta.schema;
    if let Some(cell) = cells.get(&cell_key::kept(tree))? {
        data.kept = Kept::decode(&cell)?;
        data.kept_on_disk = data.kept.clone();
    }
    let tree = Tree::new(cells, data, meta.orders, meta.blobs);
    Ok(Some((tree, (meta.schema, schema))))
}

/// The schema that trees share on disk, by its content.
fn read_schema(cells: &TreeCells, content: u128) -> Result<Arc<Schema>> {
    let cell = cells.get(&cell_key::schema(content))?.ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, format!("the schema {content:032x} is missing"))
    })?;
    decode_schema(&cell)
}

/// The schema that a cell holds.
pub(crate) fn decode_schema(cell: &[u8]) -> Result<Arc<Schema>> {
    let mut reader = Reader::new(cell);
    let mut shared = TreeData::new(Arc::new(Schema::new(reader.byte()? != 0)));
    decode_paths(&mut shared, &mut reader)?;
    decode_shapes(&mut shared, &mut reader)?;
    reader.end()?;
    Ok(shared.schema)
}
