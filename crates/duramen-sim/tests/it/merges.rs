//! Merges of segments on a device that loses its power at every change: what was merged before is
//! not merged again, and what is read stays what it was.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::{Access, Device};
use duramen::{
    CommitOptions, Database, DocumentOptions, ErrorKind, Filter, IndexDefinition, JsonPointer,
    KeyKind, Micros, Options, PurgeOptions, Query, Result, Retention, Revision,
};
use duramen_sim::{
    FaultKind, FaultPlan, Operation, PowerLoss, Profile, Random, SimulatedClock, SimulatedDevice,
};

/// Bytes of cells in a piece of a merge; of what is not noted yet there may be as much, and the
/// column in which it ends.
const PIECE_BYTES: usize = 4 << 10;
const REPEATED_BYTES_MAX: u64 = 2 * PIECE_BYTES as u64;

/// What an index writes that follows its collection once more where the power went.
const FOLLOWED_BYTES_MAX: u64 = 4 << 10;
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

/// The same with a retention for most documents.
fn begin_with(keep: Retention) -> SimulatedDevice {
    let device = begin();
    let db = open(&device, 64 << 20);
    for document in (0..DOCUMENTS).filter(|document| document % 5 > 0) {
        let document = db.document(&format!("d{document}")).unwrap();
        document.retain(keep, &CommitOptions::default()).unwrap();
    }
    device.kill()
}

/// Everything that is kept is read as it was written, and no file is left that nothing names.
fn check(device: &SimulatedDevice, db: &Database) {
    for document in (0..DOCUMENTS).step_by(7) {
        let found = db.document(&format!("d{document}")).unwrap();
        let first = found.first_revision().unwrap().0 - 1;
        assert!(first == 0 || document % 5 > 0, "document {document} begins with {first}");
        for revision in 0..REVISIONS {
            let snapshot = found.at(Revision(revision + 1));
            if revision < first {
                assert_eq!(snapshot.unwrap_err().kind(), ErrorKind::NotFound);
            } else {
                assert_eq!(snapshot.unwrap().to_json().unwrap(), text(document, revision));
            }
        }
    }
    let findings = db.check().unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
    let files = device.list("segments").unwrap();
    assert_eq!(files.len() as u64, db.stats().unwrap().segments, "{files:?}");
}

/// Bytes of all segments.
fn segment_bytes(device: &SimulatedDevice) -> u64 {
    let names = device.list("segments").unwrap().into_iter();
    let files = names.map(|name| device.open(&format!("segments/{name}"), Access::Read).unwrap());
    files.map(|file| file.len().unwrap()).sum()
}

/// What holds of a database whose merge came to its end.
type Check = fn(&SimulatedDevice, &Database);

/// Interrupts what merges at each change of the device; another process then does it to its end.
fn interrupt_everywhere(
    before: &SimulatedDevice,
    merge: &dyn Fn(&Database) -> Result<()>,
    check: Check,
) {
    interrupt_within(before, merge, check, REPEATED_BYTES_MAX);
}

/// The same, with so many bytes that may be merged again.
fn interrupt_within(
    before: &SimulatedDevice,
    merge: &dyn Fn(&Database) -> Result<()>,
    check: Check,
    again_max: u64,
) {
    let whole = before.kill();
    let db = open(&whole, PIECE_BYTES);
    merge(&db).unwrap();
    let total = db.counters().compacted_bytes;
    assert!(total > 8 * REPEATED_BYTES_MAX, "{total} bytes");
    let bytes = segment_bytes(&whole);
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
            read + again <= total + again_max,
            "crash {crashes}: {read} bytes were merged, then {again} of {total}"
        );
        resumed += u64::from(read > REPEATED_BYTES_MAX && again > 0 && again < total);
        check(&image, &db);
        assert_eq!(segment_bytes(&image), bytes, "crash {crashes}");
        drop(db);
        crashes += 3;
    }
    assert!(resumed > 20, "{resumed} of {crashes} merges went on");
}

#[test]
fn compaction_on_demand_goes_on_wherever_the_power_went() {
    interrupt_everywhere(&begin(), &|db| compact(db), check);
}

