//! A small file that is replaced as a whole, and what each begins with.
//!
//! Invariants:
//! - the new one is complete and synced under another name before it takes the place of the old
//!   one, and the directory is synced after;
//! - magic, checksum, length and format stay where they are in all formats, so that a newer file
//!   is told from a damaged one.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::io::ErrorKind as Os;

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::damage::corrupt;
use crate::io::{self, Access, Device};
use crate::{Error, ErrorKind, Result};

/// Bytes before the first one the checksum covers: magic and checksum.
const UNCOVERED_BYTES: usize = 12;

const _: () = assert!(size_of::<Prefix>() == 20);

/// What every such file begins with.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Prefix {
    pub(crate) magic: [u8; 8],
    /// CRC-32C of everything after this field.
    pub(crate) checksum: U32,
    /// Bytes of the file.
    pub(crate) length: U32,
    pub(crate) format: U32,
}

/// Which file it is.
#[derive(Debug)]
pub(crate) struct SmallFile {
    pub(crate) path: &'static str,
    /// Where the next one is made.
    pub(crate) new_path: &'static str,
    /// The directory of both.
    pub(crate) directory: &'static str,
    pub(crate) magic: [u8; 8],
    /// The format that is written, and the newest that is read.
    pub(crate) format: u32,
    pub(crate) bytes_max: usize,
}

impl SmallFile {
    /// Reads it; `None` if there is none. Of one that is longer than it may be so much that it does
    /// not verify.
    pub(crate) fn read(&self, device: &dyn Device) -> Result<Option<Vec<u8>>> {
        let path = self.path;
        let file = match device.open(path, Access::Read) {
            Err(error) if error.kind() == Os::NotFound => return Ok(None),
            opened => opened.map_err(|error| Error::io(format!("cannot open {path}"), error))?,
        };
        let failed = |error| Error::io(format!("cannot read {path}"), error);
        let length = usize::try_from(file.len().map_err(failed)?).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length.min(self.bytes_max.saturating_add(1))];
        io::read_exact_at(file.as_ref(), &mut bytes, 0).map_err(failed)?;
        Ok(Some(bytes))
    }

    /// Puts a new one, durably, in the place of the one before. After an error either of the two
    /// may be the one that is read next.
    pub(crate) fn replace(&self, device: &dyn Device, bytes: &[u8]) -> Result<()> {
        let failed = |error| Error::io(format!("cannot write {}", self.path), error);
        match device.remove(self.new_path) {
            Err(error) if error.kind() != Os::NotFound => return Err(failed(error)),
            _ => {}
        }
        let file = device.open(self.new_path, Access::Create).map_err(failed)?;
        io::write_all_at(file.as_ref(), bytes, 0).map_err(failed)?;
        file.sync().map_err(failed)?;
        device.rename(self.new_path, self.path).map_err(failed)?;
        device.sync_dir(self.directory).map_err(failed)
    }

    /// Removes it; one that is not there is fine.
    pub(crate) fn remove(&self, device: &dyn Device) -> Result<()> {
        match device.remove(self.path) {
            Err(error) if error.kind() != Os::NotFound => {
                Err(Error::io(format!("cannot remove {}", self.path), error))
            }
            _ => Ok(()),
        }
    }

    /// What a file of so many bytes begins with, but for the checksum, which [`seal`] writes.
    pub(crate) fn prefix(&self, bytes: usize) -> Prefix {
        let format = self.format.into();
        Prefix { magic: self.magic, checksum: U32::ZERO, length: small(bytes), format }
    }

    /// Checks what is the same in all formats, the checksum before the format: so damage is not
    /// taken for a newer format.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<()> {
        let Ok((prefix, _)) = Prefix::ref_from_prefix(bytes) else {
            let (expected, found) = (size_of::<Prefix>(), bytes.len());
            return Err(corrupt(self.path, 0, "bytes of the file", expected, found));
        };
        if prefix.magic != self.magic {
            let (expected, found) =
                (format!("{:02x?}", self.magic), format!("{:02x?}", prefix.magic));
            return Err(corrupt(self.path, 0, "magic", expected, found));
        }
        if u64::from(prefix.length.get()) != bytes.len() as u64 {
            return Err(corrupt(self.path, 12, "bytes of the file", prefix.length, bytes.len()));
        }
        let checksum = covered_checksum(bytes);
        if prefix.checksum != checksum {
            return Err(corrupt(self.path, 8, "checksum", prefix.checksum, checksum));
        }
        match prefix.format.get() {
            format if format > self.format || format == 0 => {
                Err(self.unsupported(&format!("the database has format {format}")))
            }
            _ => Ok(()),
        }
    }

    /// An error that says what of the file this version does not know.
    pub(crate) fn unsupported(&self, what: &str) -> Error {
        let (path, format) = (self.path, self.format);
        let message =
            format!("{path}: {what}; this version supports format {format}: use a newer one");
        Error::new(ErrorKind::Unsupported, message)
    }
}

/// Writes the checksum.
pub(crate) fn seal(bytes: &mut [u8]) {
    let checksum = U32::new(covered_checksum(bytes));
    if let Ok((prefix, _)) = Prefix::mut_from_prefix(bytes) {
        prefix.checksum = checksum;
    }
}

fn covered_checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes.get(UNCOVERED_BYTES..).unwrap_or_default())
}

/// A count or a length, which the most bytes of such a file keep far below 4 Gi.
pub(crate) fn small(number: usize) -> U32 {
    U32::new(u32::try_from(number).unwrap_or(u32::MAX))
}
