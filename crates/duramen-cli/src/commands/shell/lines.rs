//! Where the lines of a shell come from: a terminal, with editing and completion, or a pipe.

use std::io::{self, IsTerminal};

use duramen::Error;
use rustyline::error::ReadlineError;

use super::completion::Completion;
use super::terminal::{self, Terminal};
use crate::Result;

/// What came of asking for a line.
pub(super) enum Read {
    Line(String),
    /// Ctrl-C.
    Cancelled,
    End,
}

pub(super) enum Lines {
    Terminal(Box<Terminal<Completion>>),
    Pipe,
}

impl Lines {
    /// The lines of standard input.
    pub(super) fn open(completion: Completion) -> Result<Self> {
        if !io::stdin().is_terminal() {
            return Ok(Self::Pipe);
        }
        let terminal = Terminal::open(completion, "history").map_err(terminal::failed)?;
        Ok(Self::Terminal(Box::new(terminal)))
    }

    /// Whether a person types them.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// The next line.
    pub(super) fn next(&mut self, prompt: &str) -> Result<Read> {
        match self {
            Self::Pipe => {
                let mut line = String::new();
                // Not locked for long: a command of the script may read what follows it.
                let length = io::stdin().read_line(&mut line).map_err(stopped)?;
                Ok(if length == 0 { Read::End } else { Read::Line(line) })
            }
            Self::Terminal(terminal) => match terminal.read(prompt) {
                Ok(line) => Ok(Read::Line(line)),
                Err(ReadlineError::Interrupted) => Ok(Read::Cancelled),
                Err(ReadlineError::Eof) => Ok(Read::End),
                Err(error) => Err(terminal::failed(error).into()),
            },
        }
    }
}

fn stopped(error: io::Error) -> Error {
    Error::io("cannot read standard input", error)
}
