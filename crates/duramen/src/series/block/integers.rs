//! Columns of integers: a straight line, packed differences, pco, symbols, or runs of equal ones.
//!
//! Invariant: decoding gives exactly as many integers as it was asked for, or an error.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Range;

use duramen_kernel::{Widen, run_widest};

use super::Density;
use super::dense::{self, Way};
use super::packing::{self, LANES, Lanes};
use super::runs;
use super::sums::{Narrow, RunSums, Take};
use super::symbols;
use crate::error::Result;
use crate::wire::{Reader, put_signed, put_varint};

/// Value `i` is `base + step * i`.
const LINE: u8 = 0;
/// The differences of neighbours less a common step, packed.
const PACKED: u8 = 1;
/// Compressed by pco, above the least.
const DENSE: u8 = 2;
/// Runs of equal integers: how many, how long, and of what.
const RUNS: u8 = 3;
/// Symbols for what is not rare.
pub(super) const SYMBOLS: u8 = 4;

/// By how much symbols may be longer than what pco makes of the integers themselves: one in so
/// many bytes. They are read in half the time.
const LONGER: usize = 64;

/// Integers from which on a part of them tells which step is better.
const SAMPLED_MIN: usize = 8 * LANES;

/// Takes integers as they are decoded, some at a time.
pub(super) type Sink<'a> = &'a mut dyn FnMut(&[i64]);

/// The range of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) least: i64,
    /// Bytes of the differences from the least: 2, 4 or 8.
    pub(super) width: u8,
}

impl Span {
    fn of(values: &[i64]) -> Self {
        let least = values.iter().copied().min().unwrap_or(0);
        let most = values.iter().copied().max().unwrap_or(0);
        let span = most.wrapping_sub(least).cast_unsigned();
        let width = match span {
            0..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 4,
            _ => 8,
        };
        Self { least, width }
    }

    /// How far an integer is above the least, modulo what the width holds.
    pub(super) fn above(self, value: i64) -> u64 {
        let above = value.wrapping_sub(self.least).cast_unsigned();
        match self.width {
            2 => above & 0xffff,
            4 => above & 0xffff_ffff,
            _ => above,
        }
    }
}

/// Appends the encoding of `values`, whose number the owner keeps.
pub(super) fn encode(values: &[i64], density: Density, out: &mut Vec<u8>) {
    let runs = runs::count(values, density, |one, two| one == two);
    let alternatives = runs::alternatives(values.len(), runs, density);
    alternatives.shortest(
        out,
        &mut |out| {
            let (lengths, firsts) = runs::of(values, runs, |one, two| one == two);
            out.push(RUNS);
            put_varint(out, runs as u64);
            encode_apart(&lengths, density, out);
            encode_apart(&firsts, density, out);
        },
        &mut |out| encode_apart(values, density, out),
    );
}

/// Appends them without a look at runs.
pub(super) fn encode_apart(values: &[i64], density: Density, out: &mut Vec<u8>) {
    let start = out.len();
    if run_widest(Packing { values, out }) {
        return;
    }
    if density == Density::Sealed && values.len() >= dense::LEN_MIN {
        let mut other = vec![DENSE];
        let span = Span::of(values);
        let way = compress(values, span, &mut other);
        if let Some(way) = way
            && other.len() < out.len().saturating_sub(start)
        {
            out.truncate(start);
            let mut short = vec![SYMBOLS];
            if let Way { order: Some(order), has_offsets: true } = way
                && symbols::encode(values, span, order, &mut short)
                && short.len() <= other.len().saturating_add(other.len() / LONGER)
            {
                other = short;
            }
            out.extend_from_slice(&other);
        }
    }
}

/// Appends a straight line.
pub(super) fn put_line(base: i64, step: i64, out: &mut Vec<u8>) {
    out.push(LINE);
    put_signed(out, base);
    put_signed(out, step);
}

