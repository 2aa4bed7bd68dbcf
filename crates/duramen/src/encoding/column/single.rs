//! A column of one slot, as each field of a document's root is: its state without a view of it.

use super::{Column, HAS_BARE, HAS_NUMBERS, HAS_TEXTS, tag};
use crate::encoding::integers::Integers;
use crate::encoding::tags::Tags;
use crate::encoding::texts::Texts;
use crate::state::Datum;

impl Column {
    /// The state of an encoded column that has one slot. None if it has more or takes a view to
    /// be read, and of what does not decode: parsing it says what is wrong.
    #[inline]
    pub(crate) fn single(cell: &[u8]) -> Option<Datum<'_>> {
        // A head with one part and without a number of slots, which is 1 then.
        let [part, only, rest @ ..] = cell else { return None };
        let only = Tags::single(*only)?;
        match *part {
            HAS_BARE if rest.is_empty() => tag::bare(only),
            HAS_NUMBERS => match Integers::single(rest)? {
                (value, []) => tag::number(only, value, || None),
                _ => None,
            },
            HAS_TEXTS => tag::text(only, Texts::single(rest)?),
            _ => None,
        }
    }
}
