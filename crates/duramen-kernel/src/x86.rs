//! The loops with instructions that not every processor of the family has, and comparisons of bytes
//! with those that each of them has.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_and_si128, _mm_cmpeq_epi8, _mm_crc32_u32, _mm_crc32_u64, _mm_loadu_si128,
    _mm_min_epu8, _mm_movemask_epi8, _mm_set1_epi8, _mm_srli_epi16, _mm_storeu_si128, _mm_sub_epi8,
    _mm_unpackhi_epi8, _mm_unpacklo_epi8, _mm256_and_si256, _mm256_cmpeq_epi8,
    _mm256_extract_epi64, _mm256_loadu_si256, _mm256_or_si256, _mm256_sad_epu8, _mm256_set1_epi8,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi64x, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_sub_epi8,
};

pub(crate) use self::lanes::{between, masked_bounds, masked_sum, unpack_halves_avx2};
use crate::lane::Lane;
use crate::{WORD, Widen, scalar};

mod lanes;

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

/// The same of the instructions that make checksums.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sse42(());

impl Sse42 {
    /// None if this processor has it not.
    #[inline]
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("sse4.2").then_some(Self(()))
    }
}

/// Goes on from a CRC-32C over four bytes and three words.
#[expect(unsafe_code, reason = "instructions that were detected")]
#[inline]
pub(crate) fn crc32c_record(_: Sse42, sum: u32, head: u32, words: [u64; 3]) -> u32 {
    #[target_feature(enable = "sse4.2")]
    #[expect(clippy::cast_possible_truncation, reason = "the upper half is 0")]
    fn own(sum: u32, head: u32, words: [u64; 3]) -> u32 {
        let first = u64::from(_mm_crc32_u32(!sum, head));
        !(words.into_iter().fold(first, |sum, word| _mm_crc32_u64(sum, word)) as u32)
    }
    // SAFETY: a `Sse42` is only made where the processor has these instructions.
    unsafe { own(sum, head, words) }
}

/// Runs a loop that is compiled into this.
#[expect(unsafe_code, reason = "instructions that were detected")]
#[inline]
pub(crate) fn run<W: Widen>(_: Avx2, work: W) -> W::Output {
    #[target_feature(enable = "avx2")]
    fn own<W: Widen>(work: W) -> W::Output {
        work.run()
    }
    // SAFETY: an `Avx2` is only made where the processor has these instructions.
    unsafe { own(work) }
}

macro_rules! with_avx2 {
    ($name:ident($($of:ident: $type:ty),*) $(-> $found:ty)?) => {
        #[expect(unsafe_code, reason = "instructions that were detected")]
        #[inline]
        pub(crate) fn $name(_: Avx2, $($of: $type),*) $(-> $found)? {
            #[target_feature(enable = "avx2,popcnt")]
            fn own($($of: $type),*) $(-> $found)? {
                scalar::$name($($of),*)
            }
            // SAFETY: an `Avx2` is only made where the processor has these instructions.
            unsafe { own($($of),*) }
        }
    };
}

with_avx2!(count(bits: &[u64]) -> u64);
with_avx2!(combine(codes: &mut [u8], factor: u8, others: &[u8]));

