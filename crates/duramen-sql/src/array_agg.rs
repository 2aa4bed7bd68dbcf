//! `array_agg` that counts the texts it holds.
//!
//! `DataFusion`'s counts 16 bytes for each text, wherever the rest of it is, so that the memory
//! that a query may take does not bound it. What keeps rows in an order or once counts all of them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, GenericByteViewArray};
use datafusion::arrow::datatypes::{ByteViewType, DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator,
    ReversedUDAF, Signature,
};
use datafusion::prelude::SessionContext;

/// Texts up to so many bytes have no bytes elsewhere.
const INLINE_BYTES_MAX: u32 = 12;

/// Makes it known to a query.
pub(crate) fn register(context: &SessionContext) {
    context.register_udaf(CountedArrayAgg(array_agg_udaf().as_ref().clone()).into());
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CountedArrayAgg(AggregateUDF);

/// Holds arrays, and counts the bytes of texts in them.
#[derive(Debug)]
struct Counted<A> {
    inner: A,
    text_bytes: usize,
}

impl<A> Counted<A> {
    fn of(inner: A) -> Self {
        Self { inner, text_bytes: 0 }
    }

    fn add(&mut self, arrays: &[ArrayRef]) {
        self.text_bytes += text_bytes(arrays);
    }

    fn remove(&mut self, arrays: &[ArrayRef]) {
        self.text_bytes = self.text_bytes.saturating_sub(text_bytes(arrays));
    }
}

fn text_bytes(arrays: &[ArrayRef]) -> usize {
    arrays.iter().map(|array| text_bytes_of(array)).sum()
}

/// The bytes of texts that are not within the arrays themselves.
fn text_bytes_of(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => view_bytes(array.as_string_view()),
        DataType::BinaryView => view_bytes(array.as_binary_view()),
        DataType::Struct(_) => text_bytes(array.as_struct().columns()),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let (offsets, values) = (list.value_offsets(), list.values());
            match offsets {
                [begin, .., end] if begin < end => {
                    let place = |offset: i32| usize::try_from(offset).unwrap_or_default();
                    let (begin, end) = (place(*begin), place(*end));
                    text_bytes_of(&values.slice(begin, end - begin))
                }
                _ => 0,
            }
        }
        _ => 0,
    }
}

fn view_bytes<T: ByteViewType + ?Sized>(array: &GenericByteViewArray<T>) -> usize {
    array.lengths().filter(|len| *len > INLINE_BYTES_MAX).map(|len| len as usize).sum()
}

/// Whether rows are kept as they come, which are not counted.
fn is_plain(args: &AccumulatorArgs<'_>) -> bool {
    !args.is_distinct && args.order_bys.is_empty()
}

impl AggregateUDFImpl for CountedArrayAgg {
    fn name(&self) -> &str {
        self.0.name()
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

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.0.order_sensitivity()
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        is_beneficial: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let ordered = self.0.clone().with_beneficial_ordering(is_beneficial)?;
        Ok(ordered.map(|ordered| Arc::new(Self(ordered)) as _))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let is_plain = is_plain(&args);
        let inner = self.0.accumulator(args)?;
        Ok(if is_plain { Box::new(Counted::of(inner)) } else { inner })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Counted::of(self.0.create_groups_accumulator(args)?)))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_udf()
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.0.supports_null_handling_clause()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}

impl Accumulator for Counted<Box<dyn Accumulator>> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values);
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        self.text_bytes + self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.add(states);
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.remove(values);
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

impl GroupsAccumulator for Counted<Box<dyn GroupsAccumulator>> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_all: usize,
    ) -> Result<()> {
        self.add(values);
        self.inner.update_batch(values, groups, filter, groups_all)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let emitted = self.inner.evaluate(emit_to)?;
        self.emitted(emit_to, std::slice::from_ref(&emitted));
        Ok(emitted)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let emitted = self.inner.state(emit_to)?;
        self.emitted(emit_to, &emitted);
        Ok(emitted)
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        groups_all: usize,
    ) -> Result<()> {
        self.add(states);
        self.inner.merge_batch(states, groups, groups_all)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, filter)
    }

    /// What goes to a file is made beside what is held, and put in order beside that.
    fn size(&self) -> usize {
        3 * (self.text_bytes + self.inner.size())
    }
}

impl Counted<Box<dyn GroupsAccumulator>> {
    fn emitted(&mut self, emit_to: EmitTo, arrays: &[ArrayRef]) {
        match emit_to {
            EmitTo::All => self.text_bytes = 0,
            EmitTo::First(_) => self.remove(arrays),
        }
    }
}
