//! How much memory queries hold over tables that are larger than their limit, each measured in a
//! process of its own.

use std::env;
use std::process::Command;

use duramen::{CommitOptions, Database, ErrorKind, KeyKind, Options};
use duramen_sql::arrow::array::AsArray;
use duramen_sql::{Session, SessionOptions};

const LIMIT_BYTES: usize = 32 << 20;
/// What a query may hold beside its limit.
const BESIDE_KIB: u64 = 64 << 10;
const RECORDS: u64 = 40_000;
const LONG_RECORDS: u64 = 2_000;
const SORTED_RECORDS: u64 = 120_000;

/// Tell the child what to do.
const QUERY: &str = "DURAMEN_MEMORY_QUERY";
const FOLDER: &str = "DURAMEN_MEMORY_FOLDER";

/// Reads all there is and holds nothing of it.
const READING: &str = "SELECT max(n), max(g), max(t), max(_key) FROM t";

/// Queries with what comes of them.
const QUERIES: [(&str, Option<ErrorKind>); 25] = [
    ("SELECT * FROM t ORDER BY n LIMIT 10", None),
    ("SELECT _key, n FROM t ORDER BY n", None),
    // These once were `Full`, as merging what is sorted takes memory too.
    ("SELECT t FROM t ORDER BY t", None),
    ("SELECT * FROM t ORDER BY g, t DESC", None),
    ("SELECT count(DISTINCT t) FROM t", None),
    ("SELECT t, count(*), max(n) FROM t GROUP BY t ORDER BY 2 LIMIT 3", None),
    ("SELECT g, n, row_number() OVER (PARTITION BY g ORDER BY n) FROM t", None),
    ("SELECT count(*) FROM t a, t b WHERE a.n + b.n = 7 AND a.g < 2 AND b.g < 5", None),
    ("SELECT repeat(t, 8) FROM t", None),
    // 1.5 GB, once made by hundreds of MiB at once.
    ("SELECT repeat(t, 1000) FROM t WHERE g < 25", None),
    // These cannot use files.
    ("SELECT count(*) FROM t a JOIN t b ON a.t = b.t", Some(ErrorKind::Full)),
    ("SELECT string_agg(t, ',') FROM t", Some(ErrorKind::Full)),
    ("SELECT array_agg(t ORDER BY n) FROM t", Some(ErrorKind::Full)),
    ("SELECT array_agg(t) FROM t", Some(ErrorKind::Full)),
    // The lists of all groups once were beside each other.
    ("SELECT sum(array_length(a)) FROM (SELECT _key, array_agg(t) a FROM t GROUP BY _key)", None),
    ("SELECT sum(array_length(a)) FROM (SELECT g, array_agg(t) a FROM t GROUP BY g)", None),
    (
        "SELECT sum(array_length(a)) FROM (SELECT g, array_agg(t ORDER BY n) a FROM t GROUP BY g)",
        None,
    ),
    (
        "SELECT sum(length(a)) FROM (SELECT g, string_agg(DISTINCT t, ',') a FROM t GROUP BY g)",
        None,
    ),
    (
        "SELECT sum(a + b) FROM (SELECT g, count(DISTINCT t) a, count(DISTINCT n) b FROM t \
         GROUP BY g, g % 500)",
        None,
    ),
    ("SELECT max(array_length(a)) FROM (SELECT array_agg(t) OVER (PARTITION BY g) a FROM t)", None),
    // As many lists as rows, of as many: the allocation once ended the process.
    (
        "SELECT max(array_length(a)) FROM (SELECT array_agg(n) OVER () a FROM t)",
        Some(ErrorKind::Full),
    ),
    (
        "SELECT max(array_length(a)) FROM (SELECT array_agg(n) OVER (ORDER BY n) a FROM t)",
        Some(ErrorKind::Full),
    ),
    ("SELECT approx_percentile_cont(n, 0.5), median(n), count(DISTINCT n) FROM t", None),
    // What is committed is in memory before.
    ("INSERT INTO u SELECT * FROM t", Some(ErrorKind::Full)),
    ("INSERT INTO u SELECT * FROM t WHERE g < 200", None),
];

