//! Which rows a filter holds for, a bit for each slot.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use duramen_kernel as kernel;

use super::floats::mantissas;
use super::mask::Mask;
use super::value::Value;
use super::view::{Body, States, View, either};
use crate::encoding::{Differences, Values};
use crate::tree::conditions::Bits;

/// Where rows have to be in for an aggregate to see them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowFilter {
    /// All of them hold; with none it is every row.
    All(Vec<Self>),
    /// One of them holds.
    Any(Vec<Self>),
    /// A test of the value of a column, by its place in the plan.
    Column(usize, ValueTest),
}

/// What is asked of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValueTest {
    /// There is none.
    IsMissing,
    /// There is one.
    IsThere,
    /// It is this truth value.
    Bool(bool),
    /// It is an integer in one of some ranges, or in none of them.
    Int {
        /// The ranges.
        ranges: Vec<RangeOfInt>,
        /// Whether it is to be in one.
        is_inside: bool,
    },
    /// It is a number that compares so to a float of these bits, in the total order of floats.
    Float(Comparison, u64),
    /// It is a string that compares so to another one, byte by byte.
    Text(Comparison, Box<str>),
    /// It is a string that is among others, or not.
    TextIn {
        /// The others.
        texts: Vec<Box<str>>,
        /// Whether it is to be one of them.
        is_inside: bool,
    },
}

/// The integers from one to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RangeOfInt {
    /// The least.
    pub low: i64,
    /// The greatest; there are none if it is below the least.
    pub high: i64,
}

/// How one value compares to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    pub(super) fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl RangeOfInt {
    fn range(self) -> RangeInclusive<i64> {
        self.low..=self.high
    }
}

impl ValueTest {
    pub(super) fn holds(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::IsMissing, value) => value.is_missing(),
            (Self::IsThere, value) => !value.is_missing(),
            (Self::Bool(wanted), Value::Bool(value)) => *wanted == value,
            (Self::Int { ranges, is_inside }, Value::Int(value)) => {
                ranges.iter().any(|range| range.range().contains(&value)) == *is_inside
            }
            (Self::Float(comparison, bits), Value::Float(value)) => {
                comparison.holds(order(value, f64::from_bits(*bits)))
            }
            (Self::Text(comparison, other), Value::Text(text)) => {
                comparison.holds(text.cmp(other.as_bytes()))
            }
            (Self::TextIn { texts, is_inside }, Value::Text(text)) => {
                texts.iter().any(|other| other.as_bytes() == text) == *is_inside
            }
            _ => false,
        }
    }
}

/// Which of two numbers is less: both zeros are one number, whatever their sign.
pub(super) fn order(value: f64, other: f64) -> Ordering {
    (value + 0.0).total_cmp(&(other + 0.0))
}

