//! The engines for analytics that T2 to T5 are measured against: they get the points that Duramen
//! gets, and what they answer must agree.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use duramen::{Points, Values};

use crate::files;
use crate::rivals::{AnalyticsEngine, SERIES_RIVALS};
use crate::session::Session;

/// By what share sums of floats may differ, as they were added in another order.
const SUMS_DIFFER: f64 = 1e-9;

/// The engines that take part, each with a table of its own, and the points for them.
pub(in crate::workloads) struct PointsRivals {
    engines: Vec<AnalyticsEngine>,
    file: PathBuf,
    count: u64,
}

/// What a query comes to.
#[derive(Debug, Clone, Copy)]
pub(in crate::workloads) struct Answer {
    pub(in crate::workloads) count: usize,
    pub(in crate::workloads) sum: f64,
}

impl PointsRivals {
    /// Starts them, and writes the points that they will load.
    pub(in crate::workloads) fn start(session: &mut Session, points: &Points) -> Result<Self> {
        let folder = session.new_folder("rivals");
        std::fs::create_dir_all(&folder)?;
        let start = |name| {
            let own = folder.join(name);
            std::fs::create_dir(&own)?;
            AnalyticsEngine::start_series(name, &own)
        };
        let engines = AnalyticsEngine::start_wanted(session.arguments(), &SERIES_RIVALS, &start)?;
        let Values::F64(values) = points.values() else { anyhow::bail!("the points are floats") };
        let mut bytes: Vec<u8> = points.times().iter().flat_map(|it| it.to_le_bytes()).collect();
        bytes.extend(values.iter().flat_map(|it| it.to_le_bytes()));
        let file = folder.join("points");
        files::write(&file, &bytes)?;
        Ok(Self { engines, file, count: points.len() as u64 })
    }

    /// Has each of them load the points anew, the same to each of some series, in batches; points a
    /// second, by engine.
    pub(in crate::workloads) fn load(
        &mut self,
        (series, batch): (u64, u64),
    ) -> Result<Vec<(&'static str, f64)>> {
        let command = format!("load {} {series} {batch}", self.file.display());
        let wanted = (self.count * series) as f64;
        let rates = self.engines.iter_mut().map(|engine| {
            let loaded = engine.query(&command)?;
            Ok((engine.name(), wanted / (loaded.micros / 1e6)))
        });
        rates.collect()
    }

    /// Has each of them compress its table; its bytes, by engine.
    pub(in crate::workloads) fn compact(&mut self) -> Result<Vec<(&'static str, f64)>> {
        let all = self.engines.iter_mut().map(|engine| {
            let bytes = engine.query("compact")?.rows.first().and_then(|row| row.first()?.as_f64());
            Ok((engine.name(), bytes.context("a table has a size")?))
        });
        all.collect()
    }

    /// Asks each of them the same; microseconds by engine, if the answer is the expected one.
    pub(in crate::workloads) fn ask(
        &mut self,
        question: &str,
        expected: Answer,
    ) -> Result<Vec<(&'static str, f64)>> {
        let all = self.engines.iter_mut().map(|engine| {
            let name = engine.name();
            let answer = engine.query(question)?;
            let row = answer.rows.first().context("an answer has a row")?;
            let count = row.first().and_then(serde_json::Value::as_u64);
            let sum = row.get(1).and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN);
            let is_near = (sum - expected.sum).abs() <= SUMS_DIFFER * expected.sum.abs();
            let is_right = count == Some(expected.count as u64) && is_near;
            ensure!(is_right, "{name} answers {question:?} with {row:?}: it is {expected:?}");
            Ok((name, answer.micros))
        });
        all.collect()
    }
}

/// Adds the sample of a round to those of each subject.
pub(in crate::workloads) fn note(
    samples: &mut Vec<(&'static str, Vec<f64>)>,
    round: Vec<(&'static str, f64)>,
) {
    for (name, sample) in round {
        match samples.iter_mut().find(|(known, _)| *known == name) {
            Some((_, all)) => all.push(sample),
            None => samples.push((name, vec![sample])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_subject_come_together() {
        let mut samples = vec![("one", vec![1.0])];
        note(&mut samples, vec![("two", 2.0), ("one", 3.0)]);
        assert_eq!(samples, [("one", vec![1.0, 3.0]), ("two", vec![2.0])]);
    }
}
