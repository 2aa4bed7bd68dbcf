//! The disk format, held against `docs/format.md`: a small database is written with a fixed clock
//! and a fixed id, and its files are the bytes that the document shows. The segment is taken apart
//! by a reader that knows only the document.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use duramen::io::{Access, Device, File, Lock, MemoryDevice, read_exact_at};
use duramen::{Clock, CommitOptions, Database, JsonPointer, Micros, Options};

const PAGE: &str = include_str!("../../../../docs/format.md");

/// A clock that goes on by one second with every look at it.
#[derive(Debug)]
pub(crate) struct Seconds(pub(crate) AtomicI64);

impl Clock for Seconds {
    fn now(&self) -> Micros {
        Micros(self.0.fetch_add(1_000_000, Ordering::Relaxed))
    }
}

/// Files in memory, and an id that is always the same.
#[derive(Debug, Default)]
pub(crate) struct FixedDevice(pub(crate) MemoryDevice);

impl Device for FixedDevice {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.0.create_dir(path)
    }

    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        self.0.open(path, access)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.0.remove(path)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.0.list(dir)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.0.sync_dir(dir)
    }

    fn lock(&self, path: &str, holder: &str) -> io::Result<Box<dyn Lock>> {
        self.0.lock(path, holder)
    }

    fn lock_holder(&self, path: &str) -> io::Result<String> {
        self.0.lock_holder(path)
    }

    fn entropy(&self) -> u128 {
        0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100
    }
}

/// The database that the document shows; a checkpoint has written it if `checkpoint` says so.
fn example(checkpoint: bool) -> Arc<dyn Device> {
    let device: Arc<dyn Device> = Arc::new(FixedDevice::default());
    let options = Options {
        background: false,
        clock: Arc::new(Seconds(AtomicI64::new(1_700_000_000_000_000))),
        ..Options::default()
    };
    let db = Database::open_device(Arc::clone(&device), options).unwrap();
    let mut transaction = db.transaction();
    transaction.put("d", br#"{"n":1,"list":["x",2.50]}"#).unwrap();
    let first = CommitOptions { author: Some("ann".into()), ..CommitOptions::default() };
    transaction.commit(&first).unwrap();
    let document = db.document("d").unwrap();
    let pointer = JsonPointer::parse("/n").unwrap();
    document.set(&pointer, "7", &CommitOptions::default()).unwrap();
    if checkpoint {
        db.checkpoint().unwrap();
    }
    device
}

fn content(device: &dyn Device, path: &str) -> Vec<u8> {
    let file = device.open(path, Access::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes in lines of 16, as the document shows them.
fn lines(bytes: &[u8]) -> String {
    let line = |line: &[u8]| line.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
    bytes.chunks(16).map(line).collect::<Vec<_>>().join("\n")
}

/// What the document shows under a name: the code block whose first line it is.
fn shown(name: &str) -> String {
    let start = format!("```text\n{name}:\n");
    let (_, rest) = PAGE.split_once(&start).unwrap_or(("", "\n```"));
    rest.split_once("\n```").unwrap().0.to_owned()
}

fn number(bytes: &[u8], at: usize, len: usize) -> usize {
    bytes[at..at + len].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// The block that an address of 16 bytes names, verified.
fn block<'a>(file: &'a [u8], address: &[u8]) -> &'a [u8] {
    let (offset, length) = (number(address, 0, 8), number(address, 8, 4));
    let block = &file[offset..offset + length];
    let checksum = u64::from(crc32c::crc32c(&block[4..]));
    assert_eq!(number(block, 0, 4) as u64, checksum);
    assert_eq!(number(address, 12, 4) as u64, checksum);
    assert_eq!(number(block, 8, 4), length);
    assert_eq!(number(block, 24, 8), offset);
    block
}

/// The keys and cells of a segment.
fn cells(manifest: &[u8], file: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    assert_eq!(number(manifest, 112, 4), 1, "one live segment");
    let footer = block(file, &manifest[128..144]);
    assert_eq!((footer[4], number(footer, 32, 4)), (4, 1), "kind and format");
    let index = block(file, &footer[32 + 72..32 + 88]);
    let mut cells = Vec::new();
    for entry in 0..number(index, 12, 4) {
        let address = &index[32 + 24 * entry..][..16];
        let block = block(file, address);
        let items = number(block, 12, 4);
        let data = &block[32 + 4 * items..];
        let start = |item| number(block, 32 + 4 * item, 2);
        for item in 0..items {
            let key = start(item) + number(block, 34 + 4 * item, 2);
            let end = if item + 1 < items { start(item + 1) } else { data.len() };
            cells.push((data[start(item)..key].to_vec(), data[key..end].to_vec()));
        }
    }
    cells
}

#[test]
fn document_shows_the_first_groups_of_the_journal() {
    let journal = content(example(false).as_ref(), "journal/00000001.journal");
    let mut checked = 0;
    while number(&journal, checked + 16, 4) > 0 {
        let (length, mut sealed) = (number(&journal, checked + 4, 4), Vec::new());
        sealed.extend(FixedDevice::default().entropy().to_le_bytes());
        sealed.extend(1_u64.to_le_bytes());
        sealed.extend((checked as u64).to_le_bytes());
        sealed.extend_from_slice(&journal[checked + 4..checked + 36 + length]);
        assert_eq!(number(&journal, checked, 4) as u64, u64::from(crc32c::crc32c(&sealed)));
        checked += 36 + length;
    }
    // What follows the groups is the end mark.
    assert_eq!(lines(&journal[..checked + 36]), shown("journal/00000001.journal"));
}

#[test]
fn document_shows_a_manifest() {
    assert_eq!(lines(&content(example(true).as_ref(), "MANIFEST")), shown("MANIFEST"));
}

#[test]
fn document_shows_the_cells_of_a_segment() {
    let device = example(true);
    let manifest = content(device.as_ref(), "MANIFEST");
    let cells = cells(&manifest, &content(device.as_ref(), "segments/00000001.segment"));
    let shown_cells = shown("segments/00000001.segment");
    // The right column of the document says what a cell is.
    let shown_cells = shown_cells.lines().filter(|line| !line.starts_with('#'));
    let found = cells.iter().map(|(key, cell)| format!("{} = {}", hex(key), hex(cell)));
    assert_eq!(found.collect::<Vec<_>>(), shown_cells.collect::<Vec<_>>());
}
