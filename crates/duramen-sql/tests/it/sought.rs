//! Records that are sought by their keys or by indexes are those that a filter finds among all.

use std::collections::BTreeSet;

use datafusion::arrow::util::pretty::pretty_format_batches;
use duramen::{CommitOptions, Database, IndexDefinition, Key, KeyKind};
use duramen_sql::{Session, SessionOptions};

use crate::differential::Random;

const QUERIES: usize = 200;

fn key(kind: KeyKind, number: u64) -> Key {
    match kind {
        KeyKind::Text => {
            let beginning = match number % 3 {
                0 => "a",
                1 => "b",
                _ => "\u{e9}",
            };
            Key::Text(format!("{beginning}/{number}"))
        }
        KeyKind::I64 => Key::I64(number.cast_signed() - 1_000),
        KeyKind::U64 => Key::U64(number),
        KeyKind::Uuid => Key::Uuid(u128::from(number) << 100 | u128::from(number)),
    }
}

fn record(random: &mut Random) -> String {
    let n = random.of(&["1", "2", "3", "null", "9223372036854775807", "-5", "40", "50", "60"]);
    let f = match random.below(6) {
        0 => random.of(&["0.1", "0.10000000000000000000000001", "7", "-0.0", "1e300"]).to_owned(),
        _ => format!("{}.5", random.below(400)),
    };
    let s = random.of(&["", "a", "ab", "abc", "b%", "\\u00e9", "long text"]);
    let o = random.of(&["null", r#"{"x":1}"#, r#"{"x":2,"y":"p"}"#, r#"{"y":"q"}"#, "{}"]);
    let gap = random.of(&["", r#""m":null,"#, r#""m":1,"#, r#""m":2,"#, r#""m":-3,"#]);
    let many = random.below(900);
    let deep = format!(r#"{{"q":{{"r":{}}}}}"#, many % 50);
    format!(r#"{{{gap}"n":{n},"f":{f},"s":"{s} {many}","o":{o},"a b":{many},"p":{deep}}}"#)
}

/// A database with a collection of each type of keys, and revisions of it that are compared.
fn database(kind: KeyKind) -> Database {
    let db = Database::memory().unwrap();
    let records = db.create_collection("t", kind).unwrap();
    let mut random = Random(3);
    for round in 0..4 {
        let mut transaction = db.transaction();
        for _ in 0..1_500 {
            let key = key(kind, random.below(3_000));
            if random.below(5) == 0 {
                transaction.delete_records("t", &[key]).unwrap();
            } else {
                let json = record(&mut random);
                transaction.put_record("t", &key, json.as_bytes()).unwrap();
            }
        }
        transaction.commit(&CommitOptions::default()).unwrap();
        if round == 1 {
            let indexes: [(&str, &[&str]); 8] = [
                ("n", &["n"]),
                ("f", &["f"]),
                ("s", &["s"]),
                ("x", &["o.x"]),
                ("odd", &[r#"["a b"]"#]),
                ("both", &["n", "s"]),
                ("gaps", &["m", "f"]),
                ("deep", &["p.q.r"]),
            ];
            for (name, paths) in indexes {
                records.create_index(&IndexDefinition::new(name, paths).unwrap()).unwrap();
            }
        }
        if round == 2 {
            db.checkpoint().unwrap();
        }
    }
    db
}

fn condition(random: &mut Random, kind: KeyKind) -> String {
    let known = |random: &mut Random| match key(kind, random.below(3_100)) {
        Key::Text(text) => format!("'{text}'"),
        Key::Uuid(_) => format!("'{}'", key(kind, random.below(3_100))),
        number => number.to_string(),
    };
    let compare = random.of(&["<", "<=", ">", ">=", "=", "=", "="]);
    match random.below(17) {
        0 => format!("_key = {}", known(random)),
        1 => format!(
            "_key IN ({}, {}, {}, {})",
            known(random),
            known(random),
            known(random),
            known(random)
        ),
        2 => format!("_key BETWEEN {} AND {}", known(random), known(random)),
        3 => format!("{} {compare} _key AND _key < {}", known(random), known(random)),
        4 if kind == KeyKind::Text => {
            format!(
                "_key LIKE '{}'",
                random.of(&["a/1%", "b/29_", "a%", "%", "\u{e9}/1\\%%", "b/3"])
            )
        }
        4 => format!("_key = {} OR _key = {}", known(random), known(random)),
        5 => format!("n {compare} {}", random.of(&["1", "-5", "9223372036854775807", "39", "100"])),
        6 => format!("f {compare} {}", random.of(&["0.1", "0", "1e300", "200.5", "7", "0.3"])),
        7 => format!("s {compare} '{}'", random.of(&["a 7", "abc 50", "\u{e9} 3", " 1", "b"])),
        8 => format!("s LIKE '{}'", random.of(&["a 7%", "b\\%%", "ab_ 1%", "%7", "long text 80%"])),
        9 => format!("o.x {compare} {}", 1 + random.below(2)),
        10 => format!("\"a b\" IN (7, 70, {}, 700, {})", random.below(900), random.below(900)),
        11 => format!("\"a b\" BETWEEN {} AND {}", random.below(900), random.below(900)),
        12 => format!("({} AND {})", condition(random, kind), condition(random, kind)),
        13 => format!("({} OR {})", condition(random, kind), condition(random, kind)),
        14 => format!("n = 1 AND s = 'a {}'", random.below(900)),
        15 => format!("p.q.r {compare} {}", random.below(50)),
        _ => format!("\"a b\" = {}", random.below(900)),
    }
}

/// The lines of an answer in any order.
pub(crate) fn answer(session: &Session, sql: &str) -> Vec<String> {
    let mut lines = lines(session, sql);
    lines.sort_unstable();
    lines
}

fn lines(session: &Session, sql: &str) -> Vec<String> {
    let batches = session.query(sql).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let text = pretty_format_batches(&batches.unwrap_or_else(|error| panic!("{sql}: {error}")));
    text.unwrap().to_string().lines().map(str::to_owned).collect()
}

#[test]
fn what_is_sought_is_what_a_filter_finds_among_all() {
    for kind in [KeyKind::Text, KeyKind::I64, KeyKind::U64, KeyKind::Uuid] {
        let db = database(kind);
        let head = db.collection("t").unwrap().head().unwrap().revision().0;
        let session = Session::new(db, SessionOptions::default());
        let mut random = Random(5);
        let mut ways = BTreeSet::new();
        for index in 0..QUERIES {
            let which = condition(&mut random, kind);
            let from = match index % 4 {
                0 => "t".to_owned(),
                1 => "t FOR SYSTEM_TIME ALL AS t".to_owned(),
                _ => format!("t FOR SYSTEM_TIME AS OF {} AS t", 1 + random.below(head)),
            };
            let sql = format!("SELECT * FROM {from} WHERE {which}");
            // What is random is looked at row by row.
            let all = format!("SELECT * FROM {from} WHERE coalesce({which}, random() > 2)");
            assert_eq!(answer(&session, &sql), answer(&session, &all), "{kind:?}: {sql}");
            let plan = answer(&session, &format!("EXPLAIN {sql}")).join("\n");
            let by = plan.split_once("sought by ").and_then(|(_, by)| by.split(',').next());
            ways.extend(by.map(str::to_owned));
        }
        // UUIDs are shown as texts, which may have another order.
        let expected: &[&str] = match kind {
            KeyKind::Uuid => &["index", "key"],
            _ => &["index", "key", "range of keys"],
        };
        assert_eq!(ways, expected.iter().copied().map(str::to_owned).collect(), "{kind:?}");
    }
}

#[test]
fn first_and_last_keys_are_those_of_all_in_order() {
    for kind in [KeyKind::Text, KeyKind::I64, KeyKind::U64, KeyKind::Uuid] {
        let db = database(kind);
        let head = db.collection("t").unwrap().head().unwrap().revision().0;
        let session = Session::new(db, SessionOptions::default());
        let mut random = Random(9);
        let mut sought = 0;
        for _ in 0..QUERIES / 2 {
            let from = format!("t FOR SYSTEM_TIME AS OF {} AS t", 1 + random.below(head));
            let which = match random.below(3) {
                0 => "true".to_owned(),
                1 => condition(&mut random, kind),
                _ => {
                    let [low, high] = [0; 2].map(|_| match key(kind, random.below(3_100)) {
                        Key::I64(number) => number.to_string(),
                        Key::U64(number) => number.to_string(),
                        text => format!("'{text}'"),
                    });
                    let one = random.of(&[">", ">=", "<"]);
                    format!("_key {one} {low} AND _key <= {high} AND _key >= {low}")
                }
            };
            let order = random.of(&["", " DESC", " DESC NULLS LAST", ", n DESC"]);
            let sql = |which: &str| {
                format!("SELECT n, _key AS k FROM {from} WHERE {which} ORDER BY k{order}")
            };
            let rest = format!(" LIMIT {} OFFSET {}", 1 + random.below(60), random.below(9));
            let all = sql(&format!("coalesce({which}, random() > 2)")) + &rest;
            let sql = sql(&which) + &rest;
            assert_eq!(lines(&session, &sql), lines(&session, &all), "{kind:?}: {sql}");
            let plan = answer(&session, &format!("EXPLAIN {sql}")).join("\n");
            sought += usize::from(plan.contains("sought by first keys"));
        }
        assert!(sought > QUERIES / 16, "{kind:?}: {sought}");
    }
}

#[test]
fn first_and_last_values_of_an_index_are_those_of_all_in_order() {
    let db = database(KeyKind::I64);
    let head = db.collection("t").unwrap().head().unwrap().revision().0;
    let session = Session::new(db, SessionOptions::default());
    let mut random = Random(17);
    let mut sought = 0;
    for _ in 0..QUERIES {
        let from = format!("t FOR SYSTEM_TIME AS OF {} AS t", 1 + random.below(head));
        let which = match random.below(6) {
            0 => condition(&mut random, KeyKind::I64),
            1 => format!("n = {}", random.of(&["1", "40", "9223372036854775807"])),
            2 => format!("s LIKE '{}'", random.of(&["a%", "long text 8%", "a_%", "none%"])),
            3 => format!("\"a b\" BETWEEN {} AND 700", random.below(900)),
            _ => "true".to_owned(),
        };
        // Ties may be in any order, so that nothing else is asked for.
        let order = random.of(&["n", "f", "s", "\"a b\"", "n, s", "s, n"]);
        let way = random.of(&["", " ASC", " DESC"]);
        let nulls = random.of(&["", " NULLS FIRST", " NULLS LAST"]);
        let by = order.replace(", ", &format!("{way}{nulls}, ")) + way + nulls;
        let rest = format!(" LIMIT {} OFFSET {}", 1 + random.below(60), random.below(9));
        let sql =
            |which: &str| format!("SELECT {order} FROM {from} WHERE {which} ORDER BY {by}{rest}");
        let all = sql(&format!("coalesce({which}, random() > 2)"));
        let sql = sql(&which);
        assert_eq!(lines(&session, &sql), lines(&session, &all), "{sql}");
        let plan = answer(&session, &format!("EXPLAIN {sql}")).join("\n");
        sought += usize::from(plan.contains("sought by order of an index"));
    }
    assert!(sought > QUERIES / 4, "{sought}");
}

/// What else decides among records that are alike in an index once had all records read.
#[test]
fn first_values_of_an_index_are_those_of_all_where_something_else_decides_among_ties() {
    for kind in [KeyKind::I64, KeyKind::Text] {
        let db = database(kind);
        let head = db.collection("t").unwrap().head().unwrap().revision().0;
        let session = Session::new(db, SessionOptions::default());
        let mut random = Random(23);
        let mut sought = 0;
        for _ in 0..QUERIES {
            let from = format!("t FOR SYSTEM_TIME AS OF {} AS t", 1 + random.below(head));
            let which = match random.below(8) {
                0 => condition(&mut random, kind),
                1 => "m = 2".to_owned(),
                2 => "n = 1".to_owned(),
                3 => format!("\"a b\" BETWEEN {} AND 700", random.below(900)),
                _ => "true".to_owned(),
            };
            let of = random
                .of(&["n", "f", "s", "\"a b\"", "m", "p.q.r", "o.x", "n,s", "m,f", "m,s", "f,m"]);
            let ways = of.split(',').chain(["_key"]).map(|by| {
                let way = random.of(&["", " ASC", " DESC", " DESC"]);
                let nulls = random.of(&["", "", " NULLS FIRST", " NULLS LAST"]);
                format!("{by}{way}{nulls}")
            });
            let by = ways.collect::<Vec<_>>().join(", ");
            let rest = format!(" LIMIT {} OFFSET {}", 1 + random.below(30), random.below(9));
            let sql = |which: &str| {
                format!("SELECT _key, m, n, f, s FROM {from} WHERE {which} ORDER BY {by}{rest}")
            };
            let all = sql(&format!("coalesce({which}, random() > 2)"));
            let sql = sql(&which);
            assert_eq!(lines(&session, &sql), lines(&session, &all), "{sql}");
            let plan = answer(&session, &format!("EXPLAIN {sql}")).join("\n");
            sought += usize::from(plan.contains("sought by order of an index"));
        }
        assert!(sought > QUERIES / 8, "{kind:?}: {sought}");
    }
}

/// How many rows the scan of a query reads.
fn rows_read(session: &Session, sql: &str) -> String {
    let plan = answer(session, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
    let scan = plan.split("TableScan").nth(1).unwrap_or_else(|| panic!("{plan}"));
    let rows = scan.split("output_rows=").nth(1).and_then(|rows| rows.split([',', ']']).next());
    rows.unwrap_or_else(|| panic!("{plan}")).to_owned()
}

#[test]
fn first_values_of_an_index_are_read_to_the_end_of_their_ties() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("t", KeyKind::I64).unwrap();
    let mut transaction = db.transaction();
    for key in 0..20_000_i64 {
        let json = format!(
            r#"{{"n":{},"f":{}.5,"many":{},"o":{{"n":{}}}}}"#,
            key / 10,
            key / 4,
            key / 5_000,
            key / 7
        );
        transaction.put_record("t", &Key::I64(19_999 - key), json.as_bytes()).unwrap();
    }
    transaction.commit(&CommitOptions::default()).unwrap();
    for (name, paths) in
        [("n", &["n", "f"][..]), ("f", &["f"]), ("many", &["many"]), ("o", &["o.n"])]
    {
        records.create_index(&IndexDefinition::new(name, paths).unwrap()).unwrap();
    }
    let session = Session::new(db, SessionOptions::default());
    for (order, read) in [
        ("n", "15"),
        ("n, _key", "20"),
        ("n DESC, _key", "20"),
        ("n NULLS FIRST, f NULLS FIRST, _key", "16"),
        ("n, f, _key", "20"),
        ("o.n, _key", "21"),
        ("o.n DESC, n, f", "15"),
        ("f, _key", "16"),
        // So many are alike that all are read.
        ("many, _key", "20.00 K"),
        ("n + 1, _key", "20.00 K"),
    ] {
        let sql = format!("SELECT _key FROM t ORDER BY {order} LIMIT 15");
        assert_eq!(rows_read(&session, &sql), read, "{order}");
    }
}

/// A filter of the engine has 64 levels, and more were once an error.
#[test]
fn conditions_of_more_levels_than_filters_have_are_answered() {
    let session = Session::new(database(KeyKind::I64), SessionOptions::default());
    let nested = |of: &str| {
        (0..20).fold(of.to_owned(), |which, level| {
            format!("(({which}) AND \"a b\" < 1{level:03}) OR s = 'ab {level}'")
        })
    };
    // As many brackets are too many for one text, and not for what it is made of.
    let from = format!("(SELECT *, {} AS deep FROM t) AS t", nested("n = 40"));
    let which = nested("deep");
    let found = answer(&session, &format!("SELECT * FROM {from} WHERE {which}"));
    let all = format!("SELECT * FROM {from} WHERE coalesce({which}, random() > 2)");
    assert_eq!(found, answer(&session, &all));
    assert!(found.len() > 50, "{}", found.len());
}
