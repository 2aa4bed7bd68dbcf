//! One record compared between revisions, and who set what is in it.

use super::{Collection, CollectionSnapshot, Key};
use crate::blame::{Blame, BlameEntry, BlameOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::node::NodeId;
use crate::revision::Revision;
use crate::snapshot::Snapshot;
use crate::target::Target;
use crate::tree::difference::{Diff, DiffOptions};

/// The blame of a record and of the values in it, in the order of the record; an iterator.
#[derive(Debug)]
pub struct RecordBlame(Blame);

impl Collection {
    /// What turns a record as of one revision of the collection into that of another, in either
    /// direction. Pointers begin at the record; where it was not there the whole of it is added or
    /// removed.
    ///
    /// # Errors
    /// `NotFound` if there was no record with that key at either revision, or no such revision.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, KeyKind, Revision};
    ///
    /// let players = Database::memory()?.create_collection("players", KeyKind::Text)?;
    /// players.put("ann", r#"{"score":3,"team":"red"}"#, &CommitOptions::default())?;
    /// players.put("bob", "{}", &CommitOptions::default())?;
    /// players.put("ann", r#"{"score":5,"team":"red"}"#, &CommitOptions::default())?;
    /// let patch = players.diff("ann", Revision(1), Revision(3))?.to_json_patch();
    /// assert_eq!(patch, r#"[{"op":"replace","path":"/score","value":5}]"#);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn diff(&self, key: impl Into<Key>, before: Revision, after: Revision) -> Result<Diff> {
        let key = key.into();
        let record = self.record_ever(&key)?;
        let options = DiffOptions { start: Some(Target::Node(record)), depth: None };
        let diff = self.document.diff_with(before, after, &options);
        let mut diff = diff.map_err(|error| match error.kind() {
            ErrorKind::NotFound if self.is_at_neither(record, [before, after]) => missing(&key),
            _ => error,
        })?;
        diff.start = inside(&diff.start);
        diff.changes.iter_mut().for_each(|change| change.pointer = inside(&change.pointer));
        diff.moves.iter_mut().for_each(|moved| moved.member = inside(&moved.member));
        Ok(diff)
    }

    /// Who set what is in a record now, and when; `NotFound` if there is none with that key.
    pub fn blame(&self, key: impl Into<Key>, options: &BlameOptions) -> Result<RecordBlame> {
        self.head()?.blame(key, options)
    }

    fn record_ever(&self, key: &Key) -> Result<NodeId> {
        let text = self.keys.text_of(key)?;
        self.document.tree().record_ever(text.as_bytes())?.ok_or_else(|| missing(key))
    }

    fn is_at_neither(&self, record: NodeId, revisions: [Revision; 2]) -> bool {
        let is_missing = |revision| {
            let snapshot = self.document.at(revision);
            snapshot.is_ok_and(|snapshot: Snapshot| snapshot.pointer(record).is_err())
        };
        revisions.into_iter().all(is_missing)
    }
}

impl CollectionSnapshot {
    /// Who set what is in a record at this revision, and when; `NotFound` if there is none with
    /// that key. Pointers begin at the record, but for those of places that values were moved from.
    ///
    /// ```
    /// use duramen::{BlameOptions, CommitOptions, Database, KeyKind};
    ///
    /// let by = |name: &str| CommitOptions { author: Some(name.into()), ..Default::default() };
    /// let players = Database::memory()?.create_collection("players", KeyKind::Text)?;
    /// players.put("ann", r#"{"score":3,"team":"red"}"#, &by("kim"))?;
    /// players.put("ann", r#"{"score":5,"team":"red"}"#, &by("lee"))?;
    /// let mut lines = Vec::new();
    /// for entry in players.head()?.blame("ann", &BlameOptions::default())? {
    ///     let entry = entry?;
    ///     lines.push(format!("{:?} {}", entry.pointer.to_string(), entry.author.unwrap()));
    /// }
    /// assert_eq!(lines, [r#""" kim"#, r#""/score" lee"#, r#""/team" kim"#]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn blame(&self, key: impl Into<Key>, options: &BlameOptions) -> Result<RecordBlame> {
        let key = key.into();
        let text = self.keys.text_of(&key)?;
        let snapshot = self.snapshot.as_ref().ok_or_else(|| missing(&key))?;
        let (tree, revision) = snapshot.place();
        let record = tree.record(text.as_bytes(), revision)?.ok_or_else(|| missing(&key))?;
        snapshot.blame(&Target::Node(record), options).map(RecordBlame)
    }
}

impl Iterator for RecordBlame {
    type Item = Result<BlameEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next()?;
        Some(entry.map(|entry| BlameEntry { pointer: inside(&entry.pointer), ..entry }))
    }
}

/// A pointer into the collection as one that begins at the record.
fn inside(pointer: &JsonPointer) -> JsonPointer {
    let mut inside = JsonPointer::root();
    pointer.tokens().skip(1).for_each(|token| inside.push(token));
    inside
}

fn missing(key: &Key) -> Error {
    let message = format!(
        "there is no record {key} then: \"duramen records history\" lists what happened to it"
    );
    Error::new(ErrorKind::NotFound, message)
}
