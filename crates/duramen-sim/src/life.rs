//! A database on a simulated device from one power loss to the next, beside its model.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::limits::ROOM_WAIT_COMMITS_MAX;
use duramen::{Clock, CommitOptions, Database, Durability, Error, ErrorKind, Micros, Options};

use crate::coverage::{Chore, Coverage};
use crate::expectation::{Check, Expectation, Pending};
use crate::json::Json;
use crate::operation::Told;
use crate::oracle::{self, Loss, said};
use crate::plan::{Frame, Plan, Stop, Time};
use crate::random::mix;
use crate::samples::Scale;
use crate::{PowerLoss, Profile, Random, SimulatedClock, SimulatedDevice};

/// A run: its device, its clock, its model and what it has seen.
pub(crate) struct Life {
    pub(crate) device: SimulatedDevice,
    pub(crate) expectation: Expectation,
    pub(crate) random: Random,
    pub(crate) coverage: Coverage,
    pub(crate) seen: BTreeSet<&'static str>,
    /// Compactions in all its lives.
    pub(crate) compactions: u64,
    /// Those that the database at hand has told of.
    counted: u64,
    /// Whether errors are expected while the power is on.
    pub(crate) is_faulty: bool,
    clock: SimulatedClock,
    loss: Loss,
    trace: u64,
    memory_bytes: usize,
    checkpoint_journal_bytes: usize,
}

/// Why a script does not go on.
enum Trouble {
    /// The power is gone, or the journal takes no more commits.
    Over,
    /// A planned fault struck; nothing of the step is kept.
    Fault,
    /// The engine is wrong.
    Wrong(String),
}

type Step<T = ()> = Result<T, Trouble>;

impl From<String> for Trouble {
    fn from(what: String) -> Self {
        Self::Wrong(what)
    }
}

/// Noon of a day in 2026.
const START: Micros = Micros(1_780_000_000_000_000);
const DURABILITIES: [Durability; 4] =
    [Durability::Sync, Durability::Sync, Durability::Interval(5), Durability::Interval(10_000)];
/// Mostly small: many short rounds tell more than some long ones.
const SCALES: [Scale; 8] = [
    Scale::SMALL,
    Scale::SMALL,
    Scale::SMALL,
    Scale::SMALL,
    Scale::SMALL,
    Scale::SMALL,
    Scale::WIDE,
    Scale::HEAVY,
];

impl Life {
    /// An empty disk, of a profile that the seed draws unless it is given.
    pub(crate) fn new(seed: u64, profile: Option<Profile>) -> Self {
        let mut random = Random::new(seed);
        let drawn = Profile::random(&mut random);
        Self {
            device: SimulatedDevice::new(random.bits(), profile.unwrap_or(drawn)),
            expectation: Expectation::new(random.choose(&SCALES)),
            coverage: Coverage::default(),
            seen: BTreeSet::new(),
            compactions: 0,
            counted: 0,
            is_faulty: false,
            clock: SimulatedClock::new(START),
            loss: Loss::Process,
            trace: 0,
            memory_bytes: random.choose(&[256 << 10, 1 << 20, 16 << 20]),
            checkpoint_journal_bytes: random.choose(&[64, 64, 512, 4 << 10, 1 << 20]),
            random,
        }
    }

