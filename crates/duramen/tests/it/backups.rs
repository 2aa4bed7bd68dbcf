//! Backups: made beside writers, built upon each other, restored to any commit, and refused when
//! they do not verify.

use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use duramen::io::{Access, Device, Lock, MemoryDevice};
use duramen::{
    Backup, BackupFolder, BackupOptions, BackupReport, CommitOptions, CommitSequence, Database,
    DatabaseSnapshot, Destination, DocumentOptions, Error, ErrorKind, JsonPointer, Micros, Options,
    Pruned, RestorePoint, Revision, SeriesDefinition, ValueType,
};

use crate::damage::{device_of, files_of};

const FULL: BackupOptions = BackupOptions { incremental: false, verify: true };
const INCREMENTAL: BackupOptions = BackupOptions { incremental: true, verify: true };

fn go_on(_done: u64, _total: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn options() -> Options {
    Options { background: false, ..Options::default() }
}

fn by(author: &str) -> CommitOptions {
    CommitOptions { author: Some(author.into()), message: Some("why".into()), ..Default::default() }
}

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

/// A folder of backups in memory, with its files.
fn folder() -> (BackupFolder, Arc<dyn Device>) {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    (BackupFolder::on_device(Arc::clone(&device)), device)
}

fn back_up(db: &Database, folder: &BackupFolder, options: BackupOptions) -> BackupReport {
    db.backup(folder, options, &mut go_on).unwrap()
}

fn restore(destination: &dyn Destination, point: RestorePoint) -> Result<Database, Error> {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    Database::restore_device(destination, &device, point, &mut go_on)?;
    let db = Database::open_device(device, options())?;
    let report = db.check()?;
    assert!(report.is_clean(), "{point:?}: {:?}", report.findings);
    Ok(db)
}

/// Everything that can be seen of a database as of a commit, as text.
fn seen(db: &Database, snapshot: &DatabaseSnapshot) -> Vec<String> {
    let mut lines = Vec::new();
    for name in snapshot.documents().unwrap() {
        let document = db.document(&name).unwrap();
        let head = snapshot.document(&name).map_or(Revision(0), |at| at.revision());
        for entry in document.log(&duramen::LogQuery::default()).unwrap() {
            let entry = entry.unwrap();
            if entry.revision > head {
                continue;
            }
            let value = document.at(entry.revision).map(|at| at.to_json().unwrap());
            lines.push(format!("{name}: {entry:?} {:?}", value.ok()));
        }
    }
    lines
}

/// Commits of many kinds, one by one; a snapshot after each.
fn script(db: &Database, between: &mut dyn FnMut(u64)) -> Vec<DatabaseSnapshot> {
    let mut snapshots = Vec::new();
    let mut step = |snapshots: &mut Vec<DatabaseSnapshot>| {
        snapshots.push(db.snapshot());
        between(snapshots.len() as u64);
    };
    let declared =
        DocumentOptions { maps: ["$.map".parse().unwrap()].into(), ..DocumentOptions::default() };
    let doc = db.create_document_with("doc", &declared).unwrap();
    step(&mut snapshots);
    let list: Vec<String> =
        (0..5_000).map(|n| format!(r#"{{"n":{n},"s":"v{}"}}"#, n % 7)).collect();
    let value = format!(r#"{{"list":[{}],"map":{{"a":1,"b":2}},"x":1.50}}"#, list.join(","));
    doc.put(&value, &by("ann")).unwrap();
    step(&mut snapshots);
    for number in 0..30 {
        let options = by(if number % 2 == 0 { "ann" } else { "bob" });
        match number % 6 {
            0 => drop(doc.set(&pointer(&format!("/list/{}/n", number * 90)), "-1", &options)),
            1 => drop(doc.remove(&pointer(&format!("/list/{}", number * 60)), &options)),
            2 => drop(doc.set(&pointer(&format!("/map/k{number}")), "[1,2]", &options)),
            3 => {
                let long = "z".repeat(5_000 + number);
                drop(doc.set(&pointer("/x"), format!("\"{long}\""), &options));
            }
            4 => drop(doc.set(&pointer(&format!("/new{number}")), r#"{"deep":[true]}"#, &options)),
            _ => {
                let other = format!("other{number}");
                let document = db.create_document(&other).unwrap();
                step(&mut snapshots);
                document.put("[1,2,3]", &options).unwrap();
                step(&mut snapshots);
                document.tag("first", None, &options).unwrap();
            }
        }
        step(&mut snapshots);
    }
    db.delete_document("other5", &by("ann")).unwrap();
    step(&mut snapshots);
    let many: Vec<String> = (0..4_000).map(|n| format!("{n}")).collect();
    doc.set(&pointer("/many"), format!("[{}]", many.join(",")), &by("bob")).unwrap();
    step(&mut snapshots);
    doc.put(r#"{"list":[],"map":{}}"#, &by("bob")).unwrap();
    step(&mut snapshots);
    snapshots
}

/// A restored database is what it was at the commit, and goes on like it.
fn assert_restored(db: &Database, snapshot: &DatabaseSnapshot, restored: &Database) {
    let commit = snapshot.sequence();
    assert_eq!(restored.snapshot().sequence(), commit);
    assert_eq!(restored.documents().unwrap(), snapshot.documents().unwrap(), "{commit}");
    assert_eq!(seen(restored, &restored.snapshot()), seen(db, snapshot), "{commit}");
    assert_ne!(restored.id(), db.id());
    restored.create_document("after").unwrap().put("1", &by("eve")).unwrap();
    if let Ok(doc) = restored.document("doc") {
        doc.put(r#"{"list":[{"n":0}],"map":{"k2":1,"z":[]},"many":[0,{}]}"#, &by("eve")).unwrap();
        doc.set(&pointer("/map/k2"), "7", &by("eve")).unwrap();
        let text = r#"{"list":[{"n":0}],"map":{"k2":7,"z":[]},"many":[0,{}]}"#;
        assert_eq!(doc.head().unwrap().to_json().unwrap(), text);
    }
    restored.checkpoint().unwrap();
    let report = restored.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[test]
fn every_commit_can_be_restored() {
    let db = Database::memory().unwrap();
    let (folder, _) = folder();
    let snapshots = script(&db, &mut |_| {});
    back_up(&db, &folder, FULL);
    for snapshot in &snapshots {
        let restored = restore(&folder, RestorePoint::Commit(snapshot.sequence())).unwrap();
        assert_restored(&db, snapshot, &restored);
    }
    let restored = restore(&folder, RestorePoint::Newest).unwrap();
    assert_restored(&db, snapshots.last().unwrap(), &restored);
}

#[test]
fn every_commit_can_be_restored_from_a_chain_with_checkpoints_and_compactions_between() {
    let db = Database::memory().unwrap();
    let (folder, _) = folder();
    let mut backups = Vec::new();
    let snapshots = script(&db, &mut |step| {
        if step % 3 == 0 {
            db.checkpoint().unwrap();
        }
        if step % 13 == 0 {
            db.compact(&mut go_on).unwrap();
        }
        if step % 7 == 0 {
            backups.push(back_up(&db, &folder, INCREMENTAL).backup);
        }
    });
    backups.push(back_up(&db, &folder, INCREMENTAL).backup);
    assert_eq!(Backup::list(&folder).unwrap(), backups);
    for snapshot in snapshots.iter().step_by(3) {
        let restored = restore(&folder, RestorePoint::Commit(snapshot.sequence())).unwrap();
        assert_restored(&db, snapshot, &restored);
    }
}

#[test]
fn a_time_means_the_last_commit_at_or_before_it() {
    let db = Database::memory().unwrap();
    let (folder, _) = folder();
    let doc = db.create_document("d").unwrap();
    let mut times = Vec::new();
    for number in 0..5 {
        doc.put(number.to_string(), &by("ann")).unwrap();
        times.push(doc.head().unwrap().timestamp().unwrap());
    }
    let made = back_up(&db, &folder, FULL).backup.made;
    for (number, time) in (0_i64..).zip(&times) {
        for (time, expected) in [(*time, number), (Micros(time.0 - 1), number - 1)] {
            let restored = restore(&folder, RestorePoint::Time(time)).unwrap();
            let head = restored.document("d").unwrap().head().map(|head| head.to_json().unwrap());
            assert_eq!(head.ok(), (expected >= 0).then(|| expected.to_string()));
        }
    }
    restore(&folder, RestorePoint::Time(made)).unwrap();
    for (time, kind) in
        [(Micros(made.0 + 1), ErrorKind::NotFound), (Micros(0), ErrorKind::NotFound)]
    {
        assert_eq!(restore(&folder, RestorePoint::Time(time)).unwrap_err().kind(), kind);
    }
    let later = RestorePoint::Commit(CommitSequence(7));
    assert_eq!(restore(&folder, later).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn an_incremental_backup_copies_what_is_new() {
    let db = Database::memory().unwrap();
    let (folder, _) = folder();
    let doc = db.create_document("d").unwrap();
    let texts: Vec<String> = (0..20_000).map(|n| format!("\"text {n}\"")).collect();
    doc.put(format!("[{}]", texts.join(",")), &by("ann")).unwrap();
    let first = back_up(&db, &folder, INCREMENTAL);
    assert_eq!((first.backup.number, first.backup.parent), (1, None));
    assert_eq!(first.copied_bytes, first.backup.bytes);
    let same = back_up(&db, &folder, INCREMENTAL);
    assert_eq!((same.copied_bytes, same.backup.parent), (0, Some(1)));
    doc.set(&pointer("/7"), "1", &by("ann")).unwrap();
    let second = back_up(&db, &folder, INCREMENTAL);
    assert!(second.copied_bytes < first.copied_bytes / 10, "{second:?}");
    let full = back_up(&db, &folder, FULL);
    assert_eq!((full.copied_bytes, full.backup.parent), (full.backup.bytes, None));
    for number in 1..=4 {
        Backup::verify(&folder, number, &mut go_on).unwrap();
    }
}

#[test]
fn a_backup_beside_writers_is_consistent_at_one_commit() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let options =
        Options { memory_bytes: 1 << 20, checkpoint_journal_bytes: 64 << 10, ..options() };
    let db = Database::open_device(Arc::clone(&device), options).unwrap();
    // Both documents get the same number in one commit.
    let (one, two) = (db.create_document("1").unwrap(), db.create_document("2").unwrap());
    let both = |number: u64| {
        let mut transaction = db.transaction();
        transaction.put("1", number.to_string().as_bytes()).unwrap();
        transaction.put("2", number.to_string().as_bytes()).unwrap();
        transaction.commit(&by("ann")).unwrap();
    };
    both(0);
    let stop = AtomicBool::new(false);
    let (folder, _) = folder();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 1.. {
                both(number);
                if stop.load(Ordering::Relaxed) {
                    return number;
                }
            }
            0
        });
        for round in 0..20 {
            let before = one.head().unwrap().revision();
            if round % 2 == 0 {
                back_up(&db, &folder, INCREMENTAL);
            } else {
                let read_only = Options { read_only: true, ..self::options() };
                let reader = Database::open_device(Arc::clone(&device), read_only).unwrap();
                back_up(&reader, &folder, INCREMENTAL);
            }
            let restored = restore(&folder, RestorePoint::Newest).unwrap();
            let head = |name| restored.document(name).unwrap().head().unwrap();
            assert!(head("1").revision() >= before);
            assert_eq!(head("1").to_json().unwrap(), head("2").to_json().unwrap());
        }
        stop.store(true, Ordering::Relaxed);
        assert!(writer.join().unwrap() > 20);
    });
    assert_eq!(one.head().unwrap().to_json().unwrap(), two.head().unwrap().to_json().unwrap());
}

#[test]
fn a_database_opened_for_reading_is_backed_up_with_what_is_in_the_journal() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let db = Database::open_device(Arc::clone(&device), options()).unwrap();
    let doc = db.create_document("d").unwrap();
    doc.put("1", &by("ann")).unwrap();
    db.checkpoint().unwrap();
    doc.put("2", &by("ann")).unwrap();
    let reader = Database::open_device(device, Options { read_only: true, ..options() }).unwrap();
    doc.put("3", &by("ann")).unwrap();
    let (folder, _) = folder();
    let report = back_up(&reader, &folder, FULL);
    assert_eq!(report.backup.commit, reader.snapshot().sequence());
    let restored = restore(&folder, RestorePoint::Newest).unwrap();
    assert_eq!(restored.document("d").unwrap().head().unwrap().to_json().unwrap(), "2");
    assert_eq!(reader.document("d").unwrap().head().unwrap().to_json().unwrap(), "2");
    // The writer's own segments come next, under the numbers that the reader's had.
    back_up(&db, &folder, INCREMENTAL);
    let restored = restore(&folder, RestorePoint::Newest).unwrap();
    assert_eq!(restored.document("d").unwrap().head().unwrap().to_json().unwrap(), "3");
    let restored = restore(&folder, RestorePoint::Commit(report.backup.commit)).unwrap();
    assert_eq!(restored.document("d").unwrap().head().unwrap().to_json().unwrap(), "2");
}

#[test]
fn what_belongs_to_another_database_is_refused() {
    let (folder, _) = folder();
    let db = Database::memory().unwrap();
    db.create_document("d").unwrap();
    back_up(&db, &folder, FULL);
    let restored = restore(&folder, RestorePoint::Newest).unwrap();
    for other in [Database::memory().unwrap(), restored] {
        let error = other.backup(&folder, INCREMENTAL, &mut go_on).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.message().contains("another database"), "{error}");
    }
    assert_eq!(Backup::list(&folder).unwrap().len(), 1);
}

#[test]
fn an_older_copy_of_the_database_is_refused() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let db = Database::open_device(Arc::clone(&device), options()).unwrap();
    db.create_document("d").unwrap();
    let older = Database::open_device(device, Options { read_only: true, ..options() }).unwrap();
    db.create_document("e").unwrap();
    let (folder, _) = folder();
    back_up(&db, &folder, FULL);
    let error = older.backup(&folder, FULL, &mut go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
}

/// Each once went on with the backups of the other.
#[test]
fn a_copy_that_has_gone_its_own_way_is_refused() {
    let device = MemoryDevice::new();
    let open =
        |device: &MemoryDevice| Database::open_device(Arc::new(device.clone()), options()).unwrap();
    let db = open(&device);
    db.create_document("d").unwrap();
    db.create_series("s", &SeriesDefinition::new(ValueType::I64)).unwrap();
    db.close().unwrap();
    let of_document = |db: &Database| {
        db.document("d").unwrap().put("1", &by("ann")).unwrap();
    };
    let of_series = |db: &Database| {
        db.series("s").unwrap().append(Micros(1), 1_i64, &by("ann")).unwrap();
    };
    for commit in [&of_document as &dyn Fn(&Database), &of_series] {
        let [one, other] = [(); 2].map(|()| device_of(&files_of(&device), ("", &[])));
        let (db, copy) = (open(&one), open(&other));
        let (folder, _) = folder();
        back_up(&db, &folder, FULL);
        commit(&copy);
        back_up(&copy, &folder, INCREMENTAL);
        commit(&db);
        for how in [INCREMENTAL, FULL] {
            let error = db.backup(&folder, how, &mut go_on).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            assert!(error.message().contains("a copy"), "{error}");
            db.create_document(how.incremental.to_string().as_str()).unwrap();
            db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
        }
        copy.create_document("f").unwrap();
        copy.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(back_up(&copy, &folder, INCREMENTAL).backup.number, 3);
        restore(&folder, RestorePoint::Newest).unwrap().document("f").unwrap();
    }
}

/// The files of a folder of backups.
fn files(device: &dyn Device) -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["backups", "segments"] {
        let names = device.list(folder).unwrap();
        files.extend(names.into_iter().map(|name| format!("{folder}/{name}")));
    }
    files
}

#[test]
fn every_damaged_or_missing_object_is_named_and_leaves_no_database() {
    let db = Database::memory().unwrap();
    let (folder, device) = folder();
    let doc = db.create_document("d").unwrap();
    doc.put("[1,2,3]", &by("ann")).unwrap();
    back_up(&db, &folder, FULL);
    doc.put("[1,2,3,4]", &by("ann")).unwrap();
    back_up(&db, &folder, INCREMENTAL);
    let files = files(device.as_ref());
    assert_eq!(files.len(), 4, "{files:?}");
    let refused = |file: &str, what: &str| {
        let target: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let point = RestorePoint::Newest;
        let error = Database::restore_device(&folder, &target, point, &mut go_on).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what} {file}: {error}");
        assert!(error.message().contains(file), "{what} {file}: {error}");
        let error = Database::open_device(target, Options { create: false, ..options() });
        assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound, "{what} {file}");
    };
    // The record of the first backup is not needed for the second.
    for file in files.iter().filter(|file| !file.ends_with("1.backup")) {
        let opened = device.open(file, Access::Write).unwrap();
        let length = opened.len().unwrap();
        for at in (0..length).step_by(7) {
            let mut byte = [0];
            opened.read_at(&mut byte, at).unwrap();
            opened.write_at(&[byte[0] ^ 0x10], at).unwrap();
            refused(file, "flipped");
            opened.write_at(&byte, at).unwrap();
        }
        let mut last = [0];
        opened.read_at(&mut last, length - 1).unwrap();
        opened.set_len(length - 1).unwrap();
        refused(file, "cut");
        opened.write_at(&[last[0], 0], length - 1).unwrap();
        refused(file, "grown");
        opened.set_len(length).unwrap();
        restore(&folder, RestorePoint::Newest).unwrap();
        if file.starts_with("segments") {
            device.rename(file, "aside").unwrap();
            refused(file, "missing");
            device.rename("aside", file).unwrap();
        }
    }
}

#[test]
fn an_incremental_backup_copies_what_its_parent_lost_and_needs_its_record() {
    let db = Database::memory().unwrap();
    let (folder, device) = folder();
    db.create_document("d").unwrap();
    back_up(&db, &folder, FULL);
    let files = files(device.as_ref());
    let segment = files.iter().find(|file| file.starts_with("segments")).unwrap();
    device.remove(segment).unwrap();
    let report = back_up(&db, &folder, INCREMENTAL);
    assert_eq!(report.copied_bytes, report.backup.bytes);

    let record = device.open("backups/00000002.backup", Access::Write).unwrap();
    record.write_at(b"x", 20).unwrap();
    let error = db.backup(&folder, INCREMENTAL, &mut go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(back_up(&db, &folder, FULL).backup.number, 3);
    restore(&folder, RestorePoint::Newest).unwrap();
}

#[test]
fn a_damaged_segment_is_not_backed_up() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let db = Database::open_device(Arc::clone(&device), options()).unwrap();
    db.create_document("d").unwrap().put("[1,2,3]", &by("ann")).unwrap();
    db.checkpoint().unwrap();
    let file = device.open("segments/00000001.segment", Access::Write).unwrap();
    file.write_at(b"x", 60).unwrap();
    let (folder, _) = folder();
    let error = db.backup(&folder, FULL, &mut go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("segments/00000001.segment"), "{error}");
    assert!(Backup::list(&folder).unwrap().is_empty());
}

#[test]
fn a_folder_without_a_record_has_no_backup() {
    let (folder, device) = folder();
    let error = restore(&folder, RestorePoint::Newest).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let db = Database::memory().unwrap();
    db.create_document("d").unwrap();
    back_up(&db, &folder, FULL);
    device.rename("backups/00000001.backup", "backups/00000001.backup.partial").unwrap();
    let error = restore(&folder, RestorePoint::Newest).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("cut short"), "{error}");
}

