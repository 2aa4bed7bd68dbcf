//! `duramen log`: the revisions of a document.

use std::io::{self, Write};

use clap::Args;
use duramen::{LogEntry, LogQuery, Revision};
use serde::Serialize;

use crate::arguments::ReadDocument;
use crate::exit::Success;
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;
use crate::{Result, moment};

const EXAMPLES: &str = "\
Examples:
  duramen log shop.duramen config
  duramen log shop.duramen config --limit 10
  duramen log shop.duramen config --limit 10 --before 52
  duramen log shop.duramen config --from 2024-01-01 --to 2024-06-30T23:59:59Z
  duramen log shop.duramen config --author ann --json";

/// List the revisions of a document, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Log {
    #[command(flatten)]
    document: ReadDocument,
    /// At most this many
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Only revisions before this one: the next page
    #[arg(long, value_name = "REVISION")]
    before: Option<u64>,
    /// Only this revision or time, and later ones
    #[arg(long, value_name = "REVISION|TIME")]
    from: Option<String>,
    /// Only this revision or time, and earlier ones
    #[arg(long, value_name = "REVISION|TIME")]
    to: Option<String>,
    /// Only revisions of this author
    #[arg(long)]
    author: Option<String>,
}

impl Log {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let query = LogQuery {
            limit: self.limit,
            before: self.before.map(Revision),
            from: self.from.as_deref().map(moment::parse).transpose()?,
            to: self.to.as_deref().map(moment::parse).transpose()?,
            author: self.author.clone(),
            path: None,
        };
        for entry in self.document.open(session)?.log(&query)? {
            output.record(&Line::from(entry?))?;
        }
        Ok(Success::Done)
    }
}

/// One revision.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) revision: u64,
    pub(super) timestamp: String,
    pub(super) committed: String,
    sequence: u64,
    pub(super) author: Option<String>,
    pub(super) message: Option<String>,
    changes: u64,
}

impl From<LogEntry> for Line {
    fn from(entry: LogEntry) -> Self {
        Self {
            revision: entry.revision.0,
            timestamp: moment::format(entry.timestamp),
            committed: moment::format(entry.committed),
            sequence: entry.sequence.0,
            author: entry.author,
            message: entry.message,
            changes: entry.changes,
        }
    }
}

impl Record for Line {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Palette { revision: r, time: t, heading: h, .. } = palette;
        let Self { revision, timestamp, changes, .. } = self;
        write!(out, "{r}{revision:>6}{r:#}  {t}{timestamp}{t:#}")?;
        let is_last = self.author.is_none() && self.message.is_none();
        match changes {
            0 if is_last => {}
            0 => write!(out, "{:16}", "")?,
            _ => write!(out, "  {changes:>6} changed")?,
        }
        if let Some(author) = &self.author {
            write!(out, "  {h}{}{h:#}", one_line(author))?;
        }
        if let Some(message) = &self.message {
            write!(out, "  {}", one_line(message.lines().next().unwrap_or_default()))?;
        }
        writeln!(out)
    }
}
