//! Reads pages ahead of who goes through them.
//!
//! A thread finds the keys of a page and then reads its records; so does the reader while no page
//! is ready for it. Keys are found by one of them at a time, as those of a page follow from those
//! before; records are read by both.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::pages::{Page, Pages};
use crate::error::Result;
use crate::sync::Mutex;
use crate::threads::{Next, Parts};

/// Pages that are begun before they are needed.
const PAGES_AHEAD: usize = 3;

/// Pages that are read ahead.
#[derive(Debug)]
pub(super) struct Ahead {
    shared: Arc<Shared>,
    /// None if there could not be one: then the reader reads all of them.
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    pages: Mutex<Pages>,
    parts: Parts<Page>,
    /// Room for other pages.
    spare: Mutex<Vec<Page>>,
}

impl Ahead {
    /// Begins with the next of some pages.
    pub(super) fn new(pages: Pages) -> Self {
        let (parts, spare) = (Parts::new(PAGES_AHEAD), Mutex::default());
        let shared = Arc::new(Shared { pages: Mutex::new(pages), parts, spare });
        let other = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("duramen-scan".to_owned());
        let thread = thread.spawn(move || {
            while other.parts.wait_for_room() {
                other.read_next();
            }
        });
        Self { shared, thread: thread.ok() }
    }

    /// The next page, if there is one; another one is done with.
    pub(super) fn next(&mut self, old: Page) -> Result<Option<Page>> {
        self.shared.spare.lock().push(old);
        loop {
            match self.shared.parts.next() {
                Next::Part(page) => return page.map(Some),
                Next::Room => self.shared.read_next(),
                Next::End => return Ok(None),
            }
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.parts.close();
        if let Some(thread) = self.thread.take() {
            // A page that it was lost over is an error for who takes that page.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Reads the next page, if there is one.
    fn read_next(&self) {
        let mut pages = self.pages.lock();
        let Some(share) = self.parts.begin(u64::MAX) else { return };
        let room = self.spare.lock().pop().unwrap_or_default();
        let mut page = match pages.turn(room, u64::MAX) {
            Ok(Some(page)) => page,
            Ok(None) => return share.end(),
            Err(error) => return share.put(Err(error)),
        };
        let snapshot = pages.snapshot().clone();
        drop(pages);
        let read = page.records.read_ahead(snapshot.place());
        share.put(read.map(|()| page));
    }
}

#[cfg(test)]
mod tests {
    use crate::{CommitOptions, Database, Key, KeyKind, Revision, ScanOptions};

    const RECORDS: u64 = 60_000;

    #[test]
    fn records_that_a_thread_reads_ahead_come_in_order_at_each_revision() {
        let db = Database::memory().unwrap();
        let records = db.create_collection("many", KeyKind::U64).unwrap();
        // Keys and places of records differ.
        let key = |n: u64| n * 7_919 % RECORDS;
        let put = (0..RECORDS).map(|n| (key(n), format!("{{\"n\":{n}}}")));
        records.put_many(put, &CommitOptions::default()).unwrap();
        let deleted: Vec<_> = (0..RECORDS).filter(|key| key % 5 == 0).map(Key::U64).collect();
        records.delete_many(&deleted, &CommitOptions::default()).unwrap();
        for is_on_disk in [false, true] {
            if is_on_disk {
                db.checkpoint().unwrap();
            }
            for (revision, is_deleted) in [(1, false), (2, true)] {
                let then = records.at(Revision(revision)).unwrap();
                for reverse in [false, true] {
                    let options = ScanOptions { reverse, ..ScanOptions::default() };
                    let scanned = then.scan(&options).unwrap().map(|record| record.unwrap().key);
                    let mut expected: Vec<_> = (0..RECORDS)
                        .filter(|key| !(is_deleted && key % 5 == 0))
                        .map(Key::U64)
                        .collect();
                    if reverse {
                        expected.reverse();
                    }
                    assert!(scanned.eq(expected), "revision {revision}, reverse {reverse}");
                }
            }
        }
    }

    #[test]
    fn a_long_scan_is_left_wherever_its_reader_stops() {
        let db = Database::memory().unwrap();
        let records = db.create_collection("many", KeyKind::U64).unwrap();
        let put = (0..RECORDS).map(|key| (key, "{}"));
        records.put_many(put, &CommitOptions::default()).unwrap();
        for count in [0, 1, 700, 9_000, 40_000] {
            let scan = records.scan(&ScanOptions::default()).unwrap();
            assert_eq!(scan.take(count).map(Result::unwrap).count(), count);
            let limit = Some(count as u64);
            let scan = records.scan(&ScanOptions { limit, ..ScanOptions::default() }).unwrap();
            assert_eq!(scan.map(Result::unwrap).count(), count);
        }
    }
}
