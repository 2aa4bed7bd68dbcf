//! Suite 7: a process that commits on the real disk is killed, and what it was told is there.
//!
//! Invariant: a seed fixes every change and the time of each, so that the parent knows from the
//! number of commits alone what its children did.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use duramen::{CommitOptions, Database, Durability, Micros, Options};

use crate::coverage::Coverage;
use crate::expectation::{Check, Expectation, Pending};
use crate::oracle::{self, Loss, said};
use crate::plan::{Plan, Stop};
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};
use crate::samples::Scale;
use crate::stopwatch::wait;
use crate::{Random, SimulatedClock};

/// Kills of one database, one after the other.
const KILLS: u64 = 10;
/// Commits of a child before it is killed, at the most.
const COMMITS_MAX: u64 = 60;
/// Noon of a day in 2026.
const START: Micros = Micros(1_780_000_000_000_000);
const MICROS_A_CHANGE: i64 = 1_000;
/// A round is ten lives of one database, so that each kind takes effect in every few of them.
const ROUNDS_PER_EFFECT: u64 = 4;

/// Kills child processes, half of them with `Interval` commits.
pub(super) fn suite(kills: u64, fresh: u64) -> Report {
    let suite = Suite { rounds_per_effect: Some(ROUNDS_PER_EFFECT), ..Suite::new("kills") };
    run(suite, &super::seeds(kills / KILLS, fresh), &|seed| super::Replay::Kills { seed }.round())
}

/// Ten lives of the database of a seed. When each is killed is not up to the seed alone.
pub(super) fn round(seed: u64) -> Check<Tally> {
    let mut random = Random::new(seed);
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("db");
    let mut script = Script::new(seed);
    let mut tally = Tally::default();
    for _ in 0..KILLS {
        let durability = random.choose(&["sync", "interval"]);
        // Some are killed while they open the database.
        let commits = if random.one_in(5) { 0 } else { 1 + random.below(COMMITS_MAX) };
        killed((&path, durability, seed), (commits, random.below(8)))
            .and_then(|acknowledged| verify(&mut script, &path, acknowledged))?;
        tally.losses += 1;
        tally.seen.insert(durability);
    }
    tally.coverage = script.coverage;
    Ok(tally)
}

/// Everything that is done to a database, one change after the other.
struct Script {
    seed: u64,
    next: u64,
    expectation: Expectation,
    clock: SimulatedClock,
    coverage: Coverage,
}

impl Script {
    fn new(seed: u64) -> Self {
        let clock = SimulatedClock::new(START);
        clock.freeze();
        let expectation = Expectation::new(Scale::SMALL);
        Self { seed, next: 0, expectation, clock, coverage: Coverage::default() }
    }

    fn options(&self) -> Options {
        Options {
            checkpoint_journal_bytes: 32 << 10,
            memory_bytes: 128 << 10,
            // A process that is being started holds its parent's locks until it runs.
            wait_ms: 5_000,
            // What is compared stays as it is: no compaction drops anything meanwhile.
            background: false,
            clock: Arc::new(self.clock.clone()),
            ..Options::default()
        }
    }

    /// The next change, with the clock at its time.
    fn change(&mut self) -> (Pending, CommitOptions) {
        loop {
            self.next += 1;
            self.clock.forward(MICROS_A_CHANGE);
            let seed = Random::new(self.seed.wrapping_add(self.next << 32)).bits();
            let plan = Plan::any(self.expectation.model(), seed);
            let given = self.expectation.timestamp(&plan, duramen::Clock::now(&self.clock));
            if given.is_some() || !plan.needs_timestamp() {
                let options = plan.options(given, None);
                return (Pending { plan, given }, options);
            }
        }
    }

    /// A change was made.
    fn done(&mut self, pending: &Pending) {
        self.coverage.drawn(&pending.plan);
        self.coverage.carried_out(&pending.plan);
        self.expectation.commit(pending, Some(duramen::Clock::now(&self.clock)));
        self.expectation.synced();
    }

    /// Goes on to a commit that was made before.
    fn go_to(&mut self, sequence: u64) {
        while self.expectation.model().sequence() < sequence {
            let (pending, _) = self.change();
            self.done(&pending);
        }
    }
}

/// Starts a child and kills it some time after so many commits: the last that it said was done.
fn killed(
    (path, durability, seed): (&Path, &str, u64),
    (commits, millis): (u64, u64),
) -> Check<u64> {
    let failed = |error: std::io::Error| format!("the child: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    let mut child = Command::new(program)
        .arg("child")
        .arg(path)
        .args([durability, &seed.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut pipe = BufReader::new(child.stdout.take().ok_or("the child has no output")?);
    let mut said = String::new();
    for _ in 0..commits {
        pipe.read_line(&mut said).map_err(failed)?;
    }
    wait(millis);
    child.kill().map_err(failed)?;
    let status = child.wait().map_err(failed)?;
    if status.code().is_some() {
        return Err(format!("the child ended by itself: {status}"));
    }
    pipe.read_to_string(&mut said).map_err(failed)?;
    // A line that is cut was never said.
    let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
    Ok(whole.lines().last().and_then(|line| line.parse().ok()).unwrap_or(0))
}

/// Everything acknowledged is there, and at most one commit more.
fn verify(script: &mut Script, path: &Path, acknowledged: u64) -> Check {
    if acknowledged == 0 && !path.join("MANIFEST").exists() {
        return Ok(());
    }
    script.go_to(acknowledged);
    let db = said("open", Database::open(path, script.options()))?;
    let found = said("stats", db.stats())?.sequence.0;
    let last = script.expectation.model().sequence();
    if found > last + 1 {
        return Err(format!("commit {found} is there, {last} was the last that was told"));
    }
    script.go_to(found);
    oracle::adopt(&mut script.expectation, &db, Loss::Process)?;
    let report = said("check", db.check())?;
    match report.findings.first() {
        Some(finding) => Err(format!("check found {}: {}", finding.place, finding.message)),
        None => said("close", db.close()),
    }
}

/// Makes the changes of a seed that are not there yet, and says how many commits that is, until
/// it is killed.
pub(crate) fn child(folder: &str, durability: &str, seed: u64) -> bool {
    let mut script = Script::new(seed);
    let durability = match durability {
        "sync" => Durability::Sync,
        _ => Durability::Interval(20),
    };
    let options = Options { durability, background: true, ..script.options() };
    let failure = match Database::open(folder, options) {
        Err(error) => error.to_string(),
        Ok(db) => {
            script.go_to(db.snapshot().sequence().0);
            match make_changes(&mut script, &db) {
                // The parent may have gone: then there is nobody left to tell.
                Ok(()) => return true,
                Err(stop) => format!("{stop:?}"),
            }
        }
    };
    eprintln!("the child failed: {failure}");
    false
}

fn make_changes(script: &mut Script, db: &Database) -> Result<(), Stop> {
    loop {
        let (pending, options) = script.change();
        pending.plan.carry_out(db, &options)?;
        script.done(&pending);
        let line = format!("{}\n", script.expectation.model().sequence());
        if pending.plan.is_commit() && std::io::stdout().write_all(line.as_bytes()).is_err() {
            return Ok(());
        }
    }
}
