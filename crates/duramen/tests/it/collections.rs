//! Collections against a naive model, and what they refuse.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::slice;
use std::sync::Arc;

use duramen::io::{Device, MemoryDevice};
use duramen::{
    Collection, ColumnValue, CommitOptions, Database, DocumentOptions, ErrorKind, Key, KeyKind,
    LogQuery, Options, Record, Revision, ScanOptions, Transaction,
};

fn options() -> Options {
    Options { background: false, ..Options::default() }
}

fn how() -> CommitOptions {
    CommitOptions::default()
}

fn text(keys: &[Key]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

fn keys(collection: &Collection, options: &ScanOptions) -> Vec<String> {
    let keys: Vec<Key> = collection.scan(options).unwrap().map(|r| r.unwrap().key).collect();
    text(&keys)
}

/// A generator of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
}

type State = BTreeMap<Key, (u64, String)>;

/// What a revision made of a record: a version and its value, or nothing.
type Event = (u64, Option<(u64, String)>);

/// What a collection is to be: every revision's records, and what happened to each key.
#[derive(Default)]
struct Model {
    states: Vec<State>,
    /// The revisions in which the collection was deleted.
    deleted: BTreeSet<u64>,
    versions: BTreeMap<Key, u64>,
    events: BTreeMap<Key, Vec<Event>>,
}

impl Model {
    fn head(&self) -> State {
        self.states.last().cloned().unwrap_or_default()
    }

    /// Commits a state of which only values are told.
    fn commit(&mut self, values: &BTreeMap<Key, String>) {
        let before = self.head();
        let mut after = State::new();
        let revision = self.states.len() as u64 + 1;
        for (key, json) in values {
            let kept = before.get(key).filter(|(_, old)| old == json);
            if let Some(kept) = kept {
                after.insert(key.clone(), kept.clone());
                continue;
            }
            let version = self.versions.entry(key.clone()).or_default();
            *version += 1;
            after.insert(key.clone(), (*version, json.clone()));
            let event = (revision, Some((*version, json.clone())));
            self.events.entry(key.clone()).or_default().push(event);
        }
        for key in before.keys().filter(|key| !values.contains_key(key)) {
            self.events.entry(key.clone()).or_default().push((revision, None));
        }
        if after != before || self.deleted.contains(&(revision - 1)) {
            self.states.push(after);
        }
    }

    /// Deletes the whole collection.
    fn delete(&mut self) {
        let revision = self.states.len() as u64 + 1;
        for key in self.head().keys() {
            self.events.entry(key.clone()).or_default().push((revision, None));
        }
        self.states.push(State::new());
        self.deleted.insert(revision);
    }

    /// The versions of all records: the key, the revision that made it and the one that ended it.
    fn versions(&self) -> Vec<(String, u64, Option<u64>)> {
        let mut versions = Vec::new();
        for (key, events) in &self.events {
            for (at, (revision, _)) in
                events.iter().enumerate().filter(|(_, event)| event.1.is_some())
            {
                let end = events.get(at + 1).map(|(revision, _)| *revision);
                versions.push((key.to_string(), *revision, end));
            }
        }
        versions.sort();
        versions
    }
}

/// The versions of all records as rows of columns.
fn version_rows(collection: &Collection) -> Vec<(String, u64, Option<u64>)> {
    let head = collection.head().unwrap();
    let columns = head.version_columns(Revision(1)..=head.revision()).unwrap();
    let mut versions = Vec::new();
    for part in 0..columns.parts() {
        let rows = columns.rows(part).unwrap();
        let (keys, changed) = (columns.keys(&rows).unwrap(), columns.changed(&rows).unwrap());
        for (row, (first, end)) in changed.into_iter().zip(rows.ended()).enumerate() {
            let key = match keys.get(row) {
                ColumnValue::Int(key) => key.to_string(),
                ColumnValue::Text(key) => key.to_owned(),
                other => panic!("the key {other:?}"),
            };
            versions.push((key, first.0, end.map(|end| end.0)));
        }
    }
    versions.sort();
    versions
}

