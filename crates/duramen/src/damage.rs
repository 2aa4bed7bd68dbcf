//! The one way in which stored bytes that do not verify are reported.

use std::fmt::Display;

use crate::{Error, ErrorKind};

/// The error for bytes of `file` at `offset` of which `what` should be `expected` but is `found`.
pub(crate) fn corrupt(
    file: &str,
    offset: u64,
    what: &str,
    expected: impl Display,
    found: impl Display,
) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "{file}, offset {offset}: {what}: expected {expected}, found {found}; \
             restore a backup (\"duramen restore\"), or write what is left into a new database \
             (\"duramen repair\")"
        ),
    )
}
