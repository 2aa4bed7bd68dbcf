//! Changes of single places against a naive model, and what they do to nodes.

use std::sync::Arc;

use duramen::io::{Device, MemoryDevice};
use duramen::{
    ChangeKind, CommitOptions, Database, Document, ErrorKind, JsonPath, JsonPointer, Options,
    Outcome, Position, Revision, Target,
};
use proptest::collection::vec;
use proptest::prelude::*;

use model::{Json, Path, Place, Refused};

mod model;

fn plain() -> CommitOptions {
    CommitOptions::default()
}

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

fn document(json: &str) -> Document {
    let document = Database::memory().unwrap().create_document("d").unwrap();
    document.put(json, &plain()).unwrap();
    document
}

fn text(document: &Document) -> String {
    document.head().unwrap().to_json().unwrap()
}

/// What a random change is made of.
#[derive(Debug, Clone)]
struct Draw {
    kind: u8,
    from: u16,
    to: u16,
    place: u8,
    name: u8,
    value: u8,
}

fn any_draw() -> impl Strategy<Value = Draw> {
    (0..14_u8, any::<u16>(), any::<u16>(), 0..8_u8, 0..8_u8, any::<u8>()).prop_map(
        |(kind, from, to, place, name, value)| Draw { kind, from, to, place, name, value },
    )
}

/// What the model and the document made of a change.
type Made = (Result<(), Refused>, duramen::Result<Outcome>);

/// A document and its model, version by version.
struct Pair {
    document: Document,
    versions: Vec<Json>,
    /// What the random changes are made in: the rest is not looked at.
    top: Path,
}

fn value(draw: u8) -> String {
    let values = [
        "1",
        "2.50",
        "null",
        "true",
        r#""x""#,
        "[]",
        "{}",
        "[1,2,3]",
        r#"{"a":1,"b":[{}]}"#,
        r#"[{"n":1},{"n":2},[[]]]"#,
        r#"{"new":{"a":{"b":null}},"a":null}"#,
        "1E400",
    ];
    match usize::from(draw) % (values.len() + 1) {
        long if long == values.len() => format!("\"{}\"", "long ".repeat(1_000)),
        index => values[index].to_owned(),
    }
}

impl Pair {
    fn new(document: Document, json: &str, top: &[&str]) -> Self {
        document.put(json, &plain()).unwrap();
        let top = top.iter().map(|&token| token.to_owned()).collect();
        Self { document, versions: vec![Json::parse(json)], top }
    }

    fn now(&self) -> &Json {
        self.versions.last().unwrap()
    }

    fn version(&self, revision: Revision) -> &Json {
        &self.versions[usize::try_from(revision.0).unwrap() - 1]
    }

    fn target(&self, path: &[String], by_node: bool) -> Target {
        let mut pointer = JsonPointer::root();
        for token in path {
            pointer.push(token.as_str());
        }
        match self.document.head().unwrap().node(&pointer) {
            Ok(node) if by_node => Target::Node(node.id),
            _ => Target::Pointer(pointer),
        }
    }

    /// Makes a random change and compares what came of it.
    fn step(&mut self, draw: &Draw) {
        let below = self.now().at(&self.top).map(Json::places).unwrap_or(vec![Vec::new()]);
        let all = |path: &Path| [self.top.clone(), path.clone()].concat();
        let from = all(&below[usize::from(draw.from) % below.len()]);
        let to = all(&below[usize::from(draw.to) % below.len()]);
        if draw.kind == 12 || draw.kind == 13 {
            return self.go_back(draw);
        }
        let mut next = self.now().clone();
        let expected = self.change(draw, (&from, &to), &mut next);
        let at = format!("{draw:?} {from:?} {to:?} {}", self.now());
        assert_eq!(expected.1.is_ok(), expected.0.is_ok(), "{at}: {expected:?}");
        if let Ok(true) = expected.1 {
            self.versions.push(next);
        }
        assert_eq!(text(&self.document), self.now().to_string(), "{at}");
    }

