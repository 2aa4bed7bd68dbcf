//! Databases whose checksums hold and whose values do not.

use std::sync::Arc;

use crate::encoding::encode_column;
use crate::io::{Device, MemoryDevice};
use crate::json::JsonPointer;
use crate::limits::KEPT_HASH_TEXT_BYTES_MAX;
use crate::manifest::Manifest;
use crate::node::PathId;
use crate::segment::{Encoding, SegmentMeta, SegmentWriter};
use crate::state::Datum;
use crate::tree::cell_key::{self, CellKey, GroupCell};
use crate::{CheckReport, CommitOptions, ContentHash, Database, Document, Options, Revision};

fn open(device: &Arc<dyn Device>, read_only: bool) -> Database {
    let options = Options { background: false, read_only, ..Options::default() };
    Database::open_device(Arc::clone(device), options).unwrap()
}

fn put(document: &Document, json: &str) {
    document.put(json, &CommitOptions::default()).unwrap();
}

/// A database with one segment: documents `d` and `e`, each with a revision.
fn written() -> Arc<dyn Device> {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let db = open(&device, false);
    put(&db.create_document("d").unwrap(), r#"{"a":1,"l":["x"]}"#);
    put(&db.create_document("e").unwrap(), r#"{"a":1}"#);
    db.checkpoint().unwrap();
    device
}

/// Replaces the segment by one whose checksums hold, and in which `change` changed cells.
fn rewrite(device: &Arc<dyn Device>, change: impl Fn(u64, CellKey, &mut Vec<u8>)) {
    let mut manifest = Manifest::load(device.as_ref()).unwrap().unwrap();
    let old = manifest.segments[0];
    let meta = SegmentMeta {
        database_id: manifest.database_id,
        epoch: manifest.epoch,
        level: 0,
        encoding: Encoding::Warm,
        first_sequence: old.first_sequence,
        last_sequence: old.last_sequence,
    };
    let mut writer = SegmentWriter::create(device, manifest.next_segment, meta).unwrap();
    let db = open(device, true);
    for found in db.engine.view().store.live().scan(&[]).unwrap() {
        let (key, cell) = found.unwrap();
        let mut cell = cell.load().unwrap().to_vec();
        let (tree, parsed) = cell_key::parse(&key).unwrap();
        change(tree.0, parsed, &mut cell);
        writer.push(&key, &cell).unwrap();
    }
    manifest.segments = vec![writer.finish().unwrap()];
    manifest.next_segment += 1;
    manifest.store(device.as_ref()).unwrap();
}

fn check(device: &Arc<dyn Device>) -> CheckReport {
    let report = open(device, true).check().unwrap();
    assert_eq!(open(device, false).check().unwrap().findings, report.findings);
    report
}

fn hashes_of(db: &Database, name: &str) -> Vec<u64> {
    let tree = db.engine.document(name).unwrap();
    tree.kept_hashes().unwrap().map(|kept| kept.unwrap().0.0).collect()
}

#[test]
fn a_value_that_changed_under_valid_checksums_is_found() {
    let device = written();
    rewrite(&device, |tree, key, cell| {
        if let (2, CellKey::Group { path: PathId(1), kind: GroupCell::Base, .. }) = (tree, key) {
            cell.clear();
            encode_column(&[Datum::Int(2)], cell);
        }
    });
    let [was, is] = [r#"{"a":1}"#, r#"{"a":2}"#].map(|json| ContentHash::of_json(json.as_bytes()));
    let report = check(&device);
    assert_eq!(report.findings.len(), 1, "{report:?}");
    assert_eq!(report.findings[0].place, "document \"e\", revision 1");
    let message = format!("it had the hash {was} when a checkpoint wrote it, found {is}");
    assert_eq!(report.findings[0].message, message);
}

#[test]
fn a_hash_of_another_value_is_found() {
    let device = written();
    assert_eq!((check(&device).hashes, check(&device).is_clean()), (3, true));
    rewrite(&device, |tree, key, cell| {
        if let (0 | 1, CellKey::Hash { .. }) = (tree, key) {
            *cell = vec![0; 32];
        }
    });
    let report = check(&device);
    let places: Vec<_> = report.findings.iter().map(|found| found.place.as_str()).collect();
    assert_eq!(places, ["catalogue, revision 2", "document \"d\", revision 1"], "{report:?}");
    assert!(report.findings[1].message.contains(&"0".repeat(64)), "{report:?}");
}

#[test]
fn a_value_that_is_gone_is_found() {
    let device = written();
    rewrite(&device, |tree, key, cell| {
        if let (1, CellKey::Group { path: PathId(0), kind: GroupCell::Base, .. }) = (tree, key) {
            cell.clear();
            encode_column(&[Datum::Null], cell);
        }
    });
    assert!(!check(&device).is_clean());
}

#[test]
fn a_checkpoint_keeps_the_hash_of_what_it_writes_and_of_nothing_else() {
    let device = written();
    let db = open(&device, false);
    let [d, e] = ["d", "e"].map(|name| db.document(name).unwrap());
    put(&d, r#"{"a":2}"#);
    put(&d, r#"{"a":3}"#);
    db.checkpoint().unwrap();
    assert_eq!((hashes_of(&db, "d"), hashes_of(&db, "e")), (vec![1, 3], vec![1]));
    db.delete_document("e", &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    assert_eq!(hashes_of(&db, "e"), [1], "a deleted document has no value");
    put(&e, &format!("\"{}\"", "x".repeat(KEPT_HASH_TEXT_BYTES_MAX - 2)));
    db.checkpoint().unwrap();
    put(&e, &format!("\"{}\"", "x".repeat(KEPT_HASH_TEXT_BYTES_MAX - 1)));
    db.checkpoint().unwrap();
    assert_eq!(hashes_of(&db, "e"), [1, 3], "the last one is over the limit");
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn a_hash_is_that_of_its_revision_whatever_is_committed_or_staged_later() {
    let device = written();
    let db = open(&device, false);
    let d = db.document("d").unwrap();
    put(&d, r#"{"a":2,"b":[1,2]}"#);
    let mut transaction = db.transaction();
    transaction.set("d", &JsonPointer::parse("/b/0").unwrap(), b"7").unwrap();
    db.checkpoint().unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    let kept = db.engine.document("d").unwrap().kept_hashes().unwrap().last().unwrap().unwrap();
    assert_eq!(kept, (Revision(2), ContentHash::of_json(br#"{"a":2,"b":[1,2]}"#)));
    drop((db, d));
    // Recovery replays the last commit and a checkpoint writes it.
    assert!(check(&device).is_clean());
}

/// What a checkpoint cannot read of the past must not keep it from writing what is new.
#[test]
fn a_checkpoint_goes_on_where_a_document_is_damaged() {
    let device = written();
    rewrite(&device, |tree, key, cell| {
        if let (1, CellKey::Group { path: PathId(3), kind: GroupCell::Base, .. }) = (tree, key) {
            cell.truncate(1);
        }
    });
    let db = open(&device, false);
    let [d, e] = ["d", "e"].map(|name| db.document(name).unwrap());
    d.set(&JsonPointer::parse("/a").unwrap(), "2", &CommitOptions::default()).unwrap();
    put(&e, r#"{"a":2}"#);
    db.checkpoint().unwrap();
    assert_eq!((hashes_of(&db, "d"), hashes_of(&db, "e")), (vec![1], vec![1, 2]));
    assert!(!db.check().unwrap().is_clean());
}
