//! What is asked of several series together, and of each of them, is what a look at each point
//! gives: windows of every kind, filled or not, the greatest ones, ranges, pages and values, as of
//! every commit, whatever the series are called by then and wherever their points are.

#![expect(clippy::cast_precision_loss, reason = "tests compare floats")]

mod long;
mod plant;
mod spans;

use self::plant::Plant;
use self::spans::{Kind, beside, spans_of};
use super::naive::{Filled, Naive, Part, Told, between, is_near, number};
use crate::series::interpolation::integer_at;
use crate::{
    Aggregate, AggregateOptions, CommitSequence, Fill, Hold, Interpolation, Micros, Point,
    QualityFilter, RangeOptions, SeriesCursor, SeriesFilter, SeriesSnapshot, SeriesValue,
    TopOptions, ValueType, WindowColumn,
};

/// Windows of a span that are still looked at.
const WINDOWS_MAX: usize = 3_000;

/// What of one series is compared.
struct Look<'a> {
    points: Vec<Told>,
    of: ValueType,
    options: &'a AggregateOptions,
    kind: &'a Kind,
}

impl Look<'_> {
    fn naive(&self) -> Naive<'_> {
        Naive { points: &self.points, options: self.options, of: self.of }
    }

    /// What fills a row without a value.
    fn fill(&self, aggregate: &Aggregate, (row, parts): (usize, &[Part])) -> Filled {
        let naive = self.naive();
        let spot = |part: &Part| {
            let value = naive.value(*part, aggregate)?;
            Some(Spot { start: part.start, value, allowed: naive.size(*part) * 1e-8 })
        };
        let side = |inner: Option<Spot>, falling: bool| match inner {
            Some(spot) => Ok(Some(spot)),
            None => self.beside(aggregate, parts, falling),
        };
        let before = || side(parts[..row].iter().rev().find_map(spot), true);
        let after = || side(parts[row + 1..].iter().find_map(spot), false);
        match self.options.fill {
            Fill::None | Fill::Null => Filled::Nothing,
            Fill::Value(value) => self.by_value(aggregate, value),
            Fill::Previous => match before() {
                Err(()) => Filled::Unknown,
                Ok(None) => Filled::Nothing,
                Ok(Some(spot)) => Filled::By(spot.value, spot.allowed),
            },
            Fill::Linear => match (before(), after()) {
                (Err(()), _) | (_, Err(())) => Filled::Unknown,
                (Ok(Some(one)), Ok(Some(two))) => on_line((&one, &two), parts[row].start),
                _ => Filled::Nothing,
            },
        }
    }

    fn by_value(&self, aggregate: &Aggregate, value: f64) -> Filled {
        let is_of_text = self.of == ValueType::String;
        let own = matches!(
            aggregate,
            Aggregate::Min | Aggregate::Max | Aggregate::First | Aggregate::Last
        );
        let of = if own { self.of } else { ValueType::F64 };
        match of {
            _ if is_of_text => Filled::Nothing,
            ValueType::F64 => Filled::By(SeriesValue::F64(value), 0.0),
            #[expect(clippy::cast_possible_truncation, reason = "a number of a test")]
            ValueType::F32 => Filled::By(SeriesValue::F32(value as f32), 0.0),
            #[expect(clippy::cast_possible_truncation, reason = "a number of a test")]
            ValueType::I64 => Filled::By(SeriesValue::I64(value.round() as i64), 0.0),
            ValueType::Bool | ValueType::String => Filled::Nothing,
        }
    }

    /// The nearest window beside all parts in which the aggregate has a value; an error if that
    /// depends on how far is looked.
    fn beside(
        &self,
        aggregate: &Aggregate,
        parts: &[Part],
        falling: bool,
    ) -> Result<Option<Spot>, ()> {
        let naive = self.naive();
        let edge = if falling { parts[0].first } else { parts[parts.len() - 1].last };
        let counts = |point: &Told| naive.counts(point);
        for (at, part) in beside(self.kind, &self.points, (edge, falling), &counts).enumerate() {
            if at > 14 {
                return Err(());
            }
            if let Some(value) = naive.value(part, aggregate) {
                let allowed = naive.size(part) * 1e-8;
                return Ok(Some(Spot { start: part.start, value, allowed }));
            }
        }
        Ok(None)
    }

    fn compare(&self, columns: &[WindowColumn], parts: &[Part], told: &str) {
        let fill = |aggregate: &Aggregate, row: usize| self.fill(aggregate, (row, parts));
        self.naive().compare(columns, parts, &fill, told);
    }
}

