//! One open database: its trees, its journal and its segments.
//!
//! Invariants:
//! - a tree has at most one object in memory, and only the holder of its turn changes it;
//! - commits are queued in the order of their sequence, with the rows of all their trees in place,
//!   so that a reader who sees the sequence sees all of it;
//! - a checkpoint happens between commits: what it writes is what was published then.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use crate::engine::record::Prepared;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Device, Lock};
use crate::journal::{Journal, JournalPosition, Ticket};
use crate::manifest::Manifest;
use crate::revision::{CommitSequence, Micros};
use crate::store::Store;
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::data::TreeData;
use crate::tree::disk::TreeCells;
use crate::tree::persist;
use crate::tree::schema::Schema;
use crate::{Clock, Durability};

pub(crate) mod catalogue;
mod checkpoint;
mod compaction;
pub(crate) mod options;
pub(crate) mod pin;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod unfinished;
pub(crate) mod salvage;

use compaction::Compaction;
use options::Options;

/// The tree of the catalogue.
pub(crate) const CATALOGUE: TreeId = TreeId(0);

/// One open database.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) options: Options,
    pub(crate) id: u128,
    /// Whether opening made the database.
    pub(crate) was_created: bool,
    /// None if opened for reading.
    journal: Option<Journal>,
    view: RwLock<Arc<View>>,
    manifest: Mutex<Manifest>,
    /// Commits are queued with it shared; a checkpoint takes it alone.
    gate: RwLock<()>,
    /// Approximate bytes of what no checkpoint has written.
    young_bytes: AtomicUsize,
    compaction: Mutex<Option<Compaction>>,
    _lock: Option<Box<dyn Lock>>,
}

/// What readers and the writer work on. A refresh of a database opened for reading replaces it.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) store: Arc<Store>,
    trees: Mutex<Trees>,
    /// The last commit to be seen, if there is no journal to ask.
    fixed: Option<CommitSequence>,
}

#[derive(Debug, Default)]
struct Trees {
    open: FxHashMap<TreeId, Arc<Tree>>,
    /// Schemas that trees share, by their content on disk.
    schemas: FxHashMap<u128, Arc<Schema>>,
    /// Schemas of new trees, by a hash: equal ones are kept once.
    alike: FxHashMap<u64, Arc<Schema>>,
    /// Rises when idle trees are dropped.
    generation: u64,
}

/// Approximate bytes that a commit takes in memory beside its states.
const COMMIT_BYTES: usize = 64;

impl View {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, trees: Mutex::default(), fixed: None }
    }

    /// The tree with this number; an empty one if there is nothing of it on disk.
    pub(crate) fn tree(&self, id: TreeId) -> Result<Arc<Tree>> {
        loop {
            let generation = {
                let trees = self.trees.lock();
                if let Some(tree) = trees.open.get(&id) {
                    return Ok(Arc::clone(tree));
                }
                trees.generation
            };
            let mut schemas = self.trees.lock().schemas.clone();
            let tree = match persist::open(id, &self.store, &mut schemas)? {
                Some(tree) => tree,
                None => self.new_tree(id),
            };
            let mut trees = self.trees.lock();
            if trees.generation != generation {
                continue;
            }
            trees.schemas.extend(schemas);
            return Ok(Arc::clone(trees.open.entry(id).or_insert_with(|| Arc::new(tree))));
        }
    }

    fn new_tree(&self, id: TreeId) -> Tree {
        let schema = Arc::new(Schema::new(id == CATALOGUE));
        let cells = TreeCells::new(id, Arc::clone(&self.store));
        Tree::new(cells, TreeData::new(schema), 0, 0)
    }

    /// The trees in memory.
    fn open_trees(&self) -> Vec<Arc<Tree>> {
        let mut trees: Vec<_> = self.trees.lock().open.values().cloned().collect();
        trees.sort_unstable_by_key(|tree| tree.id());
        trees
    }

    /// Drops the trees that nobody holds and that have nothing to write.
    fn drop_idle(&self) {
        let mut trees = self.trees.lock();
        trees.generation += 1;
        trees.open.retain(|_, tree| Arc::strong_count(tree) > 1 || tree.is_dirty());
        trees.schemas.retain(|_, schema| Arc::strong_count(schema) > 1);
        trees.alike.retain(|_, schema| Arc::strong_count(schema) > 1);
    }
}

