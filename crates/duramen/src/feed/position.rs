//! Places in what commits do, so that a feed can go on in the middle of a commit.
//!
//! Invariants:
//! - a place counts what a commit did and not what a feed told of it, so it means the same to
//!   feeds that watch other things;
//! - the order that it is a place in is that of trees and, in a collection, of the ordinals of its
//!   records: neither a later commit nor a compaction changes it.

use crate::revision::CommitSequence;
use crate::tree::cell_key::TreeId;

/// A place inside a commit, behind what it did to a tree or to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CommitPlace {
    pub(super) tree: TreeId,
    /// The ordinal of the record; none for all of the tree.
    pub(super) record: Option<u64>,
}

/// What a feed has delivered: all commits before one, and of that one what is before a place, or
/// all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) sequence: CommitSequence,
    pub(super) place: Option<CommitPlace>,
}

impl Position {
    pub(super) fn after(sequence: CommitSequence) -> Self {
        Self { sequence, place: None }
    }

    /// The last commit of which all was delivered.
    pub(super) fn whole(self) -> CommitSequence {
        match self.place {
            Some(_) => CommitSequence(self.sequence.0.saturating_sub(1)),
            None => self.sequence,
        }
    }

    /// The last commit of which all was delivered that it did to a tree.
    pub(super) fn whole_in(self, tree: TreeId) -> CommitSequence {
        match self.place {
            Some(place) if tree > place.tree => self.whole(),
            Some(CommitPlace { record: Some(_), tree: of, .. }) if of == tree => self.whole(),
            _ => self.sequence,
        }
    }

    /// The record that was delivered last of what a commit did to a tree.
    pub(super) fn record_in(self, (sequence, tree): (CommitSequence, TreeId)) -> Option<u64> {
        let here = |place: &CommitPlace| self.sequence == sequence && place.tree == tree;
        self.place.filter(here)?.record
    }
}
