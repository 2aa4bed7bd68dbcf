use super::*;
use crate::limits::AGGREGATE_BYTES_MAX;
use crate::memory::Evict;
use crate::tree::group::GroupId;
use crate::tree::schema::SpaceId;
use crate::{
    AggregateValue, ColumnField, ColumnValue, CommitOptions, Database, KeyKind, Measured, Revision,
};

const ROWS: i64 = 9_000;

fn path(fields: &[ColumnField], name: &str) -> PathId {
    fields.iter().find(|field| field.name == name).unwrap().path
}

/// A record of which every field is there, but for `gap`, which some have.
fn record(key: i64) -> String {
    let team = ["oak", "ash", "elm"][usize::try_from(key % 3).unwrap()];
    let gap = if key % 5 == 0 { String::new() } else { format!(",\"gap\":{}", key % 7) };
    let (age, wide, is_on) = (18 + key % 48, key * 1_000_000_007, key % 2 == 0);
    let price = format!("{}.{:02}", key % 90, key % 13);
    // Integers, decimals of several scales, floats, and what floats only come near to.
    let mixed = match key % 9 {
        0 => "-7".to_owned(),
        1 => "1.25e1".to_owned(),
        2 => "0.10000000000000000001".to_owned(),
        3 => "-0.0".to_owned(),
        4 => "\"none\"".to_owned(),
        rest => format!("{}.{rest}", key % 60 - 30),
    };
    format!(
        "{{\"age\":{age},\"wide\":{wide},\"team\":\"{team}\",\"on\":{is_on},\"price\":{price},\
         \"mixed\":{mixed}{gap}}}"
    )
}

/// A collection with changes before and after a checkpoint, and one more revision.
fn collection() -> Database {
    let db = Database::memory().unwrap();
    db.create_collection("r", KeyKind::I64).unwrap();
    let put = |keys: &mut dyn Iterator<Item = i64>, of: i64| {
        let mut transaction = db.transaction();
        for key in keys {
            transaction.put_record("r", &key.into(), record(key + of).as_bytes()).unwrap();
        }
        transaction.commit(&CommitOptions::default()).unwrap();
    };
    put(&mut (0..ROWS), 0);
    db.checkpoint().unwrap();
    put(&mut (0..ROWS).step_by(97), 1);
    let mut transaction = db.transaction();
    let keys: Vec<_> = (0..ROWS).step_by(101).map(crate::Key::from).collect();
    transaction.delete_records("r", &keys).unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    put(&mut (0..ROWS).step_by(89), 2);
    db
}

fn answer(columns: &Columns, plan: &AggregatePlan) -> Aggregates {
    let mut all = plan.start();
    for part in 0..columns.parts() {
        let mut found = plan.start();
        columns.aggregate(part..part + 1, plan, &mut found).unwrap();
        all.merge(found);
    }
    all
}

/// The values of the columns of a plan, row by row.
fn values(columns: &Columns, plan: &AggregatePlan) -> Vec<Vec<AggregateValue>> {
    let mut all = Vec::new();
    for part in 0..columns.parts() {
        let rows = columns.rows(part).unwrap();
        let chunks = plan.columns.iter().map(|column| columns.read(&rows, column.path).unwrap());
        let chunks: Vec<_> = chunks.collect();
        for row in 0..rows.len() {
            let value = |(chunk, of): (&ColumnChunk, &AggregateColumn)| match chunk.get(row) {
                value if of.kind == ValueKind::Float => {
                    let value = value.float();
                    value.map_or(AggregateValue::Missing, |it| AggregateValue::Float(it.to_bits()))
                }
                ColumnValue::Bool(value) => AggregateValue::Bool(value),
                ColumnValue::Int(value) => AggregateValue::Int(value),
                ColumnValue::Text(text) => AggregateValue::Text(text.into()),
                _ => AggregateValue::Missing,
            };
            all.push(chunks.iter().zip(&plan.columns).map(value).collect());
        }
    }
    all
}

fn integer(value: &AggregateValue) -> Option<i64> {
    match value {
        AggregateValue::Int(value) => Some(*value),
        _ => None,
    }
}

