//! `duramen set`: one value of a document, or all that a query finds.

use clap::Args;

use crate::Result;
use crate::arguments::Edit;
use crate::arguments::place::{Named, Places};
use crate::arguments::value::{ValueText, hint};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen set shop.duramen config /opening/sunday true
  duramen set shop.duramen config /name '\"The corner shop\"'
  duramen set shop.duramen config /tags/- '\"new at the end of a list\"'
  duramen set shop.duramen config '#4398046511104' 5
  duramen set shop.duramen config '$.items[?@.price > 10].sale' true
  duramen set shop.duramen config /price 9.90 --expect-revision 7

A JSONPath sets values that are there; a pointer also adds a member, or an element at the end.";

/// Set one value of a document, or all that a JSONPath finds
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Set {
    #[command(flatten)]
    edit: Edit,
    #[command(flatten)]
    places: Places,
    #[command(flatten)]
    value: ValueText,
}

impl Set {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let value = self.value.read()?;
        match self.places.named()? {
            Named::One(target) => {
                let editing = self.edit.begin(session)?;
                let target = editing.keys.stored(&target);
                editing.finish(output, |transaction, name| {
                    transaction.set(name, &target, &value).map_err(|error| hint(error, &value))
                })
            }
            Named::All(path) => self.edit.run_counted((session, output), |transaction, name| {
                transaction.set_all(name, &path, &value).map_err(|error| hint(error, &value))
            }),
        }
    }
}
