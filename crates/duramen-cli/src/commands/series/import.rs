//! `duramen series import`: points of a file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use duramen::{CommitOptions, Committed, Database, Error, ErrorKind, Transaction, ValueType};
use serde::Serialize;

use self::columns::Columns;
pub(super) use self::csv::is_column_of;
use self::source::Lines;
use super::{parse_type, tell_unkept};
use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::notice::notice;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, input, progress};

mod columns;
mod csv;
mod line_protocol;
mod ndjson;
mod source;

const EXAMPLES: &str = "\
Examples:
  duramen series import plant.duramen hourly.csv --prefix plant/ --create
  duramen series import plant.duramen weather.csv --name location --create
  duramen series import plant.duramen readings.ndjson --skip-bad
  duramen series import plant.duramen metrics.lp --time-unit s --create
  duramen series export old.duramen - | duramen series import plant.duramen - --create

A wide CSV has a column of times and one for each series, which is named by its header; with --name
it is the cell of that column, a / and the header. A long CSV has a point in each line: columns of
times, names and values (time, name and value, unless --time, --name and --value say others), and
maybe quality and value_type. A line of NDJSON has the same members. An empty cell of a wide CSV is
no point.

Of the line protocol measurement and field make the name, as in cpu/load, and tags are labels; with
other labels than a series of that name has, they become a part of it: cpu/load,host=b. As in
InfluxDB each set of tags is a series, one with a tag more included: a series that is given another
label later is not the one of its tags any more, and the next import makes one beside it.

All points of the file are one commit. What is wrong is told with its line, and nothing is written,
unless --skip-bad is given. A series that is made gets the type that --type says, else the
value_type of its first point, else what the first value looks like: f64 for any number, bool for
true and false, else string.";

/// Lines between two steps of the progress bar.
const LINES_PER_STEP: u64 = 4_096;

/// Series that are made together: so only their definitions are in memory at once.
const SERIES_TOGETHER: usize = 1_024;

/// Bad lines that are told one by one.
const BAD_LINES_TOLD: u64 = 10;

/// Append the points of a file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct Import {
    #[command(flatten)]
    database: WriteDatabase,
    /// The file; - is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// How the file is written; by default as its name ends, else ndjson
    #[arg(long)]
    format: Option<Format>,
    #[command(flatten)]
    layout: Layout,
    /// Make series that are missing, and the database
    #[arg(long)]
    create: bool,
    /// The type of series that are made: f64, f32, i64, bool or string
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type, requires = "create")]
    value_type: Option<ValueType>,
    /// Pass over lines that are wrong, and tell how many there were
    #[arg(long)]
    skip_bad: bool,
    #[command(flatten)]
    note: Note,
}

/// What is where in a line.
#[derive(Debug, Args)]
pub(super) struct Layout {
    /// What the names of series begin with
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(super) prefix: String,
    /// The column of times
    #[arg(long, value_name = "COLUMN")]
    pub(super) time: Option<String>,
    /// The column of names
    #[arg(long, value_name = "COLUMN")]
    pub(super) name: Option<String>,
    /// The column of values: then the CSV is a long one
    #[arg(long, value_name = "COLUMN")]
    pub(super) value: Option<String>,
    /// What times that are numbers count since 1970; us if none is said, ns in line protocol
    #[arg(long, value_name = "UNIT", visible_alias = "precision")]
    pub(super) time_unit: Option<TimeUnit>,
}

/// What a time as a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TimeUnit {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// Nanoseconds, rounded down to microseconds
    Ns,
}

/// How points are written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// One JSON object a line
    Ndjson,
    /// Comma-separated values, the names of the columns in the first line
    Csv,
    /// The line protocol of InfluxDB
    #[value(alias = "line")]
    LineProtocol,
}

