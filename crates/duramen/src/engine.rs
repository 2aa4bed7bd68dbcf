//! One open database: its trees, its journal and its segments.
//!
//! Invariants:
//! - a tree has at most one object in memory, and only the holder of its turn changes it;
//! - commits are queued in the order of their sequence, with the rows of all their trees in place,
//!   so that a reader who sees the sequence sees all of it;
//! - a checkpoint begins between commits: what it writes is what was published then.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use rustc_hash::FxHashMap;

use crate::engine::record::Prepared;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Device, Lock};
use crate::journal::{Journal, JournalPoint, JournalPosition, Ticket};
use crate::manifest::{Feature, Manifest};
use crate::memory::Memory;
use crate::revision::{CommitSequence, Micros};
use crate::segment::Segment;
use crate::series::young::YoungSeries;
use crate::staging::Staging;
use crate::store::Store;
use crate::sync::{Mutex, RwLock};
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::data::TreeData;
use crate::tree::disk::TreeCells;
use crate::tree::persist;
use crate::tree::schema::Schema;
use crate::{Clock, Durability};

pub(crate) mod attach;
mod background;
pub(crate) mod catalogue;
mod checkpoint;
pub(crate) mod compaction;
mod following;
mod gone;
pub(crate) mod indexing;
pub(crate) mod options;
pub(crate) mod pin;
pub(crate) mod place;
pub(crate) mod purge;
pub(crate) mod recent;
pub(crate) mod record;
pub(crate) mod recovery;
mod retention;
pub(crate) mod room;
pub(crate) mod salvage;
mod sealing;
mod staging;
mod thinning;
pub(crate) mod unfinished;
mod unused;

use background::{Signal, Worker};
use compaction::Compaction;
use options::Options;
use purge::Purges;
use recent::Recent;
use room::Room;
use sealing::{SealSignal, Sealer};

/// The tree of the catalogue.
pub(crate) const CATALOGUE: TreeId = TreeId(0);

/// A handle to one open database.
#[derive(Debug)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
    owner: Owner,
}

/// Who ends the database when the handle is dropped.
#[derive(Debug)]
enum Owner {
    /// Somebody else: it is the handle of the thread of the database.
    Other,
    /// This handle, and with it the threads, if there are any.
    This(Option<Worker>, Option<Sealer>),
}

/// One open database.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) options: Options,
    pub(crate) id: u128,
    /// Whether opening made the database.
    pub(crate) was_created: bool,
    /// How many commits keep a name for a document that is loaded, and say nothing else.
    kept_names: AtomicU64,
    /// None if opened for reading.
    journal: Option<Journal>,
    view: RwLock<Arc<View>>,
    /// What the manifest says. It is not held for longer than writing it takes.
    manifest: Mutex<Manifest>,
    /// Held by whoever moves the checkpoint, or goes to that of the writer.
    checkpoints: Mutex<()>,
    /// Commits are queued with it shared; a checkpoint takes it alone to begin.
    gate: RwLock<()>,
    signal: Arc<Signal>,
    /// The budget for what no checkpoint has written and for what is decoded.
    memory: Arc<Memory>,
    compaction: Mutex<Option<Compaction>>,
    room: Room,
    /// Points that are no commit yet.
    pub(crate) staging: Staging,
    sealing: Arc<SealSignal>,
    /// Compactions that put their segment in place since the database was opened.
    compactions: AtomicU64,
    /// Bytes of cells that compactions went through since then.
    compacted_bytes: AtomicU64,
    /// Series that were deleted, and of which nothing is left.
    gone_series: Mutex<gone::Gone>,
    /// Held by whoever purges.
    pub(crate) purges: Mutex<Purges>,
    /// Whether the manifest says that a purge is under way, for those who do not take its lock.
    erases: Arc<AtomicBool>,
    /// Segments that may have what is purged, until they are overwritten.
    given_up: Mutex<Vec<Arc<Segment>>>,
    lock: Option<Box<dyn Lock>>,
}

/// What readers and the writer work on. A refresh of a database opened for reading replaces it.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) store: Arc<Store>,
    trees: Mutex<Trees>,
    /// Points that no checkpoint has written.
    pub(crate) series: YoungSeries,
    /// What the last commits changed.
    pub(crate) recent: Mutex<Recent>,
    /// The last commit to be seen, if there is no journal to ask.
    fixed: Option<CommitSequence>,
    /// Where the journal ended when it was read beside a writer.
    end: Option<JournalPoint>,
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
    /// How many trees there were after idle ones were last dropped for others to be opened.
    kept: usize,
}

/// Approximate bytes that a commit takes in memory beside its states.
const COMMIT_BYTES: usize = 64;

