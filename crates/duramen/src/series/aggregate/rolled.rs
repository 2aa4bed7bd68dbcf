//! Windows out of rollups: where these answer exactly they are read, and the points elsewhere.

use super::query::KEPT_BLOCKS;
use super::window::Number;
use super::{Aggregate, AggregateOptions, Before, QualityFilter, Stream};
use crate::error::Result;
use crate::limits::SERIES_FILL_WINDOWS;
use crate::revision::Micros;
use crate::series::block::Block;
use crate::series::reading::{PointStore, Reading};
use crate::series::rollup::{Column, Row, StoredRollup, Summaries, Table, is_all_behind};
use crate::series::source::{Course, Direction};
use crate::series::span::TimeSpan;
use crate::series::tiers::Rollup;
use crate::series::young::Young;
use crate::series::{Points, SeriesInfo, SeriesSnapshot};

/// What to read of a span of time.
struct Plan {
    stored: StoredRollup,
    /// The windows of the rollup that are read, all of them in the span.
    windows: TimeSpan,
    /// Spans of whole windows in which not only the rows tell, rising.
    dirty: Vec<TimeSpan>,
    /// From which window on the points tell what it comes to; before, rows and what is young.
    points_from: i64,
    young: Young,
    /// The points at the moment of that: merges may drop some as soon as they are not young.
    points: PointStore,
    /// The windows before that which were deleted since their rows were written.
    gone: Vec<TimeSpan>,
}

/// Feeds a stream, and keeps how far that is.
struct Feed<'a, 's> {
    snapshot: &'a SeriesSnapshot,
    stream: &'a mut Stream<'s>,
    options: &'a AggregateOptions,
    plan: &'a Plan,
    /// The next span in which not only the rows tell.
    dirty: usize,
    /// Rows before this are not needed.
    done_until: i64,
    /// Windows that follow each other, of which the points tell too: they are read together.
    of_points: Option<TimeSpan>,
}

impl SeriesSnapshot {
    /// Gives a stream what it needs of a span.
    pub(super) fn feed(
        &self,
        stream: &mut Stream<'_>,
        span: TimeSpan,
        options: &AggregateOptions,
    ) -> Result<()> {
        self.feed_narrower(stream, (span, i64::MAX), options)
    }

    /// The same out of rollups that are narrower than a width. What is beside the whole windows of
    /// the widest one is told by the next, or by points.
    fn feed_narrower(
        &self,
        stream: &mut Stream<'_>,
        (span, than): (TimeSpan, i64),
        options: &AggregateOptions,
    ) -> Result<()> {
        let Some(plan) = self.plan((span, than), options)? else {
            return self.feed_points(stream, span, options);
        };
        let (TimeSpan { first, last }, width) = (plan.windows, plan.stored.rollup.micros());
        if span.first < first {
            let before = TimeSpan { first: span.first, last: first - 1 };
            self.feed_narrower(stream, (before, width), options)?;
        }
        let mut feed = Feed {
            snapshot: self,
            stream,
            options,
            plan: &plan,
            dirty: 0,
            done_until: i64::MIN,
            of_points: None,
        };
        plan.stored.each(plan.windows, &options.aggregates, &mut |table| feed.take_all(table))?;
        feed.take_dirty_before(i64::MAX)?;
        feed.take_points()?;
        match last.checked_add(1) {
            Some(after) if after <= span.last => {
                let after = TimeSpan { first: after, last: span.last };
                self.feed_narrower(stream, (after, width), options)
            }
            _ => Ok(()),
        }
    }

    /// Gives a stream the points of a span that are kept: as the summaries of blocks where these
    /// say enough.
    pub(super) fn feed_points(
        &self,
        stream: &mut Stream<'_>,
        span: TimeSpan,
        options: &AggregateOptions,
    ) -> Result<()> {
        match self.kept(span)? {
            Some(span) => feed_store(stream, &self.store()?, span, options),
            None => Ok(()),
        }
    }

