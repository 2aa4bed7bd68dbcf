use super::*;
use crate::{CommitOptions, Database};

fn how() -> CommitOptions {
    CommitOptions::default()
}

fn named<'f>(fields: &'f [ColumnField], name: &str) -> &'f ColumnField {
    fields.iter().find(|field| field.name == name).unwrap()
}

#[test]
fn what_an_object_has_no_more_is_missing_in_its_columns() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    records.put(1, r#"{"a":{"b":1},"t":[{"x":1},{"x":2}]}"#, &how()).unwrap();
    records.put(2, r#"{"a":{"b":2},"t":[]}"#, &how()).unwrap();
    records.put(1, r#"{"a":null,"t":[{"x":5}]}"#, &how()).unwrap();
    records.delete(2, &how()).unwrap();
    for is_on_disk in [false, true] {
        if is_on_disk {
            db.checkpoint().unwrap();
        }
        let old = records.at(Revision(2)).unwrap().columns().unwrap();
        let root = old.root().unwrap();
        let b = &named(&root.fields, "a").fields[0];
        let rows = old.rows(0).unwrap();
        let values = old.read(&rows, b.path).unwrap();
        assert_eq!(values.integers().unwrap().collect::<Vec<_>>(), [1, 2]);
        let new = records.head().unwrap().columns().unwrap();
        let rows = new.rows(0).unwrap();
        assert_eq!(new.read(&rows, b.path).unwrap().get(0), ColumnValue::Missing);
        assert_eq!(new.keys(&rows).unwrap().get(0), ColumnValue::Int(1));
        assert_eq!(new.versions(&rows).unwrap(), [2]);
        assert_eq!(new.changed(&rows).unwrap(), [Revision(3)]);
        let t = named(&root.fields, "t");
        let elements = new.elements(&new.read(&rows, t.path).unwrap()).unwrap();
        let x = &t.element.as_ref().unwrap().fields[0];
        let values = new.read(&elements.rows, x.path).unwrap();
        assert_eq!((elements.lens, values.get(0)), (vec![1], ColumnValue::Int(5)));
    }
}

#[test]
fn elements_of_arrays_in_arrays_are_rows_in_their_order() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let part = |from: u32| {
        let items: Vec<_> = (from..from + 3_000).map(|n| format!("{{\"n\":{n}}}")).collect();
        format!("{{\"items\":[{}]}}", items.join(","))
    };
    let json = format!("{{\"data\":[{},{}]}}", part(0), part(3_000));
    document.put(json, &how()).unwrap();
    let first = r#"[{"op":"add","path":"/data/0/items/0","value":{"n":-1}}]"#;
    document.patch(first, &how()).unwrap();
    let path: LabelPath = "$.data[*].items[*]".parse().unwrap();
    let columns = document.head().unwrap().columns(&path).unwrap();
    let n = columns.root().unwrap().fields[0].path;
    let mut all = Vec::new();
    for part in 0..columns.parts() {
        let rows = columns.rows(part).unwrap();
        all.extend(columns.read(&rows, n).unwrap().integers().unwrap());
    }
    assert_eq!(all[..3], [-1, 0, 1]);
    assert_eq!(all[1..], (0..6_000).collect::<Vec<_>>());
    let nothing = document.head().unwrap().columns(&"$.data".parse().unwrap()).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::Invalid);
}

#[test]
fn parts_are_ruled_out_by_least_and_greatest_values() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    let mut transaction = db.transaction();
    for n in 0..9_000_i64 {
        let json = format!("{{\"n\":{n}}}");
        transaction.put_record("r", &n.into(), json.as_bytes()).unwrap();
    }
    transaction.commit(&how()).unwrap();
    db.checkpoint().unwrap();
    let columns = records.head().unwrap().columns().unwrap();
    let n = named(&columns.root().unwrap().fields, "n").path;
    let out = |part| columns.is_ruled_out(part, n, &(5_000..=5_001)).unwrap();
    // A small row group, as the last one, is read as a whole and says nothing.
    assert_eq!((out(0), out(1), out(2)), (true, false, false));
}
