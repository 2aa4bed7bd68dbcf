//! Repair: whatever happened to the files of a database, what is salvaged is right, what is not is
//! told, the new database verifies, and the old one stays as it is.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::{Access, Device, MemoryDevice, read_exact_at};
use duramen::{
    CommitOptions, Database, ErrorKind, KeyKind, Options, RepairReport, Retention, Revision,
    ScanOptions,
};
use serde_json::Value;

use crate::damage::{
    Files, Random, TAIL_COMMITS, Texts, damage, database, device_of, files_of, open,
};

/// How many damaged databases are repaired.
const TRIES: u64 = if cfg!(debug_assertions) { 40 } else { 600 };

/// Repairs a device into a new one.
pub(crate) fn repair(from: &MemoryDevice) -> duramen::Result<(RepairReport, MemoryDevice)> {
    let to = MemoryDevice::new();
    let devices: (Arc<dyn Device>, Arc<dyn Device>) =
        (Arc::new(from.clone()), Arc::new(to.clone()));
    let options = Options { background: false, ..Options::default() };
    let report = Database::repair_device(devices, &options, &mut |_| ControlFlow::Continue(()))?;
    Ok((report, to))
}

fn content(device: &MemoryDevice, path: &str) -> Vec<u8> {
    let file = device.open(path, Access::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
    bytes
}

/// Whether a value is another one of which parts were left out.
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(name, part)| whole.get(name).is_some_and(|whole| is_part(part, whole))),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len()
                && part.iter().zip(whole).all(|(part, whole)| is_part(part, whole))
        }
        (Value::Null, _) => true,
        _ => part == whole,
    }
}

/// Holds a repaired database against what was committed; how many revisions are whole.
fn verify(report: &RepairReport, new: &MemoryDevice, texts: &Texts) -> usize {
    let db = open(new, true).unwrap();
    let check = db.check().unwrap();
    assert!(check.is_clean(), "{check:?}");
    let mut whole = 0;
    for name in db.documents().unwrap() {
        let of_document =
            || report.lost.iter().filter(|lost| lost.document.as_deref() == Some(&name));
        let document = db.document(&name).unwrap();
        let Some(texts) = texts.get(name.as_str()) else {
            assert!(of_document().any(|lost| lost.what.starts_with("the name")), "{name}");
            continue;
        };
        let head = document.head_revision().unwrap();
        assert!(head.0 <= texts.len() as u64, "{name} has {head} revisions");
        for (revision, text) in (1..=head.0).map(Revision).zip(texts) {
            let found = document.at(revision).unwrap().to_json().unwrap();
            if found == *text {
                whole += 1;
                continue;
            }
            let covers = |lost: &&duramen::Lost| {
                lost.path.is_some() && lost.first <= revision && revision <= lost.last
            };
            assert!(of_document().any(|lost| covers(&lost)), "{name} {revision}: {report:?}");
            // Numbers such as 1E428 are beyond what the other parser holds.
            let parse =
                |text: &str| serde_json::from_str::<Value>(&text.replace("1E4", "4")).unwrap();
            assert!(is_part(&parse(&found), &parse(text)), "{name} {revision}: {found}");
        }
    }
    whole
}

fn revisions(texts: &Texts) -> usize {
    texts.values().map(Vec::len).sum()
}

/// Repairs the database with one file replaced.
fn repaired(files: &Files, path: &str, bytes: &[u8]) -> (RepairReport, MemoryDevice) {
    repair(&device_of(files, (path, bytes))).unwrap()
}

/// The paths of the segments.
fn segments(files: &Files) -> Vec<String> {
    files.keys().filter(|path| path.starts_with("segments/")).cloned().collect()
}

#[test]
fn a_whole_database_is_copied_whole() {
    let (files, texts) = database();
    let (report, new) = repaired(&files, "", &[]);
    assert!(report.damage.is_empty() && report.is_complete(), "{report:?}");
    assert_eq!((report.documents, report.revisions), (2, revisions(&texts) as u64));
    assert_eq!(verify(&report, &new, &texts), revisions(&texts));
}

