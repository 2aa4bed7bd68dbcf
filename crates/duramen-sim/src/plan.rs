//! Random changes of a database, drawn from the model before the database sees them.
//!
//! A plan is made of a seed and of what the documents hold, so that it stays one that makes sense
//! when what came before it is left out.

use std::collections::BTreeSet;

use duramen::{ErrorKind, Micros, Revision};

use crate::json::Json;
use crate::model::{Model, Staging, Traits, Values};
use crate::operation::{Kind, Operation};
use crate::random::Random;

/// One change of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What is done, in this order.
    pub steps: Vec<Step>,
    /// What is around that.
    pub frame: Frame,
    /// The timestamp it is given.
    pub time: Time,
    /// Who makes it.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
    /// The documents that get a revision, or the kind of the error.
    pub expected: Result<Vec<(String, Revision)>, ErrorKind>,
    /// The documents that the commit changes or makes; empty if there is none.
    pub(crate) staged: Values,
    /// What the documents went through.
    pub(crate) traits: Traits,
}

/// What surrounds the steps of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// Nothing: one call, perhaps with the revision it is said to be based on.
    Call {
        /// That revision.
        based_on: Option<Revision>,
    },
    /// A transaction that ends with a commit.
    Commit,
    /// A transaction that is rolled back.
    Rollback,
}

/// One operation, and what should come of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The document.
    pub name: String,
    /// What is done to it.
    pub operation: Operation,
    /// The kind of the error, if it is one.
    pub expected: Result<(), ErrorKind>,
    /// Whether it does anything: changes something, or answers what it was asked.
    pub(crate) has_effect: bool,
}

/// The timestamp that a commit is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Time {
    /// None.
    Now,
    /// One after the last revision of each document that is touched.
    Past,
    /// That of this document's last revision: too early.
    LastOf(String),
    /// One that has not come.
    Future,
}

const DOCUMENTS: [&str; 5] = ["a", "b/c", "\u{e9}", "many", "z"];
const STEPS_MAX: u64 = 8;
/// Later than any simulated clock says.
const FUTURE: Micros = Micros(2_000_000_000_000_000);

impl Plan {
    /// Saves a value as a document of this name, in a transaction.
    pub fn put(model: &Model, name: &str, json: &Json) -> Self {
        let mut staging = Staging::new(model);
        let mut plan = Self::new(Frame::Commit);
        let operation = Operation::Put { value: json.to_string() };
        plan.steps.push(Step::new(name, operation, &mut staging));
        plan.settle(staging);
        plan
    }

    /// Draws a single call.
    pub fn call(model: &Model, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut staging = Staging::new(model);
        let mut plan = Self::drawn(Frame::Call { based_on: None }, &mut random);
        let name = random.choose(&DOCUMENTS);
        let kind = Kind::draw(&mut random, Kind::stands_alone);
        let operation = Operation::draw(kind, name, &staging, &mut random);
        if kind != Kind::Create && !staging.is_there(name) {
            // There is no handle to call.
            let expected = Err(ErrorKind::NotFound);
            let name = name.to_owned();
            plan.steps.push(Step { name, operation, expected, has_effect: false });
            plan.expected = Err(ErrorKind::NotFound);
            return plan;
        }
        let step = Step::new(name, operation, &mut staging);
        let outcome = step.expected;
        plan.steps.push(step);
        if kind == Kind::Create {
            plan.expected = outcome.map(|()| Vec::new());
        } else {
            let head = model.head(name);
            let based_on = random.one_in(4).then_some(Revision(head + random.below(2)));
            plan.frame = Frame::Call { based_on };
            plan.expected = match based_on {
                Some(revision) if revision.0 != head => Err(ErrorKind::Conflict),
                _ => outcome.map(|()| Vec::new()),
            };
            if plan.expected.is_ok() {
                plan.draw_time(&staging, &mut random);
            }
        }
        plan.settle(staging);
        plan
    }

