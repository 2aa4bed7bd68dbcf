//! Series of so many blocks that several threads read them, and sums of windows are told without
//! their points.

use std::collections::BTreeMap;

use super::super::Reopened;
use super::super::naive::Told;
use super::spans::{Kind, Span, spans_of};
use super::{Look, seeds};
use crate::series::block::tests::Numbers64;
use crate::{
    Aggregate, AggregateOptions, CommitOptions, Fill, Hold, Micros, Points, Quality, QualityFilter,
    Rollup, SeriesDefinition, SeriesValue, ValueType,
};

const POINTS: u64 = 290_000;
const SECOND: i64 = 1_000_000;

fn below(random: &mut Numbers64, count: usize) -> usize {
    usize::try_from(random.below(count as u64)).unwrap()
}

fn value(random: &mut Numbers64, of: ValueType, at: i64) -> SeriesValue {
    let number = random.below(1_000).cast_signed() + at % 977;
    let float = f64::from(i32::try_from(number).unwrap());
    match of {
        ValueType::F64 => SeriesValue::F64(if number == 7 { f64::NAN } else { float / 100.0 }),
        ValueType::F32 => SeriesValue::F32([0.5, 7.25, -2.5][below(random, 3)]),
        ValueType::I64 => SeriesValue::I64(number - 500),
        ValueType::Bool => SeriesValue::Bool(number % 3 == 0),
        ValueType::String => SeriesValue::String(format!("state {}", number % 5)),
    }
}

/// A series that is written in order, except for a little, by commits of some length.
fn write(random: &mut Numbers64, db: &Reopened, of: ValueType) -> Vec<Told> {
    let mut there: BTreeMap<i64, (SeriesValue, Quality)> = BTreeMap::new();
    let (is_regular, has_bad) = (below(random, 3) > 0, below(random, 3) == 0);
    let (mut time, mut written) = (0, 0);
    while written < POINTS {
        let mut points = Points::new(of);
        let count = 1 + random.below(60_000);
        let mut push = |time: i64, value: SeriesValue, quality: Quality| {
            points.push(Micros(time), value.clone(), quality).unwrap();
            there.insert(time, (value, quality));
        };
        for _ in 0..count {
            let step = if is_regular { 1 } else { 1 + random.below(3).cast_signed() };
            time += step * SECOND;
            let quality = match random.below(500) {
                0 if has_bad => Quality::BAD,
                _ => Quality::GOOD,
            };
            push(time, value(random, of, time / SECOND), quality);
        }
        if random.below(3) == 0 {
            for _ in 0..random.below(20) {
                let late = random.below(time.unsigned_abs()).cast_signed();
                push(late, value(random, of, late / SECOND), Quality::GOOD);
            }
        }
        written += count;
        let series = db.series("s").unwrap();
        series.append_points(&points, &CommitOptions::default()).unwrap();
        if random.below(4) == 0 {
            let from = random.below(time.unsigned_abs()).cast_signed();
            let to = from + random.below(5_000).cast_signed() * SECOND + 1;
            series.delete(Micros(from)..Micros(to), &CommitOptions::default()).unwrap();
            there.retain(|time, _| !(from..to).contains(time));
        }
        if random.below(2) == 0 {
            db.checkpoint().unwrap();
        }
    }
    if random.below(2) == 0 {
        db.compact();
    } else {
        db.checkpoint().unwrap();
    }
    there.into_iter().map(|(time, (value, quality))| (time, value, quality)).collect()
}

fn options(random: &mut Numbers64, of: ValueType, kind: &Kind) -> AggregateOptions {
    let summed = [Aggregate::Count, Aggregate::Sum, Aggregate::Mean];
    let ends = [
        Aggregate::Min,
        Aggregate::Max,
        Aggregate::First,
        Aggregate::Last,
        Aggregate::StdDev,
        Aggregate::Delta,
        Aggregate::Rate,
    ];
    let others = [
        Aggregate::Percentile(0.25),
        Aggregate::TimeWeightedMean(Hold::Step),
        Aggregate::TimeWeightedMean(Hold::Linear),
        Aggregate::DurationIn(value(random, of, 3)),
    ];
    let mut aggregates = summed.to_vec();
    if below(random, 2) == 0 {
        aggregates.push(ends[below(random, ends.len())].clone());
    }
    if below(random, 3) == 0 {
        aggregates.push(others[below(random, others.len())].clone());
    }
    let fill = [Fill::None, Fill::None, Fill::Null, Fill::Linear][below(random, 4)];
    let quality = [QualityFilter::Good, QualityFilter::Good, QualityFilter::All][below(random, 3)];
    AggregateOptions { fill, quality, ..AggregateOptions::new(aggregates, kind.windows()) }
}

fn play(seed: u64) {
    let random = &mut Numbers64(seed ^ 0x10_4600);
    let of = ValueType::ALL[usize::try_from(seed % 5).unwrap()];
    let db = Reopened::new();
    let widths = [60, 600, 3_600].iter().filter(|_| random.below(4) == 0);
    let rollups = widths.map(|width| Rollup::new(std::time::Duration::from_secs(*width)));
    let definition = SeriesDefinition { rollups: rollups.collect(), ..SeriesDefinition::new(of) };
    db.create_series("s", &definition).unwrap();
    let points = write(random, &db, of);
    let snapshot = db.series("s").unwrap().snapshot();
    let last = points.last().unwrap().0;
    let mut points = Some(points);
    for _ in 0..5 {
        let kind = match random.below(12) {
            0 => Kind::Calendar(1, "d", "Europe/Berlin"),
            _ => Kind::Fixed([7, 60, 61, 500, 1_800, 4_000][below(random, 6)] * SECOND),
        };
        let from = random.below(last.unsigned_abs() / 4).cast_signed();
        let to = last - random.below(last.unsigned_abs() / 4).cast_signed();
        let span = match random.below(3) {
            0 => Span { from: None, to: None },
            1 => Span { from: Some(from), to: None },
            _ => Span { from: Some(from), to: Some(to) },
        };
        let mut options = options(random, of, &kind);
        // Percentiles of some thousands of numbers are exact.
        if matches!(kind, Kind::Calendar(..)) {
            options.aggregates.retain(|one| !matches!(one, Aggregate::Percentile(_)));
        }
        let told = format!("seed {seed}, {span:?} by {kind:?}, {options:?}");
        let table = snapshot.aggregate(span.bounds(), &options).unwrap();
        let look = Look { points: points.take().unwrap(), of, options: &options, kind: &kind };
        let parts = kind.parts(spans_of(&span, &look.points).unwrap(), 1 << 20).unwrap();
        let rows = look.naive().with_rows(parts);
        let starts: Vec<i64> = rows.iter().map(|part| part.start).collect();
        assert_eq!(table.starts, starts, "{told}");
        look.compare(&table.columns, &rows, &told);
        points = Some(look.points);
    }
    let report = db.check().unwrap();
    assert!(report.is_clean(), "seed {seed}: {:?}", report.findings);
}

#[test]
fn windows_of_long_series_are_what_a_look_at_each_point_gives() {
    seeds(0..5).for_each(play);
}
