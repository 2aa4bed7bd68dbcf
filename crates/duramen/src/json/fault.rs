//! What is wrong with a JSON text, and where.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use memchr::{memchr_iter, memrchr};

use crate::error::{Error, ErrorKind};
use crate::limits::{JSON_DEPTH_MAX, VALUE_BYTES_MAX};

/// What is wrong, and at which byte.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) reason: Reason,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    /// The lines that end before it.
    pub(crate) lines: u64,
    /// The characters before it in its line.
    pub(crate) characters: u64,
}

impl Place {
    /// Goes on behind `text`.
    pub(crate) fn pass(&mut self, text: &[u8]) {
        let mut in_line = text;
        if let Some(last) = memrchr(b'\n', text) {
            self.lines = self.lines.saturating_add(memchr_iter(b'\n', text).count() as u64);
            self.characters = 0;
            in_line = text.get(last..).and_then(|line| line.get(1..)).unwrap_or_default();
        }
        self.characters = self.characters.saturating_add(characters(in_line));
    }
}

/// The characters of a text. Counted in parts that a byte can count, so that a machine's wide
/// registers hold many counters (benchmark A0).
fn characters(text: &[u8]) -> u64 {
    let is_first = |byte: &u8| u8::from(byte & 0xc0 != 0x80);
    let count = |part: &[u8]| part.iter().fold(0_u8, |sum, byte| sum.wrapping_add(is_first(byte)));
    text.chunks(usize::from(u8::MAX)).map(|part| u64::from(count(part))).sum()
}

#[derive(Debug)]
pub(super) enum Reason {
    Empty,
    NotUtf8,
    Expected(&'static str),
    RawControl,
    UnknownEscape,
    LoneSurrogate,
    TooDeep,
    TooLong,
    Repeated(String),
}

/// Boxed, so that results travel in registers.
pub(super) type Scanned<T> = Result<T, Box<Fault>>;

impl Fault {
    /// The failure for `reason` at byte `at`.
    pub(super) fn fail<T>(at: usize, reason: Reason) -> Scanned<T> {
        Err(Box::new(Self { at, reason }))
    }

    /// The error for people: lines and columns count from 1, columns in characters.
    pub(super) fn locate(&self, text: &[u8]) -> Error {
        self.locate_after(Place::default(), text)
    }

    /// The same where `text` comes after others, which end at `place`.
    pub(super) fn locate_after(&self, mut place: Place, text: &[u8]) -> Error {
        place.pass(text.get(..self.at).unwrap_or(text));
        let (line, column) = (place.lines.saturating_add(1), place.characters.saturating_add(1));
        let reason = self.describe(text);
        let message = format!("JSON is invalid at line {line}, column {column}: {reason}");
        Error::new(ErrorKind::Invalid, message)
    }

    fn describe(&self, text: &[u8]) -> String {
        match &self.reason {
            Reason::Empty => "the text is empty, expected a value".to_owned(),
            Reason::NotUtf8 => "the text is not UTF-8 from here on".to_owned(),
            Reason::Expected(what) => format!("expected {what}, found {}", self.found(text)),
            Reason::RawControl => {
                format!("{} in a string must be written as an escape", self.found(text))
            }
            Reason::UnknownEscape => format!("no escape is written \\ and {}", self.found(text)),
            Reason::LoneSurrogate => "a surrogate without its other half".to_owned(),
            Reason::TooDeep => format!("nested deeper than {JSON_DEPTH_MAX} levels"),
            Reason::TooLong => format!("a value of more than {VALUE_BYTES_MAX} bytes"),
            Reason::Repeated(name) => format!("the object has the name {name:?} twice"),
        }
    }

    fn found(&self, text: &[u8]) -> String {
        let rest = text.get(self.at..).unwrap_or_default();
        let start = rest.get(..rest.len().min(4)).unwrap_or_default();
        let first = start.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
        match first {
            None => "the end".to_owned(),
            Some(character) if character.is_control() => format!("U+{:04X}", u32::from(character)),
            Some(character) => format!("{character:?}"),
        }
    }
}