    /// Makes the change in the model and in the document, where it may make a revision.
    fn change(
        &self,
        draw: &Draw,
        (from, to): (&Path, &Path),
        next: &mut Json,
    ) -> (Result<(), Refused>, duramen::Result<bool>) {
        let name = ["a", "b", "new", "n"].get(usize::from(draw.name)).copied();
        let (document, new) = (&self.document, value(draw.value));
        let json = Json::parse(&new);
        let [source, target] = [from, to].map(|path| self.target(path, draw.place > 3));
        let (place, position) = match draw.place % 4 {
            0 => (Place::Before, Position::Before(target)),
            1 => (Place::After, Position::After(target)),
            2 => (Place::First, Position::First(target)),
            _ => (Place::Last, Position::Last(target)),
        };
        let (index, remove) = (usize::from(draw.place), usize::from(draw.name));
        let slot = next.slot(place, to);
        let (model, made) = match draw.kind {
            0 | 1 => (
                slot.and_then(|slot| next.insert(&slot, name, json)),
                document.insert(&position, name, &new, &plain()),
            ),
            2 => {
                let end = next.slot(Place::Last, from);
                let is_array = next.at(from).is_ok_and(|at| !at.is_object());
                let end = end.and_then(|slot| if is_array { Ok(slot) } else { Err(Refused) });
                (
                    end.and_then(|slot| next.insert(&slot, None, json)),
                    document.append(&source, &new, &plain()),
                )
            }
            3 => (
                next.splice(from, (index, remove), json),
                document.splice(&source, (index as u64, remove as u64), &new, &plain()),
            ),
            4 => (next.replace(from, json), document.replace(&source, &new, &plain())),
            5 => (next.remove(from).map(drop), document.remove(&source, &plain())),
            6 | 7 => (
                slot.and_then(|slot| next.relocate(from, slot, name)),
                document.move_to(&source, &position, name, &plain()),
            ),
            8 => self.copy(next, (from, slot), (&source, &position), name),
            9 => {
                let name = name.unwrap_or("z");
                (next.rename(from, name), document.rename_field(&source, name, &plain()))
            }
            10 => {
                let token = ["-", "new", "0", "2"][usize::from(draw.place) % 4];
                let path = [from.clone(), vec![token.to_owned()]].concat();
                let target = self.target(&path, false);
                (next.set(&path, json), document.set(&target, &new, &plain()))
            }
            _ => self.merge(next, json),
        };
        (model, made.map(|outcome| outcome.is_committed()))
    }

    fn copy(
        &self,
        next: &mut Json,
        (from, slot): (&Path, Result<model::Slot, Refused>),
        (source, position): (&Target, &Position),
        name: Option<&str>,
    ) -> Made {
        let copy = next.at(from).cloned();
        let kept = slot.as_ref().ok().and_then(|slot| next.kept_name(from, slot));
        let new_name = name.map(str::to_owned).or(kept);
        let model = slot.and_then(|slot| next.insert(&slot, new_name.as_deref(), copy?));
        (model, self.document.copy(source, position, name, &plain()))
    }

    fn merge(&self, next: &mut Json, mut patch: Json) -> Made {
        for token in self.top.iter().rev() {
            patch = Json::Object(vec![(token.clone(), patch)]);
        }
        next.merge(&patch);
        (Ok(()), self.document.merge_patch(patch.to_string(), &plain()))
    }

