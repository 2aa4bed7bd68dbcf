//! What a purge takes out of the cells of a tree: one node and everything in it, at every revision.
//!
//! The node itself reads `null` from then on wherever it had a value. Of what is in it, states,
//! keys and long values go, and rows of revisions name none of it. What stays says nothing of the
//! value: the names of fields, which are paths, and numbers: how many nodes there were, in what,
//! and since when.
//!
//! Invariants:
//! - nobody writes the tree from before this is worked out until it is done, so that all its states
//!   below the node are old ones, and all of them are in segments;
//! - cells keep their keys and their slots: states are replaced, never moved.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::encoding::{
    Column, RevisionRows, RevisionRowsBlock, RunChange, RunPiece, encode_column,
    encode_complete_run, encode_run,
};
use crate::error::Result;
use crate::limits::ROW_GROUP_SLOTS;
use crate::node::{NodeId, PathId};
use crate::state::{BlobId, Datum};
use crate::tree::Tree;
use crate::tree::cell_key::{self, CellKey, GroupCell, TreeId};
use crate::tree::group::GroupId;
use crate::tree::merge::append_row;
use crate::tree::records::VERSION_FIELD;
use crate::tree::schema::{Label, Schema, SpaceId, index_u32};

/// What leaves less of the cells of a tree.
pub(crate) trait Erase: fmt::Debug + Send {
    /// What is left of a cell of the tree; they come in key order.
    fn apply(&mut self, kind: CellKey, cell: Bytes) -> Result<Option<Bytes>>;
}

/// What is erased of trees.
pub(crate) type Erasures = Vec<(TreeId, Box<dyn Erase>)>;

/// Ordinals as ranges that rise.
type Ordinals = Vec<Range<u64>>;

/// What is erased of one tree, and what was found out on the way through its cells.
#[derive(Debug)]
pub(crate) struct Erasure {
    schema: Arc<Schema>,
    top: NodeId,
    /// The fields below it that have its ordinal.
    fields: FxHashSet<PathId>,
    /// The elements and entries in it, by space.
    members: FxHashMap<SpaceId, Ordinals>,
    /// The revisions in which it had a value, newest first.
    spans: Vec<(u32, u32)>,
    /// Revisions before this one are not all known.
    begin: u32,
    /// Values stored apart that something erased named, and those that something kept names.
    dropped: FxHashSet<BlobId>,
    named: FxHashSet<BlobId>,
}

/// What becomes of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    /// A value becomes `null`.
    Null,
    Gone,
}

impl Erasure {
    /// What erasing a node of a tree comes to, of which everything is in segments.
    pub(crate) fn of(tree: &Tree, top: NodeId) -> Result<Self> {
        let schema = Arc::clone(&tree.data.read().schema);
        let mut erasure = Self {
            fields: fields_below(&schema, top.path()),
            schema,
            top,
            members: FxHashMap::default(),
            spans: spans(tree, top)?,
            begin: tree.data.read().kept.first(),
            dropped: FxHashSet::default(),
            named: FxHashSet::default(),
        };
        erasure.find_members(tree)?;
        Ok(erasure)
    }

    /// Finds the elements and entries. A space is numbered after the one its arrays or maps are in.
    fn find_members(&mut self, tree: &Tree) -> Result<()> {
        let schema = Arc::clone(&self.schema);
        for (number, space) in (0..).zip(schema.spaces()).skip(1) {
            let holder = schema.path(space.path).parent;
            if !self.may_be_erased(holder) {
                continue;
            }
            let mut found = Ordinals::new();
            each_parent(tree, SpaceId(number), &mut |ordinal, parent| {
                if self.fate(holder, parent) != Fate::Kept {
                    add(&mut found, ordinal);
                }
                Ok(())
            })?;
            if !found.is_empty() {
                self.members.insert(SpaceId(number), found);
            }
        }
        Ok(())
    }

    /// Whether some node of a path may be erased.
    fn may_be_erased(&self, path: PathId) -> bool {
        path == self.top.path()
            || self.fields.contains(&path)
            || self.members.contains_key(&self.schema.path(path).space)
    }

    fn fate(&self, path: PathId, ordinal: u64) -> Fate {
        if !self.schema.has_path(path) {
            return Fate::Kept;
        }
        if ordinal == self.top.ordinal().0 {
            if path == self.top.path() {
                return Fate::Null;
            }
            if self.fields.contains(&path) {
                return Fate::Gone;
            }
        }
        let members = self.members.get(&self.schema.path(path).space);
        let is_member = members.is_some_and(|members| has(members, ordinal));
        if is_member { Fate::Gone } else { Fate::Kept }
    }

    fn is_gone(&self, node: NodeId) -> bool {
        self.fate(node.path(), node.ordinal().0) == Fate::Gone
    }

