//! Blocks: sorted points of one tag, encoded as columns behind a header.
//!
//! Invariants:
//! - what is decoded is what was encoded, to the bit;
//! - points are in order of time, and those of one time in order of commit sequence;
//! - decoding never panics, whatever the bytes are, and takes no more memory than a block may.
//!
//! Two densities share one format: *hot* blocks take a few nanoseconds a point to write, *sealed*
//! ones are compressed as far as it goes. `docs/format.md` describes every byte.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod bools;
mod decimals;
mod dense;
mod floats;
mod integers;
mod packing;
mod runs;
mod strings;
mod summary;
mod sums;
mod symbols;

use std::ops::Range;

use bytes::Bytes;
use duramen_kernel::{Widen, run_widest};

use super::line::Line;
use super::points::Points;
use super::quality::{Qualities, Quality};
use super::value::ValueType;
use super::values::Values;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::SERIES_BLOCK_POINTS_MAX;
use crate::revision::{CommitSequence, Micros};
use crate::wire::{Reader, put_bytes, put_signed, put_varint};

pub(crate) use summary::{End, Numbers, Summary, float};

/// How much is done to make a block small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Density {
    /// Written soon after the points came, and again before long.
    Hot,
    /// Written to stay.
    Sealed,
}

/// The commit sequences of points: most often one for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sequences {
    /// Every point has this one.
    All(CommitSequence),
    /// One for each point.
    Each(Vec<CommitSequence>),
}

/// A view of an encoded block: its header, and where its columns are.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    bytes: Bytes,
    value_type: ValueType,
    density: Density,
    has_duplicates: bool,
    len: usize,
    times: (i64, i64),
    sequences: (u64, u64),
    summary: Option<Box<Summary>>,
    columns: Columns,
}

/// Where the columns of a block are in its bytes. Values are the rest.
#[derive(Debug, Clone)]
struct Columns {
    times: Range<usize>,
    /// Empty if all sequences are the same.
    sequences: Range<usize>,
    qualities: Range<usize>,
    values: Range<usize>,
}

const TYPE_BITS: u8 = 0b0000_0111;
const HAS_DUPLICATES: u8 = 0b0000_1000;
const HAS_SUMMARY: u8 = 0b0001_0000;
const IS_SEALED: u8 = 0b0010_0000;
/// Points from which on the summary is kept; of fewer it is made when it is asked for.
const SUMMARY_POINTS_MIN: usize = 64;

/// All points have the quality that follows.
const ONE_QUALITY: u8 = 0;
/// A column of integers follows.
const MANY_QUALITIES: u8 = 1;

impl Sequences {
    /// That of point `index`.
    pub(crate) fn get(&self, index: usize) -> CommitSequence {
        match self {
            Self::All(sequence) => *sequence,
            Self::Each(all) => all.get(index).copied().unwrap_or_default(),
        }
    }
}

impl Block {
    /// Appends the encoding of a range of points with their commit sequences, and the line that
    /// their times are on, if that is known: they are not looked at again then. In the journal,
    /// where the sequence is that of the commit, it is [`CommitSequence`] 0; there is no summary
    /// there, as nobody asks for it.
    ///
    /// # Panics
    /// If the range is empty, larger than a block may be, or not in order.
    pub(crate) fn encode(
        (points, range): (&Points, Range<usize>),
        line: Option<Line>,
        sequences: &Sequences,
        density: Density,
        out: &mut Vec<u8>,
    ) {
        let len = range.len();
        assert!((1..=SERIES_BLOCK_POINTS_MAX).contains(&len), "a block of {len} points");
        let times = points.times().get(range.clone()).unwrap_or_default();
        let [first, ..] = times else { unreachable!("a range beyond the points") };
        let line = line.or_else(|| Line::of(times));
        let has_duplicates = line.is_none() && check_order(times, sequences, range.start);
        let last = times.last().unwrap_or(first);
        let (low, high) = sequence_range(sequences, range.clone());
        let is_of_journal = *sequences == Sequences::All(CommitSequence(0));
        let is_long = len >= SUMMARY_POINTS_MIN && !is_of_journal;
        let has_summary = is_long && points.value_type() != ValueType::String;
        out.push(
            type_code(points.value_type())
                | if has_duplicates { HAS_DUPLICATES } else { 0 }
                | if has_summary { HAS_SUMMARY } else { 0 }
                | if density == Density::Sealed { IS_SEALED } else { 0 },
        );
        put_varint(out, len as u64);
        put_signed(out, *first);
        put_varint(out, last.wrapping_sub(*first).cast_unsigned());
        put_varint(out, low);
        put_varint(out, high.saturating_sub(low));
        if has_summary {
            Summary::of(points, range.clone()).write(*first, out);
        }
        let mut column = Vec::new();
        put_column(out, &mut column, |column| match line {
            Some(line) => integers::put_line(0, line.step(), column),
            None => encode_times(times, density, column),
        });
        put_column(out, &mut column, |column| {
            if low < high {
                encode_sequences(sequences, (range.clone(), low), density, column);
            }
        });
        put_column(out, &mut column, |column| {
            encode_qualities(points.qualities(), range.clone(), density, column);
        });
        encode_values(points.values(), range, density, out);
    }

