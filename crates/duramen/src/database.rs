//! A database: a folder of documents, opened by one process for writing.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::check::CheckReport;
use crate::collection::{CollectionSnapshot, no_collection};
use crate::document::Document;
use crate::engine::Engine;
use crate::engine::options::{CommitOptions, Options};
use crate::engine::place;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Device, DirectoryDevice, MemoryDevice};
pub use crate::memory::MemoryShare;
use crate::purge;
use crate::revision::{CommitSequence, Revision};
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;
use crate::tree::Tree;
use crate::tree::history::short;

/// An open database. Clones are handles to the same one; the last one dropped closes it.
///
/// ```
/// use duramen::{CommitOptions, Database, Revision};
///
/// let db = Database::memory()?;
/// let config = db.create_document("config")?;
/// config.put(r#"{"port":8080}"#, &CommitOptions::default())?;
/// config.put(r#"{"port":9090}"#, &CommitOptions::default())?;
/// assert_eq!(config.at(Revision(1))?.to_json()?, r#"{"port":8080}"#);
/// assert_eq!(config.head()?.to_json()?, r#"{"port":9090}"#);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) engine: Arc<Engine>,
}

/// All documents as of one commit.
#[derive(Debug, Clone)]
pub struct DatabaseSnapshot {
    pub(crate) engine: Arc<Engine>,
    pub(crate) sequence: CommitSequence,
}

/// What an open database has done since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Commits queued.
    pub commits: u64,
    /// Groups of commits written.
    pub groups: u64,
    /// Syncs of the journal.
    pub syncs: u64,
    /// Bytes written to the journal.
    pub journal_bytes: u64,
    /// Compactions that replaced segments.
    pub compactions: u64,
    /// Bytes of cells that compactions went through. One that was interrupted goes on where it was.
    pub compacted_bytes: u64,
}

/// The size of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DatabaseStats {
    /// Documents that exist and are not deleted.
    pub documents: u64,
    /// Series that exist.
    pub series: u64,
    /// The last commit.
    pub sequence: CommitSequence,
    /// How often the database was opened after an unclean end, plus 1.
    pub epoch: u64,
    /// Live segments.
    pub segments: u64,
    /// Bytes of the live segments.
    pub segment_bytes: u64,
    /// Of these, about as many as compacting gives back of what documents do not
    /// [retain](Document::retain), but for what was removed from something that stays. Counting
    /// them reads the keys of what such documents store.
    pub superseded_bytes: u64,
    /// Bytes of the journal since the last checkpoint; 0 if opened for reading.
    pub journal_bytes: u64,
}

