//! Intervals of Parquet with months: the library reads an interval either as its months or as its
//! days and milliseconds, and leaves the others out.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, IntervalUnit, IntervalYearMonthType, Schema,
};
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use datafusion::parquet::errors::ParquetError;

/// The first column that has intervals with months, of which only days would be read.
pub(super) fn find(file: &File, schema: &Schema) -> Result<Option<String>, ParquetError> {
    let fields: Vec<FieldRef> = schema.fields().iter().map(as_months).collect();
    let is_other = |at: &usize| fields[*at] != schema.fields()[*at];
    let columns: Vec<usize> = (0..fields.len()).filter(is_other).collect();
    if columns.is_empty() {
        return Ok(None);
    }
    let months = Schema::new_with_metadata(fields, schema.metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(months));
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file.try_clone()?, options)?;
    let mask = ProjectionMask::roots(reader.parquet_schema(), columns);
    for batch in reader.with_projection(mask).build()? {
        let batch = batch?;
        let mut columns = batch.columns().iter().zip(batch.schema_ref().fields());
        if let Some((_, field)) = columns.find(|(array, _)| has_months(array)) {
            return Ok(Some(field.name().clone()));
        }
    }
    Ok(None)
}

/// A field with months in place of days.
fn as_months(field: &FieldRef) -> FieldRef {
    let kind = match field.data_type() {
        DataType::Interval(IntervalUnit::DayTime) => DataType::Interval(IntervalUnit::YearMonth),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(as_months).collect()),
        DataType::List(item) => DataType::List(as_months(item)),
        _ => return Arc::clone(field),
    };
    Arc::new(Field::clone(field).with_data_type(kind))
}

fn has_months(array: &dyn Array) -> bool {
    match array.data_type() {
        DataType::Interval(IntervalUnit::YearMonth) => {
            let months = array.as_primitive::<IntervalYearMonthType>();
            months.iter().flatten().any(|months| months != 0)
        }
        DataType::Struct(_) => array.as_struct().columns().iter().any(|column| has_months(column)),
        DataType::List(_) => has_months(array.as_list::<i32>().values()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, IntervalYearMonthArray, RecordBatch, StringArray};
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
    use duramen::{ErrorKind, KeyKind};

    use crate::record_file::RecordFile;

    use super::*;

    /// Their months were once lost.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "these are the user's files, not the engine's")]
    fn intervals_with_months_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (months, error) in [(0, None), (14, Some("the column \"i\" has intervals with months"))]
        {
            let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
            let months: ArrayRef = Arc::new(IntervalYearMonthArray::from(vec![None, Some(months)]));
            let batch = RecordBatch::try_from_iter([("_key", keys), ("i", months)]).unwrap();
            let path = folder.path().join("a.parquet");
            // So it is written by others, who do not say what it is in Arrow.
            let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true);
            let file = File::create(&path).unwrap();
            let mut writer =
                ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            let read = RecordFile::parquet(File::open(&path).unwrap(), "_key");
            match (read, error) {
                (Ok(mut read), None) => {
                    assert!(read.next(KeyKind::Text, &mut Vec::new()).unwrap().is_some());
                }
                (Err(found), Some(error)) => {
                    assert_eq!(found.kind(), ErrorKind::Invalid);
                    assert!(found.to_string().contains(error), "{found}");
                }
                (read, error) => panic!("{read:?} {error:?}"),
            }
        }
    }
}
