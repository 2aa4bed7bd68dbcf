//! Pages of records that follow each other by their keys.

use crate::error::Result;
use crate::snapshot::Snapshot;
use crate::threads;
use crate::threads::ahead::PartSource;
use crate::tree::history::short;
use crate::tree::record_keys::{KeyPage, KeyRange};
use crate::tree::stored_records::RecordBatch;

/// Keys of the first page; many want no more.
const FIRST_KEYS: usize = 8;

/// How many times as long the next page is.
const PAGE_GROWTH: usize = 4;

/// Keys of a page at most. Records that follow each other by their keys stand anywhere: of many
/// that are read together more lie side by side (benchmark B).
const PAGE_KEYS_MAX: usize = 16_384;

/// Keys of a page whose records lie close enough if that is a part as large as this of all
/// records: longer ones would be so much memory that nobody touched before, and take longer for it.
const PAGE_KEYS: usize = 2_048;
const PAGE_SHARE: u64 = 16;

/// Keys of a page that is worth a thread that reads it ahead.
const THREAD_KEYS: usize = 4_096;

/// Some records.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) keys: KeyPage,
    /// Of the keys, in their order.
    pub(super) records: RecordBatch,
}

/// The pages of a range of keys, one after the other.
#[derive(Debug)]
pub(super) struct Pages {
    snapshot: Snapshot,
    range: KeyRange,
    is_reverse: bool,
    /// Keys of the next page.
    page_keys: usize,
    /// And of later ones at most; not known while pages are short.
    page_keys_max: Option<usize>,
    is_at_end: bool,
}

impl Pages {
    pub(super) fn new(snapshot: Snapshot, range: KeyRange, is_reverse: bool) -> Self {
        let (page_keys, page_keys_max, is_at_end) = (FIRST_KEYS, None, false);
        Self { snapshot, range, is_reverse, page_keys, page_keys_max, is_at_end }
    }

    /// Whether a thread is to read the rest, of which so many records are wanted.
    pub(super) fn are_worth_a_thread(&self, wanted: u64) -> bool {
        let is_long = self.page_keys >= THREAD_KEYS && wanted >= 2 * PAGE_KEYS_MAX as u64;
        is_long && !self.is_at_end && threads::count() > 1
    }

    /// The next page, if there is one, of no more keys than so many: none of its records is read.
    /// It goes where another page was.
    pub(super) fn turn(&mut self, mut old: Page, wanted: u64) -> Result<Option<Page>> {
        if self.is_at_end {
            return Ok(None);
        }
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX).min(self.page_keys);
        let tree = &self.snapshot.tree;
        old.keys = tree.record_keys(&self.range, self.is_reverse, wanted)?;
        self.is_at_end = old.keys.len() < wanted;
        if let Some((last, _)) = old.keys.last() {
            self.range.pass(last, self.is_reverse);
        }
        old.records.begin(old.keys.ordinals());
        self.page_keys *= PAGE_GROWTH;
        if self.page_keys > PAGE_KEYS && !self.is_at_end {
            self.page_keys = self.page_keys.min(self.longest()?);
        }
        Ok(Some(old))
    }

    /// Keys of a page at most.
    fn longest(&mut self) -> Result<usize> {
        if let Some(known) = self.page_keys_max {
            return Ok(known);
        }
        let records = self.snapshot.tree.record_count(short(self.snapshot.revision))?;
        let share = usize::try_from(records / PAGE_SHARE).unwrap_or(usize::MAX);
        Ok(*self.page_keys_max.insert(share.clamp(PAGE_KEYS, PAGE_KEYS_MAX)))
    }
}

impl PartSource for Pages {
    type Part = Page;
    type Store = Snapshot;

    /// The one that is read and one that waits: each takes a megabyte or more.
    const PARTS_AHEAD: usize = 2;

    fn next_part(&mut self, room: Option<Page>) -> Result<Option<Page>> {
        self.turn(room.unwrap_or_default(), u64::MAX)
    }

    fn read(snapshot: &Snapshot, page: &mut Page) -> Result<()> {
        page.records.read_ahead(snapshot.place())
    }
}
