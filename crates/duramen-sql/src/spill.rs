//! Files that queries put on disk what takes too much memory in.
//!
//! They are open while they are written and read only: a query may leave thousands of them.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SpillFile, SpillWriter, TempFileFactory};
use duramen::Error;
use futures::{Stream, stream};
use tempfile::{Builder, TempPath};
use tokio::io::AsyncReadExt;

use crate::failure::external;

/// Bytes that are read at once.
const READ_BYTES: usize = 128 << 10;

/// Where the files of queries go.
#[derive(Debug)]
pub(crate) struct SpillFolder(pub(crate) PathBuf);

/// A file that goes when nobody has it any more.
struct Spilled(Arc<TempPath>);

struct Writer(File);

impl TempFileFactory for SpillFolder {
    fn create_temp_file(&self, _: &str) -> Result<Arc<dyn SpillFile>> {
        let made = Builder::new().prefix("duramen-query-").tempfile_in(&self.0);
        let made = made.map_err(|error| {
            let what = format!("cannot make a file of a query in {}", self.0.display());
            external(Error::io(what, error))
        })?;
        Ok(Arc::new(Spilled(Arc::new(made.into_temp_path()))))
    }
}

impl SpillFile for Spilled {
    fn path(&self) -> Option<&Path> {
        Some(&self.0)
    }

    fn size(&self) -> Option<u64> {
        self.0.metadata().ok().map(|metadata| metadata.len())
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        // Whoever reads it has it.
        let begin = (Arc::clone(&self.0), None);
        Ok(Box::pin(stream::try_unfold(begin, |(path, file)| async move {
            let mut file = match file {
                Some(file) => file,
                None => tokio::fs::File::open(&*path).await.map_err(DataFusionError::IoError)?,
            };
            let mut bytes = Vec::with_capacity(READ_BYTES);
            let read = file.read_buf(&mut bytes).await.map_err(DataFusionError::IoError)?;
            Ok((read > 0).then(|| (Bytes::from(bytes), (path, Some(file)))))
        })))
    }

    #[expect(clippy::disallowed_methods, reason = "a file of queries is none of the engine's")]
    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        let file = File::options().append(true).open(&*self.0);
        Ok(Box::new(Writer(file.map_err(DataFusionError::IoError)?)))
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
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
        let files = SpillFolder(folder.path().to_owned());
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
}
