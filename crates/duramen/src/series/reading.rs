//! The points of a span of time as of a commit, out of all sources.
//!
//! Of the points of one time that were written by then the newest holds, unless a later commit
//! deleted it by then.
//!
//! Invariants:
//! - of each source no more than some pieces are decoded at a time;
//! - sources rise by their bounds, and those that have nothing left are gone: there may be many
//!   hundreds, where points came in no order, and the next one is told by a look at two of them;
//! - what comes out is in the order of reading, each time once.

mod deleted;
mod long;
mod store;
mod whole;
mod written;

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::revision::CommitSequence;
use crate::series::piece::Piece;
use crate::series::points::Points;
use crate::series::source::{Course, Direction, Source};
use crate::series::value::ValueType;
use crate::series::young::Delete;

pub(crate) use deleted::Deleted;
pub(crate) use long::LongReading;
pub(crate) use store::PointStore;

/// Pieces that are put together at a time.
const PIECES_MAX: usize = 8;

/// Reads points piece by piece.
#[derive(Debug)]
pub(crate) struct Reading {
    value_type: ValueType,
    direction: Direction,
    #[expect(clippy::vec_box, reason = "they are moved among each other, and are large")]
    sources: Vec<Box<Source>>,
    as_of: AsOf,
}

/// What is read next.
#[derive(Debug)]
enum Part {
    /// Points of one piece that nobody else has anything among.
    Places(Arc<Piece>, Range<usize>),
    /// The points of a rank, of which there are some in several pieces.
    Time(i64),
    /// Nothing is left.
    End,
}

/// What of the points that are there is seen.
#[derive(Debug)]
struct AsOf {
    sequence: CommitSequence,
    /// What was deleted by then.
    deleted: Deleted,
}

impl Reading {
    /// Begins to read points of a type from sources of the same course.
    pub(crate) fn new(
        value_type: ValueType,
        course: Course,
        sources: Vec<Source>,
        (sequence, mut deletes): (CommitSequence, Vec<Delete>),
    ) -> Self {
        let span = course.span;
        deletes.retain(|delete| {
            let is_read = delete.span.first <= span.last && delete.span.last >= span.first;
            is_read && delete.sequence <= sequence
        });
        let as_of = AsOf { sequence, deleted: Deleted::new(deletes) };
        let mut sources: Vec<_> = sources.into_iter().map(Box::new).collect();
        sources.retain(|source| source.bound().is_some());
        sources.sort_by_key(|source| source.bound());
        Self { value_type, direction: course.direction, sources, as_of }
    }

    /// The type of the points.
    pub(crate) fn value_type(&self) -> ValueType {
        self.value_type
    }

    /// Appends some of the next points that are seen, at most `limit`; false if none are left.
    pub(crate) fn read(&mut self, out: &mut Points, limit: usize) -> Result<bool> {
        // Room is made for several pieces at once: it costs more than what is put into it.
        let (mut ready, mut len) = (Vec::new(), 0_usize);
        let part = loop {
            if len >= limit || ready.len() >= PIECES_MAX {
                break None;
            }
            match self.next_part(limit.saturating_sub(len))? {
                Part::Places(piece, places) if self.is_as_it_is(&piece, &places) => {
                    len = len.saturating_add(places.len());
                    ready.push((piece, places));
                }
                other => break Some(other),
            }
        };
        out.reserve(len);
        for (piece, places) in &ready {
            piece.append_to(places.clone(), out);
        }
        match part {
            None => {}
            Some(Part::Places(piece, places)) => self.append(&piece, places, out),
            Some(Part::Time(rank)) => self.read_time(rank, out)?,
            Some(Part::End) => return Ok(!ready.is_empty()),
        }
        Ok(true)
    }

    /// Whether points are given as they lie in their piece.
    fn is_as_it_is(&self, piece: &Piece, places: &Range<usize>) -> bool {
        self.direction == Direction::Rising && self.as_of.sees_all(piece, places)
    }

