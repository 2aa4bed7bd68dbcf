//! What happened to one record, newest first.

use super::{CollectionSnapshot, Key, Record};
use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::limits::RECORD_CHANGES_MAX;
use crate::node::NodeId;
use crate::revision::{CommitSequence, Micros, Revision};
use crate::snapshot::Snapshot;
use crate::tree::history::short;
use crate::tree::records::RecordEvent;

/// Events looked up at once.
const PAGE_EVENTS: usize = 64;

/// One version of a record, or its deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordVersion {
    /// The collection's revision that made it.
    pub revision: Revision,
    /// The revision timestamp.
    pub timestamp: Micros,
    /// The commit's number over the whole database.
    pub sequence: CommitSequence,
    /// Who made it.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
    /// The record as of that revision; nothing if the revision deleted it, or it was purged.
    pub record: Option<Record>,
    /// Where in the record the version differs from what was there before: pointers that begin at
    /// the record, in the order of the changes of a diff. The root stands for all of it: where the
    /// record was not there before or that was dropped, and for more than 256 changes. None of a
    /// deletion, and of what was purged.
    pub changed: Vec<JsonPointer>,
    /// Whether the record as it was then was [purged](crate::Document::purge).
    pub is_purged: bool,
}

/// The versions and deletions of a record, newest first, read page by page. It ends after the
/// first error.
#[derive(Debug)]
pub struct RecordHistory {
    snapshot: Snapshot,
    key: Key,
    record: NodeId,
    /// Events after this revision have been read; 0 at the end.
    until: u32,
    page: std::vec::IntoIter<(u32, RecordEvent)>,
}

impl RecordHistory {
    pub(super) fn new(collection: &CollectionSnapshot, key: Key) -> Result<Self> {
        let text = collection.keys.text_of(&key)?;
        let missing = || {
            let message = format!(
                "there never was a record {key}: \"duramen records ls\" lists \
                                   those there are"
            );
            Error::new(ErrorKind::NotFound, message)
        };
        let snapshot = collection.snapshot.clone().ok_or_else(missing)?;
        let record = snapshot.tree.record_ever(text.as_bytes())?.ok_or_else(missing)?;
        let until = short(snapshot.revision);
        let page = snapshot.tree.record_events(record, until, PAGE_EVENTS)?;
        if page.is_empty() {
            let first = snapshot.tree.first_revision();
            let message = format!(
                "there is no record {key} in the history that is kept, which \
                                   begins at revision {first}"
            );
            return Err(if first > 1 {
                Error::new(ErrorKind::NotFound, message)
            } else {
                missing()
            });
        }
        Ok(Self { until: rest(&page), page: page.into_iter(), snapshot, key, record })
    }

    fn step(&mut self) -> Result<Option<RecordVersion>> {
        let next = match self.page.next() {
            None if self.until > 0 => {
                let page =
                    self.snapshot.tree.record_events(self.record, self.until, PAGE_EVENTS)?;
                self.until = rest(&page);
                self.page = page.into_iter();
                self.page.next()
            }
            next => next,
        };
        let Some((revision, event)) = next else { return Ok(None) };
        let revision = Revision(revision.into());
        let row = self.snapshot.tree.row(revision)?;
        let (tree, at) = (&self.snapshot.tree, short(revision));
        let is_saved = matches!(event, RecordEvent::Saved(_));
        let is_purged = is_saved && tree.is_purged(self.record, at)?;
        let record = match event {
            RecordEvent::Saved(_) if !is_purged => {
                let at = Snapshot { revision, ..self.snapshot.clone() };
                Some(at.record(self.key.clone(), self.record)?)
            }
            RecordEvent::Saved(_) | RecordEvent::Deleted => None,
        };
        let changed = match &record {
            Some(_) => self.changed(at)?,
            None => Vec::new(),
        };
        Ok(Some(RecordVersion {
            changed,
            revision,
            timestamp: row.timestamp,
            sequence: row.sequence,
            author: row.author.map(Into::into),
            message: row.message.map(Into::into),
            record,
            is_purged,
        }))
    }
}

impl RecordHistory {
    /// Where the record differs from what it was before a revision that saved it.
    fn changed(&self, at: u32) -> Result<Vec<JsonPointer>> {
        let (tree, before) = (&self.snapshot.tree, at - 1);
        let whole = vec![JsonPointer::root()];
        if before == 0
            || tree.check_kept(Revision(before.into())).is_err()
            || tree.deleted_in(before)?.is_some()
            || tree.record_of_ordinal(self.record.ordinal().0, before)?.is_none()
        {
            return Ok(whole);
        }
        let changed = tree.changed_places(self.record, Revision(at.into()))?;
        Ok(if changed.len() > RECORD_CHANGES_MAX { whole } else { changed })
    }
}

/// The revision up to which events were not read yet.
fn rest(page: &[(u32, RecordEvent)]) -> u32 {
    match page.last() {
        Some(&(revision, _)) if page.len() >= PAGE_EVENTS => revision - 1,
        _ => 0,
    }
}

impl Iterator for RecordHistory {
    type Item = Result<RecordVersion>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step();
        if next.is_err() {
            (self.until, self.page) = (0, Vec::new().into_iter());
        }
        next.transpose()
    }
}
