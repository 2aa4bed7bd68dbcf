//! Reads pages of records ahead of who goes through them.
//!
//! A thread finds out which records are on a page and then reads them; so does the reader while no
//! page is ready for it. What is on a page follows from those before, so that one of them at a time
//! finds it out; records are read by both.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::error::Result;
use crate::snapshot::Snapshot;
use crate::sync::Mutex;
use crate::threads::{Next, Parts};
use crate::tree::stored_records::RecordBatch;

/// Pages that are begun before they are needed.
const PAGES_AHEAD: usize = 3;

/// Where pages of records come from, one after the other.
pub(super) trait PageSource: Debug + Send + 'static {
    type Page: Debug + Send;

    /// The next page, if there is one: none of its records is read. It may go where another page
    /// was.
    fn next_page(&mut self, room: Option<Self::Page>) -> Result<Option<Self::Page>>;

    /// The records of a page.
    fn records(page: &mut Self::Page) -> &mut RecordBatch;

    /// Where it may take long to find what is on a page, that ends early once this is set.
    fn end_by(&mut self, _is_left: &Arc<AtomicBool>) {}
}

/// Pages that are read ahead.
#[derive(Debug)]
pub(super) struct Ahead<S: PageSource> {
    shared: Arc<Shared<S>>,
    /// Set once nobody wants pages any more.
    is_left: Arc<AtomicBool>,
    /// None if there could not be one: then the reader reads all of them.
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<S: PageSource> {
    snapshot: Snapshot,
    source: Mutex<S>,
    parts: Parts<S::Page>,
    /// Room for other pages.
    spare: Mutex<Vec<S::Page>>,
}

impl<S: PageSource> Ahead<S> {
    /// Begins with the next page of a source, whose records are read at a snapshot.
    pub(super) fn new(snapshot: Snapshot, mut source: S) -> Self {
        let is_left = Arc::default();
        source.end_by(&is_left);
        let (source, parts) = (Mutex::new(source), Parts::new(PAGES_AHEAD));
        let shared = Arc::new(Shared { snapshot, source, parts, spare: Mutex::default() });
        let other = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("duramen-ahead".to_owned());
        let thread = thread.spawn(move || {
            while other.parts.wait_for_room() {
                other.read_next();
            }
        });
        Self { shared, is_left, thread: thread.ok() }
    }

    /// The next page, if there is one; another one is done with.
    pub(super) fn next(&mut self, old: S::Page) -> Result<Option<S::Page>> {
        self.shared.spare.lock().push(old);
        loop {
            match self.shared.parts.next() {
                Next::Part(page) => return page.map(Some),
                Next::Room => self.shared.read_next(),
                Next::End => return Ok(None),
            }
        }
    }

    /// Looks at the source.
    pub(super) fn source<T>(&self, look: impl FnOnce(&S) -> T) -> T {
        look(&self.shared.source.lock())
    }
}

impl<S: PageSource> Drop for Ahead<S> {
    fn drop(&mut self) {
        self.is_left.store(true, Ordering::Relaxed);
        self.shared.parts.close();
        if let Some(thread) = self.thread.take() {
            // A page that it was lost over is an error for who takes that page.
            let _ = thread.join();
        }
    }
}

impl<S: PageSource> Shared<S> {
    /// Reads the next page, if there is one.
    fn read_next(&self) {
        let mut source = self.source.lock();
        let Some(share) = self.parts.begin(u64::MAX) else { return };
        let room = self.spare.lock().pop();
        let mut page = match source.next_page(room) {
            Ok(Some(page)) => page,
            Ok(None) => return share.end(),
            Err(error) => return share.put(Err(error)),
        };
        drop(source);
        let read = S::records(&mut page).read_ahead(self.snapshot.place());
        share.put(read.map(|()| page));
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        CommitOptions, Database, Filter, IndexDefinition, Key, KeyKind, Order, Query, Record,
        Result, Revision, ScanOptions,
    };

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

    #[test]
    fn long_answers_that_are_read_ahead_are_those_of_short_batches() {
        let db = Database::memory().unwrap();
        let records = db.create_collection("many", KeyKind::U64).unwrap();
        let json = |key: u64| format!("{{\"n\":{},\"even\":{}}}", key * 7_919 % RECORDS, key % 2);
        records
            .put_many((0..RECORDS).map(|key| (key, json(key))), &CommitOptions::default())
            .unwrap();
        let number = |record: Result<Record>| match record.unwrap().key {
            Key::U64(key) => key,
            key => panic!("{key}"),
        };
        let all =
            |query: &Query| -> Vec<u64> { records.query(query).unwrap().map(number).collect() };
        let even = Query::new().filter(Filter::eq("even", 0));
        let expected: Vec<u64> = (0..RECORDS).step_by(2).collect();
        let sorted = {
            let mut sorted = expected.clone();
            sorted.sort_by_key(|key| key * 7_919 % RECORDS);
            sorted
        };
        assert_eq!(all(&Query::new()), (0..RECORDS).collect::<Vec<_>>());
        for field in ["", "even", "n"] {
            if !field.is_empty() {
                records.create_index(&IndexDefinition::new(field, &[field]).unwrap()).unwrap();
            }
            assert_eq!(all(&even), expected, "index {field:?}");
            let ordered = even.clone().order_by(Order::asc("n"));
            assert_eq!(all(&ordered), sorted, "index {field:?}");
            let part = ordered.clone().offset(9_000).limit(20_000);
            assert_eq!(all(&part), sorted[9_000..29_000], "index {field:?}");
            let mut left = records.query(&even).unwrap();
            assert_eq!(left.by_ref().take(9_000).map(number).count(), 9_000);
            assert!(left.counts().found >= 9_000);
        }
    }
}
