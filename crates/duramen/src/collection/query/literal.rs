//! Values that records are compared with.

use std::cmp::Ordering;
use std::fmt;

use crate::collection::sort_key::{self, SortClass};
use crate::json::{Item, ParseOptions, Tape, escape, number};
use crate::jsonpath::value::Value;
use crate::state::Datum;

/// A JSON value that a filter compares with: made of a Rust value, or of any JSON text.
///
/// ```
/// use duramen::{Filter, FilterValue};
///
/// let filter = Filter::eq("address", FilterValue::json(r#"{"city":"Ulm"}"#));
/// assert_eq!(filter.to_string(), r#"address = {"city":"Ulm"}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterValue {
    json: String,
}

impl FilterValue {
    /// The value of a JSON text.
    pub fn json(text: impl Into<String>) -> Self {
        Self { json: text.into() }
    }
}

impl From<&str> for FilterValue {
    fn from(text: &str) -> Self {
        Self::json(escape::quoted(text))
    }
}

impl From<String> for FilterValue {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

macro_rules! from_displayed {
    ($($from:ty),*) => {
        $(impl From<$from> for FilterValue {
            fn from(value: $from) -> Self {
                Self::json(value.to_string())
            }
        })*
    };
}

from_displayed!(i32, i64, u32, u64, f64, bool);

/// A value that was read.
#[derive(Debug, Clone)]
pub(super) struct Literal {
    /// As compact JSON.
    text: Box<str>,
    pub(super) key: Box<[u8]>,
    /// None of an array or object.
    scalar: Option<Value>,
}

impl Literal {
    /// Reads a value; what is wrong with it if it is none to compare with.
    pub(super) fn read(value: &FilterValue) -> Result<Self, String> {
        let tape = Tape::parse(value.json.as_bytes(), ParseOptions::default())
            .map_err(|error| format!("{} is no JSON value: {}", value.json, error.message()))?;
        let root = tape.root();
        let scalar = match tape.item(root) {
            Item::Null => {
                return Err("null equals nothing and is in no order: use \"is null\"".to_owned());
            }
            Item::Bool(value) => Some(Value::Bool(value)),
            Item::Number(text) => Some(Value::of(number::classify(text))),
            Item::Text { bytes, .. } => Some(Value::text(bytes)),
            Item::Array { .. } | Item::Object { .. } => None,
        };
        let (mut key, mut text) = (Vec::new(), Vec::new());
        sort_key::append_parsed(&tape, root, &mut key);
        tape.write(root, &mut text);
        let text = String::from_utf8_lossy(&text).into();
        Ok(Self { text, key: key.into(), scalar })
    }

    /// The value as a state; none of an array or object.
    pub(super) fn datum(&self) -> Option<Datum<'_>> {
        self.scalar.as_ref().and_then(Value::datum)
    }

    pub(super) fn class(&self) -> SortClass {
        SortClass::of(&self.key)
    }

    /// How a scalar state compares; none if it is of another type.
    #[inline]
    pub(super) fn order_of(&self, state: Datum<'_>) -> Option<Ordering> {
        match (state, self.datum()?) {
            (Datum::Int(a), Datum::Int(b)) => Some(a.cmp(&b)),
            (Datum::Text { bytes: a, .. }, Datum::Text { bytes: b, .. }) => Some(a.cmp(b)),
            (Datum::Bool(a), Datum::Bool(b)) => Some(a.cmp(&b)),
            (a, b) => number::compare(a, b),
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
