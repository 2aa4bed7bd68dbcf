//! Points as columns: what is appended, encoded, decoded and read.

use std::ops::Range;
use std::sync::Arc;

use super::line::Line;
use super::quality::{Qualities, Quality};
use super::value::{SeriesValue, ValueType};
use super::values::{Values, is_full, permuted};
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
pub struct Points(Columns);

/// Where columns are.
#[derive(Debug, Clone)]
enum Columns {
    Own(Table),
    /// Whole columns are not copied when the points are: a batch that is appended stays as it is
    /// until the next checkpoint (benchmark T2s).
    Shared(Arc<Table>),
}

#[derive(Debug, Clone)]
struct Table {
    times: Vec<i64>,
    values: Values,
    qualities: Qualities,
}

impl Table {
    fn new(value_type: ValueType) -> Self {
        let qualities = Qualities::All(Quality::GOOD);
        Self { times: Vec::new(), values: Values::new(value_type), qualities }
    }
}

impl Points {
    /// None yet, of a type.
    pub fn new(value_type: ValueType) -> Self {
        Self(Columns::Own(Table::new(value_type)))
    }

    /// Points of columns: times in microseconds since the Unix epoch, UTC. They are not copied when
    /// the points are cloned or appended to a series, unless much of what they reserve is unused.
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
        // Who keeps shared columns keeps all of them, and counts them by their length.
        let is_full = is_full(&times) && values.is_full() && qualities.is_full();
        let table = Table { times, values, qualities };
        Ok(Self(if is_full { Columns::Shared(Arc::new(table)) } else { Columns::Own(table) }))
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
        let wanted = self.value_type();
        let table = self.table_mut();
        let len = table.times.len();
        table.values.push(value).map_err(|value| {
            let given = value.value_type();
            let what = format!("the value {value} is of type {given}, the points of {wanted}");
            Error::new(ErrorKind::Invalid, what)
        })?;
        table.qualities.extend(len, quality, 1);
        table.times.push(time.0);
        Ok(())
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.table().times.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.table().times.is_empty()
    }

    /// What the values are.
    pub fn value_type(&self) -> ValueType {
        self.table().values.value_type()
    }

    /// The times in microseconds since the Unix epoch, UTC.
    pub fn times(&self) -> &[i64] {
        &self.table().times
    }

    /// The values.
    pub fn values(&self) -> &Values {
        &self.table().values
    }

    /// The qualities.
    pub fn qualities(&self) -> &Qualities {
        &self.table().qualities
    }

    /// The columns.
    pub fn into_columns(self) -> (Vec<i64>, Values, Qualities) {
        let Table { times, values, qualities } = match self.0 {
            Columns::Own(table) => table,
            Columns::Shared(table) => Arc::unwrap_or_clone(table),
        };
        (times, values, qualities)
    }

    /// Point `index`, or `None` beyond the end.
    pub fn get(&self, index: usize) -> Option<Point> {
        let Table { times, values, qualities } = self.table();
        let time = Micros(*times.get(index)?);
        Some(Point { time, value: values.get(index)?, quality: qualities.get(index) })
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
        self.append_on(other, range, None);
    }

    /// The same. Times of `other` that are on a line are made again, not read: of what is in no
    /// cache that is a quarter less to read and write (benchmark T3).
    pub(crate) fn append_on(&mut self, other: &Self, range: Range<usize>, line: Option<Line>) {
        assert!(range.end <= other.len(), "{range:?} of {} points", other.len());
        let (table, other) = (self.table_mut(), other.table());
        let len = table.times.len();
        let alike = table.values.append(&other.values, range.clone());
        let types = (other.values.value_type(), table.values.value_type());
        assert!(alike, "{} after {}", types.0, types.1);
        table.qualities.append(len, &other.qualities, range.clone());
        match line {
            Some(line) => line.put(range, &mut table.times),
            None => table.times.extend_from_slice(other.times.get(range).unwrap_or_default()),
        }
    }

    /// Makes room for more.
    pub(crate) fn reserve(&mut self, more: usize) {
        let table = self.table_mut();
        table.times.reserve(more);
        table.values.reserve(more);
    }

    /// Drops the first `count`; what they took stays reserved.
    ///
    /// # Panics
    /// If there are fewer.
    pub(crate) fn drop_first(&mut self, count: usize) {
        let table = self.table_mut();
        table.times.drain(..count);
        table.values.drop_first(count);
        table.qualities.drop_first(count);
    }

    /// Keeps the first `len`.
    pub fn truncate(&mut self, len: usize) {
        let table = self.table_mut();
        table.times.truncate(len);
        table.values.truncate(len);
        table.qualities.truncate(len);
    }

    /// Drops all; what they took stays reserved.
    pub fn clear(&mut self) {
        match &self.0 {
            Columns::Shared(shared) if Arc::strong_count(shared) > 1 => {
                *self = Self::new(self.value_type());
            }
            _ => self.truncate(0),
        }
    }

    /// Sorts by time; points of one time keep their order.
    pub fn sort(&mut self) {
        let times = self.times();
        if !times.is_sorted() {
            let mut order: Vec<usize> = (0..times.len()).collect();
            order.sort_by_key(|index| times.get(*index));
            self.permute(&order);
        }
    }

    /// Puts point `order[i]` to place `i`; those that are not named go.
    ///
    /// # Panics
    /// If a place is beyond the end.
    pub(crate) fn permute(&mut self, order: &[usize]) {
        let table = self.table();
        let times = permuted(&table.times, order);
        let values = table.values.permuted(order);
        let qualities = match &table.qualities {
            Qualities::All(quality) => Qualities::All(*quality),
            Qualities::Each(each) => Qualities::Each(permuted(each, order)),
        };
        assert_eq!((times.len(), values.len()), (order.len(), order.len()));
        *self = Self(Columns::Own(Table { times, values, qualities }));
    }

    /// How many points from `start` on make one block at most: at least one.
    pub(crate) fn block_len(&self, start: usize) -> usize {
        let left = self.len().saturating_sub(start).min(SERIES_BLOCK_POINTS_MAX);
        let Values::String(texts) = self.values() else { return left };
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
        let Table { times, values, qualities } = self.table_mut();
        (times, values, qualities)
    }

    #[inline]
    fn table(&self) -> &Table {
        match &self.0 {
            Columns::Own(table) => table,
            Columns::Shared(table) => table,
        }
    }

    /// The columns, which are those of nobody else.
    #[inline]
    fn table_mut(&mut self) -> &mut Table {
        if let Columns::Shared(shared) = &mut self.0 {
            let none = Table::new(shared.values.value_type());
            let alone = Arc::get_mut(shared).map(|table| std::mem::replace(table, none));
            self.0 = Columns::Own(alone.unwrap_or_else(|| Table::clone(shared)));
        }
        match &mut self.0 {
            Columns::Own(table) => table,
            Columns::Shared(_) => unreachable!("it was taken out"),
        }
    }
}

/// Points are equal if their columns are, floats by their bits.
impl PartialEq for Points {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (self.table(), other.table());
        let alike = |index| one.qualities.get(index) == two.qualities.get(index);
        one.times == two.times && one.values == two.values && (0..self.len()).all(alike)
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
