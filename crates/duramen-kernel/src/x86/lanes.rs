//! Comparisons, sums and bounds of integers of any width with AVX2, 32 bytes at a time; and halves
//! of bytes.
//!
//! They look at whole words of 64 integers and give how many words that were; the rest is left to
//! the loops for any processor.

use std::arch::x86_64::{
    __m256i, _mm_movemask_epi8, _mm_packs_epi16, _mm256_add_epi64, _mm256_and_si256,
    _mm256_blendv_epi8, _mm256_castsi256_pd, _mm256_castsi256_ps, _mm256_castsi256_si128,
    _mm256_cmpeq_epi8, _mm256_cmpeq_epi16, _mm256_cmpeq_epi32, _mm256_cmpeq_epi64,
    _mm256_cmpgt_epi64, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_max_epu8,
    _mm256_max_epu16, _mm256_max_epu32, _mm256_min_epu8, _mm256_min_epu16, _mm256_min_epu32,
    _mm256_movemask_epi8, _mm256_movemask_pd, _mm256_movemask_ps, _mm256_permute2x128_si256,
    _mm256_sad_epu8, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_setr_epi16, _mm256_setr_epi32, _mm256_setr_epi64x, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_srli_epi64, _mm256_storeu_si256,
    _mm256_sub_epi8, _mm256_sub_epi16, _mm256_sub_epi32, _mm256_sub_epi64, _mm256_unpackhi_epi8,
    _mm256_unpacklo_epi8, _mm256_xor_si256,
};

use super::Avx2;
use crate::WORD;
use crate::lane::Lane;

/// Bytes that are looked at together.
const PART: usize = 32;

/// The parts of each whole word of integers.
#[inline]
fn words<L: Lane>(values: &[L]) -> impl ExactSizeIterator<Item = &[[u8; PART]]> {
    L::bytes(values).chunks_exact(WORD * L::BYTES).map(|word| word.as_chunks().0)
}

/// Which bits are those of each part of a word.
#[inline]
fn shifts<L: Lane>() -> impl Iterator<Item = usize> {
    (0..).step_by(PART / L::BYTES)
}

/// Sets the bits of the integers from `low` to `high`, which is at least that, and clears those of
/// others.
#[expect(unsafe_code, reason = "instructions that were detected")]
pub(crate) fn between<L: Lane>(
    _: Avx2,
    values: &[L],
    (low, high): (u64, u64),
    bits: &mut [u64],
) -> usize {
    #[target_feature(enable = "avx2")]
    fn own<L: Lane>(values: &[L], (low, high): (u64, u64), bits: &mut [u64]) {
        let (low, above) = (all::<L>(low), all::<L>(high - low));
        for (parts, word) in words(values).zip(bits) {
            *word = 0;
            for (shift, part) in shifts::<L>().zip(parts) {
                *word |= within::<L>(load(part), low, above) << shift;
            }
        }
    }
    let whole = words(values).len().min(bits.len());
    // SAFETY: an `Avx2` is only made where the processor has these instructions.
    unsafe { own(values, (low, high), bits) };
    whole
}

/// The sum of the integers whose bits are set.
#[expect(unsafe_code, reason = "instructions that were detected")]
pub(crate) fn masked_sum<L: Lane>(_: Avx2, values: &[L], bits: &[u64]) -> (u128, usize) {
    #[target_feature(enable = "avx2")]
    fn own<L: Lane>(values: &[L], bits: &[u64]) -> u128 {
        let mut sums = [_mm256_setzero_si256(); 2];
        for (parts, word) in words(values).zip(bits) {
            for (shift, part) in shifts::<L>().zip(parts) {
                let chosen = _mm256_and_si256(load(part), mask::<L>(word >> shift));
                let [low, high] = halves::<L>(chosen);
                sums = [_mm256_add_epi64(sums[0], low), _mm256_add_epi64(sums[1], high)];
            }
        }
        let [low, high] = sums.map(|sum| lanes::<[u8; 8]>(sum).map(u128::from).sum::<u128>());
        // By how much upper halves count for more; those of four bytes are integers of their own.
        let shift = match L::BYTES {
            2 => 8,
            8 => 32,
            _ => 0,
        };
        low + (high << shift)
    }
    let whole = words(values).len().min(bits.len());
    // SAFETY: an `Avx2` is only made where the processor has these instructions.
    (unsafe { own(values, bits) }, whole)
}

