//! Segments: sorted runs of cells, written once and never changed.
//!
//! A cell is an opaque byte string under an opaque key; keys are compared byte by byte. A segment
//! file is its magic, then blocks back to back: blocks of cells in key order, a filter, an index
//! with a fence key per block, and a footer. `docs/format.md` describes every byte.
//!
//! Invariants:
//! - keys rise strictly through a segment;
//! - a fence is above every key before its block and not above any key in it; the fence of a block
//!   with a single cell is that cell's key, so listing keys never reads a large cell;
//! - the manifest names the footer with its checksum, the footer the index and the filter, the
//!   index the blocks of cells: nothing is believed that its parent does not vouch for.

mod block;
mod cache;
mod cell;
mod check;
mod compression;
mod filter;
mod footer;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod index;
mod packing;
mod reader;
mod run;
pub(crate) mod salvage;
mod scrub;
mod shortening;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

#[cfg(feature = "fuzzing")]
pub(crate) use block::BlockKind;
pub(crate) use block::{BlockAddress, CellBlock};
pub(crate) use cache::BlockCache;
pub(crate) use cell::CellHandle;
pub(crate) use check::VisitCell;
pub(crate) use filter::KeyHash;
pub(crate) use reader::{CellPosition, Segment};
pub(crate) use writer::{FilledSegment, SegmentMeta, SegmentWriter, Stop};

use crate::CommitSequence;
use crate::io::is_numbered;

/// The directory of the segment files.
pub(crate) const DIRECTORY: &str = "segments";
/// What a segment file begins with.
const MAGIC: [u8; 8] = *b"\x89DURSEG\n";
/// The format of segments this version writes, and the newest it reads.
const FORMAT: u32 = 1;

/// How the cells of a segment are encoded; the segment itself does not look into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Encoding {
    /// Blocks as they are in memory.
    Warm = 0,
    /// Blocks are compressed where that makes them smaller.
    Cold = 1,
}

impl Encoding {
    /// The encoding with this number on disk.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Warm),
            1 => Some(Self::Cold),
            _ => None,
        }
    }
}

/// What the manifest keeps of a live segment: enough to open and to verify it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentInfo {
    /// Names the file; never used twice in a database.
    pub(crate) number: u64,
    /// The footer is the last block: the file ends where it ends.
    pub(crate) footer: BlockAddress,
    pub(crate) cells: u64,
    /// 0 for young segments.
    pub(crate) level: u8,
    pub(crate) encoding: Encoding,
    /// The commits whose cells are in it.
    pub(crate) first_sequence: CommitSequence,
    pub(crate) last_sequence: CommitSequence,
}

impl SegmentInfo {
    /// The segment's file, relative to the database.
    pub(crate) fn path(&self) -> String {
        path(self.number)
    }

    /// Bytes of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.footer.offset.get().saturating_add(self.footer.length.get().into())
    }
}

/// The file name of a segment.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:08}.segment")
}

/// Whether the engine gives a file in the directory of the segments such a name.
pub(crate) fn is_of_engine(name: &str) -> bool {
    let sorted = name.strip_prefix("query-").unwrap_or_default();
    is_numbered(name, ".segment", u8::is_ascii_digit)
        || ["MERGE", "MERGE.new"].contains(&name)
        || is_numbered(sorted, ".tmp", u8::is_ascii_hexdigit)
}

/// The file of a segment, relative to the database.
pub(crate) fn path(number: u64) -> String {
    format!("{DIRECTORY}/{}", file_name(number))
}
