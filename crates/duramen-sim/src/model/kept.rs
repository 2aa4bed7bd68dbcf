//! Which revisions of a document are there still, as far as that can be known.
//!
//! When compactions run is the engine's business. So of a revision that the document's retention
//! lets go nobody knows until a compaction of everything has ended: then it is gone for ever.

use std::collections::BTreeSet;

use duramen::{Retention, Revision};

use super::Facts;

/// What became of each revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// From the first revision on.
    fates: Vec<Fate>,
    /// The latest revision that the history may begin with.
    first_max: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    There,
    /// It may have been dropped by a compaction.
    Open,
    Dropped,
}

/// What a document says of its history: the first revision, and all that it lists.
#[derive(Debug)]
pub struct Listed {
    /// The revision that the history begins with.
    pub first: Revision,
    /// The revisions of the log.
    pub revisions: BTreeSet<u64>,
}

impl Kept {
    /// After a commit there are so many revisions, and from now on a compaction may drop some.
    pub(super) fn commit(&mut self, head: usize, facts: &Facts) {
        self.fates.resize(head, Fate::There);
        let head = head as u64;
        let first = match facts.options.keep {
            Retention::Last(count) => (head + 1).saturating_sub(count),
            Retention::Head => head,
            Retention::All | Retention::For(_) => return,
        };
        self.first_max = self.first_max.max(first);
        let tagged = |at: u64| facts.tags.values().any(|tag| tag.revision.0 == at);
        for (revision, fate) in (1..self.first_max).zip(&mut self.fates) {
            if *fate == Fate::There && !tagged(revision) {
                *fate = Fate::Open;
            }
        }
    }

    /// Whether all revisions from one on are there for certain.
    pub fn has_all_from(&self, revision: u64) -> bool {
        let skipped = usize::try_from(revision).unwrap_or(usize::MAX).saturating_sub(1);
        self.fates.iter().skip(skipped).all(|fate| *fate == Fate::There)
    }

    /// Whether the history begins with revision 1 for certain.
    pub(crate) fn is_whole(&self) -> bool {
        self.first_max <= 1 && self.has_all_from(1)
    }

    /// Whether a revision is gone for ever.
    pub(crate) fn is_dropped(&self, revision: Revision) -> bool {
        self.fate(revision) == Some(Fate::Dropped)
    }

    /// Whether nobody knows of a revision.
    pub(crate) fn is_open(&self, revision: Revision) -> bool {
        self.fate(revision) == Some(Fate::Open)
    }

    fn fate(&self, revision: Revision) -> Option<Fate> {
        let index = usize::try_from(revision.0).ok()?.checked_sub(1)?;
        self.fates.get(index).copied()
    }

    /// Compares with what a document says.
    ///
    /// # Errors
    /// What is wrong with that.
    pub fn check(&self, listed: &Listed) -> Result<(), String> {
        let latest = self.first_max.max(1);
        if listed.first.0 < 1 || listed.first.0 > latest {
            let first = listed.first;
            return Err(format!("the history begins at {first}, expected 1 to {latest}"));
        }
        for (revision, fate) in (1..).zip(&self.fates) {
            let is_there = listed.revisions.contains(&revision);
            let is_wrong = match fate {
                Fate::There => !is_there,
                Fate::Open => revision >= listed.first.0 && !is_there,
                Fate::Dropped => is_there || revision >= listed.first.0,
            };
            if is_wrong {
                return Err(format!(
                    "revision {revision} is {fate:?}, but the document lists {listed:?}"
                ));
            }
        }
        let count = self.fates.len() as u64;
        match listed.revisions.iter().find(|&&revision| revision > count) {
            Some(revision) => Err(format!("revision {revision} of {count} is listed")),
            None => Ok(()),
        }
    }

    /// A compaction of everything has ended: what the retention lets go is not there any more.
    ///
    /// # Errors
    /// What is there all the same, or is not and should be.
    pub(crate) fn compacted(&mut self, listed: &Listed, facts: &Facts) -> Result<(), String> {
        self.check(listed)?;
        let head = self.fates.len() as u64;
        let first = match facts.options.keep {
            Retention::Last(count) => (head + 1).saturating_sub(count),
            Retention::Head => head,
            Retention::All | Retention::For(_) => 1,
        };
        if listed.first.0 < first {
            let found = listed.first;
            return Err(format!("the history begins at {found} after a compaction, not {first}"));
        }
        for (revision, fate) in (1..).zip(&mut self.fates) {
            let is_there = listed.revisions.contains(&revision);
            let is_tagged = facts.tags.values().any(|tag| tag.revision.0 == revision);
            let is_let_go = first > 1 && revision < listed.first.0 && !is_tagged;
            if is_there && is_let_go {
                return Err(format!("revision {revision} is there after a compaction: {listed:?}"));
            }
            *fate = if is_there { Fate::There } else { Fate::Dropped };
        }
        self.first_max = listed.first.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(keep: Retention) -> Facts {
        let mut facts = Facts::default();
        facts.options.keep = keep;
        facts
    }

    fn listed(first: u64, revisions: impl IntoIterator<Item = u64>) -> Listed {
        Listed { first: Revision(first), revisions: revisions.into_iter().collect() }
    }

    #[test]
    fn what_is_let_go_may_be_gone_until_a_compaction_says_so() {
        let mut kept = Kept::default();
        let facts = facts(Retention::Last(2));
        kept.commit(5, &facts);
        assert!(kept.check(&listed(1, 1..=5)).is_ok());
        assert!(kept.check(&listed(3, 3..=5)).is_ok());
        assert!(kept.check(&listed(5, 5..=5)).is_err(), "a revision that is kept is missing");
        assert!(kept.check(&listed(3, 2..=5)).is_ok(), "one before the first may be pinned");
        assert!(kept.compacted(&listed(1, 1..=5), &facts).is_err(), "all is there still");
        kept.compacted(&listed(4, 4..=5), &facts).unwrap();
        assert!(kept.is_dropped(Revision(3)) && kept.has_all_from(4));
        assert!(kept.check(&listed(1, 1..=5)).is_err(), "what was dropped is back");
    }

    #[test]
    fn what_is_kept_in_full_is_all_there() {
        let mut kept = Kept::default();
        kept.commit(3, &facts(Retention::All));
        assert!(kept.has_all_from(1) && kept.check(&listed(1, 1..=3)).is_ok());
        assert!(kept.check(&listed(1, 2..=3)).is_err());
        assert!(kept.check(&listed(2, 2..=3)).is_err());
    }
}
