//! Rows with their place among all.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::StreamExt;

/// The column of the places.
const PLACE: &str = "$place";

/// Rows of a partition come behind all of those before it, of which there are fewer than this.
const PARTITION_BITS: u32 = 44;

/// The same rows, whose last column is their place.
#[derive(Debug)]
pub(super) struct Numbered {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl Numbered {
    pub(super) fn of(input: Arc<dyn ExecutionPlan>) -> Self {
        let schema = input.schema();
        let place = Arc::new(Field::new(PLACE, DataType::UInt64, false));
        let fields: Vec<_> = schema.fields().iter().cloned().chain([place]).collect();
        let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::new(schema)),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, properties: Arc::new(properties) }
    }

    /// The column of the places in rows that have them.
    pub(super) fn place(schema: &Schema) -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new(PLACE, schema.fields().len().saturating_sub(1)))
    }
}

fn numbered(batch: &RecordBatch, first: u64, schema: &SchemaRef) -> Result<RecordBatch> {
    let places = UInt64Array::from_iter_values((first..).take(batch.num_rows()));
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(places));
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

impl ExecutionPlan for Numbered {
    fn name(&self) -> &'static str {
        "Numbered"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
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
            .map_err(|_| internal_datafusion_err!("Numbered has one input"))?;
        Ok(Arc::new(Self::of(input)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let of_batches = Arc::clone(&schema);
        let mut next = (partition as u64) << PARTITION_BITS;
        let batches = self.input.execute(partition, context)?.map(move |batch| {
            let batch = batch?;
            let first = next;
            next += batch.num_rows() as u64;
            numbered(&batch, first, &of_batches)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

impl DisplayAs for Numbered {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Numbered")
    }
}
