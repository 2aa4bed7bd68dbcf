//! V7f: one-field commits to documents of different sizes, taking turns, so that what they cost is
//! compared in one run on one device; and a small part read from each.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use duramen::{
    BulkOptions, CommitOptions, Database, Document, Format, JsonPointer, Options, Revision,
};

use crate::document;
use crate::figures::{Measure, READS_ONLY, SYNC};
use crate::files;
use crate::sampling::{Latencies, Rounds, interleave};
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;

const NAME: &str = "document";
const COMMITS_PER_TURN: u64 = 10;
/// Reads of a part of each document in a turn.
const READS: u64 = 100;
/// Documents from this size on are loaded, not put.
const LOADED_BYTES_MIN: u64 = 100_000_000;

/// Runs V7f.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    let sizes: Vec<u64> = session.scale.documents.iter().map(|(bytes, _)| *bytes).collect();
    let mut subjects = Vec::new();
    for bytes in sizes {
        subjects.push(Subject::with_bytes(session, bytes)?);
    }
    let turns = usize::try_from(session.scale.flat_commits / COMMITS_PER_TURN)?;
    let rounds = Rounds { warmups: 0, measured: turns };
    interleave(&mut subjects, rounds, |subject, round| {
        subject.commit(round.number as u64 * COMMITS_PER_TURN)
    })?;
    let commits = turns as u64 * COMMITS_PER_TURN;
    for subject in &mut subjects {
        subject.reopen(commits)?;
    }
    let rounds = session.scale.rounds;
    let parts = interleave(&mut subjects, rounds, |subject, _| subject.read_part(commits))?;
    let wholes = interleave(&mut subjects, rounds, |subject, _| subject.read_whole(commits))?;
    publish(session, &subjects, commits);
    for ((subject, parts), wholes) in subjects.iter().zip(parts).zip(wholes) {
        let case = subject.bytes.to_string();
        let measure = Measure::cost("V7f", "time_per_part", "us").durability(READS_ONLY);
        session.figures.add(&measure.case(&case), &[(DURAMEN, parts)]);
        let measure = Measure::gain("V7f", "whole_mb_per_s", "MB/s").durability(READS_ONLY);
        session.figures.add(&measure.case(&case), &[(DURAMEN, wholes)]);
    }
    for subject in subjects {
        let folder = subject.folder.clone();
        drop(subject);
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}

/// What each size cost, and as a multiple of what the first one did.
fn publish(session: &mut Session, subjects: &[Subject], commits: u64) {
    let costs: Vec<[Option<f64>; 3]> = subjects
        .iter()
        .map(|subject| {
            let each = |bytes: u64| Some(bytes as f64 / commits as f64);
            let median = subject.latencies.quantile_us(0.5);
            [median, each(subject.journal_bytes), each(subject.segment_bytes)]
        })
        .collect();
    let named = [
        ("p50", "us", "p50_to_first"),
        ("journal_bytes_per_commit", "bytes", "journal_bytes_to_first"),
        ("added_bytes_per_version", "bytes", "added_bytes_to_first"),
    ];
    for (index, (metric, unit, to_first)) in named.into_iter().enumerate() {
        let first = costs.first().and_then(|costs| costs[index]);
        for (subject, costs) in subjects.iter().zip(&costs) {
            let (Some(first), Some(cost)) = (first, costs[index]) else { continue };
            let mut add = |metric, unit, value| {
                let measure = Measure::cost("V7f", metric, unit).durability(SYNC);
                let measure = measure.case(subject.bytes.to_string());
                session.figures.add(&measure, &[(DURAMEN, vec![value])]);
            };
            add(metric, unit, cost);
            add(to_first, "x", cost / first);
        }
    }
}

/// A document of one size in a database of its own.
struct Subject {
    bytes: u64,
    folder: std::path::PathBuf,
    open: Option<(Database, Document)>,
    /// The text of the item that is read, and bytes of the text without the counter.
    part: (JsonPointer, String),
    rest_bytes: u64,
    latencies: Latencies,
    journal_bytes: u64,
    segment_bytes: u64,
}

