//! Keys of records that are integers or UUIDs, kept as such instead of as their texts.
//!
//! A packed cell stands for a column of texts, which it is unpacked to when it is parsed. So the
//! keys of records that were numbered one after the other take a few bytes together, not 20 each.
//!
//! Invariant: what comes back is the column that was packed, state by state.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use bytes::Bytes;

use super::column::{Column, ColumnBuilder, HAS_TEXTS, SLOTS_WIDTH, parse_head, put_head, tag};
use super::integers::Integers;
use super::reader::{Parsed, Reader, corrupt};
use super::tags::Tags;
use super::texts::Texts;
use crate::key_text::{DIGITS, UUID_LEN, integer_of, text_of_integer, text_of_uuid, uuid_of};
use crate::state::Datum;

/// Set in the head of a packed cell.
pub(super) const PACKED: u8 = 1 << 7;
/// What the keys are.
const INTEGERS: u8 = 0;
const UUIDS: u8 = 1 << 2;

/// Keys from which on it is worth it.
const KEYS_MIN: usize = 4;

const UUID_BYTES: usize = size_of::<u128>();

/// The cell of a column of keys, packed if all of them are of one kind that can be.
pub(crate) fn pack_keys(cell: Vec<u8>) -> Vec<u8> {
    let cell = Bytes::from(cell);
    let packed = Column::parse(cell.clone()).ok().and_then(|column| packed(&texts(&column)?));
    packed.unwrap_or_else(|| cell.into())
}

/// The same cell of keys that were gathered: all of them are integers, or texts.
pub(crate) fn encode_keys(keys: &ColumnBuilder) -> Vec<u8> {
    match keys.all_numbers() {
        Some(integers) if integers.len() >= KEYS_MIN => packed_integers(integers),
        Some(_) => spelled(keys).encoded(),
        None => {
            let packed = keys.plain_texts().and_then(|texts| packed(&texts));
            packed.unwrap_or_else(|| keys.encoded())
        }
    }
}

/// The texts of keys that were gathered, if some but not all are integers.
pub(crate) fn unmixed_keys(keys: &ColumnBuilder) -> Option<ColumnBuilder> {
    let is_mixed = keys.all_numbers().is_none() && !keys.numbers().is_empty();
    is_mixed.then(|| spelled(keys))
}

fn spelled(keys: &ColumnBuilder) -> ColumnBuilder {
    keys.with_texts(|integer| text_of_integer(integer.into()))
}

/// The texts of a column that has nothing else.
fn texts(column: &Column) -> Option<Vec<&[u8]>> {
    let text = |state| match state {
        Ok(Datum::Text { bytes, plain: true }) => Some(bytes),
        _ => None,
    };
    column.iter().map(text).collect()
}

fn packed(texts: &[&[u8]]) -> Option<Vec<u8>> {
    if texts.len() < KEYS_MIN {
        return None;
    }
    let integer = |text: &&[u8]| i64::try_from(integer_of(text)?).ok();
    if let Some(integers) = texts.iter().map(integer).collect::<Option<Vec<_>>>() {
        return Some(packed_integers(&integers));
    }
    let uuids = texts.iter().map(|text| uuid_of(text)).collect::<Option<Vec<_>>>()?;
    let mut cell = Vec::new();
    put_head(PACKED | UUIDS, texts.len(), &mut cell);
    cell.extend(uuids.into_iter().flat_map(u128::to_be_bytes));
    Some(cell)
}

fn packed_integers(integers: &[i64]) -> Vec<u8> {
    let mut cell = Vec::new();
    put_head(PACKED | INTEGERS, integers.len(), &mut cell);
    Integers::encode(integers, &mut cell);
    cell
}

/// The vector of integers in a packed cell, if it has one; none for a cell that is not packed.
pub(super) fn integers(cell: &[u8]) -> Option<Parsed<Option<Integers>>> {
    let head = cell.first().filter(|head| **head & PACKED != 0)?;
    if head & !(PACKED | SLOTS_WIDTH) != INTEGERS {
        return Some(Ok(None));
    }
    Some(Reader::new(cell).and_then(|mut reader| {
        let (_, len) = parse_head(&mut reader)?;
        Integers::parse(&mut reader, len).map(Some)
    }))
}

