//! What blocks tell without their points, in windows and in sizes, is what the points tell,
//! wherever they are by then and whatever lies over them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use proptest::prelude::*;

use super::Reopened;
use crate::tree::cell_key::{self, CellKey};
use crate::{
    Aggregate, AggregateOptions, CommitOptions, CommitSequence, Database, Micros, Points, Quality,
    Rollup, Series, SeriesDefinition, SeriesStats, SeriesValue, ValueType, Windows,
};

const SPAN: i64 = 3_000;

#[derive(Debug, Clone)]
enum Step {
    /// So many points from a time on, at a distance.
    Append(i64, i64, i64),
    Delete(i64, i64),
    Checkpoint,
    Compact,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..SPAN, 1_i64..300, 1_i64..4).prop_map(|(at, len, by)| Step::Append(at, len, by)),
        2 => (0..SPAN, 1_i64..4).prop_map(|(at, len)| Step::Append(at, len, 1)),
        1 => (0..SPAN, 1_i64..200).prop_map(|(at, len)| Step::Delete(at, at + len)),
        5 => Just(Step::Checkpoint),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ]
}

/// A series, and all that was ever written to it.
struct Under {
    db: Reopened,
    points: Vec<(i64, CommitSequence)>,
    deletes: Vec<(CommitSequence, i64, i64)>,
    commits: Vec<CommitSequence>,
}

impl Under {
    fn new() -> Self {
        let (points, deletes, commits) = (Vec::new(), Vec::new(), Vec::new());
        let under = Self { db: Reopened::new(), points, deletes, commits };
        under.db.create_series("s", &SeriesDefinition::new(ValueType::F64)).unwrap();
        under
    }

    fn series(&self) -> Series {
        self.db.series("s").unwrap()
    }

    fn play(&mut self, step: &Step) {
        let how = CommitOptions::default();
        match *step {
            Step::Append(at, len, by) => {
                let mut points = Points::new(ValueType::F64);
                for time in (0..len).map(|index| at + index * by) {
                    let quality = if time % 13 == 0 { Quality::BAD } else { Quality::GOOD };
                    // Whole numbers, whose sums are the same in any order.
                    let value = f64::from(i32::try_from(time % 101 - 50).unwrap());
                    points.push(Micros(time), value, quality).unwrap();
                }
                let done = self.series().append_points(&points, &how).unwrap().sequence;
                self.points.extend(points.times().iter().map(|time| (*time, done)));
                self.commits.push(done);
            }
            Step::Delete(from, until) => {
                let done = self.series().delete(Micros(from)..Micros(until), &how).unwrap();
                self.deletes.push((done.sequence, from, until));
                self.commits.push(done.sequence);
            }
            Step::Checkpoint => self.db.checkpoint().unwrap(),
            Step::Compact => self.db.compact(),
            Step::Reopen => self.db.reopen(),
        }
    }

    /// Late, replaced and deleted points.
    fn counts(&self) -> (u64, u64, u64) {
        let all = self.points.iter();
        let has = |is_so: &dyn Fn(&(i64, CommitSequence)) -> bool| self.points.iter().any(is_so);
        let count = |is_so: &dyn Fn(i64, CommitSequence) -> bool| {
            all.clone().filter(|(time, sequence)| is_so(*time, *sequence)).count() as u64
        };
        let late = count(&|time, sequence| has(&|other| other.0 > time && other.1 < sequence));
        let replaced = count(&|time, sequence| has(&|other| other.0 == time && other.1 > sequence));
        let deleted = count(&|time, sequence| {
            let is_over = |&(at, from, until): &(CommitSequence, i64, i64)| {
                at > sequence && (from..until).contains(&time)
            };
            self.deletes.iter().any(is_over)
        });
        (late, replaced, deleted)
    }

    fn check_stats(&self) {
        let stats = self.series().stats().unwrap();
        let SeriesStats { points, late_points, replaced_points, deleted_points, .. } = stats;
        assert_eq!(points, self.points.len() as u64);
        assert_eq!((late_points, replaced_points, deleted_points), self.counts());
    }