    /// Gives some of the next points that are seen, from where they are; false if none are left.
    /// What has to be put together for that is put into `buffer`.
    pub(crate) fn visit(
        &mut self,
        buffer: &mut Points,
        visit: &mut dyn FnMut(&Points, Range<usize>) -> Result<()>,
    ) -> Result<bool> {
        buffer.clear();
        match self.next_part(usize::MAX)? {
            Part::Places(piece, places) if self.is_as_it_is(&piece, &places) => {
                visit(&piece.points, places)?;
                return Ok(true);
            }
            Part::Places(piece, places) => self.append(&piece, places, buffer),
            Part::Time(rank) => self.read_time(rank, buffer)?,
            Part::End => return Ok(false),
        }
        visit(buffer, 0..buffer.len())?;
        Ok(true)
    }

    /// What comes next.
    fn next_part(&mut self, limit: usize) -> Result<Part> {
        let bound = self.load_next()?;
        let Some(source) = self.sources.first_mut() else { return Ok(Part::End) };
        if let Some((piece, places)) = source.take_before(bound, limit)
            && !places.is_empty()
        {
            self.settle(0);
            self.check_type(piece.points.value_type())?;
            return Ok(Part::Places(piece, places));
        }
        // A piece is never without points, so that another source has some of the same time.
        Ok(bound.map_or(Part::End, Part::Time))
    }

    /// Calls `visit` with the time and the sequence of the next points, seen or not, in the order
    /// of their times; false if none are left.
    pub(crate) fn each(&mut self, visit: &mut dyn FnMut(i64, CommitSequence)) -> Result<bool> {
        let direction = self.direction;
        self.each_place(&mut |piece, places| {
            for at in places.clone() {
                let at = match direction {
                    Direction::Rising => at,
                    Direction::Falling => places.start + (places.end - 1 - at),
                };
                let time = piece.points.times().get(at).copied().unwrap_or_default();
                visit(time, piece.sequences.get(at));
            }
        })
    }

    /// Calls `visit` with the places of the next points, seen or not: several times where several
    /// pieces have some of one time. False if none are left.
    fn each_place(&mut self, visit: &mut dyn FnMut(&Piece, Range<usize>)) -> Result<bool> {
        match self.next_part(usize::MAX)? {
            Part::Places(piece, places) => visit(&piece, places),
            Part::Time(rank) => self.each_of(rank, &mut |piece, places| visit(piece, places))?,
            Part::End => return Ok(false),
        }
        Ok(true)
    }

    /// Decodes what comes next, which the first source has then; the rank up to which nobody else
    /// has anything, or none if nobody has anything at all.
    fn load_next(&mut self) -> Result<Option<i64>> {
        while let Some(source) = self.sources.first_mut() {
            if source.load()? {
                // Now that it is decoded its bound may be another.
                self.settle(0);
                continue;
            }
            let behind = source.bound_behind();
            let other = self.sources.get(1).and_then(|source| source.bound());
            return Ok(other.into_iter().chain(behind).min());
        }
        Ok(None)
    }

    /// Brings a source to its place among those behind it, now that its bound may have risen.
    fn settle(&mut self, at: usize) {
        let Some(bound) = self.sources.get(at).map(|source| source.bound()) else { return };
        if bound.is_none() {
            self.sources.remove(at);
            return;
        }
        let (from, all) = (at + 1, &mut self.sources);
        let end = from + all[from..].partition_point(|source| source.bound() < bound);
        all[at..end].rotate_left(1);
    }

    /// Takes the points of a rank out of all sources that have some next.
    fn each_of(
        &mut self,
        rank: i64,
        visit: &mut dyn FnMut(&Arc<Piece>, Range<usize>),
    ) -> Result<()> {
        let taken = self.sources.partition_point(|source| source.bound() <= Some(rank));
        for source in self.sources.iter_mut().take(taken) {
            while source.bound() == Some(rank) {
                if source.load()? {
                    continue;
                }
                let taken = source.take_before(rank.checked_add(1), usize::MAX);
                let Some((piece, places)) = taken else { break };
                visit(&piece, places);
            }
        }
        (0..taken).rev().for_each(|at| self.settle(at));
        Ok(())
    }

