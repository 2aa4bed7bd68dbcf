//! Joins that look rows up answer what joins of all rows do.

use std::collections::BTreeSet;

use duramen::{CommitOptions, Database, IndexDefinition, Key, KeyKind};
use duramen_sql::{Session, SessionOptions};

use crate::differential::Random;
use crate::sought::answer;

const QUERIES: usize = 60;

const RECORDS: u64 = 2_000;

fn key(kind: KeyKind, number: u64) -> Key {
    match kind {
        KeyKind::Text => Key::Text(format!("k/{number}")),
        KeyKind::I64 => Key::I64(number.cast_signed() - 1_000),
        KeyKind::U64 => Key::U64(number),
        KeyKind::Uuid => Key::Uuid(u128::from(number) << 90 | u128::from(number)),
    }
}

/// A database with many records, and others that name some of them, at several revisions.
fn database(kind: KeyKind) -> Database {
    let db = Database::memory().unwrap();
    let many = db.create_collection("many", kind).unwrap();
    db.create_collection("few", KeyKind::U64).unwrap();
    let mut random = Random(11);
    for round in 0..3 {
        let mut transaction = db.transaction();
        for number in 0..RECORDS {
            let key = key(kind, number);
            match random.below(9) {
                0 => drop(transaction.delete_records("many", &[key]).unwrap()),
                1..=4 if round > 0 => {}
                _ => {
                    let f = random.of(&["0.1", "-0.0", "0.0", "7", "12.5", "1e300"]);
                    let n = random.below(2_000);
                    let of = format!(r#"{{"id":{n},"at":{{"id":"s {}"}}}}"#, n / 3);
                    let json =
                        format!(r#"{{"n":{n},"f":{f},"s":"s {}","m":{number},"o":{of}}}"#, n / 3);
                    transaction.put_record("many", &key, json.as_bytes()).unwrap();
                }
            }
        }
        for number in 0..400_u64 {
            let named = match (random.below(8), key(kind, random.below(RECORDS + 200))) {
                (0, _) => "null".to_owned(),
                (_, Key::I64(number)) => number.to_string(),
                (_, Key::U64(number)) => number.to_string(),
                (_, text) => format!("\"{text}\""),
            };
            let n = random.of(&["null", "1", "5", "77", "1999", "5000"]);
            let f = random.of(&["0.1", "-0.0", "0.0", "7", "null", "0.30000000000000004"]);
            let s = random.below(700);
            let json = format!(
                r#"{{"k":{named},"n":{n},"f":{f},"s":"s {s}","i":{number},"o":{{"k":{named}}}}}"#
            );
            transaction.put_record("few", &number.into(), json.as_bytes()).unwrap();
        }
        transaction.commit(&CommitOptions::default()).unwrap();
        if round == 0 {
            for (name, paths) in [
                ("n", &["n"][..]),
                ("f", &["f"]),
                ("both", &["s", "n"]),
                ("id", &["o.id"]),
                ("at", &["o.at.id"]),
            ] {
                many.create_index(&IndexDefinition::new(name, paths).unwrap()).unwrap();
            }
        }
    }
    db
}

#[test]
fn joins_find_what_joins_of_all_rows_do() {
    for kind in [KeyKind::Text, KeyKind::I64, KeyKind::U64, KeyKind::Uuid] {
        let db = database(kind);
        let head = db.collection("many").unwrap().head().unwrap().revision().0;
        let session = Session::new(db, SessionOptions::default());
        let mut random = Random(5);
        let mut ways = BTreeSet::new();
        // Its own keys have another type than what names them.
        let nested = if kind == KeyKind::U64 { "few.key" } else { "few.o.k" };
        let cast = if kind == KeyKind::U64 { "CAST(k AS BIGINT UNSIGNED)" } else { "k" };
        for _ in 0..QUERIES {
            let few = random.of(&["i = 7", "i < 9", "i < 30", "i < 55", "i < 390", "i > 400"]);
            let few = format!("(SELECT *, {cast} AS key FROM few WHERE {few}) AS few");
            let at = 1 + random.below(head);
            let many = match random.below(4) {
                0 => "many".to_owned(),
                1 => "many FOR SYSTEM_TIME ALL".to_owned(),
                2 => "(SELECT * FROM many WHERE m % 3 > 0)".to_owned(),
                _ => format!("many FOR SYSTEM_TIME AS OF {at}"),
            };
            let (left, right) = match random.below(9) {
                0 | 1 => ("few.key", "_key"),
                2 => ("few.n", "n"),
                3 => ("few.f", "f"),
                4 => ("few.s", "s"),
                5 => (nested, "_key"),
                6 => ("few.n", "o.id"),
                7 => ("few.s", "o.at.id"),
                _ => ("few.i", "m"),
            };
            let also = match random.below(4) {
                0 => " AND few.i < many.m",
                1 => " AND few.s = many.s",
                _ => "",
            };
            let shape = random.below(8);
            let sql = |right: &str| {
                let on = format!("{left} = many.{right}{also}");
                let many = format!("(SELECT *, {right} AS c FROM {many} AS many) AS many");
                let on = on.replace(&format!("many.{right}"), "many.c");
                match shape {
                    0 => format!("SELECT * FROM {few} LEFT JOIN {many} ON {on}"),
                    1 => format!("SELECT * FROM {many} LEFT JOIN {few} ON {on}"),
                    2 => format!("SELECT * FROM {few} FULL JOIN {many} ON {on}"),
                    3 => format!(
                        "SELECT * FROM {few} WHERE EXISTS (SELECT 1 FROM {many} WHERE {on})"
                    ),
                    4 => format!(
                        "SELECT * FROM {few} WHERE NOT EXISTS (SELECT 1 FROM {many} WHERE {on})"
                    ),
                    5 => format!("SELECT * FROM {many} WHERE c IN (SELECT {left} FROM {few})"),
                    6 => format!("SELECT * FROM {few} WHERE {left} NOT IN (SELECT c FROM {many})"),
                    _ => format!("SELECT * FROM {many} JOIN {few} ON {on}"),
                }
            };
            // What is random is looked at row by row.
            let all = sql(&format!("CASE WHEN random() > 2 THEN NULL ELSE {right} END"));
            let sql = sql(right);
            assert_eq!(answer(&session, &sql), answer(&session, &all), "{kind:?}: {sql}");
            let plan = answer(&session, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
            let way = plan.split("sought ").skip(1);
            ways.extend(way.filter_map(|way| way.split(" joined").next().map(str::to_owned)));
        }
        let expected = ["by index as few are", "by key as few are", "as many are"];
        // A join with nothing does not ask its other side.
        ways.remove("if few are");
        assert_eq!(ways, expected.map(str::to_owned).into(), "{kind:?}");
    }
}

/// Joins by fields of objects once read all of the other side.
#[test]
fn joins_by_fields_of_objects_look_up_what_is_joined() {
    let session = Session::new(database(KeyKind::Text), SessionOptions::default());
    let few = "(SELECT * FROM few WHERE i < 9) AS few";
    for (sql, way) in [
        (format!("SELECT 1 FROM {few} JOIN many ON few.o.k = many._key"), "key"),
        (format!("SELECT 1 FROM {few} JOIN many ON few.n = many.o.id"), "index"),
        (format!("SELECT 1 FROM {few} JOIN many ON few.s = many.o.at.id"), "index"),
        (format!("SELECT 1 FROM many WHERE o.at.id IN (SELECT s FROM {few})"), "index"),
        (
            format!(
                "SELECT 1 FROM {few} WHERE EXISTS (SELECT 1 FROM many WHERE many.o.id = few.n)"
            ),
            "index",
        ),
    ] {
        let plan = answer(&session, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
        assert!(plan.contains(&format!("sought by {way} as few are joined")), "{sql}: {plan}");
    }
}

/// Above the scan of a table that several threads read stands what has them give way to others,
/// and such a table was read as a whole.
#[test]
fn joins_look_up_rows_of_tables_that_several_threads_read() {
    let db = Database::memory().unwrap();
    db.create_collection("many", KeyKind::I64).unwrap();
    db.create_collection("few", KeyKind::I64).unwrap();
    let mut transaction = db.transaction();
    for number in 0..20_000_i64 {
        let json = format!(r#"{{"n":{number}}}"#);
        transaction.put_record("many", &Key::I64(number), json.as_bytes()).unwrap();
    }
    for number in 0..5_i64 {
        let json = format!(r#"{{"k":{}}}"#, number * 1_000);
        transaction.put_record("few", &Key::I64(number), json.as_bytes()).unwrap();
    }
    transaction.commit(&CommitOptions::default()).unwrap();
    let index = IndexDefinition::new("n", &["n"]).unwrap();
    db.collection("many").unwrap().create_index(&index).unwrap();
    let session = Session::new(db, SessionOptions::default());
    for (on, way) in [("few.k = many._key", "key"), ("few.k = many.n", "index")] {
        let sql = format!("SELECT many.n FROM few JOIN many ON {on}");
        assert_eq!(answer(&session, &sql).len(), 4 + 5, "{on}");
        let plan = answer(&session, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
        assert!(plan.contains(&format!("sought by {way} as few are joined")), "{on}: {plan}");
    }
}
