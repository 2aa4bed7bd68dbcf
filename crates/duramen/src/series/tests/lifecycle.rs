//! Making, finding, renaming and deleting series.

use crate::{
    CommitOptions, Database, ErrorKind, Micros, Points, SeriesDefinition, SeriesFilter, ValueType,
};

fn plain(value_type: ValueType) -> SeriesDefinition {
    SeriesDefinition::new(value_type)
}

fn names(db: &Database, filter: &SeriesFilter) -> Vec<String> {
    db.find_series(filter).unwrap().into_iter().map(|info| info.name).collect()
}

#[test]
fn series_are_found_by_name_label_and_type() {
    let db = Database::memory().unwrap();
    let labels = [("site".to_owned(), "north".to_owned())].into();
    let labelled = SeriesDefinition { labels, ..plain(ValueType::I64) };
    let all = [("b/1/x", plain(ValueType::F64)), ("b/2/x", labelled), ("a", plain(ValueType::F64))];
    db.create_series_all(&all).unwrap();
    let any = SeriesFilter::default();
    assert_eq!(names(&db, &any), ["a", "b/1/x", "b/2/x"]);
    assert_eq!(names(&db, &SeriesFilter::glob("b/*/x")), ["b/1/x", "b/2/x"]);
    for (glob, expected) in [("b/1/x", 1), ("b/", 0), ("b/**", 2), ("?", 1), ("c*", 0), ("**", 3)] {
        assert_eq!(names(&db, &SeriesFilter::glob(glob)).len(), expected, "{glob}");
    }
    let labels = [("site".to_owned(), "north".to_owned())].into();
    assert_eq!(names(&db, &SeriesFilter { labels, ..any.clone() }), ["b/2/x"]);
    let value_type = Some(ValueType::F64);
    assert_eq!(names(&db, &SeriesFilter { value_type, ..any }), ["a", "b/1/x"]);
}

#[test]
fn documents_and_series_share_their_names() {
    let db = Database::memory().unwrap();
    db.create_document("d").unwrap();
    db.create_series("s", &plain(ValueType::F64)).unwrap();
    let kind = |result: crate::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(db.create_series("d", &plain(ValueType::F64)).map(drop)), ErrorKind::Conflict);
    assert_eq!(kind(db.create_series("s", &plain(ValueType::F64)).map(drop)), ErrorKind::Conflict);
    assert_eq!(kind(db.create_document("s").map(drop)), ErrorKind::Conflict);
    let mut transaction = db.transaction();
    assert_eq!(kind(transaction.put("s", b"1")), ErrorKind::Conflict);
    assert_eq!(kind(transaction.rename_document("d", "s")), ErrorKind::Conflict);
    assert_eq!(kind(transaction.rename_series("s", "d")), ErrorKind::Conflict);
    drop(transaction);
    assert_eq!(kind(db.series("d").map(drop)), ErrorKind::NotFound);
    assert_eq!(kind(db.document("s").map(drop)), ErrorKind::NotFound);
    assert_eq!(db.documents().unwrap(), ["d"]);
    assert_eq!(db.stats().unwrap().documents, 1);
}

