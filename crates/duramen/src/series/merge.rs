//! Combines the points of a series that a checkpoint or a compaction brings together into blocks.
//!
//! Invariants:
//! - points come in with rising first times, so that all that is before the next one is complete;
//!   without what is left out of them they may begin in any order;
//! - blocks go out in the order of their keys and do not overlap, but where a single time was
//!   written in more commits than a block has room for;
//! - what is in memory are the points that overlap at one time, or twice as many, and one block.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::limits::SERIES_BLOCK_POINTS_MAX;
use crate::revision::CommitSequence;
use crate::series::block::{Block, Density, Sequences};
use crate::series::piece::Piece;
use crate::series::points::Points;
use crate::series::source;
use crate::tree::cell_key::{self, PointsKey};

/// Points from which on a block that is as dense as wanted goes on as it is.
const WHOLE_POINTS_MIN: usize = SERIES_BLOCK_POINTS_MAX / 2;

/// Bytes of points whose room is kept for others.
const SPARE_BYTES_MAX: usize = 4 << 20;

/// A cell with its key.
type Cell = (Bytes, Bytes);

/// Points, with their sequences.
type Pending = (Points, Sequences);

/// Room that points waited in: to make new room costs as much as to fill it.
#[derive(Debug, Default)]
pub(crate) struct Spare(Option<Pending>);

impl Spare {
    /// Takes the room of points that are written.
    fn put(&mut self, (mut points, mut sequences): Pending) {
        if points.bytes() <= SPARE_BYTES_MAX {
            points.clear();
            sequences.clear();
            self.0 = Some((points, sequences));
        }
    }

    /// The points of a piece, to which others are going to be appended.
    fn filled(&mut self, piece: Piece) -> Pending {
        let spare = self.0.take();
        match spare.filter(|(points, _)| points.value_type() == piece.points.value_type()) {
            Some((mut points, mut sequences)) => {
                sequences.append(0, &piece.sequences, 0..piece.len());
                points.append(&piece.points, 0..piece.len());
                (points, sequences)
            }
            None => (Arc::unwrap_or_clone(piece.points), piece.sequences),
        }
    }
}

/// Points of one series on their way into blocks.
#[derive(Debug)]
pub(crate) struct Blocks {
    column: Vec<u8>,
    density: Density,
    /// Of one time the newest is kept, instead of all.
    is_newest_only: bool,
    /// What is before is left out.
    from: i64,
    /// What is of later commits is left out.
    until: CommitSequence,
    /// Those before `start` written, and in order but for those from `unordered` on.
    pending: Option<Pending>,
    /// What the next ones wait in.
    spare: Spare,
    start: usize,
    unordered: Option<usize>,
    /// How many were left when they were last in order.
    ordered: usize,
    /// The last time that is pending.
    last: Option<i64>,
    /// What goes on as it is, unless the next points overlap it.
    held: Option<Held>,
}

#[derive(Debug)]
enum Held {
    /// A block, and its last time.
    Block(Cell, i64),
    /// Points for a block at least, of which no time is there twice.
    Piece(Piece),
}

impl Held {
    fn last(&self) -> i64 {
        match self {
            Self::Block(_, last) => *last,
            Self::Piece(piece) => piece.last(),
        }
    }

    fn into_piece(self) -> Result<Piece> {
        match self {
            Self::Block((_, cell), _) => source::decode(cell),
            Self::Piece(piece) => Ok(piece),
        }
    }
}

impl Blocks {
    /// Of no points yet.
    pub(crate) fn new(column: Vec<u8>, density: Density) -> Self {
        Self {
            column,
            density,
            is_newest_only: false,
            from: i64::MIN,
            until: CommitSequence(u64::MAX),
            pending: None,
            spare: Spare::default(),
            start: 0,
            unordered: None,
            ordered: 0,
            last: None,
            held: None,
        }
    }

    /// Leaves out what later commits wrote.
    pub(crate) fn until(self, until: CommitSequence) -> Self {
        Self { until, ..self }
    }

    /// Keeps of one time what was written last.
    pub(crate) fn newest_only(self) -> Self {
        Self { is_newest_only: true, ..self }
    }

    /// Leaves out what is before a time.
    pub(crate) fn from(self, from: i64) -> Self {
        Self { from, ..self }
    }

    /// Has points wait where those of others did.
    pub(crate) fn within(self, spare: Spare) -> Self {
        Self { spare, ..self }
    }

    /// What the keys of its cells begin with.
    pub(crate) fn column(&self) -> &[u8] {
        &self.column
    }

    /// Takes the next cell; what is complete goes to `out`.
    pub(crate) fn push_cell(&mut self, cell: Cell, out: &mut Vec<Cell>) -> Result<()> {
        let block = Block::parse(cell.1.clone())?;
        let (first, last) = block.time_range();
        self.release(first.0, out)?;
        let is_dense = self.density == Density::Hot || block.density() == Density::Sealed;
        if last.0 < self.from {
            return Ok(());
        }
        let is_whole = block.sequence_range().1 <= self.until && first.0 >= self.from;
        let is_alone = self.last.is_none_or(|pending| pending < first.0);
        if is_dense && is_whole && is_alone && block.len() >= WHOLE_POINTS_MIN {
            self.put_all(out);
            self.held = Some(Held::Block(cell, last.0));
            return Ok(());
        }
        self.push(source::decode(cell.1)?, out)
    }

