//! Points gathered by series until they are committed.

use std::collections::HashMap;

use duramen::{Database, ErrorKind, Points, Result, SeriesDefinition, ValueType};

use super::source::Row;
use crate::commands::series::{point, unknown};

/// The points of a file by the series they are of.
pub(super) struct Columns<'d> {
    database: &'d Database,
    /// Whether series that are missing are made.
    create: bool,
    /// The type of those that are made; each that of its first value if none is said.
    value_type: Option<ValueType>,
    places: HashMap<String, usize>,
    gathered: Vec<Column>,
}

struct Column {
    name: String,
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
            let value = point::parse(&row.value, value_type)
                .map_err(|error| error.in_context(format_args!("series {:?}", row.series)))?;
            read.push((place, value));
        }
        for (row, (place, value)) in rows.iter().zip(read) {
            self.gathered[place].points.push(row.time, value, row.quality)?;
        }
        Ok(())
    }

    /// The place of the series of a row.
    fn place(&mut self, row: &Row) -> Result<usize> {
        if let Some(&place) = self.places.get(&row.series) {
            return Ok(place);
        }
        let (value_type, is_new) = match self.database.series(&row.series) {
            Ok(series) => (series.value_type(), false),
            Err(error) if error.kind() == ErrorKind::NotFound && self.create => {
                (self.value_type.unwrap_or(row.value_type), true)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(unknown(&row.series)),
            Err(error) => return Err(error),
        };
        let (name, points) = (row.series.clone(), Points::new(value_type));
        self.places.insert(name.clone(), self.gathered.len());
        self.gathered.push(Column { name, points, is_new });
        Ok(self.gathered.len() - 1)
    }

    /// The series that are to be made.
    pub(super) fn new_series(&self) -> Vec<(&str, SeriesDefinition)> {
        let new = self.gathered.iter().filter(|column| column.is_new && !column.points.is_empty());
        let of = |column: &Column| SeriesDefinition::new(column.points.value_type());
        new.map(|column| (column.name.as_str(), of(column))).collect()
    }

    /// The points of each series that has some.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Points)> {
        let some = self.gathered.iter().filter(|column| !column.points.is_empty());
        some.map(|column| (column.name.as_str(), &column.points))
    }
}
