//! Vectors of integers: a straight line plus what differs from it.
//!
//! Value `i` is `base + step * i + difference[i]`, all of it modulo 2^64, the differences
//! unsigned at 0, 1, 2, 4 or 8 bytes each, or of long vectors at half a byte. A constant has
//! neither step nor differences, a straight line no differences, a plain frame of reference no
//! step; rising vectors with a jitter (offsets, timestamps) have both. One formula reads them all.

use std::ops::Range;

use bytes::Bytes;

use super::reader::{Parsed, Reader, corrupt};

/// Where a vector of integers lies in its cell.
///
/// Unsigned values are kept by their 64 bits ([`u64::cast_signed`]); they are in order as long
/// as they stay on one side of 2^63.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Integers {
    base: i64,
    step: i64,
    at: u32,
    len: u32,
    /// Bits of a difference.
    bits: u8,
}

/// A vector of integers for many reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    pub(crate) base: i64,
    pub(crate) step: i64,
    pub(crate) len: usize,
    pub(crate) differences: Differences<'a>,
}

/// A vector of integers for many reads, with its bytes.
#[derive(Debug)]
pub(crate) struct ValuesCell {
    base: i64,
    step: i64,
    len: usize,
    differences: Bytes,
    /// Bits of a difference.
    bits: u8,
}

