//! Entries of one slab in one segment, found by their places.

use std::sync::Arc;

use crate::error::Result;
use crate::index::cell::Entries;
use crate::segment::{BlockCache, CellPosition, Segment};

/// A place that moves through the cells of a slab in a segment.
#[derive(Debug)]
pub(super) struct Level {
    segment: Arc<Segment>,
    cache: Arc<BlockCache>,
    /// What the keys of the cells begin with.
    prefix: Vec<u8>,
    /// The cell that was decoded last.
    at: Option<CellPosition>,
    entries: Entries,
}

impl Level {
    pub(super) fn new(segment: &Arc<Segment>, cache: &Arc<BlockCache>, prefix: &[u8]) -> Self {
        let (segment, cache) = (Arc::clone(segment), Arc::clone(cache));
        Self { segment, cache, prefix: prefix.to_vec(), at: None, entries: Entries::default() }
    }

    /// The first entry at or after a place.
    pub(super) fn at_or_after(&mut self, place: &[u8]) -> Result<Option<(&[u8], bool)>> {
        if !self.has_around(place) {
            self.find(place)?;
        }
        let mut index = self.entries.at_or_after(place);
        if index >= self.entries.len() {
            let Some(at) = self.at else { return Ok(None) };
            self.load(self.next(at)?)?;
            index = 0;
        }
        Ok(self.entries.get(index))
    }

    /// The last entry before a place.
    pub(super) fn before(&mut self, place: &[u8]) -> Result<Option<(&[u8], bool)>> {
        if !self.has_around(place) {
            self.find(place)?;
        }
        let mut index = self.entries.at_or_after(place);
        if index == 0 {
            let Some(at) = self.at else { return Ok(None) };
            self.load(self.previous(at)?)?;
            index = self.entries.len();
        }
        Ok(index.checked_sub(1).and_then(|last| self.entries.get(last)))
    }

    /// Whether the cell at hand has entries on both sides of a place.
    fn has_around(&self, place: &[u8]) -> bool {
        let index = self.entries.at_or_after(place);
        index > 0 && index < self.entries.len()
    }

    /// Decodes the cell that a place is in: the last one that begins at or before it, or else the
    /// first of all.
    fn find(&mut self, place: &[u8]) -> Result<()> {
        let key = [self.prefix.as_slice(), place].concat();
        let before = self.segment.at_or_before(&self.cache, &key)?;
        if before.is_some() && self.load(before)? {
            return Ok(());
        }
        let first = self.segment.at_or_after(&self.cache, &self.prefix)?;
        let first = self.existing(first)?;
        self.load(first)?;
        Ok(())
    }

    /// Decodes the cell at a position; false, and nothing is at hand, if none of the slab is there.
    fn load(&mut self, at: Option<CellPosition>) -> Result<bool> {
        if at.is_some() && at == self.at {
            return Ok(true);
        }
        let found = at.map(|at| self.segment.cell_at(&self.cache, at)).transpose()?.flatten();
        let Some((_, handle)) = found.filter(|(key, _)| key.starts_with(&self.prefix)) else {
            (self.at, self.entries) = (None, Entries::default());
            return Ok(false);
        };
        self.entries = Entries::decode(&handle.load()?)?;
        self.at = at;
        Ok(true)
    }

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
