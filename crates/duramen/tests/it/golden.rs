//! Databases that earlier versions wrote: this one reads all of them, and what they hold has the
//! hash that it had. A newer format than this version knows is refused, and says so.
//!
//! A fixture is one file: for each file of the database its path, its length, and its bytes without
//! the zeros at the end. They are never written again, only added to.

#![expect(clippy::disallowed_methods, reason = "fixtures are files of the repository")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use duramen::io::{Access, Device, MemoryDevice, read_exact_at, write_all_at};
use duramen::{
    CommitOptions, ContentHash, Database, DocumentOptions, ErrorKind, JsonPointer, LogQuery,
    Options, Position, Revision, Target,
};

use crate::format::{FixedDevice, Seconds};

const FORMATS: [&str; 1] = ["v1"];
/// Bytes of all fixtures.
const BYTES_MAX: usize = 1 << 20;
const FIXTURES_MIN: usize = 12;

fn folder(format: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden").join(format)
}

/// The names of the fixtures of a format with the hashes of what they hold.
fn hashes(format: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(folder(format).join("hashes.txt")).unwrap();
    let pair = |line: &str| {
        let (name, hash) = line.split_once(' ').unwrap();
        (name.to_owned(), hash.to_owned())
    };
    text.lines().map(pair).collect()
}

fn read_fixture(format: &str, name: &str) -> MemoryDevice {
    let bytes = std::fs::read(folder(format).join(format!("{name}.image"))).unwrap();
    let device = MemoryDevice::new();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let (path, after) = counted(rest);
        let (length, after) = after.split_first_chunk().unwrap();
        let (data, after) = counted(after);
        let file = device.open(std::str::from_utf8(path).unwrap(), Access::Create).unwrap();
        write_all_at(file.as_ref(), data, 0).unwrap();
        file.set_len(u64::from_le_bytes(*length)).unwrap();
        rest = after;
    }
    device
}

/// Bytes behind their number, and what follows.
fn counted(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (len, rest) = bytes.split_first_chunk().unwrap();
    rest.split_at(u32::from_le_bytes(*len) as usize)
}

fn image(device: &dyn Device) -> Vec<u8> {
    let mut paths = vec!["MANIFEST".to_owned()];
    for folder in ["journal", "segments"] {
        let names = device.list(folder).unwrap();
        paths.extend(names.into_iter().map(|name| format!("{folder}/{name}")));
    }
    let mut image = Vec::new();
    let put = |bytes: &[u8], image: &mut Vec<u8>| {
        image.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
        image.extend_from_slice(bytes);
    };
    for path in paths {
        let file = device.open(&path, Access::Read).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
        let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        put(path.as_bytes(), &mut image);
        image.extend((bytes.len() as u64).to_le_bytes());
        put(&bytes[..end], &mut image);
    }
    image
}

/// Everything that a database holds, as text.
fn dump(db: &Database) -> String {
    let mut text = String::new();
    let deleted = db.deleted_documents().unwrap();
    let names = db.documents().unwrap().into_iter();
    for name in names.chain(deleted.iter().map(|document| document.name.clone())) {
        let document = db.document(&name).unwrap();
        let DocumentOptions { ids, maps, .. } = document.options().unwrap();
        writeln!(text, "{name:?} DocumentOptions {{ ids: {ids:?}, maps: {maps:?} }}").unwrap();
        for row in document.log(&LogQuery::default()).unwrap() {
            writeln!(text, "{:?}", row.unwrap()).unwrap();
        }
        for revision in (1..=document.head_revision().unwrap().0).map(Revision) {
            match document.at(revision).map(|at| at.to_json().unwrap()) {
                Ok(json) => writeln!(text, "{revision} {json}").unwrap(),
                Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
            }
        }
        for tag in document.tags().unwrap() {
            writeln!(text, "{tag:?}").unwrap();
        }
    }
    text
}

fn open(device: &MemoryDevice, read_only: bool) -> duramen::Result<Database> {
    let options = Options { background: false, create: false, read_only, ..Options::default() };
    Database::open_device(Arc::new(device.clone()), options)
}

#[test]
fn databases_of_every_format_hold_what_they_held() {
    let mut bytes = 0;
    for format in FORMATS {
        let hashes = hashes(format);
        assert!(hashes.len() >= FIXTURES_MIN, "{} fixtures", hashes.len());
        for (name, hash) in hashes {
            let path = folder(format).join(format!("{name}.image"));
            bytes += usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap();
            for read_only in [true, false] {
                let db = open(&read_fixture(format, &name), read_only).unwrap();
                let text = dump(&db);
                assert_eq!(
                    ContentHash::of_json(text.as_bytes()).to_string(),
                    hash,
                    "{name}: {text}"
                );
                assert!(db.check().unwrap().is_clean(), "{name}");
            }
        }
    }
    assert!(bytes <= BYTES_MAX, "the fixtures have {bytes} bytes");
}

