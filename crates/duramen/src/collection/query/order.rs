//! The order of the results of a query.
//!
//! Invariant: a record's key in an order begins with the sort keys of the values there, cut at
//! [`ORDER_VALUE_BYTES_MAX`] bytes and complemented where the order is descending, and ends with
//! its ordinal; so no two are the same, and their bytes are in the order of the results.

use std::fmt;

use super::RecordView;
use crate::collection::path_values;
use crate::collection::record_path::RecordPath;
use crate::collection::sort_key::{self, SortClass};
use crate::error::{Error, ErrorKind, Result};
use crate::index::{self, Gathered};
use crate::limits::{INDEX_VALUE_BYTES_MAX, ORDER_PATHS_MAX, ORDER_VALUE_BYTES_MAX};

// What is gathered of a value is what an order has of it, as an index does.
const _: () = assert!(INDEX_VALUE_BYTES_MAX == ORDER_VALUE_BYTES_MAX);

/// One path by which records are ordered: see [`Query::order_by`](crate::Query::order_by).
///
/// Values of all types are in one order: missing, null, false, true, numbers, strings, arrays,
/// objects. Where it is descending, so is that of the types, unless it is said where records
/// without a value go.
///
/// ```
/// use duramen::Order;
///
/// let order: Order = "score:desc:nulls-last".parse()?;
/// assert_eq!(order, Order::desc("score").nulls_last());
/// assert_eq!(Order::asc("name").to_string(), "name");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Or why it cannot be one.
    path: Result<RecordPath, String>,
    pub(super) is_descending: bool,
    nulls: Nulls,
}

/// Where records go whose value is missing or null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nulls {
    /// Before all others if the order is ascending, else behind them.
    Least,
    First,
    Last,
}

impl Order {
    /// The least value first.
    pub fn asc(path: impl AsRef<str>) -> Self {
        Self::new(path.as_ref(), false)
    }

    /// The greatest value first.
    pub fn desc(path: impl AsRef<str>) -> Self {
        Self::new(path.as_ref(), true)
    }

    fn new(path: &str, is_descending: bool) -> Self {
        let path = RecordPath::parse(path).map_err(|error| error.message().to_owned());
        Self { path, is_descending, nulls: Nulls::Least }
    }

    /// Records whose value is missing or null come before all others.
    pub fn nulls_first(mut self) -> Self {
        self.nulls = Nulls::First;
        self
    }

    /// Records whose value is missing or null come behind all others.
    pub fn nulls_last(mut self) -> Self {
        self.nulls = Nulls::Last;
        self
    }

    /// The path; `Invalid` if it is none, or one at which there may be several values.
    pub(super) fn path(&self) -> Result<&RecordPath> {
        let refuse = |why: String| {
            Error::new(ErrorKind::Invalid, format!("records cannot be ordered by this: {why}"))
        };
        let path = self.path.as_ref().map_err(|why| refuse(why.clone()))?;
        if path.has_elements() {
            let why = format!("{path} may have several values: name one without [*]");
            return Err(refuse(why));
        }
        Ok(path)
    }

    /// Whether the order is that of the sort keys, or their reverse, and nothing else.
    pub(super) fn is_plain(&self) -> bool {
        match self.nulls {
            Nulls::Least => true,
            Nulls::First => !self.is_descending,
            Nulls::Last => self.is_descending,
        }
    }

    /// Whether records without a value come first, if the sort keys do not say it.
    pub(super) fn places_nulls_first(&self) -> Option<bool> {
        (!self.is_plain()).then_some(self.nulls == Nulls::First)
    }

