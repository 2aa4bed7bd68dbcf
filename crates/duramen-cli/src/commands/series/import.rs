//! `duramen series import`: points out of a file.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use duramen::{Clock, Error, ErrorKind, SystemClock};

use super::gathered::{Gathered, Intake};
use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::exit::Success;
use crate::output::Output;
use crate::readings::line_protocol::{self, Precision, Rules};
use crate::readings::tables::{Columns, Table};
use crate::readings::{Reading, Reason, json_lines};
use crate::session::Session;
use crate::{Result, input};

const EXAMPLES: &str = "\
Examples:
  duramen series import plant.duramen readings.csv --create
  duramen series import plant.duramen weather.csv --create --by location --prefix weather/
  duramen series import plant.duramen metrics.lp --precision s --skip-bad
  curl -s https://example.org/readings | duramen series import plant.duramen - --format ndjson

A CSV table with the columns series, time and value, and perhaps quality, has a reading a row; any
other has a column of times and a series a column. A line of NDJSON is an object with series, time,
value and perhaps quality. In the line protocol of InfluxDB measurement and field make the name, as
in cpu/usage, and the tags are labels.

All of it is one commit. A line that cannot be read is told with its number, and nothing is written
then, unless --skip-bad says to leave such lines out.";

/// Append points out of a file: CSV, NDJSON or line protocol
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Import {
    #[command(flatten)]
    database: WriteDatabase,
    /// The file, or - for standard input
    file: PathBuf,
    /// What the file is; else its name tells
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// CSV: the column of times, if it is not called time, timestamp, date or datetime
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// CSV: a column whose text begins the names of a row's series; may be given several times
    #[arg(long, value_name = "COLUMN")]
    by: Vec<String>,
    /// CSV: what the names of all series begin with
    #[arg(long, default_value = "", hide_default_value = true)]
    prefix: String,
    /// Line protocol: what times count
    #[arg(long, value_enum, default_value = "ns")]
    precision: Precision,
    /// Leave out lines that cannot be read
    #[arg(long)]
    skip_bad: bool,
    #[command(flatten)]
    intake: Intake,
    #[command(flatten)]
    note: Note,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table with the names of its columns in the first row
    Csv,
    /// A JSON object a line
    Ndjson,
    /// The line protocol of InfluxDB
    Line,
}

impl Format {
    /// By the ending of a name.
    fn of(path: &Path) -> Result<Self> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        Ok(match ending.to_ascii_lowercase().as_str() {
            "csv" => Self::Csv,
            "ndjson" | "jsonl" => Self::Ndjson,
            "lp" | "line" => Self::Line,
            _ => {
                let name = input::name(path);
                let message = format!("what is {name}? say --format csv, ndjson or line");
                return Err(Error::new(ErrorKind::Invalid, message).into());
            }
        })
    }
}

/// Takes a line with its number.
type TakeLine<'a> = &'a mut dyn FnMut(u64, Result<&str, Reason>) -> Result<()>;

/// Takes lines, and counts those that are bad.
struct Lines<'a> {
    file: String,
    gathered: Gathered<'a>,
    skip_bad: bool,
    bad: u64,
}

impl Lines<'_> {
    /// Adds the readings of a line.
    fn add(&mut self, number: u64, readings: Result<Vec<Reading>, Reason>) -> Result<()> {
        let Err(reason) = readings.and_then(|readings| self.gathered.add(readings)) else {
            return Ok(());
        };
        let message = format!("{}, line {number}: {reason}", self.file);
        if !self.skip_bad {
            let message =
                format!("{message}; nothing was written: --skip-bad leaves such lines out");
            return Err(Error::new(ErrorKind::Invalid, message).into());
        }
        eprintln!("left out {message}");
        self.bad += 1;
        Ok(())
    }
}

impl Import {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let format = self.format.map_or_else(|| Format::of(&self.file), Ok)?;
        let text = input::lines(&self.file)?;
        let database = self.intake.open(&self.database, session)?;
        let gathered = Gathered::new(&database, &self.intake)?;
        let (file, skip_bad) = (input::name(&self.file), self.skip_bad);
        let mut lines = Lines { file, gathered, skip_bad, bad: 0 };
        match format {
            Format::Csv => self.read_table(text, &mut lines)?,
            Format::Ndjson => self.each_line(text, &mut |number, line| {
                lines
                    .add(number, line.and_then(|line| Ok(Vec::from_iter(json_lines::parse(line)?))))
            })?,
            Format::Line => self.read_line_protocol(text, &mut lines)?,
        }
        if lines.bad > 0 {
            eprintln!("left out {} lines", lines.bad);
        }
        lines.gathered.commit(&self.note.options(), output)
    }

    fn read_table(&self, text: Box<dyn BufRead>, lines: &mut Lines<'_>) -> Result<()> {
        let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(text);
        let failed = |error: csv::Error| match error.into_kind() {
            csv::ErrorKind::Io(error) => input::failure(&self.file, error),
            other => Error::new(ErrorKind::Invalid, format!("{}: {other:?}", lines.file)),
        };
        let names = reader.headers().map_err(failed)?.clone();
        let said = Columns { time: self.time.as_deref(), by: &self.by, prefix: &self.prefix };
        let table = Table::new(&names, &said).map_err(|reason| {
            Error::new(ErrorKind::Invalid, format!("{}: {reason}", lines.file))
        })?;
        let mut row = csv::StringRecord::new();
        loop {
            let place = reader.position().line();
            match reader.read_record(&mut row) {
                Ok(true) => {
                    let number = row.position().map_or(place, csv::Position::line);
                    lines.add(number, table.parse(&row))?;
                }
                Ok(false) => return Ok(()),
                Err(error) if error.is_io_error() => {
                    let error = std::io::Error::from(error);
                    return Err(input::failure(&self.file, error).into());
                }
                Err(error) => {
                    let number = error.position().map_or(place, csv::Position::line);
                    lines.add(number, Err(reason_of(&error)))?;
                }
            }
        }
    }

    fn read_line_protocol(&self, text: Box<dyn BufRead>, lines: &mut Lines<'_>) -> Result<()> {
        let rules = Rules { precision: self.precision, now: SystemClock.now() };
        let mut rounded = 0_u64;
        self.each_line(text, &mut |number, line| {
            let parsed = line.and_then(|line| line_protocol::parse(line, rules));
            let parsed = parsed.map(|(readings, is_rounded)| {
                rounded += u64::from(is_rounded);
                readings
            });
            lines.add(number, parsed)
        })?;
        if rounded > 0 {
            eprintln!("times are kept in microseconds: {rounded} of nanoseconds were rounded down");
        }
        Ok(())
    }

    /// Gives each line with its number from 1 on.
    fn each_line(&self, mut text: Box<dyn BufRead>, take: TakeLine<'_>) -> Result<()> {
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let read = text.read_until(b'\n', &mut line);
            if read.map_err(|error| input::failure(&self.file, error))? == 0 {
                break;
            }
            let line = std::str::from_utf8(&line);
            take(number, line.map_err(|_| "it is not UTF-8".to_owned()))?;
        }
        Ok(())
    }
}

fn reason_of(error: &csv::Error) -> Reason {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} cells in a table of {expected_len} columns")
        }
        csv::ErrorKind::Utf8 { .. } => "it is not UTF-8".to_owned(),
        _ => error.to_string(),
    }
}
