//! Change feeds against what the histories of documents and collections say.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use duramen::io::{Device, MemoryDevice};
use duramen::{
    BulkOptions, CommitOptions, CommitSequence, Database, ErrorKind, Event, Feed, JsonPointer, Key,
    KeyFilter, KeyKind, LogEntry, LogQuery, Micros, Operation, Options, ResumeToken, Retention,
    Revision, ScanOptions, WatchFrom, WatchOptions,
};

use crate::damage::{device_of, files_of};

pub(crate) fn options() -> Options {
    Options { background: false, ..Options::default() }
}

pub(crate) fn how() -> CommitOptions {
    CommitOptions::default()
}

fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).unwrap()
}

/// A generator of numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn choose<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()].clone()
    }
}

pub(crate) type Told = (u64, Event);

/// Everything that a feed has now.
pub(crate) fn drain(feed: &mut Feed) -> Vec<Told> {
    let mut told = Vec::new();
    while let Some(batch) = feed.try_next().unwrap() {
        let sequence = batch.sequence.0;
        assert_eq!(feed.position().0, sequence);
        told.extend(batch.map(|event| (sequence, event.unwrap())));
    }
    told
}

/// The token that stands where tokens are not looked at.
fn no_token() -> ResumeToken {
    "c0.0.00000000".parse().unwrap()
}

/// What is told, and not where it is.
pub(crate) fn without_tokens(told: impl IntoIterator<Item = Told>) -> Vec<Told> {
    let strip = |(at, event)| (at, Event { token: no_token(), ..event });
    told.into_iter().map(strip).collect()
}

/// Events in an order that does not depend on how they are found within a commit.
fn sorted(mut told: Vec<Told>) -> Vec<Told> {
    assert!(told.is_sorted_by_key(|(sequence, _)| *sequence), "commits come in their order");
    told.sort_by_key(|(sequence, event)| (*sequence, event.document.clone(), event.key.clone()));
    told
}

/// What a value at a path was and is, as a model says it of two whole texts.
fn at_path(json: Option<&str>, path: Option<&JsonPointer>) -> Option<String> {
    let (Some(json), Some(path)) = (json, path) else { return json.map(str::to_owned) };
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    document.put(json, &how()).unwrap();
    let mut out = Vec::new();
    let head = document.head().unwrap();
    head.append_json(path, &duramen::Format::default(), &mut out).ok()?;
    Some(String::from_utf8(out).unwrap())
}

fn operation(was: bool, is: bool) -> Option<Operation> {
    match (was, is) {
        (false, false) => None,
        (false, true) => Some(Operation::Insert),
        (true, true) => Some(Operation::Update),
        (true, false) => Some(Operation::Delete),
    }
}

fn is_wanted(filter: &KeyFilter, key: &Key) -> bool {
    match filter {
        KeyFilter::All => true,
        KeyFilter::Key(wanted) => wanted == key,
        KeyFilter::Prefix(prefix) => matches!(key, Key::Text(text) if text.starts_with(prefix)),
    }
}

/// What the histories say that a feed has to tell.
fn expected(db: &Database, options: &WatchOptions) -> Vec<Told> {
    let mut names: BTreeSet<String> = db.documents().unwrap().into_iter().collect();
    names.extend(db.deleted_documents().unwrap().into_iter().map(|deleted| deleted.name));
    let mut told = Vec::new();
    for name in names {
        if options.documents.is_empty() || options.documents.contains(&name) {
            expect_document(db, options, &name, &mut told);
        }
    }
    told.sort_by_key(|(sequence, _)| *sequence);
    told
}

/// An event with nothing but what the log says.
fn bare(name: &str, entry: &LogEntry, operation: Operation) -> Event {
    Event {
        document: name.to_owned(),
        revision: entry.revision,
        timestamp: entry.timestamp,
        operation,
        key: None,
        version: None,
        old: None,
        new: None,
        patch: None,
        is_purged: false,
        is_first_kept: false,
        token: no_token(),
    }
}

