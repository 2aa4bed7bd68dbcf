use crate::limits::INLINE_BYTES_MAX;
use crate::{
    CommitOptions, Database, Document, JsonPointer, Key, KeyKind, Outcome, Position, Revision,
    Target,
};

fn how() -> CommitOptions {
    CommitOptions::default()
}

/// Arrays that come as members `t` of records.
fn arrays() -> Vec<String> {
    let long = "x".repeat(INLINE_BYTES_MAX + 9);
    let many: Vec<String> = (0..900).map(|n| format!("{{\"n\":{n}}}")).collect();
    vec![
        r#"[{"q":1}]"#.to_owned(),
        r#"["a","a",null,1.50,{"deep":[[1],[{}]]}]"#.to_owned(),
        format!(r#"[[1,2],[3],"{long}",{{"in":"{long}"}}]"#),
        format!("[{}]", many.join(",")),
    ]
}

/// A batch that had an array empty in between made a version with nothing new.
#[test]
fn a_record_whose_array_was_empty_in_between_keeps_its_version() {
    for array in arrays() {
        let db = Database::memory().unwrap();
        let records = db.create_collection("c", KeyKind::Text).unwrap();
        let whole = format!(r#"{{"n":1,"t":{array},"after":true}}"#);
        for (turn, other) in ["[]", "7", "[0]", "{}", "[[]]"].into_iter().enumerate() {
            let between = format!(r#"{{"n":1,"t":{other},"after":true}}"#);
            let batch = [("k", &whole), ("k", &between), ("k", &whole)];
            let outcome = records.put_many(batch, &how()).unwrap();
            assert_eq!(outcome.is_committed(), turn == 0, "{array} with {other} in between");
            assert_eq!(records.get("k").unwrap().unwrap().version, 1);
            if turn == 1 {
                db.checkpoint().unwrap();
            }
        }
        assert_eq!(records.get("k").unwrap().unwrap().json, whole);
        assert_eq!(records.document().head_revision().unwrap(), Revision(1));
    }
}

/// The same for changes of single places, and where others are changed by the same transaction.
#[test]
fn elements_that_are_put_back_leave_no_trace_beside_what_changed() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("c", KeyKind::Text).unwrap();
    let json = r#"{"t":[{"q":1},{"q":2}],"u":[3]}"#;
    records.put_many([("k", json), ("other", json)], &how()).unwrap();
    let key = Key::from("k");
    let patches = [
        r#"[{"op":"remove","path":"/t/0"},{"op":"add","path":"/t/0","value":{"q":1}}]"#,
        r#"[{"op":"add","path":"/t/1","value":0},{"op":"remove","path":"/t/2"},
            {"op":"replace","path":"/t/1","value":{"q":2}}]"#,
        r#"[{"op":"remove","path":"/t"},{"op":"add","path":"/t","value":[]},
            {"op":"replace","path":"/t","value":[{"q":1},{"q":2}]},
            {"op":"remove","path":"/u"},{"op":"add","path":"/u","value":[3]}]"#,
    ];
    for patch in patches {
        let saved = records.patch("k", patch, &how()).unwrap();
        assert_eq!((saved.version, saved.outcome.is_committed()), (1, false), "{patch}");
    }
    let mut transaction = db.transaction();
    transaction.put_record("c", &key, br#"{"t":[],"u":[]}"#).unwrap();
    transaction.delete_records("c", std::slice::from_ref(&key)).unwrap();
    transaction.put_record("c", &key, json.as_bytes()).unwrap();
    transaction.put_record("c", &Key::from("other"), b"{}").unwrap();
    transaction.commit(&how()).unwrap();
    assert_eq!(records.versions(&[key.clone(), "other".into()]).unwrap(), [Some(1), Some(2)]);
    let diff = records.document().diff(Revision(1), Revision(2)).unwrap();
    let places: Vec<_> = diff.changes.iter().map(|change| change.pointer.to_string()).collect();
    assert!(places.iter().all(|place| place.starts_with("/other")), "{places:?}");
    assert_eq!(records.get("k").unwrap().unwrap().json, json);
    // What only looks the same up to its last element is another value.
    let batch = [("k", r#"{"t":[],"u":[3]}"#), ("k", r#"{"t":[{"q":1},{"q":3}],"u":[3]}"#)];
    assert!(records.put_many(batch, &how()).unwrap().is_committed());
    assert_eq!(records.versions(&[key]).unwrap(), [Some(2)]);
}

#[test]
fn an_element_that_came_from_elsewhere_is_not_the_one_that_was_there() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    document.put(r#"{"a":[{"q":1}],"b":[{"q":1},5]}"#, &how()).unwrap();
    let place = |text: &str| JsonPointer::parse(text).unwrap();
    let first_of = |text: &str| Position::First(Target::Pointer(place(text)));
    // There and back again it is the same.
    let mut transaction = db.transaction();
    transaction.move_to("d", &place("/a/0"), &first_of("/b"), None).unwrap();
    transaction.move_to("d", &place("/b/0"), &first_of("/a"), None).unwrap();
    assert!(transaction.commit(&how()).unwrap().revisions.is_empty());
    let mut transaction = db.transaction();
    transaction.remove("d", &place("/a/0")).unwrap();
    transaction.move_to("d", &place("/b/0"), &first_of("/a"), None).unwrap();
    transaction.commit(&how()).unwrap();
    assert_eq!(document.head().unwrap().to_json().unwrap(), r#"{"a":[{"q":1}],"b":[5]}"#);
    let [moved] = document.tree().moves(Revision(2)).unwrap()[..] else {
        panic!("there is one move")
    };
    let there = document.head().unwrap().node(&place("/a/0")).unwrap();
    assert_eq!(moved.to, there.id);
}

/// Transactions of random changes, of which some come to nothing.
#[test]
fn what_random_changes_come_to_is_committed_if_the_value_differs() {
    let mut state = 11_u64;
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        (state >> 33) % end
    };
    let db = Database::memory().unwrap();
    let document: Document = db.create_document("d").unwrap();
    let mut value = r#"{"t":[]}"#.to_owned();
    document.put(&value, &how()).unwrap();
    let mut all = vec![value.clone()];
    for turn in 0..400 {
        let mut transaction = db.transaction();
        for _ in 0..=below(4) {
            let elements: Vec<String> =
                (0..below(4)).map(|_| format!("[{{\"q\":{}}}]", below(2))).collect();
            let json = format!(r#"{{"t":[{}]}}"#, elements.join(","));
            transaction.put("d", json.as_bytes()).unwrap();
        }
        if below(2) == 0 {
            transaction.put("d", value.as_bytes()).unwrap();
        }
        let ends = transaction.get("d", &JsonPointer::root()).unwrap();
        let committed = transaction.commit(&how()).unwrap();
        assert_eq!(committed.revisions.is_empty(), ends == value, "turn {turn}: {value}, {ends}");
        if ends != value {
            all.push(ends.clone());
            value = ends;
        }
        if below(40) == 0 {
            db.checkpoint().unwrap();
        }
    }
    for (revision, value) in (1..).zip(&all) {
        assert_eq!(document.at(Revision(revision)).unwrap().to_json().unwrap(), *value);
    }
    assert!(db.check().unwrap().is_clean());
    assert!(matches!(document.put(&value, &how()).unwrap(), Outcome::Unchanged(_)));
}