    /// Reads the header of a block, which fills `bytes`.
    pub(crate) fn parse(bytes: Bytes) -> Result<Self> {
        let mut reader = Reader::new(&bytes);
        let r = &mut reader;
        let head = r.byte()?;
        let value_type = type_of(head & TYPE_BITS);
        let Some(value_type) = value_type.filter(|_| head >> 6 == 0) else {
            return Err(r.corrupt("a block has no such head"));
        };
        let len = usize::try_from(r.varint()?).unwrap_or(usize::MAX);
        if !(1..=SERIES_BLOCK_POINTS_MAX).contains(&len) {
            return Err(r.corrupt("a block has no such number of points"));
        }
        let first = r.signed()?;
        let last = first.wrapping_add(r.varint()?.cast_signed());
        let low = r.varint()?;
        let high = low.checked_add(r.varint()?);
        let Some(high) = high.filter(|_| first <= last) else {
            return Err(r.corrupt("a block ends before it begins"));
        };
        let summary = if head & HAS_SUMMARY == 0 {
            None
        } else {
            Some(Box::new(Summary::read(r, (value_type, len as u64), first)?))
        };
        let place = |r: &mut Reader<'_>| -> Result<Range<usize>> {
            let column = r.bytes()?.len();
            let end = bytes.len().saturating_sub(r.left());
            Ok(end.saturating_sub(column)..end)
        };
        let times = place(r)?;
        let sequences = place(r)?;
        let qualities = place(r)?;
        let columns = Columns { times, sequences, values: qualities.end..bytes.len(), qualities };
        let density = if head & IS_SEALED == 0 { Density::Hot } else { Density::Sealed };
        Ok(Self {
            value_type,
            density,
            has_duplicates: head & HAS_DUPLICATES != 0,
            len,
            times: (first, last),
            sequences: (low, high),
            summary,
            columns,
            bytes,
        })
    }

    /// The encoded block.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What its values are.
    pub(crate) fn value_type(&self) -> ValueType {
        self.value_type
    }

    /// How it was encoded.
    pub(crate) fn density(&self) -> Density {
        self.density
    }

    /// How many points; at least one.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether a time is there more than once.
    pub(crate) fn has_duplicates(&self) -> bool {
        self.has_duplicates
    }

    /// What is kept of its points beside them, unless they are so few that nothing is.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        self.summary.as_deref()
    }

    /// The times of its first and last point.
    pub(crate) fn time_range(&self) -> (Micros, Micros) {
        (Micros(self.times.0), Micros(self.times.1))
    }

    /// The lowest and the highest commit sequence of its points.
    pub(crate) fn sequence_range(&self) -> (CommitSequence, CommitSequence) {
        (CommitSequence(self.sequences.0), CommitSequence(self.sequences.1))
    }

    /// Appends the points in a range to `points`, which are of the same type.
    pub(crate) fn decode(&self, range: Range<usize>, points: &mut Points) -> Result<()> {
        let range = range.start..range.end.min(self.len);
        let before = points.len();
        let decoded = self.decode_columns(range.clone(), points);
        let len = before.saturating_add(range.len());
        let (times, values, _) = points.columns_mut();
        let lens = (times.len(), values.len());
        let decoded = decoded.and_then(|()| {
            if lens == (len, len) {
                return Ok(());
            }
            Err(Error::new(ErrorKind::Corrupt, "the columns of a block of points differ in length"))
        });
        if decoded.is_err() {
            points.truncate(before);
        }
        decoded
    }

    fn decode_columns(&self, range: Range<usize>, points: &mut Points) -> Result<()> {
        let before = points.len();
        let (times, values, qualities) = points.columns_mut();
        self.decode_qualities((before, range.clone()), qualities)?;
        let mut reader = Reader::new(self.column(&self.columns.values));
        decode_values(&mut reader, self.len, range.clone(), values)?;
        reader.end()?;
        self.decode_times(range, times)
    }

    /// Appends the times of the points in a range, in microseconds.
    pub(crate) fn decode_times(&self, range: Range<usize>, times: &mut Vec<i64>) -> Result<()> {
        let start = times.len();
        let (first, last) = self.times;
        if let Some(line) = self.line() {
            line.put(range, times);
            return Ok(());
        }
        let mut reader = Reader::new(self.column(&self.columns.times));
        times.reserve(range.len());
        integers::decode(&mut reader, self.len, range, &mut |some| {
            times.extend(some.iter().map(|time| first.wrapping_add(*time)));
        })?;
        reader.end()?;
        let decoded = times.get(start..).unwrap_or_default();
        let is_inside = decoded.first().is_none_or(|time| first <= *time)
            && decoded.last().is_none_or(|time| *time <= last);
        if is_inside && in_order(decoded, &Sequences::All(CommitSequence(0)), 0).is_some() {
            return Ok(());
        }
        times.truncate(start);
        Err(reader.corrupt("the times of a block are not in order"))
    }

    /// The sums of its floats run by run, each of which ends before the place that `ends` says, the
    /// last with the last point: none unless all of them count and are numbers, and where that is
    /// not told without a look at each of them.
    pub(crate) fn sums(
        &self,
        ends: &[usize],
        takes: impl FnOnce(Quality) -> bool,
    ) -> Result<Option<Vec<f64>>> {
        let qualities = self.column(&self.columns.qualities);
        let is_taken = matches!(qualities, [ONE_QUALITY, quality] if takes(Quality(*quality)));
        if self.value_type != ValueType::F64 || !is_taken {
            return Ok(None);
        }
        let mut reader = Reader::new(self.column(&self.columns.values));
        let sums = floats::sums(&mut reader, self.len, ends)?;
        if sums.is_some() {
            reader.end()?;
        }
        Ok(sums)
    }

    /// The commit sequences of its points.
    pub(crate) fn sequences(&self) -> Result<Sequences> {
        let (low, high) = self.sequences;
        if self.columns.sequences.is_empty() {
            return Ok(Sequences::All(CommitSequence(low)));
        }
        let mut reader = Reader::new(self.column(&self.columns.sequences));
        let mut all = Vec::with_capacity(self.len);
        integers::decode(&mut reader, self.len, 0..self.len, &mut |some| {
            let sequence = |more: &i64| CommitSequence(low.wrapping_add(more.cast_unsigned()));
            all.extend(some.iter().map(sequence));
        })?;
        reader.end()?;
        if all.len() != self.len || all.iter().any(|one| one.0 < low || one.0 > high) {
            return Err(reader.corrupt("a block has a commit sequence outside its range"));
        }
        Ok(Sequences::Each(all))
    }

    /// The time between any two neighbours, if it is the same: above zero, and what leads from
    /// the first time to the last.
    pub(crate) fn regular_step(&self) -> Option<i64> {
        let (base, step) = integers::line(self.column(&self.columns.times))?;
        let steps = (self.len as u64).saturating_sub(1);
        let rise = step.cast_unsigned().checked_mul(steps)?;
        let (first, last) = self.times;
        let is_whole = base == 0 && last.wrapping_sub(first).cast_unsigned() == rise;
        (step > 0 && is_whole).then_some(step)
    }

    /// The line that its times are on, if it says so.
    pub(crate) fn line(&self) -> Option<Line> {
        self.regular_step().map(|step| Line::new(self.times.0, step))
    }

    /// Reads everything there is in it.
    pub(crate) fn check(&self) -> Result<()> {
        let mut points = Points::new(self.value_type);
        self.decode(0..self.len, &mut points)?;
        let sequences = self.sequences()?;
        let times = points.times();
        let ends = times.first().copied().zip(times.last().copied());
        if in_order(times, &sequences, 0) != Some(self.has_duplicates) || ends != Some(self.times) {
            let what = "the points of a block are not in order, or not what its head says";
            return Err(Error::new(ErrorKind::Corrupt, what));
        }
        let Some(summary) = &self.summary else { return Ok(()) };
        if summary.agrees_with(&Summary::of(&points, 0..self.len), self.times.0) {
            return Ok(());
        }
        let what = "the summary of a block of points is not that of its points";
        Err(Error::new(ErrorKind::Corrupt, what))
    }

    fn decode_qualities(
        &self,
        (before, range): (usize, Range<usize>),
        qualities: &mut Qualities,
    ) -> Result<()> {
        let mut reader = Reader::new(self.column(&self.columns.qualities));
        match reader.byte()? {
            ONE_QUALITY => qualities.extend(before, Quality(reader.byte()?), range.len()),
            MANY_QUALITIES => {
                let mut each = Vec::with_capacity(range.len());
                let mut is_byte = true;
                integers::decode(&mut reader, self.len, range, &mut |some| {
                    each.extend(some.iter().map(|quality| {
                        let byte = u8::try_from(*quality);
                        is_byte &= byte.is_ok();
                        Quality(byte.unwrap_or(0))
                    }));
                })?;
                if !is_byte {
                    return Err(reader.corrupt("a quality is one byte"));
                }
                let len = each.len();
                qualities.append(before, &Qualities::Each(each), 0..len);
            }
            _ => return Err(reader.corrupt("there is no such form of qualities")),
        }
        reader.end()
    }

    fn column(&self, place: &Range<usize>) -> &[u8] {
        self.bytes.get(place.clone()).unwrap_or_default()
    }
}

