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
        /// What rounding took from the sum, as far as it is known: no block or row keeps it.
        rest: f64,
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
/// By what share of their deviation the mean of numbers may be off, when it is put together with
/// others.
const MEAN_OFF_MAX: f64 = 1.0 / 1_048_576.0;

impl Numbers {
    /// Of no numbers of a type.
    pub(crate) fn none(value_type: ValueType) -> Self {
        match value_type {
            ValueType::I64 | ValueType::Bool => {
                Self::Integers { count: 0, range: (0, 0), sum: 0, squares: 0.0 }
            }
            _ => Self::Floats { count: 0, range: (0.0, 0.0), sum: 0.0, rest: 0.0, squares: 0.0 },
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
        let range = range_of(values);
        let sum = sum(values);
        let count = float(values.len() as u64);
        // Of large numbers it is rounded by more than they differ, which is made good afterwards.
        let mean = sum / count;
        let (off, squares) = differences(values, mean);
        let is_finite = squares.is_finite();
        let squares = if is_finite { (squares - off * (off / count)).max(0.0) } else { squares };
        let rest = if is_finite { mean.mul_add(count, -sum) + off } else { 0.0 };
        Self::Floats { count: values.len() as u64, range, sum, rest, squares }
    }

    /// Of integers.
    pub(crate) fn of_integers(values: &[i64]) -> Self {
        let (Some(least), Some(greatest)) = (values.iter().min(), values.iter().max()) else {
            return Self::none(ValueType::I64);
        };
        let sum: i128 = values.iter().map(|value| i128::from(*value)).sum();
        let count = values.len() as u64;
        let (floor, above) = mean_of(sum, count);
        let floor = i64::try_from(floor).unwrap_or(*least);
        // Floats do not tell great integers apart, but what they are above each other.
        let from_floor = |value: &i64| float(value.abs_diff(floor));
        let squares: f64 = values.iter().map(|value| from_floor(value) * from_floor(value)).sum();
        let squares = (squares - float(count) * above * above).max(0.0);
        Self::Integers { count, range: (*least, *greatest), sum, squares }
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

    /// Whether their sum may be rounded by so much that their deviation, put together with that of
    /// others by it, is wrong.
    pub(crate) fn is_rounded(&self) -> bool {
        let Self::Floats { count, range: (least, greatest), squares, .. } = self else {
            return false;
        };
        let (off, allowed) = (self.mean_off(), *squares * (MEAN_OFF_MAX * MEAN_OFF_MAX));
        least < greatest && squares.is_finite() && off * off * float(*count) > allowed
    }

    /// What rounding may have taken from their mean, or from one of them before the mean was taken
    /// off it.
    fn mean_off(&self) -> f64 {
        let size = match self {
            Self::Floats { range, .. } => range.0.abs().max(range.1.abs()),
            Self::Integers { range, .. } => {
                float(range.0.unsigned_abs().max(range.1.unsigned_abs()))
            }
        };
        let lanes = float(LANES as u64);
        size * f64::EPSILON * (float(self.count()) / lanes + lanes)
    }

    /// Whether the squares may be those of the same numbers. Earlier versions took them from a
    /// rounded mean, or of rounded integers.
    fn has_squares_of(&self, same: &Self) -> bool {
        let (one, two) = (self.squares().sqrt(), same.squares().sqrt());
        if !one.is_finite() || !two.is_finite() {
            return one.is_finite() == two.is_finite();
        }
        (one - two).abs() <= float(self.count()).sqrt() * self.mean_off() + two * 1e-9
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
        let apart = other.mean_above(self);
        let between = apart * apart * (one * two / (one + two));
        match (self, other) {
            (
                Self::Floats { count, range, sum, rest, squares },
                Self::Floats {
                    count: more,
                    range: (low, high),
                    sum: plus,
                    rest: others,
                    squares: squared,
                },
            ) => {
                *range = (range.0.min(*low), range.1.max(*high));
                *count = count.saturating_add(*more);
                *rest += others + rounded_off(*sum, *plus);
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

    /// What their mean is above that of others: the difference is taken before it is rounded.
    fn mean_above(&self, other: &Self) -> f64 {
        match (self, other) {
            (Self::Floats { .. }, Self::Floats { .. }) => {
                let (one, two) = (self.mean_of_floats(), other.mean_of_floats());
                (one.0 - two.0) + (one.1 - two.1)
            }
            (
                Self::Integers { count, sum, .. },
                Self::Integers { count: others, sum: their_sum, .. },
            ) => {
                let (one, two) = (mean_of(*sum, *count), mean_of(*their_sum, *others));
                wide_float(one.0.saturating_sub(two.0)) + (one.1 - two.1)
            }
            _ => unreachable!("numbers of two types are compared"),
        }
    }

    /// The mean, and what rounding took from it.
    fn mean_of_floats(&self) -> (f64, f64) {
        let Self::Floats { count, range, sum, rest, .. } = self else { return (0.0, 0.0) };
        if range.0.total_cmp(&range.1).is_eq() {
            return (range.0, 0.0);
        }
        let (sum, count) = (*sum, float(*count));
        let mean = sum / count;
        let off = if mean.is_finite() { (rest - mean.mul_add(count, -sum)) / count } else { 0.0 };
        (mean, off)
    }
}

/// The mean of integers: the one below it, and how far it is above that.
fn mean_of(sum: i128, count: u64) -> (i128, f64) {
    let wide = i128::from(count);
    let floor = sum.checked_div_euclid(wide).unwrap_or_default();
    let above = sum.checked_rem_euclid(wide).unwrap_or_default();
    (floor, wide_float(above) / float(count))
}

/// What rounding takes from the sum of two floats (Knuth, "The Art of Computer Programming",
/// 4.2.2).
fn rounded_off(one: f64, two: f64) -> f64 {
    let sum = one + two;
    let second = sum - one;
    let off = (one - (sum - second)) + (two - second);
    if off.is_finite() { off } else { 0.0 }
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

    /// Whether a block may have it for points that another one was made of again.
    pub(super) fn agrees_with(&self, again: &Self, first: i64) -> bool {
        let exact = |summary: &Self| {
            let mut summary = summary.clone();
            let (Numbers::Floats { squares, .. } | Numbers::Integers { squares, .. }) =
                &mut summary.numbers;
            *squares = 0.0;
            let mut out = Vec::new();
            summary.write(first, &mut out);
            out
        };
        exact(self) == exact(again) && self.numbers.has_squares_of(&again.numbers)
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
            Numbers::Floats { count: all, range, sum, squares, .. } => {
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

/// The sum of the differences from a number, and that of their squares.
fn differences(values: &[f64], from: f64) -> (f64, f64) {
    let mut sums = [(0.0, 0.0); LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for ((sum, squares), value) in sums.iter_mut().zip(chunk) {
            let difference = value - from;
            *sum += difference;
            *squares += difference * difference;
        }
    }
    let rest = rest.iter().map(|value| (value - from, (value - from) * (value - from)));
    rest.chain(sums).fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1))
}

/// The sum of floats.
pub(super) fn sum(values: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += value;
        }
    }
    sums.iter().sum::<f64>() + rest.iter().sum::<f64>()
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
