//! The encoding of one group of commits, byte by byte in `docs/format.md`.
//!
//! Invariants:
//! - a checksum verifies only for the database, the file number and the offset it was made for,
//!   so that neither stale bytes of a recycled file nor a misplaced write pass for a group;
//! - bytes that do not verify are `None`, never a panic.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crc32c::{crc32c, crc32c_append};

use crate::journal::JournalPosition;
use crate::{CommitSequence, Micros};

/// Bytes of a group header.
pub(super) const HEADER_BYTES: usize = 36;
/// Bytes of a commit before what its writer gives: length and timestamp.
pub(super) const COMMIT_PREFIX_BYTES_MAX: usize = 2 * VARINT_BYTES_MAX;

/// Where the number of the first commit stands in a header.
pub(super) const FIRST_OFFSET: usize = 8;

const VARINT_BYTES_MAX: usize = 10;
const CHECKSUM_BYTES: usize = size_of::<u32>();
/// Length, first commit, count, files back, offset, timestamp.
const FIELDS_BYTES: usize = 4 + 8 + 4 + 4 + 4 + 8;

const _: () = assert!(CHECKSUM_BYTES + FIELDS_BYTES == HEADER_BYTES, "docs/format.md");

/// Where a group lies, as its checksum knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) database: u128,
    pub(super) position: JournalPosition,
}

/// What stands in front of the commits of a group. A header of no commits is an *end mark*: the
/// journal was closed here and everything before it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Bytes of the commits that follow.
    pub(super) length: u32,
    /// The first commit; of an end mark, the one that would come next.
    pub(super) first: CommitSequence,
    /// How many commits.
    pub(super) count: u32,
    /// The position known durable when the group was written; never after the group.
    pub(super) synced_to: JournalPosition,
    /// Of the first commit; of an end mark, of the last one before it.
    pub(super) timestamp: Micros,
}

impl Place {
    /// The checksum of nothing at this place. At one offset, different file numbers always give
    /// different values, and a CRC keeps different starts apart.
    fn seed(self) -> u32 {
        let seed = crc32c(&self.database.to_le_bytes());
        let seed = crc32c_append(seed, &self.position.file.to_le_bytes());
        crc32c_append(seed, &self.position.offset.to_le_bytes())
    }

    /// The header with its checksum over itself and the `parts` of the commits.
    pub(super) fn seal(self, header: &Header, parts: [&[u8]; 2]) -> [u8; HEADER_BYTES] {
        let fields = header.encode(self.position);
        let mut checksum = crc32c_append(self.seed(), &fields);
        for part in parts {
            checksum = crc32c_append(checksum, part);
        }
        let mut bytes = [0; HEADER_BYTES];
        let (first, rest) = bytes.split_at_mut(CHECKSUM_BYTES);
        first.copy_from_slice(&checksum.to_le_bytes());
        rest.copy_from_slice(&fields);
        bytes
    }

    /// Whether header and commits are what was sealed here: the checksum expected and found.
    pub(super) fn verify(self, header: &[u8; HEADER_BYTES], commits: &[u8]) -> Checksums {
        let (found, sealed) = header.split_first_chunk().unwrap_or((&[0; CHECKSUM_BYTES], &[]));
        let expected = crc32c_append(crc32c_append(self.seed(), sealed), commits);
        Checksums { expected, found: u32::from_le_bytes(*found) }
    }
}

/// The checksum that the bytes have, and the one that was stored with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Checksums {
    pub(super) expected: u32,
    pub(super) found: u32,
}

impl Checksums {
    pub(super) fn agree(self) -> bool {
        self.expected == self.found
    }
}

impl Header {
    fn encode(&self, position: JournalPosition) -> [u8; FIELDS_BYTES] {
        let files_back = position.file.checked_sub(self.synced_to.file);
        let files_back = files_back.and_then(|files| u32::try_from(files).ok());
        let offset = u32::try_from(self.synced_to.offset).ok();
        assert!(
            self.synced_to <= position && files_back.is_some() && offset.is_some(),
            "a group at {position:?} cannot say that {:?} is durable",
            self.synced_to
        );
        let fields: [&[u8]; 6] = [
            &self.length.to_le_bytes(),
            &self.first.0.to_le_bytes(),
            &self.count.to_le_bytes(),
            &files_back.unwrap_or_default().to_le_bytes(),
            &offset.unwrap_or_default().to_le_bytes(),
            &self.timestamp.0.to_le_bytes(),
        ];
        let mut bytes = [0; FIELDS_BYTES];
        let mut rest = bytes.as_mut_slice();
        for field in fields {
            let (place, after) = rest.split_at_mut(field.len());
            place.copy_from_slice(field);
            rest = after;
        }
        bytes
    }

    /// The fields of a header at `position`, if they can be those of one; its checksum is still
    /// to be verified.
    pub(super) fn decode(bytes: &[u8; HEADER_BYTES], position: JournalPosition) -> Option<Self> {
        let (_, rest) = bytes.split_first_chunk::<CHECKSUM_BYTES>()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (first, rest) = rest.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (files_back, rest) = rest.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let (timestamp, _) = rest.split_first_chunk()?;
        let header = Self {
            length: u32::from_le_bytes(*length),
            first: CommitSequence(u64::from_le_bytes(*first)),
            count: u32::from_le_bytes(*count),
            synced_to: JournalPosition {
                file: position.file.checked_sub(u32::from_le_bytes(*files_back).into())?,
                offset: u32::from_le_bytes(*offset).into(),
            },
            timestamp: Micros(i64::from_le_bytes(*timestamp)),
        };
        // A commit takes at least two bytes: its length and its timestamp.
        let plausible = header.first.0 > 0
            && u64::from(header.count).saturating_mul(2) <= header.length.into()
            && (header.count > 0 || header.length == 0)
            && header.synced_to <= position;
        plausible.then_some(header)
    }

