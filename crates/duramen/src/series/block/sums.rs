//! Sums of integers run by run, as they are decoded.
//!
//! Integers are added up as narrow as they are decoded, what they are above once for each run.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::limits::SERIES_BLOCK_POINTS_MAX;

/// Differences and what they are above of a smaller magnitude, as many as a block has, add up
/// without an overflow.
const SUMMED_BITS: u32 = 62 - SERIES_BLOCK_POINTS_MAX.ilog2();

/// An integer as it is decoded, some thousands of which are added up at a time.
pub(super) trait Narrow: Copy {
    /// As a wide one.
    fn widen(self) -> i64;
    /// The sum of some of them.
    fn sum(some: &[Self]) -> i64;
    /// All bits of their magnitudes, more or less.
    fn bits(some: &[Self]) -> u64;
}

/// Takes integers as they are decoded, some at a time: differences from the least.
pub(super) trait Take {
    fn take<T: Narrow>(&mut self, least: i64, some: &[T]);
}

impl Narrow for u16 {
    #[inline]
    fn widen(self) -> i64 {
        i64::from(self)
    }

    #[inline]
    fn sum(some: &[Self]) -> i64 {
        // Runs are short: what no eight lanes take is added one by one.
        let (eights, rest) = some.as_chunks::<8>();
        let mut lanes = [0_u32; 8];
        for eight in eights {
            for (lane, one) in lanes.iter_mut().zip(eight) {
                *lane = lane.wrapping_add(u32::from(*one));
            }
        }
        let add = |sum: u32, one: u32| sum.wrapping_add(one);
        let rest = rest.iter().map(|one| u32::from(*one));
        i64::from(rest.chain(lanes).fold(0, add))
    }

    #[inline]
    fn bits(some: &[Self]) -> u64 {
        u64::from(some.iter().fold(0, |all, one| all | one))
    }
}

impl Narrow for u32 {
    #[inline]
    fn widen(self) -> i64 {
        i64::from(self)
    }

    #[inline]
    fn sum(some: &[Self]) -> i64 {
        some.iter().fold(0, |sum, one| sum.wrapping_add(i64::from(*one)))
    }

    #[inline]
    fn bits(some: &[Self]) -> u64 {
        u64::from(some.iter().fold(0, |all, one| all | one))
    }
}

impl Narrow for u64 {
    #[inline]
    fn widen(self) -> i64 {
        self.cast_signed()
    }

    #[inline]
    fn sum(some: &[Self]) -> i64 {
        some.iter().fold(0_u64, |sum, one| sum.wrapping_add(*one)).cast_signed()
    }

    #[inline]
    fn bits(some: &[Self]) -> u64 {
        some.iter().fold(0, |all, one| all | one)
    }
}

impl Narrow for i64 {
    #[inline]
    fn widen(self) -> i64 {
        self
    }

    #[inline]
    fn sum(some: &[Self]) -> i64 {
        some.iter().fold(0, |sum, one| sum.wrapping_add(*one))
    }

    #[inline]
    fn bits(some: &[Self]) -> u64 {
        some.iter().fold(0, |all, one| all | magnitude(*one))
    }
}

#[inline]
fn magnitude(integer: i64) -> u64 {
    (integer ^ integer >> 63).cast_unsigned()
}

/// Adds integers up run by run.
pub(super) struct RunSums<'a> {
    /// Where each run ends that is not at its end.
    ends: &'a [usize],
    /// How many integers were added.
    place: usize,
    sums: Vec<i64>,
    /// All bits of the magnitudes that were added.
    bits: u64,
}

impl<'a> RunSums<'a> {
    pub(super) fn new(ends: &'a [usize]) -> Self {
        let mut sums = Vec::with_capacity(ends.len());
        sums.push(0);
        Self { ends, place: 0, sums, bits: 0 }
    }

    /// Adds integers, each of them above another one.
    pub(super) fn add<T: Narrow>(&mut self, least: i64, mut some: &[T]) {
        self.bits |= magnitude(least) | T::bits(some);
        while let [end, rest @ ..] = self.ends
            && !some.is_empty()
        {
            let left = end.saturating_sub(self.place).min(some.len());
            let (these, after) = some.split_at_checked(left).unwrap_or_default();
            let above = least.wrapping_mul((left as u64).cast_signed());
            if let Some(last) = self.sums.last_mut() {
                *last = last.wrapping_add(above).wrapping_add(T::sum(these));
            }
            self.place = self.place.saturating_add(left);
            if self.place >= *end && !rest.is_empty() {
                self.ends = rest;
                self.sums.push(0);
            }
            some = after;
        }
    }

    /// The sums, unless some integers were so large that these may be wrong.
    pub(super) fn finish(self) -> Option<Vec<i64>> {
        (self.bits >> SUMMED_BITS == 0).then_some(self.sums)
    }
}

impl Take for RunSums<'_> {
    fn take<T: Narrow>(&mut self, least: i64, some: &[T]) {
        self.add(least, some);
    }
}
