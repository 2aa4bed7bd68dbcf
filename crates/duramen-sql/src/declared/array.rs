//! What records have, as values of a declared type.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray as _, ListArray, StringViewArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::array_value_to_string;
use duramen::{Error, ErrorKind, Result};
use serde_json::value::RawValue;

use super::DeclaredColumn;
use super::value::{numeral, plain};
use crate::column_type::ColumnType;
use crate::failure;
use crate::record_json::{Kind, kind};

impl DeclaredColumn {
    /// Values that were found, as what is declared; `Invalid` for one that does not fit, with what
    /// has it in its row.
    pub(crate) fn array(
        &self,
        (found, kind): (&ArrayRef, &ColumnType),
        owner: impl FnOnce(usize) -> Result<String>,
    ) -> Result<ArrayRef> {
        let to = self.field.data_type();
        let made = match kind {
            ColumnType::Json => of_json(found.as_string_view(), to),
            ColumnType::Text if to.is_numeric() && !to.is_floating() => {
                of_texts(found.as_string_view(), to)
            }
            _ => cast(found, to),
        };
        let made = made.map_err(failure::arrow)?;
        let is_lost = |row: &usize| made.is_null(*row) && !found.is_null(*row);
        let Some(lost) = (0..found.len()).find(is_lost) else { return Ok(made) };
        let value = array_value_to_string(found, lost).map_err(failure::arrow)?;
        let message = format!(
            "column {:?}: {}, and {} has it: UPDATE gives it another value from \
             now on",
            self.name,
            self.refused(value),
            owner(lost)?
        );
        Err(Error::new(ErrorKind::Invalid, message))
    }
}

/// Values as another type; NULL for those that do not fit.
pub(super) fn cast(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let made = cast_with_options(values, to, &options)?;
    // What is beyond a type of floats becomes infinite, which no value of a record is.
    Ok(match to {
        DataType::Float32 => {
            let floats = made.as_primitive::<Float32Type>();
            let finite = |float: f32| float.is_finite().then_some(float);
            Arc::new(floats.unary_opt::<_, Float32Type>(finite))
        }
        DataType::Float64 => {
            let floats = made.as_primitive::<Float64Type>();
            let finite = |float: f64| float.is_finite().then_some(float);
            Arc::new(floats.unary_opt::<_, Float64Type>(finite))
        }
        _ => made,
    })
}

/// Texts that are numbers as a type of numbers; NULL for those that do not fit.
fn of_texts(texts: &StringViewArray, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let plain = texts.iter().map(|text| text.map(|text| numeral(text, to)));
    let plain: ArrayRef = Arc::new(plain.collect::<StringViewArray>());
    cast(&plain, to)
}

/// Values of JSON text as a type; NULL for those that do not fit.
fn of_json(texts: &StringViewArray, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if let DataType::List(item) = to {
        return lists(texts, item);
    }
    let plain = texts.iter().map(|json| json.and_then(|json| plain(json, to)));
    let plain: ArrayRef = Arc::new(plain.collect::<StringViewArray>());
    cast(&plain, to)
}

/// JSON arrays as lists; NULL where an element does not fit.
fn lists(texts: &StringViewArray, item: &FieldRef) -> Result<ArrayRef, ArrowError> {
    let mut found: Vec<Option<Vec<&RawValue>>> = Vec::with_capacity(texts.len());
    for json in texts {
        found.push(json.and_then(|json| serde_json::from_str(json).ok()));
    }
    let elements = found.iter().flatten().flatten().map(|element| element.get());
    let elements: StringViewArray =
        elements.map(|json| (kind(json) != Kind::Null).then_some(json)).collect();
    if i32::try_from(elements.len()).is_err() {
        return Err(ArrowError::OffsetOverflowError(elements.len()));
    }
    let values = of_json(&elements, item.data_type())?;
    let (mut there, mut lens, mut end) = (Vec::new(), Vec::new(), 0);
    for list in &found {
        let start = end;
        end += list.as_ref().map_or(0, Vec::len);
        let mut all = start..end;
        there.push(list.is_some() && all.all(|at| elements.is_null(at) || values.is_valid(at)));
        lens.push(end - start);
    }
    let (offsets, there) = (OffsetBuffer::from_lengths(lens), NullBuffer::from(there));
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, Some(there))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_with_an_element_that_does_not_fit_is_refused() {
        let column = DeclaredColumn::new("c".to_owned(), "BIGINT[]".to_owned()).unwrap();
        let read = |texts: [Option<&str>; 3]| {
            let found: ArrayRef = Arc::new(texts.into_iter().collect::<StringViewArray>());
            column.array((&found, &ColumnType::Json), |row| Ok(format!("row {row}")))
        };
        let lists = read([Some("[1,null,\"3\"]"), None, Some("[]")]).unwrap();
        let shown = |row| array_value_to_string(&lists, row).unwrap();
        assert_eq!([0, 1, 2].map(shown), ["[1, , 3]", "", "[]"]);
        let error = read([Some("[1]"), Some("[2,true]"), None]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().starts_with("column \"c\": [2,true] does not fit"), "{error}");
        assert!(error.message().contains("and row 1 has it"), "{error}");
    }
}
