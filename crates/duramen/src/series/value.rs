//! One value of a tag, and the types that tags have.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// What the values of a tag are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// 64-bit floats, exact to the bit.
    F64,
    /// 32-bit floats, exact to the bit.
    F32,
    /// 64-bit signed integers.
    I64,
    /// True or false.
    Bool,
    /// UTF-8 text.
    String,
}

impl ValueType {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::F64, Self::F32, Self::I64, Self::Bool, Self::String];

    /// Its name, as [`ValueType::parse`] reads it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::I64 => "i64",
            Self::Bool => "bool",
            Self::String => "string",
        }
    }

    /// The type of a name: `f64`, `f32`, `i64`, `bool` or `string`.
    ///
    /// # Errors
    /// `Invalid` for any other.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| {
            let what =
                format!("there is no value type {name:?}: use f64, f32, i64, bool or string");
            Error::new(ErrorKind::Invalid, what)
        })
    }

    /// Whether its values are numbers.
    pub fn is_number(self) -> bool {
        matches!(self, Self::F64 | Self::F32 | Self::I64)
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One value of a tag. Floats are equal if their bits are: NaN is, and zero is not its negative.
#[derive(Debug, Clone)]
pub enum SeriesValue {
    /// Of a tag of type [`ValueType::F64`].
    F64(f64),
    /// Of a tag of type [`ValueType::F32`].
    F32(f32),
    /// Of a tag of type [`ValueType::I64`].
    I64(i64),
    /// Of a tag of type [`ValueType::Bool`].
    Bool(bool),
    /// Of a tag of type [`ValueType::String`].
    String(String),
}

impl SeriesValue {
    /// Its type.
    #[inline]
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::F64(_) => ValueType::F64,
            Self::F32(_) => ValueType::F32,
            Self::I64(_) => ValueType::I64,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
        }
    }

    /// As a number: integers rounded to the nearest float, false and true as 0 and 1, text as none.
    #[expect(clippy::cast_precision_loss, reason = "a float is what is asked for")]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::F64(value) => Some(*value),
            Self::F32(value) => Some(f64::from(*value)),
            Self::I64(value) => Some(*value as f64),
            Self::Bool(value) => Some(f64::from(u8::from(*value))),
            Self::String(_) => None,
        }
    }
}

impl SeriesValue {
    /// Whether it is the same value of the same type, floats as numbers are: zeros of both signs
    /// are one, and so is all that is no number.
    #[expect(clippy::float_cmp, reason = "that is what is asked")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::F64(one), Self::F64(two)) => one == two || one.is_nan() && two.is_nan(),
            (Self::F32(one), Self::F32(two)) => one == two || one.is_nan() && two.is_nan(),
            _ => self == other,
        }
    }

    /// The value of a type that is written the same way, if there is one: 7 as 7.0, or as text.
    /// Blanks around it and capitals of true and false count for text alone.
    pub(crate) fn written_as(&self, value_type: ValueType) -> Option<Self> {
        let text = self.to_string();
        let word = text.trim();
        match value_type {
            ValueType::F64 => word.parse().ok().map(Self::F64),
            ValueType::F32 => word.parse().ok().map(Self::F32),
            ValueType::I64 => word.parse().ok().map(Self::I64),
            ValueType::Bool => word.to_ascii_lowercase().parse().ok().map(Self::Bool),
            ValueType::String => Some(Self::String(text)),
        }
    }
}

impl PartialEq for SeriesValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::F64(one), Self::F64(two)) => one.to_bits() == two.to_bits(),
            (Self::F32(one), Self::F32(two)) => one.to_bits() == two.to_bits(),
            (Self::I64(one), Self::I64(two)) => one == two,
            (Self::Bool(one), Self::Bool(two)) => one == two,
            (Self::String(one), Self::String(two)) => one == two,
            _ => false,
        }
    }
}

impl Eq for SeriesValue {}

/// Floats in the shortest way that reads back as the same, text as it is.
impl fmt::Display for SeriesValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::F64(value) => write!(f, "{value}"),
            Self::F32(value) => write!(f, "{value}"),
            Self::I64(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::String(value) => f.write_str(value),
        }
    }
}

macro_rules! from {
    ($($variant:ident $type:ty),*) => {$(
        impl From<$type> for SeriesValue {
            #[inline]
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

from!(F64 f64, F32 f32, I64 i64, I64 i32, I64 u32, Bool bool, String String, String &str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_read_back_from_their_names() {
        for value_type in ValueType::ALL {
            assert_eq!(ValueType::parse(value_type.name()).unwrap(), value_type);
        }
        assert_eq!(ValueType::parse("double").unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn a_value_is_of_another_type_if_it_is_written_the_same_way() {
        let seven = SeriesValue::from(7.0);
        assert_eq!(seven.written_as(ValueType::I64), Some(7.into()));
        assert_eq!(seven.written_as(ValueType::String), Some("7".into()));
        assert_eq!(seven.written_as(ValueType::Bool), None);
        assert_eq!(SeriesValue::from(0.1).written_as(ValueType::F32), Some(SeriesValue::F32(0.1)));
        assert_eq!(SeriesValue::F32(0.1).written_as(ValueType::F64), Some(0.1.into()));
        assert_eq!(SeriesValue::from(7.5).written_as(ValueType::I64), None);
        assert_eq!(SeriesValue::from(true).written_as(ValueType::String), Some("true".into()));
    }

    #[test]
    fn floats_are_equal_if_their_bits_are() {
        assert_eq!(SeriesValue::from(f64::NAN), SeriesValue::from(f64::NAN));
        assert_ne!(SeriesValue::from(0.0), SeriesValue::from(-0.0));
        assert_ne!(SeriesValue::from(1.0), SeriesValue::from(1));
    }
}
