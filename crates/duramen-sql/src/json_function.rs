//! Functions that look into JSON text: what fields of mixed types are read as.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringViewArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::prelude::SessionContext;
use serde_json::value::RawValue;

use crate::column_type::json_text;
use crate::digits::is_number;
use crate::json_operator::JsonOperators;
use crate::modifiers::Unordered;
use crate::operands::Operands;

/// Which function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Get,
    GetJson,
    GetStr,
    GetInt,
    GetFloat,
    GetBool,
    AsText,
    Length,
    Contains,
}

/// A function of JSON text and of names and indexes that lead into it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonFunction {
    kind: Kind,
    signature: Signature,
}

/// What leads one level down.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    /// From 0, or from the end: -1 is the last one.
    Index(i64),
}

/// Makes the functions known to a query.
pub(crate) fn register(context: &SessionContext) {
    for kind in Kind::ALL {
        context.register_udf(function(kind));
    }
}

/// The planners of expressions of `DataFusion`, those before them that know of dates and of seconds
/// and of orders within aggregates, and the one that knows `->` and `->>`.
pub(crate) fn with_operators() -> Vec<Arc<dyn ExprPlanner>> {
    let (json, text) = (Arc::new(function(Kind::Get)), Arc::new(function(Kind::AsText)));
    let mut planners = SessionStateDefaults::default_expr_planners();
    planners.insert(0, Arc::new(Operands::new()));
    planners.insert(0, Arc::new(Unordered));
    planners.push(Arc::new(JsonOperators { json, text }));
    planners
}

/// The value that JSON text has, NULL if it is of another type.
pub(crate) fn as_integer(json: Expr) -> Expr {
    function(Kind::GetInt).call(vec![json])
}

pub(crate) fn as_float(json: Expr) -> Expr {
    function(Kind::GetFloat).call(vec![json])
}

pub(crate) fn as_truth(json: Expr) -> Expr {
    function(Kind::GetBool).call(vec![json])
}

fn function(kind: Kind) -> ScalarUDF {
    let signature = Signature::variadic_any(Volatility::Immutable);
    ScalarUDF::new_from_impl(JsonFunction { kind, signature })
}

/// How the functions are called.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    Kind::ALL.iter().map(|kind| kind.name())
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Get,
        Self::GetJson,
        Self::GetStr,
        Self::GetInt,
        Self::GetFloat,
        Self::GetBool,
        Self::AsText,
        Self::Length,
        Self::Contains,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Get => "json_get",
            Self::GetJson => "json_get_json",
            Self::GetStr => "json_get_str",
            Self::GetInt => "json_get_int",
            Self::GetFloat => "json_get_float",
            Self::GetBool => "json_get_bool",
            Self::AsText => "json_as_text",
            Self::Length => "json_length",
            Self::Contains => "json_contains",
        }
    }

    /// The values of it where JSON texts lead.
    fn array<'t>(self, found: impl Iterator<Item = Option<&'t str>>) -> ArrayRef {
        match self {
            Self::Get | Self::GetJson => Arc::new(found.collect::<StringViewArray>()),
            Self::GetStr => {
                let text = |json: &str| serde_json::from_str::<String>(json).ok();
                Arc::new(found.map(|json| json.and_then(text)).collect::<StringViewArray>())
            }
            Self::GetInt => {
                let number = |json: &str| json.parse::<i64>().ok();
                Arc::new(found.map(|json| json.and_then(number)).collect::<Int64Array>())
            }
            Self::GetFloat => {
                // One beyond all floats is infinite, as in a column.
                let number = |json: &str| json.parse::<f64>().ok().filter(|_| is_number(json));
                Arc::new(found.map(|json| json.and_then(number)).collect::<Float64Array>())
            }
            Self::GetBool => {
                let truth = |json: &str| serde_json::from_str::<bool>(json).ok();
                Arc::new(found.map(|json| json.and_then(truth)).collect::<BooleanArray>())
            }
            Self::AsText => {
                Arc::new(found.map(|json| json.and_then(as_text)).collect::<StringViewArray>())
            }
            Self::Length => {
                Arc::new(found.map(|json| json.and_then(length)).collect::<Int64Array>())
            }
            Self::Contains => {
                Arc::new(found.map(|json| Some(json.is_some())).collect::<BooleanArray>())
            }
        }
    }
}