/// Appends a column behind its length. `column` is empty, and stays so.
fn put_column(out: &mut Vec<u8>, column: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    write(column);
    put_bytes(out, column);
    column.clear();
}

/// Whether some times are there twice; the points have to be in order.
fn check_order(times: &[i64], sequences: &Sequences, start: usize) -> bool {
    let Some(has_duplicates) = in_order(times, sequences, start) else {
        unreachable!("a block of points that are not in order")
    };
    has_duplicates
}

/// All bits by which some step differs from the one that all should be.
struct Departures<'a> {
    times: &'a [i64],
    step: i64,
}

impl Widen for Departures<'_> {
    type Output = i64;

    #[expect(clippy::inline_always, reason = "it is compiled for several processors")]
    #[inline(always)]
    fn run(self) -> i64 {
        let rest = self.times.get(1..).unwrap_or_default();
        // Not by `all`: without an early exit the differences are vectorised.
        let pairs = self.times.iter().zip(rest);
        pairs.fold(0, |any, (one, two)| any | (two.wrapping_sub(*one) ^ self.step))
    }
}

/// Whether all steps are one and the same, forwards: that takes less than a look at the order.
pub(super) fn rises_steadily(times: &[i64]) -> bool {
    let [first, second, ..] = times else { return false };
    let step = second.wrapping_sub(*first);
    let is_steady = run_widest(Departures { times, step }) == 0;
    // Steps that wrap around do not come to the last time.
    let last = i128::from(*first)
        .saturating_add(i128::from(step).saturating_mul((times.len() as i128).saturating_sub(1)));
    is_steady && step > 0 && times.last().is_some_and(|time| i128::from(*time) == last)
}

