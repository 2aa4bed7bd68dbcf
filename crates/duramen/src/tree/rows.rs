//! The revision rows that a tree got since the last checkpoint, columnar.
//!
//! Invariants: revisions are consecutive; revision timestamps, commit timestamps and commit
//! sequences rise strictly; a row's commit sequence decides who may see it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use crate::node::{Move, NodeId};
use crate::revision::{CommitSequence, Micros, Revision};

/// What a commit says of one revision it makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) revision: Revision,
    /// The revision timestamp.
    pub(crate) timestamp: Micros,
    pub(crate) committed: Micros,
    pub(crate) sequence: CommitSequence,
    pub(crate) author: Option<Box<str>>,
    pub(crate) message: Option<Box<str>>,
}

/// The young revision rows.
#[derive(Debug, Default)]
pub(crate) struct YoungRows {
    /// Revisions before these; the disk has their rows.
    before: u64,
    /// The commit sequence of the last of them, once it is known; 0 until then.
    sequence_before: AtomicU64,
    timestamps: Vec<i64>,
    committed: Vec<i64>,
    sequences: Vec<u64>,
    authors: Vec<u32>,
    messages: Vec<u32>,
    changed_ends: Vec<usize>,
    changed: Vec<NodeId>,
    /// The moves of the revisions that have some.
    moves: BTreeMap<u64, Box<[Move]>>,
    texts: Vec<Box<str>>,
    numbers: FxHashMap<Box<str>, u32>,
}

impl YoungRows {
    /// No rows yet after `before` revisions on disk.
    pub(crate) fn after(before: u64) -> Self {
        Self { before, ..Self::default() }
    }

    /// Revisions whose rows the disk has.
    pub(crate) fn before(&self) -> u64 {
        self.before
    }

    /// The commit sequence of the last of them, if it is known.
    pub(crate) fn sequence_before(&self) -> Option<CommitSequence> {
        let sequence = self.sequence_before.load(Ordering::Relaxed);
        (sequence > 0).then_some(CommitSequence(sequence))
    }

    /// Notes the commit sequence of the last of them, if that is the revision `before` still.
    pub(crate) fn note_before(&self, before: u64, sequence: CommitSequence) {
        if before == self.before {
            self.sequence_before.store(sequence.0, Ordering::Relaxed);
        }
    }

    /// The newest revision, published or not; 0 if there is none.
    pub(crate) fn last(&self) -> u64 {
        self.before + self.timestamps.len() as u64
    }

    /// Adds the next revision's row with the nodes it changed and the subtrees it moved.
    pub(crate) fn push(&mut self, row: &Row, changed: &[NodeId], moves: &[Move]) {
        assert_eq!(row.revision.0, self.last() + 1, "revisions are consecutive");
        self.timestamps.push(row.timestamp.0);
        self.committed.push(row.committed.0);
        self.sequences.push(row.sequence.0);
        let author = self.intern(row.author.as_deref());
        self.authors.push(author);
        let message = self.intern(row.message.as_deref());
        self.messages.push(message);
        self.changed.extend_from_slice(changed);
        self.changed_ends.push(self.changed.len());
        if !moves.is_empty() {
            self.moves.insert(row.revision.0, moves.into());
        }
    }

    /// The newest young revision of a commit at or before `sequence`, or the last one on disk.
    pub(crate) fn last_at(&self, sequence: CommitSequence) -> u64 {
        let visible = match self.sequences.last() {
            Some(&last) if last <= sequence.0 => self.sequences.len(),
            _ => self.sequences.partition_point(|&other| other <= sequence.0),
        };
        self.before + visible as u64
    }

    /// The newest revision's timestamp, if it is young.
    pub(crate) fn last_timestamp(&self) -> Option<Micros> {
        self.timestamps.last().copied().map(Micros)
    }

    /// The newest revision's commit sequence, if it is young.
    pub(crate) fn last_sequence(&self) -> Option<CommitSequence> {
        self.sequences.last().copied().map(CommitSequence)
    }

    /// The row of a young revision.
    pub(crate) fn get(&self, revision: Revision) -> Option<Row> {
        let index = self.index(revision)?;
        Some(Row {
            revision,
            timestamp: Micros(self.timestamps[index]),
            committed: Micros(self.committed[index]),
            sequence: CommitSequence(self.sequences[index]),
            author: self.text(self.authors[index]),
            message: self.text(self.messages[index]),
        })
    }

    /// The nodes that a young revision changed, births left out.
    pub(crate) fn changed(&self, revision: Revision) -> Option<&[NodeId]> {
        let index = self.index(revision)?;
        let start = index.checked_sub(1).map_or(0, |before| self.changed_ends[before]);
        Some(&self.changed[start..self.changed_ends[index]])
    }

    /// The subtrees that a young revision moved to other paths.
    pub(crate) fn moves(&self, revision: Revision) -> Option<&[Move]> {
        self.index(revision)?;
        Some(self.moves.get(&revision.0).map_or(&[], |moves| moves))
    }

    /// The timestamps of the young revisions.
    pub(crate) fn timestamps(&self) -> &[i64] {
        &self.timestamps
    }

    /// Drops the rows up to `revision`, which a checkpoint has written.
    pub(crate) fn prune(&mut self, revision: Revision) {
        let last = match self.index(revision) {
            // So nobody has to read it from the disk again.
            Some(index) => Some(CommitSequence(self.sequences[index])),
            None => self.sequence_before().filter(|_| revision.0 == self.before),
        };
        let mut rest = Self::after(revision.0);
        if let Some(last) = last {
            rest.note_before(revision.0, last);
        }
        for later in revision.0 + 1..=self.last() {
            let later = Revision(later);
            let row = (self.get(later), self.changed(later), self.moves(later));
            if let (Some(row), Some(changed), Some(moves)) = row {
                rest.push(&row, changed, moves);
            }
        }
        *self = rest;
    }

    fn index(&self, revision: Revision) -> Option<usize> {
        let index = usize::try_from(revision.0.checked_sub(self.before + 1)?).ok()?;
        (index < self.timestamps.len()).then_some(index)
    }

    fn intern(&mut self, text: Option<&str>) -> u32 {
        let Some(text) = text else { return 0 };
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.texts.push(text.into());
        let number = super::schema::index_u32(self.texts.len());
        self.numbers.insert(text.into(), number);
        number
    }

    fn text(&self, number: u32) -> Option<Box<str>> {
        let index = number.checked_sub(1)?;
        self.texts.get(index as usize).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(revision: u64) -> Row {
        Row {
            revision: Revision(revision),
            timestamp: Micros(1_000),
            committed: Micros(1_000),
            sequence: CommitSequence(10 * revision),
            author: None,
            message: None,
        }
    }

    #[test]
    fn the_sequence_of_the_last_row_that_was_written_is_known_without_the_disk() {
        let mut rows = YoungRows::after(2);
        rows.prune(Revision(2));
        assert_eq!(rows.sequence_before(), None, "it was in no row that was here");
        (3..=5).for_each(|revision| rows.push(&row(revision), &[], &[]));
        rows.prune(Revision(4));
        assert_eq!(rows.sequence_before(), Some(CommitSequence(40)));
        assert_eq!(rows.last_at(CommitSequence(49)), 4);
        rows.prune(Revision(4));
        assert_eq!(rows.sequence_before(), Some(CommitSequence(40)));
        rows.prune(Revision(5));
        assert_eq!(rows.sequence_before(), Some(CommitSequence(50)));
    }
}
