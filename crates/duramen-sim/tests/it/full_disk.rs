//! A disk that is full: what it refuses, what goes on, and that it goes on when there is space.

use std::sync::Arc;

use duramen::io::Device;
use duramen::{CommitOptions, Database, ErrorKind, Options, Revision};
use duramen_sim::{FaultKind, FaultPlan, PowerLoss, Profile, Random, SimulatedDevice};

fn open(device: &SimulatedDevice, background: bool) -> Database {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let options = Options { background, memory_bytes: 256 << 10, ..Options::default() };
    Database::open_device(device, options).unwrap()
}

fn value(number: u64) -> String {
    format!("[{number},\"{}\"]", "x".repeat(500))
}

/// Saves the values from `first` to `last`, or as far as that goes; how far, and why not further.
fn save(db: &Database, first: u64, last: u64) -> (u64, Option<duramen::Error>) {
    let document = db.document("d").unwrap();
    for number in first..=last {
        if let Err(error) = document.put(value(number), &CommitOptions::default()) {
            return (number - 1, Some(error));
        }
    }
    (last, None)
}

fn assert_there(db: &Database, last: u64) {
    let document = db.document("d").unwrap();
    for number in 1..=last {
        assert_eq!(document.at(Revision(number)).unwrap().to_json().unwrap(), value(number));
    }
}

/// Checkpoints fail on the full disk; commits go on as long as the memory has room for them.
#[test]
fn commits_that_no_checkpoint_can_write_are_refused_when_the_memory_is_full_of_them() {
    for background in [false, true] {
        let device = SimulatedDevice::new(1, Profile::CRUEL);
        let db = open(&device, background);
        db.create_document("d").unwrap();
        let (mut last, error) = save(&db, 1, 10);
        assert!(error.is_none());
        device.fail(FaultPlan::new(FaultKind::Full, 1).sticky());
        for _ in 0..2 {
            let (saved, error) = save(&db, last + 1, 5_000);
            let error = error.expect("a full disk takes no 5,000 commits");
            assert_eq!(error.kind(), ErrorKind::Full, "{error}");
            assert!(saved >= last, "{saved} {last}");
            last = saved;
            assert_there(&db, last);
        }
        assert!(last > 200, "{last} commits fill three quarters of the memory");
        device.repair();
        let (saved, error) = save(&db, last + 1, last + 500);
        assert!(error.is_none(), "there is space again: {error:?}");
        assert_there(&db, saved);
        let after = device.power_loss(PowerLoss::Clean, &mut Random::new(1));
        drop(db);
        let db = open(&after, background);
        assert_there(&db, saved);
        assert!(db.check().unwrap().is_clean());
    }
}
