//! Files that the user names: the command line's door to the file system.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use duramen::{Error, ErrorKind, Micros, Result};
use duramen_sql::NoText;

use crate::exit::Failure;
use crate::interruption::Interruption;

/// Whether `path` means standard input.
fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// What people call the file.
pub(crate) fn name(path: &Path) -> String {
    if is_standard_input(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// The bytes of a file that has the same content when it is read once more; none of a pipe.
pub(crate) fn bytes(path: &Path) -> Option<u64> {
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    (!is_standard_input(path)).then_some(metadata.len())
}

/// Bytes of a text from which on a first revision is loaded in bulk.
pub(crate) const SHORT_BYTES_MAX: u64 = 1 << 20;

/// A JSON text that the user names.
pub(crate) enum Text {
    Short(Vec<u8>),
    /// What was read of it already comes first.
    Long(LongText),
}

/// A text that is not read as a whole.
pub(crate) struct LongText {
    /// What people call it.
    pub(crate) name: String,
    pub(crate) reader: Box<dyn Read>,
    /// Its bytes, if that is known.
    pub(crate) bytes: Option<u64>,
}

impl LongText {
    /// All of it.
    pub(crate) fn read(mut self) -> crate::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.reader.read_to_end(&mut bytes);
        read.map_err(|error| Error::io(format_args!("cannot read {}", self.name), error))?;
        check_whole()?;
        Ok(bytes)
    }
}

/// What was read to its end is not all of it if Ctrl-C ended it.
fn check_whole() -> crate::Result<()> {
    if Interruption::of_process().is_asked() {
        return Err(Failure::Interrupted("interrupted: nothing was stored".to_owned()));
    }
    Ok(())
}

/// The text of a file, read as far as it is short.
pub(crate) fn text(path: &Path) -> crate::Result<Text> {
    let LongText { name, mut reader, bytes } = long_text(path)?;
    let mut begin = Vec::new();
    let read = reader.by_ref().take(SHORT_BYTES_MAX + 1).read_to_end(&mut begin);
    read.map_err(|error| failure(path, error))?;
    check_whole()?;
    if begin.len() as u64 <= SHORT_BYTES_MAX {
        return Ok(Text::Short(begin));
    }
    let reader = Box::new(io::Cursor::new(begin).chain(reader));
    Ok(Text::Long(LongText { name, reader, bytes }))
}

/// The text of a file, not read yet.
pub(crate) fn long_text(path: &Path) -> Result<LongText> {
    let (name, mut bytes) = (name(path), None);
    let reader: Box<dyn Read> = if is_standard_input(path) {
        Box::new(StandardInput::default())
    } else {
        let file = open_text(path)?;
        let metadata = file.metadata().map_err(|error| failure(path, error))?;
        bytes = metadata.is_file().then_some(metadata.len());
        Box::new(file)
    };
    Ok(LongText { name, reader, bytes })
}

/// Refuses a file that is not there; one that is there may be a pipe, which is opened once only.
pub(crate) fn check_there(path: &Path) -> Result<()> {
    if is_standard_input(path) || path.exists() { Ok(()) } else { open(path).map(drop) }
}

/// The whole file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if is_standard_input(path) {
        io::stdin().lock().read_to_end(&mut bytes)
    } else {
        open_text(path)?.read_to_end(&mut bytes)
    };
    read.and_then(|_| check_text(&bytes)).map_err(|error| failure(path, error))?;
    Ok(bytes)
}

/// What some programs begin files in UTF-8 with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes of lines that are read at a time: fewer than a bulk load asks for, which so has them read
/// to where it wants them (benchmark A0).
const LINES_BYTES: usize = 128 << 10;

/// The file's lines, to be read one after the other, without a byte order mark.
pub(crate) fn lines(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    if is_standard_input(path) {
        return Ok(Box::new(Unmarked::new(BufReader::new(StandardInput::default()))));
    }
    Ok(Box::new(Unmarked::new(BufReader::with_capacity(LINES_BYTES, open_text(path)?))))
}

