//! Where the span begins that a time is in, `date_trunc(span, time)`, in all years.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{
    ArrowTimestampType, DataType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use jiff::SignedDuration;
use jiff::civil::{Date, date};

use super::times::word;
use super::{given, is_one};
use crate::zones;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;

/// The day from which times are counted.
const EPOCH: Date = date(1970, 1, 1);

/// Words for spans, of which all but the longest have a plural with an s.
const SPANS: [(&str, Span); 16] = [
    ("microsecond", Span::Micros(1)),
    ("millisecond", Span::Micros(1_000)),
    ("second", Span::Micros(SECOND)),
    ("minute", Span::Micros(60 * SECOND)),
    ("hour", Span::Micros(HOUR)),
    ("day", Span::Micros(24 * HOUR)),
    ("week", Span::Week),
    ("month", Span::Months(1)),
    ("quarter", Span::Months(3)),
    ("year", Span::Years(1)),
    ("decade", Span::Years(10)),
    ("century", Span::Years(100)),
    ("centuries", Span::Years(100)),
    ("millennium", Span::Years(1_000)),
    ("millenniums", Span::Years(1_000)),
    ("millennia", Span::Years(1_000)),
];

/// How long a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Span {
    /// So many microseconds, of which a day has a whole number.
    Micros(i64),
    /// From Monday on.
    Week,
    Months(i8),
    Years(i16),
}

impl Span {
    fn of(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        let is = |name: &str| word == name || word.strip_suffix('s') == Some(name);
        SPANS.iter().find(|(name, _)| is(name)).map(|(_, span)| *span)
    }

    /// The day on which the span of days begins that a day is in; none before the year -9999.
    fn first(self, day: Date) -> Option<Date> {
        match self {
            Self::Micros(_) => Some(day),
            Self::Week => {
                let days = i64::from(day.weekday().to_monday_zero_offset());
                day.checked_sub(SignedDuration::from_hours(24 * days)).ok()
            }
            Self::Months(months) => {
                let month = day.month() - (day.month() - 1) % months;
                Date::new(day.year(), month, 1).ok()
            }
            Self::Years(years) => Date::new(first(day.year(), years), 1, 1).ok(),
        }
    }
}

/// Of how many years more than one the span is that a word stands for.
pub(super) fn years(word: &str) -> Option<i32> {
    match Span::of(word)? {
        Span::Years(years) if years > 1 => Some(years.into()),
        _ => None,
    }
}

/// The first year of the span of years that a year is in: the first one begins with the year 1, but
/// decades are what years begin with.
fn first(year: i16, span: i16) -> i16 {
    let from = i16::from(span > 10);
    year - (year - from).rem_euclid(span)
}

/// What the function takes: texts and dates are times of microseconds.
pub(super) fn kinds(name: &str, kinds: &[DataType]) -> Result<Vec<DataType>> {
    let [span, time] = take_function_args(name, kinds)?;
    let time = match time {
        DataType::Date32 | DataType::Date64 | DataType::Null => zones::micros(false),
        text if text.is_string() => zones::micros(false),
        other => other.clone(),
    };
    Ok(vec![if span.is_null() { DataType::Utf8 } else { span.clone() }, time])
}

/// Where the span begins that times are in, of instants in UTC; `inner` is asked for others.
pub(super) fn begin(
    args: ScalarFunctionArgs,
    inner: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let [ColumnarValue::Scalar(span), times] = args.args.as_slice() else { return inner(args) };
    let Some(span) = word(span).and_then(Span::of) else { return inner(args) };
    let DataType::Timestamp(unit, zone) = times.data_type() else { return inner(args) };
    if !zone.as_deref().is_none_or(|zone| matches!(zone, zones::UTC | "+00:00")) {
        return inner(args);
    }
    let is_one = is_one(&args.args);
    let times = times.to_array(if is_one { 1 } else { args.number_rows })?;
    match unit {
        TimeUnit::Second => given(&begun::<TimestampSecondType>(&times, span, 1)?, is_one),
        TimeUnit::Millisecond => {
            given(&begun::<TimestampMillisecondType>(&times, span, 1_000)?, is_one)
        }
        TimeUnit::Microsecond => {
            given(&begun::<TimestampMicrosecondType>(&times, span, SECOND)?, is_one)
        }
        TimeUnit::Nanosecond => {
            given(&begun::<TimestampNanosecondType>(&times, span, 1_000 * SECOND)?, is_one)
        }
    }
}

/// Of times of which so many are a second.
fn begun<T: ArrowTimestampType>(
    times: &ArrayRef,
    span: Span,
    second: i64,
) -> Result<PrimitiveArray<T>> {
    let times = times.as_primitive::<T>();
    let zone: Option<Arc<str>> = times.timezone().map(Into::into);
    let made: PrimitiveArray<T> = if let Span::Micros(micros) = span {
        // What is shorter than a unit is where it is.
        let width = (i128::from(micros) * i128::from(second) / i128::from(SECOND)).max(1);
        let width = i64::try_from(width).unwrap_or(i64::MAX);
        times.unary_opt(|time| time.checked_sub(time.rem_euclid(width)))
    } else {
        let day_width = 86_400 * second;
        let begin = |time: i64| {
            let days = i32::try_from(time.div_euclid(day_width)).ok()?;
            let day = EPOCH.checked_add(SignedDuration::from_hours(24 * i64::from(days))).ok()?;
            let days = span.first(day)?.since(EPOCH).ok()?.get_days();
            i64::from(days).checked_mul(day_width)
        };
        times.unary_opt(begin)
    };
    if made.null_count() > times.null_count() {
        return Err(exec_datafusion_err!("a time is beyond the years that can be truncated"));
    }
    Ok(made.with_timezone_opt(zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_in_the_spans_of_the_standard() {
        for (day, week, month, quarter, year) in [
            ("2024-05-15", "2024-05-13", "2024-05-01", "2024-04-01", "2024-01-01"),
            ("2024-12-31", "2024-12-30", "2024-12-01", "2024-10-01", "2024-01-01"),
            ("0001-01-01", "0001-01-01", "0001-01-01", "0001-01-01", "0001-01-01"),
            ("9999-12-31", "9999-12-27", "9999-12-01", "9999-10-01", "9999-01-01"),
        ] {
            let of = |word: &str| Span::of(word).unwrap().first(day.parse().unwrap()).unwrap();
            let found = ["week", "months", "Quarter", "years"].map(|word| of(word).to_string());
            assert_eq!(found, [week, month, quarter, year], "{day}");
        }
        assert_eq!((Span::of("fortnight"), Span::of("weekss")), (None, None));
    }

    #[test]
    fn years_are_in_the_spans_of_the_standard() {
        for (year, decade, century, millennium) in [
            (2024, 2020, 2001, 2001),
            (2000, 2000, 1901, 1001),
            (1, 0, 1, 1),
            (0, 0, -99, -999),
            (-99, -100, -99, -999),
            (-100, -100, -199, -999),
        ] {
            let found = [10, 100, 1_000].map(|span| first(year, span));
            assert_eq!(found, [decade, century, millennium], "{year}");
        }
    }
}
