//! A device in memory, for databases that need not outlive their process, and for tests.
//!
//! Invariants:
//! - the parent of every entry is a directory; the root is one without an entry;
//! - a file lives as long as a name or an open handle refers to it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};

use super::{Access, Device, File, Lock, check_path, split_path};

/// Files in memory. A clone is the same device.
#[derive(Debug, Clone, Default)]
pub struct MemoryDevice {
    entries: Arc<Mutex<Entries>>,
}

impl MemoryDevice {
    /// A device without files.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Every file and directory by its whole path, so that a directory's are one range.
#[derive(Debug, Default)]
struct Entries(BTreeMap<String, Entry>);

#[derive(Debug, Clone)]
enum Entry {
    Directory,
    File(Arc<Content>),
}

#[derive(Debug, Default)]
struct Content {
    bytes: RwLock<Vec<u8>>,
    locked: AtomicBool,
}

impl Entries {
    fn file(&self, path: &str) -> io::Result<Arc<Content>> {
        split_path(path)?;
        match self.0.get(path) {
            Some(Entry::File(content)) => Ok(Arc::clone(content)),
            Some(Entry::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn check_dir(&self, path: &str) -> io::Result<()> {
        check_path(path)?;
        match self.0.get(path) {
            Some(Entry::Directory) => Ok(()),
            None if path.is_empty() => Ok(()),
            Some(Entry::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn create_dir(&mut self, path: &str) -> io::Result<()> {
        match self.check_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done_or_refused => return done_or_refused,
        }
        self.create_dir(split_path(path)?.0)?;
        self.0.insert(path.to_owned(), Entry::Directory);
        Ok(())
    }

    fn create_file(&mut self, path: &str) -> io::Result<Arc<Content>> {
        self.create_dir(split_path(path)?.0)?;
        if self.0.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let content = Arc::<Content>::default();
        self.0.insert(path.to_owned(), Entry::File(Arc::clone(&content)));
        Ok(content)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let content = self.file(from)?;
        self.check_dir(split_path(to)?.0)?;
        if matches!(self.0.get(to), Some(Entry::Directory)) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.0.remove(from);
        self.0.insert(to.to_owned(), Entry::File(content));
        Ok(())
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.check_dir(dir)?;
        let prefix = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let below =
            self.0.range(prefix.clone()..).map_while(|(path, _)| path.strip_prefix(&prefix));
        let mut names: Vec<_> =
            below.filter(|rest| !rest.contains('/')).map(str::to_owned).collect();
        names.sort_unstable();
        Ok(names)
    }
}

impl Device for MemoryDevice {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.entries.lock().create_dir(path)
    }

    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        let mut entries = self.entries.lock();
        let content = match access {
            Access::Read | Access::Write => entries.file(path)?,
            Access::Create => entries.create_file(path)?,
        };
        Ok(Arc::new(MemoryFile { content, writable: access != Access::Read }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.entries.lock().rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut entries = self.entries.lock();
        entries.file(path)?;
        entries.0.remove(path);
        Ok(())
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.entries.lock().list(dir)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.entries.lock().check_dir(dir)
    }

    fn lock(&self, path: &str, holder: &str) -> io::Result<Box<dyn Lock>> {
        let mut entries = self.entries.lock();
        let content = match entries.file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => entries.create_file(path)?,
            found_or_refused => found_or_refused?,
        };
        if content.locked.swap(true, Ordering::Acquire) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        *content.bytes.write() = holder.as_bytes().to_vec();
        Ok(Box::new(MemoryLock(content)))
    }

    fn lock_holder(&self, path: &str) -> io::Result<String> {
        let content = self.entries.lock().file(path)?;
        let bytes = content.bytes.read();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[derive(Debug)]
struct MemoryFile {
    content: Arc<Content>,
    writable: bool,
}

impl MemoryFile {
    fn check_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

impl File for MemoryFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.content.bytes.read();
        let rest = usize::try_from(offset).ok().and_then(|start| bytes.get(start..));
        let rest = rest.unwrap_or_default();
        let read = rest.len().min(buf.len());
        buf[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.check_writable()?;
        if buf.is_empty() {
            return Ok(0);
        }
        let end = offset.checked_add(buf.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        let (start, end) = (size(offset)?, size(end)?);
        let mut bytes = self.content.bytes.write();
        if end > bytes.len() {
            resize(&mut bytes, end)?;
        }
        bytes[start..end].copy_from_slice(buf);
        Ok(buf.len())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        resize(&mut self.content.bytes.write(), size(len)?)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.bytes.read().len() as u64)
    }
}

fn size(bytes: u64) -> io::Result<usize> {
    usize::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

/// Memory that runs out is a full device, not the end of the process.
fn resize(bytes: &mut Vec<u8>, len: usize) -> io::Result<()> {
    let more = len.saturating_sub(bytes.len());
    bytes.try_reserve(more).map_err(|_| io::ErrorKind::StorageFull)?;
    bytes.resize(len, 0);
    Ok(())
}

#[derive(Debug)]
struct MemoryLock(Arc<Content>);

impl Lock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.0.locked.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_beyond_memory_is_a_full_device() {
        let file = MemoryDevice::new().open("large", Access::Create).unwrap();
        let error = file.set_len(u64::MAX / 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let error = file.write_at(b"x", u64::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(file.is_empty().unwrap());
    }

    #[test]
    fn a_clone_is_the_same_device() {
        let device = MemoryDevice::new();
        device.clone().open("a/b", Access::Create).unwrap();
        assert_eq!(device.list("a").unwrap(), ["b"]);
    }
}
