//! A tree into cells at a checkpoint, and back when it is opened.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::encoding::{RevisionRows, encode_column, encode_order_block, encode_run};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{
    ORDINALS_MAX, REVISION_ROWS_MAX, REVISIONS_MAX, ROW_GROUP_SLOTS, RUN_PIECE_CHANGES_MAX,
};
use crate::node::PathId;
use crate::revision::Revision;
use crate::state::{BlobId, Datum, OrderId};
use crate::store::Store;
use crate::tree::Tree;
use crate::tree::cell_key::{self, GroupCell, TreeId};
use crate::tree::data::TreeData;
use crate::tree::delta::{decode_paths, decode_shapes, encode_paths, encode_shapes};
use crate::tree::disk::TreeCells;
use crate::tree::group::{ColumnId, GroupId, RowGroup};
use crate::tree::schema::{Schema, SchemaExtent, SpaceId, index_u32};
use crate::tree::young::Packed;
use crate::wire::{Reader, put_varint};

/// Changed nodes from which on a block of revision rows ends early.
pub(crate) const ROWS_CHANGED_MAX: usize = 1 << 20;

/// Cells with their keys.
pub(crate) type Cells = Vec<(Vec<u8>, Vec<u8>)>;

/// What a checkpoint wrote of one tree.
#[derive(Debug)]
pub(crate) struct Written {
    /// The newest revision in it.
    pub(crate) revision: u32,
    high_waters: Vec<u64>,
    orders: u64,
    blobs: u64,
    schema: SchemaExtent,
    shared_schema: u128,
}

/// The facts of a tree as of its last checkpoint.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) revisions: u64,
    /// The schema it shares, by content, and how much that is.
    pub(crate) schema: u128,
    pub(crate) orders: u64,
    pub(crate) blobs: u64,
    pub(crate) high_waters: Vec<u64>,
}

impl Meta {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.schema.to_le_bytes().to_vec();
        for number in [self.revisions, self.orders, self.blobs, self.high_waters.len() as u64] {
            put_varint(&mut out, number);
        }
        self.high_waters.iter().for_each(|&next| put_varint(&mut out, next));
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
        reader.end()?;
        Ok(Self { revisions, schema, orders, blobs, high_waters })
    }
}

impl Tree {
    /// Whether there are commits that no checkpoint has written.
    pub(crate) fn is_dirty(&self) -> bool {
        let data = self.data.read();
        data.rows.last() > data.rows.before()
    }

    /// Appends the cells of all commits since the last checkpoint. No commit may happen meanwhile.
    pub(crate) fn checkpoint(&self, cells: &mut Cells) -> Written {
        let data = self.data.read();
        let tree = self.id();
        let revision = index_u32(usize::try_from(data.rows.last()).unwrap_or(usize::MAX));
        let schema = data.committed_schema();
        let shared = put_schema(&data, tree, schema, cells);
        let (first_order, orders) = self.orders.young();
        for (id, block) in (first_order..).zip(&orders) {
            let mut cell = Vec::new();
            encode_order_block(block, &mut cell);
            cells.push((cell_key::order(tree, OrderId(id)), cell));
        }
        let (first_blob, blobs) = self.blobs.young();
        for (id, blob) in (first_blob..).zip(&blobs) {
            cells.push((cell_key::blob(tree, BlobId(id)), blob.to_vec()));
        }
        put_rows(&data, tree, cells);
        for (id, group) in data.groups() {
            GroupWriter { data: &data, tree, id, group, revision }.put(cells);
        }
        put_keys(&data, tree, cells);
        let spaces = data.spaces.iter().take(spaces_of(&data, schema));
        let high_waters: Vec<u64> = spaces.map(|space| space.committed).collect();
        let meta = Meta {
            revisions: u64::from(revision),
            schema: shared,
            orders: first_order + orders.len() as u64,
            blobs: first_blob + blobs.len() as u64,
            high_waters,
        };
        cells.push((cell_key::meta(tree), meta.encode()));
        let Meta { orders, blobs, high_waters, .. } = meta;
        Written { revision, high_waters, orders, blobs, schema, shared_schema: shared }
    }

