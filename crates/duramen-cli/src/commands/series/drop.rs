//! `duramen series drop`: a series goes, with its points.

use clap::Args;

use crate::Result;
use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::exit::Success;
use crate::meant::Named as _;
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
        let database = self.database.open(session)?;
        let mut transaction = database.transaction();
        let dropped = if self.purge {
            transaction.purge_series(&self.name).map(drop)
        } else {
            transaction.delete_series(&self.name)
        };
        dropped.or_meant(&database.snapshot(), &self.name)?;
        transaction.commit(&self.note.options())?;
        let did = if self.purge { "purged" } else { "deleted" };
        if output.style.json {
            output.line(serde_json::json!({ "series": self.name, did: true }))?;
        } else {
            output.line(format_args!("{did} the series {}", self.name))?;
        }
        Ok(Success::Done)
    }
}
