//! The naive model of a database: the whole text of every revision, and what may be lost.
//!
//! Invariants:
//! - commits up to `durable` survive a power loss, those up to `acknowledged` a killed process;
//! - at most one commit is under way: its outcome is known only when the database is reopened.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::specimen::Json;

/// What a failed check says.
pub(crate) type Check<T = ()> = Result<T, String>;

/// A database as it should be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) documents: BTreeMap<String, Document>,
    /// The last commit.
    pub(crate) acknowledged: u64,
    /// The last commit that must survive a power loss.
    pub(crate) durable: u64,
    /// A commit without an answer.
    pub(crate) under_way: Option<Staged>,
}

/// A document of the model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    /// The commit that made it.
    pub(crate) created: u64,
    /// Whether an object in it may be a map, whose entries are other nodes than its fields were.
    pub(crate) has_map: bool,
    pub(crate) revisions: Vec<Revision>,
}

/// A revision of the model.
#[derive(Debug, Clone)]
pub(crate) struct Revision {
    pub(crate) sequence: u64,
    pub(crate) json: Rc<Json>,
    pub(crate) text: Rc<str>,
    pub(crate) facts: Facts,
    /// When it was committed; `None` until the database has told.
    pub(crate) committed: Option<i64>,
}

/// What a commit says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) author: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) timestamp: Option<i64>,
}

/// A transaction's changes: each document's new value, or none if it was made without one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Staged {
    pub(crate) values: BTreeMap<String, Option<Json>>,
    pub(crate) facts: Facts,
    /// Documents that had a map at some moment of the transaction.
    pub(crate) maps: BTreeSet<String>,
}

impl Document {
    /// The newest value.
    pub(crate) fn head(&self) -> Option<&Json> {
        self.revisions.last().map(|revision| &*revision.json)
    }
}

impl Model {
    /// Whether staging `value` makes a new text for a document.
    pub(crate) fn differs(&self, name: &str, value: Option<&Json>) -> bool {
        let head = self.documents.get(name).and_then(Document::head);
        value.is_some() && value != head
    }

    /// A commit happened: `changed` says which documents have a new revision.
    pub(crate) fn apply(
        &mut self,
        staged: Staged,
        committed: Option<i64>,
        changed: &dyn Fn(&str) -> bool,
    ) {
        let sequence = self.acknowledged + 1;
        for (name, value) in staged.values {
            let is_changed = changed(&name);
            let has_map = staged.maps.contains(&name);
            let fresh = Document { created: sequence, ..Document::default() };
            let document = self.documents.entry(name).or_insert(fresh);
            document.has_map |= has_map;
            let Some(value) = value.filter(|_| is_changed) else { continue };
            document.revisions.push(Revision {
                sequence,
                text: value.to_string().into(),
                json: Rc::new(value),
                facts: staged.facts.clone(),
                committed,
            });
        }
        self.acknowledged = sequence;
    }

    /// Everything so far is durable.
    pub(crate) fn synced(&mut self) {
        self.durable = self.acknowledged;
    }

    /// Forgets the commits after `sequence`.
    pub(crate) fn truncate(&mut self, sequence: u64) {
        self.documents.retain(|_, document| document.created <= sequence);
        for document in self.documents.values_mut() {
            document.revisions.retain(|revision| revision.sequence <= sequence);
        }
        self.acknowledged = self.acknowledged.min(sequence);
        self.durable = self.durable.min(sequence);
    }
}