    /// From when on in a span points tell what is asked; none where a rollup answers most of it.
    pub(super) fn told_by_points_from(
        &self,
        span: TimeSpan,
        options: &AggregateOptions,
    ) -> Result<Option<i64>> {
        let answer = Answer::to(options);
        if answer == Some(Answer::Everywhere) {
            return Ok(self.plan((span, i64::MAX), options)?.is_none().then_some(span.first));
        }
        let from = answer.map(|answer| self.answered_before(answer)).transpose()?;
        Ok(Some(span.first.max(from.unwrap_or(i64::MIN))))
    }

    /// The widest rollup that answers exactly, of those that are narrower than a width; none if
    /// there is none.
    fn plan(
        &self,
        (span, than): (TimeSpan, i64),
        options: &AggregateOptions,
    ) -> Result<Option<Plan>> {
        let Some(answer) = Answer::to(options) else { return Ok(None) };
        // In this order: what a checkpoint without the rollup wrote was young before, or is later
        // than the snapshot.
        let (view, series) = self.place();
        let (young, live) = view.series.of_with(series, || view.store.live());
        let Some(info) = self.tiers()? else { return Ok(None) };
        let mut rollups = info.definition.rollups.clone();
        rollups.retain(|rollup| rollup.micros() < than);
        rollups.sort_unstable_by_key(|rollup| std::cmp::Reverse(rollup.width));
        for rollup in rollups {
            let stored = StoredRollup::new(&info, rollup, view);
            let points_from = info.definition.points_from(&rollup, young.clock(self.now()));
            let Some(windows) = self.windows(&info, &stored, span)? else { continue };
            let until = self.answered_before(answer)?;
            let Some(windows) = rollup.until(windows, until) else { continue };
            if answer == Answer::WherePointsAreGone
                && young.pieces.is_empty()
                && stored.outermost(windows, Direction::Rising)?.is_none()
            {
                continue;
            }
            let width = rollup.micros();
            if options.windows.are_made_of(width, (windows.first, windows.last))? {
                let deleted = young.deletes.iter().filter(|one| one.sequence <= self.sequence());
                let gone = deleted.filter_map(|one| rollup.gone(one.span, points_from));
                let gone = gone.filter_map(|gone| gone.and(windows)).collect();
                let last = windows.last.min(points_from.saturating_sub(1));
                let late = TimeSpan { first: windows.first, last };
                let kept = TimeSpan { first: windows.first.max(points_from), last: windows.last };
                let mut spans = joined(dirty(&rollup, &young, late));
                spans.extend(joined(dirty(&rollup, &young, kept)));
                let (of, at) = ((series, self.info().definition.value_type), self.sequence());
                let points = PointStore::of_found(view, of, at, (young.clone(), live))?;
                let dirty = spans;
                return Ok(Some(Plan { stored, windows, dirty, points_from, young, points, gone }));
            }
        }
        Ok(None)
    }

    /// Before which time rows tell what is asked.
    fn answered_before(&self, answer: Answer) -> Result<i64> {
        if answer == Answer::Everywhere {
            return Ok(i64::MAX);
        }
        let all = TimeSpan { first: i64::MIN, last: i64::MAX };
        Ok(self.kept(all)?.map_or(i64::MIN, |seen| seen.first))
    }

    /// The windows of rollups from which the points have gone, with those that will have rows of
    /// what is young; none if there are none.
    pub(super) fn rows_alone(&self) -> Result<Option<TimeSpan>> {
        let (view, series) = self.place();
        // In this order: a checkpoint may write it meanwhile.
        let young = view.series.of(series);
        let Some(info) = self.tiers()? else { return Ok(None) };
        let mut all: Option<TimeSpan> = None;
        for rollup in &info.definition.rollups {
            let stored = StoredRollup::new(&info, *rollup, view);
            let first = rollup.from(self.now());
            let points_from = info.definition.points_from(rollup, self.now());
            let Some(last) = points_from.checked_sub(1).filter(|last| first <= *last) else {
                continue;
            };
            let span = TimeSpan { first, last };
            let mut add = |start: i64| {
                let first = all.map_or(start, |all| all.first.min(start));
                let end = start.saturating_add(rollup.micros());
                let last = all.map_or(end - 1, |all| all.last.max(end - 1));
                all = Some(TimeSpan { first, last });
            };
            for direction in [Direction::Rising, Direction::Falling] {
                let time = first_time(self.read_young(&young, Course { span, direction })?)?;
                time.and_then(|time| rollup.start(time)).into_iter().for_each(&mut add);
                stored.outermost(span, direction)?.into_iter().for_each(&mut add);
            }
        }
        Ok(all)
    }

