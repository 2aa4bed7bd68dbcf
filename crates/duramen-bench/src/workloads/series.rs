//! T: points of series: appended one by one (T1) and in batches (T2, T2s), and read (T3), with the
//! bytes that a point takes (T5).

mod appends;
pub(super) mod contest;

use std::ops::{ControlFlow, Range};

use anyhow::{Result, ensure};
use duramen::{
    CommitOptions, Database, Durability, Options, Points, Qualities, Quality, Series,
    SeriesDefinition, ValueType, Values,
};

use crate::figures::{Measure, READS_ONLY, RELAXED, SYNC};
use crate::random::SplitMix64;
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;

pub(crate) use appends::appends;
use contest::{Answer, PointsRivals, note};

/// Milliseconds for which an acknowledged append may be lost with the power.
const INTERVAL: Durability = Durability::Interval(100);
pub(super) const SECOND: i64 = 1_000_000;
/// Series of a batch.
const SERIES: usize = 10;
/// Points of a batch, and of one in `Sync` durability.
pub(super) const BATCH: u64 = 100_000;
const SYNC_BATCH: u64 = 1_000;
/// Points that are read, and how often.
const READS: [(u64, u64); 2] = [(7_000, 100), (70_000, 50)];

/// Runs T2 and T2s: a walk of two decimals appended to ten series in batches; then T5, what its
/// points take once they are compacted.
pub(crate) fn batches(session: &mut Session) -> Result<()> {
    let cases = [("T2", INTERVAL, RELAXED, BATCH), ("T2s", Durability::Sync, SYNC, SYNC_BATCH)];
    let wanted = session.scale.points * SERIES as u64;
    let points = Walk::new().points(session.scale.points)?;
    let mut rivals = PointsRivals::start(session, &points)?;
    for (id, durability, named, batch) in cases {
        let (mut rates, mut bytes, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..session.scale.rounds.measured {
            let loaded = load(session, durability, (batch, wanted))?;
            note(&mut rates, vec![(DURAMEN, loaded.rate)]);
            ratios.push(loaded.ratio);
            if durability == INTERVAL {
                note(&mut rates, rivals.load((SERIES as u64, batch))?);
                let sizes = rivals.compact()?.into_iter();
                note(&mut bytes, vec![(DURAMEN, loaded.bytes)]);
                note(&mut bytes, sizes.map(|(name, all)| (name, all / wanted as f64)).collect());
            }
        }
        let case = format!("{batch} points a batch");
        let measure = Measure::gain(id, "points_per_s", "1/s").case(&case).durability(named);
        session.figures.add(&measure, &rates);
        if durability == INTERVAL {
            let measure = Measure::cost("T5", "bytes_per_point", "bytes").case("walk2");
            session.figures.add(&measure.durability(named), &bytes);
        } else {
            let ratio = Measure::gain(id, "ratio_to_probe", "commits/sync of probe");
            session.figures.add(&ratio.case(case).durability(named), &[(DURAMEN, ratios)]);
        }
    }
    Ok(())
}

/// What a load came to.
struct Loaded {
    /// Points a second.
    rate: f64,
    /// The bytes that each takes in the end.
    bytes: f64,
    /// The time that the device takes for a sync for each batch, as a share of what they took.
    ratio: f64,
}

fn load(
    session: &mut Session,
    durability: Durability,
    (batch, wanted): (u64, u64),
) -> Result<Loaded> {
    let (folder, db, series) = plant(session, SERIES)?;
    let how = CommitOptions { durability: Some(durability), ..CommitOptions::default() };
    let mut walk = Walk::new();
    let (mut seconds, mut synced, mut done) = (0.0, 0.0, 0);
    // Each turn of batches stands between two looks at the device, where it waits for that.
    let probes = if durability == Durability::Sync { u32::try_from(SERIES)? } else { 0 };
    while done < wanted {
        let points = walk.points(batch)?;
        let before = session.probe.mean_us(probes)?;
        let watch = Stopwatch::start();
        for to in &series {
            to.append_points(&points, &how)?;
            done += batch;
        }
        seconds += watch.seconds();
        let sync_us = before.midpoint(session.probe.mean_us(probes)?);
        synced += sync_us * SERIES as f64 / 1e6;
    }
    let watch = Stopwatch::start();
    db.flush()?;
    let ratio = synced / seconds;
    let rate = done as f64 / (seconds + watch.seconds());
    db.compact(&mut |_, _| ControlFlow::Continue(()))?;
    let bytes = db.stats()?.segment_bytes as f64 / done as f64;
    drop(series);
    db.close()?;
    std::fs::remove_dir_all(folder)?;
    Ok(Loaded { rate, bytes, ratio })
}

/// Runs T3: all points of a series, from memory and from segments: copied, and visited where they
/// lie.
pub(crate) fn ranges(session: &mut Session) -> Result<()> {
    for (count, reads) in READS {
        let (folder, db, series) = plant(session, 1)?;
        let points = Walk::new().points(count)?;
        let expected = Answer { count: points.len(), sum: sum(&points, 0..points.len()) };
        series[0].append_points(&points, &CommitOptions::default())?;
        let mut rivals = PointsRivals::start(session, &points)?;
        rivals.load((1, count))?;
        rivals.compact()?;
        for state in ["young", "checkpointed", "compacted"] {
            match state {
                "checkpointed" => db.checkpoint()?,
                "compacted" => db.compact(&mut |_, _| ControlFlow::Continue(()))?,
                _ => {}
            }
            let (mut times, mut visits) = (Vec::new(), Vec::new());
            for _ in 0..reads {
                let watch = Stopwatch::start();
                let found = series[0].range(..)?.read()?;
                note(&mut times, vec![(DURAMEN, watch.micros())]);
                ensure!(found.len() == expected.count, "{} points were read", found.len());
                if state == "compacted" {
                    note(&mut times, rivals.ask("range 0", expected)?);
                }
                visits.push(visit(&series[0], expected)?);
            }
            let case = format!("{count}/{state}");
            let measure = Measure::cost("T3", "time", "us").durability(READS_ONLY);
            session.figures.add(&measure.clone().case(&case), &times);
            session.figures.add(&measure.case(case + "/visited"), &[(DURAMEN, visits)]);
        }
        drop(series);
        db.close()?;
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}

/// Microseconds to get at all points where they lie. They are added up in another visit: what is
/// copied is not added up either, and that takes longer than to get at them.
fn visit(series: &Series, expected: Answer) -> Result<f64> {
    let mut count = 0;
    let watch = Stopwatch::start();
    series.range(..)?.visit(|_, places| {
        count += places.len();
        ControlFlow::Continue(())
    })?;
    let micros = watch.micros();
    ensure!(count == expected.count, "{count} points were visited");
    let mut all = 0.0;
    series.range(..)?.visit(|points, places| {
        all += sum(points, places);
        ControlFlow::Continue(())
    })?;
    ensure!((all - expected.sum).abs() < 1e-6 * expected.sum.abs(), "their sum is {all}");
    Ok(micros)
}

fn sum(points: &Points, places: Range<usize>) -> f64 {
    match points.values() {
        Values::F64(values) => values[places].iter().sum(),
        _ => f64::NAN,
    }
}

/// A new database with some series.
pub(super) fn plant(
    session: &mut Session,
    count: usize,
) -> Result<(std::path::PathBuf, Database, Vec<Series>)> {
    let folder = session.new_folder("series");
    let db = Database::open(&folder, Options::default())?;
    let names: Vec<_> = (0..count)
        .map(|at| (format!("plant/{at}"), SeriesDefinition::new(ValueType::F64)))
        .collect();
    db.create_series_all(&names)?;
    let series = names.iter().map(|(name, _)| db.series(name)).collect::<Result<_, _>>()?;
    Ok((folder, db, series))
}

/// A random walk of two decimals, a point a second.
pub(super) struct Walk {
    random: SplitMix64,
    cents: i32,
    time: i64,
}

impl Walk {
    pub(super) fn new() -> Self {
        Self { random: SplitMix64::new(7), cents: 2_000, time: SECOND }
    }

    pub(super) fn points(&mut self, count: u64) -> Result<Points> {
        let (mut times, mut values) = (Vec::new(), Vec::new());
        for _ in 0..count {
            // The sum of twelve uniform numbers is nearly normal, here with a deviation of 5 cents.
            let sum: u64 = (0..12).map(|_| self.random.below(1_000)).sum();
            self.cents += ((i32::try_from(sum)? - 5_994) * 5 + 500).div_euclid(1_000);
            times.push(self.time);
            values.push(f64::from(self.cents) / 100.0);
            self.time += SECOND;
        }
        let qualities = Qualities::All(Quality::GOOD);
        Ok(Points::from_columns(times, Values::F64(values), qualities)?)
    }
}
