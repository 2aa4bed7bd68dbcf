//! What a database should hold after what happened to its device: the model, and what may be lost.
//!
//! Invariants:
//! - commits up to the first state survive a power loss, those up to the last a killed process;
//! - at most one commit is under way: its outcome is known only when the database is reopened.

use std::collections::BTreeMap;
use std::sync::Arc;

use duramen::Micros;

use crate::model::Model;
use crate::plan::{Plan, Time};
use crate::samples::Scale;

/// What a failed check says.
pub(crate) type Check<T = ()> = Result<T, String>;

/// A database as it should be.
#[derive(Debug, Clone)]
pub(crate) struct Expectation {
    /// What is durable, and what each acknowledged commit since has made of it.
    states: Vec<Arc<Model>>,
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
        let states = vec![Arc::new(Model::new(scale))];
        Self { states, under_way: None, times: BTreeMap::new() }
    }

    /// The same, in which no document drops anything of its history.
    pub(crate) fn keeping_all(self) -> Self {
        let keep = |state: &Arc<Model>| Arc::new(Model::clone(state).keeping_all());
        Self { states: self.states.iter().map(keep).collect(), ..self }
    }

    /// What was acknowledged.
    pub(crate) fn model(&self) -> &Model {
        &self.states[self.states.len() - 1]
    }

    /// The same, to learn what became of it. Everything so far is durable.
    pub(crate) fn model_mut(&mut self) -> &mut Model {
        self.synced();
        Arc::make_mut(&mut self.states[0])
    }

    /// The last commit that must survive a power loss.
    pub(crate) fn durable(&self) -> u64 {
        self.states[0].sequence()
    }

    /// A commit happened, if the plan leads to one.
    pub(crate) fn commit(&mut self, pending: &Pending, committed: Option<Micros>) {
        if !pending.plan.is_commit() {
            return;
        }
        let mut model = self.model().clone();
        model.commit(&pending.plan);
        let times = Times { given: pending.given, committed };
        self.times.insert(model.sequence(), times);
        self.states.push(Arc::new(model));
    }

    /// Everything so far is durable.
    pub(crate) fn synced(&mut self) {
        self.states.drain(..self.states.len() - 1);
    }

    /// Forgets the commits after `sequence`, which is not before the last durable one.
    pub(crate) fn truncate(&mut self, sequence: u64) {
        self.states.retain(|state| state.sequence() <= sequence);
        self.times.retain(|commit, _| *commit <= sequence);
    }

    /// When a commit was, which is learnt from `found` if nobody knows, and the timestamp of the
    /// revisions that it made.
    pub(crate) fn times_of(&mut self, sequence: u64, found: Micros) -> (Micros, Micros) {
        let unknown = Times { given: None, committed: None };
        let times = self.times.entry(sequence).or_insert(unknown);
        let committed = *times.committed.get_or_insert(found);
        (committed, times.given.unwrap_or(committed))
    }

    /// The timestamp to give to a plan at a time: none if the clock was set back so far that the
    /// one after the last would be in the future.
    pub(crate) fn timestamp(&self, plan: &Plan, now: Micros) -> Option<Micros> {
        let of = |commit| self.times.get(&commit).and_then(|times| times.given.or(times.committed));
        let given = plan.timestamp(of)?;
        let newest = self.times.values().filter_map(|times| times.committed).max();
        let is_early = newest.is_none_or(|newest| given > newest) && given > now;
        (plan.time != Time::Past || !is_early).then_some(given)
    }
}
