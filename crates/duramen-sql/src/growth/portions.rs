//! Columns of which as many rows are computed at a time as fit.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{
    DataFusionError, Result, internal_datafusion_err, resources_datafusion_err,
};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, replace_children_if_necessary,
};
use futures::StreamExt;

use super::value_bytes;

/// Computes columns of functions whose values may be long for as many rows at a time as fit.
#[derive(Debug)]
pub(crate) struct Rule;

impl PhysicalOptimizerRule for Rule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let portioned = |plan: Arc<dyn ExecutionPlan>| {
            let is_long = plan.downcast_ref::<ProjectionExec>().is_some_and(|projection| {
                projection.expr().iter().any(|column| bytes_max(&column.expr).is_some())
            });
            if !is_long {
                return Ok(Transformed::no(plan));
            }
            let portions: Arc<dyn ExecutionPlan> = Arc::new(Portions::of(plan));
            Ok(Transformed::yes(portions))
        };
        plan.transform_up(portioned).data()
    }

    fn name(&self) -> &'static str {
        "portions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The most bytes that a column may have, if it is made by such a function.
fn bytes_max(column: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    let mut found = None;
    let visited = column.apply(|expr| {
        let function = expr.downcast_ref::<ScalarFunctionExpr>();
        found = function.and_then(|function| super::bytes_max(function.fun()));
        Ok(if found.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.ok().and(found)
}

/// A projection, a portion of each batch at a time.
#[derive(Debug)]
struct Portions {
    projection: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
}

impl Portions {
    fn of(projection: Arc<dyn ExecutionPlan>) -> Self {
        Self { projection, metrics: ExecutionPlanMetricsSet::new() }
    }
}

/// The rows of one partition.
struct Reading {
    projection: Arc<dyn ExecutionPlan>,
    /// The most bytes of the long columns together, for each of them.
    bytes_max: Vec<Option<usize>>,
    input: SendableRecordBatchStream,
    /// What is left of a batch.
    rest: RecordBatch,
    /// How many rows are tried at once.
    rows: usize,
    output: BaselineMetrics,
}

impl Reading {
    async fn next(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            let left = self.rest.num_rows();
            if left == 0 {
                match self.input.next().await? {
                    Ok(batch) => self.rest = batch,
                    Err(error) => return Some(Err(error)),
                }
                continue;
            }
            let rows = self.rows.min(left);
            match self.project(&self.rest.slice(0, rows)) {
                Ok(batch) => {
                    self.rest = self.rest.slice(rows, left - rows);
                    self.rows = self.rows.saturating_add(rows / 8 + 1);
                    self.output.record_output(rows);
                    return Some(Ok(batch));
                }
                Err(error) if rows > 1 && is_too_much(&error) => self.rows = rows / 2,
                Err(error) => {
                    self.rest = self.rest.slice(0, 0);
                    return Some(Err(error));
                }
            }
        }
    }

    /// The columns of some rows, or that the long ones are too much for more than one row.
    fn project(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let _timer = self.output.elapsed_compute().timer();
        let mut bytes = 0;
        let columns = of(&self.projection)?.expr().iter().zip(&self.bytes_max);
        let columns = columns.map(|(column, bytes_max)| {
            let values = column.expr.evaluate(rows)?.into_array(rows.num_rows())?;
            if let Some(bytes_max) = *bytes_max {
                bytes += value_bytes(&values);
                if bytes > bytes_max && rows.num_rows() > 1 {
                    return Err(resources_datafusion_err!("long columns have {bytes} bytes"));
                }
            }
            Ok(values)
        });
        let columns = columns.collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        Ok(RecordBatch::try_new_with_options(self.projection.schema(), columns, &options)?)
    }
}

fn of(projection: &Arc<dyn ExecutionPlan>) -> Result<&ProjectionExec> {
    let of = projection.downcast_ref::<ProjectionExec>();
    of.ok_or_else(|| internal_datafusion_err!("portions are those of a projection"))
}

fn is_too_much(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

impl ExecutionPlan for Portions {
    fn name(&self) -> &'static str {
        "Portions"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.projection.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.projection.maintains_input_order()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.projection.children()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.projection.apply_expressions(visit)
    }

    fn with_new_children(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projection = Arc::clone(&self.projection);
        let projection = replace_children_if_necessary(projection, inputs)?;
        Ok(Arc::new(Self::of(projection)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let of = of(&self.projection)?;
        let bytes_max = of.expr().iter().map(|column| bytes_max(&column.expr)).collect();
        let input = of.input().execute(partition, context)?;
        let rest = RecordBatch::new_empty(input.schema());
        let projection = Arc::clone(&self.projection);
        let output = BaselineMetrics::new(&self.metrics, partition);
        let reading = Reading { projection, bytes_max, input, rest, rows: usize::MAX, output };
        let batches = futures::stream::unfold(reading, async |mut reading| {
            reading.next().await.map(|batch| (batch, reading))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for Portions {
    fn fmt_as(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.projection.downcast_ref::<ProjectionExec>() {
            Some(projection) => projection.fmt_as(form, f),
            None => Ok(()),
        }
    }
}
