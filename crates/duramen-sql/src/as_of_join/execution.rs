//! Merges two inputs in the order of what is equal and of time.
//!
//! Invariants:
//! - both come in the same order, so that each is read once, and of the right one is kept the row
//!   that a row of the left one may match next, and those that the batch under way has;
//! - a row in which what is compared is NULL matches nothing.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use datafusion::arrow::compute::interleave;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, LexRequirement, OrderingRequirements,
    PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::{StreamExt, stream};

use super::node::Nearest;

/// Batches of the right input that are kept for one batch of the left one.
const BATCHES_KEPT: usize = 16;

/// What rows of each side are ordered by: what is equal, and then the time.
type Orders = (Vec<PhysicalSortExpr>, Vec<PhysicalSortExpr>);

/// The join, as it is run.
#[derive(Debug)]
pub(super) struct AsOfJoinExec {
    inputs: (Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>),
    orders: Orders,
    nearest: Nearest,
    properties: Arc<PlanProperties>,
}

impl AsOfJoinExec {
    pub(super) fn new(
        inputs: (Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>),
        orders: Orders,
        nearest: Nearest,
        schema: SchemaRef,
    ) -> Result<Self> {
        if orders.0.len() != orders.1.len() || orders.0.is_empty() {
            return internal_err!("the sides of an ASOF JOIN are compared by pairs");
        }
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self { inputs, orders, nearest, properties: Arc::new(properties) })
    }
}

