//! `duramen history`: the values that one place of a document had.

use std::io::{self, Write};

use clap::Args;
use duramen::{Micros, ValueRun};
use serde::Serialize;
use serde_json::value::RawValue;

use super::get::snapshot;
use crate::arguments::{Place, ReadDocument};
use crate::exit::Success;
use crate::output::{Output, Palette, Record, shortened};
use crate::{Result, moment};

const EXAMPLES: &str = "\
Examples:
  duramen history shop.duramen config /opening/sunday
  duramen history shop.duramen config /price --limit 5 --json
  duramen history shop.duramen config /price --at 2024-05-01";

/// List the values that one place of a document had, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct History {
    #[command(flatten)]
    document: ReadDocument,
    #[command(flatten)]
    place: Place,
    /// At most this many
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Follow the value that was at this place at that revision or time
    #[arg(long, value_name = "REVISION|TIME")]
    at: Option<String>,
}

impl History {
    pub(crate) fn run(&self, output: &mut Output) -> Result<Success> {
        let at = self.at.as_deref().map(moment::parse).transpose()?;
        let pointer = self.place.pointer()?;
        let document = self.document.open()?;
        let runs = snapshot(&document, at)?.history(&pointer)?;
        let timestamps = document.timestamps()?;
        for run in runs.take(self.limit.unwrap_or(usize::MAX)) {
            output.record(&Line::new(&run?, &timestamps)?)?;
        }
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Line {
    first: u64,
    last: u64,
    timestamp: Option<String>,
    value: Box<RawValue>,
}

impl Line {
    fn new(run: &ValueRun, timestamps: &[Micros]) -> Result<Self> {
        let index = usize::try_from(run.first.0).ok().and_then(|first| first.checked_sub(1));
        let timestamp = index.and_then(|index| timestamps.get(index));
        let value = RawValue::from_string(run.value.to_string()).map_err(io::Error::from)?;
        Ok(Self {
            first: run.first.0,
            last: run.last.0,
            timestamp: timestamp.copied().map(moment::format),
            value,
        })
    }
}

impl Record for Line {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Palette { revision: r, time: t, .. } = palette;
        let revisions = match self.last {
            last if last == self.first => last.to_string(),
            last => format!("{}..{last}", self.first),
        };
        let time = self.timestamp.as_deref().unwrap_or_default();
        let value = shortened(self.value.get());
        writeln!(out, "{r}{revisions:>10}{r:#}  {t}{time}{t:#}  {value}")
    }
}
