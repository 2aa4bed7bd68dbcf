//! Transactions over records against a naive model: what they find by indexes, scans and keys while
//! they go on, what a unique index refuses of them, and what histories tell of them afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use duramen::io::{Device, MemoryDevice};
use duramen::{
    Collection, Database, ErrorKind, Filter, IndexDefinition, Key, KeyKind, Revision, ScanOptions,
    Transaction,
};
use serde_json::{Value, json};

use crate::feeds::{Random, how, options};

/// Keys that begin with each other, and the longest one.
const KEYS: [&str; 8] = ["a", "a/", "a~1", "{*}", "\u{7f}", "\u{80}", "\u{10ffff}", "\u{0}"];

type Records = BTreeMap<String, Value>;

/// A collection as it should be, at each revision; none where it is deleted.
struct Model {
    random: Random,
    revisions: Vec<Option<Records>>,
}

fn key(random: &mut Random) -> String {
    match random.below(KEYS.len() as u64 + 1) {
        0 => "k".repeat(1_024),
        at => KEYS[usize::try_from(at - 1).unwrap()].to_owned(),
    }
}

fn record(random: &mut Random) -> Value {
    let tags: Vec<u64> = (0..random.below(4)).map(|_| random.below(3)).collect();
    let n = if random.below(5) == 0 { Value::Null } else { json!(random.below(3)) };
    json!({"n": n, "t": tags, "u": {"v": random.below(12)}})
}

fn has_tag(record: &Value, tag: u64) -> bool {
    record["t"].as_array().is_some_and(|tags| tags.contains(&json!(tag)))
}

fn has_number(record: &Value, n: u64) -> bool {
    record["n"] == json!(n)
}

/// Whether two records have the same code and number, neither of them null.
fn shares_values(records: &Records) -> bool {
    let mut seen = BTreeSet::new();
    let mut values = records.values().filter(|record| !record["n"].is_null());
    values.any(|record| !seen.insert((record["u"]["v"].to_string(), record["n"].to_string())))
}

/// One change of the collection, of which `records` are what there is, if it is not deleted.
fn change(random: &mut Random, transaction: &mut Transaction, records: &mut Option<Records>) {
    let (name, value, of) = (key(random), record(random), random.below(3));
    let text = value.to_string().into_bytes();
    let put = |transaction: &mut Transaction, name: &str, value: &Value| {
        transaction.put_record("c", &name.into(), value.to_string().as_bytes()).unwrap();
    };
    let Some(there) = records else {
        transaction.insert_record("c", &name.as_str().into(), &text).unwrap();
        *records = Some([(name, value)].into());
        return;
    };
    match random.below(12) {
        0 => {
            let patch = json!({"n": of}).to_string();
            let filter = Filter::contains("t", of);
            let found = transaction.update_records_where("c", &filter, patch.as_bytes()).unwrap();
            let chosen = there.values_mut().filter(|record| has_tag(record, of));
            assert_eq!(chosen.map(|record| record["n"] = json!(of)).count() as u64, found);
        }
        1 => {
            let found = transaction.delete_records_where("c", &Filter::eq("n", of)).unwrap();
            let before = there.len();
            there.retain(|_, record| !has_number(record, of));
            assert_eq!((before - there.len()) as u64, found);
        }
        2 | 3 => {
            let count = transaction.delete_records("c", &[name.as_str().into()]).unwrap();
            assert_eq!(count, u64::from(there.remove(&name).is_some()));
        }
        // Two records take each other's values.
        4 | 5 if there.len() > 1 => {
            let (first, last) = (there.pop_first().unwrap(), there.pop_last().unwrap());
            put(transaction, &first.0, &last.1);
            put(transaction, &last.0, &first.1);
            there.extend([(first.0, last.1), (last.0, first.1)]);
        }
        6 if random.below(4) == 0 => {
            transaction.delete_document("c").unwrap();
            *records = None;
        }
        _ => {
            put(transaction, &name, &value);
            there.insert(name, value);
        }
    }
}

/// What a transaction finds of what it made itself.
fn look(random: &mut Random, transaction: &mut Transaction, records: &Records) {
    let of = random.below(3);
    let keys = |is: &dyn Fn(&Value) -> bool| {
        let chosen = records.iter().filter(|(_, record)| is(record));
        chosen.map(|(name, _)| Key::from(name.as_str())).collect::<BTreeSet<Key>>()
    };
    let numbered = transaction.find_records("c", &Filter::eq("n", of)).unwrap();
    assert_eq!(BTreeSet::from_iter(numbered), keys(&|record| has_number(record, of)));
    let tagged = transaction.find_records("c", &Filter::eq("t[*]", of)).unwrap();
    assert_eq!(BTreeSet::from_iter(tagged), keys(&|record| has_tag(record, of)));
    assert_eq!(transaction.count_records("c").unwrap(), records.len() as u64);
    let name = key(random);
    let found = transaction.get_record("c", &name.as_str().into()).unwrap();
    assert_eq!(found.map(|json| json.parse().unwrap()).as_ref(), records.get(&name));
    let from = Bound::Excluded(name.as_str().into());
    let reverse = random.below(2) == 0;
    let scan = ScanOptions { from, reverse, ..ScanOptions::default() };
    let mut scanned = transaction.scan_records("c", &scan).unwrap();
    if reverse {
        scanned.reverse();
    }
    let scanned: Vec<_> = scanned.into_iter().map(|(key, _)| key).collect();
    let behind = records.keys().filter(|other| **other > name);
    assert_eq!(scanned, behind.map(|name| Key::from(name.as_str())).collect::<Vec<_>>());
}

