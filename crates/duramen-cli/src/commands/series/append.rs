//! `duramen series append`: one point.

use std::io::{self, Write};

use clap::Args;
use duramen::{
    Database, DatabaseSnapshot, ErrorKind, Micros, Points, Quality, SeriesDefinition, Transaction,
    ValueType,
};
use serde::Serialize;

use super::point::{self, Written};
use super::{parse_type, tell_unkept, time};
use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::exit::Success;
use crate::notice::notice;
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;
use crate::{Result, meant};

const EXAMPLES: &str = "\
Examples:
  duramen series append plant.duramen boiler/7/temp 2024-05-01T12:00:00Z 81.5 --create
  duramen series append plant.duramen boiler/7/temp 81.7
  duramen series append plant.duramen boiler/7/temp now -inf --quality bad
  duramen series append plant.duramen boiler/7/state now idle --create --type string

Where there is a point of that time, the new one takes its place; as of earlier commits the old one
is there. A series that is made gets the type of its value, f64 for any number, unless --type says
another one.";

/// Append a point to a series
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Append {
    #[command(flatten)]
    database: WriteDatabase,
    /// The name of the series
    #[arg(value_name = "TAG")]
    name: String,
    /// When; or the value, if it is of now
    #[arg(value_name = "TIME|VALUE", allow_hyphen_values = true, value_parser = no_option)]
    first: String,
    /// The value
    #[arg(value_name = "VALUE", allow_hyphen_values = true, value_parser = no_option)]
    value: Option<String>,
    /// How far the value can be trusted: good, uncertain, bad, invalid or a byte
    #[arg(long, default_value = "good", value_parser = point::parse_quality)]
    quality: Quality,
    /// Make the series if it is missing, and the database
    #[arg(long)]
    create: bool,
    /// The type of its values, if it is to be made: f64, f32, i64, bool or string
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type, requires = "create")]
    value_type: Option<ValueType>,
    #[command(flatten)]
    note: Note,
}

/// Takes -5 and -inf as what they are. What looks like a long option is one that was misspelled.
fn no_option(text: &str) -> Result<String, String> {
    if text.starts_with("--") {
        return Err("there is no such option; text that begins so can be imported".to_owned());
    }
    Ok(text.to_owned())
}

impl Append {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let (time, value) = match &self.value {
            Some(value) => (time(&self.first)?, value),
            None => (time("now")?, &self.first),
        };
        let value = Written::Text(value.clone());
        let write = |database: &Database| self.append(database, time, &value);
        let (commit, created) = if self.create {
            self.database.write_or_create(session, write)?
        } else {
            write(&self.database.open(session)?)?
        };
        if let Some(value_type) = created {
            notice!("created the series {} of type {value_type}", self.name);
        }
        output.record(&Appended { series: &self.name, points: 1, commit })?;
        Ok(Success::Done)
    }

    /// The commit, and the type of the series if that was made.
    fn append(
        &self,
        database: &Database,
        time: Micros,
        value: &Written,
    ) -> Result<(u64, Option<ValueType>)> {
        let mut transaction = database.transaction();
        let (value_type, is_new) =
            self.type_or_create((&mut transaction, &database.snapshot()), value)?;
        let mut points = Points::new(value_type);
        let value = value.of_type(value_type);
        let value = value.map_err(|error| error.in_context(format!("series {:?}", self.name)))?;
        points.push(time, value, self.quality)?;
        transaction.append_points(&self.name, &points)?;
        let committed = transaction.commit(&self.note.options())?;
        tell_unkept(&committed.unkept);
        Ok((committed.sequence.0, is_new.then_some(value_type)))
    }

    /// The type of the series' values, and whether it is made with them.
    fn type_or_create(
        &self,
        (transaction, snapshot): (&mut Transaction, &DatabaseSnapshot),
        value: &Written,
    ) -> Result<(ValueType, bool)> {
        match transaction.series_info(&self.name) {
            Ok(info) => Ok((info.definition.value_type, false)),
            Err(error) if error.kind() == ErrorKind::NotFound && self.create => {
                let value_type = match self.value_type {
                    Some(value_type) => value_type,
                    None => value.likely_type().map_err(|error| {
                        error.in_context(format_args!("series {:?}", self.name))
                    })?,
                };
                transaction.create_series(&self.name, &SeriesDefinition::new(value_type))?;
                Ok((value_type, true))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(meant::no_series_for_points(snapshot, &self.name).into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[derive(Debug, Serialize)]
struct Appended<'a> {
    series: &'a str,
    points: u64,
    commit: u64,
}

impl Record for Appended<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let (r, Self { series, commit, .. }) = (palette.revision, self);
        writeln!(out, "{}: appended a point in commit {r}c{commit}{r:#}", one_line(series))
    }
}
