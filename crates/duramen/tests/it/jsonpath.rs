//! JSONPath: the compliance suite, and behaviour of queries over stored documents.

use duramen::{
    CommitOptions, Database, ErrorKind, Format, JsonPath, JsonPointer, Match, Options, Revision,
    Snapshot,
};
use std::fmt::Write as _;
use std::sync::Arc;

use duramen::io::MemoryDevice;
use proptest::prelude::*;
use serde_json::{Value, json};

use naive::{Chooser, Json, Query};

mod naive;

fn plain() -> CommitOptions {
    CommitOptions::default()
}

fn path(text: &str) -> JsonPath {
    JsonPath::parse(text).unwrap()
}

/// The values that a query finds, and where.
fn found(snapshot: &Snapshot, query: &str) -> (Vec<Value>, Vec<String>) {
    let mut values = Vec::new();
    let mut places = Vec::new();
    for found in snapshot.query(&path(query)).unwrap() {
        let found = found.unwrap();
        values.push(value_of(snapshot, &found));
        places.push(found.normalized_path());
    }
    (values, places)
}

fn value_of(snapshot: &Snapshot, found: &Match) -> Value {
    let mut text = Vec::new();
    snapshot.append_json(&found.pointer(), &Format::default(), &mut text).unwrap();
    if let Some(node) = found.node() {
        assert_eq!(snapshot.pointer(node).unwrap(), found.pointer());
    }
    serde_json::from_slice(&text).unwrap()
}

/// A case of the compliance suite with its document.
struct Case {
    name: String,
    selector: String,
    /// Values and places; any of them will do.
    allowed: Vec<(Value, Value)>,
    document: Value,
}

fn suite() -> Vec<Value> {
    let text = include_str!("../fixtures/jsonpath/cts.json");
    let suite: Value = serde_json::from_str(text).unwrap();
    let tests = suite["tests"].as_array().unwrap().clone();
    assert_eq!(tests.len(), 703);
    tests
}

fn cases() -> Vec<Case> {
    let one = |test: &Value, value: &str, place: &str| match test.get(value) {
        Some(found) => vec![(found.clone(), test[place].clone())],
        None => Vec::new(),
    };
    let case = |test: &Value| {
        let mut allowed = one(test, "result", "result_paths");
        if let Some(several) = test.get("results") {
            let places = test["results_paths"].as_array().unwrap();
            allowed.extend(several.as_array().unwrap().iter().cloned().zip(places.iter().cloned()));
        }
        Case {
            name: test["name"].as_str().unwrap().to_owned(),
            selector: test["selector"].as_str().unwrap().to_owned(),
            allowed,
            document: test["document"].clone(),
        }
    };
    let valid = suite();
    let valid = valid.iter().filter(|test| test.get("invalid_selector").is_none());
    valid.map(case).collect()
}

fn check(case: &Case, snapshot: &Snapshot) {
    let (values, places) = found(snapshot, &case.selector);
    let found = (json!(values), json!(places));
    assert!(case.allowed.contains(&found), "{}: {} found {found:?}", case.name, case.selector);
}

#[test]
fn every_invalid_selector_of_the_compliance_suite_is_refused() {
    let mut refused = 0;
    for test in suite().iter().filter(|test| test.get("invalid_selector").is_some()) {
        let selector = test["selector"].as_str().unwrap();
        let error = JsonPath::parse(selector).expect_err(selector);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{selector}");
        assert!(error.message().contains("at character"), "{error}");
        refused += 1;
    }
    assert_eq!(refused, 247);
}

/// Opens the database of a device.
fn open(device: &Arc<MemoryDevice>) -> Database {
    let options = Options { background: false, ..Options::default() };
    Database::open_device(Arc::<MemoryDevice>::clone(device), options).unwrap()
}

#[test]
fn every_case_of_the_compliance_suite_passes_young_and_reopened_and_in_the_past() {
    let cases = cases();
    assert_eq!(cases.len(), 703 - 247);
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    for (number, case) in cases.iter().enumerate() {
        let document = db.create_document(&number.to_string()).unwrap();
        document.put(case.document.to_string(), &plain()).unwrap();
        check(case, &document.head().unwrap());
        // The head is something else from here on.
        document.put(format!("{{\"a\":[{number},{{\"b\":1}}],\"z\":0}}"), &plain()).unwrap();
        check(case, &document.at(Revision(1)).unwrap());
    }
    db.checkpoint().unwrap();
    db.close().unwrap();
    let db = open(&device);
    for (number, case) in cases.iter().enumerate() {
        let document = db.document(&number.to_string()).unwrap();
        check(case, &document.at(Revision(1)).unwrap());
    }
}