#[test]
fn databases_of_every_format_are_written_and_repaired() {
    for format in FORMATS {
        for (name, _) in hashes(format) {
            let device = read_fixture(format, &name);
            let db = open(&device, false).unwrap();
            let options = CommitOptions::default();
            db.create_document("new").unwrap().put("[1]", &options).unwrap();
            for name in db.documents().unwrap() {
                db.document(&name).unwrap().put("{\"a\":1}", &options).unwrap();
            }
            db.checkpoint().unwrap();
            assert!(db.check().unwrap().is_clean(), "{name}");
            db.close().unwrap();
            let new: Arc<dyn Device> = Arc::new(MemoryDevice::new());
            let options = Options { background: false, ..Options::default() };
            let go_on = &mut |_| std::ops::ControlFlow::Continue(());
            let report = Database::repair_device((Arc::new(device), new), &options, go_on).unwrap();
            assert!(report.is_complete() && report.damage.is_empty(), "{name}: {report:?}");
        }
    }
}

/// A fixture with a field of its manifest set, and the checksum put right.
fn with_manifest(at: usize, value: &[u8]) -> MemoryDevice {
    let device = read_fixture("v1", "checkpointed");
    let file = device.open("MANIFEST", Access::Write).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
    bytes[at..at + value.len()].copy_from_slice(value);
    let checksum = crc32c::crc32c(&bytes[12..]);
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    write_all_at(file.as_ref(), &bytes, 0).unwrap();
    device
}

#[test]
fn a_newer_format_or_an_unknown_feature_is_refused_and_said() {
    for (at, value) in [(16, 2_u32.to_le_bytes()), (24, (1_u32 << 31).to_le_bytes())] {
        for read_only in [true, false] {
            let error = open(&with_manifest(at, &value), read_only).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(error.message().contains("use a newer one"), "{error}");
        }
    }
    let to_write = with_manifest(32, &(1_u32 << 31).to_le_bytes());
    assert_eq!(open(&to_write, false).unwrap_err().kind(), ErrorKind::Unsupported);
    dump(&open(&to_write, true).unwrap());
}

