//! Decodes the cells of all trees by the classes of their keys and holds each against its tree,
//! for `check`.
//!
//! Invariant: whatever a cell's bytes are, they give an error and not a panic.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::encoding::{Column, RevisionRowsBlock, RunPiece, decode_order_block};
use crate::error::{Error, ErrorKind, Result};
use crate::index::cell::{self, Entries, Facts};
use crate::json::escape;
use crate::limits::ROW_GROUP_SLOTS;
use crate::node::PathId;
use crate::order::OrderBlock;
use crate::revision::Micros;
use crate::series;
use crate::state::{BlobId, ColumnKinds, Datum, OrderId, Sequence, SpaceKinds};
use crate::tree::Tree;
use crate::tree::cell_key::{self, CellKey, GroupCell, PointsKey, RollupColumn, TreeId};
use crate::tree::group::GroupId;
use crate::tree::hashes;
use crate::tree::kept::Kept;
use crate::tree::persist::{Meta, decode_schema};
use crate::tree::schema::{Schema, SpaceId};

/// Gives the tree with a number.
type OpenTree<'a> = dyn Fn(TreeId) -> Result<Arc<Tree>> + 'a;

/// Verifies cells, one by one, in any order.
pub(crate) struct Verifier<'a> {
    open: &'a OpenTree<'a>,
    /// Of trees that do not open there is nothing to hold a cell against.
    trees: FxHashMap<TreeId, Option<Rc<Bounds>>>,
    cells: u64,
}

/// What no cell of a tree can be beyond.
struct Bounds {
    schema: Arc<Schema>,
    revisions: u64,
    /// By space.
    high_waters: Vec<u64>,
    orders: u64,
    blobs: u64,
    /// By space; none if they are not known.
    kinds: Option<Vec<SpaceKinds>>,
}

/// A piece of a row group: its slots and the states in them.
struct Place {
    id: GroupId,
    path: PathId,
    kind: GroupCell,
    number: u32,
}

impl<'a> Verifier<'a> {
    pub(crate) fn new(open: &'a OpenTree<'a>) -> Self {
        Self { open, trees: FxHashMap::default(), cells: 0 }
    }

    /// How many cells were verified.
    pub(crate) fn cells(&self) -> u64 {
        self.cells
    }

    /// Refuses a cell that does not decode, or that names what its tree does not have.
    pub(crate) fn verify(&mut self, key: &[u8], cell: Bytes) -> Result<()> {
        self.cells = self.cells.saturating_add(1);
        let Some((tree, parsed)) = cell_key::parse(key) else {
            return Err(wrong(format!("no cell has the key {key:02x?}")));
        };
        let place = Shown(tree, parsed);
        if let CellKey::Schema(content) = parsed {
            return check_schema(content, &cell).map_err(|error| error.in_context(place));
        }
        if tree.is_series() {
            return series::verify::cell(parsed, cell).map_err(|error| error.in_context(place));
        }
        let bounds = self.bounds(tree).map_err(|error| error.in_context(place))?;
        let Some(bounds) = bounds else { return Ok(()) };
        bounds.check(parsed, cell).map_err(|error| error.in_context(place))
    }

    /// What bounds a tree; an error the first time if it does not open, then nothing.
    fn bounds(&mut self, tree: TreeId) -> Result<Option<Rc<Bounds>>> {
        if let Some(known) = self.trees.get(&tree) {
            return Ok(known.clone());
        }
        let opened = (self.open)(tree).map(|tree| Rc::new(Bounds::of(&tree)));
        self.trees.insert(tree, opened.as_ref().ok().cloned());
        opened.map(Some)
    }
}

impl Bounds {
    fn of(tree: &Tree) -> Self {
        let data = tree.data.read();
        Self {
            schema: Arc::clone(&data.schema),
            revisions: data.rows.last(),
            high_waters: data.spaces.iter().map(|space| space.next).collect(),
            orders: tree.orders.committed(),
            blobs: tree.blobs.committed(),
            kinds: data.kinds_of_spaces(data.spaces.len()),
        }
    }

