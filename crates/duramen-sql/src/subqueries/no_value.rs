//! A subquery for a value that finds no row is NULL, whatever its column has.
//!
//! The planner takes it for one that is never NULL where the column is not (55).

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use super::gives_one_row;
use crate::rewriting::each_expression;

static ANY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(ValueOrNull { signature }))
});

#[derive(Debug)]
pub(super) struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "no_value_of_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, _| {
            expr.transform_up(|expr| {
                Ok(match expr {
                    Expr::ScalarSubquery(subquery) if may_be_none(&subquery.subquery) => {
                        Transformed::yes(ANY.call(vec![Expr::ScalarSubquery(subquery)]))
                    }
                    expr => Transformed::no(expr),
                })
            })
        })
    }
}

/// Whether a plan may give no row, where its column says nothing of that.
fn may_be_none(plan: &LogicalPlan) -> bool {
    let fields = plan.schema().fields();
    fields.len() == 1 && !fields[0].is_nullable() && !gives_one_row(plan)
}

/// A value, or NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ValueOrNull {
    signature: Signature,
}

impl ScalarUDFImpl for ValueOrNull {
    fn name(&self) -> &'static str {
        "value_or_null"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(args.arg_fields[0].as_ref().clone().with_nullable(true)))
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type of a value is that of its field")
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args[0].clone())
    }
}
