//! `duramen remove`: one value out of a document.

use clap::Args;

use super::written::Written;
use crate::Result;
use crate::arguments::{CommitArguments, Place, WriteDatabase};
use crate::exit::Success;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  duramen remove shop.duramen config /opening/sunday
  duramen remove shop.duramen config /tags/0 --message 'the first tag was wrong'

Earlier revisions keep the value.";

/// Remove one value from a document
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Remove {
    #[command(flatten)]
    database: WriteDatabase,
    /// The document's name
    #[arg(value_name = "DOC")]
    document: String,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    commit: CommitArguments,
}

impl Remove {
    pub(crate) fn run(&self, output: &mut Output) -> Result<Success> {
        let options = self.commit.options()?;
        let pointer = self.place.pointer()?;
        let database = self.database.open()?;
        let outcome = database.document(&self.document)?.remove(&pointer, &options)?;
        output.record(&Written::new(&self.document, &outcome, &options))?;
        Ok(Success::Done)
    }
}
