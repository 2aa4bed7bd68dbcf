//! What a suite found: a line for people and one for machines.

use std::collections::BTreeSet;

use crate::coverage::Coverage;
use crate::expectation::Check;
use crate::rounds::{Suite, Tally, is_interrupted};

/// The outcome of a suite.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) suite: Suite,
    pub(crate) rounds: u64,
    pub(crate) seconds: f64,
    /// Rounds that failed.
    pub(crate) failures: Vec<String>,
    /// What the rounds together should have shown and did not.
    gaps: Vec<String>,
    losses: u64,
    /// Rounds with at least [`MANY_COMPACTIONS`].
    compacted: u64,
    seen: BTreeSet<&'static str>,
    coverage: Coverage,
}

/// From so many compactions on a database has aged.
const MANY_COMPACTIONS: u64 = 3;

/// Of fewer rounds a share tells little.
const ROUNDS_OF_A_SHARE: u64 = 200;

impl Report {
    pub(crate) fn new(suite: Suite) -> Self {
        Self {
            suite,
            rounds: 0,
            seconds: 0.0,
            failures: Vec::new(),
            gaps: Vec::new(),
            losses: 0,
            compacted: 0,
            seen: BTreeSet::new(),
            coverage: Coverage::default(),
        }
    }

    /// Adds the outcome of one round.
    pub(crate) fn add(&mut self, result: Check<Tally>) {
        self.rounds += 1;
        match result {
            Ok(tally) => {
                self.losses += tally.losses;
                self.compacted += u64::from(tally.compactions >= MANY_COMPACTIONS);
                self.seen.extend(tally.seen);
                self.coverage.add(&tally.coverage);
            }
            Err(what) => self.failures.push(what),
        }
    }

    /// The suite is over: kinds of operations that hardly took effect are gaps.
    pub(crate) fn close(&mut self, seconds: f64) {
        self.seconds = seconds;
        if is_interrupted() {
            return;
        }
        if let Some(rounds) = self.suite.rounds_per_effect {
            self.gaps.extend(self.coverage.gaps(self.rounds / rounds));
        }
        let (share, least) = (self.compacted_percent(), self.suite.compacted_percent_min);
        if self.rounds >= ROUNDS_OF_A_SHARE && share < least {
            self.gaps.push(format!(
                "{share} % of the rounds had {MANY_COMPACTIONS} compactions or more, {least} should"
            ));
        }
    }

    /// Makes it a gap that none of many rounds saw one of these events.
    pub(crate) fn require(mut self, events: &[&'static str]) -> Self {
        if self.rounds >= ROUNDS_OF_A_SHARE && !is_interrupted() {
            let unseen = events.iter().filter(|event| !self.seen.contains(*event));
            self.gaps.extend(unseen.map(|event| format!("no round saw {event:?}")));
        }
        self
    }

    fn compacted_percent(&self) -> u64 {
        100 * self.compacted / self.rounds.max(1)
    }

    /// All that is wrong: failures and gaps.
    pub(crate) fn wrong(&self) -> impl Iterator<Item = &String> {
        self.failures.iter().chain(&self.gaps)
    }

    /// Prints it; whether nothing failed.
    pub(crate) fn print(&self) -> bool {
        let Self { rounds, seconds, losses, .. } = self;
        let suite = self.suite.name;
        let (seen, failures) = (self.seen.len(), self.wrong().count());
        for failure in self.wrong() {
            println!("FAILED {suite}: {failure}");
        }
        let share = self.compacted_percent();
        if self.suite.rounds_per_effect.is_some() {
            print!("{}", self.coverage);
        }
        println!(
            "{suite:<12} {rounds:>6} rounds {seconds:>6.1} s, {losses} losses, {seen} events, \
             {share} % with {MANY_COMPACTIONS} compactions or more, {failures} failures"
        );
        println!(
            "{{\"suite\":\"{suite}\",\"rounds\":{rounds},\"seconds\":{seconds:.1},\
             \"losses\":{losses},\"events\":{seen},\"compacted_percent\":{share},\
             \"failures\":{failures}}}"
        );
        failures == 0
    }
}
