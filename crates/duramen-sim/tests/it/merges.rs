//! Merges of segments on a device that loses its power at every change: what was merged before is
//! not merged again, and what is read stays what it was.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::Device;
use duramen::{
    CommitOptions, Database, ErrorKind, JsonPointer, Micros, Options, PurgeOptions, Result,
    Retention,
};
use duramen_sim::{PowerLoss, Profile, Random, SimulatedClock, SimulatedDevice};

/// Bytes of cells in a piece of a merge; of what is not noted yet there may be as much, and the
/// column in which it ends.
const PIECE_BYTES: usize = 4 << 10;
const REPEATED_BYTES_MAX: u64 = 2 * PIECE_BYTES as u64;
const DOCUMENTS: u64 = 80;
/// One more checkpoint than there are segments without a merge.
const REVISIONS: u64 = 8;

fn open(device: &SimulatedDevice, journal_bytes: usize) -> Database {
    let clock = Arc::new(SimulatedClock::new(Micros(1_700_000_000_000_000)));
    let options = Options {
        background: false,
        clock,
        checkpoint_journal_bytes: journal_bytes,
        ..Options::default()
    };
    Database::open_device(Arc::new(device.clone()), options).unwrap()
}

fn text(document: u64, revision: u64) -> String {
    let rows = (0..8).map(|row| format!("{{\"row\":{row},\"n\":{}}}", row * document + revision));
    format!("[{}]", rows.collect::<Vec<_>>().join(","))
}

/// A database with as many young segments as are not merged, and one more in the journal.
fn begin() -> SimulatedDevice {
    let device = SimulatedDevice::new(7, Profile::CRUEL);
    let db = open(&device, 64 << 20);
    for revision in 0..REVISIONS {
        for document in 0..DOCUMENTS {
            let name = format!("d{document}");
            if revision == 0 {
                db.create_document(&name).unwrap();
            }
            let text = text(document, revision);
            db.document(&name).unwrap().put(&text, &CommitOptions::default()).unwrap();
        }
        if revision + 1 < REVISIONS {
            db.checkpoint().unwrap();
        }
    }
    // Closing might write a checkpoint more, and merge.
    device.kill()
}

fn compact(db: &Database) -> Result<()> {
    db.compact(&mut |_, _| ControlFlow::Continue(()))
}

/// Everything is read as it was written, and no file is left that nothing names.
fn check(device: &SimulatedDevice, db: &Database) {
    for document in (0..DOCUMENTS).step_by(7) {
        let found = db.document(&format!("d{document}")).unwrap();
        for revision in 0..REVISIONS {
            let snapshot = found.at(duramen::Revision(revision + 1)).unwrap();
            assert_eq!(snapshot.to_json().unwrap(), text(document, revision));
        }
    }
    let findings = db.check().unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
    let files = device.list("segments").unwrap();
    assert_eq!(files.len() as u64, db.stats().unwrap().segments, "{files:?}");
}

/// Interrupts what merges at each change of the device; another process then does it to its end.
fn interrupt_everywhere(merge: &dyn Fn(&Database) -> Result<()>) {
    let before = begin();
    let whole = before.kill();
    let db = open(&whole, PIECE_BYTES);
    merge(&db).unwrap();
    let total = db.counters().compacted_bytes;
    assert!(total > 8 * REPEATED_BYTES_MAX, "{total} bytes");
    drop(db);
    let (mut random, mut crashes, mut resumed) = (Random::new(1), 0, 0);
    loop {
        let device = before.kill();
        let db = open(&device, PIECE_BYTES);
        device.crash_at(device.changes() + 1 + crashes);
        let merged = merge(&db);
        let read = db.counters().compacted_bytes;
        let is_off = device.is_off();
        drop(db);
        if !is_off {
            merged.unwrap();
            break;
        }
        let image = device.power_loss(PowerLoss::random(&mut random), &mut random);
        let db = open(&image, PIECE_BYTES);
        merge(&db).unwrap();
        let again = db.counters().compacted_bytes;
        assert!(
            read + again <= total + REPEATED_BYTES_MAX,
            "crash {crashes}: {read} bytes were merged, then {again} of {total}"
        );
        resumed += u64::from(read > REPEATED_BYTES_MAX && again > 0 && again < total);
        check(&image, &db);
        drop(db);
        crashes += 3;
    }
    assert!(resumed > 20, "{resumed} of {crashes} merges went on");
}

#[test]
fn compaction_on_demand_goes_on_wherever_the_power_went() {
    interrupt_everywhere(&|db| compact(db));
}

#[test]
fn merge_that_is_due_goes_on_wherever_the_power_went() {
    interrupt_everywhere(&|db| db.checkpoint());
}

/// Interrupts a compaction before its end, in an orderly way.
fn stop(db: &Database) {
    let error = db.compact(&mut |_, _| ControlFlow::Break(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

/// A database whose compaction was interrupted, and the bytes it had merged.
fn stopped() -> (SimulatedDevice, Database, u64) {
    let device = begin();
    let db = open(&device, PIECE_BYTES);
    stop(&db);
    let read = db.counters().compacted_bytes;
    (device, db, read)
}

#[test]
fn compaction_that_was_stopped_goes_on() {
    let (device, db, read) = stopped();
    db.close().unwrap();
    let db = open(&device, PIECE_BYTES);
    compact(&db).unwrap();
    let again = db.counters().compacted_bytes;
    assert!(again <= REPEATED_BYTES_MAX, "{again} bytes were merged again of {read}");
    check(&device, &db);
}

#[test]
fn compaction_of_other_segments_removes_what_one_left() {
    let (device, db, read) = stopped();
    assert!(device.list("segments").unwrap().contains(&"MERGE".to_owned()));
    db.create_document("other").unwrap().put("1", &CommitOptions::default()).unwrap();
    compact(&db).unwrap();
    assert!(db.counters().compacted_bytes >= 2 * read);
    check(&device, &db);
}

#[test]
fn purge_removes_what_a_compaction_left() {
    let (device, db, _) = stopped();
    let document = db.document("d3").unwrap();
    let go_on = &mut |_, _| ControlFlow::Continue(());
    document.purge(&JsonPointer::parse("/0").unwrap(), &PurgeOptions::default(), go_on).unwrap();
    let files = device.list("segments").unwrap();
    assert_eq!(files.len() as u64, db.stats().unwrap().segments, "{files:?}");
}

#[test]
fn compaction_that_drops_revisions_leaves_nothing_when_stopped() {
    let device = begin();
    let db = open(&device, PIECE_BYTES);
    let document = db.document("d50").unwrap();
    document.retain(Retention::Head, &CommitOptions::default()).unwrap();
    stop(&db);
    let files = device.list("segments").unwrap();
    assert_eq!(files.len() as u64, db.stats().unwrap().segments, "{files:?}");
    assert_eq!(document.first_revision().unwrap().0, 1, "readers have it again");
    compact(&db).unwrap();
    assert_eq!(document.first_revision().unwrap().0, REVISIONS);
}
