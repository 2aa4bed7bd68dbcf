//! One value as a column of a declared type keeps it, as JSON.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::array_value_to_string;
use serde_json::value::RawValue;

use super::array::cast;
use super::{DeclaredColumn, NOT_NULL};
use crate::column_type::is_json;
use crate::record_json::{Fit, Kind, kind, string};

/// Places by which an exponent moves the point of a number, where it may fit into a type: floats,
/// which have most, are read with theirs.
const PLACES_MAX: usize = 80;

impl DeclaredColumn {
    /// A value as the column keeps it, or why it does not fit; none if it is NULL.
    pub(crate) fn kept(&self, json: Option<String>) -> Result<Option<String>, String> {
        let is_null = json.as_deref().is_none_or(|json| kind(json) == Kind::Null);
        match json {
            _ if is_null && self.is_required => Err(NOT_NULL.to_owned()),
            Some(json) if is_json(&self.field) => Ok(Some(json)),
            Some(json) if !is_null => {
                let kept = kept(&json, self.field.data_type());
                kept.map(Some).ok_or_else(|| self.refused(&json))
            }
            _ => Ok(None),
        }
    }

    /// What the values of a field within the column have to become, or why it can have none.
    pub(crate) fn within(&self) -> Result<Fit<'static>, String> {
        if is_json(&self.field) { Ok(Fit::new(None)) } else { Err(self.refused(Kind::Object)) }
    }
}

/// JSON as a column of a type keeps it; none if it does not fit.
fn kept(json: &str, to: &DataType) -> Option<String> {
    match (to, kind(json)) {
        (DataType::List(item), Kind::Array) => {
            let elements: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            let element = |element: &&RawValue| match element.get() {
                "null" => Some("null".to_owned()),
                json => kept(json, item.data_type()),
            };
            let elements = elements.iter().map(element).collect::<Option<Vec<_>>>()?;
            Some(format!("[{}]", elements.join(",")))
        }
        (DataType::List(_), Kind::Text) => {
            let text: String = serde_json::from_str(json).ok()?;
            let text = text.trim();
            if kind(text) == Kind::Array { kept(text, to) } else { None }
        }
        (DataType::List(_), _) | (_, Kind::Array | Kind::Object | Kind::Null) => None,
        (DataType::Boolean, Kind::Bool)
        | (DataType::Utf8View, Kind::Text)
        | (DataType::Float64, Kind::Number) => Some(json.to_owned()),
        (DataType::Utf8View, _) => Some(string(json)),
        _ => {
            let text: ArrayRef = Arc::new(StringViewArray::from_iter([plain(json, to)]));
            let value = cast(&text, to).ok()?;
            if value.is_null(0) {
                return None;
            }
            let shown = array_value_to_string(&value, 0).ok()?;
            if to.is_temporal() {
                return Some(string(&shown));
            }
            // JSON has no number for some floats.
            serde_json::from_str::<&RawValue>(&shown).is_ok().then_some(shown)
        }
    }
}

/// JSON as text that a type is read from; none if it has no such text.
pub(super) fn plain<'j>(json: &'j str, to: &DataType) -> Option<Cow<'j, str>> {
    match kind(json) {
        Kind::Null => None,
        Kind::Text => {
            let text: String = serde_json::from_str(json).ok()?;
            Some(Cow::Owned(numeral(&text, to).into_owned()))
        }
        Kind::Number if to.is_integer() => written_out(json).map(whole),
        Kind::Number if to.is_numeric() && !to.is_floating() => written_out(json),
        Kind::Array | Kind::Object if *to != DataType::Utf8View => None,
        _ => Some(Cow::Borrowed(json)),
    }
}

/// A text that a type is read from: one that is a number as that number is.
pub(super) fn numeral<'t>(text: &'t str, to: &DataType) -> Cow<'t, str> {
    let number = text.trim();
    let is_number =
        || number.bytes().any(|byte| byte.is_ascii_digit()) && number.parse::<f64>().is_ok();
    if !to.is_numeric() || to.is_floating() || !is_number() {
        return Cow::Borrowed(text);
    }
    match written_out(number.strip_prefix('+').unwrap_or(number)) {
        Some(number) if to.is_integer() => whole(number),
        Some(number) => number,
        None => Cow::Borrowed(text),
    }
}

