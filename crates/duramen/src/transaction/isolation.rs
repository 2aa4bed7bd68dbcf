//! Transactions that see one snapshot, and begin again where others came first.
//!
//! Invariants:
//! - what such a transaction reads is as of its snapshot, with what it staged itself;
//! - a tree that it writes has not changed since the snapshot, and nobody else changes it before
//!   the transaction ends; so what is staged in it is the snapshot with the transaction's changes;
//! - a serializable one commits only if what it read has not changed either, up to the moment in
//!   which the commit is queued.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::read_set::ReadSet;
use super::{Committed, Transaction, busy};
use crate::collection::{CollectionSnapshot, Key, ScanOptions, no_collection};
use crate::database::Database;
use crate::document::Document;
use crate::engine::CATALOGUE;
use crate::engine::catalogue::facts;
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::TRANSACTION_ATTEMPTS;
use crate::revision::{CommitSequence, Revision};
use crate::snapshot::Snapshot;
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;

/// How a transaction of [`Database::transact`] is run and committed.
#[derive(Debug, Clone)]
pub struct TransactOptions {
    /// What goes with the commit.
    pub commit: CommitOptions,
    /// Whether it commits only if what it read is still so, not only what it wrote. Then all such
    /// transactions together are as if they had run one after the other.
    pub serializable: bool,
    /// How often it is tried before the last conflict is the answer; at least 1.
    pub attempts_max: u32,
}

impl Default for TransactOptions {
    fn default() -> Self {
        let attempts_max = TRANSACTION_ATTEMPTS;
        Self { commit: CommitOptions::default(), serializable: false, attempts_max }
    }
}

/// What a transaction is based on.
#[derive(Debug)]
pub(super) struct Base {
    sequence: CommitSequence,
    /// What was read; none if nobody asks.
    reads: Option<ReadSet>,
    /// The tree that somebody else came to first.
    lost: Option<TreeId>,
}

impl Database {
    /// Runs a transaction over any number of documents and collections, and commits it: all that
    /// it changed becomes visible together, or nothing.
    ///
    /// All it reads is of one snapshot, with its own changes. Where somebody else changed a
    /// document or collection that it writes, or, if it is
    /// [serializable](TransactOptions::serializable), what it read, it is run again on a newer
    /// snapshot; from then on others who write what it came to wait for it. So `body` may run
    /// several times and should have no effects but through the transaction. If it gives an error
    /// or panics, everything is taken back.
    ///
    /// # Errors
    /// What `body` gives. `Conflict` or `Busy` if others came first in every attempt.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, Key, KeyKind, TransactOptions};
    ///
    /// let db = Database::memory()?;
    /// let stock = db.create_collection("stock", KeyKind::Text)?;
    /// stock.put("apple", r#"{"count":3}"#, &CommitOptions::default())?;
    /// db.create_collection("orders", KeyKind::U64)?;
    ///
    /// let apple = Key::from("apple");
    /// let (left, committed) = db.transact(&TransactOptions::default(), |transaction| {
    ///     let left = transaction.get_record("stock", &apple)?;
    ///     transaction.put_record("stock", &apple, br#"{"count":2}"#)?;
    ///     transaction.insert_record("orders", &Key::U64(1), br#"{"of":"apple"}"#)?;
    ///     Ok(left)
    /// })?;
    /// assert_eq!(left.as_deref(), Some(r#"{"count":3}"#));
    /// assert_eq!(committed.revisions.len(), 2);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn transact<T>(
        &self,
        options: &TransactOptions,
        mut body: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<(T, Committed)> {
        let mut wanted = BTreeSet::new();
        let mut attempt = 1;
        loop {
            let mut transaction = Transaction::new(Arc::clone(&self.engine));
            let begun = transaction.begin_isolated(options.serializable, &wanted);
            let done = begun.and_then(|()| body(&mut transaction));
            let done = done.and_then(|value| transaction.check_isolation().map(|()| value));
            match done {
                Ok(value) => return Ok((value, transaction.commit(&options.commit)?)),
                Err(error) if !transaction.is_late() => return Err(error),
                Err(error) if attempt >= options.attempts_max => {
                    return Err(error.in_context(format!("tried {attempt} times")));
                }
                Err(_) => wanted.extend(transaction.touched()),
            }
            attempt += 1;
        }
    }
}

impl Transaction {
    /// Begins on a snapshot, with the turns of the trees that the attempt before came to: nobody
    /// comes first there any more.
    fn begin_isolated(&mut self, serializable: bool, wanted: &BTreeSet<TreeId>) -> Result<()> {
        let reads = serializable.then(ReadSet::default);
        self.base = Some(Base { sequence: CommitSequence(0), reads, lost: None });
        for &id in wanted {
            let tree = Arc::clone(&self.take_turn(id)?.tree);
            self.wait_published(&tree)?;
        }
        if let Some(base) = &mut self.base {
            base.sequence = self.engine.published();
        }
        Ok(())
    }

