//! `duramen insert`: a value among the elements of an array or the members of an object.

use clap::Args;

use crate::Result;
use crate::arguments::value::{ValueText, hint};
use crate::arguments::{Destination, Edit};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen insert shop.duramen config '\"fruit\"' --before /tags/0
  duramen insert shop.duramen config '[9,17]' --after /opening/friday --name saturday
  duramen insert shop.duramen config true --first /opening --name monday

The member must not be there yet; `set` replaces one that is.";

/// Add an element to an array, or a member to an object, at a place of its own
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Insert {
    #[command(flatten)]
    edit: Edit,
    #[command(flatten)]
    value: ValueText,
    #[command(flatten)]
    destination: Destination,
}

impl Insert {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let (position, value) = (self.destination.position()?, self.value.read()?);
        let editing = self.edit.begin(session)?;
        let position = editing.keys.stored_position(&position);
        editing.finish(output, |transaction, name| {
            let inserted = transaction.insert(name, &position, self.destination.name(), &value);
            inserted.map_err(|error| hint(error, &value))
        })
    }
}
