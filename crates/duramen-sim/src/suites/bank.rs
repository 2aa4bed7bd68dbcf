//! Suite 14: money goes between accounts in several documents, by writers whose steps interleave,
//! on a device that loses power, fails or is full, and in processes that are killed.
//!
//! Invariants:
//! - the sum of all balances is the same in every snapshot and at every commit;
//! - of each writer's transfers those that were acknowledged are counted, and none twice.

mod audit;
mod writer;

use std::collections::BTreeSet;
use std::sync::Arc;

use duramen::{
    CommitOptions, Database, DatabaseSnapshot, Durability, Error, ErrorKind, Micros, Options,
};

use crate::expectation::Check;
use crate::oracle::said;
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};
use crate::{
    FaultKind, FaultPlan, Operation, PowerLoss, Profile, Random, SimulatedClock, SimulatedDevice,
};
use audit::{audit, counters, total};
use writer::{Accounts, Writer};

/// The documents with balances, and the one that counts transfers.
const ACCOUNTS: [&str; 4] = ["accounts/ann", "accounts/bob", "accounts/cy", "accounts/di"];
const COUNTERS: &str = "transfers";
const WRITERS: usize = 4;
const SUM: i64 = 2_000;
const ACCOUNT: &str = r#"{"main":300,"saved":200}"#;
const NO_TRANSFERS: &str = "[0,0,0,0]";
const LIVES: u64 = 3;
const STEPS: u64 = 160;
const CRASH_HORIZON: u64 = 400;
const FAULT_HORIZON: u64 = 60;
/// Snapshots that stay open at the most.
const SNAPSHOTS_MAX: usize = 4;
/// Noon of a day in 2026.
const START: Micros = Micros(1_780_000_000_000_000);
const DURABILITIES: [Durability; 3] =
    [Durability::Sync, Durability::Interval(5), Durability::Interval(10_000)];
const FAULTS: [FaultKind; 5] = [
    FaultKind::Fail(Operation::Write),
    FaultKind::Fail(Operation::Read),
    FaultKind::Fail(Operation::Sync),
    FaultKind::Fail(Operation::Rename),
    FaultKind::Full,
];

/// So many rounds.
pub(super) fn suite(count: u64, fresh: u64) -> Report {
    run(Suite::new("bank"), &super::seeds(count, fresh), &|seed| {
        super::Replay::Bank { seed }.round()
    })
}

/// A bank, its device, and what its writers know.
struct Bank {
    device: SimulatedDevice,
    clock: SimulatedClock,
    random: Random,
    checkpoint_journal_bytes: usize,
    /// Transfers of each writer that a power loss cannot take, and those that were acknowledged.
    durable: [u64; WRITERS],
    acknowledged: [u64; WRITERS],
    /// The writer whose transfer has no answer.
    under_way: Option<usize>,
    is_faulty: bool,
    /// Whether the last restart kept what the operating system had.
    was_killed: bool,
    seen: BTreeSet<&'static str>,
    compactions: u64,
}

/// Why a step came to nothing.
enum Stop {
    /// This writer begins again.
    Again,
    /// Nobody goes on until the database is reopened.
    Over,
    /// The engine is wrong.
    Wrong(String),
}

impl From<String> for Stop {
    fn from(what: String) -> Self {
        Self::Wrong(what)
    }
}

/// The round of a seed.
pub(super) fn round(seed: u64) -> Check<Tally> {
    let mut bank = Bank::new(seed);
    for life in 0..LIVES {
        bank.is_faulty = false;
        let fault = bank.random.below(4);
        let db = bank.open()?;
        if life == 0 {
            found(&db)?;
        }
        bank.plan_fault(fault);
        bank.live(&db)?;
        bank.compactions += db.counters().compactions;
        bank.end(db);
    }
    let db = bank.open()?;
    let report = said("check", db.check())?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("check found {}: {}", finding.place, finding.message));
    }
    let trace = bank.device.trace();
    let Bank { compactions, seen, .. } = bank;
    Ok(Tally { losses: LIVES, compactions, seen, trace, ..Tally::default() })
}

