//! Rollups and retention: what windows come to is what their points come to, whatever was written
//! when, and rows stay when points go.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use proptest::prelude::*;

use super::Reopened;
use crate::Clock;
use crate::io::MemoryDevice;
use crate::series::block::tests::Numbers64;
use crate::series::tags;
use crate::tree::cell_key;
use crate::{
    Aggregate, AggregateOptions, CommitOptions, CommitSequence, Database, Micros, Options, Points,
    Quality, Rollup, Series, SeriesDefinition, SeriesSnapshot, SeriesStats, SeriesValue, ValueType,
    Windows,
};

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<(i64, i64)>),
    Delete(i64, i64),
    Checkpoint,
    Compact,
    Reopen,
    /// Defines which rollups there are, by bits.
    Define(usize),
}

const WIDTHS: [u64; 3] = [5, 10, 40];

fn step() -> impl Strategy<Value = Step> {
    let time = prop_oneof![30 => 0_i64..400, 1 => Just(i64::MAX), 1 => Just(i64::MIN)];
    let points = prop::collection::vec((time, -50_i64..50), 1..30);
    prop_oneof![
        8 => points.prop_map(Step::Append),
        2 => (0_i64..400, 0_i64..90).prop_map(|(from, len)| Step::Delete(from, from + len)),
        5 => Just(Step::Checkpoint),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
        1 => (0_usize..8).prop_map(Step::Define),
    ]
}

fn value(value_type: ValueType, number: i64) -> SeriesValue {
    let float = f64::from(i32::try_from(number).unwrap());
    match value_type {
        ValueType::F64 if number % 17 == 0 => SeriesValue::F64(f64::NAN),
        ValueType::F64 => SeriesValue::F64(float),
        ValueType::F32 => SeriesValue::F32(f32::from(i16::try_from(number).unwrap())),
        ValueType::I64 => SeriesValue::I64(number),
        ValueType::Bool => SeriesValue::Bool(number % 2 == 0),
        ValueType::String => SeriesValue::String(format!("{number:x}")),
    }
}

fn definition(value_type: ValueType, widths: usize) -> SeriesDefinition {
    let is_in = |at: &usize| widths >> at & 1 == 1;
    let rollup = |at: usize| Rollup::new(Duration::from_micros(WIDTHS[at]));
    let rollups = (0..WIDTHS.len()).filter(is_in).map(rollup).collect();
    SeriesDefinition { rollups, ..SeriesDefinition::new(value_type) }
}

/// Two series that are told the same: one with rollups and one without.
struct Twins {
    db: Reopened,
    value_type: ValueType,
    sequences: Vec<CommitSequence>,
}

impl Twins {
    fn new(value_type: ValueType, widths: usize) -> Self {
        let twins = Self { db: Reopened::new(), value_type, sequences: Vec::new() };
        twins.db.create_series("rolled", &definition(value_type, widths)).unwrap();
        twins.db.create_series("plain", &SeriesDefinition::new(value_type)).unwrap();
        twins
    }

    fn both(&self) -> [Series; 2] {
        ["rolled", "plain"].map(|name| self.db.series(name).unwrap())
    }

    fn play(&mut self, step: &Step) {
        match step {
            Step::Append(given) => {
                let mut points = Points::new(self.value_type);
                for &(time, number) in given {
                    let quality = if number % 7 == 0 { Quality::BAD } else { Quality::GOOD };
                    points.push(Micros(time), value(self.value_type, number), quality).unwrap();
                }
                let mut transaction = self.db.transaction();
                for name in ["rolled", "plain"] {
                    transaction.append_points(name, &points).unwrap();
                }
                let done = transaction.commit(&CommitOptions::default()).unwrap();
                self.sequences.push(done.sequence);
            }
            Step::Delete(from, until) => {
                let mut transaction = self.db.transaction();
                for name in ["rolled", "plain"] {
                    transaction.delete_points(name, Micros(*from)..Micros(*until)).unwrap();
                }
                let done = transaction.commit(&CommitOptions::default()).unwrap();
                self.sequences.push(done.sequence);
            }
            Step::Checkpoint => self.db.checkpoint().unwrap(),
            Step::Compact => self.db.compact(),
            Step::Reopen => self.db.reopen(),
            Step::Define(widths) => {
                let definition = definition(self.value_type, *widths);
                let mut transaction = self.db.transaction();
                transaction.change_series("rolled", &definition).unwrap();
                transaction.commit(&CommitOptions::default()).unwrap();
            }
        }
    }