/// Sets the bits of the bytes from `low` to `high`, which is at least that, of whole words of 64 of
/// them; gives how many words that were.
#[expect(unsafe_code, clippy::cast_ptr_alignment, reason = "loads of 16 bytes from anywhere")]
pub(crate) fn bytes_between(values: &[u8], (low, high): (u64, u64), bits: &mut [u64]) -> usize {
    let (low, above) = (u8::narrow(low), u8::narrow(high - low));
    let (words, _) = values.as_chunks::<WORD>();
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

/// Takes 16 bytes of two integers each apart at a time; gives how many bytes that were.
#[expect(unsafe_code, clippy::cast_ptr_alignment, reason = "16 bytes from and to anywhere")]
pub(crate) fn unpack_halves(bytes: &[u8], values: &mut [u8]) -> usize {
    let (from, _) = bytes.as_chunks::<16>();
    let (into, _) = values.as_chunks_mut::<32>();
    for (from, into) in from.iter().zip(&mut *into) {
        let (first, second) = into.split_at_mut(16);
        // SAFETY: every x86-64 has SSE2, and each of the three has 16 bytes.
        unsafe {
            let low = _mm_set1_epi8(0xf);
            let both = _mm_loadu_si128(from.as_ptr().cast::<__m128i>());
            let (even, odd) = (_mm_and_si128(both, low), _mm_srli_epi16::<4>(both));
            let odd = _mm_and_si128(odd, low);
            let halves = (_mm_unpacklo_epi8(even, odd), _mm_unpackhi_epi8(even, odd));
            _mm_storeu_si128(first.as_mut_ptr().cast::<__m128i>(), halves.0);
            _mm_storeu_si128(second.as_mut_ptr().cast::<__m128i>(), halves.1);
        }
    }
    16 * from.len().min(into.len())
}

/// Values of which [`few_avx2`] counts each.
pub(crate) const FEW: usize = 16;

/// Values that it compares with at a time, so that the counts stay in registers.
const AT_ONCE: usize = 8;

/// Words after which a count of a byte may be full: each adds up to two.
const WORDS_MAX: usize = 127;

/// Adds how often there is each of a few values where bits are set; gives how many words of 64
/// bytes were looked at.
pub(crate) fn few_avx2(avx2: Avx2, values: &[u8], bits: &[u64], counts: &mut [u64]) -> usize {
    let (words, _) = values.as_chunks::<WORD>();
    let words = &words[..words.len().min(bits.len())];
    for (words, bits) in words.chunks(WORDS_MAX).zip(bits.chunks(WORDS_MAX)) {
        for (first, counts) in (0..).step_by(AT_ONCE).zip(counts.chunks_mut(AT_ONCE)) {
            let found = eight_avx2(avx2, words, bits, first);
            for (count, found) in counts.iter_mut().zip(found) {
                *count += found;
            }
        }
    }
    words.len()
}

/// How often there is each of eight values, from a first one below [`FEW`] on.
#[expect(
    unsafe_code,
    clippy::cast_ptr_alignment,
    reason = "instructions that were detected, and loads of 32 bytes from anywhere"
)]
fn eight_avx2(_: Avx2, words: &[[u8; WORD]], bits: &[u64], first: i8) -> [u64; AT_ONCE] {
    #[target_feature(enable = "avx2")]
    fn own(words: &[[u8; WORD]], bits: &[u64], first: i8) -> [u64; AT_ONCE] {
        // Byte `i` of each 32 gets the byte of the bits that has its own, and of that its own bit.
        let spread = _mm256_setr_epi64x(
            0,
            0x0101_0101_0101_0101,
            0x0202_0202_0202_0202,
            0x0303_0303_0303_0303,
        );
        let own_bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
        let zero = _mm256_setzero_si256();
        let wanted = |above: i8| _mm256_set1_epi8(first + above);
        let wanted = [0, 1, 2, 3, 4, 5, 6, 7].map(wanted);
        let mut sums = [zero; AT_ONCE];
        for (group, word) in words.iter().zip(bits) {
            let (parts, _) = group.as_chunks::<32>();
            let bytes = word.to_le_bytes();
            let (bits, _) = bytes.as_chunks::<4>();
            for at in 0..2 {
                // SAFETY: a part has the 32 bytes that are loaded.
                let values = unsafe { _mm256_loadu_si256(parts[at].as_ptr().cast::<__m256i>()) };
                let bits = _mm256_set1_epi32(i32::from_le_bytes(bits[at]));
                let bits = _mm256_and_si256(_mm256_shuffle_epi8(bits, spread), own_bit);
                // What is left out becomes a value beyond all that are counted.
                let values = _mm256_or_si256(values, _mm256_cmpeq_epi8(bits, zero));
                let mut add = |at: usize| {
                    sums[at] = _mm256_sub_epi8(sums[at], _mm256_cmpeq_epi8(values, wanted[at]));
                };
                // Not by a loop: compilers then keep the counts in memory.
                add(0);
                add(1);
                add(2);
                add(3);
                add(4);
                add(5);
                add(6);
                add(7);
            }
        }
        sums.map(|sum| {
            let sum = _mm256_sad_epu8(sum, zero);
            let parts = [
                _mm256_extract_epi64::<0>(sum),
                _mm256_extract_epi64::<1>(sum),
                _mm256_extract_epi64::<2>(sum),
                _mm256_extract_epi64::<3>(sum),
            ];
            parts.into_iter().map(i64::cast_unsigned).sum()
        })
    }
    // SAFETY: an `Avx2` is only made where the processor has these instructions.
    unsafe { own(words, bits, first) }
}
