//! Cursors, timelines, blame, logs of a path, conditions and partial diffs, against full copies of
//! every revision.

use std::sync::Arc;

use copies::{Copy, Random, Specimen, target};
use duramen::io::MemoryDevice;
use duramen::{
    BlameOptions, ChangeKind, CommitOptions, Condition, Cursor, Database, DiffOptions, Document,
    ErrorKind, JsonPointer, LogQuery, Moment, NodeChange, NodeId, Options, Revision, Scope,
    Snapshot, Target,
};

mod copies;
mod moves;

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

fn root() -> Target {
    JsonPointer::root().into()
}

fn history(seed: u64, changes: usize) -> Specimen {
    let mut random = Random(seed);
    let first = r#"{"a":[1,{"b":2},[3]],"b":{"a":{"a":1},"c":[]},"c":4}"#;
    let mut specimen = Specimen::new(Database::memory().unwrap(), first);
    for _ in 0..changes {
        specimen.change(&mut random);
    }
    specimen
}

/// An array of some hundred elements in another order than born, and a map of some hundred fields.
fn large() -> Specimen {
    let elements = |random: &mut Random| {
        let mut items: Vec<String> =
            (0..340).map(|n| format!("{{\"n\":{n},\"s\":[{}]}}", n % 7)).collect();
        for last in (1..items.len()).rev() {
            items.swap(last, random.below(last + 1));
        }
        items.join(",")
    };
    let fields = |names: std::ops::Range<usize>| -> String {
        names.map(|n| format!("\"k{n}\":{n}")).collect::<Vec<_>>().join(",")
    };
    let mut random = Random(7);
    let text = format!(
        "{{\"list\":[{}],\"map\":{{{}}},\"grown\":{{{}}}}}",
        elements(&mut random),
        fields(0..300),
        fields(0..250)
    );
    let mut specimen = Specimen::new(Database::memory().unwrap(), &text);
    for round in 0..3 {
        let text = format!(
            "{{\"list\":[{}],\"map\":{{{}}},\"grown\":{{{}}}}}",
            elements(&mut random),
            fields(round * 7..290),
            fields(0..260 + round)
        );
        specimen.put(&text, "shuffle");
        if round == 1 {
            specimen.database.checkpoint().unwrap();
        }
    }
    specimen
}

/// Compares a cursor and all below it with a copy.
fn check_walk(cursor: &Cursor, copy: &Copy, at: usize) {
    let value = &copy.0[at];
    assert_eq!(cursor.node(), value.node);
    assert_eq!(cursor.pointer().unwrap(), value.pointer);
    assert_eq!(cursor.name().unwrap(), value.name);
    assert_eq!(cursor.kind().unwrap().name(), value.kind);
    assert_eq!(cursor.child_count().unwrap(), value.children.len() as u64);
    assert_eq!(cursor.parent().map(|p| p.node()), value.parent.map(|p| copy.0[p].node));
    let mut next = cursor.first_child().unwrap();
    for (index, &child) in value.children.iter().enumerate() {
        let found = next.expect("one more child");
        check_walk(&found, copy, child);
        assert_eq!(found.index().unwrap(), Some(index as u64));
        let element = cursor.element(index as u64).unwrap().map(|found| found.node());
        assert_eq!(element, (value.kind == "array").then_some(copy.0[child].node));
        if let Some(name) = &copy.0[child].name {
            let field = cursor.field(name).unwrap().unwrap();
            assert_eq!(field.node(), found.node());
            assert_eq!(field.index().unwrap(), Some(index as u64));
        }
        next = found.next_sibling().unwrap();
    }
    assert!(next.is_none());
    let mut previous = cursor.last_child().unwrap();
    for &child in value.children.iter().rev() {
        let found = previous.expect("one more child");
        assert_eq!(found.node(), copy.0[child].node);
        previous = found.previous_sibling().unwrap();
    }
    assert!(previous.is_none() && cursor.field("nobody").unwrap().is_none());
    assert!(cursor.element(value.children.len() as u64).unwrap().is_none());
}

