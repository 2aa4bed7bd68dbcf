//! Secondary indexes of collections: which records have a value at a path, at every revision.
//!
//! An index is derived from the records and *follows* them on demand: commits write nothing for it.
//! Up to its *watermark* it has an entry for each key that a record got or lost; whoever reads at a
//! later revision has it follow first. Entries are young until a checkpoint writes them as cells.
//!
//! So that a look-up costs as much however long the history is, entries are kept in *slabs* of
//! revisions: each begins with what was there at its first revision, and holds what happened since.
//! A new one begins once more happened than there was, so a read meets few entries of other
//! revisions, and all slabs together are about twice as large as what happened.
//!
//! Invariants:
//! - up to the watermark the entries say what the records say, at every revision from the first;
//! - what is in a segment is of revisions that the segments have;
//! - nothing of an index is read while it is being made, nor what no definition names;
//! - no lock but the index's own is held while records are read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::collection::RecordPath;
use crate::error::Result;
use crate::sync::{Mutex, MutexGuard};
use crate::tree::Tree;
use crate::tree::cell_key;
use crate::tree::persist::PutCell;

pub(crate) mod cell;
mod columns;
pub(crate) mod definition;
mod dropped;
mod follow;
mod keys;
mod level;
mod range;
mod run;
mod slab;
mod unique;
mod verify;
mod young;

pub(crate) use columns::{Gathered, gather};
pub(crate) use definition::{Declared, no_index};
pub use definition::{IndexDefinition, IndexOptions};
pub(crate) use dropped::{dropped, was_dropped};
pub(crate) use range::IndexRange;
pub(crate) use unique::check_all;
pub(crate) use verify::check;

use cell::{Entries, Facts};
use follow::Changing;
use slab::Copying;
use young::Young;

/// The indexes of a tree that are in use.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    known: Mutex<Known>,
    /// How many are making each.
    makers: Mutex<BTreeMap<u32, usize>>,
}

/// What is known of the indexes of a tree by their ids.
#[derive(Debug, Default)]
struct Known {
    in_use: BTreeMap<u32, Arc<Index>>,
    /// Those that were dropped: whoever has read the options before does not bring one back.
    dropped: BTreeSet<u32>,
}

/// Somebody who makes an index. It is counted while the turn of the catalogue is held, so that
/// whoever gives an index up then knows whether another one goes on with it.
#[derive(Debug)]
pub(crate) struct Maker {
    tree: Arc<Tree>,
    id: u32,
}

/// Somebody who has commits refuse keys that another record has, though no definition says so yet:
/// until it is dropped.
#[derive(Debug)]
pub(crate) struct Enforcing<'i> {
    index: &'i Index,
    is_for_good: bool,
}

/// An index of a tree.
#[derive(Debug)]
pub(crate) struct Index {
    id: u32,
    paths: Vec<RecordPath>,
    state: Mutex<State>,
    /// Held by whoever has it follow the records.
    following: Mutex<()>,
    /// How many have commits refuse keys that another record has.
    enforcing: AtomicUsize,
    /// Whether somebody would read it if it had followed.
    is_asked: AtomicBool,
    /// Whether its cells may be gone.
    is_dropped: AtomicBool,
    /// Whether it had followed all that there was when it was last written or followed beside.
    is_kept_up: AtomicBool,
}

/// What is known of an index, and its entries that no segment has.
#[derive(Debug, Default)]
struct State {
    facts: Facts,
    young: Young,
    /// Those that a checkpoint is writing, with the facts that go with them.
    frozen: Option<(Arc<Young>, Facts)>,
    /// Whether there is something to write.
    is_dirty: bool,
    /// A slab in the making.
    copying: Option<Copying>,
    /// What is left of the changes of the revision after the watermark, if some of them are there.
    changing: Option<Changing>,
    /// Rises whenever young entries go elsewhere, so that readers look for all levels again.
    generation: u64,
    /// How often something had been erased on disk of what this was made of.
    erasures: u64,
}

impl Indexes {
    /// The index with an id, its facts read if it was not in use; [`was_dropped`] says of the error
    /// if it was dropped since it was declared.
    pub(crate) fn get(&self, tree: &Tree, declared: &Declared) -> Result<Arc<Index>> {
        if let Some(index) = self.known.lock().get(declared.id)? {
            return Ok(index);
        }
        let index = Index {
            id: declared.id,
            paths: declared.paths.clone(),
            state: Mutex::new(State::read(tree, declared.id)?),
            following: Mutex::new(()),
            enforcing: AtomicUsize::new(0),
            is_asked: AtomicBool::new(false),
            is_dropped: AtomicBool::new(false),
            is_kept_up: AtomicBool::new(false),
        };
        let mut known = self.known.lock();
        if let Some(other) = known.get(declared.id)? {
            return Ok(other);
        }
        Ok(Arc::clone(known.in_use.entry(declared.id).or_insert_with(|| Arc::new(index))))
    }

    /// Forgets an index that was dropped.
    pub(crate) fn forget(&self, id: u32) {
        let mut known = self.known.lock();
        known.dropped.insert(id);
        if let Some(index) = known.in_use.remove(&id) {
            index.is_dropped.store(true, Ordering::Release);
        }
    }

    /// Forgets those in use that the options of the collection say were dropped.
    pub(crate) fn forget_dropped(&self, options: &IndexOptions) {
        for index in self.in_use() {
            if options.has_dropped(index.id) {
                self.forget(index.id);
            }
        }
    }

    /// Those in use, by their ids.
    pub(crate) fn in_use(&self) -> Vec<Arc<Index>> {
        self.known.lock().in_use.values().map(Arc::clone).collect()
    }