fn float(value: &AggregateValue) -> Option<f64> {
    match value {
        AggregateValue::Float(bits) => Some(f64::from_bits(*bits)),
        _ => None,
    }
}

fn compared(column: usize, comparison: Comparison, value: f64) -> RowFilter {
    RowFilter::Column(column, ValueTest::Float(comparison, value.to_bits()))
}

fn within(column: usize, low: i64, high: i64) -> RowFilter {
    let ranges = vec![RangeOfInt { low, high }];
    RowFilter::Column(column, ValueTest::Int { ranges, is_inside: true })
}

fn plan(columns: &Columns) -> AggregatePlan {
    let fields = columns.root().unwrap().fields;
    let column = |name, kind| AggregateColumn { path: path(&fields, name), kind };
    AggregatePlan {
        columns: vec![
            column("age", ValueKind::Int),
            column("wide", ValueKind::Int),
            column("team", ValueKind::Text),
            column("on", ValueKind::Bool),
            column("gap", ValueKind::Int),
            column("price", ValueKind::Float),
            column("mixed", ValueKind::Float),
        ],
        filter: RowFilter::All(Vec::new()),
        keys: Vec::new(),
        measures: vec![
            Measure::Rows,
            Measure::Count(4),
            Measure::Sum(0),
            Measure::Sum(1),
            Measure::Least(1),
            Measure::Greatest(4),
            Measure::Greatest(2),
            Measure::Distinct(4),
            Measure::Distinct(2),
            Measure::FloatSum(5),
            Measure::FloatSum(6),
            Measure::Least(5),
            Measure::Greatest(6),
            Measure::Count(6),
            Measure::Distinct(5),
        ],
    }
}

/// What a plan finds, one row after the other.
fn expected(
    rows: &[Vec<AggregateValue>],
    holds: impl Fn(&[AggregateValue]) -> bool,
    keys: &[usize],
    plan: &AggregatePlan,
) -> Vec<String> {
    let mut groups = std::collections::BTreeMap::<Vec<AggregateValue>, Vec<&[_]>>::new();
    if keys.is_empty() {
        groups.insert(Vec::new(), Vec::new());
    }
    for row in rows.iter().filter(|row| holds(row)) {
        let key = keys.iter().map(|key| row[*key].clone()).collect();
        groups.entry(key).or_default().push(row);
    }
    let found = groups.into_iter().map(|(key, rows)| {
        let there = |column: usize| {
            rows.iter().map(move |row| &row[column]).filter(|v| **v != AggregateValue::Missing)
        };
        let measure = |measure: &Measure| match *measure {
            Measure::Rows => rows.len().to_string(),
            Measure::Count(column) => there(column).count().to_string(),
            Measure::Sum(column) => {
                let all = there(column).filter_map(integer);
                format!("{} {}", there(column).count(), all.map(i128::from).sum::<i128>())
            }
            Measure::FloatSum(column) => {
                let all = there(column).map(|value| float(value).unwrap());
                // Compensated sums agree to more digits than these.
                format!("{} {:.9e}", there(column).count(), all.fold(0.0, |sum, value| sum + value))
            }
            Measure::Least(column) => {
                format!("{:?}", there(column).min_by(|a, b| a.value().order(b.value())))
            }
            Measure::Greatest(column) => {
                format!("{:?}", there(column).max_by(|a, b| a.value().order(b.value())))
            }
            Measure::Distinct(column) => {
                there(column).collect::<std::collections::BTreeSet<_>>().len().to_string()
            }
        };
        format!("{key:?} {:?}", plan.measures.iter().map(measure).collect::<Vec<_>>())
    });
    found.collect()
}

