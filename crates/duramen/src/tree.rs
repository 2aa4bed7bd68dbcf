//! One versioned JSON value: columnar by path, versioned by runs.
//!
//! Invariants:
//! - one writer at a time has the tree's turn; readers never wait for it longer than one change
//!   takes to be put in place;
//! - no lock is held over I/O, callbacks or output: what is missing under the lock is loaded
//!   without it, and the read is tried again;
//! - the cost of a read follows the nodes read, never the number of revisions.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::index::Indexes;
use crate::limits::{REVISIONS_MAX, TURN_WAIT_MS};
use crate::memory::{Hold, Resident, TreeNumber};
use crate::node::{Move, NodeId};
use crate::options::LastOptions;
use crate::revision::{CommitSequence, Revision};
use crate::sync::{self, ArcMutexGuard, Mutex, RawMutex, RwLock};
use crate::tree::blobs::Blobs;
use crate::tree::cell_key::TreeId;
use crate::tree::data::TreeData;
use crate::tree::disk::{LargeGroup, Load, Loaded, TreeCells};
use crate::tree::group::{Fault, GroupId};
use crate::tree::orders::Orders;
use crate::tree::rows::Row;
use crate::tree::schema::SpaceId;

pub use changes::{NodeChange, Scope};
pub use difference::{Change, ChangeKind, Diff, DiffCounts, DiffOptions, DiffStat, MemberMove};
pub use history::{Value, ValueRun};
pub use missing::nearest;
pub use moved::MovedFrom;
pub use serialize::Format;

mod births;
pub(crate) mod blobs;
pub(crate) mod cell_key;
pub(crate) mod changes;
pub(crate) mod children;
pub(crate) mod compare;
pub(crate) mod conditions;
pub(crate) mod data;
pub(crate) mod declared;
pub(crate) mod delta;
pub(crate) mod departed;
pub(crate) mod difference;
pub(crate) mod disk;
pub(crate) mod edit;
pub(crate) mod encoded;
pub(crate) mod erase;
pub(crate) mod first_states;
pub(crate) mod group;
pub(crate) mod hashes;
pub(crate) mod history;
pub(crate) mod inspect;
pub(crate) mod kept;
mod key_search;
pub(crate) mod keys;
mod let_go;
pub(crate) mod locate;
pub(crate) mod merge;
pub(crate) mod missing;
pub(crate) mod moments;
pub(crate) mod moved;
mod noted;
pub(crate) mod orders;
pub(crate) mod persist;
mod print;
pub(crate) mod record_get;
pub(crate) mod record_keys;
mod record_rows;
pub(crate) mod records;
mod regained;
pub(crate) mod rows;
pub(crate) mod salvage;
pub(crate) mod sameness;
pub(crate) mod scan;
pub(crate) mod schema;
pub(crate) mod serialize;
pub(crate) mod stored_records;
pub(crate) mod strips;
pub(crate) mod superseded;
pub(crate) mod vectors;
pub(crate) mod verify;
pub(crate) mod writer;
pub(crate) mod young;

/// Approximate bytes of a tree in memory of which nothing is loaded.
pub(crate) const TREE_BYTES: usize = 1 << 10;

/// Parts that one read may miss one after the other before what it has loaded is held.
const FAULTS_MAX: usize = 8;

/// A tree.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) cells: TreeCells,
    pub(crate) data: Arc<RwLock<TreeData>>,
    pub(crate) orders: Orders,
    pub(crate) blobs: Blobs,
    pub(crate) options: LastOptions,
    pub(crate) indexes: Indexes,
    /// By which its records are known that were read by key.
    number: TreeNumber,
    turn: Arc<Mutex<()>>,
    /// Whether a purge of it is under way: then nobody writes it.
    is_purging: AtomicBool,
    /// How many background steps began to take the turn, and how many of them are over.
    passing: AtomicU64,
    passed: AtomicU64,
    /// Bytes of the last whole value printed: the room that the next one is given at once.
    printed_bytes: AtomicUsize,
}

/// The right to write a tree.
pub(crate) struct Turn {
    _guard: ArcMutexGuard<RawMutex, ()>,
}

/// The same for a background step, which has it for a moment: who would not wait for it otherwise
/// waits until it is over.
#[derive(Debug)]
pub(crate) struct PassingTurn {
    // Given back before it is told.
    _turn: Turn,
    _passing: Passing,
}