    /// Whether one of them has something that no segment has.
    pub(crate) fn is_dirty(&self) -> bool {
        self.known.lock().in_use.values().any(|index| index.state.lock().is_dirty)
    }
}

impl Known {
    fn get(&self, id: u32) -> Result<Option<Arc<Index>>> {
        if self.dropped.contains(&id) {
            return Err(dropped());
        }
        Ok(self.in_use.get(&id).map(Arc::clone))
    }
}

impl Maker {
    /// One more who makes the index with an id.
    pub(crate) fn new(tree: &Arc<Tree>, id: u32) -> Self {
        *tree.indexes.makers.lock().entry(id).or_default() += 1;
        Self { tree: Arc::clone(tree), id }
    }

    /// Whether nobody else makes it.
    pub(crate) fn is_alone(&self) -> bool {
        self.tree.indexes.makers.lock().get(&self.id).is_none_or(|&makers| makers <= 1)
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        let mut makers = self.tree.indexes.makers.lock();
        match makers.get_mut(&self.id) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(makers.remove(&self.id)),
        }
    }
}

impl Enforcing<'_> {
    /// Has them refused for good: transactions that began before the definition says so ask the
    /// index.
    pub(crate) fn stay(mut self) {
        self.is_for_good = true;
    }
}

impl Drop for Enforcing<'_> {
    fn drop(&mut self) {
        if !self.is_for_good {
            self.index.enforcing.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl State {
    fn read(tree: &Tree, id: u32) -> Result<Self> {
        loop {
            let erasures = tree.erasures();
            let cell = tree.cells.get(&cell_key::index(tree.id(), id))?;
            let facts = cell.map(|cell| Facts::decode(&cell)).transpose()?.unwrap_or_default();
            if tree.erasures() == erasures {
                return Ok(Self { facts, erasures, ..Self::default() });
            }
        }
    }

    /// Adds a sorted run to a slab; approximate bytes that it takes.
    fn add(&mut self, slab: u32, mut run: Entries) -> usize {
        self.is_dirty = true;
        run.shrink();
        self.young.add(slab, run)
    }
}

impl Index {
    /// What is known of it. If something was erased of the records since, that is nothing.
    fn state(&self, tree: &Tree) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        let erasures = tree.erasures();
        if state.erasures != erasures {
            let generation = state.generation + 1;
            *state = State { generation, erasures, ..State::default() };
        }
        state
    }

    /// Whether it was dropped, so that its cells may be gone.
    fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Acquire)
    }

    /// Bytes of its cells.
    pub(crate) fn bytes(&self, tree: &Tree) -> Result<u64> {
        let mut bytes = 0;
        for found in tree.cells.scan(&cell_key::index(tree.id(), self.id))? {
            let (key, handle) = found?;
            bytes += (key.len() + handle.bytes()?) as u64;
        }
        Ok(bytes)
    }

    /// Sets aside what no segment has, for a checkpoint. It happens between two commits, so that
    /// nothing of it is of a later revision than the checkpoint writes.
    pub(crate) fn freeze(&self, tree: &Tree) {
        // What is let go comes back to the readers if it is not dropped after all.
        let kept = tree.data.read().kept_on_disk.clone();
        let mut state = self.state(tree);
        // What is being purged may be in it.
        if !state.is_dirty || tree.is_purging() {
            return;
        }
        let mut young = std::mem::take(&mut state.young);
        // What a checkpoint that failed was to write is written by this one.
        if let Some((failed, _)) = state.frozen.take() {
            young.extend(Arc::unwrap_or_clone(failed));
        }
        state.facts.trim(&kept);
        state.frozen = Some((Arc::new(young), state.facts.clone()));
        state.generation += 1;
    }

    /// Hands over the cells of what was set aside, in the order of their keys and one by one: all
    /// together they would take as much memory as all that is young.
    pub(crate) fn put_frozen(&self, tree: &Tree, push: &mut PutCell<'_>) -> Result<()> {
        let frozen = self.state(tree).frozen.clone();
        let Some((young, facts)) = frozen else { return Ok(()) };
        push(&cell_key::index(tree.id(), self.id), &facts.encode())?;
        young.cells((tree.id(), self.id), push)
    }

    /// What was set aside is in a segment.
    pub(crate) fn checkpointed(&self) {
        let mut state = self.state.lock();
        if let Some((_, written)) = state.frozen.take() {
            state.generation += 1;
            state.is_dirty = !state.young.is_empty() || written != state.facts;
        }
    }

    /// Asks whoever does what is due beside readers and writers to have it follow.
    pub(crate) fn ask_to_follow(&self) {
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked since it was last told so.
    pub(crate) fn was_asked_to_follow(&self) -> bool {
        self.is_asked.swap(false, Ordering::Relaxed)
    }

    /// Whether it lacks no more than what came since it was last written, or followed beside what
    /// others did.
    pub(crate) fn is_kept_up(&self) -> bool {
        self.is_kept_up.load(Ordering::Relaxed)
    }

    /// Says so, or that it lacks more.
    pub(crate) fn set_kept_up(&self, is_kept_up: bool) {
        self.is_kept_up.store(is_kept_up, Ordering::Relaxed);
    }

    /// Whether commits are to refuse keys that another record has, though no definition says so
    /// yet.
    pub(crate) fn is_enforced(&self) -> bool {
        self.enforcing.load(Ordering::Relaxed) > 0
    }

    /// Has commits refuse them from now on.
    pub(crate) fn enforce(&self) -> Enforcing<'_> {
        self.enforcing.fetch_add(1, Ordering::Relaxed);
        Enforcing { index: self, is_for_good: false }
    }
}

#[cfg(test)]
mod tests;
