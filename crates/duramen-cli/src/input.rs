//! Files that the user names: the command line's door to the file system.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use duramen::{Error, Micros, Result};

/// Whether `path` means standard input.
fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// What people call the file.
pub(crate) fn name(path: &Path) -> String {
    if is_standard_input(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// The whole file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if is_standard_input(path) {
        io::stdin().lock().read_to_end(&mut bytes)
    } else {
        open(path)?.read_to_end(&mut bytes)
    };
    read.map_err(|error| failure(path, error))?;
    Ok(bytes)
}

/// The file's lines, to be read one after the other.
pub(crate) fn lines(path: &Path) -> Result<Box<dyn BufRead>> {
    if is_standard_input(path) {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(BufReader::with_capacity(1 << 20, open(path)?)))
}

/// When the file was last changed.
pub(crate) fn modified(path: &Path) -> Result<Micros> {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    let time = modified.map_err(|error| failure(path, error))?;
    let time =
        jiff::Timestamp::try_from(time).map_err(|error| failure(path, io::Error::other(error)))?;
    Ok(Micros(time.as_microsecond()))
}

/// Bytes of all files in a folder, and in the folders in it.
pub(crate) fn folder_bytes(folder: &Path) -> Result<u64> {
    let sum = |folder: &Path| -> io::Result<u64> {
        let mut bytes = 0;
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)? {
                let entry = entry?;
                match entry.metadata()? {
                    metadata if metadata.is_dir() => folders.push(entry.path()),
                    metadata => bytes += metadata.len(),
                }
            }
        }
        Ok(bytes)
    };
    sum(folder).map_err(|error| failure(folder, error))
}

/// An error while reading `path`.
pub(crate) fn failure(path: &Path, error: io::Error) -> Error {
    Error::io(format_args!("cannot read {}", name(path)), error)
}

#[expect(clippy::disallowed_methods, reason = "these are the user's files, not the engine's")]
fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| failure(path, error))
}
