//! What of a history is too long to be held in memory: a value, and the records that departed.
//!
//! Only the first revision of a history has either: it is loaded in bulk. A later one is told as
//! what it changed.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read, Write};

use sha2::{Digest, Sha256};

use crate::bulk::{BulkOptions, Departed, Progress, RecordVersions};
use crate::content_hash::ContentHash;
use crate::database::Database;
use crate::document::Document;
use crate::engine::Engine;
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::export::{DepartedRecords, ExportedContent, ExportedRevision, HistoryImport};
use crate::json::JsonPointer;
use crate::limits::{EXPORT_HELD_BYTES_MAX, RECORD_VERSION_MAX};
use crate::options::DocumentOptions;
use crate::snapshot::Snapshot;
use crate::transaction::read_departed;
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
    /// Makes the first revision, of which something is read from `text`.
    pub(super) fn load(
        &self,
        given: &ExportedRevision,
        text: &mut dyn Read,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let given = &*self.as_it_is_printed(given)?;
        let mut parts = self.expected(given)?;
        if self.has_unique {
            return self.commit(&held(given, text)?);
        }
        let declared = if self.is_missing {
            self.facts.options.clone().while_imported()
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
        let versions = RecordVersions {
            by_name: given.versions.clone(),
            are_there: true,
            departed: match &given.departed {
                DepartedRecords::Held(held) if held.is_empty() => Departed::Nothing,
                DepartedRecords::Held(held) => Departed::ByName(held.clone()),
                DepartedRecords::Long(_) if given.content == ExportedContent::Deleted => {
                    Departed::Alone
                }
                DepartedRecords::Long(_) => Departed::Behind,
            },
        };
        let target = (self.name.as_str(), &versions);
        // What is at hand stands before the rest, as what is not would.
        let (value, end): (&[u8], &[u8]) = match &given.content {
            ExportedContent::Value(json) => (json.as_bytes(), b"\n"),
            _ => (b"", b""),
        };
        let mut text = value.chain(end).chain(text);
        let mut text = Hashed::new(&mut text, &mut parts);
        let loaded = self.database.bulk_load_versions(target, &mut text, &options, progress);
        if let Some((expected, found)) = text.wrong {
            let message = format!(
                "revision {} is to have the hash {expected}, but has {found}: it was changed or \
                 cut after it was exported; export the history again",
                given.revision
            );
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        loaded.map(drop)
    }

    /// A revision whose value at hand is the text that it is printed as: another one, such as one
    /// with blanks, has not the hash, and may have the line ends that stand between long texts.
    fn as_it_is_printed<'g>(
        &self,
        given: &'g ExportedRevision,
    ) -> Result<Cow<'g, ExportedRevision>> {
        let ExportedContent::Value(json) = &given.content else { return Ok(Cow::Borrowed(given)) };
        let is_told = given.hash.is_none_or(|hash| hash == ContentHash::of_json(json.as_bytes()));
        if self.taken.0 > 0 || is_told && !json.contains('\n') {
            return Ok(Cow::Borrowed(given));
        }
        let options = if self.is_missing {
            self.facts.options.clone()
        } else {
            self.database.document(&self.name)?.options()?
        };
        // As it is a document, it is printed as one.
        let memory = Database::memory()?;
        let document = memory.create_document_with(&self.name, &options.without_unique().0)?;
        document.put(json, &CommitOptions::default())?;
        let content = ExportedContent::Value(document.head()?.to_json()?);
        Ok(Cow::Owned(ExportedRevision { content, ..given.clone() }))
    }

    /// The hashes of the parts of a revision that can be loaded: of its value, and of what departed
    /// if that is long.
    fn expected(&self, given: &ExportedRevision) -> Result<Parts> {
        let versions = 2..=RECORD_VERSION_MAX;
        let value = match (&given.content, given.hash) {
            (ExportedContent::Value(json), None) => Some(ContentHash::of_json(json.as_bytes())),
            (_, hash) => hash,
        };
        let why = match value {
            _ if self.taken.0 > 0 => "is not the first one: only that can have a long value",
            _ if matches!(given.content, ExportedContent::Patch { .. }) => {
                "is the first one: it changes nothing before it"
            }
            _ if given.long_texts() == 0 => "has nothing that is long",
            None if given.content != ExportedContent::Deleted => "has a long value without a hash",
            _ if !given.counted.is_empty() => "is the first one: no record counts on there",
            _ if given.versions.values().any(|version| !versions.contains(version)) => {
                "gives a record a version that is no later one than the first"
            }
            value => {
                let departed = match &given.departed {
                    DepartedRecords::Long(hash) => Some(*hash),
                    DepartedRecords::Held(_) => None,
                };
                return Ok(value.into_iter().chain(departed).collect());
            }
        };
        let message = format!("revision {} {why}", given.revision);
        Err(Error::new(ErrorKind::Invalid, message))
    }
}

