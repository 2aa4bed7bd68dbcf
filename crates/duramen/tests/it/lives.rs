//! The history of every node that ever was, against what snapshots show of it: through removals
//! of it and of what it is in, changes of type, returns, and several changes in one commit.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::MemoryDevice;
use duramen::{CommitOptions, Database, Format, JsonPointer, Options, Revision, Snapshot};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

#[derive(Debug, Clone)]
enum Step {
    Set(Index, Value),
    Add(Index, Value),
    Remove(Index),
    Put(Value),
    /// Puts what was there at an earlier revision.
    Return(Index),
    Commit,
    Checkpoint,
    Compact,
}

/// An object of 257 members, which is a map.
fn map(count: usize) -> Value {
    (0..257)
        .map(|name| (format!("w{}", name + count), json!(name)))
        .collect::<Vec<_>>()
        .into_iter()
        .collect()
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        8 => (0..4_i32).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => (0..40_usize).prop_map(map),
    ];
    scalar.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..4)
                .prop_map(|members| members.into_iter().collect::<Value>()),
        ]
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (any::<Index>(), value()).prop_map(|(at, value)| Step::Set(at, value)),
        3 => (any::<Index>(), value()).prop_map(|(at, value)| Step::Add(at, value)),
        3 => any::<Index>().prop_map(Step::Remove),
        1 => value().prop_map(Step::Put),
        2 => any::<Index>().prop_map(Step::Return),
        8 => Just(Step::Commit),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Compact),
    ]
}

fn pointers(value: &Value, at: &str, out: &mut Vec<(String, bool)>) {
    let is_container = value.is_array() || value.is_object();
    // Few of the many members of a map are enough.
    let most = if at.len() > 20 { 0 } else { 8 };
    out.push((at.to_owned(), is_container));
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate().take(most) {
                pointers(item, &format!("{at}/{index}"), out);
            }
        }
        Value::Object(members) => {
            for (name, member) in members.iter().take(most) {
                pointers(member, &format!("{at}/{name}"), out);
            }
        }
        _ => {}
    }
}

/// The value without its metadata; what every node in it is, with a pointer to it.
fn nodes(value: &Value, at: &str, found: &mut BTreeMap<u64, (String, Value)>) -> Value {
    let plain = match &value["value"] {
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(index, item)| nodes(item, &format!("{at}/{index}"), found)).collect()
        }
        Value::Object(members) => {
            let members = members.iter();
            members
                .map(|(name, item)| (name.clone(), nodes(item, &format!("{at}/{name}"), found)))
                .collect()
        }
        scalar => scalar.clone(),
    };
    let before = found.insert(value["node"].as_u64().unwrap(), (at.to_owned(), plain.clone()));
    assert!(before.is_none(), "{at} and {before:?} are one node");
    plain
}

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

fn json_of(snapshot: &Snapshot) -> Value {
    serde_json::from_str(&snapshot.to_json().unwrap()).unwrap()
}

/// What the steps of one commit make of a document.
fn commit(db: &Database, steps: &[Step], returns: &[Value]) {
    let mut transaction = db.transaction();
    for step in steps {
        let now: Value =
            serde_json::from_str(&transaction.get("d", &pointer("")).unwrap()).unwrap();
        let mut all = Vec::new();
        pointers(&now, "", &mut all);
        match step {
            Step::Set(at, value) => {
                let at = &at.get(&all).0;
                transaction.set("d", &pointer(at), value.to_string().as_bytes()).unwrap();
            }
            Step::Add(at, value) => {
                all.retain(|(_, is_container)| *is_container);
                if !all.is_empty() {
                    let (at, _) = at.get(&all);
                    let last = if now.pointer(at).unwrap().is_array() { "-" } else { "b" };
                    let at = pointer(&format!("{at}/{last}"));
                    transaction.set("d", &at, value.to_string().as_bytes()).unwrap();
                }
            }
            Step::Remove(at) if all.len() > 1 => {
                transaction.remove("d", &pointer(&at.get(&all[1..]).0)).unwrap();
            }
            Step::Remove(_) => {}
            Step::Put(value) => transaction.put("d", value.to_string().as_bytes()).unwrap(),
            Step::Return(index) => {
                transaction.put("d", index.get(returns).to_string().as_bytes()).unwrap();
            }
            Step::Commit | Step::Checkpoint | Step::Compact => unreachable!("these end a commit"),
        }
    }
    transaction.commit(&CommitOptions::default()).unwrap();
}

fn check(db: &Database) {
    let document = db.document("d").unwrap();
    let head = document.head_revision().unwrap().0;
    let format = Format { metadata: true, ..Format::default() };
    // By node: a pointer at a revision, and the value by revision.
    let mut lives: BTreeMap<u64, (u64, String, BTreeMap<u64, Value>)> = BTreeMap::new();
    for revision in 1..=head {
        let snapshot = document.at(Revision(revision)).unwrap();
        let mut text = Vec::new();
        snapshot.append_json(&pointer(""), &format, &mut text).unwrap();
        let mut found = BTreeMap::new();
        let whole = nodes(&serde_json::from_slice(&text).unwrap(), "", &mut found);
        assert_eq!(whole, json_of(&snapshot));
        for (node, (at, value)) in found {
            let life = lives.entry(node).or_insert_with(|| (revision, at, BTreeMap::new()));
            life.2.insert(revision, value);
        }
    }
    for (node, (revision, at, values)) in lives {
        if values.values().all(Value::is_i64) && at.contains("/w") && node % 16 != 0 {
            continue;
        }
        let snapshot = document.at(Revision(revision)).unwrap();
        let mut shown = BTreeMap::new();
        let mut until = head + 1;
        for run in snapshot.history(&pointer(&at)).unwrap() {
            let run = run.unwrap();
            assert!(run.last.0 < until && run.first <= run.last, "{at}: {run:?} before {until}");
            until = run.first.0;
            let value: Value = serde_json::from_str(&run.value.to_string()).unwrap();
            shown.extend((run.first.0..=run.last.0).map(|revision| (revision, value.clone())));
        }
        assert_eq!(shown, values, "{at} of revision {revision}");
    }
}

fn live(steps: &[Step]) {
    let device = Arc::new(MemoryDevice::new());
    let options = Options { background: false, ..Options::default() };
    let db = Database::open_device(device, options).unwrap();
    let document = db.create_document("d").unwrap();
    document.put(r#"{"a":{"a":[1,[2]],"b":{"a":[3]}}}"#, &CommitOptions::default()).unwrap();
    let mut returns = vec![json_of(&document.head().unwrap())];
    let mut staged = Vec::new();
    for step in steps {
        match step {
            Step::Commit => {
                commit(&db, &staged, &returns);
                staged.clear();
                returns.push(json_of(&document.head().unwrap()));
            }
            Step::Checkpoint => db.checkpoint().unwrap(),
            Step::Compact => db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap(),
            step => staged.push(step.clone()),
        }
    }
    check(&db);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_node_has_the_history_that_snapshots_show(
        steps in prop::collection::vec(step(), 4..60),
    ) {
        live(&steps);
    }
}
