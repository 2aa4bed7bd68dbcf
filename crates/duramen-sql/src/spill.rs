//! Files that queries put on disk what takes too much memory in.
//!
//! They are open while they are written and read only: a query may leave thousands of them. So they
//! have names, in a folder of their session, which goes with it, and with the next session that
//! needs one if its process was killed.
//!
//! Invariant: who has a folder holds the lock of a file in it, for as long as the folder is needed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SpillFile, SpillWriter, TempFileFactory};
use duramen::{Error, ErrorKind};
use futures::{Stream, stream};
use tempfile::{Builder, TempDir, TempPath};
use tokio::io::AsyncReadExt;

use crate::failure::external;

/// Bytes that are read at once.
const READ_BYTES: usize = 128 << 10;

/// What the names of the folders of sessions begin with.
const FOLDER_PREFIX: &str = "duramen-queries-";

/// The file in a folder whose lock its session holds.
const LOCK: &str = "lock";

/// The folder with the files of all queries of a session, made when the first of them needs it.
#[derive(Debug)]
pub(crate) struct SessionFiles {
    parent: PathBuf,
    own: Mutex<Own>,
}

/// What a session has of a folder.
#[derive(Debug, Default)]
enum Own {
    /// No query has needed one yet.
    #[default]
    Nothing,
    Folder(LockedFolder),
    /// The session is over: a thread of a query that was given up gets no other one.
    Over,
}

/// A folder that nobody else removes.
#[derive(Debug)]
struct LockedFolder {
    /// First, so that it is closed when the folder is removed: not every system removes it else.
    _lock: File,
    folder: TempDir,
}

/// Where the files of a query go, and how much they may take.
#[derive(Debug)]
pub(crate) struct SpillFolder {
    session: Arc<SessionFiles>,
    quota: Arc<Quota>,
}

/// The bytes that the files of a query take.
#[derive(Debug)]
struct Quota {
    used: AtomicU64,
    bytes_max: u64,
}

/// A file that goes when nobody has it any more, and gives back what it took.
struct Spilled(Arc<Spill>);

#[derive(Debug)]
struct Spill {
    path: TempPath,
    bytes: AtomicU64,
    quota: Arc<Quota>,
}

struct Writer {
    file: File,
    spill: Arc<Spill>,
}

impl SessionFiles {
    /// Those of a session whose folder is to be in another one.
    pub(crate) fn new(parent: PathBuf) -> Self {
        Self { parent, own: Mutex::default() }
    }

    /// Removes the files of queries that nobody waits for any more, at the end of the session.
    pub(crate) fn remove(&self) {
        *self.own() = Own::Over;
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a file of a query goes.
    fn folder(&self) -> io::Result<PathBuf> {
        let mut own = self.own();
        if let Own::Nothing = *own {
            remove_left(&self.parent);
            *own = Own::Folder(LockedFolder::new_in(&self.parent)?);
        }
        match &*own {
            Own::Folder(locked) => Ok(locked.folder.path().to_owned()),
            Own::Nothing | Own::Over => Err(io::Error::other("the session of the query is over")),
        }
    }
}

impl LockedFolder {
    fn new_in(parent: &Path) -> io::Result<Self> {
        loop {
            let folder = Builder::new().prefix(FOLDER_PREFIX).tempdir_in(parent)?;
            let lock = match File::create_new(folder.path().join(LOCK)) {
                // Another session took it for one that was left.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                made => made?,
            };
            // Where there are no locks, what a killed process leaves stays.
            while lock.lock().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {}
            // Whoever found it before it was locked removed it.
            if folder.path().join(LOCK).exists() {
                return Ok(Self { _lock: lock, folder });
            }
        }
    }
}

/// Removes the folders of sessions that ended without doing so. What cannot be removed stays.
#[expect(clippy::disallowed_methods, reason = "files of queries are none of the engine's")]
fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(FOLDER_PREFIX);
        let lock = entry.path().join(LOCK);
        if !is_ours {
            continue;
        }
        match lock.symlink_metadata() {
            Ok(metadata) if metadata.is_file() => {}
            // Its process was killed before it had made the file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let _ = fs::remove_dir(entry.path());
                continue;
            }
            _ => continue,
        }
        if let Ok(lock) = File::open(lock)
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl SpillFolder {
    /// Of a query that begins.
    pub(crate) fn new(session: Arc<SessionFiles>, bytes_max: u64) -> Self {
        Self { session, quota: Arc::new(Quota { used: AtomicU64::new(0), bytes_max }) }
    }
}

