//! Reads the entries of an index that are there at a revision, in order.

use std::ops::Bound;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::index::cell::{self, Entry};
use crate::index::level::Level;
use crate::index::young::Young;
use crate::segment::KeyHash;
use crate::store::LiveSegments;
use crate::tree::Tree;
use crate::tree::cell_key;

/// A place behind all entries.
const END: &[u8] = &[0xff];

/// A place behind all entries of a key, and of those that it begins.
const BEHIND_KEY: [u8; 13] = [0xff; 13];

/// The keys that records have in an index at a revision, in their order.
#[derive(Debug)]
pub(crate) struct IndexRange {
    tree: Arc<Tree>,
    index: Arc<Index>,
    revision: u32,
    walk: Walk,
    levels: Levels,
}

/// Where the entries of a slab are.
#[derive(Debug, Default)]
pub(super) struct Levels(Option<Opened>);

#[derive(Debug)]
struct Opened {
    slab: u32,
    /// That of the young entries these levels go with.
    generation: u64,
    frozen: Option<Arc<Young>>,
    segments: Vec<Level>,
}

/// The part of a range that is left to read.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    low: Vec<u8>,
    high: Vec<u8>,
    is_reverse: bool,
    visited: u64,
}

impl IndexRange {
    /// Keys between two bounds at a revision, which the index follows the records to first.
    pub(crate) fn new(
        (tree, index): (Arc<Tree>, Arc<Index>),
        revision: u32,
        (low, high): (Bound<Vec<u8>>, Bound<Vec<u8>>),
        is_reverse: bool,
    ) -> Self {
        let walk = Walk::new(low, high, is_reverse);
        Self { tree, index, revision, walk, levels: Levels::default() }
    }