fn check_cursors(snapshot: &Snapshot, copy: &Copy, random: &mut Random) {
    check_walk(&snapshot.cursor(&root()).unwrap(), copy, 0);
    let cursors: Vec<(usize, Cursor)> = (0..12)
        .map(|_| {
            let at = random.below(copy.0.len());
            let (by_node, by_place) = (copy.0[at].node.into(), target(&copy.0[at].pointer));
            let cursor =
                snapshot.cursor(if at.is_multiple_of(2) { &by_node } else { &by_place }).unwrap();
            assert_eq!(cursor.node(), copy.0[at].node);
            assert_eq!(cursor.to_json().unwrap(), copy.0[at].text);
            (at, cursor)
        })
        .collect();
    for (a, x) in &cursors {
        for (b, y) in &cursors {
            assert_eq!(x.compare_order(y).unwrap(), a.cmp(b));
        }
    }
    for (at, cursor) in &cursors {
        for depth in [None, Some(0), Some(1), Some(2)] {
            let level = |value: &copies::Value| value.pointer.tokens().len();
            let expected: Vec<NodeId> = copy.0[at + 1..]
                .iter()
                .take_while(|value| level(value) > level(&copy.0[*at]))
                .filter(|value| depth.is_none_or(|d| level(value) <= level(&copy.0[*at]) + d))
                .map(|value| value.node)
                .collect();
            let found: Vec<NodeId> =
                cursor.descendants(depth).map(|below| below.unwrap().node()).collect();
            assert_eq!(found, expected);
        }
    }
}

/// The changes that states by revision make, oldest first.
fn changes_of(states: &[Option<String>]) -> Vec<NodeChange> {
    let pairs = (1..).zip(states.windows(2));
    let changes = pairs.filter_map(|(revision, pair)| {
        let kind = match (&pair[0], &pair[1]) {
            (a, b) if a == b => return None,
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            _ => ChangeKind::Replaced,
        };
        Some(NodeChange { revision: Revision(revision), kind })
    });
    changes.collect()
}

fn check_timelines(specimen: &Specimen, nodes: &[NodeId]) {
    let head = specimen.document.head().unwrap();
    for &node in nodes {
        for scope in [Scope::Node, Scope::Subtree] {
            let states = specimen.states(node, |value| match scope {
                Scope::Node => value.own.clone(),
                Scope::Subtree => value.whole.clone(),
            });
            let expected = changes_of(&states);
            let timeline = || head.timeline(&node.into(), scope).unwrap();
            let mut found: Vec<NodeChange> = timeline().changes().map(Result::unwrap).collect();
            found.reverse();
            assert_eq!(found, expected, "{node} {scope:?}");
            let mut line = timeline();
            assert_eq!(line.first().unwrap().as_ref(), expected.first());
            assert_eq!(line.last().unwrap().as_ref(), expected.last());
            for revision in (0..=specimen.copies.len() as u64).map(Revision) {
                let previous = expected.iter().rev().find(|change| change.revision < revision);
                assert_eq!(line.previous(revision).unwrap().as_ref(), previous);
                let next = expected.iter().find(|change| change.revision > revision);
                assert_eq!(line.next(revision).unwrap().as_ref(), next, "{node} {revision}");
            }
        }
    }
}

