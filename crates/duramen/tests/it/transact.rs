//! Transactions that are tried again: what they see, what they refuse, and that none is half done.

use std::panic::AssertUnwindSafe;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use duramen::{
    CommitOptions, Database, Error, ErrorKind, JsonPointer, Key, KeyKind, LogQuery, Result,
    Revision, ScanOptions, TransactOptions, Transaction,
};

fn how() -> CommitOptions {
    CommitOptions::default()
}

fn plain() -> TransactOptions {
    TransactOptions::default()
}

fn serializable() -> TransactOptions {
    TransactOptions { serializable: true, ..plain() }
}

fn number(json: Option<String>) -> i64 {
    json.map_or(0, |json| {
        let digits = json.trim_start_matches(r#"{"n":"#).trim_end_matches('}');
        digits.parse().unwrap()
    })
}

fn get(transaction: &mut Transaction, name: &str, key: u64) -> Result<i64> {
    transaction.get_record(name, &Key::U64(key)).map(number)
}

fn put(transaction: &mut Transaction, name: &str, key: u64, n: i64) -> Result<()> {
    transaction.put_record(name, &Key::U64(key), format!(r#"{{"n":{n}}}"#).as_bytes())
}

fn collections(names: &[&str]) -> Database {
    let db = Database::memory().unwrap();
    for name in names {
        db.create_collection(name, KeyKind::U64).unwrap();
    }
    db
}

/// Moves one from a record to another, again and again; some go the other way, so that they meet.
fn transfer(db: &Database, thread: u64, attempts: &AtomicU32) {
    let (from, to) = if thread.is_multiple_of(2) { ("left", "right") } else { ("right", "left") };
    for step in 0..60u64 {
        let (here, there) = (step % 4, (step + thread) % 4);
        let moved = db.transact(&plain(), |transaction| {
            attempts.fetch_add(1, Ordering::Relaxed);
            let had = get(transaction, from, here)?;
            let other = get(transaction, to, there)?;
            put(transaction, from, here, had - 1)?;
            put(transaction, to, there, other + 1)
        });
        moved.unwrap();
    }
}

fn sum(transaction: &mut Transaction, name: &str) -> Result<i64> {
    let records = transaction.scan_records(name, &ScanOptions::default())?;
    Ok(records.into_iter().map(|(_, json)| number(Some(json))).sum())
}

#[test]
fn money_that_threads_move_between_collections_is_neither_made_nor_lost() {
    let db = collections(&["left", "right"]);
    let start = |key| (key, r#"{"n":100}"#);
    for name in ["left", "right"] {
        db.collection(name).unwrap().put_many((0..4u64).map(start), &how()).unwrap();
    }
    let attempts = AtomicU32::new(0);
    let (shared, counted) = (&db, &attempts);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || transfer(shared, thread, counted));
        }
        for _ in 0..50 {
            let both = |transaction: &mut Transaction| {
                Ok(sum(transaction, "left")? + sum(transaction, "right")?)
            };
            let (sum, committed) = db.transact(&plain(), both).unwrap();
            assert_eq!((sum, committed.revisions.len()), (800, 0));
        }
    });
    assert!(attempts.load(Ordering::Relaxed) >= 240);
    let log = db.document("left").unwrap().log(&LogQuery::default()).unwrap();
    assert_eq!(log.count(), 1 + 240);
}

/// Lets one of two go, if both are there; whoever comes first waits for the other to have looked.
fn leave(db: &Database, options: &TransactOptions, (mine, other): (&str, &str), both: &Barrier) {
    let mut runs = 0;
    let left = db.transact(options, |transaction| {
        let there = get(transaction, mine, 1)? + get(transaction, other, 1)?;
        runs += 1;
        if runs == 1 {
            both.wait();
        }
        if there == 2 { put(transaction, mine, 1, 0) } else { Ok(()) }
    });
    left.unwrap();
}

