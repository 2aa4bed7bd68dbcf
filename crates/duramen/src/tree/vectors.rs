//! Where vectors of integers stand in the cells of trees.

use bytes::Bytes;

use crate::encoding::{CellForm, Vector, vectors};
use crate::tree::cell_key::{self, CellKey, GroupCell};

/// The vectors in the cell of a key; none in one that does not decode: whoever reads it tells that.
pub(crate) fn find_vectors(key: &[u8], cell: &Bytes) -> Vec<Vector> {
    let form = match cell_key::parse(key) {
        Some((_, CellKey::Group { kind: GroupCell::Run, .. })) => CellForm::Run,
        Some((_, CellKey::Group { .. })) => CellForm::Column,
        Some((_, CellKey::Order(_))) => CellForm::Order,
        Some((_, CellKey::Rows { .. })) => CellForm::Rows,
        _ => return Vec::new(),
    };
    vectors(form, cell).unwrap_or_default()
}
