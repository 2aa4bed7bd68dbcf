//! JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7396) against the examples of others.

use duramen::{CommitOptions, Database, Document, ErrorKind, Filter, KeyKind, Revision};
use serde_json::Value;

fn plain() -> CommitOptions {
    CommitOptions::default()
}

fn document(json: &str) -> Document {
    let document = Database::memory().unwrap().create_document("d").unwrap();
    document.put(json, &plain()).unwrap();
    document
}

fn value(document: &Document) -> Value {
    serde_json::from_str(&document.head().unwrap().to_json().unwrap()).unwrap()
}

/// Runs the cases of a suite; how many there were.
fn run(suite: &str) -> usize {
    let cases: Vec<Value> = serde_json::from_str(suite).unwrap();
    let enabled = cases.iter().filter(|case| case["patch"].is_array());
    let enabled = enabled.filter(|case| case["disabled"] != Value::Bool(true));
    let mut run = 0;
    for case in enabled {
        let before = document(&case["doc"].to_string());
        let outcome = before.patch(case["patch"].to_string(), &plain());
        run += 1;
        if let Some(error) = case.get("error") {
            assert!(outcome.is_err(), "{error}: {case}");
            assert_eq!(before.head_revision().unwrap(), Revision(1), "{case}");
            assert_eq!(value(&before), case["doc"], "{case}");
            continue;
        }
        outcome.unwrap_or_else(|error| panic!("{error}: {case}"));
        assert_eq!(value(&before), *case.get("expected").unwrap_or(&case["doc"]), "{case}");
    }
    run
}

#[test]
fn every_case_of_the_json_patch_suites_passes() {
    assert_eq!(run(include_str!("../fixtures/json-patch/spec_tests.json")), 16);
    assert_eq!(run(include_str!("../fixtures/json-patch/tests.json")), 92);
}

