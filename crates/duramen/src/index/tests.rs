use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::collection::sort_key;
use crate::io::{Access, Device, MemoryDevice};
use crate::json::{ParseOptions, Tape};
use crate::limits::INDEX_VALUE_BYTES_MAX;
use crate::tree::data::node;
use crate::tree::schema::ROOT;
use crate::{
    Collection, CommitOptions, Database, ErrorKind, IndexDefinition, JsonPointer, Key, KeyKind,
    Options, PurgeOptions, Retention, Revision, ScanOptions, Target,
};

type Entries = Vec<(Vec<u8>, String)>;

fn how() -> CommitOptions {
    CommitOptions::default()
}

fn open(device: &Arc<MemoryDevice>) -> Database {
    let options = Options { background: false, ..Options::default() };
    Database::open_device(Arc::<MemoryDevice>::clone(device), options).unwrap()
}

fn define(name: &str, paths: &[&str]) -> IndexDefinition {
    IndexDefinition::new(name, paths).unwrap()
}

fn compact(db: &Database) {
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// Entries of an index at a revision with the names of their records, and how many were visited.
fn read_range(
    collection: &Collection,
    (name, revision): (&str, u64),
    (low, high): (Bound<Vec<u8>>, Bound<Vec<u8>>),
    is_reverse: bool,
) -> (Entries, u64) {
    let snapshot = collection.at(Revision(revision)).unwrap();
    let tree = collection.document().tree();
    let mut range = snapshot.index_range(name, (low, high), is_reverse).unwrap().unwrap();
    let mut entries = Entries::new();
    loop {
        let page = range.next(7).unwrap();
        if page.is_empty() {
            return (entries, range.visited());
        }
        for (key, ordinal) in page.iter() {
            let path = tree.data.read().schema.path(ROOT).entry.unwrap();
            entries.push((key.to_vec(), tree.name_of(node(path, ordinal)).unwrap().unwrap()));
        }
    }
}

fn read(collection: &Collection, name: &str, revision: u64) -> Entries {
    let all = || (Bound::Unbounded, Bound::Unbounded);
    let (forward, _) = read_range(collection, (name, revision), all(), false);
    let (mut backward, _) = read_range(collection, (name, revision), all(), true);
    backward.reverse();
    assert_eq!(forward, backward, "index {name:?} at {revision}");
    forward
}

fn key_of(value: Option<&Value>) -> Vec<u8> {
    let mut key = Vec::new();
    match value {
        None => sort_key::append_missing(&mut key),
        Some(value) => {
            let text = value.to_string();
            let tape = Tape::parse(text.as_bytes(), ParseOptions::default()).unwrap();
            sort_key::append_parsed(&tape, tape.root(), &mut key);
        }
    }
    key.truncate(INDEX_VALUE_BYTES_MAX);
    key
}

/// What an index has to have, from the records one by one.
fn naive(collection: &Collection, paths: &[&str], revision: u64) -> Entries {
    let snapshot = collection.at(Revision(revision)).unwrap();
    let mut entries = Entries::new();
    for record in snapshot.scan(&ScanOptions::default()).unwrap() {
        let record = record.unwrap();
        let value: Value = serde_json::from_str(&record.json).unwrap();
        let mut keys = vec![Vec::new()];
        for path in paths {
            let found = match path.strip_suffix("[*]") {
                None => path.split('.').try_fold(&value, Value::get).into_iter().collect(),
                Some(path) => {
                    let array = value.get(path).and_then(Value::as_array);
                    array.map_or(Vec::new(), |array| array.iter().collect::<Vec<_>>())
                }
            };
            let mut own: Vec<_> = found.into_iter().map(|value| key_of(Some(value))).collect();
            if own.is_empty() {
                own.push(key_of(None));
            }
            own.sort_unstable();
            own.dedup();
            let with = |key: &Vec<u8>| own.iter().map(|own| [&key[..], own].concat()).collect();
            keys = keys.iter().flat_map(|key| -> Vec<Vec<u8>> { with(key) }).collect();
        }
        entries.extend(keys.into_iter().map(|key| (key, record.key.to_string())));
    }
    entries.sort_unstable();
    entries
}

fn assert_same(collection: &Collection, (name, paths): (&str, &[&str]), revision: u64) {
    // Of one key the index has the records in the order of their ordinals, not of their names.
    let mut entries = read(collection, name, revision);
    assert!(entries.is_sorted_by_key(|(key, _)| key.clone()));
    entries.sort_unstable();
    assert_eq!(entries, naive(collection, paths, revision), "index {name:?} at {revision}");
}

fn draw(random: &mut Random) -> Value {
    let mut record = json!({});
    if random.below(4) > 0 {
        record["n"] = [json!(1), json!(1.0), json!(-3), json!(2.5), json!(null), json!("x")]
            [random.below(6)]
        .clone();
    }
    if random.below(3) > 0 {
        record["at"] = json!({"city": (["a", "b", ""][random.below(3)]), "zip": (random.below(3))});
    }
    if random.below(3) > 0 {
        let len = random.below(4);
        record["tags"] = (0..len).map(|_| json!(["r", "g", "b"][random.below(3)])).collect();
    }
    if random.below(8) == 0 {
        record["n"] = json!("long ".repeat(300 + random.below(2)));
    }
    if random.below(12) == 0 {
        record["n"] = json!({"b": [1, {}], "a": 2});
    }
    record
}

const INDEXES: [(&str, &[&str]); 4] = [
    ("n", &["n"]),
    ("city", &["at.city"]),
    ("tags", &["tags[*]"]),
    ("compound", &["at.zip", "tags[*]", "n"]),
];

fn change(collection: &Collection, random: &mut Random) {
    let key = format!("k{}", random.below(24));
    match random.below(12) {
        0..6 => drop(collection.put(key.as_str(), draw(random).to_string(), &how()).unwrap()),
        6 => {
            let records = (0..random.below(12))
                .map(|_| (format!("k{}", random.below(40)), draw(random).to_string()));
            collection.put_many(records.collect::<Vec<_>>(), &how()).unwrap();
        }
        7 | 8 => drop(collection.delete(key.as_str(), &how()).unwrap()),
        9 => {
            let keys = [Key::from(key.as_str()), Key::from("k3"), Key::from("k4")];
            collection.delete_many(&keys, &how()).unwrap();
        }
        10 if collection.exists(key.as_str()).unwrap() => {
            let patch = format!(r#"{{"n":{},"at":null}}"#, random.below(5));
            collection.merge_patch(key.as_str(), patch, &how()).unwrap();
        }
        _ => {
            let name = ["n", "tags"][random.below(2)];
            let pointer = JsonPointer::root().child(&key).child(name);
            let _ = collection.document().remove(&pointer, &how());
        }
    }
}

/// Random changes, with indexes made at any time, read at any revision, in whatever state the
/// database is.
fn indexes_say_what_records_say(seed: u64, keep: Retention) {
    let device = Arc::new(MemoryDevice::new());
    let mut db = open(&device);
    db.create_collection("c", KeyKind::Text).unwrap();
    db.collection("c").unwrap().document().retain(keep, &how()).unwrap();
    let mut random = Random(seed);
    let mut made: BTreeMap<&str, &[&str]> = BTreeMap::new();
    for _ in 0..400 {
        let collection = db.collection("c").unwrap();
        let head = collection.document().head_revision().unwrap().0;
        match random.below(20) {
            0 => db.checkpoint().unwrap(),
            1 if random.below(3) == 0 => compact(&db),
            2 if random.below(3) == 0 => {
                drop((collection, db));
                db = open(&device);
            }
            3 => {
                let (name, paths) = INDEXES[random.below(4)];
                if made.insert(name, paths).is_none() {
                    collection.create_index(&define(name, paths)).unwrap();
                } else if random.below(3) == 0 {
                    made.remove(name);
                    collection.drop_index(name).unwrap();
                }
            }
            4..8 if head > 0 => {
                let first = collection.document().first_revision().unwrap().0;
                let revision =
                    first + random.below(usize::try_from(head - first + 1).unwrap()) as u64;
                for index in &made {
                    assert_same(&collection, (index.0, index.1), revision);
                }
            }
            _ => change(&collection, &mut random),
        }
    }
    let collection = db.collection("c").unwrap();
    let first = collection.document().first_revision().unwrap().0;
    for revision in first..=collection.document().head_revision().unwrap().0 {
        for index in &made {
            assert_same(&collection, (index.0, index.1), revision);
        }
    }
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.indexes, made.len() as u64);
}

#[test]
fn indexes_say_what_records_say_at_every_revision() {
    for seed in 0..4 {
        indexes_say_what_records_say(seed, Retention::All);
    }
}

#[test]
fn indexes_say_what_records_say_where_history_is_dropped() {
    for seed in 0..3 {
        indexes_say_what_records_say(100 + seed, Retention::Last(20));
        indexes_say_what_records_say(200 + seed, Retention::Head);
    }
}

fn point(value: &Value) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    (Bound::Included(key_of(Some(value))), Bound::Included(key_of(Some(value))))
}

