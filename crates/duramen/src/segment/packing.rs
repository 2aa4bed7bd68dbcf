//! Cells of a block as they are compressed: what is alike stands together.
//!
//! In a block each cell follows its key, so that a cell is found and read in place. Keys that
//! follow each other begin alike, vectors of integers have bytes of which one is as good as random
//! and the next hardly changes, and neither is what a compressor of bytes sees there. Packed, a
//! block is: how many bytes each key has in common with the one before, how many more it has, how
//! many its cell has; where vectors stand in the cells; then these bytes of the keys; then the
//! cells, in them vectors byte for byte in columns, of the integers or of their differences.
//!
//! Invariants:
//! - a vector takes as many bytes packed as it does in its cell, so that it is packed in place;
//! - unpacking knows places and widths only, not what cells mean: if a vector was seen where none
//!   is, its bytes come back all the same.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use bytes::Bytes;
use zerocopy::{FromBytes, IntoBytes};

use super::block::{RECORD_BYTES, Record};
use crate::encoding::Vector;
use crate::wire::{Reader, put_varint};

/// Tells where vectors of integers stand in the cell of a key.
pub(crate) type FindVectors = fn(&[u8], &Bytes) -> Vec<Vector>;

/// Integers that a vector has at least, and bytes of one at most.
const COUNT_MIN: usize = 8;
const WIDTH_MAX: usize = 8;

/// What of integers is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Values,
    /// Each less the one before, signed, the sign in the lowest bit.
    Differences,
}

/// Set beside the width of a vector of which the differences are kept.
const DIFFERENCES: u8 = 1 << 4;

/// What each distinct byte of a column costs a compressor about, beside those that are there.
const DISTINCT_BYTE_COST: f64 = 0.5;

/// Bytes that a packed body of so many bytes and cells has at most: three lengths take up to three
/// bytes more than the record of a cell, a vector of 8 bytes or more up to 7 to be told.
pub(super) fn packed_bytes_max(length: usize, cells: usize) -> Option<usize> {
    length.checked_add(cells.checked_mul(3)?)?.checked_mul(2)?.checked_add(8)
}

/// The body of a block of so many cells, packed; none if it is no such body.
pub(super) fn pack(body: &Bytes, cells: usize, find: FindVectors) -> Option<Vec<u8>> {
    let (records, data) = <[Record]>::ref_from_prefix_with_elems(body, cells).ok()?;
    let ends = records.iter().skip(1).map(|next| usize::from(next.at.get()));
    let mut packed = Vec::with_capacity(body.len());
    let (mut more, mut lengths) = (Vec::new(), Vec::new());
    let (mut keys, mut contents, mut vectors) = (Vec::new(), Vec::new(), Vec::new());
    let mut before: &[u8] = &[];
    for (record, end) in records.iter().zip(ends.chain([data.len()])) {
        let at = usize::from(record.at.get());
        let (key, cell) = data.get(at..end)?.split_at_checked(record.key_len.get().into())?;
        let shared = before.iter().zip(key).take_while(|(a, b)| a == b).count();
        put_varint(&mut packed, shared as u64);
        let rest = key.get(shared..)?;
        put_varint(&mut more, rest.len() as u64);
        keys.extend_from_slice(rest);
        lengths.push(cell.len());
        for found in find(key, &body.slice_ref(cell)) {
            vectors.push(Vector { at: found.at.checked_add(contents.len())?, ..found });
        }
        contents.extend_from_slice(cell);
        before = key;
    }
    packed.append(&mut more);
    for length in &lengths {
        put_varint(&mut packed, *length as u64);
    }
    vectors.extend(runs(&lengths)?);
    vectors.sort_unstable_by_key(|vector| vector.at);
    pack_vectors(&vectors, &mut contents, &mut packed)?;
    packed.append(&mut keys);
    packed.append(&mut contents);
    Some(packed)
}

