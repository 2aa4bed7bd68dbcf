//! The window that is open.

use super::digest::Digest;
use super::{Aggregate, Hold};
use crate::series::block::{End, Numbers, Summary, float};
use crate::series::{SeriesValue, ValueType};

/// What is added up beside a sum is this much smaller, 2^-65: as many numbers as there can be, or
/// as many microseconds, add up to less than the greatest of them.
const SCALE: f64 = 1.0 / 36_893_488_147_419_103_232.0;

/// What is known of the points of one window.
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// Its number, where it begins and where it ends.
    pub(super) number: i64,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) summary: Summary,
    /// The sum of the numbers, scaled.
    scaled_sum: f64,
    pub(super) digest: Digest,
    /// The first and the last point that is a number.
    pub(super) numbers: Option<((i64, Number), (i64, Number))>,
    /// Whether a value that counts held in it.
    pub(super) is_held: bool,
    /// Value times microseconds, and microseconds, that values held as steps and as lines.
    pub(super) step: Area,
    pub(super) linear: Area,
    /// For each aggregate that counts the time in a state, how long.
    pub(super) in_state: Vec<i64>,
}

/// A number that counts, as it is stored.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Float(f64),
    Integer(i64),
}

impl Number {
    /// Of a value; none if it is not a number.
    pub(super) fn of(value: &SeriesValue) -> Option<Self> {
        match value {
            SeriesValue::I64(value) => Some(Self::Integer(*value)),
            value => value.as_f64().filter(|number| !number.is_nan()).map(Self::Float),
        }
    }

    /// Whether the first and the last of some points are numbers.
    pub(super) fn are_ends_of(summary: &Summary) -> bool {
        let is_number = |end: &End| Self::of(&end.1).is_some();
        summary.ends.as_ref().is_some_and(|(first, last)| is_number(first) && is_number(last))
    }

    /// The difference, exact as long as a float can be.
    fn minus(self, other: Self) -> f64 {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) if one >= other => {
                float(one.abs_diff(other))
            }
            (Self::Integer(one), Self::Integer(other)) => -float(one.abs_diff(other)),
            (one, other) => one.as_float() - other.as_float(),
        }
    }

    fn as_float(self) -> f64 {
        match self {
            Self::Float(value) => value,
            Self::Integer(value) if value < 0 => -float(value.unsigned_abs()),
            Self::Integer(value) => float(value.unsigned_abs()),
        }
    }
}

/// What values come to over time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Area {
    sum: f64,
    /// The same, scaled.
    scaled_sum: f64,
    micros: u64,
}

impl Area {
    /// Adds a value that held for so many microseconds.
    pub(super) fn add(&mut self, value: f64, micros: u64) {
        self.sum += value * float(micros);
        self.scaled_sum += value * (float(micros) * SCALE);
        self.micros = self.micros.saturating_add(micros);
    }

    fn mean(self) -> Option<f64> {
        (self.micros > 0).then(|| mean((self.sum, self.scaled_sum), float(self.micros)))
    }
}

/// The mean of what adds up to a sum, which a float may not hold, and scaled to another one.
fn mean((sum, scaled_sum): (f64, f64), weight: f64) -> f64 {
    if sum.is_finite() {
        return sum / weight;
    }
    if !scaled_sum.is_finite() {
        return scaled_sum;
    }
    // Rounding does not lead beyond the finite numbers that the mean is between.
    (scaled_sum / (weight * SCALE)).clamp(f64::MIN, f64::MAX)
}

impl Window {
    /// Nothing yet from one time to another one, of a series of a type and with so many states.
    pub(super) fn new(
        number: i64,
        (start, end): (i64, i64),
        (value_type, states): (ValueType, usize),
    ) -> Self {
        Self {
            number,
            start,
            end,
            summary: Summary::none(value_type),
            scaled_sum: 0.0,
            digest: Digest::default(),
            numbers: None,
            is_held: false,
            step: Area::default(),
            linear: Area::default(),
            in_state: vec![0; states],
        }
    }

    /// Adds later points of which this is known. Their numbers are looked at if their sum is more
    /// than a float can be.
    pub(super) fn add(&mut self, summary: &Summary, numbers: impl Iterator<Item = f64>) {
        self.scaled_sum += if summary.numbers.is_overflown() {
            numbers.map(|number| number * SCALE).sum::<f64>()
        } else {
            summary.numbers.sum() * SCALE
        };
        self.summary.add(summary);
    }

