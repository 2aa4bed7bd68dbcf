//! What comes and goes in documents that keep part of their history takes no space for ever.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::{Device, MemoryDevice};
use duramen::{
    Collection, CollectionSnapshot, CommitOptions, Database, Document, ErrorKind, JsonPointer, Key,
    KeyKind, LogQuery, Options, Retention, Revision, ScanOptions,
};
use serde_json::{Value, json};

fn open(device: &Arc<MemoryDevice>) -> Database {
    let options = Options { background: false, ..Options::default() };
    Database::open_device(Arc::<MemoryDevice>::clone(device), options).unwrap()
}

fn plain() -> CommitOptions {
    CommitOptions::default()
}

fn compact(db: &Database) {
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
}

fn segment_bytes(db: &Database) -> u64 {
    db.stats().unwrap().segment_bytes
}

fn assert_clean(db: &Database) {
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

fn pointer(text: &str) -> JsonPointer {
    text.parse().unwrap()
}

/// A record with members of every kind, of which no two are alike.
fn record(round: u64, number: u64) -> String {
    let text = format!("{round} of {number}: {}", round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let long = text.repeat(200);
    json!({
        "text": text,
        "list": [{"n": round, "deep": [[number], [text]]}, {"n": number}],
        "long": if number == 7 { long.as_str() } else { "" },
    })
    .to_string()
}

/// All revisions that can be read, as they read.
fn history(document: &Document) -> Vec<(Revision, String)> {
    let head = document.head_revision().unwrap();
    let revisions = (1..=head.0).map(Revision);
    revisions.filter_map(|at| Some((at, document.at(at).ok()?.to_json().ok()?))).collect()
}

/// Replaces the records of a round by those of the next, under the same keys or under new ones.
fn turn(records: &Collection, round: u64) {
    for number in 0..40 {
        let key = Key::from(format!("{}", number + 40 * (round % 3)));
        records.put(key, record(round, number), &plain()).unwrap();
    }
    for number in 0..40 {
        let key = Key::from(format!("{}", number + 40 * ((round + 2) % 3)));
        records.delete(key, &plain()).unwrap();
    }
}

#[test]
fn records_that_come_and_go_take_no_more_space_with_time() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let records = db.create_collection("records", KeyKind::Text).unwrap();
    records.document().retain(Retention::Last(5), &plain()).unwrap();
    let mut bytes = Vec::new();
    for round in 1..=12 {
        turn(&records, round);
        if round == 2 {
            records.document().tag("early", None, &plain()).unwrap();
        }
        db.checkpoint().unwrap();
        let before = history(records.document());
        compact(&db);
        let after = history(records.document());
        assert!(after.len() >= 5 && after.iter().all(|kept| before.contains(kept)));
        assert_clean(&db);
        bytes.push(segment_bytes(&db));
    }
    assert!(bytes[11] < bytes[3] + bytes[3] / 4, "{bytes:?}");
    let tagged = records.document().at_tag("early").unwrap().to_json().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&tagged).unwrap().as_object().unwrap().len(), 40);
    // Each key was there in every third round, and counts on.
    let found = records.get(Key::from("0")).unwrap().unwrap();
    assert_eq!(found.version, 4);
    drop((records, db));
    let db = open(&device);
    assert_clean(&db);
    let records = db.collection("records").unwrap();
    assert_eq!(records.get(Key::from("0")).unwrap().unwrap(), found);
    let error = records.history(Key::from("40")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("that is kept"), "{error}");
}

