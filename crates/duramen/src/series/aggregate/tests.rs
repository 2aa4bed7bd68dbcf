#![expect(clippy::cast_precision_loss, reason = "tests use small values")]

use super::*;
use crate::revision::Micros;
use crate::series::block::tests::Numbers64;
use crate::series::{Point, Points, ValueType};

fn points(all: &[(i64, f64)]) -> Points {
    let mut points = Points::new(ValueType::F64);
    for (time, value) in all {
        points.push(Micros(*time), *value, Quality::GOOD).unwrap();
    }
    points
}

/// The table of points, which come in parts of some length.
fn run(
    (points, span): (&Points, (i64, i64)),
    options: &AggregateOptions,
    part: usize,
) -> Result<WindowTable> {
    let of = |wanted: &dyn Fn(i64) -> bool| points.times().iter().position(|time| wanted(*time));
    let first = of(&|time| time >= span.0).unwrap_or(points.len());
    let end = of(&|time| time >= span.1).unwrap_or(points.len());
    let mut before = Before::default();
    (0..first)
        .rev()
        .filter_map(|index| points.get(index))
        .find(|one| !before.add(one.clone(), options));
    let mut stream = Stream::new(points.value_type(), options, span, before)?;
    let mut start = first;
    while start < end {
        let next = end.min(start + part);
        let mut some = Points::new(points.value_type());
        some.append(points, start..next);
        stream.add(&some, 0..some.len())?;
        start = next;
    }
    let mut table = stream.finish(points.get(end).as_ref())?;
    for column in 0..table.columns.len() {
        table.fill(column, options.fill, (None, None));
    }
    Ok(table)
}

fn width(micros: i64) -> Windows {
    Windows::of_width(Micros(micros)).unwrap()
}

fn column(table: &WindowTable, index: usize) -> Vec<Option<f64>> {
    let column = &table.columns[index];
    (0..table.starts.len()).map(|row| column.get(row)?.as_f64()).collect()
}

/// They were subtracted as floats, which are 256 apart there.
#[test]
fn changes_of_great_integers_are_exact() {
    let mut points = Points::new(ValueType::I64);
    for (time, value) in [(0, i64::MAX - 9), (12, i64::MAX - 6), (25, i64::MAX), (31, i64::MIN)] {
        points.push(Micros(time), value, Quality::GOOD).unwrap();
    }
    let options = AggregateOptions::new(vec![Aggregate::Delta, Aggregate::Rate], width(10));
    let table = run((&points, (0, 40)), &options, 2).unwrap();
    let all = 2_f64.powi(64);
    assert_eq!(column(&table, 0), [0.0, 3.0, 6.0, -all].map(Some));
    let rates = [None, Some(3.0 / 12e-6), Some(6.0 / 13e-6), Some(-all / 6e-6)];
    assert_eq!(column(&table, 1), rates);
}

/// Sums that are more than a float can be once made means of finite numbers infinite.
#[test]
fn means_of_the_greatest_floats_are_finite() {
    let shares =
        [(0, 1.0), (2, 1.0), (4, 0.5), (11, -1.0), (13, -1.0), (25, 1.0), (27, -1.0), (29, 1.0)];
    let points = points(&shares.map(|(time, share)| (time, share * f64::MAX)));
    let held = |hold| Aggregate::TimeWeightedMean(hold);
    let all = vec![Aggregate::Mean, held(Hold::Step), held(Hold::Linear), Aggregate::Max];
    let expected = [[2.5 / 3.0, -1.0, 1.0 / 3.0], [0.7, -0.85, -0.4]];
    for aggregates in [vec![Aggregate::Mean], all] {
        let options = AggregateOptions::new(aggregates, width(10));
        for part in [1, 2, 100] {
            let table = run((&points, (0, 30)), &options, part).unwrap();
            for (index, expected) in expected.iter().enumerate().take(table.columns.len()) {
                for (found, expected) in column(&table, index).into_iter().zip(expected) {
                    assert!((found.unwrap() / f64::MAX - expected).abs() < 1e-12, "{found:?}");
                }
            }
            let means = (0..table.columns.len()).flat_map(|index| column(&table, index));
            assert!(means.flatten().all(f64::is_finite));
        }
    }
    let flat: Vec<(i64, f64)> = (0..50).map(|at| (at * 7, f64::MAX)).collect();
    let options = AggregateOptions::new(vec![held(Hold::Linear), Aggregate::Mean], width(3));
    let table = run((&self::points(&flat), (0, 340)), &options, 9).unwrap();
    for mean in [0, 1].into_iter().flat_map(|index| column(&table, index)).flatten() {
        assert!((mean / f64::MAX - 1.0).abs() < 1e-12, "{mean}");
    }
    let infinite = self::points(&[(0, f64::INFINITY), (2, 1.0)]);
    let options = AggregateOptions::new(vec![Aggregate::Mean, held(Hold::Step)], width(10));
    let table = run((&infinite, (0, 10)), &options, 1).unwrap();
    assert_eq!([0, 1].map(|index| column(&table, index)[0]), [Some(f64::INFINITY); 2]);
}

