//! Series through crashes, backups and damage.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::io::{Access, Device, MemoryDevice};
use crate::series::block::tests::Numbers64;
use crate::{
    Aggregate, AggregateOptions, BackupFolder, BackupOptions, CommitOptions, Database,
    DatabaseStats, Durability, ErrorKind, Micros, Options, Points, Qualities, Quality,
    RangeOptions, RestorePoint, Series, SeriesDefinition, ValueType, Values, Windows,
};

fn options() -> Options {
    Options { background: false, durability: Durability::Interval(1_000), ..Options::default() }
}

fn open(device: &Arc<MemoryDevice>) -> Database {
    Database::open_device(device.clone(), options()).unwrap()
}

/// What is left when the process is killed now.
fn copy(device: &MemoryDevice) -> Arc<MemoryDevice> {
    let copied = Arc::new(MemoryDevice::new());
    for folder in ["journal", "segments", "staging"] {
        copied.create_dir(folder).unwrap();
        for name in device.list(folder).unwrap_or_default() {
            copy_file(device, &copied, &format!("{folder}/{name}"));
        }
    }
    copy_file(device, &copied, "MANIFEST");
    copied
}

fn copy_file(from: &MemoryDevice, to: &MemoryDevice, path: &str) {
    let file = from.open(path, Access::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    crate::io::read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
    let file = to.open(path, Access::Create).unwrap();
    crate::io::write_all_at(file.as_ref(), &bytes, 0).unwrap();
}

fn walk(first: i64, count: i64) -> Points {
    let times: Vec<i64> = (first..first + count).map(|at| at * 1_000).collect();
    let value = |&time: &i64| f64::from(i32::try_from(time % 7_919).unwrap()) / 100.0;
    let values: Vec<f64> = times.iter().map(value).collect();
    Points::from_columns(times, Values::F64(values), Qualities::All(Quality::GOOD)).unwrap()
}

fn all(series: &Series) -> Points {
    series.range(..).unwrap().read().unwrap()
}

fn compact(db: &Database) {
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
}

#[test]
fn points_are_there_after_the_process_was_killed() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let series = db.create_series("s", &SeriesDefinition::new(ValueType::F64)).unwrap();
    series.append_points(&walk(0, 100_000), &CommitOptions::default()).unwrap();
    series.append(Micros(500), 1.25, &CommitOptions::default()).unwrap();
    let after = open(&copy(&device));
    drop((series, db));
    let series = after.series("s").unwrap();
    assert_eq!(all(&series).len(), 100_001);
    assert_eq!(series.range(..Micros(1_000)).unwrap().read().unwrap().times(), [0, 500]);
}