#[test]
fn elements_that_come_and_go_take_no_more_space_with_time() {
    let db = open(&Arc::new(MemoryDevice::new()));
    let document = db.create_document("d").unwrap();
    document.retain(Retention::Head, &plain()).unwrap();
    let mut bytes = Vec::new();
    for round in 1..=12_u64 {
        let of = |first: u64| (first..first + 600).step_by(2);
        let list = of(round * 100).map(|number| record(number, number));
        let list: Vec<String> = list.collect();
        document.put(format!("{{\"list\":[{}]}}", list.join(",")), &plain()).unwrap();
        for index in [3, 77, 200] {
            document.remove(&pointer(&format!("/list/{index}")), &plain()).unwrap();
        }
        db.checkpoint().unwrap();
        let before = history(&document);
        compact(&db);
        assert_eq!(history(&document).last(), before.last());
        assert_clean(&db);
        bytes.push(segment_bytes(&db));
    }
    assert!(bytes[11] < bytes[6] + bytes[6] / 8, "{bytes:?}");
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

/// Saves or deletes one of a few records; values come back as they were, in part or as others.
fn change(records: &Collection, random: &mut Random) {
    let key = Key::from(format!("{}", random.below(12)));
    if random.below(3) == 0 {
        let _ = records.delete(key, &plain());
        return;
    }
    let members = ["a", "b", "c", "d"].into_iter().filter_map(|name| {
        let value = match random.below(6) {
            0 | 1 => return None,
            2 => json!(random.below(2)),
            3 => json!([{"x": random.below(3)}, {"y": [random.below(3), 1]}]),
            4 => json!({"m": random.below(2), "n": {"o": 1}}),
            _ => json!(format!("{}", random.below(2)).repeat(5_000)),
        };
        Some((name.to_owned(), value))
    });
    let value = Value::Object(members.collect());
    records.put(key, value.to_string(), &plain()).unwrap();
}

/// Changes, tags and compacts a collection, with changes while it is compacted.
fn live(seed: u64) {
    let mut random = Random(seed);
    let device = Arc::new(MemoryDevice::new());
    let mut db = open(&device);
    db.create_collection("r", KeyKind::Text).unwrap();
    let mut model: BTreeMap<Revision, String> = BTreeMap::new();
    for _ in 0..30 {
        let records = db.collection("r").unwrap();
        let document = records.document();
        for _ in 0..random.below(12) {
            change(&records, &mut random);
            let head = document.head_revision().unwrap();
            if head.0 > 0 {
                model.entry(head).or_insert_with(|| document.head().unwrap().to_json().unwrap());
            }
        }
        match random.below(8) {
            0 => {
                document.retain(Retention::Last(1 + random.below(20)), &plain()).unwrap();
            }
            1 => drop(document.retain(Retention::Head, &plain()).unwrap()),
            2 if !model.is_empty() => {
                drop(document.tag(&format!("t{}", model.len()), None, &plain()));
            }
            3 => db.checkpoint().unwrap(),
            4 => {
                for tag in document.tags().unwrap() {
                    document.untag(&tag.name, &plain()).unwrap();
                }
            }
            _ => {
                let mut changes = random.below(3);
                db.compact(&mut |_, _| {
                    if changes > 0 {
                        changes -= 1;
                        change(&records, &mut random);
                    }
                    ControlFlow::Continue(())
                })
                .unwrap();
            }
        }
        for (revision, json) in history(document) {
            let expected = model.entry(revision).or_insert_with(|| json.clone());
            assert_eq!(*expected, json, "seed {seed}, revision {revision}");
        }
        assert_clean(&db);
        if random.below(3) == 0 {
            drop((records, db));
            db = open(&device);
        }
    }
}

#[test]
fn what_is_kept_of_records_that_come_and_go_reads_as_before() {
    for seed in 0..30 {
        live(seed);
    }
}

/// Two records and one that was deleted, of which nothing is kept.
fn deleted(device: &Arc<MemoryDevice>) -> (Database, Collection) {
    let db = open(device);
    let records = db.create_collection("records", KeyKind::Text).unwrap();
    for number in 0..3 {
        records.put(Key::from(format!("{number}")), record(1, number), &plain()).unwrap();
    }
    records.delete(Key::from("1"), &plain()).unwrap();
    records.document().retain(Retention::Head, &plain()).unwrap();
    db.checkpoint().unwrap();
    (db, records)
}

/// What a record is once it came back with one member less and one that is as before.
fn come_back(records: &Collection) -> Value {
    let mut value: Value = serde_json::from_str(&record(1, 1)).unwrap();
    value.as_object_mut().unwrap().remove("long");
    records.put(Key::from("1"), value.to_string(), &plain()).unwrap();
    value
}

fn assert_back(db: &Database, expected: &Value) {
    let found = db.collection("records").unwrap().get(Key::from("1")).unwrap().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&found.json).unwrap(), *expected);
    assert_eq!(found.version, 2);
    assert_clean(db);
}

#[test]
fn what_comes_back_after_it_departed_is_all_new_and_counts_on() {
    let device = Arc::new(MemoryDevice::new());
    let (db, records) = deleted(&device);
    compact(&db);
    let expected = come_back(&records);
    assert_back(&db, &expected);
    drop((records, db));
    assert_back(&open(&device), &expected);
}