    /// Undoes a revision, or goes back to one.
    fn go_back(&mut self, draw: &Draw) {
        let head = self.versions.len() as u64;
        let revision = Revision(1 + u64::from(draw.from) % head);
        if draw.kind == 12 {
            let outcome = self.document.revert_to(revision, &plain()).unwrap();
            let back = self.version(revision).clone();
            if outcome.is_committed() {
                self.versions.push(back.clone());
            }
            assert_eq!(text(&self.document), back.to_string(), "{revision}");
            return;
        }
        // Most often one of the last revisions: those before have changed since.
        let revision = Revision((head - u64::from(draw.to) % 4 % head).max(1));
        match self.document.undo(revision, &plain()) {
            Err(error) if revision.0 == 1 => assert_eq!(error.kind(), ErrorKind::Invalid),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                assert_ne!(revision.0, head, "{error}");
                assert!(self.has_changed(revision), "{error}");
            }
            Ok(outcome) => {
                let now = text(&self.document);
                if outcome.is_committed() {
                    self.versions.push(Json::parse(&now));
                }
                if revision.0 == head {
                    assert_eq!(now, self.version(Revision(head - 1)).to_string());
                }
                self.check_undone(revision);
            }
        }
        assert_eq!(text(&self.document), self.now().to_string());
    }

    /// Whether anything that a revision changed is not as it left it.
    fn has_changed(&self, revision: Revision) -> bool {
        let diff = self.document.diff(Revision(revision.0 - 1), revision).unwrap();
        let head = self.document.head().unwrap();
        diff.changes.iter().any(|change| {
            let now = head.pointer(change.node).ok().map(|pointer| {
                let mut text = Vec::new();
                head.append_json(&pointer, &duramen::Format::default(), &mut text).unwrap();
                String::from_utf8(text).unwrap()
            });
            // A new order is in the way of another one; what was removed may have no way back.
            now != change.after
                || matches!(change.kind, ChangeKind::Reordered | ChangeKind::Removed)
        })
    }

    /// What an undone revision had changed is as before it.
    fn check_undone(&self, revision: Revision) {
        let diff = self.document.diff(Revision(revision.0 - 1), revision).unwrap();
        let head = self.document.head().unwrap();
        for change in &diff.changes {
            let is_shifted = |kind| {
                let twin = diff.changes.iter().find(|o| o.node == change.node && o.kind == kind);
                twin.is_some()
            };
            match change.kind {
                ChangeKind::Added if !is_shifted(ChangeKind::Removed) => {
                    assert!(head.pointer(change.node).is_err(), "{change:?}");
                }
                ChangeKind::Removed if is_shifted(ChangeKind::Added) => {}
                ChangeKind::Removed | ChangeKind::Replaced => {
                    let pointer = head.pointer(change.node).unwrap();
                    let mut text = Vec::new();
                    head.append_json(&pointer, &duramen::Format::default(), &mut text).unwrap();
                    assert_eq!(change.before.as_deref().unwrap().as_bytes(), text, "{change:?}");
                }
                ChangeKind::Added | ChangeKind::Reordered => {}
            }
        }
    }

    /// Every revision is still what it was.
    fn check_versions(&self, document: &Document) {
        assert_eq!(document.head_revision().unwrap(), Revision(self.versions.len() as u64));
        for (revision, version) in (1..).map(Revision).zip(&self.versions) {
            assert_eq!(document.at(revision).unwrap().to_json().unwrap(), version.to_string());
        }
    }

    /// What the patch from one revision to another makes of the one is the other.
    fn check_patches(&self) {
        let scratch = Database::memory().unwrap();
        let last = self.versions.len();
        let pairs = (1..last).map(|a| (a, a + 1)).chain([(1, last), (last, 1)]);
        for (number, (a, b)) in pairs.enumerate() {
            let (before, after) = (Revision(a as u64), Revision(b as u64));
            let patch = self.document.diff(before, after).unwrap().to_json_patch();
            let copy = scratch.create_document(&number.to_string()).unwrap();
            copy.put(self.versions[a - 1].to_string(), &plain()).unwrap();
            copy.patch(&patch, &plain()).unwrap_or_else(|error| panic!("{patch}: {error}"));
            let patched = Json::parse(&text(&copy)).sorted();
            assert_eq!(patched, self.versions[b - 1].sorted(), "{patch}");
        }
    }
}

