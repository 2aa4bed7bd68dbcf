//! Several series at once: their windows on one grid, those with the greatest values, and rows of
//! points.

use std::ops::RangeBounds;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::database::{Database, DatabaseSnapshot};
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::revision::Micros;
use crate::series::aggregate::{
    Aggregate, AggregateOptions, QualityFilter, WindowColumn, WindowTable,
};
use crate::series::definition::SeriesInfo;
use crate::series::filter::SeriesFilter;
use crate::series::points::Points;
use crate::series::quality::Quality;
use crate::series::span::TimeSpan;
use crate::series::stats::SeriesStats;
use crate::series::value::SeriesValue;
use crate::series::windows::Windows;
use crate::threads;
use crate::transaction::{Committed, Transaction};

/// The windows of several series, one below the other: what each of them comes to stands at the
/// same place in all columns.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesGrid {
    /// When each window begins, in microseconds since the Unix epoch, UTC.
    pub starts: Vec<i64>,
    /// Of each series, in the order asked, a column for each aggregate.
    pub series: Vec<Vec<WindowColumn>>,
}

/// Which series have the greatest values.
#[derive(Debug, Clone)]
pub struct TopOptions {
    /// What is compared: a number.
    pub aggregate: Aggregate,
    /// Which points count.
    pub quality: QualityFilter,
    /// How many series, at most.
    pub count: usize,
    /// Those with the least values instead.
    pub least: bool,
}

impl TopOptions {
    /// The ten series with the greatest values, of points of good quality.
    pub fn new(aggregate: Aggregate) -> Self {
        Self { aggregate, quality: QualityFilter::default(), count: 10, least: false }
    }
}

impl DatabaseSnapshot {
    /// What the points of several series come to over the same windows, computed on all
    /// processors. A window stands there if any of the series has it; where a span has no bound it
    /// reaches to the first or last point of all of them.
    ///
    /// ```
    /// # use duramen::{CommitOptions, Database, Micros, SeriesDefinition, SeriesValue, ValueType};
    /// use duramen::{Aggregate, AggregateOptions, Windows};
    ///
    /// # let db = Database::memory()?;
    /// for (name, second) in [("a", 10), ("b", 70)] {
    ///     let series = db.create_series(name, &SeriesDefinition::new(ValueType::I64))?;
    ///     series.append(Micros(second * 1_000_000), second, &CommitOptions::default())?;
    /// }
    /// let minutes = AggregateOptions::new(vec![Aggregate::Max], Windows::parse("1m", "UTC")?);
    /// let grid = db.snapshot().aggregate_series(&["a", "b"], .., &minutes)?;
    /// assert_eq!(grid.starts, [0, 60_000_000]);
    /// assert_eq!(grid.series[1][0].get(0), None);
    /// assert_eq!(grid.series[1][0].get(1), Some(SeriesValue::I64(70)));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if one of them is not there, and those of
    /// [`SeriesSnapshot::aggregate`](crate::SeriesSnapshot::aggregate).
    pub fn aggregate_series<N: AsRef<str>>(
        &self,
        names: &[N],
        span: impl RangeBounds<Micros>,
        options: &AggregateOptions,
    ) -> Result<SeriesGrid> {
        let all: Vec<_> =
            names.iter().map(|name| self.series(name.as_ref())).collect::<Result<_>>()?;
        let span = span_of(&span);
        let bounds = on_all_processors(&all, |series| series.bounded(&span))?;
        let common = bounds.into_iter().flatten().reduce(|(one, end), (other, other_end)| {
            let first = one.first.min(other.first);
            (TimeSpan { first, last: one.last.max(other.last) }, end.max(other_end))
        });
        let Some(common) = common else {
            return Ok(SeriesGrid { starts: Vec::new(), series: vec![Vec::new(); all.len()] });
        };
        let tables = match &all[..] {
            [one] => vec![one.aggregate_bounded(common, options)?],
            all => {
                on_all_processors(all, |series| series.aggregate_bounded_alone(common, options))?
            }
        };
        let mut starts = tables.first().map_or(Vec::new(), |table| table.starts.clone());
        if tables.iter().any(|table| table.starts != starts) {
            starts = tables.iter().flat_map(|table| &table.starts).copied().collect();
            starts.sort_unstable();
            starts.dedup();
        }
        let aligned = |table: WindowTable| {
            if table.starts == starts {
                return table.columns;
            }
            table.columns.iter().map(|one| one.aligned(&table.starts, &starts)).collect()
        };
        let series = tables.into_iter().map(aligned).collect();
        Ok(SeriesGrid { starts, series })
    }

