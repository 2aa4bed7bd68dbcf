//! The lines of a file as the points in them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use duramen::{Micros, Quality, Result, ValueType};

use super::csv::CsvLines;
use super::line_protocol::LineProtocol;
use super::ndjson::NdjsonLines;
use super::{Format, Layout, TimeUnit, invalid};
use crate::commands::series::counted;
use crate::commands::series::point::{self, Written};
use crate::moment;
use crate::notice::notice;

/// Bytes of a line that is read.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Columns and members that are times, if none is named.
pub(super) const TIMES: [&str; 5] = ["time", "timestamp", "date", "datetime", "ts"];
/// Columns and members that are names, if none is named.
pub(super) const NAMES: [&str; 3] = ["name", "series", "tag"];

/// One point as a file has it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) series: String,
    /// Those of the series; it may have any if nothing is said.
    pub(super) labels: Option<BTreeMap<String, String>>,
    pub(super) time: Micros,
    pub(super) value: Written,
    pub(super) quality: Quality,
    /// That of the series, if the file says it.
    pub(super) value_type: Option<ValueType>,
}

/// The number of a line and its points, or what is wrong with it.
pub(super) type Line = (u64, Result<Vec<Row>>);

/// A file of points, line by line. An error of the file itself is one of the outer kind.
pub(super) trait Lines {
    fn next_line(&mut self) -> io::Result<Option<Line>>;
}

/// Goes through a file of points of some format.
pub(super) fn lines<'l>(
    reader: Box<dyn BufRead + Send>,
    format: Format,
    layout: &'l Layout,
) -> Result<Box<dyn Lines + 'l>> {
    Ok(match format {
        Format::Csv => Box::new(CsvLines::new(reader, layout)?),
        Format::Ndjson => Box::new(NdjsonLines::new(reader, layout)),
        Format::LineProtocol => Box::new(LineProtocol::new(reader, layout)),
    })
}

/// How times are read that may be numbers.
pub(super) struct Times {
    given: Option<TimeUnit>,
    /// Whether it was told that numbers are probably of another unit.
    is_told: Cell<bool>,
}

impl Times {
    pub(super) fn new(layout: &Layout) -> Self {
        Self { given: layout.time_unit, is_told: Cell::new(false) }
    }

    /// The time that a text means.
    pub(super) fn read(&self, text: &str) -> Result<Micros> {
        if let Some(unit) = self.given {
            return unit.read(text);
        }
        if let Some(doubt) = text.parse().ok().and_then(counted::doubt)
            && !self.is_told.replace(true)
        {
            notice!("duramen: {doubt}: --time-unit says what numbers count");
        }
        TimeUnit::Us.read(text)
    }
}

impl TimeUnit {
    /// The time that a text means: a number of this unit, or a time of a calendar.
    pub(super) fn read(self, text: &str) -> Result<Micros> {
        match text.parse::<i64>() {
            Ok(count) => self.micros(count),
            Err(_) => moment::parse_time(text),
        }
    }

    /// The time that is so many of this unit after 1970.
    pub(super) fn micros(self, count: i64) -> Result<Micros> {
        let micros = match self {
            Self::S => count.checked_mul(1_000_000),
            Self::Ms => count.checked_mul(1_000),
            Self::Us => Some(count),
            Self::Ns => Some(count.div_euclid(1_000)),
        };
        let out_of_range = || invalid(format_args!("the time {count} is out of range"));
        micros.map(Micros).ok_or_else(out_of_range)
    }
}

/// Reads the next line with its end into `text`; false if there is none. Of one that is too long
/// the rest is read as well.
pub(super) fn read_line(reader: &mut dyn BufRead, text: &mut Vec<u8>) -> io::Result<bool> {
    text.clear();
    let read = reader.take(LINE_BYTES_MAX + 1).read_until(b'\n', text)?;
    if read as u64 > LINE_BYTES_MAX && !text.ends_with(b"\n") {
        reader.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

/// Refuses a line that is too long.
pub(super) fn check_length(text: &[u8]) -> Result<()> {
    if text.len() as u64 > LINE_BYTES_MAX {
        return Err(invalid("it has more bytes than a line of points may have (1 MiB)"));
    }
    Ok(())
}

/// The quality that a cell means; good if it is empty.
pub(super) fn read_quality(text: &str) -> Result<Quality> {
    if text.is_empty() {
        return Ok(Quality::GOOD);
    }
    point::parse_quality(text).map_err(invalid)
}

/// The type that a cell means; none if it is empty.
pub(super) fn read_type(text: &str) -> Result<Option<ValueType>> {
    if text.is_empty() { Ok(None) } else { ValueType::parse(text).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_of_a_unit_or_of_a_calendar() {
        let read = |unit: TimeUnit, text: &str| unit.read(text).unwrap().0;
        assert_eq!(read(TimeUnit::S, "2"), 2_000_000);
        assert_eq!(read(TimeUnit::Ms, "-2"), -2_000);
        assert_eq!(read(TimeUnit::Us, "9223372036854775807"), i64::MAX);
        assert_eq!(read(TimeUnit::Ns, "-1"), -1);
        assert_eq!(read(TimeUnit::S, "1970-01-02"), 86_400_000_000);
        assert!(TimeUnit::S.read("9223372036854775807").is_err());
        assert!(TimeUnit::S.read("soon").is_err());
    }
}
