//! RR: random records of the array of workload A: decoded already, and read from blocks that the
//! operating system alone has in memory.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use duramen::{CommitOptions, Database, Format, JsonPointer, Options};

use super::queries::People;
use crate::figures::Measure;
use crate::random::SplitMix64;
use crate::sampling::Latencies;
use crate::session::Session;
use crate::subject::DURAMEN;

const NAME: &str = "people";
const READS: u64 = 20_000;
/// With so little memory next to nothing of the records stays decoded.
const SMALL_MEMORY_BYTES: usize = 512 << 10;

/// Runs RR.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    let people = People::new(session.scale.records);
    let folder = session.new_folder(DURAMEN);
    let database = Database::open(&folder, Options::default())?;
    database.create_document(NAME)?.put(&people.json, &CommitOptions::default())?;
    database.checkpoint()?;
    database.close()?;
    let inside = people.json.get(1..people.json.len() - 1).context("an array")?;
    let texts: Vec<&str> =
        inside.split_inclusive('}').map(|text| text.trim_start_matches(',')).collect();
    read_with(session, &folder, &texts, "")?;
    let database = Database::open(&folder, Options::default())?;
    database.compact(&mut |_, _| ControlFlow::Continue(()))?;
    database.close()?;
    read_with(session, &folder, &texts, ", compacted")?;
    Ok(std::fs::remove_dir_all(folder)?)
}

/// Reads with much memory and with next to none.
fn read_with(session: &mut Session, folder: &Path, texts: &[&str], state: &str) -> Result<()> {
    let memories = [("decoded", Options::default().memory_bytes), ("blocks", SMALL_MEMORY_BYTES)];
    for (case, memory_bytes) in memories {
        let options = Options { memory_bytes, ..Options::default() };
        let database = Database::open(folder, options)?;
        let latencies = read(&database, texts)?;
        let measure = Measure::cost("RR", "time_per_read", "us");
        let measure = measure.case(format!("{}/{case}{state}", session.scale.records));
        session.figures.add_percentiles(&measure, DURAMEN, &latencies);
    }
    Ok(())
}

/// Reads random records; those of the first half decode what there is room for, and do not count.
fn read(database: &Database, texts: &[&str]) -> Result<Latencies> {
    let snapshot = database.document(NAME)?.head()?;
    let mut random = SplitMix64::new(42);
    let mut latencies = Latencies::new();
    let (format, mut text) = (Format::default(), Vec::new());
    for read in 0..2 * READS {
        if read == READS {
            latencies.clear();
        }
        let index = random.below(texts.len() as u64);
        let place = JsonPointer::parse(&format!("/{index}"))?;
        text.clear();
        latencies.time(|| Ok(snapshot.append_json(&place, &format, &mut text)?))?;
        let expected = texts.get(usize::try_from(index)?).map(|text| text.as_bytes());
        ensure!(Some(text.as_slice()) == expected, "record {index} is another one");
    }
    Ok(latencies)
}