    fn check(&self, key: CellKey, cell: Bytes) -> Result<()> {
        match key {
            CellKey::Meta => below("revisions", Meta::decode(&cell)?.revisions, self.revisions),
            // Opening the tree read its pieces one after the other; here is left where they begin.
            CellKey::SchemaPiece { paths, shapes } => {
                let extent = self.schema.extent();
                below("paths", paths.into(), extent.paths.into())?;
                below("shapes", shapes.into(), extent.shapes.into())
            }
            CellKey::Rows { first } => self.check_rows(first, cell),
            CellKey::Group { id, path, kind, number } => {
                let place = Place { id, path, kind, number };
                self.check_path(&place)?;
                match kind {
                    GroupCell::Run => self.check_run(&place, cell),
                    _ => self.check_column(&place, cell),
                }
            }
            CellKey::Order(id) => self.check_order(id, &cell),
            CellKey::Entry { space } => self.check_entry(space, &cell),
            CellKey::Blob(BlobId(id)) => {
                within("value", id, self.blobs)?;
                check_text(&cell)
            }
            // The check of its document makes the hash again.
            CellKey::Hash { revision } => {
                hashes::decode(&cell)?;
                within("revision", revision, self.revisions.saturating_add(1))
            }
            CellKey::Kept => {
                below("revisions", Kept::decode(&cell)?.first().into(), self.revisions)
            }
            CellKey::Index { .. } => {
                let revision = Facts::decode(&cell)?.watermark;
                below("revisions", revision.into(), self.revisions)
            }
            CellKey::IndexSlab { .. } => self.check_index(&cell),
            CellKey::Points(_)
            | CellKey::Deletes { .. }
            | CellKey::Commits { .. }
            | CellKey::Rollup(..)
            | CellKey::Rolled { .. } => series::verify::cell(key, cell),
            CellKey::Schema(content) => check_schema(content, &cell),
        }
    }

    /// The check of its document holds the entries against the records.
    fn check_index(&self, cell: &[u8]) -> Result<()> {
        let entries = Entries::decode(cell)?;
        entries.iter().try_for_each(|(entry, _)| {
            below("revisions", cell::revision(entry).into(), self.revisions)
        })
    }

    fn check_rows(&self, first: u64, cell: Bytes) -> Result<()> {
        let block = RevisionRowsBlock::parse(cell)?;
        block.check()?;
        let last = first.saturating_add(block.len() as u64).saturating_sub(1);
        below("revisions", last, self.revisions)
    }

    /// The path is a column of the space, or of elements and entries the space's own.
    fn check_path(&self, place: &Place) -> Result<()> {
        within("path", place.path.0.into(), self.schema.extent().paths.into())?;
        let info = self.schema.path(place.path);
        let is_own = info.column == 0 || matches!(place.kind, GroupCell::Base | GroupCell::Run);
        if info.space == place.id.space && is_own {
            return Ok(());
        }
        Err(wrong(format!("path {} is no such column of the row group", place.path.0)))
    }

    /// The slots from `first` on are within the row group, and were given out.
    fn check_slots(&self, id: GroupId, first: u64, len: u64) -> Result<()> {
        let end = first.saturating_add(len);
        below("slots", end, ROW_GROUP_SLOTS)?;
        let start = u64::from(id.group).saturating_mul(ROW_GROUP_SLOTS);
        below("ordinals", start.saturating_add(end), self.high_water(id.space))
    }

