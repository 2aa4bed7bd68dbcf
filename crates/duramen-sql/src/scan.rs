//! Reads the columns of a table, a part of its rows at a time.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use duramen::{ColumnRows, Columns, Error, ErrorKind, Order, Query, ScanOptions, Ties};

use crate::column_type::{Column, ColumnType, TableColumn, TableColumns};
use crate::failure;
use crate::first_rows::Asked;
use crate::joined::Joined;
use crate::passing::Place;
use crate::portion::{Most, portions};
use crate::session::portion_most;
use crate::sought::{self, KeyRange, Sought};
use crate::values::table_array;

/// Rows of a batch at most: as many as a part of a table has.
const ROWS_AT_ONCE: usize = 4_096;

/// Rows for one that is wanted, and beside these, that may be read for the first of an order as
/// they are alike with the last one.
const ROWS_PER_WANTED: usize = 16;
const TIES_MAX: usize = 1_000;

/// Some columns of some parts of a table.
#[derive(Debug)]
pub(crate) struct TableScan {
    rows: Columns,
    columns: Arc<[TableColumn]>,
    /// For each thread its parts.
    parts: Vec<Vec<usize>>,
    limit: Option<usize>,
    /// What a join has for the rows to be sought by.
    joined: Option<Arc<Joined>>,
    /// What names the rows, if they are not all.
    sought: Option<&'static str>,
    /// What they will be filtered by.
    filters: Vec<Expr>,
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
        let (columns, parts, filters) = (columns.into(), vec![parts], Vec::new());
        let (joined, sought) = (None, None);
        Self { rows, columns, parts, limit, joined, sought, filters, name, properties, metrics }
    }

    /// The rows will be filtered by these, which have not told which are sought.
    pub(crate) fn filtered(mut self, filters: &[Expr]) -> Self {
        self.filters = filters.to_vec();
        self
    }

    /// Reads only the first rows of an order, if keys or an index have it, and the rows have to
    /// meet no other condition than these can tell.
    pub(crate) fn of_first(&self, asked: &Asked) -> Result<Option<Self>> {
        let is_simple = self.sought.is_none() && self.limit.is_none();
        if !is_simple || asked.wanted > sought::most(&self.rows) {
            return Ok(None);
        }
        let found = match asked.places.first() {
            Some((Some(place), by)) if self.is_key(place) => {
                self.first_keys(asked, by.descending)?.map(|rows| (rows, "first keys"))
            }
            _ => self.first_in_order(asked)?.map(|rows| (rows, "order of an index")),
        };
        let Some((rows, by)) = found else { return Ok(None) };
        let parts = (0..rows.parts()).collect();
        let of = (rows, self.columns.to_vec(), &*self.name);
        let mut scan = Self::new(of, self.schema(), parts, None).over(self.parts.len());
        scan.sought = Some(by);
        Ok(Some(scan))
    }

    fn is_key(&self, place: &Place) -> bool {
        matches!(self.columns.get(place.column), Some(TableColumn::Key(_)))
    }

    /// The column of values at a place.
    fn value_at(&self, place: &Place) -> Option<&Column> {
        let Some(TableColumn::Value(column)) = self.columns.get(place.column) else { return None };
        place.fields.iter().try_fold(column, |column, name| column.member(name))
    }

    /// The rows of the first keys: no two have one, so that what is ordered by next decides
    /// nothing.
    fn first_keys(&self, asked: &Asked, reverse: bool) -> Result<Option<Columns>> {
        let range = KeyRange::of(&self.filters, &self.rows);
        if range.conditions != asked.conditions {
            return Ok(None);
        }
        let range = ScanOptions { limit: Some(asked.wanted as u64), reverse, ..range.keys };
        self.rows.with_first_keys(&range).map_err(failure::external)
    }

    fn first_in_order(&self, asked: &Asked) -> Result<Option<Columns>> {
        let orders = self.orders(asked);
        if orders.is_empty() {
            return Ok(None);
        }
        let are_decided = orders.len() < asked.places.len();
        let most = asked.wanted.saturating_mul(ROWS_PER_WANTED).saturating_add(TIES_MAX);
        let ties = Ties { are_decided, most: most.min(sought::most(&self.rows)) };
        let query = Query::new().limit(asked.wanted as u64);
        let query = orders.into_iter().fold(query, Query::order_by);
        let table = TableColumns { columns: self.columns.to_vec(), schema: self.schema() };
        let exact = sought::exact(&self.filters, (&self.rows, &table));
        if exact.len() != asked.conditions {
            return Ok(None);
        }
        let query = exact.into_iter().fold(query, Query::filter);
        match self.rows.with_first_of(&query, ties) {
            // Conditions of SQL may have more levels than filters of the engine.
            Err(error) if error.kind() == ErrorKind::Invalid => Ok(None),
            found => found.map_err(failure::external),
        }
    }

    /// The first of the orders that are asked for, as far as queries of records have them.
    fn orders(&self, asked: &Asked) -> Vec<Order> {
        let mut orders = Vec::new();
        for (place, by) in &asked.places {
            let column = place.as_ref().and_then(|place| self.value_at(place));
            let order = column.and_then(|column| sought::order(column, *by, &self.rows));
            orders.extend(order.clone());
            // Decimals that are one float are told apart there, so that no order is behind them.
            let is_float = column.is_some_and(|column| matches!(column.kind, ColumnType::Float));
            if order.is_none() || is_float {
                break;
            }
        }
        orders
    }

    /// Reads only the rows that are sought.
    pub(crate) fn of_sought(mut self, sought: Sought) -> Self {
        self.sought = Some(sought.by);
        self.rows = sought.rows;
        self
    }

    /// By how many values at a place rows may be sought that a join has; none if they are not
    /// found by it.
    pub(crate) fn most_joined(&self, place: &Place) -> Result<Option<usize>> {
        if self.sought.is_some() || self.limit.is_some() || self.joined.is_some() {
            return Ok(None);
        }
        let path = self.value_at(place).and_then(|column| self.rows.record_path(column.path));
        let is_found = match path {
            Some(path) => self.rows.is_indexed(&path).map_err(failure::external)?,
            None => self.is_key(place),
        };
        Ok(is_found.then(|| sought::most(&self.rows)))
    }

    /// Reads only the rows that are joined, if these are few.
    pub(crate) fn of_joined(&self, joined: Joined) -> Self {
        let of = (self.rows.clone(), self.columns.to_vec(), &*self.name);
        let mut scan = Self::new(of, self.schema(), Vec::new(), None);
        scan.parts.clone_from(&self.parts);
        scan.properties = Arc::clone(&self.properties);
        scan.joined = Some(Arc::new(joined));
        scan
    }

    /// Shares the parts among threads; neighbours stay together.
    pub(crate) fn over(mut self, threads: usize) -> Self {
        self.parts = shares(&self.parts.concat(), threads);
        self.properties = properties(self.schema(), self.parts.len());
        self
    }
}

