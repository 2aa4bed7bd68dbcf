//! Blocks that are taken as a whole: what their heads say answers, and no point is decoded.
//!
//! Invariant: a block is taken so only where nothing else has a point among its own, and no time is
//! in it twice.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::series::block::Block;
use crate::series::points::Points;
use crate::series::reading::Reading;
use crate::series::source::Direction;

impl Reading {
    /// The block that comes next, if all of it comes before anything else.
    pub(crate) fn next_block(&self) -> Result<Option<Block>> {
        let Some(source) = self.sources.first() else { return Ok(None) };
        let Some(block) = source.next_block()? else { return Ok(None) };
        let (first, last) = block.time_range();
        let end = match self.direction {
            Direction::Rising => last.0,
            Direction::Falling => first.0,
        };
        let end = self.direction.rank(end);
        let other = self.sources.get(1).and_then(|source| source.bound());
        let is_apart = other.is_none_or(|bound| bound > end);
        Ok((is_apart && !block.has_duplicates()).then_some(block))
    }

    /// The same, if each of its points is seen.
    pub(crate) fn next_seen_block(&self) -> Result<Option<Block>> {
        let is_seen = |block: &Block| {
            block.sequence_range().1 <= self.as_of.sequence && !self.has_deletes_in(block)
        };
        Ok(self.next_block()?.filter(is_seen))
    }

    /// All the points that are left, where they are: none, and nothing read, if they have to be
    /// put together.
    pub(crate) fn all_as_they_are(&mut self) -> Result<Option<(Arc<Points>, Range<usize>)>> {
        let [source] = &mut self.sources[..] else { return Ok(None) };
        source.load()?;
        let found = source.rest().filter(|(piece, _)| piece.points.value_type() == self.value_type);
        let found = found.filter(|(piece, places)| self.as_of.sees_all(piece, places));
        Ok(found.map(|(piece, places)| (Arc::clone(&piece.points), places)))
    }

    /// Goes on behind the block that comes next.
    pub(crate) fn skip_block(&mut self) -> Result<()> {
        let Some(source) = self.sources.first_mut() else { return Ok(()) };
        source.skip_block()?;
        self.settle(0);
        Ok(())
    }

    /// Whether the points of what comes next are in memory, decoded.
    pub(crate) fn is_decoded(&self) -> bool {
        self.sources.first().is_none_or(|source| source.is_decoded())
    }

    /// Puts the points of the block that comes next into `points`, all of which are seen, and goes
    /// on behind it.
    pub(crate) fn read_block(&mut self, block: &Block, points: &mut Points) -> Result<()> {
        self.check_type(block.value_type())?;
        points.clear();
        block.decode(0..block.len(), points)?;
        self.skip_block()
    }

    /// Whether anything may have been deleted of a block since.
    fn has_deletes_in(&self, block: &Block) -> bool {
        let (first, last) = block.time_range();
        self.as_of.deleted.has_any_of((first.0, last.0), block.sequence_range().0)
    }
}
