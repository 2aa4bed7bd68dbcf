//! `duramen blame`: who set what is there.

use std::io::{self, Write};

use clap::Args;
use duramen::{BlameEntry, BlameOptions, Format, JsonPointer, NodeKind, Snapshot};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::arguments::{At, Keys, Place, ReadDocument};
use crate::exit::Success;
use crate::output::{Output, Palette, Record, one_line, shortened};
use crate::session::Session;
use crate::{Result, moment};

const EXAMPLES: &str = "\
Examples:
  duramen blame shop.duramen config /opening
  duramen blame shop.duramen config '' --depth 1
  duramen blame shop.duramen config /price --at 2024-05-01 --json
  duramen blame shop.duramen config /prices --follow

An array or object is blamed on the revision that last gave or took a child or changed their order;
at --depth, where what is in it is not listed, on the newest that changed anything in it. What was
moved or renamed is blamed on the revision that did it, with the place where it was, unless --follow
looks past that.";

/// Tell for each value at a place who set it, when and why
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Blame {
    #[command(flatten)]
    document: ReadDocument,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    at: At,
    /// List values down to this many levels below the place
    #[arg(long, value_name = "LEVELS", allow_negative_numbers = true)]
    depth: Option<usize>,
    /// Look past moves and new names: who set the value where it was before?
    #[arg(long)]
    follow: bool,
}

impl Blame {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let target = self.place.target()?;
        let document = self.document.open(session)?;
        let (keys, snapshot) = (Keys::of(&document)?, self.at.snapshot(&document)?);
        let target = keys.stored(&target);
        let options = BlameOptions { depth: self.depth, follow: self.follow };
        for entry in keys.told(snapshot.blame(&target, &options))? {
            let entry = entry?;
            let value = text_of(&entry, &entry.pointer, &snapshot)?;
            let pointer = keys.shown(&entry.pointer);
            output.record(&Line::new(entry, (pointer, value), keys))?;
        }
        Ok(Success::Done)
    }
}

/// The blame of one value.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pointer: String,
    node: u64,
    revision: u64,
    /// The revision was dropped: the timestamp is that of the first one there is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_older: bool,
    timestamp: String,
    author: Option<String>,
    message: Option<String>,
    kind: &'static str,
    /// None of an array or object whose children have lines of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_from: Option<Origin>,
}

/// Where a moved value was before.
#[derive(Debug, Serialize)]
struct Origin {
    pointer: String,
    node: u64,
    revision: u64,
}

/// The value that an entry answers for, read where it is; none of an array or object whose children
/// have entries of their own.
pub(super) fn text_of(
    entry: &BlameEntry,
    place: &JsonPointer,
    snapshot: &Snapshot,
) -> Result<Option<Box<RawValue>>> {
    if !entry.is_whole && matches!(entry.kind, NodeKind::Object | NodeKind::Array) {
        return Ok(None);
    }
    let mut text = Vec::new();
    snapshot.append_json(place, &Format::default(), &mut text)?;
    Ok(Some(serde_json::from_slice(&text).map_err(io::Error::from)?))
}

impl Line {
    /// The line of an entry with its place and value as they are shown.
    pub(super) fn new(
        entry: BlameEntry,
        (pointer, value): (JsonPointer, Option<Box<RawValue>>),
        keys: Keys,
    ) -> Self {
        let kind = match entry.kind {
            NodeKind::Object => "object",
            NodeKind::Array => "array",
            NodeKind::String => "string",
            NodeKind::Number => "number",
            NodeKind::Boolean => "boolean",
            NodeKind::Null => "null",
        };
        Self {
            pointer: pointer.to_string(),
            node: entry.node.number(),
            revision: entry.revision.0,
            is_older: entry.is_older,
            timestamp: moment::format(entry.timestamp),
            author: entry.author.map(|author| author.to_string()),
            message: entry.message.map(|message| message.to_string()),
            kind,
            value,
            moved_from: entry.moved_from.map(|moved| Origin {
                pointer: keys.shown(&moved.pointer).to_string(),
                node: moved.node.number(),
                revision: moved.revision.0,
            }),
        }
    }
}

impl Record for Line {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Palette { revision: r, time: t, heading: h, .. } = palette;
        let Self { revision, timestamp, .. } = self;
        let unknown = if self.is_older { "(dropped)" } else { "-" };
        let author = one_line(self.author.as_deref().unwrap_or(unknown));
        let value = match &self.value {
            Some(value) => shortened(value.get()),
            None if self.kind == "array" => "[...]".into(),
            None => "{...}".into(),
        };
        let pointer = if self.pointer.is_empty() { "''" } else { &self.pointer };
        write!(
            out,
            "{r}{revision:>6}{r:#}  {t}{timestamp}{t:#}  {author:<10}  {h}{}{h:#}  {}",
            one_line(pointer),
            value
        )?;
        match &self.moved_from {
            Some(moved) => writeln!(out, "  (was {})", one_line(&moved.pointer)),
            None => writeln!(out),
        }
    }
}
