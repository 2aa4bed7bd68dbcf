//! Long scans and queries of records, which are read ahead.

use crate::{
    CommitOptions, Database, Filter, IndexDefinition, Key, KeyKind, Order, Query, Record, Result,
    Revision, ScanOptions,
};

const RECORDS: u64 = 60_000;

#[test]
fn records_that_a_thread_reads_ahead_come_in_order_at_each_revision() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("many", KeyKind::U64).unwrap();
    // Keys and places of records differ.
    let key = |n: u64| n * 7_919 % RECORDS;
    let put = (0..RECORDS).map(|n| (key(n), format!("{{\"n\":{n}}}")));
    records.put_many(put, &CommitOptions::default()).unwrap();
    let deleted: Vec<_> = (0..RECORDS).filter(|key| key % 5 == 0).map(Key::U64).collect();
    records.delete_many(&deleted, &CommitOptions::default()).unwrap();
    for is_on_disk in [false, true] {
        if is_on_disk {
            db.checkpoint().unwrap();
        }
        for (revision, is_deleted) in [(1, false), (2, true)] {
            let then = records.at(Revision(revision)).unwrap();
            for reverse in [false, true] {
                let options = ScanOptions { reverse, ..ScanOptions::default() };
                let scanned = then.scan(&options).unwrap().map(|record| record.unwrap().key);
                let mut expected: Vec<_> = (0..RECORDS)
                    .filter(|key| !(is_deleted && key % 5 == 0))
                    .map(Key::U64)
                    .collect();
                if reverse {
                    expected.reverse();
                }
                assert!(scanned.eq(expected), "revision {revision}, reverse {reverse}");
            }
        }
    }
}

#[test]
fn a_long_scan_is_left_wherever_its_reader_stops() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("many", KeyKind::U64).unwrap();
    let put = (0..RECORDS).map(|key| (key, "{}"));
    records.put_many(put, &CommitOptions::default()).unwrap();
    for count in [0, 1, 700, 9_000, 40_000] {
        let scan = records.scan(&ScanOptions::default()).unwrap();
        assert_eq!(scan.take(count).map(Result::unwrap).count(), count);
        let limit = Some(count as u64);
        let scan = records.scan(&ScanOptions { limit, ..ScanOptions::default() }).unwrap();
        assert_eq!(scan.map(Result::unwrap).count(), count);
    }
}

#[test]
fn long_answers_that_are_read_ahead_are_those_of_short_batches() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("many", KeyKind::U64).unwrap();
    let json = |key: u64| format!("{{\"n\":{},\"even\":{}}}", key * 7_919 % RECORDS, key % 2);
    records.put_many((0..RECORDS).map(|key| (key, json(key))), &CommitOptions::default()).unwrap();
    let number = |record: Result<Record>| match record.unwrap().key {
        Key::U64(key) => key,
        key => panic!("{key}"),
    };
    let all = |query: &Query| -> Vec<u64> { records.query(query).unwrap().map(number).collect() };
    let even = Query::new().filter(Filter::eq("even", 0));
    let expected: Vec<u64> = (0..RECORDS).step_by(2).collect();
    let sorted = {
        let mut sorted = expected.clone();
        sorted.sort_by_key(|key| key * 7_919 % RECORDS);
        sorted
    };
    assert_eq!(all(&Query::new()), (0..RECORDS).collect::<Vec<_>>());
    for field in ["", "even", "n"] {
        if !field.is_empty() {
            records.create_index(&IndexDefinition::new(field, &[field]).unwrap()).unwrap();
        }
        assert_eq!(all(&even), expected, "index {field:?}");
        let ordered = even.clone().order_by(Order::asc("n"));
        assert_eq!(all(&ordered), sorted, "index {field:?}");
        let part = ordered.clone().offset(9_000).limit(20_000);
        assert_eq!(all(&part), sorted[9_000..29_000], "index {field:?}");
        let mut left = records.query(&even).unwrap();
        assert_eq!(left.by_ref().take(9_000).map(number).count(), 9_000);
        assert!(left.counts().found >= 9_000);
    }
}
