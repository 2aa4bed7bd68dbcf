//! A hash of a whole document: the same for the same value, whatever it is stored as.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::Snapshot;
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::schema::ROOT;
use crate::tree::serialize::Format;

/// The SHA-256 (FIPS 180-4) of a revision's compact JSON text, as [`Snapshot::to_json`] gives it.
///
/// Revisions with the same text have the same hash, in any database; the order of an object's
/// members and the digits of a number are part of the text. It prints as 64 hexadecimal digits,
/// as `sha256sum` does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The hash of a JSON text.
    ///
    /// ```
    /// use duramen::{CommitOptions, ContentHash, Database};
    ///
    /// let config = Database::memory()?.create_document("config")?;
    /// config.put(r#"{ "port": 8080 }"#, &CommitOptions::default())?;
    /// let hash = ContentHash::of_json(br#"{"port":8080}"#);
    /// assert_eq!(config.head()?.content_hash()?, hash);
    /// assert_eq!(hash.to_string().parse::<ContentHash>()?, hash);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn of_json(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// The hash that has these bytes.
    pub(crate) const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ContentHash {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digit =
            |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let bytes: Option<Vec<u8>> = text
            .as_bytes()
            .chunks(2)
            .map(|pair| match *pair {
                [high, low] => Some(digit(high)? << 4 | digit(low)?),
                _ => None,
            })
            .collect();
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or_else(|| {
            let message = format!("{text:?} is no content hash: give its 64 hexadecimal digits");
            Error::new(ErrorKind::Invalid, message)
        })
    }
}

/// Hashes what is written to it.
struct Hasher {
    digest: Sha256,
    bytes: usize,
    /// From more bytes on nothing more is taken.
    bytes_max: usize,
}

impl Hasher {
    fn new(bytes_max: usize) -> Self {
        Self { digest: Sha256::new(), bytes: 0, bytes_max }
    }

    fn is_over(&self) -> bool {
        self.bytes > self.bytes_max
    }

    fn finish(self) -> ContentHash {
        ContentHash(self.digest.finalize().into())
    }
}

impl Write for Hasher {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(buf.len());
        if self.is_over() {
            return Err(io::Error::other("the text is longer than what is hashed"));
        }
        self.digest.update(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Tree {
    /// The hash of the whole value at a revision, printed piece by piece (benchmark X1).
    pub(crate) fn content_hash(&self, revision: u32) -> Result<ContentHash> {
        let mut hasher = Hasher::new(usize::MAX);
        self.write_json((node(ROOT, 0), revision), &Format::default(), &mut hasher)?;
        Ok(hasher.finish())
    }

    /// The same if the text has at most so many bytes, and how many bytes were printed for it.
    pub(crate) fn content_hash_within(
        &self,
        revision: u32,
        bytes_max: usize,
    ) -> (Result<Option<ContentHash>>, usize) {
        let mut hasher = Hasher::new(bytes_max);
        let root = (node(ROOT, 0), revision);
        let written = self.write_json(root, &Format::default(), &mut hasher);
        let bytes = hasher.bytes;
        match written {
            Err(_) if hasher.is_over() => (Ok(None), bytes),
            written => (written.map(|()| Some(hasher.finish())), bytes),
        }
    }
}

impl Snapshot {
    /// The hash of the whole document, which is read for it: what checkpoints and tags keep is
    /// there to be compared with.
    pub fn content_hash(&self) -> Result<ContentHash> {
        let (tree, revision) = self.place();
        tree.content_hash(revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first test vector of FIPS 180-4 (NIST, "SHA-256 example, one-block message").
    #[test]
    fn it_is_sha_256_and_prints_as_such() {
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let hash = ContentHash::of_json(b"abc");
        assert_eq!(hash.to_string(), text);
        assert_eq!(text.to_uppercase().parse::<ContentHash>().unwrap(), hash);
    }

    #[test]
    fn what_has_not_64_digits_is_no_hash() {
        let long = "0".repeat(65);
        for text in ["", "ab", &long, &long[..63], &"g".repeat(64), &"\u{e4}".repeat(32)] {
            assert_eq!(
                text.parse::<ContentHash>().unwrap_err().kind(),
                ErrorKind::Invalid,
                "{text}"
            );
        }
    }
}
