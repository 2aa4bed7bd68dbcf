//! Writes the rows of the windows in which points are young, with the segment that gets them.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::columns::Column;
use super::stored::StoredRollup;
use super::summaries::Summaries;
use super::{Reach, Row, is_all_behind};
use crate::engine::View;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::SERIES_CATCH_UP_POINTS;
use crate::revision::{CommitSequence, Micros};
use crate::segment::SegmentWriter;
use crate::series::block::{Density, Summary};
use crate::series::definition::SeriesInfo;
use crate::series::merge::Blocks;
use crate::series::piece::Piece;
use crate::series::points::Points;
use crate::series::snapshot::SeriesSnapshot;
use crate::series::source::{Course, Direction};
use crate::series::span::TimeSpan;
use crate::series::tiers::Rollup;
use crate::series::young::Young;
use crate::series::{Qualities, Quality, Values, tags};
use crate::tree::Tree;
use crate::tree::cell_key::{self, RollupColumn, TreeId};

/// Rows that are looked at to see whether points only came behind what they know.
const KNOWN_ROWS_MAX: usize = 64;

/// The series of which a rollup has not reached all points yet, as of a state of the catalogue.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    head: u32,
    series: FxHashSet<TreeId>,
}

/// What a segment gets beside the points that were young up to a commit.
#[derive(Debug)]
pub(crate) struct Rolling {
    view: Arc<View>,
    bound: CommitSequence,
    now: Micros,
    tags: Arc<Tree>,
    head: u32,
    /// Points that may still be read to catch up.
    left: usize,
}

/// One rollup of one series while its rows are written.
struct One<'a> {
    stored: StoredRollup,
    snapshot: &'a SeriesSnapshot,
    young: &'a Young,
    slices: Slices<'a>,
}

impl Rolling {
    /// Of what was committed up to a bound.
    pub(crate) fn new(view: Arc<View>, bound: CommitSequence, now: Micros) -> Result<Self> {
        let (tags, head) = view.series_tags(bound)?;
        Ok(Self { view, bound, now, tags, head, left: SERIES_CATCH_UP_POINTS })
    }

    /// The series that have something to catch up.
    pub(crate) fn behind(&self) -> Result<Vec<TreeId>> {
        let mut behind = self.view.series.behind.lock();
        if behind.head != self.head {
            behind.series.clear();
            for info in tags::all_tiered(&self.tags, self.head)? {
                for rollup in &info.definition.rollups {
                    let reach = StoredRollup::new(&info, *rollup, &self.view).reach()?;
                    if !reach.is_whole() {
                        behind.series.insert(info.number);
                    }
                }
            }
            behind.head = self.head;
        }
        Ok(behind.series.iter().copied().collect())
    }

    /// Writes the rows of a series, behind its points.
    pub(crate) fn write(
        &mut self,
        series: TreeId,
        young: &Young,
        segment: &mut SegmentWriter,
    ) -> Result<()> {
        let Some(info) = tags::tiered(&self.tags, series, self.head)? else { return Ok(()) };
        let info = Arc::new(info);
        let snapshot = SeriesSnapshot::new(Arc::clone(&self.view), Arc::clone(&info), self.bound);
        let mut rollups = info.definition.rollups.clone();
        rollups.sort_unstable_by_key(|rollup| rollup.number);
        let clock = young.clock(self.now);
        let (mut reached, mut is_behind) = (Vec::new(), false);
        for rollup in rollups {
            let stored = StoredRollup::new(&info, rollup, &self.view);
            let before = stored.reach()?;
            let points_from = info.definition.points_from(&rollup, clock);
            let slices = Slices::new(&info, rollup, (self.bound, &mut *segment));
            let mut one = One { stored, snapshot: &snapshot, young, slices };
            let rows_from = rollup.from(self.now);
            one.write_late(rows_from..points_from.min(before.until), points_from)?;
            one.write_touched(points_from..before.until)?;
            let mut after = before;
            if !before.is_whole() && self.left > 0 {
                after = one.catch_up(before.until.max(rows_from), &mut self.left)?;
            }
            one.slices.flush()?;
            if before != after {
                reached.push((cell_key::rolled(series, rollup.number), after));
            }
            is_behind |= !after.is_whole();
        }
        if !is_behind {
            self.view.series.behind.lock().series.remove(&series);
        }
        reached.into_iter().try_for_each(|(key, reach)| segment.push(&key, &reach.encode()))
    }
}

