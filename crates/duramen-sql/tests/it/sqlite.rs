//! Random queries, answered here and by `SQLite`, which plans and runs them in another way.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type, UInt64Type};
use duramen::{CommitOptions, Database, ErrorKind, IndexDefinition, KeyKind};
use duramen_sql::{Session, SessionOptions};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::differential::Random;

const QUERIES: usize = 400;

/// Percent of the queries that may be refused.
const REFUSED_MAX: usize = 1;

/// The tables, with how many rows they have, and those of their columns that are not in all.
const TABLES: [(&str, u64, &[&str]); 3] =
    [("t", 30, &["a", "b", "s", "f"]), ("u", 20, &["a", "c", "s"]), ("v", 9, &["c", "d"])];

fn value(random: &mut Random, column: &str) -> Option<String> {
    if random.below(7) == 0 {
        return None;
    }
    Some(match column {
        "s" => format!("'{}'", random.of(&["", "a", "ab", "b", "B", "ba"])),
        "f" => format!("{}.{}", random.below(5), random.of(&["0", "25", "5"])),
        _ => random.below(6).to_string(),
    })
}

/// The same rows in both.
fn databases() -> (Session, Connection) {
    let db = Database::memory().unwrap();
    let sqlite = Connection::open_in_memory().unwrap();
    sqlite.execute_batch("PRAGMA case_sensitive_like = ON").unwrap();
    let mut random = Random(1);
    for (table, rows, columns) in TABLES {
        let records = db.create_collection(table, KeyKind::U64).unwrap();
        sqlite.execute_batch(&format!("CREATE TABLE {table} (i, {})", columns.join(", "))).unwrap();
        for row in 0..rows {
            let (mut json, mut values) = (format!("{{\"i\":{row}"), row.to_string());
            for column in columns {
                let value = value(&mut random, column);
                if let Some(value) = &value {
                    write!(json, ",\"{column}\":{}", value.replace('\'', "\"")).unwrap();
                } else if random.below(2) == 0 {
                    write!(json, ",\"{column}\":null").unwrap();
                }
                write!(values, ", {}", value.unwrap_or_else(|| "NULL".to_owned())).unwrap();
            }
            json.push('}');
            records.put(row, json, &CommitOptions::default()).unwrap();
            sqlite.execute_batch(&format!("INSERT INTO {table} VALUES ({values})")).unwrap();
        }
        let index = IndexDefinition::new("by", &[columns[0]]).unwrap();
        records.create_index(&index).unwrap();
    }
    (Session::new(db, SessionOptions::default()), sqlite)
}

/// The columns that an expression may name.
#[derive(Debug, Clone, Default)]
struct Scope {
    integers: Vec<String>,
    texts: Vec<String>,
    tables: usize,
}

impl Scope {
    fn add(&mut self, table: &str, alias: &str) {
        let (_, _, columns) = TABLES.iter().find(|of| of.0 == table).unwrap();
        for column in ["i"].iter().chain(*columns) {
            let name = format!("{alias}.{column}");
            match *column {
                "s" => self.texts.push(name),
                "f" => {}
                _ => self.integers.push(name),
            }
        }
        self.tables += 1;
    }
}

fn one<'a>(random: &mut Random, of: &'a [String]) -> &'a str {
    &of[usize::try_from(random.below(of.len() as u64)).unwrap()]
}

fn integer(random: &mut Random, scope: &Scope, depth: u32) -> String {
    let which = if depth == 0 { random.below(4) } else { random.below(13) };
    let next = |random: &mut Random| integer(random, scope, depth - 1);
    match which {
        0..=2 => one(random, &scope.integers).to_owned(),
        3 => random.below(6).to_string(),
        4 => format!("({} + {})", next(random), next(random)),
        5 => format!("({} - {})", next(random), next(random)),
        6 => format!("({} * {})", next(random), 1 + random.below(3)),
        7 => format!("({} / {})", next(random), 1 + random.below(3)),
        8 => format!("coalesce({}, {})", next(random), next(random)),
        9 => format!("nullif({}, {})", next(random), next(random)),
        10 => format!("abs({})", next(random)),
        11 if !scope.texts.is_empty() => format!("length({})", text(random, scope, depth - 1)),
        _ => {
            let condition = condition(random, scope, depth - 1);
            format!("CASE WHEN {condition} THEN {} ELSE {} END", next(random), next(random))
        }
    }
}

