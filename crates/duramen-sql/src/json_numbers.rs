//! JSON text beside numbers and truths: it is the number or the truth that it has, and NULL where
//! it has none.
//!
//! The planner takes it for text, and casts that: one record with a string in that field would be
//! the end of the query.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList, InSubquery, ScalarFunction};
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{
    BinaryExpr, Case, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF, when,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::column_type::is_json;
use crate::json_function::{as_float, as_integer, as_truth};
use crate::json_marks::{PASS_ON, marked};
use crate::rewriting::{each_expression, is_comparison};

/// What stands beside JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Integer,
    Number,
    Truth,
}

impl Beside {
    fn of(expr: &Expr, schema: &DFSchema) -> Option<Self> {
        Some(match expr.get_type(schema).ok()? {
            of if of.is_integer() => Self::Integer,
            of if of.is_numeric() => Self::Number,
            DataType::Boolean => Self::Truth,
            _ => return None,
        })
    }
}

/// Whether an expression is JSON text. An operator is none, and has others in it.
fn has_json(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr, Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::ScalarFunction(_))
        && expr.to_field(schema).is_ok_and(|(_, field)| is_json(&field))
}

/// An operator whose JSON text is what the other side is; none if it has to stay as it is.
pub(crate) fn operator(expr: &mut RawBinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    use BinaryOperator as Of;
    let RawBinaryExpr { op, left, right } = expr;
    let operator = match op {
        Of::Eq => Operator::Eq,
        Of::NotEq => Operator::NotEq,
        Of::Lt => Operator::Lt,
        Of::LtEq => Operator::LtEq,
        Of::Gt => Operator::Gt,
        Of::GtEq => Operator::GtEq,
        Of::Plus | Of::Minus | Of::Multiply | Of::Divide | Of::Modulo => {
            computed(left, right, schema);
            return Ok(None);
        }
        _ => return Ok(None),
    };
    beside(left, operator, right, schema)
}

/// Makes floats of JSON text that is computed with; whether there is any.
fn computed(left: &mut Expr, right: &mut Expr, schema: &DFSchema) -> bool {
    let (is_left, is_right) = (has_json(left, schema), has_json(right, schema));
    let is_number =
        |expr: &Expr| Beside::of(expr, schema).is_some_and(|beside| beside != Beside::Truth);
    let makes_left = is_left && (is_right || is_number(right));
    if makes_left {
        *left = as_float(std::mem::take(left));
    }
    let makes_right = is_right && is_number(left);
    if makes_right {
        *right = as_float(std::mem::take(right));
    }
    makes_left || makes_right
}

/// A comparison whose JSON text is what the other side is; none if it has to stay as it is.
fn beside(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let is_left = has_json(left, schema);
    let (json, other) = match (is_left, has_json(right, schema)) {
        (true, false) => (left, right),
        (false, true) => (right, left),
        _ => return Ok(None),
    };
    let Some(beside) = Beside::of(other, schema) else { return Ok(None) };
    compared(json, beside, |json| {
        let (left, right) = if is_left { (json, other.clone()) } else { (other.clone(), json) };
        binary(left, op, right)
    })
    .map(Some)
}

/// A comparison, whichever of its sides is JSON text.
fn comparison(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Result<Expr> {
    let known = beside(left, op, right, schema)?;
    Ok(known.unwrap_or_else(|| binary(left.clone(), op, right.clone())))
}

fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
}

/// What is asked of JSON text, of the value that it is. An integer has all of its digits.
fn compared(json: &Expr, beside: Beside, asked: impl Fn(Expr) -> Expr) -> Result<Expr> {
    match beside {
        Beside::Truth => Ok(asked(as_truth(json.clone()))),
        Beside::Number => Ok(asked(as_float(json.clone()))),
        Beside::Integer => {
            let integer = as_integer(json.clone());
            when(integer.clone().is_not_null(), asked(integer))
                .otherwise(asked(as_float(json.clone())))
        }
    }
}

/// The rule for lists and ranges, which comes before types are looked at.
pub(crate) fn rule() -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(Rule)
}

#[derive(Debug)]
struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "json_among_numbers"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, schema| expr.transform_up(|expr| among(expr, schema)))
    }
}

fn among(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    // What operators are of may be JSON text only since then.
    if let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &mut expr
        && is_arithmetic(*op)
    {
        let is_changed = computed(left, right, schema);
        return Ok(Transformed::new_transformed(expr, is_changed));
    }
    let known = match &expr {
        Expr::InList(of) => in_list(of, schema)?,
        Expr::Between(of) => between(of, schema)?,
        Expr::InSubquery(of) if has_json(&of.expr, schema) => in_subquery(of)?,
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
            beside(left, *op, right, schema)?
        }
        Expr::ScalarFunction(ScalarFunction { func, args })
            if PASS_ON.contains(&func.name()) && args.iter().any(|arg| has_json(arg, schema)) =>
        {
            one_of(func, args, schema)?
        }
        Expr::Case(case) => match &case.expr {
            Some(of) if is_beside_json(of, case.when_then_expr.iter().map(|of| &*of.0), schema) => {
                Some(Expr::Case(searched(case.clone(), schema)?))
            }
            _ => None,
        },
        _ => None,
    };
    Ok(known.map_or_else(|| Transformed::no(expr), Transformed::yes))
}

