//! The lines of a dump.

use std::io::{self, Write};

use duramen::{
    ContentHash, DumpItem, DumpSummary, Error, ErrorKind, ExportedFacts, ExportedRevision,
};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::history_line::{self, HistoryLine};
use crate::output::{Palette, Record};

/// The form of dumps this version writes, and the newest it reads.
const FORM: u64 = 1;

/// A line of a dump.
#[derive(Debug, PartialEq)]
pub(crate) enum DumpLine {
    Head,
    Document(String),
    Facts(ExportedFacts),
    Revision(Box<ExportedRevision>),
    Summary(Summary),
}

/// The last line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Summary {
    documents: u64,
    revisions: u64,
    sha256: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    dump: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    document: std::borrow::Cow<'a, str>,
}

/// What tells the kinds of lines apart.
#[derive(Deserialize)]
struct Kind {
    dump: Option<serde::de::IgnoredAny>,
    document: Option<serde::de::IgnoredAny>,
    sha256: Option<serde::de::IgnoredAny>,
}

impl Summary {
    pub(crate) fn of(summary: &DumpSummary) -> Self {
        let DumpSummary { documents, revisions, hash } = *summary;
        Self { documents, revisions, sha256: hash.to_string() }
    }

    pub(crate) fn hash(&self) -> duramen::Result<ContentHash> {
        self.sha256.parse()
    }

    /// Writes it with the end of its line.
    pub(crate) fn write(&self, out: &mut dyn Write) -> Result<()> {
        write_line(self, out)
    }
}

impl Record for Summary {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Self { documents, revisions, sha256 } = self;
        writeln!(out, "{sha256}  {documents} documents, {revisions} revisions")
    }
}

/// Writes the first line.
pub(crate) fn write_head(out: &mut dyn Write) -> Result<()> {
    write_line(&Head { dump: FORM }, out)
}

/// Writes the lines of one thing that a dump says.
pub(crate) fn write(item: &DumpItem, out: &mut dyn Write) -> Result<()> {
    match item {
        DumpItem::Document { name, facts } => {
            write_line(&Document { document: name.into() }, out)?;
            history_line::write_facts_uncommitted(facts, out)
        }
        DumpItem::Revision(revision) => history_line::write_uncommitted(revision, out),
    }
}

/// Reads a line.
pub(crate) fn parse(text: &[u8]) -> duramen::Result<DumpLine> {
    let kind: Kind = serde_json::from_slice(text).map_err(|error| no_line(&error))?;
    if kind.dump.is_some() {
        let head: Head = serde_json::from_slice(text).map_err(|error| no_line(&error))?;
        if head.dump == FORM {
            return Ok(DumpLine::Head);
        }
        let message = format!(
            "the dump has form {}; this version reads form {FORM}: use a newer one",
            head.dump
        );
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    if kind.document.is_some() {
        let line: Document = serde_json::from_slice(text).map_err(|error| no_line(&error))?;
        return Ok(DumpLine::Document(line.document.into_owned()));
    }
    if kind.sha256.is_some() {
        let summary = serde_json::from_slice(text).map_err(|error| no_line(&error))?;
        return Ok(DumpLine::Summary(summary));
    }
    Ok(match history_line::parse(text)? {
        HistoryLine::Facts(facts) => DumpLine::Facts(facts),
        HistoryLine::Revision(revision) => DumpLine::Revision(Box::new(revision)),
    })
}

fn write_line(line: &impl Serialize, out: &mut dyn Write) -> Result<()> {
    serde_json::to_writer(&mut *out, line).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

fn no_line(error: &serde_json::Error) -> Error {
    Error::new(ErrorKind::Invalid, format!("not a line of a dump: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        let summary = format!(r#"{{"documents":1,"revisions":2,"sha256":"{}"}}"#, "0".repeat(64));
        assert_eq!(parse(br#"{"dump":1}"#).unwrap(), DumpLine::Head);
        let document = DumpLine::Document("a\"".to_owned());
        assert_eq!(parse(br#"{"document":"a\""}"#).unwrap(), document);
        assert!(matches!(parse(summary.as_bytes()).unwrap(), DumpLine::Summary(_)));
        let revision = br#"{"revision":1,"timestamp":"2024-05-01","value":1}"#;
        assert!(matches!(parse(revision).unwrap(), DumpLine::Revision(_)));
        assert_eq!(parse(br#"{"dump":2}"#).unwrap_err().kind(), ErrorKind::Unsupported);
        for line in ["", "{}", "[]", r#"{"document":1}"#, r#"{"sha256":""}"#, r#"{"dump":1,"x":1}"#]
        {
            assert_eq!(parse(line.as_bytes()).unwrap_err().kind(), ErrorKind::Invalid, "{line}");
        }
    }
}
