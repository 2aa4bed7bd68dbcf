//! Records as a file has them, one after the other.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, Read};

use datafusion::arrow::array::RecordBatch;
use datafusion::parquet::arrow::arrow_reader::{
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use duramen::{Error, ErrorKind, Key, KeyKind, Result};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::change::{KEY, OF_ENGINE, wrong};
use crate::failure;
use crate::record_json::{Cells, Fit, string};

/// Bytes of a line of NDJSON that is read: as much as a value may have.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// A file of records: NDJSON, CSV or Parquet.
///
/// A line of NDJSON is a record. Of CSV the first line names the fields: a cell that is a JSON
/// number, true, false or null is one, an empty one is left out, and all others are strings. A row
/// of Parquet is a record without what is NULL and without the columns of the engine. One member
/// has the key; it stays a member unless it is called `_key`.
pub struct RecordFile {
    rows: Rows,
    key: String,
}

enum Rows {
    Ndjson { reader: Box<dyn BufRead>, line: u64 },
    Csv { reader: Box<csv::Reader<Box<dyn BufRead>>>, names: Vec<String> },
    Parquet { reader: Box<ParquetRecordBatchReader>, read: VecDeque<String>, row: u64 },
}

impl fmt::Debug for RecordFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordFile").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The members of a JSON object in order, their values as they are written.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl RecordFile {
    /// Records of NDJSON, of which the member `key` has the key.
    pub fn ndjson(reader: Box<dyn BufRead>, key: &str) -> Self {
        Self { rows: Rows::Ndjson { reader, line: 0 }, key: key.to_owned() }
    }

    /// Records of CSV; `Invalid` if no field is called as the key.
    pub fn csv(reader: Box<dyn BufRead>, key: &str) -> Result<Self> {
        let mut reader = Box::new(csv::Reader::from_reader(reader));
        let header = reader.headers().map_err(|error| invalid(1, error))?;
        let names: Vec<String> = header.iter().map(str::to_owned).collect();
        check_key(&names, key).map_err(|error| invalid(1, error.message()))?;
        Ok(Self { rows: Rows::Csv { reader, names }, key: key.to_owned() })
    }

    /// Records of Parquet; `Invalid` if no column is called as the key.
    pub fn parquet(file: File, key: &str) -> Result<Self> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failure::parquet)?;
        let schema = reader.schema();
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        check_key(&names, key)?;
        let reader = Box::new(reader.build().map_err(failure::parquet)?);
        let rows = Rows::Parquet { reader, read: VecDeque::new(), row: 0 };
        Ok(Self { rows, key: key.to_owned() })
    }

    /// The next record with its key and the number of its line, or of its row where there are no
    /// lines.
    ///
    /// # Errors
    /// `Invalid` for what is no record or has no such key, with the number.
    pub fn next(&mut self, keys: KeyKind) -> Result<Option<(Key, Vec<u8>, u64)>> {
        match &mut self.rows {
            Rows::Ndjson { reader, line } => {
                let Some(text) = next_line(reader.as_mut(), line)? else { return Ok(None) };
                let (key, json) = parts(&text, (&self.key, *line), keys)?;
                Ok(Some((key, json, *line)))
            }
            Rows::Csv { reader, names } => {
                let mut row = csv::StringRecord::new();
                let line = reader.position().line();
                if !reader.read_record(&mut row).map_err(|error| invalid(line, error))? {
                    return Ok(None);
                }
                let line = row.position().map_or(line, csv::Position::line);
                let text = json_of_row(names, &row);
                let (key, json) = parts(text.as_bytes(), (&self.key, line), keys)?;
                Ok(Some((key, json, line)))
            }
            Rows::Parquet { reader, read, row } => {
                while read.is_empty() {
                    let Some(batch) = reader.next() else { return Ok(None) };
                    *read = texts(&batch.map_err(failure::arrow)?, *row)?;
                }
                *row += 1;
                let text = read.pop_front().unwrap_or_default();
                let (key, json) = parts(text.as_bytes(), (&self.key, *row), keys)?;
                Ok(Some((key, json, *row)))
            }
        }
    }
}

fn check_key(names: &[String], key: &str) -> Result<()> {
    if names.iter().any(|name| name == key) {
        return Ok(());
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
            members.extend(json.map(|json| format!("{}:{json}", string(name))));
        }
        rows.push_back(format!("{{{}}}", members.join(",")));
    }
    Ok(rows)
}

/// The error for a line that is no record.
fn invalid(line: u64, what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Invalid, format!("line {line}: {what}"))
}

/// The next line that is not blank.
fn next_line(reader: &mut dyn BufRead, line: &mut u64) -> Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    loop {
        text.clear();
        let read = reader.take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut text);
        let read = read.map_err(|error| Error::io("cannot read the records", error))?;
        if read == 0 {
            return Ok(None);
        }
        *line += 1;
        if read as u64 > LINE_BYTES_MAX {
            return Err(invalid(*line, "it has more bytes than a record may have (256 MiB)"));
        }
        if !text.trim_ascii().is_empty() {
            return Ok(Some(text));
        }
    }
}

/// The key of a record, and its text without the member that exports add.
fn parts(text: &[u8], (name, line): (&str, u64), keys: KeyKind) -> Result<(Key, Vec<u8>)> {
    let Members(members) = serde_json::from_slice(text)
        .map_err(|error| invalid(line, format_args!("it is no JSON object: {error}")))?;
    let key = members.iter().find(|(found, _)| found == name).ok_or_else(|| {
        let message = format!("the member {name:?} is missing, which is to be the key (--key)");
        invalid(line, message)
    })?;
    let written = key.1.get();
    let read = match serde_json::from_str::<String>(written) {
        Ok(text) => keys.parse(&text),
        Err(_) => keys.parse(written),
    };
    let key = read.map_err(|error| invalid(line, error.message()))?;
    if name != KEY {
        return Ok((key, text.to_vec()));
    }
    let mut json = vec![b'{'];
    for (found, value) in members.iter().filter(|(found, _)| found != name) {
        if json.len() > 1 {
            json.push(b',');
        }
        json.extend_from_slice(string(found).as_bytes());
        json.push(b':');
        json.extend_from_slice(value.get().as_bytes());
    }
    json.push(b'}');
    Ok((key, json))
}

fn json_of_row(names: &[String], row: &csv::StringRecord) -> String {
    let cells = names.iter().zip(row.iter()).filter(|(_, cell)| !cell.is_empty());
    let members: Vec<String> = cells
        .map(|(name, cell)| {
            let value = match serde_json::from_str::<&RawValue>(cell) {
                Ok(_) if !cell.starts_with(['"', '{', '[']) && cell.trim() == cell => {
                    cell.to_owned()
                }
                _ => string(cell),
            };
            format!("{}:{value}", string(name))
        })
        .collect();
    format!("{{{}}}", members.join(","))
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