    /// The nearest window beside a time from which the points have gone, and which rollups answer,
    /// as a time in it: in falling direction one that ends by then, in rising one that begins then
    /// or later.
    pub(super) fn row_beside(
        &self,
        edge: i64,
        direction: Direction,
        options: &AggregateOptions,
    ) -> Result<Option<i64>> {
        let Some(answer) = Answer::to(options) else { return Ok(None) };
        let (view, series) = self.place();
        // In this order: a checkpoint may write it meanwhile.
        let young = view.series.of(series);
        let Some(info) = self.tiers()? else { return Ok(None) };
        let mut nearest: Option<i64> = None;
        for rollup in &info.definition.rollups {
            let gone_before = info.definition.points_from(rollup, self.now());
            let gone_before = gone_before.min(self.answered_before(answer)?);
            let Some(span) = rollup.beside(edge, direction, (rollup.from(self.now()), gone_before))
            else {
                continue;
            };
            if !options.windows.are_made_of(rollup.micros(), (edge, edge))? {
                continue;
            }
            let late = first_time(self.read_young(&young, Course { span, direction })?)?;
            let row = StoredRollup::new(&info, *rollup, view).outermost(span, direction)?;
            let found = late.and_then(|time| rollup.start(time)).into_iter().chain(row);
            nearest = found.chain(nearest).min_by_key(|start| direction.rank(*start));
        }
        Ok(nearest)
    }

    /// The last number before a time that rows know of, where the points have gone.
    pub(super) fn number_of_rows_before(
        &self,
        mut edge: i64,
        options: &AggregateOptions,
    ) -> Result<Option<(i64, Number)>> {
        let value_type = self.info().definition.value_type;
        let asked = AggregateOptions::new(vec![Aggregate::Delta], options.windows.clone());
        for _ in 0..SERIES_FILL_WINDOWS {
            let row = self.row_beside(edge, Direction::Falling, options)?;
            // A calendar may not reach there.
            let around = row.and_then(|time| options.windows.around(Micros(time)).ok());
            let Some((Micros(first), Micros(end))) = around else { break };
            let end = end.min(edge);
            let mut stream = Stream::new(value_type, &asked, (first, end), Before::default())?;
            self.feed(&mut stream, TimeSpan { first, last: end.saturating_sub(1) }, &asked)?;
            let number = stream.last_number();
            if number.is_some() {
                return Ok(number);
            }
            edge = first;
        }
        Ok(None)
    }

    /// Whether a rollup tells of a time of which points may have gone, or is to tell of it when a
    /// checkpoint has written it.
    pub(crate) fn is_alone(&self, rollup: &Rollup) -> Result<bool> {
        let (view, series) = self.place();
        let clock = view.series.clock(series, self.now());
        let gone = self.info().definition.gone_before(clock);
        let first = rollup.from(self.now());
        let Some(last) = gone.checked_sub(1).filter(|last| first <= *last) else {
            return Ok(false);
        };
        let course = Course { span: TimeSpan { first, last }, direction: Direction::Rising };
        Ok(StoredRollup::new(self.info(), *rollup, view).has_before(gone)?
            || first_time(self.read(course)?)?.is_some())
    }

    /// The whole windows of a rollup in a span, as far as their rows are there: of commits before
    /// there were any, those whose points have gone.
    fn windows(
        &self,
        info: &SeriesInfo,
        stored: &StoredRollup,
        span: TimeSpan,
    ) -> Result<Option<TimeSpan>> {
        let reach = stored.reach()?;
        let first = span.first.max(stored.rollup.from(self.now()));
        let mut end = span.last.saturating_add(1).min(reach.until);
        if reach.since > self.sequence() {
            end = end.min(info.definition.points_from(&stored.rollup, self.now()));
        }
        Ok(stored.rollup.whole(first, end))
    }
}

