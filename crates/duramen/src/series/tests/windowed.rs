//! What windows come to is what a look at each point that is there gives, of every type and
//! quality, as of every commit, wherever the points and the rows of rollups are by then.

#![expect(clippy::cast_precision_loss, reason = "tests compare floats")]

use std::collections::BTreeMap;
use std::time::Duration;

use super::Reopened;
use crate::series::block::tests::Numbers64;
use crate::{
    Aggregate, AggregateOptions, CommitOptions, CommitSequence, Fill, Hold, Micros, Points,
    Quality, QualityFilter, Rollup, SeriesDefinition, SeriesValue, ValueType, WindowTable, Windows,
};

type Told = (i64, SeriesValue, Quality);
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
        let naive = Naive { points: self.points(at), options: &options, to };
        naive.compare(&table, (from, to, width), seed);
    }
}

/// What is told by a look at all points.
struct Naive<'a> {
    points: Vec<Told>,
    options: &'a AggregateOptions,
    to: i64,
}

fn number(value: &SeriesValue) -> Option<f64> {
    value.as_f64().filter(|number| !number.is_nan())
}

/// One number less another one.
fn apart(one: &SeriesValue, two: &SeriesValue) -> f64 {
    match (one, two) {
        (SeriesValue::I64(one), SeriesValue::I64(two)) => {
            (i128::from(*one) - i128::from(*two)) as f64
        }
        (one, two) => one.as_f64().unwrap() - two.as_f64().unwrap(),
    }
}

