//! `version()`: that of this database, and not of what plans its queries.

use std::env::consts::{ARCH, OS};
use std::sync::LazyLock;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::scalar_doc_sections::DOC_SECTION_OTHER;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::prelude::SessionContext;

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    let what = "Returns the version of Duramen.";
    Documentation::builder(DOC_SECTION_OTHER, what, "version()").build()
});

#[derive(Debug, PartialEq, Eq, Hash)]
struct Version(Signature);

pub(crate) fn register(context: &SessionContext) {
    let version = Version(Signature::nullary(Volatility::Immutable));
    context.register_udf(ScalarUDF::new_from_impl(version));
}

impl ScalarUDFImpl for Version {
    fn name(&self) -> &'static str {
        "version"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let version = format!("Duramen {}, {ARCH} on {OS}", env!("CARGO_PKG_VERSION"));
        Ok(ColumnarValue::Scalar(ScalarValue::from(version)))
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(&DOCUMENTATION)
    }
}
