//! Runs one round per seed on all workers, and turns panics into failures.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::expectation::Check;
use crate::report::Report;
use crate::stopwatch::Stopwatch;

/// What a round did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Power losses and killed processes.
    pub(crate) losses: u64,
    /// Checkpoints that one database of the round had.
    pub(crate) checkpoints: u64,
    pub(crate) seen: BTreeSet<&'static str>,
    /// A hash of everything that happened.
    pub(crate) trace: u64,
}

/// Failures after which a suite ends early: more of the same tell nothing new.
const FAILURES_MAX: usize = 20;
const WORKERS_MAX: usize = 8;

/// Runs `round` once for each of the seeds.
pub(crate) fn run(
    suite: &'static str,
    seeds: &[u64],
    round: &(dyn Fn(u64) -> Check<Tally> + Sync),
) -> Report {
    let watch = Stopwatch::start();
    let report = Mutex::new(Report::new(suite));
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = without_panic(|| round(seed));
            let mut report = report.lock();
            report.add(result);
            if report.failures.len() >= FAILURES_MAX {
                return;
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(work);
        }
        work();
    });
    let mut report = report.into_inner();
    report.seconds = watch.seconds();
    report
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static IS_ROUND: RefCell<bool> = const { RefCell::new(false) };
}

/// The result of `round`; a panic in it is a failure that says where.
fn without_panic(round: impl FnOnce() -> Check<Tally>) -> Check<Tally> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IS_ROUND.with_borrow(|is_round| *is_round) {
                PANIC.with_borrow_mut(|panic| _ = panic.get_or_insert(info.to_string()));
            } else {
                usual(info);
            }
        }));
    });
    IS_ROUND.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(round));
    IS_ROUND.set(false);
    let panic = PANIC.take();
    result.unwrap_or_else(|_| Err(panic.unwrap_or_else(|| "panic".to_owned())))
}
