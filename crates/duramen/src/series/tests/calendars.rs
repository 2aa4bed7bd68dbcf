//! Windows of calendars out of rollups: those of points, in every zone, filled or not.

use std::time::Duration;

use crate::series::block::tests::Numbers64;
use crate::{
    Aggregate, AggregateOptions, CommitOptions, Database, Fill, Micros, Points, Quality, Rollup,
    SeriesDefinition, ValueType, Windows,
};

const MINUTE: i64 = 60_000_000;
/// The first of 2024. Clocks change on the way to the end of the year.
const BEGIN: i64 = 1_704_067_200_000_000;
const YEAR: u64 = 366 * 1_440;

#[test]
fn windows_of_calendars_out_of_rollups_are_those_of_points() {
    let what =
        [Aggregate::Count, Aggregate::Max, Aggregate::Last, Aggregate::Delta, Aggregate::Sum];
    let zones = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"];
    let every = ["1d", "3d", "1w", "1mo", "1y", "24h", "7h", "90m"];
    for seed in 0..24 {
        let random = &mut Numbers64(seed);
        let below =
            |random: &mut Numbers64, end: usize| usize::try_from(random.below(end as u64)).unwrap();
        let minutes = [15, 30, 60, 420, 1_440];
        let bits = 1 + below(random, 31);
        let widths = (0..5).filter(|at| bits >> at & 1 == 1).map(|at| minutes[at]);
        let rollups = widths.map(|width| Rollup::new(Duration::from_mins(width))).collect();
        let rolled = SeriesDefinition { rollups, ..SeriesDefinition::new(ValueType::I64) };
        let db = Database::memory().unwrap();
        let plain = SeriesDefinition::new(ValueType::I64);
        db.create_series_all(&[("rolled", rolled), ("plain", plain)]).unwrap();
        for round in 0..4 {
            let mut points = Points::new(ValueType::I64);
            // Some months have nothing.
            let months = YEAR * 2 / 3;
            for _ in 0..below(random, 400) {
                let time = BEGIN + random.below(months).cast_signed() * MINUTE;
                let value = random.below(1_000).cast_signed();
                points.push(Micros(time), value, Quality::GOOD).unwrap();
            }
            for name in ["rolled", "plain"] {
                let series = db.series(name).unwrap();
                series.append_points(&points, &CommitOptions::default()).unwrap();
            }
            if round != 2 {
                db.checkpoint().unwrap();
            }
        }
        for _ in 0..12 {
            let zone = zones[below(random, zones.len())];
            let windows = Windows::parse(every[below(random, every.len())], zone).unwrap();
            let fill = [Fill::None, Fill::Null, Fill::Previous, Fill::Linear][below(random, 4)];
            let options =
                AggregateOptions { fill, ..AggregateOptions::new(what.to_vec(), windows) };
            let from = BEGIN + random.below(YEAR).cast_signed() * MINUTE;
            let to = from + (1 + random.below(YEAR / 4).cast_signed()) * MINUTE;
            let [rolled, plain] = ["rolled", "plain"].map(|name| {
                let series = db.series(name).unwrap();
                series.aggregate(Micros(from)..Micros(to), &options).unwrap()
            });
            assert_eq!(rolled, plain, "seed {seed}, {from}..{to}, {options:?}");
        }
    }
}
