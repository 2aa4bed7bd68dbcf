//! One document: its head, its past, and how it changes.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::json::ParseOptions;
use crate::log::{Log, LogQuery};
use crate::revision::{CommitSequence, Micros, Revision};
use crate::snapshot::{Snapshot, check_revision};
use crate::transaction::{Committed, Transaction};
use crate::tree::Tree;
use crate::tree::difference::{Diff, DiffOptions};
use crate::tree::record_get::OneRecord;

mod declarations;
mod edits;
mod lifecycle;
mod retention;
mod tags;

pub use lifecycle::DeletedDocument;
pub use tags::Tag;
pub(crate) use tags::check_tag;

/// A document of an open database. Clones are handles to the same one, and stay with it when it
/// gets another name.
#[derive(Debug, Clone)]
pub struct Document {
    engine: Arc<Engine>,
    tree: Arc<Tree>,
    name: Arc<str>,
}

/// What came of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is a new revision.
    Committed(Commit),
    /// Nothing differed, so there is no new revision; this was the newest, with which it was
    /// compared.
    Unchanged(Revision),
}

/// A commit as one document sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// The revision it made.
    pub revision: Revision,
    /// Its number over all documents.
    pub sequence: CommitSequence,
    /// The commit timestamp.
    pub timestamp: Micros,
}

/// The size of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DocumentStats {
    /// Revisions.
    pub revisions: u64,
    /// Distinct label paths that the document ever had.
    pub paths: u64,
    /// Distinct shapes of objects that it ever had.
    pub shapes: u64,
    /// Values at the head.
    pub nodes: u64,
    /// Subtrees stored whole at the head, because the document has too many paths.
    pub opaque_nodes: u64,
    /// Bytes of compact JSON at the head.
    pub json_bytes: u64,
}

impl Outcome {
    /// The revision that this change made, or that was the newest where nothing differed.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Committed(commit) => commit.revision,
            Self::Unchanged(revision) => *revision,
        }
    }

    /// Whether there is a new revision.
    pub fn is_committed(&self) -> bool {
        matches!(self, Self::Committed(_))
    }
}

impl Document {
    pub(crate) fn new(engine: Arc<Engine>, tree: Arc<Tree>, name: &str) -> Self {
        Self { engine, tree, name: name.into() }
    }

    pub(crate) fn database_id(&self) -> u128 {
        self.engine.id
    }

