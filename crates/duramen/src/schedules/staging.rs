//! Points that threads stage while others seal them, until the process is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use shuttle::thread::yield_now;

use super::device::ScheduledDevice;
use super::{at_once, below, clock};
use crate::io::Device;
use crate::{
    CommitOptions, Database, Durability, Micros, Options, SeriesDefinition, SeriesValue, ValueType,
};

const SERIES: [&str; 2] = ["a", "b"];
/// Points of each series: together more than the two banks of a stripe take.
const POINTS: i64 = 35;
/// Places at which the process may be killed.
const STEPS: usize = 200;

type Thread = Box<dyn FnOnce() + Send>;

fn open(device: Arc<dyn Device>) -> Database {
    let options = Options {
        background: false,
        clock: clock(),
        // Banks are as small as they get.
        checkpoint_journal_bytes: 16 << 10,
        ..Options::default()
    };
    Database::open_device(device, options).expect("a database")
}

/// Whenever the process is killed, each point that was acknowledged is there, in its order.
pub(super) fn kills() {
    let device = Arc::<ScheduledDevice>::default();
    let database = Arc::new(open(Arc::<ScheduledDevice>::clone(&device)));
    let definitions = SERIES.map(|name| (name, SeriesDefinition::new(ValueType::I64)));
    database.create_series_all(&definitions).expect("new series");
    let told: Arc<[AtomicI64; 2]> = Arc::default();
    let left = Arc::new(Mutex::default());
    let writers = (0..SERIES.len()).map(|at| writer(&database, &told, at));
    let sealer: Thread = {
        let database = Arc::clone(&database);
        Box::new(move || {
            for _ in 0..2 {
                match below(3) {
                    0 => database.flush().expect("a flush"),
                    1 => database.checkpoint().expect("a checkpoint"),
                    _ => drop(database.series("a").and_then(|a| a.latest()).expect("a point")),
                }
            }
        })
    };
    let killer: Thread = {
        let (device, told, left) = (device, Arc::clone(&told), Arc::clone(&left));
        Box::new(move || {
            (0..below(STEPS)).for_each(|_| yield_now());
            let least = told.each_ref().map(|told| told.load(Ordering::Acquire));
            *left.lock() = Some((device.killed(), least));
        })
    };
    at_once(writers.chain([sealer, killer]));
    check(&database, [POINTS; 2]);
    let (device, least) = left.lock().take().expect("what the killed process left");
    check(&open(device), least);
}

fn writer(database: &Arc<Database>, told: &Arc<[AtomicI64; 2]>, at: usize) -> Thread {
    let (database, told) = (Arc::clone(database), Arc::clone(told));
    Box::new(move || {
        let series = database.series(SERIES[at]).expect("the series");
        let durability = Some(Durability::Interval(1_000_000));
        let options = CommitOptions { durability, ..CommitOptions::default() };
        for number in 0..POINTS {
            // Two points in turn have one time: the second one holds.
            series.append(Micros(number / 2), number, &options).expect("a point");
            told[at].store(number + 1, Ordering::Release);
        }
    })
}

/// The first points are there, at least so many.
fn check(database: &Database, least: [i64; 2]) {
    for (name, least) in SERIES.iter().zip(least) {
        let points = database.series(name).and_then(|series| series.range(..)?.read());
        let points = points.expect("the points");
        let newest = points.iter().last().map(|point| point.value);
        let count = match newest {
            Some(SeriesValue::I64(number)) => number + 1,
            _ => 0,
        };
        assert!(count >= least, "{count} points of {name} are there, {least} were acknowledged");
        for (time, point) in (0..).zip(points.iter()) {
            let number = (time * 2 + 1).min(count - 1);
            assert_eq!((point.time, point.value), (Micros(time), SeriesValue::I64(number)));
        }
    }
    assert!(database.check().expect("a check").findings.is_empty(), "damage");
}
