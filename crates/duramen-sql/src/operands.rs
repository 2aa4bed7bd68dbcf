//! What stands beside operators, as they are planned: a date with an interval is a time, a text
//! beside a truth is one, JSON text beside a number, an interval has multiples, and seconds have
//! fractions.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator, ScalarUDF};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::intervals::Factor;
use crate::{json_numbers, repairs, zones};

/// Texts that are true or false; so are the first letters of some.
const TRUTHS: [(&str, bool); 10] = [
    ("true", true),
    ("t", true),
    ("yes", true),
    ("on", true),
    ("1", true),
    ("false", false),
    ("f", false),
    ("no", false),
    ("off", false),
    ("0", false),
];

/// Plans operators and `EXTRACT` before those of `DataFusion` do.
#[derive(Debug)]
pub(crate) struct Operands {
    extract: Arc<ScalarUDF>,
}

impl Operands {
    pub(crate) fn new() -> Self {
        Self { extract: repairs::extract() }
    }
}

impl ExprPlanner for Operands {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if let Some(planned) = json_numbers::operator(&mut expr, schema)? {
            return Ok(PlannerResult::Planned(planned));
        }
        let RawBinaryExpr { op, left, right } = &mut expr;
        match op {
            BinaryOperator::Plus => {
                date_as_time((left, right), schema);
                date_as_time((right, left), schema);
            }
            BinaryOperator::Minus => date_as_time((left, right), schema),
            BinaryOperator::Multiply | BinaryOperator::Divide => {
                let factor =
                    if *op == BinaryOperator::Multiply { Factor::Times } else { Factor::Over };
                if is_scaled(left, right, schema) {
                    let (interval, number) = (std::mem::take(left), std::mem::take(right));
                    return Ok(PlannerResult::Planned(factor.of(interval, number)));
                }
                if factor == Factor::Times && is_scaled(right, left, schema) {
                    let (interval, number) = (std::mem::take(right), std::mem::take(left));
                    return Ok(PlannerResult::Planned(factor.of(interval, number)));
                }
            }
            BinaryOperator::Eq | BinaryOperator::NotEq => {
                text_as_truth((left, right), schema)?;
                text_as_truth((right, left), schema)?;
            }
            _ => {}
        }
        Ok(PlannerResult::Original(expr))
    }

    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let extract = Arc::clone(&self.extract);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(extract, args))))
    }
}

/// Whether an expression has a type like that.
fn is(expr: &Expr, schema: &DFSchema, kind: fn(&DataType) -> bool) -> bool {
    expr.get_type(schema).is_ok_and(|found| kind(&found))
}

fn date_as_time((date, interval): (&mut Expr, &Expr), schema: &DFSchema) {
    let is_date =
        |expr: &Expr| is(expr, schema, |kind| matches!(kind, DataType::Date32 | DataType::Date64));
    let is_interval = |expr: &Expr| is(expr, schema, |kind| matches!(kind, DataType::Interval(_)));
    // An operator is looked at last: what is in it was looked at before, and a long chain would be
    // gone through for each of its parts.
    let is_chain = matches!(date, Expr::BinaryExpr(_));
    let is_first = if is_chain { is_interval(interval) } else { is_date(date) };
    let is_both = is_first && is_date(date) && is_interval(interval);
    if is_both {
        let of = Box::new(std::mem::take(date));
        // Days and months are added to it as well as hours, which a date has no room for.
        *date = Expr::Cast(Cast::new(of, zones::micros(false)));
    }
}

/// Whether an interval is multiplied or divided by a number. What is multiplied is none: that is a
/// function.
fn is_scaled(interval: &Expr, number: &Expr, schema: &DFSchema) -> bool {
    use Operator::{Divide, Modulo, Multiply};
    let is_none = |expr: &Expr| match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => matches!(op, Divide | Modulo | Multiply),
        Expr::Literal(value, _) => !matches!(value, ScalarValue::IntervalMonthDayNano(_)),
        _ => false,
    };
    !is_none(interval)
        && is(interval, schema, |kind| matches!(kind, DataType::Interval(_)))
        && is(number, schema, DataType::is_numeric)
}

/// Makes a text beside a truth one, which would be compared with its text.
fn text_as_truth((text, other): (&mut Expr, &Expr), schema: &DFSchema) -> Result<()> {
    let Expr::Literal(ScalarValue::Utf8(Some(found)), _) = text else { return Ok(()) };
    if !is(other, schema, |kind| *kind == DataType::Boolean) {
        return Ok(());
    }
    let word = found.trim().to_ascii_lowercase();
    let Some((_, truth)) = TRUTHS.iter().find(|(truth, _)| *truth == word) else {
        return plan_err!("Cannot cast string '{found}' to value of Boolean type");
    };
    *text = Expr::Literal(ScalarValue::Boolean(Some(*truth)), None);
    Ok(())
}
