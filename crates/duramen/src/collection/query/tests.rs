use std::cmp::Ordering;

use serde_json::Value as Json;

use super::*;
use crate::limits::QUERY_PAGE_BYTES_MAX;
use crate::{CommitOptions, Database, IndexDefinition, Key, KeyKind, Revision, ScanOptions};

/// Numbers that are spread, the same in each run.
struct Spread(u64);

impl Spread {
    fn next(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % below as u64).unwrap()
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.next(list.len())]
    }
}

/// The values of fields: several are equal in other forms.
const SCALARS: [&str; 22] = [
    "null",
    "false",
    "true",
    "0",
    "-0.0",
    "1",
    "1.0",
    "1e0",
    "2",
    "-3",
    "2.5",
    "250e-2",
    "9007199254740993",
    "9007199254740992",
    "123456789012345678901234567890",
    "1e300",
    "\"\"",
    "\"a\"",
    "\"ab\"",
    "\"b\"",
    "\"a\\u0000\"",
    "\"\u{e4}\"",
];

const PATHS: [&str; 9] = ["a", "b", "c", "n.a", "n.b", "t[*]", "o[*].k", "gone", "b[*]"];

fn value(spread: &mut Spread) -> String {
    match spread.next(8) {
        0 => format!("[{},{}]", spread.of(&SCALARS), spread.of(&SCALARS)),
        1 => format!("{{\"a\":{}}}", spread.of(&SCALARS)),
        _ => spread.of(&SCALARS).to_owned(),
    }
}

fn record(spread: &mut Spread) -> String {
    let mut members = Vec::new();
    for name in ["a", "b", "c"] {
        if spread.next(5) > 0 {
            members.push(format!("\"{name}\":{}", value(spread)));
        }
    }
    if spread.next(3) > 0 {
        members.push(format!("\"n\":{{\"a\":{},\"b\":{}}}", value(spread), value(spread)));
    }
    if spread.next(3) > 0 {
        let elements: Vec<_> = (0..spread.next(4)).map(|_| value(spread)).collect();
        members.push(format!("\"t\":[{}]", elements.join(",")));
    }
    if spread.next(3) > 0 {
        let elements: Vec<_> =
            (0..spread.next(3)).map(|_| format!("{{\"k\":{}}}", value(spread))).collect();
        members.push(format!("\"o\":[{}]", elements.join(",")));
    }
    format!("{{{}}}", members.join(","))
}

fn literal(spread: &mut Spread) -> String {
    loop {
        let value = value(spread);
        if value != "null" {
            return value;
        }
    }
}

fn scalar(spread: &mut Spread) -> &'static str {
    SCALARS[1 + spread.next(SCALARS.len() - 1)]
}

fn filter(spread: &mut Spread, depth: usize) -> String {
    let path = spread.of(&PATHS);
    match spread.next(if depth == 0 { 9 } else { 13 }) {
        0 | 1 => format!("{path} {} {}", spread.of(&["=", "!="]), literal(spread)),
        2 | 3 => format!("{path} {} {}", spread.of(&["<", "<=", ">", ">="]), scalar(spread)),
        4 => format!(
            "{path} between {} and {}",
            spread.of(&["0", "1", "-9"]),
            spread.of(&["2", "9.5"])
        ),
        5 => {
            let list: Vec<_> = (0..spread.next(4)).map(|_| literal(spread)).collect();
            format!("{path} {}in ({})", spread.of(&["", "not "]), list.join(", "))
        }
        6 => format!("{path} is {}{}", spread.of(&["", "not "]), spread.of(&["null", "missing"])),
        7 => format!("{path} prefix {}", spread.of(&["\"\"", "\"a\"", "\"a\\u0000\""])),
        8 => format!("{path} contains {}", literal(spread)),
        9 => format!("not ({})", filter(spread, depth - 1)),
        10 => {
            let (one, other) = (literal(spread), literal(spread));
            let either = format!("({path} = {one} or {path} = {other})");
            format!("({}) and {either}", filter(spread, depth - 1))
        }
        _ => {
            let word = spread.of(&["and", "or"]);
            format!("({}) {word} ({})", filter(spread, depth - 1), filter(spread, depth - 1))
        }
    }
}

/// What `docs/queries.md` says, over JSON values.
mod naive {
    use super::*;

