//! A device in memory that counts reads and whose files can be damaged.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::io::{Access, Device, File, Lock};

#[derive(Debug, Default)]
pub(crate) struct TestDevice {
    files: Mutex<BTreeMap<String, Arc<TestFile>>>,
    reads: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct TestFile {
    bytes: Mutex<Vec<u8>>,
    reads: Arc<AtomicUsize>,
}

impl TestDevice {
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        self.files.lock()[path].bytes.lock().clone()
    }

    pub(crate) fn set_bytes(&self, path: &str, bytes: Vec<u8>) {
        *self.files.lock()[path].bytes.lock() = bytes;
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.files.lock().keys().cloned().collect()
    }
}

impl Device for TestDevice {
    fn create_dir(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        let mut files = self.files.lock();
        let file = match (files.get(path), access) {
            (Some(_), Access::Create) => return Err(io::ErrorKind::AlreadyExists.into()),
            (None, Access::Create) => {
                let reads = Arc::clone(&self.reads);
                Arc::new(TestFile { reads, ..TestFile::default() })
            }
            (Some(file), _) => Arc::clone(file),
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        files.insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files.lock();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let removed = self.files.lock().remove(path);
        removed.map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let start = format!("{dir}/");
        let files = self.files.lock();
        Ok(files.keys().filter_map(|path| path.strip_prefix(&start)).map(str::to_owned).collect())
    }

    fn sync_dir(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _: &str, _: &str) -> io::Result<Box<dyn Lock>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn lock_holder(&self, _: &str) -> io::Result<String> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl File for TestFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let bytes = self.bytes.lock();
        let start = usize::try_from(offset).unwrap().min(bytes.len());
        let length = buf.len().min(bytes.len() - start);
        buf[..length].copy_from_slice(&bytes[start..start + length]);
        Ok(length)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let mut bytes = self.bytes.lock();
        let start = usize::try_from(offset).unwrap();
        if bytes.len() < start + buf.len() {
            bytes.resize(start + buf.len(), 0);
        }
        bytes[start..start + buf.len()].copy_from_slice(buf);
        Ok(buf.len())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.lock().resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }
}
