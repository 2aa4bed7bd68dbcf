//! Reading JSON text (RFC 8259) into a [`Tape`].
//!
//! Invariants:
//! - one pass, no recursion: open containers stand on a stack of their own, which is bounded;
//! - `rest` is what was not read yet and always begins at a character, for the text as a whole was
//!   found to be UTF-8 first.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use super::escape::{is_plain, plain_prefix};
use super::fault::{Fault, Reason, Scanned};
use super::names::{self, Buckets, NameCheck};
use super::tape::{Kind, Node, Tape, TapeRoom};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{COMMIT_BYTES_MAX, JSON_DEPTH_MAX, VALUE_BYTES_MAX};

/// How to read a JSON text.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParseOptions {
    /// Refuse an object that has a name twice. Otherwise the last value wins and stands where the
    /// name first stood, as in JavaScript.
    pub strict: bool,
}

/// Reads one JSON value of at most so many levels; a byte order mark in front of it is skipped.
pub(super) fn read(text: &[u8], options: ParseOptions, depth_max: usize) -> Result<Tape<'_>> {
    if text.len() > COMMIT_BYTES_MAX {
        let message =
            format!("JSON text of {} bytes: at most {COMMIT_BYTES_MAX} are taken", text.len());
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let scanned = match std::str::from_utf8(text) {
        Ok(_) => {
            let mut scanner = Scanner::new(text, options);
            scanner.depth_max = depth_max;
            scanner.document()
        }
        Err(error) => Fault::fail(error.valid_up_to(), Reason::NotUtf8),
    };
    scanned.map_err(|fault| fault.locate(text))
}

/// What reading a value from the begin of a text came to.
pub(super) enum Begun<'t> {
    /// The value and its bytes.
    Whole(Tape<'t>, usize),
    /// The text ends before the value does.
    Cut(Cut),
}

/// A value of which the text has only the begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Whether it is an array or object.
    pub(crate) is_container: bool,
    /// How many of its children are there in full.
    pub(crate) children: usize,
}

/// A text that ends in the middle of a token fails at most so many bytes before its end.
const TOKEN_BYTES_MAX: usize = 16;

/// Reads the value at the begin of a text, which is UTF-8 and goes on unless `is_last`; it is
/// inside of `depth` containers. The tape gets the room of an earlier one.
pub(super) fn begin(
    text: &[u8],
    is_last: bool,
    (options, depth): (ParseOptions, usize),
    room: TapeRoom,
) -> Scanned<Begun<'_>> {
    let mut scanner = Scanner::of(Tape::with_room(text, room), text, options);
    scanner.depth_max = JSON_DEPTH_MAX.saturating_sub(depth);
    let outcome = scanner.values();
    let read = scanner.place();
    let is_number = scanner.tape.node(0).kind() == Kind::Number;
    match outcome {
        // More digits may follow.
        Ok(()) if is_last || !is_number || read < text.len() => {
            Ok(Begun::Whole(scanner.tape, read))
        }
        Err(fault) if is_last || fault.at.saturating_add(TOKEN_BYTES_MAX) < text.len() => {
            Err(fault)
        }
        _ => {
            let outermost = scanner.open.first();
            let children = outermost.map_or(0, |open| open.children);
            Ok(Begun::Cut(Cut { is_container: outermost.is_some(), children }))
        }
    }
}

/// A container whose end was not read yet.
#[derive(Debug, Clone, Copy)]
struct Open {
    kind: Kind,
    /// The place of its node.
    header: usize,
    /// Its children so far.
    children: usize,
    /// Its names so far, and whether two of them may be the same.
    names: Buckets,
    may_repeat: bool,
}

struct Scanner<'t> {
    text: &'t [u8],
    rest: &'t [u8],
    tape: Tape<'t>,
    open: Vec<Open>,
    /// So many containers may be inside each other.
    depth_max: usize,
    names: NameCheck,
    strict: bool,
    /// Only for strict reading: where names with escapes lie unescaped, and where in the text.
    escaped_names: Vec<(usize, usize)>,
}

