//! How often each kind of operation was drawn and took effect: a suite that never commits some
//! kind tells nothing about it, however many rounds it runs.

use std::collections::BTreeMap;
use std::fmt;

use crate::operation::Kind;
use crate::plan::{Frame, Plan};

/// Counts by kind of operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    counts: BTreeMap<Kind, Count>,
    chores: BTreeMap<Chore, Count>,
    /// Whether it is of runs that do chores between their operations.
    has_chores: bool,
}

/// What is done to a database beside changing documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Chore {
    Flush,
    Checkpoint,
    Compact,
    ReadBeside,
    Reopen,
    Close,
}

impl Chore {
    const ALL: [Self; 6] =
        [Self::Flush, Self::Checkpoint, Self::Compact, Self::ReadBeside, Self::Reopen, Self::Close];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Checkpoint => "checkpoint",
            Self::Compact => "compact",
            Self::ReadBeside => "read beside",
            Self::Reopen => "reopen",
            Self::Close => "close",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    drawn: u64,
    in_effect: u64,
}

impl Coverage {
    /// A plan was drawn.
    pub fn drawn(&mut self, plan: &Plan) {
        for step in &plan.steps {
            self.counts.entry(step.operation.kind()).or_default().drawn += 1;
        }
    }

    /// A plan was carried out to its end, and all of it went as expected.
    pub fn carried_out(&mut self, plan: &Plan) {
        if plan.frame == Frame::Rollback || plan.expected.is_err() {
            return;
        }
        for step in plan.steps.iter().filter(|step| step.has_effect) {
            self.counts.entry(step.operation.kind()).or_default().in_effect += 1;
        }
    }

    /// A chore was begun.
    pub(crate) fn begun(&mut self, chore: Chore) {
        self.has_chores = true;
        self.chores.entry(chore).or_default().drawn += 1;
    }

    /// A chore was done.
    pub(crate) fn done(&mut self, chore: Chore) {
        self.chores.entry(chore).or_default().in_effect += 1;
    }

    /// Adds the counts of another.
    pub fn add(&mut self, other: &Self) {
        for (kind, count) in &other.counts {
            self.counts.entry(*kind).or_default().add(*count);
        }
        for (chore, count) in &other.chores {
            self.chores.entry(*chore).or_default().add(*count);
        }
        self.has_chores |= other.has_chores;
    }

    /// What each kind that took effect fewer times than `floor` fails with.
    pub fn gaps(&self, floor: u64) -> Vec<String> {
        let rows = self.rows().filter(|(_, count)| count.in_effect < floor);
        rows.map(|(name, count)| {
            let found = count.in_effect;
            format!("operation {name} took effect {found} times, and should at least {floor} times")
        })
        .collect()
    }

    fn rows(&self) -> impl Iterator<Item = (&'static str, Count)> {
        let count = |kind| self.counts.get(&kind).copied().unwrap_or_default();
        let done = |chore| self.chores.get(&chore).copied().unwrap_or_default();
        let chores = Chore::ALL.iter().filter(|_| self.has_chores);
        let chores = chores.map(move |&chore| (chore.name(), done(chore)));
        Kind::ALL.iter().map(move |&kind| (kind.name(), count(kind))).chain(chores)
    }
}

impl Count {
    fn add(&mut self, other: Self) {
        self.drawn += other.drawn;
        self.in_effect += other.in_effect;
    }
}

impl fmt::Display for Coverage {
    /// A table of one line per kind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:<16} {:>10} {:>10}", "operation", "drawn", "in effect")?;
        for (name, count) in self.rows() {
            writeln!(f, "  {name:<16} {:>10} {:>10}", count.drawn, count.in_effect)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;
    use crate::model::Model;
    use crate::samples::Scale;

    #[test]
    fn what_changes_nothing_is_drawn_without_effect() {
        let mut model = Model::new(Scale::SMALL);
        let mut coverage = Coverage::default();
        for _ in 0..2 {
            let plan = Plan::put(&model, "a", &Json::Null);
            coverage.drawn(&plan);
            coverage.carried_out(&plan);
            model.commit(&plan);
        }
        assert_eq!(coverage.counts[&Kind::Put], Count { drawn: 2, in_effect: 1 });
    }

    #[test]
    fn a_kind_that_never_took_effect_is_a_gap() {
        let gaps = Coverage::default().gaps(1);
        assert_eq!(gaps.len(), Kind::ALL.len(), "{gaps:?}");
        assert!(Coverage::default().gaps(0).is_empty());
    }
}
