//! Where moved values came from, and who set them before. In the random histories each number is
//! that of the revision which set it, so that every value says whom to blame.

use std::sync::Arc;

use duramen::io::MemoryDevice;
use duramen::{
    BlameEntry, BlameOptions, CommitOptions, Cursor, Database, Document, Format, JsonPointer,
    MovedFrom, NodeKind, Options, Position, Revision, Scope, Snapshot, Target,
};

use super::copies::{Random, target};
use super::{pointer, root};

const FOLLOW: BlameOptions = BlameOptions { depth: None, follow: true };

fn options() -> CommitOptions {
    CommitOptions::default()
}

fn moved_from(snapshot: &Snapshot, at: &Target) -> Option<MovedFrom> {
    let origin = snapshot.timeline(at, Scope::Node).unwrap().moved_from().unwrap();
    assert_eq!(snapshot.timeline(at, Scope::Subtree).unwrap().moved_from().unwrap(), origin);
    origin
}

/// Where a value was, before which revision.
fn origin(snapshot: &Snapshot, at: &str) -> Option<(String, u64)> {
    let origin = moved_from(snapshot, &at.parse().unwrap())?;
    Some((origin.pointer.to_string(), origin.revision.0))
}

fn blame(snapshot: &Snapshot, options: &BlameOptions) -> Vec<BlameEntry> {
    snapshot.blame(&root(), options).unwrap().map(Result::unwrap).collect()
}

/// A history of single changes, some of which move a value.
struct Moves {
    device: Arc<MemoryDevice>,
    database: Database,
    document: Document,
}

impl Moves {
    fn new(json: &str) -> Self {
        let device = Arc::new(MemoryDevice::new());
        let database = Database::open_device(device.clone(), Options::default()).unwrap();
        let document = database.create_document("d").unwrap();
        document.put(json, &options()).unwrap();
        Self { device, database, document }
    }

    fn reopen(self) -> Self {
        let Self { device, database, document } = self;
        database.checkpoint().unwrap();
        drop((document, database));
        let database = Database::open_device(device.clone(), Options::default()).unwrap();
        let document = database.document("d").unwrap();
        Self { device, database, document }
    }

    fn head(&self) -> Snapshot {
        self.document.head().unwrap()
    }

    /// All values below the root.
    fn values(&self) -> Vec<Cursor> {
        let root = self.head().cursor(&root()).unwrap();
        root.descendants(None).map(Result::unwrap).collect()
    }