impl<'t> Scanner<'t> {
    fn new(text: &'t [u8], options: ParseOptions) -> Self {
        let mut tape = Tape::empty(text);
        // Most JSON has fewer nodes than one in eight bytes.
        tape.nodes_mut().reserve_exact((text.len() / 8).clamp(1, 4096));
        Self::of(tape, text, options)
    }

    fn of(tape: Tape<'t>, text: &'t [u8], options: ParseOptions) -> Self {
        Self {
            text,
            rest: text,
            tape,
            open: Vec::new(),
            depth_max: JSON_DEPTH_MAX,
            names: NameCheck::default(),
            strict: options.strict,
            escaped_names: Vec::new(),
        }
    }

    fn document(mut self) -> Scanned<Tape<'t>> {
        self.skip_space();
        if self.rest.is_empty() {
            return self.fail(Reason::Empty);
        }
        self.values()?;
        self.skip_space();
        if self.rest.is_empty() {
            Ok(self.tape)
        } else {
            self.fail(Reason::Expected("the end after the value"))
        }
    }

    /// Reads one value to its end.
    fn values(&mut self) -> Scanned<()> {
        self.value()?;
        while self.go_on()? {
            self.value()?;
        }
        Ok(())
    }

    /// Reads a scalar, an empty container, or the begin of a container up to its first value.
    fn value(&mut self) -> Scanned<()> {
        let node = match self.rest {
            [b'"', tail @ ..] => {
                self.rest = tail;
                self.string()?
            }
            [b'-' | b'0'..=b'9', ..] => self.number()?,
            [b'{', tail @ ..] => return self.open(Kind::Object, tail),
            [b'[', tail @ ..] => return self.open(Kind::Array, tail),
            [b't', b'r', b'u', b'e', tail @ ..] => self.literal(Kind::True, tail),
            [b'f', b'a', b'l', b's', b'e', tail @ ..] => self.literal(Kind::False, tail),
            [b'n', b'u', b'l', b'l', tail @ ..] => self.literal(Kind::Null, tail),
            _ => return self.fail(Reason::Expected("a value")),
        };
        self.push(node);
        self.count_child();
        Ok(())
    }

    /// Goes from the end of a value to the next one, over ends of containers; false if that was
    /// the last. After a container's begin the next value is its first, and is there already.
    fn go_on(&mut self) -> Scanned<bool> {
        loop {
            let Some(open) = self.open.last() else { return Ok(false) };
            if open.children == 0 {
                return Ok(true);
            }
            let kind = open.kind;
            self.skip_space();
            match (self.rest, kind) {
                ([b',', tail @ ..], _) => {
                    self.rest = tail;
                    self.skip_space();
                    if kind == Kind::Object {
                        self.name()?;
                    }
                    return Ok(true);
                }
                ([b']', tail @ ..], Kind::Array) | ([b'}', tail @ ..], Kind::Object) => {
                    self.rest = tail;
                    self.close()?;
                }
                (_, Kind::Array) => return self.fail(Reason::Expected("',' or ']'")),
                _ => return self.fail(Reason::Expected("',' or '}'")),
            }
        }
    }

    fn literal(&mut self, kind: Kind, tail: &'t [u8]) -> Node {
        self.rest = tail;
        Node::new(kind, 0, 0)
    }

    fn open(&mut self, kind: Kind, tail: &'t [u8]) -> Scanned<()> {
        if self.open.len() >= self.depth_max {
            return self.fail(Reason::TooDeep);
        }
        self.rest = tail;
        let header = self.tape.nodes().len();
        self.push(Node::new(kind, 0, 1));
        self.skip_space();
        match (self.rest, kind) {
            ([b']', tail @ ..], Kind::Array) | ([b'}', tail @ ..], Kind::Object) => {
                self.rest = tail;
                self.count_child();
                return Ok(());
            }
            _ => {
                let names = Buckets::default();
                self.open.push(Open { kind, header, children: 0, names, may_repeat: false });
            }
        }
        if kind == Kind::Object { self.name() } else { Ok(()) }
    }

    fn close(&mut self) -> Scanned<()> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let span = self.tape.nodes().len().saturating_sub(open.header);
        if let Some(node) = self.tape.nodes_mut().get_mut(open.header) {
            *node = Node::new(open.kind, open.children, span);
        }
        if open.may_repeat {
            self.settle_names(open.header)?;
        }
        self.count_child();
        Ok(())
    }

    fn settle_names(&mut self, object: usize) -> Scanned<()> {
        let Some(repeats) = self.names.repeats(&self.tape, object) else { return Ok(()) };
        if self.strict {
            let name = self.tape.node(repeats.second);
            let text = String::from_utf8_lossy(self.tape.bytes(name)).into_owned();
            return Fault::fail(self.name_place(name), Reason::Repeated(text));
        }
        names::keep_last(&mut self.tape, object, &repeats);
        Ok(())
    }

    fn name_place(&self, name: Node) -> usize {
        if name.kind() == Kind::Plain {
            return name.first().saturating_sub(1);
        }
        let found = self.escaped_names.binary_search_by_key(&name.first(), |(begin, _)| *begin);
        found.ok().and_then(|found| self.escaped_names.get(found)).map_or(0, |(_, at)| *at)
    }

    fn count_child(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.children = open.children.wrapping_add(1);
        }
    }

    /// Reads a name and its colon.
    fn name(&mut self) -> Scanned<()> {
        let at = self.place();
        let [b'"', tail @ ..] = self.rest else {
            return self.fail(Reason::Expected("a name in quotes"));
        };
        self.rest = tail;
        let node = self.string()?;
        if self.strict && node.kind() != Kind::Plain {
            self.escaped_names.push((node.first(), at));
        }
        let name = match node.kind() {
            Kind::Plain => tail.get(..node.second()).unwrap_or_default(),
            _ => self.tape.bytes(node),
        };
        if let Some(open) = self.open.last_mut() {
            open.may_repeat |= open.names.meet(name);
        }
        self.push(node);
        self.skip_space();
        let [b':', tail @ ..] = self.rest else {
            return self.fail(Reason::Expected("':'"));
        };
        self.rest = tail;
        self.skip_space();
        Ok(())
    }

    /// Reads a string after its first quote.
    fn string(&mut self) -> Scanned<Node> {
        let (begin, whole) = (self.place(), self.rest);
        let len = plain_prefix(whole);
        let (run, tail) = whole.split_at_checked(len).unwrap_or_default();
        self.rest = tail;
        match tail {
            [b'"', after @ ..] => {
                check_length(begin, len)?;
                self.rest = after;
                Ok(Node::new(Kind::Plain, begin, len))
            }
            _ => self.string_with_escapes(begin, run),
        }
    }

    /// Reads on in a string that begins with `run`, into the buffer.
    #[inline(never)]
    fn string_with_escapes(&mut self, at: usize, run: &[u8]) -> Scanned<Node> {
        let mut out = std::mem::take(self.tape.unescaped_mut());
        let begin = out.len();
        out.extend_from_slice(run);
        loop {
            match self.rest {
                [b'"', tail @ ..] => {
                    self.rest = tail;
                    break;
                }
                [b'\\', ..] => self.escape(&mut out)?,
                [_, ..] => return self.fail(Reason::RawControl),
                [] => return self.fail(Reason::Expected("the quote that ends a string")),
            }
            let (run, tail) =
                self.rest.split_at_checked(plain_prefix(self.rest)).unwrap_or_default();
            out.extend_from_slice(run);
            self.rest = tail;
        }
        let bytes = out.get(begin..).unwrap_or_default();
        check_length(at, bytes.len())?;
        let kind = if is_plain(bytes) { Kind::Unescaped } else { Kind::Special };
        let node = Node::new(kind, begin, bytes.len());
        *self.tape.unescaped_mut() = out;
        Ok(node)
    }

    /// Reads one escape, or the two of a surrogate pair.
    fn escape(&mut self, out: &mut Vec<u8>) -> Scanned<()> {
        let [b'\\', letter, tail @ ..] = self.rest else {
            let end = Reason::Expected("an escaped character");
            return Fault::fail(self.text.len(), end);
        };
        let byte = match letter {
            b'"' | b'\\' | b'/' => *letter,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode_escape(out),
            _ => {
                let at = self.place().saturating_add(1);
                return Fault::fail(at, Reason::UnknownEscape);
            }
        };
        out.push(byte);
        self.rest = tail;
        Ok(())
    }

    fn unicode_escape(&mut self, out: &mut Vec<u8>) -> Scanned<()> {
        let at = self.place();
        let first = self.code_unit()?;
        let code = match (first, self.rest) {
            (0xd800..=0xdbff, [b'\\', b'u', ..]) => {
                let second = self.code_unit()?;
                let low = second.wrapping_sub(0xdc00);
                let high = first.wrapping_sub(0xd800) << 10;
                // A second half out of range must not turn into some other character.
                if low < 0x400 { (high | low).wrapping_add(0x1_0000) } else { first }
            }
            _ => first,
        };
        let Some(character) = char::from_u32(code) else {
            return Fault::fail(at, Reason::LoneSurrogate);
        };
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    /// Reads `\u` and four digits.
    fn code_unit(&mut self) -> Scanned<u32> {
        self.rest = self.rest.get(2..).unwrap_or_default();
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.rest.first().and_then(|byte| char::from(*byte).to_digit(16));
            let Some(digit) = digit else {
                return self.fail(Reason::Expected("four hexadecimal digits after \\u"));
            };
            code = code << 4 | digit;
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        Ok(code)
    }

    fn number(&mut self) -> Scanned<Node> {
        let begin = self.place();
        let whole = self.rest;
        match number_end(whole) {
            Ok(tail) => self.rest = tail,
            Err(tail) => {
                self.rest = tail;
                return self.fail(Reason::Expected("a digit"));
            }
        }
        let len = whole.len().wrapping_sub(self.rest.len());
        check_length(begin, len)?;
        Ok(Node::new(Kind::Number, begin, len))
    }

    fn skip_space(&mut self) {
        while let [b' ' | b'\n' | b'\r' | b'\t', tail @ ..] = self.rest {
            self.rest = tail;
        }
    }

    fn push(&mut self, node: Node) {
        let nodes = self.tape.nodes_mut();
        if nodes.len() == nodes.capacity() {
            // As many nodes a byte are expected ahead as came so far, so that the vector neither
            // doubles at the end of a long text nor believes a dense begin too much.
            let read = self.text.len().saturating_sub(self.rest.len());
            let ahead = self.rest.len().saturating_mul(nodes.len()).checked_div(read).unwrap_or(0);
            let margin = (ahead / 16).saturating_add(16);
            let most = nodes.len().saturating_mul(8);
            nodes.reserve_exact(ahead.saturating_add(margin).clamp(nodes.len() / 2, most).max(1));
        }
        nodes.push(node);
    }

    fn place(&self) -> usize {
        self.text.len().wrapping_sub(self.rest.len())
    }

    #[cold]
    fn fail<T>(&self, reason: Reason) -> Scanned<T> {
        Fault::fail(self.place(), reason)
    }
}

fn check_length(at: usize, len: usize) -> Scanned<()> {
    if len <= VALUE_BYTES_MAX { Ok(()) } else { Fault::fail(at, Reason::TooLong) }
}

/// What follows the number at the begin of `text`, or the rest from where it is wrong.
pub(crate) fn number_end(text: &[u8]) -> Result<&[u8], &[u8]> {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    // No digit follows a leading zero.
    let mut rest = unsigned.strip_prefix(b"0").map_or_else(|| digits_end(unsigned), Ok)?;
    if let [b'.', fraction @ ..] = rest {
        rest = digits_end(fraction)?;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let [b'+' | b'-', unsigned @ ..] = exponent else { return digits_end(exponent) };
        rest = digits_end(unsigned)?;
    }
    Ok(rest)
}

/// What follows the digits at the begin of `text`, of which there must be one.
fn digits_end(text: &[u8]) -> Result<&[u8], &[u8]> {
    let mut rest = text;
    while let [b'0'..=b'9', tail @ ..] = rest {
        rest = tail;
    }
    if rest.len() < text.len() { Ok(rest) } else { Err(text) }
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "a test may panic")]
mod tests;
