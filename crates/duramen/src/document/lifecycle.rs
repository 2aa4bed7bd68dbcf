//! Deleting and renaming documents, one commit each.

use crate::database::Database;
use crate::document::{Commit, Document, Outcome};
use crate::engine::catalogue::{Status, facts};
use crate::engine::options::CommitOptions;
use crate::error::{ErrorKind, Result};
use crate::revision::{Micros, Revision};
use crate::transaction::Committed;
use crate::tree::history::short;

/// A document that was deleted and has been put no more since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedDocument {
    /// Its name.
    pub name: String,
    /// The revision in which it was deleted: those before are readable as far as they are kept.
    pub revision: Revision,
    /// When: the timestamp of that revision, or of its commit if it is not kept.
    pub timestamp: Micros,
    /// Who did it.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
}

impl Database {
    /// Deletes a document: it is not there from its next revision on, and every revision before
    /// stays readable. A `put` of the same name goes on counting. What the document took comes back
    /// once its [retention](crate::Document::retain) keeps no revision in which it was there:
    /// deleting it is its newest revision, which is all that [`Retention::Head`] keeps.
    ///
    /// [`Retention::Head`]: crate::Retention::Head
    ///
    /// `NotFound` if there is none of that name, it has no revision, or is deleted already.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, Revision};
    ///
    /// let db = Database::memory()?;
    /// let note = db.create_document("note")?;
    /// note.put("1", &CommitOptions::default())?;
    /// let deleted = db.delete_document("note", &CommitOptions::default())?;
    /// assert_eq!(deleted.revision(), Revision(2));
    /// assert!(db.documents()?.is_empty());
    /// assert_eq!(db.document("note")?.at(Revision(1))?.to_json()?, "1");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn delete_document(&self, name: &str, options: &CommitOptions) -> Result<Outcome> {
        let mut transaction = self.transaction();
        transaction.catalogue()?;
        if let Some(expected) = options.expect_revision {
            transaction.expect(name, expected)?;
        }
        transaction.delete_document(name)?;
        let options = CommitOptions { expect_revision: None, ..options.clone() };
        let Committed { revisions, sequence, timestamp, .. } = transaction.commit(&options)?;
        let revision = revisions.first().map_or(Revision(0), |&(_, revision)| revision);
        Ok(Outcome::Committed(Commit { revision, sequence, timestamp }))
    }

    /// Gives a document another name. Its revisions, tags and options stay with it; the old name
    /// is free again, and finds the document still in snapshots of the database taken before.
    ///
    /// `NotFound` if there is none of the old name, `Conflict` if a document has the new one,
    /// deleted or not.
    pub fn rename_document(
        &self,
        from: &str,
        to: &str,
        options: &CommitOptions,
    ) -> Result<Committed> {
        let mut transaction = self.transaction();
        transaction.rename_document(from, to)?;
        transaction.commit(options)
    }

    /// The documents that are deleted, sorted by name. Their past is readable
    /// ([`Database::document`]).
    pub fn deleted_documents(&self) -> Result<Vec<DeletedDocument>> {
        let view = self.engine.view();
        let (catalogue, head) = view.catalogue(self.engine.published())?;
        let mut deleted = Vec::new();
        for (name, found) in view.names(self.engine.published())? {
            let Status::Deleted(revision) = found.status else { continue };
            let own = view.tree(found.tree)?.row(revision);
            let row = match own {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    catalogue.row(facts::deleted_by(&catalogue, found.tree, head)?)
                }
                own => own,
            }?;
            deleted.push(DeletedDocument {
                name,
                revision,
                timestamp: row.timestamp,
                author: row.author.map(Into::into),
                message: row.message.map(Into::into),
            });
        }
        Ok(deleted)
    }
}

impl Document {
    /// Whether the document is deleted now: then it has no head, but a past.
    pub fn is_deleted(&self) -> Result<bool> {
        let head = self.head_revision()?;
        Ok(head.0 > 0 && self.tree.deleted_in(short(head))?.is_some())
    }
}
