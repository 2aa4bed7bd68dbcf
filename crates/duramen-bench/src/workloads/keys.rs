//! K: gets by key in a large collection, of records at hand and of others, in a fresh process.
//!
//! Beside gets of others stands their floor: one read of 4 KiB from the file that they come from.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use duramen::{Collection, CommitOptions, Database, Durability, KeyKind, Options};
use serde::{Deserialize, Serialize};

use super::Child;
use crate::figures::Measure;
use crate::files;
use crate::machine;
use crate::random::SplitMix64;
use crate::sampling::Latencies;
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;

const NAME: &str = "records";
const BATCH: u64 = 10_000;
const READS: u64 = 20_000;
/// Gets, and reads of their floor, that take turns.
const TURN: u64 = 1_000;
const FLOOR: &str = "floor";
const PIECE_BYTES: usize = 4_096;
/// Records that are read again and again.
const HOT: u64 = 5_000;
/// What the reading process may use: much less than the records take.
const MEMORY_BYTES: usize = 64 << 20;

/// Runs K.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    let (records, folder) = (session.scale.keyed, session.new_folder(DURAMEN));
    let insert_per_s = create(&folder, records)?;
    let case = records.to_string();
    let mut add = |metric, unit, value: f64| {
        let measure = Measure::cost("K", metric, unit).case(case.clone());
        session.figures.add(&measure, &[(DURAMEN, vec![value])]);
    };
    add("time_per_insert", "us", 1e6 / insert_per_s);
    let reading = Reading { folder: folder.clone(), records };
    let seen: Seen = Child::Keys(reading).in_a_fresh_process()?;
    add("open", "ms", seen.open_ms);
    add("first_get", "us", seen.first_us);
    add("get_hot_mean", "us", seen.hot_mean_us);
    add("get_hot_p99", "us", seen.hot_us[1]);
    add("get_miss_p50", "us", seen.miss_us[0]);
    add("get_miss_p99", "us", seen.miss_us[1]);
    add("peak_memory", "MiB", seen.peak_bytes / f64::from(1 << 20));
    for (metric, value) in ["get_miss_p50", "get_miss_p99"].into_iter().zip(seen.floor_us) {
        let measure = Measure::cost("K", metric, "us").case(case.clone());
        session.figures.add(&measure, &[(FLOOR, vec![value])]);
    }
    Ok(std::fs::remove_dir_all(folder)?)
}

fn record(key: u64) -> String {
    format!(
        r#"{{"id":{key},"name":"record {}","score":{},"is_active":{}}}"#,
        key % 977,
        key * 7 % 100_003,
        key.is_multiple_of(2)
    )
}

/// Makes the records; how many a second.
fn create(folder: &Path, records: u64) -> Result<f64> {
    let durability = Durability::Interval(1_000);
    let database = Database::open(folder, Options { durability, ..Options::default() })?;
    let collection = database.create_collection(NAME, KeyKind::U64)?;
    let watch = Stopwatch::start();
    let mut first = 0;
    while first < records {
        let end = (first + BATCH).min(records);
        let batch = (first..end).map(|key| (key, record(key)));
        collection.put_many(batch, &CommitOptions::default())?;
        first = end;
    }
    let seconds = watch.seconds();
    ensure!(collection.count()? == records, "not all records are there");
    database.checkpoint()?;
    drop(collection);
    database.close()?;
    Ok(records as f64 / seconds)
}

/// Gets in a fresh process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reading {
    folder: PathBuf,
    records: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Seen {
    open_ms: f64,
    first_us: f64,
    hot_mean_us: f64,
    /// The middle and the 99th percentile.
    hot_us: [f64; 2],
    miss_us: [f64; 2],
    floor_us: [f64; 2],
    peak_bytes: f64,
}

impl Reading {
    /// Does them in this process and prints what was seen.
    pub(crate) fn run(&self) -> Result<()> {
        let watch = Stopwatch::start();
        let options = Options { memory_bytes: MEMORY_BYTES, ..Options::default() };
        let database = Database::open(&self.folder, options)?;
        let open_ms = watch.micros() / 1e3;
        let collection = database.collection(NAME)?;
        let watch = Stopwatch::start();
        get(&collection, self.records / 2)?;
        let first_us = watch.micros();
        let (miss_us, floor_us) = self.misses(&collection)?;
        let mut random = SplitMix64::new(43);
        let hot: Vec<u64> = (0..HOT).map(|_| random.below(self.records)).collect();
        let mut next = || hot[usize::try_from(random.below(HOT)).unwrap_or(0)];
        for _ in 0..4 * HOT {
            get(&collection, next())?;
        }
        let mut latencies = Latencies::new();
        read(&collection, READS, &mut next, &mut latencies)?;
        let hot_us = shares(&latencies)?;
        let watch = Stopwatch::start();
        for _ in 0..READS {
            get(&collection, next())?;
        }
        let hot_mean_us = watch.micros() / READS as f64;
        let peak_bytes = machine::process_bytes("VmHWM")?;
        let seen = Seen { open_ms, first_us, hot_mean_us, hot_us, miss_us, floor_us, peak_bytes };
        println!("{}", serde_json::to_string(&seen)?);
        Ok(())
    }

    /// Gets of records that are not at hand, and their floor.
    fn misses(&self, collection: &Collection) -> Result<([f64; 2], [f64; 2])> {
        let largest = Segment::largest(&self.folder)?;
        let (mut keys, mut pieces) = (SplitMix64::new(42), SplitMix64::new(44));
        let (mut gets, mut floor) = (Latencies::new(), Latencies::new());
        for _ in 0..READS / TURN {
            read(collection, TURN, &mut || keys.below(self.records), &mut gets)?;
            for _ in 0..TURN {
                let piece = pieces.below(largest.pieces);
                floor.time(|| largest.read(piece))?;
            }
        }
        Ok((shares(&gets)?, shares(&floor)?))
    }
}

/// A file of the database that has records.
#[derive(Debug)]
struct Segment {
    file: File,
    pieces: u64,
}

impl Segment {
    fn largest(database: &Path) -> Result<Self> {
        let mut largest = None;
        for entry in std::fs::read_dir(database.join("segments"))? {
            let entry = entry?;
            largest = largest.max(Some((entry.metadata()?.len(), entry.path())));
        }
        let (bytes, path) = largest.context("a database of records has a segment")?;
        let pieces = bytes / PIECE_BYTES as u64;
        ensure!(pieces > 0, "{} is shorter than a piece", path.display());
        Ok(Self { file: files::open(&path)?, pieces })
    }

    fn read(&self, piece: u64) -> Result<()> {
        let mut bytes = [0; PIECE_BYTES];
        Ok(self.file.read_exact_at(&mut bytes, piece * PIECE_BYTES as u64)?)
    }
}

fn read(
    collection: &Collection,
    times: u64,
    next: &mut impl FnMut() -> u64,
    latencies: &mut Latencies,
) -> Result<()> {
    for _ in 0..times {
        let key = next();
        latencies.time(|| get(collection, key))?;
    }
    Ok(())
}

/// The middle and the 99th percentile.
fn shares(latencies: &Latencies) -> Result<[f64; 2]> {
    let share = |share| latencies.quantile_us(share).context("reads were timed");
    Ok([share(0.5)?, share(0.99)?])
}

fn get(collection: &Collection, key: u64) -> Result<()> {
    let found = collection.get(key)?.context("the record is there")?;
    ensure!(found.json.len() > 20, "record {key} is {found:?}");
    Ok(())
}
