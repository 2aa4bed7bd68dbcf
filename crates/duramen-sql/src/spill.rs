//! Files that queries put on disk what takes too much memory in.
//!
//! They are open while they are written and read only: a query may leave thousands of them.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SpillFile, SpillWriter, TempFileFactory};
use duramen::{Error, ErrorKind};
use futures::{Stream, stream};
use tempfile::{Builder, TempPath};
use tokio::io::AsyncReadExt;

use crate::failure::external;

/// Bytes that are read at once.
const READ_BYTES: usize = 128 << 10;

/// Where the files of a query go, and how much they may take.
#[derive(Debug)]
pub(crate) struct SpillFolder {
    folder: PathBuf,
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

impl SpillFolder {
    /// Of a query that begins.
    pub(crate) fn new(folder: PathBuf, bytes_max: u64) -> Self {
        Self { folder, quota: Arc::new(Quota { used: AtomicU64::new(0), bytes_max }) }
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
        let folder = self.path.parent().unwrap_or(&self.path);
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
        let made = Builder::new().prefix("duramen-query-").tempfile_in(&self.folder);
        let made = made.map_err(|error| {
            let what = format!("cannot make a file of a query in {}", self.folder.display());
            external(Error::io(what, error))
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
        let files = SpillFolder::new(folder.path().to_owned(), u64::MAX);
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
        assert_eq!(open.filter(|path| path.starts_with(folder.path())).count(), 0);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = spilled[7].read_stream().unwrap();
        let read: Vec<Bytes> = runtime.block_on(read.try_collect()).unwrap();
        assert_eq!(read.concat(), vec![7; 300_000]);
        assert_eq!(spilled[7].size(), Some(300_000));
        drop(spilled);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    /// Files once had no bound.
    #[test]
    fn files_take_no_more_than_they_may_and_give_it_back() {
        let folder = tempfile::tempdir().unwrap();
        let files = SpillFolder::new(folder.path().to_owned(), 10_000);
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
