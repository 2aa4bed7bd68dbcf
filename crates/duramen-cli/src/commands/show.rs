//! `duramen show`: one revision and what it changed.

use std::io::{self, Write};

use clap::Args;
use duramen::{
    Change, ChangeKind, Document, Error, ErrorKind, JsonPointer, LogEntry, LogQuery, Revision,
};
use serde::Serialize;

use super::log;
use crate::Result;
use crate::arguments::{Keys, ReadDocument, moment};
use crate::change::ChangeLine;
use crate::exit::Success;
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen show shop.duramen config 7
  duramen show shop.duramen config 2024-05-01
  duramen show shop.duramen config 7 --json | jq '.diff[].pointer'";

/// Show one revision: when, who, why, and what it changed
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Show {
    #[command(flatten)]
    document: ReadDocument,
    /// A revision, a tag, or a time for the one that was the newest then; without it the newest
    #[arg(value_name = "REVISION|TIME|TAG")]
    revision: Option<String>,
}

impl Show {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let document = self.document.open(session)?;
        let revision = match &self.revision {
            None => document.head_revision()?,
            Some(text) => moment::revision(&document, text)?,
        };
        let entry = entry(&document, revision)?;
        let changes = changes(&document, revision)?;
        let diff = match &changes {
            Some(changes) => {
                let keys = Keys::of(&document)?;
                let lines = changes.iter().map(|change| ChangeLine::new(keys, change));
                Some(lines.collect::<Result<_>>()?)
            }
            None => None,
        };
        output.record(&Shown { entry: entry.into(), diff })?;
        Ok(Success::Done)
    }
}

/// The entry of a revision that is there.
fn entry(document: &Document, revision: Revision) -> duramen::Result<LogEntry> {
    let query = LogQuery {
        limit: Some(1),
        before: Some(revision.next()),
        hash: true,
        ..LogQuery::default()
    };
    let entry = document.log(&query)?.next().transpose()?;
    entry
        .filter(|entry| entry.revision == revision)
        .map_or_else(|| Err(document.at(revision).err().unwrap_or_else(|| missing(revision))), Ok)
}

fn missing(revision: Revision) -> Error {
    Error::new(ErrorKind::Internal, format!("revision {revision} is not in the log"))
}

/// What a revision changed; the first one added the whole document. None if the one before it was
/// dropped.
fn changes(document: &Document, revision: Revision) -> duramen::Result<Option<Vec<Change>>> {
    if revision.0 > 1 {
        let before = Revision(revision.0 - 1);
        let is_early = revision <= document.first_revision()?;
        if is_early && !is_kept(document, before)? {
            return Ok(None);
        }
        return Ok(Some(document.diff(before, revision)?.changes));
    }
    let first = document.at(revision)?;
    let pointer = JsonPointer::root();
    let node = first.node(&pointer)?.id;
    let after = Some(first.to_json()?);
    Ok(Some(vec![Change { kind: ChangeKind::Added, pointer, node, before: None, after }]))
}

/// Whether the log has a revision: of those before the beginning of the history some may be kept.
fn is_kept(document: &Document, revision: Revision) -> duramen::Result<bool> {
    let before = Some(revision.next());
    let query = LogQuery { limit: Some(1), before, ..LogQuery::default() };
    let newest = document.log(&query)?.next().transpose()?;
    Ok(newest.is_some_and(|entry| entry.revision == revision))
}

#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    entry: log::Line,
    /// None if what was before was dropped, so that it is not known.
    diff: Option<Vec<ChangeLine<'a>>>,
}

impl Record for Shown<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Palette { revision: r, time: t, heading: h, .. } = palette;
        let log::Line { revision, timestamp, committed, author, message, .. } = &self.entry;
        writeln!(out, "{r}revision {revision}{r:#}")?;
        writeln!(out, "timestamp  {t}{timestamp}{t:#}")?;
        if committed != timestamp {
            writeln!(out, "committed  {committed}")?;
        }
        if let Some(author) = author {
            writeln!(out, "author     {h}{}{h:#}", one_line(author))?;
        }
        for (index, line) in message.iter().flat_map(|message| message.lines()).enumerate() {
            let heading = if index == 0 { "message" } else { "" };
            writeln!(out, "{}", format!("{heading:<10} {}", one_line(line)).trim_end())?;
        }
        if let Some(hash) = &self.entry.hash {
            writeln!(out, "hash       {hash}")?;
        }
        if self.entry.deleted {
            writeln!(out, "deleted")?;
        }
        writeln!(out)?;
        match &self.diff {
            Some(diff) => diff.iter().try_for_each(|change| change.print(palette, out)),
            None => {
                writeln!(out, "what it changed is not known: the revision before it is not kept")
            }
        }
    }
}
