//! Where vectors of integers stand in cells, for whoever compresses these.

use bytes::Bytes;

use super::column::Column;
use super::integers::Integers;
use super::order::order_vectors;
use super::packed_keys;
use super::revision_rows::RevisionRowsBlock;
use super::run::RunPiece;
use crate::error::Result;

/// Unsigned integers of one width behind each other, lowest bytes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Vector {
    /// Bytes before it in its cell.
    pub(crate) at: usize,
    /// How many integers.
    pub(crate) count: usize,
    /// Bytes of each.
    pub(crate) width: usize,
}

/// What a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellForm {
    Column,
    Run,
    Order,
    Rows,
}

/// The vectors of a cell.
pub(crate) fn vectors(form: CellForm, cell: &Bytes) -> Result<Vec<Vector>> {
    let mut found = Vec::new();
    let mut add = |integers: &Integers, before: usize| {
        let (at, count, width) = integers.place();
        if width > 0 {
            found.push(Vector { at: at.saturating_add(before), count, width });
        }
    };
    match form {
        CellForm::Column => {
            let column = Column::parse(cell.clone())?;
            match packed_keys::integers(cell) {
                Some(packed) => packed?.iter().for_each(|integers| add(integers, 0)),
                None => column.integers().for_each(|integers| add(integers, 0)),
            }
        }
        CellForm::Run => {
            let piece = RunPiece::parse(cell.clone())?;
            piece.integers().for_each(|integers| add(integers, 0));
            let (values, before) = piece.values();
            values.integers().for_each(|integers| add(integers, before));
        }
        CellForm::Order => order_vectors(cell)?.iter().for_each(|integers| add(integers, 0)),
        CellForm::Rows => {
            let rows = RevisionRowsBlock::parse(cell.clone())?;
            rows.integers().into_iter().for_each(|integers| add(integers, 0));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::{encode_column, encode_run};
    use super::*;
    use crate::state::Datum;

    /// The bytes at a vector, as integers of its width.
    fn read(cell: &[u8], vector: Vector) -> Vec<u64> {
        let bytes = cell.get(vector.at..).unwrap().chunks_exact(vector.width).take(vector.count);
        let integer =
            |bytes: &[u8]| bytes.iter().rev().fold(0, |v, byte| v << 8 | u64::from(*byte));
        bytes.map(integer).collect()
    }

    #[test]
    fn a_vector_is_where_its_integers_are() {
        let numbers = [1_000, 5, 70_000, 5, 9];
        let mut cell = Vec::new();
        encode_column(&numbers.map(Datum::Int), &mut cell);
        let found = vectors(CellForm::Column, &cell.clone().into()).unwrap();
        let found: Vec<_> = found.into_iter().map(|vector| read(&cell, vector)).collect();
        assert_eq!(found, [[995, 0, 69_995, 0, 4]]);
    }

    #[test]
    fn a_run_has_its_own_vectors_and_those_of_its_states() {
        let changes = [(3, 7, Datum::Int(9)), (4, 9, Datum::Int(5)), (9, 8, Datum::Int(6))];
        let mut cell = Vec::new();
        encode_run(&changes, &mut cell);
        let found = vectors(CellForm::Run, &cell.clone().into()).unwrap();
        let found: Vec<_> = found.into_iter().map(|vector| read(&cell, vector)).collect();
        assert_eq!(found, [vec![0, 1, 6], vec![0, 2, 1], vec![4, 0, 1]]);
    }

    #[test]
    fn bytes_that_are_no_cell_are_refused() {
        for form in [CellForm::Column, CellForm::Run, CellForm::Order, CellForm::Rows] {
            assert!(vectors(form, &Bytes::from_static(&[0xff; 9])).is_err(), "{form:?}");
        }
    }
}
