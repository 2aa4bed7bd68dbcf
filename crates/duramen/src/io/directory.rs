//! The device of production: real files in a directory of the operating system.
//!
//! Invariants:
//! - nothing outside the root directory is read or written;
//! - a lock is the operating system's, so it dies with the process that holds it.
#![expect(clippy::disallowed_methods, reason = "this module is the door to real files")]

use std::fs::{self, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::buffer::spare_capacity;

use super::{
    Access, Device, File, Lock, Mapped, Mapping, check_path, mapped_bytes, split_path, write_all_at,
};

/// How often the file of a lock is read until the holder in it is whole. Who writes it may be
/// stopped in the middle for as long as the scheduler likes, so that this is bounded.
const HOLDER_READS: usize = 1_000;

/// A path as far as it is there, by no links, and all directories that it is in.
pub(crate) fn directories_around(path: &Path) -> Vec<PathBuf> {
    let absolute = std::path::absolute(path).unwrap_or_default();
    let real = absolute.ancestors().find_map(|path| fs::canonicalize(path).ok());
    real.map_or_else(Vec::new, |real| real.ancestors().map(Path::to_owned).collect())
}

/// Files in a directory of the operating system.
///
/// ```
/// use duramen::io::{Access, Device, DirectoryDevice};
/// # let home = std::env::temp_dir().join(format!("duramen-doc-{}", std::process::id()));
/// let device = DirectoryDevice::new(&home);
/// device.create_dir("")?;
/// let file = device.open("notes", Access::Create)?;
/// file.write_at(b"oak", 0)?;
/// file.sync()?;
/// device.sync_dir("")?;
/// assert_eq!(device.list("")?, ["notes"]);
/// # std::fs::remove_dir_all(&home)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DirectoryDevice {
    root: PathBuf,
}

impl DirectoryDevice {
    /// A device rooted at `root`, which is made by the first create and not before.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory this device is rooted at.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn dir_path(&self, path: &str) -> io::Result<PathBuf> {
        check_path(path)?;
        // Joining the empty path would append a separator, and messages show the path.
        Ok(if path.is_empty() { self.root.clone() } else { self.root.join(path) })
    }

    fn file_path(&self, path: &str) -> io::Result<PathBuf> {
        split_path(path)?;
        Ok(self.root.join(path))
    }

    /// Makes the root with its parents, durably: their entries lie outside the device, so that
    /// nobody could sync them through it.
    fn create_root(&self) -> io::Result<()> {
        let root = std::path::absolute(&self.root)?;
        let missing = root.ancestors().take_while(|ancestor| !ancestor.exists());
        let parents: Vec<_> = missing.filter_map(Path::parent).collect();
        create_dir_all(&root)?;
        parents.into_iter().try_for_each(sync_directory)
    }

    fn create_parent(&self, path: &str) -> io::Result<()> {
        self.create_dir(split_path(path)?.0)
    }
}

/// Makes a directory and those around it; the system says of a file there that it exists.
fn create_dir_all(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => io::ErrorKind::NotADirectory.into(),
        _ => error,
    })
}

impl Device for DirectoryDevice {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        let full = self.dir_path(path)?;
        if full.is_dir() {
            return Ok(());
        }
        self.create_root()?;
        create_dir_all(&full)
    }

    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        let full = self.file_path(path)?;
        let mut options = OpenOptions::new();
        options.read(true);
        match access {
            Access::Read => {}
            Access::Write => {
                options.write(true);
            }
            Access::Create => {
                self.create_parent(path)?;
                options.write(true).create_new(true);
            }
        }
        Ok(Arc::new(DirectoryFile(options.open(full)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.file_path(from)?, self.file_path(to)?)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.file_path(path)?)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.dir_path(dir)?)? {
            // A name that is not UTF-8 is not one of ours; shown lossily it names no file.
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        sync_directory(&self.dir_path(dir)?)
    }

    fn map(&self, path: &str, len: u64) -> io::Result<Box<dyn Mapping>> {
        let file = OpenOptions::new().read(true).write(true).open(self.file_path(path)?)?;
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        Ok(Box::new(DirectoryMapping(duramen_mapping::Mapping::new(&file, len)?)))
    }

    fn free_bytes(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.root).ok()?;
        // A file system that does not count says that it has none at all.
        (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn lock(&self, path: &str, holder: &str) -> io::Result<Box<dyn Lock>> {
        let full = self.file_path(path)?;
        self.create_parent(path)?;
        // Not cut when opened: until the lock is ours the text in it is the other holder's.
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(full)?;
        try_lock(&file)?;
        let mut old = Vec::new();
        (&file).read_to_end(&mut old)?;
        let file = DirectoryFile(file);
        // One write over the last holder, with spaces for the rest of it: a file that is cut first
        // is empty for whoever asks in between. Twice, as reads may see a part of a write.
        let text = format!("{:<width$}", format!("{holder}\n{holder}\n"), width = old.len());
        if text.as_bytes() != old {
            write_all_at(&file, text.as_bytes(), 0)?;
        }
        Ok(Box::new(DirectoryLock(file)))
    }

    fn lock_holder(&self, path: &str) -> io::Result<String> {
        let path = self.file_path(path)?;
        let mut text = String::new();
        for _ in 0..HOLDER_READS {
            text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
            if let Some(holder) = whole_holder(&text) {
                return Ok(holder.to_owned());
            }
            std::thread::yield_now();
        }
        Ok(text.trim_end().to_owned())
    }

    fn hold(&self, path: &str) -> io::Result<Option<Box<dyn Lock>>> {
        // For reading alone, so that it can be held where nothing can be written.
        let file = match fs::File::open(self.file_path(path)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        try_lock(&file)?;
        Ok(Some(Box::new(DirectoryLock(DirectoryFile(file)))))
    }
}

fn try_lock(file: &fs::File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        TryLockError::Error(error) => error,
    })
}

