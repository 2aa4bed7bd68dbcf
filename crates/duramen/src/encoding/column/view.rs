//! A column made ready for many reads: how its states are kept is found out once.

use super::{Column, tag};
use crate::encoding::integers::Values;
use crate::encoding::reader::unreadable;
use crate::encoding::texts::TextValues;
use crate::error::Result;
use crate::state::Datum;

/// A column of which many states are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnView<'a> {
    column: &'a Column,
    form: Form<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Form<'a> {
    /// One for all.
    Same(Datum<'a>),
    /// Numbers of one tag, none of them an extent.
    Numbers(u8, Values<'a>),
    /// Bytes of one tag.
    Texts(u8, TextValues<'a>),
    /// Various: each is looked for by itself.
    Mixed,
}

impl Column {
    /// The column for many reads. What does not decode is left to the reads, which say what is
    /// wrong.
    pub(crate) fn view(&self) -> ColumnView<'_> {
        let form = match (&self.bare, &self.numbers, &self.texts) {
            (Some(bare), None, None) => bare.constant().and_then(tag::bare).map(Form::Same),
            (None, Some(numbers), None) => {
                let tag = numbers.tags.constant().filter(|_| numbers.counts.is_none());
                tag.map(|tag| Form::Numbers(tag, numbers.values.values(&self.cell)))
            }
            (None, None, Some(texts)) => {
                let tag = texts.tags.constant();
                tag.and_then(|tag| match texts.values.values(&self.cell) {
                    Some(values) => Some(Form::Texts(tag, values)),
                    None => self.read(0).map(Form::Same),
                })
            }
            _ => None,
        };
        ColumnView { column: self, form: form.unwrap_or(Form::Mixed) }
    }
}

impl<'a> ColumnView<'a> {
    /// The state of slot `slot`.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Result<Datum<'a>> {
        let found = match &self.form {
            Form::Same(state) => (slot < self.column.len()).then_some(*state),
            Form::Numbers(tag, values) => {
                values.get(slot).and_then(|value| tag::number(*tag, value, || None))
            }
            Form::Texts(tag, values) => values.get(slot).and_then(|text| tag::text(*tag, text)),
            Form::Mixed => self.column.read(slot),
        };
        found.ok_or_else(|| unreadable(slot, self.column.len(), "slot"))
    }

    /// Takes the states of slots from `first` on.
    pub(crate) fn fill(&self, first: usize, states: &mut [Datum<'a>]) -> Result<()> {
        let slots = first..first.saturating_add(states.len());
        let mut empty = states.iter_mut();
        let mut put = |state: Option<Datum<'a>>| match (empty.next(), state) {
            (Some(empty), Some(state)) => {
                *empty = state;
                true
            }
            _ => false,
        };
        let is_filled = match &self.form {
            Form::Numbers(tag, values) => {
                values.each(slots, |value| put(tag::number(*tag, value, || None)))
            }
            Form::Texts(tag, values) => values.each(slots, |text| put(tag::text(*tag, text))),
            Form::Same(_) | Form::Mixed => false,
        };
        if !is_filled {
            // One by one, which says what is wrong if anything is.
            for (slot, state) in (first..).zip(states) {
                *state = self.get(slot)?;
            }
        }
        Ok(())
    }

    /// Whether a state of it may have children.
    pub(crate) fn may_be_container(&self) -> bool {
        match &self.form {
            Form::Same(state) => state.is_container(),
            Form::Numbers(tag, _) => tag::is_container(*tag),
            Form::Texts(..) => false,
            Form::Mixed => true,
        }
    }
}
