//! Files of queries with their answers, each over a database of its own.

use std::fmt;
use std::path::Path;
use std::sync::atomic::Ordering;

use duramen::{
    CommitOptions, Database, Durability, ErrorKind, JsonPointer, KeyKind, Micros, Options,
    Revision, SeriesDefinition, ValueType,
};
use duramen_sql::arrow::compute::concat_batches;
use duramen_sql::arrow::ipc::reader::StreamReader;
use duramen_sql::arrow::util::display::{ArrayFormatter, FormatOptions};
use duramen_sql::{Format, Session, SessionOptions};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner, parse_file};

const DAY: i64 = 86_400_000_000;

struct Queries(Session);

#[derive(Debug)]
struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

impl From<duramen::Error> for Failed {
    fn from(error: duramen::Error) -> Self {
        Self(format!("{}: {error}", error.kind().name()))
    }
}

impl DB for Queries {
    type Error = Failed;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failed> {
        let answer = self.0.query(sql)?;
        let types = vec![DefaultColumnType::Any; answer.schema().fields().len()];
        let mut rows = Vec::new();
        for batch in answer {
            let batch = batch?;
            let options = FormatOptions::default().with_null("NULL");
            let columns = batch.columns().iter();
            let columns: Vec<_> =
                columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
            for row in 0..batch.num_rows() {
                rows.push(columns.iter().map(|column| column.value(row).to_string()).collect());
            }
        }
        Ok(DBOutput::Rows { types, rows })
    }
}

/// A day of each revision: the first of 2024 and those after it.
fn on(day: i64) -> CommitOptions {
    CommitOptions { timestamp: Some(Micros((19_723 + day) * DAY)), ..CommitOptions::default() }
}

