//! The device of production: real files in a directory of the operating system.
//!
//! Invariants:
//! - nothing outside the root directory is read or written;
//! - a lock is the operating system's, so it dies with the process that holds it;
//! - while a lock is held, nothing is made, renamed or removed in a folder that another process has
//!   put in the place of the one that was locked, or in which it has changed the file that is
//!   watched.
#![expect(clippy::disallowed_methods, reason = "this module is the door to real files")]

#[cfg(test)]
mod tests;

use std::fs::{self, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustix::buffer::spare_capacity;

use super::{
    Access, Device, File, FileId, Lock, Mapped, Mapping, check_path, displaced, mapped_bytes,
    split_path, write_all_at,
};

/// How often the file of a lock is read until the holder in it is whole. Who writes it may be
/// stopped in the middle for as long as the scheduler likes, so that this is bounded.
const HOLDER_READS: usize = 1_000;

/// How often a lock is taken anew whose file was removed meanwhile.
const LOCK_TRIES: usize = 100;

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
    /// What was made, directories before what is in them.
    made: Arc<Mutex<Vec<Made>>>,
    /// The place of the lock that is held.
    locked: Arc<Mutex<Weak<LockPlace>>>,
}

/// What is removed again if nobody needs it.
#[derive(Debug)]
enum Made {
    Directory(PathBuf),
    /// The file of a lock that was taken.
    Lock(PathBuf),
}