    fn check_windows(&self, at: CommitSequence, (from, until): (i64, i64), width: i64) {
        let span = Micros(from)..Micros(until);
        let snapshot = self.series().at(at);
        let mut wanted: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for point in snapshot.range(span.clone()).unwrap().read().unwrap().iter() {
            if point.quality.is_good() {
                let window = wanted.entry(point.time.0.div_euclid(width) * width).or_default();
                window.push(point.value.as_f64().unwrap());
            }
        }
        let asked =
            [Aggregate::Count, Aggregate::Sum, Aggregate::Min, Aggregate::First, Aggregate::Last];
        let windows = Windows::of_width(Micros(width)).unwrap();
        let options = AggregateOptions::new(asked.to_vec(), windows);
        let table = snapshot.aggregate(span, &options).unwrap();
        assert_eq!(table.starts, wanted.keys().copied().collect::<Vec<_>>());
        for (row, values) in wanted.values().enumerate() {
            let found: Vec<_> =
                table.columns.iter().map(|column| column.get(row).unwrap().as_f64()).collect();
            let count = f64::from(u32::try_from(values.len()).unwrap());
            let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
            let (sum, end) = (values.iter().sum(), values[values.len() - 1]);
            assert_eq!(found, [count, sum, lowest, values[0], end].map(Some));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn blocks_tell_what_their_points_tell(
        steps in prop::collection::vec(step(), 1..24),
        span in (0..SPAN, 1..SPAN),
        as_of in any::<prop::sample::Index>(),
    ) {
        let mut under = Under::new();
        for step in &steps {
            under.play(step);
        }
        under.check_stats();
        let now = under.db.snapshot().sequence();
        let then = if under.commits.is_empty() { now } else { *as_of.get(&under.commits) };
        for at in [now, then] {
            for width in [40, 700, 100_000] {
                under.check_windows(at, (0, 2 * SPAN), width);
                under.check_windows(at, (span.0, span.0 + span.1), width);
            }
        }
    }
}

/// They were in memory together: two texts of up to 64 KiB of each of 32,768 windows.
#[test]
fn rows_of_texts_are_written_some_hundreds_together() {
    let db = Database::memory().unwrap();
    let width = Duration::from_secs(1);
    let how = CommitOptions::default();
    let slices = |of: ValueType| {
        let rollups = vec![Rollup::new(width)];
        let name = of.to_string();
        let definition = SeriesDefinition { rollups, ..SeriesDefinition::new(of) };
        let series = db.create_series(&name, &definition).unwrap();
        let mut points = Points::new(of);
        for second in -300_i64..600 {
            for part in 0..3 {
                let value = match of {
                    ValueType::String => SeriesValue::from(format!("{second} {part}")),
                    _ => SeriesValue::from(second * 3 + part),
                };
                let time = Micros(second * 1_000_000 + part);
                points.push(time, value, Quality::GOOD).unwrap();
            }
        }
        series.append_points(&points, &how).unwrap();
        db.checkpoint().unwrap();
        let what = vec![Aggregate::First, Aggregate::Last, Aggregate::Count];
        let windows = Windows::of_width(Micros(1_000_000)).unwrap();
        let table = series.aggregate(.., &AggregateOptions::new(what, windows)).unwrap();
        assert_eq!(table.starts.len(), 900);
        for (at, second) in (-300_i64..600).enumerate() {
            let [first, last] = match of {
                ValueType::String => [0, 2].map(|part| format!("{second} {part}").into()),
                _ => [0, 2].map(|part| SeriesValue::from(second * 3 + part)),
            };
            let row: Vec<_> = table.columns.iter().map(|column| column.get(at)).collect();
            assert_eq!(row, [Some(first), Some(last), Some(SeriesValue::I64(3))]);
        }
        let cells = cell_key::all_rollups(series.info().number);
        let live = db.engine.view().store.live();
        let keys = live.scan(&cells).unwrap().map(|cell| cell_key::parse(&cell.unwrap().0));
        let mut slices: Vec<i64> = keys
            .map(|key| match key {
                Some((_, CellKey::Rollup(place, _))) => place.slice,
                other => panic!("{other:?}"),
            })
            .collect();
        slices.sort_unstable();
        slices.dedup();
        slices
    };
    assert_eq!(slices(ValueType::I64), [-1, 0]);
    assert_eq!(slices(ValueType::String), [-2, -1, 0, 1, 2]);
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(db.check().unwrap().is_clean());
}
