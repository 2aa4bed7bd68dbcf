//! Numbers with other digits than they have.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

use super::{given, is_one};

/// Floats with so many digits. Computed with powers of ten that are beyond floats, or too close to
/// zero, they would come to none: then they have all these digits already, or none of them.
pub(super) fn rounded(
    args: ScalarFunctionArgs,
    inner: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let (rows, is_one) = (args.number_rows, is_one(&args.args));
    let [numbers, digits] = args.args.as_slice() else { return inner(args) };
    if !matches!(numbers.data_type(), DataType::Float32 | DataType::Float64) {
        return inner(args);
    }
    let (numbers, digits) = (numbers.clone(), digits.clone());
    let made = inner(args)?.to_array(rows)?;
    let is_finite = |array: &ArrayRef, row: usize| match array.data_type() {
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).is_finite(),
        _ => array.as_primitive::<Float64Type>().value(row).is_finite(),
    };
    if (0..made.len()).all(|row| made.is_null(row) || is_finite(&made, row)) {
        return given(&made, is_one);
    }
    let numbers = numbers.to_array(rows)?;
    let digits = cast(&digits.to_array(rows)?, &DataType::Int64)?;
    let digits = digits.as_primitive::<Int64Type>();
    let kind = made.data_type().clone();
    let (made, numbers) = (cast(&made, &DataType::Float64)?, cast(&numbers, &DataType::Float64)?);
    let numbers = numbers.as_primitive::<Float64Type>();
    let pairs = made.as_primitive::<Float64Type>().iter().zip(numbers).zip(digits);
    let right = pairs.map(|((made, number), digits)| {
        let right = right(made?, number?, digits?);
        right.map_or(made, |is_all| if is_all { number } else { Some(0.0) })
    });
    let made = cast(&right.collect::<Float64Array>(), &kind)?;
    given(&made, is_one)
}

/// Whether a number is what was to be made of it, or zero is; none if what was made is right.
fn right(made: f64, number: f64, digits: i64) -> Option<bool> {
    (!made.is_finite()).then_some(digits > 0 || !number.is_finite())
}