    /// The newest commit that can be read.
    pub(crate) fn published(&self) -> CommitSequence {
        self.engine.published()
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The database, and the tree that the document is.
    pub(crate) fn parts(&self) -> (&Arc<Engine>, &Arc<Tree>) {
        (&self.engine, &self.tree)
    }

    /// The document's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Saves a whole JSON value; only what differs from the head is committed. A deleted document
    /// lives again and goes on counting its revisions.
    pub fn put(&self, json: impl AsRef<[u8]>, options: &CommitOptions) -> Result<Outcome> {
        self.put_with(json, ParseOptions::default(), options)
    }

    /// The same, saying how the JSON is read.
    pub fn put_with(
        &self,
        json: impl AsRef<[u8]>,
        parse: ParseOptions,
        options: &CommitOptions,
    ) -> Result<Outcome> {
        self.commit(options, |transaction| transaction.put_with(&self.name, json.as_ref(), parse))
    }

    pub(crate) fn commit(
        &self,
        options: &CommitOptions,
        change: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<Outcome> {
        let mut transaction = Transaction::new(Arc::clone(&self.engine));
        transaction.adopt(&self.name, &self.tree);
        if let Some(expected) = options.expect_revision {
            transaction.expect(&self.name, expected)?;
        }
        change(&mut transaction)?;
        // Nobody changes it before the transaction ends; what is the head then may be another one.
        let compared = transaction.revision_before(self.tree.id());
        let options = CommitOptions { expect_revision: None, ..options.clone() };
        let Committed { revisions, sequence, timestamp, .. } = transaction.commit(&options)?;
        #[cfg(duramen_teeth)]
        let compared = if crate::teeth::bites("tell_later_head") {
            // Long enough for another commit to be published.
            (0..20).for_each(|_| crate::sync::pause());
            None
        } else {
            compared
        };
        Ok(match revisions.first() {
            Some(&(_, revision)) => Outcome::Committed(Commit { revision, sequence, timestamp }),
            None => Outcome::Unchanged(compared.map_or_else(|| self.head_revision(), Ok)?),
        })
    }

    /// The newest revision; 0 if there is none yet.
    pub fn head_revision(&self) -> Result<Revision> {
        self.tree.head_at(self.engine.published())
    }

    /// The document now; `NotFound` if it has no revision yet, or is deleted.
    pub fn head(&self) -> Result<Snapshot> {
        let head = self.head_revision()?;
        Snapshot::new(Arc::clone(&self.tree), (head, head), &self.name)
    }

    /// The record with a key now, if it and the newest revision are in memory and no more is needed
    /// to know so. None says nothing.
    pub(crate) fn young_record(&self, key: &[u8]) -> Result<Option<OneRecord>> {
        self.tree.young_record(key, self.engine.published())
    }

    /// The document now; none if it has no revision yet.
    pub(crate) fn head_if_any(&self) -> Result<Option<Snapshot>> {
        let head = self.head_revision()?;
        let snapshot = || Snapshot::new(Arc::clone(&self.tree), (head, head), &self.name);
        (head.0 > 0).then(snapshot).transpose()
    }

    /// The document as of a revision; `NotFound` if it has no such revision, or was deleted in it.
    pub fn at(&self, revision: Revision) -> Result<Snapshot> {
        Snapshot::new(Arc::clone(&self.tree), (revision, self.head_revision()?), &self.name)
    }

    /// The document as of a time: its last revision not after it. `NotFound` before the first.
    pub fn at_time(&self, time: Micros) -> Result<Snapshot> {
        let revision = self.revision_at(time)?;
        Snapshot::new(Arc::clone(&self.tree), (revision, self.head_revision()?), &self.name)
    }

    /// The last revision not after a time, whether it has a value or deleted the document.
    /// `NotFound` before the first.
    pub fn revision_at(&self, time: Micros) -> Result<Revision> {
        let head = self.head_revision()?;
        let after = self.tree.first_after(time, head)?;
        let before = Revision(after.0.saturating_sub(1));
        if head.0 >= 1 && (before.0 == 0 || self.tree.check_kept(before).is_err()) {
            let first = self.tree.row(Revision(self.tree.first_revision()))?.timestamp;
            let message = format!(
                "the history of document {:?} begins at {first}: there is nothing before, or no \
                 more",
                self.name
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        Ok(before)
    }

    /// The revision timestamps of revisions 1, 2, 3 ..., from the
    /// [first](Document::first_revision) that was not dropped on.
    pub fn timestamps(&self) -> Result<Vec<Micros>> {
        self.tree.timestamps(self.head_revision()?)
    }

    /// The revisions, newest first.
    pub fn log(&self, query: &LogQuery) -> Result<Log> {
        Log::new(Arc::clone(&self.tree), query, self.head_revision()?)
    }

    /// What turns one revision into another, in either direction. Where the document was deleted
    /// the whole value was removed.
    pub fn diff(&self, before: Revision, after: Revision) -> Result<Diff> {
        self.diff_with(before, after, &DiffOptions::default())
    }

    /// The same for a part of the document, or down to a depth.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, DiffOptions, JsonPointer, Revision};
    ///
    /// let doc = Database::memory()?.create_document("d")?;
    /// doc.put(r#"{"a":{"b":{"c":1},"d":2}}"#, &CommitOptions::default())?;
    /// doc.put(r#"{"a":{"b":{"c":3},"d":4}}"#, &CommitOptions::default())?;
    /// let start = Some(JsonPointer::parse("/a/b")?.into());
    /// let options = DiffOptions { start, depth: Some(0) };
    /// let patch = doc.diff_with(Revision(1), Revision(2), &options)?.to_json_patch();
    /// assert_eq!(patch, r#"[{"op":"replace","path":"/a/b","value":{"c":3}}]"#);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn diff_with(
        &self,
        before: Revision,
        after: Revision,
        options: &DiffOptions,
    ) -> Result<Diff> {
        let head = self.head_revision()?;
        for revision in [before, after] {
            check_revision(&self.tree, (revision, head), &self.name)?;
        }
        let at = |revision| Snapshot { tree: Arc::clone(&self.tree), revision, head };
        Snapshot::diff(&at(before), &at(after), options)
    }

    /// The size of the document.
    pub fn stats(&self) -> Result<DocumentStats> {
        self.tree.stats(self.head_revision()?)
    }
}
