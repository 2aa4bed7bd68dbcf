//! `duramen remove`: one value out of a document.

use clap::Args;

use crate::Result;
use crate::arguments::{Edit, Place};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

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
    edit: Edit,
    #[command(flatten)]
    place: Place,
}

impl Remove {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let target = self.place.pointer()?;
        self.edit.run((session, output), |transaction, name| transaction.remove(name, &target))
    }
}
