//! The loops with instructions that not every processor of the family has, and comparisons of bytes
//! with those that each of them has.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8,
    _mm_set1_epi8, _mm_sub_epi8, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8,
    _mm256_movemask_epi8, _mm256_set1_epi8, _mm256_sub_epi8,
};

use crate::lane::Lane;
use crate::scalar;

/// What a processor that has it is told by, so that nobody else calls what needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// None if this processor has it not.
    #[inline]
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
        has.then_some(Self(()))
    }
}

macro_rules! with_avx2 {
    ($name:ident$(<$lane:ident>)?($($of:ident: $type:ty),*) $(-> $found:ty)?) => {
        #[expect(unsafe_code, reason = "instructions that were detected")]
        #[inline]
        pub(crate) fn $name$(<$lane: Lane>)?(_: Avx2, $($of: $type),*) $(-> $found)? {
            #[target_feature(enable = "avx2,popcnt")]
            fn own$(<$lane: Lane>)?($($of: $type),*) $(-> $found)? {
                scalar::$name($($of),*)
            }
            // SAFETY: an `Avx2` is only made where the processor has these instructions.
            unsafe { own($($of),*) }
        }
    };
}

with_avx2!(between<L>(values: &[L], low: u64, high: u64, bits: &mut [u64]));
with_avx2!(masked_sum<L>(values: &[L], bits: &[u64]) -> u128);
with_avx2!(masked_bounds<L>(values: &[L], bits: &[u64]) -> Option<(u64, u64)>);
with_avx2!(count(bits: &[u64]) -> u64);
with_avx2!(unpack_halves(bytes: &[u8], values: &mut [u8]));
with_avx2!(histogram(values: &[u8], counts: &mut [u64]));

/// Compares words of 64 bytes with a range of a least byte and so many above it; gives how many
/// words that were.
#[expect(unsafe_code, clippy::cast_ptr_alignment, reason = "loads of 16 bytes from anywhere")]
pub(crate) fn bytes_within(values: &[u8], low: u8, above: u8, bits: &mut [u64]) -> usize {
    let (words, _) = values.as_chunks::<64>();
    for (group, word) in words.iter().zip(&mut *bits) {
        let (parts, _) = group.as_chunks::<16>();
        *word = 0;
        for (part, shift) in parts.iter().zip([0, 16, 32, 48]) {
            // SAFETY: every x86-64 has SSE2, and a part has the 16 bytes that are loaded.
            let mask = unsafe {
                let values = _mm_loadu_si128(part.as_ptr().cast::<__m128i>());
                let from_low = _mm_sub_epi8(values, _mm_set1_epi8(low.cast_signed()));
                let least = _mm_min_epu8(from_low, _mm_set1_epi8(above.cast_signed()));
                _mm_movemask_epi8(_mm_cmpeq_epi8(least, from_low))
            };
            *word |= u64::from(mask.cast_unsigned()) << shift;
        }
    }
    words.len().min(bits.len())
}

/// The same.
#[expect(
    unsafe_code,
    clippy::cast_ptr_alignment,
    reason = "instructions that were detected, and loads of 32 bytes from anywhere"
)]
pub(crate) fn bytes_within_avx2(
    _: Avx2,
    values: &[u8],
    (low, above): (u8, u8),
    bits: &mut [u64],
) -> usize {
    #[target_feature(enable = "avx2")]
    fn own(words: &[[u8; 64]], low: u8, above: u8, bits: &mut [u64]) {
        let (lows, aboves) =
            (_mm256_set1_epi8(low.cast_signed()), _mm256_set1_epi8(above.cast_signed()));
        let within = |part: &[u8; 32]| {
            // SAFETY: a part has the 32 bytes that are loaded.
            let values = unsafe { _mm256_loadu_si256(part.as_ptr().cast::<__m256i>()) };
            let from_low = _mm256_sub_epi8(values, lows);
            let mask = _mm256_cmpeq_epi8(_mm256_min_epu8(from_low, aboves), from_low);
            u64::from(_mm256_movemask_epi8(mask).cast_unsigned())
        };
        for (group, word) in words.iter().zip(bits) {
            if let ([first, second], _) = group.as_chunks::<32>() {
                *word = within(first) | within(second) << 32;
            }
        }
    }
    let (words, _) = values.as_chunks::<64>();
    // SAFETY: an `Avx2` is only made where the processor has these instructions.
    unsafe { own(words, low, above, bits) };
    words.len().min(bits.len())
}
