//! Records whose fields are not in columns: there are more than 256 names among them all.

use duramen::{CommitOptions, Database, KeyKind};
use duramen_sql::{Format, Session, SessionOptions};

fn csv(session: &Session, sql: &str) -> String {
    let mut out = Vec::new();
    session.query(sql).unwrap().write(Format::Csv, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// They once had nothing but NULL in the columns of fields that others have too.
#[test]
fn fields_of_all_records_are_in_the_columns_of_a_table() {
    let db = Database::memory().unwrap();
    let events = db.create_collection("events", KeyKind::I64).unwrap();
    let records = (0..1_000_i64)
        .map(|id| (id, format!(r#"{{"user":"u{}","amount":{id},"sensor_{}":1}}"#, id % 3, id / 3)));
    events.put_many(records, &CommitOptions::default()).unwrap();
    for is_on_disk in [false, true] {
        if is_on_disk {
            db.checkpoint().unwrap();
        }
        let session = Session::new(db.clone(), SessionOptions::default());
        let sums =
            "SELECT \"user\", count(*) AS n, sum(amount) AS s FROM events GROUP BY 1 ORDER BY 1";
        assert_eq!(csv(&session, sums), "user,n,s\nu0,334,166833\nu1,333,166167\nu2,333,166500\n");
        let found = "SELECT _key FROM events WHERE amount IN (3, 900) ORDER BY 1";
        assert_eq!(csv(&session, found), "_key\n3\n900\n");
        let counted = "SELECT count(_value) AS n, count(amount) AS a FROM events WHERE _key < 100";
        assert_eq!(csv(&session, counted), "n,a\n0,100\n");
        let newest = "SELECT _key, amount FROM events FOR SYSTEM_TIME ALL WHERE amount > 997";
        assert_eq!(csv(&session, newest), "_key,amount\n998,998\n999,999\n");
    }
    let session = Session::new(db.clone(), SessionOptions::default());
    let change = "UPDATE events SET amount = -1 WHERE _key = 999 RETURNING _key, amount";
    assert_eq!(csv(&session, change), "_key,amount\n999,-1\n");
    assert_eq!(csv(&session, "SELECT min(amount) AS least FROM events"), "least\n-1\n");
    session.query("CREATE TABLE copies AS SELECT * FROM events WHERE _key < 100").unwrap();
    let copied = db.collection("copies").unwrap().get(7).unwrap().unwrap().json;
    assert!(!copied.contains("_value"), "{copied}");
}