fn text(random: &mut Random, scope: &Scope, depth: u32) -> String {
    let which = if depth == 0 { random.below(4) } else { random.below(8) };
    let next = |random: &mut Random| text(random, scope, depth - 1);
    match which {
        0..=2 if !scope.texts.is_empty() => one(random, &scope.texts).to_owned(),
        4 => format!("({} || {})", next(random), next(random)),
        5 => format!("upper({})", next(random)),
        6 => format!("substr({}, {}, {})", next(random), 1 + random.below(2), random.below(3)),
        7 => format!("coalesce({}, {})", next(random), next(random)),
        _ => format!("'{}'", random.of(&["", "a", "ab", "B"])),
    }
}

/// A table of a subquery, which sees what is outside.
fn inner(random: &mut Random, scope: &Scope) -> (String, String, Scope) {
    let table = random.of(&["t", "u", "v"]).to_owned();
    let alias = format!("q{}", scope.tables);
    let mut within = Scope { tables: scope.tables, ..Scope::default() };
    within.add(&table, &alias);
    (table, alias, within)
}

fn both(within: &Scope, outer: &Scope) -> Scope {
    Scope {
        integers: [within.integers.clone(), outer.integers.clone()].concat(),
        texts: [within.texts.clone(), outer.texts.clone()].concat(),
        tables: within.tables,
    }
}

fn condition(random: &mut Random, scope: &Scope, depth: u32) -> String {
    let compare = random.of(&["=", "=", "<", "<=", ">", ">=", "<>"]);
    let simple = depth.saturating_sub(1);
    let which = if depth == 0 { random.below(7) } else { random.below(17) };
    match which {
        0 | 1 => {
            format!("{} {compare} {}", integer(random, scope, simple), integer(random, scope, 0))
        }
        2 => format!("{} {compare} {}", text(random, scope, simple), text(random, scope, 0)),
        3 => format!("{} IS {}NULL", integer(random, scope, simple), random.of(&["", "NOT "])),
        4 => format!("{} IN (1, {}, 4)", integer(random, scope, simple), random.below(6)),
        5 => format!("{} BETWEEN 1 AND {}", integer(random, scope, simple), random.below(6)),
        6 => format!("{} LIKE '{}'", text(random, scope, 0), random.of(&["a%", "%b", "_", "%a%"])),
        7 | 8 => format!(
            "({} AND {})",
            condition(random, scope, depth - 1),
            condition(random, scope, depth - 1)
        ),
        9 | 10 => format!(
            "({} OR {})",
            condition(random, scope, depth - 1),
            condition(random, scope, depth - 1)
        ),
        11 => format!("NOT ({})", condition(random, scope, depth - 1)),
        12 => format!(
            "{} IS {}DISTINCT FROM {}",
            integer(random, scope, 0),
            random.of(&["", "NOT "]),
            integer(random, scope, 0)
        ),
        13 | 14 => {
            let (table, alias, within) = inner(random, scope);
            let condition = condition(random, &both(&within, scope), depth - 1);
            let not = random.of(&["", "NOT "]);
            format!("{not}EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {condition})")
        }
        15 => {
            let (table, alias, within) = inner(random, scope);
            let seen = if random.below(2) == 0 { both(&within, scope) } else { within.clone() };
            let condition = condition(random, &seen, depth - 1);
            let (of, column) = (integer(random, scope, 0), integer(random, &within, 0));
            let rows = match random.below(6) {
                0 => format!("max({column}) FROM {table} AS {alias} WHERE {condition}"),
                1 => format!(
                    "max({column}) FROM {table} AS {alias} WHERE {condition} GROUP BY {}",
                    one(random, &within.integers)
                ),
                2 => format!(
                    "{column} FROM {table} AS {alias} WHERE {condition} ORDER BY {alias}.i LIMIT 2"
                ),
                _ => format!("{column} FROM {table} AS {alias} WHERE {condition}"),
            };
            let not = random.of(&["", "NOT "]);
            format!("{of} {not}IN (SELECT {rows})")
        }
        _ => {
            let (table, alias, within) = inner(random, scope);
            let condition = condition(random, &both(&within, scope), depth - 1);
            let of = integer(random, scope, 0);
            let aggregate = aggregate(random, &within);
            format!("{of} {compare} (SELECT {aggregate} FROM {table} AS {alias} WHERE {condition})")
        }
    }
}