    fn compare(&self, at: CommitSequence, (from, until): (i64, i64), width: i64) {
        let windows = Windows::of_width(Micros(width)).unwrap();
        let mut aggregates = vec![Aggregate::Count, Aggregate::First, Aggregate::Last];
        if self.value_type != ValueType::String {
            aggregates.extend([Aggregate::Sum, Aggregate::Mean, Aggregate::Min, Aggregate::Max]);
        }
        let options = AggregateOptions::new(aggregates, windows.clone());
        let deviation = AggregateOptions::new(vec![Aggregate::StdDev], windows);
        let span = Micros(from)..Micros(until);
        let [rolled, plain] = self.both().map(|series| {
            let snapshot = series.at(at);
            let deviation = snapshot.aggregate(span.clone(), &deviation).unwrap();
            (snapshot.aggregate(span.clone(), &options).unwrap(), deviation)
        });
        assert_eq!(rolled.0, plain.0, "as of {at}, {from}..{until} by {width}");
        assert_eq!(rolled.1.starts, plain.1.starts);
        for index in 0..plain.1.starts.len() {
            let [one, two] = [&rolled, &plain].map(|table| table.1.columns[0].get(index));
            match (one, two) {
                (Some(SeriesValue::F64(one)), Some(SeriesValue::F64(two))) => {
                    assert!((one - two).abs() < 1e-9, "{one} and {two}");
                }
                (one, two) => assert_eq!(one, two),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn windows_out_of_rollups_are_those_of_points(
        type_number in 0_usize..5,
        widths in 0_usize..8,
        steps in prop::collection::vec(step(), 1..25),
        asked in prop::collection::vec(
            (any::<prop::sample::Index>(), 0_i64..400, 0_i64..400, 1_i64..9),
            1..6,
        ),
    ) {
        let mut twins = Twins::new(ValueType::ALL[type_number], widths);
        for step in &steps {
            twins.play(step);
            if let Some(&last) = twins.sequences.last() {
                twins.compare(last, (0, 400), 20);
            }
        }
        for (at, from, len, width) in asked {
            let sequence = match twins.sequences.as_slice() {
                [] => CommitSequence(u64::MAX),
                all => *at.get(all),
            };
            twins.compare(sequence, (from, from + len), width * 5);
        }
        let report = twins.db.check().unwrap();
        prop_assert!(report.is_clean(), "{:?}", report.findings);
    }
}

/// A clock that is set.
#[derive(Debug, Default)]
pub(super) struct Seconds(AtomicI64);

impl Seconds {
    pub(super) fn set(&self, seconds: i64) {
        self.0.store(seconds, Ordering::Relaxed);
    }
}

impl Clock for Seconds {
    fn now(&self) -> Micros {
        Micros(self.0.load(Ordering::Relaxed) * 1_000_000)
    }
}

pub(super) fn compact(db: &Database) {
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
}

pub(super) const MINUTE: Duration = Duration::from_mins(1);

/// What was measured in a second.
fn measured(second: i32) -> f64 {
    f64::from(second.wrapping_mul(7_919) % 10_007)
}

/// A value a second for so many seconds.
pub(super) fn seconds(seconds: std::ops::Range<i32>) -> Points {
    let mut points = Points::new(ValueType::F64);
    for at in seconds {
        points.push(Micros(i64::from(at) * 1_000_000), measured(at), Quality::GOOD).unwrap();
    }
    points
}

#[test]
fn points_go_with_time_and_rows_stay_longer() {
    let (clock, device) = (Arc::new(Seconds::default()), Arc::new(MemoryDevice::new()));
    let options = || Options { background: false, clock: clock.clone(), ..Options::default() };
    let db = Database::open_device(device.clone(), options()).unwrap();
    let definition = SeriesDefinition {
        keep: Some(10 * MINUTE),
        rollups: vec![Rollup::new(MINUTE).keeping(30 * MINUTE), Rollup::new(5 * MINUTE)],
        ..SeriesDefinition::new(ValueType::F64)
    };
    let series = db.create_series("a", &definition).unwrap();
    series.append_points(&seconds(0..3_600), &CommitOptions::default()).unwrap();
    let bytes = |db: &Database| db.stats().unwrap().segment_bytes;
    compact(&db);
    let before = bytes(&db);
    let counts = |db: &Database, minutes: &str| {
        let windows = Windows::parse(minutes, "UTC").unwrap();
        let options = AggregateOptions::new(vec![Aggregate::Count, Aggregate::Sum], windows);
        let table = db.series("a").unwrap().snapshot().aggregate(.., &options).unwrap();
        (table.starts.iter().map(|start| start / 60_000_000).collect::<Vec<_>>(), table)
    };
    let (five, one) = (counts(&db, "5m"), counts(&db, "1m"));
    assert_eq!((five.0.len(), one.0.len()), (12, 60));

    clock.set(3_600);
    // Nothing is there to be seen any more, though nothing was dropped yet.
    assert_eq!(series.range(..).unwrap().read().unwrap().times()[0], 3_000_000_000);
    assert_eq!(counts(&db, "5m"), five);
    assert_eq!(counts(&db, "1m").0, (30..60).collect::<Vec<_>>());
    compact(&db);
    assert!(bytes(&db) < before, "{} of {before} bytes", bytes(&db));
    assert_eq!(db.series("a").unwrap().stats().unwrap().points, 600);
    assert_eq!(counts(&db, "5m"), five);

    // Points that come later than they are kept change nothing.
    series.append_points(&seconds(10..20), &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    assert_eq!(counts(&db, "5m"), five);
    drop((series, db));
    let db = Database::open_device(device, options()).unwrap();
    clock.set(36_000);
    compact(&db);
    assert_eq!(db.series("a").unwrap().stats().unwrap().points, 0);
    assert_eq!(counts(&db, "5m"), five);
    assert_eq!(counts(&db, "1m").0, Vec::<i64>::new());
    assert!(db.check().unwrap().is_clean());
}

/// They were told by points alone once, and were missing where these had gone.
#[test]
fn the_ends_of_a_span_are_told_by_a_narrower_rollup() {
    let clock = Arc::new(Seconds::default());
    let options = Options { background: false, clock: clock.clone(), ..Options::default() };
    let db = Database::open_device(Arc::new(MemoryDevice::new()), options).unwrap();
    let definition = SeriesDefinition {
        keep: Some(20 * MINUTE),
        rollups: [1, 5, 15].map(|minutes| Rollup::new(minutes * MINUTE)).into(),
        ..SeriesDefinition::new(ValueType::F64)
    };
    let series = db.create_series("a", &definition).unwrap();
    series.append_points(&seconds(0..7_200), &CommitOptions::default()).unwrap();
    clock.set(7_200);
    compact(&db);
    let windows = Windows::parse("15m", "UTC").unwrap();
    let counts = AggregateOptions::new(vec![Aggregate::Count], windows);
    let minute = |minute: i64| Micros(minute * 60_000_000);
    let table = series.snapshot().aggregate(minute(22)..minute(88), &counts).unwrap();
    let minutes: Vec<_> = (0..table.starts.len()).map(|at| table.columns[0].get(at)).collect();
    let expected = [8, 15, 15, 15, 13].map(|minutes: i64| Some(SeriesValue::I64(60 * minutes)));
    assert_eq!(minutes, expected);
}

#[test]
fn nothing_goes_before_every_rollup_has_it() {
    let clock = Arc::new(Seconds::default());
    let options = Options { background: false, clock: clock.clone(), ..Options::default() };
    let db = Database::open_device(Arc::new(MemoryDevice::new()), options).unwrap();
    let series = db.create_series("a", &SeriesDefinition::new(ValueType::F64)).unwrap();
    series.append_points(&seconds(0..3_600), &CommitOptions::default()).unwrap();
    db.checkpoint().unwrap();
    clock.set(36_000);
    let tiers = SeriesDefinition {
        keep: Some(10 * MINUTE),
        rollups: vec![Rollup::new(MINUTE)],
        ..SeriesDefinition::new(ValueType::F64)
    };
    let mut transaction = db.transaction();
    transaction.change_series("a", &tiers).unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    for _ in 0..2 {
        compact(&db);
    }
    assert_eq!(db.series("a").unwrap().stats().unwrap().points, 0);
    let minutes = Windows::parse("1m", "UTC").unwrap();
    let sums = AggregateOptions::new(vec![Aggregate::Sum], minutes);
    let table = series.snapshot().aggregate(.., &sums).unwrap();
    assert_eq!(table.starts.len(), 60);
    let sum: f64 = (60..120).map(measured).sum();
    assert_eq!(table.columns[0].get(1), Some(SeriesValue::F64(sum)));
}

/// A database with a series "a" of a value a second for an hour, and the clock.
pub(super) fn an_hour(definition: &SeriesDefinition) -> (Database, Series, Arc<Seconds>) {
    let clock = Arc::new(Seconds::default());
    let options = Options { background: false, clock: clock.clone(), ..Options::default() };
    let db = Database::open_device(Arc::new(MemoryDevice::new()), options).unwrap();
    let series = db.create_series("a", definition).unwrap();
    series.append_points(&seconds(0..3_600), &CommitOptions::default()).unwrap();
    compact(&db);
    (db, series, clock)
}

pub(super) fn tiers(keep: Option<Duration>, rollups: &[Rollup]) -> SeriesDefinition {
    let rollups = rollups.to_vec();
    SeriesDefinition { keep, rollups, ..SeriesDefinition::new(ValueType::F64) }
}

/// Has the series keep something else, and everything be written that follows from it.
pub(super) fn change(db: &Database, definition: &SeriesDefinition) {
    let mut transaction = db.transaction();
    transaction.change_series("a", definition).unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    for _ in 0..2 {
        compact(db);
    }
}

/// How many points the windows have that begin at these minutes.
pub(super) fn counts(series: &Series, windows: &str) -> Vec<(i64, i64)> {
    counts_of(&series.snapshot(), windows)
}

pub(super) fn counts_of(snapshot: &SeriesSnapshot, windows: &str) -> Vec<(i64, i64)> {
    let windows = Windows::parse(windows, "UTC").unwrap();
    let options = AggregateOptions::new(vec![Aggregate::Count], windows);
    let table = snapshot.aggregate(.., &options).unwrap();
    let count = |at| match table.columns[0].get(at) {
        Some(SeriesValue::I64(count)) => count,
        other => panic!("{other:?} is no count"),
    };
    let minutes = table.starts.iter().map(|start| start / 60_000_000);
    minutes.enumerate().map(|(at, minute)| (minute, count(at))).collect()
}

pub(super) fn every(minutes: i64, among: std::ops::Range<i64>) -> Vec<(i64, i64)> {
    among.filter(|at| at % minutes == 0).map(|at| (at, 60 * minutes)).collect()
}

/// Its rows had gone, and it was taken to have them.
#[test]
fn a_rollup_that_is_kept_longer_is_made_of_the_points_that_are_there() {
    let (db, series, clock) = an_hour(&tiers(None, &[Rollup::new(MINUTE).keeping(10 * MINUTE)]));
    clock.set(36_000);
    compact(&db);
    change(&db, &tiers(None, &[Rollup::new(MINUTE).keeping(595 * MINUTE)]));
    assert_eq!(counts(&series, "1m"), every(1, 0..60));
    change(&db, &tiers(None, &[Rollup::new(MINUTE)]));
    assert_eq!(counts(&series, "1m"), every(1, 0..60));
    assert!(db.check().unwrap().is_clean());
    change(&db, &tiers(Some(MINUTE), &[Rollup::new(MINUTE)]));
    assert_eq!(series.stats().unwrap().points, 0);
    assert_eq!(counts(&series, "1m"), every(1, 0..60));
}

/// It is not made of the points, which have gone where rows are.
#[test]
fn a_rollup_that_is_kept_longer_has_the_rows_that_it_had() {
    let keep = Some(10 * MINUTE);
    let (db, series, clock) = an_hour(&tiers(keep, &[Rollup::new(MINUTE).keeping(30 * MINUTE)]));
    clock.set(3_600);
    compact(&db);
    change(&db, &tiers(keep, &[Rollup::new(MINUTE)]));
    clock.set(7_200);
    compact(&db);
    assert_eq!(counts(&series, "1m"), every(1, 30..60));
    assert!(db.check().unwrap().is_clean());
}

/// The widest one was read alone, which had none of the windows whose points had gone.
#[test]
fn a_wider_rollup_hides_nothing_of_a_narrower_one() {
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)]));
    clock.set(3_600);
    compact(&db);
    let both = [Rollup::new(MINUTE), Rollup::new(15 * MINUTE)];
    change(&db, &tiers(Some(20 * MINUTE), &both));
    assert_eq!(counts(&series, "15m"), every(15, 0..60));
    series.append_points(&seconds(3_600..7_200), &CommitOptions::default()).unwrap();
    assert_eq!(counts(&series, "15m"), every(15, 0..120));
    // The wider one has no rows of before, and what is not kept any more comes late to both.
    clock.set(7_200);
    compact(&db);
    assert_eq!(counts(&series, "15m"), every(15, 0..120));
    assert_eq!(counts(&series, "1m"), every(1, 0..120));
    assert!(db.check().unwrap().is_clean());
}

