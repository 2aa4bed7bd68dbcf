//! `duramen series latest`: the last point of series.

use clap::Args;
use duramen::SeriesFilter;

use super::line::PointLine;
use crate::Result;
use crate::arguments::ReadDatabase;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen series latest plant.duramen boiler/7/temp
  duramen series latest plant.duramen 'boiler/**'";

/// Print the last point of each series
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Latest {
    #[command(flatten)]
    database: ReadDatabase,
    /// The series whose names are of this pattern; see `duramen series ls`
    #[arg(value_name = "PATTERN")]
    pattern: Option<String>,
}

impl Latest {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let snapshot = self.database.open(session)?.snapshot();
        let filter = SeriesFilter { glob: self.pattern.clone(), ..SeriesFilter::default() };
        for info in snapshot.find_series(&filter)? {
            if let Some(point) = snapshot.series(&info.name)?.latest()? {
                output.record(&PointLine::new(Some(&info.name), point))?;
            }
        }
        Ok(Success::Done)
    }
}
