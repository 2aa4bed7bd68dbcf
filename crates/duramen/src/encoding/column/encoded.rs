//! All states of a column as they lie in its cell, where that is in a form to calculate with.

use super::{Column, tag};
use crate::encoding::integers::Values;
use crate::state::Datum;

/// The states of the slots of a column; nothing of them is copied.
#[derive(Debug)]
pub(crate) enum Encoded<'a> {
    /// One for all.
    Same(Datum<'a>),
    Integers(Values<'a>),
    /// Which of some states each slot has: some have none that there is if the cell is damaged.
    Coded(Values<'a>, Vec<Datum<'a>>),
    /// Which of two states each slot has: a bit each, lowest first.
    Either(&'a [u8], [Datum<'a>; 2]),
    /// Various: read them one by one.
    Mixed,
}

impl Column {
    /// Whether a value may stand elsewhere.
    pub(crate) fn has_apart(&self) -> bool {
        let tags = self.numbers.as_ref().map_or(&[][..], |numbers| numbers.tags.list(&self.cell));
        tags.iter().any(|tag| tag::is_apart(*tag))
    }

    /// The states of all slots.
    pub(crate) fn encoded(&self) -> Encoded<'_> {
        let found = match (&self.bare, &self.numbers, &self.texts) {
            (Some(_), None, None) => self.encoded_bare(),
            (None, Some(_), None) => self.encoded_numbers(),
            (None, None, Some(_)) => self.encoded_texts(),
            _ => None,
        };
        found.unwrap_or(Encoded::Mixed)
    }

    fn encoded_bare(&self) -> Option<Encoded<'_>> {
        let tags = self.bare.as_ref()?;
        if let Some(tag) = tags.constant() {
            return Some(Encoded::Same(tag::bare(tag)?));
        }
        let ([first, second], bits) = tags.pair(&self.cell)?;
        Some(Encoded::Either(bits, [tag::bare(first)?, tag::bare(second)?]))
    }

    fn encoded_numbers(&self) -> Option<Encoded<'_>> {
        let numbers = self.numbers.as_ref()?;
        let tag = numbers.tags.constant()?;
        let is_one = numbers.values.line().is_some_and(|(_, step)| step == 0);
        if is_one && numbers.counts.is_none() {
            return self.read(0).map(Encoded::Same);
        }
        (tag::scale(tag) == Some(0)).then(|| Encoded::Integers(numbers.values.values(&self.cell)))
    }

    fn encoded_texts(&self) -> Option<Encoded<'_>> {
        let texts = self.texts.as_ref()?;
        let tag = texts.tags.constant()?;
        let Some((codes, distinct)) = texts.values.dictionary(&self.cell) else {
            let is_one = texts.values.values(&self.cell).is_none();
            return if is_one { self.read(0).map(Encoded::Same) } else { None };
        };
        let states = distinct.into_iter().map(|text| tag::text(tag, text));
        Some(Encoded::Coded(codes.values(&self.cell), states.collect::<Option<_>>()?))
    }
}
