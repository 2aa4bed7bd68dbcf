//! Functions of `DataFusion` that answer otherwise than SQL has it, or panic, for some of what they
//! are given: what they take, or what they give, is set right beside them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, make_array};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::FunctionRegistry;
use datafusion::functions::datetime::date_part;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;

mod groups;
mod lists;
mod numbers;
mod spans;
mod texts;
mod times;

/// What is set right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Repair {
    /// A text of fewer than no characters has none; it would panic.
    Padded,
    /// The replacement of a regular expression has groups by a backslash only.
    Replaced,
    /// A group that a regular expression passes over is NULL, so that those behind it keep their
    /// places.
    Matched,
    /// What is sought from before the first element on is sought from it on.
    Sought,
    /// There is no list of fewer than no elements.
    Resized,
    /// A stride that no list has room for.
    Sliced,
    /// NULL is removed as any other element.
    Removed,
    /// Lists of lists are no lists of numbers.
    OfNumbers,
    /// So is it of these, of which integers make an integer.
    Sum,
    Product,
    /// More digits than a number has, and fewer.
    Rounded,
    /// Seconds have fractions, there are centuries, and years beyond nanoseconds.
    DatePart,
    DateTrunc,
    DateBin,
}

/// The functions.
const FUNCTIONS: [(&str, Repair); 23] = [
    ("lpad", Repair::Padded),
    ("rpad", Repair::Padded),
    ("regexp_replace", Repair::Replaced),
    ("regexp_match", Repair::Matched),
    ("array_position", Repair::Sought),
    ("array_remove_all", Repair::Removed),
    ("array_resize", Repair::Resized),
    ("array_slice", Repair::Sliced),
    ("array_add", Repair::OfNumbers),
    ("array_avg", Repair::OfNumbers),
    ("array_distance", Repair::OfNumbers),
    ("array_normalize", Repair::OfNumbers),
    ("array_scale", Repair::OfNumbers),
    ("array_subtract", Repair::OfNumbers),
    ("cosine_distance", Repair::OfNumbers),
    ("inner_product", Repair::OfNumbers),
    ("array_sum", Repair::Sum),
    ("array_product", Repair::Product),
    ("round", Repair::Rounded),
    ("trunc", Repair::Rounded),
    ("date_part", Repair::DatePart),
    ("date_trunc", Repair::DateTrunc),
    ("date_bin", Repair::DateBin),
];

/// Functions and other names of them. Of all elements they do what others would do under these
/// names to the first one only.
const NAMES: [(&str, &[&str]); 3] = [
    ("array_remove_all", &["array_remove", "list_remove"]),
    ("array_replace_all", &["array_replace", "list_replace"]),
    ("array_min", &["list_min"]),
];

/// A function of `DataFusion` and what is set right of it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Repaired {
    inner: ScalarUDF,
    repair: Repair,
    signature: Signature,
}

/// Sets the functions of a query right.
pub(crate) fn register(context: &SessionContext) {
    for (name, repair) in FUNCTIONS {
        if let Ok(function) = context.udf(name) {
            let inner = function.as_ref().clone();
            context.register_udf(ScalarUDF::new_from_impl(Repaired::new(inner, repair)));
        }
    }
    for (name, names) in NAMES {
        if let Ok(function) = context.udf(name) {
            let named = function.as_ref().clone().with_aliases(names.iter().copied());
            context.register_udf(named);
        }
    }
}

/// The function that `EXTRACT` is.
pub(crate) fn extract() -> Arc<ScalarUDF> {
    let inner = Arc::unwrap_or_clone(date_part());
    Arc::new(ScalarUDF::new_from_impl(Repaired::new(inner, Repair::DatePart)))
}

impl Repaired {
    fn new(inner: ScalarUDF, repair: Repair) -> Self {
        let signature = match repair {
            Repair::DateTrunc | Repair::DateBin => {
                Signature::user_defined(inner.signature().volatility)
            }
            _ => inner.signature().clone(),
        };
        Self { inner, repair, signature }
    }

    fn function(&self) -> &dyn ScalarUDFImpl {
        self.inner.inner().as_ref()
    }
}

impl ScalarUDFImpl for Repaired {
    fn name(&self) -> &str {
        self.function().name()
    }

