//! Times with and without a time zone: what their types are, and `AT TIME ZONE`.
//!
//! A time with a zone is an instant, kept and shown as that of UTC. Times have microseconds, as
//! those of the database do: nanoseconds reach from the year 1677 to 2262 only.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray, PrimitiveBuilder, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, TimeUnit, TimestampMicrosecondType as Micros,
};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, exec_datafusion_err, plan_err};
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::scalar_doc_sections::DOC_SECTION_DATETIME;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{DataType as SqlType, TimezoneInfo};
use jiff::civil::{DateTime, date};
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

mod counting;

/// The zone of times that have one.
pub(crate) const UTC: &str = "UTC";

/// The function that `AT TIME ZONE` is.
pub(crate) const AT_ZONE: &str = "timezone";

/// The local time from which times are counted.
const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    let what = "Returns the local time that a TIMESTAMP WITH TIME ZONE has in a time zone, and of \
                a TIMESTAMP, which is taken for a local time there, the TIMESTAMP WITH TIME ZONE, \
                as `time AT TIME ZONE zone` does.";
    Documentation::builder(DOC_SECTION_DATETIME, what, "timezone(zone, time)")
        .with_argument("zone", "The time zone, such as 'Europe/Berlin', or an offset, '+02:00'.")
        .with_argument("time", "The time.")
        .build()
});

pub(crate) fn register(context: &SessionContext) {
    let signature = Signature::any(2, Volatility::Immutable);
    context.register_udf(ScalarUDF::from(AtZone { signature }));
    counting::register(context);
}

/// Times of microseconds.
pub(crate) fn micros(has_zone: bool) -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, has_zone.then(|| UTC.into()))
}

/// Plans `TIMESTAMP`, which has microseconds unless its type says another number of digits.
#[derive(Debug)]
pub(crate) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, of: &SqlType) -> Result<Option<FieldRef>> {
        let SqlType::Timestamp(digits, zone) = of else { return Ok(None) };
        let unit = match digits {
            Some(0) => TimeUnit::Second,
            Some(3) => TimeUnit::Millisecond,
            None | Some(6) => TimeUnit::Microsecond,
            Some(9) => TimeUnit::Nanosecond,
            Some(_) => return Ok(None),
        };
        let has_zone = matches!(zone, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone);
        let of = DataType::Timestamp(unit, has_zone.then(|| UTC.into()));
        Ok(Some(Arc::new(Field::new("", of, true))))
    }
}

/// `timezone(zone, time)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AtZone {
    signature: Signature,
}

impl ScalarUDFImpl for AtZone {
    fn name(&self) -> &'static str {
        AT_ZONE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let [zone, time] = take_function_args(self.name(), kinds)?;
        if !(zone.is_string() || zone.is_null()) {
            return plan_err!("a time zone is a text such as 'Europe/Berlin', not {zone}");
        }
        if let Some(time) = taken_as(time) {
            return Ok(micros(!has_zone(&time)));
        }
        plan_err!(
            "AT TIME ZONE takes a TIMESTAMP or a TIMESTAMP WITH TIME ZONE, not {time}: CAST it to \
             the one that it is"
        )
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let moved = |args: &[ArrayRef]| {
            let [zones, times] = take_function_args(self.name(), args)?;
            let kind = taken_as(times.data_type()).unwrap_or_else(|| micros(true));
            let (zones, times) = (cast(zones, &DataType::Utf8)?, cast(times, &kind)?);
            let is_local = !has_zone(&kind);
            let moved = moved(zones.as_string(), times.as_primitive(), is_local)?;
            Ok(Arc::new(moved.with_timezone_opt(is_local.then_some(UTC))) as ArrayRef)
        };
        make_scalar_function(moved, Vec::new())(&args.args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&DOCUMENTATION)
    }
}

