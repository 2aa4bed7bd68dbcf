//! Points that are staged before they become commits.

use std::sync::Arc;

use crate::io::{Access, Device, MemoryDevice, read_exact_at, write_all_at};
use crate::{
    CommitOptions, CommitSequence, Database, Durability, ErrorKind, Lossy, Micros, Options, Points,
    Quality, Series, SeriesDefinition, SeriesValue, Thinning, ValueType, Values,
};

/// Points that have to be durable after a long time, so that nothing but the test has them sealed.
pub(super) fn staged() -> CommitOptions {
    let durability = Some(Durability::Interval(1_000_000));
    CommitOptions { durability, ..CommitOptions::default() }
}

pub(super) fn synced() -> CommitOptions {
    CommitOptions { durability: Some(Durability::Sync), ..CommitOptions::default() }
}

pub(super) fn open(device: &MemoryDevice) -> Database {
    let options = Options {
        background: false,
        // A bank has 30 points.
        checkpoint_journal_bytes: 16 << 10,
        ..Options::default()
    };
    Database::open_device(Arc::new(device.clone()), options).unwrap()
}

pub(super) fn series(db: &Database, name: &str) -> Series {
    db.create_series(name, &SeriesDefinition::new(ValueType::I64)).unwrap()
}

/// What the next process finds if this one is killed now.
pub(super) fn killed(device: &MemoryDevice) -> MemoryDevice {
    let copy = MemoryDevice::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for name in device.list(&folder).unwrap() {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let Ok(file) = device.open(&path, Access::Read) else {
                folders.push(path);
                continue;
            };
            let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
            read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
            let file = copy.open(&path, Access::Create).unwrap();
            write_all_at(file.as_ref(), &bytes, 0).unwrap();
        }
    }
    copy
}

pub(super) fn read(series: &Series) -> Vec<(i64, i64)> {
    let points = series.range(..).unwrap().read().unwrap();
    let told = points.iter().map(|point| match point.value {
        SeriesValue::I64(value) => (point.time.0, value),
        other => panic!("{other}"),
    });
    told.collect()
}

#[test]
fn a_killed_process_loses_no_point() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let level = series(&db, "level");
    let before = db.snapshot().sequence();
    for time in 0..20 {
        let committed = level.append(Micros(time), time * 2, &staged()).unwrap();
        assert_eq!(committed.sequence, CommitSequence(0));
    }
    assert_eq!(db.snapshot().sequence(), before, "nothing was sealed");
    let next = killed(&device);
    let found = open(&next);
    let expected: Vec<_> = (0..20).map(|time| (time, time * 2)).collect();
    assert_eq!(found.snapshot().sequence(), CommitSequence(before.0 + 1), "one commit");
    assert_eq!(read(&found.series("level").unwrap()), expected);
    assert!(found.check().unwrap().findings.is_empty());
    // The files of the process before are gone with their points.
    assert!(next.list("staging").unwrap().is_empty());
}

#[test]
fn points_that_are_staged_together_are_stored_as_the_series_says() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let mut definition = SeriesDefinition::new(ValueType::F64);
    let mut make = |name: &str, lossy| {
        definition.lossy = Some(lossy);
        db.create_series(name, &definition).unwrap()
    };
    let door = Thinning::SwingingDoor { tolerance: 0.25, gap_us: None };
    let thin = make("thin", Lossy::Thinned(door));
    let steps = make("steps", Lossy::Quantised { low: 0.0, high: 100.0 });
    // A line with a corner, and a point of another quality on it.
    let value = |time: i64| if time < 12 { f64::from(i32::try_from(time).unwrap()) } else { 12.0 };
    for time in 0..20 {
        let quality = if time == 5 { Quality::BAD } else { Quality::GOOD };
        thin.append_with_quality((Micros(time), quality), value(time), &staged()).unwrap();
    }
    for time in 0..5 {
        steps.append(Micros(time), value(time) + 0.000_4, &staged()).unwrap();
    }
    let found = open(&killed(&device));
    let all = found.series("thin").unwrap().range(..).unwrap().read().unwrap();
    assert_eq!(all.len(), 20, "a killed process leaves each of them");
    let points = thin.range(..).unwrap().read().unwrap();
    assert_eq!(points.times(), [0, 4, 5, 6, 12, 19]);
    let values = steps.range(..).unwrap().read().unwrap();
    let Values::F64(values) = values.values() else { panic!("{values:?}") };
    assert_eq!(values[..], [0.0, 1.0, 2.0, 3.0, 4.0]);
    // From now on all of them stay.
    let mut transaction = db.transaction();
    transaction.change_series("thin", &SeriesDefinition::new(ValueType::F64)).unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    let exact = db.series("thin").unwrap();
    for time in 20..30 {
        exact.append(Micros(time), value(time), &staged()).unwrap();
    }
    assert_eq!(exact.range(Micros(20)..).unwrap().read().unwrap().len(), 10);
    // A handle from before went on to leave points out.
    let mut more = Points::new(ValueType::F64);
    for time in 30..40 {
        thin.append(Micros(time), value(time), &staged()).unwrap();
        more.push(Micros(time + 10), value(time), Quality::GOOD).unwrap();
    }
    thin.append_points(&more, &CommitOptions::default()).unwrap();
    assert_eq!(exact.range(Micros(30)..).unwrap().read().unwrap().len(), 20);
}

