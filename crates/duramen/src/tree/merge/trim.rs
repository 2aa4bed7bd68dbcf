//! Drops from the cells of one tree what its retention lets go.
//!
//! Of the changes up to the first kept revision each slot keeps the newest, and the newest up to
//! each pinned revision before it, with the revisions they are of; one that removed something
//! keeps the state before it too, so that the members of what comes back are known, or as `null`
//! where it had none. Rows and content hashes of dropped revisions go, and of indexes the slabs in
//! which only these are read. Of the values stored apart those go that only dropped states named. A
//! first state that no kept revision reads becomes `null`, so that it is still known since when
//! there was something. Orders stay, unless it is known what has [departed](Departed): then all
//! states of that go, and the order blocks that no state names which is left.
//!
//! Invariant: all cells of the tree come here, in key order: nothing older is left elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::encoding::{
    Column, RevisionRowsBlock, RunChange, RunPiece, encode_column, encode_complete_run, encode_run,
};
use crate::error::Result;
use crate::index::cell::Facts;
use crate::limits::RUN_PIECE_CHANGES_MAX;
use crate::node::PathId;
use crate::state::{BlobId, Datum};
use crate::tree::cell_key::{CellKey, GroupCell};
use crate::tree::departed::{Departed, OrderMarks, Slots};
use crate::tree::group::GroupId;
use crate::tree::kept::Kept;
use crate::tree::merge::{Cell, rows};
use crate::tree::schema::ROOT;

/// Bytes of the number at the end of a row group cell's key, and of the kind before it.
const NUMBER_BYTES: usize = size_of::<u32>();
const KIND_BYTES: usize = 1;

/// Run pieces that come together before what is kept of them is made out.
const PIECES_MAX: usize = 64;

/// What drops the cells and changes of one tree.
#[derive(Debug)]
pub(crate) struct Trim {
    kept: Kept,
    /// What comes before the run pieces of one column.
    held: Held,
    /// What the keys of the pieces begin with; empty if there are none.
    column: Vec<u8>,
    /// Those with changes of which some may go, oldest first.
    pieces: Vec<RunPiece>,
    /// Values stored apart that dropped changes named, and those that something kept names.
    dropped: FxHashSet<BlobId>,
    named: Named,
    /// What has departed, and the slots of the pieces that have.
    departed: Option<Arc<Departed>>,
    gone: Gone,
    /// The index whose cells come.
    index: Option<Facts>,
}

/// The cells of a column of a row group that come before its run pieces: what these have says
/// which first states are read.
#[derive(Debug, Default)]
struct Held {
    /// What the keys of the column begin with.
    column: Vec<u8>,
    /// With the first slot, if they are of first states.
    cells: Vec<(Cell, Option<u32>)>,
    gone: Gone,
    /// Slots whose first states no kept revision reads.
    superseded: FxHashSet<u16>,
    /// The same where the first states may be what was removed.
    removed: FxHashSet<u16>,
}

impl Held {
    /// What is left of a first state.
    fn left<'a>(&self, slot: u16, state: Datum<'a>) -> Datum<'a> {
        if state.is_absent() {
            state
        } else if self.gone.has(slot, &state) {
            Datum::Absent
        } else if self.superseded.contains(&slot) {
            Datum::Null
        } else if self.removed.contains(&slot) {
            without_value(state)
        } else {
            state
        }
    }
}

/// What goes of a column because it has departed.
#[derive(Debug, Default)]
struct Gone {
    slots: Option<Arc<Slots>>,
    /// Whether it is the document itself, of which it stays that it was deleted.
    is_root: bool,
}

impl Gone {
    fn has(&self, slot: u16, state: &Datum<'_>) -> bool {
        let is_told = self.is_root && state.is_absent();
        !is_told && self.slots.as_ref().is_some_and(|slots| slots.has(slot))
    }
}

/// What the states name that are kept.
#[derive(Debug, Default)]
struct Named {
    blobs: FxHashSet<BlobId>,
    /// None where all order blocks stay.
    orders: Option<OrderMarks>,
}

impl Named {
    fn add(&mut self, state: &Datum<'_>) -> Result<()> {
        self.blobs.extend(blob_of(state));
        self.orders.as_mut().map_or(Ok(()), |orders| orders.add(state))
    }
}

impl Trim {
    pub(crate) fn new(kept: Kept, departed: Option<Arc<Departed>>) -> Self {
        let orders = departed.as_deref().map(OrderMarks::new);
        Self {
            kept,
            held: Held::default(),
            column: Vec::new(),
            pieces: Vec::new(),
            dropped: FxHashSet::default(),
            named: Named { blobs: FxHashSet::default(), orders },
            departed,
            gone: Gone::default(),
            index: None,
        }
    }

