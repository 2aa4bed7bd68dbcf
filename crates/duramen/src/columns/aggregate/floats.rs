//! Columns of numbers that are taken as floats.

use std::ops::Range;
use std::sync::Arc;

use super::filter::{Comparison, RangeOfInt, ValueTest, bounds, order};
use super::mask::Mask;
use super::totals::{Found, bounds_of, sum_of};
use super::value::{Value, ValueKind};
use super::view::{Body, Section, View};
use crate::columns::{ColumnChunk, ColumnValue};
use crate::encoding::{Column, Summary, Values};
use crate::tree::conditions::Bits;

/// Floats, added up with what each addition rounds off (A. Neumaier, *Rundungsfehleranalyse einiger
/// Verfahren zur Summation endlicher Summen*, 1974), so that the order of them hardly matters.
#[derive(Debug, Clone, Copy, Default)]
pub struct FloatSum {
    /// How many.
    pub count: u64,
    total: f64,
    rounded_off: f64,
}

/// The floats of some slots.
#[derive(Debug)]
pub(super) struct Floats {
    /// By slot; 0 where there is none.
    pub(super) values: Box<[f64]>,
    pub(super) valid: Mask,
}

impl FloatSum {
    /// All of them together.
    pub fn total(&self) -> f64 {
        // Nothing was rounded off an infinity.
        if self.total.is_finite() { self.total + self.rounded_off } else { self.total }
    }

    #[inline]
    pub(super) fn add(&mut self, value: f64, count: u64) {
        let total = self.total + value;
        self.rounded_off += if self.total.abs() >= value.abs() {
            (self.total - total) + value
        } else {
            (value - total) + self.total
        };
        self.total = total;
        self.count += count;
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.add(other.total, other.count);
        self.rounded_off += other.rounded_off;
    }
}

impl Floats {
    /// None if one of them cannot be read.
    pub(super) fn of(column: &Column) -> Option<Arc<Self>> {
        let value = |state| Value::of(state, ValueKind::Float);
        let values: Option<Vec<_>> = column.iter().map(|state| value(state.ok()?)).collect();
        values.map(|values| Self::collect(values.into_iter()))
    }

    pub(super) fn of_chunk(chunk: &ColumnChunk) -> Arc<Self> {
        let rows = 0..chunk.len();
        Self::collect(rows.map(|row| Value::of_column(chunk.get(row), ValueKind::Float)))
    }

    fn collect<'a>(all: impl ExactSizeIterator<Item = Value<'a>>) -> Arc<Self> {
        let mut values = vec![0.0; all.len()].into_boxed_slice();
        let mut valid = Box::new(Bits::none());
        for ((slot, into), value) in (0..).zip(&mut values).zip(all) {
            if let Value::Float(value) = value {
                *into = value;
                valid.assign(slot, true);
            }
        }
        Arc::new(Self { values, valid: Mask::Some(valid) })
    }

    fn at(&self, slots: &Bits) -> impl Iterator<Item = f64> {
        slots.slots().filter_map(|slot| self.values.get(usize::from(slot)).copied())
    }
}

impl Value<'_> {
    /// A decimal as the nearest float.
    #[inline]
    pub(super) fn decimal(mantissa: i64, scale: u8) -> Self {
        let value = if scale == 0 {
            ColumnValue::Int(mantissa)
        } else {
            ColumnValue::Decimal { mantissa, scale }
        };
        value.float().map_or(Self::Missing, Self::Float)
    }
}

/// A sum of mantissas, or one of them, as a float.
fn scaled(mantissa: i128, scale: u8) -> f64 {
    if let Ok(mantissa) = i64::try_from(mantissa)
        && let Value::Float(value) = Value::decimal(mantissa, scale)
    {
        return value;
    }
    #[expect(clippy::cast_precision_loss, reason = "it is rounded twice, as a sum may be")]
    let mantissa = mantissa as f64;
    mantissa / 10_f64.powi(scale.into())
}

impl<'a> View<'a> {
    /// The sum of the floats at some slots.
    pub(super) fn float_sum(&self, rows: &Mask) -> FloatSum {
        let mut all = FloatSum::default();
        for value in self.changed(rows).filter_map(Value::float) {
            all.add(value, 1);
        }
        for section in &self.sections {
            self.add_section(section, &self.own(section, rows), &mut all);
        }
        all
    }

    fn add_section(&self, section: &Section<'a>, own: &Mask, all: &mut FloatSum) {
        let slots = 0..section.len;
        let count = own.count(&slots);
        if count == 0 {
            return;
        }
        if let Some(Summary { sum, scale, .. }) = section.summary_of(count) {
            return all.add(scaled(sum, scale), count);
        }
        match &section.body {
            Body::Decimals(values, scale) => {
                self.read.set(true);
                all.add(scaled(sum_of(values, &own.bits(&slots)).total, *scale), count);
            }
            Body::Floats(floats) => {
                self.read.set(true);
                let own = own.clone().and(floats.valid.clone());
                floats.at(&own.bits(&slots)).for_each(|value| all.add(value, 1));
            }
            Body::Same(Value::Float(value)) => {
                #[expect(clippy::cast_precision_loss, reason = "there are 4,096 at most")]
                all.add(*value * count as f64, count);
            }
            body => {
                let values = own.bits(&slots);
                let values = values.slots().filter_map(|slot| self.value(body, slot).float());
                values.for_each(|value| all.add(value, 1));
            }
        }
    }

