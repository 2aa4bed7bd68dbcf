//! What is no number: NaN is equal to itself and above all numbers, as in `PostgreSQL`.
//!
//! Floats are compared by their bits, by which a NaN with a sign is below all numbers, and another
//! value than one without. Some processors give such a one for `0.0 / 0.0` and for infinities less
//! each other.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float32Array, Float64Array};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::utils::take_function_args;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionContext;

use crate::rewriting::each_expression;

const NAME: &str = "one_nan";

pub(crate) fn register(context: &SessionContext) {
    let signature = Signature::any(1, Volatility::Immutable);
    context.add_analyzer_rule(Arc::new(Rule { one: Arc::new(OneNan { signature }.into()) }));
}

#[derive(Debug)]
struct Rule {
    one: Arc<ScalarUDF>,
}

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "one_nan"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, schema| {
            expr.transform_up(|expr| {
                if !may_be_signed(&expr, schema) {
                    return Ok(Transformed::no(expr));
                }
                Ok(Transformed::yes(self.one.call(vec![expr])))
            })
        })
    }
}

/// Whether an expression computes a float that may be no number while none that it is made of is:
/// infinities less each other or by zero, and what is left over of a quotient by zero. A sign may
/// turn one around.
fn may_be_signed(expr: &Expr, schema: &DFSchema) -> bool {
    let is_safe = match expr {
        Expr::Negative(of) => is_plain(of, |_| true),
        Expr::BinaryExpr(BinaryExpr { op: Operator::Plus | Operator::Minus, left, right }) => {
            is_plain(left, |_| true) || is_plain(right, |_| true)
        }
        Expr::BinaryExpr(BinaryExpr { op: Operator::Multiply, left, right }) => {
            is_plain(left, |by| by != 0.0) || is_plain(right, |by| by != 0.0)
        }
        Expr::BinaryExpr(BinaryExpr { op: Operator::Divide | Operator::Modulo, right, .. }) => {
            is_plain(right, |by| by != 0.0)
        }
        _ => true,
    };
    !is_safe && expr.get_type(schema).is_ok_and(|kind| kind.is_floating())
}

/// Whether an expression is a constant of a finite float that is one of some.
fn is_plain(expr: &Expr, is_one: impl Fn(f64) -> bool) -> bool {
    let value = match expr {
        Expr::Literal(ScalarValue::Float64(Some(value)), _) => *value,
        Expr::Literal(ScalarValue::Float32(Some(value)), _) => f64::from(*value),
        _ => return false,
    };
    value.is_finite() && is_one(value)
}

/// Floats whose NaNs have no sign.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OneNan {
    signature: Signature,
}

impl ScalarUDFImpl for OneNan {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let [kind] = take_function_args(NAME, kinds)?;
        Ok(kind.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [values] = take_function_args(NAME, args.args)?;
        Ok(match values {
            ColumnarValue::Array(array) => ColumnarValue::Array(without_sign(array)),
            ColumnarValue::Scalar(value) => {
                let one = without_sign(value.to_array()?);
                ColumnarValue::Scalar(ScalarValue::try_from_array(&one, 0)?)
            }
        })
    }
}

fn without_sign(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float64 => {
            let one = |value: f64| if value.is_nan() { f64::NAN } else { value };
            let values: Float64Array = array.as_primitive::<Float64Type>().unary(one);
            Arc::new(values)
        }
        DataType::Float32 => {
            let one = |value: f32| if value.is_nan() { f32::NAN } else { value };
            let values: Float32Array = array.as_primitive::<Float32Type>().unary(one);
            Arc::new(values)
        }
        _ => array,
    }
}
