//! A key of a collection that is deleted in all that retention left of the history goes on counting
//! its versions, also in what was made of a dump, an exported history or a repair.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use duramen::io::{Access, Device, MemoryDevice};
use duramen::{
    BulkProgress, ColumnValue, CommitOptions, ContentHash, Database, DepartedRecords, Document,
    DumpItem, DumpLoad, Error, ErrorKind, ExportedContent, ExportedRevision, Filter,
    IndexDefinition, Key, KeyKind, Options, Query, Retention, Revision, ScanOptions, WatchFrom,
    WatchOptions,
};

/// With so little memory that a mebibyte of text is long.
fn options() -> Options {
    Options { memory_bytes: 8 << 20, background: false, ..Options::default() }
}

fn how() -> CommitOptions {
    CommitOptions::default()
}

fn go_on(_: BulkProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn memory() -> Arc<dyn Device> {
    Arc::new(MemoryDevice::new())
}

fn open(device: &Arc<dyn Device>) -> Database {
    Database::open_device(Arc::clone(device), options()).unwrap()
}

fn compact(db: &Database) {
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
}

fn loaded(db: &Database) -> (Database, Arc<dyn Device>) {
    let device = memory();
    let mut load = DumpLoad::into_new(Arc::clone(&device), options()).unwrap();
    let mut dump = db.snapshot().dump().unwrap();
    while let Some(item) = dump.next().transpose().unwrap() {
        match item {
            DumpItem::Revision(revision) if revision.long_texts() > 0 => {
                let mut text = Vec::new();
                dump.write_long(&revision, &mut text).unwrap();
                load.push_long(revision, &mut text.as_slice(), &mut go_on).unwrap();
            }
            item => load.push(item).unwrap(),
        }
    }
    load.finish(Some(dump.summary().hash)).unwrap();
    (open(&device), device)
}

/// All of a history, with what of its first revision is long.
fn exported(document: &Document) -> (Vec<ExportedRevision>, Vec<u8>) {
    let (mut history, mut revisions, mut text) =
        (document.export().unwrap(), Vec::new(), Vec::new());
    while let Some(revision) = history.next().transpose().unwrap() {
        history.write_long(&revision, &mut text).unwrap();
        revisions.push(revision);
    }
    (revisions, text)
}

fn take(
    db: &Database,
    from: &Document,
    (revisions, text): (&[ExportedRevision], &[u8]),
) -> Result<Revision, Error> {
    let mut import = db.import_history(from.name(), None)?;
    import.set_facts(from.export()?.facts()?)?;
    for revision in revisions {
        if revision.long_texts() > 0 {
            import.push_long(revision, &mut &*text, &mut go_on)?;
        } else {
            import.push(revision)?;
        }
    }
    import.finish()
}

fn imported(db: &Database) -> (Database, Arc<dyn Device>) {
    let device = memory();
    let (document, copy) = (db.document("d").unwrap(), open(&device));
    let (revisions, text) = exported(&document);
    take(&copy, &document, (&revisions, &text)).unwrap();
    // What is there already is compared.
    take(&copy, &document, (&revisions, &text)).unwrap();
    (copy, device)
}

fn repaired(device: &Arc<dyn Device>) -> (Database, Arc<dyn Device>) {
    let to = memory();
    let devices = (Arc::clone(device), Arc::clone(&to));
    let report =
        Database::repair_device(devices, &options(), &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.is_complete(), "{:?}", report.lost);
    (open(&to), to)
}

/// The database and all that is made of it, each with its device.
fn copies(db: Database, device: Arc<dyn Device>) -> Vec<(&'static str, Database, Arc<dyn Device>)> {
    let hash = db.snapshot().hash().unwrap();
    let (copy, on) = loaded(&db);
    let twice = loaded(&copy);
    let taken = imported(&db);
    db.close().unwrap();
    let salvaged = repaired(&device);
    let all = vec![
        ("itself", open(&device), device),
        ("loaded", copy, on),
        ("loaded twice", twice.0, twice.1),
        ("imported", taken.0, taken.1),
        ("repaired", salvaged.0, salvaged.1),
    ];
    for (how, copy, _) in &all {
        assert_eq!(copy.snapshot().hash().unwrap(), hash, "{how}");
        assert!(copy.check().unwrap().is_clean(), "{how}");
    }
    all
}

fn told(db: &Database) -> BTreeMap<String, u64> {
    let first = db.document("d").unwrap().export().unwrap().next().unwrap().unwrap();
    match first.departed {
        DepartedRecords::Held(held) => held,
        DepartedRecords::Long(_) => panic!("few are held"),
    }
}

/// Two keys of which nothing is left, and one of which something is.
fn departed(device: &Arc<dyn Device>, keep: Retention) -> Database {
    let db = open(device);
    let records = db.create_collection("d", KeyKind::Text).unwrap();
    records.create_index(&IndexDefinition::new("n", &["n"]).unwrap()).unwrap();
    for n in 0..3 {
        records.put("a\"\u{e9}", format!(r#"{{"n":{n}}}"#), &how()).unwrap();
        records.put("c", format!(r#"{{"n":{n}}}"#), &how()).unwrap();
    }
    records.put("b", r#"{"n":0}"#, &how()).unwrap();
    records.delete_many(&["a\"\u{e9}".into(), "b".into()], &how()).unwrap();
    records.put("c", r#"{"n":7}"#, &how()).unwrap();
    records.put("c", r#"{"n":8}"#, &how()).unwrap();
    records.document().retain(keep, &how()).unwrap();
    compact(&db);
    db
}

/// That nothing but `c` is seen of a collection, and `a` and `b` go on counting.
fn goes_on(name: &str, db: Database, device: &Arc<dyn Device>) {
    let records = db.collection("d").unwrap();
    let head = records.head().unwrap();
    let scan = head.scan(&ScanOptions::default()).unwrap();
    let keys: Vec<String> = scan.map(|found| found.unwrap().key.to_string()).collect();
    assert_eq!(keys, ["c"], "{name}");
    assert_eq!(records.count().unwrap(), 1, "{name}");
    for key in ["a\"\u{e9}", "b"] {
        assert!(records.get(key).unwrap().is_none(), "{name}");
        assert_eq!(records.history(key).unwrap_err().kind(), ErrorKind::NotFound, "{name}");
    }
    let first = records.document().first_revision().unwrap();
    let columns = head.version_columns(first..=head.revision()).unwrap();
    let rows = columns.rows(0).unwrap();
    let keys = columns.keys(&rows).unwrap();
    let is_c = |row| keys.get(row) == ColumnValue::Text("c");
    assert!(!rows.is_empty() && (0..rows.len()).all(is_c), "{name}: {keys:?}");
    let mut feed =
        db.watch(&WatchOptions { from: WatchFrom::Beginning, ..WatchOptions::default() }).unwrap();
    while let Some(batch) = feed.try_next().unwrap() {
        for event in batch {
            let key = event.unwrap().key;
            assert!(key.is_none_or(|key| key == Key::from("c")), "{name}");
        }
    }
    let found = records.query(&Query::new().filter(Filter::eq("n", 0))).unwrap();
    assert_eq!(found.count(), 0, "{name}");

    let save = |key: &str, n: u64| records.put(key, format!(r#"{{"n":{n}}}"#), &how()).unwrap();
    assert_eq!(save("a\"\u{e9}", 0).version, 4, "{name}");
    db.checkpoint().unwrap();
    assert_eq!(save("b", 0).version, 2, "{name}");
    assert_eq!(save("b", 1).version, 3, "{name}");
    assert_eq!(save("e", 1).version, 1, "{name}");
    let history = |key: &str| -> Vec<u64> {
        let history = records.history(key).unwrap();
        history.map(|found| found.unwrap().record.unwrap().version).collect()
    };
    assert_eq!((history("a\"\u{e9}"), history("b")), (vec![4], vec![3, 2]), "{name}");
    let found = records.query(&Query::new().filter(Filter::eq("n", 1))).unwrap();
    assert_eq!(found.count(), 2, "{name}");
    compact(&db);
    assert!(db.check().unwrap().is_clean(), "{name}");
    assert_eq!(told(&db), BTreeMap::new(), "{name}");
    drop((records, head, columns, feed));
    db.close().unwrap();
    let db = open(device);
    assert!(db.check().unwrap().is_clean(), "{name}");
    assert_eq!(db.collection("d").unwrap().get("b").unwrap().unwrap().version, 3, "{name}");
}

#[test]
fn a_key_that_is_deleted_in_all_that_is_left_goes_on_counting_in_every_copy() {
    for keep in [Retention::Head, Retention::Last(2), Retention::For(Duration::ZERO)] {
        let device = memory();
        let db = departed(&device, keep);
        let expected = BTreeMap::from([("a\"\u{e9}".to_owned(), 3), ("b".to_owned(), 1)]);
        assert_eq!(told(&db), expected, "{keep:?}");
        for (name, copy, device) in copies(db, device) {
            assert_eq!(told(&copy), expected, "{keep:?} {name}");
            goes_on(&format!("{keep:?} {name}"), copy, &device);
        }
    }
}

#[test]
fn keys_of_a_deleted_collection_go_on_counting_in_every_copy() {
    for is_long in [false, true] {
        let device = memory();
        let db = open(&device);
        let records = db.create_collection("d", KeyKind::I64).unwrap();
        let count = if is_long { MANY } else { 9 };
        records.put_many((0..count).map(|n| (n, "{}")), &how()).unwrap();
        records.put(7, r#"{"n":1}"#, &how()).unwrap();
        db.delete_document("d", &how()).unwrap();
        records.document().retain(Retention::Head, &how()).unwrap();
        compact(&db);
        drop(records);
        let first = db.document("d").unwrap().export().unwrap().next().unwrap().unwrap();
        assert_eq!(first.content, ExportedContent::Deleted);
        assert_eq!(first.long_texts(), usize::from(is_long));
        for (name, copy, device) in copies(db, device) {
            let records = copy.collection("d").unwrap();
            assert_eq!(copy.deleted_documents().unwrap().len(), 1, "{name}");
            let saved = [7, 8, count].map(|key| records.put(key, "{}", &how()).unwrap().version);
            assert_eq!(saved, [3, 2, 1], "{name}");
            assert_eq!(records.count().unwrap(), 3, "{name}");
            compact(&copy);
            drop(records);
            copy.close().unwrap();
            let copy = open(&device);
            assert!(copy.check().unwrap().is_clean(), "{name}");
            assert_eq!(copy.collection("d").unwrap().get(7).unwrap().unwrap().version, 3, "{name}");
        }
    }
}

/// More keys than are held in memory as text.
const MANY: i64 = 50_000;

/// A collection of which so many records are left, of one more than departed.
fn long(device: &Arc<dyn Device>, left: i64, json: &str) -> Database {
    let db = open(device);
    let records = db.create_collection("d", KeyKind::I64).unwrap();
    records.put_many((0..MANY).map(|n| (n, "{}")), &how()).unwrap();
    records.put_many((MANY..MANY + left).map(|n| (n, json)), &how()).unwrap();
    records.put_many([(3, r#"{"m":1}"#), (MANY, r#"{"m":1}"#)], &how()).unwrap();
    let gone: Vec<_> = (0..MANY).map(Key::from).collect();
    records.delete_many(&gone, &how()).unwrap();
    records.document().retain(Retention::Head, &how()).unwrap();
    compact(&db);
    db
}

#[test]
fn more_keys_than_are_held_go_through_piece_by_piece() {
    // With a value that is at hand, and with one that is not.
    for (json, long_texts) in [("{}".to_owned(), 1), (format!("[{}]", "1,".repeat(600) + "1"), 2)] {
        let json = if long_texts == 2 { format!(r#"{{"n":{json}}}"#) } else { json };
        let device = memory();
        let db = long(&device, 1_000, &json);
        let first = db.document("d").unwrap().export().unwrap().next().unwrap().unwrap();
        assert_eq!(first.long_texts(), long_texts);
        assert!(matches!(first.departed, DepartedRecords::Long(_)));
        for (name, copy, device) in copies(db, device) {
            let records = copy.collection("d").unwrap();
            assert_eq!(records.count().unwrap(), 1_000, "{name}");
            let keys = [3, 4, MANY - 1, MANY, MANY + 1, MANY + 1_000];
            let save = |key: i64| records.put(key, r#"{"n":9}"#, &how()).unwrap().version;
            assert_eq!(keys.map(save), [3, 2, 2, 3, 2, 1], "{name}");
            drop(records);
            copy.close().unwrap();
            let copy = open(&device);
            compact(&copy);
            assert!(copy.check().unwrap().is_clean(), "{name}");
        }
    }
}

#[test]
fn a_collection_with_a_unique_index_takes_many_keys_in_memory() {
    let db = long(&memory(), 2, "{}");
    let index = IndexDefinition::new("n", &["n"]).unwrap().unique();
    let document = db.document("d").unwrap();
    db.collection("d").unwrap().create_index(&index).unwrap();
    let new = Database::memory().unwrap();
    new.create_document_with("d", &document.options().unwrap()).unwrap();
    let (revisions, text) = exported(&document);
    take(&new, &document, (&revisions, &text)).unwrap();
    assert_eq!(new.snapshot().hash().unwrap(), db.snapshot().hash().unwrap());
    assert_eq!(new.collection("d").unwrap().put(3, "{}", &how()).unwrap().version, 3);
}

#[test]
fn a_text_of_keys_that_was_changed_or_cut_leaves_nothing() {
    for json in ["{}".to_owned(), format!(r#"{{"n":"{}"}}"#, "x".repeat(1_200))] {
        let db = long(&memory(), 1_000, &json);
        let document = db.document("d").unwrap();
        let (revisions, text) = exported(&document);
        let keys = text.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let cut = text[..text.len() - 30].to_vec();
        let none = text[..keys.saturating_sub(1)].to_vec();
        let mut changed = text.clone();
        // Behind a brace, the 20 characters of a key in quotes, and a colon.
        assert_eq!(std::mem::replace(&mut changed[keys + 24], b'5'), b'1');
        let more = [&text[..], b" "].concat();
        for wrong in [cut, none, changed, more] {
            let new = Database::memory().unwrap();
            let error = take(&new, &document, (&revisions, &wrong)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(new.document("d").is_err());
        }
        let new = Database::memory().unwrap();
        let error = new.import_history("d", None).unwrap().push(&revisions[0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        take(&new, &document, (&revisions, &text)).unwrap();
    }
}

#[test]
fn keys_that_cannot_have_departed_are_refused() {
    let db = departed(&memory(), Retention::Last(2));
    let document = db.document("d").unwrap();
    let (revisions, _) = exported(&document);
    let long = |json: &str| DepartedRecords::Long(ContentHash::of_json(json.as_bytes()));
    let held = |key: &str, versions| DepartedRecords::Held([(key.to_owned(), versions)].into());
    let wrong = [
        (0, held("c", 2), ""),
        (0, held("a", 0), ""),
        (0, held("a", u64::MAX), ""),
        (0, held("a", i64::MAX as u64), ""),
        (0, held("", 1), ""),
        (1, held("a", 1), ""),
        (1, long("{}"), "{}"),
        (0, long(r#"{"a":1,"a":2}"#), r#"{"a":1,"a":2}"#),
        (0, long(r#"{"c":1}"#), r#"{"c":1}"#),
        (0, long(r#"{"a":0}"#), r#"{"a":0}"#),
        (0, long(r#"{"a":9223372036854775807}"#), r#"{"a":9223372036854775807}"#),
        (0, long(r#"{"a":-1}"#), r#"{"a":-1}"#),
        (0, long(r#"{"a":"b"}"#), r#"{"a":"b"}"#),
        (0, long("[1]"), "[1]"),
    ];
    for (at, departed, text) in wrong {
        let new = Database::memory().unwrap();
        let mut revisions = revisions.clone();
        revisions[at].departed = departed;
        let what = format!("{:?} of revision {at}", revisions[at].departed);
        let error = take(&new, &document, (&revisions, text.as_bytes())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{what}: {error}");
        assert_eq!(new.document("d").is_ok(), at == 1, "{what}");
    }
    // A document has no keys.
    let new = Database::memory().unwrap();
    new.create_document("d").unwrap();
    for departed in [held("a", 1), long(r#"{"a":1}"#)] {
        let first = ExportedRevision { departed, ..revisions[0].clone() };
        let mut import = new.import_history("d", None).unwrap();
        let pushed = match first.long_texts() {
            0 => import.push(&first),
            _ => import.push_long(&first, &mut &br#"{"a":1}"#[..], &mut go_on),
        };
        assert!(pushed.is_err());
        assert!(new.document("d").unwrap().head().is_err());
    }
}

/// Such a record was listed as a version that stands for ever.
#[test]
fn a_record_that_goes_with_the_commit_that_brought_it_is_in_no_revision() {
    let device = memory();
    let db = open(&device);
    let records = db.create_collection("d", KeyKind::Text).unwrap();
    let mut transaction = db.transaction();
    transaction.put_record("d", &"a".into(), br#"{"n":1}"#).unwrap();
    transaction.put_record("d", &"c".into(), br#"{"n":1}"#).unwrap();
    transaction.delete_records("d", &["a".into()]).unwrap();
    transaction.commit(&how()).unwrap();
    let head = records.head().unwrap();
    let columns = head.version_columns(Revision(1)..=head.revision()).unwrap();
    assert_eq!(columns.rows(0).unwrap().len(), 1);
    drop((records, head, columns));
    assert_eq!(told(&db), [("a".to_owned(), 1)].into());
    for (name, copy, _) in copies(db, device) {
        let records = copy.collection("d").unwrap();
        assert_eq!(records.put("a", "{}", &how()).unwrap().version, 2, "{name}");
    }
}

/// Such a value was held against the hash as it is written, blanks and all.
#[test]
fn a_short_value_need_not_be_compact_beside_keys_that_are_long() {
    let db = long(&memory(), 2, "{}");
    let document = db.document("d").unwrap();
    let (revisions, text) = exported(&document);
    let ExportedContent::Value(json) = &revisions[0].content else { panic!("it is short") };
    let spaced = json.replace(':', " :\n ");
    let pushed = |json: &str, hash| {
        let new = Database::memory().unwrap();
        let content = ExportedContent::Value(json.to_owned());
        let first = ExportedRevision { content, hash, ..revisions[0].clone() };
        take(&new, &document, (&[first], &text)).map(|_| new)
    };
    for hash in [revisions[0].hash, None] {
        let new = pushed(&spaced, hash).unwrap();
        assert_eq!(new.snapshot().hash().unwrap(), db.snapshot().hash().unwrap());
        assert_eq!(new.collection("d").unwrap().put(3, "{}", &how()).unwrap().version, 3);
        let cut = pushed(&spaced[1..], hash).unwrap_err();
        assert_eq!(cut.kind(), ErrorKind::Invalid, "{cut}");
    }
    let other = pushed(&spaced.replace('1', "2"), revisions[0].hash).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Corrupt, "{other}");
}

/// Going on with a copy that an older version had begun once passed over the keys that departed.
#[test]
fn a_copy_that_knows_no_keys_that_departed_learns_them_when_it_goes_on() {
    for is_long in [false, true] {
        let db = if is_long {
            let db = long(&memory(), 1_000, "{}");
            let records = db.collection("d").unwrap();
            records.document().retain(Retention::All, &how()).unwrap();
            records.put(MANY, r#"{"m":2}"#, &how()).unwrap();
            db
        } else {
            departed(&memory(), Retention::Last(2))
        };
        let document = db.document("d").unwrap();
        let (revisions, text) = exported(&document);
        assert_eq!((revisions.len(), revisions[0].long_texts()), (2, usize::from(is_long)));

        let device = memory();
        let copy = open(&device);
        let first =
            ExportedRevision { departed: DepartedRecords::default(), ..revisions[0].clone() };
        take(&copy, &document, (&[first], b"")).unwrap();
        if is_long {
            let cut = take(&copy, &document, (&revisions, &text[1..])).unwrap_err();
            assert!(matches!(cut.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{cut}");
        }
        take(&copy, &document, (&revisions, &text)).unwrap();
        assert_eq!(copy.snapshot().hash().unwrap(), db.snapshot().hash().unwrap());
        let keys = if is_long { [3.into(), 4.into()] } else { ["a\"\u{e9}".into(), "b".into()] };
        let records = copy.collection("d").unwrap();
        let saved = keys.map(|key: Key| records.put(key, "{}", &how()).unwrap().version);
        assert_eq!(saved, if is_long { [3, 2] } else { [4, 2] });
        compact(&copy);
        drop(records);
        copy.close().unwrap();
        assert!(open(&device).check().unwrap().is_clean());
    }
}

/// Nothing once told that it still lacks them.
#[test]
fn a_copy_that_has_all_revisions_is_told_to_lack_the_keys_that_departed() {
    let db = departed(&memory(), Retention::Head);
    let document = db.document("d").unwrap();
    let (revisions, _) = exported(&document);
    let none = |revision: &ExportedRevision| ExportedRevision {
        departed: DepartedRecords::default(),
        ..revision.clone()
    };
    let older: Vec<_> = revisions.iter().map(none).collect();
    let copy = Database::memory().unwrap();
    take(&copy, &document, (&older, b"")).unwrap();
    for (history, lacks) in [(&older, false), (&revisions, true)] {
        let mut import = copy.import_history("d", None).unwrap();
        for revision in history {
            assert!(!import.push(revision).unwrap());
        }
        assert_eq!(import.lacks_departed(), lacks);
        import.finish().unwrap();
    }
}

/// What an import says that goes on behind the revisions that are there, in a database that is
/// opened for reading.
fn next_pushed(device: &Arc<dyn Device>, history: &[ExportedRevision]) -> String {
    let read = Options { read_only: true, create: false, ..options() };
    let db = Database::open_device(Arc::clone(device), read).unwrap();
    let push = |next: &[ExportedRevision]| {
        let mut import = db.import_history("d", None).unwrap();
        for revision in history {
            assert!(!import.push(revision).unwrap());
        }
        match next {
            [] => import.finish().unwrap_err().to_string(),
            [next, ..] => import.push(next).unwrap_err().to_string(),
        }
    };
    assert!(push(&[]).contains("all but the records that departed"));
    let revision = Revision(history.len() as u64 + 1);
    push(&[ExportedRevision {
        revision,
        departed: DepartedRecords::default(),
        ..history[0].clone()
    }])
}

/// One state that cannot be read once stopped an export at its first line, without its name, and an
/// import into such a document behind its last one.
#[test]
fn a_history_is_told_though_it_cannot_be_read_which_keys_departed() {
    let device = memory();
    let db = open(&device);
    let records = db.create_collection("d", KeyKind::I64).unwrap();
    // What is left is in other groups than what departed.
    let json = |n: i64| format!(r#"{{"n":{}}}"#, n * 7_919 % 10_007);
    for _ in 0..2 {
        records.put_many((0..9_000).map(|n| (n, json(n))), &how()).unwrap();
        records.put_many((0..9_000).map(|n| (n, "{}")), &how()).unwrap();
    }
    let gone: Vec<_> = (0..8_900).map(Key::from).collect();
    records.delete_many(&gone, &how()).unwrap();
    records.document().retain(Retention::Last(2), &how()).unwrap();
    records.put(8_999, r#"{"n":1}"#, &how()).unwrap();
    records.put(8_999, r#"{"n":2}"#, &how()).unwrap();
    compact(&db);
    drop(records);
    let (whole, _) = exported(&db.document("d").unwrap());
    db.close().unwrap();

    let mut told = 0;
    for name in device.list("segments").unwrap() {
        let file = device.open(&format!("segments/{name}"), Access::Write).unwrap();
        let bytes = file.len().unwrap();
        let step = usize::try_from(bytes / 60).unwrap().max(1);
        for at in (60..bytes.saturating_sub(150)).step_by(step) {
            let mut byte = [0];
            file.read_at(&mut byte, at).unwrap();
            file.write_at(&[byte[0] ^ 0x55], at).unwrap();
            let read = Options { read_only: true, create: false, ..options() };
            let db = Database::open_device(Arc::clone(&device), read);
            let history = db.and_then(|db| db.document("d")).and_then(|d| d.export());
            let history = history.map_or_else(|error| vec![Err(error)], Iterator::collect);
            let readable = history.iter().filter(|revision| revision.is_ok()).count();
            if readable == whole.len() && history.len() > readable {
                let said = next_pushed(&device, &whole);
                assert!(!said.contains("departed"), "{said}");
            }
            file.write_at(&byte, at).unwrap();
            let mut errors = history.iter().filter_map(|revision| revision.as_ref().err());
            let revisions = history.iter().filter_map(|revision| revision.as_ref().ok());
            match errors.next_back() {
                None => assert!(revisions.eq(&whole), "byte {at}"),
                Some(error) if revisions.count() == whole.len() => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt);
                    assert!(error.message().contains("departed"), "{error}");
                    told += 1;
                }
                Some(_) => {}
            }
        }
    }
    assert!(told > 0);
}
