//! Arrow arrays of what the engine's columns have.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, PrimitiveArray, StringViewBuilder,
    StructArray, TimestampMicrosecondArray, UInt64Array, new_null_array,
};
use datafusion::arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::Fields;
use datafusion::arrow::util::display::array_value_to_string;
use duramen::{
    ColumnChunk, ColumnRows, ColumnValue, Columns, Error, ErrorKind, KeyKind, Result, Revision,
};

use crate::column_type::{Column, ColumnType, Declared, TableColumn};

/// A column of a table at some rows.
pub(crate) fn table_array(
    columns: &Columns,
    rows: &ColumnRows,
    column: &TableColumn,
) -> Result<ArrayRef> {
    Ok(match column {
        TableColumn::Key(keys) => key_array(&columns.keys(rows)?, *keys)?,
        TableColumn::Version => {
            let versions = columns.versions(rows)?.into_iter();
            Arc::new(versions.map(u64::cast_signed).collect::<Int64Array>())
        }
        TableColumn::Revision | TableColumn::ValidFrom => {
            let changed = columns.changed(rows)?.into_iter();
            Arc::new(changed.map(|revision| revision.0.cast_signed()).collect::<Int64Array>())
        }
        TableColumn::Timestamp | TableColumn::ValidFromTime => {
            Arc::new(timestamps(columns, columns.changed(rows)?.into_iter().map(Some))?)
        }
        TableColumn::ValidTo => {
            let ended = rows.ended().into_iter();
            let number = |revision: Revision| revision.0.cast_signed();
            Arc::new(ended.map(|revision| revision.map(number)).collect::<Int64Array>())
        }
        TableColumn::ValidToTime => Arc::new(timestamps(columns, rows.ended().into_iter())?),
        TableColumn::Value(column) => array(columns, rows, column)?,
        TableColumn::Declared(Declared { column, found: Some(found), .. }) => {
            let owner = |row| owner(columns, rows, row);
            column.array((&array(columns, rows, found)?, &found.kind), owner)?
        }
        TableColumn::Declared(Declared { column, found: None, .. }) => {
            new_null_array(column.field.data_type(), rows.len())
        }
    })
}

/// The record that a row is, or was, for people.
fn owner(columns: &Columns, rows: &ColumnRows, row: usize) -> Result<String> {
    let (revision, kind) = (columns.changed(rows)?.get(row).copied(), columns.key_kind());
    let (Some(revision), Some(kind)) = (revision, kind) else { return Ok("a record".to_owned()) };
    let keys = key_array(&columns.keys(rows)?, kind)?;
    let key = array_value_to_string(&keys, row).map_err(defect)?;
    Ok(format!("record {key} as of revision {revision}"))
}

fn key_array(keys: &ColumnChunk, kind: KeyKind) -> Result<ArrayRef> {
    Ok(match kind {
        KeyKind::Text | KeyKind::Uuid => text_array(keys)?,
        KeyKind::I64 => Arc::new(integers(keys)),
        KeyKind::U64 => {
            let number = |row| integer(keys.get(row)).map(i64::cast_unsigned);
            Arc::new((0..keys.len()).map(number).collect::<UInt64Array>())
        }
    })
}

fn timestamps(
    columns: &Columns,
    revisions: impl Iterator<Item = Option<Revision>>,
) -> Result<TimestampMicrosecondArray> {
    let mut known = HashMap::new();
    let mut times = Vec::new();
    for revision in revisions {
        let Some(revision) = revision else {
            times.push(None);
            continue;
        };
        let time = if let Some(&time) = known.get(&revision) {
            time
        } else {
            let time = columns.timestamp(revision)?.0;
            known.insert(revision, time);
            time
        };
        times.push(Some(time));
    }
    Ok(PrimitiveArray::from(times).with_timezone("UTC"))
}

fn array(columns: &Columns, rows: &ColumnRows, column: &Column) -> Result<ArrayRef> {
    let chunk = match &column.kind {
        // The others have columns.
        ColumnType::Json if Some(column.path) == columns.path() => {
            return text_array(&columns.json_beside_columns(rows)?);
        }
        ColumnType::Json => return text_array(&columns.json(rows, column.path)?),
        _ => columns.read(rows, column.path)?,
    };
    let all = 0..chunk.len();
    Ok(match &column.kind {
        ColumnType::Bool => {
            let truth = |row| match chunk.get(row) {
                ColumnValue::Bool(value) => Some(value),
                _ => None,
            };
            Arc::new(all.map(truth).collect::<BooleanArray>())
        }
        ColumnType::Int => Arc::new(integers(&chunk)),
        ColumnType::Float => {
            Arc::new(all.map(|row| chunk.get(row).float()).collect::<Float64Array>())
        }
        ColumnType::Text | ColumnType::Json => text_array(&chunk)?,
        ColumnType::Struct(inner) => {
            let arrays = inner.iter().map(|inner| array(columns, rows, inner));
            let arrays = arrays.collect::<Result<Vec<_>>>()?;
            let there = all.map(|row| matches!(chunk.get(row), ColumnValue::Object));
            let nulls = there.collect::<NullBuffer>();
            let fields: Fields = inner.iter().map(|inner| Arc::clone(&inner.field)).collect();
            Arc::new(StructArray::try_new(fields, arrays, Some(nulls)).map_err(defect)?)
        }
        ColumnType::List(element) => {
            let elements = columns.elements(rows, &chunk)?;
            if i32::try_from(elements.rows.len()).is_err() {
                let message = "the arrays of 4,096 rows have over 2^31 elements together: select \
                               them as rows of their own, with json_table";
                return Err(Error::new(ErrorKind::Full, message));
            }
            let lens = elements.lens.iter().map(|len| *len as usize);
            let offsets = OffsetBuffer::from_lengths(lens);
            let there = all.map(|row| matches!(chunk.get(row), ColumnValue::Array));
            let nulls = there.collect::<NullBuffer>();
            let values = array(columns, &elements.rows, element)?;
            let field = Arc::clone(&element.field);
            Arc::new(ListArray::try_new(field, offsets, values, Some(nulls)).map_err(defect)?)
        }
    })
}

fn integer(value: ColumnValue<'_>) -> Option<i64> {
    match value {
        ColumnValue::Int(value) => Some(value),
        _ => None,
    }
}

fn integers(chunk: &ColumnChunk) -> Int64Array {
    match chunk.integers() {
        Some(values) => Int64Array::from_iter_values(values),
        None => (0..chunk.len()).map(|row| integer(chunk.get(row))).collect(),
    }
}

fn text_array(chunk: &ColumnChunk) -> Result<ArrayRef> {
    let mut builder = StringViewBuilder::with_capacity(chunk.len());
    let block = builder.append_block(Buffer::from(chunk.text().as_bytes()));
    for row in 0..chunk.len() {
        match chunk.text_place(row) {
            Some((start, len)) => builder.try_append_view(block, start, len).map_err(defect)?,
            None => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn defect(error: datafusion::arrow::error::ArrowError) -> Error {
    Error::new(ErrorKind::Internal, format!("a column made no array: {error}")).with_source(error)
}
