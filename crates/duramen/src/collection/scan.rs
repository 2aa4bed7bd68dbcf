//! Records in the order of their keys.

use std::ops::Bound;

use super::{CollectionSnapshot, Key, KeyKind, Record};
use crate::error::{Error, ErrorKind, Result};
use crate::tree::record_keys::{KeyPage, KeyRange};
use crate::tree::stored_records::RecordBatch;

/// Keys of the first page; many want no more.
const FIRST_KEYS: usize = 8;

/// How many times as long the next page is.
const PAGE_GROWTH: usize = 4;

/// Keys of a page at most. Records that follow each other by their keys stand anywhere: of many
/// that are read together more lie side by side (benchmark B).
const PAGE_KEYS_MAX: usize = 16_384;

/// Which records are scanned, and in which order.
///
/// ```
/// use duramen::{CommitOptions, Database, KeyKind, ScanOptions};
///
/// let db = Database::memory()?;
/// let notes = db.create_collection("notes", KeyKind::Text)?;
/// for key in ["a/1", "b/1", "b/2", "c"] {
///     notes.put(key, "{}", &CommitOptions::default())?;
/// }
/// let options = ScanOptions { prefix: Some("b/".into()), reverse: true, ..Default::default() };
/// let keys = notes.scan(&options)?.map(|record| Ok(record?.key.to_string()));
/// assert_eq!(keys.collect::<duramen::Result<Vec<_>>>()?, ["b/2", "b/1"]);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanOptions {
    /// Where the keys begin.
    pub from: Bound<Key>,
    /// Where they end.
    pub to: Bound<Key>,
    /// Only keys that begin so; of text keys only.
    pub prefix: Option<String>,
    /// The last key first.
    pub reverse: bool,
    /// At most so many.
    pub limit: Option<u64>,
}

impl Default for ScanOptions {
    fn default() -> Self {
        let (from, to) = (Bound::Unbounded, Bound::Unbounded);
        Self { from, to, prefix: None, reverse: false, limit: None }
    }
}

/// The records of a range of keys, read page by page. It ends after the first error.
#[derive(Debug)]
pub struct Scan {
    collection: CollectionSnapshot,
    range: KeyRange,
    is_reverse: bool,
    left: u64,
    /// Keys that follow each other.
    page: KeyPage,
    /// Their records.
    records: RecordBatch,
    /// Keys of the next page.
    page_keys: usize,
    is_at_end: bool,
}

impl Scan {
    pub(super) fn new(collection: CollectionSnapshot, options: &ScanOptions) -> Result<Self> {
        let range = range_of(collection.keys, options)?;
        let left = options.limit.unwrap_or(u64::MAX);
        Ok(Self {
            range,
            is_reverse: options.reverse,
            left,
            page: KeyPage::default(),
            records: RecordBatch::default(),
            page_keys: FIRST_KEYS,
            is_at_end: collection.snapshot.is_none(),
            collection,
        })
    }

    fn step(&mut self) -> Result<Option<Record>> {
        while self.left > 0 {
            let Some(snapshot) = &self.collection.snapshot else { break };
            if let Some((at, stored)) = self.records.next(snapshot.place())? {
                let name = self.page.get(at).map_or(&[][..], |(name, _)| name);
                let key = self.collection.keys.key_of(name)?;
                self.left -= 1;
                return Ok(Some(Record::of(key, stored)));
            }
            if self.is_at_end {
                break;
            }
            self.turn_page()?;
        }
        Ok(None)
    }

    /// Reads the next keys.
    fn turn_page(&mut self) -> Result<()> {
        let Some(snapshot) = &self.collection.snapshot else { return Ok(()) };
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(self.page_keys);
        self.page = snapshot.tree.record_keys(&self.range, self.is_reverse, wanted)?;
        self.is_at_end = self.page.len() < wanted;
        if let Some((last, _)) = self.page.last() {
            self.range.pass(last, self.is_reverse);
        }
        self.records.begin(self.page.ordinals());
        self.page_keys = (PAGE_GROWTH * self.page_keys).min(PAGE_KEYS_MAX);
        Ok(())
    }
}

impl Iterator for Scan {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step();
        if next.is_err() {
            self.left = 0;
        }
        next.transpose()
    }
}

/// The texts of the keys between the bounds.
fn range_of(keys: KeyKind, options: &ScanOptions) -> Result<KeyRange> {
    let text = |bound: &Bound<Key>| -> Result<Bound<Vec<u8>>> {
        Ok(match bound {
            Bound::Included(key) => Bound::Included(keys.text_of(key)?.into_owned().into_bytes()),
            Bound::Excluded(key) => Bound::Excluded(keys.text_of(key)?.into_owned().into_bytes()),
            Bound::Unbounded => Bound::Unbounded,
        })
    };
    let mut range = KeyRange { low: text(&options.from)?, high: text(&options.to)? };
    if let Some(prefix) = &options.prefix {
        if keys != KeyKind::Text {
            let message = format!("keys of the type {keys} have no prefixes: give a range instead");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let prefix = prefix.as_bytes();
        if bytes_of(&range.low).is_none_or(|low| low < prefix) {
            range.low = Bound::Included(prefix.to_vec());
        }
        // No UTF-8 has the byte 0xff, so this is behind all that begin so.
        let end = [prefix, &[0xff]].concat();
        if bytes_of(&range.high).is_none_or(|high| high > end.as_slice()) {
            range.high = Bound::Excluded(end);
        }
    }
    Ok(range)
}

fn bytes_of(bound: &Bound<Vec<u8>>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}
