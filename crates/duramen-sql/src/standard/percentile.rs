//! `percentile_cont(p) WITHIN GROUP (ORDER BY x)` with all digits.
//!
//! `DataFusion` cuts the place between two values after six digits (55): `0.9` of the numbers from
//! 1 to 10 would be 9.099999.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::functions_aggregate::percentile_cont::percentile_cont_udaf;
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Documentation, Signature,
};
use datafusion::prelude::SessionContext;

pub(super) fn register(context: &SessionContext) {
    context.register_udaf(Percentile(percentile_cont_udaf().as_ref().clone()).into());
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Percentile(AggregateUDF);

impl AggregateUDFImpl for Percentile {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.0.return_type(kinds)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.0.simplify()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let [value, _] = args.expr_fields else { return self.0.accumulator(args) };
        let kind = value.data_type().clone();
        if kind.is_null() {
            return self.0.accumulator(args);
        }
        let part = part(&args)?;
        let is_descending = args.order_bys.first().is_some_and(|by| by.options.descending);
        let is_distinct = args.is_distinct;
        // It says what is wrong with the part.
        self.0.accumulator(args)?;
        let Some(part) = part else {
            return plan_err!("the part of a percentile is a number, and not NULL");
        };
        let part = if is_descending { 1.0 - part } else { part };
        Ok(Box::new(Group { kind, part, is_distinct, values: Vec::new() }))
    }
}

/// The part of the values that is asked for, which is the same for all groups; none if it is NULL.
pub(super) fn part(args: &AccumulatorArgs<'_>) -> Result<Option<f64>> {
    let row = RecordBatch::new_empty(Arc::new(args.schema.clone()));
    let ColumnarValue::Scalar(part) = args.exprs[1].evaluate(&row)? else {
        return plan_err!("the part of a percentile is a number");
    };
    let part = part.cast_to(&DataType::Float64)?;
    Ok(if let ScalarValue::Float64(part) = part { part } else { None })
}

/// The values of a group.
#[derive(Debug)]
struct Group {
    kind: DataType,
    part: f64,
    is_distinct: bool,
    values: Vec<f64>,
}

impl Group {
    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        let values = cast(values, &DataType::Float64)?;
        self.values.extend(values.as_primitive::<Float64Type>().iter().flatten());
        Ok(())
    }
}

impl Accumulator for Group {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&values[0])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        states[0].as_list::<i32>().iter().flatten().try_for_each(|values| self.add(&values))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: ArrayRef = Arc::new(Float64Array::from(std::mem::take(&mut self.values)));
        let values = cast(&values, &self.kind)?;
        Ok(vec![SingleRowListArrayBuilder::new(values).build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.is_distinct {
            self.values.sort_unstable_by(f64::total_cmp);
            self.values.dedup();
        }
        ScalarValue::Float64(percentile(&mut self.values, self.part)).cast_to(&self.kind)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>()
    }
}

/// What has such a part of the values before it: between two of them, as near to each as that is.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is the place of a value that is in memory"
)]
fn percentile(values: &mut [f64], part: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let place = part * last as f64;
    let (_, lower, behind) = values.select_nth_unstable_by(place as usize, f64::total_cmp);
    let (lower, between) = (*lower, place.fract());
    let upper = behind.iter().copied().min_by(f64::total_cmp).unwrap_or(lower);
    // Of infinities there is no difference.
    let is_one = between == 0.0 || lower.total_cmp(&upper).is_eq();
    Some(if is_one { lower } else { lower + (upper - lower) * between })
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_are_between_values_as_exactly_as_floats_are() {
        let mut numbers: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        for (part, expected) in [(0.0, 1.0), (0.9, 9.1), (0.25, 3.25), (1.0, 10.0), (0.5, 5.5)] {
            assert_eq!(percentile(&mut numbers, part), Some(expected), "{part}");
        }
        let infinite = f64::INFINITY;
        assert_eq!(percentile(&mut [infinite, 1.0, infinite], 0.75), Some(infinite));
        assert_eq!(percentile(&mut [1.0, 1e17], 0.1), Some(1.0 + (1e17 - 1.0) * 0.1));
        assert_eq!(percentile(&mut [], 0.5), None);
    }
}
