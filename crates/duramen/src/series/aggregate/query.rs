//! Aggregates of a series of a database.

use std::ops::RangeBounds;

use super::columns::Columns;
use super::{AggregateOptions, Before, Stream, WindowTable};
use crate::error::Result;
use crate::revision::Micros;
use crate::series::many::on_all_processors;
use crate::series::source::{self, Course, Direction};
use crate::series::span::TimeSpan;
use crate::series::{Point, RangeOptions, Series, SeriesSnapshot};
use crate::tree::cell_key;

#[cfg(test)]
mod tests;

/// Blocks of segments that are read sooner by one thread than another one has begun.
const PART_BLOCKS: usize = 4;
/// Parts of a span: more than there are threads, so that all have something to do to the end.
const PARTS_MAX: usize = 16;
/// Blocks of a span that stay decoded when they were read: more of them would take the place of
/// everything else, and be gone all the same before they are read again.
pub(super) const KEPT_BLOCKS: u64 = 4;

/// A part of a span that one thread reads.
#[derive(Debug, Clone, Copy)]
struct Part {
    span: TimeSpan,
    /// Until when values hold in it.
    end: i64,
    /// Blocks that stay decoded.
    kept_blocks: u64,
}

impl Part {
    /// All of a span.
    fn whole((span, end): (TimeSpan, i64)) -> Self {
        Self { span, end, kept_blocks: KEPT_BLOCKS }
    }
}

impl SeriesSnapshot {
    /// What the points of a span of time come to, window by window. Where the span has no bound,
    /// it reaches to the first or last point; a window that it cuts has only the points inside.
    ///
    /// ```
    /// # use duramen::{CommitOptions, Database, Micros, SeriesDefinition, SeriesValue, ValueType};
    /// use duramen::{Aggregate, AggregateOptions, Windows};
    ///
    /// # let db = Database::memory()?;
    /// # let level = db.create_series("tank/level", &SeriesDefinition::new(ValueType::F64))?;
    /// for (second, value) in [(0, 2.0), (30, 4.0), (70, 9.0)] {
    ///     level.append(Micros(second * 1_000_000), value, &CommitOptions::default())?;
    /// }
    /// let minutes = Windows::parse("1m", "UTC")?;
    /// let mean = AggregateOptions::new(vec![Aggregate::Mean], minutes);
    /// let table = level.snapshot().aggregate(.., &mean)?;
    /// assert_eq!(table.starts, [0, 60_000_000]);
    /// assert_eq!(table.columns[0].get(0), Some(SeriesValue::F64(3.0)));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if there are too many windows, the calendar of the windows does not reach there,
    /// or a percentile is none; and those of reading.
    pub fn aggregate(
        &self,
        span: impl RangeBounds<Micros>,
        options: &AggregateOptions,
    ) -> Result<WindowTable> {
        match self.bounded(&span)? {
            Some(bounded) => self.aggregate_bounded(bounded, options),
            None => Stream::none(self.info().definition.value_type, options),
        }
    }

    /// The same of a span in which values hold until an end.
    pub(in crate::series) fn aggregate_bounded(
        &self,
        (span, end): (TimeSpan, i64),
        options: &AggregateOptions,
    ) -> Result<WindowTable> {
        let from = (Micros(span.first), Direction::Rising);
        let parts = self.parts((span, end), options);
        let parts = parts.map_err(|error| self.info().named(error, from))?;
        if parts.is_empty() {
            return self.aggregate_bounded_alone((span, end), options);
        }
        let tables = on_all_processors(&parts, |part| self.aggregate_part(*part, options))?;
        let mut all = Columns::new(&options.aggregates, self.info().definition.value_type);
        tables.into_iter().try_for_each(|table| all.append(table))?;
        self.filled(all.finish(), span, options)
    }

    /// The same as [`Self::aggregate`], by one thread.
    pub(in crate::series) fn aggregate_alone(
        &self,
        span: &impl RangeBounds<Micros>,
        options: &AggregateOptions,
    ) -> Result<WindowTable> {
        match self.bounded(span)? {
            Some(bounded) => self.aggregate_bounded_alone(bounded, options),
            None => Stream::none(self.info().definition.value_type, options),
        }
    }

    /// The same of a span in which values hold until an end.
    pub(in crate::series) fn aggregate_bounded_alone(
        &self,
        bounded: (TimeSpan, i64),
        options: &AggregateOptions,
    ) -> Result<WindowTable> {
        let table = self.aggregate_part(Part::whole(bounded), options)?;
        self.filled(table, bounded.0, options)
    }

    /// What the points of a span come to, in which values hold until an end: its gaps not filled.
    pub(super) fn aggregate_unfilled(
        &self,
        bounded: (TimeSpan, i64),
        options: &AggregateOptions,
    ) -> Result<WindowTable> {
        self.aggregate_part(Part::whole(bounded), options)
    }

    /// A long span in parts of whole windows that threads may share; none if it is short.
    fn parts(&self, (span, end): (TimeSpan, i64), options: &AggregateOptions) -> Result<Vec<Part>> {
        let (view, series) = self.place();
        let column = cell_key::all_points(series);
        let blocks = source::segment_blocks(&view.store.live(), &column, span)?;
        let wanted = (blocks / PART_BLOCKS).min(PARTS_MAX);
        if wanted < 2 {
            return Ok(Vec::new());
        }
        // Rollups answer before threads are there.
        let from = self.told_by_points_from(span, options)?.filter(|from| *from < span.last);
        let Some(from) = from else { return Ok(Vec::new()) };
        let (mut parts, mut first) = (Vec::new(), span.first);
        let width = span.last.abs_diff(from) / wanted as u64;
        for part in 1..wanted as u64 {
            let near = from.saturating_add_unsigned(width.saturating_mul(part));
            let cut = options.windows.start(options.windows.number(near)?);
            if cut > first && cut <= span.last {
                let span = TimeSpan { first, last: cut - 1 };
                parts.push(Part { span, end: cut, kept_blocks: 0 });
                first = cut;
            }
        }
        if !parts.is_empty() {
            parts.push(Part { span: TimeSpan { first, ..span }, end, kept_blocks: 0 });
        }
        Ok(parts)
    }