impl Model {
    /// Puts a record into the collection, which is deleted.
    fn revive(&mut self, db: &Database) {
        let value = record(&mut self.random);
        db.collection("c").unwrap().put("a", value.to_string(), &how()).unwrap();
        self.revisions.push(Some([("a".to_owned(), value)].into()));
    }

    /// A transaction, committed unless it breaks what is unique.
    fn commit(&mut self, db: &Database) {
        let random = &mut self.random;
        let mut records = self.revisions.last().unwrap().clone();
        let mut transaction = db.transaction();
        for _ in 0..=random.below(5) {
            change(random, &mut transaction, &mut records);
            if let Some(records) = &records {
                look(random, &mut transaction, records);
            }
        }
        let committed = transaction.commit(&how());
        if records.as_ref().is_some_and(shares_values) {
            assert_eq!(committed.unwrap_err().kind(), ErrorKind::Conflict);
            return;
        }
        // Where nothing but the order of members differs there is a revision too.
        if committed.unwrap().revisions.is_empty() {
            assert_eq!(&records, self.revisions.last().unwrap());
        } else {
            self.revisions.push(records);
        }
    }

    fn compare(&self, collection: &Collection) {
        for (revision, records) in self.revisions.iter().enumerate().skip(1) {
            let at = collection.at(Revision(revision as u64));
            let Some(records) = records else {
                assert_eq!(at.unwrap_err().kind(), ErrorKind::NotFound);
                continue;
            };
            let scan = at.unwrap().scan(&ScanOptions::default()).unwrap().map(Result::unwrap);
            let found = scan.map(|record| (record.key.to_string(), record.json.parse().unwrap()));
            assert_eq!(&found.collect::<Records>(), records, "revision {revision}");
        }
        let names: BTreeSet<_> = self.revisions.iter().flatten().flat_map(Records::keys).collect();
        for name in names {
            self.compare_history(collection, name);
        }
    }

    /// What a history tells of a record is what one revision after the other has of it.
    fn compare_history(&self, collection: &Collection, name: &str) {
        let (mut expected, mut before) = (Vec::new(), None);
        for (revision, records) in self.revisions.iter().enumerate() {
            let now = records.as_ref().and_then(|records| records.get(name));
            if now != before {
                expected.push((revision as u64, now.cloned()));
                before = now;
            }
        }
        let history = collection.history(name).unwrap().map(Result::unwrap);
        let mut told: Vec<_> = history
            .map(|event| (event.revision.0, event.record.map(|it| it.json.parse().unwrap())))
            .collect();
        told.reverse();
        // A version may differ in the order of its members only, but nothing goes twice.
        told.dedup_by(|next, last| next.1.is_some() && next.1 == last.1);
        assert_eq!(told, expected, "record {name:?}");
    }
}

#[test]
fn transactions_see_and_leave_what_a_model_of_them_has() {
    let (mut conflicts, mut deletions) = (0, 0);
    for seed in 0..6 {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let mut db = Database::open_device(Arc::clone(&device), options()).unwrap();
        let collection = db.create_collection("c", KeyKind::Text).unwrap();
        for (index, paths) in [("n", &["n"][..]), ("t", &["t[*]"]), ("u", &["u.v", "n"])] {
            let index = IndexDefinition::new(index, paths).unwrap();
            let index = if paths.len() > 1 { index.unique() } else { index };
            collection.create_index(&index).unwrap();
        }
        collection.put("a", json!({"n": 1}).to_string(), &how()).unwrap();
        drop(collection);
        let first = Some([("a".to_owned(), json!({"n": 1}))].into());
        let mut model = Model { random: Random(seed), revisions: vec![None, first] };
        for step in 0..90 {
            let revisions = model.revisions.len();
            model.commit(&db);
            conflicts += usize::from(model.revisions.len() == revisions);
            match model.random.below(12) {
                0 => db.checkpoint().unwrap(),
                1 => db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap(),
                2 => {
                    drop(db);
                    db = Database::open_device(Arc::clone(&device), options()).unwrap();
                }
                _ => {}
            }
            if step % 30 == 29 {
                if model.revisions.last().unwrap().is_none() {
                    model.revive(&db);
                }
                model.compare(&db.collection("c").unwrap());
            }
        }
        deletions += model.revisions.iter().filter(|records| records.is_none()).count() - 1;
        let report = db.check().unwrap();
        assert!(report.is_clean(), "seed {seed}: {:?}", report.findings);
    }
    assert!(conflicts > 20 && deletions > 6, "{conflicts} conflicts, {deletions} deletions");
}
