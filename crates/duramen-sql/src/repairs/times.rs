//! Parts of times.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int32Array};
use datafusion::arrow::compute::kernels::cast_utils::IntervalUnit;
use datafusion::arrow::compute::{DatePart, cast, date_part};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Int32Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit as Unit, TimeUnit,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs};

use super::{given, spans};

/// A part of a time that the function has otherwise.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// The seconds of a minute, in such parts of them.
    Seconds { of_each: i64 },
    /// The seconds since the first day of 1970.
    Epoch,
    /// How many spans of so many years it is in.
    Years(i32),
    /// How far its zone is from UTC, which it is.
    Zone,
}

impl Part {
    fn of(word: &str) -> Option<Self> {
        let word = word.trim_matches(['\'', '"']).to_ascii_lowercase();
        if word == "epoch" {
            return Some(Self::Epoch);
        }
        if ["timezone", "timezone_hour", "timezone_minute"].contains(&word.as_str()) {
            return Some(Self::Zone);
        }
        if let Some(years) = spans::years(&word) {
            return Some(Self::Years(years));
        }
        match word.parse().ok()? {
            IntervalUnit::Second => Some(Self::Seconds { of_each: 1 }),
            IntervalUnit::Millisecond => Some(Self::Seconds { of_each: 1_000 }),
            IntervalUnit::Decade => Some(Self::Years(10)),
            IntervalUnit::Century => Some(Self::Years(100)),
            _ => None,
        }
    }
}

/// The text of an argument that is the same for all rows.
pub(super) fn word(argument: &ScalarValue) -> Option<&str> {
    argument.try_as_str().flatten()
}

/// What a part is; none for those that are as the function has them.
pub(super) fn part_field(name: &str, args: &ReturnFieldArgs<'_>) -> Option<FieldRef> {
    let [Some(part), _] = args.scalar_arguments else { return None };
    let times = args.arg_fields.get(1)?;
    let kind = match Part::of(word(part)?)? {
        Part::Zone if has_zone(times.data_type()) => DataType::Int32,
        Part::Zone => return None,
        Part::Seconds { .. } | Part::Epoch => DataType::Float64,
        Part::Years(_) => DataType::Int32,
    };
    Some(Arc::new(Field::new(name, kind, times.is_nullable())))
}

fn has_zone(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(_, Some(_)))
}

/// A part of times: seconds with their fractions, and spans of years.
pub(super) fn part(
    args: ScalarFunctionArgs,
    inner: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let [ColumnarValue::Scalar(named), times] = args.args.as_slice() else { return inner(args) };
    let Some(part) = word(named).and_then(Part::of) else { return inner(args) };
    let is_one = matches!(times, ColumnarValue::Scalar(_));
    let array = times.to_array(if is_one { 1 } else { args.number_rows })?;
    let made: ArrayRef = match part {
        Part::Epoch => match epoch(&array)? {
            Some(seconds) => Arc::new(seconds),
            None => return inner(args),
        },
        Part::Zone if !has_zone(array.data_type()) => return inner(args),
        Part::Zone => {
            Arc::new(Int32Array::new(vec![0; array.len()].into(), array.nulls().cloned()))
        }
        Part::Seconds { of_each } => Arc::new(seconds(&array, of_each)?),
        Part::Years(span) => {
            let is_interval = matches!(array.data_type(), DataType::Interval(_));
            let years = date_part(&array, DatePart::Year)?;
            let of = |year: i32| if is_interval { year / span } else { ordinal(year, span) };
            Arc::new(years.as_primitive::<Int32Type>().unary::<_, Int32Type>(of))
        }
    };
    given(&made, is_one)
}

/// The seconds of times and of what is between two; none for what has no more digits than floats.
fn epoch(times: &ArrayRef) -> Result<Option<Float64Array>> {
    let (DataType::Timestamp(unit, None) | DataType::Duration(unit)) = times.data_type() else {
        return Ok(None);
    };
    let in_second = in_second(*unit);
    #[expect(clippy::cast_precision_loss, reason = "seconds are fewer, and it is a power of ten")]
    let of = |time: i64| {
        let (seconds, rest) = (time.div_euclid(in_second), time.rem_euclid(in_second));
        seconds as f64 + rest as f64 / in_second as f64
    };
    let times = cast(times, &DataType::Int64)?;
    Ok(Some(times.as_primitive::<Int64Type>().unary(of)))
}

/// Parts of a second.
fn in_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// The seconds of the minute of times, in such parts of them.
fn seconds(times: &ArrayRef, of_each: i64) -> Result<Float64Array> {
    let nanos = DataType::Time64(TimeUnit::Nanosecond);
    let (times, in_second) = match times.data_type() {
        DataType::Date32 | DataType::Date64 => {
            let zeros = times.nulls().cloned();
            return Ok(Float64Array::new(vec![0.0; times.len()].into(), zeros));
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            (cast(&cast(times, &nanos)?, &DataType::Int64)?, 1_000_000_000)
        }
        DataType::Timestamp(unit, _) => (cast(times, &DataType::Int64)?, in_second(*unit)),
        _ => {
            let intervals = cast(times, &DataType::Interval(Unit::MonthDayNano))?;
            let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
            // Those of an interval that is negative are negative.
            let of = |of: IntervalMonthDayNano| of.nanoseconds % 60_000_000_000;
            return Ok(intervals.unary(|interval| float(of(interval), of_each) / 1e9));
        }
    };
    #[expect(clippy::cast_precision_loss, reason = "it is a power of ten")]
    let divisor = in_second as f64;
    let of = |time: i64| float(time.rem_euclid(60 * in_second), of_each) / divisor;
    Ok(times.as_primitive::<Int64Type>().unary(of))
}

#[expect(clippy::cast_precision_loss, reason = "a minute has few enough")]
fn float(parts: i64, of_each: i64) -> f64 {
    (parts * of_each) as f64
}

/// Which span of so many years a year is in: the first one begins with the year 1, but decades are
/// what years begin with.
fn ordinal(year: i32, span: i32) -> i32 {
    if span == 10 {
        return year.div_euclid(span);
    }
    let whole = (year - 1).div_euclid(span);
    // There is no century 0.
    if year > 0 { whole + 1 } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_are_in_the_spans_of_the_standard() {
        for (year, decade, century, millennium) in [
            (2024, 202, 21, 3),
            (2000, 200, 20, 2),
            (1, 0, 1, 1),
            (0, 0, -1, -1),
            (-99, -10, -1, -1),
            (-100, -10, -2, -1),
        ] {
            let of = |span| ordinal(year, span);
            assert_eq!((of(10), of(100), of(1_000)), (decade, century, millennium), "{year}");
        }
    }
}
