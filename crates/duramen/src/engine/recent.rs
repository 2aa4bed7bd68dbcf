//! Which trees the last commits changed, for those who follow all of them.
//!
//! Invariants:
//! - every commit after `before` up to `last` is known, with all trees that it changed;
//! - commits come in the order of their sequence; one that does not follow the last makes what was
//!   known before it of no use, so that a gap is never taken for commits without changes.

use std::collections::VecDeque;

use crate::limits::RECENT_CHANGES_MAX;
use crate::revision::{CommitSequence, Revision};
use crate::tree::cell_key::TreeId;

/// What a commit did to one tree: the revision that it made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeChange {
    pub(crate) sequence: CommitSequence,
    pub(crate) tree: TreeId,
    pub(crate) revision: Revision,
}

/// The last commits, published or not.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    before: CommitSequence,
    last: CommitSequence,
    changes: VecDeque<TreeChange>,
}

impl Recent {
    /// Adds the commit after the last.
    pub(crate) fn push(
        &mut self,
        sequence: CommitSequence,
        trees: impl IntoIterator<Item = (TreeId, Revision)>,
    ) {
        if sequence != self.last.next() {
            self.changes.clear();
            self.before = CommitSequence(sequence.0.saturating_sub(1));
        }
        self.last = sequence;
        let change = |(tree, revision)| TreeChange { sequence, tree, revision };
        self.changes.extend(trees.into_iter().map(change));
        while self.changes.len() > RECENT_CHANGES_MAX
            && let Some(oldest) = self.changes.front().map(|change| change.sequence)
        {
            let is_oldest = |change: &mut TreeChange| change.sequence == oldest;
            while self.changes.pop_front_if(is_oldest).is_some() {}
            self.before = oldest;
        }
    }

    /// What the commits after one up to another changed, in their order; none if not all of them
    /// are known.
    pub(crate) fn between(
        &self,
        after: CommitSequence,
        until: CommitSequence,
    ) -> Option<Vec<TreeChange>> {
        if after < self.before || until > self.last {
            return None;
        }
        let first = self.changes.partition_point(|change| change.sequence <= after);
        let end = self.changes.partition_point(|change| change.sequence <= until);
        Some(self.changes.range(first..end.max(first)).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(recent: &Recent, after: u64, until: u64) -> Option<Vec<u64>> {
        let changes = recent.between(CommitSequence(after), CommitSequence(until))?;
        Some(changes.into_iter().map(|change| change.sequence.0).collect())
    }

    fn push(recent: &mut Recent, sequence: u64, trees: u64) {
        let trees = (1..=trees).map(|tree| (TreeId(tree), Revision(sequence)));
        recent.push(CommitSequence(sequence), trees);
    }

    #[test]
    fn commits_that_follow_each_other_are_known_and_those_before_them_not() {
        let mut recent = Recent::default();
        for sequence in 7..10 {
            push(&mut recent, sequence, sequence - 6);
        }
        assert_eq!(known(&recent, 6, 9), Some(vec![7, 8, 8, 9, 9, 9]));
        assert_eq!(known(&recent, 7, 8), Some(vec![8, 8]));
        assert_eq!(known(&recent, 9, 9), Some(vec![]));
        assert_eq!(known(&recent, 5, 9), None);
        assert_eq!(known(&recent, 8, 10), None);
    }

    #[test]
    fn a_gap_makes_what_was_before_it_unknown() {
        let mut recent = Recent::default();
        push(&mut recent, 1, 1);
        push(&mut recent, 3, 1);
        assert_eq!(known(&recent, 0, 3), None);
        assert_eq!(known(&recent, 2, 3), Some(vec![3]));
    }

    #[test]
    fn the_oldest_commits_go_whole_when_there_are_too_many_changes() {
        let mut recent = Recent::default();
        push(&mut recent, 1, 10);
        push(&mut recent, 2, RECENT_CHANGES_MAX as u64 - 5);
        assert_eq!(known(&recent, 0, 2), None);
        assert_eq!(known(&recent, 1, 2).map(|found| found.len()), Some(RECENT_CHANGES_MAX - 5));
        push(&mut recent, 3, RECENT_CHANGES_MAX as u64 + 1);
        assert_eq!(known(&recent, 2, 3), None);
        assert_eq!(known(&recent, 3, 3), Some(vec![]));
    }
}
