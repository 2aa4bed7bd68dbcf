//! `duramen log`: the revisions of a document.

use std::io::{self, Write};

use clap::Args;
use duramen::{LogEntry, LogQuery, Moment, Revision, Target};
use serde::Serialize;

use crate::arguments::{Keys, ReadDocument, moment};
use crate::exit::Success;
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;
use crate::{Result, moment as times};

const EXAMPLES: &str = "\
Examples:
  duramen log shop.duramen config
  duramen log shop.duramen config --limit 10
  duramen log shop.duramen config --limit 10 --before 52
  duramen log shop.duramen config --from 2024-01-01 --to 2024-06-30T23:59:59Z
  duramen log shop.duramen config --path /opening
  duramen log shop.duramen archive --no-hash
  duramen log shop.duramen config --author ann --json

The hash is the SHA-256 of what `duramen get` prints, without the end of the line: equal texts have
equal hashes, in any database. --json has all its digits.";

/// List the revisions of a document, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Log {
    #[command(flatten)]
    document: ReadDocument,
    /// At most this many
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Only revisions before this one: the next page
    #[arg(long, value_name = "REVISION", allow_negative_numbers = true)]
    before: Option<u64>,
    /// Only this revision, time or tag, and later ones
    #[arg(long, value_name = "REVISION|TIME|TAG")]
    from: Option<String>,
    /// Only this revision, time or tag, and earlier ones
    #[arg(long, value_name = "REVISION|TIME|TAG")]
    to: Option<String>,
    /// Only revisions that changed what is at this JSON Pointer, or has this id, or anything in it
    #[arg(long, value_name = "POINTER")]
    path: Option<String>,
    /// Only revisions of this author
    #[arg(long)]
    author: Option<String>,
    /// Leave out the hash of each revision's text, for which the whole document is read each time
    #[arg(long)]
    no_hash: bool,
}

impl Log {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let path = self.path.as_deref().map(Target::parse).transpose()?;
        let document = self.document.open(session)?;
        let keys = Keys::of(&document)?;
        let point = |text: &Option<String>| {
            text.as_deref().map(|text| moment::point(&document, text)).transpose()
        };
        let query = LogQuery {
            path: path.map(|path| keys.stored(&path)),
            limit: self.limit,
            before: self.before.map(Revision),
            from: point(&self.from)?,
            to: point(&self.to)?,
            author: self.author.clone(),
            hash: !self.no_hash,
        };
        let (mut oldest, mut count) = (u64::MAX, 0);
        for entry in keys.told(document.log(&query))? {
            let line = Line::from(entry?);
            (oldest, count) = (line.revision, count + 1);
            output.record(&line)?;
        }
        // Said at the end of the log, not at that of a page of it.
        let first = document.first_revision()?;
        let is_page = self.limit == Some(count) && oldest > first.0;
        let is_early = match query.from {
            None => true,
            Some(Moment::Revision(from)) => from < first,
            Some(Moment::Time(from)) => {
                let (limit, before) = (Some(1), Some(first.next()));
                let query = LogQuery { limit, before, ..LogQuery::default() };
                let entry = document.log(&query)?.next().transpose()?;
                entry.is_some_and(|entry| from < entry.timestamp)
            }
        };
        if is_early && !is_page {
            Beginning::tell(first, output)?;
        }
        Ok(Success::Done)
    }
}

/// How many digits of a hash people see.
const HASH_DIGITS: usize = 12;

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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) deleted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hash: Option<String>,
}

impl From<LogEntry> for Line {
    fn from(entry: LogEntry) -> Self {
        Self {
            revision: entry.revision.0,
            timestamp: times::format(entry.timestamp),
            committed: times::format(entry.committed),
            sequence: entry.sequence.0,
            author: entry.author,
            message: entry.message,
            changes: entry.changes,
            deleted: entry.deleted,
            hash: entry.hash.map(|hash| hash.to_string()),
        }
    }
}

/// That earlier revisions were dropped.
#[derive(Debug, Serialize)]
pub(super) struct Beginning {
    history_begins: u64,
}

impl Beginning {
    /// Says where a history begins if that is not its first revision.
    pub(super) fn tell(first: Revision, output: &mut Output) -> Result<()> {
        if first.0 > 1 {
            output.record(&Self { history_begins: first.0 })?;
        }
        Ok(())
    }
}

impl Record for Beginning {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let first = self.history_begins;
        writeln!(out, "the history begins at revision {first}: earlier ones were dropped")
    }
}

impl Record for Line {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Palette { revision: r, time: t, heading: h, .. } = palette;
        let Self { revision, timestamp, changes, .. } = self;
        write!(out, "{r}{revision:>6}{r:#}  {t}{timestamp}{t:#}")?;
        if let Some(hash) = &self.hash {
            write!(out, "  {}", hash.get(..HASH_DIGITS).unwrap_or(hash))?;
        }
        let is_last = !self.deleted && self.author.is_none() && self.message.is_none();
        match changes {
            0 if is_last => {}
            0 => write!(out, "{:16}", "")?,
            _ => write!(out, "  {changes:>6} changed")?,
        }
        if self.deleted {
            let color = palette.removed;
            write!(out, "  {color}deleted{color:#}")?;
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
