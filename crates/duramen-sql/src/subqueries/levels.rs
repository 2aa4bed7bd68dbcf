//! Subqueries that look at a row further out than that of the query around them.
//!
//! Each row of that query is joined with the values that they look at, and is kept where these are
//! those of the row outside. So they look at the query around them, and only that one looks out.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ExprSchema, Result};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
};
use datafusion::optimizer::AnalyzerRule;

use super::dependent::Outer;

/// What the names of the values begin with.
const NAME: &str = "__further_";

#[derive(Debug)]
pub(super) struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "levels_of_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let numbers = AtomicUsize::new(0);
        let with = plan.transform_down_with_subqueries(|plan| {
            let rows = match plan.inputs().as_slice() {
                [rows] if has_nested(&plan)? && looked_at(rows)?.is_empty() => (*rows).clone(),
                _ => return Ok(Transformed::no(plan)),
            };
            plan.map_expressions(|expr| {
                expr.transform_up(|expr| match subquery_of(&expr) {
                    Some(subquery) => {
                        let around = around(subquery, &rows, &numbers)?;
                        Ok(around.update_data(|subquery| with_subquery(expr, subquery)))
                    }
                    None => Ok(Transformed::no(expr)),
                })
            })
        })?;
        Ok(with.data)
    }
}

fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. })
        | Expr::ScalarSubquery(subquery) => Some(subquery),
        _ => None,
    }
}

fn with_subquery(expr: Expr, subquery: Subquery) -> Expr {
    match expr {
        Expr::Exists(exists) => Expr::Exists(Exists { subquery, ..exists }),
        Expr::InSubquery(of) => Expr::InSubquery(InSubquery { subquery, ..of }),
        Expr::SetComparison(of) => Expr::SetComparison(SetComparison { subquery, ..of }),
        _ => Expr::ScalarSubquery(subquery),
    }
}

