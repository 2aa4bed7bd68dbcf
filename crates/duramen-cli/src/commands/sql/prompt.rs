//! Queries one after the other, as a person asks them.

use std::path::Path;

use duramen_sql::SqlText;
use rustyline::error::ReadlineError;

use super::command::{self, Command, Timing};
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

pub(super) struct Prompt<'s> {
    sql: &'s Sql,
    session: Session,
    terminal: Terminal<Completion>,
    interruption: Interruption,
    timing: Timing,
}

impl<'s> Prompt<'s> {
    pub(super) fn open(sql: &'s Sql) -> Result<Self> {
        let folder = sql.database.path();
        let session = Session::open(folder)?;
        let completion = Completion::of(&session.reader(folder)?);
        let terminal = Terminal::open(completion, "sql_history").map_err(terminal::failed)?;
        let interruption = Interruption::watch();
        Ok(Self { sql, session, terminal, interruption, timing: Timing::default() })
    }

    /// Answers until the person has no more to ask.
    pub(super) fn run(mut self, output: &mut Output) -> Result<Success> {
        notice!("\\? lists the commands, the tab key completes names; a query ends with ;");
        let name = name(self.sql.database.path());
        loop {
            output.flush()?;
            let text = match self.terminal.read(&format!("{name}=> ")) {
                Ok(text) => text,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => return Ok(Success::Done),
                Err(error) => return Err(terminal::failed(error).into()),
            };
            let command = Command::of(&text);
            if matches!(command, Some(Ok(Command::End))) {
                return Ok(Success::Done);
            }
            let obeyed = match command {
                Some(command) => command.and_then(|command| self.obey(&command, output)),
                None => self.answer_all(&text, output),
            };
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

    fn obey(&mut self, command: &Command, output: &mut Output) -> Result<()> {
        match command {
            Command::Query(query) => self.answer(query, output),
            Command::Timing(is) => self.timing.set(*is, output),
            Command::Help => command::help(output),
            Command::End => Ok(()),
        }
    }

    fn answer_all(&mut self, text: &str, output: &mut Output) -> Result<()> {
        for statement in duramen_sql::statements(text) {
            self.answer(statement.text, output)?;
        }
        let completion = Completion::of(&self.session.reader(self.sql.database.path())?);
        self.terminal.help_by(completion);
        Ok(())
    }

    fn answer<'t>(&self, statement: impl Into<SqlText<'t>>, output: &mut Output) -> Result<()> {
        let format = self.sql.format(output);
        self.timing.of(output, |output| {
            self.sql.answer(statement, &self.session, |answer| {
                output.written_by(|stream| {
                    let mut stream = Interruptible { stream, interruption: &self.interruption };
                    answer.write(format, &mut stream).map_err(stopped)
                })
            })
        })
    }
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
}
