//! Verifies the cells of series.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::series::block::Block;
use crate::series::{commits, deletes, rollup};
use crate::tree::cell_key::CellKey;

/// Refuses a cell of a series that does not decode, or is not what its key says.
pub(crate) fn cell(key: CellKey, cell: Bytes) -> Result<()> {
    match key {
        CellKey::Points(key) | CellKey::Rollup(_, key) => {
            let block = Block::parse(cell)?;
            block.check()?;
            let found = (block.time_range().0.0, block.sequences()?.get(0));
            let expected = (key.first, key.sequence);
            if found == expected {
                return Ok(());
            }
            let message = format!("expected its first point at {expected:?}, found {found:?}");
            Err(Error::new(ErrorKind::Corrupt, message))
        }
        CellKey::Deletes { .. } => deletes::decode(&cell).map(drop),
        CellKey::Rolled { .. } => rollup::Reach::decode(&cell).map(drop),
        CellKey::Commits { first } => commits::decode(first, &cell).map(drop),
        _ => Err(Error::new(ErrorKind::Corrupt, "a series has no such cell")),
    }
}