impl One<'_> {
    /// The windows among these in which anything is young, rising.
    fn touched(&self, among: std::ops::Range<i64>) -> Result<Vec<i64>> {
        let rollup = &self.stored.rollup;
        let mut starts: Vec<i64> = Vec::new();
        for piece in &self.young.pieces {
            for start in piece.points.times().iter().filter_map(|time| rollup.start(*time)) {
                if among.contains(&start) && starts.last() != Some(&start) {
                    starts.push(start);
                }
            }
        }
        for delete in &self.young.deletes {
            let first = rollup.start(delete.span.first).unwrap_or(i64::MIN);
            let span = TimeSpan { first, last: delete.span.last };
            self.stored.each(span, &[], &mut |table| {
                starts.extend(table.starts().iter().filter(|start| among.contains(start)));
                Ok(())
            })?;
        }
        starts.sort_unstable();
        starts.dedup();
        Ok(starts)
    }

    /// Writes windows whose points are not kept any more, so that they cannot be made anew: those
    /// that were deleted, and those of which what is young comes behind all that their rows know.
    fn write_late(&mut self, among: std::ops::Range<i64>, points_from: i64) -> Result<()> {
        let width = self.stored.rollup.micros();
        let late = self.touched(among)?;
        let gone = self.gone(points_from)?;
        let mut next_gone = gone.iter().copied().peekable();
        for run in late.chunk_by(|one, next| one.checked_add(width) == Some(*next)) {
            self.write_late_run(run, &mut next_gone)?;
        }
        next_gone.try_for_each(|start| self.write_nothing(start))
    }

    /// The windows before the ones that points tell of that were deleted as a whole, rising.
    fn gone(&self, points_from: i64) -> Result<Vec<i64>> {
        let mut starts: Vec<i64> = Vec::new();
        for delete in &self.young.deletes {
            if let Some(gone) = self.stored.rollup.gone(delete.span, points_from) {
                self.stored.each(gone, &[], &mut |table| {
                    starts.extend(table.starts());
                    Ok(())
                })?;
            }
        }
        starts.sort_unstable();
        starts.dedup();
        Ok(starts)
    }

    fn write_nothing(&mut self, start: i64) -> Result<()> {
        let value_type = self.snapshot.info().definition.value_type;
        self.slices.push(start, Summary::none(value_type))
    }

    fn write_late_run(
        &mut self,
        run: &[i64],
        gone: &mut Peekable<impl Iterator<Item = i64>>,
    ) -> Result<()> {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else { return Ok(()) };
        let rollup = self.stored.rollup;
        let span = TimeSpan { first, last: last.saturating_add(rollup.micros() - 1) };
        let mut rows: BTreeMap<i64, Row> = BTreeMap::new();
        self.stored.each_row(span, &mut |row| {
            rows.insert(row.start, row);
            Ok(())
        })?;
        let reading =
            self.snapshot.read_young(self.young, Course { span, direction: Direction::Rising })?;
        let mut summaries = Summaries::new(&rollup, reading);
        while let Some((start, young)) = summaries.next()? {
            while let Some(gone) = gone.next_if(|gone| *gone < start) {
                self.write_nothing(gone)?;
            }
            // Of what was deleted since, nothing is among what is young.
            let is_gone = gone.next_if_eq(&start).is_some();
            let whole = rows.remove(&start).filter(|_| !is_gone).map(|row| row.summary);
            let is_behind =
                whole.as_ref().is_none_or(|whole| is_all_behind(self.young, (start, whole)));
            if is_behind {
                let whole = match whole {
                    Some(mut whole) => {
                        whole.add(&young);
                        whole
                    }
                    None => young,
                };
                self.slices.push(start, whole)?;
            }
        }
        Ok(())
    }

    fn write_touched(&mut self, among: std::ops::Range<i64>) -> Result<()> {
        let width = self.stored.rollup.micros();
        let touched = self.touched(among)?;
        touched
            .chunk_by(|one, next| one.checked_add(width) == Some(*next))
            .try_for_each(|run| self.write_run(run))
    }

    /// Writes windows that follow each other.
    fn write_run(&mut self, run: &[i64]) -> Result<()> {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else { return Ok(()) };
        let span = TimeSpan { first, last: last.saturating_add(self.stored.rollup.micros() - 1) };
        let known = self.known(span)?;
        let course = Course { span, direction: Direction::Rising };
        let reading = match &known {
            Some(_) => self.snapshot.read_young(self.young, course)?,
            None => self.snapshot.read(course)?,
        };
        let rollup = self.stored.rollup;
        let mut summaries = Summaries::new(&rollup, reading);
        let mut found = summaries.next()?;
        for &start in run {
            let is_next = found.as_ref().is_some_and(|(at, _)| *at == start);
            let mut summary = match found.take_if(|_| is_next) {
                Some((_, summary)) => {
                    found = summaries.next()?;
                    summary
                }
                None => Summary::none(self.snapshot.info().definition.value_type),
            };
            if let Some(row) = known.iter().flatten().find(|row| row.start == start) {
                let mut whole = row.summary.clone();
                whole.add(&summary);
                summary = whole;
            }
            self.slices.push(start, summary)?;
        }
        Ok(())
    }

    /// The rows that segments have of a span, if what is young only comes behind what they know:
    /// then nothing but that has to be read.
    fn known(&self, span: TimeSpan) -> Result<Option<Vec<Row>>> {
        if self.is_deleted_near(span) {
            return Ok(None);
        }
        let (mut rows, mut is_known) = (Vec::new(), true);
        self.stored.each_row(span, &mut |row| {
            let is_behind = is_all_behind(self.young, (row.start, &row.summary));
            is_known &= is_behind && rows.len() < KNOWN_ROWS_MAX;
            if is_known {
                rows.push(row);
            }
            Ok(())
        })?;
        Ok(is_known.then_some(rows))
    }

    /// Whether anything in a span was deleted since the last checkpoint.
    fn is_deleted_near(&self, span: TimeSpan) -> bool {
        self.young.deletes.iter().any(|delete| delete.span.and(span).is_some())
    }

    /// Writes windows from one on that were never written; how far the rollup reaches then.
    fn catch_up(&mut self, from: i64, left: &mut usize) -> Result<Reach> {
        let span = TimeSpan { first: from, last: i64::MAX };
        let reading = self.snapshot.read(Course { span, direction: Direction::Rising })?;
        let rollup = self.stored.rollup;
        let mut summaries = Summaries::new(&rollup, reading);
        let mut until = i64::MAX;
        while let Some((start, summary)) = summaries.next()? {
            if summaries.read > *left {
                until = start;
                break;
            }
            self.slices.push(start, summary)?;
        }
        *left = left.saturating_sub(summaries.read);
        Ok(Reach { until, since: self.snapshot.sequence() })
    }
}

