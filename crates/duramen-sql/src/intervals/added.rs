//! Sums and averages of intervals, part by part.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType,
};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::Accumulator;

use super::{Factor, INTERVAL, SPAN};

/// What intervals are added up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntervalsTo {
    Sum,
    Average,
}

/// Adds intervals up, and counts them.
#[derive(Debug)]
pub(crate) struct AddedIntervals {
    to: IntervalsTo,
    count: i64,
    months: i64,
    days: i64,
    nanos: i128,
}

impl AddedIntervals {
    pub(crate) fn new(to: IntervalsTo) -> Self {
        Self { to, count: 0, months: 0, days: 0, nanos: 0 }
    }

    /// What is kept between parts of a query.
    pub(crate) fn state_fields(name: &str) -> Vec<FieldRef> {
        let kinds = [
            ("count", DataType::Int64),
            ("months", DataType::Int64),
            ("days", DataType::Int64),
            ("nanoseconds", SPAN),
        ];
        let field = |(part, kind)| Arc::new(Field::new(format!("{name}[{part}]"), kind, false));
        kinds.into_iter().map(field).collect()
    }

    /// None if there is no room for it.
    fn sum(&self) -> Option<IntervalMonthDayNano> {
        let months = self.months.try_into().ok()?;
        let days = self.days.try_into().ok()?;
        Some(IntervalMonthDayNano::new(months, days, self.nanos.try_into().ok()?))
    }

    fn add(&mut self, (count, months, days): (i64, i64, i64), nanos: i128) {
        self.count += count;
        self.months += months;
        self.days += days;
        self.nanos += nanos;
    }
}

impl Accumulator for AddedIntervals {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [intervals] = values else { return internal_err!("intervals are of one column") };
        let intervals = cast(intervals, &INTERVAL)?;
        for of in intervals.as_primitive::<IntervalMonthDayNanoType>().iter().flatten() {
            self.add((1, of.months.into(), of.days.into()), of.nanoseconds.into());
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "floats have the digits of centuries")]
    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count == 0 {
            return Ok(ScalarValue::IntervalMonthDayNano(None));
        }
        let found = match self.to {
            IntervalsTo::Sum => self.sum(),
            IntervalsTo::Average => {
                let sum = [self.months as f64, self.days as f64, self.nanos as f64];
                Factor::Over.of_parts(sum, self.count as f64)
            }
        };
        if found.is_none() {
            return exec_err!("an interval is longer than there is room for");
        }
        Ok(ScalarValue::IntervalMonthDayNano(found))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let counts = [self.count, self.months, self.days].map(ScalarValue::from);
        let nanos = ScalarValue::try_new_decimal128(self.nanos, 38, 0)?;
        Ok(counts.into_iter().chain([nanos]).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [counts, months, days, nanos] = states else {
            return internal_err!("what is added up of intervals has four states");
        };
        let [counts, months, days] = [counts, months, days].map(AsArray::as_primitive::<Int64Type>);
        let nanos = nanos.as_primitive::<Decimal128Type>();
        for row in 0..counts.len() {
            let sums = (counts.value(row), months.value(row), days.value(row));
            self.add(sums, nanos.value(row));
        }
        Ok(())
    }
}
