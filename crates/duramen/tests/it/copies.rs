//! Databases in other places: a copied folder, and a medium that cannot be written.
#![expect(clippy::disallowed_methods, reason = "what other programs do to files is what is tried")]

use std::io::{self, ErrorKind as Os};
use std::path::Path;
use std::sync::Arc;

use duramen::io::{Access, Device, DirectoryDevice, File, Lock, read_exact_at, write_all_at};
use duramen::{CommitOptions, Database, Document, ErrorKind, Options};

fn put(document: &Document, text: &str) {
    document.put(text, &CommitOptions::default()).unwrap();
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn the_copied_folder_of_a_closed_database_is_the_database() {
    let home = tempfile::tempdir().unwrap();
    let (here, there) = (home.path().join("here"), home.path().join("there"));
    let db = Database::open(&here, Options::default()).unwrap();
    let doc = db.create_document("d").unwrap();
    put(&doc, "1");
    db.checkpoint().unwrap();
    put(&doc, "2");
    let hash = db.snapshot().hash().unwrap();
    drop(doc);
    db.close().unwrap();
    copy_folder(&here, &there);
    let copy = Database::open(&there, Options::default()).unwrap();
    assert_eq!(copy.snapshot().hash().unwrap(), hash);
    assert!(copy.check().unwrap().is_clean());
    put(&copy.document("d").unwrap(), "3");
}

/// A folder on a medium that cannot be written, whoever asks.
#[derive(Debug)]
struct Engraved(DirectoryDevice);

const REFUSED: Os = Os::ReadOnlyFilesystem;

impl Device for Engraved {
    fn create_dir(&self, _path: &str) -> io::Result<()> {
        Err(REFUSED.into())
    }

    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        if access == Access::Read { self.0.open(path, access) } else { Err(REFUSED.into()) }
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(REFUSED.into())
    }

    fn remove(&self, _path: &str) -> io::Result<()> {
        Err(REFUSED.into())
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.0.list(dir)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.0.sync_dir(dir)
    }

    fn lock(&self, _path: &str, _holder: &str) -> io::Result<Box<dyn Lock>> {
        Err(REFUSED.into())
    }

    fn lock_holder(&self, path: &str) -> io::Result<String> {
        self.0.lock_holder(path)
    }
}

#[test]
fn a_medium_that_cannot_be_written_can_be_read() {
    let home = tempfile::tempdir().unwrap();
    let db = Database::open(home.path(), Options::default()).unwrap();
    let doc = db.create_document("d").unwrap();
    put(&doc, "1");
    db.checkpoint().unwrap();
    put(&doc, "2");
    drop((doc, db));
    let open = |read_only| {
        let device = Arc::new(Engraved(DirectoryDevice::new(home.path())));
        Database::open_device(device, Options { read_only, ..Options::default() })
    };
    let db = open(true).unwrap();
    assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), "2");
    assert!(db.check().unwrap().is_clean());
    let refused = db.create_document("e").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied);
    assert_eq!(open(false).unwrap_err().kind(), ErrorKind::Denied);
}

#[test]
fn a_database_of_a_newer_format_is_refused_with_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    drop(Database::open(home.path(), Options::default()).unwrap());
    let device = DirectoryDevice::new(home.path());
    let file = device.open("MANIFEST", Access::Write).unwrap();
    let mut manifest = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    read_exact_at(file.as_ref(), &mut manifest, 0).unwrap();
    manifest[16] = 2;
    let checksum = crc32c(&manifest[12..]).to_le_bytes();
    manifest[8..12].copy_from_slice(&checksum);
    write_all_at(file.as_ref(), &manifest, 0).unwrap();
    for read_only in [false, true] {
        let options = Options { read_only, ..Options::default() };
        let error = Database::open(home.path(), options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.message().contains("use a newer one"), "{error}");
    }
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            if sum & 1 == 1 { sum >> 1 ^ 0x82f6_3b78 } else { sum >> 1 }
        })
    })
}

/// A file in a folder of the database that is called nearly like one of its own was taken for one
/// that is gone: the database did not open after a crash, and could not be repaired.
#[test]
fn files_of_others_that_are_called_nearly_like_its_own_are_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let [here, there, new] = ["here", "there", "new"].map(|name| home.path().join(name));
    let db = Database::open(&here, Options::default()).unwrap();
    let doc = db.create_document("d").unwrap();
    put(&doc, "1");
    db.checkpoint().unwrap();
    put(&doc, "2");
    // As if the process was killed.
    copy_folder(&here, &there);
    let others = ["journal/7.journal", "journal/+0000009.journal", "segments/7.segment"];
    for other in others {
        std::fs::write(there.join(other), "notes").unwrap();
    }
    for value in ["3", "4"] {
        let db = Database::open(&there, Options::default()).unwrap();
        put(&db.document("d").unwrap(), value);
        db.checkpoint().unwrap();
        db.close().unwrap();
    }
    std::fs::remove_file(there.join("MANIFEST")).unwrap();
    let mut go_on = |_| std::ops::ControlFlow::Continue(());
    Database::repair(&there, &new, &mut go_on).unwrap();
    let db = Database::open(&new, Options::default()).unwrap();
    assert_eq!(db.document("d").unwrap().head().unwrap().to_json().unwrap(), "4");
    for other in others {
        assert_eq!(std::fs::read(there.join(other)).unwrap(), b"notes");
    }
}
