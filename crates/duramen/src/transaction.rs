//! Changes of several documents that become visible together, or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::durability::Durability;
use crate::engine::Engine;
use crate::engine::options::CommitOptions;
use crate::engine::record::{Facts, Prepared};
use crate::error::{Error, ErrorKind, Result};
use crate::json::{JsonPointer, ParseOptions, Tape};
use crate::limits::{COMMIT_TEXT_BYTES_MAX, TURN_WAIT_MS};
use crate::revision::{CommitSequence, Micros, Revision};
use crate::series::changes::SeriesChanges;
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::serialize::Format;
use crate::tree::writer::Writer;
use isolation::Base;
use written::WrittenSeries;

mod bulk;
mod edits;
mod isolation;
mod names;
mod purge;
mod read_set;
mod records;
mod rules;
mod series;
mod written;

pub use isolation::TransactOptions;
pub(crate) use records::{StagedVersion, check_versions, count_of, read_departed, record_tape};

/// Changes that are staged one by one, seen by this transaction alone, and committed together.
/// Dropped without a commit, it is rolled back.
///
/// A document is locked for other writers from the first time the transaction names it. Readers
/// never wait.
///
/// ```
/// use duramen::{CommitOptions, Database, JsonPointer};
///
/// let db = Database::memory()?;
/// let mut transfer = db.transaction();
/// transfer.put("alice", br#"{"balance":70}"#)?;
/// transfer.put("bob", br#"{"balance":30}"#)?;
/// assert_eq!(transfer.get("bob", &JsonPointer::parse("/balance")?)?, "30");
/// let committed = transfer.commit(&CommitOptions::default())?;
/// assert_eq!(committed.revisions.len(), 2);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug)]
pub struct Transaction {
    engine: Arc<Engine>,
    writers: BTreeMap<TreeId, Writer>,
    names: BTreeMap<String, TreeId>,
    /// What is staged of the points of series.
    points: SeriesChanges,
    /// The series that these are of.
    written: WrittenSeries,
    /// A change failed half done: what is staged is of no use.
    is_broken: bool,
    aim: Aim,
    /// Documents that came to be as they were get a revision all the same.
    keeps_unchanged: bool,
    /// It repeats a history, in which records may have been purged.
    repeats: bool,
    /// Indexes that it drops, by tree and id.
    dropped_indexes: Vec<(Arc<Tree>, u32)>,
    /// The snapshot that it sees, if it is one.
    base: Option<Base>,
}

/// What a transaction does to the room on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    Nothing,
    /// It deletes documents or sets their options, and nothing else.
    LettingGo,
    Adding,
    /// It takes over what a dump says of series.
    Loading,
}

impl Aim {
    fn let_go(&mut self) {
        if *self == Self::Nothing {
            *self = Self::LettingGo;
        }
    }
}

/// What a transaction's commit made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Committed {
    /// The documents that changed, by name, with their new revisions. Empty if nothing changed,
    /// or only names, tags or options.
    pub revisions: Vec<(String, Revision)>,
    /// The commit's sequence; 0 if there was none, or will be one later, as of a point that is
    /// [staged](crate::Series::append).
    pub sequence: CommitSequence,
    /// The commit's timestamp.
    pub timestamp: Micros,
    /// The series that got points which are older than it keeps them ([`SeriesDefinition::keep`]),
    /// by name, and how many: they are part of the commit, but no read sees them. Rollups have
    /// those of windows of which they know nothing, or only of earlier points.
    ///
    /// [`SeriesDefinition::keep`]: crate::SeriesDefinition::keep
    pub unkept: Vec<(String, u64)>,
}

