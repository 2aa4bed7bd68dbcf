//! Readings: points of many series, as they stand in text.
//!
//! Each format turns text into readings one line at a time; a line that it cannot read is told with
//! its number and the reason, and nothing of that line is taken.

pub(crate) mod json_lines;
pub(crate) mod line_protocol;
pub(crate) mod tables;

use std::collections::BTreeMap;

use duramen::{Micros, Quality, SeriesValue, ValueType};

use crate::moment;

/// One point of one series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    pub(crate) series: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) time: Micros,
    pub(crate) value: Written,
    pub(crate) quality: Quality,
}

/// A value as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Written {
    /// Of a type that the text tells.
    Typed(SeriesValue),
    /// Of the type that the series has.
    Text(String),
}

/// What is wrong with a line.
pub(crate) type Reason = String;

impl Written {
    /// The type that a new series of such values has: that of the text if it tells one, else
    /// floats, truth values or text, whichever can be read.
    pub(crate) fn likely_type(&self) -> ValueType {
        match self {
            Self::Typed(value) => value.value_type(),
            Self::Text(text) if text.parse::<f64>().is_ok() => ValueType::F64,
            Self::Text(text) if truth(text).is_some() => ValueType::Bool,
            Self::Text(_) => ValueType::String,
        }
    }

    /// The value, if it is of a type.
    pub(crate) fn of_type(self, value_type: ValueType) -> Result<SeriesValue, Reason> {
        let text = match self {
            Self::Typed(value) if value.value_type() == value_type => return Ok(value),
            Self::Typed(value) => {
                let found = value.value_type();
                return Err(format!("{value} is of type {found}, and the series of {value_type}"));
            }
            Self::Text(text) => text,
        };
        let value = match value_type {
            ValueType::F64 => text.parse().ok().map(SeriesValue::F64),
            ValueType::F32 => text.parse().ok().map(SeriesValue::F32),
            ValueType::I64 => text.parse().ok().map(SeriesValue::I64),
            ValueType::Bool => truth(&text).map(SeriesValue::Bool),
            ValueType::String => return Ok(SeriesValue::String(text)),
        };
        value.ok_or_else(|| format!("{text:?} is no value of type {value_type}"))
    }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// A time: in RFC 3339 form, or microseconds since 1970 in digits.
pub(crate) fn time(text: &str) -> Result<Micros, Reason> {
    if let Ok(micros) = text.parse() {
        return Ok(Micros(micros));
    }
    moment::parse_time(text).map_err(|error| error.message().to_owned())
}

/// A quality as a number from 0 to 255.
pub(crate) fn quality(text: &str) -> Result<Quality, Reason> {
    let quality = text.parse().map(Quality);
    quality.map_err(|_| format!("the quality {text:?}: write a number from 0 to 255, 192 for good"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_the_type_of_their_series() {
        let text = |text: &str| Written::Text(text.to_owned());
        assert_eq!(text("1").of_type(ValueType::I64), Ok(SeriesValue::I64(1)));
        assert_eq!(text("1").of_type(ValueType::F64), Ok(SeriesValue::F64(1.0)));
        assert_eq!(text("TRUE").of_type(ValueType::Bool), Ok(SeriesValue::Bool(true)));
        assert!(text("1.5").of_type(ValueType::I64).unwrap_err().contains("\"1.5\""));
        assert!(Written::Typed(1.into()).of_type(ValueType::F64).is_err());
        let likely = ["NaN", "-1e3", "true", "drizzle", ""].map(|one| text(one).likely_type());
        let (float, string) = (ValueType::F64, ValueType::String);
        assert_eq!(likely, [float, float, ValueType::Bool, string, string]);
    }

    #[test]
    fn times_are_text_or_microseconds() {
        assert_eq!(time("-5"), Ok(Micros(-5)));
        assert_eq!(time("1970-01-01T00:00:01Z"), Ok(Micros(1_000_000)));
        assert!(time("noon").is_err() && quality("256").is_err());
    }
}
