//! The keys of records, and the text under which a collection's map has each: such that the order
//! of the texts is the order of the keys.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
use crate::json::escape::quoted;
use crate::key_text::{DIGITS, KeyName, integer_of, parse_uuid, text_of_uuid, uuid_of};
use crate::limits::RECORD_KEY_BYTES_MAX;
use crate::tree::missing::shorten;

/// The type of a collection's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyKind {
    /// UTF-8 of 1 to 1,024 bytes, in the order of the bytes.
    #[default]
    Text,
    /// Signed integers.
    I64,
    /// Unsigned integers.
    U64,
    /// UUIDs (RFC 9562), in the order of their bytes.
    Uuid,
}

/// The key of a record.
///
/// ```
/// use duramen::{Key, KeyKind};
///
/// assert_eq!(KeyKind::U64.parse("42")?, Key::U64(42));
/// assert!(KeyKind::U64.parse("forty-two").is_err());
/// let uuid = KeyKind::Uuid.parse("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")?;
/// assert_eq!(uuid.to_string(), "f81d4fae-7dec-11d0-a765-00a0c91e6bf6");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A text.
    Text(String),
    /// A signed integer.
    I64(i64),
    /// An unsigned integer.
    U64(u64),
    /// A UUID, its first byte the highest.
    Uuid(u128),
}

impl KeyKind {
    const NAMES: [(Self, &str); 4] =
        [(Self::Text, "string"), (Self::I64, "i64"), (Self::U64, "u64"), (Self::Uuid, "uuid")];

    /// Reads a key as people write it: an integer in decimal, a UUID with hyphens.
    pub fn parse(self, text: &str) -> Result<Key> {
        let key = match self {
            Self::Text => Some(Key::Text(text.to_owned())),
            Self::I64 => text.parse().ok().map(Key::I64),
            Self::U64 => text.parse().ok().map(Key::U64),
            Self::Uuid => parse_uuid(text).map(Key::Uuid),
        };
        let key = key.ok_or_else(|| self.mismatch(&format!("{text:?}")))?;
        key.check_length()?;
        Ok(key)
    }

