//! A0: the records of workload A loaded from a file; V7p: whole large documents put and read.
//!
//! A load runs in a fresh process, so that the peak of its memory is its own. The file was just
//! written, so it is read from the page cache; what is loaded is on the device in the end.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use duramen::{BulkOptions, CommitOptions, Database, Options};
use serde::{Deserialize, Serialize};

use super::Child;
use super::queries::People;
use crate::document::Document;
use crate::figures::{Measure, READS_ONLY, SYNC};
use crate::files;
use crate::machine;
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;

const NAME: &str = "people";
const MEGABYTE: f64 = 1e6;
/// Values of a document between two that a changed one differs in.
const CHANGE_SPACING: usize = 1_000;

/// Runs A0.
pub(crate) fn records(session: &mut Session) -> Result<()> {
    let records = session.scale.records;
    let folder = session.new_folder("ingest");
    std::fs::create_dir_all(&folder)?;
    let array = People::new(records).json;
    let lines = array.trim_matches(['[', ']']).replace("},{", "}\n{");
    for (form, text, lines) in [("array", &array, false), ("ndjson", &lines, true)] {
        let file = folder.join(form);
        files::write(&file, text.as_bytes())?;
        let mut seen = Vec::new();
        for round in 0..session.scale.rounds.measured {
            let database = folder.join(format!("{form}-{round}"));
            let load = Load { database: database.clone(), file: file.clone(), lines };
            let one: Seen = Child::Load(load).in_a_fresh_process()?;
            ensure!(one.records == records, "{} records were loaded", one.records);
            seen.push(one);
            std::fs::remove_dir_all(database)?;
        }
        add(session, (text.len(), records), &format!("{records}/{form}"), &seen);
    }
    Ok(std::fs::remove_dir_all(folder)?)
}

fn add(session: &mut Session, (bytes, records): (usize, u64), case: &str, seen: &[Seen]) {
    let (megabytes, records) = (bytes as f64 / MEGABYTE, records as f64);
    let mut add = |measure: Measure, value: &dyn Fn(&Seen) -> f64| {
        let measure = measure.case(case).durability(SYNC);
        let samples = seen.iter().map(value).collect();
        session.figures.add(&measure, &[(DURAMEN, samples)]);
    };
    add(Measure::gain("A0", "mb_per_s", "MB/s"), &|one| megabytes / one.seconds);
    add(Measure::gain("A0", "records_per_s", "1/s"), &|one| records / one.seconds);
    add(Measure::cost("A0", "bytes_per_record", "bytes"), &|one| one.segment_bytes / records);
    add(Measure::cost("A0", "peak_memory_mb", "MB"), &|one| one.peak_bytes / MEGABYTE);
}

/// A load in a fresh process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Load {
    database: PathBuf,
    file: PathBuf,
    lines: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Seen {
    seconds: f64,
    records: u64,
    segment_bytes: f64,
    peak_bytes: f64,
}

impl Load {
    /// Does it in this process and prints what was seen.
    pub(crate) fn run(&self) -> Result<()> {
        let database = Database::open(&self.database, Options::default())?;
        let mut file = files::open(&self.file)?;
        let options = BulkOptions { lines: self.lines, ..BulkOptions::default() };
        let watch = Stopwatch::start();
        let (_, progress) =
            database.bulk_load(NAME, &mut file, &options, &mut |_| ControlFlow::Continue(()))?;
        let seconds = watch.seconds();
        let segment_bytes = database.stats()?.segment_bytes as f64;
        let records = progress.values;
        let seen =
            Seen { seconds, records, segment_bytes, peak_bytes: machine::process_bytes("VmHWM")? };
        println!("{}", serde_json::to_string(&seen)?);
        Ok(database.close()?)
    }
}

/// Runs V7p: the text of a large document put as a whole, over one that differs here and there,
/// and read as a whole, from memory and just opened.
pub(crate) fn whole_documents(session: &mut Session) -> Result<()> {
    let bytes = session.scale.put_bytes;
    let rounds = session.scale.rounds.measured;
    let mut document = Document::with_bytes(usize::try_from(bytes)?);
    let megabytes = document.render().len() as f64 / MEGABYTE;
    let (mut puts, mut young, mut opened) = (Vec::new(), Vec::new(), Vec::new());
    let folder = session.new_folder("whole");
    let mut database = Database::open(&folder, Options::default())?;
    database.create_document(NAME)?.put(document.render(), &CommitOptions::default())?;
    for round in 1..=rounds as u64 {
        for index in (0..document.scalars()).step_by(CHANGE_SPACING) {
            document.change(index, round);
        }
        let text = document.render();
        let stored = database.document(NAME)?;
        let watch = Stopwatch::start();
        stored.put(&text, &CommitOptions::default())?;
        puts.push(megabytes / watch.seconds());
        for (samples, reopens) in [(&mut young, false), (&mut opened, true)] {
            let mut stored = database.document(NAME)?;
            if reopens {
                database.checkpoint()?;
                drop(stored);
                database.close()?;
                database = Database::open(&folder, Options::default())?;
                stored = database.document(NAME)?;
            }
            let watch = Stopwatch::start();
            let read = stored.head()?.to_json()?;
            samples.push(megabytes / watch.seconds());
            ensure!(read == text, "round {round} read another text");
        }
    }
    database.close()?;
    let measure = Measure::gain("V7p", "mb_per_s", "MB/s");
    for (case, samples, durability) in [
        ("put changed", puts, SYNC),
        ("read young", young, READS_ONLY),
        ("read opened", opened, READS_ONLY),
    ] {
        let measure = measure.clone().case(format!("{bytes}/{case}")).durability(durability);
        session.figures.add(&measure, &[(DURAMEN, samples)]);
    }
    Ok(std::fs::remove_dir_all(folder)?)
}