    /// Rows name what was changed and moved: nothing of what is gone, which has no place any more.
    fn rows(&self, cell: Bytes) -> Result<Bytes> {
        let block = RevisionRowsBlock::parse(cell.clone())?;
        let (mut rows, mut numbers) = (RevisionRows::default(), FxHashMap::default());
        let mut is_changed = false;
        for row in 0..block.len() {
            append_row(&mut rows, (&block, row), &mut numbers)?;
            let (changed, moves) = (start(&rows.changed_ends), start(&rows.moves_ends));
            let before = (rows.changed.len(), rows.moves.len());
            let mut own = rows.changed.split_off(changed);
            own.retain(|&node| !self.is_gone(node));
            rows.changed.append(&mut own);
            let mut own = rows.moves.split_off(moves);
            own.retain(|moved| !self.is_gone(moved.from) && !self.is_gone(moved.to));
            rows.moves.append(&mut own);
            is_changed |= (rows.changed.len(), rows.moves.len()) != before;
            end(&mut rows.changed_ends, rows.changed.len());
            end(&mut rows.moves_ends, rows.moves.len());
        }
        if !is_changed {
            return Ok(cell);
        }
        let mut left = Vec::new();
        rows.encode(&mut left);
        Ok(left.into())
    }

    fn had_value(&self, revision: u64) -> bool {
        let within =
            |&(first, last): &(u32, u32)| (u64::from(first)..=u64::from(last)).contains(&revision);
        revision < self.begin.into() || self.spans.iter().any(within)
    }

    fn base(
        &mut self,
        (id, path, number): (GroupId, PathId, u32),
        cell: Bytes,
    ) -> Result<Option<Bytes>> {
        let column = Column::parse(cell.clone())?;
        let mut states = Vec::with_capacity(column.len());
        let mut is_changed = false;
        for (ordinal, state) in (ordinal_of(id, number)..).zip(column.iter()) {
            let (old, fate) = (state?, self.fate(path, ordinal));
            is_changed |= fate != Fate::Kept;
            states.push(self.erased(old, fate));
        }
        if !is_changed {
            return Ok(Some(cell));
        }
        if states.iter().all(Datum::is_absent) {
            return Ok(None);
        }
        let mut left = Vec::new();
        encode_column(&states, &mut left);
        Ok(Some(left.into()))
    }

    /// The key of the node itself stays, as the name of a field would.
    fn keys(&self, (id, path, number): (GroupId, PathId, u32), cell: Bytes) -> Result<Bytes> {
        let column = Column::parse(cell.clone())?;
        let mut keys = Vec::with_capacity(column.len());
        let mut is_changed = false;
        for (ordinal, key) in (ordinal_of(id, number)..).zip(column.iter()) {
            let is_gone = self.fate(path, ordinal) == Fate::Gone;
            is_changed |= is_gone;
            let key = key?;
            keys.push(if is_gone { Datum::Absent } else { key });
        }
        if !is_changed {
            return Ok(cell);
        }
        let mut left = Vec::new();
        encode_column(&keys, &mut left);
        Ok(left.into())
    }

    fn run(&mut self, (id, path): (GroupId, PathId), cell: Bytes) -> Result<Bytes> {
        let piece = RunPiece::parse(cell.clone())?;
        let mut changes: Vec<RunChange<'_>> = Vec::with_capacity(piece.len());
        let mut is_changed = false;
        for index in 0..piece.len() {
            let (slot, revision, state) = piece.entry(index)?;
            let fate = self.fate(path, ordinal_of(id, slot.into()));
            is_changed |= fate != Fate::Kept;
            changes.push((slot, revision, self.erased(state, fate)));
        }
        if !is_changed {
            return Ok(cell);
        }
        let mut left = Vec::new();
        if piece.is_complete() {
            encode_complete_run(&changes, piece.first_revision(), &mut left);
        } else {
            encode_run(&changes, &mut left);
        }
        Ok(left.into())
    }

    /// What becomes of a state; a value stored apart that it names is noted.
    fn erased<'d>(&mut self, state: Datum<'d>, fate: Fate) -> Datum<'d> {
        if let Datum::Apart { blob, .. } = state {
            let noted = if fate == Fate::Kept { &mut self.named } else { &mut self.dropped };
            noted.insert(blob);
        }
        match fate {
            Fate::Kept => state,
            Fate::Null if !state.is_absent() => Datum::Null,
            Fate::Null | Fate::Gone => Datum::Absent,
        }
    }
}

impl Erase for Erasure {
    fn apply(&mut self, kind: CellKey, cell: Bytes) -> Result<Option<Bytes>> {
        Ok(match kind {
            CellKey::Group { id, path, kind, number } => match kind {
                GroupCell::Base => self.base((id, path, number), cell)?,
                GroupCell::Key => Some(self.keys((id, path, number), cell)?),
                GroupCell::Run => Some(self.run((id, path), cell)?),
                GroupCell::Parent | GroupCell::Born => Some(cell),
            },
            CellKey::Rows { .. } => Some(self.rows(cell)?),
            CellKey::Entry { space } => {
                let ordinal = cell.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                let is_kept = ordinal.is_none_or(|ordinal| self.fate(space, ordinal) != Fate::Gone);
                is_kept.then_some(cell)
            }
            CellKey::Blob(id) => {
                let is_kept = !self.dropped.contains(&id) || self.named.contains(&id);
                is_kept.then_some(cell)
            }
            // A hash of a text that is known but for the value would tell a short one.
            CellKey::Hash { revision } => (!self.had_value(revision)).then_some(cell),
            // They are made again of what is left.
            CellKey::Index { .. } | CellKey::IndexSlab { .. } => None,
            _ => Some(cell),
        })
    }
}