impl Feed<'_, '_> {
    /// Takes the rows of a table: as columns if they are the windows that are asked for.
    fn take_all(&mut self, table: &Table) -> Result<()> {
        let (Some(&first), Some(&last)) = (table.starts().first(), table.starts().last()) else {
            return Ok(());
        };
        self.take_dirty_before(first)?;
        let is_clean = self.done_until <= first
            && self.plan.dirty.get(self.dirty).is_none_or(|next| next.first > last);
        let sequence = self.snapshot.sequence().0;
        let as_of = table.integers(Column::AsOf).unwrap_or_default();
        let is_seen = as_of.iter().all(|as_of| as_of.cast_unsigned() <= sequence);
        let width = self.plan.stored.rollup.micros();
        if is_clean && is_seen {
            self.take_points()?;
            if self.stream.add_table(table, width)? {
                return Ok(());
            }
        }
        (0..table.starts().len()).try_for_each(|index| self.take(&table.row(index)?))
    }

    fn take(&mut self, row: &Row) -> Result<()> {
        self.take_dirty_before(row.start)?;
        if row.start < self.done_until {
            return Ok(());
        }
        let is_later = row.as_of > self.snapshot.sequence().0;
        let is_of_points = is_later || self.stream.is_of_points(&row.summary);
        if is_of_points && row.start >= self.plan.points_from {
            let last = row.start + (self.plan.stored.rollup.micros() - 1);
            // Where there is no row between them, there is nothing.
            let first = self.of_points.map_or(row.start, |before| before.first);
            self.of_points = Some(TimeSpan { first, last });
            return Ok(());
        }
        self.take_points()?;
        self.stream.add_summary(row.start, &row.summary)
    }

    /// Reads the points of the windows that wait for that.
    fn take_points(&mut self) -> Result<()> {
        let Some(span) = self.of_points.take() else { return Ok(()) };
        feed_store(self.stream, &self.plan.points, span, self.options)
    }

    /// Takes windows whose points may have gone, and in which something is young: their rows, and
    /// of what is young that which the next checkpoint adds to them.
    fn take_late(&mut self, span: TimeSpan) -> Result<()> {
        let Plan { stored, young, gone, .. } = self.plan;
        let course = Course { span, direction: Direction::Rising };
        let reading = self.snapshot.read_young(young, course)?;
        let mut windows = Summaries::new(&stored.rollup, reading);
        let mut next = windows.next()?;
        stored.each_row(span, &mut |row| {
            while let Some((start, summary)) = next.take_if(|(start, _)| *start < row.start) {
                self.stream.add_summary(start, &summary)?;
                next = windows.next()?;
            }
            let is_gone = gone.iter().any(|gone| gone.has(row.start));
            if !is_gone {
                self.stream.add_summary(row.start, &row.summary)?;
            }
            if let Some((start, summary)) = next.take_if(|(start, _)| *start == row.start) {
                // A later row has it.
                let is_in = row.as_of > self.snapshot.sequence().0;
                if is_gone || !is_in && is_all_behind(young, (start, &row.summary)) {
                    self.stream.add_summary(start, &summary)?;
                }
                next = windows.next()?;
            }
            Ok(())
        })?;
        while let Some((start, summary)) = next {
            self.stream.add_summary(start, &summary)?;
            next = windows.next()?;
        }
        Ok(())
    }

    /// Reads the points of the spans that begin up to a time.
    fn take_dirty_before(&mut self, until: i64) -> Result<()> {
        while let Some(&span) = self.plan.dirty.get(self.dirty).filter(|one| one.first <= until) {
            self.take_points()?;
            if span.first < self.plan.points_from {
                self.take_late(span)?;
            } else {
                feed_store(self.stream, &self.plan.points, span, self.options)?;
            }
            self.done_until = span.last.saturating_add(1);
            self.dirty += 1;
        }
        Ok(())
    }
}

