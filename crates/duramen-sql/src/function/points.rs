//! The points of series as a table, by series and time.

use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, Float64Array, PrimitiveArray, RecordBatch, StringViewArray, StringViewBuilder,
    UInt8Array, new_null_array,
};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef, TimestampMicrosecondType};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    BinaryExpr, Expr, Operator, TableProviderFilterPushDown, TableType,
};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::streaming::StreamingTableExec;
use duramen::{
    DatabaseSnapshot, Error, ErrorKind, Micros, Points, SeriesFilter, SeriesInfo, Values,
};

use super::rows::{Batches, Source, schema};
use crate::column_type::timestamp;
use crate::failure::external;

/// The series that a pattern takes, as of one commit.
#[derive(Debug)]
pub(crate) struct PointsTable {
    snapshot: DatabaseSnapshot,
    /// Rising.
    names: Vec<String>,
    schema: SchemaRef,
}

/// What a filter says of a column.
enum Asked {
    Names(Vec<String>),
    Times(Bound<Micros>, Bound<Micros>),
}

/// The series that have names of a pattern, and labels.
pub(super) fn filter(glob: &str, labels: &[&str]) -> duramen::Result<SeriesFilter> {
    let label = |text: &&str| {
        let label = text.split_once('=');
        let label = label.map(|(name, value)| (name.to_owned(), value.to_owned()));
        label.ok_or_else(|| {
            let message = format!("{text:?} is no label: give one such as 'site=north'");
            Error::new(ErrorKind::Invalid, message)
        })
    };
    let labels = labels.iter().map(label).collect::<duramen::Result<_>>()?;
    Ok(SeriesFilter { labels, ..SeriesFilter::glob(glob) })
}

impl PointsTable {
    pub(crate) fn new(snapshot: DatabaseSnapshot, found: Vec<SeriesInfo>) -> Self {
        let schema = schema([
            ("tag", DataType::Utf8View),
            ("timestamp", timestamp()),
            ("value", DataType::Float64),
            ("text", DataType::Utf8View),
            ("quality", DataType::UInt8),
        ]);
        Self { snapshot, names: found.into_iter().map(|info| info.name).collect(), schema }
    }

    /// The points of some series in a span of time.
    fn batches(
        &self,
        names: &[String],
        span: (Bound<Micros>, Bound<Micros>),
    ) -> impl Fn() -> Result<Batches> + Send + Sync + 'static {
        let (snapshot, schema) = (self.snapshot.clone(), Arc::clone(&self.schema));
        let names: Arc<[String]> = names.into();
        move || {
            let (snapshot, schema) = (snapshot.clone(), Arc::clone(&schema));
            let names = Arc::clone(&names);
            let all = (0..names.len()).flat_map(move |at| {
                let (name, schema) = (names[at].clone(), Arc::clone(&schema));
                let points = snapshot.series(&name).and_then(|series| series.range(span));
                let (points, failed) = match points {
                    Ok(points) => (Some(points), None),
                    Err(error) => (None, Some(Err(external(error)))),
                };
                let batches = points.into_iter().flatten();
                let batches =
                    batches.map(move |points| batch(&schema, &name, points.map_err(external)?));
                batches.chain(failed)
            });
            Ok(Box::new(all))
        }
    }
}