impl Database {
    /// Opens the database in a folder, or makes it.
    ///
    /// `Busy` if another process writes it, `NotFound` if there is none and it is not to be made.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        let device: Arc<dyn Device> = Arc::new(DirectoryDevice::new(path));
        Self::open_device(device, options).map_err(|error| error.in_context(path.display()))
    }

    /// Opens the database of a device, or makes it.
    pub fn open_device(device: Arc<dyn Device>, options: Options) -> Result<Self> {
        let hurry = Arc::clone(&options.hurry);
        let engine = Arc::new(Engine::open(device, options)?);
        if engine.is_purging() && engine.journal().is_ok() {
            let mut unless_in_a_hurry = |_read, _total| {
                let is_left = hurry.load(Ordering::Relaxed);
                if is_left { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            // What cannot go on now, such as on a full disk, is no reason to have no database: the
            // document stays closed to writers, and says so.
            let _ = purge::finish(&engine, &mut unless_in_a_hurry);
        }
        Ok(Self { engine })
    }

    /// Makes a database in memory: the same engine, gone when it is dropped.
    pub fn memory() -> Result<Self> {
        let options = Options { background: false, ..Options::default() };
        Self::open_device(Arc::new(MemoryDevice::new()), options)
    }

    /// Whether a path, the folders of which are no links, is that of a file which a database has or
    /// may come to have: whoever wrote another one there would destroy it.
    pub fn has_place(path: &Path) -> bool {
        place::is_of_database(path)
    }

    /// The number that tells this database from all others.
    pub fn id(&self) -> u128 {
        self.engine.id
    }

    /// Whether opening made the database.
    pub fn was_created(&self) -> bool {
        self.engine.was_created
    }

    /// Makes a document without revisions; `Conflict` if there is one of that name, deleted or not.
    pub fn create_document(&self, name: &str) -> Result<Document> {
        let mut transaction = self.transaction();
        transaction.create_document(name)?;
        transaction.commit(&CommitOptions::default())?;
        self.document(name)
    }

    /// A document, deleted or not; `NotFound` if there is none of that name.
    pub fn document(&self, name: &str) -> Result<Document> {
        let tree = self.engine.document(name)?;
        Ok(Document::new(Arc::clone(&self.engine), tree, name))
    }

    /// The names of the documents, sorted; deleted ones left out.
    pub fn documents(&self) -> Result<Vec<String>> {
        self.engine.view().documents(self.engine.published())
    }

    /// Begins a transaction over any number of documents.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(Arc::clone(&self.engine))
    }

    /// All documents as of the last commit.
    pub fn snapshot(&self) -> DatabaseSnapshot {
        let sequence = self.engine.published();
        DatabaseSnapshot { engine: Arc::clone(&self.engine), sequence }
    }

    /// The database as of a commit, as [`Committed::sequence`](crate::Committed::sequence) tells
    /// it; the last one if there is no such commit yet.
    pub fn snapshot_at(&self, sequence: CommitSequence) -> DatabaseSnapshot {
        let sequence = sequence.min(self.engine.published());
        DatabaseSnapshot { engine: Arc::clone(&self.engine), sequence }
    }

    /// Memory for whoever reads the database now: it keeps so much less of what it reads as is
    /// held there, so that both stay within `bytes`, or [`Options::memory_bytes`] if that is less.
    pub fn share_memory(&self, bytes: usize) -> MemoryShare {
        MemoryShare::new(Arc::clone(self.engine.view().store.memory()), bytes)
    }

    /// Makes every commit so far durable, whatever was promised for it.
    pub fn flush(&self) -> Result<()> {
        self.engine.seal_durably()
    }

    /// Writes what is only in the journal into a segment, so that opening replays nothing.
    pub fn checkpoint(&self) -> Result<()> {
        self.engine.checkpoint()
    }

    /// Writes what is only in the journal into a segment and merges all segments into one, so that
    /// the space of what was superseded comes back. A purge that was interrupted goes on first.
    ///
    /// Reading and writing go on meanwhile; it takes room for the new segment beside the old ones.
    /// On a full disk that is room the database kept for it, so that it can drop what
    /// [`Document::retain`](crate::Document::retain) lets go.
    /// `progress` is told the bytes read and those to read, and may stop it. One that was
    /// interrupted goes on where it was if nothing is to be merged or dropped that was not before.
    ///
    /// # Errors
    /// `Cancelled` if `progress` stopped it and `Full` if there is no room: then the database is as
    /// it was before. `Denied` if it was opened for reading.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # let db = duramen::Database::memory()?;
    /// db.compact(&mut |_read, _total| ControlFlow::Continue(()))?;
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn compact(&self, progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>) -> Result<()> {
        purge::finish(&self.engine, progress)?;
        self.engine.compact(progress)
    }

    /// Goes to the newest state of the writer, if opened for reading. Documents and snapshots
    /// taken before stay at theirs.
    pub fn refresh(&self) -> Result<()> {
        self.engine.refresh()
    }

    /// Verifies every checksum, every cell of every segment, the revision rows of every document
    /// and the values of some of its revisions.
    pub fn check(&self) -> Result<CheckReport> {
        crate::check::check(&self.engine)
    }

    /// The size of the database.
    pub fn stats(&self) -> Result<DatabaseStats> {
        let segments = self.engine.view().store.infos().len() as u64;
        Ok(DatabaseStats {
            documents: self.documents()?.len() as u64,
            series: self.engine.view().series_count(self.engine.published())?,
            sequence: self.engine.published(),
            epoch: self.engine.epoch(),
            segments,
            segment_bytes: self.engine.segment_bytes(),
            superseded_bytes: self.engine.superseded_bytes()?,
            journal_bytes: self.engine.journal_bytes() as u64,
        })
    }

    /// What was done since the database was opened; all 0 if opened for reading.
    pub fn counters(&self) -> Counters {
        let Ok(journal) = self.engine.journal() else { return Counters::default() };
        let counters = journal.counters();
        Counters {
            commits: counters.commits,
            groups: counters.groups,
            syncs: counters.syncs,
            journal_bytes: counters.bytes,
            compactions: self.engine.compactions(),
            compacted_bytes: self.engine.compacted_bytes(),
        }
    }

    /// Closes the database: what is committed becomes durable. `Busy` while other handles are
    /// in use.
    pub fn close(self) -> Result<()> {
        self.into_engine()?.close()
    }

    /// Closes the database like [`close`](Self::close), and removes it again if [opening] made it
    /// and nothing was committed to it since: for who made it for something that failed then.
    /// Returns whether it is gone, and with it the folders that were made for it, as far as nobody
    /// put anything into them. A load that failed has committed nothing. No other process can have
    /// written to it; one that has it open for reading finds no database from then on.
    ///
    /// `Io` if it cannot be removed: then it is empty.
    ///
    /// ```
    /// use duramen::{Database, Options};
    ///
    /// # let home = std::env::temp_dir().join(format!("duramen-unused-{}", std::process::id()));
    /// let db = Database::open(home.join("new"), Options::default())?;
    /// assert!(db.close_or_remove()?);
    /// assert!(!home.exists());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// [opening]: Self::was_created
    pub fn close_or_remove(self) -> Result<bool> {
        self.into_engine()?.close_or_remove()
    }

    fn into_engine(self) -> Result<Engine> {
        Arc::try_unwrap(self.engine).map_err(|_| {
            let message = "handles to the database, its documents or snapshots are still in use";
            Error::new(ErrorKind::Busy, message)
        })
    }
}

