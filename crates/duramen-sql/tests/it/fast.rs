//! Aggregates that are answered from encoded columns, and plans that are kept.

use datafusion::arrow::util::pretty::pretty_format_batches;
use duramen::{CommitOptions, Database, KeyKind};
use duramen_sql::{Session, SessionOptions};

const ROWS: i64 = 9_000;

fn session() -> (Database, Session) {
    let db = Database::memory().unwrap();
    db.create_collection("t", KeyKind::I64).unwrap();
    let mut transaction = db.transaction();
    for key in 0..ROWS {
        let json = format!("{{\"n\":{key},\"s\":\"{}\",\"r\":{}.5}}", key % 5, key % 100);
        transaction.put_record("t", &key.into(), json.as_bytes()).unwrap();
    }
    transaction.commit(&CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    (db.clone(), Session::new(db, SessionOptions::default()))
}

fn answer(session: &Session, sql: &str) -> String {
    let batches = session.query(sql).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    pretty_format_batches(&batches).unwrap().to_string()
}

#[test]
fn a_query_that_is_asked_again_keeps_its_plan_and_not_its_answer() {
    let (db, session) = session();
    let query = |n: i64, s: &str| {
        format!("SELECT count(*) AS c, max(n) AS m FROM t WHERE n < {n} AND s <> '{s}' AND r > 3")
    };
    let expected = |n: i64, s: i64, among: &dyn Fn(i64) -> bool| {
        let rows =
            (0..ROWS).filter(|key| among(*key) && *key < n && key % 5 != s && key % 100 >= 3);
        (rows.clone().count(), rows.max().unwrap())
    };
    let check = |n: i64, s: i64, among: &dyn Fn(i64) -> bool| {
        let (count, max) = expected(n, s, among);
        let found = answer(&session, &query(n, &s.to_string()));
        let row: String = found.lines().nth(3).unwrap().split_whitespace().collect();
        assert_eq!(row, format!("|{count}|{max}|"), "{n} {s}");
    };
    check(1_000, 1, &|_| true);
    assert_eq!(session.plans_kept(), 0);
    check(50, 2, &|_| true);
    assert_eq!(session.plans_kept(), 1);
    check(5_000, 3, &|_| true);
    db.collection("t").unwrap().delete(999, &CommitOptions::default()).unwrap();
    check(1_000, 4, &|key| key != 999);
    // A field that the query does not name changes nothing; where one that it names has values of
    // another kind, the plan is made again.
    let of = r#"{"n":1,"late":1}"#;
    db.collection("t").unwrap().put(1, of, &CommitOptions::default()).unwrap();
    check(1_000, 0, &|key| key != 999 && key != 1);
    check(1_001, 0, &|key| key != 999 && key != 1);
    assert_eq!(session.plans_kept(), 1);
    let of = r#"{"n":2.5,"s":"1","r":50}"#;
    db.collection("t").unwrap().put(2, of, &CommitOptions::default()).unwrap();
    let found = answer(&session, &query(3, "0"));
    assert!(found.contains("| 2.5 |"), "{found}");
}

/// Columns that a query does not name are not looked through for it, but for those after it.
#[test]
fn columns_are_found_whatever_queries_before_have_named() {
    let (_db, session) = session();
    assert!(answer(&session, "SELECT count(*) AS c FROM t").contains("9000"));
    let found = answer(&session, "SELECT max(n) - 1 AS m FROM t WHERE s = '4'");
    assert!(found.contains("8998"), "{found}");
    let found = answer(&session, "SELECT * FROM t WHERE n = 7");
    assert!(found.contains("| _key | _version | _revision | _timestamp "), "{found}");
    assert!(found.contains("| n | s | r   |"), "{found}");
    for sql in [
        "SELECT n * 2 AS d, t.* FROM t WHERE n = 7",
        "SELECT * FROM t NATURAL JOIN (SELECT n, s FROM t WHERE n = 7) AS u",
        "SELECT r FROM (SELECT * FROM t) WHERE n = 7",
        "SELECT count(r) AS r FROM t WHERE n = 7 HAVING count(*) = 1",
    ] {
        let (_db, fresh) = self::session();
        assert!(answer(&fresh, sql).contains("| r "), "{sql}");
    }
    let (_db, fresh) = self::session();
    let columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 't'";
    assert!(answer(&fresh, columns).contains("| r "));
    let error = fresh.query("SELECT sum(rr) FROM t").err().unwrap().to_string();
    assert!(error.ends_with(", r") || error.ends_with("\"r\"?"), "{error}");
}

/// An array as of a revision was planned each time, which took longer than its answer.
#[test]
fn plans_of_what_was_at_a_revision_are_kept() {
    let (db, session) = session();
    let document = db.create_document("d").unwrap();
    for n in [5, 7] {
        let json = format!("{{\"a\":[{{\"n\":{n}}},{{\"n\":3}}]}}");
        document.put(json, &CommitOptions::default()).unwrap();
    }
    let mut kept = 0;
    for table in ["d.\"$.a[*]\"", "t"] {
        let query = |n: i64| {
            format!("SELECT max(n) AS m FROM {table} FOR SYSTEM_TIME AS OF 1 WHERE n < {n}")
        };
        for n in [100, 6, 4] {
            let found = answer(&session, &query(n));
            let most = if table == "t" || n == 4 { n.min(ROWS) - 1 } else { 5 };
            assert!(found.contains(&format!("| {most} ")), "{table} {n}: {found}");
        }
        kept += 1;
        assert_eq!(session.plans_kept(), kept, "{table}");
    }
}

#[test]
fn plans_that_hold_for_some_literals_only_are_not_kept() {
    let (_, session) = session();
    for sql in [
        // One of both suffices, but which depends on them.
        "SELECT count(*) FROM t WHERE n > 5 AND n > 7",
        "SELECT count(*) FROM t WHERE n = 5 AND n = 7",
        "SELECT n, count(*) FROM t GROUP BY n LIMIT 2",
        "SELECT count(*), 7 FROM t",
        "SELECT count(*) FROM t WHERE n + 1 > 5",
    ] {
        let first = answer(&session, sql);
        assert_eq!(answer(&session, sql).lines().count(), first.lines().count(), "{sql}");
        assert_eq!(session.plans_kept(), 0, "{sql}");
    }
    let both = answer(&session, "SELECT count(*) FROM t WHERE n > 8990 AND n > 7");
    assert!(both.contains("| 9  "), "{both}");
}

/// Kept plans once answered for another literal than the one that is asked for.
#[test]
fn literals_that_are_computed_with_are_those_that_are_asked_for() {
    let (db, session) = session();
    for sql in [
        "SELECT count(*) AS c FROM t WHERE s LIKE '%'",
        "SELECT count(*) AS c FROM t WHERE s NOT LIKE '1%'",
        "SELECT count(*) AS c FROM t WHERE s = trim(' 2 ')",
        "SELECT count(*) AS c FROM t WHERE s = lower('2') OR s = '3'",
        "SELECT count(*) AS c FROM t WHERE s = E'\\x32'",
        "SELECT count(*) AS c FROM t WHERE r > 2 + 0.7",
        "SELECT count(*) AS c FROM t WHERE r BETWEEN 1 + 0.7 AND 3",
        "SELECT count(*) AS c FROM t WHERE n < 7 * 3 AND s = '1'",
        "SELECT count(*) AS c FROM t WHERE n IN (1, 2 + 3, 7)",
    ] {
        let alone = Session::new(db.clone(), SessionOptions::default());
        let expected = answer(&alone, sql);
        for _ in 0..3 {
            assert_eq!(answer(&session, sql), expected, "{sql}");
        }
    }
}

#[test]
fn declared_columns_are_aggregated_as_others() {
    let (_, session) = session();
    session.query("CREATE TABLE d (_key BIGINT, n BIGINT, s TEXT, r DOUBLE, late DATE)").unwrap();
    session.query("INSERT INTO d SELECT _key, n, s, r FROM t").unwrap();
    let query = "SELECT s, count(*) AS c, sum(n) AS m FROM d WHERE r > 3 GROUP BY s ORDER BY s";
    let plan = answer(&session, &format!("EXPLAIN {query}"));
    assert!(plan.contains("FastAggregate"), "{plan}");
    assert_eq!(answer(&session, query), answer(&session, &query.replace(" d ", " t ")));
}

/// One that takes the place of a function of `DataFusion` has to be known.
#[test]
fn each_aggregate_is_made_of_encoded_columns() {
    let (_, session) = session();
    for of in ["count(*)", "count(DISTINCT s)", "sum(n)", "avg(n)", "avg(r)", "min(r)", "max(n)"] {
        for sql in [format!("SELECT s, {of} FROM t GROUP BY s"), format!("SELECT {of} FROM t")] {
            let plan = answer(&session, &format!("EXPLAIN {sql}"));
            assert!(plan.contains("FastAggregate"), "{sql}: {plan}");
        }
    }
}

#[test]
fn plans_name_the_operator_and_say_what_it_looked_at() {
    let (_, session) = session();
    let plan = answer(&session, "EXPLAIN SELECT s, count(*) FROM t WHERE n > 8000 GROUP BY s");
    assert!(plan.contains("FastAggregate: revision=1, chunks=3"), "{plan}");
    let plan = answer(&session, "EXPLAIN ANALYZE SELECT sum(n) FROM t WHERE n > 8500");
    for counted in ["chunks=3", "pruned=2", "rows=9"] {
        assert!(plan.contains(counted), "{counted}: {plan}");
    }
    let plan = answer(&session, "EXPLAIN SELECT s, count(*) FROM t GROUP BY s HAVING s > '3'");
    assert!(plan.contains("FastAggregate"), "{plan}");
    // The other operators have what is read by row.
    let scanned = |columns: &str| {
        let plan = answer(&session, &format!("EXPLAIN ANALYZE SELECT {columns} FROM t"));
        let line = plan.lines().find(|line| line.contains("TableScan")).unwrap_or_default();
        assert!(line.contains("output_rows=9"), "{plan}");
        let bytes = line.split("bytes_read=").nth(1).unwrap_or_default();
        bytes.split([',', ']']).next().unwrap_or_default().to_owned()
    };
    let (some, more, none) = (scanned("n"), scanned("n, s"), scanned("_key"));
    assert!(some != more && some != none && !some.is_empty(), "{some}, {more}, {none}");
    let plan = answer(&session, "EXPLAIN ANALYZE SELECT repeat(s, 2) FROM t");
    let line = plan.lines().find(|line| line.contains("ProjectionExec")).unwrap_or_default();
    assert!(line.contains("output_rows=9"), "{plan}");
}

/// Changes were once not counted.
#[test]
fn bytes_read_are_those_of_changes_and_versions_too() {
    let db = Database::memory().unwrap();
    db.create_collection("t", KeyKind::I64).unwrap();
    let put = |of: i64| {
        let mut transaction = db.transaction();
        for key in 0..ROWS {
            let json = format!("{{\"n\":{},\"same\":{key}}}", key * 7 % 1_009 + of);
            transaction.put_record("t", &key.into(), json.as_bytes()).unwrap();
        }
        transaction.commit(&CommitOptions::default()).unwrap();
        db.checkpoint().unwrap();
    };
    put(0);
    let session = Session::new(db.clone(), SessionOptions::default());
    let read = |sql: &str| {
        let plan = answer(&session, &format!("EXPLAIN ANALYZE {sql}"));
        let bytes = plan.split("bytes_read=").nth(1).unwrap();
        let bytes: String = bytes.chars().take_while(|&c| c != ',' && c != ']').collect();
        let (number, unit) = bytes.split_once(' ').unwrap_or((&bytes, ""));
        let unit = [("K", 1e3), ("M", 1e6)].into_iter().find(|(name, _)| *name == unit);
        number.parse::<f64>().unwrap() * unit.map_or(1.0, |unit| unit.1)
    };
    let rows = |column: &str| read(&format!("SELECT {column} FROM t"));
    let sum = |column: &str| read(&format!("SELECT sum({column}) FROM t WHERE {column} > 3"));
    let before = [rows("n"), rows("same"), rows("_version"), sum("n"), sum("same")];
    assert!(before.iter().all(|bytes| *bytes > 0.0) && rows("_key") > 0.0, "{before:?}");
    (1..=3).for_each(put);
    let after = [rows("n"), rows("same"), rows("_version"), sum("n"), sum("same")];
    for (column, is_changed) in [true, false, true, true, false].into_iter().enumerate() {
        let (before, after) = (before[column], after[column]);
        if is_changed {
            assert!(after > 1.5 * before, "{column}: {before} and then {after}");
        } else {
            assert!((after - before).abs() < 1_000.0, "{column}: {before} and then {after}");
        }
    }
    let versions = read("SELECT n FROM t FOR SYSTEM_TIME ALL");
    assert!(versions > after[0], "{versions} of all versions, {} of the last", after[0]);
}

#[test]
fn what_is_beyond_the_engine_is_answered_by_rows() {
    let (db, session) = session();
    let groups = answer(&session, "SELECT count(*) FROM (SELECT n, count(*) FROM t GROUP BY n)");
    assert!(groups.contains("9000"), "{groups}");
    let mut transaction = db.transaction();
    for key in ROWS..80_000 {
        let json = format!("{{\"n\":{key}}}");
        transaction.put_record("t", &key.into(), json.as_bytes()).unwrap();
    }
    transaction.commit(&CommitOptions::default()).unwrap();
    for _ in 0..3 {
        let distinct = answer(&session, "SELECT count(DISTINCT n) FROM t");
        assert!(distinct.contains("80000"), "{distinct}");
    }
    let record = format!("{{\"n\":{}}}", i64::MAX);
    let table = db.collection("t").unwrap();
    for key in [-1, -2] {
        table.put(key, record.as_str(), &CommitOptions::default()).unwrap();
    }
    for _ in 0..3 {
        let average = answer(&session, "SELECT avg(n) FROM t WHERE n > 70000");
        assert!(average.contains("1844489958450102.5"), "{average}");
        let sum = session.query("SELECT sum(n) FROM t WHERE n > 100000");
        let sum = sum.and_then(Iterator::collect::<duramen::Result<Vec<_>>>);
        let error = sum.unwrap_err().to_string();
        assert!(error.contains("sum(t.n) is beyond BIGINT"), "{error}");
    }
}

/// Both zeros are one number, as they are where rows are read.
#[test]
fn zeros_are_alike_whatever_their_sign() {
    for (values, is_plain) in
        [(["-0.0", "0", "1.5", "-1.5"], true), (["-0.0", "0", "1e300", "-7"], false)]
    {
        let db = Database::memory().unwrap();
        let table = db.create_collection("t", KeyKind::I64).unwrap();
        for (key, value) in (0_i64..).zip(values) {
            table.put(key, format!("{{\"f\":{value}}}"), &CommitOptions::default()).unwrap();
        }
        if is_plain {
            db.checkpoint().unwrap();
        }
        let session = Session::new(db, SessionOptions::default());
        for zero in ["0.0", "-0.0"] {
            for (comparison, count) in
                [("=", 2), ("<>", 2), ("<", 1), ("<=", 3), (">", 1), (">=", 3)]
            {
                let condition = format!("f {comparison} {zero}");
                let fast = format!("SELECT count(*) AS c FROM t WHERE {condition}");
                let rows = format!(
                    "SELECT count(*) AS c FROM (SELECT f FROM t WHERE {condition} LIMIT 9)"
                );
                for sql in [fast, rows] {
                    let found = answer(&session, &sql);
                    assert!(found.contains(&format!("| {count} |")), "{values:?}, {sql}: {found}");
                }
            }
        }
    }
}
