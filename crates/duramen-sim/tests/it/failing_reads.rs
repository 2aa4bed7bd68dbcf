//! Long reads that threads share, of a device that cannot read: what is right comes in its order,
//! then one error, and nothing behind it. Nothing of the failure stays when the device is well.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::Device;
use duramen::{
    CommitOptions, Database, ErrorKind, Key, KeyKind, Micros, Options, Points, Qualities, Quality,
    Query, Result, ScanOptions, SeriesDefinition, ValueType, Values,
};
use duramen_sim::{FaultKind, FaultPlan, Operation, Profile, SimulatedDevice};

const RECORDS: u64 = 30_000;
const POINTS: i64 = 900_000;

fn open(device: &SimulatedDevice) -> Database {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    let options = Options { background: false, memory_bytes: 8 << 20, ..Options::default() };
    Database::open_device(device, options).unwrap()
}

fn record(key: u64) -> String {
    format!(r#"{{"key":{key},"text":"{:x}"}}"#, u128::from(key) * 0x9e37_79b9_7f4a_7c15_f39c_c060)
}

fn value(time: i64) -> i64 {
    time.wrapping_mul(0x5851_f42d_4c95_7f2d) >> 20
}

fn plant(device: &SimulatedDevice) {
    let (db, how) = (open(device), CommitOptions::default());
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    records.put_many((0..RECORDS).map(|key| (key, record(key))), &how).unwrap();
    let list: Vec<_> = (0..RECORDS).map(record).collect();
    db.create_document("list").unwrap().put(format!("[{}]", list.join(",")), &how).unwrap();
    let series = db.create_series("series", &SeriesDefinition::new(ValueType::I64)).unwrap();
    let values = Values::I64((0..POINTS).map(value).collect());
    let good = Qualities::All(Quality::GOOD);
    let points = Points::from_columns((0..POINTS).collect(), values, good).unwrap();
    series.append_points(&points, &how).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    drop((records, series));
    db.close().unwrap();
}

/// How far it comes, and the error that it ends with, if it does.
type End = (u64, Option<duramen::Error>);

fn scan(records: impl Iterator<Item = Result<duramen::Record>>) -> End {
    let mut expected = 0;
    let mut records = records.fuse();
    while let Some(found) = records.next() {
        match found {
            Ok(found) => {
                assert_eq!((found.key, found.json), (Key::U64(expected), record(expected)));
                expected += 1;
            }
            Err(error) => {
                assert!(records.next().is_none(), "it goes on behind an error");
                return (expected, Some(error));
            }
        }
    }
    (expected, None)
}

fn range(db: &Database) -> End {
    let mut expected = 0;
    let mut read = || -> Result<()> {
        db.series("series")?.range(Micros(0)..)?.visit(|points, places| {
            let Values::I64(values) = points.values() else { panic!("{points:?}") };
            for at in places {
                assert_eq!((points.times()[at], values[at]), (expected, value(expected)));
                expected += 1;
            }
            ControlFlow::Continue(())
        })
    };
    let error = read().err();
    (expected.unsigned_abs(), error)
}

fn list(db: &Database) -> End {
    let read = || db.document("list")?.head()?.to_json();
    match read() {
        Ok(text) => {
            let list: Vec<_> = (0..RECORDS).map(record).collect();
            assert!(text == format!("[{}]", list.join(",")), "another text was read");
            (RECORDS, None)
        }
        Err(error) => (0, Some(error)),
    }
}

fn read(db: &Database, what: &str) -> End {
    let records = || db.collection("records");
    match what {
        "range" => range(db),
        "list" => list(db),
        "scan" => match records().and_then(|records| records.scan(&ScanOptions::default())) {
            Ok(found) => scan(found),
            Err(error) => (0, Some(error)),
        },
        _ => match records().and_then(|records| records.query(&Query::new())) {
            Ok(found) => scan(found),
            Err(error) => (0, Some(error)),
        },
    }
}

#[test]
fn long_reads_of_a_failing_device_end_with_one_error() {
    let device = SimulatedDevice::new(7, Profile::CRUEL);
    plant(&device);
    for (what, count) in
        [("scan", RECORDS), ("query", RECORDS), ("list", RECORDS), ("range", POINTS.unsigned_abs())]
    {
        let (mut failures, mut partial) = (0, 0);
        for nth in (1..24).chain((24..120).step_by(8)) {
            let db = open(&device);
            let plan = FaultPlan::new(FaultKind::Fail(Operation::Read), nth);
            let plan = plan.under("segments/");
            device.fail(if nth % 2 == 0 { plan.sticky() } else { plan });
            let (end, error) = read(&db, what);
            device.repair();
            match error {
                Some(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io, "{what}, read {nth}: {error}");
                    failures += 1;
                    partial += u64::from(end > 0);
                }
                None => assert_eq!(end, count, "{what}, read {nth}"),
            }
            let (end, error) = read(&db, what);
            assert!(end == count && error.is_none(), "{what}, after read {nth}: {end}, {error:?}");
        }
        assert!(failures >= 4, "{what}: {failures} reads failed");
        assert!(partial > 0 || what == "list", "{what}: nothing came before a failure");
    }
}
