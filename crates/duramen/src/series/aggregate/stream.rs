//! Points stream through, windows come out.
//!
//! What holds between two points is counted when the second one is known, window by window, so
//! that no window is closed before all of it is.

use std::ops::Range;

use super::columns::Columns;
use super::window::{Number, Window};
use super::{Aggregate, AggregateOptions, Fill, WindowTable};
use crate::error::Result;
use crate::series::block::{Block, Summary, float};
use crate::series::interpolation::number_at;
use crate::series::rollup::{Column, Table};
use crate::series::{Point, Points, SeriesValue, ValueType, Values};

/// Aggregates points as they come.
#[derive(Debug)]
pub(crate) struct Stream<'a> {
    options: &'a AggregateOptions,
    needs: Needs,
    /// Whether only counts and sums are needed.
    is_of_sums: bool,
    value_type: ValueType,
    /// The first time that is asked for, and the first that is not.
    span: (i64, i64),
    window: Window,
    /// The last number in windows before.
    before: Option<(i64, Number)>,
    /// The value that holds since the last point, unless that does not count.
    held: Option<(i64, SeriesValue)>,
    columns: Columns,
    /// How many more blocks that are read for it are to stay decoded.
    pub(super) kept_blocks: u64,
}

/// What has to be looked at beside summaries.
#[derive(Debug, Clone, Default)]
struct Needs {
    digest: bool,
    numbers: bool,
    /// Values as they hold.
    held: bool,
    states: Vec<SeriesValue>,
}

impl Needs {
    /// Of aggregates of a series of a type.
    fn of(aggregates: &[Aggregate], value_type: ValueType) -> Self {
        let mut needs = Self::default();
        for aggregate in aggregates {
            match aggregate {
                Aggregate::Percentile(_) => needs.digest = true,
                change if change.is_change() => needs.numbers = true,
                Aggregate::TimeWeightedMean(_) => needs.held = true,
                Aggregate::DurationIn(state) => {
                    needs.held = true;
                    let own = state.written_as(value_type);
                    needs.states.push(own.unwrap_or_else(|| state.clone()));
                }
                _ => {}
            }
        }
        needs
    }

    /// Whether a value counts while it holds: a number does, and a text where the time in a state
    /// is asked for, in that state or not, so that durations add up.
    fn counts(&self, value: &SeriesValue) -> bool {
        let is_text = matches!(value, SeriesValue::String(_));
        let is_state = || self.states.iter().any(|state| state.is_same(value));
        real(value).is_some() || is_state() || is_text && !self.states.is_empty()
    }
}

/// What is known of the time before a span.
#[derive(Debug, Clone, Default)]
pub(crate) struct Before {
    /// The last point.
    point: Option<Point>,
    /// The last number that counts.
    number: Option<(i64, Number)>,
}

impl Before {
    /// Adds a point before those that were added before. False if no more of them are needed.
    pub(crate) fn add(&mut self, point: Point, options: &AggregateOptions) -> bool {
        if options.quality.takes(point.quality) {
            self.number = Number::of(&point.value).map(|number| (point.time.0, number));
        }
        self.point.get_or_insert(point);
        self.is_without_number(options)
    }

    /// Whether the last number that counts is needed and not known.
    pub(super) fn is_without_number(&self, options: &AggregateOptions) -> bool {
        self.number.is_none() && options.aggregates.iter().any(Aggregate::is_change)
    }

    /// Takes the last number that counts.
    pub(super) fn set_number(&mut self, number: Option<(i64, Number)>) {
        self.number = number;
    }
}

impl<'a> Stream<'a> {
    /// The table of a series of a type that has no points to ask for.
    pub(crate) fn none(value_type: ValueType, options: &AggregateOptions) -> Result<WindowTable> {
        options.check()?;
        Ok(Columns::new(&options.aggregates, value_type).finish())
    }

