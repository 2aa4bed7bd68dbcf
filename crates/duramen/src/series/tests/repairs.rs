//! A repaired database has series as the old one has them, as of every commit, and what it has not
//! is told.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::Reopened;
use super::dumps::{Step, compare, dumped, options, play, step};
use super::rollups::{Seconds, compact, seconds};
use super::staging::{self, killed, read, series, staged, synced};
use crate::io::{Access, Device, MemoryDevice, read_exact_at, write_all_at};
use crate::{
    CommitOptions, CommitSequence, Database, Lost, Micros, Options, Points, Quality, RepairReport,
    Rollup, SeriesDefinition, ValueType,
};

fn repair(from: &MemoryDevice, options: &Options) -> (RepairReport, Database) {
    let to: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let devices: (Arc<dyn Device>, Arc<dyn Device>) = (Arc::new(from.clone()), Arc::clone(&to));
    let go_on = &mut |_| ControlFlow::Continue(());
    let report = Database::repair_device(devices, options, go_on).unwrap();
    (report, Database::open_device(to, options.clone()).unwrap())
}

fn told(report: &RepairReport) -> Vec<String> {
    report.lost.iter().map(ToString::to_string).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn a_repaired_sound_database_says_the_same_as_of_every_commit(
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let mut db = Reopened::new();
        for step in &steps {
            play(&mut db, step);
        }
        let (_, summary) = dumped(&db);
        db.db = None;
        let (report, repaired) = repair(&db.device, &options());
        prop_assert!(report.damage.is_empty());
        let is_of_deleted = |lost: &Lost| lost.what.ends_with("the series was deleted");
        prop_assert!(report.is_complete(), "{:?}", report.lost);
        prop_assert!(report.left_out.iter().all(is_of_deleted), "{:?}", report.left_out);
        let drops = steps.iter().filter(|step| matches!(step, Step::Drop(_))).count();
        prop_assert!(report.left_out.len() <= drops);
        db.reopen();
        prop_assert_eq!(dumped(&repaired).1, summary);
        compare(&db, &repaired);
    }
}

/// They once counted as lost, so that a sound database was told as one that is not.
#[test]
fn a_repair_tells_of_deleted_series_and_loses_nothing() {
    let mut db = Reopened::new();
    let plain = SeriesDefinition::new(ValueType::I64);
    for name in ["a", "b"] {
        let series = db.create_series(name, &plain).unwrap();
        series.append(Micros(1), 1, &CommitOptions::default()).unwrap();
    }
    let mut transaction = db.transaction();
    transaction.rename_series("b", "c").unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    let mut transaction = db.transaction();
    transaction.delete_series("a").unwrap();
    transaction.delete_series("c").unwrap();
    // Another series of a name that one had.
    transaction.create_series("a", &plain).unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    db.db = None;
    let (report, _) = repair(&db.device, &options());
    let of = |name| format!("database: series \"{name}\": all of it: the series was deleted");
    let left_out: Vec<String> = report.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(left_out, [of("a"), of("c")]);
    assert!(report.is_complete(), "{:?}", report.lost);
}