/// Cells behind each other that have one length, as short as an integer, are a vector.
fn runs(lengths: &[usize]) -> Option<Vec<Vector>> {
    let (mut runs, mut at) = (Vec::new(), 0_usize);
    for alike in lengths.chunk_by(|a, b| a == b) {
        let (width, count) = (alike.first().copied().unwrap_or(0), alike.len());
        runs.push(Vector { at, count, width });
        at = at.checked_add(width.checked_mul(count)?)?;
    }
    Some(runs)
}

/// Packs in place the vectors that are worth it, and says where they are.
fn pack_vectors(vectors: &[Vector], contents: &mut [u8], packed: &mut Vec<u8>) -> Option<()> {
    let (mut told, mut count, mut end) = (Vec::new(), 0_u64, 0_usize);
    for vector in vectors {
        let is_vector = (1..=WIDTH_MAX).contains(&vector.width) && vector.count >= COUNT_MIN;
        let Some(gap) = vector.at.checked_sub(end).filter(|_| is_vector) else { continue };
        let after = vector.at.checked_add(vector.width.checked_mul(vector.count)?)?;
        let Some(place) = contents.get_mut(vector.at..after) else { continue };
        let values = in_columns(place, vector.width, Form::Values);
        let differences = in_columns(place, vector.width, Form::Differences);
        let cost = |columns: &[u8]| columns.chunks(vector.count).map(column_cost).sum::<f64>();
        let is_less = cost(&differences) < cost(&values);
        place.copy_from_slice(if is_less { &differences } else { &values });
        put_varint(&mut told, gap as u64);
        put_varint(&mut told, vector.count as u64);
        let width = u8::try_from(vector.width).ok()?;
        told.push(if is_less { width | DIFFERENCES } else { width });
        (count, end) = (count.checked_add(1)?, after);
    }
    put_varint(packed, count);
    packed.append(&mut told);
    Some(())
}

/// Integers of one width: the lowest bytes of all, then the next.
fn in_columns(integers: &[u8], width: usize, form: Form) -> Vec<u8> {
    let mut before = 0;
    let kept = integers.chunks_exact(width).map(|bytes| {
        let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let kept = match form {
            Form::Values => value,
            Form::Differences => difference(value, before, width),
        };
        before = value;
        kept.to_le_bytes()
    });
    let kept: Vec<[u8; WIDTH_MAX]> = kept.collect();
    let column = |byte: usize| kept.iter().filter_map(move |kept| kept.get(byte).copied());
    (0..width).flat_map(column).collect()
}

fn difference(value: u64, before: u64, width: usize) -> u64 {
    let used = u32::try_from(width.saturating_mul(8)).unwrap_or(u64::BITS);
    let unused = u64::BITS.saturating_sub(used);
    let signed = value.wrapping_sub(before).wrapping_shl(unused).cast_signed() >> unused;
    (signed << 1 ^ signed >> 63).cast_unsigned()
}

/// About the bytes that a column takes compressed: its entropy, and its distinct bytes to be told.
fn column_cost(column: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in column {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count = count.saturating_add(1);
        }
    }
    let all = f64::from(u32::try_from(column.len()).unwrap_or(u32::MAX));
    let distinct = counts.into_iter().filter(|count| *count > 0).map(f64::from);
    distinct.map(|count| count * (all / count).log2() / 8.0 + DISTINCT_BYTE_COST).sum()
}

