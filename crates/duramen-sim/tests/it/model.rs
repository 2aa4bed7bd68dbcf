//! The engine against a naive model that keeps every revision in full.

mod compare;
mod paths;

use std::collections::BTreeMap;
use std::sync::Arc;

use duramen::{CommitOptions, Database, JsonPointer, Micros, Options, Outcome, Result, Revision};
use duramen_sim::model::{Call, Model, Plan, Step, Time};
use duramen_sim::samples::Scale;
use duramen_sim::{Random, SimulatedClock};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

/// What is done next; the rest of the choice follows from the seed and the model.
#[derive(Debug, Clone)]
pub(crate) enum Transition {
    Change(u64),
    Transact(u64),
    Read(u64),
    ReadBeside(u64),
    Checkpoint,
    Reopen { checkpoint: bool },
}

/// The model and what it last did.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    model: Model,
    plan: Option<Plan>,
    memory_bytes: usize,
}

const SCALES: [Scale; 3] = [Scale::SMALL, Scale::WIDE, Scale::LARGE];
const SMALL: usize = 0;
const WIDE: usize = 1;
const LARGE: usize = 2;

/// The model of documents of one scale.
#[derive(Debug)]
pub(crate) struct Documents<const SCALE: usize>;

impl<const SCALE: usize> ReferenceStateMachine for Documents<SCALE> {
    type State = Reference;
    type Transition = Transition;

    fn init_state() -> BoxedStrategy<Reference> {
        let scale = SCALES[SCALE];
        // With little memory, commits write checkpoints on their own.
        prop_oneof![Just(256 << 20), Just(4 << 10), Just(64 << 10)]
            .prop_map(move |memory_bytes| Reference {
                model: Model::new(scale),
                plan: None,
                memory_bytes,
            })
            .no_shrink()
            .boxed()
    }

    fn transitions(_: &Reference) -> BoxedStrategy<Transition> {
        let seed = || any::<u64>().no_shrink();
        prop_oneof![
            12 => seed().prop_map(Transition::Change),
            6 => seed().prop_map(Transition::Transact),
            6 => seed().prop_map(Transition::Read),
            1 => seed().prop_map(Transition::ReadBeside),
            2 => Just(Transition::Checkpoint),
            1 => any::<bool>().no_shrink().prop_map(|checkpoint| Transition::Reopen { checkpoint }),
        ]
        .boxed()
    }

    fn apply(mut state: Reference, transition: &Transition) -> Reference {
        state.plan = match *transition {
            Transition::Change(seed) => Some(state.model.change(seed, false)),
            Transition::Transact(seed) => Some(state.model.change(seed, true)),
            _ => None,
        };
        state
    }
}

/// The engine on a device in memory.
#[derive(Debug)]
pub(crate) struct Subject {
    device: Arc<duramen::io::MemoryDevice>,
    clock: SimulatedClock,
    memory_bytes: usize,
    db: Option<Database>,
    /// The revision timestamps of each document.
    times: BTreeMap<String, Vec<Micros>>,
    script: Script,
}

/// What was done, printed if the test fails.
#[derive(Debug, Default)]
struct Script(Vec<String>);

impl Drop for Script {
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os("DURAMEN_SCRIPT").is_some() {
            eprintln!("SCRIPT\n{}", self.0.join("\n"));
        }
    }
}

impl<const SCALE: usize> StateMachineTest for Documents<SCALE> {
    type SystemUnderTest = Subject;
    type Reference = Self;

    fn init_test(reference: &Reference) -> Subject {
        Subject::new(reference.memory_bytes)
    }

    fn apply(mut subject: Subject, reference: &Reference, transition: Transition) -> Subject {
        subject.script.0.push(format!("{transition:?} {:?}", reference.plan));
        match transition {
            Transition::Change(_) | Transition::Transact(_) => {
                let plan = reference.plan.as_ref().unwrap();
                subject.carry_out(plan, &reference.model);
            }
            Transition::Read(seed) => {
                let mut random = Random::new(seed);
                compare::something(subject.db(), &reference.model, &subject.times, &mut random);
            }
            Transition::ReadBeside(seed) => subject.read_beside(&reference.model, seed),
            Transition::Checkpoint => subject.db().checkpoint().unwrap(),
            Transition::Reopen { checkpoint } => subject.reopen(checkpoint),
        }
        subject
    }

    fn teardown(subject: Subject, reference: Reference) {
        compare::everything(subject.db(), &reference.model, &subject.times);
        let report = subject.db().check().unwrap();
        assert!(report.is_clean(), "{report:?}");
    }
}

impl Subject {
    fn new(memory_bytes: usize) -> Self {
        let mut subject = Self {
            device: Arc::default(),
            clock: SimulatedClock::new(Micros(1_000_000_000_000_000)),
            memory_bytes,
            db: None,
            times: BTreeMap::new(),
            script: Script::default(),
        };
        subject.db = Some(subject.open(false));
        subject
    }

    fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn open(&self, read_only: bool) -> Database {
        let options = Options {
            read_only,
            memory_bytes: self.memory_bytes,
            background: false,
            clock: Arc::new(self.clock.clone()),
            ..Options::default()
        };
        Database::open_device(Arc::<duramen::io::MemoryDevice>::clone(&self.device), options)
            .unwrap()
    }

    fn reopen(&mut self, checkpoint: bool) {
        let db = self.db.take().unwrap();
        if checkpoint {
            db.checkpoint().unwrap();
        }
        db.close().unwrap();
        self.db = Some(self.open(false));
    }

    fn read_beside(&self, model: &Model, seed: u64) {
        let reader = self.open(true);
        assert_eq!(reader.documents().unwrap(), self.db().documents().unwrap());
        compare::heads(&reader, model);
        compare::something(&reader, model, &self.times, &mut Random::new(seed));
    }

