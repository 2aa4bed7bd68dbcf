//! A revision of an exported history, or what is said of the document, as a line of JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use duramen::{
    ContentHash, DepartedRecords, Error, ErrorKind, ExportedContent, ExportedFacts,
    ExportedRevision, MemberMove, Revision,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::{Result, moment};

mod facts;

/// A line of an exported history.
#[derive(Debug, PartialEq)]
pub(crate) enum HistoryLine {
    Facts(ExportedFacts),
    Revision(ExportedRevision),
}

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    revision: u64,
    timestamp: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    committed: Option<String>,
    #[serde(borrow)]
    author: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "raw", skip_serializing_if = "Option::is_none")]
    value: Option<&'a RawValue>,
    /// The value is the next line: it is too long to be held in memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    value_follows: bool,
    #[serde(borrow, default, deserialize_with = "raw", skip_serializing_if = "Option::is_none")]
    patch: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    order: Vec<Place<'a>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    hash: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    counted: Cow<'a, [String]>,
    #[serde(default, skip_serializing_if = "has_none")]
    versions: Cow<'a, BTreeMap<String, u64>>,
    #[serde(default, skip_serializing_if = "has_none")]
    departed: Cow<'a, BTreeMap<String, u64>>,
    /// What departed is a line of its own that has this hash, behind the value if that follows.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    departed_follow: Option<Cow<'a, str>>,
}

/// Where a member of an object goes once the patch was applied.
#[derive(Serialize, Deserialize)]
struct Place<'a> {
    path: Cow<'a, str>,
    /// The sibling that it stands in front of; without it the member is the last.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    before: Option<Cow<'a, str>>,
}

impl<'a> Place<'a> {
    fn of(moved: &'a MemberMove) -> Self {
        let before = moved.before.as_deref().map(Cow::Borrowed);
        Self { path: Cow::Owned(moved.member.to_string()), before }
    }

    fn read(self) -> duramen::Result<MemberMove> {
        Ok(MemberMove { member: self.path.parse()?, before: self.before.map(Cow::into_owned) })
    }
}

/// What tells the two kinds of lines apart.
#[derive(Deserialize)]
struct Kind {
    options: Option<serde::de::IgnoredAny>,
    tags: Option<serde::de::IgnoredAny>,
}

fn has_none(versions: &BTreeMap<String, u64>) -> bool {
    versions.is_empty()
}

/// A document can be `null`, which is not the same as no value.
fn raw<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Writes a revision and the end of its line; its long texts are to follow.
pub(crate) fn write(exported: &ExportedRevision, out: &mut dyn Write) -> Result<()> {
    write_with(exported, Some(moment::format(exported.committed)), out)
}

/// Writes a revision without the time of its commit, which taking it over does not keep.
pub(crate) fn write_uncommitted(exported: &ExportedRevision, out: &mut dyn Write) -> Result<()> {
    write_with(exported, None, out)
}

fn write_with(
    exported: &ExportedRevision,
    committed: Option<String>,
    out: &mut dyn Write,
) -> Result<()> {
    let (value, patch, moves) = match &exported.content {
        ExportedContent::Value(json) => (Some(json), None, &[][..]),
        ExportedContent::Patch { patch, moves } => (None, Some(patch), &moves[..]),
        ExportedContent::LongValue | ExportedContent::Deleted => (None, None, &[][..]),
    };
    let (departed, departed_follow) = match &exported.departed {
        DepartedRecords::Held(held) => (Cow::Borrowed(held), None),
        DepartedRecords::Long(hash) => (Cow::default(), Some(Cow::Owned(hash.to_string()))),
    };
    let line = Line {
        revision: exported.revision.0,
        timestamp: moment::format(exported.timestamp),
        committed,
        author: exported.author.as_deref().map(Cow::Borrowed),
        message: exported.message.as_deref().map(Cow::Borrowed),
        value: value.map(|json| borrowed(json)).transpose()?,
        value_follows: exported.content == ExportedContent::LongValue,
        patch: patch.map(|json| borrowed(json)).transpose()?,
        order: moves.iter().map(Place::of).collect(),
        deleted: exported.content == ExportedContent::Deleted,
        hash: exported.hash.map(|hash| Cow::Owned(hash.to_string())),
        counted: Cow::Borrowed(&exported.counted),
        versions: Cow::Borrowed(&exported.versions),
        departed,
        departed_follow,
    };
    write_line(&line, out)
}

/// Writes what is said of the document, if there is anything, and the end of its line.
pub(crate) fn write_facts(facts: &ExportedFacts, out: &mut dyn Write) -> Result<()> {
    if facts.is_empty() {
        return Ok(());
    }
    write_line(&facts::Line::of(facts), out)
}