/// Decodes `len` integers and gives those of a range to `sink`.
pub(super) fn decode(
    reader: &mut Reader<'_>,
    len: usize,
    range: Range<usize>,
    sink: Sink<'_>,
) -> Result<()> {
    match reader.byte()? {
        LINE => {
            let (base, step) = (reader.signed()?, reader.signed()?);
            draw(base, step, range, sink);
            Ok(())
        }
        PACKED => unpack(reader, len, range, sink),
        DENSE => decompress(reader, len, range, &mut Raised(sink)),
        SYMBOLS => symbols::decompress(reader, len, range, &mut Raised(sink)),
        RUNS => {
            let runs = runs::read_count(reader, len)?;
            let lengths = decode_apart(reader, runs)?;
            let firsts = decode_apart(reader, runs)?;
            runs::expand(reader, (&lengths, len), &firsts, &mut |value, places| {
                let inside = places.start.max(range.start)..places.end.min(range.end);
                draw(*value, 0, 0..inside.len(), sink);
            })
        }
        _ => Err(reader.corrupt("there is no such form of integers")),
    }
}

/// The sums of `len` integers run by run, each of which ends where `ends` says, the last with the
/// last integer: none where they may be too large.
pub(super) fn sums(
    reader: &mut Reader<'_>,
    len: usize,
    ends: &[usize],
) -> Result<Option<Vec<i64>>> {
    let mut runs = RunSums::new(ends);
    let mut inner = reader.clone();
    match inner.byte()? {
        DENSE => {
            *reader = inner;
            decompress(reader, len, 0..len, &mut runs)?;
        }
        SYMBOLS => {
            *reader = inner;
            symbols::decompress(reader, len, 0..len, &mut runs)?;
        }
        _ => decode(reader, len, 0..len, &mut |some| runs.add(0, some))?,
    }
    Ok(runs.finish())
}

/// Decodes `len` integers that are not runs: they are inside runs, which do not nest.
pub(super) fn decode_apart(reader: &mut Reader<'_>, len: usize) -> Result<Vec<i64>> {
    let mut values = Vec::with_capacity(len);
    if reader.clone().byte()? == RUNS {
        return Err(reader.corrupt("runs are inside runs"));
    }
    decode(reader, len, 0..len, &mut |some| values.extend_from_slice(some))?;
    Ok(values)
}

/// The base and the step of a column, if it is a straight line.
pub(super) fn line(column: &[u8]) -> Option<(i64, i64)> {
    let mut reader = Reader::new(column);
    (reader.byte().ok()? == LINE).then_some((reader.signed().ok()?, reader.signed().ok()?))
}

/// Appends integers as a straight line or, if they are none, packed; whether they are one.
struct Packing<'a> {
    values: &'a [i64],
    out: &'a mut Vec<u8>,
}

impl Widen for Packing<'_> {
    type Output = bool;

    #[expect(clippy::inline_always, reason = "it is compiled for several processors")]
    #[inline(always)]
    fn run(self) -> bool {
        let Self { values, out } = self;
        let step = best_step(values);
        let first = values.first().copied().unwrap_or(0);
        if is_line(values, step) {
            put_line(first, step, out);
            return true;
        }
        out.push(PACKED);
        put_signed(out, first);
        put_signed(out, step);
        pack(values, step, out);
        false
    }
}

#[expect(clippy::inline_always, reason = "it is compiled for several processors")]
#[inline(always)]
fn is_line(values: &[i64], step: i64) -> bool {
    // By lanes, not by `all` of them: without an early exit the differences are vectorised.
    let mut starts = (0..values.len()).step_by(LANES);
    starts.all(|start| all_bits(values, start, step) == 0)
}

/// All bits that some lane of those from a place on has.
#[expect(clippy::inline_always, reason = "it is compiled for several processors")]
#[inline(always)]
fn all_bits(values: &[i64], start: usize, step: i64) -> u64 {
    let end = start.saturating_add(LANES).min(values.len());
    differences(values, start..end, step).fold(0, |all, one| all | one)
}

