//! `duramen man`: manual pages.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory, ValueHint};
use clap_mangen::Man as Page;
use duramen::{Error, nearest};

use crate::Result;
use crate::arguments::Arguments;
use crate::exit::{Failure, Success};
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen man | man -l -
  duramen man series append | man -l -
  duramen man --out ~/.local/share/man/man1";

/// Print the manual page of this command, or of one of its commands
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// The command, such as diff or series append; without it the page of duramen itself
    #[arg(conflicts_with = "out")]
    command: Vec<String>,
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
        page(self.command.iter().try_fold(root, |command, name| find(&command, name))?)
            .render(output.stream())?;
        Ok(Success::Done)
    }
}

/// The page of a command.
fn page(command: Command) -> Page {
    let version = env!("CARGO_PKG_VERSION");
    Page::new(command).source(format!("Duramen {version}")).manual("Duramen")
}

fn find(command: &Command, name: &str) -> Result<Command> {
    let found = command.find_subcommand(name).cloned();
    found.ok_or_else(|| {
        let meant = nearest(name, command.get_subcommands().map(Command::get_name));
        let advice = match meant {
            Some(meant) => format!("did you mean {meant}?"),
            None => "see duramen help".to_owned(),
        };
        Failure::Usage(format!("there is no command {name:?}; {advice}"))
    })
}

/// Writes the page of a command, and those of the commands that it has.
fn write_all(command: &Command, folder: &Path) -> Result<()> {
    let failed = |error| Error::io(format_args!("cannot write to {}", folder.display()), error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    page(command.clone()).generate_to(folder).map_err(failed)?;
    command.get_subcommands().try_for_each(|command| write_all(command, folder))
}
