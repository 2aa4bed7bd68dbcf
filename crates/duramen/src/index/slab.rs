//! New slabs: what is there at a revision is copied, so that later reads need nothing older.

use std::ops::Bound;

use crate::error::Result;
use crate::index::cell::{self, Facts, Slab};
use crate::index::range::{Levels, Walk};
use crate::index::{Index, State};
use crate::limits::INDEX_SLAB_ENTRIES_MIN;
use crate::tree::Tree;

/// Entries copied at once; few in tests, so that a copy takes several steps.
const COPIED_MAX: usize = if cfg!(test) { 8 } else { 4_096 };

/// So many entries, or more, are in every slab but the last; few in tests.
const EVENTS_MIN: u64 = if cfg!(test) { 32 } else { INDEX_SLAB_ENTRIES_MIN };

/// How many times as much as was there has to have happened before a new slab begins.
const EVENTS_RATIO: u64 = 2;

/// A slab in the making.
#[derive(Debug, Clone)]
pub(super) struct Copying {
    /// Its first revision.
    start: u32,
    /// What is left to copy.
    walk: Walk,
    copied: u64,
}

impl State {
    /// Begins a new slab at the watermark if enough happened in the last one. The cost is a part of
    /// that of what happened, whether records came, went or changed.
    pub(super) fn begin_slab_if_due(&mut self) {
        let before = self.facts.slabs.last().map_or(0, |slab| slab.alive);
        let there = before.min(self.facts.alive).max(EVENTS_MIN / EVENTS_RATIO);
        if self.facts.events >= EVENTS_RATIO * there {
            let start = self.facts.watermark;
            let walk = Walk::new(Bound::Unbounded, Bound::Unbounded, false);
            self.copying = Some(Copying { start, walk, copied: 0 });
        }
    }
}

impl Index {
    /// Copies some more of a slab in the making.
    pub(super) fn copy(&self, tree: &Tree, facts: &Facts, mut copying: Copying) -> Result<()> {
        let start = copying.start;
        let mut found = Vec::new();
        let mut levels = Levels::default();
        while found.len() < COPIED_MAX
            && let Some(next) = copying.walk.next(&mut levels, (self, tree), start)?
        {
            found.push(next);
        }
        let mut state = self.state(tree);
        if state.facts != *facts || state.copying.is_none() {
            return Ok(());
        }
        let is_done = found.len() < COPIED_MAX;
        copying.copied += found.len() as u64;
        let mut bytes = 0;
        for (key, ordinal) in found {
            bytes += state.insert(start, (cell::entry(&key, ordinal, start), true));
        }
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
