//! Points gathered by series until they are committed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use duramen::{Database, Error, ErrorKind, Points, Result, SeriesDefinition, ValueType};

use super::invalid;
use super::source::Row;
use crate::meant;

/// The points of a file by the series they are of.
pub(super) struct Columns<'d> {
    database: &'d Database,
    /// Whether series that are missing are made.
    create: bool,
    /// The type of those that are made; each the one that its first
    /// line says, else that of its first value, if none is given.
    value_type: Option<ValueType>,
    places: HashMap<Arc<str>, usize>,
    gathered: Vec<Column>,
}

/// A series of the file. There may be very many, each with a point or two.
struct Column {
    name: Arc<str>,
    labels: Labels,
    points: Points,
    is_new: bool,
}

/// Labels of a series with their values, by their names: a map takes several times the memory.
struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    fn of(labels: &BTreeMap<String, String>) -> Self {
        let boxed = |text: &String| text.as_str().into();
        Self(labels.iter().map(|(name, value)| (boxed(name), boxed(value))).collect())
    }

    fn are(&self, labels: &BTreeMap<String, String>) -> bool {
        let own = self.0.iter().map(|(name, value)| (name.as_ref(), value.as_ref()));
        own.eq(labels.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    fn map(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }
}

impl<'d> Columns<'d> {
    pub(super) fn new(database: &'d Database, create: bool, value_type: Option<ValueType>) -> Self {
        Self { database, create, value_type, places: HashMap::new(), gathered: Vec::new() }
    }

    /// Takes the points of a line: all of them, or none if one is wrong. Then no series is made for
    /// it either.
    pub(super) fn add(&mut self, rows: &[Row]) -> Result<()> {
        let known = self.gathered.len();
        let mut added = Vec::with_capacity(rows.len());
        let done = rows.iter().try_for_each(|row| {
            let place = self.place(row)?;
            added.push((place, self.gathered[place].points.len()));
            self.push(place, row)
        });
        if done.is_err() {
            for (place, len) in added.into_iter().rev() {
                self.gathered[place].points.truncate(len);
            }
            for column in self.gathered.drain(known..) {
                self.places.remove(&column.name);
            }
        }
        done
    }

    fn push(&mut self, place: usize, row: &Row) -> Result<()> {
        let Column { name, points, is_new, .. } = &mut self.gathered[place];
        let value_type = points.value_type();
        let is_told = *is_new && self.value_type.is_some();
        let value = match row.value_type.filter(|said| *said != value_type && !is_told) {
            Some(said) => Err(invalid(format_args!(
                "the line says that values are of type {said}, and those of the series are of \
                 {value_type}"
            ))),
            None => row.value.of_type(value_type),
        };
        let pushed = value.and_then(|value| points.push(row.time, value, row.quality));
        pushed.map_err(|error| error.in_context(format_args!("series {name:?}")))
    }

    /// The place of the series of a row: that of its name, or, if that has other labels, the one
    /// whose name has the labels in it.
    fn place(&mut self, row: &Row) -> Result<usize> {
        let place = self.place_of(&row.series, row)?;
        let Some(labels) = &row.labels else { return Ok(place) };
        if self.gathered[place].labels.are(labels) {
            return Ok(place);
        }
        let name = with_labels(&row.series, labels);
        let place = self.place_of(&name, row)?;
        if self.gathered[place].labels.are(labels) {
            return Ok(place);
        }
        Err(invalid(format_args!(
            "the series {name:?} has other labels than the tags of the line: give it another name, \
             or import with --prefix"
        )))
    }

    fn place_of(&mut self, name: &str, row: &Row) -> Result<usize> {
        if let Some(&place) = self.places.get(name) {
            return Ok(place);
        }
        let described = |definition: &SeriesDefinition| {
            (Labels::of(&definition.labels), Points::new(definition.value_type))
        };
        let ((labels, points), is_new) = match self.database.series(name) {
            Ok(series) => (described(&series.info().definition), false),
            Err(error) if error.kind() == ErrorKind::NotFound && self.create => {
                self.check_free(name)?;
                let definition = self.new_definition(row);
                let in_series = |error: Error| error.in_context(format_args!("series {name:?}"));
                (described(&definition.map_err(in_series)?), true)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // It is the line that is wrong.
                let missing = meant::no_series_for_points(&self.database.snapshot(), name);
                return Err(invalid(missing.message()));
            }
            Err(error) => return Err(error),
        };
        let name: Arc<str> = name.into();
        self.places.insert(Arc::clone(&name), self.gathered.len());
        self.gathered.push(Column { name, labels, points, is_new });
        Ok(self.gathered.len() - 1)
    }

    /// Refuses the name of a document or collection.
    fn check_free(&self, name: &str) -> Result<()> {
        match self.database.document(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(invalid(format_args!(
                "there is a document {name:?} already: give the series another name, or import \
                 with --prefix"
            ))),
        }
    }

    /// What a series is to be that is made for a row.
    fn new_definition(&self, row: &Row) -> Result<SeriesDefinition> {
        let value_type = match self.value_type.or(row.value_type) {
            Some(value_type) => value_type,
            None => row.value.likely_type()?,
        };
        let labels = row.labels.clone().unwrap_or_default();
        let definition = SeriesDefinition { labels, ..SeriesDefinition::new(value_type) };
        definition.check()?;
        Ok(definition)
    }

    /// The series that are to be made.
    pub(super) fn new_series(&self) -> impl Iterator<Item = (&str, SeriesDefinition)> {
        let new = self.gathered.iter().filter(|column| column.is_new && !column.points.is_empty());
        new.map(|Column { name, labels, points, .. }| {
            let definition = SeriesDefinition::new(points.value_type());
            (name.as_ref(), SeriesDefinition { labels: labels.map(), ..definition })
        })
    }

    /// The points of each series that has some; those that were taken are let go.
    pub(super) fn into_points(self) -> impl Iterator<Item = (Arc<str>, Points)> {
        let some = self.gathered.into_iter().filter(|column| !column.points.is_empty());
        some.map(|column| (column.name, column.points))
    }
}

/// The name of a series beside one of the same name with other labels: `cpu/load,host=b`, and
/// `cpu/load,` if it has none. What would be read as another label is escaped.
fn with_labels(name: &str, labels: &BTreeMap<String, String>) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
    let labels = labels
        .iter()
        .map(|(label, value)| format!("{}={}", escaped(label), escaped(value)))
        .collect::<Vec<_>>();
    format!("{name},{}", labels.join(","))
}

