use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{CommitOptions, Database, Document};

/// An element, from when to when it stood as it was, and its text then.
type Told = (u64, u64, Option<u64>, String);

fn how() -> CommitOptions {
    CommitOptions::default()
}

/// The texts of the elements that are there, by ordinal.
fn texts(columns: &Columns) -> BTreeMap<u64, String> {
    told_by_rows(columns).into_iter().map(|(ordinal, _, _, text)| (ordinal, text)).collect()
}

fn told_by_rows(columns: &Columns) -> Vec<Told> {
    let mut told = Vec::new();
    let Some(path) = columns.path else { return told };
    for part in 0..columns.parts() {
        let mut first = columns.rows(part).unwrap();
        let rest = first.split_off(first.len() / 2);
        for rows in [first, rest] {
            let (json, ends) = (columns.json(&rows, path).unwrap(), rows.ended());
            let from = columns.changed(&rows).unwrap();
            for (row, &ordinal) in rows.ordinals.iter().enumerate() {
                let end = ends[row].map(|end| end.0);
                told.push((ordinal, from[row].0, end, format!("{:?}", json.get(row))));
            }
        }
    }
    told
}

/// What the elements were, revision by revision.
fn told_by_revisions(document: &Document, path: &LabelPath, period: (u64, u64)) -> Vec<Told> {
    let head = document.head_revision().unwrap().0;
    let at = |revision: u64| {
        let columns = document.at(Revision(revision)).and_then(|there| there.columns(path));
        columns.map(|columns| texts(&columns)).unwrap_or_default()
    };
    let all: Vec<_> = (1..=head).map(at).collect();
    let ordinals: BTreeSet<u64> = all.iter().flat_map(|texts| texts.keys().copied()).collect();
    let mut told = Vec::new();
    for ordinal in ordinals {
        let mut standing: Option<(u64, String)> = None;
        for revision in 1..=head + 1 {
            let text = usize::try_from(revision - 1).ok().and_then(|at| all.get(at));
            let text = text.and_then(|texts| texts.get(&ordinal));
            if standing.as_ref().map(|(_, text)| text) == text {
                continue;
            }
            if let Some((from, text)) = standing.take() {
                let end = Some(revision).filter(|end| *end <= head);
                told.push((ordinal, from, end, text));
            }
            standing = text.map(|text| (revision, text.clone()));
        }
    }
    let (first, last) = period;
    told.retain(|(_, from, end, _)| *from <= last && end.is_none_or(|end| end > first));
    told
}