/// A late point was all that its window had from then on, and `check` told damage.
#[test]
fn rows_stay_when_points_are_kept_longer_that_have_gone() {
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)]));
    clock.set(3_600);
    compact(&db);
    change(&db, &tiers(None, &[Rollup::new(MINUTE)]));
    assert!(db.check().unwrap().is_clean());
    series.append_points(&seconds(90..95), &CommitOptions::default()).unwrap();
    assert_eq!(counts(&series, "1m"), every(1, 0..60));
    compact(&db);
    assert_eq!(counts(&series, "1m"), every(1, 0..60));
    assert!(db.check().unwrap().is_clean());
}

/// They stayed, as there were no points to be made of anew.
#[test]
fn whole_windows_are_deleted_whose_points_have_gone() {
    let rollups = [Rollup::new(MINUTE), Rollup::new(5 * MINUTE)];
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &rollups));
    clock.set(3_600);
    compact(&db);
    let second = |second: i64| Micros(second * 1_000_000);
    let before = series.snapshot();
    series.delete(second(630)..second(1_200), &CommitOptions::default()).unwrap();
    for _ in 0..2 {
        let left = [every(1, 0..11), every(1, 20..60)].concat();
        assert_eq!(counts(&series, "1m"), left);
        assert_eq!(counts(&series, "5m"), [every(5, 0..15), every(5, 20..60)].concat());
        compact(&db);
    }
    assert_eq!(before.sequence().0 + 1, series.snapshot().sequence().0);
    series.delete(.., &CommitOptions::default()).unwrap();
    assert_eq!(counts(&series, "1m"), []);
    compact(&db);
    assert_eq!(counts(&series, "5m"), []);
    assert!(db.check().unwrap().is_clean());
}