#[test]
fn readers_of_the_head_see_a_point_at_once_and_snapshots_do_not() {
    let db = open(&MemoryDevice::new());
    let level = series(&db, "level");
    let before = db.snapshot();
    level.append_with_quality((Micros(5), Quality::BAD), 7, &staged()).unwrap();
    assert!(db.snapshot().series("level").unwrap().latest().unwrap().is_none());
    let other = db.series("level").unwrap();
    let point = other.latest().unwrap().unwrap();
    assert_eq!((point.time, point.quality), (Micros(5), Quality::BAD));
    assert_eq!(db.snapshot().series("level").unwrap().latest().unwrap(), Some(point));
    assert!(before.series("level").unwrap().latest().unwrap().is_none());
}

#[test]
fn what_is_written_later_holds_whichever_way_it_came() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let (level, other) = (series(&db, "level"), series(&db, "other"));
    level.append(Micros(1), 10, &staged()).unwrap();
    level.append(Micros(1), 11, &synced()).unwrap();
    level.append(Micros(2), 20, &synced()).unwrap();
    level.append(Micros(2), 21, &staged()).unwrap();
    other.append(Micros(9), 90, &staged()).unwrap();
    level.append(Micros(3), 30, &staged()).unwrap();
    level.delete(Micros(3)..Micros(4), &synced()).unwrap();
    let mut transaction = db.transaction();
    other.append(Micros(9), 91, &staged()).unwrap();
    transaction.delete_points("other", ..).unwrap();
    transaction.commit(&synced()).unwrap();
    for db in [db, open(&killed(&device))] {
        assert_eq!(read(&db.series("level").unwrap()), [(1, 11), (2, 21)]);
        assert_eq!(read(&db.series("other").unwrap()), []);
    }
}

#[test]
fn a_sealed_point_is_not_found_again() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let level = series(&db, "level");
    level.append(Micros(1), 10, &staged()).unwrap();
    db.flush().unwrap();
    let sequence = db.snapshot().sequence();
    // The journal has the seal, and the file still has the point.
    assert_eq!(open(&killed(&device)).snapshot().sequence(), sequence);
    level.delete(.., &synced()).unwrap();
    db.checkpoint().unwrap();
    // The journal has no seal any more.
    let found = open(&killed(&device));
    assert_eq!(read(&found.series("level").unwrap()), []);
    assert_eq!(found.snapshot().sequence(), CommitSequence(sequence.0 + 1));
}

/// A checkpoint that commits bring about leaves points staged, which come after it.
#[test]
fn a_point_that_was_staged_before_a_checkpoint_is_found_after_it() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let level = series(&db, "level");
    level.append(Micros(1), 10, &staged()).unwrap();
    let document = db.create_document("document").unwrap();
    let before = db.snapshot().sequence();
    for number in 0..40 {
        let text = format!("\"{}\"", number.to_string().repeat(4_000));
        document.put(text, &synced()).unwrap();
    }
    assert!(db.stats().unwrap().segments > 0, "nobody wrote a checkpoint");
    assert_eq!(db.snapshot().sequence(), CommitSequence(before.0 + 40), "nothing was sealed");
    let found = open(&killed(&device));
    assert_eq!(read(&found.series("level").unwrap()), [(1, 10)]);
}

#[test]
fn more_points_than_the_banks_take_are_sealed_on_the_way() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let all: Vec<_> = (0..3).map(|number| series(&db, &format!("s{number}"))).collect();
    let mut expected = vec![Vec::new(); all.len()];
    for time in 0..1_000 {
        let number = usize::try_from(time * 7 % 3).unwrap();
        all[number].append(Micros(time), -time, &staged()).unwrap();
        expected[number].push((time, -time));
    }
    let found = open(&killed(&device));
    for db in [db, found] {
        for (number, expected) in expected.iter().enumerate() {
            assert_eq!(read(&db.series(&format!("s{number}")).unwrap()), *expected);
        }
        assert!(db.check().unwrap().findings.is_empty());
    }
}

#[test]
fn closing_seals_and_leaves_no_files_but_those_of_others() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let level = series(&db, "level");
    level.append(Micros(1), 10, &staged()).unwrap();
    assert_eq!(device.list("staging").unwrap().len(), 1);
    device.open("staging/notes", Access::Create).unwrap();
    drop(level);
    db.close().unwrap();
    assert_eq!(device.list("staging").unwrap(), ["notes"]);
    assert_eq!(read(&open(&device).series("level").unwrap()), [(1, 10)]);
    assert_eq!(device.list("staging").unwrap(), ["notes"]);
}

