//! What is known of columns without a look at them.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::*;
use crate::io::{Device, MemoryDevice};
use crate::{BulkOptions, DocumentOptions, Retention};

fn open(device: &MemoryDevice) -> Database {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    Database::open_device(device, Options::default()).unwrap()
}

fn columns(db: &Database) -> Columns {
    db.collection("r").unwrap().head().unwrap().columns().unwrap()
}

/// What the fields of the records have, by their names.
fn kinds(columns: &Columns) -> Vec<(String, ColumnKinds)> {
    let field = |field: ColumnField| (field.name, field.kinds.without(ColumnKinds::NULL));
    columns.root().unwrap().fields.into_iter().map(field).collect()
}

#[test]
fn nothing_is_read_of_columns_that_have_had_one_kind() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let declared = DocumentOptions { collection: Some(KeyKind::I64), ..DocumentOptions::default() };
    let options = BulkOptions { declared, ..BulkOptions::default() };
    let mut numbers = 0..100_000_i64;
    let mut next = |json: &mut Vec<u8>| {
        Ok(numbers.next().map(|n| {
            let late = if n == 8_000 { r#""late""# } else { "null" };
            let f = if n == 1 { "1.5" } else { "2" };
            json.extend_from_slice(format!(r#"{{"id":{n},"t":{late},"f":{f}}}"#).as_bytes());
            Key::from(n)
        }))
    };
    let mut go_on = |_| ControlFlow::Continue(());
    db.bulk_load_records("r", &mut next, &options, &mut go_on).unwrap();
    let both = ColumnKinds::INT.or(ColumnKinds::FLOAT);
    let expected = [
        ("id".to_owned(), ColumnKinds::INT),
        ("t".to_owned(), ColumnKinds::TEXT),
        ("f".to_owned(), both),
    ];
    assert_eq!(kinds(&columns(&db)), expected);
    drop(db);
    let db = open(&device);
    let records = columns(&db);
    assert_eq!(kinds(&records), expected);
    assert!(!records.is_to_be_read(&|name| name != "f"));
    assert!(records.is_to_be_read(&|name| name == "f"));
    // Both kinds are found in the first row group: others were not looked for.
    let groups = records.tree.data.read().groups().count();
    assert!(groups < records.parts(), "{groups} of {}", records.parts());
}

#[test]
fn a_column_has_a_type_before_it_has_a_value() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    records.put(1, r#"{"a":1}"#, &how()).unwrap();
    records.put(1, r#"{"a":1,"b":{"c":[true]}}"#, &how()).unwrap();
    let root = records.at(Revision(1)).unwrap().columns().unwrap().root().unwrap();
    let b = named(&root.fields, "b");
    assert_eq!(b.kinds, ColumnKinds::OBJECT);
    let c = named(&b.fields, "c");
    assert_eq!(c.element.as_ref().unwrap().kinds, ColumnKinds::BOOL);
}

/// A small, deterministic source of numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        let at = self.below(items.len() as u64);
        items[usize::try_from(at).unwrap()]
    }
}

/// Values of each kind.
const VALUES: [&str; 10] =
    ["null", "true", "7", "1.5", "1e400", r#""text""#, r#"{"x":1}"#, "[1]", "-0", r#"{"x":"y"}"#];

/// A text that is stored apart.
fn long() -> String {
    format!("\"{}\"", "long ".repeat(1_000))
}

/// What a value is.
fn kind_of(value: ColumnValue<'_>) -> ColumnKinds {
    match value {
        ColumnValue::Missing | ColumnValue::Null => ColumnKinds::NULL,
        ColumnValue::Bool(_) => ColumnKinds::BOOL,
        ColumnValue::Int(_) => ColumnKinds::INT,
        ColumnValue::Decimal { .. } | ColumnValue::Float(_) => ColumnKinds::FLOAT,
        ColumnValue::Digits(_) => ColumnKinds::DIGITS,
        ColumnValue::Text(_) => ColumnKinds::TEXT,
        ColumnValue::Object => ColumnKinds::OBJECT,
        ColumnValue::Array => ColumnKinds::ARRAY,
        ColumnValue::Json(_) => ColumnKinds::JSON,
    }
}

/// Whether the kinds that are told of a field include that of each value that records have.
fn check_field(columns: &Columns, rows: &ColumnRows, field: &ColumnField) {
    let chunk = columns.read(rows, field.path).unwrap();
    let told = field.kinds.or(ColumnKinds::NULL);
    for value in (0..chunk.len()).map(|row| chunk.get(row)) {
        let revision = columns.revision();
        assert!(kind_of(value).is_within(told), "{}: {value:?} at {revision}", field.name);
    }
}

/// The same of all fields at all revisions.
fn check(db: &Database) {
    let records = db.collection("r").unwrap();
    let head = records.head().unwrap().revision().0;
    let kept = (1..=head).filter_map(|revision| records.at(Revision(revision)).ok());
    for columns in kept.map(|snapshot| snapshot.columns().unwrap()) {
        let root = columns.root().unwrap();
        for rows in (0..columns.parts()).map(|part| columns.rows(part).unwrap()) {
            root.fields.iter().for_each(|field| check_field(&columns, &rows, field));
        }
    }
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[test]
fn kinds_that_are_told_include_those_of_all_values() {
    for seed in 1..=6_u64 {
        let mut random = Random(seed);
        let long = long();
        let values = [&VALUES[..], &[&long]].concat();
        let device = MemoryDevice::new();
        let mut db = open(&device);
        db.create_collection("r", KeyKind::I64).unwrap();
        for step in 0..120 {
            let records = db.collection("r").unwrap();
            let key = random.below(6).cast_signed();
            let (field, value) = (random.of(&["a", "b", "c"]), random.of(&values));
            let json = format!("{{\"{field}\":{value},\"n\":{step}}}");
            match random.below(20) {
                0 => drop(records.delete(key, &how())),
                1 => drop(db.checkpoint()),
                2 => db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap(),
                3 => {
                    drop((records, db));
                    db = open(&device);
                }
                4 => {
                    let mut transaction = db.transaction();
                    transaction.put_record("r", &Key::I64(key), json.as_bytes()).unwrap();
                    drop(transaction);
                }
                5 => {
                    let last = Retention::Last(3 + random.below(6));
                    records.document().retain(last, &how()).unwrap();
                }
                _ => drop(records.put(key, json.as_bytes(), &how()).unwrap()),
            }
        }
        check(&db);
        db.checkpoint().unwrap();
        check(&db);
        drop(db);
        check(&open(&device));
    }
}
