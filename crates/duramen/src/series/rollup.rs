//! Rollups on disk: a row for each window, kept as columns of points whose times are the windows'.
//!
//! A *slice* is some thousands of windows, or some hundreds that have texts: its columns stand
//! together, so that they can be written one after the other without holding more than that.
//!
//! Invariants:
//! - whoever writes young points of a series into a segment writes the rows of their windows into
//!   the same one ([`Rolling`]), so that rows are about all points that segments have;
//! - of a window the newest row holds, and it says up to which commit it is complete: for an
//!   earlier commit, and for windows in which anything is young, there are only the points;
//! - rows of windows before the *reach* of a rollup are there; one that was defined later than the
//!   points were written catches up by and by;
//! - points are dropped only before the reach of every rollup.

mod columns;
mod cut;
mod rolling;
mod stored;
mod summaries;

use bytes::Bytes;

pub(crate) use columns::{Column, Table};
pub(crate) use cut::RollupCut;
pub(crate) use rolling::{Behind, Rolling};
pub(crate) use stored::{Kept, StoredRollup};
pub(crate) use summaries::Summaries;

use crate::error::Result;
use crate::revision::CommitSequence;
use crate::series::block::Summary;
use crate::series::young::Young;
use crate::wire::Reader;

/// What a rollup says of a window.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// When it begins.
    pub(crate) start: i64,
    /// The commit up to which it is complete.
    pub(crate) as_of: u64,
    pub(crate) summary: Summary,
}

/// Whether all that is young from the beginning of a window on comes behind what is known of it,
/// so that it can be added to that.
pub(crate) fn is_all_behind(young: &Young, (start, known): (i64, &Summary)) -> bool {
    let Some((_, (last, _))) = &known.ends else { return true };
    young.pieces.iter().all(|piece| {
        let times = piece.points.times();
        let first = times.get(times.partition_point(|time| *time < start));
        first.is_none_or(|first| *first > last.0)
    })
}

/// How far a rollup reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Rows of windows before this time are there, unless nothing is in them.
    pub(crate) until: i64,
    /// As of this commit: of the ones before it is not known whether a window without a row had
    /// anything.
    pub(crate) since: CommitSequence,
}

impl Reach {
    /// Of a rollup that has no rows.
    const NONE: Self = Self { until: i64::MIN, since: CommitSequence(0) };

    /// Whether nothing is left to catch up.
    fn is_whole(self) -> bool {
        self.until == i64::MAX
    }

    pub(crate) fn encode(self) -> Vec<u8> {
        [self.until.to_le_bytes(), self.since.0.to_le_bytes()].concat()
    }

    pub(crate) fn decode(cell: &Bytes) -> Result<Self> {
        let mut reader = Reader::new(cell);
        let until = reader.i64()?;
        let since = CommitSequence(reader.i64()?.cast_unsigned());
        reader.end()?;
        Ok(Self { until, since })
    }
}
