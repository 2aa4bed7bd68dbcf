//! Figures: what is published, one object a line, and how samples become it.
//!
//! Invariant: a ratio is the median over rounds of the two subjects' samples of the same round,
//! above 1 where Duramen is ahead.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::contest::Contestant;
use crate::files;
use crate::sampling::{Latencies, Summary};
use crate::subject::DURAMEN;

/// One published figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// The workload's id.
    pub(crate) workload: &'static str,
    /// Who was measured.
    pub(crate) subject: &'static str,
    /// Which case of the workload.
    pub(crate) case: String,
    /// What was measured.
    pub(crate) metric: &'static str,
    /// In which unit.
    pub(crate) unit: &'static str,
    /// The middle of the samples.
    pub(crate) median: f64,
    /// The least sample.
    pub(crate) min: f64,
    /// The greatest sample.
    pub(crate) max: f64,
    /// Whom the ratio is against.
    pub(crate) rival: Option<&'static str>,
    /// Median of the rounds' ratios.
    pub(crate) ratio: Option<f64>,
    /// The least of them.
    pub(crate) ratio_min: Option<f64>,
    /// The greatest of them.
    pub(crate) ratio_max: Option<f64>,
    /// When commits of the workload were acknowledged.
    pub(crate) durability: &'static str,
}

/// Which way a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    /// Times and sizes.
    Lower,
    /// Rates.
    Higher,
}

/// What a set of samples is of.
#[derive(Debug, Clone)]
pub(crate) struct Measure {
    /// The workload's id.
    pub(crate) workload: &'static str,
    /// Which case of it.
    pub(crate) case: String,
    /// What was measured.
    pub(crate) metric: &'static str,
    /// In which unit.
    pub(crate) unit: &'static str,
    /// Which way it is good.
    pub(crate) better: Better,
    /// When commits were acknowledged.
    pub(crate) durability: &'static str,
}

impl Measure {
    /// A time or another cost.
    pub(crate) fn cost(workload: &'static str, metric: &'static str, unit: &'static str) -> Self {
        let (case, better, durability) = (String::new(), Better::Lower, READS_ONLY);
        Self { workload, case, metric, unit, better, durability }
    }

    /// A rate or another gain.
    pub(crate) fn gain(workload: &'static str, metric: &'static str, unit: &'static str) -> Self {
        Self { better: Better::Higher, ..Self::cost(workload, metric, unit) }
    }

    /// The same of one case.
    pub(crate) fn case(self, case: impl Into<String>) -> Self {
        Self { case: case.into(), ..self }
    }

    /// The same with commits.
    pub(crate) fn durability(self, durability: &'static str) -> Self {
        Self { durability, ..self }
    }
}

/// Commits are on the device when acknowledged.
pub(crate) const SYNC: &str = "sync";
/// Commits are handed to the operating system when acknowledged.
pub(crate) const RELAXED: &str = "relaxed";
/// No commit is timed.
pub(crate) const READS_ONLY: &str = "reads only";

/// The samples of one subject, one for each round.
pub(crate) type Samples = (&'static str, Vec<f64>);

/// All figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    all: Vec<Figure>,
    shown: usize,
}

impl Figures {
    /// Adds what was measured: a line for each rival, and for Duramen one against each of them.
    pub(crate) fn add(&mut self, measure: &Measure, samples: &[Samples]) {
        for (subject, values) in samples {
            let Some(summary) = Summary::of(values) else { continue };
            let alone = figure(measure, subject, summary);
            let rivals = samples.iter().filter(|(name, _)| *subject == DURAMEN && name != subject);
            let mut against = rivals.map(|(rival, theirs)| {
                let ratio = ratio(measure.better, values, theirs);
                Figure {
                    rival: Some(*rival),
                    ratio: ratio.map(|ratio| ratio.median),
                    ratio_min: ratio.map(|ratio| ratio.min),
                    ratio_max: ratio.map(|ratio| ratio.max),
                    ..alone.clone()
                }
            });
            match against.next() {
                None => self.all.push(alone),
                Some(first) => self.all.extend(std::iter::once(first).chain(against)),
            }
        }
    }

