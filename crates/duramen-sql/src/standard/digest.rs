//! `md5(x)` and `sha256(x)`: what texts come to, in hexadecimal digits.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, plan_err};
use datafusion::functions::utils::make_scalar_function;
use datafusion::logical_expr::scalar_doc_sections::DOC_SECTION_HASHING;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::prelude::SessionContext;
use sha2::Digest as _;

static MD5: LazyLock<Documentation> = LazyLock::new(|| documentation("md5", "MD5"));
static SHA256: LazyLock<Documentation> = LazyLock::new(|| documentation("sha256", "SHA-256"));

fn documentation(name: &str, algorithm: &str) -> Documentation {
    let what = format!("Returns the {algorithm} of a text, in hexadecimal digits.");
    Documentation::builder(DOC_SECTION_HASHING, what, format!("{name}(text)"))
        .with_argument("text", "The text, as UTF-8, or bytes.")
        .build()
}

pub(super) fn register(context: &SessionContext) {
    for algorithm in [Algorithm::Md5, Algorithm::Sha256] {
        let signature = Signature::user_defined(Volatility::Immutable);
        context.register_udf(ScalarUDF::from(Digest { algorithm, signature }));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Algorithm {
    Md5,
    Sha256,
}

impl Algorithm {
    fn of(self, bytes: &[u8]) -> String {
        let digest: Vec<u8> = match self {
            Self::Md5 => md5::Md5::digest(bytes).to_vec(),
            Self::Sha256 => sha2::Sha256::digest(bytes).to_vec(),
        };
        digest.iter().fold(String::with_capacity(2 * digest.len()), |mut text, byte| {
            _ = write!(text, "{byte:02x}");
            text
        })
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Digest {
    algorithm: Algorithm,
    signature: Signature,
}

impl ScalarUDFImpl for Digest {
    fn name(&self) -> &'static str {
        match self.algorithm {
            Algorithm::Md5 => "md5",
            Algorithm::Sha256 => "sha256",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        let [kind] = take_function_args(self.name(), kinds)?;
        if !(kind.is_string() || kind.is_binary() || kind.is_null()) {
            return plan_err!("{}(..) takes a text, and not {kind}: CAST it to TEXT", self.name());
        }
        Ok(vec![DataType::BinaryView])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let digests = |texts: &[ArrayRef]| {
            let [texts] = take_function_args(self.name(), texts)?;
            let texts = cast(texts, &DataType::BinaryView)?;
            let digests = texts.as_binary_view().iter().map(|text| Some(self.algorithm.of(text?)));
            Ok(Arc::new(digests.collect::<StringArray>()) as ArrayRef)
        };
        make_scalar_function(digests, Vec::new())(&args.args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(match self.algorithm {
            Algorithm::Md5 => &MD5,
            Algorithm::Sha256 => &SHA256,
        })
    }
}
