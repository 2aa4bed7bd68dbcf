//! The options of a document: what is declared of its values.

use std::sync::Arc;

use crate::database::Database;
use crate::document::Document;
use crate::engine::catalogue::facts;
use crate::engine::options::CommitOptions;
use crate::error::Result;
use crate::options::DocumentOptions;
use crate::revision::CommitSequence;
use crate::transaction::{Committed, Transaction};
use crate::tree::cell_key::TreeId;

impl Database {
    /// Makes a document without revisions of which something is declared; `Conflict` if there is
    /// one of that name, deleted or not.
    pub fn create_document_with(&self, name: &str, declared: &DocumentOptions) -> Result<Document> {
        declared.check()?;
        let mut transaction = self.transaction();
        transaction.create_document(name)?;
        transaction.declare(name, declared)?;
        transaction.commit(&CommitOptions::default())?;
        self.document(name)
    }
}

impl Document {
    /// What is declared of the document.
    pub fn options(&self) -> Result<DocumentOptions> {
        self.options_at(self.engine.published())
    }

    /// What is declared of the document, remembered as long as the catalogue is as it was.
    pub(crate) fn declared(&self) -> Result<Arc<DocumentOptions>> {
        let (catalogue, head) = self.engine.view().catalogue(self.engine.published())?;
        let read = || facts::options(&catalogue, self.tree.id(), head);
        Ok(self.tree.options.at(head, read)?.unwrap_or_default())
    }

    /// What was declared of it as of a commit.
    pub(crate) fn options_at(&self, at: CommitSequence) -> Result<DocumentOptions> {
        let (catalogue, head) = self.engine.view().catalogue(at)?;
        Ok(facts::options(&catalogue, self.tree.id(), head)?.unwrap_or_default())
    }

    /// A transaction that changes the options, and the tree that they are of.
    pub(crate) fn options_transaction(&self) -> Result<(Transaction, TreeId)> {
        Ok((self.catalogue_transaction()?, self.tree.id()))
    }

    /// Declares other options, for what is put from then on; what is stored stays as it is.
    pub fn set_options(
        &self,
        declared: &DocumentOptions,
        options: &CommitOptions,
    ) -> Result<Committed> {
        declared.check()?;
        let mut transaction = self.catalogue_transaction()?;
        transaction.declare(&self.name, declared)?;
        transaction.commit(options)
    }
}
