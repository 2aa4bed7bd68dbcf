//! Records as a file has them, one after the other.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use datafusion::arrow::array::{RecordBatch, RecordBatchReader as _};
use datafusion::parquet::arrow::arrow_reader::{
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use datafusion::parquet::errors::ParquetError;
use duramen::{Database, Error, ErrorKind, Key, KeyKind, Result};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::change::{KEY, OF_ENGINE, member, wrong};
use crate::csv_file::{BYTE_ORDER_MARK, CsvFile};
use crate::record_json::{Cells, Fit, string};
use crate::record_line;

mod months;
mod types;

pub use types::FileTypes;

/// Bytes of a line of NDJSON that is read: as much as a value may have.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// How many members a message names.
const NAMES_TOLD: usize = 12;

/// A file of records: NDJSON, CSV or Parquet.
///
/// A line of NDJSON is a record. Of CSV the first line names the fields: a cell that is a JSON
/// number, true, false or null is one, an empty one is left out, and all others are strings, as are
/// true, false and null where they are keys. A row of Parquet is a record without what is NULL and
/// without the columns of the engine. One member has the key; it stays a member unless it is called
/// `_key`: then the record itself may have a member of that name, which stands as `$._key`.
pub struct RecordFile {
    rows: Rows,
    key: String,
}

/// How an error of a record tells where in the file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePlaces {
    /// By its line, and the column in it.
    Columns,
    /// By its line, or its row: it is no JSON there.
    Lines,
}

enum Rows {
    Ndjson { reader: Box<dyn BufRead + Send>, line: u64 },
    Csv(Box<CsvFile>),
    Parquet { reader: Box<ParquetRecordBatchReader>, read: VecDeque<String>, row: u64 },
}

impl fmt::Debug for RecordFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordFile").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The members of a JSON object in order, their values as they are written.
pub(crate) struct Members<'t>(pub(crate) Vec<(String, &'t RawValue)>);

impl RecordFile {
    /// Records of NDJSON, of which the member `key` has the key.
    pub fn ndjson(reader: Box<dyn BufRead + Send>, key: &str) -> Self {
        Self { rows: Rows::Ndjson { reader, line: 0 }, key: key.to_owned() }
    }

    /// Records of CSV; `Invalid` if no field is called as the key, or two are called the same.
    pub fn csv(reader: Box<dyn BufRead + Send>, key: &str) -> Result<Self> {
        let file = CsvFile::new(reader)?;
        let names: Vec<String> = file.header().iter().map(str::to_owned).collect();
        if let Some(doubt) = file.doubt() {
            return Err(invalid(1, doubt));
        }
        check_key(&names, key).map_err(|error| invalid(1, error.message()))?;
        Ok(Self { rows: Rows::Csv(Box::new(file)), key: key.to_owned() })
    }