/// Where the last row begins among what all of them name.
fn start(ends: &[u32]) -> usize {
    ends.iter().rev().nth(1).map_or(0, |&end| end as usize)
}

/// Where the last row ends now.
fn end(ends: &mut [u32], len: usize) {
    if let Some(last) = ends.last_mut() {
        *last = index_u32(len);
    }
}

/// Tells of each element or entry of a space on disk the ordinal of what it is in.
pub(crate) fn each_parent(
    tree: &Tree,
    space: SpaceId,
    visit: &mut dyn FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    for cell in tree.cells.scan(&cell_key::space(tree.id(), space))? {
        let (key, handle) = cell?;
        let parsed = cell_key::parse(&key).map(|(_, kind)| kind);
        let Some(CellKey::Group { id, kind: GroupCell::Parent, number, .. }) = parsed else {
            continue;
        };
        let parents = Column::parse(handle.load()?)?;
        for (ordinal, parent) in (ordinal_of(id, number)..).zip(parents.iter()) {
            if let Datum::Int(parent) = parent? {
                visit(ordinal, parent.cast_unsigned())?;
            }
        }
    }
    Ok(())
}

/// The paths below one whose nodes have its ordinal.
fn fields_below(schema: &Schema, top: PathId) -> FxHashSet<PathId> {
    let space = schema.path(top).space;
    let mut fields = FxHashSet::default();
    // A path is numbered after the one it is below.
    for &path in &schema.space(space).columns {
        let parent = schema.path(path).parent;
        // What a record's versions are counted in says nothing of it, and goes on counting.
        let is_count = schema.label(path) == Label::Field(VERSION_FIELD);
        if path != top && !is_count && (parent == top || fields.contains(&parent)) {
            fields.insert(path);
        }
    }
    fields
}

/// The revisions in which a node had a value, whatever its ancestors were, newest first.
fn spans(tree: &Tree, node: NodeId) -> Result<Vec<(u32, u32)>> {
    tree.read(|data| {
        let (mut spans, mut last) = (Vec::new(), u32::MAX);
        data.versions(node, u32::MAX, &mut |set, state| {
            if !state.is_absent() {
                spans.push((set, last));
            }
            last = set.saturating_sub(1);
            ControlFlow::Continue(())
        })?;
        Ok(spans)
    })
}

/// The ordinal of a slot.
pub(crate) fn ordinal_of(id: GroupId, slot: u32) -> u64 {
    u64::from(id.group) * ROW_GROUP_SLOTS + u64::from(slot)
}

/// Adds an ordinal above those that are there.
fn add(ordinals: &mut Ordinals, ordinal: u64) {
    match ordinals.last_mut() {
        Some(last) if last.end == ordinal => last.end += 1,
        _ => ordinals.push(ordinal..ordinal + 1),
    }
}

fn has(ordinals: &[Range<u64>], ordinal: u64) -> bool {
    let after = ordinals.partition_point(|range| range.end <= ordinal);
    ordinals.get(after).is_some_and(|range| range.contains(&ordinal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::schema::ROOT;

    #[test]
    fn ordinals_are_kept_as_ranges() {
        let mut ordinals = Ordinals::new();
        for ordinal in [2, 3, 4, 7, 9, 10] {
            add(&mut ordinals, ordinal);
        }
        assert_eq!(ordinals, [2..5, 7..8, 9..11]);
        let found: Vec<u64> = (0..13).filter(|&ordinal| has(&ordinals, ordinal)).collect();
        assert_eq!(found, [2, 3, 4, 7, 9, 10]);
        assert!(!has(&[], 0));
    }

    #[test]
    fn fields_below_a_path_are_those_of_its_own_space() {
        let mut schema = Schema::new(false);
        let person = schema.add(ROOT, Label::Field(b"person"));
        let other = schema.add(ROOT, Label::Field(b"other"));
        let address = schema.add(person, Label::Field(b"address"));
        let city = schema.add(address, Label::Field(b"city"));
        let lines = schema.add(address, Label::Element);
        let text = schema.add(lines, Label::Field(b"text"));
        let below = |path| {
            let mut below: Vec<PathId> = fields_below(&schema, path).into_iter().collect();
            below.sort_unstable();
            below
        };
        assert_eq!(below(person), [address, city]);
        assert_eq!(below(ROOT), [person, other, address, city]);
        assert_eq!((below(lines), below(other)), (vec![text], vec![]));
    }
}