#[test]
fn windows_are_what_they_come_to_by_hand() {
    let points = points(&[(0, 1.0), (4, 3.0), (6, 2.0), (25, 10.0), (29, 6.0)]);
    let hold = |hold| Aggregate::TimeWeightedMean(hold);
    let aggregates = vec![
        Aggregate::Count,
        Aggregate::Sum,
        Aggregate::Mean,
        Aggregate::Min,
        Aggregate::Max,
        Aggregate::First,
        Aggregate::Last,
        Aggregate::Delta,
        Aggregate::Rate,
        Aggregate::StdDev,
        Aggregate::Percentile(0.5),
        hold(Hold::Step),
        hold(Hold::Linear),
        Aggregate::DurationIn(SeriesValue::F64(2.0)),
    ];
    let options = AggregateOptions::new(aggregates, width(10));
    let table = run((&points, (0, 30)), &options, 2).unwrap();
    // 2 holds from 6 on through the whole second window, so that it is not left out.
    assert_eq!(table.starts, [0, 10, 20]);
    let expected: [[Option<f64>; 3]; 14] = [
        [Some(3.0), Some(0.0), Some(2.0)],
        [Some(6.0), None, Some(16.0)],
        [Some(2.0), None, Some(8.0)],
        [Some(1.0), None, Some(6.0)],
        [Some(3.0), None, Some(10.0)],
        [Some(1.0), None, Some(10.0)],
        [Some(2.0), None, Some(6.0)],
        [Some(1.0), None, Some(4.0)],
        [Some(1e6 / 6.0), None, Some(4e6 / 23.0)],
        [Some(1.0), None, Some(8_f64.sqrt())],
        [Some(2.0), None, Some(8.0)],
        [Some((4.0 + 6.0 + 8.0) / 10.0), Some(2.0), Some((10.0 + 40.0 + 6.0) / 10.0)],
        [
            Some((8.0 + 5.0 + 4.0 * f64::midpoint(2.0, 2.0 + 8.0 * 4.0 / 19.0)) / 10.0),
            Some(2.0 + 8.0 * 9.0 / 19.0),
            Some((5.0 * f64::midpoint(2.0 + 8.0 * 14.0 / 19.0, 10.0) + 32.0) / 9.0),
        ],
        [Some(4.0), Some(10.0), Some(5.0)],
    ];
    for (index, expected) in expected.iter().enumerate() {
        let found = column(&table, index);
        for (found, expected) in found.iter().zip(expected) {
            let alike = match (found, expected) {
                (Some(one), Some(two)) => (one - two).abs() < 1e-9 * two.abs().max(1.0),
                (one, two) => one == two,
            };
            assert!(alike, "{:?}: {found:?}, not {expected:?}", options.aggregates[index]);
        }
    }
}

/// Samoa had no 30th of December 2011.
#[test]
fn a_day_that_a_zone_skipped_is_no_gap() {
    let hour = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_microsecond();
    let span = (hour("2011-12-29T10:00:00Z"), hour("2012-01-01T10:00:00Z"));
    let points = points(&[(span.0, 1.0), (span.1 - 1, 2.0)]);
    let windows = Windows::parse("1d", "Pacific/Apia").unwrap();
    let fill = Fill::Value(0.0);
    let options = AggregateOptions { fill, ..AggregateOptions::new(vec![Aggregate::Max], windows) };
    let table = run((&points, span), &options, 1).unwrap();
    let days = ["2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"];
    assert_eq!(table.starts, days.map(hour));
    assert_eq!(column(&table, 0), [Some(1.0), Some(0.0), Some(2.0)]);
}

