//! Long ranges against the same points in short ones.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

use super::*;
use crate::revision::CommitSequence;
use crate::series::SeriesSnapshot;
use crate::{
    CommitOptions, Database, Micros, Qualities, Quality, Series, SeriesDefinition, ValueType,
    Values,
};

const COUNT: i64 = 700_000;

fn points(times: impl Iterator<Item = i64>, is_text: bool, of: i64) -> Points {
    let times: Vec<i64> = times.collect();
    let value = |time: &i64| (time + of) % 7_919;
    let values = if is_text {
        let texts = ["closed", "half", "open"];
        let text = |time: &i64| texts[usize::try_from(value(time) / 1_000 % 3).unwrap()];
        Values::String(times.iter().map(text).collect())
    } else {
        Values::I64(times.iter().map(value).collect())
    };
    Points::from_columns(times, values, Qualities::All(Quality::GOOD)).unwrap()
}

fn append(series: &Series, points: &Points) {
    series.append_points(points, &CommitOptions::default()).unwrap();
}

/// A series of points that came in order, late, twice, or were deleted.
fn series(db: &Database, is_text: bool) -> Series {
    let value_type = if is_text { ValueType::String } else { ValueType::I64 };
    let series = db.create_series("s", &SeriesDefinition::new(value_type)).unwrap();
    append(&series, &points((0..COUNT).map(|at| at * 10), is_text, 0));
    db.checkpoint().unwrap();
    append(&series, &points((0..2_000).map(|at| at * 3_001), is_text, 1));
    append(&series, &points((300_000..300_700).map(|at| at * 10 + 1), is_text, 2));
    db.checkpoint().unwrap();
    let deleted = Micros(4_000_000)..Micros(4_200_000);
    series.delete(deleted, &CommitOptions::default()).unwrap();
    append(&series, &points((0..100).map(|at| at * 60_000), is_text, 3));
    series
}

/// The points of short ranges, each of which is read alone.
fn in_short(series: &SeriesSnapshot, options: &RangeOptions) -> Points {
    let mut all = Points::new(series.info().definition.value_type);
    let mut starts: Vec<i64> = (-1..=COUNT / 50_000).map(|at| at * 500_000).collect();
    if options.reverse {
        starts.reverse();
    }
    for start in starts {
        let span = Micros(start)..Micros(start + 500_000);
        let part = series.range_with(span, options).unwrap().read().unwrap();
        all.append(&part, 0..part.len());
    }
    all
}

#[track_caller]
fn assert_same(found: &Points, expected: &Points, what: &str) {
    assert!(found.times() == expected.times(), "{what}: {} points", found.len());
    assert!(found.values() == expected.values(), "{what}");
}

fn visited(range: SeriesRange, empty: Points) -> Points {
    let mut all = empty;
    let append = |points: &Points, places: Range<usize>| {
        all.append(points, places);
        ControlFlow::Continue(())
    };
    range.visit(append).unwrap();
    all
}

fn check(db: &Database, series: &Series, what: &str) {
    let newest = db.snapshot().sequence();
    for back in [0, 1, 3] {
        let then = series.at(CommitSequence(newest.0 - back));
        for reverse in [false, true] {
            let what = format!("{what}, {back} commits back, reverse {reverse}");
            let options = RangeOptions { reverse, ..RangeOptions::default() };
            let expected = in_short(&then, &options);
            let range = |limit| then.range_with(.., &RangeOptions { limit, ..options }).unwrap();
            assert_same(&range(None).read().unwrap(), &expected, &what);
            let empty = Points::new(expected.value_type());
            assert_same(&visited(range(None), empty.clone()), &expected, &what);
            // Leaving a long range, and going on behind it.
            let mut some = range(Some(600_001));
            let mut found = empty.clone();
            for batch in some.by_ref().take(50) {
                let batch = batch.unwrap();
                found.append(&batch, 0..batch.len());
            }
            let is_shared = matches!(some.source, Source::Long(_));
            assert_eq!(is_shared, crate::threads::count() > 1, "{what}");
            let rest = then.resume(some.cursor().unwrap(), None).unwrap();
            drop(some);
            let rest = visited(rest, empty);
            found.append(&rest, 0..rest.len());
            assert_same(&found, &expected, &what);
        }
    }
}

#[test]
fn long_ranges_have_the_points_of_short_ones() {
    for is_text in [false, true] {
        let db = Database::memory().unwrap();
        let series = series(&db, is_text);
        check(&db, &series, "as written");
        db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
        check(&db, &series, "compacted");
    }
}

