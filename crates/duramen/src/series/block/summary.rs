//! What is kept of a block beside its points: how many, between what, and their sums.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::borrow::Cow;
use std::ops::Range;

use crate::error::Result;
use crate::revision::Micros;
use crate::series::aggregate::QualityFilter;
use crate::series::{Points, Qualities, SeriesValue, ValueType, Values};
use crate::wire::{Reader, put_bytes, put_signed, put_varint};

/// Facts of points that answer aggregates without them.
///
/// Only points of good quality count, and of floats only those that are numbers. False and true
/// are 0 and 1; text has no numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Summary {
    /// Points of any quality.
    pub(crate) points: u64,
    /// Points of good quality.
    pub(crate) good: u64,
    /// The numbers among those.
    pub(crate) numbers: Numbers,
    /// The first point of good quality, and the last.
    pub(crate) ends: Option<(End, End)>,
}

/// Time and value of a point of good quality.
pub(crate) type End = (Micros, SeriesValue);

/// Facts of numbers. Without any, all of them are zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Numbers {
    /// Of floats.
    Floats {
        /// How many.
        count: u64,
        /// The least and the greatest.
        range: (f64, f64),
        /// Their sum.
        sum: f64,
        /// The sum of their squared differences from their mean.
        squares: f64,
    },
    /// Of integers and truth values.
    Integers {
        /// How many.
        count: u64,
        /// The least and the greatest.
        range: (i64, i64),
        /// Their sum, exactly.
        sum: i128,
        /// The sum of their squared differences from their mean.
        squares: f64,
    },
}

/// Numbers that are looked at at a time, so that their sums do not wait for each other.
const LANES: usize = 8;

impl Numbers {
    /// Of no numbers of a type.
    pub(crate) fn none(value_type: ValueType) -> Self {
        match value_type {
            ValueType::I64 | ValueType::Bool => {
                Self::Integers { count: 0, range: (0, 0), sum: 0, squares: 0.0 }
            }
            _ => Self::Floats { count: 0, range: (0.0, 0.0), sum: 0.0, squares: 0.0 },
        }
    }

    /// Of floats.
    pub(crate) fn of_floats(values: &[f64]) -> Self {
        if values.iter().fold(false, |any, value| any | value.is_nan()) {
            let numbers = values.iter().copied().filter(|value| !value.is_nan());
            return Self::of_floats(&numbers.collect::<Vec<_>>());
        }
        if values.is_empty() {
            return Self::none(ValueType::F64);
        }
        let (least, greatest) = range_of(values);
        let sum = sum(values);
        let mean = sum / float(values.len() as u64);
        let squares = lane_sum(values, |value| (value - mean) * (value - mean));
        Self::Floats { count: values.len() as u64, range: (least, greatest), sum, squares }
    }

    /// Of integers.
    pub(crate) fn of_integers(values: &[i64]) -> Self {
        let (Some(least), Some(greatest)) = (values.iter().min(), values.iter().max()) else {
            return Self::none(ValueType::I64);
        };
        let sum: i128 = values.iter().map(|value| i128::from(*value)).sum();
        let mean = wide_float(sum) / float(values.len() as u64);
        let from_mean = |value: &i64| wide_float(i128::from(*value)) - mean;
        let squares = values.iter().map(|value| from_mean(value) * from_mean(value)).sum();
        Self::Integers { count: values.len() as u64, range: (*least, *greatest), sum, squares }
    }

    /// How many.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Self::Floats { count, .. } | Self::Integers { count, .. } => *count,
        }
    }

    /// Their sum, as a float. Where some are infinite it is what these come to, whatever the others
    /// did on the way.
    pub(crate) fn sum(&self) -> f64 {
        match self {
            Self::Floats { range: (least, greatest), sum, .. } if !sum.is_finite() => {
                let has_infinite = least.is_infinite() || greatest.is_infinite();
                if has_infinite { least + greatest } else { *sum }
            }
            Self::Floats { sum, .. } => *sum,
            Self::Integers { sum, .. } => wide_float(*sum),
        }
    }

    /// Whether finite numbers came to more than a float can be: their mean and their sum may not.
    pub(crate) fn is_overflown(&self) -> bool {
        match self {
            Self::Floats { range, sum, .. } => {
                !sum.is_finite() && range.0.is_finite() && range.1.is_finite()
            }
            Self::Integers { .. } => false,
        }
    }

    /// The sum of their squared differences from their mean.
    pub(crate) fn squares(&self) -> f64 {
        match self {
            Self::Floats { squares, .. } | Self::Integers { squares, .. } => *squares,
        }
    }

    /// Adds those of other points of the same type (Chan, Golub and `LeVeque`, "Updating formulae
    /// and a Pairwise Algorithm for Computing Sample Variances", 1979).
    pub(crate) fn add(&mut self, other: &Self) {
        if other.count() == 0 {
            return;
        }
        if self.count() == 0 {
            *self = *other;
            return;
        }
        let (one, two) = (float(self.count()), float(other.count()));
        let apart = other.sum() / two - self.sum() / one;
        let between = apart * apart * (one * two / (one + two));
        match (self, other) {
            (
                Self::Floats { count, range, sum, squares },
                Self::Floats { count: more, range: (low, high), sum: plus, squares: squared },
            ) => {
                *range = (range.0.min(*low), range.1.max(*high));
                *count = count.saturating_add(*more);
                *sum += plus;
                *squares += squared + between;
            }
            (
                Self::Integers { count, range, sum, squares },
                Self::Integers { count: more, range: (low, high), sum: plus, squares: squared },
            ) => {
                *range = (range.0.min(*low), range.1.max(*high));
                *count = count.saturating_add(*more);
                *sum = sum.saturating_add(*plus);
                *squares += squared + between;
            }
            _ => unreachable!("numbers of two types are added"),
        }
    }
}

