//! What happened to one document or record in one commit.

use std::sync::Arc;

use super::position::CommitPlace;
use super::records::RecordChanges;
use super::token::ResumeToken;
use super::{Filter, KeyFilter};
use crate::collection::{Key, KeyKind};
use crate::error::{ErrorKind, Result};
use crate::json::{JsonPointer, escape::quoted};
use crate::revision::{Micros, Revision};
use crate::snapshot::Snapshot;
use crate::tree::cell_key::TreeId;
use crate::tree::difference::DiffOptions;
use crate::tree::locate::Place;
use crate::tree::serialize::Format;

/// What happened to what is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It is there and was not.
    Insert,
    /// It is another.
    Update,
    /// It was there and is not.
    Delete,
}

/// What a commit did to a document that is no collection, or to a record of one; to the value at
/// the path, if the feed watches one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The name that the document or collection had then.
    pub document: String,
    /// The revision of it that the commit made.
    pub revision: Revision,
    /// The revision timestamp.
    pub timestamp: Micros,
    /// What happened.
    pub operation: Operation,
    /// The record's key; none for a document.
    pub key: Option<Key>,
    /// The record's version, if it is there: also where the value at the path that is watched went.
    pub version: Option<u64>,
    /// What it was, as compact JSON: of a record, and of a document if the feed is to have
    /// [values](super::WatchOptions::values). None where it was not there, or was purged since.
    pub old: Option<String>,
    /// What it is.
    pub new: Option<String>,
    /// For an update of a document, the JSON Patch (RFC 6902) that makes the new document of the
    /// old. It is empty if only the order of members differs.
    pub patch: Option<String>,
    /// Whether what the record was, or is, was [purged](crate::Document::purge) since.
    pub is_purged: bool,
    /// Whether this is the first revision that the document keeps of a history that was dropped up
    /// to there: what is told as inserted may have been there before.
    pub is_first_kept: bool,
    /// Where a feed goes on behind this event, with the rest of the commit if there is any. The
    /// state before the commit has to be kept until then, which that of
    /// [`Feed::token`](super::Feed::token) does not need.
    pub token: ResumeToken,
}

/// What all events of one tree in one commit have in common.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) tree: TreeId,
    pub(super) document: String,
    pub(super) revision: Revision,
    pub(super) timestamp: Micros,
    /// Whether what was before was dropped.
    pub(super) is_first_kept: bool,
    /// That of the commit.
    pub(super) token: ResumeToken,
    /// Whether it is known that the commit did nothing to the trees behind this one.
    pub(super) is_last: bool,
}

/// The events of one tree in one commit.
#[derive(Debug)]
pub(super) struct TreeEvents {
    pub(super) filter: Arc<Filter>,
    facts: Facts,
    /// The revision before, if there was something.
    pub(super) before: Option<Snapshot>,
    pub(super) after: Option<Snapshot>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Document,
    Records(KeyKind, RecordChanges),
    End,
}

impl TreeEvents {
    pub(super) fn new(
        filter: Arc<Filter>,
        facts: Facts,
        (before, after): (Option<Snapshot>, Option<Snapshot>),
        keys: Option<KeyKind>,
    ) -> Result<Self> {
        let source = match keys {
            Some(keys) => {
                let changes = RecordChanges::new(&filter.keys, keys, (&before, &after))?;
                Source::Records(keys, changes)
            }
            None if filter.keys == KeyFilter::All => Source::Document,
            None => Source::End,
        };
        Ok(Self { filter, facts, before, after, source })
    }

    /// Leaves out what the commit did to records up to one.
    pub(super) fn pass(&mut self, record: u64) -> Result<()> {
        match &mut self.source {
            Source::Records(_, records) => records.pass(record, (&self.before, &self.after)),
            Source::Document | Source::End => Ok(()),
        }
    }

    pub(super) fn step(&mut self) -> Result<Option<Event>> {
        loop {
            match &mut self.source {
                Source::End => return Ok(None),
                Source::Document => {
                    self.source = Source::End;
                    return self.document_event();
                }
                Source::Records(keys, records) => {
                    let keys = *keys;
                    let Some(changed) = records.step((&self.before, &self.after))? else {
                        self.source = Source::End;
                        continue;
                    };
                    if let Some(event) = self.record_event(keys, &changed)? {
                        return Ok(Some(event));
                    }
                }
            }
        }
    }

