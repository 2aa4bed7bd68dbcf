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
  duramen series drop plant.duramen boiler/7/temp --purge

Its name is free from then on. As of earlier commits its points are still there, as long as they are
kept. With --purge they are not, nor are those of series of that name that were dropped before:
`duramen compact` gives their space back. Copies in backups stay: --keep of a backup removes some.";

/// Delete a series with all its points
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Drop {
    #[command(flatten)]
    database: WriteDatabase,
    /// The name of the series
    #[arg(value_name = "TAG")]
    name: String,
    /// Its points go as of earlier commits too
    #[arg(long)]
    purge: bool,
    #[command(flatten)]
    note: Note,
}

impl Drop {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let mut transaction = self.database.open(session)?.transaction();
        if self.purge {
            transaction.purge_series(&self.name)?;
        } else {
            transaction.delete_series(&self.name)?;
        }
        transaction.commit(&self.note.options())?;
        let did = if self.purge { "purged" } else { "deleted" };
        if !output.style.json {
            output.line(format_args!("{did} the series {}", self.name))?;
        }
        Ok(Success::Done)
    }
}
