//! Points gathered by series until they are committed.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use duramen::{Database, ErrorKind, Points, Result, SeriesDefinition, ValueType};

use super::source::Row;
use crate::commands::series::unknown;

/// The points of a file by the series they are of.
pub(super) struct Columns<'d> {
    database: &'d Database,
    /// Whether series that are missing are made.
    create: bool,
    /// The type of those that are made; each the one that its first
    /// line says, else that of its first value, if none is given.
    value_type: Option<ValueType>,
    places: HashMap<String, usize>,
    gathered: Vec<Column>,
}

struct Column {
    name: String,
    definition: SeriesDefinition,
    points: Points,
    is_new: bool,
}

impl<'d> Columns<'d> {
    pub(super) fn new(database: &'d Database, create: bool, value_type: Option<ValueType>) -> Self {
        Self { database, create, value_type, places: HashMap::new(), gathered: Vec::new() }
    }

    /// Takes the points of a line: all of them, or none if one is wrong.
    pub(super) fn add(&mut self, rows: &[Row]) -> Result<()> {
        let mut read = Vec::with_capacity(rows.len());
        for row in rows {
            let place = self.place(row)?;
            let value_type = self.gathered[place].points.value_type();
            let value = row.value.of_type(value_type);
            let value =
                value.map_err(|error| error.in_context(format_args!("series {:?}", row.series)))?;
            read.push((place, value));
        }
        for (row, (place, value)) in rows.iter().zip(read) {
            self.gathered[place].points.push(row.time, value, row.quality)?;
        }
        Ok(())
    }

    /// The place of the series of a row: that of its name, or, if that has other labels, the one
    /// whose name has the labels in it.
    fn place(&mut self, row: &Row) -> Result<usize> {
        let place = self.place_of(&row.series, row)?;
        if row.labels.is_empty() || self.gathered[place].definition.labels == row.labels {
            return Ok(place);
        }
        self.place_of(&with_labels(&row.series, &row.labels), row)
    }

    fn place_of(&mut self, name: &str, row: &Row) -> Result<usize> {
        if let Some(&place) = self.places.get(name) {
            return Ok(place);
        }
        let (definition, is_new) = match self.database.series(name) {
            Ok(series) => (series.info().definition.clone(), false),
            Err(error) if error.kind() == ErrorKind::NotFound && self.create => {
                let value_type = match self.value_type.or(row.value_type) {
                    Some(value_type) => value_type,
                    None => row
                        .value
                        .likely_type()
                        .map_err(|error| error.in_context(format_args!("series {name:?}")))?,
                };
                let labels = row.labels.clone();
                (SeriesDefinition { labels, ..SeriesDefinition::new(value_type) }, true)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(unknown(name)),
            Err(error) => return Err(error),
        };
        let (name, points) = (name.to_owned(), Points::new(definition.value_type));
        self.places.insert(name.clone(), self.gathered.len());
        self.gathered.push(Column { name, definition, points, is_new });
        Ok(self.gathered.len() - 1)
    }

    /// The series that are to be made.
    pub(super) fn new_series(&self) -> Vec<(&str, SeriesDefinition)> {
        let new = self.gathered.iter().filter(|column| column.is_new && !column.points.is_empty());
        new.map(|column| (column.name.as_str(), column.definition.clone())).collect()
    }

    /// The points of each series that has some.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Points)> {
        let some = self.gathered.iter().filter(|column| !column.points.is_empty());
        some.map(|column| (column.name.as_str(), &column.points))
    }
}

/// The name of a series beside one of the same name with other labels: `cpu/load,host=b`.
fn with_labels(name: &str, labels: &BTreeMap<String, String>) -> String {
    labels.iter().fold(name.to_owned(), |mut name, (label, value)| {
        let _ = write!(name, ",{label}={value}");
        name
    })
}