    /// Begins with the span of time `from..to` of a series of a type. Values hold up to `to`; a
    /// point that is there may be added all the same.
    pub(crate) fn new(
        value_type: ValueType,
        options: &'a AggregateOptions,
        span: (i64, i64),
        before: Before,
    ) -> Result<Self> {
        options.check()?;
        let needs = Needs::of(&options.aggregates, value_type);
        let number = options.windows.number(span.0)?;
        let held = before.point.filter(|point| options.quality.takes(point.quality));
        Ok(Self {
            value_type,
            span,
            window: open(options, (value_type, needs.states.len()), number),
            before: before.number,
            held: held.map(|point| (point.time.0, point.value)).filter(|_| needs.held),
            columns: Columns::new(&options.aggregates, value_type),
            kept_blocks: 0,
            needs,
            is_of_sums: options.aggregates.iter().all(Aggregate::is_sum),
            options,
        })
    }

    /// Adds points of the span, rising, after all that were added before.
    pub(crate) fn add(&mut self, points: &Points, places: Range<usize>) -> Result<()> {
        let times = points.times().get(..places.end).unwrap_or_default();
        let mut start = places.start;
        while let Some(time) = times.get(start) {
            if *time >= self.window.end {
                self.advance(*time, points.get(start).as_ref())?;
            }
            let rest = times.get(start..).unwrap_or_default();
            // The last microsecond of time is behind every window's end.
            let end = start + count_before(rest, self.window.end).max(1);
            self.take(points, start..end);
            start = end;
        }
        Ok(())
    }

    /// Whether the points are needed: for a sum or a mean, as they came to more than a float can
    /// be, for a deviation that is small beside what rounding took from their sum, or for a change,
    /// as the first or the last of them is no number.
    pub(super) fn is_of_points(&self, summary: &Summary) -> bool {
        let is_wrong = |aggregate: &Aggregate| match aggregate {
            Aggregate::Sum | Aggregate::Mean => summary.numbers.is_overflown(),
            Aggregate::StdDev => summary.numbers.is_rounded(),
            Aggregate::Delta | Aggregate::Rate => {
                summary.numbers.count() > 0 && !Number::are_ends_of(summary)
            }
            _ => false,
        };
        self.options.aggregates.iter().any(is_wrong)
    }

    /// Adds a block of the span that is behind all that was added before, by its summary alone;
    /// false, and nothing done, where that does not tell enough.
    pub(crate) fn add_block(&mut self, block: &Block) -> Result<bool> {
        let (first, last) = block.time_range();
        let summary = block.summary().filter(|summary| !self.is_of_points(summary));
        let Some(summary) = summary else { return Ok(false) };
        let number = self.options.windows.number(first.0)?;
        if self.options.windows.end(number) <= last.0 {
            return Ok(false);
        }
        self.add_summary(first.0, summary)?;
        Ok(true)
    }

    /// Adds a block of the span that is behind all that was added before, by the sums of its
    /// windows; false, and nothing done, where more is asked for, or these are not quickly told.
    pub(crate) fn add_sums(&mut self, block: &Block) -> Result<bool> {
        let filter = self.options.quality;
        let width = self.options.windows.width().filter(|_| self.is_of_sums);
        let Some(width) = width.filter(|_| self.is_of_whole_columns()) else { return Ok(false) };
        let (starts, ends) = windows_of(block, width)?;
        let Some(sums) = block.sums(&ends, |quality| filter.takes(quality))? else {
            return Ok(false);
        };
        let mut before = 0;
        let count = |end: &usize| (end - std::mem::replace(&mut before, *end)) as u64;
        let counts: Vec<u64> = ends.iter().map(count).collect();
        let last = starts.len() - 1;
        self.advance(block.time_range().0.0, None)?;
        self.window.add_sums((counts[0], sums[0]));
        if last > 0 {
            let whole = 1..last;
            self.add_whole(&starts[whole.clone()], (&counts[whole.clone()], &sums[whole]))?;
            self.advance(starts[last], None)?;
            self.window.add_sums((counts[last], sums[last]));
        }
        Ok(true)
    }