impl Subject {
    fn with_bytes(session: &mut Session, bytes: u64) -> Result<Self> {
        let folder = session.new_folder(DURAMEN);
        let database = Database::open(&folder, Options::default())?;
        let texts = session.new_folder("text");
        std::fs::create_dir_all(&texts)?;
        let file = texts.join("document.json");
        let (items, length) = write_text(&file, bytes)?;
        if bytes >= LOADED_BYTES_MIN {
            let (mut text, options) = (files::open(&file)?, BulkOptions::default());
            database.bulk_load(NAME, &mut text, &options, &mut |_| ControlFlow::Continue(()))?;
        } else {
            let text = files::read_text(&file)?;
            database.create_document(NAME)?.put(text, &CommitOptions::default())?;
        }
        std::fs::remove_dir_all(texts)?;
        // What the document itself takes is not the commits'.
        database.checkpoint()?;
        let segment_bytes = database.stats()?.segment_bytes;
        let journal_bytes = database.counters().journal_bytes;
        let document = database.document(NAME)?;
        let index = items / 2;
        Ok(Self {
            bytes,
            folder,
            open: Some((database, document)),
            part: (JsonPointer::parse(&format!("/items/{index}"))?, document::item(index)),
            rest_bytes: length - 1,
            latencies: Latencies::new(),
            journal_bytes,
            segment_bytes,
        })
    }

    fn document(&self) -> Result<&Document> {
        Ok(&self.open.as_ref().context("an open database")?.1)
    }

    /// Some commits after so many.
    fn commit(&mut self, done: u64) -> Result<()> {
        let counter = JsonPointer::parse("/counter")?;
        let (_, document) = self.open.as_ref().context("an open database")?;
        for value in done + 1..=done + COMMITS_PER_TURN {
            let (value, options) = (value.to_string(), CommitOptions::default());
            let outcome = self.latencies.time(|| Ok(document.set(&counter, &value, &options)?))?;
            ensure!(outcome.is_committed(), "the counter changes");
        }
        Ok(())
    }

    /// Counts what the commits added, and opens the database again.
    fn reopen(&mut self, commits: u64) -> Result<()> {
        let (database, document) = self.open.take().context("an open database")?;
        self.journal_bytes = database.counters().journal_bytes - self.journal_bytes;
        database.checkpoint()?;
        self.segment_bytes = database.stats()?.segment_bytes.saturating_sub(self.segment_bytes);
        drop(document);
        database.close()?;
        let database = Database::open(&self.folder, Options::default())?;
        let document = database.document(NAME)?;
        ensure!(document.head_revision()?.0 == commits + 1, "a revision for each commit");
        self.open = Some((database, document));
        Ok(())
    }

    /// The mean time to read one item, at revisions from the first to the last.
    fn read_part(&mut self, commits: u64) -> Result<f64> {
        let document = self.document()?;
        let (place, expected) = &self.part;
        let mut text = Vec::new();
        let watch = Stopwatch::start();
        for read in 0..READS {
            text.clear();
            let snapshot = document.at(Revision(1 + read * commits / READS))?;
            snapshot.append_json(place, &Format::default(), &mut text)?;
        }
        let micros = watch.micros() / READS as f64;
        ensure!(text == expected.as_bytes(), "the item is another one");
        Ok(micros)
    }

    /// Megabytes of JSON text a second of the whole document in the middle of its history.
    fn read_whole(&mut self, commits: u64) -> Result<f64> {
        let revision = commits / 2;
        let watch = Stopwatch::start();
        let text = self.document()?.at(Revision(revision))?.to_json()?;
        let seconds = watch.seconds();
        let digits = (revision - 1).to_string().len() as u64;
        ensure!(text.len() as u64 == self.rest_bytes + digits, "the text is another one");
        Ok(text.len() as f64 / 1e6 / seconds)
    }
}

/// Writes the document of section V with as many items as make up the size; their number, and the
/// bytes of the text.
fn write_text(file: &Path, bytes: u64) -> Result<(u64, u64)> {
    let header = document::Document::new(0).render();
    let (start, end) = header.split_at(header.len() - 2);
    let mut out = BufWriter::new(files::create(file)?);
    out.write_all(start.as_bytes())?;
    let (mut length, mut items, mut text) = (header.len() as u64, 0, String::new());
    while length < bytes {
        text.clear();
        let comma = if items == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{}", document::item(items));
        out.write_all(text.as_bytes())?;
        length += text.len() as u64;
        items += 1;
    }
    out.write_all(end.as_bytes())?;
    out.flush()?;
    Ok((items, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_the_size_asked_for_and_is_the_document_of_section_v() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (items, length) = write_text(file.path(), 2_400).unwrap();
        let text = files::read_text(file.path()).unwrap();
        assert_eq!(text, document::Document::new(usize::try_from(items).unwrap()).render());
        assert_eq!(length, text.len() as u64);
        assert!((2_400..2_460).contains(&length), "{length} bytes");
    }
}
