//! Cutting off what came after a commit of series: points and deletions carry their commit, so
//! they are kept or not one by one.

use bytes::Bytes;

use crate::backup::RestorePoint;
use crate::error::Result;
use crate::revision::{CommitSequence, Micros};
use crate::series::merge::Blocks;
use crate::series::rollup::RollupCut;
use crate::series::{Density, commits};
use crate::tree::cell_key::{self, CellKey, TreeId};

/// A cell with its key.
pub(super) type Cell = (Bytes, Bytes);

/// Goes through the cells of all series, which stand behind those of their catalogue.
pub(super) struct SeriesCut {
    point: RestorePoint,
    /// The last commit that is kept.
    until: CommitSequence,
    /// The last commit of series that is kept, as their catalogue tells it.
    pub(super) newest: (CommitSequence, Micros),
    /// Of the series whose points come in.
    blocks: Option<(TreeId, Blocks)>,
    rollups: RollupCut,
}

impl SeriesCut {
    pub(super) fn new(point: RestorePoint, rollups: RollupCut) -> Self {
        let until = match point {
            RestorePoint::Newest => CommitSequence(u64::MAX),
            RestorePoint::Commit(sequence) => sequence,
            // The times of the commits come before the points.
            RestorePoint::Time(_) => CommitSequence(0),
        };
        let newest = (CommitSequence(0), Micros(i64::MIN));
        Self { point, until, newest, blocks: None, rollups }
    }

    /// Whether a cell is one of these.
    pub(super) fn takes(key: CellKey) -> bool {
        matches!(
            key,
            CellKey::Points(_)
                | CellKey::Deletes { .. }
                | CellKey::Commits { .. }
                | CellKey::Rollup(..)
                | CellKey::Rolled { .. }
        )
    }

    /// What is kept of the next cell, and of those before it, goes to `out`.
    pub(super) fn push(
        &mut self,
        (series, parsed): (TreeId, CellKey),
        (key, cell): Cell,
        out: &mut Vec<Cell>,
    ) -> Result<()> {
        match parsed {
            CellKey::Points(_) => {
                if self.blocks.as_ref().is_none_or(|(of, _)| *of != series) {
                    self.finish(out)?;
                }
                if self.rollups.is_purged(series, self.until)? {
                    return Ok(());
                }
                let column = cell_key::all_points(series);
                let new = || (series, Blocks::new(column, Density::Hot).until(self.until));
                self.blocks.get_or_insert_with(new).1.push_cell((key, cell), out)
            }
            CellKey::Commits { first } => {
                self.finish(out)?;
                let mut all = commits::decode(first, &cell)?;
                all.retain(|&(sequence, time)| match self.point {
                    RestorePoint::Time(last) => time <= last,
                    _ => sequence <= self.until,
                });
                if let Some(&last) = all.last() {
                    self.until = self.until.max(last.0);
                    self.newest = self.newest.max(last);
                }
                let cells = commits::cells(&all).into_iter();
                out.extend(
                    cells.map(|(first, cell)| (cell_key::commits(first).into(), cell.into())),
                );
                Ok(())
            }
            CellKey::Deletes { sequence } => {
                self.finish(out)?;
                if sequence <= self.until {
                    out.push((key, cell));
                }
                Ok(())
            }
            CellKey::Rollup(place, _) => {
                self.finish_points(out);
                self.rollups.push((series, place), cell, self.until, out)
            }
            CellKey::Rolled { rollup } => {
                self.finish(out)?;
                let reach = self.rollups.reach((series, rollup), self.until)?;
                out.extend(reach.map(|reach| (key, reach.encode().into())));
                Ok(())
            }
            _ => self.finish(out),
        }
    }

    /// Puts out what is left of a series.
    pub(super) fn finish(&mut self, out: &mut Vec<Cell>) -> Result<()> {
        self.finish_points(out);
        self.rollups.finish(self.until, out)
    }

    fn finish_points(&mut self, out: &mut Vec<Cell>) {
        if let Some((_, blocks)) = self.blocks.take() {
            blocks.finish(out);
        }
    }
}