impl Format {
    /// The format of a file, given or as its name ends.
    pub(super) fn of(given: Option<Self>, file: &Path) -> Self {
        let ends =
            |end: &str| file.extension().is_some_and(|found| found.eq_ignore_ascii_case(end));
        given.unwrap_or_else(|| match () {
            () if ends("csv") => Self::Csv,
            () if ends("lp") || ends("line") => Self::LineProtocol,
            () => Self::Ndjson,
        })
    }
}

impl Import {
    pub(in super::super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let format = Format::of(self.format, &self.file);
        let mut lines = source::lines(input::lines(&self.file)?, format, &self.layout)
            .map_err(|error| error.in_context(input::name(&self.file)))?;
        // One that is missing is made when there is something to write.
        let is_missing = self.create && self.database.is_missing();
        let known = match self.create {
            _ if is_missing => Database::memory()?,
            true => self.database.open_or_create(session)?,
            false => self.database.open(session)?,
        };
        let mut columns = Columns::new(&known, self.create, self.value_type);
        let interruption = Interruption::watch();
        let bad = self.read(&mut *lines, &mut columns, &interruption)?;
        let database =
            if is_missing { self.database.open_or_create(session)? } else { known.clone() };
        let imported = commit(&database, columns, (&self.note.options(), bad), &interruption)?;
        output.record(&imported)?;
        Ok(Success::Done)
    }

    /// Reads all lines; how many were bad.
    fn read(
        &self,
        lines: &mut dyn Lines,
        columns: &mut Columns<'_>,
        interruption: &Interruption,
    ) -> Result<u64> {
        let bar = progress::bar("reading lines", None);
        let (name, mut bad) = (input::name(&self.file), 0);
        while let Some((line, rows)) =
            lines.next_line().map_err(|error| input::failure(&self.file, error))?
        {
            // A line may have thousands of points, and be cut by Ctrl-C where it comes by a pipe.
            check(interruption)?;
            if let Err(error) = rows.and_then(|rows| columns.add(&rows)) {
                let error = error.in_context(format_args!("{name}: line {line}"));
                // What is wrong with the database is wrong with every line.
                if !self.skip_bad || error.kind() != ErrorKind::Invalid {
                    return Err(error.into());
                }
                bad += 1;
                if bad <= BAD_LINES_TOLD {
                    notice!("duramen: passed over: {}", error.message());
                }
            }
            if line.is_multiple_of(LINES_PER_STEP) {
                bar.set_position(line);
            }
        }
        bar.finish_and_clear();
        if bad > BAD_LINES_TOLD {
            notice!("duramen: passed over {} more", bad - BAD_LINES_TOLD);
        }
        Ok(bad)
    }
}

/// Ends what has written nothing yet once Ctrl-C was pressed.
fn check(interruption: &Interruption) -> Result<()> {
    if interruption.is_asked() {
        return Err(Failure::Interrupted("interrupted: nothing was written".to_owned()));
    }
    Ok(())
}

/// Makes the series that are new and appends all points, in one commit.
fn commit(
    database: &Database,
    columns: Columns<'_>,
    (options, bad): (&CommitOptions, u64),
    interruption: &Interruption,
) -> Result<Imported> {
    let mut transaction = database.transaction();
    let created = create(&mut transaction, &columns, interruption)?;
    let (mut points, mut series, mut again) = (0, 0, 0);
    for (name, column) in columns.into_points() {
        check(interruption)?;
        transaction.append_points(&name, &column)?;
        points += column.len() as u64;
        again += repeated(column.times());
        series += 1;
    }
    if again > 0 {
        notice!(
            "duramen: {again} points have the time of another one of their series in the file: the \
             last one counts; --name says which column tells series apart"
        );
    }
    let committed = if points > 0 { transaction.commit(options)? } else { Committed::default() };
    tell_unkept(&committed.unkept);
    let unkept = committed.unkept.iter().map(|(_, count)| count).sum();
    Ok(Imported { points, series, created, bad, unkept, commit: committed.sequence.0 })
}