    /// Appends what the value of a record has in a key: `gathered`, or what is read of it.
    fn append_key(
        &self,
        (view, ordinal): (&RecordView, u64),
        gathered: &Gathered<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        if let Gathered::Key(key) = gathered {
            out.extend_from_slice(key);
        } else {
            match path_values::values(view.view(), &view.at(ordinal), self.path()?)?.first() {
                Some(at) => path_values::append_key(view.view(), at, out)?,
                None => sort_key::append_missing(out),
            }
        }
        out.truncate(start + ORDER_VALUE_BYTES_MAX);
        let is_null = is_null(&out[start..]);
        if self.is_descending {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        if let Some(is_first) = self.places_nulls_first() {
            out.insert(start, place_of_nulls(is_null, is_first));
        }
        Ok(())
    }
}

/// Whether a sort key is that of no value.
pub(super) fn is_null(key: &[u8]) -> bool {
    SortClass::of(key) <= SortClass::Null
}

/// What a key in an order begins with that puts records without a value first, or last.
pub(super) fn place_of_nulls(is_null: bool, is_first: bool) -> u8 {
    u8::from(is_null != is_first)
}

/// Refuses an order that there is none of.
pub(super) fn check(order: &[Order]) -> Result<()> {
    if order.len() > ORDER_PATHS_MAX {
        let message =
            format!("a query orders by {} paths; at most {ORDER_PATHS_MAX} can be", order.len());
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    order.iter().try_for_each(|order| order.path().map(drop))
}

/// Whether ties are in the reverse order of the ordinals.
pub(super) fn is_reverse(order: &[Order]) -> bool {
    order.last().is_some_and(|last| last.is_descending)
}

/// Hands over the keys of some records in an order: their values are gathered by column.
pub(super) fn each_key(
    order: &[Order],
    view: &RecordView,
    ordinals: &[u64],
    take: &mut dyn FnMut(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let gather = |order: &Order| {
        let paths = std::slice::from_ref(order.path()?);
        index::gather(view.tree(), paths, ordinals, view.revision())
    };
    let gathered = order.iter().map(gather).collect::<Result<Vec<_>>>()?;
    let mut key = Vec::new();
    for (index, &ordinal) in ordinals.iter().enumerate() {
        key.clear();
        for (order, gathered) in order.iter().zip(&gathered) {
            order.append_key((view, ordinal), &gathered.get(index), &mut key)?;
        }
        append_ordinal(&mut key, ordinal, is_reverse(order));
        take(&mut key)?;
    }
    Ok(())
}

/// Appends an ordinal, which ends a key.
pub(super) fn append_ordinal(key: &mut Vec<u8>, ordinal: u64, is_reverse: bool) {
    let ordinal = if is_reverse { !ordinal } else { ordinal };
    key.extend_from_slice(&ordinal.to_be_bytes());
}

/// The ordinal that a key ends with.
pub(super) fn ordinal_of(key: &[u8], is_reverse: bool) -> Option<u64> {
    let ordinal = u64::from_be_bytes(*key.last_chunk::<8>()?);
    Some(if is_reverse { !ordinal } else { ordinal })
}

/// As it is read: the path, then `:desc`, `:nulls-first` and `:nulls-last` where they hold.
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Ok(path) => path.fmt(f)?,
            Err(why) => write!(f, "no path: {why}")?,
        }
        if self.is_descending {
            f.write_str(":desc")?;
        }
        f.write_str(match self.nulls {
            Nulls::Least => "",
            Nulls::First => ":nulls-first",
            Nulls::Last => ":nulls-last",
        })
    }
}

impl std::str::FromStr for Order {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |(rest, expected): (&str, &str)| {
            let read = text.get(..text.len().saturating_sub(rest.len())).unwrap_or(text);
            let at = read.chars().count() + 1;
            let message = format!(
                "{text:?} is no order: at character {at}, expected {expected}; one is written \
                 such as score:desc or name:nulls-last"
            );
            Error::new(ErrorKind::Invalid, message)
        };
        let (path, mut rest) = RecordPath::read(text).map_err(refuse)?;
        let mut order = Self { path: Ok(path), is_descending: false, nulls: Nulls::Least };
        while !rest.is_empty() {
            let words = [":asc", ":desc", ":nulls-first", ":nulls-last"];
            let Some(word) = words.into_iter().find(|word| rest.starts_with(word)) else {
                return Err(refuse((rest, ":asc, :desc, :nulls-first, :nulls-last or the end")));
            };
            match word {
                ":asc" => order.is_descending = false,
                ":desc" => order.is_descending = true,
                ":nulls-first" => order.nulls = Nulls::First,
                _ => order.nulls = Nulls::Last,
            }
            rest = &rest[word.len()..];
        }
        Ok(order)
    }
}
