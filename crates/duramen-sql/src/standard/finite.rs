//! `isfinite(x)`: whether a number is neither infinite nor NaN. Dates and times always are.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::scalar_doc_sections::DOC_SECTION_MATH;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::prelude::SessionContext;

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    let what = "Returns whether a number, date or time is neither infinite nor NaN.";
    Documentation::builder(DOC_SECTION_MATH, what, "isfinite(value)")
        .with_argument("value", "The number, date, time or interval.")
        .build()
});

pub(super) fn register(context: &SessionContext) {
    let signature = Signature::any(1, Volatility::Immutable);
    context.register_udf(ScalarUDF::from(IsFinite { signature }));
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct IsFinite {
    signature: Signature,
}

impl ScalarUDFImpl for IsFinite {
    fn name(&self) -> &'static str {
        "isfinite"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let [kind] = take_function_args(self.name(), kinds)?;
        if !(kind.is_numeric() || kind.is_temporal() || kind.is_null()) {
            return plan_err!("isfinite(..) takes a number, date, time or interval, not {kind}");
        }
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [values] = take_function_args(self.name(), args.args)?;
        Ok(match values {
            ColumnarValue::Array(array) => ColumnarValue::Array(Arc::new(finite(&array))),
            ColumnarValue::Scalar(value) => {
                let is = finite(&value.to_array()?);
                ColumnarValue::Scalar(ScalarValue::try_from_array(&is, 0)?)
            }
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&DOCUMENTATION)
    }
}

fn finite(array: &ArrayRef) -> BooleanArray {
    match array.data_type() {
        DataType::Float32 => {
            BooleanArray::from_unary(array.as_primitive::<Float32Type>(), f32::is_finite)
        }
        DataType::Float64 => {
            BooleanArray::from_unary(array.as_primitive::<Float64Type>(), f64::is_finite)
        }
        _ => BooleanArray::new(BooleanBuffer::new_set(array.len()), array.logical_nulls()),
    }
}
