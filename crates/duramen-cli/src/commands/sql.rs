//! `duramen sql`: the answer to a query, of a script, or of one query after the other.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use clap::Args;
use duramen::{Error, ErrorKind};
use duramen_sql::{Answer, CopyProgress, Format, Parameter, SessionOptions, SqlText};
use indicatif::ProgressBar;
use serde_json::Value;

use self::command::{Command, Timing};
use self::prompt::Prompt;
use crate::arguments::{WriteDatabase, value};
use crate::commands::series::plot::picture::{self, Shown};
use crate::commands::series::plot::{PICTURE, terminal};
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, outfile, progress};

mod command;
mod completion;
mod plot;
mod prompt;

const EXAMPLES: &str = "\
Examples:
  duramen sql shop.duramen 'SELECT world, count(*), avg(score) FROM players GROUP BY world'
  duramen sql shop.duramen \"SELECT * FROM players FOR SYSTEM_TIME AS OF '2024-05-01'\"
  duramen sql shop.duramen 'SELECT now.score - old.score FROM players now
    JOIN players FOR SYSTEM_TIME AS OF 7 old ON now._key = old._key'
  duramen sql shop.duramen 'SELECT item FROM inventory.\"$.data[*]\"' --format csv
  duramen sql shop.duramen 'SELECT * FROM players WHERE name = $1' --param \"O'Hara\"
  duramen sql shop.duramen \"UPDATE players SET score = score + 1 WHERE world = 'nether'\"
  duramen sql shop.duramen \"COPY (SELECT * FROM players) TO 'players.parquet'\"
  duramen sql shop.duramen 'SELECT _timestamp, score FROM players' --plot --out players.svg
  duramen sql shop.duramen < script.sql
  duramen sql shop.duramen

Each collection is a table: its columns are _key, _version, _revision, _timestamp and the fields of
its records, as they are written. So is each array in a document, by the document and a path. Fields
of mixed type are JSON text. FOR SYSTEM_TIME AS OF takes a revision, or a time or tag in quotes.
SHOW TABLES lists the tables, SHOW FUNCTIONS what can be called, information_schema all of it.

INSERT, UPDATE and DELETE change the records of a collection, each in one commit, and answer with
how many there were and in which revision. Only for them, COPY .. FROM, CREATE and DROP the database
is opened for writing; CREATE TABLE makes one that is missing.

Without a query it asks for one after the other: each ends with ; and may have several lines. The
tab key completes names and words, Ctrl-C ends a query, \\d lists the tables, \\? tells the rest.
From a pipe it answers a script: it ends at the first statement that fails, and says its line.
\\d and such are lines of their own there.";

/// Answer a query in SQL, now or as of any revision, or change records
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sql {
    #[command(flatten)]
    database: WriteDatabase,
    /// A SELECT, EXPLAIN, DESCRIBE, INSERT, UPDATE, DELETE, COPY, CREATE or DROP; - is a script on
    /// standard input, as is a pipe where none is given
    #[arg(value_name = "QUERY")]
    query: Option<String>,
    /// How the answer is written: table, json, ndjson, csv, parquet or arrow
    #[arg(long, value_name = "FORMAT", default_value_t)]
    format: Format,
    /// Write the answer to this file
    #[arg(long, alias = "output", value_name = "FILE", requires = "query")]
    out: Option<PathBuf>,
    /// Draw the answer, a time or whole number and a number in each row, as a chart; into --out as
    /// a picture, whose name ends with .svg or .png
    #[arg(long, requires = "query", conflicts_with = "format")]
    plot: bool,
    /// Memory for sorting, grouping and joining before files are used, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    memory: u32,
    /// Space for these files, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 102_400)]
    spill: u32,
    /// The value of the next placeholder of the query, $1, $2 and so on or ? each: a number, true,
    /// false, null or a text in JSON; what is neither is a text as it stands
    #[arg(long = "param", value_name = "VALUE", requires = "query", allow_hyphen_values = true)]
    parameters: Vec<String>,
    /// Stop a query after this many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,
}

