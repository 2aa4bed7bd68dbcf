//! JSON values out of a source that is read piece by piece.
//!
//! Invariants:
//! - `text` is UTF-8, what was not consumed of it, and ends at a character;
//! - memory is that of the longest stretch that was asked for without consuming any.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::fmt;
use std::io::Read;

use super::fault::{Fault, Place, Reason};
use super::parse::{self, Begun, Cut, ParseOptions};
use super::tape::{Tape, TapeRoom};
use crate::error::{Error, Result};
use crate::limits::VALUE_BYTES_MAX;

/// Bytes held at least: so few that they stay in a processor's cache (benchmark A0).
const PIECE_BYTES: usize = 256 << 10;
/// The byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A source and what was read of it ahead.
pub(crate) struct TextStream<'r> {
    source: &'r mut dyn Read,
    piece_bytes: usize,
    buffer: Vec<u8>,
    /// What of the buffer was consumed, what is UTF-8, and what was read.
    start: usize,
    valid: usize,
    filled: usize,
    /// Whether the source has ended.
    is_ended: bool,
    /// Bytes and place before the buffer.
    bytes: u64,
    place: Place,
    room: TapeRoom,
}

/// What the next value of a stream is.
pub(crate) enum NextValue<'t> {
    /// It is at hand, with its bytes.
    Whole(Tape<'t>, usize),
    /// More has to be read first.
    Cut(Cut),
}

impl fmt::Debug for TextStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextStream").field("consumed", &self.consumed()).finish_non_exhaustive()
    }
}

impl<'r> TextStream<'r> {
    /// Begins to read, at most `piece_bytes` at a time unless more is asked for; a byte order mark
    /// in front is skipped.
    pub(crate) fn new(source: &'r mut dyn Read, piece_bytes: usize) -> Result<Self> {
        let mut stream = Self {
            source,
            piece_bytes: piece_bytes.clamp(MARK.len(), PIECE_BYTES),
            buffer: Vec::new(),
            start: 0,
            valid: 0,
            filled: 0,
            is_ended: false,
            bytes: 0,
            place: Place::default(),
            room: TapeRoom::default(),
        };
        stream.read_on()?;
        if stream.text().starts_with(MARK) {
            // It is no character of the first line.
            stream.bytes = MARK.len() as u64;
            stream.buffer.drain(..MARK.len());
            stream.valid = stream.valid.saturating_sub(MARK.len());
            stream.filled = stream.filled.saturating_sub(MARK.len());
        }
        Ok(stream)
    }

    /// What was read and not consumed.
    pub(crate) fn text(&self) -> &[u8] {
        self.buffer.get(self.start..self.valid).unwrap_or_default()
    }

    /// Whether nothing comes after the text at hand.
    pub(crate) fn is_last(&self) -> bool {
        self.is_ended && self.valid == self.filled
    }

    /// Bytes consumed.
    pub(crate) fn consumed(&self) -> u64 {
        self.bytes.saturating_add(self.start as u64)
    }