/// What values have above the line that they are along.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Differences<'a> {
    None,
    /// Two to a byte.
    Half(&'a [u8]),
    One(&'a [u8]),
    Two(&'a [[u8; 2]]),
    Four(&'a [[u8; 4]]),
    Eight(&'a [[u8; 8]]),
}

/// Bytes of a step, by their code.
const STEP_BYTES: [u8; 5] = [0, 1, 2, 4, 8];
/// Bits of a difference, by their code.
const BITS: [u8; 6] = [0, 8, 16, 32, 64, 4];

/// Values of which small differences take half a byte at least: of fewer it spares little.
const HALVES_MIN: usize = 512;

/// Values whose differences take more than a step does, however small they are.
const LINE_MIN: usize = 64;

impl Integers {
    /// Appends the encoding of `values`, whose number the owner keeps.
    pub(crate) fn encode(values: &[i64], out: &mut Vec<u8>) {
        Plan::best(values).write(values, out);
    }

    /// Reads the header of a vector of `len` values and passes over the rest.
    #[inline]
    pub(crate) fn parse(reader: &mut Reader<'_>, len: usize) -> Parsed<Self> {
        let start = reader.position();
        let head = reader.u8()?;
        let step_width = STEP_BYTES.get(usize::from((head >> 2) & 7)).copied();
        let bits = BITS.get(usize::from(head >> 5)).copied();
        let (Some(step_width), Some(bits)) = (step_width, bits) else {
            return Err(corrupt(start, "no such width of integers"));
        };
        let base = reader.signed(1 << (head & 3))?;
        let step = reader.signed(step_width)?;
        let count = u32::try_from(len).ok();
        let bytes = len.checked_mul(usize::from(bits)).map(|bits| bits.div_ceil(8));
        let (Some(count), Some(bytes)) = (count, bytes) else {
            return Err(corrupt(start, "too many integers"));
        };
        Ok(Self { base, step, at: reader.skip(bytes)?, len: count, bits })
    }

    /// The vector of `len` that stands at a place in bytes, and the place behind it.
    pub(crate) fn parse_at(bytes: &[u8], at: usize, len: usize) -> Option<(Self, usize)> {
        let mut reader = Reader::resume(bytes, u32::try_from(at).ok()?);
        let vector = Self::parse(&mut reader, len).ok()?;
        Some((vector, reader.position()))
    }

    /// The value of an encoded vector of one, and the bytes behind it; none if it is kept as one
    /// of several is.
    #[inline]
    pub(super) fn single(bytes: &[u8]) -> Option<(i64, &[u8])> {
        // The head says the width of the base, and neither a step nor differences.
        let (head, rest) = bytes.split_first()?;
        Some(match head {
            0 => rest
                .split_first_chunk()
                .map(|(base, rest)| (i8::from_le_bytes(*base).into(), rest))?,
            1 => rest
                .split_first_chunk()
                .map(|(base, rest)| (i16::from_le_bytes(*base).into(), rest))?,
            2 => rest
                .split_first_chunk()
                .map(|(base, rest)| (i32::from_le_bytes(*base).into(), rest))?,
            3 => rest.split_first_chunk().map(|(base, rest)| (i64::from_le_bytes(*base), rest))?,
            _ => return None,
        })
    }

    /// Where its differences are in the cell, how many, and the bytes of each; 0 if they have none
    /// of their own.
    pub(super) fn place(&self) -> (usize, usize, usize) {
        (self.at as usize, self.len(), usize::from(self.bits / 8))
    }

    /// How many values.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Value `index`, or `None` beyond the end.
    #[inline]
    pub(crate) fn get(&self, cell: &[u8], index: usize) -> Option<i64> {
        if index >= self.len() {
            return None;
        }
        let at = self.at as usize;
        let difference = match self.bits {
            0 => 0,
            4 => half(cell.get(at..)?, index)?,
            8 => u64::from(*cell.get(at.wrapping_add(index))?),
            16 => u64::from(u16::from_le_bytes(chunk(cell, at, index)?)),
            32 => u64::from(u32::from_le_bytes(chunk(cell, at, index)?)),
            _ => u64::from_le_bytes(chunk(cell, at, index)?),
        };
        Some(self.on_line(index).wrapping_add(difference.cast_signed()))
    }

    /// Value `index` as the unsigned integer it was written from.
    #[inline]
    pub(crate) fn get_unsigned(&self, cell: &[u8], index: usize) -> Option<u64> {
        self.get(cell, index).map(i64::cast_unsigned)
    }

    /// Value `index` as an offset or a code.
    #[inline]
    pub(super) fn get_index(&self, cell: &[u8], index: usize) -> Option<usize> {
        usize::try_from(self.get(cell, index)?).ok()
    }

    /// The last value, or 0 if there is none: the total, where the values are ends.
    pub(crate) fn total(&self, cell: &[u8]) -> Option<usize> {
        match self.len().checked_sub(1) {
            Some(last) => self.get_index(cell, last),
            None => Some(0),
        }
    }

    /// What value `index` spans where the values are ends: from the end before to its own.
    #[inline]
    pub(crate) fn span(&self, cell: &[u8], index: usize) -> Option<Range<usize>> {
        let start = match index.checked_sub(1) {
            Some(before) => self.get_index(cell, before)?,
            None => 0,
        };
        let end = self.get_index(cell, index)?;
        (start <= end).then_some(start..end)
    }

    /// The first and the common difference, if the values are a constant or a straight line.
    pub(super) fn line(&self) -> Option<(i64, i64)> {
        (self.bits == 0).then_some((self.base, self.step))
    }

    /// The first index in `range` whose value is above `bound`: in there, values never fall.
    #[inline]
    pub(crate) fn after(&self, cell: &[u8], range: Range<usize>, bound: i64) -> usize {
        if let Some(after) = self.after_on_line(&range, bound) {
            return after;
        }
        let Range { mut start, mut end } = range;
        while start < end {
            let middle = start.midpoint(end);
            if self.get(cell, middle).is_some_and(|value| value <= bound) {
                start = middle.saturating_add(1);
            } else {
                end = middle;
            }
        }
        start
    }

    /// The same where the values are a line that rises, or a constant, with all of the range in it.
    #[inline]
    fn after_on_line(&self, range: &Range<usize>, bound: i64) -> Option<usize> {
        let (base, step) = self.line().filter(|_| range.end <= self.len())?;
        // All of it may fall, where each range has one value.
        let step = u64::try_from(step).ok()?;
        let above = bound.checked_sub(base)?;
        if above < 0 {
            return Some(range.start);
        }
        let steps = above.cast_unsigned().checked_div(step);
        // Without a step none is above.
        let after = steps.and_then(|steps| usize::try_from(steps).ok()?.checked_add(1));
        Some(after.unwrap_or(range.end).clamp(range.start, range.end.max(range.start)))
    }

    /// Appends all values. The owner has to bound `len`, since a line of any length costs the
    /// cell nothing.
    pub(crate) fn decode_into(&self, cell: &[u8], out: &mut Vec<i64>) {
        let bytes = self.differences(cell);
        match self.bits {
            0 => self.extend(out, std::iter::repeat_n(0, self.len())),
            4 => self.extend(out, (0..self.len()).map(|at| half(bytes, at).unwrap_or_default())),
            8 => self.extend(out, bytes.iter().map(|byte| u64::from(*byte))),
            16 => self.extend(out, chunks(bytes).map(|bytes| u16::from_le_bytes(bytes).into())),
            32 => self.extend(out, chunks(bytes).map(|bytes| u32::from_le_bytes(bytes).into())),
            _ => self.extend(out, chunks(bytes).map(u64::from_le_bytes)),
        }
    }

    /// The vector for many reads.
    pub(super) fn values<'a>(&self, cell: &'a [u8]) -> Values<'a> {
        let differences = Differences::of(self.bits, self.differences(cell));
        Values { base: self.base, step: self.step, len: self.len(), differences }
    }

    fn differences<'a>(&self, cell: &'a [u8]) -> &'a [u8] {
        let at = self.at as usize;
        let bits = self.len().saturating_mul(usize::from(self.bits));
        let end = at.saturating_add(bits.div_ceil(8));
        cell.get(at..end).unwrap_or_default()
    }

    #[inline]
    fn extend(&self, out: &mut Vec<i64>, differences: impl ExactSizeIterator<Item = u64>) {
        let mut on_line = self.base;
        out.extend(differences.map(|difference| {
            let value = on_line.wrapping_add(difference.cast_signed());
            on_line = on_line.wrapping_add(self.step);
            value
        }));
    }

    #[inline]
    fn on_line(&self, index: usize) -> i64 {
        on_line(self.base, self.step, index)
    }
}

