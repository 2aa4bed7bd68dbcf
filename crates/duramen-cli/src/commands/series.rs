//! `duramen series`: points in time, by the series they are of.

use clap::{Args, Subcommand};
use duramen::{
    CommitSequence, Database, DatabaseSnapshot, Error, ErrorKind, Micros, SeriesFilter, SeriesInfo,
    SeriesSnapshot, ValueType,
};

use crate::arguments::ReadDatabase;
use crate::exit::Success;
use crate::notice::notice;
use crate::output::{Output, one_line};
use crate::session::Session;
use crate::{Result, meant, moment};

use self::point::time_text;

mod aggregate;
mod append;
mod counted;
mod create;
mod delete;
mod drop;
mod export;
mod import;
mod latest;
mod ls;
pub(crate) mod plot;
mod point;
mod range;
mod rename;
mod retain;
mod top;

/// Series that are told one by one which got points that are not kept.
const UNKEPT_TOLD: usize = 10;

const EXAMPLES: &str = "\
Examples:
  duramen series append plant.duramen boiler/7/temp 2024-05-01T12:00:00Z 81.5 --create
  duramen series import plant.duramen weather.csv --name location --create
  duramen series range plant.duramen boiler/7/temp --from 2024-05-01 --limit 100
  duramen series latest plant.duramen 'boiler/**'
  duramen series aggregate plant.duramen boiler/7/temp mean max --every 1d
  duramen series ls plant.duramen --label site=north
  duramen series top plant.duramen max 'boiler/**'
  duramen series retain plant.duramen 'boiler/**' --raw 30d --rollup 1m:52w
  duramen series plot plant.duramen boiler/7/temp --out temp.svg

A TAG is the name of a series; a GLOB a pattern of names, in which ? stands for a character and *
for any number of them but /, and ** for any number of any. A TIME is in RFC 3339 form; without a
zone it is UTC, digits alone are microseconds since 1970, and now is the present.";

/// Write and read series: points in time with a value and a quality
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Series {
    #[command(subcommand)]
    command: SeriesCommand,
}

#[derive(Debug, Subcommand)]
enum SeriesCommand {
    Ls(ls::Ls),
    Create(create::Create),
    Append(append::Append),
    Range(range::Range),
    Latest(latest::Latest),
    Aggregate(Box<aggregate::Aggregate>),
    Top(top::Top),
    Plot(plot::Plot),
    Import(Box<import::Import>),
    Export(export::Export),
    Delete(delete::Delete),
    Rename(rename::Rename),
    Retain(retain::Retain),
    Drop(drop::Drop),
}

impl Series {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        match &self.command {
            SeriesCommand::Ls(command) => command.run(session, output),
            SeriesCommand::Create(command) => command.run(session, output),
            SeriesCommand::Append(command) => command.run(session, output),
            SeriesCommand::Range(command) => command.run(session, output),
            SeriesCommand::Latest(command) => command.run(session, output),
            SeriesCommand::Aggregate(command) => command.run(session, output),
            SeriesCommand::Top(command) => command.run(session, output),
            SeriesCommand::Plot(command) => command.run(session, output),
            SeriesCommand::Import(command) => command.run(session, output),
            SeriesCommand::Export(command) => command.run(session, output),
            SeriesCommand::Delete(command) => command.run(session, output),
            SeriesCommand::Rename(command) => command.run(session, output),
            SeriesCommand::Retain(command) => command.run(session, output),
            SeriesCommand::Drop(command) => command.run(session, output),
        }
    }
}

/// A span of time that the user gives.
#[derive(Debug, Args)]
struct Span {
    /// From this time on
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    from: Option<String>,
    /// To this time, which is not in it
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    to: Option<String>,
}

/// The bounds of a span of time.
type Bounds = (std::ops::Bound<Micros>, std::ops::Bound<Micros>);

impl Span {
    fn bounds(&self) -> Result<Bounds> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let from = match &self.from {
            Some(text) => Included(time(text)?),
            None => Unbounded,
        };
        let to = match &self.to {
            Some(text) => Excluded(time(text)?),
            None => Unbounded,
        };
        if let (Included(from), Excluded(to)) = (from, to)
            && from > to
        {
            let (from, to) = (time_text(from), time_text(to));
            let message = format!("the span ends at {to}, before it begins at {from}");
            return Err(Error::new(ErrorKind::Invalid, message).into());
        }
        Ok((from, to))
    }
}

/// A time as the commands of series take it.
fn time(text: &str) -> duramen::Result<Micros> {
    if text == "now" {
        return Ok(Micros(jiff::Timestamp::now().as_microsecond()));
    }
    match text.parse::<i64>() {
        Ok(micros) => {
            if let Some(doubt) = counted::doubt(micros) {
                notice!("duramen: {doubt}");
            }
            Ok(Micros(micros))
        }
        Err(_) => moment::parse_time(text),
    }
}

/// A series as it is, or as it was.
#[derive(Debug, Args)]
struct SeriesAt {
    #[command(flatten)]
    database: ReadDatabase,
    /// The name of the series
    #[arg(value_name = "TAG")]
    name: String,
    #[command(flatten)]
    at: SeriesMoment,
}