impl DatabaseSnapshot {
    /// The commit that the snapshot shows.
    pub fn sequence(&self) -> CommitSequence {
        self.sequence
    }

    /// A document as of that commit.
    pub fn document(&self, name: &str) -> Result<Snapshot> {
        let (tree, head) = self.tree(name)?;
        Snapshot::new(tree, (head, head), name)
    }

    /// The newest revision of a document or collection as of that commit, whether it has a value
    /// or deleted it; 0 if there was none yet.
    pub fn head_revision(&self, name: &str) -> Result<Revision> {
        self.tree(name).map(|(_, head)| head)
    }

    /// A collection as of that commit.
    pub fn collection(&self, name: &str) -> Result<CollectionSnapshot> {
        let (tree, head) = self.tree(name)?;
        self.collection_at(tree, (head, head), name)
    }

    /// A document at its newest revision as of that commit, which may be one that deleted it: then
    /// nothing is there.
    pub(crate) fn last_of_document(&self, name: &str) -> Result<Snapshot> {
        let (tree, head) = self.tree(name)?;
        if head.0 > 0 && tree.deleted_in(short(head))?.is_some() {
            return Ok(Snapshot { tree, revision: head, head });
        }
        Snapshot::new(tree, (head, head), name)
    }

    /// A collection as it was last by that commit, and its newest revision, which may be one that
    /// deleted it.
    pub(crate) fn last_of_collection(&self, name: &str) -> Result<(CollectionSnapshot, Revision)> {
        let (tree, head) = self.tree(name)?;
        let deleted = if head.0 > 0 { tree.deleted_in(short(head))? } else { None };
        let last = deleted.map_or(head, |deleted| Revision(deleted.0 - 1));
        Ok((self.collection_at(tree, (last, head), name)?, head))
    }

    /// The tree of a document, and its newest revision.
    fn tree(&self, name: &str) -> Result<(Arc<Tree>, Revision)> {
        let tree = self.engine.view().document(name, self.sequence)?;
        let head = tree.head_at(self.sequence)?;
        Ok((tree, head))
    }

    fn collection_at(
        &self,
        tree: Arc<Tree>,
        (revision, head): (Revision, Revision),
        name: &str,
    ) -> Result<CollectionSnapshot> {
        let document = Document::new(Arc::clone(&self.engine), Arc::clone(&tree), name);
        let keys = document.options()?.collection.ok_or_else(|| no_collection(name))?;
        let snapshot = (revision.0 > 0).then(|| Snapshot::new(tree, (revision, head), name));
        Ok(CollectionSnapshot::of(document, snapshot.transpose()?, keys))
    }

    /// The names of the documents as of that commit, sorted; those deleted then left out.
    pub fn documents(&self) -> Result<Vec<String>> {
        self.engine.view().documents(self.sequence)
    }
}
