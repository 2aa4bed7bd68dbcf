//! Reads the columns of a table, a part of its rows at a time.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use duramen::{ColumnRows, Columns, Error, ErrorKind, ScanOptions};

use crate::column_type::TableColumn;
use crate::failure;
use crate::first_keys::Asked;
use crate::portion::{Most, portions};
use crate::session::portion_most;
use crate::sought::{self, KeyRange, Sought};
use crate::values::table_array;

/// Rows of a batch at most: as many as a part of a table has.
const ROWS_AT_ONCE: usize = 4_096;

/// Some columns of some parts of a table.
#[derive(Debug)]
pub(crate) struct TableScan {
    rows: Columns,
    columns: Arc<[TableColumn]>,
    /// For each thread its parts.
    parts: Vec<Vec<usize>>,
    limit: Option<usize>,
    /// What names the rows, if they are not all.
    sought: Option<&'static str>,
    /// The range of keys that they are filtered by.
    range: KeyRange,
    /// What errors call the table.
    name: Arc<str>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl TableScan {
    pub(crate) fn new(
        (rows, columns, name): (Columns, Vec<TableColumn>, &str),
        schema: SchemaRef,
        parts: Vec<usize>,
        limit: Option<usize>,
    ) -> Self {
        let properties = properties(schema, 1);
        let (metrics, name) = (ExecutionPlanMetricsSet::new(), name.into());
        let (columns, parts, range) = (columns.into(), vec![parts], <_>::default());
        Self { rows, columns, parts, limit, sought: None, range, name, properties, metrics }
    }

    /// The rows will be filtered by a range of keys.
    pub(crate) fn in_range(mut self, range: KeyRange) -> Self {
        self.range = range;
        self
    }

    /// Reads only the rows of the first keys, if a column has these, and no other condition is met
    /// by the rows than that their keys are in the range.
    pub(crate) fn of_first_keys(&self, asked: Asked, column: usize) -> Result<Option<Self>> {
        let is_key = matches!(self.columns.get(column), Some(TableColumn::Key(_)));
        let is_simple = self.sought.is_none() && self.limit.is_none();
        let is_little = asked.wanted <= sought::most(&self.rows);
        if !is_key || !is_simple || !is_little || asked.conditions != self.range.conditions {
            return Ok(None);
        }
        let (limit, reverse) = (Some(asked.wanted as u64), asked.is_reverse);
        let range = ScanOptions { limit, reverse, ..self.range.keys.clone() };
        let rows = self.rows.with_first_keys(&range).map_err(failure::external)?;
        let Some(rows) = rows else { return Ok(None) };
        let parts = (0..rows.parts()).collect();
        let of = (rows, self.columns.to_vec(), &*self.name);
        let mut scan = Self::new(of, self.schema(), parts, None).over(self.parts.len());
        scan.sought = Some("first keys");
        Ok(Some(scan))
    }

    /// Reads only the rows that are sought.
    pub(crate) fn of_sought(mut self, sought: Sought) -> Self {
        self.sought = Some(sought.by);
        self.rows = sought.rows;
        self
    }

    /// Shares the parts among threads; neighbours stay together.
    pub(crate) fn over(mut self, threads: usize) -> Self {
        let parts = self.parts.concat();
        let each = parts.len().div_ceil(threads.max(1)).max(1);
        self.parts = parts.chunks(each).map(<[usize]>::to_vec).collect();
        if self.parts.is_empty() {
            self.parts.push(Vec::new());
        }
        self.properties = properties(self.schema(), self.parts.len());
        self
    }
}

fn properties(schema: SchemaRef, threads: usize) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(threads),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

/// What is left to be read by one thread.
struct Reading {
    rows: Columns,
    columns: Arc<[TableColumn]>,
    name: Arc<str>,
    schema: SchemaRef,
    parts: std::vec::IntoIter<usize>,
    /// What is left of a part: of the versions of its records there may be any number.
    rest: ColumnRows,
    /// Of what was read last.
    portions: std::vec::IntoIter<RecordBatch>,
    left: usize,
    output: BaselineMetrics,
    bytes_read: Count,
    most: Most,
}

impl Reading {
    fn next(&mut self) -> Option<Result<RecordBatch>> {
        while self.left > 0 {
            if let Some(batch) = self.portions.next() {
                let batch = batch.slice(0, batch.num_rows().min(self.left));
                self.left -= batch.num_rows();
                self.output.record_output(batch.num_rows());
                return Some(Ok(batch));
            }
            if self.rest.is_empty() {
                let part = self.parts.next()?;
                match self.rows.rows(part) {
                    Ok(rows) => {
                        self.rest = rows;
                        self.count_read();
                    }
                    Err(error) => {
                        self.left = 0;
                        return Some(Err(failure::external(error)));
                    }
                }
            }
            match self.read().and_then(|batch| Ok(portions(batch, self.most)?)) {
                Ok(portions) => self.portions = portions.into_iter(),
                Err(error) => {
                    self.left = 0;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    fn read(&mut self) -> Result<RecordBatch> {
        let rest = self.rest.split_off(ROWS_AT_ONCE);
        let rows = std::mem::replace(&mut self.rest, rest);
        let arrays = self.columns.iter().map(|column| table_array(&self.rows, &rows, column));
        let arrays = arrays.collect::<duramen::Result<_>>().map_err(|error| self.failed(error))?;
        self.count_read();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?)
    }

    /// A value that is not what is declared is one of this table.
    fn failed(&self, error: Error) -> DataFusionError {
        failure::external(match error.kind() {
            ErrorKind::Invalid => error.in_context(format_args!("table {:?}", self.name)),
            _ => error,
        })
    }

    fn count_read(&self) {
        let bytes = usize::try_from(self.rows.bytes_read()).unwrap_or(usize::MAX);
        self.bytes_read.add(bytes.saturating_sub(self.bytes_read.value()));
    }
}

impl ExecutionPlan for TableScan {
    fn name(&self) -> &'static str {
        "TableScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let parts = self.parts.get(partition).cloned().unwrap_or_default();
        let reading = Reading {
            rows: self.rows.counting(),
            columns: Arc::clone(&self.columns),
            name: Arc::clone(&self.name),
            schema: self.schema(),
            parts: parts.into_iter(),
            rest: ColumnRows::default(),
            portions: Vec::new().into_iter(),
            left: self.limit.unwrap_or(usize::MAX),
            output: BaselineMetrics::new(&self.metrics, partition),
            bytes_read: MetricBuilder::new(&self.metrics).counter("bytes_read", partition),
            most: portion_most(&context),
        };
        let batches = futures::stream::unfold(reading, async |mut reading| {
            reading.next().map(|batch| (batch, reading))
        });
        let stream = RecordBatchStreamAdapter::new(self.schema(), batches);
        Ok(make_cooperative(Box::pin(stream)))
    }
}

impl DisplayAs for TableScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read = self.parts.iter().map(Vec::len).sum::<usize>();
        let schema = self.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "TableScan: columns=[{}], revision={}", names.join(", "), self.rows.revision())?;
        match self.sought {
            Some(by) => write!(f, ", sought by {by}, row_groups={read}")?,
            None => write!(f, ", row_groups={read}, pruned={}", self.rows.parts() - read)?,
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}
