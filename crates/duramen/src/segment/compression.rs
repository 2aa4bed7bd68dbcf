//! Compressed bodies of blocks: the length of the body, 32 bits, and a Zstandard frame (RFC 8878)
//! of the body, [packed](super::packing) if it has several cells.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::cell::RefCell;

use bytes::Bytes;
use zstd::bulk::{Compressor, Decompressor};

use super::packing::{FindVectors, pack, packed_bytes_max, unpack};

/// The number of a body as it is.
pub(super) const PLAIN: u8 = 0;
/// The number of a compressed body.
pub(super) const ZSTD: u8 = 1;
/// The number of a body that was packed and then compressed.
pub(super) const PACKED: u8 = 2;

/// The number of a body of index entries that was [shortened](super::shortening).
pub(super) const SHORTENED: u8 = 3;

/// Bytes of a body up to which it may be compressed: so damage cannot ask for more memory.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Four times as long as level 9 for a twentieth less; the next levels take longer for hundredths.
const LEVEL: i32 = 14;

thread_local! {
    // Making one takes as long as a block does.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// How the body of a block of so many cells is compressed, and the result; none unless it takes at
/// least a third less: what is read in place is read in a tenth of the time (benchmark RR).
pub(super) fn compress(body: &Bytes, cells: usize, find: FindVectors) -> Option<(u8, Vec<u8>)> {
    if body.len() > BODY_BYTES_MAX {
        return None;
    }
    let packed = if cells > 1 { Some(pack(body, cells, find)?) } else { None };
    let way = if packed.is_some() { PACKED } else { ZSTD };
    let frame = deflate(packed.as_deref().unwrap_or(body))?;
    let length = u32::try_from(body.len()).ok()?;
    let compressed = [&length.to_le_bytes(), frame.as_slice()].concat();
    let is_worth_it = compressed.len() < body.len().saturating_sub(body.len() / 3);
    is_worth_it.then_some((way, compressed))
}

/// The body of so many cells that was compressed in this way; none if this is no such thing.
pub(super) fn decompress(way: u8, compressed: &[u8], cells: usize) -> Option<Bytes> {
    let (length, frame) = compressed.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    if length > BODY_BYTES_MAX || cells > length {
        return None;
    }
    let body = if way == PACKED {
        unpack(&inflate(frame, packed_bytes_max(length, cells)?)?, (cells, length))?
    } else {
        inflate(frame, length)?
    };
    (body.len() == length).then(|| body.into())
}

fn deflate(bytes: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            None => kept.insert(Compressor::new(LEVEL).ok()?),
        };
        compressor.compress(bytes).ok()
    })
}

fn inflate(frame: &[u8], most: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::new().ok()?),
        };
        decompressor.decompress(frame, most).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compress(body: &[u8], cells: usize) -> Option<(u8, Vec<u8>)> {
        super::compress(&Bytes::copy_from_slice(body), cells, |_, _| Vec::new())
    }

    #[test]
    fn a_body_comes_back_and_one_that_does_not_shrink_stays_as_it_is() {
        let body = b"the same again and again. ".repeat(100);
        let (way, compressed) = compress(&body, 1).unwrap();
        assert!(way == ZSTD && compressed.len() < 100);
        assert_eq!(decompress(way, &compressed, 1).unwrap(), body);
        assert_eq!(compress(b"short", 1), None);
        assert_eq!(compress(&vec![0; BODY_BYTES_MAX + 1], 1), None);
    }

    #[test]
    fn a_body_of_several_cells_is_packed() {
        let body = [vec![0; 4 * 10], vec![1; 900]].concat();
        let (way, compressed) = compress(&body, 10).unwrap();
        assert_eq!(way, PACKED);
        assert_eq!(decompress(way, &compressed, 10).unwrap(), body);
        assert_eq!(decompress(way, &compressed, 11), None);
        assert_eq!(decompress(way, &compressed, usize::MAX), None);
    }

    #[test]
    fn what_is_no_compressed_body_is_refused() {
        let (way, compressed) = compress(&[7; 10_000], 1).unwrap();
        for end in 0..compressed.len() {
            let cut = compressed.get(..end).unwrap();
            assert_eq!(decompress(way, cut, 1), None, "cut at {end}");
        }
        for length in [9_999_u32, 10_001, u32::MAX] {
            let frame = compressed.get(4..).unwrap();
            let other = [&length.to_le_bytes(), frame].concat();
            assert_eq!(decompress(way, &other, 1), None, "{length} bytes");
        }
    }
}