fn batch(schema: &SchemaRef, name: &str, points: Points) -> Result<RecordBatch> {
    let len = points.len();
    let (times, values, qualities) = points.into_columns();
    let quality = (0..len).map(|at| qualities.get(at).0);
    let quality = UInt8Array::from_iter_values(quality);
    let floats = |values: &Values| (0..len).map(|at| values.get_f64(at)).collect::<Float64Array>();
    let (value, text): (ArrayRef, ArrayRef) = match values {
        Values::String(texts) => {
            let texts = (0..len).map(|at| texts.get(at)).collect::<StringViewArray>();
            (new_null_array(&DataType::Float64, len), Arc::new(texts))
        }
        Values::F64(values) => {
            (Arc::new(Float64Array::from(values)), new_null_array(&DataType::Utf8View, len))
        }
        values => (Arc::new(floats(&values)), new_null_array(&DataType::Utf8View, len)),
    };
    let times = PrimitiveArray::<TimestampMicrosecondType>::from(times).with_timezone("UTC");
    let columns: Vec<ArrayRef> =
        vec![repeated(name, len)?, Arc::new(times), value, text, Arc::new(quality)];
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// A text as often as that, held once.
fn repeated(text: &str, len: usize) -> Result<ArrayRef> {
    let mut builder = StringViewBuilder::with_capacity(len);
    let block = builder.append_block(Buffer::from(text.as_bytes()));
    let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
    for _ in 0..len {
        builder.try_append_view(block, 0, bytes)?;
    }
    Ok(Arc::new(builder.finish()))
}

impl Asked {
    /// What a filter says, if it is that simple.
    fn of(filter: &Expr) -> Option<Self> {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
                (Expr::Column(column), Expr::Literal(value, _)) => {
                    Self::compared(column.name(), *op, value)
                }
                (Expr::Literal(value, _), Expr::Column(column)) => {
                    Self::compared(column.name(), op.swap()?, value)
                }
                _ => None,
            },
            Expr::Between(between) if !between.negated => {
                match (&*between.expr, &*between.low, &*between.high) {
                    (Expr::Column(column), Expr::Literal(low, _), Expr::Literal(high, _))
                        if column.name() == "timestamp" =>
                    {
                        let (low, high) = (time(low)?, time(high)?);
                        Some(Self::Times(Bound::Included(low), Bound::Included(high)))
                    }
                    _ => None,
                }
            }
            Expr::InList(list) if !list.negated => match &*list.expr {
                Expr::Column(column) if column.name() == "tag" => {
                    let name = |value: &Expr| match value {
                        Expr::Literal(value, _) => value.try_as_str()?.map(ToOwned::to_owned),
                        _ => None,
                    };
                    list.list.iter().map(name).collect::<Option<_>>().map(Self::Names)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn compared(column: &str, op: Operator, value: &ScalarValue) -> Option<Self> {
        use Bound::{Excluded, Included, Unbounded};
        match (column, op) {
            ("tag", Operator::Eq) => Some(Self::Names(vec![value.try_as_str()??.to_owned()])),
            ("timestamp", op) => {
                let time = time(value)?;
                let (low, high) = match op {
                    Operator::Eq => (Included(time), Included(time)),
                    Operator::Lt => (Unbounded, Excluded(time)),
                    Operator::LtEq => (Unbounded, Included(time)),
                    Operator::Gt => (Excluded(time), Unbounded),
                    Operator::GtEq => (Included(time), Unbounded),
                    _ => return None,
                };
                Some(Self::Times(low, high))
            }
            _ => None,
        }
    }
}

fn time(value: &ScalarValue) -> Option<Micros> {
    match value {
        ScalarValue::TimestampMicrosecond(time, _) => time.map(Micros),
        _ => None,
    }
}

/// What is in both of two spans.
fn within(
    (low, high): (Bound<Micros>, Bound<Micros>),
    (other_low, other_high): (Bound<Micros>, Bound<Micros>),
) -> (Bound<Micros>, Bound<Micros>) {
    // Of an excluded and an included bound at one time the excluded one holds.
    let place = |bound: &Bound<Micros>| match *bound {
        Bound::Unbounded => None,
        Bound::Included(time) => Some((time, false)),
        Bound::Excluded(time) => Some((time, true)),
    };
    let low = if place(&other_low) > place(&low) { other_low } else { low };
    let end = |bound: &Bound<Micros>| place(bound).map(|(time, is_out)| (time, !is_out));
    let is_less = match (end(&other_high), end(&high)) {
        (Some(other), Some(high)) => other < high,
        (Some(_), None) => true,
        (None, _) => false,
    };
    (low, if is_less { other_high } else { high })
}

/// The orders in which rows of these columns come: by tag and time, and by time alone if they are
/// those of one tag.
fn orders(schema: &Schema, is_of_one: bool) -> Vec<LexOrdering> {
    let rising = |name: &str| {
        let at = schema.index_of(name).ok()?;
        let options = SortOptions { descending: false, nulls_first: false };
        Some(PhysicalSortExpr::new(Arc::new(Column::new(name, at)), options))
    };
    let by_tag: Vec<_> = ["tag", "timestamp"].into_iter().map_while(rising).collect();
    let by_time: Vec<_> = rising("timestamp").filter(|_| is_of_one).into_iter().collect();
    [by_tag, by_time].into_iter().filter_map(LexOrdering::new).collect()
}

#[async_trait]
impl TableProvider for PointsTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let push = |filter: &&Expr| match Asked::of(filter) {
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(push).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut names = self.names.clone();
        let mut span = (Bound::Unbounded, Bound::Unbounded);
        for asked in filters.iter().filter_map(Asked::of) {
            match asked {
                Asked::Names(wanted) => names.retain(|name| wanted.contains(name)),
                Asked::Times(low, high) => span = within(span, (low, high)),
            }
        }
        let threads = state.config().target_partitions().max(1);
        let each = names.len().div_ceil(threads).max(1);
        let mut parts: Vec<_> = names
            .chunks(each)
            .map(|some| Source::stream(Arc::clone(&self.schema), self.batches(some, span)))
            .collect();
        if parts.is_empty() {
            parts.push(Source::stream(Arc::clone(&self.schema), self.batches(&[], span)));
        }
        let schema = Arc::clone(&self.schema);
        let orders = match projection {
            Some(projection) => orders(&schema.project(projection)?, each == 1),
            None => orders(&schema, each == 1),
        };
        let points = StreamingTableExec::try_new(schema, parts, projection, orders, false, limit)?;
        Ok(Arc::new(points))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_narrowed_to_what_is_in_both() {
        use Bound::{Excluded, Included, Unbounded};
        let at = Micros;
        let all = (Unbounded, Unbounded);
        let some = (Included(at(1)), Excluded(at(9)));
        assert_eq!(within(all, some), some);
        assert_eq!(within(some, all), some);
        let other = (Excluded(at(1)), Included(at(9)));
        assert_eq!(within(some, other), (Excluded(at(1)), Excluded(at(9))));
        let inner = (Included(at(2)), Included(at(3)));
        assert_eq!(within(inner, some), inner);
    }
}
