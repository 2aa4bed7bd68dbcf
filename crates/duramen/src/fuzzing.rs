//! Where fuzzing enters: every decoder of bytes and text from outside, as a function of bytes.
//!
//! A target must return, whatever it is given: an error of the engine is an answer, a panic is a
//! finding. Checksums are put right on the way, so that what lies behind them is reached.

use std::cell::OnceCell;
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;

use crate::encoding::{Column, RevisionRowsBlock, RunPiece, decode_order_block};
use crate::engine::compaction::progress::{self, Progress};
use crate::engine::record;
use crate::engine::{View, salvage};
use crate::index::cell::{self, Entries, Facts};
use crate::io::{Access, Device, MemoryDevice, read_exact_at};
use crate::journal::salvage::SalvagedJournal;
use crate::json::Tape;
use crate::manifest::{self, Manifest};
use crate::memory::Memory;
use crate::segment::salvage::numbers;
use crate::small_file;
use crate::store::Store;
use crate::tree::cell_key::{self, CellKey, GroupCell};
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::persist::{Meta, decode_schema};
use crate::tree::schema::ROOT;
use crate::{
    CommitSequence, Database, Error, Filter, Format, JsonPath, JsonPointer, LabelPath, Micros,
    Options, ParseOptions, RecordPath, Result, Revision, journal, segment, series, staging,
};

/// A decoder to be fuzzed.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// What it decodes.
    pub name: &'static str,
    /// Decodes bytes, and reads what came of them.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 22] = [
    Target { name: "journal_group", run: journal::fuzzing::group },
    Target { name: "journal_records", run: journal_records },
    Target { name: "segment_cells", run: segment::fuzzing::cells },
    Target { name: "segment_index", run: segment::fuzzing::index },
    Target { name: "segment_filter", run: segment::fuzzing::filter },
    Target { name: "segment_footer", run: segment::fuzzing::footer },
    Target { name: "segment_file", run: segment::fuzzing::file },
    Target { name: "manifest", run: manifest },
    Target { name: "merge_progress", run: merge_progress },
    Target { name: "column", run: column },
    Target { name: "run_piece", run: run_piece },
    Target { name: "revision_rows", run: revision_rows },
    Target { name: "order_block", run: order_block },
    Target { name: "tree_facts", run: tree_facts },
    Target { name: "index_cell", run: index_cell },
    Target { name: "series_block", run: series::fuzzing::block },
    Target { name: "staging_file", run: staging::fuzzing::stripe },
    Target { name: "json", run: json },
    Target { name: "jsonpath", run: jsonpath },
    Target { name: "json_patch", run: json_patch },
    Target { name: "paths", run: paths },
    Target { name: "record_query", run: record_query },
];

/// Bytes of JSON that are printed of a document.
const PRINTED_BYTES_MAX: usize = 1 << 20;

/// Takes so many bytes, and no more.
struct Bounded(usize);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Revisions and values that are read of what decodes.
const READ_MAX: usize = 100;

/// Inputs to begin with, each with the name of its target: the parts of a database, and texts.
pub fn corpus(device: &Arc<dyn Device>) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let mut corpus = Vec::new();
    let manifest = content(device.as_ref(), manifest::PATH)?;
    let database = Manifest::load(device.as_ref())?.map_or(0, |manifest| manifest.database_id);
    corpus.push(("manifest", manifest));
    corpus.push(("merge_progress", progress::example().encode()));
    for number in numbers(device.as_ref())? {
        let file = content(device.as_ref(), &segment::path(number))?;
        for (kind, block) in segment::fuzzing::blocks(&file) {
            let name = match kind {
                segment::BlockKind::Cells => "segment_cells",
                segment::BlockKind::Filter => "segment_filter",
                segment::BlockKind::Index => "segment_index",
                segment::BlockKind::Footer => "segment_footer",
            };
            corpus.push((name, block));
        }
        corpus.push(("segment_file", file));
    }
    add_cells(device, &mut corpus)?;
    add_journal(device, database, &mut corpus)?;
    corpus.extend(series::fuzzing::blocks().map(|block| ("series_block", block)));
    corpus.extend(staging::fuzzing::files().map(|file| ("staging_file", file)));
    corpus.extend(TEXTS.iter().map(|(name, text)| (*name, text.as_bytes().to_vec())));
    Ok(corpus)
}

