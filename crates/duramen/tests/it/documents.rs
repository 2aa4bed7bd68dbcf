//! Documents end to end, on the memory device and on files.

use duramen::{
    ChangeKind, CommitOptions, Database, ErrorKind, Format, JsonPointer, KeyKind, LogQuery, Micros,
    NodeId, Options, Outcome, Revision, SeriesDefinition, Value, ValueType,
};

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).expect("a pointer of a test")
}

fn plain() -> CommitOptions {
    CommitOptions::default()
}

#[test]
fn every_revision_stays_as_it_was() {
    let db = Database::memory().unwrap();
    let doc = db.create_document("d").unwrap();
    assert_eq!(doc.head().unwrap_err().kind(), ErrorKind::NotFound);
    let texts = [
        r#"{"a":1,"b":[1,2,3],"c":{"d":"x","e":null}}"#,
        r#"{"a":1,"b":[1,3],"c":{"d":"x","e":null}}"#,
        r#"{"b":[1,3,4.50],"c":{"e":null,"d":"y"},"z":true}"#,
        r#"[1,{"a":[]},"\u0000\n",1E22,-0,123456789012345678901234567890]"#,
        r#"[{"a":[]},[[1],[2,[3]]],1.10]"#,
        r#"{"a":2,"b":[1,2,3],"c":{"d":"x","e":{}}}"#,
        "null",
        r#""text""#,
    ];
    for (index, text) in texts.iter().enumerate() {
        let outcome = doc.put(text, &plain()).unwrap();
        assert_eq!(outcome.revision(), Revision(index as u64 + 1));
        assert!(matches!(doc.put(text, &plain()).unwrap(), Outcome::Unchanged(_)), "{text}");
    }
    for (index, text) in texts.iter().enumerate() {
        let snapshot = doc.at(Revision(index as u64 + 1)).unwrap();
        assert_eq!(snapshot.to_json().unwrap(), *text);
    }
    for a in 1..=texts.len() as u64 {
        for b in 1..=texts.len() as u64 {
            let patch = doc.diff(Revision(a), Revision(b)).unwrap().to_json_patch();
            assert_eq!(patch == "[]", a == b, "{patch}");
        }
    }
}