    /// The same, in which no document drops anything of its history.
    pub(crate) fn keeping_all(self) -> Self {
        Self { expectation: self.expectation.keeping_all(), ..self }
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            memory_bytes: self.memory_bytes,
            checkpoint_journal_bytes: self.checkpoint_journal_bytes,
            background: false,
            clock: Arc::new(self.clock.clone()),
            ..Options::default()
        }
    }

    /// Opens the database; `None` if the power went or a planned fault struck.
    pub(crate) fn open(&mut self) -> Check<Option<Database>> {
        match Database::open_device(Arc::new(self.device.clone()), self.options()) {
            Ok(db) => {
                self.counted = 0;
                self.count(&db);
                Ok(Some(db))
            }
            Err(error) => match self.trouble("open", &error) {
                Trouble::Wrong(what) => Err(what),
                Trouble::Over | Trouble::Fault => Ok(None),
            },
        }
    }

    /// Runs random transactions until they are done, the power goes or a fault is final. The
    /// database is closed then, or left as it is.
    pub(crate) fn play(&mut self, db: Database, transactions: u64) -> Check {
        let mut open = Some(db);
        for _ in 0..transactions {
            let Some(db) = open.take() else { return Ok(()) };
            match self.step(db) {
                Ok(db) | Err((db, Trouble::Fault)) => open = db,
                Err((_, Trouble::Over)) => return Ok(()),
                Err((_, Trouble::Wrong(what))) => return Err(what),
            }
        }
        if let Some(db) = open {
            if !self.random.one_in(3) {
                self.device.power_off();
            } else if let Err(Trouble::Wrong(what)) = self.close(db) {
                return Err(what);
            }
        }
        Ok(())
    }

    /// One more transaction, with the power on.
    pub(crate) fn advance(&mut self, db: &Database) -> Check {
        let done = self.transact(db);
        self.went_on(db, done)
    }

    /// Merges everything, with the power on.
    pub(crate) fn compact_now(&mut self, db: &Database) -> Check {
        let done = self.compact(db);
        self.went_on(db, done)
    }

    fn went_on(&mut self, db: &Database, done: Step) -> Check {
        self.count(db);
        match done {
            Ok(()) | Err(Trouble::Fault) => Ok(()),
            Err(Trouble::Wrong(what)) => Err(what),
            Err(Trouble::Over) => Err("the power went without a crash".to_owned()),
        }
    }

    /// One step of a script, with the database if it is still open.
    fn step(&mut self, db: Database) -> Result<Option<Database>, (Option<Database>, Trouble)> {
        let micros = i64::try_from(self.random.below(20_000)).unwrap_or(0);
        if self.random.one_in(10) {
            self.clock.back(micros);
        } else {
            self.clock.forward(micros);
        }
        let done = match self.random.below(24) {
            0 => self.settle(Chore::Flush, db.flush()),
            1 => self.settle(Chore::Checkpoint, db.checkpoint()),
            2 => self.read_beside(),
            3 => return self.reopen(db).map_err(|trouble| (None, trouble)),
            4..7 => self.compact(&db),
            _ => self.transact(&db),
        };
        self.count(&db);
        match done {
            Ok(()) => Ok(Some(db)),
            Err(trouble) => Err((Some(db), trouble)),
        }
    }

    /// Counts the compactions of the database at hand, those of its own accord as well.
    fn count(&mut self, db: &Database) {
        let counted = db.counters().compactions;
        self.compactions += counted - self.counted;
        self.counted = counted;
    }

    /// After this everything acknowledged is durable.
    fn settle(&mut self, chore: Chore, result: duramen::Result<()>) -> Step {
        self.coverage.begun(chore);
        self.seen.insert(chore.name());
        result.map_err(|error| self.trouble(chore.name(), &error))?;
        self.coverage.done(chore);
        self.expectation.synced();
        Ok(())
    }

    /// Merges everything: what documents do not retain is gone then.
    fn compact(&mut self, db: &Database) -> Step {
        let compacted = db.compact(&mut |_, _| ControlFlow::Continue(()));
        self.settle(Chore::Compact, compacted)?;
        let compared = oracle::compacted(&mut self.expectation, db);
        self.read_all(compared)
    }

    fn reopen(&mut self, db: Database) -> Step<Option<Database>> {
        self.coverage.begun(Chore::Reopen);
        self.close(db)?;
        let Some(db) = self.open()? else { return Err(Trouble::Over) };
        self.compare(&db)?;
        self.coverage.done(Chore::Reopen);
        Ok(Some(db))
    }

    fn close(&mut self, db: Database) -> Step {
        let closed = db.close();
        self.settle(Chore::Close, closed)
    }

    /// Another process reads beside the writer.
    fn read_beside(&mut self) -> Step {
        self.coverage.begun(Chore::ReadBeside);
        self.seen.insert(Chore::ReadBeside.name());
        let options = Options { read_only: true, ..self.options() };
        let reader = Database::open_device(Arc::new(self.device.clone()), options);
        let reader = reader.map_err(|error| self.trouble("open to read", &error))?;
        self.compare(&reader)?;
        self.coverage.done(Chore::ReadBeside);
        Ok(())
    }

    /// Compares, unless reads fail as planned.
    fn compare(&mut self, db: &Database) -> Step {
        let compared = oracle::compare(&mut self.expectation, db);
        self.read_all(compared)
    }

    /// What came of reading much: what cannot be read now says nothing.
    fn read_all(&self, compared: Check) -> Step {
        if self.device.is_off() {
            return Err(Trouble::Over);
        }
        match compared {
            Err(_) if self.is_faulty => Err(Trouble::Fault),
            compared => Ok(compared?),
        }
    }

    /// Draws a change and does it.
    fn transact(&mut self, db: &Database) -> Step {
        let plan = Plan::any(self.expectation.model(), self.random.bits());
        let durability = self.random.choose(&DURABILITIES);
        let given = self.expectation.timestamp(&plan, self.clock.now());
        if plan.needs_timestamp() && given.is_none() {
            return Ok(());
        }
        self.coverage.drawn(&plan);
        self.saw(&plan, durability);
        let options = plan.options(given, Some(durability));
        let pending = Pending { plan, given };
        match pending.plan.carry_out(db, &options) {
            Ok(None) => Ok(()),
            Ok(Some(told)) => self.acknowledged(&pending, &told, durability),
            Err(Stop::Wrong(what)) => Err(what.into()),
            Err(Stop::Step(step, error)) => Err(self.trouble(&step, &error)),
            Err(Stop::Commit(error)) => self.failed(db, pending, &error),
        }
    }

    /// A commit or call failed: the commit is under way if nobody knows.
    fn failed(&mut self, db: &Database, pending: Pending, error: &Error) -> Step {
        let trouble = self.trouble(&format!("{:?}", pending.plan), error);
        let is_open = self.device.is_off() || error.kind() == ErrorKind::Unknown;
        if is_open && pending.plan.is_commit() {
            self.expectation.under_way = Some(pending);
        }
        if matches!(trouble, Trouble::Wrong(_)) || self.device.is_off() {
            return Err(trouble);
        }
        self.check_poison(db, error.kind())
    }

    /// What kind of commit there is, for the record.
    fn saw(&mut self, plan: &Plan, durability: Durability) {
        self.seen.insert(match plan.frame {
            Frame::Call { .. } => "call",
            Frame::Commit => "transaction",
            Frame::Rollback => "rollback",
        });
        self.seen.insert(match durability {
            Durability::Sync => "sync commit",
            Durability::Interval(_) => "interval commit",
        });
        self.seen.insert(match &plan.expected {
            Ok(revisions) if revisions.len() > 1 => "commit of several documents",
            Ok(_) => "commit",
            Err(_) => "refused commit",
        });
        if plan.time != Time::Now {
            self.seen.insert("given timestamp");
        }
    }

    fn acknowledged(&mut self, pending: &Pending, told: &Told, durability: Durability) -> Step {
        let plan = &pending.plan;
        let next = self.expectation.model().sequence() + 1;
        if plan.is_commit() && told.sequence != next {
            return Err(format!("commit {next} is said to be {}", told.sequence).into());
        }
        self.expectation.commit(pending, told.timestamp);
        self.coverage.carried_out(plan);
        if durability == Durability::Sync && plan.is_commit() {
            self.expectation.synced();
        }
        Ok(())
    }

    /// After a failed write or sync writes are refused for good, though the device works again,
    /// and reads go on. A commit that found no room before it was written is none of that; some
    /// more may be refused before room is looked for again.
    fn check_poison(&mut self, db: &Database, kind: ErrorKind) -> Step {
        self.device.repair();
        let plan = Plan::put(self.expectation.model(), "refused", &Json::Null);
        let pending = Pending { plan, given: None };
        let write = || pending.plan.carry_out(db, &CommitOptions::default());
        let mut refused = write();
        for _ in 0..ROOM_WAIT_COMMITS_MAX {
            let found_no_room = matches!(&refused, Err(Stop::Commit(error) | Stop::Step(_, error))
                if error.kind() == ErrorKind::Full);
            if kind != ErrorKind::Full || !found_no_room {
                break;
            }
            refused = write();
        }
        match refused {
            Err(Stop::Commit(error) | Stop::Step(_, error))
                if error.kind() == ErrorKind::Poisoned =>
            {
                self.seen.insert("poison");
            }
            // Only that commit was refused: the one after it went well.
            Ok(Some(told)) if matches!(kind, ErrorKind::Io | ErrorKind::Full) => {
                self.acknowledged(&pending, &told, Durability::Sync)?;
                return Err(Trouble::Fault);
            }
            other => return Err(format!("a write after a failed sync gave {other:?}").into()),
        }
        oracle::compare(&mut self.expectation, db)?;
        Err(Trouble::Over)
    }

    fn trouble(&self, what: &str, error: &Error) -> Trouble {
        if self.device.is_off() {
            return Trouble::Over;
        }
        match error.kind() {
            ErrorKind::Io | ErrorKind::Full if self.is_faulty => Trouble::Fault,
            ErrorKind::Poisoned | ErrorKind::Unknown if self.is_faulty => Trouble::Over,
            kind => Trouble::Wrong(format!("{what} failed with {}: {error}", kind.name())),
        }
    }

    /// The machine goes down and up again: what is left is drawn.
    pub(crate) fn restart(&mut self) {
        self.trace = mix(self.trace ^ self.device.trace());
        if self.random.one_in(8) {
            self.seen.insert("kill");
            self.device = self.device.kill();
            return;
        }
        let loss = PowerLoss::random(&mut self.random);
        self.seen.insert(match loss {
            PowerLoss::Clean => "clean loss",
            PowerLoss::Subset => "subset",
            PowerLoss::Reorder => "reorder",
            PowerLoss::Torn => "torn",
            PowerLoss::Prefix => "prefix",
            PowerLoss::Garbage => "garbage",
        });
        self.device = self.device.power_loss(loss, &mut self.random);
        self.loss = Loss::Power;
    }

    /// Opens, loses power at some change of that or right after, and restarts.
    pub(crate) fn crash_in_recovery(&mut self) -> Check {
        self.seen.insert("crash in recovery");
        self.device.crash_at(1 + self.random.below(30));
        if let Some(db) = self.open()? {
            if !self.device.is_off() {
                self.adopt(&db)?;
            }
            self.device.power_off();
        }
        self.restart();
        Ok(())
    }

    fn adopt(&mut self, db: &Database) -> Check {
        oracle::adopt(&mut self.expectation, db, self.loss)?;
        self.loss = Loss::Process;
        Ok(())
    }

    /// Opens without a crash; compares all, commits, opens once more and compares again.
    pub(crate) fn recover(&mut self) -> Check<Database> {
        let db = self.open()?.ok_or("the power went without a crash")?;
        self.adopt(&db)?;
        oracle::examine(&mut self.expectation, &db, &mut self.random)?;
        let written = self.transact(&db).and_then(|()| self.close(db));
        match written {
            Ok(()) => {}
            Err(Trouble::Wrong(what)) => return Err(format!("after recovery: {what}")),
            Err(Trouble::Over | Trouble::Fault) => return Err("recovered without power".to_owned()),
        }
        let db = self.open()?.ok_or("the power went without a crash")?;
        let examined = oracle::examine(&mut self.expectation, &db, &mut self.random);
        examined.map_err(|what| format!("after the second open: {what}"))?;
        said("flush", db.flush())?;
        Ok(db)
    }

    /// The same run on another image of its disk.
    pub(crate) fn after(&self, device: SimulatedDevice) -> Self {
        Self {
            device,
            expectation: self.expectation.clone(),
            coverage: Coverage::default(),
            random: self.random.clone(),
            seen: BTreeSet::new(),
            clock: self.clock.clone(),
            loss: Loss::Power,
            ..*self
        }
    }

    /// Opens without a crash and compares all.
    pub(crate) fn recover_once(&mut self) -> Check {
        let db = self.open()?.ok_or("the power went without a crash")?;
        self.adopt(&db)
    }

    /// A hash of everything that happened.
    pub(crate) fn trace(&self) -> u64 {
        mix(self.trace ^ self.device.trace())
    }
}
