//! Values that are given to a query apart from its text.

use duramen::{CommitOptions, Database, Error, ErrorKind, KeyKind};
use duramen_sql::{Format, Parameter, Session, SessionOptions};

fn session() -> Session {
    let db = Database::memory().unwrap();
    let players = db.create_collection("players", KeyKind::Text).unwrap();
    for (key, json) in [
        ("ann", r#"{"score":3,"name":"O'Hara"}"#),
        ("ben", r#"{"score":-9223372036854775808,"name":"$1"}"#),
        ("cia", r#"{"score":-7,"ratio":-0.5,"name":"' OR TRUE --"}"#),
    ] {
        players.put(key, json, &CommitOptions::default()).unwrap();
    }
    Session::new(db, SessionOptions::default())
}

fn ask(session: &Session, sql: &str, values: &[Parameter]) -> Result<String, Error> {
    let mut out = Vec::new();
    session.query_with(sql, values)?.write(Format::Csv, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn values_stand_where_literals_could() {
    let session = session();
    let keys = |filter: &str, values: &[Parameter]| {
        let sql = format!("SELECT _key FROM players WHERE {filter} ORDER BY _key");
        let found = ask(&session, &sql, values).unwrap();
        found.lines().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys("name = $1", &["O'Hara".into()]), "ann");
    assert_eq!(keys("name = ?", &["' OR TRUE --".into()]), "cia");
    assert_eq!(keys("name = '$1' AND score < $1", &[0.into()]), "ben");
    assert_eq!(keys("score = $1", &[i64::MIN.into()]), "ben");
    assert_eq!(keys("score IN ($2, $1)", &[3.into(), Parameter::Int(-7)]), "ann cia");
    assert_eq!(keys("score > ? AND score < ?", &[Parameter::Int(-8), 3.into()]), "cia");
    assert_eq!(keys("ratio < $1", &[Parameter::from(-0.25)]), "cia");
    assert_eq!(
        keys("$1 - 1 = 18446744073709551614", &[Parameter::Unsigned(u64::MAX)]),
        "ann ben cia"
    );
    assert_eq!(keys("score < $1", &[f64::INFINITY.into()]), "ann ben cia");
    assert_eq!(keys("score < $1", &[None::<i64>.into()]), "");
    assert_eq!(keys("TRUE = $1", &[true.into()]), "ann ben cia");
    // Two of a kind beside each other are no comment.
    assert_eq!(keys("1 -$1 = 8", &[Parameter::Int(-7)]), "ann ben cia");
    let past = "SELECT count(*) AS n FROM players FOR SYSTEM_TIME AS OF $1";
    assert_eq!(ask(&session, past, &[2.into()]).unwrap(), "n\n2\n");
    let changed = "UPDATE players SET name = $1 WHERE _key = $2 RETURNING name";
    let values = ["it's".into(), "ann".into()];
    assert_eq!(ask(&session, changed, &values).unwrap(), "name\nit's\n");
    let upsert = "INSERT INTO players (_key, score) VALUES ($1, $2) ON CONFLICT (_key) DO UPDATE \
                  SET score = excluded.score + players.score + $3 RETURNING score";
    let values = ["ann".into(), 4.into(), 5.into()];
    assert_eq!(ask(&session, upsert, &values).unwrap(), "score\n12\n");
}

/// What has more digits than a float once lost them.
#[test]
fn numbers_are_saved_with_all_their_digits() {
    let session = session();
    let number = |text: &str| Parameter::Number(text.to_owned());
    let values = [number("-12345678901234567.89"), number("0.5"), number("1'); --")];
    let insert = "INSERT INTO players (_key, a, b, c) VALUES ('dan', $1, $2, $3)";
    ask(&session, insert, &values).unwrap();
    let update = "UPDATE players SET ratio = $1 WHERE _key = 'dan'";
    ask(&session, update, &[number("1.00000000000000000001")]).unwrap();
    let told = "SELECT value FROM history('players', '/dan') LIMIT 1";
    let expected = r#"{"a":-12345678901234567.89,"b":0.5,"c":"1'); --","#;
    let expected = format!("{expected}\"ratio\":1.00000000000000000001}}");
    assert_eq!(
        ask(&session, told, &[]).unwrap().replace("\"\"", "\""),
        format!("value\n\"{expected}\"\n")
    );
    let sql = "SELECT $1 < 0 AND $2 = 0.5 AS found";
    assert_eq!(ask(&session, sql, &values[..2]).unwrap(), "found\ntrue\n");
}

#[test]
fn a_plan_is_kept_for_all_values() {
    let session = session();
    let sql = "SELECT count(*) AS n FROM players WHERE score >= $2 AND name <> $1";
    let literal = "SELECT count(*) AS n FROM players WHERE score >= -7 AND name <> 'x'";
    for (text, score, rows) in [("x", -7, 2), ("O'Hara", -7, 1), ("x", i64::MIN, 3), ("x", 4, 0)] {
        let values = [Parameter::from(text), Parameter::from(score)];
        for _ in 0..3 {
            assert_eq!(ask(&session, sql, &values).unwrap(), format!("n\n{rows}\n"), "{score}");
        }
    }
    assert!(session.plans_kept() > 0);
    assert_eq!(ask(&session, literal, &[]).unwrap(), "n\n2\n");
}

#[test]
fn what_does_not_fit_is_refused() {
    let session = session();
    for (sql, values, why) in [
        ("SELECT $1, $2", 1, "$2 (line 1, column 12) has no value: 1 is given with the query"),
        ("SELECT ?", 0, "? (line 1, column 8) has no value: none is given with the query"),
        ("SELECT $1", 2, "the query takes 1 values, and 2 are given with it"),
        ("SELECT count(*) FROM players", 1, "the query takes 0 values, and 1 is given with it"),
        ("SELECT $1, ?", 2, "? (line 1, column 12) stands beside another kind"),
        ("SELECT $0", 1, "$0 (line 1, column 8) is no placeholder"),
        ("SELECT $name", 1, "$name (line 1, column 8) is no placeholder"),
        ("SELECT $1 FROM nowhere", 1, "nowhere"),
        ("SELECT $1 FROM players WHERE scor = 1", 1, "(line 1, column 30)"),
        ("CREATE VIEW v AS SELECT $1 AS one", 1, "a view takes no values"),
    ] {
        for _ in 0..3 {
            let error = ask(&session, sql, &vec![7.into(); values]).unwrap_err();
            assert_ne!(error.kind(), ErrorKind::Internal, "{sql}: {error}");
            assert!(error.to_string().contains(why), "{sql}: {error}");
        }
    }
}
