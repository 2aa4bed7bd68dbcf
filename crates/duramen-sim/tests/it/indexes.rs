//! Indexes of a collection in which the power is lost at any operation.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::Device;
use duramen::{
    CommitOptions, Database, ErrorKind, IndexDefinition, KeyKind, Options, Result, Retention,
};
use duramen_sim::{PowerLoss, Profile, Random, SimulatedDevice};

const RECORDS: u64 = 12;

fn open(device: &SimulatedDevice) -> Result<Database> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    // Little memory, so that checkpoints come often.
    let options = Options { background: false, memory_bytes: 256 << 10, ..Options::default() };
    Database::open_device(device, options)
}

/// Makes an index and changes records until the power is lost; how far it came.
fn play(device: &SimulatedDevice, random: &mut Random) -> Result<()> {
    let db = open(device)?;
    let how = CommitOptions::default();
    let collection = match db.collection("c") {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let collection = db.create_collection("c", KeyKind::I64)?;
            collection.document().retain(Retention::Last(60), &how)?;
            collection
        }
        found => found?,
    };
    for (name, path) in [("n", "n"), ("id", "id"), ("tags", "tags[*]")] {
        let index = IndexDefinition::new(name, &[path])?;
        let index = if name == "id" { index.unique() } else { index };
        match collection.create_index(&index) {
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            made => made?,
        }
    }
    for _ in 0..40 {
        let key = i64::try_from(random.below(RECORDS)).unwrap_or(0);
        let (n, tags) = (random.below(3), random.below(4));
        let tags: Vec<u64> = (0..tags).collect();
        let json = format!(r#"{{"id":{key},"n":{n},"tags":{tags:?},"text":"{key} {n}"}}"#);
        match random.below(12) {
            0 => drop(collection.delete(key, &how)?),
            1 => db.checkpoint()?,
            2 => db.compact(&mut |_, _| ControlFlow::Continue(()))?,
            3 => drop(collection.drop_index("n")),
            4 => drop(collection.index_stats("tags")?),
            _ => drop(collection.put(key, json, &how)?),
        }
    }
    db.close()
}

/// Whatever operation the power is lost at, every index says what the records say.
#[test]
fn indexes_say_what_the_records_say_after_a_power_loss_at_any_operation() {
    let mut losses = 0;
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let mut device = SimulatedDevice::new(seed, Profile::CRUEL);
        for _ in 0..4 {
            device.crash_at(device.changes() + 1 + random.below(260));
            let ended = play(&device, &mut random);
            losses += u64::from(ended.is_err());
            device.power_off();
            device = device.power_loss(PowerLoss::random(&mut random), &mut random);
            let Ok(db) = open(&device) else { panic!("seed {seed}: it does not open") };
            let report = db.check().unwrap();
            assert!(report.is_clean(), "seed {seed}: {:?}", report.findings);
            if let Ok(collection) = db.collection("c") {
                assert_eq!(report.indexes, collection.indexes().unwrap().len() as u64);
            }
        }
    }
    assert!(losses > 40, "{losses}");
}
