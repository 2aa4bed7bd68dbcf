//! Columns of mixed values, which are JSON text, in what they are computed to.

use duramen::{CommitOptions, Database, KeyKind};
use duramen_sql::{Format, Session, SessionOptions};

/// `m` was text up to revision 2, and is mixed since.
fn session() -> Session {
    let db = Database::memory().unwrap();
    let t = db.create_collection("t", KeyKind::Text).unwrap();
    for (key, json) in [
        ("a", r#"{"m":"p"}"#),
        ("b", r#"{"m":"12"}"#),
        ("c", r#"{"m":3}"#),
        ("d", r#"{"m":{"k":"v"},"l":[{"q":5},"x"]}"#),
    ] {
        t.put(key, json, &CommitOptions::default()).unwrap();
    }
    Session::new(db, SessionOptions::default())
}

fn lines(session: &Session, sql: &str) -> Vec<String> {
    let mut out = Vec::new();
    session.query(sql).unwrap().write(Format::Ndjson, &mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn text_beside_json_text_is_the_json_of_it() {
    let session = session();
    for all in ["UNION ALL", "UNION"] {
        let sql = format!(
            "SELECT m FROM (SELECT _key, m FROM t FOR SYSTEM_TIME AS OF 2 {all} SELECT _key, m \
             FROM t WHERE _key < 'd') AS u ORDER BY _key, m"
        );
        let one = [r#"{"m":"p"}"#, r#"{"m":"12"}"#, r#"{"m":3}"#];
        let both = [one[0], one[0], one[1], one[1], one[2]];
        let expected: &[&str] = if all == "UNION" { &one } else { &both };
        assert_eq!(lines(&session, &sql), expected, "{all}");
    }
    let numbers = "SELECT m FROM t WHERE _key = 'a' UNION ALL SELECT 7 UNION ALL SELECT 'q'";
    let mut found = lines(&session, numbers);
    found.sort_unstable();
    assert_eq!(found, [r#"{"m":"p"}"#, r#"{"m":"q"}"#, r#"{"m":7}"#]);
}

#[test]
fn a_column_at_two_times_is_compared_by_its_values() {
    let session = session();
    let before = "t FOR SYSTEM_TIME AS OF 2 o";
    for sql in [
        format!("SELECT n._key FROM t n JOIN {before} USING (_key) WHERE n.m = o.m"),
        format!("SELECT n._key FROM t n JOIN {before} ON n._key = o._key AND n.m = o.m"),
        format!("SELECT n._key FROM t n JOIN {before} ON n.m = o.m"),
        "SELECT _key FROM (SELECT _key, m FROM t INTERSECT SELECT _key, m FROM t \
         FOR SYSTEM_TIME AS OF 2) AS same"
            .to_owned(),
    ] {
        let mut found = lines(&session, &sql);
        found.sort_unstable();
        assert_eq!(found, [r#"{"_key":"a"}"#, r#"{"_key":"b"}"#], "{sql}");
    }
    let changed = format!("SELECT n._key FROM t n JOIN {before} USING (_key) WHERE n.m <> o.m");
    assert!(lines(&session, &changed).is_empty());
    let new = "SELECT m FROM t EXCEPT SELECT m FROM t FOR SYSTEM_TIME AS OF 2";
    let mut found = lines(&session, new);
    found.sort_unstable();
    assert_eq!(found, [r#"{"m":3}"#, r#"{"m":{"k":"v"}}"#]);
}

#[test]
fn subqueries_compare_json_with_text_by_their_values() {
    let session = session();
    session.query("CREATE TABLE texts AS SELECT 'p' AS k, 1 AS n, _key FROM t").unwrap();
    for sql in [
        "SELECT _key FROM t WHERE m IN (SELECT k FROM texts)",
        "SELECT _key FROM t WHERE EXISTS (SELECT 1 FROM texts WHERE texts.k = t.m)",
        "SELECT _key FROM texts x WHERE x.k IN (SELECT m FROM t WHERE t._key = x._key)",
    ] {
        assert_eq!(lines(&session, sql), [r#"{"_key":"a"}"#], "{sql}");
    }
    let found = "SELECT (SELECT y.m FROM t y WHERE y._key = t._key) AS x FROM t ORDER BY _key";
    let expected = [r#"{"x":"p"}"#, r#"{"x":"12"}"#, r#"{"x":3}"#, r#"{"x":{"k":"v"}}"#];
    assert_eq!(lines(&session, found), expected);
}

#[test]
fn json_that_is_passed_on_is_json() {
    let session = session();
    for (sql, expected) in [
        ("SELECT m -> 'k' AS x FROM t WHERE _key = 'd'", r#"{"x":"v"}"#),
        ("SELECT json_get(m, 'k') AS x FROM t WHERE _key = 'd'", r#"{"x":"v"}"#),
        ("SELECT coalesce(NULL, m) AS x FROM t WHERE _key = 'd'", r#"{"x":{"k":"v"}}"#),
        ("SELECT CASE WHEN true THEN m END AS x FROM t WHERE _key = 'a'", r#"{"x":"p"}"#),
        ("SELECT nullif(m, 'z') AS x FROM t WHERE _key = 'b'", r#"{"x":"12"}"#),
        ("SELECT max(m) AS x FROM t WHERE _key < 'd'", r#"{"x":3}"#),
        ("SELECT l[1] AS x FROM t WHERE _key = 'd'", r#"{"x":{"q":5}}"#),
        ("SELECT i AS x FROM t, unnest(t.l) AS i LIMIT 1", r#"{"x":{"q":5}}"#),
        ("SELECT new AS x FROM changes('t', 2) LIMIT 1", r#"{"x":{"m":3}}"#),
        ("SELECT upper(m) AS x FROM t WHERE _key = 'a'", r#"{"x":"\"P\""}"#),
        ("SELECT m::TEXT AS x FROM t WHERE _key = 'c'", r#"{"x":"3"}"#),
        ("SELECT CASE WHEN false THEN NULL ELSE m END AS x FROM t LIMIT 1", r#"{"x":"p"}"#),
    ] {
        assert_eq!(lines(&session, sql), [expected], "{sql}");
    }
    session
        .query("CREATE TABLE c AS SELECT _key, m -> 'k' AS k, coalesce(m, m) AS o FROM t")
        .unwrap();
    let kept = "SELECT k, o FROM c WHERE _key = 'd'";
    assert_eq!(lines(&session, kept), [r#"{"k":"v","o":{"k":"v"}}"#]);
}

#[test]
fn what_chooses_between_json_and_text_compares_them_by_their_values() {
    let session = session();
    let made = "CREATE TABLE texts AS SELECT _key, CASE WHEN _key < 'c' THEN 'p' ELSE 'z' END AS s \
                FROM t";
    session.query(made).unwrap();
    let both = "FROM t JOIN texts USING (_key)";
    for (sql, expected) in [
        (
            format!("SELECT CASE m WHEN s THEN 1 ELSE 0 END AS x {both} ORDER BY _key LIMIT 2"),
            "1 0",
        ),
        (
            format!("SELECT CASE s WHEN m THEN 1 ELSE 0 END AS x {both} ORDER BY _key LIMIT 2"),
            "1 0",
        ),
        (format!("SELECT m BETWEEN s AND s AS x {both} ORDER BY _key LIMIT 2"), "true false"),
        (format!("SELECT nullif(m, s) AS x {both} ORDER BY _key LIMIT 2"), r#"null "12""#),
        (format!("SELECT nullif(s, m) AS x {both} ORDER BY _key LIMIT 2"), r#"null "p""#),
        (format!("SELECT upper(nullif(s, m)) AS x {both} WHERE _key = 'b'"), r#""P""#),
        (format!("SELECT coalesce(s, m) AS x {both} WHERE _key >= 'b' LIMIT 1"), r#""p""#),
        (
            "SELECT coalesce(NULLIF(m, m), s) AS x FROM t JOIN texts USING (_key) LIMIT 1".into(),
            r#""p""#,
        ),
        (
            format!("SELECT CASE WHEN _key < 'c' THEN s ELSE m END AS x {both} ORDER BY _key"),
            r#""p" "p" 3 {"k":"v"}"#,
        ),
    ] {
        let found = lines(&session, &sql);
        let values = found.iter().map(|line| match line.as_str() {
            "{}" => "null",
            line => line.strip_prefix(r#"{"x":"#).and_then(|rest| rest.strip_suffix('}')).unwrap(),
        });
        assert_eq!(values.collect::<Vec<_>>().join(" "), expected, "{sql}");
    }
}