/// A document of which the first revisions were dropped, with what is left of it.
fn cut() -> (Files, Vec<String>) {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    let document = db.create_document("cut").unwrap();
    let row = |n: usize, round: usize| match (n + round) % 5 {
        0 => format!("{{\"n\":{n}}}"),
        _ => format!("{{\"n\":{n},\"text\":\"{}\"}}", "set ".repeat(n % 7 * round)),
    };
    let mut texts = Vec::new();
    for round in 1..=9 {
        let rows: Vec<String> =
            (0..900).map(|n| row(n, if n % 9 < round { round } else { 0 })).collect();
        let text = format!("[{}]", rows.join(","));
        document.put(&text, &CommitOptions::default()).unwrap();
        texts.push(text);
        if round == 6 {
            document.retain(Retention::Last(3), &CommitOptions::default()).unwrap();
            db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
            let dropped = document.first_revision().unwrap().0 - 1;
            texts.drain(..usize::try_from(dropped).unwrap());
        }
        db.checkpoint().unwrap();
    }
    assert_eq!(texts.len(), 6);
    drop(document);
    db.close().unwrap();
    (files_of(&device), texts)
}

#[test]
fn what_is_left_of_a_history_that_was_cut_comes_through() {
    let (files, texts) = cut();
    let check = |report: &RepairReport, new: &MemoryDevice| {
        let db = open(new, true).unwrap();
        assert!(db.check().unwrap().is_clean());
        let document = db.document("cut");
        let found = document.as_ref().map_or(0, |document| document.head_revision().unwrap().0);
        assert!(found <= texts.len() as u64, "{found} revisions");
        let mut whole = 0;
        for (revision, text) in (1..=found).map(Revision).zip(&texts) {
            let document = document.as_ref().unwrap();
            let found = document.at(revision).unwrap().to_json().unwrap();
            let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            let is_told = !report.lost.is_empty() && is_part(&parse(&found), &parse(text));
            assert!(found == *text || is_told, "{revision}: {report:?}");
            whole += usize::from(found == *text);
        }
        assert!(whole == texts.len() || !report.lost.is_empty(), "{whole} are whole: {report:?}");
        whole
    };
    let (report, new) = repaired(&files, "", &[]);
    assert!(report.damage.is_empty() && report.is_complete(), "{report:?}");
    assert_eq!((report.revisions, check(&report, &new)), (6, 6));
    let mut whole = 0;
    for path in segments(&files) {
        let bytes = &files[&path];
        for at in (100..bytes.len()).step_by(1_500) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            let (report, new) = repaired(&files, &path, &damaged);
            whole += check(&report, &new);
        }
    }
    assert!(whole > 0);
}

