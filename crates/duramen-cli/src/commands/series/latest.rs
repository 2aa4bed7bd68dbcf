//! `duramen series latest`: the newest point of each series.

use clap::Args;

use super::point::Line;
use super::{SeriesMoment, Which};
use crate::Result;
use crate::arguments::ReadDatabase;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen series latest plant.duramen boiler/7/temp
  duramen series latest plant.duramen 'boiler/**' --json
  duramen series latest plant.duramen 'boiler/**' --at 2024-05-01

A line is the name, the time and the value of the point with the latest time, and its quality unless
that is good. A series without points has none.";

/// Print the latest point of each series
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Latest {
    #[command(flatten)]
    database: ReadDatabase,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    at: SeriesMoment,
}

impl Latest {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let database = self.database.open(session)?;
        let snapshot = self.at.of(&database)?;
        for info in self.which.find(&snapshot)? {
            if let Some(point) = snapshot.series(&info.name)?.latest()? {
                output.record(&Line::new(Some(&info.name), point))?;
            }
        }
        Ok(Success::Done)
    }
}
