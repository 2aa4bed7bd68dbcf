//! A disk that is full: what it refuses, what goes on, and that it goes on when there is space.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::Device;
use duramen::limits::ROOM_WAIT_COMMITS_MAX;
use duramen::{CommitOptions, Database, ErrorKind, Options, Retention, Revision};
use duramen_sim::{FaultKind, FaultPlan, PowerLoss, Profile, Random, SimulatedDevice};

/// What writes a segment.
type Write<'w> = &'w dyn Fn(&Database) -> duramen::Result<()>;

fn open(device: &SimulatedDevice, background: bool) -> Database {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let options = Options { background, memory_bytes: 256 << 10, ..Options::default() };
    Database::open_device(device, options).unwrap()
}

fn value(number: u64) -> String {
    let mut noise = [0; 500];
    Random::new(number).fill(&mut noise);
    let text: String = noise.iter().map(|byte| char::from(b'a' + byte % 26)).collect();
    format!("[{number},\"{text}\"]")
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
        let end = last + 500;
        for _ in 0..ROOM_WAIT_COMMITS_MAX {
            last = save(&db, last + 1, end).0;
        }
        assert_eq!(last, end, "there is space again");
        let saved = last;
        assert_there(&db, saved);
        let after = device.power_loss(PowerLoss::Clean, &mut Random::new(1));
        drop(db);
        let db = open(&after, background);
        assert_there(&db, saved);
        assert!(db.check().unwrap().is_clean());
    }
}

/// Saves values until the device, which has this much room, is full; how many.
fn fill(db: &Database, device: &SimulatedDevice, bytes: u64) -> u64 {
    db.create_document("d").unwrap();
    device.set_capacity(bytes);
    let (mut last, mut refusals) = (0, 0);
    while refusals < 2 * ROOM_WAIT_COMMITS_MAX {
        let (saved, error) = save(db, last + 1, 50_000);
        assert_eq!(error.expect("the device is full at some time").kind(), ErrorKind::Full);
        refusals = if saved > last { 0 } else { refusals + 1 };
        last = saved;
    }
    last
}

#[test]
fn a_full_device_has_room_again_when_history_is_let_go_and_compacted() {
    for (seed, mebibytes) in [(1, 2), (2, 3), (3, 5), (4, 8)] {
        let device = SimulatedDevice::new(seed, Profile::CRUEL);
        let db = open(&device, false);
        let last = fill(&db, &device, mebibytes << 20);
        assert!(last > 200, "{last} commits fill it");
        assert_there(&db, last);
        let document = db.document("d").unwrap();
        document.retain(Retention::Head, &CommitOptions::default()).unwrap();
        db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(document.first_revision().unwrap(), Revision(last));
        let (saved, error) = save(&db, last + 1, last + 200);
        assert!(error.is_none(), "{error:?}");
        let after = device.power_loss(PowerLoss::Clean, &mut Random::new(seed));
        let db = open(&after, false);
        let document = db.document("d").unwrap();
        assert_eq!(document.at(Revision(last)).unwrap().to_json().unwrap(), value(last));
        assert_eq!(document.head().unwrap().to_json().unwrap(), value(saved));
        assert!(db.check().unwrap().is_clean());
    }
}

/// A compaction failed now and then while another thread started a process, which has all files
/// open until it runs its program, those that were just removed as well.
#[test]
fn a_compaction_waits_for_the_room_of_files_that_it_removed() {
    let device = SimulatedDevice::new(7, Profile::CRUEL);
    let options = Options { background: false, ..Options::default() };
    let db = Database::open_device(Arc::new(device.clone()), options).unwrap();
    let document = db.create_document("d").unwrap();
    save(&db, 1, 4_000);
    db.checkpoint().unwrap();
    let (last, error) = save(&db, 4_001, 6_000);
    assert!(error.is_none(), "{error:?}");
    document.retain(Retention::Head, &CommitOptions::default()).unwrap();
    device.set_capacity(u64::MAX);
    let used = u64::MAX - device.free_bytes().unwrap();
    // Too little for what is young, even with the reserve.
    device.set_capacity(used + (16 << 10));
    device.lag_behind_removals(9);
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(document.first_revision().unwrap(), Revision(last));
    assert_eq!(document.head().unwrap().to_json().unwrap(), value(last));
    assert!(db.check().unwrap().is_clean());
}

