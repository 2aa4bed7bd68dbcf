//! `sum` whose sums of integers and decimals do not wrap around.
//!
//! Integers are added up with 128 bits, and decimals of 38 digits with 256, so that only what all
//! of them come to has to be in range, in whatever order they come.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray,
};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type,
    DecimalType, Field, FieldRef, Int64Type, UInt64Type, i256,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, EmitTo, Expr, GroupsAccumulator, Operator,
    ReversedUDAF, SetMonotonicity, Signature,
};

use duramen::{Error, ErrorKind};

use super::beyond;
use crate::failure::external;
use crate::intervals::{AddedIntervals, INTERVAL, IntervalsTo};

mod distinct;

use distinct::DistinctSum;

/// The type that integers are added up in.
const WIDE: DataType = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);

/// Decimals of more digits are not added up: a sum has ten more, and none has more than 76.
pub(super) const SUMMED_DIGITS_MAX: u8 = 66;

/// `DataFusion`'s `sum`, of wide numbers in place of integers and decimals.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CheckedSum(Sum);

/// Adds wide numbers up for others.
#[derive(Debug)]
struct Wide<A> {
    inner: A,
    /// What it is the sum of, for people.
    name: String,
    kind: DataType,
}

impl<A> Wide<A> {
    fn of(inner: A, name: &str, kind: &DataType) -> Self {
        // Beside distinct ones sums are taken apart, and have names that nobody wrote.
        let name = if name.contains("alias") { "a sum" } else { name };
        Self { inner, name: name.to_owned(), kind: kind.clone() }
    }

    fn narrow<T: ArrowPrimitiveType>(&self, sums: &dyn Array) -> Result<ArrayRef>
    where
        T::Native: TryFrom<i128>,
    {
        let narrow = |sum| {
            T::Native::try_from(sum)
                .map_err(|_| beyond(&self.name, &format!("it is {sum}"), &self.kind))
        };
        let sums = sums.as_primitive::<Decimal128Type>();
        Ok(Arc::new(sums.try_unary::<_, T, _>(narrow)?))
    }

    fn narrow_decimals(&self, sums: &dyn Array, scale: i8) -> Result<ArrayRef> {
        let narrow = |sum| self.narrow_decimal(sum, scale);
        let sums = sums.as_primitive::<Decimal256Type>();
        let sums = sums.try_unary::<_, Decimal128Type, _>(narrow)?;
        Ok(Arc::new(sums.with_data_type(self.kind.clone())))
    }

    fn narrow_decimal(&self, sum: i256, scale: i8) -> Result<i128> {
        let fits =
            |sum: &i128| Decimal128Type::is_valid_decimal_precision(*sum, DECIMAL128_MAX_PRECISION);
        sum.to_i128().filter(fits).ok_or_else(|| {
            let sum = Decimal256Type::format_decimal(sum, DECIMAL256_MAX_PRECISION, scale);
            beyond(&self.name, &format!("it is {sum}"), &self.kind)
        })
    }
}

/// The type in which sums of a type are added up; none if they are in their own.
fn wide(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Int64 | DataType::UInt64 => Some(WIDE),
        // Sums of fewer digits have room for those of ten billion rows.
        DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale) => {
            Some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale))
        }
        _ => None,
    }
}

/// Whether a sum is one of intervals, the parts of which would wrap around. Distinct ones are taken
/// apart before.
fn is_of_intervals(kind: &DataType, is_distinct: bool) -> bool {
    *kind == INTERVAL && !is_distinct
}

fn wide_field(field: &FieldRef, wide: DataType) -> FieldRef {
    Arc::new(Field::new(field.name(), wide, field.is_nullable()))
}

fn wide_args<'a>(args: &AccumulatorArgs<'a>, wide: DataType) -> AccumulatorArgs<'a> {
    AccumulatorArgs {
        return_field: wide_field(&args.return_field, wide),
        schema: args.schema,
        ignore_nulls: args.ignore_nulls,
        order_bys: args.order_bys,
        is_reversed: args.is_reversed,
        name: args.name,
        is_distinct: args.is_distinct,
        exprs: args.exprs,
        expr_fields: args.expr_fields,
    }
}