/// Two transactions that each read what the other writes, at the same time.
fn skew(options: &TransactOptions) -> i64 {
    let db = collections(&["a", "b"]);
    for name in ["a", "b"] {
        db.collection(name).unwrap().put(1u64, r#"{"n":1}"#, &how()).unwrap();
    }
    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| leave(&db, options, ("a", "b"), &both));
        scope.spawn(|| leave(&db, options, ("b", "a"), &both));
    });
    let read = |name| number(Some(db.collection(name).unwrap().get(1u64).unwrap().unwrap().json));
    read("a") + read("b")
}

#[test]
fn a_write_that_rests_on_what_others_change_is_refused_where_that_is_asked_for() {
    for _ in 0..20 {
        assert_eq!(skew(&plain()), 0, "snapshots alone let both go");
        assert_eq!(skew(&serializable()), 1, "one of them saw the other");
    }
}

#[test]
fn reads_are_of_one_snapshot_and_see_what_the_transaction_did() {
    let db = collections(&["a", "b"]);
    db.collection("a").unwrap().put(1u64, r#"{"n":1}"#, &how()).unwrap();
    let note = db.create_document("note").unwrap();
    note.put(r#"{"x":1}"#, &how()).unwrap();
    let x = JsonPointer::parse("/x").unwrap();
    let done = db.transact(&plain(), |transaction| {
        assert_eq!(get(transaction, "a", 1)?, 1);
        db.collection("b").unwrap().put(9u64, r#"{"n":9}"#, &how())?;
        note.put(r#"{"x":2}"#, &how())?;
        assert_eq!((get(transaction, "b", 9)?, transaction.get("note", &x)?), (0, "1".to_owned()));
        assert!(transaction.scan_records("b", &ScanOptions::default())?.is_empty());
        put(transaction, "a", 2, 2)?;
        assert_eq!((get(transaction, "a", 1)?, get(transaction, "a", 2)?), (1, 2));
        transaction.delete_records("a", &[Key::U64(1)])?;
        let left = transaction.scan_records("a", &ScanOptions::default())?;
        assert_eq!(left, [(Key::U64(2), r#"{"n":2}"#.to_owned())]);
        Ok(())
    });
    assert_eq!(done.unwrap().1.revisions, [("a".to_owned(), Revision(2))]);
}

#[test]
fn a_transaction_that_others_came_before_is_run_again_on_what_they_left() {
    let db = collections(&["a"]);
    let records = db.collection("a").unwrap();
    let mut runs = 0;
    let (seen, _) = db
        .transact(&plain(), |transaction| {
            runs += 1;
            let seen = get(transaction, "a", 1)?;
            if runs == 1 {
                records.put(1u64, r#"{"n":7}"#, &how())?;
            }
            put(transaction, "a", 1, seen + 1)?;
            Ok(seen)
        })
        .unwrap();
    assert_eq!((runs, seen), (2, 7));
    assert_eq!(number(records.get(1u64).unwrap().map(|record| record.json)), 8);

    // The same of names, and of those who do not want to be run again.
    for (attempts_max, wanted) in [(1, None), (2, Some(2))] {
        let mut runs = 0;
        let options = TransactOptions { attempts_max, ..plain() };
        let done = db.transact(&options, |transaction| {
            runs += 1;
            if runs == 1 {
                db.create_document(&format!("made by another {attempts_max}"))?;
            }
            transaction.put(&format!("made {attempts_max}"), b"1")
        });
        match (wanted, done) {
            (Some(wanted), done) => assert_eq!((done.is_ok(), runs), (true, wanted)),
            (None, done) => {
                let error = done.unwrap_err();
                assert_eq!((error.kind(), runs), (ErrorKind::Conflict, 1));
                assert!(error.to_string().contains("tried 1 times"), "{error}");
            }
        }
    }
}

#[test]
fn conflicts_that_are_no_race_and_errors_of_the_caller_end_it_at_once() {
    let db = collections(&["a"]);
    db.collection("a").unwrap().put(1u64, r#"{"n":1}"#, &how()).unwrap();
    let mut runs = 0;
    let error = db.transact(&serializable(), |transaction| {
        runs += 1;
        put(transaction, "a", 2, 2)?;
        transaction.insert_record("a", &Key::U64(1), b"{}")
    });
    assert_eq!((error.unwrap_err().kind(), runs), (ErrorKind::Conflict, 1));
    let error = db.transact(&plain(), |transaction| {
        put(transaction, "a", 2, 2)?;
        transaction.put("made", b"1")?;
        Err::<(), Error>(Error::new(ErrorKind::Invalid, "no"))
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
        db.transact(&plain(), |transaction| -> Result<()> {
            put(transaction, "a", 2, 2)?;
            panic!("on purpose")
        })
    }));
    assert!(panicked.is_err());
    let records = db.collection("a").unwrap();
    assert_eq!((records.count().unwrap(), records.head().unwrap().revision()), (1, Revision(1)));
    assert_eq!(db.document("made").unwrap_err().kind(), ErrorKind::NotFound);
    // Nobody has the turn any more.
    records.put(2u64, "{}", &how()).unwrap();
}

type Read<'a> = &'a dyn Fn(&mut Transaction) -> Result<()>;

#[test]
fn what_was_read_counts_by_record_and_a_scan_counts_as_all_of_them() {
    let read_one = |transaction: &mut Transaction| get(transaction, "a", 1).map(drop);
    let read_missing = |transaction: &mut Transaction| get(transaction, "a", 3).map(drop);
    let scan = |transaction: &mut Transaction| {
        transaction
            .scan_records("a", &ScanOptions { limit: Some(1), ..Default::default() })
            .map(drop)
    };
    let reads: [(Read<'_>, u64, u32); 6] = [
        (&read_one, 1, 2),
        (&read_one, 2, 1),
        (&read_missing, 3, 2),
        (&read_missing, 1, 1),
        (&scan, 2, 2),
        (&scan, 3, 2),
    ];
    for (read, written, wanted) in reads {
        let db = collections(&["a", "b"]);
        let records = db.collection("a").unwrap();
        records.put_many([(1u64, r#"{"n":1}"#), (2, r#"{"n":2}"#)], &how()).unwrap();
        let mut runs = 0;
        db.transact(&serializable(), |transaction| {
            runs += 1;
            read(transaction)?;
            if runs == 1 {
                records.put(written, r#"{"n":5}"#, &how())?;
            }
            put(transaction, "b", 1, 1)
        })
        .unwrap();
        assert_eq!(runs, wanted, "record {written}");
    }
}

/// What a serializable transaction does: it looks for a document `x` and writes a record; before
/// it has written, another one that read the record does something. Gives how often it ran.
fn runs_beside(db: &Database, other: impl Fn(&mut Transaction) -> Result<()>) -> u32 {
    db.create_collection("c", KeyKind::U64).unwrap();
    db.collection("c").unwrap().put(1u64, r#"{"n":1}"#, &how()).unwrap();
    let mut runs = 0;
    let done = db.transact(&serializable(), |transaction| {
        runs += 1;
        let found = transaction.get("x", &JsonPointer::root()).ok();
        if runs == 1 {
            let beside = db.transact(&serializable(), |beside| {
                get(beside, "c", 1)?;
                other(beside)
            });
            beside.unwrap();
        }
        put(transaction, "c", 1, if found.is_some() { 10 } else { 20 })
    });
    done.unwrap();
    runs
}

#[test]
fn a_document_that_was_not_there_and_came_is_a_change_of_what_was_read() {
    let put_x = |beside: &mut Transaction| beside.put("x", b"1");
    assert_eq!(runs_beside(&Database::memory().unwrap(), put_x), 2);
    let put_y = |beside: &mut Transaction| beside.put("y", b"1");
    assert_eq!(runs_beside(&Database::memory().unwrap(), put_y), 1, "another name");
    assert_eq!(runs_beside(&Database::memory().unwrap(), |_| Ok(())), 1);
}

#[test]
fn a_document_that_was_renamed_is_a_change_of_what_was_read() {
    let with_x = || {
        let db = Database::memory().unwrap();
        db.create_document("x").unwrap().put("1", &how()).unwrap();
        db
    };
    assert_eq!(runs_beside(&with_x(), |beside| beside.rename_document("x", "y")), 2);
    assert_eq!(runs_beside(&with_x(), |beside| beside.delete_document("x")), 2);
    assert_eq!(runs_beside(&with_x(), |beside| beside.put("y", b"1")), 1);
}

#[test]
fn a_document_is_not_renamed_while_it_is_written() {
    let db = Database::memory().unwrap();
    for name in ["x", "z"] {
        db.create_document(name).unwrap().put("1", &how()).unwrap();
    }
    let mut writing = db.transaction();
    writing.put("x", b"2").unwrap();
    let mut renaming = db.transaction();
    // Behind a later document, it does not wait.
    renaming.put("z", b"2").unwrap();
    assert_eq!(renaming.rename_document("x", "y").unwrap_err().kind(), ErrorKind::Busy);
    writing.commit(&how()).unwrap();
    renaming.rename_document("x", "y").unwrap();
    renaming.commit(&how()).unwrap();
    assert_eq!(db.document("y").unwrap().head().unwrap().to_json().unwrap(), "2");
}

/// A record could be read in a transaction, but not the version that saving it expects.
#[test]
fn records_are_read_with_the_version_that_updating_expects() {
    let db = Database::memory().unwrap();
    let notes = db.create_collection("notes", KeyKind::U64).unwrap();
    let key = Key::U64(7);
    assert_eq!(db.transaction().count_records("notes").unwrap(), 0);
    let read = db.transact(&TransactOptions::default(), |transaction| {
        assert_eq!(transaction.count_records("notes")?, 0);
        assert_eq!(transaction.read_record("notes", &key)?, None);
        transaction.insert_record("notes", &key, b"{}")?;
        let new = transaction.read_record("notes", &key)?.unwrap();
        transaction.update_record("notes", &key, new.version, br#"{"a":1}"#)?;
        assert_eq!(transaction.count_records("notes")?, 1);
        transaction.read_record("notes", &key)
    });
    let read = read.unwrap().0.unwrap();
    assert_eq!((read.version, read.json.as_str(), &read.key), (1, r#"{"a":1}"#, &key));
    notes.delete(7_u64, &how()).unwrap();
    let mut transaction = db.transaction();
    transaction.put_record("notes", &key, b"{}").unwrap();
    let again = transaction.read_record("notes", &key).unwrap().unwrap();
    transaction.update_record("notes", &key, again.version, br#"{"a":2}"#).unwrap();
    transaction.commit(&how()).unwrap();
    assert_eq!(notes.get(7_u64).unwrap().unwrap().version, 2);
    db.create_document("page").unwrap();
    let refused = db.transaction().count_records("page").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(db.transaction().count_records("nothing").is_err());
}

/// What was read was bounded by the number of keys, which may have a kibibyte each.
#[test]
fn what_was_read_is_told_apart_up_to_a_number_of_bytes() {
    let key = |at: u32| Key::Text(format!("{at:01024}"));
    // How many long keys are read, and how often the transaction is tried then.
    for (keys, wanted) in [(4_000, 1), (12_000, 2)] {
        let db = collections(&["b"]);
        let notes = db.create_collection("notes", KeyKind::Text).unwrap();
        let mut runs = 0;
        let options = TransactOptions { attempts_max: 1, ..serializable() };
        let done = db.transact(&options, |transaction| {
            for at in 0..keys {
                assert_eq!(transaction.get_record("notes", &key(at))?, None);
            }
            runs += 1;
            notes.put("unread", "{}", &how())?;
            put(transaction, "b", 1, 1)
        });
        match done {
            Ok(_) => assert_eq!(wanted, 1),
            Err(error) => {
                assert_eq!((error.kind(), wanted), (ErrorKind::Conflict, 2), "{error}");
                assert!(error.to_string().contains("read less of it at once"), "{error}");
            }
        }
        assert_eq!(runs, 1);
    }
}
