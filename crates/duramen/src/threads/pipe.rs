//! Text that one thread writes and another one reads.

use std::io::{self, Read, Write};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::error::Result;

/// How many pieces that were written wait to be read.
const PIECES_AHEAD: usize = 4;

/// Gives what `read` makes of what `write` writes meanwhile. An error of `write` comes before what
/// `read` makes of a text that ends too early.
pub(crate) fn piped<T>(
    write: impl FnOnce(&mut dyn Write) -> Result<()> + Send,
    read: impl FnOnce(&mut dyn Read) -> Result<T>,
) -> Result<T> {
    let (sender, receiver) = sync_channel(PIECES_AHEAD);
    thread::scope(|scope| {
        let writing = scope.spawn(move || {
            let mut writer = PipeWriter { sender, is_gone: false };
            let written = write(&mut writer);
            // That nobody reads on is no error of who writes.
            if writer.is_gone { Ok(()) } else { written }
        });
        let read = read(&mut PipeReader { receiver, piece: Vec::new(), start: 0 });
        let written = writing.join().unwrap_or_else(|panic| resume_unwind(panic));
        written.and(read)
    })
}

struct PipeWriter {
    sender: SyncSender<Vec<u8>>,
    /// Nobody reads any more.
    is_gone: bool,
}

impl Write for PipeWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.sender.send(buf.to_vec()).map_err(|_| {
            self.is_gone = true;
            io::Error::from(io::ErrorKind::BrokenPipe)
        })?;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct PipeReader {
    receiver: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    /// Where what was not read of the piece begins.
    start: usize,
}

impl Read for PipeReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.start == self.piece.len() {
            let Ok(piece) = self.receiver.recv() else { return Ok(0) };
            (self.piece, self.start) = (piece, 0);
        }
        let read = self.piece.get(self.start..).unwrap_or_default().read(buf)?;
        self.start += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind};

    fn write(text: &str, out: &mut dyn Write) -> Result<()> {
        text.bytes().try_for_each(|byte| {
            out.write_all(&[byte]).map_err(|error| Error::io("cannot write", error))
        })
    }

    fn failure(kind: ErrorKind) -> Error {
        Error::new(kind, "on purpose")
    }

    #[test]
    fn all_that_is_written_is_read() {
        let text = "piece by piece, more of them than wait";
        let read = piped(
            |out| write(text, out),
            |from| Ok(io::read_to_string(from).expect("it does not fail")),
        );
        assert_eq!(read.unwrap(), text);
    }

    #[test]
    fn the_error_of_who_failed_is_told() {
        let read = |from: &mut dyn Read| match io::read_to_string(from) {
            Ok(text) if text == "0123456789" => Ok(text),
            _ => Err(failure(ErrorKind::Invalid)),
        };
        let cut = |out: &mut dyn Write| write("01", out).and(Err(failure(ErrorKind::Corrupt)));
        assert_eq!(piped(cut, read).unwrap_err().kind(), ErrorKind::Corrupt);
        let wrong = |out: &mut dyn Write| write("0123456780", out);
        assert_eq!(piped(wrong, read).unwrap_err().kind(), ErrorKind::Invalid);
        let stopped = |_: &mut dyn Read| Err::<(), _>(failure(ErrorKind::Cancelled));
        let long = |out: &mut dyn Write| write(&"x".repeat(100), out);
        assert_eq!(piped(long, stopped).unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
