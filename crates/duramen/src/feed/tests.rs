//! Where feeds begin, and where they go on.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::io::MemoryDevice;
use crate::{
    Clock, CommitOptions, Database, ErrorKind, Feed, Micros, Options, ResumeToken, Retention,
    Revision, WatchFrom, WatchOptions,
};

/// A clock that somebody sets.
#[derive(Debug, Default)]
struct Hand(AtomicI64);

impl Clock for Hand {
    fn now(&self) -> Micros {
        Micros(self.0.load(Ordering::Relaxed))
    }
}

fn how() -> CommitOptions {
    CommitOptions::default()
}

fn open() -> (Database, Arc<Hand>) {
    let clock = Arc::<Hand>::default();
    let options =
        Options { background: false, clock: Arc::<Hand>::clone(&clock), ..Options::default() };
    let db = Database::open_device(Arc::new(MemoryDevice::new()), options).unwrap();
    (db, clock)
}

fn watch(db: &Database, documents: &[&str], from: WatchFrom) -> Feed {
    let documents = documents.iter().map(|name| (*name).to_owned()).collect();
    db.watch(&WatchOptions { documents, from, ..WatchOptions::default() }).unwrap()
}

fn retain(db: &Database, name: &str, last: u64) {
    db.document(name).unwrap().retain(Retention::Last(last), &how()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
}

/// What a feed tells now, and the tokens of it.
fn drain(feed: &mut Feed) -> Vec<(String, Revision, ResumeToken)> {
    let mut told = Vec::new();
    while let Some(batch) = feed.try_next().unwrap() {
        told.extend(batch.map(|event| {
            let event = event.unwrap();
            (event.document, event.revision, event.token)
        }));
    }
    told
}

fn revisions(feed: &mut Feed) -> Vec<u64> {
    drain(feed).into_iter().map(|(_, revision, _)| revision.0).collect()
}

/// A feed from a time to come delivered what was committed before it.
#[test]
fn a_feed_from_a_time_to_come_begins_at_it() {
    for has_pause in [true, false] {
        let (db, clock) = open();
        clock.0.store(1_000_000, Ordering::Relaxed);
        let document = db.create_document("a").unwrap();
        db.create_document("b").unwrap().put("1", &how()).unwrap();
        document.put("1", &how()).unwrap();
        let from = WatchFrom::Time(Micros(2_000_000));
        let mut feeds = [&[][..], &["a"], &["a", "b"]].map(|names| watch(&db, names, from));
        for n in 2..6 {
            document.put(n.to_string(), &how()).unwrap();
        }
        for feed in feeds.iter_mut().filter(|_| has_pause) {
            assert!(feed.try_next().unwrap().is_none());
        }
        clock.0.store(2_000_000, Ordering::Relaxed);
        for n in 6..8 {
            document.put(n.to_string(), &how()).unwrap();
        }
        assert!(feeds.iter_mut().all(|feed| revisions(feed) == [6, 7]));
    }
}

/// Retention that drops what was committed before the time is in no way of the feed.
#[test]
fn a_feed_from_a_time_to_come_misses_nothing_that_was_dropped_before_it() {
    let (db, clock) = open();
    clock.0.store(1_000_000, Ordering::Relaxed);
    let document = db.create_document("a").unwrap();
    let mut feeds = [1_000_100, 2_000_000].map(|time| {
        let from = WatchFrom::Time(Micros(time));
        watch(&db, &[], from)
    });
    for n in 1..6 {
        document.put(n.to_string(), &how()).unwrap();
    }
    clock.0.store(2_000_000, Ordering::Relaxed);
    document.put("6", &how()).unwrap();
    retain(&db, "a", 2);
    assert!(feeds.iter_mut().all(|feed| revisions(feed) == [6]));
    document.put("7", &how()).unwrap();
    document.put("8", &how()).unwrap();
    retain(&db, "a", 1);
    let error = feeds[0].try_next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
