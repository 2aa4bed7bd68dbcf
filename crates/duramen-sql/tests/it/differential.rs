//! Random queries, answered here and by `DataFusion` over tables made of the records' JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::ReaderBuilder;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use duramen::{CommitOptions, Database, KeyKind, Revision};
use duramen_sql::{Session, SessionOptions};
use tokio::runtime::Builder;

const QUERIES: usize = 150;

/// The generator `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[usize::try_from(self.below(words.len() as u64)).unwrap()]
    }
}

fn record(random: &mut Random) -> String {
    let mut fields = Vec::new();
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
        fields.push(format!("\"r\":{}.{}", random.below(90), random.below(100)));
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
    match random.below(10) {
        0 => format!("n {} {number}", random.of(&["<", "<=", ">", ">=", "=", "<>"])),
        1 => format!("n BETWEEN {} AND {number}", random.below(400)),
        2 => format!("n IN ({number}, {}, 7)", random.below(500)),
        3 => format!("r > {}", random.below(90)),
        4 => format!("s {} 'a'", random.of(&["=", "<>", ">"])),
        5 => {
            format!("{} IS {}NULL", random.of(&["n", "s", "o", "l", "t"]), random.of(&["", "NOT "]))
        }
        6 => "t".to_owned(),
        7 => format!("o.x < {}", random.below(9)),
        8 => format!("NOT ({})", test(random)),
        _ => format!("({} {} {})", test(random), random.of(&["AND", "OR"]), test(random)),
    }
}

fn query(random: &mut Random, table: &str) -> String {
    let mut sql = String::from("SELECT ");
    let group = random.of(&["", "s", "t", "o.x", "array_length(l)"]);
    match random.below(3) {
        0 => sql.push('*'),
        1 if group.is_empty() => sql.push_str("n, o, l, s"),
        _ => {
            if !group.is_empty() {
                write!(sql, "{group}, ").unwrap();
            }
            sql.push_str("count(*), count(n), min(n), max(s), sum(o.x), min(r), count(DISTINCT s)");
        }
    }
    let is_grouped = sql.contains("count(*)") && !group.is_empty();
    write!(sql, " FROM {table} WHERE {}", test(random)).unwrap();
    if is_grouped {
        write!(sql, " GROUP BY {group}").unwrap();
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
            let cells = columns.iter().map(|column| column.value(row).to_string());
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

/// A collection with updates and deletes, and what it had at two of its revisions.
fn collection() -> (Database, [State; 2]) {
    let db = Database::memory().unwrap();
    db.create_collection("t", KeyKind::I64).unwrap();
    let mut random = Random(7);
    let mut records = BTreeMap::new();
    let mut states = Vec::new();
    for round in 0..4 {
        let mut transaction = db.transaction();
        for _ in 0..3_000 {
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
        transaction.commit(&CommitOptions::default()).unwrap();
        states.push((Revision(round + 1), records.clone()));
        if round == 2 {
            db.checkpoint().unwrap();
        }
    }
    (db, [states[1].clone(), states[3].clone()])
}

#[test]
fn random_queries_are_answered_as_over_a_table_in_memory() {
    let (db, states) = collection();
    let session = Session::new(db, SessionOptions::default());
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let fields = "n, r, s, t, o, l";
    for (revision, records) in states {
        let ours = format!("(SELECT {fields} FROM t FOR SYSTEM_TIME AS OF {revision}) AS t");
        let schema = session.query(&format!("SELECT * FROM {ours}")).unwrap().schema();
        let mut config = SessionConfig::new();
        config.options_mut().sql_parser.enable_ident_normalization = false;
        let theirs = SessionContext::new_with_config(config);
        theirs.register_table("t", table(&records, &schema)).unwrap();
        let mut random = Random(revision.0);
        for _ in 0..QUERIES {
            let seed = random.0;
            let sql = query(&mut random, &ours);
            let found = session.query(&sql).unwrap().collect::<Result<Vec<_>, _>>();
            let sql = query(&mut Random(seed), "t");
            let expected = runtime.block_on(async { theirs.sql(&sql).await?.collect().await });
            assert_eq!(rows(&found.unwrap()), rows(&expected.unwrap()), "{revision}: {sql}");
        }
    }
}
