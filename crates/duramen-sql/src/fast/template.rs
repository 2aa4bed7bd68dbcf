//! A plan of the engine for all queries that differ in their literals only.

use datafusion::arrow::datatypes::SchemaRef;
use duramen::{AggregatePlan, RangeOfInt, RowFilter, ValueTest};

use super::literals::{Literal, Place};
use super::output::Output;

/// A plan in which literals stand in for others.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pub(super) plan: AggregatePlan,
    pub(super) outputs: Vec<Output>,
    pub(super) schema: SchemaRef,
}

/// Puts something in the place of each literal.
struct Binding<'l> {
    /// None while it is looked for those that there are.
    literals: Option<&'l [Literal]>,
    found: Vec<usize>,
}

impl Template {
    /// Whether each literal of a query is in it once: one that is not was used in making the plan,
    /// which holds for no other.
    pub(super) fn has_all(&self, literals: usize) -> bool {
        let mut binding = Binding { literals: None, found: Vec::new() };
        if binding.filter(&self.plan.filter).is_none() {
            return false;
        }
        binding.found.sort_unstable();
        binding.found.iter().copied().eq(0..literals)
    }

    /// The plan with the literals of a query; none if it does not hold for them.
    pub(super) fn bind(&self, literals: &[Literal]) -> Option<AggregatePlan> {
        let mut binding = Binding { literals: Some(literals), found: Vec::new() };
        let filter = binding.filter(&self.plan.filter)?;
        let AggregatePlan { columns, keys, measures, .. } = &self.plan;
        let (columns, keys, measures) = (columns.clone(), keys.clone(), measures.clone());
        Some(AggregatePlan { columns, filter, keys, measures })
    }
}

impl Binding<'_> {
    fn filter(&mut self, filter: &RowFilter) -> Option<RowFilter> {
        let parts = |binding: &mut Self, parts: &[RowFilter]| {
            parts.iter().map(|part| binding.filter(part)).collect::<Option<Vec<_>>>()
        };
        Some(match filter {
            RowFilter::All(all) => RowFilter::All(parts(self, all)?),
            RowFilter::Any(any) => RowFilter::Any(parts(self, any)?),
            RowFilter::Column(column, test) => RowFilter::Column(*column, self.test(test)?),
        })
    }

    fn test(&mut self, test: &ValueTest) -> Option<ValueTest> {
        Some(match test {
            ValueTest::IsMissing | ValueTest::IsThere | ValueTest::Bool(_) => test.clone(),
            ValueTest::Int { ranges, is_inside } => {
                let ranges =
                    ranges.iter().map(|range| self.range(*range)).collect::<Option<_>>()?;
                ValueTest::Int { ranges, is_inside: *is_inside }
            }
            ValueTest::Float(comparison, bits) => {
                let place = Place::of_float(f64::from_bits(*bits))?;
                let number = self.note(place, |literals| place.integer(literals), 0)?;
                #[expect(clippy::cast_precision_loss, reason = "as the query would be planned")]
                let number = number as f64;
                ValueTest::Float(*comparison, number.to_bits())
            }
            ValueTest::Text(comparison, of) => ValueTest::Text(*comparison, self.text(of)?),
            ValueTest::TextIn { texts, is_inside } => {
                let texts = texts.iter().map(|text| self.text(text)).collect::<Option<_>>()?;
                ValueTest::TextIn { texts, is_inside: *is_inside }
            }
        })
    }

    fn range(&mut self, range: RangeOfInt) -> Option<RangeOfInt> {
        let RangeOfInt { low, high } = range;
        let (is_from_least, is_to_most) = (low == i64::MIN, high == i64::MAX);
        if low == high {
            let place = Place::of_integer(low)?;
            let value = self.note(place, |literals| place.integer(literals), 0)?;
            return Some(RangeOfInt { low: value, high: value });
        }
        let (value, is_low) = match (is_from_least, is_to_most) {
            (true, false) => (high, false),
            (false, true) => (low, true),
            _ => return None,
        };
        let place = Place::of_integer(value)?;
        let value = self.note(place, |literals| place.integer(literals), 0)?;
        Some(if is_low { RangeOfInt { low: value, high } } else { RangeOfInt { low, high: value } })
    }

    fn text(&mut self, text: &str) -> Option<Box<str>> {
        let place = Place::of_text(text)?;
        self.note(place, |literals| place.text(literals).map(Into::into), Box::default())
    }

    /// What is in a place, or something while none is known.
    fn note<T>(
        &mut self,
        place: Place,
        value: impl FnOnce(&[Literal]) -> Option<T>,
        unknown: T,
    ) -> Option<T> {
        self.found.push(place.index);
        match self.literals {
            Some(literals) => value(literals),
            None => Some(unknown),
        }
    }
}