/// A window that has a value.
#[derive(Debug, Clone)]
struct Spot {
    start: i64,
    value: SeriesValue,
    allowed: f64,
}

/// What is at a time on the line between two windows.
fn on_line((one, two): (&Spot, &Spot), at: i64) -> Filled {
    let allowed = one.allowed.max(two.allowed);
    let same = one.start == two.start;
    let share = || match two.start.abs_diff(one.start) {
        0 => 0.0,
        whole => at.abs_diff(one.start) as f64 / whole as f64,
    };
    let value = match (&one.value, &two.value) {
        (SeriesValue::I64(_), SeriesValue::I64(_)) if same => one.value.clone(),
        (SeriesValue::I64(a), SeriesValue::I64(b)) => {
            SeriesValue::I64(integer_at((*a, *b), (one.start, two.start), at))
        }
        (SeriesValue::F64(a), SeriesValue::F64(b)) => SeriesValue::F64(between(*a, *b, share())),
        (SeriesValue::F32(a), SeriesValue::F32(b)) => {
            let value = between(f64::from(*a), f64::from(*b), share());
            #[expect(clippy::cast_possible_truncation, reason = "a number of a test")]
            SeriesValue::F32(value as f32)
        }
        _ => return Filled::Nothing,
    };
    let size = [&one.value, &two.value, &value].map(|value| value.as_f64().unwrap_or(0.0).abs());
    let size = size.into_iter().filter(|size| size.is_finite()).fold(0.0, f64::max);
    let share = if matches!(value, SeriesValue::F32(_)) { 1e-6 } else { 1e-12 };
    let allowed = allowed.max(size * share);
    Filled::By(value, allowed)
}

impl Plant {
    fn aggregates(&mut self, of: ValueType) -> Vec<Aggregate> {
        let state = self.value(of);
        let all = [
            Aggregate::Count,
            Aggregate::Sum,
            Aggregate::Mean,
            Aggregate::Min,
            Aggregate::Max,
            Aggregate::First,
            Aggregate::Last,
            Aggregate::StdDev,
            Aggregate::Delta,
            Aggregate::Rate,
            Aggregate::Percentile(0.0),
            Aggregate::Percentile(0.37),
            Aggregate::Percentile(1.0),
            Aggregate::TimeWeightedMean(Hold::Step),
            Aggregate::TimeWeightedMean(Hold::Linear),
            Aggregate::DurationIn(state),
        ];
        // Rows of rollups tell only some of them, and those alone.
        let all = if self.below(2) == 0 { &all[..10] } else { &all[..] };
        let wanted = 1 + self.below(4);
        (0..wanted).map(|_| all[self.below(all.len())].clone()).collect()
    }

    fn options(&mut self, kind: &Kind, of: ValueType) -> AggregateOptions {
        let quality = [QualityFilter::Good, QualityFilter::Usable, QualityFilter::All]
            [self.below(6).saturating_sub(3)];
        let fills =
            [Fill::None, Fill::None, Fill::Null, Fill::Previous, Fill::Linear, Fill::Value(2.5)];
        let fill = fills[self.below(fills.len())];
        let aggregates = self.aggregates(of);
        AggregateOptions { fill, quality, ..AggregateOptions::new(aggregates, kind.windows()) }
    }

    /// A commit to look at, most often the last one.
    fn moment(&mut self) -> CommitSequence {
        let all = self.commits.len();
        let back = if self.below(3) == 0 { self.below(all) } else { 0 };
        self.commits[all - 1 - back]
    }

    fn snapshot_of(&mut self, tag: usize, at: CommitSequence) -> SeriesSnapshot {
        let tag = &self.tags[tag];
        let name = tag.name_at(at).unwrap().to_owned();
        let is_last = self.commits.last() == Some(&at);
        match self.below(2) {
            0 if is_last => self.db().series(&name).unwrap().snapshot(),
            _ => self.db().snapshot_at(at).series(&name).unwrap(),
        }
    }

