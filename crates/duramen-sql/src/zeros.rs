//! Zeros of floats: `-0.0` equals `0.0`, also where bits are compared, which are longer lists of
//! `IN`, `CASE x WHEN` and `nullif`, sets of distinct values, partitions, and orders in which
//! something else comes next.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{
    AggregateFunction, InList, ScalarFunction, Sort, WindowFunctionParams,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, Cast, Distinct, Expr, ExprSchemable, LogicalPlan, Operator, lit, when,
};
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::expressions::{BinaryExpr, Literal};
use datafusion::prelude::SessionContext;

use crate::rewriting::each_expression;

/// The function that compares two values.
const NULL_IF: &str = "nullif";

pub(crate) fn register(context: &SessionContext) {
    context.add_analyzer_rule(Arc::new(Lists));
}

/// The rule for distinct values; it comes after the fast path, which has one zero.
pub(crate) fn of_distinct() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(DistinctValues)
}

/// Lists of floats have both zeros or none, and partitions and orders by floats one.
#[derive(Debug)]
struct Lists;

impl AnalyzerRule for Lists {
    fn name(&self) -> &'static str {
        "one_zero_in_lists_and_windows"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let sorted = plan.transform_up_with_subqueries(|mut plan| {
            let is_changed = match &mut plan {
                LogicalPlan::Sort(sort) => in_order(&mut sort.expr, sort.input.schema()),
                LogicalPlan::Distinct(Distinct::On(first)) => {
                    let order = first.sort_expr.as_deref_mut().unwrap_or_default();
                    let behind = order.get_mut(first.on_expr.len()..).unwrap_or_default();
                    in_order(behind, first.input.schema())
                }
                _ => false,
            };
            Ok(Transformed::new_transformed(plan, is_changed))
        });
        each_expression(sorted?.data, |expr, schema| {
            expr.transform_up(|expr| match expr {
                // An order of distinct values is by these.
                Expr::AggregateFunction(mut function) if !function.params.distinct => {
                    let is_changed = in_order(&mut function.params.order_by, schema);
                    Ok(Transformed::new_transformed(Expr::AggregateFunction(function), is_changed))
                }
                Expr::WindowFunction(mut window) => {
                    let WindowFunctionParams { partition_by, order_by, .. } = &mut window.params;
                    let order_by = order_by.iter_mut().map(|by| &mut by.expr);
                    let is_changed = with_one_zero(partition_by.iter_mut().chain(order_by), schema);
                    Ok(Transformed::new_transformed(Expr::WindowFunction(window), is_changed))
                }
                Expr::Case(mut case) => {
                    let is_compared = case.expr.is_some();
                    let whens = case.when_then_expr.iter_mut().map(|(when, _)| when);
                    let of = case.expr.iter_mut().chain(whens).map(|of| &mut **of);
                    let is_changed = is_compared && with_one_zero(of, schema);
                    Ok(Transformed::new_transformed(Expr::Case(case), is_changed))
                }
                Expr::ScalarFunction(function) if function.name() == NULL_IF => {
                    null_if(function, schema)
                }
                expr => Ok(with_both(expr, schema)),
            })
        })
    }
}

/// What is NULL where floats are equal, and otherwise has the zero that it had.
fn null_if(mut function: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let [of, other] = function.args.as_slice() else {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    };
    let is_float = |expr: &Expr| expr.get_type(schema).is_ok_and(|kind| kind.is_floating());
    if of.is_volatile() {
        let is_changed = with_one_zero(function.args.iter_mut(), schema);
        return Ok(Transformed::new_transformed(Expr::ScalarFunction(function), is_changed));
    }
    if !is_float(of) && !is_float(other) {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    }
    let null = Expr::Literal(ScalarValue::try_from(of.get_type(schema)?)?, None);
    let case = when(of.clone().eq(other.clone()), null).otherwise(of.clone())?;
    Ok(Transformed::yes(case))
}

/// Zeros are alike in an order in which something else comes next; whether any are.
fn in_order(order: &mut [Sort], schema: &DFSchema) -> bool {
    order.len() > 1 && with_one_zero(order.iter_mut().map(|by| &mut by.expr), schema)
}