fn expect_document(db: &Database, options: &WatchOptions, name: &str, told: &mut Vec<Told>) {
    let document = db.document(name).unwrap();
    let is_collection = document.options().unwrap().collection.is_some();
    let mut log: Vec<_> = document.log(&LogQuery::default()).unwrap().map(Result::unwrap).collect();
    log.reverse();
    let (mut before, mut records) = (None, BTreeMap::new());
    for entry in log {
        let event = |operation| bare(name, &entry, operation);
        let path = options.path.as_ref();
        if is_collection {
            let now = match db.collection(name).unwrap().at(entry.revision) {
                Err(_) => BTreeMap::new(),
                Ok(records) => {
                    let records = records.scan(&ScanOptions::default()).unwrap();
                    let named = |r: duramen::Record| (r.key, (r.version, r.json));
                    records.map(|record| named(record.unwrap())).collect()
                }
            };
            let keys: BTreeSet<Key> = records.keys().chain(now.keys()).cloned().collect();
            for key in keys.into_iter().filter(|key| is_wanted(&options.keys, key)) {
                let (old, new) = (records.get(&key), now.get(&key));
                let version = new.map(|(version, _)| *version);
                if old == new {
                    continue;
                }
                let text = |side: Option<&(u64, String)>| {
                    at_path(side.map(|(_, json)| json.as_str()), path)
                };
                let (old, new) = (text(old), text(new));
                let Some(operation) = operation(old.is_some(), new.is_some()) else { continue };
                if path.is_none() || old != new {
                    let key = Some(key);
                    let event = Event { key, version, old, new, ..event(operation) };
                    told.push((entry.sequence.0, event));
                }
            }
            records = now;
            continue;
        }
        let now = document.at(entry.revision).ok().map(|snapshot| snapshot.to_json().unwrap());
        let (old, new) = (at_path(before.as_deref(), path), at_path(now.as_deref(), path));
        let found = operation(old.is_some(), new.is_some());
        if let Some(operation) = found
            && (path.is_none() || old != new)
            && options.keys == KeyFilter::All
        {
            let is_update = operation == Operation::Update;
            let difference = (is_update && path.is_none()).then(|| {
                let earlier = Revision(entry.revision.0 - 1);
                document.diff(earlier, entry.revision).unwrap().to_json_patch()
            });
            let (old, new) = if options.values { (old, new) } else { (None, None) };
            told.push((
                entry.sequence.0,
                Event { patch: difference, old, new, ..event(operation) },
            ));
        }
        before = now;
    }
}

/// The patches of values at a path are looked at elsewhere.
fn without_patches(told: Vec<Told>, options: &WatchOptions) -> Vec<Told> {
    let strip = |(sequence, event): Told| {
        let patch = event.patch.clone().filter(|_| options.path.is_none());
        (sequence, Event { patch, ..event })
    };
    told.into_iter().map(strip).collect()
}

fn assert_told(db: &Database, options: &WatchOptions, after: u64, told: Vec<Told>) {
    let wanted = expected(db, options).into_iter().filter(|(sequence, _)| *sequence > after);
    let told = without_tokens(without_patches(sorted(told), options));
    let wanted = sorted(wanted.collect());
    assert_eq!(told.len(), wanted.len(), "{options:?}");
    for (told, wanted) in told.iter().zip(&wanted) {
        assert_eq!(told, wanted, "{options:?}");
    }
}

