//! What is asked together: rows tell what they know beside what only points do.

use super::rollups::{MINUTE, an_hour, compact, tiers};
use crate::{
    Aggregate, AggregateOptions, CommitOptions, Fill, Hold, Micros, Rollup, Series, SeriesValue,
    WindowTable, Windows,
};

fn table(series: &Series, what: &[Aggregate], fill: Fill) -> WindowTable {
    let windows = Windows::parse("5m", "UTC").unwrap();
    let options = AggregateOptions { fill, ..AggregateOptions::new(what.to_vec(), windows) };
    let minute = |minute: i64| Micros(minute * 60_000_000);
    series.aggregate(minute(0)..minute(60), &options).unwrap()
}

/// A percentile that was asked for, too, once took the rows away of which no points were left.
#[test]
fn aggregates_that_need_points_leave_rows_to_the_others() {
    let (db, series, clock) = an_hour(&tiers(Some(10 * MINUTE), &[Rollup::new(MINUTE)]));
    let median = Aggregate::Percentile(0.5);
    let sums = [Aggregate::Count, Aggregate::Sum, Aggregate::Delta];
    for other in [median.clone(), Aggregate::TimeWeightedMean(Hold::Step)] {
        let both = [&sums[..], &[other]].concat();
        clock.set(0);
        let all = table(&series, &both, Fill::None);
        clock.set(3_600);
        for _ in 0..2 {
            for fill in [Fill::None, Fill::Null] {
                let (some, told) = (table(&series, &sums, fill), table(&series, &both, fill));
                assert_eq!((&told.starts, &told.columns[..3]), (&some.starts, &some.columns[..]));
                assert_eq!(told.starts.len(), 12);
                let found: Vec<_> = (0..12).map(|row| told.columns[3].get(row)).collect();
                assert_eq!(found[..10], [const { None }; 10]);
                assert_eq!(found[10..], [10, 11].map(|row| all.columns[3].get(row)));
            }
            db.checkpoint().unwrap();
        }
    }
    compact(&db);
    assert_eq!(table(&series, &[sums[0].clone(), median.clone()], Fill::None).starts.len(), 12);
    // What comes late is told, too, before and after the checkpoint that writes it.
    series.delete(.., &CommitOptions::default()).unwrap();
    series.append(Micros(61_000_000), 7.0, &CommitOptions::default()).unwrap();
    for _ in 0..2 {
        let found = table(&series, &[Aggregate::Sum, median.clone()], Fill::None);
        assert_eq!(found.starts, [0]);
        assert_eq!(found.columns[0].get(0), Some(SeriesValue::F64(7.0)));
        assert_eq!(found.columns[1].get(0), None);
        compact(&db);
    }
    assert_eq!(table(&series, &[median], Fill::None).starts.len(), 0);
}
