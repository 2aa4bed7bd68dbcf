//! The files of the journal: numbered, zero-filled before use, recycled under a new number.
//!
//! Invariants:
//! - a file gets its number only when all of its bytes are allocated and synced, so that writing
//!   into it needs no metadata commit of the file system and every numbered file is whole;
//! - a directory entry that anything relies on is synced first;
//! - a number that held groups is used again only after the file was removed and that was synced.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::damage::corrupt;
use crate::io::{Access, Device, File, FileId, zeros};
use crate::{Error, ErrorKind, Result};

pub(crate) const DIRECTORY: &str = "journal";
const UNFINISHED: &str = "journal/unfinished";
const SUFFIX: &str = ".journal";
/// File lengths are multiples of this: one that is not has been cut.
pub(super) const LENGTH_UNIT: u64 = 64 << 10;
/// Lengths of the files as they grow; the last one stays.
const LENGTHS: [u64; 5] = [256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// Files of the longest kind that take a journal of the length at which a checkpoint is due.
const FILES_OF_JOURNAL: u64 = 4;

/// One journal file that is ready for groups or has some.
#[derive(Debug)]
pub(super) struct JournalFile {
    pub(super) number: u64,
    pub(super) length: u64,
    pub(super) file: Arc<dyn File>,
    /// Which file it is, where that can be told.
    pub(super) id: Option<FileId>,
}

/// Why a new file could not be made.
#[derive(Debug)]
pub(super) enum Failure {
    /// A write or a change of the directory: nothing relies on the file yet.
    Refused(Error),
    /// A sync: what the device says afterwards cannot be trusted.
    Sync(Error),
}

/// The directory of journal files.
#[derive(Debug, Clone)]
pub(super) struct Directory {
    device: Arc<dyn Device>,
    access: Access,
    /// Whether files are overwritten with zeros before they are removed or used again.
    erases: Arc<AtomicBool>,
}

fn file_name(number: u64) -> String {
    format!("{number:08}{SUFFIX}")
}

/// The path of file `number`, relative to the database.
pub(crate) fn path(number: u64) -> String {
    format!("{DIRECTORY}/{}", file_name(number))
}

/// The length of the file after one of `previous` bytes, if a journal seldom gets much longer than
/// `journal_bytes`: all of a file is filled before the first of it is used, so that in a file of
/// the journal's length as many bytes would be written for nothing as the journal has.
pub(super) fn next_length(previous: u64, journal_bytes: u64) -> u64 {
    let longest = LENGTHS[LENGTHS.len() - 1];
    let takes_share = |length: &u64| *length >= journal_bytes / FILES_OF_JOURNAL;
    let most = LENGTHS.into_iter().find(takes_share).unwrap_or(longest);
    LENGTHS.into_iter().find(|length| *length > previous).unwrap_or(longest).min(most)
}

impl JournalFile {
    /// Whether its length is one that a file is made with; any other was cut.
    pub(super) fn is_whole(&self) -> bool {
        let length = self.length;
        length > 0 && length.is_multiple_of(LENGTH_UNIT) && u32::try_from(length).is_ok()
    }

    /// Refuses a file that was cut.
    pub(super) fn check_whole(&self) -> Result<()> {
        if self.is_whole() {
            return Ok(());
        }
        let expected = format!("a multiple of {LENGTH_UNIT} bytes");
        let (path, length) = (path(self.number), self.length);
        Err(corrupt(&path, length, "length of the file", expected, length))
    }

    /// Overwrites all of the file with zeros, durably.
    pub(super) fn erase(&self) -> Result<(), Failure> {
        let path = path(self.number);
        let failed = |e| Failure::Refused(Error::io(format!("overwriting {path}"), e));
        zeros::write(&*self.file, 0, self.length).map_err(failed)?;
        self.file.sync().map_err(|e| failed_sync(&path, e))
    }
}

impl Directory {
    /// The journal directory of the database on `device`; its files are opened with `access`.
    pub(super) fn new(device: Arc<dyn Device>, access: Access) -> Self {
        Self { device, access, erases: Arc::default() }
    }

    /// From now on files are overwritten before they are removed or used again, or not any more.
    pub(super) fn set_erasing(&self, erases: bool) {
        self.erases.store(erases, Ordering::Relaxed);
    }

    fn is_erasing(&self) -> bool {
        self.erases.load(Ordering::Relaxed)
    }

    /// Makes the directory of a new database, or takes over what an unfinished creation left.
    pub(super) fn create(&self) -> Result<()> {
        self.device.create_dir(DIRECTORY).map_err(|e| Error::io(DIRECTORY, e))?;
        if let Some(path) = self.written()? {
            let message = format!(
                "{path} holds commits although the database is being created: the MANIFEST is \
                 missing; restore it from a backup, or remove the directory"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        for number in self.numbers()? {
            self.remove(number)?;
        }
        self.device.sync_dir("").map_err(|e| Error::io("sync of the database directory", e))
    }

    /// Whether the files are still those of this journal's database.
    pub(super) fn is_in_place(&self) -> bool {
        self.device.is_in_place()
    }

    /// Whether a file still stands at its path. Where that cannot be found out, it is taken to.
    pub(super) fn has(&self, file: &JournalFile) -> bool {
        if file.id.is_none() {
            return true;
        }
        match self.device.file_id(&path(file.number)) {
            Ok(found) => found == file.id,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    fn id_of(&self, path: &str) -> Option<FileId> {
        self.device.file_id(path).ok().flatten()
    }

    /// The path of a file that has been written to, if there is one.
    pub(super) fn written(&self) -> Result<Option<String>> {
        for number in self.numbers()? {
            if super::recovery::starts_with_data(&self.open_as_found(number)?)? {
                return Ok(Some(path(number)));
            }
        }
        Ok(None)
    }

    /// The numbers of the files, rising.
    pub(super) fn numbers(&self) -> Result<Vec<u64>> {
        let names = self.device.list(DIRECTORY).map_err(|e| Error::io(DIRECTORY, e))?;
        // Those that others have put there under such a name are none.
        let number = |name: &String| {
            let number = name.strip_suffix(SUFFIX)?.parse().ok()?;
            (file_name(number) == *name).then_some(number)
        };
        let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Opens file `number`, which has to be whole.
    pub(super) fn open(&self, number: u64) -> Result<JournalFile> {
        let file = self.open_as_found(number)?;
        file.check_whole()?;
        Ok(file)
    }

    /// Opens file `number`, whatever length it has: one that nothing was written to may be cut.
    pub(super) fn open_as_found(&self, number: u64) -> Result<JournalFile> {
        let path = path(number);
        let file = self.device.open(&path, self.access).map_err(|e| Error::io(&path, e))?;
        let length = file.len().map_err(|e| Error::io(&path, e))?;
        Ok(JournalFile { number, length, file, id: self.id_of(&path) })
    }

    /// Makes file `number` of `length` zeros, replacing one of that number.
    pub(super) fn make(&self, number: u64, length: u64) -> Result<JournalFile, Failure> {
        let made = self.fill_and_name(number, length);
        if made.is_err() {
            // What is left only takes up space: the next attempt removes it.
            let _ = self.remove_unfinished();
        }
        made
    }

    fn fill_and_name(&self, number: u64, length: u64) -> Result<JournalFile, Failure> {
        let path = path(number);
        let refused = |e| Failure::Refused(Error::io(format!("making {path}"), e));
        self.remove_unfinished().map_err(refused)?;
        let file = self.device.open(UNFINISHED, Access::Create).map_err(refused)?;
        zeros::write(&*file, 0, length).map_err(|error| {
            // Its room is needed for a shorter one, though somebody may have it open: a process
            // that is being started has all files until it runs its program.
            let _ = file.set_len(0);
            refused(error)
        })?;
        file.sync().map_err(|e| failed_sync(&path, e))?;
        self.device.rename(UNFINISHED, &path).map_err(refused)?;
        self.sync()?;
        Ok(JournalFile { number, length, file, id: self.id_of(&path) })
    }

    fn remove_unfinished(&self) -> io::Result<()> {
        match self.device.remove(UNFINISHED) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Renames a file that is no longer needed to a fresh number. Its old groups stay in it: their
    /// checksums are bound to the old number.
    pub(super) fn recycle(&self, old: &JournalFile, number: u64) -> Result<JournalFile, Failure> {
        let (from, to) = (path(old.number), path(number));
        let refused = |e| Failure::Refused(Error::io(format!("renaming {from} to {to}"), e));
        if self.is_erasing() {
            old.erase()?;
        }
        self.device.rename(&from, &to).map_err(refused)?;
        self.sync()?;
        Ok(JournalFile { number, length: old.length, file: Arc::clone(&old.file), id: old.id })
    }

    /// Removes file `number`.
    pub(super) fn remove(&self, number: u64) -> Result<()> {
        let path = path(number);
        if self.is_erasing() {
            let erased = zeros::overwrite(self.device.as_ref(), &path);
            erased.map_err(|e| Error::io(format!("overwriting {path}"), e))?;
        }
        self.device.remove(&path).map_err(|e| Error::io(format!("removing {path}"), e))
    }

    /// Makes creates, renames and removes durable.
    pub(super) fn sync(&self) -> Result<(), Failure> {
        #[cfg(duramen_teeth)]
        if crate::teeth::bites("skip_directory_sync") {
            return Ok(());
        }
        self.device.sync_dir(DIRECTORY).map_err(|e| failed_sync(DIRECTORY, e))
    }
}

/// A device that allocates late says at the sync that it is full: nothing relied on that file.
fn failed_sync(path: &str, error: io::Error) -> Failure {
    let error = Error::io(format!("sync of {path}"), error);
    if error.kind() == ErrorKind::Full { Failure::Refused(error) } else { Failure::Sync(error) }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) | Failure::Sync(error) => error,
        }
    }
}
