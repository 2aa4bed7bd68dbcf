//! A cursor over the bytes of a cell. Every length is compared with what is left.

use crate::error::{Error, ErrorKind};

/// A position in a cell, moving forward.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    cell: &'a [u8],
    at: usize,
}

/// Bytes of a cell that make no sense. Small, because parsing small columns is all headers; it
/// becomes an [`Error`] where it leaves this module.
#[derive(Debug)]
pub(crate) struct Corrupt {
    at: u32,
    what: &'static str,
}

/// What parts of cells return from parsing.
pub(crate) type Parsed<T> = std::result::Result<T, Corrupt>;

#[cold]
pub(super) fn corrupt(at: usize, what: &'static str) -> Corrupt {
    Corrupt { at: u32::try_from(at).unwrap_or(u32::MAX), what }
}

impl From<Corrupt> for Error {
    fn from(Corrupt { at, what }: Corrupt) -> Self {
        Self::new(ErrorKind::Corrupt, format!("byte {at} of a cell: {what}"))
    }
}

/// The error for a read beyond the end of a view, which only a defect of the engine asks for,
/// or of a value that the cell does not hold.
#[cold]
pub(super) fn unreadable(index: usize, len: usize, what: &str) -> Error {
    if index >= len {
        return Error::new(ErrorKind::Internal, format!("{what} {index} of {len} was asked for"));
    }
    Error::new(ErrorKind::Corrupt, format!("{what} {index} of {len} in a cell does not decode"))
}

impl<'a> Reader<'a> {
    /// A reader at the start of `cell`. Positions are kept in 32 bits.
    pub(crate) fn new(cell: &'a [u8]) -> Parsed<Self> {
        if u32::try_from(cell.len()).is_err() {
            return Err(corrupt(cell.len(), "a cell is shorter than 4 GiB"));
        }
        Ok(Self { cell, at: 0 })
    }

    /// A reader at a position that an earlier pass over `cell` left.
    pub(super) fn resume(cell: &'a [u8], at: u32) -> Self {
        Self { cell, at: at as usize }
    }

    /// The bytes this reads, from their start.
    pub(super) fn cell(&self) -> &'a [u8] {
        self.cell
    }

    /// Where the next byte is read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Passes over `len` bytes and gives the position of the first.
    #[inline]
    pub(super) fn skip(&mut self, len: usize) -> Parsed<u32> {
        let start = self.at;
        self.take(len)?;
        u32::try_from(start).map_err(|_| corrupt(start, "a cell is shorter than 4 GiB"))
    }

    #[inline]
    fn take(&mut self, len: usize) -> Parsed<&'a [u8]> {
        let end = self.at.checked_add(len);
        let taken = end.and_then(|end| self.cell.get(self.at..end));
        let Some(taken) = taken else {
            return Err(corrupt(self.at, "bytes are missing"));
        };
        self.at = self.at.saturating_add(len);
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let start = self.at;
        let taken = self.take(N)?;
        taken.first_chunk().copied().ok_or_else(|| corrupt(start, "bytes are missing"))
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Parsed<u8> {
        self.array().map(u8::from_le_bytes)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Parsed<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// A signed integer of `width` bytes: 0 (which is zero), 1, 2, 4 or 8.
    #[inline]
    pub(super) fn signed(&mut self, width: u8) -> Parsed<i64> {
        Ok(match width {
            0 => 0,
            1 => i64::from(self.array().map(i8::from_le_bytes)?),
            2 => i64::from(self.array().map(i16::from_le_bytes)?),
            4 => i64::from(self.array().map(i32::from_le_bytes)?),
            _ => self.array().map(i64::from_le_bytes)?,
        })
    }

    /// An integer of up to 16 bytes behind a byte with their number.
    pub(super) fn wide(&mut self) -> Parsed<i128> {
        let start = self.at;
        let len = usize::from(self.u8()?);
        if len > 16 {
            return Err(corrupt(start, "an integer has at most 16 bytes"));
        }
        let taken = self.take(len)?;
        let negative = taken.last().is_some_and(|byte| *byte >= 0x80);
        let mut bytes = [if negative { 0xff } else { 0 }; 16];
        for (to, from) in bytes.iter_mut().zip(taken) {
            *to = *from;
        }
        Ok(i128::from_le_bytes(bytes))
    }

    /// Refuses bytes after the end of what was parsed.
    pub(super) fn finish(self) -> Parsed<()> {
        if self.at == self.cell.len() {
            return Ok(());
        }
        Err(corrupt(self.at, "bytes follow the end"))
    }
}

/// Writes what [`Reader::wide`] reads, in as few bytes as keep the sign.
pub(super) fn put_wide(out: &mut Vec<u8>, value: i128) {
    let bytes = value.to_le_bytes();
    let sign = if value < 0 { value.leading_ones() } else { value.leading_zeros() };
    // One bit of the sign has to stay; the rest of it is the reader's to repeat.
    let bits = 129_u32.saturating_sub(sign);
    let len = if value == 0 { 0 } else { u8::try_from(bits.div_ceil(8)).unwrap_or(16) };
    out.push(len);
    out.extend(bytes.iter().take(usize::from(len)));
}