/// As of earlier commits they came back, and their space did not.
#[test]
fn points_of_a_series_that_is_gone_go_with_time() {
    let keep = Some(10 * MINUTE);
    let (db, _, clock) = an_hour(&tiers(keep, &[Rollup::new(MINUTE).keeping(30 * MINUTE)]));
    let before = db.snapshot();
    clock.set(3_600);
    let mut transaction = db.transaction();
    transaction.delete_series("a").unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    let read = |from: &crate::DatabaseSnapshot| {
        from.series("a").unwrap().range(..).unwrap().read().unwrap().len()
    };
    assert_eq!(read(&db.snapshot_at(before.sequence())), 600);
    let bytes = |db: &Database| db.stats().unwrap().segment_bytes;
    let full = bytes(&db);
    compact(&db);
    let some = bytes(&db);
    clock.set(36_000);
    compact(&db);
    assert!(some < full && bytes(&db) < some, "{full}, {some}, {} bytes", bytes(&db));
    assert_eq!(read(&db.snapshot_at(before.sequence())), 0);
}

fn rename(db: &Database, from: &str, to: &str) {
    let mut transaction = db.transaction();
    transaction.rename_series(from, to).unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
}

#[test]
fn a_series_that_is_purged_is_nowhere() {
    let (db, series, _) = an_hour(&SeriesDefinition::new(ValueType::F64));
    let purge = || {
        let mut transaction = db.transaction();
        let purged = transaction.purge_series("a");
        transaction.commit(&CommitOptions::default()).unwrap();
        purged.map_err(|error| error.kind())
    };
    let before = db.snapshot();
    let read = || before.series("a").unwrap().range(..).unwrap().read().unwrap().len();
    let mut transaction = db.transaction();
    transaction.delete_series("a").unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    let again = db.create_series("a", &tiers(None, &[Rollup::new(MINUTE)])).unwrap();
    again.append_points(&seconds(0..60), &CommitOptions::default()).unwrap();
    rename(&db, "a", "b");
    assert_eq!((read(), purge(), read()), (3_600, Ok(1), 0));
    assert_eq!(purge(), Err(crate::ErrorKind::NotFound));
    rename(&db, "b", "a");
    assert_eq!(db.series("a").unwrap().range(..).unwrap().read().unwrap().len(), 60);
    let cells = || {
        let column = cell_key::all_points(series.info().number);
        db.engine.view().store.live().scan(&column).unwrap().count()
    };
    assert_ne!(cells(), 0);
    compact(&db);
    assert_eq!(cells(), 0);
    assert_eq!(
        (purge(), db.find_series(&crate::SeriesFilter::default()).unwrap().len()),
        (Ok(1), 0)
    );
    assert!(db.check().unwrap().is_clean());
}