fn check_blame(specimen: &Specimen, revision: usize) {
    let (copy, snapshot) =
        (&specimen.copies[revision], specimen.document.at(Revision(revision as u64)).unwrap());
    let blame = |depth| {
        let blame = snapshot.blame(&root(), &BlameOptions { depth, follow: false }).unwrap();
        blame.map(Result::unwrap).collect::<Vec<_>>()
    };
    let full = blame(None);
    assert_eq!(full.len(), copy.0.len());
    for (entry, value) in full.iter().zip(&copy.0) {
        assert_eq!((entry.node, &entry.pointer), (value.node, &value.pointer));
        assert_eq!(entry.kind.name(), value.kind);
        assert!(!entry.is_whole);
        let states = specimen.states(value.node, |value| value.own.clone());
        let set = usize::try_from(entry.revision.0).unwrap();
        assert_eq!(states[set], states[revision], "{}", value.pointer);
        assert_ne!(states[set - 1], states[set], "{}", value.pointer);
        // Since then it was the same, or something above it was not there.
        let since = &states[set..=revision];
        assert!(since.iter().all(|state| state.is_none() || *state == states[set]));
        let row = specimen.document.log(&LogQuery {
            to: Some(Moment::Revision(entry.revision)),
            limit: Some(1),
            ..LogQuery::default()
        });
        let row = row.unwrap().next().unwrap().unwrap();
        assert_eq!(
            (entry.timestamp, entry.message.as_deref()),
            (row.timestamp, row.message.as_deref())
        );
    }
    for depth in 0..3 {
        let expected: Vec<_> = full
            .iter()
            .filter(|entry| entry.pointer.tokens().len() <= depth)
            .map(|entry| {
                let text = format!("{}/", entry.pointer);
                let is_deepest = entry.pointer.tokens().len() == depth;
                let below = full.iter().filter(|e| e.pointer.to_string().starts_with(&text));
                let newest = below.filter(|_| is_deepest).map(|e| e.revision).max();
                (entry.node, newest.is_some(), newest.max(Some(entry.revision)))
            })
            .collect();
        let found: Vec<_> =
            blame(Some(depth)).iter().map(|e| (e.node, e.is_whole, Some(e.revision))).collect();
        assert_eq!(found, expected);
    }
}

fn check_log(specimen: &Specimen, to: usize, random: &mut Random) {
    let value = random.choose(&specimen.copies[to].0);
    let states = specimen.states(value.node, |value| value.whole.clone());
    let mut expected: Vec<u64> =
        changes_of(&states[..=to]).iter().map(|change| change.revision.0).collect();
    expected.reverse();
    let query = LogQuery {
        path: Some(target(&value.pointer)),
        to: Some(Moment::Revision(Revision(to as u64))),
        ..LogQuery::default()
    };
    let log = |query: &LogQuery| -> Vec<u64> {
        let log = specimen.document.log(query).unwrap();
        log.map(|entry| entry.unwrap().revision.0).collect()
    };
    assert_eq!(log(&query), expected, "{}", value.pointer);
    let limit = Some(random.below(3) + 1);
    let (mut pages, mut before) = (Vec::new(), None);
    loop {
        let page = log(&LogQuery { limit, before, ..query.clone() });
        let Some(&last) = page.last() else { break };
        before = Some(Revision(last));
        pages.extend(page);
    }
    assert_eq!(pages, expected);
}

/// Whether a scalar's text, or that of a container, satisfies a condition, told by the text alone.
fn holds(condition: &str, text: Option<&str>) -> bool {
    let number = text.and_then(|text| text.parse::<i64>().ok());
    match condition {
        "exists" => text.is_some(),
        "missing" => text.is_none(),
        "> 4" => number.is_some_and(|n| n > 4),
        "<= 2" => number.is_some_and(|n| n <= 2),
        "== \"x\"" => text == Some("\"x\""),
        "!= null" => text.is_some_and(|text| text != "null"),
        "== []" => text == Some("[]"),
        other => panic!("no model of {other}"),
    }
}

