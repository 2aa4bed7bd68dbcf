//! A device on which a database is being made that is none until it is finished: its manifest
//! stands under another name.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::recovery::{LOCK, take_lock};
use crate::engine::unused::remove_files;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Access, Device, File, FileId, Lock};
use crate::{journal, manifest, segment};

/// Where the manifest stands until the database is finished.
pub(crate) const MANIFEST: &str = "MANIFEST.unfinished";

/// The device of a database in the making.
#[derive(Debug)]
pub(crate) struct Unfinished {
    device: Arc<dyn Device>,
    is_finished: AtomicBool,
    /// Held until it is finished, or until nothing is left of it.
    lock: Box<dyn Lock>,
}

/// What the engine has of a lock that is held for it.
#[derive(Debug)]
struct HeldLock;

impl Lock for HeldLock {}

impl Unfinished {
    /// A database in the making on a device without files.
    pub(crate) fn begin(device: Arc<dyn Device>) -> Result<Arc<Self>> {
        check_empty(device.as_ref())?;
        let made = device.create_dir("");
        let made = made.map_err(|error| Error::io("cannot make the database folder", error));
        let lock = made.and_then(|()| take_lock(device.as_ref(), 0));
        let lock = lock.inspect_err(|_| device.remove_made())?;
        // Once more: another process may have made something before the lock was ours.
        check_empty(device.as_ref()).inspect_err(|_| device.remove_made())?;
        Ok(Arc::new(Self { device, is_finished: AtomicBool::new(false), lock }))
    }

    /// Makes a manifest that has nothing in it yet, so that what is written from now on is seen to
    /// be in the making.
    pub(crate) fn announce(&self) -> Result<()> {
        let failed = |error| Error::io(format_args!("cannot make {MANIFEST}"), error);
        self.device.open(MANIFEST, Access::Create).and_then(|file| file.sync()).map_err(failed)?;
        self.device.sync_dir("").map_err(failed)
    }

    /// Makes it a database, durably. It was closed before.
    pub(crate) fn finish(&self) -> Result<()> {
        let failed = |error| Error::io("cannot name the new MANIFEST", error);
        if !self.lock.is_in_place() {
            let message = "the folder was removed or replaced while a database was made in it: run \
                           this again";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        self.device.rename(MANIFEST, manifest::PATH).map_err(failed)?;
        self.is_finished.store(true, Ordering::Relaxed);
        self.device.sync_dir("").map_err(failed)
    }

    fn name<'p>(&self, path: &'p str) -> &'p str {
        let is_manifest = path == manifest::PATH && !self.is_finished.load(Ordering::Relaxed);
        if is_manifest { MANIFEST } else { path }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Whoever has the database open holds the device, so by now nobody writes. Where the lock
        // is another one, somebody has taken the place for something else.
        if !self.is_finished.load(Ordering::Relaxed) && self.lock.is_in_place() {
            // As long as something is left it is seen to be in the making.
            if remove_files(self.device.as_ref()).is_ok() {
                self.device.remove_made();
            }
        }
    }
}

/// Refuses to make a database where anything is, but for the folders that an unfinished one leaves.
pub(crate) fn check_empty(device: &dyn Device) -> Result<()> {
    let list = |folder: &str| match device.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(|error| Error::io("cannot look into the database folder", error)),
    };
    let folders = [segment::DIRECTORY, journal::DIRECTORY];
    let mut names = list("")?;
    names.sort_unstable();
    for name in names {
        let is_left = name == LOCK || (folders.contains(&name.as_str()) && list(&name)?.is_empty());
        if !is_left {
            let what = match name.as_str() {
                MANIFEST => " of a load, restore or repair that has not ended or was interrupted",
                _ => "",
            };
            let message = format!(
                "the folder is not empty: it has \"{name}\"{what}; name an empty or a new one"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
    }
    Ok(())
}

impl Device for Unfinished {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.device.create_dir(path)
    }

    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        self.device.open(self.name(path), access)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.device.rename(self.name(from), self.name(to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.device.remove(self.name(path))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.device.list(dir)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.device.sync_dir(dir)
    }

    fn lock(&self, _path: &str, _holder: &str) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(HeldLock))
    }

    fn lock_holder(&self, path: &str) -> io::Result<String> {
        self.device.lock_holder(path)
    }

    fn remove_made(&self) {
        self.device.remove_made();
    }

    fn is_in_place(&self) -> bool {
        self.device.is_in_place()
    }

    fn watch(&self, path: &str) {
        self.device.watch(self.name(path));
    }

    fn file_id(&self, path: &str) -> io::Result<Option<FileId>> {
        self.device.file_id(self.name(path))
    }

    fn free_bytes(&self) -> Option<u64> {
        self.device.free_bytes()
    }

    fn entropy(&self) -> u128 {
        self.device.entropy()
    }
}