    /// Whether this is an end mark.
    pub(super) fn is_end_mark(&self) -> bool {
        self.count == 0
    }
}

/// Appends one commit of `header` and `body_len` bytes that follow it, `elapsed` microseconds
/// after the one before in its group.
pub(super) fn encode_commit(out: &mut Vec<u8>, elapsed: u64, header: &[u8], body_len: usize) {
    encode_varint(out, (header.len() as u64).saturating_add(body_len as u64));
    encode_varint(out, elapsed);
    out.extend_from_slice(header);
}

/// The commits of a verified group, in order.
#[derive(Debug)]
pub(super) struct Commits<'a> {
    rest: &'a [u8],
    left: u32,
    next: CommitSequence,
    timestamp: Micros,
}

/// One commit as it was journaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Commit<'a> {
    pub(super) sequence: CommitSequence,
    pub(super) timestamp: Micros,
    pub(super) body: &'a [u8],
}

impl<'a> Commits<'a> {
    pub(super) fn new(header: &Header, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, left: header.count, next: header.first, timestamp: header.timestamp }
    }

    fn take(&mut self) -> Option<Commit<'a>> {
        let length = usize::try_from(decode_varint(&mut self.rest)?).ok()?;
        let elapsed = i64::try_from(decode_varint(&mut self.rest)?).ok()?;
        let (body, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        self.timestamp = Micros(self.timestamp.0.checked_add(elapsed)?);
        let sequence = self.next;
        self.next = CommitSequence(sequence.0.checked_add(1)?);
        Some(Commit { sequence, timestamp: self.timestamp, body })
    }
}

/// A commit, or `None` once where the bytes are not those of one.
impl<'a> Iterator for Commits<'a> {
    type Item = Option<Commit<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return (!std::mem::take(&mut self.rest).is_empty()).then_some(None);
        }
        self.left = self.left.saturating_sub(1);
        let commit = self.take();
        if commit.is_none() {
            (self.left, self.rest) = (0, &[]);
        }
        Some(commit)
    }
}

/// LEB128: seven bits a byte, the lowest first.
fn encode_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        let [low, ..] = value.to_le_bytes();
        out.push(low | 0x80);
        value >>= 7;
    }
    let [low, ..] = value.to_le_bytes();
    out.push(low);
}

fn decode_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        let placed = bits.checked_shl(shift)?;
        if placed.checked_shr(shift)? != bits {
            return None;
        }
        value |= placed;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test may fail by panicking")]
mod tests {
    use super::*;

    const PLACE: Place =
        Place { database: 7, position: JournalPosition { file: 3, offset: 4_096 } };

    fn header(length: usize) -> Header {
        Header {
            length: u32::try_from(length).unwrap(),
            first: CommitSequence(41),
            count: 2,
            synced_to: JournalPosition { file: 2, offset: 99 },
            timestamp: Micros(1_000_000),
        }
    }

    fn commits() -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_commit(&mut bytes, 0, b"h", 3);
        bytes.extend_from_slice(b"one");
        encode_commit(&mut bytes, 300, b"", 200);
        bytes.extend_from_slice(&[9; 200]);
        bytes
    }

    #[test]
    fn group_reads_back_as_written() {
        let bytes = commits();
        let sealed = PLACE.seal(&header(bytes.len()), [&bytes, &[]]);
        let read = Header::decode(&sealed, PLACE.position).unwrap();
        assert_eq!(read, header(bytes.len()));
        assert!(PLACE.verify(&sealed, &bytes).agree());
        let read: Vec<_> = Commits::new(&read, &bytes).map(Option::unwrap).collect();
        assert_eq!(read[0].body, b"hone");
        assert_eq!(
            (read[1].sequence, read[1].timestamp, read[1].body.len()),
            (CommitSequence(42), Micros(1_000_300), 200)
        );
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn checksum_is_bound_to_database_file_and_offset() {
        let bytes = commits();
        let sealed = PLACE.seal(&header(bytes.len()), [&bytes[..5], &bytes[5..]]);
        assert!(PLACE.verify(&sealed, &bytes).agree());
        let JournalPosition { file, offset } = PLACE.position;
        for other in [
            Place { database: 8, ..PLACE },
            Place { position: JournalPosition { file: file + 1, offset }, ..PLACE },
            Place { position: JournalPosition { file, offset: offset + 1 }, ..PLACE },
        ] {
            assert!(!other.verify(&sealed, &bytes).agree());
        }
    }

    #[test]
    fn commits_that_do_not_fill_their_group_are_told() {
        let bytes = commits();
        for cut in 0..bytes.len() {
            let read: Vec<_> = Commits::new(&header(cut), &bytes[..cut]).collect();
            assert_eq!(read.last(), Some(&None), "cut at {cut}");
        }
        let mut longer = bytes;
        longer.push(0);
        assert_eq!(Commits::new(&header(longer.len()), &longer).last(), Some(None));
    }

    #[test]
    fn varints_beyond_64_bits_are_refused() {
        for value in [0, 127, 128, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            encode_varint(&mut bytes, value);
            assert_eq!(decode_varint(&mut bytes.as_slice()), Some(value));
        }
        let mut too_large = [0xff; 10];
        too_large[9] = 2;
        assert_eq!(decode_varint(&mut too_large.as_slice()), None);
        assert_eq!(decode_varint(&mut [0x80; 11].as_slice()), None);
    }
}
