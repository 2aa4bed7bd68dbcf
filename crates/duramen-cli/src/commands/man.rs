//! `duramen man`: manual pages.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory, ValueHint};
use clap_mangen::Man as Page;
use duramen::Error;

use crate::Result;
use crate::arguments::Arguments;
use crate::exit::{Failure, Success};
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen man | man -l -
  duramen man diff | man -l -
  duramen man --out ~/.local/share/man/man1";

/// Print the manual page of this command, or of one of its commands
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// The command; without it the page of duramen itself
    #[arg(conflicts_with = "out")]
    command: Option<String>,
    /// Write all pages into this folder, one file for each command
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self, _session: &Session, output: &mut Output) -> Result<Success> {
        let mut root = Arguments::command().disable_help_subcommand(true);
        root.build();
        if let Some(folder) = &self.out {
            write_all(&root, folder)?;
            return Ok(Success::Done);
        }
        let command = match &self.command {
            None => root,
            Some(name) => find(&root, name)?,
        };
        page(command).render(output.stream())?;
        Ok(Success::Done)
    }
}

/// The page of a command.
fn page(command: Command) -> Page {
    let version = env!("CARGO_PKG_VERSION");
    Page::new(command).source(format!("Duramen {version}")).manual("Duramen")
}

fn find(root: &Command, name: &str) -> Result<Command> {
    let command = root.find_subcommand(name).cloned();
    command.ok_or_else(|| Failure::Usage(format!("there is no command {name:?}; see duramen help")))
}

fn write_all(root: &Command, folder: &Path) -> Result<()> {
    let failed = |error| Error::io(format_args!("cannot write to {}", folder.display()), error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    for command in std::iter::once(root).chain(root.get_subcommands()) {
        page(command.clone()).generate_to(folder).map_err(failed)?;
    }
    Ok(())
}
