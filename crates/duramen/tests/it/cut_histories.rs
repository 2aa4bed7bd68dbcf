//! What is left of histories that were cut, whatever it begins with, is dumped, exported, loaded
//! and repaired whole.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::{Device, MemoryDevice};
use duramen::{
    BackupFolder, BackupOptions, BlameOptions, CommitOptions, CommitSequence, Database, Document,
    DumpLoad, ErrorKind, JsonPointer, KeyKind, LogQuery, Moment, Options, PurgeOptions,
    RestorePoint, Retention, Revision, ScanOptions, Target,
};

use crate::damage::Random;

fn options() -> Options {
    Options { background: false, ..Options::default() }
}

fn how() -> CommitOptions {
    CommitOptions::default()
}

/// What a document has, oldest first: values, none where it was deleted, and the names of tags.
fn story(document: &Document) -> Vec<(Option<String>, Vec<String>)> {
    let tags = document.tags().unwrap();
    let log = document.log(&LogQuery::default()).unwrap();
    let mut story: Vec<_> = log
        .map(|entry| {
            let entry = entry.unwrap();
            let value = (!entry.deleted).then(|| document.at(entry.revision).unwrap());
            let of = |tag: &&duramen::Tag| tag.revision == entry.revision;
            let names = tags.iter().filter(of).map(|tag| tag.name.clone()).collect();
            (value.map(|at| at.to_json().unwrap()), names)
        })
        .collect();
    story.reverse();
    story
}

fn loaded(db: &Database) -> Database {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let mut load = DumpLoad::into_new(Arc::clone(&device), options()).unwrap();
    let mut dump = db.snapshot().dump().unwrap();
    for item in &mut dump {
        load.push(item.unwrap()).unwrap();
    }
    load.finish(Some(dump.summary().hash)).unwrap();
    Database::open_device(device, options()).unwrap()
}

fn imported(document: &Document) -> Document {
    let (db, history) = (Database::memory().unwrap(), document.export().unwrap());
    let mut import = db.import_history("d", None).unwrap();
    import.set_facts(history.facts().unwrap()).unwrap();
    for revision in history {
        import.push(&revision.unwrap()).unwrap();
    }
    import.finish().unwrap();
    // What is there already is compared.
    let again = document.export().unwrap();
    let mut import = db.import_history("d", None).unwrap();
    again.for_each(|revision| assert!(!import.push(&revision.unwrap()).unwrap()));
    import.finish().unwrap();
    db.document("d").unwrap()
}

/// A repaired database; `lost` is asked whether all that is told as lost may be.
fn repaired(device: &Arc<dyn Device>, lost: fn(&str) -> bool) -> Database {
    let to: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let devices = (Arc::clone(device), Arc::clone(&to));
    let report =
        Database::repair_device(devices, &options(), &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.lost.iter().all(|told| lost(&told.what)), "{:?}", report.lost);
    Database::open_device(to, options()).unwrap()
}

