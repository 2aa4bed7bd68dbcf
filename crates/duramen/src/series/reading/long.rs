//! Long spans, whose parts are decoded on several processors.
//!
//! A part begins where a cell does in the segment that has most of the span, so that parts take
//! about the same time to read wherever points are dense.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::{PointStore, Reading};
use crate::error::Result;
use crate::limits::{SERIES_PART_BYTES_MAX, SERIES_PART_CELLS};
use crate::series::points::Points;
use crate::series::source::{Course, Direction, Walk};
use crate::series::span::TimeSpan;
use crate::threads;
use crate::threads::ahead::{Ahead, PartSource};

/// Reads points, part by part.
#[derive(Debug)]
pub(crate) struct LongReading {
    ahead: Ahead<Parts>,
    part: Option<Part>,
}

/// What is left of a span, to be cut into parts.
#[derive(Debug)]
struct Parts {
    walk: Walk,
    /// None once all of it is in parts.
    course: Option<Course>,
}

/// A part of a span.
#[derive(Debug)]
pub(crate) struct Part {
    course: Course,
    runs: VecDeque<Run>,
    /// Reads what is behind them, if that was too much to be read ahead.
    rest: Option<Reading>,
}

/// Points that follow each other: where they were decoded, or put together.
#[derive(Debug)]
struct Run {
    points: Arc<Points>,
    places: Range<usize>,
}

impl LongReading {
    /// Begins to read a span; none if one thread reads it as well.
    pub(crate) fn new(store: &Arc<PointStore>, course: Course) -> Result<Option<Self>> {
        if threads::count() < 2 {
            return Ok(None);
        }
        let Some(walk) = store.longest_walk(course)? else { return Ok(None) };
        let mut parts = Parts { walk, course: Some(course) };
        let Some(first) = parts.cut()? else { return Ok(None) };
        if parts.course.is_none() {
            return Ok(None);
        }
        // The reader begins with the first part, another thread with the second one.
        let rest = Some(store.read(first)?);
        let part = Some(Part { course: first, runs: VecDeque::new(), rest });
        Ok(Some(Self { ahead: Ahead::new(Arc::clone(store), parts), part }))
    }

    /// Appends some of the next points that are seen, at most `limit`; false if none are left.
    pub(crate) fn read(&mut self, out: &mut Points, limit: usize) -> Result<bool> {
        loop {
            if let Some(part) = &mut self.part
                && part.read(out, limit)?
            {
                return Ok(true);
            }
            self.part = self.ahead.next(self.part.take())?;
            if self.part.is_none() {
                return Ok(false);
            }
        }
    }

    /// Gives some of the next points that are seen, from where they are; false if none are left.
    /// What has to be put together for that is put into `buffer`.
    pub(crate) fn visit(
        &mut self,
        buffer: &mut Points,
        visit: &mut dyn FnMut(&Points, Range<usize>) -> Result<()>,
    ) -> Result<bool> {
        loop {
            if let Some(part) = &mut self.part
                && part.visit(buffer, visit)?
            {
                return Ok(true);
            }
            self.part = self.ahead.next(self.part.take())?;
            if self.part.is_none() {
                return Ok(false);
            }
        }
    }
}

impl Part {
    fn read(&mut self, out: &mut Points, limit: usize) -> Result<bool> {
        if let Some(run) = self.runs.front_mut() {
            let end = run.places.end.min(run.places.start.saturating_add(limit));
            out.append(&run.points, run.places.start..end);
            run.places.start = end;
            if run.places.is_empty() {
                self.runs.pop_front();
            }
            return Ok(true);
        }
        self.rest.as_mut().map_or(Ok(false), |rest| rest.read(out, limit))
    }

    fn visit(
        &mut self,
        buffer: &mut Points,
        visit: &mut dyn FnMut(&Points, Range<usize>) -> Result<()>,
    ) -> Result<bool> {
        if let Some(Run { points, places }) = self.runs.pop_front() {
            visit(&points, places)?;
            return Ok(true);
        }
        self.rest.as_mut().map_or(Ok(false), |rest| rest.visit(buffer, visit))
    }
}

impl Reading {
    /// The next points that are seen: some megabytes of them. False if none are left.
    fn read_runs(&mut self, runs: &mut VecDeque<Run>) -> Result<bool> {
        let (mut bytes, mut together) = (0_usize, Points::new(self.value_type));
        while bytes.saturating_add(together.bytes()) < SERIES_PART_BYTES_MAX {
            match self.next_part(usize::MAX)? {
                super::Part::Places(piece, places) if self.is_as_it_is(&piece, &places) => {
                    put_behind(runs, &mut together);
                    bytes = bytes.saturating_add(piece.bytes());
                    runs.push_back(Run { points: Arc::clone(&piece.points), places });
                }
                super::Part::Places(piece, places) => self.append(&piece, places, &mut together),
                super::Part::Time(rank) => self.read_time(rank, &mut together)?,
                super::Part::End => {
                    put_behind(runs, &mut together);
                    return Ok(false);
                }
            }
        }
        put_behind(runs, &mut together);
        Ok(true)
    }
}

/// Puts points behind others, if there are any.
fn put_behind(runs: &mut VecDeque<Run>, points: &mut Points) {
    if !points.is_empty() {
        let places = 0..points.len();
        let taken = std::mem::replace(points, Points::new(points.value_type()));
        runs.push_back(Run { points: Arc::new(taken), places });
    }
}

impl Parts {
    /// Cuts the next part off, if something is left.
    fn cut(&mut self) -> Result<Option<Course>> {
        let Some(whole) = self.course else { return Ok(None) };
        let TimeSpan { first, last } = whole.span;
        while let Some(at) = self.walk.pass(SERIES_PART_CELLS, whole.direction)? {
            if first < at && at <= last {
                let (low, high) = (TimeSpan { first, last: at - 1 }, TimeSpan { first: at, last });
                let (span, rest) = match whole.direction {
                    Direction::Rising => (low, high),
                    Direction::Falling => (high, low),
                };
                self.course = Some(Course { span: rest, ..whole });
                return Ok(Some(Course { span, ..whole }));
            }
            // Before it there may be cells of the time that the span begins with.
            let is_behind = match whole.direction {
                Direction::Rising => at > last,
                Direction::Falling => at <= first,
            };
            if is_behind {
                break;
            }
        }
        Ok(self.course.take())
    }
}

impl PartSource for Parts {
    type Part = Part;
    type Store = Arc<PointStore>;

    fn next_part(&mut self, room: Option<Part>) -> Result<Option<Part>> {
        let Some(course) = self.cut()? else { return Ok(None) };
        let mut runs = room.map_or_else(VecDeque::new, |room| room.runs);
        runs.clear();
        Ok(Some(Part { course, runs, rest: None }))
    }

    fn read(store: &Arc<PointStore>, part: &mut Part) -> Result<()> {
        let mut reading = store.read(part.course)?;
        let is_more = reading.read_runs(&mut part.runs)?;
        part.rest = is_more.then_some(reading);
        Ok(())
    }
}
