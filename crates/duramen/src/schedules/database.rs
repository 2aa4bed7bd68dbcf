//! Transactions, snapshots, checkpoints and memory of a whole database.

use std::sync::Arc;

use parking_lot::Mutex;

use super::device::ScheduledDevice;
use super::{at_once, below, clock};
use crate::io::Device;
use crate::limits::SEGMENTS_KEPT_MAX;
use crate::{
    CommitOptions, CommitSequence, Database, DatabaseSnapshot, Document, Durability, ErrorKind,
    JsonPointer, KeyKind, Options, Result, Revision, TransactOptions, Transaction,
};

/// Enough for all that a model writes.
const MEMORY_BYTES: usize = 64 << 20;

/// Steps of others that a reader waits for at most before it reads the next document.
const READ_PAUSE: usize = 40;

/// Documents that nobody has read yet.
const DOCUMENTS: [&str; 6] = ["c", "d", "e", "f", "g", "h"];

type Thread = Box<dyn FnOnce() + Send>;

/// A database with two documents, `a` and `b`, whose value is 0.
fn open(memory_bytes: usize) -> Arc<Database> {
    let device: Arc<dyn Device> = Arc::<ScheduledDevice>::default();
    let options = Options {
        background: false,
        clock: clock(),
        durability: Durability::Interval(1_000),
        memory_bytes,
        ..Options::default()
    };
    let database = Database::open_device(device, options).expect("a new database");
    for name in ["a", "b"] {
        let document = database.create_document(name).expect("a new document");
        document.put("0", &CommitOptions::default()).expect("a first revision");
    }
    Arc::new(database)
}

fn thread(database: &Arc<Database>, work: impl FnOnce(&Database) + Send + 'static) -> Thread {
    let database = Arc::clone(database);
    Box::new(move || work(&database))
}

fn value(snapshot: &DatabaseSnapshot, name: &str) -> u64 {
    let document = snapshot.document(name).expect("the document");
    document.to_json().expect("its value").parse().expect("a number")
}

fn head(document: &Document) -> String {
    document.head().and_then(|head| head.to_json()).expect("the newest value")
}

/// Who reads sees all of a commit or nothing of it, and never goes back.
pub(super) fn snapshots() {
    let database = open(MEMORY_BYTES);
    let writer = || {
        thread(&database, |database| {
            for _ in 0..2 {
                let mut transaction = database.transaction();
                let next = add(&mut transaction, "a").and_then(|()| add(&mut transaction, "b"));
                next.expect("both changes");
                transaction.commit(&CommitOptions::default()).expect("a commit");
            }
        })
    };
    let reader = thread(&database, |database| {
        let mut last = 0;
        for _ in 0..4 {
            let snapshot = database.snapshot();
            let seen = value(&snapshot, "a");
            assert_eq!(seen, value(&snapshot, "b"), "half of a commit");
            assert!(seen >= last, "{seen} after {last}");
            last = seen;
        }
    });
    at_once([writer(), writer(), reader]);
    assert_eq!(value(&database.snapshot(), "a"), 4);
}

fn add(transaction: &mut Transaction, name: &str) -> Result<()> {
    let root = JsonPointer::root();
    let now: u64 = transaction.get(name, &root)?.parse().expect("a number");
    transaction.put(name, (now + 1).to_string().as_bytes())
}

/// Closures that take two documents in either order come to an end, and none is lost.
pub(super) fn increments() {
    let database = open(MEMORY_BYTES);
    let writer = |first: &'static str, second: &'static str| {
        thread(&database, move |database| {
            let options = TransactOptions { attempts_max: 100, ..TransactOptions::default() };
            let done = database.transact(&options, |transaction| {
                add(transaction, first)?;
                add(transaction, second)
            });
            done.expect("a commit");
        })
    };
    at_once([writer("a", "b"), writer("b", "a"), writer("a", "b")]);
    let snapshot = database.snapshot();
    assert_eq!([value(&snapshot, "a"), value(&snapshot, "b")], [3, 3]);
}

/// What a transaction read is so when its commit has its sequence: who changes it comes after.
pub(super) fn reads_hold() {
    let database = open(MEMORY_BYTES);
    let (read, changed) = (Arc::new(Mutex::default()), Arc::new(Mutex::default()));
    let (its_read, its_changed) = (Arc::clone(&read), Arc::clone(&changed));
    let reader = thread(&database, move |database| {
        let options = TransactOptions { serializable: true, ..TransactOptions::default() };
        let done = database.transact(&options, |transaction| {
            let seen = transaction.get("b", &JsonPointer::root())?;
            transaction.put("a", b"1").map(|()| seen)
        });
        let (seen, committed) = done.expect("a commit");
        *its_read.lock() = Some((seen, committed.sequence));
    });
    let writer = thread(&database, move |database| {
        let mut transaction = database.transaction();
        transaction.put("b", b"1").expect("a change");
        let committed = transaction.commit(&CommitOptions::default()).expect("a commit");
        *its_changed.lock() = Some(committed.sequence);
    });
    at_once([reader, writer]);
    let (seen, read) = read.lock().take().expect("what was read");
    let changed: CommitSequence = changed.lock().take().expect("what was changed");
    assert_eq!(seen == "0", read < changed, "{seen} was read by {read}, changed by {changed}");
}