#[test]
fn a_stopped_backup_or_restore_leaves_nothing_and_can_be_made_again() {
    let db = Database::memory().unwrap();
    let doc = db.create_document("d").unwrap();
    for number in 0..3 {
        doc.put(format!("[{}]", vec![number.to_string(); 1000].join(",")), &by("ann")).unwrap();
        db.checkpoint().unwrap();
    }
    for calls in 0.. {
        let (folder, _) = folder();
        let mut left = calls;
        let mut stop = |_, _| {
            left -= 1;
            if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let stopped = db.backup(&folder, FULL, &mut stop);
        let Err(error) = stopped else { break };
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        assert!(Backup::list(&folder).unwrap().is_empty(), "a backup after {calls} calls");
        back_up(&db, &folder, INCREMENTAL);

        let target: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let mut left = calls;
        let mut stop = |_, _| {
            left -= 1;
            if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let point = RestorePoint::Commit(CommitSequence(3));
        if let Err(error) = Database::restore_device(&folder, &target, point, &mut stop) {
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
            Database::restore_device(&folder, &target, point, &mut go_on).unwrap();
        }
        let restored = Database::open_device(target, options()).unwrap();
        assert_eq!(restored.document("d").unwrap().head_revision().unwrap(), Revision(2));
    }
}

/// What a killed restore left was once taken for a database that lost its manifest.
#[test]
fn what_a_restore_has_made_so_far_is_said_to_be_that() {
    let db = Database::memory().unwrap();
    db.create_document("d").unwrap().put("[1,2,3]", &by("ann")).unwrap();
    let (folder, _) = folder();
    back_up(&db, &folder, FULL);
    let target: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let mut looks = 0;
    let mut look = |_, _| {
        let options = Options { create: false, read_only: true, ..options() };
        let error = Database::open_device(Arc::clone(&target), options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.message().contains("restore or repair that has not ended"), "{error}");
        looks += 1;
        ControlFlow::Continue(())
    };
    Database::restore_device(&folder, &target, RestorePoint::Newest, &mut look).unwrap();
    assert!(looks > 0);
    assert_eq!(target.list("").unwrap().iter().filter(|name| name.contains("MANIFEST")).count(), 1);
    Database::open_device(target, options()).unwrap();
}

/// Backups 1 to 4, a full one after two incremental ones, with what was committed before each.
fn four_backups(db: &Database, folder: &BackupFolder) {
    let doc = db.create_document("d").unwrap();
    for (number, options) in [FULL, INCREMENTAL, FULL, INCREMENTAL].into_iter().enumerate() {
        doc.put(format!("[{number}]"), &by("ann")).unwrap();
        assert_eq!(back_up(db, folder, options).backup.number, number as u64 + 1);
    }
}

fn keep(backups: usize) -> NonZeroUsize {
    NonZeroUsize::new(backups).unwrap()
}

#[test]
fn pruning_leaves_the_newest_backups_whole_and_nothing_that_they_do_not_need() {
    for kept in 1..=5 {
        let db = Database::memory().unwrap();
        let (folder, device) = folder();
        four_backups(&db, &folder);
        db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
        back_up(&db, &folder, INCREMENTAL);
        let pruned = Backup::prune(&folder, keep(kept)).unwrap();
        assert_eq!(pruned.backups, (1..=5 - kept as u64).collect::<Vec<_>>());
        assert_eq!(Backup::list(&folder).unwrap().len(), kept);
        for backup in Backup::list(&folder).unwrap() {
            Backup::verify(&folder, backup.number, &mut go_on).unwrap();
        }
        let restored = restore(&folder, RestorePoint::Commit(CommitSequence(2))).unwrap();
        assert_eq!(restored.document("d").unwrap().head().unwrap().to_json().unwrap(), "[0]");
        let newest = &Backup::list(&folder).unwrap()[kept - 1];
        if kept == 1 {
            assert_eq!(device.list("segments").unwrap().len() as u64, newest.segments);
        }
        assert_eq!(Backup::prune(&folder, keep(kept)).unwrap(), Pruned::default());
    }
}

#[test]
fn pruning_removes_what_a_backup_that_was_cut_short_left() {
    let db = Database::memory().unwrap();
    let (folder, device) = folder();
    four_backups(&db, &folder);
    device.remove("backups/00000004.backup").unwrap();
    device.open("segments/00000009-136-00000000.segment.partial", Access::Create).unwrap();
    let before = device.list("segments").unwrap().len();
    let pruned = Backup::prune(&folder, keep(3)).unwrap();
    assert_eq!(pruned, Pruned { backups: Vec::new(), segments: 1 });
    assert_eq!(device.list("segments").unwrap().len(), before - 2);
}

/// All that stood among the segments, or was called like an object in the making, once went.
#[test]
fn pruning_leaves_the_files_of_others() {
    let db = Database::memory().unwrap();
    let (folder, device) = folder();
    let others = ["segments/notes", "segments/a.partial", "backups/b.partial"];
    for path in others {
        device.open(path, Access::Create).unwrap();
    }
    four_backups(&db, &folder);
    assert_eq!(Backup::prune(&folder, keep(1)).unwrap().backups, [1, 2, 3]);
    for path in others {
        device.open(path, Access::Read).unwrap();
    }
    Backup::verify(&folder, 4, &mut go_on).unwrap();
}

#[test]
fn nothing_is_pruned_beside_a_kept_backup_that_is_damaged() {
    let db = Database::memory().unwrap();
    let (folder, device) = folder();
    four_backups(&db, &folder);
    let record = device.open("backups/00000003.backup", Access::Write).unwrap();
    record.write_at(b"x", 20).unwrap();
    let before = files(device.as_ref());
    let error = Backup::prune(&folder, keep(2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert_eq!(files(device.as_ref()), before);
    // One that goes anyway is in nobody's way.
    assert_eq!(Backup::prune(&folder, keep(1)).unwrap().backups, [1, 2, 3]);
    restore(&folder, RestorePoint::Newest).unwrap();
}

#[test]
fn a_restore_goes_into_an_empty_folder_only() {
    let (folder, _) = folder();
    let db = Database::memory().unwrap();
    db.create_document("d").unwrap();
    back_up(&db, &folder, FULL);
    let there: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    drop(Database::open_device(Arc::clone(&there), options()).unwrap());
    let other: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    other.open("notes", Access::Create).unwrap();
    let lost: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    lost.open("segments/00000001.segment", Access::Create).unwrap();
    for device in [there, other, lost] {
        let point = RestorePoint::Newest;
        let error = Database::restore_device(&folder, &device, point, &mut go_on).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}

#[test]
fn two_backups_do_not_go_into_one_folder_at_once() {
    let (folder, _) = folder();
    let db = Database::memory().unwrap();
    let first = folder.lock().unwrap();
    let error = db.backup(&folder, FULL, &mut go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    drop(first);
    back_up(&db, &folder, FULL);
    assert!(restore(&folder, RestorePoint::Newest).unwrap().documents().unwrap().is_empty());
}

/// A place that takes backups, of which only the trait is known.
#[derive(Debug)]
struct Elsewhere(BackupFolder);

impl Destination for Elsewhere {
    fn put(&self, name: &str, content: &mut dyn Read, length: u64) -> io::Result<()> {
        // Some of it, then the connection breaks.
        let mut some = content.take(100);
        io::copy(&mut some, &mut io::sink())?;
        let _ = (name, length);
        Err(io::ErrorKind::ConnectionReset.into())
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        self.0.get(name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.0.list(folder)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        self.0.lock()
    }
}

#[test]
fn a_destination_that_fails_is_told_with_the_object() {
    let db = Database::memory().unwrap();
    db.create_document("d").unwrap();
    let error = db.backup(&Elsewhere(folder().0), FULL, &mut go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("cannot write segments/00000001-"), "{error}");
}

#[test]
fn backups_are_not_kept_among_the_files_of_a_database() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("db");
    let db = Database::open(&place, options()).unwrap();
    db.create_document("d").unwrap().put("[1]", &by("a")).unwrap();
    db.checkpoint().unwrap();
    for inside in ["", "segments", "a/b"] {
        let folder = BackupFolder::new(place.join(inside));
        let refused = db.backup(&folder, BackupOptions::default(), &mut go_on).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
        assert!(refused.to_string().contains("one of its own"), "{refused}");
        let refused = Backup::prune(&folder, keep(1)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    }
    assert!(!place.join("a").exists() && db.check().unwrap().findings.is_empty());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(place.join("journal"), home.path().join("link")).unwrap();
        let folder = BackupFolder::new(home.path().join("link/backup"));
        assert!(db.backup(&folder, BackupOptions::default(), &mut go_on).is_err());
    }
    let beside = BackupFolder::new(place.join("../backup"));
    db.backup(&beside, BackupOptions::default(), &mut go_on).unwrap();
}

/// A destination into which the first object comes after a while.
#[derive(Debug)]
struct Slow<'d> {
    folder: BackupFolder,
    meanwhile: fn(&Database),
    db: &'d Database,
    is_over: AtomicBool,
}

impl Destination for Slow<'_> {
    fn put(&self, name: &str, content: &mut dyn Read, length: u64) -> io::Result<()> {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            (self.meanwhile)(self.db);
        }
        self.folder.put(name, content, length)
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        self.folder.get(name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.folder.list(folder)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        self.folder.lock()
    }
}

/// It was said to be made, and verified, but had the zeros that the purge wrote.
#[test]
fn a_backup_of_what_a_purge_overwrites_meanwhile_is_not_made() {
    let db = Database::memory().unwrap();
    let doc = db.create_document("d").unwrap();
    doc.put(r#"{"a":1,"b":"secret"}"#, &by("ann")).unwrap();
    let (folder, device) = folder();
    let kept = back_up(&db, &folder, FULL).backup;
    doc.put(r#"{"a":2,"b":"secret"}"#, &by("ann")).unwrap();
    let meanwhile = |db: &Database| {
        let options = duramen::PurgeOptions::default();
        let doc = db.document("d").unwrap();
        doc.purge(&pointer("/b"), &options, &mut |_, _| ControlFlow::Continue(())).unwrap();
    };
    let before = files(device.as_ref());
    let slow = Slow { folder: folder.clone(), meanwhile, db: &db, is_over: AtomicBool::new(false) };
    let error = db.backup(&slow, FULL, &mut go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(error.message().contains("not made"), "{error}");
    assert_eq!(files(device.as_ref()), before);
    assert_eq!(db.backup(&slow, FULL, &mut go_on).unwrap().backup.number, kept.number + 1);
    let restored = restore(&folder, RestorePoint::Newest).unwrap();
    assert_eq!(restored.document("d").unwrap().head().unwrap().to_json().unwrap(), r#"{"a":2}"#);
}

/// It went with the old backups.
#[test]
fn pruning_leaves_what_is_called_like_a_record_and_is_none() {
    let db = Database::memory().unwrap();
    let (folder, device) = folder();
    let other = device.open("backups/00000001.backup", Access::Create).unwrap();
    other.write_at(b"notes of mine", 0).unwrap();
    let doc = db.create_document("d").unwrap();
    for number in 2..=4 {
        doc.put(format!("[{number}]"), &by("ann")).unwrap();
        assert_eq!(back_up(&db, &folder, FULL).backup.number, number);
    }
    for _ in 0..2 {
        Backup::prune(&folder, keep(1)).unwrap();
        assert_eq!(device.list("backups").unwrap(), ["00000001.backup", "00000004.backup"]);
        assert_eq!(other.len().unwrap(), 13);
    }
    Backup::verify(&folder, 4, &mut go_on).unwrap();
}

/// Whoever waits for a backup once was asked at each cell that it checked whether to go on.
#[test]
fn backup_asks_seldom_whether_to_go_on() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let db = Database::open_device(device, options()).unwrap();
    for number in 0..300 {
        let document = db.create_document(&format!("d{number}")).unwrap();
        document.put("{\"a\":[1,2,3]}", &by("ann")).unwrap();
    }
    db.checkpoint().unwrap();
    let (folder, _) = folder();
    let mut asked = 0;
    let report = db.backup(&folder, FULL, &mut |_, _| {
        asked += 1;
        ControlFlow::Continue(())
    });
    assert!(report.unwrap().backup.segments > 0);
    assert!((1..100).contains(&asked), "{asked} times");
}
