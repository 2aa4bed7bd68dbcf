//! `duramen history`: the values that one place of a document had.

use std::io::{self, Write};

use clap::Args;
use duramen::{Document, ValueRun};
use serde::Serialize;
use serde_json::value::RawValue;

use super::log::Beginning;
use crate::arguments::{At, Keys, Place, ReadDocument};
use crate::exit::Success;
use crate::output::{Output, Palette, Record, shortened};
use crate::session::Session;
use crate::{Result, moment};

const EXAMPLES: &str = "\
Examples:
  duramen history shop.duramen config /opening/sunday
  duramen history shop.duramen config /price --limit 5 --json
  duramen history shop.duramen config /price --at 2024-05-01
  duramen history shop.duramen config '#12'

The value is followed wherever it is moved. With --at it is the one that was at that place then.";

/// List the values that one place of a document had, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct History {
    #[command(flatten)]
    document: ReadDocument,
    #[command(flatten)]
    place: Place,
    /// At most this many
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    limit: Option<usize>,
    #[command(flatten)]
    at: At,
}

impl History {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let target = self.place.target()?;
        let document = self.document.open(session)?;
        let snapshot = self.at.snapshot(&document)?;
        let keys = Keys::of(&document)?;
        let pointer = snapshot.resolve(&keys.stored(&target))?;
        let runs = keys.told(snapshot.history(&pointer))?;
        let mut oldest = None;
        for run in runs.take(self.limit.unwrap_or(usize::MAX)) {
            let run = run?;
            output.record(&Line::new(&run, &document)?)?;
            oldest = Some(run.first);
        }
        let first = document.first_revision()?;
        if oldest == Some(first) {
            Beginning::tell(first, output)?;
        }
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Line {
    first: u64,
    last: u64,
    timestamp: String,
    value: Box<RawValue>,
}

impl Line {
    fn new(run: &ValueRun, document: &Document) -> Result<Self> {
        let value = RawValue::from_string(run.value.to_string()).map_err(io::Error::from)?;
        Ok(Self {
            first: run.first.0,
            last: run.last.0,
            timestamp: moment::format(document.at(run.first)?.timestamp()?),
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
        let time = &self.timestamp;
        let value = shortened(self.value.get());
        writeln!(out, "{r}{revisions:>10}{r:#}  {t}{time}{t:#}  {value}")
    }
}