impl<'a> Differences<'a> {
    fn of(bits: u8, bytes: &'a [u8]) -> Self {
        match bits {
            0 => Self::None,
            4 => Self::Half(bytes),
            8 => Self::One(bytes),
            16 => Self::Two(bytes.as_chunks().0),
            32 => Self::Four(bytes.as_chunks().0),
            _ => Self::Eight(bytes.as_chunks().0),
        }
    }

    /// Bits of a difference, and the bytes of all.
    fn parts(&self) -> (u8, &'a [u8]) {
        match self {
            Self::None => (0, &[]),
            Self::Half(bytes) => (4, bytes),
            Self::One(bytes) => (8, bytes),
            Self::Two(all) => (16, all.as_flattened()),
            Self::Four(all) => (32, all.as_flattened()),
            Self::Eight(all) => (64, all.as_flattened()),
        }
    }
}

impl ValuesCell {
    /// The values that lie in a cell.
    pub(super) fn of(values: &Values<'_>, cell: &Bytes) -> Self {
        let Values { base, step, len, differences } = *values;
        let (bits, bytes) = differences.parts();
        Self { base, step, len, differences: part_of(cell, bytes), bits }
    }

    /// The vector.
    pub(crate) fn values(&self) -> Values<'_> {
        let differences = Differences::of(self.bits, &self.differences);
        Values { base: self.base, step: self.step, len: self.len, differences }
    }
}

/// Bytes that lie in a cell, without a copy.
pub(super) fn part_of(cell: &Bytes, bytes: &[u8]) -> Bytes {
    if bytes.is_empty() { Bytes::new() } else { cell.slice_ref(bytes) }
}

