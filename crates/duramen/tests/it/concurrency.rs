//! Writers, readers and checkpoints at the same time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use duramen::io::MemoryDevice;
use duramen::{
    CommitOptions, Database, ErrorKind, JsonPointer, LogQuery, Options, Revision, Transaction,
};
use parking_lot::Mutex;

const WRITERS: u64 = 5;
const COMMITS: u64 = 1_000;
/// Rows of a document whose row groups are too large to be read whole.
const ROWS: u64 = 6_000;

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

fn plain() -> CommitOptions {
    CommitOptions::default()
}

fn open(device: &Arc<MemoryDevice>, read_only: bool) -> Database {
    // With so little memory, commits write checkpoints all the time.
    let options = Options { memory_bytes: 256 << 10, read_only, ..Options::default() };
    Database::open_device(Arc::<MemoryDevice>::clone(device), options).unwrap()
}

/// The whole value that a writer saves as its commit `number`.
fn value(writer: u64, number: u64) -> String {
    let list: Vec<String> =
        (0..number % 40).map(|n| format!(r#"{{"n":{}}}"#, n * number)).collect();
    let text = "x".repeat(usize::try_from(number * 37 % 5_000).unwrap());
    let extra = format!(r#""f{}":{number}"#, number % 7);
    format!(
        r#"{{"writer":{writer},"number":{number},"list":[{}],"text":"{text}",{extra}}}"#,
        list.join(",")
    )
}

/// What was acknowledged: the text of each revision, by document.
type Acknowledged = Mutex<BTreeMap<(String, Revision), String>>;

struct Stress {
    db: Database,
    acknowledged: Acknowledged,
    /// The last value set in a row of the large document, and the revision that set it.
    rows: Mutex<BTreeMap<u64, (Revision, u64)>>,
    is_over: AtomicBool,
}

impl Stress {
    /// Saves whole values of an own document, and rolls every other change back once.
    fn write_own(&self, writer: u64) {
        let name = format!("own{writer}");
        let document = self.db.create_document(&name).unwrap();
        for number in 1..=COMMITS {
            let text = value(writer, number);
            if number % 3 == 0 {
                let mut transaction = self.db.transaction();
                transaction.put(&name, value(writer, number + 1_000).as_bytes()).unwrap();
                transaction.set(&name, &pointer("/gone"), b"[1,2,{}]").unwrap();
                transaction.rollback();
            }
            let outcome = document.put(&text, &plain()).unwrap();
            assert_eq!(outcome.revision(), Revision(number));
            assert_eq!(document.head().unwrap().to_json().unwrap(), text, "own write of {name}");
            self.acknowledged.lock().insert((name.clone(), outcome.revision()), text);
        }
    }

    /// Sets values in the rows of a large document.
    fn write_rows(&self) {
        let document = self.db.document("rows").unwrap();
        for number in 1..=COMMITS {
            let row = number * 7_919 % 97 * 61;
            let at = pointer(&format!("/{row}/v"));
            let outcome = document.set(&at, number.to_string(), &plain()).unwrap();
            self.rows.lock().insert(row, (outcome.revision(), number));
        }
    }

    /// Reads one row of the large document, and how it came to its value.
    fn read_row(&self, seed: u64) {
        let picked = {
            let rows = self.rows.lock();
            let index = usize::try_from((seed >> 40) % rows.len().max(1) as u64).unwrap();
            rows.iter().nth(index).map(|(&row, &set)| (row, set))
        };
        let Some((row, (revision, number))) = picked else { return };
        let snapshot = self.db.document("rows").unwrap().at(revision).unwrap();
        let mut out = Vec::new();
        let at = pointer(&format!("/{row}"));
        snapshot.append_json(&at, &duramen::Format::default(), &mut out).unwrap();
        let expected = format!(r#"{{"id":{row},"v":{number},"text":"row {row}"}}"#);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let runs = snapshot.history(&pointer(&format!("/{row}/v"))).unwrap().map(Result::unwrap);
        let runs: Vec<_> = runs.collect();
        assert!(runs.iter().any(|run| run.first == revision), "{row} at {revision}: {runs:?}");
        assert!(runs.windows(2).all(|pair| pair[0].first.0 == pair[1].last.0 + 1), "{runs:?}");
        assert_eq!(runs[runs.len() - 1].first, Revision(1));
    }

    /// Moves an amount between two shared documents; the sum stays.
    fn transfer(&self, writer: u64) {
        for number in 0..COMMITS {
            let (from, to) =
                if (writer + number).is_multiple_of(2) { ("s1", "s2") } else { ("s2", "s1") };
            while let Err(error) = self.try_transfer(from, to, number) {
                assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                thread::yield_now();
            }
        }
    }

    fn try_transfer(&self, from: &str, to: &str, amount: u64) -> duramen::Result<()> {
        let mut transaction = self.db.transaction();
        let balance = pointer("/balance");
        let add = |transaction: &mut Transaction, name: &str, amount: i64| {
            let old: i64 = transaction.get(name, &balance)?.parse().unwrap();
            transaction.set(name, &balance, (old + amount).to_string().as_bytes())?;
            transaction.set(name, &pointer("/log/-"), amount.to_string().as_bytes())
        };
        add(&mut transaction, from, -amount.cast_signed())?;
        add(&mut transaction, to, amount.cast_signed())?;
        if amount % 5 == 4 {
            transaction.rollback();
            return Ok(());
        }
        transaction.commit(&plain())?;
        Ok(())
    }

    /// Reads acknowledged revisions, histories and the sum of the shared documents.
    fn read(&self, mut seed: u64) {
        while !self.is_over.load(Ordering::Relaxed) {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            read_sum(&self.db);
            self.read_row(seed);
            let picked = {
                let acknowledged = self.acknowledged.lock();
                let len = acknowledged.len().max(1) as u64;
                let index = usize::try_from((seed >> 33) % len).unwrap();
                acknowledged.iter().nth(index).map(|(key, text)| (key.clone(), text.clone()))
            };
            let Some(((name, revision), text)) = picked else { continue };
            let document = self.db.document(&name).unwrap();
            let snapshot = document.at(revision).unwrap();
            assert_eq!(snapshot.to_json().unwrap(), text, "{name} at {revision}");
            check_past(&document, revision);
        }
    }
}

/// The sum of the shared documents, which is the same in every commit.
fn read_sum(db: &Database) {
    let snapshot = db.snapshot();
    let sum: i64 = ["s1", "s2"].iter().map(|name| balance(&snapshot.document(name).unwrap())).sum();
    assert_eq!(sum, 0, "at {:?}", snapshot.sequence());
}

fn balance(snapshot: &duramen::Snapshot) -> i64 {
    let mut out = Vec::new();
    snapshot.append_json(&pointer("/balance"), &duramen::Format::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap().parse().unwrap()
}

/// What holds of a document that is written at every revision by [`Stress::write_own`].
fn check_past(document: &duramen::Document, revision: Revision) {
    let head = document.head().unwrap();
    let runs: Vec<_> = head.history(&pointer("/number")).unwrap().map(Result::unwrap).collect();
    assert!(runs.len() as u64 >= head.revision().0, "{runs:?}");
    for (run, expected) in runs.iter().rev().zip(1..=head.revision().0) {
        assert_eq!((run.first.0, run.value.to_string()), (expected, expected.to_string()));
    }
    let times = document.timestamps().unwrap();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    let query = LogQuery { limit: Some(5), ..LogQuery::default() };
    let log: Vec<_> = document.log(&query).unwrap().map(Result::unwrap).collect();
    assert!(log.windows(2).all(|pair| pair[0].revision.0 == pair[1].revision.0 + 1));
    if revision.0 > 1 {
        let before = Revision(revision.0 - 1);
        let patch = document.diff(before, revision).unwrap().to_json_patch();
        let changed = format!(r#"{{"op":"replace","path":"/number","value":{revision}}}"#);
        assert!(patch.contains(&changed), "{patch}");
    }
}

#[test]
fn writers_readers_and_checkpoints_do_not_disturb_each_other() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device, false);
    for name in ["s1", "s2"] {
        let document = db.create_document(name).unwrap();
        document.put(r#"{"balance":0,"log":[]}"#, &plain()).unwrap();
    }
    let row = |row: u64| format!(r#"{{"id":{row},"v":0,"text":"row {row}"}}"#);
    let rows: Vec<String> = (0..ROWS).map(row).collect();
    let document = db.create_document("rows").unwrap();
    document.put(format!("[{}]", rows.join(",")), &plain()).unwrap();
    drop(document);
    let stress = Stress {
        db,
        acknowledged: Mutex::default(),
        rows: Mutex::default(),
        is_over: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let stress = &stress;
                scope.spawn(move || match writer % 2 {
                    _ if writer == 4 => stress.write_rows(),
                    0 => stress.write_own(writer),
                    _ => stress.transfer(writer / 2),
                })
            })
            .collect();
        for seed in 0..2 {
            let stress = &stress;
            scope.spawn(move || stress.read(seed));
        }
        scope.spawn(|| {
            while !stress.is_over.load(Ordering::Relaxed) {
                stress.db.checkpoint().unwrap();
                let reader = open(&device, true);
                read_sum(&reader);
                reader.refresh().unwrap();
                read_sum(&reader);
            }
        });
        let results: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        stress.is_over.store(true, Ordering::Relaxed);
        for result in results {
            result.unwrap();
        }
    });
    let Stress { db, acknowledged, .. } = stress;
    db.close().unwrap();
    let db = open(&device, false);
    for ((name, revision), text) in acknowledged.into_inner() {
        let document = db.document(&name).unwrap();
        assert_eq!(document.at(revision).unwrap().to_json().unwrap(), text, "{name} {revision}");
    }
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

/// Both threads once made the document, if the one did not see the commit of the other.
#[test]
fn a_document_is_made_once_however_many_make_it() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device, false);
    for round in 0..100 {
        let (name, barrier) = (format!("d{round}"), Barrier::new(3));
        let made: usize = thread::scope(|scope| {
            let create = || {
                barrier.wait();
                match db.create_document(&name) {
                    Ok(_) => 1,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                        0
                    }
                }
            };
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(create)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(made, 1, "{name}");
    }
}

/// What a transaction staged before a checkpoint is committed, or taken back, after it.
#[test]
fn staged_changes_outlive_a_checkpoint() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device, false);
    let document = db.create_document("d").unwrap();
    document.put(value(0, 30), &plain()).unwrap();
    for is_committed in [false, true] {
        let head = document.head().unwrap();
        let text = head.to_json().unwrap();
        let mut transaction = db.transaction();
        transaction.put("d", value(1, 37).as_bytes()).unwrap();
        transaction.put("new", b"[1,2]").unwrap();
        db.checkpoint().unwrap();
        transaction.set("d", &pointer("/list/-"), b"\"last\"").unwrap();
        let staged = transaction.get("d", &pointer("")).unwrap();
        assert_eq!(head.to_json().unwrap(), text);
        if is_committed {
            transaction.commit(&plain()).unwrap();
            assert_eq!(document.head().unwrap().to_json().unwrap(), staged);
        } else {
            transaction.rollback();
            assert_eq!(document.head().unwrap().to_json().unwrap(), text);
            assert_eq!(db.document("new").unwrap_err().kind(), ErrorKind::NotFound);
        }
        db.checkpoint().unwrap();
        assert!(db.check().unwrap().is_clean());
    }
    let texts = [1, 2].map(|revision| document.at(Revision(revision)).unwrap().to_json().unwrap());
    drop(document);
    db.close().unwrap();
    let db = open(&device, false);
    let document = db.document("d").unwrap();
    for (revision, text) in (1..).zip(texts) {
        assert_eq!(document.at(Revision(revision)).unwrap().to_json().unwrap(), text);
    }
}
