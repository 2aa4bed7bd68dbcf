//! Suite 14: money goes between accounts in several documents, by writers whose steps interleave,
//! on a device that loses power, fails or is full, and in processes that are killed.
//!
//! Invariants:
//! - the sum of all balances is the same in every snapshot and at every commit;
//! - of each writer's transfers those that were acknowledged are counted, and none twice.

mod audit;
mod writer;

use std::collections::BTreeSet;

use duramen::{CommitOptions, Database, DatabaseSnapshot, Durability};

use super::machine::{Machine, Stop};
use crate::expectation::Check;
use crate::oracle::said;
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};
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
/// Snapshots that stay open at the most.
const SNAPSHOTS_MAX: usize = 4;
const DURABILITIES: [Durability; 3] =
    [Durability::Sync, Durability::Interval(5), Durability::Interval(10_000)];
/// So many rounds.
pub(super) fn suite(count: u64, fresh: u64) -> Report {
    run(Suite::new("bank"), &super::seeds(count, fresh), &|seed| {
        super::Replay::Bank { seed }.round()
    })
}

/// A bank, and what its writers know.
struct Bank {
    machine: Machine,
    /// Transfers of each writer that a power loss cannot take, and those that were acknowledged.
    durable: [u64; WRITERS],
    acknowledged: [u64; WRITERS],
    /// The writer whose transfer has no answer.
    under_way: Option<usize>,
}

/// The round of a seed.
pub(super) fn round(seed: u64) -> Check<Tally> {
    let nothing = [0; WRITERS];
    let machine = Machine::new(seed ^ 0xba_4c);
    let mut bank = Bank { machine, durable: nothing, acknowledged: nothing, under_way: None };
    for life in 0..LIVES {
        let db = bank.open()?;
        if life == 0 {
            found(&db)?;
        }
        bank.machine.plan_fault();
        bank.live(&db)?;
        if bank.machine.end(db) {
            bank.durable = bank.acknowledged;
        }
    }
    let db = bank.open()?;
    let report = said("check", db.check())?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("check found {}: {}", finding.place, finding.message));
    }
    let trace = bank.machine.device.trace();
    let Machine { compactions, seen, .. } = bank.machine;
    Ok(Tally { losses: LIVES, compactions, seen, trace, ..Tally::default() })
}

impl Bank {
    /// Opens the bank and looks into its books.
    fn open(&mut self) -> Check<Database> {
        let db = self.machine.open()?;
        if said("stats", db.stats())?.sequence.0 == 0 {
            return Ok(db);
        }
        audit(&db)?;
        let found = counters(&db.snapshot())?;
        let is_certain = self.machine.was_killed;
        for (writer, &found) in found.iter().enumerate() {
            let least = if is_certain { self.acknowledged[writer] } else { self.durable[writer] };
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

    /// Writers take turns until they are done or something is final.
    fn live(&mut self, db: &Database) -> Check {
        let mut writers: Vec<Writer> = (0..WRITERS).map(|_| Writer::Idle).collect();
        let mut snapshots: Vec<(DatabaseSnapshot, [u64; WRITERS])> = Vec::new();
        for _ in 0..STEPS {
            self.machine.clock.forward(1_000);
            let done = match self.machine.random.below(24) {
                0 => self.settle(db.checkpoint()),
                1 => self.settle(db.flush()),
                2 if self.machine.random.one_in(4) => {
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
        let at = self.machine.random.index(WRITERS);
        let taken: BTreeSet<usize> = writers.iter().flat_map(Writer::holds).collect();
        let writer = std::mem::replace(&mut writers[at], Writer::Idle);
        writers[at] = match writer {
            Writer::Idle => {
                let accounts = Accounts::draw(&mut self.machine.random);
                self.begin(db, accounts, &taken)?
            }
            Writer::Read { accounts, .. } if accounts.any_of(&taken) => Writer::Idle,
            Writer::Read { accounts, balances, revisions } => {
                self.transfer_as_read(db, at, (accounts, balances, revisions))?;
                Writer::Idle
            }
            Writer::Open { accounts, transaction } => {
                self.transfer(at, accounts, *transaction)?;
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
        let Ok((sum, counted)) = read else { return self.machine.unread(read.map(drop)) };
        if sum != SUM || counted != self.acknowledged {
            return Err(Stop::Wrong(format!(
                "a snapshot has {sum} in all and {counted:?} transfers, expected {:?}",
                self.acknowledged
            )));
        }
        if snapshots.len() == SNAPSHOTS_MAX {
            let at = self.machine.random.index(SNAPSHOTS_MAX);
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
                Err(what) => return self.machine.unread(Err(what)),
            }
        }
        self.machine.seen.insert("look");
        Ok(())
    }

    /// After this everything acknowledged is durable.
    fn settle(&mut self, result: duramen::Result<()>) -> Result<(), Stop> {
        result.map_err(|error| self.machine.stop(&error))?;
        self.durable = self.acknowledged;
        Ok(())
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