/// A document that is put, changed, deleted and tagged, whose history is cut then.
fn cut(random: &mut Random, device: &Arc<dyn Device>) -> Database {
    let db = Database::open_device(Arc::clone(device), options()).unwrap();
    let document = db.create_document("d").unwrap();
    for step in 0..=random.below(12) {
        let value = format!(r#"{{"n":{step},"list":[{}]}}"#, random.below(3));
        match random.below(5) {
            0 if document.head().is_ok() => drop(db.delete_document("d", &how()).unwrap()),
            1 if document.head().is_ok() => {
                let place = JsonPointer::parse("/n").unwrap();
                document.set(&place, format!("[{step}]"), &how()).unwrap();
            }
            _ => drop(document.put(value, &how()).unwrap()),
        }
        if random.below(3) == 0 && document.head().is_ok() {
            document.tag(&format!("t{step}"), None, &how()).unwrap();
        }
        if random.below(4) == 0 {
            db.checkpoint().unwrap();
        }
    }
    let keep = match random.below(3) {
        0 => Retention::Head,
        most => Retention::Last(most as u64),
    };
    document.retain(keep, &how()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    db
}

#[test]
fn what_is_left_is_the_same_dumped_exported_and_repaired() {
    let (mut tagged, mut deleted) = (0, 0);
    for seed in 0..60 {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let db = cut(&mut Random(seed), &device);
        let document = db.document("d").unwrap();
        let story = story(&document);
        tagged += usize::from(
            document
                .tags()
                .unwrap()
                .iter()
                .any(|tag| tag.revision < document.first_revision().unwrap()),
        );
        deleted += usize::from(story[0].0.is_none());
        let copy = loaded(&db);
        assert!(copy.check().unwrap().is_clean(), "seed {seed}");
        let hash = db.snapshot().hash().unwrap();
        assert_eq!(copy.snapshot().hash().unwrap(), hash, "seed {seed}");
        assert_eq!(self::story(&copy.document("d").unwrap()), story, "seed {seed}");
        assert_eq!(copy.deleted_documents().unwrap().len(), db.deleted_documents().unwrap().len());
        assert_eq!(self::story(&imported(&document)), story, "seed {seed}");
        // It has all of its own history already.
        let history = document.export().unwrap();
        let mut import = db.import_history("d", None).unwrap();
        import.set_facts(history.facts().unwrap()).unwrap();
        history.for_each(|revision| assert!(!import.push(&revision.unwrap()).unwrap()));
        import.finish().unwrap();
        assert_eq!(self::story(&document), story, "seed {seed}");
        drop(document);
        db.close().unwrap();
        let repaired = repaired(&device, |_| false);
        assert_eq!(repaired.snapshot().hash().unwrap(), hash, "seed {seed}");
        assert_eq!(self::story(&repaired.document("d").unwrap()), story, "seed {seed}");
    }
    assert!(tagged > 5 && deleted > 2, "{tagged} {deleted}");
}

/// What a collection has in each revision, oldest first: keys, records and their versions; and what
/// happened to each record, newest first: versions, none where it was deleted.
type Records = (Vec<Vec<(String, String, u64)>>, Vec<Vec<Option<u64>>>);

fn records(db: &Database) -> Records {
    let records = db.collection("d").unwrap();
    let log = records.document().log(&LogQuery::default()).unwrap();
    let of_revision = |entry: duramen::LogEntry| {
        if entry.deleted {
            return Vec::new();
        }
        let scan = records.at(entry.revision).unwrap().scan(&ScanOptions::default()).unwrap();
        let of_record = |found: duramen::Record| (found.key.to_string(), found.json, found.version);
        scan.map(|found| of_record(found.unwrap())).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = log.map(|entry| of_revision(entry.unwrap())).collect();
    all.reverse();
    let of_key = |key: &str| match records.history(key) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        history => {
            let version = |found: duramen::RecordVersion| found.record.map(|is| is.version);
            history.unwrap().map(|found| version(found.unwrap())).collect()
        }
    };
    (all, ["a", "b", "c"].map(of_key).into())
}

/// A collection whose history is cut, and how many steps it took.
fn cut_records(random: &mut Random, device: &Arc<dyn Device>) -> Database {
    let db = Database::open_device(Arc::clone(device), options()).unwrap();
    let records = db.create_collection("d", KeyKind::Text).unwrap();
    let document = records.document();
    for step in 0..=random.below(24) {
        let key = ["a", "b", "c"][random.below(3)];
        match random.below(12) {
            0 if document.head().is_ok() => drop(db.delete_document("d", &how()).unwrap()),
            1 | 2 if document.head().is_ok() => drop(records.delete(key, &how()).unwrap()),
            3 | 4 => {
                let all = [("a", r#"{"n":1}"#), ("b", r#"{"n":2}"#)];
                records.put_many(all, &how()).unwrap();
            }
            _ => drop(records.put(key, format!(r#"{{"n":{}}}"#, random.below(2)), &how()).unwrap()),
        }
        if random.below(4) == 0 && document.head().is_ok() {
            document.tag(&format!("t{step}"), None, &how()).unwrap();
        }
        if random.below(4) == 0 {
            db.checkpoint().unwrap();
        }
    }
    let keep = match random.below(4) {
        0 => Retention::Head,
        most => Retention::Last(most as u64),
    };
    document.retain(keep, &how()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    for _ in 0..random.below(4) {
        let key = ["a", "b", "c"][random.below(3)];
        records.put(key, format!(r#"{{"n":{}}}"#, random.below(9)), &how()).unwrap();
    }
    db
}

#[test]
fn records_keep_their_versions_where_the_revisions_that_counted_them_were_dropped() {
    let (mut told, mut departed) = (0, 0);
    for seed in 0..200 {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let db = cut_records(&mut Random(seed), &device);
        let (expected, histories) = records(&db);
        let hash = db.snapshot().hash().unwrap();
        let document = db.document("d").unwrap();
        let mut log = document.log(&LogQuery::default()).unwrap().map(Result::unwrap);
        let is_deleted = log.any(|entry| entry.deleted);
        let check = |copy: &Database| {
            let (found, longer) = records(copy);
            assert_eq!(found, expected, "seed {seed}");
            // Tagged revisions from before the history begins are among the others now.
            for (longer, history) in longer.iter().zip(&histories).filter(|_| !is_deleted) {
                assert!(longer.starts_with(history), "seed {seed}: {longer:?} {history:?}");
            }
            assert_eq!(copy.snapshot().hash().unwrap(), hash, "seed {seed}");
            assert!(copy.check().unwrap().is_clean(), "seed {seed}");
        };
        let history: Vec<_> = document.export().unwrap().map(Result::unwrap).collect();
        told += history.iter().filter(|one| !one.versions.is_empty()).count();
        departed += usize::from(!history[0].departed.is_empty());
        let copies = [loaded(&db), loaded(&loaded(&db))];
        copies.iter().for_each(check);
        drop((imported(&document), document));
        db.close().unwrap();
        let copies = copies.into_iter().chain([repaired(&device, |_| false)]);
        let db = Database::open_device(device, options()).unwrap();
        // A key goes on counting unless what it counted while it was hidden followed a tag.
        let keys = ["a", "b", "c"].map(|key| {
            let is_shown = |at: &Vec<(String, _, _)>| at.iter().any(|(shown, ..)| shown == key);
            (key, expected.last().is_some_and(is_shown) || !expected.iter().any(is_shown))
        });
        let save = |db: &Database| {
            let records = db.collection("d").unwrap();
            let keys = keys.iter().filter(|(_, is_known)| *is_known);
            let save = |key: &str| records.put(key, r#"{"m":1}"#, &how()).unwrap().version;
            keys.map(|(key, _)| save(key)).collect::<Vec<_>>()
        };
        let saved = save(&db);
        for copy in copies {
            check(&copy);
            assert_eq!(save(&copy), saved, "seed {seed}");
        }
    }
    assert!(told > 100 && departed > 5, "{told} {departed}");
}

#[test]
fn a_history_of_records_that_never_were_dropped_says_nothing_of_versions() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("d", KeyKind::Text).unwrap();
    for n in 0..4 {
        records.put("a", format!(r#"{{"n":{n}}}"#), &how()).unwrap();
        records.delete("a", &how()).unwrap();
        records.put("a", format!(r#"{{"n":{n},"m":[1,1]}}"#), &how()).unwrap();
        db.delete_document("d", &how()).unwrap();
        records.put("b", r#"{"n":1}"#, &how()).unwrap();
    }
    for revision in records.document().export().unwrap() {
        let revision = revision.unwrap();
        assert!(revision.versions.is_empty() && revision.counted.is_empty(), "{revision:?}");
    }
    assert_eq!(self::records(&loaded(&db)), self::records(&db));
}

#[test]
fn versions_that_do_not_rise_are_refused() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("d", KeyKind::Text).unwrap();
    for n in 1..=5 {
        records.put("a", format!(r#"{{"n":{n}}}"#), &how()).unwrap();
    }
    records.document().retain(Retention::Last(2), &how()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    let told = records.document().export().unwrap().map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(told[0].versions, [("a".to_owned(), 4)].into());
    assert!(told[1].versions.is_empty());
    let most = i64::MAX as u64;
    let wrong = [(0, "a", 1), (0, "b", 4), (1, "a", 4), (1, "a", u64::MAX), (1, "a", most)];
    for (at, key, version) in wrong {
        let copy = Database::memory().unwrap();
        let mut import = copy.import_history("d", None).unwrap();
        let facts = records.document().export().unwrap().facts().unwrap();
        import.set_facts(facts).unwrap();
        let mut told = told.clone();
        told[at].versions = [(key.to_owned(), version)].into();
        let pushed = told.iter().try_for_each(|one| import.push(one).map(drop));
        assert_eq!(pushed.unwrap_err().kind(), ErrorKind::Invalid, "{at} {key} {version}");
    }
}

#[test]
fn tags_whose_hashes_a_purge_forgot_are_restored_checked_and_dumped() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    document.put(r#"{"a":"S1","b":1}"#, &how()).unwrap();
    document.tag("t", None, &how()).unwrap();
    document.set(&JsonPointer::parse("/b").unwrap(), "2", &how()).unwrap();
    let before = db.snapshot().sequence();
    let go_on = &mut |_, _| ControlFlow::Continue(());
    let purge = PurgeOptions { at: None, commit: how() };
    document.purge(&Target::parse("/a").unwrap(), &purge, go_on).unwrap();
    let folder = BackupFolder::on_device(Arc::new(MemoryDevice::new()));
    db.backup(&folder, BackupOptions::default(), go_on).unwrap();
    let (newest, mut under_way) = (db.snapshot().sequence(), 0);
    for commit in before.0..=newest.0 {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let point = RestorePoint::Commit(CommitSequence(commit));
        Database::restore_device(&folder, &device, point, go_on).unwrap();
        let copy = repaired(&device, |what| what.contains("which was under way"));
        assert_eq!(copy.document("d").unwrap().tags().unwrap().len(), 1);
        let read_only = Options { read_only: true, create: false, ..options() };
        let reader = Database::open_device(Arc::clone(&device), read_only).unwrap();
        let there = reader.document("d").unwrap();
        under_way += usize::from(there.purges().unwrap().iter().any(|purge| purge.is_pending));
        assert_eq!(story(&loaded(&reader).document("d").unwrap()), story(&there));
        drop((there, reader));
        // A purge that was under way goes on.
        let restored = Database::open_device(Arc::clone(&device), options()).unwrap();
        let check = restored.check().unwrap();
        assert!(check.is_clean(), "commit {commit}: {check:?}");
        let there = restored.document("d").unwrap();
        let tag = there.tags().unwrap().remove(0);
        assert_eq!(tag.hash, there.at(Revision(1)).unwrap().content_hash().unwrap());
        assert_eq!(story(&loaded(&restored).document("d").unwrap()), story(&there));
        let purges = there.purges().unwrap();
        assert!(purges.iter().all(|purge| !purge.is_pending), "{purges:?}");
        assert_eq!(purges.len(), usize::from(commit > before.0));
        // What was purged is in no later backup, as of no commit.
        let value = there.at(Revision(1)).unwrap().to_json().unwrap();
        assert_eq!(value, r#"{"a":null,"b":1}"#, "commit {commit}");
    }
    assert_eq!(under_way, 1);
}

#[test]
fn a_history_of_the_deepest_values_is_loaded() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    document.put(r#"{"a":1}"#, &how()).unwrap();
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let place = JsonPointer::parse("/a").unwrap();
    document.set(&place, deep(511), &how()).unwrap();
    assert!(document.set(&place, deep(512), &how()).is_err());
    assert_eq!(story(&loaded(&db).document("d").unwrap()), story(&document));
    let patch = format!(r#"[{{"op":"add","path":"/b","value":{}}}]"#, deep(512));
    assert!(document.patch(&patch, &how()).is_err());
}

#[test]
fn blame_tells_of_the_revision_that_a_tag_keeps() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    for (author, value) in ["a", "b", "c", "e"].into_iter().zip(1..) {
        let options = CommitOptions { author: Some(author.into()), ..how() };
        document.put(format!(r#"{{"x":{},"y":{value}}}"#, value.min(2)), &options).unwrap();
    }
    document.tag("t", Some(Revision(2)), &how()).unwrap();
    document.retain(Retention::Head, &how()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    let blamed = |at| {
        let there = document.at(Revision(at)).unwrap();
        let all = there.blame(&Target::parse("").unwrap(), &BlameOptions::default()).unwrap();
        let all = all.map(|entry| entry.unwrap()).filter(|entry| !entry.pointer.is_root());
        all.map(|entry| (entry.author.as_deref().map(str::to_owned), entry.is_older)).collect()
    };
    let expected: Vec<_> =
        [("b", false), ("e", false)].map(|(a, is)| (Some(a.to_owned()), is)).into();
    let found: Vec<_> = blamed(4);
    assert_eq!(found, expected);
    let found: Vec<_> = blamed(2);
    assert_eq!(found, [expected[0].clone(), expected[0].clone()]);
}

#[test]
fn records_of_a_tagged_revision_tell_when_they_were_changed_then() {
    let db = Database::memory().unwrap();
    let records = db.create_collection("r", KeyKind::Text).unwrap();
    for n in 1..=5 {
        records.put("k", format!("{{\"n\":{n}}}"), &how()).unwrap();
    }
    records.document().tag("t", Some(Revision(2)), &how()).unwrap();
    records.document().retain(Retention::Head, &how()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    for revision in [2, 5].map(Revision) {
        let columns = records.at(revision).unwrap().columns().unwrap();
        let rows = columns.rows(0).unwrap();
        assert_eq!(columns.changed(&rows).unwrap(), [revision]);
    }
}

#[test]
fn the_log_of_a_path_has_tagged_revisions_from_before_the_history_begins() {
    let db = Database::open_device(Arc::new(MemoryDevice::new()), options()).unwrap();
    let document = db.create_document("d").unwrap();
    // `a` is changed in each second revision, `b` is there from revision 5 to 6.
    for step in 1..=12 {
        let b = if step == 5 || step == 6 { r#","b":[1]"# } else { "" };
        let value = format!(r#"{{"a":{{"n":{}}},"step":{step}{b}}}"#, step / 2);
        document.put(value, &how()).unwrap();
    }
    for revision in [2, 3, 5, 6, 7, 10] {
        document.tag(&format!("t{revision}"), Some(Revision(revision)), &how()).unwrap();
    }
    let listed = |query: LogQuery| -> Vec<u64> {
        document.log(&query).unwrap().map(|entry| entry.unwrap().revision.0).collect()
    };
    let of = |pointer: &str| LogQuery {
        path: Some(JsonPointer::parse(pointer).unwrap().into()),
        ..LogQuery::default()
    };
    let step = listed(of("/step"));
    document.retain(Retention::Last(2), &how()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert_eq!(document.first_revision().unwrap(), Revision(11));
    assert_eq!(step, (1..=12).rev().collect::<Vec<u64>>());
    assert_eq!(listed(of("/step")), [12, 11, 10, 7, 6, 5, 3, 2]);
    // What revision 4 changed is first seen in revision 5, and revision 3 changed nothing of it. So
    // did revision 11, with which the history begins.
    assert_eq!(listed(of("/a")), [12, 10, 6, 5, 2]);
    assert_eq!(listed(of("/a/n")), listed(of("/a")));
    let page = |before| LogQuery { before: Some(Revision(before)), limit: Some(2), ..of("/a") };
    assert_eq!(listed(page(11)), [10, 6]);
    assert_eq!(listed(page(6)), [5, 2]);
    let to = Some(Moment::Revision(Revision(9)));
    // It is removed in revision 7, and was added in revision 5.
    let earlier = LogQuery { to: Some(Moment::Revision(Revision(6))), ..of("/b") };
    assert_eq!(listed(earlier), [5]);
    assert_eq!(listed(LogQuery { to, ..of("/a") }), [6, 5, 2]);
}

/// A restore once failed without a word of which document, even if that came later.
#[test]
fn a_restore_to_what_retention_dropped_says_from_where_on_there_is_all() {
    let db = Database::memory().unwrap();
    let other = db.create_document("other").unwrap();
    other.put("0", &how()).unwrap();
    let before = db.snapshot().sequence();
    let cut = db.create_document("cut").unwrap();
    let mut commits = Vec::new();
    for step in 0..9 {
        cut.put(step.to_string(), &how()).unwrap();
        commits.push(db.snapshot().sequence());
        other.put(step.to_string(), &how()).unwrap();
    }
    cut.retain(Retention::Last(3), &how()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    let folder = BackupFolder::on_device(Arc::new(MemoryDevice::new()));
    db.backup(&folder, BackupOptions::default(), &mut |_, _| ControlFlow::Continue(())).unwrap();
    let restore = |commit: CommitSequence| {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let point = RestorePoint::Commit(commit);
        let go_on = &mut |_, _| ControlFlow::Continue(());
        Database::restore_device(&folder, &device, point, go_on)?;
        Database::open_device(device, options())
    };
    let error = restore(commits[4]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let earliest = format!("choose commit {}, of ", commits[6]);
    for part in ["\"cut\"", &earliest] {
        assert!(error.message().contains(part), "{part}: {error}");
    }
    let there = restore(commits[6]).unwrap();
    assert_eq!(there.document("cut").unwrap().head().unwrap().to_json().unwrap(), "6");
    let early = restore(before).unwrap();
    assert_eq!(early.documents().unwrap(), ["other"]);
    for db in [there, early] {
        assert_eq!(db.check().unwrap().findings, []);
    }
}