/// Whether some times are there twice, or `None` if the points are not in order.
fn in_order(times: &[i64], sequences: &Sequences, start: usize) -> Option<bool> {
    let rest = times.get(1..).unwrap_or_default();
    // Not by `any`: without an early exit the comparisons are vectorised.
    let pairs = || times.iter().zip(rest);
    let falls = pairs().map(|(one, two)| u8::from(one > two)).fold(0, |any, one| any | one);
    let repeats = pairs().map(|(one, two)| u8::from(one == two)).fold(0, |any, one| any | one);
    if falls > 0 {
        return None;
    }
    let repeats = repeats > 0;
    if let Sequences::Each(all) = sequences
        && repeats
    {
        let all = all.get(start..).unwrap_or_default();
        let mut sequences = pairs().zip(all.iter().zip(all.get(1..).unwrap_or_default()));
        if sequences.any(|((one, two), (before, after))| one == two && before > after) {
            return None;
        }
    }
    Some(repeats)
}

fn sequence_range(sequences: &Sequences, range: Range<usize>) -> (u64, u64) {
    match sequences {
        Sequences::All(sequence) => (sequence.0, sequence.0),
        Sequences::Each(all) => {
            let all = all.get(range).unwrap_or_default().iter().map(|sequence| sequence.0);
            (all.clone().min().unwrap_or(0), all.max().unwrap_or(0))
        }
    }
}