    fn check_windows(&mut self) {
        let at = self.moment();
        let Some(tag) = self.any_at(at) else { return };
        let (kind, span, of) = (self.kind(), self.span(), self.tags[tag].of);
        let options = self.options(&kind, of);
        let points = self.points(tag, at);
        let told = format!("seed {} as of {at}, {span:?} by {kind:?}, {options:?}", self.seed);
        let snapshot = self.snapshot_of(tag, at);
        let bounds = spans_of(&span, &points);
        let parts = match bounds {
            Some(bounds) => kind.parts(bounds, WINDOWS_MAX),
            None => Some(Vec::new()),
        };
        let Some(parts) = parts else { return };
        let table = snapshot.aggregate(span.bounds(), &options).unwrap();
        let look = Look { points, of, options: &options, kind: &kind };
        let rows = look.naive().with_rows(parts);
        let starts: Vec<i64> = rows.iter().map(|part| part.start).collect();
        assert_eq!(table.starts, starts, "{told}, {of:?}: {:?}", look.points);
        look.compare(&table.columns, &rows, &told);
    }

    fn check_grid(&mut self) {
        let at = self.moment();
        let all: Vec<usize> =
            (0..self.tags.len()).filter(|tag| self.tags[*tag].is_asked_at(at)).collect();
        let Some(first) = all.first() else { return };
        let (kind, span) = (self.kind(), self.span());
        let options = self.options(&kind, self.tags[*first].of);
        let told = format!("seed {} as of {at}, {span:?} by {kind:?}, {options:?}", self.seed);
        let points: Vec<Vec<Told>> = all.iter().map(|tag| self.points(*tag, at)).collect();
        let common = points.iter().filter_map(|points| spans_of(&span, points));
        let common =
            common.reduce(|one, two| (one.0.min(two.0), one.1.max(two.1), one.2.max(two.2)));
        let names: Vec<String> =
            all.iter().map(|tag| self.tags[*tag].name_at(at).unwrap().to_owned()).collect();
        let parts = match common {
            Some(common) => kind.parts(common, WINDOWS_MAX),
            None => Some(Vec::new()),
        };
        let Some(parts) = parts else { return };
        let snapshot = self.db().snapshot_at(at);
        let grid = snapshot.aggregate_series(&names, span.bounds(), &options).unwrap();
        let looks: Vec<Look<'_>> = all
            .iter()
            .zip(points)
            .map(|(tag, points)| Look {
                points,
                of: self.tags[*tag].of,
                options: &options,
                kind: &kind,
            })
            .collect();
        let rows: Vec<Vec<Part>> =
            looks.iter().map(|look| look.naive().with_rows(parts.clone())).collect();
        let mut starts: Vec<i64> = rows.iter().flatten().map(|part| part.start).collect();
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(grid.starts, starts, "{told}");
        if starts.is_empty() {
            return;
        }
        for ((columns, look), rows) in grid.series.iter().zip(&looks).zip(&rows) {
            let is_own = |at: usize| rows.iter().any(|part| part.start == starts[at]);
            for column in columns {
                for at in (0..starts.len()).filter(|at| !is_own(*at)) {
                    assert_eq!(column.get(at), None, "{told}");
                }
            }
            let own: Vec<WindowColumn> = columns
                .iter()
                .map(|column| {
                    let mut own = WindowColumn {
                        values: crate::Values::new(column.values.value_type()),
                        nulls: Vec::new(),
                    };
                    for at in (0..starts.len()).filter(|at| is_own(*at)) {
                        own.values.append(&column.values, at..at + 1);
                        own.nulls.push(column.nulls[at]);
                    }
                    own
                })
                .collect();
            look.compare(&own, rows, &told);
        }
    }