    pub(super) fn values<'j>(record: &'j Json, path: &RecordPath) -> Vec<&'j Json> {
        use crate::collection::record_path::RecordStep;
        let mut found = vec![record];
        for step in path.steps() {
            found = match step {
                RecordStep::Field(name) => {
                    found.iter().filter_map(|value| value.as_object()?.get(&**name)).collect()
                }
                RecordStep::Elements => {
                    found.iter().filter_map(|value| value.as_array()).flatten().collect()
                }
            };
        }
        found
    }

    /// A number as a sign, digits and a power of ten.
    fn decimal(text: &str) -> (i32, i64, String) {
        let text = text.to_ascii_lowercase();
        let (sign, text) = text.strip_prefix('-').map_or((1, &*text), |rest| (-1, rest));
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let zeros = digits.len() - digits.trim_start_matches('0').len();
        let exponent: i64 = exponent.parse().unwrap();
        let power = exponent + i64::try_from(whole.len()).unwrap() - i64::try_from(zeros).unwrap();
        let digits = digits.trim_matches('0').to_owned();
        if digits.is_empty() { (0, 0, digits) } else { (sign, power, digits) }
    }

    fn class(value: Option<&Json>) -> u8 {
        match value {
            None => 0,
            Some(Json::Null) => 1,
            Some(Json::Bool(_)) => 2,
            Some(Json::Number(_)) => 3,
            Some(Json::String(_)) => 4,
            Some(Json::Array(_)) => 5,
            Some(Json::Object(_)) => 6,
        }
    }

    pub(super) fn compare(a: Option<&Json>, b: Option<&Json>) -> Ordering {
        class(a).cmp(&class(b)).then_with(|| match (a, b) {
            (Some(Json::Bool(a)), Some(Json::Bool(b))) => a.cmp(b),
            (Some(Json::String(a)), Some(Json::String(b))) => a.cmp(b),
            (Some(Json::Number(a)), Some(Json::Number(b))) => {
                let (a, b) = (decimal(&a.to_string()), decimal(&b.to_string()));
                let magnitude = (a.1, &a.2).cmp(&(b.1, &b.2));
                a.0.cmp(&b.0).then(if a.0 < 0 { magnitude.reverse() } else { magnitude })
            }
            (Some(Json::Array(a)), Some(Json::Array(b))) => {
                let pairs = a.iter().zip(b).map(|(a, b)| compare(Some(a), Some(b)));
                pairs.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
            }
            (Some(Json::Object(a)), Some(Json::Object(b))) => {
                let sorted = |members: &'_ serde_json::Map<String, Json>| {
                    let mut members: Vec<_> =
                        members.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                    members.sort_by(|a, b| a.0.cmp(&b.0));
                    members
                };
                let (a, b) = (sorted(a), sorted(b));
                let pairs = a.iter().zip(&b);
                let pairs =
                    pairs.map(|(a, b)| a.0.cmp(&b.0).then_with(|| compare(Some(&a.1), Some(&b.1))));
                pairs.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
            }
            _ => Ordering::Equal,
        })
    }

    fn json(literal: &impl ToString) -> Json {
        serde_json::from_str(&literal.to_string()).unwrap()
    }

    fn test(test: &super::super::test::Test, value: &Json) -> bool {
        use std::ops::Bound;

        use super::super::test::Test;
        let order = |literal| {
            let literal = json(literal);
            let is_alike = class(Some(value)) == class(Some(&literal));
            is_alike.then(|| compare(Some(value), Some(&literal)))
        };
        match test {
            Test::Exists => true,
            Test::Null => value.is_null(),
            Test::Equal(literal) => order(literal) == Some(Ordering::Equal),
            Test::NotEqual(literal) => !value.is_null() && order(literal) != Some(Ordering::Equal),
            Test::In(list) => list.iter().any(|literal| order(literal) == Some(Ordering::Equal)),
            Test::Prefix(prefix) => value.as_str().is_some_and(|text| text.starts_with(&**prefix)),
            Test::Range(low, high) => {
                let is_above = match low {
                    Bound::Unbounded => true,
                    Bound::Included(low) => order(low).is_some_and(Ordering::is_ge),
                    Bound::Excluded(low) => order(low).is_some_and(Ordering::is_gt),
                };
                is_above
                    && match high {
                        Bound::Unbounded => true,
                        Bound::Included(high) => order(high).is_some_and(Ordering::is_le),
                        Bound::Excluded(high) => order(high).is_some_and(Ordering::is_lt),
                    }
            }
        }
    }

    pub(super) fn holds(expression: &Expression, record: &Json) -> bool {
        match expression {
            Expression::All(parts) => parts.iter().all(|part| holds(part, record)),
            Expression::Any(parts) => parts.iter().any(|part| holds(part, record)),
            Expression::Not(inner) => !holds(inner, record),
            Expression::Test(path, asked) => {
                values(record, path).into_iter().any(|value| test(asked, value))
            }
        }
    }
}

/// A collection with a history, and what it is at each revision: keys and records by ordinal.
struct World {
    db: Database,
    revisions: Vec<Vec<(String, String)>>,
}

/// The paths of indexes that a world has.
const INDEXES: [&[&str]; 6] = [&["a"], &["b", "a"], &["t[*]"], &["n.a", "n.b"], &["c"], &["n"]];

fn index(collection: &Collection, name: &str, paths: &[&str]) {
    let paths = paths.iter().map(|path| path.parse().unwrap()).collect();
    let definition = IndexDefinition { name: name.to_owned(), paths, is_unique: false };
    collection.create_index(&definition).unwrap();
}

fn world(seed: u64, records: usize, is_indexed: bool) -> World {
    let spread = &mut Spread(seed);
    let db = Database::memory().unwrap();
    let collection = db.create_collection("records", KeyKind::Text).unwrap();
    for (at, paths) in INDEXES.iter().enumerate().filter(|_| is_indexed) {
        index(&collection, &format!("index {at}"), paths);
    }
    let mut now: Vec<(String, Option<String>)> = Vec::new();
    let mut revisions = Vec::new();
    for step in 0..6 {
        let mut change = db.transaction();
        for at in 0..records / 4 {
            let key = format!("key {}", (step * records / 6 + at * 7) % records);
            let known = now.iter().position(|(known, _)| *known == key);
            let json = (known.is_none() || spread.next(4) > 0).then(|| record(spread));
            match &json {
                Some(json) => {
                    change.put_record("records", &key.as_str().into(), json.as_bytes()).unwrap();
                }
                None => drop(change.delete_records("records", &[key.as_str().into()]).unwrap()),
            }
            match known {
                Some(known) => now[known].1 = json,
                None => now.push((key, json)),
            }
        }
        change.commit(&CommitOptions::default()).unwrap();
        let there = now.iter().filter_map(|(key, json)| Some((key.clone(), json.clone()?)));
        revisions.push(there.collect());
        if step % 3 == 1 {
            db.checkpoint().unwrap();
        }
    }
    drop(collection);
    World { db, revisions }
}

fn parse(json: &str) -> Json {
    serde_json::from_str(json).unwrap()
}

fn keys(records: Records) -> Vec<String> {
    records.map(|record| record.unwrap().key.to_string()).collect()
}

#[test]
fn filters_find_what_a_naive_evaluation_finds_at_every_revision() {
    assert_eq!(check_filters(&world(1, 120, false)), 0);
    assert!(check_filters(&world(1, 120, true)) > 300, "indexes are read");
}