/// Rows on their way into a segment, slice by slice.
struct Slices<'a> {
    info: Arc<SeriesInfo>,
    rollup: Rollup,
    bound: CommitSequence,
    segment: &'a mut SegmentWriter,
    /// Of one slice.
    rows: Vec<Row>,
}

impl<'a> Slices<'a> {
    fn new(
        info: &Arc<SeriesInfo>,
        rollup: Rollup,
        (bound, segment): (CommitSequence, &'a mut SegmentWriter),
    ) -> Self {
        Self { info: Arc::clone(info), rollup, bound, segment, rows: Vec::new() }
    }

    /// Takes the row of a window behind all before.
    fn push(&mut self, start: i64, summary: Summary) -> Result<()> {
        let slice = |start| self.rollup.slice_of(start);
        if self.rows.first().is_some_and(|first| slice(first.start) != slice(start)) {
            self.flush()?;
        }
        self.rows.push(Row { start, as_of: self.bound.0, summary });
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let Some(first) = self.rows.first() else { return Ok(()) };
        let (number, slice) = (self.rollup.number, self.rollup.slice_of(first.start));
        let value_type = self.info.definition.value_type;
        let starts: Vec<i64> = self.rows.iter().map(|row| row.start).collect();
        for column in Column::ALL.into_iter().filter(|column| column.is_of(value_type)) {
            let mut values = Values::new(column.value_type(value_type));
            for row in &self.rows {
                values.push(column.value(row, value_type)).map_err(|value| {
                    Error::new(ErrorKind::Corrupt, format!("a window of {value_type} has {value}"))
                })?;
            }
            let good = Qualities::All(Quality::GOOD);
            let points = Points::from_columns(starts.clone(), values, good)?;
            let place = RollupColumn { rollup: number, slice, column: column as u8 };
            let key = cell_key::rollup(self.info.number, place);
            let (mut blocks, mut cells) = (Blocks::new(key, Density::Hot), Vec::new());
            blocks.push(Piece::of_commit(Arc::new(points), None, self.bound), &mut cells)?;
            blocks.finish(&mut cells);
            cells.iter().try_for_each(|(key, cell)| self.segment.push(key, cell))?;
        }
        self.rows.clear();
        Ok(())
    }
}
