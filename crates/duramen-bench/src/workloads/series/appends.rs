//! T1: points appended one by one, in turn to some series, beside what copying the same bytes costs
//! and what the device charges for a sync.
//!
//! The throughput pass looks at the clock once in many thousands of points, and goes on for a while
//! so that files, checkpoints and merges take their part. Latencies are taken in a pass of their
//! own, and contain that of two looks at the clock, which is told beside them.

use std::hint::black_box;
use std::time::Duration;

use anyhow::Result;
use duramen::{CommitOptions, Database, Durability, Micros, Series};

use super::{INTERVAL, SECOND, plant};
use crate::figures::{Measure, READS_ONLY, RELAXED, SYNC};
use crate::sampling::Latencies;
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;

/// Who costs no more than is asked for.
const FLOOR: &str = "floor";
const COUNTS: [usize; 3] = [1, 10, 100];
/// Points between two looks at the clock.
const PASS: u64 = 50_000;
/// Points of a burst, how many there are, and the pause between them.
const BURST: u64 = 10_000;
const BURSTS: usize = 5;
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes of a staged point, and of the memory that the floor writes.
const POINT_BYTES: usize = 32;
const COPIED_BYTES: usize = 1 << 20;
const SYNCS: u32 = 50;

/// Runs T1.
pub(crate) fn appends(session: &mut Session) -> Result<()> {
    floors(session)?;
    for count in COUNTS {
        rates(session, count)?;
        latencies(session, count)?;
    }
    bursts(session)?;
    threads(session)
}

fn measure(case: String, durability: &'static str) -> Measure {
    Measure::gain("T1", "points_per_s", "1/s").case(case).durability(durability)
}

fn options(durability: Durability) -> CommitOptions {
    CommitOptions { durability: Some(durability), ..CommitOptions::default() }
}

/// Appends points number `from` to `to`, in turn to all of the series.
fn append(series: &[Series], how: &CommitOptions, (from, to): (u64, u64)) -> Result<()> {
    let mut next = 0;
    for at in from..to {
        let at = at.cast_signed();
        series[next].append(Micros(SECOND + at * 1_000), at as f64, how)?;
        next = if next + 1 == series.len() { 0 } else { next + 1 };
    }
    Ok(())
}

fn with_series<T>(
    session: &mut Session,
    count: usize,
    work: impl FnOnce(&Database, &[Series]) -> Result<T>,
) -> Result<T> {
    let (folder, db, series) = plant(session, count)?;
    let done = work(&db, &series)?;
    drop(series);
    db.close()?;
    std::fs::remove_dir_all(folder)?;
    Ok(done)
}

/// Points a second: in `Interval` for as long as the scale says, in `Sync` a fixed number.
fn rates(session: &mut Session, count: usize) -> Result<()> {
    let points = session.scale.points;
    // As many as take a second at the rate that is wanted.
    for (durability, named, least) in
        [(INTERVAL, RELAXED, points * 20), (Durability::Sync, SYNC, points / 100)]
    {
        let how = options(durability);
        let mut rates = Vec::new();
        for _ in 0..session.scale.rounds.measured {
            rates.push(with_series(session, count, |_, series| {
                let (watch, mut done) = (Stopwatch::start(), 0);
                while done < least {
                    let pass = PASS.min(least - done);
                    append(series, &how, (done, done + pass))?;
                    done += pass;
                }
                Ok(done as f64 / watch.seconds())
            })?);
        }
        let case = format!("{count} tags/{named}");
        session.figures.add(&measure(case, named), &[(DURAMEN, rates)]);
    }
    Ok(())
}