fn aggregate(random: &mut Random, scope: &Scope) -> String {
    let of = integer(random, scope, 1);
    match random.below(8) {
        0 => "count(*)".to_owned(),
        1 => format!("count({of})"),
        2 => format!("count(DISTINCT {of})"),
        3 => format!("min({of})"),
        4 => format!("max({of})"),
        5 => format!("sum(DISTINCT {of})"),
        6 => format!("sum({of}) FILTER (WHERE {})", condition(random, scope, 0)),
        _ => format!("sum({of})"),
    }
}

/// Some rows with the columns of a table.
fn source(random: &mut Random, table: &str, alias: &str) -> String {
    let mut scope = Scope::default();
    scope.add(table, alias);
    let (_, _, columns) = TABLES.iter().find(|of| of.0 == table).unwrap();
    let all = columns.join(", ");
    let mut which = || condition(random, &scope, 1).replace(&format!("{alias}."), "");
    let (one, other) = (which(), which());
    let rows = match random.below(14) {
        0 | 1 => format!("SELECT i, {all} FROM {table} WHERE {one}"),
        2 => format!("SELECT max(i) AS i, {all} FROM {table} WHERE {one} GROUP BY {all}"),
        3 => format!("SELECT i, 2 AS {all} FROM {table} WHERE {one}"),
        4 => format!("SELECT DISTINCT 3 AS i, {all} FROM {table}"),
        5 => format!(
            "SELECT i, {all} FROM {table} WHERE {one} UNION ALL \
             SELECT i, {all} FROM {table} WHERE {other}"
        ),
        6 => format!("SELECT i, {all} FROM {table} WHERE {one} ORDER BY i DESC LIMIT 5"),
        7 => format!("SELECT i, {all} FROM {table} WHERE {} = 2", columns[0]),
        8 => format!(
            "SELECT i, {all} FROM {table} EXCEPT SELECT i, {all} FROM {table} WHERE {other}"
        ),
        _ => return format!("{table} AS {alias}"),
    };
    format!("({rows}) AS {alias}")
}

