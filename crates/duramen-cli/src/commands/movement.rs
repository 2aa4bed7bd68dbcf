//! `duramen move`: a value at another place.

use clap::Args;

use crate::Result;
use crate::arguments::{Destination, Edit, Place};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen move shop.duramen config /tags/3 --before /tags/0
  duramen move shop.duramen config /opening/sunday --first /closed
  duramen move shop.duramen config /owner --last /people --name boss

Within one array a value keeps its id and its history; elsewhere it gets a new id, and history and
blame know where it came from.";

/// Move a value to another place
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Move {
    #[command(flatten)]
    edit: Edit,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    destination: Destination,
}

impl Move {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let (target, position) = (self.place.target()?, self.destination.position()?);
        let editing = self.edit.begin(session)?;
        let (target, position) =
            (editing.keys.stored(&target), editing.keys.stored_position(&position));
        editing.finish(output, |transaction, name| {
            transaction.move_to(name, &target, &position, self.destination.name())
        })
    }
}