    /// Records of Parquet; `Invalid` if no column is called as the key.
    pub fn parquet(file: File, key: &str) -> Result<Self> {
        let again = file.try_clone();
        let again = again.map_err(|error| Error::io("cannot read the records", error))?;
        let reader = guarded(|| ParquetRecordBatchReaderBuilder::try_new(file))?;
        let schema = reader.schema();
        if let Some(column) = guarded(|| months::find(&again, schema))? {
            let message = format!(
                "the column {column:?} has intervals with months, which are not read: write them \
                 as texts"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        check_key(&names, key)?;
        let reader = Box::new(guarded(|| reader.build())?);
        let rows = Rows::Parquet { reader, read: VecDeque::new(), row: 0 };
        Ok(Self { rows, key: key.to_owned() })
    }

    /// What is left to read, and the member that has the key, if each line is a record as it is.
    pub(crate) fn into_lines(self) -> Result<(Box<dyn BufRead + Send>, String), Self> {
        match self.rows {
            Rows::Ndjson { reader, line: 0 } if self.key != KEY => Ok((reader, self.key)),
            rows => Err(Self { rows, ..self }),
        }
    }

    /// The types that its records cannot tell, for a table that is to be made of them and of which
    /// nothing is declared.
    pub fn types(&self, db: &Database, table: &str) -> Result<Option<FileTypes>> {
        match &self.rows {
            Rows::Parquet { reader, .. } => FileTypes::of(&reader.schema(), db, table),
            Rows::Ndjson { .. } | Rows::Csv(_) => Ok(None),
        }
    }

    /// Refuses lines that begin as no record does, before they are loaded as they are.
    pub(crate) fn check_first(lines: &mut dyn BufRead) -> Result<()> {
        let ahead =
            lines.fill_buf().map_err(|error| Error::io("cannot read the records", error))?;
        let text = ahead.strip_prefix(&BYTE_ORDER_MARK).unwrap_or(ahead).trim_ascii_start();
        let first = text.split(|byte| *byte == b'\n').next();
        match first {
            None | Some([] | [b'{', ..]) => Ok(()),
            Some(first) => match serde_json::from_slice::<Members>(first) {
                Ok(_) => Ok(()),
                Err(error) => Err(no_object(first, 1, &error)),
            },
        }
    }

    /// How places in it are told.
    pub fn places(&self) -> FilePlaces {
        match self.rows {
            Rows::Ndjson { .. } => FilePlaces::Columns,
            Rows::Csv(_) | Rows::Parquet { .. } => FilePlaces::Lines,
        }
    }

    /// Appends the JSON of the next record: its key and the number of its line, or of its row where
    /// there are no lines.
    ///
    /// # Errors
    /// `Invalid` for what is no record or has no such key, with the number.
    pub fn next(&mut self, keys: KeyKind, json: &mut Vec<u8>) -> Result<Option<(Key, u64)>> {
        let start = json.len();
        let line = match &mut self.rows {
            Rows::Ndjson { reader, line } => {
                if !next_line(reader.as_mut(), line, json)? {
                    return Ok(None);
                }
                *line
            }
            Rows::Csv(file) => {
                let mut row = csv::StringRecord::new();
                let next = file.next_row(&mut row);
                let next = next.map_err(|error| Error::io("cannot read the records", error))?;
                let Some((line, read)) = next else { return Ok(None) };
                read.map_err(|error| invalid(line, error.message()))?;
                json.extend_from_slice(json_of_row((file.header(), &self.key), &row).as_bytes());
                line
            }
            Rows::Parquet { reader, read, row } => {
                while read.is_empty() {
                    let batch = guarded(|| Ok(reader.next().transpose()?))?;
                    let Some(batch) = batch else { return Ok(None) };
                    *read = texts(&batch, *row)?;
                }
                *row += 1;
                json.extend_from_slice(read.pop_front().unwrap_or_default().as_bytes());
                *row
            }
        };
        let key = take_key((json, start), (&self.key, line), keys)?;
        Ok(Some((key, line)))
    }
}

impl FilePlaces {
    /// An error of the record in a line, which is all of the text that the engine was given.
    pub fn in_line(self, line: u64, error: &Error) -> Error {
        const PLACE: &str = " at line 1, column ";
        let message = match error.message().split_once(PLACE) {
            Some((what, why)) if self == Self::Columns => format!("{what} at column {why}"),
            Some((what, why)) => {
                format!("{what}{}", why.trim_start_matches(|digit: char| digit.is_ascii_digit()))
            }
            None => error.message().to_owned(),
        };
        Error::new(error.kind(), format!("line {line}: {message}"))
    }
}

/// What the library reads of a file of Parquet. Files come from outside: that it panics at one is
/// an error, too.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T> {
    let damaged = |why: String| {
        Error::new(ErrorKind::Invalid, format!("it cannot be read as Parquet, {why}"))
    };
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|error| damaged(error.to_string()).with_source(error)),
        Err(_) => Err(damaged("which is damaged".to_owned())),
    }
}

