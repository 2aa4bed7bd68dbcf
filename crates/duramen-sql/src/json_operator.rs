//! `a -> 'b'` and `a ->> 'b'`: what names and indexes lead to in JSON text, structs and lists.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::functions::core::expr_fn::get_field;
use datafusion::functions_nested::expr_fn::array_element;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, ScalarUDF, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Knows the functions that the operators are of JSON text.
#[derive(Debug)]
pub(crate) struct JsonOperators {
    /// Of `->`: the part as JSON text.
    pub(crate) json: Arc<ScalarUDF>,
    /// Of `->>`: the part as text.
    pub(crate) text: Arc<ScalarUDF>,
}

impl ExprPlanner for JsonOperators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_text = match expr.op {
            BinaryOperator::Arrow => false,
            BinaryOperator::LongArrow => true,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let RawBinaryExpr { left, right, .. } = expr;
        let found = match left.get_type(schema)? {
            DataType::Null => self.in_json(left, right, is_text),
            of if of.is_string() => self.in_json(left, right, is_text),
            DataType::Struct(_) => in_struct(left, &right, is_text, schema)?,
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => {
                in_list(left, &right, is_text, schema)?
            }
            other => {
                return plan_err!(
                    "-> and ->> look into JSON text, objects and arrays, and not into {other}"
                );
            }
        };
        Ok(PlannerResult::Planned(found))
    }
}

impl JsonOperators {
    fn in_json(&self, left: Expr, right: Expr, is_text: bool) -> Expr {
        let function = if is_text { &self.text } else { &self.json };
        let args = match left {
            // The way through a text is gone at once.
            Expr::ScalarFunction(ScalarFunction { func, mut args }) if func == self.json => {
                args.push(right);
                args
            }
            left => vec![left, right],
        };
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), args))
    }
}

fn in_struct(left: Expr, right: &Expr, is_text: bool, schema: &DFSchema) -> Result<Expr> {
    let name =
        if let Expr::Literal(value, _) = right { value.try_as_str().flatten() } else { None };
    let Some(name) = name else {
        return plan_err!("-> and ->> take the name of a field of an object, as in -> 'a'");
    };
    as_asked(get_field(left, name), is_text, schema)
}

fn in_list(left: Expr, right: &Expr, is_text: bool, schema: &DFSchema) -> Result<Expr> {
    let Expr::Literal(ScalarValue::Int64(Some(index)), _) = right else {
        return plan_err!("-> and ->> take the index of an element of an array, as in -> 0");
    };
    // SQL counts from 1, JSON from 0, and both of them from the end by negative numbers.
    let place = if *index < 0 { *index } else { index.saturating_add(1) };
    as_asked(array_element(left, lit(place)), is_text, schema)
}

fn as_asked(found: Expr, is_text: bool, schema: &DFSchema) -> Result<Expr> {
    if !is_text {
        return Ok(found);
    }
    let of = found.get_type(schema)?;
    if of.is_nested() {
        return plan_err!("->> gives text, and what is there is an object or array: take ->");
    }
    if of.is_string() {
        return Ok(found);
    }
    Ok(Expr::Cast(Cast::new(Box::new(found), DataType::Utf8View)))
}