    /// What the points of a part come to, its gaps not filled.
    fn aggregate_part(&self, part: Part, options: &AggregateOptions) -> Result<WindowTable> {
        let from = (Micros(part.span.first), Direction::Rising);
        self.stream_part(part, options).map_err(|error| self.info().named(error, from))
    }

    fn stream_part(
        &self,
        Part { span, end, kept_blocks }: Part,
        options: &AggregateOptions,
    ) -> Result<WindowTable> {
        let value_type = self.info().definition.value_type;
        let mut before = self.before(span.first, options)?;
        if before.is_without_number(options) {
            before.set_number(self.number_of_rows_before(span.first, options)?);
        }
        let mut stream = Stream::new(value_type, options, (span.first, end), before)?;
        stream.kept_blocks = kept_blocks;
        self.feed(&mut stream, span, options)?;
        let one = RangeOptions { limit: Some(1), ..RangeOptions::default() };
        let after = match span.last.checked_add(1) {
            Some(after) if options.needs_neighbours() => self.one(Micros(after).., one)?,
            _ => None,
        };
        // Of several series one may end later: its last window is one of all.
        if end <= span.last {
            stream.advance(span.last, after.as_ref())?;
        }
        stream.finish(after.as_ref())
    }

    /// The span, from the first or up to the last point where it has no bound, and until when
    /// values hold in it: up to its end, or to the last point; none without points.
    pub(in crate::series) fn bounded(
        &self,
        span: &impl RangeBounds<Micros>,
    ) -> Result<Option<(TimeSpan, i64)>> {
        let all = (Micros(i64::MIN), Direction::Rising);
        self.find_bounds(span).map_err(|error| self.info().named(error, all))
    }

    fn find_bounds(&self, span: &impl RangeBounds<Micros>) -> Result<Option<(TimeSpan, i64)>> {
        let Some(mut bounded) = TimeSpan::of(span) else { return Ok(None) };
        let mut end = bounded.last.saturating_add(1);
        let (no_first, no_last) = (bounded.first == i64::MIN, bounded.last == i64::MAX);
        let rows = if no_first || no_last { self.rows_alone()? } else { None };
        if no_first {
            let first = self.outermost(Direction::Rising)?;
            let first = first.into_iter().chain(rows.map(|rows| rows.first)).min();
            let Some(first) = first else { return Ok(None) };
            bounded.first = first;
        }
        if no_last {
            let last = self.outermost(Direction::Falling)?;
            let last = last.into_iter().chain(rows.map(|rows| rows.last)).max();
            let Some(last) = last else { return Ok(None) };
            (bounded.last, end) = (last, last);
        }
        Ok((bounded.first <= bounded.last).then_some((bounded, end)))
    }

    /// The time of the first point, or of the last: as the head of a block says it, where all of
    /// the block is seen.
    fn outermost(&self, direction: Direction) -> Result<Option<i64>> {
        let all = TimeSpan { first: i64::MIN, last: i64::MAX };
        let Some(span) = self.kept(all)? else { return Ok(None) };
        let reading = self.read(Course { span, direction })?;
        if let Some(block) = reading.next_seen_block()? {
            let (first, last) = block.time_range();
            return Ok(Some(if direction == Direction::Rising { first.0 } else { last.0 }));
        }
        let reverse = direction == Direction::Falling;
        let one = self.one(.., RangeOptions { limit: Some(1), reverse, bounding: false })?;
        Ok(one.map(|point| point.time.0))
    }

    /// What is to be known of the points before a span.
    fn before(&self, first: i64, options: &AggregateOptions) -> Result<Before> {
        let mut before = Before::default();
        if !options.needs_neighbours() {
            return Ok(before);
        }
        let one = RangeOptions { limit: Some(1), reverse: true, bounding: false };
        let Some(last) = self.one(..Micros(first), one)? else { return Ok(before) };
        let mut earlier = last.time;
        if !before.add(last, options) {
            return Ok(before);
        }
        // The last point does not count: one before it may.
        loop {
            let all = RangeOptions { reverse: true, ..RangeOptions::default() };
            let Some(points) = self.range_with(..earlier, &all)?.next().transpose()? else {
                return Ok(before);
            };
            for point in points.iter() {
                earlier = point.time;
                if !before.add(point, options) {
                    return Ok(before);
                }
            }
        }
    }

    fn one(&self, span: impl RangeBounds<Micros>, one: RangeOptions) -> Result<Option<Point>> {
        Ok(self.range_with(span, &one)?.read()?.get(0))
    }
}

impl Series {
    /// What the points of a span of time come to as of the last commit:
    /// [`SeriesSnapshot::aggregate`].
    ///
    /// # Errors
    /// Those of [`SeriesSnapshot::aggregate`].
    pub fn aggregate(
        &self,
        span: impl RangeBounds<Micros>,
        options: &AggregateOptions,
    ) -> Result<WindowTable> {
        self.head()?.aggregate(span, options)
    }
}
