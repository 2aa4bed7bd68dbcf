//! Documents that keep part of their history, against models of what they had.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use duramen::io::MemoryDevice;
use duramen::{
    BlameOptions, Clock, CommitOptions, Database, Document, ErrorKind, JsonPointer, KeyKind,
    LogQuery, Micros, Options, Retention, Revision, Scope,
};
use serde_json::{Value, json};

/// A clock that goes on by one second each time.
#[derive(Debug, Default)]
struct Seconds(AtomicI64);

impl Clock for Seconds {
    fn now(&self) -> Micros {
        Micros(self.0.fetch_add(1_000_000, Ordering::Relaxed))
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

fn open(device: &Arc<MemoryDevice>, clock: &Arc<Seconds>) -> Database {
    let clock = Arc::<Seconds>::clone(clock);
    let options = Options { background: false, clock, ..Options::default() };
    Database::open_device(Arc::<MemoryDevice>::clone(device), options).unwrap()
}

fn compact(db: &Database) {
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
}

fn plain() -> CommitOptions {
    CommitOptions::default()
}

/// Changes a value: members come, go and come back, and long texts are stored apart.
fn change(value: &mut Value, random: &mut Random, revision: usize) {
    let object = value.as_object_mut().unwrap();
    for _ in 0..=random.below(3) {
        let name = ["a", "b", "c", "d", "e"][random.below(5)];
        let new = match random.below(8) {
            0 => json!({"x": revision, "y": {"z": random.below(3)}}),
            1 => json!([revision, random.below(3), {"i": random.below(3)}]),
            2 => json!(format!("{revision} {}", "long ".repeat(1_000))),
            3 | 4 => {
                object.remove(name);
                continue;
            }
            _ => json!(random.below(5)),
        };
        object.insert(name.to_owned(), new);
    }
    let list = object.get_mut("list").unwrap().as_array_mut().unwrap();
    match random.below(4) {
        0 => list.insert(random.below(list.len() + 1), json!({"n": revision, "m": 1})),
        1 if !list.is_empty() => drop(list.remove(random.below(list.len()))),
        _ if !list.is_empty() => {
            let at = random.below(list.len());
            list[at]["m"] = json!(random.below(9));
        }
        _ => {}
    }
    object.insert("revision".to_owned(), json!(revision));
}

/// What a document was at each revision, `null` where it was deleted, and which of these are to be
/// there.
struct Model {
    values: Vec<Value>,
    first: usize,
    tagged: BTreeSet<usize>,
}

impl Model {
    /// Segments may have been merged, so that less is there; what is to be kept is.
    fn merged(&mut self, document: &Document, keep: Retention) {
        let first = usize::try_from(document.first_revision().unwrap().0).unwrap();
        let latest = keep_from(keep, self.values.len()).max(self.first);
        assert!((self.first..=latest).contains(&first), "{first} to {latest}");
        self.first = first;
    }

    fn check(&self, document: &Document) {
        let mut kept = Vec::new();
        for (revision, expected) in (1..).zip(&self.values) {
            let found = document.at(Revision(revision as u64));
            if revision >= self.first && expected.is_null() {
                let error = found.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                let is_before = revision > self.first || self.tagged.contains(&(revision - 1));
                let told = if is_before { "read an earlier one" } else { "keeps none before" };
                assert!(error.to_string().contains(told), "{error}");
                kept.push(revision as u64);
            } else if revision >= self.first || self.tagged.contains(&revision) {
                let found: Value =
                    serde_json::from_str(&found.unwrap().to_json().unwrap()).unwrap();
                assert_eq!(&found, expected, "revision {revision}");
                kept.push(revision as u64);
            } else {
                let error = found.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                let told = format!("the history begins at revision {}", self.first);
                assert!(error.to_string().contains(&told), "{error}");
            }
        }
        kept.reverse();
        let logged = document.log(&LogQuery::default()).unwrap();
        let logged: Vec<u64> = logged.map(|entry| entry.unwrap().revision.0).collect();
        assert_eq!(logged, kept);
        assert_eq!(document.first_revision().unwrap(), Revision(self.first as u64));
        let timestamps = document.timestamps().unwrap();
        assert_eq!(timestamps.len(), self.values.len() + 1 - self.first);
        for (revision, time) in (self.first as u64..).zip(timestamps) {
            let found = document.at_time(time).map(|found| found.revision());
            let is_deleted = self.is_deleted(usize::try_from(revision).unwrap());
            assert_eq!(found.ok(), (!is_deleted).then_some(Revision(revision)));
        }
        self.check_diffs(document);
        if !self.is_deleted(self.values.len()) {
            self.check_histories(document);
        }
    }

    fn is_deleted(&self, revision: usize) -> bool {
        self.values[revision - 1].is_null()
    }

    fn check_diffs(&self, document: &Document) {
        let head = self.values.len();
        let starts =
            self.tagged.iter().copied().chain([self.first, usize::midpoint(self.first, head)]);
        for start in starts {
            if self.is_deleted(start) || self.is_deleted(head) {
                continue;
            }
            for (from, to) in [(start, head), (head, start)] {
                let diff = document.diff(Revision(from as u64), Revision(to as u64)).unwrap();
                let copy = Database::memory().unwrap().create_document("copy").unwrap();
                copy.put(self.values[from - 1].to_string(), &plain()).unwrap();
                copy.patch(diff.to_json_patch(), &plain()).unwrap();
                let value: Value =
                    serde_json::from_str(&copy.head().unwrap().to_json().unwrap()).unwrap();
                assert_eq!(value, self.values[to - 1], "{from} to {to}");
            }
        }
    }

    /// Histories, changes and blame begin where the history begins.
    fn check_histories(&self, document: &Document) {
        let head = document.head().unwrap();
        let names = self.values.last().unwrap().as_object().unwrap().keys();
        for name in names {
            let pointer = JsonPointer::parse(&format!("/{name}")).unwrap();
            let mut covered = BTreeMap::new();
            for run in head.history(&pointer).unwrap() {
                let run = run.unwrap();
                let value: Value = serde_json::from_str(&run.value.to_string()).unwrap();
                for revision in run.first.0..=run.last.0 {
                    covered.insert(usize::try_from(revision).unwrap(), value.clone());
                }
            }
            let mut expected: BTreeMap<usize, Value> = (self.first..=self.values.len())
                .filter_map(|at| Some((at, self.values[at - 1].get(name)?.clone())))
                .collect();
            // A member that came back may be another node than the one it was: the node of now
            // has no history from before.
            let from = covered.keys().next().copied().unwrap();
            expected.retain(|&revision, _| revision >= from);
            assert_eq!(covered, expected, "{name}");
            let timeline = head.timeline(&pointer.clone().into(), Scope::Subtree).unwrap();
            let changes: Vec<_> = timeline.changes().map(|change| change.unwrap()).collect();
            assert!(changes.iter().all(|change| change.revision.0 >= self.first as u64));
            assert_eq!(changes.last().unwrap().revision.0, from as u64, "{name}");
        }
        for entry in head.blame(&JsonPointer::root().into(), &BlameOptions::default()).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.is_older, !self.is_there(entry.revision), "{}", entry.pointer);
            assert_eq!(entry.author.is_none(), entry.is_older);
        }
    }