    fn check_column(&self, place: &Place, cell: Bytes) -> Result<()> {
        let column = Column::parse(cell)?;
        column.check()?;
        self.check_slots(place.id, place.number.into(), column.len() as u64)?;
        let owner = self.schema.path(self.schema.path(place.path).parent).space;
        for (slot, state) in (u64::from(place.number)..).zip(column.iter()) {
            let state = state?;
            let is_right = match (place.kind, state) {
                (GroupCell::Base | GroupCell::Run, state) => {
                    self.check_kind(place.path, state)?;
                    self.has_state(place.path, state)
                }
                (_, Datum::Absent) => true,
                (GroupCell::Parent, Datum::Int(parent)) => {
                    parent.cast_unsigned() < self.high_water(owner)
                }
                (GroupCell::Born, Datum::Int(born)) => born.cast_unsigned() <= self.revisions,
                (GroupCell::Key, Datum::Text { .. }) => self.has_state(place.path, state),
                _ => false,
            };
            if !is_right {
                return Err(wrong(format!("slot {slot} has the state {state:?}")));
            }
        }
        Ok(())
    }

    fn check_run(&self, place: &Place, cell: Bytes) -> Result<()> {
        let piece = RunPiece::parse(cell)?;
        piece.check()?;
        if piece.first_revision() != place.number {
            let message = format!("the first change is of revision {}", piece.first_revision());
            return Err(wrong(message));
        }
        below("revisions", piece.last_revision().into(), self.revisions)?;
        for index in 0..piece.len() {
            let (slot, revision, state) = piece.entry(index)?;
            self.check_slots(place.id, slot.into(), 1)?;
            self.check_kind(place.path, state)?;
            if !self.has_state(place.path, state) {
                return Err(wrong(format!("revision {revision} set the state {state:?}")));
            }
        }
        Ok(())
    }

    /// Blocks come after those they are made of, so that no block is below itself.
    fn check_order(&self, id: OrderId, cell: &[u8]) -> Result<()> {
        within("order block", id.0, self.orders)?;
        match decode_order_block(cell)? {
            OrderBlock::Leaf(_) => Ok(()),
            OrderBlock::Inner(children) => {
                children.iter().try_for_each(|&(child, _)| within("order block", child.0, id.0))
            }
        }
    }

    fn check_entry(&self, space: PathId, cell: &[u8]) -> Result<()> {
        within("path", space.0.into(), self.schema.extent().paths.into())?;
        let ordinal = cell.try_into().map(u64::from_le_bytes);
        let ordinal = ordinal.map_err(|_| wrong(format!("{} bytes instead of 8", cell.len())))?;
        within("entry", ordinal, self.high_water(self.schema.path(space).space))
    }

    fn high_water(&self, space: SpaceId) -> u64 {
        self.high_waters.get(space.0 as usize).copied().unwrap_or(0)
    }

    /// Refuses a state of a kind that the column never had, by what the facts of the tree tell:
    /// queries would take it for something else. What was dropped may stand as `null`.
    fn check_kind(&self, path: PathId, state: Datum<'_>) -> Result<()> {
        let Some(spaces) = &self.kinds else { return Ok(()) };
        let info = self.schema.path(path);
        let known = spaces.get(info.space.0 as usize).map(|space| space.get(info.column));
        let known = known.unwrap_or_default().or(ColumnKinds::NULL);
        if ColumnKinds::of(&state).is_within(known) {
            return Ok(());
        }
        Err(wrong(format!("the state {state:?} is of a kind that path {} never had", path.0)))
    }

    /// Whether a node of a path can have a state: what it names is there.
    fn has_state(&self, path: PathId, state: Datum<'_>) -> bool {
        let info = self.schema.path(path);
        match state {
            Datum::Object(shape) => {
                shape.0 < self.schema.extent().shapes
                    && self.schema.shape(shape).iter().all(|field| {
                        let child = self.schema.path(field.path);
                        child.parent == path
                    })
            }
            Datum::Array(sequence) => self.has_items(info.element, sequence),
            Datum::Map(sequence) => self.has_items(info.entry, sequence),
            Datum::Apart { blob, .. } => blob.0 < self.blobs,
            Datum::Text { bytes, plain } => {
                check_text(bytes).is_ok() && (!plain || escape::is_plain(bytes))
            }
            Datum::Digits(bytes) | Datum::Opaque(bytes) => check_text(bytes).is_ok(),
            _ => true,
        }
    }