/// The column cell that a packed one stands for; its head was read already.
pub(super) fn unpack(mut reader: Reader<'_>, (head, len): (u8, usize)) -> Parsed<Bytes> {
    let mut texts = Vec::new();
    let each = match head & !(PACKED | SLOTS_WIDTH) {
        INTEGERS => {
            let mut integers = Vec::new();
            Integers::parse(&mut reader, len)?.decode_into(reader.cell(), &mut integers);
            texts.reserve(len.saturating_mul(DIGITS));
            for integer in integers {
                texts.extend_from_slice(&text_of_integer(integer.into()));
            }
            DIGITS
        }
        UUIDS => {
            let at = reader.skip(len.saturating_mul(UUID_BYTES))? as usize;
            let uuids = reader.cell().get(at..reader.position()).unwrap_or_default();
            texts.reserve(len.saturating_mul(UUID_LEN));
            for uuid in uuids.as_chunks().0 {
                texts.extend_from_slice(&text_of_uuid(u128::from_be_bytes(*uuid)));
            }
            UUID_LEN
        }
        _ => return Err(corrupt(0, "no such form of packed keys")),
    };
    reader.finish()?;
    let mut cell = Vec::with_capacity(texts.len().saturating_add(32));
    put_head(HAS_TEXTS, len, &mut cell);
    Tags::encode(&[tag::PLAIN_TEXT], &mut cell);
    Texts::encode_alike((&texts, each), &mut cell);
    Ok(cell.into())
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test may fail by panicking")]
mod tests {
    use proptest::prelude::*;

    use super::super::encode_column;
    use super::*;

    fn cell_of(texts: &[Vec<u8>]) -> Vec<u8> {
        let states: Vec<_> = texts.iter().map(|bytes| Datum::Text { bytes, plain: true }).collect();
        let mut cell = Vec::new();
        encode_column(&states, &mut cell);
        cell
    }

    /// Packs texts, and compares what is read with them: the bytes of the cell.
    fn check(texts: &[Vec<u8>]) -> usize {
        let cell = Bytes::from(pack_keys(cell_of(texts)));
        let bytes = cell.len();
        assert_eq!(Column::count(&cell).unwrap(), texts.len());
        let column = Column::parse(cell).unwrap();
        let read: Vec<_> = column.iter().map(|state| format!("{:?}", state.unwrap())).collect();
        let state = |bytes: &Vec<u8>| format!("{:?}", Datum::Text { bytes, plain: true });
        assert_eq!(read, texts.iter().map(state).collect::<Vec<_>>());
        bytes
    }

    fn integers(keys: &[i64]) -> Vec<Vec<u8>> {
        keys.iter().map(|key| text_of_integer((*key).into()).to_vec()).collect()
    }

    #[test]
    fn keys_in_a_row_take_a_few_bytes_and_others_those_of_their_numbers() {
        assert!(check(&integers(&(5_000..9_000).collect::<Vec<_>>())) < 16);
        let negative = check(&integers(&(-2_000..2_000).collect::<Vec<_>>()));
        assert!(negative < 16, "{negative}");
        assert!(check(&integers(&[i64::MIN, -1, 0, i64::MAX])) < 64);
        let uuids: Vec<_> =
            (1..=100_u128).map(|n| text_of_uuid(n.wrapping_mul(u128::MAX / 7)).to_vec()).collect();
        assert!(check(&uuids) < 100 * 16 + 8);
    }

    #[test]
    fn other_columns_stay_as_they_are() {
        let largest = text_of_integer(u64::MAX.into()).to_vec();
        let mixed = [integers(&[1, 2, 3, 4]), vec![b"key".to_vec()]].concat();
        for texts in [integers(&[1, 2, 3]), vec![largest; 9], mixed, vec![b"a".to_vec(); 9]] {
            assert_eq!(check(&texts), cell_of(&texts).len());
        }
        let mut cell = Vec::new();
        encode_column(&[Datum::Absent, Datum::Int(1), Datum::Null, Datum::Int(2)], &mut cell);
        assert_eq!(pack_keys(cell.clone()), cell);
    }

    #[test]
    fn damaged_cells_are_errors() {
        let cell = pack_keys(cell_of(&integers(&[7, 8_000, 9, 10, 11])));
        assert!(cell[0] & PACKED != 0);
        for end in 0..cell.len() {
            assert!(Column::parse(Bytes::copy_from_slice(&cell[..end])).is_err(), "{end}");
        }
        for bit in 2..7 {
            let mut other = cell.clone();
            other[0] ^= 1 << bit;
            assert!(Column::parse(other.into()).is_err(), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn keys_come_back(keys in prop::collection::vec(any::<i64>(), 1..300)) {
            check(&integers(&keys));
        }
    }
}