/// The subqueries in the expressions of one part of a plan.
fn subqueries(plan: &LogicalPlan) -> Result<Vec<Subquery>> {
    let mut found = Vec::new();
    plan.apply_expressions(|expr| {
        expr.apply(|expr| {
            found.extend(subquery_of(expr).cloned());
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

/// Whether subqueries of a part of a plan have subqueries in them.
fn has_nested(plan: &LogicalPlan) -> Result<bool> {
    for subquery in subqueries(plan)? {
        if subquery.subquery.exists(|part| Ok(!subqueries(part)?.is_empty()))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The columns outside of a plan that it looks at, from its subqueries as well.
fn looked_at(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    plan.apply(|part| {
        let outer = part.expressions().into_iter().flat_map(|expr| outer_of(&expr));
        columns.extend(outer);
        columns.extend(beyond(part)?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(columns)
}

fn outer_of(expr: &Expr) -> Vec<Column> {
    let mut columns = Vec::new();
    let _ = expr.apply(|expr| {
        if let Expr::OuterReferenceColumn(_, column) = expr {
            columns.push(column.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    columns
}

/// The columns that subqueries of a part of a plan look at and that it is not computed from.
fn beyond(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = Vec::new();
    for subquery in subqueries(plan)? {
        for column in looked_at(&subquery.subquery)? {
            let is_here = plan.inputs().iter().any(|input| input.schema().has_column(&column));
            if !is_here && !columns.contains(&column) {
                columns.push(column);
            }
        }
    }
    Ok(columns)
}

/// A subquery of some rows whose own subqueries look no further than at it.
fn around(
    subquery: &Subquery,
    rows: &LogicalPlan,
    numbers: &AtomicUsize,
) -> Result<Transformed<Subquery>> {
    let plan = subquery.subquery.as_ref().clone();
    let plan = plan.transform_up(|part| {
        let mut columns = beyond(&part)?;
        columns.retain(|column| rows.schema().has_column(column));
        match part {
            LogicalPlan::Filter(_) | LogicalPlan::Projection(_) if !columns.is_empty() => {
                beside_values(part, &Outer::new(rows, &columns, numbers), &columns)
            }
            part => Ok(Transformed::no(part)),
        }
    })?;
    Ok(plan.update_data(|plan| with_plan(subquery, plan)))
}

fn with_plan(subquery: &Subquery, plan: LogicalPlan) -> Subquery {
    let outer_ref_columns = plan.all_out_ref_exprs();
    Subquery { outer_ref_columns, ..subquery.with_plan(Arc::new(plan)) }
}

/// A part of a plan whose rows have values of the row outside, which its subqueries look at there.
fn beside_values(
    part: LogicalPlan,
    outer: &Outer<'_>,
    columns: &[Column],
) -> Result<Transformed<LogicalPlan>> {
    let (values, of) = outer.values(NAME)?;
    let mut seen = Vec::new();
    let mut are_those = Vec::new();
    for (column, of) in columns.iter().zip(&of) {
        let field = values.schema().field_from_column(of)?.clone();
        let outside = Expr::OuterReferenceColumn(Arc::clone(&field), column.clone());
        let operator = if field.is_nullable() { Operator::IsNotDistinctFrom } else { Operator::Eq };
        let (left, right) = (Box::new(Expr::Column(of.clone())), Box::new(outside));
        are_those.push(Expr::BinaryExpr(BinaryExpr { left, op: operator, right }));
        seen.push((column.clone(), Expr::OuterReferenceColumn(field, of.clone())));
    }
    let [input] = part.inputs()[..] else { return Ok(Transformed::no(part)) };
    let input = LogicalPlanBuilder::from(input.clone()).cross_join(values)?.build()?;
    let shown = part.schema().columns().into_iter().map(Expr::Column);
    let names = NamePreserver::new(&part);
    let exprs = part.expressions().into_iter().map(|expr| {
        let name = names.save(&expr);
        Ok(name.restore(seeing(expr, &seen)?.data))
    });
    let mut exprs = exprs.collect::<Result<Vec<_>>>()?;
    let rows = LogicalPlanBuilder::from(input);
    let mut rows = match part {
        LogicalPlan::Projection(_) => {
            exprs.extend(of.into_iter().map(Expr::Column));
            rows.project(exprs)?
        }
        _ => exprs.into_iter().try_fold(rows, LogicalPlanBuilder::filter)?,
    };
    // Above what looks at them, as what that becomes does not pass more columns on.
    if let Some(are_those) = conjunction(are_those) {
        rows = rows.filter(are_those)?;
    }
    Ok(Transformed::yes(rows.project(shown)?.build()?))
}

/// An expression whose subqueries, and those in them, see something in the place of columns, but
/// where there is one of that name nearer to them.
fn seeing(expr: Expr, seen: &[(Column, Expr)]) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        let Some(subquery) = subquery_of(&expr) else { return Ok(Transformed::no(expr)) };
        let plan = subquery.subquery.as_ref().clone();
        let plan = plan.transform_up(|part| part_seeing(part, seen))?;
        let subquery = with_plan(subquery, plan.data);
        Ok(Transformed::yes(with_subquery(expr, subquery)))
    })
}

/// A part of the plan of such a subquery.
fn part_seeing(part: LogicalPlan, seen: &[(Column, Expr)]) -> Result<Transformed<LogicalPlan>> {
    let mut further = seen.to_vec();
    further.retain(|(of, _)| !part.inputs().iter().any(|input| input.schema().has_column(of)));
    let names = NamePreserver::new(&part);
    let part = part.map_expressions(|expr| {
        let name = names.save(&expr);
        let own = seeing(expr, &further)?.transform_data(|expr| {
            expr.transform_up(|expr| match by_own_name(&expr, seen) {
                Some(by) => Ok(Transformed::yes(by)),
                None => Ok(Transformed::no(expr)),
            })
        })?;
        Ok(own.update_data(|expr| name.restore(expr)))
    })?;
    if part.transformed { part.map_data(LogicalPlan::recompute_schema) } else { Ok(part) }
}

/// What is seen in the place of a column outside.
fn by_own_name(expr: &Expr, seen: &[(Column, Expr)]) -> Option<Expr> {
    let Expr::OuterReferenceColumn(_, column) = expr else { return None };
    seen.iter().find(|(of, _)| of == column).map(|(_, by)| by.clone())
}