fn assert_same(collection: &Collection, model: &Model, random: &mut Random) {
    let head = model.head();
    assert_eq!(collection.count().unwrap(), head.len() as u64);
    let revisions = model.states.len() as u64;
    for _ in 0..3 {
        let (revision, state) = match random.below(revisions + 1) {
            0 => (collection.head().unwrap(), &head),
            at if model.deleted.contains(&at) => {
                let error = collection.at(Revision(at)).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NotFound);
                continue;
            }
            at => (
                collection.at(Revision(at)).unwrap(),
                &model.states[usize::try_from(at).unwrap() - 1],
            ),
        };
        let expected = |key: &Key, found: &(u64, String)| Record {
            key: key.clone(),
            version: found.0,
            json: found.1.clone(),
        };
        let all: Vec<Record> = state.iter().map(|(key, found)| expected(key, found)).collect();
        let scanned = revision.scan(&ScanOptions::default()).unwrap();
        assert_eq!(scanned.collect::<Result<Vec<_>, _>>().unwrap(), all);
        let mut reversed = revision
            .scan(&ScanOptions { reverse: true, ..ScanOptions::default() })
            .unwrap()
            .collect::<Result<Vec<_>, _>>()
            .unwrap();
        reversed.reverse();
        assert_eq!(reversed, all);
        assert_eq!(revision.count().unwrap(), all.len() as u64);
        for key in model.events.keys() {
            let found = state.get(key).map(|found| expected(key, found));
            assert_eq!(revision.get(key).unwrap(), found, "{key} at {:?}", revision.revision());
        }
    }
    for (key, events) in &model.events {
        let history: Vec<_> = collection.history(key).unwrap().map(Result::unwrap).collect();
        let told: Vec<_> = history
            .iter()
            .rev()
            .map(|v| (v.revision.0, v.record.as_ref().map(|r| (r.version, r.json.clone()))))
            .collect();
        assert_eq!(&told, events, "the history of {key}");
    }
    if collection.key_kind() == KeyKind::Text {
        assert_eq!(version_rows(collection), model.versions());
    }
}

/// A key of the kind, one of about 40.
fn some_key(kind: KeyKind, random: &mut Random) -> Key {
    let number = random.below(40);
    match kind {
        KeyKind::Text if number.is_multiple_of(3) => {
            Key::Text(format!("{}{number}", "long/".repeat(180)))
        }
        KeyKind::Text => Key::Text(format!(
            "{}/{number}",
            ["a", "\u{e9}"][usize::from(number.is_multiple_of(2))]
        )),
        KeyKind::I64 => Key::I64(number.cast_signed() - 20),
        KeyKind::U64 => Key::U64(number << 58),
        KeyKind::Uuid => Key::Uuid(u128::from(number) << 90 | u128::from(number)),
    }
}

fn some_record(random: &mut Random) -> String {
    match random.below(4) {
        0 => format!("{{\"a\":{}}}", random.below(5)),
        1 => format!("{{\"a\":{},\"b\":[{},2]}}", random.below(5), random.below(3)),
        2 => format!("{{\"n\":{{\"x\":\"{}\"}},\"a\":null}}", random.below(9)),
        _ => "{}".to_owned(),
    }
}

/// A collection beside its model.
struct Run {
    random: Random,
    kind: KeyKind,
    device: Arc<dyn Device>,
    open: Option<(Database, Collection)>,
    model: Model,
}

impl Run {
    fn new(seed: u64, kind: KeyKind) -> Self {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let db = Database::open_device(Arc::clone(&device), options()).unwrap();
        let collection = db.create_collection("c", kind).unwrap();
        let open = Some((db, collection));
        Self { random: Random(seed), kind, device, open, model: Model::default() }
    }

    fn collection(&self) -> &Collection {
        &self.open.as_ref().unwrap().1
    }

    fn key(&mut self) -> Key {
        some_key(self.kind, &mut self.random)
    }