    /// Floats at some slots, the least and the greatest among them.
    pub(super) fn float_bounds(&self, rows: &Mask) -> Found<'a> {
        let mut found: Found<'a> = self.changed(rows).collect();
        for section in &self.sections {
            let (own, slots) = (self.own(section, rows), 0..section.len);
            let count = own.count(&slots);
            if count == 0 {
                continue;
            }
            // One that is rounded twice may be none of the values.
            if let Some(Summary { min, max, scale, .. }) = section.summary_of(count)
                && let (Ok(min), Ok(max)) = (i64::try_from(min), i64::try_from(max))
            {
                found.extend([min, max].map(|value| Value::decimal(value, scale)));
                continue;
            }
            match &section.body {
                Body::Same(value) => found.push(*value),
                Body::Decimals(values, scale) => {
                    self.read.set(true);
                    let bounds = bounds_of(values, &own.bits(&slots));
                    let bounds = bounds.into_iter().flat_map(|(least, most)| [least, most]);
                    found.extend(bounds.map(|value| Value::decimal(value, *scale)));
                }
                Body::Floats(floats) => {
                    self.read.set(true);
                    let own = own.and(floats.valid.clone());
                    let own = own.bits(&slots);
                    let least = floats.at(&own).min_by(f64::total_cmp);
                    let most = floats.at(&own).max_by(f64::total_cmp);
                    found.extend([least, most].into_iter().flatten().map(Value::Float));
                }
                body => {
                    found.extend(own.bits(&slots).slots().map(|slot| self.value(body, slot)));
                }
            }
        }
        found
    }

    /// The floats of all slots; those that have none have some other number.
    pub(super) fn floats(&self, into: &mut [f64]) {
        self.read.set(true);
        for section in &self.sections {
            let Some(into) = into.get_mut(section.range()) else { continue };
            match &section.body {
                Body::Floats(floats) => into.copy_from_slice(&floats.values),
                body => {
                    for (slot, into) in (0..).zip(into) {
                        *into = self.value(body, slot).float().unwrap_or(0.0);
                    }
                }
            }
        }
        for (slot, value) in &self.patches {
            if let Some(into) = into.get_mut(usize::from(*slot)) {
                *into = value.float().unwrap_or(0.0);
            }
        }
    }
}

impl Floats {
    /// The slots of whose value a test holds.
    pub(super) fn holding(&self, test: &ValueTest) -> Mask {
        let mut found = Box::new(Bits::none());
        match *test {
            ValueTest::IsThere => return self.valid.clone(),
            ValueTest::Float(comparison, bits) => {
                let other = f64::from_bits(bits);
                for (slot, value) in (0..).zip(&self.values) {
                    found.assign(slot, comparison.holds(order(*value, other)));
                }
            }
            _ => {}
        }
        Mask::Some(found).and(self.valid.clone())
    }
}

/// The mantissas of one scale whose floats compare so to another one, as ranges among which they
/// are or are not.
pub(super) fn mantissas(
    (values, scale): (&Values<'_>, u8),
    comparison: Comparison,
    bits: u64,
) -> (Vec<RangeOfInt>, bool) {
    let other = f64::from_bits(bits);
    let (least, most) = bounds(values).unwrap_or((i64::MIN, i64::MAX));
    let all = i128::from(least)..i128::from(most) + 1;
    // Floats rise with their mantissas, or stay.
    let from = first(all.clone(), |value| order(scaled(value, scale), other).is_ge());
    let after = first(all.clone(), |value| order(scaled(value, scale), other).is_gt());
    let range = |range: Range<i128>| {
        let low = i64::try_from(range.start).ok().filter(|_| !range.is_empty());
        let high = i64::try_from(range.end - 1).ok();
        low.zip(high).map(|(low, high)| RangeOfInt { low, high }).into_iter().collect()
    };
    let ranges = match comparison {
        Comparison::Less => range(all.start..from),
        Comparison::LessOrEqual => range(all.start..after),
        Comparison::Equal | Comparison::NotEqual => range(from..after),
        Comparison::GreaterOrEqual => range(from..all.end),
        Comparison::Greater => range(after..all.end),
    };
    (ranges, comparison != Comparison::NotEqual)
}

/// The first of some integers from which on something holds, or their end.
fn first(all: Range<i128>, holds: impl Fn(i128) -> bool) -> i128 {
    let Range { mut start, mut end } = all;
    while start < end {
        let middle = start + (end - start) / 2;
        if holds(middle) {
            end = middle;
        } else {
            start = middle + 1;
        }
    }
    start
}
