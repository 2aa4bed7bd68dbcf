//! Random changes of a database, drawn from the model before the database sees them.
//!
//! A plan is made of a seed and of what the documents hold, so that it stays one that makes sense
//! when what came before it is left out.

use std::collections::BTreeMap;

use duramen::{
    CommitOptions, Database, Durability, Error, ErrorKind, Micros, Revision, Transaction,
};

use crate::json::Json;
use crate::model::{Model, Staged, Staging};
use crate::operation::{Kind, Operation, Told, has_tags, has_undoable};
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
    pub(crate) staged: BTreeMap<String, Staged>,
    /// The last commits of the documents that it names.
    last: Vec<u64>,
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
    /// That of this commit, the last of a document: too early.
    LastOf(u64),
    /// One that has not come.
    Future,
}

/// Why a plan was not carried out.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A step failed, so nothing is kept.
    Step(String, Error),
    /// A commit or call failed.
    Commit(Error),
    /// It went other than it says.
    Wrong(String),
}

/// The names that documents have, one more than there are documents.
pub(crate) const NAMES: [&str; 6] = ["a", "b/c", "\u{e9}", "many", "z", "spare"];
const STEPS_MAX: u64 = 8;
/// One plan in so many is a call.
const CALL_ONE_IN: u64 = 2;
/// Later than any simulated clock says.
const FUTURE: Micros = Micros(2_000_000_000_000_000);

impl Plan {
    /// Saves a value as a document of this name, in a transaction.
    pub fn put(model: &Model, name: &str, json: &Json) -> Self {
        let mut staging = Staging::new(model);
        let mut plan = Self::new(Frame::Commit);
        let operation = Operation::Put { value: json.to_string() };
        plan.push(name, operation, &mut staging);
        plan.settle(&staging);
        plan
    }

    /// Draws a call or a transaction.
    pub fn any(model: &Model, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let draw = if random.one_in(CALL_ONE_IN) { Self::call } else { Self::transaction };
        draw(model, random.bits())
    }

    /// Draws a single call.
    pub fn call(model: &Model, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut staging = Staging::new(model);
        let mut plan = Self::drawn(Frame::Call { based_on: None }, &mut random);
        let kind = Kind::draw(&mut random, Kind::stands_alone);
        let name = draw_name(kind, &staging, &mut random);
        let operation = Operation::draw(kind, name, &staging, &mut random);
        let makes = matches!(operation.kind(), Kind::Create | Kind::Import);
        if !makes && !staging.is_there(name) {
            // There is no handle to call.
            let expected = Err(ErrorKind::NotFound);
            let name = name.to_owned();
            plan.steps.push(Step { name, operation, expected, has_effect: false });
            plan.expected = Err(ErrorKind::NotFound);
            return plan;
        }
        plan.push(name, operation, &mut staging);
        plan.expected = plan.steps[0].expected.map(|()| Vec::new());
        if !makes {
            plan.draw_base(model.versions(name).len() as u64, &mut random);
        }
        if plan.expected.is_ok() && !makes {
            plan.draw_time(&staging, &mut random);
        } else if plan.needs_timestamp() {
            plan.time = Time::Past;
        }
        plan.settle(&staging);
        plan
    }

    /// Draws a transaction.
    pub fn transaction(model: &Model, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut staging = Staging::new(model);
        let frame = if random.one_in(8) { Frame::Rollback } else { Frame::Commit };
        let mut plan = Self::drawn(frame, &mut random);
        for _ in 0..=random.below(STEPS_MAX) {
            let kind = Kind::draw(&mut random, Kind::fits_inside);
            let name = draw_name(kind, &staging, &mut random);
            let operation = Operation::draw(kind, name, &staging, &mut random);
            plan.push(name, operation, &mut staging);
            if staging.is_broken() {
                if frame == Frame::Commit {
                    plan.expected = Err(ErrorKind::Invalid);
                }
                return plan;
            }
        }
        plan.keep_away(&mut staging);
        plan.draw_time(&staging, &mut random);
        plan.settle(&staging);
        plan
    }

