//! Damaged files: whatever happened to a byte of a database, opening and reading it give the
//! right values or an error that says so, and never a panic.
//!
//! A damaged end of the journal looks like commits that never came to be. So the last commits may
//! be missing, as far as the damage reaches; what is there is right.

use std::collections::BTreeMap;
use std::sync::Arc;

use duramen::io::{Access, Device, MemoryDevice, read_exact_at, write_all_at};
use duramen::{CommitOptions, Database, Document, ErrorKind, JsonPointer, Options, Revision};

/// The files of a database by their paths.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// The texts of each document by its name, from the first revision on.
pub(crate) type Texts = BTreeMap<&'static str, Vec<String>>;

/// How many damaged databases are opened; every build tries other places of the same sequence.
const TRIES: u64 = if cfg!(debug_assertions) { 300 } else { 20_000 };

const PAGE_BYTES: usize = 512;

/// Commits that no checkpoint has written when the database is damaged.
pub(crate) const TAIL_COMMITS: usize = 9;

/// Numbers without a pattern (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ mixed >> 31) % end as u64).unwrap()
    }
}

/// What a try did, told if it fails.
struct Told(String);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("with {}", self.0);
        }
    }
}

pub(crate) fn open(device: &MemoryDevice, read_only: bool) -> duramen::Result<Database> {
    let options = Options { background: false, read_only, ..Options::default() };
    Database::open_device(Arc::new(device.clone()), options)
}

fn put(document: &Document, text: String, texts: &mut Vec<String>) {
    let options = CommitOptions { author: Some("ann".into()), ..CommitOptions::default() };
    document.put(&text, &options).unwrap();
    texts.push(text);
}

