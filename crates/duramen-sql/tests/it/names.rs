//! Names that two things have.

use duramen::{CommitOptions, Database, ErrorKind, KeyKind};
use duramen_sql::{Format, Session, SessionOptions};

fn session() -> (Database, Session) {
    let db = Database::memory().unwrap();
    let players = db.create_collection("players", KeyKind::Text).unwrap();
    players.put("ann", r#"{"score":3}"#, &CommitOptions::default()).unwrap();
    let session = Session::new(db.clone(), SessionOptions::default());
    session.query("CREATE VIEW best AS SELECT _key FROM players WHERE score > 2").unwrap();
    (db, session)
}

fn csv(session: &Session, sql: &str) -> duramen::Result<String> {
    let mut out = Vec::new();
    session.query(sql)?.write(Format::Csv, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// A collection that was made under the name of a view once hid it without a word.
#[test]
fn name_of_a_view_and_a_collection_is_refused_until_one_goes() {
    let (db, session) = session();
    let best = db.create_collection("best", KeyKind::Text).unwrap();
    best.put("bob", "{}", &CommitOptions::default()).unwrap();
    for sql in ["SELECT * FROM best", "INSERT INTO best (_key) VALUES ('eve')"] {
        let error = session.query(sql).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.to_string().contains("\"best\" (line 1, column"), "{error}");
        assert!(error.to_string().contains("is both a collection and a view"), "{error}");
    }
    // Others are told of nevertheless.
    let tables = csv(&session, "SHOW TABLES").unwrap();
    assert!(tables.contains("players") && tables.contains("best"), "{tables}");
    assert_eq!(csv(&session, "SELECT count(*) AS n FROM players").unwrap(), "n\n1\n");
    session.query("DROP VIEW best").unwrap();
    assert_eq!(csv(&session, "SELECT _key FROM best").unwrap(), "_key\nbob\n");
}

/// A view once could be made under the name of a dropped collection, and was never found.
#[test]
fn view_takes_the_name_of_a_dropped_collection() {
    let (db, session) = session();
    let old = db.create_collection("old", KeyKind::Text).unwrap();
    old.put("bob", "{}", &CommitOptions::default()).unwrap();
    session.query("DROP TABLE old").unwrap();
    session.query("CREATE VIEW old AS SELECT 7 AS n").unwrap();
    assert_eq!(csv(&session, "SELECT * FROM old").unwrap(), "n\n7\n");
    let past = csv(&session, "SELECT _key FROM old FOR SYSTEM_TIME AS OF 1").unwrap();
    assert_eq!(past, "_key\nbob\n");
}

/// Both columns once were members of one name.
#[test]
fn json_of_two_columns_of_one_name_is_refused() {
    let (_, session) = session();
    let sql = "SELECT a._key, b._key FROM players a JOIN players b ON a._key = b._key";
    for format in [Format::Json, Format::Ndjson] {
        let mut out = Vec::new();
        let error = session.query(sql).unwrap().write(format, &mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("called \"_key\""), "{error}");
        assert!(out.is_empty());
    }
    assert_eq!(csv(&session, sql).unwrap(), "_key,_key\nann,ann\n");
}

/// What a record calls as the engine calls a column once was lost on the way through a file.
#[test]
fn fields_with_names_of_the_engine_are_read_written_and_copied() {
    let (db, session) = session();
    let odd = db.create_collection("odd", KeyKind::Text).unwrap();
    let json = r#"{"_key":"own","_version":"v","_revision":[1],"_timestamp":null,"n":1}"#;
    odd.put("a", json, &CommitOptions::default()).unwrap();
    let columns = r#""$._key", "$._version", _version, n"#;
    let select = |name: &str| csv(&session, &format!("SELECT _key, {columns} FROM {name}"));
    let found = "_key,$._key,$._version,_version,n\na,own,v,1,1\n";
    assert_eq!(select("odd").unwrap(), found);
    session.query("CREATE TABLE copied").unwrap();
    session.query("INSERT INTO copied SELECT * FROM odd").unwrap();
    assert_eq!(select("copied").unwrap(), found);
    let folder = tempfile::tempdir().unwrap();
    for name in ["t.ndjson", "t.csv", "t.parquet"] {
        let table = name.replace('.', "_");
        let file = folder.path().join(name);
        session.query(&format!("COPY odd TO '{}'", file.display())).unwrap();
        session.query(&format!("CREATE TABLE {table}")).unwrap();
        session.query(&format!("COPY {table} FROM '{}'", file.display())).unwrap();
        assert_eq!(select(&table).unwrap(), found, "{name}");
    }
    let record = db.collection("t_ndjson").unwrap().get("a").unwrap().unwrap();
    assert_eq!(record.json, json);
    session.query(r#"UPDATE copied SET "$._key" = 'new', n = 2"#).unwrap();
    let record = db.collection("copied").unwrap().get("a").unwrap().unwrap();
    assert!(record.json.contains(r#""_key":"new""#), "{}", record.json);
    for sql in ["UPDATE copied SET _version = 7", "UPDATE copied SET _key = 'b'"] {
        assert_eq!(session.query(sql).map(drop).unwrap_err().kind(), ErrorKind::Invalid, "{sql}");
    }
}

/// The header of a field of a struct was such as `p.home[city]`, which nobody could write.
#[test]
fn a_field_of_a_struct_is_called_by_its_name() {
    let (db, session) = session();
    let players = db.collection("players").unwrap();
    let how = CommitOptions::default();
    players.put("ann", r#"{"home":{"city":"Ulm","at":{"x":1}},"all":[{"n":7}]}"#, &how).unwrap();
    let cases = [
        ("SELECT p.home.city FROM players p", "city\nUlm\n"),
        ("SELECT home.city, home['at'].x FROM players", "city,x\nUlm,1\n"),
        ("SELECT city FROM (SELECT home.city FROM players) WHERE city = 'Ulm'", "city\nUlm\n"),
        ("SELECT home.city, count(*) AS n FROM players GROUP BY home.city", "city,n\nUlm,1\n"),
        ("SELECT home.city FROM players ORDER BY home.city", "city\nUlm\n"),
        ("SELECT DISTINCT home.city FROM players", "city\nUlm\n"),
        ("SELECT _key, i.n FROM players p, unnest(p.all) AS i", "_key,n\nann,7\n"),
    ];
    for (sql, expected) in cases {
        assert_eq!(csv(&session, sql).unwrap(), expected, "{sql}");
    }
    session.query("CREATE TABLE homes AS SELECT _key, home.city FROM players").unwrap();
    assert_eq!(csv(&session, "SELECT city FROM homes").unwrap(), "city\nUlm\n");
}
