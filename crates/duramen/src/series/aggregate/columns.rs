//! The results as columns, and what fills their gaps.

use super::{Aggregate, Fill, WindowColumn, WindowTable};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::SERIES_WINDOWS_MAX;
use crate::series::interpolation::{integer_at, number_at};
use crate::series::{SeriesValue, ValueType, Values};

/// Results, row by row.
#[derive(Debug)]
pub(super) struct Columns {
    starts: Vec<i64>,
    columns: Vec<WindowColumn>,
}

impl Columns {
    /// Of aggregates of a series of a type.
    pub(super) fn new(aggregates: &[Aggregate], value_type: ValueType) -> Self {
        let column = |aggregate: &Aggregate| {
            let value_type = match aggregate {
                Aggregate::Count | Aggregate::DurationIn(_) => ValueType::I64,
                Aggregate::Min | Aggregate::Max | Aggregate::First | Aggregate::Last => value_type,
                _ => ValueType::F64,
            };
            WindowColumn { values: Values::new(value_type), nulls: Vec::new() }
        };
        Self { starts: Vec::new(), columns: aggregates.iter().map(column).collect() }
    }

    /// Appends a window.
    pub(super) fn push(&mut self, start: i64, row: impl Iterator<Item = Option<SeriesValue>>) {
        self.starts.push(start);
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value);
        }
    }

    /// Appends windows that all have values.
    pub(super) fn extend(&mut self, starts: &[i64], columns: &[Values]) {
        // One more, for the window that is open behind them.
        self.starts.reserve(starts.len() + 1);
        self.starts.extend_from_slice(starts);
        for (column, values) in self.columns.iter_mut().zip(columns) {
            column.values.reserve(values.len() + 1);
            column.nulls.reserve(values.len() + 1);
            let is_alike = column.values.append(values, 0..values.len());
            assert!(is_alike, "an aggregate has another type than its column");
            column.nulls.resize(column.values.len(), false);
        }
    }

    /// Appends the windows of a table of the same aggregates, which are behind all that are there.
    pub(super) fn append(&mut self, table: WindowTable) -> Result<()> {
        self.starts.extend(table.starts);
        for (column, more) in self.columns.iter_mut().zip(table.columns) {
            let is_alike = column.values.append(&more.values, 0..more.values.len());
            assert!(is_alike, "an aggregate has another type than its column");
            column.nulls.extend(more.nulls);
        }
        self.check_len()
    }

    /// Refuses more windows than there may be.
    pub(super) fn check_len(&self) -> Result<()> {
        if self.starts.len() <= SERIES_WINDOWS_MAX {
            return Ok(());
        }
        let what = format!(
            "there are more than {SERIES_WINDOWS_MAX} windows: use wider ones, or a shorter span"
        );
        Err(Error::new(ErrorKind::Invalid, what))
    }

    /// The table.
    pub(super) fn finish(self) -> WindowTable {
        WindowTable { starts: self.starts, columns: self.columns }
    }
}

/// When a window begins that has a value in a column, and which.
pub(super) type Spot = (i64, SeriesValue);

impl WindowTable {
    /// Fills the gaps of a column. `before` and `after` are the nearest windows with a value beside
    /// all of the table's.
    pub(super) fn fill(
        &mut self,
        column: usize,
        fill: Fill,
        (before, after): (Option<&Spot>, Option<&Spot>),
    ) {
        let Self { starts, columns } = self;
        let Some(column) = columns.get_mut(column) else { return };
        match fill {
            Fill::None | Fill::Null => {}
            Fill::Previous => column.fill_previous(before),
            Fill::Linear => column.fill_linear(starts, (before, after)),
            Fill::Value(number) => column.fill_value(number),
        }
    }
}