fn check_conditions(specimen: &Specimen) {
    let head = specimen.document.head().unwrap();
    for node in specimen.nodes() {
        let states = specimen.states(node, |value| value.text.clone());
        for text in ["exists", "missing", "> 4", "<= 2", "== \"x\"", "!= null", "== []"] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.to_string(), text);
            let mut expected: Vec<(u64, u64, Option<String>)> = Vec::new();
            for (revision, state) in (0..).zip(&states).skip(1) {
                if !holds(text, state.as_deref()) {
                    continue;
                }
                match expected.last_mut() {
                    Some(last) if last.1 + 1 == revision => last.1 = revision,
                    _ => expected.push((revision, revision, state.clone())),
                }
            }
            expected.reverse();
            let found: Vec<_> = head
                .when(&node.into(), &condition)
                .unwrap()
                .map(Result::unwrap)
                .map(|spell| (spell.first.0, spell.last.0, spell.value.map(|v| v.to_string())))
                .collect();
            assert_eq!(found, expected, "{node} {text}");
        }
    }
}

/// A value with the changes of a JSON Patch made, whose pointers begin with `start`.
fn patched(text: &str, patch: &str, start: &JsonPointer) -> serde_json::Value {
    let mut value =
        serde_json::json!({ "root": serde_json::from_str::<serde_json::Value>(text).unwrap() });
    let patch: Vec<serde_json::Value> = serde_json::from_str(patch).unwrap();
    for step in patch {
        let place = step["path"].as_str().unwrap().strip_prefix(&start.to_string()).unwrap();
        let place = format!("/root{place}");
        let (parent, last) = place.rsplit_once('/').unwrap();
        let parent = value.pointer_mut(parent).unwrap();
        match (parent, step["op"].as_str().unwrap()) {
            (serde_json::Value::Array(items), "add") => {
                items.insert(last.parse().unwrap(), step["value"].clone());
            }
            (serde_json::Value::Array(items), "remove") => {
                items.remove(last.parse().unwrap());
            }
            (parent, "replace") => {
                *parent.pointer_mut(&format!("/{last}")).unwrap() = step["value"].clone();
            }
            (serde_json::Value::Object(members), "add") => {
                assert!(members.insert(last.into(), step["value"].clone()).is_none());
            }
            (serde_json::Value::Object(members), "remove") => {
                assert!(members.remove(last).is_some());
            }
            other => panic!("{other:?}"),
        }
    }
    value["root"].take()
}

fn check_diff(specimen: &Specimen, random: &mut Random) {
    let head = specimen.head();
    let (a, b) = (1 + random.below(head), 1 + random.below(head));
    let side = *random.choose(&[a, b]);
    let value = random.choose(&specimen.copies[side].0);
    let start: Target =
        if random.below(2) == 0 { value.node.into() } else { target(&value.pointer) };
    let depth = *random.choose(&[None, Some(0), Some(1), Some(2)]);
    let options = DiffOptions { start: Some(start.clone()), depth };
    let (from, to) = (Revision(a as u64), Revision(b as u64));
    let diff = specimen.document.diff_with(from, to, &options).unwrap();
    let find = |copy: &Copy| match &start {
        Target::Node(node) => copy.find(*node).map(|value| value.node),
        Target::Path(_) => unreachable!("starts are drawn as places and ids"),
        Target::Pointer(at) => copy.0.iter().find(|v| v.pointer == *at).map(|value| value.node),
    };
    let (before, after) = (&specimen.copies[a], &specimen.copies[b]);
    let node = find(before).or_else(|| find(after)).unwrap();
    let (x, y) = (before.find(node), after.find(node));
    assert_eq!(diff.start, x.or(y).unwrap().pointer);
    for change in &diff.changes {
        let levels = change.pointer.tokens().len() - diff.start.tokens().len();
        assert!(depth.is_none_or(|depth| levels <= depth), "{change:?} {depth:?}");
        if change.kind == ChangeKind::Replaced {
            assert_ne!(change.before, change.after);
        }
    }
    match (x, y) {
        (Some(x), Some(y)) => {
            let found = patched(&x.text, &diff.to_json_patch(), &diff.start);
            assert_eq!(found, serde_json::from_str::<serde_json::Value>(&y.text).unwrap());
            assert!(diff.changes.is_empty() || x.whole != y.whole);
            assert!(!diff.changes.is_empty() || x.text == y.text);
        }
        (Some(x), None) => {
            assert_eq!(diff.changes.len(), 1);
            assert_eq!(diff.changes[0].before.as_ref(), Some(&x.text));
            assert_eq!(diff.changes[0].kind, ChangeKind::Removed);
        }
        _ => {
            assert_eq!(diff.changes.len(), 1);
            assert_eq!(diff.changes[0].kind, ChangeKind::Added);
        }
    }
    let counts = diff.stat();
    assert_eq!(counts.total.sum(), diff.changes.len() as u64);
    let at_start = diff.changes.iter().filter(|change| change.pointer == diff.start).count() as u64;
    let below: u64 = counts.members.iter().map(|(_, member)| member.sum()).sum();
    assert_eq!(counts.total.sum(), at_start + below);
}

