//! Zeros of floats: `-0.0` equals `0.0`, also where bits are compared, which are longer lists of
//! `IN`, sets of distinct values, and the partitions and orders of windows.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, InList, WindowFunctionParams};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Cast, Expr, ExprSchemable, LogicalPlan, lit};
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};
use datafusion::prelude::SessionContext;

use crate::rewriting::each_expression;

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
        each_expression(plan, |expr, schema| {
            expr.transform_up(|expr| match expr {
                Expr::WindowFunction(mut window) => {
                    let WindowFunctionParams { partition_by, order_by, .. } = &mut window.params;
                    let order_by = order_by.iter_mut().map(|by| &mut by.expr);
                    let is_changed = with_one_zero(partition_by.iter_mut().chain(order_by), schema);
                    Ok(Transformed::new_transformed(Expr::WindowFunction(window), is_changed))
                }
                expr => Ok(with_both(expr, schema)),
            })
        })
    }
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
