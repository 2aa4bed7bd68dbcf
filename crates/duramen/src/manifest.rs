//! The manifest: the one file that says what a database consists of.
//!
//! Invariants:
//! - it is replaced as a whole;
//! - a file it names was durable before it.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use zerocopy::little_endian::{I64, U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::damage::corrupt;
use crate::io::Device;
use crate::journal::{JournalPoint, JournalPosition};
use crate::limits::{EPOCHS_KEPT_MAX, SEGMENTS_MAX};
use crate::segment::{BlockAddress, Encoding, SegmentInfo};
use crate::small_file::{Prefix, SmallFile, seal, small};
use crate::{CommitSequence, Error, ErrorKind, Micros, Result};

/// The file's name.
pub(crate) const PATH: &str = "MANIFEST";
/// The name of one in the making.
pub(crate) const NEW_PATH: &str = "MANIFEST.new";
/// The manifest's format is that of the database.
const FILE: SmallFile = SmallFile {
    path: PATH,
    new_path: NEW_PATH,
    directory: "",
    magic: *b"\x89DURMAN\n",
    format: 1,
    bytes_max: file_bytes(SEGMENTS_MAX, EPOCHS_KEPT_MAX),
};
/// Set while no process has the database open for writing and everything is in segments.
const FLAG_CLEAN: u32 = 1;
/// Set while a purge is under way: what is given up is overwritten first.
const FLAG_PURGING: u32 = 1 << 1;
/// More than anything that is counted one by one comes to.
pub(crate) const NUMBER_MAX: u64 = 1 << 62;
const _: () = assert!(size_of::<Header>() == 120);
const _: () = assert!(size_of::<Entry>() == 56);
const _: () = assert!(size_of::<EpochEntry>() == 16);

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    prefix: Prefix,
    flags: U32,
    features_read: U64,
    features_write: U64,
    database_id: U128,
    epoch: U64,
    created: I64,
    next_segment: U64,
    checkpoint_sequence: U64,
    checkpoint_timestamp: I64,
    journal_file: U64,
    journal_offset: U64,
    segments: U32,
    epochs: U32,
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Entry {
    number: U64,
    footer: BlockAddress,
    cells: U64,
    first_sequence: U64,
    last_sequence: U64,
    level: u8,
    encoding: u8,
    reserved: U16,
    reserved_more: U32,
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct EpochEntry {
    epoch: U64,
    recovered: U64,
}

/// Where an epoch began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EpochStart {
    pub(crate) epoch: u64,
    /// The last commit that was there when it began: of an earlier epoch those up to this one were
    /// kept, and later ones lost.
    pub(crate) recovered: CommitSequence,
}

/// What a database consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) database_id: u128,
    /// Rises with each open after an unclean end.
    pub(crate) epoch: u64,
    /// When the database was made.
    pub(crate) created: Micros,
    /// Whether the database was closed in order.
    pub(crate) clean: bool,
    /// Whether a purge is under way, so that what is given up is overwritten before it is removed.
    pub(crate) purging: bool,
    /// Features a program must know to read the database: bits of [`Feature`].
    pub(crate) features_read: u64,
    /// Features a program must know to write to the database; none exists yet.
    pub(crate) features_write: u64,
    /// The number the next segment gets; above that of every segment ever named.
    pub(crate) next_segment: u64,
    /// The last commit whose cells are in segments, and where in the journal those after it begin.
    pub(crate) checkpoint: JournalPoint,
    /// The live segments, newest first.
    pub(crate) segments: Vec<SegmentInfo>,
    /// Where the newest epochs but the first began, oldest first.
    pub(crate) epochs: Vec<EpochStart>,
}

/// What a program must know to read a database that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Feature {
    /// Points of series, in the journal and in segments.
    Series = 1,
    /// Points that are staged in files of their own, and commits that seal them.
    Staging = 2,
    /// Facts of trees that tell which kinds of values their columns have had.
    Kinds = 4,
    /// Rollups whose slices are shorter than 32,768 windows, as those of texts are.
    ShortSlices = 8,
}

impl Feature {
    /// All that this version knows.
    const ALL: u64 =
        Self::Series as u64 | Self::Staging as u64 | Self::Kinds as u64 | Self::ShortSlices as u64;
}

