//! The columns of rows.

use std::ops::Range;
use std::sync::Arc;

use super::Row;
use crate::error::{Error, ErrorKind, Result};
use crate::revision::Micros;
use crate::series::aggregate::Aggregate;
use crate::series::block::{Numbers, Summary};
use crate::series::{Points, SeriesValue, ValueType, Values};

/// A column of the rows of a rollup; its number stands in keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Column {
    AsOf = 0,
    Good = 1,
    /// How many numbers there are among those.
    Numbers = 2,
    Least = 3,
    Greatest = 4,
    /// The sum of floats, or the lower half of that of integers.
    Sum = 5,
    /// The upper half of the sum of integers.
    SumHigh = 6,
    /// The squares of the differences from the mean.
    Squares = 7,
    FirstTime = 8,
    First = 9,
    LastTime = 10,
    Last = 11,
}

impl Column {
    pub(super) const ALL: [Self; 12] = [
        Self::AsOf,
        Self::Good,
        Self::Numbers,
        Self::Least,
        Self::Greatest,
        Self::Sum,
        Self::SumHigh,
        Self::Squares,
        Self::FirstTime,
        Self::First,
        Self::LastTime,
        Self::Last,
    ];

    /// Those that an aggregate is made of; none if it needs the points.
    pub(super) fn of(aggregate: &Aggregate) -> Option<&'static [Self]> {
        Some(match aggregate {
            Aggregate::Count => &[],
            Aggregate::Sum | Aggregate::Mean => &[Self::Numbers, Self::Sum, Self::SumHigh],
            // The bounds say how much of a sum may be rounding.
            Aggregate::StdDev => &[
                Self::Numbers,
                Self::Least,
                Self::Greatest,
                Self::Sum,
                Self::SumHigh,
                Self::Squares,
            ],
            Aggregate::Min => &[Self::Numbers, Self::Least],
            Aggregate::Max => &[Self::Numbers, Self::Greatest],
            Aggregate::First => &[Self::First],
            Aggregate::Last => &[Self::Last],
            Aggregate::Delta | Aggregate::Rate => {
                &[Self::Numbers, Self::FirstTime, Self::First, Self::LastTime, Self::Last]
            }
            _ => return None,
        })
    }

    /// The type of its values in a series of a type.
    pub(super) fn value_type(self, of: ValueType) -> ValueType {
        let integers = matches!(Numbers::none(of), Numbers::Integers { .. });
        match self {
            Self::Squares => ValueType::F64,
            Self::Least | Self::Greatest | Self::Sum if !integers => ValueType::F64,
            Self::First | Self::Last => of,
            _ => ValueType::I64,
        }
    }

    /// Whether it says anything of a series of a type.
    pub(super) fn is_of(self, of: ValueType) -> bool {
        let number =
            [Self::Numbers, Self::Least, Self::Greatest, Self::Sum, Self::SumHigh, Self::Squares];
        match of {
            ValueType::String => !number.contains(&self),
            ValueType::F64 | ValueType::F32 => self != Self::SumHigh,
            ValueType::I64 | ValueType::Bool => true,
        }
    }

    /// What it says in a row.
    pub(super) fn value(self, row: &Row, of: ValueType) -> SeriesValue {
        let summary = &row.summary;
        let end = |is_last: bool| {
            let ends =
                summary.ends.as_ref().map(|(first, last)| if is_last { last } else { first });
            ends.cloned().unwrap_or((Micros(row.start), nothing(of)))
        };
        match (self, &summary.numbers) {
            (Self::AsOf, _) => SeriesValue::I64(row.as_of.cast_signed()),
            (Self::Good, _) => SeriesValue::I64(summary.good.cast_signed()),
            (Self::Numbers, numbers) => SeriesValue::I64(numbers.count().cast_signed()),
            (Self::Least, Numbers::Floats { range, .. }) => SeriesValue::F64(range.0),
            (Self::Least, Numbers::Integers { range, .. }) => SeriesValue::I64(range.0),
            (Self::Greatest, Numbers::Floats { range, .. }) => SeriesValue::F64(range.1),
            (Self::Greatest, Numbers::Integers { range, .. }) => SeriesValue::I64(range.1),
            (Self::Sum, Numbers::Floats { sum, .. }) => SeriesValue::F64(*sum),
            (Self::Sum, Numbers::Integers { sum, .. }) => SeriesValue::I64(halves(*sum).0),
            (Self::SumHigh, Numbers::Integers { sum, .. }) => SeriesValue::I64(halves(*sum).1),
            (Self::SumHigh, Numbers::Floats { .. }) => SeriesValue::I64(0),
            (Self::Squares, numbers) => SeriesValue::F64(numbers.squares()),
            (Self::FirstTime, _) => SeriesValue::I64(end(false).0.0),
            (Self::First, _) => end(false).1,
            (Self::LastTime, _) => SeriesValue::I64(end(true).0.0),
            (Self::Last, _) => end(true).1,
        }
    }
}