impl Values<'_> {
    /// Whether all of them are indexes into a list of a length.
    pub(crate) fn are_below(&self, len: usize) -> bool {
        let is_below = |value| usize::try_from(value).is_ok_and(|index| index < len);
        let most = match self.differences {
            _ if self.step != 0 || self.base != 0 => return self.each(0..self.len, is_below),
            Differences::Half(_) if len >= 16 => return true,
            // Folded, which compilers make wide loops of.
            Differences::Half(bytes) => {
                bytes.iter().fold(0, |most, two| most.max(two & 0xf).max(two >> 4))
            }
            Differences::One(bytes) => bytes.iter().fold(0, |most, byte| most.max(*byte)),
            _ => return self.each(0..self.len, is_below),
        };
        usize::from(most) < len
    }

    /// Value `index`, or `None` beyond the end.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<i64> {
        let difference = match self.differences {
            Differences::None => (index < self.len).then_some(0)?,
            Differences::Half(bytes) => half(bytes, index).filter(|_| index < self.len)?,
            Differences::One(bytes) => u64::from(*bytes.get(index)?),
            Differences::Two(all) => u64::from(u16::from_le_bytes(*all.get(index)?)),
            Differences::Four(all) => u64::from(u32::from_le_bytes(*all.get(index)?)),
            Differences::Eight(all) => u64::from_le_bytes(*all.get(index)?),
        };
        Some(on_line(self.base, self.step, index).wrapping_add(difference.cast_signed()))
    }

    /// Value `index` as an offset or a code.
    #[inline]
    pub(super) fn get_index(&self, index: usize) -> Option<usize> {
        usize::try_from(self.get(index)?).ok()
    }

    /// Gives the values of a range in order until one is not taken. False then, and if the range
    /// goes beyond the end.
    #[inline]
    pub(super) fn each(&self, range: Range<usize>, mut take: impl FnMut(i64) -> bool) -> bool {
        let mut line = on_line(self.base, self.step, range.start);
        let mut put = |difference: u64| {
            let value = line.wrapping_add(difference.cast_signed());
            line = line.wrapping_add(self.step);
            take(value)
        };
        match self.differences {
            Differences::None => range.end <= self.len && range.into_iter().all(|_| put(0)),
            Differences::Half(all) => {
                range.end <= self.len
                    && range.into_iter().all(|at| half(all, at).is_some_and(&mut put))
            }
            Differences::One(all) => {
                all.get(range).is_some_and(|all| all.iter().all(|one| put((*one).into())))
            }
            Differences::Two(all) => all
                .get(range)
                .is_some_and(|all| all.iter().all(|two| put(u16::from_le_bytes(*two).into()))),
            Differences::Four(all) => all
                .get(range)
                .is_some_and(|all| all.iter().all(|four| put(u32::from_le_bytes(*four).into()))),
            Differences::Eight(all) => all
                .get(range)
                .is_some_and(|all| all.iter().all(|eight| put(u64::from_le_bytes(*eight)))),
        }
    }
}

fn on_line(base: i64, step: i64, index: usize) -> i64 {
    base.wrapping_add(step.wrapping_mul((index as u64).cast_signed()))
}

/// One of two to a byte, the first in the lower half.
#[inline]
fn half(bytes: &[u8], index: usize) -> Option<u64> {
    let byte = *bytes.get(index / 2)?;
    Some(u64::from(if index.is_multiple_of(2) { byte & 0xf } else { byte >> 4 }))
}

#[inline]
fn chunk<const N: usize>(cell: &[u8], at: usize, index: usize) -> Option<[u8; N]> {
    cell.get(at.wrapping_add(index.wrapping_mul(N))..)?.first_chunk().copied()
}

fn chunks<const N: usize>(bytes: &[u8]) -> impl ExactSizeIterator<Item = [u8; N]> {
    bytes.as_chunks().0.iter().copied()
}

/// The average step of `values`, rounded to the nearest integer.
fn slope(values: &[i64]) -> i64 {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return 0 };
    let rise = i128::from(*last).wrapping_sub(i128::from(*first));
    let steps = (values.len() as i128).wrapping_sub(1).max(1);
    let half = steps.wrapping_div(2).wrapping_mul(rise.signum());
    // A slope beyond 64 bits saves nothing; the flat plan stands.
    let slope = rise.wrapping_add(half).checked_div(steps).unwrap_or_default();
    i64::try_from(slope).unwrap_or(0)
}

/// Whether values are on a line, and nothing beside it.
fn are_on_line(values: &[i64], base: i64, step: i64) -> bool {
    let mut line = base;
    values.chunks(LINE_MIN).all(|values| {
        let mut beside = 0;
        for value in values {
            beside |= value.wrapping_sub(line);
            line = line.wrapping_add(step);
        }
        beside == 0
    })
}

/// A way to write a vector.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    base: i64,
    step: i64,
    /// Bits of a difference.
    bits: u8,
}

