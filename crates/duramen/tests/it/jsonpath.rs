//! JSONPath: the compliance suite, and behaviour of queries over stored documents.

use duramen::{
    CommitOptions, Database, ErrorKind, Format, JsonPath, JsonPointer, Match, Options, Revision,
    Snapshot,
};
use serde_json::{Value, json};

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

#[test]
fn every_case_of_the_compliance_suite_passes_young_and_on_disk_and_in_the_past() {
    let cases = cases();
    assert_eq!(cases.len(), 703 - 247);
    let db = Database::memory().unwrap();
    for (number, case) in cases.iter().enumerate() {
        let document = db.create_document(&number.to_string()).unwrap();
        document.put(case.document.to_string(), &plain()).unwrap();
        check(case, &document.head().unwrap());
        // The head is something else from here on.
        document.put(format!("{{\"a\":[{number},{{\"b\":1}}],\"z\":0}}"), &plain()).unwrap();
        check(case, &document.at(Revision(1)).unwrap());
    }
    db.checkpoint().unwrap();
    for (number, case) in cases.iter().enumerate() {
        let document = db.document(&number.to_string()).unwrap();
        check(case, &document.at(Revision(1)).unwrap());
    }
}