    /// Goes on behind the next `bytes` of the text.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.start = self.start.saturating_add(bytes).min(self.valid);
    }

    /// Reads more behind the text at hand; false if nothing comes. What is no UTF-8 is an error
    /// once all before it was consumed, or is not enough.
    pub(crate) fn read_on(&mut self) -> Result<bool> {
        if self.is_last() {
            return Ok(false);
        }
        if self.is_ended {
            return self.fail(self.text().len(), Reason::NotUtf8);
        }
        let before = self.text().len();
        self.make_room();
        while self.filled < self.buffer.len() && !self.is_ended {
            self.read_piece()?;
        }
        if !self.validate() && self.text().len() == before {
            return self.fail(before, Reason::NotUtf8);
        }
        Ok(self.text().len() > before)
    }

    /// Drops what was consumed and makes room for one more piece.
    fn make_room(&mut self) {
        self.place.pass(self.buffer.get(..self.start).unwrap_or_default());
        self.bytes = self.bytes.saturating_add(self.start as u64);
        self.buffer.copy_within(self.start..self.filled, 0);
        self.valid = self.valid.saturating_sub(self.start);
        self.filled = self.filled.saturating_sub(self.start);
        self.start = 0;
        // What was not consumed is read again behind more, so as much again comes.
        let least = self.filled.saturating_mul(2).max(self.piece_bytes);
        if self.buffer.len() < least {
            self.buffer.resize(least, 0);
        }
    }

    fn read_piece(&mut self) -> Result<()> {
        let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
        match self.source.read(room) {
            Ok(0) => self.is_ended = true,
            Ok(read) => self.filled = self.filled.saturating_add(read),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("cannot read the JSON text", error)),
        }
        Ok(())
    }

    /// Finds out how much of what was read is text; false if what follows never will be.
    fn validate(&mut self) -> bool {
        let new = self.buffer.get(self.valid..self.filled).unwrap_or_default();
        match std::str::from_utf8(new) {
            Ok(_) => self.valid = self.filled,
            Err(error) => {
                self.valid = self.valid.saturating_add(error.valid_up_to());
                return error.error_len().is_none() && !self.is_ended;
            }
        }
        true
    }

    /// Goes on behind white space; the byte that comes then, if any does.
    #[inline]
    pub(crate) fn skip_space(&mut self) -> Result<Option<u8>> {
        self.skip(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'))
    }

    /// Goes on behind bytes that are meant.
    #[inline]
    pub(crate) fn skip(&mut self, is_meant: impl Fn(u8) -> bool) -> Result<Option<u8>> {
        match self.text().first() {
            Some(&found) if !is_meant(found) => Ok(Some(found)),
            _ => self.skip_on(is_meant),
        }
    }

    fn skip_on(&mut self, is_meant: impl Fn(u8) -> bool) -> Result<Option<u8>> {
        loop {
            let text = self.text();
            if let Some(at) = text.iter().position(|byte| !is_meant(*byte)) {
                let found = text.get(at).copied();
                self.consume(at);
                return Ok(found);
            }
            self.consume(text.len());
            if !self.read_on()? {
                return Ok(None);
            }
        }
    }

    /// Goes on behind white space within a line: what comes then.
    pub(crate) fn skip_blanks(&mut self) -> Result<Option<u8>> {
        self.skip(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
    }

    /// Goes on to the end of the line; what is before it is refused.
    pub(crate) fn end_line(&mut self) -> Result<()> {
        match self.skip_blanks()? {
            None | Some(b'\n') => Ok(()),
            Some(_) => self.expected("the end of the line"),
        }
    }

    /// The value that the text begins with, inside of `depth` containers, as far as it is at hand.
    pub(crate) fn next_value(
        &mut self,
        (options, depth): (ParseOptions, usize),
    ) -> Result<NextValue<'_>> {
        let room = std::mem::take(&mut self.room);
        let is_last = self.is_last();
        let text = self.buffer.get(self.start..self.valid).unwrap_or_default();
        match parse::begin(text, is_last, (options, depth), room) {
            Ok(Begun::Whole(tape, bytes)) => Ok(NextValue::Whole(tape, bytes)),
            Ok(Begun::Cut(cut)) => Ok(NextValue::Cut(cut)),
            Err(fault) => Err(fault.locate_after(self.place(), text)),
        }
    }

    /// What is wrong with the value that the text begins with where it has to end in its line, if
    /// that is at hand: a line is not blamed for the one before it.
    pub(crate) fn fault_in_line(&self, how: (ParseOptions, usize)) -> Option<Error> {
        let text = self.text();
        let line = text.get(..memchr::memchr(b'\n', text)?)?;
        let begun = parse::begin(line, true, how, TapeRoom::default());
        begun.err().map(|fault| fault.locate_after(self.place(), line))
    }

    /// Takes back the room of a tape that is not needed any more.
    pub(crate) fn reuse(&mut self, room: TapeRoom) {
        self.room = room;
    }

    /// Refuses a value that grew too large while more of it was read.
    pub(crate) fn check_length(&self) -> Result<()> {
        if self.text().len() <= VALUE_BYTES_MAX {
            return Ok(());
        }
        self.fail(0, Reason::TooLong)
    }

    /// The text at hand is wrong: at its begin something else was expected.
    pub(crate) fn expected<T>(&self, what: &'static str) -> Result<T> {
        self.fail(0, Reason::Expected(what))
    }

    /// There is no value at all.
    pub(crate) fn empty<T>(&self) -> Result<T> {
        self.fail(0, Reason::Empty)
    }

    /// Refuses a value of so many bytes that does not end in the line in which it begins.
    pub(crate) fn check_line(&self, bytes: usize) -> Result<()> {
        let value = self.text().get(..bytes).unwrap_or_default();
        let Some(at) = memchr::memchr(b'\n', value) else { return Ok(()) };
        self.fail(at, Reason::Expected("the value to end in its line"))
    }

    /// An object has a name again that the text at hand begins with.
    pub(crate) fn repeated<T>(&self, name: &[u8]) -> Result<T> {
        self.fail(0, Reason::Repeated(String::from_utf8_lossy(name).into_owned()))
    }

    /// The text at hand begins with a container that is too deep.
    pub(crate) fn too_deep<T>(&self) -> Result<T> {
        self.fail(0, Reason::TooDeep)
    }

    /// The line, counted from 1, that the text at hand begins in.
    pub(crate) fn line(&self) -> u64 {
        self.place().lines.saturating_add(1)
    }

    /// Where the text at hand begins.
    fn place(&self) -> Place {
        let mut place = self.place;
        place.pass(self.buffer.get(..self.start).unwrap_or_default());
        place
    }

    /// What is wrong `at` bytes into the text at hand.
    fn fail<T>(&self, at: usize, reason: Reason) -> Result<T> {
        let place = self.place();
        let text = self.buffer.get(self.start..self.filled).unwrap_or_default();
        Err(Fault { at, reason }.locate_after(place, text))
    }
}
