//! What has departed from a tree: the elements, the entries, and the arrays and objects removed as
//! fields that no kept revision shows, or all of a document that is deleted in every one.
//!
//! A compaction that drops revisions may drop these with all that is in them. What stays says who
//! they were: parents, keys and births, and of records how many versions they had, so that a key
//! that comes back goes on counting. Of a document also that it is deleted, and since when.
//!
//! Invariants:
//! - what departs does so with all that is in it, so that what comes back in its place finds
//!   nothing to be compared with, or all of it;
//! - what comes back before the cells without it are in place is found, and they are given up: it
//!   may have been compared with what is not in them;
//! - a bit is kept for each slot of the columns of which something departed, and no more: what was
//!   not there does not depart, so that it may come while cells are merged.

use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::encoding::{Column, RunPiece, decode_order_block};
use crate::error::Result;
use crate::limits::ROW_GROUP_SLOTS;
use crate::node::{NodeId, Ordinal, PathId};
use crate::order::OrderBlock;
use crate::revision::Revision;
use crate::state::{Datum, OrderId, Sequence};
use crate::tree::Tree;
use crate::tree::cell_key::{self, CellKey, GroupCell};
use crate::tree::data::node;
use crate::tree::disk::corrupt;
use crate::tree::group::{GroupId, locate};
use crate::tree::history::short;
use crate::tree::kept::Kept;
use crate::tree::records::version_path;
use crate::tree::schema::{ROOT, Schema, SpaceId, index_u32};

/// Words with a bit for each slot.
const WORDS: usize = 64;

const _: () = assert!(WORDS as u64 * 64 == ROW_GROUP_SLOTS, "each slot has a bit");

/// What has departed from a tree.
#[derive(Debug)]
pub(crate) struct Departed {
    pub(crate) tree: Arc<Tree>,
    schema: Arc<Schema>,
    /// What counts the versions of records stays.
    version: Option<PathId>,
    gone: Gone,
    /// What revisions after this one bring back is not known.
    pub(crate) until: Revision,
}

#[derive(Debug)]
enum Gone {
    /// All, as the document is deleted: every slot of every row group.
    All(Arc<Slots>),
    /// Some of it, by the row group and the path of the top. Paths below that are of the same space
    /// have the slots of this one, or an entry of their own that has these as well.
    Some(FxHashMap<(GroupId, PathId), Arc<Slots>>),
}

/// Some slots of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slots(Box<[u64; WORDS]>);

/// The order blocks of a tree that are to be kept.
#[derive(Debug)]
pub(crate) struct OrderMarks {
    tree: Arc<Tree>,
    words: Vec<u64>,
    /// Whether those are marked too that marked ones are made of.
    is_settled: bool,
}

/// Since when the nodes of a column of a row group are there, as cells come in the order of keys.
struct Lives<'k> {
    id: GroupId,
    path: PathId,
    kept: &'k Kept,
    /// By slot the revision of its birth, as far as it is known: items come before their fields.
    births: Vec<u32>,
    /// By slot the revision since which the node is there, 0 if it is not.
    since: Vec<u32>,
    /// Those that were there and were removed.
    removed: Slots,
    /// Those that a kept revision shows.
    shown: Slots,
    /// Those in something that departed.
    below: Slots,
}

impl Departed {
    /// All of a tree whose document is deleted in every kept revision; none if it is not, or if
    /// nothing of it is left.
    pub(crate) fn deleted(tree: &Arc<Tree>, kept: &Kept) -> Result<Option<Self>> {
        let Some(until) = tree.let_go(kept)? else { return Ok(None) };
        Ok(Some(Self::new(tree, Gone::All(Arc::new(Slots::all())), until)))
    }

