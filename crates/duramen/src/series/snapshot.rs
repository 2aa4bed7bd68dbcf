//! A series as of one commit.

use std::ops::RangeBounds;
use std::sync::Arc;

use crate::engine::View;
use crate::error::Result;
use crate::limits::SERIES_READ_POINTS;
use crate::revision::{CommitSequence, Micros};
use crate::series::definition::SeriesInfo;
use crate::series::points::{Point, Points};
use crate::series::reading::Reading;
use crate::series::source::{Course, Direction};
use crate::series::span::TimeSpan;
use crate::series::value::SeriesValue;
use crate::series::{deletes, source};
use crate::tree::cell_key::TreeId;

/// A series as of one commit: immutable, shared freely, never in the writer's way.
#[derive(Debug, Clone)]
pub struct SeriesSnapshot {
    view: Arc<View>,
    info: Arc<SeriesInfo>,
    sequence: CommitSequence,
}

/// How a range is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RangeOptions {
    /// At most so many points; all of them if none is said.
    pub limit: Option<usize>,
    /// The greatest times first.
    pub reverse: bool,
}

/// How the value between two points is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interpolation {
    /// There is a value only where a point is.
    Stored,
    /// That of the last point before.
    #[default]
    Step,
    /// On the straight line between the point before and the point after. Where there is none
    /// after, and for truth values and text, as for a step.
    Linear,
}

/// Points of a span of time, as columns of some thousands at once. To go on later, begin a new
/// range behind the last time that was read.
#[derive(Debug)]
pub struct SeriesRange {
    reading: Option<Reading>,
    empty: Points,
    left: usize,
}

impl SeriesSnapshot {
    pub(crate) fn new(view: Arc<View>, info: Arc<SeriesInfo>, sequence: CommitSequence) -> Self {
        Self { view, info, sequence }
    }

    /// What the catalogue says of the series.
    pub fn info(&self) -> &SeriesInfo {
        &self.info
    }

    /// The commit that the snapshot shows.
    pub fn sequence(&self) -> CommitSequence {
        self.sequence
    }

    /// The points of a span of time, rising.
    pub fn range(&self, span: impl RangeBounds<Micros>) -> Result<SeriesRange> {
        self.range_with(span, &RangeOptions::default())
    }

    /// The same, saying in which order, and how many.
    ///
    /// ```
    /// # use duramen::{CommitOptions, Database, Micros, RangeOptions, SeriesDefinition, ValueType};
    /// # let db = Database::memory()?;
    /// # let level = db.create_series("tank/level", &SeriesDefinition::new(ValueType::I64))?;
    /// for time in 1..=9 {
    ///     level.append(Micros(time), time * 10, &CommitOptions::default())?;
    /// }
    /// let last_two = RangeOptions { limit: Some(2), reverse: true };
    /// let points = level.range_with(..Micros(6), &last_two)?.read()?;
    /// assert_eq!(points.times(), [5, 4]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn range_with(
        &self,
        span: impl RangeBounds<Micros>,
        options: &RangeOptions,
    ) -> Result<SeriesRange> {
        let direction = if options.reverse { Direction::Falling } else { Direction::Rising };
        let left = options.limit.unwrap_or(usize::MAX);
        let empty = Points::new(self.info.definition.value_type);
        let reading = match TimeSpan::of(&span) {
            Some(span) if left > 0 => Some(self.read(Course { span, direction })?),
            _ => None,
        };
        Ok(SeriesRange { reading, empty, left })
    }

    /// Where its points are, and under which number.
    pub(super) fn place(&self) -> (&View, TreeId) {
        (&self.view, self.info.number)
    }

    fn read(&self, course: Course) -> Result<Reading> {
        let (view, series) = self.place();
        // What is young comes first: a checkpoint drops it only when segments have it.
        let young = view.series.of(series);
        let live = view.store.live();
        let mut deleted = young.deletes;
        deletes::read(&live, series, &mut deleted)?;
        let memory = view.store.memory();
        let mut sources = source::young(young.pieces, course, memory)?;
        sources.extend(source::on_disk(&live, series, course, memory)?);
        let value_type = self.info.definition.value_type;
        let reading = Reading::new(value_type, course, sources, (self.sequence, deleted));
        Ok(reading)
    }

    /// The point with the greatest time.
    pub fn latest(&self) -> Result<Option<Point>> {
        self.last_until(Micros(i64::MAX))
    }

    /// The last point that is not after a time.
    fn last_until(&self, time: Micros) -> Result<Option<Point>> {
        let one = RangeOptions { limit: Some(1), reverse: true };
        Ok(self.range_with(..=time, &one)?.read()?.get(0))
    }

    /// The value at a time: none before the first point. Its time is the one that was asked for,
    /// its quality that of the point it was made from, the worse one of two.
    ///
    /// ```
    /// # use duramen::{CommitOptions, Database, Interpolation, Micros, SeriesDefinition};
    /// # use duramen::{SeriesValue, ValueType};
    /// # let db = Database::memory()?;
    /// # let level = db.create_series("tank/level", &SeriesDefinition::new(ValueType::F64))?;
    /// level.append(Micros(10), 1.0, &CommitOptions::default())?;
    /// level.append(Micros(20), 3.0, &CommitOptions::default())?;
    /// let now = level.snapshot();
    /// let at = |how| Ok::<_, duramen::Error>(now.value_at(Micros(15), how)?.map(|p| p.value));
    /// assert_eq!(at(Interpolation::Linear)?, Some(SeriesValue::F64(2.0)));
    /// assert_eq!(at(Interpolation::Step)?, Some(SeriesValue::F64(1.0)));
    /// assert_eq!(at(Interpolation::Stored)?, None);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn value_at(&self, time: Micros, how: Interpolation) -> Result<Option<Point>> {
        if how == Interpolation::Stored {
            return Ok(self.range(time..=time)?.read()?.get(0));
        }
        let Some(before) = self.last_until(time)? else { return Ok(None) };
        if before.time == time || how == Interpolation::Step || time.0 == i64::MAX {
            return Ok(Some(Point { time, ..before }));
        }
        let one = RangeOptions { limit: Some(1), reverse: false };
        let after = self.range_with(Micros(time.0 + 1).., &one)?.read()?.get(0);
        Ok(Some(
            after.map_or(Point { time, ..before.clone() }, |after| between(&before, &after, time)),
        ))
    }
}

