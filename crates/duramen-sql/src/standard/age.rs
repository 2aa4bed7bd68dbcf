//! `age(later, earlier)`: the years, months, days and time from one time to another.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray};
use datafusion::arrow::compute::{DatePart, date_part};
use datafusion::arrow::datatypes::{
    DataType, Int32Type, IntervalMonthDayNano, IntervalUnit, TimestampMicrosecondType,
};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, plan_err};
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::scalar_doc_sections::DOC_SECTION_DATETIME;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::prelude::SessionContext;

use crate::zones;

const MICROS_OF_DAY: i64 = 86_400_000_000;

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    let what = "Returns the years, months, days and time from one time to another, as an interval. \
                The days of a month that is not over are counted in the month of the earlier one.";
    Documentation::builder(DOC_SECTION_DATETIME, what, "age(later, earlier)")
        .with_argument("later", "The date or time that it is told as of.")
        .with_argument("earlier", "The date or time since when; if it is later, all is negative.")
        .build()
});

pub(super) fn register(context: &SessionContext) {
    let signature = Signature::user_defined(Volatility::Immutable);
    context.register_udf(ScalarUDF::from(Age { signature }));
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Age {
    signature: Signature,
}

impl ScalarUDFImpl for Age {
    fn name(&self) -> &'static str {
        "age"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        let kinds: &[DataType; 2] = take_two(kinds)?;
        let is_time = |kind: &DataType| {
            kind.is_string()
                || kind.is_null()
                || matches!(kind, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
        };
        match kinds.iter().find(|kind| !is_time(kind)) {
            Some(other) => plan_err!("age(..) takes two dates or times, and not {other}"),
            None => Ok(vec![zones::micros(false); 2]),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        make_scalar_function(ages, Vec::new())(&args.args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&DOCUMENTATION)
    }
}

fn ages(times: &[ArrayRef]) -> Result<ArrayRef> {
    let [later, earlier] = take_function_args("age", times)?;
    let rows = later.len();
    let (later, earlier) = (Times::of(later)?, Times::of(earlier)?);
    let ages = (0..rows).map(|row| Some(age(later.get(row)?, earlier.get(row)?)));
    Ok(Arc::new(ages.collect::<IntervalMonthDayNanoArray>()))
}

fn take_two(kinds: &[DataType]) -> Result<&[DataType; 2]> {
    if let Ok(two) = kinds.try_into() {
        Ok(two)
    } else {
        plan_err!("age takes two dates or times, and not {}", kinds.len())
    }
}

/// Times and the parts of their dates.
struct Times {
    all: ArrayRef,
    years: ArrayRef,
    months: ArrayRef,
    days: ArrayRef,
}

/// A time in its parts, of which the first one that differs tells which is later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Time {
    year: i32,
    month: i32,
    day: i32,
    micros: i64,
}

impl Times {
    fn of(times: &ArrayRef) -> Result<Self> {
        Ok(Self {
            all: Arc::clone(times),
            years: date_part(times, DatePart::Year)?,
            months: date_part(times, DatePart::Month)?,
            days: date_part(times, DatePart::Day)?,
        })
    }

    fn get(&self, row: usize) -> Option<Time> {
        let part = |of: &ArrayRef| of.as_primitive::<Int32Type>().value(row);
        self.all.is_valid(row).then(|| Time {
            year: part(&self.years),
            month: part(&self.months),
            day: part(&self.days),
            micros: self
                .all
                .as_primitive::<TimestampMicrosecondType>()
                .value(row)
                .rem_euclid(MICROS_OF_DAY),
        })
    }
}

fn age(to: Time, from: Time) -> IntervalMonthDayNano {
    let (later, earlier) = (to.max(from), to.min(from));
    let mut months = (later.year - earlier.year) * 12 + later.month - earlier.month;
    let mut days = later.day - earlier.day;
    let mut micros = later.micros - earlier.micros;
    if micros < 0 {
        micros += MICROS_OF_DAY;
        days -= 1;
    }
    if days < 0 {
        days += days_of(earlier);
        months -= 1;
    }
    let sign = if to < from { -1 } else { 1 };
    IntervalMonthDayNano::new(sign * months, sign * days, i64::from(sign) * micros * 1_000)
}

/// How many days the month of a time has.
fn days_of(time: Time) -> i32 {
    let is_leap = time.year % 4 == 0 && (time.year % 100 != 0 || time.year % 400 == 0);
    match time.month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_months_of_the_earlier_time() {
        let time = |year, month, day, micros| Time { year, month, day, micros };
        for (to, from, expected) in [
            (time(2001, 4, 10, 0), time(1957, 6, 13, 0), (525, 27, 0)),
            (time(2024, 3, 1, 0), time(2024, 1, 31, 0), (1, 1, 0)),
            (time(2024, 1, 31, 0), time(2024, 3, 1, 0), (-1, -1, 0)),
            (time(2024, 3, 30, 1), time(2024, 2, 29, 2), (1, 0, 86_399_999_999_000)),
            (time(2024, 1, 1, 5), time(2024, 1, 1, 5), (0, 0, 0)),
        ] {
            let (months, days, nanoseconds) = expected;
            let expected = IntervalMonthDayNano::new(months, days, nanoseconds);
            assert_eq!(age(to, from), expected, "{to:?} {from:?}");
        }
    }
}