    /// The text that the map has a key under; `Invalid` if it is of another type.
    pub(crate) fn text_of(self, key: &Key) -> Result<Cow<'_, str>> {
        Ok(match self.name_of(key)? {
            KeyName::Text(text) => Cow::Borrowed(text),
            name => Cow::Owned(str_of(name.bytes(&mut [0; DIGITS])).to_owned()),
        })
    }

    /// The same where it stands.
    #[inline]
    pub(crate) fn name_of(self, key: &Key) -> Result<KeyName<'_>> {
        key.check_length()?;
        let integer = match (self, key) {
            (Self::Text, Key::Text(text)) => return Ok(KeyName::Text(text)),
            (Self::Uuid, Key::Uuid(uuid)) => return Ok(KeyName::Uuid(text_of_uuid(*uuid))),
            (Self::I64, Key::I64(key)) => Some(i128::from(*key)),
            (Self::U64, Key::U64(key)) => Some(i128::from(*key)),
            (Self::I64, Key::U64(key)) => i64::try_from(*key).ok().map(i128::from),
            (Self::U64, Key::I64(key)) => u64::try_from(*key).ok().map(i128::from),
            _ => None,
        };
        integer.map(KeyName::Integer).ok_or_else(|| self.mismatch(&key.to_string()))
    }

    /// The key that the map has under a text.
    #[inline]
    pub(crate) fn key_of(self, text: &[u8]) -> Result<Key> {
        let key = match self {
            Self::Text => str::from_utf8(text).ok().map(|text| Key::Text(text.to_owned())),
            Self::I64 => integer_of(text).and_then(|key| i64::try_from(key).ok()).map(Key::I64),
            Self::U64 => integer_of(text).and_then(|key| u64::try_from(key).ok()).map(Key::U64),
            Self::Uuid => uuid_of(text).map(Key::Uuid),
        };
        match key {
            Some(key) if key.check_length().is_ok() => Ok(key),
            _ => Err(self.no_key(text)),
        }
    }

    #[cold]
    fn no_key(self, text: &[u8]) -> Error {
        let text = String::from_utf8_lossy(text);
        let message = format!(
            "{text:?} is no key of the collection: a member of a collection stands under the \
             text of a key of the type {self}"
        );
        Error::new(ErrorKind::Invalid, message)
    }

    /// Whether a key has this text.
    #[inline]
    pub(crate) fn has(self, text: &[u8]) -> bool {
        match self {
            Self::Text => {
                (1..=RECORD_KEY_BYTES_MAX).contains(&text.len()) && str::from_utf8(text).is_ok()
            }
            Self::I64 => integer_of(text).is_some_and(|key| i64::try_from(key).is_ok()),
            Self::U64 => integer_of(text).is_some_and(|key| u64::try_from(key).is_ok()),
            Self::Uuid => uuid_of(text).is_some(),
        }
    }

    /// Refuses a text that no key has.
    pub(crate) fn check(self, text: &str) -> Result<()> {
        if self.has(text.as_bytes()) { Ok(()) } else { Err(self.no_key(text.as_bytes())) }
    }

    /// The key that the map has under a text, as people write it.
    pub(crate) fn shown(self, text: &str) -> String {
        match self.key_of(text.as_bytes()) {
            Ok(key) if self != Self::Text => key.to_string(),
            _ => quoted(text),
        }
    }

    /// Refuses keys that are no strings, so that none begins with another.
    pub(crate) fn check_prefixes(self) -> Result<()> {
        if self == Self::Text {
            return Ok(());
        }
        let message = format!("keys of the type {self} have no prefixes: give a range instead");
        Err(Error::new(ErrorKind::Invalid, message))
    }

    fn mismatch(self, found: &str) -> Error {
        let found = shorten(found.as_bytes());
        let message = format!("the key {found} is not of the collection's key type, {self}");
        Error::new(ErrorKind::Invalid, message)
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(kind, _)| kind == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

impl FromStr for KeyKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::NAMES.iter().find(|(_, name)| *name == text);
        found.map(|(kind, _)| *kind).ok_or_else(|| {
            let message = format!(
                "there are no keys of the type {text:?}: use string, i64, u64 or \
                                   uuid"
            );
            Error::new(ErrorKind::Invalid, message)
        })
    }
}