/// What a query finds as normalized paths, each checked to name what the match says.
fn places(snapshot: &Snapshot, query: &JsonPath) -> Vec<String> {
    snapshot.query(query).unwrap().map(|found| found.unwrap().normalized_path()).collect()
}

/// The documents that a seed makes, with their texts.
fn documents(chooser: &mut Chooser) -> Vec<(Json, String)> {
    let one = |chooser: &mut Chooser| {
        let (document, mut text) = (chooser.document(), String::new());
        document.write(&mut text);
        (document, text)
    };
    (0..3).map(|_| one(chooser)).collect()
}

fn queries(chooser: &mut Chooser) -> Vec<(Query, JsonPath)> {
    let one = |chooser: &mut Chooser| {
        let (query, mut text) = (chooser.query(), String::new());
        query.write(&mut text);
        (query, path(&text))
    };
    (0..8).map(|_| one(chooser)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Young, at older revisions, partly on disk, and opened again.
    #[test]
    fn queries_find_what_the_plainest_reading_of_the_rfc_finds(seed: u64) {
        let mut chooser = Chooser(seed);
        let (documents, queries) = (documents(&mut chooser), queries(&mut chooser));
        let device = Arc::new(MemoryDevice::new());
        let mut db = open(&device);
        db.create_document("d").unwrap();
        let mut revisions = Vec::new();
        for (document, text) in &documents {
            let outcome = db.document("d").unwrap().put(text, &plain()).unwrap();
            revisions.push((outcome.revision(), document, text));
            match chooser.below(3) {
                0 => db.checkpoint().unwrap(),
                1 => {
                    db.checkpoint().unwrap();
                    db.close().unwrap();
                    db = open(&device);
                }
                _ => {}
            }
            for (revision, document, text) in &revisions {
                let snapshot = db.document("d").unwrap().at(*revision).unwrap();
                for (query, path) in &queries {
                    let found = places(&snapshot, path);
                    prop_assert_eq!(found, query.find(document), "{} over {}", path, text);
                }
            }
        }
    }
}

#[test]
fn members_of_a_map_are_found_by_key_and_by_column() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let document = db.create_document("d").unwrap();
    let mut text = "{".to_owned();
    for key in 0..1_000 {
        let comma = if key > 0 { "," } else { "" };
        write!(text, r#"{comma}"k{key}":{{"n":{key},"t":"x{}"}}"#, key % 3).unwrap();
    }
    document.put(text + "}", &plain()).unwrap();
    document.remove(&JsonPointer::parse("/k998").unwrap(), &plain()).unwrap();
    for _ in 0..2 {
        let head = db.document("d").unwrap().head().unwrap();
        let (values, found) = found(&head, "$[?@.n > 995 && @.n != 997]");
        assert_eq!(found, ["$['k996']", "$['k999']"]);
        assert_eq!(values[1], json!({"n": 999, "t": "x0"}));
        assert_eq!(places(&head, &path("$.k998")), [""; 0]);
        assert_eq!(places(&head, &path("$['k17'].n")), ["$['k17']['n']"]);
        assert_eq!(places(&head, &path("$[?match(@.t, 'x[01]')].t")).len(), 667);
        let before = db.document("d").unwrap().at(Revision(1)).unwrap();
        assert_eq!(places(&before, &path("$[?@.n >= 997]")).len(), 3);
        db.checkpoint().unwrap();
    }
}

/// Objects of one path that outgrow their shape have fields in columns and entries beside them.
#[test]
fn fields_and_entries_of_an_object_that_outgrew_its_shape_are_found() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let mut text = "[".to_owned();
    for row in 0..100 {
        let comma = if row > 0 { "," } else { "" };
        write!(text, r#"{comma}{{"a":{row},"f{row}":1,"g{row}":2,"h{row}":{{"x":{row}}}}}"#)
            .unwrap();
    }
    document.put(text + "]", &plain()).unwrap();
    let head = document.head().unwrap();
    for row in [0, 50, 84, 85, 86, 99] {
        assert_eq!(places(&head, &path(&format!("$[?@.f{row}]"))), [format!("$[{row}]")]);
        let deep = path(&format!("$[?@.h{row}.x == {row} && @.a == {row}]"));
        assert_eq!(places(&head, &deep), [format!("$[{row}]")]);
        let missing = path(&format!("$[?@.f{row} != 1]"));
        assert_eq!(places(&head, &missing).len(), 99);
    }
    assert_eq!(places(&head, &path("$[95].*")).len(), 4);
    assert_eq!(places(&head, &path("$..x")).len(), 100);
}

#[test]
fn queries_go_on_inside_subtrees_stored_whole() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let object = |value: &str| {
        let fields = (0..256).map(|field| format!(r#""f{field}":{value}"#));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    };
    let rows = r#"[{"n":1,"l":[1,{"deep":"x"}]},{"n":2,"l":[]},{"n":30,"s":"\u0001"}]"#;
    document.put(object(&object(rows)), &plain()).unwrap();
    assert!(document.stats().unwrap().opaque_nodes > 0);
    for _ in 0..2 {
        let head = document.head().unwrap();
        let query = path("$.f255.f255[?@.n > 1 && @ != @.n]");
        let found: Vec<_> = head.query(&query).unwrap().map(Result::unwrap).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].normalized_path(), "$['f255']['f255'][2]");
        assert_eq!(found[1].node(), None);
        assert_eq!(value_of(&head, &found[1]), json!({"n": 30, "s": "\u{1}"}));
        assert_eq!(places(&head, &path("$.f255.f255..deep")).len(), 1);
        assert_eq!(places(&head, &path("$.f255[?@[0].n == $.f0.f0[0].n]")).len(), 256);
        assert_eq!(places(&head, &path("$.f255[?@ == $.f0.f0]")).len(), 256);
        assert_eq!(places(&head, &path("$.f255.f255[::-1].l[-1]")).len(), 1);
        assert_eq!(places(&head, &path("$.*.*[1].n")).len(), 65_536);
        db.checkpoint().unwrap();
    }
}

#[test]
fn results_stream_beside_commits_and_stay_those_of_their_revision() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let rows = |age: u32| {
        let row = |id: u32| format!(r#"{{"id":{id},"age":{}}}"#, age + id % 3);
        format!("[{}]", (0..10_000).map(row).collect::<Vec<_>>().join(","))
    };
    document.put(rows(40), &plain()).unwrap();
    let snapshot = document.head().unwrap();
    let mut matches = snapshot.query(&path("$[?@.age == 42].id")).unwrap();
    for number in 0..3_333_u32 {
        if number % 1_000 == 10 {
            // A commit or a checkpoint while a query is under way waits for nothing.
            document.put(rows(number), &plain()).unwrap();
            db.checkpoint().unwrap();
        }
        let found = matches.next().unwrap().unwrap();
        assert_eq!(found.pointer().to_string(), format!("/{}/id", number * 3 + 2));
    }
    assert!(matches.next().is_none());
    assert!(matches.next().is_none());
}

#[test]
fn transactions_query_what_they_staged() {
    let db = Database::memory().unwrap();
    db.create_document("d").unwrap().put("[1,2,3]", &plain()).unwrap();
    let mut change = db.transaction();
    change.set("d", &JsonPointer::parse("/-").unwrap(), br#"{"new":[9]}"#).unwrap();
    change.remove("d", &JsonPointer::parse("/0").unwrap()).unwrap();
    let mut find = |query: &str| {
        let found = change.query("d", &path(query)).unwrap();
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(find("$[?@ > 1]"), ["/0", "/1"]);
    assert_eq!(find("$..new[0]"), ["/2/new/0"]);
    assert_eq!(find("$[0,0]"), ["/0", "/0"]);
    drop(change);
    assert_eq!(places(&db.document("d").unwrap().head().unwrap(), &path("$.*")).len(), 3);
}

#[test]
fn a_scalar_document_has_its_root_and_nothing_below() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    document.put("5", &plain()).unwrap();
    assert_eq!(places(&document.head().unwrap(), &path("$")), ["$"]);
    assert_eq!(places(&document.head().unwrap(), &path("$..*")), [""; 0]);
}
