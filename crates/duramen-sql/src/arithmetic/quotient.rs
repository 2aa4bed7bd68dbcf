//! Quotients of decimals, which are rounded to the nearest one, halves away from zero, as in
//! `PostgreSQL`. `DataFusion` cuts off what their scale has no room for.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, ArrowNativeTypeOp, AsArray, PrimitiveArray};
use datafusion::arrow::compute::kernels::arity::try_binary;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, DecimalType, Field, FieldRef, i256,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::utils::take_function_args;
use datafusion::common::{DataFusionError, Result};
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::logical_expr_common::type_coercion::binary::BinaryTypeCoercer;

use super::{beyond, operand};

/// The quotient of two decimals.
pub(super) fn call(dividend: Expr, divisor: Expr) -> Expr {
    let signature = Signature::any(2, Volatility::Immutable);
    ScalarUDF::from(Quotient { signature }).call(vec![dividend, divisor])
}

/// A quotient that is rounded to the nearest number.
pub(super) fn rounded<N: ArrowNativeTypeOp>(dividend: N, divisor: N) -> Result<N, ArrowError> {
    let quotient = dividend.div_checked(divisor)?;
    // Of numbers up to zero each has its opposite, of others the least one has none.
    let up_to_zero = |of: N| if of.is_gt(N::ZERO) { of.neg_wrapping() } else { of };
    let rest = up_to_zero(dividend.mod_wrapping(divisor));
    if rest.is_gt(up_to_zero(divisor).sub_wrapping(rest)) {
        return Ok(quotient);
    }
    match (dividend.compare(N::ZERO), divisor.compare(N::ZERO)) {
        (Ordering::Less, Ordering::Less) | (Ordering::Greater, Ordering::Greater) => {
            quotient.add_checked(N::ONE)
        }
        _ => quotient.sub_checked(N::ONE),
    }
}

/// A number with so many more digits behind the point.
pub(super) fn scaled<N: ArrowNativeTypeOp>(number: N, digits: u32) -> Result<N, ArrowError> {
    number.mul_checked(N::usize_as(10).pow_checked(digits)?)
}

/// `dividend / divisor`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Quotient {
    signature: Signature,
}

impl ScalarUDFImpl for Quotient {
    fn name(&self) -> &'static str {
        "divide"
    }

    /// The name of a column is that of the operator.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [dividend, divisor] = take_function_args(self.name(), args)?;
        Ok(format!("{} / {}", dividend.schema_name(), divisor.schema_name()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let [dividend, divisor] = take_function_args(self.name(), kinds)?;
        BinaryTypeCoercer::new(dividend, &Operator::Divide, divisor).get_result_type()
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kinds = args.arg_fields.iter().map(|field| field.data_type().clone());
        let kind = self.return_type(&kinds.collect::<Vec<_>>())?;
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), kind, is_nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let kind = args.return_type();
        let divided = |operands: &[ArrayRef]| Ok(divided(operands, kind)?);
        let made = make_scalar_function(divided, Vec::new())(&args.args);
        made.map_err(|error| match &error {
            DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
                ArrowError::ArithmeticOverflow(_) => {
                    let what = format!("{} / {}", operand(&args, 0), operand(&args, 1));
                    beyond(&what, "it has too many digits", kind)
                }
                _ => error,
            },
            _ => error,
        })
    }
}

fn divided(operands: &[ArrayRef], kind: &DataType) -> Result<ArrayRef, ArrowError> {
    let [dividends, divisors] = operands else {
        return Err(ArrowError::InvalidArgumentError("a quotient is of two".to_owned()));
    };
    match *kind {
        DataType::Decimal128(precision, scale) => {
            let (dividends, divisors) = (dividends.as_primitive(), divisors.as_primitive());
            quotients::<Decimal128Type>(dividends, divisors, (precision, scale), narrow)
        }
        DataType::Decimal256(precision, scale) => {
            let of = |dividend, digits, divisor| rounded(scaled(dividend, digits)?, divisor);
            let (dividends, divisors) = (dividends.as_primitive(), divisors.as_primitive());
            quotients::<Decimal256Type>(dividends, divisors, (precision, scale), of)
        }
        ref kind => Err(ArrowError::InvalidArgumentError(format!("a quotient is no {kind}"))),
    }
}

/// The quotients of numbers of which each first one gets digits, as many as the scale of the result
/// needs.
fn quotients<T: DecimalType>(
    dividends: &PrimitiveArray<T>,
    divisors: &PrimitiveArray<T>,
    (precision, scale): (u8, i8),
    of: impl Fn(T::Native, u32, T::Native) -> Result<T::Native, ArrowError>,
) -> Result<ArrayRef, ArrowError> {
    let digits = i16::from(scale) - i16::from(dividends.scale()) + i16::from(divisors.scale());
    let digits = u32::try_from(digits)
        .map_err(|_| ArrowError::InvalidArgumentError("a scale below zero".to_owned()))?;
    let made = try_binary::<_, _, _, T>(dividends, divisors, |dividend, divisor| {
        let quotient = of(dividend, digits, divisor)?;
        if T::is_valid_decimal_precision(quotient, precision) {
            Ok(quotient)
        } else {
            Err(ArrowError::ArithmeticOverflow(String::new()))
        }
    })?;
    Ok(Arc::new(made.with_precision_and_scale(precision, scale)?))
}

/// The quotient of numbers of 128 bits, where the first one may need more to get its digits.
fn narrow(dividend: i128, digits: u32, divisor: i128) -> Result<i128, ArrowError> {
    if let Ok(dividend) = scaled(dividend, digits) {
        return rounded(dividend, divisor);
    }
    let wide = rounded(scaled(i256::from_i128(dividend), digits)?, i256::from_i128(divisor))?;
    wide.to_i128().ok_or_else(|| ArrowError::ArithmeticOverflow(String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (dividend, divisor, expected) in [
            (7, 2, 4),
            (-7, 2, -4),
            (7, -2, -4),
            (-7, -2, 4),
            (1, 3, 0),
            (2, 3, 1),
            (-2, 3, -1),
            (6, 3, 2),
            (0, -3, 0),
            (i128::MAX, i128::MAX, 1),
            (i128::MIN, i128::MIN, 1),
            (i128::MAX, i128::MIN, -1),
            (1, i128::MIN, 0),
            (i128::MIN, 2, i128::MIN / 2),
        ] {
            assert_eq!(rounded(dividend, divisor).unwrap(), expected, "{dividend} / {divisor}");
            let wide = [dividend, divisor].map(i256::from_i128);
            assert_eq!(rounded(wide[0], wide[1]).unwrap(), i256::from_i128(expected));
        }
        assert!(matches!(rounded(1, 0), Err(ArrowError::DivideByZero)));
        assert!(matches!(rounded(i128::MIN, -1), Err(ArrowError::ArithmeticOverflow(_))));
    }

    #[test]
    fn dividends_may_be_wider_than_their_type_with_all_digits() {
        let big = 10_i128.pow(37);
        let (dividend, divisor) = (2 * big, 3 * 10_i128.pow(6));
        assert_eq!(
            narrow(dividend, 4, divisor).unwrap(),
            66_666_666_666_666_666_666_666_666_666_666_667
        );
        assert!(narrow(big, 4, 1).is_err());
        assert!(narrow(big, 70, 1).is_err());
        assert!(matches!(narrow(big, 4, 0), Err(ArrowError::DivideByZero)));
    }
}