#[test]
fn set_remove_history_and_log() {
    let db = Database::memory().unwrap();
    let doc = db.create_document("d").unwrap();
    doc.put(r#"{"counter":0,"list":[{"n":1},{"n":2}]}"#, &plain()).unwrap();
    for value in 1..=10 {
        let options = CommitOptions { author: Some("ann".into()), ..plain() };
        doc.set(&pointer("/counter"), value.to_string(), &options).unwrap();
    }
    doc.set(&pointer("/list/-"), r#"{"n":3}"#, &plain()).unwrap();
    doc.remove(&pointer("/list/0"), &plain()).unwrap();
    let head = doc.head().unwrap();
    assert_eq!(head.to_json().unwrap(), r#"{"counter":10,"list":[{"n":2},{"n":3}]}"#);
    let runs: Vec<_> = head.history(&pointer("/counter")).unwrap().map(Result::unwrap).collect();
    assert_eq!(runs.len(), 11);
    assert_eq!(runs[0].value, Value::Integer(10));
    assert_eq!((runs[0].first, runs[0].last), (Revision(11), Revision(13)));
    let n: Vec<_> = head.history(&pointer("/list/0/n")).unwrap().map(Result::unwrap).collect();
    assert_eq!(n.len(), 1);
    assert_eq!((n[0].first, n[0].last), (Revision(1), Revision(13)));
    let list: Vec<_> = head.history(&pointer("/list")).unwrap().map(Result::unwrap).collect();
    assert_eq!(list.len(), 3, "{list:?}");
    let query = LogQuery { author: Some("ann".into()), limit: Some(3), ..LogQuery::default() };
    let log: Vec<_> = doc.log(&query).unwrap().map(|entry| entry.unwrap().revision.0).collect();
    assert_eq!(log, [11, 10, 9]);
    assert_eq!(doc.timestamps().unwrap().len(), 13);
    let error = doc.set(&pointer("/nope/x"), "1", &plain()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = doc.at_time(Micros(5)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn a_database_on_files_comes_back_with_and_without_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let texts: Vec<String> =
        (0..40).map(|i| format!(r#"{{"i":{i},"list":[{}],"s":"v{}"}}"#, list(i), i % 3)).collect();
    for checkpointed in [false, true, true, false] {
        let db = Database::open(&path, Options::default()).unwrap();
        let doc = match db.document("d") {
            Ok(doc) => doc,
            Err(_) => db.create_document("d").unwrap(),
        };
        let done = usize::try_from(doc.head_revision().unwrap().0).unwrap();
        for (index, text) in texts.iter().take(done).enumerate() {
            let snapshot = doc.at(Revision(index as u64 + 1)).unwrap();
            assert_eq!(snapshot.to_json().unwrap(), *text, "revision {}", index + 1);
        }
        for text in &texts[done..done + 10] {
            doc.put(text, &plain()).unwrap();
        }
        if checkpointed {
            db.checkpoint().unwrap();
        }
        let reader = Database::open(&path, Options { read_only: true, ..Options::default() });
        let read = reader.unwrap().document("d").unwrap().head().unwrap().to_json().unwrap();
        assert_eq!(read, texts[done + 9]);
        assert!(db.check().unwrap().is_clean(), "{:?}", db.check().unwrap());
    }
    let busy = Database::open(&path, Options::default()).unwrap();
    let error = Database::open(&path, Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    drop(busy);
}

fn list(len: usize) -> String {
    let elements: Vec<String> = (0..len).map(|i| format!(r#"{{"n":{i}}}"#)).collect();
    elements.join(",")
}

#[test]
fn transactions_are_all_or_nothing() {
    let db = Database::memory().unwrap();
    let mut transaction = db.transaction();
    transaction.put("a", b"{\"x\":1}").unwrap();
    transaction.put("b", b"{\"y\":1}").unwrap();
    transaction.set("a", &pointer("/x"), b"2").unwrap();
    assert_eq!(transaction.get("a", &pointer("")).unwrap(), r#"{"x":2}"#);
    transaction.rollback();
    assert!(db.documents().unwrap().is_empty());
    let mut transaction = db.transaction();
    transaction.put("a", b"{\"x\":1}").unwrap();
    transaction.put("b", b"{\"y\":1}").unwrap();
    let committed = transaction.commit(&plain()).unwrap();
    assert_eq!(committed.revisions.len(), 2);
    assert_eq!(db.documents().unwrap(), ["a", "b"]);
    let mut stale = db.transaction();
    let error = stale.expect("a", Revision(7)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[test]
fn formats_and_metadata() {
    let db = Database::memory().unwrap();
    let doc = db.create_document("d").unwrap();
    doc.put(r#"{"a":[1,2,{"b":{}}],"c":"x"}"#, &plain()).unwrap();
    let head = doc.head().unwrap();
    let text = |format: &Format| {
        let mut out = Vec::new();
        head.write_json(&pointer(""), format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let level = Format { max_level: Some(1), ..Format::default() };
    assert_eq!(text(&level), r#"{"a":[],"c":"x"}"#);
    let children = Format { max_children: Some(1), ..Format::default() };
    assert_eq!(text(&children), r#"{"a":[1]}"#);
    let pretty = Format { pretty: true, ..Format::default() };
    let expected =
        "{\n  \"a\": [\n    1,\n    2,\n    {\n      \"b\": {}\n    }\n  ],\n  \"c\": \"x\"\n}";
    assert_eq!(text(&pretty), expected);
    let node = head.node(&pointer("/a")).unwrap();
    assert_eq!(node.children, Some(3));
}

#[test]
fn member_order_is_a_revision_and_a_change_of_its_own() {
    let db = Database::memory().unwrap();
    let doc = db.create_document("d").unwrap();
    for text in [r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{"b":2,"c":3,"a":1}"#] {
        assert!(doc.put(text, &plain()).unwrap().is_committed(), "{text}");
    }
    let kinds = |a, b| -> Vec<ChangeKind> {
        let diff = doc.diff(Revision(a), Revision(b)).unwrap();
        diff.changes.iter().map(|change| change.kind).collect()
    };
    assert_eq!(kinds(1, 2), [ChangeKind::Reordered]);
    assert_eq!(doc.diff(Revision(1), Revision(2)).unwrap().to_json_patch(), "[]");
    assert_eq!(kinds(2, 3), [ChangeKind::Added]);
    assert_eq!(kinds(3, 1), [ChangeKind::Removed, ChangeKind::Reordered]);
    let patch = doc.diff(Revision(3), Revision(1)).unwrap().to_json_patch();
    assert_eq!(patch, r#"[{"op":"remove","path":"/c"}]"#);
}

#[test]
fn a_large_map_diffs_by_its_changes() {
    let db = Database::memory().unwrap();
    let doc = db.create_document("d").unwrap();
    let map = |names: &[usize]| {
        let members: Vec<String> = names.iter().map(|n| format!("\"k{n}\":{n}")).collect();
        format!("{{{}}}", members.join(","))
    };
    let all: Vec<usize> = (0..1_000).collect();
    let mut edited = all.clone();
    edited.insert(500, 5_000);
    edited.remove(10);
    doc.put(map(&all), &plain()).unwrap();
    doc.put(map(&edited), &plain()).unwrap();
    assert_eq!(doc.head().unwrap().to_json().unwrap(), map(&edited));
    let patch = doc.diff(Revision(1), Revision(2)).unwrap().to_json_patch();
    let expected = r#"[{"op":"remove","path":"/k10"},{"op":"add","path":"/k5000","value":5000}]"#;
    assert_eq!(patch, expected);
}

/// Elements that the transaction that made them removed once had no revision of birth on disk.
#[test]
fn elements_made_and_removed_by_one_commit_survive_a_checkpoint() {
    let device = std::sync::Arc::new(duramen::io::MemoryDevice::new());
    let options = || Options { background: false, ..Options::default() };
    let open = || Database::open_device(device.clone(), options()).unwrap();
    let db = open();
    let mut transaction = db.transaction();
    transaction.put("d", br#"{"a":[1,{"b":[2]}]}"#).unwrap();
    transaction.put("d", br#"{"a":[3],"c":null}"#).unwrap();
    transaction.remove("d", &pointer("/a/0")).unwrap();
    transaction.set("d", &pointer("/a/-"), b"4").unwrap();
    transaction.remove("d", &pointer("/a/0")).unwrap();
    transaction.commit(&plain()).unwrap();
    db.checkpoint().unwrap();
    drop(db);
    let doc = open().document("d").unwrap();
    assert_eq!(doc.head().unwrap().to_json().unwrap(), r#"{"a":[],"c":null}"#);
    doc.put(r#"{"a":[5],"c":null}"#, &plain()).unwrap();
    assert_eq!(doc.head().unwrap().to_json().unwrap(), r#"{"a":[5],"c":null}"#);
}

/// Entries that the commit that made them removed once were not found when they came back.
#[test]
fn entries_made_and_removed_by_one_commit_can_come_back() {
    let db = Database::memory().unwrap();
    let entries: Vec<String> = (0..300).map(|n| format!("\"e{n}\":{n}")).collect();
    let mut transaction = db.transaction();
    transaction.put("d", format!("{{{}}}", entries.join(",")).as_bytes()).unwrap();
    transaction.put("d", b"{}").unwrap();
    transaction.commit(&plain()).unwrap();
    for checkpointed in [false, true] {
        let doc = db.document("d").unwrap();
        doc.set(&pointer("/e7"), "[1]", &plain()).unwrap();
        doc.set(&pointer("/e7/0"), "2", &plain()).unwrap();
        assert_eq!(doc.head().unwrap().to_json().unwrap(), r#"{"e7":[2]}"#);
        doc.remove(&pointer("/e7"), &plain()).unwrap();
        if !checkpointed {
            db.checkpoint().unwrap();
        }
    }
}

/// A field of a removed object once seemed to be there while its object's name held an array.
#[test]
fn a_history_has_gaps_where_another_value_stood_above() {
    let db = Database::memory().unwrap();
    let doc = db.create_document("d").unwrap();
    for text in
        [r#"{"a":{"b":1}}"#, r#"{"c":1}"#, r#"{"a":[2]}"#, r#"{"a":{"c":1}}"#, r#"{"a":{"b":3}}"#]
    {
        doc.put(text, &plain()).unwrap();
    }
    let history = doc.head().unwrap().history(&pointer("/a/b")).unwrap();
    let runs: Vec<_> =
        history.map(|run| run.map(|run| (run.first.0, run.last.0)).unwrap()).collect();
    assert_eq!(runs, [(5, 5), (1, 1)]);
}

#[test]
fn a_node_is_found_wherever_it_is_and_only_where_it_is() {
    let document = Database::memory().unwrap().create_document("places").unwrap();
    let options = CommitOptions::default();
    document.put(r#"{"list":[{"a/b":[1,2]},{"c":null}],"gone":{"x":1}}"#, &options).unwrap();
    let places = ["", "/list", "/list/0", "/list/0/a~1b", "/list/0/a~1b/1", "/list/1/c", "/gone/x"];
    let first = document.head().unwrap();
    let nodes = places.map(|place| {
        let pointer = JsonPointer::parse(place).unwrap();
        let node = first.node(&pointer).unwrap().id;
        assert_eq!(first.pointer(node).unwrap(), pointer);
        node
    });
    document.put(r#"{"list":[0,{"a/b":[2]},{"c":null}]}"#, &options).unwrap();
    let now = document.head().unwrap();
    for node in nodes {
        if let Ok(place) = now.pointer(node) {
            assert_eq!(now.node(&place).unwrap().id, node, "{place}");
        }
    }
    assert_eq!(now.pointer(nodes[5]).unwrap().to_string(), "/list/2/c");
    assert_eq!(now.pointer(nodes[6]).unwrap_err().kind(), ErrorKind::NotFound);
    for unknown in [u64::MAX, 1 << 40 | 5, 77] {
        let found = now.pointer(NodeId::from_number(unknown));
        assert_eq!(found.unwrap_err().kind(), ErrorKind::NotFound, "{unknown}");
    }
}

/// It was once said that there was none, and to look at a list that does not have it either.
#[test]
fn a_name_that_something_of_another_kind_has_is_told_to_be_that() {
    let db = Database::memory().unwrap();
    db.create_document("document").unwrap();
    db.create_collection("collection", KeyKind::Text).unwrap();
    db.create_series("series", &SeriesDefinition::new(ValueType::I64)).unwrap();
    let plain = CommitOptions::default();
    let snapshot = db.snapshot();
    let no_documents = [
        db.document("series").unwrap_err(),
        db.collection("series").unwrap_err(),
        snapshot.document("series").unwrap_err(),
        db.delete_document("series", &plain).unwrap_err(),
        db.transaction().set("series", &JsonPointer::root(), b"1").unwrap_err(),
    ];
    for error in no_documents {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("it is a series, read by"), "{error}");
    }
    for (name, told) in
        [("document", "it is a document, read by"), ("collection", "it is a collection, read by")]
    {
        let no_series = [
            db.series(name).unwrap_err(),
            snapshot.series(name).unwrap_err(),
            db.transaction().delete_points(name, ..).unwrap_err(),
            db.transaction().delete_series(name).unwrap_err(),
        ];
        for error in no_series {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(error.message().contains(told), "{error}");
        }
    }
    for error in [db.document("none").unwrap_err(), db.series("none").unwrap_err()] {
        assert!(error.message().contains("lists those there are"), "{error}");
    }
}
