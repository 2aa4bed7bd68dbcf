//! The line protocol of InfluxDB: `measurement,tag=a field=1.5,other=2i 1714560000000000000`.
//!
//! A series is named `measurement/field`, and the tags are its labels.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use duramen::{Clock, Micros, Quality, Result, SeriesValue, SystemClock};

use super::source::{Line, Lines, Row, check_length, read_line};
use super::{Layout, TimeUnit, invalid};
use crate::commands::series::point::Written;
use crate::notice::notice;

/// Lines of the protocol.
pub(super) struct LineProtocol<'l> {
    reader: Box<dyn BufRead>,
    prefix: &'l str,
    rules: Rules,
    line: u64,
    text: Vec<u8>,
    /// Whether it was told that times are rounded.
    is_told: bool,
}

/// What is true for all lines.
#[derive(Debug, Clone, Copy)]
struct Rules {
    /// What times count.
    unit: TimeUnit,
    /// The time of lines that have none.
    now: Micros,
}

impl<'l> LineProtocol<'l> {
    pub(super) fn new(reader: Box<dyn BufRead>, layout: &'l Layout) -> Self {
        let rules =
            Rules { unit: layout.time_unit.unwrap_or(TimeUnit::Ns), now: SystemClock.now() };
        let prefix = layout.prefix.as_str();
        Self { reader, prefix, rules, line: 0, text: Vec::new(), is_told: false }
    }

    fn rows(&mut self) -> Result<Vec<Row>> {
        check_length(&self.text)?;
        let line = std::str::from_utf8(&self.text).map_err(|_| invalid("it is not UTF-8"))?;
        let (mut rows, is_rounded) = parse(line, self.rules)?;
        if is_rounded && !std::mem::replace(&mut self.is_told, true) {
            notice!("duramen: times are kept in microseconds: nanoseconds are rounded down");
        }
        for row in &mut rows {
            row.series.insert_str(0, self.prefix);
        }
        Ok(rows)
    }
}

impl Lines for LineProtocol<'_> {
    fn next_line(&mut self) -> io::Result<Option<Line>> {
        if !read_line(self.reader.as_mut(), &mut self.text)? {
            return Ok(None);
        }
        self.line += 1;
        Ok(Some((self.line, self.rows())))
    }
}

/// The points of a line; none of a comment or an empty line. True if its time was rounded down.
fn parse(line: &str, rules: Rules) -> Result<(Vec<Row>, bool)> {
    let line = line.trim_start().trim_end_matches(['\r', '\n', ' ']);
    if line.is_empty() || line.starts_with('#') {
        return Ok((Vec::new(), false));
    }
    let mut scan = Scan { rest: line };
    let measurement = scan.word(&[',', ' '], &[',', ' ']);
    if measurement.is_empty() {
        return Err(invalid("the measurement has no name"));
    }
    let mut labels = BTreeMap::new();
    while scan.takes(',') {
        let tag = scan.key("tag")?;
        let value = scan.word(&[',', ' '], &[',', ' ', '=']);
        if value.is_empty() {
            return Err(invalid(format_args!("the tag {tag:?} has no value")));
        }
        if labels.insert(tag.clone(), value).is_some() {
            return Err(invalid(format_args!("the tag {tag:?} is there twice")));
        }
    }
    scan.spaces("the fields")?;
    let mut fields = Vec::new();
    loop {
        let field = scan.key("field")?;
        let value = scan.value(&field)?;
        fields.push((field, value));
        if !scan.takes(',') {
            break;
        }
    }
    let (time, is_rounded) = scan.time(rules)?;
    let row = |(field, value)| Row {
        series: format!("{measurement}/{field}"),
        labels: Some(labels.clone()),
        time,
        value,
        quality: Quality::GOOD,
        value_type: None,
    };
    Ok((fields.into_iter().map(row).collect(), is_rounded))
}

/// A line from some character on.
struct Scan<'a> {
    rest: &'a str,
}