#[test]
fn cursors_walk_random_documents_at_every_revision() {
    for seed in 0..30 {
        let specimen = history(seed, 25);
        let mut random = Random(seed ^ 0x55);
        for revision in 1..=specimen.head() {
            let snapshot = specimen.document.at(Revision(revision as u64)).unwrap();
            check_cursors(&snapshot, &specimen.copies[revision], &mut random);
        }
    }
}

#[test]
fn cursors_walk_large_arrays_and_maps() {
    let specimen = large();
    for revision in 1..=specimen.head() {
        let snapshot = specimen.document.at(Revision(revision as u64)).unwrap();
        check_cursors(&snapshot, &specimen.copies[revision], &mut Random(1));
    }
}

#[test]
fn timelines_name_the_revisions_that_changed_a_value() {
    for seed in 0..60 {
        let specimen = history(seed, 30);
        check_timelines(&specimen, &specimen.nodes());
    }
}

/// Long enough that both ways of searching are taken, and left for the other one.
#[test]
fn timelines_of_long_histories_are_whole() {
    for seed in 0..4 {
        let mut specimen = Specimen::new(Database::memory().unwrap(), r#"{"a":[],"b":{},"c":0}"#);
        let mut random = Random(seed);
        while specimen.copies.len() < 300 {
            let part = ["/a", "/b", "/c"][random.below(3)];
            specimen.change_below(&pointer(part), &mut random);
        }
        let nodes = specimen.nodes();
        let sample: Vec<NodeId> = nodes.iter().step_by(1 + nodes.len() / 30).copied().collect();
        check_timelines(&specimen, &sample);
        let parts = ["", "/a", "/b", "/c"].map(|part| {
            specimen.document.head().unwrap().cursor(&target(&pointer(part))).unwrap().node()
        });
        check_timelines(&specimen, &parts);
        for _ in 0..10 {
            let to = 1 + random.below(specimen.head());
            check_log(&specimen, to, &mut random);
        }
    }
}

#[test]
fn timelines_of_large_arrays_and_maps_are_whole() {
    let mut specimen = large();
    let text = specimen.copies[1].0[0].text.clone();
    specimen.put("{}", "empty");
    specimen.put(&text, "again");
    let head = specimen.document.head().unwrap();
    for name in ["/list", "/map", "/grown", "/list/3", "/map/k20", "/grown/k3"] {
        let at = target(&pointer(name));
        let node = head.cursor(&at).unwrap().node();
        for (scope, whole) in [(Scope::Node, false), (Scope::Subtree, true)] {
            let state = |value: &copies::Value| {
                if whole { value.whole.clone() } else { value.own.clone() }
            };
            let mut expected = changes_of(&specimen.states(node, state));
            expected.reverse();
            let changes = head.timeline(&at, scope).unwrap().changes();
            assert_eq!(changes.map(Result::unwrap).collect::<Vec<_>>(), expected, "{name}");
        }
    }
}

#[test]
fn blame_names_the_revision_that_set_each_value() {
    for seed in 0..40 {
        let specimen = history(seed, 25);
        for revision in [specimen.head(), 1 + specimen.head() / 2] {
            check_blame(&specimen, revision);
        }
    }
    check_blame(&large(), 3);
}

#[test]
fn log_of_a_path_has_the_revisions_that_changed_below_it() {
    for seed in 0..60 {
        let specimen = history(seed, 30);
        let mut random = Random(seed);
        for _ in 0..20 {
            let to = 1 + random.below(specimen.head());
            check_log(&specimen, to, &mut random);
        }
    }
}

#[test]
fn conditions_hold_in_the_longest_spells() {
    (0..40).for_each(|seed| check_conditions(&history(seed, 30)));
}

#[test]
fn partial_diffs_turn_the_start_into_what_it_was_after() {
    for seed in 0..60 {
        let specimen = history(seed, 30);
        let mut random = Random(seed);
        (0..40).for_each(|_| check_diff(&specimen, &mut random));
    }
    let specimen = large();
    (0..12).for_each(|seed| check_diff(&specimen, &mut Random(seed)));
}

/// All that navigation says of a document, as text.
fn report(document: &Document, nodes: &[NodeId]) -> String {
    let head = document.head().unwrap();
    let mut lines = Vec::new();
    for cursor in head.cursor(&root()).unwrap().descendants(None) {
        let cursor = cursor.unwrap();
        lines.push(format!("{} {:?}", cursor.pointer().unwrap(), cursor.details().unwrap()));
    }
    for entry in head.blame(&root(), &BlameOptions::default()).unwrap() {
        lines.push(format!("{:?}", entry.unwrap()));
    }
    for &node in nodes {
        for scope in [Scope::Node, Scope::Subtree] {
            let changes = head.timeline(&node.into(), scope).unwrap().changes();
            lines.push(format!("{:?}", changes.collect::<Vec<_>>()));
        }
        for condition in ["exists", "> 4", "!= null"] {
            let spells = head.when(&node.into(), &condition.parse().unwrap()).unwrap();
            lines.push(format!("{:?}", spells.collect::<Vec<_>>()));
        }
        let query = LogQuery { path: Some(node.into()), ..LogQuery::default() };
        lines.push(format!("{:?}", document.log(&query).unwrap().collect::<Vec<_>>()));
    }
    lines.join("\n")
}

#[test]
fn answers_are_the_same_after_a_checkpoint_and_reopening() {
    for seed in 100..130 {
        let device = Arc::new(MemoryDevice::new());
        let open = || Database::open_device(device.clone(), Options::default()).unwrap();
        let mut specimen = Specimen::new(open(), r#"{"a":[1,{"b":2}],"b":{"a":1}}"#);
        let mut random = Random(seed);
        (0..25).for_each(|_| specimen.change(&mut random));
        let nodes = specimen.nodes();
        let Specimen { database, document, .. } = specimen;
        let before = report(&document, &nodes);
        database.checkpoint().unwrap();
        assert_eq!(report(&document, &nodes), before);
        drop(document);
        database.close().unwrap();
        let database = open();
        assert_eq!(report(&database.document("d").unwrap(), &nodes), before);
    }
}

#[test]
fn what_is_not_there_is_told_apart() {
    let specimen = history(3, 20);
    let head = specimen.document.head().unwrap();
    let nowhere = target(&pointer("/nobody/is/here"));
    let strange: Target = NodeId::from_number(u64::MAX >> 1).into();
    for target in [&nowhere, &strange] {
        let errors = [
            head.cursor(target).unwrap_err(),
            head.timeline(target, Scope::Node).unwrap_err(),
            head.blame(target, &BlameOptions::default()).unwrap_err(),
            head.when(target, &"exists".parse().unwrap()).unwrap_err(),
            specimen
                .document
                .log(&LogQuery { path: Some(target.clone()), ..LogQuery::default() })
                .unwrap_err(),
            specimen
                .document
                .diff_with(
                    Revision(1),
                    Revision(2),
                    &DiffOptions { start: Some(target.clone()), depth: None },
                )
                .unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        }
    }
    let other = specimen.document.at(Revision(1)).unwrap().cursor(&root()).unwrap();
    let error = head.cursor(&root()).unwrap().compare_order(&other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

/// They are others, but a patch that replaces a value by an equal one would say nothing.
#[test]
fn equal_elements_that_took_the_place_of_others_do_not_replace_what_they_are_in() {
    let database = Database::memory().unwrap();
    let document = database.create_document("d").unwrap();
    document.put("[[1,2]]", &CommitOptions::default()).unwrap();
    // In one transaction they would be the same.
    document.remove(&pointer("/0/1"), &CommitOptions::default()).unwrap();
    document.set(&pointer("/0/-"), b"2", &CommitOptions::default()).unwrap();
    let diff = |depth| {
        let options = DiffOptions { start: None, depth };
        document.diff_with(Revision(1), Revision(3), &options).unwrap().changes.len()
    };
    assert_eq!([diff(None), diff(Some(2)), diff(Some(1)), diff(Some(0))], [2, 2, 0, 0]);
}

/// Such a commit marks what was below as gone, which it was.
#[test]
fn what_a_commit_brings_back_and_removes_again_is_no_change() {
    let database = Database::memory().unwrap();
    let mut specimen = Specimen::new(database, r#"{"t":{"k":0,"a":{"b":1}}}"#);
    specimen.put(r#"{"t":{"k":0}}"#, "gone");
    let mut transaction = specimen.database.transaction();
    transaction.set("d", &pointer("/t/a"), br#"{"b":5}"#).unwrap();
    transaction.remove("d", &pointer("/t/a")).unwrap();
    transaction.set("d", &pointer("/z"), b"1").unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    specimen.copies.push(Copy::take(&specimen.document, 3));
    let t = target(&pointer("/t"));
    let changes = specimen.document.head().unwrap().timeline(&t, Scope::Subtree).unwrap().changes();
    let changes: Vec<u64> = changes.map(|change| change.unwrap().revision.0).collect();
    assert_eq!(changes, [2, 1]);
    check_timelines(&specimen, &specimen.nodes());
}

#[test]
fn log_of_a_path_before_the_first_revision_is_empty() {
    let specimen = history(4, 5);
    let query = LogQuery {
        path: Some(root()),
        to: Some(Moment::Revision(Revision(0))),
        ..LogQuery::default()
    };
    assert_eq!(specimen.document.log(&query).unwrap().count(), 0);
}

#[test]
fn conditions_that_are_none_are_refused() {
    for text in ["", "5", "= 5", "=> 5", ">", "> x", "> 5 6", "== 'x'", "< null", ">= {}", "Exists"]
    {
        let error = Condition::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
        assert!(error.message().contains("condition"), "{error}");
    }
}

#[test]
fn containers_are_equal_whatever_the_order_of_members_and_the_form_of_numbers() {
    let doc = Database::memory().unwrap().create_document("d").unwrap();
    for text in [r#"{"a":1,"b":[1.0,{}]}"#, r#"{"b":[1,{}],"a":1e0}"#, r#"{"a":1,"b":[{},1]}"#] {
        doc.put(text, &CommitOptions::default()).unwrap();
    }
    let condition = r#" == {"a": 1, "b": [1, {}]} "#.parse().unwrap();
    let spells: Vec<_> = doc.head().unwrap().when(&root(), &condition).unwrap().collect();
    assert_eq!(spells.len(), 1);
    let spell = spells[0].as_ref().unwrap();
    assert_eq!((spell.first, spell.last), (Revision(1), Revision(2)));
}
