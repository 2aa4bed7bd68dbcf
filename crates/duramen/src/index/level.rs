//! Entries of one slab in one place, a run in memory or a segment, found by their places.

use std::sync::Arc;

use crate::error::Result;
use crate::index::cell::{self, Entries};
use crate::segment::{BlockCache, CellPosition, Segment};

/// Entries of a run that are looked at to tell how many groups there are.
const SAMPLED: usize = 64;

/// A place that moves through the entries of a slab.
#[derive(Debug)]
pub(super) struct Level {
    /// The run, or those of the cell that was decoded last.
    entries: Arc<Entries>,
    /// Where the last search among them ended.
    index: usize,
    /// What was found there: that one, or the one before.
    found: Option<usize>,
    /// Where all entries are, if not in memory.
    cells: Option<LevelCells>,
}

/// The cells of a slab in a segment.
#[derive(Debug)]
struct LevelCells {
    segment: Arc<Segment>,
    cache: Arc<BlockCache>,
    /// What their keys begin with.
    prefix: Vec<u8>,
    /// The cell that was decoded last.
    at: Option<CellPosition>,
    /// Whether no cell of the slab is before that one, or behind it, as far as is known.
    is_first: bool,
    is_last: bool,
}

impl Level {
    /// A run in memory.
    pub(super) fn of_run(run: &Arc<Entries>) -> Self {
        Self { entries: Arc::clone(run), index: 0, found: None, cells: None }
    }

    /// The cells of a segment whose keys begin so.
    pub(super) fn of_segment(
        segment: &Arc<Segment>,
        cache: &Arc<BlockCache>,
        prefix: &[u8],
    ) -> Self {
        let (segment, cache, prefix) = (Arc::clone(segment), Arc::clone(cache), prefix.to_vec());
        let cells =
            LevelCells { segment, cache, prefix, at: None, is_first: false, is_last: false };
        Self { entries: Arc::default(), index: 0, found: None, cells: Some(cells) }
    }

    /// About how many groups of a run in memory have entries between two places: as many as there
    /// are entries, but for those that a sample finds to follow another one of their group.
    pub(super) fn in_memory(&self, low: &[u8], high: &[u8]) -> usize {
        if self.cells.is_some() {
            return 0;
        }
        let first = self.entries.at_or_after(low, self.index);
        let count = self.entries.at_or_after(high, self.entries.len()).saturating_sub(first);
        let sampled = count.min(SAMPLED);
        let group = |index| self.entries.get(index).map(|(entry, _)| cell::group(entry));
        let begins = |sample: &usize| {
            let index = first + sample * count / sampled;
            index == first || group(index) != group(index - 1)
        };
        let begun = (0..sampled).filter(begins).count();
        count * begun / sampled.max(1)
    }

    /// What was found last.
    #[inline]
    pub(super) fn found(&self) -> Option<(&[u8], bool)> {
        self.entries.get(self.found?)
    }

    /// What follows it so many entries later, in order or in the reverse, if that is at hand.
    #[inline]
    pub(super) fn following(&self, count: usize, is_reverse: bool) -> Option<(&[u8], bool)> {
        let found = self.found?;
        self.entries.get(if is_reverse { found.checked_sub(count)? } else { found + count })
    }

    /// Goes to what follows it so many entries later, which is at hand.
    pub(super) fn pass(&mut self, count: usize, is_reverse: bool) {
        let Some(found) = &mut self.found else { return };
        if is_reverse {
            *found -= count;
            self.index -= count;
        } else {
            *found += count;
            self.index += count;
        }
    }

    /// Whether there is surely no other entry of the group of one, the last before the place that
    /// was looked for in all levels.
    pub(super) fn has_no_other(&self, entry: &[u8]) -> bool {
        let Some((last, _)) = self.found() else { return true };
        if last != entry {
            return !cell::is_same_group(last, entry);
        }
        match self.index.checked_sub(2).and_then(|before| self.entries.get(before)) {
            Some((before, _)) => !cell::is_same_group(before, entry),
            // The cell before may end with one.
            None => self.cells.is_none(),
        }
    }

    /// Finds the first entry at or after a place that is not before the one of the last search,
    /// which was for the first at or after it as well.
    #[inline]
    pub(super) fn go_on(&mut self, place: &[u8]) -> Result<()> {
        let is_before = |index| self.entries.get(index).map(|(entry, _)| entry < place);
        let Some(found) = self.found else { return Ok(()) };
        if is_before(found) == Some(false) {
            return Ok(());
        }
        if is_before(found + 1) == Some(false) {
            (self.index, self.found) = (found + 1, Some(found + 1));
            return Ok(());
        }
        self.find(place, false)
    }

