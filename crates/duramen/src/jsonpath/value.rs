//! Values that a filter compares, taken out of the tree.

use std::cmp::Ordering;

use super::place::At;
use super::syntax::Operator;
use crate::json::number;
use crate::state::Datum;

/// A value of a filter expression.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// What a query that finds nothing gives.
    Nothing,
    Null,
    Bool(bool),
    Int(i64),
    Decimal {
        mantissa: i64,
        scale: u8,
    },
    Float(f64),
    /// Any other number, by its text.
    Digits(Box<[u8]>),
    Text(Box<[u8]>),
    /// An array or object.
    Container(At),
}

impl Value {
    pub(crate) fn text(bytes: &[u8]) -> Self {
        Self::Text(bytes.into())
    }

    /// The value of a scalar state; nothing if it has children or stands apart.
    pub(crate) fn of(datum: Datum<'_>) -> Self {
        match datum {
            Datum::Null => Self::Null,
            Datum::Bool(value) => Self::Bool(value),
            Datum::Int(value) => Self::Int(value),
            Datum::Decimal { mantissa, scale } => Self::Decimal { mantissa, scale },
            Datum::Float(value) => Self::Float(value),
            Datum::Digits(text) => Self::Digits(text.into()),
            Datum::Text { bytes, .. } => Self::text(bytes),
            Datum::Absent
            | Datum::Object(_)
            | Datum::Array(_)
            | Datum::Map(_)
            | Datum::Opaque(_)
            | Datum::Apart { .. } => Self::Nothing,
        }
    }

    /// The scalar as a state; none for an array or object.
    pub(crate) fn datum(&self) -> Option<Datum<'_>> {
        Some(match self {
            Self::Nothing => Datum::Absent,
            Self::Null => Datum::Null,
            Self::Bool(value) => Datum::Bool(*value),
            Self::Int(value) => Datum::Int(*value),
            Self::Decimal { mantissa, scale } => {
                Datum::Decimal { mantissa: *mantissa, scale: *scale }
            }
            Self::Float(value) => Datum::Float(*value),
            Self::Digits(text) => Datum::Digits(text),
            Self::Text(bytes) => Datum::Text { bytes, plain: false },
            Self::Container(_) => return None,
        })
    }
}

impl Operator {
    /// Whether two scalars, or nothing, are so to each other (RFC 9535, 2.3.5.2.2).
    #[inline]
    pub(super) fn holds(self, left: Datum<'_>, right: Datum<'_>) -> bool {
        match self {
            Self::Equal => is_equal(left, right),
            Self::NotEqual => !is_equal(left, right),
            Self::Less => order(left, right).is_some_and(Ordering::is_lt),
            Self::Greater => order(left, right).is_some_and(Ordering::is_gt),
            Self::LessOrEqual => {
                order(left, right).is_some_and(Ordering::is_le) || is_equal(left, right)
            }
            Self::GreaterOrEqual => {
                order(left, right).is_some_and(Ordering::is_ge) || is_equal(left, right)
            }
        }
    }

    /// Whether equal values are meant too.
    pub(super) fn includes_equal(self) -> bool {
        matches!(self, Self::Equal | Self::LessOrEqual | Self::GreaterOrEqual)
    }
}

/// Whether two scalars are the same value, in whatever form numbers are kept.
pub(super) fn is_equal(left: Datum<'_>, right: Datum<'_>) -> bool {
    match (left, right) {
        (Datum::Absent, Datum::Absent) | (Datum::Null, Datum::Null) => true,
        (Datum::Bool(a), Datum::Bool(b)) => a == b,
        (Datum::Text { bytes: a, .. }, Datum::Text { bytes: b, .. }) => a == b,
        _ => number::compare(left, right).is_some_and(Ordering::is_eq),
    }
}

/// The order of two numbers or two strings. Bytes of UTF-8 are ordered as characters are.
fn order(left: Datum<'_>, right: Datum<'_>) -> Option<Ordering> {
    match (left, right) {
        (Datum::Int(a), Datum::Int(b)) => Some(a.cmp(&b)),
        (Datum::Text { bytes: a, .. }, Datum::Text { bytes: b, .. }) => Some(a.cmp(b)),
        _ => number::compare(left, right),
    }
}