/// Checks filters and tells how many were answered by indexes.
fn check_filters(world: &World) -> u64 {
    let mut by_index = 0;
    let collection = world.db.collection("records").unwrap();
    let spread = &mut Spread(2);
    let mut found = 0;
    for _ in 0..1_500 {
        let text = filter(spread, 3);
        let filter: Filter = text.parse().unwrap();
        assert_eq!(filter.to_string().parse::<Filter>().unwrap(), filter, "{text}");
        let revision = spread.next(world.revisions.len());
        let expression = filter.expression().unwrap();
        let records = world.revisions[revision].iter();
        let chosen = records.filter(|(_, json)| naive::holds(expression, &parse(json)));
        let expected: Vec<_> = chosen.map(|(key, _)| key.clone()).collect();
        let snapshot = collection.at(Revision(revision as u64 + 1)).unwrap();
        let query = Query::new().filter(filter);
        assert_eq!(keys(snapshot.query(&query).unwrap()), expected, "{text} at {revision}");
        assert_eq!(snapshot.count_query(&query).unwrap(), expected.len() as u64);
        let counts = snapshot.explain(&query).unwrap().counts;
        by_index += u64::from(counts.entries > 0 && counts.scanned == 0);
        found += expected.len();
    }
    assert!(found > 10_000, "{found}");
    by_index
}

/// How two records compare by an order, as a naive evaluation has it.
fn compare(order: &[Order], a: &(usize, Json), b: &(usize, Json)) -> Ordering {
    let mut all = Ordering::Equal;
    for order in order {
        let path = order.path().unwrap();
        let of = |record: &'_ (usize, Json)| {
            naive::values(&record.1, path).first().map(|v| (*v).clone())
        };
        let (x, y) = (of(a), of(b));
        let natural = naive::compare(x.as_ref(), y.as_ref());
        let by_value = if order.is_descending { natural.reverse() } else { natural };
        let is_null = |value: &Option<Json>| value.as_ref().is_none_or(Json::is_null);
        let text = order.to_string();
        let by_null = if text.ends_with("nulls-first") {
            is_null(&y).cmp(&is_null(&x))
        } else if text.ends_with("nulls-last") {
            is_null(&x).cmp(&is_null(&y))
        } else {
            Ordering::Equal
        };
        all = all.then(by_null).then(by_value);
    }
    let ties = a.0.cmp(&b.0);
    all.then(if order::is_reverse(order) { ties.reverse() } else { ties })
}

#[test]
fn orders_limits_and_pages_agree_with_a_naive_sort() {
    check_orders(&world(3, 90, false));
    check_orders(&world(3, 90, true));
}

fn check_orders(world: &World) {
    let collection = world.db.collection("records").unwrap();
    let spread = &mut Spread(4);
    for _ in 0..300 {
        let revision = spread.next(world.revisions.len());
        let records = &world.revisions[revision];
        let mut sorted: Vec<_> = records.iter().map(|(_, json)| parse(json)).enumerate().collect();
        let mut query = Query::new();
        for _ in 0..spread.next(3) {
            let path = spread.of(&["a", "b", "c", "n.a", "n.b", "gone", "n"]);
            let direction = spread.of(&["", ":desc", ":asc"]);
            let nulls = spread.of(&["", ":nulls-first", ":nulls-last"]);
            query = query.order_by(format!("{path}{direction}{nulls}").parse().unwrap());
        }
        if spread.next(2) == 0 {
            let filter: Filter = filter(spread, 2).parse().unwrap();
            sorted.retain(|(_, record)| naive::holds(filter.expression().unwrap(), record));
            query = query.filter(filter);
        }
        sorted.sort_by(|a, b| compare(&query.order, a, b));
        let expected: Vec<_> = sorted.iter().map(|(at, _)| records[*at].0.clone()).collect();
        let snapshot = collection.at(Revision(revision as u64 + 1)).unwrap();
        assert_eq!(keys(snapshot.query(&query).unwrap()), expected, "{query} at {revision}");
        let (offset, limit) = (spread.next(9), spread.next(40));
        let part = query.clone().offset(offset as u64).limit(limit as u64);
        let part = keys(snapshot.query(&part).unwrap());
        let end = (offset + limit).min(expected.len());
        assert_eq!(part, expected.get(offset..end).unwrap_or(&[]), "{query}");
        check_pages(&snapshot, &query, &expected, 1 + spread.next(20));
    }
}

/// Pages forward to the end and back to the begin are the parts of all records.
fn check_pages(snapshot: &CollectionSnapshot, query: &Query, expected: &[String], size: usize) {
    let keys = |page: &Page| -> Vec<String> {
        page.records.iter().map(|record| record.key.to_string()).collect()
    };
    let mut pages = vec![snapshot.page(query, None, size).unwrap()];
    while let Some(next) = &pages[pages.len() - 1].next {
        pages.push(snapshot.page(query, Some(next), size).unwrap());
    }
    let forward: Vec<_> = pages.iter().flat_map(&keys).collect();
    assert_eq!(forward, expected, "{query} in pages of {size}");
    assert!(pages[0].previous.is_none());
    let mut at = pages.len() - 1;
    let mut page = pages[at].clone();
    while let Some(previous) = &page.previous {
        page = snapshot.page(query, Some(previous), size).unwrap();
        at -= 1;
        assert_eq!(keys(&page), keys(&pages[at]), "{query} back to page {at}");
    }
    assert_eq!(at, 0);
}

