//! Functions that the SQL standard has and the planner does not, or by another name.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions::math::{ceil, signum};
use datafusion::functions::string::uuid;
use datafusion::functions_aggregate::bool_and_or::bool_and_udaf;
use datafusion::functions_aggregate::variance::var_samp_udaf;
use datafusion::logical_expr::scalar_doc_sections::DOC_SECTION_MATH;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::logical_expr_common::type_coercion::binary::BinaryTypeCoercer;
use datafusion::physical_expr_common::datum::apply;
use datafusion::prelude::SessionContext;

mod age;
mod digest;
mod extreme;
mod finite;
mod ordered;
mod percentile;

static MOD: LazyLock<Documentation> = LazyLock::new(|| {
    let what = "Returns what is left when a number is divided by another one, as % does.";
    Documentation::builder(DOC_SECTION_MATH, what, "mod(dividend, divisor)")
        .with_argument("dividend", "The number that is divided.")
        .with_argument(
            "divisor",
            "The number that it is divided by; not zero, unless one is a float.",
        )
        .build()
});

/// Makes them known to a query.
pub(crate) fn register(context: &SessionContext) {
    context.register_udf(Arc::unwrap_or_clone(signum()).with_aliases(["sign"]));
    context.register_udf(Arc::unwrap_or_clone(ceil()).with_aliases(["ceiling"]));
    context.register_udf(Arc::unwrap_or_clone(uuid()).with_aliases(["gen_random_uuid"]));
    context.register_udaf(Arc::unwrap_or_clone(bool_and_udaf()).with_aliases(["every"]));
    context.register_udaf(Arc::unwrap_or_clone(var_samp_udaf()).with_aliases(["variance"]));
    age::register(context);
    digest::register(context);
    finite::register(context);
    ordered::register(context);
    percentile::register(context);
    context.register_udf(ScalarUDF::new_from_impl(Mod(Signature::user_defined(
        Volatility::Immutable,
    ))));
    extreme::register(context);
}

/// `mod(a, b)`, which is `a % b`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Mod(Signature);

fn modulo(types: &[DataType]) -> Result<BinaryTypeCoercer<'_>> {
    match types {
        [left, right] => Ok(BinaryTypeCoercer::new(left, &Operator::Modulo, right)),
        types => datafusion::common::plan_err!("mod takes two numbers, and not {}", types.len()),
    }
}

impl ScalarUDFImpl for Mod {
    fn name(&self) -> &'static str {
        "mod"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (left, right) = modulo(types)?.get_input_types()?;
        Ok(vec![left, right])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        modulo(types)?.get_result_type()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        apply(&args.args[0], &args.args[1], numeric::rem)
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&MOD)
    }
}