/// Some columns of rows, which are where they were decoded.
#[derive(Debug)]
pub(crate) struct Table {
    of: ValueType,
    columns: Vec<(Column, Stretch)>,
}

/// Points that follow each other, shared with whoever else reads them.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    pub(super) points: Arc<Points>,
    pub(super) places: Range<usize>,
}

impl Stretch {
    /// All of some points.
    pub(super) fn all(points: Points) -> Self {
        Self { places: 0..points.len(), points: Arc::new(points) }
    }

    fn times(&self) -> &[i64] {
        self.points.times().get(self.places.clone()).unwrap_or_default()
    }
}

impl Table {
    /// Of a series of a type, without columns.
    pub(super) fn new(of: ValueType) -> Self {
        Self { of, columns: Vec::new() }
    }

    /// Adds a column of the same windows.
    pub(super) fn push(&mut self, column: Column, stretch: Stretch) -> Result<()> {
        if !self.columns.is_empty() && self.starts() != stretch.times() {
            return Err(short());
        }
        self.columns.push((column, stretch));
        Ok(())
    }

    /// When each window begins.
    pub(crate) fn starts(&self) -> &[i64] {
        self.columns.first().map_or(&[], |(_, stretch)| stretch.times())
    }

    /// A column of floats that was read.
    pub(crate) fn floats(&self, column: Column) -> Option<&[f64]> {
        let (values, places) = self.values(column)?;
        match values {
            Values::F64(all) => all.get(places),
            _ => None,
        }
    }

    /// A column of integers that was read.
    pub(crate) fn integers(&self, column: Column) -> Option<&[i64]> {
        let (values, places) = self.values(column)?;
        match values {
            Values::I64(all) => all.get(places),
            _ => None,
        }
    }

    fn values(&self, column: Column) -> Option<(&Values, Range<usize>)> {
        let (_, stretch) = self.columns.iter().find(|(known, _)| *known == column)?;
        Some((stretch.points.values(), stretch.places.clone()))
    }

    /// A row of it; what its other columns would say is nothing.
    pub(crate) fn row(&self, index: usize) -> Result<Row> {
        let mut row = Row {
            start: self.starts().get(index).copied().unwrap_or_default(),
            as_of: 0,
            summary: Summary::none(self.of),
        };
        let end = (Micros(row.start), nothing(self.of));
        let mut ends = (end.clone(), end);
        for (column, stretch) in &self.columns {
            let place = stretch.places.clone().nth(index).ok_or_else(short)?;
            let value = stretch.points.values().get(place).ok_or_else(short)?;
            set(&mut row, &mut ends, (*column, value));
        }
        row.summary.points = row.summary.good;
        row.summary.ends = (row.summary.good > 0).then_some(ends);
        Ok(row)
    }
}

type End = (Micros, SeriesValue);