impl Spill {
    /// Takes bytes for what is to be written; `Full` if there are no more.
    fn take(&self, bytes: usize) -> duramen::Result<()> {
        let (bytes, max) = (bytes as u64, self.quota.bytes_max);
        let used = self.quota.used.fetch_add(bytes, Ordering::Relaxed);
        if used.saturating_add(bytes) <= max {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            return Ok(());
        }
        self.quota.used.fetch_sub(bytes, Ordering::Relaxed);
        let folder = self.path.ancestors().nth(2).unwrap_or(&self.path);
        let message = format!(
            "the query takes more than {max} bytes of files in {}: give it more (--spill, \
             spill_bytes), more memory (--memory, memory_bytes), or select less",
            folder.display()
        );
        Err(Error::new(ErrorKind::Full, message))
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        self.quota.used.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

impl TempFileFactory for SpillFolder {
    fn create_temp_file(&self, _: &str) -> Result<Arc<dyn SpillFile>> {
        let made = self.session.folder().and_then(tempfile::NamedTempFile::new_in);
        let made = made.map_err(|error| {
            let parent = self.session.parent.display();
            external(Error::io(format!("cannot make a file of a query in {parent}"), error))
        })?;
        let (path, quota) = (made.into_temp_path(), Arc::clone(&self.quota));
        Ok(Arc::new(Spilled(Arc::new(Spill { path, bytes: AtomicU64::new(0), quota }))))
    }
}

impl SpillFile for Spilled {
    fn path(&self) -> Option<&Path> {
        Some(&self.0.path)
    }

    fn size(&self) -> Option<u64> {
        self.0.path.metadata().ok().map(|metadata| metadata.len())
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        // Whoever reads it has it.
        let begin = (Arc::clone(&self.0), None);
        Ok(Box::pin(stream::try_unfold(begin, |(spill, file)| async move {
            let mut file = match file {
                Some(file) => file,
                None => {
                    tokio::fs::File::open(&spill.path).await.map_err(DataFusionError::IoError)?
                }
            };
            let mut bytes = Vec::with_capacity(READ_BYTES);
            let read = file.read_buf(&mut bytes).await.map_err(DataFusionError::IoError)?;
            Ok((read > 0).then(|| (Bytes::from(bytes), (spill, Some(file)))))
        })))
    }

    #[expect(clippy::disallowed_methods, reason = "a file of queries is none of the engine's")]
    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        let file = File::options().append(true).open(&self.0.path);
        let file = file.map_err(DataFusionError::IoError)?;
        Ok(Box::new(Writer { file, spill: Arc::clone(&self.0) }))
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.spill.take(bytes.len()).map_err(io::Error::other)?;
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;

    /// Each file once was open from when it was made, however long nobody read it.
    #[test]
    #[cfg(target_os = "linux")]
    fn files_that_nobody_reads_are_not_open() {
        let folder = tempfile::tempdir().unwrap();
        let session = Arc::new(SessionFiles::new(folder.path().to_owned()));
        let files = SpillFolder::new(Arc::clone(&session), u64::MAX);
        let mut spilled = Vec::new();
        for n in 0..9_u8 {
            let file = files.create_temp_file("as tests want it").unwrap();
            let mut writer = file.open_writer().unwrap();
            writer.write_all(&vec![n; 300_000]).unwrap();
            writer.finish().unwrap();
            spilled.push(file);
        }
        let open = std::fs::read_dir("/proc/self/fd").unwrap();
        let open = open.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
        let is_file = |path: &PathBuf| path.starts_with(folder.path()) && !path.ends_with(LOCK);
        assert_eq!(open.filter(is_file).count(), 0);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = spilled[7].read_stream().unwrap();
        let read: Vec<Bytes> = runtime.block_on(read.try_collect()).unwrap();
        assert_eq!(read.concat(), vec![7; 300_000]);
        assert_eq!(spilled[7].size(), Some(300_000));
        drop(spilled);
        let own = session.folder().unwrap();
        assert_eq!(own.read_dir().unwrap().count(), 1);
        session.remove();
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    /// Once the files of a query that was given up, or killed, stayed for ever.
    #[test]
    fn files_go_with_their_session_and_those_of_a_killed_one_with_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let session = || Arc::new(SessionFiles::new(folder.path().to_owned()));
        let spill = |session: &Arc<SessionFiles>| {
            let files = SpillFolder::new(Arc::clone(session), u64::MAX);
            files.create_temp_file("as tests want it").unwrap()
        };
        let folders = || folder.path().read_dir().unwrap().count();

        let given_up = session();
        let kept = spill(&given_up);
        given_up.remove();
        assert_eq!(folders(), 0);
        // A thread that goes on makes no other one.
        let files = SpillFolder::new(Arc::clone(&given_up), u64::MAX);
        assert!(files.create_temp_file("as tests want it").is_err());
        assert_eq!(folders(), 0);
        drop(kept);

        let killed = folder.path().join(format!("{FOLDER_PREFIX}killed"));
        fs::create_dir(&killed).unwrap();
        for left in [LOCK, "left"] {
            File::create_new(killed.join(left)).unwrap();
        }
        let begun = folder.path().join(format!("{FOLDER_PREFIX}begun"));
        fs::create_dir(&begun).unwrap();
        let other = folder.path().join("duramen-other");
        fs::create_dir(&other).unwrap();
        let (one, two) = (session(), session());
        let (first, second) = (spill(&one), spill(&two));
        assert!(!killed.exists() && !begun.exists() && other.exists());
        assert!(first.path().unwrap().exists() && second.path().unwrap().exists());
        assert_eq!(folders(), 3);
    }

    /// Files once had no bound.
    #[test]
    fn files_take_no_more_than_they_may_and_give_it_back() {
        let folder = tempfile::tempdir().unwrap();
        let session = Arc::new(SessionFiles::new(folder.path().to_owned()));
        let files = SpillFolder::new(session, 10_000);
        let full = files.create_temp_file("as tests want it").unwrap();
        full.open_writer().unwrap().write_all(&[7; 9_000]).unwrap();
        let other = files.create_temp_file("as tests want it").unwrap();
        let error = other.open_writer().unwrap().write_all(&[7; 2_000]).unwrap_err();
        let error = crate::failure::file("as tests want it", error);
        assert_eq!(error.kind(), ErrorKind::Full);
        let message = error.to_string();
        assert!(message.contains(&folder.path().display().to_string()), "{message}");
        assert!(message.contains("more than 10000 bytes"), "{message}");
        drop(full);
        other.open_writer().unwrap().write_all(&[7; 2_000]).unwrap();
        assert_eq!(other.size(), Some(2_000));
    }
}
