//! Random queries, answered here and by `DataFusion` over tables made of the records' JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, Float64Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::ReaderBuilder;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use duramen::{CommitOptions, Database, IndexDefinition, KeyKind, Revision};
use duramen_sql::{Session, SessionOptions};
use tokio::runtime::Builder;

/// Queries of each state of each table.
const QUERIES: usize = 350;
/// Of so many queries one is asked how it is answered.
const ASKED: usize = 10;
/// Percent of those asked that are answered from encoded columns at least.
const FAST_MIN: usize = 50;

/// The generator `SplitMix64`.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    pub(crate) fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[usize::try_from(self.below(words.len() as u64)).unwrap()]
    }
}

fn record(random: &mut Random) -> String {
    let mut fields = vec![format!("\"k\":{}", random.below(40))];
    fields.push(format!("\"c\":\"{}\"", random.of(&["NYC", "LA", "SF", "ATL", "BOS"])));
    fields.push(format!("\"b\":{}", random.of(&["true", "false"])));
    if random.below(8) > 0 {
        let n = match random.below(20) {
            0 => i64::MAX.to_string(),
            1 => i64::MIN.to_string(),
            2 => "null".to_owned(),
            _ => random.below(500).to_string(),
        };
        fields.push(format!("\"n\":{n}"));
    }
    if random.below(4) > 0 {
        let r = match random.below(12) {
            0 => random.of(&["-0.0", "7", "1.5e3", "-2.25"]).to_owned(),
            _ => format!("{}.{}", 1 + random.below(89), random.below(100)),
        };
        fields.push(format!("\"r\":{r}"));
    }
    if random.below(4) > 0 {
        fields.push(format!("\"s\":\"{}\"", random.of(&["", "a", "b", "\\u00e9\\n", "long text"])));
    }
    if random.below(3) > 0 {
        fields.push(format!("\"t\":{}", random.of(&["true", "false", "null"])));
    }
    match random.below(4) {
        0 => fields.push("\"o\":null".to_owned()),
        1 => fields.push(format!("\"o\":{{\"x\":{}}}", random.below(9))),
        2 => fields.push(format!("\"o\":{{\"y\":\"{}\",\"x\":null}}", random.of(&["p", "q"]))),
        _ => {}
    }
    if random.below(3) > 0 {
        let items: Vec<_> = (0..random.below(4)).map(|_| random.below(5).to_string()).collect();
        fields.push(format!("\"l\":[{}]", items.join(",")));
    }
    format!("{{{}}}", fields.join(","))
}

fn test(random: &mut Random) -> String {
    let number = random.below(520);
    let compare = random.of(&["<", "<=", ">", ">=", "=", "<>"]);
    match random.below(16) {
        0 => format!("n {compare} {number}"),
        1 => format!("n BETWEEN {} AND {number}", random.below(400)),
        2 => format!("n IN ({number}, {}, 7)", random.below(500)),
        3 => format!("r {compare} {}", random.below(90)),
        4 => format!("s {compare} 'a'"),
        5 => {
            format!("{} IS {}NULL", random.of(&["n", "s", "o", "l", "t"]), random.of(&["", "NOT "]))
        }
        6 => "t".to_owned(),
        7 => format!("o.x < {}", random.below(9)),
        8 => format!("NOT ({})", test(random)),
        9 => format!("k {compare} {}", random.below(45)),
        10 => format!("k {}BETWEEN 10 AND {}", random.of(&["", "NOT "]), random.below(40)),
        11 => format!("c {}IN ('LA', 'SF', 'XX')", random.of(&["", "NOT "])),
        12 => format!("{} {compare} c", random.of(&["'BOS'", "'LA'", "'Z'"])),
        13 => format!("{} = {}", random.of(&["b", "t"]), random.of(&["true", "false"])),
        14 => format!("{} < {}", random.of(&["n", "k"]), random.of(&["-9", "NULL"])),
        _ => format!("({} {} {})", test(random), random.of(&["AND", "OR"]), test(random)),
    }
}

