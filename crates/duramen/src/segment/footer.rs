//! The footer of a segment: what it is, and where its index and its filter are.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::block::{Block, BlockAddress, HEADER_BYTES, Origin};
use super::{Encoding, FORMAT, MAGIC};
use crate::damage::corrupt;
use crate::{Error, ErrorKind, Result};

/// Bytes of a footer with its block header.
pub(crate) const FOOTER_BYTES: usize = HEADER_BYTES + size_of::<Footer>();

const _: () = assert!(size_of::<Footer>() == 104);

/// The body of a footer block.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Footer {
    pub(crate) format: U32,
    pub(crate) level: u8,
    pub(crate) encoding: u8,
    pub(crate) reserved: U16,
    /// Features a program must know to read the segment; none exists yet.
    pub(crate) features_read: U64,
    /// Features a program must know to write to a database with the segment; none exists yet.
    pub(crate) features_write: U64,
    pub(crate) database_id: U128,
    pub(crate) epoch: U64,
    pub(crate) first_sequence: U64,
    pub(crate) last_sequence: U64,
    pub(crate) cells: U64,
    pub(crate) index: BlockAddress,
    pub(crate) filter: BlockAddress,
}

impl Footer {
    /// Takes a verified block as a footer: cells, filter, index and footer fill the file in this
    /// order without a gap.
    pub(crate) fn decode(
        block: &Block,
        origin: Origin<'_>,
        address: &BlockAddress,
    ) -> Result<Self> {
        let offset = address.offset.get();
        let damage = |what: &str, expected: u64, found: u64| -> Result<Self> {
            Err(corrupt(origin.path, offset, what, expected, found))
        };
        let format = U32::read_from_prefix(&block.body).map(|(format, _)| format.get());
        if let Ok(newer) = format
            && newer > FORMAT
        {
            return Err(unsupported(origin, &format!("segment format {newer}")));
        }
        let Ok(footer) = Self::read_from_bytes(&block.body) else {
            let expected = size_of::<Self>() as u64;
            return damage("bytes of the footer", expected, block.body.len() as u64);
        };
        if footer.features_read.get() != 0 {
            let features = format!("segment features {:#x}", footer.features_read);
            return Err(unsupported(origin, &features));
        }
        if Encoding::from_byte(footer.encoding).is_none() {
            return damage("encoding", Encoding::Cold as u64, footer.encoding.into());
        }
        if footer.filter.offset.get() < MAGIC.len() as u64 {
            return damage("offset of the filter", MAGIC.len() as u64, footer.filter.offset.get());
        }
        if footer.filter.end() != Some(footer.index.offset.get()) {
            let found = footer.filter.end().unwrap_or(u64::MAX);
            return damage("end of the filter", footer.index.offset.get(), found);
        }
        if footer.index.end() != Some(offset) {
            return damage("end of the index", offset, footer.index.end().unwrap_or(u64::MAX));
        }
        Ok(footer)
    }
}

fn unsupported(origin: Origin<'_>, what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("{}: {what} is newer than this version reads; use a newer version", origin.path),
    )
}
