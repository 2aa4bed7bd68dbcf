//! Orders of aggregates, which name each expression once.
//!
//! Of those that come again the planner keeps columns, which what computes the aggregate leaves
//! out: it fails or panics (55). What comes again decides nothing, in whichever direction. So does
//! `DISTINCT ON`, which is made of such aggregates.
//!
//! Aggregates that put rows in order by themselves ask for no order of them. `DataFusion` computes
//! them the other way around where another one has the opposite order, which those of `DISTINCT`
//! are not, and refuses `string_agg` beside any other order.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::{AggregateFunction, Sort};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, Aggregate, AggregateUDF, AggregateUDFImpl, Expr, GroupsAccumulator, LogicalPlan,
    ReversedUDAF, Signature,
};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule that comes behind all others, which may make one expression of two.
pub(crate) fn rule() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(Rule)
}

#[derive(Debug)]
struct Rule;

impl OptimizerRule for Rule {
    fn name(&self) -> &'static str {
        "orders_of_aggregates"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.iter().any(is_wrong) => {
                let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
                let names = NamePreserver::new_for_projection();
                let exprs = aggr_expr.into_iter().map(|expr| {
                    let name = names.save(&expr);
                    name.restore(in_order(expr))
                });
                let exprs = exprs.collect();
                let aggregate = Aggregate::try_new_with_schema(input, group_expr, exprs, schema)?;
                Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
            }
            plan => Ok(Transformed::no(plan)),
        })
    }
}

/// Whether an aggregate is to be set right.
fn is_wrong(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_wrong(&alias.expr),
        Expr::AggregateFunction(of) => {
            let order = &of.params.order_by;
            puts_in_order(of) || (1..order.len()).any(|at| is_repeated(order, at))
        }
        _ => false,
    }
}

/// Whether an aggregate puts rows in its order by itself, and is not known to do so.
fn puts_in_order(of: &AggregateFunction) -> bool {
    let is_known = of.func.inner().is::<InOrder>();
    let puts = match of.func.name() {
        "string_agg" => true,
        "array_agg" => of.params.distinct,
        _ => false,
    };
    puts && !is_known && !of.params.order_by.is_empty()
}

/// Whether an expression of an order came before.
fn is_repeated(order: &[Sort], at: usize) -> bool {
    order[..at].iter().any(|before| before.expr == order[at].expr)
}

/// An aggregate whose order has no expression twice.
fn in_order(expr: Expr) -> Expr {
    match expr {
        Expr::Alias(mut alias) => {
            *alias.expr = in_order(*alias.expr);
            Expr::Alias(alias)
        }
        Expr::AggregateFunction(of) => {
            let puts_in_order = puts_in_order(&of);
            let AggregateFunction { mut func, mut params } = of;
            if puts_in_order {
                func = Arc::new(AggregateUDF::new_from_impl(InOrder(func.as_ref().clone())));
            }
            let order = params.order_by;
            let kept = (0..order.len()).filter(|at| !is_repeated(&order, *at));
            params.order_by = kept.map(|at| order[at].clone()).collect();
            Expr::AggregateFunction(AggregateFunction { func, params })
        }
        expr => expr,
    }
}

/// The same aggregate, for whose rows no order is asked, and which has no opposite.
#[derive(Debug, PartialEq, Eq, Hash)]
struct InOrder(AggregateUDF);

impl AggregateUDFImpl for InOrder {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.0.return_type(kinds)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        self.0.return_field(fields)
    }

    fn is_nullable(&self) -> bool {
        self.0.is_nullable()
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::SoftRequirement
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        _: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.0.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        self.0.create_groups_accumulator(args)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.0.supports_null_handling_clause()
    }
}
