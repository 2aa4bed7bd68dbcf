//! Rows of rollups, held against the points that they were made of.

use super::{Aggregate, AggregateOptions, Stream, WindowTable};
use crate::error::Result;
use crate::revision::Micros;
use crate::series::span::TimeSpan;
use crate::series::tiers::Rollup;
use crate::series::windows::Windows;
use crate::series::{RangeOptions, SeriesSnapshot, SeriesValue};

impl SeriesSnapshot {
    /// Makes the rows of each rollup again, as far as their points are kept, and calls `tell` with
    /// the first window of each in which they are others.
    pub(crate) fn check_rollups(&self, tell: &mut dyn FnMut(String)) -> Result<()> {
        let Some(info) = self.tiers()? else { return Ok(()) };
        for rollup in &info.definition.rollups {
            let now = self.now();
            let from = info.definition.points_from(rollup, now).max(rollup.from(now));
            let differs = self.differing_window(rollup, from)?;
            if let Some((start, row)) = differs {
                let (start, width) = (Micros(start), rollup.width);
                tell(format!(
                    "the rollup of {width:?} does not say of the window at {start} what its points \
                     come to, which is {row}: define the series without it and with it again"
                ));
            }
        }
        Ok(())
    }

    /// The first window from a time on whose row says something else than its points, which come
    /// to what is told of it.
    fn differing_window(&self, rollup: &Rollup, from: i64) -> Result<Option<(i64, String)>> {
        let asked =
            [Aggregate::Count, Aggregate::Min, Aggregate::Max, Aggregate::First, Aggregate::Last];
        let windows = Windows::of_width(Micros(rollup.micros()))?;
        let options = AggregateOptions::new(asked.to_vec(), windows);
        let mut next = Some(from);
        while let Some(from) = next
            && let Some(time) = self.first_time(from)?
        {
            let Some(start) = rollup.start(time).filter(|start| *start >= from) else {
                // A window that is cut, or at the very ends of time, where no whole one is.
                let after = rollup.start(time).and_then(|start| start.checked_add(rollup.micros()));
                next = after.or_else(|| time.checked_add(1)).filter(|after| *after > time);
                continue;
            };
            let end = start.saturating_add(rollup.slice_micros());
            let span = TimeSpan { first: start, last: end.saturating_sub(1) };
            let rows = self.table(span, &options, true)?;
            let points = self.table(span, &options, false)?;
            if let Some(window) = difference(&rows, &points) {
                return Ok(Some(window));
            }
            next = (end < i64::MAX).then_some(end);
        }
        Ok(None)
    }

    fn first_time(&self, from: i64) -> Result<Option<i64>> {
        let one = RangeOptions { limit: Some(1), ..RangeOptions::default() };
        let points = self.range_with(Micros(from).., &one)?.read()?;
        Ok(points.times().first().copied())
    }

    /// The windows of a span, out of rows where there are any, or out of points alone.
    fn table(
        &self,
        span: TimeSpan,
        options: &AggregateOptions,
        by_rows: bool,
    ) -> Result<WindowTable> {
        let value_type = self.info().definition.value_type;
        let ends = (span.first, span.last.saturating_add(1));
        let mut stream = Stream::new(value_type, options, ends, super::Before::default())?;
        if by_rows {
            self.feed(&mut stream, span, options)?;
        } else {
            self.feed_points(&mut stream, span, options)?;
        }
        stream.finish(None)
    }
}

/// The first window of two tables in which they differ, and what the second one says of it.
fn difference(rows: &WindowTable, points: &WindowTable) -> Option<(i64, String)> {
    let told = |table: &WindowTable, at: usize| -> Vec<Option<SeriesValue>> {
        table.columns.iter().map(|column| column.get(at)).collect()
    };
    let all = rows.starts.len().max(points.starts.len());
    (0..all).find_map(|at| {
        let (of_rows, of_points) = (told(rows, at), told(points, at));
        let pairs = of_rows.iter().zip(&of_points);
        let is_alike = rows.starts.get(at) == points.starts.get(at)
            && pairs.into_iter().all(|(one, two)| is_same(one.as_ref(), two.as_ref()));
        let starts = [rows.starts.get(at), points.starts.get(at)];
        let start = starts.into_iter().flatten().min()?;
        let texts = of_points.iter().map(|value| match value {
            Some(value) => value.to_string(),
            None => "nothing".to_owned(),
        });
        (!is_alike).then(|| (*start, texts.collect::<Vec<_>>().join(", ")))
    })
}

/// Whether two values are the same: of zeros with two signs either may be the least.
fn is_same(one: Option<&SeriesValue>, two: Option<&SeriesValue>) -> bool {
    let number = |value: Option<&SeriesValue>| value.and_then(SeriesValue::as_f64);
    one == two || number(one).is_some() && number(one) == number(two)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::{Points, Quality, ValueType};

    fn table(values: &[(i64, f64)]) -> WindowTable {
        let mut points = Points::new(ValueType::F64);
        for (time, value) in values {
            points.push(Micros(*time), *value, Quality::GOOD).unwrap();
        }
        let windows = Windows::of_width(Micros(10)).unwrap();
        let options = AggregateOptions::new(vec![Aggregate::Count, Aggregate::Min], windows);
        let mut stream =
            Stream::new(ValueType::F64, &options, (0, 100), super::super::Before::default())
                .unwrap();
        stream.add(&points, 0..points.len()).unwrap();
        stream.finish(None).unwrap()
    }

    #[test]
    fn the_first_window_that_differs_is_told_with_what_its_points_come_to() {
        let rows = table(&[(3, 1.0), (14, 2.0), (25, 3.0)]);
        assert_eq!(difference(&rows, &rows), None);
        let more = table(&[(3, 1.0), (14, 2.0), (15, 1.5), (25, 3.0)]);
        assert_eq!(difference(&rows, &more), Some((10, "2, 1.5".to_owned())));
        let fewer = table(&[(3, 1.0), (25, 3.0)]);
        assert_eq!(difference(&rows, &fewer).map(|(start, _)| start), Some(10));
        assert_eq!(difference(&fewer, &table(&[(3, 1.0)])).map(|(start, _)| start), Some(20));
    }

    #[test]
    fn zeros_of_either_sign_are_one_least_number() {
        assert_eq!(difference(&table(&[(3, 0.0)]), &table(&[(3, -0.0)])), None);
    }
}
