//! Scrubbing finds damage beside readers and writers, can be stopped, and goes on where it was.

use std::ops::ControlFlow;

use duramen::io::{Access, Device, MemoryDevice, write_all_at};
use duramen::{
    CommitOptions, Database, ErrorKind, PurgeOptions, ScrubOptions, ScrubPosition, ScrubProgress,
    Target,
};

use crate::damage::{database, device_of, open};

const FAST: ScrubOptions =
    ScrubOptions { bytes_per_second: None, from: ScrubPosition { segment: 0, block: 0 } };

fn go_on(_: ScrubProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn scrubbed(db: &Database) -> duramen::ScrubReport {
    db.scrub(&FAST, &mut go_on).unwrap()
}

#[test]
fn a_whole_database_has_no_findings_for_writers_and_readers() {
    let (files, _) = database();
    let device = device_of(&files, ("", &[]));
    let db = open(&device, false).unwrap();
    for db in [&db, &open(&device, true).unwrap()] {
        let report = scrubbed(db);
        assert!(report.findings.is_empty() && report.stopped_at.is_none(), "{report:?}");
        assert!(report.blocks > 2 && report.bytes > 50_000, "{report:?}");
    }
    db.document("mixed").unwrap().put("1", &CommitOptions::default()).unwrap();
    assert!(scrubbed(&db).findings.is_empty(), "with a commit in the journal");
}

#[test]
fn damage_under_an_open_database_is_found_with_its_place_and_its_documents() {
    let (files, _) = database();
    let path = files.keys().find(|path| path.starts_with("segments/")).unwrap();
    let whole = &files[path];
    for at in (40..whole.len()).step_by(whole.len() / 9) {
        let device = device_of(&files, ("", &[]));
        let db = open(&device, true).unwrap();
        let file = device.open(path, Access::Write).unwrap();
        write_all_at(file.as_ref(), &[whole[at] ^ 1], at as u64).unwrap();
        let report = scrubbed(&db);
        assert_eq!(report.findings.len(), 1, "{at}: {report:?}");
        let found = &report.findings[0];
        assert_eq!(&found.place, path);
        let names = ["large", "mixed", "no cells of documents", "index", "filter", "footer"];
        assert!(found.message.contains("offset"), "{}", found.message);
        assert!(
            names.iter().any(|name| found.message.contains(name)) || at > whole.len() * 8 / 10,
            "{at} of {}: {}",
            whole.len(),
            found.message
        );
    }
}

#[test]
fn damage_in_the_journal_is_found() {
    let (files, _) = database();
    let device = device_of(&files, ("", &[]));
    let db = open(&device, true).unwrap();
    let (path, bytes) = files.iter().rfind(|(path, _)| path.ends_with(".journal")).unwrap();
    let written = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    let file = device.open(path, Access::Write).unwrap();
    let at = written * 9 / 10;
    write_all_at(file.as_ref(), &[bytes[at] ^ 1], at as u64).unwrap();
    let report = scrubbed(&db);
    assert!(report.findings.iter().all(|found| found.place == "journal"), "{report:?}");
    assert_eq!(report.findings.len(), 1, "{report:?}");
}

#[test]
fn a_scrub_that_is_stopped_goes_on_where_it_was() {
    let (files, _) = database();
    let db = open(&device_of(&files, ("", &[])), true).unwrap();
    let all = scrubbed(&db);
    let (mut from, mut blocks, mut bytes, mut stops) = (ScrubPosition::default(), 0, 0, 0);
    loop {
        let options = ScrubOptions { from, ..FAST };
        let mut left = 0;
        let report = db.scrub(&options, &mut |_| {
            left -= 1;
            if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let report = report.unwrap();
        (blocks, bytes) = (blocks + report.blocks, bytes + report.bytes);
        let Some(at) = report.stopped_at else { break };
        assert_eq!(at.to_string().parse::<ScrubPosition>().unwrap(), at);
        assert!(at > from);
        (from, stops) = (at, stops + 1);
    }
    assert!(stops > 1);
    assert_eq!((blocks, bytes), (all.blocks, all.bytes));
    let error = "12".parse::<ScrubPosition>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

/// It once read nothing and found no damage.
#[test]
fn a_scrub_does_not_begin_behind_all_segments() {
    let (files, _) = database();
    let db = open(&device_of(&files, ("", &[])), true).unwrap();
    let from = ScrubPosition { segment: 999, block: 0 };
    let error = db.scrub(&ScrubOptions { from, ..FAST }, &mut go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().starts_with("there never was a segment 999: the last one"), "{error}");
}

#[test]
fn what_a_purge_of_another_replaces_is_no_damage() {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    let document = db.create_document("config").unwrap();
    document.put(r#"{"a":"secret","b":2}"#, &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    let readers = [open(&device, true).unwrap(), open(&device, true).unwrap()];
    let place = Target::parse("/a").unwrap();
    let options = PurgeOptions { at: None, commit: CommitOptions::default() };
    document.purge(&place, &options, &mut |_, _| ControlFlow::Continue(())).unwrap();
    let found = scrubbed(&readers[0]).findings;
    assert!(found.is_empty(), "{found:?}");
    let error = readers[1].check().unwrap_err();
    assert!(error.message().contains("refresh"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Busy);
    readers[1].refresh().unwrap();
    assert_eq!(readers[1].check().unwrap().findings, []);
}
