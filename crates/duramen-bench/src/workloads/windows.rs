//! T4: means of windows over the points of T2, from blocks and from rollups; the other curves of
//! T5; and T6, writes with a query now and then.

use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Result, ensure};
use duramen::{
    Aggregate, AggregateOptions, CommitOptions, Database, Micros, Points, Qualities, Quality,
    Rollup, Series, SeriesDefinition, SeriesGrid, ValueType, Values, Windows,
};

use super::series::contest::{Answer, PointsRivals, note};
use super::series::{BATCH, SECOND, Walk, plant};
use crate::figures::{Measure, READS_ONLY, RELAXED};
use crate::random::SplitMix64;
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;

const SERIES: usize = 10;
const MINUTE: Duration = Duration::from_mins(1);
/// Queries of T4.
const QUERIES: u64 = 20;
/// Rounds of T6, writes in each, and after how many there is a query.
const ROUNDS: i64 = 1_000;
const WRITES: i64 = 10;
const QUERY_EVERY: i64 = 10;

/// Runs T4: the mean of each minute over ten series at once.
pub(crate) fn means(session: &mut Session) -> Result<()> {
    let points = session.scale.points;
    for case in ["blocks", "rollups"] {
        let (folder, db, series) = plant(session, SERIES)?;
        let names: Vec<String> = series.iter().map(|one| one.name().to_owned()).collect();
        if case == "rollups" {
            let mut transaction = db.transaction();
            for name in &names {
                let rollups = vec![Rollup::new(MINUTE)];
                let base = SeriesDefinition::new(ValueType::F64);
                transaction.change_series(name, &SeriesDefinition { rollups, ..base })?;
            }
            transaction.commit(&CommitOptions::default())?;
        }
        let all = Walk::new().points(points)?;
        for to in &series {
            to.append_points(&all, &CommitOptions::default())?;
        }
        compact(&db)?;
        let minutes =
            AggregateOptions::new(vec![Aggregate::Mean], Windows::of_width(Micros(60 * SECOND))?);
        let snapshot = db.snapshot();
        // Rollups have no counterpart among the rivals.
        let mut rivals = if case == "blocks" { Some(loaded(session, &all)?) } else { None };
        let mut times = Vec::new();
        for _ in 0..QUERIES {
            let watch = Stopwatch::start();
            let grid = snapshot.aggregate_series(&names, .., &minutes)?;
            note(&mut times, vec![(DURAMEN, watch.micros())]);
            let wanted = usize::try_from(points / 60)?;
            ensure!(grid.starts.len().abs_diff(wanted) <= 1, "{} windows", grid.starts.len());
            ensure!(grid.series.len() == SERIES, "{} series", grid.series.len());
            if let Some(rivals) = &mut rivals {
                note(&mut times, rivals.ask("means", answer(&grid))?);
            }
        }
        let case = format!("{} points/{case}", points * SERIES as u64);
        let measure = Measure::cost("T4", "time", "us").case(case).durability(READS_ONLY);
        session.figures.add(&measure, &times);
        drop((series, snapshot));
        db.close()?;
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}

/// The rivals with the points of a series in each of ten.
fn loaded(session: &mut Session, points: &Points) -> Result<PointsRivals> {
    let mut rivals = PointsRivals::start(session, points)?;
    rivals.load((SERIES as u64, BATCH))?;
    rivals.compact()?;
    Ok(rivals)
}

/// What all windows come to.
fn answer(grid: &SeriesGrid) -> Answer {
    let (mut count, mut sum) = (0, 0.0);
    for column in grid.series.iter().flatten() {
        for mean in (0..grid.starts.len()).filter_map(|at| column.get(at)?.as_f64()) {
            count += 1;
            sum += mean;
        }
    }
    Answer { count, sum }
}

/// Runs the other curves of T5: what a point takes once it is compacted.
pub(crate) fn curves(session: &mut Session) -> Result<()> {
    let points = session.scale.points;
    // Of a walk what a point takes depends on where it is: larger values have fewer bits below.
    for (case, start) in [("index", 0.0), ("walk", 20.0), ("walk/from 100", 100.0), ("hold", 20.0)]
    {
        let (folder, db, series) = plant(session, 1)?;
        let mut value = start;
        let (mut held, mut random) = (value, SplitMix64::new(7));
        let (mut times, mut values) = (Vec::new(), Vec::new());
        for at in 0..points {
            value += 0.05 * normal(&mut random);
            let value = match case {
                "index" => at as f64,
                "hold" => {
                    if (value - held).abs() > 0.5 {
                        held = value;
                    }
                    held
                }
                _ => value,
            };
            times.push(SECOND + at.cast_signed() * 1_000);
            values.push(value);
        }
        append(&series[0], times, values)?;
        compact(&db)?;
        let bytes = db.stats()?.segment_bytes as f64 / points as f64;
        let measure = Measure::cost("T5", "bytes_per_point", "bytes").case(case);
        session.figures.add(&measure.durability(RELAXED), &[(DURAMEN, vec![bytes])]);
        drop(series);
        db.close()?;
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}

/// Runs T6: rounds of ten writes, and a query of all points every tenth round.
pub(crate) fn mixed(session: &mut Session) -> Result<()> {
    let mut rates = Vec::new();
    for _ in 0..session.scale.rounds.measured {
        let (folder, db, series) = plant(session, 1)?;
        let how = CommitOptions::default();
        let (watch, mut operations) = (Stopwatch::start(), 0_u64);
        for round in 0..ROUNDS {
            for write in 0..WRITES {
                let at = round * WRITES + write;
                series[0].append(Micros(SECOND + at * 1_000), at as f64, &how)?;
            }
            operations += WRITES.unsigned_abs();
            if (round + 1) % QUERY_EVERY == 0 {
                let found = series[0].range(..)?.read()?.len();
                let wanted = usize::try_from((round + 1) * WRITES)?;
                ensure!(found == wanted, "{found} points were read");
                operations += 1;
            }
        }
        rates.push(operations as f64 / watch.seconds());
        drop(series);
        db.close()?;
        std::fs::remove_dir_all(folder)?;
    }
    let measure = Measure::gain("T6", "ops_per_s", "1/s").durability(RELAXED);
    session.figures.add(&measure, &[(DURAMEN, rates)]);
    Ok(())
}

/// Nearly normal: twelve uniform numbers less their mean.
fn normal(random: &mut SplitMix64) -> f64 {
    let sum: u64 = (0..12).map(|_| random.below(1 << 40)).sum();
    sum as f64 / (1_u64 << 40) as f64 - 6.0
}

fn append(series: &Series, times: Vec<i64>, values: Vec<f64>) -> Result<()> {
    let good = Qualities::All(Quality::GOOD);
    let points = Points::from_columns(times, Values::F64(values), good)?;
    series.append_points(&points, &CommitOptions::default())?;
    Ok(())
}

fn compact(db: &Database) -> Result<()> {
    Ok(db.compact(&mut |_, _| ControlFlow::Continue(()))?)
}
