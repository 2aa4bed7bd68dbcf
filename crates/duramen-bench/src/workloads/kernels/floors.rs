//! Loops written by hand with AVX2, each for one width of integers and without bounds of its own:
//! what the kernels are held against.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi8, _mm256_add_epi64, _mm256_and_si256, _mm256_blendv_epi8,
    _mm256_castsi256_pd, _mm256_castsi256_ps, _mm256_cmpeq_epi8, _mm256_cmpeq_epi16,
    _mm256_cmpeq_epi32, _mm256_cmpeq_epi64, _mm256_cmpgt_epi64, _mm256_loadu_si256,
    _mm256_max_epu8, _mm256_max_epu16, _mm256_max_epu32, _mm256_min_epu8, _mm256_min_epu16,
    _mm256_min_epu32, _mm256_movemask_epi8, _mm256_movemask_pd, _mm256_movemask_ps,
    _mm256_mullo_epi16, _mm256_or_si256, _mm256_packs_epi16, _mm256_permute2x128_si256,
    _mm256_permute4x64_epi64, _mm256_sad_epu8, _mm256_set1_epi8, _mm256_set1_epi16,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi16, _mm256_setr_epi32,
    _mm256_setr_epi64x, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi16,
    _mm256_srli_epi16, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_sub_epi8, _mm256_sub_epi16,
    _mm256_sub_epi32, _mm256_sub_epi64, _mm256_unpackhi_epi8, _mm256_unpacklo_epi8,
    _mm256_xor_si256,
};

/// Whether this processor has what the loops need.
pub(super) fn can_run() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
}

#[expect(unsafe_code, clippy::cast_ptr_alignment, reason = "a load of 32 bytes from anywhere")]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: these are the 32 bytes that are loaded.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>()) }
}

#[expect(unsafe_code, clippy::cast_ptr_alignment, reason = "a store of 32 bytes to anywhere")]
#[target_feature(enable = "avx2")]
fn store(value: __m256i, bytes: &mut [u8; 32]) {
    // SAFETY: these are the 32 bytes that are stored.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast::<__m256i>(), value) };
}

#[target_feature(enable = "avx2")]
fn words<const BYTES: usize>(values: &[u8]) -> impl Iterator<Item = &[[u8; 32]]> {
    values.chunks_exact(64 * BYTES).map(|word| word.as_chunks().0)
}

