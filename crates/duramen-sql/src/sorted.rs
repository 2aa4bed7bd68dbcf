//! Rows that are sorted have texts of their own.
//!
//! A batch of what a merge gives shares the texts of all runs, and one of what a join gives those
//! of all of its smaller side. A sort that holds some such batches, and whoever holds some of what
//! it gives, would count all texts with each of them, and keep them in memory.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, replace_children_if_necessary,
};
use futures::{StreamExt, stream};

use crate::portion::{self, Most};
use crate::scan::TableScan;
use crate::session::portion_most;

/// Has what whole sorts take and give own its texts.
#[derive(Debug)]
pub(crate) struct Rule;

impl PhysicalOptimizerRule for Rule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let own = |plan: Arc<dyn ExecutionPlan>| {
            let Some(sort) = plan.downcast_ref::<SortExec>() else {
                return Ok(Transformed::no(plan));
            };
            // The first rows of an order are copied one by one already.
            if sort.fetch().is_some() || !has_texts(&plan) {
                return Ok(Transformed::no(plan));
            }
            let input = Arc::clone(sort.input());
            // What is read is cut as it comes.
            let is_read = input.downcast_ref::<TableScan>().is_some();
            let input = if is_read { input } else { OwnTexts::of(input) };
            let sort = replace_children_if_necessary(plan, vec![input])?;
            Ok(Transformed::yes(OwnTexts::of(sort)))
        };
        plan.transform_up(own).data()
    }

    fn name(&self) -> &'static str {
        "sorted"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether batches of a plan may share texts.
fn has_texts(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = plan.schema();
    let mut kinds = schema.fields().iter().map(|field| field.data_type());
    kinds.any(|kind| *kind == DataType::Utf8View || kind.is_nested())
}

/// The same batches without texts that are not in them.
#[derive(Debug)]
struct OwnTexts {
    input: Arc<dyn ExecutionPlan>,
}

impl OwnTexts {
    fn of(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { input })
    }
}

/// The same rows without the texts of others, in portions if they are wide.
fn owned(batch: RecordBatch, most: Most) -> Result<Vec<RecordBatch>> {
    if batch.get_array_memory_size() <= most.bytes {
        return Ok(vec![batch]);
    }
    Ok(portion::portions(portion::owned(&batch)?, most)?)
}

impl ExecutionPlan for OwnTexts {
    fn name(&self) -> &'static str {
        "OwnTexts"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
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
            .map_err(|_| internal_datafusion_err!("OwnTexts has one input"))?;
        Ok(Self::of(input))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let most = portion_most(&context);
        let batches = self.input.execute(partition, context)?.flat_map(move |batch| {
            let owned = batch.and_then(|batch| owned(batch, most));
            let owned = owned.map_or_else(
                |error| vec![Err(error)],
                |batches| batches.into_iter().map(Ok).collect(),
            );
            stream::iter(owned)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

impl DisplayAs for OwnTexts {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnTexts")
    }
}