/// A fixture's name, and how its database comes to be.
type Builder = (&'static str, fn(&Database));

const BUILDERS: [Builder; 15] = [
    ("empty", |_| {}),
    ("journal", |db| values(db, 6, 0)),
    ("checkpointed", |db| values(db, 6, 6)),
    ("segments", |db| values(db, 24, 4)),
    ("tail", |db| values(db, 9, 4)),
    ("numbers", |db| puts(db, &[NUMBERS, "[1,1.0,1.00,10e-1]", "[-0,0,0.0]"])),
    ("texts", |db| puts(db, &[TEXTS, "[]", "{\"\":{\"\":[[],{}]}}"])),
    ("map", map),
    ("orders", orders),
    ("long", long),
    ("group", group),
    ("names", names),
    ("tags", tags),
    ("moves", moves),
    ("paths", paths),
];

const NUMBERS: &str = "[9223372036854775807,-9223372036854775808,9223372036854775808,1.10,0.5,1E22,\
                       1e400,-0,-0.0,123456789012345678.9,0.1e1,1e-7,3.141592653589793]";
const TEXTS: &str = r#"["","\u0000","\"\\/","\ud83d\ude00","plain","\u00e4",{"a.b":1,"~/":null}]"#;

fn who(author: &str) -> CommitOptions {
    CommitOptions {
        author: Some(author.into()),
        message: Some("why".into()),
        ..CommitOptions::default()
    }
}

fn puts(db: &Database, texts: &[&str]) {
    let document = db.create_document("document").unwrap();
    for text in texts {
        document.put(text, &who("ann")).unwrap();
        db.checkpoint().unwrap();
    }
}

/// Two documents over some commits, with a checkpoint after so many.
fn values(db: &Database, commits: usize, checkpoint: usize) {
    for step in 0..commits {
        let mut transaction = db.transaction();
        let list: Vec<_> =
            (step % 3..9).map(|n| format!("{{\"n\":{},\"s\":\"v\"}}", n * step)).collect();
        transaction.put("a", format!("[{}]", list.join(",")).as_bytes()).unwrap();
        transaction.put("b", format!("{{\"step\":{step},\"on\":true}}").as_bytes()).unwrap();
        transaction.commit(&who(["ann", "ben"][step % 2])).unwrap();
        if checkpoint > 0 && step % checkpoint == checkpoint - 1 {
            db.checkpoint().unwrap();
        }
    }
}

fn map(db: &Database) {
    let entries = |add: usize| {
        let entries = (0..300).map(|key| format!("\"key {key}\":{}", key + add));
        format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
    };
    puts(db, &[&entries(0), &entries(1)]);
    let map = db.document("document").unwrap();
    map.set(&JsonPointer::parse("/new").unwrap(), "[1]", &who("ben")).unwrap();
    map.remove(&JsonPointer::parse("/key 7").unwrap(), &who("ben")).unwrap();
}

fn orders(db: &Database) {
    let list: Vec<_> = (0..700).map(|n| n.to_string()).collect();
    puts(db, &[&format!("[{}]", list.join(","))]);
    let document = db.document("document").unwrap();
    for at in (0..600).step_by(100) {
        let position = Position::Before(format!("/{at}").parse().unwrap());
        document.insert(&position, None, "\"inserted\"", &who("ann")).unwrap();
        document
            .remove(&JsonPointer::parse(&format!("/{}", at + 50)).unwrap(), &who("ann"))
            .unwrap();
    }
    db.checkpoint().unwrap();
}

fn long(db: &Database) {
    let long = |n: usize| format!("{{\"long\":\"{}\",\"n\":{n}}}", "text ".repeat(900 + n));
    puts(db, &[&long(1), &long(2), "{\"n\":3}"]);
}

fn group(db: &Database) {
    let list = |step: usize| {
        let item = |n: usize| {
            let changed = if n % 97 == step { step } else { 0 };
            format!("{{\"n\":{},\"s\":\"item {n} of many\"}}", n + changed)
        };
        format!("[{}]", (0..2_000).map(item).collect::<Vec<_>>().join(","))
    };
    puts(db, &[&list(0), &list(1), &list(2)]);
}

fn names(db: &Database) {
    puts(db, &["1", "2"]);
    let document = db.document("document").unwrap();
    db.delete_document("document", &who("ann")).unwrap();
    document.put("3", &who("ben")).unwrap();
    db.rename_document("document", "renamed", &who("ben")).unwrap();
    db.create_document("gone").unwrap().put("[]", &who("ann")).unwrap();
    db.checkpoint().unwrap();
    db.delete_document("gone", &who("carl")).unwrap();
    db.create_document("bare").unwrap();
}

fn tags(db: &Database) {
    let declared = DocumentOptions {
        ids: [("$".parse().unwrap(), "id".to_owned())].into(),
        maps: ["$[*].map".parse().unwrap()].into(),
        ..DocumentOptions::default()
    };
    let document = db.create_document_with("document", &declared).unwrap();
    document.put(r#"[{"id":1,"map":{"a":1}},{"id":2}]"#, &who("ann")).unwrap();
    document.tag("first", None, &who("ben")).unwrap();
    db.checkpoint().unwrap();
    document.put(r#"[{"id":2},{"id":1,"map":{"b":1}}]"#, &who("ann")).unwrap();
    document.tag("second", None, &who("ben")).unwrap();
    document.move_tag("first", Some(Revision(2)), &who("carl")).unwrap();
    document.untag("second", &who("carl")).unwrap();
}

fn moves(db: &Database) {
    puts(db, &[r#"{"a":{"x":[1,2,3]},"b":[]}"#]);
    let document = db.document("document").unwrap();
    let target = |text: &str| Target::parse(text).unwrap();
    document.rename_field(&target("/a"), "renamed", &who("ann")).unwrap();
    document.undo(Revision(2), &who("ann")).unwrap();
    db.checkpoint().unwrap();
    document.patch(r#"[{"op":"move","from":"/a/x","path":"/b/0"}]"#, &who("ben")).unwrap();
    document.revert_to(Revision(1), &who("ben")).unwrap();
}

/// So many paths that the objects at the last ones are maps.
fn paths(db: &Database) {
    let fields = |n: usize| (0..245).map(|m| format!("\"f{n}_{m}\":{m}")).collect::<Vec<_>>();
    let object = |n: usize| format!("\"o{n}\":{{{}}}", fields(n).join(","));
    let objects: Vec<_> = (0..17).map(object).collect();
    puts(db, &[&format!("{{{},\"z\":{{\"k\":{{\"x\":1}}}}}}", objects.join(","))]);
}

#[test]
#[ignore = "writes the fixtures of a new format; those of a released one stay as they are"]
fn write_fixtures() {
    let folder = folder(FORMATS[FORMATS.len() - 1]);
    std::fs::create_dir_all(&folder).unwrap();
    let mut hashes = String::new();
    for (name, build) in BUILDERS {
        let device = Arc::new(FixedDevice::default());
        let clock = Arc::new(Seconds(AtomicI64::new(1_700_000_000_000_000)));
        let options = Options { background: false, clock, ..Options::default() };
        let db = Database::open_device(Arc::clone(&device) as Arc<dyn Device>, options).unwrap();
        build(&db);
        writeln!(hashes, "{name} {}", ContentHash::of_json(dump(&db).as_bytes())).unwrap();
        // Some were closed in order, the others are as a crash leaves them.
        if name.len() % 2 == 0 {
            db.close().unwrap();
        }
        std::fs::write(folder.join(format!("{name}.image")), image(&*device)).unwrap();
    }
    std::fs::write(folder.join("hashes.txt"), hashes).unwrap();
}
