//! Columns of floats: decimals as scaled integers, packed differences of bits, pco, or runs.
//!
//! A float is kept as a decimal only where dividing the integer by the power of ten gives exactly
//! its bits, which each is tried for as it is written; so decimals need no proof about rounding.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Range;

use super::Density;
use super::decimals;
use super::dense::{self, Exact};
use super::integers::{inside, read_width};
use super::packing::{self, LANES, Lanes};
use super::{integers, runs, summary};
use crate::error::Result;
use crate::wire::{Reader, put_varint};

/// Integers over a power of ten, with exceptions.
const DECIMAL: u8 = 0;
/// Bits that differ from those before, packed.
const PACKED: u8 = 1;
/// Compressed by pco.
const DENSE: u8 = 2;
/// Runs of floats with equal bits.
const RUNS: u8 = 3;

/// A float of either width.
pub(super) trait Float: Exact {
    /// Its bits.
    fn bits(self) -> u64;
    /// The float of bits.
    fn of_bits(bits: u64) -> Self;
    /// As the wider one.
    fn widen(self) -> f64;
    /// The nearest to the wider one.
    fn narrow(value: f64) -> Self;
}

impl Float for f64 {
    #[inline]
    fn bits(self) -> u64 {
        self.to_bits()
    }

    #[inline]
    fn of_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }

    #[inline]
    fn widen(self) -> f64 {
        self
    }

    #[inline]
    fn narrow(value: f64) -> Self {
        value
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the narrower float is what is asked for")]
impl Float for f32 {
    #[inline]
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }

    #[inline]
    fn of_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }

    #[inline]
    fn widen(self) -> f64 {
        f64::from(self)
    }

    #[inline]
    fn narrow(value: f64) -> Self {
        value as f32
    }
}

/// Takes floats as they are decoded, some at a time.
pub(super) type Sink<'a, T> = &'a mut dyn FnMut(&[T]);

#[inline]
fn alike<T: Float>(one: &T, two: &T) -> bool {
    one.bits() == two.bits()
}

/// Appends the encoding of `values`, whose number the owner keeps.
pub(super) fn encode<T: Float>(values: &[T], density: Density, out: &mut Vec<u8>) {
    let runs = runs::count(values, density, alike);
    runs::alternatives(values.len(), runs, density).shortest(
        out,
        &mut |out| {
            let (lengths, firsts) = runs::of(values, runs, alike);
            out.push(RUNS);
            put_varint(out, runs as u64);
            integers::encode_apart(&lengths, density, out);
            encode_apart(&firsts, density, out);
        },
        &mut |out| encode_apart(values, density, out),
    );
}

fn encode_apart<T: Float>(values: &[T], density: Density, out: &mut Vec<u8>) {
    if let Some(decimals) = decimals::find(values) {
        out.push(DECIMAL);
        return decimals.write(density, out);
    }
    let start = out.len();
    out.push(PACKED);
    pack(values, out);
    if density == Density::Sealed && values.len() >= dense::LEN_MIN {
        let mut other = vec![DENSE];
        let is_shorter = |other: &Vec<u8>| other.len() < out.len().saturating_sub(start);
        if dense::compress(values, &mut other).is_some() && is_shorter(&other) {
            out.truncate(start);
            out.extend_from_slice(&other);
        }
    }
}

/// Appends those of a range of `len` floats to `out`.
pub(super) fn decode<T: Float>(
    reader: &mut Reader<'_>,
    len: usize,
    range: Range<usize>,
    out: &mut Vec<T>,
) -> Result<()> {
    match reader.byte()? {
        DECIMAL => decimals::decode(reader, len, range, out),
        PACKED => unpack(reader, len, range, &mut |some| out.extend_from_slice(some)),
        DENSE => dense::decompress(reader, len, range, &mut |some| out.extend_from_slice(some)),
        RUNS => {
            let runs = runs::read_count(reader, len)?;
            let lengths = integers::decode_apart(reader, runs)?;
            let mut firsts = Vec::with_capacity(runs);
            if reader.clone().byte()? == RUNS {
                return Err(reader.corrupt("runs are inside runs"));
            }
            decode::<T>(reader, runs, 0..runs, &mut firsts)?;
            runs::expand(reader, (&lengths, len), &firsts, &mut |value, places| {
                let inside = places.start.max(range.start)..places.end.min(range.end);
                out.extend(std::iter::repeat_n(*value, inside.len()));
            })
        }
        _ => Err(reader.corrupt("there is no such form of floats")),
    }
}

/// The sums of the `len` floats run by run, each of which ends where `ends` says, the last with the
/// last float: none where that is not told without a look at each of them.
pub(super) fn sums(
    reader: &mut Reader<'_>,
    len: usize,
    ends: &[usize],
) -> Result<Option<Vec<f64>>> {
    if reader.clone().byte()? == DECIMAL {
        reader.byte()?;
        return decimals::sums(reader, len, ends);
    }
    let mut values: Vec<f64> = Vec::with_capacity(len);
    decode(reader, len, 0..len, &mut values)?;
    let mut start = 0;
    let runs = ends.iter().map(|end| values.get(std::mem::replace(&mut start, *end)..*end));
    let sums: Vec<f64> = runs.map(|run| summary::sum(run.unwrap_or_default())).collect();
    Ok(sums.iter().all(|sum| sum.is_finite()).then_some(sums))
}

/// Appends what of the bits differs from those before, 64 floats at a time: the widest of them,
/// the zeros that all end in, and the bits between.
fn pack<T: Float>(values: &[T], out: &mut Vec<u8>) {
    let mut before = 0;
    let mut lanes: Lanes = [0; LANES];
    for chunk in values.chunks(LANES) {
        let mut all = 0;
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = value.bits() ^ before;
            before = value.bits();
            all |= *lane;
        }
        let shift = if all == 0 { 0 } else { all.trailing_zeros() };
        let width = packing::width(&[all >> shift]);
        out.push(width.to_le_bytes()[0]);
        if width > 0 {
            out.push(shift.to_le_bytes()[0]);
        }
        for lane in &mut lanes {
            *lane >>= shift;
        }
        packing::pack(&lanes, chunk.len(), width, out);
    }
}

fn unpack<T: Float>(
    reader: &mut Reader<'_>,
    len: usize,
    range: Range<usize>,
    sink: Sink<'_, T>,
) -> Result<()> {
    let mut bits = 0_u64;
    let mut lanes: Lanes = [0; LANES];
    let mut values = [T::default(); LANES];
    for start in (0..len).step_by(LANES) {
        let count = len.saturating_sub(start).min(LANES);
        let width = read_width(reader)?;
        let shift = if width > 0 { u32::from(reader.byte()?) } else { 0 };
        if shift >= u64::BITS {
            return Err(reader.corrupt("floats are shifted by more than 63 bits"));
        }
        let packed = reader.take(packing::bytes(count, width))?;
        if start >= range.end {
            continue;
        }
        packing::unpack(packed, width, &mut lanes);
        for (to, lane) in values.iter_mut().zip(&lanes) {
            bits ^= *lane << shift;
            *to = T::of_bits(bits);
        }
        sink(inside(&values, start, count, &range));
    }
    Ok(())
}