    /// Adds whole windows by how many points they have, all of them numbers, and their sums.
    fn add_whole(&mut self, starts: &[i64], (counts, sums): (&[u64], &[f64])) -> Result<()> {
        let (Some(&first), Some(&last)) = (starts.first(), starts.last()) else { return Ok(()) };
        let column = |aggregate: &Aggregate| match aggregate {
            Aggregate::Count => Values::I64(counts.iter().map(|one| one.cast_signed()).collect()),
            Aggregate::Sum => Values::F64(sums.to_vec()),
            _ => Values::F64(sums.iter().zip(counts).map(|(sum, of)| sum / float(*of)).collect()),
        };
        let columns: Vec<Values> = self.options.aggregates.iter().map(column).collect();
        self.advance(first, None)?;
        self.extend(starts, &columns, last)
    }

    /// Adds rows of whole windows, the last of which begins at a time; the next one is open then.
    fn extend(&mut self, starts: &[i64], columns: &[Values], last: i64) -> Result<()> {
        self.columns.extend(starts, columns);
        let next = self.options.windows.number(last)?.saturating_add(1);
        self.window = open(self.options, (self.value_type, 0), next);
        Ok(())
    }

    /// Adds what the points of a whole part of a window come to, which begins at a time: of points
    /// that all count, and for aggregates that need nothing else.
    pub(crate) fn add_summary(&mut self, time: i64, summary: &Summary) -> Result<()> {
        if summary.good == 0 {
            return Ok(());
        }
        self.advance(time, None)?;
        // A sum that is more than a float can be stays so without the points.
        self.window.add(summary, std::iter::once(summary.numbers.sum()));
        if self.needs.numbers {
            self.window.add_ends(summary);
        }
        Ok(())
    }

    /// Adds whole windows of a width by column; false, and nothing done, if the windows that are
    /// asked for are others, or an aggregate has to be told row by row.
    pub(crate) fn add_table(&mut self, table: &Table, width: i64) -> Result<bool> {
        let (Some(&first), Some(&last)) = (table.starts().first(), table.starts().last()) else {
            return Ok(true);
        };
        if !self.is_of_whole_columns() || !self.options.windows.are_of(width) {
            return Ok(false);
        }
        let columns: Option<Vec<_>> =
            self.options.aggregates.iter().map(|one| whole_column(one, table)).collect();
        let Some(columns) = columns else { return Ok(false) };
        self.advance(first, None)?;
        self.extend(table.starts(), &columns, last)?;
        Ok(true)
    }

    /// Whether windows that all have numbers are added by column.
    fn is_of_whole_columns(&self) -> bool {
        self.value_type == ValueType::F64 && self.options.fill == Fill::None
    }

    /// The last number of all that was added.
    pub(super) fn last_number(&self) -> Option<(i64, Number)> {
        self.window.numbers.map(|(_, last)| last).or(self.before)
    }

    /// The windows, their gaps not filled yet. `after` is the first point that is not before the
    /// span's end.
    pub(crate) fn finish(mut self, after: Option<&Point>) -> Result<WindowTable> {
        let end = self.span.1;
        let last = self.options.windows.number(end.saturating_sub(1))?;
        self.close_until(last, after)?;
        self.hold_until(end, after);
        self.close();
        Ok(self.columns.finish())
    }

    /// Closes the windows before the one that a time is in, which `next` is the next point of.
    pub(super) fn advance(&mut self, time: i64, next: Option<&Point>) -> Result<()> {
        if time < self.window.end {
            return Ok(());
        }
        let number = self.options.windows.number(time)?;
        self.close_until(number, next)
    }

