//! What fills windows that have no value: that of others, which may be beside the span.
//!
//! What is beside a span is looked for only if its first or last window has no value. It is the
//! nearest window that has one, so that the gaps of a span are filled as those of a longer one.

use super::columns::Spot;
use super::{AggregateOptions, Fill, WindowTable};
use crate::error::Result;
use crate::limits::SERIES_FILL_WINDOWS;
use crate::revision::Micros;
use crate::series::source::Direction;
use crate::series::span::TimeSpan;
use crate::series::{RangeOptions, SeriesSnapshot};

/// Where to look: before a time, falling, or from it on, rising.
#[derive(Debug, Clone, Copy)]
struct Side {
    edge: i64,
    direction: Direction,
}

/// The nearest point of a side that counts, and the last one before it that does not, on the way.
#[derive(Debug, Clone, Copy)]
struct Nearest {
    time: i64,
    passed: Option<i64>,
}

impl SeriesSnapshot {
    /// The windows of a span, their gaps filled.
    pub(super) fn filled(
        &self,
        mut table: WindowTable,
        span: TimeSpan,
        options: &AggregateOptions,
    ) -> Result<WindowTable> {
        let (falling, rising) = (Direction::Falling, Direction::Rising);
        let before = Side { edge: span.first, direction: falling };
        let after = span.last.checked_add(1).map(|edge| Side { edge, direction: rising });
        let sides = match options.fill {
            Fill::None | Fill::Null => return Ok(table),
            Fill::Value(_) => [None, None],
            Fill::Previous => [Some(before), None],
            Fill::Linear => [Some(before), after],
        };
        let [before, after] = sides.map(|side| match side {
            Some(side) => self.beside(&table, side, options),
            None => Ok(vec![None; table.columns.len()]),
        });
        let value_type = self.info().definition.value_type;
        for (column, spots) in before?.iter().zip(&after?).enumerate() {
            // What no window has, none is filled with.
            if options.aggregates[column].has_values_of(value_type) {
                table.fill(column, options.fill, (spots.0.as_ref(), spots.1.as_ref()));
            }
        }
        Ok(table)
    }

    /// What the columns of a table have in the nearest window of a side in which they have a value:
    /// those that have none in the table's outermost window there.
    fn beside(
        &self,
        table: &WindowTable,
        side: Side,
        options: &AggregateOptions,
    ) -> Result<Vec<Option<Spot>>> {
        let value_type = self.info().definition.value_type;
        let outermost = match side.direction {
            Direction::Falling => 0,
            Direction::Rising => table.starts.len().saturating_sub(1),
        };
        let is_missing: Vec<bool> = table
            .columns
            .iter()
            .zip(&options.aggregates)
            .map(|(column, aggregate)| {
                column.nulls.get(outermost) == Some(&true) && aggregate.has_values_of(value_type)
            })
            .collect();
        let mut spots = vec![None; is_missing.len()];
        let unfilled = AggregateOptions { fill: Fill::None, ..options.clone() };
        let (mut side, mut seen) = (Some(side), None);
        for _ in 0..SERIES_FILL_WINDOWS {
            let is_open = |at: usize| is_missing[at] && spots[at].is_none();
            let open: Vec<usize> = (0..spots.len()).filter(|at| is_open(*at)).collect();
            let Some(here) = side.filter(|_| !open.is_empty()) else { break };
            let is_held = open.iter().any(|at| options.aggregates[*at].is_of_time());
            let held = is_held.then_some(&mut seen);
            let Some(bounded) = self.window_beside(here, held, options)? else { break };
            let found = self.aggregate_unfilled(bounded, &unfilled)?;
            if let Some(start) = found.starts.first() {
                for at in open {
                    spots[at] = found.columns[at].get(0).map(|value| (*start, value));
                }
            }
            side = here.beyond(bounded.0);
        }
        Ok(spots)
    }

    /// The nearest window of a side in which anything counts, as far as it is of that side, and
    /// until when values hold in it. With `held`, the point that was nearest last, it counts too
    /// that the value of another one held.
    fn window_beside(
        &self,
        side: Side,
        held: Option<&mut Option<i64>>,
        options: &AggregateOptions,
    ) -> Result<Option<(TimeSpan, i64)>> {
        let Side { edge, direction } = side;
        let point = self.point_beside(side, options)?;
        let row = self.row_beside(edge, direction, options)?;
        let point = point.map(|Nearest { time, passed }| {
            // It may have held until a point came that does not count, or one that was seen.
            let is_held = held.is_some_and(|seen| seen.replace(time) != Some(time));
            match direction {
                Direction::Falling if is_held => passed.unwrap_or(edge).saturating_sub(1).max(time),
                _ => time,
            }
        });
        let nearest = point.into_iter().chain(row).min_by_key(|time| direction.rank(*time));
        // A calendar may not reach there.
        let around = nearest.and_then(|time| options.windows.around(Micros(time)).ok());
        Ok(around.map(|(start, end)| side.part(start.0, end.0)))
    }

    /// The nearest point of a side that counts, however far it is.
    fn point_beside(&self, side: Side, options: &AggregateOptions) -> Result<Option<Nearest>> {
        let Some(span) = side.span() else { return Ok(None) };
        let reverse = side.direction == Direction::Falling;
        // Most often it is the nearest one.
        for limit in [Some(1), None] {
            let how = RangeOptions { limit, reverse, bounding: false };
            let mut passed = None;
            for points in self.range_with(span.first()..=span.last(), &how)? {
                let points = points?;
                for (at, &time) in points.times().iter().enumerate() {
                    if options.quality.takes(points.qualities().get(at)) {
                        return Ok(Some(Nearest { time, passed }));
                    }
                    passed = Some(time);
                }
            }
            if passed.is_none() {
                break;
            }
        }
        Ok(None)
    }
}

impl Side {
    /// All its times; none if there are none.
    fn span(self) -> Option<TimeSpan> {
        Some(match self.direction {
            Direction::Falling => TimeSpan { first: i64::MIN, last: self.edge.checked_sub(1)? },
            Direction::Rising => TimeSpan { first: self.edge, last: i64::MAX },
        })
    }

    /// What of a window is of the side, and until when values hold in it.
    fn part(self, start: i64, end: i64) -> (TimeSpan, i64) {
        match self.direction {
            Direction::Falling => {
                let end = end.min(self.edge);
                (TimeSpan { first: start, last: end.saturating_sub(1) }, end)
            }
            Direction::Rising => {
                let last = if end == i64::MAX { end } else { end - 1 };
                (TimeSpan { first: start.max(self.edge), last }, end)
            }
        }
    }

    /// What is behind a part of it.
    fn beyond(self, part: TimeSpan) -> Option<Self> {
        let edge = match self.direction {
            Direction::Falling => Some(part.first),
            Direction::Rising => part.last.checked_add(1),
        };
        edge.map(|edge| Self { edge, ..self })
    }
}