impl Naive<'_> {
    fn counts(&self, point: &Told) -> bool {
        self.options.quality.takes(point.2)
    }

    fn is_state(state: &SeriesValue, value: &SeriesValue) -> bool {
        if let (SeriesValue::I64(one), SeriesValue::I64(two)) = (state, value) {
            return one == two;
        }
        match (number(state), number(value)) {
            (None, None) => {
                let is_nan = |value: &SeriesValue| value.as_f64().is_some();
                is_nan(state) && is_nan(value) || state == value
            }
            (Some(one), Some(two)) => one.total_cmp(&two).is_eq() || one == 0.0 && two == 0.0,
            _ => false,
        }
    }

    /// Each value that holds in a window, since when and until when, with the point behind it.
    fn held(&self, (start, end): (i64, i64)) -> Vec<(&Told, (i64, i64), Option<&Told>)> {
        let pairs = (0..self.points.len()).map(|at| (&self.points[at], self.points.get(at + 1)));
        let parts = pairs.filter(|(point, _)| self.counts(point)).map(|(point, next)| {
            let until = next.map_or(i64::MAX, |next| next.0);
            (point, (point.0.max(start), until.min(end).min(self.to)), next)
        });
        parts.filter(|(_, (from, until), _)| from < until).collect()
    }

    fn has_row(&self, window: (i64, i64)) -> bool {
        let is_in = |point: &&Told| (window.0..window.1).contains(&point.0);
        let mut states = Vec::new();
        let mut is_of_time = false;
        for aggregate in &self.options.aggregates {
            match aggregate {
                Aggregate::DurationIn(state) => states.push(state),
                Aggregate::TimeWeightedMean(_) => {}
                _ => continue,
            }
            is_of_time = true;
        }
        let holds = |value: &SeriesValue| {
            let is_text = matches!(value, SeriesValue::String(_));
            number(value).is_some()
                || is_text && !states.is_empty()
                || states.iter().any(|state| Self::is_state(state, value))
        };
        self.points.iter().filter(is_in).any(|point| self.counts(point))
            || is_of_time && self.held(window).iter().any(|(point, ..)| holds(&point.1))
    }

    fn held_mean(&self, window: (i64, i64), hold: Hold) -> Option<f64> {
        let (mut sum, mut all) = (0.0, 0.0);
        for ((since, value, _), (from, until), next) in self.held(window) {
            let Some(value) = number(value) else { continue };
            let mean = match hold {
                Hold::Step => value,
                Hold::Linear => {
                    let Some(next) = next.filter(|next| self.counts(next)) else { continue };
                    let Some(other) = number(&next.1) else { continue };
                    let whole = next.0.abs_diff(*since) as f64;
                    let middle =
                        f64::midpoint(from.abs_diff(*since) as f64, until.abs_diff(*since) as f64);
                    value + (other - value) * (middle / whole)
                }
            };
            let micros = until.abs_diff(from) as f64;
            (sum, all) = (sum + mean * micros, all + micros);
        }
        (all > 0.0).then_some(sum / all)
    }

    fn change(&self, (start, _): (i64, i64), numbers: &[&Told]) -> Option<(f64, f64)> {
        let is_before = |one: &&Told| one.0 < start && self.counts(one) && number(&one.1).is_some();
        let before = self.points.iter().rev().find(is_before);
        let from = before.or(numbers.first().copied())?;
        let last = numbers.last()?;
        Some((apart(&last.1, &from.1), last.0.abs_diff(from.0) as f64 / 1e6))
    }

    fn value(&self, window: (i64, i64), aggregate: &Aggregate) -> Option<SeriesValue> {
        let is_in = |point: &&Told| (window.0..window.1).contains(&point.0);
        let inside: Vec<&Told> =
            self.points.iter().filter(is_in).filter(|one| self.counts(one)).collect();
        let numbers: Vec<&Told> =
            inside.iter().copied().filter(|one| number(&one.1).is_some()).collect();
        let by_size = |one: &&&Told, two: &&&Told| apart(&one.1, &two.1).total_cmp(&0.0);
        let floats = || numbers.iter().map(|one| number(&one.1).unwrap_or_default());
        let count = numbers.len() as f64;
        let sum = || match self.points.first() {
            Some((_, SeriesValue::I64(_), _)) => {
                let integer = |one: &&Told| match one.1 {
                    SeriesValue::I64(value) => i128::from(value),
                    _ => 0,
                };
                numbers.iter().map(integer).sum::<i128>() as f64
            }
            _ => floats().sum(),
        };
        match aggregate {
            Aggregate::Count => Some(SeriesValue::I64(i64::try_from(inside.len()).unwrap())),
            Aggregate::First => inside.first().map(|one| one.1.clone()),
            Aggregate::Last => inside.last().map(|one| one.1.clone()),
            Aggregate::DurationIn(state) => {
                let held = self.held(window);
                let in_state = held.iter().filter(|(point, ..)| Self::is_state(state, &point.1));
                Some(SeriesValue::I64(in_state.map(|(_, (from, until), _)| until - from).sum()))
            }
            Aggregate::TimeWeightedMean(hold) => {
                self.held_mean(window, *hold).map(SeriesValue::F64)
            }
            _ if numbers.is_empty() => None,
            Aggregate::Sum => Some(SeriesValue::F64(sum())),
            Aggregate::Mean => Some(SeriesValue::F64(sum() / count)),
            Aggregate::Min => numbers.iter().min_by(by_size).map(|one| one.1.clone()),
            Aggregate::Max => numbers.iter().max_by(by_size).map(|one| one.1.clone()),
            Aggregate::Delta => self.change(window, &numbers).map(|(by, _)| SeriesValue::F64(by)),
            Aggregate::Rate => {
                let (by, seconds) = self.change(window, &numbers)?;
                (seconds > 0.0).then_some(SeriesValue::F64(by / seconds))
            }
            Aggregate::StdDev if count < 2.0 => None,
            Aggregate::StdDev => {
                let (first, mean) = (numbers[0], |all: &[f64]| all.iter().sum::<f64>() / count);
                let above: Vec<f64> = numbers.iter().map(|one| apart(&one.1, &first.1)).collect();
                let middle = mean(&above);
                let squares: Vec<f64> = above.iter().map(|one| (one - middle).powi(2)).collect();
                Some(SeriesValue::F64((mean(&squares) * count / (count - 1.0)).sqrt()))
            }
            Aggregate::Percentile(share) => {
                let mut sorted: Vec<f64> = floats().collect();
                sorted.sort_unstable_by(f64::total_cmp);
                let place = share * (count - 1.0);
                let at = |place: f64| {
                    let is_there = |at: &usize| (*at as f64 - place).abs() < 0.5;
                    sorted[(0..sorted.len()).find(is_there).unwrap()]
                };
                let (low, high) = (at(place.floor()), at(place.ceil()));
                Some(SeriesValue::F64(low + (high - low) * place.fract()))
            }
        }
    }

    /// The size of the numbers of a window: what the greatest ones lose of the smallest ones.
    fn size(&self, window: (i64, i64)) -> f64 {
        let is_in = |point: &&Told| (window.0..window.1).contains(&point.0);
        let held = self.held(window);
        let held = held.iter().flat_map(|(point, _, next)| [Some(*point), *next]).flatten();
        let all = self.points.iter().filter(is_in).chain(held);
        all.filter_map(|one| number(&one.1)).map(f64::abs).fold(1.0, f64::max)
    }

    fn compare(&self, table: &WindowTable, (from, to, width): (i64, i64, i64), seed: u64) {
        let numbers = from.div_euclid(width)..=(to - 1).div_euclid(width);
        let cut = |start: i64| (start.max(from), (start + width).min(to));
        let mut starts: Vec<i64> = numbers.map(|number| number * width).collect();
        if self.options.fill == Fill::None {
            starts.retain(|start| self.has_row(cut(*start)));
        }
        let told = format!("seed {seed}, {from}..{to} by {width}, {:?}", self.options);
        assert_eq!(table.starts, starts, "{told}");
        for (column, aggregate) in table.columns.iter().zip(&self.options.aggregates) {
            for (row, start) in starts.iter().enumerate() {
                let (found, expected) = (column.get(row), self.value(cut(*start), aggregate));
                let off = match (&found, &expected) {
                    (None, None) => 0.0,
                    (Some(one), Some(two)) if one == two => 0.0,
                    (Some(one), Some(two)) => match (one.as_f64(), two.as_f64()) {
                        (Some(one), Some(two)) => (one - two).abs(),
                        _ => f64::NAN,
                    },
                    _ => f64::NAN,
                };
                // By microseconds a rate is a million times as much.
                let scale = if *aggregate == Aggregate::Rate { 1e6 } else { 1.0 };
                let is_exact = matches!(
                    aggregate,
                    Aggregate::Count
                        | Aggregate::First
                        | Aggregate::Last
                        | Aggregate::Min
                        | Aggregate::Max
                        | Aggregate::Delta
                        | Aggregate::DurationIn(_)
                );
                let allowed = if is_exact { 0.0 } else { self.size(cut(*start)) * scale * 1e-9 };
                let is_near = off <= allowed;
                assert!(is_near, "{told}: {aggregate:?} at {start}: {found:?}, not {expected:?}");
            }
        }
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
