//! `duramen when`: the revisions in which a value was as a condition says.

use std::io::{self, Write};

use clap::Args;
use duramen::{Condition, Document, Spell};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::arguments::{At, Keys, Place, ReadDocument};
use crate::exit::Success;
use crate::output::{Output, Palette, Record, shortened};
use crate::session::Session;
use crate::{Result, moment};

const EXAMPLES: &str = "\
Examples:
  duramen when shop.duramen config /price '> 9.90'
  duramen when shop.duramen config /opening/sunday '== true' --limit 1
  duramen when shop.duramen config /discount missing --json

A CONDITION is ==, !=, <, <=, > or >= and a JSON value, or `exists`, or `missing`. A line has the
revisions from the first to the last of a spell, when it began, and the value it began with. The
value is followed wherever it is moved.";

/// List the spells of revisions in which a value met a condition, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct When {
    #[command(flatten)]
    document: ReadDocument,
    #[command(flatten)]
    place: Place,
    /// A condition on the value, such as '> 5', '== \"x\"', exists or missing
    #[arg(value_name = "CONDITION")]
    condition: String,
    #[command(flatten)]
    at: At,
    /// At most this many
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    limit: Option<usize>,
}

impl When {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let (target, condition) = (self.place.target()?, Condition::parse(&self.condition)?);
        let document = self.document.open(session)?;
        let keys = Keys::of(&document)?;
        let target = keys.stored(&target);
        let spells = keys.told(self.at.snapshot(&document)?.when(&target, &condition))?;
        for spell in spells.take(self.limit.unwrap_or(usize::MAX)) {
            output.record(&Line::new(&document, &spell?)?)?;
        }
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Line {
    first: u64,
    last: u64,
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Box<RawValue>>,
}

impl Line {
    fn new(document: &Document, spell: &Spell) -> Result<Self> {
        let value = spell.value.as_ref().map(|value| RawValue::from_string(value.to_string()));
        Ok(Self {
            first: spell.first.0,
            last: spell.last.0,
            timestamp: moment::format(document.at(spell.first)?.timestamp()?),
            value: value.transpose().map_err(io::Error::from)?,
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
        let value = self.value.as_ref().map_or("".into(), |value| shortened(value.get()));
        let line = format!("{r}{revisions:>10}{r:#}  {t}{}{t:#}  {value}", self.timestamp);
        writeln!(out, "{}", line.trim_end())
    }
}
