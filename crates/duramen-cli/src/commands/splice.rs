//! `duramen splice`: some elements of an array replaced by others.

use clap::Args;

use crate::Result;
use crate::arguments::{Edit, Place, value};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen splice shop.duramen config /tags 2 --remove 1
  duramen splice shop.duramen config /tags 0 '[\"a\",\"b\"]'
  duramen splice shop.duramen config /tags 1 '[\"c\"]' --remove 3";

/// Replace consecutive elements of an array by others, as many or not
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Splice {
    #[command(flatten)]
    edit: Edit,
    #[command(flatten)]
    place: Place,
    /// The index of the first element
    index: u64,
    /// A JSON array of the elements that come there; - is standard input
    #[arg(value_name = "ELEMENTS", default_value = "[]", hide_default_value = true)]
    elements: String,
    /// How many elements go
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    remove: u64,
}

impl Splice {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let target = self.place.target()?;
        let elements = value::read(&self.elements)?;
        let editing = self.edit.begin(session)?;
        let target = editing.keys.stored(&target);
        editing.finish(output, |transaction, name| {
            transaction.splice(name, &target, (self.index, self.remove), &elements)
        })
    }
}
