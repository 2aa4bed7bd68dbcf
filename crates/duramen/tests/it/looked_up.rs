//! What a change looks up before it has the turn of its collection, and others who write it then.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duramen::io::{Access, Device, File, Lock, MemoryDevice};
use duramen::{
    Collection, CommitOptions, Database, Key, KeyKind, LogQuery, Options, Result, Revision,
};

const RECORDS: u64 = 20_000;
/// The thread whose first read of a segment waits.
const READER: &str = "reader";

/// Nobody waits longer for anybody: then the test fails.
const WAIT: Duration = Duration::from_secs(30);

/// Where a reader waits once.
#[derive(Debug)]
struct Halt {
    is_armed: AtomicBool,
    has_come: Sender<()>,
    may_go: Mutex<Receiver<()>>,
}

/// The other side of it.
struct Watch {
    halt: Arc<Halt>,
    has_come: Receiver<()>,
    may_go: Sender<()>,
}

#[derive(Debug)]
struct Halting {
    device: MemoryDevice,
    halt: Arc<Halt>,
}

#[derive(Debug)]
struct HaltingFile {
    file: Arc<dyn File>,
    halt: Arc<Halt>,
}

impl Device for Halting {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.device.create_dir(path)
    }

    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        let file = self.device.open(path, access)?;
        if !path.ends_with(".segment") {
            return Ok(file);
        }
        Ok(Arc::new(HaltingFile { file, halt: Arc::clone(&self.halt) }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.device.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.device.remove(path)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.device.list(dir)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.device.sync_dir(dir)
    }

    fn lock(&self, path: &str, holder: &str) -> io::Result<Box<dyn Lock>> {
        self.device.lock(path, holder)
    }

    fn lock_holder(&self, path: &str) -> io::Result<String> {
        self.device.lock_holder(path)
    }
}

impl File for HaltingFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if std::thread::current().name() == Some(READER)
            && self.halt.is_armed.swap(false, Ordering::Relaxed)
        {
            self.halt.has_come.send(()).unwrap();
            let go = self.halt.may_go.lock().unwrap().recv_timeout(WAIT);
            go.expect("the others should not have waited for this read");
        }
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(buf, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

fn plain() -> CommitOptions {
    CommitOptions::default()
}

/// A collection on disk of which nothing was read but what a new record needs, in its third
/// revision.
fn on_disk() -> (Watch, Collection) {
    let ((come, has_come), (go, may_go)) = (channel(), channel());
    let halt = Halt { is_armed: AtomicBool::new(false), has_come: come, may_go: may_go.into() };
    let halt = Arc::new(halt);
    let device = Halting { device: MemoryDevice::new(), halt: Arc::clone(&halt) };
    let device: Arc<dyn Device> = Arc::new(device);
    let open = || {
        let options = Options { background: false, ..Options::default() };
        Database::open_device(Arc::clone(&device), options).unwrap()
    };
    let db = open();
    let records = db.create_collection("r", KeyKind::U64).unwrap();
    for n in 1..=2 {
        let put = (0..RECORDS).map(|key| (key, format!("{{\"n\":{n}}}")));
        records.put_many(put, &plain()).unwrap();
    }
    db.checkpoint().unwrap();
    drop((records, db));
    let records = open().collection("r").unwrap();
    // What is being read is waited for by whoever needs it as well.
    put(&records, RECORDS + 2);
    assert_eq!(records.document().head_revision().unwrap(), Revision(3));
    (Watch { halt, has_come, may_go: go }, records)
}

/// Changes the collection by a thread that waits at the first thing that it reads of it, while
/// another one does something with it.
fn beside<T: Send>(
    change: impl FnOnce(&Collection) -> Result<T> + Send,
    meanwhile: impl FnOnce(&Collection),
) -> (T, Collection) {
    let (watch, records) = on_disk();
    let changed = std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().name(READER.to_owned());
        watch.halt.is_armed.store(true, Ordering::Relaxed);
        let changing = reader.spawn_scoped(scope, || change(&records)).unwrap();
        watch.has_come.recv_timeout(WAIT).unwrap();
        meanwhile(&records);
        watch.may_go.send(()).unwrap();
        changing.join().unwrap().unwrap()
    });
    (changed, records)
}

fn put(records: &Collection, key: u64) {
    records.put(key, r#"{"n":3}"#, &plain()).unwrap();
}

fn value(records: &Collection, key: u64) -> Option<String> {
    records.get(key).unwrap().map(|record| record.json)
}

/// Who wrote a collection that was brought back had to wait until all of it was read.
#[test]
fn others_write_while_a_collection_that_is_reverted_is_read() {
    let revert = |records: &Collection| records.document().revert_to(Revision(1), &plain());
    let (outcome, records) = beside(revert, |records| {
        put(records, RECORDS);
        put(records, RECORDS + 1);
    });
    // All of what came meanwhile is taken back as well.
    assert_eq!(outcome.revision(), Revision(6));
    assert_eq!(records.count().unwrap(), RECORDS);
    for key in [0, RECORDS - 1] {
        assert_eq!(value(&records, key).as_deref(), Some(r#"{"n":1}"#));
    }
    let log = records.document().log(&LogQuery::default()).unwrap();
    assert_eq!(log.count(), 6);
}

#[test]
fn others_write_while_what_is_undone_is_read() {
    let undo = |records: &Collection| records.document().undo(Revision(2), &plain());
    let (outcome, records) = beside(undo, |records| put(records, RECORDS));
    assert_eq!(outcome.revision(), Revision(5));
    assert_eq!(value(&records, 7).as_deref(), Some(r#"{"n":1}"#));
    assert_eq!(value(&records, RECORDS).as_deref(), Some(r#"{"n":3}"#));
}

#[test]
fn others_write_while_records_that_are_deleted_are_looked_up() {
    let keys: Vec<Key> = (0..RECORDS + 2).step_by(2).map(Key::U64).collect();
    let (deleted, records) = beside(
        |records: &Collection| records.delete_many(&keys, &plain()),
        |records| {
            put(records, RECORDS);
            put(records, RECORDS + 1);
        },
    );
    // One that came meanwhile is among them.
    assert_eq!(deleted, RECORDS / 2 + 1);
    assert_eq!(records.count().unwrap(), RECORDS / 2 + 2);
    assert_eq!((value(&records, 8), value(&records, RECORDS)), (None, None));
    assert_eq!(value(&records, RECORDS + 1).as_deref(), Some(r#"{"n":3}"#));
}
