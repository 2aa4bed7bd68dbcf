//! The keys of a collection that no revision of a history shows, and how many versions each had.
//!
//! Invariants:
//! - what is told does not depend on where it is stored: keys come in the order of their bytes,
//!   each with what the last revision of the history counts;
//! - of many keys, a page is held at a time.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::ops::Bound;

use sha2::{Digest, Sha256};

use crate::content_hash::ContentHash;
use crate::error::{Error, ErrorKind, Result};
use crate::export::shown::Shown;
use crate::export::{ExportedContent, ExportedRevision, HistoryExport, long, none_told};
use crate::json::escape;
use crate::limits::EXPORT_DEPARTED_BYTES_MAX;
use crate::revision::Revision;
use crate::transaction::check_versions;
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::record_keys::KeyRange;
use crate::tree::schema::ROOT;

/// Records looked at under one lock, and keys read at once.
const AT_ONCE: usize = 4_096;

/// Is given a key, and how many versions it had.
type Visit<'v> = dyn FnMut(&[u8], u64) -> Result<()> + 'v;

/// The records of a collection that no revision of a history shows: they were deleted in all of
/// what retention left of it, or by the commit that brought them. A key that comes back goes on
/// counting its versions all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DepartedRecords {
    /// By the texts of their keys, how many versions they had.
    Held(BTreeMap<String, u64>),
    /// They are more than are held in memory: the hash of their text, an object of keys and numbers
    /// of versions as compact JSON, its keys in the order of their bytes.
    /// [`HistoryExport::write_long`] writes it,
    /// [`HistoryImport::push_long`](crate::HistoryImport::push_long) reads it.
    Long(ContentHash),
}

impl Default for DepartedRecords {
    fn default() -> Self {
        Self::Held(BTreeMap::new())
    }
}

impl DepartedRecords {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Held(held) if held.is_empty())
    }

    /// The hash of their text; none if there are none.
    pub(crate) fn hash(&self) -> Option<ContentHash> {
        let held = match self {
            Self::Long(hash) => return Some(*hash),
            Self::Held(held) if held.is_empty() => return None,
            Self::Held(held) => held,
        };
        let mut text = Text::default();
        for (key, versions) in held {
            text.add(key.as_bytes(), *versions);
            text.hash_held();
        }
        Some(text.end())
    }
}

/// The records that departed of a first revision which is there already, where it may not know
/// them: it may be one that an older version imported, which took none over.
pub(super) fn unknown_of(
    present: &DepartedRecords,
    given: &ExportedRevision,
    text: &mut dyn Read,
) -> Result<BTreeMap<String, u64>> {
    if present.hash() == given.departed.hash() {
        return Ok(BTreeMap::new());
    }
    let departed = match &given.departed {
        DepartedRecords::Held(held) => held.clone(),
        DepartedRecords::Long(expected) => long::departed_behind((given, *expected), text)?,
    };
    departed.iter().try_for_each(|(key, versions)| check_versions(key, *versions))?;
    Ok(departed)
}

impl ExportedRevision {
    /// How many texts are told behind it because they are too long to be held: its value, and the
    /// records that departed, in this order.
    pub fn long_texts(&self) -> usize {
        let departed = matches!(self.departed, DepartedRecords::Long(_));
        usize::from(self.content == ExportedContent::LongValue) + usize::from(departed)
    }
}

impl HistoryExport {
    /// Writes what of the revision that was told last is [too long](ExportedRevision::long_texts)
    /// to be held: its value, the records that departed, or both with a line end between them.
    /// `Invalid` for any other revision.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database};
    ///
    /// let list = Database::memory()?.create_document("list")?;
    /// list.put("[1, 2]", &CommitOptions::default())?;
    /// let (mut history, mut text) = (list.export()?, Vec::new());
    /// let revision = history.next().unwrap()?;
    /// history.write_long(&revision, &mut text)?;
    /// assert!(revision.long_texts() == 0 && text.is_empty());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn write_long(&self, revision: &ExportedRevision, out: &mut dyn Write) -> Result<()> {
        if self.next < 2 {
            return Err(none_told());
        } else if revision.revision.0 + 1 != self.next {
            let message = format!("{} was not told last: write before the next", revision.revision);
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if revision.content == ExportedContent::LongValue {
            self.write_value(out)?;
            if revision.long_texts() > 1 {
                written(out.write_all(b"\n"))?;
            }
        }
        if matches!(revision.departed, DepartedRecords::Long(_)) {
            self.write_departed(out)?;
        }
        Ok(())
    }