/// Makes changes in a document and reopens the database, with and without a checkpoint.
fn run(json: &str, draws: &[Draw]) {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::default());
    let options = Options { background: false, ..Options::default() };
    let db = Database::open_device(Arc::clone(&device), options.clone()).unwrap();
    let mut pair = Pair::new(db.create_document("d").unwrap(), json, &[]);
    let halves = draws.split_at(draws.len() / 2);
    halves.0.iter().for_each(|draw| pair.step(draw));
    db.checkpoint().unwrap();
    halves.1.iter().for_each(|draw| pair.step(draw));
    pair.check_versions(&pair.document);
    pair.check_patches();
    drop((std::mem::replace(&mut pair.document, document("0")), db));
    for _ in 0..2 {
        let db = Database::open_device(Arc::clone(&device), options.clone()).unwrap();
        pair.check_versions(&db.document("d").unwrap());
        assert!(db.check().unwrap().is_clean());
        db.checkpoint().unwrap();
    }
}

fn small() -> String {
    r#"{"a":{"b":[1,{"n":2},3],"c":"x"},"list":[{"a":1,"b":2},{"a":3},[4,5,[6]]],"n":null}"#.into()
}

/// An object of so many fields that it is kept as a map.
fn wide() -> String {
    let fields: Vec<String> = (0..300).map(|i| format!(r#""f{i}":{i}"#)).collect();
    format!(r#"{{{},"a":{{"b":[1,2]}}}}"#, fields.join(","))
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn changes_do_what_the_model_says(draws in vec(any_draw(), 1..25)) {
        run(&small(), &draws);
    }
}

proptest! {
    #![proptest_config(cases(15))]

    #[test]
    fn changes_of_maps_do_what_the_model_says(draws in vec(any_draw(), 1..15)) {
        run(&wide(), &draws);
    }
}

/// Makes changes below one member of a document that has all the paths it can have.
fn run_full(top: &str, draws: &[Draw]) {
    let fields: Vec<String> = (0..256).map(|f| format!(r#""f{f}":0"#)).collect();
    let group = fields.join(",");
    let mut groups = vec![format!(r#""more":{{"f":{{{group}}},"g":{{{group}}}}}"#)];
    groups.extend((0..253).map(|g| format!(r#""f{g}":{{{group}}}"#)));
    let whole = r#"{"a":[{"b":[1,{"c":2}]}],"new":{"n":null}}"#;
    let few = r#""few":{"f1":[1],"f2":{}}"#;
    let json = format!(r#"{{{few},{},"whole":{whole}}}"#, groups.join(","));
    let document = Database::memory().unwrap().create_document("d").unwrap();
    let mut pair = Pair::new(document, &json, &[top]);
    assert!(pair.document.stats().unwrap().opaque_nodes > 0);
    for draw in draws {
        pair.step(draw);
    }
    pair.check_versions(&pair.document);
}

proptest! {
    #![proptest_config(cases(3))]

    #[test]
    fn changes_inside_what_is_stored_whole_do_what_the_model_says(draws in vec(any_draw(), 12)) {
        run_full("whole", &draws);
    }

    #[test]
    fn changes_without_paths_to_spare_do_what_the_model_says(draws in vec(any_draw(), 12)) {
        run_full("few", &draws);
    }
}

#[test]
fn what_moves_within_its_array_or_object_stays_the_same_node() {
    let document = document(r#"{"list":[{"n":1},2,3],"a":{"x":1,"y":2}}"#);
    let id = |at: &str| document.head().unwrap().node(&pointer(at)).unwrap().id;
    let (first, n, y) = (id("/list/0"), id("/list/0/n"), id("/a/y"));
    let last = Position::Last("/list".parse().unwrap());
    document.move_to(&first, &last, None, &plain()).unwrap();
    document.move_to(&y, &Position::Before("/a/x".parse().unwrap()), None, &plain()).unwrap();
    let up = r#"[{"op":"move","from":"/list/2","path":"/list/1"}]"#;
    document.patch(up, &plain()).unwrap();
    assert_eq!(text(&document), r#"{"list":[2,{"n":1},3],"a":{"y":2,"x":1}}"#);
    assert_eq!((id("/list/1"), id("/list/1/n"), id("/a/y")), (first, n, y));
    let history = document.head().unwrap().history(&pointer("/list/1/n")).unwrap();
    assert_eq!(history.count(), 1);
}

#[test]
fn what_is_undone_comes_back_as_the_nodes_it_was() {
    let json = r#"{"list":[1,{"a":[true,false]},3],"o":{"x":[[1],[2]],"y":null}}"#;
    let document = document(json);
    let places = ["/list/1", "/list/1/a/1", "/o/x", "/o/x/1/0", "/list/0", "/list/2"];
    let ids = || {
        let head = document.head().unwrap();
        places.map(|place| head.node(&pointer(place)).unwrap().id)
    };
    let before = ids();
    let changes: [&dyn Fn() -> duramen::Result<duramen::Outcome>; 5] = [
        &|| document.remove(&pointer("/list/1"), &plain()),
        &|| document.set(&pointer("/o/x"), "7", &plain()),
        &|| document.put("[1]", &plain()),
        &|| document.put(r#"{"list":[3,9,1],"o":{"y":null,"x":[]}}"#, &plain()),
        &|| document.splice(&pointer("/list"), (0, 3), "[4,5]", &plain()),
    ];
    for change in changes {
        let revision = change().unwrap().revision();
        document.undo(revision, &plain()).unwrap();
        assert_eq!((text(&document), ids()), (json.to_owned(), before));
    }
    for change in changes {
        change().unwrap();
    }
    document.revert_to(Revision(1), &plain()).unwrap();
    assert_eq!((text(&document), ids()), (json.to_owned(), before));
    assert!(!document.revert_to(Revision(1), &plain()).unwrap().is_committed());
}

#[test]
fn an_undo_keeps_what_others_changed_since() {
    let document = document(r#"{"list":["a","b","c","d"],"x":1,"y":1}"#);
    let change = r#"[{"op":"remove","path":"/list/1"},{"op":"remove","path":"/list/1"},
        {"op":"replace","path":"/x","value":2},{"op":"add","path":"/z","value":0}]"#;
    document.patch(change, &plain()).unwrap();
    let later = r#"[{"op":"add","path":"/list/1","value":"new"},{"op":"remove","path":"/list/0"},
        {"op":"replace","path":"/y","value":5},{"op":"add","path":"/w","value":3}]"#;
    document.patch(later, &plain()).unwrap();
    assert_eq!(text(&document), r#"{"list":["new","d"],"x":2,"y":5,"z":0,"w":3}"#);
    document.undo(Revision(2), &plain()).unwrap();
    assert_eq!(text(&document), r#"{"list":["b","c","new","d"],"x":1,"y":5,"w":3}"#);
}

#[test]
fn an_order_is_undone_around_what_came_and_went_since() {
    let document = document("[1,2,3,4]");
    document
        .move_to(&pointer("/3"), &Position::First("".parse().unwrap()), None, &plain())
        .unwrap();
    document
        .patch(r#"[{"op":"add","path":"/2","value":9},{"op":"remove","path":"/3"}]"#, &plain())
        .unwrap();
    assert_eq!(text(&document), "[4,1,9,3]");
    document.undo(Revision(2), &plain()).unwrap();
    assert_eq!(text(&document), "[1,9,3,4]");
    // Another order on top of an order is in its way.
    document.move_to(&pointer("/0"), &Position::Last("".parse().unwrap()), None, &plain()).unwrap();
    document.move_to(&pointer("/0"), &Position::Last("".parse().unwrap()), None, &plain()).unwrap();
    let error = document.undo(Revision(5), &plain()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
}

#[test]
fn an_undo_in_conflict_names_what_changed_since() {
    let document = document(r#"{"a":1,"b":[1,2],"c":{"d":1}}"#);
    let change = r#"[{"op":"replace","path":"/a","value":2},{"op":"remove","path":"/b/0"},
        {"op":"replace","path":"/c/d","value":2},{"op":"add","path":"/e","value":1}]"#;
    document.patch(change, &plain()).unwrap();
    let id = |at: &str| document.head().unwrap().node(&pointer(at)).unwrap().id;
    let (a, d, e) = (id("/a"), id("/c/d"), id("/e"));
    document.merge_patch(r#"{"a":3,"c":null,"e":{}}"#, &plain()).unwrap();
    let error = document.undo(Revision(2), &plain()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    for named in [format!("\"/a\" ({a})"), format!("\"/c/d\" ({d})"), format!("\"/e\" ({e})")] {
        assert!(error.message().contains(&named), "{error}");
    }
    assert_eq!(document.head_revision().unwrap(), Revision(3));
    assert_eq!(document.undo(Revision(1), &plain()).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(document.undo(Revision(4), &plain()).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(document.revert_to(Revision(9), &plain()).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_conflict_names_ten_values_at_most() {
    let list = |value: u32| format!("[{}]", vec![value.to_string(); 30].join(","));
    let document = document(&list(0));
    document.put(list(1), &plain()).unwrap();
    document.put(list(2), &plain()).unwrap();
    let error = document.undo(Revision(2), &plain()).unwrap_err();
    assert_eq!(error.message().matches("(#").count(), 10, "{error}");
    assert!(error.message().contains(", and more;"), "{error}");
}

#[test]
fn a_transaction_undoes_and_reverts_over_its_own_changes() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    document.put(r#"{"a":[1,2],"b":1}"#, &plain()).unwrap();
    document.remove(&pointer("/a/0"), &plain()).unwrap();
    let mut transaction = db.transaction();
    transaction.append("d", &pointer("/a"), b"3").unwrap();
    transaction.undo("d", Revision(2)).unwrap();
    assert_eq!(transaction.get("d", &pointer("")).unwrap(), r#"{"a":[1,2,3],"b":1}"#);
    transaction.set("d", &pointer("/b"), b"{}").unwrap();
    transaction.revert_to("d", Revision(2)).unwrap();
    assert_eq!(transaction.get("d", &pointer("")).unwrap(), r#"{"a":[2],"b":1}"#);
    assert!(transaction.commit(&plain()).unwrap().revisions.is_empty());
}

/// One change that is refused: in a transaction, on the document `d`.
type Refusal<'a> = dyn Fn(&mut duramen::Transaction) -> duramen::Result<()> + 'a;

#[test]
fn a_refused_change_says_why_and_leaves_the_transaction_as_it_was() {
    use ErrorKind::{Conflict, Invalid, NotFound};
    let db = Database::memory().unwrap();
    let json = r#"{"a":{"name":"x","n":1},"list":[1,2]}"#;
    db.create_document("d").unwrap().put(json, &plain()).unwrap();
    let target = |text: &str| Target::parse(text).unwrap();
    let last = |text: &str| Position::Last(target(text));
    let beside = |text: &str| Position::After(target(text));
    let deep = format!("{}1{}", "[".repeat(511), "]".repeat(511));
    let long = "n".repeat(40_000);
    let refused: [(ErrorKind, &str, &Refusal<'_>); 22] = [
        (NotFound, "did you mean \"/a/name\"?", &|t| t.replace("d", &target("/a/nam"), b"1")),
        (NotFound, "\"/a/n\" is the number 1", &|t| t.remove("d", &target("/a/n/x"))),
        (NotFound, "\"/list\" is an array of 2 elements", &|t| t.remove("d", &target("/list/2"))),
        (NotFound, "the array has 2 elements", &|t| t.set("d", &target("/list/3"), b"1")),
        (NotFound, "\"/a/n\" is the number 1", &|t| t.set("d", &target("/a/n/x"), b"1")),
        (NotFound, "#999 is not there", &|t| t.set("d", &target("#999"), b"1")),
        (Invalid, "give the new member a name", &|t| t.insert("d", &last("/a"), None, b"1")),
        (Invalid, "is an array", &|t| t.insert("d", &last("/list"), Some("x"), b"1")),
        (Conflict, "a \"/a/n\" already", &|t| t.insert("d", &last("/a"), Some("n"), b"1")),
        (NotFound, "number 1: only arrays", &|t| t.insert("d", &last("/a/n"), None, b"1")),
        (Invalid, "beside the root", &|t| t.insert("d", &beside(""), None, b"1")),
        (Invalid, "40000 bytes", &|t| t.insert("d", &last("/a"), Some(&long), b"1")),
        (Invalid, "levels deep", &|t| t.append("d", &target("/list"), deep.as_bytes())),
        (Invalid, "not an array", &|t| t.append("d", &target("/a"), b"1")),
        (NotFound, "2 from index 1", &|t| t.splice("d", &target("/list"), (1, 2), b"[]")),
        (Invalid, "as a JSON array", &|t| t.splice("d", &target("/list"), (0, 1), b"1")),
        (Invalid, "into itself", &|t| t.move_to("d", &target("/a"), &last("/a"), Some("b"))),
        (Invalid, "the root cannot be moved", &|t| t.move_to("d", &target(""), &last(""), None)),
        (Conflict, "a \"/a/n\" already", &|t| t.rename_field("d", &target("/a/name"), "n")),
        (Invalid, "only fields have names", &|t| t.rename_field("d", &target("/list/0"), "n")),
        (Invalid, "give the new member a name", &|t| {
            t.move_to("d", &target("/list/0"), &last("/a"), None)
        }),
        (Invalid, "the root cannot be removed", &|t| t.remove("d", &target(""))),
    ];
    for (kind, message, refused) in refused {
        let mut transaction = db.transaction();
        transaction.set("d", &pointer("/b"), b"1").unwrap();
        transaction.remove("d", &pointer("/b")).unwrap();
        let error = refused(&mut transaction).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(message), "{error}");
        assert_eq!(transaction.get("d", &pointer("")).unwrap(), json, "{error}");
        assert!(transaction.commit(&plain()).unwrap().revisions.is_empty(), "{error}");
    }
}

/// A put whose fault lies deep in it once left the part before it to be committed.
#[test]
fn a_put_that_fails_half_done_leaves_nothing_to_commit() {
    let db = Database::memory().unwrap();
    db.create_document("d").unwrap().put(r#"{"a":1}"#, &plain()).unwrap();
    let mut transaction = db.transaction();
    let json = format!(r#"{{"a":2,"b":{{"{}":1}}}}"#, "n".repeat(40_000));
    assert_eq!(transaction.put("d", json.as_bytes()).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(transaction.commit(&plain()).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(text(&db.document("d").unwrap()), r#"{"a":1}"#);
}

#[test]
fn what_a_path_finds_is_changed_everywhere_in_one_commit() {
    let path = |text: &str| JsonPath::parse(text).unwrap();
    let json = r#"{"a":[1,2,3,4,5,6,7,8,9,10,11,12],"b":{"a":[1],"b":{"a":0}},"10":{"a":2}}"#;
    let cases = [
        ("$..a", r#"{"a":0,"b":{"a":0,"b":{"a":0}},"10":{"a":0}}"#, 4),
        ("$.b..*", r#"{"a":LIST,"b":{"a":0,"b":0},"10":{"a":2}}"#, 2),
        ("$.a[0,0,1]", r#"{"a":[0,0,REST],"b":{"a":[1],"b":{"a":0}},"10":{"a":2}}"#, 2),
        ("$", "0", 1),
        ("$.c", json, 0),
    ];
    let rest = "3,4,5,6,7,8,9,10,11,12";
    for (found, expected, count) in cases {
        let document = document(json);
        let (outcome, places) = document.set_all(&path(found), "0", &plain()).unwrap();
        assert_eq!((places, outcome.is_committed()), (count, count > 0), "{found}");
        let expected = expected.replace("LIST", &format!("[1,2,{rest}]")).replace("REST", rest);
        assert_eq!(text(&document), expected, "{found}");
    }
    let removed = [
        ("$..a", r#"{"b":{"b":{}},"10":{}}"#, 4),
        ("$.a[?@ > 1]", r#"{"a":[1],"b":{"a":[1],"b":{"a":0}},"10":{"a":2}}"#, 11),
        ("$.a[1:9:3,9]", r#"{"a":[1,3,4,6,7,9,11,12],"b":{"a":[1],"b":{"a":0}},"10":{"a":2}}"#, 4),
    ];
    for (found, expected, count) in removed {
        let document = document(json);
        let (outcome, places) = document.remove_all(&path(found), &plain()).unwrap();
        assert_eq!((places, outcome.revision()), (count, Revision(2)), "{found}");
        assert_eq!(text(&document), expected, "{found}");
    }
    let error = document(json).remove_all(&path("$"), &plain()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn a_deleted_document_is_reverted_to_life_and_its_end_is_not_undone() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    document.put(r#"{"a":[1,{"b":2}]}"#, &plain()).unwrap();
    let id = document.head().unwrap().node(&pointer("/a/1/b")).unwrap().id;
    db.delete_document("d", &plain()).unwrap();
    assert_eq!(document.undo(Revision(1), &plain()).unwrap_err().kind(), ErrorKind::NotFound);
    document.revert_to(Revision(1), &plain()).unwrap();
    assert_eq!(text(&document), r#"{"a":[1,{"b":2}]}"#);
    assert_eq!(document.head().unwrap().pointer(id).unwrap(), pointer("/a/1/b"));
    assert_eq!(document.undo(Revision(2), &plain()).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(document.revert_to(Revision(2), &plain()).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn a_copy_of_another_document_keeps_its_name_in_an_object_and_has_none_in_an_array() {
    let db = Database::memory().unwrap();
    let options = CommitOptions::default();
    let defaults = db.create_document("defaults").unwrap();
    defaults.put(r#"{"owner":"ann","list":[7]}"#, &options).unwrap();
    let config = db.create_document("config").unwrap();
    config.put(r#"{"list":[]}"#, &options).unwrap();
    let source = defaults.head().unwrap();
    let pointer = |text: &str| JsonPointer::parse(text).unwrap();
    let root = Position::Last(pointer("").into());
    let list = Position::Last(pointer("/list").into());
    config.copy_from((&source, &pointer("/owner")), &root, None, &options).unwrap();
    config.copy_from((&source, &pointer("/owner")), &list, None, &options).unwrap();
    config.copy_from((&source, &pointer("/list/0")), &root, Some("n"), &options).unwrap();
    let unnamed = config.copy_from((&source, &pointer("/list/0")), &root, None, &options);
    assert_eq!(unnamed.unwrap_err().kind(), ErrorKind::Invalid);
    let json = config.head().unwrap().to_json().unwrap();
    assert_eq!(json, r#"{"list":["ann"],"owner":"ann","n":7}"#);
}

#[test]
fn a_path_that_finds_one_value_names_it_and_any_other_path_is_refused() {
    let document = Database::memory().unwrap().create_document("d").unwrap();
    document.put(r#"{"list":[{"n":1},{"n":2}]}"#, &plain()).unwrap();
    let path = |text: &str| text.parse::<Target>().unwrap();
    document.set(&path("$.list[?@.n == 2].n"), "5", &plain()).unwrap();
    document.append(&path("$..list"), "7", &plain()).unwrap();
    let last = path("$.list[-1]");
    let head = document.head().unwrap();
    assert_eq!(head.to_json().unwrap(), r#"{"list":[{"n":1},{"n":5},7]}"#);
    assert_eq!(head.resolve(&last).unwrap().to_string(), "/list/2");
    assert_eq!(head.cursor(&last).unwrap().to_json().unwrap(), "7");
    // What is found twice is still one value.
    assert_eq!(head.resolve(&path("$.list[2,-1]")).unwrap().to_string(), "/list/2");
    for (text, kind) in [("$.list[*].n", ErrorKind::Invalid), ("$.none", ErrorKind::NotFound)] {
        assert_eq!(head.resolve(&path(text)).unwrap_err().kind(), kind, "{text}");
        let removed = document.remove(&path(text), &plain());
        assert_eq!(removed.unwrap_err().kind(), kind, "{text}");
    }
    assert_eq!(document.head_revision().unwrap(), Revision(3));
}
