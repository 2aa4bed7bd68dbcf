//! Series that are restored as they were at an earlier commit.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::rollups::{MINUTE, Seconds, an_hour, compact, counts_of, seconds, tiers};
use crate::io::{Device, MemoryDevice};
use crate::{
    BackupFolder, BackupOptions, CommitOptions, Database, Micros, Options, RestorePoint, Rollup,
    Series,
};

fn restored(folder: &BackupFolder, point: RestorePoint, clock: &Arc<Seconds>) -> Database {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let go_on = &mut |_, _| ControlFlow::Continue(());
    Database::restore_device(folder, &device, point, go_on).unwrap();
    let clock = Arc::<Seconds>::clone(clock);
    Database::open_device(device, Options { background: false, clock, ..Options::default() })
        .unwrap()
}

/// How many points the windows of both widths have.
fn counted(series: &Series) -> [Vec<(i64, i64)>; 2] {
    ["1m", "5m"].map(|windows| counts_of(&series.snapshot(), windows))
}

/// All rollups were left out, to be made again of the points: of those that had gone nothing was
/// left.
#[test]
fn rollups_tell_of_points_that_have_gone_in_what_is_restored_to_an_earlier_commit() {
    let how = CommitOptions::default();
    for is_merged in [false, true] {
        let rollups = [Rollup::new(MINUTE), Rollup::new(5 * MINUTE)];
        let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &rollups));
        clock.set(7_230);
        compact(&db);
        let made = series.append_points(&seconds(7_000..7_200), &how).unwrap();
        db.checkpoint().unwrap();
        let before = counted(&series);
        assert_eq!(before[0].len(), 64);
        // What comes later is left out, of windows that are there and of others.
        series.append_points(&seconds(7_150..7_230), &how).unwrap();
        series.append(Micros(7_215_500_000), 1.0, &how).unwrap();
        db.checkpoint().unwrap();
        if is_merged {
            compact(&db);
        }
        let folder = BackupFolder::on_device(Arc::new(MemoryDevice::new()));
        let options = BackupOptions { incremental: false, verify: true };
        db.backup(&folder, options, &mut |_, _| ControlFlow::Continue(())).unwrap();
        let points = [RestorePoint::Commit(made.sequence), RestorePoint::Time(made.timestamp)];
        for point in points {
            let db = restored(&folder, point, &clock);
            let series = db.series("a").unwrap();
            assert_eq!(counted(&series), before, "{point:?}");
            // It goes on: the rows of what is there are made, and the others stay.
            series.append_points(&seconds(7_200..7_210), &how).unwrap();
            for _ in 0..2 {
                compact(&db);
            }
            let after = counted(&series);
            assert_eq!(after[0][..64], before[0]);
            assert_eq!(after[0][64..], [(120, 10)]);
            assert!(db.check().unwrap().is_clean());
        }
    }
}

/// A row that was made later may be all that is left: it is taken as it is, for all commits.
#[test]
fn a_row_that_was_made_later_stands_for_what_it_was_made_of() {
    let how = CommitOptions::default();
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)]));
    let made = series.append_points(&seconds(3_600..3_630), &how).unwrap();
    series.append_points(&seconds(3_630..3_650), &how).unwrap();
    compact(&db);
    clock.set(7_230);
    compact(&db);
    assert!(series.range(..).unwrap().read().unwrap().is_empty());
    let folder = BackupFolder::on_device(Arc::new(MemoryDevice::new()));
    let options = BackupOptions { incremental: false, verify: true };
    db.backup(&folder, options, &mut |_, _| ControlFlow::Continue(())).unwrap();
    let db = restored(&folder, RestorePoint::Commit(made.sequence), &clock);
    let series = db.series("a").unwrap();
    let counts = counts_of(&series.snapshot(), "1m");
    assert_eq!((counts.len(), counts[60]), (61, (60, 50)));
    // Commits that come have the numbers that later ones had.
    series.append_points(&seconds(7_200..7_210), &how).unwrap();
    compact(&db);
    let counts = counts_of(&series.snapshot(), "1m");
    assert_eq!((counts.len(), counts[60]), (62, (60, 50)));
    assert!(db.check().unwrap().is_clean());
}

/// What a time is restored to was told by the last commit of points, before which there was none:
/// its rows were made again, of points that had gone.
#[test]
fn a_rollup_that_was_defined_after_the_last_points_is_there_as_of_a_time_after_that() {
    let how = CommitOptions::default();
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[]));
    let mut transaction = db.transaction();
    transaction.change_series("a", &tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)])).unwrap();
    let defined = transaction.commit(&how).unwrap();
    compact(&db);
    clock.set(7_230);
    compact(&db);
    assert!(series.range(..).unwrap().read().unwrap().is_empty());
    let before = counts_of(&series.snapshot(), "1m");
    assert_eq!(before.len(), 60);
    db.create_series("b", &tiers(None, &[])).unwrap();
    let folder = BackupFolder::on_device(Arc::new(MemoryDevice::new()));
    let options = BackupOptions { incremental: false, verify: true };
    db.backup(&folder, options, &mut |_, _| ControlFlow::Continue(())).unwrap();
    for point in [RestorePoint::Time(defined.timestamp), RestorePoint::Commit(defined.sequence)] {
        let db = restored(&folder, point, &clock);
        assert!(db.series("b").is_err());
        compact(&db);
        assert_eq!(counts_of(&db.series("a").unwrap().snapshot(), "1m"), before, "{point:?}");
    }
}

/// Its points were in segments still, and there again in what was restored to before the purge.
#[test]
fn what_was_purged_does_not_come_back_with_an_earlier_commit() {
    let how = CommitOptions::default();
    let (db, series, clock) = an_hour(&tiers(None, &[Rollup::new(MINUTE)]));
    let made = series.append_points(&seconds(3_600..3_630), &how).unwrap();
    let other = db.create_series("b", &tiers(None, &[])).unwrap();
    other.append_points(&seconds(0..10), &how).unwrap();
    let last = db.snapshot().sequence();
    let mut transaction = db.transaction();
    transaction.purge_series("a").unwrap();
    transaction.commit(&how).unwrap();
    assert!(series.at(made.sequence).range(..).unwrap().read().unwrap().is_empty());
    let folder = BackupFolder::on_device(Arc::new(MemoryDevice::new()));
    let options = BackupOptions { incremental: false, verify: true };
    db.backup(&folder, options, &mut |_, _| ControlFlow::Continue(())).unwrap();
    let db = restored(&folder, RestorePoint::Commit(last), &clock);
    let series = db.series("a").unwrap();
    assert!(series.range(..).unwrap().read().unwrap().is_empty());
    assert_eq!(counts_of(&series.snapshot(), "1m"), []);
    assert_eq!(db.series("b").unwrap().range(..).unwrap().read().unwrap().len(), 10);
    assert!(db.check().unwrap().is_clean());
}
