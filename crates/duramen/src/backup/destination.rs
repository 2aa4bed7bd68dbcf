//! Where backups are kept: named objects that are written whole and read from their beginning, as
//! object storage has them.

use std::fmt;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::record;
use crate::io::{
    Access, Device, DirectoryDevice, File, Lock, directories_around, split_path, write_all_at,
};
use crate::manifest::Manifest;

/// Bytes that are copied at once.
pub(super) const COPY_BYTES: usize = 1 << 20;
/// What the name of an object in the making ends with in a folder.
const PARTIAL: &str = ".partial";
const LOCK: &str = "LOCK";

/// Where backups are kept.
///
/// An object is named by `/`-separated words, the last of which tells it from the others of its
/// folder. Names are made of ASCII letters, digits, `-` and `.`.
pub trait Destination: Send + Sync + fmt::Debug {
    /// Stores the `length` bytes of `content` under a name, durably and all or nothing: until it
    /// is done, and if it fails, the object is what it was before.
    fn put(&self, name: &str, content: &mut dyn Read, length: u64) -> io::Result<()>;
    /// The content of an object; `NotFound` if there is none of that name.
    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>>;
    /// The last words of the names of the objects in a folder; none if there is no such folder.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// Removes an object, durably; nothing if there is none of that name.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Removes what was made for a first backup that failed, once its objects are removed and while
    /// other backups are kept away: folders that were not there before.
    fn leave(&self) {}
    /// Keeps other backups away until the answer is dropped; `WouldBlock` if one is being made,
    /// `InvalidInput` if no backups can be kept there.
    fn lock(&self) -> io::Result<Box<dyn Lock>>;
}

/// Backups in a folder.
///
/// ```
/// use duramen::{BackupFolder, BackupOptions, CommitOptions, Database, RestorePoint};
/// use std::ops::ControlFlow;
///
/// let db = Database::memory()?;
/// db.create_document("oak")?.put(r#"{"rings":1}"#, &CommitOptions::default())?;
/// # let home = std::env::temp_dir().join(format!("duramen-backup-{}", std::process::id()));
/// let folder = BackupFolder::new(home.join("backups"));
/// db.backup(&folder, BackupOptions::default(), &mut |_, _| ControlFlow::Continue(()))?;
///
/// let place = home.join("restored");
/// let point = RestorePoint::Newest;
/// Database::restore(&folder, &place, point, &mut |_, _| ControlFlow::Continue(()))?;
/// let restored = Database::open(&place, Default::default())?;
/// assert_eq!(restored.document("oak")?.head()?.to_json()?, r#"{"rings":1}"#);
/// # drop(restored);
/// # std::fs::remove_dir_all(&home).unwrap();
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BackupFolder {
    device: Arc<dyn Device>,
    /// The folders around it.
    around: Vec<Arc<dyn Device>>,
}

impl BackupFolder {
    /// Backups in a folder of the operating system, which the first one makes.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let device = |path: PathBuf| Arc::new(DirectoryDevice::new(path)) as Arc<dyn Device>;
        let around = directories_around(&path).into_iter().map(device).collect();
        Self { device: device(path), around }
    }

    /// Backups among the files of a device.
    pub fn on_device(device: Arc<dyn Device>) -> Self {
        Self { device, around: Vec::new() }
    }

    /// Refuses to mix what is kept here with the files of a database.
    fn check_place(&self) -> io::Result<()> {
        let mut devices = std::iter::once(&self.device).chain(&self.around);
        if devices.any(|device| matches!(Manifest::load(device.as_ref()), Ok(Some(_)))) {
            let message = "the folder of the backup is that of a database, or lies in it: give one \
                           of its own";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(())
    }

    fn remove_file(&self, path: &str) -> io::Result<()> {
        match self.device.remove(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Removes what a backup that was cut short had begun to write.
    fn remove_partial(&self) -> io::Result<()> {
        for folder in [record::FOLDER, record::SEGMENTS] {
            for name in none_if_missing(self.device.list(folder))? {
                let object = name.strip_suffix(PARTIAL).unwrap_or_default();
                if record::number(object).is_some() || record::is_segment(object) {
                    self.remove_file(&format!("{folder}/{name}"))?;
                }
            }
        }
        Ok(())
    }

    fn write(&self, path: &str, content: &mut dyn Read, length: u64) -> io::Result<()> {
        self.remove_file(path)?;
        let file = self.device.open(path, Access::Create)?;
        let written = copy(content, file.as_ref())?;
        if written != length {
            let message = format!("{written} bytes where {length} were announced");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        file.sync()
    }
}

impl Destination for BackupFolder {
    fn put(&self, name: &str, content: &mut dyn Read, length: u64) -> io::Result<()> {
        let (folder, _) = split_path(name)?;
        self.device.create_dir(folder)?;
        self.device.sync_dir("")?;
        let partial = format!("{name}{PARTIAL}");
        if let Err(error) = self.write(&partial, content, length) {
            // What stays is no object, and the next one of that name takes its place.
            let _ = self.device.remove(&partial);
            return Err(error);
        }
        self.device.rename(&partial, name)?;
        self.device.sync_dir(folder)
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let file = self.device.open(name, Access::Read)?;
        Ok(Box::new(FileContent { file, offset: 0 }))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let mut names = none_if_missing(self.device.list(folder))?;
        names.retain(|name| !name.ends_with(PARTIAL));
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.remove_file(name)?;
        let (folder, _) = split_path(name)?;
        self.device.sync_dir(folder)
    }

    fn lock(&self) -> io::Result<Box<dyn Lock>> {
        self.check_place()?;
        let made = self.device.create_dir("");
        let lock = made.and_then(|()| self.device.lock(LOCK, &std::process::id().to_string()));
        let lock = lock.inspect_err(|_| self.device.remove_made())?;
        // Once more: another process may have made a database before the lock was ours.
        let looked = self.check_place().and_then(|()| self.remove_partial());
        looked.inspect_err(|_| self.device.remove_made())?;
        Ok(lock)
    }

    fn leave(&self) {
        self.device.remove_made();
    }
}

fn none_if_missing(listed: io::Result<Vec<String>>) -> io::Result<Vec<String>> {
    match listed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}

/// The bytes of a file from some place on.
#[derive(Debug)]
pub(super) struct FileContent {
    pub(super) file: Arc<dyn File>,
    pub(super) offset: u64,
}

impl Read for FileContent {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buf, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// Copies all of `content` to the beginning of a file; how many bytes that were.
pub(super) fn copy(content: &mut dyn Read, file: &dyn File) -> io::Result<u64> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut copied = 0;
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(read) => {
                write_all_at(file, &buffer[..read], copied)?;
                copied += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