fn value(random: &mut Random) -> String {
    format!(
        r#"{{"a":{},"b":{{"c":{},"d":[{}]}}{}}}"#,
        random.below(3),
        random.below(3),
        (0..random.below(4)).map(|_| random.below(3).to_string()).collect::<Vec<_>>().join(","),
        if random.below(2) == 0 { r#","e":"x""# } else { "" }
    )
}

fn key(random: &mut Random, name: &str) -> Key {
    match name {
        "numbers" => Key::U64(random.below(6)),
        _ => Key::Text(format!("{}/{}", random.choose(&["x", "y"]), random.below(4))),
    }
}

/// One random commit. What somebody else is writing is left alone.
pub(crate) fn change(db: &Database, random: &mut Random) {
    let collection = random.choose(&["texts", "numbers"]);
    let document = random.choose(&["one", "two", "new1", "new2"]);
    let json = value(random);
    let mut transaction = db.transaction();
    let staged = match random.below(12) {
        0..=2 => transaction.put(document, json.as_bytes()),
        3 => transaction.delete_document(document),
        4 => transaction.delete_document(collection),
        5 => transaction.put(collection, b"{}"),
        6 => {
            let keys = [key(random, collection), key(random, collection)];
            transaction.delete_records(collection, &keys).map(drop)
        }
        7 => {
            let bad = key(random, collection);
            transaction.put_record(collection, &bad, json.as_bytes()).unwrap_or(());
            return transaction.rollback();
        }
        8 => transaction
            .put_record("texts", &key(random, "texts"), json.as_bytes())
            .and_then(|()| {
                transaction.put_record("numbers", &key(random, "numbers"), json.as_bytes())
            })
            .and_then(|()| transaction.put(document, json.as_bytes())),
        _ => (0..=random.below(3)).try_for_each(|_| {
            let (key, json) = (key(random, collection), value(random));
            transaction.put_record(collection, &key, json.as_bytes())
        }),
    };
    match staged.and_then(|()| transaction.commit(&how()).map(drop)) {
        Ok(()) => {}
        Err(error) => {
            let kind = error.kind();
            assert!(
                [ErrorKind::NotFound, ErrorKind::Busy, ErrorKind::Invalid].contains(&kind),
                "{error}"
            );
        }
    }
}

pub(crate) fn filter(random: &mut Random) -> WatchOptions {
    let documents = [&[][..], &[], &["one"], &["texts"], &["numbers", "one", "two"]];
    let keys = [
        KeyFilter::All,
        KeyFilter::All,
        KeyFilter::Key("x/1".into()),
        KeyFilter::Key(Key::U64(2)),
        KeyFilter::Prefix("y/".to_owned()),
    ];
    let paths = [None, None, Some("/a"), Some("/b"), Some("/b/d/0"), Some("/e")];
    WatchOptions {
        documents: random.choose(&documents).iter().map(|&name| name.into()).collect(),
        keys: random.choose(&keys),
        path: random.choose(&paths).map(pointer),
        values: random.below(2) == 0,
        from: WatchFrom::Now,
    }
}

pub(crate) fn make(db: &Database) {
    db.create_collection("texts", KeyKind::Text).unwrap();
    db.create_collection("numbers", KeyKind::U64).unwrap();
    db.create_document("one").unwrap();
    db.create_document("two").unwrap();
}

/// Reads a feed while others commit, now and then going on in another one from where it was.
fn follow(
    db: &Database,
    options: &WatchOptions,
    random: &mut Random,
    is_done: &AtomicBool,
) -> Vec<Told> {
    let mut feed = db.watch(options).unwrap();
    let mut told = Vec::new();
    loop {
        let was_done = is_done.load(Ordering::SeqCst);
        let next = feed.next(Duration::from_millis(random.below(3))).unwrap();
        match next {
            Some(batch) => {
                let sequence = batch.sequence.0;
                told.extend(batch.map(|event| (sequence, event.unwrap())));
            }
            None if was_done => return told,
            None => {}
        }
        if random.below(8) == 0 {
            let from = WatchFrom::After(feed.position());
            feed = db.watch(&WatchOptions { from, ..options.clone() }).unwrap();
        }
    }
}

/// Random commits, with checkpoints and compactions between them.
fn write(db: &Database, (seed, writer): (u64, u64)) {
    let mut random = Random(seed * 77 + writer);
    for step in 0..40 {
        change(db, &mut random);
        if writer == 0 && step % 5 == 4 {
            db.checkpoint().unwrap();
        }
        if writer == 1 && step % 20 == 19 {
            db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
        }
    }
}

/// Commits by several threads while feeds with random filters are read at their own pace.
fn live(db: &Database, seed: u64) {
    let (after, is_done) = (db.snapshot().sequence().0, AtomicBool::new(false));
    let read = &|follower| {
        let mut random = Random(seed * 31 + follower);
        let from = WatchFrom::After(CommitSequence(after));
        let options = WatchOptions { from, ..filter(&mut random) };
        let told = follow(db, &options, &mut random, &is_done);
        (options, told)
    };
    std::thread::scope(|scope| {
        let followers: Vec<_> =
            (0..4).map(|follower| scope.spawn(move || read(follower))).collect();
        let writers: Vec<_> =
            (0..3).map(|writer| scope.spawn(move || write(db, (seed, writer)))).collect();
        for writer in writers {
            writer.join().unwrap();
        }
        is_done.store(true, Ordering::SeqCst);
        for follower in followers {
            let (options, told) = follower.join().unwrap();
            assert_told(db, &options, after, told);
        }
    });
}

#[test]
fn feeds_tell_what_the_histories_say_each_once_and_in_order() {
    let mut count = 0;
    for seed in 0..8 {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let db = Database::open_device(Arc::clone(&device), options()).unwrap();
        make(&db);
        live(&db, seed);
        let mut random = Random(seed);
        let mut kept = Vec::new();
        for _ in 0..6 {
            let options = WatchOptions { from: WatchFrom::Beginning, ..filter(&mut random) };
            let mut feed = db.watch(&options).unwrap();
            let mut told = Vec::new();
            // Some are read up to somewhere, and go on when the database is opened again.
            for _ in 0..random.below(30) {
                let Some(batch) = feed.try_next().unwrap() else { break };
                let sequence = batch.sequence.0;
                told.extend(batch.map(|event| (sequence, event.unwrap())));
            }
            kept.push((options, feed.token(), told));
        }
        db.close().unwrap();
        let db = Database::open_device(device, Options::default()).unwrap();
        live(&db, seed + 100);
        for (options, token, mut told) in kept {
            let from = WatchFrom::Token(token);
            let mut feed = db.watch(&WatchOptions { from, ..options.clone() }).unwrap();
            told.extend(drain(&mut feed));
            count += told.len();
            assert_told(&db, &options, 0, told);
        }
    }
    assert!(count > 2_000, "{count} events");
}

fn watch(db: &Database, from: WatchFrom) -> Feed {
    db.watch(&WatchOptions { from, ..WatchOptions::default() }).unwrap()
}

/// Who was told of what, in which commit.
fn brief(told: &[Told]) -> Vec<(u64, &str, Operation)> {
    told.iter().map(|(at, event)| (*at, event.document.as_str(), event.operation)).collect()
}

#[test]
fn events_have_the_name_of_then_and_a_feed_stays_with_its_document() {
    use Operation::{Insert, Update};
    let db = Database::memory().unwrap();
    for name in ["a", "b"] {
        db.create_document(name).unwrap().put("1", &how()).unwrap();
    }
    let a = WatchOptions { documents: vec!["a".to_owned()], ..WatchOptions::default() };
    let mut feed = db.watch(&a).unwrap();
    // The names go around: what was "a" is "b" in the end, and "b" is "a".
    for (from, to) in [("a", "c"), ("b", "a"), ("c", "b")] {
        db.rename_document(from, to, &how()).unwrap();
        db.document(to).unwrap().put(format!("\"{to}\""), &how()).unwrap();
    }
    db.create_document("new").unwrap().put("1", &how()).unwrap();
    db.document("b").unwrap().put("2", &how()).unwrap();
    assert_eq!(brief(&drain(&mut feed)), [(6, "c", Update), (10, "b", Update), (13, "b", Update)]);
    let told = drain(&mut watch(&db, WatchFrom::Beginning));
    let wanted = [
        (2, "a", Insert),
        (4, "b", Insert),
        (6, "c", Update),
        (8, "a", Update),
        (10, "b", Update),
        (12, "new", Insert),
        (13, "b", Update),
    ];
    assert_eq!(brief(&told), wanted);
}

#[test]
fn what_retention_dropped_is_an_error_that_tells_where_the_feed_can_go_on() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let mut slow = watch(&db, WatchFrom::Now);
    for value in 1..=6 {
        document.put(value.to_string(), &how()).unwrap();
    }
    document.retain(Retention::Last(2), &how()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(document.first_revision().unwrap(), Revision(5));
    for _ in 0..2 {
        let error = slow.try_next().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("\"d\" begins at revision 5"), "{error}");
        assert!(error.to_string().contains("read all documents that are watched again"), "{error}");
    }
    let told = drain(&mut watch(&db, WatchFrom::After(CommitSequence(6))));
    assert_eq!(told.iter().map(|(_, event)| event.revision.0).collect::<Vec<_>>(), [6]);
    // A time before the history begins was once refused.
    for from in [WatchFrom::Beginning, WatchFrom::Time(Micros(0))] {
        let options = WatchOptions { values: true, from, ..Default::default() };
        let told = drain(&mut db.watch(&options).unwrap());
        let values: Vec<_> = told
            .iter()
            .map(|(_, event)| (event.revision.0, event.operation, event.new.as_deref().unwrap()))
            .collect();
        assert_eq!(values, [(5, Operation::Insert, "5"), (6, Operation::Update, "6")]);
    }
}

