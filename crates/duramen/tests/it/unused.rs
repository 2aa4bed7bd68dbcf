//! What fails leaves nothing of the place that was made for it, and takes nothing that was there.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use duramen::io::{Access, Device, DirectoryDevice};
use duramen::{
    Backup, BackupFolder, BackupOptions, BulkOptions, CommitOptions, Database, DumpItem, DumpLoad,
    Durability, Error, ErrorKind, ExportedFacts, Options, RestorePoint, WatchOptions,
};

const NOTHING: [&str; 0] = [];

fn open(place: &Path) -> Database {
    Database::open(place, Options::default()).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

fn put(db: &Database, json: &str) {
    db.create_document("d").unwrap().put(json, &CommitOptions::default()).unwrap();
}

fn load(db: &Database, name: &str, end: &str) -> Result<(), Error> {
    let text = format!("[{}1{end}", "1,".repeat(1 << 20));
    let mut go_on = |_| ControlFlow::Continue(());
    db.bulk_load(name, &mut text.as_bytes(), &BulkOptions::default(), &mut go_on).map(drop)
}

#[test]
fn a_database_that_nothing_was_committed_to_goes_with_what_was_made_for_it() {
    let home = tempfile::tempdir().unwrap();
    let (around, place) = (home.path().join("new"), home.path().join("new/db"));
    assert!(open(&place).close_or_remove().unwrap());
    assert_eq!(names(home.path()), NOTHING);

    fs::create_dir(&around).unwrap();
    assert!(open(&place).close_or_remove().unwrap());
    assert_eq!(names(&around), NOTHING);

    fs::create_dir(&place).unwrap();
    assert!(open(&place).close_or_remove().unwrap());
    assert_eq!(names(&around), ["db"]);
    assert_eq!(names(&place), NOTHING);
}

#[test]
fn what_others_put_beside_a_database_stays_when_it_is_removed() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("new/db");
    let db = open(&place);
    for folder in ["..", ".", "journal", "segments"] {
        let others = DirectoryDevice::new(place.join(folder));
        others.open("notes", Access::Create).unwrap();
    }
    assert!(db.close_or_remove().unwrap());
    assert_eq!(names(home.path()), ["new"]);
    assert_eq!(names(&home.path().join("new")), ["db", "notes"]);
    assert_eq!(names(&place), ["journal", "notes", "segments"]);
    for folder in ["journal", "segments"] {
        assert_eq!(names(&place.join(folder)), ["notes"]);
    }
}

#[test]
fn a_database_with_a_commit_stays() {
    for durability in [Durability::Sync, Durability::Interval(3_600_000)] {
        for has_checkpoint in [false, true] {
            let home = tempfile::tempdir().unwrap();
            let db = open(home.path());
            let mut transaction = db.transaction();
            transaction.put("d", b"[1]").unwrap();
            let durability = Some(durability);
            transaction.commit(&CommitOptions { durability, ..CommitOptions::default() }).unwrap();
            if has_checkpoint {
                db.checkpoint().unwrap();
            }
            assert!(!db.close_or_remove().unwrap());
            let db = open(home.path());
            assert!(!db.was_created());
            assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), "[1]");
            assert!(!db.close_or_remove().unwrap());
            assert!(open(home.path()).check().unwrap().is_clean());
        }
    }
}

#[test]
fn a_database_that_was_there_stays_though_it_is_empty() {
    let home = tempfile::tempdir().unwrap();
    let db = open(home.path());
    let id = db.id();
    db.close().unwrap();
    assert!(!open(home.path()).close_or_remove().unwrap());
    assert_eq!(open(home.path()).id(), id);
}

