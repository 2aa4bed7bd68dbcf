//! Indexes where a collection is taken over: dumped and loaded, exported, backed up and restored.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::{Device, MemoryDevice};
use duramen::{
    BackupFolder, BackupOptions, Collection, CommitOptions, Database, DocumentOptions, DumpLoad,
    Error, ErrorKind, ExportedFacts, ExportedRevision, IndexDefinition, KeyKind, Options,
    RestorePoint, Retention,
};

fn options() -> Options {
    Options { background: false, ..Options::default() }
}

fn how() -> CommitOptions {
    CommitOptions::default()
}

fn definitions() -> [IndexDefinition; 2] {
    [
        IndexDefinition::new("by mail", &["mail"]).unwrap().unique(),
        IndexDefinition::new("by-tag", &["tags[*]", r#"["a.b"]"#]).unwrap(),
    ]
}

/// A collection with two indexes, and two that were dropped.
fn sample(device: &Arc<dyn Device>) -> Database {
    let db = Database::open_device(Arc::clone(device), options()).unwrap();
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    for name in ["old", "by mail"] {
        collection.create_index(&IndexDefinition::new(name, &["mail"]).unwrap()).unwrap();
        put(&collection, name, 1);
        collection.drop_index(name).unwrap();
    }
    // What was there twice before the index came stays in the history.
    collection.put("twice", r#"{"mail":"old"}"#, &how()).unwrap();
    collection.delete("twice", &how()).unwrap();
    for index in definitions() {
        collection.create_index(&index).unwrap();
    }
    put(&collection, "last", 2);
    db
}

fn put(collection: &Collection, key: &str, number: u64) {
    let json = format!(r#"{{"mail":"{key}","tags":["{number}","x"],"a.b":{number}}}"#);
    collection.put(key, json, &how()).unwrap();
}

/// The indexes are there, verify, and keep what is unique.
fn assert_indexed(db: &Database) {
    let collection = db.collection("c").unwrap();
    assert_eq!(collection.indexes().unwrap(), definitions());
    let entries = 2 * collection.count().unwrap();
    assert_eq!(collection.index_stats("by-tag").unwrap().entries, entries);
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.indexes, 2);
    let same = collection.put("another", r#"{"mail":"old"}"#, &how()).unwrap_err();
    assert_eq!(same.kind(), ErrorKind::Conflict);
}

#[test]
fn a_dump_says_the_indexes_whatever_their_numbers_are() {
    let db = sample(&(Arc::new(MemoryDevice::new()) as Arc<dyn Device>));
    let mut dump = db.snapshot().dump().unwrap();
    let items = dump.by_ref().collect::<Result<Vec<_>, _>>().unwrap();
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let mut load = DumpLoad::into_new(Arc::clone(&device), options()).unwrap();
    items.into_iter().try_for_each(|item| load.push(item)).unwrap();
    load.finish(Some(dump.summary().hash)).unwrap();
    assert_indexed(&Database::open_device(device, options()).unwrap());
}

/// Such an index was once made, and was no other than the one with the path once.
#[test]
fn an_index_has_a_path_once_unless_it_is_an_older_one() {
    for paths in [&["a", "a"][..], &["n.a", "b", r#"n["a"]"#]] {
        let error = IndexDefinition::new("i", paths).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let twice = format!("the index \"i\" has the path {} twice", paths[0]);
        assert!(error.to_string().contains(&twice), "{error}");
    }
    let paths = ["a", "a"].iter().map(|path| path.parse().unwrap()).collect();
    let older = IndexDefinition { name: "i".to_owned(), paths, is_unique: true };
    let device = Arc::new(MemoryDevice::new()) as Arc<dyn Device>;
    let db = Database::open_device(Arc::clone(&device), options()).unwrap();
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    collection.create_index(&older).unwrap();
    collection.put("one", r#"{"a":1}"#, &how()).unwrap();
    drop((collection, db));
    let db = Database::open_device(device, options()).unwrap();
    let collection = db.collection("c").unwrap();
    assert_eq!(collection.indexes().unwrap(), [older]);
    let same = collection.put("other", r#"{"a":1}"#, &how()).unwrap_err();
    assert_eq!(same.kind(), ErrorKind::Conflict);
}

#[test]
fn a_history_that_is_imported_has_its_indexes() {
    let db = sample(&(Arc::new(MemoryDevice::new()) as Arc<dyn Device>));
    let other = Database::memory().unwrap();
    let history = db.document("c").unwrap().export().unwrap();
    let mut import = other.import_history("c", None).unwrap();
    import.set_facts(history.facts().unwrap()).unwrap();
    for revision in history {
        import.push(&revision.unwrap()).unwrap();
    }
    import.finish().unwrap();
    assert_indexed(&other);
}

#[test]
fn indexes_are_made_again_after_a_restore_to_an_earlier_commit() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let db = sample(&device);
    let collection = db.collection("c").unwrap();
    let point = db.snapshot().sequence();
    put(&collection, "later", 3);
    collection.create_index(&IndexDefinition::new("later", &["mail"]).unwrap()).unwrap();
    db.checkpoint().unwrap();
    let folder = BackupFolder::on_device(Arc::new(MemoryDevice::new()));
    let full = BackupOptions { incremental: false, verify: true };
    db.backup(&folder, full, &mut |_, _| ControlFlow::Continue(())).unwrap();
    for point in [RestorePoint::Commit(point), RestorePoint::Newest] {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let go_on = &mut |_, _| ControlFlow::Continue(());
        Database::restore_device(&folder, &device, point, go_on).unwrap();
        let restored = Database::open_device(device, options()).unwrap();
        let collection = restored.collection("c").unwrap();
        if point == RestorePoint::Newest {
            collection.drop_index("later").unwrap();
        } else {
            // With the number that an index got after that commit.
            let other = IndexDefinition::new("later", &["a"]).unwrap();
            collection.create_index(&other).unwrap();
            assert!(restored.check().unwrap().is_clean());
            collection.drop_index("later").unwrap();
        }
        assert_indexed(&restored);
    }
}

#[test]
fn indexes_stay_when_other_options_are_set_and_only_collections_have_them() {
    let db = sample(&(Arc::new(MemoryDevice::new()) as Arc<dyn Device>));
    let document = db.document("c").unwrap();
    let (collection, keep) = (Some(KeyKind::Text), Retention::Last(9));
    let declared = DocumentOptions { keep, collection, ..DocumentOptions::default() };
    document.set_options(&declared, &how()).unwrap();
    assert_indexed(&db);
    let indexes = definitions().into_iter().collect();
    let declared = DocumentOptions { indexes, ..DocumentOptions::default() };
    let refused = db.create_document_with("d", &declared).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
}

/// Beside a writer, and without one, a database that is opened for reading has its indexes.
#[test]
fn a_database_opened_for_reading_reads_indexes_beyond_what_segments_have() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let db = sample(&device);
    db.checkpoint().unwrap();
    put(&db.collection("c").unwrap(), "young", 4);
    db.flush().unwrap();
    let read_only = Options { read_only: true, ..options() };
    let reader = Database::open_device(device, read_only).unwrap();
    let collection = reader.collection("c").unwrap();
    assert_eq!(collection.index_stats("by mail").unwrap().entries, 4);
    assert_eq!(collection.head().unwrap().indexes().unwrap(), definitions());
    let report = reader.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

/// The history of a collection without indexes, of which the options say that one is unique.
fn history_with_unique(values: &[&[(&str, u64)]]) -> (ExportedFacts, Vec<ExportedRevision>) {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    for values in values {
        let records = values.iter().map(|(key, n)| (*key, format!("{{\"n\":{n}}}")));
        collection.put_many(records.collect::<Vec<_>>(), &how()).unwrap();
    }
    let export = collection.document().export().unwrap();
    let mut facts = export.facts().unwrap();
    let unique = IndexDefinition::new("by-n", &["n"]).unwrap().unique();
    facts.options.indexes = [unique].into_iter().collect();
    (facts, export.map(Result::unwrap).collect())
}

fn import(db: &Database, (facts, revisions): &(ExportedFacts, Vec<ExportedRevision>)) -> Error {
    let mut import = db.import_history("c", None).unwrap();
    import.set_facts(facts.clone()).unwrap();
    for revision in revisions {
        import.push(revision).unwrap();
    }
    import.finish().unwrap_err()
}

/// A history whose last revision had the same value twice where an index is unique was taken over,
/// and nobody saw it.
#[test]
fn a_history_that_ends_with_what_is_unique_twice_is_refused_and_found() {
    let is_named = |error: &Error| {
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        for part in ["\"by-n\"", "\"a\"", "\"b\"", "n = 7"] {
            assert!(error.message().contains(part), "{part}: {error}");
        }
    };
    let twice = history_with_unique(&[&[("a", 1), ("b", 2)], &[("a", 7)], &[("b", 7)]]);
    let db = Database::memory().unwrap();
    is_named(&import(&db, &twice));
    // What the history has is there, and no index that says what is not so.
    assert_eq!(db.collection("c").unwrap().count().unwrap(), 2);
    assert!(db.collection("c").unwrap().indexes().unwrap().is_empty());
    assert!(db.check().unwrap().is_clean());

    // The same where the index is there before the revision that has a value twice.
    let db = Database::memory().unwrap();
    let mut import_begin = db.import_history("c", None).unwrap();
    import_begin.set_facts(twice.0.clone()).unwrap();
    for revision in &twice.1[..2] {
        import_begin.push(revision).unwrap();
    }
    import_begin.finish().unwrap();
    is_named(&import(&db, &twice));
    let report = db.check().unwrap();
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert!(report.findings[0].message.contains("\"a\" and \"b\""), "{:?}", report.findings);

    // What was twice before is not any more.
    let (facts, revisions) = history_with_unique(&[&[("a", 7), ("b", 7)], &[("b", 8)]]);
    let db = Database::memory().unwrap();
    let mut import = db.import_history("c", None).unwrap();
    import.set_facts(facts).unwrap();
    for revision in &revisions {
        import.push(revision).unwrap();
    }
    import.finish().unwrap();
    let same = db.collection("c").unwrap().put("c", r#"{"n":7}"#, &how()).unwrap_err();
    assert_eq!(same.kind(), ErrorKind::Conflict);
    assert!(db.check().unwrap().is_clean());
}
