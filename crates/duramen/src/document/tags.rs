//! Tags: names for revisions of a document.

use std::sync::Arc;

use crate::content_hash::ContentHash;
use crate::document::Document;
use crate::durability::Durability;
use crate::engine::catalogue::purges::OPEN_HASH;
use crate::engine::catalogue::{check_name, facts};
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::json::escape::quoted;
use crate::revision::{CommitSequence, Micros, Revision};
use crate::snapshot::Snapshot;
use crate::transaction::{Committed, Transaction, purging};

/// A name for a revision of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// The name, one to a document.
    pub name: String,
    /// The revision it names.
    pub revision: Revision,
    /// The hash that the revision had when it was tagged.
    pub hash: ContentHash,
    /// When the tag was set to this revision: the commit timestamp. Of one that was taken over
    /// from another database it is that of the commit there; 0 in what is to be taken over if that
    /// is not known.
    pub timestamp: Micros,
    /// Who set it.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
}

impl Document {
    /// Gives a revision a name, the newest one if none is given; the revision it names.
    ///
    /// `Conflict` if the name is that of another revision ([`Document::move_tag`] changes it),
    /// `NotFound` if the document has no such revision, or was deleted in it. `Invalid` if the name
    /// could be taken for a revision, a time, a path or a node.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, Revision};
    ///
    /// let note = Database::memory()?.create_document("note")?;
    /// note.put("1", &CommitOptions::default())?;
    /// note.tag("v1", None, &CommitOptions::default())?;
    /// note.put("2", &CommitOptions::default())?;
    /// assert_eq!(note.at_tag("v1")?.to_json()?, "1");
    /// note.move_tag("v1", Some(Revision(2)), &CommitOptions::default())?;
    /// assert_eq!(note.tags()?[0].revision, Revision(2));
    /// note.untag("v1", &CommitOptions::default())?;
    /// assert!(note.tags()?.is_empty());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn tag(
        &self,
        name: &str,
        revision: Option<Revision>,
        options: &CommitOptions,
    ) -> Result<Revision> {
        self.tag_since(name, (revision, None), options)
    }

    /// Gives a revision a name that it has since a time in another database, if that is known.
    fn tag_since(
        &self,
        name: &str,
        (revision, since): (Option<Revision>, Option<Micros>),
        options: &CommitOptions,
    ) -> Result<Revision> {
        check_tag(name)?;
        let (at, mut record, mut transaction) = self.begin_tag(revision)?;
        if let Some(Micros(since)) = since {
            record.pop();
            record = format!("{record},\"timestamp_us\":{since}}}");
        }
        match self.staged_tag(&mut transaction, name)? {
            Some(tag) if tag.revision != at => {
                let message = format!(
                    "the tag {name:?} of document {:?} is at revision {} already: move it to {at}, \
                     or choose another name",
                    self.name, tag.revision
                );
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            Some(_) => {}
            None => transaction.catalogue()?.set_tag(self.tree.id(), name, Some(&record))?,
        }
        transaction.commit(options)?;
        Ok(at)
    }

    /// Sets a tag that another database has, at the revision that has this number here: with the
    /// time at which it was set there, and by whom and why. One that is there already stays.
    pub(crate) fn take_tag(
        &self,
        tag: &Tag,
        revision: Revision,
        durability: Option<Durability>,
    ) -> Result<Revision> {
        let options = CommitOptions {
            author: tag.author.clone(),
            message: tag.message.clone(),
            durability,
            ..CommitOptions::default()
        };
        let since = Some(tag.timestamp).filter(|&since| since != Micros(0));
        self.tag_since(&tag.name, (Some(revision), since), &options)
    }

    /// Sets a tag to another revision, the newest one if none is given; the revision it names now.
    ///
    /// `NotFound` if there is no such tag or no such revision.
    pub fn move_tag(
        &self,
        name: &str,
        revision: Option<Revision>,
        options: &CommitOptions,
    ) -> Result<Revision> {
        let (at, record, mut transaction) = self.begin_tag(revision)?;
        self.staged_tag(&mut transaction, name)?.ok_or_else(|| self.no_tag(name))?;
        transaction.catalogue()?.set_tag(self.tree.id(), name, Some(&record))?;
        transaction.commit(options)?;
        Ok(at)
    }

    /// Removes a tag; `NotFound` if there is none of that name.
    pub fn untag(&self, name: &str, options: &CommitOptions) -> Result<Committed> {
        let mut transaction = self.catalogue_transaction()?;
        self.staged_tag(&mut transaction, name)?.ok_or_else(|| self.no_tag(name))?;
        transaction.catalogue()?.set_tag(self.tree.id(), name, None)?;
        transaction.commit(options)
    }

    /// The tags, sorted by name. They stay with a document that is renamed or deleted.
    pub fn tags(&self) -> Result<Vec<Tag>> {
        self.tags_at(self.engine.published())
    }

    /// The tags as of a commit, sorted by name.
    pub(crate) fn tags_at(&self, at: CommitSequence) -> Result<Vec<Tag>> {
        let (catalogue, head) = self.engine.view().catalogue(at)?;
        let tags = facts::tags(&catalogue, self.tree.id(), head)?;
        let tag = |tag: facts::TagFacts| {
            let row = catalogue.row(tag.set)?;
            // A purge leaves the hash open until it is done, and in what is older for ever.
            let hash = match tag.hash {
                OPEN_HASH => {
                    self.at(tag.revision).and_then(|at| at.content_hash()).unwrap_or(tag.hash)
                }
                known => known,
            };
            Ok(Tag {
                name: tag.name,
                revision: tag.revision,
                hash,
                timestamp: tag.elsewhere.unwrap_or(row.timestamp),
                author: row.author.map(Into::into),
                message: row.message.map(Into::into),
            })
        };
        tags.into_iter().map(tag).collect()
    }

    /// The revision that a tag names; `NotFound` if there is none of that name.
    pub fn tagged(&self, name: &str) -> Result<Revision> {
        let (catalogue, head) = self.engine.view().catalogue(self.engine.published())?;
        let tag = facts::tag(&catalogue, self.tree.id(), name, head)?;
        tag.map(|tag| tag.revision).ok_or_else(|| self.no_tag(name))
    }

    /// The document as of the revision that a tag names.
    pub fn at_tag(&self, name: &str) -> Result<Snapshot> {
        self.at(self.tagged(name)?)
    }

    /// A transaction on what the catalogue says of this document.
    pub(super) fn catalogue_transaction(&self) -> Result<Transaction> {
        let mut transaction = Transaction::new(Arc::clone(&self.engine));
        transaction.catalogue()?;
        transaction.adopt(&self.name, &self.tree);
        Ok(transaction)
    }

    fn staged_tag(
        &self,
        transaction: &mut Transaction,
        name: &str,
    ) -> Result<Option<facts::TagFacts>> {
        let writer = transaction.catalogue()?;
        let found = facts::tag(&writer.tree, self.tree.id(), name, writer.revision)?;
        // Another commit may have set or removed it: that counts once it is published.
        let tree = Arc::clone(&writer.tree);
        transaction.wait_published(&tree)?;
        Ok(found)
    }

    /// The revision to tag, the tag's record, and a transaction from which on nobody decides that
    /// the revision is dropped, or purges something of it.
    fn begin_tag(&self, revision: Option<Revision>) -> Result<(Revision, String, Transaction)> {
        let erasures = self.tree.erasures();
        let (at, record) = self.tag_record(revision)?;
        let transaction = self.catalogue_transaction()?;
        self.tree.check_kept(at)?;
        if self.tree.is_purging() || self.tree.erasures() != erasures {
            return Err(purging());
        }
        Ok((at, record, transaction))
    }

    /// The revision to tag and the tag's record.
    fn tag_record(&self, revision: Option<Revision>) -> Result<(Revision, String)> {
        let snapshot = match revision {
            Some(revision) => self.at(revision)?,
            None => self.head()?,
        };
        let (revision, hash) = (snapshot.revision(), snapshot.content_hash()?);
        let hash = quoted(&hash.to_string());
        Ok((revision, format!("{{\"revision\":{revision},\"hash\":{hash}}}")))
    }

    fn no_tag(&self, name: &str) -> Error {
        let message = format!(
            "document {:?} has no tag {name:?}: \"duramen tag\" lists those it has",
            self.name
        );
        Error::new(ErrorKind::NotFound, message)
    }
}