/// They were in no row: of an import of what was long ago nothing was left at all.
#[test]
fn points_that_come_late_are_in_rows_as_far_as_these_know_nothing_of_their_time() {
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)]));
    clock.set(36_000);
    compact(&db);
    let append = |among: std::ops::Range<i32>| {
        series.append_points(&seconds(among), &CommitOptions::default()).unwrap();
        compact(&db);
    };
    append(3_600..7_230);
    let all = [every(1, 0..120), vec![(120, 30)]].concat();
    assert_eq!(counts(&series, "1m"), all);
    // What these windows know of is not added to them again, and what comes behind it is.
    append(60..7_230);
    assert_eq!(counts(&series, "1m"), all);
    append(7_230..7_260);
    assert_eq!(counts(&series, "1m"), every(1, 0..121));
    let mut transaction = db.transaction();
    transaction.delete_points("a", Micros(120_000_000)..Micros(240_000_000)).unwrap();
    transaction.append_points("a", &seconds(180..300)).unwrap();
    transaction.append_points("a", &seconds(7_260..7_320)).unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    compact(&db);
    assert_eq!(counts(&series, "1m"), [every(1, 0..2), every(1, 3..122)].concat());
    assert_eq!(series.stats().unwrap().points, 0);
    assert!(db.check().unwrap().is_clean());
}

