//! What is known of the numbers of a column without reading them.

use std::ops::RangeInclusive;

use super::reader::{Parsed, Reader, put_wide};
use crate::state::{ApartKind, Datum};

/// Count, least, greatest and sum of the integers and decimals of a column, exactly.
///
/// `min`, `max` and `sum` are mantissas of the scale `scale`: the number is `min / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The integers and decimals.
    pub(crate) count: u16,
    /// The numbers of other forms (floats, numbers kept as text), which nothing else here covers.
    pub(crate) others: u16,
    /// The greatest scale of a decimal.
    pub(crate) scale: u8,
    /// The least integer or decimal.
    pub(crate) min: i128,
    /// The greatest integer or decimal.
    pub(crate) max: i128,
    /// The sum of the integers and decimals.
    pub(crate) sum: i128,
}

impl Summary {
    /// The summary of `datums`, or `None` if none of them is an integer or a decimal, or if
    /// 128 bits do not hold their sum at one scale.
    pub(super) fn of<'a>(datums: impl Iterator<Item = Datum<'a>> + Clone) -> Option<Self> {
        let others = datums.clone().filter(|datum| is_other_number(*datum)).count();
        Self::of_numbers(datums.filter_map(exact), others)
    }

    /// The same of the integers and decimals, as mantissas and scales, and the number of others.
    pub(super) fn of_numbers(
        exact: impl Iterator<Item = (i64, u8)> + Clone,
        others: usize,
    ) -> Option<Self> {
        let scale = exact.clone().map(|(_, scale)| scale).max()?;
        let others = u16::try_from(others).ok()?;
        let mut summary = Self { count: 0, others, scale, min: i128::MAX, max: i128::MIN, sum: 0 };
        for (mantissa, own) in exact {
            let factor = 10_i128.checked_pow(u32::from(scale.saturating_sub(own)))?;
            summary.add(i128::from(mantissa).checked_mul(factor)?)?;
        }
        Some(summary)
    }

    /// The same of integers, with this number of others.
    pub(super) fn of_integers(integers: &[i64], others: usize) -> Option<Self> {
        let (&first, count) = (integers.first()?, u16::try_from(integers.len()).ok()?);
        let (mut min, mut max, mut sum) = (first, first, 0_i128);
        for &integer in integers {
            (min, max) = (min.min(integer), max.max(integer));
            // So few do not overflow it.
            sum = sum.wrapping_add(i128::from(integer));
        }
        let (min, max, others) = (min.into(), max.into(), u16::try_from(others).ok()?);
        Some(Self { count, others, scale: 0, min, max, sum })
    }

    /// Whether all numbers are integers, and none is in a range.
    pub(crate) fn rules_out(&self, range: &RangeInclusive<i64>) -> bool {
        let (low, high) = (i128::from(*range.start()), i128::from(*range.end()));
        self.scale == 0 && self.others == 0 && (self.max < low || self.min > high)
    }

    /// The summary of `count` numbers on a straight line.
    pub(super) fn of_line(first: i64, step: i64, count: u16, scale: u8) -> Option<Self> {
        let (first, step, len) = (i128::from(first), i128::from(step), i128::from(count));
        let rise = step.checked_mul(len.checked_sub(1)?)?;
        let last = first.checked_add(rise)?;
        let sum = first.checked_add(last)?.checked_mul(len)?.checked_div(2)?;
        Some(Self { count, others: 0, scale, min: first.min(last), max: first.max(last), sum })
    }

    fn add(&mut self, value: i128) -> Option<()> {
        self.count = self.count.checked_add(1)?;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum = self.sum.checked_add(value)?;
        Some(())
    }

    /// Appends the summary behind a byte with its length, by which parsing passes over it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut bytes = Vec::with_capacity(32);
        bytes.extend(self.count.to_le_bytes());
        bytes.extend(self.others.to_le_bytes());
        bytes.push(self.scale);
        put_wide(&mut bytes, self.min);
        put_wide(&mut bytes, self.max);
        put_wide(&mut bytes, self.sum);
        out.push(u8::try_from(bytes.len()).unwrap_or(u8::MAX));
        out.append(&mut bytes);
    }

    /// Reads a summary from behind its length.
    pub(super) fn parse(reader: &mut Reader<'_>) -> Parsed<Self> {
        Ok(Self {
            count: reader.u16()?,
            others: reader.u16()?,
            scale: reader.u8()?,
            min: reader.wide()?,
            max: reader.wide()?,
            sum: reader.wide()?,
        })
    }
}

fn exact(datum: Datum<'_>) -> Option<(i64, u8)> {
    match datum {
        Datum::Int(value) => Some((value, 0)),
        Datum::Decimal { mantissa, scale } => Some((mantissa, scale)),
        _ => None,
    }
}

fn is_other_number(datum: Datum<'_>) -> bool {
    matches!(
        datum,
        Datum::Float(_) | Datum::Digits(_) | Datum::Apart { kind: ApartKind::Digits, .. }
    )
}
