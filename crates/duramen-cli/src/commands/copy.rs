//! `duramen copy`: a value copied to another place.

use clap::Args;
use duramen::{Document, Snapshot};

use crate::Result;
use crate::arguments::edit::Editing;
use crate::arguments::{Destination, Edit, Keys, Place, moment};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen copy shop.duramen config /opening/monday --after /opening/monday --name tuesday
  duramen copy shop.duramen config /tags/0 --last /tags --at 2024-05-01
  duramen copy shop.duramen config /owner --last '' --from defaults";

/// Copy a value to another place, also from another revision or document
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Copy {
    #[command(flatten)]
    edit: Edit,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    destination: Destination,
    /// Copy what was there at this revision, time or tag
    #[arg(long, value_name = "REVISION|TIME|TAG")]
    at: Option<String>,
    /// Copy from this document
    #[arg(long, value_name = "DOC")]
    from: Option<String>,
}

impl Copy {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let (target, position) = (self.place.target()?, self.destination.position()?);
        let member = self.destination.name();
        let editing = self.edit.begin(session)?;
        let position = editing.keys.stored_position(&position);
        let from = self.from.as_deref().map(|name| editing.other(name)).transpose()?;
        let keys = from.as_ref().map_or(Ok(editing.keys), Keys::of)?;
        let target = keys.stored(&target);
        let Some(source) = self.source(from, &editing)? else {
            return editing.finish(output, |transaction, name| {
                transaction.copy(name, &target, &position, member)
            });
        };
        editing.finish(output, |transaction, name| {
            transaction.copy_from(name, (&source, &target), &position, member)
        })
    }

    /// Where it is copied from, if not from the document as it is.
    fn source(&self, from: Option<Document>, editing: &Editing) -> Result<Option<Snapshot>> {
        if self.at.is_none() && from.is_none() {
            return Ok(None);
        }
        let document = from.map_or_else(|| editing.document(), Ok)?;
        Ok(Some(match &self.at {
            Some(text) => moment::snapshot(&document, text)?,
            None => document.head()?,
        }))
    }
}
