//! `IN (SELECT ..)` that is unknown where SQL has it so.
//!
//! Beside other conditions the planner makes a mark of it, which is false where nothing is equal,
//! also if NULL is compared. Where that matters, which is wherever it is negated, it becomes
//! unknown by a condition of its own.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Subquery, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::quantified::looking_in;

#[derive(Debug)]
pub(super) struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "unknown_in_subquery"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Filter(filter) if has_subquery(&filter.predicate) => {
                // One that is a condition by itself is a join that knows of NULL, of one pair of
                // columns.
                let conditions = split_conjunction_owned(filter.predicate).into_iter();
                let conditions = conditions.map(|condition| match condition {
                    Expr::InSubquery(of) if of.negated && is_of_matches(&of) => {
                        without_match(of, filter.input.schema())
                    }
                    Expr::InSubquery(_) => Ok(condition),
                    condition => condition_of(condition, filter.input.schema()),
                });
                let all = conjunction(conditions.collect::<Result<Vec<_>>>()?);
                let filter = Filter::try_new(all.unwrap_or_else(|| lit(true)), filter.input)?;
                Ok(Transformed::yes(LogicalPlan::Filter(filter)))
            }
            LogicalPlan::Projection(list) if list.expr.iter().any(has_subquery) => {
                let names = NamePreserver::new_for_projection();
                let columns = list.expr.into_iter().map(|expr| {
                    let name = names.save(&expr);
                    Ok(name.restore(known(expr, list.input.schema())?))
                });
                let columns = columns.collect::<Result<Vec<_>>>()?;
                let list = Projection::try_new(columns, list.input)?;
                Ok(Transformed::yes(LogicalPlan::Projection(list)))
            }
            plan => Ok(Transformed::no(plan)),
        })
        .map(|transformed| transformed.data)
    }
}

/// Whether a subquery is sought in by what its rows are compared with there. One that does not look
/// at the row is joined by what is sought, if that is none but a constant.
fn is_of_matches(of: &InSubquery) -> bool {
    !of.subquery.outer_ref_columns.is_empty() || of.expr.column_refs().is_empty()
}

/// `x NOT IN s` as a condition: `NOT EXISTS (s WHERE (x = it) IS NOT FALSE)`.
fn without_match(of: InSubquery, schema: &DFSchema) -> Result<Expr> {
    let InSubquery { expr, subquery, .. } = of;
    let sought = looking_in(*expr, schema)?;
    let found = Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0)));
    with_match(sought.eq(found).is_not_false(), &subquery, true)
}

/// Whether a subquery has a row of which something is true, or has none.
fn with_match(condition: Expr, subquery: &Subquery, negated: bool) -> Result<Expr> {
    let matches = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).filter(condition)?;
    let plan = Arc::new(matches.build()?);
    let outer_ref_columns = plan.all_out_ref_exprs();
    let subquery = Subquery { outer_ref_columns, ..subquery.with_plan(plan) };
    Ok(Expr::Exists(Exists { subquery, negated }))
}

fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(matches!(expr, Expr::InSubquery(_)))).unwrap_or(false)
}

/// A part of a filter, where unknown is as good as false.
fn condition_of(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let (left, right) = (condition_of(*left, schema)?, condition_of(*right, schema)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
        }
        Expr::InSubquery(InSubquery { negated: false, .. }) => Ok(expr),
        expr => known(expr, schema),
    }
}

/// An expression each subquery of which is unknown where it should be.
fn known(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let known = expr.transform_down(|expr| match expr {
        Expr::InSubquery(of) => {
            Ok(Transformed::new(unknown(of, schema)?, true, TreeNodeRecursion::Jump))
        }
        expr => Ok(Transformed::no(expr)),
    })?;
    Ok(known.data)
}

/// `x IN s OR ((x IS NULL AND EXISTS s OR EXISTS (s WHERE it IS NULL)) AND NULL)`, or its opposite.
fn unknown(of: InSubquery, schema: &DFSchema) -> Result<Expr> {
    let is_of_matches = is_of_matches(&of);
    let InSubquery { expr, subquery, negated } = of;
    let rows = || LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
    let exists = |rows: LogicalPlanBuilder| -> Result<Expr> {
        // Each row is joined with all of them.
        let is_alone = subquery.outer_ref_columns.is_empty();
        let rows = if is_alone { rows.limit(0, Some(1))? } else { rows };
        let subquery = subquery.with_plan(Arc::new(rows.build()?));
        Ok(Expr::Exists(Exists { subquery, negated: false }))
    };
    let found = Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0)));
    let has_nulls = exists(rows().filter(found.clone().is_null())?)?;
    let compares_null = expr.clone().is_null().and(exists(rows())?).or(has_nulls);
    // What it is a part of may be simplified to NOT IN alone, which is joined otherwise.
    let is_equal = if is_of_matches {
        with_match(looking_in(*expr, schema)?.eq(found), &subquery, false)?
    } else {
        Expr::InSubquery(InSubquery { expr, subquery, negated: false })
    };
    let is_in = is_equal.or(compares_null.and(lit(ScalarValue::Boolean(None))));
    Ok(if negated { Expr::Not(Box::new(is_in)) } else { is_in })
}
