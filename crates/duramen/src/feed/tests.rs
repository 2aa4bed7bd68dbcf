//! Where feeds begin, and where they go on.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::io::MemoryDevice;
use crate::{
    Clock, CommitOptions, CommitSequence, Database, ErrorKind, Feed, KeyKind, Micros, Options,
    ResumeToken, Retention, Revision, WatchFrom, WatchOptions,
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

/// Such tokens were refused as soon as the feed had passed the commit that they are of.
#[test]
fn tokens_of_a_feed_from_the_beginning_expect_nothing_that_was_dropped_before_it_began() {
    let (db, clock) = open();
    let records = db.create_collection("r", KeyKind::Text).unwrap();
    let document = db.create_document("d").unwrap();
    for n in 1..4 {
        clock.0.store(n * 1_000, Ordering::Relaxed);
        document.put(n.to_string(), &how()).unwrap();
        let keys = ["a", "b"].map(|key| (key, format!(r#"{{"n":{n}}}"#)));
        records.put_many(keys, &how()).unwrap();
    }
    retain(&db, "r", 1);
    for from in [WatchFrom::Beginning, WatchFrom::Time(Micros(0))] {
        let told = drain(&mut watch(&db, &[], from));
        assert_eq!(told.len(), 5);
        for (at, (_, _, token)) in told.iter().enumerate() {
            let token: ResumeToken = token.to_string().parse().unwrap();
            let mut feed = watch(&db, &[], WatchFrom::Token(token));
            assert_eq!(feed.token(), token);
            assert_eq!(drain(&mut feed), told[at + 1..], "behind {token}");
        }
        // That of a feed says the same, and once all from before it began is told nothing of it.
        let mut feed = watch(&db, &[], from);
        drop(feed.try_next().unwrap().unwrap());
        let mut later = watch(&db, &[], WatchFrom::Token(feed.token()));
        assert_eq!(drain(&mut later), told[1..]);
        assert_eq!(later.token().to_string().split('.').count(), 3, "{}", later.token());
    }
}

/// It said to go on behind the first commit that is kept of one document, which passes over what
/// was done to the others before.
#[test]
fn a_feed_of_several_documents_that_misses_something_is_not_told_to_pass_over_the_others() {
    let (db, _) = open();
    for name in ["a", "b"] {
        let document = db.create_document(name).unwrap();
        for n in 1..4 {
            document.put(n.to_string(), &how()).unwrap();
        }
    }
    retain(&db, "a", 1);
    let refused = |documents: &[&str]| {
        let mut feed = watch(&db, documents, WatchFrom::After(CommitSequence(0)));
        let error = feed.try_next().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        error.to_string()
    };
    assert!(refused(&["a"]).contains("--from c"), "{}", refused(&["a"]));
    for documents in [&[][..], &["a", "b"]] {
        let error = refused(documents);
        assert!(!error.contains("--from c") && error.contains("read all documents"), "{error}");
    }
}
