//! How samples are taken and summed up.
//!
//! Invariant: subjects are compared only within a round of one run, taking turns at going first.

use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;

use crate::stopwatch::Stopwatch;

const LONGEST_NANOS: u64 = 600_000_000_000;
/// Operations as long as this are not repeated.
const REPEATED_US: f64 = 2_000.0;

/// Every latency of one operation, three digits exact.
#[derive(Debug, Clone)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    /// Without samples.
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NANOS, 3);
        Self(histogram.expect("the bounds are constants that fit a histogram"))
    }

    /// Adds a sample.
    pub(crate) fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Runs an operation and adds the time it took.
    pub(crate) fn time<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let watch = Stopwatch::start();
        let done = work()?;
        self.record(watch.elapsed());
        Ok(done)
    }

    /// Adds all samples of another.
    pub(crate) fn merge(&mut self, other: &Self) {
        // Both have the same bounds, so this cannot fail.
        let _ = self.0.add(&other.0);
    }

    /// Forgets all samples.
    pub(crate) fn clear(&mut self) {
        self.0.reset();
    }

    /// The latency in microseconds that a share of the samples does not exceed; `None` without
    /// samples.
    pub(crate) fn quantile_us(&self, share: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(share) as f64 / 1e3)
    }
}

/// Warm-up and measured rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    /// Rounds whose samples are thrown away.
    pub(crate) warmups: usize,
    /// Rounds that count.
    pub(crate) measured: usize,
}

/// Takes a sample of each subject in each round; who goes first rotates. Returns the measured
/// samples by subject.
pub(crate) fn interleave<S, T>(
    subjects: &mut [S],
    rounds: Rounds,
    mut work: impl FnMut(&mut S, Round) -> Result<T>,
) -> Result<Vec<Vec<T>>> {
    let mut samples: Vec<_> = subjects.iter().map(|_| Vec::new()).collect();
    for number in 0..rounds.warmups + rounds.measured {
        let round = Round { number, measured: number >= rounds.warmups };
        for turn in 0..subjects.len() {
            let index = (number + turn) % subjects.len();
            let sample = work(&mut subjects[index], round)?;
            if round.measured {
                samples[index].push(sample);
            }
        }
    }
    Ok(samples)
}

/// The mean time of an operation in microseconds, and what it returned last.
///
/// A subject before this one has emptied the processor's caches, which says more about that
/// subject than about a short operation: it runs once unmeasured, then for a while.
pub(crate) fn repeated<T>(mut work: impl FnMut() -> Result<T>) -> Result<(f64, T)> {
    let watch = Stopwatch::start();
    let done = work()?;
    let first = watch.micros();
    if first >= REPEATED_US {
        return Ok((first, done));
    }
    let mut micros = 0.0;
    let mut times = 0_u32;
    loop {
        let watch = Stopwatch::start();
        let done = work()?;
        micros += watch.micros();
        times += 1;
        if micros >= REPEATED_US {
            return Ok((micros / f64::from(times), done));
        }
    }
}

/// Where a run of rounds stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// Counted from 0, warm-ups included.
    pub(crate) number: usize,
    /// Whether its samples count.
    pub(crate) measured: bool,
}

/// Median, least and greatest of samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    /// The middle one, or the mean of the middle two.
    pub(crate) median: f64,
    /// The least.
    pub(crate) min: f64,
    /// The greatest.
    pub(crate) max: f64,
}

impl Summary {
    /// Of at least one sample.
    pub(crate) fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let upper = sorted[sorted.len() / 2];
        let lower = sorted[(sorted.len() - 1) / 2];
        Some(Self { median: lower.midpoint(upper), min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_takes_the_middle() {
        let summary = Summary::of(&[3.0, 1.0, 2.0, 10.0]);
        assert_eq!(summary, Some(Summary { median: 2.5, min: 1.0, max: 10.0 }));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn subjects_take_turns_at_going_first_and_warm_ups_do_not_count() {
        let mut order = Vec::new();
        let rounds = Rounds { warmups: 1, measured: 2 };
        let samples = interleave(&mut ["a", "b"], rounds, |subject, round| {
            order.push(*subject);
            Ok(round.number as f64)
        });
        assert_eq!(order, ["a", "b", "b", "a", "a", "b"]);
        assert_eq!(samples.unwrap(), [[1.0, 2.0], [1.0, 2.0]]);
    }

    #[test]
    fn quantiles_come_from_every_sample() {
        let mut latencies = Latencies::new();
        (1..=1_000).for_each(|micros| latencies.record(Duration::from_micros(micros)));
        let median = latencies.quantile_us(0.5).unwrap();
        assert!((499.0..=501.0).contains(&median), "{median}");
        assert!(latencies.quantile_us(1.0).unwrap() >= 999.0);
    }
}
