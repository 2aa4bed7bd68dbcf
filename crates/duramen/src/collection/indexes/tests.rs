use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::mpsc::channel;

use super::{IndexRange, was_dropped, with_indexes};
use crate::io::MemoryDevice;
use crate::{
    BulkOptions, Collection, CommitOptions, Database, ErrorKind, Filter, IndexDefinition, Key,
    KeyKind, Options, Order, Query,
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

/// A database on a device, without a thread of its own.
fn open_on(device: &Arc<MemoryDevice>) -> Database {
    let options = Options { background: false, ..Options::default() };
    Database::open_device(Arc::<MemoryDevice>::clone(device), options).unwrap()
}

/// What an index of the collection has to follow.
fn behind(collection: &Collection) -> u64 {
    let (_, tree) = collection.document().parts();
    let declared = collection.document().declared().unwrap();
    let index = tree.indexes.get(tree, declared.indexes.get("n").unwrap()).unwrap();
    let head = collection.document().head_revision().unwrap().0;
    index.behind(tree, u32::try_from(head).unwrap())
}

fn put_numbers(collection: &Collection, records: i64, add: i64) {
    let records = (0..records).map(|n| (n, format!(r#"{{"n":{}}}"#, n + add)));
    collection.put_many(records, &how()).unwrap();
}

/// An index followed for those who read it only: where each process just wrote, all of them were
/// followed by the next one that read, and then again by the one after it.
#[test]
fn a_checkpoint_has_an_index_follow_though_nobody_reads_it() {
    let device = Arc::new(MemoryDevice::new());
    drop(numbered(&open_on(&device), 10));
    for turn in 1..=3 {
        let db = open_on(&device);
        let collection = db.collection("c").unwrap();
        assert_eq!(collection.document().tree().indexes.in_use().len(), 0, "somebody read it");
        put_numbers(&collection, 5_000, turn);
        if turn == 1 {
            db.checkpoint().unwrap();
            assert_eq!(behind(&collection), 0);
        }
        // So does the one at the end.
        drop(collection);
        db.close().unwrap();
        assert_eq!(behind(&open_on(&device).collection("c").unwrap()), 0, "in turn {turn}");
    }
}

/// A collection that was loaded in bulk, of which an index has nothing.
fn loaded(db: &Database, records: i64) -> Collection {
    let collection = db.create_collection("c", KeyKind::I64).unwrap();
    collection.create_index(&define("n", "n")).unwrap();
    let line = |n| format!("{{\"id\":{n},\"n\":{n}}}\n");
    let text: String = (0..records).map(line).collect();
    let key = Some("id".to_owned());
    let options = BulkOptions { lines: true, key, ..BulkOptions::default() };
    let mut go_on = |_| ControlFlow::Continue(());
    db.bulk_load("c", &mut text.as_bytes(), &options, &mut go_on).unwrap();
    collection
}

#[test]
fn an_index_that_is_far_behind_follows_some_of_it_with_each_checkpoint_until_it_has_all() {
    let db = open(false);
    let collection = loaded(&db, 500);
    let (mut before, mut checkpoints) = (behind(&collection), 0);
    assert!(before >= 500);
    while behind(&collection) > 0 {
        collection.put(1_000 + checkpoints, r#"{"n":0}"#, &how()).unwrap();
        db.checkpoint().unwrap();
        assert!(behind(&collection) < before, "{before}");
        (before, checkpoints) = (behind(&collection), checkpoints + 1);
    }
    assert!(checkpoints > 2, "all of it was followed by {checkpoints}");
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn an_index_that_is_far_behind_follows_beside_once_its_collection_is_written() {
    let db = open(true);
    let collection = loaded(&db, 3_000);
    collection.put(5_000, r#"{"n":0}"#, &how()).unwrap();
    assert!(behind(&collection) >= 3_000);
    db.checkpoint().unwrap();
    while behind(&collection) > 0 {
        std::thread::yield_now();
    }
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn a_compaction_has_all_indexes_follow_in_the_memory_that_there_is() {
    let device = Arc::new(MemoryDevice::new());
    let options = Options { background: false, memory_bytes: 1 << 20, ..Options::default() };
    let db = Database::open_device(Arc::<MemoryDevice>::clone(&device), options).unwrap();
    let collection = loaded(&db, 40_000);
    let memory = Arc::clone(collection.document().tree().cells.memory());
    let mut most = 0;
    db.compact(&mut |_, _| {
        most = most.max(memory.young());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(most < 1 << 20, "{most}");
    drop((collection, db));
    let db = open_on(&device);
    let collection = db.collection("c").unwrap();
    assert_eq!(behind(&collection), 0);
    let found = collection.explain(&Query::new().filter(Filter::eq("n", 77))).unwrap();
    assert_eq!((found.counts.entries, found.counts.found), (1, 1), "{found}");
}

/// Whoever opened a database for reading had the index follow all that there was, in memory, and
/// threw it away; a column scan costs less, and no memory.
#[test]
fn a_reader_who_keeps_nothing_scans_instead_of_an_index_that_is_far_behind() {
    let device = Arc::new(MemoryDevice::new());
    let db = open_on(&device);
    let collection = loaded(&db, 10);
    put_numbers(&collection, 20_000, 0);
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    let read = || {
        let options = Options { read_only: true, ..Options::default() };
        let db = Database::open_device(Arc::<MemoryDevice>::clone(&device), options).unwrap();
        db.collection("c").unwrap()
    };
    let seven = Query::new().filter(Filter::eq("n", 77));
    let first = Query::new().order_by(Order::asc("n")).limit(3);
    // A little is followed at once.
    collection.put(77, r#"{"n":77,"again":true}"#, &how()).unwrap();
    let found = read().explain(&seven).unwrap();
    assert_eq!((found.counts.entries, found.counts.scanned), (1, 0), "{found}");
    // A few revisions that changed all records are much to follow. They are in the journal.
    put_numbers(&collection, 20_000, 1);
    put_numbers(&collection, 20_000, 0);
    let reader = read();
    let before = behind(&reader);
    for (query, found) in [(&seven, 1), (&first, 3)] {
        let explained = reader.explain(query).unwrap();
        let counts = explained.counts;
        assert_eq!((counts.entries, counts.found), (0, found), "{explained}");
        assert!(counts.scanned > 0, "{explained}");
        assert!(explained.to_string().starts_with("leave out index n: "), "{explained}");
        let same = collection.query(query).unwrap().map(Result::unwrap);
        assert!(reader.query(query).unwrap().map(Result::unwrap).eq(same), "{query}");
    }
    assert_eq!((behind(&reader), before > 0), (before, true));
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

/// What was left to read of an index was not there any more once its cells were gone: the query
/// ended early, as if it had found all.
#[test]
fn a_query_that_reads_an_index_finds_all_though_the_index_is_dropped_meanwhile() {
    for (read, moves) in [(0, false), (3, false), (0, true), (3, true)] {
        let db = open(false);
        let collection = numbered(&db, 1_000);
        let by_n = Query::new().order_by(Order::asc("n"));
        collection.query(&by_n).unwrap().for_each(drop);
        let mut found = collection.query(&by_n).unwrap();
        for _ in 0..read {
            found.next().unwrap().unwrap();
        }
        if moves {
            // Entries go to a segment, so that whoever reads them looks for them there.
            db.checkpoint().unwrap();
        }
        collection.drop_index("n").unwrap();
        db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(read + found.map(Result::unwrap).count(), 1_000, "{read} {moves}");
    }
}

/// Whoever had read the options before had an index used again that was dropped, until the next
/// start: commits were refused for it, and its entries were written for nobody.
#[test]
fn an_index_that_was_dropped_is_not_used_by_those_who_know_it_still() {
    let db = open(false);
    let collection = db.create_collection("c", KeyKind::I64).unwrap();
    collection.create_index(&define("n", "n").unique()).unwrap();
    collection.put(1_i64, r#"{"n":1}"#, &how()).unwrap();
    let (head, declared) = (collection.head().unwrap(), collection.document().declared().unwrap());
    let mut transaction = db.transaction();
    transaction.put_record("c", &Key::from(2_i64), br#"{"n":1}"#).unwrap();
    collection.drop_index("n").unwrap();
    let error = head.usable(&declared.indexes).unwrap_err();
    assert_eq!((error.kind(), was_dropped(&error)), (ErrorKind::NotFound, true));
    transaction.commit(&how()).unwrap();
    assert_eq!(collection.document().tree().indexes.in_use().len(), 0);
    assert!(head.indexes().unwrap().is_empty());
    assert!(db.check().unwrap().is_clean());
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

/// Whoever gave up an index that another one was making too dropped it for both.
#[test]
fn an_index_that_two_make_is_there_if_one_of_them_gives_it_up() {
    let db = Database::memory().unwrap();
    let collection = numbered(&db, 10);
    let by_n = define("by-n", "n").unique();
    let mut stopped = None;
    let made = collection.create_index_with(&by_n, &mut |_| {
        stopped.get_or_insert_with(|| {
            // What it would follow at all.
            collection.put(50_i64, r#"{"n":50}"#, &how()).unwrap();
            collection.create_index_with(&by_n, &mut |_| ControlFlow::Break(()))
        });
        ControlFlow::Continue(())
    });
    assert_eq!(stopped.unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    made.unwrap();
    assert!(collection.indexes().unwrap().contains(&by_n));
    // Where nobody else makes it, it is not there any more.
    let by_m = define("by-m", "m");
    collection.create_index_with(&by_m, &mut |_| ControlFlow::Break(())).unwrap_err();
    assert!(collection.unfinished_indexes().unwrap().is_empty());
    assert!(db.check().unwrap().is_clean());
}

/// Of two who made a unique index one found the same values twice, and had commits no more
/// compared, on which the other one relied that came after those values were gone.
#[test]
fn a_unique_index_that_two_make_is_enforced_until_both_have_ended() {
    let db = Database::memory().unwrap();
    let collection = numbered(&db, 10);
    collection.put(100_i64, r#"{"n":1}"#, &how()).unwrap();
    let by_n = define("by-n", "n").unique();
    let (_, tree) = collection.document().parts();
    let index = || {
        let declared = collection.document().declared().unwrap();
        let (_, declared) = declared.indexes.iter().find(|(name, _)| *name == "by-n").unwrap();
        tree.indexes.get(tree, declared).unwrap()
    };
    let put = |key: i64| collection.put(key, format!("{{\"n\":{key}}}"), &how()).unwrap();
    let ((reached, is_reached), (go, goes)) = (channel(), channel::<()>());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let mut steps = 0;
            let going = goes;
            collection.create_index_with(&by_n, &mut |_| {
                steps += 1;
                if steps == 1 {
                    put(50);
                }
                if index().is_enforced() {
                    reached.send(()).unwrap();
                    going.recv().unwrap_or_default();
                }
                ControlFlow::Continue(())
            })
        });
        is_reached.recv().unwrap();
        collection.delete(100_i64, &how()).unwrap();
        let (mut first, mut go, mut behind) = (Some(first), Some(go), None);
        let made = collection.create_index_with(&by_n, &mut |_| {
            let behind = *behind.get_or_insert_with(|| put(51).outcome.revision().0);
            if u64::from(index().followed(tree).revision) >= behind
                && let Some(first) = first.take()
            {
                // The second one compares already, and the first one finds what was there.
                drop(go.take());
                let error = first.join().unwrap().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Conflict);
                let same = collection.put(100_i64, r#"{"n":1}"#, &how()).unwrap_err();
                assert_eq!(same.kind(), ErrorKind::Conflict);
            }
            ControlFlow::Continue(())
        });
        assert!(first.is_none());
        made.unwrap();
    });
    assert!(collection.indexes().unwrap().contains(&by_n));
    assert!(db.check().unwrap().is_clean());
}

/// An index whose making a crash ended was seen by nobody, and could only be made again.
#[test]
fn an_index_of_which_the_making_was_interrupted_is_listed_and_can_be_dropped() {
    let db = Database::memory().unwrap();
    let collection = numbered(&db, 10);
    let twice = define("by-n", "n").unique();
    // As a process that dies leaves it.
    collection.change_indexes(|indexes| indexes.begin(&twice)).unwrap();
    let names = |indexes: Vec<IndexDefinition>| -> Vec<String> {
        indexes.into_iter().map(|index| index.name).collect()
    };
    assert_eq!(names(collection.indexes().unwrap()), ["n"]);
    assert_eq!(collection.unfinished_indexes().unwrap(), std::slice::from_ref(&twice));
    collection.drop_index("by-n").unwrap();
    assert!(collection.unfinished_indexes().unwrap().is_empty());
    assert_eq!(collection.drop_index("by-n").unwrap_err().kind(), ErrorKind::NotFound);
    // Nothing of it is in the way of another one of its name.
    collection.put(10_u64, r#"{"n":3}"#, &how()).unwrap();
    collection.create_index(&define("by-n", "n")).unwrap();
    assert_eq!(names(collection.indexes().unwrap()), ["by-n", "n"]);
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn whoever_makes_an_index_that_is_dropped_meanwhile_is_told() {
    let db = Database::memory().unwrap();
    let collection = numbered(&db, 10);
    let made = collection.create_index_with(&define("by-n", "n"), &mut |_| {
        collection.drop_index("by-n").unwrap_or_default();
        ControlFlow::Continue(())
    });
    let error = made.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("dropped while it was made"), "{error}");
    assert!(collection.unfinished_indexes().unwrap().is_empty());
    assert_eq!(collection.indexes().unwrap().len(), 1);
}

/// A collection with a unique index whose first transaction drops it and goes on with it.
#[test]
fn a_collection_that_is_dropped_and_made_again_in_one_commit_keeps_nothing_of_what_was_unique() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    collection.create_index(&define("n", "n").unique()).unwrap();
    for (key, json) in [("a", r#"{"n":1}"#), ("b", r#"{"n":2}"#)] {
        collection.put(key, json, &how()).unwrap();
    }
    let again = |records: &[(&str, &str)]| {
        let mut transaction = db.transaction();
        transaction.delete_document("c").unwrap();
        transaction.put("c", b"{}").unwrap();
        for (key, json) in records {
            let key = Key::Text((*key).to_owned());
            transaction.put_record("c", &key, json.as_bytes()).unwrap();
        }
        transaction.commit(&how()).map(drop)
    };
    let found = |n: i64| {
        let found = collection.query(&Query::new().filter(Filter::eq("n", n))).unwrap();
        found.map(|record| record.unwrap().key.to_string()).collect::<Vec<_>>()
    };
    again(&[("x", r#"{"n":1}"#), ("a", r#"{"n":2}"#)]).unwrap();
    assert_eq!((found(1), found(2)), (vec!["x".to_owned()], vec!["a".to_owned()]));
    assert_eq!(collection.count().unwrap(), 2);
    let same = again(&[("y", r#"{"n":7}"#), ("z", r#"{"n":7}"#)]).unwrap_err();
    assert_eq!(same.kind(), ErrorKind::Conflict);
    again(&[]).unwrap();
    assert_eq!((found(1).len(), collection.count().unwrap()), (0, 0));
    collection.put("b", r#"{"n":2}"#, &how()).unwrap();
    assert!(db.check().unwrap().is_clean());
}

/// Such a commit was refused for values that no record has after it.
#[test]
fn what_was_saved_twice_is_no_conflict_in_a_collection_that_is_dropped_in_the_same_commit() {
    let db = Database::memory().unwrap();
    let collection = db.create_collection("c", KeyKind::Text).unwrap();
    collection.create_index(&define("n", "n").unique()).unwrap();
    collection.put_many([("a", r#"{"n":1}"#), ("b", r#"{"n":2}"#)], &how()).unwrap();
    let mut transaction = db.transaction();
    transaction.put_record("c", &"b".into(), br#"{"n":1}"#).unwrap();
    transaction.put_record("c", &"x".into(), br#"{"n":1}"#).unwrap();
    transaction.delete_document("c").unwrap();
    transaction.commit(&how()).unwrap();
    collection.put("y", r#"{"n":1}"#, &how()).unwrap();
    let found = collection.query(&Query::new().filter(Filter::eq("n", 1))).unwrap();
    assert_eq!(found.map(|record| record.unwrap().key).collect::<Vec<_>>(), [Key::from("y")]);
    assert_eq!(collection.put("a", r#"{"n":1}"#, &how()).unwrap_err().kind(), ErrorKind::Conflict);
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn a_unique_index_is_made_of_a_collection_that_is_dropped_and_made_again_meanwhile() {
    for (is_twice, seed) in [(false, 0), (true, 1)] {
        let db = Database::memory().unwrap();
        let collection = db.create_collection("c", KeyKind::Text).unwrap();
        // Two records have what is to be unique until the collection is dropped.
        let records = [("a", r#"{"n":1}"#), ("b", r#"{"n":1}"#)];
        collection.put_many(records, &how()).unwrap();
        let mut is_done = false;
        let made = collection.create_index_with(&define("n", "n").unique(), &mut |_| {
            if !std::mem::replace(&mut is_done, true) {
                let mut transaction = db.transaction();
                transaction.delete_document("c").unwrap();
                transaction.commit(&how()).unwrap();
                let n = if is_twice { 1 } else { 2 };
                let records = [("a", r#"{"n":1}"#.to_owned()), ("x", format!("{{\"n\":{n}}}"))];
                collection.put_many(records, &how()).unwrap();
            }
            ControlFlow::Continue(())
        });
        assert_eq!(made.map_err(|error| error.kind()).is_err(), is_twice, "{seed}");
        assert_eq!(collection.indexes().unwrap().len(), usize::from(!is_twice));
        assert!(collection.unfinished_indexes().unwrap().is_empty());
        let third = collection.put("y", r#"{"n":1}"#, &how());
        assert_eq!(third.is_err(), !is_twice);
        assert!(db.check().unwrap().is_clean());
    }
}
