//! What a database should hold after what happened to its device: the model, and what may be lost.
//!
//! Invariants:
//! - commits up to `durable` survive a power loss, those of the model a killed process;
//! - at most one commit is under way: its outcome is known only when the database is reopened.

use std::collections::BTreeMap;

use duramen::Micros;

use crate::model::{Model, Version};
use crate::plan::{Plan, Time};
use crate::samples::Scale;

/// What a failed check says.
pub(crate) type Check<T = ()> = Result<T, String>;

/// A database as it should be.
#[derive(Debug, Clone)]
pub(crate) struct Expectation {
    /// What was acknowledged.
    pub(crate) model: Model,
    /// The last commit that must survive a power loss.
    pub(crate) durable: u64,
    /// A commit without an answer.
    pub(crate) under_way: Option<Pending>,
    /// The times of each commit.
    times: BTreeMap<u64, Times>,
}

/// A commit that was begun.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    pub(crate) plan: Plan,
    /// The timestamp that it was given.
    pub(crate) given: Option<Micros>,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    given: Option<Micros>,
    /// `None` until the database has told.
    committed: Option<Micros>,
}

impl Expectation {
    /// An empty database; documents will have this scale.
    pub(crate) fn new(scale: Scale) -> Self {
        Self { model: Model::new(scale), durable: 0, under_way: None, times: BTreeMap::new() }
    }

    /// A commit happened, if the plan leads to one.
    pub(crate) fn commit(&mut self, pending: &Pending, committed: Option<Micros>) {
        self.model.commit(&pending.plan);
        if pending.plan.is_commit() {
            let times = Times { given: pending.given, committed };
            self.times.insert(self.model.sequence(), times);
        }
    }

    /// Everything so far is durable.
    pub(crate) fn synced(&mut self) {
        self.durable = self.model.sequence();
    }

    /// Forgets the commits after `sequence`.
    pub(crate) fn truncate(&mut self, sequence: u64) {
        self.model.truncate(sequence);
        self.times.retain(|commit, _| *commit <= sequence);
        self.durable = self.durable.min(sequence);
    }

    /// When a revision was committed, which is learnt from `found` if nobody knows, and its own
    /// timestamp.
    pub(crate) fn times_of(&mut self, version: &Version, found: Micros) -> (Micros, Micros) {
        let unknown = Times { given: None, committed: None };
        let times = self.times.entry(version.sequence).or_insert(unknown);
        let committed = *times.committed.get_or_insert(found);
        (committed, times.given.unwrap_or(committed))
    }

    /// The timestamp to give to a plan at a time: none if the clock was set back so far that the
    /// one after the last would be in the future.
    pub(crate) fn timestamp(&self, plan: &Plan, now: Micros) -> Option<Micros> {
        let given = plan.timestamp(|name| self.last_timestamp(name))?;
        let newest = self.times.values().filter_map(|times| times.committed).max();
        let is_early = newest.is_none_or(|newest| given > newest) && given > now;
        (plan.time != Time::Past || !is_early).then_some(given)
    }

    /// The timestamp of a document's last revision.
    fn last_timestamp(&self, name: &str) -> Option<Micros> {
        let times = self.times.get(&self.model.versions(name).last()?.sequence)?;
        times.given.or(times.committed)
    }
}
