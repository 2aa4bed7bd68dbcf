//! Aggregates that hold the values of their groups take one group after another.
//!
//! `DataFusion` holds the lists of all groups beside each other. What it makes of them to pass them
//! on to another partition, and to a file and back, weighs as much again, several times, and is
//! counted in part only (55). So the rows are put in the order of their groups before, which takes
//! no more memory than there is, and what is held is that of one batch and of the group at its end.
//!
//! Invariant: rows of a group stay in the order in which they are read, whatever the threads.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::{
    LexOrdering, OrderingRequirements, Partitioning, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, InputOrderMode};

use numbered::Numbered;

mod numbered;

/// Aggregates that hold all values of a group, beside those of distinct ones.
const HOLDING: [&str; 2] = ["array_agg", "string_agg"];

/// Has the rows of such aggregates put in the order of their groups.
#[derive(Debug)]
pub(crate) struct Rule;

impl PhysicalOptimizerRule for Rule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let aggregate = plan.downcast_ref::<AggregateExec>();
            let grouped = match aggregate.and_then(first_stage) {
                Some(first) => by_group(first, plan.output_partitioning())?,
                None => None,
            };
            Ok(grouped.map_or_else(|| Transformed::no(Arc::clone(&plan)), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "by_group"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What takes the rows of an aggregate that is to have them in the order of its groups.
fn first_stage(last: &AggregateExec) -> Option<&AggregateExec> {
    let holds =
        last.aggr_expr().iter().any(|of| of.is_distinct() || HOLDING.contains(&of.fun().name()));
    let is_in_order = *last.input_order_mode() != InputOrderMode::Linear;
    if !holds || is_in_order || last.limit_options().is_some() {
        return None;
    }
    let first = match last.mode() {
        AggregateMode::Single | AggregateMode::SinglePartitioned => last,
        AggregateMode::Final | AggregateMode::FinalPartitioned => partial(last.input())?,
        AggregateMode::Partial | AggregateMode::PartialReduce => return None,
    };
    let groups = first.group_expr();
    (groups.is_single() && !groups.is_empty()).then_some(first)
}

/// The first stage below what brings its states together.
fn partial(input: &Arc<dyn ExecutionPlan>) -> Option<&AggregateExec> {
    if let Some(shared) = input.downcast_ref::<RepartitionExec>() {
        return partial(shared.input());
    }
    if let Some(together) = input.downcast_ref::<CoalescePartitionsExec>() {
        return partial(together.input());
    }
    let first = input.downcast_ref::<AggregateExec>()?;
    (*first.mode() == AggregateMode::Partial).then_some(first)
}

/// The same aggregate over rows in the order of its groups; none where no order has those that are
/// alike beside each other.
fn by_group(
    first: &AggregateExec,
    partitioning: &Partitioning,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let required = required(first);
    let (rows, keys) = with_keys(rows_of(first, &required), first.group_expr())?;
    let Some(order) = order_of(&keys, &rows.schema())? else { return Ok(None) };
    let rows: Arc<dyn ExecutionPlan> = Arc::new(Numbered::of(rows));
    let place = Numbered::place(&rows.schema());
    let order = order.into_iter().chain(required).chain([PhysicalSortExpr::new_default(place)]);
    let Some(order) = LexOrdering::new(order) else { return Ok(None) };
    let exprs: Vec<_> = keys.iter().map(|(expr, _)| Arc::clone(expr)).collect();
    let (rows, mode) = shared(rows, exprs, partitioning.partition_count())?;
    let schema = rows.schema();
    let sorted = SortExec::new(order, rows).with_preserve_partitioning(true);
    let aggregate = AggregateExec::try_new(
        mode,
        PhysicalGroupBy::new_single(keys),
        first.aggr_expr().to_vec(),
        first.filter_expr().to_vec(),
        Arc::new(sorted),
        schema,
    )?;
    Ok(Some(Arc::new(aggregate)))
}

/// The order in which an aggregate has to have its rows.
fn required(first: &AggregateExec) -> Vec<PhysicalSortExpr> {
    let required = first.required_input_ordering().into_iter().flatten().next();
    let required = required.map(OrderingRequirements::into_single);
    required.into_iter().flatten().map(PhysicalSortExpr::from).collect()
}

/// The rows of an aggregate, which are not put in an order twice.
fn rows_of(first: &AggregateExec, required: &[PhysicalSortExpr]) -> Arc<dyn ExecutionPlan> {
    let rows = first.input();
    match rows.downcast_ref::<SortExec>() {
        Some(sort) if sort.fetch().is_none() && !required.is_empty() => Arc::clone(sort.input()),
        _ => Arc::clone(rows),
    }
}

type Keys = Vec<(Arc<dyn PhysicalExpr>, String)>;

/// Rows with the keys of their groups as columns, so that each is computed once. Zeros of floats
/// are equal, and are made one, as they would not be beside each other in an order.
fn with_keys(
    rows: Arc<dyn ExecutionPlan>,
    groups: &PhysicalGroupBy,
) -> Result<(Arc<dyn ExecutionPlan>, Keys)> {
    let (keys, schema) = (groups.expr(), rows.schema());
    let kinds = keys.iter().map(|(key, _)| key.data_type(&schema)).collect::<Result<Vec<_>>>()?;
    let is_computed = |((key, _), kind): (&(Arc<dyn PhysicalExpr>, String), &DataType)| {
        !key.is::<Column>() || kind.is_floating()
    };
    if !keys.iter().zip(&kinds).any(is_computed) {
        return Ok((rows, keys.to_vec()));
    }
    let own = schema.fields().iter().enumerate().map(|(index, field)| ProjectionExpr {
        expr: Arc::new(Column::new(field.name(), index)),
        alias: field.name().clone(),
    });
    let computed = keys.iter().zip(&kinds).map(|((key, name), kind)| ProjectionExpr {
        expr: with_one_zero(key, kind),
        alias: name.clone(),
    });
    let columns: Vec<_> = own.chain(computed).collect();
    let first = schema.fields().len();
    let key = |(index, (_, name)): (usize, &(_, String))| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(name, first + index));
        (column, name.clone())
    };
    let keys = keys.iter().enumerate().map(key).collect();
    Ok((Arc::new(ProjectionExec::try_new(columns, rows)?), keys))
}

