//! Where the span begins that a time is in, in all years: `date_trunc(span, time)`, and
//! `date_bin(stride, time, origin)`.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use jiff::civil::{Date, DateTime, date};
use jiff::{SignedDuration, ToSpan};

use super::times::word;
use crate::zones;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;

const DAY_NS: i64 = 24 * HOUR * 1_000;

/// The day from which times are counted, and its beginning.
const EPOCH: Date = date(1970, 1, 1);
const EPOCH_TIME: DateTime = EPOCH.at(0, 0, 0, 0);

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
    Ok(vec![if span.is_null() { DataType::Utf8 } else { span.clone() }, taken_as(time)])
}

/// What values of a type are taken as where times are wanted.
fn taken_as(time: &DataType) -> DataType {
    match time {
        DataType::Date32 | DataType::Date64 | DataType::Null => zones::micros(false),
        text if text.is_string() => zones::micros(false),
        other => other.clone(),
    }
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
    let (unit, kind) = (nanos(unit), times.data_type());
    let begun = |args: &[ArrayRef]| {
        let [_, times] = take_function_args("date_trunc", args)?;
        Ok(cast(&begun(times, span, unit)?, &kind)?)
    };
    make_scalar_function(begun, Vec::new())(&args.args)
}

/// Of times in units of so many nanoseconds.
fn begun(times: &ArrayRef, span: Span, unit_ns: i64) -> Result<Int64Array> {
    let times = cast(times, &DataType::Int64)?;
    let times = times.as_primitive::<Int64Type>();
    let day_width = DAY_NS / unit_ns;
    let begin = |time: i64| {
        if let Span::Micros(micros) = span {
            // What is shorter than a unit is where it is.
            return time.checked_sub(time.rem_euclid((micros * 1_000 / unit_ns).max(1)));
        }
        let days = i32::try_from(time.div_euclid(day_width)).ok()?;
        let day = EPOCH.checked_add(SignedDuration::from_hours(24 * i64::from(days))).ok()?;
        let days = span.first(day)?.since(EPOCH).ok()?.get_days();
        i64::from(days).checked_mul(day_width)
    };
    let made: Int64Array = times.unary_opt(begin);
    if made.null_count() > times.null_count() {
        return Err(exec_datafusion_err!("a time is beyond the years that can be truncated"));
    }
    Ok(made)
}

/// How far a bin is from the next one.
#[derive(Debug, Clone, Copy)]
enum Stride {
    Months(i32),
    Nanos(i128),
}

impl Stride {
    fn of(interval: IntervalMonthDayNano) -> Result<Self> {
        let days = i128::from(interval.days) * i128::from(DAY_NS);
        let nanos = days + i128::from(interval.nanoseconds);
        match (interval.months, nanos) {
            (months, 0) if months > 0 => Ok(Self::Months(months)),
            (0, nanos) if nanos > 0 => Ok(Self::Nanos(nanos)),
            (0, _) => exec_err!("date_bin(..) takes an interval above zero"),
            _ => exec_err!("date_bin(..) takes an interval of months, or of days and less"),
        }
    }

    /// Where the bin of a time begins, both in nanoseconds; none beyond the calendar.
    fn begin(self, time: i128, origin: i128) -> Option<i128> {
        let stride = match self {
            Self::Nanos(stride) => return Some(time - (time - origin).rem_euclid(stride)),
            Self::Months(months) => months,
        };
        let (time, origin) = (local(time)?, local(origin)?);
        let months = |time: DateTime| i32::from(time.year()) * 12 + i32::from(time.month());
        let after = months(time) - months(origin);
        let back = after.rem_euclid(stride);
        let bin = origin.checked_add((after - back).months()).ok()?;
        // The day or hour of the origin may come behind that of the time in the month.
        let bin = if bin > time {
            origin.checked_add((after - back - stride).months()).ok()?
        } else {
            bin
        };
        Some(bin.duration_since(EPOCH_TIME).as_nanos())
    }
}

fn local(nanos: i128) -> Option<DateTime> {
    let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).ok()?;
    let nanos = i32::try_from(nanos.rem_euclid(1_000_000_000)).ok()?;
    EPOCH_TIME.checked_add(SignedDuration::new(seconds, nanos)).ok()
}