/// The least and the greatest of the integers whose bits are set: the greatest that there can be
/// and 0 if none are.
#[expect(unsafe_code, reason = "instructions that were detected")]
pub(crate) fn masked_bounds<L: Lane>(_: Avx2, values: &[L], bits: &[u64]) -> ((u64, u64), usize) {
    #[target_feature(enable = "avx2")]
    fn own<L: Lane>(values: &[L], bits: &[u64]) -> (u64, u64) {
        let flip = flip::<L>();
        let (lowest, highest) = (flip, _mm256_xor_si256(_mm256_set1_epi8(-1), flip));
        let (mut least, mut most) = (highest, lowest);
        for (parts, word) in words(values).zip(bits) {
            for (shift, part) in shifts::<L>().zip(parts) {
                let (mask, values) = (mask::<L>(word >> shift), _mm256_xor_si256(load(part), flip));
                least = min::<L>(least, _mm256_blendv_epi8(highest, values, mask));
                most = max::<L>(most, _mm256_blendv_epi8(lowest, values, mask));
            }
        }
        let least = lanes::<L>(_mm256_xor_si256(least, flip)).min();
        let most = lanes::<L>(_mm256_xor_si256(most, flip)).max();
        (least.unwrap_or(L::MAX), most.unwrap_or(0))
    }
    let whole = words(values).len().min(bits.len());
    // SAFETY: an `Avx2` is only made where the processor has these instructions.
    (unsafe { own(values, bits) }, whole)
}

/// Takes 32 bytes of two integers each apart at a time; gives how many bytes that were.
#[expect(unsafe_code, reason = "instructions that were detected")]
pub(crate) fn unpack_halves_avx2(_: Avx2, bytes: &[u8], values: &mut [u8]) -> usize {
    #[target_feature(enable = "avx2")]
    fn own(bytes: &[[u8; PART]], values: &mut [[[u8; PART]; 2]]) {
        let low = _mm256_set1_epi8(0xf);
        for (from, [first, second]) in bytes.iter().zip(values) {
            let both = load(from);
            let even = _mm256_and_si256(both, low);
            let odd = _mm256_and_si256(_mm256_srli_epi16::<4>(both), low);
            // These interleave each half of 16 bytes by itself.
            let lower = _mm256_unpacklo_epi8(even, odd);
            let upper = _mm256_unpackhi_epi8(even, odd);
            store(_mm256_permute2x128_si256::<0x20>(lower, upper), first);
            store(_mm256_permute2x128_si256::<0x31>(lower, upper), second);
        }
    }
    let (from, _) = bytes.as_chunks();
    let (into, _) = values.as_chunks_mut().0.as_chunks_mut();
    let whole = PART * from.len().min(into.len());
    // SAFETY: an `Avx2` is only made where the processor has these instructions.
    unsafe { own(from, into) };
    whole
}

#[expect(unsafe_code, clippy::cast_ptr_alignment, reason = "a load of 32 bytes from anywhere")]
#[target_feature(enable = "avx2")]
fn load(part: &[u8; PART]) -> __m256i {
    // SAFETY: a part has the 32 bytes that are loaded.
    unsafe { _mm256_loadu_si256(part.as_ptr().cast::<__m256i>()) }
}

#[expect(unsafe_code, clippy::cast_ptr_alignment, reason = "a store of 32 bytes to anywhere")]
#[target_feature(enable = "avx2")]
fn store(value: __m256i, part: &mut [u8; PART]) {
    // SAFETY: a part has the 32 bytes that are stored.
    unsafe { _mm256_storeu_si256(part.as_mut_ptr().cast::<__m256i>(), value) };
}

/// The integers of a part.
#[target_feature(enable = "avx2")]
fn lanes<L: Lane>(part: __m256i) -> impl Iterator<Item = u64> {
    let (mut bytes, mut integers) = ([0_u8; PART], [0; PART]);
    store(part, &mut bytes);
    for (integer, bytes) in integers.iter_mut().zip(bytes.chunks_exact(L::BYTES)) {
        *integer = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    }
    integers.into_iter().take(PART / L::BYTES)
}

/// An integer in each lane.
#[target_feature(enable = "avx2")]
#[expect(clippy::cast_possible_truncation, reason = "lanes have the width of the integer")]
fn all<L: Lane>(value: u64) -> __m256i {
    let value = value.cast_signed();
    match L::BYTES {
        1 => _mm256_set1_epi8(value as i8),
        2 => _mm256_set1_epi16(value as i16),
        4 => _mm256_set1_epi32(value as i32),
        _ => _mm256_set1_epi64x(value),
    }
}

/// The signs of lanes whose comparison takes integers for signed: with them flipped they are in
/// order.
#[target_feature(enable = "avx2")]
fn flip<L: Lane>() -> __m256i {
    if L::BYTES == 8 { _mm256_set1_epi64x(i64::MIN) } else { _mm256_setzero_si256() }
}

