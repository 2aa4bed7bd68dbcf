//! Reads values whose objects have shapes that came before at their place, without looking names
//! up: a guess that the text either bears out byte by byte, or that is given up.
//!
//! Records of one kind spell their names alike, so the next name is one of the few that followed
//! the one before. A tree of names by what followed what is kept for each path of objects. What
//! a guess gives up on (other names, escapes, long strings) is parsed.
//!
//! Invariant: what is read is exactly what the parser would read: JSON without a repeated name,
//! for no shape has one, whose objects have shapes of the schema, and no container is deeper than
//! those of the schema.

use crate::json::{escape, number_end};
use crate::limits::{EXTENT_ITEMS_MAX, INLINE_BYTES_MAX};
use crate::node::PathId;
use crate::state::ShapeId;
use crate::tree::schema::{Schema, index_u32};

/// Names that may follow a name: more are looked up faster than tried.
const FOLLOWERS_MAX: usize = 16;
/// Nodes of all trees of names.
const NODES_MAX: usize = 1 << 16;
/// Digits that every 64-bit integer has room for.
const SAFE_DIGITS: usize = 18;

/// A value that was read, in the order of the text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Token {
    Null,
    Bool(bool),
    Int(i64),
    /// Any other number.
    Number {
        at: u32,
        len: u32,
    },
    /// A string that needs no escapes.
    Text {
        at: u32,
        len: u32,
    },
    /// Its fields' values follow.
    Object(ShapeId),
    /// An array of a path of elements, which follow.
    Array {
        path: PathId,
        len: u32,
    },
}

/// What followed the names before it.
#[derive(Debug, Default)]
struct Names {
    followers: Vec<Follower>,
    /// The shape of an object that ends here.
    shape: Option<ShapeId>,
}

/// A name that followed.
#[derive(Debug, Clone, Copy)]
struct Follower {
    field: PathId,
    /// The node behind it.
    next: u32,
    /// The first bytes of the name as it is printed, and which bits of a long word they are:
    /// comparing these costs less than a call (benchmark A0).
    word: u128,
    mask: u128,
    /// Bytes of the name if these are all.
    len: Option<usize>,
}

impl Follower {
    fn new(schema: &Schema, field: PathId, next: usize) -> Self {
        let name = schema.rendered_path(field);
        let mut bytes = [0; size_of::<u128>()];
        let len = name.len().min(bytes.len());
        bytes[..len].copy_from_slice(&name[..len]);
        let mut mask = [0; size_of::<u128>()];
        mask[..len].fill(u8::MAX);
        let (word, mask) = (u128::from_le_bytes(bytes), u128::from_le_bytes(mask));
        let len = (name.len() <= bytes.len()).then_some(name.len());
        Self { field, next: index_u32(next), word, mask, len }
    }

    /// What comes behind the name, if the text begins with it.
    #[inline]
    fn strip<'t>(&self, schema: &Schema, text: &'t [u8]) -> Option<&'t [u8]> {
        if let Some(first) = text.first_chunk() {
            if (u128::from_le_bytes(*first) ^ self.word) & self.mask != 0 {
                return None;
            }
            if let Some(len) = self.len {
                return text.get(len..);
            }
        }
        text.strip_prefix(schema.rendered_path(self.field))
    }
}

/// The shapes that came so far, by path and names, and the tokens of the last value read.
#[derive(Debug, Default)]
pub(super) struct Guesses {
    nodes: Vec<Names>,
    /// By path of objects: the node before the first name, counted from 1.
    roots: Vec<u32>,
    tokens: Vec<Token>,
    /// Whether white space was passed in the last value, or it was not read.
    may_span_lines: bool,
}

