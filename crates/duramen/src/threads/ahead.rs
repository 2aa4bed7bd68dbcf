//! Parts of a long read, made ahead of who goes through them.
//!
//! A thread finds out what is in a part and then reads it; so does the reader while no part is
//! ready for it. What is in a part follows from those before, so that one of them at a time finds
//! it out; parts are read by both.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use super::{Next, Parts};
use crate::error::Result;
use crate::limits::READ_AHEAD_THREADS_MAX;
use crate::sync::Mutex;

/// Where the parts of a long read come from, one after the other.
pub(crate) trait PartSource: Debug + Send + 'static {
    type Part: Debug + Send;
    /// What parts are read from.
    type Store: Debug + Send + Sync;

    /// Parts that are begun before they are needed.
    const PARTS_AHEAD: usize = 3;

    /// The next part, if there is one: nothing of it is read. It may go where another part was.
    fn next_part(&mut self, room: Option<Self::Part>) -> Result<Option<Self::Part>>;

    /// Reads a part.
    fn read(store: &Self::Store, part: &mut Self::Part) -> Result<()>;

    /// Where it may take long to find what is in a part, that ends early once this is set.
    fn end_by(&mut self, _is_left: &Arc<AtomicBool>) {}
}

/// Parts that are read ahead.
#[derive(Debug)]
pub(crate) struct Ahead<S: PartSource> {
    shared: Arc<Shared<S>>,
    /// Set once nobody wants parts any more.
    is_left: Arc<AtomicBool>,
    /// None if there could not be one: then the reader reads all of them.
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<S: PartSource> {
    store: S::Store,
    source: Mutex<S>,
    parts: Parts<S::Part>,
    /// Room for other parts.
    spare: Mutex<Vec<S::Part>>,
}

/// Threads of this kind there are in the process.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The right to one of them.
#[derive(Debug)]
struct Place;

impl Place {
    fn take() -> Option<Self> {
        let next = |taken: usize| (taken < READ_AHEAD_THREADS_MAX).then_some(taken + 1);
        THREADS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok().map(|_| Self)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S: PartSource> Ahead<S> {
    /// Begins with the next part of a source.
    pub(crate) fn new(store: S::Store, mut source: S) -> Self {
        let is_left = Arc::default();
        source.end_by(&is_left);
        let (source, parts) = (Mutex::new(source), Parts::new(S::PARTS_AHEAD));
        let shared = Arc::new(Shared { store, source, parts, spare: Mutex::default() });
        let thread = Place::take().and_then(|place| {
            let other = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("duramen-ahead".to_owned());
            let help = move || {
                let _place = place;
                while other.parts.wait_for_room() {
                    other.read_next();
                }
            };
            thread.spawn(help).ok()
        });
        Self { shared, is_left, thread }
    }

    /// The next part, if there is one; another one is done with.
    pub(crate) fn next(&mut self, old: Option<S::Part>) -> Result<Option<S::Part>> {
        self.shared.spare.lock().extend(old);
        loop {
            match self.shared.parts.next() {
                Next::Part(part) => return part.map(Some),
                Next::Room => self.shared.read_next(),
                Next::End => return Ok(None),
            }
        }
    }

    /// Looks at the source.
    pub(crate) fn source<T>(&self, look: impl FnOnce(&S) -> T) -> T {
        look(&self.shared.source.lock())
    }
}

impl<S: PartSource> Drop for Ahead<S> {
    fn drop(&mut self) {
        self.is_left.store(true, Ordering::Relaxed);
        self.shared.parts.close();
        if let Some(thread) = self.thread.take() {
            // A part that it was lost over is an error for who takes that part.
            let _ = thread.join();
        }
    }
}

impl<S: PartSource> Shared<S> {
    /// Reads the next part, if there is one.
    fn read_next(&self) {
        let mut source = self.source.lock();
        let Some(share) = self.parts.begin(u64::MAX) else { return };
        let room = self.spare.lock().pop();
        let mut part = match source.next_part(room) {
            Ok(Some(part)) => part,
            Ok(None) => return share.end(),
            Err(error) => return share.put(Err(error)),
        };
        drop(source);
        let read = S::read(&self.store, &mut part);
        share.put(read.map(|()| part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// Numbers from one on.
    #[derive(Debug)]
    struct Numbers {
        next: u64,
        last: u64,
    }

    /// Set by the thread when it is about to panic, which it does if it was told to.
    type Panics = Option<AtomicBool>;

    impl PartSource for Numbers {
        type Part = u64;
        type Store = Panics;

        fn next_part(&mut self, _room: Option<u64>) -> Result<Option<u64>> {
            self.next += 1;
            Ok((self.next <= self.last).then_some(self.next))
        }

        fn read(panics: &Panics, _number: &mut u64) -> Result<()> {
            let Some(is_met) = panics else { return Ok(()) };
            if std::thread::current().name() == Some("duramen-ahead") {
                is_met.store(true, Ordering::Release);
                panic!("a thread that reads ahead was told to panic");
            }
            while !is_met.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            Ok(())
        }
    }

    #[test]
    fn a_thread_that_panics_is_an_error_in_the_place_of_its_part() {
        let source = Numbers { next: 0, last: 1_000 };
        let mut ahead = Ahead::new(Some(AtomicBool::new(false)), source);
        if ahead.thread.is_none() {
            return;
        }
        let mut expected = 1;
        let error = loop {
            match ahead.next(None) {
                Ok(Some(number)) => assert_eq!(number, expected),
                Ok(None) => panic!("the part that was lost is missing"),
                Err(error) => break error,
            }
            expected += 1;
        };
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains("ended early"), "{error}");
        assert_eq!(ahead.next(None).unwrap(), Some(expected + 1), "the reader goes on alone");
    }

    #[test]
    fn more_readers_than_there_are_threads_for_read_all() {
        let begin = |_| Ahead::new(None, Numbers { next: 0, last: 100 });
        let mut readers: Vec<_> = (0..2 * READ_AHEAD_THREADS_MAX).map(begin).collect();
        let with_thread = readers.iter().filter(|reader| reader.thread.is_some()).count();
        assert!(with_thread <= READ_AHEAD_THREADS_MAX, "{with_thread} threads");
        for reader in &mut readers {
            let all = std::iter::from_fn(|| reader.next(None).unwrap());
            assert!(all.eq(1..=100));
        }
    }
}
