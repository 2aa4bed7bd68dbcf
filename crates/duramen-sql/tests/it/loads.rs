//! Long files, which are loaded in bulk.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use duramen::{
    Collection, CommitOptions, Database, ErrorKind, Key, KeyKind, Revision, ScanOptions,
};
use duramen_sql::{CopyProgress, RecordFile, Session, SessionOptions};
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
        ("{\"id\":\"x\"}", ErrorKind::Invalid, r#"line 30001: member "id": the key "x" is not of"#),
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

/// Values of several kinds once came back as texts, and members that were missing as null.
#[test]
fn records_come_back_from_lines_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.ndjson");
    let db = Database::memory().unwrap();
    let put = [
        r#"{"a":1,"b":null}"#,
        r#"{"a":"1","c":{"x":[]}}"#,
        r#"{"b":"","c":[1,"2",{}],"a":1.50}"#,
        "{}",
    ];
    let session = Session::new(db.clone(), SessionOptions::default());
    for keys in [KeyKind::Text, KeyKind::I64, KeyKind::U64, KeyKind::Uuid] {
        let (from, to) = (format!("from_{keys}"), format!("to_{keys}"));
        let records = db.create_collection(&from, keys).unwrap();
        for (n, json) in put.iter().enumerate() {
            let key = match keys {
                KeyKind::Uuid => Key::Uuid(n as u128),
                keys => keys.parse(&n.to_string()).unwrap(),
            };
            records.put(key, json, &CommitOptions::default()).unwrap();
        }
        let copied = db.create_collection(&to, keys).unwrap();
        session.query(&format!("COPY {from} TO '{}'", path.display())).unwrap();
        session.query(&format!("COPY {to} FROM '{}'", path.display())).unwrap();
        let all = |records: &Collection| {
            let found = records.head().unwrap();
            let found = found.scan(&ScanOptions::default()).unwrap();
            found
                .map(|record| record.map(|found| (found.key, found.json)).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(all(&copied), all(&records));
        session.query(&format!("DELETE FROM {from}")).unwrap();
        let past = format!("COPY {from} FOR SYSTEM_TIME AS OF 4 TO '{}'", path.display());
        let count = session.query(&past).map(|_| ());
        assert!(count.is_ok(), "{count:?}");
        assert_eq!(
            RecordFile::ndjson(lines(&path), "_key")
                .next(keys, &mut Vec::new())
                .unwrap()
                .unwrap()
                .1,
            1
        );
    }
}

#[expect(clippy::disallowed_methods, reason = "a file that the statement wrote")]
fn lines(path: &std::path::Path) -> Box<dyn std::io::BufRead + Send> {
    Box::new(std::io::BufReader::new(std::fs::File::open(path).unwrap()))
}