    fn aliases(&self) -> &[String] {
        self.function().aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.function().schema_name(args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        match self.repair {
            Repair::DateTrunc => return spans::kinds(self.name(), kinds),
            Repair::DateBin => return spans::kinds_of_bins(self.name(), kinds),
            _ => {}
        }
        let coerced = self.function().coerce_types(kinds)?;
        match self.repair {
            Repair::OfNumbers => lists::of_numbers(self.name(), kinds).map(|()| coerced),
            Repair::Sum | Repair::Product => {
                lists::of_numbers(self.name(), kinds)?;
                Ok(lists::of_integers(kinds).unwrap_or(coerced))
            }
            _ => Ok(coerced),
        }
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match self.repair {
            Repair::Sum | Repair::Product if lists::are_of_integers(kinds) => Ok(DataType::Int64),
            _ => self.function().return_type(kinds),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match self.repair {
            Repair::Sum | Repair::Product => {
                let kinds = args.arg_fields.iter().map(|field| field.data_type().clone());
                let kind = self.return_type(&kinds.collect::<Vec<_>>())?;
                let field = self.function().return_field_from_args(args)?;
                Ok(Arc::new(field.as_ref().clone().with_data_type(kind)))
            }
            Repair::DatePart => match times::part_field(self.name(), &args) {
                Some(field) => Ok(field),
                None => self.function().return_field_from_args(args),
            },
            _ => self.function().return_field_from_args(args),
        }
    }

    fn is_strict(&self) -> bool {
        self.repair != Repair::Removed && self.function().is_strict()
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.repair {
            Repair::Padded => set_to(&mut args, 1, |characters| Ok(at_least(characters, 0)))?,
            Repair::Replaced => set_to(&mut args, 2, texts::replacement)?,
            Repair::Sought => set_to(&mut args, 2, |from| Ok(at_least(from, 1)))?,
            Repair::Resized => lists::check_sizes(self.name(), &args)?,
            Repair::Sliced => set_to(&mut args, 3, |strides| Ok(lists::stride(strides)))?,
            Repair::Sum | Repair::Product if *args.return_type() == DataType::Int64 => {
                return lists::computed(self.name(), self.repair == Repair::Sum, &args);
            }
            Repair::Matched => {
                return groups::matched(args, |args| self.inner.invoke_with_args(args));
            }
            Repair::Removed => {
                return lists::removed(args, |args| self.inner.invoke_with_args(args));
            }
            Repair::Rounded => {
                return numbers::rounded(args, |args| self.inner.invoke_with_args(args));
            }
            Repair::DatePart => return times::part(args, |args| self.inner.invoke_with_args(args)),
            Repair::DateTrunc => {
                return spans::begin(args, |args| self.inner.invoke_with_args(args));
            }
            Repair::DateBin => return spans::bin(args, |args| self.inner.invoke_with_args(args)),
            Repair::OfNumbers | Repair::Sum | Repair::Product => {}
        }
        self.inner.invoke_with_args(args)
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        context: &SimplifyContext,
    ) -> Result<PreimageResult> {
        self.function().preimage(args, literal, context)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.function().output_ordering(inputs)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function().documentation()
    }
}

/// Sets an argument, if there is one, to what is made of it.
fn set_to(
    args: &mut ScalarFunctionArgs,
    at: usize,
    made: impl Fn(&ColumnarValue) -> Result<ColumnarValue>,
) -> Result<()> {
    if let Some(argument) = args.args.get_mut(at) {
        *argument = made(argument)?;
    }
    Ok(())
}

/// Integers of which none is less than another one.
fn at_least(integers: &ColumnarValue, least: i64) -> ColumnarValue {
    lists::each_integer(integers, |integer| integer.max(least))
}

/// An array as what a function is to give, which is one value if all that it took were.
fn given(array: &dyn Array, is_one: bool) -> Result<ColumnarValue> {
    if is_one && !array.is_empty() {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(array, 0)?));
    }
    Ok(ColumnarValue::Array(make_array(array.to_data())))
}

/// Whether all that a function takes is the same for all rows.
fn is_one(args: &[ColumnarValue]) -> bool {
    args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)))
}
