//! Subqueries in places where the planner does not have them.
//!
//! It joins subqueries that look at the row outside in conditions, and those that aggregate in
//! lists of columns also. Rules bring the others there, before it looks at them: one that stands
//! for a value is aggregated (`one_value`), one in an aggregate, a window or an order is computed
//! as a column before (`columns`), and EXISTS and IN in a list of columns are marks of a join
//! (`marks`), which are unknown where SQL has them so (`membership`).

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::Expr;
use datafusion::optimizer::OptimizerRule;
use datafusion::prelude::SessionContext;

mod columns;
mod marks;
mod membership;
mod one_value;

/// Adds the rules that come before what the planner checks.
pub(crate) fn register(context: &SessionContext) {
    context.add_analyzer_rule(Arc::new(one_value::Rule));
    context.add_analyzer_rule(Arc::new(columns::Rule));
    context.add_analyzer_rule(Arc::new(membership::Rule));
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
