//! Reads the entries of an index that are there at a revision, in order.

use std::ops::Bound;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::index::cell;
use crate::index::level::Level;
use crate::index::{Index, dropped};
use crate::segment::KeyHash;
use crate::store::LiveSegments;
use crate::tree::Tree;
use crate::tree::cell_key;
use crate::tree::record_keys::KeyPage;

/// A place behind all entries.
const END: &[u8] = &[0xff];

/// A place behind all entries of a key, and of those that it begins.
const BEHIND_KEY: [u8; 13] = [0xff; 13];

/// Keys that a page is given room for at first.
const PAGE_KEYS: usize = 256;

/// The keys that records have in an index at a revision, in their order.
#[derive(Debug)]
pub(crate) struct IndexRange {
    tree: Arc<Tree>,
    index: Arc<Index>,
    revision: u32,
    walk: Walk,
    levels: Levels,
}

/// Where the entries of a slab are, for reads at one revision.
#[derive(Debug, Default)]
pub(super) struct Levels {
    /// That of the young entries these levels go with; none before they are opened.
    generation: Option<u64>,
    /// What had been erased when they were opened.
    erasures: u64,
    /// The newest first.
    opened: Vec<Level>,
    /// Whether each stands at the first entry at or after the place that was looked for last.
    is_at_place: bool,
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

    /// The same, with its entries found: they are read also if the index is dropped meanwhile and
    /// its cells go.
    pub(crate) fn pinned(mut self) -> Result<Self> {
        match self.levels.open((&self.index, &self.tree), self.revision) {
            // What was purged meanwhile is followed again by whoever reads.
            Err(error) if error.kind() == ErrorKind::Busy && self.is_behind() => Ok(self),
            opened => opened.map(|()| self),
        }
    }

    /// The next keys with the ordinals of their records; none at the end.
    pub(crate) fn next(&mut self, limit: usize) -> Result<KeyPage> {
        let page = || KeyPage::with_capacity(limit.min(PAGE_KEYS));
        self.page((limit, &page), KeyPage::push)
    }

    /// The ordinals of the records that have the next keys; none at the end.
    pub(crate) fn next_ordinals(&mut self, limit: usize) -> Result<Vec<u64>> {
        self.page((limit, &Vec::new), |page, _, ordinal| page.push(ordinal))
    }

