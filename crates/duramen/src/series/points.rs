//! Points as columns: what is appended, encoded, decoded and read.

use std::ops::Range;

use super::quality::{Qualities, Quality};
use super::value::{SeriesValue, ValueType};
use super::values::{Values, permuted};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{SERIES_BLOCK_POINTS_MAX, SERIES_BLOCK_TEXT_BYTES_MAX, SERIES_TEXT_BYTES_MAX};
use crate::revision::Micros;

/// One point of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// When.
    pub time: Micros,
    /// What was measured.
    pub value: SeriesValue,
    /// How far it can be trusted.
    pub quality: Quality,
}

/// Points of one tag as columns of the same length: times, values and qualities.
///
/// ```
/// use duramen::{Micros, Points, Quality, ValueType};
///
/// let mut points = Points::new(ValueType::F64);
/// points.push(Micros(1_000_000), 20.5, Quality::GOOD)?;
/// points.push(Micros(2_000_000), 20.7, Quality::GOOD)?;
/// assert_eq!(points.times(), [1_000_000, 2_000_000]);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Points {
    times: Vec<i64>,
    values: Values,
    qualities: Qualities,
}

impl Points {
    /// None yet, of a type.
    pub fn new(value_type: ValueType) -> Self {
        let qualities = Qualities::All(Quality::GOOD);
        Self { times: Vec::new(), values: Values::new(value_type), qualities }
    }

    /// Points of columns: times in microseconds since the Unix epoch, UTC.
    ///
    /// # Errors
    /// `Invalid` if the columns differ in length or a text is too long.
    pub fn from_columns(times: Vec<i64>, values: Values, qualities: Qualities) -> Result<Self> {
        let len = times.len();
        let of_qualities = match &qualities {
            Qualities::All(_) => len,
            Qualities::Each(each) => each.len(),
        };
        if values.len() != len || of_qualities != len {
            let what = format!(
                "{len} times, {} values and {of_qualities} qualities: columns have one length",
                values.len()
            );
            return Err(Error::new(ErrorKind::Invalid, what));
        }
        if let Values::String(texts) = &values
            && let Some(text) = texts.iter().find(|text| text.len() > SERIES_TEXT_BYTES_MAX)
        {
            return Err(too_long(text));
        }
        Ok(Self { times, values, qualities })
    }

    /// Appends a point.
    ///
    /// # Errors
    /// `Invalid` if the value is of another type or too long.
    pub fn push(
        &mut self,
        time: Micros,
        value: impl Into<SeriesValue>,
        quality: Quality,
    ) -> Result<()> {
        let value = value.into();
        if let SeriesValue::String(text) = &value
            && text.len() > SERIES_TEXT_BYTES_MAX
        {
            return Err(too_long(text));
        }
        let len = self.len();
        self.values.push(value).map_err(|value| {
            let (given, wanted) = (value.value_type(), self.value_type());
            let what = format!("the value {value} is of type {given}, the points of {wanted}");
            Error::new(ErrorKind::Invalid, what)
        })?;
        self.qualities.extend(len, quality, 1);
        self.times.push(time.0);
        Ok(())
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// What the values are.
    pub fn value_type(&self) -> ValueType {
        self.values.value_type()
    }

    /// The times in microseconds since the Unix epoch, UTC.
    pub fn times(&self) -> &[i64] {
        &self.times
    }

    /// The values.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The qualities.
    pub fn qualities(&self) -> &Qualities {
        &self.qualities
    }

    /// The columns.
    pub fn into_columns(self) -> (Vec<i64>, Values, Qualities) {
        (self.times, self.values, self.qualities)
    }

    /// Point `index`, or `None` beyond the end.
    pub fn get(&self, index: usize) -> Option<Point> {
        let time = Micros(*self.times.get(index)?);
        let quality = self.qualities.get(index);
        Some(Point { time, value: self.values.get(index)?, quality })
    }

    /// All in order.
    pub fn iter(&self) -> impl Iterator<Item = Point> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Appends a range of `other`.
    ///
    /// # Panics
    /// If `other` is of another type or the range goes beyond its end.
    pub fn append(&mut self, other: &Self, range: Range<usize>) {
        assert!(range.end <= other.len(), "{range:?} of {} points", other.len());
        let len = self.len();
        let alike = self.values.append(&other.values, range.clone());
        assert!(alike, "{} after {}", other.value_type(), self.value_type());
        self.qualities.append(len, &other.qualities, range.clone());
        self.times.extend_from_slice(other.times.get(range).unwrap_or_default());
    }

    /// Makes room for more.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.times.reserve(more);
        self.values.reserve(more);
    }

    /// Drops the first `count`; what they took stays reserved.
    ///
    /// # Panics
    /// If there are fewer.
    pub(crate) fn drop_first(&mut self, count: usize) {
        self.times.drain(..count);
        self.values.drop_first(count);
        self.qualities.drop_first(count);
    }

    /// Keeps the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.times.truncate(len);
        self.values.truncate(len);
        self.qualities.truncate(len);
    }

    /// Drops all; what they took stays reserved.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Sorts by time; points of one time keep their order.
    pub fn sort(&mut self) {
        if !self.times.is_sorted() {
            let mut order: Vec<usize> = (0..self.len()).collect();
            order.sort_by_key(|index| self.times.get(*index));
            self.permute(&order);
        }
    }

    /// Puts point `order[i]` to place `i`; those that are not named go.
    ///
    /// # Panics
    /// If a place is beyond the end.
    pub(crate) fn permute(&mut self, order: &[usize]) {
        self.times = permuted(&self.times, order);
        self.values = self.values.permuted(order);
        if let Qualities::Each(each) = &mut self.qualities {
            *each = permuted(each, order);
        }
        assert_eq!((self.times.len(), self.values.len()), (order.len(), order.len()));
    }

    /// How many points from `start` on make one block at most: at least one.
    pub(crate) fn block_len(&self, start: usize) -> usize {
        let left = self.len().saturating_sub(start).min(SERIES_BLOCK_POINTS_MAX);
        let Values::String(texts) = &self.values else { return left };
        let (mut low, mut high) = (1, left);
        while low < high {
            let middle = low.midpoint(high).saturating_add(1).min(high);
            if texts.bytes_of(start..start.saturating_add(middle)) <= SERIES_BLOCK_TEXT_BYTES_MAX {
                low = middle;
            } else {
                high = middle.saturating_sub(1);
            }
        }
        low.min(left)
    }

    /// The columns, to be appended to: whoever does so appends to all of them.
    pub(super) fn columns_mut(&mut self) -> (&mut Vec<i64>, &mut Values, &mut Qualities) {
        (&mut self.times, &mut self.values, &mut self.qualities)
    }
}

/// Points are equal if their columns are, floats by their bits.
impl PartialEq for Points {
    fn eq(&self, other: &Self) -> bool {
        let alike = |index| self.qualities.get(index) == other.qualities.get(index);
        self.times == other.times && self.values == other.values && (0..self.len()).all(alike)
    }
}

impl Eq for Points {}

#[cold]
fn too_long(text: &str) -> Error {
    let len = text.len();
    let what = format!(
        "a value of {len} bytes of text: at most {SERIES_TEXT_BYTES_MAX}; keep it in a document"
    );
    Error::new(ErrorKind::Invalid, what)
}

#[cfg(test)]
mod tests;