/// What it is compared with is dropped by a compaction that began before.
#[test]
fn what_comes_back_while_it_is_dropped_is_whole() {
    let device = Arc::new(MemoryDevice::new());
    let (db, records) = deleted(&device);
    let mut expected = None;
    db.compact(&mut |_, _| {
        expected.get_or_insert_with(|| come_back(&records));
        ControlFlow::Continue(())
    })
    .unwrap();
    let expected = expected.unwrap();
    assert_eq!(records.document().first_revision().unwrap(), Revision(4));
    assert_back(&db, &expected);
    db.checkpoint().unwrap();
    compact(&db);
    assert_back(&db, &expected);
    drop((records, db));
    assert_back(&open(&device), &expected);
}

/// Whoever is changing the document may have compared something with what has departed.
#[test]
fn a_transaction_that_is_open_holds_off_what_departs_but_not_the_compaction() {
    let device = Arc::new(MemoryDevice::new());
    let (db, records) = deleted(&device);
    let mut transaction = db.transaction();
    let value = record(1, 1);
    transaction.put_record("records", &Key::from("1"), value.as_bytes()).unwrap();
    compact(&db);
    assert_eq!(records.document().first_revision().unwrap(), Revision(4));
    transaction.commit(&plain()).unwrap();
    assert_back(&db, &serde_json::from_str(&value).unwrap());
    compact(&db);
    assert_back(&db, &serde_json::from_str(&value).unwrap());
}

/// A record that hardly shrinks when it is compressed.
fn noise(number: u64, random: &mut Random) -> String {
    let mut text = |letters: usize| {
        let bits = (0..letters.div_ceil(8)).map(|_| format!("{:08x}", random.below(1 << 32)));
        bits.collect::<String>()
    };
    let long = if number == 7 { text(5_000) } else { String::new() };
    json!({"text": text(200), "list": [{"n": text(16)}, number], "long": long}).to_string()
}

/// A document and a collection, both with values of every kind.
fn filled(db: &Database) -> (Document, Collection) {
    let document = db.create_document("document").unwrap();
    let mut random = Random(7);
    let list: Vec<String> = (0..300).map(|number| noise(number % 8, &mut random)).collect();
    document.put(format!("{{\"list\":[{}]}}", list.join(",")), &plain()).unwrap();
    document.set(&pointer("/list/5/text"), "\"changed\"", &plain()).unwrap();
    let records = db.create_collection("records", KeyKind::Text).unwrap();
    for number in 0..300 {
        let value = noise(number, &mut random);
        records.put(Key::from(format!("{number}")), value, &plain()).unwrap();
    }
    records.put(Key::from("0"), record(3, 0), &plain()).unwrap();
    db.checkpoint().unwrap();
    (document, records)
}

fn delete_both(db: &Database) {
    for name in ["document", "records"] {
        let why = CommitOptions { message: Some("not needed".to_owned()), ..plain() };
        db.delete_document(name, &why).unwrap();
    }
}

/// Of a field that was set twice only the later value takes space: with it, and with the one that
/// a tag keeps.
#[test]
fn values_that_no_kept_revision_has_give_their_space_back() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    let mut random = Random(11);
    let mut put_all = || {
        let all = (0..400_u64).map(|number| (number, noise(number, &mut random)));
        let all: Vec<_> = all.collect();
        records.put_many(all.clone(), &plain()).unwrap();
        db.checkpoint().unwrap();
        all
    };
    let scan = |snapshot: CollectionSnapshot| -> Vec<(u64, String)> {
        let records = snapshot.scan(&ScanOptions::default()).unwrap().map(|found| found.unwrap());
        (0..).zip(records.map(|record| record.json)).collect()
    };
    let first = put_all();
    compact(&db);
    let one = segment_bytes(&db);
    let second = put_all();
    records.document().tag("second", Some(Revision(2)), &plain()).unwrap();
    let third = put_all();
    records.document().retain(Retention::Head, &plain()).unwrap();
    compact(&db);
    let two = segment_bytes(&db);
    assert!((18 * one..22 * one).contains(&(10 * two)), "{two} bytes, {one} with one of each");
    assert_eq!(scan(records.at(Revision(2)).unwrap()), second);
    records.document().untag("second", &plain()).unwrap();
    put_all();
    let fifth = put_all();
    compact(&db);
    let left = segment_bytes(&db);
    assert!((9 * one..11 * one).contains(&(10 * left)), "{left} bytes, {one} with one of each");
    assert_ne!(first, third);
    assert_eq!(scan(records.head().unwrap()), fifth);
    assert_clean(&db);
}

