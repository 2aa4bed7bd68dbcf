//! A column of values of one type.

use std::ops::Range;

use super::texts::Texts;
use super::value::{SeriesValue, ValueType};

/// Values of one type, one for each point. Floats are equal if their bits are.
#[derive(Debug, Clone)]
pub enum Values {
    /// 64-bit floats.
    F64(Vec<f64>),
    /// 32-bit floats.
    F32(Vec<f32>),
    /// Integers.
    I64(Vec<i64>),
    /// Truth values.
    Bool(Vec<bool>),
    /// Text.
    String(Texts),
}

/// Runs an expression on the vector of any type.
macro_rules! each {
    ($values:expr, $vector:ident => $expression:expr) => {
        match $values {
            Values::F64($vector) => $expression,
            Values::F32($vector) => $expression,
            Values::I64($vector) => $expression,
            Values::Bool($vector) => $expression,
            Values::String($vector) => $expression,
        }
    };
}

impl Values {
    /// None yet, of a type.
    pub fn new(value_type: ValueType) -> Self {
        match value_type {
            ValueType::F64 => Self::F64(Vec::new()),
            ValueType::F32 => Self::F32(Vec::new()),
            ValueType::I64 => Self::I64(Vec::new()),
            ValueType::Bool => Self::Bool(Vec::new()),
            ValueType::String => Self::String(Texts::default()),
        }
    }

    /// What they are.
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::F64(_) => ValueType::F64,
            Self::F32(_) => ValueType::F32,
            Self::I64(_) => ValueType::I64,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        each!(self, vector => vector.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Value `index`, or `None` beyond the end.
    pub fn get(&self, index: usize) -> Option<SeriesValue> {
        Some(match self {
            Self::F64(all) => SeriesValue::F64(*all.get(index)?),
            Self::F32(all) => SeriesValue::F32(*all.get(index)?),
            Self::I64(all) => SeriesValue::I64(*all.get(index)?),
            Self::Bool(all) => SeriesValue::Bool(*all.get(index)?),
            Self::String(all) => SeriesValue::String(all.get(index)?.to_owned()),
        })
    }

    /// Value `index` as [`SeriesValue::as_f64`] has it, or `None` beyond the end and for text.
    #[expect(clippy::cast_precision_loss, reason = "a float is what is asked for")]
    #[inline]
    pub fn get_f64(&self, index: usize) -> Option<f64> {
        match self {
            Self::F64(all) => all.get(index).copied(),
            Self::F32(all) => all.get(index).map(|value| f64::from(*value)),
            Self::I64(all) => all.get(index).map(|value| *value as f64),
            Self::Bool(all) => all.get(index).map(|value| f64::from(u8::from(*value))),
            Self::String(_) => None,
        }
    }

    /// Appends a value of their type; any other is given back.
    pub(super) fn push(&mut self, value: SeriesValue) -> Result<(), SeriesValue> {
        match (self, value) {
            (Self::F64(all), SeriesValue::F64(value)) => all.push(value),
            (Self::F32(all), SeriesValue::F32(value)) => all.push(value),
            (Self::I64(all), SeriesValue::I64(value)) => all.push(value),
            (Self::Bool(all), SeriesValue::Bool(value)) => all.push(value),
            (Self::String(all), SeriesValue::String(value)) => all.push(&value),
            (_, value) => return Err(value),
        }
        Ok(())
    }

    /// Appends a range of `other`; false if that has another type.
    pub(super) fn append(&mut self, other: &Self, range: Range<usize>) -> bool {
        match (self, other) {
            (Self::F64(all), Self::F64(more)) => extend(all, more, range),
            (Self::F32(all), Self::F32(more)) => extend(all, more, range),
            (Self::I64(all), Self::I64(more)) => extend(all, more, range),
            (Self::Bool(all), Self::Bool(more)) => extend(all, more, range),
            (Self::String(all), Self::String(more)) => all.append(more, range),
            _ => return false,
        }
        true
    }

    /// Makes room for more.
    pub(super) fn reserve(&mut self, more: usize) {
        match self {
            Self::F64(all) => all.reserve(more),
            Self::F32(all) => all.reserve(more),
            Self::I64(all) => all.reserve(more),
            Self::Bool(all) => all.reserve(more),
            // How long they are is not known.
            Self::String(_) => {}
        }
    }

    /// Whether nearly all that is reserved for them is used. Of text that is not known.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::F64(all) => is_full(all),
            Self::F32(all) => is_full(all),
            Self::I64(all) => is_full(all),
            Self::Bool(all) => is_full(all),
            Self::String(_) => false,
        }
    }

    /// Drops the first `count`; the room of the others stays.
    pub(super) fn drop_first(&mut self, count: usize) {
        match self {
            Self::F64(all) => drop(all.drain(..count)),
            Self::F32(all) => drop(all.drain(..count)),
            Self::I64(all) => drop(all.drain(..count)),
            Self::Bool(all) => drop(all.drain(..count)),
            Self::String(all) => all.drop_first(count),
        }
    }

    /// Keeps the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        each!(self, vector => vector.truncate(len));
    }

    /// The same in another order: value `order[i]` comes to place `i`.
    pub(super) fn permuted(&self, order: &[usize]) -> Self {
        match self {
            Self::F64(all) => Self::F64(permuted(all, order)),
            Self::F32(all) => Self::F32(permuted(all, order)),
            Self::I64(all) => Self::I64(permuted(all, order)),
            Self::Bool(all) => Self::Bool(permuted(all, order)),
            Self::String(all) => {
                Self::String(order.iter().filter_map(|index| all.get(*index)).collect())
            }
        }
    }
}

/// Whether nearly all that a vector has reserved is used.
pub(super) fn is_full<T>(all: &Vec<T>) -> bool {
    all.capacity() <= all.len().saturating_add(all.len() / 4)
}

fn extend<T: Copy>(all: &mut Vec<T>, more: &[T], range: Range<usize>) {
    all.extend_from_slice(more.get(range).unwrap_or_default());
}

/// The items of `all` at the places that `order` names.
pub(super) fn permuted<T: Copy>(all: &[T], order: &[usize]) -> Vec<T> {
    order.iter().filter_map(|index| all.get(*index).copied()).collect()
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::F64(one), Self::F64(two)) => {
                one.len() == two.len()
                    && one.iter().zip(two).all(|(one, two)| one.to_bits() == two.to_bits())
            }
            (Self::F32(one), Self::F32(two)) => {
                one.len() == two.len()
                    && one.iter().zip(two).all(|(one, two)| one.to_bits() == two.to_bits())
            }
            (Self::I64(one), Self::I64(two)) => one == two,
            (Self::Bool(one), Self::Bool(two)) => one == two,
            (Self::String(one), Self::String(two)) => one == two,
            _ => false,
        }
    }
}

impl Eq for Values {}

impl From<Vec<f64>> for Values {
    fn from(values: Vec<f64>) -> Self {
        Self::F64(values)
    }
}

impl From<Vec<i64>> for Values {
    fn from(values: Vec<i64>) -> Self {
        Self::I64(values)
    }
}
