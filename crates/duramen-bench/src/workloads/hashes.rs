//! X1: the price of a content hash, beside reading the document that it is made of, and beside the
//! checkpoint that keeps it.

use std::hint::black_box;

use anyhow::{Result, ensure};
use duramen::{CommitOptions, ContentHash, Database, JsonPointer, Snapshot};
use sha2::{Digest, Sha256};
use twox_hash::XxHash3_128;

use crate::document::{Document, ITEMS};
use crate::figures::Measure;
use crate::sampling::{self, interleave};
use crate::session::Session;
use crate::subject::DURAMEN;

/// The largest document of which a checkpoint keeps a hash has a little more.
const LARGE_BYTES: usize = 1_000_000;

/// What is timed of a document and its text.
type Work = fn(&Snapshot, &[u8]) -> Result<()>;

/// Reading a document, reading it for its hash, and hashing a text that is there.
const WORKS: [(&str, &str, Work); 5] = [
    (DURAMEN, "read", |snapshot, text| {
        ensure!(snapshot.to_json()?.len() == text.len(), "a read of another length");
        Ok(())
    }),
    (DURAMEN, "content hash", |snapshot, _| {
        black_box(snapshot.content_hash()?);
        Ok(())
    }),
    ("SHA-256", "hash of the text", |_, text| {
        black_box(Sha256::digest(text));
        Ok(())
    }),
    ("BLAKE3", "hash of the text", |_, text| {
        black_box(blake3::hash(text));
        Ok(())
    }),
    ("XXH3-128", "hash of the text", |_, text| {
        black_box(XxHash3_128::oneshot(text));
        Ok(())
    }),
];

/// X1.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    let database = Database::open(session.new_folder("hashes"), duramen::Options::default())?;
    let documents = [("2.4 KB", Document::new(ITEMS)), ("1 MB", Document::with_bytes(LARGE_BYTES))];
    for (size, document) in documents {
        let text = document.render();
        let stored = database.create_document(size)?;
        stored.put(&text, &CommitOptions::default())?;
        let snapshot = stored.head()?;
        let json = snapshot.to_json()?;
        ensure!(snapshot.content_hash()? == ContentHash::of_json(json.as_bytes()), "a wrong hash");
        let mut works = WORKS;
        let samples = interleave(&mut works, session.scale.rounds, |(_, _, work), _| {
            let (micros, ()) = sampling::repeated(|| work(&snapshot, json.as_bytes()))?;
            Ok(micros)
        })?;
        for ((subject, what, _), samples) in works.into_iter().zip(samples) {
            let measure = Measure::cost("X1", "time", "us").case(format!("{size}, {what}"));
            session.figures.add(&measure, &[(subject, samples)]);
        }
        let samples = checkpoints(session, &document)?;
        let measure = Measure::cost("X1", "time", "us").case(format!("{size}, checkpoint"));
        session.figures.add(&measure, &[(DURAMEN, samples)]);
    }
    Ok(())
}

/// Times of changing a scalar and writing a checkpoint, in memory: what a device takes is left
/// out. The document is read from segments for its hash each time.
fn checkpoints(session: &Session, document: &Document) -> Result<Vec<f64>> {
    let database = Database::memory()?;
    let stored = database.create_document("d")?;
    stored.put(document.render(), &CommitOptions::default())?;
    let at = JsonPointer::parse("/counter")?;
    let mut counter = 0_u64;
    let samples = interleave(&mut [()], session.scale.rounds, |(), _| {
        let (micros, ()) = sampling::repeated(|| {
            counter += 1;
            stored.set(&at, counter.to_string(), &CommitOptions::default())?;
            Ok(database.checkpoint()?)
        })?;
        Ok(micros)
    })?;
    Ok(samples.into_iter().flatten().collect())
}
