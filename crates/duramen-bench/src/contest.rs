//! A subject in a run, with all that was observed of it.

use anyhow::Result;

use crate::allocations;
use crate::counters::Calls;
use crate::device::DeviceCalls;
use crate::sampling::Latencies;
use crate::stopwatch::Stopwatch;
use crate::subject::{DURAMEN, Journal, VersionedStore};

/// A store that takes part.
pub(crate) struct Contestant {
    /// The store.
    pub(crate) store: Box<dyn VersionedStore>,
    /// Single operations since they were last cleared.
    pub(crate) latencies: Latencies,
    /// What metered work took so far.
    pub(crate) costs: Costs,
}

/// What metered work took; `None` where nobody tells.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Costs {
    /// Read and write calls of the process that did the work.
    pub(crate) calls: Option<Calls>,
    /// Allocations of the measuring thread; of Duramen alone, as rivals allocate elsewhere.
    pub(crate) allocations: Option<u64>,
    /// Syncs and bytes of the journal.
    pub(crate) journal: Journal,
}

impl Contestant {
    /// A store without observations.
    pub(crate) fn new(store: Box<dyn VersionedStore>) -> Self {
        Self { store, latencies: Latencies::new(), costs: Costs::default() }
    }

    /// Runs work and adds what it took to the costs; returns the microseconds.
    pub(crate) fn metered(
        &mut self,
        work: impl FnOnce(&mut dyn VersionedStore, &mut Latencies) -> Result<()>,
    ) -> Result<f64> {
        let journal = self.store.journal()?;
        let process = self.store.process();
        let calls = process.and_then(Calls::of);
        let allocations = allocations::of_this_thread();
        let watch = Stopwatch::start();
        work(self.store.as_mut(), &mut self.latencies)?;
        let micros = watch.micros();
        let allocations = allocations::of_this_thread() - allocations;
        let calls = process.and_then(Calls::of).zip(calls).map(|(now, then)| now.since(then));
        let journal = since(self.store.journal()?, journal);
        let spent = Costs {
            calls,
            allocations: (self.store.subject() == DURAMEN).then_some(allocations),
            journal,
        };
        self.costs = self.costs.plus(spent);
        Ok(micros)
    }
}

impl Costs {
    fn plus(self, other: Self) -> Self {
        let journal = Journal {
            syncs: sum(self.journal.syncs, other.journal.syncs),
            bytes: sum(self.journal.bytes, other.journal.bytes),
            device: both(self.journal.device, other.journal.device, DeviceCalls::plus),
        };
        let calls = both(self.calls, other.calls, Calls::plus);
        Self { calls, allocations: sum(self.allocations, other.allocations), journal }
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    both(one, other, |one, other| one + other)
}

/// What is known of two observations put together.
fn both<T>(one: Option<T>, other: Option<T>, plus: impl Fn(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(plus(one, other)),
        (one, other) => one.or(other),
    }
}

fn since(now: Journal, then: Journal) -> Journal {
    let less = |now: Option<u64>, then| now.zip(then).map(|(now, then)| now.saturating_sub(then));
    let device = now.device.zip(then.device).map(|(now, then)| now.since(then));
    Journal { syncs: less(now.syncs, then.syncs), bytes: less(now.bytes, then.bytes), device }
}
