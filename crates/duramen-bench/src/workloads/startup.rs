//! S: what it takes to start: a fresh process, an empty database, the first large document.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Result, ensure};
use duramen::{CommitOptions, Database, Options};
use serde::{Deserialize, Serialize};

use super::Child;
use crate::document::{Document, ITEMS};
use crate::figures::{Measure, SYNC};
use crate::files;
use crate::machine;
use crate::sampling::{Rounds, interleave};
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;

const NAME: &str = "document";
const NOTHING: &str = "true";
const FLOOR: &str = "floor";
const PROCESSES: Rounds = Rounds { warmups: 2, measured: 20 };

/// S1: fresh processes of the command line beside a program that does nothing, and an empty
/// database.
pub(crate) fn processes(session: &mut Session) -> Result<()> {
    empty_database(session)?;
    let program = std::env::current_exe()?.with_file_name(DURAMEN);
    if !program.is_file() {
        eprintln!(
            "the command line is skipped, as it does not lie beside this program: build it with \
             `cargo build --release -p duramen-cli`"
        );
        return Ok(());
    }
    let folder = session.new_folder("startup");
    let text = Document::new(ITEMS).render();
    let database = Database::open(&folder, Options::default())?;
    database.create_document(NAME)?.put(&text, &CommitOptions::default())?;
    database.close()?;
    let samples =
        interleave(&mut [Start::Nothing, Start::Version, Start::Get], PROCESSES, |start, _| {
            let mut command = start.command(&program, &folder);
            let watch = Stopwatch::start();
            let output = command.output()?;
            let micros = watch.micros();
            start.check(&output, &text)?;
            Ok(micros / 1e3)
        })?;
    let [nothing, version, get] = samples.as_slice() else { return Ok(()) };
    let measure = Measure::cost("S1", "time", "ms");
    let figures = &mut session.figures;
    figures.add(&measure.clone().case("nothing"), &[(FLOOR, nothing.clone())]);
    figures.add(&measure.clone().case("version"), &[(DURAMEN, version.clone())]);
    figures.add(&measure.clone().case("get"), &[(DURAMEN, get.clone())]);
    let over = get.iter().zip(nothing).map(|(get, nothing)| get - nothing).collect();
    let over_nothing = Measure { metric: "time_over_nothing", ..measure };
    figures.add(&over_nothing.case("get"), &[(DURAMEN, over)]);
    Ok(std::fs::remove_dir_all(folder)?)
}

/// What a fresh process does.
#[derive(Debug, Clone, Copy)]
enum Start {
    Nothing,
    Version,
    Get,
}

impl Start {
    fn command(self, program: &Path, database: &Path) -> Command {
        let mut command = match self {
            Self::Nothing => Command::new(NOTHING),
            Self::Version | Self::Get => Command::new(program),
        };
        match self {
            Self::Nothing => {}
            Self::Version => {
                command.arg("--version");
            }
            Self::Get => {
                command.arg("get").arg(database).arg(NAME);
            }
        }
        command
    }

    fn check(self, output: &Output, text: &str) -> Result<()> {
        let (said, complaint) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "{self:?} failed: {}", complaint.trim());
        let said = std::str::from_utf8(said)?;
        let right = match self {
            Self::Nothing => said.is_empty(),
            Self::Version => said.starts_with(DURAMEN),
            Self::Get => said.trim_end() == text,
        };
        ensure!(right, "{self:?} printed something else: {said}");
        Ok(())
    }
}

fn empty_database(session: &mut Session) -> Result<()> {
    let folder = session.new_folder("empty");
    Database::open(&folder, Options::default())?.close()?;
    let space = files::space(&folder)?;
    let measure = Measure::cost("S1", "bytes", "bytes").case("empty database");
    session.figures.add(&measure, &[(DURAMEN, vec![space.apparent as f64])]);
    let allocated = Measure { metric: "allocated_bytes", ..measure };
    session.figures.add(&allocated, &[(DURAMEN, vec![space.allocated as f64])]);
    Ok(std::fs::remove_dir_all(folder)?)
}

/// S2: how much memory a put of a large document takes, in a process of its own.
pub(crate) fn large_put(session: &mut Session) -> Result<()> {
    let bytes = session.scale.put_bytes;
    let text = Document::with_bytes(usize::try_from(bytes)?).render();
    let folder = session.new_folder("put");
    std::fs::create_dir_all(&folder)?;
    let json = folder.join("document.json");
    files::write(&json, text.as_bytes())?;
    let mut seen = Vec::new();
    for round in 0..session.scale.rounds.measured {
        let database = folder.join(format!("database-{round}"));
        let put = Put { database, json: json.clone(), what: What::Put };
        let put: Seen = Child::Put(put).in_a_fresh_process()?;
        let database = folder.join("unused");
        let read = Put { database, json: json.clone(), what: What::ReadFile };
        let read: Seen = Child::Put(read).in_a_fresh_process()?;
        seen.push((put, read));
    }
    let len = text.len() as f64;
    let case = format!("put of {bytes}");
    let measure = Measure::cost("S2", "peak_memory_ratio", "sizes").case(&case).durability(SYNC);
    let mut add = |metric, unit, value: &dyn Fn(&(Seen, Seen)) -> f64| {
        let samples = seen.iter().map(value).collect();
        let measure = Measure { metric, unit, ..measure.clone() };
        session.figures.add(&measure, &[(DURAMEN, samples)]);
    };
    add("peak_memory_ratio", "sizes", &|(put, _)| put.peak_bytes / len);
    // The process and the text itself, before a database is opened.
    add("peak_memory_ratio_before", "sizes", &|(_, read)| read.peak_bytes / len);
    add("peak_memory", "bytes", &|(put, _)| put.peak_bytes);
    add("time", "ms", &|(put, _)| put.millis);
    Ok(std::fs::remove_dir_all(folder)?)
}

/// A put in a fresh process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Put {
    database: PathBuf,
    json: PathBuf,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum What {
    Put,
    /// Everything but the put.
    ReadFile,
}

#[derive(Debug, Serialize, Deserialize)]
struct Seen {
    peak_bytes: f64,
    millis: f64,
}

impl Put {
    /// Does it in this process and prints what was seen.
    pub(crate) fn run(&self) -> Result<()> {
        let text = files::read_text(&self.json)?;
        let mut millis = 0.0;
        if self.what == What::Put {
            let database = Database::open(&self.database, Options::default())?;
            let mut transaction = database.transaction();
            let watch = Stopwatch::start();
            transaction.put(NAME, text.as_bytes())?;
            transaction.commit(&CommitOptions::default())?;
            millis = watch.micros() / 1e3;
            let seen = Seen { peak_bytes: machine::process_bytes("VmHWM")?, millis };
            println!("{}", serde_json::to_string(&seen)?);
            let saved = database.document(NAME)?.head()?.to_json()?;
            ensure!(saved == text, "the saved document differs");
            return Ok(database.close()?);
        }
        let seen = Seen { peak_bytes: machine::process_bytes("VmHWM")?, millis };
        println!("{}", serde_json::to_string(&seen)?);
        Ok(())
    }
}