/// Bytes of standard input that are read at a time.
const STANDARD_BYTES: usize = 64 << 10;

/// How often it is looked for Ctrl-C while nothing comes.
const LOOK: Duration = Duration::from_millis(20);

/// Standard input, which ends once Ctrl-C was pressed, for who looks whether it was.
///
/// It is read by a thread of its own: nothing else ends a read that waits.
#[derive(Default)]
struct StandardInput {
    pieces: Option<mpsc::Receiver<io::Result<Vec<u8>>>>,
    /// Whether the first piece was looked at.
    is_text: bool,
    piece: io::Cursor<Vec<u8>>,
}

impl StandardInput {
    fn begin() -> io::Result<mpsc::Receiver<io::Result<Vec<u8>>>> {
        let (pieces, taken) = mpsc::sync_channel(1);
        let read = move || {
            loop {
                let mut piece = vec![0; STANDARD_BYTES];
                let read = io::stdin().read(&mut piece);
                let read = read.map(|len| {
                    piece.truncate(len);
                    piece
                });
                let is_more = read.as_ref().is_ok_and(|piece| !piece.is_empty());
                if pieces.send(read).is_err() || !is_more {
                    return;
                }
            }
        };
        // It ends with the process if nothing more comes.
        thread::Builder::new().name("input".to_owned()).spawn(read)?;
        Ok(taken)
    }
}

impl Read for StandardInput {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.piece.read(buf)?;
        if read > 0 || buf.is_empty() {
            return Ok(read);
        }
        if self.pieces.is_none() {
            self.pieces = Some(Self::begin()?);
        }
        while let Some(pieces) = &self.pieces
            && !Interruption::of_process().is_asked()
        {
            match pieces.recv_timeout(LOOK) {
                Ok(piece) => {
                    let piece = piece?;
                    if !std::mem::replace(&mut self.is_text, true) {
                        check_text(&piece)?;
                    }
                    self.piece = io::Cursor::new(piece);
                    return self.piece.read(buf);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(0)
    }
}

/// Refuses what begins as no text does.
fn check_text(begin: &[u8]) -> io::Result<()> {
    NoText::of(begin).map_or(Ok(()), |found| {
        let message = format!("it {}", found.advice("FILE"));
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    })
}

/// A text without the byte order mark that it may begin with. Nothing of it is read before it is
/// asked for: who writes to a pipe may wait for what comes of the lines before.
struct Unmarked<R> {
    /// What was read to see whether there is a mark, and is none; nothing before that.
    begin: Option<VecDeque<u8>>,
    text: R,
}

impl<R: BufRead> Unmarked<R> {
    fn new(text: R) -> Self {
        Self { begin: None, text }
    }

    /// Reads as many bytes as a mark has, as long as they may be one.
    fn begin(&mut self) -> io::Result<VecDeque<u8>> {
        let mut begin = Vec::new();
        while begin.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(&begin) {
            let Some(&byte) = self.text.fill_buf()?.first() else { break };
            begin.push(byte);
            self.text.consume(1);
        }
        if begin == BYTE_ORDER_MARK {
            begin.clear();
        }
        Ok(begin.into())
    }
}

impl<R: BufRead> Read for Unmarked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.begin.as_ref().is_some_and(VecDeque::is_empty) {
            return self.text.read(buf);
        }
        let read = self.fill_buf()?.read(buf)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Unmarked<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.begin.is_none() {
            self.begin = Some(self.begin()?);
        }
        match &self.begin {
            Some(begin) if !begin.is_empty() => Ok(begin.as_slices().0),
            _ => self.text.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        match &mut self.begin {
            Some(begin) if !begin.is_empty() => drop(begin.drain(..amount)),
            _ => self.text.consume(amount),
        }
    }
}

/// A line, or several, read piece by piece, without the end of the last one. Line ends that became
/// CRLF on the way through other programs are read as the line feeds that they were.
pub(crate) struct LongLine<'l> {
    lines: &'l mut dyn BufRead,
    /// How many lines are left.
    left: usize,
    /// A carriage return was read, which belongs to the end of the line if that comes next.
    has_return: bool,
    interruption: &'l Interruption,
}

