use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::*;
use crate::io::MemoryDevice;
use crate::series::block::tests::Numbers64;
use crate::series::{Aggregate, Fill, Hold, Points, Quality, SeriesDefinition, ValueType, Windows};
use crate::{Clock, CommitOptions, Database, Options, Rollup, SeriesValue};

fn series(points: &Points) -> Series {
    let db = Database::memory().unwrap();
    let definition = SeriesDefinition::new(points.value_type());
    let series = db.create_series("a", &definition).unwrap();
    series.append_points(points, &CommitOptions::default()).unwrap();
    series
}

fn row(series: &Series, span: std::ops::Range<i64>, what: &[Aggregate]) -> Vec<Option<f64>> {
    let windows = Windows::of_width(Micros(1_000_000)).unwrap();
    let options = AggregateOptions::new(what.to_vec(), windows);
    let table = series.aggregate(Micros(span.start)..Micros(span.end), &options).unwrap();
    let value = |column: &crate::WindowColumn| column.get(0).and_then(|one| one.as_f64());
    table.columns.iter().map(value).collect()
}

#[test]
fn a_delta_is_above_the_last_number_that_counts_however_far_back() {
    let mut points = Points::new(ValueType::F64);
    points.push(Micros(0), 1.0, Quality::GOOD).unwrap();
    for time in 1..=20_000 {
        points.push(Micros(time), 100.0, Quality::BAD).unwrap();
    }
    points.push(Micros(20_050), 5.0, Quality::GOOD).unwrap();
    let what = [Aggregate::Delta, Aggregate::TimeWeightedMean(Hold::Step), Aggregate::Count];
    let found = row(&series(&points), 20_010..20_100, &what);
    assert_eq!(found, [Some(4.0), Some(5.0), Some(1.0)]);
}

#[test]
fn lines_go_on_to_the_points_beside_the_span() {
    let mut points = Points::new(ValueType::F64);
    for (time, value) in [(0, 0.0), (100, 10.0)] {
        points.push(Micros(time), value, Quality::GOOD).unwrap();
    }
    let what = [Aggregate::TimeWeightedMean(Hold::Linear)];
    assert_eq!(row(&series(&points), 40..60, &what), [Some(5.0)]);
}

