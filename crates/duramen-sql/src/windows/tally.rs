//! Lists and texts of windows, which are counted as they are made.
//!
//! Each row has a list of its own, and all of those of a partition, or of a batch where a window
//! has an end, are held beside each other. `DataFusion` counts none of them (55): a list of each of
//! a million rows, for each of these, ended the process.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, resources_datafusion_err};
use datafusion::logical_expr::{Accumulator, WindowFrame};

/// The functions whose values are as long as the windows that they are of.
const LONG: [&str; 2] = ["array_agg", "string_agg"];

/// What a value takes that is not in another place.
const VALUE_BYTES: usize = 16;

/// How much the values of a function over windows may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Bound {
    bytes: usize,
    /// After how many rows their values are given away, if windows have an end on both sides.
    rows: Option<usize>,
}

impl Bound {
    /// Of a function, if its values are to be counted.
    pub(super) fn of(name: &str, frame: &WindowFrame, most: Bound) -> Option<Self> {
        let is_open = frame.start_bound.is_unbounded() || frame.end_bound.is_unbounded();
        LONG.contains(&name).then_some(Self { rows: most.rows.filter(|_| !is_open), ..most })
    }

    pub(super) fn new(bytes: usize, rows: usize) -> Self {
        Self { bytes, rows: Some(rows) }
    }

    pub(super) fn tally(self, inner: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
        Box::new(Tally { inner, most: self, added: 0, given: 0, bytes: 0 })
    }
}

#[derive(Debug)]
struct Tally {
    inner: Box<dyn Accumulator>,
    most: Bound,
    /// Rows that came since there was a value: it is that of all of them.
    added: usize,
    /// Values that were given, and what they take.
    given: usize,
    bytes: usize,
}

/// About what a value takes.
fn bytes_of(value: &ScalarValue) -> usize {
    match value {
        ScalarValue::List(list) => list.values().len() * width(list.values().data_type()),
        ScalarValue::Utf8(Some(text))
        | ScalarValue::Utf8View(Some(text))
        | ScalarValue::LargeUtf8(Some(text)) => VALUE_BYTES + text.len(),
        _ => VALUE_BYTES,
    }
}

/// What an element of a list takes: its text is that of the row which it is of.
fn width(kind: &DataType) -> usize {
    match kind {
        DataType::Struct(fields) => fields.iter().map(|field| width(field.data_type())).sum(),
        kind => kind.primitive_width().unwrap_or(VALUE_BYTES),
    }
}

impl Tally {
    fn count(&mut self, value: &ScalarValue) -> Result<()> {
        if self.most.rows.is_some_and(|rows| self.given >= rows) {
            (self.given, self.bytes) = (0, 0);
        }
        let times = std::mem::take(&mut self.added).max(1);
        self.given += times;
        self.bytes = self.bytes.saturating_add(bytes_of(value).saturating_mul(times));
        if self.bytes > self.most.bytes {
            return Err(resources_datafusion_err!(
                "the lists or texts of windows take more than {} bytes together: group the rows, \
                 or give windows fewer of them",
                self.most.bytes
            ));
        }
        Ok(())
    }
}

impl Accumulator for Tally {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.added += values.first().map_or(0, Array::len);
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.inner.evaluate()?;
        self.count(&value)?;
        Ok(value)
    }

    fn size(&self) -> usize {
        self.inner.size()
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