    /// Whether a commit comes of it.
    pub fn is_commit(&self) -> bool {
        !self.staged.is_empty()
    }

    /// The timestamp to give, when `of` says that of the revisions of a commit.
    pub fn timestamp(&self, of: impl Fn(u64) -> Option<Micros>) -> Option<Micros> {
        match self.time {
            Time::Now => None,
            Time::Past => {
                let newest = self.last.iter().filter_map(|&commit| of(commit)).max();
                Some(Micros(newest.map_or(1, |newest| newest.0 + 1)))
            }
            Time::LastOf(commit) => of(commit),
            Time::Future => Some(FUTURE),
        }
    }

    /// Whether it cannot be carried out without a timestamp.
    pub(crate) fn needs_timestamp(&self) -> bool {
        self.steps.iter().any(|step| step.operation.kind() == Kind::Import)
    }

    /// What the commit says of itself.
    pub fn options(
        &self,
        timestamp: Option<Micros>,
        durability: Option<Durability>,
    ) -> CommitOptions {
        let expect_revision = match self.frame {
            Frame::Call { based_on } => based_on,
            Frame::Commit | Frame::Rollback => None,
        };
        let (author, message) = (self.author.clone(), self.message.clone());
        CommitOptions { author, message, timestamp, expect_revision, durability }
    }

    /// Carries it out in a database; nothing is told if it was refused, as it says, or rolled back.
    pub(crate) fn carry_out(
        &self,
        db: &Database,
        options: &CommitOptions,
    ) -> Result<Option<Told>, Stop> {
        let told = if let (Frame::Call { .. }, [step]) = (self.frame, &self.steps[..]) {
            step.operation.call(&step.name, db, options)
        } else {
            let mut transaction = db.transaction();
            self.steps.iter().try_for_each(|step| step.stage(&mut transaction))?;
            if self.frame == Frame::Rollback {
                transaction.rollback();
                return Ok(None);
            }
            transaction.commit(options).map(Told::from)
        };
        match told {
            Err(error) if self.expected == Err(error.kind()) => Ok(None),
            Err(error) => Err(Stop::Commit(error)),
            Ok(told) => self.check(told).map(Some).map_err(Stop::Wrong),
        }
    }

    /// Refuses what is not told as it says.
    fn check(&self, told: Told) -> Result<Told, String> {
        let is_commit = told.sequence > 0;
        if self.expected.as_ref() == Ok(&told.revisions) && is_commit == self.is_commit() {
            return Ok(told);
        }
        let expected = if self.is_commit() { "a commit" } else { "no commit" };
        Err(format!("found {told:?}, expected {:?} in {expected} of {self:?}", self.expected))
    }

    fn new(frame: Frame) -> Self {
        Self {
            steps: Vec::new(),
            frame,
            time: Time::Now,
            author: None,
            message: None,
            expected: Ok(Vec::new()),
            staged: BTreeMap::new(),
            last: Vec::new(),
        }
    }

    fn drawn(frame: Frame, random: &mut Random) -> Self {
        Self {
            author: random.one_in(2).then(|| random.choose(&["ann", "bob"]).to_owned()),
            message: random.one_in(3).then(|| format!("change {}", random.below(5))),
            ..Self::new(frame)
        }
    }

    /// Does an operation next.
    fn push(&mut self, name: &str, operation: Operation, staging: &mut Staging) {
        self.last.extend(staging.versions(name).last().map(|version| version.sequence));
        self.steps.push(Step::new(name, operation, staging));
    }

    /// Changes documents that were changed and changed back: whether that is a revision depends
    /// on whether elements were removed and others put in their place that only look the same.
    fn keep_away(&mut self, staging: &mut Staging) {
        for name in staging.changed_back() {
            let value = staging.value(&name).map_or(Json::Null, Json::altered).to_string();
            self.push(&name, Operation::Put { value }, staging);
        }
    }

