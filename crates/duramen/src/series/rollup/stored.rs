//! Rows that segments have.

use std::sync::Arc;

use super::columns::Stretch;
use super::{Column, Reach, Row, Table};
use crate::engine::View;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::SERIES_READ_POINTS;
use crate::memory::Memory;
use crate::revision::{CommitSequence, Micros};
use crate::series::aggregate::Aggregate;
use crate::series::definition::SeriesInfo;
use crate::series::points::Points;
use crate::series::reading::Reading;
use crate::series::source::{self, Course, Direction};
use crate::series::span::TimeSpan;
use crate::series::tiers::Rollup;
use crate::series::{ValueType, tags};
use crate::store::LiveSegments;
use crate::tree::cell_key::{self, CellKey, RollupColumn, TreeId};

/// A rollup of a series, as segments have it.
#[derive(Debug, Clone)]
pub(crate) struct StoredRollup {
    pub(crate) rollup: Rollup,
    series: TreeId,
    of: ValueType,
    live: Arc<LiveSegments>,
    memory: Arc<Memory>,
}

impl StoredRollup {
    pub(crate) fn new(info: &SeriesInfo, rollup: Rollup, view: &View) -> Self {
        let (live, memory) = (view.store.live(), Arc::clone(view.store.memory()));
        Self { rollup, series: info.number, of: info.definition.value_type, live, memory }
    }

    /// Whether rows say all that aggregates need.
    pub(crate) fn has_all(aggregates: &[Aggregate]) -> bool {
        aggregates.iter().all(|aggregate| Column::of(aggregate).is_some())
    }

    /// How far it reaches.
    pub(crate) fn reach(&self) -> Result<Reach> {
        let cell = self.live.get(&cell_key::rolled(self.series, self.rollup.number))?;
        cell.map_or(Ok(Reach::NONE), |cell| Reach::decode(&cell))
    }

    /// Calls `visit` with the rows of the windows that begin in a span, rising, some thousands at
    /// once, as far as these aggregates need them.
    pub(crate) fn each(
        &self,
        span: TimeSpan,
        aggregates: &[Aggregate],
        visit: &mut dyn FnMut(&Table) -> Result<()>,
    ) -> Result<()> {
        let needed = aggregates.iter().filter_map(Column::of).flatten();
        let mut columns: Vec<Column> = needed.copied().collect();
        // What an infinite sum comes to is told by both bounds, or else by the points.
        let bounds = [Column::Least, Column::Greatest];
        if columns.contains(&Column::Sum) && bounds.iter().any(|bound| columns.contains(bound)) {
            columns.extend(bounds);
        }
        columns.extend([Column::AsOf, Column::Good]);
        columns.sort_unstable();
        columns.dedup();
        self.each_of(span, &columns, visit)
    }

    /// The same, row by row, with all that they say.
    pub(crate) fn each_row(
        &self,
        span: TimeSpan,
        visit: &mut dyn FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        self.each_of(span, &Column::ALL, &mut |table| {
            (0..table.starts().len()).try_for_each(|index| visit(table.row(index)?))
        })
    }

    /// When the first window of a span in a direction begins that has points of good quality.
    pub(crate) fn outermost(&self, span: TimeSpan, direction: Direction) -> Result<Option<i64>> {
        // From near to far, in steps that grow: whoever finds something soon reads little.
        let mut reach = self.rollup.slice_micros();
        let mut left = Some(span);
        while let Some(TimeSpan { first, last }) = left {
            let (near, far) = match direction {
                Direction::Rising => {
                    let end = first.saturating_add(reach).min(last);
                    let far = end.checked_add(1).map(|next| (next, last));
                    ((first, end), far)
                }
                Direction::Falling => {
                    let end = last.saturating_sub(reach).max(first);
                    let far = end.checked_sub(1).map(|next| (first, next));
                    ((end, last), far)
                }
            };
            let mut found = None;
            let near = TimeSpan { first: near.0, last: near.1 };
            self.each(near, &[], &mut |table| {
                let good = table.integers(Column::Good).unwrap_or_default();
                let rows = table.starts().iter().zip(good).filter(|(_, good)| **good > 0);
                let mut starts = rows.map(|(start, _)| *start);
                match direction {
                    Direction::Rising => found = found.or_else(|| starts.next()),
                    Direction::Falling => found = starts.next_back().or(found),
                }
                Ok(())
            })?;
            if found.is_some() {
                return Ok(found);
            }
            let far = far.filter(|(first, last)| first <= last);
            left = far.map(|(first, last)| TimeSpan { first, last });
            reach = reach.saturating_mul(2);
        }
        Ok(None)
    }

    /// How many windows before the one that a time is in had points of good quality, as far as they
    /// are kept.
    pub(crate) fn windows_before(&self, time: i64, now: Micros) -> Result<u64> {
        let start = self.rollup.start(time).unwrap_or(time);
        let span = TimeSpan { first: self.rollup.from(now), last: start.saturating_sub(1) };
        let mut windows = 0;
        if span.first <= span.last {
            self.each_row(span, &mut |row| {
                windows += u64::from(row.summary.good > 0);
                Ok(())
            })?;
        }
        Ok(windows)
    }

    /// Whether there are rows of windows that begin before a time.
    pub(crate) fn has_before(&self, time: i64) -> Result<bool> {
        let mut rows = self.live.scan(&cell_key::rollups(self.series, self.rollup.number))?;
        let first = rows.next().transpose()?.and_then(|(key, _)| cell_key::parse(&key));
        Ok(matches!(first, Some((_, CellKey::Rollup(_, key))) if key.first < time))
    }

