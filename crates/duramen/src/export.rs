//! The whole history of a document, revision by revision, for another database to take over.
//!
//! Invariants:
//! - a revision is a JSON Patch to the one before it only where the patch gives that value to the
//!   character; elsewhere, and at first, it is the value;
//! - taking over a history gives the same revisions with the same revision timestamps, or fails
//!   at the first that differs, so it can be begun again at any time.

use crate::database::Database;
use crate::document::Document;
use crate::durability::Durability;
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::log::{LogEntry, LogQuery};
use crate::revision::{Micros, Revision};

/// One revision of an exported history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedRevision {
    /// The revision.
    pub revision: Revision,
    /// The revision timestamp.
    pub timestamp: Micros,
    /// When it was committed where it was made; taking it over does not keep that.
    pub committed: Micros,
    /// Who made it.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
    /// What it made of the document.
    pub content: ExportedContent,
}

/// What a revision made of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportedContent {
    /// The whole value, as JSON.
    Value(String),
    /// A JSON Patch (RFC 6902) to the revision before.
    Patch(String),
    /// It deleted the document.
    Deleted,
}

/// The revisions of a document as they are exported, oldest first.
#[derive(Debug)]
pub struct HistoryExport {
    document: Document,
    next: Revision,
    last: Revision,
}

/// A history that a document takes over.
#[derive(Debug)]
pub struct HistoryImport {
    database: Database,
    name: String,
    durability: Option<Durability>,
    /// The revisions that the document has already.
    present: Option<HistoryExport>,
    /// There was no such document.
    is_missing: bool,
    /// The newest revision of the document when it began.
    head: Revision,
    /// The last revision that was taken.
    taken: Revision,
}

impl Document {
    /// Its history up to now, to be taken over by [`Database::import_history`].
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, Revision};
    ///
    /// let old = Database::memory()?.create_document("list")?;
    /// old.put("[1]", &CommitOptions::default())?;
    /// old.put("[1,2]", &CommitOptions::default())?;
    ///
    /// let db = Database::memory()?;
    /// let mut import = db.import_history("list", None)?;
    /// for revision in old.export()? {
    ///     import.push(&revision?)?;
    /// }
    /// assert_eq!(import.finish()?, Revision(2));
    /// assert_eq!(db.document("list")?.at(Revision(1))?.to_json()?, "[1]");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn export(&self) -> Result<HistoryExport> {
        let last = self.head_revision()?;
        Ok(HistoryExport { document: self.clone(), next: Revision(1), last })
    }

    fn exported(&self, revision: Revision) -> Result<ExportedRevision> {
        let LogEntry { timestamp, committed, author, message, deleted, .. } =
            self.log_entry(revision)?;
        let content =
            if deleted { ExportedContent::Deleted } else { self.exported_content(revision)? };
        Ok(ExportedRevision { revision, timestamp, committed, author, message, content })
    }

    fn log_entry(&self, revision: Revision) -> Result<LogEntry> {
        let before = Some(revision.next());
        let query = LogQuery { before, limit: Some(1), ..LogQuery::default() };
        self.log(&query)?.next().unwrap_or_else(|| {
            let message = format!("document {:?} has no row of revision {revision}", self.name());
            Err(Error::new(ErrorKind::Corrupt, message))
        })
    }

    fn exported_content(&self, revision: Revision) -> Result<ExportedContent> {
        let before = Revision(revision.0 - 1);
        if before.0 > 0 && !self.log_entry(before)?.deleted {
            let diff = self.diff(before, revision)?;
            if diff.is_exact {
                return Ok(ExportedContent::Patch(diff.to_json_patch()));
            }
        }
        Ok(ExportedContent::Value(self.at(revision)?.to_json()?))
    }
}

impl HistoryExport {
    /// How many revisions are left.
    pub fn remaining(&self) -> u64 {
        (self.last.0 + 1).saturating_sub(self.next.0)
    }
}

