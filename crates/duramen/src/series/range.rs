//! The points of a span of time, as they are read one after the other.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits::{SERIES_LONG_RANGE_POINTS, SERIES_READ_POINTS};
use crate::revision::Micros;
use crate::series::cursor::SeriesCursor;
use crate::series::definition::SeriesInfo;
use crate::series::points::Points;
use crate::series::reading::{LongReading, PointStore, Reading};
use crate::series::source::{Course, Direction};
use crate::series::span::TimeSpan;

/// How a range is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RangeOptions {
    /// At most so many points; all of them if none is said.
    pub limit: Option<usize>,
    /// The greatest times first.
    pub reverse: bool,
    /// Also the last point before the span and the first one behind it, where there are any: what a
    /// line through the span is drawn to.
    pub bounding: bool,
}

/// Points of a span of time, as columns of some thousands at once.
#[derive(Debug)]
pub struct SeriesRange {
    info: Arc<SeriesInfo>,
    source: Source,
    empty: Points,
    /// How many points were given, and how many more may be.
    given: usize,
    left: usize,
    /// What was not read yet.
    rest: SeriesCursor,
}

/// Where points come from.
#[derive(Debug)]
enum Source {
    /// What a long range is read from later on, until that was tried.
    Alone(Reading, Option<Arc<PointStore>>),
    Long(LongReading),
    AtEnd,
}

impl Source {
    fn read(&mut self, out: &mut Points, limit: usize) -> Result<bool> {
        match self {
            Self::Alone(reading, _) => reading.read(out, limit),
            Self::Long(reading) => reading.read(out, limit),
            Self::AtEnd => Ok(false),
        }
    }

    fn visit(
        &mut self,
        buffer: &mut Points,
        visit: &mut dyn FnMut(&Points, Range<usize>) -> Result<()>,
    ) -> Result<bool> {
        match self {
            Self::Alone(reading, _) => reading.visit(buffer, visit),
            Self::Long(reading) => reading.visit(buffer, visit),
            Self::AtEnd => Ok(false),
        }
    }
}

impl SeriesRange {
    /// Begins to read what is left of a range: nothing, if there is no store.
    pub(super) fn new(
        info: Arc<SeriesInfo>,
        store: Option<PointStore>,
        rest: SeriesCursor,
        left: usize,
    ) -> Result<Self> {
        let empty = Points::new(info.definition.value_type);
        let mut range = Self { info, source: Source::AtEnd, empty, given: 0, left, rest };
        if let Some(store) = store {
            let reading = store.read(course_of(rest)).map_err(|error| range.named(error))?;
            range.source = Source::Alone(reading, Some(Arc::new(store)));
        }
        Ok(range)
    }

    /// An error of reading what is left.
    fn named(&self, error: Error) -> Error {
        let Course { span, direction } = course_of(self.rest);
        let time = match direction {
            Direction::Rising => span.first,
            Direction::Falling => span.last,
        };
        self.info.named(error, (Micros(time), direction))
    }