/// When.
#[derive(Debug, Args)]
struct SeriesMoment {
    /// As of this commit, such as c1042 or 1042, or time
    #[arg(long, value_name = "COMMIT|TIME", value_parser = parse_moment)]
    at: Option<When>,
}

#[derive(Debug, Clone, Copy)]
enum When {
    Commit(CommitSequence),
    Time(Micros),
}

impl SeriesMoment {
    /// The database as it is or was.
    fn of(&self, database: &Database) -> Result<DatabaseSnapshot> {
        Ok(match self.at {
            None => database.snapshot(),
            Some(When::Commit(sequence)) => {
                check_commit(database, sequence)?;
                database.snapshot_at(sequence)
            }
            Some(When::Time(time)) => database.series_at_time(time)?,
        })
    }
}

impl SeriesAt {
    fn open(&self, session: &Session) -> Result<SeriesSnapshot> {
        let database = self.database.open(session)?;
        // A name of then may be that of another series now, or of none.
        Ok(match self.at.at {
            None => meant::series(&database, &self.name)?.snapshot(),
            Some(when) => {
                let found = self.at.of(&database)?.series(&self.name);
                found.map_err(|error| self.not_then(error, &database, when))?
            }
        })
    }

    /// The database that it is of, as it is or was.
    fn snapshot(&self, session: &Session) -> Result<DatabaseSnapshot> {
        self.at.of(&self.database.open(session)?)
    }

    /// As of a commit.
    fn open_at(&self, session: &Session, sequence: CommitSequence) -> Result<SeriesSnapshot> {
        let database = self.database.open(session)?;
        check_commit(&database, sequence)?;
        Ok(database.snapshot_at(sequence).series(&self.name)?)
    }

    /// The error for a series that was not there at a moment: whether one has the name now.
    fn not_then(&self, error: Error, database: &Database, when: When) -> Error {
        let (ErrorKind::NotFound, Ok(now)) = (error.kind(), database.series(&self.name)) else {
            return error;
        };
        let name = &self.name;
        let when = match when {
            When::Commit(sequence) => format!("c{sequence}"),
            When::Time(time) => time_text(time),
        };
        let created = time_text(now.info().created);
        let message = format!(
            "there was no series {name:?} as of {when}: the one that has this name now was made at \
             {created}"
        );
        Error::new(ErrorKind::NotFound, message)
    }
}

/// Refuses a commit that is not there yet.
fn check_commit(database: &Database, sequence: CommitSequence) -> duramen::Result<()> {
    let last = database.snapshot().sequence();
    if sequence <= last {
        return Ok(());
    }
    let message = format!("there is no commit c{sequence}: there are c1 to c{last}");
    Err(Error::new(ErrorKind::NotFound, message))
}

fn parse_moment(text: &str) -> Result<When, String> {
    let digits = text.strip_prefix('c').unwrap_or(text);
    match digits.parse() {
        Ok(number) => Ok(When::Commit(CommitSequence(number))),
        Err(_) if text == "now" => time(text).map(When::Time).map_err(|error| error.to_string()),
        Err(_) => moment::parse_time(text).map(When::Time).map_err(|_| {
            format!("{text:?} is neither a commit, such as c1042, nor a time, such as 2024-05-01")
        }),
    }
}

/// Which series are meant.
#[derive(Debug, Args)]
struct Which {
    /// Patterns of names; all series if there are none
    #[arg(value_name = "GLOB")]
    globs: Vec<String>,
    /// Only series with this label
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
    /// Only series with values of this type: f64, f32, i64, bool or string
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    value_type: Option<ValueType>,
}

impl Which {
    /// Whether nothing was said.
    fn is_everything(&self) -> bool {
        self.globs.is_empty() && self.labels.is_empty() && self.value_type.is_none()
    }

    /// Those of a database, by name; `NotFound` for a pattern that none has.
    fn find(&self, snapshot: &DatabaseSnapshot) -> Result<Vec<SeriesInfo>> {
        let labels = self.labels.iter().cloned().collect();
        let base = SeriesFilter { labels, value_type: self.value_type, glob: None };
        if self.globs.is_empty() {
            return Ok(snapshot.find_series(&base)?);
        }
        let mut found = Vec::new();
        for glob in &self.globs {
            let filter = SeriesFilter { glob: Some(glob.clone()), ..base.clone() };
            let some = snapshot.find_series(&filter)?;
            if some.is_empty() {
                return Err(meant::no_series_like(snapshot, glob).into());
            }
            found.extend(some);
        }
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        found.dedup_by(|a, b| a.name == b.name);
        Ok(found)
    }
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is no label, such as site=north")),
    }
}

fn parse_type(text: &str) -> Result<ValueType, String> {
    ValueType::parse(text).map_err(|error| error.message().to_owned())
}

/// Tells of points that were written and are not seen.
fn tell_unkept(unkept: &[(String, u64)]) {
    for (name, count) in unkept.iter().take(UNKEPT_TOLD) {
        let (are, them) = if *count == 1 { ("point is", "it") } else { ("points are", "them") };
        notice!(
            "duramen: {count} {are} older than what is kept of {}: only rollups may have {them}",
            one_line(name)
        );
    }
    if unkept.len() > UNKEPT_TOLD {
        notice!("duramen: and those of {} more series", unkept.len() - UNKEPT_TOLD);
    }
}
