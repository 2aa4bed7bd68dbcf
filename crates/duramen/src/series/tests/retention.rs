//! Nothing is missing between the time from which on points are seen and what rollups have.

use std::time::Duration;

use super::rollups::{MINUTE, an_hour, change, compact, counts, counts_of, every, seconds, tiers};
use crate::{
    Aggregate, AggregateOptions, CommitOptions, Durability, Micros, Points, Quality, Rollup,
    Series, SeriesValue, ValueType, Windows,
};

/// How many points the windows of one minute have, and those of five.
fn both(series: &Series) -> [Vec<(i64, i64)>; 2] {
    ["1m", "5m"].map(|windows| counts(series, windows))
}

const HOUR: Duration = Duration::from_hours(1);

/// They were not seen as soon as they were older than points are kept, and there were no rows.
#[test]
fn points_that_no_checkpoint_wrote_are_in_windows_when_they_are_not_kept_any_more() {
    let keep = Some(10 * MINUTE);
    let (db, series, clock) = an_hour(&tiers(keep, &[1, 5].map(|at| Rollup::new(at * MINUTE))));
    series.append_points(&seconds(3_600..7_230), &CommitOptions::default()).unwrap();
    let all = both(&series);
    assert_eq!(all[1].iter().map(|(_, count)| count).sum::<i64>(), 7_230);
    for later in [7_300, 36_000, 90_000] {
        clock.set(later);
        assert_eq!(both(&series), all);
    }
    let minute = |minute: i64| Micros(minute * 60_000_000);
    let windows = Windows::parse("5m", "UTC").unwrap();
    let count = AggregateOptions::new(vec![Aggregate::Count], windows);
    let cut = series.aggregate(minute(58)..minute(72), &count).unwrap();
    let cut: Vec<_> = (0..4).map(|row| cut.columns[0].get(row)).collect();
    assert_eq!(cut, [120, 300, 300, 120].map(|count: i64| Some(SeriesValue::I64(count))));
    for _ in 0..2 {
        compact(&db);
        assert_eq!(both(&series), all);
    }
    assert!(db.check().unwrap().is_clean());
}

/// What a window has is told by its row and by what is young behind it.
#[test]
fn what_is_young_is_added_to_the_row_of_its_window() {
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)]));
    let append = |among| series.append_points(&seconds(among), &CommitOptions::default()).unwrap();
    append(3_600..3_630);
    compact(&db);
    append(3_630..3_700);
    clock.set(36_000);
    let all = [every(1, 0..61), vec![(61, 40)]].concat();
    assert_eq!(counts(&series, "1m"), all);
    // What it may know of is not added again, before the checkpoint as after it.
    append(0..90);
    assert_eq!(counts(&series, "1m"), all);
    series.delete(Micros(60_000_000)..Micros(120_000_000), &CommitOptions::default()).unwrap();
    append(90..100);
    let left = [every(1, 0..1), vec![(1, 10)], every(1, 2..61), vec![(61, 40)]].concat();
    for _ in 0..2 {
        assert_eq!(counts(&series, "1m"), left);
        compact(&db);
    }
    assert!(db.check().unwrap().is_clean());
}

/// All that is older was missing until the rollups had caught up.
#[test]
fn a_rule_for_points_that_are_there_hides_nothing_until_rollups_have_them() {
    let (db, series, clock) = an_hour(&tiers(None, &[]));
    clock.set(36_000);
    let rollups = [Rollup::new(MINUTE), Rollup::new(5 * MINUTE).keeping(HOUR)];
    let mut transaction = db.transaction();
    transaction.change_series("a", &tiers(Some(10 * MINUTE), &rollups)).unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    let all = [every(1, 0..60), every(5, 0..60)];
    assert_eq!(both(&series), all);
    assert_eq!(series.range(..).unwrap().read().unwrap().len(), 3_600);
    for _ in 0..2 {
        compact(&db);
        assert_eq!(both(&series), all);
    }
    assert_eq!(series.range(..).unwrap().read().unwrap().len(), 0);
    assert!(db.check().unwrap().is_clean());
}