fn is_arithmetic(operator: Operator) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    matches!(operator, Plus | Minus | Multiply | Divide | Modulo)
}

/// A function that gives one of its arguments, of which some are JSON text, and others numbers or
/// truths: those are JSON too, but where they are compared.
fn one_of(func: &Arc<ScalarUDF>, args: &[Expr], schema: &DFSchema) -> Result<Option<Expr>> {
    let others: Vec<Beside> = args.iter().filter_map(|arg| Beside::of(arg, schema)).collect();
    let is_text = |arg: &Expr| {
        let is_null = matches!(arg, Expr::Literal(value, _) if value.is_null());
        !is_null && !has_json(arg, schema) && Beside::of(arg, schema).is_none()
    };
    Ok(match (func.name(), args) {
        ("coalesce" | "ifnull" | "nvl", args) if !args.iter().any(is_text) => {
            let json = |arg: &Expr| match Beside::of(arg, schema) {
                Some(_) => marked(arg.clone()),
                None => arg.clone(),
            };
            Some(marked(func.call(args.iter().map(json).collect())))
        }
        _ if others.is_empty() => None,
        ("greatest" | "least", args) => {
            let is_truth = others.iter().all(|other| *other == Beside::Truth);
            let value = if is_truth { as_truth } else { as_float };
            let values = args.iter().cloned();
            let values = values.map(|arg| if has_json(&arg, schema) { value(arg) } else { arg });
            Some(func.call(values.collect()))
        }
        ("nullif", [of, other]) => {
            let is_same = comparison(of, Operator::Eq, other, schema)?;
            let none = Expr::Literal(ScalarValue::try_from(&of.get_type(schema)?)?, None);
            Some(when(is_same, none).otherwise(of.clone())?)
        }
        _ => None,
    })
}

/// Whether a value is JSON text and others are numbers or truths, or the other way around.
fn is_beside_json<'e>(
    of: &Expr,
    mut others: impl Iterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> bool {
    if has_json(of, schema) {
        all_beside(others, schema).is_some()
    } else {
        Beside::of(of, schema).is_some()
            && !of.is_volatile()
            && others.any(|other| has_json(other, schema))
    }
}

fn in_list(of: &InList, schema: &DFSchema) -> Result<Option<Expr>> {
    let InList { expr, list, negated } = of;
    if !is_beside_json(expr, list.iter(), schema) {
        return Ok(None);
    }
    if let Some(beside) = all_beside(list.iter(), schema) {
        return compared(expr, beside, |json| {
            Expr::InList(InList::new(Box::new(json), list.clone(), *negated))
        })
        .map(Some);
    }
    let equal = list.iter().map(|other| comparison(expr, Operator::Eq, other, schema));
    let any = equal.collect::<Result<Vec<_>>>()?.into_iter().reduce(Expr::or);
    Ok(any.map(|any| if *negated { !any } else { any }))
}

fn between(of: &Between, schema: &DFSchema) -> Result<Option<Expr>> {
    let Between { expr, negated, low, high } = of;
    let ends = || [&**low, &**high].into_iter();
    if has_json(expr, schema)
        && let Some(beside) = all_beside(ends(), schema)
    {
        return compared(expr, beside, |json| {
            Expr::Between(Between::new(Box::new(json), *negated, low.clone(), high.clone()))
        })
        .map(Some);
    }
    let is_json = |expr: &Expr| has_json(expr, schema);
    let is_beside = |expr: &Expr| Beside::of(expr, schema).is_some();
    let is_one = is_beside(expr) && ends().any(is_json)
        || is_json(expr) && ends().any(is_json) && ends().any(is_beside);
    if !is_one || expr.is_volatile() {
        return Ok(None);
    }
    let is_from = comparison(expr, Operator::GtEq, low, schema)?;
    let within = is_from.and(comparison(expr, Operator::LtEq, high, schema)?);
    Ok(Some(if *negated { !within } else { within }))
}

/// JSON text that is sought among numbers or truths.
fn in_subquery(of: &InSubquery) -> Result<Option<Expr>> {
    let found = Expr::Column(Column::from(of.subquery.subquery.schema().qualified_field(0)));
    let Some(beside) = Beside::of(&found, of.subquery.subquery.schema()) else { return Ok(None) };
    compared(&of.expr, beside, |json| {
        Expr::InSubquery(InSubquery { expr: Box::new(json), ..of.clone() })
    })
    .map(Some)
}

/// `CASE json WHEN 1 THEN ..` as `CASE WHEN json = 1 THEN ..`.
fn searched(mut case: Case, schema: &DFSchema) -> Result<Case> {
    let Some(json) = case.expr.take() else { return Ok(case) };
    for (value, _) in &mut case.when_then_expr {
        **value = comparison(&json, Operator::Eq, value, schema)?;
    }
    Ok(case)
}

/// What all of some expressions are, but for NULL.
fn all_beside<'e>(mut exprs: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> Option<Beside> {
    let is_null = |expr: &Expr| matches!(expr, Expr::Literal(ScalarValue::Null, _));
    exprs.try_fold(None, |all, expr| {
        if is_null(expr) {
            return Some(all);
        }
        Some(Some(match (all, Beside::of(expr, schema)?) {
            (None, beside) => beside,
            (Some(all), beside) if all == beside => beside,
            (Some(Beside::Truth), _) | (_, Beside::Truth) => return None,
            _ => Beside::Number,
        }))
    })?
}