#[test]
fn blocks_are_full_and_small_once_everything_is_compacted() {
    let db = open(&Arc::new(MemoryDevice::new()));
    let series = db.create_series("s", &SeriesDefinition::new(ValueType::F64)).unwrap();
    for part in 0..100 {
        series.append_points(&walk(part * 1_000, 1_000), &CommitOptions::default()).unwrap();
        if part % 9 == 0 {
            db.checkpoint().unwrap();
        }
    }
    compact(&db);
    let DatabaseStats { segments, segment_bytes, .. } = db.stats().unwrap();
    assert_eq!(segments, 1);
    assert!(segment_bytes < 200_000, "{segment_bytes} bytes for 100,000 points");
    assert_eq!(all(&series), walk(0, 100_000));
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn a_time_that_is_written_in_more_commits_than_fit_a_block_keeps_all_of_them() {
    let db = open(&Arc::new(MemoryDevice::new()));
    let series = db.create_series("s", &SeriesDefinition::new(ValueType::I64)).unwrap();
    let how = CommitOptions { durability: Some(Durability::Sync), ..CommitOptions::default() };
    let first = series.append(Micros(5), 0, &how).unwrap().sequence;
    for value in 1..40_000_i64 {
        series.append(Micros(5), value, &how).unwrap();
    }
    series.append(Micros(4), -1, &how).unwrap();
    series.append(Micros(6), -1, &how).unwrap();
    compact(&db);
    let read = |at: u64, reverse| {
        let options = crate::RangeOptions { reverse, ..crate::RangeOptions::default() };
        let snapshot = series.at(crate::CommitSequence(at));
        snapshot.range_with(.., &options).unwrap().read().unwrap()
    };
    for (ago, value) in [(0, 0), (1, 1), (20_000, 20_000), (39_999, 39_999)] {
        let points = read(first.0 + ago, false);
        assert_eq!(points.times(), [5]);
        assert_eq!(points.values(), &Values::I64(vec![value]));
        assert_eq!(read(first.0 + ago, true), points);
    }
    assert_eq!(read(u64::MAX, true).times(), [6, 5, 4]);
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn a_reader_beside_the_writer_sees_points_and_follows_them() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let series = db.create_series("s", &SeriesDefinition::new(ValueType::F64)).unwrap();
    series.append_points(&walk(0, 10), &CommitOptions::default()).unwrap();
    db.flush().unwrap();
    let reading = Options { read_only: true, ..options() };
    let reader = Database::open_device(device, reading).unwrap();
    assert_eq!(all(&reader.series("s").unwrap()).len(), 10);
    let how = CommitOptions::default();
    let refused = reader.series("s").unwrap().append(Micros(1), 1.0, &how).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied);
    series.append_points(&walk(10, 10), &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    reader.refresh().unwrap();
    assert_eq!(all(&reader.series("s").unwrap()).len(), 20);
}

#[test]
fn a_damaged_block_is_named_and_leaves_the_others_readable() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let series = db.create_series("s", &SeriesDefinition::new(ValueType::F64)).unwrap();
    series.append_points(&walk(0, 200_000), &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    drop((series, db));
    let path = "segments/00000001.segment";
    let file = device.open(path, Access::Write).unwrap();
    let middle = file.len().unwrap() / 2;
    let mut byte = [0];
    crate::io::read_exact_at(file.as_ref(), &mut byte, middle).unwrap();
    crate::io::write_all_at(file.as_ref(), &[!byte[0]], middle).unwrap();
    let db = open(&device);
    let series = db.series("s").unwrap();
    let error = series.range(..).unwrap().read().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let is_named = |error: &str, from: &str| {
        error.starts_with(&format!("series \"s\"{from}")) && error.contains(path)
    };
    assert!(is_named(&error.to_string(), ": "), "{error}");
    let error = series.range(Micros(7)..).unwrap().read().unwrap_err();
    assert!(is_named(&error.to_string(), ", from 1970-01-01T00:00:00.000007Z"), "{error}");
    let reverse = RangeOptions { reverse: true, ..RangeOptions::default() };
    let error = series.range_with(..=Micros(199_999_000), &reverse).unwrap().read().unwrap_err();
    assert!(is_named(&error.to_string(), ", up to 1970-01-01T00:02:"), "{error}");
    let mean = AggregateOptions::new(vec![Aggregate::Percentile(0.5)], Windows::whole());
    let error = series.snapshot().aggregate(.., &mean).unwrap_err();
    assert!(is_named(&error.to_string(), ", from 1970-01-01T00:0"), "{error}");
    let first = series.range(..Micros(10_000)).unwrap().read().unwrap();
    assert_eq!(first, walk(0, 10));
    assert_eq!(series.latest().unwrap().unwrap().time, Micros(199_999_000));
    assert!(!db.check().unwrap().is_clean());
}

/// Where the span has no bound its ends are looked for first, and these errors named no series.
#[test]
fn a_damaged_block_at_an_end_is_named_once() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let series = db.create_series("s", &SeriesDefinition::new(ValueType::F64)).unwrap();
    series.append_points(&walk(0, 200_000), &CommitOptions::default()).unwrap();
    // What was deleted has the first block be read.
    series.delete(..Micros(1), &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    drop((series, db));
    let file = device.open("segments/00000001.segment", Access::Write).unwrap();
    let near_begin = file.len().unwrap() / 20;
    let mut byte = [0];
    crate::io::read_exact_at(file.as_ref(), &mut byte, near_begin).unwrap();
    crate::io::write_all_at(file.as_ref(), &[!byte[0]], near_begin).unwrap();
    let db = open(&device);
    let series = db.series("s").unwrap();
    assert!(series.range(..Micros(5_000)).unwrap().read().is_err());
    let is_named = |error: &crate::Error| {
        let text = error.to_string();
        text.starts_with("series \"s\"") && text.matches("series").count() == 1
    };
    let options =
        || AggregateOptions::new(vec![Aggregate::Count], Windows::parse("10h", "UTC").unwrap());
    let error = series.snapshot().aggregate(.., &options()).unwrap_err();
    assert!(is_named(&error), "{error}");
    let error = db.snapshot().aggregate_series(&["s"], .., &options()).unwrap_err();
    assert!(is_named(&error), "{error}");
    let top = crate::TopOptions::new(Aggregate::Count);
    let error = db.snapshot().top_series(&crate::SeriesFilter::default(), .., &top).unwrap_err();
    assert!(is_named(&error), "{error}");
    let found = db.check().unwrap().findings;
    assert!(found.iter().any(|found| found.place == "series \"s\""), "{found:?}");
    assert!(found.iter().all(|found| !found.message.contains("series \"s\"")), "{found:?}");
}

#[test]
fn a_backup_is_restored_to_any_commit_and_time() {
    let db = open(&Arc::new(MemoryDevice::new()));
    let series = db.create_series("s", &SeriesDefinition::new(ValueType::F64)).unwrap();
    let other = db.create_series("t", &SeriesDefinition::new(ValueType::F64)).unwrap();
    let (mut states, how) = (Vec::new(), CommitOptions::default());
    for part in 0..12_i64 {
        let made = match part % 4 {
            3 => series.delete(Micros(part * 1_000)..Micros(part * 50_000), &how).unwrap(),
            // Late points fall into what is there.
            _ => series.append_points(&walk(40 * (part % 3), 100 + part), &how).unwrap(),
        };
        states.push((made, all(&series)));
        other.append_points(&walk(0, 10), &how).unwrap();
        if part % 5 == 1 {
            db.checkpoint().unwrap();
        }
    }
    let backups: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let folder = BackupFolder::on_device(backups);
    let go_on = &mut |_, _| ControlFlow::Continue(());
    db.backup(&folder, BackupOptions::default(), go_on).unwrap();
    let restored = |point| {
        let device = Arc::new(MemoryDevice::new());
        let to: Arc<dyn Device> = device.clone();
        Database::restore_device(&folder, &to, point, &mut |_, _| ControlFlow::Continue(()))
            .unwrap();
        let db = open(&device);
        let report = db.check().unwrap();
        assert!(report.is_clean(), "{point:?}: {:?}", report.findings);
        (all(&db.series("s").unwrap()), all(&db.series("t").unwrap()).len())
    };
    for (at, (made, state)) in states.iter().enumerate() {
        let others = if at == 0 { 0 } else { 10 };
        let expected = (state.clone(), others);
        assert_eq!(restored(RestorePoint::Commit(made.sequence)), expected, "part {at}");
        assert_eq!(restored(RestorePoint::Time(made.timestamp)), expected, "part {at}");
    }
    assert_eq!(restored(RestorePoint::Newest).0, all(&series));
}

#[test]
fn a_repair_takes_over_what_is_left_of_series() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let series = db.create_series("s", &SeriesDefinition::new(ValueType::F64)).unwrap();
    series.append_points(&walk(0, 200_000), &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    series.append(Micros(-5), 0.5, &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    drop((series, db));
    // The journal may still have what segments lost.
    for name in device.list("journal").unwrap() {
        device.remove(&format!("journal/{name}")).unwrap();
    }
    let file = device.open("segments/00000001.segment", Access::Write).unwrap();
    let middle = file.len().unwrap() / 2;
    crate::io::write_all_at(file.as_ref(), b"damage", middle).unwrap();
    let repaired = Arc::new(MemoryDevice::new());
    let devices: (Arc<dyn Device>, Arc<dyn Device>) = (device, repaired.clone());
    let go_on = &mut |_| ControlFlow::Continue(());
    let report = Database::repair_device(devices, &options(), go_on).unwrap();
    assert!(!report.is_complete());
    let told = report.lost.iter().any(|lost| lost.to_string().contains("series \"s\""));
    assert!(told, "{:?}", report.lost);
    let left = all(&open(&repaired).series("s").unwrap());
    assert!((100_000..200_000).contains(&left.len()), "{} points are left", left.len());
    assert_eq!(left.times()[0], -5);
}

/// Each of many pieces among each other took a look at all of them, and put them in order anew.
#[test]
fn points_that_come_in_no_order_are_read_and_stored_in_theirs() {
    const TIMES: u64 = 1 << 18;
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let series = db.create_series("s", &SeriesDefinition::new(ValueType::I64)).unwrap();
    let (mut expected, random) = (BTreeMap::new(), &mut Numbers64(5));
    for _ in 0..200 {
        let mut points = Points::new(ValueType::I64);
        for _ in 0..700 {
            // Some times are there in several commits.
            let value = random.next().cast_signed();
            let time = random.below(TIMES).cast_signed();
            points.push(Micros(time), value, Quality::GOOD).unwrap();
            expected.insert(time, value);
        }
        series.append_points(&points, &CommitOptions::default()).unwrap();
    }
    for _ in 0..2 {
        let points = series.range(..).unwrap().read().unwrap();
        assert!(points.times().iter().eq(expected.keys()));
        let Values::I64(values) = points.values() else { panic!("{points:?}") };
        assert!(values.iter().eq(expected.values()));
        db.checkpoint().unwrap();
    }
    assert!(db.check().unwrap().is_clean());
}
