//! The cases of the model test: a fixed half, a fresh half, and those that once failed.
//!
//! Each case has a seed of its own, so that one that failed is run again alone.

use duramen_sim::Random;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use super::{COVERAGE, Documents, LARGE, SMALL, WIDE};

/// Cases that once failed: they are run for ever.
const STORED: &str = include_str!("../../../fixtures/model-seeds.txt");
/// In so many cases each kind of operation takes effect once at the least.
const CASES_PER_EFFECT: u64 = 8;

/// Cases of a scale, and how far each goes.
#[derive(Debug, Clone, Copy)]
struct Suite {
    name: &'static str,
    cases: u64,
    run: fn(u64) -> Result<(), String>,
}

const SUITES: [Suite; 3] = [
    Suite { name: "small", cases: 1_000, run: run::<SMALL, 100> },
    Suite { name: "wide", cases: 300, run: run::<WIDE, 150> },
    Suite { name: "large", cases: 120, run: run::<LARGE, 150> },
];

/// One case of less than `LENGTH` transitions; if it fails, the shortest that does.
fn run<const SCALE: usize, const LENGTH: usize>(seed: u64) -> Result<(), String> {
    let config = Config {
        cases: 1,
        rng_seed: RngSeed::Fixed(seed),
        max_shrink_iters: 4_000,
        failure_persistence: None,
        ..Config::default()
    };
    let strategy = Documents::<SCALE>::sequential_strategy(1..LENGTH);
    let result = TestRunner::new(config.clone()).run(&strategy, |(start, transitions, seen)| {
        Documents::<SCALE>::test_sequential(config.clone(), start, transitions, seen);
        Ok(())
    });
    result.map_err(|error| error.to_string())
}

impl Suite {
    fn named(name: &str) -> Self {
        let found = SUITES.iter().find(|suite| suite.name == name).copied();
        found.unwrap_or_else(|| panic!("model-seeds.txt names a suite {name:?}"))
    }

    fn case(self, seed: u64) {
        if let Err(error) = (self.run)(seed) {
            let name = self.name;
            panic!("{error}\nADD TO crates/duramen-sim/fixtures/model-seeds.txt: {name} {seed}");
        }
    }

    /// Runs cases of these seeds; then every kind of operation has taken effect.
    fn cases(self, seeds: impl Iterator<Item = u64>) {
        seeds.for_each(|seed| self.case(seed));
        let coverage = COVERAGE.take();
        println!("{coverage}");
        let gaps = coverage.gaps(self.cases / CASES_PER_EFFECT);
        assert!(gaps.is_empty(), "{gaps:#?}");
    }

    fn fixed(self) {
        self.cases(0..self.cases);
    }

    fn fresh(self) {
        use std::hash::{BuildHasher, RandomState};
        let mut random = Random::new(RandomState::new().hash_one(self.name));
        self.cases((0..self.cases).map(|_| random.bits()));
    }
}

#[test]
fn cases_that_once_failed_are_as_the_model_says() {
    for line in STORED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, seed) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?} has no seed"));
        Suite::named(name).case(seed.parse().unwrap());
    }
}

#[test]
fn small_documents_are_as_the_model_says() {
    Suite::named("small").fixed();
}

#[test]
fn small_documents_are_as_the_model_says_for_fresh_seeds() {
    Suite::named("small").fresh();
}

#[test]
fn wide_documents_are_as_the_model_says() {
    Suite::named("wide").fixed();
}

#[test]
fn wide_documents_are_as_the_model_says_for_fresh_seeds() {
    Suite::named("wide").fresh();
}

#[test]
fn large_documents_are_as_the_model_says() {
    Suite::named("large").fixed();
}

#[test]
fn large_documents_are_as_the_model_says_for_fresh_seeds() {
    Suite::named("large").fresh();
}
