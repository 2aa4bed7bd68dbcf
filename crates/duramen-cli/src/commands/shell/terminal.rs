//! A person's terminal: lines with editing, completion and a memory.

use std::path::PathBuf;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor, Helper};

pub(crate) struct Terminal<H: Helper> {
    editor: Editor<H, FileHistory>,
    history: Option<PathBuf>,
}

impl<H: Helper> Terminal<H> {
    /// A terminal that remembers what is typed in a file of this name.
    pub(crate) fn open(helper: H, history: &str) -> rustyline::Result<Self> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .history_ignore_space(true)
            .auto_add_history(true)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(helper));
        let history = history_file(history);
        if let Some(history) = &history {
            // The first time there is none.
            let _ = editor.load_history(history);
        }
        Ok(Self { editor, history })
    }

    /// What is typed next; `Interrupted` is Ctrl-C, `Eof` the end.
    pub(crate) fn read(&mut self, prompt: &str) -> rustyline::Result<String> {
        self.editor.readline(prompt)
    }

    /// Has another helper from now on.
    pub(crate) fn help_by(&mut self, helper: H) {
        self.editor.set_helper(Some(helper));
    }
}

impl<H: Helper> Drop for Terminal<H> {
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
fn history_file(name: &str) -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("duramen").join(name))
}

/// What cannot be read of a terminal.
pub(crate) fn failed(error: ReadlineError) -> duramen::Error {
    let error = match error {
        ReadlineError::Io(error) => error,
        error => std::io::Error::other(error),
    };
    duramen::Error::io("cannot read standard input", error)
}
