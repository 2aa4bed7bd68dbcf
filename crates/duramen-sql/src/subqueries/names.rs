//! Names for the columns by which subqueries are joined.
//!
//! The planner takes conditions on the row outside out of a subquery, which is a table of one name
//! from then on: columns of two of its tables that are called alike were one. So the columns in
//! these conditions have names of their own. So has what is sought in, if it is no column of a
//! table: it would be there twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Subquery, lit};
use datafusion::optimizer::AnalyzerRule;

use super::has_subquery;
use crate::rewriting::each_expression;

/// What these names begin with.
const NAME: &str = "__compared_";

/// What the column is called that a value is sought in.
const SOUGHT_IN: &str = "__sought_in";

#[derive(Debug)]
pub(super) struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "names_in_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let numbers = AtomicUsize::new(0);
        each_expression(plan, |expr, _| expr.transform_up(|expr| named(expr, &numbers)))
    }
}

fn named(expr: Expr, numbers: &AtomicUsize) -> Result<Transformed<Expr>> {
    let with_names = |subquery: Subquery| -> Result<Subquery> {
        let plan = subquery.subquery.as_ref().clone();
        let plan = plan.transform_up(|plan| match plan {
            LogicalPlan::Filter(filter) => compared(filter, numbers),
            plan => Ok(Transformed::no(plan)),
        })?;
        Ok(subquery.with_plan(Arc::new(plan.data)))
    };
    Ok(match expr {
        Expr::ScalarSubquery(subquery) if !subquery.outer_ref_columns.is_empty() => {
            Transformed::yes(Expr::ScalarSubquery(with_names(subquery)?))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let looks_outside = !subquery.outer_ref_columns.is_empty();
            let subquery = if looks_outside { with_names(subquery)? } else { subquery };
            let subquery = with_own_column(subquery)?;
            Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated }))
        }
        Expr::Exists(Exists { subquery, negated }) if !subquery.outer_ref_columns.is_empty() => {
            let subquery = with_names(subquery)?;
            // What it selects may have columns that are called alike, too.
            let rows = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
            let subquery = subquery.with_plan(Arc::new(rows.project(vec![lit(1_i64)])?.build()?));
            Transformed::yes(Expr::Exists(Exists { subquery, negated }))
        }
        expr => Transformed::no(expr),
    })
}

/// A subquery whose column is one of a table, or has a name of its own.
fn with_own_column(subquery: Subquery) -> Result<Subquery> {
    let plan = &subquery.subquery;
    let is_of_table = |column: &&Column| column.relation.is_some();
    if let LogicalPlan::Projection(list) = plan.as_ref()
        && list.expr.iter().all(|expr| expr.column_refs().iter().all(is_of_table))
    {
        return Ok(subquery);
    }
    let columns = plan.schema().columns().into_iter();
    let columns: Vec<_> = columns.map(|column| Expr::Column(column).alias(SOUGHT_IN)).collect();
    let plan = LogicalPlanBuilder::from(Arc::clone(plan)).project(columns)?.build()?;
    Ok(subquery.with_plan(Arc::new(plan)))
}

/// A filter whose conditions on the row outside are of columns with names of their own.
fn compared(filter: Filter, numbers: &AtomicUsize) -> Result<Transformed<LogicalPlan>> {
    let parts = split_conjunction_owned(filter.predicate.clone()).into_iter();
    let (outer, others): (Vec<_>, Vec<_>) =
        parts.partition(|part| part.contains_outer() && !has_subquery(part));
    let Some(outer) = conjunction(outer) else {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    };
    let mut names = HashMap::<Column, String>::new();
    let outer = outer.transform_up(|expr| match expr {
        Expr::Column(column) => {
            let name = names
                .entry(column)
                .or_insert_with(|| format!("{NAME}{}", numbers.fetch_add(1, Ordering::Relaxed)));
            Ok(Transformed::yes(Expr::Column(Column::from_name(name.clone()))))
        }
        expr => Ok(Transformed::no(expr)),
    })?;
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_unstable_by(|(_, one), (_, other)| one.cmp(other));
    let shown = filter.input.schema().columns();
    let copies = names.into_iter().map(|(column, name)| Expr::Column(column).alias(name));
    let all = shown.iter().cloned().map(Expr::Column).chain(copies);
    let mut plan = LogicalPlanBuilder::from(filter.input.as_ref().clone());
    // Below, as what they become does not pass more columns on.
    if let Some(others) = conjunction(others) {
        plan = plan.filter(others)?;
    }
    let plan = plan.project(all)?.filter(outer.data)?;
    Ok(Transformed::yes(plan.project(shown.into_iter().map(Expr::Column))?.build()?))
}