/// An open span ended with the last point, though rows told of more.
#[test]
fn an_open_span_reaches_to_the_last_row() {
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)]));
    clock.set(36_000);
    compact(&db);
    change(&db, &tiers(None, &[Rollup::new(MINUTE)]));
    series.append_points(&seconds(90..95), &CommitOptions::default()).unwrap();
    assert_eq!(series.range(..).unwrap().read().unwrap().len(), 5);
    assert_eq!(counts(&series, "1m"), every(1, 0..60));
}

/// Of blocks and of rows too: their sums are infinite.
#[test]
fn means_of_the_greatest_floats_are_finite_however_they_are_told() {
    for rollups in [&[][..], &[Rollup::new(Duration::from_secs(10))]] {
        let db = Database::memory().unwrap();
        let series = db.create_series("far", &tiers(None, rollups)).unwrap();
        let mut points = Points::new(ValueType::F64);
        for second in 0..600 {
            let value = if second % 3 == 0 { f64::MAX } else { f64::MAX / 2.0 };
            points.push(Micros(second * 1_000_000), value, Quality::GOOD).unwrap();
        }
        series.append_points(&points, &CommitOptions::default()).unwrap();
        db.checkpoint().unwrap();
        for aggregates in [vec![Aggregate::Mean], vec![Aggregate::Mean, Aggregate::Min]] {
            for windows in ["30s", "10m"].map(|windows| Windows::parse(windows, "UTC").unwrap()) {
                let options = AggregateOptions::new(aggregates.clone(), windows);
                let table = series.snapshot().aggregate(.., &options).unwrap();
                for row in 0..table.starts.len() {
                    let mean = table.columns[0].get(row).and_then(|mean| mean.as_f64()).unwrap();
                    assert!((mean / f64::MAX - 2.0 / 3.0).abs() < 1e-12, "{mean}");
                }
            }
        }
    }
}

