//! Where the points of a series are read from: its young pieces, and each segment.
//!
//! A source gives pieces that follow each other in time. Several sources overlap as they like.
//! Reading may go backwards; so times are compared by their *rank*, which rises in the direction of
//! reading.
//!
//! Invariant: what a source has next is not before its bound, and nothing is decoded to know that.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Memory, PieceId};
use crate::revision::CommitSequence;
use crate::segment::{BlockCache, CellHandle, CellPosition, KeyHash, Segment};
use crate::series::block::Block;
use crate::series::piece::Piece;
use crate::series::points::Points;
use crate::series::span::TimeSpan;
use crate::store::LiveSegments;
use crate::tree::cell_key::{self, CellKey, PointsKey};

/// In which order points are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Rising,
    Falling,
}

impl Direction {
    /// A number that rises in this direction as the times do.
    pub(crate) fn rank(self, time: i64) -> i64 {
        match self {
            Self::Rising => time,
            Self::Falling => !time,
        }
    }
}

/// What is read: the times, and in which order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    pub(crate) span: TimeSpan,
    pub(crate) direction: Direction,
}

impl Course {
    /// The rank of the time that is read first, and of the one that is read last.
    fn ranks(self) -> (i64, i64) {
        match self.direction {
            Direction::Rising => (self.span.first, self.span.last),
            Direction::Falling => (!self.span.last, !self.span.first),
        }
    }
}

/// A piece of which some points are still to be read.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) piece: Arc<Piece>,
    pub(crate) left: Range<usize>,
}

/// Pieces that follow each other.
#[derive(Debug)]
pub(crate) struct Source {
    course: Course,
    memory: Arc<Memory>,
    pieces: Pieces,
    head: Option<Chunk>,
    ahead: Option<Ahead>,
}

#[derive(Debug)]
enum Pieces {
    /// In the order of reading.
    Young(std::vec::IntoIter<Arc<Piece>>),
    Segment(Walk),
}

/// The next piece, not decoded yet, and a rank that none of its points is before.
#[derive(Debug)]
struct Ahead {
    bound: i64,
    piece: Undecoded,
}

#[derive(Debug)]
enum Undecoded {
    Piece(Arc<Piece>),
    Cell(CellHandle, PieceId),
}

/// Goes from block to block of a series in one segment.
#[derive(Debug)]
pub(crate) struct Walk {
    segment: Arc<Segment>,
    cache: Arc<BlockCache>,
    prefix: Vec<u8>,
    at: Option<CellPosition>,
}

/// The sources of what is young of a series: as few as there can be.
pub(crate) fn young(
    pieces: Vec<Arc<Piece>>,
    course: Course,
    memory: &Arc<Memory>,
) -> Result<Vec<Source>> {
    let mut chains: Vec<Vec<Arc<Piece>>> = Vec::new();
    for piece in pieces {
        let follows = |chain: &&mut Vec<Arc<Piece>>| {
            chain.last().is_none_or(|last| last.last() < piece.first())
        };
        match chains.iter_mut().find(follows) {
            Some(chain) => chain.push(piece),
            None => chains.push(vec![piece]),
        }
    }
    let source = |mut chain: Vec<Arc<Piece>>| {
        if course.direction == Direction::Falling {
            chain.reverse();
        }
        Source::new(course, memory, Pieces::Young(chain.into_iter()))
    };
    chains.into_iter().map(source).collect()
}

/// The sources of what segments have in a column of points.
pub(crate) fn on_disk(
    live: &LiveSegments,
    column: &[u8],
    course: Course,
    memory: &Arc<Memory>,
) -> Result<Vec<Source>> {
    let tree = KeyHash::of_tree(column);
    let mut sources = Vec::new();
    for segment in live.segments() {
        if !segment.may_have_prefix(column, tree)? {
            continue;
        }
        let walk = Walk::new((live, segment), column, course)?;
        sources.push(Source::new(course, memory, Pieces::Segment(walk))?);
    }
    Ok(sources)
}

/// What a segment has of a column in a span.
struct Share<'l> {
    segment: &'l Arc<Segment>,
    /// About how many blocks, and how many cells beside those.
    size: (usize, usize),
}

