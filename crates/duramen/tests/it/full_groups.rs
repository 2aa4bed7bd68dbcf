//! Row groups all of whose slots are born: they are kept in another form from then on, and say the
//! same.

use duramen::{
    CommitOptions, Database, Filter, IndexDefinition, Key, KeyKind, Order, Query, Revision,
    ScanOptions,
};

/// More than two row groups of 4,096.
const RECORDS: u64 = 10_000;
const COMMIT: u64 = 1_000;

fn key(n: u64) -> u64 {
    n * 7_919 % RECORDS
}

fn pick<'t>(among: &[&'t str], n: u64) -> &'t str {
    among[usize::try_from(n).unwrap() % among.len()]
}

/// A record with members of all kinds: some are the same in all, some in none, some not in all.
fn json(n: u64) -> String {
    let kind = pick(&["sword", "shield", "a bow with a rather long name, and arrows"], n);
    let rare = if n.is_multiple_of(7) { format!(r#","rare":{}.5"#, n * n) } else { String::new() };
    let odd = pick(&["null", "true", "false", "\"x\"", "[]", "-1"], n);
    let debt = -i64::try_from(n * 1_000_003).unwrap();
    let key = key(n);
    format!(r#"{{"id":"k{key}","n":{n},"kind":"{kind}","debt":{debt},"same":5,"odd":{odd}{rare}}}"#)
}

fn changed(n: u64) -> String {
    json(n).replace(r#""same":5"#, r#""same":"other""#)
}

fn fill(db: &Database) -> duramen::Collection {
    let records = db.create_collection("items", KeyKind::U64).unwrap();
    for first in (0..RECORDS / COMMIT).map(|commit| commit * COMMIT) {
        let some = (first..first + COMMIT).map(|n| (key(n), json(n)));
        records.put_many(some, &CommitOptions::default()).unwrap();
    }
    records
}

/// All that is read of the first so many records is what was put, but for those that changed.
fn check(
    records: &duramen::Collection,
    revision: u64,
    count: u64,
    is_changed: impl Fn(u64) -> bool,
) {
    let then = records.at(Revision(revision)).unwrap();
    let expected = |n: u64| if is_changed(n) { changed(n) } else { json(n) };
    let mut by_key: Vec<(u64, u64)> = (0..count).map(|n| (key(n), n)).collect();
    by_key.sort_unstable();
    let scanned = then.scan(&ScanOptions::default()).unwrap();
    let scanned: Vec<_> =
        scanned.map(Result::unwrap).map(|found| (found.key, found.json)).collect();
    assert_eq!(scanned.len() as u64, count);
    for ((found, json), &(key, n)) in scanned.iter().zip(&by_key) {
        assert_eq!((found, json), (&Key::U64(key), &expected(n)));
    }
    for n in (0..count).step_by(97) {
        let found = then.get(key(n)).unwrap().unwrap();
        assert_eq!(found.json, expected(n));
    }
    let count_of =
        |filter: Filter| then.query(&Query::new().filter(filter)).unwrap().count() as u64;
    let among = |is: &dyn Fn(u64) -> bool| (0..count).filter(|&n| is(n)).count() as u64;
    assert_eq!(count_of(Filter::eq("kind", "shield")), among(&|n| n % 3 == 1));
    assert_eq!(count_of(Filter::eq("odd", true)), among(&|n| n % 6 == 1));
    assert_eq!(count_of(Filter::eq("same", 5_u64)), among(&|n| !is_changed(n)));
    assert_eq!(count_of(Filter::ge("n", 4_000_u64)), among(&|n| n >= 4_000));
    assert_eq!(count_of(Filter::ge("rare", 0_u64)), among(&|n| n.is_multiple_of(7)));
    let least = Query::new().order_by(Order::asc("debt")).limit(3);
    let least = then.query(&least).unwrap().map(|found| found.unwrap().json);
    assert!(least.eq((0..count).rev().take(3).map(expected)));
}

#[test]
fn full_row_groups_are_read_at_each_revision_as_they_were_put() {
    let db = Database::memory().unwrap();
    let records = fill(&db);
    let last = RECORDS / COMMIT;
    // Those of the first group alone, some of the second as well, and all.
    for (revision, count) in [(4, 4_000), (5, 5_000), (last, RECORDS)] {
        check(&records, revision, count, |_| false);
    }
    let some = (0..RECORDS).step_by(11).map(|n| (key(n), changed(n)));
    records.put_many(some, &CommitOptions::default()).unwrap();
    for is_on_disk in [false, true] {
        if is_on_disk {
            db.checkpoint().unwrap();
        }
        check(&records, last, RECORDS, |_| false);
        check(&records, last + 1, RECORDS, |n| n.is_multiple_of(11));
    }
}

#[test]
fn what_is_taken_back_leaves_full_row_groups_as_they_were() {
    let db = Database::memory().unwrap();
    let records = fill(&db);
    for is_sorted in [true, false] {
        let mut transaction = db.transaction();
        for n in RECORDS..RECORDS + 6_000 {
            transaction.put_record("items", &Key::U64(n), json(n).as_bytes()).unwrap();
        }
        for n in 0..100 {
            transaction.put_record("items", &Key::U64(key(n)), changed(n).as_bytes()).unwrap();
        }
        if is_sorted {
            assert_eq!(records.scan(&ScanOptions::default()).unwrap().count() as u64, RECORDS);
        }
        transaction.rollback();
        check(&records, RECORDS / COMMIT, RECORDS, |_| false);
    }
    records.put(RECORDS, "{}", &CommitOptions::default()).unwrap();
    assert_eq!(records.count().unwrap(), RECORDS + 1);
}

#[test]
fn an_index_of_full_row_groups_is_written_as_it_is_read() {
    let db = Database::memory().unwrap();
    let records = fill(&db);
    for path in ["n", "kind", "odd", "rare"] {
        records.create_index(&IndexDefinition::new(path, &[path]).unwrap()).unwrap();
    }
    let deleted: Vec<_> = (0..RECORDS).filter(|n| n % 10 == 3).map(Key::U64).collect();
    let read = || {
        let of = |filter: Filter, order: &str| {
            let query = Query::new().filter(filter).order_by(Order::asc(order));
            let found = records.query(&query).unwrap();
            found.map(|found| found.unwrap().json).collect::<Vec<_>>()
        };
        [
            of(Filter::ge("n", 9_000_u64), "n"),
            of(Filter::eq("kind", "sword"), "n"),
            of(Filter::eq("odd", -1_i64), "n"),
            of(Filter::ge("rare", 1_000_u64), "rare"),
        ]
    };
    let before = read();
    assert_eq!(before.each_ref().map(Vec::len), [1_000, 3_334, 1_666, 1_424]);
    db.checkpoint().unwrap();
    assert_eq!(read(), before);
    records.delete_many(&deleted, &CommitOptions::default()).unwrap();
    let after = read();
    assert!(after.iter().zip(&before).all(|(after, before)| after.len() < before.len()));
    db.checkpoint().unwrap();
    assert_eq!(read(), after);
    assert_eq!(db.check().unwrap().findings, []);
}
