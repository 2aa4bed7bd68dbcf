//! Simulated device, power-loss oracle and models for testing Duramen.
//!
//! A seed fixes a run: the device, the clock and every choice of a test draw from [`Random`].

mod arguments;
mod clock;
mod coverage;
mod device;
mod edit;
mod expectation;
mod histories;
pub mod json;
mod life;
pub mod model;
pub mod operation;
mod oracle;
pub mod plan;
mod random;
mod report;
mod rounds;
pub mod samples;
mod stopwatch;
mod suites;

use std::process::ExitCode;

pub use clock::SimulatedClock;
pub use coverage::Coverage;
pub use device::{FaultKind, FaultPlan, Operation, PowerLoss, PowerOff, Profile, SimulatedDevice};
pub use random::Random;

use arguments::{Command, USAGE};

/// Knows how much memory is in use, and was at the most.
#[global_allocator]
static ALLOCATOR: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, usize::MAX);

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;

/// Runs the command line: whether everything passed.
pub fn run() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let failed = match Command::parse(&words) {
        None => {
            eprintln!("{USAGE}");
            return ExitCode::from(WRONG_USAGE);
        }
        Some(Command::Suites { tier, fresh }) => suites::all(tier, fresh) > 0,
        Some(Command::Run { hours, fresh }) => !suites::long_run(hours, fresh),
        Some(Command::Replay(replay)) => match replay.round() {
            Ok(tally) => {
                println!("passed: {tally:?}");
                false
            }
            Err(what) => {
                println!("FAILED {what}");
                true
            }
        },
        Some(Command::Teeth) => !suites::teeth(),
        Some(Command::Bite) => !suites::bite(),
        Some(Command::Hang) => !suites::hang(),
        Some(Command::Corpus { folder }) => !suites::write_corpus(folder.as_ref()),
        Some(Command::Child { folder, durability, seed }) => {
            !suites::child(&folder, &durability, seed)
        }
    };
    if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}