impl DirectoryDevice {
    /// A device rooted at `root`, which is made by the first create and not before.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), made: Arc::default(), locked: Arc::default() }
    }

    /// The directory this device is rooted at.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The place of the lock, if it is held.
    fn locked(&self) -> Option<Arc<LockPlace>> {
        self.locked.lock().upgrade()
    }

    /// Refuses to change what is another one by now than what was locked.
    fn check_place(&self) -> io::Result<()> {
        if self.is_in_place() { Ok(()) } else { Err(displaced()) }
    }

    /// Does what changes files of these names.
    fn change(&self, names: &[&str], change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self.locked() {
            Some(place) => place.change(names, change),
            None => change(),
        }
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
        self.create_missing(&root)?;
        parents.into_iter().try_for_each(sync_directory)
    }

    fn create_parent(&self, path: &str) -> io::Result<()> {
        self.create_dir(split_path(path)?.0)
    }

    /// Makes a directory and those around it, and notes which of them were missing: another process
    /// may make one at the same time.
    fn create_missing(&self, path: &Path) -> io::Result<()> {
        let path = std::path::absolute(path)?;
        let missing: Vec<_> = path.ancestors().take_while(|dir| !dir.exists()).collect();
        for dir in missing.into_iter().rev() {
            match fs::create_dir(dir) {
                Ok(()) => self.made.lock().push(Made::Directory(dir.to_path_buf())),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        // What exists may be a file.
        if path.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    /// Opens the file of a lock, made if missing, and takes the lock.
    fn lock_file(&self, path: &str) -> io::Result<fs::File> {
        let full = self.file_path(path)?;
        self.create_parent(path)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let (file, is_made) = match options.clone().create_new(true).open(&full) {
            // Not cut when opened: until the lock is ours the text in it is the other holder's.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (options.open(&full)?, false)
            }
            made => (made?, true),
        };
        try_lock(&file)?;
        if !LockPlace::of(&file, &full)?.is_there() {
            return Err(io::ErrorKind::NotFound.into());
        }
        if is_made {
            self.made.lock().push(Made::Lock(full));
        }
        Ok(file)
    }
}

impl Device for DirectoryDevice {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        let full = self.dir_path(path)?;
        if full.is_dir() {
            return Ok(());
        }
        self.check_place()?;
        self.create_root()?;
        self.create_missing(&full)
    }

    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        let full = self.file_path(path)?;
        if access != Access::Read {
            self.check_place()?;
        }
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
        let file = options.open(full)?;
        if access != Access::Read {
            leave_read_times(&file);
        }
        Ok(Arc::new(DirectoryFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.check_place()?;
        let (old, new) = (self.file_path(from)?, self.file_path(to)?);
        self.change(&[from, to], || fs::rename(old, new))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.check_place()?;
        let full = self.file_path(path)?;
        self.change(&[path], || fs::remove_file(full))
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
        self.check_place()?;
        let file = OpenOptions::new().read(true).write(true).open(self.file_path(path)?)?;
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        Ok(Box::new(DirectoryMapping(duramen_mapping::Mapping::new(&file, len)?)))
    }

    fn remove_made(&self) {
        for made in std::mem::take(&mut *self.made.lock()).iter().rev() {
            // The system removes an empty directory only.
            let _ = match made {
                Made::Directory(path) => fs::remove_dir(path),
                Made::Lock(path) => fs::remove_file(path),
            };
        }
    }

    fn is_in_place(&self) -> bool {
        self.locked().is_none_or(|place| place.is_there())
    }

    fn watch(&self, path: &str) {
        if let (Some(place), Ok(full)) = (self.locked(), self.file_path(path)) {
            place.watch(path, &full);
        }
    }

    fn file_id(&self, path: &str) -> io::Result<Option<FileId>> {
        id_at(&self.file_path(path)?).map(Some)
    }

    fn free_bytes(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.root).ok()?;
        // A file system that does not count says that it has none at all.
        (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn lock(&self, path: &str, holder: &str) -> io::Result<Box<dyn Lock>> {
        let mut tries = 1;
        let file = loop {
            match self.lock_file(path) {
                // Whoever had the lock removed its file, or its folder, before it was ours.
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < LOCK_TRIES => {
                    tries += 1;
                }
                locked => break locked?,
            }
        };
        let mut old = Vec::new();
        (&file).read_to_end(&mut old)?;
        let file = DirectoryFile(file);
        // One write over the last holder, with spaces for the rest of it: a file that is cut first
        // is empty for whoever asks in between. Twice, as reads may see a part of a write.
        let text = format!("{:<width$}", format!("{holder}\n{holder}\n"), width = old.len());
        if text.as_bytes() != old {
            write_all_at(&file, text.as_bytes(), 0)?;
        }
        let place = Arc::new(LockPlace::of(&file.0, &self.file_path(path)?)?);
        *self.locked.lock() = Arc::downgrade(&place);
        Ok(Box::new(DirectoryLock { file, place }))
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
        let path = self.file_path(path)?;
        let file = match fs::File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        try_lock(&file)?;
        let place = Arc::new(LockPlace::of(&file, &path)?);
        let lock = DirectoryLock { file: DirectoryFile(file), place };
        Ok(if lock.is_in_place() { Some(Box::new(lock)) } else { None })
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
struct DirectoryLock {
    file: DirectoryFile,
    place: Arc<LockPlace>,
}

/// Which file is locked, and where it is to be found.
#[derive(Debug)]
struct LockPlace {
    /// From the root on: the process may change its directory.
    path: PathBuf,
    file: FileId,
    watched: Mutex<Option<Arc<Watched>>>,
    /// Held by whoever changes what is watched.
    changing: Mutex<()>,
}

impl LockPlace {
    fn of(file: &fs::File, path: &Path) -> io::Result<Self> {
        let (path, file) = (std::path::absolute(path)?, file_id(&file.metadata()?));
        Ok(Self { path, file, watched: Mutex::default(), changing: Mutex::default() })
    }

    fn watch(&self, name: &str, path: &Path) {
        *self.watched.lock() = Watched::of(name, path).map(Arc::new);
    }

    /// Whether the file that is open is still the one at its path, and what is watched is as it
    /// was. Where that cannot be found out, it is taken to be.
    fn is_there(&self) -> bool {
        let is_locked = match fs::metadata(&self.path) {
            Ok(found) => file_id(&found) == self.file,
            Err(error) => !is_absence(&error),
        };
        is_locked && self.is_watched_there()
    }

    fn is_watched_there(&self) -> bool {
        let watched = || self.watched.lock().clone();
        if watched().is_none_or(|watched| watched.is_as_seen()) {
            return true;
        }
        // This process may be putting another one there just now.
        let _one = self.changing.lock();
        let Some(before) = watched() else { return true };
        if before.is_as_seen() {
            return true;
        }
        // A copy of it is as good as itself.
        let now = Watched::of(&before.name, &before.path);
        let is_same = now.as_ref().is_some_and(|now| now.content == before.content);
        if is_same {
            *self.watched.lock() = now.map(Arc::new);
        }
        is_same
    }

    /// Does what changes files of these names; what becomes of the one that is watched counts.
    fn change(&self, names: &[&str], change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let watched = self.watched.lock().clone();
        let Some(watched) = watched.filter(|watched| names.contains(&watched.name.as_str())) else {
            return change();
        };
        let _one = self.changing.lock();
        let changed = change();
        self.watch(&watched.name, &watched.path);
        changed
    }
}

/// A file that nobody else is to change while the lock is held.
#[derive(Debug)]
struct Watched {
    name: String,
    /// From the root on.
    path: PathBuf,
    /// As it was looked at last; none if it was not there.
    seen: Option<Seen>,
    /// Its bytes and their checksum.
    content: Option<(usize, u32)>,
}

/// What is seen of a file that nobody opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    file: FileId,
    bytes: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
}

impl Watched {
    /// None if its place cannot be told.
    fn of(name: &str, path: &Path) -> Option<Self> {
        let path = std::path::absolute(path).ok()?;
        // Before it is read: what changes in between is told by the next look.
        let seen = Seen::at(&path).ok();
        let content = fs::read(&path).ok().map(|bytes| (bytes.len(), crc32c::crc32c(&bytes)));
        Some(Self { name: name.to_owned(), path, seen, content })
    }

    fn is_as_seen(&self) -> bool {
        match Seen::at(&self.path) {
            Ok(found) => self.seen == Some(found),
            Err(error) => self.seen.is_none() || !is_absence(&error),
        }
    }
}

impl Seen {
    fn at(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        let modified = (found.mtime(), found.mtime_nsec());
        Ok(Self { file: file_id(&found), bytes: found.len(), modified })
    }
}

/// Which file stands at a path. Its times are not asked for: each write to a file of which somebody
/// asked for them has a time of its own, which the file system notes.
#[cfg(target_os = "linux")]
fn id_at(path: &Path) -> io::Result<FileId> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::INO)?;
    let device = makedev(found.stx_dev_major, found.stx_dev_minor);
    Ok(FileId { device, inode: found.stx_ino })
}

#[cfg(not(target_os = "linux"))]
fn id_at(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|found| file_id(&found))
}

/// Has the file system not note when a file is read, where it lets us: it would after each write,
/// as the time of the last read is before that.
fn leave_read_times(file: &fs::File) {
    #[cfg(target_os = "linux")]
    let _ = rustix::fs::fcntl_setfl(file, rustix::fs::OFlags::NOATIME);
    #[cfg(not(target_os = "linux"))]
    let _ = file;
}

fn file_id(found: &fs::Metadata) -> FileId {
    FileId { device: found.dev(), inode: found.ino() }
}

/// Whether an error says that there is no such file.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // A process that was just forked off has the file too, until it runs its program: closing
        // it here alone would leave the lock there for that while.
        let _ = self.file.0.unlock();
    }
}

impl Lock for DirectoryLock {
    fn is_in_place(&self) -> bool {
        self.place.is_there()
    }
}
