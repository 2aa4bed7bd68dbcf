//! `duramen records history`: every version of a record.

use std::io::{self, Write};

use clap::Args;
use duramen::RecordVersion;
use serde::Serialize;
use serde_json::value::RawValue;

use super::CollectionAt;
use crate::commands::log::Beginning;
use crate::exit::Success;
use crate::output::{Output, Palette, Record, one_line, shortened};
use crate::session::Session;
use crate::{Result, moment};

const EXAMPLES: &str = "\
Examples:
  duramen records history shop.duramen players ann
  duramen records history shop.duramen players ann --limit 10
  duramen records history shop.duramen players ann --at 2024-05-01 --json

A line is the collection's revision, its time, the record's version, the record as of then, and in
brackets what changed in it: JSON Pointers that begin at the record, nothing where it was new. If
earlier versions were dropped the last line tells so.";

/// List the versions of a record, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct History {
    #[command(flatten)]
    collection: CollectionAt,
    /// The record's key
    #[arg(value_name = "KEY", allow_negative_numbers = true)]
    key: String,
    /// At most this many
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    limit: Option<usize>,
}

impl History {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let (collection, records) = self.collection.with_collection(session)?;
        let key = records.key_kind().parse(&self.key)?;
        let mut history = records.history(key)?;
        let mut is_cut = false;
        for version in history.by_ref().take(self.limit.unwrap_or(usize::MAX)) {
            let version = version?;
            is_cut = begins_later(&version);
            output.record(&Line::new(version)?)?;
        }
        // Said at the end of the history, not at that of a page of it.
        if is_cut && !output.style.json && history.next().is_none() {
            Beginning::tell(collection.document().first_revision()?, output)?;
        }
        Ok(Success::Done)
    }
}

/// Whether there were versions of the record before this one. How many were purged is not known.
fn begins_later(version: &RecordVersion) -> bool {
    version.record.as_ref().map_or(!version.is_purged, |record| record.version > 1)
}

#[derive(Debug, Serialize)]
struct Line {
    revision: u64,
    timestamp: String,
    author: Option<String>,
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    changed: Vec<String>,
    /// Nothing if the revision deleted it.
    record: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    purged: bool,
}

impl Line {
    fn new(version: RecordVersion) -> Result<Self> {
        let number = version.record.as_ref().map(|record| record.version);
        let json = version.record.map(|record| RawValue::from_string(record.json)).transpose();
        Ok(Self {
            revision: version.revision.0,
            timestamp: moment::format(version.timestamp),
            author: version.author,
            message: version.message,
            version: number,
            changed: version.changed.iter().map(ToString::to_string).collect(),
            record: json.map_err(io::Error::from)?,
            purged: version.is_purged,
        })
    }
}

impl Record for Line {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Palette { revision: r, time: t, heading: h, removed: d, .. } = palette;
        let Self { revision, timestamp, .. } = self;
        write!(out, "{r}{revision:>6}{r:#}  {t}{timestamp}{t:#}  ")?;
        match (self.version, &self.record) {
            (Some(version), Some(record)) => {
                write!(out, "version {r}{version}{r:#}  {}", shortened(record.get()))?;
                let places = self.changed.join(" ");
                if !places.is_empty() {
                    write!(out, "  [{}]", shortened(&one_line(&places)))?;
                }
            }
            _ if self.purged => write!(out, "{d}purged{d:#}")?,
            _ => write!(out, "{d}deleted{d:#}")?,
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
