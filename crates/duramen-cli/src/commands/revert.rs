//! `duramen revert`: a document made what it was.

use clap::Args;

use crate::Result;
use crate::arguments::{Edit, moment};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen revert shop.duramen config 7
  duramen revert shop.duramen config 2024-05-01

It is a new revision; all others stay.";

/// Make a document what it was at a revision
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Revert {
    #[command(flatten)]
    edit: Edit,
    /// A revision, a tag, or a time for the revision that was the newest then
    #[arg(value_name = "REVISION|TIME|TAG")]
    revision: String,
}

impl Revert {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let editing = self.edit.begin(session)?;
        let revision = moment::revision(&editing.document()?, &self.revision)?;
        editing.finish(output, |transaction, name| transaction.revert_to(name, revision))
    }
}