    /// The next keys with the ordinals of their records; none at the end.
    pub(crate) fn next(&mut self, limit: usize) -> Result<Vec<(Box<[u8]>, u64)>> {
        let mut page = Vec::new();
        while page.len() < limit {
            let of = (self.index.as_ref(), self.tree.as_ref());
            match self.walk.next(&mut self.levels, of, self.revision) {
                Ok(Some(found)) => page.push(found),
                Ok(None) => break,
                // Something was purged, and what was known of the records with it.
                Err(error) if error.kind() == ErrorKind::Busy && self.is_behind() => {
                    self.index.follow(&self.tree, self.revision, &mut || Ok(()))?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(page)
    }

    /// Entries looked at so far.
    pub(crate) fn visited(&self) -> u64 {
        self.walk.visited
    }

    fn is_behind(&self) -> bool {
        self.index.state(&self.tree).facts.watermark < self.revision
    }
}

impl Walk {
    pub(super) fn new(low: Bound<Vec<u8>>, high: Bound<Vec<u8>>, is_reverse: bool) -> Self {
        let low = match low {
            Bound::Included(key) => key,
            Bound::Excluded(key) => [key.as_slice(), &BEHIND_KEY].concat(),
            Bound::Unbounded => Vec::new(),
        };
        let high = match high {
            Bound::Included(key) => [key.as_slice(), &BEHIND_KEY].concat(),
            Bound::Excluded(key) => key,
            Bound::Unbounded => END.to_vec(),
        };
        Self { low, high, is_reverse, visited: 0 }
    }

    /// The next key that a record has at a revision.
    pub(super) fn next(
        &mut self,
        levels: &mut Levels,
        of: (&Index, &Tree),
        revision: u32,
    ) -> Result<Option<(Box<[u8]>, u64)>> {
        loop {
            let step = if self.is_reverse {
                self.step_back(levels, of, revision)
            } else {
                self.step(levels, of, revision)
            };
            match step? {
                Step::There(group) => {
                    let (key, ordinal) = cell::split(&group);
                    return Ok(Some((key.into(), ordinal)));
                }
                Step::Gone => {}
                Step::End => return Ok(None),
            }
        }
    }

    fn step(&mut self, levels: &mut Levels, of: (&Index, &Tree), revision: u32) -> Result<Step> {
        let found = levels.at_or_after(of, revision, &self.low)?;
        let Some((entry, begins)) = found.filter(|(entry, _)| **entry < *self.high) else {
            return Ok(Step::End);
        };
        self.visited += 1;
        let group = cell::group(&entry);
        if cell::revision(&entry) > revision {
            // However much happened to it since, what was so then is one look-up away.
            self.low = cell::place(group, revision);
            return Ok(Step::Gone);
        }
        self.low = cell::behind(group);
        Ok(if begins { Step::There(group.into()) } else { Step::Gone })
    }

    fn step_back(
        &mut self,
        levels: &mut Levels,
        of: (&Index, &Tree),
        revision: u32,
    ) -> Result<Step> {
        let found = levels.before(of, revision, &self.high)?;
        let Some((oldest, _)) = found.filter(|(entry, _)| **entry >= *self.low) else {
            return Ok(Step::End);
        };
        self.visited += 1;
        let group = cell::group(&oldest).to_vec();
        if cell::revision(&oldest) > revision {
            self.high = group;
            return Ok(Step::Gone);
        }
        let newest = levels.at_or_after(of, revision, &cell::place(&group, revision))?;
        self.visited += 1;
        let is_there = newest.is_some_and(|(entry, begins)| begins && cell::group(&entry) == group);
        self.high.clone_from(&group);
        Ok(if is_there { Step::There(group.into()) } else { Step::Gone })
    }
}

enum Step {
    /// The record has the key.
    There(Box<[u8]>),
    /// It has it before or after, not then.
    Gone,
    End,
}

impl Levels {
    /// The first entry at or after a place.
    fn at_or_after(
        &mut self,
        of: (&Index, &Tree),
        revision: u32,
        place: &[u8],
    ) -> Result<Option<Entry>> {
        let mut best = None;
        let (opened, young) =
            self.opened(of, revision, |young, slab| young.at_or_after(slab, place).map(owned))?;
        let frozen = opened.frozen.as_ref();
        let frozen = frozen.and_then(|frozen| frozen.at_or_after(opened.slab, place)).map(owned);
        for found in young.into_iter().chain(frozen) {
            keep(&mut best, (&found.0, found.1), |new, old| new < old);
        }
        for level in &mut opened.segments {
            if let Some(found) = level.at_or_after(place)? {
                keep(&mut best, found, |new, old| new < old);
            }
        }
        Ok(best)
    }

    /// The last entry before a place.
    fn before(
        &mut self,
        of: (&Index, &Tree),
        revision: u32,
        place: &[u8],
    ) -> Result<Option<Entry>> {
        let mut best = None;
        let (opened, young) =
            self.opened(of, revision, |young, slab| young.before(slab, place).map(owned))?;
        let frozen = opened.frozen.as_ref();
        let frozen = frozen.and_then(|frozen| frozen.before(opened.slab, place)).map(owned);
        for found in young.into_iter().chain(frozen) {
            keep(&mut best, (&found.0, found.1), |new, old| new > old);
        }
        for level in &mut opened.segments {
            if let Some(found) = level.before(place)? {
                keep(&mut best, found, |new, old| new > old);
            }
        }
        Ok(best)
    }

    /// The levels, opened if they are not or if young entries went elsewhere since, and what
    /// `look` finds among the young entries.
    fn opened(
        &mut self,
        (index, tree): (&Index, &Tree),
        revision: u32,
        look: impl Fn(&Young, u32) -> Option<Entry>,
    ) -> Result<(&mut Opened, Option<Entry>)> {
        let young = loop {
            let state = index.state(tree);
            if let Some(opened) = &self.0
                && opened.generation == state.generation
            {
                break look(&state.young, opened.slab);
            }
            let slab = state.facts.slab(revision);
            let slab = slab.filter(|_| revision <= state.facts.watermark).ok_or_else(changed)?;
            let generation = state.generation;
            let frozen = state.frozen.as_ref().map(|(young, _)| Arc::clone(young));
            // With the young entries, so that none goes into a segment in between.
            let live = tree.cells.live();
            drop(state);
            let segments = levels_of(&live, &cell_key::index_slab(tree.id(), index.id, slab))?;
            self.0 = Some(Opened { slab, generation, frozen, segments });
        };
        self.0.as_mut().map(|opened| (opened, young)).ok_or_else(changed)
    }
}

/// The segments that may have cells whose keys begin so.
fn levels_of(live: &LiveSegments, prefix: &[u8]) -> Result<Vec<Level>> {
    let hash = KeyHash::of_tree(prefix);
    let mut levels = Vec::new();
    for segment in live.segments() {
        if hash.map_or(Ok(true), |hash| segment.may_have(hash))? {
            levels.push(Level::new(segment, live.cache(), prefix));
        }
    }
    Ok(levels)
}

/// Keeps the better one of two entries.
fn keep(best: &mut Option<Entry>, new: (&[u8], bool), is_better: impl Fn(&[u8], &[u8]) -> bool) {
    if best.as_ref().is_none_or(|(old, _)| is_better(new.0, old)) {
        *best = Some((new.0.into(), new.1));
    }
}

fn owned((entry, begins): (&[u8], bool)) -> Entry {
    (entry.into(), begins)
}

#[cold]
fn changed() -> Error {
    let message = "the index was made anew while it was read: read again";
    Error::new(ErrorKind::Busy, message)
}
