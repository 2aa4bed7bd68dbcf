use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::io::{Access, Device, File, Lock, MemoryDevice, read_exact_at};
use crate::{
    BackupFolder, BackupOptions, BlameOptions, CommitOptions, Database, Document, ErrorKind,
    JsonPointer, Key, KeyKind, Options, PurgeOptions, RestorePoint, Retention, Revision, Target,
};

/// What must not be found any more; every secret has it.
const SECRET: &str = "s3cr3t";

fn open(device: &Arc<MemoryDevice>) -> Database {
    let options = Options { background: false, ..Options::default() };
    Database::open_device(Arc::<MemoryDevice>::clone(device), options).unwrap()
}

fn plain() -> CommitOptions {
    CommitOptions::default()
}

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

fn purge(document: &Document, place: &str, at: Option<u64>) -> crate::Result<crate::Purge> {
    let options = PurgeOptions { at: at.map(Revision), commit: plain() };
    document.purge(&Target::parse(place).unwrap(), &options, &mut |_, _| ControlFlow::Continue(()))
}

fn json_at(document: &Document, revision: u64) -> Value {
    let text = document.at(Revision(revision)).unwrap().to_json().unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Every file, with its bytes.
fn files(device: &dyn Device) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for folder in ["", "journal", "segments"] {
        for name in device.list(folder).unwrap() {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let Ok(file) = device.open(&path, Access::Read) else { continue };
            let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
            read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
            files.push((path, bytes));
        }
    }
    files
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Where a text is found: in files as they are, and in cells as they are decompressed.
fn found(device: &MemoryDevice, db: &Database, text: &str) -> Vec<String> {
    let mut found: Vec<String> = files(device)
        .into_iter()
        .filter(|(_, bytes)| has(bytes, text))
        .map(|(path, _)| path)
        .collect();
    for cell in db.engine.view().store.live().scan(&[]).unwrap() {
        let (key, handle) = cell.unwrap();
        if has(&key, text) || has(&handle.load().unwrap(), text) {
            found.push(format!("cell {key:02x?}"));
        }
    }
    found
}

fn assert_clean(db: &Database) {
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

/// A value of every kind, told apart by a number.
fn secrets(number: usize) -> Value {
    let long = format!("{SECRET} long {number} {}", "x".repeat(5_000));
    let deep = format!("{SECRET} deep {number}");
    json!({
        "text": format!("{SECRET} text {number}"),
        "long": long,
        "number": 123_456_789_u64 + number as u64,
        "list": [{"n": format!("{SECRET} {number}"), "deep": [[deep]]}],
        "map": { format!("{SECRET} key {number}"): {"v": format!("{SECRET} value {number}")} },
    })
}

/// A document with a secret that changes, between neighbours of the same shape that stay.
fn write_history(db: &Database, compacts: bool) -> Document {
    let options = crate::DocumentOptions {
        maps: ["$.people[*].secret.map".parse().unwrap()].into(),
        ..crate::DocumentOptions::default()
    };
    let document = db.create_document_with("d", &options).unwrap();
    let kept = |number: usize| {
        let text = serde_json::to_string(&secrets(number)).unwrap().replace(SECRET, "public");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    for number in 1..=12_usize {
        let value = json!({"people": [
            {"id": 1, "secret": kept(number)},
            {"id": 2, "secret": secrets(number)},
            {"id": 3, "secret": kept(number / 3)},
        ], "revision": number});
        document.put(value.to_string(), &plain()).unwrap();
        match number {
            4 | 8 => db.checkpoint().unwrap(),
            10 if compacts => db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap(),
            _ => {}
        }
    }
    document
}

/// Sets tags, moves one and removes one; the hashes that they had.
fn tag(document: &Document) -> Vec<String> {
    let at = |revision| Some(Revision(revision));
    document.tag("old", at(3), &plain()).unwrap();
    document.tag("moved", at(5), &plain()).unwrap();
    document.move_tag("moved", at(6), &plain()).unwrap();
    document.tag("gone", at(7), &plain()).unwrap();
    document.untag("gone", &plain()).unwrap();
    let hash = |revision| document.at(Revision(revision)).unwrap().content_hash().unwrap();
    [3, 5, 6, 7].map(|revision| hash(revision).to_string()).into()
}

/// What a revision is once `/people/1/secret` is purged, which was removed at the head.
fn without(mut value: Value, is_head: bool) -> Value {
    let person = value.pointer_mut("/people/1").unwrap().as_object_mut().unwrap();
    if is_head {
        person.remove("secret");
    } else {
        person.insert("secret".to_owned(), Value::Null);
    }
    value
}

#[test]
fn a_purged_value_is_in_no_file_and_reads_null_in_every_revision_that_had_it() {
    for compacts in [false, true] {
        let device = Arc::new(MemoryDevice::new());
        let db = open(&device);
        let document = write_history(&db, compacts);
        let hashes = tag(&document);
        let before: Vec<Value> = (1..=12).map(|revision| json_at(&document, revision)).collect();
        assert!(!found(&device, &db, SECRET).is_empty());
        let told = purge(&document, "/people/1/secret", None).unwrap();
        assert_eq!((told.place, told.is_pending), (pointer("/people/1/secret"), false));
        assert_eq!(found(&device, &db, SECRET), Vec::<String>::new());
        for hash in hashes {
            assert_eq!(found(&device, &db, &hash), Vec::<String>::new());
        }
        let check = |document: &Document| {
            for (revision, value) in (1..).zip(&before) {
                assert_eq!(json_at(document, revision), without(value.clone(), false));
            }
            assert_eq!(json_at(document, 13), without(before[11].clone(), true));
        };
        check(&document);
        assert_clean(&db);
        drop((document, db));
        let db = open(&device);
        check(&db.document("d").unwrap());
        assert_clean(&db);
        let document = db.document("d").unwrap();
        let tags = document.tags().unwrap();
        assert_eq!(tags.len(), 2);
        for tag in tags {
            assert_eq!(tag.hash, document.at(tag.revision).unwrap().content_hash().unwrap());
        }
    }
}

#[test]
fn members_are_purged_wherever_they_stand_in_each_revision() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let document = db.create_document("d").unwrap();
    document.put(format!(r#"["{SECRET}","a","b"]"#), &plain()).unwrap();
    document.put(format!(r#"["x","{SECRET}","a","b"]"#), &plain()).unwrap();
    document.put(r#"["x","a","b"]"#, &plain()).unwrap();
    let error = purge(&document, "/3", None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("--at"), "{error}");
    purge(&document, "/0", Some(1)).unwrap();
    assert_eq!(json_at(&document, 1), json!([null, "a", "b"]));
    assert_eq!(json_at(&document, 2), json!(["x", null, "a", "b"]));
    assert_eq!(json_at(&document, 3), json!(["x", "a", "b"]));
    assert_eq!(document.head_revision().unwrap(), Revision(3));
    assert_eq!(found(&device, &db, SECRET), Vec::<String>::new());
    assert_clean(&db);
}

#[test]
fn what_a_rename_made_of_the_value_is_another_one() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let document = db.create_document("d").unwrap();
    document.put(format!(r#"{{"a":{{"x":"{SECRET}"}}}}"#), &plain()).unwrap();
    document.rename_field(&pointer("/a"), "b", &plain()).unwrap();
    purge(&document, "/b", None).unwrap();
    assert_eq!(json_at(&document, 1), json!({"a": {"x": SECRET}}));
    assert_eq!(json_at(&document, 2), json!({"b": null}));
    assert_eq!(json_at(&document, 3), json!({}));
    purge(&document, "/a", Some(1)).unwrap();
    assert_eq!(json_at(&document, 1), json!({"a": null}));
    assert_eq!(found(&device, &db, SECRET), Vec::<String>::new());
    assert_eq!(document.purges().unwrap().len(), 2);
    assert_clean(&db);
}

/// The pair that a move out of the value left leads nowhere any more.
#[test]
fn what_was_moved_out_of_a_purged_value_has_a_history_of_its_own() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let document = db.create_document("d").unwrap();
    document.put(format!(r#"{{"a":{{"x":1,"y":"{SECRET}"}}}}"#), &plain()).unwrap();
    let position = crate::Position::Last(pointer("").into());
    document.move_to(&pointer("/a/x"), &position, Some("x"), &plain()).unwrap();
    document.set(&pointer("/a/y"), format!("\"{SECRET} 2\""), &plain()).unwrap();
    purge(&document, "/a", None).unwrap();
    let head = document.head().unwrap();
    let timeline = |place: &str, scope| head.timeline(&pointer(place).into(), scope).unwrap();
    assert_eq!(timeline("/x", crate::Scope::Node).moved_from().unwrap(), None);
    let options = BlameOptions { follow: true, ..BlameOptions::default() };
    let blamed: Vec<String> = head
        .blame(&pointer("").into(), &options)
        .unwrap()
        .map(|entry| entry.unwrap().pointer.to_string())
        .collect();
    assert_eq!(blamed, ["", "/x"]);
    let changes = timeline("", crate::Scope::Subtree).changes();
    let changes: Vec<u64> = changes.map(|change| change.unwrap().revision.0).collect();
    assert_eq!(changes, [4, 2, 1]);
    assert_eq!(found(&device, &db, SECRET), Vec::<String>::new());
    assert_clean(&db);
}

#[test]
fn a_purged_document_goes_on_and_its_past_is_undone_to_null() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let document = write_history(&db, false);
    purge(&document, "/people/1/secret", None).unwrap();
    let new = json!({"text": "new", "list": [1, 2], "map": {"k": 1}});
    document.set(&pointer("/people/1/secret"), new.to_string(), &plain()).unwrap();
    assert_eq!(json_at(&document, 14).pointer("/people/1/secret"), Some(&new));
    document.revert_to(Revision(5), &plain()).unwrap();
    assert_eq!(json_at(&document, 15), json_at(&document, 5));
    document.set(&pointer("/people/1/secret"), new.to_string(), &plain()).unwrap();
    assert_eq!(json_at(&document, 16).pointer("/people/1/secret"), Some(&new));
    for from in 1..=16 {
        let diff = document.diff(Revision(from), Revision(16)).unwrap();
        let copy = Database::memory().unwrap().create_document("copy").unwrap();
        copy.put(json_at(&document, from).to_string(), &plain()).unwrap();
        copy.patch(diff.to_json_patch(), &plain()).unwrap();
        assert_eq!(json_at(&copy, copy.head_revision().unwrap().0), json_at(&document, 16));
    }
    let runs = document.head().unwrap().history(&pointer("/people/1/secret")).unwrap();
    let values: Vec<String> = runs.map(|run| run.unwrap().value.to_string()).collect();
    assert_eq!(values[0], new.to_string());
    let known = ["null".to_owned(), new.to_string()];
    assert!(values[1..].iter().all(|value| known.contains(value)), "{values:?}");
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(found(&device, &db, SECRET), Vec::<String>::new());
    assert_clean(&db);
}

/// A return to a revision that had the record was refused, as `null` is none.
#[test]
fn a_purged_record_stays_away_when_what_it_was_in_comes_back() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("c", KeyKind::Text).unwrap();
    for key in ["a", "b", "c"] {
        records.put(key, format!(r#"{{"n":"{key}"}}"#), &plain()).unwrap();
    }
    records.delete_many(&["a".into(), "b".into()], &plain()).unwrap();
    records.put("b", r#"{"n":"new"}"#, &plain()).unwrap();
    purge(records.document(), "/a", Some(3)).unwrap();
    records.document().undo(Revision(5), &plain()).unwrap();
    records.document().undo(Revision(4), &plain()).unwrap();
    assert_eq!(json_at(records.document(), 7), json!({"b": {"n": "b"}, "c": {"n": "c"}}));
    db.delete_document("c", &plain()).unwrap();
    for revision in [1, 3] {
        records.document().revert_to(Revision(revision), &plain()).unwrap();
        let left = if revision == 1 { json!({}) } else { json_at(records.document(), 7) };
        let head = records.document().head_revision().unwrap();
        assert_eq!(json_at(records.document(), head.0), left);
        assert_eq!(records.get("a").unwrap(), None);
    }
    assert_eq!(records.insert("a", "{}", &plain()).unwrap().version, 2);
    assert_clean(&db);
}

/// It was there to those that write, and to nobody else.
#[test]
fn a_purged_record_is_not_there_where_a_commit_before_is_restored() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let records = db.create_collection("c", KeyKind::Text).unwrap();
    records.put("a", r#"{"n":1}"#, &plain()).unwrap();
    let before = db.snapshot().sequence();
    purge(records.document(), "/a", None).unwrap();
    let folder = BackupFolder::on_device(Arc::new(MemoryDevice::new()));
    let go_on = &mut |_, _| ControlFlow::Continue(());
    db.backup(&folder, BackupOptions::default(), go_on).unwrap();
    let restored: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    Database::restore_device(&folder, &restored, RestorePoint::Commit(before), go_on).unwrap();
    let db = Database::open_device(restored, Options::default()).unwrap();
    let (records, a) = (db.collection("c").unwrap(), Key::from("a"));
    assert_eq!(records.get("a").unwrap(), None);
    let mut transaction = db.transaction();
    assert_eq!(transaction.read_record("c", &a).unwrap(), None);
    let expected = transaction.expect_record("c", &a, 1).unwrap_err();
    assert_eq!(expected.kind(), ErrorKind::Conflict);
    let merged = transaction.merge_patch_record("c", &a, b"{}").unwrap_err();
    assert_eq!(merged.kind(), ErrorKind::NotFound);
    drop(transaction);
    assert_eq!(records.insert("a", r#"{"n":2}"#, &plain()).unwrap().version, 2);
    assert_clean(&db);
}

#[test]
fn a_stopped_purge_closes_the_document_and_goes_on_with_the_next_compaction() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let document = write_history(&db, false);
    let other = db.create_document("other").unwrap();
    let target = pointer("/people/1/secret");
    let stopped =
        document.purge(&target, &PurgeOptions::default(), &mut |_, _| ControlFlow::Break(()));
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(document.purges().unwrap()[0].is_pending);
    let refused = document.set(&pointer("/revision"), "1", &plain()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
    assert_eq!(document.tag("t", None, &plain()).unwrap_err().kind(), ErrorKind::Busy);
    other.put("2", &plain()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(!document.purges().unwrap()[0].is_pending);
    document.set(&pointer("/revision"), "1", &plain()).unwrap();
    assert_eq!(found(&device, &db, SECRET), Vec::<String>::new());
    assert_clean(&db);
}

/// Who pressed Ctrl-C while the next open went on with it waited for all of it.
#[test]
fn opening_in_a_hurry_leaves_a_stopped_purge_as_it_is() {
    let device = Arc::new(MemoryDevice::new());
    let target = pointer("/people/1/secret");
    let db = open(&device);
    let options = PurgeOptions::default();
    let stopped =
        write_history(&db, false).purge(&target, &options, &mut |_, _| ControlFlow::Break(()));
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    drop(db);
    let is_pending = |hurries| {
        let hurry = Arc::new(AtomicBool::new(hurries));
        let options = Options { background: false, hurry, ..Options::default() };
        let db = Database::open_device(Arc::<MemoryDevice>::clone(&device), options).unwrap();
        assert_clean(&db);
        db.document("d").unwrap().purges().unwrap()[0].is_pending
    };
    assert!(is_pending(true));
    assert!(!is_pending(false));
}

#[test]
fn a_purge_of_a_document_that_keeps_little_leaves_its_history_as_it_is_kept() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let document = write_history(&db, false);
    document.tag("old", Some(Revision(2)), &plain()).unwrap();
    document.retain(Retention::Last(3), &plain()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    let kept: Vec<u64> = vec![2, 10, 11, 12];
    let before: Vec<Value> = kept.iter().map(|&revision| json_at(&document, revision)).collect();
    purge(&document, "/people/1/secret", None).unwrap();
    for (&revision, value) in kept.iter().zip(before) {
        assert_eq!(json_at(&document, revision), without(value, false), "{revision}");
    }
    assert_eq!(found(&device, &db, SECRET), Vec::<String>::new());
    assert_clean(&db);
}

#[test]
fn what_cannot_be_purged_is_refused_with_what_to_do() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    document.put(r#"{"a":1}"#, &plain()).unwrap();
    let error = purge(&document, "", None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("members"), "{error}");
    assert_eq!(purge(&document, "/a", Some(2)).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(purge(&document, "/b", None).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!db.engine.is_purging() && document.purges().unwrap().is_empty());
    document.put(r#"{"a":2}"#, &plain()).unwrap();
}

fn assert_whole(document: &Document, revision: u64, before: &Value) {
    match document.at(Revision(revision)).and_then(|at| at.to_json()) {
        Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
        Ok(text) => {
            let found: Value = serde_json::from_str(&text).unwrap();
            let is_whole = found == *before || found == without(before.clone(), false);
            assert!(is_whole, "revision {revision} is neither as it was nor as it is to be");
        }
    }
}

/// Reads the last revisions over and over.
fn read_until(is_done: &AtomicBool, document: &Document, before: &[Value]) {
    let first = 13 - before.len() as u64;
    while !is_done.load(Ordering::Relaxed) {
        for (revision, value) in (first..).zip(before) {
            assert_whole(document, revision, value);
        }
    }
}

/// Reads while the segments are replaced see the value, or `null`, or that they have to try again.
#[test]
fn readers_beside_a_purge_see_all_of_the_value_or_nothing() {
    for _ in 0..8 {
        let device = Arc::new(MemoryDevice::new());
        let db = open(&device);
        let document = write_history(&db, false);
        let other = db.create_document("other").unwrap();
        let before: Vec<Value> = (1..=12).map(|revision| json_at(&document, revision)).collect();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for start in 0..2 {
                let (document, before, is_done) = (&document, &before, &is_done);
                scope.spawn(move || read_until(is_done, document, &before[start..]));
            }
            scope.spawn(|| {
                for number in 0..200 {
                    other.put(number.to_string(), &plain()).unwrap();
                }
            });
            purge(&document, "/people/1/secret", None).unwrap();
            is_done.store(true, Ordering::Relaxed);
        });
        assert_eq!(other.head_revision().unwrap(), Revision(200));
        assert_eq!(found(&device, &db, SECRET), Vec::<String>::new());
        assert_clean(&db);
    }
}

/// A device that keeps the files that are removed, and has no room for segments when it is full.
#[derive(Debug, Default)]
struct Keeping {
    device: MemoryDevice,
    removed: Mutex<Vec<(String, Arc<dyn File>)>>,
    is_full: AtomicBool,
}

impl Device for Keeping {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.device.create_dir(path)
    }

    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        let makes_segment = access == Access::Create && path.ends_with(".segment");
        if makes_segment && self.is_full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.device.open(path, access)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.device.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let file = self.device.open(path, Access::Read)?;
        self.removed.lock().push((path.to_owned(), file));
        self.device.remove(path)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.device.list(dir)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.device.sync_dir(dir)
    }

    fn lock(&self, path: &str, holder: &str) -> io::Result<Box<dyn Lock>> {
        self.device.lock(path, holder)
    }

    fn lock_holder(&self, path: &str) -> io::Result<String> {
        self.device.lock_holder(path)
    }
}

/// Merges that went on beside a purge, or while one was pending, removed the segments that they
/// merged as they were.
#[test]
fn what_is_merged_while_a_purge_is_pending_is_overwritten() {
    let device = Arc::new(Keeping::default());
    let options = Options { background: false, ..Options::default() };
    let db = Database::open_device(Arc::<Keeping>::clone(&device), options).unwrap();
    let document = write_history(&db, false);
    let other = db.create_document("other").unwrap();
    let target = pointer("/people/1/secret");
    let stopped =
        document.purge(&target, &PurgeOptions::default(), &mut |_, _| ControlFlow::Break(()));
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    let before = db.engine.compactions();
    for number in 0..20 {
        other.put(number.to_string(), &plain()).unwrap();
        db.checkpoint().unwrap();
    }
    assert!(db.engine.compactions() > before);
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(!document.purges().unwrap()[0].is_pending);
    assert_eq!(found(&device.device, &db, SECRET), Vec::<String>::new());
    let mut removed = 0;
    for (path, file) in device.removed.lock().iter().filter(|(path, _)| path.ends_with(".segment"))
    {
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
        assert!(!has(&bytes, SECRET), "{path}");
        removed += 1;
    }
    assert!(removed > 8, "{removed} segments");
}

/// Nothing once said that it had begun: who made no room on its account had the value still there,
/// and a document that nobody could write.
#[test]
fn a_purge_without_room_says_that_it_goes_on_and_cannot_be_undone() {
    let device = Arc::new(Keeping::default());
    let options = Options { background: false, ..Options::default() };
    let db = Database::open_device(Arc::<Keeping>::clone(&device), options).unwrap();
    let document = write_history(&db, false);
    db.checkpoint().unwrap();
    device.is_full.store(true, Ordering::Relaxed);
    let purged = purge(&document, "/people/1/secret", None).unwrap_err();
    let compacted = db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap_err();
    for refused in [purged, compacted] {
        assert_eq!(refused.kind(), ErrorKind::Full, "{refused}");
        let told = refused.message();
        assert!(told.contains("cannot be undone: it goes on with the next purge"), "{told}");
        assert_eq!(told.matches("make room").count(), 1, "{told}");
    }
    assert!(document.purges().unwrap()[0].is_pending);
    device.is_full.store(false, Ordering::Relaxed);
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(!document.purges().unwrap()[0].is_pending);
    assert_eq!(found(&device.device, &db, SECRET), Vec::<String>::new());
}
