//! Tables whose rows come one after the other from what the engine tells.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::SortExpr;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use duramen::Micros;

use crate::column_type::json_text;
use crate::failure::{external, query};
use crate::statement::Places;

/// Rows of a batch at most.
const ROWS_AT_ONCE: usize = 1_024;

/// Bytes of text after which a batch ends.
const TEXT_AT_ONCE: usize = 1 << 20;

/// The values of a row.
pub(crate) type Row = Vec<ScalarValue>;

/// Rows as they are told.
pub(crate) type Rows = Box<dyn Iterator<Item = duramen::Result<Row>> + Send>;

/// Batches as they are made.
pub(super) type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

type Begin = Box<dyn Fn() -> Result<Batches> + Send + Sync>;

/// Batches that begin anew each time they are asked for.
pub(super) struct Source {
    schema: SchemaRef,
    begin: Begin,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Source {
    pub(super) fn stream(
        schema: SchemaRef,
        begin: impl Fn() -> Result<Batches> + Send + Sync + 'static,
    ) -> Arc<dyn PartitionStream> {
        Arc::new(Self { schema, begin: Box::new(begin) })
    }
}

impl PartitionStream for Source {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches: Batches = match (self.begin)() {
            Ok(batches) => batches,
            Err(error) => Box::new(std::iter::once(Err(error))),
        };
        let stream = futures::stream::iter(batches);
        let stream = RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream);
        make_cooperative(Box::pin(stream))
    }
}

/// A table of what is told row by row, in an order.
pub(crate) fn table(
    schema: SchemaRef,
    order: Vec<SortExpr>,
    begin: impl Fn() -> duramen::Result<Rows> + Send + Sync + 'static,
) -> duramen::Result<StreamingTable> {
    let of_batches = Arc::clone(&schema);
    let source = Source::stream(Arc::clone(&schema), move || {
        let rows = begin().map_err(external)?;
        Ok(batches(Arc::clone(&of_batches), rows))
    });
    let table = StreamingTable::try_new(schema, vec![source]);
    let table = table.map_err(|error| query(error, &Places::default()))?;
    Ok(table.with_sort_order(order))
}

/// Gathers rows to batches; ends after an error.
fn batches(schema: SchemaRef, mut rows: Rows) -> Batches {
    let mut failed = false;
    Box::new(std::iter::from_fn(move || {
        let (mut columns, mut len, mut text) = (vec![Vec::new(); schema.fields().len()], 0, 0);
        while !failed && len < ROWS_AT_ONCE && text < TEXT_AT_ONCE {
            match rows.next() {
                None => break,
                Some(Err(error)) => {
                    failed = true;
                    return Some(Err(external(error)));
                }
                Some(Ok(row)) => {
                    text += row.iter().map(ScalarValue::size).sum::<usize>();
                    columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
                    len += 1;
                }
            }
        }
        let arrays = columns.into_iter().map(ScalarValue::iter_to_array);
        (len > 0)
            .then(|| Ok(RecordBatch::try_new(Arc::clone(&schema), arrays.collect::<Result<_>>()?)?))
    }))
}

/// A schema of names and types that may be null.
pub(super) fn schema<const N: usize>(fields: [(&str, DataType); N]) -> SchemaRef {
    let fields = fields.into_iter().map(|(name, of)| Field::new(name, of, true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A schema of which some columns have JSON text.
pub(super) fn with_json(schema: &Schema, names: &[&str]) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let is_json = names.contains(&field.name().as_str());
        if is_json { Arc::new(json_text(field.as_ref().clone())) } else { Arc::clone(field) }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

pub(super) fn integer(value: u64) -> ScalarValue {
    ScalarValue::Int64(Some(value.cast_signed()))
}

pub(super) fn text(value: Option<String>) -> ScalarValue {
    ScalarValue::Utf8View(value)
}

pub(super) fn time(value: Micros) -> ScalarValue {
    ScalarValue::TimestampMicrosecond(Some(value.0), Some("UTC".into()))
}