    fn step(&mut self) {
        let head = self.model.head().into_iter();
        let mut values: BTreeMap<Key, String> = head.map(|(key, (_, json))| (key, json)).collect();
        let (key, json) = (self.key(), some_record(&mut self.random));
        match self.random.below(15) {
            0..=4 => {
                self.collection().put(&key, &json, &how()).unwrap();
                values.insert(key, json);
            }
            5 | 6 => {
                let inserted = self.collection().insert(&key, &json, &how());
                match values.entry(key) {
                    Entry::Occupied(_) => {
                        assert_eq!(inserted.unwrap_err().kind(), ErrorKind::Conflict);
                    }
                    Entry::Vacant(free) => {
                        free.insert(json);
                    }
                }
            }
            7 => {
                let count = self.random.below(8);
                let many = (0..count).map(|_| (self.key(), some_record(&mut self.random)));
                let many: Vec<(Key, String)> = many.collect();
                self.collection().put_many(many.clone(), &how()).unwrap();
                values.extend(many);
            }
            8 => {
                let there = self.collection().delete(&key, &how()).unwrap();
                assert_eq!(there, values.remove(&key).is_some());
            }
            9 => {
                let many: Vec<Key> = (0..self.random.below(12)).map(|_| self.key()).collect();
                self.collection().delete_many(&many, &how()).unwrap();
                values.retain(|key, _| !many.contains(key));
            }
            10 => self.merge(key, &mut values),
            11 => self.leave_and_return((key, json), &mut values),
            12 | 13 => self.transact(&mut values),
            _ => self.settle(),
        }
        self.model.commit(&values);
        let revision = self.collection().head().unwrap().revision();
        assert_eq!(revision.0, self.model.states.len() as u64);
    }

    /// Several changes in one commit, most often of the same records.
    fn transact(&mut self, values: &mut BTreeMap<Key, String>) {
        let mut transaction = self.open.as_ref().unwrap().0.transaction();
        self.stage(&mut transaction, values);
        if self.random.below(4) == 0 && self.model.states.len() > 1 {
            transaction.delete_document("c").unwrap();
            values.clear();
            let (key, json) = (self.key(), some_record(&mut self.random));
            transaction.put_record("c", &key, json.as_bytes()).unwrap();
            values.insert(key, json);
            self.stage(&mut transaction, values);
        }
        transaction.commit(&how()).unwrap();
    }

    /// Changes some records that are there or were: a key that a commit brings and takes again goes
    /// on counting from there.
    fn stage(&mut self, transaction: &mut Transaction, values: &mut BTreeMap<Key, String>) {
        let some = [self.key(), self.key(), self.key()];
        let known = some.iter().filter(|key| self.model.versions.contains_key(key));
        let known: Vec<&Key> = known.collect();
        for _ in 0..if known.is_empty() { 0 } else { self.random.below(8) } {
            let key = known[usize::try_from(self.random.below(known.len() as u64)).unwrap()];
            if self.random.below(3) == 0 {
                let deleted = transaction.delete_records("c", slice::from_ref(key)).unwrap();
                assert_eq!(deleted > 0, values.remove(key).is_some());
            } else {
                let json = some_record(&mut self.random);
                transaction.put_record("c", key, json.as_bytes()).unwrap();
                values.insert(key.clone(), json);
            }
        }
    }

    /// Deletes the collection, and puts all of it again, or one record. What else the commit does
    /// that deletes it is nowhere to be seen.
    fn leave_and_return(&mut self, one: (Key, String), values: &mut BTreeMap<Key, String>) {
        let document = self.collection().document().clone();
        if document.head_revision().unwrap().0 == 0 {
            return;
        }
        let text = document.head().unwrap().to_json().unwrap();
        let mut transaction = self.open.as_ref().unwrap().0.transaction();
        self.stage(&mut transaction, &mut values.clone());
        transaction.delete_document("c").unwrap();
        transaction.commit(&how()).unwrap();
        self.model.delete();
        let (db, collection) = self.open.as_ref().unwrap();
        if self.random.below(2) == 0 {
            db.checkpoint().unwrap();
        }
        if self.random.below(2) == 0 {
            document.put(text, &how()).unwrap();
        } else {
            collection.put(&one.0, &one.1, &how()).unwrap();
            *values = BTreeMap::from([one]);
        }
    }