/// The same values, of which no float is `-0.0`: that and `0.0` is `0.0`.
fn with_one_zero(key: &Arc<dyn PhysicalExpr>, kind: &DataType) -> Arc<dyn PhysicalExpr> {
    let key = Arc::clone(key);
    match ScalarValue::new_zero(kind) {
        Ok(zero) if kind.is_floating() => {
            Arc::new(BinaryExpr::new(key, Operator::Plus, Arc::new(Literal::new(zero))))
        }
        _ => key,
    }
}

/// An order of keys that has equal ones beside each other; what has parts may have zeros within.
fn order_of(keys: &Keys, schema: &Schema) -> Result<Option<Vec<PhysicalSortExpr>>> {
    let mut order = Vec::new();
    for (key, _) in keys {
        if key.data_type(schema)?.is_nested() {
            return Ok(None);
        }
        order.push(PhysicalSortExpr::new(Arc::clone(key), SortOptions::default()));
    }
    Ok(Some(order))
}

/// Rows whose groups are in one of some partitions each, and how they are aggregated.
fn shared(
    rows: Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    partitions: usize,
) -> Result<(Arc<dyn ExecutionPlan>, AggregateMode)> {
    let is_one = rows.output_partitioning().partition_count() == 1;
    Ok(match partitions {
        1 if is_one => (rows, AggregateMode::Single),
        1 => (Arc::new(CoalescePartitionsExec::new(rows)), AggregateMode::Single),
        _ => {
            let by_keys = Partitioning::Hash(keys, partitions);
            let shared = RepartitionExec::try_new(rows, by_keys)?;
            (Arc::new(shared), AggregateMode::SinglePartitioned)
        }
    })
}
