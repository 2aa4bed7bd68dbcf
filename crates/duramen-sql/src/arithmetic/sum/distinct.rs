//! The sum of the distinct values of a window that slides.
//!
//! `DataFusion` has it of integers of 64 bits, and lets their sum wrap around.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, Decimal128Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::Accumulator;

use super::WIDE;

/// Wide integers of 64 bits, whose sum has room in 128 bits however many they are.
#[derive(Debug, Default)]
pub(super) struct DistinctSum {
    /// How many there are of each value.
    counts: HashMap<i128, usize>,
    sum: i128,
}

impl DistinctSum {
    fn add(&mut self, value: i128) {
        let count = self.counts.entry(value).or_default();
        if *count == 0 {
            self.sum += value;
        }
        *count += 1;
    }

    fn remove(&mut self, value: i128) {
        let Some(count) = self.counts.get_mut(&value) else { return };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&value);
            self.sum -= value;
        }
    }
}

fn wide(values: &dyn Array) -> impl Iterator<Item = i128> {
    values.as_primitive::<Decimal128Type>().iter().flatten()
}

impl Accumulator for DistinctSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("sum is of one column") };
        for value in wide(values) {
            self.add(value);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = (!self.counts.is_empty()).then_some(self.sum);
        Ok(ScalarValue::Decimal128(sum, DECIMAL128_MAX_PRECISION, 0))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(i128, usize)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let value =
            |value: &i128| ScalarValue::Decimal128(Some(*value), DECIMAL128_MAX_PRECISION, 0);
        let values: Vec<_> = self.counts.keys().map(value).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &WIDE))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [states] = states else { return internal_err!("a sum has one state") };
        for values in states.as_list::<i32>().iter().flatten() {
            for value in wide(&values) {
                self.add(value);
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("sum is of one column") };
        for value in wide(values) {
            self.remove(value);
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}
