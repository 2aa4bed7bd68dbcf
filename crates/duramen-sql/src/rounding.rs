//! Casts to integers, which round: floats to the nearest one, halves to even, and decimals with
//! halves away from zero, as in `PostgreSQL`.
//!
//! `DataFusion` cuts the fraction off, also where it casts by itself. So what a query casts stands
//! in a function, which is gone again where there is no fraction to round.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Float32Type,
    Float64Type,
};
use datafusion::common::utils::take_function_args;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr as Planned, ExprSchemable, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType as Type, Expr, Ident, Value, VisitMut, visit_expressions_mut,
};

use crate::spelling;

/// What nobody calls it.
const ROUNDED: &str = "\u{1f}rounded";

pub(crate) fn register(context: &SessionContext) {
    context.register_udf(ScalarUDF::from(Rounded::new(Halves::ToEven)));
}

/// Puts what is cast to integers into the function.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) {
    let ControlFlow::<Infallible>::Continue(()) = visit_expressions_mut(parsed, |expr| {
        if let Expr::Cast { expr, data_type, .. } = expr
            && is_integer(data_type)
            && !is_rounded(expr)
        {
            let of = std::mem::replace(&mut **expr, Expr::value(Value::Null));
            **expr = rounded(of);
        }
        ControlFlow::Continue(())
    });
}

fn is_integer(kind: &Type) -> bool {
    match kind {
        Type::Array(
            ArrayElemTypeDef::AngleBracket(item)
            | ArrayElemTypeDef::SquareBracket(item, _)
            | ArrayElemTypeDef::Parenthesis(item),
        ) => is_integer(item),
        Type::TinyInt(_)
        | Type::TinyIntUnsigned(_)
        | Type::SmallInt(_)
        | Type::SmallIntUnsigned(_)
        | Type::Int2(_)
        | Type::Int2Unsigned(_)
        | Type::Int(_)
        | Type::IntUnsigned(_)
        | Type::Integer(_)
        | Type::IntegerUnsigned(_)
        | Type::Int4(_)
        | Type::Int4Unsigned(_)
        | Type::BigInt(_)
        | Type::BigIntUnsigned(_)
        | Type::Int8(_)
        | Type::Int8Unsigned(_) => true,
        _ => false,
    }
}

fn is_rounded(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let name = function.name.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| name.value == ROUNDED)
}

fn rounded(of: Expr) -> Expr {
    spelling::call(Ident::with_quote('"', ROUNDED), vec![of])
}

/// What becomes of a call of the function once types are known: it goes if nothing is rounded, and
/// a number as it is written is a decimal. None for what is no such call.
pub(crate) fn known(expr: &mut Planned, schema: &DFSchema) -> bool {
    let Planned::ScalarFunction(ScalarFunction { func, args }) = expr else { return false };
    let ([of], true) = (args.as_mut_slice(), func.name() == ROUNDED) else { return false };
    match of.get_type(schema) {
        Ok(kind) if kind_of_rounded(&kind).is_none() => *expr = std::mem::take(of),
        Ok(_) if is_written(of) => *func = Arc::new(Rounded::new(Halves::FromZero).into()),
        _ => return false,
    }
    true
}

/// Whether a float is a number as it is written, or computed of such.
fn is_written(expr: &Planned) -> bool {
    match expr {
        Planned::Literal(ScalarValue::Float64(_) | ScalarValue::Int64(_), _) => true,
        Planned::Negative(of) => is_written(of),
        Planned::BinaryExpr(BinaryExpr { left, op, right }) => {
            let is_exact = matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply);
            is_exact && is_written(left) && is_written(right)
        }
        _ => false,
    }
}

/// The type of what was rounded; none if there is nothing to round.
fn kind_of_rounded(kind: &DataType) -> Option<DataType> {
    // One more digit for what is rounded up.
    let digits = |precision: u8, scale: i8, max: u8| {
        let fraction = u8::try_from(scale).ok().filter(|scale| *scale > 0)?;
        Some((precision.saturating_sub(fraction) + 1).min(max))
    };
    match kind {
        DataType::Float32 | DataType::Float64 => Some(kind.clone()),
        DataType::Decimal128(precision, scale) => {
            let digits = digits(*precision, *scale, DECIMAL128_MAX_PRECISION)?;
            Some(DataType::Decimal128(digits, 0))
        }
        DataType::Decimal256(precision, scale) => {
            let digits = digits(*precision, *scale, DECIMAL256_MAX_PRECISION)?;
            Some(DataType::Decimal256(digits, 0))
        }
        DataType::List(item) => {
            let kind = kind_of_rounded(item.data_type())?;
            Some(DataType::List(Arc::new(item.as_ref().clone().with_data_type(kind))))
        }
        _ => None,
    }
}

/// Where the half of an integer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Halves {
    ToEven,
    FromZero,
}

/// Rounds floats and decimals, and gives all else as it is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounded {
    halves: Halves,
    signature: Signature,
}

impl Rounded {
    fn new(halves: Halves) -> Self {
        Self { halves, signature: Signature::any(1, Volatility::Immutable) }
    }

    fn array(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let Some(kind) = kind_of_rounded(array.data_type()) else { return Ok(Arc::clone(array)) };
        Ok(match &kind {
            DataType::Float32 => {
                let round = match self.halves {
                    Halves::ToEven => f32::round_ties_even,
                    Halves::FromZero => f32::round,
                };
                Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(round))
            }
            DataType::Float64 => {
                let round = match self.halves {
                    Halves::ToEven => f64::round_ties_even,
                    Halves::FromZero => f64::round,
                };
                Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(round))
            }
            DataType::List(item) => {
                let lists = array.as_list::<i32>();
                let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
                let values = self.array(lists.values())?;
                Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, nulls)?)
            }
            // Fewer digits are rounded to, away from zero.
            decimal => cast(array, decimal)?,
        })
    }
}

impl ScalarUDFImpl for Rounded {
    fn name(&self) -> &'static str {
        ROUNDED
    }

    /// The name of a column is that of what is cast.
    fn schema_name(&self, args: &[Planned]) -> Result<String> {
        let [of] = take_function_args(self.name(), args)?;
        Ok(of.schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let [kind] = take_function_args(self.name(), kinds)?;
        Ok(kind_of_rounded(kind).unwrap_or_else(|| kind.clone()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [of] = take_function_args(self.name(), args.arg_fields)?;
        let kind = self.return_type(std::slice::from_ref(of.data_type()))?;
        Ok(Arc::new(Field::new(of.name(), kind, of.is_nullable())))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [of] = take_function_args(self.name(), args.args)?;
        Ok(match of {
            ColumnarValue::Array(array) => ColumnarValue::Array(self.array(&array)?),
            ColumnarValue::Scalar(value) => {
                let array = self.array(&value.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn what_is_cast_to_integers_is_rounded_once() {
        for (text, rounded) in [
            ("SELECT CAST(a AS TEXT), a::DOUBLE, CAST(a AS INTERVAL), a::TEXT[] FROM t", 0),
            ("SELECT CAST(a AS INT), TRY_CAST(a AS SMALLINT), a::BIGINT UNSIGNED FROM t", 3),
            ("SELECT a::BIGINT[], b::INT[][] FROM t WHERE CAST(CAST(c AS INT) AS INT2) = 1", 4),
        ] {
            let mut parsed = Parser::parse_sql(&GenericDialect {}, text).unwrap();
            rewrite(&mut parsed);
            rewrite(&mut parsed);
            let made = parsed[0].to_string();
            assert_eq!(made.matches(ROUNDED).count(), rounded, "{made}");
        }
    }
}
