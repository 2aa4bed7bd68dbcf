//! Which rows a filter holds for, a bit for each slot.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use duramen_kernel as kernel;

use super::value::Value;
use super::view::{Body, View};
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
    fn holds(self, order: Ordering) -> bool {
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
                comparison.holds(value.total_cmp(&f64::from_bits(*bits)))
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

/// What the slots of a range have to do with a filter.
pub(super) fn holding(filter: &RowFilter, views: &[View<'_>], within: &Bits) -> Bits {
    match filter {
        RowFilter::All(parts) => {
            let mut left = within.clone();
            for part in parts {
                left = left.and(&holding(part, views, &left));
                if left.is_none() {
                    break;
                }
            }
            left
        }
        RowFilter::Any(parts) => {
            parts.iter().fold(Bits::none(), |found, part| found.or(&holding(part, views, within)))
        }
        RowFilter::Column(column, test) => {
            views.get(*column).map_or_else(Bits::none, |view| view.holding(test)).and(within)
        }
    }
}

impl View<'_> {
    /// The slots of whose value a test holds; slots that are not in the range may be among them.
    fn holding(&self, test: &ValueTest) -> Bits {
        let mut found = Bits::none();
        for section in &self.sections {
            let own = match (&section.body, test) {
                (_, ValueTest::IsMissing) => continue,
                (Body::Same(value), test) => {
                    if test.holds(*value) {
                        Bits::of(&(0..section.len))
                    } else {
                        Bits::none()
                    }
                }
                (Body::Integers(values), ValueTest::Int { ranges, is_inside }) => {
                    let own = self.within(values, ranges);
                    if *is_inside { own } else { Bits::of(&(0..section.len)).without(&own) }
                }
                (Body::Integers(_), ValueTest::IsThere) => Bits::of(&(0..section.len)),
                (Body::Coded(codes, states), test) => self.coded(codes, states, test),
                (Body::Either(bits, states), test) => {
                    let all = Bits::of(&(0..section.len));
                    match states.map(|state| test.holds(state)) {
                        [false, false] => Bits::none(),
                        [false, true] => bits.and(&all),
                        [true, false] => all.without(bits),
                        [true, true] => all,
                    }
                }
                (body, test) => {
                    let mut own = Bits::none();
                    for slot in (0..section.len).filter(|slot| test.holds(self.value(body, *slot)))
                    {
                        own.assign(slot, true);
                    }
                    own
                }
            };
            found = found.or(&own.later(section.first));
        }
        // Where there is no state there is no value.
        found = found.and(&self.there);
        if matches!(test, ValueTest::IsMissing) {
            found = Bits::all().without(&self.valid());
        }
        for (slot, value) in self.patches.iter().filter(|(slot, _)| self.there.has(*slot)) {
            found.assign(*slot, test.holds(*value));
        }
        found
    }

    fn within(&self, values: &Values<'_>, ranges: &[RangeOfInt]) -> Bits {
        let mut found = Bits::none();
        for range in ranges.iter().filter(|range| range.low <= range.high) {
            match bounds(values) {
                Some((least, most)) if range.low <= least && most <= range.high => {
                    return Bits::of(&(0..u16::try_from(values.len).unwrap_or(u16::MAX)));
                }
                Some((least, most)) if most < range.low || range.high < least => {}
                _ => {
                    self.read.set(true);
                    found = found.or(&between(values, *range));
                }
            }
        }
        found
    }

    fn coded(&self, codes: &Values<'_>, states: &[Value<'_>], test: &ValueTest) -> Bits {
        let wanted: Vec<_> = (0..).zip(states).filter(|(_, state)| test.holds(**state)).collect();
        if wanted.len() == states.len() {
            return Bits::of(&(0..u16::try_from(codes.len).unwrap_or(u16::MAX)));
        }
        let mut found = Bits::none();
        // Neighbours make one range.
        for run in wanted.chunk_by(|(a, _), (b, _)| a + 1 == *b) {
            if let (Some((low, _)), Some((high, _))) = (run.first(), run.last()) {
                self.read.set(true);
                found = found.or(&between(codes, RangeOfInt { low: *low, high: *high }));
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
fn between(values: &Values<'_>, range: RangeOfInt) -> Bits {
    let mut found = Bits::none();
    if values.step != 0 {
        for slot in 0..values.len {
            let is_in = values.get(slot).is_some_and(|value| range.range().contains(&value));
            found.0[slot / 64] |= u64::from(is_in) << (slot % 64);
        }
        return found;
    }
    // Differences are unsigned, above the base and modulo 2^64: a range that holds the base and
    // what is before it begins at 0.
    let difference = |value: i64| i128::from(value) - i128::from(values.base);
    let (low, high) = (difference(range.low).max(0), difference(range.high));
    let (Ok(low), Ok(high)) = (u64::try_from(low), u64::try_from(high)) else { return found };
    let bits = &mut found.0[..];
    match values.differences {
        Differences::None => {
            if low == 0 {
                return Bits::of(&(0..u16::try_from(values.len).unwrap_or(u16::MAX)));
            }
        }
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
    found
}