impl Transaction {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let (writers, names) = (BTreeMap::new(), BTreeMap::new());
        Self {
            engine,
            writers,
            names,
            points: SeriesChanges::default(),
            written: WrittenSeries::default(),
            is_broken: false,
            aim: Aim::Nothing,
            keeps_unchanged: false,
            repeats: false,
            dropped_indexes: Vec::new(),
            base: None,
        }
    }

    /// From now on every document it names gets a revision, changed or not: repair keeps the
    /// numbers of revisions of which the change is lost.
    pub(crate) fn keep_unchanged(&mut self) {
        self.keeps_unchanged = true;
    }

    /// What it commits was committed before: records that were purged are `null` there.
    pub(crate) fn repeat(&mut self) {
        self.repeats = true;
    }

    /// Knows a document that was looked up before.
    pub(crate) fn adopt(&mut self, name: &str, tree: &Tree) {
        self.names.insert(name.to_owned(), tree.id());
    }

    /// `Conflict` unless a document is at this revision; 0 means that it has none yet. Nobody
    /// else can change it before this transaction ends.
    pub fn expect(&mut self, name: &str, revision: Revision) -> Result<()> {
        let writer = self.any_writer(name)?;
        let actual = Revision(u64::from(writer.revision) - 1);
        #[cfg(duramen_teeth)]
        if crate::teeth::bites("drop_conflict_check") {
            return Ok(());
        }
        if actual == revision {
            return Ok(());
        }
        let tree = Arc::clone(&writer.tree);
        self.wait_published(&tree)?;
        let message = format!(
            "document {name:?} is at revision {actual}, expected {revision}: read it again, then \
             retry"
        );
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// The newest revision of a tree that is written, 0 if it has none.
    pub(crate) fn revision_before(&self, id: TreeId) -> Option<Revision> {
        let writer = self.writers.get(&id)?;
        Some(Revision(u64::from(writer.revision) - 1))
    }

    /// Saves a whole JSON value over a document, made if it is missing; only what differs is
    /// committed. A deleted document lives again and goes on counting its revisions.
    pub fn put(&mut self, name: &str, json: &[u8]) -> Result<()> {
        self.put_with(name, json, ParseOptions::default())
    }

    /// The same, saying how the JSON is read.
    pub fn put_with(&mut self, name: &str, json: &[u8], options: ParseOptions) -> Result<()> {
        let tape = Tape::parse(json, options)?;
        let id = match self.find(name)? {
            Some(id) => id,
            None => self.create(name)?.0,
        };
        self.open(id)?;
        self.change(id, |writer| writer.put_root(&tape))
    }

    /// What a pointer names in a document, as this transaction has made it, as compact JSON.
    pub fn get(&mut self, name: &str, pointer: &JsonPointer) -> Result<String> {
        if let Some(snapshot) = self.read_document(name)? {
            let mut text = Vec::new();
            snapshot.append_json(pointer, &Format::default(), &mut text)?;
            return Ok(String::from_utf8_lossy(&text).into_owned());
        }
        let text = self.writer(name)?.text(pointer)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// About how many bytes of memory take what is staged. A commit takes as much again while it
    /// is written.
    pub fn staged_bytes(&self) -> usize {
        let of_tree = |writer: &Writer| {
            let apart = writer.tree.blobs.staged_bytes() + writer.tree.orders.staged_bytes();
            writer.tree.data.read().young_bytes + apart
        };
        self.writers.values().map(of_tree).sum::<usize>() + self.points.young_bytes()
    }

    /// Commits everything staged as one commit: each changed document gets one revision.
    pub fn commit(mut self, options: &CommitOptions) -> Result<Committed> {
        if self.is_broken {
            let message = "an earlier change of the transaction failed half done: it was rolled \
                           back; begin a new one";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if let Some(expected) = options.expect_revision {
            for name in self.names.keys().cloned().collect::<Vec<_>>() {
                self.expect(&name, expected)?;
            }
        }
        check_text("author", options.author.as_deref())?;
        check_text("message", options.message.as_deref())?;
        self.tell_deletions()?;
        let mut newest = CommitSequence(0);
        let mut unchanged = Vec::new();
        for (&id, writer) in &mut self.writers {
            let is_kept = self.keeps_unchanged && !id.is_catalogue();
            if !writer.settle(self.repeats)? && !is_kept {
                newest = newest.max(writer.tree.newest_sequence()?);
                unchanged.push(id);
            }
        }
        // Their turns end after the commit has its sequence: who changes what was only read here
        // comes after it.
        let read: Vec<_> = unchanged.iter().filter_map(|id| self.writers.remove(id)).collect();
        #[cfg(duramen_teeth)]
        let read = if crate::teeth::bites("release_reads_early") {
            drop(read);
            Vec::new()
        } else {
            read
        };
        let durability = options.durability.unwrap_or(self.engine.options.durability);
        let changes = std::mem::take(&mut self.points).settled()?;
        if self.writers.is_empty() && changes.is_empty() {
            // What it is based on is as sure as this commit was to be.
            match durability {
                Durability::Sync => self.engine.journal()?.wait_durable(newest)?,
                Durability::Interval(_) => self.engine.journal()?.wait_published(newest)?,
            }
            return Ok(Committed::default());
        }
        self.check_timestamp(options.timestamp)?;
        self.check_written_series()?;
        let changes_series = self.prepare_series(&changes)?;
        let unkept = self.written.count_unkept(&changes, || self.engine.now());
        let prepare = || {
            let facts = Facts { is_loaded: self.aim == Aim::Loading, ..Facts::of(options) };
            let prepared = Prepared::new(self.writers.values().collect(), facts);
            prepared.giving_room(self.aim == Aim::LettingGo)
        };
        let ticket = self.engine.queue_points(&changes, prepare, durability)?;
        drop(read);
        let writers = std::mem::take(&mut self.writers);
        let revisions = self.revisions(&writers);
        for writer in writers.into_values() {
            if writer.is_new() {
                self.engine.share_schema(&writer.tree);
            }
            writer.finish();
        }
        self.engine.acknowledge(ticket)?;
        self.forget_dropped();
        if changes_series {
            self.engine.staging.catalogue_changed();
        }
        let (sequence, timestamp) = (ticket.sequence, ticket.timestamp);
        Ok(Committed { revisions, sequence, timestamp, unkept })
    }

    /// Changes a tree. A change that fails before it has staged anything leaves the transaction as
    /// it was; one that fails half done leaves it of no use.
    fn change<T>(&mut self, id: TreeId, change: impl FnOnce(&Writer) -> Result<T>) -> Result<T> {
        self.aim = Aim::Adding;
        let writer = self.take(id)?;
        let tree = Arc::clone(&writer.tree);
        let before = tree.data.read().stagings;
        let result = change(writer).and_then(|changed| {
            writer.let_go_much()?;
            Ok(changed)
        });
        if let Err(error) = &result {
            self.is_broken |= tree.data.read().stagings != before;
            if error.kind() == ErrorKind::Conflict {
                // What it is about counts once it is published.
                self.wait_published(&tree)?;
            }
        }
        result
    }

    /// Notes whether one of several steps of a change failed, so that it is half done.
    fn note(&mut self, result: Result<()>) -> Result<()> {
        self.is_broken |= result.is_err();
        result
    }

    /// Takes everything staged back.
    pub fn rollback(self) {
        drop(self);
    }

    fn revisions(&self, writers: &BTreeMap<TreeId, Writer>) -> Vec<(String, Revision)> {
        let revision = |(name, id): (&String, &TreeId)| {
            let writer = writers.get(id)?;
            Some((name.clone(), Revision(u64::from(writer.revision))))
        };
        self.names.iter().filter_map(revision).collect()
    }

    fn check_timestamp(&self, given: Option<Micros>) -> Result<()> {
        let Some(given) = given else { return Ok(()) };
        self.check_not_in_future(given)?;
        let invalid = |message| Err(Error::new(ErrorKind::Invalid, message));
        for (&id, writer) in &self.writers {
            if let Some(last) = writer.tree.last_timestamp()?.filter(|&last| last >= given)
                && !id.is_catalogue()
            {
                return invalid(format!(
                    "the timestamp {given} is not after {last}, that of the last revision: \
                     timestamps of a document rise"
                ));
            }
        }
        Ok(())
    }

    fn check_not_in_future(&self, given: Micros) -> Result<()> {
        if given <= self.engine.now() {
            return Ok(());
        }
        let message =
            format!("the timestamp {given} is in the future: give one that is not, or none");
        Err(Error::new(ErrorKind::Invalid, message))
    }

    /// Gives the turn of a tree back, in which nothing was staged.
    fn release(&mut self, id: TreeId) {
        self.writers.remove(&id);
    }

    pub(crate) fn wait_published(&self, tree: &Tree) -> Result<()> {
        self.engine.journal()?.wait_published(tree.newest_sequence()?)
    }

    /// The tree of a document whose turn is to be taken.
    fn not_yet_taken(&mut self, name: &str) -> Result<Option<Arc<Tree>>> {
        self.engine.journal()?;
        match self.find(name)? {
            Some(id) if !self.writers.contains_key(&id) => self.engine.view().tree(id).map(Some),
            _ => Ok(None),
        }
    }

    /// The writer of a tree, its turn taken if it is not yet.
    fn take(&mut self, id: TreeId) -> Result<&Writer> {
        if !self.writers.contains_key(&id) {
            self.take_turn(id)?;
            self.check_base(id)?;
        }
        Ok(&self.writers[&id])
    }

    fn take_turn(&mut self, id: TreeId) -> Result<&Writer> {
        if !self.writers.contains_key(&id) {
            let tree = self.engine.view().tree(id)?;
            // Whoever waits holds only trees with lower numbers, or waits for a background step
            // that waits for nobody: so nobody waits in a circle.
            let in_order = self.writers.keys().next_back().is_none_or(|&last| last < id);
            let turn = if in_order { tree.turn(TURN_WAIT_MS) } else { tree.turn_at_once() };
            let Some(turn) = turn else { return Err(self.lose_turn(id)) };
            if tree.is_purging() {
                return Err(purging());
            }
            let options = self.options(&tree)?;
            self.writers.insert(id, Writer::new(tree, turn, options)?);
        }
        Ok(&self.writers[&id])
    }
}

/// Refuses an author or a message that is no short text.
pub(crate) fn check_text(what: &str, text: Option<&str>) -> Result<()> {
    let len = text.map_or(0, str::len);
    if len <= COMMIT_TEXT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("the {what} has {len} bytes: at most {COMMIT_TEXT_BYTES_MAX} are kept");
    Err(Error::new(ErrorKind::Invalid, message))
}

/// Refuses to change a document while a value of it is being purged.
pub(crate) fn purging() -> Error {
    let message = "a value of the document is being purged: retry when that is done; a purge that \
                   was interrupted goes on with `duramen compact`, or when the database is opened \
                   for writing";
    Error::new(ErrorKind::Busy, message)
}

fn busy() -> Error {
    let message = "another transaction is writing one of the documents: end it, or name documents \
                   in the order in which they were created, then retry";
    Error::new(ErrorKind::Busy, message)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use crate::{CommitOptions, Database, ErrorKind};

    /// A compaction that dropped what had departed from a document was in the way of transactions
    /// that came to that document behind a later one.
    #[test]
    fn documents_may_be_named_in_any_order_while_a_background_step_passes() {
        let db = Database::memory().unwrap();
        let first = db.create_document("first").unwrap();
        db.create_document("second").unwrap();
        let (_, tree) = first.parts();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let turn = tree.passing_turn();
                    std::thread::sleep(Duration::from_micros(100));
                    drop(turn);
                }
            });
            let saved = (0..200).try_for_each(|n: u32| {
                let mut transaction = db.transaction();
                transaction.put("second", n.to_string().as_bytes())?;
                transaction.put("first", n.to_string().as_bytes())?;
                transaction.commit(&CommitOptions::default()).map(drop)
            });
            is_done.store(true, Ordering::Relaxed);
            saved.unwrap();
        });
        // Another transaction is still not waited for.
        let mut holder = db.transaction();
        holder.put("first", b"0").unwrap();
        let mut late = db.transaction();
        late.put("second", b"0").unwrap();
        assert_eq!(late.put("first", b"1").unwrap_err().kind(), ErrorKind::Busy);
    }
}
