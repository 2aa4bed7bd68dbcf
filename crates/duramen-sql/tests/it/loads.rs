//! Long files, which are loaded in bulk.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use duramen::{CommitOptions, Database, ErrorKind, KeyKind, Revision};
use duramen_sql::{CopyProgress, Session, SessionOptions};
use tempfile::TempDir;

const RECORDS: i64 = 30_000;

/// A file of records, which ends with some lines, in a folder of its own.
#[expect(clippy::disallowed_methods, reason = "files for the statement to read")]
fn file(end: &str) -> (TempDir, PathBuf) {
    let mut text = String::new();
    for key in 0..RECORDS {
        writeln!(text, "{{\"id\":{key},\"name\":\"one of many records, {}\"}}", key % 7).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.ndjson");
    std::fs::write(&path, text + end).unwrap();
    (folder, path)
}

#[test]
fn a_long_file_is_copied_into_a_collection_without_revisions_in_bulk() {
    let copied = |end: &str, is_cancelled: bool| {
        let (_folder, path) = file(end);
        let db = Database::memory().unwrap();
        let records = db.create_collection("c", KeyKind::I64).unwrap();
        let cancelled = Arc::new(AtomicBool::new(is_cancelled));
        let options = SessionOptions { cancelled, ..SessionOptions::default() };
        let session = Session::new(db.clone(), options);
        let sql = format!("COPY c FROM '{}' (KEY id)", path.display());
        let copied = session.query(&sql).map(drop);
        (records, copied)
    };
    let (records, done) = copied("", false);
    done.unwrap();
    assert_eq!(records.count().unwrap(), RECORDS.cast_unsigned());
    assert_eq!(records.head().unwrap().revision(), Revision(1));
    assert_eq!(records.get(7).unwrap().unwrap().version, 1);
    for (end, kind, why) in [
        ("{\"id\":7}\n", ErrorKind::Conflict, "line 30001: there is a record 7 in collection"),
        ("\n{\"id\":-1,\"a\":}", ErrorKind::Invalid, "line 30002, column 14: expected a value"),
        ("{\"id\":-1,\"a\":\"\\ud800\"}", ErrorKind::Invalid, "line 30001"),
        ("{\"id\":\"x\"}", ErrorKind::Invalid, "line 30001: the key \"x\" is not of"),
    ] {
        let (records, refused) = copied(end, false);
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(why), "{error}");
        assert_eq!(records.count().unwrap(), 0);
    }
    let (records, stopped) = copied("", true);
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(records.count().unwrap(), 0);
}

/// How far a copy is was not told at all.
#[test]
fn a_copy_tells_how_far_it_is() {
    let (_folder, path) = file("");
    let db = Database::memory().unwrap();
    for (name, is_new) in [("new", true), ("old", false)] {
        let records = db.create_collection(name, KeyKind::I64).unwrap();
        if !is_new {
            records.put(-1, "{}", &CommitOptions::default()).unwrap();
        }
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = {
            let told = Arc::clone(&told);
            move |progress: CopyProgress| told.lock().unwrap().push(progress)
        };
        let session = Session::new(db.clone(), SessionOptions::default()).telling(tell);
        session.query(&format!("COPY {name} FROM '{}' (KEY id)", path.display())).unwrap();
        let told = told.lock().unwrap();
        assert!(told.is_sorted_by_key(|progress| (progress.bytes, progress.records)), "{told:?}");
        let last = told.last().unwrap();
        assert!(last.bytes > 0 && last.records > 0, "{name}: {last:?}");
        assert!(told.iter().all(|told| told.bytes_all.is_some_and(|all| told.bytes <= all)));
    }
}
