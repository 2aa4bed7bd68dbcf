//! What an exported history says of its document beside the revisions: options, tags and purges.

use crate::content_hash::ContentHash;
use crate::document::{Document, Tag, check_tag};
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::export::{HistoryExport, HistoryImport};
use crate::options::DocumentOptions;
use crate::purge::Purge;
use crate::retention::Retention;
use crate::revision::{CommitSequence, Revision};
use crate::tree::history::short;

/// What is said of a document beside its revisions.
///
/// ```
/// use duramen::{CommitOptions, Database};
///
/// let old = Database::memory()?.create_document("note")?;
/// old.put("1", &CommitOptions::default())?;
/// old.tag("v1", None, &CommitOptions::default())?;
///
/// let (db, history) = (Database::memory()?, old.export()?);
/// let mut import = db.import_history("note", None)?;
/// import.set_facts(history.facts()?)?;
/// for revision in history {
///     import.push(&revision?)?;
/// }
/// import.finish()?;
/// assert_eq!(db.document("note")?.at_tag("v1")?.to_json()?, "1");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportedFacts {
    /// What is declared of it.
    pub options: DocumentOptions,
    /// Its tags. Taking them over keeps who set them, when and why.
    pub tags: Vec<Tag>,
    /// What was purged of it, oldest first. Taking it over keeps when that was, by whom and why.
    /// One that is pending is not told: what it is to erase is still there.
    pub purges: Vec<Purge>,
}

impl ExportedFacts {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.options.is_empty() && self.tags.is_empty() && self.purges.is_empty()
    }
}

impl HistoryExport {
    /// What is to be said of the document before its revisions: its options, the tags of these
    /// revisions, and what was purged.
    pub fn facts(&self) -> Result<ExportedFacts> {
        self.facts_at(self.document.published())
    }

    /// The same as of a commit.
    pub(crate) fn facts_at(&self, at: CommitSequence) -> Result<ExportedFacts> {
        let mut tags = self.document.tags_at(at)?;
        tags.retain(|tag| self.kept.has(short(tag.revision)));
        for tag in &mut tags {
            tag.revision.0 = self.kept.count_up_to(tag.revision.0);
        }
        tags.retain(|tag| tag.revision.0 <= self.last);
        let purges = done(self.document.purges_at(at)?);
        Ok(ExportedFacts { options: told(self.document.options_at(at)?), tags, purges })
    }
}

impl HistoryImport {
    /// Takes what is said of the document: its options at once, but for how much is kept, its tags
    /// and what was purged at the [end](HistoryImport::finish).
    ///
    /// `Conflict` if there is a document with other options; `Invalid` after the first revision.
    pub fn set_facts(&mut self, facts: ExportedFacts) -> Result<()> {
        if self.taken.0 > 0 {
            let message = "options and tags stand before the first revision of a history";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        facts.options.check()?;
        if !self.is_missing && !self.has_options(&facts.options)? {
            let message = format!(
                "document {:?} has other options than the history: import it into a document \
                 that does not exist, or declare the same",
                self.name
            );
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        self.facts = facts;
        Ok(())
    }

    /// Whether the document has these options, but for what is declared at the end.
    fn has_options(&self, wanted: &DocumentOptions) -> Result<bool> {
        let found = told(self.database.document(&self.name)?.options()?);
        let wanted = told(wanted.clone());
        // An import that was stopped may have made these.
        let made = wanted.clone().while_imported();
        let indexed = DocumentOptions { keep: Retention::All, ..wanted.clone() };
        let kept = DocumentOptions { keep: wanted.keep, ..made.clone() };
        Ok([wanted, made, indexed, kept].contains(&found))
    }

    /// Refuses what two records of the newest revision have where an index is unique that was there
    /// before: no revision of a history is compared when it is taken over.
    pub(super) fn check_unique(&self) -> Result<()> {
        // Where there are none nothing is read that could fail, as all is committed already.
        if self.taken.0 == 0 || !self.has_unique {
            return Ok(());
        }
        self.database.collection(&self.name)?.check_unique()
    }

    /// Makes unique indexes that are missing.
    fn finish_indexes(&self) -> Result<()> {
        let (_, unique) = self.facts.options.clone().without_unique();
        if unique.is_empty() {
            return Ok(());
        }
        let collection = self.database.collection(&self.name)?;
        let there = collection.indexes()?;
        let mut missing = unique.iter().filter(|index| !there.contains(index));
        missing.try_for_each(|index| collection.create_index(index))
    }

    /// Sets the tags and remembers the purges, if all of them can be; of a document without
    /// revisions, makes it.
    pub(super) fn finish_facts(&self) -> Result<()> {
        if self.facts.is_empty() {
            return Ok(());
        }
        if self.is_missing && self.taken.0 == 0 {
            self.database.create_document_with(&self.name, &self.facts.options)?;
        }
        let document = self.database.document(&self.name)?;
        self.check_tags(&document)?;
        self.finish_indexes()?;
        for tag in &self.facts.tags {
            document.take_tag(tag, self.revision_of(tag.revision), self.durability)?;
        }
        let mut purges = self.facts.purges.iter();
        purges.try_for_each(|purge| document.remember_purge(purge, self.durability))?;
        let keep = self.facts.options.keep;
        if document.options()?.keep != keep {
            let durability = self.durability;
            document.retain(keep, &CommitOptions { durability, ..CommitOptions::default() })?;
        }
        Ok(())
    }

    fn check_tags(&self, document: &Document) -> Result<()> {
        let present = document.tags()?;
        for tag in &self.facts.tags {
            let Tag { name, revision, hash: expected, .. } = tag;
            check_tag(name)?;
            if revision.0 == 0 || *revision > self.taken {
                let message =
                    format!("the tag {name:?} is of revision {revision}, which is not there");
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            if let Some(other) = present.iter().find(|other| other.name == *name)
                && other.revision != self.revision_of(*revision)
            {
                let message = format!(
                    "the tag {name:?} of document {:?} is at revision {} already, in the history \
                     at {revision}: move or remove it",
                    self.name, other.revision
                );
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            let found = document.at(self.revision_of(*revision))?.content_hash()?;
            if found != *expected {
                return Err(wrong_hash(name, *revision, (*expected, found)));
            }
        }
        Ok(())
    }
}

/// The purges that are done, without the ids that only this database knows.
fn done(mut purges: Vec<Purge>) -> Vec<Purge> {
    purges.retain(|purge| !purge.is_pending);
    for purge in &mut purges {
        purge.node = None;
    }
    purges
}

/// Options without what only this database knows: the numbers of its indexes, and which of them are
/// being made.
fn told(options: DocumentOptions) -> DocumentOptions {
    let indexes = options.indexes.definitions().collect();
    DocumentOptions { indexes, ..options }
}

fn wrong_hash(
    name: &str,
    revision: Revision,
    (expected, found): (ContentHash, ContentHash),
) -> Error {
    let message = format!(
        "the tag {name:?} is of revision {revision} with the hash {expected}, which has {found}: \
         the history was changed after it was exported; export it again"
    );
    Error::new(ErrorKind::Corrupt, message)
}