#[test]
fn gaps_are_filled_as_it_is_asked_for() {
    let points = points(&[(15, 10.0), (45, 40.0)]);
    let cases = [
        (Fill::None, vec![Some(10.0), Some(40.0)]),
        (Fill::Null, vec![None, Some(10.0), None, None, Some(40.0), None]),
        (Fill::Previous, [None, Some(10.0), Some(10.0), Some(10.0), Some(40.0), Some(40.0)].into()),
        (Fill::Linear, vec![None, Some(10.0), Some(20.0), Some(30.0), Some(40.0), None]),
        (Fill::Value(-1.0), [-1.0, 10.0, -1.0, -1.0, 40.0, -1.0].map(Some).into()),
    ];
    for (fill, expected) in cases {
        let aggregates = vec![Aggregate::Mean, Aggregate::Max];
        let options = AggregateOptions { fill, ..AggregateOptions::new(aggregates, width(10)) };
        let table = run((&points, (0, 60)), &options, 1).unwrap();
        assert_eq!(column(&table, 0), expected, "{fill:?}");
        assert_eq!(column(&table, 1), expected, "{fill:?}");
    }
}

/// An integer was made of any number, 0 of NaN.
#[test]
fn what_is_no_integer_fills_no_gap_of_integers() {
    let mut points = Points::new(ValueType::I64);
    for time in [1, 21] {
        points.push(Micros(time), 7, Quality::GOOD).unwrap();
    }
    for (number, filled) in [(2.6, Some(3.0)), (f64::NAN, None), (f64::INFINITY, None)] {
        let fill = Fill::Value(number);
        let base = AggregateOptions::new(vec![Aggregate::Max], width(10));
        let options = AggregateOptions { fill, ..base };
        let table = run((&points, (0, 30)), &options, 1).unwrap();
        assert_eq!(column(&table, 0), [Some(7.0), filled, Some(7.0)]);
    }
}

/// Integers were made floats on the way, and numbers that are the same came to another one.
#[test]
fn a_gap_between_equal_values_has_that_value() {
    let great = 9_007_199_254_740_993_i64;
    let at = |time: i64, value: SeriesValue| (Micros(time), value);
    let cases = [
        (at(5, great.into()), at(105, great.into()), vec![great.into(); 10]),
        (at(5, i64::MIN.into()), at(25, i64::MAX.into()), vec![i64::MIN.into(), 0.into()]),
        (at(5, 0.1.into()), at(105, 0.1.into()), vec![0.1.into(); 10]),
    ];
    for (one, two, expected) in cases {
        let mut points = Points::new(one.1.value_type());
        points.push(one.0, one.1, Quality::GOOD).unwrap();
        points.push(two.0, two.1, Quality::GOOD).unwrap();
        let base = AggregateOptions::new(vec![Aggregate::Last], width(10));
        let options = AggregateOptions { fill: Fill::Linear, ..base };
        let table = run((&points, (0, two.0.0 + 1)), &options, 1).unwrap();
        for (row, expected) in expected.into_iter().enumerate() {
            assert_eq!(table.columns[0].get(row), Some(expected));
        }
    }
}

/// Where a share of the way was nothing, an infinite value was taken so many times.
#[test]
fn a_line_of_infinite_values_is_infinite() {
    let infinite = f64::INFINITY;
    let points = points(&[(0, infinite), (10, infinite), (20, 1.0), (30, 1.0), (40, -infinite)]);
    let linear = Aggregate::TimeWeightedMean(Hold::Linear);
    let options = AggregateOptions::new(vec![linear], width(10));
    let table = run((&points, (0, 40)), &options, 9).unwrap();
    assert_eq!(column(&table, 0), [infinite, infinite, 1.0, -infinite].map(Some));
}

