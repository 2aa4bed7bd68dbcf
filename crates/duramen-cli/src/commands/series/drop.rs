//! `duramen series drop`: a series goes, with its points.

use clap::Args;

use crate::Result;
use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen series drop plant.duramen boiler/7/temp

Its name is free from then on.";

/// Delete a series with all its points
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Drop {
    #[command(flatten)]
    database: WriteDatabase,
    /// The name of the series
    #[arg(value_name = "TAG")]
    name: String,
    #[command(flatten)]
    note: Note,
}

impl Drop {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let mut transaction = self.database.open(session)?.transaction();
        transaction.delete_series(&self.name)?;
        transaction.commit(&self.note.options())?;
        if !output.style.json {
            output.line(format_args!("deleted the series {}", self.name))?;
        }
        Ok(Success::Done)
    }
}
