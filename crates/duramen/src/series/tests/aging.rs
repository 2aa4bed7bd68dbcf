//! What is written while its points are kept is told when they are not kept any more, whenever the
//! checkpoint comes that writes it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::rollups::{MINUTE, Seconds, an_hour, compact, counts, every, seconds, tiers};
use crate::io::MemoryDevice;
use crate::{
    Aggregate, AggregateOptions, CommitOptions, Database, Micros, Options, Points, Quality, Rollup,
    Series, SeriesValue, ValueType, WindowTable, Windows,
};

const SECOND: i64 = 1_000_000;
/// For how many seconds points are kept, and how many the widest windows have.
const KEPT: i64 = 40;
const WIDEST: i64 = 20;

/// What came late, took the place of something or was deleted was so until its window was older
/// than points are kept; then it was as before, and the checkpoint made that last.
#[test]
fn what_was_written_in_time_stays_when_the_checkpoint_comes_later() {
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)]));
    let how = CommitOptions::default();
    let sums = AggregateOptions::new(vec![Aggregate::Sum], Windows::parse("1m", "UTC").unwrap());
    let sum_of = |minute: usize| series.aggregate(.., &sums).unwrap().columns[0].get(minute);
    clock.set(3_600);
    compact(&db);
    let before = sum_of(57).and_then(|sum| sum.as_f64()).unwrap();
    series.append(Micros(56 * 60 * SECOND + 1), 1.0, &how).unwrap();
    series.append(Micros(57 * 60 * SECOND), 1_000_000.0, &how).unwrap();
    series.delete(Micros(58 * 60 * SECOND)..Micros(58 * 60 * SECOND + 5 * SECOND), &how).unwrap();
    series.append_points(&seconds(3_600..3_610), &how).unwrap();
    let all = [every(1, 0..56), vec![(56, 61), (57, 60), (58, 55), (59, 60), (60, 10)]].concat();
    let sum = sum_of(57);
    assert_ne!(sum, Some(SeriesValue::F64(before)));
    for later in [3_600, 4_140, 4_200, 36_000] {
        clock.set(later);
        assert_eq!((counts(&series, "1m"), sum_of(57)), (all.clone(), sum.clone()), "{later}");
    }
    for _ in 0..2 {
        compact(&db);
        assert_eq!((counts(&series, "1m"), sum_of(57)), (all.clone(), sum.clone()));
    }
    assert_eq!(series.range(..).unwrap().read().unwrap().len(), 0);
    assert!(db.check().unwrap().is_clean());
}

/// The points had gone by then, though no checkpoint had made their rows anew.
#[test]
fn what_was_written_in_time_stays_when_what_is_kept_changes_later() {
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)]));
    clock.set(3_600);
    compact(&db);
    series.append(Micros(56 * 60 * SECOND + 1), 1.0, &CommitOptions::default()).unwrap();
    clock.set(36_000);
    super::rollups::change(&db, &tiers(Some(20 * MINUTE), &[Rollup::new(MINUTE)]));
    let all = [every(1, 0..56), vec![(56, 61)], every(1, 57..60)].concat();
    assert_eq!(counts(&series, "1m"), all);
}

#[derive(Debug, Clone)]
enum Step {
    /// Points at shares of what is kept, with values.
    Append(Vec<(u8, i32)>),
    /// A span at a share of what is kept.
    Delete(u8, i64),
    Wait(i64),
    Checkpoint,
    /// Of segments, while there is something that no checkpoint has written.
    Merge,
    Compact,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let points = prop::collection::vec((any::<u8>(), -50_i32..50), 1..8);
    prop_oneof![
        8 => points.prop_map(Step::Append),
        3 => (any::<u8>(), 1_i64..30).prop_map(|(at, len)| Step::Delete(at, len)),
        4 => (1_i64..25).prop_map(Step::Wait),
        1 => (30_i64..300).prop_map(Step::Wait),
        2 => Just(Step::Checkpoint),
        2 => Just(Step::Merge),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ]
}

/// A series, and all that was written to it while it was kept, in half seconds.
struct Aging {
    device: Arc<MemoryDevice>,
    clock: Arc<Seconds>,
    db: Option<Database>,
    now: i64,
    points: BTreeMap<i64, f64>,
}

impl Aging {
    fn new(widths: &[i64]) -> Self {
        let (device, clock) = (Arc::new(MemoryDevice::new()), Arc::new(Seconds::default()));
        let points = BTreeMap::new();
        let mut new = Self { device, clock, db: None, now: 10_000, points };
        new.clock.set(new.now);
        new.reopen();
        let width = |width: &i64| Rollup::new(Duration::from_secs(width.unsigned_abs()));
        let rollups: Vec<Rollup> = widths.iter().map(width).collect();
        let keep = Duration::from_secs(KEPT.unsigned_abs());
        new.db().create_series("a", &tiers(Some(keep), &rollups)).unwrap();
        new
    }

    fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn series(&self) -> Series {
        self.db().series("a").unwrap()
    }

    fn reopen(&mut self) {
        self.db = None;
        let clock = self.clock.clone();
        let options = Options { background: false, clock, ..Options::default() };
        self.db = Some(Database::open_device(self.device.clone(), options).unwrap());
    }

    /// A time that is kept, in half seconds.
    fn kept(&self, share: u8) -> i64 {
        let from = (self.now - KEPT).div_euclid(WIDEST) * WIDEST;
        2 * from + i64::from(share) * 2 * (self.now - from) / 255
    }

    fn play(&mut self, step: &Step) {
        let how = CommitOptions::default();
        match step {
            Step::Append(given) => {
                let mut points = Points::new(ValueType::F64);
                for &(share, number) in given {
                    let (half, value) = (self.kept(share), f64::from(number));
                    points.push(Micros(half * SECOND / 2), value, Quality::GOOD).unwrap();
                    self.points.insert(half, value);
                }
                let done = self.series().append_points(&points, &how).unwrap();
                assert_eq!(done.unkept, []);
            }
            Step::Delete(share, len) => {
                let from = self.kept(*share);
                let span = Micros(from * SECOND / 2)..Micros((from + len) * SECOND / 2);
                self.series().delete(span, &how).unwrap();
                self.points.retain(|half, _| !(from..from + len).contains(half));
            }
            Step::Wait(seconds) => {
                self.now += seconds;
                self.clock.set(self.now);
            }
            Step::Checkpoint => self.db().checkpoint().unwrap(),
            Step::Merge => {
                self.db().engine.compact_all(&mut |_, _| ControlFlow::Continue(())).unwrap();
            }
            Step::Compact => self.db().compact(&mut |_, _| ControlFlow::Continue(())).unwrap(),
            Step::Reopen => self.reopen(),
        }
    }

    /// What windows of so many seconds come to, as the points say it: how many there are, their
    /// sum, the first, the last, the least and the greatest.
    fn expected(&self, width: i64, from: i64) -> Vec<(i64, Vec<f64>)> {
        let mut windows: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (half, value) in self.points.range(2 * from..) {
            let start = half.div_euclid(2 * width) * width;
            windows.entry(start * SECOND).or_default().push(*value);
        }
        let told = |values: Vec<f64>| {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let count = f64::from(u32::try_from(values.len()).unwrap());
            let ends = (values[0], values[values.len() - 1]);
            vec![count, values.iter().sum(), ends.0, ends.1, least, greatest]
        };
        windows.into_iter().map(|(start, values)| (start, told(values))).collect()
    }

    fn compare(&self, width: i64, from: i64) {
        let windows = Windows::of_width(Micros(width * SECOND)).unwrap();
        let asked = vec![
            Aggregate::Count,
            Aggregate::Sum,
            Aggregate::First,
            Aggregate::Last,
            Aggregate::Min,
            Aggregate::Max,
        ];
        let options = AggregateOptions::new(asked, windows);
        let series = self.series();
        let table = match from {
            0 => series.aggregate(.., &options).unwrap(),
            from => series.aggregate(Micros(from * SECOND).., &options).unwrap(),
        };
        assert_eq!(rows(&table), self.expected(width, from), "at {} by {width}", self.now);
    }
}

fn rows(table: &WindowTable) -> Vec<(i64, Vec<f64>)> {
    let number = |value: Option<SeriesValue>| match value {
        Some(SeriesValue::I64(count)) => f64::from(i32::try_from(count).unwrap()),
        other => other.and_then(|value| value.as_f64()).unwrap(),
    };
    let row = |at| table.columns.iter().map(|column| number(column.get(at))).collect();
    table.starts.iter().enumerate().map(|(at, start)| (*start, row(at))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn windows_are_what_was_written_in_time_comes_to(
        widths in prop::sample::subsequence(vec![5, 10], 0..=2),
        steps in prop::collection::vec(step(), 1..40),
        from in 9_960_i64..10_200,
    ) {
        let widths = [widths, vec![WIDEST]].concat();
        let mut aging = Aging::new(&widths);
        for step in &steps {
            aging.play(step);
            aging.compare(widths[0], 0);
            aging.compare(WIDEST, 0);
            aging.compare(WIDEST, from / WIDEST * WIDEST);
        }
        let report = aging.db().check().unwrap();
        prop_assert!(report.is_clean(), "{:?}", report.findings);
    }
}
