//! Runs one round per seed on all workers, turns panics into failures, and ends the process when a
//! round hangs: a hang must be red, and no thread can be stopped from outside.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Once};
use std::time::Duration;

use parking_lot::Mutex;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::coverage::Coverage;
use crate::expectation::Check;
use crate::report::Report;
use crate::stopwatch::Stopwatch;

/// A suite of rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    /// How long one round may take: far more than any does.
    pub(crate) round_seconds_max: f64,
    /// Each kind of operation must have taken effect at least once in so many rounds.
    pub(crate) rounds_per_effect: Option<u64>,
    /// So many of a hundred rounds must have many compactions.
    pub(crate) compacted_percent_min: u64,
}

/// Rounds with a life of their own, in which every kind of operation takes effect at least once.
const ROUNDS_PER_EFFECT: u64 = 10;

impl Suite {
    /// A suite that draws no operations, or too few to tell.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, round_seconds_max: 300.0, rounds_per_effect: None, compacted_percent_min: 0 }
    }

    /// A suite that every kind of operation must take effect in.
    pub(crate) const fn gated(name: &'static str) -> Self {
        Self { rounds_per_effect: Some(ROUNDS_PER_EFFECT), ..Self::new(name) }
    }
}

/// What a round did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Power losses and killed processes.
    pub(crate) losses: u64,
    /// Compactions of the databases of the round.
    pub(crate) compactions: u64,
    pub(crate) seen: BTreeSet<&'static str>,
    pub(crate) coverage: Coverage,
    /// A hash of everything that happened.
    pub(crate) trace: u64,
}

/// Failures after which a suite ends early: more of the same tell nothing new.
const FAILURES_MAX: usize = 20;
const WORKERS_MAX: usize = 8;

/// How the process ends when a round hangs.
pub(crate) const HUNG: i32 = 3;
const WATCH_MILLIS: u64 = 100;
/// How it ends at the second Ctrl-C.
const INTERRUPTED_CODE: i32 = 130;

/// Runs `round` once for each of the seeds.
pub(crate) fn run(
    suite: Suite,
    seeds: &[u64],
    round: &(dyn Fn(u64) -> Check<Tally> + Sync),
) -> Report {
    let watch = Stopwatch::start();
    let report = Mutex::new(Report::new(suite));
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
    // What each worker is at.
    let rounds: Vec<Mutex<Option<Running>>> = (0..workers).map(|_| Mutex::new(None)).collect();
    let work = |running: &Mutex<Option<Running>>| {
        while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            if is_interrupted() {
                return;
            }
            *running.lock() = Some(Running { seed, watch: Stopwatch::start() });
            let result = without_panic(|| round(seed));
            *running.lock() = None;
            let mut report = report.lock();
            report.add(result);
            if report.failures.len() >= FAILURES_MAX {
                return;
            }
        }
    };
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watchdog = scope.spawn(|| watch_over(suite, &rounds, &is_done));
        std::thread::scope(|scope| {
            for running in &rounds[1..] {
                scope.spawn(|| work(running));
            }
            work(&rounds[0]);
        });
        is_done.store(true, Ordering::Relaxed);
        watchdog.thread().unpark();
    });
    let mut report = report.into_inner();
    report.close(watch.seconds());
    report
}

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From now on Ctrl-C ends suites after the rounds under way; a second one ends the process.
pub(crate) fn interrupt_on_signals() {
    for signal in [SIGINT, SIGTERM] {
        let is_asked = || Arc::clone(&INTERRUPTED);
        let registered = flag::register_conditional_shutdown(signal, INTERRUPTED_CODE, is_asked())
            .and_then(|_| flag::register(signal, is_asked()));
        if let Err(error) = registered {
            eprintln!("Ctrl-C will end the process without a summary: {error}");
        }
    }
}

/// Whether rounds that have not begun are to be left out.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// A round that has not ended.
#[derive(Debug, Clone, Copy)]
struct Running {
    seed: u64,
    watch: Stopwatch,
}

/// Ends the process, with a word on the seed, once a round takes longer than it may.
fn watch_over(suite: Suite, rounds: &[Mutex<Option<Running>>], is_done: &AtomicBool) {
    while !is_done.load(Ordering::Relaxed) {
        for round in rounds.iter().filter_map(|round| *round.lock()) {
            if round.watch.seconds() > suite.round_seconds_max {
                let (name, seed, seconds) = (suite.name, round.seed, suite.round_seconds_max);
                println!("FAILED {name}: seed {seed} hangs: no end after {seconds} s");
                std::process::exit(HUNG);
            }
        }
        std::thread::park_timeout(Duration::from_millis(WATCH_MILLIS));
    }
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