/// A look-up costs as much with one version of a record as with any number of them.
#[test]
fn a_look_up_visits_as_many_entries_however_long_the_history_is() {
    let versions = 3_000;
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    for key in 0..10 {
        let record = json!({"n": -1, "on": true, "fixed": key});
        collection.put(format!("k{key}").as_str(), record.to_string(), &how()).unwrap();
    }
    for name in ["n", "on", "fixed"] {
        collection.create_index(&define(name, &[name])).unwrap();
    }
    let begin = collection.document().head_revision().unwrap().0;
    let look = |revision: u64, name: &str, value: &Value| {
        let (entries, visited) = read_range(&collection, (name, revision), point(value), false);
        let (_, back) = read_range(&collection, (name, revision), point(value), true);
        (entries.len(), visited, back)
    };
    let before = [
        look(begin, "fixed", &json!(3)),
        look(begin, "on", &json!(true)),
        look(begin, "n", &json!(-1)),
    ];
    for version in 1..=versions {
        let record = json!({"n": version, "on": version % 2 == 0, "fixed": 3});
        collection.put("k3", record.to_string(), &how()).unwrap();
        if version % 700 == 0 {
            db.checkpoint().unwrap();
        }
    }
    for _ in 0..2 {
        for revision in [begin, begin + versions / 2, begin + versions] {
            let fixed = look(revision, "fixed", &json!(3));
            assert_eq!(fixed, before[0], "at {revision}");
            let others = if revision == begin { 10 } else { 9 };
            let (found, visited, back) = look(revision, "on", &json!(true));
            assert!(
                found >= others && visited <= 12 && back <= 22,
                "{visited} {back} at {revision}"
            );
            let (found, visited, back) = look(revision, "n", &json!(-1));
            assert_eq!(found, others);
            assert!(visited <= 12 && back <= 22, "{visited} {back} at {revision}");
            let all = (Bound::Unbounded, Bound::Unbounded);
            let (entries, visited) = read_range(&collection, ("n", revision), all, false);
            assert_eq!(entries.len(), 10);
            assert!(visited <= 100, "{visited} at {revision}");
        }
        compact(&db);
    }
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[test]
fn an_index_that_is_unique_refuses_values_that_another_record_has() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    collection.create_index(&define("mail", &["mail"]).unique()).unwrap();
    let put = |key: &str, json: &str| collection.put(key, json, &how()).map(drop);
    put("a", r#"{"mail":"x"}"#).unwrap();
    put("a", r#"{"mail":"x","n":1}"#).unwrap();
    let refused = put("b", r#"{"mail":"x"}"#).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    for part in ["\"mail\"", "\"a\"", "\"b\"", "mail = \"x\""] {
        assert!(refused.message().contains(part), "{part}: {refused}");
    }
    for json in ["{}", r#"{"mail":null}"#] {
        put("c", json).unwrap();
        put("d", json).unwrap();
    }
    let both = [("e", r#"{"mail":"y"}"#), ("f", r#"{"mail":"y"}"#)];
    assert_eq!(collection.put_many(both, &how()).unwrap_err().kind(), ErrorKind::Conflict);
    let swapped = [("a", r#"{"mail":"z"}"#), ("b", r#"{"mail":"x"}"#)];
    collection.put_many(swapped, &how()).unwrap();
    let long = |end: &str| json!({"mail": "m".repeat(3_000) + end}).to_string();
    put("g", &long("1")).unwrap();
    put("h", &long("2")).unwrap();
    assert_eq!(put("i", &long("2")).unwrap_err().kind(), ErrorKind::Conflict);
    collection.delete("h", &how()).unwrap();
    put("i", &long("2")).unwrap();
    assert_eq!(collection.count().unwrap(), 6);
}

#[test]
fn an_index_is_not_made_if_it_cannot_be_unique_or_is_stopped() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    for (key, n) in [("a", 1), ("b", 2), ("c", 1)] {
        collection.put(key, format!(r#"{{"n":{n},"m":{n}}}"#), &how()).unwrap();
    }
    let unique = define("n", &["n"]).unique();
    assert_eq!(collection.create_index(&unique).unwrap_err().kind(), ErrorKind::Conflict);
    let stopped = collection.create_index_with(&define("n", &["n"]), &mut |progress| {
        assert!(progress.done <= progress.total);
        ControlFlow::Break(())
    });
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(collection.indexes().unwrap().is_empty());
    collection.put("d", r#"{"n":1}"#, &how()).unwrap();
    collection.create_index(&define("n", &["n"])).unwrap();
    let again = collection.create_index(&define("n", &["m"])).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
    assert_eq!(collection.drop_index("m").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(collection.index_stats("n").unwrap().entries, 4);
}

/// What is purged is in no entry any more, and the index says what is left.
#[test]
fn a_purge_takes_the_entries_with_it() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    collection.create_index(&define("n", &["n"])).unwrap();
    for n in ["s3cr3t", "other"] {
        collection.put("a", json!({"n": n}).to_string(), &how()).unwrap();
        collection.put("b", json!({"n": n}).to_string(), &how()).unwrap();
    }
    assert_same(&collection, ("n", &["n"]), 3);
    db.checkpoint().unwrap();
    let options = PurgeOptions { at: Some(Revision(1)), commit: how() };
    let target = Target::parse("/a/n").unwrap();
    let go_on = &mut |_, _| ControlFlow::Continue(());
    collection.document().purge(&target, &options, go_on).unwrap();
    for revision in 1..=collection.document().head_revision().unwrap().0 {
        assert_same(&collection, ("n", &["n"]), revision);
    }
    let left = db.engine.view().store.live();
    let tree = collection.document().tree().id();
    let prefix = crate::tree::cell_key::indexes(tree);
    let left: Vec<_> = left.scan(&prefix).unwrap().map(|found| found.unwrap().0).collect();
    assert!(left.is_empty(), "{left:02x?}");
    assert!(db.check().unwrap().is_clean());
}

/// An object with many members keeps those that it had in columns, and has others as entries.
#[test]
fn values_are_indexed_wherever_objects_that_outgrow_their_shapes_have_them() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    let indexes: [(&str, &[&str]); 3] =
        [("early", &["early"]), ("late", &["late"]), ("deep", &["deep.late", "early"])];
    for (name, paths) in indexes {
        collection.create_index(&define(name, paths)).unwrap();
    }
    let many: BTreeMap<String, usize> = (0..300).map(|n| (format!("f{n}"), n)).collect();
    let mut grown = json!(many);
    grown["late"] = json!(1);
    grown["deep"] = json!(many);
    for key in ["a", "b"] {
        collection.put(key, r#"{"early":1,"deep":{"early":2}}"#, &how()).unwrap();
    }
    for patch in [
        grown.to_string(),
        r#"{"late":2,"early":null}"#.to_owned(),
        r#"{"deep":{"late":[7]}}"#.to_owned(),
        r#"{"late":null,"early":3,"deep":{"late":8}}"#.to_owned(),
        r#"{"deep":5}"#.to_owned(),
    ] {
        collection.merge_patch("a", patch, &how()).unwrap();
    }
    for revision in 1..=collection.document().head_revision().unwrap().0 {
        for index in indexes {
            assert_same(&collection, index, revision);
        }
    }
}

#[test]
fn an_index_survives_that_the_collection_is_deleted_and_lives_again() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    collection.create_index(&define("n", &["n"])).unwrap();
    for key in ["a", "b", "c"] {
        collection.put(key, r#"{"n":1}"#, &how()).unwrap();
    }
    let mut transaction = db.transaction();
    transaction.delete_document("c").unwrap();
    transaction.commit(&how()).unwrap();
    collection.document().put(r#"{"b":{"n":2},"d":{"n":3}}"#, &how()).unwrap();
    let head = collection.document().head_revision().unwrap().0;
    for revision in [1, 2, 3, head] {
        assert_same(&collection, ("n", &["n"]), revision);
    }
    assert_eq!(collection.count().unwrap(), 2);
}

/// Of several threads that want a value one gets it, and readers find what is so at each revision.
#[test]
fn of_threads_that_save_the_same_value_one_gets_it() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    collection.create_index(&define("mail", &["mail"]).unique()).unwrap();
    let values = 60;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let collection = &collection;
            scope.spawn(move || {
                for value in 0..values {
                    let key = format!("{thread}/{value}");
                    let saved =
                        collection.put(key.as_str(), format!(r#"{{"mail":{value}}}"#), &how());
                    assert!(
                        saved.is_ok_and(|saved| saved.version == 1)
                            || collection.get(key.as_str()).unwrap().is_none()
                    );
                }
            });
        }
        let reader = &collection;
        scope.spawn(move || {
            for name in ["n", "m"] {
                reader.create_index(&define(name, &["mail"])).unwrap();
                let head = reader.document().head_revision().unwrap().0;
                if head > 0 {
                    assert_same(reader, ("mail", &["mail"]), head);
                    assert_same(reader, (name, &["mail"]), 1 + head / 2);
                }
            }
        });
    });
    assert_eq!(collection.count().unwrap(), values);
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.indexes, 3);
}

/// A large index is made in the memory that there is: its entries go to segments on the way.
#[test]
fn making_an_index_keeps_to_the_memory_budget() {
    let device = Arc::new(MemoryDevice::new());
    let options = Options { background: false, memory_bytes: 4 << 20, ..Options::default() };
    let db = Database::open_device(device, options).unwrap();
    let collection = db.create_collection("c", KeyKind::I64).unwrap();
    let records = |batch: i64| {
        let text = "t".repeat(100);
        (0..2_000).map(move |n| {
            (batch * 2_000 + n, format!(r#"{{"n":{},"text":"{text}{n}"}}"#, n * 7 % 2_000))
        })
    };
    for batch in 0..10 {
        collection.put_many(records(batch), &how()).unwrap();
    }
    let mut most = 0;
    let by = define("by", &["text", "n"]);
    let told = collection.create_index_with(&by, &mut |_| {
        most = most.max(collection.document().tree().cells.memory().young());
        ControlFlow::Continue(())
    });
    told.unwrap();
    assert!(most < 3 << 20, "{most}");
    let stats = collection.index_stats("by").unwrap();
    assert_eq!(stats.entries, 20_000);
    assert!(stats.bytes > 100_000, "{}", stats.bytes);
    let found = read(&collection, "by", 10);
    assert_eq!(found.len(), 20_000);
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn what_an_index_lacks_and_has_too_many_is_found() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    collection.create_index(&define("n", &["n"])).unwrap();
    for (key, n) in [("a", 1), ("b", 2)] {
        collection.put(key, format!(r#"{{"n":{n}}}"#), &how()).unwrap();
    }
    assert!(db.check().unwrap().is_clean());
    let (_, tree) = collection.document().parts();
    let index = tree.indexes.in_use().pop().unwrap();
    let key = key_of(Some(&json!(2)));
    let add = |key: &[u8], begins| {
        let mut run = super::Entries::default();
        run.add((key, 1), 2, begins);
        index.state(tree).add(1, run);
        // So that what is read is looked for again.
        index.state(tree).generation += 1;
    };
    add(&key, false);
    add(&key_of(Some(&json!(7))), true);
    let report = db.check().unwrap();
    let found: Vec<&str> = report.findings.iter().map(|found| found.message.as_str()).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("there is an entry too many of record 1 "), "{found:?}");
    assert!(found[1].starts_with("there is no entry of record 1 "), "{found:?}");
}

/// Where history was let go and a compaction that was to drop it was stopped, an index had
/// forgotten it: it answered with what was so at another revision, or not at all.
#[test]
fn an_index_has_the_history_that_a_stopped_compaction_did_not_drop() {
    let db = open(&Arc::new(MemoryDevice::new()));
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    collection.create_index(&define("n", &["n"])).unwrap();
    for n in 0..10 {
        collection.put(format!("{n}"), format!(r#"{{"n":{n}}}"#), &how()).unwrap();
    }
    for turn in 0..100 {
        collection.put("0", format!(r#"{{"n":{turn}}}"#), &how()).unwrap();
    }
    let document = collection.document();
    document.tag("early", Some(Revision(12)), &how()).unwrap();
    document.retain(Retention::Last(5), &how()).unwrap();
    collection.index_stats("n").unwrap();
    db.checkpoint().unwrap();
    let stopped = db.compact(&mut |_, _| {
        collection.put("1", r#"{"n":-1}"#, &how()).unwrap();
        collection.index_stats("n").unwrap();
        db.checkpoint().unwrap();
        ControlFlow::Break(())
    });
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    for revision in 1..=document.head_revision().unwrap().0 {
        assert_same(&collection, ("n", &["n"]), revision);
    }
    compact(&db);
    for revision in [12, document.first_revision().unwrap().0] {
        assert_same(&collection, ("n", &["n"]), revision);
    }
}

/// What is on a device now, as after the power was lost.
fn copy(device: &MemoryDevice) -> Arc<MemoryDevice> {
    let copied = Arc::new(MemoryDevice::new());
    let copy_file = |path: &str| {
        let file = device.open(path, Access::Read).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        crate::io::read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
        let file = copied.open(path, Access::Create).unwrap();
        crate::io::write_all_at(file.as_ref(), &bytes, 0).unwrap();
        file.sync().unwrap();
    };
    for folder in ["journal", "segments"] {
        copied.create_dir(folder).unwrap();
        for name in device.list(folder).unwrap_or_default() {
            copy_file(&format!("{folder}/{name}"));
        }
    }
    copy_file("MANIFEST");
    copied
}

/// Records with many elements came into one batch by the thousand, and with them all that one
/// revision had changed: the memory of an index of elements had no bound.
#[test]
fn an_index_of_elements_is_made_in_steps_that_end_between_records_and_goes_on_in_a_revision() {
    let (records, elements) = (30, 40);
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    for revision in 0..3 {
        let json = |record: u64| {
            let tags = (0..elements).map(|tag| 100 * (record + revision) + tag);
            json!({"tags": tags.collect::<Vec<u64>>()}).to_string()
        };
        let all = (0..records).map(|record| (format!("k{record}"), json(record)));
        collection.put_many(all.collect::<Vec<_>>(), &how()).unwrap();
    }
    // A checkpoint would have the index follow what is in memory.
    db.checkpoint().unwrap();
    let tags = define("tags", &["tags[*]"]);
    let (mut steps, mut left) = (0, None);
    let stopped = collection.create_index_with(&tags, &mut |_| {
        let index = collection.document().tree().indexes.in_use().pop().unwrap();
        let state = index.state(collection.document().tree());
        let runs = state.facts.slabs.iter().flat_map(|slab| state.young.runs(slab.start));
        // What a record lost and got, and what there is to a batch.
        let entries = runs.map(|run| run.len()).sum::<usize>();
        assert!(entries <= 2 * 40 + 8, "{entries} in step {steps}");
        let is_within = state.changing.is_some() && state.facts.watermark == 2;
        drop(state);
        db.checkpoint().unwrap();
        steps += 1;
        if is_within && steps > 60 {
            left = Some(copy(&device));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    // What is done again of the revision in which it was interrupted is there once.
    let db = open(&left.expect("it was stopped in the middle of a revision"));
    let collection = db.collection("c").unwrap();
    collection.create_index(&tags).unwrap();
    assert_eq!(collection.index_stats("tags").unwrap().entries, records * elements);
    for revision in 1..=3 {
        assert_same(&collection, ("tags", &["tags[*]"]), revision);
    }
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}