/// A document with an array and an object beside something that stays.
fn fields(random: &mut Random) -> String {
    let list: Vec<String> = (0..300).map(|number| noise(number % 8, random)).collect();
    let object = format!("{{\"a\":{},\"b\":{{\"c\":[{}]}}}}", noise(7, random), noise(7, random));
    format!("{{\"stays\":[1],\"list\":[{}],\"object\":{object}}}", list.join(","))
}

/// Elements of an array that was removed as a field once stayed for ever, and so did all that was
/// in such an object.
#[test]
fn what_was_in_removed_fields_gives_its_space_back() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let document = db.create_document("d").unwrap();
    document.retain(Retention::Head, &plain()).unwrap();
    let value = fields(&mut Random(5));
    document.put(value.as_str(), &plain()).unwrap();
    compact(&db);
    let full = segment_bytes(&db);
    document.tag("whole", None, &plain()).unwrap();
    document.remove(&pointer("/list"), &plain()).unwrap();
    document.remove(&pointer("/object"), &plain()).unwrap();
    let without = r#"{"stays":[1]}"#;
    compact(&db);
    assert_eq!(document.at_tag("whole").unwrap().to_json().unwrap(), value);
    assert!(segment_bytes(&db) * 10 > full * 9, "a tag keeps all");
    document.untag("whole", &plain()).unwrap();
    compact(&db);
    assert_eq!(document.head().unwrap().to_json().unwrap(), without);
    assert_clean(&db);
    let left = segment_bytes(&db);
    assert!(left * 20 < full, "{left} bytes are left of {full}");
    // What comes back in part is compared with nothing.
    let part = r#"{"stays":[1],"object":{"b":{"c":[7]}},"list":[{"n":1}]}"#;
    document.put(part, &plain()).unwrap();
    for is_compacted in [false, true] {
        if is_compacted {
            compact(&db);
        }
        assert_eq!(document.head().unwrap().to_json().unwrap(), part);
        assert_clean(&db);
    }
    drop((document, db));
    let db = open(&device);
    assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), part);
    assert_clean(&db);
}

/// A merge in the background drops the revisions and leaves what departed: on demand it goes, and
/// nothing is written anew once it has.
#[test]
fn what_the_background_leaves_goes_on_demand() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let document = db.create_document("d").unwrap();
    document.put(fields(&mut Random(6)), &plain()).unwrap();
    db.checkpoint().unwrap();
    let full = segment_bytes(&db);
    document.remove(&pointer("/list"), &plain()).unwrap();
    document.remove(&pointer("/object"), &plain()).unwrap();
    document.retain(Retention::Head, &plain()).unwrap();
    let other = db.create_document("other").unwrap();
    for round in 0..64_u64 {
        other.put(record(round, 1), &plain()).unwrap();
        db.checkpoint().unwrap();
        if document.first_revision().unwrap() > Revision(1) {
            break;
        }
    }
    assert_eq!(document.first_revision().unwrap(), Revision(3));
    assert!(segment_bytes(&db) * 2 > full);
    compact(&db);
    let left = segment_bytes(&db);
    assert!(left * 10 < full, "{left} bytes are left of {full}");
    assert_eq!(document.head().unwrap().to_json().unwrap(), r#"{"stays":[1]}"#);
    assert_clean(&db);
    let files = || device.list("segments").unwrap();
    let before = files();
    compact(&db);
    assert_eq!(files(), before, "nothing was written anew");
}

/// Only the tombstones and the names of what there was are left.
fn assert_gone(db: &Database, full: u64) {
    assert_clean(db);
    let left = segment_bytes(db);
    assert!(left * 10 < full, "{left} bytes are left of {full}");
    assert_eq!(db.stats().unwrap().superseded_bytes, 0);
    let deleted = db.deleted_documents().unwrap();
    let told: Vec<_> = deleted.iter().map(|found| (found.name.as_str(), found.revision)).collect();
    assert_eq!(told, [("document", Revision(3)), ("records", Revision(302))]);
    assert!(deleted.iter().all(|found| found.message.as_deref() == Some("not needed")));
    for found in deleted {
        let document = db.document(&found.name).unwrap();
        assert_eq!(document.first_revision().unwrap(), found.revision);
        let log: Vec<_> =
            document.log(&LogQuery::default()).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(log.len(), 1);
        assert_eq!(log[0].revision, found.revision);
        let error = document.head().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("keeps none before"), "{error}");
    }
}

