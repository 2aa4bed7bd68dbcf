//! The lines of a dump.

mod series;

use std::io::{self, Write};

use duramen::{
    ContentHash, Dump, DumpItem, DumpSummary, Error, ErrorKind, ExportedFacts, ExportedRevision,
};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::history_line::{self, HistoryLine};
use crate::output::{Palette, Record};

/// The newest form of dumps that this version reads.
const FORM: u64 = 2;
/// The form without series, which older versions read too.
const FORM_OF_DOCUMENTS: u64 = 1;

/// A line of a dump.
#[derive(Debug, PartialEq)]
pub(crate) enum DumpLine {
    Head,
    Document(String),
    Facts(ExportedFacts),
    Revision(Box<ExportedRevision>),
    Series(DumpItem),
    Summary(Summary),
}

/// The last line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Summary {
    documents: u64,
    revisions: u64,
    #[serde(default, skip_serializing_if = "is_none")]
    series: u64,
    #[serde(default, skip_serializing_if = "is_none")]
    points: u64,
    sha256: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_none(count: &u64) -> bool {
    *count == 0
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

/// Reads a line about series.
type Parse = fn(&[u8]) -> duramen::Result<DumpItem>;

/// What tells the kinds of lines apart.
#[derive(Deserialize)]
struct Kind {
    dump: Option<serde::de::IgnoredAny>,
    document: Option<serde::de::IgnoredAny>,
    rules: Option<serde::de::IgnoredAny>,
    series: Option<serde::de::IgnoredAny>,
    points: Option<serde::de::IgnoredAny>,
    deletes: Option<serde::de::IgnoredAny>,
    commits: Option<serde::de::IgnoredAny>,
    sha256: Option<serde::de::IgnoredAny>,
}

impl Summary {
    pub(crate) fn of(summary: &DumpSummary) -> Self {
        let DumpSummary { documents, revisions, series, points, hash } = *summary;
        Self { documents, revisions, series, points, sha256: hash.to_string() }
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
        let Self { documents, revisions, series, points, sha256 } = self;
        let end = |count: &u64| if *count == 1 { "" } else { "s" };
        let (of_documents, of_revisions) = (end(documents), end(revisions));
        write!(
            out,
            "{sha256}  {documents} document{of_documents}, {revisions} revision{of_revisions}"
        )?;
        if *series > 0 {
            write!(out, ", {series} series, {points} point{}", end(points))?;
        }
        writeln!(out)
    }
}

/// Writes the first line of a dump.
pub(crate) fn write_head(dump: &Dump, out: &mut dyn Write) -> Result<()> {
    let form = if dump.has_series() { FORM } else { FORM_OF_DOCUMENTS };
    write_line(&Head { dump: form }, out)
}

/// Writes the lines of one thing that a dump says.
pub(crate) fn write(item: &DumpItem, out: &mut dyn Write) -> Result<()> {
    match item {
        DumpItem::Document { name, facts } => {
            write_line(&Document { document: name.into() }, out)?;
            history_line::write_facts(facts, out)
        }
        DumpItem::Revision(revision) => history_line::write_uncommitted(revision, out),
        DumpItem::SeriesRules(rules) => series::write_rules(rules, out),
        DumpItem::Series { name, record } => series::write_series(name, record, out),
        DumpItem::Commits(commits) => series::write_commits(commits, out),
        DumpItem::Points(points) => series::write_points(points, out),
        DumpItem::Deletes { series, spans } => series::write_deletes(series, spans, out),
    }
}

/// Reads a line.
pub(crate) fn parse(text: &[u8]) -> duramen::Result<DumpLine> {
    let kind: Kind = serde_json::from_slice(text).map_err(|error| no_line(&error))?;
    if kind.dump.is_some() {
        let head: Head = serde_json::from_slice(text).map_err(|error| no_line(&error))?;
        if (FORM_OF_DOCUMENTS..=FORM).contains(&head.dump) {
            return Ok(DumpLine::Head);
        }
        let message = format!(
            "the dump has form {}; this version reads forms up to {FORM}: use a newer one",
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
    let of_series: [(_, Parse); 5] = [
        (&kind.rules, series::parse_rules),
        (&kind.series, series::parse_series),
        (&kind.points, series::parse_points),
        (&kind.deletes, series::parse_deletes),
        (&kind.commits, series::parse_commits),
    ];
    if let Some((_, parse)) = of_series.iter().find(|(member, _)| member.is_some()) {
        return parse(text).map(DumpLine::Series);
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
        assert_eq!(parse(br#"{"dump":3}"#).unwrap_err().kind(), ErrorKind::Unsupported);
        for line in ["", "{}", "[]", r#"{"document":1}"#, r#"{"sha256":""}"#, r#"{"dump":1,"x":1}"#]
        {
            assert_eq!(parse(line.as_bytes()).unwrap_err().kind(), ErrorKind::Invalid, "{line}");
        }
    }
}
