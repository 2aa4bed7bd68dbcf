//! Blocks: the unit of reading and of checksums. Everything in a segment after its magic is one.
//!
//! Invariants:
//! - a block carries its segment, offset, length and kind, and a checksum over all of it, so bytes
//!   that are stale, cut or belong elsewhere do not verify;
//! - whoever names a block repeats its offset, length and checksum ([`BlockAddress`]);
//! - a [`CellBlock`] exists only after both agreed and every record was found inside the block.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use bytes::Bytes;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::compression::{self, PACKED, PLAIN, SHORTENED, ZSTD};
use super::shortening::ShortCells;
use crate::damage::corrupt;
use crate::{Error, Result};

/// Bytes of a block's header.
pub(crate) const HEADER_BYTES: usize = 32;
/// Bytes a record adds to its block besides its key and its cell.
pub(crate) const RECORD_BYTES: usize = 4;

const _: () = assert!(size_of::<BlockHeader>() == HEADER_BYTES);
const _: () = assert!(size_of::<BlockAddress>() == 16);
const _: () = assert!(size_of::<Record>() == RECORD_BYTES);

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockKind {
    Cells = 1,
    Filter = 2,
    Index = 3,
    Footer = 4,
}

/// What every block begins with, in all formats.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct BlockHeader {
    /// CRC-32C of everything after this field, header and body.
    pub(crate) checksum: U32,
    pub(crate) kind: u8,
    /// How the body is compressed.
    pub(crate) compression: u8,
    pub(crate) reserved: [u8; 2],
    /// Bytes of the block with its header.
    pub(crate) length: U32,
    /// Cells, filter lanes or index entries in the body; 1 in a footer.
    pub(crate) items: U32,
    pub(crate) segment: U64,
    pub(crate) offset: U64,
}

/// Where a block is and what it is, repeated wherever the block is named.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub(crate) struct BlockAddress {
    pub(crate) offset: U64,
    pub(crate) length: U32,
    pub(crate) checksum: U32,
}

impl BlockAddress {
    /// The offset of the byte after the block; `None` if there is no such offset.
    pub(crate) fn end(&self) -> Option<u64> {
        self.offset.get().checked_add(u64::from(self.length.get()))
    }
}

/// One cell's place in its block: at `at` stand `key_len` bytes of key, then the cell, which ends
/// where the next record begins.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Record {
    pub(crate) at: U16,
    pub(crate) key_len: U16,
}

/// A block whose header and checksum hold, its body as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct KeptBlock {
    items: u32,
    /// How the body is compressed.
    way: u8,
    body: Bytes,
}

/// A block whose header and checksum hold.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) items: u32,
    pub(crate) body: Bytes,
}

/// Names the file a block was read from, for errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) path: &'a str,
    pub(crate) segment: u64,
}

impl KeptBlock {
    /// Takes `bytes`, read at `address`, as a block of `kind` if they verify.
    pub(crate) fn verify(
        bytes: &Bytes,
        origin: Origin<'_>,
        address: &BlockAddress,
        kind: BlockKind,
    ) -> Result<Self> {
        let offset = address.offset.get();
        let damage = |what: &str, expected: u64, found: u64| -> Result<Self> {
            Err(corrupt(origin.path, offset, what, expected, found))
        };
        let Some((header, _)) = BlockHeader::read_from_prefix(bytes).ok() else {
            return damage("bytes of the block header", HEADER_BYTES as u64, bytes.len() as u64);
        };
        let checksum = crc32c::crc32c(bytes.get(size_of::<U32>()..).unwrap_or_default());
        if checksum != header.checksum.get() {
            return damage("checksum of the block", header.checksum.get().into(), checksum.into());
        }
        // A block that is whole but not the one that was named was misdirected or is stale.
        let pairs = [
            ("segment of the block", origin.segment, header.segment.get()),
            ("offset of the block", offset, header.offset.get()),
            ("kind of the block", u64::from(kind as u8), header.kind.into()),
            ("length of the block", address.length.get().into(), header.length.get().into()),
            ("bytes of the block", address.length.get().into(), bytes.len() as u64),
            ("checksum its address gives", address.checksum.get().into(), checksum.into()),
        ];
        if let Some((what, expected, found)) = pairs.into_iter().find(|(_, a, b)| a != b) {
            return damage(what, expected, found);
        }
        let body = bytes.get(HEADER_BYTES..).map(|body| bytes.slice_ref(body)).unwrap_or_default();
        let items = header.items.get();
        Ok(Self { items, way: header.compression, body })
    }

    /// Its cells as they are kept, if they are shortened.
    pub(super) fn short_cells(&self) -> Option<ShortCells> {
        if self.way != SHORTENED {
            return None;
        }
        ShortCells::parse(self.body.clone(), self.items as usize)
    }