    /// Works out what of a tree no kept revision shows, as far as segments have it.
    pub(crate) fn find(tree: &Arc<Tree>, kept: &Kept) -> Result<Self> {
        if let Some(deleted) = Self::deleted(tree, kept)? {
            return Ok(deleted);
        }
        let until = Revision(tree.data.read().rows.before());
        let mut departed = Self::new(tree, Gone::Some(FxHashMap::default()), until);
        // A space is numbered after the one that its arrays or maps are in.
        for number in 0..index_u32(departed.schema.spaces().len()) {
            departed.find_in(SpaceId(number), kept)?;
        }
        Ok(departed)
    }

    fn new(tree: &Arc<Tree>, gone: Gone, until: Revision) -> Self {
        let schema = Arc::clone(&tree.data.read().schema);
        Self { tree: Arc::clone(tree), version: version_path(&schema), schema, gone, until }
    }

    /// Whether nothing has departed.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.gone, Gone::Some(tops) if tops.is_empty())
    }

    fn find_in(&mut self, space: SpaceId, kept: &Kept) -> Result<()> {
        let items = self.schema.space(space).path;
        let mut lives: Option<Lives<'_>> = None;
        for cell in self.tree.cells.scan(&cell_key::space(self.tree.id(), space))? {
            let (key, handle) = cell?;
            let Some((_, CellKey::Group { id, path, kind, number })) = cell_key::parse(&key) else {
                continue;
            };
            let may_hold = path == items || self.may_have_members(path);
            if kind == GroupCell::Key || !may_hold {
                continue;
            }
            let lives = match &mut lives {
                Some(lives) if (lives.id, lives.path) == (id, path) => lives,
                before => {
                    let before = before.take();
                    self.add(before.as_ref());
                    lives.insert(Lives::after(before, (id, path), kept))
                }
            };
            let cell = handle.load()?;
            match kind {
                GroupCell::Parent => self.find_below(lives, number, cell)?,
                _ => lives.push((kind, number), cell)?,
            }
        }
        self.add(lives.as_ref());
        Ok(())
    }

    /// Whether arrays or objects of a path have had something in them.
    fn may_have_members(&self, path: PathId) -> bool {
        let info = self.schema.path(path);
        info.fields > 0 || info.element.is_some() || info.entry.is_some()
    }

    /// Notes the items that are in something that departed.
    fn find_below(&self, lives: &mut Lives<'_>, first: u32, cell: Bytes) -> Result<()> {
        let holder = self.schema.path(self.schema.space(lives.id.space).path).parent;
        for (slot, parent) in (first..).zip(Column::parse(cell)?.iter()) {
            if let Datum::Int(parent) = parent?
                && self.has(NodeId::new(holder, Ordinal(parent.cast_unsigned())))
            {
                lives.below.add(slot)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, lives: Option<&Lives<'_>>) {
        // The root departs with all, or not at all.
        let Some(lives) = lives.filter(|lives| lives.path != ROOT) else { return };
        let above = self.tops_of(lives.id, lives.path).cloned().unwrap_or_default();
        let own = lives.departed();
        if own != Slots::default()
            && let Gone::Some(tops) = &mut self.gone
        {
            tops.insert((lives.id, lives.path), Arc::new(own.or(&above)));
        }
    }

    /// The slots of a row group of which something departed that a path is, or is in.
    fn tops_of(&self, id: GroupId, mut path: PathId) -> Option<&Arc<Slots>> {
        let tops = match &self.gone {
            Gone::All(slots) => return Some(slots),
            Gone::Some(tops) => tops,
        };
        let items = self.schema.space(id.space).path;
        loop {
            match tops.get(&(id, path)) {
                None if path != items => path = self.schema.path(path).parent,
                found => return found,
            }
        }
    }

    fn has(&self, node: NodeId) -> bool {
        if !self.schema.has_path(node.path()) {
            return false;
        }
        let space = self.schema.path(node.path()).space;
        let (group, slot) = locate(node.ordinal().0);
        let id = GroupId { space, group: index_u32(group) };
        self.tops_of(id, node.path()).is_some_and(|slots| slots.has(slot))
    }

    /// The slots of a row group of which a column's states go.
    pub(crate) fn slots(&self, id: GroupId, path: PathId) -> Option<Arc<Slots>> {
        if Some(path) == self.version { None } else { self.tops_of(id, path).cloned() }
    }

    /// Whether one of the revisions after `from` brought something back of what departed, and the
    /// last of them. Who has the tree's turn knows of all.
    pub(crate) fn comes_back(&self, from: Revision) -> Result<(bool, Revision)> {
        let last = Revision(self.tree.data.read().rows.last());
        for revision in (from.0 + 1..=last.0).map(Revision) {
            if self.tree.changed(revision)?.into_iter().any(|node| self.has(node)) {
                return Ok((true, revision));
            }
        }
        Ok((false, last))
    }
}

impl Tree {
    /// The newest revision, if the document is deleted in every kept one and values of it are
    /// stored all the same.
    pub(crate) fn let_go(&self, kept: &Kept) -> Result<Option<Revision>> {
        let root = node(ROOT, 0);
        self.read(|data| {
            let last = short(Revision(data.rows.last()));
            let Some((deleted, Datum::Absent)) = data.version_up_to(root, last)? else {
                return Ok(None);
            };
            if deleted > kept.first() {
                return Ok(None);
            }
            for &pinned in kept.pinned() {
                if !matches!(data.version_up_to(root, pinned)?, Some((_, Datum::Absent)) | None) {
                    return Ok(None);
                }
            }
            let mut before = deleted;
            while let Some((set, state)) = data.version_up_to(root, before)? {
                if !state.is_absent() {
                    return Ok(Some(Revision(last.into())));
                }
                before = set - 1;
            }
            Ok(None)
        })
    }
}

impl<'k> Lives<'k> {
    /// Those of a column, of which the one before is perhaps of the same row group.
    fn after(before: Option<Self>, (id, path): (GroupId, PathId), kept: &'k Kept) -> Self {
        let births = before.filter(|before| before.id == id).map(|before| before.births);
        Self {
            id,
            path,
            kept,
            births: births.unwrap_or_default(),
            since: Vec::new(),
            removed: Slots::default(),
            shown: Slots::default(),
            below: Slots::default(),
        }
    }

    fn push(&mut self, (kind, first): (GroupCell, u32), cell: Bytes) -> Result<()> {
        match kind {
            GroupCell::Base => {
                for (slot, state) in (first as usize..).zip(Column::parse(cell)?.iter()) {
                    // Of an item the birth is yet to come.
                    let born = self.births.get(slot).copied().unwrap_or(1).max(1);
                    *self.slot(slot)? = if state?.is_absent() { 0 } else { born };
                }
                Ok(())
            }
            GroupCell::Born => {
                for (slot, born) in (first as usize..).zip(Column::parse(cell)?.iter()) {
                    let Datum::Int(born) = born? else { continue };
                    let born = u32::try_from(born).unwrap_or(u32::MAX);
                    let since = self.slot(slot)?;
                    if *since > 0 {
                        *since = born;
                    }
                    if slot >= self.births.len() {
                        self.births.resize(slot + 1, 0);
                    }
                    self.births[slot] = born;
                }
                Ok(())
            }
            GroupCell::Run => self.push_run(&RunPiece::parse(cell)?),
            GroupCell::Parent | GroupCell::Key => Ok(()),
        }
    }

    fn push_run(&mut self, piece: &RunPiece) -> Result<()> {
        for index in 0..piece.len() {
            let (slot, revision, state) = piece.entry(index)?;
            // What a complete piece repeats has come with an earlier one.
            if revision < piece.first_revision() {
                continue;
            }
            let since = self.slot(slot.into())?;
            match (state.is_absent(), *since) {
                (true, begun @ 1..) => {
                    *since = 0;
                    self.removed.add(slot.into())?;
                    if self.kept.at_or_before(u64::from(revision) - 1) >= begun.into() {
                        self.shown.add(slot.into())?;
                    }
                }
                (false, 0) => *since = revision,
                _ => {}
            }
        }
        Ok(())
    }

    fn slot(&mut self, slot: usize) -> Result<&mut u32> {
        if slot >= self.since.len() && slot < WORDS * 64 {
            self.since.resize(slot + 1, 0);
        }
        self.since.get_mut(slot).ok_or_else(|| no_slot(slot))
    }

    /// Those that have departed. What is there at last is shown at the head.
    fn departed(&self) -> Slots {
        let mut departed = Slots::default();
        for (slot, &since) in (0..).zip(&self.since) {
            let is_removed = self.removed.has(slot) && since == 0;
            let was_there = since > 0 || is_removed;
            if is_removed && !self.shown.has(slot) || was_there && self.below.has(slot) {
                departed.0[usize::from(slot) / 64] |= 1 << (slot % 64);
            }
        }
        departed
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self(Box::new([0; WORDS]))
    }
}

impl Slots {
    fn all() -> Self {
        Self(Box::new([u64::MAX; WORDS]))
    }

    pub(crate) fn has(&self, slot: u16) -> bool {
        let word = self.0.get(usize::from(slot) / 64).copied().unwrap_or(0);
        word & 1 << (slot % 64) != 0
    }

    fn or(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(other.0.iter()).for_each(|(word, other)| *word |= other);
        self
    }

    fn add(&mut self, slot: u32) -> Result<()> {
        let word = self.0.get_mut(slot as usize / 64);
        *word.ok_or_else(|| no_slot(slot as usize))? |= 1 << (slot % 64);
        Ok(())
    }
}

impl OrderMarks {
    /// None is marked of those that a tree has on disk.
    pub(crate) fn new(departed: &Departed) -> Self {
        let tree = Arc::clone(&departed.tree);
        let words = usize::try_from(tree.orders.committed() / 64 + 1).unwrap_or(usize::MAX);
        Self { tree, words: vec![0; words], is_settled: false }
    }

    /// Marks the root of the order that a state names, if it names one.
    pub(crate) fn add(&mut self, state: &Datum<'_>) -> Result<()> {
        match state {
            Datum::Array(Sequence::Blocks(id)) | Datum::Map(Sequence::Blocks(id)) => self.mark(*id),
            _ => Ok(()),
        }
    }

    fn mark(&mut self, id: OrderId) -> Result<()> {
        let word = usize::try_from(id.0 / 64).ok().and_then(|word| self.words.get_mut(word));
        *word.ok_or_else(|| corrupt(format!("order block {} is not there", id.0)))? |=
            1 << (id.0 % 64);
        Ok(())
    }

    /// Whether a block is kept, once all states that are kept have been told.
    pub(crate) fn has(&mut self, id: OrderId) -> Result<bool> {
        if !self.is_settled {
            self.settle()?;
            self.is_settled = true;
        }
        let word = usize::try_from(id.0 / 64).ok().and_then(|word| self.words.get(word));
        Ok(word.is_none_or(|word| word & 1 << (id.0 % 64) != 0))
    }

    /// Marks what the marked ones are made of, which are blocks with lower numbers.
    fn settle(&mut self) -> Result<()> {
        for word in (0..self.words.len()).rev() {
            if self.words[word] == 0 {
                continue;
            }
            for bit in (0..64).rev() {
                if self.words[word] & 1 << bit != 0 {
                    self.mark_below(OrderId(word as u64 * 64 + bit))?;
                }
            }
        }
        Ok(())
    }

    fn mark_below(&mut self, id: OrderId) -> Result<()> {
        let missing = || corrupt(format!("order block {} is not there", id.0));
        let cell = self.tree.cells.get(&cell_key::order(self.tree.id(), id))?;
        let OrderBlock::Inner(children) = decode_order_block(&cell.ok_or_else(missing)?)? else {
            return Ok(());
        };
        for &(child, _) in &children {
            if child >= id {
                return Err(corrupt(format!("order block {} is in block {}", child.0, id.0)));
            }
            self.mark(child)?;
        }
        Ok(())
    }
}

fn no_slot(slot: usize) -> crate::error::Error {
    corrupt(format!("a row group has slot {slot}"))
}