/// The common step that leaves the narrowest differences, of the average one and one from the
/// middle, which for regular times with gaps is the regular one.
#[expect(clippy::inline_always, reason = "it is compiled for several processors")]
#[inline(always)]
fn best_step(values: &[i64]) -> i64 {
    let [first, .., last] = values else { return 0 };
    let steps = (values.len() as i128).saturating_sub(1);
    let rise = i128::from(*last).wrapping_sub(i128::from(*first));
    let average = rise.checked_div(steps).and_then(|step| i64::try_from(step).ok()).unwrap_or(0);
    let middle = values.get(values.len().wrapping_div(2).saturating_sub(1)..);
    let middle = match middle {
        Some([one, two, ..]) => two.wrapping_sub(*one),
        _ => average,
    };
    if middle == average || width_sum(values, average) <= width_sum(values, middle) {
        average
    } else {
        middle
    }
}

/// The widths of packed lanes together; of many lanes a part is looked at.
#[expect(clippy::inline_always, reason = "it is compiled for several processors")]
#[inline(always)]
fn width_sum(values: &[i64], step: i64) -> u32 {
    let every = LANES.saturating_mul(if values.len() < SAMPLED_MIN { 1 } else { 4 });
    let widths = (0..values.len()).step_by(every);
    let widths = widths.map(|start| packing::width(&[all_bits(values, start, step)]));
    widths.fold(0, u32::saturating_add)
}

/// How far values are from the ones before and a step; the first of all is not.
#[expect(clippy::inline_always, reason = "it is compiled for several processors")]
#[inline(always)]
fn differences(values: &[i64], places: Range<usize>, step: i64) -> impl Iterator<Item = u64> {
    // Neighbours side by side, not one carried over: so that they are vectorised.
    let before = values.get(places.start.saturating_sub(1)..).unwrap_or_default();
    let these = values.get(places.start.max(1)..places.end).unwrap_or_default();
    let apart = move |(one, two): (&i64, &i64)| zigzag(two.wrapping_sub(*one).wrapping_sub(step));
    before.iter().zip(these).map(apart)
}

#[expect(clippy::inline_always, reason = "it is compiled for several processors")]
#[inline(always)]
fn pack(values: &[i64], step: i64, out: &mut Vec<u8>) {
    let mut lanes: Lanes = [0; LANES];
    out.reserve(values.len().saturating_mul(2));
    let mut start = 0_usize;
    while start < values.len() {
        let count = values.len().saturating_sub(start).min(LANES);
        let end = start.saturating_add(count);
        let to = lanes.get_mut(usize::from(start == 0)..).unwrap_or_default();
        for (lane, difference) in to.iter_mut().zip(differences(values, start..end, step)) {
            *lane = difference;
        }
        let width = packing::width(lanes.get(..count).unwrap_or_default());
        out.push(width.to_le_bytes()[0]);
        packing::pack(&lanes, count, width, out);
        start = end;
    }
}

fn unpack(reader: &mut Reader<'_>, len: usize, range: Range<usize>, sink: Sink<'_>) -> Result<()> {
    let (first, step) = (reader.signed()?, reader.signed()?);
    let mut value = first.wrapping_sub(step);
    let mut lanes: Lanes = [0; LANES];
    let mut values = [0_i64; LANES];
    for start in (0..len).step_by(LANES) {
        let count = len.saturating_sub(start).min(LANES);
        let width = read_width(reader)?;
        let packed = reader.take(packing::bytes(count, width))?;
        if start >= range.end {
            continue;
        }
        packing::unpack(packed, width, &mut lanes);
        for (to, lane) in values.iter_mut().zip(&lanes) {
            value = value.wrapping_add(step).wrapping_add(unzigzag(*lane));
            *to = value;
        }
        sink(inside(&values, start, count, &range));
    }
    Ok(())
}

