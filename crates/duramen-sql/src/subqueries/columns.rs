//! Subqueries in aggregates, windows and orders, each of which becomes a column of what these read.
//!
//! So do comparisons that are sorted by: the planner loses the order of what it sorts by them (55).

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::WindowFunctionParams;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

use super::is_condition;
use crate::rewriting::is_comparison;

/// What the names of these columns begin with.
const NAME: &str = "__subquery_";

#[derive(Debug)]
pub(super) struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "subqueries_as_columns"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) | LogicalPlan::Sort(_) => {
                before(plan)
            }
            plan => Ok(Transformed::no(plan)),
        })
        .map(|transformed| transformed.data)
    }
}

/// A plan over a list of columns in which its subqueries are.
fn before(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut found = Vec::new();
    let names = NamePreserver::new(&plan);
    let shown = plan.schema().columns();
    let is_passed_on = !matches!(plan, LogicalPlan::Aggregate(_));
    let plan = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let sorted = if is_passed_on { sorted_by(expr, &mut found) } else { Transformed::no(expr) };
        let changed = sorted
            .transform_data(|expr| expr.transform_down(|expr| Ok(column_of(expr, &mut found))))?;
        Ok(changed.update_data(|expr| name.restore(expr)))
    })?;
    if found.is_empty() {
        return Ok(plan);
    }
    let plan = plan.data;
    let input = with_columns(plan.inputs()[0].clone(), found)?;
    let plan = plan.with_new_exprs(plan.expressions(), vec![input])?;
    if !is_passed_on {
        return Ok(Transformed::yes(plan));
    }
    let shown = shown.into_iter().map(Expr::Column);
    Ok(Transformed::yes(LogicalPlanBuilder::from(plan).project(shown)?.build()?))
}

/// A plan with more columns. What a list of columns is sorted by may look at what is not in it.
fn with_columns(plan: LogicalPlan, more: Vec<Expr>) -> Result<LogicalPlan> {
    let is_of = |schema: &DFSchema| more.iter().all(|expr| looks_at(expr, schema));
    match plan {
        LogicalPlan::Projection(list) if !is_of(&list.schema) && is_of(list.input.schema()) => {
            let columns = list.expr.into_iter().chain(more);
            LogicalPlanBuilder::from(list.input.as_ref().clone()).project(columns)?.build()
        }
        plan => {
            let columns = plan.schema().columns().into_iter().map(Expr::Column);
            LogicalPlanBuilder::from(plan).project(columns.chain(more))?.build()
        }
    }
}

/// Whether all that a subquery looks at outside of it is among some columns.
fn looks_at(expr: &Expr, schema: &DFSchema) -> bool {
    let mut columns = expr.column_refs().into_iter().cloned().collect::<Vec<_>>();
    let of_subqueries = expr.apply(|expr| {
        let outer = match expr {
            Expr::Exists(exists) => &exists.subquery.outer_ref_columns,
            Expr::InSubquery(of) => &of.subquery.outer_ref_columns,
            Expr::ScalarSubquery(subquery) => &subquery.outer_ref_columns,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        columns.extend(outer.iter().filter_map(|expr| match expr {
            Expr::OuterReferenceColumn(_, column) => Some(column.clone()),
            _ => None,
        }));
        Ok(TreeNodeRecursion::Continue)
    });
    of_subqueries.is_ok() && columns.iter().all(|column| schema.has_column(column))
}

/// What is sorted by, where a comparison in it is computed before. It is all of it that is, so that
/// what a CASE keeps from being computed is not.
fn sorted_by(expr: Expr, found: &mut Vec<Expr>) -> Transformed<Expr> {
    match expr {
        Expr::WindowFunction(mut window) => {
            let before = found.len();
            let WindowFunctionParams { partition_by, order_by, .. } = &mut window.params;
            let order_by = order_by.iter_mut().map(|sort| &mut sort.expr);
            for expr in partition_by.iter_mut().chain(order_by).filter(|expr| compares(expr)) {
                *expr = stand_in(std::mem::take(expr), found);
            }
            let is_changed = found.len() > before;
            Transformed::new_transformed(Expr::WindowFunction(window), is_changed)
        }
        Expr::Alias(mut alias) => {
            let inner = sorted_by(std::mem::take(&mut *alias.expr), found);
            inner.update_data(|inner| {
                *alias.expr = inner;
                Expr::Alias(alias)
            })
        }
        expr if compares(&expr) => Transformed::yes(stand_in(expr, found)),
        expr => Transformed::no(expr),
    }
}

fn compares(expr: &Expr) -> bool {
    let is_one =
        |expr: &Expr| matches!(expr, Expr::BinaryExpr(BinaryExpr { op, .. }) if is_comparison(*op));
    expr.exists(|expr| Ok(is_one(expr))).unwrap_or(false)
}

/// The column that stands for a subquery, which goes to those that were `found`.
fn column_of(expr: Expr, found: &mut Vec<Expr>) -> Transformed<Expr> {
    let is_value = match &expr {
        Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
        _ => false,
    };
    if !is_condition(&expr) && !is_value {
        return Transformed::no(expr);
    }
    Transformed::new(stand_in(expr, found), true, TreeNodeRecursion::Jump)
}

fn stand_in(expr: Expr, found: &mut Vec<Expr>) -> Expr {
    let name = format!("{NAME}{}", found.len());
    found.push(expr.alias(&name));
    Expr::Column(Column::from_name(name))
}
