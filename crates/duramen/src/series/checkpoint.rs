//! Young points into cells.

use crate::error::Result;
use crate::segment::SegmentWriter;
use crate::series::block::Density;
use crate::series::merge::Blocks;
use crate::series::young::Frozen;
use crate::series::{commits, deletes};
use crate::tree::cell_key::{self, TreeId};

/// Writes what was frozen behind the cells of all trees.
pub(crate) fn write(frozen: &Frozen, segment: &mut SegmentWriter) -> Result<()> {
    for (first, cell) in commits::cells(&frozen.commits()) {
        segment.push(&cell_key::commits(first), &cell)?;
    }
    for series in frozen.series() {
        write_series(frozen, series, segment)?;
    }
    Ok(())
}

fn write_series(frozen: &Frozen, series: TreeId, segment: &mut SegmentWriter) -> Result<()> {
    let mut young = frozen.of(series);
    young.pieces.sort_by_key(|piece| piece.first());
    let (mut blocks, mut cells) = (Blocks::new(series, Density::Hot), Vec::new());
    let mut write = |cells: &mut Vec<_>| {
        cells
            .drain(..)
            .try_for_each(|(key, cell): (bytes::Bytes, bytes::Bytes)| segment.push(&key, &cell))
    };
    for piece in young.pieces {
        blocks.push(std::sync::Arc::unwrap_or_clone(piece), &mut cells)?;
        write(&mut cells)?;
    }
    blocks.finish(&mut cells);
    write(&mut cells)?;
    let deletes = deletes::cells(series, &young.deletes);
    deletes.iter().try_for_each(|(key, cell)| segment.push(key, cell))
}
