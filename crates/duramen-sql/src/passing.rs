//! Columns that an operator passes on from its input.

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::expressions::Column;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;

/// The column of the input that is a column of a filter or projection; none if it is computed, or
/// the operator is another one.
pub(crate) fn passed(plan: &dyn ExecutionPlan, column: usize) -> Option<usize> {
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return match filter.projection().as_ref() {
            Some(chosen) => chosen.get(column).copied(),
            None => Some(column),
        };
    }
    let list = plan.downcast_ref::<ProjectionExec>()?;
    Some(list.expr().get(column)?.expr.downcast_ref::<Column>()?.index())
}