impl Sql {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let query = match self.query.as_deref() {
            None if io::stdin().is_terminal() => {
                return Prompt::open(self)?.run(output);
            }
            None | Some("-") => {
                let script = String::from_utf8(value::read("-")?).map_err(|error| {
                    let message = "the script is not UTF-8";
                    Error::new(ErrorKind::Invalid, message).with_source(error)
                })?;
                return self.run_script(&script, session, output);
            }
            Some(query) => match Command::of(query) {
                None => Cow::Borrowed(query),
                Some(Ok(Command::Query(query))) => Cow::Owned(query),
                Some(_) => return self.run_script(query, session, output),
            },
        };
        let query = query.as_ref();
        if self.plot {
            return self.draw(query, session, output);
        }
        let format = self.format(output);
        if matches!(format, Format::Parquet | Format::Arrow)
            && self.out.is_none()
            && output.style.terminal
        {
            let message = format!("{format} is not for a terminal: give a file (--out FILE)");
            return Err(Failure::Usage(message));
        }
        self.answer(query, session, |answer| match &self.out {
            None => output.written_by(|out| answer.write(format, out).map_err(stopped)),
            Some(path) => outfile::replace(path, |out| answer.write(format, out).map_err(stopped)),
        })?;
        Ok(Success::Done)
    }

    fn draw(&self, query: &str, session: &Session, output: &mut Output) -> Result<Success> {
        self.answer(query, session, |answer| {
            let Some(file) = &self.out else {
                // A character of the terminal has two dots side by side.
                let size = terminal::size(output);
                let (curve, axis, _) = plot::read(answer, 2 * size.0).map_err(stopped)?;
                return terminal::write((&curve, axis), size, output);
            };
            let (curve, axis, caption) = plot::read(answer, PICTURE.0).map_err(stopped)?;
            picture::write(file, PICTURE, &Shown { caption, curve: &curve, axis })
        })?;
        Ok(Success::Done)
    }

    fn format(&self, output: &Output) -> Format {
        if output.style.json { Format::Ndjson } else { self.format }
    }

    /// Answers one statement after the other, up to the first that fails.
    fn run_script(&self, script: &str, session: &Session, output: &mut Output) -> Result<Success> {
        let mut timing = Timing::default();
        let parts = command::parts(script);
        for text in &parts {
            let answered = match Command::of(text.text) {
                None => self.answer_in((*text, &timing), session, output),
                Some(Ok(Command::Query(query))) => {
                    self.answer_in((SqlText::from(&query), &timing), session, output)
                }
                Some(Ok(Command::Timing(is))) => timing.set(is, output),
                Some(Ok(Command::Help)) => command::help(output),
                Some(Ok(Command::End)) => break,
                Some(Err(failure)) => Err(failure),
            };
            answered.map_err(|failure| match failure {
                Failure::Engine(error) if parts.len() > 1 => {
                    error.in_context(format!("statement of line {}", text.line)).into()
                }
                failure => failure,
            })?;
        }
        Ok(Success::Done)
    }

    /// Answers a statement of a script.
    fn answer_in(
        &self,
        (statement, timing): (SqlText<'_>, &Timing),
        session: &Session,
        output: &mut Output,
    ) -> Result<()> {
        let format = self.format(output);
        timing.of(output, |output| {
            self.answer(statement, session, |answer| {
                output.written_by(|out| answer.write(format, out).map_err(stopped))
            })
        })
    }

    /// Answers a statement, for which the database is opened as it needs it.
    fn answer<'t>(
        &self,
        statement: impl Into<SqlText<'t>>,
        session: &Session,
        write: impl FnOnce(Answer<'_>) -> Result<()>,
    ) -> Result<()> {
        let statement = statement.into();
        let options = SessionOptions {
            memory_bytes: usize::try_from(u64::from(self.memory) << 20).unwrap_or(usize::MAX),
            spill_bytes: u64::from(self.spill) << 20,
            timeout_ms: self.timeout.map(|seconds| u64::from(seconds) * 1_000),
            cancelled: Interruption::watch().flag(),
            ..SessionOptions::default()
        };
        let parameters: Vec<_> =
            self.parameters.iter().map(|text| parameter(text)).collect::<Result<_>>()?;
        let makes_table = duramen_sql::makes_table(statement, &parameters)?;
        let writes = makes_table || duramen_sql::writes(statement, &parameters)?;
        let database = if makes_table {
            self.database.open_or_create(session)?
        } else if writes {
            self.database.open(session)?
        } else {
            self.database.read(session)?
        };
        let bar = Arc::new(OnceLock::new());
        let tell = teller(Arc::clone(&bar));
        let queries = duramen_sql::Session::new(database, options).telling(tell);
        let answer = queries.query_with(statement, &parameters);
        if let Some(bar) = bar.get() {
            bar.finish_and_clear();
        }
        let told = |failure, what| match failure {
            Failure::Interrupted(said) if writes => Failure::Interrupted(format!("{said}: {what}")),
            failure => failure,
        };
        let answer = answer.map_err(|error| told(stopped(error), "nothing was changed"))?;
        write(answer).map_err(|failure| told(failure, "what was changed is saved"))
    }
}

/// Shows how far a copy is, from when there is something to show.
fn teller(bar: Arc<OnceLock<ProgressBar>>) -> impl Fn(CopyProgress) {
    move |CopyProgress { bytes, bytes_all, records }| {
        if bytes == 0 {
            bar.get_or_init(|| progress::bar("copying", None)).set_position(records);
            return;
        }
        let bar = bar.get_or_init(|| progress::text("copying", bytes_all));
        bar.set_position(bytes);
        bar.set_message(format!("{records} records"));
    }
}

/// What a value of the command line is. A whole number that is no i64 nor u64 is refused: as a
/// float it would be that of its neighbours too.
fn parameter(text: &str) -> Result<Parameter> {
    let digits = text.trim().trim_start_matches('-');
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    Ok(match serde_json::from_str(text) {
        Ok(Value::Null) => Parameter::Null,
        Ok(Value::Bool(value)) => value.into(),
        Ok(Value::Number(number)) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(value), ..) => value.into(),
            (None, Some(value), _) => Parameter::Unsigned(value),
            (None, None, value) if is_whole && value != Some(0.0) => {
                let message = format!(
                    "the value {text} is not from -2^63 to 2^64-1: write it into the query itself"
                );
                return Err(Error::new(ErrorKind::Invalid, message).into());
            }
            // A zero with a sign, which no integer has.
            (None, None, Some(value)) if is_whole => value.into(),
            (None, None, Some(_)) => Parameter::Number(text.trim().to_owned()),
            (None, None, None) => text.into(),
        },
        Ok(Value::String(value)) => value.into(),
        Ok(Value::Array(_) | Value::Object(_)) | Err(_) => text.into(),
    })
}

fn stopped(error: Error) -> Failure {
    match error.kind() {
        ErrorKind::Cancelled => Failure::Interrupted("interrupted".to_owned()),
        _ => error.into(),
    }
}
