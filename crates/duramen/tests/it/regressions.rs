//! Defects that were found and mended, each in the fewest steps that showed it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use duramen::io::{Device, MemoryDevice};
use duramen::{
    Collection, CommitOptions, Database, Document, DocumentOptions, ErrorKind, JsonPointer,
    KeyKind, Micros, Options, Position, Revision,
};

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

fn plain() -> CommitOptions {
    CommitOptions::default()
}

fn document(db: &Database, texts: &[&str]) -> Document {
    let document = db.create_document("d").unwrap();
    for text in texts {
        document.put(text, &plain()).unwrap();
    }
    document
}

/// The runs of a node, newest first: first and last revision, and the value.
fn runs(document: &Document, revision: u64, at: &str) -> Vec<(u64, u64, String)> {
    let snapshot = document.at(Revision(revision)).unwrap();
    let runs = snapshot.history(&pointer(at)).unwrap().map(Result::unwrap);
    runs.map(|run| (run.first.0, run.last.0, run.value.to_string())).collect()
}

fn object(names: std::ops::Range<usize>) -> String {
    let fields: Vec<String> = names.map(|name| format!("\"w{name}\":{name}")).collect();
    format!("{{{}}}", fields.join(","))
}

/// Reading on where an older value is an array or object once ended the history.
#[test]
fn history_goes_on_below_a_value_that_was_a_container() {
    let db = Database::memory().unwrap();
    let document = document(&db, &[r#"{"a":1}"#, "2"]);
    let mut history = document.head().unwrap().history(&pointer("")).unwrap();
    let mut found = Vec::new();
    history.page(1, &mut found).unwrap();
    assert_eq!(found.len(), 1);
    found.extend(history.map(Result::unwrap));
    assert_eq!(found[1].value.to_string(), r#"{"a":1}"#);
    assert_eq!(runs(&document, 2, "").len(), 2);
}

/// On disk a first state does not say when it began: the oldest run of a node that is now an
/// array or object was lost.
#[test]
fn history_ends_with_the_oldest_value_after_a_checkpoint() {
    let db = Database::memory().unwrap();
    let document = document(&db, &["[]", r#"[{"id":null}]"#]);
    db.checkpoint().unwrap();
    document.put(r#"[{"id":{"x":1}}]"#, &plain()).unwrap();
    let expected = [(3, 3, r#"{"x":1}"#.to_owned()), (2, 2, "null".to_owned())];
    assert_eq!(runs(&document, 3, "/0/id"), expected);
}

/// Gaps of several ancestors that overlap were taken one by one.
#[test]
fn history_leaves_out_every_gap_of_its_ancestors() {
    let db = Database::memory().unwrap();
    let full = r#"{"a":{"b":{"c":1},"x":0}}"#;
    let document = document(&db, &[full, r#"{"a":{"x":0}}"#, "{}", full]);
    let expected = [(4, 4, "1".to_owned()), (1, 1, "1".to_owned())];
    assert_eq!(runs(&document, 4, "/a/b/c"), expected);
}

/// What was below a removed object came back to life when a scalar took its place.
#[test]
fn a_removed_object_that_returns_as_a_scalar_has_no_members() {
    let db = Database::memory().unwrap();
    let document = document(&db, &[r#"{"a":{"x":1}}"#, "{}", r#"{"a":5}"#]);
    assert_eq!(runs(&document, 1, "/a/x"), [(1, 1, "1".to_owned())]);
}

/// The same for the entries of a map, which pointers then found.
#[test]
fn a_removed_map_that_returns_after_a_scalar_has_none_of_its_old_members() {
    let db = Database::memory().unwrap();
    let wide = format!(r#"{{"m":{}}}"#, object(0..300));
    let other = format!(r#"{{"m":{}}}"#, object(500..800));
    let document = document(&db, &[&wide, "{}", r#"{"m":5}"#, &other]);
    let head = document.head().unwrap();
    assert_eq!(head.node(&pointer("/m/w7")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(head.to_json().unwrap(), other);
}

/// A map had a member twice if it once had it as an entry and later as a field.
#[test]
fn a_name_that_was_an_entry_and_is_a_field_is_one_member() {
    let db = Database::memory().unwrap();
    let (wide, narrow) = (object(0..300), r#"{"w0":1}"#);
    let document = document(&db, &[&wide, "1", narrow]);
    for name in 1_000..1_300 {
        document.set(&pointer(&format!("/n{name}")), "0", &plain()).unwrap();
    }
    document.set(&pointer("/w0"), "2", &plain()).unwrap();
    let text = document.head().unwrap().to_json().unwrap();
    assert_eq!(text.matches("\"w0\":").count(), 1, "{text}");
    assert!(text.starts_with(r#"{"w0":2,"#), "{text}");
}

/// An entry made and removed in one commit was not known to be born after a replay, so that
/// pointers to what was set there later found nothing.
#[test]
fn an_entry_that_a_commit_made_and_removed_can_be_set_after_reopening() {
    set_an_entry_again(false);
    set_an_entry_again(true);
}

fn set_an_entry_again(checkpoint: bool) {
    let device = Arc::new(MemoryDevice::new());
    let options = || Options { background: false, ..Options::default() };
    let open = || Database::open_device(Arc::<MemoryDevice>::clone(&device), options()).unwrap();
    let db = open();
    drop(document(&db, &[&object(0..300)]));
    if checkpoint {
        db.checkpoint().unwrap();
    }
    let mut transaction = db.transaction();
    transaction.set("d", &pointer("/w0"), b"1").unwrap();
    transaction.set("d", &pointer("/new"), b"1").unwrap();
    transaction.remove("d", &pointer("/new")).unwrap();
    transaction.commit(&plain()).unwrap();
    if checkpoint {
        db.checkpoint().unwrap();
    }
    db.close().unwrap();
    let db = open();
    let document = db.document("d").unwrap();
    document.set(&pointer("/new"), "7", &plain()).unwrap();
    let mut out = Vec::new();
    let head = document.head().unwrap();
    head.append_json(&pointer("/new"), &duramen::Format::default(), &mut out).unwrap();
    assert_eq!(out, b"7");
}

/// An element erased and put back in one transaction counted as equal to null.
#[test]
fn elements_that_are_removed_and_put_as_null_are_there() {
    let db = Database::memory().unwrap();
    let document = document(&db, &[r#"{"a":[1,2]}"#]);
    let mut transaction = db.transaction();
    transaction.set("d", &pointer("/a/-"), b"3").unwrap();
    transaction.remove("d", &pointer("/a")).unwrap();
    transaction.set("d", &pointer("/a"), b"[null,null]").unwrap();
    transaction.commit(&plain()).unwrap();
    assert_eq!(document.head().unwrap().to_json().unwrap(), r#"{"a":[null,null]}"#);
    assert_eq!(runs(&document, 2, "/a/0")[0], (2, 2, "null".to_owned()));
}

/// A long text changed and changed back in one transaction made a revision.
#[test]
fn a_long_text_changed_and_changed_back_is_no_revision() {
    let db = Database::memory().unwrap();
    let long = format!("\"{}\"", "long ".repeat(2_000));
    let document = document(&db, &[&long]);
    let mut transaction = db.transaction();
    transaction.put("d", b"1").unwrap();
    transaction.put("d", long.as_bytes()).unwrap();
    assert!(transaction.commit(&plain()).unwrap().revisions.is_empty());
    assert_eq!(document.head_revision().unwrap(), Revision(1));
}

/// A given timestamp went into the catalogue too, whose times then fell.
#[test]
fn a_document_made_by_a_commit_of_the_past_leaves_the_catalogue_in_order() {
    let db = Database::memory().unwrap();
    db.create_document("first").unwrap();
    let mut transaction = db.transaction();
    transaction.put("second", b"1").unwrap();
    let past = CommitOptions { timestamp: Some(Micros(5)), ..plain() };
    transaction.commit(&past).unwrap();
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

/// An element that moves within its array could be given its own index as a name.
#[test]
fn no_element_that_moves_takes_its_index_as_a_name() {
    let db = Database::memory().unwrap();
    let document = document(&db, &["[1,2]"]);
    let last = Position::Last(pointer("").into());
    let moved = document.move_to(&pointer("/0"), &last, Some("0"), &plain());
    assert_eq!(moved.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(document.head().unwrap().to_json().unwrap(), "[1,2]");
}

/// What a commit set anew below a value and removed with it was counted as a change.
#[test]
fn what_is_set_and_removed_again_below_a_removed_value_is_no_revision() {
    let db = Database::memory().unwrap();
    let document = document(&db, &[r#"{"a":{"b":1}}"#, "{}"]);
    let mut transaction = db.transaction();
    transaction.set("d", &pointer("/a"), br#"{"b":5}"#).unwrap();
    transaction.remove("d", &pointer("/a")).unwrap();
    assert_eq!(transaction.commit(&plain()).unwrap().revisions, []);
    assert_eq!(document.head_revision().unwrap(), Revision(2));
    document.put(r#"{"a":{"c":2}}"#, &plain()).unwrap();
    assert_eq!(document.head().unwrap().to_json().unwrap(), r#"{"a":{"c":2}}"#);
    assert!(db.check().unwrap().is_clean());
}

/// The changes of a diff came in the order of the numbers that paths happened to have.
#[test]
fn changes_of_one_object_come_in_the_order_of_its_members() {
    let wide = (0..300).map(|n| format!(r#""k{n}":0"#)).collect::<Vec<_>>().join(",");
    for first in [r#"{"e":null,"b":[null]}"#, &format!("{{{wide}}}")] {
        let db = Database::memory().unwrap();
        let document = document(&db, &[first, "null", r#"{"b":[null],"e":null}"#]);
        document.put(r#"{"b":[true],"e":true}"#, &plain()).unwrap();
        let patch = document.diff(Revision(3), Revision(4)).unwrap().to_json_patch();
        let (b, e) = (patch.find("/b/0").unwrap(), patch.find("/e").unwrap());
        assert!(b < e, "{patch}");
    }
}

/// The order of an object that had gone with its parent was taken back where nobody saw it.
#[test]
fn an_order_cannot_be_undone_in_an_object_that_is_gone() {
    let db = Database::memory().unwrap();
    let texts = [r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2,"x":1}}"#, "[]"];
    let document = document(&db, &texts);
    let undone = document.undo(Revision(2), &plain());
    assert_eq!(undone.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(document.head_revision().unwrap(), Revision(3));
}

/// A field could not come back where an entry of a map of the same name had taken its place.
#[test]
fn a_field_comes_back_where_an_entry_of_its_name_goes() {
    let db = Database::memory().unwrap();
    let maps = ["$".parse().unwrap()].into();
    let options = DocumentOptions { maps, ..DocumentOptions::default() };
    let document = db.create_document_with("d", &options).unwrap();
    document.put(r#"{"m":1}"#, &plain()).unwrap();
    document.set_options(&DocumentOptions::default(), &plain()).unwrap();
    document.put("[]", &plain()).unwrap();
    document.put(r#"{"m":2,"n":3}"#, &plain()).unwrap();
    document.revert_to(Revision(1), &plain()).unwrap();
    assert_eq!(document.head().unwrap().to_json().unwrap(), r#"{"m":1}"#);
    document.undo(Revision(4), &plain()).unwrap();
    assert_eq!(document.head().unwrap().to_json().unwrap(), r#"{"m":2,"n":3}"#);
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn processes_that_each_leave_a_segment_do_not_pile_them_up() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    for number in 0..24 {
        // As if the thread of the database never came to merging.
        let options = Options { background: false, ..Options::default() };
        let db = Database::open_device(Arc::clone(&device), options).unwrap();
        let segments = db.stats().unwrap().segments;
        assert!(segments <= 12, "{segments} segments after {number} processes");
        let document = db.create_document(&format!("d{number}")).unwrap();
        let long = "x".repeat(duramen::limits::CLOSING_CHECKPOINT_JOURNAL_BYTES);
        document.put(format!("[\"{long}\"]"), &plain()).unwrap();
        drop(document);
        db.close().unwrap();
    }
}

/// Who pressed Ctrl-C once waited a second for the checkpoint of closing.
#[test]
fn closing_in_a_hurry_writes_no_checkpoint_and_keeps_every_commit() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let long = "x".repeat(duramen::limits::CLOSING_CHECKPOINT_JOURNAL_BYTES);
    let closed = |name: &str, is_hurried: bool| {
        let options = Options::default();
        let hurry = Arc::clone(&options.hurry);
        let db = Database::open_device(Arc::clone(&device), options).unwrap();
        let document = db.create_document(name).unwrap();
        document.put(format!("[\"{long}\"]"), &plain()).unwrap();
        drop(document);
        hurry.store(is_hurried, Ordering::Relaxed);
        db.close().unwrap();
        let options = Options { read_only: true, ..Options::default() };
        let db = Database::open_device(Arc::clone(&device), options).unwrap();
        let value = db.document(name).unwrap().head().unwrap().to_json().unwrap();
        assert_eq!(value.len(), long.len() + 4);
        let stats = db.stats().unwrap();
        (stats.segments, stats.epoch)
    };
    assert_eq!(closed("a", true), (0, 1));
    assert_eq!(closed("b", false), (1, 1));
}

/// Each event of a record, oldest first: its revision, and the version it saved if it did.
fn events(records: &Collection, key: &str) -> Vec<(u64, Option<u64>)> {
    let history = records.history(key).unwrap().map(Result::unwrap);
    let told = history.map(|event| (event.revision.0, event.record.map(|record| record.version)));
    let mut events: Vec<_> = told.collect();
    events.reverse();
    events
}

/// What a commit saved before it deleted the collection was told as there, and a record that it
/// deleted before as deleted twice.
#[test]
fn what_a_commit_did_to_records_of_a_collection_that_it_deleted_is_in_no_history() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("c", KeyKind::Text).unwrap();
    // More of them than are looked up at once.
    let (mut saved, mut deleted) = (Vec::new(), Vec::new());
    for round in 0..40 {
        records.put_many([("a", "{}"), ("b", "{}")], &plain()).unwrap();
        let mut transaction = db.transaction();
        transaction.put_record("c", &"a".into(), format!("[{round}]").as_bytes()).unwrap_err();
        let changed = format!(r#"{{"n":{round}}}"#);
        transaction.put_record("c", &"a".into(), changed.as_bytes()).unwrap();
        transaction.delete_records("c", &["b".into()]).unwrap();
        transaction.put_record("c", &format!("new {round}").into(), b"{}").unwrap();
        transaction.delete_document("c").unwrap();
        transaction.commit(&plain()).unwrap();
        saved.push(2 * round + 1);
        deleted.push(2 * round + 2);
        if round == 20 {
            db.checkpoint().unwrap();
        }
    }
    records.put_many([("a", "{}"), ("b", "{}")], &plain()).unwrap();
    saved.push(81);
    for key in ["a", "b"] {
        let events = events(&records, key);
        let of = |is_saved: bool| {
            let of = events.iter().filter(move |(_, version)| version.is_some() == is_saved);
            of.map(|&(revision, _)| revision).collect::<Vec<u64>>()
        };
        assert_eq!(of(true), saved, "{key}");
        assert_eq!(of(false), deleted, "{key}");
        assert!(events.is_sorted_by_key(|&(revision, _)| revision), "{key}");
    }
    assert_eq!(records.history("new 1").unwrap_err().kind(), ErrorKind::NotFound);
    assert!(db.check().unwrap().is_clean());
}
