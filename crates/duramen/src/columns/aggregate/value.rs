//! Values as they are tested, grouped by and compared.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::columns::ColumnValue;
use crate::state::{ApartKind, Datum};

/// What the values of a column are taken as. A value of another kind is as if it were missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValueKind {
    /// `true` and `false`
    Bool,
    /// Integers of 64 bits.
    Int,
    /// Numbers, as the nearest float.
    Float,
    /// Strings.
    Text,
}

/// A value of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AggregateValue {
    /// None.
    Missing,
    /// `true` or `false`
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number, by the bits of the nearest float.
    Float(u64),
    /// A string.
    Text(Box<str>),
}

impl AggregateValue {
    /// The value as it would stand in a cell.
    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Missing => Value::Missing,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Float(bits) => Value::Float(f64::from_bits(*bits)),
            Self::Text(text) => Value::Text(text.as_bytes()),
        }
    }

    /// Bytes of its text.
    pub(super) fn text_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Missing | Self::Bool(_) | Self::Int(_) | Self::Float(_) => 0,
        }
    }
}

/// A value that stands in a cell.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Missing,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a [u8]),
}

impl<'a> Value<'a> {
    /// None if it stands elsewhere.
    pub(super) fn of(state: Datum<'a>, kind: ValueKind) -> Option<Self> {
        Some(match (state, kind) {
            (Datum::Bool(value), ValueKind::Bool) => Self::Bool(value),
            (Datum::Int(value), ValueKind::Int) => Self::Int(value),
            (Datum::Text { bytes, .. }, ValueKind::Text) => Self::Text(bytes),
            (
                Datum::Apart { kind: ApartKind::PlainText | ApartKind::Text, .. },
                ValueKind::Text,
            )
            | (Datum::Apart { kind: ApartKind::Digits, .. }, ValueKind::Float) => return None,
            (state, ValueKind::Float) => {
                let value = match state {
                    Datum::Int(value) => ColumnValue::Int(value),
                    Datum::Decimal { mantissa, scale } => ColumnValue::Decimal { mantissa, scale },
                    Datum::Float(value) => ColumnValue::Float(value),
                    Datum::Digits(text) => ColumnValue::Digits(str::from_utf8(text).ok()?),
                    _ => ColumnValue::Missing,
                };
                value.float().map_or(Self::Missing, Self::Float)
            }
            _ => Self::Missing,
        })
    }

    pub(super) fn of_column(value: ColumnValue<'a>, kind: ValueKind) -> Self {
        match (value, kind) {
            (ColumnValue::Bool(value), ValueKind::Bool) => Self::Bool(value),
            (ColumnValue::Int(value), ValueKind::Int) => Self::Int(value),
            (ColumnValue::Text(text), ValueKind::Text) => Self::Text(text.as_bytes()),
            (value, ValueKind::Float) => value.float().map_or(Self::Missing, Self::Float),
            _ => Self::Missing,
        }
    }

    pub(super) fn is_missing(self) -> bool {
        matches!(self, Self::Missing)
    }

    /// Bytes of its text.
    pub(super) fn text_bytes(self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            _ => 0,
        }
    }

    /// The value as one of a group: a zero of a float has no sign.
    pub(super) fn grouped(self) -> Self {
        match self {
            Self::Float(value) => Self::Float(value + 0.0),
            value => value,
        }
    }

    pub(super) fn float(self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(value),
            _ => None,
        }
    }

    pub(super) fn integer(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            _ => None,
        }
    }

    /// Which of two values of one column is less; one that is missing is less than any other.
    pub(super) fn order(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Bool(own), Self::Bool(other)) => own.cmp(&other),
            (Self::Int(own), Self::Int(other)) => own.cmp(&other),
            (Self::Float(own), Self::Float(other)) => own.total_cmp(&other),
            (Self::Text(own), Self::Text(other)) => own.cmp(other),
            (own, other) => other.is_missing().cmp(&own.is_missing()),
        }
    }

    /// The value by itself.
    pub(super) fn owned(self) -> AggregateValue {
        match self {
            Self::Missing => AggregateValue::Missing,
            Self::Bool(value) => AggregateValue::Bool(value),
            Self::Int(value) => AggregateValue::Int(value),
            Self::Float(value) => AggregateValue::Float(value.to_bits()),
            Self::Text(bytes) => AggregateValue::Text(String::from_utf8_lossy(bytes).into()),
        }
    }
}

/// By its bits, so that values can be told apart in a table.
impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Missing, Self::Missing) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Text(a), Self::Text(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value<'_> {}

impl Hash for Value<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Missing => state.write_u8(0),
            Self::Bool(value) => state.write_u8(1 + u8::from(*value)),
            Self::Int(value) => state.write_i64(*value),
            Self::Float(value) => state.write_u64(value.to_bits()),
            Self::Text(bytes) => state.write(bytes),
        }
    }
}