    /// Closes windows until one of a number is open.
    fn close_until(&mut self, number: i64, next: Option<&Point>) -> Result<()> {
        while self.window.number < number {
            self.hold_until(self.window.end, next);
            self.close();
            let is_kept = self.holds_any() || self.options.fill != Fill::None;
            let open_number = if is_kept { self.window.number + 1 } else { number };
            let states = self.needs.states.len();
            self.window = open(self.options, (self.value_type, states), open_number);
            self.columns.check_len()?;
        }
        Ok(())
    }

    /// Whether a value holds that counts in windows without points. Of any other there may be more
    /// windows than anyone goes through, and none of them has a row.
    fn holds_any(&self) -> bool {
        self.held.as_ref().is_some_and(|(_, value)| self.needs.counts(value))
    }

    /// Writes the row of the open window.
    fn close(&mut self) {
        let window = &self.window;
        // A day that a zone skipped is a window in which there is no time. The last microsecond
        // of all time has no end behind it, and is one.
        let is_skipped = window.start == window.end && window.end < i64::MAX;
        if !is_skipped && (window.has_any() || self.options.fill != Fill::None) {
            let mut state = 0;
            let row = self.options.aggregates.iter().map(|aggregate| {
                let value = window.value((aggregate, state), self.before);
                state += usize::from(matches!(aggregate, Aggregate::DurationIn(_)));
                value
            });
            self.columns.push(window.start, row);
        }
        self.before = window.numbers.map(|(_, last)| last).or(self.before);
    }

    /// Adds the points in a range, which are all in the open window.
    fn take(&mut self, points: &Points, range: Range<usize>) {
        let filter = self.options.quality;
        if self.is_of_sums
            && let Some(sums) = Summary::sums_of(points, range.clone(), filter)
        {
            self.window.add_sums(sums);
            return;
        }
        let (values, qualities) = (points.values(), points.qualities());
        let counts = |index: &usize| filter.takes(qualities.get(*index));
        let number = |index: usize| values.get_f64(index).filter(|number| !number.is_nan());
        let numbers = || range.clone().filter(counts).filter_map(number);
        let summary = Summary::of_those(points, range.clone(), filter);
        self.window.add(&summary, numbers());
        if !(self.needs.digest || self.needs.numbers || self.needs.held) {
            return;
        }
        if self.needs.digest {
            self.window.digest.add(numbers());
        }
        if self.needs.numbers {
            let number = |index: usize| {
                let number = Number::of(&values.get(index)?)?;
                Some((*points.times().get(index)?, number))
            };
            let first = range.clone().filter(counts).find_map(number);
            let last = range.clone().rev().filter(counts).find_map(number);
            if let (Some(first), Some(last)) = (first, last) {
                let first = self.window.numbers.map_or(first, |(first, _)| first);
                self.window.numbers = Some((first, last));
            }
        }
        if self.needs.held {
            for point in range.filter_map(|index| points.get(index)) {
                self.hold_until(point.time.0, Some(&point));
                let counts = filter.takes(point.quality);
                self.held = counts.then_some((point.time.0, point.value));
            }
        }
    }

    /// Counts what holds from the last point, or from where the window or the span begins, up to a
    /// time in the open window or its end. `next` is the next point.
    fn hold_until(&mut self, time: i64, next: Option<&Point>) {
        let Some((since, value)) = &self.held else { return };
        let from = (*since).max(self.window.start).max(self.span.0);
        let until = time.min(self.span.1);
        if from >= until {
            return;
        }
        let micros = until.abs_diff(from);
        self.window.is_held |= self.needs.counts(value);
        for (state, in_state) in self.needs.states.iter().zip(&mut self.window.in_state) {
            if state.is_same(value) {
                *in_state = in_state.saturating_add_unsigned(micros);
            }
        }
        let Some(number) = real(value) else { return };
        self.window.step.add(number, micros);
        let next = next.filter(|next| self.options.quality.takes(next.quality));
        if let Some(next) = next
            && let Some(other) = real(&next.value)
        {
            let line = |time| number_at((number, other), (*since, next.time.0), time);
            let mean = f64::midpoint(line(from), line(until));
            self.window.linear.add(mean, micros);
        }
    }
}

