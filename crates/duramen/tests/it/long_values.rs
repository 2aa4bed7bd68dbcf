//! First revisions that are too long to be held in memory are exported, dumped, loaded and repaired
//! piece by piece, and are what others are.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::{Access, Device, MemoryDevice, read_exact_at, write_all_at};
use duramen::{
    BulkOptions, BulkProgress, Collection, CommitOptions, ContentHash, Database, Document,
    DumpItem, DumpLoad, Error, ErrorKind, ExportedContent, ExportedRevision, Filter,
    IndexDefinition, JsonPointer, KeyKind, Options, Query, RepairReport, Retention, Revision,
};

const RECORDS: i64 = 2_400;

/// With so little memory that a mebibyte of text is long.
fn options() -> Options {
    Options { memory_bytes: 8 << 20, background: false, ..Options::default() }
}

fn how() -> CommitOptions {
    CommitOptions { author: Some("ann".into()), ..CommitOptions::default() }
}

fn go_on(_: BulkProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A text of over a mebibyte.
fn text() -> String {
    let items: Vec<_> = (0..40_000).map(|n| format!(r#"{{"id":{n},"x":"value {n}"}}"#)).collect();
    format!(r#"{{"items":[{}],"last":1.50}}"#, items.join(","))
}

fn record(n: i64) -> String {
    format!(r#"{{"mail":"{n}@example.org","text":"{}"}}"#, format!("{n:08}").repeat(60))
}

/// A long document that was changed and tagged.
fn changed(device: &Arc<dyn Device>) -> Database {
    let db = Database::open_device(Arc::clone(device), options()).unwrap();
    let document = db.create_document("long").unwrap();
    document.put(text(), &how()).unwrap();
    document.set(&JsonPointer::parse("/items/7/x").unwrap(), "[7]", &how()).unwrap();
    document.tag("first", Some(Revision(1)), &how()).unwrap();
    db
}

/// The same beside a long collection with a unique index, of whose history the begin was dropped.
fn sample(device: &Arc<dyn Device>) -> Database {
    let db = changed(device);
    let people = db.create_collection("people", KeyKind::I64).unwrap();
    people.put_many((0..RECORDS).map(|n| (n - 9, record(n))), &how()).unwrap();
    people.put_many((0..100).map(|n| (n, record(RECORDS + n))), &how()).unwrap();
    people.put(7, record(-7), &how()).unwrap();
    people.put(8, record(-8), &how()).unwrap();
    people.document().retain(Retention::Last(2), &how()).unwrap();
    people.create_index(&IndexDefinition::new("mail", &["mail"]).unwrap().unique()).unwrap();
    people.create_index(&IndexDefinition::new("text", &["text"]).unwrap()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    db
}

/// All of a history, with the text of a first revision that is long.
fn exported(document: &Document) -> (Vec<ExportedRevision>, Vec<u8>) {
    let (mut history, mut revisions, mut json) =
        (document.export().unwrap(), Vec::new(), Vec::new());
    while let Some(revision) = history.next().transpose().unwrap() {
        if revision.content == ExportedContent::LongValue {
            history.write_value(&mut json).unwrap();
        }
        revisions.push(revision);
    }
    (revisions, json)
}

fn loaded(db: &Database) -> Database {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let mut load = DumpLoad::into_new(Arc::clone(&device), options()).unwrap();
    let mut dump = db.snapshot().dump().unwrap();
    let mut long = 0;
    while let Some(item) = dump.next().transpose().unwrap() {
        match item {
            DumpItem::Revision(revision) if revision.content == ExportedContent::LongValue => {
                let mut json = Vec::new();
                dump.write_value(&mut json).unwrap();
                load.push_long(revision, &mut json.as_slice(), &mut go_on).unwrap();
                long += 1;
            }
            item => load.push(item).unwrap(),
        }
    }
    assert_eq!(long, 2);
    load.finish(Some(dump.summary().hash)).unwrap();
    Database::open_device(device, options()).unwrap()
}

fn repaired(device: &Arc<dyn Device>) -> (RepairReport, Database) {
    let to: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let devices = (Arc::clone(device), Arc::clone(&to));
    let report =
        Database::repair_device(devices, &options(), &mut |_| ControlFlow::Continue(())).unwrap();
    (report, Database::open_device(to, options()).unwrap())
}

/// That a collection is what it was, and goes on to compare mails.
fn is_whole(people: &Collection) {
    assert_eq!(people.count().unwrap(), RECORDS as u64);
    let version = |key: i64| people.get(key).unwrap().unwrap().version;
    assert_eq!([-9, 0, 7, 8, 99, 100].map(version), [1, 2, 3, 3, 2, 1]);
    let names: Vec<_> = people.indexes().unwrap().into_iter().map(|index| index.name).collect();
    assert_eq!(names, ["mail", "text"]);
    let text = Filter::eq("text", format!("{:08}", RECORDS + 5).repeat(60));
    let found = people.query(&Query::new().filter(text)).unwrap();
    assert_eq!(found.count(), 1);
    let same = people.put(1_000_000, record(-7), &how()).unwrap_err();
    assert_eq!(same.kind(), ErrorKind::Conflict);
}

#[test]
fn long_values_are_dumped_and_loaded() {
    let db = sample(&(Arc::new(MemoryDevice::new()) as Arc<dyn Device>));
    is_whole(&db.collection("people").unwrap());
    let copy = loaded(&db);
    assert!(copy.check().unwrap().is_clean());
    assert_eq!(copy.snapshot().hash().unwrap(), db.snapshot().hash().unwrap());
    assert_eq!(copy.document("long").unwrap().at(Revision(1)).unwrap().to_json().unwrap(), text());
    assert_eq!(copy.document("long").unwrap().at_tag("first").unwrap().revision(), Revision(1));
    is_whole(&copy.collection("people").unwrap());
    assert_eq!(exported(&copy.document("people").unwrap()).0[0].versions.len(), 100);
    loaded(&copy);
}

#[test]
fn a_long_history_is_imported_and_gone_on_with() {
    let db = sample(&(Arc::new(MemoryDevice::new()) as Arc<dyn Device>));
    let document = db.document("long").unwrap();
    let (revisions, json) = exported(&document);
    assert_eq!(json, text().into_bytes());
    let new = Database::memory().unwrap();
    // An import that was stopped goes on.
    for (count, expected) in [(1, [true, false]), (2, [false, true]), (2, [false, false])] {
        let mut import = new.import_history("copy", None).unwrap();
        for (revision, expected) in revisions[..count].iter().zip(expected) {
            let made = match revision.content {
                ExportedContent::LongValue => {
                    import.push_long(revision, &mut json.as_slice(), &mut go_on)
                }
                _ => import.push(revision),
            };
            assert_eq!(made.unwrap(), expected);
        }
        import.finish().unwrap();
    }
    let copy = new.document("copy").unwrap();
    assert_eq!(copy.head_revision().unwrap(), Revision(2));
    let (copied, again) = (exported(&copy).0, exported(&document).0);
    assert_eq!(copied.len(), 2);
    for (copied, revision) in copied.iter().zip(&again) {
        assert_eq!((copied.timestamp, copied.hash), (revision.timestamp, revision.hash));
    }
}

/// Takes the first revisions over, and leaves or ends it.
fn take(db: &Database, from: &Document, (is_ended, count): (bool, usize)) -> Result<(), Error> {
    let (revisions, json) = exported(from);
    let mut import = db.import_history("copy", None)?;
    import.set_facts(from.export()?.facts()?)?;
    for revision in &revisions[..count] {
        match revision.content {
            ExportedContent::LongValue => {
                import.push_long(revision, &mut json.as_slice(), &mut go_on)?
            }
            _ => import.push(revision)?,
        };
    }
    if is_ended { import.finish().map(drop) } else { Ok(()) }
}

#[test]
fn unique_indexes_are_made_once_a_long_history_is_there() {
    let db = sample(&(Arc::new(MemoryDevice::new()) as Arc<dyn Device>));
    let people = db.document("people").unwrap();
    let new = Database::memory().unwrap();
    take(&new, &people, (false, 1)).unwrap();
    assert_eq!(new.collection("copy").unwrap().indexes().unwrap().len(), 1);
    take(&new, &people, (true, 2)).unwrap();
    is_whole(&new.collection("copy").unwrap());

    // One that is there with them already takes the value as a whole.
    let new = Database::memory().unwrap();
    new.create_document_with("copy", &people.options().unwrap()).unwrap();
    take(&new, &people, (true, 2)).unwrap();
    is_whole(&new.collection("copy").unwrap());
}

/// What comes of a first revision that is changed before it is taken, and its text.
fn taken(change: impl FnOnce(&mut ExportedRevision, &mut Vec<u8>)) -> Result<bool, Error> {
    let old = Database::memory().unwrap().create_document("d").unwrap();
    old.put("[1,2]", &how()).unwrap();
    let mut revision = old.export().unwrap().next().unwrap().unwrap();
    revision.content = ExportedContent::LongValue;
    let mut text = b"[1,2]".to_vec();
    change(&mut revision, &mut text);
    let db = Database::memory().unwrap();
    let mut import = db.import_history("d", None).unwrap();
    let pushed = import.push_long(&revision, &mut text.as_slice(), &mut go_on);
    assert_eq!(pushed.is_ok(), db.document("d").is_ok_and(|d| d.head().is_ok()));
    pushed
}

#[test]
fn what_is_not_as_it_was_written_leaves_nothing() {
    assert!(taken(|_, _| ()).unwrap());
    let refused =
        |change: fn(&mut ExportedRevision, &mut Vec<u8>)| taken(change).unwrap_err().kind();
    assert_eq!(refused(|_, text| *text = b"[1,3]".into()), ErrorKind::Corrupt);
    assert_eq!(refused(|_, text| *text = b"[1, 2]".into()), ErrorKind::Corrupt);
    assert_eq!(refused(|_, text| *text = b"[1,2".into()), ErrorKind::Corrupt);
    assert_eq!(refused(|_, text| text.clear()), ErrorKind::Corrupt);
    assert_eq!(refused(|revision, _| revision.hash = None), ErrorKind::Invalid);
    assert_eq!(refused(|revision, _| revision.revision = Revision(2)), ErrorKind::Invalid);
    assert_eq!(refused(|revision, _| revision.counted.push("k".into())), ErrorKind::Invalid);
    let version = |revision: &mut ExportedRevision, _: &mut Vec<u8>| {
        revision.versions.insert("k".into(), 1);
    };
    assert_eq!(refused(version), ErrorKind::Invalid);
    let of_no_record = |revision: &mut ExportedRevision, _: &mut Vec<u8>| {
        revision.versions.insert("k".into(), 2);
    };
    assert_eq!(refused(of_no_record), ErrorKind::Invalid);
    let no_json = |revision: &mut ExportedRevision, text: &mut Vec<u8>| {
        *text = b"[1 2]".into();
        revision.hash = Some(ContentHash::of_json(text));
    };
    assert_eq!(refused(no_json), ErrorKind::Invalid);

    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    document.put("1", &how()).unwrap();
    document.put("2", &how()).unwrap();
    let mut history: Vec<_> = document.export().unwrap().map(Result::unwrap).collect();
    history[1].content = ExportedContent::LongValue;
    let new = Database::memory().unwrap();
    let mut import = new.import_history("d", None).unwrap();
    import.push(&history[0]).unwrap();
    let later = import.push_long(&history[1], &mut &b"2"[..], &mut go_on).unwrap_err();
    assert_eq!(later.kind(), ErrorKind::Invalid);
    assert_eq!(import.push(&history[1]).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn the_value_of_a_collection_is_loaded_in_bulk() {
    let db = Database::memory().unwrap();
    let load = |name: &str, kind, text: &str, options: &BulkOptions| {
        if db.document(name).is_err() {
            db.create_collection(name, kind).unwrap();
        }
        db.bulk_load(name, &mut text.as_bytes(), options, &mut go_on).map(drop)
    };
    let held = BulkOptions { held_bytes: Some(16), ..BulkOptions::default() };
    let text = r#"{"00000000000000000007":{"a":[1,2,{"b":null}]},"00000000000000000008":{}}"#;
    for (name, options) in [("usual", &BulkOptions::default()), ("held", &held)] {
        load(name, KeyKind::I64, text, options).unwrap();
        let records = db.collection(name).unwrap();
        assert_eq!(records.get(7).unwrap().unwrap().json, r#"{"a":[1,2,{"b":null}]}"#);
        assert_eq!(db.document(name).unwrap().head().unwrap().to_json().unwrap(), text);
        records.put(8, r#"{"a":1}"#, &how()).unwrap();
        assert_eq!(records.get(8).unwrap().unwrap().version, 2);
    }
    load("none", KeyKind::Text, " {} ", &held).unwrap();
    assert_eq!(db.collection("none").unwrap().count().unwrap(), 0);
    let members: Vec<_> = (0..300).map(|n| format!("\"k{n}\":{n}")).collect();
    let twice = format!(r#"{{"a":{{"map":{{{},"k7":1}}}}}}"#, members.join(","));
    for (text, kind) in [
        (&*twice, KeyKind::Text),
        ("[]", KeyKind::Text),
        ("", KeyKind::Text),
        (r#"{"a":1}"#, KeyKind::Text),
        (r#"{"a":{}} 1"#, KeyKind::Text),
        (r#"{"a":{}"#, KeyKind::Text),
        (r#"{"":{}}"#, KeyKind::Text),
        (r#"{"7":{}}"#, KeyKind::I64),
        (r#"{"a":{},"a":{}}"#, KeyKind::Text),
    ] {
        let name = if kind == KeyKind::Text { "text" } else { "numbers" };
        assert_eq!(load(name, kind, text, &held).unwrap_err().kind(), ErrorKind::Invalid, "{text}");
    }
    let lines = BulkOptions { lines: true, ..BulkOptions::default() };
    let refused = load("text", KeyKind::Text, r#"{"a":{}}"#, &lines).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(db.check().unwrap().is_clean());
}

/// Damages the first segment that has some bytes.
fn damage(device: &MemoryDevice, bytes: &[u8]) {
    for name in device.list("segments").unwrap() {
        let file = device.open(&format!("segments/{name}"), Access::Write).unwrap();
        let mut all = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        read_exact_at(file.as_ref(), &mut all, 0).unwrap();
        if let Some(at) = all.windows(bytes.len()).position(|some| some == bytes) {
            write_all_at(file.as_ref(), &[all[at] ^ 0x55], at as u64).unwrap();
            return;
        }
    }
    panic!("no segment has {bytes:?}");
}

#[test]
fn long_values_are_repaired() {
    let memory = MemoryDevice::new();
    let device: Arc<dyn Device> = Arc::new(memory.clone());
    let db = sample(&device);
    let hash = db.snapshot().hash().unwrap();
    db.close().unwrap();
    let (report, whole) = repaired(&device);
    assert!(report.is_complete(), "{:?}", report.lost);
    assert_eq!(whole.snapshot().hash().unwrap(), hash);
    is_whole(&whole.collection("people").unwrap());
}

#[test]
fn long_values_are_salvaged_in_part() {
    let memory = MemoryDevice::new();
    let device: Arc<dyn Device> = Arc::new(memory.clone());
    changed(&device).close().unwrap();
    damage(&memory, b"value 20000");
    let (report, part) = repaired(&device);
    assert!(part.check().unwrap().is_clean());
    assert!(!report.is_complete());
    let document = part.document("long").unwrap();
    assert_eq!(document.head_revision().unwrap(), Revision(2));
    let json = document.at(Revision(1)).unwrap().to_json().unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let items = value["items"].as_array().unwrap();
    assert_eq!(items.len(), 40_000);
    let there = items.iter().enumerate().filter(|(n, item)| item["x"] == format!("value {n}"));
    let there = there.count();
    assert!((30_000..40_000).contains(&there), "{there}");
    let told = report.lost.iter().find(|lost| lost.path.as_deref() == Some("$.items[*].x"));
    let told = told.unwrap();
    assert_eq!((told.first, told.last), (Revision(1), Revision(2)));
    assert_eq!(told.values, 2 * (40_000 - there as u64));
}