/// The part of `values`, `count` of which begin at place `start`, that is in a range.
pub(super) fn inside<'a, T>(
    values: &'a [T],
    start: usize,
    count: usize,
    range: &Range<usize>,
) -> &'a [T] {
    let from = range.start.saturating_sub(start);
    let to = range.end.saturating_sub(start).min(count);
    values.get(from..to).unwrap_or_default()
}

/// The width of packed lanes, in bits.
pub(super) fn read_width(reader: &mut Reader<'_>) -> Result<u32> {
    let width = u32::from(reader.byte()?);
    if width > 64 {
        return Err(reader.corrupt("integers have more than 64 bits"));
    }
    Ok(width)
}

/// Gives the integers at the places of a straight line.
fn draw(base: i64, step: i64, range: Range<usize>, sink: Sink<'_>) {
    const DRAWN: usize = 256;
    let mut value = base.wrapping_add(step.wrapping_mul((range.start as u64).cast_signed()));
    let mut values = [value; DRAWN];
    let mut left = range.len();
    while left > 0 {
        if step != 0 {
            for to in &mut values {
                *to = value;
                value = value.wrapping_add(step);
            }
        }
        let count = left.min(DRAWN);
        sink(values.get(..count).unwrap_or_default());
        left = left.saturating_sub(count);
    }
}

/// Compresses the differences from the least at the narrowest width; none if that failed.
fn compress(values: &[i64], span: Span, out: &mut Vec<u8>) -> Option<Way> {
    put_signed(out, span.least);
    out.push(span.width);
    let above = values.iter().map(|value| span.above(*value));
    match span.width {
        2 => {
            let narrow = above.map(|value| u16::try_from(value).unwrap_or(0));
            dense::compress(&narrow.collect::<Vec<_>>(), out)
        }
        4 => {
            let narrow = above.map(|value| u32::try_from(value).unwrap_or(0));
            dense::compress(&narrow.collect::<Vec<_>>(), out)
        }
        _ => dense::compress(&above.collect::<Vec<_>>(), out),
    }
}

fn decompress(
    reader: &mut Reader<'_>,
    len: usize,
    range: Range<usize>,
    to: &mut impl Take,
) -> Result<()> {
    let least = reader.signed()?;
    match reader.byte()? {
        2 => dense::decompress::<u16>(reader, len, range, &mut |some| to.take(least, some)),
        4 => dense::decompress::<u32>(reader, len, range, &mut |some| to.take(least, some)),
        8 => dense::decompress::<u64>(reader, len, range, &mut |some| to.take(least, some)),
        _ => Err(reader.corrupt("compressed integers have 2, 4 or 8 bytes")),
    }
}

/// Takes differences from the least as the integers that they stand for.
struct Raised<'a>(Sink<'a>);

impl Take for Raised<'_> {
    #[inline]
    fn take<T: Narrow>(&mut self, least: i64, some: &[T]) {
        let mut raised = [0_i64; dense::READ];
        for (to, value) in raised.iter_mut().zip(some) {
            *to = least.wrapping_add(value.widen());
        }
        (self.0)(raised.get(..some.len()).unwrap_or_default());
    }
}

#[expect(clippy::inline_always, reason = "it is compiled for several processors")]
#[inline(always)]
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

#[inline]
fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ (value & 1).wrapping_neg().cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_widest_loop_packs_what_any_does(
            ints in proptest::collection::vec(any::<i64>(), 0..300),
            shift in 0_u32..64,
            rise in any::<i32>(),
        ) {
            let steps = (0_i64..).map(|at| at.wrapping_mul(rise.into()));
            let above = |(one, rise): (&i64, i64)| (one >> shift).wrapping_add(rise);
            let values: Vec<i64> = ints.iter().zip(steps).map(above).collect();
            let (mut wide, mut any) = (vec![7], vec![7]);
            let is_line = run_widest(Packing { values: &values, out: &mut wide });
            prop_assert_eq!(is_line, Packing { values: &values, out: &mut any }.run());
            prop_assert_eq!(wide, any);
        }
    }
}
