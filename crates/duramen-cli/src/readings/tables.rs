//! Readings in tables: long, a reading a row, or wide, a series a column.

use std::collections::BTreeMap;

use csv::StringRecord;
use duramen::Quality;

use super::{Reading, Reason, Written, quality, time};

/// Names of the column of times, if none is given.
const TIME_NAMES: [&str; 4] = ["time", "timestamp", "date", "datetime"];

/// What the columns of a table are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Table {
    time: usize,
    shape: Shape,
    prefix: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Shape {
    /// The columns of names, values and qualities.
    Long { series: usize, value: usize, quality: Option<usize> },
    /// The columns that the name of a series begins with, and those of series by name.
    Wide { by: Vec<usize>, series: Vec<(usize, String)> },
}

/// What is said of a table beside its first row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Columns<'a> {
    /// The column of times.
    pub(crate) time: Option<&'a str>,
    /// Columns whose texts stand before the name of a series.
    pub(crate) by: &'a [String],
    /// What stands before the names of all series.
    pub(crate) prefix: &'a str,
}

impl Table {
    /// Of the names in the first row: long if there are columns `series` and `value`.
    pub(crate) fn new(names: &StringRecord, said: &Columns<'_>) -> Result<Self, Reason> {
        let find = |wanted: &str| names.iter().position(|name| name == wanted);
        let column = |wanted: &str| {
            let names = || names.iter().collect::<Vec<_>>().join(", ");
            find(wanted).ok_or_else(|| format!("no column is {wanted:?}: there are {}", names()))
        };
        let time = match said.time {
            Some(name) => column(name)?,
            None => TIME_NAMES.into_iter().find_map(find).ok_or_else(|| {
                format!("no column is one of {}: name it with --time", TIME_NAMES.join(", "))
            })?,
        };
        let by = said.by.iter().map(|name| column(name)).collect::<Result<Vec<_>, _>>()?;
        let shape = match (find("series"), find("value")) {
            (Some(series), Some(value)) if by.is_empty() => {
                Shape::Long { series, value, quality: find("quality") }
            }
            _ => {
                let is_series = |index: usize| index != time && !by.contains(&index);
                let all = names.iter().enumerate().filter(|(index, _)| is_series(*index));
                Shape::Wide { series: all.map(|(at, name)| (at, name.to_owned())).collect(), by }
            }
        };
        Ok(Self { time, shape, prefix: said.prefix.to_owned() })
    }

    /// The readings of a row; an empty cell of a wide table is none.
    pub(crate) fn parse(&self, row: &StringRecord) -> Result<Vec<Reading>, Reason> {
        let cell = |at: usize| row.get(at).unwrap_or_default();
        let time = time(cell(self.time))?;
        let reading = |name: &str, value: &str, quality| Reading {
            series: format!("{}{name}", self.prefix),
            labels: BTreeMap::new(),
            time,
            value: Written::Text(value.to_owned()),
            quality,
        };
        match &self.shape {
            Shape::Long { series, value, quality: of_quality } => {
                let found = of_quality.map(cell).filter(|text| !text.is_empty());
                let quality = found.map_or(Ok(Quality::GOOD), quality)?;
                Ok(vec![reading(cell(*series), cell(*value), quality)])
            }
            Shape::Wide { by, series } => {
                let before: String = by.iter().flat_map(|at| [cell(*at), "/"]).collect();
                let all = series.iter().filter(|(at, _)| !cell(*at).is_empty());
                let one = |(at, name): &(usize, String)| {
                    reading(&format!("{before}{name}"), cell(*at), Quality::GOOD)
                };
                Ok(all.map(one).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(names: &[&str], row: &[&str], said: &Columns<'_>) -> Vec<(String, String, u8)> {
        let table = Table::new(&names.to_vec().into(), said).unwrap();
        let readings = table.parse(&row.to_vec().into()).unwrap();
        let plain = |one: Reading| match one.value {
            Written::Text(text) => (one.series, text, one.quality.0),
            Written::Typed(value) => panic!("{value} has a type"),
        };
        readings.into_iter().map(plain).collect()
    }

    fn plain(series: &str, value: &str, quality: u8) -> (String, String, u8) {
        (series.into(), value.into(), quality)
    }

    #[test]
    fn a_long_table_has_a_reading_a_row() {
        let names = ["series", "time", "value", "quality"];
        let read_row = |quality| read(&names, &["a/b", "5", "1.5", quality], &Columns::default());
        assert_eq!(read_row("64"), [plain("a/b", "1.5", 64)]);
        assert_eq!(read_row(""), [plain("a/b", "1.5", 192)]);
    }

    #[test]
    fn a_wide_table_has_a_series_a_column() {
        let by = ["place".to_owned()];
        let said = Columns { by: &by, prefix: "w/", ..Columns::default() };
        let row = ["Seattle", "2012-01-01", "0.0", "", "rain"];
        let read = read(&["place", "date", "wet", "max", "sky"], &row, &said);
        assert_eq!(read, [plain("w/Seattle/wet", "0.0", 192), plain("w/Seattle/sky", "rain", 192)]);
    }

    #[test]
    fn columns_that_are_not_there_are_refused() {
        let names = StringRecord::from(vec!["a", "b"]);
        let refused = Table::new(&names, &Columns::default()).unwrap_err();
        assert!(refused.contains("--time"), "{refused}");
        let said = Columns { time: Some("c"), ..Columns::default() };
        assert_eq!(Table::new(&names, &said).unwrap_err(), "no column is \"c\": there are a, b");
        let said = Columns { time: Some("a"), ..Columns::default() };
        let table = Table::new(&names, &said).unwrap();
        assert!(table.parse(&vec!["noon", "1"].into()).is_err());
    }
}
