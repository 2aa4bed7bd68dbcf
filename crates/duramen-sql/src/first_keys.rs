//! `ORDER BY _key LIMIT n` reads the records of the first keys, or of the last, and not all.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::expressions::Column;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use crate::scan::TableScan;

/// Has scans below such orders read no more than is asked for. The order stays: what is read has
/// that of its rows.
#[derive(Debug)]
pub(crate) struct Rule;

impl PhysicalOptimizerRule for Rule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            let Some(sort) = plan.downcast_ref::<SortExec>() else {
                return Ok(Transformed::no(plan));
            };
            let first = sort.expr().first();
            // No two records have one key: what is ordered by next decides nothing.
            let (Some(wanted), Some(key)) = (sort.fetch(), first.expr.downcast_ref::<Column>())
            else {
                return Ok(Transformed::no(plan));
            };
            let asked = Asked { wanted, is_reverse: first.options.descending, conditions: 0 };
            match asked.read(sort.input(), key.index())? {
                Some(input) => {
                    replace_children_if_necessary(plan, vec![input]).map(Transformed::yes)
                }
                None => Ok(Transformed::no(plan)),
            }
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "first_keys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// How many records are asked for by the order of their keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) wanted: usize,
    pub(crate) is_reverse: bool,
    /// Conditions that they have to meet.
    pub(crate) conditions: usize,
}

impl Asked {
    /// The same plan, which reads only these; none if a column of it is not that of keys, or it
    /// does more than to pass on what it reads.
    fn read(
        mut self,
        plan: &Arc<dyn ExecutionPlan>,
        column: usize,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(scan) = plan.downcast_ref::<TableScan>() {
            return Ok(scan.of_first_keys(self, column)?.map(|scan| Arc::new(scan) as _));
        }
        let (input, column) = if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            if filter.projection().is_some() {
                return Ok(None);
            }
            self.conditions += split_conjunction(filter.predicate()).len();
            (filter.input(), column)
        } else if let Some(list) = plan.downcast_ref::<ProjectionExec>() {
            let passed = list.expr().get(column);
            let Some(passed) = passed.and_then(|of| of.expr.downcast_ref::<Column>()) else {
                return Ok(None);
            };
            (list.input(), passed.index())
        } else {
            return Ok(None);
        };
        let input = self.read(input, column)?;
        let replaced = |input| replace_children_if_necessary(Arc::clone(plan), vec![input]);
        input.map(replaced).transpose()
    }
}