/// Tells at its end that a background step has the turn no more.
#[derive(Debug)]
struct Passing(Arc<Tree>);

impl Drop for Passing {
    fn drop(&mut self) {
        self.0.passed.fetch_add(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Turn")
    }
}

/// What a read that is tried again and again has missed.
#[derive(Debug, Default)]
struct Faults<'t> {
    missed: usize,
    /// A read that needs many parts at once has to keep them until it has all.
    hold: Option<Hold<'t>>,
}

impl<'t> Faults<'t> {
    fn load(&mut self, tree: &'t Tree, load: Load) -> Result<()> {
        self.missed += 1;
        if self.missed >= FAULTS_MAX {
            self.hold.get_or_insert_with(|| tree.cells.memory().hold());
        }
        tree.load(load)
    }
}

impl Tree {
    /// A tree of which `data` is known and the first `orders` and `blobs` are on disk.
    pub(crate) fn new(cells: TreeCells, mut data: TreeData, orders: u64, blobs: u64) -> Self {
        let number = cells.memory().recent().number_tree();
        data.forget_recent_in(cells.memory(), number);
        Self {
            orders: Orders::new(cells.clone(), orders),
            blobs: Blobs::new(cells.clone(), blobs),
            cells,
            data: Arc::new(RwLock::new(data)),
            options: LastOptions::default(),
            indexes: Indexes::default(),
            number,
            turn: Arc::default(),
            is_purging: AtomicBool::new(false),
            passing: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            printed_bytes: AtomicUsize::new(0),
        }
    }

    pub(crate) fn id(&self) -> TreeId {
        self.cells.tree()
    }

    /// The right to write, waited for so many milliseconds; none if somebody else keeps it.
    pub(crate) fn turn(&self, wait_ms: u64) -> Option<Turn> {
        let guard = sync::lock_for(&self.turn, Duration::from_millis(wait_ms))?;
        Some(Turn { _guard: guard })
    }

    /// The same for a background step, not waited for.
    pub(crate) fn passing_turn(self: &Arc<Self>) -> Option<PassingTurn> {
        self.passing.fetch_add(1, Ordering::SeqCst);
        let passing = Passing(Arc::clone(self));
        Some(PassingTurn { _turn: self.turn(0)?, _passing: passing })
    }

    /// The right to write, not waited for unless a background step has it for a moment: none if
    /// somebody else keeps it.
    pub(crate) fn turn_at_once(&self) -> Option<Turn> {
        for _ in 0..TURN_WAIT_MS {
            let passed = self.passed.load(Ordering::SeqCst);
            let turn = self.turn(0);
            // Without a background step in between, who has it is none.
            if turn.is_some() || self.passing.load(Ordering::SeqCst) == passed {
                return turn;
            }
            if let Some(guard) = sync::lock_soon(&self.turn) {
                return Some(Turn { _guard: guard });
            }
        }
        None
    }

    /// Whether within so many milliseconds there is a moment in which nobody has the right to
    /// write.
    pub(crate) fn is_turn_free(&self, wait_ms: u64) -> bool {
        sync::is_free_within(&self.turn, Duration::from_millis(wait_ms))
    }

    /// Whether a purge of the tree is under way, so that nobody may write it.
    pub(crate) fn is_purging(&self) -> bool {
        self.is_purging.load(Ordering::Relaxed)
    }

    /// Closes the tree to writers for a purge, or opens it again. Who closes it has its turn.
    pub(crate) fn set_purging(&self, is_purging: bool) {
        self.is_purging.store(is_purging, Ordering::Relaxed);
    }

    /// Reads under the lock; what is missing is loaded without it, then `read` runs again.
    pub(crate) fn read<T>(&self, mut read: impl FnMut(&TreeData) -> Result<T, Fault>) -> Result<T> {
        let mut faults = Faults::default();
        loop {
            let result = read(&self.data.read());
            match result {
                Ok(value) => return Ok(value),
                Err(Fault::Error(error)) => return Err(error),
                Err(Fault::Load(load)) => faults.load(self, *load)?,
            }
        }
    }

