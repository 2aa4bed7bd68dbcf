//! What a delta is above: the last number before, wherever that is by then.

use std::sync::Arc;

use super::rollups::{MINUTE, Seconds, an_hour, compact, tiers};
use crate::io::MemoryDevice;
use crate::{
    Aggregate, AggregateOptions, CommitOptions, Database, Micros, Options, Points, Quality, Rollup,
    Series, SeriesDefinition, SeriesValue, ValueType, WindowTable, Windows,
};

fn minute(minute: i64) -> Micros {
    Micros(minute * 60_000_000)
}

fn changes(series: &Series, (from, to): (i64, i64), windows: &str) -> WindowTable {
    let what = vec![Aggregate::Delta, Aggregate::Rate, Aggregate::Last];
    let options = AggregateOptions::new(what, Windows::parse(windows, "UTC").unwrap());
    series.aggregate(minute(from)..minute(to), &options).unwrap()
}

/// They had no rows: of a counter nothing was left but what rows say of single windows.
#[test]
fn changes_are_told_by_rows_when_their_points_have_gone() {
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)]));
    let spans = [(0, 60), (7, 9), (30, 31), (10, 55), (52, 58)];
    let read = || -> Vec<WindowTable> {
        let all = ["1m", "2m", "5m", "1h"].into_iter();
        all.flat_map(|windows| spans.map(|span| changes(&series, span, windows))).collect()
    };
    let before = read();
    assert_eq!(before[0].starts.len(), 60);
    for now in [3_600, 36_000] {
        clock.set(now);
        assert_eq!(read(), before);
        compact(&db);
        assert_eq!(read(), before);
    }
    assert_eq!(series.stats().unwrap().points, 0);
    // What comes now is above what rows know, and not above itself.
    series.append(Micros(36_000_000_000), 7.0, &CommitOptions::default()).unwrap();
    let last = before[0].columns[2].get(59).and_then(|last| last.as_f64()).unwrap();
    for _ in 0..2 {
        let table = changes(&series, (600, 601), "1m");
        assert_eq!(table.columns[0].get(0), Some(SeriesValue::F64(7.0 - last)));
        compact(&db);
    }
}

/// Rows say what the first and the last point are, numbers or not.
#[test]
fn what_is_no_number_is_no_end_of_a_change() {
    let clock = Arc::new(Seconds::default());
    let options = Options { background: false, clock: clock.clone(), ..Options::default() };
    let db = Database::open_device(Arc::new(MemoryDevice::new()), options).unwrap();
    let series = db.create_series("a", &tiers(None, &[Rollup::new(MINUTE)])).unwrap();
    let mut points = Points::new(ValueType::F64);
    let nan = f64::NAN;
    for (second, value) in
        [(0, 1.0), (70, nan), (80, 5.0), (100, 8.0), (130, 9.0), (140, nan), (200, nan), (250, 4.0)]
    {
        points.push(Micros(second * 1_000_000), value, Quality::GOOD).unwrap();
    }
    series.append_points(&points, &CommitOptions::default()).unwrap();
    let deltas = |windows| {
        let table = changes(&series, (0, 6), windows);
        (0..table.starts.len()).map(|row| table.columns[0].get(row)).collect::<Vec<_>>()
    };
    let floats = |all: &[Option<f64>]| -> Vec<Option<SeriesValue>> {
        all.iter().map(|one| one.map(SeriesValue::F64)).collect()
    };
    for _ in 0..2 {
        let each = [Some(0.0), Some(7.0), Some(1.0), None, Some(-5.0)];
        assert_eq!(deltas("1m"), floats(&each));
        assert_eq!(deltas("2m"), floats(&[Some(7.0), Some(1.0), Some(-5.0)]));
        compact(&db);
    }
}

/// Points that are kept are above those of before the span, on both sides of a checkpoint.
#[test]
fn deltas_of_windows_add_up() {
    let db = Database::memory().unwrap();
    let series = db.create_series("n", &SeriesDefinition::new(ValueType::I64)).unwrap();
    for (at, value) in [(1, 10_i64), (2, 13), (4, 11), (5, i64::MAX)] {
        let time = Micros(at * 50_000_000);
        series.append(time, value, &CommitOptions::default()).unwrap();
        if at == 2 {
            db.checkpoint().unwrap();
        }
    }
    let table = changes(&series, (0, 6), "1m");
    let found: Vec<_> = (0..4).map(|row| table.columns[0].get(row)).collect();
    let last = SeriesValue::F64(9_223_372_036_854_775_808.0);
    assert_eq!(found, [Some(0.0.into()), Some(3.0.into()), Some((-2.0).into()), Some(last)]);
    // A window that is cut has the change since the last number before the cut.
    let options = AggregateOptions::new(vec![Aggregate::Delta], Windows::whole());
    let cut = series.aggregate(Micros(60_000_000)..Micros(220_000_000), &options).unwrap();
    assert_eq!(cut.columns[0].get(0), Some(1.0.into()));
}