impl ScalarUDFImpl for JsonFunction {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let is_text = |of: &DataType| of.is_string() || *of == DataType::Null;
        if types.first().is_some_and(DataType::is_nested) && self.kind == Kind::Length {
            return plan_err!(
                "json_length(...) takes JSON text: of a list of SQL it is array_length(...)"
            );
        }
        if !types.first().is_some_and(is_text) {
            return plan_err!(
                "{}(...) takes JSON text, and then names and indexes, as in {}(mixed, 'a', 0)",
                self.name(),
                self.name()
            );
        }
        Ok(match self.kind {
            Kind::Get | Kind::GetJson | Kind::GetStr | Kind::AsText => DataType::Utf8View,
            Kind::GetInt | Kind::Length => DataType::Int64,
            Kind::GetFloat => DataType::Float64,
            Kind::GetBool | Kind::Contains => DataType::Boolean,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<_> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name(), self.return_type(&types)?, true);
        let is_json = matches!(self.kind, Kind::Get | Kind::GetJson);
        Ok(Arc::new(if is_json { json_text(field) } else { field }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some((json, path)) = args.args.split_first() else {
            return plan_err!("{}(...) takes JSON text", self.name());
        };
        let Some(path) = path.iter().map(Step::of).collect::<Option<Vec<_>>>() else {
            return plan_err!(
                "{}(...) takes names and indexes as they are behind the JSON text, as in \
                 {}(mixed, 'a', 0)",
                self.name(),
                self.name()
            );
        };
        let texts = cast(&json.to_array(args.number_rows)?, &DataType::Utf8View)?;
        let texts = texts.as_string_view();
        let found = texts.iter().map(|json| find(json?.trim(), &path));
        let array = self.kind.array(found);
        Ok(match json {
            ColumnarValue::Scalar(_) if array.len() == 1 => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
            }
            _ => ColumnarValue::Array(array),
        })
    }
}

impl Step {
    fn of(argument: &ColumnarValue) -> Option<Self> {
        let ColumnarValue::Scalar(value) = argument else { return None };
        if let Some(name) = value.try_as_str() {
            return name.map(|name| Self::Name(name.to_owned()));
        }
        match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(index))) => Some(Self::Index(index)),
            _ => None,
        }
    }
}

/// The JSON text that steps lead to.
fn find<'t>(json: &'t str, path: &[Step]) -> Option<&'t str> {
    let mut at = json;
    if path.is_empty() {
        return serde_json::from_str::<&RawValue>(json).ok().map(RawValue::get);
    }
    for step in path {
        let found: &'t RawValue = match step {
            Step::Name(name) => {
                let members: HashMap<String, &'t RawValue> = serde_json::from_str(at).ok()?;
                members.get(name).copied()?
            }
            Step::Index(index) => {
                let elements: Vec<&'t RawValue> = serde_json::from_str(at).ok()?;
                elements.get(place(*index, elements.len())?).copied()?
            }
        };
        at = found.get();
    }
    Some(at)
}

/// Where an element is that is counted from the begin or from the end.
fn place(index: i64, len: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(place) => Some(place),
        Err(_) => len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

/// A string without its quotes, and all else as it is written but null, which is NULL.
fn as_text(json: &str) -> Option<String> {
    match json.as_bytes().first()? {
        b'"' => serde_json::from_str(json).ok(),
        b'n' => None,
        _ => Some(json.to_owned()),
    }
}

/// How many elements or members there are.
fn length(json: &str) -> Option<i64> {
    let elements = || serde_json::from_str::<Vec<&RawValue>>(json).ok().map(|all| all.len());
    let members =
        || serde_json::from_str::<HashMap<String, &RawValue>>(json).ok().map(|all| all.len());
    elements().or_else(members).and_then(|len| i64::try_from(len).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lead_to_the_text_as_it_is_written() {
        let name = |name: &str| Step::Name(name.to_owned());
        let json = r#"{"a":[1e400,{"b c":"\u0041"}],"n":null}"#;
        assert_eq!(find(json, &[name("a"), Step::Index(0)]), Some("1e400"));
        assert_eq!(find(json, &[name("a"), Step::Index(1), name("b c")]), Some(r#""\u0041""#));
        assert_eq!(find(json, &[name("n")]), Some("null"));
        assert_eq!(find(json, &[name("a"), Step::Index(-2)]), Some("1e400"));
        assert_eq!(find(json, &[name("a"), Step::Index(-3)]), None);
        assert_eq!(find(json, &[name("a"), Step::Index(i64::MIN)]), None);
        assert_eq!(find(json, &[name("x")]), None);
        assert_eq!(find(json, &[Step::Index(0)]), None);
        assert_eq!(find("no json", &[]), None);
        assert_eq!(
            (length("[1,[2]]"), length(r#"{"a":1}"#), length("7")),
            (Some(2), Some(1), None)
        );
    }
}
