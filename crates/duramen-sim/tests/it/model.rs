//! The engine against a naive model that keeps every revision in full.

mod cases;
mod compare;
mod paths;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::{CommitOptions, Database, Micros, Options, Result, Revision};
use duramen_sim::model::Model;
use duramen_sim::operation::{Operation, Told};
use duramen_sim::plan::{Frame, Plan, Step};
use duramen_sim::samples::Scale;
use duramen_sim::{Coverage, Random, SimulatedClock};
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

/// What is done next; the rest of the choice follows from the seed and the model.
#[derive(Debug, Clone)]
pub(crate) enum Transition {
    Change(u64),
    Transact(u64),
    Read(u64),
    ReadBeside(u64),
    Checkpoint,
    Compact,
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
        prop_oneof![Just(256 << 20), Just(16 << 10), Just(64 << 10)]
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
            1 => Just(Transition::Compact),
            1 => any::<bool>().no_shrink().prop_map(|checkpoint| Transition::Reopen { checkpoint }),
        ]
        .boxed()
    }

    fn apply(mut state: Reference, transition: &Transition) -> Reference {
        state.plan = match *transition {
            Transition::Change(seed) => Some(Plan::call(&state.model, seed)),
            Transition::Transact(seed) => Some(Plan::transaction(&state.model, seed)),
            _ => None,
        };
        if let Some(plan) = &state.plan {
            state.model.commit(plan);
        }
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
    /// The timestamp of the revisions of each commit.
    times: BTreeMap<u64, Micros>,
    coverage: Coverage,
    script: Script,
}

thread_local! {
    /// What the cases of this thread's test have done.
    static COVERAGE: RefCell<Coverage> = RefCell::default();
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
            Transition::Compact => {
                subject.db().compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
                compare::compacted(subject.db(), &reference.model);
            }
            Transition::Reopen { checkpoint } => subject.reopen(checkpoint),
        }
        subject
    }

    fn teardown(subject: Subject, reference: Reference) {
        compare::everything(subject.db(), &reference.model, &subject.times);
        let report = subject.db().check().unwrap();
        assert!(report.is_clean(), "{report:?}");
        COVERAGE.with_borrow_mut(|coverage| coverage.add(&subject.coverage));
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
            coverage: Coverage::default(),
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
        let given = plan.timestamp(|commit| self.times.get(&commit).copied());
        let options = plan.options(given, None);
        self.coverage.drawn(plan);
        let result = match plan.frame {
            Frame::Call { .. } => self.call(&plan.steps[0], &options),
            Frame::Commit | Frame::Rollback => self.transact(plan, &options),
        };
        let result = result.map_err(|error| error.kind());
        let revisions = result.as_ref().map(|told| told.revisions.clone());
        assert_eq!(revisions.map_err(|kind| *kind), plan.expected, "{plan:#?}");
        if let Ok(told) = result {
            let sequence = if plan.is_commit() { model.sequence() } else { 0 };
            assert_eq!(told.sequence, sequence, "{plan:#?}");
            self.times.extend(given.or(told.timestamp).map(|time| (sequence, time)));
        }
        for step in &plan.steps {
            compare::head(self.db(), model, &step.name);
        }
        self.coverage.carried_out(plan);
    }

    /// One change outside a transaction.
    fn call(&self, step: &Step, options: &CommitOptions) -> Result<Told> {
        if step.operation == Operation::Create {
            let document = self.db().create_document(&step.name)?;
            assert_eq!(document.head_revision().unwrap(), Revision(0));
            let sequence = self.db().snapshot().sequence().0;
            return Ok(Told { sequence, ..Told::default() });
        }
        step.operation.call(&step.name, self.db(), options)
    }

    fn transact(&self, plan: &Plan, options: &CommitOptions) -> Result<Told> {
        let mut transaction = self.db().transaction();
        for step in &plan.steps {
            let result = step.operation.stage(&step.name, &mut transaction);
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
        if plan.frame == Frame::Rollback {
            transaction.rollback();
            return Ok(Told::default());
        }
        transaction.commit(options).map(Told::from)
    }
}