#[test]
fn of_many_series_all_are_made_or_none() {
    let db = Database::memory().unwrap();
    let twice = [("a", plain(ValueType::F64)), ("a", plain(ValueType::F64))];
    assert_eq!(db.create_series_all(&twice).unwrap_err().kind(), ErrorKind::Conflict);
    assert!(names(&db, &SeriesFilter::default()).is_empty());
    let bad = [("a", plain(ValueType::F64)), ("", plain(ValueType::F64))];
    assert_eq!(db.create_series_all(&bad).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(names(&db, &SeriesFilter::default()).is_empty());
}

#[test]
fn points_stay_with_a_series_that_gets_another_name() {
    let db = Database::memory().unwrap();
    let how = CommitOptions::default();
    let old = db.create_series("old", &plain(ValueType::I64)).unwrap();
    old.append(Micros(1), 10, &how).unwrap();
    let before = db.snapshot();
    let mut transaction = db.transaction();
    transaction.rename_series("old", "new").unwrap();
    transaction.commit(&how).unwrap();
    let new = db.series("new").unwrap();
    assert_eq!(new.range(..).unwrap().read().unwrap().times(), [1]);
    assert_eq!(old.append(Micros(2), 20, &how).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(before.series("old").unwrap().latest().unwrap().unwrap().time, Micros(1));
    assert_eq!(before.series("new").unwrap_err().kind(), ErrorKind::NotFound);
    // The name is free, and who gets it is another series.
    let other = db.create_series("old", &plain(ValueType::Bool)).unwrap();
    assert_eq!(other.latest().unwrap(), None);
    assert_eq!(old.append(Micros(2), 20, &how).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_deleted_series_is_there_as_of_before() {
    let db = Database::memory().unwrap();
    let how = CommitOptions::default();
    let series = db.create_series("s", &plain(ValueType::I64)).unwrap();
    series.append(Micros(1), 10, &how).unwrap();
    let before = db.snapshot();
    let mut transaction = db.transaction();
    transaction.delete_series("s").unwrap();
    transaction.commit(&how).unwrap();
    assert_eq!(db.series("s").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(series.append(Micros(2), 20, &how).unwrap_err().kind(), ErrorKind::NotFound);
    let again = db.create_series("s", &plain(ValueType::I64)).unwrap();
    assert_eq!(again.latest().unwrap(), None);
    assert_eq!(before.series("s").unwrap().latest().unwrap().unwrap().time, Micros(1));
}

#[test]
fn what_is_said_of_a_series_can_change_but_not_its_type() {
    let db = Database::memory().unwrap();
    db.create_series("s", &plain(ValueType::I64)).unwrap();
    let mut transaction = db.transaction();
    let error = transaction.change_series("s", &plain(ValueType::F64)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let better = SeriesDefinition { unit: "m".to_owned(), ..plain(ValueType::I64) };
    transaction.change_series("s", &better).unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    assert_eq!(db.series("s").unwrap().info().definition, better);
}

#[test]
fn points_of_another_type_are_refused() {
    let db = Database::memory().unwrap();
    let series = db.create_series("s", &plain(ValueType::I64)).unwrap();
    let how = CommitOptions::default();
    assert_eq!(series.append(Micros(1), 1.5, &how).unwrap_err().kind(), ErrorKind::Invalid);
    let floats = Points::new(ValueType::F64);
    let error = series.append_points(&floats, &how).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(series.latest().unwrap(), None);
}

#[test]
fn points_and_documents_become_visible_together_or_not_at_all() {
    let db = Database::memory().unwrap();
    db.create_document("d").unwrap();
    db.create_series("s", &plain(ValueType::I64)).unwrap();
    let mut points = Points::new(ValueType::I64);
    points.push(Micros(1), 7, crate::Quality::GOOD).unwrap();
    let mut transaction = db.transaction();
    transaction.put("d", b"7").unwrap();
    transaction.append_points("s", &points).unwrap();
    transaction.rollback();
    assert_eq!(db.series("s").unwrap().latest().unwrap(), None);
    let mut transaction = db.transaction();
    transaction.put("d", b"7").unwrap();
    transaction.append_points("s", &points).unwrap();
    // A series that the transaction itself makes takes points too.
    transaction.create_series("t", &plain(ValueType::I64)).unwrap();
    transaction.append_points("t", &points).unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), "7");
    for name in ["s", "t"] {
        assert_eq!(db.series(name).unwrap().latest().unwrap().unwrap().time, Micros(1));
    }
}

#[test]
fn a_series_is_read_as_of_any_time_wherever_its_commits_are() {
    let db = Database::memory().unwrap();
    let series = db.create_series("s", &SeriesDefinition::new(ValueType::I64)).unwrap();
    let mut commits = Vec::new();
    for step in 0..40_i64 {
        commits.push(series.append(Micros(step), step, &CommitOptions::default()).unwrap());
        match step {
            5 | 6 | 17 | 30 => db.checkpoint().unwrap(),
            22 => db.compact(&mut |_, _| std::ops::ControlFlow::Continue(())).unwrap(),
            _ => {}
        }
    }
    let points = |time: i64| series.at_time(Micros(time)).unwrap().range(..).unwrap().read();
    for (step, committed) in commits.iter().enumerate() {
        let at = committed.timestamp.0;
        assert_eq!(points(at).unwrap().len(), step + 1);
        assert_eq!(points(at - 1).unwrap().len(), step);
    }
    assert_eq!(points(i64::MAX).unwrap().len(), 40);
    assert_eq!(points(i64::MIN).unwrap().len(), 0);
}
