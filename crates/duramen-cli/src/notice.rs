//! What is told on standard error. That it cannot be written there changes nothing of what a
//! command does, nor of its exit code.

use std::fmt;
use std::io::{self, Write};

/// Tells a line on standard error, as `eprintln!` does, which panics where that takes none.
macro_rules! notice {
    ($($text:tt)*) => { $crate::notice::tell(format_args!($($text)*)) };
}

pub(crate) use notice;

/// Tells a line, if there is somebody to tell.
pub(crate) fn tell(text: fmt::Arguments<'_>) {
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}
