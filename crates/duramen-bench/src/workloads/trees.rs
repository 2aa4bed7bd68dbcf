//! MT: many small documents in one database: making them, opening it, and what they take when
//! nobody uses them.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use duramen::{CommitOptions, Database, Durability, Options};
use serde::{Deserialize, Serialize};

use super::Child;
use crate::figures::{Measure, RELAXED, SYNC};
use crate::machine;
use crate::sampling::{Rounds, interleave};
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;

/// Documents that one transaction makes.
const GROUP: u64 = 1_000;
const ROUNDS: Rounds = Rounds { warmups: 0, measured: 3 };
const OPENINGS: Rounds = Rounds { warmups: 1, measured: 5 };

/// Runs MT.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    let documents = session.scale.small_documents;
    let mut folder = PathBuf::new();
    for (durability, name) in [(Durability::Sync, SYNC), (Durability::Interval(1_000), RELAXED)] {
        let rates = interleave(&mut [()], ROUNDS, |(), _| {
            folder = session.new_folder(DURAMEN);
            create(&folder, documents, durability)
        })?;
        let measure = Measure::gain("MT", "documents_per_s", "1/s").durability(name);
        for rates in rates {
            session.figures.add(&measure.clone().case(documents.to_string()), &[(DURAMEN, rates)]);
        }
    }
    let openings = interleave(&mut [()], OPENINGS, |(), _| {
        let opening = Opening { folder: folder.clone(), documents };
        Child::Trees(opening).in_a_fresh_process::<Seen>()
    })?;
    let openings: Vec<Seen> = openings.into_iter().flatten().collect();
    let mut add = |metric, unit, value: &dyn Fn(&Seen) -> f64| {
        let measure = Measure::cost("MT", metric, unit).case(documents.to_string());
        session.figures.add(&measure, &[(DURAMEN, openings.iter().map(value).collect())]);
    };
    add("open", "ms", &|seen| seen.open_ms);
    add("first_read", "us", &|seen| seen.first_read_us);
    add("idle_bytes_per_document", "bytes", &|seen| seen.idle_bytes / documents as f64);
    add("bytes_per_document_after_reading_all", "bytes", &|seen| {
        seen.read_bytes / documents as f64
    });
    Ok(std::fs::remove_dir_all(folder)?)
}

fn name(index: u64) -> String {
    format!("device/{index}")
}

/// A document of about 200 bytes.
fn text(index: u64) -> String {
    let text = "a small document of a device somewhere in the field ".repeat(2);
    format!(
        r#"{{"id":{index},"name":"device {index}","enabled":{},"limit":{},"notes":"{text}"}}"#,
        index.is_multiple_of(3),
        index * 7 % 1_000
    )
}

/// Makes the documents; how many a second.
fn create(folder: &std::path::Path, documents: u64, durability: Durability) -> Result<f64> {
    let database = Database::open(folder, Options { durability, ..Options::default() })?;
    let texts: Vec<(String, String)> =
        (0..documents).map(|index| (name(index), text(index))).collect();
    let watch = Stopwatch::start();
    for group in texts.chunks(usize::try_from(GROUP)?) {
        let mut transaction = database.transaction();
        for (name, text) in group {
            transaction.put(name, text.as_bytes())?;
        }
        transaction.commit(&CommitOptions::default())?;
    }
    let seconds = watch.seconds();
    ensure!(database.documents()?.len() as u64 == documents, "not all documents are there");
    database.checkpoint()?;
    database.close()?;
    Ok(documents as f64 / seconds)
}

/// Opening the database in a fresh process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Opening {
    folder: PathBuf,
    documents: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Seen {
    open_ms: f64,
    first_read_us: f64,
    idle_bytes: f64,
    read_bytes: f64,
}

impl Opening {
    /// Does it in this process and prints what was seen.
    pub(crate) fn run(&self) -> Result<()> {
        let before = machine::process_bytes("VmRSS")?;
        let watch = Stopwatch::start();
        let database = Database::open(&self.folder, Options::default())?;
        let open_ms = watch.micros() / 1e3;
        let idle_bytes = machine::process_bytes("VmRSS")? - before;
        let index = self.documents / 2;
        let watch = Stopwatch::start();
        let found = database.document(&name(index))?.head()?.to_json()?;
        let first_read_us = watch.micros();
        ensure!(found == text(index), "document {index} is {found}");
        for index in 0..self.documents {
            let found = database.document(&name(index))?.head()?.to_json()?;
            ensure!(found == text(index), "document {index} is {found}");
        }
        let read_bytes = machine::process_bytes("VmRSS")? - before;
        let seen = Seen { open_ms, first_read_us, idle_bytes, read_bytes };
        println!("{}", serde_json::to_string(&seen)?);
        Ok(())
    }
}