fn texts(found: &Aggregates) -> Vec<String> {
    let mut all: Vec<_> = (0..found.groups())
        .map(|group| {
            let key: Vec<_> = found.keys(group).cloned().collect();
            let measured = found.measured().iter().map(|measured| match measured {
                Measured::Count(counts) => counts[group].to_string(),
                Measured::Sum(sums) => format!("{} {}", sums[group].count, sums[group].total),
                Measured::FloatSum(sums) => {
                    format!("{} {:.9e}", sums[group].count, sums[group].total())
                }
                Measured::Bound(bounds) => {
                    let bound = Some(&bounds[group]).filter(|v| **v != AggregateValue::Missing);
                    format!("{bound:?}")
                }
                Measured::Distinct(sets) => sets[group].len().to_string(),
            });
            let measured = measured.collect::<Vec<_>>();
            (key.clone(), format!("{key:?} {measured:?}"))
        })
        .collect();
    all.sort();
    all.into_iter().map(|(_, text)| text).collect()
}

type Holds = fn(&[AggregateValue]) -> bool;

fn filters() -> Vec<(RowFilter, Holds)> {
    let is_oak = ValueTest::Text(Comparison::Equal, "oak".into());
    let in_gap = RangeOfInt { low: 2, high: 4 };
    let not_in_gap = ValueTest::Int { ranges: vec![in_gap], is_inside: false };
    vec![
        (RowFilter::All(Vec::new()), |_| true),
        (within(0, 41, i64::MAX), |row| integer(&row[0]) > Some(40)),
        (
            RowFilter::All(vec![within(0, 31, 49), RowFilter::Column(3, ValueTest::Bool(true))]),
            |row| {
                integer(&row[0]).is_some_and(|age| 30 < age && age < 50)
                    && row[3] == AggregateValue::Bool(true)
            },
        ),
        (
            RowFilter::Any(vec![
                RowFilter::Column(2, is_oak),
                RowFilter::Column(4, ValueTest::IsMissing),
            ]),
            |row| row[2] == AggregateValue::Text("oak".into()) || row[4] == AggregateValue::Missing,
        ),
        (RowFilter::Column(4, not_in_gap), |row| {
            integer(&row[4]).is_some_and(|gap| !(2..=4).contains(&gap))
        }),
        (within(1, 5_000_000_000, 9_000_000_000_000), |row| {
            integer(&row[1]).is_some_and(|wide| (5_000_000_000..=9_000_000_000_000).contains(&wide))
        }),
        (within(0, 1_000, 2_000), |_| false),
        (compared(5, Comparison::Less, 30.05), |row| float(&row[5]) < Some(30.05)),
        (compared(5, Comparison::GreaterOrEqual, 7.01), |row| float(&row[5]) >= Some(7.01)),
        (compared(5, Comparison::Equal, 50.11), |row| float(&row[5]) == Some(50.11)),
        (compared(5, Comparison::NotEqual, 50.11), |row| float(&row[5]) != Some(50.11)),
        (compared(5, Comparison::Greater, 1e300), |_| false),
        (compared(5, Comparison::LessOrEqual, f64::INFINITY), |_| true),
        (compared(6, Comparison::Less, 0.0), |row| float(&row[6]).is_some_and(|value| value < 0.0)),
        (compared(6, Comparison::Equal, -0.0), |row| float(&row[6]) == Some(0.0)),
        (RowFilter::Column(6, ValueTest::IsMissing), |row| row[6] == AggregateValue::Missing),
    ]
}

#[test]
fn aggregates_of_encoded_columns_are_those_of_their_values() {
    let db = collection();
    let records = db.collection("r").unwrap();
    for revision in [1, 2, 3, 4] {
        let columns = records.at(Revision(revision)).unwrap().columns().unwrap();
        check(&columns);
    }
}

/// Asks for every filter and key what the values say, row by row.
fn check(columns: &Columns) {
    let mut plan = plan(columns);
    let (rows, revision) = (values(columns, &plan), columns.revision());
    for (index, (filter, holds)) in filters().into_iter().enumerate() {
        for keys in [vec![], vec![2], vec![0], vec![2, 3], vec![4, 0, 2], vec![1], vec![5]] {
            plan.filter = filter.clone();
            plan.keys.clone_from(&keys);
            let found = texts(&answer(columns, &plan));
            let expected = expected(&rows, holds, &keys, &plan);
            assert_eq!(found, expected, "revision {revision}, filter {index}, keys {keys:?}");
        }
    }
}

