//! A span of time: from one microsecond to another, both in it.

use std::ops::{Bound, RangeBounds};

use crate::error::Result;
use crate::revision::Micros;
use crate::wire::{Reader, put_signed};

/// Times from `first` to `last`, both in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeSpan {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl TimeSpan {
    /// The times in a range; none if there are none.
    pub(crate) fn of(range: &impl RangeBounds<Micros>) -> Option<Self> {
        let (first, last) = Self::ends(range);
        Self::between(first, last)
    }

    /// The times from one to another one; none if there are none.
    pub(crate) fn between(first: i128, last: i128) -> Option<Self> {
        let (first, last) = (i64::try_from(first).ok()?, i64::try_from(last).ok()?);
        (first <= last).then_some(Self { first, last })
    }

    /// The ends of a range, the second one before the first if no times are between them: one of
    /// them may be beyond all time then.
    pub(crate) fn ends(range: &impl RangeBounds<Micros>) -> (i128, i128) {
        let first = match range.start_bound() {
            Bound::Included(first) => first.0.into(),
            Bound::Excluded(before) => i128::from(before.0) + 1,
            Bound::Unbounded => i64::MIN.into(),
        };
        let last = match range.end_bound() {
            Bound::Included(last) => last.0.into(),
            Bound::Excluded(end) => i128::from(end.0) - 1,
            Bound::Unbounded => i64::MAX.into(),
        };
        (first, last)
    }

    pub(crate) fn first(self) -> Micros {
        Micros(self.first)
    }

    pub(crate) fn last(self) -> Micros {
        Micros(self.last)
    }

    pub(crate) fn has(self, time: i64) -> bool {
        (self.first..=self.last).contains(&time)
    }

    /// The times that are in another one too; none if there are none.
    pub(crate) fn and(self, other: Self) -> Option<Self> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        (first <= last).then_some(Self { first, last })
    }

    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        put_signed(out, self.first);
        put_signed(out, self.last);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let (first, last) = (reader.signed()?, reader.signed()?);
        if first > last {
            return Err(reader.corrupt(&format!("a span of time from {first} to {last}")));
        }
        Ok(Self { first, last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_every_form_are_spans_and_empty_ones_are_none() {
        let (low, high) = (Micros(-3), Micros(4));
        let span = |first, last| Some(TimeSpan { first, last });
        assert_eq!(TimeSpan::of(&(low..high)), span(-3, 3));
        assert_eq!(TimeSpan::of(&(low..=high)), span(-3, 4));
        assert_eq!(TimeSpan::of(&(..low)), span(i64::MIN, -4));
        assert_eq!(TimeSpan::of(&..), span(i64::MIN, i64::MAX));
        assert_eq!(TimeSpan::of(&(high..low)), None);
        assert_eq!(TimeSpan::of(&(..Micros(i64::MIN))), None);
        assert_eq!(TimeSpan::of(&(Bound::Excluded(Micros(i64::MAX)), Bound::Unbounded)), None);
    }
}
