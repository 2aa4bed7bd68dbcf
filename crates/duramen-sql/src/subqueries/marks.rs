//! EXISTS and IN in lists of columns, which are marks of joins as they are within conditions.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Projection};
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::{has_condition, is_condition};

#[derive(Debug)]
pub(super) struct Rule;

impl OptimizerRule for Rule {
    fn name(&self) -> &'static str {
        "marks_of_subqueries"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Projection(list) if list.expr.iter().any(has_condition) => {
                marked(list, config)
            }
            plan => Ok(Transformed::no(plan)),
        })
    }
}

/// A list of columns over joins that mark each row.
fn marked(list: Projection, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    let Projection { expr, mut input, .. } = list;
    let names = NamePreserver::new_for_projection();
    let mut columns = Vec::with_capacity(expr.len());
    let mut is_changed = false;
    for expr in expr {
        let name = names.save(&expr);
        let marked = expr.transform_down(|expr| {
            if !is_condition(&expr) {
                return Ok(Transformed::no(expr));
            }
            let Some((mark, joined)) = mark(&expr, &input, config)? else {
                return Ok(Transformed::new(expr, false, TreeNodeRecursion::Jump));
            };
            input = joined;
            Ok(Transformed::new(mark, true, TreeNodeRecursion::Jump))
        })?;
        is_changed |= marked.transformed;
        columns.push(name.restore(marked.data));
    }
    let plan = LogicalPlan::Projection(Projection::try_new(columns, input)?);
    Ok(Transformed::new_transformed(plan, is_changed))
}

/// The mark that stands for a condition, and the join that it is of, as the planner makes them of a
/// condition that is a part of another one; nothing if it cannot.
fn mark(
    condition: &Expr,
    input: &Arc<LogicalPlan>,
    config: &dyn OptimizerConfig,
) -> Result<Option<(Expr, Arc<LogicalPlan>)>> {
    let part = condition.clone().is_true();
    let filter = LogicalPlan::Filter(Filter::try_new(part, Arc::clone(input))?);
    let joined = DecorrelatePredicateSubquery::new().rewrite(filter, config)?.data;
    let LogicalPlan::Projection(shown) = joined else { return Ok(None) };
    let LogicalPlan::Filter(Filter { predicate, input, .. }) = shown.input.as_ref() else {
        return Ok(None);
    };
    let Expr::IsTrue(mark) = predicate else { return Ok(None) };
    Ok((!is_condition(mark)).then(|| (mark.as_ref().clone(), Arc::clone(input))))
}