/// What the first kept revision has was once told as what its commit had brought.
#[test]
fn what_may_have_been_there_before_the_history_begins_is_marked() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("c", KeyKind::Text).unwrap();
    for (key, value) in [("a", 1), ("b", 1), ("a", 2), ("d", 1)] {
        records.put(key, format!(r#"{{"n":{value}}}"#), &how()).unwrap();
    }
    let marked = |options: &WatchOptions| -> Vec<(u64, Option<Key>, bool)> {
        let told = drain(&mut db.watch(options).unwrap());
        told.into_iter().map(|(_, e)| (e.revision.0, e.key, e.is_first_kept)).collect()
    };
    let key = |text: &str| Some(Key::Text(text.to_owned()));
    let all = WatchOptions { from: WatchFrom::Beginning, ..Default::default() };
    // A first revision that nothing was before is the one that inserts.
    assert!(marked(&all).iter().all(|(.., is_first_kept)| !is_first_kept));

    records.document().retain(Retention::Last(2), &how()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    let rest = (4, key("d"), false);
    assert_eq!(marked(&all), [(3, key("a"), true), (3, key("b"), true), rest]);
    let one = WatchOptions { keys: KeyFilter::Key(Key::Text("b".to_owned())), ..all };
    assert_eq!(marked(&one), [(3, key("b"), true)]);
}

#[test]
fn a_slow_reader_loses_nothing_that_left_memory() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let db = Database::open_device(Arc::clone(&device), options()).unwrap();
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    let document = db.create_document("document").unwrap();
    let (mut all, mut one) = (watch(&db, WatchFrom::Now), watch(&db, WatchFrom::Now));
    let commits = duramen::limits::RECENT_CHANGES_MAX as u64 + 500;
    for commit in 0..commits {
        if commit.is_multiple_of(4) {
            document.put(commit.to_string(), &how()).unwrap();
        } else {
            let value = format!(r#"{{"n":{commit}}}"#);
            records.put(commit % 1000, value, &how()).unwrap();
        }
        if commit == commits / 2 {
            // One has begun before, and is behind what is remembered when it goes on.
            assert!(one.try_next().unwrap().is_some());
            db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
        }
    }
    let told = drain(&mut all);
    let sequences: Vec<u64> = told.iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!(sequences, (3..3 + commits).collect::<Vec<_>>());
    assert_eq!(drain(&mut one).len() as u64, commits - 1);
    drop((records, document, all, one));
    db.close().unwrap();
    let db = Database::open_device(device, options()).unwrap();
    let again = drain(&mut watch(&db, WatchFrom::Beginning));
    assert_eq!(without_tokens(again), without_tokens(told));
}

#[test]
fn a_commit_of_more_documents_than_a_page_has_is_one_batch() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let db = Database::open_device(Arc::clone(&device), options()).unwrap();
    let documents = duramen::limits::FEED_PAGE_CHANGES + 300;
    let mut transaction = db.transaction();
    for document in 0..documents {
        transaction.put(&format!("{document}"), b"1").unwrap();
    }
    transaction.commit(&how()).unwrap();
    db.document("7").unwrap().put("2", &how()).unwrap();
    db.close().unwrap();
    let db = Database::open_device(device, options()).unwrap();
    let mut feed = watch(&db, WatchFrom::Beginning);
    assert_eq!(feed.try_next().unwrap().unwrap().count(), documents);
    assert_eq!(feed.try_next().unwrap().unwrap().count(), 1);
    assert!(feed.try_next().unwrap().is_none());
}

#[test]
fn what_is_loaded_at_once_is_one_commit_of_which_all_is_told() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("c", KeyKind::Text).unwrap();
    records.put("k0100", "{}", &how()).unwrap();
    let mut feed = watch(&db, WatchFrom::Now);
    let values = (0..5_000).map(|n| (format!("k{n:04}"), format!(r#"{{"n":{n}}}"#)));
    records.put_many(values, &how()).unwrap();
    let batch = feed.next(Duration::ZERO).unwrap().unwrap();
    let keys: Vec<_> = batch.map(|event| event.unwrap().key.unwrap().to_string()).collect();
    let mut wanted: Vec<_> = (0..5_000).map(|n| format!("k{n:04}")).collect();
    wanted[..=100].rotate_right(1);
    assert_eq!(keys, wanted);

    let bulk = BulkOptions { lines: true, ..BulkOptions::default() };
    let mut go_on = |_| ControlFlow::Continue(());
    let text = "{\"id\":1}\n".repeat(1_000);
    let (commit, _) = db.bulk_load("d", &mut text.as_bytes(), &bulk, &mut go_on).unwrap();
    records.put("k0007", "{}", &how()).unwrap();
    let told = drain(&mut feed);
    assert_eq!(told[0].0, commit.sequence.0);
    let wanted = [(told[0].0, "d", Operation::Insert), (told[1].0, "c", Operation::Update)];
    assert_eq!(brief(&told), wanted);
    assert_eq!(told[1].1.old.as_deref(), Some(r#"{"n":7}"#));
    assert_eq!(told[1].1.version, Some(2));
}

#[test]
fn purged_records_are_told_without_what_they_were() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("c", KeyKind::Text).unwrap();
    for value in [r#"{"n":1}"#, r#"{"n":2}"#] {
        records.put("ann", value, &how()).unwrap();
    }
    let purge = duramen::PurgeOptions::default();
    let mut go_on = |_, _| ControlFlow::Continue(());
    records.document().purge(&pointer("/ann"), &purge, &mut go_on).unwrap();
    let told = drain(&mut watch(&db, WatchFrom::Beginning));
    assert!(told.len() >= 2);
    for (_, event) in &told {
        assert_eq!((event.is_purged, &event.old, &event.new), (true, &None, &None));
    }
}

#[test]
fn a_feed_begins_at_a_time_and_refuses_commits_that_are_not_there() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let mut times = Vec::new();
    for value in 1..=4 {
        document.put(value.to_string(), &how()).unwrap();
        times.push(db.document("d").unwrap().log(&LogQuery::default()).unwrap().next());
    }
    let committed: Vec<Micros> =
        times.into_iter().map(|entry| entry.unwrap().unwrap().committed).collect();
    for (index, time) in committed.iter().enumerate() {
        assert_eq!(drain(&mut watch(&db, WatchFrom::Time(*time))).len(), 4 - index);
        let after = Micros(time.0 + 1);
        assert_eq!(drain(&mut watch(&db, WatchFrom::Time(after))).len(), 3 - index);
    }
    let from = WatchFrom::After(CommitSequence(99));
    let error = db.watch(&WatchOptions { from, ..WatchOptions::default() }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let documents = vec!["nowhere".to_owned()];
    let error = db.watch(&WatchOptions { documents, ..WatchOptions::default() }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn waiting_ends_with_a_commit_or_with_its_time() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    db.create_document("other").unwrap();
    let documents = vec!["d".to_owned()];
    let mut feed = db.watch(&WatchOptions { documents, ..WatchOptions::default() }).unwrap();
    assert!(feed.next(Duration::from_millis(20)).unwrap().is_none());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            db.document("other").unwrap().put("1", &how()).unwrap();
            std::thread::sleep(Duration::from_millis(30));
            document.put("1", &how()).unwrap();
        });
        let batch = feed.next(Duration::from_mins(10)).unwrap().unwrap();
        assert_eq!(batch.count(), 1);
    });
}

#[test]
fn a_database_opened_for_reading_follows_its_writer() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let db = Database::open_device(Arc::clone(&device), options()).unwrap();
    let document = db.create_document("d").unwrap();
    let reading = Options { read_only: true, ..options() };
    let reader = Database::open_device(device, reading).unwrap();
    let mut feed = watch(&reader, WatchFrom::Now);
    for value in 0..40 {
        assert!(feed.next(Duration::ZERO).unwrap().is_none());
        document.put(value.to_string(), &how()).unwrap();
        if value % 7 == 3 {
            db.checkpoint().unwrap();
        }
        if value % 10 == 9 {
            db.create_document(&format!("{value}")).unwrap().put("1", &how()).unwrap();
        }
        let told: Vec<_> = std::iter::from_fn(|| feed.next(Duration::ZERO).unwrap()).collect();
        assert_eq!(told.len(), 1 + usize::from(value % 10 == 9));
    }
}

