//! Change feeds and the loss of power: what was told of durable commits is there afterwards.

use std::sync::Arc;

use duramen::io::Device;
use duramen::{CommitOptions, Database, Event, KeyKind, Options, Result, WatchFrom, WatchOptions};
use duramen_sim::{PowerLoss, Profile, Random, SimulatedDevice};

fn open(device: &SimulatedDevice) -> Result<Database> {
    let device: Arc<dyn Device> = Arc::new(device.clone());
    Database::open_device(device, Options { background: false, ..Options::default() })
}

/// What all feeds so far told, and what one is told from the beginning on.
fn drain(db: &Database, from: WatchFrom, told: &mut Vec<(u64, Event)>) -> Result<()> {
    let mut feed = db.watch(&WatchOptions { from, ..WatchOptions::default() })?;
    while let Some(batch) = feed.try_next()? {
        let sequence = batch.sequence.0;
        for event in batch {
            told.push((sequence, event?));
        }
    }
    Ok(())
}

/// Commits until the device is off, with a feed that is told of each.
fn commit(db: &Database, random: &mut Random, told: &mut Vec<(u64, Event)>) -> Result<()> {
    let (plain, mut last) = (CommitOptions::default(), told.last().map_or(0, |(at, _)| *at));
    let records = match db.collection("c") {
        Ok(records) => records,
        Err(_) => db.create_collection("c", KeyKind::U64)?,
    };
    loop {
        let value = format!(r#"{{"n":{}}}"#, random.below(4));
        match random.below(8) {
            0 => drop(records.delete(random.below(9), &plain)?),
            1 => db.checkpoint()?,
            _ => drop(records.put(random.below(9), value, &plain)?),
        }
        drain(db, WatchFrom::After(duramen::CommitSequence(last)), told)?;
        last = told.last().map_or(last, |(at, _)| *at);
    }
}

#[test]
fn what_a_feed_told_is_there_after_a_power_loss_and_no_more_is_missing() {
    let mut random = Random::new(11);
    for round in 0..60 {
        let mut device = SimulatedDevice::new(round, Profile::random(&mut random));
        let mut told = Vec::new();
        for _ in 0..3 {
            device.crash_at(device.changes() + 20 + random.below(120));
            if let Ok(db) = open(&device) {
                let before = told.len();
                let ended = commit(&db, &mut random, &mut told);
                assert!(ended.is_err() && device.is_off() && told.len() >= before);
            }
            device = device.power_loss(PowerLoss::random(&mut random), &mut random);
            let db = open(&device).unwrap();
            let mut again = Vec::new();
            drain(&db, WatchFrom::Beginning, &mut again).unwrap();
            // Tokens are of the epoch in which they were told.
            let tokens = told.iter().map(|(_, event)| event.token);
            again.iter_mut().zip(tokens).for_each(|((_, event), token)| event.token = token);
            // The commit that the loss came into may be there although nobody was told.
            assert!(again.len() >= told.len(), "round {round}");
            assert_eq!(again[..told.len()], told, "round {round}");
            told = again;
            drop(db);
        }
    }
}
