//! What windows come to, told by a look at each point.

#![expect(clippy::cast_precision_loss, reason = "tests compare floats")]

use crate::{
    Aggregate, AggregateOptions, Fill, Hold, Quality, SeriesValue, ValueType, WindowColumn,
};

/// A point: when, what and how good.
pub(super) type Told = (i64, SeriesValue, Quality);

/// A window, as far as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// When the window begins.
    pub(super) start: i64,
    /// The points from here on are in it,
    pub(super) first: i64,
    /// up to here, this one included.
    pub(super) last: i64,
    /// Until when values hold in it.
    pub(super) until: i64,
}

/// The points, rising, and what is asked of them.
pub(super) struct Naive<'a> {
    pub(super) points: &'a [Told],
    pub(super) options: &'a AggregateOptions,
    pub(super) of: ValueType,
}

pub(super) fn number(value: &SeriesValue) -> Option<f64> {
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

/// By size, where the difference of infinities tells nothing.
fn by_size(one: &Told, two: &Told) -> std::cmp::Ordering {
    let apart = apart(&one.1, &two.1);
    let apart = if apart.is_nan() { 0.0 } else { apart };
    apart.total_cmp(&0.0)
}

/// What is between two numbers, this share of the way.
pub(super) fn between(one: f64, two: f64, share: f64) -> f64 {
    if one.total_cmp(&two).is_eq() || share <= 0.0 {
        one
    } else if share >= 1.0 {
        two
    } else {
        one * (1.0 - share) + two * share
    }
}

impl Naive<'_> {
    pub(super) fn counts(&self, point: &Told) -> bool {
        self.options.quality.takes(point.2)
    }

    fn is_state(&self, state: &SeriesValue, value: &SeriesValue) -> bool {
        let Some(state) = &state.written_as(self.of) else { return false };
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

    /// The points of a part.
    fn inside(&self, part: Part) -> &[Told] {
        let first = self.points.partition_point(|point| point.0 < part.first);
        let end = self.points.partition_point(|point| point.0 <= part.last);
        &self.points[first..end.max(first)]
    }

    /// Each value that holds in a part, since when and until when, with the point behind it.
    fn held(&self, part: Part) -> Vec<(&Told, (i64, i64), Option<&Told>)> {
        let first = self.points.partition_point(|point| point.0 < part.first).saturating_sub(1);
        let mut held = Vec::new();
        for (at, point) in self.points.iter().enumerate().skip(first) {
            if point.0 >= part.until {
                break;
            }
            let next = self.points.get(at + 1);
            let until = next.map_or(i64::MAX, |next| next.0).min(part.until);
            let from = point.0.max(part.first);
            if self.counts(point) && from < until {
                held.push((point, (from, until), next));
            }
        }
        held
    }

    pub(super) fn has_row(&self, part: Part) -> bool {
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
                || states.iter().any(|state| self.is_state(state, value))
        };
        self.inside(part).iter().any(|point| self.counts(point))
            || is_of_time && self.held(part).iter().any(|(point, ..)| holds(&point.1))
    }

    fn held_mean(&self, part: Part, hold: Hold) -> Option<f64> {
        let (mut sum, mut all) = (0.0, 0.0);
        for ((since, value, _), (from, until), next) in self.held(part) {
            let Some(value) = number(value) else { continue };
            let mean = match hold {
                Hold::Step => value,
                Hold::Linear => {
                    let Some(next) = next.filter(|next| self.counts(next)) else { continue };
                    let Some(other) = number(&next.1) else { continue };
                    let whole = next.0.abs_diff(*since) as f64;
                    let share = |time: i64| time.abs_diff(*since) as f64 / whole;
                    f64::midpoint(
                        between(value, other, share(from)),
                        between(value, other, share(until)),
                    )
                }
            };
            let micros = until.abs_diff(from) as f64;
            (sum, all) = (sum + mean * micros, all + micros);
        }
        (all > 0.0).then_some(sum / all)
    }

    fn change(&self, part: Part, numbers: &[&Told]) -> Option<(f64, f64)> {
        let last = numbers.last()?;
        let first = self.points.partition_point(|point| point.0 < part.first);
        let is_number = |one: &&Told| self.counts(one) && number(&one.1).is_some();
        let before = self.points[..first].iter().rev().find(is_number);
        let from = before.or(numbers.first().copied())?;
        Some((apart(&last.1, &from.1), last.0.abs_diff(from.0) as f64 / 1e6))
    }

    fn sum(numbers: &[&Told]) -> f64 {
        let integers: Option<Vec<i128>> = numbers
            .iter()
            .map(|one| match one.1 {
                SeriesValue::I64(value) => Some(i128::from(value)),
                _ => None,
            })
            .collect();
        match integers {
            Some(all) => all.iter().sum::<i128>() as f64,
            None => numbers.iter().filter_map(|one| number(&one.1)).sum(),
        }
    }

    /// The value of an aggregate in a part.
    pub(super) fn value(&self, part: Part, aggregate: &Aggregate) -> Option<SeriesValue> {
        match aggregate {
            Aggregate::DurationIn(state) => {
                let held = self.held(part);
                let in_state = held.iter().filter(|(point, ..)| self.is_state(state, &point.1));
                let micros = in_state.map(|(_, (from, until), _)| until.abs_diff(*from));
                let sum: u64 = micros.sum();
                return Some(SeriesValue::I64(i64::try_from(sum).unwrap_or(i64::MAX)));
            }
            Aggregate::TimeWeightedMean(hold) => {
                return self.held_mean(part, *hold).map(SeriesValue::F64);
            }
            _ => {}
        }
        let inside: Vec<&Told> = self.inside(part).iter().filter(|one| self.counts(one)).collect();
        let numbers: Vec<&Told> =
            inside.iter().copied().filter(|one| number(&one.1).is_some()).collect();
        let count = numbers.len() as f64;
        match aggregate {
            Aggregate::Count => Some(SeriesValue::I64(i64::try_from(inside.len()).unwrap())),
            Aggregate::First => inside.first().map(|one| one.1.clone()),
            Aggregate::Last => inside.last().map(|one| one.1.clone()),
            _ if numbers.is_empty() => None,
            Aggregate::Sum => Some(SeriesValue::F64(Self::sum(&numbers))),
            Aggregate::Mean => Some(SeriesValue::F64(Self::sum(&numbers) / count)),
            Aggregate::Min => numbers
                .iter()
                .copied()
                .min_by(|one, two| by_size(one, two))
                .map(|one| one.1.clone()),
            Aggregate::Max => numbers
                .iter()
                .copied()
                .max_by(|one, two| by_size(one, two))
                .map(|one| one.1.clone()),
            Aggregate::Delta => self.change(part, &numbers).map(|(by, _)| SeriesValue::F64(by)),
            Aggregate::Rate => {
                let (by, seconds) = self.change(part, &numbers)?;
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
                let mut sorted: Vec<f64> =
                    numbers.iter().filter_map(|one| number(&one.1)).collect();
                sorted.sort_unstable_by(f64::total_cmp);
                let place = share * (count - 1.0);
                let near = |place: f64| (0..sorted.len()).find(|at| *at as f64 >= place).unwrap();
                let high = near(place);
                let low = if high as f64 > place { high - 1 } else { high };
                let value = between(sorted[low], sorted[high], place.fract());
                // Between infinities of both signs it is the first one.
                Some(SeriesValue::F64(if value.is_nan() { sorted[low] } else { value }))
            }
            _ => None,
        }
    }

    /// The size of the numbers of a part: what the greatest ones lose of the smallest ones.
    pub(super) fn size(&self, part: Part) -> f64 {
        let held = self.held(part);
        let held = held.iter().flat_map(|(point, _, next)| [Some(*point), *next]).flatten();
        let all = self.inside(part).iter().chain(held).filter_map(|one| number(&one.1));
        all.map(f64::abs).filter(|size| size.is_finite()).fold(1.0, f64::max)
    }

    /// Those of some parts that have rows.
    pub(super) fn with_rows(&self, mut parts: Vec<Part>) -> Vec<Part> {
        if self.options.fill == Fill::None {
            parts.retain(|part| self.has_row(*part));
        }
        parts
    }

    /// Holds the columns of windows against what a look at each point says of them. `fill` says
    /// what stands in a column's row that has no value.
    pub(super) fn compare(
        &self,
        columns: &[WindowColumn],
        parts: &[Part],
        fill: &dyn Fn(&Aggregate, usize) -> Filled,
        told: &str,
    ) {
        assert_eq!(columns.len(), self.options.aggregates.len());
        for (column, aggregate) in columns.iter().zip(&self.options.aggregates) {
            for (row, part) in parts.iter().enumerate() {
                let found = column.get(row);
                let mut expected = self.value(*part, aggregate);
                let mut allowed = self.allowed(*part, aggregate);
                if let (Aggregate::Rate, Some(SeriesValue::F64(rate))) = (aggregate, &expected) {
                    allowed = allowed.max(rate.abs() * 1e-12);
                }
                if expected.is_none() {
                    match fill(aggregate, row) {
                        Filled::Unknown => continue,
                        Filled::Nothing => {}
                        Filled::By(value, size) => {
                            expected = Some(value);
                            allowed = allowed.max(size);
                        }
                    }
                }
                let is_near = match (aggregate, &expected) {
                    // It may be infinite or NaN, where the numbers or their squares are so.
                    (Aggregate::StdDev, Some(SeriesValue::F64(one))) if !one.is_finite() => {
                        found.as_ref().and_then(number).is_none_or(f64::is_infinite)
                    }
                    _ => is_near(found.as_ref(), expected.as_ref(), allowed),
                };
                let of = self.of;
                assert!(
                    is_near,
                    "{told}: {aggregate:?} of {of:?} at {part:?}: {found:?}, not {expected:?}, of \
                     {:?}",
                    self.around(*part)
                );
            }
        }
    }

    /// The points of a part and some beside it.
    fn around(&self, part: Part) -> &[Told] {
        let first = self.points.partition_point(|point| point.0 < part.first);
        let end = self.points.partition_point(|point| point.0 <= part.last);
        &self.points[first.saturating_sub(5)..(end + 20).min(self.points.len())]
    }

    /// By how much it may differ for having been added up in another order.
    fn allowed(&self, part: Part, aggregate: &Aggregate) -> f64 {
        match aggregate {
            Aggregate::Count
            | Aggregate::First
            | Aggregate::Last
            | Aggregate::Min
            | Aggregate::Max
            | Aggregate::Delta
            | Aggregate::DurationIn(_) => 0.0,
            // By microseconds a rate is a million times as much.
            Aggregate::Rate => self.size(part) * 1e-3,
            Aggregate::Sum => self.size(part) * 1e-9 * self.inside(part).len().max(1) as f64,
            _ => self.size(part) * 1e-9,
        }
    }
}

/// What fills a window without a value.
#[derive(Debug, Clone)]
pub(super) enum Filled {
    Nothing,
    /// What depends on more than is looked at.
    Unknown,
    /// A value, and by how much it may differ.
    By(SeriesValue, f64),
}

/// Whether two values are the same, or as near as allowed.
pub(super) fn is_near(one: Option<&SeriesValue>, two: Option<&SeriesValue>, allowed: f64) -> bool {
    let (one, two) = match (one, two) {
        (None, None) => return true,
        (Some(one), Some(two)) => (one, two),
        _ => return false,
    };
    if one == two {
        return true;
    }
    if one.value_type() != two.value_type() {
        return false;
    }
    match (one.as_f64(), two.as_f64()) {
        (Some(one), Some(two)) if one.is_nan() || two.is_nan() => one.is_nan() && two.is_nan(),
        (Some(one), Some(two)) if one.is_infinite() || two.is_infinite() => {
            one.total_cmp(&two).is_eq()
        }
        (Some(one), Some(two)) => (one - two).abs() <= allowed,
        _ => false,
    }
}
