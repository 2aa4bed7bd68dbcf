use super::*;
use crate::{CommitOptions, Database, Key, Options};

mod kinds;
mod sought;

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
        let elements = new.elements(&rows, &new.read(&rows, t.path).unwrap()).unwrap();
        let x = &t.element.as_ref().unwrap().fields[0];
        let values = new.read(&elements.rows, x.path).unwrap();
        assert_eq!((elements.lens, values.get(0)), (vec![1], ColumnValue::Int(5)));
    }
}

#[test]
fn only_fields_that_are_wanted_are_looked_through() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    let record = |n: i64| (n, format!(r#"{{"a":{{"b":{n}}},"b":"{n}","c":{n}}}"#));
    records.put_many((0..6_000).map(record), &how()).unwrap();
    db.checkpoint().unwrap();
    let columns = records.head().unwrap().columns().unwrap();
    let is_wanted = |name: &str| name != "c";
    for part in 0..columns.parts() {
        columns.load(part..part + 1, &is_wanted).unwrap();
    }
    columns.load(0..columns.parts() + 1, &is_wanted).unwrap();
    let mut all = columns.root().unwrap();
    assert_eq!(all.fields.len(), 3);
    all.fields.pop();
    let some = columns.root_of(&is_wanted).unwrap();
    assert_eq!(some, all);
    assert_eq!(some.fields[0].fields[0].name, "b");
    assert!(columns.root_of(&|_| false).unwrap().fields.is_empty());
}

#[test]
fn row_groups_read_together_are_as_those_read_by_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    {
        let db = Database::open(&path, Options::default()).unwrap();
        let records = db.create_collection("r", KeyKind::I64).unwrap();
        let record = |n: i64| (n, format!(r#"{{"a":{n},"b":"{}"}}"#, n % 7));
        records.put_many((0..13_000).map(record), &how()).unwrap();
        db.checkpoint().unwrap();
        // Some of the row groups stand in a second segment, too.
        let changed = (4_000..17_000).step_by(1_000).map(|n| (n, r#"{"a":null,"c":1.5}"#));
        records.put_many(changed, &how()).unwrap();
        db.checkpoint().unwrap();
        drop(records);
        db.close().unwrap();
    }
    let read = |ahead: Range<usize>| {
        let db = Database::open(&path, Options::default()).unwrap();
        let columns = db.collection("r").unwrap().head().unwrap().columns().unwrap();
        columns.load(ahead, &|_| true).unwrap();
        let mut found = Vec::new();
        for part in 0..columns.parts() {
            let rows = columns.rows(part).unwrap();
            found.push(format!("{:?}", columns.keys(&rows).unwrap()));
            found.push(format!("{:?}", columns.json(&rows, columns.path.unwrap()).unwrap()));
        }
        (found, columns.root().unwrap())
    };
    let alone = read(0..0);
    assert!(alone.0.len() >= 2 * 3);
    for ahead in [0..9, 1..4, 2..3] {
        assert!(read(ahead) == alone);
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
fn kinds_of_what_came_later_are_not_those_of_a_revision() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    records.put(1, r#"{"n":1}"#, &how()).unwrap();
    records.put(2, r#"{"n":1.5}"#, &how()).unwrap();
    records.put(1, r#"{"n":"one"}"#, &how()).unwrap();
    let both = ColumnKinds::INT.or(ColumnKinds::FLOAT);
    for is_on_disk in [false, true] {
        if is_on_disk {
            db.checkpoint().unwrap();
        }
        let kinds = |revision: u64| {
            let root = records.at(Revision(revision)).unwrap().columns().unwrap().root().unwrap();
            named(&root.fields, "n").kinds
        };
        assert_eq!((kinds(1), kinds(2)), (ColumnKinds::INT, both));
        assert!(ColumnKinds::TEXT.or(ColumnKinds::FLOAT).is_within(kinds(3)));
    }
}

#[test]
fn a_transaction_tells_what_its_commit_will_have() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    let mut transaction = db.transaction();
    for n in 0..5_000 {
        transaction.put_record("r", &Key::I64(n), br#"{"n":1,"t":"a"}"#).unwrap();
    }
    transaction.commit(&how()).unwrap();
    for is_on_disk in [false, true] {
        if is_on_disk {
            db.checkpoint().unwrap();
        }
        let mut transaction = db.transaction();
        let before = transaction.record_fields("r").unwrap();
        assert_eq!(before, records.head().unwrap().columns().unwrap().root().unwrap());
        let new = format!(r#"{{"n":1.5,"o":{{"new{is_on_disk}":[true]}}}}"#);
        transaction.put_record("r", &Key::I64(-1), new.as_bytes()).unwrap();
        transaction.merge_patch_record("r", &Key::I64(7), br#"{"t":7}"#).unwrap();
        transaction.delete_records("r", &[Key::I64(8)]).unwrap();
        let staged = transaction.record_fields("r").unwrap();
        let fields = &staged.fields;
        let both = ColumnKinds::INT.or(ColumnKinds::FLOAT);
        assert_eq!(named(fields, "n").kinds, both);
        assert!(ColumnKinds::TEXT.or(ColumnKinds::INT).is_within(named(fields, "t").kinds));
        let new = named(&named(fields, "o").fields, &format!("new{is_on_disk}"));
        assert_eq!(new.element.as_ref().unwrap().kinds, ColumnKinds::BOOL);
        transaction.commit(&how()).unwrap();
        let root = records.head().unwrap().columns().unwrap().root().unwrap();
        assert_eq!(staged, root);
        records.put(-1, r#"{"n":1}"#, &how()).unwrap();
    }
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
    assert_eq!((out(0), out(1), out(2)), (true, false, true));
}

/// Revisions from and until when a version stood, the version, its field `n` and the sum of the
/// elements of its field `t`.
type Told = (u64, Option<u64>, u64, ColumnNumber, i64);
type ColumnNumber = Option<i64>;

/// What the history of a record tells of its versions that stood at some revisions.
fn told_by_history(records: &crate::Collection, key: i64, (first, last): (u64, u64)) -> Vec<Told> {
    let mut told = Vec::new();
    let mut end = None;
    let Ok(history) = records.history(key) else { return told };
    for version in history {
        let version = version.unwrap();
        let revision = version.revision.0;
        if let Some(record) = version.record
            && revision <= last
            && end.is_none_or(|end| end > first)
        {
            let json: serde_json::Value = serde_json::from_slice(record.json.as_ref()).unwrap();
            let sum = json["t"]
                .as_array()
                .map_or(0, |all| all.iter().map(|element| element["x"].as_i64().unwrap()).sum());
            told.push((revision, end, record.version, json["a"]["n"].as_i64(), sum));
        }
        end = Some(revision);
    }
    told.reverse();
    told
}

/// What the columns say of the versions of all records, by key.
fn told_by_columns(records: &crate::Collection, (first, last): (u64, u64)) -> Vec<(i64, Told)> {
    let head = records.head().unwrap();
    let columns = head.version_columns(Revision(first)..=Revision(last)).unwrap();
    let root = columns.root().unwrap();
    let n = named(&root.fields, "a").fields.first().map(|field| field.path);
    let t = named(&root.fields, "t");
    let x = t.element.as_ref().map(|element| named(&element.fields, "x").path);
    let mut told = Vec::new();
    for part in 0..columns.parts() {
        let mut first = columns.rows(part).unwrap();
        let rest = first.split_off(first.len() / 2);
        for rows in [first, rest] {
            let integer = |chunk: &ColumnChunk, row| match chunk.get(row) {
                ColumnValue::Int(value) => Some(value),
                _ => None,
            };
            let keys = columns.keys(&rows).unwrap();
            let (versions, from) =
                (columns.versions(&rows).unwrap(), columns.changed(&rows).unwrap());
            let (ends, values) = (rows.ended(), columns.read(&rows, n.unwrap()).unwrap());
            let elements = columns.elements(&rows, &columns.read(&rows, t.path).unwrap()).unwrap();
            let inner = columns.read(&elements.rows, x.unwrap()).unwrap();
            let mut at = 0;
            for row in 0..rows.len() {
                let end = at + elements.lens[row] as usize;
                let sum = (at..end).map(|row| integer(&inner, row).unwrap()).sum();
                at = end;
                let (until, value) = (ends[row].map(|end| end.0), integer(&values, row));
                let version = (from[row].0, until, versions[row], value, sum);
                told.push((integer(&keys, row).unwrap(), version));
            }
        }
    }
    told
}

#[test]
fn versions_as_rows_are_those_that_histories_of_records_tell() {
    const KEYS: u64 = 9;
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    let all = r#"{"a":{"n":0},"t":[{"x":1}]}"#;
    records.put(0, all, &how()).unwrap();
    let mut random = 7_u64;
    for step in 1..400_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        let (key, what) = ((random >> 33) % KEYS, (random >> 50) % 8);
        let json = match what {
            0 => {
                let _ = records.delete(key.cast_signed(), &how());
                continue;
            }
            1 => r#"{"a":null}"#.to_owned(),
            2 => format!(r#"{{"t":[{{"x":{step}}}]}}"#),
            _ => format!(r#"{{"a":{{"n":{}}},"t":[{{"x":1}},{{"x":{step}}}]}}"#, step / 4),
        };
        records.put(key.cast_signed(), json, &how()).unwrap();
        if step == 150 || step == 300 {
            db.checkpoint().unwrap();
        }
    }
    let head = records.head().unwrap().revision().0;
    for (first, last) in [(1, head), (1, 1), (head, head), (100, 180), (200, 350.min(head))] {
        let mut expected = Vec::new();
        for key in 0..KEYS.cast_signed() {
            let versions = told_by_history(&records, key, (first, last));
            expected.extend(versions.into_iter().map(|version| (key, version)));
        }
        let mut found = told_by_columns(&records, (first, last));
        found.sort_by_key(|(key, version)| (*key, version.0));
        assert_eq!(found, expected, "{first} to {last}");
    }
}

#[test]
fn versions_end_with_the_collection_they_are_in() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    let json = r#"{"a":{"n":1},"t":[{"x":1}]}"#;
    records.put(1, json, &how()).unwrap();
    db.delete_document("r", &how()).unwrap();
    let two = 2_i64.into();
    let key = KeyKind::I64.text_of(&two).unwrap();
    records.document().put(format!(r#"{{"{key}":{json}}}"#), &how()).unwrap();
    let told = told_by_columns(&records, (1, 3));
    assert_eq!(told, [(1, (1, Some(2), 1, Some(1), 1)), (2, (3, None, 1, Some(1), 1))]);
    let beyond = records.head().unwrap().version_columns(Revision(2)..=Revision(4)).unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::NotFound);
}

/// Objects that outgrew their shape, with known fields and others: at most 256 are columns.
#[test]
fn fields_of_objects_that_outgrew_their_shape_are_in_the_columns_too() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    let json = |key: i64| {
        let nested = if key % 3 == 0 { format!("{{\"x\":{key}}}") } else { "null".to_owned() };
        format!(r#"{{"n":{key},"t":"text {}","o":{nested},"only{key}":true}}"#, key % 7)
    };
    for key in 0..400_i64 {
        records.put(key, json(key), &how()).unwrap();
    }
    records.put(399, r#"{"n":"late"}"#, &how()).unwrap();
    records.delete(398, &how()).unwrap();
    for is_on_disk in [false, true] {
        if is_on_disk {
            db.checkpoint().unwrap();
        }
        let columns = records.at(Revision(400)).unwrap().columns().unwrap();
        let root = columns.root().unwrap();
        assert!(ColumnKinds::JSON.is_within(root.kinds));
        let field = |name: &str| named(&root.fields, name);
        assert_eq!(field("n").kinds, ColumnKinds::INT);
        assert_eq!(field("t").kinds, ColumnKinds::TEXT);
        assert!(ColumnKinds::JSON.or(ColumnKinds::NULL).is_within(field("o").kinds));
        let rows = columns.rows(0).unwrap();
        let numbers = columns.read(&rows, field("n").path).unwrap();
        assert_eq!(numbers.integers().unwrap().collect::<Vec<_>>(), (0..400).collect::<Vec<_>>());
        let texts = columns.read(&rows, field("t").path).unwrap();
        assert_eq!(texts.get(397), ColumnValue::Text("text 5"));
        let objects = columns.json(&rows, field("o").path).unwrap();
        assert_eq!(objects.get(3), ColumnValue::Json("{\"x\":3}"));
        assert_eq!(objects.get(399), ColumnValue::Json("{\"x\":399}"));
        assert_eq!(objects.get(398), ColumnValue::Null);
        let whole = columns.json_beside_columns(&rows).unwrap();
        assert_eq!(whole.get(0), ColumnValue::Missing, "its fields are in columns");
        assert_eq!(whole.get(399), ColumnValue::Json(&json(399)));
        let path = field("n").path;
        assert!(!columns.is_ruled_out(0, path, &(399..=399)).unwrap());
        assert_eq!(summed(&columns, path), (400, 399 * 400 / 2));

        let head = records.head().unwrap().columns().unwrap();
        let root = head.root().unwrap();
        let n = named(&root.fields, "n");
        assert_eq!(n.kinds, ColumnKinds::INT.or(ColumnKinds::TEXT));
        let rows = head.rows(0).unwrap();
        assert_eq!(head.read(&rows, n.path).unwrap().get(398), ColumnValue::Text("late"));
        let versions = records.head().unwrap().version_columns(Revision(1)..=Revision(402));
        let versions = versions.unwrap();
        let rows = versions.rows(0).unwrap();
        let numbers = versions.read(&rows, n.path).unwrap();
        let count =
            (0..rows.len()).filter(|row| numbers.get(*row) == ColumnValue::Int(398)).count();
        assert_eq!(count, 1);
    }
}

/// How many integers a column has, and their sum.
fn summed(columns: &Columns, path: PathId) -> (u64, i128) {
    let plan = AggregatePlan {
        columns: vec![AggregateColumn { path, kind: ValueKind::Int }],
        filter: RowFilter::All(Vec::new()),
        keys: Vec::new(),
        measures: vec![Measure::Sum(0)],
    };
    let mut found = plan.start();
    columns.aggregate(0..columns.parts(), &plan, &mut found).unwrap();
    match &found.measured()[0] {
        Measured::Sum(sums) => (sums[0].count, sums[0].total),
        other => panic!("{other:?} is no sum"),
    }
}
