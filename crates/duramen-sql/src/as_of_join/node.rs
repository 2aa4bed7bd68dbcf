//! The join in a plan, before and after it is known how its inputs come.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::compute::SortOptions;
use datafusion::catalog::Session;
use datafusion::common::{DFSchemaRef, JoinType, Result, ScalarValue, internal_err, plan_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::logical_plan::builder::build_join_schema;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use super::execution::AsOfJoinExec;
use crate::fast;

/// Which row of the right table is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Hash)]
pub(super) struct Nearest {
    /// The last one up to the time, and not the first one from it on.
    pub(super) is_before: bool,
    /// One at the time itself is one.
    pub(super) takes_equal: bool,
}

/// A left join in which each row has at most one of the right table.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct AsOfJoin {
    left: Arc<LogicalPlan>,
    right: Arc<LogicalPlan>,
    /// What is equal.
    on: Vec<(Expr, Expr)>,
    times: (Expr, Expr),
    nearest: Nearest,
    schema: DFSchemaRef,
}

impl Nearest {
    pub(super) fn of(op: &Expr) -> Result<Self> {
        let text = match op {
            Expr::Literal(value, _) => ScalarValue::try_as_str(value).flatten(),
            _ => None,
        };
        Ok(match text {
            Some(">=") => Self { is_before: true, takes_equal: true },
            Some(">") => Self { is_before: true, takes_equal: false },
            Some("<=") => Self { is_before: false, takes_equal: true },
            Some("<") => Self { is_before: false, takes_equal: false },
            _ => return plan_err!("an ASOF JOIN matches by >=, >, <= or <"),
        })
    }

    pub(super) fn swapped(self) -> Self {
        Self { is_before: !self.is_before, ..self }
    }
}

impl AsOfJoin {
    pub(super) fn new(
        (left, right): (Arc<LogicalPlan>, Arc<LogicalPlan>),
        on: Vec<(Expr, Expr)>,
        times: (Expr, Expr),
        nearest: Nearest,
    ) -> Result<Self> {
        let schema = build_join_schema(left.schema(), right.schema(), &JoinType::Left)?;
        Ok(Self { left, right, on, times, nearest, schema: Arc::new(schema) })
    }

    /// What the rows of one side are ordered by.
    fn order(&self, side: impl Fn(&(Expr, Expr)) -> &Expr) -> Vec<&Expr> {
        self.on.iter().chain([&self.times]).map(side).collect()
    }
}

/// Schemas have no order.
impl PartialOrd for AsOfJoin {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let key = |join: &Self| (join.on.clone(), join.times.clone(), join.nearest);
        let inputs = (&self.left, &self.right).partial_cmp(&(&other.left, &other.right))?;
        Some(inputs.then(key(self).partial_cmp(&key(other))?))
            .filter(|ordering| *ordering != Ordering::Equal || self == other)
    }
}

impl UserDefinedLogicalNodeCore for AsOfJoin {
    fn name(&self) -> &'static str {
        "AsOfJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let pairs = self.on.iter().chain([&self.times]);
        pairs.flat_map(|(left, right)| [left.clone(), right.clone()]).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, right) = &self.times;
        write!(f, "AsOfJoin: {left} to {right}, {:?}", self.nearest)?;
        self.on.iter().try_for_each(|(left, right)| write!(f, ", {left} = {right}"))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Ok([left, right]) = <[LogicalPlan; 2]>::try_from(inputs) else {
            return internal_err!("an ASOF JOIN has two inputs");
        };
        let mut exprs = exprs.into_iter();
        let mut pairs: Vec<_> =
            std::iter::from_fn(|| Some((exprs.next()?, exprs.next()?))).collect();
        let Some(times) = pairs.pop() else {
            return internal_err!("an ASOF JOIN compares times");
        };
        Self::new((Arc::new(left), Arc::new(right)), pairs, times, self.nearest)
    }

    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let left_len = self.left.schema().fields().len();
        let mut left: Vec<_> = output.iter().copied().filter(|at| *at < left_len).collect();
        let mut right: Vec<_> = output.iter().filter_map(|at| at.checked_sub(left_len)).collect();
        let needed = |exprs: Vec<&Expr>, input: &LogicalPlan, all: &mut Vec<usize>| {
            for column in exprs.iter().flat_map(|expr| expr.column_refs()) {
                all.extend(input.schema().maybe_index_of_column(column));
            }
            all.sort_unstable();
            all.dedup();
        };
        needed(self.order(|pair| &pair.0), &self.left, &mut left);
        needed(self.order(|pair| &pair.1), &self.right, &mut right);
        Some(vec![left, right])
    }
}

/// Plans queries that may have such joins.
#[derive(Debug)]
pub(crate) struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![
            Arc::new(Joins),
            Arc::new(fast::Planner),
        ]);
        planner.create_physical_plan(plan, session).await
    }
}

struct Joins;

#[async_trait]
impl ExtensionPlanner for Joins {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        planning: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(join) = node.as_any().downcast_ref::<AsOfJoin>() else { return Ok(None) };
        let [left, right] = inputs else {
            return internal_err!("an ASOF JOIN has two inputs");
        };
        // The nearest row comes last before the one that is asked for, in either direction.
        let options = |is_time| SortOptions {
            descending: is_time && !join.nearest.is_before,
            nulls_first: false,
        };
        let order = |exprs: Vec<&Expr>, input: &LogicalPlan| {
            let last = exprs.len() - 1;
            let of = |(at, expr): (usize, &Expr)| {
                let expr = planner.create_physical_expr(expr, input.schema(), session, planning)?;
                Ok(PhysicalSortExpr::new(expr, options(at == last)))
            };
            exprs.into_iter().enumerate().map(of).collect::<Result<Vec<_>>>()
        };
        let orders = (
            order(join.order(|pair| &pair.0), &join.left)?,
            order(join.order(|pair| &pair.1), &join.right)?,
        );
        let schema = Arc::clone(join.schema.inner());
        let inputs = (Arc::clone(left), Arc::clone(right));
        let exec = AsOfJoinExec::new(inputs, orders, join.nearest, schema)?;
        Ok(Some(Arc::new(exec)))
    }
}