#[test]
fn merge_that_is_due_goes_on_wherever_the_power_went() {
    interrupt_everywhere(&begin(), &|db| db.checkpoint(), check);
}

#[test]
fn merges_that_drop_revisions_go_on_wherever_the_power_went() {
    interrupt_everywhere(&begin_with(Retention::Head), &|db| compact(db), check);
    interrupt_everywhere(&begin_with(Retention::Last(3)), &|db| db.checkpoint(), check);
}

/// A value with long texts, of which each revision has others, in an order of its own; what some
/// revisions have, others have not.
fn single_text(revision: u64) -> String {
    let row = |row: u64| {
        let long = match row % 20 {
            // Stored apart, so that it is a cell.
            0 => format!("{row:03} {revision} ").repeat(720),
            _ => format!("{}", row * revision),
        };
        format!("{{\"id\":{row},\"n\":{},\"text\":\"{long}\"}}", row / 7 + revision)
    };
    let mut rows: Vec<_> =
        (0..120).filter(|n| !(n + revision).is_multiple_of(11)).map(row).collect();
    rows.rotate_left(usize::try_from(revision).unwrap());
    let old = if revision % 3 == 1 { ",\"old\":[[1,2],{\"a\":[\"b\"]}]" } else { "" };
    format!("{{\"rows\":[{}]{old}}}", rows.join(","))
}

/// A database with one document and an indexed collection, of whose histories some is to be
/// dropped.
fn begin_single(keep: Retention) -> SimulatedDevice {
    let device = SimulatedDevice::new(7, Profile::CRUEL);
    let db = open(&device, 64 << 20);
    let ids = [("$.rows".parse().unwrap(), "id".to_owned())].into();
    let declared = DocumentOptions { ids, ..DocumentOptions::default() };
    let document = db.create_document_with("single", &declared).unwrap();
    document.retain(keep, &CommitOptions::default()).unwrap();
    let declared = DocumentOptions {
        collection: Some(KeyKind::I64),
        indexes: [IndexDefinition::new("n", &["n"]).unwrap()].into_iter().collect(),
        keep,
        ..DocumentOptions::default()
    };
    db.create_document_with("people", &declared).unwrap();
    let people = db.collection("people").unwrap();
    for revision in 0..REVISIONS {
        document.put(single_text(revision), &CommitOptions::default()).unwrap();
        let record = |n: u64| (n.cast_signed(), format!("{{\"n\":{}}}", (n * revision) % 7));
        people.put_many((0..60).map(record), &CommitOptions::default()).unwrap();
        if revision + 1 < REVISIONS {
            db.checkpoint().unwrap();
        }
    }
    device.kill()
}

fn check_single(device: &SimulatedDevice, db: &Database) {
    let document = db.document("single").unwrap();
    let first = document.first_revision().unwrap();
    assert!(first.0 >= REVISIONS - 2, "the history begins with {first}");
    for revision in first.0..=REVISIONS {
        let found = document.at(Revision(revision)).unwrap().to_json().unwrap();
        assert_eq!(found, single_text(revision - 1), "revision {revision}");
    }
    // Of the last revision, in which each number is 7 times another one.
    let people = db.collection("people").unwrap();
    let found = people.query(&Query::new().filter(Filter::eq("n", 0))).unwrap();
    assert_eq!(found.count(), 60);
    let findings = db.check().unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
    let files = device.list("segments").unwrap();
    assert_eq!(files.len() as u64, db.stats().unwrap().segments, "{files:?}");
}

#[test]
fn merges_of_one_document_that_drop_revisions_go_on_within_it() {
    let again_max = REPEATED_BYTES_MAX + FOLLOWED_BYTES_MAX;
    for keep in [Retention::Head, Retention::Last(3)] {
        interrupt_within(&begin_single(keep), &|db| compact(db), check_single, again_max);
    }
    let begun = begin_single(Retention::Last(3));
    interrupt_within(&begun, &|db| db.checkpoint(), check_single, again_max);
}