    /// Takes the next cell and appends what is left of it, and of those before, to `out`.
    pub(crate) fn push(
        &mut self,
        (key, cell): Cell,
        kind: CellKey,
        out: &mut Vec<Cell>,
    ) -> Result<()> {
        if !self.column.is_empty() && !key.starts_with(&self.column) {
            self.finish(out)?;
        }
        if !self.held.cells.is_empty() && !key.starts_with(&self.held.column) {
            self.put_held(out)?;
        }
        let is_kept = match kind {
            CellKey::Rows { first } => {
                let block = RevisionRowsBlock::parse(cell.clone())?;
                return rows::trim((key, cell), (&block, first), &self.kept, out);
            }
            CellKey::Group { id, path, kind: GroupCell::Run, .. } => {
                if self.column.is_empty() {
                    self.column = key[..key.len() - NUMBER_BYTES].to_vec();
                    self.gone = self.gone_of(id, path);
                }
                return self.push_run((key, cell), out);
            }
            CellKey::Group { id, path, kind, number } => {
                if self.held.cells.is_empty() {
                    let column = key[..key.len() - NUMBER_BYTES - KIND_BYTES].to_vec();
                    self.held = Held { column, gone: self.gone_of(id, path), ..Held::default() };
                }
                let first = (kind == GroupCell::Base).then_some(number);
                self.held.cells.push(((key, cell), first));
                return Ok(());
            }
            CellKey::Order(id) => {
                self.named.orders.as_mut().map_or(Ok(true), |orders| orders.has(id))?
            }
            CellKey::Hash { revision } => self.kept.at_or_before(revision) == revision,
            CellKey::Index { .. } => {
                self.index = Some(Facts::decode(&cell)?);
                true
            }
            CellKey::IndexSlab { slab, .. } => {
                self.index.as_ref().is_some_and(|index| index.is_kept(slab, &self.kept))
            }
            CellKey::Blob(id) => !self.dropped.contains(&id) || self.named.blobs.contains(&id),
            _ => true,
        };
        if is_kept {
            out.push((key, cell));
        }
        Ok(())
    }

    /// Whether a key is of the column whose cells came last, of which some may wait for the others.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        let is_of = |column: &[u8]| !column.is_empty() && key.starts_with(column);
        is_of(&self.column) || (!self.held.cells.is_empty() && is_of(&self.held.column))
    }

    /// Appends what is left of the pieces that came in to `out`.
    pub(crate) fn finish(&mut self, out: &mut Vec<Cell>) -> Result<()> {
        self.sift(out, true)?;
        self.column.clear();
        self.put_held(out)
    }

    /// What goes of a column of a row group.
    fn gone_of(&self, id: GroupId, path: PathId) -> Gone {
        let slots = self.departed.as_ref().and_then(|departed| departed.slots(id, path));
        Gone { slots, is_root: path == ROOT }
    }

    /// Appends the cells that were held to `out`.
    fn put_held(&mut self, out: &mut Vec<Cell>) -> Result<()> {
        let mut held = std::mem::take(&mut self.held);
        for (cell, first) in std::mem::take(&mut held.cells) {
            match first {
                Some(first) => self.put_base(cell, (first, &held), out)?,
                None => out.push(cell),
            }
        }
        Ok(())
    }

    fn put_base(
        &mut self,
        (key, cell): Cell,
        (first, held): (u32, &Held),
        out: &mut Vec<Cell>,
    ) -> Result<()> {
        let column = Column::parse(cell.clone())?;
        let are_read = held.superseded.is_empty() && held.removed.is_empty();
        let may_change = held.gone.slots.is_some() || !are_read;
        let mut states = Vec::with_capacity(if may_change { column.len() } else { 0 });
        let mut is_changed = false;
        for (slot, state) in (first..).zip(column.iter()) {
            let mut state = state?;
            let left = held.left(u16::try_from(slot).unwrap_or(u16::MAX), state);
            if left != state {
                self.dropped.extend(blob_of(&state));
                (state, is_changed) = (left, true);
            }
            self.named.add(&state)?;
            if may_change {
                states.push(state);
            }
        }
        if !is_changed {
            out.push((key, cell));
        } else if !states.iter().all(Datum::is_absent) {
            let mut left = Vec::new();
            encode_column(&states, &mut left);
            out.push((key, left.into()));
        }
        Ok(())
    }

    fn push_run(&mut self, (key, cell): Cell, out: &mut Vec<Cell>) -> Result<()> {
        let piece = RunPiece::parse(cell.clone())?;
        if self.kept.boundary(piece.first_revision()).is_some() {
            self.pieces.push(piece);
            return if self.pieces.len() < PIECES_MAX { Ok(()) } else { self.sift(out, false) };
        }
        self.sift(out, true)?;
        self.put_held(out)?;
        let mut left = Vec::with_capacity(piece.len());
        for index in 0..piece.len() {
            let change = piece.entry(index)?;
            if self.gone.has(change.0, &change.2) {
                self.dropped.extend(blob_of(&change.2));
            } else {
                self.named.add(&change.2)?;
                left.push(change);
            }
        }
        if left.len() == piece.len() {
            out.push((key, cell));
        } else {
            out.extend(shortened(&self.column, (&piece, &left)));
        }
        Ok(())
    }

    /// Appends what is kept of the pieces to `out`. Unless it is the end, the changes up to the
    /// last boundary stay, as newer ones may take their place.
    fn sift(&mut self, out: &mut Vec<Cell>, is_end: bool) -> Result<()> {
        let pieces = std::mem::take(&mut self.pieces);
        let mut changes: Vec<RunChange<'_>> = Vec::new();
        for piece in &pieces {
            for index in 0..piece.len() {
                let change = piece.entry(index)?;
                if self.gone.has(change.0, &change.2) {
                    self.dropped.extend(blob_of(&change.2));
                } else if change.1 >= piece.first_revision() {
                    // What a complete piece repeats has come with an earlier one.
                    changes.push(change);
                }
            }
        }
        changes.sort_unstable_by_key(|&(slot, revision, _)| (revision, slot));
        let kept = self.kept.clone();
        let boundary = |change: &RunChange<'_>| kept.boundary(change.1);
        let mut rest = changes.as_slice();
        while let Some(first) = rest.first() {
            let until = boundary(first);
            let same = rest.partition_point(|change| boundary(change) == until);
            let (now, later) = rest.split_at(same);
            rest = later;
            if until.is_none() {
                self.put_held(out)?;
                now.iter().try_for_each(|change| self.named.add(&change.2))?;
                put_changes(&self.column, now.to_vec(), out);
                continue;
            }
            let newest = newest_of(now, &mut self.dropped);
            if until == Some(kept.oldest()) {
                // A removal alone was of the first state: what another one removed is beside it.
                for &(slot, _, state) in &newest {
                    let Held { superseded, removed, .. } = &mut self.held;
                    if state.is_absent() { removed } else { superseded }.insert(slot);
                }
            }
            if rest.is_empty() && !is_end {
                let mut left = Vec::new();
                put_changes(&self.column, newest, &mut left);
                let left = left.into_iter().map(|(_, cell)| RunPiece::parse(cell));
                self.pieces = left.collect::<Result<_>>()?;
            } else {
                self.put_held(out)?;
                newest.iter().try_for_each(|change| self.named.add(&change.2))?;
                put_changes(&self.column, newest, out);
            }
        }
        Ok(())
    }
}

