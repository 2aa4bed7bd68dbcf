//! What fills the first and last windows of a span is what is beside it: gaps of a part of time are
//! filled as those of all of it.

use std::time::Duration;

use super::rollups::{MINUTE, an_hour, compact, tiers};
use crate::series::block::tests::Numbers64;
use crate::{
    Aggregate, AggregateOptions, CommitOptions, Database, Fill, Hold, Micros, Points, Quality,
    QualityFilter, Rollup, Series, SeriesDefinition, SeriesValue, ValueType, WindowTable, Windows,
};

/// A database with a series "s" of points.
fn series(of: ValueType, all: &[(i64, SeriesValue, Quality)]) -> (Database, Series) {
    let db = Database::memory().unwrap();
    let series = db.create_series("s", &SeriesDefinition::new(of)).unwrap();
    let mut points = Points::new(of);
    for (time, value, quality) in all {
        points.push(Micros(*time), value.clone(), *quality).unwrap();
    }
    series.append_points(&points, &CommitOptions::default()).unwrap();
    (db, series)
}

fn options(what: &[Aggregate], width: i64, fill: Fill) -> AggregateOptions {
    let windows = Windows::of_width(Micros(width)).unwrap();
    AggregateOptions { fill, ..AggregateOptions::new(what.to_vec(), windows) }
}

fn values(table: &WindowTable, column: usize) -> Vec<Option<SeriesValue>> {
    (0..table.starts.len()).map(|row| table.columns[column].get(row)).collect()
}

/// They had none, however often there were points before.
#[test]
fn first_windows_have_what_was_last_before_the_span() {
    let (good, bad) = (Quality::GOOD, Quality::BAD);
    let all = [
        (3, 1.0.into(), good),
        (5, 3.0.into(), good),
        (22, 9.0.into(), bad),
        (61, 7.0.into(), good),
    ];
    let (_db, series) = series(ValueType::F64, &all);
    let what = [Aggregate::Last, Aggregate::Mean, Aggregate::Count, Aggregate::Delta];
    let table = |span: std::ops::Range<i64>, fill| {
        let options = options(&what, 10, fill);
        series.aggregate(Micros(span.start)..Micros(span.end), &options).unwrap()
    };
    let floats = |all: [f64; 4]| all.map(|one| Some(SeriesValue::F64(one)));
    let filled = table(40..80, Fill::Previous);
    assert_eq!(filled.starts, [40, 50, 60, 70]);
    assert_eq!(values(&filled, 0), floats([3.0, 3.0, 7.0, 7.0]));
    // The mean of the window before, not its last value.
    assert_eq!(values(&filled, 1), floats([2.0, 2.0, 7.0, 7.0]));
    assert_eq!(values(&filled, 2), [0, 0, 1, 0].map(|one| Some(SeriesValue::I64(one))));
    assert_eq!(values(&filled, 3), floats([2.0, 2.0, 4.0, 4.0]));
    // No point has to be in the span.
    assert_eq!(values(&table(30..50, Fill::Previous), 0), floats([3.0; 4])[..2]);
    // On the line from the window that begins at 0 to the one that begins at 60.
    let line = |from: f64, to: f64, share: f64| Some(SeriesValue::F64(from + (to - from) * share));
    let linear = table(30..50, Fill::Linear);
    assert_eq!(values(&linear, 1), [line(2.0, 7.0, 0.5), line(2.0, 7.0, 40.0 / 60.0)]);
    let usable =
        AggregateOptions { quality: QualityFilter::All, ..options(&what, 10, Fill::Previous) };
    let filled = series.aggregate(Micros(40)..Micros(80), &usable).unwrap();
    assert_eq!(values(&filled, 0), floats([9.0, 9.0, 7.0, 7.0]));
    // Before the first point there is nothing, and with other fills nothing changes.
    assert_eq!(values(&table(-20..0, Fill::Previous), 0), [None, None]);
    assert_eq!(values(&table(-20..10, Fill::Linear), 0)[..2], [None, None]);
    assert_eq!(values(&table(40..60, Fill::Null), 0), [None, None]);
    assert_eq!(values(&table(40..60, Fill::Value(0.5)), 0), floats([0.5; 4])[..2]);
}