#[test]
fn every_example_of_the_merge_patch_rfc_passes() {
    let examples = [
        (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
        (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
        (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
        (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
        (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
        (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
        (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
        (r#"{"a":"foo"}"#, "null", "null"),
        (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
        (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
        ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
        ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        // Nulls inside of arrays are values.
        ("{}", r#"{"a":[null,{"b":null}]}"#, r#"{"a":[null,{"b":null}]}"#),
    ];
    for (before, patch, after) in examples {
        let document = document(before);
        document.merge_patch(patch, &plain()).unwrap();
        assert_eq!(document.head().unwrap().to_json().unwrap(), after, "{before} {patch}");
    }
}

#[test]
fn a_merge_patch_gives_a_document_without_revisions_its_first_value() {
    let document = Database::memory().unwrap().create_document("d").unwrap();
    document.merge_patch(r#"{"a":{"b":null,"c":1}}"#, &plain()).unwrap();
    assert_eq!(document.head().unwrap().to_json().unwrap(), r#"{"a":{"c":1}}"#);
}

#[test]
fn a_patch_that_fails_names_the_operation_and_the_reason() {
    let cases = [
        ("1", ErrorKind::Invalid, "a JSON Patch is an array of operations"),
        ("[1]", ErrorKind::Invalid, "operation 1 of 1: an operation is an object"),
        (r#"[{"path":"/a"}]"#, ErrorKind::Invalid, "operation 1 of 1: its member \"op\""),
        (
            r#"[{"op":"remove","path":"/a"},{"op":"remov","path":"/a"}]"#,
            ErrorKind::Invalid,
            "operation 2 of 2: there is no operation \"remov\"; did you mean \"remove\"?",
        ),
        (
            r#"[{"op":"spam","path":"/a"}]"#,
            ErrorKind::Invalid,
            "there is no operation \"spam\": use add, remove, replace, move, copy, test",
        ),
        (r#"[{"op":"add","path":"/a"}]"#, ErrorKind::Invalid, "its member \"value\" is missing"),
        (r#"[{"op":"add","path":"a","value":1}]"#, ErrorKind::Invalid, "\"path\": \"a\" is not a"),
        (r#"[{"op":"test","op":"test","path":"/a","value":1}]"#, ErrorKind::Invalid, "\"op\""),
        (
            r#"[{"op":"add","path":"/x","value":1},{"op":"test","path":"/a","value":"no"}]"#,
            ErrorKind::Conflict,
            "operation 2 of 2 (test \"/a\"): the value is {\"name\":\"x\"}, not \"no\"",
        ),
        (
            r#"[{"op":"replace","path":"/a/nmae","value":1}]"#,
            ErrorKind::NotFound,
            "operation 1 of 1 (replace \"/a/nmae\"): \"/a/nmae\" is not there: \"/a\" has no such \
             member; did you mean \"/a/name\"?",
        ),
        (
            r#"[{"op":"remove","path":"/a/name/0"}]"#,
            ErrorKind::NotFound,
            "\"/a/name/0\" is not there: \"/a/name\" is the string \"x\"",
        ),
        (
            r#"[{"op":"add","path":"/b/3","value":1}]"#,
            ErrorKind::NotFound,
            "\"/b/3\" is not there: the array has 2 elements",
        ),
        (
            r#"[{"op":"move","from":"/a","path":"/a/b"}]"#,
            ErrorKind::Invalid,
            "\"/a\" cannot be moved into itself",
        ),
    ];
    let document = document(r#"{"a":{"name":"x"},"b":[1,2]}"#);
    for (patch, kind, message) in cases {
        let error = document.patch(patch, &plain()).unwrap_err();
        assert_eq!(error.kind(), kind, "{patch}: {error}");
        assert!(error.message().contains(message), "{patch}: {error}");
        assert_eq!(document.head_revision().unwrap(), Revision(1), "{patch}");
    }
}

#[test]
fn a_patch_that_fails_half_done_leaves_nothing_to_commit() {
    let db = Database::memory().unwrap();
    db.create_document("d").unwrap().put(r#"{"a":1}"#, &plain()).unwrap();
    let half = br#"[{"op":"add","path":"/b","value":2},{"op":"test","path":"/a","value":2}]"#;
    let mut transaction = db.transaction();
    let error = transaction.patch("d", half).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(transaction.commit(&plain()).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), r#"{"a":1}"#);

    let mut transaction = db.transaction();
    let first = br#"[{"op":"test","path":"/a","value":2},{"op":"add","path":"/b","value":2}]"#;
    assert_eq!(transaction.patch("d", first).unwrap_err().kind(), ErrorKind::Conflict);
    transaction.patch("d", br#"[{"op":"add","path":"/b","value":2}]"#).unwrap();
    transaction.commit(&plain()).unwrap();
    assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), r#"{"a":1,"b":2}"#);
}

#[test]
fn errors_of_records_begin_at_the_record_and_have_its_key() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    let how = CommitOptions::default();
    records.put(-9_i64, r#"{"lines":{"x":1},"n":"text"}"#, &how).unwrap();
    let patch = |patch: &str| records.patch(-9_i64, patch, &how).unwrap_err().message().to_owned();
    assert_eq!(
        patch(r#"[{"op":"replace","path":"/lines/y","value":1}]"#),
        "record -9: operation 1 of 1 (replace \"/lines/y\"): \"/lines/y\" is not there: \
         \"/lines\" has no such member"
    );
    assert_eq!(
        patch(r#"[{"op":"remove","path":"/line"}]"#),
        "record -9: operation 1 of 1 (remove \"/line\"): \"/line\" is not there: the record has \
         no such member; did you mean \"/lines\"?"
    );
    let merged = records.merge_patch(-9_i64, "[1]", &how).unwrap_err();
    assert_eq!(merged.message(), "record -9 is no JSON object: a record has fields");
    let filter: Filter = "n = \"other\"".parse().unwrap();
    let refused = records.update_where(&filter, "{", &how).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "though there is no such record");
    assert_eq!(records.update_where(&filter, "{}", &how).unwrap(), 0);
    // With a record around it, it is too deep.
    let deep = format!("{{\"deep\":{}1{}}}", "[".repeat(511), "]".repeat(511));
    let refused = records.update_where(&"n = \"text\"".parse().unwrap(), &deep, &how).unwrap_err();
    assert!(refused.message().starts_with("record -9: "), "{refused}");
}