fn latencies(session: &mut Session, count: usize) -> Result<()> {
    let points = session.scale.points;
    for (durability, named, wanted) in
        [(INTERVAL, RELAXED, points), (Durability::Sync, SYNC, points / 100)]
    {
        let how = options(durability);
        let latencies = with_series(session, count, |_, series| {
            let mut latencies = Latencies::new();
            for at in 0..wanted {
                let to = &series[usize::try_from(at)? % count];
                let time = Micros(SECOND + at.cast_signed() * 1_000);
                latencies.time(|| Ok(to.append(time, at as f64, &how)?))?;
            }
            Ok(latencies)
        })?;
        let measure = Measure::cost("T1", "time", "us").case(format!("{count} tags/{named}"));
        session.figures.add_percentiles(&measure.durability(named), DURAMEN, &latencies);
    }
    Ok(())
}

/// Bursts with pauses between them, and the flush after them.
fn bursts(session: &mut Session) -> Result<()> {
    let how = options(INTERVAL);
    let (mut rates, mut flushes) = (Vec::new(), Vec::new());
    for _ in 0..session.scale.rounds.measured {
        let (rate, flush) = with_series(session, 1, |db, series| {
            let mut seconds = 0.0;
            for burst in 0..BURSTS as u64 {
                let watch = Stopwatch::start();
                append(series, &how, (burst * BURST, (burst + 1) * BURST))?;
                seconds += watch.seconds();
                std::thread::sleep(PAUSE);
            }
            append(series, &how, (BURSTS as u64 * BURST, (BURSTS as u64 + 1) * BURST))?;
            let watch = Stopwatch::start();
            db.flush()?;
            Ok(((BURST * BURSTS as u64) as f64 / seconds, watch.micros()))
        })?;
        rates.push(rate);
        flushes.push(flush);
    }
    let case = format!("{BURSTS} bursts of {BURST}");
    session.figures.add(&measure(case.clone(), RELAXED), &[(DURAMEN, rates)]);
    let flush = Measure::cost("T1", "flush", "us").case(case).durability(RELAXED);
    session.figures.add(&flush, &[(DURAMEN, flushes)]);
    Ok(())
}

/// Two threads that append to series of their own.
fn threads(session: &mut Session) -> Result<()> {
    let points = session.scale.points * 10;
    let how = options(INTERVAL);
    let mut rates = Vec::new();
    for _ in 0..session.scale.rounds.measured {
        rates.push(with_series(session, 2, |_, series| {
            let watch = Stopwatch::start();
            std::thread::scope(|scope| {
                let all: Vec<_> = series
                    .chunks(1)
                    .map(|own| scope.spawn(|| append(own, &how, (0, points))))
                    .collect();
                all.into_iter().try_for_each(|one| one.join().expect("the thread panicked"))
            })?;
            Ok(2.0 * points as f64 / watch.seconds())
        })?);
    }
    session.figures.add(&measure("2 threads".to_owned(), RELAXED), &[(DURAMEN, rates)]);
    Ok(())
}

/// Copies of as many bytes as a point takes, two looks at the clock, and a sync.
fn floors(session: &mut Session) -> Result<()> {
    let mut memory = vec![0_u8; COPIED_BYTES];
    let points = session.scale.points * 20;
    let watch = Stopwatch::start();
    for at in 0..points {
        let mut point = [0; POINT_BYTES];
        point[8..16].copy_from_slice(&at.to_le_bytes());
        let place = usize::try_from(at)? * POINT_BYTES % COPIED_BYTES;
        memory[place..place + POINT_BYTES].copy_from_slice(black_box(&point));
    }
    black_box(&memory);
    let rate = points as f64 / watch.seconds();
    let copies = measure(format!("copies of {POINT_BYTES} bytes"), READS_ONLY);
    session.figures.add(&copies, &[(FLOOR, vec![rate])]);
    let mut clock = Latencies::new();
    (0..session.scale.points).try_for_each(|_| clock.time(|| Ok(())))?;
    let looks = Measure::cost("T1", "time", "us").case("two looks at the clock");
    session.figures.add_percentiles(&looks, FLOOR, &clock);
    let micros = session.probe.mean_us(SYNCS)?;
    let sync = Measure::cost("T1", "sync", "us").case("4 KiB").durability(SYNC);
    session.figures.add(&sync, &[(FLOOR, vec![micros])]);
    Ok(())
}
