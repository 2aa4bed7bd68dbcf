//! CSV with a point in each line, or with a column for each series.

use std::collections::HashMap;
use std::io::{self, BufRead};

use csv::StringRecord;
use duramen::{Quality, Result};
use duramen_sql::CsvFile;

use super::source::{Line, Lines, NAMES, Row, TIMES, Times, read_quality, read_type};
use super::{Layout, invalid};
use crate::commands::series::point::Written;

const VALUE: &str = "value";
const QUALITY: &str = "quality";
const VALUE_TYPE: &str = "value_type";

/// A CSV whose header was read.
pub(super) struct CsvLines<'l> {
    file: CsvFile,
    prefix: &'l str,
    times: Times,
    /// The column of times.
    time: usize,
    shape: Shape,
    row: StringRecord,
}

/// What the other columns are.
enum Shape {
    /// A point in each line.
    Long { name: usize, value: usize, quality: Option<usize>, value_type: Option<usize> },
    /// A series in each of these columns, by its header; and in each name of a column, if one is
    /// said.
    Wide { name: Option<usize>, series: Vec<(usize, String)> },
}

impl<'l> CsvLines<'l> {
    pub(super) fn new(reader: Box<dyn BufRead + Send>, layout: &'l Layout) -> Result<Self> {
        let file = CsvFile::new(reader)?;
        if let Some(doubt) = file.doubt() {
            return Err(invalid(format_args!("line 1: {doubt}")));
        }
        let header = file.header();
        let column =
            |wanted: &str| header.iter().position(|name| name.trim().eq_ignore_ascii_case(wanted));
        let first_of = |wanted: &[&str]| wanted.iter().find_map(|name| column(name));
        let named = |given: &Option<String>, others: &[&str]| match given {
            None => Ok(first_of(others)),
            Some(name) => column(name).map(Some).ok_or_else(|| no_column(name, header)),
        };
        let time = named(&layout.time, &TIMES)?;
        let time = time.ok_or_else(|| no_column("time", header))?;
        let value = named(&layout.value, &[VALUE])?;
        let name = named(&layout.name, &NAMES)?;
        let shape = match (name, value) {
            (Some(name), Some(value)) => {
                let (quality, value_type) = (column(QUALITY), column(VALUE_TYPE));
                Shape::Long { name, value, quality, value_type }
            }
            (None, Some(_)) if layout.value.is_some() => {
                return Err(no_column("name", header));
            }
            (name, _) => {
                let is_series = |at: &usize| *at != time && Some(*at) != name;
                let others = header.iter().enumerate().filter(|(at, _)| is_series(at));
                let series: Vec<(usize, String)> =
                    others.map(|(at, header)| (at, header.trim().to_owned())).collect();
                check_apart(&series)?;
                Shape::Wide { name, series }
            }
        };
        let (prefix, times) = (layout.prefix.as_str(), Times::new(layout));
        Ok(Self { file, prefix, times, time, shape, row: StringRecord::new() })
    }

    fn rows(&self) -> Result<Vec<Row>> {
        let cell = |at: usize| self.row.get(at).unwrap_or_default();
        let time = self.times.read(cell(self.time).trim())?;
        let prefix = self.prefix;
        let row = |series: String, value: &str, quality: Quality| {
            let value = Written::Text(value.to_owned());
            Row { series, labels: None, time, value, quality, value_type: None }
        };
        Ok(match &self.shape {
            Shape::Long { name, value, quality, value_type } => {
                let quality = read_quality(quality.map_or("", cell).trim())?;
                let value_type = read_type(value_type.map_or("", cell).trim())?;
                let row = row(format!("{prefix}{}", cell(*name)), cell(*value), quality);
                vec![Row { value_type, ..row }]
            }
            Shape::Wide { name, series } => {
                let name = name.map(|name| cell(name).trim());
                if name.is_some_and(str::is_empty) {
                    return Err(invalid("the column with the names has none here"));
                }
                let within = name.map_or(String::new(), |name| format!("{name}/"));
                let points = series.iter().filter(|(at, _)| !cell(*at).trim().is_empty());
                let points = points.map(|(at, header)| {
                    if header.is_empty() {
                        return Err(unnamed(*at));
                    }
                    Ok(row(format!("{prefix}{within}{header}"), cell(*at), Quality::GOOD))
                });
                points.collect::<Result<_>>()?
            }
        })
    }
}

impl Lines for CsvLines<'_> {
    fn next_line(&mut self) -> io::Result<Option<Line>> {
        let next = self.file.next_row(&mut self.row)?;
        Ok(next.map(|(line, read)| (line, read.and_then(|()| self.rows()))))
    }
}

