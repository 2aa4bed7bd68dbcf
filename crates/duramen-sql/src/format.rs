//! How an answer is written.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::json::writer::{
    JsonArray, JsonFormat, LineDelimited, WriterBuilder, make_encoder,
};
use datafusion::parquet::arrow::ArrowWriter;
use duramen::{Error, ErrorKind, Result};

use crate::answer::{self, Answer};
use crate::record_json::{JsonText, json_options};
use crate::{failure, moment};

mod text;

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Columns for people.
    #[default]
    Table,
    /// One JSON array of objects.
    Json,
    /// A JSON object a line.
    Ndjson,
    /// Comma-separated values (RFC 4180) with a line of names; nested values as JSON.
    Csv,
    /// Apache Parquet, for a file.
    Parquet,
    /// A stream of Apache Arrow IPC, for another program.
    Arrow,
}

impl Format {
    const NAMES: [(Self, &str); 6] = [
        (Self::Table, "table"),
        (Self::Json, "json"),
        (Self::Ndjson, "ndjson"),
        (Self::Csv, "csv"),
        (Self::Parquet, "parquet"),
        (Self::Arrow, "arrow"),
    ];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(format, _)| format == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::NAMES.iter().find(|(_, name)| *name == text);
        found.map(|(format, _)| *format).ok_or_else(|| {
            let message = format!(
                "there is no format {text:?}: use table, json, ndjson, csv, parquet or arrow"
            );
            Error::new(ErrorKind::Invalid, message)
        })
    }
}

impl Answer<'_> {
    /// Writes all that is left of the answer, a few thousand rows at a time.
    pub fn write(mut self, format: Format, out: &mut dyn Write) -> Result<()> {
        self.write_rest(format, out)
    }

    /// The same, and how many rows there were.
    pub(crate) fn write_counted(mut self, format: Format, out: &mut dyn Write) -> Result<usize> {
        self.write_rest(format, out)?;
        Ok(self.rows)
    }

    fn write_rest(&mut self, format: Format, out: &mut dyn Write) -> Result<()> {
        match format {
            Format::Table => text::write(self, out),
            Format::Json => {
                write_json::<JsonArray>(self, out)?;
                out.write_all(b"\n").map_err(failure::output)
            }
            Format::Ndjson => write_json::<LineDelimited>(self, out),
            Format::Csv => write_csv(self, out),
            Format::Parquet => write_parquet(self, out),
            Format::Arrow => write_arrow(self, out),
        }
    }
}

fn write_json<F: JsonFormat>(answer: &mut Answer<'_>, out: &mut dyn Write) -> Result<()> {
    let schema = answer.schema();
    let mut names = HashSet::new();
    if let Some(twice) = schema.fields().iter().find(|field| !names.insert(field.name())) {
        let message = format!(
            "two columns of the answer are called {:?}, and an object of JSON has each name once: \
             give one another name, by AS",
            twice.name()
        );
        return Err(answer::saved(answer.saved, Error::new(ErrorKind::Invalid, message)));
    }
    let mut writer = WriterBuilder::new()
        .with_explicit_nulls(true)
        .with_encoder_factory(Arc::new(JsonText))
        .build::<_, F>(out);
    for batch in answer {
        writer.write(&batch?).map_err(failure::arrow)?;
    }
    writer.finish().map_err(failure::arrow)
}

fn write_csv(answer: &mut Answer<'_>, out: &mut dyn Write) -> Result<()> {
    let mut out = Kept { out, failed: None };
    let written = write_rows(answer, &mut out);
    match out.failed {
        Some(error) if written.is_err() => Err(failure::output(error)),
        _ => written,
    }
}

/// A writer that keeps what it failed of: of that the CSV writer tells no more than the text.
struct Kept<'w> {
    out: &'w mut dyn Write,
    failed: Option<io::Error>,
}

impl Kept<'_> {
    fn keep(&mut self, error: io::Error) -> io::Error {
        let kind = error.kind();
        self.failed = Some(error);
        kind.into()
    }
}

impl Write for Kept<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|error| self.keep(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|error| self.keep(error))
    }
}

fn write_rows(answer: &mut Answer<'_>, out: &mut dyn Write) -> Result<()> {
    let schema = answer.schema();
    let mut writer = csv::Writer::new(out);
    let nothing = RecordBatch::new_empty(flat_schema(&schema));
    writer.write(&nothing).map_err(failure::arrow)?;
    for batch in answer {
        writer.write(&flat(&batch?)?).map_err(failure::arrow)?;
    }
    Ok(())
}

fn write_parquet(answer: &mut Answer<'_>, out: &mut dyn Write) -> Result<()> {
    let mut writer =
        ArrowWriter::try_new(Vec::new(), answer.schema(), None).map_err(failure::parquet)?;
    for batch in answer {
        writer.write(&batch?).map_err(failure::parquet)?;
        // What was written leaves at once: the writer only counts it.
        out.write_all(&std::mem::take(writer.inner_mut())).map_err(failure::output)?;
    }
    let rest = writer.into_inner().map_err(failure::parquet)?;
    out.write_all(&rest).map_err(failure::output)
}

fn write_arrow(answer: &mut Answer<'_>, out: &mut dyn Write) -> Result<()> {
    let mut writer = StreamWriter::try_new(out, &answer.schema()).map_err(failure::arrow)?;
    for batch in answer {
        writer.write(&batch?).map_err(failure::arrow)?;
    }
    writer.finish().map_err(failure::arrow)
}

fn flat_schema(schema: &SchemaRef) -> SchemaRef {
    let flat = |field: &FieldRef| {
        if field.data_type().is_nested() {
            Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8))
        } else {
            Arc::clone(field)
        }
    };
    Arc::new(Schema::new(schema.fields().iter().map(flat).collect::<Vec<_>>()))
}

/// The same rows with nested values as JSON text, and times beyond the calendar as numbers.
fn flat(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    let columns = batch.columns().iter().zip(schema.fields()).map(|(array, field)| {
        if field.data_type().is_nested() {
            json_array(field, array)
        } else {
            Ok(moment::with_numbers(array)?.unwrap_or_else(|| Arc::clone(array)))
        }
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    if columns.is_empty() {
        return Ok(batch.clone());
    }
    let fields = schema.fields().iter().zip(&columns).map(|(field, array)| {
        Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone()))
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, columns).map_err(failure::arrow)
}

fn json_array(field: &FieldRef, array: &ArrayRef) -> Result<ArrayRef> {
    let options = json_options().with_explicit_nulls(true);
    let mut encoder = make_encoder(field, array, &options).map_err(failure::arrow)?;
    let texts = (0..array.len()).map(|row| {
        if encoder.is_null(row) {
            return None;
        }
        let mut text = Vec::new();
        encoder.encode(row, &mut text);
        Some(String::from_utf8_lossy(&text).into_owned())
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}