#[cfg(test)]
mod tests {
    use duramen::{CommitOptions, Micros, Quality};

    use super::*;
    use crate::commands::series::point::Written;

    fn row(series: &str, time: i64, value: &str) -> Row {
        let (labels, value) = (None, Written::Text(value.to_owned()));
        let (time, quality) = (Micros(time), Quality::GOOD);
        Row { series: series.to_owned(), labels, time, value, quality, value_type: None }
    }

    fn labelled(time: i64, labels: &[(&str, &str)]) -> Row {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Row { labels: Some(labels.collect()), ..row("a", time, "1") }
    }

    fn names(columns: &Columns<'_>) -> Vec<String> {
        columns.new_series().map(|(name, _)| name.to_owned()).collect()
    }

    /// The name that no tags gave was taken for the series with some, and its points were mixed.
    #[test]
    fn each_set_of_labels_is_a_series() {
        let database = Database::memory().unwrap();
        let sets: [&[(&str, &str)]; 5] =
            [&[("a", "1")], &[], &[("a", "1,b=2")], &[("a", "1"), ("b", "2")], &[("a", "\\,")]];
        let expected = ["a", "a,", "a,a=1\\,b\\=2", "a,a=1,b=2", "a,a=\\\\\\,"].map(str::to_owned);
        let mut columns = Columns::new(&database, true, None);
        for (time, labels) in (0..).zip(sets) {
            columns.add(&[labelled(time, labels)]).unwrap();
        }
        assert_eq!(names(&columns), expected);
        let mut transaction = database.transaction();
        transaction.create_series_all(&columns.new_series().collect::<Vec<_>>()).unwrap();
        transaction.commit(&CommitOptions::default()).unwrap();
        let mut again = Columns::new(&database, false, None);
        for (time, labels) in (0..).zip(sets) {
            again.add(&[labelled(time, labels)]).unwrap();
        }
        let other = Row { series: "a".to_owned(), ..labelled(0, &[("a", "2")]) };
        assert_eq!(again.add(&[other]).unwrap_err().kind(), ErrorKind::Invalid);
        let found: Vec<_> = again.into_points().map(|(name, _)| name.to_string()).collect();
        assert_eq!(found, expected);
    }

    /// The definition of each series was kept until all of them were committed, as maps and texts
    /// that are most often empty, and once more while they were made.
    #[test]
    fn series_that_wait_for_the_commit_take_little_more_than_their_points() {
        let more = size_of::<Column>() - size_of::<Points>();
        assert!(more <= 5 * size_of::<usize>(), "{more} bytes");
    }

    /// Of a line that was passed over a part stayed: the type of a series, or some of its fields.
    #[test]
    fn a_line_that_is_wrong_leaves_nothing() {
        let database = Database::memory().unwrap();
        let mut columns = Columns::new(&database, true, None);
        columns.add(&[row("n", 1, "1.5")]).unwrap();
        database.create_document("doc").unwrap();
        let lines = [
            vec![row("n", 2, "2.5"), row("new", 2, "x"), row("n", 3, "wrong")],
            vec![row("doc", 1, "1.5")],
            vec![row("n", 2, "2.5"), row("e", 2, "")],
            vec![labelled(1, &[(&"l".repeat(5_000), "")])],
            vec![Row { value_type: Some(ValueType::I64), ..row("n", 2, "9007199254740993") }],
        ];
        for line in lines {
            assert_eq!(columns.add(&line).unwrap_err().kind(), ErrorKind::Invalid);
            assert_eq!(columns.gathered.len(), 1);
            assert_eq!(columns.gathered[0].points.times(), [1]);
        }
        columns.add(&[row("new", 2, "7")]).unwrap();
        assert_eq!(names(&columns), ["n", "new"]);
        assert_eq!(columns.new_series().nth(1).unwrap().1.value_type, ValueType::F64);
    }
}