/// The holder that stands in the file of a lock, unless it is just being written.
fn whole_holder(text: &str) -> Option<&str> {
    let (holder, rest) = text.split_once('\n')?;
    rest.split_once('\n').is_some_and(|(again, _)| again == holder).then_some(holder)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

#[derive(Debug)]
struct DirectoryFile(fs::File);

impl File for DirectoryFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn append_at(&self, bytes: &mut Vec<u8>, len: usize, offset: u64) -> io::Result<usize> {
        if len == 0 {
            return Ok(0);
        }
        let end = bytes.len() + len;
        bytes.reserve_exact(len);
        let read = rustix::io::pread(&self.0, spare_capacity(bytes), offset)?;
        // There may be more room than was asked for.
        bytes.truncate(end);
        Ok(read.min(len))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(buf, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

#[derive(Debug)]
struct DirectoryMapping(duramen_mapping::Mapping);

impl Mapping for DirectoryMapping {
    #[inline]
    fn write(&mut self, record: Mapped, offset: u64) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.0.write(&mapped_bytes(record), offset);
        Ok(())
    }
}

/// Holds the locked file open.
#[derive(Debug)]
struct DirectoryLock(DirectoryFile);

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // A process that was just forked off has the file too, until it runs its program: closing
        // it here alone would leave the lock there for that while.
        let _ = self.0.0.unlock();
    }
}

impl Lock for DirectoryLock {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lock that cut its file before it wrote to it once named no holder in between.
    #[test]
    fn whoever_asks_while_the_lock_changes_hands_reads_one_holder_or_the_other() {
        const HOLDERS: [&str; 2] = ["4194303", "12"];
        let folder = tempfile::tempdir().unwrap();
        let device = DirectoryDevice::new(folder.path());
        drop(device.lock("LOCK", HOLDERS[0]).unwrap());
        std::thread::scope(|scope| {
            let takes = scope.spawn(|| {
                for turn in 0..2_000 {
                    drop(device.lock("LOCK", HOLDERS[turn % 2]).unwrap());
                }
            });
            while !takes.is_finished() {
                let holder = device.lock_holder("LOCK").unwrap();
                assert!(HOLDERS.contains(&holder.as_str()), "{holder:?}");
            }
        });
    }

    /// A read once saw the first half of a write and the rest of the holder before.
    #[test]
    fn a_holder_that_is_half_written_is_none() {
        let [old, new] = ["4194303\n4194303\n", "12\n12\n          "];
        assert_eq!(whole_holder(old), Some("4194303"));
        assert_eq!(whole_holder(new), Some("12"));
        for written in 1..6 {
            let text = format!("{}{}", &new[..written], &old[written..]);
            assert_eq!(whole_holder(&text), None, "{text:?}");
            assert_eq!(whole_holder(&old[..written + 9]), None);
        }
    }

    /// Closing the file alone once left the lock with a process that was just forked off.
    #[test]
    fn a_lock_that_is_dropped_is_free_though_the_file_is_open_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let device = DirectoryDevice::new(folder.path());
        let file = fs::File::create(folder.path().join("LOCK")).unwrap();
        file.try_lock().unwrap();
        // A copy of the descriptor is of the same open file, as that of a forked process is.
        let copy = file.try_clone().unwrap();
        let refused = device.lock("LOCK", "7").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(DirectoryLock(DirectoryFile(file)));
        drop(device.lock("LOCK", "7").unwrap());
        drop(copy);
    }

    #[test]
    fn a_lock_is_held_without_writing_and_keeps_others_out() {
        let folder = tempfile::tempdir().unwrap();
        let device = DirectoryDevice::new(folder.path());
        assert!(device.hold("LOCK").unwrap().is_none());
        assert!(device.list("").unwrap().is_empty());
        let locked = device.lock("LOCK", "7").unwrap();
        let refused = device.hold("LOCK").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(locked);
        let mut permissions = fs::metadata(folder.path().join("LOCK")).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(folder.path().join("LOCK"), permissions).unwrap();
        let held = device.hold("LOCK").unwrap();
        assert!(held.is_some());
        let refused = device.hold("LOCK").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(held);
        assert_eq!(device.lock_holder("LOCK").unwrap(), "7");
        drop(device.hold("LOCK").unwrap());
    }

    #[test]
    fn a_holder_that_comes_again_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let device = DirectoryDevice::new(folder.path());
        let written = || fs::metadata(folder.path().join("LOCK")).unwrap().modified().unwrap();
        drop(device.lock("LOCK", "7").unwrap());
        let first = written();
        drop(device.lock("LOCK", "7").unwrap());
        assert_eq!(written(), first);
    }
}