impl Summary {
    /// Of no points.
    pub(crate) fn none(value_type: ValueType) -> Self {
        Self { points: 0, good: 0, numbers: Numbers::none(value_type), ends: None }
    }

    /// Of a range of points.
    pub(crate) fn of(points: &Points, range: Range<usize>) -> Self {
        Self::of_those(points, range, QualityFilter::Good)
    }

    /// The same, where not only points of good quality count.
    pub(crate) fn of_those(points: &Points, range: Range<usize>, filter: QualityFilter) -> Self {
        let (values, qualities) = (points.values(), (points.qualities(), filter));
        let is_good = |index: &usize| filter.takes(points.qualities().get(*index));
        let numbers = match values {
            Values::F64(all) => Numbers::of_floats(&good(all, qualities, range.clone())),
            Values::F32(all) => {
                let all = good(all, qualities, range.clone());
                Numbers::of_floats(&all.iter().map(|one| f64::from(*one)).collect::<Vec<_>>())
            }
            Values::I64(all) => Numbers::of_integers(&good(all, qualities, range.clone())),
            Values::Bool(all) => {
                let all = good(all, qualities, range.clone());
                Numbers::of_integers(&all.iter().map(|one| i64::from(*one)).collect::<Vec<_>>())
            }
            Values::String(_) => Numbers::none(ValueType::String),
        };
        let end = |index: usize| {
            let time = points.times().get(index).copied()?;
            Some((Micros(time), values.get(index)?))
        };
        let first = range.clone().find(is_good).and_then(end);
        let last = range.clone().rfind(is_good).and_then(end);
        let good = match points.qualities() {
            Qualities::All(quality) if filter.takes(*quality) => range.len(),
            Qualities::All(_) => 0,
            Qualities::Each(_) => range.clone().filter(is_good).count(),
        };
        Self { points: range.len() as u64, good: good as u64, numbers, ends: first.zip(last) }
    }

    /// How many points there are in a range, and their sum: where that is quickly told, of floats
    /// that all count, and finite.
    pub(crate) fn sums_of(
        points: &Points,
        range: Range<usize>,
        filter: QualityFilter,
    ) -> Option<(u64, f64)> {
        let (Values::F64(all), Qualities::All(quality)) = (points.values(), points.qualities())
        else {
            return None;
        };
        let values = all.get(range).filter(|_| filter.takes(*quality))?;
        let sum = sum(values);
        sum.is_finite().then_some((values.len() as u64, sum))
    }

    /// Adds later points by their number and their sum alone; what else is known of those before
    /// is of no use any more.
    pub(crate) fn add_sums(&mut self, (more, plus): (u64, f64)) {
        self.points = self.points.saturating_add(more);
        self.good = self.good.saturating_add(more);
        if let Numbers::Floats { count, sum, .. } = &mut self.numbers {
            *count = count.saturating_add(more);
            *sum += plus;
        }
    }

    /// Adds that of later points of the same type.
    pub(crate) fn add(&mut self, later: &Self) {
        self.points = self.points.saturating_add(later.points);
        self.good = self.good.saturating_add(later.good);
        self.numbers.add(&later.numbers);
        self.ends = match (self.ends.take(), &later.ends) {
            (Some((first, _)), Some((_, last))) => Some((first, last.clone())),
            (ends, None) => ends,
            (None, ends) => ends.clone(),
        };
    }

    /// Appends it, for a block whose first point is at a time.
    pub(super) fn write(&self, first: i64, out: &mut Vec<u8>) {
        put_varint(out, self.points.saturating_sub(self.good));
        put_varint(out, self.good.saturating_sub(self.numbers.count()));
        match self.numbers {
            Numbers::Floats { range, sum, squares, .. } => {
                for float in [range.0, range.1, sum, squares] {
                    put_float(out, float);
                }
            }
            Numbers::Integers { range, sum, squares, .. } => {
                put_signed(out, range.0);
                put_signed(out, range.1);
                out.extend(sum.to_le_bytes());
                put_float(out, squares);
            }
        }
        if let Some((one, two)) = &self.ends {
            for (time, value) in [one, two] {
                put_varint(out, time.0.wrapping_sub(first).cast_unsigned());
                put_value(out, value);
            }
        }
    }