/// The body of `length` bytes and so many cells that was packed; none if this is no such thing.
pub(super) fn unpack(packed: &[u8], (cells, length): (usize, usize)) -> Option<Vec<u8>> {
    let mut reader = Reader::new(packed);
    let shared = read_lengths(&mut reader, cells)?;
    let more = read_lengths(&mut reader, cells)?;
    let lengths = read_lengths(&mut reader, cells)?;
    let vectors = read_vectors(&mut reader)?;
    let mut keys = reader.take(sum(&more)?).ok()?;
    let mut contents = reader.take(sum(&lengths)?).ok()?.to_vec();
    reader.end().ok()?;
    for (vector, form) in vectors {
        let end = vector.at.checked_add(vector.width.checked_mul(vector.count)?)?;
        in_rows(contents.get_mut(vector.at..end)?, vector, form);
    }
    let data = sum(&shared)?.checked_add(sum(&more)?)?.checked_add(contents.len())?;
    if data.checked_add(cells.checked_mul(RECORD_BYTES)?)? != length {
        return None;
    }
    let mut body = Vec::with_capacity(length);
    let all = || shared.iter().zip(&more).zip(&lengths);
    let mut at = 0_usize;
    for ((shared, more), cell) in all() {
        let key = shared.checked_add(*more)?;
        let record =
            Record { at: u16::try_from(at).ok()?.into(), key_len: u16::try_from(key).ok()?.into() };
        body.extend_from_slice(record.as_bytes());
        at = at.checked_add(key)?.checked_add(*cell)?;
    }
    let mut contents = contents.as_slice();
    let mut before = 0..0_usize;
    for ((shared, more), cell) in all() {
        let (rest, other_keys) = keys.split_at_checked(*more)?;
        let (cell, other_cells) = contents.split_at_checked(*cell)?;
        let start = body.len();
        if *shared > before.len() {
            return None;
        }
        body.extend_from_within(before.start..before.start.checked_add(*shared)?);
        body.extend_from_slice(rest);
        before = start..body.len();
        body.extend_from_slice(cell);
        (keys, contents) = (other_keys, other_cells);
    }
    Some(body)
}

fn read_lengths(reader: &mut Reader<'_>, cells: usize) -> Option<Vec<usize>> {
    // Each takes a byte at least, so more than there are bytes is refused before it is allocated.
    if cells > reader.left() {
        return None;
    }
    (0..cells).map(|_| usize::try_from(reader.varint().ok()?).ok()).collect()
}

fn sum(lengths: &[usize]) -> Option<usize> {
    lengths.iter().try_fold(0_usize, |sum, length| sum.checked_add(*length))
}

fn read_vectors(reader: &mut Reader<'_>) -> Option<Vec<(Vector, Form)>> {
    let told = reader.count().ok()?;
    let mut end = 0_usize;
    let vector = |_| {
        let gap = usize::try_from(reader.varint().ok()?).ok()?;
        let count = usize::try_from(reader.varint().ok()?).ok()?;
        let head = reader.byte().ok()?;
        let form = if head & DIFFERENCES == 0 { Form::Values } else { Form::Differences };
        let width = usize::from(head & !DIFFERENCES);
        if !(1..=WIDTH_MAX).contains(&width) || count < COUNT_MIN {
            return None;
        }
        let at = end.checked_add(gap)?;
        end = at.checked_add(width.checked_mul(count)?)?;
        Some((Vector { at, count, width }, form))
    };
    (0..told).map(vector).collect()
}

/// Turns columns back into integers, in place.
fn in_rows(place: &mut [u8], vector: Vector, form: Form) {
    let turn = match vector.width {
        1 => in_rows_of::<1>,
        2 => in_rows_of::<2>,
        3 => in_rows_of::<3>,
        4 => in_rows_of::<4>,
        5 => in_rows_of::<5>,
        6 => in_rows_of::<6>,
        7 => in_rows_of::<7>,
        _ => in_rows_of::<WIDTH_MAX>,
    };
    turn(place, vector.count, form);
}