    /// Takes the next points; what is complete goes to `out`.
    pub(crate) fn push(&mut self, piece: Piece, out: &mut Vec<Cell>) -> Result<()> {
        let first = piece.first();
        self.release(first, out)?;
        self.put_full(first, out);
        let Some(piece) = self.cut(piece) else { return Ok(()) };
        let is_alone = self.last.is_none_or(|pending| pending < first);
        if is_alone && piece.is_plain && piece.len() >= WHOLE_POINTS_MIN {
            self.put_all(out);
            self.held = Some(Held::Piece(piece));
            return Ok(());
        }
        self.last = self.last.max(Some(piece.last()));
        let Some((points, sequences)) = &mut self.pending else {
            self.pending = Some(self.spare.filled(piece));
            return Ok(());
        };
        let (is, other) = (points.value_type(), piece.points.value_type());
        if is != other {
            let message = format!("blocks of one series have points of type {is} and {other}");
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        let (first, ordered) = (piece.first(), self.unordered.unwrap_or(points.len()));
        let times = &points.times()[self.start..ordered];
        let before = self.start + times.partition_point(|&time| time < first);
        self.unordered = (before < points.len()).then_some(before);
        sequences.append(points.len(), &piece.sequences, 0..piece.len());
        points.append(&piece.points, 0..piece.len());
        Ok(())
    }

    /// Brings what is pending in order.
    fn order(&mut self) {
        let unordered = self.unordered.take();
        if let (Some(from), Some((points, sequences))) = (unordered, &mut self.pending) {
            order_from(from, (points, sequences), self.is_newest_only);
        }
    }

    /// How many points are pending that are not written.
    fn left(&self) -> usize {
        self.pending.as_ref().map_or(0, |(points, _)| points.len().saturating_sub(self.start))
    }

    /// Puts out what is left; the room for points of others.
    pub(crate) fn finish(mut self, out: &mut Vec<Cell>) -> Spare {
        if let Some(held) = self.held.take() {
            self.put_held(held, out);
        }
        self.put_all(out);
        self.spare
    }

    /// Lets go what is held, before points from `first` on come: as it is if they are behind it.
    fn release(&mut self, first: i64, out: &mut Vec<Cell>) -> Result<()> {
        let Some(held) = self.held.take() else { return Ok(()) };
        if held.last() < first {
            self.put_held(held, out);
            return Ok(());
        }
        let piece = held.into_piece()?;
        assert!(self.pending.is_none(), "points are held only where nothing is pending");
        self.last = Some(piece.last());
        self.pending = Some(self.spare.filled(piece));
        self.start = 0;
        Ok(())
    }

    /// Writes what is held, points in as few blocks as they fill; what is left of them then waits
    /// for the next ones.
    fn put_held(&mut self, held: Held, out: &mut Vec<Cell>) {
        let piece = match held {
            Held::Block(cell, _) => return out.push(cell),
            Held::Piece(piece) => piece,
        };
        let (points, sequences) = (piece.points.as_ref(), &piece.sequences);
        let mut start = 0;
        while points.len() - start >= WHOLE_POINTS_MIN {
            let end = start + points.block_len(start);
            out.push(self.encode((points, start..end), sequences));
            start = end;
        }
        if start < points.len() {
            self.pending = Some(part((points, start..points.len()), sequences));
            self.start = 0;
            self.last = Some(piece.last());
        }
    }

    /// Without what later commits wrote and what is too old; none if nothing is left.
    fn cut(&self, piece: Piece) -> Option<Piece> {
        if piece.newest <= self.until && piece.first() >= self.from {
            return Some(piece);
        }
        let is_kept = |at: &usize| piece.sequences.get(*at) <= self.until;
        let start = piece.points.times().partition_point(|&time| time < self.from);
        let kept: Vec<usize> = (start..piece.len()).filter(is_kept).collect();
        if kept.is_empty() {
            return None;
        }
        let sequences = piece.sequences.permuted(&kept);
        let mut points = Arc::unwrap_or_clone(piece.points);
        points.permute(&kept);
        Some(Piece::new(Arc::new(points), sequences))
    }

    /// Writes full blocks of what is before `first`, unless that is not worth its order yet: to
    /// bring all in order for each piece among them would take the square of their number.
    fn put_full(&mut self, first: i64, out: &mut Vec<Cell>) {
        let is_more = self.left() / 2 >= self.ordered.max(SERIES_BLOCK_POINTS_MAX);
        if self.unordered.is_some() && !is_more {
            return;
        }
        self.order();
        let Some((points, _)) = &self.pending else { return };
        let complete = points.times().partition_point(|&time| time < first);
        while complete > self.start {
            let end = self.end_of_block(complete);
            if end >= complete {
                break;
            }
            self.put(end, out);
        }
        self.ordered = self.left();
        if self.start > SERIES_BLOCK_POINTS_MAX {
            self.forget_written();
        }
    }

    fn put_all(&mut self, out: &mut Vec<Cell>) {
        self.order();
        while let Some((points, _)) = &self.pending {
            let len = points.len();
            if self.start >= len {
                break;
            }
            self.put(self.end_of_block(len), out);
        }
        if let Some(written) = self.pending.take() {
            self.spare.put(written);
        }
        (self.last, self.start, self.ordered) = (None, 0, 0);
    }

    /// Where the block ends that begins with the first point that is not written: between two
    /// times, and before `limit`.
    fn end_of_block(&self, limit: usize) -> usize {
        let Some((points, _)) = &self.pending else { return limit };
        let times = points.times();
        let most = (self.start + points.block_len(self.start)).min(limit);
        let mut end = most;
        while end > self.start && end < times.len() && times[end - 1] == times[end] {
            end -= 1;
        }
        if end > self.start { end } else { most }
    }

    fn put(&mut self, end: usize, out: &mut Vec<Cell>) {
        let Some((points, sequences)) = &self.pending else { return };
        out.push(self.encode((points, self.start..end), sequences));
        self.start = end;
    }

    /// The block of some points, with its key.
    fn encode(&self, (points, places): (&Points, Range<usize>), sequences: &Sequences) -> Cell {
        let first = points.times()[places.start];
        let key = PointsKey { first, sequence: sequences.get(places.start) };
        let mut cell = Vec::new();
        Block::encode((points, places), None, sequences, self.density, &mut cell);
        (cell_key::points(&self.column, key).into(), cell.into())
    }

    fn forget_written(&mut self) {
        let start = std::mem::take(&mut self.start);
        let Some((mut points, mut sequences)) = self.pending.take() else { return };
        if points.len() == start {
            self.spare.put((points, sequences));
            self.last = None;
            return;
        }
        // In their place: memory that is new for each block costs as much as to fill it.
        points.drop_first(start);
        sequences.drop_first(start);
        self.pending = Some((points, sequences));
    }
}

/// Some points, with their sequences.
fn part((points, places): (&Points, Range<usize>), sequences: &Sequences) -> Pending {
    let (mut part, mut own) = (Points::new(points.value_type()), Sequences::All(CommitSequence(0)));
    own.append(0, sequences, places.clone());
    part.append(points, places);
    (part, own)
}

/// Brings the points from a place on in order; of one time and commit one is kept, or the newest of
/// one time.
pub(crate) fn order_from(
    start: usize,
    (points, sequences): (&mut Points, &mut Sequences),
    is_newest_only: bool,
) {
    let places = start..points.len();
    let (mut tail, mut tail_sequences) = part((points, places), sequences);
    let key = |at: &usize| (tail.times().get(*at), tail_sequences.get(*at));
    let mut order: Vec<usize> = (0..tail.len()).collect();
    order.sort_by_key(key);
    if is_newest_only {
        order.reverse();
        order.dedup_by_key(|at| key(at).0);
        order.reverse();
    } else {
        order.dedup_by_key(|at| key(at));
    }
    tail_sequences = tail_sequences.permuted(&order);
    tail.permute(&order);
    points.truncate(start);
    let mut before = Sequences::All(CommitSequence(0));
    before.append(0, sequences, 0..start);
    before.append(start, &tail_sequences, 0..tail.len());
    *sequences = before;
    points.append(&tail, 0..tail.len());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::Micros;
    use crate::series::{Quality, ValueType};
    use crate::tree::cell_key::TreeId;

    /// They begin in the order of their first times, and these may be among what is left out: a
    /// merge that dropped old points ended in a panic.
    #[test]
    fn points_that_are_cut_are_brought_in_order() {
        let short = [vec![0, 1_500, 1_600], vec![1, 1_600], vec![2, 1_400], vec![1_700]];
        let long = [vec![1, 1_500], [vec![2], (2_000..40_000).collect()].concat(), vec![3, 1_200]];
        for pieces in [short.as_slice(), long.as_slice()] {
            let mut blocks = Blocks::new(cell_key::all_points(TreeId::SERIES), Density::Hot);
            blocks = blocks.from(1_000);
            let mut cells = Vec::new();
            for (commit, times) in (1..).zip(pieces) {
                let mut points = Points::new(ValueType::I64);
                for time in times {
                    points.push(Micros(*time), *time, Quality::GOOD).unwrap();
                }
                let piece = Piece::of_commit(Arc::new(points), None, CommitSequence(commit));
                blocks.push(piece, &mut cells).unwrap();
            }
            blocks.finish(&mut cells);
            assert!(cells.is_sorted());
            let decoded = cells.iter().map(|cell| source::decode(cell.1.clone()).unwrap());
            let found: Vec<i64> = decoded.flat_map(|piece| piece.points.times().to_vec()).collect();
            let mut expected: Vec<i64> = pieces.concat();
            expected.retain(|time| *time >= 1_000);
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
    }
}
