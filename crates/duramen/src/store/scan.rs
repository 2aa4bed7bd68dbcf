//! Cells under one prefix over several segments, in key order.

use std::sync::Arc;

use bytes::Bytes;

use super::LiveSegments;
use crate::Result;
use crate::segment::{BlockCache, CellBlock, CellHandle, CellPosition, KeyHash, Segment};

/// An iterator over keys and cells; of a key in several segments the newest one's cell. It ends
/// after the first error.
#[derive(Debug)]
pub(crate) struct Scan {
    prefix: Vec<u8>,
    blocks: Blocks,
    /// Newest first, as the segments are. They are few, so the least of their keys is looked for
    /// among all of them.
    cursors: Vec<Cursor>,
}

/// What becomes of the blocks that a scan reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocks {
    /// They stay in the cache.
    Stay,
    /// They go: of what is read in them all is kept elsewhere.
    Pass,
}

/// A position that moves through one segment.
#[derive(Debug)]
struct Cursor {
    segment: Arc<Segment>,
    cache: Arc<BlockCache>,
    at: CellPosition,
    /// The block at `at`, once a key of it was needed.
    block: Option<OpenBlock>,
    /// The key and the cell that come next.
    head: Option<(Bytes, CellHandle)>,
}

/// A block that a cursor is in.
#[derive(Debug)]
enum OpenBlock {
    /// Its only key is its fence, so it was not read.
    Single(Bytes),
    Cells(CellBlock),
    /// All keys of the block have the prefix.
    OwnCells(CellBlock),
}

impl Scan {
    /// The cells whose keys begin with `prefix`, of segments that may have keys that begin with
    /// `all`.
    pub(super) fn new(
        live: &LiveSegments,
        (all, prefix): (&[u8], &[u8]),
        blocks: Blocks,
    ) -> Result<Self> {
        let tree = KeyHash::of_tree(all);
        let mut scan = Self { prefix: prefix.to_vec(), blocks, cursors: Vec::new() };
        for segment in live.segments() {
            if segment.may_have_prefix(all, tree)? {
                let (segment, cache) = (Arc::clone(segment), Arc::clone(live.cache()));
                let at = segment.at_or_after(&cache, prefix)?;
                let mut cursor = Cursor { segment, cache, at, block: None, head: None };
                cursor.advance(prefix, blocks)?;
                scan.cursors.push(cursor);
            }
        }
        Ok(scan)
    }

    /// Having come to its end, goes on with the keys right behind: those with another prefix.
    pub(crate) fn turn_to(&mut self, prefix: &[u8]) -> Result<()> {
        self.prefix.clear();
        self.prefix.extend_from_slice(prefix);
        self.cursors.iter_mut().try_for_each(|cursor| cursor.advance(prefix, self.blocks))
    }

    /// Goes on at the first key at or after `key`, if it has not come as far yet.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        for cursor in &mut self.cursors {
            if cursor.head.as_ref().is_some_and(|(head, _)| *head < *key) {
                cursor.seek(key)?;
                cursor.advance(&self.prefix, self.blocks)?;
            }
        }
        Ok(())
    }

    fn next_cell(&mut self) -> Result<Option<(Bytes, CellHandle)>> {
        let heads = self.cursors.iter().enumerate();
        let heads = heads.filter_map(|(at, cursor)| Some((&cursor.head.as_ref()?.0, at)));
        // Of equal keys the first, which is the newest.
        let Some((_, newest)) = heads.min() else { return Ok(None) };
        let (_, from) = self.cursors.split_at_mut(newest);
        let Some((cursor, older)) = from.split_first_mut() else { return Ok(None) };
        let Some((key, handle)) = cursor.head.take() else { return Ok(None) };
        cursor.advance(&self.prefix, self.blocks)?;
        for cursor in older {
            if cursor.head.as_ref().is_some_and(|(head, _)| *head == key) {
                cursor.advance(&self.prefix, self.blocks)?;
            }
        }
        Ok(Some((key, handle)))
    }
}

impl Iterator for Scan {
    type Item = Result<(Bytes, CellHandle)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_cell();
        if next.is_err() {
            self.cursors.clear();
        }
        next.transpose()
    }
}

impl Cursor {
    /// Moves to the first cell at or after `key`, which is not before it.
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        if let Some(OpenBlock::Cells(cells) | OpenBlock::OwnCells(cells)) = &self.block {
            self.at.slot = cells.at_or_after(key);
            if self.at.slot < cells.len() {
                return Ok(());
            }
        }
        self.at = self.segment.at_or_after(&self.cache, key)?;
        self.block = None;
        Ok(())
    }

    /// Takes the cell at the cursor as the next one and moves on, if its key has the prefix.
    fn advance(&mut self, prefix: &[u8], blocks: Blocks) -> Result<()> {
        self.head = None;
        loop {
            let CellPosition { block, slot } = self.at;
            let open = match &mut self.block {
                Some(open) => open,
                closed => {
                    let from = (&*self.segment, &*self.cache, blocks);
                    let Some(open) = OpenBlock::open(from, block, prefix)? else { return Ok(()) };
                    closed.insert(open)
                }
            };
            if slot >= open.len() {
                self.at = CellPosition { block: block + 1, slot: 0 };
                self.block = None;
                continue;
            }
            let (key, handle) = match open {
                OpenBlock::Single(fence) => {
                    (fence.clone(), CellHandle::apart(&self.segment, &self.cache, block))
                }
                OpenBlock::Cells(cells) => {
                    let (key, cell) = cells.key_and_cell(slot);
                    (key, CellHandle::read(cell))
                }
                OpenBlock::OwnCells(cells) => {
                    let (key, cell) = cells.key_and_cell(slot);
                    (key, CellHandle::read_among_its_own(cell))
                }
            };
            if key.starts_with(prefix) {
                self.at.slot += 1;
                self.head = Some((key, handle));
            }
            return Ok(());
        }
    }
}

impl OpenBlock {
    /// The block with a number, unless it is past the last one or past the keys with a prefix.
    fn open(
        (segment, cache, blocks): (&Segment, &BlockCache, Blocks),
        block: usize,
        prefix: &[u8],
    ) -> Result<Option<Self>> {
        let Some((entry, fence)) = segment.entry(block)? else { return Ok(None) };
        // Keys are not below their fence: a fence past the prefix spares reading the block.
        if fence > prefix && !fence.starts_with(prefix) {
            return Ok(None);
        }
        if entry.is_single() {
            return Ok(Some(Self::Single(fence)));
        }
        let cells = match blocks {
            Blocks::Stay => segment.block(cache, block)?,
            Blocks::Pass => segment.block_in_passing(cache, block)?,
        };
        let has_prefix = |slot: usize| cells.key_bytes(slot).starts_with(prefix);
        let is_own = has_prefix(0) && has_prefix(cells.len() - 1);
        Ok(Some(if is_own { Self::OwnCells(cells) } else { Self::Cells(cells) }))
    }

    fn len(&self) -> usize {
        match self {
            Self::Single(_) => 1,
            Self::Cells(cells) | Self::OwnCells(cells) => cells.len(),
        }
    }
}
