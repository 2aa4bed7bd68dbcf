//! JSON of Arrow values, as records have it.
//!
//! A value goes back into a column as what the column has: text becomes a number only where it is
//! one, and JSON text is JSON again. What does not fit is refused.

use std::fmt;
use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray as _, ListArray, RecordBatch, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{
    ArrowNativeType as _, DataType, FieldRef, TimestampMicrosecondType,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{
    Encoder, EncoderFactory, EncoderOptions, NullableEncoder, make_encoder,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use duramen::{Key, KeyKind, Result};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::change::{KEY, Target, key_of, member, parsed_key, wrong};
use crate::column_type::{ColumnType, is_json};
use crate::declared::{DeclaredColumn, NOT_NULL};
use crate::digits::Given;
use crate::failure::{self, shown as cut};

/// Members that are NULL are left out: a table shows missing ones as NULL as well.
static OPTIONS: LazyLock<EncoderOptions> =
    LazyLock::new(|| json_options().with_explicit_nulls(false));

/// How values are written, JSON text as the JSON that it is.
pub(crate) fn json_options() -> EncoderOptions {
    EncoderOptions::default().with_encoder_factory(Arc::new(JsonText))
}

/// Writes JSON text as it is, also in lists: for the values of these the encoder of lists asks with
/// the field of the list, which does not say that they are JSON.
#[derive(Debug)]
pub(crate) struct JsonText;

struct JsonTextEncoder<'a>(ArrayFormatter<'a>);

struct TimeEncoder<'a> {
    times: &'a TimestampMicrosecondArray,
    formatter: ArrayFormatter<'a>,
}

struct ListEncoder<'a> {
    lists: &'a ListArray,
    values: NullableEncoder<'a>,
}

impl EncoderFactory for JsonText {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        if let (DataType::List(item), Some(lists)) = (field.data_type(), array.as_list_opt())
            && (is_json(item) || matches!(item.data_type(), DataType::List(_)))
        {
            let values = make_encoder(item, lists.values(), options)?;
            let encoder = Box::new(ListEncoder { lists, values });
            return Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())));
        }
        if let Some(times) = array.as_primitive_opt::<TimestampMicrosecondType>() {
            let formatter = ArrayFormatter::try_new(array, &FORMAT)?;
            let encoder = Box::new(TimeEncoder { times, formatter });
            return Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())));
        }
        if !is_json(field) {
            return Ok(None);
        }
        let formatter = ArrayFormatter::try_new(array, &FORMAT)?;
        let encoder = Box::new(JsonTextEncoder(formatter));
        Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
    }
}

impl Encoder for JsonTextEncoder<'_> {
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        let text = self.0.value(index).to_string();
        if serde_json::from_str::<&RawValue>(&text).is_ok() {
            out.extend_from_slice(text.as_bytes());
        } else {
            out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
        }
    }
}

/// Beyond the calendar it is the microseconds, as a number.
impl Encoder for TimeEncoder<'_> {
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        // Both write to memory, which does not fail.
        let _ = match self.formatter.value(index).try_to_string() {
            Ok(text) => write!(out, "\"{text}\""),
            Err(_) => write!(out, "{}", self.times.value(index)),
        };
    }
}

impl Encoder for ListEncoder<'_> {
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        out.push(b'[');
        if let [first, end] = self.lists.value_offsets()[index..=index + 1] {
            for value in first.as_usize()..end.as_usize() {
                if value > first.as_usize() {
                    out.push(b',');
                }
                if self.values.is_null(value) {
                    out.extend_from_slice(b"null");
                } else {
                    self.values.encode(value, out);
                }
            }
        }
        out.push(b']');
    }
}

static FORMAT: FormatOptions<'static> = FormatOptions::new();

/// What a JSON value is, and what a column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Number,
    Text,
    Object,
    Array,
    Null,
}

/// What the values of a query have to become for a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fit<'t> {
    wanted: Option<Kind>,
    /// Whether the column has JSON text.
    is_mixed: bool,
    declared: Option<&'t DeclaredColumn>,
}

impl<'t> Fit<'t> {
    /// For a column of a type; any if it is new.
    pub(crate) fn new(column: Option<&ColumnType>) -> Self {
        let wanted = match column {
            None | Some(ColumnType::Json) => None,
            Some(ColumnType::Bool) => Some(Kind::Bool),
            Some(ColumnType::Int | ColumnType::Float) => Some(Kind::Number),
            Some(ColumnType::Text) => Some(Kind::Text),
            Some(ColumnType::Struct(_)) => Some(Kind::Object),
            Some(ColumnType::List(_)) => Some(Kind::Array),
        };
        Self { wanted, is_mixed: matches!(column, Some(ColumnType::Json)), declared: None }
    }