#[test]
fn a_page_ends_with_the_record_that_makes_it_long_and_the_next_goes_on() {
    let records = Database::memory().unwrap().create_collection("long", KeyKind::U64).unwrap();
    records.create_index(&IndexDefinition::new("rank", &["rank"]).unwrap()).unwrap();
    let text = "x".repeat(QUERY_PAGE_BYTES_MAX / 8);
    let json = |key: u64| format!(r#"{{"rank":{},"other":{},"text":"{text}"}}"#, key % 7, key % 5);
    for key in 0..20_u64 {
        records.put(key, json(key), &CommitOptions::default()).unwrap();
    }
    let short = Query::new().order_by(Order::asc("rank")).select(["rank"]);
    assert_eq!(records.page(&short, None, 20).unwrap().records.len(), 20);
    let orders = [vec![], vec![Order::desc("rank")], vec![Order::asc("other"), Order::asc("rank")]];
    for order in orders {
        let query = order.into_iter().fold(Query::new(), Query::order_by);
        let expected: Vec<_> =
            records.query(&query).unwrap().map(|record| record.unwrap()).collect();
        let mut pages = vec![records.page(&query, None, 20).unwrap()];
        while let Some(next) = &pages[pages.len() - 1].next {
            pages.push(records.page(&query, Some(next), 20).unwrap());
        }
        let lengths: Vec<_> = pages.iter().map(|page| page.records.len()).collect();
        assert_eq!(lengths, [8, 8, 4]);
        assert!(pages.iter().all(|page| page.counts.found == page.records.len() as u64));
        assert_eq!(
            pages.iter().flat_map(|page| page.records.clone()).collect::<Vec<_>>(),
            expected
        );
        let mut page = records.page(&query, pages[2].previous.as_deref(), 20).unwrap();
        assert_eq!(page.records, expected[8..16]);
        page = records.page(&query, page.previous.as_deref(), 20).unwrap();
        assert_eq!(page.records, expected[..8]);
        assert!(page.previous.is_none());
    }
}

#[test]
fn pages_hold_while_records_come_go_and_change() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    let how = CommitOptions::default();
    let put = |key: u64, rank: u64| {
        records.put(key, format!(r#"{{"rank":{rank}}}"#), &how).unwrap();
    };
    (0..10).for_each(|key| put(key, key * 10));
    let query = Query::new().order_by(Order::asc("rank"));
    let first = records.page(&query, None, 3).unwrap();
    let found = |page: &Page| -> Vec<String> {
        page.records.iter().map(|record| record.key.to_string()).collect()
    };
    assert_eq!(found(&first), ["0", "1", "2"]);
    // One comes before the place, the record at the place goes, and one behind it moves.
    put(20, 5);
    records.delete(2_u64, &how).unwrap();
    put(4, 35);
    let second = records.page(&query, first.next.as_deref(), 3).unwrap();
    assert_eq!(found(&second), ["3", "4", "5"]);
    let back = records.page(&query, second.previous.as_deref(), 9).unwrap();
    assert_eq!(found(&back), ["0", "20", "1"]);
    // Behind the last record there is nothing, and back from there it is the last page.
    for key in 6..10_u64 {
        records.delete(key, &how).unwrap();
    }
    let empty = records.page(&query, second.next.as_deref(), 3).unwrap();
    assert_eq!((found(&empty).len(), empty.next.is_none()), (0, true));
    let last = records.page(&query, empty.previous.as_deref(), 2).unwrap();
    assert_eq!(found(&last), ["4", "5"]);
}

#[test]
fn a_cursor_of_another_query_or_collection_is_refused() {
    let db = Database::memory().unwrap();
    let how = CommitOptions::default();
    for name in ["one", "two"] {
        let records = db.create_collection(name, KeyKind::U64).unwrap();
        records.put_many((0..5_u64).map(|key| (key, "{}")), &how).unwrap();
    }
    let (one, two) = (db.collection("one").unwrap(), db.collection("two").unwrap());
    let query = Query::new();
    let cursor = one.page(&query, None, 2).unwrap().next.unwrap();
    assert_eq!(one.page(&query.clone().select(["a"]), Some(&cursor), 3).unwrap().records.len(), 3);
    let other = query.clone().order_by(Order::asc("a"));
    let filtered = query.clone().filter(Filter::is_missing("a"));
    for (collection, query) in [(&two, &query), (&one, &other), (&one, &filtered)] {
        let error = collection.page(query, Some(&cursor), 3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("no cursor of the query"), "{error}");
    }
    let limited = query.clone().limit(3);
    for (query, size) in [(&query, 0), (&query, 10_001), (&limited, 3)] {
        assert_eq!(one.page(query, None, size).unwrap_err().kind(), ErrorKind::Invalid);
    }
}

#[test]
fn groups_are_counted_as_a_naive_evaluation_counts_them() {
    let world = world(5, 100, true);
    let collection = world.db.collection("records").unwrap();
    let spread = &mut Spread(6);
    for _ in 0..60 {
        let revision = spread.next(world.revisions.len());
        let path: RecordPath = spread.of(&PATHS).parse().unwrap();
        let mut expected: Vec<(Option<Json>, u64)> = Vec::new();
        for (_, json) in &world.revisions[revision] {
            let record = parse(json);
            let mut values: Vec<_> = naive::values(&record, &path).into_iter().map(Some).collect();
            if values.is_empty() {
                values.push(None);
            }
            values.sort_by(|a, b| naive::compare(*a, *b));
            values.dedup_by(|a, b| naive::compare(*a, *b).is_eq());
            for value in values {
                let same = |group: &&mut (Option<Json>, u64)| {
                    naive::compare(group.0.as_ref(), value).is_eq()
                };
                match expected.iter_mut().find(same) {
                    Some(group) => group.1 += 1,
                    None => expected.push((value.cloned(), 1)),
                }
            }
        }
        expected.sort_by(|a, b| naive::compare(a.0.as_ref(), b.0.as_ref()));
        let snapshot = collection.at(Revision(revision as u64 + 1)).unwrap();
        let groups = snapshot.group_count(&Query::new(), &path).unwrap();
        let groups: Vec<_> = groups.map(|group| group.unwrap()).collect();
        assert_eq!(groups.len(), expected.len(), "{path}");
        for (group, (value, count)) in groups.iter().zip(&expected) {
            let found = group.value.as_deref().map(parse);
            assert!(naive::compare(found.as_ref(), value.as_ref()).is_eq(), "{path}");
            assert_eq!(group.count, *count, "{path} {value:?}");
        }
        let distinct = snapshot.distinct(&Query::new(), &path).unwrap();
        let missing = usize::from(expected.first().is_some_and(|group| group.0.is_none()));
        assert_eq!(distinct.count(), expected.len() - missing);
    }
}

#[test]
fn what_is_changed_by_a_filter_is_one_commit_of_what_it_finds() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    let how = CommitOptions::default();
    let all = (0..100_u64).map(|key| (key, format!(r#"{{"n":{key}}}"#)));
    records.put_many(all, &how).unwrap();
    assert_eq!(
        records.update_where(&Filter::lt("n", 10), r#"{"n":null,"low":1}"#, &how).unwrap(),
        10
    );
    assert_eq!(records.head().unwrap().revision(), Revision(2));
    assert_eq!(records.count_where(&Filter::is_missing("n")).unwrap(), 10);
    let mut change = db.transaction();
    change.put_record("records", &200_u64.into(), br#"{"n":95}"#).unwrap();
    let high = Filter::ge("n", 90);
    assert_eq!(change.delete_records_where("records", &high).unwrap(), 11);
    assert_eq!(change.find_records("records", &high).unwrap(), []);
    change.commit(&how).unwrap();
    assert_eq!(records.count().unwrap(), 90);
    assert_eq!(records.delete_where(&high, &how).unwrap(), 0);
    assert_eq!(records.head().unwrap().revision(), Revision(3));
}

/// A record that a transaction deleted was one without a value where an index was asked.
#[test]
fn deleted_records_are_chosen_by_no_filter() {
    for is_indexed in [false, true] {
        let db = Database::memory().unwrap();
        let records = db.create_collection("records", KeyKind::U64).unwrap();
        let how = CommitOptions::default();
        let all = (0..100_u64).map(|key| (key, format!(r#"{{"n":{key}}}"#)));
        records.put_many(all, &how).unwrap();
        if is_indexed {
            records.create_index(&IndexDefinition::new("n", &["n"]).unwrap()).unwrap();
        }
        let missing = Filter::is_missing("n");
        let either = Filter::eq("n", 7).or(missing.clone());
        let mut change = db.transaction();
        change.delete_records("records", &[5_u64.into(), 7_u64.into()]).unwrap();
        change.put_record("records", &200_u64.into(), b"{}").unwrap();
        change.delete_records("records", &[200_u64.into()]).unwrap();
        for filter in [&missing, &either] {
            assert_eq!(change.find_records("records", filter).unwrap(), []);
            assert_eq!(change.update_records_where("records", filter, br#"{"z":1}"#).unwrap(), 0);
            assert_eq!(change.delete_records_where("records", filter).unwrap(), 0);
        }
        change.commit(&how).unwrap();
        assert_eq!(records.count().unwrap(), 98);
        assert_eq!(records.scan(&crate::ScanOptions::default()).unwrap().count(), 98);
    }
}

#[test]
fn what_is_selected_stands_at_its_place() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    let json = r#"{"a":1,"b":{"c":[{"d":1,"e":2},{"e":3},4],"f":null},"g":"x"}"#;
    records.put(1_u64, json, &CommitOptions::default()).unwrap();
    let cases: [(&[&str], &str); 7] = [
        (&["g", "a"], r#"{"g":"x","a":1}"#),
        (&["b.f"], r#"{"b":{"f":null}}"#),
        (&["b.c[*].d"], r#"{"b":{"c":[{"d":1},{}]}}"#),
        (&["b.c[*].e", "b.c[*].d"], r#"{"b":{"c":[{"e":2,"d":1},{"e":3}]}}"#),
        (&["b", "b.f"], r#"{"b":{"c":[{"d":1,"e":2},{"e":3},4],"f":null}}"#),
        (&["z", "a.b", "g[*]"], "{}"),
        (&[], "{}"),
    ];
    for (paths, expected) in cases {
        let found = records.query(&Query::new().select(paths)).unwrap().next().unwrap().unwrap();
        assert_eq!(found.json, expected, "{paths:?}");
    }
}

#[test]
fn what_cannot_be_a_query_is_refused_with_its_reason() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    let all = Query::new();
    let mut deep = Filter::eq("a", 1);
    for _ in 0..200 {
        deep = deep.clone().or(Filter::eq("b", 1)).and(Filter::eq("c", 1));
    }
    let mut wide = Filter::eq("a", 1);
    for _ in 0..200 {
        wide = wide.and(Filter::eq("b", 1).or(Filter::eq("c", 1))).not().not();
    }
    assert!(records.query(&all.clone().filter(wide)).is_ok());
    let cases = [
        (all.clone().filter(Filter::eq("a..b", 1)), "at character 3"),
        (all.clone().filter(Filter::eq("a", f64::NAN)), "NaN is no JSON value"),
        (all.clone().filter(Filter::eq("a", FilterValue::json("null"))), "is null"),
        (all.clone().filter(Filter::lt("a", FilterValue::json("[1]"))), "in no order"),
        (all.clone().filter(Filter::between("a", 1, "x")), "different types"),
        (all.clone().filter(deep), "64 levels"),
        (all.clone().select(["a["]), "selected"),
        (all.clone().order_by(Order::asc("a[*]")), "several values"),
        (all.clone().order_by(Order::asc("")), "cannot be ordered"),
        ((0..17).fold(all.clone(), |all, _| all.order_by(Order::asc("a"))), "17 paths"),
    ];
    for (query, reason) in cases {
        let error = records.query(&query).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains(reason), "{error}");
    }
}

#[test]
fn a_filter_that_cannot_be_read_names_its_place() {
    let cases = [
        ("(", 2, "a name"),
        ("a", 2, "expected =,"),
        ("a =", 4, "a JSON value"),
        ("a = x", 5, "no JSON value"),
        ("a = null", 5, "is null"),
        ("a = 1 b", 7, "and, or or the end"),
        ("a = 1 and", 10, "a name"),
        ("(a = 1", 7, "')'"),
        ("a in 1", 6, "'('"),
        ("a in (1 2)", 9, "','"),
        ("a in (1, null)", 10, "is null"),
        ("a between 1", 12, "and"),
        ("a between 1 and \"x\"", 11, "different types"),
        ("a between [1] and [2]", 11, "in no order"),
        ("a < {}", 5, "in no order"),
        ("a is 1", 6, "null or missing"),
        ("a prefix 1", 10, "a string"),
        ("a not = 1", 7, "between, in"),
        ("and = 1", 1, "[\"and\"]"),
        ("\u{e4} = \u{e4}", 5, "a JSON value"),
        ("a = [1, ]", 5, "no JSON value"),
        ("a = \"x", 5, "a JSON value"),
        ("a[0] = 1", 2, "[*]"),
    ];
    for (text, at, what) in cases {
        let error = text.parse::<Filter>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let message = error.message();
        assert!(message.contains(&format!("at character {at},")), "{message}");
        assert!(message.contains(what), "{message}");
    }
    for text in ["", " \n"] {
        let error = text.parse::<Filter>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().starts_with("the filter is empty"), "{error}");
    }
    let deep = format!("{}a = 1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(deep.parse::<Filter>().unwrap_err().message().contains("too deep"));
    let nots = format!("{}a = 1", "not ".repeat(100));
    assert_eq!(nots.parse::<Filter>().unwrap(), Filter::eq("a", 1));
}

/// The order of their names once decided which index was read, and a condition was read in two.
#[test]
fn a_second_index_is_read_only_where_it_leaves_something_out() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    let all = (0..20_000_u64).map(|key| {
        (
            key,
            format!(
                r#"{{"active":{},"mail":"m{key}","a":{},"b":{key}}}"#,
                key % 10 == 0,
                key % 100
            ),
        )
    });
    records.put_many(all, &CommitOptions::default()).unwrap();
    let add = |name: &str, paths: &[&str], is_unique| {
        let paths = paths.iter().map(|path| path.parse().unwrap()).collect();
        let definition = IndexDefinition { name: name.to_owned(), paths, is_unique };
        records.create_index(&definition).unwrap();
    };
    add("active", &["active"], false);
    add("mail", &["mail"], true);
    add("ia", &["a"], false);
    add("iab", &["a", "b"], false);
    let explain =
        |text: &str| records.explain(&Query::new().filter(text.parse().unwrap())).unwrap().counts;
    for text in ["active = true and mail = \"m500\"", "active = false and mail = \"m501\""] {
        let counts = explain(text);
        assert_eq!((counts.entries, counts.records, counts.found), (1, 1, 1), "{text}");
    }
    let counts = explain("a = 5");
    assert_eq!((counts.entries, counts.records, counts.found), (200, 0, 200));
}

#[test]
fn records_are_judged_by_their_columns() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    let all = (0..10_000_u64)
        .map(|key| (key, format!(r#"{{"n":{key},"w":"{}","t":["x{}"]}}"#, key % 10, key % 7)));
    records.put_many(all, &CommitOptions::default()).unwrap();
    for is_on_disk in [false, true] {
        if is_on_disk {
            db.checkpoint().unwrap();
        }
        let explain = |text: &str| {
            records.explain(&Query::new().filter(text.parse().unwrap())).unwrap().counts
        };
        let one = explain("n >= 5000 and w = \"3\"");
        let (groups, scanned) = if is_on_disk { (2, 10_000 - 4_096) } else { (3, 10_000) };
        assert_eq!((one.row_groups, one.scanned, one.ruled_out), (groups, scanned, 3 - groups));
        assert_eq!((one.records, one.found), (0, 500));
        let two = explain("w = \"3\" and t contains \"x1\"");
        assert_eq!((two.scanned, two.records, two.found), (10_000, 0, 143));
        let page = records.page(&Query::new(), None, 10).unwrap();
        assert_eq!((page.counts.row_groups, page.counts.records), (1, 0));
    }
}

/// Elements that lie in several row groups, and those of arrays that were changed: few of them lie
/// near each other then.
#[test]
fn elements_are_judged_by_their_columns_at_every_revision() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    let spread = &mut Spread(7);
    let how = CommitOptions::default();
    let mut json = |_| {
        let elements = (0..spread.next(4)).map(|_| match spread.next(5) {
            0 => r#"{"k":[1]}"#.to_owned(),
            1 => "null".to_owned(),
            n => format!(r#"{{"k":{},"t":"x{}"}}"#, spread.next(40), n),
        });
        let elements: Vec<_> = elements.collect();
        format!(r#"{{"o":[{}]}}"#, elements.join(","))
    };
    records.put_many((0..6_000_u64).map(|key| (key, json(key))), &how).unwrap();
    records.put_many((0..6_000_u64).step_by(3).map(|key| (key, json(key))), &how).unwrap();
    db.checkpoint().unwrap();
    let gone: Vec<_> = (0..6_000).step_by(7).map(Key::U64).collect();
    records.delete_many(&gone, &how).unwrap();
    let patch = r#"[{"op":"add","path":"/o/0","value":{"k":7}}]"#;
    for key in (1..6_000_u64).step_by(97).filter(|key| key % 7 > 0) {
        records.patch(key, patch, &how).unwrap();
    }
    let texts = ["o[*].k = 7", "not (o[*].t = \"x2\")", "o[*] is null or o[*].k > 38"];
    let head = records.document().head_revision().unwrap().0;
    for revision in [1, 2, 3, head / 2, head] {
        let snapshot = records.at(Revision(revision)).unwrap();
        let all = snapshot.scan(&ScanOptions::default()).unwrap();
        let all: Vec<Json> = all.map(|record| parse(&record.unwrap().json)).collect();
        for text in texts {
            let filter: Filter = text.parse().unwrap();
            let expression = filter.expression().unwrap();
            let expected = all.iter().filter(|record| naive::holds(expression, record)).count();
            let counts = snapshot.explain(&Query::new().filter(filter)).unwrap().counts;
            assert_eq!(counts.found, expected as u64, "{text} at {revision}");
            let looked_at = if text.starts_with("o[*].k") { 2_500 } else { 4_000 };
            assert!(counts.records < looked_at, "{text} at {revision}: {counts:?}");
        }
    }
}

#[test]
fn row_groups_are_left_out_by_least_and_greatest_values_at_every_revision() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    let how = CommitOptions::default();
    let json = |n: &str| format!(r#"{{"n":{n},"w":"x"}}"#);
    let all = (0..20_000_u64).map(|key| (key, json(&key.to_string())));
    records.put_many(all, &how).unwrap();
    db.checkpoint().unwrap();
    let ask = |revision: u64, text: &str| {
        let query = Query::new().filter(text.parse().unwrap());
        let explained = records.at(Revision(revision)).unwrap().explain(&query).unwrap();
        let counts = explained.counts;
        assert_eq!(explained.to_string().contains("leave out"), counts.ruled_out > 0);
        (counts.ruled_out, counts.found)
    };
    let texts = ["n = 9000", "n > 19000", "n between -5 and 3", "w = \"x\" and n < 5000", "n < 0"];
    let first = [(4, 1), (4, 999), (4, 4), (3, 5_000), (5, 0)];
    assert_eq!(texts.map(|text| ask(1, text)), first);
    assert_eq!(ask(1, "n != 9000 or n = 5"), (0, 19_999));
    assert_eq!(ask(1, "not (n = 9000)"), (0, 19_999));
    // What was changed since is counted, whether it is young or not, and whatever it is.
    records.put(0, json("9000"), &how).unwrap();
    records.put(15_000, json("18.5"), &how).unwrap();
    for is_on_disk in [false, true] {
        if is_on_disk {
            db.checkpoint().unwrap();
        }
        assert_eq!(texts.map(|text| ask(1, text).1), first.map(|(_, found)| found));
        let found = texts.map(|text| ask(3, text).1);
        assert_eq!(found, [2, 999, 3, 5_000, 0]);
        assert_eq!(ask(3, "n = 9000").0, 2, "groups 1 and 4");
        assert_eq!(ask(3, "n < 19 and n > 18").1, 1);
    }
}

/// Ten thousand records, a tenth of them in each world, with a rank and tags.
fn ranks(db: &Database) -> Collection {
    let records = db.create_collection("ranks", KeyKind::U64).unwrap();
    let json = |key: u64| {
        let (world, rank, tag) = (key % 10, key * 7_919 % 5_000, key % 1_000);
        format!(r#"{{"w":{world},"rank":{rank},"t":["x{tag}","y"]}}"#)
    };
    records.put_many((0..10_000).map(|key| (key, json(key))), &CommitOptions::default()).unwrap();
    records
}

#[test]
fn a_page_by_an_index_reads_little_more_than_itself_at_any_depth() {
    let db = Database::memory().unwrap();
    let records = ranks(&db);
    index(&records, "by_rank", &["rank"]);
    index(&records, "by_world_and_rank", &["w", "rank"]);
    for (text, order) in [("rank >= 0", "rank"), ("w = 3", "rank:desc"), ("w = 3", "rank")] {
        let order: Order = order.parse().unwrap();
        let query = Query::new().filter(text.parse().unwrap()).order_by(order);
        let mut expected = keys(records.query(&query).unwrap());
        let mut cursor = None;
        for _ in 0..12 {
            let page = records.page(&query, cursor.as_deref(), 50).unwrap();
            assert!(page.counts.entries <= 110, "{query}: {:?}", page.counts);
            assert!(page.counts.records <= 51 && page.counts.scanned == 0, "{:?}", page.counts);
            let rest = expected.split_off(50);
            let found: Vec<_> = page.records.iter().map(|r| r.key.to_string()).collect();
            assert_eq!(found, expected);
            (expected, cursor) = (rest, page.next);
        }
        let best = query.clone().limit(5);
        let explained = records.explain(&best).unwrap();
        assert!(explained.counts.entries <= 12 && explained.counts.sorted == 0, "{explained}");
        assert!(explained.to_string().contains("which has the order"), "{explained}");
    }
}

/// An index that had the order was walked to its end by a filter that found hardly anything: that
/// took forty times as long as looking at all columns and sorting what was found.
#[test]
fn an_order_that_an_index_has_is_given_up_where_the_filter_finds_few_records() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("c", KeyKind::U64).unwrap();
    // Of those with a flag a hundred come first in the order, and four last.
    let json = |key: u64| {
        let n = key * 7_919 % 20_000;
        let flag = !(100..19_996).contains(&n);
        format!(r#"{{"n":{},"m":{},"flag":{flag}}}"#, n / 2, key % 4_000)
    };
    records.put_many((0..20_000).map(|key| (key, json(key))), &CommitOptions::default()).unwrap();
    let few = ["m = 3999", "m = 3999 and n != 17", "flag = true"];
    let orders = ["n", "n:desc"].map(|order| order.parse::<Order>().unwrap());
    let query = |text: &str, order: &Order| {
        Query::new().filter(text.parse().unwrap()).order_by(order.clone())
    };
    let all = |text, order| keys(records.query(&query(text, order)).unwrap());
    let expected = few.map(|text| [all(text, &orders[0]), all(text, &orders[1])]);
    index(&records, "by_n", &["n"]);
    let snapshot = records.head().unwrap();
    for (text, expected) in few.into_iter().zip(&expected) {
        for (order, expected) in orders.iter().zip(expected) {
            let query = query(text, order);
            for (offset, limit) in [(0, 104), (2, 101), (0, 3), (99, 6), (0, 1_000)] {
                let query = query.clone().offset(offset).limit(limit);
                let found = keys(records.query(&query).unwrap());
                let wanted = expected.iter().skip(usize::try_from(offset).unwrap());
                let wanted = wanted.take(usize::try_from(limit).unwrap());
                assert!(found.iter().eq(wanted), "{query} {offset} {limit}: {found:?}");
            }
            check_pages(&snapshot, &query, expected, 3);
            check_pages(&snapshot, &query, expected, 70);
            let explained = records.explain(&query.clone().limit(104)).unwrap();
            let counts = explained.counts;
            assert!(counts.records <= 2_048 + 625 + 32 * 104 + 1, "{explained}");
            assert_eq!((counts.scanned, counts.found), (20_000, expected.len() as u64));
            let told = "give up index by_n, which has the order, after ";
            assert!(explained.to_string().starts_with(told), "{explained}");
        }
    }
    // It goes on where it finds some of those that it looks at, and where all are wanted.
    for (text, limit) in [("m < 400", Some(1_900)), ("m = 3999", None)] {
        let query = Query { limit, ..query(text, &orders[0]) };
        let counts = records.explain(&query).unwrap().counts;
        assert_eq!((counts.scanned, counts.sorted), (0, 0), "{query}");
    }
}

#[test]
fn an_index_is_read_where_it_names_few_records() {
    let db = Database::memory().unwrap();
    let records = ranks(&db);
    for (name, paths) in [("by_rank", &["rank"][..]), ("by_world", &["w"]), ("by_tag", &["t[*]"])] {
        index(&records, name, paths);
    }
    let cases = [
        ("rank = 77", 2, "index by_rank"),
        ("rank between 100 and 109 and w = 1", 2, "index by_world, then index by_rank"),
        ("rank < 5 or t contains \"x7\"", 20, "index by_rank and index by_tag"),
        ("rank in (5, 6, 4999)", 6, "index by_rank"),
        ("rank is missing", 0, "index by_rank"),
        ("rank is null and w = 12", 0, "index by_rank"),
        ("t[*] prefix \"x99\" and not (w = 0)", 100, "index by_tag"),
        ("not (w = 3) and (rank = 77 or rank = 78)", 2, "index by_rank and index by_rank"),
    ];
    for (text, found, indexes) in cases {
        let query = Query::new().filter(text.parse().unwrap());
        let explained = records.explain(&query).unwrap();
        let counts = explained.counts;
        assert_eq!((counts.found, counts.scanned), (found, 0), "{text}: {explained}");
        assert!(explained.to_string().contains(&format!("of {indexes}")), "{text}: {explained}");
    }
    // Half of the records are found by their columns.
    let query = Query::new().filter("rank < 2500".parse().unwrap());
    let explained = records.explain(&query).unwrap();
    assert_eq!((explained.counts.scanned, explained.counts.found), (10_000, 5_000));
    assert!(explained.counts.entries < 2_000, "{explained}");
    assert!(explained.to_string().contains("give up"), "{explained}");
}

#[test]
fn an_index_in_memory_that_names_many_records_is_not_read() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("halves", KeyKind::U64).unwrap();
    index(&records, "by_half", &["half"]);
    let json = |key: u64| {
        format!(r#"{{"half":"{}"}}"#, if key.is_multiple_of(2) { "even" } else { "odd" })
    };
    records.put_many((0..1_000).map(|key| (key, json(key))), &CommitOptions::default()).unwrap();
    let ask = |text: &str| {
        let query = Query::new().filter(text.parse().unwrap());
        let counts = records.explain(&query).unwrap().counts;
        (counts.entries, counts.scanned, counts.found)
    };
    assert_eq!(ask("half = \"odd\""), (0, 1_000, 500));
    assert_eq!(ask("half = \"neither\""), (0, 0, 0));
    records.put(7_u64, r#"{"half":"neither"}"#, &CommitOptions::default()).unwrap();
    assert_eq!(ask("half = \"neither\""), (1, 0, 1));
    // However often a record got the value and lost it, it is one.
    for turn in 0..600 {
        let half = if turn % 2 == 0 { "hot" } else { "cold" };
        records.put(8_u64, format!(r#"{{"half":"{half}"}}"#), &CommitOptions::default()).unwrap();
    }
    let (entries, scanned, found) = ask("half = \"cold\"");
    assert_eq!((scanned, found), (0, 1));
    assert!(entries < 10, "{entries}");
    assert_eq!(ask("half = \"hot\"").1, 0);
}

#[test]
fn values_that_an_index_cuts_are_told_apart() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("long", KeyKind::U64).unwrap();
    let long = "x".repeat(3_000);
    let all = (0..200_u64).map(|key| (key, format!(r#"{{"s":"{long}{}"}}"#, key % 50)));
    records.put_many(all, &CommitOptions::default()).unwrap();
    let ask = |text: &str| {
        let filter: Filter = text.replace('~', &long).parse().unwrap();
        keys(records.query(&Query::new().filter(filter)).unwrap())
    };
    let texts = [
        "s = \"~7\"",
        "s > \"~48\"",
        "s >= \"~49\"",
        "s < \"~1\"",
        "s <= \"~1\"",
        "s prefix \"~4\"",
        "s in (\"~1\", \"~2\")",
    ];
    let before: Vec<_> = texts.iter().map(|text| ask(text)).collect();
    index(&records, "by_s", &["s"]);
    assert_eq!(texts.iter().map(|text| ask(text)).collect::<Vec<_>>(), before);
    assert!(before.iter().all(|found| !found.is_empty()));
}
