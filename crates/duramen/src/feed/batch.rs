//! One commit as a feed tells of it.

use std::sync::Arc;

use super::event::{Event, Facts, TreeEvents};
use super::position::Position;
use super::token::ResumeToken;
use super::{Filter, find};
use crate::engine::catalogue::{facts, naming};
use crate::engine::recent::TreeChange;
use crate::engine::{Engine, View};
use crate::error::Result;
use crate::revision::{CommitSequence, Micros, Revision};
use crate::snapshot::Snapshot;
use crate::tree::Tree;
use crate::tree::history::short;
use crate::tree::rows::Row;

/// What one commit did, of what is watched: an iterator over its events, which are read one by one
/// however many there are. It ends after the first error; the feed goes on with the next commit,
/// and one that is to read the rest of this one goes on behind the [token](Event::token) of an
/// event, or [after](super::WatchFrom::After) the commit before.
///
/// Documents come in the order in which they were made, and the records of a collection in the
/// order in which their keys were first saved: those that the commit changed, then those that it
/// added; if the collection was deleted or came back, all of them.
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
    /// What was delivered before.
    position: Position,
    /// That of the commit.
    token: ResumeToken,
    changes: std::vec::IntoIter<TreeChange>,
    events: Option<TreeEvents>,
    /// The first event, which was looked for before there was a batch.
    first: Option<Event>,
}

impl Batch {
    /// What a commit did behind a position; none if that is nothing that is watched.
    pub(super) fn new(
        engine: &Engine,
        filter: Arc<Filter>,
        position: Position,
        (sequence, changes): (CommitSequence, Vec<TreeChange>),
    ) -> Result<Option<Self>> {
        let token = ResumeToken::new(engine, Position::after(sequence), filter.begins);
        let mut batch = Self {
            sequence,
            timestamp: Micros::default(),
            author: None,
            message: None,
            view: engine.view(),
            filter,
            position,
            token,
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

    /// The events of one tree; none of a revision that nobody expects any more, or not yet.
    fn open(&mut self, tree: &Arc<Tree>, change: TreeChange) -> Result<Option<TreeEvents>> {
        let (revision, sequence) = (change.revision, change.sequence);
        let first = Revision(tree.first_revision());
        let is_first = revision == first;
        if first.0 > 1 && revision <= first {
            let row = tree.row(first)?;
            if sequence > self.filter.begins && !self.filter.expects_nothing_before(&row) {
                let begins = (first, row.sequence);
                return Err(find::dropped(&self.view, &self.filter, tree, begins));
            }
            if !is_first {
                return Ok(None);
            }
        }
        let row = tree.row(revision)?;
        if self.filter.is_early(&row) {
            return Ok(None);
        }
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
        let facts = Facts {
            tree: tree.id(),
            document,
            revision,
            timestamp: row.timestamp,
            is_first_kept: is_first && first.0 > 1,
            token: self.token,
            is_last: self.filter.trees.is_none() && self.changes.as_slice().is_empty(),
        };
        self.tell(row);
        let mut events = TreeEvents::new(Arc::clone(&self.filter), facts, sides, keys)?;
        if let Some(record) = self.position.record_in((sequence, tree.id())) {
            events.pass(record)?;
        }
        Ok(Some(events))
    }

    /// Takes over what the commit says of itself.
    fn tell(&mut self, row: Row) {
        self.timestamp = row.committed;
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
