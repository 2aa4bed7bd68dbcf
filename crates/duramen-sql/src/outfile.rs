//! Files that are written as a whole.

use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use duramen::{Database, Error, ErrorKind};
use tempfile::Builder;

/// How far a file is that is written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStage<'p> {
    /// This file stands for it from now on.
    Begun(&'p Path),
    /// It is whole, and takes the place of what was there.
    Whole,
}

/// Writes a file anew: whoever reads it sees all of it or what was there before. A file that was
/// there keeps its permissions, and its owner as far as that is allowed; where a link leads to one
/// it is that file. What is no file, and what a process has open by a name of the system such as
/// `/dev/stdout`, is written to as it is.
///
/// # Errors
/// `Invalid` for a file of a database, `Io` if it cannot be written, and what `write` gives; then
/// the file is as it was.
pub fn replace_file<T, E: From<Error>>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    replace_file_telling(path, write, |_| ())
}

/// The same, and tells how far it is, for who may have to remove what is not whole. It is told of
/// nothing that is written to as it is.
///
/// # Errors
/// As [`replace_file`].
pub fn replace_file_telling<T, E: From<Error>>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
    tell: impl Fn(FileStage<'_>),
) -> Result<T, E> {
    let failed = |error| Error::io(format_args!("cannot write {}", path.display()), error);
    let write = |out: &mut dyn Write| {
        let mut kept = KeptError { out, error: None };
        let written = write(&mut kept);
        match kept.error {
            Some(error) if written.is_err() => Err(failed(error).into()),
            _ => written,
        }
    };
    if is_opened(path) || path.metadata().is_ok_and(|there| !there.is_file()) {
        let mut out = BufWriter::new(append(path).map_err(failed)?);
        let written = write(&mut out)?;
        out.flush().map_err(failed)?;
        return Ok(written);
    }
    let target =
        if path.is_symlink() { path.canonicalize().map_err(failed)? } else { path.to_owned() };
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Else the error would name a temporary file.
    let place = folder.canonicalize().map_err(failed)?;
    if target.file_name().is_some_and(|name| Database::has_place(&place.join(name))) {
        let message = format!(
            "cannot write {}: a file of the database there has that name; give it another one",
            path.display()
        );
        return Err(Error::new(ErrorKind::Invalid, message).into());
    }
    let mut builder = Builder::new();
    let builder = permit(builder.prefix(".duramen-"));
    let file = builder.tempfile_in(folder).map_err(|error| failed(without_place(error)))?;
    tell(FileStage::Begun(file.path()));
    if let Ok(there) = target.metadata() {
        take_after(file.as_file(), &there).map_err(failed)?;
    }
    // Not the named file itself: its errors name it.
    let mut out = BufWriter::with_capacity(1 << 16, file.as_file());
    let written = write(&mut out)?;
    out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.as_file().sync_all().map_err(failed)?;
    tell(FileStage::Whole);
    file.persist(&target).map_err(|error| failed(error.error))?;
    Ok(written)
}

/// A file that keeps what writing to it failed of: who writes may tell that as an error of its own,
/// without the name of the file.
struct KeptError<'f> {
    out: &'f mut dyn Write,
    error: Option<io::Error>,
}

impl KeptError<'_> {
    fn keep(&mut self, error: io::Error) -> io::Error {
        let kind = error.kind();
        // What was interrupted is tried again.
        if kind != io::ErrorKind::Interrupted {
            self.error = Some(error);
        }
        kind.into()
    }
}

impl Write for KeptError<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|error| self.keep(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|error| self.keep(error))
    }
}

/// An error without the place that it was extended by, which is that of a temporary file.
fn without_place(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.rsplit_once(" at path ") {
        Some((why, _)) => io::Error::new(error.kind(), why),
        None => error,
    }
}

/// Whether the system calls something so that the process has open.
fn is_opened(path: &Path) -> bool {
    let is_stream = ["/dev/stdout", "/dev/stderr"].iter().any(|stream| path == Path::new(stream));
    let is_number = path.starts_with("/proc") && path.parent().is_some_and(|of| of.ends_with("fd"));
    is_stream || is_number || path.starts_with("/dev/fd")
}

/// Gives a file the permissions of another one, and its owner if that is allowed.
#[cfg(unix)]
fn take_after(file: &File, other: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    // Only the administrator may give files away.
    let _ = fchown(file, Some(other.uid()), Some(other.gid()));
    file.set_permissions(other.permissions())
}

#[cfg(not(unix))]
fn take_after(file: &File, other: &Metadata) -> io::Result<()> {
    file.set_permissions(other.permissions())
}

/// A temporary file is its owner's alone; this one will be a file like others.
#[cfg(unix)]
fn permit<'b, 'p, 's>(builder: &'b mut Builder<'p, 's>) -> &'b mut Builder<'p, 's> {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(std::fs::Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn permit<'b, 'p, 's>(builder: &'b mut Builder<'p, 's>) -> &'b mut Builder<'p, 's> {
    builder
}

#[expect(clippy::disallowed_methods, reason = "these are the user's files, not the engine's")]
fn append(path: &Path) -> io::Result<File> {
    File::options().append(true).open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use duramen::Options;

    use super::*;

    fn write(path: &Path, text: &str) -> Result<(), Error> {
        replace_file(path, |out| {
            out.write_all(text.as_bytes()).map_err(|error| Error::io("cannot write", error))
        })
    }

    #[test]
    fn a_link_leads_to_the_file_that_is_replaced_and_its_permissions_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        write(&file, "one").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&file, &link).unwrap();
        write(&link, "two").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // One that leads nowhere is no place to write to.
        let lost = folder.path().join("lost");
        symlink(folder.path().join("nothing"), &lost).unwrap();
        assert!(write(&lost, "three").is_err() && lost.is_symlink());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    /// The name of the temporary file once stood behind it.
    #[test]
    fn a_folder_that_takes_no_file_is_told_by_the_file_alone() {
        let path = Path::new("/proc/answer.csv");
        // Nobody makes files there.
        if Path::new("/proc/self").exists() {
            let error = write(path, "one").unwrap_err();
            assert!(error.message().starts_with("cannot write /proc/answer.csv: "), "{error}");
            assert!(!error.message().contains(".duramen-"), "{error}");
        }
    }

    /// A full disk was once told as if it were that of what is answered.
    #[test]
    fn who_cannot_write_a_file_tells_its_name() {
        let full = Path::new("/dev/full");
        // Not every system has one.
        if full.exists() {
            let error = replace_file(full, |out| {
                let long = out.write_all(&vec![b'1'; 1 << 20]);
                long.map_err(|error| Error::io("cannot write the answer", error))
            });
            let error = error.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Full);
            assert!(error.message().starts_with("cannot write /dev/full: "), "{error}");
        }
    }

    /// It was written once, and the database was lost.
    #[test]
    fn file_of_a_database_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (folder.path().join("MANIFEST"), folder.path().join("answer.csv"));
        let db = Database::open(folder.path(), Options::default()).unwrap();
        let segment = folder.path().join("segments/00000001.segment");
        for own in [own, segment] {
            let error = write(&own, "one").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains("a file of the database"), "{error}");
        }
        write(&other, "one").unwrap();
        db.check().unwrap();
    }
}
