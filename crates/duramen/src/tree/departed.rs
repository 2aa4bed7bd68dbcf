//! What has departed from a tree: the elements and entries that no kept revision shows, or all of
//! a document that is deleted in every one.
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
//! - a bit is kept for each slot of the row groups of which something departed, and no more.

use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::encoding::{Column, RunPiece, decode_order_block};
use crate::error::Result;
use crate::limits::ROW_GROUP_SLOTS;
use crate::node::{NodeId, PathId};
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
    /// Some elements and entries.
    Items(FxHashMap<GroupId, Arc<Slots>>),
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

/// Since when the items of one row group are there, as their cells come in the order of their keys.
struct Lives<'k> {
    id: GroupId,
    kept: &'k Kept,
    /// By slot the revision since which it is there, 0 if it is not.
    since: Vec<u32>,
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
        let mut departed = Self::new(tree, Gone::Items(FxHashMap::default()), until);
        // A space is numbered after the one that its arrays or maps are in; the root is shown.
        for number in 1..index_u32(departed.schema.spaces().len()) {
            departed.find_in(SpaceId(number), kept)?;
        }
        Ok(departed)
    }

    fn new(tree: &Arc<Tree>, gone: Gone, until: Revision) -> Self {
        let schema = Arc::clone(&tree.data.read().schema);
        Self { tree: Arc::clone(tree), version: version_path(&schema), schema, gone, until }
    }

    fn find_in(&mut self, space: SpaceId, kept: &Kept) -> Result<()> {
        let items = self.schema.space(space).path;
        let mut lives: Option<Lives<'_>> = None;
        for cell in self.tree.cells.scan(&cell_key::space(self.tree.id(), space))? {
            let (key, handle) = cell?;
            let Some((_, CellKey::Group { id, path, kind, number })) = cell_key::parse(&key) else {
                continue;
            };
            if path != items || kind == GroupCell::Key {
                continue;
            }
            if lives.as_ref().is_some_and(|lives| lives.id != id) {
                self.add(lives.take());
            }
            let lives = lives.get_or_insert_with(|| Lives::new(id, kept));
            let cell = handle.load()?;
            match kind {
                GroupCell::Parent => self.find_below(lives, number, cell)?,
                _ => lives.push((kind, number), cell)?,
            }
        }
        self.add(lives);
        Ok(())
    }

    /// Notes the items that are in something that departed.
    fn find_below(&self, lives: &mut Lives<'_>, first: u32, cell: Bytes) -> Result<()> {
        let items = self.schema.path(self.schema.space(lives.id.space).path);
        let holder = self.schema.path(items.parent).space;
        for (slot, parent) in (first..).zip(Column::parse(cell)?.iter()) {
            if let Datum::Int(parent) = parent?
                && self.has_item(holder, parent.cast_unsigned())
            {
                lives.below.add(slot)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, lives: Option<Lives<'_>>) {
        let Some(lives) = lives else { return };
        let id = lives.id;
        if let Gone::Items(groups) = &mut self.gone {
            groups.extend(lives.departed().map(|slots| (id, Arc::new(slots))));
        }
    }

    fn has_item(&self, space: SpaceId, ordinal: u64) -> bool {
        let (group, slot) = locate(ordinal);
        let id = GroupId { space, group: index_u32(group) };
        self.group(id).is_some_and(|slots| slots.has(slot))
    }

    fn group(&self, id: GroupId) -> Option<&Arc<Slots>> {
        match &self.gone {
            Gone::All(slots) => Some(slots),
            Gone::Items(groups) => groups.get(&id),
        }
    }

    fn has(&self, node: NodeId) -> bool {
        self.schema.has_path(node.path())
            && self.has_item(self.schema.path(node.path()).space, node.ordinal().0)
    }

    /// The slots of a row group of which a column's states go.
    pub(crate) fn slots(&self, id: GroupId, path: PathId) -> Option<Arc<Slots>> {
        if Some(path) == self.version { None } else { self.group(id).cloned() }
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
    fn new(id: GroupId, kept: &'k Kept) -> Self {
        Self { id, kept, since: Vec::new(), shown: Slots::default(), below: Slots::default() }
    }

    fn push(&mut self, (kind, first): (GroupCell, u32), cell: Bytes) -> Result<()> {
        match kind {
            GroupCell::Base => {
                for (slot, state) in (first as usize..).zip(Column::parse(cell)?.iter()) {
                    // The revision is that of its birth, which comes.
                    *self.slot(slot)? = u32::from(!state?.is_absent());
                }
                Ok(())
            }
            GroupCell::Born => {
                for (slot, born) in (first as usize..).zip(Column::parse(cell)?.iter()) {
                    let since = self.slot(slot)?;
                    if let (1, Datum::Int(born)) = (*since, born?) {
                        *since = u32::try_from(born).unwrap_or(u32::MAX);
                    }
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

    /// Those that have departed, if any have. What is there at last is shown at the head.
    fn departed(self) -> Option<Slots> {
        let mut departed = Slots::default();
        for (slot, &since) in (0..).zip(&self.since) {
            let is_shown = since > 0 || self.shown.has(slot);
            if !is_shown || self.below.has(slot) {
                departed.0[usize::from(slot) / 64] |= 1 << (slot % 64);
            }
        }
        (departed != Slots::default()).then_some(departed)
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
