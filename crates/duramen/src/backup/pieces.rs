//! What is left of one tree's cells when it is cut behind a revision.

use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::encoding::{
    Column, RevisionRows, RevisionRowsBlock, RunPiece, encode_column, encode_complete_run,
    encode_run,
};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::ROW_GROUP_SLOTS;
use crate::state::{BlobId, Datum, OrderId, Sequence};
use crate::store::LiveSegments;
use crate::tree::cell_key::{self, CellKey, GroupCell, TreeId};
use crate::tree::group::GroupId;
use crate::tree::kept::Kept;
use crate::tree::merge::append_row;
use crate::tree::persist::Meta;
use crate::tree::schema::Schema;

/// Bytes of the number at the end of the key of a row group's cell.
const NUMBER_BYTES: usize = size_of::<u32>();

/// How much of a tree is kept.
pub(super) struct Extent {
    schema: Arc<Schema>,
    /// The last revision.
    revision: u32,
    /// What the tree's facts are to say; of ordinals, orders and blobs as far as is known.
    meta: Option<Meta>,
    high_waters: Vec<u64>,
    orders: u64,
    blobs: u64,
    /// The row group whose cells come, and how many of its slots were born.
    group: Option<(GroupId, u32)>,
}

impl Extent {
    pub(super) fn new(schema: Arc<Schema>, revision: u32) -> Self {
        let high_waters = vec![0; schema.spaces().len()];
        Self { schema, revision, meta: None, high_waters, orders: 0, blobs: 0, group: None }
    }

    /// The tree's facts, once all of its cells came.
    pub(super) fn encode(&self) -> Vec<u8> {
        let meta = self.meta.as_ref().map(|meta| Meta {
            revisions: self.revision.into(),
            orders: self.orders,
            blobs: self.blobs,
            high_waters: self.high_waters[..meta.high_waters.len()].to_vec(),
            ..meta.clone()
        });
        meta.map(|meta| meta.encode()).unwrap_or_default()
    }

    /// How many slots of a row group were born; known before its cells come.
    fn slots(&mut self, (live, tree): (&LiveSegments, TreeId), id: GroupId) -> Result<u32> {
        if let Some((_, slots)) = self.group.filter(|(group, _)| *group == id) {
            return Ok(slots);
        }
        let path = self.schema.space(id.space).path;
        let mut prefix = cell_key::group_cell(tree, id, path, (GroupCell::Born, 0));
        prefix.truncate(prefix.len() - NUMBER_BYTES);
        let mut slots = 0;
        for found in live.scan(&prefix)? {
            let (key, cell) = found?;
            let column = Column::parse(cell.load()?)?;
            let first = key.last_chunk().map_or(0, |number| u32::from_be_bytes(*number));
            let born = born(&column, self.revision)?;
            if born > 0 {
                slots = first + born;
            }
            if (born as usize) < column.len() {
                break;
            }
        }
        self.group = Some((id, slots));
        if let Some(high_water) = self.high_waters.get_mut(id.space.0 as usize)
            && slots > 0
        {
            *high_water = u64::from(id.group) * ROW_GROUP_SLOTS + u64::from(slots);
        }
        Ok(slots)
    }

    /// Notes that order blocks and values stored apart are kept as far as a state names them.
    fn keep_what_is_named(&mut self, state: Datum<'_>) {
        match state {
            Datum::Array(Sequence::Blocks(order)) | Datum::Map(Sequence::Blocks(order)) => {
                self.orders = self.orders.max(order.0 + 1);
            }
            Datum::Apart { blob, .. } => self.blobs = self.blobs.max(blob.0 + 1),
            _ => {}
        }
    }
}

/// Births up to a revision at the beginning of a column of such: ordinals are handed out in order.
fn born(column: &Column, revision: u32) -> Result<u32> {
    let mut born = 0;
    for state in column.iter() {
        match state? {
            Datum::Int(birth) if birth <= i64::from(revision) => born += 1,
            Datum::Int(_) => break,
            other => {
                let message = format!("a slot was born in {other:?}, which is no revision");
                return Err(Error::new(ErrorKind::Corrupt, message));
            }
        }
    }
    Ok(born)
}

