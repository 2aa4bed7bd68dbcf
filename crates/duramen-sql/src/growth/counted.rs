//! How many values there are from one to another.

use std::iter;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;

use super::{integers, sum};

const DAY_NS: i64 = 86_400_000_000_000;
const MONTH_DAYS_MIN: i128 = 28;
const MONTH_DAYS_MAX: i128 = 31;

/// How far one value is from the next one.
#[derive(Clone, Copy)]
struct Step {
    backward: bool,
    /// At least, in the unit of the values; with 0 there may be no end.
    distance: u128,
}

/// The bytes of the values of `range` and `generate_series`, or a few more.
pub(super) fn bytes(args: &[ColumnarValue], rows: usize) -> Result<u64> {
    let kind = args.first().map_or(DataType::Null, ColumnarValue::data_type);
    let is_date = matches!(kind, DataType::Date32 | DataType::Date64);
    if args.iter().any(|argument| argument.data_type().is_null()) {
        return Ok(0);
    }
    let zeros = || vec![Some(0); rows];
    let (begin, end, step) = match args {
        [] => return Ok(0),
        [end] => (zeros(), bounds(end, rows)?, None),
        [begin, end] => (bounds(begin, rows)?, bounds(end, rows)?, None),
        [begin, end, step, ..] => (bounds(begin, rows)?, bounds(end, rows)?, Some(step)),
    };
    let steps = match step {
        Some(step) => steps(step, is_date, rows)?,
        None => vec![by(1); rows],
    };
    let bytes = if is_date { 4 } else { 8 };
    let values = iter::zip(begin, end).zip(steps).map(|((begin, end), step)| {
        let count = begin.zip(end).zip(step).map(|((begin, end), step)| count(begin, end, step));
        (bytes, count.unwrap_or(0))
    });
    Ok(sum(values))
}

/// Where values begin or end: as integers, dates in days, times in nanoseconds.
fn bounds(argument: &ColumnarValue, rows: usize) -> Result<Vec<Option<i64>>> {
    let array = argument.to_array(rows)?;
    let unit = match array.data_type() {
        DataType::Date64 => DataType::Date32,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()),
        kind => kind.clone(),
    };
    integers(&cast(&array, &unit)?)
}

/// The steps of rows; for NULL and for 0, which is an error, there are no values.
fn steps(argument: &ColumnarValue, is_date: bool, rows: usize) -> Result<Vec<Option<Step>>> {
    let array = argument.to_array(rows)?;
    if !matches!(array.data_type(), DataType::Interval(_)) {
        return Ok(integers(&array)?.into_iter().map(|step| by(step?)).collect());
    }
    let array = cast(&array, &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let intervals = array.as_primitive::<IntervalMonthDayNanoType>().iter();
    Ok(intervals.map(|step| interval(IntervalMonthDayNanoType::to_parts(step?), is_date)).collect())
}

fn by(step: i64) -> Option<Step> {
    let distance = u128::from(step.unsigned_abs());
    (step != 0).then_some(Step { backward: step < 0, distance })
}

fn interval((months, days, ns): (i32, i32, i64), is_date: bool) -> Option<Step> {
    // Of dates the function takes the direction, and that there is one, from months and days alone.
    if months == 0 && days == 0 && (ns == 0 || is_date) {
        return None;
    }
    let (day, rest) = if is_date { (1, ns / DAY_NS) } else { (i128::from(DAY_NS), ns) };
    let with = |month_days| (i128::from(months) * month_days + i128::from(days)) * day;
    let (one, other) = (with(MONTH_DAYS_MIN), with(MONTH_DAYS_MAX));
    let least = one.min(other) + i128::from(rest);
    let most = one.max(other) + i128::from(rest);
    let backward = if is_date { months < 0 || days < 0 } else { most < 0 };
    let distance = if backward { -most } else { least };
    Some(Step { backward, distance: distance.max(0).unsigned_abs() })
}

/// How many values there are at most.
fn count(begin: i64, end: i64, step: Step) -> u64 {
    let Some(steps) = u128::from(begin.abs_diff(end)).checked_div(step.distance) else {
        return u64::MAX;
    };
    let is_ahead = if step.backward { end <= begin } else { begin <= end };
    if is_ahead { u64::try_from(steps + 1).unwrap_or(u64::MAX) } else { 0 }
}
