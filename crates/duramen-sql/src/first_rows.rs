//! `ORDER BY x LIMIT n` reads the first records of the order, and not all, where keys or an index
//! have it.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use crate::passing::Place;
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
            let Some(wanted) = sort.fetch() else { return Ok(Transformed::no(plan)) };
            let places = sort.expr().iter().map(|by| (Place::of_order(&by.expr), by.options));
            let asked = Asked { wanted, places: places.collect(), conditions: 0 };
            match asked.read(sort.input())? {
                Some(input) => {
                    replace_children_if_necessary(plan, vec![input]).map(Transformed::yes)
                }
                None => Ok(Transformed::no(plan)),
            }
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "first_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// How many records are asked for in some order.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) wanted: usize,
    /// What they are ordered by, none of what is computed.
    pub(crate) places: Vec<(Option<Place>, SortOptions)>,
    /// Conditions that they have to meet.
    pub(crate) conditions: usize,
}

impl Asked {
    /// The same plan, which reads only these; none if nothing has them in their order, or it does
    /// more than to pass on what it reads.
    fn read(mut self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(scan) = plan.downcast_ref::<TableScan>() {
            return Ok(scan.of_first(&self)?.map(|scan| Arc::new(scan) as _));
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            self.conditions += split_conjunction(filter.predicate()).len();
        }
        for (place, _) in &mut self.places {
            *place = place.as_ref().and_then(|place| place.below(&**plan));
        }
        let children = plan.children();
        let (Some((Some(_), _)), [input], None) =
            (self.places.first(), &children[..], plan.fetch())
        else {
            return Ok(None);
        };
        let input = self.read(input)?;
        let replaced = |input| replace_children_if_necessary(Arc::clone(plan), vec![input]);
        input.map(replaced).transpose()
    }
}