impl Guesses {
    /// Takes note of a shape at a path.
    pub(super) fn learn(
        &mut self,
        schema: &Schema,
        object: PathId,
        (fields, shape): (&[PathId], ShapeId),
    ) {
        let index = object.0 as usize;
        if self.nodes.len() + fields.len() >= NODES_MAX {
            return;
        }
        if index >= self.roots.len() {
            self.roots.resize(index + 1, 0);
        }
        if self.roots[index] == 0 {
            self.nodes.push(Names::default());
            self.roots[index] = index_u32(self.nodes.len());
        }
        let mut at = self.roots[index] as usize - 1;
        for &field in fields {
            let followers = &self.nodes[at].followers;
            at = match followers.iter().find(|follower| follower.field == field) {
                Some(follower) => follower.next as usize,
                None if followers.len() >= FOLLOWERS_MAX => return,
                None => {
                    let next = self.nodes.len();
                    self.nodes.push(Names::default());
                    self.nodes[at].followers.push(Follower::new(schema, field, next));
                    next
                }
            };
        }
        self.nodes[at].shape = Some(shape);
    }

    /// Reads a value of a path at the begin of a text: its bytes, if it is as guessed.
    pub(super) fn read(&mut self, schema: &Schema, path: PathId, text: &[u8]) -> Option<usize> {
        self.tokens.clear();
        self.may_span_lines = true;
        if u32::try_from(text.len()).is_err() || !matches!(text.first(), Some(b'{' | b'[')) {
            return None;
        }
        let Self { nodes, roots, tokens, may_span_lines } = self;
        let mut reading =
            Reading { nodes, roots, schema, tokens, text, rest: text, passed_space: false };
        reading.value(path)?;
        *may_span_lines = reading.passed_space;
        Some(text.len() - reading.rest.len())
    }

    /// Whether there may be the end of a line in the value that was to be read last.
    pub(super) fn may_span_lines(&self) -> bool {
        self.may_span_lines
    }

    /// The value of a field of the object that was read last, or what it begins with.
    pub(super) fn field(&self, schema: &Schema, field: PathId) -> Option<Token> {
        let (Token::Object(shape), mut tokens) = self.tokens.split_first()? else { return None };
        for known in schema.shape(*shape) {
            if known.path == field {
                return tokens.first().copied();
            }
            tokens = behind_value(schema, tokens);
        }
        None
    }

    /// The values that were read last.
    pub(super) fn tokens(&self) -> &[Token] {
        &self.tokens
    }
}

/// What is behind the value that tokens begin with.
fn behind_value<'t>(schema: &Schema, tokens: &'t [Token]) -> &'t [Token] {
    let Some((first, rest)) = tokens.split_first() else { return tokens };
    let children = match *first {
        Token::Object(shape) => schema.shape(shape).len(),
        Token::Array { len, .. } => len as usize,
        _ => 0,
    };
    (0..children).fold(rest, |rest, _| behind_value(schema, rest))
}

struct Reading<'a> {
    nodes: &'a [Names],
    roots: &'a [u32],
    schema: &'a Schema,
    tokens: &'a mut Vec<Token>,
    text: &'a [u8],
    rest: &'a [u8],
    passed_space: bool,
}