#[test]
fn arrays_that_begin_and_end_within_row_groups_are_aggregated_alike() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let items = |keys: Range<i64>| keys.map(record).collect::<Vec<_>>().join(",");
    let (first, second) = (items(0..3_000), items(3_000..ROWS));
    let json = format!(r#"{{"data":[{{"items":[{first}]}},{{"items":[{second}]}}]}}"#);
    document.put(json, &CommitOptions::default()).unwrap();
    let patch = r#"[
        {"op":"remove","path":"/data/0/items/700"},
        {"op":"replace","path":"/data/1/items/5/age","value":33},
        {"op":"replace","path":"/data/1/items/5/team","value":"yew"},
        {"op":"remove","path":"/data/1/items/6/gap"}
    ]"#;
    document.patch(patch, &CommitOptions::default()).unwrap();
    for is_on_disk in [false, true] {
        if is_on_disk {
            db.checkpoint().unwrap();
        }
        for revision in [1, 2] {
            let snapshot = document.at(Revision(revision)).unwrap();
            check(&snapshot.columns(&"$.data[*].items[*]".parse().unwrap()).unwrap());
        }
    }
}

#[test]
fn heads_of_cells_tell_what_they_can() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    let mut transaction = db.transaction();
    for key in 0..ROWS {
        transaction.put_record("r", &key.into(), record(key).as_bytes()).unwrap();
    }
    transaction.commit(&CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    let columns = records.head().unwrap().columns().unwrap();
    let mut plan = plan(&columns);
    plan.measures = vec![Measure::Rows, Measure::Sum(0), Measure::Least(0), Measure::Distinct(2)];
    let work = *answer(&columns, &plan).work();
    // The last row group is small.
    let parts = columns.parts() as u64;
    assert_eq!((work.parts, work.rows), (parts, ROWS as u64));
    assert!(work.summarised + 1 >= parts && work.decoded <= 1, "{work:?}");
    plan.filter = within(0, 1_000, 2_000);
    let work = *answer(&columns, &plan).work();
    assert!(work.pruned + 1 >= parts && work.bytes == 0, "{work:?}");
}

#[test]
fn what_is_known_of_columns_goes_where_memory_is_short() {
    let db = collection();
    let columns = db.collection("r").unwrap().at(Revision(1)).unwrap().columns().unwrap();
    let plan = plan(&columns);
    let before = texts(&answer(&columns, &plan));
    let is_known = || {
        let cached = columns.views.of(&plan, columns.parts(), columns.tree.erasures());
        cached.part(0, (&plan, &(0..4_096))).is_some()
    };
    assert!(is_known());
    assert_eq!(texts(&answer(&columns, &plan)), before);
    let part = GroupId { space: SpaceId(0), group: 0 };
    assert!(!columns.views.evict(part), "it was used");
    assert!(columns.views.evict(part));
    assert!(!is_known());
    assert_eq!(texts(&answer(&columns, &plan)), before);
}

#[test]
fn what_is_known_of_columns_does_not_outlive_a_purge() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let items = (0..ROWS).map(record).collect::<Vec<_>>().join(",");
    document.put(format!("[{items}]"), &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    let columns = document.head().unwrap().columns(&"$[*]".parse().unwrap()).unwrap();
    let mut plan = plan(&columns);
    plan.measures = vec![Measure::Least(1)];
    let is_least = |key: i64| {
        let value = AggregateValue::Int(key * 1_000_000_007);
        let found = answer(&columns, &plan);
        matches!(&found.measured()[0], Measured::Bound(found) if *found == [value])
    };
    assert!(is_least(0));
    let place = crate::Target::parse("/0/wide").unwrap();
    let options = crate::PurgeOptions { at: None, commit: CommitOptions::default() };
    document.purge(&place, &options, &mut |_, _| std::ops::ControlFlow::Continue(())).unwrap();
    assert!(is_least(1));
}

