//! Windows in orders of values between which there is no distance, such as times of day, intervals
//! and objects.
//!
//! `DataFusion` refuses them with `RANGE` (55), which is what a window has that says nothing else.
//! Where no bound is a distance, the window has whole groups of rows that are alike: `GROUPS`.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use datafusion::optimizer::AnalyzerRule;

use crate::rewriting::each_expression;

/// The rule, which comes before types are looked at.
pub(crate) fn rule() -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(Rule)
}

#[derive(Debug)]
struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "windows_without_distances"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, schema| {
            expr.transform_up(|expr| match expr {
                Expr::WindowFunction(mut window) if is_without_distance(&window, schema) => {
                    let WindowFrame { start_bound, end_bound, .. } = window.params.window_frame;
                    let groups = WindowFrameUnits::Groups;
                    window.params.window_frame =
                        WindowFrame::new_bounds(groups, start_bound, end_bound);
                    Ok(Transformed::yes(Expr::WindowFunction(window)))
                }
                expr => Ok(Transformed::no(expr)),
            })
        })
    }
}

fn is_without_distance(window: &WindowFunction, schema: &DFSchema) -> bool {
    let WindowFrame { units, start_bound, end_bound, .. } = &window.params.window_frame;
    let is_range = *units == WindowFrameUnits::Range;
    let first = window.params.order_by.first().and_then(|by| by.expr.get_type(schema).ok());
    is_range
        && first.is_some_and(|kind| !has_distances(&kind))
        && !is_at_distance(start_bound)
        && !is_at_distance(end_bound)
}

/// Whether a bound is so many units before or behind a row.
fn is_at_distance(bound: &WindowFrameBound) -> bool {
    match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => {
            !distance.is_null()
        }
        WindowFrameBound::CurrentRow => false,
    }
}

/// Whether it takes windows by `RANGE` in an order of such values.
fn has_distances(kind: &DataType) -> bool {
    kind.is_numeric()
        || kind.is_string()
        || matches!(
            kind,
            DataType::Null
                | DataType::Boolean
                | DataType::Date32
                | DataType::Date64
                | DataType::Timestamp(..)
                | DataType::List(_)
                | DataType::LargeList(_)
                | DataType::FixedSizeList(..)
        )
}
