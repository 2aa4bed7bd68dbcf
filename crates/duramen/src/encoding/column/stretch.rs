//! All states of a column at once, in the form that takes the least time to go through.

use super::{Column, tag};
use crate::state::Datum;

/// The states of the slots of a column.
#[derive(Debug)]
pub(crate) enum Stretch<'a> {
    /// One for all.
    Same(Datum<'a>),
    Integers(Vec<i64>),
    /// Few states, and which of them each slot has.
    Coded(Vec<i64>, Vec<Datum<'a>>),
    /// Various: read them one by one.
    Mixed,
}

impl Column {
    /// The states of all slots. What does not decode is left to reading slot by slot, which says
    /// what is wrong.
    pub(crate) fn stretch(&self) -> Stretch<'_> {
        let found = match (&self.bare, &self.numbers, &self.texts) {
            (Some(_), None, None) => self.bare_stretch(),
            (None, Some(_), None) => self.number_stretch(),
            (None, None, Some(_)) => self.text_stretch(),
            _ => None,
        };
        found.unwrap_or(Stretch::Mixed)
    }

    fn bare_stretch(&self) -> Option<Stretch<'_>> {
        let tags = self.bare.as_ref()?;
        if let Some(tag) = tags.constant() {
            return Some(Stretch::Same(tag::bare(tag)?));
        }
        let states = (0..).map_while(tag::bare).collect::<Vec<_>>();
        let code = |slot| tags.get(&self.cell, slot).filter(|tag| usize::from(*tag) < states.len());
        let codes = (0..self.len()).map(|slot| code(slot).map(i64::from)).collect::<Option<_>>()?;
        Some(Stretch::Coded(codes, states))
    }

    fn number_stretch(&self) -> Option<Stretch<'_>> {
        let numbers = self.numbers.as_ref()?;
        let tag = numbers.tags.constant()?;
        let is_one = numbers.values.line().is_some_and(|(_, step)| step == 0);
        if is_one && numbers.counts.is_none() {
            return self.read(0).map(Stretch::Same);
        }
        if tag::scale(tag) != Some(0) {
            return None;
        }
        let mut values = Vec::with_capacity(self.len());
        numbers.values.decode_into(&self.cell, &mut values);
        (values.len() == self.len()).then_some(Stretch::Integers(values))
    }

    fn text_stretch(&self) -> Option<Stretch<'_>> {
        let texts = self.texts.as_ref()?;
        let tag = texts.tags.constant()?;
        let (codes, distinct) = texts.values.coded(&self.cell)?;
        let states = distinct.into_iter().map(|text| tag::text(tag, text));
        Some(Stretch::Coded(codes, states.collect::<Option<_>>()?))
    }
}