    /// Reads what [`Summary::write`] wrote of `points` points of a type.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        (value_type, points): (ValueType, u64),
        first: i64,
    ) -> Result<Self> {
        let good = points.checked_sub(reader.varint()?);
        let count = good.and_then(|good| good.checked_sub(reader.varint().ok()?));
        let (Some(good), Some(count)) = (good, count) else {
            return Err(reader.corrupt("a summary has more points than its block"));
        };
        let mut numbers = Numbers::none(value_type);
        match &mut numbers {
            Numbers::Floats { count: all, range, sum, squares } => {
                *all = count;
                for float in [&mut range.0, &mut range.1, sum, squares] {
                    *float = read_float(reader)?;
                }
            }
            Numbers::Integers { count: all, range, sum, squares } => {
                *all = count;
                *range = (reader.signed()?, reader.signed()?);
                let wide = reader.take(16)?.first_chunk().copied().unwrap_or_default();
                *sum = i128::from_le_bytes(wide);
                *squares = read_float(reader)?;
            }
        }
        let end = |reader: &mut Reader<'_>| -> Result<End> {
            let time = first.wrapping_add(reader.varint()?.cast_signed());
            Ok((Micros(time), read_value(reader, value_type)?))
        };
        let ends = if good > 0 { Some((end(reader)?, end(reader)?)) } else { None };
        Ok(Self { points, good, numbers, ends })
    }
}

/// The values in a range whose quality counts.
fn good<'a, T: Copy>(
    all: &'a [T],
    (qualities, filter): (&Qualities, QualityFilter),
    range: Range<usize>,
) -> Cow<'a, [T]> {
    match qualities {
        Qualities::All(quality) if !filter.takes(*quality) => Cow::Borrowed(&[]),
        Qualities::All(_) => Cow::Borrowed(all.get(range).unwrap_or_default()),
        Qualities::Each(_) => {
            let is_good = |index: &usize| filter.takes(qualities.get(*index));
            range.filter(is_good).filter_map(|index| all.get(index).copied()).collect()
        }
    }
}

fn range_of(values: &[f64]) -> (f64, f64) {
    let mut least = [f64::INFINITY; LANES];
    let mut greatest = [f64::NEG_INFINITY; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for ((low, high), value) in least.iter_mut().zip(&mut greatest).zip(chunk) {
            *low = if value < low { *value } else { *low };
            *high = if value > high { *value } else { *high };
        }
    }
    let least = least.iter().chain(rest).copied().fold(f64::INFINITY, f64::min);
    (least, greatest.iter().chain(rest).copied().fold(f64::NEG_INFINITY, f64::max))
}

/// The sum of floats.
pub(super) fn sum(values: &[f64]) -> f64 {
    lane_sum(values, |value| value)
}

fn lane_sum(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let mut sums = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += of(*value);
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|value| of(*value)).sum::<f64>()
}

#[expect(clippy::cast_precision_loss, reason = "a float is what is asked for")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "a float is what is asked for")]
fn wide_float(sum: i128) -> f64 {
    sum as f64
}

fn put_float(out: &mut Vec<u8>, value: f64) {
    out.extend(value.to_bits().to_le_bytes());
}

fn read_float(reader: &mut Reader<'_>) -> Result<f64> {
    let bytes = reader.take(8)?.first_chunk().copied().unwrap_or_default();
    Ok(f64::from_bits(u64::from_le_bytes(bytes)))
}

fn put_value(out: &mut Vec<u8>, value: &SeriesValue) {
    match value {
        SeriesValue::F64(value) => put_float(out, *value),
        SeriesValue::F32(value) => out.extend(value.to_bits().to_le_bytes()),
        SeriesValue::I64(value) => put_signed(out, *value),
        SeriesValue::Bool(value) => out.push(u8::from(*value)),
        SeriesValue::String(value) => put_bytes(out, value.as_bytes()),
    }
}

fn read_value(reader: &mut Reader<'_>, value_type: ValueType) -> Result<SeriesValue> {
    Ok(match value_type {
        ValueType::F64 => SeriesValue::F64(read_float(reader)?),
        ValueType::F32 => {
            let bytes = reader.take(4)?.first_chunk().copied().unwrap_or_default();
            SeriesValue::F32(f32::from_bits(u32::from_le_bytes(bytes)))
        }
        ValueType::I64 => SeriesValue::I64(reader.signed()?),
        ValueType::Bool => SeriesValue::Bool(reader.byte()? != 0),
        ValueType::String => SeriesValue::String(reader.text()?.to_owned()),
    })
}
