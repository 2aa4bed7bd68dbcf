//! Documents that are deleted, put again and renamed.

use std::collections::BTreeMap;
use std::sync::Arc;

use duramen::io::MemoryDevice;
use duramen::{
    ChangeKind, CommitOptions, Database, Document, ErrorKind, JsonPointer, LogQuery, Options,
    Revision,
};
use proptest::prelude::*;

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

fn plain() -> CommitOptions {
    CommitOptions::default()
}

fn options() -> Options {
    Options { background: false, ..Options::default() }
}

/// A document with the values 1 to 3 of `/n`, deleted in revision 4.
fn deleted(db: &Database) -> Document {
    let document = db.create_document("d").unwrap();
    for n in 1..=3 {
        document.put(format!(r#"{{"n":{n},"l":[1,2]}}"#), &plain()).unwrap();
    }
    let by = CommitOptions { author: Some("ann".into()), ..plain() };
    assert_eq!(db.delete_document("d", &by).unwrap().revision(), Revision(4));
    document
}

fn assert_not_found<T: std::fmt::Debug>(result: duramen::Result<T>, said: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.message().contains(said), "{error}");
}

#[test]
fn a_deleted_document_is_not_there_and_its_past_is() {
    let db = Database::memory().unwrap();
    let document = deleted(&db);
    assert_eq!(document.head_revision().unwrap(), Revision(4));
    assert!(document.is_deleted().unwrap());
    assert_not_found(document.head(), "was deleted in revision 4: read an earlier one (--at 3");
    assert_not_found(document.at(Revision(4)), "was deleted in revision 4");
    assert_not_found(document.at(Revision(5)), "has revisions 1 to 4");
    let times = document.timestamps().unwrap();
    assert_eq!(times.len(), 4);
    assert_not_found(document.at_time(times[3]), "was deleted in revision 4");
    assert_eq!(document.at_time(times[2]).unwrap().revision(), Revision(3));
    let last = document.at(Revision(3)).unwrap();
    assert_eq!(last.to_json().unwrap(), r#"{"n":3,"l":[1,2]}"#);
    for place in ["", "/n", "/l"] {
        let mut history = last.history(&pointer(place)).unwrap();
        assert_eq!(history.next().unwrap().unwrap().last, Revision(3), "{place}");
    }
    let stats = document.stats().unwrap();
    assert_eq!((stats.revisions, stats.nodes, stats.json_bytes), (4, 0, 0));
    let log: Vec<_> = document.log(&LogQuery::default()).unwrap().map(Result::unwrap).collect();
    let flags: Vec<bool> = log.iter().map(|entry| entry.deleted).collect();
    assert_eq!(flags, [true, false, false, false]);
    assert_eq!(log[0].author.as_deref(), Some("ann"));
}

#[test]
fn a_deletion_is_a_difference_of_the_whole_value() {
    let db = Database::memory().unwrap();
    let document = deleted(&db);
    document.put("[7]", &plain()).unwrap();
    let diff = |a, b| document.diff(Revision(a), Revision(b)).unwrap();
    let removed = diff(3, 4);
    assert_eq!(removed.to_json_patch(), r#"[{"op":"remove","path":""}]"#);
    assert_eq!(removed.changes[0].kind, ChangeKind::Removed);
    assert_eq!(removed.changes[0].before.as_deref(), Some(r#"{"n":3,"l":[1,2]}"#));
    assert_eq!(diff(4, 5).to_json_patch(), r#"[{"op":"add","path":"","value":[7]}]"#);
    assert_eq!(diff(4, 1).changes[0].kind, ChangeKind::Added);
    assert_eq!(diff(3, 5).changes[0].kind, ChangeKind::Replaced);
    assert!(diff(4, 4).changes.is_empty());
}

#[test]
fn documents_are_listed_apart_once_deleted() {
    let db = Database::memory().unwrap();
    let document = deleted(&db);
    db.create_document("other").unwrap();
    assert_eq!(db.documents().unwrap(), ["other"]);
    assert_eq!(db.stats().unwrap().documents, 1);
    let gone = db.deleted_documents().unwrap();
    assert_eq!((gone.len(), gone[0].name.as_str()), (1, "d"));
    assert_eq!((gone[0].revision, gone[0].author.as_deref()), (Revision(4), Some("ann")));
    assert_eq!(gone[0].timestamp, document.timestamps().unwrap()[3]);
    document.put("1", &plain()).unwrap();
    assert_eq!(db.documents().unwrap(), ["d", "other"]);
    assert!(db.deleted_documents().unwrap().is_empty());
}

#[test]
fn put_goes_on_counting_and_keeps_the_nodes() {
    let db = Database::memory().unwrap();
    let document = deleted(&db);
    let n = document.at(Revision(3)).unwrap().node(&pointer("/n")).unwrap().id;
    document.put(r#"{"n":3,"l":[1,2]}"#, &plain()).unwrap();
    let head = document.head().unwrap();
    assert_eq!(head.revision(), Revision(5));
    assert_eq!(head.node(&pointer("/n")).unwrap().id, n);
    let runs: Vec<_> = head
        .history(&pointer("/n"))
        .unwrap()
        .map(|run| run.map(|run| (run.first.0, run.last.0)).unwrap())
        .collect();
    assert_eq!(runs, [(5, 5), (3, 3), (2, 2), (1, 1)]);
    db.delete_document("d", &plain()).unwrap();
    document.put(r#""text""#, &plain()).unwrap();
    assert_eq!(document.head().unwrap().to_json().unwrap(), r#""text""#);
    assert_eq!(document.at(Revision(5)).unwrap().to_json().unwrap(), r#"{"n":3,"l":[1,2]}"#);
    assert_not_found(document.at(Revision(6)), "was deleted in revision 6");
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

#[test]
fn only_put_changes_a_deleted_document() {
    let db = Database::memory().unwrap();
    let document = deleted(&db);
    let said = "was deleted in revision 4: put a value";
    assert_not_found(document.set(&pointer("/n"), "1", &plain()), said);
    assert_not_found(document.set(&pointer(""), "1", &plain()), said);
    assert_not_found(document.remove(&pointer("/n"), &plain()), said);
    assert_not_found(db.transaction().get("d", &pointer("/n")), said);
    assert_not_found(db.delete_document("d", &plain()), said);
    assert_not_found(db.delete_document("none", &plain()), "there is no document");
    let error = db.create_document("d").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("was deleted in revision 4"), "{error}");
    db.create_document("empty").unwrap();
    assert_not_found(db.delete_document("empty", &plain()), "has no revision yet");
    assert_eq!(db.stats().unwrap().sequence.0, 6, "none of it is a commit");
}

#[test]
fn a_deletion_can_depend_on_a_revision_and_have_a_time() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let at = |time| CommitOptions { timestamp: Some(duramen::Micros(time)), ..plain() };
    document.put("1", &at(1000)).unwrap();
    let stale = CommitOptions { expect_revision: Some(Revision(2)), ..plain() };
    assert_eq!(db.delete_document("d", &stale).unwrap_err().kind(), ErrorKind::Conflict);
    let fresh = CommitOptions { expect_revision: Some(Revision(1)), ..at(2000) };
    db.delete_document("d", &fresh).unwrap();
    assert_eq!(document.at_time(duramen::Micros(1999)).unwrap().to_json().unwrap(), "1");
    assert_not_found(document.at_time(duramen::Micros(2000)), "was deleted");
    let again = CommitOptions { expect_revision: Some(Revision(2)), ..plain() };
    assert_eq!(document.put("2", &again).unwrap().revision(), Revision(3));
}

#[test]
fn what_one_transaction_deletes_and_puts_back_was_never_deleted() {
    let db = Database::memory().unwrap();
    let document = deleted(&db);
    let mut transaction = db.transaction();
    transaction.put("d", b"1").unwrap();
    assert_eq!(transaction.get("d", &pointer("")).unwrap(), "1");
    transaction.delete_document("d").unwrap();
    assert!(transaction.get("d", &pointer("")).is_err());
    let none = transaction.commit(&plain()).unwrap();
    assert_eq!((none.sequence.0, none.revisions.len()), (0, 0));
    assert_not_found(document.head(), "was deleted in revision 4");
    document.put("[1]", &plain()).unwrap();
    let mut transaction = db.transaction();
    transaction.delete_document("d").unwrap();
    transaction.put("d", b"[1]").unwrap();
    transaction.commit(&plain()).unwrap();
    assert_eq!(document.head().unwrap().revision(), Revision(5));
    let mut transaction = db.transaction();
    transaction.delete_document("d").unwrap();
    transaction.rollback();
    assert_eq!(document.head().unwrap().to_json().unwrap(), "[1]");
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

#[test]
fn deletions_outlive_checkpoints_and_reopening() {
    let device = Arc::new(MemoryDevice::new());
    let db = Database::open_device(device.clone(), options()).unwrap();
    let before = {
        deleted(&db);
        db.snapshot()
    };
    for round in 0..3 {
        let reader = Options { read_only: true, ..options() };
        let reader = Database::open_device(device.clone(), reader).unwrap();
        for db in [&db, &reader] {
            let document = db.document("d").unwrap();
            assert_not_found(document.head(), "was deleted in revision 4");
            assert_eq!(
                document.at(Revision(1)).unwrap().to_json().unwrap(),
                r#"{"n":1,"l":[1,2]}"#
            );
            assert_eq!(db.deleted_documents().unwrap()[0].revision, Revision(4));
            let mut log = document.log(&LogQuery::default()).unwrap();
            assert!(log.next().unwrap().unwrap().deleted);
            assert!(!log.next().unwrap().unwrap().deleted);
            let patch = document.diff(Revision(1), Revision(4)).unwrap().to_json_patch();
            assert_eq!(patch, r#"[{"op":"remove","path":""}]"#);
            assert_not_found(db.snapshot().document("d"), "was deleted in revision 4");
        }
        let document = db.document("d").unwrap();
        assert_not_found(document.set(&pointer("/n"), "9", &plain()), "was deleted");
        if round == 0 {
            db.checkpoint().unwrap();
        }
    }
    drop(before);
    db.close().unwrap();
    let db = Database::open_device(device, options()).unwrap();
    let document = db.document("d").unwrap();
    assert_not_found(document.head(), "was deleted in revision 4");
    document.put(r#"{"n":5}"#, &plain()).unwrap();
    assert_eq!(document.head().unwrap().revision(), Revision(5));
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

#[test]
fn a_renamed_document_keeps_its_past_and_frees_its_name() {
    let db = Database::memory().unwrap();
    let a = db.create_document("a").unwrap();
    a.put("1", &plain()).unwrap();
    let before = db.snapshot();
    let renamed = db.rename_document("a", "b", &plain()).unwrap();
    assert!(renamed.sequence > before.sequence() && renamed.revisions.is_empty());
    assert_eq!(db.documents().unwrap(), ["b"]);
    assert_not_found(db.document("a"), "it was renamed to \"b\"");
    assert_not_found(db.rename_document("a", "c", &plain()), "it was renamed to \"b\"");
    assert_eq!(before.document("a").unwrap().to_json().unwrap(), "1");
    assert_eq!(before.documents().unwrap(), ["a"]);
    assert_not_found(before.document("b"), "there is no document \"b\"");
    // A handle stays with the document.
    a.put("2", &plain()).unwrap();
    assert_eq!(db.document("b").unwrap().at(Revision(2)).unwrap().to_json().unwrap(), "2");
    let new = db.create_document("a").unwrap();
    new.put("[]", &plain()).unwrap();
    assert_eq!(new.head().unwrap().revision(), Revision(1));
    assert_eq!(db.document("b").unwrap().head().unwrap().to_json().unwrap(), "2");
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

#[test]
fn renaming_onto_a_name_in_use_or_with_a_past_is_a_conflict() {
    let db = Database::memory().unwrap();
    deleted(&db);
    for name in ["a", "b"] {
        db.create_document(name).unwrap().put("1", &plain()).unwrap();
    }
    for to in ["b", "d", "a"] {
        let error = db.rename_document("a", to, &plain()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
    assert_eq!(db.rename_document("a", "", &plain()).unwrap_err().kind(), ErrorKind::Invalid);
    assert_not_found(db.rename_document("none", "x", &plain()), "there is no document");
    // A deleted document can give its name away.
    db.rename_document("d", "old", &plain()).unwrap();
    assert_eq!(db.deleted_documents().unwrap()[0].name, "old");
    db.rename_document("a", "d", &plain()).unwrap();
    assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), "1");
    db.document("old").unwrap().put("5", &plain()).unwrap();
    assert_eq!(db.documents().unwrap(), ["b", "d", "old"]);
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

#[test]
fn a_handle_puts_again_what_was_deleted_under_another_name() {
    let db = Database::memory().unwrap();
    let handle = db.create_document("a").unwrap();
    handle.put("1", &plain()).unwrap();
    db.rename_document("a", "b", &plain()).unwrap();
    db.delete_document("b", &plain()).unwrap();
    db.create_document("a").unwrap().put("[]", &plain()).unwrap();
    assert_eq!(handle.put("2", &plain()).unwrap().revision(), Revision(3));
    assert_eq!(db.documents().unwrap(), ["a", "b"]);
    assert_eq!(db.document("b").unwrap().head().unwrap().to_json().unwrap(), "2");
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

#[test]
fn one_transaction_can_exchange_two_names() {
    let db = Database::memory().unwrap();
    for name in ["a", "b"] {
        db.create_document(name).unwrap().put(format!("\"{name}\""), &plain()).unwrap();
    }
    let mut exchange = db.transaction();
    exchange.rename_document("a", "c").unwrap();
    exchange.rename_document("b", "a").unwrap();
    exchange.rename_document("c", "b").unwrap();
    exchange.put("a", br#""now a""#).unwrap();
    let committed = exchange.commit(&plain()).unwrap();
    assert_eq!(committed.revisions, [("a".to_owned(), Revision(2))]);
    let text = |name| db.document(name).unwrap().head().unwrap().to_json().unwrap();
    assert_eq!((text("a"), text("b")), (r#""now a""#.into(), r#""a""#.into()));
    assert_eq!(db.documents().unwrap(), ["a", "b"]);
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

/// Deleting takes the catalogue's turn before the document's; so does a put that may have to
/// revive. Neither ever finds the other one waiting.
#[test]
fn deleting_and_putting_from_many_threads_counts_every_revision() {
    let db = Database::memory().unwrap();
    db.create_document("d").unwrap().put("0", &plain()).unwrap();
    let commit = |thread: u64, round: u64| {
        let outcome = if (round + thread).is_multiple_of(2) {
            db.delete_document("d", &plain())
        } else {
            db.document("d").unwrap().put((thread * 1000 + round).to_string(), &plain())
        };
        match outcome {
            Ok(outcome) => u64::from(outcome.is_committed()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                0
            }
        }
    };
    let made: u64 = std::thread::scope(|scope| {
        let work = |thread| move || (0..100).map(|round| commit(thread, round)).sum::<u64>();
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(db.document("d").unwrap().head_revision().unwrap(), Revision(made + 1));
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

/// A put finds a name, or makes it, before or after it is renamed; it is never lost.
#[test]
fn renaming_and_putting_from_many_threads_loses_no_revision() {
    let db = Database::memory().unwrap();
    db.create_document("a").unwrap();
    let work = |thread: u64, round: u64| {
        let done = match thread {
            0 => db.rename_document("a", "b", &plain()).map(|_| 0),
            1 => db.rename_document("b", "a", &plain()).map(|_| 0),
            _ => {
                let mut put = db.transaction();
                let value = (thread * 1000 + round).to_string();
                let staged = put.put(["a", "b"][usize::from(thread == 3)], value.as_bytes());
                staged.and_then(|()| put.commit(&plain())).map(|done| done.revisions.len() as u64)
            }
        };
        done.unwrap_or_else(|error| {
            let is_order = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict);
            assert!(is_order && thread < 2, "{error}");
            0
        })
    };
    let made: u64 = std::thread::scope(|scope| {
        let each = |thread| move || (0..200).map(|round| work(thread, round)).sum::<u64>();
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(each(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let heads = ["a", "b"].map(|name| match db.document(name) {
        Ok(document) => document.head_revision().unwrap().0,
        Err(_) => 0,
    });
    assert_eq!(heads.iter().sum::<u64>(), made);
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

/// What is done to names.
#[derive(Debug, Clone)]
enum Step {
    Create(usize),
    Put(usize, u8),
    Set(usize, u8),
    Delete(usize),
    Rename(usize, usize),
    Tag(usize, usize),
    Checkpoint,
    Reopen,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    prop_oneof![
        2 => name().prop_map(Step::Create),
        4 => (name(), 0..3u8).prop_map(|(name, value)| Step::Put(name, value)),
        1 => (name(), 0..3u8).prop_map(|(name, value)| Step::Set(name, value)),
        3 => name().prop_map(Step::Delete),
        5 => (name(), name()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => (name(), name()).prop_map(|(name, tag)| Step::Tag(name, tag)),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Reopen),
    ]
}

/// A document as a list of values, none where it was deleted.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    values: Vec<Option<String>>,
    tags: BTreeMap<&'static str, usize>,
}

impl Model {
    fn is_deleted(&self) -> bool {
        self.values.last() == Some(&None)
    }
}

type Names = BTreeMap<&'static str, Model>;

/// Does a step in the model; whether it may succeed.
fn model(names: &mut Names, step: &Step) -> bool {
    match *step {
        Step::Create(name) => {
            let is_free = !names.contains_key(NAMES[name]);
            names.entry(NAMES[name]).or_default();
            is_free
        }
        Step::Put(name, value) => {
            let values = &mut names.entry(NAMES[name]).or_default().values;
            let value = Some(format!("{{\"v\":{value}}}"));
            if values.last() != Some(&value) {
                values.push(value);
            }
            true
        }
        Step::Set(name, value) => {
            let Some(found) = names.get_mut(NAMES[name]) else { return false };
            let is_there = !found.values.is_empty() && !found.is_deleted();
            let value = Some(format!("{{\"v\":{value}}}"));
            if is_there && found.values.last() != Some(&value) {
                found.values.push(value);
            }
            is_there
        }
        Step::Delete(name) => {
            let Some(found) = names.get_mut(NAMES[name]) else { return false };
            let is_there = !found.values.is_empty() && !found.is_deleted();
            if is_there {
                found.values.push(None);
            }
            is_there
        }
        Step::Rename(from, to) => {
            let may = names.contains_key(NAMES[from]) && !names.contains_key(NAMES[to]);
            if may && let Some(moved) = names.remove(NAMES[from]) {
                names.insert(NAMES[to], moved);
            }
            may
        }
        Step::Tag(name, tag) => {
            let Some(found) = names.get_mut(NAMES[name]) else { return false };
            let (head, is_deleted) = (found.values.len(), found.is_deleted());
            let may =
                head > 0 && !is_deleted && found.tags.get(NAMES[tag]).is_none_or(|&at| at == head);
            if may {
                found.tags.insert(NAMES[tag], head);
            }
            may
        }
        Step::Checkpoint | Step::Reopen => true,
    }
}

fn engine(db: &Database, step: &Step) -> duramen::Result<()> {
    match *step {
        Step::Create(name) => db.create_document(NAMES[name]).map(drop),
        Step::Put(name, value) => {
            let mut transaction = db.transaction();
            transaction.put(NAMES[name], format!("{{\"v\":{value}}}").as_bytes())?;
            transaction.commit(&plain()).map(drop)
        }
        Step::Set(name, value) => {
            let document = db.document(NAMES[name])?;
            document.set(&pointer("/v"), value.to_string(), &plain()).map(drop)
        }
        Step::Delete(name) => db.delete_document(NAMES[name], &plain()).map(drop),
        Step::Rename(from, to) => db.rename_document(NAMES[from], NAMES[to], &plain()).map(drop),
        Step::Tag(name, tag) => db.document(NAMES[name])?.tag(NAMES[tag], None, &plain()).map(drop),
        Step::Checkpoint => db.checkpoint(),
        Step::Reopen => Ok(()),
    }
}

/// Everything that can be read of the documents, by name.
fn read(db: &Database) -> Names {
    let mut found = Names::new();
    for name in NAMES {
        let Ok(document) = db.document(name) else { continue };
        let head = document.head_revision().unwrap().0;
        let text = |revision| document.at(Revision(revision)).map(|at| at.to_json().unwrap()).ok();
        let values: Vec<Option<String>> = (1..=head).map(text).collect();
        let tags = document.tags().unwrap().into_iter().map(|tag| {
            let known = NAMES.into_iter().find(|name| *name == tag.name);
            (known.unwrap(), usize::try_from(tag.revision.0).unwrap())
        });
        found.insert(name, Model { values, tags: tags.collect() });
    }
    found
}

fn snapshot_agrees(snapshot: &duramen::DatabaseSnapshot, names: &Names) {
    for name in NAMES {
        let expected = names.get(name).and_then(|found| found.values.last().cloned().flatten());
        let found = snapshot.document(name).map(|at| at.to_json().unwrap()).ok();
        assert_eq!(found, expected, "{name} as of commit {:?}", snapshot.sequence());
    }
    let live = names.iter().filter(|(_, found)| !found.is_deleted()).map(|(name, _)| *name);
    assert_eq!(snapshot.documents().unwrap(), live.collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Chains and cycles of renames, deletions and tags, against a map from names to lists.
    #[test]
    fn names_lead_where_a_naive_model_says(steps in prop::collection::vec(step(), 1..40)) {
        let device = Arc::new(MemoryDevice::new());
        let mut db = Database::open_device(device.clone(), options()).unwrap();
        let mut names = Names::new();
        let mut snapshots = Vec::new();
        for step in &steps {
            if matches!(step, Step::Reopen) {
                snapshots.clear();
                db.close().unwrap();
                db = Database::open_device(device.clone(), options()).unwrap();
            }
            let may = model(&mut names, step);
            let done = engine(&db, step);
            prop_assert_eq!(done.is_ok(), may, "{:?}: {:?}", step, done);
            prop_assert_eq!(&read(&db), &names, "after {:?}", step);
            snapshots.push((db.snapshot(), names.clone()));
        }
        for (snapshot, names) in &snapshots {
            snapshot_agrees(snapshot, names);
        }
        let report = db.check().unwrap();
        prop_assert!(report.is_clean(), "{:?}", report.findings);
    }
}
