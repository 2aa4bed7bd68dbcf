//! A0: the records of workload A loaded from a file; V7p: whole large documents put and read.
//!
//! A load runs in a fresh process, so that the peak of its memory is its own. The file was just
//! written, so it is read from the page cache; what is loaded is on the device in the end.

use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use duramen::{
    BulkOptions, BulkProgress, CommitOptions, Database, DocumentOptions, KeyKind, Options,
};
use duramen_sql::{RecordFile, RecordLoad};
use serde::{Deserialize, Serialize};

use super::Child;
use super::queries::People;
use crate::document::Document;
use crate::figures::{Measure, READS_ONLY, SYNC};
use crate::files;
use crate::machine;
use crate::session::Session;
use crate::stopwatch::{Stopwatch, processor_seconds};
use crate::subject::DURAMEN;

const NAME: &str = "people";
const MEGABYTE: f64 = 1e6;
/// Bytes of lines that are read at a time, as the program reads them.
const LINES_BYTES: usize = 128 << 10;
/// Values of a document between two that a changed one differs in, and what that is called.
const SPACINGS: [(usize, &str); 2] = [(1_000, "put changed"), (1, "put all changed")];

/// Runs A0.
pub(crate) fn records(session: &mut Session) -> Result<()> {
    let records = session.scale.records;
    let folder = session.new_folder("ingest");
    std::fs::create_dir_all(&folder)?;
    let people = People::new(records);
    let (array, lines) = (&people.json, people.lines());
    let forms = [
        ("array", array, Form::Array),
        ("ndjson", &lines, Form::Lines),
        ("collection", &lines, Form::Records),
    ];
    for (name, text, form) in forms {
        let file = folder.join(name);
        files::write(&file, text.as_bytes())?;
        let mut seen = Vec::new();
        for round in 0..session.scale.rounds.measured {
            let database = folder.join(format!("{name}-{round}"));
            let load = Load { database: database.clone(), file: file.clone(), form };
            let one: Seen = Child::Load(load).in_a_fresh_process()?;
            ensure!(one.records == records, "{} records were loaded", one.records);
            seen.push(one);
            std::fs::remove_dir_all(database)?;
        }
        add(session, (text.len(), records), &format!("{records}/{name}"), &seen);
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
    form: Form,
}

/// What is loaded: a document that is an array, from JSON or from lines, or a collection.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Form {
    Array,
    Lines,
    Records,
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
        let watch = Stopwatch::start();
        let progress = self.load(&database)?;
        let seconds = watch.seconds();
        let segment_bytes = database.stats()?.segment_bytes as f64;
        let records = progress.values;
        let seen =
            Seen { seconds, records, segment_bytes, peak_bytes: machine::process_bytes("VmHWM")? };
        println!("{}", serde_json::to_string(&seen)?);
        Ok(database.close()?)
    }

    fn load(&self, database: &Database) -> Result<BulkProgress> {
        let mut go_on = |_| ControlFlow::Continue(());
        let lines = matches!(self.form, Form::Lines);
        let options = BulkOptions { lines, ..BulkOptions::default() };
        let mut file = files::open(&self.file)?;
        let (_, progress) = match self.form {
            Form::Array | Form::Lines => {
                database.bulk_load(NAME, &mut file, &options, &mut go_on)?
            }
            Form::Records => {
                let declared =
                    DocumentOptions { collection: Some(KeyKind::I64), ..Default::default() };
                let options = BulkOptions { declared, ..options };
                let load = RecordLoad { name: NAME, keys: KeyKind::I64, options };
                let lines = Box::new(BufReader::with_capacity(LINES_BYTES, file));
                load.run(database, RecordFile::ndjson(lines, "id"), &mut go_on)?
            }
        };
        Ok(progress)
    }
}

/// Runs V7p: the text of a large document put as a whole, over one that differs here and there or
/// in every value, and read as a whole, from memory and just opened.
pub(crate) fn whole_documents(session: &mut Session) -> Result<()> {
    for (spacing, case) in SPACINGS {
        whole_document(session, spacing, case)?;
    }
    Ok(())
}

fn whole_document(session: &mut Session, spacing: usize, put: &str) -> Result<()> {
    let bytes = session.scale.put_bytes;
    let rounds = session.scale.rounds.measured;
    let mut document = Document::with_bytes(usize::try_from(bytes)?);
    let mut seen = Whole::default();
    let folder = session.new_folder("whole");
    let mut database = Database::open(&folder, Options::default())?;
    database.create_document(NAME)?.put(document.render(), &CommitOptions::default())?;
    for round in 1..=rounds as u64 {
        for index in (0..document.scalars()).step_by(spacing) {
            document.change(index, round);
        }
        let text = document.render();
        seen.put(&database, &text)?;
        ensure!(seen.read(&database, false)? == text, "round {round} read another text");
        database.checkpoint()?;
        database.close()?;
        database = Database::open(&folder, Options::default())?;
        ensure!(seen.read(&database, true)? == text, "round {round} read another text");
    }
    database.close()?;
    let measure = Measure::gain("V7p", "mb_per_s", "MB/s");
    let used = Measure { metric: "mb_per_processor_s", ..measure.clone() };
    let of_reads = |state: &str| format!("{bytes}/read {state} after {put}");
    for (measure, case, samples, durability) in [
        (&measure, format!("{bytes}/{put}"), seen.puts, SYNC),
        (&used, format!("{bytes}/{put}"), seen.puts_used, SYNC),
        (&measure, of_reads("young"), seen.young, READS_ONLY),
        (&measure, of_reads("opened"), seen.opened, READS_ONLY),
    ] {
        let measure = measure.clone().case(case).durability(durability);
        session.figures.add(&measure, &[(DURAMEN, samples)]);
    }
    Ok(std::fs::remove_dir_all(folder)?)
}

/// Megabytes a second, a sample for each round.
#[derive(Debug, Default)]
struct Whole {
    puts: Vec<f64>,
    /// The same by processor time.
    puts_used: Vec<f64>,
    young: Vec<f64>,
    opened: Vec<f64>,
}

impl Whole {
    fn put(&mut self, database: &Database, text: &str) -> Result<()> {
        let stored = database.document(NAME)?;
        let (used, watch) = (processor_seconds(), Stopwatch::start());
        stored.put(text, &CommitOptions::default())?;
        let megabytes = text.len() as f64 / MEGABYTE;
        self.puts.push(megabytes / watch.seconds());
        self.puts_used.push(megabytes / (processor_seconds() - used));
        Ok(())
    }

    fn read(&mut self, database: &Database, is_opened: bool) -> Result<String> {
        let stored = database.document(NAME)?;
        let watch = Stopwatch::start();
        let read = stored.head()?.to_json()?;
        let rate = read.len() as f64 / MEGABYTE / watch.seconds();
        if is_opened {
            self.opened.push(rate);
        } else {
            self.young.push(rate);
        }
        Ok(read)
    }
}
