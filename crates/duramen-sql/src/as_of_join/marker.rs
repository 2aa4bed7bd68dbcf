//! The function that stands for what an `ASOF JOIN` matches until the join is planned.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Its name, which no query writes by chance.
pub(super) const MARKER: &str = "as_of_match";

#[derive(Debug, PartialEq, Eq, Hash)]
struct Marker(Signature);

pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(Marker(Signature::any(3, Volatility::Volatile)))
}

impl ScalarUDFImpl for Marker {
    fn name(&self) -> &'static str {
        MARKER
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        plan_err!("{MARKER} stands in an ASOF JOIN only")
    }
}
