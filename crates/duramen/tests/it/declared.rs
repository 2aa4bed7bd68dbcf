//! What options declare of a document: ids of elements, and objects that are maps.

use std::collections::BTreeMap;

use duramen::{
    CommitOptions, Database, Document, DocumentOptions, ErrorKind, JsonPointer, KeyKind, NodeId,
    Revision,
};
use proptest::prelude::*;

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

fn plain() -> CommitOptions {
    CommitOptions::default()
}

fn ids(path: &str, field: &str) -> DocumentOptions {
    let ids = [(path.parse().unwrap(), field.to_owned())].into();
    DocumentOptions { ids, ..DocumentOptions::default() }
}

fn maps(path: &str) -> DocumentOptions {
    DocumentOptions { maps: [path.parse().unwrap()].into(), ..DocumentOptions::default() }
}

fn node(document: &Document, at: &str) -> NodeId {
    document.head().unwrap().node(&pointer(at)).unwrap().id
}

#[test]
fn elements_follow_their_ids() {
    let db = Database::memory().unwrap();
    let document = db.create_document_with("d", &ids("$.list", "id")).unwrap();
    document
        .put(r#"{"list":[{"id":1,"n":"a"},{"id":2,"n":"b"},{"id":3,"n":"c"}]}"#, &plain())
        .unwrap();
    let before: Vec<NodeId> = (0..3).map(|at| node(&document, &format!("/list/{at}"))).collect();
    let text = r#"{"list":[{"id":3,"n":"C"},{"id":4,"n":"a"},{"n":"B","id":2},{"id":1,"n":"a"}]}"#;
    document.put(text, &plain()).unwrap();
    assert_eq!(document.head().unwrap().to_json().unwrap(), text);
    assert_eq!(node(&document, "/list/0"), before[2]);
    assert_eq!(node(&document, "/list/2"), before[1]);
    assert_eq!(node(&document, "/list/3"), before[0]);
    assert!(!before.contains(&node(&document, "/list/1")), "a new id is a new element");
    let only = r#"{"list":[{"id":9,"n":"a"}]}"#;
    document.put(only, &plain()).unwrap();
    assert!(!before.contains(&node(&document, "/list/0")), "not even if it is the only one");
    let at_1 = document.at(Revision(1)).unwrap();
    assert_eq!(at_1.pointer(before[1]).unwrap().to_string(), "/list/1");
}

/// Options are remembered from one transaction to the next, which has to see others at once.
#[test]
fn options_count_from_where_they_are_declared_on() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let mut count = 0;
    // Two elements that change their places and all but their ids.
    let mut next = || {
        count += 1;
        let id = count % 2;
        format!(r#"[{{"id":{id},"n":{count}}},{{"id":{},"n":-{count}}}]"#, 1 - id)
    };
    document.put(next(), &plain()).unwrap();
    let follows = |json: &str| {
        let before = node(&document, "/0");
        document.put(json, &plain()).unwrap();
        node(&document, "/1") == before
    };
    assert!(!follows(&next()));
    document.set_options(&ids("$", "id"), &plain()).unwrap();
    assert!(follows(&next()) && follows(&next()));
    document.set_options(&ids("$", "n"), &plain()).unwrap();
    assert!(!follows(&next()));

    // Staged options count in their transaction, and nowhere once they are taken back.
    let staged = |json: &str, is_kept: bool| {
        let before = node(&document, "/0");
        let mut transaction = db.transaction();
        transaction.declare("d", &ids("$", "id")).unwrap();
        transaction.put("d", json.as_bytes()).unwrap();
        if !is_kept {
            return transaction.rollback();
        }
        transaction.commit(&plain()).unwrap();
        assert_eq!(node(&document, "/1"), before);
    };
    staged(&next(), false);
    next();
    assert!(!follows(&next()), "taken back");
    staged(&next(), true);
    assert!(follows(&next()));
    db.create_document("other").unwrap();
    assert!(follows(&next()), "another revision of the catalogue says the same");
}

#[test]
fn elements_without_an_id_of_their_own_are_compared_as_in_any_array() {
    let db = Database::memory().unwrap();
    let document = db.create_document_with("d", &ids("$", "id")).unwrap();
    document
        .put(r#"[{"id":1},{"x":1},{"id":2,"y":0},{"id":2,"y":1},{"id":null},7]"#, &plain())
        .unwrap();
    let before: Vec<NodeId> = (0..6).map(|at| node(&document, &format!("/{at}"))).collect();
    let text = r#"[{"id":2,"y":0},{"x":1},{"id":2,"y":1},{"id":null},7,{"id":1,"z":[]}]"#;
    document.put(text, &plain()).unwrap();
    let after: Vec<NodeId> = (0..6).map(|at| node(&document, &format!("/{at}"))).collect();
    assert_eq!(document.head().unwrap().to_json().unwrap(), text);
    assert_eq!(after[5], before[0], "its id is its own");
    assert_eq!(after[2..5], before[3..6], "the others keep their order");
}

#[test]
fn ids_are_found_in_maps_and_nested_arrays() {
    let db = Database::memory().unwrap();
    let mut options = ids("$.teams{*}.players", "key");
    options.maps.insert("$.teams".parse().unwrap());
    options.maps.insert("$.teams{*}.players[*]".parse().unwrap());
    let document = db.create_document_with("d", &options).unwrap();
    document.put(r#"{"teams":{"x":{"players":[{"key":"a"},{"key":"b"}]}}}"#, &plain()).unwrap();
    let b = node(&document, "/teams/x/players/1");
    document
        .put(r#"{"teams":{"x":{"players":[{"n":1,"key":"b"},{"key":"a"}]}}}"#, &plain())
        .unwrap();
    assert_eq!(node(&document, "/teams/x/players/0"), b);
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

#[test]
fn declared_maps_take_no_paths_for_their_names() {
    let db = Database::memory().unwrap();
    let document = db.create_document_with("d", &maps("$.players")).unwrap();
    let mut plain_paths = 0;
    for name in 0..50 {
        let at = pointer(&format!("/players/p{name}"));
        if name == 0 {
            document.put(r#"{"players":{}}"#, &plain()).unwrap();
        }
        document.set(&at, r#"{"score":1}"#, &plain()).unwrap();
        if name == 0 {
            plain_paths = document.stats().unwrap().paths;
        }
    }
    assert_eq!(document.stats().unwrap().paths, plain_paths, "one path for all of them");
    assert_eq!(document.head().unwrap().node(&pointer("/players")).unwrap().children, Some(50));
    let score = document.head().unwrap().node(&pointer("/players/p7/score")).unwrap();
    assert_eq!(score.created, Revision(9));
    document.remove(&pointer("/players/p7"), &plain()).unwrap();
    document.set(&pointer("/players/p7"), r#"{"score":2}"#, &plain()).unwrap();
    assert_eq!(node(&document, "/players/p7/score"), score.id, "the same node with a gap");
}

#[test]
fn nothing_stored_is_converted_when_options_change() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    document.put(r#"{"players":{"ann":1,"bob":2}}"#, &plain()).unwrap();
    let ann = node(&document, "/players/ann");
    let paths = document.stats().unwrap().paths;
    let set = document.set_options(&maps("$.players"), &plain()).unwrap();
    assert!(set.sequence.0 > 0 && set.revisions.is_empty());
    assert!(!document.put(r#"{"players":{"ann":1,"bob":2}}"#, &plain()).unwrap().is_committed());
    document.set(&pointer("/players/cy"), "3", &plain()).unwrap();
    let text = r#"{"players":{"dan":4,"ann":1,"cy":3}}"#;
    document.put(text, &plain()).unwrap();
    assert_eq!(document.head().unwrap().to_json().unwrap(), text);
    assert_eq!(node(&document, "/players/ann"), ann);
    assert_eq!(document.stats().unwrap().paths, paths + 1, "new names share one");
    let text = |revision| document.at(Revision(revision)).unwrap().to_json().unwrap();
    assert_eq!(text(1), r#"{"players":{"ann":1,"bob":2}}"#);
    assert_eq!(text(2), r#"{"players":{"ann":1,"bob":2,"cy":3}}"#);
    assert!(db.check().unwrap().is_clean(), "{:?}", db.check());
}

#[test]
fn options_are_read_back_and_stay_with_a_renamed_document() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    assert!(document.options().unwrap().is_empty());
    let mut options = ids(r#"$["a.b"][*].c"#, "key");
    options.maps.insert("$.m{*}".parse().unwrap());
    document.set_options(&options, &plain()).unwrap();
    assert_eq!(document.options().unwrap(), options);
    let none = document.set_options(&options, &plain()).unwrap();
    assert_eq!(none.sequence.0, 0, "nothing changed");
    db.rename_document("d", "e", &plain()).unwrap();
    assert_eq!(db.document("e").unwrap().options().unwrap(), options);
    assert!(db.create_document("d").unwrap().options().unwrap().is_empty());
    document.set_options(&DocumentOptions::default(), &plain()).unwrap();
    assert!(db.document("e").unwrap().options().unwrap().is_empty());
    let many = (0..1_025).map(|n| format!("$.m{n}").parse().unwrap()).collect();
    let many = DocumentOptions { maps: many, ..DocumentOptions::default() };
    assert_eq!(document.set_options(&many, &plain()).unwrap_err().kind(), ErrorKind::Invalid);
    let error = db.create_document_with("many", &many).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(db.documents().unwrap(), ["d", "e"]);
}

/// An element of a property test: its id, if it has one, and a value.
type Element = (Option<u8>, u8);

fn json(elements: &[Element]) -> String {
    let element = |(id, value): &Element| match id {
        Some(id) => format!("{{\"id\":{id},\"v\":{value}}}"),
        None => format!("{{\"v\":{value}}}"),
    };
    format!("[{}]", elements.iter().map(element).collect::<Vec<_>>().join(","))
}

/// The nodes of elements whose id no other element has.
fn identified(document: &Document, elements: &[Element]) -> BTreeMap<u8, NodeId> {
    let mut nodes = BTreeMap::new();
    for (at, id) in elements.iter().enumerate().filter_map(|(at, (id, _))| Some((at, (*id)?))) {
        if elements.iter().filter(|(other, _)| *other == Some(id)).count() == 1 {
            nodes.insert(id, node(document, &format!("/{at}")));
        }
    }
    nodes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// However arrays are shuffled and changed, an element with an id of its own keeps its node,
    /// and no node has two ids.
    #[test]
    fn nodes_follow_ids_through_any_change(
        lists in prop::collection::vec(
            prop::collection::vec((prop::option::weighted(0.9, 0..24u8), 0..3u8), 0..24),
            2..6,
        ),
    ) {
        let db = Database::memory().unwrap();
        let document = db.create_document_with("d", &ids("$", "id")).unwrap();
        let mut before = BTreeMap::new();
        for (index, list) in lists.iter().enumerate() {
            document.put(json(list), &plain()).unwrap();
            prop_assert_eq!(document.head().unwrap().to_json().unwrap(), json(list));
            let after = identified(&document, list);
            for (id, node) in &after {
                if let Some(known) = before.get(id) {
                    prop_assert_eq!(node, known, "id {} in list {}", id, index);
                }
                let is_shared = |list: &[Element], id: u8| {
                    list.iter().filter(|(other, _)| *other == Some(id)).count() > 1
                };
                let had = before.iter().find(|(_, known)| *known == node).map(|(had, _)| *had);
                let is_plain = |had| is_shared(list, had) || is_shared(&lists[index - 1], *id);
                prop_assert!(had.is_none_or(|had| had == *id || is_plain(had)), "{had:?} {id}");
            }
            before = after;
        }
        prop_assert!(db.check().unwrap().is_clean());
    }

    /// A permutation is one change of order: no element is added, removed or changed.
    #[test]
    fn a_permutation_changes_nothing_but_the_order(
        order in Just((0..40usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let db = Database::memory().unwrap();
        let document = db.create_document_with("d", &ids("$", "id")).unwrap();
        let text = |order: &[usize]| {
            let element = |id: &usize| format!("{{\"id\":\"e{id}\",\"v\":{}}}", id % 3);
            format!("[{}]", order.iter().map(element).collect::<Vec<_>>().join(","))
        };
        let sorted: Vec<usize> = (0..40).collect();
        document.put(text(&sorted), &plain()).unwrap();
        let nodes: Vec<NodeId> = (0..40).map(|at| node(&document, &format!("/{at}"))).collect();
        document.put(text(&order), &plain()).unwrap();
        for (at, &id) in order.iter().enumerate() {
            prop_assert_eq!(node(&document, &format!("/{at}")), nodes[id]);
        }
    }
}

/// A value that was put before its document was declared a collection was no object of records, and
/// was committed as one.
#[test]
fn what_is_put_before_its_document_is_declared_a_collection_is_looked_at() {
    let db = Database::memory().unwrap();
    let declared =
        DocumentOptions { collection: Some(KeyKind::Text), ..DocumentOptions::default() };
    let mut transaction = db.transaction();
    transaction.put("c", b"[1]").unwrap();
    transaction.declare("c", &declared).unwrap();
    assert_eq!(transaction.commit(&plain()).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(db.documents().unwrap().is_empty());
    let mut transaction = db.transaction();
    transaction.create_document("c").unwrap();
    transaction.expect("c", Revision(0)).unwrap();
    transaction.declare("c", &declared).unwrap();
    transaction.put("c", br#"{"a":{}}"#).unwrap();
    transaction.commit(&plain()).unwrap();
    assert_eq!(db.collections().unwrap(), ["c"]);
    assert!(db.collection("c").unwrap().exists("a").unwrap());
}
