//! Joins for which NULL is equal to NULL, which no other equality may come into.
//!
//! `a IS NOT DISTINCT FROM b` makes one of a join. The planner then takes further conditions for
//! more of its keys, so that `c = d` would be true where both are NULL (55).

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The rules that take conditions for keys.
const OF_KEYS: [&str; 2] = ["extract_equijoin_predicate", "eliminate_cross_join"];

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Has these rules leave such joins as they are.
pub(crate) fn keep(rules: &mut [Rule]) {
    for rule in rules.iter_mut().filter(|rule| OF_KEYS.contains(&rule.name())) {
        *rule = Arc::new(Keeping(Arc::clone(rule)));
    }
}

#[derive(Debug)]
struct Keeping(Rule);

impl OptimizerRule for Keeping {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        // One that goes through plans by itself takes those apart that join rows of both sides.
        let is_kept = match self.apply_order() {
            Some(_) => is_one(&plan),
            None => plan.exists(|plan| Ok(is_one(plan) && is_inner(plan)))?,
        };
        if is_kept { Ok(Transformed::no(plan)) } else { self.0.rewrite(plan, config) }
    }
}

fn is_one(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull)
}

fn is_inner(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.join_type == JoinType::Inner)
}
