//! What the engine is asked for in place of an aggregate over a table.

use std::any::Any;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column as Name, DFSchema, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::functions::core::getfield::GetFieldFunc;
use datafusion::functions_aggregate::count::Count;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use duramen::{AggregateColumn, AggregatePlan, Columns, Measure, RowFilter, ValueKind};

use super::output::Output;
use crate::arithmetic::{Average, CheckedSum};
use crate::column_type::{Column, ColumnType, TableColumn, TableColumns};
use crate::table::{Table, TablePlace};

/// Columns that rows are grouped by at most.
const KEYS_MAX: usize = 3;

/// An aggregate over the rows of a table.
#[derive(Debug, Clone)]
pub(crate) struct FastPlan {
    pub(crate) rows: Columns,
    pub(crate) plan: AggregatePlan,
    pub(crate) outputs: Vec<Output>,
    /// Where the table is, and what it has.
    pub(crate) table: (TablePlace, TableColumns),
}

/// What has been found of the rows that an aggregate is over.
pub(super) struct Lowering {
    table: Option<Found>,
    columns: Vec<AggregateColumn>,
    filters: Vec<RowFilter>,
}

/// A table.
struct Found {
    rows: Columns,
    place: TablePlace,
    columns: TableColumns,
}

/// Which columns of the table those of a plan are; none for others.
type Origins = Vec<Option<usize>>;

impl FastPlan {
    /// None for what the engine does not know.
    pub(super) fn of(aggregate: &Aggregate) -> Option<Self> {
        let mut lowering = Lowering { table: None, columns: Vec::new(), filters: Vec::new() };
        let origins = lowering.rows(&aggregate.input)?;
        let place = (aggregate.input.schema().as_ref(), origins.as_slice());
        let mut outputs = Vec::new();
        let mut keys = Vec::new();
        for expr in &aggregate.group_expr {
            let (column, kind) = lowering.column(bare(expr), place)?;
            if keys.len() == KEYS_MAX {
                return None;
            }
            outputs.push(Output::Key(keys.len(), kind));
            keys.push(column);
        }
        let mut measures = Vec::new();
        for expr in &aggregate.aggr_expr {
            let Expr::AggregateFunction(function) = bare(expr) else { return None };
            outputs.push(lowering.measure(function, place, &mut measures)?);
        }
        if outputs.is_empty() {
            return None;
        }
        let Found { rows, place, columns } = lowering.table?;
        let filter = RowFilter::All(lowering.filters);
        let plan = AggregatePlan { columns: lowering.columns, filter, keys, measures };
        Some(Self { rows, plan, outputs, table: (place, columns) })
    }
}

