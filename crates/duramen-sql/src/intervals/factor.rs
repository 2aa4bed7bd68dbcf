//! Intervals that are multiplied and divided by numbers: what is left of months goes to days, of
//! which a month has 30, and what is left of days to hours, as in `PostgreSQL`.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, exec_err};
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::INTERVAL;

const NANOS_OF_DAY: f64 = 86_400e9;
const DAYS_OF_MONTH: f64 = 30.0;
/// Parts of days that are told apart.
const PARTS: f64 = 1e6;

/// What is done with the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Factor {
    Times,
    Over,
}

impl Factor {
    /// An interval that is multiplied or divided by a number.
    pub(crate) fn of(self, interval: Expr, number: Expr) -> Expr {
        let signature = Signature::any(2, Volatility::Immutable);
        let interval = Expr::Cast(Cast::new(Box::new(interval), INTERVAL));
        let number = Expr::Cast(Cast::new(Box::new(number), DataType::Float64));
        ScalarUDF::from(Scaled { factor: self, signature }).call(vec![interval, number])
    }

    fn applied(self, value: f64, number: f64) -> f64 {
        match self {
            Self::Times => value * number,
            Self::Over => value / number,
        }
    }

    fn scaled(self, span: IntervalMonthDayNano, number: f64) -> Option<IntervalMonthDayNano> {
        #[expect(clippy::cast_precision_loss, reason = "floats have the digits of centuries")]
        let nanos = span.nanoseconds as f64;
        self.of_parts([f64::from(span.months), f64::from(span.days), nanos], number)
    }

    /// An interval of so many months, days and nanoseconds that is multiplied or divided.
    pub(super) fn of_parts(self, parts: [f64; 3], number: f64) -> Option<IntervalMonthDayNano> {
        let [months, days, nanos] = parts.map(|of| self.applied(of, number));
        let of_months = ((months - months.trunc()) * DAYS_OF_MONTH * PARTS).round() / PARTS;
        let rest = days - days.trunc() + of_months - of_months.trunc();
        let rest = (rest * NANOS_OF_DAY / 1e3).round() * 1e3;
        let whole = (rest / NANOS_OF_DAY).trunc();
        let days = days.trunc() + of_months.trunc() + whole;
        let nanos = (nanos + rest - whole * NANOS_OF_DAY).round();
        Some(IntervalMonthDayNano::new(part(months.trunc())?, part(days)?, long(nanos)?))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it is looked at before")]
fn part(of: f64) -> Option<i32> {
    (of.abs() <= f64::from(i32::MAX)).then_some(of as i32)
}

#[expect(clippy::cast_possible_truncation, reason = "it is looked at before")]
fn long(of: f64) -> Option<i64> {
    // The least float that 64 bits have no room for.
    (of.abs() < 9_223_372_036_854_775_808.0).then_some(of as i64)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Scaled {
    factor: Factor,
    signature: Signature,
}

impl ScalarUDFImpl for Scaled {
    fn name(&self) -> &'static str {
        match self.factor {
            Factor::Times => "interval_times",
            Factor::Over => "interval_over",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [interval, number] = take_function_args(self.name(), args)?;
        let symbol = if self.factor == Factor::Times { '*' } else { '/' };
        Ok(format!("{} {symbol} {}", interval.schema_name(), number.schema_name()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        make_scalar_function(|args| self.scaled(args), Vec::new())(&args.args)
    }
}

impl Scaled {
    fn scaled(&self, args: &[ArrayRef]) -> Result<ArrayRef> {
        let [spans, numbers] = take_function_args(self.name(), args)?;
        let (spans, numbers) = (cast(spans, &INTERVAL)?, cast(numbers, &DataType::Float64)?);
        let numbers = numbers.as_primitive::<Float64Type>();
        let pairs = spans.as_primitive::<IntervalMonthDayNanoType>().iter().zip(numbers);
        let scaled = pairs.map(|(span, number)| {
            let Some((span, number)) = span.zip(number) else { return Ok(None) };
            if self.factor == Factor::Over && number == 0.0 {
                return exec_err!("Divide by zero error");
            }
            if let Some(scaled) = self.factor.scaled(span, number) {
                Ok(Some(scaled))
            } else {
                exec_err!("an interval is longer than there is room for")
            }
        });
        Ok(Arc::new(scaled.collect::<Result<IntervalMonthDayNanoArray>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_months_and_days_goes_to_what_is_shorter() {
        let hours = |hours: i64| hours * 3_600_000_000_000;
        for ((months, days, nanos), factor, number, expected) in [
            ((1, 0, 0), Factor::Times, 2.0, (2, 0, 0)),
            ((0, 1, 0), Factor::Times, 1.5, (0, 1, hours(12))),
            ((1, 0, 0), Factor::Over, 4.0, (0, 7, hours(12))),
            ((0, 0, hours(3)), Factor::Over, 2.0, (0, 0, hours(3) / 2)),
            ((14, 3, hours(1)), Factor::Times, -1.0, (-14, -3, -hours(1))),
            ((1, 1, 0), Factor::Times, 0.5, (0, 15, hours(12))),
        ] {
            let (expected_months, expected_days, expected_nanos) = expected;
            let scaled = factor.scaled(IntervalMonthDayNano::new(months, days, nanos), number);
            let expected =
                IntervalMonthDayNano::new(expected_months, expected_days, expected_nanos);
            assert_eq!(scaled, Some(expected));
        }
        assert_eq!(Factor::Times.scaled(IntervalMonthDayNano::new(0, 1, 0), 1e300), None);
    }
}