impl<'l> LongLine<'l> {
    /// The next ones of some lines, so many; reading them fails after Ctrl-C.
    pub(crate) fn new(
        lines: &'l mut dyn BufRead,
        count: usize,
        interruption: &'l Interruption,
    ) -> Self {
        Self { lines, left: count, has_return: false, interruption }
    }

    /// Passes over what was not read of it.
    pub(crate) fn end(mut self) -> io::Result<()> {
        io::copy(&mut self, &mut io::sink()).map(drop)
    }
}

impl Read for LongLine<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.left > 0 && !buf.is_empty() {
            if self.interruption.is_asked() {
                return Err(io::Error::other("interrupted"));
            }
            let ahead = self.lines.fill_buf()?;
            if ahead.is_empty() {
                self.left = 0;
            }
            if std::mem::take(&mut self.has_return) && ahead.first() != Some(&b'\n') {
                buf[0] = b'\r';
                return Ok(1);
            }
            let ahead = &ahead[..ahead.len().min(buf.len())];
            let end = ahead.iter().position(|byte| *byte == b'\n');
            let text = &ahead[..end.unwrap_or(ahead.len())];
            let consumed = text.len() + usize::from(end.is_some());
            let line = text.strip_suffix(b"\r").unwrap_or(text);
            let mut read = line.len();
            buf[..read].copy_from_slice(line);
            if end.is_some() {
                self.left -= 1;
                if self.left > 0 {
                    buf[read] = b'\n';
                    read += 1;
                }
            } else {
                self.has_return = line.len() < text.len();
            }
            self.lines.consume(consumed);
            if read > 0 {
                return Ok(read);
            }
        }
        Ok(0)
    }
}

/// When the file was last changed.
pub(crate) fn modified(path: &Path) -> Result<Micros> {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    let time = modified.map_err(|error| failure(path, error))?;
    let time =
        jiff::Timestamp::try_from(time).map_err(|error| failure(path, io::Error::other(error)))?;
    Ok(Micros(time.as_microsecond()))
}

/// Bytes of all files in a folder, and in the folders in it.
pub(crate) fn folder_bytes(folder: &Path) -> Result<u64> {
    let sum = |folder: &Path| -> io::Result<u64> {
        let mut bytes = 0;
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)? {
                let entry = entry?;
                match entry.metadata()? {
                    metadata if metadata.is_dir() => folders.push(entry.path()),
                    metadata => bytes += metadata.len(),
                }
            }
        }
        Ok(bytes)
    };
    sum(folder).map_err(|error| failure(folder, error))
}

/// An error while reading `path`.
pub(crate) fn failure(path: &Path, error: io::Error) -> Error {
    Error::io(format_args!("cannot read {}", name(path)), error)
}

/// The file, to be read at any place: a text, or Parquet.
pub(crate) fn open(path: &Path) -> Result<File> {
    let (file, no_text) = opened(path)?;
    check_readable(path, no_text.filter(|found| *found != NoText::Parquet))?;
    Ok(file)
}

fn open_text(path: &Path) -> Result<File> {
    let (file, no_text) = opened(path)?;
    check_readable(path, no_text)?;
    Ok(file)
}

#[expect(clippy::disallowed_methods, reason = "these are the user's files, not the engine's")]
fn opened(path: &Path) -> Result<(File, Option<NoText>)> {
    let mut file = File::open(path).map_err(|error| failure(path, error))?;
    let no_text = NoText::of_file(&mut file).map_err(|error| failure(path, error))?;
    Ok((file, no_text))
}

/// Refuses what would be told as a text that is wrong.
fn check_readable(path: &Path, no_text: Option<NoText>) -> Result<()> {
    no_text.map_or(Ok(()), |found| {
        let name = name(path);
        let message = format!("{name} {}", found.advice(&name));
        Err(Error::new(ErrorKind::Invalid, message))
    })
}

