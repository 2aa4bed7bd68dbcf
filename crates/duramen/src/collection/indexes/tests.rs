use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use super::{IndexRange, with_indexes};
use crate::io::MemoryDevice;
use crate::{
    Collection, CommitOptions, Database, ErrorKind, Filter, IndexDefinition, Key, KeyKind, Options,
    Query,
};

fn how() -> CommitOptions {
    CommitOptions::default()
}

fn define(name: &str, path: &str) -> IndexDefinition {
    IndexDefinition::new(name, &[path]).unwrap()
}

/// Records 0, 1, 2 ... whose `n` is the number below a hundred.
fn numbered(db: &Database, records: i64) -> Collection {
    let collection = db.create_collection("c", KeyKind::I64).unwrap();
    collection.create_index(&define("n", "n")).unwrap();
    let records = (0..records).map(|n| (n, format!(r#"{{"n":{}}}"#, n % 100)));
    collection.put_many(records, &how()).unwrap();
    collection
}

fn open(background: bool) -> Database {
    let options = Options { background, ..Options::default() };
    Database::open_device(Arc::new(MemoryDevice::new()), options).unwrap()
}

#[test]
fn an_index_with_much_to_follow_is_read_once_it_has_followed_beside_the_readers() {
    let db = open(true);
    let collection = numbered(&db, 5_000);
    let query = Query::new().filter(Filter::eq("n", 7));
    let mut scans = 0;
    loop {
        let explained = collection.explain(&query).unwrap();
        assert_eq!(explained.counts.found, 50, "{explained}");
        if explained.counts.entries > 0 {
            assert_eq!(explained.counts.scanned, 0, "{explained}");
            break;
        }
        scans += 1;
        std::thread::yield_now();
    }
    assert!(scans > 0, "the first query waited for the index");
}

#[test]
fn an_index_does_not_follow_for_a_query_that_finds_too_many_records_to_read_it() {
    let db = open(true);
    let collection = numbered(&db, 5_000);
    let (_, tree) = collection.document().parts();
    let declared = collection.document().declared().unwrap();
    let index = tree.indexes.get(tree, declared.indexes.get("n").unwrap()).unwrap();
    let before = index.behind(tree, 1);
    for _ in 0..3 {
        assert_eq!(collection.count_where(&Filter::lt("n", 50)).unwrap(), 2_500);
    }
    assert!(!index.was_asked_to_follow());
    assert_eq!(index.behind(tree, 1), before);
    assert_eq!(collection.count_where(&Filter::eq("n", 7)).unwrap(), 50);
    while index.behind(tree, 1) > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn an_index_follows_at_once_where_nobody_else_does_that() {
    let db = open(false);
    let collection = numbered(&db, 5_000);
    let explained = collection.explain(&Query::new().filter(Filter::eq("n", 7))).unwrap();
    assert_eq!((explained.counts.entries, explained.counts.scanned), (50, 0), "{explained}");
}

#[test]
fn what_an_index_followed_is_kept_when_the_database_is_closed() {
    let device = Arc::new(MemoryDevice::new());
    let options = || Options { background: false, ..Options::default() };
    let open = || Database::open_device(Arc::<MemoryDevice>::clone(&device), options()).unwrap();
    let behind = |collection: &Collection| {
        let (_, tree) = collection.document().parts();
        let declared = collection.document().declared().unwrap();
        let index = tree.indexes.get(tree, declared.indexes.get("n").unwrap()).unwrap();
        index.behind(tree, 2)
    };
    drop(numbered(&open(), 10));
    let db = open();
    let collection = db.collection("c").unwrap();
    let records = (0..5_000).map(|n| (n, format!(r#"{{"n":{n}}}"#)));
    collection.put_many(records, &how()).unwrap();
    db.checkpoint().unwrap();
    assert!(behind(&collection) > 4_000, "it followed though nobody read it");
    assert_eq!(collection.count_where(&Filter::eq("n", 77)).unwrap(), 1);
    drop((collection, db));
    assert_eq!(behind(&open().collection("c").unwrap()), 0, "it begins anew");
}

#[test]
fn a_query_is_planned_again_if_its_index_is_dropped_meanwhile() {
    let db = open(false);
    let collection = numbered(&db, 10);
    let head = collection.head().unwrap();
    let all = || (Bound::Unbounded, Bound::Unbounded);
    let mut plans = 0;
    let found = with_indexes(|| {
        plans += 1;
        if head.indexes()?.is_empty() {
            return Ok(None);
        }
        // Somebody else is quicker.
        collection.drop_index("n")?;
        head.index_range("n", all(), false).map(|range| range.as_ref().map(IndexRange::visited))
    });
    assert_eq!((found.unwrap(), plans), (None, 2));
    let gone = collection.drop_index("n").unwrap_err();
    let error = with_indexes(|| collection.drop_index("n")).unwrap_err();
    assert_eq!((error.kind(), gone.kind()), (ErrorKind::NotFound, ErrorKind::NotFound));
}

#[test]
fn a_transaction_finds_by_an_index_what_it_has_made_itself() {
    let db = open(false);
    let collection = numbered(&db, 300);
    let mut transaction = db.transaction();
    let mut put = |key: i64, json: &str| {
        transaction.put_record("c", &Key::from(key), json.as_bytes()).unwrap();
    };
    put(0, r#"{"n":5}"#);
    put(105, r#"{"n":7}"#);
    put(1_000, r#"{"n":5}"#);
    transaction.delete_records("c", &[Key::from(5)]).unwrap();
    let five = Filter::eq("n", 5);
    let keys = transaction.find_records("c", &five).unwrap();
    assert_eq!(keys, [0, 205, 1_000].map(Key::from));
    assert_eq!(transaction.update_records_where("c", &five, br#"{"n":6}"#).unwrap(), 3);
    assert_eq!(transaction.update_records_where("c", &five, br#"{"n":8}"#).unwrap(), 0);
    assert_eq!(transaction.delete_records_where("c", &Filter::eq("n", 7)).unwrap(), 4);
    transaction.commit(&how()).unwrap();
    let count = |n: i64| collection.count_where(&Filter::eq("n", n)).unwrap();
    assert_eq!([5, 6, 7, 8].map(count), [0, 6, 0, 3]);
    assert!(db.check().unwrap().is_clean());
}

/// An index that somebody else had made meanwhile was dropped by whoever stopped making it.
#[test]
fn an_index_that_another_one_made_stays_when_its_making_is_stopped() {
    let db = Database::memory().unwrap();
    let collection = numbered(&db, 10);
    let by_n = define("by-n", "n").unique();
    let mut is_made = false;
    let made = collection.create_index_with(&by_n, &mut |_| {
        if !std::mem::replace(&mut is_made, true) {
            collection.create_index(&by_n).unwrap();
        }
        ControlFlow::Break(())
    });
    assert!(is_made);
    made.unwrap();
    assert!(collection.indexes().unwrap().contains(&by_n));
    let same = collection.put(10_u64, r#"{"n":3}"#, &how()).unwrap_err();
    assert_eq!(same.kind(), ErrorKind::Conflict);
    assert!(db.check().unwrap().is_clean());
}