impl DisplayAs for AsOfJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AsOfJoinExec: ")?;
        for (at, (left, right)) in self.orders.0.iter().zip(&self.orders.1).enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{left} with {right}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for AsOfJoinExec {
    fn name(&self) -> &'static str {
        "AsOfJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.inputs.0, &self.inputs.1]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition; 2]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let required = |order: &Vec<PhysicalSortExpr>| {
            let order = LexOrdering::new(order.clone())?;
            Some(OrderingRequirements::new(LexRequirement::from(order)))
        };
        vec![required(&self.orders.0), required(&self.orders.1)]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for order in self.orders.0.iter().chain(&self.orders.1) {
            if visit(&order.expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([left, right]) = <[_; 2]>::try_from(children) else {
            return internal_err!("an ASOF JOIN has two inputs");
        };
        let (orders, schema) = (self.orders.clone(), self.schema());
        Ok(Arc::new(Self::new((left, right), orders, self.nearest, schema)?))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let left = self.inputs.0.execute(0, Arc::clone(&context))?;
        let right = self.inputs.1.execute(0, context)?;
        let compared = Compared::new(&self.orders, &self.inputs)?;
        let merge = Merge {
            nothing: nothing(&right.schema()),
            schema: self.schema(),
            takes_equal: self.nearest.takes_equal,
            compared,
            left: Side::new(left, self.orders.0.clone()),
            right: Side::new(right, self.orders.1.clone()),
            kept: None,
        };
        let batches = stream::try_unfold(merge, async |mut merge| {
            Ok(merge.next().await?.map(|batch| (batch, merge)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

/// A row of NULLs.
fn nothing(schema: &SchemaRef) -> Vec<ArrayRef> {
    schema.fields().iter().map(|field| new_null_array(field.data_type(), 1)).collect()
}

/// Makes what is compared of rows.
struct Compared {
    /// What is equal and the time.
    order: RowConverter,
    /// What is equal.
    keys: RowConverter,
}

/// An input and where in it we are.
struct Side {
    input: SendableRecordBatchStream,
    order: Vec<PhysicalSortExpr>,
    at: Option<At>,
}

/// A row of a batch.
struct At {
    batch: Arc<Batch>,
    order: Rows,
    /// Where nothing that is compared is NULL.
    is_whole: Vec<bool>,
    row: usize,
}

/// A batch, with what is equal in rows that match.
struct Batch {
    columns: Vec<ArrayRef>,
    /// None if there is nothing.
    keys: Option<Rows>,
}

/// The row of the right input that was passed last.
struct Kept {
    batch: Arc<Batch>,
    row: usize,
}

struct Merge {
    left: Side,
    right: Side,
    compared: Compared,
    takes_equal: bool,
    kept: Option<Kept>,
    nothing: Vec<ArrayRef>,
    schema: SchemaRef,
}

impl Compared {
    fn new(
        orders: &Orders,
        inputs: &(Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>),
    ) -> Result<Self> {
        let schema = inputs.1.schema();
        let field = |order: &PhysicalSortExpr| {
            let of = order.expr.data_type(&schema)?;
            Ok(SortField::new_with_options(of, order.options))
        };
        let fields = orders.1.iter().map(field).collect::<Result<Vec<_>>>()?;
        let keys = fields[..fields.len() - 1].to_vec();
        Ok(Self { order: RowConverter::new(fields)?, keys: RowConverter::new(keys)? })
    }

    fn at(&self, order: &[PhysicalSortExpr], batch: &RecordBatch) -> Result<At> {
        let rows = batch.num_rows();
        let values = |order: &PhysicalSortExpr| order.expr.evaluate(batch)?.into_array(rows);
        let values = order.iter().map(values).collect::<Result<Vec<_>>>()?;
        let is_whole = (0..rows).map(|row| values.iter().all(|values| values.is_valid(row)));
        let is_whole = is_whole.collect();
        let keys = match &values[..values.len() - 1] {
            [] => None,
            keys => Some(self.keys.convert_columns(keys)?),
        };
        let batch = Arc::new(Batch { columns: batch.columns().to_vec(), keys });
        Ok(At { batch, order: self.order.convert_columns(&values)?, is_whole, row: 0 })
    }
}

impl At {
    fn is_at_end(&self) -> bool {
        self.row >= self.is_whole.len()
    }

    /// Whether the row matches one that it is not before.
    fn matches(&self, kept: &Kept) -> bool {
        let keys = self.batch.keys.as_ref().zip(kept.batch.keys.as_ref());
        let are_equal = keys.is_none_or(|(left, right)| left.row(self.row) == right.row(kept.row));
        self.is_whole[self.row] && are_equal
    }
}

impl Side {
    fn new(input: SendableRecordBatchStream, order: Vec<PhysicalSortExpr>) -> Self {
        Self { input, order, at: None }
    }

    /// The row that comes next; none at the end.
    async fn peek(&mut self, compared: &Compared) -> Result<Option<&mut At>> {
        while self.at.as_ref().is_none_or(At::is_at_end) {
            let Some(batch) = self.input.next().await.transpose()? else {
                self.at = None;
                return Ok(None);
            };
            self.at = Some(compared.at(&self.order, &batch)?);
        }
        Ok(self.at.as_mut())
    }
}

impl Merge {
    /// The next rows of the left input, with what they match.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(first) = self.left.peek(&self.compared).await? else { return Ok(None) };
        let (first, batch) = (first.row, Arc::clone(&first.batch));
        let (mut kept, mut picked) = (Vec::<Arc<Batch>>::new(), Vec::new());
        while let Some(left) = self.left.at.as_mut().filter(|at| !at.is_at_end())
            && kept.len() < BATCHES_KEPT
        {
            if left.is_whole[left.row] {
                let compared = (&*left, &self.compared);
                advance(&mut self.right, &mut self.kept, compared, self.takes_equal).await?;
            }
            let found = self.kept.as_ref().filter(|kept| left.matches(kept));
            left.row += 1;
            picked.push(match found {
                None => (0, 0),
                Some(found) => {
                    if !kept.last().is_some_and(|last| Arc::ptr_eq(last, &found.batch)) {
                        kept.push(Arc::clone(&found.batch));
                    }
                    (kept.len(), found.row)
                }
            });
        }
        let mut made: Vec<_> =
            batch.columns.iter().map(|column| column.slice(first, picked.len())).collect();
        for (at, nothing) in self.nothing.iter().enumerate() {
            let found = kept.iter().map(|batch| &batch.columns[at]);
            let sources: Vec<&dyn Array> =
                std::iter::once(nothing).chain(found).map(|column| &**column).collect();
            made.push(interleave(&sources, &picked)?);
        }
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), made)?))
    }
}

/// Passes the rows of the right input that are not behind one of the left.
async fn advance(
    right: &mut Side,
    kept: &mut Option<Kept>,
    (left, compared): (&At, &Compared),
    takes_equal: bool,
) -> Result<()> {
    let wanted = left.order.row(left.row);
    while let Some(at) = right.peek(compared).await? {
        let is_behind = match at.order.row(at.row).cmp(&wanted) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => !takes_equal,
            std::cmp::Ordering::Greater => true,
        };
        if is_behind {
            break;
        }
        if at.is_whole[at.row] {
            *kept = Some(Kept { batch: Arc::clone(&at.batch), row: at.row });
        }
        at.row += 1;
    }
    Ok(())
}