/// About how many blocks of segments the points of a span stand in.
pub(crate) fn segment_blocks(live: &LiveSegments, column: &[u8], span: TimeSpan) -> Result<usize> {
    Ok(shares(live, column, span)?.iter().map(|share| share.size.0).sum())
}

/// A walk over the cells of the segment that has most of them; none if no segment has any.
pub(crate) fn longest_walk(
    live: &LiveSegments,
    column: &[u8],
    course: Course,
) -> Result<Option<Walk>> {
    let longest = shares(live, column, course.span)?.into_iter().max_by_key(|share| share.size);
    longest.map(|share| Walk::new((live, share.segment), column, course)).transpose()
}

fn shares<'l>(live: &'l LiveSegments, column: &[u8], span: TimeSpan) -> Result<Vec<Share<'l>>> {
    let tree = KeyHash::of_tree(column);
    let mut all = Vec::new();
    for segment in live.segments() {
        if !segment.may_have_prefix(column, tree)? {
            continue;
        }
        let at = |time| {
            let key = PointsKey { first: time, sequence: CommitSequence(u64::MAX) };
            let found = segment.at_or_before(live.cache(), &cell_key::points(column, key))?;
            Ok::<_, Error>(found.map_or((0, 0), |at| (at.block, at.slot)))
        };
        let (last, first) = (at(span.last)?, at(span.first)?);
        let size = (last.0.saturating_sub(first.0), last.1.saturating_sub(first.1));
        all.push(Share { segment, size });
    }
    Ok(all)
}

impl Source {
    fn new(course: Course, memory: &Arc<Memory>, pieces: Pieces) -> Result<Self> {
        let memory = Arc::clone(memory);
        let mut source = Self { course, memory, pieces, head: None, ahead: None };
        source.ahead = source.look_ahead()?;
        Ok(source)
    }

    /// A rank that nothing that is left is before; none if nothing is left.
    pub(crate) fn bound(&self) -> Option<i64> {
        match &self.head {
            Some(chunk) => Some(self.course.direction.rank(chunk.time(self.course.direction))),
            None => self.bound_behind(),
        }
    }

    /// The same of what comes behind the piece that is decoded.
    pub(crate) fn bound_behind(&self) -> Option<i64> {
        self.ahead.as_ref().map(|ahead| ahead.bound)
    }

    /// Decodes the next piece if the one before it was read; whether it did, so that the bound may
    /// have risen.
    pub(crate) fn load(&mut self) -> Result<bool> {
        if self.head.is_some() {
            return Ok(false);
        }
        let Some(ahead) = self.ahead.take() else { return Ok(false) };
        let piece = match ahead.piece {
            Undecoded::Piece(piece) => piece,
            Undecoded::Cell(cell, id) => self.memory.piece(id, || decode(cell.load()?))?,
        };
        let span = self.course.span;
        let left = piece.places(span.first, span.last);
        self.head = (!left.is_empty()).then_some(Chunk { piece, left });
        self.ahead = self.look_ahead()?;
        Ok(true)
    }

    /// The block that comes next, if none of its points was read, and all of them are to be.
    pub(crate) fn next_block(&self) -> Result<Option<Block>> {
        let (None, Some(Ahead { piece: Undecoded::Cell(cell, _), .. })) = (&self.head, &self.ahead)
        else {
            return Ok(None);
        };
        let block = Block::parse(cell.load()?)?;
        let (first, last) = block.time_range();
        let span = self.course.span;
        Ok((span.has(first.0) && span.has(last.0)).then_some(block))
    }

    /// The points of the piece that is decoded, if these are all that are left.
    pub(crate) fn rest(&self) -> Option<(&Piece, Range<usize>)> {
        let chunk = self.head.as_ref().filter(|_| self.ahead.is_none())?;
        Some((&chunk.piece, chunk.left.clone()))
    }

    /// Whether the points of what comes next are in memory, decoded.
    pub(crate) fn is_decoded(&self) -> bool {
        match &self.ahead {
            Some(Ahead { piece: Undecoded::Cell(_, id), .. }) => self.memory.has_piece(*id),
            _ => true,
        }
    }

