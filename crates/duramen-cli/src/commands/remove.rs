//! `duramen remove`: one value out of a document, or all that a query finds.

use clap::Args;

use crate::Result;
use crate::arguments::Edit;
use crate::arguments::place::{Named, Places};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen remove shop.duramen config /opening/sunday
  duramen remove shop.duramen config /tags/0 --message 'the first tag was wrong'
  duramen remove shop.duramen config '$.items[?@.price == null]'

Earlier revisions keep the value.";

/// Remove one value from a document, or all that a JSONPath finds
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Remove {
    #[command(flatten)]
    edit: Edit,
    #[command(flatten)]
    places: Places,
}

impl Remove {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        match self.places.named()? {
            Named::One(target) => {
                let editing = self.edit.begin(session)?;
                let target = editing.keys.stored(&target);
                editing.finish(output, |transaction, name| transaction.remove(name, &target))
            }
            Named::All(path) => self.edit.run_counted((session, output), |transaction, name| {
                transaction.remove_all(name, &path)
            }),
        }
    }
}