impl Plan {
    /// The shorter of the flat plan and the one along the average slope.
    pub(super) fn best(values: &[i64]) -> Self {
        let slope = slope(values);
        // So many on a line are shorter along it in any case, which needs no other look.
        if let Some(base) = values.first().filter(|_| values.len() >= LINE_MIN)
            && are_on_line(values, *base, slope)
        {
            return Self { base: *base, step: slope, bits: 0 };
        }
        let flat = Self::new(values, 0);
        if flat.bits == 0 || slope == 0 {
            return flat;
        }
        let sloped = Self::new(values, slope);
        if sloped.bytes(values.len()) < flat.bytes(values.len()) { sloped } else { flat }
    }

    fn new(values: &[i64], step: i64) -> Self {
        let mut min = values.first().copied().unwrap_or(0);
        let (mut max, mut line) = (min, 0_i64);
        for value in values {
            let rest = value.wrapping_sub(line);
            (min, max) = (min.min(rest), max.max(rest));
            line = line.wrapping_add(step);
        }
        let bits = match max.wrapping_sub(min).cast_unsigned() {
            1..16 if values.len() >= HALVES_MIN => 4,
            most => unsigned_width(most).wrapping_mul(8),
        };
        Self { base: min, step, bits }
    }

    /// Whether the values take a header alone, so that [`Integers::line`] gives them.
    pub(super) fn is_line(self) -> bool {
        self.bits == 0
    }

    fn bytes(self, len: usize) -> usize {
        let header = signed_width(self.base).saturating_add(self.step_width());
        let bits = len.saturating_mul(usize::from(self.bits));
        bits.div_ceil(8).saturating_add(usize::from(header))
    }

    fn step_width(self) -> u8 {
        if self.step == 0 { 0 } else { signed_width(self.step) }
    }

    /// Appends the values, for which the plan was made.
    pub(super) fn write(self, values: &[i64], out: &mut Vec<u8>) {
        out.reserve(self.bytes(values.len()).saturating_add(1));
        let base_width = signed_width(self.base);
        let head = base_width.trailing_zeros()
            | code_of(&STEP_BYTES, self.step_width()) << 2
            | code_of(&BITS, self.bits) << 5;
        out.extend(head.to_le_bytes().first());
        out.extend(self.base.to_le_bytes().iter().take(usize::from(base_width)));
        out.extend(self.step.to_le_bytes().iter().take(usize::from(self.step_width())));
        match self.bits {
            0 => {}
            4 => self.write_halves(values, out),
            8 => self.write_differences::<1>(values, out),
            16 => self.write_differences::<2>(values, out),
            32 => self.write_differences::<4>(values, out),
            _ => self.write_differences::<8>(values, out),
        }
    }

    fn write_differences<const N: usize>(self, values: &[i64], out: &mut Vec<u8>) {
        let mut line = self.base;
        for value in values {
            let difference = value.wrapping_sub(line).to_le_bytes();
            out.extend_from_slice(difference.first_chunk::<N>().map_or(&[], |bytes| bytes));
            line = line.wrapping_add(self.step);
        }
    }

    fn write_halves(self, values: &[i64], out: &mut Vec<u8>) {
        let mut line = self.base;
        for pair in values.chunks(2) {
            let mut byte = 0_u8;
            for (value, shift) in pair.iter().zip([0_u32, 4]) {
                let [low, ..] = value.wrapping_sub(line).to_le_bytes();
                byte |= low.wrapping_shl(shift);
                line = line.wrapping_add(self.step);
            }
            out.push(byte);
        }
    }
}

/// Where a width stands among those that there are.
fn code_of(widths: &[u8], width: u8) -> u32 {
    (0..).zip(widths).find(|(_, known)| **known == width).map_or(0, |(code, _)| code)
}

fn signed_width(value: i64) -> u8 {
    if i8::try_from(value).is_ok() {
        1
    } else if i16::try_from(value).is_ok() {
        2
    } else if i32::try_from(value).is_ok() {
        4
    } else {
        8
    }
}

/// The bytes in which an unsigned integer up to `value` is kept: 0, 1, 2, 4 or 8.
pub(super) fn unsigned_width(value: u64) -> u8 {
    match value {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}