/// Numbers that no cell has as integers or decimals, those beyond any float among them, and numbers
/// whose common scale takes them beyond 64 bits.
#[test]
fn numbers_of_any_form_are_bounded_and_added_up_alike() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    let number = |key: i64| match (key / 4_096, key % 2) {
        (0, 0) => "18446744073709551615".to_owned(),
        (0, _) => "18446744073709551614000".to_owned(),
        (1, _) => "1e400".to_owned(),
        _ if key % 4_096 == 7 => "0.5".to_owned(),
        _ => (1_760_000_000_000_000_000 + key % 89 * 4).to_string(),
    };
    let mut transaction = db.transaction();
    for key in 0..3 * 4_096 {
        let json = format!("{{\"n\":{}}}", number(key));
        transaction.put_record("r", &key.into(), json.as_bytes()).unwrap();
    }
    transaction.commit(&CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    let columns = records.head().unwrap().columns().unwrap();
    let fields = columns.root().unwrap().fields;
    let mut plan = AggregatePlan {
        columns: vec![AggregateColumn { path: path(&fields, "n"), kind: ValueKind::Float }],
        filter: RowFilter::All(Vec::new()),
        keys: Vec::new(),
        measures: vec![
            Measure::Count(0),
            Measure::FloatSum(0),
            Measure::Least(0),
            Measure::Greatest(0),
            Measure::Distinct(0),
        ],
    };
    let rows = values(&columns, &plan);
    let holds = |_: &[AggregateValue]| true;
    assert_eq!(texts(&answer(&columns, &plan)), expected(&rows, holds, &[], &plan));
    plan.filter = compared(0, Comparison::Less, 1e300);
    let holds = |row: &[AggregateValue]| float(&row[0]) < Some(1e300);
    assert_eq!(texts(&answer(&columns, &plan)), expected(&rows, holds, &[], &plan));
    plan.filter = compared(0, Comparison::Less, 1.8e18);
    let holds = |row: &[AggregateValue]| float(&row[0]) < Some(1.8e18);
    assert_eq!(texts(&answer(&columns, &plan)), expected(&rows, holds, &[], &plan));
}

#[test]
fn what_is_found_takes_no_more_memory_than_it_may() {
    const TEXT_BYTES: usize = 4_000;
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::I64).unwrap();
    let mut transaction = db.transaction();
    for key in 0..4_096 {
        let json = format!("{{\"t\":\"{}\"}}", format!("{key:08}").repeat(TEXT_BYTES / 8));
        transaction.put_record("r", &key.into(), json.as_bytes()).unwrap();
    }
    transaction.commit(&CommitOptions::default()).unwrap();
    let columns = records.head().unwrap().columns().unwrap();
    let fields = columns.root().unwrap().fields;
    let mut plan = AggregatePlan {
        columns: vec![AggregateColumn { path: path(&fields, "t"), kind: ValueKind::Text }],
        filter: RowFilter::All(Vec::new()),
        keys: vec![0],
        measures: vec![Measure::Rows, Measure::Least(0)],
    };
    let text_bytes = |found: &Aggregates| -> usize {
        let Measured::Bound(bounds) = &found.measured()[1] else { unreachable!() };
        let keys = (0..found.groups()).flat_map(|group| found.keys(group));
        keys.chain(bounds).map(AggregateValue::text_bytes).sum()
    };
    let mut found = plan.start();
    columns.aggregate(0..columns.parts(), &plan, &mut found).unwrap();
    assert!(found.is_full());
    let bytes = text_bytes(&found);
    assert!((1..=AGGREGATE_BYTES_MAX + TEXT_BYTES).contains(&bytes), "{bytes}");
    found.merge(answer(&columns, &plan));
    assert_eq!(text_bytes(&found), bytes);

    // A part of what is there fits in, and is not found again where another does not.
    plan.filter = RowFilter::Column(0, ValueTest::Text(Comparison::Less, "00000100".into()));
    let mut few = answer(&columns, &plan);
    assert!(!few.is_full() && few.groups() == 100);
    few.merge(found);
    assert!(few.is_full() && text_bytes(&few) == 200 * TEXT_BYTES);
    plan = AggregatePlan { keys: Vec::new(), measures: vec![Measure::Distinct(0)], ..plan };
    plan.filter = RowFilter::All(Vec::new());
    assert!(answer(&columns, &plan).is_full());
}
