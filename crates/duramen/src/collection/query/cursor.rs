//! Cursors: where a page of a query ends, as a text that only its own query takes back.
//!
//! A cursor is a byte that says on which side of the place it goes on, the key of a record in the
//! query's order, and the first 16 bytes of a HMAC-SHA-256 (RFC 2104) over these, the collection
//! and the query, under the database's id; in base64url (RFC 4648, 5) without padding.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::limits::{ORDER_PATHS_MAX, ORDER_VALUE_BYTES_MAX};

/// Bytes of the seal that are kept.
const SEAL_BYTES: usize = 16;

/// Bytes of a block of SHA-256.
const BLOCK_BYTES: usize = 64;

/// No cursor that was given out is longer.
const TEXT_BYTES_MAX: usize = 2 * (ORDER_PATHS_MAX * (ORDER_VALUE_BYTES_MAX + 1) + 64);

/// On which side of a place a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    After,
    AtOrAfter,
    Before,
    AtOrBefore,
}

/// A place in the order of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) side: Side,
    pub(super) key: Vec<u8>,
}

/// What cursors are good for, the collection and the query: the two hashes of their seals, as far
/// as these are the same in all.
#[derive(Debug)]
pub(super) struct Scope {
    inner: Sha256,
    outer: Sha256,
}

impl Side {
    const NUMBERS: [(Self, u8); 4] =
        [(Self::After, 0), (Self::AtOrAfter, 1), (Self::Before, 2), (Self::AtOrBefore, 3)];

    fn number(self) -> u8 {
        Self::NUMBERS.iter().find(|(side, _)| *side == self).map_or(0, |(_, number)| *number)
    }

    fn of(number: u8) -> Option<Self> {
        Self::NUMBERS.iter().find(|(_, known)| *known == number).map(|(side, _)| *side)
    }

    /// Whether the page is read from its end.
    pub(super) fn is_backward(self) -> bool {
        matches!(self, Self::Before | Self::AtOrBefore)
    }

    /// Whether the place itself belongs to it.
    pub(super) fn includes_place(self) -> bool {
        matches!(self, Self::AtOrAfter | Self::AtOrBefore)
    }
}

impl Cursor {
    pub(super) fn write(&self, scope: &Scope) -> String {
        let mut bytes = vec![self.side.number()];
        bytes.extend_from_slice(&self.key);
        let seal = scope.seal(&bytes);
        bytes.extend_from_slice(&seal);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a cursor; `Invalid` if it is none of the query.
    pub(super) fn read(text: &str, scope: &Scope) -> Result<Self> {
        Self::decode(text, scope).ok_or_else(|| {
            let message = "this is no cursor of the query: take one that a page of the same \
                           collection, filter and order gave, as it is, or begin without one";
            Error::new(ErrorKind::Invalid, message)
        })
    }

    fn decode(text: &str, scope: &Scope) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let (sealed, seal) = bytes.split_at_checked(bytes.len().checked_sub(SEAL_BYTES)?)?;
        let difference = scope.seal(sealed).iter().zip(seal).fold(0, |all, (a, b)| all | (a ^ b));
        let (side, key) = sealed.split_first()?;
        let side = Side::of(*side)?;
        (difference == 0).then(|| Self { side, key: key.to_vec() })
    }
}

impl Scope {
    /// A query of the collection that a tree of a database is.
    pub(super) fn new(database: u128, tree: u64, query: &str) -> Self {
        let mut key = [0; BLOCK_BYTES];
        for (byte, of_id) in key.iter_mut().zip(database.to_le_bytes()) {
            *byte = of_id;
        }
        let inner = Sha256::new()
            .chain_update(key.map(|byte| byte ^ 0x36))
            .chain_update(b"duramen cursor 1")
            .chain_update(tree.to_le_bytes())
            .chain_update((query.len() as u64).to_le_bytes())
            .chain_update(query.as_bytes());
        Self { inner, outer: Sha256::new().chain_update(key.map(|byte| byte ^ 0x5c)) }
    }

    fn seal(&self, bytes: &[u8]) -> [u8; SEAL_BYTES] {
        let inner = self.inner.clone().chain_update(bytes).finalize();
        let outer = self.outer.clone().chain_update(inner).finalize();
        let mut seal = [0; SEAL_BYTES];
        seal.iter_mut().zip(outer).for_each(|(byte, of_hash)| *byte = of_hash);
        seal
    }
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_taken_back_by_its_own_query_alone() {
        let own = Scope::new(7, 3, "a = 1");
        for (side, _) in Side::NUMBERS {
            let cursor = Cursor { side, key: vec![0, 1, 0xff] };
            let text = cursor.write(&own);
            assert_eq!(Cursor::read(&text, &own).unwrap(), cursor);
            for other in
                [Scope::new(8, 3, "a = 1"), Scope::new(7, 4, "a = 1"), Scope::new(7, 3, "a = 2")]
            {
                assert_eq!(Cursor::read(&text, &other).unwrap_err().kind(), ErrorKind::Invalid);
            }
        }
    }

    #[test]
    fn a_cursor_that_was_altered_is_refused() {
        let own = Scope::new(7, 3, "");
        let text = Cursor { side: Side::After, key: vec![5; 20] }.write(&own);
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            assert!(Cursor::read(&other, &own).is_err(), "{at}");
            assert!(Cursor::read(&text[..at], &own).is_err(), "{at}");
        }
        for other in ["", "A", "!", "\u{e4}", &format!("{text}="), &"A".repeat(100_000)] {
            assert!(Cursor::read(other, &own).is_err());
        }
    }
}