impl Engine {
    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read())
    }

    /// The last commit that readers may see.
    pub(crate) fn published(&self) -> CommitSequence {
        match &self.journal {
            Some(journal) => journal.published(),
            None => self.view.read().fixed.unwrap_or_default(),
        }
    }

    /// The journal, for those who write.
    pub(crate) fn journal(&self) -> Result<&Journal> {
        self.journal.as_ref().ok_or_else(|| {
            let message = "the database was opened for reading: open it for writing to change it";
            Error::new(ErrorKind::Denied, message)
        })
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.options.clock
    }

    /// Shares one schema among trees that were built alike.
    pub(crate) fn share_schema(&self, tree: &Tree) {
        let schema = Arc::clone(&tree.data.read().schema);
        let view = self.view();
        let mut trees = view.trees.lock();
        let shared =
            trees.alike.entry(schema.content_hash()).or_insert_with(|| Arc::clone(&schema));
        if !Arc::ptr_eq(shared, &schema) && shared.same_as(&schema) {
            tree.data.write().schema = Arc::clone(shared);
        }
    }

    /// Queues a commit of staged trees; the ticket says when it is acknowledged.
    pub(crate) fn queue(&self, prepared: &Prepared<'_>, durability: Durability) -> Result<Ticket> {
        let journal = self.journal()?;
        let _between_checkpoints = self.gate.read();
        let bytes = COMMIT_BYTES + prepared.young_bytes();
        let body = Cow::Borrowed(prepared.body.as_slice());
        let ticket = journal.append(body, durability, |sequence, committed, _| {
            prepared.stage(sequence, committed);
        })?;
        self.young_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(ticket)
    }

    /// Waits until a queued commit is acknowledged; then writes a checkpoint if one is due.
    pub(crate) fn acknowledge(&self, ticket: Ticket) -> Result<()> {
        self.journal()?.wait(ticket)?;
        if self.is_checkpoint_due() {
            // The commit itself is safe; a checkpoint that fails is tried again with the next.
            let _ = self.checkpoint();
        }
        Ok(())
    }

    fn is_checkpoint_due(&self) -> bool {
        let young = self.young_bytes.load(Ordering::Relaxed);
        if young >= self.options.memory_bytes / 2 {
            return true;
        }
        // Asking the journal takes its lock, so it is asked only now and then.
        let journal_max = self.options.checkpoint_journal_bytes;
        if young < journal_max / 4 {
            return false;
        }
        // Whoever writes a checkpoint has the manifest: another one is not due meanwhile, and the
        // commit does not wait for it.
        let manifest = self.manifest.try_lock();
        let position = manifest.map(|manifest| manifest.checkpoint.position);
        position.is_some_and(|position| self.journal_bytes_since(position) >= journal_max)
    }

    /// Bytes of the journal since the last checkpoint.
    pub(crate) fn journal_bytes(&self) -> usize {
        let position = self.manifest.lock().checkpoint.position;
        self.journal_bytes_since(position)
    }

    fn journal_bytes_since(&self, position: JournalPosition) -> usize {
        let bytes = self.journal.as_ref().map_or(0, |journal| journal.bytes_since(position));
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        self.view().store.infos().iter().map(crate::segment::SegmentInfo::file_bytes).sum()
    }

    /// The time now, not before the last commit.
    pub(crate) fn now(&self) -> Micros {
        self.clock().now().max(self.last_timestamp())
    }

    fn last_timestamp(&self) -> Micros {
        self.journal.as_ref().map_or(Micros(i64::MIN), |journal| journal.tail().timestamp)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Without it the next open replays more and reports as after a crash; nothing is lost.
        let _ = self.shut();
    }
}