impl Scan<'_> {
    fn takes(&mut self, character: char) -> bool {
        let rest = self.rest.strip_prefix(character);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// The characters up to one of `ends`. A backslash stands before one of `special` that means
    /// nothing, and else for itself.
    fn word(&mut self, ends: &[char], special: &[char]) -> String {
        let mut word = String::new();
        while let Some(character) = self.rest.chars().next() {
            if ends.contains(&character) {
                break;
            }
            self.rest = &self.rest[character.len_utf8()..];
            let next = self.rest.chars().next();
            match next.filter(|next| character == '\\' && special.contains(next)) {
                Some(next) => {
                    word.push(next);
                    self.rest = &self.rest[next.len_utf8()..];
                }
                None => word.push(character),
            }
        }
        word
    }

    /// A name and the sign behind it.
    fn key(&mut self, what: &str) -> Result<String> {
        let key = self.word(&[',', '=', ' '], &[',', '=', ' ']);
        if key.is_empty() {
            return Err(invalid(format_args!("a {what} has no name")));
        }
        if !self.takes('=') {
            return Err(invalid(format_args!("the {what} {key:?} has no = and value")));
        }
        Ok(key)
    }

    fn spaces(&mut self, what: &str) -> Result<()> {
        let trimmed = self.rest.trim_start_matches(' ');
        if trimmed.len() == self.rest.len() || trimmed.is_empty() {
            return Err(invalid(format_args!("{what} are missing")));
        }
        self.rest = trimmed;
        Ok(())
    }

    fn value(&mut self, field: &str) -> Result<Written> {
        if self.takes('"') {
            let text = self.word(&['"'], &['"', '\\']);
            if !self.takes('"') {
                return Err(invalid(format_args!(
                    "the text of the field {field:?} has no end on this line"
                )));
            }
            return Ok(Written::Typed(SeriesValue::String(text)));
        }
        let word = self.word(&[',', ' '], &[]);
        let value = match word.as_str() {
            "t" | "T" | "true" | "True" | "TRUE" => Some(Written::Typed(SeriesValue::Bool(true))),
            "f" | "F" | "false" | "False" | "FALSE" => {
                Some(Written::Typed(SeriesValue::Bool(false)))
            }
            number => number_of(number)?,
        };
        value
            .ok_or_else(|| invalid(format_args!("the field {field:?} has no such value: {word:?}")))
    }

    fn time(&mut self, rules: Rules) -> Result<(Micros, bool)> {
        let text = self.rest.trim_matches(' ');
        if text.is_empty() {
            return Ok((rules.now, false));
        }
        if !self.rest.starts_with(' ') {
            return Err(invalid(format_args!("expected a space before the time, found {text:?}")));
        }
        let Ok(count) = text.parse::<i64>() else {
            return Err(invalid(format_args!("the time {text:?} is no integer of 64 bits")));
        };
        let is_rounded = rules.unit == TimeUnit::Ns && count % 1_000 != 0;
        Ok((rules.unit.micros(count)?, is_rounded))
    }
}