    /// Adds the percentiles of a subject's latencies, if it could tell them.
    pub(crate) fn add_percentiles(
        &mut self,
        measure: &Measure,
        subject: &'static str,
        latencies: &Latencies,
    ) {
        let shares = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];
        for (metric, share) in shares {
            let Some(micros) = latencies.quantile_us(share) else { continue };
            let measure = Measure { metric, unit: "us", ..measure.clone() };
            self.add(&measure, &[(subject, vec![micros])]);
        }
    }

    /// Adds the percentiles of all contestants.
    pub(crate) fn add_all_percentiles(&mut self, measure: &Measure, contestants: &[Contestant]) {
        for contestant in contestants {
            self.add_percentiles(measure, contestant.store.subject(), &contestant.latencies);
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Figure] {
        &self.all
    }

    /// Those added since the last call.
    pub(crate) fn fresh(&mut self) -> &[Figure] {
        let from = std::mem::replace(&mut self.shown, self.all.len());
        &self.all[from..]
    }

    /// Writes `figures.jsonl` and `figures.csv`.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let mut lines = Vec::new();
        let mut table = csv::Writer::from_writer(Vec::new());
        for figure in &self.all {
            serde_json::to_writer(&mut lines, figure)?;
            lines.push(b'\n');
            table.serialize(figure)?;
        }
        files::write(&folder.join("figures.jsonl"), &lines)?;
        files::write(&folder.join("figures.csv"), &table.into_inner()?)?;
        Ok(())
    }
}

fn figure(measure: &Measure, subject: &'static str, summary: Summary) -> Figure {
    Figure {
        workload: measure.workload,
        subject,
        case: measure.case.clone(),
        metric: measure.metric,
        unit: measure.unit,
        median: summary.median,
        min: summary.min,
        max: summary.max,
        rival: None,
        ratio: None,
        ratio_min: None,
        ratio_max: None,
        durability: measure.durability,
    }
}

fn ratio(better: Better, ours: &[f64], theirs: &[f64]) -> Option<Summary> {
    let pairs = ours.iter().zip(theirs);
    let ratios: Vec<f64> = pairs
        .map(|(ours, theirs)| match better {
            Better::Lower => theirs / ours,
            Better::Higher => ours / theirs,
        })
        .collect();
    Summary::of(&ratios).filter(|ratio| ratio.max.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_is_of_pairs_and_above_one_where_duramen_is_ahead() {
        let mut figures = Figures::default();
        let measure = Measure::cost("V2", "time_per_read", "us").case("warm");
        let samples = [(DURAMEN, vec![1.0, 2.0, 4.0]), ("sqlite", vec![10.0, 10.0, 20.0])];
        figures.add(&measure, &samples);
        let [ours, theirs] = figures.all() else { panic!("two figures") };
        assert_eq!((ours.rival, ours.ratio), (Some("sqlite"), Some(5.0)));
        assert_eq!((ours.ratio_min, ours.ratio_max), (Some(5.0), Some(10.0)));
        assert_eq!((theirs.subject, theirs.rival, theirs.median), ("sqlite", None, 10.0));
    }

    #[test]
    fn higher_rates_are_ahead() {
        let rates = ratio(Better::Higher, &[30.0], &[10.0]).unwrap();
        assert!((rates.median - 3.0).abs() < 1e-9);
    }

    #[test]
    fn files_have_a_line_for_each_figure() {
        let folder = tempfile::tempdir().unwrap();
        let mut figures = Figures::default();
        figures.add(&Measure::gain("V1", "commits_per_s", "1/s"), &[("sqlite", vec![5.0])]);
        figures.write(folder.path()).unwrap();
        let lines = files::read_text(&folder.path().join("figures.jsonl")).unwrap();
        let figure: serde_json::Value = serde_json::from_str(lines.trim()).unwrap();
        assert_eq!(figure["metric"], "commits_per_s");
        assert_eq!(figure["ratio"], serde_json::Value::Null);
        let table = files::read_text(&folder.path().join("figures.csv")).unwrap();
        assert_eq!(table.lines().count(), 2);
    }
}
