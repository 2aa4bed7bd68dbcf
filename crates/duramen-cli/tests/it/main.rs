//! The one integration binary of this crate.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "the tests write files for the command to read")]

mod processes;
mod transcript;