#[target_feature(enable = "avx2")]
pub(super) fn between_1(values: &[u8], (low, high): (u8, u8), bits: &mut [u64]) {
    let low_of_all = _mm256_set1_epi8(low.cast_signed());
    let above = _mm256_set1_epi8((high - low).cast_signed());
    let within = |part| {
        let by = _mm256_sub_epi8(load(part), low_of_all);
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(by, above), by)).cast_unsigned()
    };
    for (parts, word) in words::<1>(values).zip(bits) {
        *word = u64::from(within(&parts[0])) | u64::from(within(&parts[1])) << 32;
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn between_2(values: &[u8], (low, high): (u16, u16), bits: &mut [u64]) {
    let low_of_all = _mm256_set1_epi16(low.cast_signed());
    let above = _mm256_set1_epi16((high - low).cast_signed());
    let within = |part| {
        let by = _mm256_sub_epi16(load(part), low_of_all);
        _mm256_cmpeq_epi16(_mm256_min_epu16(by, above), by)
    };
    for (parts, word) in words::<2>(values).zip(bits) {
        let bits = |at: usize| {
            let packed = _mm256_packs_epi16(within(&parts[at]), within(&parts[at + 1]));
            let in_order = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
            u64::from(_mm256_movemask_epi8(in_order).cast_unsigned())
        };
        *word = bits(0) | bits(2) << 32;
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn between_4(values: &[u8], (low, high): (u32, u32), bits: &mut [u64]) {
    let low_of_all = _mm256_set1_epi32(low.cast_signed());
    let above = _mm256_set1_epi32((high - low).cast_signed());
    for (parts, word) in words::<4>(values).zip(bits) {
        let mut all = 0;
        for (at, part) in parts.iter().enumerate() {
            let by = _mm256_sub_epi32(load(part), low_of_all);
            let within = _mm256_cmpeq_epi32(_mm256_min_epu32(by, above), by);
            let bits = _mm256_movemask_ps(_mm256_castsi256_ps(within)).cast_unsigned();
            all |= u64::from(bits) << (8 * at);
        }
        *word = all;
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn between_8(values: &[u8], (low, high): (u64, u64), bits: &mut [u64]) {
    let low_of_all = _mm256_set1_epi64x(low.cast_signed());
    let sign = _mm256_set1_epi64x(i64::MIN);
    let above = _mm256_xor_si256(_mm256_set1_epi64x((high - low).cast_signed()), sign);
    for (parts, word) in words::<8>(values).zip(bits) {
        let mut out = 0;
        for (at, part) in parts.iter().enumerate() {
            let by = _mm256_xor_si256(_mm256_sub_epi64(load(part), low_of_all), sign);
            let is_out = _mm256_castsi256_pd(_mm256_cmpgt_epi64(by, above));
            out |= u64::from(_mm256_movemask_pd(is_out).cast_unsigned()) << (4 * at);
        }
        *word = !out;
    }
}

#[target_feature(enable = "avx2")]
#[expect(clippy::cast_possible_truncation, reason = "the bits above are those of others")]
fn mask_1(bits: u64) -> __m256i {
    let spread =
        _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
    let own = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
    let bits = _mm256_shuffle_epi8(_mm256_set1_epi32(bits as i32), spread);
    _mm256_cmpeq_epi8(_mm256_and_si256(bits, own), own)
}

#[target_feature(enable = "avx2")]
#[expect(clippy::cast_possible_truncation, reason = "the bits above are those of others")]
fn mask_2(bits: u64) -> __m256i {
    let own = _mm256_setr_epi16(
        1,
        1 << 1,
        1 << 2,
        1 << 3,
        1 << 4,
        1 << 5,
        1 << 6,
        1 << 7,
        1 << 8,
        1 << 9,
        1 << 10,
        1 << 11,
        1 << 12,
        1 << 13,
        1 << 14,
        i16::MIN,
    );
    _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(bits as i16), own), own)
}

#[target_feature(enable = "avx2")]
#[expect(clippy::cast_possible_truncation, reason = "the bits above are those of others")]
fn mask_4(bits: u64) -> __m256i {
    let own = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits as i32), own), own)
}

#[target_feature(enable = "avx2")]
fn mask_8(bits: u64) -> __m256i {
    let own = _mm256_setr_epi64x(1, 2, 4, 8);
    _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(bits.cast_signed()), own), own)
}

#[target_feature(enable = "avx2")]
fn lanes_8(value: __m256i) -> [u64; 4] {
    let mut bytes = [0; 32];
    store(value, &mut bytes);
    let (lanes, _) = bytes.as_chunks();
    [0, 1, 2, 3].map(|at| u64::from_le_bytes(lanes[at]))
}

#[target_feature(enable = "avx2")]
fn total(value: __m256i) -> u128 {
    lanes_8(value).map(u128::from).iter().sum()
}

#[target_feature(enable = "avx2")]
pub(super) fn sum_1(values: &[u8], bits: &[u64]) -> u128 {
    let zero = _mm256_setzero_si256();
    let mut sum = zero;
    for (parts, word) in words::<1>(values).zip(bits) {
        for (at, part) in parts.iter().enumerate() {
            let chosen = _mm256_and_si256(load(part), mask_1(word >> (32 * at)));
            sum = _mm256_add_epi64(sum, _mm256_sad_epu8(chosen, zero));
        }
    }
    total(sum)
}