fn encode_times(times: &[i64], density: Density, out: &mut Vec<u8>) {
    let first = times.first().copied().unwrap_or(0);
    let after: Vec<i64> = times.iter().map(|time| time.wrapping_sub(first)).collect();
    integers::encode_apart(&after, density, out);
}

fn encode_sequences(
    sequences: &Sequences,
    (range, low): (Range<usize>, u64),
    density: Density,
    out: &mut Vec<u8>,
) {
    let above = |index| sequences.get(index).0.wrapping_sub(low).cast_signed();
    integers::encode(&range.map(above).collect::<Vec<_>>(), density, out);
}

fn encode_qualities(
    qualities: &Qualities,
    range: Range<usize>,
    density: Density,
    out: &mut Vec<u8>,
) {
    let each = match qualities {
        Qualities::All(quality) => return out.extend([ONE_QUALITY, quality.0]),
        Qualities::Each(each) => each.get(range).unwrap_or_default(),
    };
    if let [first, rest @ ..] = each
        && rest.iter().all(|quality| quality == first)
    {
        return out.extend([ONE_QUALITY, first.0]);
    }
    out.push(MANY_QUALITIES);
    let each: Vec<i64> = each.iter().map(|quality| i64::from(quality.0)).collect();
    integers::encode(&each, density, out);
}

fn encode_values(values: &Values, range: Range<usize>, density: Density, out: &mut Vec<u8>) {
    match values {
        Values::F64(all) => floats::encode(all.get(range).unwrap_or_default(), density, out),
        Values::F32(all) => floats::encode(all.get(range).unwrap_or_default(), density, out),
        Values::I64(all) => integers::encode(all.get(range).unwrap_or_default(), density, out),
        Values::Bool(all) => bools::encode(all.get(range).unwrap_or_default(), density, out),
        Values::String(all) => strings::encode(all, range, density, out),
    }
}

/// Appends the values in a range of the `len` of a block.
fn decode_values(
    reader: &mut Reader<'_>,
    len: usize,
    range: Range<usize>,
    values: &mut Values,
) -> Result<()> {
    match values {
        Values::F64(all) => floats::decode(reader, len, range, all),
        Values::F32(all) => floats::decode(reader, len, range, all),
        Values::I64(all) => {
            all.reserve(range.len());
            integers::decode(reader, len, range, &mut |some| all.extend_from_slice(some))
        }
        Values::Bool(all) => bools::decode(reader, len, range, all),
        Values::String(all) => strings::decode(reader, len, range, all),
    }
}

fn type_code(value_type: ValueType) -> u8 {
    match value_type {
        ValueType::F64 => 0,
        ValueType::F32 => 1,
        ValueType::I64 => 2,
        ValueType::Bool => 3,
        ValueType::String => 4,
    }
}

fn type_of(code: u8) -> Option<ValueType> {
    ValueType::ALL.into_iter().find(|one| type_code(*one) == code)
}

#[cfg(test)]
pub(super) mod tests;
