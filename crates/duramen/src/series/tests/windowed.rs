//! What windows come to is what a look at each point that is there gives, of every type and
//! quality, as of every commit, wherever the points and the rows of rollups are by then.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Reopened;
use super::naive::{Filled, Naive, Part, Told};
use crate::series::block::tests::Numbers64;
use crate::{
    Aggregate, AggregateOptions, CommitOptions, CommitSequence, Fill, Hold, Micros, Points,
    Quality, QualityFilter, Rollup, SeriesDefinition, SeriesValue, ValueType, Windows,
};

/// What happened to a time: in which commit, and the point then, if it was not deleted.
type Fate = (CommitSequence, Option<(SeriesValue, Quality)>);

/// A series "s", and what happened to each of its times.
struct Model {
    db: Reopened,
    of: ValueType,
    random: Numbers64,
    fates: BTreeMap<i64, Vec<Fate>>,
    commits: Vec<CommitSequence>,
}

/// Widths of rollups; most are no multiples of others.
const WIDTHS: [u64; 5] = [7, 10, 15, 60, 84];
const LAST: u64 = 900;

impl Model {
    fn new(seed: u64) -> Self {
        let random = Numbers64(seed);
        let of = ValueType::ALL[usize::try_from(seed % 5).unwrap()];
        let (fates, commits) = (BTreeMap::new(), Vec::new());
        let mut model = Self { db: Reopened::new(), of, random, fates, commits };
        let definition = model.definition();
        model.db.create_series("s", &definition).unwrap();
        model
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.random.below(count as u64)).unwrap()
    }

    fn definition(&mut self) -> SeriesDefinition {
        let bits = self.below(1 << WIDTHS.len());
        let widths = (0..WIDTHS.len()).filter(|at| bits >> at & 1 == 1).map(|at| WIDTHS[at]);
        let rollups = widths.map(|width| Rollup::new(Duration::from_micros(width))).collect();
        SeriesDefinition { rollups, ..SeriesDefinition::new(self.of) }
    }

    fn value(&mut self) -> SeriesValue {
        let number = self.random.below(9);
        let float = f64::from(u8::try_from(number).unwrap()) - 3.5;
        match self.of {
            ValueType::F64 => SeriesValue::F64(match number {
                0 => f64::NAN,
                1 => -0.0,
                2 => 0.0,
                3 => 1e15 + 0.25,
                _ => float,
            }),
            ValueType::F32 => SeriesValue::F32([f32::NAN, 0.0, 0.1, 7.5, -2.5][self.below(5)]),
            ValueType::I64 => SeriesValue::I64(match number {
                0 => i64::MAX,
                1 => i64::MIN,
                2 => i64::MAX - 1,
                3 => 9_007_199_254_740_993,
                _ => number.cast_signed() - 5,
            }),
            ValueType::Bool => SeriesValue::Bool(number < 4),
            ValueType::String => SeriesValue::String(["", "on", "off", "of"][self.below(4)].into()),
        }
    }

    fn time(&mut self) -> i64 {
        match self.below(60) {
            0 => i64::MIN,
            1 => i64::MAX,
            _ => self.random.below(LAST).cast_signed(),
        }
    }

    fn append(&mut self) {
        let mut points = Points::new(self.of);
        let count = 1 + self.below(40);
        // Most often behind each other, as they come from devices.
        let (mut time, step) = (self.time(), 1 + self.random.below(9).cast_signed());
        let in_order = self.below(3) > 0;
        let mut written = BTreeMap::new();
        for _ in 0..count {
            time = if in_order { time.saturating_add(step) } else { self.time() };
            let value = self.value();
            let quality =
                [Quality::GOOD, Quality::GOOD, Quality::BAD, Quality::UNCERTAIN][self.below(4)];
            points.push(Micros(time), value.clone(), quality).unwrap();
            written.insert(time, (value, quality));
        }
        let series = self.db.series("s").unwrap();
        let made = series.append_points(&points, &CommitOptions::default()).unwrap();
        for (time, point) in written {
            self.fates.entry(time).or_default().push((made.sequence, Some(point)));
        }
        self.commits.push(made.sequence);
    }

    fn delete(&mut self) {
        let from = self.random.below(LAST).cast_signed();
        let to = from + 1 + self.random.below(200).cast_signed();
        let series = self.db.series("s").unwrap();
        let made = series.delete(Micros(from)..Micros(to), &CommitOptions::default()).unwrap();
        for fates in self.fates.range_mut(from..to).map(|(_, fates)| fates) {
            fates.push((made.sequence, None));
        }
        self.commits.push(made.sequence);
    }

    fn step(&mut self) {
        match self.below(16) {
            0..8 => self.append(),
            8..10 => self.delete(),
            10..13 => self.db.checkpoint().unwrap(),
            13 => self.db.compact(),
            14 => self.db.reopen(),
            _ => {
                let definition = self.definition();
                let mut transaction = self.db.transaction();
                transaction.change_series("s", &definition).unwrap();
                transaction.commit(&CommitOptions::default()).unwrap();
            }
        }
    }

    fn points(&self, at: CommitSequence) -> Vec<Told> {
        let seen = |fates: &Vec<Fate>| {
            fates.iter().rev().find(|fate| fate.0 <= at).and_then(|fate| fate.1.clone())
        };
        let points = self.fates.iter();
        points
            .filter_map(|(time, fates)| seen(fates).map(|(value, quality)| (*time, value, quality)))
            .collect()
    }

    fn aggregates(&mut self) -> Vec<Aggregate> {
        let summed = [
            Aggregate::Count,
            Aggregate::Sum,
            Aggregate::Mean,
            Aggregate::Min,
            Aggregate::Max,
            Aggregate::First,
            Aggregate::Last,
            Aggregate::StdDev,
        ];
        let state = self.value();
        let others = [
            Aggregate::Delta,
            Aggregate::Rate,
            Aggregate::Percentile(0.0),
            Aggregate::Percentile(0.37),
            Aggregate::Percentile(1.0),
            Aggregate::TimeWeightedMean(Hold::Step),
            Aggregate::TimeWeightedMean(Hold::Linear),
            Aggregate::DurationIn(state),
        ];
        let bits = 1 + self.below(255);
        let some = |all: &[Aggregate]| -> Vec<Aggregate> {
            (0..8).filter(|at| bits >> at & 1 == 1).map(|at| all[at].clone()).collect()
        };
        match self.below(3) {
            0 => some(&others),
            1 => [some(&summed), some(&others)].concat(),
            _ => some(&summed),
        }
    }

    fn check(&mut self, seed: u64) {
        if self.commits.is_empty() {
            return;
        }
        let at = match self.below(3) {
            0 => {
                let at = self.below(self.commits.len());
                self.commits[at]
            }
            _ => *self.commits.last().unwrap(),
        };
        let widths = [7, 14, 60, 84, 105, 120, 210, 420, 1 + self.random.below(99).cast_signed()];
        let width = widths[self.below(widths.len())];
        let from = self.random.below(LAST).cast_signed() - 20;
        let to = from + 1 + self.random.below(LAST).cast_signed();
        let quality = [QualityFilter::Good, QualityFilter::Usable, QualityFilter::All]
            [self.below(6).saturating_sub(3)];
        let windows = Windows::of_width(Micros(width)).unwrap();
        let fill = if self.below(2) == 0 { Fill::None } else { Fill::Null };
        let options =
            AggregateOptions { fill, quality, ..AggregateOptions::new(self.aggregates(), windows) };
        let snapshot = self.db.series("s").unwrap().at(at);
        let table = snapshot.aggregate(Micros(from)..Micros(to), &options).unwrap();
        let naive = Naive { points: &self.points(at), options: &options, of: self.of };
        let windows = from.div_euclid(width)..=(to - 1).div_euclid(width);
        let part = |number: i64| {
            let (start, end) = (number * width, ((number + 1) * width).min(to));
            Part { start, first: start.max(from), last: end - 1, until: end }
        };
        let parts = naive.with_rows(windows.map(part).collect());
        let told = format!("seed {seed}, {from}..{to} by {width}, {options:?}");
        let starts: Vec<i64> = parts.iter().map(|part| part.start).collect();
        assert_eq!(table.starts, starts, "{told}");
        naive.compare(&table.columns, &parts, &|_, _| Filled::Nothing, &told);
    }
}

#[test]
fn windows_are_what_a_look_at_each_point_gives() {
    for seed in 0..300 {
        let mut model = Model::new(seed);
        for _ in 0..24 {
            model.step();
            model.check(seed);
        }
        let report = model.db.check().unwrap();
        assert!(report.is_clean(), "seed {seed}: {:?}", report.findings);
    }
}