/// What `date_bin` takes: texts and dates are times of microseconds, and so is the origin what the
/// time is.
pub(super) fn kinds_of_bins(name: &str, kinds: &[DataType]) -> Result<Vec<DataType>> {
    let [_, time, origin @ ..] = kinds else {
        return plan_err!(
            "{name}(..) takes an interval, a time, and where bins begin if it says so"
        );
    };
    let time = taken_as(time);
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    Ok([interval, time.clone()].into_iter().chain(origin.iter().map(|_| time.clone())).collect())
}

/// Where the bins begin that times are in; `inner` is asked for hours of a day.
pub(super) fn bin(
    args: ScalarFunctionArgs,
    inner: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let [_, times, ..] = args.args.as_slice() else { return inner(args) };
    let DataType::Timestamp(unit, _) = times.data_type() else { return inner(args) };
    let (unit, kind) = (i128::from(nanos(unit)), times.data_type());
    let made =
        |args: &[ArrayRef]| Ok(cast(&in_bins(&args[0], &args[1], args.get(2), unit)?, &kind)?);
    make_scalar_function(made, Vec::new())(&args.args)
}

/// Of times in units of so many nanoseconds, in bins from the origins or 1970 on.
fn in_bins(
    strides: &ArrayRef,
    times: &ArrayRef,
    origins: Option<&ArrayRef>,
    unit_ns: i128,
) -> Result<Int64Array> {
    let strides = strides.as_primitive::<IntervalMonthDayNanoType>();
    let times = cast(times, &DataType::Int64)?;
    let origins = origins.map(|origins| cast(origins, &DataType::Int64)).transpose()?;
    let origins = origins.as_ref().map(AsArray::as_primitive::<Int64Type>);
    let rows = times.as_primitive::<Int64Type>().iter().zip(strides).enumerate();
    let bins = rows.map(|(row, (time, stride))| {
        let origin = match origins {
            Some(origins) => origins.is_valid(row).then(|| origins.value(row)),
            None => Some(0),
        };
        let (Some(time), Some(origin), Some(stride)) = (time, origin, stride) else {
            return Ok(None);
        };
        let (time, origin) = (i128::from(time) * unit_ns, i128::from(origin) * unit_ns);
        let bin = Stride::of(stride)?.begin(time, origin);
        let bin = bin.and_then(|bin| i64::try_from(bin.div_euclid(unit_ns)).ok());
        bin.map(Some).ok_or_else(|| exec_datafusion_err!("a time is beyond the years of bins"))
    });
    bins.collect()
}

/// How many nanoseconds a unit has.
fn nanos(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
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

    #[test]
    fn bins_begin_at_or_before_their_times() {
        let nanos =
            |text: &str| text.parse::<DateTime>().unwrap().duration_since(EPOCH_TIME).as_nanos();
        for (months, time, origin, bin) in [
            (1, "2024-05-15T10:00", "1970-01-01T00:00", "2024-05-01T00:00"),
            (1, "2024-05-15T10:00", "2001-01-20T00:00", "2024-04-20T00:00"),
            (5, "1999-05-15T10:00", "2001-01-01T12:00", "1999-05-01T12:00"),
            (5, "1999-05-01T10:00", "2001-01-01T12:00", "1998-12-01T12:00"),
            (12, "9999-12-31T23:00", "2000-02-29T00:00", "9999-02-28T00:00"),
        ] {
            let begun = Stride::Months(months).begin(nanos(time), nanos(origin));
            assert_eq!(begun, Some(nanos(bin)), "{time}");
        }
        let hour = Stride::Nanos(i128::from(HOUR) * 1_000);
        for (time, bin) in
            [("1066-10-14T09:59", "1066-10-14T09:30"), ("9999-12-31T00:29", "9999-12-30T23:30")]
        {
            let begun = hour.begin(nanos(time), nanos("2000-01-01T00:30"));
            assert_eq!(begun, Some(nanos(bin)), "{time}");
        }
        let interval =
            |months, days, nanos| Stride::of(IntervalMonthDayNano::new(months, days, nanos));
        for (months, days, nanos) in [(0, 0, 0), (0, -1, 0), (-1, 0, 0), (1, 1, 0)] {
            assert!(interval(months, days, nanos).is_err(), "{months} {days} {nanos}");
        }
    }
}