    /// Where a feed goes on behind the record that was looked at last, or behind the document.
    fn token(&self, record: Option<u64>) -> ResumeToken {
        let is_more = match &self.source {
            Source::Records(_, records) => !records.is_at_end(),
            Source::Document | Source::End => false,
        };
        if !is_more && self.facts.is_last {
            return self.facts.token;
        }
        let record = record.filter(|_| is_more);
        let place = CommitPlace { tree: self.facts.tree, record };
        self.facts.token.at(place, self.filter.begins)
    }

    /// An event with nothing but what its tree says, of the record of an ordinal if it is of one.
    pub(super) fn event(&self, operation: Operation, record: Option<u64>) -> Event {
        Event {
            document: self.facts.document.clone(),
            revision: self.facts.revision,
            timestamp: self.facts.timestamp,
            operation,
            key: None,
            version: None,
            old: None,
            new: None,
            patch: None,
            is_purged: false,
            is_first_kept: self.facts.is_first_kept,
            token: self.token(record),
        }
    }

    fn document_event(&self) -> Result<Option<Event>> {
        let root = JsonPointer::root();
        let path = self.filter.path.as_ref().unwrap_or(&root);
        let (before, after) =
            (place(self.before.as_ref(), path)?, place(self.after.as_ref(), path)?);
        let sides = (&self.before, &self.after);
        let Some(operation) = operation_of(before.is_some(), after.is_some()) else {
            return Ok(None);
        };
        let mut event = self.event(operation, None);
        match (sides, before, after) {
            // The same value, which can only differ where the commit changed something in it.
            ((Some(old), Some(new)), Some(Place::Node(was)), Some(Place::Node(is)))
                if was == is =>
            {
                let start = (!path.is_root()).then(|| path.clone().into());
                let diff = Snapshot::diff(old, new, &DiffOptions { start, depth: None })?;
                if diff.changes.is_empty() && !path.is_root() {
                    return Ok(None);
                }
                event.patch = Some(diff.to_json_patch());
            }
            ((Some(old), Some(new)), Some(_), Some(_)) => {
                let value = text(new, path)?;
                if text(old, path)? == value {
                    return Ok(None);
                }
                let pointer = quoted(&path.to_string());
                let value = value.unwrap_or_default();
                event.patch =
                    Some(format!("[{{\"op\":\"replace\",\"path\":{pointer},\"value\":{value}}}]"));
            }
            _ => {}
        }
        if self.filter.values {
            let value = |side: &Option<Snapshot>| {
                side.as_ref().map_or(Ok(None), |snapshot| text(snapshot, path))
            };
            (event.old, event.new) = (value(&self.before)?, value(&self.after)?);
        }
        Ok(Some(event))
    }
}

/// What happened to something that was there or not, and is there or not.
pub(super) fn operation_of(was: bool, is: bool) -> Option<Operation> {
    match (was, is) {
        (false, false) => None,
        (false, true) => Some(Operation::Insert),
        (true, true) => Some(Operation::Update),
        (true, false) => Some(Operation::Delete),
    }
}

/// The place that a pointer names in a snapshot, if it is there.
fn place(snapshot: Option<&Snapshot>, pointer: &JsonPointer) -> Result<Option<Place>> {
    let Some(snapshot) = snapshot else { return Ok(None) };
    let (tree, revision) = snapshot.place();
    Ok(match tree.locate(pointer, revision)? {
        Place::Missing(..) => None,
        // Inside what is stored whole only reading it tells.
        Place::Inside(..) if text(snapshot, pointer)?.is_none() => None,
        place => Some(place),
    })
}

/// What a pointer names in a snapshot, if it is there.
pub(super) fn text(snapshot: &Snapshot, pointer: &JsonPointer) -> Result<Option<String>> {
    let mut text = Vec::new();
    match snapshot.append_json(pointer, &Format::default(), &mut text) {
        Err(missing) if missing.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(()) => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
    }
}