    fn is_there(&self, revision: Revision) -> bool {
        let revision = usize::try_from(revision.0).unwrap();
        revision >= self.first || self.tagged.contains(&revision)
    }
}

fn check_clean(db: &Database) {
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

/// The first revision that is to be kept.
fn keep_from(keep: Retention, head: usize) -> usize {
    match keep {
        Retention::Head => head.max(1),
        Retention::Last(count) => (head + 1).saturating_sub(usize::try_from(count).unwrap()).max(1),
        _ => 1,
    }
}

/// Lives of documents whose retention changes, whose segments are merged at random times, with
/// everything read back after each and after opening again.
fn live(seed: u64) {
    let (device, clock) = (Arc::new(MemoryDevice::new()), Arc::new(Seconds::default()));
    let mut random = Random(seed);
    let mut db = open(&device, &clock);
    let mut document = db.create_document("d").unwrap();
    let mut model = Model { values: Vec::new(), first: 1, tagged: BTreeSet::new() };
    let mut keep = Retention::All;
    let mut value = json!({"list": []});
    let ann = CommitOptions { author: Some("ann".to_owned()), ..plain() };
    while model.values.len() < 120 {
        let head = model.values.len();
        match random.below(30) {
            0 => {
                db.checkpoint().unwrap();
                model.merged(&document, keep);
            }
            1 | 2 if head > 0 => {
                let last = Retention::Last(1 + random.below(40) as u64);
                keep = [last, last, Retention::Head, Retention::All][random.below(4)];
                document.retain(keep, &plain()).unwrap();
            }
            3 if head > model.first => {
                let at = model.first + random.below(head - model.first);
                if model.is_deleted(at) {
                    continue;
                }
                document.tag(&format!("t{at}"), Some(Revision(at as u64)), &plain()).unwrap();
                model.tagged.insert(at);
            }
            4 if head > 0 => {
                compact(&db);
                model.first = model.first.max(keep_from(keep, head));
                model.check(&document);
                check_clean(&db);
            }
            5 => {
                drop((document, db));
                db = open(&device, &clock);
                document = db.document("d").unwrap();
                if head > 0 {
                    model.check(&document);
                }
            }
            6 if head > model.first + 1 => {
                let to = model.first + random.below(head - model.first);
                if model.is_deleted(to) {
                    continue;
                }
                let reverted = document.revert_to(Revision(to as u64), &ann).unwrap();
                if reverted.is_committed() {
                    value = model.values[to - 1].clone();
                    model.values.push(value.clone());
                }
            }
            7 if head > 0 && !model.is_deleted(head) => {
                let outcome = db.delete_document("d", &ann).unwrap();
                assert_eq!(outcome.revision(), Revision(head as u64 + 1));
                model.values.push(Value::Null);
            }
            _ => {
                change(&mut value, &mut random, head + 1);
                let outcome = document.put(value.to_string(), &ann).unwrap();
                assert_eq!(outcome.revision(), Revision(head as u64 + 1));
                model.values.push(value.clone());
            }
        }
    }
    model.check(&document);
}

#[test]
fn what_is_kept_reads_as_before_and_what_is_not_is_refused() {
    for seed in 0..16 {
        live(seed);
    }
}

/// A counter of so many revisions, checkpointed every thousand.
fn counted(db: &Database, revisions: u64) -> Document {
    let document = db.create_document("d").unwrap();
    count(db, &document, 1..=revisions);
    document
}

fn count(db: &Database, document: &Document, revisions: RangeInclusive<u64>) {
    for revision in revisions {
        let text =
            format!("{revision} {}", "x".repeat(100 + usize::try_from(revision % 7).unwrap()));
        document.put(json!({"n": revision, "text": text}).to_string(), &plain()).unwrap();
        if revision % 1_000 == 0 {
            db.checkpoint().unwrap();
        }
    }
}

#[test]
fn space_comes_back_and_later_segments_are_trimmed_as_they_are_merged() {
    let (device, clock) = (Arc::new(MemoryDevice::new()), Arc::new(Seconds::default()));
    let db = open(&device, &clock);
    let document = counted(&db, 5_000);
    db.checkpoint().unwrap();
    // They are not compressed yet, as superseded bytes are counted.
    let before = db.stats().unwrap().segment_bytes;
    assert_eq!(db.stats().unwrap().superseded_bytes, 0);
    document.retain(Retention::Last(100), &plain()).unwrap();
    let superseded = db.stats().unwrap().superseded_bytes;
    compact(&db);
    let after = db.stats().unwrap().segment_bytes;
    let freed = before - after;
    assert!((freed / 2..=before).contains(&superseded), "{superseded} bytes of {freed}");
    assert_eq!(db.stats().unwrap().superseded_bytes, 0);
    assert!(after * 10 < before, "{before} bytes became {after}");
    assert_eq!(document.first_revision().unwrap(), Revision(4_901));
    check_clean(&db);
    // There is nothing more to drop, so that nothing is written anew.
    compact(&db);
    assert_eq!(db.stats().unwrap().segment_bytes, after);
    count(&db, &document, 5_001..=12_000);
    assert!(document.first_revision().unwrap() > Revision(4_901), "merged by itself");
}

#[test]
fn a_span_of_time_keeps_what_was_there_at_its_beginning() {
    let (device, clock) = (Arc::new(MemoryDevice::new()), Arc::new(Seconds::default()));
    let db = open(&device, &clock);
    let document = counted(&db, 50);
    document.retain(Retention::For(Duration::from_secs(20)), &plain()).unwrap();
    let begins = document.timestamps().unwrap();
    compact(&db);
    let first = document.first_revision().unwrap().0;
    assert!((2..=40).contains(&first), "{first}");
    let now = clock.now();
    let before = Micros(now.0 - 20_000_000);
    assert!(begins[usize::try_from(first).unwrap() - 1] <= before);
    document.at_time(before).unwrap();
    let error = document.at_time(begins[0]).unwrap_err();
    assert!(error.to_string().contains("begins at"), "{error}");
}

#[test]
fn a_snapshot_of_a_dropped_revision_says_so_and_reads_nothing_wrong() {
    let (device, clock) = (Arc::new(MemoryDevice::new()), Arc::new(Seconds::default()));
    let db = open(&device, &clock);
    let document = counted(&db, 50);
    let (old, kept) = (document.at(Revision(10)).unwrap(), document.at(Revision(50)).unwrap());
    document.retain(Retention::Head, &plain()).unwrap();
    compact(&db);
    for error in [
        old.to_json().unwrap_err(),
        old.timestamp().unwrap_err(),
        old.node(&JsonPointer::parse("/n").unwrap()).unwrap_err(),
        document.diff(Revision(10), Revision(50)).unwrap_err(),
        document.undo(Revision(50), &plain()).unwrap_err(),
        document.revert_to(Revision(49), &plain()).unwrap_err(),
        document.tag("t", Some(Revision(49)), &plain()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains("begins at revision 50"), "{error}");
    }
    assert!(kept.to_json().unwrap().contains("\"n\":50"));
}

/// A clock that sets a tag when it is asked for the time.
#[derive(Debug, Default)]
struct Meddler {
    seconds: Seconds,
    document: Mutex<Option<Document>>,
}

impl Clock for Meddler {
    fn now(&self) -> Micros {
        let armed = self.document.lock().unwrap().take();
        if let Some(document) = armed {
            let tag = move || document.tag("seven", Some(Revision(7)), &plain()).map(drop);
            // The thread that asks may hold what is needed to set one.
            std::thread::scope(|scope| scope.spawn(tag).join()).unwrap().unwrap();
        }
        self.seconds.now()
    }
}

/// Who set a tag once had to wait for the compaction to go through all names, or was told `Busy`.
#[test]
fn a_tag_that_is_set_while_it_is_decided_what_to_drop_is_kept() {
    let clock = Arc::new(Meddler::default());
    let options =
        Options { background: false, clock: Arc::<Meddler>::clone(&clock), ..Options::default() };
    let db = Database::open_device(Arc::new(MemoryDevice::new()), options).unwrap();
    let document = counted(&db, 50);
    document.retain(Retention::For(Duration::from_secs(5)), &plain()).unwrap();
    db.checkpoint().unwrap();
    *clock.document.lock().unwrap() = Some(db.document(document.name()).unwrap());
    compact(&db);
    assert!(clock.document.lock().unwrap().is_none(), "the clock was asked");
    assert!(document.first_revision().unwrap() > Revision(7));
    assert!(document.at_tag("seven").unwrap().to_json().unwrap().contains("\"n\":7"));
    assert_eq!(document.at(Revision(8)).unwrap_err().kind(), ErrorKind::NotFound);
    check_clean(&db);
}

#[test]
fn a_compaction_that_is_stopped_drops_nothing() {
    let (device, clock) = (Arc::new(MemoryDevice::new()), Arc::new(Seconds::default()));
    let db = open(&device, &clock);
    let document = counted(&db, 50);
    document.retain(Retention::Head, &plain()).unwrap();
    let error = db.compact(&mut |_, _| ControlFlow::Break(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(document.first_revision().unwrap(), Revision(1));
    assert!(document.at(Revision(7)).unwrap().to_json().unwrap().contains("\"n\":7"));
    compact(&db);
    assert_eq!(document.first_revision().unwrap(), Revision(50));
}

#[test]
fn the_history_that_is_left_is_exported_and_taken_over_from_1_on() {
    let (device, clock) = (Arc::new(MemoryDevice::new()), Arc::new(Seconds::default()));
    let db = open(&device, &clock);
    let document = counted(&db, 50);
    document.tag("old", Some(Revision(3)), &plain()).unwrap();
    document.tag("new", Some(Revision(45)), &plain()).unwrap();
    document.retain(Retention::Last(10), &plain()).unwrap();
    compact(&db);
    let other = Database::memory().unwrap();
    let history = document.export().unwrap();
    let mut import = other.import_history("copy", None).unwrap();
    import.set_facts(history.facts().unwrap()).unwrap();
    for revision in history {
        import.push(&revision.unwrap()).unwrap();
    }
    assert_eq!(import.finish().unwrap(), Revision(11));
    let copy = other.document("copy").unwrap();
    assert_eq!(copy.retention().unwrap(), Retention::Last(10));
    assert_eq!(copy.tags().unwrap().len(), 2);
    let json = |document: &Document, at| document.at(Revision(at)).unwrap().to_json().unwrap();
    assert_eq!(json(&copy, 1), json(&document, 3));
    for at in 2..=11 {
        assert_eq!(json(&copy, at), json(&document, at + 39));
    }
    assert_eq!(copy.at_tag("old").unwrap().revision(), Revision(1));
    assert_eq!(copy.at_tag("new").unwrap().revision(), Revision(6));
}

/// Times once bounded the log as if nothing before the beginning of the history were kept.
#[test]
fn a_log_between_times_has_the_tagged_revisions_of_that_time() {
    let (device, clock) = (Arc::default(), Arc::default());
    let db = open(&device, &clock);
    let document = db.create_document("d").unwrap();
    let at = |revision: u64| Micros(i64::try_from(revision).unwrap() * 1_000);
    for revision in 1..=8 {
        let options = CommitOptions { timestamp: Some(at(revision)), ..plain() };
        document.put(format!("{{\"n\":{revision}}}"), &options).unwrap();
    }
    for tagged in [2, 3, 5] {
        document.tag(&format!("t{tagged}"), Some(Revision(tagged)), &plain()).unwrap();
    }
    document.retain(Retention::Last(2), &plain()).unwrap();
    compact(&db);
    let kept = [2, 3, 5, 7, 8];
    for (from, to) in (0..10).flat_map(|from| (0..10).map(move |to| (from, to))) {
        let time = |revision| Some(duramen::Moment::Time(at(revision)));
        let mut query = LogQuery { from: time(from), to: time(to), ..LogQuery::default() };
        let listed = |query: &LogQuery| -> Vec<u64> {
            let rows = document.log(query).unwrap();
            rows.map(|row| row.unwrap().revision.0).collect()
        };
        let wanted: Vec<u64> =
            kept.into_iter().filter(|kept| (from..=to).contains(kept)).rev().collect();
        assert_eq!(listed(&query), wanted, "{query:?}");
        query.path = Some(JsonPointer::parse("/n").unwrap().into());
        assert!(listed(&query).iter().all(|revision| wanted.contains(revision)), "{query:?}");
    }
}

/// A record that was saved was told as an error, or at a later version, where its revision had been
/// let go of before the version was read.
#[test]
fn what_is_saved_is_told_with_its_version_though_its_revision_is_let_go_at_once() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("records", KeyKind::U64).unwrap();
    records.document().retain(Retention::Head, &plain()).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..6_u64)
            .map(|key| {
                let records = &records;
                scope.spawn(move || {
                    for version in 1..=150 {
                        let json = format!("{{\"n\":{version}}}");
                        let saved = records.put(key, &json, &plain()).unwrap();
                        assert_eq!((saved.version, saved.outcome.is_committed()), (version, true));
                        let saved = records.put(key, &json, &plain()).unwrap();
                        assert_eq!((saved.version, saved.outcome.is_committed()), (version, false));
                    }
                })
            })
            .collect();
        let compacting = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                compact(&db);
            }
        });
        let ends: Vec<_> = writers.into_iter().map(ScopedJoinHandle::join).collect();
        is_done.store(true, Ordering::Relaxed);
        compacting.join().unwrap();
        assert!(ends.iter().all(Result::is_ok));
    });
    // A patch that takes the record away leaves none.
    let patch = br#"[{"op":"remove","path":""}]"#;
    let removed = records.patch(0_u64, patch, &plain());
    assert_eq!(removed.map_or(0, |saved| saved.version), 0);
}