/// An integer behind which is `i` or `u`, or a float.
fn number_of(text: &str) -> Result<Option<Written>> {
    let integer = |value| Written::Typed(SeriesValue::I64(value));
    if let Some(digits) = text.strip_suffix('i') {
        return Ok(digits.parse().ok().map(integer));
    }
    if let Some(digits) = text.strip_suffix('u') {
        let Ok(value) = digits.parse::<u64>() else { return Ok(None) };
        let value = i64::try_from(value);
        let value = value
            .map_err(|_| invalid(format_args!("{text} does not fit a signed integer of 64 bits")));
        return value.map(|value| Some(integer(value)));
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let is_float = is_number && text.parse::<f64>().is_ok();
    Ok(is_float.then(|| Written::Float(text.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { unit: TimeUnit::Ns, now: Micros(7) };

    fn read(line: &str) -> Vec<(String, SeriesValue, i64)> {
        let (readings, _) = parse(line, RULES).unwrap();
        let plain = |one: Row| {
            let value = one.value.of_type(one.value.likely_type().unwrap()).unwrap();
            (one.series, value, one.time.0)
        };
        readings.into_iter().map(plain).collect()
    }

    #[test]
    fn fields_of_every_type_are_series() {
        let line = r#"m,a=1,b=x f=1.5,i=-2i,u=3u,t=T,n=false,s="a \"b\" \\ , =" 1000500"#;
        let (readings, is_rounded) = parse(line, RULES).unwrap();
        assert!(is_rounded);
        let labels = [("a".into(), "1".into()), ("b".into(), "x".into())];
        assert_eq!(readings[0].labels, Some(labels.into()));
        let expected = [
            ("m/f", SeriesValue::F64(1.5)),
            ("m/i", SeriesValue::I64(-2)),
            ("m/u", SeriesValue::I64(3)),
            ("m/t", SeriesValue::Bool(true)),
            ("m/n", SeriesValue::Bool(false)),
            ("m/s", SeriesValue::String(r#"a "b" \ , ="#.into())),
        ];
        let expected = expected.map(|(series, value)| (series.to_owned(), value, 1_000));
        assert_eq!(read(line), expected);
    }

    #[test]
    fn names_are_escaped_and_a_backslash_stands_for_itself() {
        let line = r"my\ m\,x=1,t\=\ a=b\,c f\ 1=1,back\slash=2 5000";
        let (readings, _) = parse(line, RULES).unwrap();
        let names: Vec<_> = readings.iter().map(|one| one.series.as_str()).collect();
        assert_eq!(names, [r"my m,x=1/f 1", r"my m,x=1/back\slash"]);
        assert_eq!(readings[0].labels, Some([("t= a".to_owned(), "b,c".to_owned())].into()));
    }

    #[test]
    fn times_are_of_a_precision_and_rounded_down() {
        assert_eq!(read("m f=1 -1")[0].2, -1);
        assert_eq!(read("m f=1")[0].2, 7);
        let of = |unit| parse("m f=1 3", Rules { unit, ..RULES }).unwrap();
        assert_eq!(of(TimeUnit::S).0[0].time, Micros(3_000_000));
        assert_eq!(
            (of(TimeUnit::Ms).0[0].time, of(TimeUnit::Us).0[0].time),
            (Micros(3_000), Micros(3))
        );
        assert!(!of(TimeUnit::Us).1);
        let seconds = Rules { unit: TimeUnit::S, ..RULES };
        assert!(parse("m f=1 9223372036854775807", seconds).is_err());
    }

    #[test]
    fn comments_and_empty_lines_are_nothing() {
        for line in ["", "   ", "# m f=1", "\r"] {
            let (rows, is_rounded) = parse(line, RULES).unwrap();
            assert!(rows.is_empty() && !is_rounded, "{line:?}");
        }
    }

    #[test]
    fn what_is_no_line_is_refused_with_a_reason() {
        let cases = [
            ("m", "the fields are missing"),
            ("m ", "the fields are missing"),
            (",a=b f=1", "the measurement has no name"),
            ("m,a f=1", "the tag \"a\" has no = and value"),
            ("m,a= f=1", "the tag \"a\" has no value"),
            ("m,a=1,a=2 f=1", "the tag \"a\" is there twice"),
            ("m f", "the field \"f\" has no = and value"),
            ("m f=", "the field \"f\" has no such value: \"\""),
            ("m f=1x", "the field \"f\" has no such value: \"1x\""),
            ("m f=nan", "the field \"f\" has no such value: \"nan\""),
            (
                "m f=9223372036854775808i",
                "the field \"f\" has no such value: \"9223372036854775808i\"",
            ),
            (
                "m f=9223372036854775808u",
                "9223372036854775808u does not fit a signed integer of 64 bits",
            ),
            ("m f=\"a", "the text of the field \"f\" has no end on this line"),
            ("m f=1 noon", "the time \"noon\" is no integer of 64 bits"),
            ("m f=\"a\"5", "expected a space before the time, found \"5\""),
            ("m f=1,", "a field has no name"),
        ];
        for (line, reason) in cases {
            assert_eq!(parse(line, RULES).unwrap_err().message(), reason, "{line}");
        }
    }
}