impl Lowering {
    /// Takes in the filters of a plan that is one table below.
    fn rows(&mut self, plan: &LogicalPlan) -> Option<Origins> {
        match plan {
            LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
                let provider = source_as_provider(&scan.source).ok()?;
                let table = (provider.as_ref() as &dyn Any).downcast_ref::<Table>()?;
                // Rows that are versions are no slots.
                let is_known = !table.rows.are_versions();
                let (rows, place) = is_known.then(|| (table.rows.clone(), table.place.clone()))?;
                self.table = Some(Found { rows, place, columns: table.columns.clone() });
                let all = || (0..table.columns.columns.len()).collect();
                let wanted = scan.projection.clone().unwrap_or_else(all);
                Some(wanted.into_iter().map(Some).collect())
            }
            LogicalPlan::SubqueryAlias(alias) => self.rows(&alias.input),
            LogicalPlan::Filter(filter) => {
                let origins = self.rows(&filter.input)?;
                let place = (filter.input.schema().as_ref(), origins.as_slice());
                let filter = self.filter(&filter.predicate, Sign::Plain, place)?;
                self.filters.push(filter);
                Some(origins)
            }
            LogicalPlan::Projection(projection) => {
                let origins = self.rows(&projection.input)?;
                let schema = projection.input.schema();
                let origin = |expr: &Expr| match bare(expr) {
                    Expr::Column(name) => origin(name, (schema, &origins)),
                    _ => None,
                };
                Some(projection.expr.iter().map(origin).collect())
            }
            _ => None,
        }
    }

    /// The place in the plan of the column that an expression names, and what its values are.
    pub(super) fn column(
        &mut self,
        expr: &Expr,
        place: (&DFSchema, &[Option<usize>]),
    ) -> Option<(usize, ValueKind)> {
        let found = self.find(expr, place)?;
        let kind = match found.kind {
            ColumnType::Bool => ValueKind::Bool,
            ColumnType::Int => ValueKind::Int,
            ColumnType::Float => ValueKind::Float,
            ColumnType::Text => ValueKind::Text,
            ColumnType::Json | ColumnType::Struct(_) | ColumnType::List(_) => return None,
        };
        let column = AggregateColumn { path: found.path, kind };
        let known = self.columns.iter().position(|known| *known == column);
        let index = known.unwrap_or(self.columns.len());
        if known.is_none() {
            self.columns.push(column);
        }
        Some((index, kind))
    }

    fn find(&self, expr: &Expr, place: (&DFSchema, &[Option<usize>])) -> Option<&Column> {
        match expr {
            Expr::Column(name) => {
                let columns = &self.table.as_ref()?.columns;
                match columns.columns.get(origin(name, place)?)? {
                    TableColumn::Value(column) => Some(column),
                    _ => None,
                }
            }
            Expr::ScalarFunction(function) => {
                function.func.inner().downcast_ref::<GetFieldFunc>()?;
                let (object, names) = function.args.split_first()?;
                let mut found = self.find(object, place)?;
                for name in names {
                    let ColumnType::Struct(fields) = &found.kind else { return None };
                    let name = text(name)?;
                    found = fields.iter().find(|field| field.field.name() == name)?;
                }
                Some(found)
            }
            _ => None,
        }
    }

    fn measure(
        &mut self,
        function: &AggregateFunction,
        place: (&DFSchema, &[Option<usize>]),
        measures: &mut Vec<Measure>,
    ) -> Option<Output> {
        let params = &function.params;
        let is_plain = params.filter.is_none()
            && params.order_by.is_empty()
            && params.null_treatment.is_none();
        let [of] = params.args.as_slice() else { return None };
        let is = |is_wanted: bool| (is_plain && is_wanted).then_some(());
        let inner = function.func.inner();
        let mut add = |measure: Measure| {
            measures.push(measure);
            measures.len() - 1
        };
        if inner.is::<Count>() {
            is(true)?;
            if let Expr::Literal(value, _) = of {
                is(!value.is_null() && !params.distinct)?;
                return Some(Output::Count(add(Measure::Rows)));
            }
            let (column, _) = self.column(of, place)?;
            let of = if params.distinct { Measure::Distinct } else { Measure::Count };
            return Some(Output::Count(add(of(column))));
        }
        is(!params.distinct)?;
        if inner.is::<CheckedSum>() || inner.is::<Average>() {
            let of = match of {
                Expr::Cast(cast) if inner.is::<Average>() => {
                    is(*cast.field.data_type() == DataType::Float64)?;
                    &cast.expr
                }
                of => of,
            };
            let (column, kind) = self.column(of, place)?;
            let measure = match kind {
                ValueKind::Int => Measure::Sum(column),
                ValueKind::Float => Measure::FloatSum(column),
                ValueKind::Bool | ValueKind::Text => return None,
            };
            let sum = add(measure);
            return Some(if inner.is::<Average>() {
                Output::Average(sum)
            } else {
                Output::Sum(sum)
            });
        }
        let (column, kind) = self.column(of, place)?;
        if inner.is::<Min>() {
            return Some(Output::Bound(add(Measure::Least(column)), kind));
        }
        is(inner.is::<Max>())?;
        Some(Output::Bound(add(Measure::Greatest(column)), kind))
    }
}

/// Whether a filter is asked for or its opposite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Plain,
    Opposite,
}

fn origin(name: &Name, (schema, origins): (&DFSchema, &[Option<usize>])) -> Option<usize> {
    *origins.get(schema.maybe_index_of_column(name)?)?
}

/// Without another name.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => bare(&alias.expr),
        expr => expr,
    }
}

/// The text of a literal.
pub(super) fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(
            ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text),
            _,
        ) => text.as_deref(),
        _ => None,
    }
}