/// Applies some change; the number makes values that there were not before.
fn change(document: &Document, what: u64, (random, number): (usize, usize)) {
    let whole = |items: usize| {
        let item = |at: usize| format!(r#"{{"n":{number},"t":[{{"x":{at}}},{{"x":{number}}}]}}"#);
        let items: Vec<_> = (0..items).map(item).collect();
        format!(r#"{{"data":[{}],"other":{number}}}"#, items.join(","))
    };
    let head: serde_json::Value = document.head().ok().map_or_else(Default::default, |head| {
        serde_json::from_str(&head.to_json().unwrap()).unwrap()
    });
    let Some(items) = head["data"].as_array().map(Vec::len).filter(|items| *items > 0) else {
        document.put(whole(random % 9), &how()).unwrap();
        return;
    };
    let (at, to) = (random % items, random / 7 % items);
    let patch = match what {
        0 => format!(r#"{{"op":"add","path":"/data/{at}","value":{{"n":{number},"t":[]}}}}"#),
        1 => format!(r#"{{"op":"remove","path":"/data/{at}"}}"#),
        2 => format!(r#"{{"op":"move","from":"/data/{at}","path":"/data/{to}"}}"#),
        3 => format!(r#"{{"op":"add","path":"/data/{at}/t/0","value":{{"x":{number}}}}}"#),
        4 => format!(r#"{{"op":"replace","path":"/data/{at}/t","value":[{{"x":{number}}}]}}"#),
        5 => format!(r#"{{"op":"add","path":"/other","value":{number}}}"#),
        6 => format!(r#"{{"op":"add","path":"/data/{at}/k{}","value":{number}}}"#, number % 3),
        7 => r#"{"op":"remove","path":"/data"}"#.to_owned(),
        8 => {
            document.put(whole(items), &how()).unwrap();
            return;
        }
        9 => {
            let _ = document.revert_to(Revision(1 + number as u64 / 2), &how());
            return;
        }
        _ => format!(r#"{{"op":"replace","path":"/data/{at}/n","value":{number}}}"#),
    };
    document.patch(format!("[{patch}]"), &how()).unwrap();
}

#[test]
fn versions_of_elements_are_what_they_were_revision_by_revision() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let mut random = 11_u64;
    for number in 0..240 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        change(&document, (random >> 40) % 14, ((random >> 33) as usize % 1_000, number));
        if number % 90 == 60 {
            db.checkpoint().unwrap();
        }
        if number == 150 {
            db.delete_document("d", &how()).unwrap();
        }
    }
    let head = document.head_revision().unwrap().0;
    for path in ["$.data[*]", "$.data[*].t[*]"] {
        let path: LabelPath = path.parse().unwrap();
        for (first, last) in [(1, head), (1, 1), (head, head), (40, 90), (120, head - 10)] {
            let snapshot = document.head().unwrap();
            let found = snapshot.version_columns(&path, Revision(first)..=Revision(last)).unwrap();
            let expected = told_by_revisions(&document, &path, (first, last));
            assert_eq!(told_by_rows(&found), expected, "{path} from {first} to {last}");
        }
    }
    let beyond = Revision(1)..=Revision(head + 1);
    let path = "$.data[*]".parse().unwrap();
    let error = document.head().unwrap().version_columns(&path, beyond).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// It went on to the end, however long that took.
#[test]
fn versions_of_elements_are_looked_for_as_long_as_they_are_waited_for() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    for number in 0..20 {
        document.put(format!("[{number}]"), &how()).unwrap();
    }
    let (path, mut asked) = ("$[*]".parse().unwrap(), 0);
    let mut go_on = || {
        asked += 1;
        if asked < 7 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let all = Revision(1)..=Revision(20);
    let found = document.head().unwrap().version_columns_while(&path, all, &mut go_on);
    assert_eq!(found.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(asked, 7);
}

#[test]
fn versions_of_many_elements_are_cut_at_row_groups() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let items = |from: u64, to: u64| (from..to).map(|n| n.to_string()).collect::<Vec<_>>();
    document.put(format!("[{}]", items(0, 10_000).join(",")), &how()).unwrap();
    document.put(format!("[{}]", items(4_000, 9_000).join(",")), &how()).unwrap();
    let path = "$[*]".parse().unwrap();
    let columns =
        document.head().unwrap().version_columns(&path, Revision(1)..=Revision(2)).unwrap();
    let told = told_by_rows(&columns);
    assert_eq!(told, told_by_revisions(&document, &path, (1, 2)));
    assert_eq!(told.iter().filter(|(_, _, end, _)| *end == Some(2)).count(), 5_000);
}

#[test]
fn ranges_are_joined_and_taken_from_others() {
    let of = |ends: &[(u64, u64)]| ends.iter().map(|(start, end)| *start..*end).collect::<Vec<_>>();
    assert_eq!(joined(of(&[(7, 9), (1, 3), (3, 5), (20, 21)])), of(&[(1, 5), (7, 9), (20, 21)]));
    let from = of(&[(0, 10), (20, 30), (40, 50)]);
    assert_eq!(without(&from, &[]), from);
    assert_eq!(without(&from, &from), []);
    let others = of(&[(2, 4), (8, 22), (29, 41), (49, 60)]);
    assert_eq!(without(&from, &others), of(&[(0, 2), (4, 8), (22, 29), (41, 49)]));
    assert_eq!(without(&of(&[(5, 6)]), &of(&[(0, 9)])), []);
}