    /// Goes on behind the block that comes next.
    pub(crate) fn skip_block(&mut self) -> Result<()> {
        self.ahead = self.look_ahead()?;
        Ok(())
    }

    /// Takes the next points of the piece that is read: those before a rank, and `most` of them,
    /// more only where they are of one time.
    pub(crate) fn take_before(
        &mut self,
        rank: Option<i64>,
        most: usize,
    ) -> Option<(Arc<Piece>, Range<usize>)> {
        let chunk = self.head.as_mut()?;
        let taken = chunk.before(rank, most, self.course.direction);
        match self.course.direction {
            Direction::Rising => chunk.left.start = taken.end,
            Direction::Falling => chunk.left.end = taken.start,
        }
        let piece = Arc::clone(&chunk.piece);
        if chunk.left.is_empty() {
            self.head = None;
        }
        Some((piece, taken))
    }

    fn look_ahead(&mut self) -> Result<Option<Ahead>> {
        let (first, last) = self.course.ranks();
        loop {
            let ahead = match &mut self.pieces {
                Pieces::Young(pieces) => pieces.next().map(|piece| ahead_of(piece, self.course)),
                Pieces::Segment(walk) => walk.next(self.course)?,
            };
            let Some((bounds, piece)) = ahead else { return Ok(None) };
            if bounds.1.is_some_and(|last_rank| last_rank < first) {
                continue;
            }
            let is_behind = bounds.0 > last;
            return Ok((!is_behind).then_some(Ahead { bound: bounds.0.max(first), piece }));
        }
    }
}

/// The rank of what a piece has first and, where that is known, of what it has last.
type Bounds = (i64, Option<i64>);

fn ahead_of(piece: Arc<Piece>, course: Course) -> (Bounds, Undecoded) {
    let bounds = bounds_of((piece.first(), piece.last()), course.direction);
    (bounds, Undecoded::Piece(piece))
}

fn bounds_of((first, last): (i64, i64), direction: Direction) -> Bounds {
    match direction {
        Direction::Rising => (first, Some(last)),
        Direction::Falling => (!last, Some(!first)),
    }
}

impl Chunk {
    /// The time of the point that is read next.
    fn time(&self, direction: Direction) -> i64 {
        let at = match direction {
            Direction::Rising => self.left.start,
            Direction::Falling => self.left.end.saturating_sub(1),
        };
        self.piece.points.times().get(at).copied().unwrap_or_default()
    }

    /// The places of the next points: those before a rank, and `most` of them, more only where they
    /// are of one time.
    fn before(&self, rank: Option<i64>, most: usize, direction: Direction) -> Range<usize> {
        let Range { start, end } = self.left;
        let times = self.piece.points.times();
        let left = times.get(self.left.clone()).unwrap_or_default();
        // Most often all of them are before it. To search for that reads times all over the piece.
        let furthest = match direction {
            Direction::Rising => left.last(),
            Direction::Falling => left.first(),
        };
        let is_before = |rank: &i64| furthest.is_some_and(|last| direction.rank(*last) < *rank);
        let rank = rank.filter(|rank| !is_before(rank));
        match direction {
            Direction::Rising => {
                let before = rank.map(|rank| left.partition_point(|&time| time < rank));
                let end = before.map_or(end, |before| start.saturating_add(before));
                let mut cut = start.saturating_add(most).min(end);
                while cut > start && cut < end && times.get(cut) == times.get(cut - 1) {
                    cut += 1;
                }
                start..cut
            }
            Direction::Falling => {
                let kept = rank.map_or(0, |rank| left.partition_point(|&time| !time >= rank));
                let start = start.saturating_add(kept);
                let mut cut = end.saturating_sub(most).max(start);
                while cut > start && cut < end && times.get(cut) == times.get(cut - 1) {
                    cut -= 1;
                }
                cut..end
            }
        }
    }
}