/// Their bits were compared.
#[test]
fn zeros_of_both_signs_are_one_state_and_so_is_what_is_no_number() {
    let points = points(&[(0, 0.0), (3, -0.0), (5, f64::NAN), (6, -f64::NAN), (9, 1.0)]);
    for (state, expected) in [(0.0, 5.0), (-0.0, 5.0), (f64::NAN, 4.0), (1.0, 1.0)] {
        let state = Aggregate::DurationIn(state.into());
        let options = AggregateOptions::new(vec![state.clone()], width(10));
        let table = run((&points, (0, 10)), &options, 9).unwrap();
        assert_eq!(column(&table, 0), [Some(expected)], "{state:?}");
    }
}

#[test]
fn only_points_of_the_quality_that_is_asked_for_count() {
    let mut points = points(&[(0, 1.0)]);
    points.push(Micros(2), 100.0, Quality::BAD).unwrap();
    points.push(Micros(4), 5.0, Quality::UNCERTAIN).unwrap();
    points.push(Micros(6), 7.0, Quality::GOOD).unwrap();
    let hold = Aggregate::TimeWeightedMean(Hold::Step);
    let of = |quality| {
        let aggregates = vec![Aggregate::Sum, hold.clone()];
        let options = AggregateOptions { quality, ..AggregateOptions::new(aggregates, width(10)) };
        let table = run((&points, (0, 10)), &options, 9).unwrap();
        (column(&table, 0)[0].unwrap(), column(&table, 1)[0].unwrap())
    };
    // What is not counted ends what held before it, and nothing holds until the next that counts.
    assert_eq!(of(QualityFilter::Good), (8.0, (2.0 + 28.0) / 6.0));
    assert_eq!(of(QualityFilter::Usable), (13.0, (2.0 + 10.0 + 28.0) / 8.0));
    assert_eq!(of(QualityFilter::All), (113.0, (2.0 + 200.0 + 10.0 + 28.0) / 10.0));
}

#[test]
fn values_keep_the_type_of_their_series() {
    let mut states = Points::new(ValueType::String);
    for (time, state) in [(0, "on"), (3, "off"), (8, "on")] {
        states.push(Micros(time), state, Quality::GOOD).unwrap();
    }
    let on = Aggregate::DurationIn("on".into());
    let aggregates = vec![Aggregate::First, on, Aggregate::Max, Aggregate::Sum];
    let options = AggregateOptions::new(aggregates, width(10));
    let table = run((&states, (0, 10)), &options, 9).unwrap();
    let row: Vec<_> = table.columns.iter().map(|column| column.get(0)).collect();
    assert_eq!(row, [Some("on".into()), Some(SeriesValue::I64(5)), None, None]);
    let mut integers = Points::new(ValueType::I64);
    for (time, value) in [(0, i64::MAX), (1, i64::MAX - 1)] {
        integers.push(Micros(time), value, Quality::GOOD).unwrap();
    }
    let aggregates = vec![Aggregate::Min, Aggregate::Last, Aggregate::Max];
    let table = run((&integers, (0, 10)), &AggregateOptions::new(aggregates, width(5)), 1).unwrap();
    let row: Vec<_> = table.columns.iter().map(|column| column.get(0)).collect();
    let expected =
        [i64::MAX - 1, i64::MAX - 1, i64::MAX].map(|value| Some(SeriesValue::I64(value)));
    assert_eq!(row, expected);
}

/// What a window is by looking at every microsecond of it.
fn naive(points: &Points, (start, end): (i64, i64), aggregate: &Aggregate) -> Option<f64> {
    let all: Vec<Point> = points.iter().collect();
    let inside = || all.iter().filter(|one| (start..end).contains(&one.time.0));
    let good = || inside().filter(|one| one.quality.is_good());
    let numbers: Vec<f64> = good().filter_map(|one| one.value.as_f64()).collect();
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let held =
        |time: i64| all.iter().rfind(|one| one.time.0 <= time).filter(|one| one.quality.is_good());
    match aggregate {
        Aggregate::Count => Some(numbers.len() as f64),
        _ if matches!(aggregate, Aggregate::TimeWeightedMean(_)) => {
            let held = (start..end).filter_map(|time| held(time)?.value.as_f64());
            let held: Vec<f64> = held.collect();
            (!held.is_empty()).then(|| held.iter().sum::<f64>() / held.len() as f64)
        }
        Aggregate::DurationIn(state) => {
            let is_state = |time: &i64| held(*time).is_some_and(|one| one.value == *state);
            Some((start..end).filter(is_state).count() as f64)
        }
        _ if numbers.is_empty() => None,
        Aggregate::Sum => Some(numbers.iter().sum()),
        Aggregate::Mean => Some(mean),
        Aggregate::Min => numbers.iter().copied().reduce(f64::min),
        Aggregate::Max => numbers.iter().copied().reduce(f64::max),
        Aggregate::First => numbers.first().copied(),
        Aggregate::Last => numbers.last().copied(),
        Aggregate::StdDev => {
            let squares: f64 = numbers.iter().map(|one| (one - mean) * (one - mean)).sum();
            (numbers.len() > 1).then(|| (squares / (numbers.len() as f64 - 1.0)).sqrt())
        }
        _ => {
            let before = all.iter().rfind(|one| one.time.0 < start && one.quality.is_good());
            let from = before.or_else(|| good().next())?.value.as_f64()?;
            Some(numbers.last()? - from)
        }
    }
}