/// Parts for each of some threads, one of which there is at least.
fn shares(parts: &[usize], threads: usize) -> Vec<Vec<usize>> {
    let each = parts.len().div_ceil(threads.max(1)).max(1);
    let mut shares: Vec<_> = parts.chunks(each).map(<[usize]>::to_vec).collect();
    if shares.is_empty() {
        shares.push(Vec::new());
    }
    shares
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
    /// What may say that fewer rows are read, and the share of this thread among so many.
    joined: Option<(Arc<Joined>, usize, usize)>,
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
            if let Some((joined, share, threads)) = self.joined.take()
                && let Err(error) = self.seek(&joined, share, threads)
            {
                self.left = 0;
                return Some(Err(error));
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

    /// Reads a share of the rows that are joined, if these are sought.
    fn seek(&mut self, joined: &Joined, share: usize, threads: usize) -> Result<()> {
        let columns = self.columns.to_vec();
        let table = TableColumns { columns, schema: Arc::clone(&self.schema) };
        if let Some(rows) = joined.rows((&self.rows, &table))? {
            let parts: Vec<_> = (0..rows.parts()).collect();
            let parts = shares(&parts, threads).get(share).cloned();
            self.parts = parts.unwrap_or_default().into_iter();
            self.rows = rows.counting();
        }
        Ok(())
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

    /// How many rows there are about, for the planner of joins: some may have been deleted, and
    /// filters are not counted.
    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let parts = self.parts.iter().enumerate();
        let wanted = parts.filter(|(index, _)| args.partition().is_none_or(|of| of == *index));
        let rows = wanted.flat_map(|(_, parts)| parts).map(|part| self.rows.rows_max(*part));
        let rows = rows.sum::<usize>().min(self.limit.unwrap_or(usize::MAX));
        let mut statistics = Statistics::new_unknown(&self.schema());
        statistics.num_rows = Precision::Inexact(rows);
        Ok(Arc::new(statistics))
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
            joined: self.joined.clone().map(|joined| (joined, partition, self.parts.len())),
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
        if let Some(joined) = &self.joined {
            write!(f, ", {joined}")?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}
