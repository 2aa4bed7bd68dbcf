//! The record of a backup: the one object that says what it consists of, written last.
//!
//! Invariants:
//! - what a record names was durable before it, so a backup that was cut short has none;
//! - its magic, checksum, length and format stay where they are in all formats, so that a newer
//!   record is told from a damaged one.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::io::is_numbered;
use crate::manifest::Manifest;
use crate::segment::SegmentInfo;
use crate::{Error, ErrorKind, Micros, Result};

/// The folder of the records.
pub(super) const FOLDER: &str = "backups";
/// The folder of the segments.
pub(super) const SEGMENTS: &str = "segments";
const EXTENSION: &str = ".backup";
const SEGMENT_EXTENSION: &str = ".segment";
/// What a record begins with.
pub(super) const MAGIC: [u8; 8] = *b"\x89DURBAK\n";
/// The format of records this version writes, and the newest it reads.
const FORMAT: u32 = 1;
/// Bytes before the first one the checksum covers: magic and checksum.
const UNCOVERED_BYTES: usize = 12;

/// Bytes of the largest record.
pub(super) const BYTES_MAX: u64 = 16 << 20;

/// The SHA-256 of an object.
pub(super) type Digest = [u8; 32];

const _: () = assert!(size_of::<Header>() == 48);

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    /// CRC-32C of everything after this field.
    checksum: U32,
    /// Bytes of the record.
    length: U32,
    format: U32,
    segments: U32,
    number: U64,
    parent: U64,
    made: I64,
}

/// What a backup consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BackupRecord {
    /// 1, 2, 3 ... in a destination.
    pub(super) number: u64,
    /// The backup of which it took over what had not changed, if it did.
    pub(super) parent: Option<u64>,
    /// When it was made.
    pub(super) made: Micros,
    /// The SHA-256 of each segment's file, in the order of the manifest.
    pub(super) digests: Vec<Digest>,
    /// What a restored database consists of, but for its id and its journal.
    pub(super) manifest: Manifest,
}

impl BackupRecord {
    /// The segments with the SHA-256 of each.
    pub(super) fn segments(&self) -> impl Iterator<Item = (&SegmentInfo, &Digest)> {
        self.manifest.segments.iter().zip(&self.digests)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let manifest = self.manifest.encode();
        let mut bytes = Header {
            magic: MAGIC,
            checksum: U32::ZERO,
            length: U32::ZERO,
            format: FORMAT.into(),
            segments: small(self.digests.len()),
            number: self.number.into(),
            parent: self.parent.unwrap_or(0).into(),
            made: self.made.0.into(),
        }
        .as_bytes()
        .to_vec();
        bytes.extend(self.digests.iter().flatten());
        bytes.extend(manifest);
        let length = small(bytes.len());
        if let Ok((header, _)) = Header::mut_from_prefix(&mut bytes) {
            header.length = length;
        }
        let checksum = covered_checksum(&bytes);
        if let Ok((header, _)) = Header::mut_from_prefix(&mut bytes) {
            header.checksum = checksum.into();
        }
        bytes
    }

