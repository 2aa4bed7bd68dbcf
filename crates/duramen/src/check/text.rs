//! JSON text that is looked at piece by piece, as it is printed: that of a document may be longer
//! than memory.
//!
//! A long text is cut at commas between values. What was open where a piece begins is opened before
//! it, and what is open at its end is closed behind it, so that each piece is a JSON text.

use std::io::{self, Write};

use crate::error::{Error, Result};
use crate::json::{ParseOptions, Tape};

/// Bytes from which on a text is cut.
const PIECE_BYTES: usize = 4 << 20;

/// Parses what is written to it.
#[derive(Debug, Default)]
pub(super) struct ParsedText {
    text: Vec<u8>,
    /// How far it was looked for a comma, and what is open there.
    seen: usize,
    open: Vec<u8>,
    string: Within,
    /// What was wrong with a piece.
    wrong: Option<Error>,
}

/// Whether a place is in a string.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Within {
    #[default]
    No,
    String,
    /// Behind a backslash in one.
    Escape,
}

impl ParsedText {
    /// Parses the rest, once all was printed; else what was wrong with the text, or hindered it.
    pub(super) fn end(self, printed: Result<()>) -> Result<()> {
        match self.wrong {
            Some(error) => Err(error),
            None => printed.and_then(|()| parse(&self.text)),
        }
    }

    /// Looks at one byte more; whether it is a comma between values.
    fn pass(&mut self, byte: u8) -> bool {
        self.string = match (self.string, byte) {
            (Within::String, b'\\') => Within::Escape,
            (Within::String, b'"') => Within::No,
            (Within::No, b'"') | (Within::String | Within::Escape, _) => Within::String,
            (Within::No, _) => {
                match byte {
                    b'{' | b'[' => self.open.push(byte),
                    b'}' | b']' => drop(self.open.pop()),
                    _ => {}
                }
                Within::No
            }
        };
        self.string == Within::No && byte == b','
    }

    /// Parses pieces as long as there are long ones.
    fn cut(&mut self) -> Result<()> {
        while let Some(&byte) = self.text.get(self.seen) {
            let is_cut = self.pass(byte) && self.seen >= PIECE_BYTES;
            self.seen = self.seen.saturating_add(1);
            if is_cut {
                self.parse_piece()?;
            }
        }
        Ok(())
    }

    /// Parses what was seen, which ends with a comma, and begins anew behind it.
    fn parse_piece(&mut self) -> Result<()> {
        let mut rest = self.text.split_off(self.seen);
        self.text.pop();
        let closed = self.open.iter().rev().map(|open| if *open == b'{' { b'}' } else { b']' });
        self.text.extend(closed);
        let parsed = parse(&self.text);
        self.text.clear();
        for (level, open) in self.open.iter().enumerate() {
            let is_member = level > 0 && self.open.get(level.saturating_sub(1)) == Some(&b'{');
            self.text.extend_from_slice(if is_member { b"\"\":" } else { b"" });
            self.text.push(*open);
        }
        self.seen = self.text.len();
        self.text.append(&mut rest);
        parsed
    }
}

fn parse(text: &[u8]) -> Result<()> {
    Tape::parse(text, ParseOptions::default()).map(drop)
}

impl Write for ParsedText {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(buf);
        if self.text.len() > PIECE_BYTES {
            self.cut().map_err(|error| {
                let what = error.to_string();
                self.wrong = Some(error);
                io::Error::other(what)
            })?;
        }
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a text in buffers; the most bytes of it that were in memory, or what was wrong.
    fn most(text: &[u8]) -> Result<usize> {
        let mut parsed = ParsedText::default();
        let mut most = 0;
        for buffer in text.chunks(60_000) {
            if parsed.write_all(buffer).is_err() {
                break;
            }
            most = most.max(parsed.text.len());
        }
        parsed.end(Ok(())).map(|()| most)
    }

    fn long() -> Vec<u8> {
        let item = r#"{"a\"]":[1,{"b,":"],}\\"},[],{}],"c":null},"#.repeat(400_000);
        format!(r#"{{"x":{{"y":[{item}1]}},"z":"{}"}}"#, ",".repeat(100)).into_bytes()
    }

    /// All of it was one text in memory.
    #[test]
    fn a_long_text_is_parsed_in_pieces() {
        let text = long();
        assert!(text.len() > 3 * PIECE_BYTES);
        assert!(most(&text).unwrap() < PIECE_BYTES + 200_000);
    }

    #[test]
    fn what_is_wrong_anywhere_in_a_long_text_is_found() {
        let text = long();
        for at in [10, PIECE_BYTES, text.len() / 2, text.len() - 120] {
            let from = at + text[at..].iter().position(|byte| *byte == b':').unwrap();
            let mut wrong = text.clone();
            wrong[from] = b';';
            most(&wrong).unwrap_err();
        }
        most(&text[..text.len() - 1]).unwrap_err();
        most(b"{\"a\":}").unwrap_err();
        most(b"\"\xff\"").unwrap_err();
        most(b"{}").unwrap();
    }
}