/// A window that the span cuts has what is in its other part, which is beside the span.
#[test]
fn windows_that_are_cut_are_filled_from_their_other_part() {
    for of in [ValueType::I64, ValueType::F64] {
        let value = |number: i32| match of {
            ValueType::I64 => SeriesValue::I64(number.into()),
            _ => SeriesValue::F64(number.into()),
        };
        let all = [(12, value(4), Quality::GOOD), (18, value(8), Quality::GOOD)];
        let (_db, series) = series(of, &all);
        for (fill, expected) in
            [(Fill::Null, None), (Fill::Previous, Some(value(4))), (Fill::Linear, Some(value(4)))]
        {
            let options = options(&[Aggregate::Max], 10, fill);
            let table = series.aggregate(Micros(14)..Micros(16), &options).unwrap();
            assert_eq!((&table.starts[..], values(&table, 0)), (&[10][..], vec![expected]));
        }
    }
}

#[test]
fn every_series_of_a_grid_is_filled_from_before_the_span() {
    let (db, _) = series(ValueType::F64, &[(1, 5.0.into(), Quality::GOOD)]);
    let states = db.create_series("t", &SeriesDefinition::new(ValueType::String)).unwrap();
    states.append(Micros(2), "on", &CommitOptions::default()).unwrap();
    states.append(Micros(45), "off", &CommitOptions::default()).unwrap();
    let options = options(&[Aggregate::Last, Aggregate::Max], 10, Fill::Previous);
    let grid = db.snapshot().aggregate_series(&["s", "t"], Micros(30).., &options).unwrap();
    assert_eq!(grid.starts, [30, 40]);
    let column = |of: usize, at: usize| [0, 1].map(|row| grid.series[of][at].get(row));
    assert_eq!(column(0, 0), [Some(5.0.into()), Some(5.0.into())]);
    assert_eq!(column(1, 0), [Some("on".into()), Some("off".into())]);
    // A text is no number, wherever it is.
    assert_eq!(column(1, 1), [None, None]);
}

/// Each window without a point had the number as the mean of its texts.
#[test]
fn a_number_fills_nothing_that_texts_never_have() {
    let good = Quality::GOOD;
    let (_db, series) =
        series(ValueType::String, &[(3, "on".into(), good), (35, "7".into(), good)]);
    let what = [Aggregate::Mean, Aggregate::Sum, Aggregate::Max, Aggregate::Last, Aggregate::Count];
    let table = series.aggregate(.., &options(&what, 10, Fill::Value(7.0))).unwrap();
    assert_eq!(table.starts, [0, 10, 20, 30]);
    for column in 0..3 {
        assert_eq!(values(&table, column), [const { None }; 4]);
    }
    assert_eq!(values(&table, 3), [Some("on".into()), None, None, Some("7".into())]);
    assert_eq!(values(&table, 4), [1, 0, 0, 1].map(|count| Some(SeriesValue::I64(count))));
}

/// Also where only rows are left of it.
#[test]
fn rows_fill_gaps_when_their_points_have_gone() {
    let minute = |minute: i64| Micros(minute * 60_000_000);
    for fill in [Fill::Previous, Fill::Linear] {
        let rollups = [Rollup::new(MINUTE), Rollup::new(Duration::from_secs(7))];
        let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &rollups));
        let how = CommitOptions::default();
        series.delete(minute(10)..minute(20), &how).unwrap();
        series.delete(minute(40)..minute(58), &how).unwrap();
        let what = [Aggregate::Last, Aggregate::Sum];
        let options = options(&what, 120_000_000, fill);
        let read = || {
            let all = series.aggregate(minute(0)..minute(60), &options).unwrap();
            for (from, to) in [(12, 18), (14, 30), (50, 60), (30, 52), (44, 46)] {
                let part = series.aggregate(minute(from)..minute(to), &options).unwrap();
                let rows = usize::try_from(from / 2).unwrap()..usize::try_from(to / 2).unwrap();
                assert_eq!(part.starts, all.starts[rows.clone()]);
                for column in 0..2 {
                    let expected = &values(&all, column)[rows.clone()];
                    assert!(expected.iter().all(Option::is_some));
                    assert_eq!(values(&part, column), expected, "{fill:?} from {from}");
                }
            }
            all
        };
        let before = read();
        for now in [0, 3_600, 36_000] {
            clock.set(now);
            assert_eq!(read(), before);
            compact(&db);
            assert_eq!(read(), before);
        }
        assert_eq!(series.stats().unwrap().points, 0);
    }
}