/// The times that those of a type are taken as; none if it has no times.
fn taken_as(time: &DataType) -> Option<DataType> {
    match time {
        DataType::Timestamp(_, zone) => Some(micros(zone.is_some())),
        DataType::Date32 | DataType::Date64 => Some(micros(false)),
        DataType::Null => Some(micros(true)),
        _ => None,
    }
}

fn has_zone(time: &DataType) -> bool {
    matches!(time, DataType::Timestamp(_, Some(_)))
}

/// Local times as instants, or instants as local times, each in a zone of its own.
fn moved(
    zones: &StringArray,
    times: &PrimitiveArray<Micros>,
    is_local: bool,
) -> Result<PrimitiveArray<Micros>> {
    let mut made = PrimitiveBuilder::<Micros>::with_capacity(times.len());
    let mut last: Option<(&str, TimeZone)> = None;
    for (name, time) in zones.iter().zip(times) {
        let (Some(name), Some(time)) = (name, time) else {
            made.append_null();
            continue;
        };
        let zone = match last.take() {
            Some((before, zone)) if before == name => zone,
            _ => zone_of(name)?,
        };
        let at = if is_local { instant_of(time, &zone) } else { local_of(time, &zone) };
        last = Some((name, zone));
        let beyond = || exec_datafusion_err!("a time is beyond the years from -9999 to 9999");
        made.append_value(at.ok_or_else(beyond)?);
    }
    Ok(made.finish())
}

fn zone_of(name: &str) -> Result<TimeZone> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    PARSER.parse_time_zone(name.trim()).map_err(|_| {
        exec_datafusion_err!(
            "there is no time zone '{name}': use one such as 'Europe/Berlin', 'UTC' or '+02:00'"
        )
    })
}

/// The local time of an instant.
fn local_of(micros: i64, zone: &TimeZone) -> Option<i64> {
    let time = Timestamp::from_microsecond(micros).ok()?;
    let since = zone.to_datetime(time).duration_since(EPOCH);
    i64::try_from(since.as_micros()).ok()
}

/// The instant of a local time. One that the clock passes over is as much behind the change as it
/// is past it; of two that it shows the first one is taken (RFC 5545, 3.3.5).
fn instant_of(micros: i64, zone: &TimeZone) -> Option<i64> {
    let local = EPOCH.checked_add(SignedDuration::from_micros(micros)).ok()?;
    let time = zone.to_timestamp(local).ok()?;
    i64::try_from(time.as_nanosecond().div_euclid(1_000)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros_of(text: &str) -> i64 {
        let local: DateTime = text.parse().unwrap();
        i64::try_from(local.duration_since(EPOCH).as_micros()).unwrap()
    }

    #[test]
    fn local_times_and_instants_are_those_of_the_zone() {
        for (zone, local, utc) in [
            ("Europe/Berlin", "2024-07-01T12:00:00.000001", "2024-07-01T10:00:00.000001"),
            ("europe/berlin", "2024-01-01T12:00:00", "2024-01-01T11:00:00"),
            ("+05:30", "1969-12-31T23:59:59.5", "1969-12-31T18:29:59.5"),
            ("UTC", "9999-12-30T00:00:00", "9999-12-30T00:00:00"),
        ] {
            let of = zone_of(zone).unwrap();
            assert_eq!(local_of(micros_of(utc), &of), Some(micros_of(local)), "{zone}");
            assert_eq!(instant_of(micros_of(local), &of), Some(micros_of(utc)), "{zone}");
        }
        let berlin = zone_of("Europe/Berlin").unwrap();
        let instant = |local: &str| instant_of(micros_of(local), &berlin);
        assert_eq!(instant("2024-03-31T02:30:00"), Some(micros_of("2024-03-31T01:30:00")));
        assert_eq!(instant("2024-10-27T02:30:00"), Some(micros_of("2024-10-27T00:30:00")));
        assert_eq!((instant_of(i64::MAX, &berlin), local_of(i64::MIN, &berlin)), (None, None));
        assert!(zone_of("Nowhere/At").is_err());
    }
}