    /// Changes under the lock; what is missing is loaded without it, then `change` runs again.
    pub(crate) fn change<T>(
        &self,
        mut change: impl FnMut(&mut TreeData) -> Result<T, Fault>,
    ) -> Result<T> {
        let mut faults = Faults::default();
        loop {
            let result = change(&mut self.data.write());
            match result {
                Ok(value) => return Ok(value),
                Err(Fault::Error(error)) => return Err(error),
                Err(Fault::Load(load)) => faults.load(self, *load)?,
            }
        }
    }

    /// Loads what a read under the lock missed; the lock is not held meanwhile.
    pub(crate) fn load(&self, load: Load) -> Result<()> {
        self.load_part(load)?;
        self.cells.memory().settle();
        Ok(())
    }

    /// Counts what is about to be decoded of a row group.
    fn resident(&self, id: GroupId) -> Arc<Resident> {
        let data: Weak<RwLock<TreeData>> = Arc::downgrade(&self.data);
        Resident::new(self.cells.memory(), data, id)
    }

    fn load_part(&self, load: Load) -> Result<()> {
        match load {
            Load::Group(id) => self.load_group(id, |_| {}),
            Load::Whole(id, revision) => self.load_group(id, |group| group.load_runs(revision)),
            Load::Base(disk, cell) => disk.load(cell),
            Load::Run(disk, column, wanted) => {
                let found = vec![(wanted, disk.find_run(column, wanted)?)];
                self.data.write().attach_runs((&disk, column), found);
                Ok(())
            }
            Load::Runs(disk, column, revisions) => {
                let found = disk.find_runs(column, revisions)?;
                self.data.write().attach_runs((&disk, column), found);
                Ok(())
            }
            Load::Directory(id) => {
                let (schema, disk) = {
                    let data = self.data.read();
                    (Arc::clone(&data.schema), data.disk_state())
                };
                let newest = history::short(Revision(disk.revisions));
                let resident = self.resident(id);
                let directory = self.cells.load_directory(id, &schema, newest, resident)?;
                self.data.write().attach(id, Loaded::Large(directory), disk)
            }
        }
    }

    /// Loads the directories of row groups that are about to be scanned, those that follow each
    /// other together; `groups` rise.
    pub(crate) fn load_directories(
        &self,
        space: SpaceId,
        groups: impl Iterator<Item = u32>,
    ) -> Result<()> {
        let (schema, disk, missing) = {
            let data = self.data.read();
            let groups = groups.map(|group| GroupId { space, group });
            let missing: Vec<_> = groups.filter(|id| data.misses_directory(*id)).collect();
            (Arc::clone(&data.schema), data.disk_state(), missing)
        };
        let newest = history::short(Revision(disk.revisions));
        for ids in missing.chunk_by(|one, next| one.group + 1 == next.group) {
            let resident = |id| self.resident(id);
            let found = self.cells.load_directories(ids, &schema, newest, resident)?;
            let mut data = self.data.write();
            for (id, directory) in found {
                data.attach(id, Loaded::Large(directory), disk)?;
            }
        }
        self.cells.memory().settle();
        Ok(())
    }

    /// Loads a row group; if it is a large one, with what `add` loads of it.
    fn load_group(&self, id: GroupId, add: impl FnOnce(&mut LargeGroup)) -> Result<()> {
        let (schema, disk) = {
            let data = self.data.read();
            (Arc::clone(&data.schema), data.disk_state())
        };
        let newest = history::short(Revision(disk.revisions));
        let resident = self.resident(id);
        let mut loaded = self.cells.load_group(id, &schema, newest, resident)?;
        if let Loaded::Large(group) = &mut loaded {
            add(group);
        }
        self.data.write().attach(id, loaded, disk)
    }

    /// How often something was erased on disk since the tree was opened.
    pub(crate) fn erasures(&self) -> u64 {
        self.data.read().disk_state().erasures
    }

    /// The newest revision that was queued, published or not.
    pub(crate) fn newest(&self) -> Revision {
        Revision(u64::from(self.data.read().staged_revision()) - 1)
    }

    /// The newest revision of a commit at or before `sequence`; 0 if there is none.
    pub(crate) fn head_at(&self, sequence: CommitSequence) -> Result<Revision> {
        let (before, head, known) = {
            let data = self.data.read();
            let rows = &data.rows;
            (rows.before(), rows.last_at(sequence), rows.sequence_before())
        };
        if head > before || before == 0 {
            return Ok(Revision(head));
        }
        let newest = if let Some(known) = known {
            known
        } else {
            let newest = self.row(Revision(before))?.sequence;
            self.data.read().rows.note_before(before, newest);
            newest
        };
        if newest <= sequence {
            return Ok(Revision(before));
        }
        let after = self.first_where(before, |row| row.sequence > sequence)?;
        Ok(Revision(after.0 - 1))
    }

