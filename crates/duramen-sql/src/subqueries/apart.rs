//! Subqueries that look at the row outside where the planner cannot take that out of them.
//!
//! It does so for equalities in conditions below at most one aggregate. Others are computed for
//! each of the values that they look at, and joined to the rows that have these.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection};
use datafusion::optimizer::AnalyzerRule;

use super::dependent::{Outer, looked_at};
use super::shapes::is_taken_out_of_value;
use crate::unnest;

/// What the names of their values begin with.
const NAME: &str = "__value_";

#[derive(Debug)]
pub(super) struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "subqueries_apart"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let numbers = AtomicUsize::new(0);
        let apart = plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Filter(filter) if has_such(&filter.predicate) => {
                filtered(filter, &numbers)
            }
            LogicalPlan::Projection(list) if list.expr.iter().any(has_such) => {
                let names = NamePreserver::new_for_projection();
                let mut rows = list.input.as_ref().clone();
                let columns = list.expr.into_iter().map(|expr| {
                    let name = names.save(&expr);
                    Ok(name.restore(with_values(expr, &mut rows, &numbers)?))
                });
                let columns = columns.collect::<Result<Vec<_>>>()?;
                let list = Projection::try_new(columns, Arc::new(rows))?;
                Ok(Transformed::yes(LogicalPlan::Projection(list)))
            }
            LogicalPlan::Join(mut join) if join.join_type == JoinType::Inner => {
                let Some(condition) = join.filter.take_if(|filter| has_value(filter)) else {
                    return beside(join, &numbers);
                };
                // It is one of the rows that are joined.
                let rows = beside(join, &numbers)?.data;
                filtered(Filter::try_new(condition, Arc::new(rows))?, &numbers)
            }
            LogicalPlan::Join(join) => beside(join, &numbers),
            plan => Ok(Transformed::no(plan)),
        })?;
        Ok(apart.data)
    }
}

/// A filter over rows that have the values of its subqueries.
fn filtered(filter: Filter, numbers: &AtomicUsize) -> Result<Transformed<LogicalPlan>> {
    let shown = filter.input.schema().columns().into_iter().map(Expr::Column);
    let mut rows = filter.input.as_ref().clone();
    let condition = with_values(filter.predicate, &mut rows, numbers)?;
    let rows = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(rows))?);
    Ok(Transformed::yes(LogicalPlanBuilder::from(rows).project(shown)?.build()?))
}

/// Whether there is a subquery in an expression that stands for a value and looks outside.
fn has_value(expr: &Expr) -> bool {
    let is_value = |expr: &Expr| match expr {
        Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
        _ => false,
    };
    expr.exists(|expr| Ok(is_value(expr))).unwrap_or(false)
}

/// Whether there is a subquery in an expression that stands for a value and is computed apart.
fn has_such(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(is_such(expr))).unwrap_or(false)
}

fn is_such(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarSubquery(subquery) => {
            !subquery.outer_ref_columns.is_empty() && !is_taken_out_of_value(&subquery.subquery)
        }
        _ => false,
    }
}

/// An expression with columns for its subqueries, which the rows that it is computed of get.
fn with_values(expr: Expr, rows: &mut LogicalPlan, numbers: &AtomicUsize) -> Result<Expr> {
    let with = expr.transform_down(|expr| match expr {
        Expr::ScalarSubquery(subquery) if is_such(&Expr::ScalarSubquery(subquery.clone())) => {
            let columns = looked_at(&subquery.subquery);
            if !columns.iter().all(|column| rows.schema().has_column(column)) {
                return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
            }
            let outer = Outer::new(rows, &columns, numbers);
            let (values, of) = outer.rows(&subquery.subquery)?;
            let value = Column::from(subquery.subquery.schema().qualified_field(0));
            let name = outer.name(NAME);
            let shown = of.iter().cloned().map(Expr::Column);
            let shown = std::iter::once(Expr::Column(value).alias(&name)).chain(shown);
            let values = LogicalPlanBuilder::from(values).project(shown.collect::<Vec<_>>())?;
            let joined = LogicalPlanBuilder::from(rows.clone()).join_detailed(
                values.build()?,
                JoinType::Left,
                (columns, of),
                None,
                NullEquality::NullEqualsNull,
            )?;
            *rows = joined.build()?;
            let value = Expr::Column(Column::from_name(name));
            Ok(Transformed::new(value, true, TreeNodeRecursion::Jump))
        }
        expr => Ok(Transformed::no(expr)),
    })?;
    Ok(with.data)
}

/// A join with a `LATERAL` query, whose rows are those for the values that it looks at.
fn beside(join: Join, numbers: &AtomicUsize) -> Result<Transformed<LogicalPlan>> {
    let is_beside = |plan: &LogicalPlan| Ok(matches!(plan, LogicalPlan::Subquery(_)));
    let columns = looked_at(&join.right);
    let is_known = columns.iter().all(|column| join.left.schema().has_column(column));
    if columns.is_empty()
        || !is_known
        || !matches!(join.join_type, JoinType::Inner | JoinType::Left)
        || !join.right.exists(is_beside)?
        // Arrays of each row are unnested beside it.
        || unnest::unnested(&join)?.is_some()
    {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let (right, of) = Outer::new(&join.left, &columns, numbers).rows(&join.right)?;
    let on = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
    let on = on.chain(join.filter.clone()).reduce(Expr::and);
    let shown = join.schema.columns().into_iter().map(Expr::Column);
    let rows = LogicalPlanBuilder::from(join.left.as_ref().clone())
        .join_detailed(right, join.join_type, (columns, of), on, NullEquality::NullEqualsNull)?
        .project(shown)?
        .build()?;
    Ok(Transformed::yes(rows))
}