/// What is kept of a cell of the tree.
pub(super) fn kept(
    extent: &mut Extent,
    (live, tree): (&LiveSegments, TreeId),
    key: CellKey,
    load: &dyn Fn() -> Result<Bytes>,
) -> Result<Option<Bytes>> {
    let whole = |is_kept: bool| if is_kept { load().map(Some) } else { Ok(None) };
    match key {
        CellKey::Meta => {
            extent.meta = Some(Meta::decode(&load()?)?);
            Ok(None)
        }
        CellKey::SchemaPiece { .. } | CellKey::Schema(_) => whole(true),
        CellKey::Rows { first } => rows(&load, first, extent.revision.into()),
        CellKey::Group { id, kind: GroupCell::Run, number, .. } => {
            extent.slots((live, tree), id)?;
            if number > extent.revision {
                return Ok(None);
            }
            run(extent, load()?)
        }
        CellKey::Group { id, kind, number, .. } => {
            let slots = extent.slots((live, tree), id)?;
            if number >= slots {
                return Ok(None);
            }
            column(extent, load()?, (kind, (slots - number) as usize))
        }
        CellKey::Hash { revision } => whole(revision <= extent.revision.into()),
        CellKey::Index { .. } | CellKey::IndexSlab { .. } => Ok(None),
        CellKey::Points(_)
        | CellKey::Deletes { .. }
        | CellKey::Commits { .. }
        | CellKey::Rollup(..)
        | CellKey::Rolled { .. } => Err(Error::new(ErrorKind::Corrupt, "a tree has no points")),
        CellKey::Kept => revisions(&load()?, extent.revision),
        CellKey::Order(OrderId(id)) => whole(id < extent.orders),
        CellKey::Blob(BlobId(id)) => whole(id < extent.blobs),
        CellKey::Entry { space } => {
            let cell = load()?;
            let ordinal = cell.first_chunk().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes));
            let space = extent.schema.path(space).space;
            let high_water = extent.high_waters.get(space.0 as usize).copied().unwrap_or(0);
            Ok((ordinal < high_water).then_some(cell))
        }
    }
}

/// Which revisions are kept up to one; refused if that was dropped.
fn revisions(cell: &Bytes, revision: u32) -> Result<Option<Bytes>> {
    if revision == 0 {
        return Ok(None);
    }
    let kept = Kept::decode(cell)?;
    kept.check(revision)?;
    let kept = Kept::new(kept.first().min(revision), kept.pinned().to_vec());
    Ok((!kept.is_all()).then(|| kept.encode().into()))
}

/// The first states of the slots that were born.
fn column(
    extent: &mut Extent,
    cell: Bytes,
    (kind, slots): (GroupCell, usize),
) -> Result<Option<Bytes>> {
    let column = Column::parse(cell.clone())?;
    let states = column.iter().take(slots).collect::<Result<Vec<_>>>()?;
    for state in &states {
        extent.keep_what_is_named(*state);
    }
    if states.len() == column.len() {
        return Ok(Some(cell));
    }
    if kind == GroupCell::Base && states.iter().all(Datum::is_absent) {
        return Ok(None);
    }
    let mut out = Vec::new();
    encode_column(&states, &mut out);
    Ok(Some(out.into()))
}

/// The changes up to the last revision.
fn run(extent: &mut Extent, cell: Bytes) -> Result<Option<Bytes>> {
    let piece = RunPiece::parse(cell.clone())?;
    let mut changes = Vec::with_capacity(piece.len());
    for index in 0..piece.len() {
        let change = piece.entry(index)?;
        if change.1 <= extent.revision {
            extent.keep_what_is_named(change.2);
            changes.push(change);
        }
    }
    if changes.len() == piece.len() {
        return Ok(Some(cell));
    }
    if changes.is_empty() {
        return Ok(None);
    }
    let (mut out, first) = (Vec::new(), piece.first_revision());
    if !piece.is_complete() {
        encode_run(&changes, &mut out);
    } else if changes.iter().any(|change| change.1 == first) {
        encode_complete_run(&changes, first, &mut out);
    } else {
        let message = format!("a run piece has no change of its first revision, {first}");
        return Err(Error::new(ErrorKind::Corrupt, message));
    }
    Ok(Some(out.into()))
}

/// The rows from `first` on up to a revision.
fn rows(load: &dyn Fn() -> Result<Bytes>, first: u64, last: u64) -> Result<Option<Bytes>> {
    if first > last {
        return Ok(None);
    }
    let cell = load()?;
    let block = RevisionRowsBlock::parse(cell.clone())?;
    let kept = usize::try_from(last - first + 1).unwrap_or(usize::MAX);
    if block.len() <= kept {
        return Ok(Some(cell));
    }
    let mut rows = RevisionRows::default();
    let mut strings = FxHashMap::default();
    for row in 0..kept {
        append_row(&mut rows, (&block, row), &mut strings)?;
    }
    let mut out = Vec::new();
    rows.encode(&mut out);
    Ok(Some(out.into()))
}
