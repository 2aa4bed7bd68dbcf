//! A device in memory at whose writes and syncs other threads may go on.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use parking_lot::Mutex;
use shuttle::thread::yield_now;

use crate::io::{Access, Device, File, Lock};

/// The device. What is durable is kept apart for files; names are durable at once.
#[derive(Debug, Default)]
pub(super) struct ScheduledDevice {
    files: Mutex<BTreeMap<String, Arc<Inode>>>,
    /// Syncs until one fails; none does if it is 0.
    syncs_left: Arc<Mutex<usize>>,
}

#[derive(Debug, Default)]
struct Inode {
    content: Mutex<Content>,
    syncs_left: Arc<Mutex<usize>>,
}

#[derive(Debug, Default, Clone)]
struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
}

#[derive(Debug)]
struct Locked;

impl Lock for Locked {}

impl ScheduledDevice {
    /// What is left when the power goes now.
    pub(super) fn without_power(&self) -> Arc<Self> {
        let left = |(name, inode): (&String, &Arc<Inode>)| {
            let durable = inode.content.lock().durable.clone();
            let content = Mutex::new(Content { live: durable.clone(), durable });
            (name.clone(), Arc::new(Inode { content, ..Inode::default() }))
        };
        let files = self.files.lock().iter().map(left).collect();
        Arc::new(Self { files: Mutex::new(files), ..Self::default() })
    }

    /// What is left when the process is killed now.
    pub(super) fn killed(&self) -> Arc<Self> {
        let left = |(name, inode): (&String, &Arc<Inode>)| {
            let content = Mutex::new(inode.content.lock().clone());
            (name.clone(), Arc::new(Inode { content, ..Inode::default() }))
        };
        let files = self.files.lock().iter().map(left).collect();
        Arc::new(Self { files: Mutex::new(files), ..Self::default() })
    }

    /// The sync after so many fails.
    pub(super) fn fail_sync_after(&self, syncs: usize) {
        *self.syncs_left.lock() = syncs + 1;
    }
}

impl Device for ScheduledDevice {
    fn create_dir(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        let mut files = self.files.lock();
        if access == Access::Create {
            if files.contains_key(path) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            let inode = Inode { syncs_left: Arc::clone(&self.syncs_left), ..Inode::default() };
            files.insert(path.to_owned(), Arc::new(inode));
        }
        let found = files.get(path).ok_or(ErrorKind::NotFound)?;
        Ok(Arc::<Inode>::clone(found))
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
        yield_now();
        Ok(())
    }

    fn lock(&self, _: &str, _: &str) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(Locked))
    }

    fn lock_holder(&self, _: &str) -> io::Result<String> {
        Err(ErrorKind::Unsupported.into())
    }

    fn entropy(&self) -> u128 {
        1
    }
}

impl File for Inode {
    // Others do not go on here: a cache that waits for a read does not say so to the scheduler.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = self.content.lock();
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let bytes = content.live.get(offset..).unwrap_or_default();
        let read = bytes.len().min(buf.len());
        buf[..read].copy_from_slice(&bytes[..read]);
        Ok(read)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        yield_now();
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let live = &mut self.content.lock().live;
        live.resize(live.len().max(offset + buf.len()), 0);
        live[offset..offset + buf.len()].copy_from_slice(buf);
        Ok(buf.len())
    }

    fn sync(&self) -> io::Result<()> {
        yield_now();
        let mut syncs_left = self.syncs_left.lock();
        if *syncs_left > 0 {
            *syncs_left -= 1;
            if *syncs_left == 0 {
                return Err(io::Error::other("a lost page"));
            }
        }
        let Content { live, durable } = &mut *self.content.lock();
        durable.clone_from(live);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        self.content.lock().live.resize(len, 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().live.len() as u64)
    }
}