#[test]
fn a_patch_makes_the_new_document_of_the_old_one() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let mut feeds: Vec<Feed> = ["", "/a", "/list/0"]
        .map(|path| {
            let path = Some(pointer(path)).filter(|path| path.to_string() != "");
            let documents = vec!["d".to_owned()];
            let options = WatchOptions { documents, path, ..WatchOptions::default() };
            db.watch(&options).unwrap()
        })
        .into();
    let values = [
        r#"{"a":{"b":1},"list":[1,2]}"#,
        r#"{"a":{"b":2,"c":[3]},"list":[2]}"#,
        r#"{"a":5,"list":[2,7]}"#,
        r#"{"list":[{"x":1}]}"#,
        r#"{"list":[{"x":2}],"a":null}"#,
    ];
    for value in values {
        assert!(document.put(value, &how()).unwrap().is_committed());
    }
    let copy = db.create_document("copy").unwrap();
    for feed in &mut feeds {
        for (_, event) in drain(feed) {
            let Some(patch) = &event.patch else { continue };
            assert_eq!(event.operation, Operation::Update);
            let before = document.at(Revision(event.revision.0 - 1)).unwrap();
            copy.put(before.to_json().unwrap(), &how()).unwrap();
            copy.patch(patch, &how()).unwrap();
            let after = document.at(event.revision).unwrap();
            let place = if patch.contains("\"/a") && !patch.contains("\"/list") {
                "/a"
            } else if patch.contains("\"/list") && !patch.contains("\"/a") {
                "/list/0"
            } else {
                ""
            };
            let value = |snapshot: duramen::Snapshot| {
                let mut text = Vec::new();
                let format = duramen::Format::default();
                snapshot.append_json(&pointer(place), &format, &mut text).unwrap();
                text
            };
            assert_eq!(value(copy.head().unwrap()), value(after), "{patch}");
        }
    }
}