impl Bank {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0xba_4c);
        let profile = Profile::random(&mut random);
        Self {
            device: SimulatedDevice::new(random.bits(), profile),
            clock: SimulatedClock::new(START),
            checkpoint_journal_bytes: random.choose(&[256, 1 << 10, 8 << 10]),
            random,
            durable: [0; WRITERS],
            acknowledged: [0; WRITERS],
            under_way: None,
            is_faulty: false,
            was_killed: true,
            seen: BTreeSet::new(),
            compactions: 0,
        }
    }

    /// Opens the bank and looks into its books.
    fn open(&mut self) -> Check<Database> {
        let options = Options {
            checkpoint_journal_bytes: self.checkpoint_journal_bytes,
            memory_bytes: 256 << 10,
            background: false,
            clock: Arc::new(self.clock.clone()),
            ..Options::default()
        };
        let db = said("open", Database::open_device(Arc::new(self.device.clone()), options))?;
        if said("stats", db.stats())?.sequence.0 == 0 {
            return Ok(db);
        }
        audit(&db)?;
        let found = counters(&db.snapshot())?;
        for (writer, &found) in found.iter().enumerate() {
            let least =
                if self.was_killed { self.acknowledged[writer] } else { self.durable[writer] };
            let most = self.acknowledged[writer] + u64::from(self.under_way == Some(writer));
            if found < least || found > most {
                return Err(format!(
                    "writer {writer} made {found} transfers, expected {least} to {most}"
                ));
            }
        }
        (self.durable, self.acknowledged, self.under_way) = (found, found, None);
        Ok(db)
    }

    fn plan_fault(&mut self, fault: u64) {
        let nth = 1 + self.random.below(FAULT_HORIZON);
        match fault {
            0 | 1 => self.device.crash_at(self.device.changes() + nth * CRASH_HORIZON / 60),
            2 => {}
            _ => {
                let plan = FaultPlan::new(self.random.choose(&FAULTS), nth);
                let plan = if self.random.one_in(2) { plan.sticky() } else { plan };
                self.device.fail(plan);
                self.is_faulty = true;
                self.seen.insert("fault");
            }
        }
    }

    /// Writers take turns until they are done or something is final.
    fn live(&mut self, db: &Database) -> Check {
        let mut writers: Vec<Writer> = (0..WRITERS).map(|_| Writer::Idle).collect();
        let mut snapshots: Vec<(DatabaseSnapshot, [u64; WRITERS])> = Vec::new();
        for _ in 0..STEPS {
            self.clock.forward(1_000);
            let done = match self.random.below(24) {
                0 => self.settle(db.checkpoint()),
                1 => self.settle(db.flush()),
                2 if self.random.one_in(4) => {
                    self.settle(db.compact(&mut |_, _| std::ops::ControlFlow::Continue(())))
                }
                3 => self.look(db, &mut snapshots),
                _ => self.step(db, &mut writers),
            };
            match done {
                Ok(()) | Err(Stop::Again) => {}
                Err(Stop::Over) => break,
                Err(Stop::Wrong(what)) => return Err(what),
            }
        }
        Ok(())
    }

    /// The step of one writer.
    fn step(&mut self, db: &Database, writers: &mut [Writer]) -> Result<(), Stop> {
        let at = self.random.index(WRITERS);
        let taken: BTreeSet<usize> = writers.iter().flat_map(Writer::holds).collect();
        let writer = std::mem::replace(&mut writers[at], Writer::Idle);
        writers[at] = match writer {
            Writer::Idle => {
                let accounts = Accounts::draw(&mut self.random);
                self.begin(db, accounts, &taken)?
            }
            Writer::Read { accounts, .. } if accounts.any_of(&taken) => Writer::Idle,
            Writer::Read { accounts, balances, revisions } => {
                self.transfer_as_read(db, at, (accounts, balances, revisions))?;
                Writer::Idle
            }
            Writer::Open { accounts, transaction } => {
                self.transfer(at, accounts, transaction)?;
                Writer::Idle
            }
        };
        Ok(())
    }

    /// Reads a snapshot and those before it: each says what it said.
    fn look(
        &mut self,
        db: &Database,
        snapshots: &mut Vec<(DatabaseSnapshot, [u64; WRITERS])>,
    ) -> Result<(), Stop> {
        let now = db.snapshot();
        let read = total(&now).and_then(|sum| counters(&now).map(|counters| (sum, counters)));
        let Ok((sum, counted)) = read else { return self.unread(read.map(drop)) };
        if sum != SUM || counted != self.acknowledged {
            return Err(Stop::Wrong(format!(
                "a snapshot has {sum} in all and {counted:?} transfers, expected {:?}",
                self.acknowledged
            )));
        }
        if snapshots.len() == SNAPSHOTS_MAX {
            let at = self.random.index(SNAPSHOTS_MAX);
            snapshots.remove(at);
        }
        snapshots.push((now, counted));
        for (snapshot, then) in snapshots.iter() {
            let read = total(snapshot).and_then(|sum| Ok((sum, counters(snapshot)?)));
            match read {
                Ok(found) if found == (SUM, *then) => {}
                Ok(found) => {
                    let sequence = snapshot.sequence();
                    return Err(Stop::Wrong(format!(
                        "the snapshot at {sequence} had {then:?}, now it is {found:?}"
                    )));
                }
                Err(what) => return self.unread(Err(what)),
            }
        }
        self.seen.insert("look");
        Ok(())
    }

    /// What cannot be read is wrong unless the device is.
    fn unread(&self, read: Check) -> Result<(), Stop> {
        match read {
            _ if self.device.is_off() => Err(Stop::Over),
            Err(_) if self.is_faulty => Err(Stop::Again),
            read => Ok(read?),
        }
    }

    /// After this everything acknowledged is durable.
    fn settle(&mut self, result: duramen::Result<()>) -> Result<(), Stop> {
        result.map_err(|error| self.stop(&error))?;
        self.durable = self.acknowledged;
        Ok(())
    }

    fn stop(&self, error: &Error) -> Stop {
        match error.kind() {
            _ if self.device.is_off() => Stop::Over,
            ErrorKind::Io | ErrorKind::Full if self.is_faulty => Stop::Again,
            ErrorKind::Poisoned | ErrorKind::Unknown if self.is_faulty => Stop::Over,
            kind => Stop::Wrong(format!("failed with {}: {error}", kind.name())),
        }
    }

    /// The process or the machine goes down, or the database is closed; the device works again.
    fn end(&mut self, db: Database) {
        self.device.repair();
        self.was_killed = true;
        if !self.device.is_off() && self.random.one_in(4) && db.close().is_ok() {
            // A crash that was planned and did not come is none in the next life.
            self.device.crash_at(u64::MAX);
            self.seen.insert("close");
            self.durable = self.acknowledged;
            return;
        }
        if !self.device.is_off() && self.random.one_in(2) {
            self.seen.insert("kill");
            self.device = self.device.kill();
            return;
        }
        self.seen.insert("power loss");
        self.device.power_off();
        let loss = PowerLoss::random(&mut self.random);
        self.device = self.device.power_loss(loss, &mut self.random);
        self.was_killed = false;
    }
}

/// Fills the accounts, durably and with the power on.
fn found(db: &Database) -> Check {
    let mut transaction = db.transaction();
    for account in ACCOUNTS {
        said("put", transaction.put(account, ACCOUNT.as_bytes()))?;
    }
    said("put", transaction.put(COUNTERS, NO_TRANSFERS.as_bytes()))?;
    let options = CommitOptions { durability: Some(Durability::Sync), ..CommitOptions::default() };
    said("commit", transaction.commit(&options)).map(drop)
}
