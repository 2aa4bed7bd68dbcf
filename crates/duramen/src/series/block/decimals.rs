//! Floats that are decimals of a few places: integers over a power of ten.
//!
//! Invariant: an integer stands for a float only if dividing it by the power gives the float's
//! bits; all others are exceptions, kept by their bits.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Range;

use duramen_kernel::{Widen, run_widest};

use super::floats::Float;
use super::{Density, integers};
use crate::error::Result;
use crate::wire::{Reader, put_varint};

/// The powers of ten by which integers are divided.
const POWERS: [f64; 13] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12];
/// Adding this to a float of less than 2^51 rounds it to an integer, whose bits are then its low
/// ones. That goes for many floats at a time where a conversion goes one by one.
const ROUNDING: f64 = 6_755_399_441_055_744.0;
/// Integers of a smaller magnitude are floats exactly, also with [`ROUNDING`] added.
const INTEGER_BITS: u32 = 51;
/// One float in so many may be an exception.
const EXCEPTIONS: usize = 16;
/// Floats that are looked at to guess how many places all have.
const SAMPLES: usize = 64;

/// Floats as decimals.
#[derive(Debug)]
pub(super) struct Decimals {
    scale: u8,
    /// An exception has the integer before it.
    integers: Vec<i64>,
    /// Where the exceptions are, and their bits.
    places: Vec<i64>,
    bits: Vec<u64>,
}

/// The floats as decimals, if nearly all are.
pub(super) fn find<T: Float>(values: &[T]) -> Option<Decimals> {
    let guess = guess(values)?;
    match scaled(values, guess) {
        Ok(found) => Some(found),
        // The samples did not have the most places of all: those that were in the way may.
        Err(in_the_way) => {
            let places = in_the_way.iter().filter_map(|value| places(*value)).max()?;
            (places > guess).then(|| scaled(values, places).ok()).flatten()
        }
    }
}

/// The most places that samples have, if most of these are decimals at all.
fn guess<T: Float>(values: &[T]) -> Option<u8> {
    let step = values.len().div_ceil(SAMPLES).max(1);
    let mut most = 0;
    let (mut samples, mut failures) = (0_usize, 0_usize);
    for value in values.iter().step_by(step) {
        samples = samples.saturating_add(1);
        // Most often it has no more places than those before.
        if scale(*value, power(most)).1 == 0 {
            continue;
        }
        match places(*value) {
            Some(places) => most = most.max(places),
            None => failures = failures.saturating_add(1),
        }
    }
    (failures.saturating_mul(8) <= samples && samples > 0).then_some(most)
}

/// How many decimal places a float has.
fn places<T: Float>(value: T) -> Option<u8> {
    let is_exact = |power: &f64| scale(value, *power).1 == 0;
    POWERS.iter().position(is_exact).and_then(|places| u8::try_from(places).ok())
}

/// The power of ten of some places.
fn power(places: u8) -> f64 {
    POWERS.get(usize::from(places)).copied().unwrap_or(1.0)
}

/// A float times a power of ten as an integer, and bits that are not all 0 if dividing that does
/// not give its bits again. Of many floats they are brought together by OR, which is vectorised.
#[expect(clippy::inline_always, reason = "it is compiled for several processors")]
#[inline(always)]
fn scale<T: Float>(value: T, power: f64) -> (i64, u64) {
    let rounded = value.widen() * power + ROUNDING;
    let integer = rounded.to_bits().cast_signed().wrapping_sub(ROUNDING.to_bits().cast_signed());
    let back = T::narrow((rounded - ROUNDING) / power);
    (integer, beyond(integer) | (back.bits() ^ value.bits()))
}

/// The bits that an integer has beyond those that it may have.
#[expect(clippy::inline_always, reason = "it is compiled for several processors")]
#[inline(always)]
fn beyond(integer: i64) -> u64 {
    integer.cast_unsigned().wrapping_add(1 << INTEGER_BITS) >> (INTEGER_BITS.wrapping_add(1))
}

/// The floats at a scale, or the first that are in the way if there are too many.
fn scaled<T: Float>(values: &[T], scale_of_all: u8) -> Result<Decimals, Vec<T>> {
    const CHUNK: usize = 256;
    let power = power(scale_of_all);
    let most = values.len().wrapping_div(EXCEPTIONS);
    let mut found = Decimals {
        scale: scale_of_all,
        integers: Vec::with_capacity(values.len()),
        places: Vec::new(),
        bits: Vec::new(),
    };
    for chunk in values.chunks(CHUNK) {
        let start = found.integers.len();
        let scaling = Scaling { values: chunk, power, integers: &mut found.integers };
        if run_widest(scaling) != 0 {
            found.except(start, chunk, power);
            if found.bits.len() > most {
                return Err(found.bits.into_iter().map(T::of_bits).collect());
            }
        }
    }
    Ok(found)
}

/// Appends floats as integers; what comes of it are the bits of all that are none.
struct Scaling<'a, T> {
    values: &'a [T],
    power: f64,
    integers: &'a mut Vec<i64>,
}

impl<T: Float> Widen for Scaling<'_, T> {
    type Output = u64;

    #[expect(clippy::inline_always, reason = "it is compiled for several processors")]
    #[inline(always)]
    fn run(self) -> u64 {
        let mut off = 0;
        self.integers.extend(self.values.iter().map(|value| {
            let (integer, off_bits) = scale(*value, self.power);
            off |= off_bits;
            integer
        }));
        off
    }
}

