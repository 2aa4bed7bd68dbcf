//! Aggregates of a series of a database.

use std::ops::RangeBounds;

use super::{AggregateOptions, Before, Stream, WindowTable};
use crate::error::Result;
use crate::revision::Micros;
use crate::series::span::TimeSpan;
use crate::series::{Point, RangeOptions, Series, SeriesSnapshot};

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
        let value_type = self.info().definition.value_type;
        let Some((span, end)) = self.bounded(&span)? else {
            return Stream::none(value_type, options);
        };
        let before = self.before(span.first, options)?;
        let mut stream = Stream::new(value_type, options, (span.first, end), before)?;
        self.feed(&mut stream, span, options)?;
        let one = RangeOptions { limit: Some(1), ..RangeOptions::default() };
        let after = match span.last.checked_add(1) {
            Some(after) if options.needs_neighbours() => self.one(Micros(after).., one)?,
            _ => None,
        };
        stream.finish(after.as_ref())
    }

    /// The span, from the first or up to the last point where it has no bound, and until when
    /// values hold in it: up to its end, or to the last point; none without points.
    pub(in crate::series) fn bounded(
        &self,
        span: &impl RangeBounds<Micros>,
    ) -> Result<Option<(TimeSpan, i64)>> {
        let Some(mut bounded) = TimeSpan::of(span) else { return Ok(None) };
        let mut end = bounded.last.saturating_add(1);
        let point =
            |reverse| self.one(.., RangeOptions { limit: Some(1), reverse, bounding: false });
        if bounded.first == i64::MIN {
            let first = point(false)?.map(|first| first.time.0);
            let rows = self.rows_alone()?.map(|rows| rows.first);
            let Some(first) = first.into_iter().chain(rows).min() else { return Ok(None) };
            bounded.first = first;
        }
        if bounded.last == i64::MAX {
            let last = point(true)?.map(|last| last.time.0);
            let last = match last {
                Some(last) => Some(last),
                None => self.rows_alone()?.map(|rows| rows.last),
            };
            let Some(last) = last else { return Ok(None) };
            (bounded.last, end) = (last, last);
        }
        Ok((bounded.first <= bounded.last).then_some((bounded, end)))
    }

    /// What is to be known of the time before a span.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::{Aggregate, Hold, Points, Quality, SeriesDefinition, ValueType, Windows};
    use crate::{CommitOptions, Database, SeriesValue};

    fn series(points: &Points) -> Series {
        let db = Database::memory().unwrap();
        let definition = SeriesDefinition::new(points.value_type());
        let series = db.create_series("a", &definition).unwrap();
        series.append_points(points, &CommitOptions::default()).unwrap();
        series
    }

    fn row(series: &Series, span: std::ops::Range<i64>, what: &[Aggregate]) -> Vec<Option<f64>> {
        let windows = Windows::of_width(Micros(1_000_000)).unwrap();
        let options = AggregateOptions::new(what.to_vec(), windows);
        let table = series.aggregate(Micros(span.start)..Micros(span.end), &options).unwrap();
        let value = |column: &crate::WindowColumn| column.get(0).and_then(|one| one.as_f64());
        table.columns.iter().map(value).collect()
    }

    #[test]
    fn a_delta_is_above_the_last_number_that_counts_however_far_back() {
        let mut points = Points::new(ValueType::F64);
        points.push(Micros(0), 1.0, Quality::GOOD).unwrap();
        for time in 1..=20_000 {
            points.push(Micros(time), 100.0, Quality::BAD).unwrap();
        }
        points.push(Micros(20_050), 5.0, Quality::GOOD).unwrap();
        let what = [Aggregate::Delta, Aggregate::TimeWeightedMean(Hold::Step), Aggregate::Count];
        let found = row(&series(&points), 20_010..20_100, &what);
        assert_eq!(found, [Some(4.0), Some(5.0), Some(1.0)]);
    }

    #[test]
    fn lines_go_on_to_the_points_beside_the_span() {
        let mut points = Points::new(ValueType::F64);
        for (time, value) in [(0, 0.0), (100, 10.0)] {
            points.push(Micros(time), value, Quality::GOOD).unwrap();
        }
        let what = [Aggregate::TimeWeightedMean(Hold::Linear)];
        assert_eq!(row(&series(&points), 40..60, &what), [Some(5.0)]);
    }

    #[test]
    fn a_series_without_points_has_no_windows() {
        let series = series(&Points::new(ValueType::I64));
        let windows = Windows::of_width(Micros(1)).unwrap();
        let options = AggregateOptions::new(vec![Aggregate::Max], windows);
        let table = series.aggregate(.., &options).unwrap();
        assert!(table.starts.is_empty() && table.columns[0].values.is_empty());
        series.append(Micros(7), 3, &CommitOptions::default()).unwrap();
        let table = series.aggregate(.., &options).unwrap();
        assert_eq!(table.starts, [7]);
        assert_eq!(table.columns[0].get(0), Some(SeriesValue::I64(3)));
    }
}
