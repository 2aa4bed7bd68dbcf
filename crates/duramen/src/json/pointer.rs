//! JSON Pointer (RFC 6901): the way from a document's root to one value.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};

/// A JSON Pointer (RFC 6901), such as `/players/3/name`. The empty one means the whole document.
///
/// ```
/// use duramen::JsonPointer;
///
/// let pointer: JsonPointer = "/a~1b/0".parse()?;
/// assert_eq!(pointer.tokens().collect::<Vec<_>>(), ["a/b", "0"]);
/// assert_eq!(pointer.to_string(), "/a~1b/0");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonPointer {
    tokens: Vec<String>,
}

/// The element of an array that a token means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayIndex {
    /// The element with this index, from 0; indexes that no machine can count to are the largest.
    At(usize),
    /// `-`: the place after the last element.
    End,
}

impl JsonPointer {
    /// The pointer to the whole document.
    pub const fn root() -> Self {
        Self { tokens: Vec::new() }
    }

    /// Reads a pointer; [`ErrorKind::Invalid`] if it neither is empty nor begins with `/`, or has
    /// a `~` that neither `0` nor `1` follows.
    pub fn parse(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Ok(Self::root());
        }
        let Some(tokens) = text.strip_prefix('/') else {
            return Err(invalid(text, "it is not empty and does not begin with '/'"));
        };
        let unescaped = tokens.split('/').map(unescape).collect::<Option<Vec<_>>>();
        match unescaped {
            Some(tokens) => Ok(Self { tokens }),
            None => Err(invalid(text, "a '~' must be written ~0, and a '/' in a name ~1")),
        }
    }

    /// The names and indexes from the root on, unescaped.
    pub fn tokens(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.tokens.iter().map(String::as_str)
    }

    /// Whether this is the whole document.
    pub fn is_root(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Goes one level down, to the field or element that the unescaped `token` names.
    pub fn push(&mut self, token: impl Into<String>) {
        self.tokens.push(token.into());
    }

    /// Goes one level up; the root stays where it is.
    pub fn pop(&mut self) {
        self.tokens.pop();
    }

    /// The value that contains this one; nothing for the root.
    pub fn parent(&self) -> Option<Self> {
        let (_, tokens) = self.tokens.split_last()?;
        Some(Self { tokens: tokens.to_vec() })
    }

    /// The field or element that the unescaped `token` names, one level down.
    pub(crate) fn child(&self, token: impl Into<String>) -> Self {
        self.below(&[token.into()])
    }

    /// The place that further tokens lead to.
    pub(crate) fn below(&self, tokens: &[String]) -> Self {
        Self { tokens: [self.tokens.as_slice(), tokens].concat() }
    }

    /// The tokens that lead on from `ancestor`, none if it is this place; nothing if this place is
    /// not in it.
    pub(crate) fn tokens_from(&self, ancestor: &Self) -> Option<&[String]> {
        self.tokens.strip_prefix(ancestor.tokens.as_slice())
    }

    /// The same place under another first token; the root stays what it is.
    pub(crate) fn with_first(&self, first: impl FnOnce(&str) -> String) -> Self {
        match self.tokens.split_first() {
            Some((token, rest)) => Self { tokens: [[first(token)].as_slice(), rest].concat() },
            None => Self::root(),
        }
    }

    /// The last token, unescaped; nothing for the root.
    pub fn last(&self) -> Option<&str> {
        self.tokens.last().map(String::as_str)
    }
}

impl ArrayIndex {
    /// The element that `token` means: digits without a leading zero, or `-`.
    pub fn parse(token: &str) -> Option<Self> {
        match token.as_bytes() {
            b"-" => Some(Self::End),
            b"0" => Some(Self::At(0)),
            [b'1'..=b'9', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => {
                Some(Self::At(token.parse().unwrap_or(usize::MAX)))
            }
            _ => None,
        }
    }
}

fn invalid(text: &str, reason: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("{text:?} is not a JSON Pointer: {reason}"))
}

fn unescape(token: &str) -> Option<String> {
    let mut out = String::with_capacity(token.len());
    let mut parts = token.split('~');
    out.push_str(parts.next()?);
    for part in parts {
        let (escaped, rest) = match part.as_bytes().first()? {
            b'0' => ('~', part.strip_prefix('0')?),
            b'1' => ('/', part.strip_prefix('1')?),
            _ => return None,
        };
        out.push(escaped);
        out.push_str(rest);
    }
    Some(out)
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for token in &self.tokens {
            write!(f, "/{}", token.replace('~', "~0").replace('/', "~1"))?;
        }
        Ok(())
    }
}

impl FromStr for JsonPointer {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for JsonPointer {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_the_rfc_reads_and_prints_the_same() {
        let examples: [(&str, &[&str]); 9] = [
            ("", &[]),
            ("/foo", &["foo"]),
            ("/foo/0", &["foo", "0"]),
            ("/", &[""]),
            ("/a~1b", &["a/b"]),
            ("/m~0n", &["m~n"]),
            ("/~01", &["~1"]),
            ("/ ", &[" "]),
            ("//a/", &["", "a", ""]),
        ];
        for (text, tokens) in examples {
            let pointer = JsonPointer::parse(text).unwrap();
            assert_eq!(pointer.tokens().collect::<Vec<_>>(), tokens, "{text}");
            assert_eq!(pointer.to_string(), text);
            assert_eq!(JsonPointer::try_from(text).unwrap(), text.parse().unwrap());
        }
    }

    #[test]
    fn a_missing_slash_and_a_wrong_escape_are_invalid() {
        for text in ["a", "a/b", "#/a", "/~", "/a~", "/~2", "/a/~~1", "/~\u{e9}"] {
            let error = JsonPointer::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
            assert!(error.message().contains("JSON Pointer"), "{error}");
        }
    }

    #[test]
    fn an_array_index_has_no_sign_and_no_leading_zero() {
        assert_eq!(ArrayIndex::parse("0"), Some(ArrayIndex::At(0)));
        assert_eq!(ArrayIndex::parse("120"), Some(ArrayIndex::At(120)));
        assert_eq!(ArrayIndex::parse("-"), Some(ArrayIndex::End));
        let beyond = "99999999999999999999999";
        assert_eq!(ArrayIndex::parse(beyond), Some(ArrayIndex::At(usize::MAX)));
        for token in ["", "00", "01", "-1", "+1", "1a", "1.0", " 1", "--", "\u{0661}"] {
            assert_eq!(ArrayIndex::parse(token), None, "{token}");
        }
    }

    #[test]
    fn push_and_parent_undo_each_other() {
        let mut pointer = JsonPointer::root();
        assert_eq!((pointer.parent(), pointer.last(), pointer.is_root()), (None, None, true));
        pointer.push("a/b~c");
        pointer.push("2".to_owned());
        assert_eq!(pointer.to_string(), "/a~1b~0c/2");
        assert_eq!(pointer.last(), Some("2"));
        assert_eq!(pointer.parent().map(|parent| parent.to_string()).as_deref(), Some("/a~1b~0c"));
    }
}
