//! Points as lines of output, and values as people write them.

use std::io::{self, Write};

use duramen::{Error, ErrorKind, Micros, Point, Quality, SeriesValue, ValueType};
use serde::{Serialize, Serializer};

use crate::moment;
use crate::output::{Palette, Record, one_line};

/// A point with the name of its series, if several are printed.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
    #[serde(serialize_with = "serialize_time")]
    pub(super) time: Micros,
    #[serde(serialize_with = "serialize_value")]
    pub(super) value: SeriesValue,
    /// None if it is good and no more is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<u8>,
    /// Said where an import is to make the same series.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_type: Option<&'static str>,
}

impl<'a> Line<'a> {
    /// One that says the type of the value.
    pub(super) fn typed(name: &'a str, point: Point) -> Self {
        let value_type = Some(point.value.value_type().name());
        Self { value_type, ..Self::new(Some(name), point) }
    }

    pub(super) fn new(name: Option<&'a str>, point: Point) -> Self {
        let Point { time, value, quality } = point;
        let quality = (quality != Quality::GOOD).then_some(quality.0);
        Self { name, time, value, quality, value_type: None }
    }
}

impl Record for Line<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Palette { time: t, heading: h, .. } = palette;
        if let Some(name) = self.name {
            write!(out, "{h}{}{h:#}  ", one_line(name))?;
        }
        write!(out, "{t}{}{t:#}  {}", moment::format(self.time), one_line(&text(&self.value)))?;
        if let Some(quality) = self.quality {
            write!(out, "  {}", Quality(quality))?;
        }
        writeln!(out)
    }
}

/// In RFC 3339 form; beyond all calendars the microseconds as a number.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn serialize_time<S: Serializer>(time: &Micros, serializer: S) -> Result<S::Ok, S::Error> {
    match moment::calendar(*time) {
        Some(text) => serializer.serialize_str(&text),
        None => serializer.serialize_i64(time.0),
    }
}

/// A value in JSON.
#[derive(Debug, Serialize)]
pub(super) struct JsonValue(#[serde(serialize_with = "serialize_value")] pub(super) SeriesValue);

/// As JSON has it; what is no number there as text.
fn serialize_value<S: Serializer>(value: &SeriesValue, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        SeriesValue::F64(float) if float.is_finite() => serializer.serialize_f64(*float),
        SeriesValue::F32(float) if float.is_finite() => serializer.serialize_f32(*float),
        SeriesValue::I64(integer) => serializer.serialize_i64(*integer),
        SeriesValue::Bool(flag) => serializer.serialize_bool(*flag),
        value => serializer.collect_str(value),
    }
}

/// The time as text that an import reads.
pub(super) fn time_text(time: Micros) -> String {
    moment::calendar(time).unwrap_or_else(|| time.0.to_string())
}

/// The value as text.
pub(super) fn text(value: &SeriesValue) -> String {
    value.to_string()
}

/// A value as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Written {
    /// Of a type that the text tells.
    Typed(SeriesValue),
    /// A number of f64, or of f32 if the series has these.
    Float(String),
    /// Of the type that the series has.
    Text(String),
    /// The same in quotes, so that a new series gets text.
    Quoted(String),
}