#[target_feature(enable = "avx2")]
pub(super) fn sum_2(values: &[u8], bits: &[u64]) -> u128 {
    let (zero, lower) = (_mm256_setzero_si256(), _mm256_set1_epi16(0xff));
    let (mut low, mut high) = (zero, zero);
    for (parts, word) in words::<2>(values).zip(bits) {
        for (at, part) in parts.iter().enumerate() {
            let chosen = _mm256_and_si256(load(part), mask_2(word >> (16 * at)));
            low = _mm256_add_epi64(low, _mm256_sad_epu8(_mm256_and_si256(chosen, lower), zero));
            high = _mm256_add_epi64(high, _mm256_sad_epu8(_mm256_srli_epi16::<8>(chosen), zero));
        }
    }
    total(low) + (total(high) << 8)
}

#[target_feature(enable = "avx2")]
pub(super) fn sum_4(values: &[u8], bits: &[u64]) -> u128 {
    let (zero, lower) = (_mm256_setzero_si256(), _mm256_set1_epi64x(0xffff_ffff));
    let (mut even, mut odd) = (zero, zero);
    for (parts, word) in words::<4>(values).zip(bits) {
        for (at, part) in parts.iter().enumerate() {
            let chosen = _mm256_and_si256(load(part), mask_4(word >> (8 * at)));
            even = _mm256_add_epi64(even, _mm256_and_si256(chosen, lower));
            odd = _mm256_add_epi64(odd, _mm256_srli_epi64::<32>(chosen));
        }
    }
    total(even) + total(odd)
}

#[target_feature(enable = "avx2")]
pub(super) fn sum_8(values: &[u8], bits: &[u64]) -> u128 {
    let (zero, lower) = (_mm256_setzero_si256(), _mm256_set1_epi64x(0xffff_ffff));
    let (mut low, mut high) = (zero, zero);
    for (parts, word) in words::<8>(values).zip(bits) {
        for (at, part) in parts.iter().enumerate() {
            let chosen = _mm256_and_si256(load(part), mask_8(word >> (4 * at)));
            low = _mm256_add_epi64(low, _mm256_and_si256(chosen, lower));
            high = _mm256_add_epi64(high, _mm256_srli_epi64::<32>(chosen));
        }
    }
    total(low) + (total(high) << 32)
}

/// Bounds of integers whose least and greatest there are instructions for.
macro_rules! bounds {
    ($name:ident, $integer:ty, $bytes:literal, $mask:ident, $min:ident, $max:ident) => {
        #[target_feature(enable = "avx2")]
        pub(super) fn $name(values: &[u8], bits: &[u64]) -> (u64, u64) {
            let ones = _mm256_set1_epi8(-1);
            let (mut least, mut most) = (ones, _mm256_setzero_si256());
            for (parts, word) in words::<$bytes>(values).zip(bits) {
                for (at, part) in parts.iter().enumerate() {
                    let (values, mask) = (load(part), $mask(word >> (32 / $bytes * at)));
                    let others = _mm256_xor_si256(mask, ones);
                    least = $min(least, _mm256_or_si256(values, others));
                    most = $max(most, _mm256_and_si256(values, mask));
                }
            }
            let lanes = |value| {
                let mut bytes = [0; 32];
                store(value, &mut bytes);
                let lanes = bytes.as_chunks().0.iter();
                lanes.map(|lane| <$integer>::from_le_bytes(*lane)).collect::<Vec<_>>()
            };
            let (least, most) = (lanes(least), lanes(most));
            let (least, most) = (least.iter().min(), most.iter().max());
            (least.copied().unwrap_or_default().into(), most.copied().unwrap_or_default().into())
        }
    };
}

bounds!(bounds_1, u8, 1, mask_1, _mm256_min_epu8, _mm256_max_epu8);
bounds!(bounds_2, u16, 2, mask_2, _mm256_min_epu16, _mm256_max_epu16);
bounds!(bounds_4, u32, 4, mask_4, _mm256_min_epu32, _mm256_max_epu32);

