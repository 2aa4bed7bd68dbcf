//! A cell that a look-up found, its content perhaps still to be read.

use std::sync::Arc;

use bytes::Bytes;

use super::cache::BlockCache;
use super::reader::{CellPosition, Segment};
use crate::Result;

/// A cell of a segment, which the handle keeps open.
#[derive(Debug, Clone)]
pub(crate) struct CellHandle(Content);

#[derive(Debug, Clone)]
enum Content {
    /// Its block was read to find its key.
    Read { cell: Bytes, is_among_its_own: bool },
    /// It is alone in its block, whose fence told its key.
    Apart { segment: Arc<Segment>, cache: Arc<BlockCache>, block: usize },
}

impl CellHandle {
    /// The cell with this content.
    pub(crate) fn read(cell: Bytes) -> Self {
        Self(Content::Read { cell, is_among_its_own: false })
    }

    /// The same in a block that has nothing but cells that were asked for together.
    pub(crate) fn read_among_its_own(cell: Bytes) -> Self {
        Self(Content::Read { cell, is_among_its_own: true })
    }

    /// The only cell of a block.
    pub(crate) fn apart(segment: &Arc<Segment>, cache: &Arc<BlockCache>, block: usize) -> Self {
        let (segment, cache) = (Arc::clone(segment), Arc::clone(cache));
        Self(Content::Apart { segment, cache, block })
    }

    /// Bytes of the content, or of its block if that has not been read.
    pub(crate) fn bytes(&self) -> Result<usize> {
        Ok(match &self.0 {
            Content::Read { cell, .. } => cell.len(),
            Content::Apart { segment, block, .. } => {
                let entry = segment.entry(*block)?;
                entry.map_or(0, |(entry, _)| entry.block.length.get() as usize)
            }
        })
    }

    /// Whether loading the content reads nothing.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.0, Content::Read { .. })
    }

    /// Whether it was read in a block that has nothing but cells that were asked for together: who
    /// keeps its content keeps nothing else.
    pub(crate) fn is_among_its_own(&self) -> bool {
        matches!(self.0, Content::Read { is_among_its_own: true, .. })
    }

    /// The content: a part of its block, not a copy.
    pub(crate) fn load(&self) -> Result<Bytes> {
        self.clone().into_content()
    }

    /// The content, in place of the handle.
    pub(crate) fn into_content(self) -> Result<Bytes> {
        match self.0 {
            Content::Read { cell, .. } => Ok(cell),
            Content::Apart { segment, cache, block } => Ok(segment.block(&cache, block)?.cell(0)),
        }
    }

    /// Calls `visit` with the content of each of some cells, and its place among them. Cells of
    /// neighbouring blocks are read at once, into `room` and past the cache.
    pub(crate) fn visit_all(
        handles: &[&Self],
        room: &mut Vec<u8>,
        visit: &mut dyn FnMut(usize, Bytes) -> Result<()>,
    ) -> Result<()> {
        let mut next = 0..;
        for run in handles.chunk_by(|one, other| other.is_behind(one)) {
            let mut visit_next = |cell| next.next().map_or(Ok(()), |at| visit(at, cell));
            match run.first().map(|first| &first.0) {
                Some(Content::Apart { segment, block, .. }) => {
                    let blocks = *block..block.saturating_add(run.len());
                    segment.visit_run(blocks, room, &mut |cells| visit_next(cells.cell(0)))?;
                }
                Some(Content::Read { cell, .. }) => visit_next(cell.clone())?,
                None => {}
            }
        }
        Ok(())
    }

    /// Whether it is alone in the block behind that of another one.
    fn is_behind(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (
                Content::Apart { segment, block, .. },
                Content::Apart { segment: own, block: before, .. },
            ) => Arc::ptr_eq(segment, own) && before.checked_add(1) == Some(*block),
            _ => false,
        }
    }

    /// What `look` finds in the content.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        match &self.0 {
            Content::Read { cell, .. } => look(cell),
            Content::Apart { .. } => look(&self.load()?),
        }
    }
}

impl Segment {
    /// The position after one, at which a cell is unless it was the last.
    pub(crate) fn after(&self, at: CellPosition) -> Result<CellPosition> {
        let cells = self.entry(at.block)?.map_or(0, |(entry, _)| usize::from(entry.cells.get()));
        let slot = at.slot.saturating_add(1);
        let is_last = slot >= cells;
        let block = at.block.saturating_add(usize::from(is_last));
        Ok(CellPosition { block, slot: if is_last { 0 } else { slot } })
    }

    /// The position before one; none if it is the first.
    pub(crate) fn before(&self, at: CellPosition) -> Result<Option<CellPosition>> {
        if let Some(slot) = at.slot.checked_sub(1) {
            return Ok(Some(CellPosition { slot, ..at }));
        }
        let Some(block) = at.block.checked_sub(1) else { return Ok(None) };
        let last = self.entry(block)?.and_then(|(entry, _)| entry.cells.get().checked_sub(1));
        Ok(last.map(|slot| CellPosition { block, slot: slot.into() }))
    }

    /// The key and the cell at a position; `None` if no cell is there.
    pub(crate) fn cell_at(
        self: &Arc<Self>,
        cache: &Arc<BlockCache>,
        at: CellPosition,
    ) -> Result<Option<(Bytes, CellHandle)>> {
        let Some((entry, fence)) = self.entry(at.block)? else { return Ok(None) };
        if at.slot >= usize::from(entry.cells.get()) {
            return Ok(None);
        }
        if entry.is_single() {
            return Ok(Some((fence, CellHandle::apart(self, cache, at.block))));
        }
        let cells = self.block(cache, at.block)?;
        Ok(Some((cells.key(at.slot), CellHandle::read(cells.cell(at.slot)))))
    }
}
