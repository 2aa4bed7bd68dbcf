//! What is asked for is computed of the rows that are left.
//!
//! Where a condition passes on more columns than are asked for, `DataFusion` computes these before
//! it (55), and before it cuts off rows that are too many: then a division by what the condition
//! keeps from being zero fails, and a cast of any text.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::expressions::Column;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::{
    ProjectionExec, remove_unnecessary_projections, try_embed_projection,
};

/// In the place of `DataFusion`'s rule of that name.
pub(crate) const REPLACED: &str = "ProjectionPushdown";

/// Moves lists of columns toward what they are read from, but not what is computed.
#[derive(Debug)]
pub(crate) struct Rule;

impl PhysicalOptimizerRule for Rule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            let Some(projection) = computing(&plan) else {
                return remove_unnecessary_projections(plan);
            };
            let input = projection.input();
            if input.is::<GlobalLimitExec>() || input.is::<LocalLimitExec>() {
                return Ok(Transformed::no(plan));
            }
            let Some(filter) = input.downcast_ref::<FilterExec>() else {
                return remove_unnecessary_projections(plan);
            };
            let embedded = try_embed_projection(projection, filter)?;
            Ok(embedded.map_or_else(|| Transformed::no(plan), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "projections"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A list of columns that does not only pass on what it is given.
fn computing(plan: &Arc<dyn ExecutionPlan>) -> Option<&ProjectionExec> {
    let projection = plan.downcast_ref::<ProjectionExec>()?;
    let mut columns = projection.expr().iter();
    columns.any(|column| !column.expr.is::<Column>()).then_some(projection)
}
