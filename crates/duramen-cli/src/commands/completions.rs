//! `duramen completions`: what a shell needs to complete command lines.

use clap::{Args, CommandFactory};
use clap_complete::{Generator, Shell};

use crate::Result;
use crate::arguments::Arguments;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen completions bash > ~/.local/share/bash-completion/completions/duramen
  duramen completions zsh > ~/.zfunc/_duramen
  duramen completions fish > ~/.config/fish/completions/duramen.fish

The names of documents and places are completed in the shell that `duramen DB` starts.";

/// Print the completions of this command for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, _session: &Session, output: &mut Output) -> Result<Success> {
        let mut command = Arguments::command();
        command.set_bin_name("duramen");
        command.build();
        let mut script = Vec::new();
        self.shell.try_generate(&command, &mut script)?;
        output.stream().write_all(&script)?;
        Ok(Success::Done)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn every_command_is_in_the_completions_of_every_shell() -> io::Result<()> {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut command = Arguments::command();
            command.set_bin_name("duramen");
            command.build();
            let mut script = Vec::new();
            shell.try_generate(&command, &mut script)?;
            let script = String::from_utf8_lossy(&script);
            for known in Arguments::command().get_subcommands() {
                assert!(script.contains(known.get_name()), "{shell}: {}", known.get_name());
            }
        }
        Ok(())
    }
}
