//! Making, finding, renaming and deleting series.

use crate::{
    CommitOptions, Database, ErrorKind, Micros, Points, SeriesDefinition, SeriesFilter,
    TransactOptions, Transaction, ValueType,
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

/// Its points were committed under a number that no name leads to, and nobody was told.
#[test]
fn a_transaction_does_not_write_points_of_a_series_that_went_meanwhile() {
    let (db, how) = (Database::memory().unwrap(), CommitOptions::default());
    let mut points = Points::new(ValueType::I64);
    points.push(Micros(1), 1, crate::Quality::GOOD).unwrap();
    let begin = |name: &str| {
        db.create_series(name, &plain(ValueType::I64)).unwrap();
        let mut transaction = db.transaction();
        transaction.append_points(name, &points).unwrap();
        transaction
    };
    let change = |change: &dyn Fn(&mut Transaction) -> crate::Result<()>| {
        let mut transaction = db.transaction();
        change(&mut transaction).unwrap();
        transaction.commit(&how).unwrap();
    };
    let refused = |transaction: Transaction| {
        let error = transaction.commit(&how).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    };
    let deleted = begin("deleted");
    change(&|other| other.delete_series("deleted"));
    refused(deleted);
    let another = begin("another");
    change(&|other| other.delete_series("another"));
    db.create_series("another", &plain(ValueType::F64)).unwrap();
    refused(another);
    let renamed = begin("renamed");
    change(&|other| other.rename_series("renamed", "new"));
    refused(renamed);
    // What the transaction does itself, and what others do to other series, is no change of that.
    let mut own = begin("own");
    change(&|other| other.delete_series("new"));
    own.rename_series("own", "mine").unwrap();
    own.append_points("mine", &points).unwrap();
    own.commit(&how).unwrap();
    assert_eq!(db.series("mine").unwrap().range(..).unwrap().read().unwrap().len(), 1);
    let mut gone = begin("gone");
    gone.delete_series("gone").unwrap();
    gone.create_series("gone", &plain(ValueType::I64)).unwrap();
    gone.append_points("gone", &points).unwrap();
    gone.commit(&how).unwrap();
    assert_eq!(db.series("gone").unwrap().range(..).unwrap().read().unwrap().len(), 1);
    assert!(db.check().unwrap().is_clean());
}

/// It was as if nobody had looked for a series: two transactions could each miss what the other
/// wrote.
#[test]
fn what_a_transaction_reads_of_series_is_a_part_of_what_it_rests_on() {
    for serializable in [false, true] {
        let (db, how) = (Database::memory().unwrap(), CommitOptions::default());
        db.create_document("seen").unwrap().put("true", &how).unwrap();
        let options = TransactOptions { serializable, ..TransactOptions::default() };
        let mut runs = 0;
        db.transact(&options, |transaction| {
            runs += 1;
            let found = transaction.series_info("s").is_ok();
            if runs == 1 {
                db.create_series("s", &plain(ValueType::F64))?;
            }
            transaction.put("seen", found.to_string().as_bytes())
        })
        .unwrap();
        let seen = db.document("seen").unwrap().head().unwrap().to_json().unwrap();
        assert_eq!((runs, seen == "true"), if serializable { (2, true) } else { (1, false) });
        // Points that others write are no reason to begin again.
        let mut runs = 0;
        let mut points = Points::new(ValueType::F64);
        points.push(Micros(1), 1.0, crate::Quality::GOOD).unwrap();
        db.transact(&options, |transaction| {
            runs += 1;
            transaction.append_points("s", &points)?;
            if runs == 1 {
                db.series("s")?.append_points(&points, &how)?;
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(runs, 1);
    }
}

/// What came first deletes the series: the next attempt is told so.
#[test]
fn a_transaction_that_is_run_again_finds_its_series_deleted() {
    let db = Database::memory().unwrap();
    db.create_series("s", &plain(ValueType::F64)).unwrap();
    let mut points = Points::new(ValueType::F64);
    points.push(Micros(1), 1.0, crate::Quality::GOOD).unwrap();
    let mut runs = 0;
    let done = db.transact(&TransactOptions::default(), |transaction| {
        runs += 1;
        transaction.append_points("s", &points)?;
        if runs == 1 {
            let mut other = db.transaction();
            other.delete_series("s")?;
            other.commit(&CommitOptions::default())?;
        }
        Ok(())
    });
    assert_eq!((runs, done.unwrap_err().kind()), (2, ErrorKind::NotFound));
}