impl Manifest {
    /// The manifest of a new database.
    pub(crate) fn new(database_id: u128, created: Micros) -> Self {
        Self {
            database_id,
            epoch: 1,
            created,
            clean: false,
            purging: false,
            features_read: Feature::Kinds as u64,
            features_write: 0,
            next_segment: 1,
            checkpoint: JournalPoint::START,
            segments: Vec::new(),
            epochs: Vec::new(),
        }
    }

    /// Adds a feature: it is told from when the manifest is stored.
    pub(crate) fn add(&mut self, feature: Feature) {
        self.features_read |= feature as u64;
    }

    /// Begins the next epoch, after an unclean end that left the commits up to `recovered`.
    pub(crate) fn begin_epoch(&mut self, recovered: CommitSequence) {
        self.epoch = self.epoch.saturating_add(1);
        self.epochs.push(EpochStart { epoch: self.epoch, recovered });
        let dropped = self.epochs.len().saturating_sub(EPOCHS_KEPT_MAX);
        self.epochs.drain(..dropped);
    }

    /// Reads the manifest; `None` if the device has none.
    pub(crate) fn load(device: &dyn Device) -> Result<Option<Self>> {
        FILE.read(device)?.map(|bytes| Self::decode(&bytes)).transpose()
    }

    /// Puts this manifest, durably, in the place of the one before. After an error either of the
    /// two may be the one that a later open finds.
    pub(crate) fn store(&self, device: &dyn Device) -> Result<()> {
        if self.segments.len() > SEGMENTS_MAX {
            let message = format!(
                "the database has {SEGMENTS_MAX} segments, the most it can: load it into a new one"
            );
            return Err(Error::new(ErrorKind::Full, message));
        }
        FILE.replace(device, &self.encode())
    }

