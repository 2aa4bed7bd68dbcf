//! Files that are put over those of an open database, whose lock stays where it is.
#![expect(clippy::disallowed_methods, reason = "what other programs do to files is what is tried")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use duramen::{Clock, CommitOptions, Database, Durability, ErrorKind, Micros, Options};

/// How a file is put in the place of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// As `cp` does it.
    Over,
    /// As `tar` and `rsync` do it.
    Instead,
}

/// A clock by which a second passes between two looks at it.
#[derive(Debug)]
struct Hasty;

impl Clock for Hasty {
    fn now(&self) -> Micros {
        static TIME: AtomicI64 = AtomicI64::new(0);
        Micros(TIME.fetch_add(1_000_000, Ordering::Relaxed))
    }
}

/// A clock that stands still until it is set.
#[derive(Debug)]
struct Still(AtomicI64);

impl Clock for Still {
    fn now(&self) -> Micros {
        Micros(self.0.load(Ordering::Relaxed))
    }
}

/// At a pace at which each commit is looked at for itself.
fn open(place: &Path) -> Database {
    open_at(place, Arc::new(Hasty))
}

fn open_at(place: &Path, clock: Arc<dyn Clock>) -> Database {
    Database::open(place, Options { clock, ..Options::default() }).unwrap()
}

fn put(db: &Database, json: &str) -> duramen::Result<()> {
    db.document("d")?.put(json, &CommitOptions::default()).map(drop)
}

fn begin(place: &Path, json: &str) -> Database {
    let db = open(place);
    db.create_document("d").unwrap();
    put(&db, json).unwrap();
    db
}

/// Copies all files but the lock, and leaves others alone.
fn copy(from: &Path, to: &Path, how: How) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (old, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name());
        let new = to.join(&name);
        if old.is_dir() {
            copy(&old, &new, how);
        } else if name != "LOCK" {
            let target = if how == How::Over { new.clone() } else { to.join("copy") };
            fs::copy(&old, &target).unwrap();
            fs::rename(&target, &new).unwrap();
        }
    }
}

/// The commit that is not kept, and those after it.
fn assert_refused(db: Database) {
    let error = put(&db, "[7]").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.message().contains("not kept"), "{error}");
    assert!(error.message().contains("removed or replaced"), "{error}");
    assert_eq!(put(&db, "[8]").unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(db.close().unwrap_err().kind(), ErrorKind::Poisoned);
}

fn assert_is(place: &Path, json: &str) {
    let db = open(place);
    assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), json);
    assert!(db.check().unwrap().is_clean());
    put(&db, "[9]").unwrap();
}

/// Its commits were acknowledged, and gone once it was closed.
#[test]
fn a_writer_over_whose_files_another_database_is_copied_takes_no_more_commits() {
    // What is written over a segment is not read any more.
    for (how, is_checkpointed) in [(How::Over, false), (How::Instead, false), (How::Instead, true)]
    {
        let home = tempfile::tempdir().unwrap();
        let (place, other) = (home.path().join("db"), home.path().join("other"));
        let copied = begin(&other, "[1]");
        copied.checkpoint().unwrap();
        copied.close().unwrap();
        let db = begin(&place, "[2]");
        if is_checkpointed {
            db.checkpoint().unwrap();
        }
        copy(&other, &place, how);
        if !is_checkpointed {
            assert_eq!(db.checkpoint().unwrap_err().kind(), ErrorKind::Conflict);
        }
        assert_refused(db);
        assert_is(&place, "[1]");
    }
}

/// A copy that was made since the last checkpoint has the same manifest.
#[test]
fn a_writer_over_whose_files_an_older_copy_of_them_is_copied_takes_no_more_commits() {
    for how in [How::Over, How::Instead] {
        for is_opened_again in [false, true] {
            let home = tempfile::tempdir().unwrap();
            let (place, older) = (home.path().join("db"), home.path().join("older"));
            begin(&place, "[1]").close().unwrap();
            copy(&place, &older, How::Over);
            let mut db = open(&place);
            put(&db, "[2]").unwrap();
            if is_opened_again {
                db.close().unwrap();
                db = open(&place);
            }
            copy(&older, &place, how);
            assert_refused(db);
            assert_is(&place, "[1]");
        }
    }
}

/// What is committed behind the older content stands there, and must not pass for all of it.
#[test]
fn commits_in_quick_succession_end_soon_after_an_older_copy_was_copied_over_their_files() {
    for how in [How::Over, How::Instead] {
        for clock_goes_on in [false, true] {
            let home = tempfile::tempdir().unwrap();
            let (place, older) = (home.path().join("db"), home.path().join("older"));
            begin(&place, "[1]").close().unwrap();
            copy(&place, &older, How::Over);
            let clock = Arc::new(Still(AtomicI64::new(1 << 60)));
            let db = open_at(&place, Arc::<Still>::clone(&clock));
            (2..5).for_each(|number| put(&db, &format!("[{number}]")).unwrap());
            copy(&older, &place, how);
            // It was looked just before.
            put(&db, "[5]").unwrap();
            if clock_goes_on {
                clock.0.fetch_add(10_000, Ordering::Relaxed);
                assert_refused(db);
            } else {
                let is_refused = |number: &u32| put(&db, &format!("[6,{number}]")).is_err();
                assert!((0..32).any(|number| is_refused(&number)), "the clock is relied on");
                assert_eq!(db.close().unwrap_err().kind(), ErrorKind::Poisoned);
            }
            assert_is(&place, "[1]");
        }
    }
}

/// The mark that says where the journal ends would stand in the middle of it.
#[test]
fn a_writer_that_closes_leaves_alone_what_was_copied_over_its_files() {
    let home = tempfile::tempdir().unwrap();
    let (place, other) = (home.path().join("db"), home.path().join("other"));
    let copied = begin(&other, "[0]");
    (1..50).for_each(|number| put(&copied, &format!("[{number}]")).unwrap());
    copied.close().unwrap();
    let db = begin(&place, "[2]");
    copy(&other, &place, How::Over);
    assert_eq!(db.close().unwrap_err().kind(), ErrorKind::Poisoned);
    assert_is(&place, "[49]");
}

#[test]
fn a_copy_of_the_files_as_they_are_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (place, same) = (home.path().join("db"), home.path().join("same"));
    let late = CommitOptions {
        durability: Some(Durability::Interval(3_600_000)),
        ..CommitOptions::default()
    };
    let db = begin(&place, "[1]");
    for number in 2..6 {
        copy(&place, &same, How::Over);
        fs::copy(same.join("MANIFEST"), place.join("MANIFEST")).unwrap();
        fs::copy(same.join("MANIFEST"), place.join("copy")).unwrap();
        fs::rename(place.join("copy"), place.join("MANIFEST")).unwrap();
        put(&db, &format!("[{number}]")).unwrap();
        db.document("d").unwrap().put(format!("[{number},0]"), &late).unwrap();
        db.checkpoint().unwrap();
    }
    db.close().unwrap();
    assert_is(&place, "[5,0]");
}
