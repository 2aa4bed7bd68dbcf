//! What one commit does to the points of series, as a transaction stages it and the journal
//! records it.
//!
//! Invariants of what is settled:
//! - the points of a series rise by time, and no time is there twice: the last one given holds;
//! - what a commit deletes are points of earlier commits; its own are there.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::View;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::SERIES_COMMIT_POINTS_MAX;
use crate::revision::CommitSequence;
use crate::series::block::{Block, Density, Sequences};
use crate::series::line::Line;
use crate::series::lossy::Lossy;
use crate::series::piece::LonePoint;
use crate::series::points::Points;
use crate::series::reading::{PointStore, Reading};
use crate::series::source::{Course, Direction};
use crate::series::span::TimeSpan;
use crate::series::thinning::Thinning;
use crate::series::value::ValueType;
use crate::tree::cell_key::TreeId;
use crate::wire::{Reader, put_bytes, put_varint};

/// Approximate bytes of a series in memory of which anything is young, and of one with a point.
const SERIES_BYTES: usize = 320;
const LONE_POINT_BYTES: usize = 80;

/// Changes of any number of series.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeriesChanges {
    series: BTreeMap<TreeId, SeriesChange>,
}

/// What a commit does to one series.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeriesChange {
    /// What it deletes of what was there before.
    pub(crate) deletes: Vec<TimeSpan>,
    pub(crate) points: Option<Arc<Points>>,
    /// What their times are on, once they are settled.
    pub(crate) line: Option<Line>,
    /// Those of them go that the others tell, before they are recorded.
    thinning: Option<Thinning>,
}

impl SeriesChange {
    /// Has the points that stay be all that is appended.
    fn thin(&mut self, stored: impl FnOnce(Course) -> Result<Reading>) -> Result<()> {
        let (Some(thinning), Some(points)) = (self.thinning.take(), &mut self.points) else {
            return Ok(());
        };
        let times = points.times();
        let &[first, _, .., last] = times else { return Ok(()) };
        let span = TimeSpan { first, last };
        let mut stored = stored(Course { span, direction: Direction::Rising })?;
        let (mut cuts, mut buffer) = (Vec::new(), Points::new(ValueType::F64));
        // Behind the last cut there is nothing to be found.
        while cuts.last().is_none_or(|last| *last < times.len()) {
            if let Some(block) = stored.next_seen_block()? {
                let (first, last) = block.time_range();
                let next = times.partition_point(|own| *own < first.0);
                if times.get(next).is_none_or(|own| *own > last.0) {
                    cut(&mut cuts, next);
                    stored.skip_block()?;
                    continue;
                }
            }
            let is_there = stored.visit(&mut buffer, &mut |found, places| {
                let found = found.times().get(places).unwrap_or_default();
                let is_deleted = |time: &i64| self.deletes.iter().any(|span| span.has(*time));
                let mut next = 0;
                for time in found.iter().filter(|time| !is_deleted(time)) {
                    let rest = times.get(next..).unwrap_or_default();
                    next += rest.partition_point(|own| own < time);
                    cut(&mut cuts, next);
                    if times.get(next) == Some(time) {
                        cut(&mut cuts, next + 1);
                    }
                }
                Ok(())
            })?;
            if !is_there {
                break;
            }
        }
        *points = Arc::new(thinning.apart(points, &cuts)?);
        self.line = None;
        Ok(())
    }

    /// If all that it does is a point.
    pub(crate) fn lone_point(&self, sequence: CommitSequence) -> Option<LonePoint> {
        let points = self.points.as_ref().filter(|_| self.deletes.is_empty())?;
        LonePoint::of(points, sequence)
    }
}