    fn merge(&mut self, key: Key, values: &mut BTreeMap<Key, String>) {
        let merged = self.collection().merge_patch(&key, r#"{"a":7,"n":null}"#, &how());
        if !values.contains_key(&key) {
            assert_eq!(merged.unwrap_err().kind(), ErrorKind::NotFound);
            return;
        }
        let json = self.collection().get(&key).unwrap().unwrap().json;
        assert!(json.contains("\"a\":7") && !json.contains("\"n\""), "{json}");
        values.insert(key, json);
    }

    /// Writes segments, merges them, or closes the database and opens it again.
    fn settle(&mut self) {
        let what = self.random.below(3);
        let (db, collection) = self.open.take().unwrap();
        match what {
            0 => db.checkpoint().unwrap(),
            1 => db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap(),
            _ => {
                drop((collection, db));
                let db = Database::open_device(Arc::clone(&self.device), options()).unwrap();
                let collection = db.collection("c").unwrap();
                assert_eq!(collection.key_kind(), self.kind);
                self.open = Some((db, collection));
                return;
            }
        }
        self.open = Some((db, collection));
    }
}

#[test]
fn collections_are_as_the_model_says_through_checkpoints_compactions_and_reopening() {
    let kinds = [KeyKind::Text, KeyKind::I64, KeyKind::U64, KeyKind::Uuid];
    for (seed, kind) in (0..24).zip(kinds.into_iter().cycle()) {
        let mut run = Run::new(seed, kind);
        for _ in 0..120 {
            run.step();
        }
        let mut random = Random(seed);
        assert_same(run.collection(), &run.model, &mut random);
        let report = run.open.as_ref().unwrap().0.check().unwrap();
        assert!(report.is_clean(), "seed {seed}: {:?}", report.findings);
    }
}

#[test]
fn a_scan_pages_through_young_keys_and_those_on_disk_in_both_directions() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::U64).unwrap();
    let json = |key: u64| format!("{{\"n\":{key}}}");
    let put = |keys: std::iter::StepBy<std::ops::Range<u64>>| {
        collection.put_many(keys.map(|key| (key, json(key))), &how()).unwrap();
    };
    put((0..2000).step_by(2));
    db.checkpoint().unwrap();
    put((1..2000).step_by(2));
    let all: Vec<String> = (0..2000).map(|key| key.to_string()).collect();
    assert_eq!(keys(&collection, &ScanOptions::default()), all);
    let mut reversed = keys(&collection, &ScanOptions { reverse: true, ..Default::default() });
    reversed.reverse();
    assert_eq!(reversed, all);
    let range = |from, to, reverse, limit| ScanOptions { from, to, reverse, limit, prefix: None };
    let (low, high) = (Key::U64(1000), Key::U64(1003));
    let within = range(Bound::Excluded(low.clone()), Bound::Included(high.clone()), false, None);
    assert_eq!(keys(&collection, &within), ["1001", "1002", "1003"]);
    let within = range(Bound::Included(low), Bound::Excluded(high), true, Some(2));
    assert_eq!(keys(&collection, &within), ["1002", "1001"]);
    let none = range(Bound::Included(Key::U64(5000)), Bound::Unbounded, false, None);
    assert!(keys(&collection, &none).is_empty());
}

