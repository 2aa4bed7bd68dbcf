//! `duramen append`: one more element of an array.

use clap::Args;

use crate::Result;
use crate::arguments::value::{ValueText, hint};
use crate::arguments::{Edit, Place};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen append shop.duramen config /tags '\"fruit\"'
  duramen append shop.duramen config /visits '{\"day\":\"2024-05-01\",\"count\":7}'";

/// Add an element at the end of an array
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Append {
    #[command(flatten)]
    edit: Edit,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    value: ValueText,
}

impl Append {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let (target, value) = (self.place.target()?, self.value.read()?);
        let editing = self.edit.begin(session)?;
        let target = editing.keys.stored(&target);
        editing.finish(output, |transaction, name| {
            transaction.append(name, &target, &value).map_err(|error| hint(error, &value))
        })
    }
}