/// A load that failed has committed the name that it kept.
#[test]
fn a_load_that_failed_leaves_no_database_and_one_that_did_not_does() {
    let home = tempfile::tempdir().unwrap();
    for has_checkpoint in [false, true] {
        let place = home.path().join("db");
        let db = open(&place);
        for name in ["d", "d", "e"] {
            assert_eq!(load(&db, name, "").unwrap_err().kind(), ErrorKind::Invalid);
        }
        assert_eq!(db.stats().unwrap().sequence.0, 2);
        if has_checkpoint {
            db.checkpoint().unwrap();
        }
        assert!(db.close_or_remove().unwrap());
        assert_eq!(names(home.path()), NOTHING);
    }
    let db = open(home.path());
    load(&db, "d", "").unwrap_err();
    load(&db, "d", "]").unwrap();
    load(&db, "e", "").unwrap_err();
    assert!(!db.close_or_remove().unwrap());
    let db = open(home.path());
    assert_eq!(db.documents().unwrap(), ["d"]);
    assert!(db.check().unwrap().is_clean());
}

/// What was left was once said to be of a database that had lost its manifest.
#[test]
fn a_removal_that_is_cut_short_leaves_what_is_said_to_be_that() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("db");
    let db = open(&place);
    load(&db, "d", "").unwrap_err();
    // It is not removed as a file is.
    fs::create_dir(place.join("segments/99999999.segment")).unwrap();
    db.close_or_remove().unwrap_err();
    for create in [false, true] {
        let options = Options { create, ..Options::default() };
        let error = Database::open(&place, options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.message().contains("remove the folder"), "{error}");
    }
    let into = DumpLoad::into_new(Arc::new(DirectoryDevice::new(&place)), Options::default());
    let error = into.unwrap_err();
    assert!(error.message().contains("was interrupted"), "{error}");
}

#[test]
fn a_database_whose_handles_are_in_use_is_left_to_them() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("db");
    let db = open(&place);
    let other = db.clone();
    assert_eq!(db.close_or_remove().unwrap_err().kind(), ErrorKind::Busy);
    put(&other, "[1]");
    assert!(!other.close_or_remove().unwrap());
    assert_eq!(open(&place).documents().unwrap(), ["d"]);
}

/// Who waits for the lock has looked before, and found a database.
#[test]
fn who_waits_for_a_database_that_is_removed_makes_one_only_if_it_is_to() {
    for create in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join("db");
        let db = open(&place);
        let id = db.id();
        let opened = std::thread::scope(|scope| {
            let options = Options { create, wait_ms: 60_000, ..Options::default() };
            let waiting = scope.spawn(|| Database::open(&place, options));
            // If it does not wait by now, it finds nothing at once, which is the same to it.
            std::thread::sleep(Duration::from_millis(100));
            assert!(db.close_or_remove().unwrap());
            waiting.join().unwrap()
        });
        match opened {
            Ok(db) => {
                assert!(create && db.was_created() && db.id() != id);
                put(&db, "[1]");
                drop(db);
                assert_eq!(open(&place).documents().unwrap(), ["d"]);
            }
            Err(error) => {
                assert!(!create && error.kind() == ErrorKind::NotFound, "{error}");
                // It may have kept the folder from being removed, but has put nothing into it.
                assert!(!place.exists() || names(&place).is_empty());
            }
        }
    }
}

#[test]
fn a_first_backup_that_fails_leaves_no_folder_and_a_later_one_leaves_the_others() {
    let home = tempfile::tempdir().unwrap();
    let db = Database::memory().unwrap();
    put(&db, "[1]");
    let path = home.path().join("new/backups");
    let mut stop = |_, _| ControlFlow::Break(());
    for is_there in [false, true] {
        if is_there {
            fs::create_dir_all(&path).unwrap();
        }
        let folder = BackupFolder::new(&path);
        let stopped = db.backup(&folder, BackupOptions::default(), &mut stop).unwrap_err();
        assert_eq!(stopped.kind(), ErrorKind::Cancelled, "{stopped}");
        assert_eq!(path.exists(), is_there);
    }
    assert_eq!(names(&path), NOTHING);
    fs::remove_dir_all(home.path().join("new")).unwrap();

    let folder = BackupFolder::new(&path);
    let mut go_on = |_, _| ControlFlow::Continue(());
    db.backup(&folder, BackupOptions::default(), &mut go_on).unwrap();
    db.backup(&folder, BackupOptions::default(), &mut stop).unwrap_err();
    Backup::verify(&folder, 1, &mut go_on).unwrap();
    assert_eq!(Backup::list(&folder).unwrap().len(), 1);
}

