//! Subqueries of shapes that the planner would answer wrongly where they look at the row outside.
//!
//! It takes their conditions out of them and joins by these. What is counted, windowed, passed over
//! or joined within comes to something else then. So these become values, which are computed apart
//! (`apart`): EXISTS of a count, and IN of what all comparisons come to. What always gives one row
//! is spelled otherwise.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, JoinType, Result};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, Join, LogicalPlan, LogicalPlanBuilder, Operator, SkipType,
    Subquery, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::dependent::looks_outside;
use super::{gives_one_row, has_subquery, quantified};
use crate::rewriting::each_expression;

#[derive(Debug)]
pub(super) struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "shapes_of_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, schema| expr.transform_up(|expr| spelled(expr, schema)))
    }
}

/// A subquery as the planner answers it.
fn spelled(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Transformed { data: expr, transformed: is_changed, .. } = with_column(expr)?;
    match expr {
        Expr::Exists(Exists { subquery, negated }) if gives_one_row(&subquery.subquery) => {
            Ok(Transformed::yes(lit(!negated)))
        }
        Expr::Exists(Exists { subquery, negated }) if !is_taken_out(&of_rows(&subquery)) => {
            let rows = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
            let plan = rows.aggregate(Vec::<Expr>::new(), vec![count(lit(1_i64))])?.build()?;
            let found = Expr::ScalarSubquery(subquery.with_plan(Arc::new(plan)));
            let none = lit(0_i64);
            Ok(Transformed::yes(if negated { found.eq(none) } else { found.gt(none) }))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated })
            if gives_one_row(&subquery.subquery) =>
        {
            let value = Expr::ScalarSubquery(subquery);
            let compared = if negated { (*expr).not_eq(value) } else { (*expr).eq(value) };
            Ok(Transformed::yes(compared))
        }
        Expr::InSubquery(of) if !has_subquery(&of.expr) && !is_taken_out(&of.subquery.subquery) => {
            let is_negated = of.negated;
            let any = quantified::of_rows(quantified::of_in(of), schema)?;
            Ok(any.update_data(|any| if is_negated { Expr::Not(Box::new(any)) } else { any }))
        }
        expr => Ok(Transformed::new_transformed(expr, is_changed)),
    }
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

/// The rows of which EXISTS asks whether there are any: some of them are as good as all.
fn of_rows(subquery: &Subquery) -> Arc<LogicalPlan> {
    match subquery.subquery.as_ref() {
        LogicalPlan::Limit(limit) if matches!(limit.get_skip_type(), Ok(SkipType::Literal(0))) => {
            Arc::clone(&limit.input)
        }
        _ => Arc::clone(&subquery.subquery),
    }
}

/// Whether the planner takes all that looks outside out of rows that are sought among.
fn is_taken_out(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Distinct(Distinct::All(input)) => is_taken_out(input),
        plan => is_taken_out_by(plan, &|part| !has_subquery(part)),
    }
}

/// Whether the planner takes all that looks outside out of what is aggregated.
pub(super) fn is_taken_out_of_value(plan: &LogicalPlan) -> bool {
    is_taken_out_by(plan, &is_equality)
}

fn is_taken_out_by(plan: &LogicalPlan, is_condition: &dyn Fn(&Expr) -> bool) -> bool {
    if !looks_outside(plan) {
        return true;
    }
    match plan {
        LogicalPlan::Filter(filter) => {
            let parts = split_conjunction(&filter.predicate).into_iter();
            parts.filter(|part| part.contains_outer()).all(is_condition)
                && !gives_one_row(&filter.input)
                && is_taken_out_by(&filter.input, is_condition)
        }
        LogicalPlan::Projection(list) => {
            // Above a column of a subquery no other column is passed on that it could join by.
            !list.expr.iter().any(|expr| expr.contains_outer() || has_subquery(expr))
                && is_taken_out_by(&list.input, is_condition)
        }
        LogicalPlan::Aggregate(aggregate) => {
            let mut all = aggregate.group_expr.iter().chain(&aggregate.aggr_expr);
            !all.any(Expr::contains_outer) && is_taken_out_of_value(&aggregate.input)
        }
        LogicalPlan::Join(join) => {
            !looks_from_missing_side(join)
                && is_taken_out_by(&join.left, is_condition)
                && is_taken_out_by(&join.right, is_condition)
        }
        _ => false,
    }
}

/// Whether a condition is that a column is equal to what is outside.
fn is_equality(part: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = part else {
        return false;
    };
    let is_column = |side: &Expr| match side {
        Expr::Cast(cast) => matches!(*cast.expr, Expr::Column(_)),
        side => matches!(side, Expr::Column(_)),
    };
    let is_outer = |side: &Expr| !side.any_column_refs() && !has_subquery(side);
    (is_column(left) && is_outer(right)) || (is_outer(left) && is_column(right))
}

/// Whether a join looks at the row outside in its condition, or on a side of which rows may be
/// missing.
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
        _ => (false, false),
    };
    in_condition() || (left && looks_outside(&join.left)) || (right && looks_outside(&join.right))
}