/// Whether a column of a wide CSV is a series of the name in its header, if the file begins with a
/// column `time` and no columns are named by the caller.
pub(in crate::commands::series) fn is_column_of(series: &str) -> bool {
    let is_name = NAMES.iter().any(|name| series.eq_ignore_ascii_case(name));
    !is_name && series != TIMES[0] && series.trim() == series
}

/// Refuses headers that only blanks tell apart.
fn check_apart(series: &[(usize, String)]) -> Result<()> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (at, name) in series {
        if let Some(before) = known.insert(name, *at) {
            let (one, other) = (before + 1, at + 1);
            return Err(invalid(format_args!(
                "line 1: columns {one} and {other} are both called {name:?}: rename one of them"
            )));
        }
    }
    Ok(())
}

fn unnamed(at: usize) -> duramen::Error {
    invalid(format_args!(
        "there is a value in column {}, which has no name in line 1: give it one there, or take \
         the column away",
        at + 1
    ))
}

fn no_column(wanted: &str, header: &StringRecord) -> duramen::Error {
    if header.is_empty() {
        return invalid("it has no lines: give a file whose first line names its columns");
    }
    let columns = header.iter().collect::<Vec<_>>().join(", ");
    invalid(format_args!(
        "line 1: there is no column {wanted:?}: --time, --name and --value name them, of {columns}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let prefix = "p/".to_owned();
        Layout { prefix, time: None, name: None, value: None, time_unit: None }
    }

    type Plain = (String, i64, Written);

    fn read(text: &'static str, layout: &Layout) -> Result<Vec<Plain>> {
        let mut lines = CsvLines::new(Box::new(text.as_bytes()), layout)?;
        let mut found = Vec::new();
        while let Some((_, rows)) = lines.next_line().unwrap() {
            found.extend(rows?.into_iter().map(|row| (row.series, row.time.0, row.value)));
        }
        Ok(found)
    }

    fn row(series: &str, time: i64, value: &str) -> Plain {
        (series.to_owned(), time, Written::Text(value.to_owned()))
    }

    #[test]
    fn a_wide_one_has_a_series_in_each_column() {
        let found = read("Date,a,b\n1,10,\n2,,x\n", &layout()).unwrap();
        assert_eq!(found, [row("p/a", 1, "10"), row("p/b", 2, "x")]);
        let spaced = read("time , a\n 1 , 10\n2, \n", &layout()).unwrap();
        assert_eq!(spaced, [row("p/a", 1, " 10")]);
        let error = read("time,a, a\n1,10,2\n", &layout()).unwrap_err();
        assert!(error.message().contains("columns 2 and 3"), "{error}");
        assert_eq!(read("time,a,\n1,10,\n", &layout()).unwrap(), [row("p/a", 1, "10")]);
        let error = read("time,a,\n1,10,2\n", &layout()).unwrap_err();
        assert!(error.message().contains("column 3, which has no name"), "{error}");
        let by_place = Layout { name: Some("place".to_owned()), ..layout() };
        let found = read("place,time,a\nnorth,1,10\nsouth,1,20\n", &by_place).unwrap();
        assert_eq!(found, [row("p/north/a", 1, "10"), row("p/south/a", 1, "20")]);
    }

    #[test]
    fn a_long_one_has_a_point_in_each_line() {
        let found = read("name,time,value\na,1,10\nb,2,x\n", &layout()).unwrap();
        assert_eq!(found, [row("p/a", 1, "10"), row("p/b", 2, "x")]);
        let named = Layout { value: Some("v".to_owned()), ..layout() };
        let found = read("ts,tag,v,other\n1,a,10,0\n", &named).unwrap();
        assert_eq!(found, [row("p/a", 1, "10")]);
    }

    #[test]
    fn columns_that_are_something_else_are_of_no_series() {
        for name in ["a", "value", "Time", "date", "tags"] {
            assert!(is_column_of(name), "{name}");
            let text: &'static str = Box::leak(format!("time,{name},b\n1,10,20\n").into());
            let found = read(text, &layout()).unwrap();
            assert_eq!(found, [row(&format!("p/{name}"), 1, "10"), row("p/b", 1, "20")]);
        }
        for name in ["name", "Series", "tag", "time", " lead", "end\t"] {
            assert!(!is_column_of(name), "{name}");
        }
    }

    #[test]
    fn a_column_that_is_missing_is_told() {
        let error = read("a,b\n1,2\n", &layout()).unwrap_err();
        assert!(error.message().contains("no column \"time\""), "{error}");
        let wrong = Layout { name: Some("place".to_owned()), ..layout() };
        assert!(read("time,b\n1,2\n", &wrong).is_err());
    }
}