fn check_key(names: &[String], key: &str) -> Result<()> {
    if names.iter().any(|name| name == key) {
        return Ok(());
    }
    if names.is_empty() {
        let message = format!(
            "it has no fields, and so none that is called {key:?}: give a file that names them"
        );
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let message = format!(
        "no field is called {key:?}: name the one that has the key (--key, or KEY in COPY), of {}",
        names.join(", ")
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

/// The rows of a batch as JSON; so many were before it.
fn texts(batch: &RecordBatch, before: u64) -> Result<VecDeque<String>> {
    let columns = batch.columns().iter().zip(batch.schema_ref().fields());
    let columns = columns.filter(|(_, field)| !OF_ENGINE.contains(&field.name().as_str()));
    let columns = columns.map(|(array, field)| Ok((Cells::new(array, field)?, field.name())));
    let mut columns = columns.collect::<Result<Vec<_>>>()?;
    let mut rows = VecDeque::with_capacity(batch.num_rows());
    for (row, number) in (0..batch.num_rows()).zip(before + 1..) {
        let mut members = Vec::with_capacity(columns.len());
        for (cells, name) in &mut columns {
            let json = cells.json(Fit::new(None), row).map_err(|why| wrong(number, name, why))?;
            members.extend(json.map(|json| (name.as_str(), json)));
        }
        rows.push_back(object(members));
    }
    Ok(rows)
}

/// The error for a line that is no record.
fn invalid(line: u64, what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Invalid, format!("line {line}: {what}"))
}

/// Appends the next line that is not blank; false after the last one.
fn next_line(reader: &mut dyn BufRead, line: &mut u64, text: &mut Vec<u8>) -> Result<bool> {
    let start = text.len();
    loop {
        text.truncate(start);
        let read = reader.take(LINE_BYTES_MAX + 1).read_until(b'\n', text);
        let read = read.map_err(|error| Error::io("cannot read the records", error))?;
        if read == 0 {
            return Ok(false);
        }
        *line += 1;
        if *line == 1 && text[start..].starts_with(&BYTE_ORDER_MARK) {
            text.drain(start..start + BYTE_ORDER_MARK.len());
        }
        if read as u64 > LINE_BYTES_MAX {
            return Err(invalid(*line, "it has more bytes than a record may have (256 MiB)"));
        }
        if !text[start..].trim_ascii().is_empty() {
            return Ok(true);
        }
    }
}

/// What most who give an array have.
const IS_ARRAY: &str =
    "an array: each record has a line of its own, and `jq -c '.[]'` writes those of an array so";

/// What a file may be whose first line is no JSON.
const IS_CSV: &str = "a CSV is read with --format csv, or FORMAT csv in COPY";

/// What a file may be whose first line does not end an object.
const IS_SPREAD: &str = "each record has a line of its own, and `jq -c .` writes it so";

/// The error for a line that has no record, with what its file may be.
fn no_object(text: &[u8], line: u64, error: &serde_json::Error) -> Error {
    let what = match text.first() {
        Some(b'[') => return invalid(line, format_args!("it is no JSON object, but {IS_ARRAY}")),
        _ => format!("it is no JSON object: {}", told(error)),
    };
    match text.first() {
        Some(b'{') if line == 1 && error.is_eof() => invalid(line, format!("{what}: {IS_SPREAD}")),
        Some(b'{') | None => invalid(line, what),
        Some(_) if line == 1 && !error.is_data() => invalid(line, format!("{what}: {IS_CSV}")),
        Some(_) => invalid(line, what),
    }
}

/// The key of a record, whose text goes without the member that exports add.
fn take_key(
    (json, start): (&mut Vec<u8>, usize),
    (name, line): (&str, u64),
    keys: KeyKind,
) -> Result<Key> {
    let end = start + json[start..].trim_ascii_end().len();
    let text = &json[start..end];
    let no_object = |error| no_object(text, line, &error);
    if name != KEY {
        let mut reader = serde_json::Deserializer::from_slice(text);
        let written = Wanted(name).deserialize(&mut reader).map_err(no_object)?;
        reader.end().map_err(no_object)?;
        return match written {
            Some(written) => key_of(written, (name, line), keys),
            None => Err(no_key(text, (name, line))),
        };
    }
    let members: Members = serde_json::from_slice(text).map_err(no_object)?;
    let written = members.0.iter().find(|(found, _)| found == name);
    let Some((_, written)) = written else { return Err(no_key(text, (name, line))) };
    let key = key_of(written, (name, line), keys)?;
    let edits = record_line::edits(text, &members);
    json.truncate(end);
    for edit in &edits {
        edit.make(&mut json[start..]);
    }
    Ok(key)
}

/// What an error of a line's text says, whose place in it is its column.
fn told(error: &serde_json::Error) -> String {
    let (message, column) = (error.to_string(), error.column());
    let place = format!(" at line {} column {column}", error.line());
    let what = message.strip_suffix(&place);
    what.map_or_else(|| message.clone(), |what| format!("{what} at column {column}"))
}

/// The error for a record without its key.
fn no_key(text: &[u8], (name, line): (&str, u64)) -> Error {
    let members = serde_json::from_slice::<Members>(text).map(|members| members.0);
    let members = members.unwrap_or_default();
    let mut names: Vec<&str> =
        members.iter().take(NAMES_TOLD).map(|(name, _)| name.as_str()).collect();
    names.extend((members.len() > NAMES_TOLD).then_some("..."));
    let others = match names[..] {
        [] => "the record has no members".to_owned(),
        _ => format!("name the one that has it (--key, or KEY in COPY), of {}", names.join(", ")),
    };
    let message = format!("the member {name:?} is missing, which is to be the key: {others}");
    invalid(line, message)
}

fn key_of(written: &RawValue, (name, line): (&str, u64), keys: KeyKind) -> Result<Key> {
    let written = written.get();
    let no_key = |error: Error| invalid(line, format_args!("member {name:?}: {}", error.message()));
    match written.as_bytes().first() {
        Some(b'"') => {
            let text = serde_json::from_str::<Cow<'_, str>>(written);
            let text = text.map_err(|error| invalid(line, told(&error)))?;
            keys.parse(&text).map_err(no_key)
        }
        Some(b'-' | b'0'..=b'9') => keys.parse(written).map_err(no_key),
        _ => {
            let shown: String = written.chars().take(40).collect();
            let message = format!("{shown} is no key, which is a string or a number");
            Err(no_key(Error::new(ErrorKind::Invalid, message)))
        }
    }
}

fn json_of_row((names, key): (&csv::StringRecord, &str), row: &csv::StringRecord) -> String {
    let cells = names.iter().zip(row.iter()).filter(|(_, cell)| !cell.is_empty());
    let members = cells.map(|(name, cell)| {
        let is_word = name == key && cell.starts_with(['t', 'f', 'n']);
        let value = match serde_json::from_str::<&RawValue>(cell) {
            Ok(_) if is_word => string(cell),
            Ok(_) if !cell.starts_with(['"', '{', '[']) && cell.trim() == cell => cell.to_owned(),
            _ => string(cell),
        };
        (name, value)
    });
    object(members.collect())
}

/// The record of columns with their values; the key comes before a member of its name.
fn object(mut columns: Vec<(&str, String)>) -> String {
    columns.sort_by_key(|(name, _)| *name != KEY);
    let members = columns.iter().map(|(name, value)| format!("{}:{value}", string(member(name))));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

impl<'t> Deserialize<'t> for Members<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'t> Visitor<'t> for InOrder {
            type Value = Members<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a record, which is an object")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Members<'t>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// Reads an object for the value of one of its members, and nothing else.
struct Wanted<'n>(&'n str);

/// Whether a name is the one that is wanted.
struct IsNamed<'n>(&'n str);

impl<'t> DeserializeSeed<'t> for Wanted<'_> {
    type Value = Option<&'t RawValue>;

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'t> Visitor<'t> for Wanted<'_> {
    type Value = Option<&'t RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record, which is an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut wanted = None;
        while let Some(is_wanted) = map.next_key_seed(IsNamed(self.0))? {
            if is_wanted {
                // Of members with the same name the record keeps the last.
                wanted = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(wanted)
    }
}

impl<'t> DeserializeSeed<'t> for IsNamed<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IsNamed<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}