    fn check_top(&mut self) {
        let at = self.moment();
        let span = self.span();
        if self.tags.iter().any(|tag| tag.name_at(at).is_some() && !tag.is_asked_at(at)) {
            return;
        }
        let all: Vec<usize> =
            (0..self.tags.len()).filter(|tag| self.tags[*tag].is_asked_at(at)).collect();
        let Some(first) = all.first() else { return };
        let aggregate = self.aggregates(self.tags[*first].of).remove(0);
        let top = TopOptions {
            count: 1 + self.below(4),
            least: self.below(2) == 0,
            quality: [QualityFilter::Good, QualityFilter::All][self.below(2)],
            ..TopOptions::new(aggregate.clone())
        };
        let found =
            self.db().snapshot_at(at).top_series(&SeriesFilter::default(), span.bounds(), &top);
        let found = found.unwrap();
        let told = format!("seed {} as of {at}, {span:?}, {top:?}", self.seed);
        let windows = crate::Windows::whole();
        let options = AggregateOptions {
            quality: top.quality,
            ..AggregateOptions::new(vec![aggregate.clone()], windows)
        };
        let mut expected: Vec<(f64, String, SeriesValue, f64)> = Vec::new();
        for tag in all {
            let (points, of) = (self.points(tag, at), self.tags[tag].of);
            let Some(bounds) = spans_of(&span, &points) else { continue };
            let naive = Naive { points: &points, options: &options, of };
            let part = Kind::Whole.parts(bounds, 1).unwrap()[0];
            let value = naive.value(part, &aggregate).filter(|_| naive.has_row(part));
            let Some(value) = value else { continue };
            if let Some(number) = number(&value) {
                let name = self.tags[tag].name_at(at).unwrap().to_owned();
                expected.push((number, name, value, naive.size(part) * 1e-8));
            }
        }
        assert_eq!(found.len(), expected.len().min(top.count), "{told}: {found:?}, {expected:?}");
        let mut before: Option<f64> = None;
        for (info, value) in &found {
            let own = expected.iter().find(|one| one.1 == info.name).unwrap();
            assert!(is_near(Some(value), Some(&own.2), own.3), "{told}: {value}, not {own:?}");
            let number = value.as_f64().unwrap();
            let in_order = before
                .is_none_or(|before| if top.least { before <= number } else { before >= number });
            assert!(in_order, "{told}: {found:?}");
            before = Some(number);
        }
        let is_shown = |name: &str| found.iter().any(|(info, _)| info.name == name);
        if let Some(last) = before {
            for (number, name, _, allowed) in expected.iter().filter(|one| !is_shown(&one.1)) {
                let is_less =
                    if top.least { *number >= last - allowed } else { *number <= last + allowed };
                assert!(is_less, "{told}: {name} with {number} is missing in {found:?}");
            }
        }
    }

    fn check_range(&mut self) {
        let at = self.moment();
        let Some(tag) = self.any_at(at) else { return };
        let span = self.span();
        let points: Vec<Point> = self
            .points(tag, at)
            .into_iter()
            .map(|(time, value, quality)| Point { time: Micros(time), value, quality })
            .collect();
        let (from, to) = (span.from.unwrap_or(i64::MIN), span.to.map_or(i64::MAX, |to| to - 1));
        let bounding = self.below(3) == 0;
        let reverse = self.below(2) == 0;
        let limit = (self.below(2) == 0).then(|| self.below(30));
        let mut first = points.partition_point(|point| point.time.0 < from);
        let mut end = points.partition_point(|point| point.time.0 <= to);
        if bounding && to >= from.saturating_sub(1) {
            first = first.saturating_sub(1);
            end = (end + 1).min(points.len());
        }
        let mut expected = points.get(first..end).unwrap_or_default().to_vec();
        if reverse {
            expected.reverse();
        }
        let told = format!(
            "seed {} as of {at}, {span:?}, {limit:?}, reverse {reverse}, bounding {bounding}",
            self.seed
        );
        let snapshot = self.snapshot_of(tag, at);
        let options = RangeOptions { limit, reverse, bounding };
        let mut range = snapshot.range_with(span.bounds(), &options).unwrap();
        let read = |range: &mut crate::SeriesRange| -> Vec<Point> {
            range.by_ref().flat_map(|some| some.unwrap().iter().collect::<Vec<_>>()).collect()
        };
        let mut found = read(&mut range);
        let mut cursor = range.cursor();
        // Pages of so many, until there is nothing.
        while let (Some(limit), Some(rest)) = (limit.filter(|limit| *limit > 0), cursor) {
            let rest: SeriesCursor = rest.to_string().parse().unwrap();
            let mut page = snapshot.resume(rest, Some(limit)).unwrap();
            let some = read(&mut page);
            cursor = page.cursor();
            assert!(some.len() <= limit && (cursor.is_none() || some.len() == limit), "{told}");
            found.extend(some);
        }
        if limit == Some(0) {
            expected.clear();
        }
        assert_eq!(found, expected, "{told}");
        assert_eq!(snapshot.latest().unwrap(), points.last().cloned(), "{told}");
        self.check_value(&snapshot, &points);
    }