    fn page<P>(
        &mut self,
        (limit, new): (usize, &impl Fn() -> P),
        add: impl Fn(&mut P, &[u8], u64),
    ) -> Result<P> {
        let place = self.walk.clone();
        loop {
            let erasures = self.tree.erasures();
            let mut page = new();
            let read = self.read(limit, &mut |key, ordinal| add(&mut page, key, ordinal));
            // What was purged meanwhile may be in it.
            if self.tree.erasures() != erasures {
                self.walk = Walk { visited: self.walk.visited, ..place.clone() };
                self.levels = Levels::default();
                continue;
            }
            match read {
                Ok(()) => return Ok(page),
                // What was known of the records went with what was purged.
                Err(error) if error.kind() == ErrorKind::Busy && self.is_behind() => {
                    self.index.follow(&self.tree, self.revision, &mut || Ok(()))?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn read(&mut self, limit: usize, found: &mut dyn FnMut(&[u8], u64)) -> Result<()> {
        self.levels.open((&self.index, &self.tree), self.revision)?;
        let mut left = limit;
        while left > 0 {
            match self.walk.next(&mut self.levels, (self.revision, left), found)? {
                0 => break,
                more => left -= more,
            }
        }
        Ok(())
    }

    /// About how many records have keys in memory that are left to read, those included that had
    /// them at another revision. Errors are left to reading.
    pub(crate) fn in_memory(&mut self) -> usize {
        if self.levels.open((&self.index, &self.tree), self.revision).is_err() {
            return 0;
        }
        let Walk { low, high, .. } = &self.walk;
        self.levels.opened.iter().map(|level| level.in_memory(low, high)).sum()
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

    /// Hands over the next keys that records have at a revision, and their ordinals: one, and as
    /// many behind it as are found with it, at most so many. How many; none at the end.
    pub(super) fn next(
        &mut self,
        levels: &mut Levels,
        (revision, most): (u32, usize),
        found: &mut dyn FnMut(&[u8], u64),
    ) -> Result<usize> {
        loop {
            if self.is_reverse {
                levels.find(&self.high, true)?;
            } else {
                levels.go_on(&self.low)?;
            }
            let Some(nearest) = levels.nearest(self.is_reverse) else { return Ok(0) };
            let Some((entry, begins)) = nearest.level.found() else { return Ok(0) };
            let is_left = if self.is_reverse { *entry >= *self.low } else { *entry < *self.high };
            if !is_left {
                return Ok(0);
            }
            self.visited += 1;
            // Its oldest entry is what a reverse walk finds first, and most often the only one.
            let is_only =
                !self.is_reverse || levels.opened.iter().all(|level| level.has_no_other(entry));
            let is_there = if self.is_reverse {
                self.high.clear();
                self.high.extend_from_slice(cell::group(entry));
                self.visited += u64::from(cell::revision(entry) <= revision);
                cell::revision(entry) <= revision && begins
            } else if cell::revision(entry) > revision {
                // However much happened to it since, what was so then is one look-up away.
                cell::set_place(&mut self.low, cell::group(entry), revision);
                continue;
            } else {
                cell::set_place(&mut self.low, cell::group(entry), 0);
                begins
            };
            if is_only && is_there {
                give(cell::group(entry), found);
                let more = self.go_along(&nearest, (revision, most.saturating_sub(1)), found);
                let at = nearest.at;
                levels.pass(at, more, self.is_reverse);
                return Ok(1 + more);
            }
            if !is_only && cell::revision(entry) <= revision && self.is_begun(levels, revision)? {
                give(&self.high, found);
                return Ok(1);
            }
        }
    }

    /// Hands over what follows an entry in its level, as far as it is at hand, nothing of other
    /// levels comes before it, and nothing else has to be known to say that it is there. How much.
    fn go_along(
        &mut self,
        nearest: &Nearest<'_>,
        (revision, most): (u32, usize),
        found: &mut dyn FnMut(&[u8], u64),
    ) -> usize {
        let is_reverse = self.is_reverse;
        let Some((mut last, _)) = nearest.level.found() else { return 0 };
        let is_next = |entry: &[u8]| {
            nearest.is_before_others(entry, is_reverse)
                && if is_reverse { *entry >= *self.low } else { *entry < *self.high }
        };
        // Where the last one is, all before it are.
        let is_long =
            nearest.level.following(most, is_reverse).is_some_and(|(end, _)| is_next(end));
        let mut count = 0;
        while count < most
            && let Some((entry, true)) = nearest.level.following(count + 1, is_reverse)
            && cell::revision(entry) <= revision
            && (is_long || is_next(entry))
            && !cell::is_same_group(entry, last)
        {
            if is_reverse {
                // One that happened later to the record would be before it.
                let before = nearest.level.following(count + 2, is_reverse);
                if before.is_none_or(|(before, _)| cell::is_same_group(before, entry)) {
                    break;
                }
            }
            give(cell::group(entry), found);
            (last, count) = (entry, count + 1);
        }
        if count > 0 && is_reverse {
            self.high.clear();
            self.high.extend_from_slice(cell::group(last));
        } else if count > 0 {
            cell::set_place(&mut self.low, cell::group(last), 0);
        }
        // A reverse walk looks at each twice.
        self.visited += count as u64 * if is_reverse { 2 } else { 1 };
        count
    }

    /// Whether the record of the group that a reverse walk came to has the key at a revision.
    fn is_begun(&mut self, levels: &mut Levels, revision: u32) -> Result<bool> {
        let mut place = Vec::with_capacity(self.high.len() + size_of::<u32>());
        cell::set_place(&mut place, &self.high, revision);
        levels.find(&place, false)?;
        let newest = levels.nearest(false).and_then(|nearest| nearest.level.found());
        Ok(newest.is_some_and(|(entry, begins)| begins && cell::group(entry) == self.high))
    }
}

impl Levels {
    /// Opens the levels that have all entries up to a revision, if they are not or if young
    /// entries went elsewhere since. Where the index was dropped, what was opened before has all
    /// that there is; [`was_dropped`](super::was_dropped) says of the error if nothing was.
    pub(super) fn open(&mut self, (index, tree): (&Index, &Tree), revision: u32) -> Result<()> {
        let state = index.state(tree);
        if self.generation == Some(state.generation) {
            return Ok(());
        }
        if index.is_dropped() {
            return self.stay_opened(state.erasures);
        }
        let slab = state.facts.slab(revision).filter(|_| revision <= state.facts.watermark);
        let slab = slab.ok_or_else(changed)?;
        let young = state.young.runs(slab).iter().rev();
        let frozen = state.frozen.as_ref().map_or(&[][..], |(frozen, _)| frozen.runs(slab));
        let mut opened: Vec<Level> = young.chain(frozen.iter().rev()).map(Level::of_run).collect();
        let (generation, erasures) = (state.generation, state.erasures);
        // With the young entries, so that none goes into a segment in between.
        let live = tree.cells.live();
        drop(state);
        opened.extend(levels_of(&live, &cell_key::index_slab(tree.id(), index.id, slab))?);
        // Its cells go after it is known to be dropped.
        if index.is_dropped() {
            return self.stay_opened(erasures);
        }
        *self = Self { generation: Some(generation), erasures, opened, is_at_place: false };
        Ok(())
    }

    /// Goes on with what was opened before the index was dropped, unless something of it has been
    /// erased since.
    fn stay_opened(&self, erasures: u64) -> Result<()> {
        let is_opened = self.generation.is_some() && self.erasures == erasures;
        if is_opened { Ok(()) } else { Err(dropped()) }
    }

    /// Finds in each level the first entry at or after a place, or the last one before it.
    fn find(&mut self, place: &[u8], is_before: bool) -> Result<()> {
        let found = self.opened.iter_mut().try_for_each(|level| level.find(place, is_before));
        self.is_at_place = !is_before && found.is_ok();
        found
    }

    /// Finds in each level the first entry at or after a place, which no place is behind that was
    /// looked for before: most levels stand there, and the others one entry before it.
    fn go_on(&mut self, place: &[u8]) -> Result<()> {
        if !self.is_at_place {
            return self.find(place, false);
        }
        let found = self.opened.iter_mut().try_for_each(|level| level.go_on(place));
        self.is_at_place = found.is_ok();
        found
    }

    /// The level with the first or the last of what was found.
    fn nearest(&self, is_last: bool) -> Option<Nearest<'_>> {
        let mut best: Option<Nearest<'_>> = None;
        for (at, level) in self.opened.iter().enumerate() {
            let Some((entry, _)) = level.found() else { continue };
            match &mut best {
                Some(best) if !best.is_behind(entry, is_last) => best.others_have(entry, is_last),
                best => {
                    let other = best.as_ref().and_then(|best| Some(best.level.found()?.0));
                    *best = Some(Nearest { at, level, other });
                }
            }
        }
        best
    }

    /// Goes past so many entries of a level behind the one that was found.
    fn pass(&mut self, at: usize, count: usize, is_reverse: bool) {
        if let Some(level) = self.opened.get_mut(at) {
            level.pass(count, is_reverse);
        }
    }
}

/// The level that has the next entry of all.
struct Nearest<'l> {
    at: usize,
    level: &'l Level,
    /// The next entry of the other levels.
    other: Option<&'l [u8]>,
}

impl<'l> Nearest<'l> {
    /// Whether an entry comes before the next one of the level.
    fn is_behind(&self, entry: &[u8], is_reverse: bool) -> bool {
        self.level.found().is_none_or(|(own, _)| comes_first(entry, own, is_reverse))
    }

    fn others_have(&mut self, entry: &'l [u8], is_reverse: bool) {
        if self.other.is_none_or(|other| comes_first(entry, other, is_reverse)) {
            self.other = Some(entry);
        }
    }

    /// Whether other levels have nothing that comes before an entry, and, for a reverse walk,
    /// nothing else of its group.
    fn is_before_others(&self, entry: &[u8], is_reverse: bool) -> bool {
        self.other.is_none_or(|other| {
            comes_first(entry, other, is_reverse)
                && !(is_reverse && cell::is_same_group(entry, other))
        })
    }
}

fn comes_first(entry: &[u8], other: &[u8], is_reverse: bool) -> bool {
    if is_reverse { entry > other } else { entry < other }
}

/// Hands over the key and the ordinal of a group.
fn give(group: &[u8], found: &mut dyn FnMut(&[u8], u64)) {
    let (key, ordinal) = cell::split(group);
    found(key, ordinal);
}

/// The segments that may have cells whose keys begin so.
fn levels_of(live: &LiveSegments, prefix: &[u8]) -> Result<Vec<Level>> {
    let hash = KeyHash::of_tree(prefix);
    let mut levels = Vec::new();
    for segment in live.segments() {
        if segment.may_have_prefix(prefix, hash)? {
            levels.push(Level::of_segment(segment, live.cache(), prefix));
        }
    }
    Ok(levels)
}

#[cold]
fn changed() -> Error {
    let message = "the index was made anew while it was read: read again";
    Error::new(ErrorKind::Busy, message)
}
