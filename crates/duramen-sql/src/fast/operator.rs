//! The operator that asks the engine.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PhysicalExpr,
    PlanProperties,
};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use duramen::AggregateWork;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::task::spawn_blocking;

use super::lowering::FastPlan;
use super::output;
use super::rule::FastAggregate;
use super::run::Run;
use crate::failure;
use crate::session::threads;

/// Makes plans with the operator.
#[derive(Debug, Default)]
pub(crate) struct Planner;

/// An aggregate by the engine, or by the plan that it stands for.
#[derive(Debug)]
pub(crate) struct FastAggregateExec {
    fast: FastPlan,
    plain: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

#[async_trait]
impl ExtensionPlanner for Planner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &dyn Session,
        _: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<FastAggregate>() else { return Ok(None) };
        let [plain] = inputs else {
            return internal_err!("an aggregate of encoded columns stands for one plan");
        };
        let plain = Arc::clone(plain);
        Ok(Some(match node.fast.clone() {
            Some(fast) => Arc::new(FastAggregateExec::new(fast, plain)),
            None => plain,
        }))
    }
}

impl FastAggregateExec {
    /// What the engine is asked for.
    pub(super) fn plan(&self) -> &FastPlan {
        &self.fast
    }

    fn new(fast: FastPlan, plain: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(plain.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        Self { fast, plain, properties: Arc::new(properties), metrics }
    }
}

/// Ends a run that nobody waits for any more.
struct Ending(Arc<Run>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The answer of the engine; none if it has none.
async fn answer(
    fast: FastPlan,
    threads: usize,
    schema: SchemaRef,
    metrics: ExecutionPlanMetricsSet,
) -> Result<Option<RecordBatch>> {
    let FastPlan { rows, plan, outputs, .. } = fast;
    let threads = threads.clamp(1, rows.parts().max(1));
    let run = Arc::new(Run::new(rows, plan));
    let ending = Ending(Arc::clone(&run));
    let start = |_| {
        let run = Arc::clone(&run);
        spawn_blocking(move || run.work(|| Ok(())))
    };
    let tasks: Vec<_> = (0..threads).map(start).collect();
    let mut all = None;
    for task in tasks {
        let found = task.await.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let found = found.map_err(failure::external)?;
        match &mut all {
            None => all = Some(found),
            Some(all) => all.merge(found),
        }
    }
    drop(ending);
    let Some(all) = all else { return Ok(None) };
    note(&metrics, all.work());
    output::batch(&all, &outputs, &schema)
}

fn note(metrics: &ExecutionPlanMetricsSet, work: &AggregateWork) {
    let counted = [
        ("rows", work.rows),
        ("chunks", work.parts),
        ("pruned", work.pruned),
        ("summarised", work.summarised),
        ("decoded", work.decoded),
        ("bytes_read", work.bytes),
    ];
    for (name, count) in counted {
        let metric = MetricBuilder::new(metrics).counter(name, 0);
        metric.add(usize::try_from(count).unwrap_or(usize::MAX));
    }
}

impl ExecutionPlan for FastAggregateExec {
    fn name(&self) -> &'static str {
        "FastAggregate"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.plain]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([plain]) = <[Arc<dyn ExecutionPlan>; 1]>::try_from(children) else {
            return internal_err!("an aggregate of encoded columns stands for one plan");
        };
        Ok(Arc::new(Self::new(self.fast.clone(), plain)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let threads = threads();
        let (plain, schema) = (Arc::clone(&self.plain), self.schema());
        let found = answer(self.fast.clone(), threads, self.schema(), self.metrics.clone());
        let batches = stream::once(async move {
            let batches = match found.await? {
                Some(batch) => stream::iter([Ok(batch)]).boxed(),
                None => plain.execute(partition, context)?,
            };
            Ok::<_, DataFusionError>(batches)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches.try_flatten())))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for FastAggregateExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FastPlan { rows, plan, .. } = &self.fast;
        let (revision, chunks) = (rows.revision(), rows.parts());
        write!(f, "FastAggregate: revision={revision}, chunks={chunks}")?;
        write!(f, ", columns={}, keys={}", plan.columns.len(), plan.keys.len())
    }
}