/// Many blocks of segments: decimals at regular times, and what takes more room at others.
fn long(count: i64) -> Series {
    let mut random = Numbers64(11);
    let mut points = Points::new(ValueType::F64);
    for place in 0..count {
        let (time, value) = if place < count / 2 {
            (place * 1_000, f64::from(u32::try_from(random.below(1_000_000)).unwrap()) / 100.0)
        } else {
            (place * 1_000 + random.below(1_000).cast_signed(), random.normal())
        };
        points.push(Micros(time), value, Quality::GOOD).unwrap();
    }
    let db = Database::memory().unwrap();
    let series = db.create_series("a", &SeriesDefinition::new(ValueType::F64)).unwrap();
    series.append_points(&points, &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    series
}

fn is_near(one: Option<SeriesValue>, two: Option<SeriesValue>) -> bool {
    match (one.and_then(|it| it.as_f64()), two.and_then(|it| it.as_f64())) {
        (Some(one), Some(two)) => (one - two).abs() <= 1e-9 * one.abs().max(1.0),
        (one, two) => one.is_none() && two.is_none(),
    }
}

#[test]
fn threads_that_share_a_series_come_to_what_one_comes_to() {
    let now = long(400_000).snapshot();
    let all = [
        Aggregate::Mean,
        Aggregate::Min,
        Aggregate::Delta,
        Aggregate::TimeWeightedMean(Hold::Step),
        Aggregate::TimeWeightedMean(Hold::Linear),
        Aggregate::Last,
    ];
    for (width, fill) in
        [(7_300, Fill::None), (250, Fill::Previous), (70_000_000, Fill::None), (300, Fill::Null)]
    {
        let windows = Windows::of_width(Micros(width)).unwrap();
        let options = AggregateOptions { fill, ..AggregateOptions::new(all.to_vec(), windows) };
        let span = Micros(1_234)..Micros(399_000_500);
        let bounded = now.bounded(&span).unwrap().unwrap();
        assert!(now.parts(bounded, &options).unwrap().len() > 1);
        let (shared, alone) =
            (now.aggregate(span.clone(), &options), now.aggregate_alone(&span, &options));
        let (shared, alone) = (shared.unwrap(), alone.unwrap());
        assert_eq!(shared.starts, alone.starts);
        for (one, two) in shared.columns.iter().zip(&alone.columns) {
            assert!((0..one.nulls.len()).all(|at| is_near(one.get(at), two.get(at))));
        }
    }
}

/// A clock that is set.
#[derive(Debug, Default)]
struct Set(AtomicI64);

impl Clock for Set {
    fn now(&self) -> Micros {
        Micros(self.0.load(Ordering::Relaxed))
    }
}

/// Where rows tell a part of what is asked, as its points have gone, one thread read all others.
#[test]
fn threads_share_the_points_that_are_left_beside_rows() {
    let clock = Arc::new(Set::default());
    let options = Options { background: false, clock: clock.clone(), ..Options::default() };
    let db = Database::open_device(Arc::new(MemoryDevice::new()), options).unwrap();
    let definition = SeriesDefinition {
        keep: Some(Duration::from_secs(400)),
        rollups: vec![Rollup::new(Duration::from_secs(10))],
        ..SeriesDefinition::new(ValueType::F64)
    };
    let series = db.create_series("a", &definition).unwrap();
    let mut random = Numbers64(7);
    let mut points = Points::new(ValueType::F64);
    for place in 0..1_000_000 {
        points.push(Micros(place * 1_000), random.normal(), Quality::GOOD).unwrap();
    }
    series.append_points(&points, &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    clock.0.store(1_000_000_000, Ordering::Relaxed);
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    let now = series.snapshot();
    assert_eq!(now.range(..).unwrap().read().unwrap().len(), 400_000);
    let windows = Windows::of_width(Micros(20_000_000)).unwrap();
    let what = vec![Aggregate::Sum, Aggregate::Percentile(0.9), Aggregate::Count];
    let options = AggregateOptions::new(what, windows);
    let parts = now.parts(now.bounded(&(..)).unwrap().unwrap(), &options).unwrap();
    assert!(parts.len() > 2 && parts[0].span.last >= 600_000_000, "{parts:?}");
    let (shared, alone) = (now.aggregate(.., &options), now.aggregate_alone(&(..), &options));
    let (shared, alone) = (shared.unwrap(), alone.unwrap());
    assert_eq!((shared.starts.len(), &shared.starts), (50, &alone.starts));
    for (one, two) in shared.columns.iter().zip(&alone.columns) {
        assert!((0..50).all(|at| is_near(one.get(at), two.get(at))));
    }
    assert_eq!(shared.columns[1].nulls, [[true; 30].as_slice(), &[false; 20]].concat());
    // What rows tell alone is read by one thread.
    let sums = AggregateOptions::new(vec![Aggregate::Sum], options.windows.clone());
    assert!(now.parts(now.bounded(&(..)).unwrap().unwrap(), &sums).unwrap().is_empty());
}

#[test]
fn sums_of_windows_out_of_packed_blocks_are_those_of_their_points() {
    let now = long(400_000).snapshot();
    let points = now.range(..).unwrap().read().unwrap();
    let what = vec![Aggregate::Count, Aggregate::Sum, Aggregate::Mean];
    for width in [60_000, 7_300, 1_000, 1_500] {
        let options =
            AggregateOptions::new(what.clone(), Windows::of_width(Micros(width)).unwrap());
        let table = now.aggregate_alone(&(..), &options).unwrap();
        let mut wanted = std::collections::BTreeMap::new();
        for point in points.iter() {
            let (count, sum) =
                wanted.entry(point.time.0.div_euclid(width) * width).or_insert((0_i64, 0.0));
            *count += 1;
            *sum += point.value.as_f64().unwrap();
        }
        assert!(table.starts.iter().eq(wanted.keys()));
        for (at, (count, sum)) in wanted.values().enumerate() {
            assert_eq!(table.columns[0].get(at), Some(SeriesValue::I64(*count)));
            let mean = sum / i32::try_from(*count).map(f64::from).unwrap();
            assert!(is_near(table.columns[1].get(at), Some(SeriesValue::F64(*sum))));
            assert!(is_near(table.columns[2].get(at), Some(SeriesValue::F64(mean))));
        }
    }
}

#[test]
fn a_series_without_points_has_no_windows() {
    let series = series(&Points::new(ValueType::I64));
    let windows = Windows::of_width(Micros(1)).unwrap();
    let options = AggregateOptions::new(vec![Aggregate::Max], windows);
    let table = series.aggregate(.., &options).unwrap();
    assert!(table.starts.is_empty() && table.columns[0].values.is_empty());
    series.append(Micros(7), 3, &CommitOptions::default()).unwrap();
    let table = series.aggregate(.., &options).unwrap();
    assert_eq!(table.starts, [7]);
    assert_eq!(table.columns[0].get(0), Some(SeriesValue::I64(3)));
}

#[test]
fn what_was_deleted_or_came_late_moves_the_ends_of_a_series() {
    let series = long(20_000);
    let ends = |snapshot: &SeriesSnapshot| {
        let points = snapshot.range(..).unwrap().read().unwrap();
        let (bounded, _) = snapshot.bounded(&(..)).unwrap().unwrap();
        let times = points.times();
        assert_eq!((Some(&bounded.first), Some(&bounded.last)), (times.first(), times.last()));
        (bounded.first, bounded.last)
    };
    let before = series.snapshot();
    let (first, last) = ends(&before);
    let how = CommitOptions::default();
    series.delete(..Micros(first + 5_000), &how).unwrap();
    series.delete(Micros(last - 5_000).., &how).unwrap();
    let cut = ends(&series.snapshot());
    assert!(cut.0 > first && cut.1 < last);
    assert_eq!(ends(&before), (first, last));
    series.append(Micros(-1), 1.0, &how).unwrap();
    series.append(Micros(last + 1), 1.0, &how).unwrap();
    assert_eq!(ends(&series.snapshot()), (-1, last + 1));
    series.delete(.., &how).unwrap();
    assert!(series.snapshot().bounded(&(..)).unwrap().is_none());
}
