//! What happens at the limits that `docs/limits.md` lists, as far as a test can go there.

use std::fmt::Write as _;

use duramen::limits::{
    COMMIT_TEXT_BYTES_MAX, INLINE_BYTES_MAX, JSON_DEPTH_MAX, NAME_BYTES_MAX, OBJECT_FIELDS_MAX,
    PATHS_MAX,
};
use duramen::{CommitOptions, Database, Document, ErrorKind, JsonPointer, KeyKind, Revision};

fn plain() -> CommitOptions {
    CommitOptions::default()
}

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

fn document() -> Document {
    Database::memory().unwrap().create_document("d").unwrap()
}

fn head(document: &Document) -> String {
    document.head().unwrap().to_json().unwrap()
}

/// An object with fields `f0`, `f1` ..., all of this value.
fn object(fields: usize, value: &str) -> String {
    let mut text = String::from("{");
    for field in 0..fields {
        let comma = if field > 0 { "," } else { "" };
        write!(text, r#"{comma}"f{field}":{value}"#).unwrap();
    }
    text + "}"
}

#[test]
fn document_names_have_1_to_255_bytes_without_control_characters() {
    let db = Database::memory().unwrap();
    let longest = "\u{e9}".repeat(NAME_BYTES_MAX / 2) + "x";
    assert_eq!(longest.len(), NAME_BYTES_MAX);
    assert_eq!(db.create_document(&longest).unwrap().name(), longest);
    for name in ["", &(longest + "x"), "a\nb", "\u{7f}"] {
        let error = db.create_document(name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name:?}");
        let error = db.transaction().put(name, b"1").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name:?}");
    }
}

#[test]
fn json_is_read_down_to_its_greatest_depth() {
    let document = document();
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    document.put(nested(JSON_DEPTH_MAX), &plain()).unwrap();
    assert_eq!(head(&document), nested(JSON_DEPTH_MAX));
    let error = document.put(nested(JSON_DEPTH_MAX + 1), &plain()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

/// A record as deep as a document once made a collection that could neither be dumped nor repaired.
#[test]
fn a_record_is_a_level_less_deep_than_a_document() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("records", KeyKind::Text).unwrap();
    let record =
        |levels: usize| format!("{{\"v\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
    records.put("a", record(JSON_DEPTH_MAX - 1), &plain()).unwrap();
    let error = records.put("b", record(JSON_DEPTH_MAX), &plain()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("record b"), "{error}");
    let json = records.document().head().unwrap().to_json().unwrap();
    db.create_document("copy").unwrap().put(json, &plain()).unwrap();
}

/// Setting a deep value at a deep place once made documents that could not be put again.
#[test]
fn document_cannot_be_made_deeper_than_json_by_setting_values_in_it() {
    let document = document();
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    document.put(nested(JSON_DEPTH_MAX - 1), &plain()).unwrap();
    let deepest = pointer(&("/0".repeat(JSON_DEPTH_MAX - 2) + "/-"));
    document.set(&deepest, "[]", &plain()).unwrap();
    assert_eq!(head(&document), nested(JSON_DEPTH_MAX));
    for value in ["[[]]", r#"[1,{"a":{}},2]"#] {
        let error = document.set(&deepest, value, &plain()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{value}");
    }
    document.set(&deepest, r#"[1,"x",2]"#, &plain()).unwrap();
}

#[test]
fn author_and_message_are_short_texts() {
    let document = document();
    let longest = "x".repeat(COMMIT_TEXT_BYTES_MAX);
    let fine =
        CommitOptions { author: Some(longest.clone()), message: Some(longest.clone()), ..plain() };
    document.put("1", &fine).unwrap();
    for options in [
        CommitOptions { author: Some(longest.clone() + "x"), ..plain() },
        CommitOptions { message: Some(longest.clone() + "x"), ..plain() },
    ] {
        let error = document.put("2", &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    assert_eq!(head(&document), "1");
}

#[test]
fn long_values_stand_apart_and_read_the_same() {
    let document = document();
    for len in [INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 1 << 20] {
        for text in [format!("\"{}\"", "x".repeat(len)), "1".repeat(len)] {
            document.put(&text, &plain()).unwrap();
            assert_eq!(head(&document), text);
        }
    }
}

#[test]
fn object_with_more_fields_than_a_shape_takes_is_a_map() {
    let document = document();
    document.put(object(OBJECT_FIELDS_MAX, "0"), &plain()).unwrap();
    assert_eq!(document.stats().unwrap().paths, OBJECT_FIELDS_MAX as u64 + 1);
    // A further name becomes an entry: one more path, whatever the number of such names.
    document.set(&pointer("/more"), "1", &plain()).unwrap();
    document.set(&pointer("/most"), "2", &plain()).unwrap();
    assert_eq!(document.stats().unwrap().paths, OBJECT_FIELDS_MAX as u64 + 2);
    assert!(head(&document).ends_with(r#""f255":0,"more":1,"most":2}"#));
    let large = object(OBJECT_FIELDS_MAX + 1, "[]");
    let other = self::document();
    other.put(&large, &plain()).unwrap();
    assert_eq!(head(&other), large);
    assert!(other.stats().unwrap().paths <= 3);
}

#[test]
fn what_finds_no_path_left_is_stored_whole() {
    let document = document();
    let large = object(OBJECT_FIELDS_MAX, &object(OBJECT_FIELDS_MAX, "0"));
    document.put(&large, &plain()).unwrap();
    assert_eq!(head(&document), large);
    let stats = document.stats().unwrap();
    assert_eq!(stats.paths, u64::from(PATHS_MAX));
    assert!(stats.opaque_nodes > 0);
    // Pointers lead into it, and it can be changed; ids and history end at its root.
    let inside = pointer("/f255/f255");
    document.set(&inside, "1", &plain()).unwrap();
    let head = document.head().unwrap();
    let mut text = Vec::new();
    head.append_json(&inside, &duramen::Format::default(), &mut text).unwrap();
    assert_eq!(text, b"1");
    assert_eq!(head.history(&inside).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(head.node(&inside).unwrap_err().kind(), ErrorKind::Unsupported);
    // An object that cannot get another member is stored whole from then on.
    document.set(&pointer("/f0/new"), "1", &plain()).unwrap();
    assert_eq!(document.stats().unwrap().opaque_nodes, stats.opaque_nodes + 1);
    assert!(self::head(&document).contains(r#""f255":0,"new":1},"f1":"#));
    assert_eq!(document.at(Revision(1)).unwrap().to_json().unwrap(), large);
}

#[test]
fn transactions_that_could_wait_for_each_other_are_busy_at_once() {
    let db = Database::memory().unwrap();
    for name in ["a", "b"] {
        db.create_document(name).unwrap().put("0", &plain()).unwrap();
    }
    let (mut first, mut second) = (db.transaction(), db.transaction());
    first.put("a", b"1").unwrap();
    second.put("b", b"2").unwrap();
    assert_eq!(second.put("a", b"2").unwrap_err().kind(), ErrorKind::Busy);
    drop(second);
    first.put("b", b"1").unwrap();
    assert_eq!(first.commit(&plain()).unwrap().revisions.len(), 2);
}