#[test]
fn a_restore_load_or_repair_that_fails_leaves_no_folder_but_one_that_was_there() {
    let home = tempfile::tempdir().unwrap();
    let (from, backups) = (home.path().join("from"), home.path().join("backups"));
    let db = open(&from);
    put(&db, "[1]");
    let folder = BackupFolder::new(&backups);
    let go_on = &mut |_, _| ControlFlow::Continue(());
    db.backup(&folder, BackupOptions::default(), go_on).unwrap();

    let place = home.path().join("new/db");
    for is_there in [false, true] {
        if is_there {
            fs::create_dir_all(&place).unwrap();
        }
        let is_left = || {
            assert_eq!(home.path().join("new").exists(), is_there);
            assert!(!is_there || names(&place).is_empty(), "{:?}", names(&place));
        };
        let stop = &mut |_, _| ControlFlow::Break(());
        Database::restore(&folder, &place, RestorePoint::Newest, stop).unwrap_err();
        is_left();

        let device = Arc::new(DirectoryDevice::new(&place));
        let mut load = DumpLoad::into_new(device, Options::default()).unwrap();
        assert!(place.exists());
        let (name, facts) = ("d".to_owned(), ExportedFacts::default());
        load.push(DumpItem::Document { name, facts }).unwrap();
        drop(load);
        is_left();

        let busy = Database::repair(&from, &place, &mut |_| ControlFlow::Continue(()));
        assert_eq!(busy.unwrap_err().kind(), ErrorKind::Busy);
        is_left();
    }
    drop(db);
    let stopped = Database::repair(&from, &place, &mut |_| ControlFlow::Break(()));
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(names(&place), NOTHING);
    let report = Database::repair(&from, &place, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.is_complete());
    assert_eq!(open(&place).documents().unwrap(), ["d"]);
}

/// One that came too late once removed what the first one had made so far.
#[test]
fn a_load_into_a_place_where_another_one_goes_on_is_refused_and_takes_nothing_of_it() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("db");
    let begin = || DumpLoad::into_new(Arc::new(DirectoryDevice::new(&place)), Options::default());
    let mut first = begin().unwrap();
    let before = names(&place);
    assert_eq!(begin().unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(names(&place), before);
    let (name, facts) = ("d".to_owned(), ExportedFacts::default());
    first.push(DumpItem::Document { name, facts }).unwrap();
    first.finish(None).unwrap();
    assert_eq!(open(&place).documents().unwrap(), ["d"]);
}

/// They were once removed with what a new database leaves that nobody needs.
#[test]
fn a_place_with_files_of_others_in_folders_called_like_ours_is_no_database() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("log");
    for (folder, name) in [
        ("journal", "system.journal"),
        ("journal", "x.tmp"),
        ("segments", "mine"),
        ("staging", "x"),
    ] {
        let path = format!("{folder}/{name}");
        DirectoryDevice::new(&place).open(&path, Access::Create).unwrap();
        let error = Database::open(&place, Options::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains(&format!("\"{path}\"")), "{error}");
        assert_eq!(
            (names(&place), names(&place.join(folder))),
            (vec![folder.into()], vec![name.into()])
        );
        fs::remove_dir_all(&place).unwrap();
    }
}

