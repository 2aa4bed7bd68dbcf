//! Compressed bodies of blocks: the length of the body, 32 bits, and a Zstandard frame (RFC 8878).
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use bytes::Bytes;

/// The number of a body as it is.
pub(super) const PLAIN: u8 = 0;
/// The number of a compressed body.
pub(super) const ZSTD: u8 = 1;

/// Bytes of a body up to which it may be compressed: so damage cannot ask for more memory.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Higher levels take several times as long for a few hundredths less.
const LEVEL: i32 = 9;

/// The compressed body; none unless it takes at least an eighth less.
pub(super) fn compress(body: &[u8]) -> Option<Vec<u8>> {
    if body.len() > BODY_BYTES_MAX {
        return None;
    }
    let frame = zstd::bulk::compress(body, LEVEL).ok()?;
    let length = u32::try_from(body.len()).ok()?;
    let compressed = [&length.to_le_bytes(), frame.as_slice()].concat();
    (compressed.len() < body.len().saturating_sub(body.len() / 8)).then_some(compressed)
}

/// The body that was compressed; none if this is no compressed body.
pub(super) fn decompress(compressed: &[u8]) -> Option<Bytes> {
    let (length, frame) = compressed.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    if length > BODY_BYTES_MAX {
        return None;
    }
    let body = zstd::bulk::decompress(frame, length).ok()?;
    (body.len() == length).then(|| body.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_back_and_one_that_does_not_shrink_stays_as_it_is() {
        let body = b"the same again and again. ".repeat(100);
        let compressed = compress(&body).unwrap();
        assert!(compressed.len() < 100);
        assert_eq!(decompress(&compressed).unwrap(), body);
        assert_eq!(compress(b"short"), None);
        assert_eq!(compress(&vec![0; BODY_BYTES_MAX + 1]), None);
    }

    #[test]
    fn what_is_no_compressed_body_is_refused() {
        let compressed = compress(&[7; 10_000]).unwrap();
        for end in 0..compressed.len() {
            let cut = compressed.get(..end).unwrap();
            assert_eq!(decompress(cut), None, "cut at {end}");
        }
        for length in [9_999_u32, 10_001, u32::MAX] {
            let frame = compressed.get(4..).unwrap();
            let other = [&length.to_le_bytes(), frame].concat();
            assert_eq!(decompress(&other), None, "{length} bytes");
        }
    }
}
