//! Typed collections as of a revision or time, by page, and by the indexes that types declare.

use duramen::{
    CommitOptions, Database, ErrorKind, Filter, IndexDefinition, KeyKind, Micros, Order, Query,
    Record, Revision, ScanOptions, TypedCollection, TypedRecord,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Record, Serialize, Deserialize)]
#[record(index(name = "by_world_score", paths("world", "score")))]
#[record(unique(name = "serial", paths("items[*].serial")))]
struct Player {
    #[record(key)]
    name: String,
    world: String,
    score: u64,
    #[record(index)]
    tags: Vec<String>,
    #[serde(default)]
    items: Vec<Item>,
    #[record(version)]
    version: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Item {
    serial: u64,
}

fn how() -> CommitOptions {
    CommitOptions::default()
}

fn at(seconds: i64) -> CommitOptions {
    CommitOptions { timestamp: Some(Micros(seconds * 1_000_000)), ..how() }
}

fn player(name: &str, score: u64) -> Player {
    let (name, world) = (name.to_owned(), "nether".to_owned());
    Player { name, world, score, tags: Vec::new(), items: Vec::new(), version: 0 }
}

fn scores(values: impl Iterator<Item = duramen::Result<Player>>) -> Vec<(u64, u64)> {
    values.map(|value| value.map(|value| (value.score, value.version)).unwrap()).collect()
}

/// Ann and bob at revision 1, ann with another score at 2, bob deleted at 3.
fn players(db: &Database) -> TypedCollection<Player> {
    let players = db.create_typed_collection("players").unwrap();
    players.put_many(&[player("bob", 5), player("ann", 3)], &at(10)).unwrap();
    players.put(&player("ann", 9), &at(20)).unwrap();
    players.delete(&"bob".to_owned(), &at(30)).unwrap();
    players
}

#[test]
fn a_revision_is_read_as_the_collection_now_is() {
    let db = Database::memory().unwrap();
    let players = players(&db);
    let [ann, bob] = ["ann", "bob"].map(str::to_owned);
    let both = Query::new().order_by(Order::asc("score"));
    for (then, wanted) in [
        (players.at(Revision(1)).unwrap(), vec![(3, 1), (5, 1)]),
        (players.at_time(Micros(29_999_999)).unwrap(), vec![(5, 1), (9, 2)]),
        (players.head().unwrap(), vec![(9, 2)]),
    ] {
        assert_eq!(scores(then.query(&both).unwrap()), wanted);
        let mut scanned = scores(then.scan(&ScanOptions::default()).unwrap());
        scanned.sort_unstable();
        assert_eq!(scanned, wanted);
        let page = then.page(&both, None, 10).unwrap();
        assert_eq!(scores(page.values.into_iter().map(Ok)), wanted);
        assert_eq!(then.count().unwrap(), wanted.len() as u64);
        assert_eq!(then.count_query(&both).unwrap(), wanted.len() as u64);
        let many = then.get_many(&[bob.clone(), ann.clone()]).unwrap();
        assert_eq!(many, [then.get(&bob).unwrap(), then.get(&ann).unwrap()]);
        assert_eq!(then.exists(&bob).unwrap(), many[0].is_some());
        let versions = many.iter().map(|value| value.as_ref().map(|value| value.version));
        let keys = [bob.clone(), ann.clone()];
        assert_eq!(then.versions(&keys).unwrap(), versions.collect::<Vec<_>>());
        let last = then.history(&ann).unwrap().next().unwrap().unwrap();
        assert_eq!(last.value, many[1]);
        assert_eq!(then.snapshot().revision(), then.revision());
    }
    let good = Filter::gt("score", 4);
    assert_eq!(players.at(Revision(1)).unwrap().count_where(&good).unwrap(), 1);
    let early = players.get_at_time(&ann, Micros(10_000_000)).unwrap().unwrap();
    assert_eq!((early.score, early.version), (3, 1));
    assert_eq!(players.get_at_time(&bob, Micros(30_000_000)).unwrap(), None);
    let before = players.at_time(Micros(9_999_999)).unwrap_err();
    assert_eq!(before.kind(), ErrorKind::NotFound);
    assert_eq!(players.at(Revision(4)).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_commit_is_read_over_several_typed_collections() {
    let db = Database::memory().unwrap();
    let players = players(&db);
    let before = db.snapshot();
    players.put(&player("cy", 1), &how()).unwrap();
    let then = before.typed_collection::<Player>("players").unwrap();
    assert_eq!((then.count().unwrap(), players.count().unwrap()), (1, 2));
    db.create_collection("numbered", KeyKind::U64).unwrap();
    let other = db.snapshot().typed_collection::<Player>("numbered").unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Invalid);
}

#[test]
fn pages_lead_on_and_back_by_value() {
    let db = Database::memory().unwrap();
    let players = db.create_typed_collection::<Player>("players").unwrap();
    let all: Vec<Player> = (0..5).map(|n| player(&format!("p{n}"), 9 - n)).collect();
    players.put_many(&all, &how()).unwrap();
    let query = Query::new().order_by(Order::asc("score"));
    let first = players.page(&query, None, 2).unwrap();
    let names = |values: &[Player]| -> Vec<String> {
        values.iter().map(|value| value.name.clone()).collect()
    };
    assert_eq!(
        (names(&first.values), first.previous.clone()),
        (names(&all[3..]).into_iter().rev().collect(), None)
    );
    // What comes behind the page moves nothing in it.
    players.put(&player("new", 0), &how()).unwrap();
    let second = players.page(&query, first.next.as_deref(), 2).unwrap();
    assert_eq!(names(&second.values), ["p2", "p1"]);
    assert_eq!(second.counts.found, 2);
    let back = players.page(&query, second.previous.as_deref(), 2).unwrap();
    assert_eq!(back.values, first.values);
    let refused = players.page(&Query::new(), second.next.as_deref(), 2).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
}

#[test]
fn records_are_changed_by_what_is_in_them_but_not_their_keys_and_versions() {
    let db = Database::memory().unwrap();
    let players = db.create_typed_collection::<Player>("players").unwrap();
    let all: Vec<Player> = (0..6).map(|n| player(&format!("p{n}"), n)).collect();
    players.put_many(&all, &how()).unwrap();
    let good = Filter::ge("score", 4);
    assert_eq!(players.update_where(&good, r#"{"world":"end"}"#, &how()).unwrap(), 2);
    assert_eq!(players.count_where(&Filter::eq("world", "end")).unwrap(), 2);
    for patch in [r#"{"world":"x","version":7}"#, r#"{"name":"p0"}"#] {
        let refused = players.update_where(&good, patch, &how()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{patch}");
        assert!(refused.message().contains("leave it out"), "{refused}");
    }
    let refused = players.update_where(&good, "{", &how()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert_eq!(players.get(&"p4".to_owned()).unwrap().unwrap().version, 2);
    assert_eq!(players.delete_where(&good, &how()).unwrap(), 2);
    let keys = ["p0", "p1", "p9"].map(str::to_owned);
    assert_eq!(players.delete_many(&keys, &how()).unwrap(), 2);
    assert_eq!(players.count().unwrap(), 2);
    assert!(players.exists(&"p2".to_owned()).unwrap());
    assert!(!players.exists(&keys[0]).unwrap());
}

/// An index of one field was all that could be declared, and one of an array found nothing.
#[test]
fn declared_indexes_have_several_paths_and_elements() {
    let db = Database::memory().unwrap();
    let players = db.create_typed_collection::<Player>("players").unwrap();
    let wanted = [
        IndexDefinition::new("by_world_score", &["world", "score"]).unwrap(),
        IndexDefinition::new("serial", &["items[*].serial"]).unwrap().unique(),
        IndexDefinition::new("tags", &["tags[*]"]).unwrap(),
    ];
    assert_eq!(players.collection().indexes().unwrap(), wanted);
    assert_eq!(players.create_indexes().unwrap(), 0);
    for n in 0..64 {
        let mut new = player(&format!("p{n}"), n);
        new.tags = vec![format!("t{n}"), "all".to_owned()];
        new.items = vec![Item { serial: n }, Item { serial: n + 1_000 }];
        players.insert(&new, &how()).unwrap();
    }
    for (filter, by) in [
        (Filter::contains("tags", "t7"), "tags"),
        (Filter::eq("world", "nether").and(Filter::eq("score", 7)), "by_world_score"),
    ] {
        let query = Query::new().filter(filter);
        assert_eq!(scores(players.query(&query).unwrap()), [(7, 1)]);
        let steps = players.collection().explain(&query).unwrap().steps.join("; ");
        assert!(steps.contains(by), "{steps}");
    }
    let mut same = player("late", 1);
    same.items = vec![Item { serial: 7 }];
    let refused = players.insert(&same, &how()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
}

/// Declared by hand, as the derive macro has nothing for it: the key is no member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Pair {
    left: u64,
    right: u64,
}

impl TypedRecord for Pair {
    type Key = String;
    const INDEXES: &'static [duramen::IndexDeclaration] = &[];

    fn key(&self) -> String {
        format!("{}/{}", self.left, self.right)
    }
}

/// Saved again, such a value would have been another record.
#[test]
fn a_value_with_another_key_than_its_record_is_refused() {
    let db = Database::memory().unwrap();
    let players = players(&db);
    let json = r#"{"name":"ann","world":"end","score":1,"tags":[]}"#;
    players.collection().put("dee", json, &how()).unwrap();
    let dee = "dee".to_owned();
    let revision = players.head().unwrap().revision();
    let errors = [
        players.get(&dee).unwrap_err(),
        players.get_at(&dee, revision).unwrap_err(),
        players.get_many(std::slice::from_ref(&dee)).unwrap_err(),
        players.scan(&ScanOptions::default()).unwrap().find_map(Result::err).unwrap(),
        players.query(&Query::new()).unwrap().find_map(Result::err).unwrap(),
        players.page(&Query::new(), None, 9).unwrap_err(),
        players.history(&dee).unwrap().next().unwrap().unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let wanted = r#"record dee of collection "players", field name, has the key ann"#;
        assert!(error.message().contains(wanted), "{error}");
    }
    let pairs = db.create_typed_collection::<Pair>("pairs").unwrap();
    pairs.put(&Pair { left: 1, right: 2 }, &how()).unwrap();
    assert_eq!(pairs.get(&"1/2".to_owned()).unwrap(), Some(Pair { left: 1, right: 2 }));
    pairs.collection().put("2/2", r#"{"left":1,"right":2}"#, &how()).unwrap();
    let error = pairs.get(&"2/2".to_owned()).unwrap_err();
    assert!(error.message().contains(r#"record 2/2 of collection "pairs", has the key 1/2"#));
}

/// The key of a type of one's own may be told as another integer type than the collection has.
#[test]
fn keys_are_compared_as_the_collection_has_them() {
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    struct Id(u32);

    impl From<Id> for duramen::Key {
        fn from(id: Id) -> Self {
            Self::I64(id.0.into())
        }
    }

    impl duramen::RecordKey for Id {
        const KIND: KeyKind = KeyKind::U64;
    }

    #[derive(Debug, PartialEq, Record, Serialize, Deserialize)]
    struct Seat {
        #[record(key)]
        id: Id,
    }

    let seats = Database::memory().unwrap().create_typed_collection::<Seat>("seats").unwrap();
    seats.put(&Seat { id: Id(7) }, &how()).unwrap();
    assert_eq!(seats.get(&Id(7)).unwrap(), Some(Seat { id: Id(7) }));
    let mut scan = seats.scan(&ScanOptions::default()).unwrap();
    assert_eq!(scan.next().unwrap().unwrap(), Seat { id: Id(7) });
}