    /// The block with its body as it was written.
    pub(crate) fn open(self, origin: Origin<'_>, address: &BlockAddress) -> Result<Block> {
        let (offset, items) = (address.offset.get(), self.items);
        let (body, expected) = match self.way {
            PLAIN => (Some(self.body), "a body"),
            way @ (ZSTD | PACKED) => {
                (compression::decompress(way, &self.body, items as usize), "a Zstandard frame")
            }
            SHORTENED => {
                let short = ShortCells::parse(self.body, items as usize);
                (short.and_then(|short| short.lengthen()), "shortened cells")
            }
            other => {
                let what = "compression of the block";
                return Err(corrupt(origin.path, offset, what, SHORTENED, other));
            }
        };
        let Some(body) = body else {
            return Err(corrupt(origin.path, offset, "body", expected, "something else"));
        };
        Ok(Block { items, body })
    }
}

impl Block {
    /// Takes `bytes`, read at `address`, as a block of `kind` if they verify.
    pub(crate) fn verify(
        bytes: &Bytes,
        origin: Origin<'_>,
        address: &BlockAddress,
        kind: BlockKind,
    ) -> Result<Self> {
        KeptBlock::verify(bytes, origin, address, kind)?.open(origin, address)
    }
}

/// The cells of one block in key order.
#[derive(Debug, Clone)]
pub(crate) struct CellBlock {
    body: Bytes,
    cells: usize,
}

impl CellBlock {
    /// Takes a verified block as cells if it has `cells` of them and all stand inside it, one
    /// after the other.
    pub(crate) fn decode(
        block: Block,
        origin: Origin<'_>,
        address: &BlockAddress,
        cells: u16,
    ) -> Result<Self> {
        let damage = |what: &str, expected: usize, found: usize| -> Error {
            corrupt(origin.path, address.offset.get(), what, expected, found)
        };
        let cells = usize::from(cells);
        if block.items as usize != cells {
            return Err(damage("cells in the block", cells, block.items as usize));
        }
        let Ok((records, data)) = <[Record]>::ref_from_prefix_with_elems(&block.body, cells) else {
            let needed = cells.saturating_mul(RECORD_BYTES);
            return Err(damage("bytes for the records of the block", needed, block.body.len()));
        };
        let mut free = 0;
        for record in records {
            let at = usize::from(record.at.get());
            // The first record begins the data, each other one after the key of that before it.
            if at < free || (free == 0 && at != 0) {
                return Err(damage("start of a record", free, at));
            }
            free = at.saturating_add(record.key_len.get().into());
        }
        if free > data.len() {
            return Err(damage("bytes of the records", free, data.len()));
        }
        Ok(Self { body: block.body, cells })
    }

    /// Cells in the block.
    pub(crate) fn len(&self) -> usize {
        self.cells
    }

    /// Bytes the block takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.body.len().saturating_add(size_of::<Self>())
    }

    /// The key of a cell.
    pub(crate) fn key(&self, slot: usize) -> Bytes {
        self.body.slice_ref(self.key_bytes(slot))
    }

    /// The bytes of the key of a cell.
    pub(crate) fn key_bytes(&self, slot: usize) -> &[u8] {
        self.slices(slot).0
    }

    /// The content of a cell.
    pub(crate) fn cell(&self, slot: usize) -> Bytes {
        self.body.slice_ref(self.slices(slot).1)
    }

    /// The key and the content of a cell.
    pub(crate) fn key_and_cell(&self, slot: usize) -> (Bytes, Bytes) {
        let (key, cell) = self.slices(slot);
        (self.body.slice_ref(key), self.body.slice_ref(cell))
    }

    fn slices(&self, slot: usize) -> (&[u8], &[u8]) {
        let (records, data) = self.parts();
        assert!(slot < records.len(), "slot {slot} of a block of {} cells", records.len());
        let Some(record) = records.get(slot) else { return <_>::default() };
        let next = records.get(slot.saturating_add(1));
        let end = next.map_or(data.len(), |record| record.at.get().into());
        let cell = data.get(record_cell_at(*record)..end).unwrap_or_default();
        (record_key(*record, data), cell)
    }

    /// The slot of the first cell whose key is at or after `key`; the block's length if none is.
    pub(crate) fn at_or_after(&self, key: &[u8]) -> usize {
        let (records, data) = self.parts();
        records.partition_point(|record| record_key(*record, data) < key)
    }

    /// The slot of the cell with this key.
    pub(crate) fn find(&self, key: &[u8]) -> Option<usize> {
        let (records, data) = self.parts();
        records.binary_search_by(|record| record_key(*record, data).cmp(key)).ok()
    }

    fn parts(&self) -> (&[Record], &[u8]) {
        // `decode` found the records inside the body, so there is no other case.
        <[Record]>::ref_from_prefix_with_elems(&self.body, self.cells).unwrap_or_default()
    }
}

fn record_key(record: Record, data: &[u8]) -> &[u8] {
    let at = usize::from(record.at.get());
    data.get(at..record_cell_at(record)).unwrap_or_default()
}

fn record_cell_at(record: Record) -> usize {
    usize::from(record.at.get()).saturating_add(record.key_len.get().into())
}