/// Sixty MiB of texts that are all different.
fn fill(db: &Database) {
    db.create_collection("t", KeyKind::U64).unwrap();
    let u = db.create_collection("u", KeyKind::U64).unwrap();
    u.put(RECORDS, "{}", &CommitOptions::default()).unwrap();
    for begin in (0..RECORDS).step_by(4_000) {
        let mut transaction = db.transaction();
        for key in begin..begin + 4_000 {
            let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let text = format!("{mixed:016x}").repeat(96);
            let json = format!(r#"{{"n":{},"g":{},"t":"{text}"}}"#, mixed >> 34, key % 1_000);
            transaction.put_record("t", &key.into(), json.as_bytes()).unwrap();
        }
        transaction.commit(&CommitOptions::default()).unwrap();
    }
    db.checkpoint().unwrap();
}

/// What came of a query, and the most that its process held.
fn measure(folder: &str, query: &str) -> (String, u64) {
    let child = Command::new(env::current_exe().unwrap())
        .args(["memory::a_process_answers_the_query_it_is_told", "--exact", "--nocapture"])
        .envs([(QUERY, query), (FOLDER, folder)])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{query}: {text}");
    let line = text.lines().find_map(|line| line.split_once("outcome: "));
    let (outcome, peak) = line.unwrap().1.split_once(' ').unwrap();
    (outcome.to_owned(), peak.parse().unwrap())
}

/// The most memory that this process held, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_process_answers_the_query_it_is_told() {
    let (Ok(query), Ok(folder)) = (env::var(QUERY), env::var(FOLDER)) else { return };
    let read_only = !duramen_sql::writes(&query, &[]).unwrap();
    let options = Options { read_only, create: false, ..Options::default() };
    let db = Database::open(folder, options).unwrap();
    let limited = SessionOptions { memory_bytes: LIMIT_BYTES, ..SessionOptions::default() };
    let session = Session::new(db, limited);
    let answer = session.query(&query);
    let end = answer.and_then(|mut answer| answer.try_for_each(|batch| batch.map(drop)));
    let outcome = end.map_or_else(|error| error.kind().name(), |()| "Done");
    println!("\noutcome: {outcome} {}", peak());
}

#[test]
#[cfg(target_os = "linux")]
fn queries_hold_no_more_than_their_limit_and_a_little() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path(), Options::default()).unwrap();
    fill(&db);
    db.close().unwrap();
    let folder = folder.path().to_str().unwrap();
    let (_, reading) = measure(folder, READING);
    let most = reading + (LIMIT_BYTES as u64 >> 10) + BESIDE_KIB;
    for (query, error) in QUERIES {
        let (outcome, peak) = measure(folder, query);
        assert_eq!(outcome, error.map_or("Done", ErrorKind::name), "{query}");
        assert!(peak <= most, "{query}: {peak} KiB of {most}; to read it takes {reading}");
    }
}

