//! Blocks of index entries, in which each cell is 8 bytes and most of its key stands in the key
//! before it too: what all keys begin with is kept once, and integers are kept as a vector.
//!
//! Bytes of keys that all have in common, 16 bits, and these; where the rest of each key ends and
//! the integer of each cell, both as vectors of the warm encoding; the rests. The body comes back
//! as it was, so that it is searched in place; that takes about a microsecond for 4 KiB.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

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
    let (mut ends, mut cells) = (Vec::with_capacity(records.len()), Vec::new());
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

/// The body of so many cells that was shortened; none if this is no such thing.
pub(super) fn lengthen(shortened: &[u8], cells: usize) -> Option<Bytes> {
    let (shared, rest) = shortened.split_first_chunk()?;
    let (shared, rest) = rest.split_at_checked(u16::from_le_bytes(*shared).into())?;
    let each = RECORD_BYTES.checked_add(CELL_BYTES)?.checked_add(shared.len())?;
    let most = BLOCK_BYTES_MAX.saturating_sub(HEADER_BYTES);
    if each.checked_mul(cells)? > most {
        return None;
    }
    let (ends, rest) = Integers::split(rest, cells)?;
    let (integers, rests) = Integers::split(rest, cells)?;
    let length = each.checked_mul(cells)?.checked_add(rests.len())?;
    if length > most
        || ends.last().map_or(Some(0), |end| usize::try_from(*end).ok())? != rests.len()
    {
        return None;
    }
    let mut body = Vec::with_capacity(length);
    let (mut start, mut at) = (0, 0_usize);
    for end in &ends {
        let end = usize::try_from(*end).ok()?;
        let key = shared.len().checked_add(end.checked_sub(start)?)?;
        let record =
            Record { at: u16::try_from(at).ok()?.into(), key_len: u16::try_from(key).ok()?.into() };
        body.extend_from_slice(record.as_bytes());
        at = at.checked_add(key)?.checked_add(CELL_BYTES)?;
        start = end;
    }
    start = 0;
    for (end, integer) in ends.into_iter().zip(integers) {
        let end = usize::try_from(end).ok()?;
        body.extend_from_slice(shared);
        body.extend_from_slice(rests.get(start..end)?);
        body.extend_from_slice(&integer.to_le_bytes());
        start = end;
    }
    Some(body.into())
}

#[cfg(test)]
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail by panicking"
)]
mod tests {
    use super::super::tests::Random;
    use super::*;

    type Cells = Vec<(Vec<u8>, Vec<u8>)>;

    fn parts(cells: &Cells) -> (Vec<Record>, Vec<u8>) {
        let (mut records, mut data) = (Vec::new(), Vec::new());
        for (key, cell) in cells {
            let at = u16::try_from(data.len()).unwrap().into();
            let key_len = u16::try_from(key.len()).unwrap().into();
            records.push(Record { at, key_len });
            data.extend_from_slice(key);
            data.extend_from_slice(cell);
        }
        (records, data)
    }

    fn random_entries(random: &mut Random) -> Cells {
        let like = vec![7; random.below(30)];
        let count = 4 + random.below(200);
        let mut cells = Cells::new();
        for number in 0..count as u64 {
            let rest = random.below(4);
            let key = [like.clone(), number.to_be_bytes()[6..].to_vec(), random.bytes(rest)];
            let cell = if random.below(4) == 0 { random.next() } else { number };
            cells.push((key.concat(), cell.to_le_bytes().to_vec()));
        }
        cells
    }

    #[test]
    fn what_is_lengthened_is_what_was_shortened() {
        let mut random = Random(3);
        for _ in 0..300 {
            let cells = random_entries(&mut random);
            let (records, data) = parts(&cells);
            let shortened = shorten(&records, &data).unwrap();
            let body = [records.as_bytes(), &data].concat();
            assert_eq!(lengthen(&shortened, records.len()).unwrap(), body);
        }
    }

    #[test]
    fn numbered_entries_take_the_digits_that_change() {
        let entry = |number: u64| {
            (format!("{number:040}").into_bytes(), (5 + number).to_le_bytes().to_vec())
        };
        let (records, data) = parts(&(1_000..1_060).map(entry).collect());
        let shortened = shorten(&records, &data).unwrap();
        assert!(shortened.len() < 40 + 60 * 2 + 16, "{} bytes", shortened.len());
    }

    #[test]
    fn other_cells_are_left_as_they_are() {
        let mut random = Random(4);
        let cells = random_entries(&mut random);
        let (records, data) = parts(&cells[..3].to_vec());
        assert_eq!(shorten(&records, &data), None, "too few");
        for length in [0, 7, 9] {
            let mut cells = cells.clone();
            cells[2].1.resize(length, 0);
            let (records, data) = parts(&cells);
            assert_eq!(shorten(&records, &data), None, "a cell of {length} bytes");
        }
    }

    #[test]
    fn what_was_not_shortened_is_refused_or_has_as_many_cells() {
        let mut random = Random(5);
        for _ in 0..2_000 {
            let cells = random_entries(&mut random);
            let (records, data) = parts(&cells);
            let mut shortened = shorten(&records, &data).unwrap();
            assert_eq!(lengthen(&shortened, usize::MAX), None);
            match random.below(3) {
                0 => shortened.truncate(random.below(shortened.len() as u64)),
                1 => shortened.push(0),
                _ => {
                    let at = random.below(shortened.len() as u64);
                    shortened[at] ^= 1 + random.bytes(1)[0] % 255;
                }
            }
            if let Some(body) = lengthen(&shortened, records.len()) {
                assert!(body.len() >= records.len() * (RECORD_BYTES + CELL_BYTES));
                assert!(body.len() <= BLOCK_BYTES_MAX);
            }
        }
    }
}
