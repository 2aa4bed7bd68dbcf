//! Repair of databases whose files are not of one time: what nothing is left of is told all the
//! same, and segments that an older manifest does not name are read.

use duramen::io::MemoryDevice;
use duramen::{CommitOptions, Database, Revision};

use crate::damage::{Files, device_of, files_of, open};
use crate::repair::repair;

/// Puts a value into a document, and all of it into a segment.
fn put(db: &Database, name: &str, text: &str) {
    let document = db.document(name).or_else(|_| db.create_document(name)).unwrap();
    document.put(text, &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
}

fn segments(files: &Files) -> Vec<String> {
    files.keys().filter(|path| path.starts_with("segments/")).cloned().collect()
}

/// What a repair of these files tells as lost, what it tells as damage, and the documents left.
fn repaired(files: &Files) -> (Vec<String>, Vec<String>, Vec<(String, String)>) {
    let (report, new) = repair(&device_of(files, ("", &[]))).unwrap();
    let db = open(&new, true).unwrap();
    let names = db.documents().unwrap().into_iter();
    let left = names.map(|name| {
        let text = db.document(&name).unwrap().head().unwrap().to_json().unwrap();
        (name, text)
    });
    let lost = report.lost.iter().map(ToString::to_string).collect();
    (lost, report.damage.iter().map(|found| found.place.clone()).collect(), left.collect())
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect()
}

/// A document that was in the segment that is gone, and in no other, was once not mentioned.
#[test]
fn a_document_of_which_nothing_is_left_is_told_by_its_number() {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    for (name, text) in [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")] {
        put(&db, name, text);
    }
    drop(db);
    let files = files_of(&device);
    let paths = segments(&files);
    assert_eq!(paths.len(), 4, "{paths:?}");
    for (gone, told) in [
        (&paths[..1], "document 1: all of it, and its name"),
        (&paths[1..2], "document 2: all of it, and its name"),
        (&paths[..3], "documents 1 to 3: all of them, and their names"),
    ] {
        for has_manifest in [true, false] {
            let mut left = files.clone();
            for path in gone {
                left.remove(path);
            }
            // It has all of them still.
            left.retain(|path, _| !path.starts_with("journal/"));
            if !has_manifest {
                left.remove("MANIFEST");
            }
            let (lost, ..) = repaired(&left);
            assert!(lost.iter().any(|lost| lost.contains(told)), "{told}: {lost:?}");
        }
    }
    assert_eq!(repaired(&files).0, Vec::<String>::new());
}

/// What only the journal has of a document, but for how it began, was once no document.
#[test]
fn a_document_whose_later_revisions_only_are_left_is_told_by_its_number() {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    put(&db, "a", "\"first\"");
    put(&db, "b", "\"second\"");
    db.document("a").unwrap().put("\"third\"", &CommitOptions::default()).unwrap();
    drop(db);
    let mut files = files_of(&device);
    let first = segments(&files).remove(0);
    files.remove(&first);
    files.remove("MANIFEST");
    let of_journal = |(path, _): &(&String, &mut Vec<u8>)| path.starts_with("journal/0");
    let (_, journal) = files.iter_mut().find(of_journal).unwrap();
    let second = journal.windows(6).rposition(|text| text == b"second").unwrap();
    journal[..second + 6].fill(0);
    let (lost, ..) = repaired(&files);
    let told = "document 1: all of it, and its name";
    assert!(lost.iter().any(|lost| lost.contains(told)), "{lost:?}");
}

/// It was once read as that of the database as it is: what it did not name was not looked at.
#[test]
fn a_manifest_of_before_a_compaction_costs_nothing() {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    put(&db, "a", "[1]");
    let first = files_of(&device);
    put(&db, "b", "[2]");
    put(&db, "a", "[3]");
    let second = files_of(&device);
    db.compact(&mut |_, _| std::ops::ControlFlow::Continue(())).unwrap();
    drop(db);
    for old in [first, second] {
        let mut files = files_of(&device);
        files.insert("MANIFEST".to_owned(), old["MANIFEST"].clone());
        let (lost, damage, left) = repaired(&files);
        assert_eq!(left, pairs(&[("a", "[3]"), ("b", "[2]")]));
        assert_eq!((lost, damage), (Vec::new(), vec!["MANIFEST".to_owned()]));
    }
}

/// The journal had gone on in another file, so that what followed was nowhere.
#[test]
fn a_manifest_of_before_a_checkpoint_costs_nothing() {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    put(&db, "a", "[1]");
    let old = files_of(&device);
    put(&db, "b", "[2]");
    drop(db);
    let mut files = files_of(&device);
    files.insert("MANIFEST".to_owned(), old["MANIFEST"].clone());
    // As a checkpoint does with a file that is full: what is in it is of the old number.
    let journal = files.remove("journal/00000001.journal").unwrap();
    files.insert("journal/00000002.journal".to_owned(), journal);
    let (lost, damage, left) = repaired(&files);
    assert_eq!(left, pairs(&[("a", "[1]"), ("b", "[2]")]));
    assert_eq!((lost, damage), (Vec::new(), vec!["MANIFEST".to_owned()]));
}

/// A segment that was merged and stays, as the merge was interrupted before it was removed, is
/// older than what it was merged into.
#[test]
fn what_was_merged_and_is_still_there_hides_nothing() {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    for text in ["[1]", "[1,2]", "[1,2,3]"] {
        put(&db, "a", text);
    }
    let before = files_of(&device);
    db.compact(&mut |_, _| std::ops::ControlFlow::Continue(())).unwrap();
    drop(db);
    for stays in segments(&before) {
        let mut files = files_of(&device);
        files.insert(stays.clone(), before[&stays].clone());
        for manifest in [Some(before["MANIFEST"].clone()), None] {
            let path = "MANIFEST".to_owned();
            match manifest {
                Some(manifest) => files.insert(path, manifest),
                None => files.remove(&path),
            };
            let (lost, _, left) = repaired(&files);
            assert_eq!(left, pairs(&[("a", "[1,2,3]")]), "{stays}");
            assert_eq!(lost, Vec::<String>::new(), "{stays}");
        }
    }
}

/// What is left of a database whose manifest is right says the same as before.
#[test]
fn a_segment_that_is_gone_is_damage_where_no_other_has_its_commits() {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    put(&db, "a", "[1]");
    put(&db, "a", "[1,2]");
    drop(db);
    let mut files = files_of(&device);
    let path = segments(&files).remove(1);
    files.remove(&path);
    let (lost, damage, _) = repaired(&files);
    assert!(!lost.is_empty() && damage == [path], "{lost:?} {damage:?}");
    let db = open(&device, true).unwrap();
    assert_eq!(db.document("a").unwrap().at(Revision(2)).unwrap().to_json().unwrap(), "[1,2]");
}