/// With the width known when it is compiled it takes a third of the time (RR, compacted).
fn in_rows_of<const WIDTH: usize>(place: &mut [u8], count: usize, form: Form) {
    if WIDTH == 1 && form == Form::Values {
        return;
    }
    let mut kept = vec![0_u64; count];
    for (column, shift) in place.chunks_exact(count).zip((0_u32..).step_by(8)) {
        for (kept, byte) in kept.iter_mut().zip(column) {
            *kept |= u64::from(*byte).wrapping_shl(shift);
        }
    }
    let mut before = 0_u64;
    for (bytes, kept) in place.as_chunks_mut::<WIDTH>().0.iter_mut().zip(kept) {
        let value = match form {
            Form::Values => kept,
            Form::Differences => before.wrapping_add(kept >> 1 ^ (kept & 1).wrapping_neg()),
        };
        before = value;
        if let Some(low) = value.to_le_bytes().first_chunk() {
            *bytes = *low;
        }
    }
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

    fn body(cells: &[(Vec<u8>, Vec<u8>)]) -> Bytes {
        let (mut records, mut data) = (Vec::new(), Vec::new());
        for (key, cell) in cells {
            let at = u16::try_from(data.len()).unwrap().into();
            let key_len = u16::try_from(key.len()).unwrap().into();
            records.extend_from_slice(Record { at, key_len }.as_bytes());
            data.extend_from_slice(key);
            data.extend_from_slice(cell);
        }
        [records, data].concat().into()
    }

    /// Sees vectors in larger cells, wherever they may be, and some that no cell can have.
    fn find_any(_: &[u8], cell: &Bytes) -> Vec<Vector> {
        let width = 1 + cell.len() % WIDTH_MAX;
        let count = cell.len() / (2 * width);
        let vector = Vector { at: cell.len() % 3, count, width };
        let beyond = Vector { at: cell.len(), count: 1 << 20, width: 8 };
        vec![vector, vector, beyond]
    }

    /// Keys that begin alike, with runs of cells of one length among others.
    fn random_cells(random: &mut Random) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut cells = Vec::new();
        for _ in 0..=random.below(12) {
            let length = if random.below(4) == 0 { random.below(200) } else { random.below(12) };
            let like = random.bytes(1)[0];
            for number in 0..=random.next() % 20 {
                let key = [vec![like; random.below(6)], random.bytes(2)].concat();
                let cell = match random.below(3) {
                    0 => vec![0xff; length],
                    1 => number.to_le_bytes().iter().copied().cycle().take(length).collect(),
                    _ => random.bytes(length),
                };
                cells.push((key, cell));
            }
        }
        cells
    }

    #[test]
    fn what_is_unpacked_is_what_was_packed() {
        let mut random = Random(3);
        for _ in 0..500 {
            let cells = random_cells(&mut random);
            let body = body(&cells);
            let packed = pack(&body, cells.len(), find_any).unwrap();
            assert!(packed.len() <= packed_bytes_max(body.len(), cells.len()).unwrap());
            assert_eq!(unpack(&packed, (cells.len(), body.len())).unwrap(), body);
        }
    }

    #[test]
    fn keys_that_begin_alike_and_rising_integers_take_few_distinct_bytes() {
        let cell = |number: u64| (1_000 + 3 * number).to_le_bytes().to_vec();
        let key = |number: u64| [&[7; 24], number.to_be_bytes().as_slice()].concat();
        let cells: Vec<_> = (0..200).map(|number| (key(number), cell(number))).collect();
        let packed = pack(&body(&cells), cells.len(), find_any).unwrap();
        // Three lengths of a byte each, a vector, a byte of key, and 8 of which 7 are zero.
        assert_eq!(packed.len(), 200 * (3 + 1 + 8) + 31 + 5);
        let zeros = packed.iter().rev().take_while(|byte| **byte == 0).count();
        assert!(zeros >= 200 * 6, "{zeros}");
    }

    #[test]
    fn what_was_not_packed_is_refused_or_has_the_length_asked_for() {
        let mut random = Random(5);
        for _ in 0..2_000 {
            let cells = random_cells(&mut random);
            let body = body(&cells);
            let mut packed = pack(&body, cells.len(), find_any).unwrap();
            assert_eq!(unpack(&packed, (usize::MAX, body.len())), None);
            assert_eq!(unpack(&packed, (cells.len(), body.len() + 1)), None);
            match random.below(3) {
                0 => packed.truncate(random.below(packed.len() as u64)),
                1 => packed.push(0),
                _ => {
                    let at = random.below(packed.len() as u64);
                    packed[at] ^= 1 + random.bytes(1)[0] % 255;
                }
            }
            let unpacked = unpack(&packed, (cells.len(), body.len()));
            assert!(unpacked.is_none_or(|unpacked| unpacked.len() == body.len()));
        }
    }
}
