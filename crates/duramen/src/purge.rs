//! Purging: a value is erased from every revision of a document, and from every file.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::document::Document;
use crate::durability::Durability;
use crate::engine::Engine;
use crate::engine::catalogue::purges;
use crate::engine::options::CommitOptions;
use crate::engine::purge::{GOES_ON, Pending, Progress, Purges};
use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::node::NodeId;
use crate::revision::{CommitSequence, Micros, Revision};
use crate::target::Target;
use crate::transaction::Transaction;

/// A value that was purged, as its document remembers it: everything but the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purge {
    /// Where it was when it was purged.
    pub place: JsonPointer,
    /// Its id; none if it was purged before the document was taken over from another database, in
    /// which values have other ids.
    pub node: Option<NodeId>,
    /// When it was purged: the commit timestamp.
    pub timestamp: Micros,
    /// Who did it.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
    /// Whether the value is still to be erased: the purge is under way, or was interrupted.
    pub is_pending: bool,
}

/// How a value is purged.
#[derive(Debug, Clone, Default)]
pub struct PurgeOptions {
    /// The revision in which the value is named, for one that is not there any more; the newest if
    /// none is given.
    pub at: Option<Revision>,
    /// Who does it, and why.
    pub commit: CommitOptions,
}

impl Document {
    /// Erases a value from the whole history of the document, and from every file of the database.
    ///
    /// In every revision that had it the place reads `null` from then on, and what was in it is not
    /// there; it is removed from the newest one. What is erased is the value with that id: what a
    /// move to another place, a new name or a copy made of it is another value, to be purged on its
    /// own. The place, the names of fields in the value, and the revisions that changed it stay
    /// known, and so do who purged it, when and why ([`Document::purges`]).
    ///
    /// The segments are all written anew without it, and the journal and the old segments are
    /// overwritten; it takes room for the new segment beside the old ones. Reading and writing go
    /// on meanwhile; only this document cannot be changed (`Busy`). A reader in another process has
    /// to `refresh`. Backups made before still have the value. `progress` is told the bytes read
    /// and those to read, and may stop it: as after any interruption the purge goes on when the
    /// database is opened for writing, compacted, or something else is purged.
    ///
    /// # Errors
    /// `NotFound` if nothing is there, `Invalid` for the whole document and for what is within a
    /// subtree stored whole. `Cancelled` if `progress` stopped it, `Full` if there is no room:
    /// the purge is pending then, and cannot be undone.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use duramen::{CommitOptions, Database, JsonPointer, PurgeOptions, Revision};
    ///
    /// let ann = Database::memory()?.create_document("ann")?;
    /// ann.put(r#"{"id":1,"ssn":"078-05-1120"}"#, &CommitOptions::default())?;
    /// let ssn = JsonPointer::parse("/ssn")?;
    /// ann.purge(&ssn, &PurgeOptions::default(), &mut |_read, _total| ControlFlow::Continue(()))?;
    /// assert_eq!(ann.head()?.to_json()?, r#"{"id":1}"#);
    /// assert_eq!(ann.at(Revision(1))?.to_json()?, r#"{"id":1,"ssn":null}"#);
    /// assert_eq!(ann.purges()?[0].place, ssn);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn purge<'t, T>(
        &self,
        target: &'t T,
        options: &PurgeOptions,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Purge>
    where
        &'t T: Into<Target>,
    {
        let (engine, _) = self.parts();
        engine.journal()?;
        let mut under_way = engine.purges.lock();
        finish_all(engine, &mut under_way, progress)?;
        let timestamp = self.commit_purge(&mut under_way, &target.into(), options)?;
        finish_all(engine, &mut under_way, progress)?;
        drop(under_way);
        let mut told = self.purges()?.into_iter();
        let found = told.rfind(|purge| purge.timestamp == timestamp);
        Ok(found.expect("a purge that was committed is told"))
    }

    /// Commits that a value is purged, and closes the document to writers; when that was.
    fn commit_purge(
        &self,
        under_way: &mut Purges,
        target: &Target,
        options: &PurgeOptions,
    ) -> Result<Micros> {
        let (engine, tree) = self.parts();
        let mut transaction = Transaction::new(Arc::clone(engine));
        transaction.adopt(self.name(), tree);
        transaction.catalogue()?;
        if let Some(expected) = options.commit.expect_revision {
            transaction.expect(self.name(), expected)?;
        }
        transaction.purge(self.name(), target, options.at)?;
        // A checkpoint that fails later leaves nothing behind that has the value.
        engine.checkpoint_in_turn(&engine.checkpoint_turn())?;
        engine.set_purging(true)?;
        under_way.close(tree);
        let commit = CommitOptions {
            expect_revision: None,
            durability: Some(Durability::Sync),
            ..options.commit.clone()
        };
        let committed = transaction.commit(&commit).inspect_err(|_| under_way.open())?;
        Ok(committed.timestamp)
    }

    /// The values that were purged from the document, oldest first. They stay known to who takes
    /// its history over: by a dump, an export or a repair.
    pub fn purges(&self) -> Result<Vec<Purge>> {
        self.purges_at(self.parts().0.published())
    }

    /// The values that were purged as of a commit, oldest first.
    pub(crate) fn purges_at(&self, at: CommitSequence) -> Result<Vec<Purge>> {
        let (engine, tree) = self.parts();
        let (catalogue, head) = engine.view().catalogue(at)?;
        let purge = |facts: purges::PurgeFacts| {
            let row = catalogue.row(facts.set)?;
            Ok(Purge {
                place: facts.place,
                node: facts.node,
                timestamp: facts.elsewhere.unwrap_or(row.committed),
                author: row.author.map(Into::into),
                message: row.message.map(Into::into),
                is_pending: facts.is_pending,
            })
        };
        purges::purges(&catalogue, tree.id(), head)?.into_iter().map(purge).collect()
    }
}

/// Goes on with purges that were interrupted.
pub(crate) fn finish(engine: &Arc<Engine>, progress: &mut Progress<'_>) -> Result<()> {
    finish_all(engine, &mut engine.purges.lock(), progress)
}

fn finish_all(
    engine: &Arc<Engine>,
    purges: &mut Purges,
    progress: &mut Progress<'_>,
) -> Result<()> {
    if !engine.is_purging() {
        return Ok(());
    }
    let pending = engine.pending_purges()?;
    for purge in &pending {
        purges.close(&purge.tree);
    }
    if !pending.is_empty() {
        let erased = engine.erase(purges, &pending, progress);
        erased.and_then(|()| tell_done(engine, &pending)).map_err(begun)?;
    }
    engine.set_purging(false)?;
    purges.open();
    Ok(())
}

/// Says of what a purge failed with that it is not over.
fn begun(error: Error) -> Error {
    // What was asked to stop says so itself.
    if error.kind() == ErrorKind::Cancelled {
        return error;
    }
    error.reworded(|message| {
        format!("{message}; the purge has begun and cannot be undone: it goes on {GOES_ON}")
    })
}

/// Commits that what was pending is done.
fn tell_done(engine: &Arc<Engine>, pending: &[Pending]) -> Result<()> {
    let mut transaction = Transaction::new(Arc::clone(engine));
    let catalogue = transaction.catalogue()?;
    for Pending { tree, number, .. } in pending {
        catalogue.finish_purge(tree, number)?;
    }
    let options = CommitOptions { durability: Some(Durability::Sync), ..CommitOptions::default() };
    transaction.commit(&options).map(drop)
}

#[cfg(test)]
mod tests;