#[target_feature(enable = "avx2")]
pub(super) fn bounds_8(values: &[u8], bits: &[u64]) -> (u64, u64) {
    let (lowest, highest) = (_mm256_set1_epi64x(i64::MIN), _mm256_set1_epi64x(i64::MAX));
    let (mut least, mut most) = (highest, lowest);
    for (parts, word) in words::<8>(values).zip(bits) {
        for (at, part) in parts.iter().enumerate() {
            let values = _mm256_xor_si256(load(part), lowest);
            let mask = mask_8(word >> (4 * at));
            let (low, high) = (
                _mm256_blendv_epi8(highest, values, mask),
                _mm256_blendv_epi8(lowest, values, mask),
            );
            least = _mm256_blendv_epi8(least, low, _mm256_cmpgt_epi64(least, low));
            most = _mm256_blendv_epi8(most, high, _mm256_cmpgt_epi64(high, most));
        }
    }
    let sign = 1 << 63;
    let least = lanes_8(least).map(|lane| lane ^ sign);
    let most = lanes_8(most).map(|lane| lane ^ sign);
    let (least, most) = (least.iter().min(), most.iter().max());
    (least.copied().unwrap_or_default(), most.copied().unwrap_or_default())
}

#[target_feature(enable = "popcnt")]
pub(super) fn count(bits: &[u64]) -> u64 {
    let mut counts = [0; 4];
    for four in bits.as_chunks::<4>().0 {
        for (count, word) in counts.iter_mut().zip(four) {
            *count += u64::from(word.count_ones());
        }
    }
    counts.iter().sum()
}

#[target_feature(enable = "avx2")]
pub(super) fn unpack_halves(bytes: &[u8], values: &mut [u8]) {
    let low = _mm256_set1_epi8(0xf);
    for (from, into) in bytes.as_chunks().0.iter().zip(values.as_chunks_mut::<64>().0) {
        let both = load(from);
        let even = _mm256_and_si256(both, low);
        let odd = _mm256_and_si256(_mm256_srli_epi16::<4>(both), low);
        let (first, second) = (_mm256_unpacklo_epi8(even, odd), _mm256_unpackhi_epi8(even, odd));
        let (into, _) = into.as_chunks_mut();
        store(_mm256_permute2x128_si256::<0x20>(first, second), &mut into[0]);
        store(_mm256_permute2x128_si256::<0x31>(first, second), &mut into[1]);
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn combine(codes: &mut [u8], factor: u8, others: &[u8]) {
    let (factor, low) = (_mm256_set1_epi16(factor.into()), _mm256_set1_epi16(0xff));
    for (codes, others) in codes.as_chunks_mut().0.iter_mut().zip(others.as_chunks().0) {
        let own = load(codes);
        let even = _mm256_and_si256(_mm256_mullo_epi16(own, factor), low);
        let odd = _mm256_mullo_epi16(_mm256_srli_epi16::<8>(own), factor);
        let products = _mm256_or_si256(even, _mm256_slli_epi16::<8>(odd));
        store(_mm256_add_epi8(products, load(others)), codes);
    }
}

/// With four tables, as a count that was just stored is slow to load.
pub(super) fn histogram(values: &[u8], bits: &[u64], counts: &mut [u64]) {
    let mut tables = [[0_u32; 256]; 4];
    for (group, word) in values.as_chunks::<64>().0.iter().zip(bits) {
        for (four, nth) in group.as_chunks::<4>().0.iter().zip((0..).step_by(4)) {
            for (value, (table, bit)) in four.iter().zip(tables.iter_mut().zip(nth..)) {
                table[usize::from(*value)] += u32::from(word >> bit & 1 != 0);
            }
        }
    }
    for (value, count) in counts.iter_mut().take(256).enumerate() {
        *count += tables.iter().map(|table| u64::from(table[value])).sum::<u64>();
    }
}
