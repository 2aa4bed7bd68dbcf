//! Files that a command writes.

use std::io::Write;
use std::path::Path;

use duramen::Error;

use crate::Result;
use crate::exit::Failure;

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
