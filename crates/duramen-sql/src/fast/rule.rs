//! Finds the aggregates that the engine knows.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::optimizer::{Optimizer, OptimizerConfig, OptimizerRule};

use super::lowering::FastPlan;
use crate::{join_conditions, null_joins, orders, subqueries, zeros};

/// The rule that distinct counts are taken apart by, which hides them.
const BEFORE: &str = "single_distinct_aggregation_to_group_by";

/// The rule that joins subqueries in conditions.
const JOINS: &str = "decorrelate_predicate_subquery";

/// An aggregate and what the engine is asked for in its place.
#[derive(Debug, Clone)]
pub(super) struct FastAggregate {
    /// What the engine is asked; none if the plan has become another one.
    pub(super) fast: Option<FastPlan>,
    pub(super) plain: LogicalPlan,
}

#[derive(Debug)]
struct Rule;

/// Rules that take fields of objects out of expressions before joins: what they are called by then
/// is found nowhere, or twice (55).
const OF_FIELDS: [&str; 2] = ["extract_leaf_expressions", "push_down_leaf_projections"];

/// The rules of `DataFusion` and that of the fast path.
pub(crate) fn with_rule() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    rules.retain(|rule| !OF_FIELDS.contains(&rule.name()));
    null_joins::keep(&mut rules);
    let at = rules.iter().position(|rule| rule.name() == BEFORE);
    let at = at.unwrap_or(rules.len());
    let own: [Arc<dyn OptimizerRule + Send + Sync>; 2] = [Arc::new(Rule), zeros::of_distinct()];
    rules.splice(at..at, own);
    let inferring = rules.iter().position(|rule| rule.name() == join_conditions::INFERRING);
    rules.insert(inferring.unwrap_or(0), Arc::new(join_conditions::Rule));
    let joins = rules.iter().position(|rule| rule.name() == JOINS).unwrap_or(0);
    rules.insert(joins, subqueries::marks());
    rules.push(orders::rule());
    rules
}

impl OptimizerRule for Rule {
    fn name(&self) -> &'static str {
        "fast_aggregate"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        plan.transform_down_with_subqueries(|plan| match plan {
            // What it stands for is looked at no more.
            LogicalPlan::Extension(extension) if extension.node.as_any().is::<FastAggregate>() => {
                let plan = LogicalPlan::Extension(extension);
                Ok(Transformed::new(plan, false, TreeNodeRecursion::Jump))
            }
            LogicalPlan::Aggregate(aggregate) => {
                let Some(fast) = FastPlan::of(&aggregate) else {
                    return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
                };
                let node =
                    FastAggregate { fast: Some(fast), plain: LogicalPlan::Aggregate(aggregate) };
                let plan = LogicalPlan::Extension(Extension { node: Arc::new(node) });
                Ok(Transformed::new(plan, true, TreeNodeRecursion::Jump))
            }
            plan => Ok(Transformed::no(plan)),
        })
    }
}

impl UserDefinedLogicalNodeCore for FastAggregate {
    fn name(&self) -> &'static str {
        "FastAggregate"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.plain]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.plain.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FastAggregate")
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Ok([plain]) = <[LogicalPlan; 1]>::try_from(inputs) else {
            return internal_err!("an aggregate of encoded columns stands for one plan");
        };
        // A condition without columns is pushed down here: it is no more what the engine is asked.
        let is_filtered = matches!(plain, LogicalPlan::Filter(_));
        let fast = self.fast.clone().filter(|_| !is_filtered);
        Ok(Self { fast, plain })
    }
}

/// The plan that it stands for says all of it.
impl PartialEq for FastAggregate {
    fn eq(&self, other: &Self) -> bool {
        self.plain == other.plain
    }
}

impl Eq for FastAggregate {}

impl PartialOrd for FastAggregate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.plain.partial_cmp(&other.plain)
    }
}

impl Hash for FastAggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.plain.hash(state);
    }
}