    fn has_items(&self, path: Option<PathId>, sequence: Sequence) -> bool {
        match (sequence, path) {
            (Sequence::Blocks(root), _) => root.0 < self.orders,
            (Sequence::Extent(extent), None) => extent.count == 0,
            (Sequence::Extent(extent), Some(path)) => {
                let end = extent.first.saturating_add(extent.count.into());
                extent.count == 0 || end <= self.high_water(self.schema.path(path).space)
            }
        }
    }
}

/// A schema is found by a hash of its cell, and decodes.
fn check_schema(content: u128, cell: &[u8]) -> Result<()> {
    let found = cell_key::schema_number(cell);
    if found != content {
        return Err(wrong(format!("its content has the hash {found:032x}")));
    }
    decode_schema(cell).map(drop)
}

fn check_text(bytes: &[u8]) -> Result<()> {
    std::str::from_utf8(bytes).map(drop).map_err(|error| wrong(format!("no UTF-8: {error}")))
}

/// Refuses the number of a thing of which there are `end`.
fn within(what: &str, number: u64, end: u64) -> Result<()> {
    if number < end {
        return Ok(());
    }
    Err(wrong(format!("{what} {number} of {end} is not there")))
}

/// Refuses more than there are.
fn below(what: &str, found: u64, most: u64) -> Result<()> {
    if found <= most {
        return Ok(());
    }
    Err(wrong(format!("expected at most {most} {what}, found {found}")))
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

/// A cell as findings name it.
#[derive(Clone, Copy)]
struct Shown(TreeId, CellKey);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let CellKey::Schema(content) = self.1 {
            return write!(f, "schema {content:032x}");
        }
        match self.0.0.checked_sub(TreeId::SERIES.0) {
            None => write!(f, "tree {}, ", self.0.0)?,
            Some(0) => f.write_str("the catalogue of the series, ")?,
            Some(number) => write!(f, "series number {number}, ")?,
        }
        match self.1 {
            CellKey::Meta => f.write_str("its facts"),
            CellKey::SchemaPiece { paths, shapes } => {
                write!(f, "paths from {paths} and shapes from {shapes} on")
            }
            CellKey::Rows { first } => write!(f, "revision rows from {first} on"),
            CellKey::Group { id, path, kind, number } => {
                let (space, group, path) = (id.space.0, id.group, path.0);
                write!(f, "space {space}, row group {group}, path {path}, {kind:?} {number}")
            }
            CellKey::Order(id) => write!(f, "order block {}", id.0),
            CellKey::Entry { space } => write!(f, "an entry of path {}", space.0),
            CellKey::Blob(id) => write!(f, "value {}", id.0),
            CellKey::Hash { revision } => write!(f, "the hash of revision {revision}"),
            CellKey::Kept => write!(f, "where the history begins"),
            CellKey::Index { index } => write!(f, "the facts of index {index}"),
            CellKey::IndexSlab { index, slab } => {
                write!(f, "entries of index {index} from revision {slab} on")
            }
            CellKey::Points(PointsKey { first, .. }) => {
                write!(f, "points from {} on", Micros(first))
            }
            CellKey::Deletes { sequence } => write!(f, "what commit {sequence} deleted"),
            CellKey::Commits { first } => write!(f, "the times of commits from {first} on"),
            CellKey::Rollup(place, PointsKey { first, .. }) => {
                let RollupColumn { rollup, column, .. } = place;
                write!(f, "rollup {rollup}, column {column} from {} on", Micros(first))
            }
            CellKey::Rolled { rollup } => write!(f, "how far rollup {rollup} reaches"),
            CellKey::Schema(content) => write!(f, "schema {content:032x}"),
        }
    }
}

#[cfg(test)]
mod tests;
