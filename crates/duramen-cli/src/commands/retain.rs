//! `duramen retain`: how much of its history a document keeps.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use duramen::{Error, ErrorKind, Retention};
use serde::Serialize;

use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::exit::Success;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, meant};

const EXAMPLES: &str = "\
Examples:
  duramen retain shop.duramen config    # how much is kept
  duramen retain shop.duramen config --last 100
  duramen retain shop.duramen config --for 90d
  duramen retain shop.duramen config --head
  duramen retain shop.duramen config --all
  duramen compact shop.duramen

SPAN is a number with s, m, h, d or w after it: what the document was at any time since so long ago
is kept. Revisions that a tag names are always kept.

Nothing is lost at once: revisions are dropped, and their space comes back, when all of the database
is merged, which `duramen compact` does on demand. Elements, entries and records that no kept
revision shows go then as well; of fields that were removed the first value stays stored, though no
revision shows it. Of a document that was deleted all goes but when it was, unless a kept revision
is one before that: with --head none is. Revisions keep their numbers; in an export, a dump or a
repair those that are left count from 1.";

/// Show or set how much of its history a document keeps
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Retain {
    #[command(flatten)]
    database: WriteDatabase,
    /// The document's name
    #[arg(value_name = "DOC")]
    document: String,
    /// Keep every revision
    #[arg(long, group = "keep")]
    all: bool,
    /// Keep the newest revisions, this many
    #[arg(long, value_name = "COUNT", group = "keep")]
    last: Option<u64>,
    /// Keep what there was since so long ago
    #[arg(long = "for", value_name = "SPAN", group = "keep")]
    span: Option<String>,
    /// Keep the newest revision only
    #[arg(long, group = "keep")]
    head: bool,
    #[command(flatten)]
    note: Note,
}

impl Retain {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let (keep, first) = if let Some(keep) = self.keep()? {
            let document = meant::document(&self.database.open(session)?, &self.document)?;
            document.retain(keep, &self.note.options())?;
            (keep, document.first_revision()?)
        } else {
            let document = meant::document(&self.database.read(session)?, &self.document)?;
            (document.retention()?, document.first_revision()?)
        };
        output.record(&Line::new(keep, first.0))?;
        Ok(Success::Done)
    }

    fn keep(&self) -> Result<Option<Retention>> {
        Ok(match (self.last, &self.span) {
            (Some(count), _) => Some(Retention::Last(count)),
            (None, Some(span)) => Some(Retention::For(parse_span(span)?)),
            (None, None) if self.all => Some(Retention::All),
            (None, None) => self.head.then_some(Retention::Head),
        })
    }
}

/// Seconds of the units of a span, longest first.
const UNITS: [(&str, u64); 5] = [("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];

pub(super) fn parse_span(text: &str) -> Result<Duration> {
    let parsed = UNITS.iter().find_map(|&(unit, seconds)| {
        let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
        count.checked_mul(seconds)
    });
    let seconds = parsed.ok_or_else(|| {
        let message =
            format!("{text:?} is no span of time: write a number and s, m, h, d or w, as in 90d");
        Error::new(ErrorKind::Invalid, message)
    })?;
    Ok(Duration::from_secs(seconds))
}

/// A span as it can be written, in the longest unit that says it.
pub(super) fn format_span(span: Duration) -> String {
    let seconds = span.as_secs();
    if span.subsec_nanos() != 0 {
        return format!("{span:?}");
    }
    let is_whole = |length: u64| seconds >= length && seconds.is_multiple_of(length);
    let found = UNITS.iter().find(|unit| is_whole(unit.1));
    let (unit, length) = found.copied().unwrap_or(("s", 1));
    format!("{}{unit}", seconds / length)
}

#[derive(Debug, Serialize)]
struct Line {
    keep: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revisions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<u64>,
    /// The revision that the history begins with.
    first: u64,
}

impl Line {
    fn new(keep: Retention, first: u64) -> Self {
        let (keep, revisions, seconds) = match keep {
            Retention::All => ("all", None, None),
            Retention::Last(count) => ("last", Some(count), None),
            Retention::For(span) => ("for", None, Some(span.as_secs())),
            Retention::Head => ("head", None, None),
        };
        Self { keep, revisions, seconds, first }
    }
}

impl Record for Line {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        match (self.revisions, self.seconds) {
            (Some(1), _) => write!(out, "keeps the last revision")?,
            (Some(count), _) => write!(out, "keeps the last {count} revisions")?,
            (None, Some(seconds)) => {
                let span = format_span(Duration::from_secs(seconds));
                write!(out, "keeps the last {span}")?;
            }
            (None, None) if self.keep == "head" => write!(out, "keeps the newest revision")?,
            (None, None) => write!(out, "keeps every revision")?,
        }
        if self.first > 1 {
            write!(out, "; the history begins at revision {}", self.first)?;
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_numbers_with_a_unit() {
        let seconds = |text: &str| parse_span(text).unwrap().as_secs();
        assert_eq!(
            ["90d", "2w", "12h", "5m", "7s"].map(seconds),
            [7_776_000, 1_209_600, 43_200, 300, 7]
        );
        for text in ["", "d", "90", "-1d", "1.5h", "90 d", "99999999999999999999w"] {
            parse_span(text).unwrap_err();
        }
        for text in ["0s", "7s", "90m", "36h", "8d", "2w"] {
            assert_eq!(format_span(parse_span(text).unwrap()), text);
        }
    }
}
