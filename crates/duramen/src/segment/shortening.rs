//! Blocks of index entries, in which each cell is 8 bytes and most of its key stands in the key
//! before it too: what all keys begin with is kept once, and integers are kept as a vector.
//!
//! Bytes of keys that all have in common, 16 bits, and these; where the rest of each key ends and
//! the integer of each cell, both as vectors of the warm encoding; the rests. One key is looked up
//! in place. For all that reads one after the other the body comes back as it was; that takes about
//! a microsecond for 4 KiB.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::cmp::Ordering;

use bytes::Bytes;
use zerocopy::IntoBytes;

use super::block::{HEADER_BYTES, RECORD_BYTES, Record};
use crate::encoding::Integers;
use crate::limits::BLOCK_BYTES_MAX;

/// Bytes of each cell.
const CELL_BYTES: usize = size_of::<u64>();

/// Cells from which on it is worth it: a vector has a head.
const CELLS_MIN: usize = 4;

/// The body with these records, shortened; none if its cells are others, or too few.
pub(super) fn shorten(records: &[Record], data: &[u8]) -> Option<Vec<u8>> {
    let (first, last) = (records.first()?, records.last()?);
    if records.len() < CELLS_MIN || !has_cells_of_8_bytes(records, data.len()) {
        return None;
    }
    // Keys rise, so what the first and the last begin with all others do.
    let (first, last) = (key_of(*first, data)?, key_of(*last, data)?);
    let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let mut ends = Vec::with_capacity(records.len());
    let mut cells = Vec::with_capacity(records.len());
    let mut rests = Vec::with_capacity(data.len() / 2);
    for record in records {
        rests.extend_from_slice(key_of(*record, data)?.get(shared..)?);
        ends.push(i64::try_from(rests.len()).ok()?);
        cells.push(i64::from_le_bytes(*data.get(cell_at(*record)?..)?.first_chunk()?));
    }
    let mut shortened = u16::try_from(shared).ok()?.to_le_bytes().to_vec();
    shortened.extend_from_slice(first.get(..shared)?);
    Integers::encode(&ends, &mut shortened);
    Integers::encode(&cells, &mut shortened);
    shortened.append(&mut rests);
    Some(shortened)
}

fn has_cells_of_8_bytes(records: &[Record], bytes: usize) -> bool {
    let ends = records.iter().skip(1).map(|next| usize::from(next.at.get())).chain([bytes]);
    records.iter().zip(ends).all(|(record, end)| {
        cell_at(*record).and_then(|at| end.checked_sub(at)) == Some(CELL_BYTES)
    })
}

fn cell_at(record: Record) -> Option<usize> {
    usize::from(record.at.get()).checked_add(record.key_len.get().into())
}

fn key_of(record: Record, data: &[u8]) -> Option<&[u8]> {
    data.get(record.at.get().into()..cell_at(record)?)
}

/// A body whose heads are those of shortened cells has something else behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotShortened;

/// A shortened body, the heads of which were read.
#[derive(Debug, Clone)]
pub(super) struct ShortCells {
    body: Bytes,
    cells: usize,
    /// Where the bytes that all keys begin with end.
    shared_end: usize,
    ends: Integers,
    integers: Integers,
    rests_at: usize,
}

impl ShortCells {
    /// Takes a body as that of so many cells; none if it is no such thing.
    pub(super) fn parse(body: Bytes, cells: usize) -> Option<Self> {
        let (shared, _) = body.split_first_chunk()?;
        let shared_end = size_of::<u16>().checked_add(u16::from_le_bytes(*shared).into())?;
        if shared_end > body.len() {
            return None;
        }
        let (ends, at) = Integers::parse_at(&body, shared_end, cells)?;
        let (integers, rests_at) = Integers::parse_at(&body, at, cells)?;
        let parsed = Self { body, cells, shared_end, ends, integers, rests_at };
        let most = BLOCK_BYTES_MAX.saturating_sub(HEADER_BYTES);
        let is_whole = parsed.ends.total(&parsed.body)? == parsed.rests().len();
        (is_whole && parsed.long_bytes()? <= most).then_some(parsed)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.cells
    }

    /// Bytes it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.body.len().saturating_add(size_of::<Self>())
    }

    fn shared(&self) -> &[u8] {
        self.body.get(size_of::<u16>()..self.shared_end).unwrap_or_default()
    }

    fn rests(&self) -> &[u8] {
        self.body.get(self.rests_at..).unwrap_or_default()
    }

    fn rest(&self, slot: usize) -> Option<&[u8]> {
        self.rests().get(self.ends.span(&self.body, slot)?)
    }

    /// Bytes of the body as it was.
    fn long_bytes(&self) -> Option<usize> {
        let each = RECORD_BYTES.checked_add(CELL_BYTES)?.checked_add(self.shared().len())?;
        each.checked_mul(self.cells)?.checked_add(self.rests().len())
    }

    /// The cell with a key, if there is one.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<[u8; CELL_BYTES]>, NotShortened> {
        let Some(wanted) = key.strip_prefix(self.shared()) else { return Ok(None) };
        let (mut start, mut end) = (0, self.cells);
        while start < end {
            let middle = start.midpoint(end);
            match self.rest(middle).ok_or(NotShortened)?.cmp(wanted) {
                Ordering::Less => start = middle.saturating_add(1),
                Ordering::Greater => end = middle,
                Ordering::Equal => {
                    let cell = self.integers.get(&self.body, middle).ok_or(NotShortened)?;
                    return Ok(Some(cell.to_le_bytes()));
                }
            }
        }
        Ok(None)
    }

    /// The body as it was; none if this is none of a body.
    pub(super) fn lengthen(&self) -> Option<Bytes> {
        let shared = self.shared();
        let mut body = Vec::with_capacity(self.long_bytes()?);
        let (mut ends, mut integers) = (Vec::new(), Vec::new());
        self.ends.decode_into(&self.body, &mut ends);
        self.integers.decode_into(&self.body, &mut integers);
        let (mut start, mut at) = (0, 0_usize);
        for end in &ends {
            let end = usize::try_from(*end).ok()?;
            let key = shared.len().checked_add(end.checked_sub(start)?)?;
            let at_of_key = u16::try_from(at).ok()?.into();
            let record = Record { at: at_of_key, key_len: u16::try_from(key).ok()?.into() };
            body.extend_from_slice(record.as_bytes());
            at = at.checked_add(key)?.checked_add(CELL_BYTES)?;
            start = end;
        }
        start = 0;
        for (end, integer) in ends.into_iter().zip(integers) {
            let end = usize::try_from(end).ok()?;
            body.extend_from_slice(shared);
            body.extend_from_slice(self.rests().get(start..end)?);
            body.extend_from_slice(&integer.to_le_bytes());
            start = end;
        }
        Some(body.into())
    }
}

#[cfg(test)]
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail by panicking"
)]
mod tests;
