//! The bytes of a staging file: what a stripe writes and recovery reads.
//!
//! Invariants:
//! - every checksum begins with what the bytes belong to: database, stripe, generation and place.
//!   So what a file had in an earlier generation, or at another place, is no record of this one;
//! - a bank's header is written to its two places in turn: one that a killed process had not
//!   written to its end leaves the one before;
//! - a record of zeros is none, whatever its checksum: room that was never written ends a bank.
//!
//! `docs/format.md` describes every byte.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use zerocopy::little_endian::{I64, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::io::{MAPPED_BYTES, Mapped};
use crate::revision::CommitSequence;
use crate::series::ValueType;
use crate::tree::cell_key::TreeId;

/// Banks of a stripe: one is filled while the other one is being sealed.
pub(crate) const BANKS: usize = 2;
/// Bytes of a record, and of a bank's header.
pub(crate) const RECORD_BYTES: usize = MAPPED_BYTES;
/// Places of a bank that its header takes.
pub(crate) const HEADERS: usize = 2;
/// Bytes before the first bank.
pub(crate) const BANKS_AT: u64 = 4_096;
const MAGIC: [u8; 8] = *b"\x89DURSTR\n";
const VERSION: u32 = 1;

const _: () = assert!(size_of::<FileHeader>() == 40);
const _: () = assert!(size_of::<BankHeader>() == RECORD_BYTES);
const _: () = assert!(size_of::<StoredRecord>() == RECORD_BYTES);

/// What the file begins with.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct FileHeader {
    magic: [u8; 8],
    /// CRC-32C of the database's id and everything after this field.
    checksum: U32,
    version: U32,
    /// A number that no other stripe has.
    stripe: U64,
    /// Records of a bank, its headers included.
    places: U64,
    reserved: U64,
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct BankHeader {
    checksum: U32,
    reserved: U32,
    generation: U64,
    /// The last checkpoint when this was written.
    after: U64,
    reserved_too: U64,
}

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct StoredRecord {
    checksum: U32,
    value_type: u8,
    quality: u8,
    reserved: [u8; 2],
    /// The number of the series, less 2^63.
    series: U64,
    time: I64,
    bits: U64,
}

/// A point of any series whose values are not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StagedPoint {
    pub(crate) series: TreeId,
    pub(crate) time: i64,
    /// The value: the bits of a float, an integer as it is, 0 or 1.
    pub(crate) bits: u64,
    pub(crate) value_type: ValueType,
    pub(crate) quality: u8,
}

/// The points of a bank between two seals, in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundGeneration {
    pub(crate) generation: u64,
    pub(crate) after: CommitSequence,
    pub(crate) points: Vec<StagedPoint>,
}

/// What a staging file has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundStripe {
    pub(crate) stripe: u64,
    /// In the order in which they were filled.
    pub(crate) generations: Vec<FoundGeneration>,
}

/// Bytes of a file whose banks have so many places.
pub(crate) fn file_bytes(places: usize) -> u64 {
    place_at(places, BANKS, 0)
}

/// Where a place of a bank is.
#[inline]
pub(crate) fn place_at(places: usize, bank: usize, place: usize) -> u64 {
    let before = (bank as u64).saturating_mul(places as u64).saturating_add(place as u64);
    before.saturating_mul(RECORD_BYTES as u64).saturating_add(BANKS_AT)
}

/// What checksums of a stripe begin with.
pub(crate) fn stripe_seed(database: u128, stripe: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&database.to_le_bytes()), &stripe.to_le_bytes())
}

/// What checksums of the records of a generation begin with, before their place.
pub(crate) fn generation_seed(stripe: u32, bank: usize, generation: u64) -> u32 {
    let seed = crc32c::crc32c_append(stripe, &(bank as u64).to_le_bytes());
    crc32c::crc32c_append(seed, &generation.to_le_bytes())
}

/// The seed of a place: places are far fewer than checksums.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a bank has fewer than 2^32 places")]
fn place_seed(seed: u32, place: usize) -> u32 {
    seed ^ place as u32
}

/// The header of a file.
pub(crate) fn file_header(database: u128, stripe: u64, places: usize) -> [u8; 40] {
    let mut header = FileHeader {
        magic: MAGIC,
        checksum: U32::ZERO,
        version: VERSION.into(),
        stripe: stripe.into(),
        places: (places as u64).into(),
        reserved: U64::ZERO,
    };
    header.checksum = header.sum(database).into();
    zerocopy::transmute!(header)
}

/// The header of a bank, for one of its places.
pub(crate) fn bank_header(
    seed: u32,
    place: usize,
    generation: u64,
    after: CommitSequence,
) -> Mapped {
    record((seed, place), 0, [generation, after.0, 0])
}

impl BankHeader {
    fn sum(&self, seed: u32, place: usize) -> u32 {
        let words = [self.generation, self.after, self.reserved_too];
        sum((seed, place), self.reserved.get(), words.map(U64::get))
    }
}

impl StoredRecord {
    #[inline]
    fn sum(&self, seed: u32, place: usize) -> u32 {
        let [low, high] = self.reserved;
        let head = u32::from_le_bytes([self.value_type, self.quality, low, high]);
        let words = [self.series.get(), self.time.get().cast_unsigned(), self.bits.get()];
        sum((seed, place), head, words)
    }
}

