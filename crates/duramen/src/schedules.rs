//! Models of what threads of the engine do at once, each run under many schedules.
//!
//! A schedule is the order in which threads go on wherever they meet: at a lock, a wait, a write or
//! a sync of the device. Half of the schedules are drawn at random, always the same ones; the other
//! half follow priorities that change at a few places (Burckhardt et al., "A Randomized Scheduler
//! with Probabilistic Guarantees of Finding Bugs", 2010), from a seed that may be given. A schedule
//! in which nobody can go on is a deadlock, and fails.

mod database;
mod device;
mod journal;
mod staging;

use std::panic;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};
use twox_hash::XxHash3_64;

use crate::{Clock, Micros};

/// Schedules of each model, and of one with a defect at most.
const SCHEDULES: usize = 2_000;
/// Places at which priorities change.
const DEPTH: usize = 3;
/// Bytes of the stack of a thread.
const STACK_BYTES: usize = 512 << 10;
/// Names the defect that is planted into a process.
const DEFECT: &str = "DURAMEN_TEETH";

/// What threads do at once, and what has to hold then.
struct Model {
    name: &'static str,
    run: fn(),
    /// Defects that schedules of it must find.
    defects: &'static [&'static str],
}

const MODELS: &[Model] = &[
    Model {
        name: "acknowledged_commits_are_durable",
        run: journal::acknowledged_commits_are_durable,
        defects: &["acknowledge_early", "publish_early", "forget_next_leader"],
    },
    Model { name: "a_flush_covers_all_before_it", run: journal::a_flush_covers_all, defects: &[] },
    Model { name: "a_failed_sync_is_final", run: journal::a_failed_sync_is_final, defects: &[] },
    Model { name: "files_follow_each_other", run: journal::files_follow, defects: &[] },
    Model { name: "a_follower_misses_nothing", run: journal::a_follower, defects: &[] },
    Model { name: "snapshots_see_whole_commits", run: database::snapshots, defects: &[] },
    Model {
        name: "what_was_read_holds_at_the_commit",
        run: database::reads_hold,
        defects: &["release_reads_early"],
    },
    Model { name: "no_increment_is_lost", run: database::increments, defects: &[] },
    Model {
        name: "one_of_two_conflicts",
        run: database::conflicts,
        defects: &["drop_conflict_check"],
    },
    Model {
        name: "unchanged_saves_tell_what_they_saw",
        run: database::unchanged,
        defects: &["tell_later_head"],
    },
    Model {
        name: "readers_keep_their_segments",
        run: database::segments,
        defects: &["replace_in_two_steps"],
    },
    Model { name: "writers_wait_for_memory", run: database::memory, defects: &[] },
    Model {
        name: "staged_points_outlive_the_process",
        run: staging::kills,
        defects: &["reuse_bank_early", "forget_stamp"],
    },
];

/// Time that goes on by a microsecond whenever somebody looks.
#[derive(Debug, Default)]
struct Ticks(AtomicI64);

impl Clock for Ticks {
    fn now(&self) -> Micros {
        Micros(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Runs the model that the first argument names, or all of them, then those with each planted
/// defect. The second half of the schedules follows from the second argument, any text.
pub fn run_arguments(mut arguments: impl Iterator<Item = String>) -> ExitCode {
    let only = arguments.next().filter(|name| name != "all");
    let seed = arguments.next().map_or(0, |seed| XxHash3_64::oneshot(seed.as_bytes()));
    let wanted = |model: &&Model| only.as_ref().is_none_or(|name| name == model.name);
    let models: Vec<_> = MODELS.iter().filter(wanted).collect();
    if models.is_empty() {
        eprintln!("there is no model of that name: leave the name out to run all");
        return ExitCode::from(2);
    }
    let is_bitten = std::env::var_os(DEFECT).is_some_and(|defect| !defect.is_empty());
    let mut is_good = true;
    for model in models {
        is_good &= explore(model, seed);
        if !is_bitten {
            is_good &= model.defects.iter().all(|defect| is_found(model, defect));
        }
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether the model holds under all schedules.
fn explore(model: &Model, seed: u64) -> bool {
    let half = SCHEDULES / 2;
    let random = explore_by(RandomScheduler::new_from_seed(0, half), model.run);
    let is_good = random && explore_by(PctScheduler::new_from_seed(seed, DEPTH, half), model.run);
    let failures = usize::from(!is_good);
    println!("schedules: {}, {SCHEDULES} schedules, {failures} failures", model.name);
    if !is_good {
        println!("REPRODUCE: duramen-schedules {} (seed {seed})", model.name);
    }
    is_good
}

fn explore_by(scheduler: impl Scheduler + 'static, run: fn()) -> bool {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    let runner = Runner::new(scheduler, config);
    panic::catch_unwind(panic::AssertUnwindSafe(|| runner.run(run))).is_ok()
}

/// Whether the model fails in a process with the defect.
fn is_found(model: &Model, defect: &str) -> bool {
    let run = || {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program);
        child.arg(model.name).env(DEFECT, defect).stdout(Stdio::null()).stderr(Stdio::null());
        child.status()
    };
    let is_found = run().is_ok_and(|status| status.code() == Some(1));
    let said = if is_found { "found" } else { "NOT FOUND" };
    println!("schedules: {}, planted {defect}, {said}", model.name);
    is_found
}

/// Runs all of these at once, to their ends.
fn at_once(threads: impl IntoIterator<Item = Box<dyn FnOnce() + Send>>) {
    let running: Vec<_> = threads.into_iter().map(shuttle::thread::spawn).collect();
    for thread in running {
        thread.join().expect("the thread panicked");
    }
}

/// A number below `end`, drawn by the schedule.
fn below(end: usize) -> usize {
    use shuttle::rand::Rng;
    shuttle::rand::thread_rng().gen_range(0..end)
}

fn clock() -> Arc<dyn Clock> {
    Arc::<Ticks>::default()
}
