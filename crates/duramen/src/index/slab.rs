//! New slabs: what is there at a revision is copied, so that later reads need nothing older.

use std::ops::Bound;

use crate::error::Result;
use crate::index::cell::{Entries, Facts, Slab};
use crate::index::follow::is_full;
use crate::index::range::{Levels, Walk};
use crate::index::{Index, State};
use crate::limits::INDEX_SLAB_ENTRIES_MIN;
use crate::tree::Tree;

/// So many entries, or more, are in every slab but the last; few in tests.
const EVENTS_MIN: u64 = if cfg!(test) { 32 } else { INDEX_SLAB_ENTRIES_MIN };

/// How many times as much as was there has to have happened before a new slab begins.
const EVENTS_RATIO: u64 = 2;

/// Entries that are copied until it is seen whether they are enough.
const COPIED_AT_ONCE: usize = if cfg!(test) { 4 } else { 64 };

/// A slab in the making.
#[derive(Debug, Clone)]
pub(super) struct Copying {
    /// Its first revision.
    start: u32,
    /// What is left to copy.
    walk: Walk,
    copied: u64,
}

impl Facts {
    /// Whether enough happened in the last slab for a new one to begin. The cost of that is a part
    /// of the cost of what happened, whether records came, went or changed.
    pub(super) fn is_slab_due(&self) -> bool {
        let before = self.slabs.last().map_or(0, |slab| slab.alive);
        let there = before.min(self.alive).max(EVENTS_MIN / EVENTS_RATIO);
        self.events >= EVENTS_RATIO * there
    }
}

impl State {
    /// Begins a new slab at the watermark.
    pub(super) fn begin_slab(&mut self) {
        let start = self.facts.watermark;
        let walk = Walk::new(Bound::Unbounded, Bound::Unbounded, false);
        self.copying = Some(Copying { start, walk, copied: 0 });
    }
}

impl Index {
    /// Copies some more of a slab in the making.
    pub(super) fn copy(&self, tree: &Tree, facts: &Facts, mut copying: Copying) -> Result<()> {
        let start = copying.start;
        let mut run = Entries::default();
        let mut levels = Levels::default();
        levels.open((self, tree), start)?;
        let mut is_done = false;
        while !is_done && !is_full(&run) {
            let mut add = |key: &[u8], ordinal| run.add((key, ordinal), start, true);
            is_done = copying.walk.next(&mut levels, (start, COPIED_AT_ONCE), &mut add)? == 0;
        }
        let mut state = self.state(tree);
        if state.facts != *facts || state.copying.is_none() {
            return Ok(());
        }
        copying.copied += run.len() as u64;
        let bytes = state.add(start, run);
        if is_done {
            state.facts.slabs.push(Slab { start, alive: copying.copied });
            state.facts.events = 0;
            state.copying = None;
        } else {
            state.copying = Some(copying);
        }
        drop(state);
        tree.cells.memory().add_young(bytes);
        Ok(())
    }
}
