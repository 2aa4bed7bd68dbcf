//! Series that were deleted, and of which nothing is left.
//!
//! The catalogue goes on to say what is kept of a series that was deleted, so that merges let it go
//! and readers of earlier commits do not see it meanwhile. An entry of which nothing is left goes
//! with a later commit that deletes a series.
//!
//! Invariant: when an entry goes, a checkpoint was written after the manifest from which on no
//! segment has anything of its series. Who reads beside the writer reads a manifest, and then the
//! journal. If he finds there that the entry has gone, and his manifest names segments with points,
//! he finds the checkpoint replaced too, and begins anew: else he would show what was purged.

use rustc_hash::FxHashMap;

use crate::engine::{Engine, View};
use crate::error::Result;
use crate::limits::SERIES_FORGOTTEN_MAX;
use crate::revision::CommitSequence;
use crate::series::tags;
use crate::tree::cell_key::TreeId;

/// Series without anything, with the last checkpoint when that was seen first.
pub(super) type Gone = FxHashMap<TreeId, CommitSequence>;

impl Engine {
    /// Looks which series have nothing left, now that segments were merged.
    pub(super) fn note_gone_series(&self) -> Result<()> {
        let view = self.view();
        let (tags, head) = view.series_tags(self.published())?;
        let mut seen = Gone::default();
        for series in tags::dropped(&tags, head)? {
            if view.has_any_of(series)? {
                continue;
            }
            // Only now: the manifest that let its points go may be of the newest checkpoint.
            seen.insert(series, self.manifest.lock().checkpoint.sequence);
        }
        // Not before, as a look at each of very many takes long and commits read what is known.
        let mut gone = self.gone_series.lock();
        for (series, first) in &mut seen {
            *first = gone.get(series).copied().unwrap_or(*first);
        }
        *gone = seen;
        Ok(())
    }

    /// Some of the series of which the catalogue need say nothing any more.
    pub(crate) fn gone_series(&self) -> Vec<TreeId> {
        let checkpoint = self.manifest.lock().checkpoint.sequence;
        let gone = self.gone_series.lock();
        let mut some: Vec<TreeId> = gone
            .iter()
            .filter(|(_, seen)| **seen < checkpoint)
            .map(|(series, _)| *series)
            .collect();
        some.sort_unstable();
        some.truncate(SERIES_FORGOTTEN_MAX);
        some
    }
}

impl View {
    /// Whether anything is left of a series: of its points, rollups or deletions.
    pub(crate) fn has_any_of(&self, series: TreeId) -> Result<bool> {
        // What is young comes first: a checkpoint drops it only when segments have it.
        let young = self.series.of(series);
        if !young.pieces.is_empty() || !young.deletes.is_empty() {
            return Ok(true);
        }
        let mut cells = self.store.live().scan(&series.0.to_be_bytes())?;
        Ok(cells.next().transpose()?.is_some())
    }
}
