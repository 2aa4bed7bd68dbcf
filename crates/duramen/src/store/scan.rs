//! Cells under one prefix over several segments, in key order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
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
    /// Newest first, as the segments are.
    cursors: Vec<Cursor>,
    /// The next key of each cursor that has one; of equal keys the newest cursor's is first.
    heads: BinaryHeap<Reverse<(Bytes, usize)>>,
}

/// A position that moves through one segment.
#[derive(Debug)]
struct Cursor {
    segment: Arc<Segment>,
    cache: Arc<BlockCache>,
    at: CellPosition,
    /// The block at `at`, once a key of it was needed.
    cells: Option<CellBlock>,
    /// The cell of the cursor's key in the heap.
    head: Option<CellHandle>,
}

impl Scan {
    pub(super) fn new(live: &LiveSegments, prefix: &[u8]) -> Result<Self> {
        let tree = KeyHash::of_tree(prefix);
        let mut scan =
            Self { prefix: prefix.to_vec(), cursors: Vec::new(), heads: BinaryHeap::new() };
        for segment in live.segments() {
            if tree.map_or(Ok(true), |tree| segment.may_have(tree))? {
                let (segment, cache) = (Arc::clone(segment), Arc::clone(live.cache()));
                let at = segment.at_or_after(&cache, prefix)?;
                scan.cursors.push(Cursor { segment, cache, at, cells: None, head: None });
                scan.advance(scan.cursors.len() - 1)?;
            }
        }
        Ok(scan)
    }

    /// Goes on at the first key at or after `key`, if it has not come as far yet.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        for Reverse((head, cursor)) in std::mem::take(&mut self.heads) {
            if *head >= *key {
                self.heads.push(Reverse((head, cursor)));
                continue;
            }
            self.cursors[cursor].seek(key)?;
            self.advance(cursor)?;
        }
        Ok(())
    }

    /// Moves a cursor to its next cell and its key into the heap.
    fn advance(&mut self, cursor: usize) -> Result<()> {
        if let Some(key) = self.cursors[cursor].next_key(&self.prefix)? {
            self.heads.push(Reverse((key, cursor)));
        }
        Ok(())
    }

    fn next_cell(&mut self) -> Result<Option<(Bytes, CellHandle)>> {
        let Some(Reverse((key, newest))) = self.heads.pop() else { return Ok(None) };
        let handle = self.cursors[newest].head.take();
        self.advance(newest)?;
        while let Some(Reverse((other, older))) = self.heads.peek() {
            if *other != key {
                break;
            }
            let older = *older;
            self.heads.pop();
            self.advance(older)?;
        }
        Ok(handle.map(|handle| (key, handle)))
    }
}

impl Iterator for Scan {
    type Item = Result<(Bytes, CellHandle)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_cell();
        if next.is_err() {
            self.heads.clear();
        }
        next.transpose()
    }
}

impl Cursor {
    /// Moves to the first cell at or after `key`.
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.at = self.segment.at_or_after(&self.cache, key)?;
        self.cells = None;
        Ok(())
    }

    /// The key at the cursor if it has the prefix, its cell in `head`; then the cursor moves on.
    fn next_key(&mut self, prefix: &[u8]) -> Result<Option<Bytes>> {
        while let Some((entry, fence)) = self.segment.entry(self.at.block)? {
            if self.at.slot >= usize::from(entry.cells.get()) {
                self.at = CellPosition { block: self.at.block + 1, slot: 0 };
                self.cells = None;
                continue;
            }
            // Keys are not below their fence: a fence past the prefix spares reading the block.
            if fence > prefix && !fence.starts_with(prefix) {
                return Ok(None);
            }
            let key = if entry.is_single() {
                self.head = Some(CellHandle::apart(&self.segment, &self.cache, self.at.block));
                fence
            } else {
                let cells = match self.cells.take() {
                    Some(cells) => cells,
                    None => self.segment.block(&self.cache, self.at.block)?,
                };
                let cells = self.cells.insert(cells);
                self.head = Some(CellHandle::read(cells.cell(self.at.slot)));
                cells.key(self.at.slot)
            };
            self.at.slot += 1;
            return Ok(key.starts_with(prefix).then_some(key));
        }
        Ok(None)
    }
}
