//! The name of a document that is loaded in bulk: kept for it before, given to it after.
//!
//! The number of a tree is that of its name's entry, and stands in every cell of it. So a missing
//! name gets an entry at once, but as a free one: no document has it until the load is attached.

use std::sync::Arc;

use crate::bulk::{BulkOptions, Subject};
use crate::engine::CATALOGUE;
use crate::engine::catalogue;
use crate::error::{Error, ErrorKind, Result};
use crate::options::DocumentOptions;
use crate::revision::Revision;
use crate::transaction::Transaction;
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::writer::Writer;

/// A tree without revisions that a load is for.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) tree: TreeId,
    /// Whether no document has the name yet.
    is_missing: bool,
    /// What is declared of the document.
    pub(crate) options: Option<Arc<DocumentOptions>>,
}

impl Transaction {
    /// Finds the tree of a document, or keeps one for it; `Conflict` if it has a revision.
    pub(crate) fn reserve_document(
        &mut self,
        (name, subject): (&str, Subject),
        how: &BulkOptions,
    ) -> Result<Reserved> {
        let commit = &how.commit;
        if let Some(given) = commit.timestamp {
            self.check_not_in_future(given)?;
        }
        let found = self.find(name)?;
        if let Some(expected) = commit.expect_revision
            && (found.is_some() || expected > Revision(0))
        {
            self.expect(name, expected)?;
        }
        let (tree, is_missing) = match found {
            Some(tree) => (tree, false),
            None => self.reserve(name)?,
        };
        let declared = &how.declared;
        if !is_missing && !declared.is_empty() {
            let message =
                format!("there is a document {name:?} already: declare its options beforehand");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let options = if is_missing && !declared.is_empty() {
            Some(Arc::new(declared.clone()))
        } else {
            let tree = self.engine.view().tree(tree)?;
            self.options(&tree)?
        };
        check_subject(name, subject, options.as_deref())?;
        let reserved = Reserved { tree, is_missing, options };
        self.check_empty(name, &reserved)?;
        // Nobody waits for the document while it is loaded.
        self.release(tree);
        Ok(reserved)
    }

    /// Takes the turns that attaching needs, and stages what the catalogue has to say: the tree.
    pub(crate) fn claim_document(
        &mut self,
        (name, subject): (&str, Subject),
        reserved: &Reserved,
        how: &BulkOptions,
    ) -> Result<Arc<Tree>> {
        let is_deleted = subject == Subject::Departed;
        if is_deleted {
            self.take(CATALOGUE)?;
        }
        if reserved.is_missing {
            let writer = self.take(CATALOGUE)?;
            let found = catalogue::find(&writer.tree, name, writer.revision)?;
            if found.is_none_or(|found| found.tree != reserved.tree) {
                return Err(taken(name));
            }
            self.check_no_series(name)?;
            let writer = self.take(CATALOGUE)?;
            writer.make_live(name)?;
            if !how.declared.is_empty() {
                let json = how.declared.to_json();
                writer.set_of_tree(reserved.tree, "options", Some(&json))?;
            }
        }
        self.check_empty(name, reserved)?;
        self.check_options(name, reserved)?;
        if is_deleted {
            self.take(CATALOGUE)?.set_of_tree(reserved.tree, "deleted", Some("1"))?;
        }
        if let Some(given) = how.commit.timestamp {
            self.check_not_in_future(given)?;
        }
        if let Some(catalogue) = self.writers.get_mut(&CATALOGUE) {
            catalogue.settle(false)?;
        }
        Ok(Arc::clone(&self.take(reserved.tree)?.tree))
    }

    /// Refuses what was loaded if something was declared meanwhile that it would have to be held
    /// against: a unique index, made or being made, or how a value is taken in. The turn of the
    /// document is held: whoever declares such a thing later finds a revision.
    fn check_options(&self, name: &str, reserved: &Reserved) -> Result<()> {
        // Nobody declares anything of a name that no document has.
        if reserved.is_missing {
            return Ok(());
        }
        let tree = self.engine.view().tree(reserved.tree)?;
        let (before, now) = (reserved.options.clone(), self.options(&tree)?);
        let (before, now) = (before.unwrap_or_default(), now.unwrap_or_default());
        let is_same =
            before.collection == now.collection && before.ids == now.ids && before.maps == now.maps;
        if is_same && !now.indexes.has_unique() {
            return Ok(());
        }
        let what = if is_same { "a unique index" } else { "other options" };
        let message = format!(
            "{what} of {name:?} came while it was loaded, which the load does not regard: load it \
             anew"
        );
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// The catalogue's writer, if it has something to say.
    pub(crate) fn catalogue_writer(&self) -> Option<&Writer> {
        self.writers.get(&CATALOGUE)
    }

    /// What was staged has been committed.
    pub(crate) fn finish(mut self) {
        std::mem::take(&mut self.writers).into_values().for_each(Writer::finish);
    }

    fn check_empty(&mut self, name: &str, reserved: &Reserved) -> Result<()> {
        let writer = self.take(reserved.tree)?;
        if writer.is_new() {
            return Ok(());
        }
        let tree = Arc::clone(&writer.tree);
        self.wait_published(&tree)?;
        let message = format!(
            "document {name:?} has revisions: only a first one is loaded in bulk; put the value"
        );
        Err(Error::new(ErrorKind::Conflict, message))
    }
}

/// Refuses lines without keys for a collection, records for what is none, and both for one that has
/// to look at each of them.
fn check_subject(name: &str, subject: Subject, options: Option<&DocumentOptions>) -> Result<()> {
    let is_collection = options.is_some_and(|options| options.collection.is_some());
    let why = match subject {
        Subject::Lines if is_collection => {
            "is a collection: name the member of each line that has the key"
        }
        Subject::Records | Subject::Departed if !is_collection => {
            "is no collection, and no type of keys was declared for one"
        }
        _ if options.is_some_and(|options| options.indexes.has_unique()) => {
            "has a unique index: its records are put in batches, in which each of them is compared"
        }
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::Unsupported, format!("{name:?} {why}")))
}

fn taken(name: &str) -> Error {
    let message = format!("another document got the name {name:?} meanwhile: load it anew");
    Error::new(ErrorKind::Conflict, message)
}