/// It once ended with `Full` where it was to use files, and where it needs none.
#[test]
fn long_texts_are_sorted_whatever_memory_there_is() {
    let db = Database::memory().unwrap();
    db.create_collection("t", KeyKind::U64).unwrap();
    let text = |key: u64| format!("{:050}", key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for begin in (0..SORTED_RECORDS).step_by(10_000) {
        let mut transaction = db.transaction();
        for key in begin..begin + 10_000 {
            let json = format!(r#"{{"t":"{}"}}"#, text(key));
            transaction.put_record("t", &key.into(), json.as_bytes()).unwrap();
        }
        transaction.commit(&CommitOptions::default()).unwrap();
    }
    let mut expected: Vec<String> = (0..SORTED_RECORDS).map(text).collect();
    expected.sort_unstable();
    for memory_bytes in [8 << 20, 16 << 20, 32 << 20, 256 << 20] {
        let options = SessionOptions { memory_bytes, ..SessionOptions::default() };
        let session = Session::new(db.clone(), options);
        let mut found = Vec::new();
        for batch in session.query("SELECT t FROM t ORDER BY t").unwrap() {
            let batch = batch.unwrap();
            found.extend(
                batch.column(0).as_string_view().iter().map(|text| text.unwrap().to_owned()),
            );
        }
        assert!(found == expected, "{memory_bytes} bytes");
    }
    // What comes of a join shares the texts of all of its smaller side.
    let options = SessionOptions { memory_bytes: 128 << 20, ..SessionOptions::default() };
    let session = Session::new(db, options);
    let joined = "SELECT a.t FROM t a JOIN t b ON a._key = b._key ORDER BY a.t";
    let rows: usize = session.query(joined).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows as u64, SORTED_RECORDS);
}

/// All texts of a batch were once made at once, 400 MB here.
#[test]
fn long_texts_are_made_of_few_rows_at_a_time() {
    let db = Database::memory().unwrap();
    db.create_collection("r", KeyKind::U64).unwrap();
    let mut transaction = db.transaction();
    for key in 1..=LONG_RECORDS {
        let json = format!(r#"{{"n":{key},"t":"{}"}}"#, "long".repeat(50));
        transaction.put_record("r", &key.into(), json.as_bytes()).unwrap();
    }
    transaction.commit(&CommitOptions::default()).unwrap();
    let options = SessionOptions { memory_bytes: 16 << 20, ..SessionOptions::default() };
    let session = Session::new(db, options);
    let answer = |sql: &str| -> Result<(usize, usize), ErrorKind> {
        let mut found = (0, 0);
        for batch in session.query(sql).map_err(|error| error.kind())? {
            let batch = batch.map_err(|error| error.kind())?;
            assert!(batch.num_rows() <= 21, "{} rows at once", batch.num_rows());
            let bytes = batch.get_array_memory_size();
            // A text that grows as it is written has room for twice as much.
            assert!(batch.num_rows() == 1 || bytes <= 10 << 20, "{bytes} bytes at once");
            found = (found.0 + batch.num_rows(), found.1 + bytes);
        }
        Ok(found)
    };
    let (rows, bytes) = answer("SELECT n, repeat(t, 1000) FROM r").unwrap();
    assert!(rows == 2_000 && bytes >= 400_000_000, "{rows} rows, {bytes} bytes");
    let columns: Vec<_> = (0..8).map(|more| format!("repeat(t, {})", 1_000 + more)).collect();
    for columns in [
        "lpad(t, 200000 + n)",
        "array_repeat(t, 1000), n",
        "array_resize([n], 25000)",
        "replace(t, 'l', repeat('x', 4000))",
        "array_to_string(array_repeat(n, 100), repeat('x', 2000))",
        // Each was once of as many bytes as one alone may have.
        &columns.join(", "),
    ] {
        let (rows, _) = answer(&format!("SELECT {columns} FROM r")).unwrap();
        assert_eq!(rows, 2_000, "{columns}");
    }
    // What is no column of the answer cannot be made of fewer rows, nor can one value.
    for sql in [
        "SELECT n FROM r WHERE length(repeat(t, 1000)) > 5",
        "SELECT max(repeat(t, 1000)) FROM r",
        "SELECT repeat('x', 5000000)",
        "SELECT range(0, 1000000000000)",
        "SELECT repeat(t, 100000) FROM r",
        "SELECT range(TIMESTAMP '2000-01-01', TIMESTAMP '2100-01-01', INTERVAL '1 microsecond')",
        "SELECT max(array_length(range(DATE '0001-01-01', CASE WHEN n > 0 THEN \
            DATE '2000-01-01' END, INTERVAL '1 day'))) FROM r",
        // There is a month that this does not leave.
        "SELECT range(TIMESTAMP '2000-01-01', TIMESTAMP '2001-01-01', INTERVAL '1 month -30 days')",
        "SELECT array_resize([n], 100000000) FROM r",
        "SELECT list_resize([1, 2], 100000000, n) FROM r",
        "SELECT replace(t, 'l', repeat('x', 100000)) FROM r",
        "SELECT array_join([n, n, n], repeat('x', 2000000)) FROM r",
        "SELECT array_to_string([n, NULL, NULL, NULL], '', repeat('x', 2000000)) FROM r",
    ] {
        assert_eq!(answer(sql), Err(ErrorKind::Full), "{sql}");
    }
    let (rows, _) = answer("SELECT length(repeat('x', 2000000 + n)) FROM r WHERE n < 9").unwrap();
    assert_eq!(rows, 8);
}
