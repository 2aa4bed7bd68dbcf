//! Files of a database that are gone or were cut: what is said of it, and that what is left stays.

use std::sync::Arc;

use duramen::io::{Access, Device, MemoryDevice, write_all_at};
use duramen::{CommitOptions, Database, ErrorKind, Options};

use crate::damage::{Files, database, device_of, files_of, open};

fn without(files: &Files, path: &str) -> Files {
    let mut files = files.clone();
    files.remove(path).unwrap();
    files
}

/// Opens a database that lacks something of segments: for nothing, and with what is said.
fn refused(files: &Files, path: &str) -> String {
    let mut told = String::new();
    for read_only in [true, false] {
        let device = device_of(files, ("", &[]));
        let error = open(&device, read_only).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains(path), "{error}");
        assert!(error.message().contains("restore a backup (\"duramen restore\")"), "{error}");
        assert!(error.message().contains("(\"duramen repair\")"), "{error}");
        for (path, bytes) in files {
            let file = device.open(path, Access::Read).unwrap();
            assert_eq!(file.len().unwrap(), bytes.len() as u64, "{path}");
        }
        error.message().clone_into(&mut told);
    }
    told
}

/// Where its cells were, older ones would be found: so nothing is read, or merged.
#[test]
fn a_segment_that_is_gone_or_was_cut_is_damage_that_is_named() {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    let document = db.create_document("d").unwrap();
    for text in ["1", "2", "3"] {
        document.put(text, &CommitOptions::default()).unwrap();
        db.checkpoint().unwrap();
    }
    let files = files_of(&device);
    let of_segments = |path: &&String| path.starts_with("segments/");
    let paths: Vec<_> = files.keys().filter(of_segments).collect();
    assert_eq!(paths.len(), 3, "{paths:?}");
    for path in &paths {
        let gone = without(&files, path);
        assert!(!refused(&gone, path).contains("other"));
        let mut cut = files.clone();
        let bytes = cut.get_mut(*path).unwrap();
        bytes.truncate(bytes.len() / 2);
        refused(&cut, path);
    }
    let one_more = without(&without(&files, paths[0]), paths[1]);
    assert!(refused(&one_more, "segments/").contains("another segment does not open either"));
    let all = paths.iter().fold(files.clone(), |files, path| without(&files, path));
    assert!(refused(&all, "segments/").contains("2 other segments do not open either"));
}

/// A database of which every file is there but the manifest was once made anew over its segments.
#[test]
fn nothing_is_made_over_a_database_without_its_manifest() {
    let (files, _) = database();
    let lost = without(&files, "MANIFEST");
    let of = |folder: &str| -> Files {
        let of = lost.clone().into_iter().filter(|(path, _)| path.starts_with(folder));
        of.collect()
    };
    for left in [&lost, &of("segments/"), &of("journal/")] {
        let device = device_of(left, ("", &[]));
        for (create, read_only) in [(true, false), (false, false), (false, true)] {
            let options = Options { create, read_only, background: false, ..Options::default() };
            let error = Database::open_device(Arc::new(device.clone()), options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.message().contains("duramen repair"), "{error}");
        }
        for (path, bytes) in left {
            let file = device.open(path, Access::Read).unwrap();
            assert_eq!(file.len().unwrap(), bytes.len() as u64, "{path}");
        }
    }
}

#[test]
fn what_an_interrupted_load_left_is_said_to_be_that() {
    let (files, _) = database();
    let mut left = without(&files, "MANIFEST");
    left.insert("MANIFEST.unfinished".to_owned(), files["MANIFEST"].clone());
    let device = device_of(&left, ("", &[]));
    for read_only in [true, false] {
        let error = open(&device, read_only).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let reason = "MANIFEST.unfinished is of a load, restore or repair";
        assert!(error.message().contains(reason), "{error}");
    }
}

/// A file that waits to be used was once checked when it was opened, but not before.
#[test]
fn a_spare_journal_file_that_was_cut_is_made_anew() {
    const SPARE: &str = "journal/00000002.journal";
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    let document = db.create_document("d").unwrap();
    db.checkpoint().unwrap();
    document.put("1", &CommitOptions::default()).unwrap();
    let unclean = files_of(&device);
    drop(document);
    db.close().unwrap();
    for files in [unclean, files_of(&device)] {
        let device = device_of(&files, ("", &[]));
        let file = device.open(SPARE, Access::Create).unwrap();
        write_all_at(file.as_ref(), &[0; 1_000], 0).unwrap();
        assert!(open(&device, true).unwrap().check().unwrap().is_clean());
        let db = open(&device, false).unwrap();
        let large = format!("\"{}\"", "much ".repeat(80_000));
        for text in [large.as_str(), "2"] {
            db.document("d").unwrap().put(text, &CommitOptions::default()).unwrap();
        }
        let spare = device.open(SPARE, Access::Read).unwrap().len().unwrap();
        assert!(spare > 0 && spare.is_multiple_of(64 << 10), "{spare}");
        let left = device_of(&files_of(&device), ("", &[]));
        let db = open(&left, true).unwrap();
        assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), "2");
    }
}