#[test]
fn windows_are_what_a_look_at_every_microsecond_gives() {
    let aggregates = vec![
        Aggregate::Count,
        Aggregate::Sum,
        Aggregate::Mean,
        Aggregate::Min,
        Aggregate::Max,
        Aggregate::First,
        Aggregate::Last,
        Aggregate::StdDev,
        Aggregate::Delta,
        Aggregate::TimeWeightedMean(Hold::Step),
        Aggregate::DurationIn(SeriesValue::F64(2.0)),
    ];
    for seed in 0..200 {
        let random = &mut Numbers64(seed);
        let mut points = Points::new(ValueType::F64);
        let mut time = -40;
        for _ in 0..random.below(40) {
            time += 1 + random.below(9).cast_signed();
            let quality = if random.below(5) == 0 { Quality::BAD } else { Quality::GOOD };
            points.push(Micros(time), random.below(4) as f64, quality).unwrap();
        }
        let wide = 1 + random.below(30).cast_signed();
        let span = (random.below(60).cast_signed() - 50, 30 + random.below(60).cast_signed());
        let fill = Fill::Null;
        let options =
            AggregateOptions { fill, ..AggregateOptions::new(aggregates.clone(), width(wide)) };
        let part = 1 + usize::try_from(random.below(5)).unwrap();
        let table = run((&points, span), &options, part).unwrap();
        let (first, last) = (span.0.div_euclid(wide), (span.1 - 1).div_euclid(wide));
        let starts: Vec<i64> = (first..=last).map(|number| number * wide).collect();
        assert_eq!(table.starts, starts);
        for (index, aggregate) in aggregates.iter().enumerate() {
            let found = column(&table, index);
            for (start, found) in starts.iter().zip(found) {
                let window = ((*start).max(span.0), (*start + wide).min(span.1));
                let expected = naive(&points, window, aggregate);
                let alike = match (found, expected) {
                    (Some(one), Some(two)) => (one - two).abs() < 1e-9,
                    (one, two) => one == two,
                };
                assert!(
                    alike,
                    "seed {seed}, {aggregate:?} in {window:?}: {found:?}, not {expected:?}"
                );
            }
        }
    }
}

/// Those of texts were left out where another state held, so that they did not add up.
#[test]
fn windows_without_points_have_rows_for_times_in_states_of_any_type() {
    let values: [[SeriesValue; 2]; 5] = [
        [SeriesValue::F64(1.0), SeriesValue::F64(2.0)],
        [SeriesValue::F32(1.0), SeriesValue::F32(2.0)],
        [SeriesValue::I64(1), SeriesValue::I64(2)],
        [SeriesValue::Bool(false), SeriesValue::Bool(true)],
        ["run".into(), "idle".into()],
    ];
    for [run_state, idle] in values {
        let mut states = Points::new(idle.value_type());
        for (time, state) in [(0, &run_state), (20, &idle), (30, &run_state)] {
            states.push(Micros(time), state.clone(), Quality::GOOD).unwrap();
        }
        let options = AggregateOptions::new(vec![Aggregate::DurationIn(idle.clone())], width(5));
        let table = run((&states, (0, 35)), &options, 2).unwrap();
        assert_eq!(table.starts, [0, 5, 10, 15, 20, 25, 30], "{idle:?}");
        let expected = [0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 0.0].map(Some);
        assert_eq!(column(&table, 0), expected, "{idle:?}");
        // What is bad holds nothing, and before the first point nothing does.
        let mut bad = Points::new(idle.value_type());
        for (time, quality) in [(12, Quality::GOOD), (20, Quality::BAD), (41, Quality::GOOD)] {
            bad.push(Micros(time), run_state.clone(), quality).unwrap();
        }
        let table = run((&bad, (0, 50)), &options, 1).unwrap();
        assert_eq!(table.starts, [10, 15, 40, 45], "{idle:?}");
    }
}

