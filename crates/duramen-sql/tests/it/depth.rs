//! Queries that are long or deep, which once overflowed the stack.

use duramen::{CommitOptions, Database, ErrorKind, KeyKind};
use duramen_sql::{Session, SessionOptions};

fn session() -> Session {
    let db = Database::memory().unwrap();
    let t = db.create_collection("t", KeyKind::U64).unwrap();
    for n in 0..4_u64 {
        t.put(n, format!(r#"{{"n":{n}}}"#), &CommitOptions::default()).unwrap();
    }
    Session::new(db, SessionOptions::default())
}

/// How many rows a query finds.
fn rows(session: &Session, sql: &str) -> duramen::Result<usize> {
    session.query(sql)?.map(|batch| Ok(batch?.num_rows())).sum()
}

fn chain(of: &str, between: &str, len: usize) -> String {
    vec![of; len].join(between)
}

fn each(len: usize, of: impl Fn(usize) -> String, between: &str) -> String {
    (0..len).map(of).collect::<Vec<_>>().join(between)
}

#[test]
fn long_queries_are_answered() {
    let session = session();
    let ors = each(2_000, |n| format!("n = {n}"), " OR ");
    let list = each(20_000, |n| n.to_string(), ", ");
    let cases = each(1_000, |n| format!("WHEN n = {n} THEN {n}"), " ");
    let asked = [
        (format!("SELECT * FROM t WHERE {ors}"), 4),
        (format!("SELECT {} FROM t", chain("n", " + ", 2_000)), 4),
        (format!("SELECT n FROM t WHERE {}", chain("n < 3", " AND ", 3_000)), 3),
        (format!("SELECT n FROM t WHERE n IN ({list})"), 4),
        (format!("SELECT n FROM t WHERE n NOT IN ({list})"), 0),
        (format!("SELECT CASE {cases} END FROM t"), 4),
        (chain("SELECT n FROM t", " UNION ALL ", 200), 800),
        (format!("UPDATE t SET m = 1 WHERE {ors}"), 1),
        (
            format!(
                "INSERT INTO t (_key) VALUES {}",
                each(3_000, |n| format!("({})", n + 9), ", ")
            ),
            1,
        ),
        (format!("DELETE FROM t WHERE {ors}"), 1),
    ];
    for (sql, found) in asked {
        let start: String = sql.chars().take(40).collect();
        assert_eq!(rows(&session, &sql).unwrap(), found, "{start}");
    }
}

#[test]
fn queries_that_are_too_deep_are_refused() {
    let session = session();
    let nested =
        |open: &str, close: &str| format!("{}n{}", open.repeat(9_000), close.repeat(9_000));
    let ctes = each(3_000, |n| format!("c{} AS (SELECT * FROM c{n})", n + 1), ", ");
    let asked = [
        format!("SELECT * FROM t WHERE {}", chain("n = 1", " OR ", 100_000)),
        format!("SELECT {} FROM t", chain("n", " + ", 100_000)),
        format!("SELECT {} FROM t", nested("(", ")")),
        format!("SELECT {} FROM t", nested("abs(", ")")),
        format!("SELECT {} FROM t", nested("- ", "")),
        format!("SELECT {} FROM t", nested("NOT ", "")),
        format!("SELECT {} FROM t", nested("CASE WHEN ", " THEN 1 END")),
        format!("SELECT {} FROM t", nested("(SELECT ", ")")),
        format!("SELECT n{} FROM t", "::BIGINT".repeat(9_000)),
        format!("SELECT n{} FROM t", "[1]".repeat(9_000)),
        format!("SELECT n{} FROM t", ".n".repeat(9_000)),
        chain("SELECT n, n FROM t", " UNION ALL ", 9_000),
        format!("SELECT 1 FROM {}", each(9_000, |n| format!("t t{n}"), ", ")),
        format!("WITH c0 AS (SELECT n FROM t), {ctes} SELECT * FROM c3000"),
        format!("DELETE FROM t WHERE {}", chain("n = 1", " OR ", 100_000)),
        format!("COPY (SELECT {}) TO 'f.csv'", chain("1", " + ", 100_000)),
    ];
    for sql in asked {
        let error = rows(&session, &sql).unwrap_err();
        let start: String = sql.chars().take(40).collect();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{start}: {error}");
    }
    let error = duramen_sql::writes(&format!("SELECT {}", chain("1", "+", 100_000)), &[]);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("more than 8192 operators and keywords"), "{error}");
    assert!(error.contains("(line 1, column 16391)"), "{error}");
}

#[test]
fn views_inside_each_other_are_as_deep_as_one_query_may_be() {
    let session = session();
    let filter = chain("n < 3", " AND ", 1_900);
    session.query(&format!("CREATE VIEW v0 AS SELECT n FROM t WHERE {filter}")).unwrap();
    session.query(&format!("CREATE VIEW v1 AS SELECT n FROM v0 WHERE {filter}")).unwrap();
    let error = rows(&session, &format!("CREATE VIEW v2 AS SELECT n FROM v1 WHERE {filter}"));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Invalid);
    session.query("CREATE VIEW w0 AS SELECT n FROM t").unwrap();
    let made = (1..99).map_while(|n| {
        session.query(&format!("CREATE VIEW w{n} AS SELECT n FROM w{}", n - 1)).ok()
    });
    assert_eq!(made.count(), 31);
    assert_eq!(rows(&session, "SELECT * FROM w30").unwrap(), 4);
}
