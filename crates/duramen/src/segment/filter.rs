//! Which keys a segment may have: a split block Bloom filter, as Apache Parquet specifies it
//! (<https://parquet.apache.org/docs/file-format/bloomfilter/>), over XXH3-64 hashes.
//!
//! It holds every whole key and the first [`TREE_PREFIX_BYTES`] of every key that has so many, so
//! that, once it is read, neither a key nor a tree that is not in the segment costs a block read.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use bytes::Bytes;
use twox_hash::XxHash3_64;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::Encoding;
use super::block::{Block, BlockAddress, Origin};
use crate::Result;
use crate::damage::corrupt;

/// Bytes at the start of a key that name its tree.
pub(crate) const TREE_PREFIX_BYTES: usize = 8;

/// Filter bits spent on a key: fewer than one absent key in 100 passes.
const BITS_PER_KEY: usize = 12;
/// The same where space counts more: about one in 30 passes.
const COLD_BITS_PER_KEY: usize = 8;
const LANE_BITS: usize = 256;
const SALT: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

const _: () = assert!(size_of::<Lane>() * 8 == LANE_BITS);

/// One 256-bit lane: all bits of a key are in one, so a test touches one cache line.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Lane([U32; 8]);

/// The hash of a whole key or of a tree prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    /// The hash of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(XxHash3_64::oneshot(bytes))
    }

    /// The hash of the tree a key or a prefix of keys belongs to; `None` if it is too short.
    pub(crate) fn of_tree(bytes: &[u8]) -> Option<Self> {
        bytes.get(..TREE_PREFIX_BYTES).map(Self::of)
    }

    fn lane(self, lanes: usize) -> usize {
        // The product of two 32-bit numbers fits 64 bits; its upper half is below `lanes`.
        usize::try_from((self.0 >> 32).wrapping_mul(lanes as u64) >> 32).unwrap_or_default()
    }

    fn mask(self) -> [u32; 8] {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half picks the bits")]
        let low = self.0 as u32;
        SALT.map(|salt| 1 << (low.wrapping_mul(salt) >> 27))
    }
}

/// Bytes that the lanes of so many keys take.
pub(super) fn bytes(keys: usize, encoding: Encoding) -> usize {
    bits(keys, encoding).div_ceil(LANE_BITS).saturating_mul(size_of::<Lane>())
}

fn bits(keys: usize, encoding: Encoding) -> usize {
    let bits_per_key = match encoding {
        Encoding::Warm => BITS_PER_KEY,
        Encoding::Cold => COLD_BITS_PER_KEY,
    };
    keys.saturating_mul(bits_per_key)
}

/// Builds the body of a filter block and tells its lanes.
pub(crate) fn build(hashes: &[KeyHash], encoding: Encoding) -> (Vec<u8>, u32) {
    let bits = bits(hashes.len(), encoding);
    let count = u32::try_from(bits.div_ceil(LANE_BITS)).unwrap_or(u32::MAX).max(1);
    let mut lanes = vec![Lane([U32::ZERO; 8]); count as usize];
    for hash in hashes {
        if let Some(lane) = lanes.get_mut(hash.lane(count as usize)) {
            lane.0.iter_mut().zip(hash.mask()).for_each(|(word, bit)| *word |= bit);
        }
    }
    (lanes.as_bytes().to_vec(), count)
}

/// A filter as read from its block.
#[derive(Debug)]
pub(crate) struct Filter {
    body: Bytes,
}

impl Filter {
    /// Takes a verified block as a filter.
    pub(crate) fn decode(block: Block, origin: Origin<'_>, address: &BlockAddress) -> Result<Self> {
        let needed = u64::from(block.items).saturating_mul(size_of::<Lane>() as u64);
        if block.items == 0 || needed != block.body.len() as u64 {
            let offset = address.offset.get();
            let found = block.body.len();
            return Err(corrupt(origin.path, offset, "bytes of the filter", needed, found));
        }
        Ok(Self { body: block.body })
    }

    /// Whether something with this hash may be in the segment; `false` is certain.
    pub(crate) fn may_have(&self, hash: KeyHash) -> bool {
        let lanes = <[Lane]>::ref_from_bytes(&self.body).unwrap_or_default();
        lanes.get(hash.lane(lanes.len())).is_none_or(|lane| {
            lane.0.iter().zip(hash.mask()).all(|(word, bit)| word.get() & bit != 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(hashes: &[KeyHash], encoding: Encoding) -> Filter {
        let (body, _) = build(hashes, encoding);
        Filter { body: body.into() }
    }

    #[test]
    fn every_key_built_in_passes_and_few_others_do() {
        // Miri takes a thousand times as long.
        let count: u64 = if cfg!(miri) { 200 } else { 20_000 };
        let hash = |number: u64| KeyHash::of(&number.to_be_bytes());
        let built: Vec<_> = (0..count).map(hash).collect();
        for (encoding, one_in) in [(Encoding::Warm, 100), (Encoding::Cold, 25)] {
            let filter = filter(&built, encoding);
            assert!((0..count).all(|number| filter.may_have(hash(number))));
            let absent = count..6 * count;
            let wrong = absent.filter(|number| filter.may_have(hash(*number))).count() as u64;
            let all = 5 * count;
            assert!(wrong < all / one_in, "{wrong} of {all} absent keys passed");
        }
    }

    /// The bits are part of the disk format: a change here is a new format.
    #[test]
    fn bits_stay_what_the_format_says() {
        let hash = KeyHash::of(b"duramen");
        assert_eq!(hash.0, XxHash3_64::oneshot(b"duramen"));
        assert_eq!(KeyHash(0x8000_0000_0000_0001).lane(10), 5);
        assert_eq!(
            KeyHash(1).mask(),
            [1 << 8, 1 << 8, 1 << 17, 1 << 20, 1 << 14, 1 << 5, 1 << 19, 1 << 11]
        );
    }

    #[test]
    fn a_filter_without_keys_has_none() {
        assert!(!filter(&[], Encoding::Warm).may_have(KeyHash::of(b"a")));
    }
}
