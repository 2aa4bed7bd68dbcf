//! Numbers compressed by pco, in pages that can be read one by one.
//!
//! What pco wrote is read back before it is trusted: a column that does not come back to the bit
//! is kept in another form.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Range;

use pco::data_types::Number;
use pco::metadata::{ChunkMeta, DeltaEncoding, DynBins, Mode};
use pco::wrapped::{ChunkDecompressor, FileCompressor, FileDecompressor};
use pco::{ChunkConfig, DeltaSpec, ModeSpec, PagingSpec};

use super::integers::inside;
use crate::error::Result;
use crate::wire::{Reader, put_bytes, put_varint};

/// Numbers below which pco has too little to learn from.
pub(super) const LEN_MIN: usize = 64;
/// Numbers that are decoded at a time.
pub(super) const READ: usize = 512;
/// Numbers of a page: reading one of them decodes its page.
pub(super) const PAGE: usize = 4_096;

/// Numbers whose bits are compared.
pub(super) trait Exact: Number + Default {
    /// Whether both have the same bits.
    fn is_exactly(&self, other: &Self) -> bool;
}

macro_rules! exact {
    ($($type:ty)*) => {$(
        impl Exact for $type {
            fn is_exactly(&self, other: &Self) -> bool {
                self.to_ne_bytes() == other.to_ne_bytes()
            }
        }
    )*};
}

exact!(u16 u32 u64 f32 f64);

/// What pco takes apart into bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The numbers.
    None,
    /// The differences of neighbours.
    First,
}

/// How pco compressed numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// None if it took apart something else.
    pub(super) order: Option<Order>,
    /// Whether numbers have bits besides those of their bin.
    pub(super) has_offsets: bool,
}

impl Way {
    fn of(chunk: &ChunkMeta) -> Self {
        let order = match (&chunk.mode, &chunk.delta_encoding) {
            (Mode::Classic, DeltaEncoding::NoOp) => Some(Order::None),
            (Mode::Classic, DeltaEncoding::Consecutive { order: 1, .. }) => Some(Order::First),
            _ => None,
        };
        let has_offsets = match &chunk.per_latent_var.primary.bins {
            DynBins::U8(bins) => bins.iter().any(|bin| bin.offset_bits > 0),
            DynBins::U16(bins) => bins.iter().any(|bin| bin.offset_bits > 0),
            DynBins::U32(bins) => bins.iter().any(|bin| bin.offset_bits > 0),
            DynBins::U64(bins) => bins.iter().any(|bin| bin.offset_bits > 0),
            _ => true,
        };
        Self { order, has_offsets }
    }
}

/// Appends numbers, at least one. None, and nothing of use appended, if they would not come back.
pub(super) fn compress<T: Exact>(numbers: &[T], out: &mut Vec<u8>) -> Option<Way> {
    compress_as(numbers, &ChunkConfig::default(), out)
}

/// Appends numbers that are symbols. False, and nothing of use appended, if they would have bits
/// besides those of their bin.
pub(super) fn compress_symbols(symbols: &[u16], out: &mut Vec<u8>) -> bool {
    let config = ChunkConfig::default().with_mode_spec(ModeSpec::Classic);
    let way = compress_as(symbols, &config.with_delta_spec(DeltaSpec::NoOp), out);
    way.is_some_and(|way| !way.has_offsets)
}

fn compress_as<T: Exact>(numbers: &[T], config: &ChunkConfig, out: &mut Vec<u8>) -> Option<Way> {
    let start = out.len();
    let way = write(numbers, config, out)?;
    let mut rest = numbers;
    let mut alike = true;
    let mut reader = Reader::new(out.get(start..).unwrap_or_default());
    let read = decompress::<T>(&mut reader, numbers.len(), 0..numbers.len(), &mut |some| {
        let (these, after) = rest.split_at_checked(some.len()).unwrap_or_default();
        alike &= these.len() == some.len();
        alike &= these.iter().zip(some).all(|(one, two)| one.is_exactly(two));
        rest = after;
    });
    (read.is_ok() && alike && rest.is_empty()).then_some(way)
}

