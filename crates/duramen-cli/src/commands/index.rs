//! `duramen index`: the indexes of collections.

use clap::{Args, Subcommand};

use crate::Result;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

mod add;
mod drop;
mod ls;

const EXAMPLES: &str = "\
Examples:
  duramen index add shop.duramen players by-mail mail --unique
  duramen index add shop.duramen players by-team team.name score
  duramen index ls shop.duramen players
  duramen index drop shop.duramen players by-team

An index says which records have a value, at every revision that is kept. It never lags behind what
is read of it, and a look-up costs as much however long the history is.";

/// Make, drop and list the indexes of collections
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Index {
    #[command(subcommand)]
    command: IndexCommand,
}

#[derive(Debug, Subcommand)]
enum IndexCommand {
    Add(add::Add),
    Drop(drop::Drop),
    Ls(ls::Ls),
}

impl Index {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        match &self.command {
            IndexCommand::Add(command) => command.run(session, output),
            IndexCommand::Drop(command) => command.run(session, output),
            IndexCommand::Ls(command) => command.run(session, output),
        }
    }
}
