//! Collections of values of Rust types.

use std::collections::HashMap;

use duramen::{
    CommitOptions, Database, ErrorKind, Filter, IndexDeclaration, IndexDefinition, KeyKind, Query,
    Record, RecordKey, Revision, ScanOptions, TypedCollection, TypedRecord,
};
use serde::{Deserialize, Serialize};

fn how() -> CommitOptions {
    CommitOptions::default()
}

#[derive(Debug, Clone, PartialEq, Record, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Player {
    #[record(version)]
    edit_count: u64,
    #[record(key)]
    nick_name: String,
    #[record(index)]
    team: Option<String>,
    #[record(unique)]
    #[serde(rename = "e-mail")]
    mail: String,
    places: Vec<Place>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Place {
    x: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Without a version, with a key of another type.
#[derive(Debug, Clone, PartialEq, Record, Serialize, Deserialize)]
struct Order {
    #[record(key)]
    id: u64,
    of: String,
}

fn player(name: &str, x: i64) -> Player {
    Player {
        edit_count: 0,
        nick_name: name.to_owned(),
        team: None,
        mail: format!("{name}@example.org"),
        places: vec![Place { x, note: Some("\u{e9}\"\\".to_owned()) }],
    }
}

fn players(db: &Database) -> TypedCollection<Player> {
    db.create_typed_collection("players").unwrap()
}

#[test]
fn values_are_read_as_they_were_saved_with_the_version_of_their_record() {
    let db = Database::memory().unwrap();
    let players = players(&db);
    let (mut ann, mut bob) = (player("ann", 1), player("bob", 2));
    assert!(players.save(&mut ann, &how()).unwrap().outcome.is_committed());
    players.save(&mut bob, &how()).unwrap();
    assert_eq!((ann.edit_count, bob.edit_count), (1, 1));
    let stored = players.collection().get("ann").unwrap().unwrap().json;
    let wanted = r#"{"nickName":"ann","team":null,"e-mail":"ann@example.org","#;
    assert!(stored.starts_with(wanted), "{stored}");
    ann.places[0].x = i64::MIN;
    ann.team = Some("red".to_owned());
    players.save(&mut ann, &how()).unwrap();
    assert_eq!(ann.edit_count, 2);
    assert!(!players.save(&mut ann, &how()).unwrap().outcome.is_committed());
    assert_eq!(players.get(&"ann".to_owned()).unwrap(), Some(ann.clone()));
    assert_eq!(players.get(&"eve".to_owned()).unwrap(), None);
    let keys = ["bob", "eve", "ann"].map(str::to_owned);
    let many = players.get_many(&keys).unwrap();
    assert_eq!(many, [Some(bob.clone()), None, Some(ann.clone())]);
    let scanned: Vec<_> =
        players.scan(&ScanOptions::default()).unwrap().map(Result::unwrap).collect();
    assert_eq!(scanned, [ann.clone(), bob]);
    let first = players.get_at(&"ann".to_owned(), Revision(1)).unwrap().unwrap();
    assert_eq!((first.edit_count, first.team), (1, None));
    assert!(players.delete(&"ann".to_owned(), &how()).unwrap());
    let history: Vec<_> = players.history(&"ann".to_owned()).unwrap().map(Result::unwrap).collect();
    let told = history.iter().map(|version| version.value.as_ref().map(|value| value.edit_count));
    assert_eq!(told.collect::<Vec<_>>(), [None, Some(2), Some(1)]);
    assert_eq!(history[1].stored.changed.len(), 2);
}

#[test]
fn saving_what_others_changed_is_a_conflict() {
    let db = Database::memory().unwrap();
    let players = players(&db);
    let mut ann = player("ann", 1);
    players.save(&mut ann, &how()).unwrap();
    let mut other = players.get(&"ann".to_owned()).unwrap().unwrap();
    other.team = Some("red".to_owned());
    players.save(&mut other, &how()).unwrap();
    ann.team = Some("blue".to_owned());
    for mut late in [ann, player("ann", 3)] {
        let before = late.clone();
        let error = players.save(&mut late, &how()).unwrap_err();
        assert_eq!((error.kind(), &late), (ErrorKind::Conflict, &before));
    }
    let forced = player("ann", 3);
    assert_eq!(players.put(&forced, &how()).unwrap().version, 3);
}

#[test]
fn a_record_of_another_form_is_refused_with_its_key_and_field() {
    let db = Database::memory().unwrap();
    let players = players(&db);
    let raw = players.collection();
    let place = r#"{"nickName":"p","e-mail":"m","team":null,"places":[{"x":1},{"x":"far"}]}"#;
    raw.put("place", place, &how()).unwrap();
    raw.put("empty", "{}", &how()).unwrap();
    for (key, wanted) in [("place", "places[1].x"), ("empty", "nickName")] {
        let error = players.get(&key.to_owned()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        assert!(text.contains(&format!("record {key} of")) && text.contains(wanted), "{text}");
    }
    assert!(players.scan(&ScanOptions::default()).unwrap().next().unwrap().is_err());
}

#[test]
fn types_say_their_keys_and_indexes() {
    let wanted = [
        IndexDeclaration { name: "team", paths: &["team"], is_unique: false },
        IndexDeclaration { name: "e-mail", paths: &["e-mail"], is_unique: true },
    ];
    assert_eq!(Player::INDEXES, wanted);
    assert_eq!(Player::KEY_MEMBER, Some("nickName"));
    assert_eq!(Player::VERSION_MEMBER, Some("editCount"));
    assert_eq!((Order::INDEXES.len(), Order::VERSION_MEMBER), (0, None));
    let db = Database::memory().unwrap();
    let orders = db.create_typed_collection::<Order>("orders").unwrap();
    assert_eq!(orders.collection().key_kind(), KeyKind::U64);
    let values = [Order { id: 10, of: "pear".into() }, Order { id: 9, of: "apple".into() }];
    orders.put_many(&values, &how()).unwrap();
    let ids = orders.scan(&ScanOptions::default()).unwrap().map(|order| order.unwrap().id);
    assert_eq!(ids.collect::<Vec<_>>(), [9, 10]);
    let mut order = Order { id: 9, of: "plum".into() };
    assert_eq!(orders.save(&mut order, &how()).unwrap().version, 2);
    let error = db.typed_collection::<Player>("orders").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn declared_indexes_are_made_with_the_collection_and_answer_queries() {
    let db = Database::memory().unwrap();
    let players = db.create_typed_collection::<Player>("players").unwrap();
    let names = |players: &TypedCollection<Player>| {
        let indexes = players.collection().indexes().unwrap();
        indexes.into_iter().map(|index| index.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&players), ["e-mail", "team"]);
    let player = |nick_name: &str, team: Option<&str>, mail: &str| Player {
        edit_count: 0,
        nick_name: nick_name.into(),
        team: team.map(Into::into),
        mail: mail.into(),
        places: Vec::new(),
    };
    players.save(&mut player("ann", Some("red"), "a"), &how()).unwrap();
    players.save(&mut player("bob", None, "b"), &how()).unwrap();
    let same = players.save(&mut player("cy", None, "a"), &how()).unwrap_err();
    assert_eq!(same.kind(), ErrorKind::Conflict);
    let red = players.query(&Query::new().filter(Filter::eq("team", "red"))).unwrap();
    let red: Vec<Player> = red.map(Result::unwrap).collect();
    assert_eq!(red.len(), 1);
    assert_eq!((red[0].nick_name.as_str(), red[0].edit_count), ("ann", 1));
    players.collection().drop_index("team").unwrap();
    assert_eq!((players.create_indexes().unwrap(), players.create_indexes().unwrap()), (1, 0));
    assert_eq!(names(&players), ["e-mail", "team"]);
}

/// Two records that a type said were to have no value in common had one: an index of the name was
/// there.
#[test]
fn an_index_that_is_not_as_it_is_declared_is_told() {
    let db = Database::memory().unwrap();
    let players = players(&db);
    players.collection().drop_index("e-mail").unwrap();
    let other = IndexDefinition::new("e-mail", &[r#"["e-mail"]"#]).unwrap();
    players.collection().create_index(&other).unwrap();
    let error = players.create_indexes().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("another index \"e-mail\""), "{error}");
    players.collection().drop_index("e-mail").unwrap();
    assert_eq!(players.create_indexes().unwrap(), 1);
}

#[derive(Debug, Clone, PartialEq, Record, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(non_snake_case, reason = "other programs write such names")]
struct Ticket {
    #[record(key)]
    ID: u64,
    #[record(index, unique)]
    Seat_row: u64,
}

/// Such a type could make no collection.
#[test]
fn a_field_has_one_index_whatever_is_said_of_it() {
    let db = Database::memory().unwrap();
    let tickets = db.create_typed_collection::<Ticket>("tickets").unwrap();
    tickets.save(&mut Ticket { ID: 1, Seat_row: 7 }, &how()).unwrap();
    assert_eq!(tickets.collection().get(1_u64).unwrap().unwrap().json, r#"{"iD":1,"seatRow":7}"#);
    let same = tickets.save(&mut Ticket { ID: 2, Seat_row: 7 }, &how()).unwrap_err();
    assert_eq!(same.kind(), ErrorKind::Conflict);
}

#[derive(Debug, Record, Serialize, Deserialize)]
#[record(index(name = "both", paths("a[*]", "b[*]")))]
struct Crossed {
    #[record(key)]
    id: u64,
    a: Vec<u64>,
    b: Vec<u64>,
}

/// The collection was there all the same, so that another try was a conflict.
#[test]
fn a_type_that_declares_what_is_no_index_makes_no_collection() {
    let db = Database::memory().unwrap();
    for _ in 0..2 {
        let error = db.create_typed_collection::<Crossed>("crossed").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    assert!(db.collections().unwrap().is_empty());
}

#[cfg(feature = "uuid")]
#[derive(Debug, Clone, PartialEq, Record, Serialize, Deserialize)]
struct Parcel {
    #[record(key)]
    id: uuid::Uuid,
    #[record(version)]
    version: u64,
    to: String,
}

/// In the order of their bytes, and under the texts that other programs write.
#[cfg(feature = "uuid")]
#[test]
fn uuids_are_keys_without_a_type_of_ones_own() {
    let db = Database::memory().unwrap();
    let parcels = db.create_typed_collection::<Parcel>("parcels").unwrap();
    assert_eq!(parcels.collection().key_kind(), KeyKind::Uuid);
    let ids = [u128::MAX, 0, 1 << 127, 7].map(uuid::Uuid::from_u128);
    for id in ids {
        let mut parcel = Parcel { id, version: 0, to: id.to_string() };
        parcels.save(&mut parcel, &how()).unwrap();
        assert_eq!(parcels.get(&id).unwrap().unwrap(), parcel);
    }
    let scan = parcels.scan(&ScanOptions::default()).unwrap();
    let found: Vec<uuid::Uuid> = scan.map(|parcel| parcel.unwrap().id).collect();
    let mut sorted = ids;
    sorted.sort_unstable();
    assert_eq!(found, sorted);
    let json = parcels.collection().document().head().unwrap().to_json().unwrap();
    assert!(json.contains(&format!("\"{}\":{{", ids[3])), "{json}");
    parcels.collection().delete(ids[0], &how()).unwrap();
    assert_eq!(parcels.get(&ids[0]).unwrap(), None);
}

#[derive(Debug, Clone, PartialEq, Record, Serialize, Deserialize)]
struct Reading {
    #[record(key)]
    id: u64,
    value: Option<f64>,
    more: Vec<(String, f32)>,
}

#[test]
fn numbers_that_json_has_not_are_refused() {
    let db = Database::memory().unwrap();
    let readings = db.create_typed_collection::<Reading>("readings").unwrap();
    let reading = |value, more| Reading { id: 7, value, more: vec![("null".to_owned(), more)] };
    let refused = readings.put(&reading(Some(f64::NAN), 1.5), &how()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.message().contains("record 7"), "{refused}");
    assert!(refused.message().contains("stored: value: NaN is no number"), "{refused}");
    let refused = readings.put(&reading(None, f32::INFINITY), &how()).unwrap_err();
    assert!(refused.message().contains("stored: more[0][1]: inf is no number"), "{refused}");
    readings.put(&reading(None, 1.5), &how()).unwrap();
    assert_eq!(readings.get(&7).unwrap(), Some(reading(None, 1.5)));
}

/// The last digit of every tenth was another one once.
#[test]
fn numbers_are_read_as_they_were_saved() {
    let db = Database::memory().unwrap();
    let readings = db.create_typed_collection::<Reading>("readings").unwrap();
    let mut bits = 7_u64;
    for value in (0..2_000).map(|_| {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from_bits(1.0_f64.to_bits() | (bits >> 12))
    }) {
        let reading = Reading { id: 7, value: Some(value), more: Vec::new() };
        readings.put(&reading, &how()).unwrap();
        assert_eq!(readings.get(&7).unwrap(), Some(reading));
    }
}

#[derive(Debug, Clone, PartialEq, Record, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Folder {
    #[record(key)]
    id: u64,
    #[record(version)]
    #[serde(skip)]
    version: u64,
    within: Vec<Within>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Within(Vec<Within>);

/// It could not be read again once: the version stood among what it was read of.
#[test]
fn version_that_serde_skips_is_that_of_the_record() {
    let db = Database::memory().unwrap();
    let folders = db.create_typed_collection::<Folder>("folders").unwrap();
    let mut folder = Folder { id: 1, version: 0, within: Vec::new() };
    for version in 1..3 {
        folder.within.push(Within(Vec::new()));
        folders.save(&mut folder, &how()).unwrap();
        assert_eq!(folder.version, version);
        assert_eq!(folders.get(&1).unwrap().as_ref(), Some(&folder));
    }
}

#[test]
fn what_is_too_deep_to_be_read_again_is_not_saved() {
    let db = Database::memory().unwrap();
    let folders = db.create_typed_collection::<Folder>("folders").unwrap();
    let folder = |depth: usize| {
        let deep = (1..depth).fold(Vec::new(), |within, _| vec![Within(within)]);
        Folder { id: 1, version: 0, within: deep }
    };
    folders.put(&folder(126), &how()).unwrap();
    assert_eq!(folders.get(&1).unwrap().unwrap().within, folder(126).within);
    let refused = folders.put(&folder(127), &how()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.message().contains("record 1 of collection \"folders\""), "{refused}");
    assert!(refused.message().contains("more than 127 deep"), "{refused}");
}

/// With serde's derive beside it, a struct with type parameters was no record unless they were
/// bound as serde's derive does not take it.
#[derive(Debug, Clone, PartialEq, Record, Serialize, Deserialize)]
struct Tagged<K: RecordKey, T, const N: usize = 2>
where
    T: Default,
{
    #[record(key)]
    id: K,
    value: T,
    #[record(version)]
    version: u64,
}

#[test]
fn types_with_parameters_are_records() {
    let db = Database::memory().unwrap();
    let numbers = db.create_typed_collection::<Tagged<u64, Vec<i64>>>("numbers").unwrap();
    let mut one: Tagged<_, _> = Tagged { id: 3, value: vec![-1], version: 0 };
    numbers.save(&mut one, &how()).unwrap();
    assert_eq!(numbers.get(&3).unwrap(), Some(one));
    let texts = db.create_typed_collection::<Tagged<String, (), 7>>("texts").unwrap();
    assert_eq!(texts.collection().key_kind(), KeyKind::Text);
}

/// A hash map, with what is around it.
#[derive(Debug, Clone, PartialEq, Record, Serialize, Deserialize)]
struct Stock {
    #[record(key)]
    shop: String,
    #[record(version)]
    version: u64,
    shelves: Vec<HashMap<String, u32>>,
    #[serde(flatten)]
    rest: HashMap<String, u32>,
}

/// Each time that a value was read and saved its hash maps were in another order, which was another
/// version.
#[test]
fn a_value_whose_members_come_in_another_order_is_the_same_one() {
    let db = Database::memory().unwrap();
    let stocks = db.create_typed_collection::<Stock>("stocks").unwrap();
    let map = |from: u32| (from..from + 20).map(|n| (format!("n{n}"), n)).collect();
    let new = Stock { shop: "a".into(), version: 0, shelves: vec![map(0), map(1)], rest: map(7) };
    let mut stock = new.clone();
    stocks.save(&mut stock, &how()).unwrap();
    let read = || stocks.get(&"a".to_owned()).unwrap().unwrap();
    for _ in 0..5 {
        let mut again = read();
        assert_eq!(again, stock);
        assert!(!stocks.save(&mut again, &how()).unwrap().outcome.is_committed());
        assert!(!stocks.put(&read(), &how()).unwrap().outcome.is_committed());
        assert!(!stocks.put_many([&read(), &read()], &how()).unwrap().is_committed());
        let mut transaction = db.transaction();
        transaction.typed(&stocks).save(&read()).unwrap();
        transaction.typed(&stocks).put(&read()).unwrap();
        assert_eq!(transaction.commit(&how()).unwrap().revisions, []);
    }
    stock.shelves[1].insert("n1".to_owned(), 2);
    stocks.save(&mut stock, &how()).unwrap();
    assert_eq!((stock.version, read()), (2, stock.clone()));
    // In one commit the last value counts, also where it is the one that was there before.
    let mut other = read();
    other.rest.clear();
    stocks.put_many([&other, &read()], &how()).unwrap();
    assert_eq!(read().rest, stock.rest);
    // Of JSON the order is a part.
    let before = stocks.collection().get("a").unwrap().unwrap();
    let both = [r#"{"shelves":[],"shop":"a"}"#, r#"{"shop":"a","shelves":[]}"#];
    for (json, version) in both.into_iter().zip(before.version + 1..) {
        assert_eq!(stocks.collection().put("a", json, &how()).unwrap().version, version);
    }
}