fn content(device: &dyn Device, path: &str) -> Result<Vec<u8>> {
    let failed = |error| Error::io(format!("cannot read {path}"), error);
    let file = device.open(path, Access::Read).map_err(failed)?;
    let len = usize::try_from(file.len().map_err(failed)?).unwrap_or(0);
    let mut bytes = vec![0; len];
    read_exact_at(file.as_ref(), &mut bytes, 0).map_err(failed)?;
    Ok(bytes)
}

fn add_cells(device: &Arc<dyn Device>, corpus: &mut Vec<(&'static str, Vec<u8>)>) -> Result<()> {
    let copies: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let options = Options { read_only: true, background: false, ..Options::default() };
    let salvaged = salvage::open(device, &copies, options)?;
    for found in salvaged.engine.view().store.live().scan(&[])? {
        let (key, cell) = found?;
        let name = match cell_key::parse(&key).map(|(_, key)| key) {
            Some(CellKey::Group { kind: GroupCell::Run, .. }) => "run_piece",
            Some(CellKey::Group { .. }) => "column",
            Some(CellKey::Rows { .. }) => "revision_rows",
            Some(CellKey::Order(_)) => "order_block",
            Some(CellKey::Meta | CellKey::Schema(_)) => "tree_facts",
            Some(CellKey::Index { .. } | CellKey::IndexSlab { .. }) => "index_cell",
            _ => continue,
        };
        corpus.push((name, cell.load()?.to_vec()));
    }
    Ok(())
}

fn add_journal(
    device: &Arc<dyn Device>,
    database: u128,
    corpus: &mut Vec<(&'static str, Vec<u8>)>,
) -> Result<()> {
    for name in device.list("journal").map_err(|error| Error::io("journal", error))? {
        let file = content(device.as_ref(), &format!("journal/{name}"))?;
        corpus.extend(journal::fuzzing::first_group(&file).map(|group| ("journal_group", group)));
    }
    let mut records = Vec::new();
    let journal = SalvagedJournal::read(device, database)?;
    journal.replay(CommitSequence(0), &mut |_, _, body| {
        records.extend(u32::try_from(body.len()).unwrap_or(0).to_le_bytes());
        records.extend_from_slice(body);
        corpus.push(("journal_records", records.clone()));
        Ok(())
    })?;
    Ok(())
}

/// Records of commits, each behind its length, replayed into an empty database and read.
fn journal_records(data: &[u8]) {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let manifest = Manifest::new(1, Micros(0));
    let Ok(store) = Store::open(&device, &manifest, &Memory::new(0)) else { return };
    let view = View::new(Arc::new(store));
    let mut rest = data;
    let mut sequence = CommitSequence(0);
    while let Some((len, after)) = rest.split_first_chunk() {
        let len = (u32::from_le_bytes(*len) as usize).min(after.len());
        let (body, after) = after.split_at(len);
        sequence = sequence.next();
        if record::replay(&view, (sequence, Micros(0)), body).is_err() {
            break;
        }
        rest = after;
    }
    for id in 0..4 {
        let Ok(tree) = view.tree(cell_key::TreeId(id)) else { continue };
        let last = tree.data.read().rows.last();
        for revision in (1..=last).rev().take(4).map(Revision) {
            // Arrays in arrays of millions that are absent print without end.
            let (root, mut out) = (node(ROOT, 0), Bounded(PRINTED_BYTES_MAX));
            let _ = tree.write_json((root, short(revision)), &Format::default(), &mut out);
        }
    }
    let _ = view.names(sequence);
}

fn manifest(data: &[u8]) {
    let mut bytes = data.to_vec();
    small_file::seal(&mut bytes);
    if let Ok(manifest) = Manifest::decode(&bytes) {
        assert_eq!(Manifest::decode(&manifest.encode()).ok(), Some(manifest));
    }
}

fn merge_progress(data: &[u8]) {
    let mut bytes = data.to_vec();
    small_file::seal(&mut bytes);
    if let Some(progress) = Progress::decode(&bytes) {
        assert_eq!(Progress::decode(&progress.encode()), Some(progress));
    }
}

fn column(data: &[u8]) {
    let single = Column::single(data);
    let Ok(column) = Column::parse(Bytes::copy_from_slice(data)) else {
        return assert!(single.is_none());
    };
    assert!(single.is_none() || (column.len() == 1 && column.get(0).ok() == single));
    for slot in 0..column.len() + 2 {
        let _ = column.get(slot).is_ok();
    }
    assert!(column.iter().count() == column.len() || column.check().is_err());
}

fn run_piece(data: &[u8]) {
    let single = RunPiece::single(data);
    let Ok(piece) = RunPiece::parse(Bytes::copy_from_slice(data)) else {
        return assert!(single.is_none());
    };
    assert!(single.is_none() || (piece.len() == 1 && piece.entry(0).ok() == single));
    for slot in (0..40).chain([u16::MAX]) {
        let _ = piece.run(slot).is_ok();
        for revision in [0, piece.first_revision(), piece.last_revision(), u32::MAX] {
            let _ = piece.at(slot, revision).is_ok();
        }
    }
    for index in 0..piece.len() + 2 {
        let _ = piece.entry(index).is_ok();
    }
    let _ = piece.check().is_ok();
}

fn revision_rows(data: &[u8]) {
    let Ok(block) = RevisionRowsBlock::parse(Bytes::copy_from_slice(data)) else { return };
    block.timestamps_into(&mut Vec::new());
    for row in 0..block.len() + 2 {
        let _ = (block.timestamp(row).is_ok(), block.sequence(row).is_ok());
        let _ = (block.author(row).is_ok(), block.message(row).is_ok());
        let _ = block.committed(row).is_ok();
        let _ = block.changed(row).map(|all| all.take(READ_MAX).flatten().count());
        let _ = block.moves(row).map(|all| all.take(READ_MAX).flatten().count());
    }
    let _ = block.check().is_ok();
}

fn order_block(data: &[u8]) {
    if let Ok(block) = decode_order_block(data) {
        let _ = (block.items(), block.check().is_ok());
    }
}

fn index_cell(data: &[u8]) {
    if let Ok(entries) = Entries::decode(data) {
        let owned: Vec<_> = entries.iter().collect();
        let again = Entries::decode(&cell::encode(&owned));
        assert!(again.is_ok_and(|again| again.iter().eq(entries.iter())));
    }
    if let Ok(facts) = Facts::decode(data) {
        assert_eq!(Facts::decode(&facts.encode()).ok(), Some(facts));
    }
}

fn tree_facts(data: &[u8]) {
    if let Ok(meta) = Meta::decode(data) {
        assert_eq!(Meta::decode(&meta.encode()).ok(), Some(meta));
    }
    let _ = decode_schema(data).is_ok();
}

fn json(data: &[u8]) {
    let strict = Tape::parse(data, ParseOptions { strict: true }).is_ok();
    let lenient = Tape::parse(data, ParseOptions::default()).is_ok();
    assert!(lenient || !strict, "what is accepted strictly is accepted");
    if lenient {
        with_document(|db| {
            let mut transaction = db.transaction();
            if transaction.put("other", data).is_ok() {
                let text = transaction.get("other", &JsonPointer::root());
                let text = text.unwrap_or_default();
                assert!(Tape::parse(text.as_bytes(), ParseOptions::default()).is_ok(), "{text}");
            }
        });
    }
}

fn jsonpath(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(path) = JsonPath::parse(text) else { return };
    with_document(|db| {
        let found = db.document("document").and_then(|document| document.head()?.query(&path));
        let _ = found.map(|found| found.take(READ_MAX).flatten().count());
    });
}

fn record_query(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(path) = RecordPath::parse(text) {
        assert_eq!(RecordPath::parse(&path.to_string()).ok(), Some(path));
    }
    let Ok(filter) = text.parse::<Filter>() else { return };
    let shown = filter.to_string();
    let again = shown.parse::<Filter>().map(|again| again.to_string());
    assert_eq!(again.ok(), Some(shown));
}

fn json_patch(data: &[u8]) {
    with_document(|db| {
        let mut transaction = db.transaction();
        if transaction.patch("document", data).is_ok() {
            let text = transaction.get("document", &JsonPointer::root());
            let text = text.unwrap_or_default();
            assert!(Tape::parse(text.as_bytes(), ParseOptions::default()).is_ok(), "{text}");
        }
        drop(transaction);
        let mut transaction = db.transaction();
        let _ = transaction.merge_patch("document", data);
    });
}

/// Pointers, label paths and names.
fn paths(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(pointer) = JsonPointer::parse(text) {
        assert_eq!(JsonPointer::parse(&pointer.to_string()).ok(), Some(pointer));
    }
    if let Ok(path) = text.parse::<LabelPath>() {
        assert_eq!(path.to_string().parse::<LabelPath>().ok(), Some(path));
    }
    with_document(|db| drop(db.document(text)));
}

/// A database with one document, the thread's own.
fn with_document(visit: impl FnOnce(&Database)) {
    thread_local! {
        static DATABASE: OnceCell<Option<Database>> = const { OnceCell::new() };
    }
    DATABASE.with(|database| {
        let made = database.get_or_init(|| {
            let db = Database::memory().ok()?;
            let mut transaction = db.transaction();
            transaction.put("document", DOCUMENT.as_bytes()).ok()?;
            transaction.commit(&crate::CommitOptions::default()).ok()?;
            Some(db)
        });
        if let Some(db) = made {
            visit(db);
        }
    });
}

const DOCUMENT: &str = r#"{"a":[1,{"b":"text","c":[true,null,1.50]},1e400],"~/":{"":"x"},"n":-0}"#;

const TEXTS: [(&str, &str); 25] = [
    ("json", DOCUMENT),
    ("json", "[[[[[[[[1]]]]]]],\"\\ud83d\\ude00 \\u0000\",{\"a\":1,\"a\":2},-1.5E-300]"),
    ("json", " \t\r\n[9223372036854775808,0.1,123456789012345678901234567890,1E22] "),
    ("jsonpath", "$.a[?@.b == 'text' && @.c[0] || !@.x].c[-1:0:-1]"),
    ("jsonpath", "$..*[?length(@) > 2 && match(@.b, 't.*') && count(@.*) < 9]"),
    ("jsonpath", "$['~/'][''], $.a[0,1,-1]['b',\"c\"]"),
    ("jsonpath", "$[?search(@, '[a-z]+(x|y)?') != value($..b)]"),
    ("json_patch", r#"[{"op":"add","path":"/a/-","value":{"x":[1]}}]"#),
    ("json_patch", r#"[{"op":"move","from":"/a/1","path":"/moved"}]"#),
    ("json_patch", r#"[{"op":"copy","from":"/a","path":"/a/0"},{"op":"remove","path":"/n"}]"#),
    ("json_patch", r#"[{"op":"test","path":"/a/2","value":1e400}]"#),
    ("json_patch", r#"[{"op":"replace","path":"","value":[1,2,3]}]"#),
    ("json_patch", r#"{"a":null,"b":{"c":{"d":null}}}"#),
    ("paths", "/a/1/c/0"),
    ("paths", "/~0~1/"),
    ("paths", "$.teams{*}[\"a.b\"][*].x"),
    ("paths", "document"),
    ("record_query", "world = \"nether\" and score between 3 and 9.50 or not (tags contains true)"),
    ("record_query", "a.b[*].c in [1, -2e3, null, \"x\"] and [\"a b\"] is not missing"),
    ("record_query", "name prefix \"a\\u0041\" or n != 1 and (n is null or n <= 10)"),
    ("manifest", ""),
    ("column", ""),
    ("run_piece", ""),
    ("order_block", ""),
    ("journal_records", ""),
];