fn database() -> Database {
    let db = Database::memory().unwrap();
    let players = db.create_collection("players", KeyKind::Text).unwrap();
    let ann = r#"{"name":"Ann","score":3,"world":{"name":"nether","level":2},"tags":["x","y"]}"#;
    players.put("ann", ann, &on(0)).unwrap();
    players.put("bob", r#"{"name":"Bob","score":7,"ratio":0.25,"mixed":1}"#, &on(1)).unwrap();
    let eve = r#"{"name":"Eve","ratio":1,"mixed":"one","tags":[],"world":null,"alive":true}"#;
    players.put("eve", eve, &on(2)).unwrap();
    players.put("ann", ann.replace(":3", ":5"), &on(3)).unwrap();
    players.delete("bob", &on(4)).unwrap();
    players.document().tag("spring", Some(Revision(2)), &CommitOptions::default()).unwrap();
    db.create_collection("Empty", KeyKind::I64).unwrap();
    let numbers = db.create_collection("numbers", KeyKind::U64).unwrap();
    let mut transaction = db.transaction();
    for n in 0..10_000_u64 {
        let json = format!(r#"{{"n":{n},"half":{}.5,"odd":{}}}"#, n / 2, n % 2 == 1);
        transaction.put_record(numbers.name(), &n.into(), json.as_bytes()).unwrap();
    }
    transaction.commit(&on(0)).unwrap();
    let inventory = db.create_document("inventory").unwrap();
    let items = r#"{"data":[{"item":"axe","parts":[{"n":1},{"n":2}]},{"item":"bow"}]}"#;
    inventory.put(items, &on(0)).unwrap();
    let told =
        CommitOptions { author: Some("kim".into()), message: Some("longer".into()), ..on(5) };
    let item: JsonPointer = "/data/1/item".parse().unwrap();
    inventory.set(&item, "\"longbow\"", &told).unwrap();
    inventory.append(&"/data".parse::<JsonPointer>().unwrap(), "{}", &on(6)).unwrap();
    let removed = db.create_document("removed").unwrap();
    removed.put(r#"[{"n":1},{"n":2}]"#, &on(0)).unwrap();
    removed.put(r#"[{"n":1},{"n":3}]"#, &on(1)).unwrap();
    db.delete_document("removed", &on(2)).unwrap();
    add_series(&db);
    db.checkpoint().unwrap();
    db
}

/// Two boilers that say how hot they are and what they do.
fn add_series(db: &Database) {
    let site = |value_type, site: &str| SeriesDefinition {
        labels: [("site".to_owned(), site.to_owned())].into(),
        ..SeriesDefinition::new(value_type)
    };
    for (name, north) in [("boiler/a", "north"), ("boiler/b", "south")] {
        let series = db.create_series(name, &site(ValueType::F64, north)).unwrap();
        for hour in 0..3_i32 {
            let time = Micros(19_723 * DAY + i64::from(hour) * 3_600_000_000);
            series.append(time, f64::from(hour) + 0.5, &CommitOptions::default()).unwrap();
        }
    }
    let mode = db.create_series("boiler/mode", &site(ValueType::String, "north")).unwrap();
    mode.append(Micros(19_723 * DAY), "idle", &CommitOptions::default()).unwrap();
    let sales = db.create_collection("sales", KeyKind::I64).unwrap();
    let mut transaction = db.transaction();
    for (key, tag, at) in [
        (1_i64, "boiler/a", "2024-01-01T00:30:00Z"),
        (2, "boiler/a", "2024-01-01T02:00:00Z"),
        (3, "boiler/b", "2023-12-31T23:59:59Z"),
        (4, "boiler/b", "2024-01-05T00:00:00Z"),
        (5, "boiler/c", "2024-01-05T00:00:00Z"),
    ] {
        let json = format!(r#"{{"tag":"{tag}","at":"{at}"}}"#);
        transaction.put_record(sales.name(), &key.into(), json.as_bytes()).unwrap();
    }
    transaction.commit(&on(0)).unwrap();
}

#[test]
fn files_of_queries_are_answered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/slt");
    let (mut files, mut failed) = (0, Vec::new());
    for file in std::fs::read_dir(folder).unwrap() {
        let db = database();
        let session = || Queries(Session::new(db.clone(), SessionOptions::default()));
        let mut runner = Runner::new(|| async { Ok(session()) });
        for record in parse_file::<DefaultColumnType>(file.unwrap().path()).unwrap() {
            failed.extend(runner.run(record).err().map(|error| error.to_string()));
        }
        files += 1;
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(files >= 9, "the folder has {files} files");
}

#[test]
fn plans_say_which_row_groups_are_read() {
    let session = Session::new(database(), SessionOptions::default());
    let answer = session.query("EXPLAIN SELECT n FROM numbers WHERE n > 9000").unwrap();
    let mut plan = Vec::new();
    answer.write(Format::Csv, &mut plan).unwrap();
    let plan = String::from_utf8(plan).unwrap();
    assert!(plan.contains("columns=[n], revision=1, row_groups=1, pruned=2"), "{plan}");
}

#[test]
fn joins_by_time_sort_what_does_not_come_in_order() {
    let session = Session::new(database(), SessionOptions::default());
    let sql = "EXPLAIN SELECT o._key, s.value FROM sales o ASOF JOIN series('boiler/*') s
               MATCH_CONDITION (o.at >= s.timestamp) ON o.tag = s.tag";
    let mut plan = Vec::new();
    session.query(sql).unwrap().write(Format::Csv, &mut plan).unwrap();
    let plan = String::from_utf8(plan).unwrap();
    assert!(plan.contains("AsOfJoinExec"), "{plan}");
    assert_eq!(plan.matches("SortExec").count(), 1, "{plan}");
    assert!(plan.contains("projection=[tag, timestamp, value]"), "{plan}");
}

/// Those of one tag were sorted by time, all of them, for the first one of them.
#[test]
fn points_that_come_in_order_are_not_sorted() {
    let session = Session::new(database(), SessionOptions::default());
    for (of, order, is_sorted) in [
        ("boiler/a", "timestamp", false),
        ("boiler/a", "tag, timestamp", false),
        ("boiler/*", "tag, timestamp", false),
        ("boiler/a", "value", true),
    ] {
        let sql =
            format!("SELECT value, timestamp, tag FROM series('{of}') ORDER BY {order} LIMIT 2");
        let mut plan = Vec::new();
        let explained = session.query(&format!("EXPLAIN {sql}")).unwrap();
        explained.write(Format::Csv, &mut plan).unwrap();
        let plan = String::from_utf8(plan).unwrap();
        assert_eq!(plan.contains("SortExec"), is_sorted, "{plan}");
        let mut rows = Vec::new();
        session.query(&sql).unwrap().write(Format::Csv, &mut rows).unwrap();
        assert_eq!(
            String::from_utf8(rows).unwrap(),
            "value,timestamp,tag\n0.5,2024-01-01T00:00:00Z,boiler/a\n\
             1.5,2024-01-01T01:00:00Z,boiler/a\n"
        );
    }
}

/// Points that were staged, and not yet committed, were once left out.
/// One such point was the end of an answer.
#[test]
fn times_beyond_the_calendar_are_numbers() {
    let db = Database::memory().unwrap();
    let level = db.create_series("level", &SeriesDefinition::new(ValueType::I64)).unwrap();
    for time in [i64::MIN, 0, i64::MAX] {
        level.append(Micros(time), 7, &CommitOptions::default()).unwrap();
    }
    let session = Session::new(db, SessionOptions::default());
    for (format, expected) in [
        (
            Format::Csv,
            "timestamp\n-9223372036854775808\n1970-01-01T00:00:00Z\n9223372036854775807\n",
        ),
        (
            Format::Ndjson,
            "{\"timestamp\":-9223372036854775808}\n{\"timestamp\":\"1970-01-01T00:00:00Z\"}\n\
             {\"timestamp\":9223372036854775807}\n",
        ),
    ] {
        let mut found = Vec::new();
        let answer = session.query("SELECT timestamp FROM series('level') ORDER BY timestamp");
        answer.unwrap().write(format, &mut found).unwrap();
        assert_eq!(String::from_utf8(found).unwrap(), expected);
    }
    let answer = session.query("SELECT timestamp FROM series('level')").unwrap();
    let mut table = Vec::new();
    answer.write(Format::Table, &mut table).unwrap();
    assert!(String::from_utf8(table).unwrap().contains("9223372036854775807"));
}

/// Rows that came later once did not decide how wide columns are, and broke the lines of a table.
#[test]
fn columns_of_a_table_are_as_wide_as_its_rows() {
    let session = Session::new(Database::memory().unwrap(), SessionOptions::default());
    let written = |rows| {
        let sql = format!(
            "SELECT CASE value WHEN {rows} THEN 'the last' ELSE 'x' END AS a, 'b' AS b \
             FROM generate_series(1, {rows}) ORDER BY value"
        );
        let mut table = Vec::new();
        session.query(&sql).unwrap().write(Format::Table, &mut table).unwrap();
        String::from_utf8(table).unwrap()
    };
    let table = written(20_000);
    assert!(table.starts_with("a         b\n--------  -\nx         b\n"), "{}", &table[..60]);
    assert!(table.ends_with("\nthe last  b\n(20000 rows)\n"));
    // What comes after so many rows makes columns wider from there on.
    let table = written(120_000);
    assert!(table.starts_with("a  b\n-  -\nx  b\n"));
    assert!(table.ends_with("\nx         b\nthe last  b\n(120000 rows)\n"));
}

/// A disk that has no room.
struct FullDisk;

impl std::io::Write for FullDisk {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// As CSV it once was told to be `Invalid`.
#[test]
fn what_cannot_be_written_for_want_of_room_is_told_so_in_every_format() {
    let session = Session::new(Database::memory().unwrap(), SessionOptions::default());
    for format in
        [Format::Table, Format::Json, Format::Ndjson, Format::Csv, Format::Parquet, Format::Arrow]
    {
        let rows = "SELECT value, repeat('x', 200) AS text FROM generate_series(1, 2000)";
        let error = session.query(rows).unwrap().write(format, &mut FullDisk).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Full, "{format:?}: {error}");
    }
}

#[test]
fn staged_points_are_among_those_of_series() {
    let db = Database::memory().unwrap();
    let level = db.create_series("level", &SeriesDefinition::new(ValueType::I64)).unwrap();
    let durability = Some(Durability::Interval(60_000));
    let soon = CommitOptions { durability, ..CommitOptions::default() };
    level.append(Micros(1), 7_i64, &soon).unwrap();
    let session = Session::new(db, SessionOptions::default());
    let mut found = Vec::new();
    let answer = session.query("SELECT value FROM series('level')").unwrap();
    answer.write(Format::Csv, &mut found).unwrap();
    assert_eq!(String::from_utf8(found).unwrap(), "value\n7.0\n");
}

#[test]
fn a_query_ends_when_it_is_told_to() {
    let kind = |options: SessionOptions| {
        let session = Session::new(database(), options);
        let answer = session.query("SELECT half FROM numbers ORDER BY half");
        let end = answer.and_then(Iterator::collect::<Result<Vec<_>, _>>);
        end.map(|_| ()).unwrap_err().kind()
    };
    let over = SessionOptions { timeout_ms: Some(0), ..SessionOptions::default() };
    assert_eq!(kind(over), ErrorKind::TimedOut);
    let options = SessionOptions::default();
    options.cancelled.store(true, Ordering::Relaxed);
    assert_eq!(kind(options), ErrorKind::Cancelled);
}

/// Making an index once went on to its end.
#[test]
fn an_index_that_is_in_the_making_ends_with_its_statement() {
    let (over, stopped) = (SessionOptions::default(), SessionOptions::default());
    let over = SessionOptions { timeout_ms: Some(0), ..over };
    stopped.cancelled.store(true, Ordering::Relaxed);
    for (options, kind) in [(over, ErrorKind::TimedOut), (stopped, ErrorKind::Cancelled)] {
        let db = database();
        let session = Session::new(db.clone(), options);
        let made = session.query("CREATE INDEX by_half ON numbers (half)").map(drop);
        assert_eq!(made.unwrap_err().kind(), kind);
        assert!(db.collection("numbers").unwrap().indexes().unwrap().is_empty());
        let session = Session::new(db, SessionOptions::default());
        session.query("CREATE INDEX by_half ON numbers (half)").unwrap();
    }
}

#[test]
fn a_database_open_for_reading_refuses_changes() {
    let folder = tempfile::tempdir().unwrap();
    let written = Database::open(folder.path(), Options::default()).unwrap();
    written.create_collection("players", KeyKind::Text).unwrap();
    written.close().unwrap();
    let options = Options { read_only: true, ..Options::default() };
    let session =
        Session::new(Database::open(folder.path(), options).unwrap(), SessionOptions::default());
    let error = session.query("INSERT INTO players (_key) VALUES ('ann')").unwrap_err();
    let message = "the database was opened for reading: open it for writing to change it";
    assert_eq!((error.kind(), error.message()), (ErrorKind::Denied, message));
}

#[test]
fn a_statement_says_whether_it_writes() {
    let writes = |sql| duramen_sql::writes(sql, &[]).unwrap();
    assert!(writes("DELETE FROM players"));
    assert!(!writes("SELECT * FROM players"));
    assert!(!writes("EXPLAIN SELECT * FROM players"));
    let error = duramen_sql::writes("EXPLAIN DELETE FROM players", &[]).unwrap_err();
    assert!(error.message().contains("explain a SELECT with the same"), "{error}");
}

/// A table that cannot be made once left an empty database behind.
#[test]
fn a_statement_says_whether_it_makes_a_table() {
    let makes = |sql| duramen_sql::makes_table(sql, &[]);
    assert!(makes("CREATE TABLE players (_key BIGINT)").unwrap());
    assert!(makes("CREATE TABLE players (_key BIGINT, n BIGINT)").unwrap());
    assert!(!makes("CREATE INDEX n ON players (n)").unwrap());
    assert!(!makes("CREATE TABLE players AS SELECT 1 AS _key").unwrap());
    for (sql, kind) in [
        ("CREATE TABLE players (_key BIGINT, n UUID)", ErrorKind::Unsupported),
        ("CREATE TABLE players (_key DATE)", ErrorKind::Unsupported),
        ("CREATE TABLE a.b.c.d", ErrorKind::Unsupported),
        ("CREATE TABLE \"\"", ErrorKind::Invalid),
    ] {
        assert_eq!(makes(sql).unwrap_err().kind(), kind, "{sql}");
    }
}

#[test]
fn an_answer_is_a_stream_that_arrow_reads() {
    let session = Session::new(database(), SessionOptions::default());
    let query = "SELECT _key, n, half FROM numbers ORDER BY n";
    let mut stream = Vec::new();
    session.query(query).unwrap().write(Format::Arrow, &mut stream).unwrap();
    let reader = StreamReader::try_new(stream.as_slice(), None).unwrap();
    let schema = session.query(query).unwrap().schema();
    assert_eq!(reader.schema().fields(), schema.fields());
    let batches = reader.collect::<Result<Vec<_>, _>>().unwrap();
    let expected = session.query(query).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    let whole = |batches: &[_]| concat_batches(&schema, batches).unwrap();
    assert_eq!(whole(&batches), whole(&expected));
}

/// Numbers that a table has as floats once were written as these.
#[test]
fn values_that_are_copied_stay_as_they_are_written() {
    let db = Database::memory().unwrap();
    let t = db.create_collection("t", KeyKind::U64).unwrap();
    let json =
        r#"{"a":{"n":0.1000000000000000055511151231257827},"n":12345678901234567890.25,"x":1.5}"#;
    t.put(1, json, &CommitOptions::default()).unwrap();
    t.put(2, r#"{"n":null,"x":2.5}"#, &CommitOptions::default()).unwrap();
    let session = Session::new(db, SessionOptions::default());
    session.query("UPDATE t SET n = n, m = a.n, o = t.a, x = x + 1").unwrap();
    let record = |key: u64| t.get(key).unwrap().unwrap().json;
    for written in [
        r#""n":12345678901234567890.25"#,
        r#""m":0.1000000000000000055511151231257827"#,
        r#""o":{"n":0.1000000000000000055511151231257827}"#,
        r#""x":2.5"#,
    ] {
        assert!(record(1).contains(written), "{written} in {}", record(1));
    }
    assert_eq!(record(2), r#"{"n":null,"x":3.5}"#);
}

/// Members of lists that have several kinds were once put into quotes.
#[test]
fn lists_of_several_kinds_are_copied_as_they_are() {
    let db = Database::memory().unwrap();
    let json = r#"{"l":[1,"a",{"b":[2]},null,[true,"x"]],"deep":[[1,"b"],["c"]]}"#;
    let from = db.create_collection("from", KeyKind::Text).unwrap();
    from.put("k", json, &CommitOptions::default()).unwrap();
    let into = db.create_collection("into", KeyKind::Text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lists.ndjson");
    let session = Session::new(db, SessionOptions::default());
    let run = |sql: &str| {
        let rows = session.query(sql).and_then(Iterator::collect::<duramen::Result<Vec<_>>>);
        rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
    };
    run("INSERT INTO \"into\" (_key, l, deep) SELECT _key, l, deep FROM \"from\"");
    assert_eq!(into.get("k").unwrap().unwrap().json, json);
    run("UPDATE \"into\" SET deep = l, l = deep");
    let swapped = r#"{"l":[[1,"b"],["c"]],"deep":[1,"a",{"b":[2]},null,[true,"x"]]}"#;
    assert_eq!(into.get("k").unwrap().unwrap().json, swapped);
    run(&format!("COPY (SELECT l, deep FROM \"from\") TO '{}'", file.display()));
    assert_eq!(std::fs::read_to_string(file).unwrap().trim_end(), json);
}

/// What was deleted was once refused, and a time in the meantime taken for the beginning.
#[test]
fn a_deleted_collection_has_a_past() {
    let db = Database::memory().unwrap();
    let table = db.create_collection("t", KeyKind::Text).unwrap();
    table.put("k", r#"{"n":1}"#, &on(0)).unwrap();
    table.put("k", r#"{"n":2}"#, &on(1)).unwrap();
    db.delete_document("t", &on(2)).unwrap();
    let found = |sql: &str| {
        let mut found = Vec::new();
        let session = Session::new(db.clone(), SessionOptions::default());
        let answer = session.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        answer.write(Format::Csv, &mut found).unwrap();
        String::from_utf8(found).unwrap().lines().skip(1).collect::<Vec<_>>().join(" ")
    };
    let versions = |period: &str| {
        found(&format!(
            "SELECT n, _valid_from, _valid_to FROM t FOR SYSTEM_TIME {period} ORDER BY 2"
        ))
    };
    assert_eq!(versions("ALL"), "1,1,2 2,2,3");
    assert_eq!(versions("FROM 2 TO 3"), "2,2,3");
    assert_eq!(versions("BETWEEN 3 AND 3"), "");
    assert_eq!(versions("BETWEEN '2024-01-03T12:00:00Z' AND '2024-01-04'"), "");
    assert_eq!(found("SELECT value FROM history('t', '/k/n')"), "2 1");
    table.put("k", r#"{"n":2}"#, &on(4)).unwrap();
    assert_eq!(versions("ALL"), "1,1,2 2,2,3 2,4,");
    assert_eq!(versions("FROM 3 TO 4"), "");
    assert_eq!(versions("BETWEEN '2024-01-04' AND '2024-01-05'"), "2,4,");
    assert_eq!(found("SELECT _version FROM t"), "3");
}

/// Times are microseconds, of all years: nanoseconds do not reach so far.
#[test]
fn times_of_all_years_are_compared() {
    let session = Session::new(database(), SessionOptions::default());
    for (condition, count) in [
        ("_timestamp > '1500-01-01'", 2),
        ("_timestamp < TIMESTAMP '2500-01-01 12:30'", 2),
        ("_timestamp > DATE '2400-01-01'", 0),
        ("_timestamp BETWEEN '0001-01-01' AND '9999-12-31'", 2),
        ("_timestamp NOT BETWEEN '0001-01-01' AND DATE '9999-12-31'", 0),
        ("_timestamp IN ('2024-01-03', '0001-01-01')", 1),
        ("_timestamp > CAST('1500-01-01' AS TIMESTAMP)", 2),
        ("_timestamp >= '2024-01-03T00:00:00.000000Z'", 2),
    ] {
        let sql = format!("SELECT count(*) FROM (SELECT * FROM players WHERE {condition} LIMIT 9)");
        let mut found = Vec::new();
        let answer = session.query(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        answer.write(Format::Csv, &mut found).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let found = String::from_utf8(found).unwrap();
        assert_eq!(found.lines().nth(1), Some(&*count.to_string()), "{condition}");
        let sql = format!("SELECT count(*) FROM players WHERE {condition}");
        let fast = session.query(&sql).and_then(Iterator::collect::<duramen::Result<Vec<_>>>);
        let fast = fast.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let fast = ArrayFormatter::try_new(fast[0].column(0), &FormatOptions::default()).unwrap();
        assert_eq!(fast.value(0).to_string(), count.to_string(), "{condition}");
    }
}
