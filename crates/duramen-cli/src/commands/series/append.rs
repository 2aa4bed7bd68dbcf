//! `duramen series append`: one point.

use clap::Args;
use duramen::{Clock, Quality, SystemClock};

use super::gathered::{Gathered, Intake};
use super::span;
use crate::Result;
use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::exit::{Failure, Success};
use crate::output::Output;
use crate::readings::{Reading, Written};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen series append plant.duramen boiler/7/temp 20.5
  duramen series append plant.duramen boiler/7/temp 20.5 --time 2024-05-01T12:30:00Z --quality 64
  duramen series append plant.duramen boiler/7/state off --create

Where there is a point of that time, the new one takes its place.";

/// Append a point to a series
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Append {
    #[command(flatten)]
    database: WriteDatabase,
    /// The name of the series
    #[arg(value_name = "SERIES")]
    name: String,
    /// The value
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,
    /// When, if not now
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    time: Option<String>,
    /// The quality, as OPC has it: 192 good, 64 uncertain, 0 bad
    #[arg(long, value_name = "0-255", default_value_t = 192)]
    quality: u8,
    #[command(flatten)]
    intake: Intake,
    #[command(flatten)]
    note: Note,
}

impl Append {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let time = self.time.as_deref().map(span::parse).transpose()?;
        let database = self.intake.open(&self.database, session)?;
        let mut gathered = Gathered::new(&database, &self.intake)?;
        let reading = Reading {
            series: self.name.clone(),
            labels: std::collections::BTreeMap::new(),
            time: time.unwrap_or_else(|| SystemClock.now()),
            value: Written::Text(self.value.clone()),
            quality: Quality(self.quality),
        };
        let refused =
            |reason| Failure::Engine(duramen::Error::new(duramen::ErrorKind::Invalid, reason));
        gathered.add(vec![reading]).map_err(refused)?;
        gathered.commit(&self.note.options(), output)
    }
}
