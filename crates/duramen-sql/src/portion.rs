//! Batches that are not too large: wide rows come fewer at a time.
//!
//! Operators count and hold whole batches. Were a batch of wide rows left as it is, ten rows of
//! different batches that a sort keeps would hold ten times the text of thousands.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, ListArray, RecordBatch, RecordBatchOptions, StructArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

/// The most that a batch has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    pub(crate) bytes: usize,
    pub(crate) rows: usize,
}

/// Cuts a batch that has more into portions with texts of their own.
pub(crate) fn portions(batch: RecordBatch, most: Most) -> Result<Vec<RecordBatch>, ArrowError> {
    let rows = batch.num_rows();
    let bytes = batch.get_array_memory_size();
    if rows == 0 {
        return Ok(Vec::new());
    }
    if (bytes <= most.bytes && rows <= most.rows) || rows == 1 {
        return Ok(vec![batch]);
    }
    let fitting = rows * most.bytes / bytes.max(1);
    let each = fitting.min(most.rows).max(1);
    let portion = |from: usize| owned(&batch.slice(from, each.min(rows - from)));
    (0..rows).step_by(each).map(portion).collect()
}

/// The same rows without the texts of others.
pub(crate) fn owned(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(compact).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
}

/// The same values without the text of others.
pub(crate) fn compact(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::Struct(fields) => {
            let array = array.as_struct();
            let columns = array.columns().iter().map(compact).collect::<Result<_, _>>()?;
            let nulls = array.nulls().cloned();
            Arc::new(StructArray::try_new(fields.clone(), columns, nulls)?)
        }
        DataType::List(field) => {
            let array = array.as_list::<i32>();
            let (first, last) = (array.value_offsets()[0], array.value_offsets()[array.len()]);
            let (first, last) = (first.cast_unsigned() as usize, last.cast_unsigned() as usize);
            let values = compact(&array.values().slice(first, last - first))?;
            let lens = array.offsets().lengths();
            let offsets = OffsetBuffer::from_lengths(lens);
            Arc::new(ListArray::try_new(
                Arc::clone(field),
                offsets,
                values,
                array.nulls().cloned(),
            )?)
        }
        _ => Arc::clone(array),
    })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringViewArray};
    use datafusion::arrow::compute::concat_batches;
    use datafusion::arrow::datatypes::{Field, Int32Type, Schema};

    use super::*;

    fn batch(bytes: usize) -> RecordBatch {
        let texts: StringViewArray =
            (0..1_000).map(|row| (row % 7 > 0).then(|| format!("{row:0bytes$}"))).collect();
        let texts: ArrayRef = Arc::new(texts);
        let lists = (0..1_000).map(|row| (row % 5 > 0).then(|| vec![Some(row); 3]));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
        let inner = Arc::new(Field::new("text", DataType::Utf8View, true));
        let structs: ArrayRef = Arc::new(StructArray::from(vec![(inner, Arc::clone(&texts))]));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
        let columns = [("text", texts), ("list", lists), ("struct", structs), ("n", numbers)];
        let field =
            |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let columns = columns.into_iter().map(|(_, array)| array).collect();
        RecordBatch::try_new(Arc::new(schema), columns).unwrap()
    }

    #[test]
    fn wide_rows_come_in_portions_and_narrow_ones_together() {
        const MOST: Most = Most { bytes: 1 << 20, rows: 1_000 };
        let wide = batch(10_000);
        let cut = portions(wide.clone(), MOST).unwrap();
        assert!(cut.len() > 10, "{} portions", cut.len());
        let largest = cut.iter().map(RecordBatch::get_array_memory_size).max().unwrap();
        assert!(largest < 4 * MOST.bytes, "{largest} bytes");
        assert_eq!(concat_batches(&wide.schema(), &cut).unwrap(), wide);
        assert_eq!(portions(batch(10), MOST).unwrap(), [batch(10)]);
        let few = portions(batch(100), Most { rows: 300, ..MOST }).unwrap();
        let rows: Vec<_> = few.iter().map(RecordBatch::num_rows).collect();
        assert_eq!(rows, [300, 300, 300, 100]);
        assert_eq!(concat_batches(&wide.schema(), &few).unwrap(), batch(100));
    }
}
