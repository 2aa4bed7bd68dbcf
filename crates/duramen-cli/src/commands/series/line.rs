//! Points as they are printed.

use std::io::{self, Write};

use duramen::{Micros, Point, SeriesValue};
use serde::{Serialize, Serializer};

use crate::moment;
use crate::output::{Palette, Record, one_line};

/// One point.
#[derive(Debug, Serialize)]
pub(super) struct PointLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) series: Option<&'a str>,
    time: String,
    value: Value,
    quality: u8,
    #[serde(skip)]
    shown_quality: String,
}

/// A value in JSON. What a float cannot be there is text: NaN, inf and -inf.
#[derive(Debug)]
pub(super) struct Value(pub(super) SeriesValue);

impl<'a> PointLine<'a> {
    pub(super) fn new(series: Option<&'a str>, point: Point) -> Self {
        let (quality, shown_quality) = (point.quality.0, point.quality.to_string());
        Self { series, time: time(point.time), value: Value(point.value), quality, shown_quality }
    }
}

/// A time as `duramen series` reads it: in RFC 3339 form, or microseconds where no calendar is.
pub(super) fn time(time: Micros) -> String {
    match jiff::Timestamp::from_microsecond(time.0) {
        Ok(_) => moment::format(time),
        Err(_) => time.0.to_string(),
    }
}

impl Record for PointLine<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Palette { time: t, .. } = palette;
        if let Some(series) = self.series {
            write!(out, "{}  ", one_line(series))?;
        }
        write!(out, "{t}{}{t:#}  {}", self.time, one_line(&self.value.0.to_string()))?;
        if self.shown_quality != "good" {
            write!(out, "  {}", self.shown_quality)?;
        }
        writeln!(out)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            SeriesValue::F64(value) if value.is_finite() => serializer.serialize_f64(*value),
            SeriesValue::F32(value) if value.is_finite() => serializer.serialize_f32(*value),
            SeriesValue::I64(value) => serializer.serialize_i64(*value),
            SeriesValue::Bool(value) => serializer.serialize_bool(*value),
            other => serializer.collect_str(other),
        }
    }
}