    /// The commit that the transaction sees: that of its snapshot, else the last.
    pub(super) fn seen(&self) -> CommitSequence {
        self.base.as_ref().map_or_else(|| self.engine.published(), |base| base.sequence)
    }

    /// Somebody else has the turn of a tree.
    pub(super) fn lose_turn(&mut self, id: TreeId) -> Error {
        if let Some(base) = &mut self.base {
            base.lost = Some(id);
        }
        busy()
    }

    /// Refuses a tree whose turn was just taken if it changed since the snapshot.
    pub(super) fn check_base(&mut self, id: TreeId) -> Result<()> {
        let Some(base) = &self.base else { return Ok(()) };
        let (sequence, writer) = (base.sequence, &self.writers[&id]);
        let newest = u64::from(writer.revision) - 1;
        if writer.tree.head_at(sequence)?.0 == newest {
            return Ok(());
        }
        self.writers.remove(&id);
        Err(self.lose(id))
    }

    /// What the snapshot shows of a tree has changed since.
    fn lose(&mut self, id: TreeId) -> Error {
        if let Some(base) = &mut self.base {
            base.lost = Some(id);
        }
        let name = self.names.iter().find(|&(_, &other)| other == id);
        let what = match name {
            Some((name, _)) => format!("{name:?}"),
            None if id == TreeId::SERIES => "the series".to_owned(),
            None => "the names of documents".to_owned(),
        };
        let reads = self.base.as_ref().and_then(|base| base.reads.as_ref());
        let how = if reads.is_some_and(|reads| reads.is_too_much(id)) {
            ", of which it read more than is told apart: retry, or read less of it at once"
        } else {
            ": retry"
        };
        let message = format!("another commit changed {what} since the transaction began{how}");
        Error::new(ErrorKind::Conflict, message)
    }

    /// Whether somebody else came first, so that another attempt may do.
    fn is_late(&self) -> bool {
        self.base.as_ref().is_some_and(|base| base.lost.is_some())
    }

    /// The trees that the transaction came to.
    fn touched(&self) -> BTreeSet<TreeId> {
        let mut touched: BTreeSet<TreeId> = self.writers.keys().copied().collect();
        if let Some(base) = &self.base {
            touched.extend(base.lost);
            touched.extend(base.reads.iter().flat_map(ReadSet::touched));
        }
        touched
    }

    /// Refuses to commit if what was read has changed, and has nobody change it before the commit.
    fn check_isolation(&mut self) -> Result<()> {
        let Some(base) = &mut self.base else { return Ok(()) };
        if let Some(lost) = base.lost {
            // The error was not passed on.
            return Err(self.lose(lost));
        }
        if self.writers.is_empty() && self.points.is_empty() {
            // It read one snapshot and changed nothing: it was when that was.
            return Ok(());
        }
        let sequence = base.sequence;
        let reads = base.reads.take().unwrap_or_default();
        let changed = self.changed_read(&reads, sequence);
        if let Some(base) = &mut self.base {
            base.reads = Some(reads);
        }
        let changed = match changed? {
            None if self.lost_series()?.is_some() => Some(TreeId::SERIES),
            changed => changed,
        };
        changed.map_or(Ok(()), |id| Err(self.lose(id)))
    }

    /// The first tree of which something that was read is no longer so. Nobody changes any of the
    /// rest before the transaction ends.
    fn changed_read(&mut self, reads: &ReadSet, seen: CommitSequence) -> Result<Option<TreeId>> {
        let has_names = self.writers.contains_key(&CATALOGUE);
        for id in reads.touched() {
            if self.writers.contains_key(&id) {
                // Nobody changed it since the snapshot, or it could not be written.
                continue;
            }
            let tree = Arc::clone(&self.take_turn(id)?.tree);
            let (seen, newest) = (tree.head_at(seen)?, tree.newest());
            if !reads.is_same(&tree, (seen, newest))? {
                return Ok(Some(id));
            }
        }
        // Whoever gives a name to a document, or takes it away, has the turn of the document or,
        // where none had it, of the catalogue: what was queued is all there is.
        let catalogue = self.engine.view().tree(CATALOGUE)?;
        let newest = catalogue.newest();
        if has_names || catalogue.head_at(seen)? == newest {
            return Ok(None);
        }
        reads.changed_name(&catalogue, newest)
    }

    /// What a document is in the snapshot, if the transaction has one and does not write it.
    pub(super) fn read_document(&mut self, name: &str) -> Result<Option<Snapshot>> {
        let Some((id, tree)) = self.unwritten(name)? else { return Ok(None) };
        let head = tree.head_at(self.seen())?;
        if let Some(reads) = self.reads() {
            reads.note_all(id);
        }
        Snapshot::new(tree, (head, head), name).map(Some)
    }