/// The slots of a range for which a filter holds.
pub(super) fn holding(filter: &RowFilter, views: &[View<'_>], within: &Mask) -> Mask {
    match filter {
        RowFilter::All(parts) => {
            let mut left = within.clone();
            for part in parts {
                left = match part {
                    RowFilter::Column(column, test) => {
                        left.and(column_holding(views, *column, test))
                    }
                    part => holding(part, views, &left),
                };
                if left.is_none() {
                    return Mask::None;
                }
            }
            left
        }
        RowFilter::Any(parts) => {
            parts.iter().fold(Mask::None, |found, part| found.or(holding(part, views, within)))
        }
        RowFilter::Column(column, test) => column_holding(views, *column, test).and(within.clone()),
    }
}

fn column_holding(views: &[View<'_>], column: usize, test: &ValueTest) -> Mask {
    views.get(column).map_or(Mask::None, |view| view.holding(test))
}

impl View<'_> {
    /// The slots of whose value a test holds.
    fn holding(&self, test: &ValueTest) -> Mask {
        if matches!(test, ValueTest::IsMissing) {
            return Mask::All.without(&self.valid(), &self.slots);
        }
        let mut found = Mask::None;
        for section in &self.sections {
            let own = match (&section.body, test) {
                (Body::Same(value), test) => {
                    if test.holds(*value) {
                        Mask::All
                    } else {
                        Mask::None
                    }
                }
                (Body::Integers(values), ValueTest::Int { ranges, is_inside }) => {
                    self.among(values, ranges, (*is_inside, section.len))
                }
                (Body::Decimals(values, scale), ValueTest::Float(comparison, bits)) => {
                    let (ranges, is_inside) = mantissas((values, *scale), *comparison, *bits);
                    self.among(values, &ranges, (is_inside, section.len))
                }
                (Body::Integers(_) | Body::Decimals(..), ValueTest::IsThere) => Mask::All,
                (Body::Floats(floats), test) => {
                    self.read.set(true);
                    floats.holding(test)
                }
                (Body::Coded(codes, states), test) => self.coded(codes, states, test),
                (Body::Either(bytes, states), test) => {
                    either(bytes, section.len, states.map(|state| test.holds(state)))
                }
                (body, test) => section.mask(|slot| test.holds(self.value(body, slot))),
            };
            found = found.or(section.place(own, &self.slots));
        }
        // Where there is no state there is no value.
        self.patch(found, |value| test.holds(value))
    }

    /// The slots of which the values are in some ranges, or are not.
    fn among(
        &self,
        values: &Values<'_>,
        ranges: &[RangeOfInt],
        (is_inside, len): (bool, u16),
    ) -> Mask {
        let own = self.within(values, ranges);
        if is_inside { own } else { Mask::All.without(&own, &(0..len)) }
    }

    fn within(&self, values: &Values<'_>, ranges: &[RangeOfInt]) -> Mask {
        let mut found = Mask::None;
        for range in ranges.iter().filter(|range| range.low <= range.high) {
            match bounds(values) {
                Some((least, most)) if range.low <= least && most <= range.high => {
                    return Mask::All;
                }
                Some((least, most)) if most < range.low || range.high < least => {}
                _ => {
                    self.read.set(true);
                    found = found.or(between(values, *range));
                }
            }
        }
        found
    }

    fn coded(&self, codes: &Values<'_>, states: &States<'_>, test: &ValueTest) -> Mask {
        let states_of = (0..).zip(states.iter());
        let wanted: Vec<_> = states_of.filter(|(_, state)| test.holds(*state)).collect();
        if wanted.len() == states.len() {
            return Mask::All;
        }
        let mut found = Mask::None;
        // Neighbours make one range.
        for run in wanted.chunk_by(|(a, _), (b, _)| a + 1 == *b) {
            if let (Some((low, _)), Some((high, _))) = (run.first(), run.last()) {
                self.read.set(true);
                found = found.or(between(codes, RangeOfInt { low: *low, high: *high }));
            }
        }
        found
    }
}

/// Between which values integers are, as far as the way in which they are stored says it.
pub(super) fn bounds(values: &Values<'_>) -> Option<(i64, i64)> {
    let steps = i64::try_from(values.len.checked_sub(1)?).ok()?;
    let last = values.base.checked_add(values.step.checked_mul(steps)?)?;
    let above = match values.differences {
        Differences::None => 0,
        Differences::Half(_) => 15,
        Differences::One(_) => i64::from(u8::MAX),
        Differences::Two(_) => i64::from(u16::MAX),
        Differences::Four(_) => i64::from(u32::MAX),
        Differences::Eight(_) => return None,
    };
    Some((values.base.min(last), values.base.max(last).checked_add(above)?))
}

/// The values that are in a range of which there is one.
fn between(values: &Values<'_>, range: RangeOfInt) -> Mask {
    let mut found = Box::new(Bits::none());
    if values.step != 0 {
        for slot in 0..values.len {
            let is_in = values.get(slot).is_some_and(|value| range.range().contains(&value));
            found.0[slot / 64] |= u64::from(is_in) << (slot % 64);
        }
        return Mask::Some(found);
    }
    // Differences are unsigned, above the base and modulo 2^64: a range that holds the base and
    // what is before it begins at 0.
    let difference = |value: i64| i128::from(value) - i128::from(values.base);
    let (low, high) = (difference(range.low).max(0), difference(range.high));
    let (Ok(low), Ok(high)) = (u64::try_from(low), u64::try_from(high)) else {
        return Mask::None;
    };
    let bits = &mut found.0[..];
    match values.differences {
        Differences::None => return if low == 0 { Mask::All } else { Mask::None },
        Differences::Half(bytes) => {
            let mut unpacked = [0; 4_096];
            let unpacked = &mut unpacked[..values.len.min(4_096)];
            kernel::unpack_halves(bytes, unpacked);
            kernel::between(unpacked, low, high, bits);
        }
        Differences::One(all) => kernel::between(all, low, high, bits),
        Differences::Two(all) => kernel::between(all, low, high, bits),
        Differences::Four(all) => kernel::between(all, low, high, bits),
        Differences::Eight(all) => kernel::between(all, low, high, bits),
    }
    Mask::Some(found)
}