impl WindowColumn {
    /// The same over windows that have those of the column among them; the others have no value.
    pub(in crate::series) fn aligned(&self, own: &[i64], starts: &[i64]) -> Self {
        let values = Values::new(self.values.value_type());
        let mut aligned = Self { values, nulls: Vec::with_capacity(starts.len()) };
        let mut next = 0;
        for start in starts {
            let is_there = own.get(next) == Some(start);
            aligned.push(if is_there { self.get(next) } else { None });
            next += usize::from(is_there);
        }
        aligned
    }

    fn push(&mut self, value: Option<SeriesValue>) {
        self.nulls.push(value.is_none());
        let value = value.unwrap_or_else(|| none(self.values.value_type()));
        let pushed = self.values.push(value);
        assert!(pushed.is_ok(), "an aggregate has another type than its column");
    }

    fn fill_previous(&mut self, before: Option<&Spot>) {
        let mut filled = Values::new(self.values.value_type());
        let mut known = None;
        for index in 0..self.nulls.len() {
            if !self.nulls[index] {
                known = Some(index);
            }
            if let (None, Some((_, value))) = (known, before) {
                let pushed = filled.push(value.clone());
                assert!(pushed.is_ok(), "an aggregate has another type than its column");
            } else {
                let from = known.unwrap_or(index);
                filled.append(&self.values, from..from + 1);
            }
            self.nulls[index] = known.is_none() && before.is_none();
        }
        self.values = filled;
    }

    fn fill_value(&mut self, number: f64) {
        for index in 0..self.nulls.len() {
            if self.nulls[index] {
                self.set(index, number);
            }
        }
    }

    fn fill_linear(&mut self, starts: &[i64], (before, after): (Option<&Spot>, Option<&Spot>)) {
        let mut at = 0;
        while at < self.nulls.len() {
            if !self.nulls[at] {
                at += 1;
                continue;
            }
            let gap = at..at + self.nulls[at..].iter().take_while(|is_null| **is_null).count();
            let spot = |row: usize| Some((starts[row], self.get(row)?));
            let left = gap.start.checked_sub(1).map_or(before.cloned(), spot);
            let right = if gap.end < starts.len() { spot(gap.end) } else { after.cloned() };
            if let (Some(left), Some(right)) = (&left, &right) {
                gap.clone().for_each(|row| self.set_between(row, (left, right), starts[row]));
            }
            at = gap.end;
        }
    }

    /// Makes what is on the line between two windows the value of one between them, or of one that
    /// begins with them.
    fn set_between(&mut self, index: usize, (one, two): (&Spot, &Spot), at: i64) {
        let times = (one.0, two.0);
        match (&mut self.values, &one.1, &two.1) {
            // Floats do not tell great integers apart.
            (Values::I64(all), SeriesValue::I64(one), SeriesValue::I64(two)) => {
                let is_apart = times.0 < times.1;
                all[index] = if is_apart { integer_at((*one, *two), times, at) } else { *one };
                self.nulls[index] = false;
            }
            (_, one, two) => {
                if let (Some(one), Some(two)) = (one.as_f64(), two.as_f64()) {
                    let is_apart = times.0 < times.1;
                    self.set(index, if is_apart { number_at((one, two), times, at) } else { one });
                }
            }
        }
    }

    /// Makes a number the value of a window, if values are numbers.
    #[expect(clippy::cast_possible_truncation, reason = "rounded to the type of the column")]
    fn set(&mut self, index: usize, number: f64) {
        match &mut self.values {
            Values::F64(all) => all[index] = number,
            Values::F32(all) => all[index] = number as f32,
            Values::I64(all) if number.is_finite() => all[index] = number.round() as i64,
            Values::I64(_) | Values::Bool(_) | Values::String(_) => return,
        }
        self.nulls[index] = false;
    }
}

fn none(value_type: ValueType) -> SeriesValue {
    match value_type {
        ValueType::F64 => SeriesValue::F64(0.0),
        ValueType::F32 => SeriesValue::F32(0.0),
        ValueType::I64 => SeriesValue::I64(0),
        ValueType::Bool => SeriesValue::Bool(false),
        ValueType::String => SeriesValue::String(String::new()),
    }
}
