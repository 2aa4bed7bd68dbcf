//! Dumps: the same for databases that say the same, and loaded whole or not at all.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use duramen::io::{Access, Device, MemoryDevice, read_exact_at, write_all_at};
use duramen::{
    Clock, CommitOptions, ContentHash, Database, Document, DocumentOptions, DumpItem, DumpLoad,
    DumpSummary, Error, ErrorKind, ExportedContent, JsonPointer, Key, KeyKind, Micros, Options,
    Purge, PurgeOptions, Revision, Target,
};

fn by(author: &str, number: i64) -> CommitOptions {
    CommitOptions {
        author: Some(author.into()),
        timestamp: Some(Micros(number * 1_000_000)),
        ..CommitOptions::default()
    }
}

fn options() -> Options {
    Options { background: false, ..Options::default() }
}

/// A clock by which every such database is made at the same times.
#[derive(Debug)]
struct Seconds(AtomicI64);

impl Clock for Seconds {
    fn now(&self) -> Micros {
        Micros(self.0.fetch_add(1_000_000, Ordering::Relaxed))
    }
}

/// For a database that is made at the same times as any other.
fn same_times() -> Options {
    Options { clock: Arc::new(Seconds(AtomicI64::new(1_000_000_000))), ..options() }
}

/// A database with every kind of thing that a dump says.
fn sample() -> Database {
    let db = Database::open_device(Arc::new(MemoryDevice::new()), same_times()).unwrap();
    fill(&db);
    db
}

