//! A database on a machine that loses power, a device that fails or is full, and processes that are
//! killed: what the suites with a life of their own have in common.

use std::collections::BTreeSet;
use std::sync::Arc;

use duramen::{Database, Error, ErrorKind, Micros, Options};

use crate::expectation::Check;
use crate::oracle::said;
use crate::{
    FaultKind, FaultPlan, Operation, PowerLoss, Profile, Random, SimulatedClock, SimulatedDevice,
};

const CRASH_HORIZON: u64 = 400;
const FAULT_HORIZON: u64 = 60;
/// Noon of a day in 2026.
const START: Micros = Micros(1_780_000_000_000_000);
const FAULTS: [FaultKind; 5] = [
    FaultKind::Fail(Operation::Write),
    FaultKind::Fail(Operation::Read),
    FaultKind::Fail(Operation::Sync),
    FaultKind::Fail(Operation::Rename),
    FaultKind::Full,
];

/// The device, the clock, and what happens to them.
pub(super) struct Machine {
    pub(super) device: SimulatedDevice,
    pub(super) clock: SimulatedClock,
    pub(super) random: Random,
    checkpoint_journal_bytes: usize,
    pub(super) is_faulty: bool,
    /// Whether the last restart kept what the operating system had.
    pub(super) was_killed: bool,
    pub(super) seen: BTreeSet<&'static str>,
    pub(super) compactions: u64,
}

/// Why a step came to nothing.
pub(super) enum Stop {
    /// Whoever wanted it begins again.
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

impl Machine {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let profile = Profile::random(&mut random);
        Self {
            device: SimulatedDevice::new(random.bits(), profile),
            clock: SimulatedClock::new(START),
            checkpoint_journal_bytes: random.choose(&[256, 1 << 10, 8 << 10]),
            random,
            is_faulty: false,
            was_killed: true,
            seen: BTreeSet::new(),
            compactions: 0,
        }
    }

    pub(super) fn open(&self) -> Check<Database> {
        let options = Options {
            checkpoint_journal_bytes: self.checkpoint_journal_bytes,
            memory_bytes: 256 << 10,
            background: false,
            clock: Arc::new(self.clock.clone()),
            ..Options::default()
        };
        said("open", Database::open_device(Arc::new(self.device.clone()), options))
    }

    /// Draws what goes wrong in this life, if anything.
    pub(super) fn plan_fault(&mut self) {
        let fault = self.random.below(4);
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

    /// What an error means for who got it.
    pub(super) fn stop(&self, error: &Error) -> Stop {
        match error.kind() {
            _ if self.device.is_off() => Stop::Over,
            ErrorKind::Io | ErrorKind::Full if self.is_faulty => Stop::Again,
            ErrorKind::Poisoned | ErrorKind::Unknown if self.is_faulty => Stop::Over,
            kind => Stop::Wrong(format!("failed with {}: {error}", kind.name())),
        }
    }

    /// What cannot be read is wrong unless the device is.
    pub(super) fn unread(&self, read: Check) -> Result<(), Stop> {
        match read {
            _ if self.device.is_off() => Err(Stop::Over),
            Err(_) if self.is_faulty => Err(Stop::Again),
            read => Ok(read?),
        }
    }

    /// The process or the machine goes down, or the database is closed; the device works again.
    /// Whether it was closed, so that all that was acknowledged is durable.
    pub(super) fn end(&mut self, db: Database) -> bool {
        self.compactions += db.counters().compactions;
        self.device.repair();
        (self.was_killed, self.is_faulty) = (true, false);
        if !self.device.is_off() && self.random.one_in(4) && db.close().is_ok() {
            // A crash that was planned and did not come is none in the next life.
            self.device.crash_at(u64::MAX);
            self.seen.insert("close");
            return true;
        }
        if !self.device.is_off() && self.random.one_in(2) {
            self.seen.insert("kill");
            self.device = self.device.kill();
            return false;
        }
        self.seen.insert("power loss");
        self.device.power_off();
        let loss = PowerLoss::random(&mut self.random);
        self.device = self.device.power_loss(loss, &mut self.random);
        self.was_killed = false;
        false
    }
}