impl Key {
    #[inline]
    fn check_length(&self) -> Result<()> {
        match self {
            Self::Text(text) if !(1..=RECORD_KEY_BYTES_MAX).contains(&text.len()) => {
                Err(Self::wrong_length(text))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn wrong_length(text: &str) -> Error {
        let why = match text.len() {
            0 => "is empty".to_owned(),
            len => format!("has {len} bytes"),
        };
        let shown: String = text.chars().take(32).collect();
        let message = format!("the key {shown:?} {why}: keys have 1 to 1,024 bytes");
        Error::new(ErrorKind::Invalid, message)
    }
}

/// As people write it.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::I64(key) => key.fmt(f),
            Self::U64(key) => key.fmt(f),
            Self::Uuid(uuid) => f.write_str(str_of(&text_of_uuid(*uuid))),
        }
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i32> for Key {
    fn from(key: i32) -> Self {
        Self::I64(key.into())
    }
}

impl From<i64> for Key {
    fn from(key: i64) -> Self {
        Self::I64(key)
    }
}

impl From<u64> for Key {
    fn from(key: u64) -> Self {
        Self::U64(key)
    }
}

impl From<&Self> for Key {
    fn from(key: &Self) -> Self {
        key.clone()
    }
}

/// Digits and signs as a text.
fn str_of(ascii: &[u8]) -> &str {
    str::from_utf8(ascii).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_keys_are_in_the_order_of_the_keys_and_lead_back_to_them() {
        let signed = [i64::MIN, i64::MIN + 1, -10, -9, -1, 0, 1, 9, 10, i64::MAX].map(Key::I64);
        let unsigned = [0, 1, 9, 10, u64::MAX - 1, u64::MAX].map(Key::U64);
        let uuids = [0, 1, 1 << 64, u128::MAX].map(Key::Uuid);
        let texts = ["\u{1}", "a", "aa", "b", "\u{e9}"].map(Key::from);
        let kinds = [
            (KeyKind::I64, &signed[..]),
            (KeyKind::U64, &unsigned[..]),
            (KeyKind::Uuid, &uuids[..]),
            (KeyKind::Text, &texts[..]),
        ];
        for (kind, keys) in kinds {
            let texts: Vec<_> = keys.iter().map(|key| kind.text_of(key).unwrap()).collect();
            assert!(texts.is_sorted() && texts.len() == keys.len(), "{texts:?}");
            for (key, text) in keys.iter().zip(&texts) {
                assert_eq!(kind.key_of(text.as_bytes()).unwrap(), *key);
                assert_eq!(kind.parse(&key.to_string()).unwrap(), *key);
            }
        }
    }

    #[test]
    fn what_has_a_key_is_what_is_read_as_one() {
        let long = "k".repeat(RECORD_KEY_BYTES_MAX + 1);
        let texts: [&[u8]; 12] = [
            b"",
            b"k",
            &long.as_bytes()[1..],
            long.as_bytes(),
            b"\xff",
            b"00000000000000000042",
            b"18446744073709551615",
            b"-0000000000000000001",
            b"-9223372036854775808",
            b"f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            b"F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6",
            b"f81d4fae07dec011d00a765000a0c91e6bf6",
        ];
        for (kind, had) in
            [(KeyKind::Text, 9), (KeyKind::I64, 2), (KeyKind::U64, 2), (KeyKind::Uuid, 1)]
        {
            let read = texts.map(|text| kind.key_of(text).is_ok());
            assert_eq!(texts.map(|text| kind.has(text)), read, "{kind}");
            assert_eq!(read.iter().filter(|read| **read).count(), had, "{kind}");
        }
    }

    #[test]
    fn integers_fit_the_other_integer_type_where_it_has_them() {
        assert!(KeyKind::U64.text_of(&Key::I64(7)).is_ok());
        assert!(KeyKind::I64.text_of(&Key::U64(7)).is_ok());
        assert!(KeyKind::U64.text_of(&Key::I64(-7)).is_err());
        assert!(KeyKind::I64.text_of(&Key::U64(u64::MAX)).is_err());
    }

    #[test]
    fn keys_that_are_empty_too_long_or_of_another_type_are_refused() {
        let long = "k".repeat(RECORD_KEY_BYTES_MAX + 1);
        for (kind, text) in [
            (KeyKind::Text, ""),
            (KeyKind::Text, long.as_str()),
            (KeyKind::I64, "x"),
            (KeyKind::U64, "-1"),
            (KeyKind::Uuid, "f81d4fae7dec11d0a76500a0c91e6bf6"),
            (KeyKind::Uuid, "f81d4fae-7dec-11d0-a765-00a0c91e6bfg"),
        ] {
            assert_eq!(kind.parse(text).unwrap_err().kind(), ErrorKind::Invalid, "{kind} {text}");
        }
        assert!(KeyKind::Text.parse(&long[1..]).is_ok());
        let other = KeyKind::Uuid.text_of(&Key::from("a")).unwrap_err();
        assert_eq!(other.message(), "the key a is not of the collection's key type, uuid");
        assert!(KeyKind::I64.key_of(b"7").is_err(), "not the text of a key");
        let long = KeyKind::I64.parse(&"x".repeat(100_000)).unwrap_err();
        assert!(long.message().len() < 200, "it is cut: {long}");
        assert!("int".parse::<KeyKind>().is_err());
    }
}
