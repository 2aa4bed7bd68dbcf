//! What stays of series that keep not everything, or have rollups, when a database is restored as
//! it was at an earlier commit.
//!
//! What was purged later is nowhere from then on: the points may be in segments still.
//!
//! Of windows whose points are there, rows are made of these again, as of a rollup that was added
//! to them. Where points had gone by the time of the backup, rows are all that tells of them: of
//! each such window the last one stays that was made up to the commit, or, as merges keep no more
//! than the newest, the first one that was made later.

use std::sync::Arc;

use bytes::Bytes;

use super::{Column, Reach, StoredRollup};
use crate::engine::View;
use crate::error::Result;
use crate::revision::{CommitSequence, Micros};
use crate::series::block::{Density, Sequences};
use crate::series::merge::Blocks;
use crate::series::piece::Piece;
use crate::series::points::Points;
use crate::series::{Values, source, tags};
use crate::tree::cell_key::{self, RollupColumn, TreeId};

/// A cell with its key.
type Cell = (Bytes, Bytes);

/// Goes through the rows and reaches of rollups.
#[derive(Debug)]
pub(crate) struct RollupCut {
    view: View,
    /// The last commit that the backup has, and when it was made.
    newest: CommitSequence,
    made: Micros,
    /// The last commit up to the point that changed the catalogue: it may be later than the last
    /// one that changed points.
    defined: CommitSequence,
    /// What stays of the series that was asked for last.
    known: Option<(TreeId, Stays)>,
    column: Option<Gathered>,
}

/// The rows of a column that come in.
#[derive(Debug)]
struct Gathered {
    of: (TreeId, RollupColumn),
    reach: Reach,
    points: Points,
    sequences: Sequences,
}

/// What stays of a series.
#[derive(Debug, Default)]
struct Stays {
    /// Nothing, as it was purged.
    is_purged: bool,
    /// How far the rollups reach of which rows stay, by their numbers.
    reaches: Vec<(i64, Reach)>,
}

impl RollupCut {
    pub(crate) fn new(
        view: View,
        (newest, made): (CommitSequence, Micros),
        defined: CommitSequence,
    ) -> Self {
        Self { view, newest, made, defined, known: None, column: None }
    }

    /// Takes the next cell of rows; what is left of the column before goes to `out`.
    pub(crate) fn push(
        &mut self,
        (series, place): (TreeId, RollupColumn),
        cell: Bytes,
        until: CommitSequence,
        out: &mut Vec<Cell>,
    ) -> Result<()> {
        if self.column.as_ref().is_none_or(|column| column.of != (series, place)) {
            self.finish(until, out)?;
        }
        let Some(reach) = self.reach((series, place.rollup), until)? else { return Ok(()) };
        let piece = source::decode(cell)?;
        let column = self.column.get_or_insert_with(|| Gathered {
            of: (series, place),
            reach,
            points: Points::new(piece.points.value_type()),
            sequences: Sequences::All(until),
        });
        let len = column.points.len();
        column.sequences.append(len, &piece.sequences, 0..piece.len());
        column.points.append(&piece.points, 0..piece.len());
        Ok(())
    }

    /// Puts out what is left of a column.
    pub(crate) fn finish(&mut self, until: CommitSequence, out: &mut Vec<Cell>) -> Result<()> {
        let Some(Gathered { of: (series, place), reach, mut points, sequences }) =
            self.column.take()
        else {
            return Ok(());
        };
        points.permute(&rows_before(reach, (points.times(), &sequences)));
        if points.is_empty() {
            return Ok(());
        }
        if place.column == Column::AsOf as u8 {
            points = up_to(points, until)?;
        }
        let mut blocks = Blocks::new(cell_key::rollup(series, place), Density::Hot);
        blocks.push(Piece::of_commit(Arc::new(points), None, until), out)?;
        blocks.finish(out);
        Ok(())
    }

    /// How far a rollup reaches; none if nothing of it stays.
    pub(crate) fn reach(
        &mut self,
        (series, rollup): (TreeId, i64),
        until: CommitSequence,
    ) -> Result<Option<Reach>> {
        let all = &self.known(series, until)?.reaches;
        Ok(all.iter().find(|(number, _)| *number == rollup).map(|(_, reach)| *reach))
    }

    /// Whether all points of a series are to be nowhere.
    pub(crate) fn is_purged(&mut self, series: TreeId, until: CommitSequence) -> Result<bool> {
        Ok(self.known(series, until)?.is_purged)
    }

    fn known(&mut self, series: TreeId, until: CommitSequence) -> Result<&Stays> {
        let known = match self.known.take().filter(|(known, _)| *known == series) {
            Some(known) => known,
            None => (series, self.stays(series, until)?),
        };
        Ok(&self.known.insert(known).1)
    }

    /// Of the rollups that a series has at both commits, what is before its points.
    fn stays(&self, series: TreeId, until: CommitSequence) -> Result<Stays> {
        let as_of = |commit| {
            let (tags, head) = self.view.series_tags(commit)?;
            tags::tiered(&tags, series, head)
        };
        let Some(now) = as_of(self.newest)? else { return Ok(Stays::default()) };
        if now.is_purged() {
            return Ok(Stays { is_purged: true, reaches: Vec::new() });
        }
        let Some(then) = as_of(until.max(self.defined))? else { return Ok(Stays::default()) };
        let mut reaches = Vec::new();
        for rollup in &now.definition.rollups {
            let gone = now.definition.points_from(rollup, self.made);
            let reach = StoredRollup::new(&now, *rollup, &self.view).reach()?.until.min(gone);
            let is_there = then.definition.rollups.iter().any(|one| one.number == rollup.number);
            if is_there && reach > i64::MIN {
                reaches.push((rollup.number, Reach { until: reach, since: until }));
            }
        }
        Ok(Stays { is_purged: false, reaches })
    }
}

/// The places of the rows that stay of those there are, rising.
fn rows_before(reach: Reach, (times, sequences): (&[i64], &Sequences)) -> Vec<usize> {
    let row = |at: &usize| (times.get(*at).copied(), sequences.get(*at));
    let mut rows: Vec<usize> = (0..times.len()).collect();
    rows.retain(|at| row(at).0 < Some(reach.until));
    rows.sort_by_key(row);
    let of_window = rows.chunk_by(|one, next| row(one).0 == row(next).0);
    let that_stays = |versions: &[usize]| {
        let later = versions.partition_point(|at| row(at).1 <= reach.since);
        versions.get(later.saturating_sub(1)).copied()
    };
    of_window.filter_map(that_stays).collect()
}

/// Commits, none of which is later than one.
fn up_to(points: Points, until: CommitSequence) -> Result<Points> {
    let (times, mut values, qualities) = points.into_columns();
    if let Values::I64(commits) = &mut values {
        let until = until.0.cast_signed();
        for commit in commits {
            *commit = until.min(*commit);
        }
    }
    Points::from_columns(times, values, qualities)
}
