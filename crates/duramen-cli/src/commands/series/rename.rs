//! `duramen series rename`: another name for a series.

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
  duramen series rename plant.duramen boiler/7/temp boiler/7/temperature

Its points stay with it.";

/// Give a series another name
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Rename {
    #[command(flatten)]
    database: WriteDatabase,
    /// The name of the series
    #[arg(value_name = "TAG")]
    name: String,
    /// The name it is to have
    #[arg(value_name = "NEW")]
    new: String,
    #[command(flatten)]
    note: Note,
}

impl Rename {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let database = self.database.open(session)?;
        let mut transaction = database.transaction();
        let renamed = transaction.rename_series(&self.name, &self.new);
        renamed.or_meant(&database.snapshot(), &self.name)?;
        transaction.commit(&self.note.options())?;
        if output.style.json {
            output.line(serde_json::json!({ "series": self.new, "renamed_from": self.name }))?;
        } else {
            output.line(format_args!("the series {} is {} now", self.name, self.new))?;
        }
        Ok(Success::Done)
    }
}
