//! One commit as a feed tells of it.

use std::sync::Arc;

use super::event::{Event, TreeEvents};
use super::{Filter, find};
use crate::engine::View;
use crate::engine::catalogue::{facts, naming};
use crate::engine::recent::TreeChange;
use crate::error::Result;
use crate::revision::{CommitSequence, Micros, Revision};
use crate::snapshot::Snapshot;
use crate::tree::Tree;
use crate::tree::history::short;
use crate::tree::rows::Row;

/// What one commit did, of what is watched: an iterator over its events, which are read one by one
/// however many there are. It ends after the first error; the feed goes on with the next commit,
/// and one that is to read this one again goes on [after](super::WatchFrom::After) the one before.
///
/// Documents come in the order in which they were made. Of a collection the records come that the
/// commit changed, then those that it added; if it was deleted or came back, all of them by key.
#[derive(Debug)]
pub struct Batch {
    /// The commit.
    pub sequence: CommitSequence,
    /// The commit timestamp.
    pub timestamp: Micros,
    /// Who made it.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
    view: Arc<View>,
    filter: Arc<Filter>,
    changes: std::vec::IntoIter<TreeChange>,
    events: Option<TreeEvents>,
    /// The first event, which was looked for before there was a batch.
    first: Option<Event>,
}

impl Batch {
    /// What a commit did; none if that is nothing that is watched.
    pub(super) fn new(
        view: Arc<View>,
        filter: Arc<Filter>,
        changes: Vec<TreeChange>,
    ) -> Result<Option<Self>> {
        let mut batch = Self {
            sequence: CommitSequence::default(),
            timestamp: Micros::default(),
            author: None,
            message: None,
            view,
            filter,
            changes: changes.into_iter(),
            events: None,
            first: None,
        };
        let first = batch.step()?;
        Ok(first.map(|first| Self { first: Some(first), ..batch }))
    }

    fn step(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(events) = &mut self.events {
                if let Some(event) = events.step()? {
                    return Ok(Some(event));
                }
                self.events = None;
            }
            let Some(change) = self.changes.next() else { return Ok(None) };
            let tree = self.view.tree(change.tree)?;
            self.events = self.open(&tree, change)?;
        }
    }

    /// The events of one tree; none of a revision that nobody expects any more.
    fn open(&mut self, tree: &Arc<Tree>, change: TreeChange) -> Result<Option<TreeEvents>> {
        let (revision, sequence) = (change.revision, change.sequence);
        let first = Revision(tree.first_revision());
        let is_first = revision == first;
        if first.0 > 1 && revision <= first {
            if sequence > self.filter.begins {
                let begins = tree.row(first)?.sequence;
                return Err(find::dropped(&self.view, tree, (first, begins)));
            }
            if !is_first {
                return Ok(None);
            }
        }
        let row = tree.row(revision)?;
        let (catalogue, head) = self.view.catalogue(sequence)?;
        // Whether a document is a collection never changes, so what writers remember will do.
        let newest = short(catalogue.head_at(CommitSequence(u64::MAX))?);
        let declared = tree.options.at(newest, || facts::options(&catalogue, tree.id(), newest))?;
        let document = naming::name_of(&catalogue, tree.id(), head)?;
        let keys = declared.and_then(|declared| declared.collection);
        let at = |revision: Revision| -> Result<Option<Snapshot>> {
            if revision.0 == 0 || tree.deleted_in(short(revision))?.is_some() {
                return Ok(None);
            }
            Ok(Some(Snapshot { tree: Arc::clone(tree), revision, head: change.revision }))
        };
        let before = if is_first { None } else { at(Revision(revision.0 - 1))? };
        let sides = (before, at(revision)?);
        let facts = (document, revision, row.timestamp);
        self.tell(row);
        let mut events = TreeEvents::new(Arc::clone(&self.filter), facts, sides, keys)?;
        events.is_first_kept = is_first && first.0 > 1;
        Ok(Some(events))
    }

    /// Takes over what the commit says of itself.
    fn tell(&mut self, row: Row) {
        (self.sequence, self.timestamp) = (row.sequence, row.committed);
        self.author = row.author.map(Into::into);
        self.message = row.message.map(Into::into);
    }
}

impl Iterator for Batch {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        let next = self.step();
        if next.is_err() {
            (self.events, self.changes) = (None, Vec::new().into_iter());
        }
        next.transpose()
    }
}
