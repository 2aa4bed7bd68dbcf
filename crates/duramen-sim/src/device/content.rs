//! The bytes of one file: as the process sees them, and as they survive.
//!
//! Invariant: without a failed sync, `live` is `durable` with every pending change applied in
//! order. After one, what was pending is gone from there but not from `live`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pages::{PAGE_BYTES, Page, Pages, place};

#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    pub(super) live: Pages,
    pub(super) durable: Pages,
    pub(super) pending: Vec<Pending>,
    /// How many syncs failed.
    pub(super) failed_syncs: u64,
    /// Pages before their last write, if they are kept.
    versions: BTreeMap<usize, Option<Page>>,
}

/// A change that is not durable yet, with its place in the order of all changes of the device.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) order: u64,
    pub(super) change: Change,
}

/// A write that grows the file is two changes, since either may survive without the other.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { offset: u64, bytes: Arc<[u8]> },
    Grow(u64),
    Shrink(u64),
}

impl Content {
    /// A file on a disk that has just been powered on.
    pub(super) fn settled(pages: Pages) -> Self {
        Self { live: pages.clone(), durable: pages, ..Self::default() }
    }

    /// The same file in the eyes of the next process.
    pub(super) fn survivor(&self) -> Self {
        Self { versions: BTreeMap::new(), ..self.clone() }
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64, next_order: &mut u64) {
        let end = offset + bytes.len() as u64;
        if end > self.live.len() {
            self.push(Change::Grow(end), next_order);
        }
        self.live.write(bytes, offset);
        self.push(Change::Write { offset, bytes: bytes.into() }, next_order);
    }

    pub(super) fn set_len(&mut self, len: u64, next_order: &mut u64) {
        if len != self.live.len() {
            let grows = len > self.live.len();
            self.push(if grows { Change::Grow(len) } else { Change::Shrink(len) }, next_order);
            self.live.set_len(len);
        }
    }

    fn push(&mut self, change: Change, next_order: &mut u64) {
        self.pending.push(Pending { order: *next_order, change });
        *next_order += 1;
    }

    /// Makes the pending changes durable that `survives` picks, and forgets the others.
    pub(super) fn sync(&mut self, mut survives: impl FnMut() -> bool) {
        let mut medium = Medium::new(std::mem::take(&mut self.durable));
        for pending in self.pending.drain(..) {
            if survives() {
                medium.apply(&pending.change);
            }
        }
        self.durable = medium.finish();
    }

    /// Keeps what now stands in the pages that a write is about to change.
    pub(super) fn keep_versions(&mut self, bytes: usize, offset: u64) {
        let (first, _) = place(offset);
        let (last, _) = place(offset + bytes as u64);
        for index in first..=last {
            self.versions.insert(index, self.live.page(index).cloned());
        }
    }

    /// The page before its last write; zeros if none was kept.
    pub(super) fn stale_page(&self, index: usize) -> [u8; PAGE_BYTES] {
        self.versions.get(&index).and_then(Option::as_ref).map_or([0; PAGE_BYTES], |page| **page)
    }

    /// Puts the old version of a page back onto the medium.
    pub(super) fn restore_stale_page(&mut self, index: usize) {
        let page = Some(Arc::new(self.stale_page(index)));
        self.live.set_page(index, page.clone());
        self.durable.set_page(index, page);
    }

    /// Damages one byte on the medium.
    pub(super) fn flip(&mut self, offset: u64, mask: u8) {
        self.live.flip(offset, mask);
        self.durable.flip(offset, mask);
    }
}

/// What is on the medium while changes reach it one by one, in whatever order.
#[derive(Debug)]
pub(super) struct Medium {
    pages: Pages,
    /// Of its own, because content may reach the medium before the growth that shows it.
    len: u64,
}

impl Medium {
    pub(super) fn new(pages: Pages) -> Self {
        Self { len: pages.len(), pages }
    }

    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { offset, bytes } => self.pages.write(bytes, *offset),
            Change::Grow(len) => self.len = self.len.max(*len),
            Change::Shrink(len) => {
                self.pages.set_len(self.pages.len().min(*len));
                self.len = *len;
            }
        }
    }

    pub(super) fn finish(mut self) -> Pages {
        self.pages.set_len(self.len);
        self.pages
    }
}
