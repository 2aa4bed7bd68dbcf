//! Conditions of joins with what is constant on the right.
//!
//! The planner turns comparisons so in filters, and not in joins. What it infers of `ON x.a = y.a
//! AND 5 = x.a` for `y` is then `5 = y.a` one time and `y.a = 5` the next, which it takes for two
//! conditions that exclude each other (`DataFusion` 55).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionContext;

/// Adds the rule.
pub(crate) fn register(context: &SessionContext) {
    context.add_analyzer_rule(Arc::new(Rule));
}

#[derive(Debug)]
struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "constants_of_joins"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Join(_) => plan.map_expressions(|expr| expr.transform_up(turned)),
            plan => Ok(Transformed::no(plan)),
        })
        .data()
    }
}

fn turned(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if left.column_refs().is_empty() && !right.column_refs().is_empty() =>
        {
            match op.swap() {
                Some(op) => {
                    let turned = BinaryExpr { left: right, op, right: left };
                    Ok(Transformed::yes(Expr::BinaryExpr(turned)))
                }
                None => Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
            }
        }
        expr => Ok(Transformed::no(expr)),
    }
}
