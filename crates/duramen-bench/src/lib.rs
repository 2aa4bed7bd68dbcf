//! The workloads behind every published figure of Duramen, found and run as `duramen bench`.
//!
//! Subjects are compared only side by side: in each round of a run every subject works once, taking
//! turns at going first, and ratios are of samples of the same round. What depends on the device is
//! a ratio to a sync probe taken beside it. Every result is checked in every round.

mod allocations;
mod arguments;
mod contest;
mod counters;
mod device;
mod document;
mod engine;
mod figures;
mod files;
mod machine;
mod probe;
mod random;
mod report;
mod rivals;
mod sampling;
mod session;
mod stopwatch;
mod subject;
mod table;
mod workloads;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser as _;

use arguments::Arguments;
use session::Session;
use stopwatch::Stopwatch;
use workloads::WORKLOADS;

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    match execute(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("duramen bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn execute(arguments: Arguments) -> Result<()> {
    if let Some(task) = &arguments.child {
        return workloads::run_child(task);
    }
    if arguments.list {
        for workload in WORKLOADS {
            println!("{:<4} {}", workload.id, workload.what);
        }
        return Ok(());
    }
    let selected = arguments.selected()?;
    let out = arguments.out.clone();
    std::fs::create_dir_all(&out).with_context(|| format!("create {}", out.display()))?;
    let mut session = Session::start(arguments)?;
    let machine = session.machine()?;
    println!("{}", machine.line());
    if machine.is_in_memory() {
        eprintln!("the data lies in memory, where syncs cost nothing: choose a disk with --data");
    }
    for workload in selected {
        let watch = Stopwatch::start();
        (workload.run)(&mut session).with_context(|| format!("workload {}", workload.id))?;
        println!("\n{} {}  [{:.1} s]", workload.id, workload.what, watch.seconds());
        print!("{}", table::render(session.figures.fresh()));
        // Written after each workload, so that one that fails later loses nothing.
        session.figures.write(&out)?;
    }
    machine.write(&out)?;
    if session.arguments().report {
        report::write(&out, &machine, session.figures.all())?;
    }
    println!("\nwritten to {}", out.display());
    Ok(())
}
