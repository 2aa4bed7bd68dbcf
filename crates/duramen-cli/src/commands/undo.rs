//! `duramen undo`: what one revision changed, taken back.

use clap::Args;

use crate::Result;
use crate::arguments::{Edit, moment};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen undo shop.duramen config 7
  duramen undo shop.duramen config v1 --message 'too early'

It is a new revision; all others stay. What has changed again since is a conflict: exit code 11.";

/// Take back what one revision changed, and keep what came after it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Undo {
    #[command(flatten)]
    edit: Edit,
    /// A revision, a tag, or a time for the revision that was the newest then
    #[arg(value_name = "REVISION|TIME|TAG")]
    revision: String,
}

impl Undo {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let editing = self.edit.begin(session)?;
        let revision = moment::revision(&editing.document()?, &self.revision)?;
        editing.finish(output, |transaction, name| transaction.undo(name, revision))
    }
}
