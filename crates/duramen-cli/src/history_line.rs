//! A revision of an exported history as a line of JSON.

use std::borrow::Cow;
use std::io::{self, Write};

use duramen::{Error, ErrorKind, ExportedContent, ExportedRevision, Revision};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{Result, moment};

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    revision: u64,
    timestamp: String,
    committed: Option<String>,
    #[serde(borrow)]
    author: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "raw", skip_serializing_if = "Option::is_none")]
    value: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw", skip_serializing_if = "Option::is_none")]
    patch: Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
}

/// A document can be `null`, which is not the same as no value.
fn raw<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Writes a revision and the end of its line.
pub(crate) fn write(exported: &ExportedRevision, out: &mut dyn Write) -> Result<()> {
    let (value, patch) = match &exported.content {
        ExportedContent::Value(json) => (Some(json), None),
        ExportedContent::Patch(json) => (None, Some(json)),
        ExportedContent::Deleted => (None, None),
    };
    let line = Line {
        revision: exported.revision.0,
        timestamp: moment::format(exported.timestamp),
        committed: Some(moment::format(exported.committed)),
        author: exported.author.as_deref().map(Cow::Borrowed),
        message: exported.message.as_deref().map(Cow::Borrowed),
        value: value.map(|json| borrowed(json)).transpose()?,
        patch: patch.map(|json| borrowed(json)).transpose()?,
        deleted: exported.content == ExportedContent::Deleted,
    };
    serde_json::to_writer(&mut *out, &line).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

fn borrowed(json: &str) -> io::Result<&RawValue> {
    Ok(serde_json::from_str(json)?)
}

/// Reads a revision.
pub(crate) fn parse(text: &[u8]) -> duramen::Result<ExportedRevision> {
    let line: Line = serde_json::from_slice(text)
        .map_err(|error| invalid(format_args!("not a line of an exported history: {error}")))?;
    let content = match (line.value, line.patch, line.deleted) {
        (Some(value), None, false) => ExportedContent::Value(value.get().to_owned()),
        (None, Some(patch), false) => ExportedContent::Patch(patch.get().to_owned()),
        (None, None, true) => ExportedContent::Deleted,
        _ => return Err(invalid("a line has one of value, patch and deleted")),
    };
    let timestamp = moment::parse_time(&line.timestamp)?;
    let committed = line.committed.as_deref().map_or(Ok(timestamp), moment::parse_time)?;
    Ok(ExportedRevision {
        revision: Revision(line.revision),
        timestamp,
        committed,
        author: line.author.map(Cow::into_owned),
        message: line.message.map(Cow::into_owned),
        content,
    })
}

fn invalid(message: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Invalid, message.to_string())
}

#[cfg(test)]
mod tests {
    use duramen::Micros;

    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for content in [
            ExportedContent::Value("null".to_owned()),
            ExportedContent::Value(r#"{"a":1.10,"b":1E22}"#.to_owned()),
            ExportedContent::Patch(r#"[{"op":"remove","path":"/a"}]"#.to_owned()),
            ExportedContent::Deleted,
        ] {
            let exported = ExportedRevision {
                revision: Revision(7),
                timestamp: Micros(-1),
                committed: Micros(1_714_521_600_000_001),
                author: Some("a\"\u{e9}".to_owned()),
                message: None,
                content,
            };
            let mut line = Vec::new();
            assert!(write(&exported, &mut line).is_ok());
            assert_eq!(line.pop(), Some(b'\n'));
            assert_eq!(parse(&line).unwrap(), exported);
        }
    }

    #[test]
    fn a_line_without_one_content_is_refused() {
        for rest in ["", r#","value":1,"patch":[]"#] {
            let line = format!(r#"{{"revision":1,"timestamp":"2024-05-01"{rest}}}"#);
            assert_eq!(parse(line.as_bytes()).unwrap_err().kind(), ErrorKind::Invalid);
        }
        assert!(parse(b"[]").is_err());
    }
}