/// An error of a JSON text, with what to do where the text is probably something else.
pub(crate) fn advised(error: Error, text: &[u8]) -> Error {
    const IS_NDJSON: &str = "if each line is a text of its own, \"duramen import --ndjson\" makes \
                             a revision of each, and \"duramen records import\" a record";
    const IS_CSV: &str =
        "if it is CSV, \"duramen records import --format csv\" makes records of it";
    let message = error.message();
    let is_behind = message.contains("expected the end after the value");
    let advice = match () {
        () if !message.contains("JSON is invalid at line ") => return error,
        () if is_behind && !message.contains(" at line 1, ") => IS_NDJSON,
        () if is_like_csv(text) => IS_CSV,
        () => return error,
    };
    Error::new(error.kind(), format!("{message}: {advice}"))
}

/// Whether the first line of a text has several values, and none of them begins as those of JSON
/// that may have commas in them.
fn is_like_csv(text: &[u8]) -> bool {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    !line.starts_with(b"{")
        && !line.starts_with(b"[")
        && line.iter().any(|byte| b",;\t".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many of the next lines, read in pieces.
    fn next(lines: &mut dyn BufRead, count: usize, piece: usize) -> String {
        let interruption = Interruption::default();
        let (mut line, mut text) = (LongLine::new(lines, count, &interruption), Vec::new());
        let mut piece = vec![0; piece];
        loop {
            match line.read(&mut piece).unwrap() {
                0 => return String::from_utf8(text).unwrap(),
                read => text.extend_from_slice(&piece[..read]),
            }
        }
    }

    #[test]
    fn a_long_line_ends_where_it_ends() {
        let mut lines = BufReader::with_capacity(3, &b"[1,\"a\"]\n\n2\nlast"[..]);
        let mut read = || next(&mut lines, 1, 16);
        assert_eq!([read(), read(), read(), read(), read()], ["[1,\"a\"]", "", "2", "last", ""]);
        let mut lines = BufReader::with_capacity(3, &b"passed over\nnext"[..]);
        LongLine::new(&mut lines, 1, &Interruption::default()).end().unwrap();
        assert_eq!(io::read_to_string(lines).unwrap(), "next");
        let mut lines = BufReader::with_capacity(3, &b"one\n\nthree\nfour"[..]);
        let mut read = |count| next(&mut lines, count, 16);
        assert_eq!([read(2), read(3), read(2)], ["one\n", "three\nfour", ""]);
    }

    #[test]
    fn a_long_line_has_no_carriage_return_of_its_end() {
        for (capacity, piece) in (1..8).flat_map(|size| (1..8).map(move |other| (size, other))) {
            let text = &b"one\r\n\r\nt\ro\r\r\nlast\r"[..];
            let mut lines = BufReader::with_capacity(capacity, text);
            let mut read = |count| next(&mut lines, count, piece);
            assert_eq!([read(2), read(1), read(1)], ["one\n", "t\ro\r", "last\r"]);
        }
    }

    /// Ctrl-C once was not seen until the end of a line that was passed over.
    #[test]
    fn a_long_line_that_is_passed_over_can_be_left() {
        let mut lines = BufReader::new(io::repeat(b'1').take(1 << 30));
        let interruption = Interruption::default();
        interruption.flag().store(true, std::sync::atomic::Ordering::Relaxed);
        LongLine::new(&mut lines, 1, &interruption).end().unwrap_err();
        assert!(lines.into_inner().limit() > 1 << 29);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_however_it_comes() {
        for (text, expected) in [
            (&b"\xef\xbb\xbfab\nc"[..], "ab\nc"),
            (b"ab", "ab"),
            (b"", ""),
            (b"\xef\xbb\xbf", ""),
            ("\u{fec0}x".as_bytes(), "\u{fec0}x"),
            ("\u{feff}\u{feff}".as_bytes(), "\u{feff}"),
        ] {
            for capacity in [1, 2, 64] {
                let mut lines = Unmarked::new(BufReader::with_capacity(capacity, text));
                let mut read = String::new();
                while lines.read_line(&mut read).unwrap() > 0 {}
                assert_eq!(read, expected);
            }
        }
    }
}