    fn check_value(&mut self, snapshot: &SeriesSnapshot, points: &[Point]) {
        let at = match points.len() {
            0 => self.time(),
            all if self.below(2) == 0 => points[self.below(all)].time.0,
            _ => self.time(),
        };
        let before = points.iter().rfind(|point| point.time.0 <= at);
        let after = points.iter().find(|point| point.time.0 > at);
        for how in [Interpolation::Stored, Interpolation::Step, Interpolation::Linear] {
            let found = snapshot.value_at(Micros(at), how).unwrap();
            let is_there = before.is_some_and(|before| before.time.0 == at);
            let expected = match (how, before, after) {
                (Interpolation::Stored, ..) => before.filter(|_| is_there).cloned(),
                (Interpolation::Linear, Some(before), Some(after)) if !is_there => {
                    let spot = |point: &Point| Spot {
                        start: point.time.0,
                        value: point.value.clone(),
                        allowed: 0.0,
                    };
                    let value = match on_line((&spot(before), &spot(after)), at) {
                        Filled::By(value, _) => value,
                        _ => before.value.clone(),
                    };
                    let quality = before.quality.worse(after.quality);
                    let is_text = matches!(value, SeriesValue::Bool(_) | SeriesValue::String(_));
                    let quality = if is_text { before.quality } else { quality };
                    Some(Point { time: Micros(at), value, quality })
                }
                (_, before, _) => before.map(|one| Point { time: Micros(at), ..one.clone() }),
            };
            let told = format!("seed {} at {at}, {how:?}", self.seed);
            match (&found, &expected) {
                (Some(one), Some(two)) => {
                    assert_eq!((one.time, one.quality), (two.time, two.quality), "{told}");
                    let size = two.value.as_f64().map_or(0.0, f64::abs).max(1e4);
                    let is_near = is_near(Some(&one.value), Some(&two.value), size * 1e-7);
                    assert!(is_near, "{told}: {found:?}, not {expected:?}");
                }
                _ => assert_eq!(found, expected, "{told}"),
            }
        }
    }

    fn any_at(&mut self, at: CommitSequence) -> Option<usize> {
        let all: Vec<usize> =
            (0..self.tags.len()).filter(|tag| self.tags[*tag].is_asked_at(at)).collect();
        (!all.is_empty()).then(|| all[self.below(all.len())])
    }

    fn check_names(&mut self) {
        let at = self.moment();
        let found = self.db().snapshot_at(at).find_series(&SeriesFilter::default()).unwrap();
        let found: Vec<String> = found.into_iter().map(|info| info.name).collect();
        let mut expected: Vec<String> =
            self.tags.iter().filter_map(|tag| tag.name_at(at)).map(str::to_owned).collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "seed {} as of {at}", self.seed);
    }

    fn check(&mut self) {
        if self.commits.is_empty() {
            return;
        }
        self.check_names();
        self.check_windows();
        self.check_grid();
        self.check_top();
        self.check_range();
    }
}

fn play(seed: u64) {
    let mut plant = Plant::new(seed);
    for _ in 0..30 {
        plant.step();
        plant.check();
    }
    let report = plant.db().check().unwrap();
    assert!(report.is_clean(), "seed {seed}: {:?}", report.findings);
}

#[test]
fn what_is_asked_of_several_series_is_what_a_look_at_each_point_gives() {
    seeds(0..60).for_each(play);
}

/// These seeds, or those that `DURAMEN_SEEDS=from..to` says.
fn seeds(few: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let Ok(told) = std::env::var("DURAMEN_SEEDS") else { return few };
    let (from, to) = told.split_once("..").unwrap();
    from.parse().unwrap()..to.parse().unwrap()
}