    /// Takes the first and the last point of later ones, where they are numbers.
    pub(super) fn add_ends(&mut self, summary: &Summary) {
        let Some((first, last)) = &summary.ends else { return };
        let number = |end: &End| Number::of(&end.1).map(|number| (end.0.0, number));
        let first = self.numbers.map(|(first, _)| first).or_else(|| number(first));
        if let (Some(first), Some(last)) = (first, number(last)) {
            self.numbers = Some((first, last));
        }
    }

    /// Adds later points by their number and their sum alone.
    pub(super) fn add_sums(&mut self, (more, plus): (u64, f64)) {
        self.scaled_sum += plus * SCALE;
        self.summary.add_sums((more, plus));
    }

    /// The sum of the numbers. On the way to it they may come to more than a float can be.
    fn sum(&self) -> f64 {
        let sum = self.summary.numbers.sum();
        if sum.is_finite() { sum } else { self.scaled_sum / SCALE }
    }

    /// Whether anything is in it, or held in it.
    pub(super) fn has_any(&self) -> bool {
        self.summary.good > 0 || self.is_held
    }

    /// The value of an aggregate, the `state`-th of those that count the time in a state. `before`
    /// is the last number before the window.
    pub(super) fn value(
        &self,
        (aggregate, state): (&Aggregate, usize),
        before: Option<(i64, Number)>,
    ) -> Option<SeriesValue> {
        let numbers = &self.summary.numbers;
        let count = float(numbers.count());
        let some = |value: f64| (numbers.count() > 0).then_some(SeriesValue::F64(value));
        match aggregate {
            Aggregate::Count => Some(SeriesValue::I64(self.summary.good.cast_signed())),
            Aggregate::Sum => some(self.sum()),
            Aggregate::Mean => some(mean((numbers.sum(), self.scaled_sum), count)),
            Aggregate::StdDev if numbers.count() > 1 => {
                some((numbers.squares() / (count - 1.0)).sqrt())
            }
            Aggregate::StdDev => None,
            Aggregate::Min => self.bound(|range| range.0, |range| range.0),
            Aggregate::Max => self.bound(|range| range.1, |range| range.1),
            Aggregate::First => self.summary.ends.as_ref().map(|(first, _)| first.1.clone()),
            Aggregate::Last => self.summary.ends.as_ref().map(|(_, last)| last.1.clone()),
            Aggregate::Delta => self.change(before).map(|(_, change)| SeriesValue::F64(change)),
            Aggregate::Rate => {
                let (micros, change) = self.change(before)?;
                (micros > 0).then(|| SeriesValue::F64(change / (float(micros) / 1e6)))
            }
            Aggregate::Percentile(share) => {
                let found = self.digest.percentiles(&[*share])?;
                found.first().map(|value| SeriesValue::F64(*value))
            }
            Aggregate::TimeWeightedMean(Hold::Step) => self.step.mean().map(SeriesValue::F64),
            Aggregate::TimeWeightedMean(Hold::Linear) => self.linear.mean().map(SeriesValue::F64),
            Aggregate::DurationIn(_) => self.in_state.get(state).map(|one| SeriesValue::I64(*one)),
        }
    }

    fn bound(
        &self,
        of_floats: impl Fn(&(f64, f64)) -> f64,
        of_integers: impl Fn(&(i64, i64)) -> i64,
    ) -> Option<SeriesValue> {
        let (_, (_, like)): &(End, End) = self.summary.ends.as_ref()?;
        match &self.summary.numbers {
            numbers if numbers.count() == 0 => None,
            Numbers::Floats { range, .. } => Some(float_like(like, of_floats(range))),
            Numbers::Integers { range, .. } => Some(match like {
                SeriesValue::Bool(_) => SeriesValue::Bool(of_integers(range) != 0),
                _ => SeriesValue::I64(of_integers(range)),
            }),
        }
    }

    /// The microseconds between the numbers that a delta is between, and the delta.
    fn change(&self, before: Option<(i64, Number)>) -> Option<(u64, f64)> {
        let (first, last) = self.numbers?;
        let from = before.unwrap_or(first);
        Some((last.0.abs_diff(from.0), last.1.minus(from.1)))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the bound was one of these floats")]
fn float_like(like: &SeriesValue, value: f64) -> SeriesValue {
    match like {
        SeriesValue::F32(_) => SeriesValue::F32(value as f32),
        _ => SeriesValue::F64(value),
    }
}