    /// Finds the first entry at or after a place, or the last one before it.
    pub(super) fn find(&mut self, place: &[u8], is_before: bool) -> Result<()> {
        self.index = self.entries.at_or_after(place, self.index);
        if !self.is_certain() {
            self.find_cell(place)?;
            self.index = self.entries.at_or_after(place, self.index);
        }
        if is_before && self.index == 0 && self.turn(is_before)? {
            self.index = self.entries.len();
        } else if !is_before && self.index == self.entries.len() && self.turn(is_before)? {
            self.index = 0;
        }
        self.found = if is_before {
            self.index.checked_sub(1)
        } else {
            (self.index < self.entries.len()).then_some(self.index)
        };
        Ok(())
    }

    /// Whether the place is surely in the cell at hand, or beyond the last one there is.
    fn is_certain(&self) -> bool {
        let Some(cells) = &self.cells else { return true };
        let is_behind_first = self.index > 0 || cells.is_first;
        let is_before_last = self.index < self.entries.len() || cells.is_last;
        is_behind_first && is_before_last
    }

    /// Decodes the cell that a place is in: the last one that begins at or before it, or else the
    /// first of all.
    fn find_cell(&mut self, place: &[u8]) -> Result<()> {
        let Some(cells) = &self.cells else { return Ok(()) };
        let key = [cells.prefix.as_slice(), place].concat();
        let before = cells.segment.at_or_before(&cells.cache, &key)?;
        if before.is_some() && self.load(before)? {
            return Ok(());
        }
        let Some(cells) = &self.cells else { return Ok(()) };
        let first = cells.segment.at_or_after(&cells.cache, &cells.prefix)?;
        let first = cells.existing(first)?;
        let is_there = self.load(first)?;
        if let Some(cells) = &mut self.cells {
            cells.is_first = true;
            cells.is_last |= !is_there;
        }
        Ok(())
    }

    /// Decodes the next cell, or the one before; false if there is none.
    fn turn(&mut self, is_before: bool) -> Result<bool> {
        let Some(cells) = &self.cells else { return Ok(false) };
        let Some(at) = cells.at else { return Ok(false) };
        let is_end = if is_before { cells.is_first } else { cells.is_last };
        let next = match is_before {
            _ if is_end => None,
            true => cells.previous(at)?,
            false => cells.next(at)?,
        };
        if self.load(next)? {
            return Ok(true);
        }
        if let Some(cells) = &mut self.cells {
            let end = if is_before { &mut cells.is_first } else { &mut cells.is_last };
            *end = true;
        }
        Ok(false)
    }

    /// Decodes the cell at a position; false, and what is at hand stays, if none of the slab is
    /// there.
    fn load(&mut self, at: Option<CellPosition>) -> Result<bool> {
        let Some(cells) = &mut self.cells else { return Ok(false) };
        let Some(at) = at else { return Ok(false) };
        if cells.at == Some(at) {
            return Ok(true);
        }
        let found = cells.segment.cell_at(&cells.cache, at)?;
        let Some((_, handle)) = found.filter(|(key, _)| key.starts_with(&cells.prefix)) else {
            return Ok(false);
        };
        self.entries = Arc::new(Entries::decode(&handle.load()?)?);
        (cells.at, cells.is_first, cells.is_last) = (Some(at), false, false);
        Ok(true)
    }
}

impl LevelCells {
    /// A position, or the first of the next block if it is behind the last cell of its own.
    fn existing(&self, at: CellPosition) -> Result<Option<CellPosition>> {
        let Some((entry, _)) = self.segment.entry(at.block)? else { return Ok(None) };
        let is_there = at.slot < usize::from(entry.cells.get());
        Ok(Some(if is_there { at } else { CellPosition { block: at.block + 1, slot: 0 } }))
    }

    fn next(&self, at: CellPosition) -> Result<Option<CellPosition>> {
        self.existing(CellPosition { slot: at.slot + 1, ..at })
    }

    fn previous(&self, at: CellPosition) -> Result<Option<CellPosition>> {
        if let Some(slot) = at.slot.checked_sub(1) {
            return Ok(Some(CellPosition { slot, ..at }));
        }
        let Some(block) = at.block.checked_sub(1) else { return Ok(None) };
        let entry = self.segment.entry(block)?;
        let last = entry.and_then(|(entry, _)| entry.cells.get().checked_sub(1));
        Ok(last.map(|slot| CellPosition { block, slot: slot.into() }))
    }
}
