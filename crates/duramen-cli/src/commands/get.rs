//! `duramen get`: a document, or a part of it, as it is or was.

use clap::Args;
use duramen::{Document, Error, ErrorKind, Format, JsonPointer, Micros, Moment, Snapshot};

use crate::arguments::ReadDocument;
use crate::exit::Success;
use crate::output::Output;
use crate::{Result, moment};

const EXAMPLES: &str = "\
Examples:
  duramen get shop.duramen config
  duramen get shop.duramen config --path /opening/sunday
  duramen get shop.duramen config --at 7
  duramen get shop.duramen config --at 2024-05-01T12:00:00+02:00 | jq .opening
  duramen get shop.duramen config --max-level 1 --metadata

Prints compact JSON, and indents it on a terminal.";

/// Print a document as it is, or as it was at a revision or time
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Get {
    #[command(flatten)]
    document: ReadDocument,
    /// As it was at this revision or time; a date alone is 00:00 UTC of that day
    #[arg(long, value_name = "REVISION|TIME")]
    at: Option<String>,
    /// Only the value that this JSON Pointer leads to, such as /players/3/name
    #[arg(long, value_name = "POINTER", default_value = "", hide_default_value = true)]
    path: String,
    /// Go this many levels deep
    #[arg(long, value_name = "LEVELS")]
    max_level: Option<usize>,
    /// Print this many children of each array and object
    #[arg(long, value_name = "COUNT")]
    max_children: Option<u64>,
    /// Tell about each value: its node, its kind, its revisions
    #[arg(long)]
    metadata: bool,
    /// Indent
    #[arg(long)]
    pretty: bool,
}

impl Get {
    pub(crate) fn run(&self, output: &mut Output) -> Result<Success> {
        let at = self.at.as_deref().map(moment::parse).transpose()?;
        let pointer = JsonPointer::parse(&self.path)?;
        let snapshot = snapshot(&self.document.open()?, at)?;
        let format = Format {
            pretty: self.pretty || output.style.terminal && !output.style.json,
            max_level: self.max_level,
            max_children: self.max_children,
            metadata: self.metadata,
        };
        snapshot.write_json(&pointer, &format, output.stream())?;
        output.line("")?;
        Ok(Success::Done)
    }
}

/// The document at a moment of its history, or as it is now.
pub(super) fn snapshot(document: &Document, at: Option<Moment>) -> Result<Snapshot> {
    Ok(match at {
        None => document.head()?,
        Some(Moment::Revision(revision)) => document.at(revision)?,
        Some(Moment::Time(time)) => at_time(document, time)?,
    })
}

/// The document at a time; that history begins later is told in the form that people write.
pub(super) fn at_time(document: &Document, time: Micros) -> Result<Snapshot> {
    let first = || document.timestamps().ok()?.first().copied();
    document.at_time(time).map_err(|error| match (error.kind(), first()) {
        (ErrorKind::NotFound, Some(first)) => {
            let name = document.name();
            let (time, first) = (moment::format(time), moment::format(first));
            let message =
                format!("document {name:?} was not there at {time}: it begins at {first}");
            Error::new(ErrorKind::NotFound, message).into()
        }
        _ => error.into(),
    })
}
