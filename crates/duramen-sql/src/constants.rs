//! What is the same in all rows of an input, and not in all of what an operator makes of it.
//!
//! `DataFusion` (55) knows columns to be constant, as behind `WHERE a = 2`, also above an outer
//! join that adds rows where they are NULL, and above grouping sets; it leaves them out of orders
//! there, so that rows came in another order than was asked for, and windows had wrong partitions.
//! Above an inner join it forgets some of them once it has relied on them, and gives the query up.
//! So nothing is known to be constant, equal or in order where something is constant in what they
//! read, nor behind a filter that says it of more than columns.
//!
//! Of a union it knows that a column has one value in each part, takes that for no matter of order,
//! and then drops rows by the order of another part: `SELECT a, 1 AS k FROM t UNION ALL SELECT c, 2
//! FROM t ORDER BY k DESC, a LIMIT 2`. So nothing is known of what a union gives either.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, Statistics, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    replace_children_if_necessary,
};

/// Hides what is constant, before anything looks at orders.
#[derive(Debug)]
pub(crate) struct Rule;

impl PhysicalOptimizerRule for Rule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            if plan.is::<UnionExec>() || has_computed(&*plan) {
                return Ok(Transformed::yes(Arc::new(AnyRows::new(plan))));
            }
            if !is_misled(&*plan) {
                return Ok(Transformed::no(plan));
            }
            let children = plan.children().into_iter().cloned().map(AnyRows::of).collect();
            replace_children_if_necessary(plan, children).map(Transformed::yes)
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "constants"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a filter says something of what is computed: of `a / 3 = 1` it is concluded that rows
/// are in the order of `a`.
fn has_computed(plan: &dyn ExecutionPlan) -> bool {
    let is_computed = |expr: &Arc<dyn PhysicalExpr>| !expr.children().is_empty();
    let Some(filter) = plan.downcast_ref::<FilterExec>() else { return false };
    let known = filter.properties().eq_properties.eq_group();
    known.iter().any(|class| class.iter().any(is_computed))
}

/// Whether what is known of the inputs of an operator would be wrong of its rows.
fn is_misled(plan: &dyn ExecutionPlan) -> bool {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return !aggregate.group_expr().is_single();
    }
    let hash_join = plan.downcast_ref().map(|join: &HashJoinExec| *join.join_type());
    let loops = plan.downcast_ref().map(|join: &NestedLoopJoinExec| *join.join_type());
    matches!(
        hash_join.or(loops),
        Some(JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full)
    )
}

/// The same rows, of whose values and order nothing is known.
#[derive(Debug)]
pub(crate) struct AnyRows {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl AnyRows {
    /// The input itself if nothing is known of its values anyway.
    fn of(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        if input.equivalence_properties().eq_group().is_empty() {
            return input;
        }
        Arc::new(Self::new(input))
    }

    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let known = EquivalenceProperties::new(input.schema());
        let properties = PlanProperties::clone(input.properties()).with_eq_properties(known);
        Self { input, properties: Arc::new(properties) }
    }
}

impl ExecutionPlan for AnyRows {
    fn name(&self) -> &'static str {
        "AnyRows"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(inputs)
            .map_err(|_| internal_datafusion_err!("AnyRows has one input"))?;
        Ok(Arc::new(Self::new(input)))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let unknown = || Arc::new(Statistics::new_unknown(&self.schema()));
        Ok(inputs.first().cloned().unwrap_or_else(unknown))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}

impl DisplayAs for AnyRows {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyRows")
    }
}