    /// For a column with a declared type.
    pub(crate) fn declared(column: &'t DeclaredColumn) -> Self {
        Self { wanted: None, is_mixed: is_json(&column.field), declared: Some(column) }
    }

    /// For texts that are numbers: what would take any value takes these as numbers.
    pub(crate) fn of_numbers(self) -> Self {
        Self { wanted: self.wanted.or(Some(Kind::Number)), ..self }
    }

    /// A value as the column keeps it, or why it does not fit; none if it is NULL.
    pub(crate) fn kept(self, json: Option<String>) -> Result<Option<String>, String> {
        match self.declared {
            Some(column) => column.kept(json),
            None => Ok(json),
        }
    }

    /// Why a value of a kind does not fit.
    pub(crate) fn check(self, kind: Kind) -> Result<(), String> {
        match self.wanted {
            Some(wanted) if wanted != kind && kind != Kind::Null => {
                Err(format!("{kind} does not fit: the column has {wanted:#} in all records"))
            }
            _ => Ok(()),
        }
    }
}

/// In the singular, or with `#` in the plural.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, many) = match self {
            Self::Bool => ("a boolean", "booleans"),
            Self::Number => ("a number", "numbers"),
            Self::Text => ("a string", "strings"),
            Self::Object => ("an object", "objects"),
            Self::Array => ("an array", "arrays"),
            Self::Null => ("null", "nulls"),
        };
        f.write_str(if f.alternate() { many } else { one })
    }
}

/// The values of a column of a batch.
pub(crate) struct Cells<'a> {
    encoder: NullableEncoder<'a>,
    formatter: ArrayFormatter<'a>,
    array: &'a dyn Array,
    source: Source,
}

/// What the values of a batch are for a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Json,
    Text,
    Other,
}

impl<'a> Cells<'a> {
    pub(crate) fn new(array: &'a ArrayRef, field: &'a FieldRef) -> Result<Self> {
        let source = match array.data_type() {
            _ if is_json(field) => Source::Json,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Source::Text,
            _ => Source::Other,
        };
        let encoder = make_encoder(field, array, &OPTIONS).map_err(failure::arrow)?;
        let formatter = ArrayFormatter::try_new(array, &FORMAT).map_err(failure::arrow)?;
        Ok(Self { encoder, formatter, array, source })
    }

    /// A value as people write it; none if it is NULL.
    pub(crate) fn text(&self, row: usize) -> Result<Option<String>> {
        // An array of nothing but NULL says of none that it is.
        if self.array.is_null(row) || self.array.data_type().is_null() {
            return Ok(None);
        }
        self.formatter.value(row).try_to_string().map(Some).map_err(failure::arrow)
    }

    /// A value as JSON that fits, or why it does not; none if it is NULL.
    pub(crate) fn json(&mut self, fit: Fit<'_>, row: usize) -> Result<Option<String>, String> {
        fit.kept(self.value(fit, row)?)
    }

    /// A number of more digits than the value in its place has, as JSON that fits.
    fn number(&self, fit: Fit<'_>, number: &str) -> Result<Option<String>, String> {
        let is_text = match self.source {
            Source::Text if !fit.is_mixed => matches!(fit.wanted, None | Some(Kind::Text)),
            _ => fit.wanted == Some(Kind::Text),
        };
        let json = if is_text { string(number) } else { number.to_owned() };
        fit.check(kind(&json))?;
        fit.kept(Some(json))
    }

    fn value(&mut self, fit: Fit<'_>, row: usize) -> Result<Option<String>, String> {
        if self.array.is_null(row) || self.encoder.is_null(row) {
            return Ok(None);
        }
        let shown = || self.formatter.value(row).to_string();
        let json = match self.source {
            Source::Text if !fit.is_mixed && matches!(fit.wanted, None | Some(Kind::Text)) => {
                return Ok(Some(string(&shown())));
            }
            Source::Json | Source::Text => read(&shown()).map_err(|why| match fit.wanted {
                Some(wanted) => format!(
                    "{} does not fit: the column has {wanted:#} in all records",
                    cut(&string(&shown()))
                ),
                None => format!(
                    "{} does not fit: the column has JSON text, in which a string stands in \
                     quotes; {why}",
                    cut(&string(&shown()))
                ),
            })?,
            Source::Other => {
                let mut json = Vec::new();
                self.encoder.encode(row, &mut json);
                let json = String::from_utf8_lossy(&json).into_owned();
                if json == "null" {
                    return Err(format!("{} is no number that JSON has", cut(&shown())));
                }
                if fit.wanted == Some(Kind::Text) && !json.starts_with(['"', '{', '[']) {
                    string(&shown())
                } else {
                    json
                }
            }
        };
        fit.check(kind(&json))?;
        Ok(Some(json))
    }
}