/// A merge that is due, of which revisions are dropped, that lost its power in the midst; the bytes
/// it had merged, and all that it has to.
fn interrupted() -> (SimulatedDevice, u64, u64) {
    let before = begin_with(Retention::Last(3));
    let merged = |crash: Option<u64>| {
        let device = before.kill();
        let db = open(&device, PIECE_BYTES);
        let first = device.changes();
        device.crash_at(first + crash.unwrap_or(u64::MAX - first));
        // The checkpoint is not in need of the merge, so that it does not tell its failure.
        let _ = db.checkpoint();
        let changes = device.changes() - first;
        let image = device.power_loss(PowerLoss::Clean, &mut Random::new(1));
        (image, db.counters().compacted_bytes, changes)
    };
    let (_, total, changes) = merged(None);
    let (device, read, _) = merged(Some(changes * 3 / 4));
    assert!(read > 2 * REPEATED_BYTES_MAX && read < total, "{read} bytes of {total}");
    (device, read, total)
}

#[test]
fn commits_do_not_keep_a_merge_that_drops_revisions_from_going_on() {
    let (device, read, total) = interrupted();
    let db = open(&device, 64 << 20);
    for document in 0..DOCUMENTS {
        let found = db.document(&format!("d{document}")).unwrap();
        assert_eq!(found.first_revision().unwrap(), Revision(1), "all can be read again");
        found.revert_to(Revision(2), &CommitOptions::default()).unwrap();
    }
    db.checkpoint().unwrap();
    let again = db.counters().compacted_bytes;
    assert!(read + again <= total + REPEATED_BYTES_MAX, "{read}, then {again} of {total}");
    for document in 0..DOCUMENTS {
        let found = db.document(&format!("d{document}")).unwrap();
        let first = if document % 5 > 0 { REVISIONS - 2 } else { 1 };
        assert_eq!(found.first_revision().unwrap(), Revision(first));
        assert_eq!(found.head().unwrap().to_json().unwrap(), text(document, 1));
    }
    check(&device, &db);
}

#[test]
fn what_is_to_be_kept_by_now_is_not_dropped_by_a_merge_that_was_interrupted() {
    let (device, _, total) = interrupted();
    let db = open(&device, PIECE_BYTES);
    let document = db.document("d1").unwrap();
    document.tag("two", Some(Revision(2)), &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    assert!(db.counters().compacted_bytes >= total, "all of it was merged again");
    assert_eq!(document.first_revision().unwrap(), Revision(REVISIONS - 2));
    let tagged = document.at(Revision(2)).unwrap();
    assert_eq!(tagged.to_json().unwrap(), text(1, 1));
    assert!(db.check().unwrap().findings.is_empty());
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
fn readers_have_again_what_a_compaction_was_to_drop_that_was_stopped() {
    let device = begin();
    let db = open(&device, PIECE_BYTES);
    let document = db.document("d50").unwrap();
    document.retain(Retention::Head, &CommitOptions::default()).unwrap();
    stop(&db);
    let read = db.counters().compacted_bytes;
    assert_eq!(document.first_revision().unwrap().0, 1);
    compact(&db).unwrap();
    let again = db.counters().compacted_bytes - read;
    assert!(again <= REPEATED_BYTES_MAX, "{again} bytes were merged again of {read}");
    assert_eq!(document.first_revision().unwrap().0, REVISIONS);
    check(&device, &db);
}

/// A tag was set on a revision that the merged segment has not, which the next open found.
#[test]
fn nothing_depends_on_what_a_failed_merge_may_have_dropped() {
    let before = begin_with(Retention::Head);
    let mut refused = 0;
    for nth in 1.. {
        let device = before.kill();
        let db = open(&device, 64 << 20);
        device.fail(FaultPlan::new(FaultKind::Fail(Operation::SyncDir), nth));
        let compacted = compact(&db);
        device.repair();
        if compacted.is_ok() {
            break;
        }
        let document = db.document("d1").unwrap();
        let tagged = document.tag("old", Some(Revision(1)), &CommitOptions::default());
        refused += u64::from(tagged.is_err());
        let db = open(&device.kill(), 64 << 20);
        if tagged.is_ok() {
            let old = db.document("d1").unwrap().at(Revision(1)).unwrap();
            assert_eq!(old.to_json().unwrap(), text(1, 0), "sync {nth} failed");
        }
        let findings = db.check().unwrap().findings;
        assert!(findings.is_empty(), "sync {nth} failed: {findings:?}");
    }
    assert!(refused > 0);
}