fn is_near(one: Option<&SeriesValue>, two: Option<&SeriesValue>) -> bool {
    match (one, two) {
        (Some(SeriesValue::F64(one)), Some(SeriesValue::F64(two))) => {
            one.is_nan() && two.is_nan() || (one - two).abs() <= 1e-9 * one.abs().max(1.0)
        }
        (one, two) => one == two,
    }
}

fn random_points(random: &mut Numbers64, of: ValueType) -> Vec<(i64, SeriesValue, Quality)> {
    let mut time = 0;
    let point = |_| {
        let most = [1, 3, 9, 27, 81][usize::try_from(random.below(5)).unwrap()];
        time += 1 + random.below(most).cast_signed();
        let number = random.below(7);
        let value = match of {
            ValueType::String => SeriesValue::String(format!("{number}")),
            ValueType::Bool => SeriesValue::Bool(number < 3),
            ValueType::I64 => SeriesValue::I64(number.cast_signed()),
            _ if number == 6 => SeriesValue::F64(f64::NAN),
            _ => SeriesValue::F64(f64::from(u32::try_from(number).unwrap())),
        };
        let quality = if random.below(4) == 0 { Quality::BAD } else { Quality::GOOD };
        (time, value, quality)
    };
    (0..60).map(point).collect()
}

#[test]
fn gaps_of_a_part_of_time_are_filled_as_those_of_all_of_it() {
    let held = |hold| Aggregate::TimeWeightedMean(hold);
    let what = [
        Aggregate::Last,
        Aggregate::Max,
        Aggregate::Mean,
        Aggregate::Delta,
        Aggregate::Percentile(0.5),
        held(Hold::Step),
        held(Hold::Linear),
    ];
    for seed in 0..400 {
        let random = &mut Numbers64(seed);
        let of = [ValueType::F64, ValueType::I64, ValueType::Bool, ValueType::String]
            [usize::try_from(seed % 4).unwrap()];
        let (db, series) = series(of, &random_points(random, of));
        if random.below(2) == 0 {
            db.checkpoint().unwrap();
        }
        let width = 1 + random.below(20).cast_signed();
        let one = usize::try_from(random.below(what.len() as u64)).unwrap();
        let what = if random.below(2) == 0 { &what[..] } else { &what[one..=one] };
        for fill in [Fill::Previous, Fill::Linear] {
            let options = options(what, width, fill);
            let read = |from: i64, to: i64| {
                let span = Micros(from * width)..Micros(to * width);
                series.aggregate(span, &options).unwrap()
            };
            let all = read(-3, 200);
            let from = random.below(120).cast_signed() - 3;
            let to = from + 1 + random.below(60).cast_signed();
            let part = read(from, to);
            let rows = usize::try_from(from + 3).unwrap()..usize::try_from(to + 3).unwrap();
            assert_eq!(part.starts, all.starts[rows.clone()]);
            for column in 0..what.len() {
                let (found, expected) =
                    (values(&part, column), &values(&all, column)[rows.clone()]);
                let is_same = found
                    .iter()
                    .zip(expected)
                    .all(|(one, two)| is_near(one.as_ref(), two.as_ref()));
                let (what, from) = (&what[column], from * width);
                assert!(
                    is_same,
                    "seed {seed}, {of}, {fill:?} {what:?} of {width} from {from}: {found:?}, not \
                     {expected:?}"
                );
            }
        }
    }
}