fn write_line(line: &impl Serialize, out: &mut dyn Write) -> Result<()> {
    serde_json::to_writer(&mut *out, line).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

fn borrowed(json: &str) -> io::Result<&RawValue> {
    Ok(serde_json::from_str(json)?)
}

/// Reads a line.
pub(crate) fn parse(text: &[u8]) -> duramen::Result<HistoryLine> {
    let kind: Kind = serde_json::from_slice(text).map_err(|error| no_line(&error))?;
    if kind.options.is_some() || kind.tags.is_some() {
        return facts::parse(text).map(HistoryLine::Facts);
    }
    parse_revision(text).map(HistoryLine::Revision)
}

fn parse_revision(text: &[u8]) -> duramen::Result<ExportedRevision> {
    let line: Line = serde_json::from_slice(text).map_err(|error| no_line(&error))?;
    let moves = line.order.into_iter().map(Place::read).collect::<duramen::Result<Vec<_>>>()?;
    let content = match (line.value, line.patch, line.deleted) {
        (None, None, false) if line.value_follows && line.hash.is_some() => {
            ExportedContent::LongValue
        }
        (None, None, false) if line.value_follows => {
            return Err(invalid("a value that follows its line has a hash in it"));
        }
        _ if line.value_follows => return Err(invalid(ONE_CONTENT)),
        (None, Some(patch), false) => {
            ExportedContent::Patch { patch: patch.get().to_owned(), moves }
        }
        _ if !moves.is_empty() => return Err(invalid("an order stands beside a patch only")),
        (Some(value), None, false) => ExportedContent::Value(value.get().to_owned()),
        (None, None, true) if line.hash.is_none() => ExportedContent::Deleted,
        (None, None, true) => return Err(invalid("what is deleted has no value with a hash")),
        _ => return Err(invalid(ONE_CONTENT)),
    };
    let departed = match line.departed_follow {
        Some(_) if !line.departed.is_empty() => {
            return Err(invalid("a line has one of departed and departed_follow"));
        }
        Some(hash) => DepartedRecords::Long(hash.parse()?),
        None => DepartedRecords::Held(line.departed.into_owned()),
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
        hash: line.hash.map(|hash| hash.parse::<ContentHash>()).transpose()?,
        counted: line.counted.into_owned(),
        versions: line.versions.into_owned(),
        departed,
    })
}

const ONE_CONTENT: &str = "a line has one of value, value_follows, patch and deleted";

fn no_line(error: &serde_json::Error) -> Error {
    invalid(format_args!("not a line of an exported history: {error}"))
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
        let moves = [("/a~1b/c", Some("d\"")), ("/e", None)].map(|(member, before)| MemberMove {
            member: member.parse().unwrap(),
            before: before.map(str::to_owned),
        });
        let patch = r#"[{"op":"remove","path":"/a"}]"#.to_owned();
        for content in [
            ExportedContent::Value("null".to_owned()),
            ExportedContent::Value(r#"{"a":1.10,"b":1E22}"#.to_owned()),
            ExportedContent::Patch { patch: patch.clone(), moves: Vec::new() },
            ExportedContent::Patch { patch, moves: moves.into() },
            ExportedContent::Deleted,
            ExportedContent::LongValue,
        ] {
            let exported = ExportedRevision {
                revision: Revision(7),
                timestamp: Micros(-1),
                committed: Micros(1_714_521_600_000_001),
                author: Some("a\"\u{e9}".to_owned()),
                message: None,
                hash: (content != ExportedContent::Deleted).then(|| ContentHash::of_json(b"7")),
                counted: vec!["k\"".to_owned()],
                versions: [("l".to_owned(), 7)].into(),
                departed: match content {
                    ExportedContent::Deleted => DepartedRecords::Long(ContentHash::of_json(b"{}")),
                    ExportedContent::LongValue => DepartedRecords::default(),
                    _ => DepartedRecords::Held([("m\"".to_owned(), 3)].into()),
                },
                content,
            };
            let mut line = Vec::new();
            assert!(write(&exported, &mut line).is_ok());
            assert_eq!(line.pop(), Some(b'\n'));
            assert_eq!(parse(&line).unwrap(), HistoryLine::Revision(exported));
        }
    }

    #[test]
    fn a_line_without_one_content_is_refused() {
        let hash = ContentHash::of_json(b"1");
        let rests = [
            String::new(),
            r#","value":1,"patch":[]"#.to_owned(),
            r#","value":1,"order":[{"path":"/a"}]"#.to_owned(),
            r#","patch":[],"order":[{"path":"a"}]"#.to_owned(),
            r#","value":1,"hash":"00""#.to_owned(),
            r#","value_follows":true"#.to_owned(),
            format!(r#","value_follows":true,"value":1,"hash":"{hash}""#),
            format!(r#","deleted":true,"hash":"{hash}""#),
            format!(r#","value":1,"departed":{{"a":1}},"departed_follow":"{hash}""#),
            r#","value":1,"departed_follow":"00""#.to_owned(),
        ];
        for rest in rests {
            let line = format!(r#"{{"revision":1,"timestamp":"2024-05-01"{rest}}}"#);
            assert_eq!(parse(line.as_bytes()).unwrap_err().kind(), ErrorKind::Invalid, "{line}");
        }
        assert!(parse(b"[]").is_err());
    }
}