/// Of two that expect the same revision one is told of the other, and finds it committed.
pub(super) fn conflicts() {
    let database = open(MEMORY_BYTES);
    let writer = |new: &'static str| {
        thread(&database, move |database| {
            let document = database.document("a").expect("the document");
            let expected =
                CommitOptions { expect_revision: Some(Revision(1)), ..CommitOptions::default() };
            if let Err(error) = document.put(new, &expected) {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                assert_ne!(head(&document), "0", "a conflict with what is not published");
            }
        })
    };
    at_once([writer("1"), writer("2"), writer("3")]);
    let document = database.document("a").expect("the document");
    assert_eq!(document.head_revision().expect("the head"), Revision(2), "one of them at most");
}

/// What a save tells that changed nothing is what it compared with, and not what came behind it.
pub(super) fn unchanged() {
    const SAVED: &str = r#"{"n":1}"#;
    let database = open(MEMORY_BYTES);
    let records = database.create_collection("records", KeyKind::Text).expect("a collection");
    records.put("a", SAVED, &CommitOptions::default()).expect("a record");
    let saver = thread(&database, |database| {
        let records = database.collection("records").expect("the collection");
        match records.update("a", 1, SAVED, &CommitOptions::default()) {
            Ok(saved) => assert_eq!((saved.version, saved.outcome.revision()), (1, Revision(1))),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
    });
    let other = thread(&database, |database| {
        let records = database.collection("records").expect("the collection");
        if below(2) == 0 {
            records.put("a", r#"{"n":2}"#, &CommitOptions::default()).expect("another version");
        } else {
            assert!(records.delete("a", &CommitOptions::default()).expect("a deletion"));
        }
    });
    at_once([saver, other]);
}

/// Revisions stay readable while checkpoints and merges replace the segments that they are in.
pub(super) fn segments() {
    let database = open(64 << 10);
    let put = |database: &Database, name: &str, revision: u64| {
        let document = database.document(name).expect("the document");
        let text = format!("[{revision}]");
        document.put(text, &CommitOptions::default()).expect("a revision");
    };
    for name in DOCUMENTS {
        database.create_document(name).expect("a new document");
    }
    // Nobody holds the documents, so that a checkpoint drops what is in memory of them. The one
    // after these makes a merge due.
    for revision in 1..=SEGMENTS_KEPT_MAX as u64 {
        for name in DOCUMENTS {
            put(&database, name, revision);
        }
        database.checkpoint().expect("a checkpoint");
    }
    let checkpointer = thread(&database, move |database| {
        put(database, "b", 2);
        database.checkpoint().expect("a checkpoint");
    });
    let reader = || {
        thread(&database, |database| {
            let first = below(DOCUMENTS.len());
            for name in DOCUMENTS.iter().cycle().skip(first).take(DOCUMENTS.len()) {
                // Else all would have been read before the merge comes to its end.
                for _ in 0..below(READ_PAUSE) {
                    shuttle::thread::yield_now();
                }
                let document = database.document(name).expect("the document");
                let revision = 1 + below(3) as u64;
                let read = document.at(Revision(revision)).and_then(|at| at.to_json());
                assert_eq!(read.expect("a revision"), format!("[{revision}]"));
            }
        })
    };
    at_once([checkpointer, reader(), reader()]);
    assert!(database.counters().compactions > 0, "nothing was merged");
    assert!(database.check().expect("a check").findings.is_empty(), "damage");
}

/// Writers that fill the memory wait for a checkpoint that one of them writes.
pub(super) fn memory() {
    let database = open(16 << 10);
    let writer = |name: &'static str, from: u64| {
        thread(&database, move |database| {
            let document = database.document(name).expect("the document");
            for number in from..from + 2 {
                let text = format!("[{number},\"{}\"]", "x".repeat(3_000));
                document.put(text, &CommitOptions::default()).expect("a commit");
            }
        })
    };
    at_once([writer("a", 10), writer("b", 20), writer("b", 30)]);
    let stats = database.stats().expect("the size");
    assert!(stats.segments > 0, "nobody wrote a checkpoint");
    assert!(database.check().expect("a check").findings.is_empty(), "damage");
    assert_eq!(database.document("b").and_then(|b| b.head_revision()).expect("b"), Revision(5));
}