/// A piece of which these changes are left; none if all that are its own are gone.
fn shortened(column: &[u8], (piece, left): (&RunPiece, &[RunChange<'_>])) -> Option<Cell> {
    let own = left.iter().map(|change| change.1).filter(|&at| at >= piece.first_revision());
    let first = own.min()?;
    let mut cell = Vec::new();
    if piece.is_complete() {
        encode_complete_run(left, first, &mut cell);
    } else {
        encode_run(left, &mut cell);
    }
    Some(([column, &first.to_be_bytes()].concat().into(), cell.into()))
}

/// What is to be known of a state that no kept revision reads and that something removed: which
/// members there were, so that those are marked that do not come back with it.
fn without_value(state: Datum<'_>) -> Datum<'_> {
    if state.is_container() { state } else { Datum::Null }
}

/// Of changes in the order of their revisions the newest of each slot and, if that removed
/// something, what is to be known of the state before. Values stored apart that the others name go
/// to `dropped`.
fn newest_of<'a>(changes: &[RunChange<'a>], dropped: &mut FxHashSet<BlobId>) -> Vec<RunChange<'a>> {
    let mut newest: BTreeMap<u16, (RunChange<'a>, Option<RunChange<'a>>)> = BTreeMap::new();
    for &change in changes {
        let Some((last, before)) = newest.get_mut(&change.0) else {
            newest.insert(change.0, (change, None));
            continue;
        };
        let old = std::mem::replace(last, change);
        let gone = match (change.2.is_absent(), old.2.is_absent()) {
            (true, true) => None,
            (true, false) => before.replace(old),
            (false, _) => {
                dropped.extend(blob_of(&old.2));
                before.take()
            }
        };
        dropped.extend(gone.and_then(|gone| blob_of(&gone.2)));
    }
    let mut left = Vec::with_capacity(newest.len());
    for (last, before) in newest.into_values() {
        if let Some((slot, revision, state)) = before {
            dropped.extend(blob_of(&state));
            left.push((slot, revision, without_value(state)));
        }
        left.push(last);
    }
    left.sort_unstable_by_key(|&(slot, revision, _)| (revision, slot));
    left
}

/// Encodes changes in the order of their revisions as pieces of whole revisions.
fn put_changes(column: &[u8], mut changes: Vec<RunChange<'_>>, out: &mut Vec<Cell>) {
    let mut rest = changes.as_mut_slice();
    while let Some(&(_, first, _)) = rest.first() {
        let most = rest.len().min(RUN_PIECE_CHANGES_MAX);
        let end = match rest.get(most) {
            None => most,
            Some(&(_, next, _)) => rest[..most].partition_point(|change| change.1 < next),
        };
        assert!(end > 0, "a revision changes a slot once");
        let (piece, later) = rest.split_at_mut(end);
        piece.sort_unstable_by_key(|&(slot, revision, _)| (slot, revision));
        let mut cell = Vec::new();
        encode_run(piece, &mut cell);
        out.push(([column, &first.to_be_bytes()].concat().into(), cell.into()));
        rest = later;
    }
}

fn blob_of(state: &Datum<'_>) -> Option<BlobId> {
    match state {
        Datum::Apart { blob, .. } => Some(*blob),
        _ => None,
    }
}
