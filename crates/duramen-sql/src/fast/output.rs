//! What the engine found as a record batch.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringViewArray,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use duramen::{AggregateValue, Aggregates, FloatSum, Measured, Sum, ValueKind};

/// Sums up to which floats add integers up exactly, in any order.
const EXACT_MAX: u128 = 1 << f64::MANTISSA_DIGITS;

/// A column of the answer, by key or measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Output {
    Key(usize, ValueKind),
    Count(usize),
    Sum(usize),
    Average(usize),
    Bound(usize, ValueKind),
}

/// The answer; none if it would depend on what the engine does not know.
pub(super) fn batch(
    found: &Aggregates,
    outputs: &[Output],
    schema: &SchemaRef,
) -> Result<Option<RecordBatch>> {
    if found.is_full() {
        return Ok(None);
    }
    let mut arrays = Vec::with_capacity(outputs.len());
    for output in outputs {
        match array(found, *output) {
            Some(array) => arrays.push(array),
            None => return Ok(None),
        }
    }
    Ok(Some(RecordBatch::try_new(Arc::clone(schema), arrays)?))
}

fn array(found: &Aggregates, output: Output) -> Option<ArrayRef> {
    let measured = |measure: usize| found.measured().get(measure);
    Some(match output {
        Output::Key(key, kind) => {
            let values = (0..found.groups()).map(|group| found.keys(group).nth(key));
            values_array(values, kind)
        }
        Output::Bound(measure, kind) => {
            let Measured::Bound(bounds) = measured(measure)? else { return None };
            values_array(bounds.iter().map(Some), kind)
        }
        Output::Count(measure) => {
            let counts: Vec<u64> = match measured(measure)? {
                Measured::Count(counts) => counts.clone(),
                Measured::Distinct(sets) => sets.iter().map(|set| set.len() as u64).collect(),
                _ => return None,
            };
            Arc::new(Int64Array::from_iter_values(counts.into_iter().map(u64::cast_signed)))
        }
        Output::Sum(measure) => match measured(measure)? {
            Measured::Sum(sums) => {
                // The plain plan says of which sum it is that 64 bits have no room for it.
                let sum = |sum: &Sum| match sum.count {
                    0 => Some(None),
                    _ => i64::try_from(sum.total).ok().map(Some),
                };
                let sums = sums.iter().map(sum).collect::<Option<Vec<_>>>()?;
                Arc::new(Int64Array::from(sums))
            }
            Measured::FloatSum(sums) => {
                let sum = |sum: &FloatSum| (sum.count > 0).then(|| sum.total());
                Arc::new(sums.iter().map(sum).collect::<Float64Array>())
            }
            _ => return None,
        },
        Output::Average(measure) => {
            #[expect(clippy::cast_precision_loss, reason = "it is exact up to this sum")]
            let totals: Vec<_> = match measured(measure)? {
                Measured::Sum(sums) if sums.iter().any(|sum| sum.reach > EXACT_MAX) => return None,
                Measured::Sum(sums) => {
                    sums.iter().map(|sum| (sum.total as f64, sum.count)).collect()
                }
                Measured::FloatSum(sums) => {
                    sums.iter().map(|sum| (sum.total(), sum.count)).collect()
                }
                _ => return None,
            };
            #[expect(clippy::cast_precision_loss, reason = "no table has so many rows")]
            let average = |(total, count): (f64, u64)| (count > 0).then(|| total / count as f64);
            Arc::new(totals.into_iter().map(average).collect::<Float64Array>())
        }
    })
}

fn values_array<'v>(
    values: impl Iterator<Item = Option<&'v AggregateValue>>,
    kind: ValueKind,
) -> ArrayRef {
    match kind {
        ValueKind::Bool => Arc::new(
            values
                .map(|value| match value {
                    Some(AggregateValue::Bool(value)) => Some(*value),
                    _ => None,
                })
                .collect::<BooleanArray>(),
        ),
        ValueKind::Text => Arc::new(
            values
                .map(|value| match value {
                    Some(AggregateValue::Text(text)) => Some(text.as_ref()),
                    _ => None,
                })
                .collect::<StringViewArray>(),
        ),
        ValueKind::Float => Arc::new(
            values
                .map(|value| match value {
                    Some(AggregateValue::Float(bits)) => Some(f64::from_bits(*bits)),
                    _ => None,
                })
                .collect::<Float64Array>(),
        ),
        ValueKind::Int => Arc::new(
            values
                .map(|value| match value {
                    Some(AggregateValue::Int(value)) => Some(*value),
                    _ => None,
                })
                .collect::<Int64Array>(),
        ),
    }
}
