//! The error of an index that was dropped since somebody meant to read it, who then plans again.

use std::{error, fmt};

use crate::error::{Error, ErrorKind};

/// An index that a plan was made with is not there any more.
#[derive(Debug)]
struct Dropped;

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it was dropped meanwhile")
    }
}

impl error::Error for Dropped {}

/// It was dropped, so that its entries cannot be read.
#[cold]
pub(crate) fn dropped() -> Error {
    let message = "an index was dropped while it was to be read: read again, without it";
    Error::new(ErrorKind::NotFound, message).with_source(Dropped)
}

/// Whether an error says that an index was dropped since somebody meant to read it.
pub(crate) fn was_dropped(error: &Error) -> bool {
    error::Error::source(error).is_some_and(<dyn error::Error>::is::<Dropped>)
}
