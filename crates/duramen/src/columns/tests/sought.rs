//! Records that are found by their keys or by indexes.

use std::ops::Bound;

use super::*;
use crate::{Filter, IndexDefinition, ScanOptions};

fn integers(columns: &Columns, field: &str) -> Vec<i64> {
    let path = named(&columns.root().unwrap().fields, field).path;
    let mut found = Vec::new();
    for part in 0..columns.parts() {
        let rows = columns.rows(part).unwrap();
        found.extend(columns.read(&rows, path).unwrap().integers().unwrap());
    }
    found
}

#[test]
fn records_are_found_by_keys_as_of_a_revision() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::Text).unwrap();
    for n in 0..300_i64 {
        records.put(format!("k{n:03}"), format!("{{\"n\":{n}}}"), &how()).unwrap();
    }
    records.delete("k007", &how()).unwrap();
    records.put("k008", r#"{"n":-8}"#, &how()).unwrap();
    records.put("late", r#"{"n":300}"#, &how()).unwrap();
    let keys = ["k009", "late", "k007", "k008", "none", "k008"].map(Key::from);
    let range = ScanOptions { from: Bound::Excluded("k295".into()), ..ScanOptions::default() };
    let prefix = ScanOptions { prefix: Some("k00".to_owned()), ..ScanOptions::default() };
    for is_on_disk in [false, true] {
        if is_on_disk {
            db.checkpoint().unwrap();
        }
        let head = records.head().unwrap().columns().unwrap();
        let old = records.at(Revision(300)).unwrap().columns().unwrap();
        let of = |columns: &Columns| integers(&columns.with_keys(&keys).unwrap().unwrap(), "n");
        assert_eq!((of(&head), of(&old)), (vec![-8, 9, 300], vec![7, 8, 9]));
        let found = |columns: &Columns, range: &ScanOptions, most: usize| {
            columns.with_keys_in(range, most).unwrap().map(|found| integers(&found, "n"))
        };
        assert_eq!(found(&head, &range, 5), Some(vec![296, 297, 298, 299, 300]));
        assert_eq!(found(&head, &range, 4), None);
        assert_eq!(found(&old, &range, 5), Some(vec![296, 297, 298, 299]));
        assert_eq!(found(&old, &prefix, 10).unwrap().len(), 10);
        assert_eq!(found(&head, &prefix, 10).unwrap().len(), 9);
        let number = [Key::I64(1)];
        assert_eq!(head.with_keys(&number).unwrap_err().kind(), crate::ErrorKind::Invalid);

        let versions = records.head().unwrap().version_columns(Revision(1)..=Revision(303));
        let versions = versions.unwrap();
        assert_eq!(of(&versions), [7, 8, -8, 9, 300]);
    }
}

#[test]
fn indexes_name_records_as_of_a_revision_where_they_are_few() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    let by_rank = IndexDefinition::new("by-rank", &[r#"a["the rank"]"#]).unwrap();
    records.create_index(&by_rank).unwrap();
    for n in 0..500_i64 {
        let json = format!("{{\"n\":{n},\"a\":{{\"the rank\":{}}}}}", n % 50);
        records.put(n, json, &how()).unwrap();
    }
    records.delete(7, &how()).unwrap();
    let head = records.head().unwrap().columns().unwrap();
    let old = records.at(Revision(500)).unwrap().columns().unwrap();
    let root = head.root().unwrap();
    let rank = named(&named(&root.fields, "a").fields, "the rank").path;
    let path = head.record_path(rank).unwrap();
    assert_eq!(path.to_string(), r#"a["the rank"]"#);
    let filter = Filter::eq(path.to_string(), 7);
    let found = |columns: &Columns, most: usize| {
        columns.named(&filter, most).unwrap().map(|found| integers(&found, "n").len())
    };
    assert_eq!((found(&head, 10), found(&old, 10)), (Some(9), Some(10)));
    assert_eq!(found(&old, 9), None);
    assert!(head.named(&Filter::eq("n", 7), 10).unwrap().is_none(), "no index");
    let versions = records.head().unwrap().version_columns(Revision(1)..=Revision(501)).unwrap();
    assert_eq!(found(&versions, 10), None);
    let document = db.create_document("d").unwrap();
    document.put(r#"[{"n":1}]"#, &how()).unwrap();
    let elements = document.head().unwrap().columns(&"$[*]".parse().unwrap()).unwrap();
    assert!(elements.with_keys(&[Key::I64(1)]).unwrap().is_none());
    assert!(elements.record_path(elements.root().unwrap().fields[0].path).is_none());
}
