//! What moves leave behind: pairs of nodes, kept with the revision that made them.

use std::sync::Arc;

use crate::io::{Device, MemoryDevice};
use crate::{CommitOptions, Database, Document, JsonPointer, NodeId, Options, Position, Revision};

const JSON: &str = r#"{"a":{"x":1},"b":{"y":2},"list":[{"m":1},{"n":2}]}"#;

fn options() -> CommitOptions {
    CommitOptions::default()
}

fn document(db: &Database) -> Document {
    let document = db.create_document("d").unwrap();
    document.put(JSON, &options()).unwrap();
    document
}

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

fn last(text: &str) -> Position {
    Position::Last(text.parse().unwrap())
}

fn id(document: &Document, revision: u64, at: &str) -> NodeId {
    document.at(Revision(revision)).unwrap().node(&pointer(at)).unwrap().id
}

/// The moves of a revision as pointers: what they made, and of what, a revision before.
fn moves(document: &Document, revision: u64) -> Vec<(String, String)> {
    let (now, before) = (Revision(revision), Revision(revision - 1));
    let moves = document.tree.moves(now).unwrap();
    let place = |at, node| document.at(at).unwrap().pointer(node).unwrap().to_string();
    moves.into_iter().map(|moved| (place(now, moved.to), place(before, moved.from))).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(to, from)| (to.to_owned(), from.to_owned())).collect()
}

#[test]
fn a_move_to_another_path_is_kept_through_a_crash_and_a_checkpoint() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::default());
    let open = || {
        let options = Options { background: false, ..Options::default() };
        Database::open_device(Arc::clone(&device), options).unwrap()
    };
    let db = open();
    let d = document(&db);
    d.rename_field(&pointer("/a"), "z", &options()).unwrap();
    d.set(&pointer("/b/y"), "3", &options()).unwrap();
    d.move_to(&pointer("/list/1"), &last("/b"), Some("n"), &options()).unwrap();
    d.patch(r#"[{"op":"move","from":"/z","path":"/list/-"}]"#, &options()).unwrap();
    drop((d, db));
    let mut db = open();
    for _ in 0..3 {
        let d = db.document("d").unwrap();
        assert_eq!(moves(&d, 2), pairs(&[("/z", "/a")]));
        assert_eq!(moves(&d, 3), []);
        assert_eq!(moves(&d, 4), pairs(&[("/b/n", "/list/1")]));
        assert_eq!(moves(&d, 5), pairs(&[("/list/1", "/z")]));
        assert!(db.check().unwrap().is_clean());
        db.checkpoint().unwrap();
        drop((d, db));
        db = open();
    }
}

#[test]
fn a_place_in_the_same_array_or_object_is_no_move() {
    let d = document(&Database::memory().unwrap());
    d.move_to(&pointer("/list/0"), &last("/list"), None, &options()).unwrap();
    d.move_to(&pointer("/a"), &last(""), None, &options()).unwrap();
    d.patch(r#"[{"op":"move","from":"/list/0","path":"/list/1"}]"#, &options()).unwrap();
    assert_eq!([moves(&d, 2), moves(&d, 3), moves(&d, 4)], [[], [], []]);
}

/// Operations of one patch, and the moves that come of it.
type Case = (&'static str, &'static [(&'static str, &'static str)]);

#[test]
fn moves_of_one_commit_lead_from_the_oldest_place_to_the_newest() {
    let cases: [Case; 9] = [
        // Twice, and back again.
        (r#"["/a","/c"],["/c","/d"]"#, &[("/d", "/a")]),
        (r#"["/a","/c"],["/c","/a"]"#, &[]),
        // Removed afterwards, itself or what it was moved into.
        (r#"["/a","/c"],["/c"]"#, &[]),
        (r#"["/a","/b/a"],["/b"]"#, &[]),
        // What has come into something goes along with it.
        (r#"["/a","/b/a"],["/b","/c"]"#, &[("/c/a", "/a"), ("/c", "/b")]),
        // Something goes out of what has moved.
        (r#"["/a","/c"],["/c/x","/x"]"#, &[("/c", "/a"), ("/x", "/a/x")]),
        (r#"["/list","/c"],["/c/0/m","/m"]"#, &[("/c", "/list")]),
        // Two change places.
        (r#"["/a","/c"],["/b","/a"],["/c","/b"]"#, &[("/a", "/b"), ("/b", "/a")]),
        // What another takes the place of.
        (r#"["/a/x","/b/y"]"#, &[("/b/y", "/a/x")]),
    ];
    for (operations, expected) in cases {
        let d = document(&Database::memory().unwrap());
        let operations: Vec<Vec<String>> =
            serde_json::from_str(&format!("[{operations}]")).unwrap();
        let operations = operations.iter().map(|tokens| match tokens.as_slice() {
            [from, to] => format!(r#"{{"op":"move","from":"{from}","path":"{to}"}}"#),
            tokens => format!(r#"{{"op":"remove","path":"{}"}}"#, tokens[0]),
        });
        let patch = operations.collect::<Vec<_>>().join(",");
        let outcome = d.patch(format!("[{patch}]"), &options()).unwrap();
        if outcome.is_committed() {
            let mut found = moves(&d, 2);
            let mut expected = pairs(expected);
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{patch}");
        }
    }
}

#[test]
fn what_was_made_in_the_same_commit_was_moved_from_nowhere() {
    let d = document(&Database::memory().unwrap());
    let patch = r#"[{"op":"add","path":"/new","value":1},
        {"op":"move","from":"/new","path":"/list/0"}]"#;
    d.patch(patch, &options()).unwrap();
    assert_eq!(moves(&d, 2), []);
    assert_eq!(d.head().unwrap().to_json().unwrap(), JSON.replace("[{", "[1,{"));
}

#[test]
fn an_undone_move_moves_back_to_the_same_nodes() {
    let d = document(&Database::memory().unwrap());
    let (a, x) = (id(&d, 1, "/a"), id(&d, 1, "/a/x"));
    d.rename_field(&pointer("/a"), "z", &options()).unwrap();
    d.undo(Revision(2), &options()).unwrap();
    assert_eq!((id(&d, 3, "/a"), id(&d, 3, "/a/x")), (a, x));
    assert_eq!(moves(&d, 3), pairs(&[("/a", "/z")]));
    assert_eq!(d.head().unwrap().to_json().unwrap(), JSON);
}