/// A document with values of every kind, some of them changing.
fn mixed(step: usize) -> String {
    let items: Vec<_> = (0..40)
        .filter(|item| !(item * 7 + step).is_multiple_of(5))
        .map(|item| format!(r#"{{"id":{item},"n":{},"s":"v{}"}}"#, item * step, (item + step) % 3))
        .collect();
    let entries: Vec<_> = (0..260).map(|key| format!(r#""key {key}":{}"#, key % 7)).collect();
    format!(
        "{{\"step\":{step},\"half\":{step}.5,\"big\":1E4{step},\"wide\":2.5e{},\"on\":{},\
         \"none\":null,\"long\":\"{}\",\"items\":[{}],\"map\":{{{}}}}}",
        step + 20,
        step.is_multiple_of(2),
        "long \\\"text\\\" ".repeat(400 + step / 8),
        items.join(","),
        entries.join(","),
    )
}

/// A document whose row groups are too large to be read whole.
fn large(step: usize) -> String {
    let items = (0..2_000).map(|item| {
        let changed = if item % 97 == step { step } else { 0 };
        format!(r#"{{"n":{},"s":"item {item} of many"}}"#, item + changed)
    });
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// A database with segments and an end of its journal that is in none.
pub(crate) fn database() -> (Files, Texts) {
    let device = MemoryDevice::new();
    let mut texts = Texts::new();
    let db = open(&device, false).unwrap();
    let documents = ["large", "mixed"].map(|name| db.create_document(name).unwrap());
    for step in 0..20 {
        put(&documents[1], mixed(step), texts.entry("mixed").or_default());
        if step % 6 == 0 {
            put(&documents[0], large(step), texts.entry("large").or_default());
        }
        if matches!(step % 5, 2 | 4) {
            db.checkpoint().unwrap();
        }
    }
    let tail = texts.get_mut("mixed").unwrap();
    for step in 20..20 + TAIL_COMMITS {
        put(&documents[1], mixed(step), tail);
    }
    (files_of(&device), texts)
}

pub(crate) fn files_of(device: &MemoryDevice) -> Files {
    let mut paths = vec!["MANIFEST".to_owned()];
    for folder in ["journal", "segments"] {
        let names = device.list(folder).unwrap();
        paths.extend(names.into_iter().map(|name| format!("{folder}/{name}")));
    }
    let read = |path: String| {
        let file = device.open(&path, Access::Read).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

pub(crate) fn device_of(files: &Files, damaged: (&str, &[u8])) -> MemoryDevice {
    let device = MemoryDevice::new();
    for (path, bytes) in files {
        let bytes = if path == damaged.0 { damaged.1 } else { bytes };
        let file = device.open(path, Access::Create).unwrap();
        write_all_at(file.as_ref(), bytes, 0).unwrap();
    }
    device
}

/// Damages bytes, most often where there are any but zeros; says what it did, and whether that
/// is within one commit of the journal at most.
pub(crate) fn damage(bytes: &mut Vec<u8>, random: &mut Random) -> (String, bool) {
    let written = bytes.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
    let reach = if random.below(16) == 0 { bytes.len() } else { written };
    let at = random.below(reach);
    let page = at / PAGE_BYTES * PAGE_BYTES;
    let end = bytes.len().min(page + PAGE_BYTES);
    match random.below(8) {
        0 => {
            bytes.truncate(at);
            (format!("a cut at {at}"), false)
        }
        1 => {
            bytes[page..end].fill(0);
            (format!("zeros from {page} to {end}"), false)
        }
        2 => {
            let other = random.below(reach) / PAGE_BYTES * PAGE_BYTES;
            let len = (end - page).min(bytes.len() - other);
            let (first, second) = (page.min(other), page.max(other));
            let len = len.min(if first == second { 0 } else { len });
            let (head, tail) = bytes.split_at_mut(second);
            head[first..first + len].swap_with_slice(&mut tail[..len]);
            (format!("pages at {first} and {second} swapped"), false)
        }
        3 => {
            let last = (at + 1 + random.below(40)).min(bytes.len());
            bytes[at..last].iter_mut().for_each(|byte| *byte ^= 0xa5);
            (format!("bytes {at} to {last} turned over"), false)
        }
        _ => {
            let bit = random.below(8);
            bytes[at] ^= 1 << bit;
            (format!("bit {bit} of byte {at} turned over"), true)
        }
    }
}

/// Reads every revision of every document. Returns how many of the last commits are missing.
fn read_all(db: &Database, texts: &Texts) -> usize {
    let mut missing = 0;
    for (name, texts) in texts {
        let document = match db.document(name) {
            Ok(document) => document,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {error}");
                continue;
            }
        };
        let Some(head) = readable(document.head_revision()) else { continue };
        let head = usize::try_from(head.0).unwrap();
        assert!(head <= texts.len(), "{name} has {head} revisions");
        missing += texts.len() - head;
        for (revision, text) in (1..).map(Revision).zip(&texts[..head]) {
            let json = readable(document.at(revision).and_then(|at| at.to_json()));
            assert!(json.is_none_or(|json| json == *text), "{name}, revision {revision}");
        }
        read_history(&document, head);
    }
    missing
}

fn read_history(document: &Document, head: usize) {
    let pointer = JsonPointer::parse("/step").unwrap();
    let history = document.head().and_then(|head| head.history(&pointer));
    let Ok(history) = history.inspect_err(|error| {
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound), "{error}");
    }) else {
        return;
    };
    let mut next = head;
    for run in history {
        let Some(run) = readable(run) else { return };
        assert_eq!(run.first.0, next as u64, "each revision set another step");
        next -= 1;
        assert_eq!(run.value.to_string(), next.to_string());
    }
    assert_eq!(next, 0);
}

/// What was read; none if it is damaged.
fn readable<T>(result: duramen::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            None
        }
    }
}

#[test]
fn a_database_that_is_not_damaged_reads_and_checks() {
    let (files, texts) = database();
    let device = device_of(&files, ("", &[]));
    let db = open(&device, false).unwrap();
    assert_eq!(read_all(&db, &texts), 0);
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{report:?}");
    // Eight became one, and opening what was not closed made one more of the journal.
    assert!(report.segments == 2 && report.cells > 50, "{report:?}");
}

#[test]
fn damaged_files_give_errors_and_no_wrong_values() {
    let (files, texts) = database();
    let paths: Vec<_> = files.keys().collect();
    let mut random = Random(9);
    for attempt in 0..TRIES {
        let path = paths[random.below(paths.len())].as_str();
        let mut bytes = files[path].clone();
        let (what, is_small) = damage(&mut bytes, &mut random);
        if bytes == files[path] {
            continue;
        }
        let read_only = attempt % 4 == 0;
        let _told = Told(format!("{what} in {path}, read only: {read_only}"));
        let device = device_of(&files, (path, &bytes));
        let Some(db) = readable(open(&device, read_only)) else { continue };
        let missing = read_all(&db, &texts);
        let is_clean = db.check().unwrap().is_clean();
        if path.starts_with("journal/") {
            assert!(is_clean && missing <= if is_small { 1 } else { TAIL_COMMITS }, "{missing}");
        } else {
            assert!(path.starts_with("segments/") && !is_clean && missing == 0, "not noticed");
        }
    }
}

/// Such a database did not open.
#[test]
fn bytes_behind_a_segment_are_told_of_and_in_nobodys_way() {
    let (mut files, texts) = database();
    let path = files.keys().find(|path| path.ends_with(".segment")).unwrap().clone();
    files.get_mut(&path).unwrap().extend([7; 100]);
    let device = device_of(&files, ("", &[]));
    for read_only in [true, false] {
        let db = open(&device, read_only).unwrap();
        for (name, texts) in &texts {
            let document = db.document(name).unwrap();
            for (revision, text) in (1..).map(Revision).zip(texts) {
                assert_eq!(document.at(revision).unwrap().to_json().unwrap(), *text);
            }
        }
        let checked = db.check().unwrap().findings;
        let mut go_on = |_| std::ops::ControlFlow::Continue(());
        let scrubbed = db.scrub(&duramen::ScrubOptions::default(), &mut go_on).unwrap().findings;
        for findings in [checked, scrubbed] {
            let places: Vec<_> = findings.iter().map(|found| found.place.as_str()).collect();
            assert_eq!(places, [path.as_str()], "{findings:?}");
            assert!(findings[0].message.contains("bytes of the file"), "{findings:?}");
        }
    }
}