/// A collection whose records were saved many times, and their versions in each revision.
fn counted() -> (Files, Vec<Vec<(String, u64)>>) {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    let records = db.create_collection("counted", KeyKind::Text).unwrap();
    let mut random = Random(5);
    let mut versions: Vec<Vec<(String, u64)>> = Vec::new();
    for round in 1..=50_usize {
        let some = (0..if round == 1 { 40 } else { 3 }).map(|at| {
            let key = if round == 1 { at } else { random.below(40) };
            let letter = |_| char::from(b'a' + u8::try_from(random.below(16)).unwrap());
            let noise: String = (0..1_500).map(letter).collect();
            (format!("k{key:02}"), format!(r#"{{"round":{round},"noise":"{noise}"}}"#))
        });
        let some: BTreeMap<String, String> = some.collect();
        records.put_many(some, &CommitOptions::default()).unwrap();
        let now = records.head().unwrap().scan(&ScanOptions::default()).unwrap();
        let version = |found: duramen::Result<duramen::Record>| {
            found.map(|found| (found.key.to_string(), found.version)).unwrap()
        };
        versions.push(now.map(version).collect());
        if round % 20 == 0 {
            db.checkpoint().unwrap();
        }
    }
    drop(records);
    db.close().unwrap();
    let mut files = files_of(&device);
    // The journal may still have what segments lost.
    files.retain(|path, _| !path.starts_with("journal/"));
    (files, versions)
}

#[test]
fn versions_of_records_come_through_or_are_told_as_lost() {
    let (files, versions) = counted();
    let (mut told, mut right) = (0, 0);
    for path in segments(&files) {
        let bytes = &files[&path];
        for at in (60..bytes.len() - 150).step_by(bytes.len() / 25) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            let (report, new) = repaired(&files, &path, &damaged);
            let db = open(&new, true).unwrap();
            assert!(db.check().unwrap().is_clean());
            let lost: Vec<String> = report.lost.iter().map(ToString::to_string).collect();
            let lost = lost.join("; ");
            let is_told = |key: &str| {
                lost.contains("versions of records")
                    && (lost.contains(&format!("{key:?}")) || lost.contains(", ..."))
            };
            let Ok(records) = db.collection("counted") else {
                assert!(!report.is_complete(), "{path} {at}");
                continue;
            };
            let rows_are_lost = lost.contains("times, authors and messages");
            for (revision, versions) in (1..).map(Revision).zip(&versions) {
                let Ok(there) = records.at(revision) else { break };
                for (key, version) in versions {
                    let Ok(Some(record)) = there.get(key.as_str()) else { continue };
                    let is_right = record.version == *version;
                    assert!(is_right || is_told(key), "{path} {at} {revision} {key}: {lost}");
                    right += usize::from(is_right && rows_are_lost);
                    told += usize::from(!is_right);
                }
            }
        }
    }
    assert!(right > 0, "{right} are right, {told} are told");
}

/// A collection whose keys of `gone` were deleted in all that is left of its history.
fn departed() -> (Files, Vec<String>) {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    let records = db.create_collection("counted", KeyKind::Text).unwrap();
    let key = |at: usize| format!("k{at:03}");
    let mut random = Random(6);
    for round in 0..3 {
        let letter =
            |random: &mut Random| char::from(b'a' + u8::try_from(random.below(16)).unwrap());
        let mut noise = || (0..400).map(|_| letter(&mut random)).collect::<String>();
        let some = (0..200).map(|at| {
            let noise = [noise(), noise()];
            (key(at), format!(r#"{{"round":{round},"one":"{}","other":"{}"}}"#, noise[0], noise[1]))
        });
        records.put_many(some, &CommitOptions::default()).unwrap();
    }
    let gone: Vec<String> = (0..200).step_by(2).map(key).collect();
    let keys: Vec<_> = gone.iter().map(|key| key.as_str().into()).collect();
    records.delete_many(&keys, &CommitOptions::default()).unwrap();
    records.document().retain(Retention::Last(2), &CommitOptions::default()).unwrap();
    records.put("k001", "{}", &CommitOptions::default()).unwrap();
    db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap();
    drop(records);
    db.close().unwrap();
    let mut files = files_of(&device);
    files.retain(|path, _| !path.starts_with("journal/"));
    (files, gone)
}

#[test]
fn keys_that_departed_go_on_counting_or_are_told_as_lost() {
    let (files, gone) = departed();
    let mut right_in_part = 0;
    for path in segments(&files) {
        let bytes = &files[&path];
        for at in (60..bytes.len() - 150).step_by(bytes.len() / 60) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            let (report, new) = repaired(&files, &path, &damaged);
            let db = open(&new, false).unwrap();
            let check = db.check().unwrap();
            assert!(check.is_clean(), "{path} {at}: {:?}", check.findings);
            let Ok(records) = db.collection("counted") else {
                assert!(!report.is_complete(), "{path} {at}");
                continue;
            };
            let mut right = 0;
            for key in &gone {
                let is_there = records.get(key.as_str()).unwrap().is_some();
                let saved = records.put(key.as_str(), r#"{"again":1}"#, &CommitOptions::default());
                let version = saved.unwrap().version;
                assert!(version == 4 || !report.is_complete(), "{path} {at} {key} {version}");
                right += usize::from(version == 4 && !is_there);
            }
            right_in_part += usize::from(right == gone.len() && !report.is_complete());
        }
    }
    assert!(right_in_part > 0);
}

#[test]
fn a_damaged_manifest_costs_nothing() {
    let (files, texts) = database();
    let whole = &files["MANIFEST"];
    for at in [0, 8, 12, 40, 80, 96, 104, 112, 120, 150, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let (report, new) = repaired(&files, "MANIFEST", &bytes);
        assert!(report.is_complete() && report.damage.len() == 1, "byte {at}: {report:?}");
        assert_eq!(verify(&report, &new, &texts), revisions(&texts), "byte {at}");
    }
    let (report, new) = repaired(&files, "MANIFEST", &whole[..3]);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(verify(&report, &new, &texts), revisions(&texts));
}

#[test]
fn a_database_of_a_journal_alone_is_found_without_its_manifest() {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    let document = db.create_document("document").unwrap();
    for text in ["1", "2", "3"] {
        document.put(text, &CommitOptions::default()).unwrap();
    }
    drop((document, db));
    device.remove("MANIFEST").unwrap();
    let (report, new) = repair(&device).unwrap();
    assert!(report.is_complete(), "{report:?}");
    let db = open(&new, true).unwrap();
    let document = db.document("document").unwrap();
    assert_eq!(document.at(Revision(3)).unwrap().to_json().unwrap(), "3");
}

#[test]
fn a_lost_footer_index_or_filter_costs_nothing() {
    let (files, texts) = database();
    let path = segments(&files).pop().unwrap();
    let whole = &files[&path];
    let footer = whole.len() - 136;
    for (what, at) in [("footer", footer + 40), ("index", footer - 9), ("magic", 2)] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        let (report, new) = repaired(&files, &path, &bytes);
        assert!(!report.damage.is_empty() && report.is_complete(), "{what}: {report:?}");
        assert_eq!(verify(&report, &new, &texts), revisions(&texts), "{what}");
    }
}

#[test]
fn a_damaged_block_costs_its_cells_alone() {
    let (files, texts) = database();
    for path in segments(&files) {
        let whole = &files[&path];
        for at in (40..whole.len() - 200).step_by(whole.len() / 7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            let (report, new) = repaired(&files, &path, &bytes);
            assert!(!report.damage.is_empty(), "{path} {at}");
            verify(&report, &new, &texts);
        }
    }
}

#[test]
fn a_missing_segment_costs_what_its_commits_changed() {
    let (files, texts) = database();
    for path in segments(&files) {
        let mut left = files.clone();
        left.remove(&path);
        let (report, new) = repaired(&left, "", &[]);
        assert!(!report.is_complete(), "{path}");
        verify(&report, &new, &texts);
    }
}

#[test]
fn of_a_cut_segment_comes_through_what_was_before_the_cut() {
    let (files, texts) = database();
    for path in segments(&files) {
        let bytes = &files[&path];
        for share in 1..8 {
            let (report, new) = repaired(&files, &path, &bytes[..bytes.len() * share / 8]);
            assert!(report.damage.iter().any(|found| found.place == path), "{path}");
            verify(&report, &new, &texts);
        }
    }
}

#[test]
fn commits_behind_a_damaged_group_are_lost_and_told() {
    let (files, texts) = database();
    let (path, bytes) = files
        .iter()
        .filter(|(path, _)| path.starts_with("journal/"))
        .max_by_key(|(_, bytes)| bytes.iter().filter(|&&byte| byte != 0).count())
        .unwrap();
    let written = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    // What lies before the last checkpoint is of no use, and the last group may be a torn one.
    let mut is_told = false;
    for at in (0..written).rev().step_by(written / 40) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let (report, new) = repaired(&files, path, &damaged);
        verify(&report, &new, &texts);
        let db = open(&new, true).unwrap();
        let head = db.document("mixed").unwrap().head_revision().unwrap();
        assert!(head.0 >= (texts["mixed"].len() - TAIL_COMMITS) as u64, "{head}");
        let is_cut = head.0 + 1 < texts["mixed"].len() as u64;
        let tells = |lost: &duramen::Lost| lost.what.starts_with("revisions of which");
        assert_eq!(is_cut, report.lost.iter().any(tells), "{at}: {report:?}");
        assert_eq!(is_cut, !report.damage.is_empty());
        is_told |= is_cut;
    }
    assert!(is_told);
}

/// What only a commit that is gone changed was once counted as nothing.
#[test]
fn commits_that_are_gone_are_told_though_nothing_was_built_on_them() {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    let put = |name: &str, text: &str| {
        db.document(name).unwrap().put(text, &CommitOptions::default()).unwrap();
    };
    let names = ["a", "b"];
    for name in names {
        db.create_document(name).unwrap();
        put(name, "\"first\"");
    }
    db.checkpoint().unwrap();
    put("a", "\"the second\"");
    for name in names {
        put(name, "\"later\"");
    }
    db.close().unwrap();
    let files = files_of(&device);
    let (path, bytes) = files.iter().find(|(path, _)| path.starts_with("journal/")).unwrap();
    let at = |text: &str| bytes.windows(text.len()).rposition(|part| part == text.as_bytes());
    let (second, last) = (at("the second").unwrap(), at("later").unwrap());
    let told = |files: &Files, bytes: &[u8]| {
        let (report, new) = repaired(files, path, bytes);
        assert!(!report.damage.is_empty(), "{report:?}");
        let tells = |lost: &duramen::Lost| lost.what.starts_with("whatever was changed by commit");
        let what = report.lost.iter().find(|lost| tells(lost)).unwrap().what.clone();
        (what, open(&new, true).unwrap().document("b").unwrap().head_revision().unwrap())
    };
    let flipped = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        bytes
    };
    // The last commit is followed by the mark that it was there.
    for (at, rest) in [(second, 2), (last, 1)] {
        let (what, head) = told(&files, &flipped(at));
        assert!(!what.contains("if there were any") && head == Revision(rest), "{what} {head}");
    }
    for cut in [second, last] {
        let (what, head) = told(&files, &bytes[..cut]);
        assert!(what.ends_with("if there were any") && head == Revision(1), "{what} {head}");
    }
    let mut without = files.clone();
    without.remove(path);
    assert!(told(&without, &[]).0.ends_with("if there were any"));
    let no_journal: Files =
        files.clone().into_iter().filter(|(path, _)| path.starts_with("segments/")).collect();
    assert!(told(&no_journal, &[]).0.ends_with("if there were any"));
}

