//! MEM: work on much more data than the memory of the database, in a process of its own, and the
//! most memory that this process had.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use duramen::{CommitOptions, Database, Durability, Format, JsonPointer, Options, Revision};
use serde::{Deserialize, Serialize};

use super::Child;
use super::queries::People;
use crate::figures::{Measure, RELAXED};
use crate::machine;
use crate::random::SplitMix64;
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;

/// The budget that the database is given.
const MEMORY_BYTES: usize = 64 << 20;
/// Records of each document, of about 62 bytes each.
const RECORDS: u64 = 50_000;
const READS: u64 = 20_000;

/// Runs MEM.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    let (bytes, changes) = session.scale.loaded;
    let folder = session.new_folder(DURAMEN);
    let work = Work { folder: folder.clone(), bytes, changes };
    let seen: Seen = Child::Budget(work).in_a_fresh_process()?;
    let mut add = |measure: Measure, value: f64| {
        let measure = measure.case(format!("{bytes} bytes")).durability(RELAXED);
        session.figures.add(&measure, &[(DURAMEN, vec![value])]);
    };
    add(Measure::cost("MEM", "peak_memory", "MiB"), seen.peak_bytes / f64::from(1 << 20));
    add(Measure::cost("MEM", "largest_value", "MiB"), seen.largest_bytes / f64::from(1 << 20));
    add(Measure::gain("MEM", "loaded", "MB/s"), seen.loaded_mb_per_s);
    add(Measure::gain("MEM", "commits_per_s", "1/s"), seen.commits_per_s);
    add(Measure::cost("MEM", "time_per_read", "us"), seen.read_us);
    add(Measure::gain("MEM", "compacted", "MB/s"), seen.compacted_mb_per_s);
    Ok(std::fs::remove_dir_all(folder)?)
}

/// The work, in a fresh process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Work {
    folder: PathBuf,
    /// JSON to be put.
    bytes: u64,
    /// Commits of one change each.
    changes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Seen {
    peak_bytes: f64,
    largest_bytes: f64,
    loaded_mb_per_s: f64,
    commits_per_s: f64,
    read_us: f64,
    compacted_mb_per_s: f64,
}

impl Work {
    /// Does it in this process and prints what was seen.
    pub(crate) fn run(&self) -> Result<()> {
        let options = Options {
            memory_bytes: MEMORY_BYTES,
            durability: Durability::Interval(1_000),
            ..Options::default()
        };
        let database = Database::open(&self.folder, options)?;
        let text = People::new(RECORDS).json;
        let documents = self.bytes.div_ceil(text.len() as u64);
        let watch = Stopwatch::start();
        for document in 0..documents {
            database.create_document(&name(document))?.put(&text, &CommitOptions::default())?;
        }
        let loaded_mb_per_s = self.bytes as f64 / watch.micros();
        let watch = Stopwatch::start();
        self.change(&database, documents)?;
        let commits_per_s = self.changes as f64 / watch.seconds();
        let watch = Stopwatch::start();
        read(&database, documents)?;
        let read_us = watch.micros() / READS as f64;
        database.checkpoint()?;
        let watch = Stopwatch::start();
        database.compact(&mut |_, _| ControlFlow::Continue(()))?;
        let compacted_mb_per_s = self.bytes as f64 / watch.micros();
        read(&database, documents)?;
        database.close()?;
        let seen = Seen {
            peak_bytes: machine::process_bytes("VmHWM")?,
            largest_bytes: text.len() as f64,
            loaded_mb_per_s,
            commits_per_s,
            read_us,
            compacted_mb_per_s,
        };
        println!("{}", serde_json::to_string(&seen)?);
        Ok(())
    }

    /// Sets the age of random records, a commit each.
    fn change(&self, database: &Database, documents: u64) -> Result<()> {
        let mut random = SplitMix64::new(7);
        for change in 0..self.changes {
            let document = database.document(&name(random.below(documents)))?;
            let place = JsonPointer::parse(&format!("/{}/age", random.below(RECORDS)))?;
            document.set(&place, (100 + change).to_string(), &CommitOptions::default())?;
        }
        Ok(())
    }
}

/// Reads the ages that were set, and as they were before, at random.
fn read(database: &Database, documents: u64) -> Result<()> {
    let (mut random, mut text) = (SplitMix64::new(8), Vec::new());
    for _ in 0..READS {
        let document = database.document(&name(random.below(documents)))?;
        let head = document.head()?.revision();
        let revision = Revision(1 + random.below(head.0));
        let index = random.below(RECORDS);
        let place = JsonPointer::parse(&format!("/{index}"))?;
        text.clear();
        document.at(revision)?.append_json(&place, &Format::default(), &mut text)?;
        let record: serde_json::Value = serde_json::from_slice(&text)?;
        ensure!(record["id"] == index, "record {index} is {record}");
    }
    Ok(())
}

fn name(document: u64) -> String {
    format!("part {document}")
}
