//! What repair reads from: the damaged database, and beside it the cells that were copied out of
//! its damaged segments.
//!
//! Invariants:
//! - nothing of the damaged database is ever opened but for reading;
//! - what the system cannot read are zeros, which verify nowhere.

use std::io;
use std::sync::Arc;

use crate::io::{Access, Device, File, Lock};

/// Bytes that are given up at once where the system reports an error.
const PAGE_BYTES: u64 = 4_096;

/// A damaged database, with segments of another device added to its own.
#[derive(Debug)]
pub(crate) struct SalvageDevice {
    pub(crate) original: Arc<dyn Device>,
    pub(crate) copies: Arc<dyn Device>,
}

#[derive(Debug)]
struct SalvageFile(Arc<dyn File>);

impl Device for SalvageDevice {
    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        if access != Access::Read {
            return denied();
        }
        match self.copies.open(path, access) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Arc::new(SalvageFile(self.original.open(path, access)?)))
            }
            opened => opened,
        }
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.original.list(dir)
    }

    fn create_dir(&self, _path: &str) -> io::Result<()> {
        denied()
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        denied()
    }

    fn remove(&self, _path: &str) -> io::Result<()> {
        denied()
    }

    fn sync_dir(&self, _dir: &str) -> io::Result<()> {
        denied()
    }

    fn lock(&self, _path: &str, _holder: &str) -> io::Result<Box<dyn Lock>> {
        denied()
    }

    fn lock_holder(&self, path: &str) -> io::Result<String> {
        self.original.lock_holder(path)
    }
}

impl File for SalvageFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.0.read_at(buf, offset) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {}
            read => return read,
        }
        let left = PAGE_BYTES - offset % PAGE_BYTES;
        let len = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let page = &mut buf[..len];
        if let Ok(read) = self.0.read_at(page, offset) {
            return Ok(read);
        }
        let in_file = self.0.len()?.saturating_sub(offset);
        let len = len.min(usize::try_from(in_file).unwrap_or(usize::MAX));
        buf[..len].fill(0);
        Ok(len)
    }

    fn write_at(&self, _buf: &[u8], _offset: u64) -> io::Result<usize> {
        denied()
    }

    fn sync(&self) -> io::Result<()> {
        denied()
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        denied()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}

fn denied<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "a database under repair is not written"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{MemoryDevice, read_exact_at, write_all_at};

    /// A file of which one page cannot be read.
    #[derive(Debug)]
    struct BadPage(Arc<dyn File>, u64);

    impl File for BadPage {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            let (first, last) = (offset / PAGE_BYTES, (offset + buf.len() as u64 - 1) / PAGE_BYTES);
            if (first..=last).contains(&self.1) {
                return Err(io::Error::other("bad sector"));
            }
            self.0.read_at(buf, offset)
        }

        fn write_at(&self, _buf: &[u8], _offset: u64) -> io::Result<usize> {
            denied()
        }

        fn sync(&self) -> io::Result<()> {
            denied()
        }

        fn set_len(&self, _len: u64) -> io::Result<()> {
            denied()
        }

        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }
    }

    fn device() -> (MemoryDevice, Vec<u8>) {
        let device = MemoryDevice::new();
        let bytes: Vec<u8> =
            (0..3 * PAGE_BYTES + 100).map(|at| u8::try_from(at % 251).unwrap() + 1).collect();
        let file = device.open("file", Access::Create).unwrap();
        write_all_at(file.as_ref(), &bytes, 0).unwrap();
        (device, bytes)
    }

    #[test]
    fn a_page_that_cannot_be_read_is_zeros_and_the_others_are_what_they_are() {
        let (device, mut expected) = device();
        for page in 0..4 {
            let file = device.open("file", Access::Read).unwrap();
            let file = SalvageFile(Arc::new(BadPage(file, page)));
            let mut found = vec![7; expected.len()];
            read_exact_at(&file, &mut found, 0).unwrap();
            let start = usize::try_from(page * PAGE_BYTES).unwrap();
            let end = (start + 4_096).min(expected.len());
            let whole = expected.clone();
            expected[start..end].fill(0);
            assert!(found == expected, "page {page}");
            expected = whole;
        }
    }

    #[test]
    fn nothing_of_the_original_is_opened_for_writing_or_changed() {
        let (original, _) = device();
        let (original, copies) = (Arc::new(original), Arc::new(MemoryDevice::new()));
        let device = SalvageDevice { original, copies };
        for access in [Access::Write, Access::Create] {
            let error = device.open("file", access).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
        let changes = [
            device.remove("file"),
            device.rename("file", "other"),
            device.create_dir("folder"),
            device.sync_dir(""),
            device.lock("LOCK", "1").map(drop),
            device.open("file", Access::Read).and_then(|file| file.set_len(0)),
        ];
        assert!(changes.iter().all(Result::is_err));
    }
}
