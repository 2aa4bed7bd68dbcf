//! What a condition guards is not computed of other rows.
//!
//! `DataFusion` makes of a `CASE` of truths what is joined by `AND` and `OR`, and computes both
//! sides of these unless few rows are left (55): `CASE WHEN b = 0 THEN false ELSE a / b > 1 END`
//! divides by zero, and so does `b <> 0 AND a / b > 1`. So where a branch may fail the `CASE` is
//! spelled as it leaves it alone, and a condition that may fail stands in one behind those before.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, TableReference};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::split_binary_owned;
use datafusion::logical_expr::{
    BinaryExpr, Case, Cast, Expr, ExprSchemable, LogicalPlan, Operator, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionContext;

use crate::in_lists::balanced;
use crate::rewriting::each_expression;

/// Conditions that another one stands behind at most.
const GUARDS_MAX: usize = 16;

pub(crate) fn register(context: &SessionContext) {
    context.add_analyzer_rule(Arc::new(Rule));
}

#[derive(Debug)]
struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "guards"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, schema| {
            if may_fail(&expr, schema) { guarded(expr, schema) } else { Ok(Transformed::no(expr)) }
        })
    }
}

/// Whether something in an expression ends the query for some values: integers and decimals that
/// are divided by zero, and texts that are not what they are cast to.
fn may_fail(expr: &Expr, schema: &DFSchema) -> bool {
    let is_float = |expr: &Expr| expr.get_type(schema).is_ok_and(|kind| kind.is_floating());
    let divides = |by: &Expr, whole: &Expr| {
        let is_safe = matches!(by, Expr::Literal(value, _) if !is_zero(value));
        !is_safe && !is_float(whole)
    };
    let fails = |expr: &Expr| match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Divide | Operator::Modulo, right, .. }) => {
            divides(right, expr)
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "mod" => {
            args.get(1).is_some_and(|by| divides(by, expr))
        }
        Expr::Cast(Cast { expr, field }) if !field.data_type().is_string() => {
            let is_text = expr.get_type(schema).is_ok_and(|kind| kind.is_string());
            is_text && !matches!(**expr, Expr::Literal(..))
        }
        _ => false,
    };
    expr.exists(|expr| Ok(fails(expr))).unwrap_or(false)
}

fn is_zero(value: &ScalarValue) -> bool {
    ScalarValue::new_zero(&value.data_type()).is_ok_and(|zero| zero == *value)
}

fn guarded(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_down(|expr| match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. })
            if may_fail(&expr, schema) =>
        {
            let parts = split_binary_owned(expr, op).into_iter();
            let parts = parts.map(|part| Ok(guarded(part, schema)?.data));
            let joined = joined(parts.collect::<Result<_>>()?, op, schema);
            Ok(Transformed::new(joined, true, TreeNodeRecursion::Jump))
        }
        Expr::Case(case) if has_guarded_truths(&case, schema) => {
            let expr = Some(Box::new(lit(true)));
            Ok(Transformed::yes(Expr::Case(Case { expr, ..case })))
        }
        expr => Ok(Transformed::no(expr)),
    })
}

/// Whether a `CASE` gives truths, and something in it that is not always computed may fail.
fn has_guarded_truths(case: &Case, schema: &DFSchema) -> bool {
    let is_truth = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Boolean));
    let branches = case.when_then_expr.iter().flat_map(|(when, then)| [when, then]);
    let mut guarded = branches.skip(1).chain(&case.else_expr);
    case.expr.is_none()
        && case.when_then_expr.first().is_some_and(|(_, then)| is_truth(then))
        && guarded.any(|branch| may_fail(branch, schema))
}

/// The parts of a condition, in which those that may fail are behind those before.
fn joined(parts: Vec<Expr>, op: Operator, schema: &DFSchema) -> Expr {
    let mut before: Vec<Expr> = Vec::new();
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        let may_fail = may_fail(&part, schema);
        if !may_fail && before.len() < GUARDS_MAX && is_of_rows(&part) {
            before.push(part.clone());
        }
        all.push(if may_fail && is_of_rows(&part) { behind(&before, part, op) } else { part });
    }
    balanced(all, op)
}

/// Whether an expression has to do with the row that it is computed of, and no other.
fn is_of_rows(expr: &Expr) -> bool {
    let is_other = |expr: &Expr| {
        use Expr::{Exists, InSubquery, OuterReferenceColumn, ScalarSubquery};
        matches!(expr, Exists(_) | InSubquery(_) | OuterReferenceColumn(..) | ScalarSubquery(_))
    };
    expr.any_column_refs()
        && !expr.is_volatile()
        && !expr.exists(|expr| Ok(is_other(expr))).unwrap_or(true)
}

fn tables(expr: &Expr) -> HashSet<Option<TableReference>> {
    expr.column_refs().into_iter().map(|column| column.relation.clone()).collect()
}

/// A condition that is unknown where those of its tables that stand before it decide already.
fn behind(before: &[Expr], part: Expr, op: Operator) -> Expr {
    let of_part = tables(&part);
    let guards = before.iter().filter(|guard| tables(guard).is_subset(&of_part)).cloned();
    let guards: Vec<Expr> = guards.collect();
    if guards.is_empty() {
        return part;
    }
    let guards = balanced(guards, op);
    let decides = if op == Operator::And { Expr::Not(Box::new(guards)) } else { guards };
    let unknown = lit(ScalarValue::Boolean(None));
    let when_then_expr = vec![(Box::new(decides), Box::new(unknown))];
    let (expr, else_expr) = (Some(Box::new(lit(true))), Some(Box::new(part)));
    Expr::Case(Case { expr, when_then_expr, else_expr })
}
