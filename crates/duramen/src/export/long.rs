//! Values of a history that are too long to be held in memory.
//!
//! Only the first revision of a history has one: it is loaded in bulk. A later one is told as what
//! it changed.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

use crate::bulk::{BulkOptions, Progress, RecordVersions};
use crate::content_hash::ContentHash;
use crate::document::Document;
use crate::engine::Engine;
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::export::{ExportedContent, ExportedRevision, HistoryImport};
use crate::json::JsonPointer;
use crate::limits::EXPORT_HELD_BYTES_MAX;
use crate::options::DocumentOptions;
use crate::snapshot::Snapshot;
use crate::tree::serialize::Format;

/// Bytes of text that are held at least.
const HELD_BYTES_MIN: usize = 1 << 20;

/// Bytes of text that are held of a value.
pub(crate) fn held_bytes(engine: &Engine) -> usize {
    (engine.options.memory_bytes / 16).clamp(HELD_BYTES_MIN, EXPORT_HELD_BYTES_MAX)
}

impl Document {
    /// The value of a revision and its hash. That of a first revision may be long.
    pub(super) fn exported_value(
        &self,
        snapshot: &Snapshot,
        is_first: bool,
    ) -> Result<(ExportedContent, ContentHash)> {
        if !is_first {
            let value = snapshot.to_json()?;
            let hash = ContentHash::of_json(value.as_bytes());
            return Ok((ExportedContent::Value(value), hash));
        }
        let bytes_max = held_bytes(self.parts().0);
        let mut held = Held { text: Vec::new(), bytes_max };
        match snapshot.write_json(&JsonPointer::root(), &Format::default(), &mut held) {
            Err(_) if held.is_over() => Ok((ExportedContent::LongValue, snapshot.content_hash()?)),
            written => {
                written?;
                let hash = ContentHash::of_json(&held.text);
                let value = String::from_utf8(held.text).map_err(|error| {
                    Error::new(ErrorKind::Internal, format!("printed JSON is no UTF-8: {error}"))
                })?;
                Ok((ExportedContent::Value(value), hash))
            }
        }
    }
}

/// Keeps what is written to it, as long as that is short.
struct Held {
    text: Vec<u8>,
    bytes_max: usize,
}

impl Held {
    fn is_over(&self) -> bool {
        self.text.len() > self.bytes_max
    }
}

impl Write for Held {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(buf);
        if self.is_over() {
            return Err(io::Error::other("the value is too long to be held in memory"));
        }
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl HistoryImport {
    /// Makes the first revision of what is read from `text`.
    pub(super) fn load(
        &self,
        given: &ExportedRevision,
        text: &mut dyn Read,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let expected = self.expected(given)?;
        if self.has_unique()? {
            let text = io::read_to_string(text);
            let text = text.map_err(|error| Error::io("cannot read the JSON text", error))?;
            let content = ExportedContent::Value(text);
            return self.commit(&ExportedRevision { content, ..given.clone() });
        }
        let declared = if self.is_missing {
            self.facts.options.clone().without_unique().0
        } else {
            DocumentOptions::default()
        };
        let options = BulkOptions {
            declared,
            commit: CommitOptions {
                author: given.author.clone(),
                message: given.message.clone(),
                timestamp: Some(given.timestamp),
                ..CommitOptions::default()
            },
            ..BulkOptions::default()
        };
        let mut text = Hashed { text, sha256: Sha256::new(), expected, found: None };
        let versions = RecordVersions { by_name: given.versions.clone(), are_there: true };
        let target = (self.name.as_str(), &versions);
        let loaded = self.database.bulk_load_versions(target, &mut text, &options, progress);
        if let Some(found) = text.found.filter(|found| *found != expected) {
            let message = format!(
                "revision {} is to have the hash {expected}, but has {found}: it was changed or \
                 cut after it was exported; export the history again",
                given.revision
            );
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        loaded.map(drop)
    }

    /// Whether the document is there and has a unique index, for which a bulk load would have to
    /// compare its records.
    fn has_unique(&self) -> Result<bool> {
        if self.is_missing {
            return Ok(false);
        }
        let (_, unique) = self.database.document(&self.name)?.options()?.without_unique();
        Ok(!unique.is_empty())
    }

    /// The hash of a revision whose value is long, if it can be loaded.
    fn expected(&self, given: &ExportedRevision) -> Result<ContentHash> {
        let versions = 2..=i64::MAX.cast_unsigned();
        let why = match given.hash {
            _ if self.taken.0 > 0 => "is not the first one: only that can have a long value",
            None => "has a long value without a hash",
            _ if !given.counted.is_empty() => "is the first one: no record counts on there",
            _ if given.versions.values().any(|version| !versions.contains(version)) => {
                "gives a record a version that is no later one than the first"
            }
            Some(hash) => return Ok(hash),
        };
        let message = format!("revision {} {why}", given.revision);
        Err(Error::new(ErrorKind::Invalid, message))
    }
}

/// Reads a text and holds its hash against what it is to be. At the end of another text it fails,
/// so that nothing is made of it.
struct Hashed<'t> {
    text: &'t mut dyn Read,
    sha256: Sha256,
    expected: ContentHash,
    /// The hash, once all was read.
    found: Option<ContentHash>,
}

impl Read for Hashed<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(buf)?;
        self.sha256.update(buf.get(..read).unwrap_or_default());
        if read == 0 && !buf.is_empty() {
            let found = ContentHash::from_bytes(self.sha256.clone().finalize().into());
            self.found = Some(found);
            if found != self.expected {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it has another hash"));
            }
        }
        Ok(read)
    }
}

/// That a long value was taken for one that is at hand.
pub(super) fn not_at_hand() -> Error {
    let message = "the value is too long to be at hand: it is read by `push_long`";
    Error::new(ErrorKind::Invalid, message)
}