/// The finished segment stayed when there was no room for the manifest that was to name it, and
/// kept its room until the database was opened again.
#[test]
fn a_segment_that_no_manifest_names_gives_its_room_back() {
    let device = SimulatedDevice::new(8, Profile::CRUEL);
    let db = open(&device, false);
    db.create_document("d").unwrap();
    let compact = |db: &Database| db.compact(&mut |_, _| ControlFlow::Continue(()));
    let writes: [Write<'_>; 2] = [&Database::checkpoint, &compact];
    let mut last = 0;
    for write in writes {
        for nth in 1..=3 {
            last = save(&db, last + 1, last + 20).0;
            device.fail(FaultPlan::new(FaultKind::Full, nth).under("MANIFEST"));
            let _ = write(&db);
            let files = device.list("segments").unwrap();
            assert_eq!(files.len() as u64, db.stats().unwrap().segments, "{files:?}");
            device.repair();
        }
        write(&db).unwrap();
        assert_there(&db, last);
    }
    assert!(db.check().unwrap().is_clean());
}

/// A checkpoint beside a compaction let the reserve grow again that the compaction had taken.
#[test]
fn the_reserve_does_not_grow_while_a_compaction_may_need_its_room() {
    let device = SimulatedDevice::new(9, Profile::CRUEL);
    let db = open(&device, false);
    db.create_document("d").unwrap();
    let last = save(&db, 1, 2_000).0;
    let reserve = |device: &SimulatedDevice| {
        device.open("journal/RESERVE", duramen::io::Access::Write).unwrap()
    };
    db.checkpoint().unwrap();
    reserve(&device).set_len(0).unwrap();
    let mut steps = 0;
    db.compact(&mut |_, _| {
        if steps == 0 {
            save(&db, last + 1, last + 1);
            db.checkpoint().unwrap();
        }
        steps += 1;
        assert_eq!(reserve(&device).len().unwrap(), 0);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(steps > 0);
    assert!(reserve(&device).len().unwrap() > 0, "it grows once the compaction is done");
    assert_there(&db, last + 1);
}

/// The journal took all of the room, and then no commit passed that lets go of anything.
#[test]
fn a_database_made_on_a_device_with_little_room_has_a_reserve_before_it_has_segments() {
    let device = SimulatedDevice::new(10, Profile::CRUEL);
    device.set_capacity(700 << 10);
    let options = Options { background: false, ..Options::default() };
    let db = Database::open_device(Arc::new(device.clone()), options).unwrap();
    let last = fill(&db, &device, 700 << 10);
    assert_eq!(db.stats().unwrap().segments, 0);
    let document = db.document("d").unwrap();
    for keep in 1..100 {
        document.retain(Retention::Last(keep), &CommitOptions::default()).unwrap();
    }
    assert_there(&db, last);
}

/// It was as short as when the database was opened until it was opened again.
#[test]
fn the_journal_gets_longer_once_a_checkpoint_finds_more_room() {
    let device = SimulatedDevice::new(11, Profile::CRUEL);
    device.set_capacity(4 << 20);
    let options = Options { background: false, ..Options::default() };
    let db = Database::open_device(Arc::new(device.clone()), options).unwrap();
    db.create_document("d").unwrap();
    let last = save(&db, 1, 1_500).0;
    assert_eq!(last, 1_500);
    assert!(db.stats().unwrap().segments > 0, "a checkpoint is due each 512 KiB");
    device.set_capacity(1 << 30);
    db.checkpoint().unwrap();
    let last = save(&db, last + 1, last + 3_000).0;
    assert!(db.stats().unwrap().journal_bytes > 3_000 * 500);
    assert_there(&db, last);
}

/// The first try to make the journal's next file took what the reserve gave for it, step by step,
/// as long as another thread was starting a process, which has all files open until it runs its
/// program.
#[test]
fn what_gives_room_passes_while_removed_files_have_theirs() {
    let device = SimulatedDevice::new(12, Profile::CRUEL);
    let db = open(&device, false);
    let last = fill(&db, &device, 8 << 20);
    let document = db.document("d").unwrap();
    device.lag_behind_removals(24);
    for keep in 1..1_000 {
        document.retain(Retention::Last(keep), &CommitOptions::default()).unwrap();
    }
    document.retain(Retention::Head, &CommitOptions::default()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(document.head().unwrap().to_json().unwrap(), value(last));
    assert!(db.check().unwrap().is_clean());
}

/// With this much memory no checkpoint is due before the journal has all of the device.
#[test]
fn a_small_device_full_of_journal_has_room_again_when_history_is_let_go() {
    for (seed, mebibytes) in [(1, 6), (2, 9), (3, 16)] {
        let device = SimulatedDevice::new(seed, Profile::CRUEL);
        device.set_capacity(mebibytes << 20);
        let options = Options { background: false, ..Options::default() };
        let open = |device: &SimulatedDevice| {
            Database::open_device(Arc::new(device.clone()), options.clone()).unwrap()
        };
        let db = open(&device);
        let last = fill(&db, &device, mebibytes << 20);
        assert!(last > 2_000, "{last} commits fill it");
        let document = db.document("d").unwrap();
        document.retain(Retention::Head, &CommitOptions::default()).unwrap();
        db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(document.first_revision().unwrap(), Revision(last));
        let (saved, error) = save(&db, last + 1, last + 1_000);
        assert!(error.is_none(), "{error:?}");
        let after = device.power_loss(PowerLoss::Clean, &mut Random::new(seed));
        let db = open(&after);
        assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), value(saved));
        assert!(db.check().unwrap().is_clean());
    }
}

/// The commit that deletes would be refused like any other, and nothing could be let go.
#[test]
fn a_document_is_deleted_on_a_full_device() {
    let device = SimulatedDevice::new(9, Profile::CRUEL);
    let db = open(&device, false);
    let last = fill(&db, &device, 4 << 20);
    db.delete_document("d", &CommitOptions::default()).unwrap();
    assert!(db.documents().unwrap().is_empty());
    assert_eq!(db.document("d").unwrap().head_revision().unwrap(), Revision(last + 1));
}

#[test]
fn a_crash_on_a_full_device_is_recovered_from() {
    let device = SimulatedDevice::new(5, Profile::CRUEL);
    let db = open(&device, false);
    let last = fill(&db, &device, 4 << 20);
    let after = device.power_loss(PowerLoss::Clean, &mut Random::new(5));
    drop(db);
    assert_there(&open(&after, false), last);
}

/// Where somebody else had taken the last byte, the manifest found no room, though there was the
/// reserve.
#[test]
fn a_crash_is_recovered_from_on_a_device_that_others_have_filled() {
    let device = SimulatedDevice::new(6, Profile::CRUEL);
    let db = open(&device, false);
    db.create_document("d").unwrap();
    let last = save(&db, 1, 2_000).0;
    db.checkpoint().unwrap();
    let last = save(&db, last + 1, last + 5).0;
    let after = device.kill();
    drop(db);
    after.set_capacity(u64::MAX);
    after.set_capacity(u64::MAX - after.free_bytes().unwrap());
    assert_eq!(after.free_bytes(), Some(0));
    let db = open(&after, false);
    assert_there(&db, last);
    db.document("d").unwrap().retain(Retention::Head, &CommitOptions::default()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(db.check().unwrap().is_clean());
}

/// With more in the journal than the reserve has room for, nothing was said but that the disk is
/// full.
#[test]
fn how_much_room_a_database_needs_to_be_opened_is_told() {
    let device = SimulatedDevice::new(7, Profile::CRUEL);
    let opened = |device: &SimulatedDevice, read_only| {
        let device: Arc<dyn Device> = Arc::new(device.clone());
        let options = Options { background: false, read_only, ..Options::default() };
        Database::open_device(device, options)
    };
    let db = opened(&device, false).unwrap();
    db.create_document("d").unwrap();
    let last = save(&db, 1, 5_000).0;
    let after = device.kill();
    drop(db);
    after.set_capacity(u64::MAX);
    let used = u64::MAX - after.free_bytes().unwrap();
    after.set_capacity(used);
    let error = opened(&after, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
    let told = error.message().split_once("which takes about ").expect("the room is told").1;
    let mebibytes: u64 = told.split_once(" MiB: make room").unwrap().0.parse().unwrap();
    assert!((2..=20).contains(&mebibytes), "{error}");
    assert_there(&opened(&after, true).unwrap(), last);
    after.set_capacity(used + (mebibytes << 20));
    assert_there(&opened(&after, false).unwrap(), last);
}