/// A bit for each lane: whether it is `low` or above it by `above` at most.
#[target_feature(enable = "avx2")]
fn within<L: Lane>(values: __m256i, low: __m256i, above: __m256i) -> u64 {
    match L::BYTES {
        1 => {
            let by = _mm256_sub_epi8(values, low);
            let is_within = _mm256_cmpeq_epi8(_mm256_min_epu8(by, above), by);
            _mm256_movemask_epi8(is_within).cast_unsigned().into()
        }
        2 => {
            let by = _mm256_sub_epi16(values, low);
            let is_within = _mm256_cmpeq_epi16(_mm256_min_epu16(by, above), by);
            let upper = _mm256_extracti128_si256::<1>(is_within);
            let bytes = _mm_packs_epi16(_mm256_castsi256_si128(is_within), upper);
            _mm_movemask_epi8(bytes).cast_unsigned().into()
        }
        4 => {
            let by = _mm256_sub_epi32(values, low);
            let is_within = _mm256_cmpeq_epi32(_mm256_min_epu32(by, above), by);
            _mm256_movemask_ps(_mm256_castsi256_ps(is_within)).cast_unsigned().into()
        }
        _ => {
            let by = _mm256_xor_si256(_mm256_sub_epi64(values, low), flip::<L>());
            let is_out = _mm256_cmpgt_epi64(by, _mm256_xor_si256(above, flip::<L>()));
            u64::from(_mm256_movemask_pd(_mm256_castsi256_pd(is_out)).cast_unsigned()) ^ 0xf
        }
    }
}

/// All bits of the lanes whose bits are set, the lowest bit that of the first lane.
#[target_feature(enable = "avx2")]
#[expect(clippy::cast_possible_truncation, reason = "the bits above are those of other parts")]
fn mask<L: Lane>(bits: u64) -> __m256i {
    let bits = bits.cast_signed();
    match L::BYTES {
        1 => {
            // Each byte gets the byte of the bits that has its own.
            let spread = _mm256_setr_epi64x(
                0,
                0x0101_0101_0101_0101,
                0x0202_0202_0202_0202,
                0x0303_0303_0303_0303,
            );
            let own = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
            let bits = _mm256_shuffle_epi8(_mm256_set1_epi32(bits as i32), spread);
            _mm256_cmpeq_epi8(_mm256_and_si256(bits, own), own)
        }
        2 => {
            let own = _mm256_setr_epi16(
                1,
                2,
                4,
                8,
                16,
                32,
                64,
                128,
                256,
                512,
                1_024,
                2_048,
                4_096,
                8_192,
                16_384,
                i16::MIN,
            );
            _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(bits as i16), own), own)
        }
        4 => {
            let own = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits as i32), own), own)
        }
        _ => {
            let own = _mm256_setr_epi64x(1, 2, 4, 8);
            _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(bits), own), own)
        }
    }
}

/// Four sums of the lower halves of the integers and four of the upper ones. Of bytes all is lower,
/// and of two integers in eight bytes the second one is upper.
#[target_feature(enable = "avx2")]
fn halves<L: Lane>(values: __m256i) -> [__m256i; 2] {
    let zero = _mm256_setzero_si256();
    match L::BYTES {
        1 => [_mm256_sad_epu8(values, zero), zero],
        2 => {
            let low = _mm256_and_si256(values, _mm256_set1_epi16(0xff));
            let high = _mm256_srli_epi16::<8>(values);
            [_mm256_sad_epu8(low, zero), _mm256_sad_epu8(high, zero)]
        }
        _ => {
            let low = _mm256_and_si256(values, _mm256_set1_epi64x(0xffff_ffff));
            [low, _mm256_srli_epi64::<32>(values)]
        }
    }
}

#[target_feature(enable = "avx2")]
fn min<L: Lane>(one: __m256i, other: __m256i) -> __m256i {
    match L::BYTES {
        1 => _mm256_min_epu8(one, other),
        2 => _mm256_min_epu16(one, other),
        4 => _mm256_min_epu32(one, other),
        _ => _mm256_blendv_epi8(one, other, _mm256_cmpgt_epi64(one, other)),
    }
}

#[target_feature(enable = "avx2")]
fn max<L: Lane>(one: __m256i, other: __m256i) -> __m256i {
    match L::BYTES {
        1 => _mm256_max_epu8(one, other),
        2 => _mm256_max_epu16(one, other),
        4 => _mm256_max_epu32(one, other),
        _ => _mm256_blendv_epi8(other, one, _mm256_cmpgt_epi64(one, other)),
    }
}