impl Walk {
    /// Stands at the first cell of a course.
    fn new(
        (live, segment): (&LiveSegments, &Arc<Segment>),
        column: &[u8],
        course: Course,
    ) -> Result<Self> {
        let (segment, cache) = (Arc::clone(segment), Arc::clone(live.cache()));
        let mut walk = Self { segment, cache, prefix: column.to_vec(), at: None };
        walk.start(course)?;
        Ok(walk)
    }

    /// Passes cells; the first time of the one that it stands at then, if there is one.
    pub(crate) fn pass(&mut self, cells: usize, direction: Direction) -> Result<Option<i64>> {
        for _ in 0..cells {
            self.step(direction)?;
        }
        Ok(self.found()?.map(|(_, first)| first))
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        self.at = match (self.at, direction) {
            (Some(at), Direction::Rising) => Some(self.segment.after(at)?),
            (Some(at), Direction::Falling) => self.segment.before(at)?,
            (None, _) => None,
        };
        Ok(())
    }

    /// Stands at the first block that is to be read.
    fn start(&mut self, course: Course) -> Result<()> {
        let time = match course.direction {
            Direction::Rising => course.span.first,
            Direction::Falling => course.span.last,
        };
        let key = PointsKey { first: time, sequence: CommitSequence(u64::MAX) };
        let key = cell_key::points(&self.prefix, key);
        self.at = self.segment.at_or_before(&self.cache, &key)?;
        if course.direction == Direction::Falling {
            return Ok(());
        }
        // Where a time was written in more commits than a block has room for, it began before.
        while let Some((_, first)) = self.found()? {
            if first < time {
                return Ok(());
            }
            self.at = match self.at {
                Some(at) => self.segment.before(at)?,
                None => None,
            };
        }
        self.at = Some(self.segment.at_or_after(&self.cache, &self.prefix)?);
        Ok(())
    }

    /// The cell that it stands at and its first time; none if that is of something else.
    fn found(&self) -> Result<Option<(CellHandle, i64)>> {
        let Some(at) = self.at else { return Ok(None) };
        let Some((key, cell)) = self.segment.cell_at(&self.cache, at)? else { return Ok(None) };
        if !key.starts_with(&self.prefix) {
            return Ok(None);
        }
        match cell_key::parse(&key) {
            Some((
                _,
                CellKey::Points(PointsKey { first, .. })
                | CellKey::Rollup(_, PointsKey { first, .. }),
            )) => Ok(Some((cell, first))),
            _ => Err(Error::new(ErrorKind::Corrupt, format!("no cell has the key {key:02x?}"))),
        }
    }

    /// The block that it stands at; then it moves on.
    fn next(&mut self, course: Course) -> Result<Option<(Bounds, Undecoded)>> {
        if course.direction == Direction::Rising && self.at.is_some() && self.is_at_end()? {
            self.at = self.at.map(|at| CellPosition { block: at.block.saturating_add(1), slot: 0 });
        }
        let Some((cell, first)) = self.found()? else {
            self.at = None;
            return Ok(None);
        };
        let bounds = match course.direction {
            // It may end before what is read begins.
            Direction::Rising if first < course.span.first => {
                (first, Some(Block::parse(cell.load()?)?.time_range().1.0))
            }
            Direction::Rising => (first, None),
            Direction::Falling => {
                let last = Block::parse(cell.load()?)?.time_range().1.0;
                bounds_of((first, last), Direction::Falling)
            }
        };
        let Some(at) = self.at else { return Ok(None) };
        self.step(course.direction)?;
        let id = (self.segment.info().number, at);
        Ok(Some((bounds, Undecoded::Cell(cell, id))))
    }

    /// Whether it stands behind the last cell of a block.
    fn is_at_end(&self) -> Result<bool> {
        let Some(at) = self.at else { return Ok(false) };
        let entry = self.segment.entry(at.block)?;
        Ok(entry.is_some_and(|(entry, _)| at.slot >= usize::from(entry.cells.get())))
    }
}

/// The points of a cell.
pub(crate) fn decode(cell: Bytes) -> Result<Piece> {
    let block = Block::parse(cell)?;
    let mut points = Points::new(block.value_type());
    block.decode(0..block.len(), &mut points)?;
    Ok(Piece::on(block.line(), Arc::new(points), block.sequences()?))
}