    fn each_of(
        &self,
        span: TimeSpan,
        columns: &[Column],
        visit: &mut dyn FnMut(&Table) -> Result<()>,
    ) -> Result<()> {
        let mut next = Some(self.rollup.slice_of(span.first));
        let last = self.rollup.slice_of(span.last);
        while let Some(from) = next {
            let Some(slice) = self.slice_from(from)?.filter(|slice| *slice <= last) else { break };
            visit(&self.table(slice, span, columns)?)?;
            next = slice.checked_add(1);
        }
        Ok(())
    }

    /// The first slice from one on that has rows.
    fn slice_from(&self, slice: i64) -> Result<Option<i64>> {
        let mut scan = self.live.scan(&cell_key::rollups(self.series, self.rollup.number))?;
        let place = RollupColumn { rollup: self.rollup.number, slice, column: 0 };
        scan.seek(&cell_key::rollup(self.series, place))?;
        let Some((key, _)) = scan.next().transpose()? else { return Ok(None) };
        match cell_key::parse(&key) {
            Some((_, CellKey::Rollup(place, _))) => Ok(Some(place.slice)),
            _ => Err(Error::new(ErrorKind::Corrupt, format!("no cell has the key {key:02x?}"))),
        }
    }

    fn table(&self, slice: i64, span: TimeSpan, columns: &[Column]) -> Result<Table> {
        let mut table = Table::new(self.of);
        for column in columns.iter().filter(|column| column.is_of(self.of)) {
            table.push(*column, self.column(slice, span, *column)?)?;
        }
        Ok(table)
    }

    fn column(&self, slice: i64, span: TimeSpan, column: Column) -> Result<Stretch> {
        let place = RollupColumn { rollup: self.rollup.number, slice, column: column as u8 };
        let prefix = cell_key::rollup(self.series, place);
        let course = Course { span, direction: Direction::Rising };
        let sources = source::on_disk(&self.live, &prefix, course, &self.memory)?;
        let newest = (CommitSequence(u64::MAX), Vec::new());
        let mut reading = Reading::new(column.value_type(self.of), course, sources, newest);
        if let Some((points, places)) = reading.all_as_they_are()? {
            return Ok(Stretch { points, places });
        }
        let mut points = Points::new(column.value_type(self.of));
        while reading.read(&mut points, SERIES_READ_POINTS)? {}
        Ok(Stretch::all(points))
    }
}

/// What is kept of series when segments are merged.
#[derive(Debug)]
pub(crate) struct Kept {
    view: Arc<View>,
    at: CommitSequence,
    now: Micros,
    /// Of the series that was asked for last.
    last: Option<(TreeId, Option<KeptOf>)>,
}

/// What is kept of a series that does not keep everything, or has rollups.
#[derive(Debug, Clone)]
pub(crate) struct KeptOf {
    /// From which time on points are.
    pub(crate) from: i64,
    /// From which window on those of a rollup are, by its number.
    pub(crate) rollups: Vec<(i64, i64)>,
}

impl KeptOf {
    /// From which window on a rollup is kept; none if the series does not have it any more.
    pub(crate) fn rollup(&self, number: i64) -> Option<i64> {
        self.rollups.iter().find(|(known, _)| *known == number).map(|(_, from)| *from)
    }
}

impl Kept {
    /// What the catalogue says as of a commit.
    pub(crate) fn new(view: Arc<View>, at: CommitSequence, now: Micros) -> Self {
        Self { view, at, now, last: None }
    }

    /// What is kept of a series; none if it keeps everything, and has no rollups.
    pub(crate) fn of(&mut self, series: TreeId) -> Result<Option<KeptOf>> {
        if let Some((_, kept)) = self.last.as_ref().filter(|(last, _)| *last == series) {
            return Ok(kept.clone());
        }
        let (tags, head) = self.view.series_tags(self.at)?;
        let info = tags::tiered(&tags, series, head)?;
        let kept = info.map(|info| self.of_info(&info)).transpose()?;
        self.last = Some((series, kept.clone()));
        Ok(kept)
    }

    /// Whether segments have anything that is not kept.
    pub(crate) fn is_exceeded(&self) -> Result<bool> {
        let (tags, head) = self.view.series_tags(self.at)?;
        let live = self.view.store.live();
        for info in tags::all_tiered(&tags, head)? {
            let kept = self.of_info(&info)?;
            if info.is_purged()
                && live.scan(&cell_key::all_rollups(info.number))?.next().transpose()?.is_some()
            {
                return Ok(true);
            }
            let points = (cell_key::all_points(info.number), kept.from);
            let rollups = kept
                .rollups
                .iter()
                .map(|(number, from)| (cell_key::rollups(info.number, *number), *from));
            for (prefix, from) in std::iter::once(points).chain(rollups) {
                let first = live.scan(&prefix)?.next().transpose()?;
                let first = first.and_then(|(key, _)| cell_key::parse(&key));
                if let Some((_, CellKey::Points(key) | CellKey::Rollup(_, key))) = first
                    && key.first < from
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn of_info(&self, info: &SeriesInfo) -> Result<KeptOf> {
        let clock = self.view.series.clock(info.number, self.now);
        let mut from = info.definition.kept_from(clock);
        let mut rollups = Vec::new();
        for rollup in &info.definition.rollups {
            if from > i64::MIN {
                let reach = StoredRollup::new(info, *rollup, &self.view).reach()?;
                from = from.min(reach.until);
            }
            rollups.push((rollup.number, rollup.from(self.now)));
        }
        Ok(KeptOf { from, rollups })
    }
}
