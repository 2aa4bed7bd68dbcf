//! Suite 23: with a defect planted into the engine the suites must fail.

use std::process::{Command, Stdio};

use crate::arguments::Disk;
use crate::expectation::Check;
use crate::rounds::{Suite, Tally, run as run_rounds};

/// Defects that `--cfg duramen_teeth` plants, of those that a power loss shows; the schedules find
/// the others.
const DEFECTS: [&str; 6] = [
    "skip_sync",
    "skip_directory_sync",
    "ignore_checksum",
    "acknowledge_early",
    "recycle_early",
    "drop_conflict_check",
];
/// A round is a process that runs a whole suite, as often as it takes.
const SUITE: Suite = Suite { round_seconds_max: 1_200.0, ..Suite::new("teeth") };
/// Rounds within which each must be found.
const QUOTA: u64 = 40_000;
/// Rounds between two looks at what was found, and all of them without a defect.
const ROUNDS_AT_A_TIME: u64 = 200;

/// Whether every planted defect was found, and nothing without one.
pub(crate) fn run() -> bool {
    let numbers: Vec<u64> = (0..=DEFECTS.len() as u64).collect();
    let report = run_rounds(SUITE, &numbers, &|number| {
        let defect = usize::try_from(number).ok().and_then(|at| DEFECTS.get(at)).copied();
        bite(defect)
    });
    report.print()
}

/// Runs the power losses in a process with the defect, or with none.
fn bite(defect: Option<&'static str>) -> Check<Tally> {
    let failed = |error: std::io::Error| format!("the child: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    let status = Command::new(program)
        .arg("bite")
        .env("DURAMEN_TEETH", defect.unwrap_or_default())
        .stdout(Stdio::null())
        .status()
        .map_err(failed)?;
    match (defect, status.code()) {
        (Some(_), Some(1)) | (None, Some(0)) => {
            Ok(Tally { seen: defect.into_iter().collect(), ..Tally::default() })
        }
        (Some(defect), _) => Err(format!("{defect} was not found: {status}")),
        (None, _) => Err(format!("a failure without a defect: {status}")),
    }
}

/// Power losses until a round of them fails; whether none did. What all rounds together do not
/// cover does not tell of the defect.
pub(crate) fn power_losses() -> bool {
    let has_defect = std::env::var_os("DURAMEN_TEETH").is_some_and(|defect| !defect.is_empty());
    let quota = if has_defect { QUOTA } else { ROUNDS_AT_A_TIME };
    (0..quota / ROUNDS_AT_A_TIME).all(|fresh| {
        let report = super::power_losses(ROUNDS_AT_A_TIME, fresh, Disk::Random);
        report.print();
        report.failures.is_empty()
    })
}