/// The JSON that a text is.
fn read(text: &str) -> Result<String, String> {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Ok(text.trim().to_owned()),
        Err(error) => Err(format!("it is no JSON: {error}")),
    }
}

/// What the value of a JSON text is.
pub(crate) fn kind(json: &str) -> Kind {
    match json.as_bytes().first() {
        Some(b'"') => Kind::Text,
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b't' | b'f') => Kind::Bool,
        Some(b'n') => Kind::Null,
        _ => Kind::Number,
    }
}

/// A text as a JSON string.
pub(crate) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Makes records of rows.
pub(crate) struct RecordWriter<'t> {
    keys: KeyKind,
    key: usize,
    /// Where the values of fields are in a row, with their names as JSON.
    fields: Vec<(usize, String, Fit<'t>, &'t str)>,
    /// A column that each record has to have, and no row has.
    missing: Option<&'t str>,
    /// Numbers of more digits than the values of rows.
    given: Option<&'t Given>,
}

/// The records of a batch.
pub(crate) struct Records<'a, 't> {
    writer: &'a RecordWriter<'t>,
    key: Cells<'a>,
    fields: Vec<Cells<'a>>,
    /// Columns of a row.
    width: usize,
}

impl<'t> RecordWriter<'t> {
    /// For rows with such columns, of which those without a name are left out; one is the key, of
    /// the type of these. Without a target they are for a new collection.
    pub(crate) fn new(
        keys: KeyKind,
        target: Option<&'t Target>,
        columns: &'t [Option<String>],
    ) -> Self {
        let mut key = 0;
        let mut fields = Vec::new();
        for (index, name) in columns.iter().enumerate() {
            match name {
                Some(name) if name == KEY => key = index,
                Some(name) => {
                    let fit = target.map_or(Fit::new(None), |target| target.fit(name));
                    fields.push((index, string(member(name)), fit, name.as_str()));
                }
                None => {}
            }
        }
        let is_given = |name: &str| fields.iter().any(|(.., column)| *column == name);
        let definition = target.and_then(|target| target.definition.as_deref());
        let missing = definition.and_then(|definition| definition.missing(is_given));
        Self { keys, key, fields, missing, given: None }
    }

    /// The same of rows of which these numbers are known.
    pub(crate) fn with_numbers(self, given: &'t Given) -> Self {
        Self { given: (!given.is_empty()).then_some(given), ..self }
    }

    pub(crate) fn records<'a>(&'a self, batch: &'a RecordBatch) -> Result<Records<'a, 't>> {
        let cells =
            |index: usize| Cells::new(batch.column(index), &batch.schema_ref().fields()[index]);
        let fields = self.fields.iter().map(|(index, ..)| cells(*index)).collect::<Result<_>>()?;
        let width = batch.num_columns();
        Ok(Records { writer: self, key: cells(self.key)?, fields, width })
    }
}

impl Records<'_, '_> {
    /// The record of a row, which people know by a number.
    pub(crate) fn record(&mut self, row: usize, number: u64) -> Result<(Key, Vec<u8>)> {
        let given = |column| self.writer.given?.number((column, self.width), number - 1);
        let key = match given(self.writer.key) {
            Some(given) => parsed_key(self.writer.keys, given, number)?,
            None => key_of(self.writer.keys, &self.key, row, number)?,
        };
        if let Some(missing) = self.writer.missing {
            return Err(wrong(number, missing, NOT_NULL));
        }
        let mut json = String::from("{");
        for ((index, name, fit, column), cells) in self.writer.fields.iter().zip(&mut self.fields) {
            let value = match given(*index) {
                Some(given) => cells.number(*fit, given),
                None => cells.json(*fit, row),
            };
            let value = value.map_err(|why| wrong(number, column, why))?;
            let Some(value) = value else { continue };
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(name);
            json.push(':');
            json.push_str(&value);
        }
        json.push('}');
        Ok((key, json.into_bytes()))
    }
}