#[test]
fn a_prefix_and_bounds_both_hold() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    for key in ["a", "b", "b/", "b/1", "b/2", "b/\u{10ffff}", "c"] {
        collection.put(key, "{}", &how()).unwrap();
    }
    db.checkpoint().unwrap();
    let prefix = Some("b/".to_owned());
    let options = ScanOptions { prefix: prefix.clone(), ..ScanOptions::default() };
    assert_eq!(keys(&collection, &options.clone()), ["b/", "b/1", "b/2", "b/\u{10ffff}"]);
    let from = Bound::Excluded(Key::from("b/1"));
    let options = ScanOptions { from, reverse: true, ..options };
    assert_eq!(keys(&collection, &options), ["b/\u{10ffff}", "b/2"]);
    let numbers = db.create_collection("n", KeyKind::U64).unwrap();
    let error = numbers.scan(&ScanOptions { prefix, ..ScanOptions::default() }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn an_update_of_another_version_is_a_conflict_that_tells_key_and_versions() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("players", KeyKind::Text).unwrap();
    collection.insert("ann", r#"{"n":1}"#, &how()).unwrap();
    assert_eq!(collection.update("ann", 1, r#"{"n":2}"#, &how()).unwrap().version, 2);
    let error = collection.update("ann", 1, r#"{"n":3}"#, &how()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    for part in ["ann", "version 2", "version 1", "players"] {
        assert!(error.message().contains(part), "{error}");
    }
    let error = collection.update("bob", 1, "{}", &how()).unwrap_err();
    assert!(error.message().contains("not there"), "{error}");
    let same = collection.update("ann", 2, r#"{"n":2}"#, &how()).unwrap();
    assert!(!same.outcome.is_committed() && same.version == 2);
}

#[test]
fn a_deleted_key_that_comes_back_goes_on_counting() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    collection.put("k", r#"{"n":1}"#, &how()).unwrap();
    collection.put("k", r#"{"n":2}"#, &how()).unwrap();
    assert!(collection.delete("k", &how()).unwrap());
    assert!(!collection.delete("k", &how()).unwrap());
    assert_eq!(collection.versions(&[Key::from("k")]).unwrap(), [None]);
    assert_eq!(collection.insert("k", r#"{"n":2}"#, &how()).unwrap().version, 3);
    let told: Vec<_> = collection.history("k").unwrap().map(|v| v.unwrap()).collect();
    let versions: Vec<_> = told.iter().map(|v| v.record.as_ref().map(|r| r.version)).collect();
    assert_eq!(versions, [Some(3), None, Some(2), Some(1)]);
}

#[test]
fn what_is_no_record_or_no_key_is_refused_and_nothing_of_the_batch_is_written() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::I64).unwrap();
    for json in ["1", "[]", "null", "\"x\"", "{", ""] {
        let error = collection.put_many([(1, "{}"), (2, json)], &how()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{json}");
        assert!(error.message().contains("record 2"), "{error}");
    }
    let error = collection.put("one", "{}", &how()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(collection.count().unwrap(), 0);
    assert_eq!(collection.head().unwrap().revision(), Revision(0));
    assert_eq!(collection.history(1).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(collection.get(1).unwrap().is_none());
}

#[test]
fn a_collection_is_a_document_and_stays_one_of_records() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::U64).unwrap();
    collection.put_many([(7, r#"{"a":1}"#), (3, r#"{"a":2}"#)], &how()).unwrap();
    let document = db.document("c").unwrap();
    let all = r#"{"00000000000000000007":{"a":1},"00000000000000000003":{"a":2}}"#;
    assert_eq!(document.head().unwrap().to_json().unwrap(), all);
    for json in ["[]", r#"{"x":{}}"#, r#"{"00000000000000000007":1}"#] {
        let error = document.put(json, &how()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{json}: {error}");
    }
    // A change by place is one of the record, and counts.
    let place = "/00000000000000000007/a".parse::<duramen::JsonPointer>().unwrap();
    document.set(&place, "5", &how()).unwrap();
    let record = collection.get(7).unwrap().unwrap();
    assert_eq!((record.version, record.json.as_str()), (2, r#"{"a":5}"#));
    document.undo(Revision(2), &how()).unwrap();
    assert_eq!(collection.get(7).unwrap().unwrap().version, 3);
    let plain = DocumentOptions::default();
    let error = document.set_options(&plain, &how()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    db.create_document("d").unwrap();
    assert_eq!(db.collection("d").unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(db.collections().unwrap(), ["c"]);
}

#[test]
fn one_transaction_changes_collections_and_documents_or_nothing() {
    let db = Database::memory().unwrap();
    let stock = db.create_collection("stock", KeyKind::Text).unwrap();
    let orders = db.create_collection("orders", KeyKind::U64).unwrap();
    stock.put("apple", r#"{"n":2}"#, &how()).unwrap();
    let mut transaction = db.transaction();
    let apple = Key::from("apple");
    transaction.update_record("stock", &apple, 1, br#"{"n":1}"#).unwrap();
    transaction.insert_record("orders", &Key::U64(1), br#"{"of":"apple"}"#).unwrap();
    transaction.put("log", br#"["sold"]"#).unwrap();
    assert_eq!(transaction.get_record("stock", &apple).unwrap().unwrap(), r#"{"n":1}"#);
    assert_eq!(stock.get("apple").unwrap().unwrap().json, r#"{"n":2}"#);
    assert_eq!(transaction.commit(&how()).unwrap().revisions.len(), 3);
    assert_eq!(stock.get("apple").unwrap().unwrap().version, 2);
    assert_eq!(orders.count().unwrap(), 1);
    let mut transaction = db.transaction();
    transaction.delete_records("stock", std::slice::from_ref(&apple)).unwrap();
    assert!(transaction.get_record("stock", &apple).unwrap().is_none());
    transaction.rollback();
    assert!(stock.exists("apple").unwrap());
}

#[test]
fn what_a_change_writes_does_not_grow_with_the_records() {
    let journal_bytes = |records: u64| {
        let db = Database::memory().unwrap();
        let collection = db.create_collection("c", KeyKind::U64).unwrap();
        let json = |key: u64| format!("{{\"n\":{key}}}");
        collection.put_many((0..records).map(|key| (key, json(key))), &how()).unwrap();
        let every_other: Vec<Key> = (0..records).step_by(2).map(Key::U64).collect();
        collection.delete_many(&every_other, &how()).unwrap();
        let mut changes: Vec<u64> = Vec::new();
        let mut last = db.counters().journal_bytes;
        let mut count = || {
            let now = db.counters().journal_bytes;
            changes.push(now - std::mem::replace(&mut last, now));
        };
        collection.put(records / 2 + 1, r#"{"n":0}"#, &how()).unwrap();
        count();
        collection.insert(records, "{}", &how()).unwrap();
        count();
        collection.delete(records / 2 + 1, &how()).unwrap();
        count();
        collection.insert(records / 2, "{}", &how()).unwrap();
        count();
        changes
    };
    let (few, many) = (journal_bytes(2_000), journal_bytes(30_000));
    eprintln!("{few:?} {many:?}");
    // A deletion from many copies one more order block than one from few.
    for (few, many) in few.iter().zip(&many) {
        assert!(*many <= few + 2_048, "{few} bytes among few, {many} among many");
    }
}

#[test]
fn a_scan_beside_writers_and_checkpoints_finds_every_record_of_its_revision() {
    const RECORDS: u64 = 2_000;
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::U64).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for key in 0..RECORDS {
                collection.insert(key.wrapping_mul(0x9e37_79b9_7f4a_7c15), "{}", &how()).unwrap();
                if key % 97 == 0 {
                    db.checkpoint().unwrap();
                }
            }
        });
        loop {
            let now = collection.head().unwrap();
            let scanned = now.scan(&ScanOptions::default()).unwrap().count() as u64;
            assert_eq!(scanned, now.count().unwrap());
            if scanned == RECORDS {
                break;
            }
        }
    });
}

/// The versions of the records were counted too, of which no diff tells.
#[test]
fn the_log_counts_the_changes_that_a_diff_tells() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::U64).unwrap();
    for json in [r#"{"n":1,"m":1}"#, r#"{"n":2,"m":1}"#, r#"{"n":3,"m":2}"#] {
        collection.put(1_u64, json, &how()).unwrap();
    }
    let document = collection.document();
    let told = |revision: u64| {
        let diff = document.diff(Revision(revision - 1), Revision(revision)).unwrap();
        diff.changes.len() as u64
    };
    let logged = || -> Vec<u64> {
        let query = LogQuery { limit: Some(2), ..LogQuery::default() };
        document.log(&query).unwrap().map(|entry| entry.unwrap().changes).collect()
    };
    assert_eq!(logged(), [told(3), told(2)]);
    assert_eq!(logged(), [2, 1]);
    db.checkpoint().unwrap();
    assert_eq!(logged(), [2, 1]);
}

#[test]
fn a_history_tells_where_each_version_differs_from_the_one_before() {
    let db = Database::memory().unwrap();
    let notes = db.create_collection("notes", KeyKind::Text).unwrap();
    let many: Vec<String> = (0..300).map(|n| format!(r#""f{n}":{n}"#)).collect();
    let values = [
        r#"{"a":1,"b":{"c":[1,2]}}"#.to_owned(),
        r#"{"a":2,"b":{"c":[1,3]},"d":"new"}"#.to_owned(),
        r#"{"a":2,"b":{"c":[1,3]}}"#.to_owned(),
        format!("{{{}}}", many.join(",")),
    ];
    for value in &values {
        // What else a commit changes is not told.
        let others = [("other".to_owned(), value.clone()), ("key".to_owned(), value.clone())];
        notes.put_many(others, &how()).unwrap();
    }
    notes.delete("key", &how()).unwrap();
    notes.put("key", "{}", &how()).unwrap();
    let told = |version: duramen::RecordVersion| -> Vec<String> {
        version.changed.iter().map(ToString::to_string).collect()
    };
    let history = notes.history("key").unwrap();
    let changed: Vec<_> = history.map(|version| told(version.unwrap())).collect();
    let wanted: [&[&str]; 6] = [&[""], &[], &[""], &["/d"], &["/a", "/b/c/1", "/d"], &[""]];
    assert_eq!(changed, wanted);
}

#[test]
fn a_record_is_compared_and_blamed_with_pointers_that_begin_at_it() {
    let by = |name: &str| CommitOptions { author: Some(name.into()), ..how() };
    let db = Database::memory().unwrap();
    let notes = db.create_collection("notes", KeyKind::Text).unwrap();
    notes.put("other", "{}", &by("kim")).unwrap();
    notes.put("a/b", r#"{"x":{"y":1},"z":[1]}"#, &by("kim")).unwrap();
    notes.put("a/b", r#"{"x":{"y":2},"z":[1,2]}"#, &by("lee")).unwrap();
    notes.delete("a/b", &by("kim")).unwrap();
    let patch =
        |from, to| notes.diff("a/b", Revision(from), Revision(to)).map(|diff| diff.to_json_patch());
    let forth =
        r#"[{"op":"replace","path":"/x/y","value":2},{"op":"add","path":"/z/1","value":2}]"#;
    assert_eq!(patch(2, 3).unwrap(), forth);
    let back = r#"[{"op":"replace","path":"/x/y","value":1},{"op":"remove","path":"/z/1"}]"#;
    assert_eq!(patch(3, 2).unwrap(), back);
    let whole = r#"[{"op":"add","path":"","value":{"x":{"y":1},"z":[1]}}]"#;
    assert_eq!(patch(1, 2).unwrap(), whole);
    assert_eq!(patch(3, 4).unwrap(), r#"[{"op":"remove","path":""}]"#);
    assert_eq!(patch(2, 2).unwrap(), "[]");
    for (from, to) in [(1, 4), (1, 9)] {
        assert_eq!(patch(from, to).unwrap_err().kind(), ErrorKind::NotFound);
    }
    let blame = |revision| {
        let records = notes.at(Revision(revision)).unwrap();
        let blame = records.blame("a/b", &duramen::BlameOptions::default())?;
        let entries = blame.map(|entry| {
            let entry = entry.unwrap();
            format!("{} {} {}", entry.pointer, entry.revision, entry.author.unwrap())
        });
        Ok::<Vec<String>, duramen::Error>(entries.collect())
    };
    let wanted = [" 2 kim", "/x 2 kim", "/x/y 3 lee", "/z 3 lee", "/z/0 2 kim", "/z/1 3 lee"];
    assert_eq!(blame(3).unwrap(), wanted);
    assert_eq!(blame(4).unwrap_err().kind(), ErrorKind::NotFound);
}
