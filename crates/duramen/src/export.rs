//! The whole history of a document, revision by revision, for another database to take over.
//!
//! Invariants:
//! - revisions that are not kept are not told of, and those that are have the numbers from 1 on;
//! - a revision is a JSON Patch to the one before it, and the members that then go to other places
//!   among their siblings; at first, and where such moves make it longer than the value, it is the
//!   value;
//! - taking over a history gives the same revisions with the same revision timestamps, or fails
//!   at the first that differs and takes nothing of it, so it can be begun again at any time.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use crate::bulk::Progress;
use crate::content_hash::ContentHash;
use crate::database::Database;
use crate::document::Document;
use crate::durability::Durability;
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::log::{LogEntry, LogQuery};
use crate::position::Position;
use crate::revision::{Micros, Revision};
use crate::transaction::Transaction;
use crate::tree::MemberMove;
use crate::tree::kept::Kept;
use crate::tree::serialize::Format;

use counted::{Counts, Differing};
pub use departed::DepartedRecords;
pub use facts::ExportedFacts;
pub(crate) use long::held_bytes;

mod counted;
mod departed;
mod facts;
mod long;
mod shown;

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
    /// The hash of the value, which is compared with when the revision is taken over.
    pub hash: Option<ContentHash>,
    /// The keys of a collection's records that got their next version though nothing of them
    /// differs: all that differed was purged, or was in revisions that were dropped.
    pub counted: Vec<String>,
    /// By their keys the versions of a collection's records that have another one than counting
    /// from the revisions before gives, because some were dropped.
    pub versions: BTreeMap<String, u64>,
    /// The records of a collection that no revision of the history shows, with the versions they
    /// had. Only the first one tells of any.
    pub departed: DepartedRecords,
}

/// What a revision made of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportedContent {
    /// The whole value, as JSON.
    Value(String),
    /// A value that is too long to be held in memory, which only the first revision has:
    /// [`HistoryExport::write_value`] writes it, [`HistoryImport::push_long`] reads it.
    LongValue,
    /// What changed in the revision before.
    Patch {
        /// A JSON Patch (RFC 6902).
        patch: String,
        /// Members that go to other places then, one after the other: a patch says nothing of it.
        moves: Vec<MemberMove>,
    },
    /// It deleted the document.
    Deleted,
}

/// The revisions of a document as they are exported, oldest first.
#[derive(Debug)]
pub struct HistoryExport {
    document: Document,
    /// The revisions that there are.
    kept: Kept,
    /// The numbers of the next one and of the last one, among them.
    next: u64,
    last: u64,
    /// Why the records that departed could not be told, which is said behind all revisions.
    unreadable: Option<Error>,
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
    /// Whether the document has unique indexes from before.
    has_unique: bool,
    /// What the history says of the document.
    facts: ExportedFacts,
    /// The newest revision of the document when it began.
    head: Revision,
    /// The last revision that was taken.
    taken: Revision,
    /// How many revisions the document had that are not kept: its numbers are higher by so many.
    dropped: u64,
    /// The records that departed of which the document that is there does not know.
    unknown: BTreeMap<String, u64>,
    /// Why it cannot be told which these are.
    unreadable: Option<Error>,
}

impl Document {
    /// Its history up to now, to be taken over by [`Database::import_history`]. If revisions were
    /// dropped by its [retention](Document::retain), those that are left, tagged ones before the
    /// others among them, are numbered from 1 on.
    ///
    /// Where the records that departed cannot be read, the revisions are told without them, and the
    /// error comes behind the last one.
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
        Ok(self.export_to(last))
    }

    /// Its history up to a revision.
    pub(crate) fn export_to(&self, last: Revision) -> HistoryExport {
        let kept = self.tree().kept();
        let last = kept.count_up_to(last.0);
        HistoryExport { document: self.clone(), kept, next: 1, last, unreadable: None }
    }

    /// A revision, which follows another one among those that are kept.
    fn exported(
        &self,
        revision: Revision,
        before: Option<Revision>,
        kept: &Kept,
    ) -> Result<ExportedRevision> {
        let LogEntry { timestamp, committed, author, message, deleted, .. } =
            self.log_entry(revision)?;
        let (content, hash, Counts { counted, versions }) = if deleted {
            (ExportedContent::Deleted, None, Counts::default())
        } else {
            let (content, hash, differing) = self.exported_content(revision, before)?;
            let counts = self.counts((revision, before), kept, differing.as_ref())?;
            (content, Some(hash), counts)
        };
        Ok(ExportedRevision {
            revision,
            timestamp,
            committed,
            author,
            message,
            content,
            hash,
            counted,
            versions,
            departed: DepartedRecords::default(),
        })
    }

    fn log_entry(&self, revision: Revision) -> Result<LogEntry> {
        let before = Some(revision.next());
        let query = LogQuery { before, limit: Some(1), ..LogQuery::default() };
        self.log(&query)?.next().unwrap_or_else(|| {
            let message = format!("document {:?} has no row of revision {revision}", self.name());
            Err(Error::new(ErrorKind::Corrupt, message))
        })
    }

    /// What a revision made of the document, the hash of that, and what differs from the revision
    /// before, where there was a value.
    fn exported_content(
        &self,
        revision: Revision,
        before: Option<Revision>,
    ) -> Result<(ExportedContent, ContentHash, Option<Differing>)> {
        let snapshot = self.at(revision)?;
        let before = match before {
            Some(before) if !self.log_entry(before)?.deleted => before,
            _ => {
                let (value, hash) = self.exported_value(&snapshot, before.is_none())?;
                return Ok((value, hash, None));
            }
        };
        let diff = self.diff(before, revision)?;
        let (patch, differing) = (diff.to_json_patch(), Some(Differing::of(&diff)));
        if diff.moves.is_empty() {
            let hash = snapshot.content_hash()?;
            return Ok((ExportedContent::Patch { patch, moves: diff.moves }, hash, differing));
        }
        let value = snapshot.to_json()?;
        let hash = ContentHash::of_json(value.as_bytes());
        let bytes = diff.moves.iter().map(bytes_of).fold(patch.len(), usize::saturating_add);
        if bytes < value.len() {
            return Ok((ExportedContent::Patch { patch, moves: diff.moves }, hash, differing));
        }
        Ok((ExportedContent::Value(value), hash, differing))
    }
}

