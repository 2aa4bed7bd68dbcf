//! The rows of a file of CSV, of which the quotes have to be closed.
//!
//! The parser takes a quote that is never closed to end with the file: all of the rest would be one
//! value. So the bytes are looked at before it has them. It also begins a row where the one before
//! ended, before the rest of that line end and empty lines: the bytes tell of the lines of rows.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, Read};

use csv::{Reader, StringRecord};
use duramen::{Error, ErrorKind, Result};

/// Bytes of a row that is read: as much as a value may have.
const ROW_BYTES_MAX: u64 = 256 << 20;

/// What some programs begin files in UTF-8 with.
pub(crate) const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// The number of a line of a file, and whether it could be read.
pub type CsvLine = (u64, Result<()>);

/// A file of CSV whose header was read: the names of its columns, none of them twice.
pub struct CsvFile {
    reader: Reader<Watched>,
    header: StringRecord,
    /// Whether the rest of the file cannot be told apart.
    is_over: bool,
}

impl fmt::Debug for CsvFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsvFile").field("header", &self.header).finish_non_exhaustive()
    }
}

impl CsvFile {
    /// Reads the header.
    ///
    /// # Errors
    /// `Invalid` if it is no CSV or names a column twice; `Io`.
    pub fn new(reader: Box<dyn BufRead + Send>) -> Result<Self> {
        Self::with_row_max(reader, ROW_BYTES_MAX)
    }

    fn with_row_max(reader: Box<dyn BufRead + Send>, row_max: u64) -> Result<Self> {
        let mut reader = Reader::from_reader(Watched::new(reader, row_max));
        let header = match reader.headers() {
            Ok(header) => header.clone(),
            Err(error) => {
                let line = reader.get_mut().line_from(0).unwrap_or(1);
                let (line, error) = wrong(error, line).map_err(unread)?;
                return Err(error.in_context(format_args!("line {line}")));
            }
        };
        let line = reader.get_mut().line_from(0).unwrap_or(1);
        for (at, name) in header.iter().enumerate() {
            if let Some(first) = header.iter().take(at).position(|other| other == name) {
                let message = format!(
                    "line {line}: columns {} and {} are both called {name:?}: rename one of them",
                    first + 1,
                    at + 1
                );
                return Err(Error::new(ErrorKind::Invalid, message));
            }
        }
        Ok(Self { reader, header, is_over: false })
    }

    /// The names of the columns.
    #[must_use]
    pub fn header(&self) -> &StringRecord {
        &self.header
    }

    /// Why the header is hardly that of a CSV, and what to do.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let first = self.header.get(0).unwrap_or_default();
        if first.starts_with('{') {
            return Some(
                "it has JSON in place of names: --format ndjson reads it, or FORMAT ndjson in COPY"
                    .to_owned(),
            );
        }
        let other = [';', '\t'].into_iter().find(|other| first.contains(*other));
        let other = other.filter(|_| self.header.len() == 1)?;
        Some(format!(
            "its columns are told apart by {other:?}: write the file with commas between them"
        ))
    }

    /// Reads the next row; none after the last.
    ///
    /// # Errors
    /// Those of the file itself. A row that is wrong is `Invalid` with its line, or with that of
    /// the quote which is not closed: nothing follows such a one.
    pub fn next_row(&mut self, row: &mut StringRecord) -> io::Result<Option<CsvLine>> {
        if self.is_over {
            return Ok(None);
        }
        let (byte, last) = (self.reader.position().byte(), self.reader.position().line());
        let read = self.reader.read_record(row);
        let line = self.reader.get_mut().line_from(byte).unwrap_or(last);
        match read {
            Ok(false) => Ok(None),
            Ok(true) => Ok(Some((line, Ok(())))),
            Err(error) => {
                self.is_over = error.is_io_error();
                wrong(error, line).map(|(line, error)| Some((line, Err(error))))
            }
        }
    }
}

/// What is wrong with the row of a line, and the line to tell; that of the file itself is the
/// error.
fn wrong(error: csv::Error, line: u64) -> io::Result<(u64, Error)> {
    let what = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("it has {len} values, and the header names {expected_len} columns")
        }
        csv::ErrorKind::Utf8 { err, .. } => format!("value {} is not UTF-8", err.field() + 1),
        _ => error.to_string(),
    };
    let csv::ErrorKind::Io(error) = error.into_kind() else {
        return Ok((line, Error::new(ErrorKind::Invalid, what)));
    };
    match error.get_ref().and_then(|inner| inner.downcast_ref::<BadRow>()) {
        Some(BadRow { line, what }) => Ok((*line, Error::new(ErrorKind::Invalid, what.clone()))),
        None => Err(error),
    }
}

fn unread(error: io::Error) -> Error {
    Error::io("cannot read the CSV", error)
}

/// A row that cannot be told from what follows.
#[derive(Debug)]
struct BadRow {
    line: u64,
    what: String,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for BadRow {}

/// Where in a row a byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the first byte of a value.
    Start,
    /// In a value without quotes, where a quote is a character as others.
    Plain,
    Quoted,
    /// After a quote in a quoted value: it ends, unless another one follows.
    Quote,
}

/// Bytes of CSV that are passed on, looked at for quotes that stay open and rows that do not end.
struct Watched {
    inner: Box<dyn BufRead + Send>,
    row_max: u64,
    place: Place,
    line: u64,
    /// The line in which the quote was opened.
    opened: u64,
    /// The line in which the row began, and its bytes so far.
    row: (u64, u64),
    bytes: u64,
    /// Of the rows that were looked at and not asked for: the first byte that is no line end, and
    /// its line.
    rows: VecDeque<(u64, u64)>,
}

