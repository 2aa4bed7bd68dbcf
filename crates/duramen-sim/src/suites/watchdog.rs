//! A round that hangs is red: a process with one must end and name its seed.

use std::process::Command;

use crate::expectation::Check;
use crate::rounds::{HUNG, Suite, Tally, run};
use crate::stopwatch::wait;

const SEED: u64 = 7;
const WAIT_MILLIS: u64 = 10_000;

/// Starts such a process.
pub(super) fn suite() -> crate::report::Report {
    run(Suite::new("watchdog"), &[0], &|_| caught())
}

fn caught() -> Check<Tally> {
    let failed = |error: std::io::Error| format!("the child: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    let child = Command::new(program).arg("hang").output().map_err(failed)?;
    let told = String::from_utf8_lossy(&child.stdout);
    if child.status.code() == Some(HUNG) && told.contains(&format!("seed {SEED} hangs")) {
        return Ok(Tally { seen: ["hang"].into(), ..Tally::default() });
    }
    Err(format!("a round that hangs ended with {}: {told}", child.status))
}

/// A suite whose only round does not end; whether it passed.
pub(crate) fn hang() -> bool {
    let suite = Suite { round_seconds_max: 0.2, ..Suite::new("hang") };
    let report = run(suite, &[SEED], &|_| {
        loop {
            wait(WAIT_MILLIS);
        }
    });
    report.print()
}
