//! W: bytes written to the device over the life of data, for each byte of journal payload, as the
//! data grows to many times the journal's size.
//!
//! Counted are all bytes handed to writes: groups of the journal and the zeros that they overwrite,
//! segments of checkpoints and of the compaction that follows by itself, manifests. Commits are not
//! synced one by one, and none is padded.

use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Result;
use duramen::io::Device;
use duramen::{CommitOptions, Database, Durability, JsonPointer, Options};

use crate::device::CountingDevice;
use crate::figures::{Measure, RELAXED};
use crate::random::SplitMix64;
use crate::session::Session;
use crate::subject::DURAMEN;

/// Payload at which what was written is looked at, in journals.
const MULTIPLES: [u64; 3] = [1, 10, 50];
/// Records of an inserted document, and of the one that changes.
const RECORDS: u64 = 2_000;
const CHANGES_PER_COMMIT: u64 = 1_000;
const CHANGED: &str = "changed";

/// Runs W.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    for (kind, name) in [(Kind::Inserts, "inserts"), (Kind::Changes, "changes")] {
        life(session, kind, name)?;
    }
    Ok(())
}

/// What is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// New documents.
    Inserts,
    /// New values of fields that are there.
    Changes,
}

fn life(session: &mut Session, kind: Kind, name: &str) -> Result<()> {
    let journal_bytes = session.scale.journal_bytes;
    let folder = session.new_folder(DURAMEN);
    let device = Arc::new(CountingDevice::new(&folder));
    let shared: Arc<dyn Device> = Arc::<CountingDevice>::clone(&device);
    let options = Options {
        checkpoint_journal_bytes: usize::try_from(journal_bytes)?,
        durability: Durability::Interval(1_000),
        ..Options::default()
    };
    let database = Database::open_device(shared, options)?;
    let mut random = SplitMix64::new(11);
    if kind == Kind::Changes {
        let document = database.create_document(CHANGED)?;
        document.put(records(&mut random), &CommitOptions::default())?;
    }
    let mut commits = 0;
    for multiple in MULTIPLES {
        while database.counters().journal_bytes < multiple * journal_bytes {
            commit(&database, kind, (commits, &mut random))?;
            commits += 1;
        }
        database.checkpoint()?;
        let payload = database.counters().journal_bytes as f64;
        let written = device.written();
        let both = written.journal + written.others;
        let measure = Measure::cost("W", "", "bytes/byte").durability(RELAXED);
        let measure = measure.case(format!("{multiple} x {journal_bytes}/{name}"));
        let mut add = |metric, bytes: u64| {
            let measure = Measure { metric, ..measure.clone() };
            session.figures.add(&measure, &[(DURAMEN, vec![bytes as f64 / payload])]);
        };
        add("written_per_payload_byte", both);
        add("of_it_journal", written.journal);
        add("of_it_segments", written.others);
    }
    database.close()?;
    Ok(std::fs::remove_dir_all(folder)?)
}

fn commit(database: &Database, kind: Kind, (number, random): (u64, &mut SplitMix64)) -> Result<()> {
    if kind == Kind::Inserts {
        let document = database.create_document(&format!("inserted {number}"))?;
        document.put(records(random), &CommitOptions::default())?;
        return Ok(());
    }
    let mut transaction = database.transaction();
    for _ in 0..CHANGES_PER_COMMIT {
        let place = JsonPointer::parse(&format!("/{}/note", random.below(RECORDS)))?;
        transaction.set(CHANGED, &place, format!("\"{}\"", note(random)).as_bytes())?;
    }
    transaction.commit(&CommitOptions::default())?;
    Ok(())
}

/// An array of records of about 180 bytes.
fn records(random: &mut SplitMix64) -> String {
    let mut text = "[".to_owned();
    for id in 0..RECORDS {
        let comma = if id == 0 { "" } else { "," };
        let (amount, note) = (random.below(1_000_000), note(random));
        let _ = write!(text, "{comma}{{\"id\":{id},\"amount\":{amount},\"note\":\"{note}\"}}");
    }
    text.push(']');
    text
}

/// 128 letters that do not repeat.
fn note(random: &mut SplitMix64) -> String {
    let mut note = String::new();
    for _ in 0..8 {
        let _ = write!(note, "{:016x}", random.below(u64::MAX));
    }
    note
}