/// What was older than points are kept went with the checkpoint that wrote the rows, as of all
/// commits before.
#[test]
fn a_rollup_that_catches_up_changes_nothing_as_of_commits_before() {
    let (db, series, clock) = an_hour(&tiers(None, &[]));
    clock.set(3_600);
    let imported = series.snapshot().sequence();
    let mut transaction = db.transaction();
    transaction.change_series("a", &tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)])).unwrap();
    let ruled = transaction.commit(&CommitOptions::default()).unwrap().sequence;
    series.append_points(&seconds(3_600..3_660), &CommitOptions::default()).unwrap();
    for _ in 0..3 {
        for sequence in [imported, ruled] {
            let before = series.at(sequence);
            assert_eq!(counts_of(&before, "1m"), every(1, 0..60));
            assert_eq!(counts_of(&before, "1h"), [(0, 3_600)]);
        }
        assert_eq!(counts(&series, "1m"), every(1, 0..61));
        compact(&db);
    }
}

/// A series that a rule was for when it was made had nothing but what is kept of an import.
#[test]
fn what_is_imported_is_in_windows_before_the_first_checkpoint() {
    let (db, _, clock) = an_hour(&tiers(None, &[]));
    clock.set(7_200);
    let keep = tiers(Some(10 * MINUTE), &[1, 5].map(|at| Rollup::new(at * MINUTE)));
    let series = db.create_series("b", &keep).unwrap();
    series.append_points(&seconds(0..7_200), &CommitOptions::default()).unwrap();
    let all = [every(1, 0..120), every(5, 0..120)];
    for _ in 0..3 {
        assert_eq!(both(&series), all);
        compact(&db);
    }
    change(&db, &tiers(None, &[]));
    assert!(db.check().unwrap().is_clean());
}

/// They were taken without a word, and nobody saw them.
#[test]
fn points_that_are_older_than_what_is_kept_are_told() {
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)]));
    clock.set(7_230);
    // What is kept is whole windows: from 6,600 seconds on.
    let told = |count: u64| vec![("a".to_owned(), count)];
    let how = CommitOptions::default();
    let append = |among| series.append_points(&seconds(among), &how).unwrap().unkept;
    assert_eq!(append(6_500..6_700), told(100));
    assert_eq!(append(6_600..6_700), []);
    for durability in [Durability::Sync, Durability::Interval(1_000)] {
        let how = CommitOptions { durability: Some(durability), ..CommitOptions::default() };
        let append = |second: i64| series.append(Micros(second * 1_000_000), 1.0, &how).unwrap();
        assert_eq!((append(6_599).unkept, append(6_600).unkept), (told(1), vec![]));
    }
    db.create_series("b", &tiers(Some(MINUTE), &[])).unwrap();
    let mut transaction = db.transaction();
    for (name, among) in [("a", 0..5), ("b", 7_000..7_060), ("a", 10..12)] {
        transaction.append_points(name, &seconds(among)).unwrap();
    }
    // What is told is of the points of the commit, as of then: one of each time.
    transaction.append_points("a", &seconds(3..5)).unwrap();
    transaction.delete_points("a", ..Micros(1_000_000)).unwrap();
    transaction.append_points("b", &seconds(7_200..7_250)).unwrap();
    clock.set(7_270);
    let unkept = transaction.commit(&how).unwrap().unkept;
    assert_eq!(unkept, [told(6), vec![("b".to_owned(), 70)]].concat());
    change(&db, &tiers(None, &[]));
    assert_eq!(append(0..10), []);
}

/// What comes out is a float: it was said that it is exact.
#[test]
fn sums_of_integers_are_rounded_once() {
    let (db, ..) = an_hour(&tiers(None, &[]));
    let series = db.create_series("i", &crate::SeriesDefinition::new(ValueType::I64)).unwrap();
    let mut points = Points::new(ValueType::I64);
    for (time, value) in [1 << 53, 1, 1, 1, -(1 << 53), i64::MAX, i64::MAX].into_iter().enumerate()
    {
        points.push(Micros(time.try_into().unwrap()), value, Quality::GOOD).unwrap();
    }
    series.append_points(&points, &CommitOptions::default()).unwrap();
    let sum = AggregateOptions::new(vec![Aggregate::Sum], Windows::parse("1s", "UTC").unwrap());
    for (until, expected) in [(5, 3.0), (4, 9_007_199_254_740_996.0), (7, 2_f64.powi(64))] {
        let table = series.aggregate(..Micros(until), &sum).unwrap();
        assert_eq!(table.columns[0].get(0), Some(SeriesValue::F64(expected)));
    }
}