impl Reading<'_> {
    fn value(&mut self, path: PathId) -> Option<()> {
        let token = match self.rest {
            [b'"', tail @ ..] => {
                let at = self.at() + 1;
                let len = escape::plain_prefix(tail.get(..INLINE_BYTES_MAX + 1).unwrap_or(tail));
                self.rest = tail.get(len..)?.strip_prefix(b"\"")?;
                Token::Text { at, len: index_u32(len) }
            }
            [b'-' | b'0'..=b'9', ..] => self.number()?,
            [b'{', tail @ ..] => {
                self.rest = tail;
                return self.object(path);
            }
            [b'[', tail @ ..] => {
                self.rest = tail;
                return self.array(path);
            }
            [b't', b'r', b'u', b'e', tail @ ..] => {
                self.rest = tail;
                Token::Bool(true)
            }
            [b'f', b'a', b'l', b's', b'e', tail @ ..] => {
                self.rest = tail;
                Token::Bool(false)
            }
            [b'n', b'u', b'l', b'l', tail @ ..] => {
                self.rest = tail;
                Token::Null
            }
            _ => return None,
        };
        self.tokens.push(token);
        Some(())
    }

    fn number(&mut self) -> Option<Token> {
        let (negative, unsigned) = match self.rest {
            [b'-', tail @ ..] => (true, tail),
            text => (false, text),
        };
        let mut value = 0_i64;
        let mut digits = 0;
        while let Some(digit @ b'0'..=b'9') = unsigned.get(digits) {
            if digits == SAFE_DIGITS {
                return self.other_number();
            }
            value = value * 10 + i64::from(digit - b'0');
            digits += 1;
        }
        let is_leading_zero = digits > 1 && unsigned.first() == Some(&b'0');
        let is_more = matches!(unsigned.get(digits), Some(b'.' | b'e' | b'E') | None);
        if digits == 0 || is_leading_zero || is_more || (negative && value == 0) {
            return self.other_number();
        }
        self.rest = &unsigned[digits..];
        Some(Token::Int(if negative { -value } else { value }))
    }

    #[cold]
    fn other_number(&mut self) -> Option<Token> {
        let (at, whole) = (self.at(), self.rest);
        let tail = number_end(whole).ok().filter(|tail| !tail.is_empty())?;
        self.rest = tail;
        let len = whole.len() - tail.len();
        (len <= INLINE_BYTES_MAX).then_some(Token::Number { at, len: index_u32(len) })
    }

    fn object(&mut self, path: PathId) -> Option<()> {
        let root = self.roots.get(path.0 as usize)?.checked_sub(1)?;
        let mut names = &self.nodes[root as usize];
        let begin = self.tokens.len();
        // Which shape it is shows at its end.
        self.tokens.push(Token::Null);
        self.skip_space();
        if let [b'}', tail @ ..] = self.rest {
            self.rest = tail;
        } else {
            loop {
                let (field, next) = self.name(names)?;
                names = &self.nodes[next as usize];
                self.skip_space();
                self.value(field)?;
                if self.is_end(b'}')? {
                    break;
                }
            }
        }
        self.tokens[begin] = Token::Object(names.shape?);
        Some(())
    }

    /// Goes on behind a name that may follow.
    #[inline]
    fn name(&mut self, names: &Names) -> Option<(PathId, u32)> {
        let rest = self.rest;
        let (follower, tail) = names
            .followers
            .iter()
            .find_map(|follower| Some((follower, follower.strip(self.schema, rest)?)))?;
        self.rest = tail;
        Some((follower.field, follower.next))
    }

    fn array(&mut self, path: PathId) -> Option<()> {
        let path = self.schema.path(path).element?;
        let begin = self.tokens.len();
        self.tokens.push(Token::Array { path, len: 0 });
        self.skip_space();
        if let [b']', tail @ ..] = self.rest {
            self.rest = tail;
            return Some(());
        }
        let mut len = 0;
        loop {
            self.value(path)?;
            len += 1;
            if self.is_end(b']')? {
                break;
            }
        }
        self.tokens[begin] = Token::Array { path, len };
        (len <= EXTENT_ITEMS_MAX).then_some(())
    }

    /// Goes on behind the comma after a child, or behind the end of its container.
    #[inline]
    fn is_end(&mut self, end: u8) -> Option<bool> {
        self.skip_space();
        match self.rest {
            [b',', tail @ ..] => {
                self.rest = tail;
                self.skip_space();
                Some(false)
            }
            [byte, tail @ ..] if *byte == end => {
                self.rest = tail;
                Some(true)
            }
            _ => None,
        }
    }

    #[inline]
    fn skip_space(&mut self) {
        // Most texts have none, which one comparison tells.
        if self.rest.first().is_some_and(|byte| *byte <= b' ') {
            self.skip_some_space();
        }
    }

    fn skip_some_space(&mut self) {
        self.passed_space = true;
        while let [b' ' | b'\n' | b'\r' | b'\t', tail @ ..] = self.rest {
            self.rest = tail;
        }
    }

    #[inline]
    fn at(&self) -> u32 {
        index_u32(self.text.len() - self.rest.len())
    }
}
