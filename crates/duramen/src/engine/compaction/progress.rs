//! How far a merge of segments has come, for the next one to go on there: `segments/MERGE`.
//!
//! Invariants:
//! - of the segment being made so much is durable before this says so;
//! - it means nothing unless all segments that are merged are live and follow each other;
//! - one that does not verify is as none: the merge begins anew, and nothing is lost but time.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use zerocopy::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::Result;
use crate::io::Device;
use crate::limits::{CELL_KEY_BYTES_MAX, SEGMENTS_MAX};
use crate::manifest::{Manifest, NUMBER_MAX};
use crate::segment::{DIRECTORY, Encoding, file_name};
use crate::small_file::{Prefix, SmallFile, seal, small};

/// The file's name in the folder of the segments.
const NAME: &str = "MERGE";
/// Bytes of what a merge drops, up to which it is noted.
pub(super) const DROPPED_BYTES_MAX: usize = 1 << 20;
const FILE: SmallFile = SmallFile {
    path: "segments/MERGE",
    new_path: "segments/MERGE.new",
    // The name of the segment becomes durable with it.
    directory: DIRECTORY,
    magic: *b"\x89DURMRG\n",
    // Since 2 the key may be within a tree of which something is dropped.
    format: 2,
    bytes_max: size_of::<Head>()
        + SEGMENTS_MAX * size_of::<U64>()
        + CELL_KEY_BYTES_MAX
        + DROPPED_BYTES_MAX,
};
/// Set if somebody asked for the merge.
const FLAG_ON_DEMAND: u8 = 1;
const _: () = assert!(size_of::<Head>() == 72);

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Head {
    prefix: Prefix,
    level: u8,
    encoding: u8,
    flags: u8,
    reserved: u8,
    database_id: U128,
    segment: U64,
    written: U64,
    read: U64,
    inputs: U32,
    key: U32,
}

/// How far a merge has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) database_id: u128,
    /// The number of the segment that is being made, and its level and encoding.
    pub(crate) segment: u64,
    pub(crate) level: u8,
    pub(crate) encoding: Encoding,
    /// Whether somebody asked for it, who may not want it any more.
    pub(crate) is_on_demand: bool,
    /// Bytes of the segment's file that are durable, and of the cells that went into them.
    pub(crate) written_bytes: u64,
    pub(crate) read_bytes: u64,
    /// The numbers of the segments that are merged, newest first.
    pub(crate) inputs: Vec<u64>,
    /// The first key that is not merged.
    pub(crate) next_key: Vec<u8>,
    /// What the merge drops, as the retention says it; empty if it drops nothing.
    pub(crate) dropped: Vec<u8>,
}

impl Progress {
    /// Reads it; none if there is none that verifies.
    pub(crate) fn load(device: &dyn Device) -> Result<Option<Self>> {
        Ok(FILE.read(device)?.and_then(|bytes| Self::decode(&bytes)))
    }

    /// Puts it, durably, in the place of the one before.
    pub(crate) fn store(&self, device: &dyn Device) -> Result<()> {
        FILE.replace(device, &self.encode())
    }

    /// Forgets it; one that is not there is fine.
    pub(crate) fn remove(device: &dyn Device) -> Result<()> {
        FILE.remove(device)
    }

    /// The files of a merge that can be gone on with, in the folder of the segments; the number of
    /// its segment is taken. What a purge erases may be in them, so none stay while one is under
    /// way.
    pub(crate) fn files(device: &dyn Device, manifest: &mut Manifest) -> Result<Vec<String>> {
        let is_live =
            |number: u64| manifest.segments.iter().any(|segment| segment.number == number);
        let left = Self::load(device)?.filter(|left| {
            !manifest.purging
                && left.database_id == manifest.database_id
                && left.segment < NUMBER_MAX
                && !is_live(left.segment)
                && left.inputs.iter().copied().all(is_live)
        });
        let Some(left) = left else { return Ok(Vec::new()) };
        manifest.next_segment = manifest.next_segment.max(left.segment.saturating_add(1));
        Ok(vec![NAME.to_owned(), file_name(left.segment)])
    }

    /// The bytes of the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let inputs: Vec<_> = self.inputs.iter().map(|&number| U64::new(number)).collect();
        let rest = [inputs.as_bytes(), &self.next_key, &self.dropped].concat();
        let head = Head {
            prefix: FILE.prefix(size_of::<Head>().saturating_add(rest.len())),
            level: self.level,
            encoding: self.encoding as u8,
            flags: if self.is_on_demand { FLAG_ON_DEMAND } else { 0 },
            reserved: 0,
            database_id: self.database_id.into(),
            segment: self.segment.into(),
            written: self.written_bytes.into(),
            read: self.read_bytes.into(),
            inputs: small(inputs.len()),
            key: small(self.next_key.len()),
        };
        let mut bytes = [head.as_bytes(), &rest].concat();
        seal(&mut bytes);
        bytes
    }

    /// Reads the bytes of a file; none if they do not verify or are of a newer format.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        FILE.check(bytes).ok()?;
        let (head, rest) = Head::ref_from_prefix(bytes).ok()?;
        let (inputs, key) =
            <[U64]>::ref_from_prefix_with_elems(rest, head.inputs.get() as usize).ok()?;
        let (key, dropped) = key.split_at_checked(head.key.get() as usize)?;
        if inputs.is_empty() {
            return None;
        }
        Some(Self {
            database_id: head.database_id.get(),
            segment: head.segment.get(),
            level: head.level,
            encoding: Encoding::from_byte(head.encoding)?,
            is_on_demand: head.flags & FLAG_ON_DEMAND != 0,
            written_bytes: head.written.get(),
            read_bytes: head.read.get(),
            inputs: inputs.iter().map(|number| number.get()).collect(),
            next_key: key.to_vec(),
            dropped: dropped.to_vec(),
        })
    }
}

/// One to be fuzzed and tested.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn example() -> Progress {
    Progress {
        database_id: 7,
        segment: 12,
        level: 3,
        encoding: Encoding::Cold,
        is_on_demand: true,
        written_bytes: 4_096,
        read_bytes: 9_000,
        inputs: vec![11, 10, 4],
        next_key: b"key".to_vec(),
        dropped: vec![3, 2, 9, 0, 0],
    }
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "bytes made here")]
mod tests {
    use super::*;
    use crate::io::MemoryDevice;

    #[test]
    fn what_was_stored_is_loaded_until_it_is_removed() {
        let device = MemoryDevice::new();
        assert_eq!(Progress::load(&device).unwrap(), None);
        device.create_dir(DIRECTORY).unwrap();
        example().store(&device).unwrap();
        let next = Progress { read_bytes: 10_000, ..example() };
        next.store(&device).unwrap();
        assert_eq!(Progress::load(&device).unwrap(), Some(next));
        Progress::remove(&device).unwrap();
        Progress::remove(&device).unwrap();
        assert_eq!(Progress::load(&device).unwrap(), None);
    }

    #[test]
    fn one_with_a_wrong_bit_or_cut_anywhere_is_as_none() {
        let bytes = example().encode();
        assert_eq!(Progress::decode(&bytes), Some(example()));
        for end in 0..bytes.len() {
            assert_eq!(Progress::decode(&bytes[..end]), None, "cut at {end}");
            let mut wrong = bytes.clone();
            wrong[end] ^= 0x10;
            assert_eq!(Progress::decode(&wrong), None, "byte {end}");
        }
    }
}