    /// The same of a collection. `key` is what is read of it, if not all.
    pub(super) fn read_records(
        &mut self,
        name: &str,
        key: Option<&Key>,
    ) -> Result<Option<CollectionSnapshot>> {
        let Some((id, tree)) = self.unwritten(name)? else { return Ok(None) };
        let (catalogue, revision) = self.names_now()?;
        let declared = facts::options(&catalogue, id, revision)?;
        let keys = declared.and_then(|declared| declared.collection);
        let keys = keys.ok_or_else(|| no_collection(name))?;
        let head = tree.head_at(self.seen())?;
        match (self.reads(), key) {
            (Some(reads), Some(key)) => reads.note_record(id, keys, key),
            (Some(reads), None) => reads.note_all(id),
            (None, _) => {}
        }
        let document = Document::new(Arc::clone(&self.engine), Arc::clone(&tree), name);
        let snapshot = (head.0 > 0).then(|| Snapshot::new(tree, (head, head), name)).transpose()?;
        Ok(Some(CollectionSnapshot::of(document, snapshot, keys)))
    }

    /// A document that is read in the snapshot: none if there is no snapshot, or it is written.
    fn unwritten(&mut self, name: &str) -> Result<Option<(TreeId, Arc<Tree>)>> {
        if self.base.is_none() {
            return Ok(None);
        }
        let id = self.find(name)?.ok_or_else(|| self.missing(name))?;
        if self.writers.contains_key(&id) {
            return Ok(None);
        }
        Ok(Some((id, self.engine.view().tree(id)?)))
    }

    /// Notes what a name stood for when the transaction came to it.
    pub(super) fn note_name(&mut self, name: &str, stood: Option<TreeId>) {
        if let Some(reads) = self.reads() {
            reads.note_name(name, stood);
        }
    }

    /// Notes that the catalogue of the series was asked.
    pub(super) fn note_series(&mut self) {
        if let Some(reads) = self.reads() {
            reads.note_all(TreeId::SERIES);
        }
    }

    fn reads(&mut self) -> Option<&mut ReadSet> {
        self.base.as_mut()?.reads.as_mut()
    }

    /// The records of a collection in the order of their keys, as this transaction has made them.
    ///
    /// They are all held in memory: give a [limit](ScanOptions::limit) and go on behind the last
    /// key where there are many.
    pub fn scan_records(
        &mut self,
        name: &str,
        options: &ScanOptions,
    ) -> Result<Vec<(Key, String)>> {
        let records = self.staged_records(name)?.scan(options)?;
        records.map(|record| record.map(|record| (record.key, record.json))).collect()
    }

    /// All records of a collection as this transaction has made them, each with the version that it
    /// had before.
    pub(crate) fn staged_records(&mut self, name: &str) -> Result<CollectionSnapshot> {
        if let Some(records) = self.read_records(name, None)? {
            return Ok(records);
        }
        let keys = self.key_kind(name)?;
        let writer = self.writer(name)?;
        let revision = Revision(writer.revision.into());
        let tree = Arc::clone(&writer.tree);
        let document = Document::new(Arc::clone(&self.engine), Arc::clone(&tree), name);
        let snapshot = Snapshot { tree, revision, head: revision };
        Ok(CollectionSnapshot::of(document, Some(snapshot), keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::KeyKind;

    /// What another attempt put into a document that was deleted meanwhile was there, and the
    /// document was not: nobody had told the catalogue that it lives again.
    #[test]
    fn documents_that_were_deleted_since_the_first_attempt_live_again() {
        let how = CommitOptions::default();
        for (serializable, is_collection) in [(false, true), (true, true), (false, false)] {
            let db = Database::memory().unwrap();
            db.create_document("other").unwrap().put("0", &how).unwrap();
            if is_collection {
                let notes = db.create_collection("notes", KeyKind::Text).unwrap();
                notes.put("a", "{}", &how).unwrap();
            } else {
                db.create_document("notes").unwrap().put("{}", &how).unwrap();
            }
            let options = TransactOptions { serializable, ..TransactOptions::default() };
            let mut attempts = 0;
            db.transact(&options, |transaction| {
                attempts += 1;
                transaction.put("other", b"1")?;
                if attempts == 1 {
                    let mut deleting = db.transaction();
                    deleting.delete_document("notes")?;
                    deleting.commit(&how)?;
                }
                if is_collection {
                    transaction.put_record("notes", &"b".into(), b"{}")
                } else {
                    transaction.put("notes", br#"{"b":{}}"#)
                }
            })
            .unwrap();
            assert!(attempts > 1);
            assert_eq!(db.deleted_documents().unwrap(), []);
            assert_eq!(db.collections().unwrap().len(), usize::from(is_collection));
            let notes = db.document("notes").unwrap().head().unwrap();
            assert_eq!(notes.to_json().unwrap(), r#"{"b":{}}"#);
            assert!(db.check().unwrap().is_clean());
        }
    }
}