pub(crate) fn none_told() -> Error {
    Error::new(ErrorKind::Invalid, "no revision of the document was told yet")
}

/// About as many bytes as a move takes as text.
fn bytes_of(moved: &MemberMove) -> usize {
    const NAMES: usize = r#"{"path":"","before":""},"#.len();
    let before = moved.before.as_ref().map_or(0, String::len);
    NAMES + moved.member.to_string().len() + before
}

impl HistoryExport {
    /// How many revisions are left.
    pub fn remaining(&self) -> u64 {
        (self.last + 1).saturating_sub(self.next)
    }

    /// Writes the whole value of the revision that was told last, as JSON; `Invalid` if none was
    /// told yet.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database};
    ///
    /// let list = Database::memory()?.create_document("list")?;
    /// list.put("[1, 2]", &CommitOptions::default())?;
    /// let (mut history, mut json) = (list.export()?, Vec::new());
    /// history.next().unwrap()?;
    /// history.write_value(&mut json)?;
    /// assert_eq!(json, b"[1,2]");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn write_value(&self, out: &mut dyn Write) -> Result<()> {
        let told = self.next.checked_sub(1).filter(|told| *told > 0).ok_or_else(none_told)?;
        let snapshot = self.document.at(Revision(self.kept.numbered(told)))?;
        snapshot.write_json(&JsonPointer::root(), &Format::default(), out)
    }

    /// Whether records that departed could not be told.
    pub(crate) fn lacks_departed(&self) -> bool {
        self.unreadable.is_some()
    }

    fn exported(&mut self, number: u64) -> Result<ExportedRevision> {
        let revision = Revision(self.kept.numbered(number));
        let before = (number > 1).then(|| Revision(self.kept.numbered(number - 1)));
        let mut exported = self.document.exported(revision, before, &self.kept)?;
        if number == 1 {
            match self.departed() {
                // The revisions may be readable all the same.
                Err(error) if error.kind() == ErrorKind::Corrupt => self.unreadable = Some(error),
                departed => exported.departed = departed?,
            }
        }
        Ok(ExportedRevision { revision: Revision(number), ..exported })
    }
}

impl Iterator for HistoryExport {
    type Item = Result<ExportedRevision>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next > self.last {
            return self.unreadable.take().map(Err);
        }
        self.next += 1;
        Some(self.exported(self.next - 1))
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
        let (present, has_unique) = match self.document(name) {
            Ok(document) => (Some(document.export()?), document.options()?.indexes.has_unique()),
            Err(error) if error.kind() == ErrorKind::NotFound => (None, false),
            Err(error) => return Err(error),
        };
        let head = present.as_ref().map_or(Revision(0), |present| Revision(present.last));
        let dropped = match &present {
            Some(present) if head.0 > 0 => present.kept.numbered(head.0) - head.0,
            _ => 0,
        };
        let (database, name) = (self.clone(), name.to_owned());
        let (is_missing, taken) = (present.is_none(), Revision(0));
        let facts = ExportedFacts::default();
        Ok(HistoryImport {
            database,
            name,
            durability,
            present,
            is_missing,
            has_unique,
            facts,
            head,
            taken,
            dropped,
            unknown: BTreeMap::new(),
            unreadable: None,
        })
    }
}