fn with_both(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    if let Expr::InList(InList { expr: of, list, .. }) = &mut expr
        && let Ok(of) = of.get_type(schema)
        && matches!(of, DataType::Float32 | DataType::Float64)
    {
        let zeros: Vec<_> = list.iter().filter_map(|element| other_zero(element, &of)).collect();
        if !zeros.is_empty() {
            list.extend(zeros);
            return Transformed::yes(expr);
        }
    }
    Transformed::no(expr)
}

/// The zero of the other sign, if a constant is one.
fn other_zero(element: &Expr, of: &DataType) -> Option<Expr> {
    let value = match element {
        Expr::Literal(value, _) => value.clone(),
        Expr::Cast(Cast { expr, .. }) => match &**expr {
            Expr::Literal(value, _) => value.clone(),
            _ => return None,
        },
        _ => return None,
    };
    match value.cast_to(of).ok()? {
        ScalarValue::Float64(Some(value)) if value == 0.0 => Some(lit(-value)),
        ScalarValue::Float32(Some(value)) if value == 0.0 => Some(lit(-value)),
        _ => None,
    }
}

/// What distinct floats are counted of has one zero: `-0.0 + 0.0` is `0.0`.
#[derive(Debug)]
struct DistinctValues;

impl OptimizerRule for DistinctValues {
    fn name(&self) -> &'static str {
        "one_zero_of_distinct_values"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        plan.transform_down_with_subqueries(|plan| {
            let LogicalPlan::Aggregate(mut aggregate) = plan else {
                return Ok(Transformed::no(plan));
            };
            let mut is_changed = false;
            let names = NamePreserver::new_for_projection();
            for expr in &mut aggregate.aggr_expr {
                let name = names.save(expr);
                if has_one_zero(expr, aggregate.input.schema()) {
                    is_changed = true;
                    *expr = name.restore(expr.clone());
                }
            }
            if !is_changed {
                return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
            }
            let Aggregate { input, group_expr, aggr_expr, .. } = aggregate;
            let aggregate = Aggregate::try_new(input, group_expr, aggr_expr)?;
            Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
        })
    }
}

/// Makes the floats of which an aggregate counts the distinct ones have one zero; whether it does.
fn has_one_zero(expr: &mut Expr, schema: &DFSchema) -> bool {
    let function = match expr {
        Expr::Alias(alias) => return has_one_zero(&mut alias.expr, schema),
        Expr::AggregateFunction(AggregateFunction { func, params }) if params.distinct => {
            if func.name() != "count" {
                return false;
            }
            params
        }
        _ => return false,
    };
    with_one_zero(function.args.iter_mut(), schema)
}

/// Makes floats have one zero, whether any is one.
fn with_one_zero<'e>(exprs: impl Iterator<Item = &'e mut Expr>, schema: &DFSchema) -> bool {
    let mut is_changed = false;
    for arg in exprs {
        let zero = match arg.get_type(schema) {
            Ok(DataType::Float64) => lit(0.0_f64),
            Ok(DataType::Float32) => lit(0.0_f32),
            _ => continue,
        };
        let is_done = matches!(arg, Expr::BinaryExpr(sum) if *sum.right == zero);
        if !is_done {
            *arg = arg.clone() + zero;
            is_changed = true;
        }
    }
    is_changed
}

/// What an expression has that was made to have one zero, or the expression itself.
pub(crate) fn without_one_zero(expr: &Arc<dyn PhysicalExpr>) -> &Arc<dyn PhysicalExpr> {
    let sum = expr.downcast_ref::<BinaryExpr>().filter(|sum| *sum.op() == Operator::Plus);
    let of = sum.filter(|sum| {
        let zero = sum.right().downcast_ref::<Literal>().map(Literal::value);
        let is_zero = |value: &ScalarValue| match value {
            ScalarValue::Float64(Some(value)) => *value == 0.0,
            ScalarValue::Float32(Some(value)) => *value == 0.0,
            _ => false,
        };
        zero.is_some_and(is_zero)
    });
    of.map_or(expr, |sum| sum.left())
}
