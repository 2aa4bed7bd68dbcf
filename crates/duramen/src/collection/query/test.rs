//! What a filter asks of one value.
//!
//! Invariants:
//! - a test is true or false of each value, and false where there is none;
//! - values compare with those of their own type only, numbers by their decimal values.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;

use super::literal::Literal;
use crate::collection::path_values;
use crate::collection::sort_key;
use crate::error::Result;
use crate::jsonpath::place::{At, View};
use crate::state::{ApartKind, Datum};
use crate::tree::conditions::{ColumnTest, Integers};

/// A question about a value.
#[derive(Debug, Clone)]
pub(super) enum Test {
    Equal(Literal),
    /// There, not null, and not equal.
    NotEqual(Literal),
    /// Between two values of the same type, or before or behind one.
    Range(Bound<Literal>, Bound<Literal>),
    /// Equal to one of them: sorted by their keys, each once.
    In(Vec<Literal>),
    /// A string that begins so.
    Prefix(Box<str>),
    Null,
    Exists,
}

/// A value as far as one knows it without reading its parts.
#[derive(Clone, Copy)]
enum Known<'a> {
    State(Datum<'a>),
    /// An array or object that was not read.
    Container,
    /// An array or object, or a value of a type by its key.
    Key(&'a [u8]),
}

impl Test {
    /// Whether it holds for a value that is there.
    pub(super) fn holds(&self, view: View<'_>, at: &At) -> Result<bool> {
        let value = view.value(at)?;
        let known = value.datum().map_or(Known::Container, Known::State);
        if let Some(holds) = self.decide(known) {
            return Ok(holds);
        }
        let mut key = Vec::new();
        path_values::append_key(view, at, &mut key)?;
        Ok(self.decide(Known::Key(&key)).unwrap_or(false))
    }

    fn decide(&self, value: Known<'_>) -> Option<bool> {
        let is_null = matches!(value, Known::State(Datum::Null));
        Some(match self {
            Self::Exists => !matches!(value, Known::State(Datum::Absent)),
            Self::Null => is_null,
            Self::Equal(literal) => equals(literal, value)?,
            Self::NotEqual(literal) => {
                let is_missing = matches!(value, Known::State(Datum::Absent));
                !is_missing && !is_null && !equals(literal, value)?
            }
            Self::Range(low, high) => match value {
                Known::State(state) => {
                    is_within(low, state, Ordering::Less)
                        && is_within(high, state, Ordering::Greater)
                }
                Known::Container | Known::Key(_) => false,
            },
            Self::In(list) => return is_among(list, value),
            Self::Prefix(prefix) => match value {
                Known::State(Datum::Text { bytes, .. }) => bytes.starts_with(prefix.as_bytes()),
                _ => false,
            },
        })
    }
}

/// Whether a value is one; none if that takes more than is known of it.
fn equals(literal: &Literal, value: Known<'_>) -> Option<bool> {
    match value {
        Known::State(state) => Some(literal.order_of(state).is_some_and(Ordering::is_eq)),
        Known::Container if literal.datum().is_some() => Some(false),
        Known::Container => None,
        Known::Key(key) => Some(*literal.key == *key),
    }
}

/// Whether a state is not beyond an end: `beyond` is how it compares with it then.
fn is_within(end: &Bound<Literal>, state: Datum<'_>, beyond: Ordering) -> bool {
    match end {
        Bound::Unbounded => true,
        Bound::Included(end) => end.order_of(state).is_some_and(|order| order != beyond),
        Bound::Excluded(end) => end.order_of(state) == Some(beyond.reverse()),
    }
}

fn is_among(list: &[Literal], value: Known<'_>) -> Option<bool> {
    let find = |key: &[u8]| list.binary_search_by(|literal| (*literal.key).cmp(key)).is_ok();
    match value {
        Known::Key(key) => Some(find(key)),
        Known::Container if list.iter().all(|literal| literal.datum().is_some()) => Some(false),
        Known::Container => None,
        Known::State(state) => {
            let mut key = Vec::new();
            Some(sort_key::append_scalar(state, &mut key) && find(&key))
        }
    }
}

impl ColumnTest for Test {
    fn holds_for_missing(&self) -> bool {
        false
    }

    fn verdict(&self, state: Datum<'_>) -> Option<bool> {
        match state {
            Datum::Object(_)
            | Datum::Array(_)
            | Datum::Map(_)
            | Datum::Opaque(_)
            | Datum::Apart { kind: ApartKind::Opaque, .. } => self.decide(Known::Container),
            Datum::Apart { .. } => match self {
                Self::Exists => Some(true),
                Self::Null => Some(false),
                _ => None,
            },
            state => self.decide(Known::State(state)),
        }
    }

    fn integers(&self) -> Option<Integers> {
        let (range, are_inside) = match self {
            Self::Equal(literal) => (integer(literal)?..=integer(literal)?, true),
            Self::NotEqual(literal) => (integer(literal)?..=integer(literal)?, false),
            Self::Range(low, high) => {
                let low = match low {
                    Bound::Unbounded => i64::MIN,
                    Bound::Included(low) => integer(low)?,
                    Bound::Excluded(low) => integer(low)?.checked_add(1)?,
                };
                let high = match high {
                    Bound::Unbounded => i64::MAX,
                    Bound::Included(high) => integer(high)?,
                    Bound::Excluded(high) => integer(high)?.checked_sub(1)?,
                };
                (low..=high, true)
            }
            _ => return None,
        };
        Some(Integers { range, are_inside })
    }

    fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Equal(literal) => match literal.datum() {
                Some(Datum::Text { bytes, .. }) => Some(bytes),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_of_presence(&self) -> bool {
        matches!(self, Self::Exists)
    }
}

fn integer(literal: &Literal) -> Option<i64> {
    match literal.datum() {
        Some(Datum::Int(value)) => Some(value),
        _ => None,
    }
}

/// As what follows the path in a filter.
impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal(literal) => write!(f, "= {literal}"),
            Self::NotEqual(literal) => write!(f, "!= {literal}"),
            Self::Range(Bound::Included(low), Bound::Included(high)) => {
                write!(f, "between {low} and {high}")
            }
            Self::Range(Bound::Included(low), _) => write!(f, ">= {low}"),
            Self::Range(Bound::Excluded(low), _) => write!(f, "> {low}"),
            Self::Range(_, Bound::Included(high)) => write!(f, "<= {high}"),
            Self::Range(_, Bound::Excluded(high)) => write!(f, "< {high}"),
            Self::Range(Bound::Unbounded, Bound::Unbounded) | Self::Exists => {
                f.write_str("is not missing")
            }
            Self::In(list) => {
                let list: Vec<_> = list.iter().map(ToString::to_string).collect();
                write!(f, "in ({})", list.join(", "))
            }
            Self::Prefix(prefix) => {
                write!(f, "prefix {}", crate::json::escape::quoted(prefix))
            }
            Self::Null => f.write_str("is null"),
        }
    }
}