fn fill(db: &Database) {
    let ids = [("$.list".parse().unwrap(), "id".to_owned())].into();
    let declared = DocumentOptions { ids, ..DocumentOptions::default() };
    let shop = db.create_document_with("shop", &declared).unwrap();
    shop.put(r#"{"list":[{"id":1,"n":1.50},{"id":2}],"b":null}"#, &by("ann", 1)).unwrap();
    shop.put(r#"{"b":[],"list":[{"id":2},{"id":1,"n":1.5}]}"#, &by("bob", 2)).unwrap();
    shop.tag("v1", Some(Revision(1)), &CommitOptions::default()).unwrap();
    shop.set(&JsonPointer::parse("/b/-").unwrap(), "7", &by("ann", 3)).unwrap();
    db.create_document("empty").unwrap();
    db.create_document("gone").unwrap().put("1", &by("ann", 4)).unwrap();
    db.delete_document("gone", &by("ann", 5)).unwrap();
    let old = db.create_document("old name").unwrap();
    old.put("[1,2,3]", &by("eve", 6)).unwrap();
    db.rename_document("old name", "new name", &CommitOptions::default()).unwrap();
}

fn put(db: &Database, name: &str) {
    db.document(name).unwrap().put("1", &by("ann", 9)).unwrap();
}

fn dumped(db: &Database) -> (Vec<DumpItem>, DumpSummary) {
    let mut dump = db.snapshot().dump().unwrap();
    let items = dump.by_ref().collect::<Result<_, _>>().unwrap();
    (items, dump.summary())
}

fn load(
    device: &Arc<dyn Device>,
    items: &[DumpItem],
    hash: Option<ContentHash>,
) -> Result<DumpSummary, Error> {
    let mut load = DumpLoad::into_new(Arc::clone(device), options())?;
    items.iter().try_for_each(|item| load.push(item.clone()))?;
    load.finish(hash)
}

#[test]
fn a_dump_that_is_loaded_gives_the_same_dump() {
    let db = sample();
    let (items, summary) = dumped(&db);
    assert_eq!((summary.documents, summary.revisions), (4, 6));
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    assert_eq!(load(&device, &items, Some(summary.hash)).unwrap(), summary);
    let loaded = Database::open_device(device, options()).unwrap();
    assert!(loaded.check().unwrap().is_clean());
    assert_eq!(dumped(&loaded).1, summary);
    assert_eq!(loaded.documents().unwrap(), ["empty", "new name", "shop"]);
    assert_eq!(loaded.deleted_documents().unwrap().len(), 1);
    let shop = loaded.document("shop").unwrap();
    assert_eq!(shop.options().unwrap(), db.document("shop").unwrap().options().unwrap());
    assert_eq!(shop.at_tag("v1").unwrap().revision(), Revision(1));
    assert_eq!(shop.tags().unwrap(), db.document("shop").unwrap().tags().unwrap());
    for (before, after) in items.iter().zip(&dumped(&loaded).0) {
        let (DumpItem::Revision(before), DumpItem::Revision(after)) = (before, after) else {
            continue;
        };
        assert_eq!((before.timestamp, &before.hash), (after.timestamp, &after.hash));
    }
}

/// Dumps once left out when a tag was set; their hashes are of what they say.
#[test]
fn a_dump_without_the_times_of_tags_is_loaded_with_those_of_the_load() {
    let (mut items, summary) = dumped(&sample());
    for item in &mut items {
        if let DumpItem::Document { facts, .. } = item {
            facts.tags.iter_mut().for_each(|tag| tag.timestamp = Micros(0));
        }
    }
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let loaded = load(&device, &items, None).unwrap();
    assert!(loaded.hash != summary.hash);
    let before = Micros(1_700_000_000_000_000);
    let db = Database::open_device(device, options()).unwrap();
    let tags = db.document("shop").unwrap().tags().unwrap();
    assert!(tags.len() == 1 && tags[0].timestamp > before, "{tags:?}");
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    assert_eq!(load(&device, &items, Some(loaded.hash)).unwrap(), loaded);
}

fn purge(document: &Document, place: &str, at: Option<u64>) -> Purge {
    let commit = CommitOptions { author: Some("dpo".into()), ..CommitOptions::default() };
    let options = PurgeOptions { at: at.map(Revision), commit };
    let target = Target::parse(place).unwrap();
    document.purge(&target, &options, &mut |_, _| ControlFlow::Continue(())).unwrap()
}

/// A document, and a collection with records that are purged as a whole and in part, from which
/// some revisions are left that change nothing any more.
fn purged() -> Database {
    let db = sample();
    purge(&db.document("shop").unwrap(), "/list/0/n", Some(1));
    let people = db.create_collection("people", KeyKind::Text).unwrap();
    let put = |key: &str, json: &str| {
        people.put(Key::from(key), json, &CommitOptions::default()).unwrap();
    };
    for ssn in 1..=5 {
        put("ann", &format!(r#"{{"ssn":{ssn}}}"#));
        put("bob", &format!(r#"{{"card":{{"ssn":{ssn}}},"n":{}}}"#, ssn / 2));
        put("eve", &format!(r#"{{"n":{ssn}}}"#));
    }
    people.delete(Key::from("eve"), &CommitOptions::default()).unwrap();
    put("eve", r#"{"n":6}"#);
    purge(people.document(), "/ann", None);
    purge(people.document(), "/bob/card", None);
    purge(people.document(), "/eve", Some(3));
    put("ann", r#"{"ssn":null}"#);
    db
}

/// The versions of all records of the collection that was purged, with their revisions.
fn versions(db: &Database) -> Vec<Vec<(Revision, Option<u64>, bool)>> {
    let people = db.collection("people").unwrap();
    let history = |key| {
        let history = people.history(Key::from(key)).unwrap().map(|version| {
            let version = version.unwrap();
            (version.revision, version.record.map(|record| record.version), version.is_purged)
        });
        history.collect()
    };
    ["ann", "bob", "eve"].map(history).into()
}

/// What is known of the purges of both documents, without the ids that are of one database only.
fn tombstones(db: &Database) -> Vec<Purge> {
    let purges = ["people", "shop"].map(|name| db.document(name).unwrap().purges().unwrap());
    purges.concat().into_iter().map(|purge| Purge { node: None, ..purge }).collect()
}

#[test]
fn a_loaded_database_knows_what_was_purged_and_counts_versions_as_before() {
    let db = purged();
    let (items, summary) = dumped(&db);
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    load(&device, &items, Some(summary.hash)).unwrap();
    let loaded = Database::open_device(device, options()).unwrap();
    assert!(loaded.check().unwrap().is_clean());
    assert_eq!(dumped(&loaded).1, summary);
    let told = tombstones(&loaded);
    assert_eq!(told, tombstones(&db));
    assert_eq!(told.len(), 4);
    assert_eq!((told[0].author.as_deref(), told[0].is_pending), (Some("dpo"), false));
    let expected = versions(&db);
    assert_eq!(versions(&loaded), expected);
    assert_eq!(expected[0][0].1, Some(6), "what was purged counts on");
    for (before, after) in items.iter().zip(&dumped(&loaded).0) {
        let (DumpItem::Revision(before), DumpItem::Revision(after)) = (before, after) else {
            continue;
        };
        assert_eq!(before.counted, after.counted);
    }
    assert!(items.iter().any(|item| matches!(item, DumpItem::Revision(revision)
        if !revision.counted.is_empty())));
    let mut without = items.clone();
    for item in &mut without {
        if let DumpItem::Document { facts, .. } = item {
            facts.purges.clear();
        }
    }
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    assert_ne!(load(&device, &without, None).unwrap().hash, summary.hash);
}

#[test]
fn a_repaired_database_knows_what_was_purged() {
    let source = MemoryDevice::new();
    let db = purged();
    let (items, summary) = dumped(&db);
    load(&(Arc::new(source.clone()) as Arc<dyn Device>), &items, None).unwrap();
    let target = MemoryDevice::new();
    let devices: (Arc<dyn Device>, Arc<dyn Device>) = (Arc::new(source), Arc::new(target.clone()));
    let report = Database::repair_device(devices, &options(), &mut |_| ControlFlow::Continue(()));
    assert!(report.unwrap().is_complete());
    let repaired = Database::open_device(Arc::new(target), options()).unwrap();
    assert_eq!(tombstones(&repaired), tombstones(&db));
    assert_eq!(versions(&repaired), versions(&db));
    assert_eq!(dumped(&repaired).1, summary);
}

#[test]
fn a_damaged_collection_counts_versions_as_before() {
    let source = MemoryDevice::new();
    let db = purged();
    let long = format!("{{\"long\":\"{}\"}}", "z".repeat(8 << 10));
    let people = db.collection("people").unwrap();
    people.put(Key::from("zoe"), &long, &CommitOptions::default()).unwrap();
    people.put(Key::from("bob"), r#"{"n":9}"#, &CommitOptions::default()).unwrap();
    let (items, _) = dumped(&db);
    load(&(Arc::new(source.clone()) as Arc<dyn Device>), &items, None).unwrap();
    let place = |bytes: &[u8]| bytes.windows(64).position(|some| some == [b'z'; 64]);
    let paths = source.list("segments").unwrap().into_iter().map(|name| format!("segments/{name}"));
    for path in paths {
        let file = source.open(&path, Access::Write).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
        if let Some(at) = place(&bytes) {
            write_all_at(file.as_ref(), b"y", at as u64 + 9).unwrap();
        }
    }
    let target = MemoryDevice::new();
    let devices: (Arc<dyn Device>, Arc<dyn Device>) = (Arc::new(source), Arc::new(target.clone()));
    let report = Database::repair_device(devices, &options(), &mut |_| ControlFlow::Continue(()));
    assert!(!report.unwrap().is_complete(), "the long value is lost");
    let repaired = Database::open_device(Arc::new(target), options()).unwrap();
    assert_eq!(versions(&repaired), versions(&db));
}

#[test]
fn the_hash_is_the_same_however_it_is_stored_and_however_it_came_to_be() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let db = Database::open_device(Arc::clone(&device), same_times()).unwrap();
    fill(&db);
    let hash = db.snapshot().hash().unwrap();
    assert_eq!(sample().snapshot().hash().unwrap(), hash);
    db.checkpoint().unwrap();
    assert_eq!(db.snapshot().hash().unwrap(), hash);
    drop(db);
    let db = Database::open_device(device, options()).unwrap();
    assert_eq!(db.snapshot().hash().unwrap(), hash);
}

#[test]
fn the_hash_is_another_one_for_everything_that_differs() {
    let changes: [fn(&Database); 8] = [
        |db| drop(db.create_document("another").unwrap()),
        |db| put(db, "shop"),
        |db| put(db, "empty"),
        |db| drop(db.rename_document("empty", "e", &CommitOptions::default()).unwrap()),
        |db| assert!(db.delete_document("new name", &by("ann", 9)).is_ok()),
        |db| {
            let shop = db.document("shop").unwrap();
            shop.tag("v2", Some(Revision(1)), &CommitOptions::default()).unwrap();
        },
        // Only the time at which it was set.
        |db| {
            let shop = db.document("shop").unwrap();
            shop.untag("v1", &CommitOptions::default()).unwrap();
            shop.tag("v1", Some(Revision(1)), &CommitOptions::default()).unwrap();
        },
        |db| {
            let shop = db.document("shop").unwrap();
            shop.set_options(&DocumentOptions::default(), &CommitOptions::default()).unwrap();
        },
    ];
    let mut hashes = vec![sample().snapshot().hash().unwrap()];
    for change in changes {
        let db = sample();
        change(&db);
        hashes.push(db.snapshot().hash().unwrap());
    }
    let distinct: std::collections::BTreeSet<_> = hashes.iter().collect();
    assert_eq!(distinct.len(), hashes.len());
}

#[test]
fn a_snapshot_is_dumped_as_of_its_commit() {
    let db = Database::memory().unwrap();
    let mut snapshots = Vec::new();
    let doc = db.create_document("d").unwrap();
    snapshots.push((db.snapshot(), db.snapshot().hash().unwrap()));
    doc.put("1", &by("ann", 1)).unwrap();
    snapshots.push((db.snapshot(), db.snapshot().hash().unwrap()));
    doc.tag("t", None, &CommitOptions::default()).unwrap();
    snapshots.push((db.snapshot(), db.snapshot().hash().unwrap()));
    db.rename_document("d", "e", &CommitOptions::default()).unwrap();
    snapshots.push((db.snapshot(), db.snapshot().hash().unwrap()));
    db.delete_document("e", &by("ann", 2)).unwrap();
    for (snapshot, hash) in &snapshots {
        assert_eq!(snapshot.hash().unwrap(), *hash, "commit {}", snapshot.sequence());
    }
}

#[test]
fn what_does_not_verify_leaves_nothing() {
    let (items, summary) = dumped(&sample());
    let revision = |index: usize, change: fn(&mut duramen::ExportedRevision)| {
        let mut items = items.clone();
        let revisions = items.iter_mut().filter_map(|item| match item {
            DumpItem::Revision(revision) => Some(revision),
            _ => None,
        });
        change(revisions.into_iter().nth(index).unwrap());
        items
    };
    let cases = [
        (revision(0, |it| it.author = None), ErrorKind::Corrupt),
        (revision(1, |it| it.timestamp.0 += 1), ErrorKind::Corrupt),
        (revision(2, |it| it.content = ExportedContent::Value("[]".into())), ErrorKind::Corrupt),
        (revision(2, |it| it.content = ExportedContent::Value("[".into())), ErrorKind::Invalid),
        (items[..items.len() - 1].to_vec(), ErrorKind::Corrupt),
        (items[1..].to_vec(), ErrorKind::Corrupt),
        ([&items[..], &items[..]].concat(), ErrorKind::Invalid),
        (vec![items.last().unwrap().clone()], ErrorKind::Invalid),
    ];
    for (number, (items, kind)) in cases.iter().enumerate() {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let error = load(&device, items, Some(summary.hash)).unwrap_err();
        assert_eq!(error.kind(), *kind, "case {number}: {error}");
        let create = Options { create: false, ..options() };
        let opened = Database::open_device(Arc::clone(&device), create).unwrap_err();
        assert_eq!(opened.kind(), ErrorKind::NotFound, "case {number}");
        for folder in ["journal", "segments"] {
            assert_eq!(device.list(folder).unwrap(), [""; 0], "case {number}");
        }
        assert!(!device.list("").unwrap().iter().any(|name| name.starts_with("MANIFEST")));
    }
}

#[test]
fn a_load_goes_into_an_empty_place_only() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    device.open("notes", Access::Create).unwrap();
    let error = DumpLoad::into_new(device, options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
