use super::*;
use crate::{SeriesDefinition, ValueType};

fn database() -> Database {
    let db = Database::memory().unwrap();
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        let value_type = if at == 2 { ValueType::String } else { ValueType::I64 };
        db.create_series(name, &SeriesDefinition::new(value_type)).unwrap();
    }
    let row = |time: i64, values: [Option<SeriesValue>; 3]| (Micros(time), values.to_vec());
    let rows = [
        row(5, [Some(1.into()), Some(7.into()), None]),
        row(25, [None, Some(9.into()), Some("on".into())]),
        row(45, [Some(4.into()), None, None]),
    ];
    db.append_rows(&["a", "b", "c"], &rows, &CommitOptions::default()).unwrap();
    db
}

#[test]
fn windows_of_several_series_stand_at_the_same_places() {
    let windows = Windows::of_width(Micros(10)).unwrap();
    let mut options = AggregateOptions::new(vec![Aggregate::Last], windows);
    let read = |options: &AggregateOptions| {
        let grid = database().snapshot().aggregate_series(&["a", "b"], .., options).unwrap();
        let values = |columns: &Vec<WindowColumn>| -> Vec<Option<f64>> {
            (0..grid.starts.len())
                .map(|at| columns[0].get(at).and_then(|one| one.as_f64()))
                .collect()
        };
        (grid.starts.clone(), grid.series.iter().map(values).collect::<Vec<_>>())
    };
    let (starts, values) = read(&options);
    assert_eq!(starts, [0, 20, 40]);
    assert_eq!(values[0], [Some(1.0), None, Some(4.0)]);
    assert_eq!(values[1], [Some(7.0), Some(9.0), None]);
    options.fill = crate::Fill::Previous;
    let (starts, values) = read(&options);
    assert_eq!(starts, [0, 10, 20, 30, 40]);
    assert_eq!(values[0], [1.0, 1.0, 1.0, 1.0, 4.0].map(Some));
    assert_eq!(values[1], [7.0, 7.0, 9.0, 9.0, 9.0].map(Some));
}

/// One that ended earlier had nothing in the last window, where that began with a point.
#[test]
fn the_last_window_is_filled_in_all_series() {
    let db = Database::memory().unwrap();
    for (name, count) in [("long", 5), ("short", 1)] {
        let series = db.create_series(name, &SeriesDefinition::new(ValueType::I64)).unwrap();
        for minute in 0..count {
            let time = Micros(minute * 60_000_000);
            series.append(time, 7_i64, &CommitOptions::default()).unwrap();
        }
    }
    let mut options =
        AggregateOptions::new(vec![Aggregate::Last], Windows::parse("1m", "UTC").unwrap());
    options.fill = crate::Fill::Previous;
    let grid = db.snapshot().aggregate_series(&["long", "short"], .., &options).unwrap();
    assert_eq!(grid.starts.len(), 5);
    for column in grid.series.iter().flatten() {
        assert_eq!(column.get(4), Some(7.into()));
    }
}

#[test]
fn a_grid_of_nothing_is_empty() {
    let db = database();
    let options = AggregateOptions::new(vec![Aggregate::Last], Windows::whole());
    let grid = db.snapshot().aggregate_series::<&str>(&[], .., &options).unwrap();
    assert_eq!(grid, SeriesGrid { starts: Vec::new(), series: Vec::new() });
    let error = db.snapshot().aggregate_series(&["a", "no"], .., &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn the_greatest_come_first_and_text_is_left_out() {
    let snapshot = database().snapshot();
    let top = |options: &TopOptions| -> Vec<(String, SeriesValue)> {
        let found = snapshot.top_series(&SeriesFilter::default(), .., options).unwrap();
        found.into_iter().map(|(info, value)| (info.name, value)).collect()
    };
    let mut options = TopOptions::new(Aggregate::Max);
    assert_eq!(top(&options), [("b".into(), 9.into()), ("a".into(), 4.into())]);
    options.least = true;
    options.count = 1;
    assert_eq!(top(&options), [("a".into(), 4.into())]);
    let options = TopOptions::new(Aggregate::Count);
    assert_eq!(top(&options).len(), 3);
}

#[test]
fn rows_that_cannot_be_append_nothing() {
    let db = database();
    let before = db.snapshot().sequence();
    let append = |series: &[&str], values: Vec<Option<SeriesValue>>| {
        let rows = [(Micros(1), values)];
        db.append_rows(series, &rows, &CommitOptions::default()).unwrap_err().to_string()
    };
    assert!(append(&["a", "b"], vec![None]).contains("row 0 has 1 values for 2 series"));
    assert!(append(&["a", "c"], vec![Some(1.into()), Some(2.into())]).contains("\"c\", row 0"));
    assert!(append(&["no"], vec![None]).contains("no series \"no\""));
    assert_eq!(db.snapshot().sequence(), before);
}

#[test]
fn an_error_of_one_is_the_error_of_all() {
    let all: Vec<u32> = (0..100).collect();
    assert_eq!(on_all_processors(&all, |one| Ok(one + 1)).unwrap().len(), 100);
    let fail = |one: &u32| match one {
        50 => Err(Error::new(ErrorKind::Invalid, "fifty")),
        one => Ok(*one),
    };
    assert_eq!(on_all_processors(&all, fail).unwrap_err().message(), "fifty");
}

/// They were compared as floats, which are the same.
#[test]
fn great_integers_are_ranked_as_they_are() {
    let db = Database::memory().unwrap();
    let great = 1_i64 << 60;
    for (name, value) in [("a", great), ("b", great + 1), ("c", great), ("d", great - 1)] {
        let series = db.create_series(name, &SeriesDefinition::new(ValueType::I64)).unwrap();
        series.append(Micros(1), value, &CommitOptions::default()).unwrap();
    }
    let options = TopOptions::new(Aggregate::Max);
    let top = db.snapshot().top_series(&SeriesFilter::default(), .., &options).unwrap();
    let names: Vec<_> = top.iter().map(|(info, _)| info.name.as_str()).collect();
    assert_eq!(names, ["b", "a", "c", "d"]);
}

/// The one that is not negative came first.
#[test]
fn zeros_of_both_signs_are_ranked_by_name() {
    let db = Database::memory().unwrap();
    for (name, value) in [("a", -0.0), ("b", 0.0), ("c", -0.0)] {
        let series = db.create_series(name, &SeriesDefinition::new(ValueType::F64)).unwrap();
        series.append(Micros(1), value, &CommitOptions::default()).unwrap();
    }
    for least in [false, true] {
        let options = TopOptions { least, count: 2, ..TopOptions::new(Aggregate::Last) };
        let top = db.snapshot().top_series(&SeriesFilter::default(), .., &options).unwrap();
        let names: Vec<_> = top.iter().map(|(info, _)| info.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
