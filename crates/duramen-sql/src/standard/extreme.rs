//! `max_by(value, by)` and `min_by(value, by)`: the value where another one is greatest or least.

use std::sync::LazyLock;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::scalar_doc_sections::DOC_SECTION_OTHER;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, Signature, SortExpr,
    Volatility,
};
use datafusion::prelude::SessionContext;

static MAX_BY: LazyLock<Documentation> = LazyLock::new(|| documentation("max_by", "greatest"));
static MIN_BY: LazyLock<Documentation> = LazyLock::new(|| documentation("min_by", "least"));

fn documentation(name: &str, which: &str) -> Documentation {
    let what = format!("Returns the value of a row in which another one is {which}.");
    let usage = format!("{name}(value, by)");
    Documentation::builder(DOC_SECTION_OTHER, what, usage)
        .with_argument("value", "What is returned.")
        .with_argument("by", "What is compared; rows where it is NULL are passed over.")
        .build()
}

pub(super) fn register(context: &SessionContext) {
    let signature = Signature::any(2, Volatility::Immutable);
    for is_greatest in [true, false] {
        let function = ByExtreme { is_greatest, signature: signature.clone() };
        let alias = if is_greatest { "arg_max" } else { "arg_min" };
        context.register_udaf(AggregateUDF::from(function).with_aliases([alias]));
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ByExtreme {
    is_greatest: bool,
    signature: Signature,
}

impl AggregateUDFImpl for ByExtreme {
    fn name(&self) -> &'static str {
        if self.is_greatest { "max_by" } else { "min_by" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value, _] => Ok(value.clone()),
            types => plan_err!("{} takes two values, and not {}", self.name(), types.len()),
        }
    }

    /// It is the first value by that order.
    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        let is_greatest = self.is_greatest;
        Some(Box::new(move |call, _| {
            let AggregateFunctionParams { mut args, distinct, filter, null_treatment, .. } =
                call.params;
            let Some(by) = args.pop() else { return plan_err!("{} of nothing", call.func.name()) };
            let is_known = by.clone().is_not_null();
            let filter = match filter {
                Some(filter) => filter.and(is_known),
                None => is_known,
            };
            let order = vec![SortExpr::new(by, !is_greatest, false)];
            Ok(Expr::AggregateFunction(AggregateFunction::new_udf(
                first_value_udaf(),
                args,
                distinct,
                Some(Box::new(filter)),
                order,
                null_treatment,
            )))
        }))
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        not_impl_err!("{}(..) OVER: take first_value(..) OVER (ORDER BY ..)", self.name())
    }

    fn state_fields(&self, _: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(Vec::new())
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(if self.is_greatest { &MAX_BY } else { &MIN_BY })
    }
}