#[test]
fn a_token_of_a_commit_that_was_lost_is_refused_although_another_one_has_its_number() {
    let device = Arc::new(MemoryDevice::new());
    let db = Database::open_device(device.clone(), options()).unwrap();
    let document = db.create_document("d").unwrap();
    let mut feed = watch(&db, WatchFrom::Now);
    document.put("1", &how()).unwrap();
    drain(&mut feed);
    let kept = feed.token();
    let lost_from = files_of(&device);
    document.put("2", &how()).unwrap();
    drain(&mut feed);
    let lost = feed.token();

    // The device as a power loss leaves it that takes the second commit.
    let device: Arc<dyn Device> = Arc::new(device_of(&lost_from, ("none", &[])));
    let db = Database::open_device(device, options()).unwrap();
    let document = db.document("d").unwrap();
    let from = |token| WatchOptions { from: WatchFrom::Token(token), ..WatchOptions::default() };
    let refused = db.watch(&from(lost)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    document.put("3", &how()).unwrap();
    assert_eq!(watch(&db, WatchFrom::Now).position(), lost.sequence());
    let refused = db.watch(&from(lost)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    assert!(refused.to_string().contains("was lost with the power"), "{refused}");
    assert_eq!(brief(&drain(&mut db.watch(&from(kept)).unwrap())), [(3, "d", Operation::Update)]);

    let other = Database::memory().unwrap();
    let refused = other.watch(&from(kept)).unwrap_err();
    assert!(refused.to_string().contains("another database"), "{refused}");
}

#[test]
fn a_prefix_of_keys_that_are_no_strings_is_refused() {
    let db = Database::memory().unwrap();
    make(&db);
    let of = |names: &[&str]| WatchOptions {
        documents: names.iter().map(|&name| name.into()).collect(),
        keys: KeyFilter::Prefix("1".to_owned()),
        ..WatchOptions::default()
    };
    assert_eq!(db.watch(&of(&["numbers"])).unwrap_err().kind(), ErrorKind::Invalid);
    db.watch(&of(&["numbers", "texts"])).unwrap();
}

/// A document that was named twice was told of twice, and documents came as they were named.
#[test]
fn documents_are_told_of_once_and_in_the_order_in_which_they_were_made() {
    let db = Database::memory().unwrap();
    for name in ["first", "second"] {
        db.create_document(name).unwrap();
    }
    let documents = ["second", "first", "second"].map(str::to_owned).to_vec();
    let mut feed = db.watch(&WatchOptions { documents, ..WatchOptions::default() }).unwrap();
    let mut transaction = db.transaction();
    for name in ["first", "second"] {
        transaction.put(name, b"1").unwrap();
    }
    transaction.commit(&how()).unwrap();
    let told = drain(&mut feed);
    let names: Vec<_> = brief(&told).into_iter().map(|(_, name, _)| name).collect();
    assert_eq!(names, ["first", "second"]);
}
