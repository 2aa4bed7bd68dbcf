//! All states of a column as they lie in its cell, where that is in a form to calculate with.

use bytes::Bytes;

use super::{Column, tag};
use crate::encoding::integers::{Values, ValuesCell, part_of};
use crate::encoding::tags::Tags;
use crate::state::Datum;

/// The states of the slots of a column; nothing of them is copied.
#[derive(Debug)]
pub(crate) enum Encoded<'a> {
    /// One for all.
    Same(Datum<'a>),
    /// Integers or, of a scale above 0, the mantissas of decimals of one scale.
    Numbers(Values<'a>, u8),
    /// Which of some states each slot has.
    Coded(Values<'a>, Vec<Datum<'a>>),
    /// Which of two states each slot has: a bit each, lowest first.
    Either(&'a [u8], [Datum<'a>; 2]),
    /// Various: read them one by one.
    Mixed,
    /// The cell is damaged: reading slot by slot says where.
    Unreadable,
}

impl Column {
    /// Whether a value may stand elsewhere.
    pub(crate) fn has_apart(&self) -> bool {
        let numbers = self.numbers.iter();
        numbers.flat_map(|numbers| numbers.tags.distinct(&self.cell)).any(tag::is_apart)
    }

    /// A state of each form that the states of slots have; what it carries is nobody's.
    pub(crate) fn forms(&self) -> impl Iterator<Item = Datum<'static>> {
        let bare = distinct(self.bare.as_ref(), &self.cell).filter_map(tag::bare);
        let numbers = self.numbers.as_ref().map(|numbers| &numbers.tags);
        let numbers = distinct(numbers, &self.cell);
        let numbers = numbers.filter_map(|tag| tag::number(tag, 0, || Some(0)));
        let texts = distinct(self.texts.as_ref().map(|texts| &texts.tags), &self.cell);
        bare.chain(numbers).chain(texts.filter_map(|tag| tag::text(tag, b"")))
    }

    /// Numbers of it, which [`encoded`](Self::encoded) gave.
    pub(crate) fn values_cell(&self, values: &Values<'_>) -> ValuesCell {
        ValuesCell::of(values, &self.cell)
    }

    /// Bytes of it, which [`encoded`](Self::encoded) gave.
    pub(crate) fn part(&self, bytes: &[u8]) -> Bytes {
        part_of(&self.cell, bytes)
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
        Some(Encoded::Numbers(numbers.values.values(&self.cell), tag::scale(tag)?))
    }

    fn encoded_texts(&self) -> Option<Encoded<'_>> {
        let texts = self.texts.as_ref()?;
        let tag = texts.tags.constant()?;
        let Some((codes, distinct)) = texts.values.dictionary(&self.cell) else {
            let is_one = texts.values.values(&self.cell).is_none();
            return if is_one { self.read(0).map(Encoded::Same) } else { None };
        };
        let codes = codes.values(&self.cell);
        if !*self.are_codes_known.get_or_init(|| codes.are_below(distinct.len())) {
            return Some(Encoded::Unreadable);
        }
        let mut states = Vec::with_capacity(distinct.len());
        for text in distinct {
            states.push(tag::text(tag, text)?);
        }
        Some(Encoded::Coded(codes, states))
    }
}

fn distinct<'a>(tags: Option<&'a Tags>, cell: &'a [u8]) -> impl Iterator<Item = u8> + use<'a> {
    tags.into_iter().flat_map(|tags| tags.distinct(cell))
}