/// The journal ends with the mark of an orderly end then.
#[test]
fn points_are_found_of_a_process_that_committed_nothing() {
    let device = MemoryDevice::new();
    let db = open(&device);
    series(&db, "level");
    db.close().unwrap();
    let db = open(&device);
    db.series("level").unwrap().append(Micros(1), 10, &staged()).unwrap();
    let next = killed(&device);
    for _ in 0..2 {
        let found = open(&next);
        let level = found.series("level").unwrap();
        assert_eq!(read(&level), [(1, 10)]);
        level.append(Micros(1), 10, &synced()).unwrap();
        drop(level);
        found.close().unwrap();
    }
}

#[test]
fn every_point_of_every_thread_is_there_in_its_order() {
    const THREADS: i64 = 4;
    const POINTS: i64 = 2_000;
    let device = MemoryDevice::new();
    let db = open(&device);
    let shared = series(&db, "shared");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (own, shared) = (series(&db, &format!("own{thread}")), shared.clone());
            scope.spawn(move || {
                for number in 0..POINTS {
                    // The last one written of a time holds.
                    own.append(Micros(number / 2), number, &staged()).unwrap();
                    shared.append(Micros(number * THREADS + thread), number, &staged()).unwrap();
                }
            });
        }
    });
    let next = killed(&device);
    for db in [db, open(&next)] {
        for thread in 0..THREADS {
            let own = read(&db.series(&format!("own{thread}")).unwrap());
            let expected: Vec<_> = (0..POINTS / 2).map(|time| (time, time * 2 + 1)).collect();
            assert_eq!(own, expected);
        }
        let expected: Vec<_> = (0..POINTS * THREADS).map(|time| (time, time / THREADS)).collect();
        assert_eq!(read(&db.series("shared").unwrap()), expected);
    }
}

#[test]
fn a_thread_seals_when_the_interval_is_over() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let db = Database::open_device(device, Options::default()).unwrap();
    let level = series(&db, "level");
    let durability = Some(Durability::Interval(1));
    let options = CommitOptions { durability, ..CommitOptions::default() };
    level.append(Micros(1), 10, &options).unwrap();
    let seen = || db.snapshot().series("level").unwrap().latest().unwrap();
    while seen().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(read(&level), [(1, 10)]);
}

#[test]
fn what_an_append_refuses_a_staged_one_refuses_too() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let level = series(&db, "level");
    let kind = |done: crate::Result<crate::Committed>| done.unwrap_err().kind();
    assert_eq!(kind(level.append(Micros(1), 1.5, &staged())), ErrorKind::Invalid);
    level.append(Micros(1), 10, &staged()).unwrap();
    let mut transaction = db.transaction();
    transaction.rename_series("level", "height").unwrap();
    transaction.commit(&synced()).unwrap();
    assert_eq!(kind(level.append(Micros(2), 20, &staged())), ErrorKind::NotFound);
    let height = db.series("height").unwrap();
    height.append(Micros(2), 20, &staged()).unwrap();
    let mut transaction = db.transaction();
    transaction.delete_series("height").unwrap();
    transaction.commit(&synced()).unwrap();
    assert_eq!(kind(height.append(Micros(3), 30, &staged())), ErrorKind::NotFound);
    series(&db, "height");
    assert_eq!(kind(height.append(Micros(3), 30, &staged())), ErrorKind::NotFound);
    let options = Options { read_only: true, ..Options::default() };
    let reader = Database::open_device(Arc::new(device.clone()), options).unwrap();
    let height = reader.series("height").unwrap();
    assert_eq!(kind(height.append(Micros(4), 40, &staged())), ErrorKind::Denied);
}

#[test]
fn text_and_points_with_an_author_are_commits_of_their_own() {
    let db = open(&MemoryDevice::new());
    let state = db.create_series("state", &SeriesDefinition::new(ValueType::String)).unwrap();
    let told = state.append(Micros(1), "on", &staged()).unwrap();
    assert_eq!(told.sequence, db.snapshot().sequence());
    let level = series(&db, "level");
    let options = CommitOptions { author: Some("ann".to_owned()), ..staged() };
    let told = level.append(Micros(1), 10, &options).unwrap();
    assert_eq!(told.sequence, db.snapshot().sequence());
}

/// Whoever sealed a point before it was said when it is due left that behind, and the thread that
/// seals went round and round until the next point came.
#[test]
fn nothing_is_due_where_nothing_is_staged() {
    let db = open(&MemoryDevice::new());
    let level = series(&db, "level");
    let engine = &db.engine;
    for due in [Micros(0), engine.clock().now()] {
        assert!(engine.staging.set_due(due));
        engine.seal_durably().unwrap();
        assert_eq!(engine.staging.due(), None);
    }
    level.append(Micros(5), 7, &staged()).unwrap();
    let due = engine.staging.due();
    assert!(due.is_some_and(|due| due > engine.clock().now()));
    assert!(!engine.staging.settle_due(Micros(0)));
    assert_eq!(engine.staging.due(), due, "it is not due yet");
    assert!(engine.staging.settle_due(due.unwrap()), "there is a point to seal");
    engine.seal_durably().unwrap();
    assert_eq!(engine.staging.due(), None);
}