    /// Puts the number of the next revision somewhere.
    fn set(&self, random: &mut Random) {
        let number = self.head().revision().0 + 1;
        let values = self.values();
        let place = random.choose(&values);
        let json = match random.below(3) {
            0 => format!(r#"{{"p":{number},"q":[{number},{number}]}}"#),
            _ => number.to_string(),
        };
        let place = match place.kind().unwrap() {
            NodeKind::Array => place.pointer().unwrap().to_string() + "/-",
            NodeKind::Object => format!("{}/n{}", place.pointer().unwrap(), random.below(4)),
            _ => place.pointer().unwrap().to_string(),
        };
        self.document.set(&pointer(&place), json, &options()).unwrap();
    }

    fn remove(&self, random: &mut Random) {
        let values = self.values();
        let place = random.choose(&values).pointer().unwrap();
        self.document.remove(&place, &options()).unwrap();
    }

    /// Moves or renames a value, if the choice allows it, and checks what is told of it. Returns
    /// how many values that made.
    fn relocate(&self, random: &mut Random) -> usize {
        let before = self.head();
        let values = self.values();
        let value = random.choose(&values);
        let (from, name) = (value.pointer().unwrap(), format!("m{}", before.revision()));
        let at: Target = from.clone().into();
        let holder = if random.below(3) == 0 {
            if value.name().unwrap().is_none() {
                return 0;
            }
            self.document.rename_field(&at, &name, &options()).unwrap();
            value.parent().unwrap()
        } else {
            let holder = random.choose(&values).clone();
            let (is_array, place) = (holder.kind().unwrap() == NodeKind::Array, holder.pointer());
            let place = place.unwrap();
            let goes = is_array || holder.kind().unwrap() == NodeKind::Object;
            if !goes || format!("{place}/").starts_with(&format!("{from}/")) {
                return 0;
            }
            let member = (!is_array).then_some(name.as_str());
            let position = Position::Last(place.into());
            self.document.move_to(&at, &position, member, &options()).unwrap();
            holder
        };
        self.check_origins(&before, &from, (&holder, &name))
    }

    /// Compares where all that was moved is said to come from with where it was.
    fn check_origins(&self, before: &Snapshot, from: &JsonPointer, to: (&Cursor, &str)) -> usize {
        let (after, (holder, name)) = (self.head(), to);
        let holder = after.cursor(&holder.node().into()).unwrap();
        let top = match holder.field(name).unwrap() {
            Some(field) => field,
            None => holder.last_child().unwrap().unwrap(),
        };
        let place = top.pointer().unwrap().to_string();
        let mut made = 0;
        let inner = top.descendants(None).map(Result::unwrap);
        for value in std::iter::once(top).chain(inner) {
            let now = value.pointer().unwrap();
            let rest = now.to_string().split_off(place.len());
            let then = pointer(&format!("{from}{rest}"));
            let node = before.node(&then).unwrap().id;
            let found = moved_from(&after, &value.node().into());
            if node == value.node() {
                assert_ne!(found.map(|found| found.revision), Some(after.revision()));
                continue;
            }
            let expected = MovedFrom { node, revision: after.revision(), pointer: then };
            assert_eq!(found.as_ref(), Some(&expected), "{now}");
            assert_eq!(moved_from(&after, &target(&now)), Some(expected), "{now}");
            made += 1;
        }
        made
    }

    /// Every number says which revision set it.
    fn check_blame(&self) {
        let snapshot = self.head();
        let mut entries = blame(&snapshot, &FOLLOW).into_iter();
        let mut newest = 0;
        for entry in entries.by_ref().filter(|entry| entry.kind == NodeKind::Number) {
            let mut text = Vec::new();
            snapshot.append_json(&entry.pointer, &Format::default(), &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert_eq!(entry.revision.to_string(), text, "{}", entry.pointer);
            assert!(newest.max(entry.revision.0) <= snapshot.revision().0);
            newest = newest.max(entry.revision.0);
        }
        let whole = blame(&snapshot, &BlameOptions { depth: Some(0), follow: true });
        assert!(whole.len() == 1 && whole[0].revision.0 >= newest);
    }

    /// All that is told of the newest revision.
    fn answers(&self) -> Vec<String> {
        let snapshot = self.head();
        let origins =
            self.values().into_iter().map(|value| moved_from(&snapshot, &value.node().into()));
        let entries = blame(&snapshot, &FOLLOW).into_iter().map(|entry| format!("{entry:?}"));
        origins.map(|origin| format!("{origin:?}")).chain(entries).collect()
    }
}

#[test]
fn moved_values_lead_back_to_where_they_were_and_to_who_set_them() {
    let mut made = 0;
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut moves = Moves::new(r#"{"a":{"x":1,"y":[1,{"z":1}]},"b":{},"c":[1,[1]],"d":1}"#);
        for _ in 0..40 {
            match random.below(10) {
                0..4 => moves.set(&mut random),
                4 if moves.values().len() > 12 => moves.remove(&mut random),
                5 => moves.database.checkpoint().unwrap(),
                6 if random.below(3) == 0 => moves = moves.reopen(),
                _ => made += moves.relocate(&mut random),
            }
            moves.check_blame();
        }
        let answers = moves.answers();
        let moves = moves.reopen();
        assert_eq!(moves.answers(), answers);
        assert!(moves.database.check().unwrap().is_clean());
    }
    assert!(made > 500, "{made}");
}

#[test]
fn origins_lead_on_to_the_places_before() {
    let moves = Moves::new(r#"{"a":{"x":1},"b":{},"list":[0]}"#);
    let d = &moves.document;
    d.rename_field(&pointer("/a"), "z", &options()).unwrap();
    d.move_to(&pointer("/z"), &Position::Last(target(&pointer("/b"))), None, &options()).unwrap();
    d.set(&pointer("/d"), "4", &options()).unwrap();
    d.patch(r#"[{"op":"move","from":"/b/z","path":"/list/0"}]"#, &options()).unwrap();
    d.set(&pointer("/list/0/x"), "6", &options()).unwrap();
    let moves = moves.reopen();
    for at in ["", "/x"] {
        let (mut chain, head) = (Vec::new(), moves.head());
        let mut next: Target = pointer(&format!("/list/0{at}")).into();
        while let Some(origin) = moved_from(&head, &next) {
            chain.push((origin.revision.0, origin.pointer.to_string()));
            next = origin.node.into();
        }
        let places = [(5, "/b/z"), (3, "/z"), (2, "/a")];
        assert_eq!(chain, places.map(|(revision, place)| (revision, format!("{place}{at}"))));
    }
    assert_eq!(origin(&moves.head(), ""), None);
    assert_eq!(origin(&moves.head(), "/list/1"), None);
}

#[test]
fn a_value_that_came_again_has_the_origin_of_its_newest_beginning() {
    let moves = Moves::new(r#"{"a":{"x":1},"b":{"x":2}}"#);
    let d = &moves.document;
    d.rename_field(&pointer("/a"), "z", &options()).unwrap();
    d.rename_field(&pointer("/b"), "a", &options()).unwrap();
    d.remove(&pointer("/a"), &options()).unwrap();
    d.set(&pointer("/a"), r#"{"x":1}"#, &options()).unwrap();
    let at = |revision| d.at(Revision(revision)).unwrap();
    assert_eq!(origin(&at(1), "/a/x"), None);
    assert_eq!(origin(&at(3), "/a/x"), Some(("/b/x".into(), 3)));
    // It is not there any more, and tells where it came from when it was.
    let x = at(3).node(&pointer("/a/x")).unwrap().id;
    assert_eq!(moved_from(&at(4), &x.into()).unwrap().revision, Revision(3));
    assert_eq!(origin(&at(5), "/a/x"), None);
    let z = at(5).node(&pointer("/z")).unwrap().id;
    assert_eq!(moved_from(&at(1), &z.into()), None);
}

#[test]
fn values_of_a_deleted_document_that_is_put_again_come_from_nowhere() {
    let moves = Moves::new(r#"{"a":1}"#);
    let d = &moves.document;
    d.rename_field(&pointer("/a"), "b", &options()).unwrap();
    moves.database.delete_document("d", &options()).unwrap();
    d.put(r#"{"b":1}"#, &options()).unwrap();
    assert_eq!(origin(&d.at(Revision(2)).unwrap(), "/b"), Some(("/a".into(), 2)));
    assert_eq!(origin(&moves.head(), "/b"), None);
}

/// The blame of a place with and without following moves, and where it says it was.
fn blamed(document: &Document, at: &str) -> (u64, u64, Option<String>) {
    let head = document.head().unwrap();
    let entry = |options| {
        let entries = blame(&head, &options);
        entries.into_iter().find(|entry| entry.pointer == pointer(at)).unwrap()
    };
    let (plain, followed) = (entry(BlameOptions::default()), entry(FOLLOW));
    assert_eq!(plain.moved_from, followed.moved_from);
    if let Some(from) = &plain.moved_from {
        assert_eq!(from.revision, plain.revision);
    }
    let place = plain.moved_from.map(|from| from.pointer.to_string());
    (plain.revision.0, followed.revision.0, place)
}

#[test]
fn a_rename_does_not_hide_who_set_a_value_unless_told_to() {
    let d = Moves::new(r#"{"a":{"x":1,"y":1},"b":1}"#).document;
    d.set(&pointer("/a/x"), "2", &options()).unwrap();
    d.rename_field(&pointer("/a"), "z", &options()).unwrap();
    assert_eq!(blamed(&d, ""), (3, 3, None));
    assert_eq!(blamed(&d, "/z"), (3, 1, Some("/a".into())));
    assert_eq!(blamed(&d, "/z/x"), (3, 2, None));
    assert_eq!(blamed(&d, "/z/y"), (3, 1, None));
    assert_eq!(blamed(&d, "/b"), (1, 1, None));
    d.undo(Revision(3), &options()).unwrap();
    assert_eq!(blamed(&d, "/a").1, 1);
    assert_eq!(blamed(&d, "/a/x").1, 2);
}

#[test]
fn what_a_commit_changes_besides_moving_it_is_that_commits() {
    let d = Moves::new(r#"{"a":{"x":1,"y":1},"l":[1,2],"b":{"x":1}}"#).document;
    let patch = r#"[{"op":"move","from":"/a","path":"/c"},{"op":"add","path":"/c/x","value":2},
        {"op":"move","from":"/l","path":"/m"},{"op":"add","path":"/m/0","value":0},
        {"op":"move","from":"/b","path":"/d"},{"op":"add","path":"/d/new","value":[3]}]"#;
    d.patch(patch, &options()).unwrap();
    assert_eq!(blamed(&d, "/c"), (2, 1, Some("/a".into())));
    assert_eq!(blamed(&d, "/c/x"), (2, 2, None));
    assert_eq!(blamed(&d, "/c/y"), (2, 1, None));
    assert_eq!(blamed(&d, "/m"), (2, 2, Some("/l".into())));
    assert_eq!(blamed(&d, "/d"), (2, 2, Some("/b".into())));
    assert_eq!(blamed(&d, "/d/x"), (2, 1, None));
    assert_eq!(blamed(&d, "/d/new"), (2, 2, None));
    assert_eq!(origin(&d.head().unwrap(), "/d/new/0"), None);
}

#[test]
fn a_value_that_another_takes_the_place_of_is_blamed_on_who_set_the_other() {
    let d = Moves::new(r#"{"a":1,"b":1}"#).document;
    d.set(&pointer("/a"), "2", &options()).unwrap();
    d.set(&pointer("/b"), "3", &options()).unwrap();
    d.patch(r#"[{"op":"move","from":"/a","path":"/b"}]"#, &options()).unwrap();
    assert_eq!(blamed(&d, "/b"), (4, 2, Some("/a".into())));
    // No value began there.
    assert_eq!(origin(&d.head().unwrap(), "/b"), None);
}