/// A number without its exponent; none if that is beyond all types.
fn written_out(number: &str) -> Option<Cow<'_, str>> {
    let Some((mantissa, exponent)) = number.split_once(['e', 'E']) else {
        return Some(Cow::Borrowed(number));
    };
    let exponent: i32 = exponent.parse().ok()?;
    let places = usize::try_from(exponent.unsigned_abs()).ok().filter(|max| *max <= PLACES_MAX)?;
    let sign = if mantissa.starts_with('-') { "-" } else { "" };
    let mantissa = mantissa.trim_start_matches('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let zeros = "0".repeat(places);
    Some(Cow::Owned(if exponent < 0 {
        let digits = format!("{zeros}{whole}");
        let (whole, moved) = digits.split_at(digits.len() - places);
        format!("{sign}{whole}.{moved}{fraction}")
    } else {
        let digits = format!("{fraction}{zeros}");
        let (moved, fraction) = digits.split_at(places);
        format!("{sign}{whole}{moved}.{fraction}")
    }))
}

/// A number without a fraction that is zero, as floats are written.
fn whole(number: Cow<'_, str>) -> Cow<'_, str> {
    match number.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|digit| digit == b'0') => {
            Cow::Owned(whole.to_owned())
        }
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_what_is_declared() {
        for (sql, json, expected) in [
            ("BIGINT", "5.00", Some("5")),
            ("BIGINT", r#""-7""#, Some("-7")),
            ("BIGINT", "5.5", None),
            ("BIGINT", r#""5.00""#, Some("5")),
            ("BIGINT", r#""-2e3""#, Some("-2000")),
            ("BIGINT", r#""--2e3""#, None),
            ("BIGINT", r#""one""#, None),
            ("DECIMAL(10, 2)", r#"" +1.5e3 ""#, Some("1500.00")),
            ("DECIMAL(10, 2)", r#""1.5e-1""#, Some("0.15")),
            ("DECIMAL(10, 2)", r#""1e99""#, None),
            ("DECIMAL(10, 2)", r#""inf""#, None),
            ("REAL", r#""1e3""#, Some("1000.0")),
            ("BIGINT", "-1.5e3", Some("-1500")),
            ("BIGINT", "1e-1", None),
            ("BIGINT", "1e99", None),
            ("DECIMAL(10, 2)", "-1.25E-1", Some("-0.13")),
            ("DECIMAL(30, 1)", "1e16", Some("10000000000000000.0")),
            ("REAL", "1e30", Some("1e30")),
            ("REAL", "1e39", None),
            ("DOUBLE", r#""1e309""#, None),
            ("BIGINT", "9223372036854775808", None),
            ("BIGINT UNSIGNED", "18446744073709551615", Some("18446744073709551615")),
            ("SMALLINT", "40000", None),
            ("BOOLEAN", r#""false""#, Some("false")),
            ("BOOLEAN", "[]", None),
            ("TEXT", "1.50", Some(r#""1.50""#)),
            ("TEXT", "{}", None),
            ("DOUBLE", "1.2500000000000000000001", Some("1.2500000000000000000001")),
            ("DOUBLE", r#""NaN""#, None),
            (
                "DECIMAL(38, 2)",
                "123456789012345678901234567890.125",
                Some("123456789012345678901234567890.13"),
            ),
            ("DATE", r#""2024-02-30""#, None),
            ("TIME", r#""10:30""#, Some(r#""10:30:00""#)),
            ("TIMESTAMP", r#""2024-05-01T10:00:00+02:00""#, Some(r#""2024-05-01T08:00:00""#)),
            ("BIGINT[]", r#"["1", null, 2]"#, Some("[1,null,2]")),
            ("BIGINT[]", r#""[1]""#, Some("[1]")),
            ("BIGINT[]", "[1,[2]]", None),
            ("BIGINT[][]", "[[1],[]]", Some("[[1],[]]")),
            ("JSONB", "[1.50]", Some("[1.50]")),
        ] {
            let column = DeclaredColumn::new("c".to_owned(), sql.to_owned()).unwrap();
            let kept = column.kept(Some(json.to_owned())).ok().flatten();
            assert_eq!(kept.as_deref(), expected, "{sql} {json}");
        }
    }
}
