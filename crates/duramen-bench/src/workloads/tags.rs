//! TM: many series in one database: opening it, finding some of them, and what a point for each
//! takes.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use duramen::{
    CommitOptions, Database, Durability, Micros, Options, SeriesDefinition, SeriesFilter, ValueType,
};
use serde::{Deserialize, Serialize};

use super::Child;
use crate::figures::{Measure, READS_ONLY, RELAXED};
use crate::machine;
use crate::sampling::{Rounds, interleave};
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;

/// Series that one transaction makes.
const GROUP: usize = 10_000;
/// Series of one place.
const PLACE: u64 = 100;
const OPENINGS: Rounds = Rounds { warmups: 1, measured: 5 };

/// Runs TM.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    let (tags, folder) = (session.scale.tags, session.new_folder(DURAMEN));
    create(&folder, tags)?;
    let openings = interleave(&mut [()], OPENINGS, |(), _| {
        let visit = Visit { folder: folder.clone(), tags, appends: false };
        Child::Tags(visit).in_a_fresh_process::<Seen>()
    })?;
    let mut add = |metric, unit, durability, values| {
        let measure = Measure::cost("TM", metric, unit).case(tags.to_string());
        session.figures.add(&measure.durability(durability), &[(DURAMEN, values)]);
    };
    let openings: Vec<Seen> = openings.into_iter().flatten().collect();
    let mut of_all = |metric, unit, value: &dyn Fn(&Seen) -> f64| {
        add(metric, unit, READS_ONLY, openings.iter().map(value).collect());
    };
    of_all("open", "ms", &|seen| seen.open_ms);
    of_all("first_find", "ms", &|seen| seen.first_find_ms);
    of_all("find", "ms", &|seen| seen.find_ms);
    of_all("first_search", "ms", &|seen| seen.first_search_ms);
    of_all("search", "ms", &|seen| seen.search_ms);
    of_all("idle_bytes_per_series", "bytes", &|seen| seen.idle_bytes / tags as f64);
    let visit = Visit { folder: folder.clone(), tags, appends: true };
    let seen: Seen = Child::Tags(visit).in_a_fresh_process()?;
    add("time_per_append", "us", RELAXED, vec![seen.append_us]);
    add("peak_memory", "MiB", RELAXED, vec![seen.peak_bytes / f64::from(1 << 20)]);
    Ok(std::fs::remove_dir_all(folder)?)
}

fn name(index: u64) -> String {
    format!("plant/{}/sensor-{index}/temperature", index / PLACE)
}

fn create(folder: &Path, tags: u64) -> Result<()> {
    let database = Database::open(folder, Options::default())?;
    let definition = SeriesDefinition::new(ValueType::F64);
    let all: Vec<_> = (0..tags).map(|index| (name(index), definition.clone())).collect();
    for group in all.chunks(GROUP) {
        let mut transaction = database.transaction();
        transaction.create_series_all(group)?;
        transaction.commit(&CommitOptions::default())?;
    }
    database.checkpoint()?;
    Ok(database.close()?)
}

/// A fresh process that opens the database.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Visit {
    folder: PathBuf,
    tags: u64,
    /// Whether it appends a point to each series, else it looks for some.
    appends: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Seen {
    open_ms: f64,
    first_find_ms: f64,
    find_ms: f64,
    /// By a pattern whose beginning may be anything.
    first_search_ms: f64,
    search_ms: f64,
    idle_bytes: f64,
    append_us: f64,
    peak_bytes: f64,
}

impl Visit {
    /// Does it in this process and prints what was seen.
    pub(crate) fn run(&self) -> Result<()> {
        let before = machine::process_bytes("VmRSS")?;
        let watch = Stopwatch::start();
        let database = Database::open(&self.folder, Options::default())?;
        let mut seen = Seen { open_ms: watch.micros() / 1e3, ..Seen::default() };
        if self.appends {
            seen.append_us = self.append(&database)?;
        } else {
            seen.first_find_ms = self.find(&database, self.tags / PLACE / 2)?;
            seen.find_ms = self.find(&database, self.tags / PLACE / 3)?;
            seen.idle_bytes = machine::process_bytes("VmRSS")? - before;
            seen.first_search_ms = search(&database, self.tags / 2)?;
            seen.search_ms = search(&database, self.tags / 3)?;
        }
        seen.peak_bytes = machine::process_bytes("VmHWM")?;
        println!("{}", serde_json::to_string(&seen)?);
        Ok(database.close()?)
    }

    /// Finds the series of a place; the milliseconds.
    fn find(&self, database: &Database, place: u64) -> Result<f64> {
        let pattern = format!("plant/{place}/*/temperature");
        find(database, &pattern, PLACE.min(self.tags))
    }

    /// A point for each series; the microseconds of one, the look for its series included.
    fn append(&self, database: &Database) -> Result<f64> {
        let how = CommitOptions {
            durability: Some(Durability::Interval(100)),
            ..CommitOptions::default()
        };
        let watch = Stopwatch::start();
        for index in 0..self.tags {
            let series = database.series(&name(index))?;
            series.append(Micros(index.cast_signed()), index as f64, &how)?;
        }
        Ok(watch.micros() / self.tags as f64)
    }
}

/// Finds one series by what is in the middle of its name; the milliseconds.
fn search(database: &Database, index: u64) -> Result<f64> {
    find(database, &format!("**/sensor-{index}/*"), 1)
}

/// Finds series by a pattern, as many as there are; the milliseconds.
fn find(database: &Database, pattern: &str, count: u64) -> Result<f64> {
    let filter = SeriesFilter::glob(pattern);
    let watch = Stopwatch::start();
    let found = database.find_series(&filter)?;
    ensure!(found.len() as u64 == count, "{} series are there", found.len());
    Ok(watch.micros() / 1e3)
}