/// What adds up to less was infinite out of points, and NaN out of rows or several blocks.
#[test]
fn sums_beyond_floats_are_what_they_come_to_however_they_are_told() {
    let what = [Aggregate::Sum, Aggregate::Mean];
    for (rollups, is_written) in
        [(&[][..], false), (&[][..], true), (&[Rollup::new(Duration::from_secs(10))][..], true)]
    {
        let db = Database::memory().unwrap();
        let series = db.create_series("far", &tiers(None, rollups)).unwrap();
        let mut points = Points::new(ValueType::F64);
        // A minute that adds up to little, one that is too much, one with an infinite value.
        for second in 0..180 {
            let value = match second {
                0..20 => f64::MAX,
                20..40 | 120..160 => f64::MIN,
                90..120 => f64::MAX / 8.0,
                179 => f64::INFINITY,
                _ => 3.0,
            };
            points.push(Micros(second * 1_000_000), value, Quality::GOOD).unwrap();
        }
        series.append_points(&points, &CommitOptions::default()).unwrap();
        if is_written {
            db.checkpoint().unwrap();
        }
        for extra in [None, Some(Aggregate::Min), Some(Aggregate::Percentile(0.5))] {
            let what = what.iter().cloned().chain(extra).collect();
            let options = AggregateOptions::new(what, Windows::parse("1m", "UTC").unwrap());
            let table = series.snapshot().aggregate(.., &options).unwrap();
            let told = |column: usize, row| {
                table.columns[column].get(row).and_then(|value| value.as_f64()).unwrap()
            };
            assert!((told(0, 0) / f64::MAX).abs() < 1e-12, "{}", told(0, 0));
            assert!((told(1, 0) / f64::MAX).abs() < 1e-12, "{}", told(1, 0));
            for beyond in [told(0, 1), told(0, 2), told(1, 2)] {
                assert!(beyond.is_infinite() && beyond > 0.0, "{beyond}");
            }
            assert!((told(1, 1) / f64::MAX - 1.0 / 16.0).abs() < 1e-12, "{}", told(1, 1));
        }
    }
}

/// The bound that was not asked for was taken for 0, and the sum was the other one.
#[test]
fn sums_of_both_infinities_are_no_number_whatever_is_asked_beside() {
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)]));
    for (second, value) in [(1, f64::NEG_INFINITY), (2, f64::INFINITY)] {
        series.append(Micros(second * 1_000_000), value, &CommitOptions::default()).unwrap();
    }
    // While their points are there, and when these have gone.
    for now in [0, 36_000] {
        clock.set(now);
        compact(&db);
        for beside in [Aggregate::Count, Aggregate::Min, Aggregate::Max, Aggregate::StdDev] {
            let what = vec![Aggregate::Sum, Aggregate::Mean, beside];
            let options = AggregateOptions::new(what, Windows::parse("1m", "UTC").unwrap());
            let table = series.aggregate(.., &options).unwrap();
            for column in 0..2 {
                let value = table.columns[column].get(0).and_then(|value| value.as_f64());
                assert!(value.is_some_and(f64::is_nan), "{value:?} of {options:?} at {now}");
            }
        }
    }
    assert_eq!(series.stats().unwrap().points, 0);
}

/// It stayed for good, and every read looked through it.
#[test]
fn what_was_deleted_goes_with_the_points_that_it_was_of() {
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[]));
    for second in [0, 600, 1_200, 3_480] {
        let span = Micros(second * 1_000_000)..Micros((second + 30) * 1_000_000);
        series.delete(span, &CommitOptions::default()).unwrap();
    }
    compact(&db);
    assert_eq!(series.stats().unwrap().deletes, 4);
    clock.set(3_600);
    compact(&db);
    let stats = series.stats().unwrap();
    assert_eq!((stats.deletes, stats.points, stats.deleted_points), (1, 600, 30));
    change(&db, &tiers(None, &[]));
    assert_eq!(series.range(..).unwrap().read().unwrap().len(), 570);
    assert!(db.check().unwrap().is_clean());
    let mut transaction = db.transaction();
    transaction.purge_series("a").unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    compact(&db);
    assert_eq!(series.stats().unwrap(), SeriesStats::default());
}