/// A revision with what of it is read from `text`.
fn held(given: &ExportedRevision, text: &mut dyn Read) -> Result<ExportedRevision> {
    let text = io::read_to_string(text);
    let text = text.map_err(|error| Error::io("cannot read the JSON text", error))?;
    let mut given = given.clone();
    let mut behind = text.as_str();
    if given.content == ExportedContent::LongValue {
        let (value, rest) = match given.departed {
            DepartedRecords::Long(_) => text.split_once('\n').unwrap_or((&text, "")),
            DepartedRecords::Held(_) => (text.as_str(), ""),
        };
        given.content = ExportedContent::Value(value.to_owned());
        behind = rest;
    }
    if let DepartedRecords::Long(expected) = given.departed {
        given.departed = DepartedRecords::Held(departed_of(behind, expected)?);
    }
    Ok(given)
}

/// The records that departed, read from what is told behind a revision; a value that stands before
/// them is passed over.
pub(super) fn departed_behind(
    (given, expected): (&ExportedRevision, ContentHash),
    text: &mut dyn Read,
) -> Result<BTreeMap<String, u64>> {
    let mut text = BufReader::new(text);
    let is_behind = given.content == ExportedContent::LongValue;
    let passed = if is_behind { text.skip_until(b'\n') } else { Ok(0) };
    let behind = passed.and_then(|_| io::read_to_string(text));
    let behind =
        behind.map_err(|error| Error::io("cannot read the records that departed", error))?;
    departed_of(&behind, expected)
}

/// The records that departed in a text that is to have a hash.
fn departed_of(text: &str, expected: ContentHash) -> Result<BTreeMap<String, u64>> {
    let held = read_departed(text.as_bytes())?;
    if DepartedRecords::Held(held.clone()).hash() == Some(expected) {
        return Ok(held);
    }
    let message = format!(
        "the records that departed are to have the hash {expected}, but have another: they were \
         changed or cut after they were exported; export the history again"
    );
    Err(Error::new(ErrorKind::Corrupt, message))
}

/// The hashes of the parts of a text, between line ends.
type Parts = VecDeque<ContentHash>;

/// Reads a text and holds the hashes of its parts against what they are to be. At the end of
/// another one it fails, so that nothing is made of it.
struct Hashed<'t> {
    text: &'t mut dyn Read,
    sha256: Sha256,
    /// Those of this part and of the ones behind it.
    parts: &'t mut Parts,
    /// The hash that a part was to have, and the one it has.
    wrong: Option<(ContentHash, ContentHash)>,
}

impl<'t> Hashed<'t> {
    fn new(text: &'t mut dyn Read, parts: &'t mut Parts) -> Self {
        Self { text, sha256: Sha256::new(), parts, wrong: None }
    }

    /// Ends a part.
    fn end(&mut self) -> io::Result<()> {
        let sha256 = std::mem::replace(&mut self.sha256, Sha256::new());
        let found = ContentHash::from_bytes(sha256.finalize().into());
        match self.parts.pop_front() {
            Some(expected) if expected != found => {
                self.wrong = Some((expected, found));
                Err(io::Error::new(io::ErrorKind::InvalidData, "it has another hash"))
            }
            _ => Ok(()),
        }
    }
}

impl Read for Hashed<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(buf)?;
        let mut new = buf.get(..read).unwrap_or_default();
        while self.parts.len() > 1
            && let Some(at) = memchr::memchr(b'\n', new)
        {
            let (part, rest) = new.split_at(at);
            self.sha256.update(part);
            self.end()?;
            new = rest.get(1..).unwrap_or_default();
        }
        self.sha256.update(new);
        if read == 0 && !buf.is_empty() {
            // Parts that are missing have not the hash of nothing.
            while !self.parts.is_empty() {
                self.end()?;
            }
        }
        Ok(read)
    }
}

/// That something long was taken for what is at hand.
pub(super) fn not_at_hand() -> Error {
    let message =
        "the value, or what departed, is too long to be at hand: it is read by `push_long`";
    Error::new(ErrorKind::Invalid, message)
}