    /// Appends the point of a time that several pieces have, or that is at their borders.
    fn read_time(&mut self, rank: i64, out: &mut Points) -> Result<()> {
        let mut best: Option<(CommitSequence, Arc<Piece>, usize)> = None;
        let mut all: Vec<(Arc<Piece>, Range<usize>)> = Vec::new();
        self.each_of(rank, &mut |piece, places| all.push((Arc::clone(piece), places)))?;
        for (piece, places) in &all {
            for at in places.clone() {
                let sequence = piece.sequences.get(at);
                let is_newer = best.as_ref().is_none_or(|(newest, ..)| sequence > *newest);
                if is_newer && self.as_of.sees(piece, at) {
                    best = Some((sequence, Arc::clone(piece), at));
                }
            }
        }
        if let Some((_, piece, at)) = best {
            self.check_type(piece.points.value_type())?;
            out.append(&piece.points, at..at + 1);
        }
        Ok(())
    }

    fn append(&self, piece: &Piece, places: Range<usize>, out: &mut Points) {
        if self.direction == Direction::Rising {
            return self.as_of.append(piece, places, out);
        }
        let mut part = Points::new(self.value_type);
        self.as_of.append(piece, places, &mut part);
        let backwards: Vec<usize> = (0..part.len()).rev().collect();
        part.permute(&backwards);
        out.append(&part, 0..part.len());
    }

    fn check_type(&self, found: ValueType) -> Result<()> {
        let expected = self.value_type;
        if found == expected {
            return Ok(());
        }
        let message = format!("expected points of type {expected}, found a block of {found}");
        Err(Error::new(ErrorKind::Corrupt, message))
    }
}

impl AsOf {
    /// Whether a point was written by then, and not deleted since.
    fn sees(&self, piece: &Piece, at: usize) -> bool {
        let sequence = piece.sequences.get(at);
        let time = piece.points.times().get(at).copied().unwrap_or_default();
        sequence <= self.sequence && !self.deleted.has(time, sequence)
    }

    /// Whether each of these points is seen, known without looking at them one by one.
    fn sees_all(&self, piece: &Piece, places: &Range<usize>) -> bool {
        if !piece.is_plain || piece.newest > self.sequence {
            return false;
        }
        let times = piece.points.times();
        let (Some(&first), Some(&last)) = (times.get(places.start), times.get(places.end - 1))
        else {
            return false;
        };
        let oldest = || piece.sequences.least(places.clone());
        !self.deleted.is_near((first, last)) || !self.deleted.has_any_of((first, last), oldest())
    }

    /// Appends the points that are seen.
    fn append(&self, piece: &Piece, places: Range<usize>, out: &mut Points) {
        if self.sees_all(piece, &places) {
            piece.append_to(places, out);
        } else {
            self.append_seen(piece, places, out);
        }
    }

    /// Appends of each time the newest point that is seen.
    fn append_seen(&self, piece: &Piece, places: Range<usize>, out: &mut Points) {
        let times = piece.points.times();
        let mut at = places.start;
        // Points that follow each other are appended together.
        let mut run = at..at;
        while at < places.end {
            let time = times.get(at);
            let mut end = at + 1;
            while end < places.end && times.get(end) == time {
                end += 1;
            }
            // Those of one time rise by sequence.
            if let Some(seen) = (at..end).rev().find(|&at| self.sees(piece, at)) {
                if run.end != seen {
                    piece.append_to(run, out);
                    run = seen..seen;
                }
                run.end = seen + 1;
            }
            at = end;
        }
        piece.append_to(run, out);
    }
}