fn write<T: Exact>(numbers: &[T], config: &ChunkConfig, out: &mut Vec<u8>) -> Option<Way> {
    let pages = numbers.chunks(PAGE).map(<[T]>::len).collect();
    let config = config.clone().with_paging_spec(PagingSpec::Exact(pages));
    let file = FileCompressor::default();
    let mut chunk = file.chunk_compressor(numbers, &config).ok()?;
    if looks_back(&chunk.meta().delta_encoding).is_some() {
        let config = config.with_delta_spec(DeltaSpec::TryConsecutive(1));
        chunk = file.chunk_compressor(numbers, &config).ok()?;
    }
    let head = file.write_header(Vec::new()).ok()?;
    put_bytes(out, &chunk.write_meta(head).ok()?);
    let mut bytes = Vec::new();
    for page in 0..chunk.n_per_page().len() {
        let before = bytes.len();
        bytes = chunk.write_page(page, bytes).ok()?;
        put_varint(out, bytes.len().saturating_sub(before) as u64);
    }
    out.extend_from_slice(&bytes);
    Some(Way::of(chunk.meta()))
}

/// Decodes `len` numbers and gives those of a range to `sink`.
pub(super) fn decompress<T: Exact>(
    reader: &mut Reader<'_>,
    len: usize,
    range: Range<usize>,
    sink: &mut dyn FnMut(&[T]),
) -> Result<()> {
    let head = reader.bytes()?;
    let pages = len.div_ceil(PAGE);
    let mut lengths = Vec::with_capacity(pages);
    for _ in 0..pages {
        lengths.push(reader.count()?);
    }
    let Some(mut chunk) = chunk::<T>(head) else {
        return Err(reader.corrupt("compressed numbers have no head that is known"));
    };
    for (start, length) in (0..len).step_by(PAGE).zip(lengths) {
        let page = (reader.rest(), length);
        reader.take(length)?;
        let count = len.saturating_sub(start).min(PAGE);
        let end = start.saturating_add(count);
        if end <= range.start || start >= range.end {
            continue;
        }
        let taken = read_page(&mut chunk, page, start..end, &mut |start, some| {
            sink(inside(some, start, some.len(), &range));
        });
        if taken.is_none() {
            return Err(reader.corrupt("compressed numbers do not decode"));
        }
    }
    Ok(())
}

/// The chunk of a head. Those with a look-back are refused: they are never written, and reserve
/// memory by a size that they name.
fn chunk<T: Exact>(head: &[u8]) -> Option<ChunkDecompressor<T>> {
    let (file, rest) = FileDecompressor::new(head).ok()?;
    let (chunk, rest) = file.chunk_decompressor::<T, _>(rest).ok()?;
    let is_known = looks_back(&chunk.meta().delta_encoding).is_none();
    (rest.is_empty() && is_known).then_some(chunk)
}

/// The encoding if it needs more numbers than the few before.
fn looks_back(encoding: &DeltaEncoding) -> Option<&DeltaEncoding> {
    let is_known = matches!(encoding, DeltaEncoding::NoOp | DeltaEncoding::Consecutive { .. });
    (!is_known).then_some(encoding)
}

/// Reads the page that so many first of some bytes are. What stands behind it is given too: where
/// less is left than a batch of numbers may take, pco makes a copy of the rest for each page.
fn read_page<T: Exact>(
    chunk: &mut ChunkDecompressor<T>,
    (page_on, length): (&[u8], usize),
    places: Range<usize>,
    take: &mut dyn FnMut(usize, &[T]),
) -> Option<()> {
    let mut numbers = [T::default(); READ];
    let mut decompressor = chunk.page_decompressor(page_on, places.len()).ok()?;
    for start in places.clone().step_by(READ) {
        let count = places.end.saturating_sub(start).min(READ);
        let progress = decompressor.read(&mut numbers).ok()?;
        if progress.n_processed != count {
            return None;
        }
        take(start, numbers.get(..count)?);
    }
    let behind = page_on.len().checked_sub(length)?;
    (decompressor.into_src().len() == behind).then_some(())
}