impl Written {
    /// The type of a series that is made for it: f64 for any number, bool or string.
    ///
    /// # Errors
    /// `Invalid` if it is empty, which may be a missing number as well as a text.
    pub(super) fn likely_type(&self) -> duramen::Result<ValueType> {
        Ok(match self {
            Self::Text(text) if text.is_empty() => {
                let message = "the first value is empty, which tells no type: give --type";
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            Self::Typed(value) => value.value_type(),
            Self::Float(_) => ValueType::F64,
            Self::Text(text) if text.trim().parse::<f64>().is_ok() => ValueType::F64,
            Self::Text(text) if parse_bool(text.trim()).is_some() => ValueType::Bool,
            // What JSON cannot write as a number.
            Self::Quoted(text) if text.parse().is_ok_and(|float: f64| !float.is_finite()) => {
                ValueType::F64
            }
            Self::Text(_) | Self::Quoted(_) => ValueType::String,
        })
    }

    /// The value, if it is of a type.
    pub(super) fn of_type(&self, value_type: ValueType) -> duramen::Result<SeriesValue> {
        let text = match self {
            Self::Typed(value) if value.value_type() == value_type => return Ok(value.clone()),
            Self::Typed(value) => return Err(of_another(value, value.value_type(), value_type)),
            Self::Float(text) if !matches!(value_type, ValueType::F64 | ValueType::F32) => {
                return Err(of_another(text, ValueType::F64, value_type));
            }
            Self::Float(text) | Self::Text(text) | Self::Quoted(text) => text,
        };
        // Blanks are a part of text alone.
        let number = text.trim();
        let parsed = match value_type {
            ValueType::F64 => number
                .parse()
                .ok()
                .filter(|float: &f64| is_as_written(float.is_infinite(), number))
                .map(SeriesValue::F64),
            ValueType::F32 => number
                .parse()
                .ok()
                .filter(|float: &f32| is_as_written(float.is_infinite(), number))
                .map(SeriesValue::F32),
            ValueType::I64 => number.parse().ok().map(SeriesValue::I64),
            ValueType::Bool => parse_bool(number).map(SeriesValue::Bool),
            ValueType::String => Some(SeriesValue::String(text.clone())),
        };
        parsed.ok_or_else(|| {
            let message =
                format!("the value {text:?} is not of type {value_type}, as the series is");
            Error::new(ErrorKind::Invalid, message)
        })
    }
}

/// True or false, also with capitals, as spreadsheets and pandas write them.
fn parse_bool(text: &str) -> Option<bool> {
    [true, false].into_iter().find(|flag| text.eq_ignore_ascii_case(&flag.to_string()))
}

/// The error for a value of one type for a series of another one.
fn of_another(value: impl std::fmt::Display, given: ValueType, wanted: ValueType) -> Error {
    let message = format!("the value {value} is of type {given}, the series of {wanted}");
    Error::new(ErrorKind::Invalid, message)
}

/// Whether a number is what its text says, and not infinite because the type ends before it.
fn is_as_written(is_infinite: bool, text: &str) -> bool {
    !is_infinite || !text.contains(|c: char| c.is_ascii_digit())
}

/// A quality as people write it: a byte, or `good`, `uncertain`, `bad` or `invalid`.
pub(super) fn parse_quality(text: &str) -> Result<Quality, String> {
    match text {
        "good" => Ok(Quality::GOOD),
        "uncertain" => Ok(Quality::UNCERTAIN),
        "bad" => Ok(Quality::BAD),
        "invalid" => Ok(Quality::INVALID),
        _ => text.parse().map(Quality).map_err(|_| {
            format!("{text:?} is no quality: use good, uncertain, bad, invalid or a byte")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_back_as_they_are_printed() {
        let values = [
            SeriesValue::F64(0.1 + 0.2),
            SeriesValue::F64(f64::NEG_INFINITY),
            SeriesValue::F64(f64::NAN),
            SeriesValue::F64(-0.0),
            SeriesValue::F32(0.1),
            SeriesValue::I64(i64::MIN),
            SeriesValue::Bool(true),
            SeriesValue::String(" a\n".to_owned()),
        ];
        for value in values {
            let read = Written::Text(value.to_string()).of_type(value.value_type());
            assert_eq!(read.unwrap(), value);
        }
        let half = Written::Text("1.5".to_owned());
        assert_eq!(half.of_type(ValueType::I64).unwrap_err().kind(), ErrorKind::Invalid);
        assert!(Written::Typed(1.into()).of_type(ValueType::F64).is_err());
        let float = Written::Float("0.1".to_owned());
        assert_eq!(float.of_type(ValueType::F32).unwrap(), SeriesValue::F32(0.1));
        assert_eq!(float.of_type(ValueType::F64).unwrap(), SeriesValue::F64(0.1));
        assert!(
            float.of_type(ValueType::I64).is_err() && float.of_type(ValueType::String).is_err()
        );
        let spaced = Written::Text(" 1.5 ".to_owned());
        assert_eq!(spaced.of_type(ValueType::F64).unwrap(), SeriesValue::F64(1.5));
        assert_eq!(spaced.of_type(ValueType::String).unwrap(), " 1.5 ".into());
        assert_eq!(spaced.likely_type().unwrap(), ValueType::F64);
        let huge = Written::Text("1e999".to_owned());
        assert!(huge.of_type(ValueType::F64).is_err() && huge.of_type(ValueType::F32).is_err());
    }

    #[test]
    fn numbers_are_floats_unless_a_type_is_given() {
        use ValueType::{Bool, F64, String};
        let text = |text: &str| Written::Text(text.to_owned()).likely_type().unwrap();
        let types = ["7", "-1e3", "NaN", "true", "False", "drizzle"].map(text);
        assert_eq!(types, [F64, F64, F64, Bool, Bool, String]);
        let quoted = |text: &str| Written::Quoted(text.to_owned()).likely_type().unwrap();
        assert_eq!(["7", "NaN", ""].map(quoted), [String, F64, String]);
        let empty = Written::Text(std::string::String::new()).likely_type();
        assert_eq!(empty.unwrap_err().kind(), ErrorKind::Invalid);
    }
}
