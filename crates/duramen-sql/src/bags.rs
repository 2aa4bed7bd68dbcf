//! `INTERSECT ALL` and `EXCEPT ALL`, which count rows that are alike.
//!
//! The planner makes joins of them, in which each row is there or not (55): these alone have left
//! rows as they come, and NULLs that are equal, before anything else is made of a plan. So the rows
//! that are alike are numbered on both sides, and joined by their numbers, too.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

/// What the column of the numbers is called.
const NUMBER: &str = "__number_of_alike";

/// The rule, which comes before all others.
pub(crate) fn rule() -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(Rule)
}

#[derive(Debug)]
struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "bags_of_rows"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Join(join) if is_of_bags(&join) => counted(join).map(Transformed::yes),
            plan => Ok(Transformed::no(plan)),
        })
        .map(|transformed| transformed.data)
    }
}

/// Whether a join stands for one of them. Of left rows that are all different none is there twice.
fn is_of_bags(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && !matches!(*join.left, LogicalPlan::Distinct(_))
}

fn counted(join: Join) -> Result<LogicalPlan> {
    let columns = join.left.schema().columns().into_iter().map(Expr::Column);
    let columns: Vec<Expr> = columns.collect();
    let number = || Expr::Column(Column::from_name(NUMBER));
    let mut on = join.on;
    on.push((number(), number()));
    let joined = Join::try_new(
        numbered(join.left)?,
        numbered(join.right)?,
        on,
        join.filter,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(joined)).project(columns)?.build()
}

/// Rows with their numbers among those that are alike.
fn numbered(rows: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    let columns = rows.schema().columns().into_iter().map(Expr::Column).collect();
    let number = row_number().partition_by(columns).build()?.alias(NUMBER);
    LogicalPlanBuilder::from(rows).window([number])?.build().map(Arc::new)
}