#[test]
fn a_repair_tells_of_windows_whose_points_were_dropped() {
    let clock = Arc::new(Seconds::default());
    let options = Options { clock: clock.clone(), ..options() };
    let device = Arc::new(MemoryDevice::new());
    let db = Database::open_device(device.clone(), options.clone()).unwrap();
    let definition = SeriesDefinition {
        keep: Some(Duration::from_secs(100)),
        rollups: vec![Rollup::new(Duration::from_secs(10))],
        ..SeriesDefinition::new(ValueType::F64)
    };
    let series = db.create_series("s", &definition).unwrap();
    clock.set(200);
    series.append_points(&seconds(0..200), &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    clock.set(250);
    compact(&db);
    assert_eq!(series.range(..).unwrap().read().unwrap().len(), 50);
    drop((series, db));
    let (report, repaired) = repair(&device, &options);
    let lost = "database: series \"s\": windows of 10s whose points are not there any more (15)";
    assert_eq!(told(&report), [lost]);
    let left = repaired.series("s").unwrap().range(..).unwrap().read().unwrap();
    assert_eq!(left.times()[0], 150_000_000);
}

/// Values that do not compress, so that they take several blocks.
fn noise(round: i64) -> Points {
    let mut points = Points::new(ValueType::F64);
    for time in 0..2_000 {
        let value = f64::from_bits((time * 5 + round).cast_unsigned().wrapping_mul(0x9e37_79b9));
        points.push(Micros(time * (round + 1)), value, Quality::GOOD).unwrap();
    }
    points
}

#[test]
fn what_a_repair_does_not_tell_as_lost_is_there_as_of_every_commit() {
    let mut db = Reopened::new();
    let mut times = Vec::new();
    for (round, name) in (0..8).zip(["a", "b"].into_iter().cycle()) {
        let known = db.series(name);
        let definition = SeriesDefinition::new(ValueType::F64);
        let series = known.or_else(|_| db.create_series(name, &definition)).unwrap();
        series.append_points(&noise(round), &CommitOptions::default()).unwrap();
        let span = Micros(round * 10)..Micros(round * 10 + 5);
        times.push(series.delete(span, &CommitOptions::default()).unwrap().timestamp);
        if round % 3 == 2 {
            db.checkpoint().unwrap();
        }
    }
    db.checkpoint().unwrap();
    let last = db.snapshot().sequence();
    // The journal may still have what segments lost.
    db.db = None;
    for name in db.device.list("journal").unwrap() {
        db.device.remove(&format!("journal/{name}")).unwrap();
    }
    let (_, whole) = repair(&db.device, &options());
    let mut right = 0;
    for name in db.device.list("segments").unwrap() {
        let path = format!("segments/{name}");
        let len = db.device.open(&path, Access::Read).unwrap().len().unwrap();
        for at in (50..len - 200).step_by(usize::try_from(len / 12).unwrap()) {
            let file = db.device.open(&path, Access::Write).unwrap();
            let mut before = [0; 6];
            read_exact_at(file.as_ref(), &mut before, at).unwrap();
            write_all_at(file.as_ref(), b"damage", at).unwrap();
            let (report, left) = repair(&db.device, &options());
            write_all_at(file.as_ref(), &before, at).unwrap();
            assert!(!report.damage.is_empty() && left.check().unwrap().is_clean());
            let told = told(&report).join("; ");
            if told.contains("said of series") {
                continue;
            }
            for name in ["a", "b"].into_iter().filter(|name| !told.contains(&format!("{name:?}"))) {
                assert!(left.series(name).is_ok(), "{path} {at}: {told}");
                let read = |db: &Database, at| {
                    db.series(name).unwrap().at(at).range(..).unwrap().read().unwrap()
                };
                for at in (0..=last.0).map(CommitSequence) {
                    assert_eq!(read(&left, at), read(&whole, at), "{name} {at}: {told}");
                }
                right += 1;
            }
            if told.contains("when some commits were made") {
                continue;
            }
            for time in &times {
                let at = |db: &Database| db.series("a").unwrap().at_time(*time).unwrap().sequence();
                assert_eq!(at(&left), at(&whole), "{told}");
            }
        }
    }
    assert!(right > 3, "{right}");
}

/// A killed process with points of two series staged, of which some were sealed and then deleted.
fn with_staged() -> MemoryDevice {
    let device = MemoryDevice::new();
    let db = staging::open(&device);
    let (level, other) = (series(&db, "level"), series(&db, "other"));
    level.append(Micros(0), 7, &synced()).unwrap();
    db.checkpoint().unwrap();
    level.append(Micros(1), 10, &staged()).unwrap();
    db.flush().unwrap();
    level.delete(Micros(1)..Micros(2), &synced()).unwrap();
    for time in 3..12 {
        level.append(Micros(time), time, &staged()).unwrap();
        other.append(Micros(time), -time, &staged()).unwrap();
    }
    killed(&device)
}

/// They were once neither taken over nor told.
#[test]
fn points_that_a_killed_process_had_staged_come_through_a_repair() {
    for is_manifest_gone in [false, true] {
        let device = with_staged();
        if is_manifest_gone {
            device.remove("MANIFEST").unwrap();
        }
        let files = device.list("staging").unwrap();
        let (report, repaired) = repair(&device, &options());
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(device.list("staging").unwrap(), files);
        let expected: Vec<_> = (3..12).map(|time| (time, time)).collect();
        assert_eq!(read(&repaired.series("level").unwrap()), [&[(0, 7)], &*expected].concat());
        let expected: Vec<_> = (3..12).map(|time| (time, -time)).collect();
        assert_eq!(read(&repaired.series("other").unwrap()), expected);
        // The next process to write would have found the same.
        if !is_manifest_gone {
            let found = staging::open(&device);
            for name in ["level", "other"] {
                let [found, repaired] = [&found, &repaired].map(|db| db.series(name).unwrap());
                assert_eq!(read(&found), read(&repaired), "{name}");
            }
        }
    }
}

/// Which of them became commits that are lost, and were deleted by others, is not known.
#[test]
fn staged_points_are_told_as_lost_where_commits_after_them_may_be() {
    let device = with_staged();
    for name in device.list("journal").unwrap() {
        device.remove(&format!("journal/{name}")).unwrap();
    }
    let (report, repaired) = repair(&device, &options());
    let told = told(&report);
    let is_told = |lost: &String| lost.contains("on their way into a commit, 18 at most");
    assert!(told.iter().any(is_told), "{told:?}");
    assert_eq!(read(&repaired.series("level").unwrap()), [(0, 7)]);
}