    /// Draws the revision that a call is said to be based on, and whether that makes it fail.
    ///
    /// What is wrong with a name, a tag or an option is said first, and an exchange is of two.
    fn draw_base(&mut self, head: u64, random: &mut Random) {
        let based_on = random.one_in(4).then_some(Revision(head + random.below(2)));
        let is_said = match self.steps[0].operation.kind() {
            Kind::Exchange => false,
            Kind::Rename
            | Kind::Declare
            | Kind::Retain
            | Kind::Tag
            | Kind::MoveTag
            | Kind::Untag => self.expected.is_ok(),
            _ => true,
        };
        if based_on.is_none() || !is_said {
            return;
        }
        self.frame = Frame::Call { based_on };
        if based_on != Some(Revision(head)) {
            self.expected = Err(ErrorKind::Conflict);
        }
    }

    /// Draws the timestamp, and whether that makes a commit fail.
    fn draw_time(&mut self, staging: &Staging, random: &mut Random) {
        let changes = staging.changes();
        let mut aged = changes.keys().filter(|name| staging.differs(name));
        let aged = aged.find_map(|name| staging.versions(name).last());
        let (time, is_wrong) = match (random.below(8), aged) {
            (0 | 1, _) => (Time::Past, false),
            (2, Some(version)) => (Time::LastOf(version.sequence), true),
            (3, _) => (Time::Future, true),
            _ => (Time::Now, false),
        };
        if !changes.is_empty() && is_wrong && self.frame != Frame::Rollback {
            self.expected = Err(ErrorKind::Invalid);
        }
        self.time = time;
    }

    /// Says what the commit makes, if there is one.
    fn settle(&mut self, staging: &Staging) {
        let Ok(revisions) = &mut self.expected else { return };
        if self.frame == Frame::Rollback {
            return;
        }
        self.staged = staging.changes();
        let changed = self.staged.keys().filter(|name| staging.differs(name));
        *revisions = changed.map(|name| (name.clone(), Revision(staging.head(name) + 1))).collect();
    }
}

/// The name of a document, mostly one that an operation makes sense for. One name is always free.
fn draw_name(kind: Kind, staging: &Staging, random: &mut Random) -> &'static str {
    let used: Vec<&str> = NAMES.into_iter().filter(|name| staging.is_there(name)).collect();
    let fitting: Vec<&str> =
        used.iter().copied().filter(|name| is_fitting(kind, name, staging)).collect();
    match random.below(4) {
        1.. if !fitting.is_empty() => random.choose(&fitting),
        _ if used.len() + 1 < NAMES.len() => random.choose(&NAMES),
        _ => random.choose(&used),
    }
}

fn is_fitting(kind: Kind, name: &str, staging: &Staging) -> bool {
    match kind {
        Kind::Create | Kind::Put | Kind::Import => false,
        Kind::MoveTag | Kind::Untag => has_tags(name, staging),
        Kind::UndoEarlier => has_undoable(name, staging),
        _ => staging.value(name).is_some(),
    }
}

impl Step {
    /// Does an operation in the model.
    fn new(name: &str, operation: Operation, staging: &mut Staging) -> Self {
        let before = staging.document(name);
        let expected = operation.apply(name, staging);
        let changed = match (before, staging.document(name)) {
            (Some(before), Some(after)) => after.differs_from(&before),
            (before, after) => before.is_some() != after.is_some(),
        };
        let has_effect = expected.is_ok() && (changed || operation.kind().only_reads());
        Self { name: name.to_owned(), operation, expected, has_effect }
    }

    /// Does it in a transaction.
    fn stage(&self, transaction: &mut Transaction) -> Result<(), Stop> {
        match self.operation.stage(&self.name, transaction) {
            Err(error) if self.expected != Err(error.kind()) => {
                Err(Stop::Step(format!("{self:?}"), error))
            }
            Ok(()) if self.expected.is_err() => Err(Stop::Wrong(format!("{self:?} went well"))),
            _ => Ok(()),
        }
    }
}
