//! Readings on their way into a database: series by series, committed together.

use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::Args;
use duramen::{CommitOptions, Database, ErrorKind, Points, SeriesDefinition, ValueType};
use serde::Serialize;

use crate::Result;
use crate::arguments::WriteDatabase;
use crate::exit::Success;
use crate::output::{Output, Palette, Record};
use crate::readings::{Reading, Reason};
use crate::session::Session;

/// What happens to series that are not there.
#[derive(Debug, Args)]
pub(super) struct Intake {
    /// Make series that are not there, and the database
    #[arg(long)]
    create: bool,
    /// The type of new series: f64, f32, i64, bool or string; else what their first value is
    #[arg(long = "type", value_name = "TYPE", requires = "create")]
    value_type: Option<String>,
}

impl Intake {
    pub(super) fn open(&self, database: &WriteDatabase, session: &Session) -> Result<Database> {
        if self.create { database.open_or_create(session) } else { database.open(session) }
    }
}

/// What is going to be committed.
pub(super) struct Gathered<'a> {
    database: &'a Database,
    create: bool,
    value_type: Option<ValueType>,
    series: BTreeMap<String, Target>,
}

/// One series.
struct Target {
    is_new: bool,
    definition: SeriesDefinition,
    points: Points,
}

impl<'a> Gathered<'a> {
    pub(super) fn new(database: &'a Database, intake: &Intake) -> Result<Self> {
        let value_type = intake.value_type.as_deref().map(ValueType::parse).transpose()?;
        Ok(Self { database, create: intake.create, value_type, series: BTreeMap::new() })
    }

    /// Adds the readings of a line, all or none.
    pub(super) fn add(&mut self, readings: Vec<Reading>) -> Result<(), Reason> {
        let mut taken = Vec::with_capacity(readings.len());
        for reading in readings {
            let target = self.target(&reading)?;
            if !(reading.labels.is_empty() || reading.labels == target.definition.labels) {
                return Err(format!(
                    "the series {:?} has other labels: give one of the two another name",
                    reading.series
                ));
            }
            let value = reading.value.of_type(target.definition.value_type);
            let value =
                value.map_err(|reason| format!("the series {:?}: {reason}", reading.series))?;
            taken.push((reading.series, reading.time, value, reading.quality));
        }
        for (series, time, value, quality) in taken {
            if let Some(target) = self.series.get_mut(&series) {
                let pushed = target.points.push(time, value, quality);
                pushed.map_err(|error| error.message().to_owned())?;
            }
        }
        Ok(())
    }

    fn target(&mut self, reading: &Reading) -> Result<&mut Target, Reason> {
        let name = &reading.series;
        if !self.series.contains_key(name) {
            let target = match self.database.series(name) {
                Ok(series) => {
                    let definition = series.info().definition.clone();
                    (false, definition)
                }
                Err(error) if error.kind() == ErrorKind::NotFound && self.create => {
                    let value_type = self.value_type.unwrap_or(reading.value.likely_type());
                    let labels = reading.labels.clone();
                    (true, SeriesDefinition { labels, ..SeriesDefinition::new(value_type) })
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(format!("there is no series {name:?}: make it with --create"));
                }
                Err(error) => return Err(error.message().to_owned()),
            };
            let (is_new, definition) = target;
            let points = Points::new(definition.value_type);
            self.series.insert(name.clone(), Target { is_new, definition, points });
        }
        self.series.get_mut(name).ok_or_else(|| format!("no series {name:?}"))
    }

    /// Commits all of it at once, and says so.
    pub(super) fn commit(self, options: &CommitOptions, output: &mut Output) -> Result<Success> {
        let mut transaction = self.database.transaction();
        let filled = self.series.into_iter().filter(|(_, target)| !target.points.is_empty());
        let filled: Vec<_> = filled.collect();
        let new = filled.iter().filter(|(_, target)| target.is_new);
        let new: Vec<_> = new.map(|(name, target)| (name, target.definition.clone())).collect();
        if !new.is_empty() {
            transaction.create_series_all(&new)?;
        }
        for (name, target) in &filled {
            transaction.append_points(name, &target.points)?;
        }
        let committed = transaction.commit(options)?;
        let points = filled.iter().map(|(_, target)| target.points.len()).sum();
        let (series, created, commit) = (filled.len(), new.len(), committed.sequence.0);
        output.record(&Report { points, series, created, commit })?;
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Report {
    points: usize,
    series: usize,
    created: usize,
    commit: u64,
}

impl Record for Report {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let count = |count: usize, what: &str, many: &str| {
            format!(
                "{} {}",
                indicatif::HumanCount(count as u64),
                if count == 1 { what } else { many }
            )
        };
        let points = count(self.points, "point", "points");
        let series = count(self.series, "series", "series");
        write!(out, "appended {points} to {series}")?;
        if self.created > 0 {
            write!(out, ", {} of them new", indicatif::HumanCount(self.created as u64))?;
        }
        writeln!(out)
    }
}