    /// Reads the record of backup `number`.
    pub(super) fn decode(bytes: &[u8], number: u64) -> Result<Self> {
        let damaged = |what: &str| damage(number, what);
        let Ok((header, rest)) = Header::ref_from_prefix(bytes) else {
            return Err(damaged("is cut short"));
        };
        if header.magic != MAGIC {
            return Err(damaged("is not the record of a backup"));
        }
        if u64::from(header.length.get()) != bytes.len() as u64 {
            return Err(damaged("has not the length it says"));
        }
        if header.checksum != covered_checksum(bytes) {
            return Err(damaged("does not have the checksum it says"));
        }
        if header.format > FORMAT || header.format == 0 {
            let format = header.format;
            let message = format!(
                "{}: the backup has format {format}; this version supports format {FORMAT}: use a \
                 newer one",
                name(number)
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let segments = header.segments.get() as usize;
        let Ok((digests, manifest)) = <[Digest]>::ref_from_prefix_with_elems(rest, segments) else {
            return Err(damaged("is cut short"));
        };
        let context = |error: Error| error.in_context(name(number));
        let manifest = Manifest::decode(manifest).map_err(context)?;
        if manifest.segments.len() != segments || header.number != number {
            return Err(damaged("is that of another backup"));
        }
        let parent = Some(header.parent.get()).filter(|parent| *parent > 0);
        let made = Micros(header.made.get());
        Ok(Self { number, parent, made, digests: digests.to_vec(), manifest })
    }
}

/// The error for a backup of which `what` is wrong with the record.
pub(super) fn damage(number: u64, what: &str) -> Error {
    let message = format!(
        "the backup is damaged: {} {what}; restore another one (--at) or copy the file anew",
        name(number)
    );
    Error::new(ErrorKind::Corrupt, message)
}

/// The object of a record.
pub(super) fn name(number: u64) -> String {
    format!("{FOLDER}/{number:08}{EXTENSION}")
}

/// The number of the record whose object's last word is `name`; none if it is no record.
pub(super) fn number(name: &str) -> Option<u64> {
    let is_number = is_numbered(name, EXTENSION, u8::is_ascii_digit);
    // Another one can follow each.
    let numbers = 1..u64::MAX;
    name.strip_suffix(EXTENSION)?
        .parse()
        .ok()
        .filter(|number| is_number && numbers.contains(number))
}

/// The object of a segment. The footer's checksum stands for all of the file, so that segments of
/// the same number, which two databases that were one once have, do not meet.
pub(super) fn segment_name(info: &SegmentInfo) -> String {
    let (bytes, checksum) = (info.file_bytes(), info.footer.checksum.get());
    format!("{SEGMENTS}/{:08}-{bytes}-{checksum:08x}{SEGMENT_EXTENSION}", info.number)
}

/// Whether the last word of an object's name is that of a segment.
pub(super) fn is_segment(name: &str) -> bool {
    let words: Vec<&str> = name.split('-').collect();
    let [number, bytes, checksum] = words[..] else { return false };
    is_numbered(number, "", u8::is_ascii_digit)
        && bytes.parse::<u64>().is_ok()
        && is_numbered(checksum, SEGMENT_EXTENSION, u8::is_ascii_hexdigit)
}

fn covered_checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes.get(UNCOVERED_BYTES..).unwrap_or_default())
}

/// `SEGMENTS_MAX` keeps counts and lengths of a record far below 4 Gi.
fn small(number: usize) -> U32 {
    U32::new(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test that panics has failed")]
mod tests {
    use super::*;
    use crate::CommitSequence;
    use crate::segment::{BlockAddress, Encoding};

    fn record() -> BackupRecord {
        let info = SegmentInfo {
            number: 7,
            footer: BlockAddress { offset: 4_000.into(), length: 136.into(), checksum: 9.into() },
            cells: 3,
            level: 0,
            encoding: Encoding::Warm,
            first_sequence: CommitSequence(1),
            last_sequence: CommitSequence(5),
        };
        let mut manifest = Manifest { segments: vec![info], ..Manifest::new(11, Micros(3)) };
        (manifest.next_segment, manifest.checkpoint.sequence) = (8, CommitSequence(5));
        BackupRecord {
            number: 2,
            parent: Some(1),
            made: Micros(-4),
            digests: vec![[5; 32]],
            manifest,
        }
    }

    #[test]
    fn records_come_back_as_they_were() {
        let record = record();
        assert_eq!(BackupRecord::decode(&record.encode(), 2).unwrap(), record);
        assert_eq!(
            segment_name(&record.manifest.segments[0]),
            "segments/00000007-4136-00000009.segment"
        );
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let bytes = record().encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = BackupRecord::decode(&damaged, 2).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "bit {bit}");
        }
        for length in 0..bytes.len() {
            let error = BackupRecord::decode(&bytes[..length], 2).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{length} bytes");
        }
        assert_eq!(BackupRecord::decode(&bytes, 3).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let mut bytes = record().encode();
        bytes[16] = 2;
        let checksum = covered_checksum(&bytes).to_le_bytes();
        bytes[8..12].copy_from_slice(&checksum);
        let error = BackupRecord::decode(&bytes, 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn only_names_of_objects_are_taken_for_them() {
        assert_eq!(number("00000012.backup"), Some(12));
        for name in ["00000000.backup", "12.backup", "+0000012.backup", "00000012", "x.backup"] {
            assert_eq!(number(name), None, "{name}");
        }
        let name = segment_name(&record().manifest.segments[0]);
        assert!(is_segment(name.strip_prefix("segments/").unwrap()));
        for name in
            ["00000007.segment", "00000007-4136.segment", "notes", "7-4136-00000009.segment"]
        {
            assert!(!is_segment(name), "{name}");
        }
    }
}