/// What stands before the integers.
struct Head {
    power: f64,
    /// Where the exceptions are, and their bits.
    exceptions: Vec<(usize, u64)>,
}

fn read_head(reader: &mut Reader<'_>, len: usize) -> Result<Head> {
    let scale = usize::from(reader.byte()?);
    let Some(power) = POWERS.get(scale).copied() else {
        return Err(reader.corrupt("decimals have at most 12 places"));
    };
    let count = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
    if count > len {
        return Err(reader.corrupt("there are more exceptions than decimals"));
    }
    let places = integers::decode_apart(reader, count)?;
    let bits = reader.take(count.saturating_mul(8))?;
    let mut exceptions = Vec::with_capacity(count);
    for (place, bits) in places.iter().zip(bits.as_chunks().0) {
        let place = usize::try_from(*place).ok().filter(|place| *place < len);
        let Some(place) = place else {
            return Err(reader.corrupt("an exception is at no place"));
        };
        exceptions.push((place, u64::from_le_bytes(*bits)));
    }
    Ok(Head { power, exceptions })
}

/// All bits of the magnitudes of some integers, more or less.
#[inline]
fn magnitudes(integers: &[i64]) -> i64 {
    integers.iter().fold(0, |all, integer| all | (integer ^ integer >> 63))
}

/// Appends those of a range of `len` floats to `out`.
pub(super) fn decode<T: Float>(
    reader: &mut Reader<'_>,
    len: usize,
    range: Range<usize>,
    out: &mut Vec<T>,
) -> Result<()> {
    let Head { power, exceptions } = read_head(reader, len)?;
    let start = out.len();
    out.reserve(range.len());
    let mut all = 0;
    integers::decode(reader, len, range.clone(), &mut |some| {
        all |= magnitudes(some);
        out.extend(some.iter().map(|integer| {
            let bits = ROUNDING.to_bits().wrapping_add(integer.cast_unsigned());
            T::narrow((f64::from_bits(bits) - ROUNDING) / power)
        }));
    })?;
    if all >> INTEGER_BITS != 0 {
        return Err(reader.corrupt("decimals have at most 51 bits"));
    }
    for (place, bits) in exceptions {
        if let Some(inside) = place.checked_sub(range.start)
            && let Some(to) = out.get_mut(start.saturating_add(inside))
        {
            *to = T::of_bits(bits);
        }
    }
    Ok(())
}

/// The sums of the `len` floats run by run: none where some of them are exceptions, or large.
pub(super) fn sums(
    reader: &mut Reader<'_>,
    len: usize,
    ends: &[usize],
) -> Result<Option<Vec<f64>>> {
    let head = read_head(reader, len)?;
    if !head.exceptions.is_empty() {
        return Ok(None);
    }
    let sums = integers::sums(reader, len, ends)?;
    Ok(sums.map(|sums| sums.iter().map(|sum| float_of(*sum) / head.power).collect()))
}

#[expect(clippy::cast_precision_loss, reason = "the nearest float is what is asked for")]
fn float_of(sum: i64) -> f64 {
    sum as f64
}

impl Decimals {
    /// Makes exceptions of those of the last `chunk` that are none, in place `start` and on.
    fn except<T: Float>(&mut self, start: usize, chunk: &[T], power: f64) {
        let before = start.checked_sub(1).and_then(|before| self.integers.get(before));
        let mut before = before.copied().unwrap_or(0);
        let integers = self.integers.get_mut(start..).unwrap_or_default();
        for ((place, integer), value) in (start..).zip(integers).zip(chunk) {
            if scale(*value, power).1 == 0 {
                before = *integer;
            } else {
                *integer = before;
                self.places.push((place as u64).cast_signed());
                self.bits.push(value.bits());
            }
        }
    }

    /// Appends them.
    pub(super) fn write(&self, density: Density, out: &mut Vec<u8>) {
        out.push(self.scale);
        put_varint(out, self.bits.len() as u64);
        integers::encode_apart(&self.places, density, out);
        out.extend(self.bits.iter().flat_map(|bits| bits.to_le_bytes()));
        integers::encode_apart(&self.integers, density, out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a loop makes of floats, run as it is given.
    fn scaled_by<T: Float>(
        values: &[T],
        run: impl FnOnce(Scaling<'_, T>) -> u64,
    ) -> (u64, Vec<i64>) {
        let mut integers = vec![7];
        let off = run(Scaling { values, power: power(2), integers: &mut integers });
        (off, integers)
    }

    proptest! {
        #[test]
        fn the_widest_loop_scales_as_any_does(
            cents in proptest::collection::vec(any::<i64>(), 0..70),
            shift in 8_u32..64,
            other in proptest::option::of(any::<f64>()),
        ) {
            let decimal = |cents: &i64| float_of(cents >> shift) / 100.0;
            let values: Vec<f64> = cents.iter().map(decimal).chain(other).collect();
            let narrow: Vec<f32> = values.iter().map(|value| f32::narrow(*value)).collect();
            let any = scaled_by(&values, |scaling| scaling.run());
            prop_assert_eq!(scaled_by(&values, |it| run_widest(it)), any);
            let any = scaled_by(&narrow, |scaling| scaling.run());
            prop_assert_eq!(scaled_by(&narrow, |it| run_widest(it)), any);
        }
    }
}
