//! Subqueries in aggregates, windows and orders, each of which becomes a column of what these read.
//!
//! So do comparisons that are sorted by: the planner loses the order of what it sorts by them (55).

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
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
        let changed = expr.transform_down(|expr| Ok(column_of(expr, is_passed_on, &mut found)))?;
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

/// The column that stands for a subquery, or for a comparison where rows are sorted; it goes to
/// those that were `found`.
fn column_of(expr: Expr, is_sorted: bool, found: &mut Vec<Expr>) -> Transformed<Expr> {
    let is_value = match &expr {
        Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
        _ => false,
    };
    let is_comparison = match &expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => is_sorted && is_comparison(*op),
        _ => false,
    };
    if !is_condition(&expr) && !is_value && !is_comparison {
        return Transformed::no(expr);
    }
    let name = format!("{NAME}{}", found.len());
    found.push(expr.alias(&name));
    let column = Expr::Column(Column::from_name(name));
    Transformed::new(column, true, TreeNodeRecursion::Jump)
}
