//! Files that a command writes.

use std::io::{self, Write};
use std::path::Path;

use duramen::Error;
use duramen_sql::FileStage;

use crate::Result;
use crate::exit::Failure;
use crate::interruption::{self, Interruption};

/// Writes a file anew: whoever reads it sees all of it or what was there before. Ctrl-C leaves that
/// there.
pub(crate) fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T>,
) -> Result<T> {
    let interruption = Interruption::of_process();
    let as_it_was = format!("{} is as it was", path.display());
    let replace = |out: &mut dyn Write| {
        let written = write(&mut Stoppable { out, interruption: &interruption });
        if interruption.is_asked() {
            return Err(Failure::Interrupted(format!("interrupted: {as_it_was}")));
        }
        written.map_err(|failure| match failure {
            // Here that is this file.
            Failure::Output(error) => {
                Error::io(format_args!("cannot write {}", path.display()), error).into()
            }
            failure => failure,
        })
    };
    duramen_sql::replace_file_telling(path, replace, |stage| match stage {
        FileStage::Begun(file) => {
            interruption::say(&as_it_was);
            interruption::remove(file);
        }
        // Whether it has its place by now is told.
        FileStage::Whole => drop(Interruption::watch()),
    })
}

/// What a CSV writer failed of.
pub(crate) fn of_csv(error: csv::Error) -> Failure {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        other => io::Error::other(format!("{other:?}")).into(),
    }
}

/// Takes nothing more once Ctrl-C was pressed.
struct Stoppable<'w> {
    out: &'w mut dyn Write,
    interruption: &'w Interruption,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.interruption.is_asked() {
            return Err(io::Error::other("stopped"));
        }
        self.out.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What takes long between two values, such as one revision of a million of them, once was
    /// written to its end.
    #[test]
    fn a_file_takes_nothing_more_once_it_is_stopped() {
        let interruption = Interruption::default();
        let mut written = Vec::new();
        let mut out = Stoppable { out: &mut written, interruption: &interruption };
        out.write_all(b"1").unwrap();
        interruption.flag().store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(out.write_all(b"2").is_err());
        assert_eq!(written, b"1");
    }
}
