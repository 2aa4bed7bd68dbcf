//! A device that counts what Duramen asks of the operating system.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use duramen::io::{Access, Device, DirectoryDevice, File, Lock};
use serde::{Deserialize, Serialize};

/// What the paths of journal files begin with.
const JOURNAL: &str = "journal/";

/// Calls to the operating system, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeviceCalls {
    /// Reads of files.
    pub(crate) reads: u64,
    /// Writes of files.
    pub(crate) writes: u64,
    /// Syncs of files and directories.
    pub(crate) syncs: u64,
    /// Files opened or made, the lock's included.
    pub(crate) opens: u64,
}

impl DeviceCalls {
    /// What has been added since an earlier look.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            writes: self.writes.saturating_sub(before.writes),
            syncs: self.syncs.saturating_sub(before.syncs),
            opens: self.opens.saturating_sub(before.opens),
        }
    }

    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            syncs: self.syncs + other.syncs,
            opens: self.opens + other.opens,
        }
    }

    /// Each kind with the name of its figure.
    pub(crate) fn named(self) -> [(&'static str, u64); 4] {
        [
            ("device_reads", self.reads),
            ("device_writes", self.writes),
            ("device_syncs", self.syncs),
            ("device_opens", self.opens),
        ]
    }
}

#[derive(Debug, Default)]
struct Tally {
    reads: AtomicU64,
    writes: AtomicU64,
    syncs: AtomicU64,
    opens: AtomicU64,
    journal_bytes: AtomicU64,
    other_bytes: AtomicU64,
}

/// Bytes handed to writes of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// To files of the journal: groups, and the zeros that they overwrite.
    pub(crate) journal: u64,
    /// To all others: segments, manifests.
    pub(crate) others: u64,
}

fn count(kind: &AtomicU64) {
    kind.fetch_add(1, Ordering::Relaxed);
}

/// The device of production with a count of its calls; a count is one addition, so it stays on
/// while times are taken.
#[derive(Debug)]
pub(crate) struct CountingDevice {
    device: DirectoryDevice,
    tally: Arc<Tally>,
}

impl CountingDevice {
    /// A device rooted at a folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { device: DirectoryDevice::new(folder), tally: Arc::default() }
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> DeviceCalls {
        let of = |kind: &AtomicU64| kind.load(Ordering::Relaxed);
        let Tally { reads, writes, syncs, opens, .. } = self.tally.as_ref();
        DeviceCalls { reads: of(reads), writes: of(writes), syncs: of(syncs), opens: of(opens) }
    }

    /// The bytes written so far.
    pub(crate) fn written(&self) -> Written {
        let Tally { journal_bytes, other_bytes, .. } = self.tally.as_ref();
        Written {
            journal: journal_bytes.load(Ordering::Relaxed),
            others: other_bytes.load(Ordering::Relaxed),
        }
    }
}

impl Device for CountingDevice {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.device.create_dir(path)
    }

    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        count(&self.tally.opens);
        let file = self.device.open(path, access)?;
        let is_journal = path.starts_with(JOURNAL);
        Ok(Arc::new(CountingFile { file, is_journal, tally: Arc::clone(&self.tally) }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.device.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.device.remove(path)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.device.list(dir)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        count(&self.tally.syncs);
        self.device.sync_dir(dir)
    }

    fn free_bytes(&self) -> Option<u64> {
        self.device.free_bytes()
    }

    fn lock(&self, path: &str, holder: &str) -> io::Result<Box<dyn Lock>> {
        count(&self.tally.opens);
        count(&self.tally.writes);
        self.device.lock(path, holder)
    }

    fn lock_holder(&self, path: &str) -> io::Result<String> {
        self.device.lock_holder(path)
    }
}

struct CountingFile {
    file: Arc<dyn File>,
    is_journal: bool,
    tally: Arc<Tally>,
}

impl fmt::Debug for CountingFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl File for CountingFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        count(&self.tally.reads);
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        count(&self.tally.writes);
        let written = self.file.write_at(buf, offset)?;
        let Tally { journal_bytes, other_bytes, .. } = self.tally.as_ref();
        let bytes = if self.is_journal { journal_bytes } else { other_bytes };
        bytes.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn sync(&self) -> io::Result<()> {
        count(&self.tally.syncs);
        self.file.sync()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_kind() {
        let folder = tempfile::tempdir().unwrap();
        let device = CountingDevice::new(folder.path());
        let file = device.open("a", Access::Create).unwrap();
        file.write_at(b"oak", 0).unwrap();
        file.sync().unwrap();
        file.read_at(&mut [0; 3], 0).unwrap();
        let calls = DeviceCalls { reads: 1, writes: 1, syncs: 1, opens: 1 };
        assert_eq!(device.calls(), calls);
        assert_eq!(device.calls().since(calls), DeviceCalls::default());
        assert_eq!(calls.plus(calls).reads, 2);
        assert_eq!(device.written(), Written { journal: 0, others: 3 });
        device.create_dir("journal").unwrap();
        device.open("journal/b", Access::Create).unwrap().write_at(b"ring", 0).unwrap();
        assert_eq!(device.written(), Written { journal: 4, others: 3 });
    }
}