impl SeriesChanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Each series with what is done to it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TreeId, &SeriesChange)> {
        self.series.iter().map(|(&series, change)| (series, change))
    }

    /// What is appended to a series.
    pub(crate) fn points(&self, series: TreeId) -> Option<&Points> {
        self.series.get(&series)?.points.as_deref()
    }

    /// Adds points of the type of a series, which gives up some precision if that is said.
    pub(crate) fn append(
        &mut self,
        series: TreeId,
        points: Cow<'_, Points>,
        lossy: Option<Lossy>,
    ) -> Result<()> {
        if points.is_empty() {
            return Ok(());
        }
        let points = match lossy {
            Some(lossy @ Lossy::Quantised { .. }) => Cow::Owned(lossy.of(&points)?),
            Some(Lossy::Thinned(_)) | None => points,
        };
        let change = self.series.entry(series).or_default();
        change.line = None;
        if let Some(Lossy::Thinned(thinning)) = lossy {
            change.thinning = Some(thinning);
        }
        match &mut change.points {
            Some(staged) => Arc::make_mut(staged).append(&points, 0..points.len()),
            None => change.points = Some(Arc::new(points.into_owned())),
        }
        Ok(())
    }

    /// Deletes what is in a span, what was staged included.
    pub(crate) fn delete(&mut self, series: TreeId, span: TimeSpan) {
        let change = self.series.entry(series).or_default();
        change.line = None;
        change.deletes.push(span);
        let Some(staged) = &mut change.points else { return };
        let times = staged.times().iter().enumerate();
        let left: Vec<usize> =
            times.filter(|(_, time)| !span.has(**time)).map(|(at, _)| at).collect();
        match left.len() {
            0 => change.points = None,
            len if len < staged.len() => Arc::make_mut(staged).permute(&left),
            _ => {}
        }
    }

    /// The same with points in the order of their times, each time once.
    pub(crate) fn settled(mut self) -> Result<Self> {
        for change in self.series.values_mut() {
            change.line = change.points.as_mut().and_then(settle);
        }
        let count = |change: &SeriesChange| change.points.as_ref().map_or(0, |points| points.len());
        let points: usize = self.series.values().map(count).sum();
        if points > SERIES_COMMIT_POINTS_MAX {
            let message = format!(
                "a commit of {points} points: split it, at most {SERIES_COMMIT_POINTS_MAX} are \
                 taken at once"
            );
            return Err(Error::new(ErrorKind::Full, message));
        }
        Ok(self)
    }

    /// Whether points are thinned. Others that came to their series meanwhile would not be known.
    pub(crate) fn are_thinned(&self) -> bool {
        self.series.values().any(|change| change.thinning.is_some())
    }

    /// What is settled, thinned as was asked for, beside what a view has. Where that cannot be
    /// read, all points stay: they hold too.
    pub(crate) fn thinned(mut self, view: &View) -> Self {
        let newest = CommitSequence(u64::MAX);
        for (&series, change) in &mut self.series {
            let stored = || PointStore::of(view, (series, ValueType::F64), newest);
            let _ = change.thin(|course| stored()?.read(course));
        }
        self
    }

    /// Appends what the journal records.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.series.len() as u64);
        for (series, SeriesChange { deletes, points, line, .. }) in &self.series {
            put_varint(out, series.0 - TreeId::SERIES.0);
            put_varint(out, deletes.len() as u64);
            for span in deletes {
                span.encode(out);
            }
            let blocks = points.as_ref().map_or(Vec::new(), |points| blocks_of(points, *line));
            put_varint(out, blocks.len() as u64);
            for block in &blocks {
                put_bytes(out, block);
            }
        }
    }

    /// Reads what [`Self::encode`] wrote.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let mut changes = Self::default();
        // So that a few damaged bytes do not stand for any number of points.
        let mut left = SERIES_COMMIT_POINTS_MAX;
        for _ in 0..reader.count()? {
            let number = reader.varint()?;
            let series = TreeId(number.saturating_add(TreeId::SERIES.0));
            if !series.is_series() {
                return Err(reader.corrupt(&format!("{number} is no number of a series")));
            }
            let mut change = SeriesChange::default();
            for _ in 0..reader.count()? {
                change.deletes.push(TimeSpan::decode(reader)?);
            }
            let (points, line) = read_blocks(reader, &mut left)?;
            (change.points, change.line) = (points.map(Arc::new), line);
            changes.series.insert(series, change);
        }
        Ok(changes)
    }

    /// Approximate bytes that they take in memory once they are staged.
    pub(crate) fn young_bytes(&self) -> usize {
        let of_one = |change: &SeriesChange| {
            let points = change.points.as_ref().map_or(0, |points| points.bytes());
            if change.lone_point(CommitSequence(0)).is_some() {
                return points + LONE_POINT_BYTES;
            }
            points + change.deletes.len() * size_of::<(CommitSequence, TimeSpan)>() + SERIES_BYTES
        };
        self.series.values().map(of_one).sum()
    }
}

/// Adds a place to rising ones, unless it is the last of them.
fn cut(cuts: &mut Vec<usize>, place: usize) {
    if cuts.last().is_none_or(|last| *last < place) {
        cuts.push(place);
    }
}

/// Sorts points by time and keeps the last of each time. The line that their times are on, if they
/// were when they came.
fn settle(points: &mut Arc<Points>) -> Option<Line> {
    let (is_settled, line) = order_of(points);
    if is_settled {
        return line;
    }
    let points = Arc::make_mut(points);
    points.sort();
    let times = points.times();
    let is_last = |at: &usize| times.get(at + 1) != times.get(*at);
    let kept: Vec<usize> = (0..times.len()).filter(is_last).collect();
    if kept.len() < times.len() {
        points.permute(&kept);
    }
    None
}

/// Blocks of settled points, whose times are on a line if there is one, as the journal has them.
fn blocks_of(points: &Points, line: Option<Line>) -> Vec<Vec<u8>> {
    let none = Sequences::All(CommitSequence(0));
    let (mut blocks, mut at) = (Vec::new(), 0);
    while at < points.len() {
        let end = at + points.block_len(at);
        let mut block = Vec::with_capacity(2 * (end - at));
        Block::encode((points, at..end), line, &none, Density::Hot, &mut block);
        blocks.push(block);
        at = end;
    }
    blocks
}

/// Whether points rise by time, and no time is there twice; the line that their times are on, if
/// they are on one.
fn order_of(points: &Points) -> (bool, Option<Line>) {
    let line = Line::of(points.times());
    (line.is_some() || points.times().is_sorted_by(|a, b| a < b), line)
}

fn read_blocks(
    reader: &mut Reader<'_>,
    left: &mut usize,
) -> Result<(Option<Points>, Option<Line>)> {
    let mut all: Option<Points> = None;
    for _ in 0..reader.count()? {
        let block = Block::parse(bytes::Bytes::copy_from_slice(reader.bytes()?))?;
        let all = all.get_or_insert_with(|| Points::new(block.value_type()));
        if all.value_type() != block.value_type() {
            return Err(reader.corrupt("points of several types in one series"));
        }
        *left = left
            .checked_sub(block.len())
            .ok_or_else(|| reader.corrupt("more points than a commit may have"))?;
        block.decode(0..block.len(), all)?;
    }
    match all.as_ref().map_or((true, None), order_of) {
        (false, _) => Err(reader.corrupt("points out of order")),
        (true, line) => Ok((all, line)),
    }
}
