//! Purges that a power loss, a full disk or another process comes into.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::{Access, Device, read_exact_at};
use duramen::{
    CommitOptions, Database, ErrorKind, JsonPointer, Options, Purge, PurgeOptions, Result, Revision,
};
use duramen_sim::{FaultKind, FaultPlan, PowerLoss, Profile, Random, SimulatedDevice};

const SECRET: &str = "078-05-1120";
const REVISIONS: u64 = 9;

fn open(device: &SimulatedDevice) -> Result<Database> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    Database::open_device(device, Options { background: false, ..Options::default() })
}

fn plain() -> CommitOptions {
    CommitOptions::default()
}

/// What a revision is, with the secret or as it is after.
fn value(revision: u64, secret: &str) -> String {
    format!(r#"{{"id":{revision},"who":{{"name":"Ann","ssn":{secret}}},"list":[{revision}]}}"#)
}

fn before(revision: u64) -> String {
    let long = if revision.is_multiple_of(3) { "z".repeat(5_000) } else { String::new() };
    value(revision, &format!(r#"{{"text":"{SECRET} {revision}","more":["{SECRET}{long}"]}}"#))
}

/// A closed database with a secret in segments and in the journal, in files that were used before.
fn written(seed: u64) -> SimulatedDevice {
    let device = SimulatedDevice::new(seed, Profile::CRUEL);
    let db = open(&device).unwrap();
    let document = db.create_document("d").unwrap();
    let other = db.create_document("other").unwrap();
    for revision in 1..=REVISIONS {
        document.put(before(revision), &plain()).unwrap();
        other.put(format!("\"{}{revision}\"", "y".repeat(60_000)), &plain()).unwrap();
        if revision.is_multiple_of(4) {
            db.checkpoint().unwrap();
        }
    }
    document.tag("t", Some(Revision(2)), &plain()).unwrap();
    drop((document, other));
    db.close().unwrap();
    device
}

fn purge(db: &Database) -> Result<Purge> {
    let place = JsonPointer::parse("/who/ssn").unwrap();
    let options = PurgeOptions::default();
    db.document("d")?.purge(&place, &options, &mut |_, _| ControlFlow::Continue(()))
}

fn is_in_a_file(device: &SimulatedDevice) -> Option<String> {
    for folder in ["journal", "segments"] {
        for name in device.list(folder).unwrap() {
            let path = format!("{folder}/{name}");
            let file = device.open(&path, Access::Read).unwrap();
            let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
            read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
            if bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
                return Some(path);
            }
        }
    }
    None
}

/// Whether the value was purged, as the document says; then it is nowhere, else all is as it was.
fn assert_whole(device: &SimulatedDevice, db: &Database) -> bool {
    let document = db.document("d").unwrap();
    let purges = document.purges().unwrap();
    for revision in 1..=REVISIONS {
        let found = document.at(Revision(revision)).unwrap().to_json().unwrap();
        let expected = if purges.is_empty() { before(revision) } else { value(revision, "null") };
        assert_eq!(found, expected, "revision {revision}");
        let other = db.document("other").unwrap().at(Revision(revision)).unwrap();
        assert_eq!(other.to_json().unwrap().len(), 60_003);
    }
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    if purges.is_empty() {
        assert_eq!(document.head_revision().unwrap(), Revision(REVISIONS));
        return false;
    }
    assert!(purges.len() == 1 && !purges[0].is_pending, "{purges:?}");
    assert_eq!(document.head_revision().unwrap(), Revision(REVISIONS + 1));
    assert!(!document.head().unwrap().to_json().unwrap().contains("ssn"));
    assert_eq!(is_in_a_file(device), None);
    document.put("1", &plain()).unwrap();
    true
}

#[test]
fn a_purge_that_loses_power_anywhere_is_not_there_or_goes_on_when_opened() {
    let source = written(7);
    let mut random = Random::new(7);
    let (mut purged, mut untouched) = (0, 0);
    for change in 0.. {
        let device = source.kill();
        let db = open(&device).unwrap();
        device.crash_at(device.changes() + change);
        let done = purge(&db);
        drop(db);
        let loss = PowerLoss::random(&mut random);
        let mut after = device.power_loss(loss, &mut random);
        if random.one_in(3) {
            // The power goes again while it goes on.
            after.crash_at(after.changes() + random.below(60));
            drop(open(&after));
            after = after.power_loss(PowerLoss::random(&mut random), &mut random);
        }
        let db = open(&after).unwrap();
        if assert_whole(&after, &db) {
            purged += 1;
        } else {
            assert!(done.is_err(), "change {change}: a purge that returned is lost");
            untouched += 1;
        }
        drop(db);
        if done.is_ok() && !device.is_off() {
            break;
        }
    }
    assert!(purged > 20 && untouched > 2, "{purged} purged, {untouched} untouched");
}

#[test]
fn a_purge_on_a_full_disk_goes_on_when_there_is_space() {
    let source = written(8);
    let mut pending = 0;
    for nth in 1.. {
        let device = source.kill();
        let db = open(&device).unwrap();
        device.fail(FaultPlan::new(FaultKind::Full, nth).sticky());
        let done = purge(&db);
        device.repair();
        if let Err(error) = &done {
            assert_eq!(error.kind(), ErrorKind::Full, "{error}");
            let document = db.document("d").unwrap();
            if document.purges().unwrap().iter().any(|purge| purge.is_pending) {
                pending += 1;
                assert_eq!(document.put("1", &plain()).unwrap_err().kind(), ErrorKind::Busy);
            }
            db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
        }
        assert_whole(&device, &db);
        if done.is_ok() {
            break;
        }
    }
    assert!(pending > 0, "no purge was interrupted");
}

#[test]
fn a_reader_in_another_process_goes_on_after_a_refresh() {
    let device = written(9);
    let to_read: Arc<dyn Device> = Arc::new(device.clone());
    let options = Options { read_only: true, ..Options::default() };
    let reader = Database::open_device(to_read, options).unwrap();
    let db = open(&device).unwrap();
    purge(&db).unwrap();
    let read = || reader.document("d")?.at(Revision(2))?.to_json();
    match read() {
        Ok(text) => assert_eq!(text, before(2)),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
    }
    reader.refresh().unwrap();
    assert_eq!(read().unwrap(), value(2, "null"));
}