    /// An `Unsupported` error if the database has features this version cannot write.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.features_write {
            0 => Ok(()),
            features => Err(FILE.unsupported(&format!(
                "the database has features {features:#x}, which this version can read but not write"
            ))),
        }
    }

    fn flags(&self) -> u32 {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        flag(self.clean, FLAG_CLEAN) | flag(self.purging, FLAG_PURGING)
    }

    /// The bytes of the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let entries: Vec<_> = self.segments.iter().map(Entry::of).collect();
        let epochs: Vec<_> = self.epochs.iter().map(EpochEntry::of).collect();
        let header = Header {
            prefix: FILE.prefix(file_bytes(entries.len(), epochs.len())),
            flags: self.flags().into(),
            features_read: self.features_read.into(),
            features_write: self.features_write.into(),
            database_id: self.database_id.into(),
            epoch: self.epoch.into(),
            created: self.created.0.into(),
            next_segment: self.next_segment.into(),
            checkpoint_sequence: self.checkpoint.sequence.0.into(),
            checkpoint_timestamp: self.checkpoint.timestamp.0.into(),
            journal_file: self.checkpoint.position.file.into(),
            journal_offset: self.checkpoint.position.offset.into(),
            segments: small(entries.len()),
            epochs: small(epochs.len()),
        };
        let mut bytes = [header.as_bytes(), entries.as_bytes(), epochs.as_bytes()].concat();
        seal(&mut bytes);
        bytes
    }

    /// Reads the bytes of a file.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        FILE.check(bytes)?;
        let Ok((header, rest)) = Header::ref_from_prefix(bytes) else {
            return Err(damage(0, "bytes of the file", size_of::<Header>(), bytes.len()));
        };
        let features = header.features_read.get() & !Feature::ALL;
        if features != 0 {
            return Err(FILE.unsupported(&format!("the database has features {features:#x}")));
        }
        let (count, epochs) = (header.segments.get() as usize, header.epochs.get() as usize);
        let wrong_length =
            || damage(112, "bytes of the file", file_bytes(count, epochs), bytes.len());
        let (entries, rest) =
            <[Entry]>::ref_from_prefix_with_elems(rest, count).map_err(|_| wrong_length())?;
        let epochs =
            <[EpochEntry]>::ref_from_bytes_with_elems(rest, epochs).map_err(|_| wrong_length())?;
        let manifest = Self {
            database_id: header.database_id.get(),
            epoch: header.epoch.get(),
            created: Micros(header.created.get()),
            clean: header.flags.get() & FLAG_CLEAN != 0,
            purging: header.flags.get() & FLAG_PURGING != 0,
            features_read: header.features_read.get(),
            features_write: header.features_write.get(),
            next_segment: header.next_segment.get(),
            checkpoint: JournalPoint {
                position: JournalPosition {
                    file: header.journal_file.get(),
                    offset: header.journal_offset.get(),
                },
                sequence: CommitSequence(header.checkpoint_sequence.get()),
                timestamp: Micros(header.checkpoint_timestamp.get()),
            },
            segments: entries.iter().enumerate().map(Entry::info).collect::<Result<_>>()?,
            epochs: epochs.iter().map(EpochEntry::start).collect(),
        };
        manifest.check_numbers()?;
        Ok(manifest)
    }

    /// Refuses numbers that no database comes to, so that what counts on from them stays in range.
    fn check_numbers(&self) -> Result<()> {
        let in_range = |at: u64, what: &str, range: RangeInclusive<u64>, found: u64| {
            let expected = || format!("{} to {}", range.start(), range.end());
            if range.contains(&found) { Ok(()) } else { Err(damage(at, what, expected(), found)) }
        };
        let JournalPoint { position, sequence, .. } = self.checkpoint;
        let numbers = self.segments.iter().map(|info| info.number);
        let above_all = numbers.max().unwrap_or(0).saturating_add(1);
        in_range(56, "epoch", 1..=NUMBER_MAX, self.epoch)?;
        in_range(72, "next segment", above_all..=NUMBER_MAX, self.next_segment)?;
        in_range(80, "checkpoint", 0..=NUMBER_MAX, sequence.0)?;
        in_range(96, "journal file", 1..=NUMBER_MAX, position.file)?;
        in_range(104, "offset in the journal file", 0..=u32::MAX.into(), position.offset)?;
        for (index, info) in self.segments.iter().enumerate() {
            let at = file_bytes(index, 0) as u64;
            let last = info.last_sequence.0;
            in_range(at, "number of a segment", 1..=NUMBER_MAX, info.number)?;
            in_range(at.saturating_add(40), "last commit of a segment", 0..=sequence.0, last)?;
        }
        Ok(())
    }
}

impl Entry {
    fn of(info: &SegmentInfo) -> Self {
        Self {
            number: info.number.into(),
            footer: info.footer,
            cells: info.cells.into(),
            first_sequence: info.first_sequence.0.into(),
            last_sequence: info.last_sequence.0.into(),
            level: info.level,
            encoding: info.encoding as u8,
            reserved: U16::ZERO,
            reserved_more: U32::ZERO,
        }
    }

    fn info((index, entry): (usize, &Self)) -> Result<SegmentInfo> {
        let Some(encoding) = Encoding::from_byte(entry.encoding) else {
            let at = file_bytes(index, 0) as u64;
            return Err(damage(at, "encoding of a segment", "0 or 1", entry.encoding));
        };
        Ok(SegmentInfo {
            number: entry.number.get(),
            footer: entry.footer,
            cells: entry.cells.get(),
            level: entry.level,
            encoding,
            first_sequence: CommitSequence(entry.first_sequence.get()),
            last_sequence: CommitSequence(entry.last_sequence.get()),
        })
    }
}

impl EpochEntry {
    fn of(start: &EpochStart) -> Self {
        Self { epoch: start.epoch.into(), recovered: start.recovered.0.into() }
    }

    fn start(&self) -> EpochStart {
        EpochStart { epoch: self.epoch.get(), recovered: CommitSequence(self.recovered.get()) }
    }
}

const fn file_bytes(segments: usize, epochs: usize) -> usize {
    let segments = segments.saturating_mul(size_of::<Entry>());
    let epochs = epochs.saturating_mul(size_of::<EpochEntry>());
    segments.saturating_add(epochs).saturating_add(size_of::<Header>())
}

fn damage(
    offset: u64,
    what: &str,
    expected: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> Error {
    corrupt(PATH, offset, what, expected, found)
}
