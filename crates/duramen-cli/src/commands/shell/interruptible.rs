//! Output that Ctrl-C stops.

use std::io::{self, Write};

use crate::interruption::Interruption;

/// Passes on what is written until Ctrl-C is pressed.
pub(crate) struct Interruptible<'a> {
    pub(crate) stream: &'a mut dyn Write,
    pub(crate) interruption: &'a Interruption,
}

impl Write for Interruptible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.interruption.is_asked() {
            // Not the kind `Interrupted`, which means to try again.
            return Err(io::Error::other("interrupted"));
        }
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
