//! Where the lines of a shell come from: a terminal, with editing and completion, or a pipe.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use duramen::Error;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use super::completion::Completion;
use crate::Result;

/// What came of asking for a line.
pub(super) enum Read {
    Line(String),
    /// Ctrl-C.
    Cancelled,
    End,
}

pub(super) enum Lines {
    Terminal(Box<Terminal>),
    Pipe,
}

pub(super) struct Terminal {
    editor: Editor<Completion, FileHistory>,
    history: Option<PathBuf>,
}

impl Lines {
    /// The lines of standard input.
    pub(super) fn open(completion: Completion) -> Result<Self> {
        if !io::stdin().is_terminal() {
            return Ok(Self::Pipe);
        }
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .history_ignore_space(true)
            .auto_add_history(true)
            .build();
        let mut editor = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(completion));
        let history = history_file();
        if let Some(history) = &history {
            // The first time there is none.
            let _ = editor.load_history(history);
        }
        Ok(Self::Terminal(Box::new(Terminal { editor, history })))
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
            Self::Terminal(terminal) => match terminal.editor.readline(prompt) {
                Ok(line) => Ok(Read::Line(line)),
                Err(ReadlineError::Interrupted) => Ok(Read::Cancelled),
                Err(ReadlineError::Eof) => Ok(Read::End),
                Err(error) => Err(failed(error).into()),
            },
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let Some(history) = &self.history else { return };
        let folder = history.parent().map_or(Ok(()), std::fs::create_dir_all);
        // Commands were obeyed whether or not they can be remembered.
        if folder.is_ok() {
            let _ = self.editor.append_history(history);
        }
    }
}

/// As the XDG Base Directory Specification has it: what persists, but matters little.
fn history_file() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("duramen/history"))
}

fn stopped(error: io::Error) -> Error {
    Error::io("cannot read standard input", error)
}

fn failed(error: ReadlineError) -> Error {
    match error {
        ReadlineError::Io(error) => stopped(error),
        error => stopped(io::Error::other(error)),
    }
}