/// Refuses what is no name, and names that mean something else where a revision is named.
pub(crate) fn check_tag(name: &str) -> Result<()> {
    check_name(name)?;
    let unsigned = name.strip_prefix(['+', '-']).unwrap_or(name);
    let is_number = !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit());
    let like = match name.chars().next() {
        Some('/') => "a place in a document",
        Some('$') => "a path",
        Some('#') => "a node",
        _ if is_number => "a revision",
        _ if begins_with_date(unsigned) => "a time",
        _ => return Ok(()),
    };
    let message = format!("the tag {name:?} looks like {like}: begin it with a letter");
    Err(Error::new(ErrorKind::Invalid, message))
}

/// Whether a text begins as RFC 3339 or ISO 8601 write a date: `2024-05-01`, `20240501`.
fn begins_with_date(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let is_split = |text: &str| {
        let parts: Vec<&str> = text.splitn(3, '-').collect();
        let begins = |part: &str| part.bytes().take(2).filter(u8::is_ascii_digit).count() == 2;
        matches!(parts[..], [_, month, day] if month.len() == 2 && begins(month) && begins(day))
    };
    digits >= 8 || (digits >= 4 && is_split(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_cannot_be_taken_for_anything_else() {
        let cases = [
            "",
            "7",
            "-1",
            "+3",
            "00",
            "2024-05-01",
            "2024-05-01T12:30:00Z",
            "20240501T12",
            "+002024-05-01",
            "2024-05-01-release",
            "/a",
            "$.a",
            "#12",
            "a\nb",
        ];
        for name in cases {
            assert_eq!(check_tag(name).unwrap_err().kind(), ErrorKind::Invalid, "{name}");
        }
        let good = ["v1", "1.0", "2024-Q1", "release 2024-05-01", "-", "a/b", "\u{e4}"];
        for name in good {
            check_tag(name).unwrap();
        }
    }
}
