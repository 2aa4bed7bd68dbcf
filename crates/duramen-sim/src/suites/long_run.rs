//! The long mode: all suites in turn, each with fresh seeds, until the time is over.

use std::collections::BTreeMap;

use super::{
    backups, bank, clients, damaged, determinism, errors, exhaustive, full_disk, fuzz, kills,
    power_losses, records,
};
use crate::Random;
use crate::arguments::Disk;
use crate::report::Report;
use crate::rounds::{interrupt_on_signals, is_interrupted};
use crate::stopwatch::Stopwatch;

/// Some seconds of a suite, with seeds that follow from a number.
type Batch = fn(u64) -> Report;

/// How much of each suite comes in turn: the more, the more its rounds find. Crashes come first.
const BATCHES: [Batch; 12] = [
    |fresh| power_losses(2_000, fresh, Disk::Random),
    |fresh| exhaustive::fresh_scripts(3_000, fresh),
    |fresh| errors::suite(80, fresh),
    |fresh| bank::suite(100, fresh),
    |fresh| clients::suite(10, fresh),
    |fresh| records::suite(100, fresh),
    |fresh| backups::suite(40, fresh),
    |fresh| power_losses(2_000, fresh, Disk::Cruel),
    |fresh| damaged::suite(20_000, fresh),
    |fresh| fuzz::suite(12, fresh),
    |fresh| kills::suite(200, fresh),
    |fresh| determinism(10, fresh),
];
/// The full file systems are always the same ones, so that a turn in so many is enough.
const FULL_DISK_ONE_IN: u64 = 10;
const SECONDS_OF_AN_HOUR: f64 = 3_600.0;

/// What became of a suite in all turns.
#[derive(Debug, Default)]
struct Total {
    rounds: u64,
    seconds: f64,
    failures: Vec<String>,
}

/// Plays the suites for so many hours, or until it is interrupted; whether nothing failed.
pub(crate) fn long_run(hours: f64, fresh: u64) -> bool {
    interrupt_on_signals();
    let watch = Stopwatch::start();
    let is_over = || is_interrupted() || watch.seconds() >= hours * SECONDS_OF_AN_HOUR;
    let mut random = Random::new(fresh);
    let mut totals: BTreeMap<&'static str, Total> = BTreeMap::new();
    for turn in 1.. {
        let full_disk = (turn % FULL_DISK_ONE_IN == 1).then_some(full_disk_batch as Batch);
        for batch in BATCHES.into_iter().chain(full_disk) {
            if !is_over() {
                add(&mut totals, &batch(random.bits()));
            }
        }
        println!("turn {turn} ended after {:.0} s", watch.seconds());
        if is_over() {
            break;
        }
    }
    summarize(&totals)
}

fn full_disk_batch(_: u64) -> Report {
    full_disk::suite(6)
}

/// Prints what a suite found and adds it to what it found before.
fn add(totals: &mut BTreeMap<&'static str, Total>, report: &Report) {
    report.print();
    let total = totals.entry(report.suite.name).or_default();
    total.rounds += report.rounds;
    total.seconds += report.seconds;
    total.failures.extend(report.wrong().cloned());
}

/// Prints the sum of each suite, and of what failed the first; whether nothing did.
fn summarize(totals: &BTreeMap<&'static str, Total>) -> bool {
    if is_interrupted() {
        println!("interrupted: what was under way was ended early");
    }
    for (suite, Total { rounds, seconds, failures }) in totals {
        let failed = failures.len();
        println!("total {suite:<14} {rounds:>9} rounds {seconds:>8.0} s, {failed} failures");
    }
    let first = totals.iter().filter_map(|(suite, total)| Some((suite, total.failures.first()?)));
    for (suite, failure) in first {
        println!("FIRST FAILURE of {suite}: {failure}");
    }
    totals.values().all(|total| total.failures.is_empty())
}