impl Watched {
    fn new(inner: Box<dyn BufRead + Send>, row_max: u64) -> Self {
        let (place, row) = (Place::Start, (1, 0));
        let rows = VecDeque::new();
        Self { inner, row_max, place, line: 1, opened: 1, row, bytes: 0, rows }
    }

    /// The line of the first row that begins at a byte or behind it.
    fn line_from(&mut self, byte: u64) -> Option<u64> {
        while self.rows.pop_front_if(|(begin, _)| *begin < byte).is_some() {}
        self.rows.front().map(|(_, line)| *line)
    }

    fn look_at(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let at = self.bytes;
            self.bytes += 1;
            self.line += u64::from(byte == b'\n');
            let mark = usize::try_from(at).ok().and_then(|at| BYTE_ORDER_MARK.get(at));
            if self.place == Place::Start && mark == Some(&byte) {
                continue;
            }
            if self.row.1 == 0 && !matches!(byte, b'\n' | b'\r') {
                self.rows.push_back((at, self.line));
            }
            self.row.1 += 1;
            self.place = match (self.place, byte) {
                (Place::Quoted, b'"') => Place::Quote,
                (Place::Quote, b'"') | (Place::Quoted, _) => Place::Quoted,
                (Place::Start, b'"') => {
                    self.opened = self.line;
                    Place::Quoted
                }
                (_, b',') => Place::Start,
                (_, b'\n' | b'\r') => {
                    self.row = (self.line, 0);
                    Place::Start
                }
                _ => Place::Plain,
            };
        }
    }

    /// Refuses what cannot be a row, at the end of the file or before it.
    fn check(&self, is_end: bool) -> io::Result<()> {
        let (line, what) = if self.row.1 > self.row_max {
            let quoted = match self.place {
                Place::Quoted => format!(", and the quote of line {} is open", self.opened),
                _ => String::new(),
            };
            let max = self.row_max >> 20;
            (self.row.0, format!("it has more bytes than a row may have ({max} MiB){quoted}"))
        } else if is_end && self.place == Place::Quoted {
            (self.opened, "a quote opens here that is not closed: close or double it".to_owned())
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidData, BadRow { line, what }))
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.look_at(buffer.get(..read).unwrap_or_default());
        self.check(read == 0 && !buffer.is_empty())?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str, row_max: u64) -> Result<Vec<String>> {
        let mut file = CsvFile::with_row_max(Box::new(text.as_bytes()), row_max)?;
        let (mut row, mut found) = (StringRecord::new(), Vec::new());
        while let Some((line, read)) = file.next_row(&mut row).unwrap() {
            found.push(match read {
                Ok(()) => row.iter().collect::<Vec<_>>().join("|"),
                Err(error) => format!("{line}: {}", error.message()),
            });
        }
        Ok(found)
    }

    #[test]
    fn a_quote_that_is_not_closed_is_told_with_its_line() {
        let found = read("a,b\n1,2\n3,\"x\n4,5\n6,7\n", 1 << 20).unwrap();
        let told = "3: a quote opens here that is not closed: close or double it";
        assert_eq!(found, ["1|2", told]);
        let error = read("a,\"b\n1,2\n", 1 << 20).unwrap_err();
        assert!(error.message().starts_with("line 1: a quote opens here"), "{error}");
    }

    #[test]
    fn quotes_that_are_closed_doubled_or_within_a_value_are_none_that_stay_open() {
        let found =
            read("\u{feff}\"a\",b\r\n\"x\n\"\"y\",5\" disk\r\n\"\",\"z\"", 1 << 20).unwrap();
        assert_eq!(found, ["x\n\"y|5\" disk", "|z"]);
    }

    #[test]
    fn a_row_beyond_the_bound_is_refused_before_the_file_ends() {
        let found = read("a,b\n1,\"2222222222222222222222222\n3,4\n", 20).unwrap_err();
        assert!(found.message().contains("more bytes than a row may have"), "{found}");
    }

    /// The parser counts lines up to where the row before ended.
    #[test]
    fn a_row_has_the_line_in_which_it_begins() {
        let lines = |text: &'static str| {
            let mut file = CsvFile::new(Box::new(text.as_bytes())).unwrap();
            let (mut row, mut found) = (StringRecord::new(), Vec::new());
            while let Some((line, _)) = file.next_row(&mut row).unwrap() {
                found.push(line);
            }
            found
        };
        assert_eq!(lines("time,a\r\nbad,1\r\n"), [2]);
        assert_eq!(lines("time,a\n\nbad,1\n"), [3]);
        assert_eq!(lines("time,a\r\n1,1\r\n\r\n\r\nbad,1\r\n"), [2, 5]);
        assert_eq!(lines("\u{feff}\n\ntime,a\n1,\"x\ny\"\n2,\"\n\"\n3\n\n4,1"), [4, 6, 8, 10]);
        let error = CsvFile::new(Box::new("\r\na,a\r\n".as_bytes())).unwrap_err();
        assert!(error.message().starts_with("line 2: columns 1 and 2"), "{error}");
    }

    #[test]
    fn a_column_that_is_named_twice_is_refused_with_both_places() {
        let error = read("a,b,a\n1,2,3\n", 1 << 20).unwrap_err();
        let told = "line 1: columns 1 and 3 are both called \"a\": rename one of them";
        assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, told));
    }
}
