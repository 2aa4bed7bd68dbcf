//! The keys of records, and the text under which a collection's map has each: such that the order
//! of the texts is the order of the keys.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::json::escape::quoted;
use crate::key_text::{DIGITS, KeyName, integer_of, parse_uuid, text_of_uuid, uuid_of};
use crate::limits::RECORD_KEY_BYTES_MAX;
use crate::target::Target;
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

    /// A place in a collection's document as people write it: under the key as it is displayed.
    ///
    /// ```
    /// use duramen::{JsonPointer, KeyKind, Target};
    ///
    /// let stored = JsonPointer::parse("/-9223372036854775805/name")?;
    /// let shown = KeyKind::I64.shown_pointer(&stored);
    /// assert_eq!(shown.to_string(), "/-3/name");
    /// assert_eq!(KeyKind::I64.stored_target(&shown.into()), Target::Pointer(stored));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn shown_pointer(self, stored: &JsonPointer) -> JsonPointer {
        stored.with_first(|text| match self.key_of(text.as_bytes()) {
            Ok(key) => key.to_string(),
            Err(_) => text.to_owned(),
        })
    }

    /// The place in a collection's document that people mean by one: their text of a key is that
    /// of the key which [`KeyKind::parse`] makes of it. So 20 digits are what they are in the
    /// document, and a negative integer is itself. What is no key stays as it is, and so does an
    /// id or a JSONPath, which asks the document as it is.
    pub fn stored_target(self, shown: &Target) -> Target {
        let Target::Pointer(pointer) = shown else { return shown.clone() };
        let stored = |text: &str| Some(self.text_of(&self.parse(text).ok()?).ok()?.into_owned());
        pointer.with_first(|text| stored(text).unwrap_or_else(|| text.to_owned())).into()
    }

    /// An error of a place in a collection's document, which it names as people write it.
    #[must_use]
    pub fn shown_error(self, error: Error) -> Error {
        const BEGIN: &str = "\"/";
        if self == Self::Text {
            return error;
        }
        error.reworded(|message| {
            let mut parts = message.split(BEGIN);
            let mut told = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                let (text, rest) = part.split_at(part.find(['/', '"']).unwrap_or(part.len()));
                let key = self.key_of(text.as_bytes());
                let shown = key.map_or_else(|_| text.to_owned(), |key| key.to_string());
                told.extend([BEGIN, shown.as_str(), rest]);
            }
            told
        })
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
mod tests;
