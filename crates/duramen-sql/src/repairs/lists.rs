//! Lists: how many elements they may have, and what integers in them come to.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Int64Array, ListArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, interleave};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use duramen::{Error, ErrorKind};

use super::{given, is_one};
use crate::arithmetic::beyond;
use crate::failure::external;

/// A stride that leads out of each list there is, and stays an index when one is added to it.
const STRIDE_MAX: i64 = 1 << 30;

/// Integers with something computed of each.
pub(super) fn each_integer(integers: &ColumnarValue, of: impl Fn(i64) -> i64) -> ColumnarValue {
    match integers {
        ColumnarValue::Scalar(ScalarValue::Int64(integer)) => {
            ColumnarValue::Scalar(ScalarValue::Int64(integer.map(of)))
        }
        ColumnarValue::Array(array) if *array.data_type() == DataType::Int64 => {
            let array: Int64Array = array.as_primitive::<Int64Type>().unary(of);
            ColumnarValue::Array(Arc::new(array))
        }
        other => other.clone(),
    }
}

/// A stride of which lists have indexes.
pub(super) fn stride(strides: &ColumnarValue) -> ColumnarValue {
    each_integer(strides, |stride| stride.clamp(-STRIDE_MAX, STRIDE_MAX))
}

/// Refuses sizes that are less than none.
pub(super) fn check_sizes(name: &str, args: &ScalarFunctionArgs) -> Result<()> {
    let [lists, sizes, ..] = args.args.as_slice() else { return Ok(()) };
    let sizes = cast(&sizes.to_array(args.number_rows)?, &DataType::Int64)?;
    let sizes = sizes.as_primitive::<Int64Type>();
    let is_less = |row: &usize| sizes.is_valid(*row) && sizes.value(*row) < 0;
    let Some(first) = (0..sizes.len()).find(is_less) else { return Ok(()) };
    let lists = lists.to_array(args.number_rows)?;
    let wrong = (first..sizes.len()).find(|row| is_less(row) && lists.is_valid(*row));
    let Some(wrong) = wrong else { return Ok(()) };
    let message = format!(
        "the query cannot be answered: {name}(list, n) makes a list of n elements, and n is {}: \
         give 0 or more",
        sizes.value(wrong)
    );
    Err(external(Error::new(ErrorKind::Invalid, message)))
}

fn item(kind: &DataType) -> Option<&DataType> {
    match kind {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item.data_type())
        }
        _ => None,
    }
}

/// Refuses lists of what is no number.
pub(super) fn of_numbers(name: &str, kinds: &[DataType]) -> Result<()> {
    for kind in kinds {
        if item(kind).is_some_and(DataType::is_nested) {
            return plan_err!("{name}(..) takes lists of numbers, and not {kind}");
        }
    }
    Ok(())
}

/// What a function takes where it computes with integers; none if it is given no list of them.
pub(super) fn of_integers(kinds: &[DataType]) -> Option<Vec<DataType>> {
    let is_integer = |item: &DataType| item.is_integer() && *item != DataType::UInt64;
    let [list] = kinds else { return None };
    item(list).filter(|item| is_integer(item))?;
    Some(vec![DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)))])
}

pub(super) fn are_of_integers(kinds: &[DataType]) -> bool {
    matches!(kinds, [DataType::List(item)] if *item.data_type() == DataType::Int64)
}

/// The sum or the product of the integers of each list, NULL if it has none.
pub(super) fn computed(
    name: &str,
    is_sum: bool,
    args: &ScalarFunctionArgs,
) -> Result<ColumnarValue> {
    let lists = args.args.first().map(|lists| lists.to_array(args.number_rows)).transpose()?;
    let Some(lists) = lists else { return plan_err!("{name}(..) takes a list") };
    let total = |list: Arc<dyn Array>| -> Result<Option<i64>> {
        let integers = list.as_primitive::<Int64Type>().iter().flatten().map(i128::from);
        let integers: Vec<i128> = integers.collect();
        if integers.is_empty() {
            return Ok(None);
        }
        let (total, why) = if is_sum {
            let sum: i128 = integers.iter().sum();
            (i64::try_from(sum).ok(), format!("it is {sum}"))
        } else {
            (product(&integers), "it is too large".to_owned())
        };
        total.map(Some).ok_or_else(|| beyond(&format!("{name}(..)"), &why, &DataType::Int64))
    };
    let rows = lists.as_list::<i32>().iter();
    let totals = rows.map(|list| list.map_or(Ok(None), total));
    given(&totals.collect::<Result<Int64Array>>()?, is_one(&args.args))
}

/// Lists without an element, which may be NULL.
pub(super) fn removed(
    args: ScalarFunctionArgs,
    remove: impl FnOnce(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let [lists, elements] = args.args.as_slice() else { return remove(args) };
    let (rows, is_one) = (args.number_rows, is_one(&args.args));
    let (lists, elements) = (lists.to_array(rows)?, elements.to_array(rows)?);
    let nulls = elements.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    let (Some(nulls), DataType::List(item)) = (nulls, lists.data_type().clone()) else {
        return remove(args);
    };
    let others = remove(args)?.to_array(rows)?;
    let (lists, others) = (lists.as_list::<i32>(), others.as_list::<i32>());
    let (values, left) = (lists.values(), others.values());
    let missing = values.logical_nulls();
    let is_there = |at: &usize| missing.as_ref().is_none_or(|missing| missing.is_valid(*at));
    let mut kept = Vec::with_capacity(values.len());
    let mut lengths = Vec::with_capacity(rows);
    for row in 0..rows {
        let (before, is_of_null) = (kept.len(), nulls.is_null(row));
        let of = if is_of_null { lists } else { others };
        let places = usize::try_from(of.value_offsets()[row]).unwrap_or_default()..;
        let places = places.take(usize::try_from(of.value_length(row)).unwrap_or_default());
        if is_of_null {
            kept.extend(places.filter(is_there).map(|at| (0, at)));
        } else {
            kept.extend(places.map(|at| (1, at)));
        }
        lengths.push(kept.len() - before);
    }
    let values = interleave(&[values, left], &kept)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    given(&ListArray::try_new(item, offsets, values, lists.nulls().cloned())?, is_one)
}

/// None if it has no room, which it never has again unless one of them is zero.
fn product(integers: &[i128]) -> Option<i64> {
    if integers.contains(&0) {
        return Some(0);
    }
    let product = integers.iter().try_fold(1_i128, |product, of| product.checked_mul(*of))?;
    i64::try_from(product).ok()
}

#[cfg(test)]
mod tests {
    use super::product;

    #[test]
    fn products_are_exact_or_none() {
        assert_eq!(product(&[i64::MAX.into(), 2, 0]), Some(0));
        assert_eq!(product(&[1 << 62, 2, -1]), Some(i64::MIN));
        assert_eq!(product(&[1 << 62, 2]), None);
        assert_eq!(product(&[1 << 62; 3]), None);
        assert_eq!(product(&[94_906_267, 94_906_267]), Some(9_007_199_515_875_289));
    }
}