impl View {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        let (trees, recent) = (Mutex::default(), Mutex::default());
        Self { store, trees, series: YoungSeries::default(), recent, fixed: None, end: None }
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
            self.store.memory().settle();
            let known = |schema| self.trees.lock().schemas.get(&schema).cloned();
            let (tree, schema) = match persist::open(id, &self.store, known)? {
                Some((tree, schema)) => (tree, Some(schema)),
                None => (self.new_tree(id), None),
            };
            let mut trees = self.trees.lock();
            if trees.generation != generation {
                continue;
            }
            trees.schemas.extend(schema);
            if trees.open.len() > 2 * trees.kept + self.store.memory().idle_trees() {
                trees.drop_idle();
                trees.kept = trees.open.len();
            }
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
        self.trees.lock().drop_idle();
    }

    /// Approximate bytes of what replaying the journal has put into trees.
    fn take_young_bytes(&self) -> usize {
        let taken = |tree: Arc<Tree>| {
            let apart = tree.blobs.young_bytes() + tree.orders.young_bytes();
            std::mem::take(&mut tree.data.write().young_bytes) + apart
        };
        self.open_trees().into_iter().map(taken).sum::<usize>() + self.series.bytes()
    }
}

impl Trees {
    fn drop_idle(&mut self) {
        self.generation += 1;
        // Nearly every call looks into the catalogue.
        let is_held = |id: &TreeId, tree: &Arc<Tree>| {
            *id == CATALOGUE || Arc::strong_count(tree) > 1 || tree.is_dirty()
        };
        self.open.retain(|id, tree| is_held(id, tree));
        self.schemas.retain(|_, schema| Arc::strong_count(schema) > 1);
        self.alike.retain(|_, schema| Arc::strong_count(schema) > 1);
        self.open.shrink_to_fit();
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
    #[inline]
    pub(crate) fn journal(&self) -> Result<&Journal> {
        self.journal.as_ref().ok_or_else(read_only)
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
        if !prepared.gives_room() {
            self.wait_for_room()?;
        }
        match self.append(prepared, durability) {
            Err(refused) if refused.kind() == ErrorKind::Full && prepared.fits() => {
                self.queue_full(prepared, durability, refused)
            }
            queued => queued,
        }
    }

    /// Queues a commit, `Full` if the journal has no room for it.
    fn append(&self, prepared: &Prepared<'_>, durability: Durability) -> Result<Ticket> {
        let journal = self.journal()?;
        let _between_checkpoints = self.gate.read();
        let body = Cow::Borrowed(prepared.body.as_slice());
        let (view, mut bytes) = (self.view(), COMMIT_BYTES);
        let ticket = journal.append(body, durability, |sequence, committed, _| {
            bytes += prepared.young_bytes();
            prepared.stage(&view, sequence, committed);
            view.recent.lock().push(sequence, prepared.trees());
        })?;
        self.memory.add_young(bytes);
        Ok(ticket)
    }

    /// Waits until a queued commit is acknowledged; then has done what is due.
    pub(crate) fn acknowledge(&self, ticket: Ticket) -> Result<()> {
        self.journal()?.wait(ticket)?;
        self.work_if_due();
        Ok(())
    }

    /// Whether a thread does what is due beside the commits.
    #[inline]
    fn has_worker(&self) -> bool {
        self.options.background && self.journal.is_some()
    }

    /// Ends the work in order.
    pub(crate) fn close(mut self) -> Result<()> {
        self.end_worker();
        self.shut()
    }

    /// Ends the threads of the database, if this handle has them.
    fn end_worker(&mut self) {
        if let Owner::This(worker, sealer) = &mut self.owner {
            sealer.take().into_iter().for_each(Sealer::end);
            worker.take().into_iter().for_each(Worker::end);
        }
    }

    /// Has the manifest say, before anything else does, that the database has a feature.
    pub(crate) fn enable(&self, feature: Feature) -> Result<()> {
        let mut manifest = self.manifest.lock();
        if manifest.features_read & feature as u64 != 0 {
            return Ok(());
        }
        let mut next = manifest.clone();
        next.add(feature);
        next.store(self.device.as_ref())?;
        *manifest = next;
        Ok(())
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

    /// The highest number that a segment was given; 0 if there never was one.
    pub(crate) fn last_segment(&self) -> u64 {
        self.manifest.lock().next_segment.saturating_sub(1)
    }

    /// The time now, not before the last commit.
    pub(crate) fn now(&self) -> Micros {
        self.clock().now().max(self.last_timestamp())
    }

    fn last_timestamp(&self) -> Micros {
        self.journal.as_ref().map_or(Micros(i64::MIN), |journal| journal.tail().timestamp)
    }
}

#[cold]
fn read_only() -> Error {
    let message = "the database was opened for reading: open it for writing to change it";
    Error::new(ErrorKind::Denied, message)
}

impl Deref for Engine {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.end_worker();
        if let Owner::This(..) = self.owner {
            // Without it the next open replays more and reports as after a crash; nothing is lost.
            let _ = self.shut();
        }
    }
}