#[test]
fn a_database_that_is_being_written_is_not_repaired() {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    db.create_document("a").unwrap().put("1", &CommitOptions::default()).unwrap();
    let error = repair(&device).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let own = std::process::id().to_string();
    assert!(error.message().contains(&own), "{error}");
    db.close().unwrap();
    assert!(repair(&device).unwrap().0.is_complete());
}

#[test]
fn damaged_databases_are_repaired_or_refused_and_never_written() {
    let (files, texts) = database();
    let paths: Vec<_> = files.keys().collect();
    let mut random = Random(77);
    let mut done = 0;
    for _ in 0..TRIES {
        let path = paths[random.below(paths.len())].as_str();
        let mut bytes = files[path].clone();
        let (what, _) = damage(&mut bytes, &mut random);
        let device = device_of(&files, (path, &bytes));
        match repair(&device) {
            Ok((report, new)) => {
                verify(&report, &new, &texts);
                done += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{what} in {path}: {error}");
            }
        }
        assert_eq!(content(&device, path), bytes, "{what} in {path}");
        assert!(device.open("LOCK", Access::Read).is_err(), "nothing was made");
    }
    assert!(done > TRIES * 9 / 10, "{done} of {TRIES}");
}

#[test]
fn names_tags_options_deletions_and_rows_come_through() {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    let who =
        |author: &str| CommitOptions { author: Some(author.into()), ..CommitOptions::default() };
    let declared = duramen::DocumentOptions {
        ids: [("$".parse().unwrap(), "id".to_owned())].into(),
        ..duramen::DocumentOptions::default()
    };
    let list = db.create_document_with("list", &declared).unwrap();
    list.put(r#"[{"id":1}]"#, &who("ann")).unwrap();
    list.put(r#"[{"id":2},{"id":1}]"#, &who("bob")).unwrap();
    list.tag("v1", Some(Revision(1)), &who("carl")).unwrap();
    db.create_document("empty").unwrap();
    let gone = db.create_document("gone").unwrap();
    gone.put("1", &who("ann")).unwrap();
    db.delete_document("gone", &who("ann")).unwrap();
    gone.put("3", &who("ann")).unwrap();
    db.delete_document("gone", &who("dora")).unwrap();
    db.rename_document("list", "things", &who("ann")).unwrap();
    let times = list.timestamps().unwrap();
    let tags = list.tags().unwrap();
    drop((list, gone));
    db.close().unwrap();

    let (report, new) = repair(&device).unwrap();
    assert!(report.is_complete(), "{report:?}");
    let db = open(&new, true).unwrap();
    assert_eq!(db.documents().unwrap(), ["empty", "things"]);
    let things = db.document("things").unwrap();
    assert!(!things.options().unwrap().ids.is_empty());
    let tag = &things.tags().unwrap()[0];
    assert_eq!(
        (tag.name.as_str(), tag.revision, tag.author.as_deref()),
        ("v1", Revision(1), Some("carl"))
    );
    assert_eq!(things.tags().unwrap(), tags);
    let authors: Vec<_> =
        things.log(&duramen::LogQuery::default()).unwrap().map(|row| row.unwrap().author).collect();
    assert_eq!(authors, [Some("bob".to_owned()), Some("ann".to_owned())]);
    assert_eq!(things.timestamps().unwrap(), times);
    let gone = db.document("gone").unwrap();
    assert!(gone.is_deleted().unwrap());
    assert_eq!(gone.head_revision().unwrap(), Revision(4));
    assert_eq!(gone.at(Revision(3)).unwrap().to_json().unwrap(), "3");
}

#[test]
fn a_repair_that_is_stopped_leaves_nothing_and_can_be_repeated() {
    let (files, _) = database();
    let from: Arc<dyn Device> = Arc::new(device_of(&files, ("", &[])));
    let to = MemoryDevice::new();
    let devices = || (Arc::clone(&from), Arc::new(to.clone()) as Arc<dyn Device>);
    let options = || Options { background: false, ..Options::default() };
    let mut stop = |progress: duramen::RepairProgress| match progress.done {
        5 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let error = Database::repair_device(devices(), &options(), &mut stop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(to.open("MANIFEST", Access::Read).is_err());
    // What a killed one leaves is no database either.
    let beside = to.clone();
    let mut look = |_| {
        let opened = Database::open_device(Arc::new(beside.clone()), Options::default());
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("repair that has not ended"), "{error}");
        ControlFlow::Continue(())
    };
    Database::repair_device(devices(), &options(), &mut look).unwrap();
    let mut go_on = |_| ControlFlow::Continue(());
    let error = Database::repair_device(devices(), &options(), &mut go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "there is a database now");
    let same = (Arc::clone(&from), Arc::clone(&from));
    let error = Database::repair_device(same, &options(), &mut go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "into itself");
    let empty: (Arc<dyn Device>, Arc<dyn Device>) =
        (Arc::new(MemoryDevice::new()), Arc::new(MemoryDevice::new()));
    let error = Database::repair_device(empty, &options(), &mut go_on).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "nothing there");
}

/// It was made twice, and with that the repair failed.
#[test]
fn a_document_without_a_name_gets_one_that_no_other_has() {
    let device = MemoryDevice::new();
    let db = open(&device, false).unwrap();
    let put = |name: &str, json: &str| {
        db.create_document(name).unwrap().put(json, &CommitOptions::default()).unwrap();
    };
    put("salvaged-200", "[1]");
    put("salvaged-300", "[2]");
    db.checkpoint().unwrap();
    // The first is the tree 3, so many that what the catalogue says of them is in other blocks than
    // the last ones.
    for number in 3..403 {
        put(&format!("y{number}"), &format!("[{number}]"));
    }
    db.checkpoint().unwrap();
    db.close().unwrap();
    let mut files = files_of(&device);
    // The journal says the names as well.
    let journal = files.iter_mut().filter(|(path, _)| path.ends_with(".journal"));
    journal.for_each(|(_, bytes)| bytes.fill(0));
    let newest = files.keys().rfind(|path| path.ends_with(".segment")).unwrap();
    // Some of these bytes are of the block with what the catalogue says of the last ones.
    let has_lost_names = (100..20_000).step_by(1_000).any(|at| {
        let mut files = files.clone();
        files.get_mut(newest).unwrap()[at] ^= 1;
        let (_, new) = repair(&device_of(&files, ("", &[]))).unwrap();
        let db = open(&new, false).unwrap();
        assert!(db.check().unwrap().is_clean());
        let json = |name: &str| db.document(name).unwrap().head().unwrap().to_json().unwrap();
        assert_eq!((json("salvaged-200"), json("salvaged-300")), ("[1]".into(), "[2]".into()));
        let is_nameless = db.document("salvaged-200-again").is_ok();
        if is_nameless {
            assert_eq!(json("salvaged-200-again"), "[200]");
            assert_eq!(json("salvaged-300-again"), "[300]");
            assert_eq!(json("salvaged-400"), "[400]");
        }
        is_nameless
    });
    assert!(has_lost_names);
}