    /// Where to go on later, also in another process: behind the last point that was given. None if
    /// nothing is left.
    ///
    /// ```
    /// # use duramen::{CommitOptions, Database, Micros, RangeOptions, SeriesDefinition, ValueType};
    /// # let db = Database::memory()?;
    /// # let level = db.create_series("tank/level", &SeriesDefinition::new(ValueType::I64))?;
    /// for time in 1..=5 {
    ///     level.append(Micros(time), time, &CommitOptions::default())?;
    /// }
    /// let two = RangeOptions { limit: Some(2), ..RangeOptions::default() };
    /// let mut page = level.range_with(.., &two)?;
    /// assert_eq!(page.next().transpose()?.map(|points| points.len()), Some(2));
    /// let cursor = page.cursor().expect("three are left").to_string();
    /// let cursor: duramen::SeriesCursor = cursor.parse()?;
    /// let rest = level.at(cursor.sequence).resume(cursor, None)?.read()?;
    /// assert_eq!(rest.times(), [3, 4, 5]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn cursor(&self) -> Option<SeriesCursor> {
        (!matches!(self.source, Source::AtEnd) && self.rest.first <= self.rest.last)
            .then_some(self.rest)
    }

    /// Calls `visit` with the points that are left, some at once: columns, and the places in them
    /// that are meant. They are where they were decoded, so that nothing is copied, as long as they
    /// need not be put together. It goes on until `visit` breaks off.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use duramen::{CommitOptions, Database, Micros, SeriesDefinition, ValueType, Values};
    /// # let db = Database::memory()?;
    /// # let level = db.create_series("tank/level", &SeriesDefinition::new(ValueType::F64))?;
    /// for time in 1..=5 {
    ///     level.append(Micros(time), 0.5, &CommitOptions::default())?;
    /// }
    /// let mut sum = 0.0;
    /// level.range(Micros(2)..)?.visit(|points, places| {
    ///     if let Values::F64(values) = points.values() {
    ///         sum += values[places].iter().sum::<f64>();
    ///     }
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(sum, 2.0);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn visit(
        mut self,
        mut visit: impl FnMut(&Points, Range<usize>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut is_wanted = true;
        while self.left > 0 && is_wanted {
            self.share_if_long().map_err(|error| self.named(error))?;
            let mut passed = None;
            let Self { source, empty, left, given, .. } = &mut self;
            let read = source.visit(empty, &mut |points, places| {
                let places = places.start..places.end.min(places.start.saturating_add(*left));
                *left -= places.len();
                *given = given.saturating_add(places.len());
                passed = places.clone().last().and_then(|last| points.times().get(last).copied());
                is_wanted = places.is_empty() || visit(points, places).is_continue();
                Ok(())
            });
            if !read.map_err(|error| self.named(error))? {
                break;
            }
            self.rest.pass(passed);
        }
        Ok(())
    }

    /// Reads what is left on several processors, where it is long.
    fn share_if_long(&mut self) -> Result<()> {
        let is_long = self.given.min(self.left) >= SERIES_LONG_RANGE_POINTS;
        if let Source::Alone(_, store) = &mut self.source
            && is_long
            && self.rest.first <= self.rest.last
            && let Some(store) = store.take()
            && let Some(long) = LongReading::new(&store, course_of(self.rest))?
        {
            self.source = Source::Long(long);
        }
        Ok(())
    }

    /// All the points that are left, as one.
    pub fn read(mut self) -> Result<Points> {
        let mut all = std::mem::replace(&mut self.empty, Points::new(crate::ValueType::Bool));
        self.fill(&mut all, usize::MAX)?;
        Ok(all)
    }

    /// Appends points until there are `wanted`, or no more.
    fn fill(&mut self, out: &mut Points, wanted: usize) -> Result<()> {
        while out.len() < wanted && self.left > 0 {
            let before = out.len();
            let limit = self.left.min(wanted - before);
            let read = self.share_if_long().and_then(|()| self.source.read(out, limit));
            match read {
                Ok(true) => {
                    let count = out.len() - before;
                    (self.left, self.given) = (self.left - count, self.given.saturating_add(count));
                    self.rest.pass(out.times().last().copied());
                }
                done => {
                    self.source = Source::AtEnd;
                    return done.map(drop).map_err(|error| self.named(error));
                }
            }
        }
        Ok(())
    }
}

/// What a cursor has not passed.
fn course_of(rest: SeriesCursor) -> Course {
    let direction = if rest.reverse { Direction::Falling } else { Direction::Rising };
    Course { span: TimeSpan { first: rest.first.0, last: rest.last.0 }, direction }
}

impl Iterator for SeriesRange {
    type Item = Result<Points>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut batch = self.empty.clone();
        match self.fill(&mut batch, SERIES_READ_POINTS) {
            Err(error) => Some(Err(error)),
            Ok(()) if batch.is_empty() => None,
            Ok(()) => Some(Ok(batch)),
        }
    }
}

#[cfg(test)]
mod tests;
