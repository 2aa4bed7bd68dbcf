//! `duramen replace`: another value in place of one that is there.

use clap::Args;

use crate::Result;
use crate::arguments::value::{ValueText, hint};
use crate::arguments::{Edit, Place};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen replace shop.duramen config /price 10.90
  duramen replace shop.duramen config /tags/0 '\"fruit\"'

`set` also adds what is not there; this does not.";

/// Replace a value that is there
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Replace {
    #[command(flatten)]
    edit: Edit,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    value: ValueText,
}

impl Replace {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let (target, value) = (self.place.target()?, self.value.read()?);
        let editing = self.edit.begin(session)?;
        let target = editing.keys.stored(&target);
        editing.finish(output, |transaction, name| {
            transaction.replace(name, &target, &value).map_err(|error| hint(error, &value))
        })
    }
}
