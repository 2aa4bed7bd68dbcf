//! Aggregates that give one of the values that they take: `percentile_disc(p) WITHIN GROUP (ORDER
//! BY x)`, which has such a part of them up to it, and `mode`, which is there most often.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, new_empty_array};
use datafusion::arrow::compute::{SortOptions, concat, filter, is_not_null, partition, sort};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::scalar_doc_sections::DOC_SECTION_OTHER;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, Signature, Volatility,
};
use datafusion::prelude::SessionContext;

use super::percentile::part;

static PERCENTILE: LazyLock<Documentation> = LazyLock::new(|| {
    let what = "Returns the first value that has such a part of all values up to it.";
    let syntax = "percentile_disc(part) WITHIN GROUP (ORDER BY value)";
    Documentation::builder(DOC_SECTION_OTHER, what, syntax)
        .with_argument("part", "A number from 0 to 1.")
        .build()
});

static MODE: LazyLock<Documentation> = LazyLock::new(|| {
    let what = "Returns the value that is there most often, of several the first one.";
    let syntax = "mode(value), or mode() WITHIN GROUP (ORDER BY value)";
    Documentation::builder(DOC_SECTION_OTHER, what, syntax)
        .with_argument("value", "The values.")
        .build()
});

pub(super) fn register(context: &SessionContext) {
    for which in [Which::Percentile, Which::Mode] {
        let values = if which == Which::Percentile { 2 } else { 1 };
        let signature = Signature::any(values, Volatility::Immutable);
        context.register_udaf(Ordered { which, signature }.into());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Which {
    Percentile,
    Mode,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Ordered {
    which: Which,
    signature: Signature,
}

impl AggregateUDFImpl for Ordered {
    fn name(&self) -> &'static str {
        match self.which {
            Which::Percentile => "percentile_disc",
            Which::Mode => "mode",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        Ok(kinds[0].clone())
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let item = Field::new_list_field(args.input_fields[0].data_type().clone(), true);
        Ok(vec![Arc::new(Field::new(args.name, DataType::List(Arc::new(item)), true))])
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(match self.which {
            Which::Percentile => &PERCENTILE,
            Which::Mode => &MODE,
        })
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return plan_err!(
                "{} counts how often a value is there: leave DISTINCT out",
                self.name()
            );
        }
        let part = match self.which {
            Which::Percentile => match part(&args)? {
                Some(part) if (0.0..=1.0).contains(&part) => Some(part),
                _ => return plan_err!("the part of percentile_disc is a number from 0 to 1"),
            },
            Which::Mode => None,
        };
        let kind = args.expr_fields[0].data_type().clone();
        let order = args.order_bys.first().map(|by| by.options).unwrap_or_default();
        Ok(Box::new(Group { kind, part, order, values: Vec::new() }))
    }
}

/// The values of a group.
#[derive(Debug)]
struct Group {
    kind: DataType,
    part: Option<f64>,
    order: SortOptions,
    values: Vec<ArrayRef>,
}

impl Group {
    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        let values = filter(values, &is_not_null(values)?)?;
        if !values.is_empty() {
            self.values.push(values);
        }
        Ok(())
    }

    fn all(&mut self) -> Result<ArrayRef> {
        let values = std::mem::take(&mut self.values);
        let values: Vec<_> = values.iter().map(AsRef::as_ref).collect();
        Ok(if values.is_empty() { new_empty_array(&self.kind) } else { concat(&values)? })
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
        let values = self.all()?;
        Ok(vec![SingleRowListArrayBuilder::new(values).build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sorted = sort(&self.all()?, Some(self.order))?;
        // What is said of it stays the same where it is asked again.
        self.add(&sorted)?;
        let place = match self.part {
            _ if sorted.is_empty() => return ScalarValue::try_from(&self.kind),
            Some(part) => place(part, sorted.len()),
            None => {
                let mut most = 0..0;
                for run in partition(&[Arc::clone(&sorted)])?.ranges() {
                    if run.len() > most.len() {
                        most = run;
                    }
                }
                most.start
            }
        };
        ScalarValue::try_from_array(&sorted, place)
    }

    fn size(&self) -> usize {
        let values = self.values.iter().map(Array::get_array_memory_size);
        size_of_val(self) + values.sum::<usize>()
    }
}

/// Where the first value is that has such a part of some values up to it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is the place of a value that is in memory"
)]
fn place(part: f64, values: usize) -> usize {
    ((part * values as f64).ceil() as usize).saturating_sub(1).min(values - 1)
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn the_first_value_with_such_a_part_up_to_it_is_found() {
        for (part, values, expected) in
            [(0.0, 4, 0), (0.25, 4, 0), (0.26, 4, 1), (0.5, 4, 1), (0.5, 5, 2), (1.0, 4, 3)]
        {
            assert_eq!(place(part, values), expected, "{part} of {values}");
        }
    }
}