const MEASURES: &[&str] = &[
    "count(*)",
    "count(n)",
    "count(t)",
    "sum(k)",
    "sum(n)",
    "sum(o.x)",
    "avg(k)",
    "min(n)",
    "max(n)",
    "min(k)",
    "max(s)",
    "min(c)",
    "max(b)",
    "count(DISTINCT s)",
    "count(DISTINCT c)",
    "count(DISTINCT k)",
    "min(r)",
    "max(r)",
    "sum(r)",
    "avg(r)",
    "count(r)",
    "count(DISTINCT r)",
];

fn query(random: &mut Random, table: &str) -> String {
    let filter = match random.below(4) {
        0 => String::new(),
        _ => format!(" WHERE {}", test(random)),
    };
    let what = match random.below(10) {
        0 => "*".to_owned(),
        1 => "n, o, l, s".to_owned(),
        2 => return format!("SELECT array_length(l), count(*) FROM {table}{filter} GROUP BY 1"),
        _ => String::new(),
    };
    if !what.is_empty() {
        return format!("SELECT {what} FROM {table}{filter}");
    }
    let mut keys = Vec::new();
    for _ in 0..random.below(5) {
        let key = random.of(&["s", "t", "o.x", "c", "k", "b", "n", "r"]);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let measures: Vec<_> = (0..=random.below(4)).map(|_| random.of(MEASURES)).collect();
    let named = (0..).zip(&measures).map(|(at, measure)| format!("{measure} AS m{at}"));
    let outputs = keys.iter().map(|key| (*key).to_owned()).chain(named).collect::<Vec<_>>();
    let mut sql = format!("SELECT {} FROM {table}{filter}", outputs.join(", "));
    if !keys.is_empty() {
        write!(sql, " GROUP BY {}", keys.join(", ")).unwrap();
    }
    sql
}

fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns: Vec<_> =
            columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cell = |(column, text): (&ArrayRef, &ArrayFormatter<'_>)| {
                let floats = column.as_any().downcast_ref::<Float64Array>();
                match floats.filter(|floats| floats.is_valid(row)) {
                    // The last digits of a sum are as its floats were added; zeros are alike.
                    Some(floats) => format!("{:.9e}", floats.value(row) + 0.0),
                    None => text.value(row).to_string(),
                }
            };
            let cells = batch.columns().iter().zip(&columns).map(cell);
            rows.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    rows.sort_unstable();
    rows
}

/// The records as a table of `DataFusion`'s own.
fn table(records: &BTreeMap<i64, String>, schema: &SchemaRef) -> Arc<MemTable> {
    let text: String = records.values().fold(String::new(), |text, json| text + json + "\n");
    let reader = ReaderBuilder::new(Arc::clone(schema)).build(text.as_bytes()).unwrap();
    let batches = reader.collect::<Result<Vec<_>, _>>().unwrap();
    Arc::new(MemTable::try_new(Arc::clone(schema), vec![batches]).unwrap())
}

/// A revision of a collection, and the records that it had.
type State = (Revision, BTreeMap<i64, String>);

/// What is done to a collection before its records are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    /// Everything is in cells that nothing changed since.
    Settled,
    /// There are changes before and after a checkpoint.
    Changed,
    /// Every record is deleted.
    Emptied,
}