    /// Drops from memory what a checkpoint wrote, now that it can be read from disk.
    pub(crate) fn checkpointed(&self, written: &Written) -> Result<()> {
        {
            let mut data = self.data.write();
            data.prune(written.revision, &written.high_waters)?;
            data.disk_schema = Some(written.schema);
            data.shared_schema = written.shared_schema;
        }
        self.orders.prune(written.orders);
        self.blobs.prune(written.blobs);
        Ok(())
    }

    /// Drops from memory what was read from disk: the segments it holds open may be gone.
    pub(crate) fn release_decoded(&self) -> Result<()> {
        self.data.write().release_decoded()
    }
}

/// How many spaces a part of the schema has.
fn spaces_of(data: &TreeData, extent: SchemaExtent) -> usize {
    let spaces = data.schema.spaces();
    spaces.partition_point(|space| space.path.0 < extent.paths)
}

/// Writes what the schema has beyond the last checkpoint; the shared part's content hash.
fn put_schema(data: &TreeData, tree: TreeId, extent: SchemaExtent, cells: &mut Cells) -> u128 {
    let Some(before) = data.disk_schema else {
        let mut cell = vec![u8::from(data.schema.path(PathId(0)).always_map)];
        encode_paths(data, 1..extent.paths, &mut cell);
        encode_shapes(data, 0..extent.shapes, &mut cell);
        let content = cell_key::schema_number(&cell);
        cells.push((cell_key::schema(content), cell));
        return content;
    };
    if before != extent {
        let mut cell = Vec::new();
        encode_paths(data, before.paths..extent.paths, &mut cell);
        encode_shapes(data, before.shapes..extent.shapes, &mut cell);
        cells.push((cell_key::schema_piece(tree, before.paths, before.shapes), cell));
    }
    data.shared_schema
}

fn put_rows(data: &TreeData, tree: TreeId, cells: &mut Cells) {
    let rows = &data.rows;
    let mut first = rows.before() + 1;
    while first <= rows.last() {
        let most = rows.last().min(first + REVISION_ROWS_MAX as u64 - 1);
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
        let mut cell = Vec::new();
        block.encode(&mut cell);
        cells.push((cell_key::rows(tree, first), cell));
        first = last + 1;
    }
}

fn put_keys(data: &TreeData, tree: TreeId, cells: &mut Cells) {
    for (index, space) in (0..).zip(&data.spaces) {
        let Some(path) = data.schema.spaces().get(index as usize).map(|space| space.path) else {
            continue;
        };
        for (key, ordinal) in data.young_keys(SpaceId(index)) {
            let Some((map, name)) = key.split_first_chunk::<8>() else { continue };
            if ordinal < space.committed {
                let key = cell_key::entry(tree, path, u64::from_be_bytes(*map), name);
                cells.push((key, ordinal.to_le_bytes().to_vec()));
            }
        }
    }
}

/// Writes the young part of one row group.
struct GroupWriter<'a> {
    data: &'a TreeData,
    tree: TreeId,
    id: GroupId,
    group: &'a RowGroup,
    revision: u32,
}

