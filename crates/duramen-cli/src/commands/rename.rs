//! `duramen rename`: another name for a field.

use clap::Args;

use crate::Result;
use crate::arguments::{Edit, Place};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen rename shop.duramen config /opening/sun sunday

`duramen rename-document` renames a document. A field of the new name must not be there.";

/// Give a field another name, in its place
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rename {
    #[command(flatten)]
    edit: Edit,
    #[command(flatten)]
    place: Place,
    /// The new name, as it is: not as a pointer
    #[arg(value_name = "NAME")]
    name: String,
}

impl Rename {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let target = self.place.target()?;
        let editing = self.edit.begin(session)?;
        let target = editing.keys.stored(&target);
        editing
            .finish(output, |transaction, name| transaction.rename_field(name, &target, &self.name))
    }
}