impl Iterator for HistoryExport {
    type Item = Result<ExportedRevision>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next > self.last {
            return None;
        }
        let revision = self.next;
        self.next = revision.next();
        Some(self.document.exported(revision))
    }
}

impl Database {
    /// Begins to take the history of a document over, made if it is missing. What the document
    /// has already must be how the history begins: so an import that was stopped goes on.
    ///
    /// With `durability` other than [`Durability::Sync`], [`flush`](Database::flush) at the end.
    pub fn import_history(
        &self,
        name: &str,
        durability: Option<Durability>,
    ) -> Result<HistoryImport> {
        let present = match self.document(name) {
            Ok(document) => Some(document.export()?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let head = present.as_ref().map_or(Revision(0), |present| present.last);
        let (database, name) = (self.clone(), name.to_owned());
        let (is_missing, taken) = (present.is_none(), Revision(0));
        Ok(HistoryImport { database, name, durability, present, is_missing, head, taken })
    }
}

impl HistoryImport {
    /// Takes the next revision: commits it, or compares it if the document has it already.
    /// Returns whether it was committed.
    ///
    /// `Conflict` if the document has another one, or if somebody else changes it meanwhile;
    /// `Invalid` if it does not follow the one before.
    pub fn push(&mut self, revision: &ExportedRevision) -> Result<bool> {
        if revision.revision != self.taken.next() {
            let message = format!(
                "revision {} stands where revision {} is expected: the revisions of a history are \
                 1, 2, 3 and so on",
                revision.revision,
                self.taken.next()
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let present = self.present.as_mut().and_then(Iterator::next).transpose()?;
        match &present {
            Some(present) => self.compare(present, revision)?,
            None => self.commit(revision)?,
        }
        self.taken = revision.revision;
        Ok(present.is_none())
    }

    /// Ends it and tells the newest revision; `Conflict` if the document has revisions that were
    /// not in the history.
    pub fn finish(self) -> Result<Revision> {
        if self.taken >= self.head {
            return Ok(self.taken);
        }
        let message = format!(
            "document {:?} has {} revisions, of which the history has only the first {}",
            self.name, self.head, self.taken
        );
        Err(Error::new(ErrorKind::Conflict, message))
    }

    fn compare(&self, present: &ExportedRevision, given: &ExportedRevision) -> Result<()> {
        let what = if present.timestamp != given.timestamp {
            "timestamp"
        } else if present.author != given.author {
            "author"
        } else if present.message != given.message {
            "message"
        } else if present.content != given.content {
            "content"
        } else {
            return Ok(());
        };
        let message = format!(
            "revision {} of document {:?} is there with another {what}: import the history into \
             a document that does not exist, or whose revisions are the first ones of it",
            given.revision, self.name
        );
        Err(Error::new(ErrorKind::Conflict, message))
    }

    fn commit(&self, given: &ExportedRevision) -> Result<()> {
        let mut transaction = self.database.transaction();
        let name = self.name.as_str();
        if matches!(given.content, ExportedContent::Deleted) {
            // Documents come after the catalogue in the order in which they are locked.
            transaction.catalogue()?;
        }
        // Made in the same commit, so that a refused value leaves no document behind.
        if self.is_missing && self.taken.0 == 0 {
            transaction.create_document(name)?;
        } else {
            transaction.expect(name, self.taken)?;
        }
        match &given.content {
            ExportedContent::Value(json) => transaction.put(name, json.as_bytes())?,
            ExportedContent::Patch(patch) => transaction.patch(name, patch.as_bytes())?,
            ExportedContent::Deleted => transaction.delete_document(name)?,
        }
        let committed = transaction.commit(&CommitOptions {
            author: given.author.clone(),
            message: given.message.clone(),
            timestamp: Some(given.timestamp),
            durability: self.durability,
            ..CommitOptions::default()
        })?;
        if committed.revisions.iter().any(|(_, revision)| *revision == given.revision) {
            return Ok(());
        }
        let message = format!(
            "revision {} does not differ from the one before it, as every revision does",
            given.revision
        );
        Err(Error::new(ErrorKind::Invalid, message))
    }
}
