//! Pages of records that follow each other by their keys.

use crate::error::Result;
use crate::snapshot::Snapshot;
use crate::threads;
use crate::threads::ahead::PartSource;
use crate::tree::record_keys::{KeyPage, KeyRange};
use crate::tree::stored_records::RecordBatch;

/// Keys of the first page; many want no more.
const FIRST_KEYS: usize = 8;

/// How many times as long the next page is.
const PAGE_GROWTH: usize = 4;

/// Keys of a page at most. Records that follow each other by their keys stand anywhere: of many
/// that are read together more lie side by side (benchmark B).
const PAGE_KEYS_MAX: usize = 16_384;

/// Keys of a page that is worth a thread that reads it ahead.
const THREAD_KEYS: usize = 8_192;

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
    is_at_end: bool,
}

impl Pages {
    pub(super) fn new(snapshot: Snapshot, range: KeyRange, is_reverse: bool) -> Self {
        Self { snapshot, range, is_reverse, page_keys: FIRST_KEYS, is_at_end: false }
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
        self.page_keys = (PAGE_GROWTH * self.page_keys).min(PAGE_KEYS_MAX);
        Ok(Some(old))
    }
}

impl PartSource for Pages {
    type Part = Page;
    type Store = Snapshot;

    fn next_part(&mut self, room: Option<Page>) -> Result<Option<Page>> {
        self.turn(room.unwrap_or_default(), u64::MAX)
    }

    fn read(snapshot: &Snapshot, page: &mut Page) -> Result<()> {
        page.records.read_ahead(snapshot.place())
    }
}