/// A load that failed once removed the database that somebody had made in its place meanwhile.
#[test]
fn what_takes_the_place_of_a_load_stays_when_it_fails() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("db");
    for is_finished in [false, true] {
        let device = Arc::new(DirectoryDevice::new(&place));
        let mut load = DumpLoad::into_new(device, Options::default()).unwrap();
        let (name, facts) = ("lost".to_owned(), ExportedFacts::default());
        load.push(DumpItem::Document { name, facts }).unwrap();
        fs::remove_dir_all(&place).unwrap();
        let other = open(&place);
        put(&other, "[1]");
        other.close().unwrap();
        if is_finished {
            load.finish(None).unwrap_err();
        } else {
            drop(load);
        }
        let other = open(&place);
        assert_eq!(other.document("d").unwrap().head().unwrap().to_json().unwrap(), "[1]");
        assert!(other.check().unwrap().is_clean());
        drop(other);
        fs::remove_dir_all(&place).unwrap();
    }
}

#[test]
fn a_lock_that_was_there_stays() {
    let home = tempfile::tempdir().unwrap();
    DirectoryDevice::new(home.path()).open("LOCK", Access::Create).unwrap();
    drop(DumpLoad::into_new(Arc::new(DirectoryDevice::new(home.path())), Options::default()));
    assert_eq!(names(home.path()), ["LOCK"]);
    assert!(open(home.path()).close_or_remove().unwrap());
    assert_eq!(names(home.path()), ["LOCK"]);
}

/// It once wrote its checkpoints into the database that somebody had made in its place meanwhile.
#[test]
fn a_writer_whose_folder_was_replaced_changes_nothing_there_and_takes_no_more_commits() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("db");
    let files =
        || [place.clone(), place.join("journal"), place.join("segments")].map(|f| names(&f));
    let late = CommitOptions {
        durability: Some(Durability::Interval(3_600_000)),
        ..CommitOptions::default()
    };
    for is_synced in [true, false] {
        let lost = open(&place);
        put(&lost, "[1]");
        let document = lost.document("d").unwrap();
        fs::remove_dir_all(&place).unwrap();
        let other = open(&place);
        put(&other, "[2]");
        let before = files();

        let error = lost.checkpoint().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.message().contains("removed or replaced"), "{error}");
        if is_synced {
            let error = document.put("[3]", &CommitOptions::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            assert!(error.message().contains("not kept"), "{error}");
        } else {
            document.put("[3]", &late).unwrap();
            assert_eq!(lost.flush().unwrap_err().kind(), ErrorKind::Poisoned);
        }
        let error = document.put("[4]", &late).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        drop(document);
        assert_eq!(lost.close().unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(files(), before);
        other.document("d").unwrap().put("[5]", &CommitOptions::default()).unwrap();
        drop(other);
        let other = open(&place);
        assert_eq!(other.document("d").unwrap().head().unwrap().to_json().unwrap(), "[5]");
        assert!(other.check().unwrap().is_clean());
        drop(other);
        fs::remove_dir_all(&place).unwrap();
    }
}

/// It once told the commits of the other one as its own.
#[test]
fn a_reader_does_not_go_on_with_another_database_in_the_place_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("db");
    for is_checkpointed in [true, false] {
        let own = open(&place);
        put(&own, "[1]");
        own.checkpoint().unwrap();
        let read = Options { read_only: true, create: false, ..Options::default() };
        let reader = Database::open(&place, read).unwrap();
        let mut feed = reader.watch(&WatchOptions::default()).unwrap();
        drop(own);
        fs::remove_dir_all(&place).unwrap();
        let other = open(&place);
        put(&other, "[2]");
        if is_checkpointed {
            other.checkpoint().unwrap();
        }
        let error = feed.next(Duration::from_millis(10)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.message().contains("another one is in its place"), "{error}");
        assert_eq!(reader.refresh().unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(reader.document("d").unwrap().head().unwrap().to_json().unwrap(), "[1]");
        drop((reader, other));
        fs::remove_dir_all(&place).unwrap();
    }
}
