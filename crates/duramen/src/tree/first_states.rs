//! First states of consecutive slots as cells, cut at slots so that a read of one record does not
//! read the states of all.
//!
//! Invariant: a cell of several slots fits a block.

use crate::encoding::{Column, encode_column, pack_keys};
use crate::limits::{BASE_BYTES_MAX, BASE_BYTES_WANTED};
use crate::state::Datum;
use crate::tree::cell_key::GroupCell;

/// A cell of first states and its first slot.
pub(crate) type FirstStates = (u32, Vec<u8>);

/// Encodes the states of the slots from `first` on, without cells of absent ones alone. Where
/// cutting repeats much, as of strings of which there are few distinct ones, a cell takes more, and
/// up to a block. Keys are packed, but cut as if they were not: that is what takes memory.
pub(crate) fn encode_cells(kind: GroupCell, first: u32, states: &[Datum<'_>]) -> Vec<FirstStates> {
    let cells = encode(first, states);
    match kind {
        GroupCell::Key => cells.into_iter().map(|(at, cell)| (at, pack_keys(cell))).collect(),
        _ => cells,
    }
}

fn encode(first: u32, states: &[Datum<'_>]) -> Vec<FirstStates> {
    if states.iter().all(Datum::is_absent) {
        return Vec::new();
    }
    let mut whole = Vec::new();
    encode_column(states, &mut whole);
    if whole.len() <= BASE_BYTES_WANTED || states.len() <= 1 {
        return vec![(first, whole)];
    }
    let cut = encode_cut(first, states, whole.len().div_ceil(BASE_BYTES_WANTED));
    let bytes: usize = cut.iter().map(|(_, cell)| cell.len()).sum();
    if bytes - bytes / 5 <= whole.len() {
        return cut;
    }
    if whole.len() <= BASE_BYTES_MAX {
        return vec![(first, whole)];
    }
    encode_cut(first, states, 2)
}

fn encode_cut(first: u32, states: &[Datum<'_>], parts: usize) -> Vec<FirstStates> {
    let most = states.len().div_ceil(parts);
    let firsts = (first..).step_by(most);
    firsts.zip(states.chunks(most)).flat_map(|(first, states)| encode(first, states)).collect()
}

/// Whether cutting a cell anew would help nothing.
pub(crate) fn is_cut(column: &Column) -> bool {
    let bytes = column.cell_bytes();
    bytes <= BASE_BYTES_WANTED || (bytes <= BASE_BYTES_MAX && column.is_coded())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read of the cells, slot after slot.
    fn read(cells: &[FirstStates]) -> Vec<String> {
        let mut read = Vec::new();
        for (first, cell) in cells {
            assert_eq!(*first as usize, read.len());
            let column = Column::parse(cell.clone().into()).unwrap();
            read.extend(column.iter().map(|state| format!("{:?}", state.unwrap())));
        }
        read
    }

    fn check(states: &[Datum<'_>]) -> Vec<usize> {
        let cells = encode(0, states);
        let expected: Vec<String> = states.iter().map(|state| format!("{state:?}")).collect();
        assert_eq!(read(&cells), expected);
        cells.iter().map(|(_, cell)| cell.len()).collect()
    }

    #[test]
    fn wide_columns_are_cut_into_cells_of_about_4_kib() {
        let numbers: Vec<_> = (0..4_096).map(|slot| Datum::Int(slot * 77_777 % 100_003)).collect();
        let lengths = check(&numbers);
        assert_eq!(lengths.len(), 4);
        assert!(lengths.iter().all(|length| *length <= BASE_BYTES_WANTED), "{lengths:?}");
        assert_eq!(check(&numbers[..1_000]).len(), 1);
    }

    #[test]
    fn few_distinct_strings_stay_together_and_others_do_not() {
        let texts = |distinct: usize| -> Vec<String> {
            (0..4_096).map(|slot| format!("a string, number {:05}", slot % distinct)).collect()
        };
        let check = |texts: &[String]| {
            let states: Vec<_> = texts
                .iter()
                .map(|text| Datum::Text { bytes: text.as_bytes(), plain: true })
                .collect();
            check(&states)
        };
        let few = check(&texts(900));
        assert!(few.len() == 1 && few[0] > 2 * BASE_BYTES_WANTED, "{few:?}");
        let various = check(&texts(4_096));
        assert!(various.len() > 20, "{various:?}");
        let many = check(&texts(1_900));
        assert!(many.iter().all(|length| *length <= BASE_BYTES_MAX), "{many:?}");
    }

    #[test]
    fn a_state_that_is_long_stands_alone() {
        let long = vec![b'x'; 40_000];
        let text = |bytes| Datum::Text { bytes, plain: true };
        let lengths = check(&[text(b"a"), text(&long), text(b"b"), Datum::Null]);
        assert!(lengths.iter().filter(|length| **length > BASE_BYTES_MAX).count() == 1);
    }
}