impl GroupWriter<'_> {
    fn put(&self, cells: &mut Cells) {
        let space = self.data.schema.space(self.id.space);
        for (index, &path) in (0..).zip(&space.columns) {
            let column = ColumnId::Value(index);
            self.put_births(column, (path, GroupCell::Base), cells);
            self.put_changes(column, path, cells);
        }
        self.put_births(ColumnId::Parent, (space.path, GroupCell::Parent), cells);
        self.put_births(ColumnId::Key, (space.path, GroupCell::Key), cells);
        self.put_born(space.path, cells);
    }

    /// The committed births of a column that are not on disk: the first slot and the states.
    fn births(&self, column: ColumnId) -> Option<(u16, &[Packed])> {
        let (first, births) = self.group.young_column(column)?.births();
        let space = &self.data.spaces[self.id.space.0 as usize];
        let start = u64::from(self.id.group) * ROW_GROUP_SLOTS + u64::from(first);
        let index = |ordinal: u64| {
            let index = usize::try_from(ordinal.saturating_sub(start)).unwrap_or(usize::MAX);
            index.min(births.len())
        };
        let (from, to) = (index(space.on_disk), index(space.committed));
        let births = births.get(from..to).filter(|births| !births.is_empty())?;
        Some((first + u16::try_from(from).ok()?, births))
    }

    fn put_births(&self, column: ColumnId, (path, kind): (PathId, GroupCell), cells: &mut Cells) {
        let Some((first, births)) = self.births(column) else { return };
        if births.iter().all(|birth| birth.is_absent()) {
            return;
        }
        let states: Vec<Datum<'_>> = births.iter().map(|&birth| self.group.unpack(birth)).collect();
        let mut cell = Vec::new();
        encode_column(&states, &mut cell);
        let key = cell_key::group_cell(self.tree, self.id, path, (kind, u32::from(first)));
        cells.push((key, cell));
    }

    fn put_born(&self, path: PathId, cells: &mut Cells) {
        // Every element and entry has a parent from its birth on; one that was removed by the
        // commit that made it never had a value. The root has a value only.
        let births = self.births(ColumnId::Parent).or_else(|| self.births(ColumnId::Value(0)));
        let Some((first, births)) = births else { return };
        let states: Vec<Datum<'_>> =
            births.iter().map(|birth| Datum::Int(i64::from(birth.revision))).collect();
        let mut cell = Vec::new();
        encode_column(&states, &mut cell);
        let kind = (GroupCell::Born, u32::from(first));
        cells.push((cell_key::group_cell(self.tree, self.id, path, kind), cell));
    }

    /// Writes the committed changes of a column in pieces, each of whole revisions.
    fn put_changes(&self, column: ColumnId, path: PathId, cells: &mut Cells) {
        let Some(young) = self.group.young_column(column) else { return };
        let before = u32::try_from(self.data.rows.before()).unwrap_or(u32::MAX);
        let mut changes: Vec<(u16, u32, Datum<'_>)> = Vec::new();
        for (slot, run) in young.changed() {
            let new = before + 1..=self.revision;
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

/// Opens a tree as of the last checkpoint; none if there was none of it then. Trees with the same
/// shared schema share it in memory through `schemas`.
pub(crate) fn open(
    tree: TreeId,
    store: &Arc<Store>,
    schemas: &mut FxHashMap<u128, Arc<Schema>>,
) -> Result<Option<Tree>> {
    let cells = TreeCells::new(tree, Arc::clone(store));
    let Some(cell) = cells.get(&cell_key::meta(tree))? else { return Ok(None) };
    let meta = Meta::decode(&cell)?;
    let schema = if let Some(schema) = schemas.get(&meta.schema) {
        Arc::clone(schema)
    } else {
        let schema = read_schema(&cells, meta.schema)?;
        schemas.insert(meta.schema, Arc::clone(&schema));
        schema
    };
    let mut whole = TreeData::new(schema);
    for found in store.live().scan(&cell_key::schema_pieces(tree))? {
        let cell = found?.1.load()?;
        let mut reader = Reader::new(&cell);
        decode_paths(&mut whole, &mut reader)?;
        decode_shapes(&mut whole, &mut reader)?;
        reader.end()?;
    }
    let mut data = TreeData::from_disk(whole.schema, meta.revisions, &meta.high_waters);
    data.disk_schema = Some(data.schema.extent());
    data.shared_schema = meta.schema;
    Ok(Some(Tree::new(cells, data, meta.orders, meta.blobs)))
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
