//! Young points into cells.

use crate::error::Result;
use crate::segment::SegmentWriter;
use crate::series::block::Density;
use crate::series::merge::{Blocks, Spare};
use crate::series::piece::Piece;
use crate::series::rollup::Rolling;
use crate::series::young::{Frozen, Young};
use crate::series::{commits, deletes};
use crate::tree::cell_key::{self, TreeId};

/// Writes what was frozen behind the cells of all trees, and the rows that it makes.
pub(crate) fn write(
    frozen: &Frozen,
    rolling: &mut Rolling,
    segment: &mut SegmentWriter,
) -> Result<()> {
    for (first, cell) in commits::cells(&frozen.commits()) {
        segment.push(&cell_key::commits(first), &cell)?;
    }
    let mut all = frozen.series();
    all.extend(rolling.behind()?);
    all.sort_unstable();
    all.dedup();
    let mut spare = Spare::default();
    for series in all {
        let mut young = frozen.of(series);
        young.pieces.sort_by_key(|piece| piece.first());
        spare = write_series(&young, series, segment, spare)?;
        rolling.write(series, &young, segment)?;
    }
    Ok(())
}

fn write_series(
    young: &Young,
    series: TreeId,
    segment: &mut SegmentWriter,
    spare: Spare,
) -> Result<Spare> {
    let column = cell_key::all_points(series);
    let mut blocks = Blocks::new(column, Density::Hot).within(spare);
    let mut cells = Vec::new();
    let mut write = |cells: &mut Vec<_>| {
        cells
            .drain(..)
            .try_for_each(|(key, cell): (bytes::Bytes, bytes::Bytes)| segment.push(&key, &cell))
    };
    for piece in &young.pieces {
        blocks.push(Piece::clone(piece), &mut cells)?;
        write(&mut cells)?;
    }
    let spare = blocks.finish(&mut cells);
    write(&mut cells)?;
    let deletes = deletes::cells(series, &young.deletes);
    deletes.iter().try_for_each(|(key, cell)| segment.push(key, cell))?;
    Ok(spare)
}
