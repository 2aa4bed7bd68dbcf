//! How much differs, in numbers.

use super::{ChangeKind, Diff};

/// How many changes there are of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffCounts {
    /// Values added.
    pub added: u64,
    /// Values removed.
    pub removed: u64,
    /// Values replaced.
    pub replaced: u64,
    /// Objects whose members stand in another order.
    pub reordered: u64,
}

/// The number of changes in all, and in each member of the start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiffStat {
    /// All changes, those of the start itself among them.
    pub total: DiffCounts,
    /// The members or elements of the start that changes are at or below, in the order of their
    /// first change. An element goes by the index that the change has.
    pub members: Vec<(String, DiffCounts)>,
}

impl DiffCounts {
    /// All changes, of whatever kind.
    pub fn sum(&self) -> u64 {
        self.added + self.removed + self.replaced + self.reordered
    }

    fn count(&mut self, kind: ChangeKind) {
        *match kind {
            ChangeKind::Added => &mut self.added,
            ChangeKind::Removed => &mut self.removed,
            ChangeKind::Replaced => &mut self.replaced,
            ChangeKind::Reordered => &mut self.reordered,
        } += 1;
    }
}

impl Diff {
    /// Counts the changes, in all and in each member of the start.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, Revision};
    ///
    /// let doc = Database::memory()?.create_document("d")?;
    /// doc.put(r#"{"a":{"x":1,"y":2},"b":3}"#, &CommitOptions::default())?;
    /// doc.put(r#"{"a":{"x":4,"z":5},"b":3}"#, &CommitOptions::default())?;
    /// let stat = doc.diff(Revision(1), Revision(2))?.stat();
    /// assert_eq!((stat.total.added, stat.total.removed, stat.total.replaced), (1, 1, 1));
    /// assert_eq!((stat.members[0].0.as_str(), stat.members[0].1.sum()), ("a", 3));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn stat(&self) -> DiffStat {
        let mut stat = DiffStat::default();
        let mut places = rustc_hash::FxHashMap::default();
        for change in &self.changes {
            stat.total.count(change.kind);
            let Some(member) = change.pointer.tokens().nth(self.start.tokens().len()) else {
                continue;
            };
            let place = *places.entry(member).or_insert(stat.members.len());
            if place == stat.members.len() {
                stat.members.push((member.to_owned(), DiffCounts::default()));
            }
            stat.members[place].1.count(change.kind);
        }
        stat
    }
}