fn widen(values: &[ArrayRef]) -> Result<[ArrayRef; 1]> {
    let [values] = values else { return internal_err!("sum is of one column") };
    let wide: PrimitiveArray<Decimal128Type> = match values.data_type() {
        DataType::Int64 => values.as_primitive::<Int64Type>().unary(i128::from),
        DataType::UInt64 => values.as_primitive::<UInt64Type>().unary(i128::from),
        DataType::Decimal128(_, scale) => {
            let values = values.as_primitive::<Decimal128Type>();
            let wide = values.unary::<_, Decimal256Type>(i256::from_i128);
            let kind = DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale);
            return Ok([Arc::new(wide.with_data_type(kind))]);
        }
        other => return internal_err!("a wide sum is none of {other}"),
    };
    Ok([Arc::new(wide.with_data_type(WIDE))])
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        if let [DataType::Decimal256(digits, scale)] = kinds
            && *digits > SUMMED_DIGITS_MAX
        {
            let message = format!(
                "this SQL is not supported: a sum of DECIMAL({digits}, {scale}), which may have no \
                 room: cast what is added up to DECIMAL({SUMMED_DIGITS_MAX}, {scale}) or less"
            );
            return Err(external(Error::new(ErrorKind::Unsupported, message)));
        }
        self.0.return_type(kinds)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if is_of_intervals(args.return_type(), args.is_distinct) {
            return Ok(Box::new(AddedIntervals::new(IntervalsTo::Sum)));
        }
        let Some(wide) = wide(args.return_type()) else { return self.0.accumulator(args) };
        let inner = self.0.accumulator(wide_args(&args, wide))?;
        Ok(Box::new(Wide::of(inner, args.name, args.return_type())))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if is_of_intervals(args.return_type(), args.is_distinct) {
            return Ok(AddedIntervals::state_fields(args.name));
        }
        let Some(wide) = wide(args.return_type()) else { return self.0.state_fields(args) };
        let return_field = wide_field(&args.return_field, wide);
        self.0.state_fields(StateFieldsArgs { return_field, ..args })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        *args.return_type() != INTERVAL && self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let Some(wide) = wide(args.return_type()) else {
            return self.0.create_groups_accumulator(args);
        };
        let inner = self.0.create_groups_accumulator(wide_args(&args, wide))?;
        Ok(Box::new(Wide::of(inner, args.name, args.return_type())))
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        if is_of_intervals(args.return_type(), args.is_distinct) {
            return self.accumulator(args);
        }
        let Some(wide) = wide(args.return_type()) else {
            return self.0.create_sliding_accumulator(args);
        };
        if args.is_distinct && wide == WIDE {
            let inner: Box<dyn Accumulator> = Box::<DistinctSum>::default();
            return Ok(Box::new(Wide::of(inner, args.name, args.return_type())));
        }
        let inner = self.0.create_sliding_accumulator(wide_args(&args, wide))?;
        Ok(Box::new(Wide::of(inner, args.name, args.return_type())))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.0.order_sensitivity()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }

    fn set_monotonicity(&self, kind: &DataType) -> SetMonotonicity {
        self.0.set_monotonicity(kind)
    }

    fn simplify_expr_op_literal(
        &self,
        function: &AggregateFunction,
        of: &Expr,
        operator: Operator,
        literal: &Expr,
        is_left: bool,
    ) -> Result<Option<Expr>> {
        self.0.simplify_expr_op_literal(function, of, operator, literal, is_left)
    }
}

impl Accumulator for Wide<Box<dyn Accumulator>> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(&widen(values)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let beyond = |sum: i128| beyond(&self.name, &format!("it is {sum}"), &self.kind);
        Ok(match (&self.kind, self.inner.evaluate()?) {
            (DataType::UInt64, ScalarValue::Decimal128(sum, ..)) => {
                let narrow = |sum| u64::try_from(sum).map_err(|_| beyond(sum));
                ScalarValue::UInt64(sum.map(narrow).transpose()?)
            }
            (DataType::Int64, ScalarValue::Decimal128(sum, ..)) => {
                let narrow = |sum| i64::try_from(sum).map_err(|_| beyond(sum));
                ScalarValue::Int64(sum.map(narrow).transpose()?)
            }
            (DataType::Decimal128(precision, scale), ScalarValue::Decimal256(sum, ..)) => {
                let narrow = |sum| self.narrow_decimal(sum, *scale);
                ScalarValue::Decimal128(sum.map(narrow).transpose()?, *precision, *scale)
            }
            _ => return internal_err!("a wide sum is wide"),
        })
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.name.capacity() + self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(&widen(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

impl GroupsAccumulator for Wide<Box<dyn GroupsAccumulator>> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_all: usize,
    ) -> Result<()> {
        self.inner.update_batch(&widen(values)?, groups, filter, groups_all)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = self.inner.evaluate(emit_to)?;
        match self.kind {
            DataType::UInt64 => self.narrow::<UInt64Type>(&sums),
            DataType::Decimal128(_, scale) => self.narrow_decimals(&sums, scale),
            _ => self.narrow::<Int64Type>(&sums),
        }
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
        self.inner.convert_to_state(&widen(values)?, filter)
    }

    fn size(&self) -> usize {
        self.name.capacity() + self.inner.size()
    }
}
