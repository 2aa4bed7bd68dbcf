//! Long reads that threads share, of damaged files: right records come in their order, and then one
//! error that names the file and where in it. Records are read by pages, so that those of the page
//! with the damage do not come.

use duramen::io::MemoryDevice;
use duramen::{
    CommitOptions, Database, ErrorKind, Key, KeyKind, Query, Record, Result, ScanOptions,
};

use crate::damage::{Files, Random, device_of, files_of, open};

const COUNT: u64 = 40_000;
const TRIES: usize = 24;
/// More than a block takes.
const BLOCK_BYTES: usize = 256 << 10;

fn item(number: u64) -> String {
    let mut random = Random(number);
    let words = [(); 4].map(|()| random.below(1 << 40));
    format!(r#"{{"n":{number},"text":"{words:x?}"}}"#)
}

/// The key of the record that came so late.
fn key(number: u64) -> u64 {
    number * 7_919 % COUNT
}

/// A long list, and as many records that were born in another order than that of their keys.
fn database() -> Files {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    let options = CommitOptions::default();
    db.create_document("list").unwrap().put(list(), &options).unwrap();
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    records.put_many((0..COUNT).map(|number| (key(number), item(number))), &options).unwrap();
    db.checkpoint().unwrap();
    drop(records);
    db.close().unwrap();
    files_of(&device)
}

fn list() -> String {
    format!("[{}]", (0..COUNT).map(item).collect::<Vec<_>>().join(","))
}

/// How many records come before the error, if there is one: those expected, in their order.
fn read(
    mut records: impl Iterator<Item = Result<Record>>,
    expected: &[u64],
    damaged: usize,
) -> Option<usize> {
    for (at, &number) in expected.iter().enumerate() {
        match records.next().unwrap() {
            Ok(record) => {
                assert_eq!((record.key, record.json), (Key::U64(key(number)), item(number)));
            }
            Err(error) => {
                assert_tells_of(damaged, &error);
                assert!(records.next().is_none(), "it goes on behind an error");
                return Some(at);
            }
        }
    }
    assert!(records.next().is_none());
    None
}

/// That it is told which block of the segment is damaged.
fn assert_tells_of(damaged: usize, error: &duramen::Error) {
    let text = error.to_string();
    let rest = text.strip_prefix("segments/00000001.segment, offset ");
    let offset = rest.and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
    let is_near = offset.is_some_and(|at| at <= damaged && damaged < at + BLOCK_BYTES);
    assert!(error.kind() == ErrorKind::Corrupt && is_near, "damaged at {damaged}: {text}");
}

fn read_list(db: &Database, text: &str, damaged: usize) -> Option<usize> {
    match db.document("list").and_then(|list| list.head()).and_then(|head| head.to_json()) {
        Ok(json) => {
            assert!(json == text, "another text was read");
            None
        }
        Err(error) => {
            assert_tells_of(damaged, &error);
            Some(0)
        }
    }
}

#[test]
fn long_reads_of_damaged_segments_end_with_its_place() {
    let (files, text) = (database(), list());
    let path = files.keys().find(|path| path.starts_with("segments/")).unwrap();
    let births: Vec<u64> = (0..COUNT).collect();
    let mut by_key = births.clone();
    by_key.sort_by_key(|&number| key(number));
    let mut ends: [Vec<usize>; 3] = Default::default();
    for attempt in 0..TRIES {
        let mut bytes = files[path].clone();
        let at = bytes.len() * attempt / TRIES + 100;
        bytes[at] ^= 0xa5;
        let Ok(db) = open(&device_of(&files, (path, &bytes)), true) else { continue };
        ends[0].extend(read_list(&db, &text, at));
        let Ok(records) = db.collection("records") else { continue };
        let scan = records.scan(&ScanOptions::default());
        ends[1].extend(scan.map_or(Some(0), |scan| read(scan, &by_key, at)));
        let found = records.query(&Query::new());
        ends[2].extend(found.map_or(Some(0), |found| read(found, &births, at)));
    }
    assert!(ends.iter().all(|ends| ends.len() > 2), "little was damaged: {ends:?}");
    assert!(ends[2].iter().any(|&end| end > 20_000), "pages before the damage are read: {ends:?}");
}