    /// The series with the greatest values of an aggregate over a span of time, the greatest first;
    /// of equal ones the first by name. Series without a number there are left out.
    ///
    /// # Errors
    /// Those of [`DatabaseSnapshot::find_series`] and
    /// [`SeriesSnapshot::aggregate`](crate::SeriesSnapshot::aggregate).
    pub fn top_series(
        &self,
        filter: &SeriesFilter,
        span: impl RangeBounds<Micros>,
        options: &TopOptions,
    ) -> Result<Vec<(SeriesInfo, SeriesValue)>> {
        let found = self.find_series(filter)?;
        let mut asked = AggregateOptions::new(vec![options.aggregate.clone()], Windows::whole());
        asked.quality = options.quality;
        let span = span_of(&span);
        let values = on_all_processors(&found, |info| {
            let table = self.series(&info.name)?.aggregate_alone(&span, &asked)?;
            Ok(table.columns.first().and_then(|column| column.get(0)))
        })?;
        // Zeros of both signs are one number: 0 is what they are with another zero.
        let number = |value: &SeriesValue| {
            value.as_f64().filter(|number| !number.is_nan()).map(|number| number + 0.0)
        };
        let mut ranked: Vec<(f64, SeriesInfo, SeriesValue)> = found
            .into_iter()
            .zip(values)
            .filter_map(|(info, value)| value.and_then(|it| Some((number(&it)?, info, it))))
            .collect();
        ranked.sort_by(|one, other| {
            let by_value = one.0.total_cmp(&other.0);
            let by_value = by_value.then_with(|| whole(&one.2).cmp(&whole(&other.2)));
            if options.least { by_value } else { by_value.reverse() }
        });
        ranked.truncate(options.count);
        Ok(ranked.into_iter().map(|(_, info, value)| (info, value)).collect())
    }
}

impl DatabaseSnapshot {
    /// The size of the series that a filter lets through, as of now:
    /// [`SeriesSnapshot::stats`](crate::SeriesSnapshot::stats).
    ///
    /// # Errors
    /// Those of [`DatabaseSnapshot::find_series`] and of reading.
    pub fn series_stats(&self, filter: &SeriesFilter) -> Result<SeriesStats> {
        let found = self.find_series(filter)?;
        let all = on_all_processors(&found, |info| self.series(&info.name)?.stats())?;
        let mut sum = SeriesStats::default();
        for one in all {
            sum += one;
        }
        Ok(sum)
    }
}

/// What tells integers apart that are one float: the integer, or the one that a float is near to.
#[expect(clippy::cast_possible_truncation, reason = "the nearest one is what is asked for")]
fn whole(value: &SeriesValue) -> i64 {
    match value {
        SeriesValue::I64(value) => *value,
        value => value.as_f64().unwrap_or_default() as i64,
    }
}

/// The bounds of a span, to be handed on.
type Span = (std::ops::Bound<Micros>, std::ops::Bound<Micros>);

fn span_of(span: &impl RangeBounds<Micros>) -> Span {
    (span.start_bound().cloned(), span.end_bound().cloned())
}

/// Does the same with each of some things; the results are in their order.
pub(super) fn on_all_processors<T: Sync, R: Send>(
    all: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if all.len() < 2 || threads::processors() == 1 {
        return all.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(one) = all.get(at)
        {
            let result = work(one);
            let is_failed = result.is_err();
            done.push((at, result));
            if is_failed {
                next.store(all.len(), Ordering::Relaxed);
            }
        }
        done
    };
    let mut done = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (1..threads::processors().min(all.len())).map(|_| scope.spawn(take)).collect();
        let mut done = take();
        for thread in threads {
            match thread.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

impl Database {
    /// Appends rows of points as one commit: each has a time and a value for each series, or none.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, Micros, SeriesDefinition, ValueType};
    ///
    /// let db = Database::memory()?;
    /// let names = ["boiler/temp", "boiler/on"];
    /// db.create_series(names[0], &SeriesDefinition::new(ValueType::F64))?;
    /// db.create_series(names[1], &SeriesDefinition::new(ValueType::Bool))?;
    /// let rows = [
    ///     (Micros(1_000_000), vec![Some(80.5.into()), Some(true.into())]),
    ///     (Micros(2_000_000), vec![Some(80.75.into()), None]),
    /// ];
    /// db.append_rows(&names, &rows, &CommitOptions::default())?;
    /// assert_eq!(db.series("boiler/temp")?.range(..)?.read()?.len(), 2);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Transaction::append_rows`] and of every commit.
    pub fn append_rows<N: AsRef<str>>(
        &self,
        series: &[N],
        rows: &[(Micros, Vec<Option<SeriesValue>>)],
        options: &CommitOptions,
    ) -> Result<Committed> {
        let mut transaction = self.transaction();
        transaction.append_rows(series, rows)?;
        transaction.commit(options)
    }
}

impl Transaction {
    /// Appends rows of points of good quality: each has a time and a value for each series, or
    /// none.
    ///
    /// # Errors
    /// `NotFound` if there is no such series, `Invalid` if a row has more or fewer values than
    /// there are series, or one of another type; then nothing of them is appended.
    pub fn append_rows<N: AsRef<str>>(
        &mut self,
        series: &[N],
        rows: &[(Micros, Vec<Option<SeriesValue>>)],
    ) -> Result<()> {
        if let Some(at) = rows.iter().position(|(_, values)| values.len() != series.len()) {
            let (found, wanted) = (rows[at].1.len(), series.len());
            let message = format!("row {at} has {found} values for {wanted} series");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let mut all = Vec::with_capacity(series.len());
        for (column, name) in series.iter().enumerate() {
            let name = name.as_ref();
            let info = self.series_info(name)?;
            let mut points = Points::new(info.definition.value_type);
            for (at, (time, values)) in rows.iter().enumerate() {
                let Some(value) = &values[column] else { continue };
                points
                    .push(*time, value.clone(), Quality::GOOD)
                    .map_err(|error| error.in_context(format!("series {name:?}, row {at}")))?;
            }
            all.push((name, points));
        }
        all.iter().try_for_each(|(name, points)| self.append_points(name, points))
    }
}

#[cfg(test)]
mod tests;