    /// Draws a transaction.
    pub fn transaction(model: &Model, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut staging = Staging::new(model);
        let frame = if random.one_in(8) { Frame::Rollback } else { Frame::Commit };
        let mut plan = Self::drawn(frame, &mut random);
        let mut moved = BTreeSet::new();
        for _ in 0..=random.below(STEPS_MAX) {
            let name = random.choose(&DOCUMENTS);
            let kind = Kind::draw(&mut random, |_| true);
            let operation = Operation::draw(kind, name, &staging, &mut random);
            plan.steps.push(Step::new(name, operation, &mut staging));
            if staging.differs(name) {
                moved.insert(name);
            }
            if staging.is_broken() {
                if frame == Frame::Commit {
                    plan.expected = Err(ErrorKind::Invalid);
                }
                return plan;
            }
        }
        plan.keep_away(&moved, &mut staging);
        plan.draw_time(&staging, &mut random);
        plan.settle(staging);
        plan
    }

    /// Whether a commit comes of it.
    pub fn is_commit(&self) -> bool {
        !self.staged.is_empty()
    }

    /// The timestamp to give, when `last` says that of a document's last revision.
    pub fn timestamp(&self, last: impl Fn(&str) -> Option<Micros>) -> Option<Micros> {
        match &self.time {
            Time::Now => None,
            Time::Past => {
                let newest = self.steps.iter().filter_map(|step| last(&step.name)).max();
                Some(Micros(newest.map_or(1, |newest| newest.0 + 1)))
            }
            Time::LastOf(name) => last(name),
            Time::Future => Some(FUTURE),
        }
    }

    fn new(frame: Frame) -> Self {
        Self {
            steps: Vec::new(),
            frame,
            time: Time::Now,
            author: None,
            message: None,
            expected: Ok(Vec::new()),
            staged: Values::new(),
            traits: Traits::default(),
        }
    }

    fn drawn(frame: Frame, random: &mut Random) -> Self {
        Self {
            author: random.one_in(2).then(|| random.choose(&["ann", "bob"]).to_owned()),
            message: random.one_in(3).then(|| format!("change {}", random.below(5))),
            ..Self::new(frame)
        }
    }

    /// Changes documents that were changed and changed back: whether that is a revision depends
    /// on whether elements were removed and others put in their place that only look the same.
    fn keep_away(&mut self, moved: &BTreeSet<&str>, staging: &mut Staging) {
        for name in moved {
            if staging.differs(name) {
                continue;
            }
            let back = staging.value(name).cloned().unwrap_or(Json::Null);
            let value = Json::Array(vec![Json::Null, back]).to_string();
            self.steps.push(Step::new(name, Operation::Put { value }, staging));
        }
    }

    /// Draws the timestamp, and whether that makes a commit fail.
    fn draw_time(&mut self, staging: &Staging, random: &mut Random) {
        let touched: BTreeSet<&str> = self.steps.iter().map(|step| step.name.as_str()).collect();
        let changed = touched.iter().copied().filter(|name| staging.differs(name));
        let aged = changed.clone().find(|name| staging.model().head(name) > 0);
        let (time, is_wrong) = match (random.below(8), aged) {
            (0 | 1, _) => (Time::Past, false),
            (2, Some(name)) => (Time::LastOf(name.to_owned()), true),
            (3, _) => (Time::Future, true),
            _ => (Time::Now, false),
        };
        let is_made = |name: &&str| !staging.model().documents().contains_key(*name);
        let is_anything = changed.count() > 0
            || touched.iter().any(|name| is_made(name) && staging.is_there(name));
        if is_anything && is_wrong && self.frame != Frame::Rollback {
            self.expected = Err(ErrorKind::Invalid);
        }
        self.time = time;
    }

    /// Says what the commit makes, if there is one.
    fn settle(&mut self, staging: Staging) {
        let Ok(revisions) = &mut self.expected else { return };
        if self.frame == Frame::Rollback {
            return;
        }
        let model = staging.model();
        (self.staged, self.traits) = staging.into_changes();
        let is_revision = |(name, value): &(&String, &Option<Json>)| {
            value.is_some() || model.value(name).is_some()
        };
        let changed = self.staged.iter().filter(is_revision);
        *revisions =
            changed.map(|(name, _)| (name.clone(), Revision(model.head(name) + 1))).collect();
    }
}

impl Step {
    /// Does an operation in the model.
    fn new(name: &str, operation: Operation, staging: &mut Staging) -> Self {
        let was_there = staging.is_there(name);
        let before = staging.value(name).cloned();
        let expected = operation.apply(name, staging);
        let is_change =
            staging.is_there(name) != was_there || staging.value(name) != before.as_ref();
        let has_effect = expected.is_ok() && (is_change || operation.kind().only_reads());
        Self { name: name.to_owned(), operation, expected, has_effect }
    }
}
