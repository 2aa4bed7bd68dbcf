//! Queries one after the other, as a person asks them.

use std::path::Path;

use duramen::{Clock, Error, ErrorKind, SystemClock};
use rustyline::error::ReadlineError;

use super::completion::Completion;
use super::{Sql, stopped};
use crate::Result;
use crate::commands::shell::interruptible::Interruptible;
use crate::commands::shell::terminal::{self, Terminal};
use crate::exit::{self, Failure, Success};
use crate::interruption::Interruption;
use crate::notice::notice;
use crate::output::Output;
use crate::session::Session;

/// What can be asked that is no SQL.
const COMMANDS: &[(&str, &str)] = &[
    ("\\d", "List the tables and views"),
    ("\\d TABLE", "List the columns of a table"),
    ("\\timing", "Say, or no longer say, how long each answer took"),
    ("\\q", "End, as Ctrl-D does"),
    ("\\?", "List these"),
];

const TABLES: &str = "SELECT table_schema AS \"schema\", table_name AS \"table\", table_type AS \
                      \"type\" FROM information_schema.tables WHERE table_schema <> \
                      'information_schema' ORDER BY 1, 2";

pub(super) struct Prompt<'s> {
    sql: &'s Sql,
    session: Session,
    terminal: Terminal<Completion>,
    interruption: Interruption,
    is_timing: bool,
}

impl<'s> Prompt<'s> {
    pub(super) fn open(sql: &'s Sql) -> Result<Self> {
        let folder = sql.database.path();
        let session = Session::open(folder)?;
        let completion = Completion::of(&session.reader(folder)?);
        let terminal = Terminal::open(completion, "sql_history").map_err(terminal::failed)?;
        let interruption = Interruption::watch()?;
        Ok(Self { sql, session, terminal, interruption, is_timing: false })
    }

    /// Answers until the person has no more to ask.
    pub(super) fn run(mut self, output: &mut Output) -> Result<Success> {
        let name = name(self.sql.database.path());
        loop {
            output.flush()?;
            let text = match self.terminal.read(&format!("{name}=> ")) {
                Ok(text) => text,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => return Ok(Success::Done),
                Err(error) => return Err(terminal::failed(error).into()),
            };
            if text.trim() == "\\q" {
                return Ok(Success::Done);
            }
            let obeyed = self.obey(text.trim(), output);
            let obeyed = self.session.told(obeyed);
            self.session.release();
            self.interruption.forget();
            self.session.told(output.flush())?;
            match obeyed {
                Ok(()) => {}
                Err(Failure::Interrupted(message)) => notice!("{message}"),
                Err(failure) if failure.is_broken_pipe() => return Err(failure),
                Err(failure) => {
                    exit::report(&failure, output.style.json);
                }
            }
        }
    }

    fn obey(&mut self, text: &str, output: &mut Output) -> Result<()> {
        let Some(command) = text.strip_prefix('\\') else {
            for statement in duramen_sql::statements(text) {
                self.answer(statement.text, output)?;
            }
            let completion = Completion::of(&self.session.reader(self.sql.database.path())?);
            self.terminal.help_by(completion);
            return Ok(());
        };
        match command.split_once(' ').map_or((command, ""), |(word, rest)| (word, rest.trim())) {
            ("d", "") => self.answer(TABLES, output),
            ("d", table) => self.answer(&format!("DESCRIBE {table}"), output),
            ("timing", "") => {
                self.is_timing = !self.is_timing;
                let is = if self.is_timing { "on" } else { "off" };
                output.line(format_args!("timing is {is}"))
            }
            ("?", "") => COMMANDS
                .iter()
                .try_for_each(|(name, about)| output.line(format_args!("{name:<10} {about}"))),
            _ => {
                let message = format!("there is no command {text}: \\? lists those there are");
                Err(Error::new(ErrorKind::Invalid, message).into())
            }
        }
    }

    fn answer(&self, statement: &str, output: &mut Output) -> Result<()> {
        let begun = SystemClock.now();
        let format = self.sql.format(output);
        self.sql.answer(statement, &self.session, |answer| {
            output.written_by(|stream| {
                let mut stream = Interruptible { stream, interruption: &self.interruption };
                answer.write(format, &mut stream).map_err(stopped)
            })
        })?;
        if self.is_timing {
            let micros = SystemClock.now().0.saturating_sub(begun.0);
            output.line(format_args!("{}.{:03} ms", micros / 1_000, micros % 1_000))?;
        }
        Ok(())
    }
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
}