/// The point on the line between two.
fn between(before: &Point, after: &Point, time: Micros) -> Point {
    let quality = before.quality.min(after.quality);
    let value = match (&before.value, &after.value) {
        (SeriesValue::F64(a), SeriesValue::F64(b)) => {
            SeriesValue::F64(line((*a, *b), (before.time, after.time), time))
        }
        (SeriesValue::F32(a), SeriesValue::F32(b)) => {
            let ends = (f64::from(*a), f64::from(*b));
            SeriesValue::F32(to_f32(line(ends, (before.time, after.time), time)))
        }
        (SeriesValue::I64(a), SeriesValue::I64(b)) => {
            SeriesValue::I64(integer_line((*a, *b), (before.time, after.time), time))
        }
        _ => return Point { time, ..before.clone() },
    };
    Point { time, value, quality }
}

#[expect(clippy::cast_precision_loss, reason = "a share of a span is a float")]
fn line((a, b): (f64, f64), (from, to): (Micros, Micros), at: Micros) -> f64 {
    let share = at.0.abs_diff(from.0) as f64 / to.0.abs_diff(from.0) as f64;
    a.mul_add(1.0 - share, b * share)
}

#[expect(clippy::cast_possible_truncation, reason = "the nearest f32 is what is asked for")]
fn to_f32(value: f64) -> f32 {
    value as f32
}

/// The integer nearest to the line, which is between the two.
fn integer_line((a, b): (i64, i64), (from, to): (Micros, Micros), at: Micros) -> i64 {
    let (elapsed, whole) = (i128::from(at.0.abs_diff(from.0)), i128::from(to.0.abs_diff(from.0)));
    // Both factors have at most 65 bits with their signs, so the product has fewer than 128.
    let rise = (i128::from(b) - i128::from(a)).checked_mul(elapsed);
    let rise = rise.map_or(0, |rise| (rise + rise.signum() * (whole / 2)) / whole);
    i64::try_from(i128::from(a) + rise).unwrap_or(a)
}

impl SeriesRange {
    /// All the points that are left, as one.
    pub fn read(mut self) -> Result<Points> {
        let mut all = std::mem::replace(&mut self.empty, Points::new(crate::ValueType::Bool));
        self.fill(&mut all, usize::MAX)?;
        Ok(all)
    }

    /// Appends points until there are `wanted`, or no more.
    fn fill(&mut self, out: &mut Points, wanted: usize) -> Result<()> {
        let Some(reading) = &mut self.reading else { return Ok(()) };
        while out.len() < wanted && self.left > 0 {
            let before = out.len();
            let limit = self.left.min(wanted - before).min(SERIES_READ_POINTS);
            match reading.read(out, limit) {
                Ok(true) => self.left -= out.len() - before,
                done => {
                    self.reading = None;
                    return done.map(drop);
                }
            }
        }
        Ok(())
    }
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