#[test]
fn limits_hold_in_long_ranges() {
    let db = Database::memory().unwrap();
    let series = series(&db, false).snapshot();
    for limit in [262_145, 300_000, 655_361] {
        let options = RangeOptions { limit: Some(limit), ..RangeOptions::default() };
        let range = || series.range_with(.., &options).unwrap();
        assert_eq!(range().read().unwrap().len(), limit);
        assert_eq!(visited(range(), Points::new(ValueType::I64)).len(), limit);
    }
}

#[test]
fn an_instant_has_neighbours() {
    let db = Database::memory().unwrap();
    let series = db.create_series("a", &crate::SeriesDefinition::new(ValueType::I64)).unwrap();
    for time in 1..=5 {
        series.append(Micros(time), time, &crate::CommitOptions::default()).unwrap();
    }
    let beside = |from: i64, to: i64| {
        let options = RangeOptions { bounding: true, ..RangeOptions::default() };
        let range = series.range_with(Micros(from)..Micros(to), &options);
        range.unwrap().read().unwrap().times().to_vec()
    };
    assert_eq!(beside(3, 3), [2, 3]);
    assert_eq!(beside(3, 4), [2, 3, 4]);
    assert_eq!((beside(9, 9), beside(0, 0)), (vec![5], vec![1]));
    assert_eq!(beside(4, 2), [0; 0]);
}

/// There was nothing beside the beginning of time, or its end.
#[test]
fn an_instant_at_an_end_of_time_has_a_neighbour() {
    let db = Database::memory().unwrap();
    let series = db.create_series("a", &crate::SeriesDefinition::new(ValueType::I64)).unwrap();
    let beside = |span: (Bound<i64>, Bound<i64>)| {
        let options = RangeOptions { bounding: true, ..RangeOptions::default() };
        let range = series.range_with((span.0.map(Micros), span.1.map(Micros)), &options);
        range.unwrap().read().unwrap().times().to_vec()
    };
    let begin = (Bound::Included(i64::MIN), Bound::Excluded(i64::MIN));
    let end = (Bound::Excluded(i64::MAX), Bound::Unbounded);
    assert_eq!((beside(begin), beside(end)), (vec![], vec![]));
    for time in [5, 9] {
        series.append(Micros(time), time, &crate::CommitOptions::default()).unwrap();
    }
    assert_eq!((beside(begin), beside(end)), (vec![5], vec![9]));
    for time in [i64::MIN, i64::MAX] {
        series.append(Micros(time), time, &crate::CommitOptions::default()).unwrap();
    }
    assert_eq!((beside(begin), beside(end)), (vec![i64::MIN], vec![i64::MAX]));
    assert_eq!(beside((Bound::Unbounded, Bound::Excluded(i64::MIN))), [i64::MIN]);
}

/// Where times are regular they are not copied but made again.
#[test]
fn regular_times_come_back_from_any_place() {
    let db = Database::memory().unwrap();
    let series = db.create_series("s", &SeriesDefinition::new(ValueType::I64)).unwrap();
    let mut times: BTreeSet<i64> = (0..40_000).map(|at| at * 1_000 - 7_000_000).collect();
    append(&series, &points(times.iter().copied(), false, 0));
    let check = |times: &BTreeSet<i64>| {
        for (first, last) in
            [(i64::MIN, i64::MAX), (-6_999_999, 90_000), (-500, 30_000_000), (7_000, 606_999)]
        {
            let expected = points(times.range(first..=last).copied(), false, 0);
            let read = series.range(Micros(first)..=Micros(last)).unwrap().read().unwrap();
            assert!(read == expected, "{first} to {last}");
            let mut visited = Points::new(ValueType::I64);
            let visit = |points: &Points, places| {
                visited.append(points, places);
                ControlFlow::Continue(())
            };
            series.range(Micros(first)..=Micros(last)).unwrap().visit(visit).unwrap();
            assert!(visited == expected, "{first} to {last}");
        }
    };
    check(&times);
    db.checkpoint().unwrap();
    check(&times);
    series.delete(Micros(-3_000)..Micros(4_500), &CommitOptions::default()).unwrap();
    times.retain(|time| !(-3_000..4_500).contains(time));
    let late: Vec<i64> = (0..600).map(|at| at * 30_001).collect();
    append(&series, &points(late.iter().copied(), false, 0));
    times.extend(late);
    check(&times);
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    check(&times);
}
