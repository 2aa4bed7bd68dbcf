//! Records in the order of their keys.

use std::ops::Bound;

use super::{CollectionSnapshot, Key, KeyKind, Record};
use crate::error::Result;
use crate::threads::ahead::Ahead;
use crate::tree::record_keys::KeyRange;

mod pages;

use pages::{Page, Pages};

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

/// The records of a range of keys, read page by page: of many, a thread of its own reads the next
/// pages ahead. It ends after the first error.
#[derive(Debug)]
pub struct Scan {
    collection: CollectionSnapshot,
    left: u64,
    page: Page,
    source: Source,
}

/// Where pages come from.
#[derive(Debug)]
enum Source {
    Alone(Pages),
    Ahead(Ahead<Pages>),
    AtEnd,
}

/// Gives ordinals, at most so many at once; none at the end.
pub(crate) type OrdinalPages = Box<dyn FnMut(u64) -> Result<Option<Vec<u64>>>>;

impl CollectionSnapshot {
    /// The ordinals of all keys of a range, those of records that were deleted among them; none if
    /// they are more than so many.
    pub(crate) fn ordinals_in(
        &self,
        options: &ScanOptions,
        most: usize,
    ) -> Result<Option<Vec<u64>>> {
        let range = range_of(self.keys, options)?;
        let Some(snapshot) = &self.snapshot else { return Ok(Some(Vec::new())) };
        let page = snapshot.tree.record_keys(&range, false, most.saturating_add(1))?;
        Ok((page.len() <= most).then(|| page.ordinals()))
    }

    /// The ordinals of the keys of a range in its order, those of records that were deleted among
    /// them.
    pub(crate) fn ordinal_pages(&self, options: &ScanOptions) -> Result<OrdinalPages> {
        let range = range_of(self.keys, options)?;
        let pages = |snapshot| Pages::new(snapshot, range, options.reverse);
        let mut pages = self.snapshot.clone().map(pages);
        Ok(Box::new(move |wanted| {
            let Some(pages) = &mut pages else { return Ok(None) };
            Ok(pages.turn(Page::default(), wanted)?.map(|page| page.keys.ordinals()))
        }))
    }
}

impl Scan {
    pub(super) fn new(collection: CollectionSnapshot, options: &ScanOptions) -> Result<Self> {
        let range = range_of(collection.keys, options)?;
        let left = options.limit.unwrap_or(u64::MAX);
        let source = match &collection.snapshot {
            Some(snapshot) => Source::Alone(Pages::new(snapshot.clone(), range, options.reverse)),
            None => Source::AtEnd,
        };
        Ok(Self { collection, left, page: Page::default(), source })
    }

    fn step(&mut self) -> Result<Option<Record>> {
        while self.left > 0 {
            let Some(snapshot) = &self.collection.snapshot else { break };
            if let Some((at, stored)) = self.page.records.next(snapshot.place())? {
                let name = self.page.keys.get(at).map_or(&[][..], |(name, _)| name);
                let key = self.collection.keys.key_of(name)?;
                self.left -= 1;
                return Ok(Some(Record::of(key, stored)));
            }
            if !self.turn_page()? {
                break;
            }
        }
        Ok(None)
    }

    /// Goes to the next page, if there is one.
    fn turn_page(&mut self) -> Result<bool> {
        if let Source::Alone(pages) = &self.source
            && pages.are_worth_a_thread(self.left)
            && let Some(snapshot) = &self.collection.snapshot
            && let Source::Alone(pages) = std::mem::replace(&mut self.source, Source::AtEnd)
        {
            self.source = Source::Ahead(Ahead::new(snapshot.clone(), pages));
        }
        let old = std::mem::take(&mut self.page);
        let next = match &mut self.source {
            Source::Alone(pages) => pages.turn(old, self.left)?,
            Source::Ahead(ahead) => ahead.next(Some(old))?,
            Source::AtEnd => None,
        };
        let is_there = next.is_some();
        match next {
            Some(page) => self.page = page,
            None => self.source = Source::AtEnd,
        }
        Ok(is_there)
    }
}

impl Iterator for Scan {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step();
        if next.is_err() {
            (self.left, self.source) = (0, Source::AtEnd);
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
        keys.check_prefixes()?;
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
