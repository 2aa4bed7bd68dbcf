//! Which slots of a range: most often all of them or none, which takes no bitmap.

use std::borrow::Cow;
use std::ops::Range;

use duramen_kernel as kernel;

use crate::tree::conditions::Bits;

/// Slots of a range.
#[derive(Debug, Clone)]
pub(super) enum Mask {
    None,
    All,
    /// Those whose bits are set; none of them is outside of the range.
    Some(Box<Bits>),
}

impl Mask {
    /// The slots of a range that are in another one.
    pub(super) fn of(slots: &Range<u16>, other: &Range<u16>) -> Self {
        let both = slots.start.max(other.start)..slots.end.min(other.end);
        if both.is_empty() {
            Self::None
        } else if both == *slots {
            Self::All
        } else {
            Self::Some(Box::new(Bits::of(&both)))
        }
    }

    pub(super) fn is_none(&self) -> bool {
        match self {
            Self::None => true,
            Self::All => false,
            Self::Some(bits) => bits.is_none(),
        }
    }

    /// Whether a slot of the range is among them.
    pub(super) fn has(&self, slot: u16) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(bits) => bits.has(slot),
        }
    }

    /// How many of a range.
    pub(super) fn count(&self, slots: &Range<u16>) -> u64 {
        match self {
            Self::None => 0,
            Self::All => slots.len() as u64,
            Self::Some(bits) => kernel::count(&bits.0),
        }
    }

    pub(super) fn bits(&self, slots: &Range<u16>) -> Cow<'_, Bits> {
        match self {
            Self::None => Cow::Owned(Bits::none()),
            Self::All => Cow::Owned(Bits::of(slots)),
            Self::Some(bits) => Cow::Borrowed(bits),
        }
    }

    pub(super) fn into_bits(self, slots: &Range<u16>) -> Box<Bits> {
        match self {
            Self::None => Box::new(Bits::none()),
            Self::All => Box::new(Bits::of(slots)),
            Self::Some(bits) => bits,
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::All, both) | (both, Self::All) => both,
            (Self::Some(own), Self::Some(other)) => joined(own, &other, |own, other| own & other),
        }
    }

    pub(super) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::None, both) | (both, Self::None) => both,
            (Self::Some(own), Self::Some(other)) => joined(own, &other, |own, other| own | other),
        }
    }

    /// Those of a range that are not among others.
    pub(super) fn without(self, other: &Self, slots: &Range<u16>) -> Self {
        match (self, other) {
            (Self::None, _) | (_, Self::All) => Self::None,
            (own, Self::None) => own,
            (own, Self::Some(other)) => {
                joined(own.into_bits(slots), other, |own, other| own & !other)
            }
        }
    }
}

fn joined(mut own: Box<Bits>, other: &Bits, join: impl Fn(u64, u64) -> u64) -> Mask {
    for (own, other) in own.0.iter_mut().zip(&other.0) {
        *own = join(*own, *other);
    }
    Mask::Some(own)
}
