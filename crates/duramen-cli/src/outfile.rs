//! Files that a command writes.

use std::io::{self, Write};
use std::path::Path;

use duramen::Error;

use crate::Result;
use crate::exit::Failure;
use crate::interruption::Interruption;

/// Writes a file anew: whoever reads it sees all of it or what was there before.
pub(crate) fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T>,
) -> Result<T> {
    duramen_sql::replace_file(path, |out| {
        write(out).map_err(|failure| match failure {
            // Here that is this file.
            Failure::Output(error) => {
                Error::io(format_args!("cannot write {}", path.display()), error).into()
            }
            failure => failure,
        })
    })
}

/// The same; Ctrl-C leaves the file as it was.
pub(crate) fn replace_stoppable<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write, &GoOn<'_>) -> Result<T>,
) -> Result<T> {
    let interruption = Interruption::watch()?;
    let go_on = || {
        if interruption.is_asked() {
            let message = format!("interrupted: {} is as it was", path.display());
            return Err(Failure::Interrupted(message));
        }
        Ok(())
    };
    replace(path, |out| {
        let written = write(out, &go_on)?;
        go_on().map(|()| written)
    })
}

/// What a CSV writer failed of.
pub(crate) fn of_csv(error: csv::Error) -> Failure {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        other => io::Error::other(format!("{other:?}")).into(),
    }
}

/// Whether the user lets it go on.
pub(crate) type GoOn<'g> = dyn Fn() -> Result<()> + 'g;

/// Writes something long as long as the user lets it go on.
pub(crate) fn write_long(
    out: &mut dyn Write,
    go_on: &GoOn<'_>,
    write: impl FnOnce(&mut dyn Write) -> duramen::Result<()>,
) -> Result<()> {
    let mut checked = Checked { out, go_on, stopped: None };
    let written = write(&mut checked);
    match checked.stopped {
        Some(failure) => Err(failure),
        None => Ok(written?),
    }
}

struct Checked<'w, 'g> {
    out: &'w mut dyn Write,
    go_on: &'w GoOn<'g>,
    /// What it was stopped with.
    stopped: Option<Failure>,
}

impl Write for Checked<'_, '_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if let Err(failure) = (self.go_on)() {
            self.stopped = Some(failure);
            return Err(io::Error::other("stopped"));
        }
        self.out.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
