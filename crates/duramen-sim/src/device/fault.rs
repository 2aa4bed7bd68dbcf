//! Which operation fails, and how.

use std::fmt;
use std::io;

/// What is done with a device. The counters and the faults go by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A directory is made.
    CreateDir,
    /// A file is made.
    Create,
    /// A file is opened.
    Open,
    /// A file is renamed.
    Rename,
    /// A file is removed.
    Remove,
    /// A directory is listed.
    List,
    /// A directory is synced.
    SyncDir,
    /// A lock is taken.
    Lock,
    /// A file is read.
    Read,
    /// A file is written.
    Write,
    /// A file is synced.
    Sync,
    /// A file is cut or grown.
    SetLen,
}

impl Operation {
    pub(super) const COUNT: usize = 12;

    /// Whether the operation changes the device, or what survives on it. Only these have a number:
    /// to lose power at a read gives what losing it at the next change gives.
    pub fn is_change(self) -> bool {
        !matches!(self, Self::Open | Self::List | Self::Read)
    }
}

/// One planned fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultPlan {
    /// What happens.
    pub kind: FaultKind,
    /// To which operation of the kind it happens, counted from when it was planned: 1 is the next.
    pub nth: u64,
    /// Whether it lasts. Damage on read ([`FaultKind::FlipBit`], [`FaultKind::StalePage`]) then
    /// stays on the medium, a full disk stays full until space is freed, every second operation is
    /// interrupted; anything else happens to every operation from the n-th on.
    pub sticky: bool,
    /// Only operations on paths that begin so are hit and counted.
    pub under: String,
}

/// What happens to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It fails with an input/output error. A write that fails may have written a part. After a
    /// sync that fails, what was not durable may never become so, though reads still show it.
    Fail(Operation),
    /// A growth fails because the disk is full.
    Full,
    /// A read returns fewer bytes than there are.
    ShortRead,
    /// A write takes fewer bytes than it was given.
    ShortWrite,
    /// A signal interrupts an operation before it did anything.
    Interrupt(Operation),
    /// A read returns one wrong bit.
    FlipBit,
    /// A read returns what stood in a page before it was last written. Versions are kept from when
    /// the fault is planned; a page without one was zeros.
    StalePage,
    /// A write that reports success lands on another page of the file, or nowhere.
    MisdirectedWrite,
}

impl FaultPlan {
    /// Hits the n-th operation of the kind once.
    pub fn new(kind: FaultKind, nth: u64) -> Self {
        Self { kind, nth, sticky: false, under: String::new() }
    }

    /// The same, lasting.
    #[must_use]
    pub fn sticky(self) -> Self {
        Self { sticky: true, ..self }
    }

    /// The same, only for paths that begin with `prefix`.
    #[must_use]
    pub fn under(self, prefix: impl Into<String>) -> Self {
        Self { under: prefix.into(), ..self }
    }
}

/// The power is off: every operation from a crash on fails with this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerOff;

impl fmt::Display for PowerOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the simulated device has no power")
    }
}

impl std::error::Error for PowerOff {}

impl From<PowerOff> for io::Error {
    fn from(off: PowerOff) -> Self {
        Self::other(off)
    }
}

/// A moment at which a fault may strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Before(Operation),
    Growth,
}

/// A fault that strikes now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strike {
    pub(super) kind: FaultKind,
    pub(super) sticky: bool,
}

/// The planned faults and how far each has counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults {
    armed: Vec<Armed>,
}

#[derive(Debug, Clone)]
struct Armed {
    plan: FaultPlan,
    seen: u64,
}

impl Faults {
    pub(super) fn arm(&mut self, plan: FaultPlan) {
        self.armed.push(Armed { plan, seen: 0 });
    }

    pub(super) fn clear(&mut self) {
        self.armed.clear();
    }

    /// Counts the moment in every plan it concerns; the first that is due strikes.
    pub(super) fn strike(&mut self, moment: Moment, path: &str) -> Option<Strike> {
        let mut strike = None;
        for Armed { plan, seen } in &mut self.armed {
            if plan.kind.moment() == moment && path.starts_with(&plan.under) {
                *seen += 1;
                if plan.is_due(*seen) {
                    strike = strike.or(Some(Strike { kind: plan.kind, sticky: plan.sticky }));
                }
            }
        }
        strike
    }
}

impl FaultPlan {
    fn is_due(&self, seen: u64) -> bool {
        let repeats = match self.kind {
            FaultKind::FlipBit | FaultKind::StalePage | FaultKind::Full => false,
            // Every second one, or a loop that tries again would never end.
            FaultKind::Interrupt(_) => self.sticky && seen.abs_diff(self.nth).is_multiple_of(2),
            _ => self.sticky,
        };
        seen == self.nth || (repeats && seen > self.nth)
    }
}

impl FaultKind {
    fn moment(self) -> Moment {
        match self {
            Self::Fail(operation) | Self::Interrupt(operation) => Moment::Before(operation),
            Self::ShortRead | Self::FlipBit | Self::StalePage => Moment::Before(Operation::Read),
            Self::ShortWrite | Self::MisdirectedWrite => Moment::Before(Operation::Write),
            Self::Full => Moment::Growth,
        }
    }
}
