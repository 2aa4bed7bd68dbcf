//! Files that are written as a whole.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use duramen::Error;
use tempfile::Builder;

/// Writes a file anew: whoever reads it sees all of it or what was there before.
///
/// # Errors
/// `Io` if it cannot be written, and what `write` gives; then the file is as it was.
pub fn replace_file<T, E: From<Error>>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let failed = |error| Error::io(format_args!("cannot write {}", path.display()), error);
    // A pipe or a device has nothing to replace.
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        let mut out = BufWriter::new(open(path).map_err(failed)?);
        let written = write(&mut out)?;
        out.flush().map_err(failed)?;
        return Ok(written);
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Else the error would name a temporary file.
    folder.metadata().map_err(failed)?;
    let mut builder = Builder::new();
    let builder = permit(builder.prefix(".duramen-"));
    let file = builder.tempfile_in(folder).map_err(failed)?;
    // Not the named file itself: its errors name it.
    let mut out = BufWriter::with_capacity(1 << 16, file.as_file());
    let written = write(&mut out)?;
    out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(written)
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
fn open(path: &Path) -> std::io::Result<File> {
    File::options().write(true).open(path)
}