    /// The row of a revision that exists.
    pub(crate) fn row(&self, revision: Revision) -> Result<Row> {
        {
            let data = self.data.read();
            data.kept.check(history::short(revision))?;
            if let Some(row) = data.rows.get(revision) {
                return Ok(row);
            }
        }
        self.cells.row(revision)
    }

    /// The nodes that a revision, or the staged transaction after the last one, changed; births
    /// left out.
    pub(crate) fn changed(&self, revision: Revision) -> Result<Vec<NodeId>> {
        {
            let data = self.data.read();
            if let Some(changed) = data.rows.changed(revision) {
                return Ok(changed.to_vec());
            }
            if revision.0 > data.rows.last() {
                return Ok(data.touched().to_vec());
            }
        }
        let changed = self.cells.changed(revision)?;
        self.check_paths(revision, changed.iter())?;
        Ok(changed)
    }

    /// How many nodes a revision changed; births left out.
    pub(crate) fn changed_count(&self, revision: Revision) -> Result<usize> {
        if let Some(changed) = self.data.read().rows.changed(revision) {
            return Ok(changed.len());
        }
        self.cells.changed_count(revision)
    }

    /// Refuses nodes of paths that the tree does not have.
    fn check_paths<'n>(
        &self,
        revision: Revision,
        mut nodes: impl Iterator<Item = &'n NodeId>,
    ) -> Result<()> {
        let data = self.data.read();
        let Some(node) = nodes.find(|node| !data.schema.has_path(node.path())) else {
            return Ok(());
        };
        let message = format!("revision {revision} changed node {node}, which is not there");
        Err(Error::new(ErrorKind::Corrupt, message))
    }

    /// The subtrees that a revision moved to other paths, or renamed; none where the one before it
    /// was dropped.
    pub(crate) fn moves(&self, revision: Revision) -> Result<Vec<Move>> {
        {
            let data = self.data.read();
            // They lead to the revision before, which is not there.
            if !data.kept.is_all() && revision.0 <= u64::from(data.kept.first()) {
                return Ok(Vec::new());
            }
            if let Some(moves) = data.rows.moves(revision) {
                return Ok(moves.to_vec());
            }
        }
        let moves = self.cells.moves(revision)?;
        self.check_paths(revision, moves.iter().flat_map(|moved| [&moved.to, &moved.from]))?;
        Ok(moves)
    }

    /// The revision that the history begins with.
    pub(crate) fn first_revision(&self) -> u64 {
        self.data.read().kept.first().into()
    }

    /// Which revisions are kept.
    pub(crate) fn kept(&self) -> kept::Kept {
        self.data.read().kept.clone()
    }

    /// Refuses a revision that was dropped.
    pub(crate) fn check_kept(&self, revision: Revision) -> Result<()> {
        self.data.read().kept.check(history::short(revision))
    }

    /// The first kept revision up to `last` whose row `is_past` says so of, by bisection; the one
    /// after `last` if none does. Of those before the history begins only the last are asked.
    pub(crate) fn first_where(
        &self,
        last: u64,
        is_past: impl Fn(&Row) -> bool,
    ) -> Result<Revision> {
        let first = self.first_revision();
        let (mut low, mut high) = (first.min(last + 1), last + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_past(&self.row(Revision(middle))?) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        // A revision kept for its tag may come right before.
        while low > 1
            && low <= first
            && self.check_kept(Revision(low - 1)).is_ok()
            && is_past(&self.row(Revision(low - 1))?)
        {
            low -= 1;
        }
        Ok(Revision(low))
    }

    /// Refuses to begin a revision that numbers cannot count.
    pub(crate) fn check_revisions(&self) -> Result<()> {
        if self.data.read().rows.last() >= REVISIONS_MAX {
            let message = "the document has as many revisions as can be counted (2^32 - 2): \
                           go on in a new document";
            return Err(Error::new(ErrorKind::Full, message));
        }
        Ok(())
    }
}