/// What stands behind `FROM`, and what may be named of it.
fn from(random: &mut Random, depth: u32) -> (String, Scope) {
    let mut scope = Scope::default();
    let mut text = String::new();
    for index in 0..=random.below(3) {
        let table = random.of(&["t", "u", "v"]);
        let alias = format!("x{index}");
        let source = source(random, table, &alias);
        scope.add(table, &alias);
        if index == 0 {
            text = source;
            continue;
        }
        let kind =
            random.of(&["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
        let (left, right) = (format!("x{}", random.below(index)), &alias);
        let named = |random: &mut Random, alias: &str| {
            let of: Vec<_> = scope.integers.iter().filter(|of| of.starts_with(alias)).collect();
            of[usize::try_from(random.below(of.len() as u64)).unwrap()].clone()
        };
        let mut on = format!("{} = {}", named(random, &left), named(random, right));
        if random.below(3) == 0 {
            // Without subqueries.
            on = format!("{on} AND {}", condition(random, &scope, 0));
        }
        text = format!("{text} {kind} {source} ON {on}");
    }
    scope.tables += 1 + usize::try_from(depth).unwrap();
    (text, scope)
}

/// A query, how many columns it has, and whether they are grouped.
fn select(random: &mut Random, depth: u32) -> (String, usize) {
    let (from, scope) = from(random, depth);
    let mut sql = String::new();
    let filter = match random.below(4) {
        0 => String::new(),
        _ => format!(" WHERE {}", condition(random, &scope, depth)),
    };
    let columns = match random.below(4) {
        0 => {
            let group: Vec<_> = (0..random.below(3))
                .map(|_| match random.below(2) {
                    0 => one(random, &scope.integers).to_owned(),
                    _ => format!("({} + 0)", integer(random, &scope, 1)),
                })
                .collect();
            let aggregates: Vec<_> =
                (0..=random.below(2)).map(|_| aggregate(random, &scope)).collect();
            let columns = [group.clone(), aggregates.clone()].concat();
            sql = format!("SELECT {} FROM {from}{filter}", columns.join(", "));
            if !group.is_empty() {
                write!(sql, " GROUP BY {}", group.join(", ")).unwrap();
            }
            if random.below(3) == 0 {
                let (of, least) = (aggregate(random, &scope), random.below(4));
                write!(sql, " HAVING {of} > {least}").unwrap();
            }
            columns
        }
        1 => {
            let by = one(random, &scope.integers).to_owned();
            let window = match random.below(4) {
                0 => format!("rank() OVER (ORDER BY {by} NULLS FIRST)"),
                1 => format!(
                    "dense_rank() OVER (PARTITION BY {} ORDER BY {by} DESC NULLS LAST)",
                    one(random, &scope.integers)
                ),
                2 => format!("sum({}) OVER (PARTITION BY {by})", integer(random, &scope, 0)),
                _ => format!("count(*) OVER (ORDER BY {by} NULLS LAST)"),
            };
            vec![integer(random, &scope, 1), window]
        }
        _ => {
            let mut columns: Vec<_> =
                (0..=random.below(2)).map(|_| integer(random, &scope, 2)).collect();
            match random.below(4) {
                0 | 1 => columns.push(text(random, &scope, 1)),
                2 => {
                    let (table, alias, within) = inner(random, &scope);
                    let condition = condition(random, &both(&within, &scope), 1);
                    let aggregate = aggregate(random, &within);
                    columns.push(format!(
                        "(SELECT {aggregate} FROM {table} AS {alias} WHERE {condition})"
                    ));
                }
                _ => {}
            }
            columns
        }
    };
    if sql.is_empty() {
        let distinct = random.of(&["", "", "DISTINCT "]);
        sql = format!("SELECT {distinct}{} FROM {from}{filter}", columns.join(", "));
    }
    (sql, columns.len())
}

/// A query whose rows are in an order that leaves nothing open, or in any.
fn query(random: &mut Random) -> String {
    let (mut sql, columns) = select(random, 2);
    if random.below(8) == 0 {
        let (t, u) = (random.of(&["t", "u", "v"]), random.of(&["t", "u", "v"]));
        let (mut left, mut right) = (Scope::default(), Scope::default());
        left.add(t, "l");
        right.add(u, "r");
        let operator = random.of(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT"]);
        sql = format!(
            "SELECT {}, 1 FROM {t} AS l WHERE {} {operator} SELECT {}, 1 FROM {u} AS r",
            integer(random, &left, 1),
            condition(random, &left, 2),
            integer(random, &right, 1)
        );
        return sql;
    }
    if random.below(3) == 0 {
        let by: Vec<_> = (1..=columns)
            .map(|column| {
                let way = random.of(&["", " DESC"]);
                format!("{column}{way} NULLS {}", random.of(&["FIRST", "LAST"]))
            })
            .collect();
        let limit = 1 + random.below(9);
        sql = format!("{sql} ORDER BY {} LIMIT {limit} OFFSET {}", by.join(", "), random.below(3));
    }
    sql
}

fn shown(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "NULL".to_owned();
    }
    match array.data_type() {
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Utf8View => format!("'{}'", array.as_string_view().value(row)),
        DataType::Utf8 => format!("'{}'", array.as_string::<i32>().value(row)),
        DataType::Null => "NULL".to_owned(),
        other => panic!("{other}"),
    }
}

fn here(session: &Session, sql: &str) -> duramen::Result<Vec<String>> {
    let mut rows = Vec::new();
    for batch in session.query(sql)? {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let values: Vec<_> = batch.columns().iter().map(|column| shown(column, row)).collect();
            rows.push(values.join("|"));
        }
    }
    Ok(rows)
}

fn there(sqlite: &Connection, sql: &str) -> Vec<String> {
    let mut statement = sqlite.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let columns = statement.column_count();
    let mut found = statement.query([]).unwrap();
    let mut rows = Vec::new();
    while let Some(row) = found.next().unwrap_or_else(|error| panic!("{sql}: {error}")) {
        let value = |column| match row.get_ref(column).unwrap() {
            ValueRef::Null => "NULL".to_owned(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Text(text) => format!("'{}'", str::from_utf8(text).unwrap()),
            ValueRef::Blob(_) => panic!("{sql}"),
        };
        rows.push((0..columns).map(value).collect::<Vec<_>>().join("|"));
    }
    rows
}

#[test]
fn answers_are_those_of_sqlite() {
    let (session, sqlite) = databases();
    let mut random = Random(4);
    let mut refused = BTreeMap::new();
    for _ in 0..QUERIES {
        let sql = query(&mut random);
        let mut expected = there(&sqlite, &sql);
        let mut found = match here(&session, &sql) {
            Ok(found) => found,
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::Internal, "{sql}: {error}");
                refused.insert(error.to_string(), sql);
                continue;
            }
        };
        if !sql.contains(" OFFSET ") {
            expected.sort_unstable();
            found.sort_unstable();
        }
        assert_eq!(found, expected, "{sql}");
    }
    assert!(refused.len() * 100 <= QUERIES * REFUSED_MAX, "{refused:#?}");
}