impl FileHeader {
    fn sum(&self, database: u128) -> u32 {
        let seed = crc32c::crc32c(U128::new(database).as_bytes());
        crc32c::crc32c_append(seed, self.as_bytes().get(12..).unwrap_or_default())
    }
}

impl StagedPoint {
    /// The record of the point at a place of a bank.
    #[inline]
    pub(crate) fn record(&self, seed: u32, place: usize) -> Mapped {
        let head = u32::from_le_bytes([type_code(self.value_type), self.quality, 0, 0]);
        let series = self.series.0.saturating_sub(TreeId::SERIES.0);
        record((seed, place), head, [series, self.time.cast_unsigned(), self.bits])
    }

    /// The point of a record; none if there is no such record at this place.
    fn read(record: &StoredRecord, seed: u32, place: usize) -> Option<Self> {
        let value_type = value_type(record.value_type)?;
        let series = TreeId(record.series.get().checked_add(TreeId::SERIES.0)?);
        let point = Self {
            series,
            time: record.time.get(),
            bits: record.bits.get(),
            value_type,
            quality: record.quality,
        };
        let is_whole = record.checksum.get() == record.sum(seed, place);
        (is_whole && series.is_series()).then_some(point)
    }
}

/// The checksum of what follows it in a header or record at a place of a bank.
#[inline]
fn sum((seed, place): (u32, usize), head: u32, words: [u64; 3]) -> u32 {
    duramen_kernel::crc32c_record(place_seed(seed, place), head, words)
}

/// A header or record: its checksum, and what follows that.
#[inline]
fn record(at: (u32, usize), head: u32, words: [u64; 3]) -> Mapped {
    let first = u64::from(head) << 32 | u64::from(sum(at, head, words));
    let [second, third, fourth] = words;
    let both = |low, high| u128::from(high) << 64 | u128::from(low);
    (both(first, second), both(third, fourth))
}

/// The codes begin with 1, so that zeros are no record.
fn type_code(value_type: ValueType) -> u8 {
    match value_type {
        ValueType::F64 => 1,
        ValueType::F32 => 2,
        ValueType::I64 => 3,
        ValueType::Bool => 4,
        ValueType::String => 0,
    }
}

fn value_type(code: u8) -> Option<ValueType> {
    let staged = [ValueType::F64, ValueType::F32, ValueType::I64, ValueType::Bool];
    staged.into_iter().find(|&value_type| type_code(value_type) == code)
}

/// The header of a file; none if it was not made to its end, or is of another database.
fn header(bytes: &[u8], database: u128) -> Option<&FileHeader> {
    let (header, _) = FileHeader::ref_from_prefix(bytes).ok()?;
    let is_ours = header.magic == MAGIC && header.version.get() == VERSION;
    (is_ours && header.checksum.get() == header.sum(database)).then_some(header)
}

/// How many places a bank of the file has that begins so, if that can be.
pub(crate) fn places(bytes: &[u8], database: u128) -> Option<usize> {
    let places = usize::try_from(header(bytes, database)?.places.get()).ok()?;
    places.checked_mul(BANKS * RECORD_BYTES).filter(|bytes| *bytes < usize::MAX / 2)?;
    Some(places)
}

/// Reads a file; none if it was not made to its end, or is of another database.
pub(crate) fn read(bytes: &[u8], database: u128) -> Option<FoundStripe> {
    let header = header(bytes, database)?;
    let stripe = header.stripe.get();
    let places = usize::try_from(header.places.get()).ok()?;
    let seed = stripe_seed(database, stripe);
    let banks = bytes.get(usize::try_from(BANKS_AT).ok()?..)?;
    let bank_bytes = places.checked_mul(RECORD_BYTES).filter(|&bytes| bytes > 0)?;
    let banks = banks.chunks_exact(bank_bytes).take(BANKS).enumerate();
    let mut generations: Vec<_> =
        banks.filter_map(|(bank, bytes)| read_bank(bytes, bank, seed)).collect();
    generations.sort_unstable_by_key(|found| found.generation);
    Some(FoundStripe { stripe, generations })
}

/// What a bank has: its newest header, and the records of that generation up to the first that is
/// none.
fn read_bank(bytes: &[u8], bank: usize, stripe: u32) -> Option<FoundGeneration> {
    let header_seed = generation_seed(stripe, bank, 0);
    let (headers, rest) = <[BankHeader]>::ref_from_prefix_with_elems(bytes, HEADERS).ok()?;
    let headers = headers.iter().enumerate();
    let (_, newest) = headers
        .filter(|(place, header)| header.checksum.get() == header.sum(header_seed, *place))
        .max_by_key(|(_, header)| (header.generation.get(), header.after.get()))?;
    let (generation, after) = (newest.generation.get(), CommitSequence(newest.after.get()));
    let seed = generation_seed(stripe, bank, generation);
    let (records, _) =
        <[StoredRecord]>::ref_from_prefix_with_elems(rest, rest.len().checked_div(RECORD_BYTES)?)
            .ok()?;
    let records = records.iter().zip(HEADERS..);
    let points = records.map_while(|(record, place)| StagedPoint::read(record, seed, place));
    Some(FoundGeneration { generation, after, points: points.collect() })
}

#[cfg(test)]
mod tests;
