//! Conditions with what is constant on the right.
//!
//! The planner turns comparisons so in filters, and not in joins. What it infers of `ON x.a = y.a
//! AND 5 = x.a` for `y` is then `5 = y.a` one time and `y.a = 5` the next, which it takes for two
//! conditions that exclude each other (`DataFusion` 55); so it does with `5 IN (SELECT a ..)`.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule that infers conditions, before which this one comes.
pub(crate) const INFERRING: &str = "push_down_filter";

#[derive(Debug)]
pub(crate) struct Rule;

impl OptimizerRule for Rule {
    fn name(&self) -> &'static str {
        "constants_of_joins"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Join(_) | LogicalPlan::Filter(_) => {
                plan.map_expressions(|expr| expr.transform_up(|expr| Ok(turned(expr))))
            }
            plan => Ok(Transformed::no(plan)),
        }
    }
}

fn turned(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if left.column_refs().is_empty() && !right.column_refs().is_empty() =>
        {
            let (turned, compared) = match op.swap() {
                Some(op) => (true, BinaryExpr { left: right, op, right: left }),
                None => (false, BinaryExpr { left, op, right }),
            };
            let expr = Expr::BinaryExpr(compared);
            if turned { Transformed::yes(expr) } else { Transformed::no(expr) }
        }
        expr => Transformed::no(expr),
    }
}