/// How many points have the time of one behind them.
fn repeated(times: &[i64]) -> usize {
    if times.is_sorted_by(|earlier, later| earlier < later) {
        return 0;
    }
    let mut times = times.to_vec();
    times.sort_unstable();
    times.windows(2).filter(|pair| pair[0] == pair[1]).count()
}

/// Makes the series that are new; how many.
fn create(
    transaction: &mut Transaction,
    columns: &Columns<'_>,
    interruption: &Interruption,
) -> Result<u64> {
    let (mut created, mut new) = (0, columns.new_series());
    loop {
        check(interruption)?;
        let together: Vec<_> = new.by_ref().take(SERIES_TOGETHER).collect();
        if together.is_empty() {
            return Ok(created);
        }
        transaction.create_series_all(&together)?;
        created += together.len() as u64;
    }
}

#[derive(Debug, Serialize)]
struct Imported {
    points: u64,
    series: u64,
    created: u64,
    bad: u64,
    /// Points that are older than what is kept.
    unkept: u64,
    commit: u64,
}

impl Record for Imported {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let r = palette.revision;
        let Self { points, series, created, bad, unkept, commit } = self;
        write!(out, "points: {points}, series: {series}, of which new: {created}")?;
        if *bad > 0 {
            write!(out, ", bad lines: {bad}")?;
        }
        if *unkept > 0 {
            write!(out, ", older than what is kept: {unkept}")?;
        }
        if *points > 0 {
            write!(out, "; commit {r}c{commit}{r:#}")?;
        }
        writeln!(out)
    }
}

/// The error for something in a line.
fn invalid(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Invalid, what.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use clap::FromArgMatches;

    use super::source::{Line, Row};
    use super::*;
    use crate::commands::series::point::Written;

    fn row() -> Row {
        Row {
            series: "s".to_owned(),
            labels: None,
            time: duramen::Micros(1),
            value: Written::Text("7".to_owned()),
            quality: duramen::Quality::default(),
            value_type: None,
        }
    }

    /// What is read through a pipe ends with Ctrl-C like any other, and perhaps within a point.
    #[test]
    fn points_that_were_read_are_not_committed_after_ctrl_c() {
        let database = Database::memory().unwrap();
        let interruption = Interruption::default();
        let import = || {
            let mut columns = Columns::new(&database, true, Some(ValueType::I64));
            columns.add(&[row()]).unwrap();
            commit(&database, columns, (&CommitOptions::default(), 0), &interruption)
        };
        interruption.flag().store(true, Ordering::Relaxed);
        let failure = import().unwrap_err();
        assert!(matches!(failure, Failure::Interrupted(_)), "{failure:?}");
        assert!(database.series("s").is_err());
        interruption.forget();
        assert_eq!(import().unwrap().points, 1);
    }

    /// Lines, while the third of which Ctrl-C is pressed.
    struct Pressed<'i>(u64, &'i Interruption);

    impl Lines for Pressed<'_> {
        fn next_line(&mut self) -> io::Result<Option<Line>> {
            self.0 += 1;
            if self.0 == 3 {
                self.1.flag().store(true, Ordering::Relaxed);
            }
            Ok((self.0 < 1_000).then(|| (self.0, Ok(vec![row()]))))
        }
    }

    /// It was looked for after some thousand lines, each of which may have as many points.
    #[test]
    fn ctrl_c_ends_an_import_at_the_line_that_is_read() {
        let command = Import::augment_args(clap::Command::new("import"));
        let matches = command.try_get_matches_from(["import", "none.duramen", "-"]).unwrap();
        let import = Import::from_arg_matches(&matches).unwrap();
        let (database, interruption) = (Database::memory().unwrap(), Interruption::default());
        let mut columns = Columns::new(&database, true, Some(ValueType::I64));
        let mut lines = Pressed(0, &interruption);
        let failure = import.read(&mut lines, &mut columns, &interruption).unwrap_err();
        assert!(matches!(failure, Failure::Interrupted(_)), "{failure:?}");
        assert_eq!(lines.0, 3);
    }
}
