//! The small pieces that journal records and cells are written in: variable-length integers
//! (LEB128, seven bits a byte, low ones first), little-endian integers and counted bytes.
//!
//! Invariant: reading never panics and never reserves more than what is left to read.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::error::{Error, ErrorKind, Result};

/// Appends a variable-length integer.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(value));
}

/// Appends a signed integer so that small magnitudes take few bytes.
#[inline]
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, (value << 1 ^ value >> 63).cast_unsigned());
}

/// Appends the length of `bytes` and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[expect(clippy::cast_possible_truncation, reason = "the low byte is what is asked for")]
fn low_byte(value: u64) -> u8 {
    value as u8
}

/// A cursor over bytes that may be damaged.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, len: bytes.len() }
    }

    /// Bytes that are left to read.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// What is left to read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether nothing is left.
    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Everything has to have been read.
    pub(crate) fn end(&self) -> Result<()> {
        if self.is_at_end() {
            return Ok(());
        }
        Err(self.corrupt("expected the end, found more bytes"))
    }

    /// What stands here cannot be: says so with the place.
    pub(crate) fn corrupt(&self, what: &str) -> Error {
        let offset = self.len.saturating_sub(self.rest.len());
        Error::new(ErrorKind::Corrupt, format!("{what} at byte {offset} of {}", self.len))
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        let (&first, rest) = self
            .rest
            .split_first()
            .ok_or_else(|| self.corrupt("expected a byte, found the end"))?;
        self.rest = rest;
        Ok(first)
    }

    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64_u32).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits.wrapping_shl(shift);
            if shifted >> shift != bits {
                break;
            }
            value |= shifted;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.corrupt("expected an integer of at most 64 bits, found more"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ (value & 1).wrapping_neg().cast_signed())
    }

    /// An integer that has to fit 32 bits.
    pub(crate) fn varint_u32(&mut self) -> Result<u32> {
        let value = self.varint()?;
        u32::try_from(value).map_err(|_| self.corrupt("expected 32 bits, found more"))
    }

    /// How many things follow, each of at least one byte.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let value = self.varint()?;
        match usize::try_from(value) {
            Ok(count) if count <= self.rest.len() => Ok(count),
            _ => Err(self.corrupt("a count is larger than what follows it")),
        }
    }

    pub(crate) fn i64(&mut self) -> Result<i64> {
        let bytes = self.take(8)?;
        let fixed = bytes.try_into().map_err(|_| self.corrupt("expected 8 bytes"))?;
        Ok(i64::from_le_bytes(fixed))
    }

    /// Counted bytes, as [`put_bytes`] wrote them.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.count()?;
        self.take(len)
    }

    /// Counted UTF-8 text.
    pub(crate) fn text(&mut self) -> Result<&'a str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.corrupt("expected UTF-8"))
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or_else(|| self.corrupt("expected more bytes, found the end"))?;
        self.rest = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            put_signed(&mut out, value.cast_signed());
            let mut reader = Reader::new(&out);
            assert_eq!(reader.varint().unwrap(), value);
            assert_eq!(reader.signed().unwrap(), value.cast_signed());
            reader.end().unwrap();
        }
    }

    #[test]
    fn damaged_integers_and_counts_are_refused() {
        assert_eq!(Reader::new(&[0xff; 11]).varint().unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(Reader::new(&[0x80]).varint().unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(Reader::new(&[9, 1, 2]).bytes().unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