impl HistoryImport {
    /// Takes the next revision: commits it, or compares it if the document has it already, but for
    /// versions of records. Returns whether it was committed. Records that departed before a first
    /// revision which is there, and of which the document does not know, it knows from the first
    /// revision on that is committed.
    ///
    /// `Conflict` if the document has another one, or if somebody else changes it meanwhile;
    /// `Invalid` if it does not follow the one before; `Corrupt` if it has not the hash that it is
    /// to have. Nothing of it is committed then, and it can be told again as it should be. The
    /// [revisions taken](Self::taken) before it stay, and another import of the history goes on
    /// behind them.
    pub fn push(&mut self, revision: &ExportedRevision) -> Result<bool> {
        self.take(revision, &mut io::empty(), |import, _| import.commit(revision))
    }

    /// Takes the next revision like [`push`](Self::push), of which something is too long to be held
    /// in memory: its value, or the records that departed. That is read from `text`, as
    /// [`write_long`](HistoryExport::write_long) writes it. Of a collection that is made by it, the
    /// unique indexes are made at the [end](Self::finish); one that is there and has some already
    /// takes all of it as a whole, in memory. Of a revision that the document has already, nothing
    /// is read, unless other records departed of it: these are held in memory. `progress` is told
    /// about every mebibyte, and can stop it: that is `Cancelled`.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use duramen::{CommitOptions, Database, ExportedContent, ExportedRevision};
    ///
    /// let list = Database::memory()?.create_document("list")?;
    /// list.put("[1,2]", &CommitOptions::default())?;
    /// let first = list.export()?.next().unwrap()?;
    /// let first = ExportedRevision { content: ExportedContent::LongValue, ..first };
    ///
    /// let db = Database::memory()?;
    /// let mut import = db.import_history("list", None)?;
    /// import.push_long(&first, &mut "[1,2]".as_bytes(), &mut |_| ControlFlow::Continue(()))?;
    /// import.finish()?;
    /// assert_eq!(db.document("list")?.head()?.to_json()?, "[1,2]");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn push_long(
        &mut self,
        revision: &ExportedRevision,
        text: &mut dyn Read,
        progress: &mut Progress<'_>,
    ) -> Result<bool> {
        self.take(revision, text, |import, text| import.load(revision, text, progress))
    }

    /// Compares the next revision, or has it committed.
    fn take(
        &mut self,
        revision: &ExportedRevision,
        text: &mut dyn Read,
        commit: impl FnOnce(&Self, &mut dyn Read) -> Result<()>,
    ) -> Result<bool> {
        if revision.revision != self.taken.next() {
            let message = format!(
                "revision {} stands where revision {} is expected: the revisions of a history are \
                 1, 2, 3 and so on",
                revision.revision,
                self.taken.next()
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if self.taken.0 > 0 && !revision.departed.is_empty() {
            let message = "records that departed are told by the first revision of a history";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let present = match &mut self.present {
            Some(present) if present.remaining() > 0 => present.next().transpose()?,
            _ => None,
        };
        if let Some(present) = &present {
            let compared = self.compare(present, revision);
            if compared.is_err()
                && let Some(all) = &mut self.present
            {
                all.next -= 1;
            }
            compared?;
            if self.taken.0 == 0 && !revision.departed.is_empty() {
                self.unreadable = self.present.as_mut().and_then(|all| all.unreadable.take());
                if self.unreadable.is_none() {
                    self.unknown = departed::unknown_of(&present.departed, revision, text)?;
                }
            }
        } else {
            commit(self, text)?;
            self.unknown.clear();
        }
        self.taken = revision.revision;
        Ok(present.is_none())
    }

    /// The last revision of the history that the document has: pushed, or there and compared; 0
    /// before the first. It stays whatever comes behind it.
    pub fn taken(&self) -> Revision {
        self.taken
    }

    /// Whether the document has all revisions of the history so far, but does not know all records
    /// that departed before them. Where it lacks revisions, it learns of these with the next one.
    pub fn lacks_departed(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// Ends it, makes the unique indexes of the history, sets its tags, declares how much of it is
    /// kept, and tells the newest revision.
    ///
    /// `Conflict` if the document has revisions that were not in the history, or a tag of the same
    /// name at another one, or if two records have the same values where an index is unique;
    /// `Invalid` if a tag is of a revision that was not in it; `Corrupt` if its revision has not
    /// the hash that it is to have. No tag is set then. `Corrupt` also, but with all the rest done,
    /// if records departed of the history and it cannot be read which did of the document: none of
    /// them were taken over.
    pub fn finish(self) -> Result<Revision> {
        if self.taken >= self.head {
            self.check_unique()?;
            self.finish_facts()?;
            let context = "all but the records that departed was taken over";
            let unreadable = self.unreadable.map(|error| error.in_context(context));
            return unreadable.map_or(Ok(self.taken), Err);
        }
        let message = format!(
            "document {:?} has {} revisions, of which the history has only the first {}",
            self.name, self.head, self.taken
        );
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// The revision that the document has of a number in the history.
    fn revision_of(&self, number: Revision) -> Revision {
        match &self.present {
            Some(present) if number.0 > 0 && number <= self.head => {
                Revision(present.kept.numbered(number.0))
            }
            _ => Revision(number.0 + self.dropped),
        }
    }

    fn compare(&self, present: &ExportedRevision, given: &ExportedRevision) -> Result<()> {
        let what = if present.timestamp != given.timestamp {
            "timestamp"
        } else if present.author != given.author {
            "author"
        } else if present.message != given.message {
            "message"
        } else if !present.has_content_of(given) {
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
        let DepartedRecords::Held(departed) = &given.departed else {
            return Err(long::not_at_hand());
        };
        let mut transaction = self.database.transaction();
        transaction.repeat();
        let name = self.name.as_str();
        if matches!(given.content, ExportedContent::Deleted) {
            // Documents come after the catalogue in the order in which they are locked.
            transaction.catalogue()?;
        }
        // Made in the same commit, so that a refused value leaves no document behind.
        if self.is_missing && self.taken.0 == 0 {
            transaction.create_document(name)?;
            // Unique indexes are made of the newest revision: earlier ones may have had twice what
            // is unique since.
            transaction.declare(name, &self.facts.options.clone().while_imported())?;
        } else {
            transaction.expect(name, self.revision_of(self.taken))?;
        }
        // What a purge took may have been all that a revision changed.
        if let ExportedContent::Patch { patch, moves } = &given.content
            && patch == "[]"
            && moves.is_empty()
        {
            transaction.keep_unchanged();
        }
        given.stage(&mut transaction, name)?;
        transaction.count_versions(name, &given.counted)?;
        transaction.give_versions(name, &given.versions)?;
        transaction.depart_records(name, departed)?;
        if !self.unknown.is_empty() {
            let unknown = self.unknown.iter().map(|(key, versions)| (key.as_str(), *versions));
            transaction.depart_unknown_records(name, unknown)?;
        }
        let committed = transaction.commit(&CommitOptions {
            author: given.author.clone(),
            message: given.message.clone(),
            timestamp: Some(given.timestamp),
            durability: self.durability,
            ..CommitOptions::default()
        })?;
        let expected = self.revision_of(given.revision);
        if committed.revisions.iter().any(|(_, revision)| *revision == expected) {
            return Ok(());
        }
        let message = format!(
            "revision {} does not differ from the one before it, as every revision does",
            given.revision
        );
        Err(Error::new(ErrorKind::Invalid, message))
    }
}

impl ExportedRevision {
    /// Whether this revision, as a document has it, is what another one is to make.
    fn has_content_of(&self, given: &Self) -> bool {
        let told = given.hash.or_else(|| match &given.content {
            ExportedContent::Value(json) => Some(ContentHash::of_json(json.as_bytes())),
            _ => None,
        });
        match (self.hash, told) {
            (Some(present), Some(told)) => present == told,
            _ => self.content == given.content,
        }
    }

    /// Makes of a document what the revision is, and holds that against its hash.
    fn stage(&self, transaction: &mut Transaction, name: &str) -> Result<()> {
        match &self.content {
            ExportedContent::Value(json) => transaction.put(name, json.as_bytes())?,
            ExportedContent::Patch { patch, moves } => {
                transaction.patch(name, patch.as_bytes())?;
                moves.iter().try_for_each(|moved| place(transaction, name, moved))?;
            }
            ExportedContent::LongValue => return Err(long::not_at_hand()),
            ExportedContent::Deleted => return transaction.delete_document(name),
        }
        let Some(expected) = self.hash else { return Ok(()) };
        let writer = transaction.writer(name)?;
        let found = writer.tree.content_hash(writer.revision)?;
        if found == expected {
            return Ok(());
        }
        let message = format!(
            "revision {} is to have the hash {expected}, but has {found}: it, or one before it, \
             was changed after it was exported; export the history again",
            self.revision
        );
        Err(Error::new(ErrorKind::Corrupt, message))
    }
}

/// Moves a member of an object to its place.
fn place(transaction: &mut Transaction, name: &str, moved: &MemberMove) -> Result<()> {
    let object = moved.member.parent().ok_or_else(|| {
        Error::new(ErrorKind::Invalid, "the root has no place: a move is of a member of an object")
    })?;
    let position = match &moved.before {
        Some(sibling) => Position::Before(object.child(sibling).into()),
        None => Position::Last(object.into()),
    };
    transaction.move_to(name, &moved.member, &position, None)
}