/// What is kept of it was said in the catalogue for good, and read by each checkpoint and merge.
#[test]
fn a_series_of_which_nothing_is_left_leaves_the_catalogue() {
    let (db, series, _) = an_hour(&tiers(None, &[Rollup::new(MINUTE)]));
    let before = db.snapshot();
    let purge = |name: &str| {
        let mut transaction = db.transaction();
        let purged = transaction.purge_series(name);
        transaction.commit(&CommitOptions::default()).unwrap();
        purged.map_err(|error| error.kind())
    };
    let dropped = || {
        let (tags, head) = db.engine.view().series_tags(db.engine.published()).unwrap();
        tags::dropped(&tags, head).unwrap()
    };
    let make_and_purge = |name: &str| {
        let made = db.create_series(name, &SeriesDefinition::new(ValueType::F64)).unwrap();
        assert_eq!(purge(name), Ok(1));
        made.info().number
    };
    let first = series.info().number;
    assert_eq!(purge("a"), Ok(1));
    compact(&db);
    // A reader may have read the manifest before, and find the checkpoint as it was.
    let second = make_and_purge("b");
    assert_eq!(dropped(), [first, second]);
    db.checkpoint().unwrap();
    let third = make_and_purge("c");
    assert_eq!(dropped(), [second, third]);
    assert!(before.series("a").unwrap().range(..).unwrap().read().unwrap().is_empty());
    assert_eq!(purge("a"), Err(crate::ErrorKind::NotFound));
    compact(&db);
    db.create_series("d", &SeriesDefinition::new(ValueType::F64)).unwrap();
    db.checkpoint().unwrap();
    let mut transaction = db.transaction();
    transaction.delete_series("d").unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    assert_eq!(dropped(), []);
    assert!(db.check().unwrap().is_clean());
}

/// Their mean was rounded before the differences from it were taken, and integers were made floats:
/// of values that are large beside their spread it was wrong, and another one out of rows.
#[test]
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn deviations_of_large_numbers_are_right_however_they_are_told() {
    let float = |first: f64| move |above: i64| SeriesValue::F64(first + above as f64);
    let integer = |first: i64| move |above: i64| SeriesValue::I64(first + above);
    let kinds: [&dyn Fn(i64) -> SeriesValue; 5] = [
        &float(1_714_521_600_000_000.0),
        &float(4_503_599_627_370_490.0),
        &float(-0.5),
        &integer(9_007_199_254_740_993),
        &integer(i64::MAX - 9),
    ];
    for value in kinds {
        for widths in [&[][..], &[Duration::from_secs(10), MINUTE]] {
            for is_written in [false, true] {
                let rollups: Vec<_> = widths.iter().map(|width| Rollup::new(*width)).collect();
                check_deviations(value, &rollups, is_written);
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn check_deviations(value: &dyn Fn(i64) -> SeriesValue, rollups: &[Rollup], is_written: bool) {
    let db = Database::memory().unwrap();
    let value_type = value(0).value_type();
    let definition =
        SeriesDefinition { rollups: rollups.to_vec(), ..SeriesDefinition::new(value_type) };
    let series = db.create_series("large", &definition).unwrap();
    let random = &mut Numbers64(1);
    let above: Vec<i64> = (0..40_000).map(|_| random.below(10).cast_signed()).collect();
    let mut points = Points::new(value_type);
    for (second, above) in (0..).zip(&above) {
        points.push(Micros(second * 1_000_000), value(*above), Quality::GOOD).unwrap();
    }
    series.append_points(&points, &CommitOptions::default()).unwrap();
    if is_written {
        db.checkpoint().unwrap();
    }
    for windows in [Windows::whole(), Windows::parse("2m", "UTC").unwrap()] {
        for extra in [None, Some(Aggregate::Percentile(0.5))] {
            let all = std::iter::once(Aggregate::StdDev).chain(extra).collect();
            let options = AggregateOptions::new(all, windows.clone());
            let table = series.snapshot().aggregate(.., &options).unwrap();
            for (row, start) in table.starts.iter().enumerate() {
                let length = if table.starts.len() == 1 { above.len() } else { 120 };
                let first = usize::try_from((*start).max(0) / 1_000_000).unwrap();
                let some = &above[first..above.len().min(first + length)];
                let (count, sum) = (some.len() as f64, some.iter().sum::<i64>() as f64);
                let squares = some.iter().map(|one| one * one).sum::<i64>() as f64;
                let expected = ((squares - sum * sum / count) / (count - 1.0)).sqrt();
                let found = table.columns[0].get(row).and_then(|value| value.as_f64()).unwrap();
                assert!((found - expected).abs() < 1e-9, "{}: {found}, not {expected}", value(0));
            }
        }
    }
    assert!(db.check().unwrap().is_clean());
}
