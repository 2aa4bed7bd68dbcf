//! Readings as JSON, an object a line: `{"series":"a/b","time":"2024-05-01","value":1.5}`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use duramen::{Quality, SeriesValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Reading, Reason, Written, time};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    series: Cow<'a, str>,
    #[serde(borrow)]
    time: &'a RawValue,
    #[serde(borrow)]
    value: &'a RawValue,
    quality: Option<u8>,
}

/// The reading of a line; none of an empty one.
pub(crate) fn parse(line: &str) -> Result<Option<Reading>, Reason> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    let parsed: Line<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let time = match text(parsed.time) {
        Some(text) => time(&text)?,
        None => time(parsed.time.get())?,
    };
    let value = match (text(parsed.value), parsed.value.get()) {
        // What a float cannot be in JSON is written as text.
        (Some(text), _) => Written::Text(text),
        (None, "true") => Written::Typed(SeriesValue::Bool(true)),
        (None, "false") => Written::Typed(SeriesValue::Bool(false)),
        (None, other) if other.starts_with(['{', '[', 'n']) => {
            return Err("a value is a number, true, false or text".to_owned());
        }
        (None, number) => Written::Text(number.to_owned()),
    };
    Ok(Some(Reading {
        series: parsed.series.into_owned(),
        labels: BTreeMap::new(),
        time,
        value,
        quality: parsed.quality.map_or(Quality::GOOD, Quality),
    }))
}

fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

#[cfg(test)]
mod tests {
    use duramen::Micros;

    use super::*;

    #[test]
    fn lines_are_readings() {
        let read =
            parse(r#"{"series":"a","time":5,"value":-1.5e2,"quality":64}"#).unwrap().unwrap();
        assert_eq!((read.series.as_str(), read.time, read.quality), ("a", Micros(5), Quality(64)));
        assert_eq!(read.value, Written::Text("-1.5e2".into()));
        let read = parse(r#"{"series":"a\n","time":"1970-01-01T00:00:01Z","value":"NaN"}"#);
        let read = read.unwrap().unwrap();
        assert_eq!((read.series.as_str(), read.time), ("a\n", Micros(1_000_000)));
        assert_eq!(read.value, Written::Text("NaN".into()));
        assert_eq!(parse(" "), Ok(None));
    }

    #[test]
    fn what_is_no_reading_is_refused() {
        for line in [
            "x",
            "[]",
            r#"{"series":"a","time":5}"#,
            r#"{"series":"a","time":5,"value":null}"#,
            r#"{"series":"a","time":5,"value":[1]}"#,
            r#"{"series":"a","time":"x","value":1}"#,
            r#"{"series":"a","time":5,"value":1,"quality":256}"#,
            r#"{"series":"a","time":5,"value":1,"unit":"m"}"#,
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