    /// The records that no revision of the history shows.
    pub(super) fn departed(&self) -> Result<DepartedRecords> {
        let (mut held, mut text, mut is_long) = (BTreeMap::new(), Text::default(), false);
        self.each_departed(&mut |key, versions| {
            text.add(key, versions);
            is_long |= text.bytes > EXPORT_DEPARTED_BYTES_MAX;
            text.hash_held();
            if is_long {
                held.clear();
                return Ok(());
            }
            let key = str::from_utf8(key).map_err(|error| {
                Error::new(ErrorKind::Corrupt, "a record's key is not UTF-8").with_source(error)
            })?;
            held.insert(key.to_owned(), versions);
            Ok(())
        })?;
        Ok(if is_long { DepartedRecords::Long(text.end()) } else { DepartedRecords::Held(held) })
    }

    fn write_departed(&self, out: &mut dyn Write) -> Result<()> {
        let mut text = Text::default();
        self.each_departed(&mut |key, versions| {
            text.add(key, versions);
            written(out.write_all(&text.held))?;
            text.held.clear();
            Ok(())
        })?;
        written(out.write_all(text.tail()))
    }

    /// Visits the records that no revision of the history shows, in the order of their keys.
    fn each_departed(&self, visit: &mut Visit<'_>) -> Result<()> {
        if self.last == 0 || self.document.options()?.collection.is_none() {
            return Ok(());
        }
        let tree = self.document.tree();
        let Some(records) = tree.data.read().schema.path(ROOT).entry else { return Ok(()) };
        let last = short(Revision(self.kept.numbered(self.last)));
        let shown = Shown { tree, kept: &self.kept, records };
        // Ordinals are in the order of births.
        let end = tree.first_record_born(last + 1)?;
        if !shown.lacks_any(end, last)? {
            return Ok(());
        }
        let mut range = KeyRange { low: Bound::Unbounded, high: Bound::Unbounded };
        loop {
            let page = tree.record_keys(&range, false, AT_ONCE);
            let page = page.map_err(|error| error.in_context("which records departed"))?;
            for (key, ordinal) in page.iter().filter(|&(_, ordinal)| ordinal < end) {
                let record = node(records, ordinal);
                let versions = shown.last(record, Some(last)).and_then(|shown| match shown {
                    Some(_) => Ok(None),
                    None => tree.record_version(record, last).map(Some),
                });
                let versions = versions.map_err(|error| {
                    let key = String::from_utf8_lossy(key);
                    error.in_context(format_args!(
                        "whether the record {key:?} departed, and how many versions it had"
                    ))
                })?;
                if let Some(versions) = versions {
                    visit(key, versions)?;
                }
            }
            match page.last() {
                Some((last, _)) if page.len() == AT_ONCE => range.pass(last, false),
                _ => return Ok(()),
            }
        }
    }
}

impl Shown<'_> {
    /// Whether one of the records up to an ordinal is in none of the revisions up to the last one,
    /// or may be: where none is, as in most histories, nobody has to go through the keys.
    fn lacks_any(&self, end: u64, last: u32) -> Result<bool> {
        match self.lacks_one(end, last) {
            // Of which record that is, its key tells.
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(true),
            lacks => lacks,
        }
    }

    fn lacks_one(&self, end: u64, last: u32) -> Result<bool> {
        let is_deleted = self.tree.deleted_in(last)?.is_some();
        let mut first = 0;
        while first < end {
            let some = first..end.min(first + AT_ONCE as u64);
            first = some.end;
            let gone = self.tree.read(|data| {
                let mut gone = Vec::new();
                for ordinal in some.clone() {
                    let record = node(self.records, ordinal);
                    if is_deleted || data.state(record, last)?.is_absent() {
                        gone.push(record);
                    }
                }
                Ok(gone)
            })?;
            for record in gone {
                if self.last(record, Some(last))?.is_none() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// The text of records that departed, as it is made.
#[derive(Debug, Default)]
struct Text {
    /// What of it was not handed on yet.
    held: Vec<u8>,
    /// Bytes of it so far.
    bytes: usize,
    sha256: Sha256,
}

impl Text {
    fn add(&mut self, key: &[u8], versions: u64) {
        let before = self.held.len();
        self.held.push(if self.bytes == 0 { b'{' } else { b',' });
        escape::write_text(key, escape::is_plain(key), &mut self.held);
        self.held.push(b':');
        self.held.extend_from_slice(versions.to_string().as_bytes());
        self.bytes += self.held.len() - before;
    }

    /// What stands behind the last record.
    fn tail(&self) -> &'static [u8] {
        if self.bytes == 0 { b"{}" } else { b"}" }
    }

    fn hash_held(&mut self) {
        self.sha256.update(&self.held);
        self.held.clear();
    }

    fn end(self) -> ContentHash {
        let tail = self.tail();
        ContentHash::from_bytes(self.sha256.chain_update(tail).finalize().into())
    }
}

fn written(result: std::io::Result<()>) -> Result<()> {
    result.map_err(|error| Error::io("cannot write the records that departed", error))
}