#[test]
fn a_deleted_document_that_is_kept_no_more_gives_its_space_back() {
    for keep in [Retention::Head, Retention::Last(1)] {
        let device = Arc::new(MemoryDevice::new());
        let db = open(&device);
        let (document, records) = filled(&db);
        for kept in [&document, records.document()] {
            kept.retain(keep, &plain()).unwrap();
        }
        compact(&db);
        let full = segment_bytes(&db);
        delete_both(&db);
        db.checkpoint().unwrap();
        let superseded = db.stats().unwrap().superseded_bytes;
        assert!(superseded * 2 > full, "{superseded} bytes of {full} are superseded");
        compact(&db);
        assert_gone(&db, full);
        let left = segment_bytes(&db);
        compact(&db);
        assert_eq!(segment_bytes(&db), left, "nothing was written anew");
        drop((document, records, db));
        assert_gone(&open(&device), full);
    }
}

#[test]
fn a_deleted_document_that_is_kept_no_more_goes_when_segments_are_merged() {
    let db = open(&Arc::new(MemoryDevice::new()));
    let (document, records) = filled(&db);
    let full = segment_bytes(&db);
    for kept in [&document, records.document()] {
        kept.retain(Retention::Head, &plain()).unwrap();
    }
    delete_both(&db);
    let other = db.create_document("other").unwrap();
    for round in 0..64_u64 {
        other.put(record(round, 1), &plain()).unwrap();
        db.checkpoint().unwrap();
        if segment_bytes(&db) * 4 < full {
            return assert_clean(&db);
        }
    }
    panic!("{} bytes are left of {full}", segment_bytes(&db));
}

#[test]
fn of_a_deleted_document_every_kept_revision_stays() {
    let db = open(&Arc::new(MemoryDevice::new()));
    let (document, records) = filled(&db);
    let before = (history(&document), history(records.document()));
    document.tag("first", Some(Revision(1)), &plain()).unwrap();
    for kept in [&document, records.document()] {
        kept.retain(Retention::Last(2), &plain()).unwrap();
    }
    delete_both(&db);
    compact(&db);
    assert_eq!(history(&document), before.0);
    assert_eq!(history(records.document()), before.1[before.1.len() - 1..]);
    // With the tag, the last revision in which it was there goes too.
    document.untag("first", &plain()).unwrap();
    for kept in [&document, records.document()] {
        kept.retain(Retention::Head, &plain()).unwrap();
    }
    let full = segment_bytes(&db);
    compact(&db);
    assert_gone(&db, full);
}

/// Puts both again: the record as it was, the document in part.
fn put_both(db: &Database) {
    let document = db.document("document").unwrap();
    document.put(format!("{{\"list\":[{}],\"new\":1}}", record(1, 1)), &plain()).unwrap();
    let records = db.collection("records").unwrap();
    records.document().put("{}", &plain()).unwrap();
    records.put(Key::from("0"), record(3, 0), &plain()).unwrap();
    records.put(Key::from("new"), record(9, 9), &plain()).unwrap();
}

fn assert_both(db: &Database) {
    assert_clean(db);
    let document = db.document("document").unwrap();
    assert_eq!(document.head_revision().unwrap(), Revision(4));
    let value = document.head().unwrap().to_json().unwrap();
    assert_eq!(value, format!("{{\"list\":[{}],\"new\":1}}", record(1, 1)));
    let records = db.collection("records").unwrap();
    assert_eq!(records.count().unwrap(), 2);
    let found = records.get(Key::from("0")).unwrap().unwrap();
    assert_eq!((found.json, found.version), (record(3, 0), 3));
    assert!(records.get(Key::from("1")).unwrap().is_none());
    assert_eq!(records.get(Key::from("new")).unwrap().unwrap().version, 1);
}

#[test]
fn a_deleted_document_is_put_again_after_it_has_gone() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let (document, records) = filled(&db);
    for kept in [&document, records.document()] {
        kept.retain(Retention::Head, &plain()).unwrap();
    }
    delete_both(&db);
    compact(&db);
    put_both(&db);
    assert_both(&db);
    compact(&db);
    assert_both(&db);
    drop((document, records, db));
    assert_both(&open(&device));
}

/// What it is compared with is dropped by a compaction that began before.
#[test]
fn a_deleted_document_that_is_put_again_while_it_goes_is_whole() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let (document, records) = filled(&db);
    for kept in [&document, records.document()] {
        kept.retain(Retention::Head, &plain()).unwrap();
    }
    delete_both(&db);
    let mut is_put = false;
    db.compact(&mut |_, _| {
        if !std::mem::replace(&mut is_put, true) {
            put_both(&db);
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_both(&db);
    db.checkpoint().unwrap();
    compact(&db);
    assert_both(&db);
    drop((document, records, db));
    assert_both(&open(&device));
}
