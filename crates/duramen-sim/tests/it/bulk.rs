//! Bulk loads on a device that loses its power at every change, or runs full: all of a load is
//! there, or nothing of it, and everything else stays.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::Device;
use duramen::{
    BulkOptions, CommitOptions, Database, Durability, ErrorKind, Micros, Options, Result,
    SeriesDefinition, ValueType,
};
use duramen_sim::{FaultKind, FaultPlan, Profile, SimulatedClock, SimulatedDevice};

/// Images of each crash: which of the pending changes reached the device.
const IMAGES: usize = 6;

fn text() -> String {
    let rows =
        (0..60).map(|row| format!("{{\"id\":{row},\"name\":\"row {row}\",\"of\":[{row},null]}}"));
    format!("[{}]", rows.collect::<Vec<_>>().join(","))
}

fn open(device: &SimulatedDevice) -> Result<Database> {
    let clock = Arc::new(SimulatedClock::new(Micros(1_700_000_000_000_000)));
    let options = Options { background: false, clock, ..Options::default() };
    Database::open_device(Arc::new(device.clone()), options)
}

/// A database with a document beside the one that is loaded.
fn begin(device: &SimulatedDevice) -> Result<Database> {
    let db = open(device)?;
    db.create_document("other")?.put("[1]", &CommitOptions::default())?;
    Ok(db)
}

fn load(db: &Database) -> Result<()> {
    let options = BulkOptions { held_bytes: Some(512), ..BulkOptions::default() };
    let text = text();
    db.bulk_load("d", &mut text.as_bytes(), &options, &mut |_| ControlFlow::Continue(()))?;
    Ok(())
}

/// Whether the load is there; whatever is, is sound.
fn is_loaded(device: &SimulatedDevice) -> bool {
    let db = open(device).unwrap();
    assert_eq!(db.document("other").unwrap().head().unwrap().to_json().unwrap(), "[1]");
    let names = db.documents().unwrap();
    let is_there = names == ["d", "other"];
    if is_there {
        assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), text());
    } else {
        assert_eq!(names, ["other"]);
    }
    let findings = db.check().unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
    let files = device.list("segments").unwrap().len() as u64;
    assert_eq!(files, db.stats().unwrap().segments, "files that the manifest does not name");
    // It can be loaded, or is a document like others, from here on.
    if !is_there {
        load(&db).unwrap();
    }
    db.document("d").unwrap().put("[2]", &CommitOptions::default()).unwrap();
    is_there
}

#[test]
fn load_is_all_or_nothing_wherever_the_power_goes() {
    let (mut crashes, mut kept) = (0, 0);
    loop {
        let device = SimulatedDevice::new(crashes, Profile::CRUEL);
        let db = begin(&device).unwrap();
        device.crash_at(device.changes() + 1 + crashes);
        let loaded = load(&db);
        let is_off = device.is_off();
        drop(db);
        if !is_off {
            loaded.unwrap();
            break;
        }
        for image in device.images(IMAGES) {
            let is_there = is_loaded(&image);
            assert!(is_there || loaded.is_err(), "a load that was acknowledged is lost");
            kept += u64::from(is_there);
        }
        crashes += 1;
    }
    assert!(crashes > 30 && kept > 0, "{crashes} crashes, {kept} images with the load");
}

#[test]
fn load_that_finds_the_disk_full_leaves_the_database_as_it_was() {
    let device = SimulatedDevice::new(1, Profile::CRUEL);
    let db = begin(&device).unwrap();
    let mut room = 0;
    let error = loop {
        // Less room than the load needs, and more each time.
        device.set_capacity(used(&device) + room);
        match load(&db) {
            Ok(()) => break None,
            Err(error) if error.kind() == ErrorKind::Full => {
                assert_eq!(db.documents().unwrap(), ["other"]);
                assert!(db.check().unwrap().findings.is_empty());
                room += 4_096;
            }
            Err(error) => break Some(error),
        }
    };
    assert!(room > 0, "the first load had room enough");
    if let Some(error) = error {
        // The commit itself found no room: what came of it shows when the database is opened.
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
    }
    drop(db);
    device.set_capacity(u64::MAX);
    is_loaded(&device);
}

/// Bytes of all files.
fn used(device: &SimulatedDevice) -> u64 {
    let folders = ["", "journal", "segments"];
    let files = folders.iter().flat_map(|folder| {
        let names = device.list(folder).unwrap_or_default();
        names
            .into_iter()
            .map(move |name| if folder.is_empty() { name } else { format!("{folder}/{name}") })
    });
    let len =
        |path: String| device.open(&path, duramen::io::Access::Read).and_then(|file| file.len());
    files.filter_map(|path| len(path).ok()).sum()
}

/// Points that were staged while a load failed had the number of its commit noted beside them,
/// which then was that of the commit that they were sealed in: the next process found them again.
#[test]
fn points_that_are_staged_while_a_load_fails_come_once() {
    let late = CommitOptions {
        durability: Some(Durability::Interval(1_000_000)),
        ..CommitOptions::default()
    };
    for nth in 1.. {
        let device = SimulatedDevice::new(nth, Profile::CRUEL);
        let db = begin(&device).unwrap();
        // What is there already needs no change of the catalogue.
        db.create_document("d").unwrap();
        let level = db.create_series("level", &SeriesDefinition::new(ValueType::I64)).unwrap();
        level.append(Micros(5), 7, &late).unwrap();
        device.fail(FaultPlan::new(FaultKind::Full, nth).under("segments"));
        let loaded = load(&db);
        device.repair();
        if loaded.is_ok() {
            assert!(nth > 3);
            break;
        }
        let files = device.list("segments").unwrap();
        assert_eq!(files.len() as u64, db.stats().unwrap().segments, "{nth}: {files:?}");
        db.flush().unwrap();
        db.checkpoint().unwrap();
        level.delete(.., &CommitOptions::default()).unwrap();
        let db = open(&device.kill()).unwrap();
        let left = db.series("level").unwrap().range(..).unwrap().read().unwrap();
        assert!(left.times().is_empty(), "write {nth} found no room: {:?}", left.times());
    }
}
