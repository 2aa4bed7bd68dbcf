//! The revisions of a document, newest first.

use std::sync::Arc;

use crate::content_hash::ContentHash;
use crate::error::Result;
use crate::revision::{CommitSequence, Micros, Revision};
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::schema::ROOT;

/// Which revisions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// At most so many.
    pub limit: Option<usize>,
    /// Only revisions before this one: where the next page goes on.
    pub before: Option<Revision>,
    /// Only from here on.
    pub from: Option<Moment>,
    /// Only up to here.
    pub to: Option<Moment>,
    /// Only those of this author.
    pub author: Option<String>,
    /// Whether entries have the hash of the document: each costs a read of it.
    pub hash: bool,
}

/// A point in a document's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A revision.
    Revision(Revision),
    /// A time.
    Time(Micros),
}

/// One revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// The revision.
    pub revision: Revision,
    /// The revision timestamp.
    pub timestamp: Micros,
    /// The commit timestamp: when it was committed here.
    pub committed: Micros,
    /// The commit's number over all documents.
    pub sequence: CommitSequence,
    /// Who made it.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
    /// How many nodes of earlier revisions it changed; new elements are not counted.
    pub changes: u64,
    /// Whether the document was deleted in it.
    pub deleted: bool,
    /// The hash of the document, if the query asks for it and it was not deleted.
    pub hash: Option<ContentHash>,
}

/// The revisions that a query lists, newest first.
#[derive(Debug)]
pub struct Log {
    tree: Arc<Tree>,
    /// The next revision to look at; 0 at the end.
    next: u64,
    first: u64,
    left: usize,
    author: Option<String>,
    hash: bool,
}

impl Log {
    pub(crate) fn new(tree: Arc<Tree>, query: &LogQuery, head: Revision) -> Result<Self> {
        let first = match query.from {
            None => 1,
            Some(Moment::Revision(revision)) => revision.0.max(1),
            // The first revision at or after the time.
            Some(Moment::Time(time)) => tree.first_after(Micros(time.0.saturating_sub(1)), head)?.0,
        };
        let mut last = match query.to {
            None => head.0,
            Some(Moment::Revision(revision)) => revision.0.min(head.0),
            Some(Moment::Time(time)) => tree.first_after(time, head)?.0 - 1,
        };
        if let Some(before) = query.before {
            last = last.min(before.0.saturating_sub(1));
        }
        let left = query.limit.unwrap_or(usize::MAX);
        Ok(Self { tree, next: last, first, left, author: query.author.clone(), hash: query.hash })
    }

    fn entry(&self, revision: Revision) -> Result<Option<LogEntry>> {
        let row = self.tree.row(revision)?;
        if self.author.is_some() && row.author.as_deref() != self.author.as_deref() {
            return Ok(None);
        }
        let changed = self.tree.changed(revision)?;
        // Deleting changes the root, which is the first of the nodes that a revision lists.
        let deleted = changed.first() == Some(&node(ROOT, 0))
            && self.tree.deleted_in(short(revision))?.is_some();
        let hash = (self.hash && !deleted).then(|| self.tree.content_hash(short(revision)));
        Ok(Some(LogEntry {
            revision,
            timestamp: row.timestamp,
            committed: row.committed,
            sequence: row.sequence,
            author: row.author.map(Into::into),
            message: row.message.map(Into::into),
            changes: changed.len() as u64,
            deleted,
            hash: hash.transpose()?,
        }))
    }
}

impl Iterator for Log {
    type Item = Result<LogEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.left > 0 && self.next >= self.first && self.next > 0 {
            let revision = Revision(self.next);
            self.next -= 1;
            match self.entry(revision) {
                Ok(None) => {}
                Ok(Some(entry)) => {
                    self.left -= 1;
                    return Some(Ok(entry));
                }
                Err(error) => {
                    self.left = 0;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