/// Gives a stream all the points of a span that are there: as the summaries of blocks where these
/// say enough.
fn feed_store(
    stream: &mut Stream<'_>,
    store: &PointStore,
    span: TimeSpan,
    options: &AggregateOptions,
) -> Result<()> {
    let is_of_summaries = is_of_summaries(options);
    let mut reading = store.read(Course { span, direction: Direction::Rising })?;
    let mut buffer = Points::new(reading.value_type());
    loop {
        let block = reading.next_seen_block()?;
        if let Some(block) = &block
            && is_of_summaries
            && stream.add_block(block)?
        {
            reading.skip_block()?;
            continue;
        }
        let block = block.filter(|_| !reading.is_decoded());
        if block.as_ref().is_some_and(|block| is_long(span, block)) {
            stream.kept_blocks = 0;
        }
        let is_kept = block.is_none() || stream.kept_blocks > 0;
        stream.kept_blocks -= u64::from(block.is_some() && is_kept);
        if let Some(block) = block.filter(|_| !is_kept) {
            if stream.add_sums(&block)? {
                reading.skip_block()?;
            } else {
                reading.read_block(&block, &mut buffer)?;
                stream.add(&buffer, 0..buffer.len())?;
            }
        } else if !reading.visit(&mut buffer, &mut |points, places| stream.add(points, places))? {
            return Ok(());
        }
    }
}

/// The time of the first point that is read.
fn first_time(mut reading: Reading) -> Result<Option<i64>> {
    let mut points = Points::new(reading.value_type());
    while points.is_empty() && reading.read(&mut points, 1)? {}
    Ok(points.times().first().copied())
}

/// Whether a span has more blocks like this one than may stay decoded, so that none of them would
/// be there when they are read again: to decode and keep them takes longer than their sums.
fn is_long(span: TimeSpan, block: &Block) -> bool {
    let (first, last) = block.time_range();
    span.last.abs_diff(span.first) / KEPT_BLOCKS > last.0.abs_diff(first.0)
}

/// Where rows answer what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// They tell all of it.
    Everywhere,
    /// They tell some of it, and nothing else does.
    WherePointsAreGone,
}

impl Answer {
    /// None if they answer nowhere.
    fn to(options: &AggregateOptions) -> Option<Self> {
        if is_of_summaries(options) {
            return Some(Self::Everywhere);
        }
        let all = &options.aggregates;
        // How long a state held is said of every row, and nothing is known of it.
        let is_of_states = all.iter().any(|one| matches!(one, Aggregate::DurationIn(_)));
        let is_some = options.quality == QualityFilter::Good
            && all.iter().any(|one| StoredRollup::has_all(std::slice::from_ref(one)));
        (is_some && !is_of_states).then_some(Self::WherePointsAreGone)
    }
}

/// Whether the summaries of points tell all that is asked of them.
fn is_of_summaries(options: &AggregateOptions) -> bool {
    options.quality == QualityFilter::Good && StoredRollup::has_all(&options.aggregates)
}

/// The windows in a span in which anything is young.
fn dirty(rollup: &Rollup, young: &Young, among: TimeSpan) -> Vec<TimeSpan> {
    let width = rollup.micros();
    let whole = |first: i64, last: i64| {
        let (first, last) = (first.max(among.first), last.min(among.last));
        let first = if first <= last { rollup.start(first)? } else { return None };
        Some(TimeSpan { first, last: rollup.start(last)?.saturating_add(width - 1) })
    };
    let mut spans: Vec<TimeSpan> = Vec::new();
    for piece in &young.pieces {
        let windows = piece.last().abs_diff(piece.first()) / width.unsigned_abs();
        if windows <= piece.len() as u64 {
            spans.extend(whole(piece.first(), piece.last()));
        } else {
            spans.extend(piece.points.times().iter().filter_map(|time| whole(*time, *time)));
        }
    }
    let deleted = young.deletes.iter().map(|delete| delete.span);
    spans.extend(deleted.filter_map(|span| whole(span.first, span.last)));
    spans
}

/// The same times, as spans that rise and do not touch.
fn joined(mut spans: Vec<TimeSpan>) -> Vec<TimeSpan> {
    spans.sort_unstable_by_key(|span| span.first);
    let mut apart: Vec<TimeSpan> = Vec::new();
    for span in spans {
        match apart.last_mut() {
            Some(last) if span.first <= last.last.saturating_add(1) => {
                last.last = last.last.max(span.last);
            }
            _ => apart.push(span),
        }
    }
    apart
}