/// The window after that of the last microsecond has no number.
#[test]
fn windows_at_both_ends_of_time_have_their_points() {
    for wide in [1, 2, 7, 10] {
        for fill in [Fill::None, Fill::Null] {
            let aggregates = vec![
                Aggregate::Count,
                Aggregate::Last,
                Aggregate::DurationIn(SeriesValue::F64(1.0)),
            ];
            let options =
                AggregateOptions { fill, ..AggregateOptions::new(aggregates, width(wide)) };
            for (first, span) in
                [(i64::MIN, (i64::MIN, i64::MIN + 3)), (i64::MAX - 2, (i64::MAX - 2, i64::MAX))]
            {
                let mut stream =
                    Stream::new(ValueType::F64, &options, span, Before::default()).unwrap();
                let some = points(&[(first, 1.0), (first + 1, 1.0), (first + 2, 3.0)]);
                stream.add(&some, 0..3).unwrap();
                let table = stream.finish(None).unwrap();
                let sum = |of| column(&table, of).into_iter().flatten().reduce(|a, b| a + b);
                assert_eq!(sum(0), Some(3.0), "{wide} at {first}");
                let last = column(&table, 1).pop();
                assert_eq!(last, Some(Some(3.0)), "{wide} at {first}");
                assert_eq!(sum(2), Some(2.0), "{wide} at {first}");
                let starts = some.times().iter().map(|time| width(wide).around(Micros(*time)));
                let mut starts: Vec<i64> = starts.map(|around| around.unwrap().0.0).collect();
                starts.dedup();
                assert_eq!(table.starts, starts, "{wide} at {first}");
            }
        }
    }
}

#[test]
fn too_many_windows_and_shares_beyond_one_are_refused() {
    let points = points(&[(0, 1.0)]);
    let aggregates = vec![Aggregate::TimeWeightedMean(Hold::Step)];
    let options = AggregateOptions::new(aggregates, width(1));
    let refused = run((&points, (0, i64::MAX)), &options, 1).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let options = AggregateOptions::new(vec![Aggregate::Percentile(95.0)], width(1));
    assert_eq!(run((&points, (0, 9)), &options, 1).unwrap_err().kind(), ErrorKind::Invalid);
}

/// Each window between two points was gone through, though none had a row: for years.
#[test]
fn windows_in_which_nothing_that_counts_held_are_passed_over() {
    let year = 365 * 86_400_000_000_i64;
    let mut states = Points::new(ValueType::String);
    for (time, state) in [(3, "off"), (50 * year, "on"), (50 * year + 15, "off")] {
        states.push(Micros(time), state, Quality::GOOD).unwrap();
    }
    // A text has no mean.
    let held = vec![Aggregate::Count, Aggregate::TimeWeightedMean(Hold::Step)];
    let table = run((&states, (0, 99 * year)), &AggregateOptions::new(held, width(10)), 2).unwrap();
    assert_eq!(table.starts, [0, 50 * year, 50 * year + 10]);
    assert_eq!(column(&table, 0), [1.0, 1.0, 1.0].map(Some));
    assert_eq!(column(&table, 1), [None; 3]);
    let values = points(&[(0, f64::NAN), (60 * year + 5, 1.0)]);
    let held = vec![Aggregate::TimeWeightedMean(Hold::Step)];
    let options = AggregateOptions::new(held, width(10));
    let table = run((&values, (0, 60 * year + 10)), &options, 1).unwrap();
    assert_eq!(table.starts, [0, 60 * year]);
    assert_eq!(column(&table, 0), [None, Some(1.0)]);
}
