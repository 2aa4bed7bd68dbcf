//! How much stays decoded, and that reads do not depend on it.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::io::MemoryDevice;
use crate::{CommitOptions, Database, Format, JsonPointer, Options, Revision};

const RECORDS: u64 = 40_000;
const BUDGET: usize = 512 << 10;
/// Bytes of the largest row group of the document decoded, and more.
const LARGEST: usize = 256 << 10;

fn open(device: &Arc<MemoryDevice>, read_only: bool) -> Database {
    let options =
        Options { memory_bytes: BUDGET, read_only, background: false, ..Options::default() };
    Database::open_device(Arc::<MemoryDevice>::clone(device), options).unwrap()
}

fn record(index: u64, revision: u64) -> String {
    let changed = if index == revision * 1_000 { revision } else { 0 };
    format!(r#"{{"id":{index},"text":"record {index}","n":{changed}}}"#)
}

/// An array of records; revision r from 2 on has changed record 1,000 r.
fn build(device: &Arc<MemoryDevice>) {
    let db = open(device, false);
    let document = db.create_document("d").unwrap();
    let records: Vec<String> = (0..RECORDS).map(|index| record(index, 0)).collect();
    let plain = CommitOptions::default();
    document.put(format!("[{}]", records.join(",")), &plain).unwrap();
    for revision in 2..=20_u64 {
        let place = JsonPointer::parse(&format!("/{}/n", revision * 1_000)).unwrap();
        document.set(&place, revision.to_string(), &plain).unwrap();
        db.checkpoint().unwrap();
    }
}

#[test]
fn what_is_decoded_stays_within_the_budget_and_reads_are_right() {
    let device = Arc::new(MemoryDevice::new());
    build(&device);
    for read_only in [true, false] {
        let db = open(&device, read_only);
        let document = db.document("d").unwrap();
        let (view, mut most) = (db.engine.view(), 0);
        let memory = view.store.memory();
        for step in 0..3_000_u64 {
            let (index, revision) = (step * 7_919 % RECORDS, step % 20 + 1);
            let index = if step % 5 == 0 { revision * 1_000 } else { index };
            let place = JsonPointer::parse(&format!("/{index}")).unwrap();
            let mut text = Vec::new();
            let snapshot = document.at(Revision(revision)).unwrap();
            snapshot.append_json(&place, &Format::default(), &mut text).unwrap();
            let newest = if revision == 1 { 0 } else { revision.min(index / 1_000) };
            assert_eq!(text, record(index, newest).as_bytes(), "{index} at {revision}");
            let decoded = memory.decoded.load(Ordering::Relaxed);
            most = most.max(decoded);
            assert!(decoded < BUDGET / 2 + LARGEST, "{decoded} bytes are decoded");
        }
        assert!(most > BUDGET / 4, "the budget is used: {most}");
        let whole = document.head().unwrap().to_json().unwrap();
        assert_eq!(whole.matches("\"id\"").count() as u64, RECORDS);
        drop(document);
        let trees = Arc::strong_count(memory);
        assert!(memory.residents.lock().len() < trees + GONE_MIN);
    }
}

#[test]
fn what_is_dropped_is_counted_no_more() {
    let device = Arc::new(MemoryDevice::new());
    build(&device);
    let db = open(&device, false);
    let memory = Arc::clone(db.engine.view().store.memory());
    let document = db.document("d").unwrap();
    document.head().unwrap().to_json().unwrap();
    assert!(memory.decoded.load(Ordering::Relaxed) > 0);
    drop(document);
    db.close().unwrap();
    assert_eq!(memory.decoded.load(Ordering::Relaxed), 0);
    assert_eq!(memory.living.load(Ordering::Relaxed), 0);
}

#[derive(Debug, Default)]
struct Owner {
    used: AtomicBool,
    kept: Mutex<Option<Arc<Resident>>>,
}

impl Evict for Owner {
    fn evict(&self, _: GroupId) -> bool {
        if self.used.swap(false, Ordering::Relaxed) {
            return false;
        }
        self.kept.lock().take();
        true
    }
}

/// Owners of a tenth of the budget for decoded parts each.
fn owners(memory: &Arc<Memory>) -> Vec<Arc<Owner>> {
    let owner = || {
        let owner = Arc::new(Owner::default());
        let part = GroupId { space: crate::tree::schema::SpaceId(0), group: 0 };
        let weak: Weak<Owner> = Arc::downgrade(&owner);
        let resident = Resident::new(memory, weak, part);
        resident.add(BUDGET / 20);
        resident.settle_in();
        *owner.kept.lock() = Some(resident);
        owner
    };
    (0..11).map(|_| owner()).collect()
}

fn kept(owners: &[Arc<Owner>]) -> Vec<bool> {
    owners.iter().map(|owner| owner.kept.lock().is_some()).collect()
}

#[test]
fn what_was_used_last_is_dropped_last() {
    let memory = Memory::new(BUDGET);
    let owners = owners(&memory);
    owners[0].used.store(true, Ordering::Relaxed);
    memory.settle();
    assert_eq!(kept(&owners), (0..11).map(|owner| owner != 1).collect::<Vec<_>>());
}

#[test]
fn nothing_is_dropped_while_a_reader_holds_it() {
    let memory = Memory::new(BUDGET);
    let owners = owners(&memory);
    let hold = memory.hold();
    memory.settle();
    assert!(kept(&owners).into_iter().all(|kept| kept));
    drop(hold);
    memory.settle();
    assert_eq!(kept(&owners).into_iter().filter(|kept| !kept).count(), 1);
}

#[test]
fn what_is_young_leaves_less_room_to_what_is_decoded() {
    let memory = Memory::new(BUDGET);
    let owners = owners(&memory);
    memory.add_young(BUDGET / 2);
    assert!(memory.is_half_young() && !memory.is_full_of_young());
    memory.settle();
    assert_eq!(kept(&owners).into_iter().filter(|kept| *kept).count(), 2);
    memory.remove_young(BUDGET / 2);
    assert_eq!(memory.young(), 0);
}

#[test]
fn what_is_staged_leaves_less_room_to_what_is_decoded() {
    let memory = Memory::new(BUDGET);
    let owners = owners(&memory);
    let mut staged = StagedBytes::new(&memory);
    staged.change(0, BUDGET / 2);
    memory.settle();
    assert_eq!(kept(&owners).into_iter().filter(|kept| *kept).count(), 2);
    staged.change(BUDGET / 2, BUDGET / 4);
    assert_eq!(memory.staged(), BUDGET / 4);
    drop(staged);
    assert_eq!(memory.staged(), 0);
}
