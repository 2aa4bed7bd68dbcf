//! A point as a JSON object in each line.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead};

use duramen::Result;
use serde_json::value::RawValue;

use super::source::{
    Line, Lines, NAMES, Row, TIMES, Times, check_length, read_line, read_quality, read_type,
};
use super::{Layout, invalid};
use crate::commands::series::point::Written;

/// Lines of JSON.
pub(super) struct NdjsonLines<'l> {
    reader: Box<dyn BufRead>,
    layout: &'l Layout,
    times: Times,
    line: u64,
    text: Vec<u8>,
}

impl<'l> NdjsonLines<'l> {
    pub(super) fn new(reader: Box<dyn BufRead>, layout: &'l Layout) -> Self {
        Self { reader, layout, times: Times::new(layout), line: 0, text: Vec::new() }
    }

    fn rows(&self) -> Result<Vec<Row>> {
        check_length(&self.text)?;
        let members: BTreeMap<String, &RawValue> =
            serde_json::from_slice(&self.text).map_err(|error| self.no_object(&error))?;
        let member = |given: &Option<String>, names: &[&str]| {
            let found = match given {
                Some(name) => members.get(name),
                None => names.iter().find_map(|name| members.get(*name)),
            };
            found.copied().ok_or_else(|| {
                let name = given.as_deref().or(names.first().copied()).unwrap_or_default();
                invalid(format_args!(
                    "the member {name:?} is missing: --time, --name and --value name those that \
                     are meant"
                ))
            })
        };
        let Layout { prefix, time, name, value, .. } = self.layout;
        let series = format!("{prefix}{}", text_of(member(name, &NAMES)?)?);
        let time = self.times.read(&text_of(member(time, &TIMES)?)?)?;
        let value = member(value, &["value"])?;
        let quality = match members.get("quality") {
            Some(quality) => read_quality(&text_of(quality)?)?,
            None => duramen::Quality::GOOD,
        };
        let value_type = match members.get("value_type") {
            Some(value_type) => read_type(&text_of(value_type)?)?,
            None => None,
        };
        let text = text_of(value)?.into_owned();
        let is_quoted = value.get().starts_with('"');
        let value = if is_quoted { Written::Quoted(text) } else { Written::Text(text) };
        Ok(vec![Row { series, labels: None, time, value, quality, value_type }])
    }
}

impl NdjsonLines<'_> {
    /// The error for a line that is no point, with what its file may be.
    fn no_object(&self, error: &serde_json::Error) -> duramen::Error {
        const IS_ARRAY: &str =
            "each point has a line of its own, and `jq -c '.[]'` writes those of an array so";
        const IS_OTHER: &str = "--format csv or line-protocol reads one that is written so";
        let what = format!("it is no JSON object: {error}");
        match self.text.trim_ascii_start().first() {
            Some(b'[') => invalid(format_args!("{what}: {IS_ARRAY}")),
            Some(first) if self.line == 1 && *first != b'{' => {
                invalid(format_args!("{what}: {IS_OTHER}"))
            }
            _ => invalid(what),
        }
    }
}

impl Lines for NdjsonLines<'_> {
    fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            if !read_line(self.reader.as_mut(), &mut self.text)? {
                return Ok(None);
            }
            self.line += 1;
            if !self.text.trim_ascii().is_empty() {
                return Ok(Some((self.line, self.rows())));
            }
        }
    }
}

/// A string, number or truth value as text: a number as it is written, which keeps all its digits.
fn text_of(value: &RawValue) -> Result<Cow<'_, str>> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str(text).map(Cow::Owned).map_err(invalid),
        Some(b'{' | b'[' | b'n') | None => {
            Err(invalid(format_args!("{text} is no string, number or truth value")))
        }
        Some(_) => Ok(Cow::Borrowed(text)),
    }
}

#[cfg(test)]
mod tests {
    use duramen::ValueType;

    use super::*;

    #[test]
    fn members_say_what_a_point_is() {
        let text = "{\"name\":\"a\",\"time\":1,\"value\":\"NaN\",\"quality\":64}\n\n\
                    {\"name\":\"b\",\"time\":\"1970-01-01\",\"value\":\"7\"}\n\
                    {\"name\":\"b\"}\n[1]\n{\"tag\":\"c\",\"ts\":2,\"value\":1}\n";
        let prefix = String::new();
        let layout = Layout { prefix, time: None, name: None, value: None, time_unit: None };
        let mut lines = NdjsonLines::new(Box::new(text.as_bytes()), &layout);
        let mut next = || lines.next_line().unwrap().unwrap();
        let (line, rows) = next();
        let row = &rows.unwrap()[0];
        assert_eq!(
            (line, row.value.likely_type().unwrap(), row.quality.0),
            (1, ValueType::F64, 64)
        );
        let (line, rows) = next();
        let row = &rows.unwrap()[0];
        assert_eq!((line, row.value.likely_type().unwrap(), row.time.0), (3, ValueType::String, 0));
        assert!(next().1.unwrap_err().message().contains("\"time\" is missing"));
        assert!(next().1.is_err());
        let row = &next().1.unwrap()[0];
        assert_eq!((row.series.as_str(), row.time.0), ("c", 2));
        assert!(lines.next_line().unwrap().is_none());
    }

    #[test]
    fn of_a_member_that_comes_twice_the_last_one_counts_as_in_documents() {
        let text = br#"{"name":"a","time":1,"value":7,"\u0076alue":8,"time":2,"name":"b"}"#;
        let prefix = String::new();
        let layout = Layout { prefix, time: None, name: None, value: None, time_unit: None };
        let mut lines = NdjsonLines::new(Box::new(text.as_slice()), &layout);
        let row = &lines.next_line().unwrap().unwrap().1.unwrap()[0];
        assert_eq!((row.series.as_str(), row.time.0), ("b", 2));
        assert_eq!(row.value, Written::Text("8".to_owned()));
    }
}
