//! Subqueries in places where the planner does not have them.
//!
//! It joins subqueries that look at the row outside in conditions, and those that aggregate in
//! lists of columns also. Rules bring the others there, before it looks at them: what looks further
//! out looks at the query around it (`levels`), what it would
//! answer wrongly is spelled otherwise (`shapes`), as are comparisons with ANY and ALL
//! (`quantified`), one that stands for a value is aggregated (`one_value`) and may be NULL
//! (`no_value`), one in an aggregate, a window or an order is computed as a column before
//! (`columns`), EXISTS and IN in a list of columns are marks of a join (`marks`), which are unknown
//! where SQL has them so (`membership`), and what it joins by has names of its own (`names`). What
//! it cannot join is computed for all values that it looks at (`apart`, `dependent`).

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::optimizer::OptimizerRule;
use datafusion::prelude::SessionContext;

mod apart;
mod columns;
mod dependent;
mod levels;
mod marks;
mod membership;
mod names;
mod no_value;
mod one_value;
mod quantified;
mod shapes;

/// Adds the rules that come before what the planner checks.
pub(crate) fn register(context: &SessionContext) {
    context.add_analyzer_rule(Arc::new(levels::Rule));
    context.add_analyzer_rule(Arc::new(quantified::Rule));
    context.add_analyzer_rule(Arc::new(shapes::Rule));
    context.add_analyzer_rule(Arc::new(one_value::Rule));
    context.add_analyzer_rule(Arc::new(columns::Rule));
    context.add_analyzer_rule(Arc::new(membership::Rule));
    context.add_analyzer_rule(Arc::new(apart::Rule));
    context.add_analyzer_rule(Arc::new(names::Rule));
    context.add_analyzer_rule(Arc::new(no_value::Rule));
}

/// The rule that comes before the planner joins subqueries.
pub(crate) fn marks() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(marks::Rule)
}

/// Whether an expression is EXISTS or IN of a subquery.
fn is_condition(expr: &Expr) -> bool {
    matches!(expr, Expr::Exists(_) | Expr::InSubquery(_))
}

fn has_condition(expr: &Expr) -> bool {
    expr.exists(|expr| Ok(is_condition(expr))).unwrap_or(false)
}

fn has_subquery(expr: &Expr) -> bool {
    let is_subquery = |expr: &Expr| is_condition(expr) || matches!(expr, Expr::ScalarSubquery(_));
    expr.exists(|expr| Ok(is_subquery(expr))).unwrap_or(false)
}

/// Whether a plan aggregates all of its rows to one.
fn gives_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(Aggregate { group_expr, .. }) => group_expr.is_empty(),
        LogicalPlan::Projection(projection) => gives_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => gives_one_row(&alias.input),
        LogicalPlan::Sort(sort) => sort.fetch.is_none() && gives_one_row(&sort.input),
        _ => false,
    }
}
