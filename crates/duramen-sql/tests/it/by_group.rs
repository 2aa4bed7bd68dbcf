//! Aggregates that hold the values of their groups, over rows that threads share.

use std::collections::BTreeMap;

use duramen::{CommitOptions, Database, KeyKind};
use duramen_sql::arrow::array::{ArrayRef, AsArray};
use duramen_sql::arrow::datatypes::{Int64Type, UInt64Type};
use duramen_sql::arrow::util::display::array_value_to_string;
use duramen_sql::{Session, SessionOptions};

/// So many that several threads read them.
const RECORDS: u64 = 80_000;

/// What rows are grouped by.
const KEYS: [&str; 8] = [
    "g",
    "s",
    "f",
    "s, f",
    // Equal zeros of two floats are beside each other in no order.
    "f, h, s",
    "upper(s)",
    "g % 2 = 0",
    "g + 1, upper(s) = 'C'",
];

fn database() -> Database {
    let db = Database::memory().unwrap();
    db.create_collection("t", KeyKind::U64).unwrap();
    let floats = ["-0.0", "0.0", "1.5", "null", "-2.0"];
    for begin in (0..RECORDS).step_by(10_000) {
        let mut transaction = db.transaction();
        for key in begin..begin + 10_000 {
            let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let place = |by: u64| usize::try_from(mixed / by % 5).unwrap();
            let (f, h, s) =
                (floats[place(7)], floats[place(11)], ["a", "B", "b", "c", "d"][place(3)]);
            let json = format!(r#"{{"g":{},"f":{f},"h":{h},"s":"{s}"}}"#, mixed % 40);
            transaction.put_record("t", &key.into(), json.as_bytes()).unwrap();
        }
        transaction.commit(&CommitOptions::default()).unwrap();
    }
    db
}

/// The keys of a row, of which zeros are one.
fn keys(columns: &[ArrayRef], row: usize) -> String {
    let texts = columns.iter().map(|column| array_value_to_string(column, row).unwrap());
    let texts: Vec<_> = texts.map(|text| text.replace("-0.0", "0.0")).collect();
    texts.join(";")
}

/// Rows of a group once were in an order by which of the threads was first.
#[test]
fn lists_of_groups_have_their_rows_as_they_are_read() {
    let session = Session::new(database(), SessionOptions::default());
    for by in KEYS {
        let mut expected: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for batch in session.query(&format!("SELECT _key, {by} FROM t")).unwrap() {
            let batch = batch.unwrap();
            let numbers = batch.column(0).as_primitive::<UInt64Type>();
            for row in 0..batch.num_rows() {
                let rows = expected.entry(keys(&batch.columns()[1..], row)).or_default();
                rows.push(numbers.value(row));
            }
        }
        for rows in expected.values_mut() {
            rows.sort_unstable();
        }
        let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let sql = format!(
            "SELECT array_agg(_key), count(DISTINCT _key % 100), count(DISTINCT s), {by} FROM t \
             GROUP BY {by}"
        );
        for batch in session.query(&sql).unwrap() {
            let batch = batch.unwrap();
            let (lists, counts) = (batch.column(0).as_list::<i32>(), batch.column(1));
            let counts = counts.as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let list = lists.value(row);
                let rows = list.as_primitive::<UInt64Type>().values().to_vec();
                let mut distinct: Vec<_> = rows.iter().map(|key| key % 100).collect();
                distinct.sort_unstable();
                distinct.dedup();
                assert_eq!(counts.value(row), i64::try_from(distinct.len()).unwrap(), "{by}");
                let before = found.insert(keys(&batch.columns()[3..], row), rows);
                assert!(before.is_none(), "{by}: a group comes twice");
            }
        }
        assert_eq!(found, expected, "{by}");
    }
}
