//! How much of the history of a document is kept.

use crate::document::Document;
use crate::engine::catalogue::facts;
use crate::engine::options::CommitOptions;
use crate::error::Result;
use crate::retention::Retention;
use crate::revision::Revision;
use crate::transaction::Committed;

impl Document {
    /// How much of its history the document is to keep.
    pub fn retention(&self) -> Result<Retention> {
        Ok(self.options()?.keep)
    }

    /// Keeps so much of the history from now on. What is to be dropped is dropped when segments are
    /// merged; [`Database::compact`](crate::Database::compact) does it at once.
    pub fn retain(&self, keep: Retention, options: &CommitOptions) -> Result<Committed> {
        let mut transaction = self.catalogue_transaction()?;
        let writer = transaction.catalogue()?;
        let declared = facts::options(&writer.tree, self.tree.id(), writer.revision)?;
        let mut declared = declared.unwrap_or_default();
        declared.keep = keep;
        transaction.declare(&self.name, &declared)?;
        transaction.commit(options)
    }

    /// The revision that the history begins with: 1, unless earlier ones were dropped by the
    /// document's [retention](Document::retain). Revisions before it can be read only if they were
    /// tagged when the others were dropped.
    pub fn first_revision(&self) -> Result<Revision> {
        let first = Revision(self.tree.first_revision());
        Ok(first.min(self.head_revision()?.max(Revision(1))))
    }
}