fn set(row: &mut Row, ends: &mut (End, End), (column, value): (Column, SeriesValue)) {
    use {Column as C, Numbers as N, SeriesValue as V};

    match (column, &mut row.summary.numbers, value) {
        (C::AsOf, _, V::I64(value)) => row.as_of = value.cast_unsigned(),
        (C::Good, _, V::I64(value)) => row.summary.good = value.cast_unsigned(),
        (C::Numbers, N::Floats { count, .. } | N::Integers { count, .. }, V::I64(value)) => {
            *count = value.cast_unsigned();
        }
        (C::Least, N::Floats { range, .. }, V::F64(value)) => range.0 = value,
        (C::Least, N::Integers { range, .. }, V::I64(value)) => range.0 = value,
        (C::Greatest, N::Floats { range, .. }, V::F64(value)) => range.1 = value,
        (C::Greatest, N::Integers { range, .. }, V::I64(value)) => range.1 = value,
        (C::Sum, N::Floats { sum, .. }, V::F64(value)) => *sum = value,
        (C::Sum, N::Integers { sum, .. }, V::I64(value)) => *sum = whole(value, halves(*sum).1),
        (C::SumHigh, N::Integers { sum, .. }, V::I64(value)) => *sum = whole(halves(*sum).0, value),
        (C::Squares, N::Floats { squares, .. } | N::Integers { squares, .. }, V::F64(value)) => {
            *squares = value;
        }
        (C::FirstTime, _, V::I64(value)) => ends.0.0 = Micros(value),
        (C::First, _, value) => ends.0.1 = value,
        (C::LastTime, _, V::I64(value)) => ends.1.0 = Micros(value),
        (C::Last, _, value) => ends.1.1 = value,
        // Columns were read as of their types.
        _ => {}
    }
}

fn nothing(of: ValueType) -> SeriesValue {
    match of {
        ValueType::F64 => SeriesValue::F64(0.0),
        ValueType::F32 => SeriesValue::F32(0.0),
        ValueType::I64 => SeriesValue::I64(0),
        ValueType::Bool => SeriesValue::Bool(false),
        ValueType::String => SeriesValue::String(String::new()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves")]
fn halves(sum: i128) -> (i64, i64) {
    (sum as i64, (sum >> 64) as i64)
}

fn whole(low: i64, high: i64) -> i128 {
    i128::from(high) << 64 | i128::from(low.cast_unsigned())
}

/// Columns of one slice have one length.
pub(super) fn short() -> Error {
    Error::new(ErrorKind::Corrupt, "the columns of a rollup differ in their windows")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Quality;

    fn table(rows: &[Row], of: ValueType) -> Table {
        let mut table = Table::new(of);
        for column in Column::ALL.into_iter().filter(|column| column.is_of(of)) {
            let mut points = Points::new(column.value_type(of));
            for row in rows {
                points.push(Micros(row.start), column.value(row, of), Quality::GOOD).unwrap();
            }
            table.push(column, Stretch::all(points)).unwrap();
        }
        table
    }

    #[test]
    fn rows_come_back_from_their_columns() {
        let integers =
            |sum: i128| Numbers::Integers { count: 3, range: (-5, 9), sum, squares: 2.5 };
        let range = (-0.5, 1e9);
        let floats = Numbers::Floats { count: 2, range, sum: 7.25, rest: 0.0, squares: 0.125 };
        let ends = |value: SeriesValue| Some(((Micros(3), value.clone()), (Micros(8), value)));
        let cases = [
            (ValueType::I64, integers(i128::MIN), ends(SeriesValue::I64(7))),
            (ValueType::Bool, integers(-1), ends(SeriesValue::Bool(true))),
            (ValueType::F32, floats, ends(SeriesValue::F32(0.5))),
            (ValueType::F64, floats, ends(SeriesValue::F64(f64::NAN))),
            (ValueType::String, Numbers::none(ValueType::String), ends("on".into())),
        ];
        for (of, numbers, ends) in cases {
            let summary = Summary { points: 3, good: 3, numbers, ends };
            let none = Row { start: -60, as_of: 9, summary: Summary::none(of) };
            let rows = [none, Row { start: 0, as_of: u64::MAX, summary }];
            let table = table(&rows, of);
            assert_eq!(table.row(0).unwrap(), rows[0]);
            assert_eq!(table.row(1).unwrap(), rows[1]);
            assert_eq!(table.row(2).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }
}