/// How many times from the first on are before an end. Windows are short beside blocks, so that
/// the end is looked for near the beginning.
fn count_before(times: &[i64], end: i64) -> usize {
    let mut reach = 1;
    while times.get(reach).is_some_and(|time| *time < end) {
        reach *= 2;
    }
    let near = times.get(..reach).unwrap_or(times);
    let known = reach / 2;
    known + near.get(known..).unwrap_or_default().partition_point(|time| *time < end)
}

/// The windows of a width that a block has points in: when each begins, and the place behind its
/// last point.
fn windows_of(block: &Block, width: i64) -> Result<(Vec<i64>, Vec<usize>)> {
    let (first, last) = block.time_range();
    let (first, step) = (first.0, block.regular_step());
    let most = usize::try_from(last.0.abs_diff(first) / width.unsigned_abs()).unwrap_or(usize::MAX);
    let most = most.saturating_add(2).min(block.len());
    let (mut starts, mut ends) = (Vec::with_capacity(most), Vec::with_capacity(most));
    let mut times = Vec::new();
    if step.is_none() {
        block.decode_times(0..block.len(), &mut times)?;
    }
    // Where windows are of whole steps, all but the outermost have as many points.
    let each = step.filter(|step| width % step == 0).map(|step| (width / step).unsigned_abs());
    let (mut place, mut next) = (0, None);
    while place < block.len() {
        let (start, end, count) = if let (Some(start), Some(each)) = (next, each) {
            (start, width.saturating_add(start), each)
        } else {
            let time = match step {
                Some(step) => first.wrapping_add(step.wrapping_mul((place as u64).cast_signed())),
                None => times[place],
            };
            let number = time.div_euclid(width);
            let end = number.saturating_add(1).saturating_mul(width);
            let count = match step {
                Some(step) => end.abs_diff(time).div_ceil(step.unsigned_abs()),
                None => count_before(&times[place..], end) as u64,
            };
            (number.saturating_mul(width), end, count)
        };
        // The last microsecond of time is behind every window's end.
        place += usize::try_from(count.max(1)).unwrap_or(usize::MAX).min(block.len() - place);
        starts.push(start);
        ends.push(place);
        next = Some(end);
    }
    Ok((starts, ends))
}

/// An aggregate of windows that all have numbers, out of the rows of a series of f64.
fn whole_column(aggregate: &Aggregate, table: &Table) -> Option<Values> {
    let counts = table.integers(Column::Numbers).or(table.integers(Column::Good))?;
    if counts.contains(&0) {
        return None;
    }
    Some(match aggregate {
        Aggregate::Count => Values::I64(table.integers(Column::Good)?.to_vec()),
        Aggregate::Sum => Values::F64(finite_sums(table)?.to_vec()),
        Aggregate::Min => Values::F64(table.floats(Column::Least)?.to_vec()),
        Aggregate::Max => Values::F64(table.floats(Column::Greatest)?.to_vec()),
        Aggregate::Mean => {
            let means =
                finite_sums(table)?.iter().zip(counts).map(|(sum, count)| sum / float_of(*count));
            Values::F64(means.collect())
        }
        _ => return None,
    })
}

/// The sums of rows, unless some of them may be others.
fn finite_sums(table: &Table) -> Option<&[f64]> {
    table.floats(Column::Sum).filter(|sums| sums.iter().all(|sum| sum.is_finite()))
}

fn float_of(count: i64) -> f64 {
    float(count.unsigned_abs())
}

fn open(options: &AggregateOptions, of: (ValueType, usize), number: i64) -> Window {
    let ends = (options.windows.start(number), options.windows.end(number));
    Window::new(number, ends, of)
}

/// A value that is a number.
fn real(value: &SeriesValue) -> Option<f64> {
    value.as_f64().filter(|number| !number.is_nan())
}