/// A collection, and what it had at two of its revisions.
fn collection(fate: Fate) -> (Database, [State; 2]) {
    let db = Database::memory().unwrap();
    let table = db.create_collection("t", KeyKind::I64).unwrap();
    for (name, path) in
        [("by-k", "k"), ("by-n", "n"), ("by-r", "r"), ("by-c", "c"), ("by-x", "o.x")]
    {
        table.create_index(&IndexDefinition::new(name, &[path]).unwrap()).unwrap();
    }
    let mut random = Random(7 + fate as u64);
    let mut records = BTreeMap::new();
    let mut states = Vec::new();
    for round in 0..4 {
        let mut transaction = db.transaction();
        for _ in 0..if fate == Fate::Settled && round > 0 { 1 } else { 3_000 } {
            let key = i64::try_from(random.below(5_000)).unwrap();
            if random.below(6) == 0 {
                transaction.delete_records("t", &[key.into()]).unwrap();
                records.remove(&key);
            } else {
                let json = record(&mut random);
                transaction.put_record("t", &key.into(), json.as_bytes()).unwrap();
                records.insert(key, json);
            }
        }
        if fate == Fate::Emptied && round == 3 {
            let keys = records.keys().map(|key| (*key).into()).collect::<Vec<_>>();
            transaction.delete_records("t", &keys).unwrap();
            records.clear();
        }
        transaction.commit(&CommitOptions::default()).unwrap();
        // A commit that changes nothing makes no revision.
        states.push((table.head().unwrap().revision(), records.clone()));
        if round == 2 || fate == Fate::Settled {
            db.checkpoint().unwrap();
        }
    }
    (db, [states[1].clone(), states[3].clone()])
}

/// How many queries were asked how they are answered, and how many of them from encoded columns.
type Asked = (usize, usize);

fn compare(session: &Session, (revision, records): &State, asked: &mut Asked) {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let fields = "k, c, b, n, r, s, t, o, l";
    let ours = format!("(SELECT {fields} FROM t FOR SYSTEM_TIME AS OF {revision}) AS t");
    let schema = session.query(&format!("SELECT * FROM {ours}")).unwrap().schema();
    let mut config = SessionConfig::new();
    config.options_mut().sql_parser.enable_ident_normalization = false;
    let theirs = SessionContext::new_with_config(config);
    theirs.register_table("t", table(records, &schema)).unwrap();
    let mut random = Random(revision.0 + 1_000 * asked.0 as u64);
    for index in 0..QUERIES {
        let seed = random.0;
        let sql = query(&mut random, &ours);
        if index % ASKED == 0 {
            let plan = session.query(&format!("EXPLAIN {sql}")).unwrap();
            let plan = rows(&plan.collect::<Result<Vec<_>, _>>().unwrap());
            asked.0 += 1;
            asked.1 += usize::from(plan.iter().any(|line| line.contains("FastAggregate: ")));
        }
        let of_table = query(&mut Random(seed), "t");
        // Their sums of integers wrap around.
        let checked = ["k", "n", "o.x"].iter().fold(of_table.clone(), |sql, of| {
            let wide = format!("CAST(sum(CAST({of} AS DECIMAL(38, 0))) AS BIGINT)");
            sql.replace(&format!("sum({of})"), &wide)
        });
        let expected = runtime.block_on(async { theirs.sql(&checked).await?.collect().await });
        let expected = expected.map(|batches| rows(&batches)).ok();
        // From the second time on there is a plan.
        for _ in 0..if index % ASKED == 0 { 3 } else { 1 } {
            let found = session.query(&sql).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            if let Err(error) = &found {
                let why = error.to_string();
                assert!(why.contains("sum") && why.contains("is beyond BIGINT"), "{why}");
            }
            let found = found.map(|batches| rows(&batches)).ok();
            assert_eq!(found, expected, "{revision}: {of_table}");
        }
    }
}

#[test]
fn random_queries_are_answered_as_over_a_table_in_memory() {
    let mut asked = (0, 0);
    for fate in [Fate::Settled, Fate::Changed, Fate::Emptied] {
        let (db, states) = collection(fate);
        let session = Session::new(db, SessionOptions::default());
        for state in &states {
            compare(&session, state, &mut asked);
        }
    }
    let (asked, fast) = asked;
    assert!(fast * 100 >= asked * FAST_MIN, "{fast} of {asked} from encoded columns");
}
