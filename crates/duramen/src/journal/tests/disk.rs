//! A disk in memory that keeps apart what was written and what is durable.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::io::{Access, Device, File, Lock};

#[derive(Debug, Default)]
pub(super) struct Disk {
    files: Mutex<BTreeMap<String, Arc<Inode>>>,
    faults: Arc<Mutex<Faults>>,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Faults {
    /// The next sync fails, and what it should have synced counts as clean.
    pub(super) next_sync: bool,
    /// The next write fails halfway.
    pub(super) next_write: bool,
    /// How long a sync takes.
    pub(super) sync_ms: u64,
    /// Files cannot grow.
    pub(super) full: bool,
}

#[derive(Debug, Default)]
struct Inode {
    content: Mutex<Content>,
    faults: Arc<Mutex<Faults>>,
}

#[derive(Debug, Default, Clone)]
struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<(usize, Vec<u8>)>,
}

impl Disk {
    pub(super) fn set(&self, faults: Faults) {
        *self.faults.lock() = faults;
    }

    fn copy(&self, change: impl Fn(&Content) -> Vec<u8>) -> Arc<Self> {
        let faults = Arc::default();
        let copied = |(name, inode): (&String, &Arc<Inode>)| {
            let live = change(&inode.content.lock());
            let content = Content { durable: live.clone(), live, pending: Vec::new() };
            let inode = Inode { content: Mutex::new(content), faults: Arc::clone(&faults) };
            (name.clone(), Arc::new(inode))
        };
        let files = self.files.lock().iter().map(copied).collect();
        Arc::new(Self { files: Mutex::new(files), faults })
    }

    /// What is left when the process is killed.
    pub(super) fn killed(&self) -> Arc<Self> {
        self.copy(|content| content.live.clone())
    }

    /// What is left when the power goes.
    pub(super) fn without_power(&self) -> Arc<Self> {
        self.copy(|content| content.durable.clone())
    }

    /// What a killed process leaves when the system goes on: what is not durable still is not.
    pub(super) fn same_system(&self) -> Arc<Self> {
        let files = self.files.lock().clone();
        Arc::new(Self { files: Mutex::new(files), faults: Arc::clone(&self.faults) })
    }

    /// Changes the bytes of a file behind everybody's back.
    pub(super) fn damage(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let files = self.files.lock();
        let mut content = files[path].content.lock();
        change(&mut content.live);
        content.durable = content.live.clone();
    }

    pub(super) fn bytes(&self, path: &str) -> Vec<u8> {
        self.files.lock()[path].content.lock().live.clone()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.files.lock().keys().cloned().collect()
    }
}

impl Device for Disk {
    fn create_dir(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        let mut files = self.files.lock();
        if access == Access::Create {
            let inode = Inode { faults: Arc::clone(&self.faults), ..Inode::default() };
            if files.insert(path.to_owned(), Arc::new(inode)).is_some() {
                return Err(ErrorKind::AlreadyExists.into());
            }
        }
        match files.get(path) {
            Some(inode) => Ok(Arc::clone(inode) as Arc<dyn File>),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files.lock();
        let inode = files.remove(from).ok_or(ErrorKind::NotFound)?;
        files.insert(to.to_owned(), inode);
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.files.lock().remove(path).map(drop).ok_or(ErrorKind::NotFound.into())
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{dir}/");
        let files = self.files.lock();
        Ok(files.keys().filter_map(|name| name.strip_prefix(&prefix)).map(str::to_owned).collect())
    }

    fn sync_dir(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _: &str, _: &str) -> io::Result<Box<dyn Lock>> {
        Err(ErrorKind::Unsupported.into())
    }

    fn lock_holder(&self, _: &str) -> io::Result<String> {
        Err(ErrorKind::Unsupported.into())
    }
}

impl File for Inode {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = self.content.lock();
        let bytes = content.live.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let read = bytes.len().min(buf.len());
        buf[..read].copy_from_slice(&bytes[..read]);
        Ok(read)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let offset = usize::try_from(offset).unwrap();
        let mut content = self.content.lock();
        let mut faults = self.faults.lock();
        if faults.full && offset + buf.len() > content.live.len() {
            return Err(ErrorKind::StorageFull.into());
        }
        let failed = std::mem::take(&mut faults.next_write);
        let buf = if failed { &buf[..buf.len() / 2] } else { buf };
        content.write(buf, offset);
        if failed { Err(io::Error::other("a bad sector")) } else { Ok(buf.len()) }
    }

    fn sync(&self) -> io::Result<()> {
        let delay = Duration::from_millis(self.faults.lock().sync_ms);
        std::thread::sleep(delay);
        let mut content = self.content.lock();
        let pending = std::mem::take(&mut content.pending);
        if std::mem::take(&mut self.faults.lock().next_sync) {
            return Err(io::Error::other("a lost page"));
        }
        for (offset, bytes) in pending {
            place(&mut content.durable, &bytes, offset);
        }
        Ok(())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().live.len() as u64)
    }
}

impl Content {
    fn write(&mut self, bytes: &[u8], offset: usize) {
        place(&mut self.live, bytes, offset);
        self.pending.push((offset, bytes.to_vec()));
    }
}

fn place(content: &mut Vec<u8>, bytes: &[u8], offset: usize) {
    content.resize(content.len().max(offset + bytes.len()), 0);
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}
