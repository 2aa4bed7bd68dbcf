//! What rules that change expressions of plans have in common.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};

/// Changes the expressions of a plan and its subqueries, each of which is given with the columns
/// that it is computed from. What they are called stays.
pub(crate) fn each_expression(
    plan: LogicalPlan,
    of: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|plan| {
        let schema = match &plan {
            LogicalPlan::TableScan(scan) => scan.projected_schema.as_ref().clone(),
            plan => merge_schema(&plan.inputs()),
        };
        let names = NamePreserver::new(&plan);
        let plan = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(of(expr, &schema)?.update_data(|expr| name.restore(expr)))
        })?;
        // What may be NULL, and of an aggregate more, is told anew.
        if plan.transformed { plan.map_data(LogicalPlan::recompute_schema) } else { Ok(plan) }
    });
    Ok(rewritten?.data)
}

/// Whether an operator compares two values.
pub(crate) fn is_comparison(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}
