//! Subqueries of shapes that the planner would answer wrongly where they look at the row outside.
//!
//! It takes their conditions out of them and joins by these. What is counted, windowed, passed over
//! or joined within comes to something else then. What always gives one row is spelled otherwise;
//! the rest is refused.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, not_impl_err};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{
    Expr, Join, LogicalPlan, LogicalPlanBuilder, SkipType, Subquery, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::gives_one_row;
use crate::rewriting::each_expression;

#[derive(Debug)]
pub(super) struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "shapes_of_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, _| expr.transform_up(spelled))
    }
}

/// A subquery as the planner answers it.
fn spelled(expr: Expr) -> Result<Transformed<Expr>> {
    let Transformed { data: expr, transformed: is_changed, .. } = with_column(expr)?;
    let expr = match expr {
        Expr::Exists(Exists { subquery, negated }) if gives_one_row(&subquery.subquery) => {
            return Ok(Transformed::yes(lit(!negated)));
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated })
            if gives_one_row(&subquery.subquery) =>
        {
            check(&subquery)?;
            let value = Expr::ScalarSubquery(subquery);
            let compared = if negated { (*expr).not_eq(value) } else { (*expr).eq(value) };
            return Ok(Transformed::yes(compared));
        }
        expr => expr,
    };
    match &expr {
        Expr::Exists(Exists { subquery, .. }) | Expr::InSubquery(InSubquery { subquery, .. }) => {
            check(subquery)?;
            check_rows(subquery)?;
        }
        Expr::ScalarSubquery(subquery) => check(subquery)?,
        _ => {}
    }
    Ok(Transformed::new_transformed(expr, is_changed))
}

/// Gives EXISTS of a subquery without columns one: its join is called as they are.
fn with_column(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::Exists(Exists { subquery, negated }) = &expr else {
        return Ok(Transformed::no(expr));
    };
    let LogicalPlan::Projection(list) = subquery.subquery.as_ref() else {
        return Ok(Transformed::no(expr));
    };
    if !list.expr.is_empty() {
        return Ok(Transformed::no(expr));
    }
    let rows = LogicalPlanBuilder::from(Arc::clone(&list.input)).project(vec![lit(1_i64)])?;
    let subquery = subquery.with_plan(Arc::new(rows.build()?));
    Ok(Transformed::yes(Expr::Exists(Exists { subquery, negated: *negated })))
}

fn looks_outside(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}

/// Refuses what conditions cannot be taken out of.
fn check(subquery: &Subquery) -> Result<()> {
    subquery.subquery.apply(|plan| {
        match plan {
            LogicalPlan::Window(window) if looks_outside(&window.input) => {
                return not_impl_err!(
                    "OVER (..) in a subquery that looks at the row outside: compute it in one \
                     behind FROM that does not, and join that"
                );
            }
            LogicalPlan::Join(join) if looks_from_missing_side(join) => {
                return not_impl_err!(
                    "an outer join in a subquery that looks at the row outside from where rows may \
                     be missing: say what is to be equal behind WHERE"
                );
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Whether an outer join looks at the row outside on a side of which rows may be missing, or to
/// tell whether they are.
fn looks_from_missing_side(join: &Join) -> bool {
    let in_condition = || {
        let filter = join.filter.iter();
        let mut of = join.on.iter().flat_map(|(left, right)| [left, right]).chain(filter);
        of.any(Expr::contains_outer)
    };
    let (left, right) = match join.join_type {
        JoinType::Left => (false, true),
        JoinType::Right => (true, false),
        JoinType::Full => (true, true),
        _ => return false,
    };
    in_condition() || (left && looks_outside(&join.left)) || (right && looks_outside(&join.right))
}

/// Refuses what tells how many rows there are, where it is asked for any.
fn check_rows(subquery: &Subquery) -> Result<()> {
    if subquery.outer_ref_columns.is_empty() {
        return Ok(());
    }
    let mut plan = subquery.subquery.as_ref();
    loop {
        plan = match plan {
            LogicalPlan::Projection(list) => &list.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Sort(sort) => &sort.input,
            LogicalPlan::Distinct(distinct) => distinct.input(),
            LogicalPlan::Limit(limit) => {
                if !matches!(limit.get_skip_type(), Ok(SkipType::Literal(0))) {
                    return not_impl_err!(
                        "OFFSET in EXISTS or IN that looks at the row outside: compare a count"
                    );
                }
                &limit.input
            }
            LogicalPlan::Filter(filter) if gives_one_row(&filter.input) => {
                return not_impl_err!(
                    "HAVING without GROUP BY in EXISTS or IN that looks at the row outside: \
                     compare what it computes, as in (SELECT count(*) ..) > 1"
                );
            }
            _ => return Ok(()),
        };
    }
}
