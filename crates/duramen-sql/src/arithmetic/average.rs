//! `avg` of decimals, which is rounded to the nearest number, and of intervals.
//!
//! `DataFusion` cuts off the digits that an average of decimals has no room for, and has none of
//! intervals. What it counts and adds up of decimals is as it is; only the last step is another.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Decimal256Array, UInt64Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DECIMAL256_MAX_PRECISION, DataType, Decimal256Type, DecimalType, FieldRef, UInt64Type, i256,
};
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::functions_aggregate::average::Avg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Coercion, Documentation, EmitTo, GroupsAccumulator,
    ReversedUDAF, Signature, TypeSignature, TypeSignatureClass,
};

use super::{beyond, quotient};
use crate::intervals::{AddedIntervals, INTERVAL, IntervalsTo};

/// `DataFusion`'s `avg` with another end for decimals, and one of intervals.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Average {
    inner: Avg,
    signature: Signature,
}

impl Default for Average {
    fn default() -> Self {
        let inner = Avg::new();
        let interval = Coercion::new_exact(TypeSignatureClass::Interval);
        let mut signature = inner.signature().clone();
        if let TypeSignature::OneOf(kinds) = &mut signature.type_signature {
            kinds.push(TypeSignature::Coercible(vec![interval]));
        }
        Self { inner, signature }
    }
}

fn is_interval(fields: &[FieldRef]) -> bool {
    fields.iter().any(|field| matches!(field.data_type(), DataType::Interval(_)))
}

impl AggregateUDFImpl for Average {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match kinds {
            [DataType::Interval(_)] => Ok(INTERVAL),
            kinds => self.inner.return_type(kinds),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if is_interval(args.expr_fields) {
            if args.is_distinct {
                return plan_err!(
                    "avg(DISTINCT ..) of intervals: take them by a subquery with DISTINCT"
                );
            }
            return Ok(Box::new(AddedIntervals::new(IntervalsTo::Average)));
        }
        let Some(end) = End::of(&args) else { return self.inner.accumulator(args) };
        Ok(Box::new(Rounded { inner: self.inner.accumulator(args)?, end }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if is_interval(args.input_fields) {
            return Ok(AddedIntervals::state_fields(args.name));
        }
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !is_interval(args.expr_fields) && self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let Some(end) = End::of(&args) else { return self.inner.create_groups_accumulator(args) };
        Ok(Box::new(Rounded { inner: self.inner.create_groups_accumulator(args)?, end }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_expr()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// What adds decimals up, with the last step.
#[derive(Debug)]
struct Rounded<A> {
    inner: A,
    end: End,
}

/// What makes averages of sums.
#[derive(Debug)]
struct End {
    /// What it is the average of, for people.
    name: String,
    is_distinct: bool,
    /// How many digits sums have behind the point.
    scale: i8,
    kind: DataType,
}

impl End {
    /// None if it is no average of decimals.
    fn of(args: &AccumulatorArgs<'_>) -> Option<Self> {
        let [of] = args.expr_fields else { return None };
        let (DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) = *of.data_type()
        else {
            return None;
        };
        let (name, kind) = (args.name.to_owned(), args.return_type().clone());
        Some(Self { name, is_distinct: args.is_distinct, scale, kind })
    }

    /// The averages of what a state has.
    fn averages(&self, state: &[ArrayRef]) -> Result<ArrayRef> {
        let (counts, sums) = match state {
            [lists] if self.is_distinct => counted(lists)?,
            [counts, sums] => (counts.as_primitive::<UInt64Type>().clone(), wide(sums)?),
            _ => return internal_err!("an average is of a count and a sum"),
        };
        let averages = sums.iter().zip(&counts).map(|pair| match pair {
            (Some(sum), Some(count)) if count > 0 => self.average(sum, count).map(Some),
            _ => Ok(None),
        });
        let averages = averages.collect::<Result<Decimal256Array>>()?;
        Ok(match self.kind {
            DataType::Decimal128(precision, scale) => {
                let narrow = averages.iter().map(|of| of.and_then(i256::to_i128));
                let narrow: Decimal128Array = narrow.collect();
                Arc::new(narrow.with_precision_and_scale(precision, scale)?)
            }
            _ => Arc::new(averages.with_data_type(self.kind.clone())),
        })
    }

    fn average(&self, sum: i256, count: u64) -> Result<i256> {
        let (DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale)) =
            self.kind
        else {
            return internal_err!("an average of decimals is one");
        };
        let digits = u32::try_from(scale - self.scale).unwrap_or_default();
        quotient::scaled(sum, digits)
            .and_then(|sum| quotient::rounded(sum, i256::from_i128(count.into())))
            .ok()
            .filter(|of| Decimal256Type::is_valid_decimal_precision(*of, precision))
            .ok_or_else(|| beyond(&self.name, "it has too many digits", &self.kind))
    }
}

/// Sums as wide as they can be.
fn wide(sums: &ArrayRef) -> Result<Decimal256Array> {
    let (DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) = *sums.data_type()
    else {
        return internal_err!("a sum of decimals is one");
    };
    let kind = DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale);
    Ok(cast(sums, &kind)?.as_primitive::<Decimal256Type>().clone())
}

/// How many values lists have, and what these come to.
fn counted(lists: &ArrayRef) -> Result<(UInt64Array, Decimal256Array)> {
    let counted = lists.as_list::<i32>().iter().map(|values| {
        let Some(values) = values else { return Ok((0, i256::ZERO)) };
        let values = wide(&values)?;
        let sum = values.iter().flatten().fold(i256::ZERO, i256::wrapping_add);
        Ok(((values.len() - values.null_count()) as u64, sum))
    });
    let (counts, sums): (Vec<u64>, Vec<i256>) =
        counted.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    Ok((counts.into(), sums.into()))
}

impl Accumulator for Rounded<Box<dyn Accumulator>> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.inner.state()?;
        let state = state.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
        ScalarValue::try_from_array(&self.end.averages(&state)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.end.name.capacity() + self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

impl GroupsAccumulator for Rounded<Box<dyn GroupsAccumulator>> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_all: usize,
    ) -> Result<()> {
        self.inner.update_batch(values, groups, filter, groups_all)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.end.averages(&self.inner.state(emit_to)?)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        groups_all: usize,
    ) -> Result<()> {
        self.inner.merge_batch(states, groups, groups_all)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.end.name.capacity() + self.inner.size()
    }
}