    fn carry_out(&mut self, plan: &Plan, model: &Model) {
        let options = CommitOptions {
            author: plan.author.clone(),
            message: plan.message.clone(),
            timestamp: self.timestamp(&plan.time),
            expect_revision: plan.based_on,
            ..CommitOptions::default()
        };
        let result = if plan.is_transaction {
            self.transact(plan, &options)
        } else {
            self.call(&plan.steps[0], &options)
        };
        let result = result.map_err(|error| error.kind());
        let revisions = result.as_ref().map(|(revisions, _)| revisions.clone());
        assert_eq!(revisions.map_err(|kind| *kind), plan.expected, "{plan:#?}");
        if let Ok((revisions, timestamp)) = result {
            for (name, _) in revisions {
                let time = options.timestamp.unwrap_or(timestamp);
                self.times.entry(name).or_default().push(time);
            }
        }
        for step in &plan.steps {
            compare::head(self.db(), model, &step.name);
        }
    }

    fn timestamp(&self, time: &Time) -> Option<Micros> {
        let last = |times: &Vec<Micros>| times.last().copied();
        match time {
            Time::Now => None,
            Time::Past => {
                let newest = self.times.values().filter_map(last).max();
                Some(Micros(newest.map_or(1, |newest| newest.0 + 1)))
            }
            Time::LastOf(name) => last(&self.times[name]),
            Time::Future => Some(Micros(2_000_000_000_000_000)),
        }
    }

    /// One change outside a transaction.
    fn call(
        &self,
        step: &Step,
        options: &CommitOptions,
    ) -> Result<(Vec<(String, Revision)>, Micros)> {
        if step.call == Call::Create {
            let document = self.db().create_document(&step.name)?;
            assert_eq!(document.head_revision().unwrap(), Revision(0));
            return Ok((Vec::new(), Micros(0)));
        }
        let document = self.db().document(&step.name)?;
        let outcome = match &step.call {
            Call::Put(text) => document.put(text, options),
            Call::Set(at, text) => document.set(&JsonPointer::parse(at)?, text, options),
            Call::Remove(at) => document.remove(&JsonPointer::parse(at)?, options),
            other => panic!("{other:?} belongs into a transaction"),
        }?;
        assert_eq!(outcome.revision(), document.head_revision()?);
        Ok(match outcome {
            Outcome::Committed(commit) => {
                (vec![(step.name.clone(), commit.revision)], commit.timestamp)
            }
            Outcome::Unchanged(_) => (Vec::new(), Micros(0)),
        })
    }

    fn transact(
        &self,
        plan: &Plan,
        options: &CommitOptions,
    ) -> Result<(Vec<(String, Revision)>, Micros)> {
        let mut transaction = self.db().transaction();
        for step in &plan.steps {
            let name = step.name.as_str();
            let result = match &step.call {
                Call::Create => transaction.create_document(name),
                Call::Put(text) => transaction.put(name, text.as_bytes()),
                Call::Set(at, text) => {
                    transaction.set(name, &JsonPointer::parse(at)?, text.as_bytes())
                }
                Call::Remove(at) => transaction.remove(name, &JsonPointer::parse(at)?),
                Call::Expect(revision) => transaction.expect(name, *revision),
                Call::Get(at, expected) => {
                    transaction.get(name, &JsonPointer::parse(at)?).map(|found| {
                        assert_eq!(found, *expected, "{step:?} of {plan:#?}");
                    })
                }
            };
            assert_eq!(
                result.map_err(|error| error.kind()),
                step.expected,
                "{step:?} of {plan:#?}"
            );
            if step.name.len() == 1 && plan.steps.len() == 5 {
                // What is staged while a checkpoint is written is none of its business.
                self.db().checkpoint()?;
            }
        }
        if plan.is_rolled_back {
            transaction.rollback();
            return Ok((Vec::new(), Micros(0)));
        }
        let committed = transaction.commit(options)?;
        Ok((committed.revisions, committed.timestamp))
    }
}

fn config(cases: u32, rng_seed: RngSeed) -> Config {
    Config {
        cases,
        rng_seed,
        max_shrink_iters: 4_000,
        failure_persistence: None,
        ..Config::default()
    }
}

prop_state_machine! {
    #![proptest_config(config(1_000, RngSeed::Fixed(1)))]
    #[test]
    fn small_documents_are_as_the_model_says(
        sequential 1..100 => Documents<SMALL>
    );
}

prop_state_machine! {
    #![proptest_config(config(1_000, RngSeed::Random))]
    #[test]
    fn small_documents_are_as_the_model_says_for_fresh_seeds(
        sequential 1..100 => Documents<SMALL>
    );
}

prop_state_machine! {
    #![proptest_config(config(300, RngSeed::Fixed(1)))]
    #[test]
    fn wide_documents_are_as_the_model_says(
        sequential 1..60 => Documents<WIDE>
    );
}

prop_state_machine! {
    #![proptest_config(config(300, RngSeed::Random))]
    #[test]
    fn wide_documents_are_as_the_model_says_for_fresh_seeds(
        sequential 1..60 => Documents<WIDE>
    );
}

prop_state_machine! {
    #![proptest_config(config(200, RngSeed::Fixed(1)))]
    #[test]
    fn large_documents_are_as_the_model_says(
        sequential 1..30 => Documents<LARGE>
    );
}

prop_state_machine! {
    #![proptest_config(config(200, RngSeed::Random))]
    #[test]
    fn large_documents_are_as_the_model_says_for_fresh_seeds(
        sequential 1..30 => Documents<LARGE>
    );
}
