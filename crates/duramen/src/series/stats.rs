//! What a series takes.

use crate::error::Result;
use crate::series::block::Block;
use crate::series::deletes;
use crate::series::snapshot::SeriesSnapshot;
use crate::tree::cell_key;

/// The size of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeriesStats {
    /// Points that are kept: also those that were written over or deleted, which snapshots from
    /// before still read.
    pub points: u64,
    /// Of these, those that no checkpoint has written yet.
    pub young_points: u64,
    /// Blocks in segments.
    pub blocks: u64,
    /// Bytes of these blocks.
    pub block_bytes: u64,
    /// Spans of time that were deleted.
    pub deletes: u64,
}

impl SeriesSnapshot {
    /// The size of the series as it is now, whatever the snapshot shows. It reads all its blocks,
    /// but decodes none.
    pub fn stats(&self) -> Result<SeriesStats> {
        let (view, series) = self.place();
        let young = view.series.of(series);
        let live = view.store.live();
        let mut deleted = young.deletes;
        deletes::read(&live, series, &mut deleted)?;
        let young_points: usize = young.pieces.iter().map(|piece| piece.len()).sum();
        let mut stats = SeriesStats {
            points: young_points as u64,
            young_points: young_points as u64,
            deletes: deleted.len() as u64,
            ..SeriesStats::default()
        };
        for found in live.scan(&cell_key::all_points(series))? {
            let cell = found?.1.load()?;
            stats.blocks += 1;
            stats.block_bytes += cell.len() as u64;
            stats.points += Block::parse(cell)?.len() as u64;
        }
        Ok(stats)
    }
}
